"""Runs MLIR functions of loops, branches, integer arithmetic and memory; says what they load and store.

It reads the text by itself: an operation on a line, regions closed by a line of their own. Integers wrap as their types
do, and a division by zero is an error. What is loaded hangs on the address alone.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from zlib import crc32

BITS = {"index": 64}
PREDICATES = {
    "slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__, "eq": int.__eq__, "ne": int.__ne__
}  # fmt: skip


def bits(type_):
    return BITS.get(type_) or int(type_[1:])


def wrapped(value, type_):
    n = bits(type_)
    if n == 1:
        return value & 1
    value &= 2**n - 1
    return value - 2**n if value >> (n - 1) else value


def unsigned(value, type_):
    return value & (2 ** bits(type_) - 1)


def truncated(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


BINARY = {
    "addi": lambda x, y, t: x + y,
    "subi": lambda x, y, t: x - y,
    "muli": lambda x, y, t: x * y,
    "divsi": lambda x, y, t: truncated(x, y),
    "remsi": lambda x, y, t: x - y * truncated(x, y),
    "divui": lambda x, y, t: unsigned(x, t) // unsigned(y, t),
    "remui": lambda x, y, t: unsigned(x, t) % unsigned(y, t),
    "floordivsi": lambda x, y, t: x // y,
    "ceildivsi": lambda x, y, t: -(-x // y),
    "ceildivui": lambda x, y, t: -(-unsigned(x, t) // unsigned(y, t)),
    "shli": lambda x, y, t: x << y,
    "shrsi": lambda x, y, t: x >> y,
    "shrui": lambda x, y, t: unsigned(x, t) >> y,
    "andi": lambda x, y, t: x & y,
    "ori": lambda x, y, t: x | y,
    "xori": lambda x, y, t: x ^ y,
    "minsi": lambda x, y, t: min(x, y),
    "maxsi": lambda x, y, t: max(x, y),
    "minui": lambda x, y, t: min(x, y, key=lambda v: unsigned(v, t)),
    "maxui": lambda x, y, t: max(x, y, key=lambda v: unsigned(v, t)),
}


@cache
def compiled(text):
    """The code of an affine expression."""
    text = re.sub(r"\bfloordiv\b", "//", re.sub(r"\bmod\b", "%", text))
    return compile(re.sub(r"\bceildiv\s+(\d+)", r"// -\1 * -1", text), text, "eval")


@cache
def parts(text):
    """What a line defines, or nothing, its operation, all of it, and the values that it mentions."""
    result, _, rest = text.partition(" = ") if re.match(r"%\w+ = ", text) else ("", "", text)
    return result, re.match(r"[\w.]+", rest)[0], rest, re.findall(r"%\w+", rest)


@cache
def accessed(rest):
    """Of a load or store: its values before the indices, those in them, the indices, whether elements are integers."""
    inside = re.sub(r"symbol\((%\w+)\)", r"\1", re.search(r"\[(.*?)\]", rest)[1])
    texts = re.sub(r"%(\w+)", r"x_\1", inside).split(", ")
    words = re.findall(r"%\w+", rest.partition("[")[0])
    return words, re.findall(r"%\w+", inside), texts, bool(re.search(r"x(index|i\d+)>", rest))


@dataclass
class Op:
    text: str
    regions: list = field(default_factory=list)


def parse(text):
    """The operations of the text as trees, and its named maps and sets."""
    aliases, root = {}, []
    stack, owners = [root], []
    for line in text.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        if found := re.fullmatch(r"(#\w+) = (affine_(?:map|set)<.*>)", line):
            aliases[found[1]] = found[2]
            continue
        if line.startswith("}"):
            stack.pop()
            owner = owners.pop()
            if "else" in line:
                owner.regions.append([])
                stack.append(owner.regions[-1])
                owners.append(owner)
            continue
        if not line:
            continue
        op = Op(line)
        stack[-1].append(op)
        if line.endswith("{"):
            op.regions.append([])
            stack.append(op.regions[-1])
            owners.append(op)
    assert len(stack) == 1
    return root, aliases


def functions(ops):
    for op in ops:
        if "func.func" in op.text:
            yield op
        else:
            for region in op.regions:
                yield from functions(region)


def run(text, arguments):
    """What the functions of a text load and store, in order; ``arguments`` are the values of those of integer type."""
    ops, aliases = parse(text)
    machine = Machine(aliases)
    for function in functions(ops):
        env = {}
        given = iter(arguments)
        for name, type_ in re.findall(r"(%\w+): ([\w<>?]+)", function.text):
            env[name] = wrapped(next(given), type_) if re.fullmatch(r"index|i\d+", type_) else name
        machine.block(function.regions[0], env)
    return machine.trace


class Machine:
    def __init__(self, aliases):
        self.aliases = aliases
        self.trace = []

    def block(self, ops, env):
        """Run operations; the values that the last one yields."""
        env = dict(env)
        yielded = []
        for op in ops:
            yielded = self.run(op, env)
        return yielded

    def run(self, op, env):
        result, name, rest, words = parts(op.text)
        if name in ("scf.for", "affine.for", "scf.parallel", "affine.parallel"):
            found = self.loop(op, rest, env)
        elif name in ("scf.if", "affine.if"):
            holds = env[words[0]] if name == "scf.if" else self.holds(rest, env)
            region = [*op.regions, []][0 if holds else 1]
            found = self.block(region, env)
        elif name in ("scf.yield", "affine.yield", "return"):
            return [env[w] for w in words]
        elif name in ("memref.load", "affine.load", "memref.store", "affine.store"):
            found = [self.access(name, rest, env)]
        elif name == "scf.reduce":
            return []
        else:
            found = [self.compute(name, rest, [env[w] for w in words], env)]
        if result:
            env[result] = found[0]
        return []

    def compute(self, name, rest, values, env):
        if name in ("affine.apply", "affine.min", "affine.max"):
            results = self.function(rest, env)
            return {"affine.min": min, "affine.max": max}.get(name, lambda r: r[0])(results)
        op = name.removeprefix("arith.")
        if op == "constant":
            literal = rest.split()[1]
            return int(literal == "true") if literal in ("true", "false") else int(literal)
        type_ = rest.split()[-1]
        if op == "cmpi":
            predicate = rest.split()[1].strip(",")
            if predicate[0] == "u":
                values = [unsigned(v, type_) for v in values]
                predicate = "s" + predicate[1:]
            return int(PREDICATES[predicate](*values))
        if op == "select":
            return values[1] if values[0] else values[2]
        source = rest.split(" : ")[1].split()[0]
        if op in ("index_cast", "extsi", "trunci"):
            return wrapped(-values[0] if source == "i1" else values[0], type_)
        if op in ("index_castui", "extui"):
            return wrapped(unsigned(values[0], source), type_)
        return wrapped(BINARY[op](*values, type_), type_)

    def expression(self, text, names):
        return eval(compiled(text), {}, names)

    def function(self, rest, env):
        found = re.search(r"(#\w+|affine_(?:map|set)<.*>)\(([^()]*)\)(?:\[([^\]]*)\])?", rest)
        text = self.aliases.get(found[1], found[1])
        head, _, body = re.fullmatch(r"affine_\w+<(\([^()]*\)(?:\[[^\]]*\])?) (->|:) \((.*)\)>", text).groups()
        names = re.findall(r"\w+", head)
        values = [env[v] for v in re.findall(r"%\w+", f"{found[2]} {found[3] or ''}")]
        env = dict(zip(names, values, strict=True))
        return [self.expression(part, env) for part in body.split(", ")]

    def holds(self, rest, env):
        return all(self.function(rest, env))

    def access(self, name, rest, env):
        words, inside, texts, of_integers = accessed(rest)
        names = {f"x_{w[1:]}": env[w] for w in inside}
        at = tuple(self.expression(part, names) for part in texts)
        memory = env[words[-1]]
        if name.endswith("store"):
            self.trace.append(("store", memory, at, env[words[0]]))
            return None
        self.trace.append(("load", memory, at))
        value = crc32(repr((memory, at)).encode())
        return value % 50 - 10 if of_integers else value

    def loop(self, op, rest, env):
        if "parallel" in rest:
            return self.nest(op, rest, env)
        found = re.match(
            r"\w+\.for (%\w+) = (.*?) to (.*?)(?: step (\S+))?(?: iter_args\((.*?)\) .*)?(?: : \w+)? {", rest
        )
        first, last = self.bound(found[2], max, env), self.bound(found[3], min, env)
        step = self.operand(found[4] or "1", env)
        carried = dict(re.findall(r"(%\w+) = (%\w+)", found[5] or ""))
        values = [env[v] for v in carried.values()]
        for index in range(first, last, step):
            values = self.block(op.regions[0], env | {found[1]: index} | dict(zip(carried, values, strict=True)))
        return values

    def nest(self, op, rest, env):
        parts = [re.findall(r"%?\w+", part) for part in re.findall(r"\(([^()]*)\)", rest)]
        indices, first, last, step, *_ = [*parts, ["1"] * len(parts[0])]
        points = [env]
        for name, *bounds in zip(indices, first, last, step, strict=True):
            steps = range(*(self.operand(b, env) for b in bounds))
            points = [point | {name: k} for point in points for k in steps]
        for point in points:
            self.block(op.regions[0], point)
        return []

    def bound(self, text, extreme, env):
        return extreme(self.function(text, env)) if "(" in text else self.operand(text, env)

    def operand(self, text, env):
        return env[text] if text.startswith("%") else int(text)
