"""What MLIR's operations on integers mean: values as terms.

The term of a value is exact: arithmetic that may wrap, divide by zero, or read a negative number as an unsigned one
has none, and its value is a variable with the range of its type; so is a value of any operation that is not known here.
``index`` has 64 bits. An operation with attributes of its own is not known.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from eqsat.interop.affine import AffineFunction, affine_term
from eqsat.interop.mlir.tensors import (
    TYPE,
    axis,
    axis_of,
    element_of,
    expanded,
    is_condition,
    is_tensor,
    shape_of,
    typed,
)
from eqsat.interop.mlir.text import Module, Statement, Value
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.text import split_list
from eqsat.lang.traversal import reached, topological, variables
from eqsat.theory.linear import LinearArithmetic

_BINARY = re.compile(rf"%0 = arith\.(\w+) %1, %2(?: overflow<(?P<promised>[\w, ]+)>)? : (?P<type>{TYPE})")
_CONSTANT = re.compile(rf"%0 = arith\.constant (?:(?:dense<)?(-?\d+|true|false)>?)(?: : {TYPE})?")
COMPARISON = re.compile(rf"%0 = arith\.cmpi (\w+), %1, %2 : {TYPE}")
_SELECT = re.compile(rf"%0 = arith\.select %1, %2, %3 : (?:{TYPE}, )?{TYPE}")
#: Triton's tensor of numbers in order, and the operations that give a value another shape.
_RANGE = re.compile(rf"%0 = tt\.make_range {{end = (\d+) : i32, start = (\d+) : i32}} : {TYPE}")
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
    """The term of ``arith.op``."""
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


@dataclass(eq=False)
class Terms:
    """The terms of the values of a module.

    With a ``base``, which has terms of all values, the bounds of variables are those of its terms. A value for which
    ``stops`` is true is a variable, though its operation is known.
    """

    module: Module
    base: Terms | None = None
    stops: Callable[[Value], bool] = lambda value: False
    #: Which terms are kept together, each as a variable; if not given those of the base, or none.
    atoms: Callable[[Expr], bool] | None = None
    known: dict[Value, Expr] = field(default_factory=dict, init=False)
    #: Of variables, what they stand for; and of all values that were read their types. Those of the base come last.
    values: MutableMapping[Expr, Value] = field(default_factory=dict, init=False)
    types: MutableMapping[Value, str] = field(default_factory=dict, init=False)
    #: The values whose terms are made from the terms of operands, or are literals.
    computed: set[Value] = field(default_factory=set, init=False)
    _being_read: set[Value] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        if self.base is not None:
            self.atoms = self.atoms or self.base.atoms
            self.values, self.types = ChainMap({}, self.base.values), ChainMap({}, self.base.types)

    def read(self, statements: Iterable[Statement]) -> None:
        """Read what statements compute, and the indices of loops, so that no later term is deep."""
        for statement in statements:
            if len(statement.results) == 1 and (type_ := _result_type(statement.normalised[0])):
                self.of(statement.results[0], type_)

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
                return term
            least, most = self.range_of(value, type_) if term is None else (term.vmin, term.vmax)
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

    def range_of(self, value: Value, type_: str) -> tuple[int, int]:
        """The range of a value that has no term."""
        return limits(type_)

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
        if found := _RANGE.fullmatch(text):
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
        """The term of an operation on two values."""
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
        is_moved = all(axis_of(v) is not None or not is_tensor(self.type_of_variable(v)) for v in variables([term]))
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
