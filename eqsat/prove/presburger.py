"""Decisions by isl: conditions in linear integer arithmetic, with quotients by literals, as sets of integer points.

isl (Verdoolaege, ICMS 2010; through islpy, the extra ``check``) decides whether such a set is empty, whatever the
ranges. What is not linear (a product of two variables, a quotient by one) is a dimension of its own, with its bounds
alone: if no point satisfies the conditions then, none does. isl counts its operations, which bounds its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from time import monotonic
from typing import Any, cast

from eqsat.lang.expr import Expr
from eqsat.lang.ops import Lazy, is_finite
from eqsat.lang.traversal import topological
from eqsat.prove.boxes import FLOATING, Point, UndecidedError, confirmed, is_linear, refuse_missing

islpy: Any = Lazy("islpy")
#: Operations of isl in the first attempt, about a tenth of a second; each further one may take four times as many.
OPERATIONS = 20_000
#: Numbers are given to isl in pieces below this: its ``long`` may have 32 bits.
LIMB = 2**31
#: How much longer an attempt with four times as many operations may take.
LONGER = 16


def find_by_isl(conditions: Sequence[Expr], seconds: float) -> Point | None:
    """A point at which all ``conditions`` hold, or None if there is none.

    Raises ``UndecidedError`` if isl is not installed, would take longer than ``seconds``, or what is not linear, or of
    floating point, matters.
    """
    refuse_missing("islpy")
    deadline = monotonic() + seconds
    operations = OPERATIONS
    while True:
        started = monotonic()
        try:
            return _find(conditions, operations, deadline)
        except islpy.Error as error:
            if "operations" not in str(error):
                raise
        now = monotonic()
        if now + LONGER * (now - started) > deadline:
            raise UndecidedError(f"isl needs more than {operations} operations")
        operations *= 4


def _find(conditions: Sequence[Expr], operations: int, deadline: float) -> Point | None:
    sets = _Sets(conditions, operations, deadline)
    found = reduce(lambda left, condition: left.intersect(sets.encoded[condition]), conditions, sets.domain)
    if found.is_empty():
        return None
    point = found.sample_point()
    values = {t: point.get_coordinate_val(islpy.dim_type.set, at).to_python() for t, at in sets.dimensions.items()}
    return confirmed(conditions, {cast(str, t.value): value for t, value in values.items() if t.op == "var"})


class _Sets:
    """Conditions as sets, integers as piecewise quasi-affine functions of variables and terms that are not linear."""

    def __init__(self, conditions: Sequence[Expr], operations: int, deadline: float) -> None:
        context = islpy.Context()
        context.set_max_operations(operations)
        order = topological(conditions)
        if any(term.element for term in order):
            raise UndecidedError(FLOATING)
        self.dimensions = {term: at for at, term in enumerate([t for t in order if t.op == "var" or not is_linear(t)])}
        space = islpy.Space.set_alloc(context, 0, len(self.dimensions))
        self.local_space = islpy.LocalSpace.from_space(space)
        self.domain = islpy.Set.universe(space)
        self.encoded: dict[Expr, Any] = {}
        for term, at in self.dimensions.items():
            axis = self.encoded[term] = islpy.PwAff.var_on_domain(self.local_space, islpy.dim_type.set, at)
            if is_finite(term.vmin):
                self.domain = self.domain.intersect(axis.ge_set(self.literal(term.vmin)))
            if is_finite(term.vmax):
                self.domain = self.domain.intersect(axis.le_set(self.literal(term.vmax)))
        for term in order:
            if term not in self.encoded:
                # an operation on large numbers takes long
                if monotonic() > deadline:
                    raise UndecidedError("isl takes too long")
                # what the bounds of the variables say need not be said by every term: it is this that keeps terms small
                self.encoded[term] = self.encode(term).gist(self.domain)

    def value(self, number: int) -> Any:
        if -LIMB <= number < LIMB:
            return islpy.Val.int_from_si(self.local_space.get_ctx(), number)
        quotient, rest = divmod(number, LIMB)
        high = self.value(quotient)
        return high.mul(self.value(LIMB - 1)).add(high).add(self.value(rest))

    def literal(self, number: int) -> Any:
        return islpy.PwAff.from_aff(islpy.Aff.val_on_domain(self.local_space, self.value(number)))

    def encode(self, term: Expr) -> Any:
        if not term.args:
            number = self.literal(term.vmin)
            return number.ne_set(self.literal(0)) if term.is_bool else number
        args = [self.encoded[a] for a in term.args]
        match term.op:
            case "mul":
                # one operand is a literal
                at = term.args[0].op == "const"
                return args[at].scale_val(self.value(term.args[1 - at].vmin))
            case "floordiv":
                return self.quotient(args[0], term.args[1].vmin)
            case "mod":
                divisor = term.args[1].vmin
                return args[0].sub(self.quotient(args[0], divisor).scale_val(self.value(divisor)))
            case "where" if not term.is_bool:
                return args[0].indicator_function().cond(*args[1:])
            case "where":
                return _select(*args)
            case "eq" if term.args[0].is_bool:
                return _select(args[0], args[1], args[1].complement())
            case "ne" if term.args[0].is_bool:
                return _select(args[0], args[1].complement(), args[1])
        return getattr(args[0], (_ON_CONDITIONS if term.args[0].is_bool else _ON_NUMBERS)[term.op])(*args[1:])

    def quotient(self, x: Any, divisor: int) -> Any:
        return (x if divisor > 0 else x.neg()).scale_down_val(self.value(abs(divisor))).floor()


def _select(condition: Any, x: Any, y: Any) -> Any:
    return condition.intersect(x).union(condition.complement().intersect(y))


#: What isl calls the operators on conditions, and those on numbers.
_ON_CONDITIONS = {"not": "complement", "and": "intersect", "or": "union", "min": "intersect", "max": "union"}
_ON_NUMBERS = {
    **{op: op for op in ("add", "sub", "neg", "min", "max")},
    **{op: f"{op}_set" for op in ("lt", "le", "eq", "ne")},
}
