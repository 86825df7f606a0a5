"""Fourier-Motzkin elimination: whether inequalities between integers contradict each other.

A *row* is a form that is at least zero. Two rows with opposite signs of an atom combine into one without it; a row of
integers is divided by what divides its coefficients and its constant rounded down, as in Pugh's Omega test (1991).
An atom is an integer within its range: nothing else is known of it. The work is bounded: rows for which no
contradiction is found may have one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from math import gcd

from eqsat.lang.expr import Expr
from eqsat.lang.ops import Bounds, is_finite, linear_bounds
from eqsat.theory.forms import LinearForm
from eqsat.theory.limits import LIMITS


class ClashError(ValueError):
    """A row that no values satisfy."""


class Rows:
    """Inequalities over atoms with ranges.

    Parameters
    ----------
    range_of : callable
        The inclusive bounds of an atom.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.theory.forms import atom_form
    >>> x, y, z = [atom_form(var(name, -99, 99)) for name in "xyz"]
    >>> Rows([y.plus(x, -1).shifted(-1), z.plus(y, -1).shifted(-1), x.plus(z, -1)], lambda a: (a.vmin, a.vmax)).clash()
    True
    """

    def __init__(self, rows: Iterable[LinearForm], range_of: Callable[[Expr], Bounds]) -> None:
        self.range_of = range_of
        self.given = list(rows)
        self.combined = 0
        # by direction, the least constant added to it; a row of one atom narrows its interval instead
        self._rows: dict[LinearForm, int] = {}
        self._intervals: dict[Expr, Bounds] = {}

    def clash(self) -> bool:
        """Whether the rows were found to contradict each other."""
        try:
            for row in self.given:
                self._add(row)
            self._drop_idle()
            while self._substitute():
                pass
            while self._rows and len(self._rows) <= LIMITS.rows:
                self._eliminate(self._cheapest())
                self._drop_idle()
        except ClashError:
            return True
        return False

    def _interval(self, atom: Expr) -> Bounds:
        found = self._intervals.get(atom)
        return self.range_of(atom) if found is None else found

    def _add(self, row: LinearForm) -> None:
        if not row.terms:
            if row.constant < 0:
                raise ClashError
            return
        if (common := gcd(*row.terms.values())) > 1:
            row = row.divided(common)
        if len(row.terms) == 1:
            ((atom, sign),) = row.terms.items()
            low, high = self._interval(atom)
            low, high = (max(low, -row.constant), high) if sign > 0 else (low, min(high, row.constant))
            if low > high:
                raise ClashError
            self._intervals[atom] = (low, high)
            return
        direction = row.direction()
        self._rows[direction] = min(row.constant, self._rows.get(direction, row.constant))

    def _drop_idle(self) -> None:
        """Drop the rows that the intervals imply; raise :class:`ClashError` if they refute one."""
        for direction, constant in list(self._rows.items()):
            low, high = linear_bounds(constant, [(self._interval(a), k) for a, k in direction.terms.items()])
            if high < 0:
                raise ClashError
            if low >= 0:
                del self._rows[direction]

    def _substitute(self) -> bool:
        """Solve an equation, two opposite rows, for an atom with coefficient 1 or -1; whether there was one."""
        for direction, constant in self._rows.items():
            opposite = direction.times(-1)
            if (other := self._rows.get(opposite)) is None:
                continue
            if constant + other < 0:
                raise ClashError
            unit = next((a for a, c in direction.sorted_terms() if abs(c) == 1), None)
            if constant + other == 0 and unit is not None:
                solved = direction.shifted(constant)
                sign = -direction.terms[unit]
                low, high = self._interval(unit)
                del self._rows[direction], self._rows[opposite]
                for row in [row for row in self._rows if unit in row.terms]:
                    self._add(row.shifted(self._rows.pop(row)).plus(solved, sign * row.terms[unit]))
                rest = solved.times(sign).plus(LinearForm({unit: 1}, 0))
                if is_finite(low):
                    self._add(rest.shifted(-low))
                if is_finite(high):
                    self._add(rest.times(-1).shifted(high))
                return True
        return False

    def _cheapest(self) -> Expr:
        """The atom whose elimination leaves the fewest rows, among those whose elimination is exact if there are any.

        It is exact if all coefficients on one side are 1. Else the rows that are left may hold although there is no
        integer between the bounds.
        """
        # from below and from above: how many rows bound an atom, with its range, and the largest coefficient there
        counts: dict[Expr, list[int]] = defaultdict(lambda: [1, 1])
        largest: dict[Expr, list[int]] = defaultdict(lambda: [1, 1])
        for direction in self._rows:
            for atom, coefficient in direction.terms.items():
                counts[atom][coefficient < 0] += 1
                largest[atom][coefficient < 0] = max(largest[atom][coefficient < 0], abs(coefficient))
        return min(counts, key=lambda a: (min(largest[a]) > 1, counts[a][0] * counts[a][1] - sum(counts[a]), a.key))

    def _eliminate(self, atom: Expr) -> None:
        """Combine every row that bounds ``atom`` from below with every one that bounds it from above."""
        low, high = self._interval(atom)
        below = [LinearForm({atom: 1}, -low)] if is_finite(low) else []
        above = [LinearForm({atom: -1}, high)] if is_finite(high) else []
        rest: dict[LinearForm, int] = {}
        for direction, constant in self._rows.items():
            if not (coefficient := direction.terms.get(atom, 0)):
                rest[direction] = constant
            else:
                (below if coefficient > 0 else above).append(LinearForm(direction.terms, constant))
        self._rows = rest
        self.combined += len(below) * len(above)
        for lower, upper in product(below, above):
            up, down = lower.terms[atom], -upper.terms[atom]
            common = gcd(up, down)
            self._add(lower.times(down // common).plus(upper, up // common))
