"""Random MLIR functions of loops, branches and integer arithmetic, as a program writes index computations."""

import random

BINARY = [
    "addi",
    "addi",
    "subi",
    "muli",
    "divsi",
    "remsi",
    "divui",
    "remui",
    "floordivsi",
    "ceildivsi",
    "minsi",
    "maxsi",
]
BINARY += ["andi", "ori", "xori", "shli", "shrsi", "shrui"]
NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 12, 16, -1, -3, -8]
MAPS = ["{x} floordiv 4", "{x} mod 4", "{x} * 3 + {y}", "({x} + {y}) floordiv 3", "{x} - {y}", "{x} ceildiv 2"]
MAPS += ["({x} floordiv 4) * 4 + {x} mod 4", "{x} + {y} mod 2", "({x} * 8 + {y}) floordiv 8"]


class Writer:
    """The lines of a function, written from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = ["func.func @f(%a: memref<64xindex>, %n: index, %m: i32, %p: i1) {"]
        self.count = 0

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def text(self):
        values = {"index": [("%n", True)], "i32": [("%m", False)], "i1": [("%p", False)]}
        self.block(values, "  ", 3)
        return "\n".join([*self.lines, "  return", "}", ""])

    def block(self, values, pad, depth):
        values = {type_: list(found) for type_, found in values.items()}
        for _ in range(self.random.randint(3, 7)):
            kind = self.random.random()
            if depth and kind < 0.2:
                self.loop(values, pad, depth)
            elif depth and kind < 0.35:
                self.branch(values, pad, depth)
            else:
                self.operation(values, pad)
        for _ in range(2):
            self.store(values, pad)

    def pick(self, values, type_):
        """A late value of a type, or a literal."""
        known = values[type_]
        if type_ != "i1" and (not known or self.random.random() < 0.15):
            return self.constant(values, type_, self.random.choice(NUMBERS))
        return known[max(self.random.randrange(len(known)), self.random.randrange(len(known)))][0]

    def constant(self, values, type_, number):
        name = self.name()
        self.lines.append(f"{self.pad}{name} = arith.constant {number} : {type_}")
        return name

    def operation(self, values, pad):
        self.pad = pad
        type_ = self.random.choice(["index", "index", "index", "i32"])
        kind = self.random.random()
        if kind < 0.6:
            op = self.random.choice(BINARY)
            x = self.pick(values, type_)
            positive = [n for n in NUMBERS if n > 0]
            small = op in ("shli", "shrsi", "shrui")
            if "div" in op or "rem" in op or small or self.random.random() < 0.5:
                y = self.constant(values, type_, self.random.choice([1, 2, 3] if small else positive))
            else:
                y = self.pick(values, type_)
            self.add(values, pad, type_, f"arith.{op} {x}, {y} : {type_}")
        elif kind < 0.7:
            predicate = self.random.choice(["slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge"])
            x, y = self.pick(values, type_), self.pick(values, type_)
            self.add(values, pad, "i1", f"arith.cmpi {predicate}, {x}, {y} : {type_}")
        elif kind < 0.78:
            p, x, y = self.pick(values, "i1"), self.pick(values, type_), self.pick(values, type_)
            self.add(values, pad, type_, f"arith.select {p}, {x}, {y} : {type_}")
        elif kind < 0.86:
            other = "i32" if type_ == "index" else "index"
            x = self.pick(values, type_)
            op = self.random.choice(["index_cast", "index_castui"])
            self.add(values, pad, other, f"arith.{op} {x} : {type_} to {other}")
        elif kind < 0.9:
            op = self.random.choice(["andi", "ori", "xori"])
            self.add(values, pad, "i1", f"arith.{op} {self.pick(values, 'i1')}, {self.pick(values, 'i1')} : i1")
        else:
            dims = [x for x, is_dim in values["index"] if is_dim]
            if dims:
                self.apply(values, pad, dims)

    def apply(self, values, pad, dims):
        x, y = (self.random.choice(dims) for _ in "xy")
        maps = [m.format(x="d0", y="d1") for m in self.random.sample(MAPS, 2)]
        op = self.random.choice(["apply", "apply", "min", "max"])
        results = ", ".join(maps[: 1 + (op != "apply")])
        text = f"affine.{op} affine_map<(d0, d1) -> ({results})>({x}, {y})"
        self.add(values, pad, "index", text, op == "apply")

    def add(self, values, pad, type_, text, is_dim=False):
        name = self.name()
        self.lines.append(f"{pad}{name} = {text}")
        values[type_].append((name, is_dim))

    def store(self, values, pad):
        self.pad = pad
        dims = [x for x, is_dim in values["index"] if is_dim]
        x = self.pick(values, "index")
        if dims and self.random.random() < 0.4:
            at = self.random.choice(MAPS).format(x=self.random.choice(dims), y=self.random.choice(dims))
            self.lines.append(f"{pad}affine.store {x}, %a[{at}] : memref<64xindex>")
            return
        at = self.pick(values, "index")
        self.lines.append(f"{pad}memref.store {x}, %a[{at}] : memref<64xindex>")

    def loop(self, values, pad, depth):
        self.pad = pad
        name, first, step = self.name(), self.random.choice([0, 0, 0, -6, 3]), self.random.choice([1, 1, 1, 4])
        last = first + self.random.choice([3, 8, 12])
        is_affine = self.random.random() < 0.5
        if is_affine:
            self.lines.append(f"{pad}affine.for {name} = {first} to {last} step {step} {{")
        else:
            ends = [self.constant(values, "index", n) for n in (first, last, step)]
            self.lines.append(f"{pad}scf.for {name} = {ends[0]} to {ends[1]} step {ends[2]} {{")
        inner = {**values, "index": [*values["index"], (name, is_affine)]}
        self.block(inner, pad + "  ", depth - 1)
        self.lines.append(f"{pad}}}")

    def branch(self, values, pad, depth):
        self.pad = pad
        dims = [x for x, is_dim in values["index"] if is_dim]
        if dims and self.random.random() < 0.4:
            number = self.random.randint(-3, 8)
            condition = f"(d0 - {number} >= 0)" if number >= 0 else f"(d0 mod {-number + 1} == 0)"
            self.lines.append(f"{pad}affine.if affine_set<(d0) : {condition}>({self.random.choice(dims)}) {{")
        else:
            self.operation(values, pad)
            self.lines.append(f"{pad}scf.if {self.pick(values, 'i1')} {{")
        self.block(values, pad + "  ", depth - 1)
        if self.random.random() < 0.6:
            self.lines.append(f"{pad}}} else {{")
            self.block(values, pad + "  ", depth - 1)
        self.lines.append(f"{pad}}}")
