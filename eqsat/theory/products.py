"""Products over a range in closed form: powers, shifts, and what is 1 but for a part of the range.

The product of two forms is in :mod:`eqsat.theory.quotients`.

``prod(x, r, 0, 3)`` is ``x*x*x``; ``prod(where(r < n, x, 1), r, 0, 8)`` is ``prod(x, r, 0, min(n, 8))``.
"""

from __future__ import annotations

from eqsat.lang.expr import Expr, const, instantiate, make
from eqsat.lang.ops import MAX_SHIFT
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import chain_members
from eqsat.theory.forms import ZERO, LinearForm, atom_form, common_factors, factors, number, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.ranges import Range, Reducer, chosen, equated, in_range, selected, selection_in

_ONE = number(1)


class ProductOver(Reducer):
    """Products over a range."""

    def of(self, body: LinearForm) -> LinearForm:
        if (found := self._of_selection(body)) is not None:
            return found
        trips = self.trip_count()
        if trips.terms or trips.constant > LIMITS.exponent:
            return self._of_bits(body, trips) or self._of_twos(body, trips) or self.residual("prod_over", body)
        exponent = trips.constant
        if self.is_free(body) and _has_power(body, exponent):
            return self._power(body, exponent)
        return self._without_shared_factors(body, exponent)

    def _without_shared_factors(self, body: LinearForm, exponent: int) -> LinearForm:
        """A product over ``exponent`` values, after the powers of factors that all addends share have left it."""
        theory = self.theory
        content = body.common_factor()
        shared = common_factors([factors(a) for a in body.terms]) if not body.constant else []
        outside = [p for p in shared if self.is_free(p) and _has_power(theory.inner(p), exponent)]
        total = number(content**exponent)
        for part in outside:
            total = theory.times(total, self._power(theory.inner(part), exponent))
        return theory.times(total, self.residual("prod_over", body.divided_by(outside, content)))

    def _power(self, base: LinearForm, exponent: int) -> LinearForm:
        total = _ONE
        for _ in range(exponent):
            total = self.theory.times(total, base)
        return total

    def _of_bits(self, body: LinearForm, trips: LinearForm) -> LinearForm | None:
        """A product over any range of one value that is ``0`` or ``1``, or of ``-1``."""
        least, greatest = self.theory.bounds(body)
        if least >= 0 and greatest <= 1 and self.is_free(body):
            return selected(self.theory, self.theory.equal_zero(trips), _ONE, body)
        if body == number(-1):
            return self.theory.remainder(trips, number(2)).times(-2).shifted(1)
        return None

    def _of_twos(self, body: LinearForm, trips: LinearForm) -> LinearForm | None:
        """A power of two as often as ``trips`` says, if that can be a shift: ``prod(4, r, 0, n)`` is ``1 << n*2``."""
        bits = body.constant.bit_length() - 1
        if body.terms or bits < 1 or body.constant != 1 << bits:
            return None
        amount = trips.times(bits)
        if self.theory.bounds(amount)[1] >= MAX_SHIFT:
            # a machine integer holds no more than 2**62
            return None
        return self.theory.form(make("shl", const(1), self._bounded(amount)))

    def _of_selection(self, body: LinearForm) -> LinearForm | None:
        """A product of ``where(c, x, 1)`` where ``c`` bounds the index, or of zeros and ones."""
        theory = self.theory
        if (selection := selection_in(body)) is None:
            return None
        condition, *branches = selection
        x, y = [theory.inner(arg) for arg in branches]
        if {x, y} == {ZERO, _ONE}:
            return self._of_zeros(condition, x == ZERO)
        if x == _ONE:
            condition, x, y = theory.negate(condition), y, x
        if y != _ONE:
            return self._of_branches(condition, x, y)
        condition, x = self._merged(condition, x)
        if (value := equated(theory, self.index, condition)) is not None:
            return self._at_only(value, condition, x)
        if (value := equated(theory, self.index, theory.negate(condition))) is not None and self.is_free(x):
            return self._but_one(value, condition, x)
        return self.over_part("prod_over", condition, x, y)

    def _of_branches(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """A product of ``where(condition, x, y)`` as those of ``x`` and of ``y``, if neither needs a loop."""
        found = _ONE
        for branches in ((x, _ONE), (_ONE, y)):
            part = self._of_selection(atom_form(make("where", condition, *map(to_expr, branches))))
            if part is None or has_reductions(part.terms):
                return None
            found = self.theory.times(found, part)
        return found

    def _but_one(self, value: LinearForm, condition: Expr, x: LinearForm) -> LinearForm:
        """``x`` for each index but ``value``, if ``condition`` fails there and that is in the range."""
        theory, over = self.theory, self.over
        fails = theory.negate(theory.condition(instantiate(condition, self.index, to_expr(value))))
        there = theory.junction("and", [*in_range(theory, over, value), fails])
        shorter = Range(self.index, over.low, over.high.shifted(-1))
        less, all_of_them = [theory.form(part.reduction("prod_over", to_expr(x))) for part in (shorter, over)]
        return selected(theory, there, less, all_of_them)

    def _merged(self, condition: Expr, x: LinearForm) -> tuple[Expr, LinearForm]:
        """The condition and the branch of ``where(condition, x, 1)``; ``where(d, y, 1)`` as ``x`` adds ``d``."""
        theory = self.theory
        while (inner := selection_in(x)) is not None:
            also, *branches = inner
            value, other = [theory.inner(arg) for arg in branches]
            if value == _ONE:
                also, value, other = theory.negate(also), other, value
            if other != _ONE:
                break
            condition, x = theory.junction("and", [condition, also]), value
        return condition, x

    def _of_zeros(self, condition: Expr, holds: bool) -> LinearForm | None:
        """A product that is 0 where a condition holds and 1 elsewhere, or if not ``holds`` the other way round."""
        theory = self.theory
        zero = condition if holds else theory.negate(condition)
        op = "or" if zero.op == "or" else "and"
        members = chain_members(zero, op)
        if same := [member for member in members if self.is_free(member)]:
            varying = theory.junction(op, [member for member in members if member not in same])
            there = self.of(chosen(theory, varying, const(0), const(1)))
            ends = (there, _ONE) if op == "and" else (self.of(ZERO), there)
            return selected(theory, theory.junction(op, same), *ends)
        if (holding := self.holding(condition)) is None:
            return None
        zeros = holding if holds else self.trip_count().plus(holding, -1)
        return selected(theory, theory.equal_zero(zeros), _ONE, ZERO)

    def _at_only(self, value: LinearForm, condition: Expr, x: LinearForm) -> LinearForm:
        """``x`` where the index is ``value``, if ``condition`` holds there and that is in the range; else 1."""
        asked, there = [instantiate(t, self.index, to_expr(value)) for t in (condition, to_expr(x))]
        found = self.theory.junction("and", [*in_range(self.theory, self.over, value), self.theory.condition(asked)])
        return chosen(self.theory, found, there, to_expr(_ONE))


def _has_power(base: LinearForm, exponent: int) -> bool:
    """Whether the power of a form is multiplied out."""
    return exponent <= LIMITS.sum_exponent or base.addends() < 2
