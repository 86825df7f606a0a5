"""Largest and smallest values over a range in closed form: those at an end of the range, or of a branch of a selection.

``max_over(i*3 + x, i, 0, n)`` is ``n*3 + x - 3`` for a positive ``n``. The closed forms hold for ranges that are not
empty; :meth:`ExtremeOver.of` distinguishes the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Flag
from functools import partial, reduce
from math import prod
from operator import or_

from eqsat.lang.expr import TRUE, Expr, instantiate, make
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Answers, kept
from eqsat.theory.forms import LinearForm, atom_form, factors, literal_divisor, number, product_form, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.ranges import (
    Reducer,
    chosen,
    equated,
    in_range,
    is_decided_by_some,
    new_range,
    selected,
    selection_in,
    solved_for,
)

_OPPOSITE = {"max_over": "min_over", "min_over": "max_over"}


class Trend(Flag):
    """In which directions a value may change as the index grows; that of a sum is the union of its addends'."""

    STAYS = 0
    RISES = 1
    FALLS = 2
    UNKNOWN = 3

    def times(self, sign: int) -> Trend:
        """That of a multiple by a factor without the index, with this sign; 0 is an unknown sign."""
        if sign > 0 or self in (Trend.STAYS, Trend.UNKNOWN):
            return self
        return self ^ Trend.UNKNOWN if sign else Trend.UNKNOWN


