"""Bounds of forms, by the bounds of their atoms and of sums that facts narrow.

Bounds use correlation: in a sum with ``A`` and ``A // n``, ``A`` is ``n*(A // n)`` plus a remainder in ``[0, n)``. So
the ways to read atoms as quotients are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import gcd

from eqsat.lang.expr import Expr
from eqsat.lang.ops import BITWISE, OPS, Bounds, linear_bounds
from eqsat.lang.traversal import chain_members, topological_until
from eqsat.theory.arithmetic import Arithmetic, kept, provisional
from eqsat.theory.forms import (
    ZERO,
    Division,
    LinearForm,
    atom_form,
    factors,
    literal_divisor,
    number,
    opposite,
    product_form,
    without,
    without_one,
)
from eqsat.theory.limits import LIMITS


class Intervals(Arithmetic):
    """Bounds of atoms and of forms, and quotients read as divisions; all answers are memoised."""

    def range(self, atom: Expr) -> Bounds:
        if (found := self._ranges.get(atom)) is None:
            if self.parent is not None and not self.variables.of(atom) & self.touched:
                found = self.parent.range(atom)
            else:
                found = self._in_depth(atom, self._ranges, self.range, self._range)
            self._ranges[atom] = found
        return found

    def _range(self, atom: Expr) -> Bounds:
        low, high = atom.vmin, atom.vmax
        op = atom.op
        if divisor := literal_divisor(atom):
            ends = [end // divisor for end in self._bounds_without_known_sums(self.inner(atom.args[0]))]
            low, high = min(ends), max(ends)
        elif op == "floordiv":
            over, under = [self._stated_bounds(self.inner(a)) for a in atom.args]
            if under[0] > 0:
                least, most = OPS[op].bounds(over, under)
                low, high = max(low, least), min(high, most)
        elif op == "mul":
            low, high = self._product_range(atom)
        elif op == "where":
            low, high = self._selection_range(atom)
        elif op in BITWISE:
            low, high = OPS[op].bounds(*[self._bounds_without_known_sums(self.inner(a)) for a in atom.args])
        elif op == "min":
            lows, highs = zip(*[self._bounds_without_known_sums(gap) for gap in self.gaps(atom)], strict=True)
            low, high = min(lows), min(highs)
        known_low, known_high = self.narrowed.get(atom, (low, high))
        return max(low, known_low), min(high, known_high)

    def _product_range(self, atom: Expr) -> Bounds:
        """Bounds of a product: of its last factor, to the power in which it occurs, times the other factors."""
        rest, last, power = atom.args[0], atom.args[1], 1
        while rest.op == "mul" and rest.args[1] is last:
            rest, power = rest.args[0], power + 1
        if rest is last:
            return _power_bounds(self.range(last), power + 1)
        return OPS["mul"].bounds(self.range(rest), _power_bounds(self.range(last), power))

    def _selection_range(self, atom: Expr) -> Bounds:
        """Bounds of a selection, by those of the branches where they are taken."""
        condition, x, y = atom.args
        branches = [(x, chain_members(condition, "and")), (y, [*map(opposite, chain_members(condition, "or"))])]
        ends = [self._bounds_where(self.inner(branch), holding) for branch, holding in branches]
        # a branch that is never taken has no values
        taken = [(low, high) for low, high in ends if low <= high] or [(atom.vmin, atom.vmax)]
        lows, highs = zip(*taken, strict=True)
        return min(lows), max(highs)

    def _bounds_where(self, form: LinearForm, holding: Sequence[Expr]) -> Bounds:
        """Bounds of a form where conditions hold, by each that compares terms of the form."""
        low, high = self._bounds_without_known_sums(form)
        for condition in holding:
            gap = self.difference(condition)
            scale = form.scale_of(gap) if gap is not None and gap.terms else 0
            if gap is not None and scale:
                # the gap is at least zero
                least, most = self._independent_bounds(form.plus(gap, -scale))
                low = max(low, least) if scale > 0 or condition.op == "eq" else low
                high = min(high, most) if scale < 0 or condition.op == "eq" else high
        if (joined := self._as_multiple_of_quotient(form)) is not None:
            dividend, n, k = joined
            least, most = [k * (end // n) for end in self._bounds_where(dividend, holding)][:: 1 if k > 0 else -1]
            low, high = max(low, least), min(high, most)
        return low, high

    def _as_multiple_of_quotient(self, form: LinearForm) -> tuple[LinearForm, int, int] | None:
        """``x//3*k + y*k`` as dividend, divisor and factor of ``(x + y*3)//3*k``; ``None`` without such a quotient."""
        for atom, k in form.terms.items() if len(form.terms) > 1 else ():
            if (n := literal_divisor(atom)) > 0:
                rest = form.without(atom)
                if not rest.common_factor() % k:
                    return self.inner(atom.args[0]).plus(rest.divided(k), n), n, k
        return None

    def plain_bounds(self, form: LinearForm) -> Bounds:
        if self.minimum_atoms and form.has_minimum() and self.has_time_for(form):
            return self._bounds_by_cases(form)
        return self._independent_bounds(form)

    def _bounds_by_cases(self, form: LinearForm, most_cases: int = LIMITS.bounds_cases) -> Bounds:
        """Bounds of a sum with minima: it is the least of its cases, or the greatest if it subtracts the minimum."""
        if (found := self._by_cases.get(form)) is None:
            low, high = self._independent_bounds(form)
            atom = self.outer_minimum(form)
            each = most_cases // len(self.gaps(atom)) if atom is not None else 0
            if atom is None or not each:
                return low, high
            ends = [self._bounds_by_cases(case, each) for case in self.cases(form, atom)]
            choose = min if form.terms[atom] > 0 else max
            low = max(low, choose(least for least, _ in ends))
            high = min(high, choose(most for _, most in ends))
            found = low, high
            if most_cases == LIMITS.bounds_cases:
                self._by_cases[form] = found
        return found

    def _independent_bounds(self, form: LinearForm) -> Bounds:
        terms = [(self._ranges.get(atom) or self.range(atom), k) for atom, k in form.terms.items()]
        return linear_bounds(form.constant, terms)

    def bounds(self, form: LinearForm) -> Bounds:
        if len(form.terms) < 2:
            return self.plain_bounds(form)
        if (found := self._bounds.get(form)) is None:
            low, high = self.plain_bounds(form)
            if self.has_time_for(form):
                correlated = self._correlated_bounds(form, self.divisions)
                for least, most in chain(correlated, self._known_bounds(form), self._digit_bounds(form)):
                    low, high = max(low, least), min(high, most)
            found = self._bounds[form] = low, high
        return found

    def _bounds_without_known_sums(self, form: LinearForm) -> Bounds:
        """Bounds without facts about sums: for ranges of atoms, which must not depend on facts about these atoms."""
        low, high = self.plain_bounds(form)
        if len(form.terms) > 1 and self.has_time_for(form):
            for least, most in self._correlated_bounds(form, self._flat_division):
                low, high = max(low, least), min(high, most)
        return low, high

    def _stated_bounds(self, form: LinearForm) -> Bounds:
        """As :meth:`_bounds_without_known_sums`, with the facts about exactly this sum."""
        low, high = self._bounds_without_known_sums(form)
        for direction, known in self.directions:
            for sign in (1, -1):
                if direction.times(sign).terms == form.terms:
                    least, most = linear_bounds(form.constant, [(known, sign)])
                    low, high = max(low, least), min(high, most)
        return low, high

    def _correlated_bounds(
        self, form: LinearForm, divisions: Callable[[Expr], tuple[Division, ...]]
    ) -> Iterator[Bounds]:
        """A dividend beside its quotient is a multiple of the quotient plus a remainder in ``[0, most]``."""
        # where quotients have no normal form, how they are related to their dividends is left to rules
        for atom in form.terms if self.is_canonical else ():
            if atom.op == "var":
                continue
            if atom.op == "tdiv" and atom.args[1].vmin == atom.args[1].vmax > 0:
                n, dividend = atom.args[1].vmin, self.inner(atom.args[0])
                scale = form.scale_of(dividend)
                rest = form.plus(dividend, -scale).plus(atom_form(atom), scale * n)
                if scale and len(rest.terms) < len(form.terms):
                    low, high = self.plain_bounds(rest)
                    least, most = self.plain_bounds(dividend)
                    ends = (scale * (1 - n) * (least < 0), scale * (n - 1) * (most > 0))
                    yield low + min(ends), high + max(ends)
            for division in divisions(atom):
                if scale := form.scale_of(division.dividend):
                    rest = form.plus(division.remainder, -scale)
                    if len(rest.terms) < len(form.terms) + len(division.dividend.terms):
                        yield linear_bounds(0, [(self.plain_bounds(rest), 1), ((0, division.most), scale)])

    def _digit_bounds(self, form: LinearForm) -> Iterator[Bounds]:
        """Bounds of a sum of several remainders, each between 0 and its divisor less 1."""
        quotients = [a for a in form.terms if a.op == "floordiv"]
        if len(quotients) < 2 or not self.is_canonical:
            return
        rest, taken = form, list[tuple[Bounds, int]]()
        for atom in quotients:
            for division in self.divisions_in(rest, atom):
                scale = rest.scale_of(division.dividend)
                smaller = rest.plus(division.remainder, -scale) if scale else rest
                if len(smaller.terms) < len(rest.terms):
                    rest = smaller
                    taken.append(((0, division.most), scale))
                    break
        if taken:
            yield linear_bounds(0, [(self.plain_bounds(rest), 1), *taken])

    def _known_bounds(self, form: LinearForm) -> Iterator[Bounds]:
        """Bounds by those of known sums, by each alone and by all together, plus those of the other terms."""
        rest, taken = form, list[tuple[Bounds, int]]()
        for direction, known in self.directions:
            if scale := form.scale_of(direction):
                yield linear_bounds(0, [(self.plain_bounds(form.plus(direction, -scale)), 1), (known, scale)])
            scale = rest.scale_of(direction)
            smaller = rest.plus(direction, -scale)
            if scale and len(smaller.terms) < len(rest.terms):
                rest = smaller
                taken.append((known, scale))
        if len(taken) > 1:
            yield linear_bounds(0, [(self.plain_bounds(rest), 1), *taken])

    # quotients read as divisions: a dividend is a divisor times the quotient, plus a remainder in a known range

    def divisions(self, atom: Expr) -> tuple[Division, ...]:
        # A//(b*m) is also (A//b)//m; the coefficients of A and the factors of the atom suggest values of b
        if (found := self._divisions.get(atom)) is None:
            flat = self._flat_division(atom)
            with provisional(self._divisions, atom, flat):
                nested = self._in_depth(
                    atom, self._divisions, self.divisions, lambda a: tuple(self._nested_divisions(a))
                )
            found = self._divisions[atom] = (*flat, *nested)
        return found

    def _in_depth[T](
        self, atom: Expr, memo: Mapping[Expr, object], ask: Callable[[Expr], object], find: Callable[[Expr], T]
    ) -> T:
        """``find(atom)``; deep in such searches, ``ask`` first for all terms below it that ``memo`` lacks."""
        self._open += 1
        try:
            if self._open % LIMITS.open_searches == 0:
                for part in topological_until(atom.args, memo.__contains__):
                    ask(part)
            return find(atom)
        finally:
            self._open -= 1

    def divisions_in(self, form: LinearForm, atom: Expr) -> Iterator[Division]:
        """The divisions of ``atom`` whose dividends are in ``form``: sums of its terms, or other quotients in it."""
        for division in self.divisions(atom):
            if division.dividend.terms.keys() <= form.terms.keys():
                yield division
        if atom.op != "floordiv" or not self.has_time_for(form):
            return
        of_atom = self.variables.of(atom)
        for other in form.terms:
            if other.op == "floordiv" and other is not atom and self.variables.of(other) & of_atom:
                found = self._division_of(other, atom)
                if found is not None:
                    yield found

    @kept("answers", meanwhile=None)
    def _division_of(self, dividend: Expr, quotient: Expr) -> Division | None:
        """The division of ``A//b`` by ``m`` if ``quotient`` is ``A // (b*m)``, less common factors."""
        m = self._periods(dividend, quotient)
        # this recurses into the quotients within
        if m < 2 or self._open >= LIMITS.open_searches:
            return None
        form = atom_form(dividend)
        self._open += 1
        try:
            if self.quotient_by(form, m) != atom_form(quotient):
                return None
        finally:
            self._open -= 1
        return Division(form, number(m), form.plus(LinearForm({quotient: m}, 0), -1), m - 1)

    def _periods(self, dividend: Expr, quotient: Expr) -> int:
        """By how much ``dividend`` grows where ``quotient`` grows by 1, by their first common term; 0 if no integer."""
        b, n = dividend.args[1], quotient.args[1]
        if b.op == n.op == "const" and b.vmin > 0 and n.vmin > 0:
            faster = self.inner(dividend.args[0]).terms
            for atom, coefficient in self.inner(quotient.args[0]).terms.items():
                if atom in faster:
                    m, uneven = divmod(faster[atom] * n.vmin, coefficient * b.vmin)
                    return 0 if uneven else m
        return 0

    def _flat_division(self, atom: Expr) -> tuple[Division, ...]:
        """The division that an atom ``A//n``, or ``n*(A//n)``, is read as; empty for other atoms."""
        for quotient in factors(atom):
            if quotient.op != "floordiv":
                continue
            dividend, divisor = self.inner(quotient.args[0]), self.inner(quotient.args[1])
            if quotient.args[1].vmin <= 0 and self.plain_bounds(divisor)[0] <= 0:
                continue
            if divisor.terms or quotient is atom:
                multiple = self.times(divisor, atom_form(quotient))
                if not divisor.terms or multiple.terms.keys() == {atom}:
                    most = self.plain_bounds(divisor)[1] - 1
                    return (Division(dividend, divisor, dividend.plus(multiple, -1), most),)
        return ()

    def _nested_divisions(self, atom: Expr) -> Iterator[Division]:
        """The divisions of ``A//b`` by ``m`` that ``A // (b*m)``, or factors of ``m`` times that, is read as."""
        for quotient in factors(atom):
            divisor = self.inner(quotient.args[1]) if quotient.op == "floordiv" else ZERO
            n = sum(divisor.terms.values()) + divisor.constant
            if divisor.addends() != 1 or n < 0:
                continue
            dividend = self.inner(quotient.args[0])
            beside = without_one(factors(atom), quotient)
            symbols = without([f for monomial in divisor.terms for f in factors(monomial)], beside)
            if symbols is None:
                continue
            for b in sorted({gcd(c, n) for c in dividend.terms.values()} | {n}):
                if not self.has_time_for(dividend):
                    return
                # neither part may be one
                if (b > 1 or symbols) and (b < n or beside):
                    outer = product_form(beside).times(n // b)
                    low, high = self.plain_bounds(outer)
                    if low > 0:
                        part = self.quotient(dividend, product_form(symbols).times(b))
                        yield Division(part, outer, part.plus(LinearForm({atom: n // b}, 0), -1), high - 1)


def _power_bounds(bounds: Bounds, exponent: int) -> Bounds:
    """Bounds of a power, by those of its base."""
    low, high = bounds
    ends = sorted((low**exponent, high**exponent))
    return (0 if exponent % 2 == 0 and low < 0 < high else ends[0]), ends[1]
