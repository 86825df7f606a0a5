"""What MLIR's operations on integers mean: values as terms, and what is known where an operation stands.

The term of a value is exact: arithmetic that may wrap, divide by zero, or read a negative number as an unsigned one
has none, and its value is a variable with the range of its type; so is a value of any operation that is not known here.
``index`` has 64 bits. An operation with attributes of its own is not known. What is known where one stands are the
ranges of loops and threads, the conditions of the regions around it, and what a kernel assumes.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType

from eqsat.extract.graph import reached
from eqsat.interop.affine import AffineFunction, affine_term
from eqsat.interop.mlir.tensors import INTEGER, TYPE, axis, axis_of, element_of, expanded, is_condition, shape_of, typed
from eqsat.interop.mlir.text import Block, Module, Statement, Value
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, const, make, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import Bounds
from eqsat.lang.terms import all_of
from eqsat.lang.text import split_list
from eqsat.lang.traversal import topological, variables
from eqsat.theory.linear import LinearArithmetic

_BINARY = re.compile(rf"%0 = arith\.(\w+) %1, %2(?: overflow<(?P<promised>[\w, ]+)>)? : (?P<type>{TYPE})")
_CONSTANT = re.compile(rf"%0 = arith\.constant (?:(?:dense<)?(-?\d+|true|false)>?)(?: : {TYPE})?")
COMPARISON = re.compile(rf"%0 = arith\.cmpi (\w+), %1, %2 : {TYPE}")
_SELECT = re.compile(rf"%0 = arith\.select %1, %2, %3 : (?:{TYPE}, )?{TYPE}")
#: Triton's tensor of numbers in order, and the operations that give a value another shape.
_MAKE_RANGE = re.compile(rf"%0 = tt\.make_range {{end = (\d+) : i32, start = (\d+) : i32}} : {TYPE}")
SPREAD = re.compile(rf"%0 = tt\.(splat|broadcast|expand_dims) %1 (?:{{axis = (\d+) : i32}} )?: {TYPE} -> {TYPE}")
_CAST = re.compile(rf"%0 = arith\.(index_cast|index_castui|extsi|extui|trunci) %1 : {TYPE} to {TYPE}")
#: A map or set, and its operands.
MAP = r"(#[\w.$-]+|affine_(?:map|set)<.*>) ?\(([^()]*)\)(?: ?\[([^\]]*)\])?"
APPLY = re.compile(rf"%0 = affine\.(apply|min|max) {MAP}")
_JOINED = re.compile(r"%0 = affine\.linearize_index (?:disjoint )?\[(.+)\] by \((.*)\) : index")
_DIGITS = re.compile(r"%0(?::\d+)? = affine\.delinearize_index %1 into \((.*)\) : (index(?:, index)*)")
_ACCESS = re.compile(r"(?:%0 = )?affine\.(?:load|store) (?:%\d+, )?%\d+ ?\[(.*)\] : .*")
_TYPED = re.compile(rf"%0 = (?:arith|tt)\..* (?::|to|->) {TYPE}")
_BOOL = re.compile(r"%0 = arith\.constant (?:true|false)")
_INDEX = re.compile(r"%0 = affine\.(?:apply|min|max|linearize_index) .*")

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

#: More terms than any operation adds to those of its operands; see :func:`own_terms`.
_MOST_OWN = 16

_SIGNED = {"slt": "lt", "sle": "le", "eq": "eq", "ne": "ne"}
_SWAPPED = {"sgt": "lt", "sge": "le"}


def limits(type_: str) -> tuple[int, int]:
    """The least and the greatest value of a type."""
    element = element_of(type_)
    bits = 64 if element == "index" else int(element[1:])
    return (0, 1) if bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def fits(term: Expr, type_: str) -> bool:
    """Whether every value of ``term`` is one of the type."""
    low, high = limits(type_)
    return low <= term.vmin and term.vmax <= high


def own_terms(term: Expr, operands: Iterable[Expr]) -> list[Expr]:
    """The terms in ``term`` that its operands do not have."""
    known = set(operands)
    own = reached([term], lambda t: [a for a in t.args if a not in known]) if term not in known else {}
    if len(own) < _MOST_OWN:
        return list(own)
    # no operation adds as many: the term was simplified to one inside of an operand
    inside = set(topological(known))
    return [t for t in own if t not in inside]


class NotReadError(Exception):
    """The operation has no exact term."""


def _power_of_two(y: Expr) -> Expr:
    """The number by which a shift by ``y`` multiplies or divides."""
    if y.op != "const" or not 0 <= y.vmin < 63:
        raise NotReadError
    return const(2**y.vmin)


def _unsigned(*operands: Expr) -> None:
    if any(x.vmin < 0 for x in operands):
        raise NotReadError


def _binary(op: str, x: Expr, y: Expr) -> Expr:
    if op.endswith("ui"):
        _unsigned(x, y)
    if ("div" in op or "rem" in op) and y.vmin <= 0 <= y.vmax:
        raise NotReadError
    if op in _DERIVED:
        return _DERIVED[op](x, y)
    if op not in ON_INTEGERS:
        raise NotReadError
    return make(ON_INTEGERS[op], x, y)


#: What the operations on integers compute.
ON_INTEGERS = {
    "addi": "add",
    "subi": "sub",
    "muli": "mul",
    "divsi": "tdiv",
    "remsi": "tmod",
    "divui": "floordiv",
    "remui": "mod",
    "floordivsi": "floordiv",
    "andi": "bitand",
    "ori": "bitor",
    "xori": "bitxor",
    "minsi": "min",
    "maxsi": "max",
    "minui": "min",
    "maxui": "max",
}
#: Operations that have no operator of terms, or not for all operands.
_DERIVED: dict[str, Callable[[Expr, Expr], Expr]] = {
    **dict.fromkeys(("ceildivsi", "ceildivui"), lambda x, y: -(-x // y)),
    "shli": lambda x, y: x * _power_of_two(y),
    **dict.fromkeys(("shrsi", "shrui"), lambda x, y: x // _power_of_two(y)),
}
_ON_CONDITIONS = {"andi": "and", "ori": "or", "xori": "ne"}


def _result_type(text: str) -> str | None:
    """The type of what a statement computes that may have a term."""
    if _BOOL.fullmatch(text):
        return "i1"
    if found := COMPARISON.fullmatch(text):
        return typed("i1", shape_of(found[2]))
    found = _TYPED.fullmatch(text)
    return found[1] if found else "index" if _INDEX.fullmatch(text) else None


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
class Terms:
    """The terms of the values of a module, the ranges of their variables, and what holds in blocks.

    With a ``base``, which has terms of all values, the bounds of variables are those of its terms. A value for which
    ``stops`` is true is a variable, though its operation is known.
    """

    module: Module
    base: Terms | None = None
    stops: Callable[[Value], bool] = lambda value: False
    #: Which terms are kept together, each as a variable; if not given those of the base, or none.
    atoms: Callable[[Expr], bool] | None = None
    #: The results of operations, by how their text begins.
    ranges: Mapping[str, Bounds] = MappingProxyType({})
    known: dict[Value, Expr] = field(default_factory=dict, init=False)
    #: Of variables, what they stand for; and of all values that were read their types. Those of the base come last.
    values: MutableMapping[Expr, Value] = field(default_factory=dict, init=False)
    types: MutableMapping[Value, str] = field(default_factory=dict, init=False)
    #: The values whose terms are made from the terms of operands, or are literals.
    computed: set[Value] = field(default_factory=set, init=False)
    #: Indices that were cast from integers of a width, and are a variable of that type.
    _cast_to_index: set[Value] = field(default_factory=set, init=False)
    _being_read: set[Value] = field(default_factory=set, init=False)
    _facts: dict[Block, list[Expr]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.base is not None:
            self.atoms = self.atoms or self.base.atoms
            self.values, self.types = ChainMap({}, self.base.values), ChainMap({}, self.base.types)

    def read(self, statements: Iterable[Statement]) -> None:
        """Read what statements compute, and the indices of loops, so that no later term is deep."""
        for statement in statements:
            if len(statement.results) == 1 and (type_ := _result_type(statement.normalised[0])):
                self.of(statement.results[0], type_)
            # those of a base are variables already
            if self.base is None:
                with suppress(NotReadError, ValueError, TypeError):
                    for loop in self.loops(statement):
                        self.of(loop.index, loop.type_)

    def of(self, value: Value, type_: str) -> Expr:
        """The term of a value of the given type; for ``i1`` a condition."""
        value = value.resolved
        if value not in self.known:
            if value in self._being_read:
                # as a loop whose bound is its own index, or a name that nothing defines
                raise NotReadError
            self._being_read.add(value)
            self.types[value] = type_
            try:
                self.known[value] = self._read(value, type_)
            finally:
                self._being_read.discard(value)
        if value in self._cast_to_index:
            # affine maps take indices alone: what is read of the integer is written as the index read last
            self.values[self.known[value]] = value
        return self.known[value]

    def type_of_variable(self, variable: Expr) -> str:
        """The type of what a variable stands for; of one that stands for an axis, that of its elements."""
        value = self.values.get(variable)
        return "i32" if value is None else self.types[value]

    def _read(self, value: Value, type_: str) -> Expr:
        low, high = limits(type_)
        if self.base is not None:
            known = self.base.of(value, type_)
            if value not in self.base.computed or (known.args and self.stops(value)):
                return self._variable(value, max(low, known.vmin), min(high, known.vmax), type_)
        try:
            term = self.result(value, type_) if value.is_result else None
            if term is not None and not (self.atoms and self.atoms(term)):
                self.computed.add(value)
                if self.base is not None and term.op == "var" and self.type_of_variable(term) != type_ == "index":
                    self._cast_to_index.add(value)
                return term
            least, most = self._range_of(value, type_) if term is None else (term.vmin, term.vmax)
            if low <= most and least <= high:
                low, high = max(low, least), min(high, most)
        except (NotReadError, ValueError, TypeError):
            # what cannot be read is a variable
            pass
        return self._variable(value, low, high, type_)

    def _variable(self, value: Value, low: int, high: int, type_: str) -> Expr:
        # named by its place among the values of its statement
        values = value.statement.normalised[1]
        place = values.index(value) if value in values else len(values) + int(value.name.partition("#")[2] or 0)
        found = var(f"v{value.statement.number}_{place}", low, high)
        term = found.ne(0) if is_condition(type_) else found
        self.values[found] = value
        return term

    def result(self, value: Value, type_: str) -> Expr | None:
        """The exact term of a result, None if it has no meaning; ``NotReadError`` if it may wrap, or has no value."""
        text, values = value.statement.normalised
        if found := _CONSTANT.fullmatch(text):
            if found[1] in ("true", "false"):
                return TRUE if found[1] == "true" else FALSE
            # an unsigned literal may be larger than its type holds
            number = int(found[1])
            return const(number) if fits(const(number), type_) and not is_condition(type_) else None
        if found := _BINARY.fullmatch(text):
            return self._of_two(found, values, type_)
        if found := COMPARISON.fullmatch(text):
            return compared(found[1], *(self.of(v, found[2]) for v in values[1:]))
        if found := _SELECT.fullmatch(text):
            condition = self.of(values[1], found[1] or "i1")
            return where(condition, self.of(values[2], found[2]), self.of(values[3], found[2]))
        if found := _CAST.fullmatch(text):
            return _cast(found[1], self.of(values[1], found[2]), found[2], found[3])
        if found := _MAKE_RANGE.fullmatch(text):
            first = int(found[2])
            place = axis(0, int(found[1]) - first)
            return place + first if first else place
        if found := SPREAD.fullmatch(text):
            return self._spread(found, values)
        if found := APPLY.fullmatch(text):
            terms = self.function(found[2], found[3], found[4], values)
            return reduce(maximum if found[1] == "max" else minimum, terms)
        return self._of_digits(value)

    def _of_two(self, found: re.Match[str], values: Sequence[Value], type_: str) -> Expr | None:
        x, y = (self.of(v, found["type"]) for v in values[1:])
        if is_condition(found["type"]):
            return make(_ON_CONDITIONS[found[1]], x, y) if found[1] in _ON_CONDITIONS else None
        term = _binary(found[1], x, y)
        low, high = limits(type_)
        if "nsw" in (found["promised"] or "") and term.vmin <= high and low <= term.vmax:
            # what wraps in spite of the promise may have any value
            return term
        return self._exact(term, (x, y), type_)

    def _spread(self, found: re.Match[str], values: Sequence[Value]) -> Expr | None:
        """The term of a value, or tensor, that is spread along axes."""
        term = self.of(values[1], found[3])
        if found[1] != "expand_dims":
            return term
        is_moved = all(axis_of(v) is not None or not shape_of(self.type_of_variable(v)) for v in variables([term]))
        return expanded(term, int(found[2])) if is_moved else None

    def _of_digits(self, value: Value) -> Expr | None:
        """The index that digits make, or a digit of an index; the first digit may exceed its size."""
        text, values = value.statement.normalised
        if found := _JOINED.fullmatch(text):
            digits = [self.operand(x, values) for x in split_list(found[1])]
            sizes = self._inner_sizes(found[2], len(digits), values)
            index = reduce(lambda x, pair: x * pair[0] + pair[1], zip(sizes, digits[1:], strict=True), digits[0])
            return self._exact(index, [*digits, *sizes], "index")
        if found := _DIGITS.fullmatch(text):
            index = self.of(values[1], "index")
            place = int(value.name.partition("#")[2] or 0)
            sizes = self._inner_sizes(found[1], len(split_list(found[2])), values)
            if place > len(sizes) or any(size.vmin <= 0 for size in sizes):
                raise NotReadError
            below = LinearArithmetic().simplify(reduce(lambda x, y: x * y, sizes[place:], const(1)))
            digit = index if below is const(1) else index // below
            return self._exact(digit % sizes[place - 1] if place else digit, [index, *sizes], "index")
        return None

    def _inner_sizes(self, text: str, count: int, values: Sequence[Value]) -> list[Expr]:
        """The sizes of all digits but the first, which need not be there."""
        sizes = [self.operand(x, values) for x in split_list(text)]
        if len(sizes) not in (count - 1, count):
            raise NotReadError
        return sizes[len(sizes) - count + 1 :]

    def _exact(self, term: Expr, operands: Sequence[Expr], type_: str) -> Expr:
        """``term``, if nothing that it computes from its operands may wrap."""
        for t in own_terms(term, operands):
            # the bounds of a normal form are tighter than those of a term
            if not fits(t, type_) and not fits(LinearArithmetic().simplify(t), type_):
                raise NotReadError
        return term

    def function(self, text: str, dims: str, symbols: str | None, values: Sequence[Value]) -> list[Expr]:
        """The results of a map or set at its operands; ``NotReadError`` if one may wrap."""
        function = AffineFunction.parse(self.module.aliases.get(text, text))
        operands = [[self.operand(name, values) for name in split_list(part or "")] for part in (dims, symbols)]
        return [
            self._exact(term, [x for part in operands for x in part], "index") for term in function.applied(*operands)
        ]

    def operand(self, text: str, values: Sequence[Value]) -> Expr:
        """An index, which may be written as a number."""
        if re.fullmatch(r"-?\d+", text):
            return const(int(text))
        if not re.fullmatch(r"%\d+", text):
            raise NotReadError
        return self.of(values[int(text[1:])], "index")

    def subscripts(self, statement: Statement) -> list[Expr]:
        """The subscripts of an affine load or store, none of another statement; ``NotReadError`` if one may wrap."""
        text, values = statement.normalised
        if not (found := _ACCESS.fullmatch(text)):
            return []
        bare = re.sub(r"symbol\((%\d+)\)", r"\1", found[1])
        places = sorted({int(n) for n in re.findall(r"%(\d+)", bare)})
        names = {f"x{n}": self.of(values[n], "index") for n in places}
        terms = [affine_term(part, names) for part in split_list(bare.replace("%", "x"))]
        return [self._exact(term, list(names.values()), "index") for term in terms]

    def _range_of(self, value: Value, type_: str) -> Bounds:
        """The range of a value that has no term."""
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


def compared(predicate: str, x: Expr, y: Expr) -> Expr:
    """The term of ``arith.cmpi``."""
    if predicate[0] == "u":
        _unsigned(x, y)
        predicate = f"s{predicate[1:]}"
    if predicate in _SWAPPED:
        return make(_SWAPPED[predicate], y, x)
    if predicate not in _SIGNED:
        raise NotReadError
    return make(_SIGNED[predicate], x, y)


def _cast(op: str, x: Expr, source: str, target: str) -> Expr:
    if is_condition(source):
        if op != "extui":
            raise NotReadError
        return where(x, 1, 0)
    if is_condition(target) or not fits(x, target):
        raise NotReadError
    if op in ("index_castui", "extui"):
        _unsigned(x)
    return x


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