@dataclass(frozen=True)
class ExtremeOver(Reducer):
    """Largest values over a range (``max_over``), or smallest ones (``min_over``)."""

    op: str
    _trends: Answers = field(default_factory=partial(defaultdict, dict), init=False, compare=False)

    def of(self, body: LinearForm) -> LinearForm:
        full = self.theory.at_least_zero(self.over.extent.shifted(-1))
        if full is TRUE:
            return self._of_some(body)
        if (inside := self.theory.assuming(full)) is not None:
            found = replace(self, theory=inside)._of_some(body)
            if self.is_free(found) and not any(a.op in REDUCTIONS for a in found.terms):
                return selected(self.theory, full, found, number(REDUCTIONS[self.op].identity))
        if cases := self._operands(body):
            return self._extreme([self.of(case) for case in cases])
        return self.residual(self.op, body)

    def _of_some(self, body: LinearForm) -> LinearForm:
        """As :meth:`of`, for a range that is not empty: addends and factors without the index leave the reduction."""
        outside = LinearForm({a: c for a, c in body.terms.items() if self.is_free(a)}, body.constant)
        inside = body.plus(outside, -1)
        if not inside.terms:
            return outside
        scale = inside.content() * self._sign_of(inside)
        factor, sign, inside = self._factor_with_sign(inside.divided(scale))
        opposite = (scale < 0) != (sign < 0)
        found = (replace(self, op=_OPPOSITE[self.op]) if opposite else self)._of_moving(inside)
        return outside.plus(self.theory.times(factor, found), scale)

    def _of_moving(self, body: LinearForm) -> LinearForm:
        """As :meth:`_of_some`, for a body that changes with the index in every addend."""
        trend, last = self._trend(body), self.over.high.shifted(-1)
        methods = (self._of_selection, self._of_exception, self._of_parts, self._of_windows)
        if (found := next((f for method in methods if (f := method(body)) is not None), None)) is not None:
            return found
        if trend is not Trend.UNKNOWN:
            return self._at(body, last if (trend is Trend.RISES) == (self.op == "max_over") else self.over.low)
        if self._is_affine(body):
            return self._extreme([self._at(body, end) for end in (self.over.low, last)])
        if cases := self._operands(body):
            return self._extreme([self._of_some(case) for case in cases])
        return self.residual(self.op, body)

    def _of_windows(self, body: LinearForm) -> LinearForm | None:
        """The largest of largest values over windows that together are one range: that over the range.

        For an ``x`` without ``i``, ``max_over(max_over(x, j, w, i + c), i, u, v)`` is ``max_over(x, j, w, v - 1 + c)``;
        windows of which both ends move must leave no gap. The index of a window may begin at 0 each time.
        """
        theory, inner = self.theory, body.single()
        if inner is None or inner.op != self.op:
            return None
        value, index, *ends = inner.args
        low, high = map(theory.inner, ends)
        moved = not self.is_free(value)
        if moved:
            # each value of the window is moved by as much as the outer index moves it
            low, high = [end.plus(atom_form(self.index)) for end in (low, high)]
        steps = [end.terms.get(self.index, 0) for end in (low, high)]
        if not any(steps) or not self.is_free(*[end.without(self.index) for end in (low, high)]):
            return None
        first, last = self.over.low, self.over.high.shifted(-1)
        start = self._at(low, last if steps[0] < 0 else first)
        end = self._at(high, first if steps[1] < 0 else last)
        over = new_range(theory, "#window", start, end)
        place = atom_form(over.index).plus(atom_form(self.index), -1 if moved else 0)
        value = to_expr(theory.form(instantiate(value, index, to_expr(place))))
        if not self.is_free(value):
            return None
        length = high.plus(low, -1)
        if all(steps):
            # the next window begins before this one ends, or the one before it does
            is_whole = steps[0] == steps[1] and theory.is_never_negative(length.shifted(-abs(steps[0])))
        else:
            # an empty window decides nothing, or there is none
            lengths = [self._at(length, at).shifted(-1) for at in (first, last)]
            decides_nothing = is_decided_by_some(theory, self.op, theory.form(value))
            is_whole = decides_nothing or all(map(theory.is_never_negative, lengths))
        return theory.form(over.reduction(self.op, value)) if is_whole else None

    def _operands(self, body: LinearForm) -> list[LinearForm]:
        """The values of which ``body`` is the largest (or smallest), each of which may be reduced alone; or none."""
        minimum = _only_minimum(body)
        if minimum is None or (body.terms[minimum] < 0) != (self.op == "max_over"):
            return []
        return self.theory.cases(body, minimum)

    def _sign_of(self, body: LinearForm) -> int:
        """The sign that leaves the reduction: that of all operands of an extreme, else of a first term."""
        minimum = _only_minimum(body)
        operands = [] if minimum is None else self.theory.cases(body, minimum)
        signs = {operand.sign() for operand in operands if operand.terms}
        return signs.pop() if len(signs) == 1 else body.sign()

    def _at(self, body: LinearForm, value: LinearForm) -> LinearForm:
        """``body`` where the index is ``value``, which must lie in the range."""
        return self.theory.form(instantiate(to_expr(body), self.index, to_expr(value)))

    def _extreme(self, values: list[LinearForm]) -> LinearForm:
        """The largest or smallest of some values."""
        return self.theory.extreme(self.op.removesuffix("_over"), values)

    def _factor_with_sign(self, body: LinearForm) -> tuple[LinearForm, int, LinearForm]:
        """``body`` as a factor without the index, the sign of this factor, and the other factors."""
        if len(body.terms) == 1:
            outside, inside = self._apart(next(iter(body.terms)))
            if outside and (sign := self._sign(outside)):
                return product_form(outside), sign, product_form(inside)
        return number(1), 1, body

    def _of_selection(self, body: LinearForm) -> LinearForm | None:
        """An extreme of ``where(c, x, y)``, if one branch is free of the index, over a range that is not empty."""
        theory = self.theory
        if (selection := selection_in(body)) is None:
            return None
        condition, *branches = selection
        if self.is_free(condition):
            return chosen(theory, condition, *[self.over.reduction(self.op, branch) for branch in branches])
        x, y = [theory.inner(arg) for arg in branches]
        if not self.is_free(y):
            condition, x, y = theory.negate(condition), y, x
        if not self.is_free(y):
            return None
        gap = x.plus(y, -1).times(1 if self.op == "max_over" else -1)
        if condition.op == "or" and theory.is_never_negative(gap):
            return self._of_alternatives(condition, x, y)
        if (holding := self.holding(condition)) is None:
            return None
        somewhere = theory.at_least_zero(holding.shifted(-1))
        if (there := theory.assuming(somewhere)) is None:
            return y
        inside = replace(self, theory=there)
        best = x if self.is_free(x) else inside.over_part(self.op, condition, x, y)
        if best is None:
            return None
        if theory.is_never_negative(gap):
            return selected(theory, somewhere, best, y)
        if has_reductions(best.terms):
            return None
        everywhere = theory.equal_zero(self.trip_count().plus(holding, -1))
        both = inside._extreme([best, y])
        return selected(theory, somewhere, selected(theory, everywhere, best, both), y)

    def _of_alternatives(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """An extreme of ``where(p or q, x, y)`` if ``x`` is never worse than ``y``: one by ``p`` and one by ``q``."""
        parts = [atom_form(make("where", p, to_expr(x), to_expr(y))) for p in chain_members(condition, "or")]
        found = [self._of_selection(part) for part in parts]
        if any(part is None or has_reductions(part.terms) for part in found):
            return None
        return self._extreme([part for part in found if part is not None])

    def _of_parts(self, body: LinearForm) -> LinearForm | None:
        """An extreme of ``where(index < end, x, y)`` over a range that is not empty: that of both parts of the range.

        Of ``where(r < n, r, -r)`` over ``[0, 9)`` it is ``where(n < 1, 0, min(n, 9) - 1)``.
        """
        theory, over = self.theory, self.over
        if (selection := selection_in(body)) is None:
            return None
        condition, x, y = selection
        solved = solved_for(theory, self.index, condition)
        if solved is None or solved.rest is not TRUE or (solved.first is None) == (solved.beyond is None):
            return None
        if solved.beyond is None:
            x, y = y, x
        end = solved.first or solved.beyond
        assert end is not None
        some = [theory.at_least_zero(gap.shifted(-1)) for gap in (end.plus(over.low, -1), over.high.plus(end, -1))]
        parts = self.part(None, end), self.part(end, None)
        found: list[LinearForm] = []
        for condition, part, value in zip(some, parts, (x, y), strict=True):
            if (there := theory.assuming(condition)) is None:
                continue
            best = there.form(part.reduction(self.op, value))
            if has_reductions(best.terms):
                return None
            found.append(best)
        if len(found) == 1:
            return found[0]
        both = self._extreme(found)
        return selected(theory, some[0], selected(theory, some[1], both, found[0]), found[1])

    def _of_exception(self, body: LinearForm) -> LinearForm | None:
        """An extreme of ``where(index == value and ..., x, y)`` by a ``y`` that rises or falls.

        The range is not empty. If ``value`` lies in it, that is the extreme of what the body is there and of ``y`` at
        the other values: ``y`` at the end where it is best, or next to that end if ``value`` is the end.
        """
        theory = self.theory
        if (selection := selection_in(body)) is None:
            return None
        condition, x, y = selection
        if (value := equated(theory, self.index, condition)) is None:
            x, y = y, x
            value = equated(theory, self.index, theory.negate(condition))
        usual = theory.inner(y)
        trend = self._trend(usual)
        if value is None or trend is Trend.UNKNOWN:
            return None
        several = theory.at_least_zero(self.over.extent.shifted(-2))
        if (many := theory.assuming(several)) is None:
            return self._at(body, self.over.low)
        rises = (trend is Trend.RISES) == (self.op == "max_over")
        end, inward = (self.over.high.shifted(-1), -1) if rises else (self.over.low, 1)
        best, second = [self._at(usual, at) for at in (end, end.shifted(inward))]
        others = selected(many, many.equal_zero(value.plus(end, -1)), second, best)
        inside = many.junction("and", in_range(many, self.over, value))
        extreme = replace(self, theory=many)._extreme([self._at(body, value), others])
        return selected(theory, several, selected(many, inside, extreme, best), self._at(body, self.over.low))

    def _is_affine(self, body: LinearForm) -> bool:
        """Whether each term that depends on the index has it as a factor, once, and not in other factors."""
        moving = [[p for p in factors(atom) if not self.is_free(p)] for atom in body.terms]
        return all(parts in ([], [self.index]) for parts in moving)

    def _trend(self, body: LinearForm) -> Trend:
        theory = self.theory
        if body.has_minimum():
            if (minimum := theory.split_minimum(body, LIMITS.nested_operands)) is None:
                return Trend.UNKNOWN
            return _union(self._trend(case) for case in theory.cases(body, minimum))
        return _union(self._trend_of(atom).times(coefficient) for atom, coefficient in body.terms.items())

    @kept("_trends")
    def _trend_of(self, atom: Expr) -> Trend:
        """As :meth:`_trend`, for an atom."""
        if atom is self.index:
            return Trend.RISES
        if self.is_free(atom):
            return Trend.STAYS
        if literal_divisor(atom) > 0:
            return self._trend(self.theory.inner(atom.args[0]))
        if atom.op == "mul":
            outside, moving = self._apart(atom)
            if len(moving) > 1 and any(self.theory.range(part)[0] < 0 for part in moving):
                # of two negative factors that rise the product falls
                return Trend.UNKNOWN
            return _union(map(self._trend_of, moving)).times(self._sign(outside))
        return Trend.UNKNOWN

    def _apart(self, product: Expr) -> tuple[list[Expr], list[Expr]]:
        """The factors of a product without the index, and those with it."""
        parts = factors(product)
        return [part for part in parts if self.is_free(part)], [part for part in parts if not self.is_free(part)]

    def _sign(self, parts: Iterable[Expr]) -> int:
        """1 if the signs of its factors tell that a product is never negative, -1 if never positive; else 0."""
        ends = map(self.theory.range, parts)
        return prod([1 if low >= 0 else -1 if high <= 0 else 0 for low, high in ends])


def _union(trends: Iterable[Trend]) -> Trend:
    return reduce(or_, trends, Trend.STAYS)


def _only_minimum(form: LinearForm) -> Expr | None:
    """The minimum in a form that has one: a sum of several would have each combination of their operands."""
    minima = [atom for atom in form.terms if atom.op == "min"]
    return minima[0] if len(minima) == 1 else None
