"""LLVM's -O3 pipeline as a peer.

A case is a function of 64-bit arguments with ``range`` attributes, whose roots are passed to an unknown function;
constraints are assumed. Sums and products carry ``nsw``; a floor division is the C expression for it, a shift or a mask
where the divisor is a power of two. Gates it cannot use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import llvmlite.binding as llvm
from wire import Alternative, Case, Clock, Table, from_peer, serve

BINARY = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw", "tdiv": "sdiv", "tmod": "srem", "shr": "ashr"}
PREDICATES = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}
CONDITIONS = {"and": "and", "or": "or", "min": "and", "max": "or"}
DECLARATIONS = """\
declare void @llvm.assume(i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @root.i64(i64, i64)
declare void @root.i1(i64, i1)
"""


class Source:
    """The text of a module that computes the roots of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.values: list[str] = []
        self.sorts = ["i1" if condition else "i64" for condition in case.conditions()]
        self.lines: list[str] = []
        arguments = []
        for index, (kind, *rest) in enumerate(case.nodes):
            if kind == "var":
                name, low, high = rest
                self.values.append(f"%v.{name}" if low < high else str(low))
                if low < high:
                    arguments.append(f"i64 range(i64 {low}, {high + 1}) %v.{name}")
            elif kind in ("const", "bool"):
                self.values.append(str(rest[0]) if kind == "const" else str(bool(rest[0])).lower())
            else:
                self.values.append(self._operation(index, kind, rest))
        self.lines += [f"call void @llvm.assume(i1 {self.values[fact]})" for fact in case.constraints]
        self.lines += [
            f"call void @root.{self.sorts[root]}(i64 {number}, {self.sorts[root]} {self.values[root]})"
            for number, root in enumerate(case.roots)
        ]
        body = "\n".join([*self.lines, "ret void"])
        self.text = f"{DECLARATIONS}define void @case({', '.join(arguments)}) {{\n{body}\n}}"

    def _set(self, value: str) -> str:
        name = f"%n{len(self.lines)}"
        self.lines.append(f"{name} = {value}")
        return name

    def _operation(self, index: int, kind: str, rest: Sequence[int]) -> str:
        operands = [self.values[i] for i in rest]
        sort = self.sorts[rest[-1]]
        pair = ", ".join(operands)
        if kind == "where":
            return self._set(f"select i1 {operands[0]}, {sort} {operands[1]}, {sort} {operands[2]}")
        if kind == "not":
            return self._set(f"xor i1 {pair}, true")
        if kind in PREDICATES:
            return self._set(f"icmp {PREDICATES[kind]} {sort} {pair}")
        if sort == "i1":
            return self._set(f"{CONDITIONS[kind]} i1 {pair}")
        if kind in ("min", "max"):
            return self._set(f"call i64 @llvm.s{kind}.i64(i64 {operands[0]}, i64 {operands[1]})")
        if kind == "neg":
            return self._set(f"sub nsw i64 0, {pair}")
        if kind in ("floordiv", "mod"):
            return self._floor(kind, operands[0], operands[1], self.case.nodes[rest[1]])
        if kind in BINARY:
            return self._set(f"{BINARY[kind]} i64 {pair}")
        raise ValueError(f"no counterpart of {kind}")

    def _floor(self, kind: str, x: str, y: str, divisor: Sequence[Any]) -> str:
        """``x // y`` or ``x % y``."""
        literal = divisor[1] if divisor[0] == "const" else 0
        if literal > 0 and literal & (literal - 1) == 0:
            if kind == "mod":
                return self._set(f"and i64 {x}, {literal - 1}")
            return self._set(f"ashr i64 {x}, {literal.bit_length() - 1}")
        remainder = self._set(f"srem i64 {x}, {y}")
        if literal > 0:
            fix = self._set(f"icmp slt i64 {remainder}, 0")
        else:
            signs = self._set(f"xor i64 {remainder}, {y}")
            opposite = self._set(f"icmp slt i64 {signs}, 0")
            uneven = self._set(f"icmp ne i64 {remainder}, 0")
            fix = self._set(f"and i1 {opposite}, {uneven}")
        if kind == "mod":
            fixed = self._set(f"add nsw i64 {remainder}, {y}")
            return self._set(f"select i1 {fix}, i64 {fixed}, i64 {remainder}")
        quotient = self._set(f"sdiv i64 {x}, {y}")
        lower = self._set(f"sub nsw i64 {quotient}, 1")
        return self._set(f"select i1 {fix}, i64 {lower}, i64 {quotient}")


#: Our name of each instruction, those for which only the lowest bits of an operand matter, those that read an operand
#: as a signed number, and those that read it as an unsigned one.
MODULAR = {"add": "add", "sub": "sub", "mul": "mul"}
SIGNED = {"sdiv": "tdiv", "srem": "tmod"}
UNSIGNED = {"udiv": "floordiv", "urem": "mod"}
COMPARISONS = {"eq": "eq", "ne": "ne", "slt": "lt", "sle": "le", "sgt": "gt", "sge": "ge"}
COMPARISONS |= {"ult": "ult", "ule": "ule", "ugt": "ugt", "uge": "uge"}


class Reader:
    """The roots of an optimised module as a table.

    LLVM computes in narrower words where it can. The node of an instruction is a number with the same lowest bits as
    its word; where a word is read as a number, ``wrap`` (signed) or ``word`` (unsigned) makes it that number.
    """

    def __init__(self, module: Any, count: int) -> None:
        self.table = Table()
        roots: list[Any] = [None] * count
        [function] = [function for function in module.functions if not function.is_declaration]
        blocks = list(function.blocks)
        if len(blocks) > 1:
            raise ValueError("LLVM answers with branches")
        # what is among the operands of an instruction is only a reference to one, without its own operands
        self.instructions = {self._key(instruction): instruction for instruction in blocks[0].instructions}
        for instruction in self.instructions.values():
            operands = self._operands(instruction, all_of_them=True)
            if instruction.opcode == "call" and operands[-1].name.startswith("root."):
                roots[operands[0].get_constant_value()] = operands[1]
        self.roots = from_peer(roots, self._key, self._operands, self._node)

    def _key(self, value: Any) -> str:
        return value.name or str(value)

    def _operands(self, value: Any, all_of_them: bool = False) -> list[Any]:
        """What an instruction works on, each an instruction itself or a leaf; a call's function is the last one."""
        if not value.is_instruction:
            return []
        operands = [self.instructions.get(self._key(operand), operand) for operand in value.operands]
        return operands[:-1] if value.opcode == "call" and not all_of_them else operands

    def _node(self, value: Any, below: list[int]) -> int:
        add = self.table.add
        if value.value_kind == llvm.ValueKind.argument:
            return add("var", value.name.removeprefix("v."))
        if value.is_constant:
            if str(value.type) == "i1":
                return add("bool", int(str(value) == "i1 true"))
            return add("const", int(str(value).split()[1]))
        sort, opcode = str(value.type), value.opcode
        if opcode in MODULAR and sort != "i1":
            return add(MODULAR[opcode], *below)
        if opcode in SIGNED:
            return add(SIGNED[opcode], *self._numbers(value, below, "wrap"))
        if opcode in UNSIGNED:
            return add(UNSIGNED[opcode], *self._numbers(value, below, "word"))
        match opcode:
            case "icmp":
                [predicate] = re.findall(r"icmp (?:samesign )?(\w+) ", str(value))
                numbers = self._numbers(value, below, "word" if predicate.startswith("u") else "wrap")
                return add(COMPARISONS[predicate], *numbers)
            case "select":
                return add("where", *below)
            case "freeze":
                return below[0]
            case "zext" | "sext" | "trunc":
                return self._converted(value, below, sort)
            case "and" | "or" | "xor" if sort == "i1":
                return add("ne" if opcode == "xor" else opcode, *below)
            case "and" | "or" | "xor" | "shl" | "ashr" | "lshr":
                return self._bits(value, below)
            case "call":
                name = list(value.operands)[-1].name
                if match := re.match(r"llvm\.([su])(min|max)\.", name):
                    return add(match[2], *self._numbers(value, below, "word" if match[1] == "u" else "wrap"))
        raise ValueError(f"LLVM answers with {opcode}, which has no counterpart")

    def _numbers(self, value: Any, below: list[int], reading: str) -> list[int]:
        """The operands of an instruction, words of one width, read as numbers."""
        sort = str(next(iter(value.operands)).type)
        if sort in ("i1", "i64"):
            return below
        size = self.table.add("const", 1 << int(sort[1:]))
        return [self.table.add(reading, operand, size) for operand in below]

    def _converted(self, value: Any, below: list[int], sort: str) -> int:
        add = self.table.add
        if str(next(iter(value.operands)).type) == "i1":
            return add("where", below[0], add("const", 1 if value.opcode == "zext" else -1), add("const", 0))
        if sort == "i1":
            return add("ne", add("mod", below[0], add("const", 2)), add("const", 0))
        if value.opcode == "trunc":
            return below[0]
        return self._numbers(value, below, "word" if value.opcode == "zext" else "wrap")[0]

    def _bits(self, value: Any, below: list[int]) -> int:
        """A mask, a disjoint or, a complement or a shift, by literals."""
        add = self.table.add
        if value.opcode == "or" and "or disjoint" in str(value):
            return add("add", *below)
        kind, *rest = self.table.nodes[below[1]]
        if kind != "const":
            raise ValueError(f"LLVM answers with {value.opcode} of two variables, which has no counterpart")
        literal = rest[0]
        if value.opcode in ("ashr", "lshr"):
            number = self._numbers(value, below[:1], "wrap" if value.opcode == "ashr" else "word")[0]
            return add("floordiv", number, add("const", 1 << literal))
        if value.opcode == "shl":
            return add("mul", below[0], add("const", 1 << literal))
        if value.opcode == "xor" and literal == -1:
            return add("sub", add("const", -1), below[0])
        masked = self._masked(below[0], literal)
        if value.opcode == "and":
            return masked
        # x | m == x + m - (x & m) and x ^ m == x + m - 2*(x & m)
        twice = masked if value.opcode == "or" else add("mul", masked, add("const", 2))
        return add("sub", add("add", below[0], below[1]), twice)

    def _masked(self, x: int, mask: int) -> int:
        """``x & mask``: for each run of ones what they select; of a negative mask the last run has no end."""
        add = self.table.add
        parts = []
        low = 0
        while mask >> low not in (0, -1):
            low += ((mask >> low) & -(mask >> low)).bit_length() - 1
            ones = mask >> low
            if ones == -1:
                break
            high = low + (~ones & -~ones).bit_length() - 1
            part = add("mod", self._shifted(x, low), add("const", 1 << (high - low)))
            parts.append(add("mul", part, add("const", 1 << low)) if low else part)
            low = high
        if mask < 0:
            part = self._shifted(x, low)
            parts.append(add("mul", part, add("const", 1 << low)) if low else part)
        return self.table.fold("add", parts) if parts else add("const", 0)

    def _shifted(self, x: int, amount: int) -> int:
        return self.table.add("floordiv", x, self.table.add("const", 1 << amount)) if amount else x


class Pipeline:
    """-O3 without vectorisation, which would only hide what is computed."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        self.machine = llvm.Target.from_default_triple().create_target_machine(opt=3)

    def simplify(self, case: Case, clock: Clock) -> Iterator[Alternative]:
        """One mode."""
        module = llvm.parse_assembly(Source(case).text)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.slp_vectorization = options.loop_vectorization = False
        builder = llvm.create_pass_builder(self.machine, options)
        passes = builder.getModulePassManager()
        with clock.running():
            passes.run(module, builder)
        reader = Reader(module, len(case.roots))
        yield "O3", reader.table, reader.roots


if __name__ == "__main__":
    serve(f"{'.'.join(map(str, llvm.llvm_version_info))} (llvmlite {version('llvmlite')})", Pipeline().simplify)
