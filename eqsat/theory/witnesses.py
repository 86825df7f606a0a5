"""Sample points, which show that something can hold, so that no proof of the contrary is tried."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from eqsat.lang.evaluation import apply_operator, number_type
from eqsat.lang.expr import Expr
from eqsat.lang.ops import FLOATS, REDUCTIONS, Array, finite_part, np
from eqsat.lang.traversal import topological_until
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm

#: The number of sample points.
POINTS = 64
#: The largest distance from zero of the first three quarters of the points; the last is from the whole range.
_REACH = (8, 64, 1024)
#: Sums below this are computed with 64 bits.
_SAFE = 2**62
#: How far the points go where a range has no end.
_FAR = 2**40
#: Terms whose sample values are drawn; those of other terms are computed from these.
_DRAWN = frozenset({"var", "load", *FLOATS, *REDUCTIONS})


class Witnesses(Arithmetic):
    """What holds at :data:`POINTS` sample points, some near zero and some from all over the ranges.

    An element of a buffer, or a reduction, counts as a variable: at worst a proof that would succeed is not tried.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.theory.linear import LinearArithmetic
    >>> x, y = var("x", -99, 99), var("y", 0, 9)
    >>> theory = LinearArithmetic([x < y])
    >>> bool(theory.witnessed().any()), bool((theory.witnessed() & theory.sampled_where([y < x])).any())
    (True, False)
    """

    def witnessed(self) -> Array:
        if self._witnessed is None:
            self._witnessed = self.sampled_where(self.holding())
        return self._witnessed

    def sampled(self, form: LinearForm) -> Array:
        reach = abs(form.constant) + sum(abs(c) * max(abs(a.vmin), abs(a.vmax)) for a, c in form.terms.items())
        kind = np.int64 if reach < _SAFE else object
        total = np.full(POINTS, form.constant, dtype=kind)
        for atom, coefficient in form.terms.items():
            total = total + self._values(atom).astype(kind, copy=False) * coefficient
        return total

    def sampled_where(self, conditions: Iterable[Expr]) -> Array:
        holds = np.ones(POINTS, dtype=bool)
        for condition in conditions:
            holds &= self._values(condition)
        return holds

    def _values(self, term: Expr) -> Array:
        for part in topological_until([term], self._is_sampled):
            found = apply_operator(part, [self.samples[a] for a in part.args]) if part.args else [part.value] * POINTS
            self.samples[part] = np.asarray(found).astype(_type_of(part), copy=False)
        return self.samples[term]

    def _is_sampled(self, part: Expr) -> bool:
        if part not in self.samples and part.op in _DRAWN:
            self.samples[part] = _points(part)
        return part in self.samples


def _type_of(term: Expr) -> Any:
    return bool if term.is_bool else number_type(term)


def _points(variable: Expr) -> Array:
    low, high = finite_part(variable.vmin, variable.vmax, _FAR)
    near = min(max(0, low), high)
    random = Random(variable.key >> 122)
    found = []
    for index in range(POINTS):
        part = index * 4 // POINTS
        reach = _REACH[part] if part < len(_REACH) else high - low
        found.append(random.randint(max(low, near - reach), min(high, near + reach)))
    return np.array(found, dtype=_type_of(variable))
