"""Sums over a range in closed form.

Each addend is summed alone, and factors without the index leave the sum. A power of the index, a selection, an extreme
or a quotient by a literal may have a closed form: :meth:`SumOver.of_product` tries a method for each, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, gcd, lcm

from eqsat.lang.expr import TRUE, Expr, const, instantiate, make
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import begun
from eqsat.theory.forms import (
    ZERO,
    LinearForm,
    atom_form,
    factors,
    literal_divisor,
    number,
    product_form,
    to_expr,
    without_one,
)
from eqsat.theory.limits import LIMITS
from eqsat.theory.periods import constant_remainder
from eqsat.theory.ranges import Range, Reducer, chosen, equated, in_range, selected, solved_for, with_plain_condition


class SumOver(Reducer):
    """Sums over a range."""

    def of(self, body: LinearForm) -> LinearForm:
        body = self._with_clamps_in_order(body)
        outside = LinearForm({a: c for a, c in body.terms.items() if self.is_free(a)}, body.constant)
        total = self._repeated(outside)
        for atom, coefficient in body.terms.items():
            if not self.is_free(atom):
                total = total.plus(self.of_product(factors(atom)), coefficient)
        return total

    def of_product(self, parts: Sequence[Expr]) -> LinearForm:
        """The sum of one product: factors without the index leave it."""
        inside = [part for part in parts if not self.is_free(part)]
        outside = [part for part in parts if self.is_free(part)]
        found = (
            self._of_power(inside)
            or self._of_selection(inside)
            or self._of_steep_clamp(inside)
            or self._of_extreme(inside)
            or self._of_exact_quotient(inside)
            or self._of_rows(inside)
            or self._of_quotient(inside)
            or self._of_prefixes(inside)
            or self.residual("sum_over", self._selected_product(inside))
        )
        if (written := self.written_out("sum_over", product_form(inside))) is not None:
            # of a short range a closed form may be the longer one
            size = self.theory.simplicity.size
            found = min(found, written, key=lambda form: size(to_expr(form)))
        return self.theory.times(found, product_form(outside))

    def _of_prefixes(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of sums over ranges that begin or end one later each time: each value as often as ranges have it.

        For an ``x`` without ``i``, ``sum(sum(x, j, w, i + c), i, u, v)`` is
        ``sum(x*(v - max(u, j - c + 1)), j, w, v + c - 1)``. No value may be computed where ``i`` has none.
        """
        theory, over = self.theory, self.over
        if len(inside) != 1 or inside[0].op != "sum_over":
            return None
        body, index, *ends = inside[0].args
        value, low, high = [theory.inner(part) for part in (body, *ends)]
        start, stop = [end.plus(atom_form(self.index), -1) for end in (low, high)]
        if not self.is_free(value):
            return None
        if self.is_free(low, stop):
            part = Range(index, low, over.high.plus(stop).shifted(-1))
            gap = low.plus(over.low.plus(stop), -1).shifted(1)
            after = atom_form(index).plus(stop, -1).shifted(1)
            times = over.high.plus(theory.extreme("max", [over.low, after]), -1)
        elif self.is_free(high, start):
            part = Range(index, over.low.plus(start), high)
            gap = over.high.plus(start).plus(high, -1)
            after = atom_form(index).plus(start, -1).shifted(1)
            times = theory.extreme("min", [over.high, after]).plus(over.low, -1)
        else:
            return None
        if theory.bounds(over.extent)[0] <= 0 and not theory.is_never_negative(gap):
            return None
        return self._sum_over(theory.times(value, theory.extreme("max", [ZERO, times])), part)

    def _repeated(self, value: LinearForm) -> LinearForm:
        """The sum of what does not change with the index."""
        return self.theory.times(value, self.trip_count()) if value != ZERO else ZERO

    def _sum_over(self, body: LinearForm, over: Range) -> LinearForm:
        """The normal form of a sum over a part of the range, where more may be known of the index."""
        return self.theory.form(over.reduction("sum_over", to_expr(body)))

    def _of_power(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of a power of the index (Faulhaber)."""
        if len(inside) > LIMITS.degree or any(part is not self.index for part in inside):
            return None
        over = self.ordered().over
        coefficients = faulhaber(len(inside))
        scale = lcm(*[c.denominator for c in coefficients])
        total = ZERO
        for end, sign in ((over.high, 1), (over.low, -1)):
            power = number(1)
            for coefficient in coefficients:
                total = total.plus(power, sign * int(coefficient * scale))
                power = self.theory.times(power, end)
        return self.theory.quotient_by(total, scale)

    def _of_selection(self, inside: Sequence[Expr]) -> LinearForm | None:
        """A sum of ``where(c, x, y)`` times the other factors: split by what ``c`` says of the index."""
        theory = self.theory
        if (choice := next((part for part in inside if part.op == "where"), None)) is None:
            return None
        others, plain = without_one(inside, choice), with_plain_condition(choice)
        condition, *branches = plain.args
        x, y = [self._multiplied(arg, others) for arg in branches]
        if condition.op == "or" or (x == ZERO and condition.op in ("lt", "le")):
            condition, x, y = theory.negate(condition), y, x
        members = chain_members(condition, "and")
        if same := [member for member in members if self.is_free(member)]:
            varying = theory.junction("and", [member for member in members if member not in same])
            there = x if varying is TRUE else atom_form(make("where", varying, to_expr(x), to_expr(y)))
            sums = [self._sum_over(body, self.over) for body in (there, y)]
            return selected(theory, theory.junction("and", same), *sums)
        if (value := equated(theory, self.index, condition)) is not None:
            return self._gathered(value, plain, others, y)
        return self._of_bounded(condition, x, y)

    def _of_bounded(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """A sum of ``where(c, x, y)`` over the part of the range in which ``c`` may hold, if it bounds the index."""
        solved = solved_for(self.theory, self.index, condition)
        is_partial = solved is not None and solved.rest is not TRUE and y != ZERO
        if is_partial and self.is_free(y):
            apart = atom_form(make("where", condition, to_expr(x.plus(y, -1)), const(0)))
            return self._sum_over(apart, self.over).plus(self._repeated(y))
        if solved is None or is_partial:
            return self._of_residues(condition, x, y) or self._of_alternatives(condition, x, y)
        if solved.rest is not TRUE:
            x = atom_form(make("where", solved.rest, to_expr(x), const(0)))
        part = self.part(solved.first, solved.beyond)
        if self.is_free(y):
            everywhere = self._repeated(y)
            return self._sum_over(x.plus(y, -1), part).plus(everywhere)
        return self._sum_over(x, part).plus(self._outside(y, solved.first, solved.beyond))

    def _multiplied(self, term: Expr, others: Sequence[Expr]) -> LinearForm:
        return self.theory.times(self.theory.inner(term), product_form(others))

    def _selected_product(self, inside: Sequence[Expr]) -> LinearForm:
        """A product with the other factors moved into a factor ``where(c, x, 0)``, if it has one."""
        for part in inside:
            if part.op == "where" and len(inside) > 1 and self.theory.inner(part.args[2]) == ZERO:
                taken = to_expr(self._multiplied(part.args[1], without_one(inside, part)))
                return atom_form(make("where", part.args[0], taken, const(0)))
        return product_form(inside)

    def _outside(self, body: LinearForm, first: LinearForm | None, beyond: LinearForm | None) -> LinearForm:
        """The sum over the part of the range before ``first``, and from ``beyond`` on, each value once."""
        over, extreme = self.ordered().over, self.theory.extreme
        start, end = over.low, over.high
        if first is not None:
            start = extreme("min", [extreme("max", [over.low, first]), over.high])
        if beyond is not None:
            end = extreme("max", [start, extreme("min", [over.high, beyond])])
        pieces = (Range(self.index, over.low, start), Range(self.index, end, over.high))
        return self._sum_over(body, pieces[0]).plus(self._sum_over(body, pieces[1]))

    def _gathered(self, value: LinearForm, choice: Expr, others: Sequence[Expr], y: LinearForm) -> LinearForm:
        """The sum of ``where(index == value and ..., x, y)``: at most one ``x``, and ``y`` for the others.

        ``value`` may lie outside the range: ``x`` counts only if it is inside.
        """
        theory = self.theory
        there = in_range(theory, self.over, value)
        condition, x = choice.args[:2]
        if condition.op == "or":
            condition, x = theory.negate(condition), choice.args[2]
        image = to_expr(value)
        taken, asked, *others = [instantiate(t, self.index, image) for t in (x, condition, *others)]
        for factor in others:
            taken = make("mul", taken, factor)
        if self.is_free(y):
            everywhere = self._repeated(y)
            found = theory.junction("and", [*there, theory.condition(asked)])
            return chosen(theory, found, make("sub", taken, to_expr(y)), const(0)).plus(everywhere)
        here = make("where", asked, taken, instantiate(to_expr(y), self.index, image))
        outside = self._outside(y, value, value.shifted(1))
        return chosen(theory, theory.junction("and", there), here, const(0)).plus(outside)

    # selections by the remainder of the index

    def _of_residues(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """A sum of ``where(c, x, y)`` where ``c`` compares the remainder of a dividend by a literal."""
        if (compared := self.theory.difference(condition)) is None:
            return None
        for found in self.theory.remainders_in(compared):
            dividend, n, sign = found.dividend, found.divisor, found.scale
            if abs(sign) != 1 or self.is_free(found.quotient) or not self.is_free(found.rest):
                continue
            # eq: 0 == sign*(dividend % n) + rest, else 0 <= that
            residue = found.rest.times(-sign)
            if condition.op == "eq":
                return self._of_residue(dividend, n, residue, x, y)
            if sign > 0:
                # the remainder is at least the residue: elsewhere it is at most the one before
                return self._of_least_residues(dividend, n, residue.shifted(-1), y, x)
            return self._of_least_residues(dividend, n, residue, x, y)
        return None

    def _of_least_residues(
        self, dividend: LinearForm, n: int, most: LinearForm, x: LinearForm, y: LinearForm
    ) -> LinearForm | None:
        """A sum of ``where(dividend % n <= most, x, y)``."""
        theory = self.theory
        low, high = theory.bounds(most)
        if low == high == 0 and self.is_free(y):
            return self._of_residue(dividend, n, most, x, y)
        if low == high == n - 2 and self.is_free(x):
            return self._of_residue(dividend, n, number(n - 1), y, x)
        # the remainder is below k, 0 <= k <= n, where dividend//n and (dividend - k)//n differ: by 1
        k = theory.extreme("min", [theory.extreme("max", [most.shifted(1), ZERO]), number(n)])
        if abs(slope := dividend.terms.get(self.index, 0)) == 1 and self.is_free(dividend.without(self.index), x, y):
            count = self._least_residues(dividend, slope, n, k)
            return theory.times(x.plus(y, -1), count).plus(self._repeated(y))
        below = to_expr(dividend) // n - to_expr(dividend.plus(k, -1)) // n
        return self._counted(below, x, y)

    def _least_residues(self, dividend: LinearForm, slope: int, n: int, k: LinearForm) -> LinearForm:
        """How often ``dividend % n < k``: ``k`` times in each period, and at most as often in a part of one."""
        theory, over, total = self.theory, self.ordered().over, ZERO
        rest = dividend.without(self.index)
        if slope < 0:
            # the index from the other end: low + high - 1 - index
            rest = rest.plus(over.low.plus(over.high).shifted(-1), -1)
        for end, sign in ((over.high, 1), (over.low, -1)):
            reach = end.plus(rest)
            periods = theory.quotient_by(reach, n)
            total = total.plus(theory.times(periods, k), sign)
            total = total.plus(theory.extreme("min", [reach.plus(periods, -n), k]), sign)
        return total

    def _counted(self, ones: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """A sum of ``x`` where ``ones`` is 1 and ``y`` where it is 0, if neither speaks of the index."""
        if not self.is_free(x, y):
            return None
        count = self._sum_over(self.theory.inner(ones), self.over)
        if has_reductions(count.terms):
            return None
        return self.theory.times(x.plus(y, -1), count).plus(self._repeated(y))

    def _of_residue(
        self, dividend: LinearForm, n: int, residue: LinearForm, x: LinearForm, y: LinearForm
    ) -> LinearForm | None:
        """A sum of ``where(dividend % n == residue, x, y)``."""
        theory = self.theory
        k = dividend.terms.get(self.index, 0)
        shift = dividend.without(self.index)
        if gcd(k, n) > 1 or not self.is_free(shift, y):
            return None
        low, high = theory.bounds(residue)
        # k*index is residue - shift modulo n, and k has an inverse
        start = residue.plus(shift, -1).times(1 if k == 1 else pow(k, -1, n))
        if low >= 0 and high < n:
            return self._of_steps(start, n, x, y)
        some = theory.junction("and", [theory.at_least_zero(r) for r in (residue, residue.times(-1).shifted(n - 1))])
        if (inside := theory.assuming(some)) is None:
            return None
        found = replace(self, theory=inside)._of_steps(start, n, x, y)
        return selected(theory, some, found, self._repeated(y))

    def _of_steps(self, residue: LinearForm, n: int, x: LinearForm, y: LinearForm) -> LinearForm:
        """A sum of ``x`` where the index is ``n*q + residue`` for some ``q``, and of ``y`` elsewhere."""
        index = self.index
        # the least q with n*q + residue >= end is -((residue - end)//n)
        ends = [self.theory.quotient_by(residue.plus(end, -1), n).times(-1) for end in (self.over.low, self.over.high)]
        there = x.plus(y, -1)
        image = atom_form(index).times(n).plus(residue)
        body = to_expr(there) if self.is_free(there) else instantiate(to_expr(there), index, to_expr(image))
        steps = self.theory.form(Range(index, *ends).reduction("sum_over", body))
        return steps.plus(self._repeated(y))

    # selections by alternatives

    def _of_alternatives(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """A sum of ``where(c, x, y)`` where ``c`` is a few alternatives: each alone, less what two of them share."""
        if condition.op == "and":
            condition, x, y = self.theory.negate(condition), y, x
        members = chain_members(condition, "or")
        if not self.is_free(y) or not 1 < len(members) <= LIMITS.condition_alternatives:
            return None
        if condition in self.theory.splitting:
            # the intersection of two members is a conjunction, whose complement is a disjunction again
            return None
        with begun(self.theory.splitting, condition):
            return self._by_alternatives(members, x, y)

    def _by_alternatives(self, members: Sequence[Expr], x: LinearForm, y: LinearForm) -> LinearForm | None:
        """As :meth:`_of_alternatives`, by inclusion and exclusion; ``None`` if a part has no closed form."""
        there, total = to_expr(x.plus(y, -1)), self._repeated(y)
        for count in range(1, len(members) + 1):
            for some in combinations(members, count):
                shared = make("where", self.theory.junction("and", some), there, const(0))
                found = self._sum_over(atom_form(shared), self.over)
                if has_reductions(found.terms):
                    return None
                total = total.plus(found, 1 if count % 2 else -1)
        return total

    # minima, maxima

    def _with_clamps_in_order(self, body: LinearForm) -> LinearForm:
        """The body with each clamp as the extreme that decides at the start of the range.

        ``min(max(x, -c), 0)`` for an ``x`` that falls with the index; for one that grows that is
        ``-c - min(max(-c - x, -c), 0)``.
        """
        for atom, k in body.terms.items():
            found = self._clamped(atom)
            if found is not None and found[0].terms.get(self.index, 0) > 0:
                x, end = found
                nested = self.theory.extreme("min", [self.theory.extreme("max", [x.times(-1).plus(end), end]), ZERO])
                body = body.plus(atom_form(atom), -k).plus(end, k).plus(nested, -k)
        return body

    def _clamped(self, atom: Expr) -> tuple[LinearForm, LinearForm] | None:
        """``x`` and the number ``c``, at most 0, of an atom ``min(max(x, c), 0)``; ``None`` if it is no such."""
        if atom.op != "min" or atom.args[1] is not const(0):
            return None
        whole = self.theory.inner(atom.args[0])
        inner = [a for a, k in whole.terms.items() if k == -1 and a.op == "min" and a.args[1] is const(0)]
        if len(inner) != 1:
            return None
        # x - min(y, 0) is the larger one of x and x - y
        one = whole.without(inner[0])
        other = one.plus(self.theory.inner(inner[0].args[0]), -1)
        for x, end in ((one, other), (other, one)):
            if not end.terms and end.constant <= 0:
                return x, end
        return None

    def _of_steep_clamp(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of adjacent clamps, each of which begins where the one before it ends: one wide clamp.

        ``min(max(x + d*i, -d), 0)`` for the ``n`` values of ``i`` from 0 on is ``min(max(x, -d*n), 0)``.
        """
        if len(inside) != 1 or (found := self._clamped(inside[0])) is None:
            return None
        x, end = found
        slope = x.terms.get(self.index, 0)
        rest = x.without(self.index)
        if not end.constant or abs(slope) != -end.constant or not self.is_free(rest):
            return None
        over, extreme = self.ordered().over, self.theory.extreme
        least = rest.plus(over.low if slope > 0 else over.high.shifted(-1), slope)
        return extreme("min", [extreme("max", [least, over.extent.times(end.constant)]), ZERO])

    def _of_extreme(self, inside: Sequence[Expr]) -> LinearForm | None:
        """A sum of a smaller or larger value: it is one operand up to where it becomes the other."""
        if (extreme := next((part for part in inside if part.op in ("min", "max")), None)) is None:
            return None
        one, other = [self.theory.inner(arg) for arg in extreme.args]
        first = self.theory.at_least_zero(other.plus(one, -1) if extreme.op == "min" else one.plus(other, -1))
        solved = solved_for(self.theory, self.index, first)
        if solved is None or solved.rest is not TRUE:
            return None
        found = self._of_selection([make("where", first, *extreme.args), *without_one(inside, extreme)])
        return None if found is None or has_reductions(found.terms) else found

    def _of_rows(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of sums, over the part of the range in which the inner ones are not empty."""
        rows = next((part for part in inside if part.op == "sum_over"), None)
        if rows is None:
            return None
        low, high = [self.theory.inner(end) for end in rows.args[2:]]
        solved = solved_for(self.theory, self.index, self.theory.at_least_zero(high.plus(low, -1).shifted(-1)))
        if solved is None or solved.rest is not TRUE:
            return None
        part = self.part(solved.first, solved.beyond)
        return None if part == self.over else self._sum_over(product_form(inside), part)

    def _of_exact_quotient(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of ``p // n`` times the other factors, where ``n`` always divides ``p``: the division comes last."""
        for part in inside:
            n = literal_divisor(part)
            if n > 0 and constant_remainder(self.theory.inner(part.args[0]), n, LIMITS.divisibility_cases) == 0:
                whole = self._multiplied(part.args[0], without_one(inside, part))
                return self.theory.quotient_by(self.of(whole), n)
        return None

    def _of_quotient(self, inside: Sequence[Expr]) -> LinearForm | None:
        """The sum of ``(k*index + rest) // n`` for literals ``k`` and ``n``."""
        n = literal_divisor(inside[0]) if len(inside) == 1 else 0
        if n <= 0:
            return None
        dividend = self.theory.inner(inside[0].args[0])
        k = dividend.terms.get(self.index, 0)
        rest = dividend.without(self.index)
        if not k or not self.is_free(rest):
            return None
        return self.ordered()._of_affine_quotient(k, rest, n)

    def _of_affine_quotient(self, k: int, rest: LinearForm, n: int) -> LinearForm | None:
        """As :meth:`_of_quotient`, for ``low <= high``."""
        theory, over = self.theory, self.over
        if k < 0:
            # the index from the other end: low + high - 1 - index
            rest = rest.plus(over.low.plus(over.high).shifted(-1), k)
            k = -k
        # with a factor common to k and n, the rest may be rounded down first
        common = gcd(k, n)
        k, n, rest = k // common, n // common, theory.quotient_by(rest, common)
        if n == 1:
            return self.of(LinearForm({self.index: k}, 0).plus(rest))
        if over.extent.terms:
            return self._of_unit_quotient(rest, n) if k == 1 else None
        periods, left = divmod(over.extent.constant, n)
        if k == 1 and left:
            return self._of_unit_quotient(rest, n)
        if not periods:
            return None
        # over one period the quotients add up to start + (k - 1)(n - 1)/2; the next period is k higher throughout
        start = over.low.times(k).plus(rest)
        total = start.times(periods).shifted(periods * (k - 1) * (n - 1) // 2 + k * n * periods * (periods - 1) // 2)
        if left:
            remaining = Range(self.index, over.low.shifted(n * periods), over.high)
            body = theory.quotient_by(rest.plus(atom_form(self.index), k), n)
            total = total.plus(self._sum_over(body, remaining))
        return total

    def _of_unit_quotient(self, rest: LinearForm, n: int) -> LinearForm:
        """The sum of ``(index + rest) // n``: the difference of ``N*q - n*q*(q + 1)/2``, ``q = N//n``, at the ends."""
        theory, total = self.theory, ZERO
        for end, sign in ((self.over.high, 1), (self.over.low, -1)):
            reach = end.plus(rest)
            q = theory.quotient_by(reach, n)
            pairs = theory.quotient_by(theory.times(q, q.shifted(1)), 2)
            total = total.plus(theory.times(reach, q), sign).plus(pairs, -sign * n)
        return total


@cache
def faulhaber(degree: int) -> tuple[Fraction, ...]:
    """The coefficients of the polynomial whose value at ``n`` is the sum of ``k**degree`` over ``0 <= k < n``.

    >>> faulhaber(1)
    (Fraction(0, 1), Fraction(-1, 2), Fraction(1, 2))
    """
    # n**(degree + 1) telescopes: it is the sum of (k+1)**(degree+1) - k**(degree+1), a sum of lower powers
    total = [Fraction(0)] * (degree + 1) + [Fraction(1)]
    for lower in range(degree):
        share = comb(degree + 1, lower)
        for power, coefficient in enumerate(faulhaber(lower)):
            total[power] -= share * coefficient
    return tuple([coefficient / (degree + 1) for coefficient in total])
