"""Loads at one of two neighbours that a selection decides, as selections between two loads.

``X[where(c, 0, 1)]`` is ``where(c, X[0], X[1])``: both loads leave the loop, and every compiler gets it right. gcc 12
makes ``X[c ? 0 : 1]`` an access at the offset ``!c``, and its vectoriser then takes the lanes of a comparison, which
are 0 and -1, for 0 and 1, so that it reads ``X[-1]``. It does so where nothing but a comparison is added to the address
in the loop: in 32 bits the index is one of two neighbours then, as other sums are widened as a whole; in 64 bits some
selection in it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from eqsat.dtypes import select_width
from eqsat.expr import Expr, const, make, rebuild, replaced, topological
from eqsat.kernel import Store, equal_store
from eqsat.linear import Theory


def with_selected_loads(stores: Sequence[Store]) -> list[Store]:
    """The same stores with every load at a selected one of two neighbours as a selection between two loads.

    >>> from eqsat.expr import buffer, var, where
    >>> x, y, m = buffer("X", "f32", (2,)), buffer("Y", "f32", (4,)), var("m", 0, 3)
    >>> with_selected_loads([Store(y[m], x[where(m < 3, 0, 1)], [m])])
    [Store('Y[m] = where(m < 3, X[0], X[1]) for m')]
    """
    parts = [part for s in stores for part in s.parts]
    if not any(t.op == "where" for t in topological(parts)):
        return [*stores]
    theory = Theory()

    def between_loads(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        return _between_loads(theory, *args) if term.op == "load" else None

    images = iter(rebuild(parts, between_loads))
    return [equal_store(s, [next(images) for _ in s.parts], s.over) for s in stores]


def _between_loads(theory: Theory, array: Expr, index: Expr) -> Expr | None:
    """The selection that a load is, or ``None`` if there are not two places."""
    selections = [t for t in topological([index]) if t.op == "where"]
    for part in selections if select_width(index) == 64 else [index] * bool(selections):
        low, high = theory.bounds_of(part)
        if high - low == 1:
            first, second = [make("load", array, *replaced([index], {part: const(end)})) for end in (low, high)]
            choice = "fwhere" if first.element else "where"
            return make(choice, theory.condition(part.eq(low)), first, second)
    return None
