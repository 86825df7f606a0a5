"""What is known where an MLIR operation stands: ranges of loops and of threads, and the conditions that enclose it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType

from eqsat.interop.mlir.tensors import INTEGER, TYPE, is_condition
from eqsat.interop.mlir.terms import COMPARISON, MAP, SPREAD, NotReadError, Terms, compared, limits
from eqsat.interop.mlir.text import Block, Statement, Value
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, any_var
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import Bounds
from eqsat.lang.terms import all_of
from eqsat.lang.text import split_list
from eqsat.theory.linear import LinearArithmetic

_RESULTS = r"(?:%.*? = )?"
AFFINE_FOR = re.compile(rf"{_RESULTS}affine\.for %(\d+) = (.*?) to (.*?)(?: step (\d+))?(?: iter_args.*)? \{{")
_SCF_FOR = re.compile(rf"{_RESULTS}scf\.for %(\d+) = %(\d+) to %(\d+) step %(\d+)(?: iter_args.*?)?(?: : {TYPE})? \{{")
_PARALLEL = re.compile(
    rf"{_RESULTS}(?:scf\.parallel|affine\.parallel|scf\.forall) "
    r"\((.*?)\) (?:= \((.*?)\) to|in) \((.*?)\)(?: step \((.*?)\))?.*\{"
)
_IF = re.compile(rf"{_RESULTS}(?:scf\.if %(\d+)|affine\.if {MAP})(?: -> .*)? \{{")
_GPU = re.compile(r"%0 = gpu\.(\w+)(?: [xyz])?(?: upper_bound (\d+))?")
#: What Triton knows to divide arguments, by the values with which a kernel is called; and what a kernel assumes.
_DIVISIBLE = re.compile(rf"%(\d+): ({INTEGER}) \{{tt\.divisibility = (\d+) : i32\}}")
#: The ranges that XLA's kernels write on arguments, and behind operations.
_RANGE = r"\{[^{}]*\bxla\.range = \[(-?\d+) : \w+, (-?\d+) : \w+\][^{}]*\}"
_RANGED_ARGUMENT = re.compile(rf"%(\d+): (?:index|{INTEGER}) {_RANGE}")
_RANGED = re.compile(rf"%0 = [^=]*? {_RANGE}(?: : .*)?")
_ASSUME = re.compile(r"llvm\.intr\.assume %0 : i1.*")
_PURE = re.compile(r"%0 = (?:arith|tt\.(?:get_program_id|get_num_programs|make_range|splat|broadcast|expand_dims)\b)")
_PROGRAMS = re.compile(r"%0 = tt\.get_(program_id|num_programs) [xyz] .*")
_DIM = re.compile(r"%0 = (?:memref|tensor)\.dim .*")

#: The most that MLIR takes a number of blocks, threads or lanes of a GPU to be.
_MOST_THREADS = 2**32 - 1
#: The most programs that Triton starts along an axis.
MOST_PROGRAMS = 2**31 - 1


@dataclass(frozen=True)
class Loop:
    """An index of a loop: its first value, the value before which it ends, and its step (0: not known)."""

    index: Value
    first: Expr
    last: Expr
    step: int
    type_: str = "index"

    def range(self) -> tuple[int, int] | None:
        """The least and greatest value of the index; None if it never has one, or the step is not known.

        The index is taken not to wrap, as MLIR's own analyses do (``ValueBoundsOpInterface``, integer ranges).
        """
        least, most = self.first.vmin, self.last.vmax - 1
        if self.step <= 0 or least > most:
            return None
        if self.first.vmin == self.first.vmax:
            most = least + (most - least) // self.step * self.step
        return least, most


@dataclass(eq=False)
class KnownTerms(Terms):
    """Terms, the ranges of their variables, and what holds in blocks."""

    ranges: Mapping[str, Bounds] = MappingProxyType({})
    _facts: dict[Block, list[Expr]] = field(default_factory=dict, init=False)

    def read(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            super().read([statement])
            # those of a base are variables already
            if self.base is None:
                with suppress(NotReadError, ValueError, TypeError):
                    for loop in self.loops(statement):
                        self.of(loop.index, loop.type_)

    def range_of(self, value: Value, type_: str) -> tuple[int, int]:
        low, high = self._assumed_range(value, type_)
        if value.is_result:
            least, most = self._range_of_result(value, type_)
            # of two ranges that contradict each other, the assumed one is left out
            return (max(low, least), min(high, most)) if low <= most and least <= high else (least, most)
        for loop in self.loops(value.statement):
            if loop.index is value and (found := loop.range()):
                return found
        text, values = value.statement.normalised
        for place, least, most in _RANGED_ARGUMENT.findall(text):
            if values[int(place)] is value and low <= int(least) <= int(most) <= high:
                return int(least), int(most)
        return low, high

    def _range_of_result(self, value: Value, type_: str) -> Bounds:
        """The range of what an operation computes that has no term."""
        text, values = value.statement.normalised
        if (found := SPREAD.fullmatch(text)) and not is_condition(type_):
            operand = self.of(values[1], found[3])
            return operand.vmin, operand.vmax
        if said := [ends for start, ends in self.ranges.items() if text.startswith(f"%0 = {start} ")]:
            return said[0]
        if _DIM.fullmatch(text):
            return 0, limits("index")[1]
        if (found := _RANGED.fullmatch(text)) and int(found[1]) <= int(found[2]):
            return int(found[1]), int(found[2])
        if found := _PROGRAMS.fullmatch(text):
            return (0, MOST_PROGRAMS - 1) if found[1] == "program_id" else (1, MOST_PROGRAMS)
        if found := _GPU.fullmatch(text):
            most = int(found[2]) if found[2] else _MOST_THREADS
            if found[1] in ("block_dim", "grid_dim", "cluster_dim", "subgroup_size", "num_subgroups"):
                return 1, most
            if found[1] in ("thread_id", "block_id", "cluster_id", "lane_id", "subgroup_id") or found[2]:
                return 0, most - 1
        return limits(type_)

    def _assumed_range(self, value: Value, type_: str) -> Bounds:
        """The range of a value that a kernel assumes, by comparing it with literals, in the block that defines it."""
        any_value, known = any_var("value", *limits(type_)), list[Expr]()
        for condition in assumptions(value.block):
            text, values = condition.statement.normalised
            found = COMPARISON.fullmatch(text)
            if found and found[2] == type_ and value in values[1:]:
                with suppress(NotReadError):
                    x, y = [any_value if operand is value else self.of(operand, type_) for operand in values[1:]]
                    known += [compared(found[1], x, y)] if "const" in (x.op, y.op) else []
        try:
            return LinearArithmetic(known).range(any_value) if known else limits(type_)
        except ContradictionError:
            return limits(type_)

    def loops(self, statement: Statement) -> list[Loop]:
        """The indices of a loop, none of another statement; an error if a bound is not known."""
        text, values = statement.normalised
        if found := AFFINE_FOR.fullmatch(text):
            first, last = self._bound(found[2], values, maximum), self._bound(found[3], values, minimum)
            return [Loop(values[int(found[1])], first, last, int(found[4] or 1))]
        if found := _SCF_FOR.fullmatch(text):
            index, *rest = (values[int(found[k])] for k in (1, 2, 3, 4))
            type_ = found[5] or "index"
            first, last, step = (self.of(value, type_) for value in rest)
            return [Loop(index, first, last, _literal(step), type_)]
        if found := _PARALLEL.fullmatch(text):
            indices = split_list(found[1])
            zeros, ones = (["0"] * len(indices), ["1"] * len(indices))
            parts = [split_list(found[2] or "") or zeros, split_list(found[3]), split_list(found[4] or "") or ones]
            bounds = [[self._bound(part, values, minimum) for part in some] for some in parts]
            return [
                Loop(values[int(name[1:])], first, last, _literal(step))
                for name, first, last, step in zip(indices, *bounds, strict=True)
            ]
        return []

    def _bound(self, text: str, values: Sequence[Value], among: Callable[[Expr, Expr], Expr]) -> Expr:
        """A bound of a loop: a number, a value, or the extreme of a map's results."""
        if re.fullmatch(r"-?\d+|%\d+", text):
            return self.operand(text, values)
        if not (found := re.fullmatch(rf"(?:min |max )?{MAP}", text)):
            raise NotReadError
        return reduce(among, self.function(found[1], found[2], found[3], values))

    def facts(self, block: Block) -> list[Expr]:
        """What holds in a block, by what encloses it; ``ContradictionError`` if it plainly never runs."""
        known: list[Expr] = []
        # from the outside in: regions may nest deep
        for inner in reversed([*block.enclosing()]):
            if inner not in self._facts:
                own = list(self._region_facts(inner.owner, inner.branch)) if inner.owner is not None else []
                own += [self.of(condition, "i1") for condition in assumptions(inner)]
                if any(fact.vmax == 0 for fact in own):
                    raise ContradictionError("the region never runs")
                self._facts[inner] = [*known, *(fact for fact in own if fact.vmin == 0)]
            known = self._facts[inner]
        return known

    def _region_facts(self, owner: Statement, branch: int) -> Iterator[Expr]:
        """What holds in a region of ``owner``, by that alone."""
        text, values = owner.normalised
        try:
            yield from self._condition(owner, branch)
            # the arguments of a function that Triton knows to be multiples
            for place, type_, divisor in _DIVISIBLE.findall(text):
                yield (self.of(values[int(place)], type_) % int(divisor)).eq(0)
            for loop in self.loops(owner) if branch == 0 else []:
                if loop.range():
                    index = self.of(loop.index, loop.type_)
                    yield from (loop.first <= index, index < loop.last)
                    if loop.step > 1:
                        yield ((index - loop.first) % loop.step).eq(0)
                elif loop.step > 0 and loop.first.vmin >= loop.last.vmax:
                    raise ContradictionError("the loop never runs")
        except ContradictionError:
            raise
        except (NotReadError, ValueError, TypeError):
            # what cannot be read is not known
            return

    def _condition(self, owner: Statement, branch: int) -> list[Expr]:
        text, values = owner.normalised
        if not (found := _IF.fullmatch(text)):
            return []
        if found[1]:
            conditions = [self.of(values[int(found[1])], "i1")]
        else:
            conditions = self.function(found[2], found[3], found[4], values)
        return conditions if branch == 0 else [~all_of(conditions)]


def assumptions(block: Block) -> Iterator[Value]:
    """The conditions assumed at the start of a block, before it has effects: from there on they may not be reached."""
    for statement in block.statements:
        if is_assumption(statement):
            yield statement.operands[0]
        elif (text := statement.normalised[0]) and not _PURE.match(text):
            return


def is_assumption(statement: Statement) -> bool:
    """Whether a statement says that a condition holds."""
    return bool(_ASSUME.fullmatch(statement.normalised[0]))


def _literal(step: Expr) -> int:
    return step.vmin if step.op == "const" else 0
