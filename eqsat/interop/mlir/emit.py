"""Terms as MLIR's ``arith`` operations.

Every operation computes a value that fits its type, so nothing wraps: a term that does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from eqsat.extract.cost import CostModel, is_power_of_two
from eqsat.interop.mlir.tensors import axis, axis_of, element_of, is_condition, least_type, shape_of, typed
from eqsat.interop.mlir.terms import ON_INTEGERS, NotReadError, Terms, fits, limits
from eqsat.interop.mlir.text import Statement, Value
from eqsat.lang.expr import TRUE, Expr, const, make
from eqsat.lang.ops import COMPARISONS, FLOORS
from eqsat.lang.terms import one_of_two
from eqsat.lang.traversal import topological_until, variables

#: The operations that read the operands of a term as they are: of integers, and of conditions.
_ON_INTEGERS = {op: name for name, op in ON_INTEGERS.items() if not name.endswith("ui")} | {
    "shl": "shli",
    "shr": "shrsi",
}
_ON_CONDITIONS = {"and": "andi", "or": "ori", "min": "andi", "max": "ori"}
_PREDICATES = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}
#: A remainder that no operation computes: from the operands and the quotient.
_REMAINDER = "remainder"
#: What a change of type costs.
_CAST = 1

#: A term, and the type of its value.
Typed = tuple[Expr, str]


@dataclass
class Emitted:
    """New operations."""

    #: Their text.
    lines: list[list[str | Value]] = field(default_factory=list)
    #: Their operands that are not new, once for each time that they are read.
    used: list[Value] = field(default_factory=list)
    #: What they cost.
    price: int = 0
    #: The value that is used instead of new operations.
    same_as: Value | None = None


@dataclass(eq=False)
class Emitter:
    """Writes operations in the place of one statement after the other; later ones read what earlier ones computed.

    New values have no name yet. ``available`` returns a value of a term and a type that a statement may read, if there
    is one; ``visible`` says whether a statement may read a value.
    """

    terms: Terms
    available: Callable[[Expr, str, Statement], Value | None]
    visible: Callable[[Value, Statement], bool]
    model: CostModel
    made: dict[Typed, Value] = field(default_factory=dict)
    fresh: set[Value] = field(default_factory=set)

    def emit(self, term: Expr, result: Value, type_: str) -> Emitted:
        """Operations that give ``result`` the value of ``term``; ``NotReadError`` if there are none."""
        self.place, self.out = result.statement, Emitted()
        wanted = term, type_
        for each in topological_until([wanted], lambda each: self._have(*each) is not None, self._checked_operands):
            self.made[each] = self._value(*each, result if each == wanted else None)
        found = self._have(term, type_)
        if found is not result:
            self.out.same_as = found
        elif not self.out.lines:
            raise NotReadError
        else:
            self.fresh.add(result)
        return self.out

    def _have(self, term: Expr, type_: str) -> Value | None:
        if found := self.made.get((term, type_)):
            return found
        condition, holds = self._condition(term)
        value = self.terms.values.get(condition if condition is not None and holds else term)
        if value is not None and self.terms.types[value] == type_:
            if not self.visible(value, self.place):
                raise NotReadError
            return value
        return self.available(term, type_, self.place)

    def _condition(self, term: Expr) -> tuple[Expr | None, bool]:
        """The variable for a condition of the program that ``term`` says or, if the flag is false, denies; or None."""
        variable, holds = one_of_two(term)
        value = self.terms.values.get(variable) if variable is not None else None
        return (variable if value is not None and is_condition(self.terms.types[value]) else None), holds

    def _negated(self, term: Expr) -> Expr | None:
        """The condition that ``term`` denies, if there is one."""
        variable, holds = self._condition(term)
        return None if variable is None or holds else variable.ne(0)

    def _checked_operands(self, wanted: Typed) -> list[Typed]:
        """What the operations for a node read, if its values are of the type."""
        node, type_ = wanted
        if not is_condition(type_) and not fits(node, type_):
            raise NotReadError
        return self._operands(node, type_)

    def _operands(self, node: Expr, type_: str) -> list[Typed]:
        """What the operations for a node read, in their order."""
        if (least := least_type(node, type_, self.terms.type_of_variable)) != type_:
            return [(node, least)]
        if (position := axis_of(node)) is not None:
            return self._narrower(node, position, type_)
        return self._operation(node, type_)[1]

    def _operation(self, node: Expr, type_: str) -> tuple[str, list[Typed]]:
        """The name of the operation that computes a node, if there is one, and what it reads."""
        operands = [(a, type_) for a in node.args]
        if (opposite := self._negated(node)) is not None:
            return "xori", [(opposite, type_), (TRUE, type_)]
        if node.op in COMPARISONS:
            compared = typed(self._common(node), shape_of(type_))
            return f"cmpi {_PREDICATES[node.op]},", [(a, compared) for a in node.args]
        if node.op == "where":
            condition, x, y = node.args
            if (opposite := self._negated(condition)) is not None:
                condition, x, y = opposite, y, x
            return "select", [(condition, typed("i1", shape_of(type_))), (x, type_), (y, type_)]
        if node.op == "neg":
            return "subi", [(const(0), type_), *operands]
        if node.op == "not":
            return "xori", [*operands, (TRUE, type_)]
        if node.op in FLOORS:
            return self._floor(node, operands)
        return (_ON_CONDITIONS if is_condition(type_) else _ON_INTEGERS).get(node.op, ""), operands

    def _floor(self, node: Expr, operands: list[Typed]) -> tuple[str, list[Typed]]:
        """The operation for a quotient that is rounded down, or for its remainder."""
        (x, type_), (y, _) = operands
        is_quotient = node.op == "floordiv"
        if x.vmin < 0 and y.op == "const" and is_power_of_two(y.vmin):
            if is_quotient:
                # a shift by all bits or more has no value; one by all but the sign leaves the sign, as it would
                most = limits(type_)[1].bit_length()
                return "shrsi", [(x, type_), (const(min(y.vmin.bit_length() - 1, most)), type_)]
            return "andi", [(x, type_), (const(y.vmin - 1), type_)]
        if x.vmin >= 0 and y.vmin > 0:
            return "divui" if is_quotient else "remui", operands
        if is_quotient:
            return "floordivsi", operands
        return (_REMAINDER, [*operands, (make("floordiv", x, y), type_)]) if x.vmin < 0 else ("", operands)

    def _narrower(self, node: Expr, position: int, type_: str) -> list[Typed]:
        """What the places along an axis are made from: those in ``i32``, and these from those with one axis less."""
        shape = shape_of(type_)
        if element_of(type_) != "i32":
            return [(node, typed("i32", shape))]
        if len(shape) == 1:
            return []
        dropped = 1 if position == 0 else 0
        rest = shape[:dropped] + shape[dropped + 1 :]
        return [(axis(position - (dropped < position), shape[position]), typed("i32", rest))]

    def _common(self, comparison: Expr) -> str:
        """The type of elements in which the operands of a comparison are computed: the widest of their variables."""
        if comparison.args[0].is_bool:
            return "i1"
        types = {element_of(self.terms.type_of_variable(v)) for v in variables([comparison])} - {"i1"}
        if not types or "index" in types:
            return "index"
        return max(types, key=lambda name: int(name[1:]))

    def _value(self, node: Expr, type_: str, result: Value | None) -> Value:
        """The value of a node whose operands have been computed."""
        if not node.args and node.op != "var":
            text = str(bool(node.vmin)).lower() if node.is_bool else str(node.vmin)
            text = f"dense<{text}>" if shape_of(type_) else text
            return self._line(result, "constant", (), text if type_ == "i1" else f"{text} : {type_}")
        if least_type(node, type_, self.terms.type_of_variable) != type_ or axis_of(node) is not None:
            return self._spread(node, type_, result)
        if node.op == "var":
            return self._cast(node, type_, result)
        name, needed = self._operation(node, type_)
        if not name:
            raise NotReadError
        operands = [self._read(a, t) for a, t in needed]
        self.out.price += self.model.price(node.op, [(a.vmin, a.vmax) for a in node.args], (node.vmin, node.vmax))
        if name == _REMAINDER:
            x, y, quotient = operands
            # the product may wrap, and the difference wraps back
            product = self._line(None, "muli", [quotient, y], f" : {type_}")
            return self._line(result, "subi", [x, product], f" : {type_}")
        suffix = needed[0][1] if name.startswith("cmpi") else type_
        if name == "select" and shape_of(type_):
            suffix = f"{needed[0][1]}, {type_}"
        return self._line(result, name, operands, f" : {suffix}")

    def _read(self, term: Expr, type_: str) -> Value:
        if (value := self._have(term, type_)) is None:
            raise NotReadError
        return value

    def _spread(self, node: Expr, type_: str, result: Value | None) -> Value:
        """A value in a larger type, or the places along an axis."""
        self.out.price += _CAST
        if not (operands := self._operands(node, type_)):
            numbers = f"{{end = {shape_of(type_)[0]} : i32, start = 0 : i32}} : {type_}"
            return self._line(result, "tt.make_range", (), numbers)
        [(term, source)] = operands
        if element_of(source) != element_of(type_):
            name, suffix = _resized(source, type_), f" : {source} to {type_}"
        else:
            ranks = len(shape_of(source)), len(shape_of(type_))
            name = "tt.splat" if not ranks[0] else "tt.broadcast" if ranks[0] == ranks[1] else "tt.expand_dims"
            attribute = f" {{axis = {1 if axis_of(node) == 0 else 0} : i32}}" if name == "tt.expand_dims" else ""
            suffix = f"{attribute} : {source} -> {type_}"
        return self._line(result, name, [self._read(term, source)], suffix)

    def _cast(self, node: Expr, type_: str, result: Value | None) -> Value:
        if (value := self.terms.values.get(node)) is None:
            raise NotReadError
        source = self.terms.types[value]
        if not self.visible(value, self.place) or is_condition(type_) or shape_of(source) != shape_of(type_):
            raise NotReadError
        if is_condition(source):
            name = "index_castui" if element_of(type_) == "index" else "extui"
        else:
            name = _resized(source, type_)
        self.out.price += _CAST
        return self._line(result, name, [value], f" : {source} to {type_}")

    def _line(self, result: Value | None, name: str, operands: Iterable[Value], suffix: str) -> Value:
        """One more operation; its result is a new value unless there is one."""
        if result is None:
            result = Value("", self.place.block, self.place)
            self.fresh.add(result)
        pieces: list[str | Value] = [self.place.indentation, result, f" = {name if '.' in name else f'arith.{name}'} "]
        for position, operand in enumerate(operands):
            pieces += [", "] * (position > 0) + [operand]
            if operand not in self.fresh:
                self.out.used.append(operand)
        self.out.lines.append([*pieces, f"{suffix}\n"])
        return result


def _resized(source: str, target: str) -> str:
    """The operation between integers of two widths, or of ``index``."""
    if "index" in (element_of(source), element_of(target)):
        return "index_cast"
    bits, wanted = (int(element_of(type_)[1:]) for type_ in (source, target))
    return "extsi" if bits < wanted else "trunci"
