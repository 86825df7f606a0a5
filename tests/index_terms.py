"""Random index terms: sums of digits of sums, as layouts and loop transformations make them.

Where :mod:`strategies` draws from the whole language, these stay where the theory has most to say: literals that
divide one another or leave two quotients, quotients and remainders of sums of quotients and remainders, ranges on both
sides of zero.
"""

from __future__ import annotations

from hypothesis import strategies as st

from eqsat.expr import Expr, const, maximum, minimum, var, where

_COEFFICIENTS = st.sampled_from([1, 1, -1, 2, 3, 4, 6, 8, 12, -2, -3, -4])
_DIVISORS = st.sampled_from([2, 3, 4, 6, 8, 12, 24, -3, -4])
_KINDS = [
    "//",
    "//",
    "%",
    "%",
    "+",
    "where",
    "min",
    "max",
    "*",
    "variable //",
    "variable %",
    "two periods //",
    "two periods %",
]


@st.composite
def index_variables(draw: st.DrawFn) -> list[Expr]:
    """One to three variables with at most 512 points between them."""
    found = []
    for name in ("i", "j", "k")[: draw(st.integers(1, 3))]:
        low = draw(st.sampled_from([0, 0, 0, 1, -1, -3, -8]))
        found.append(var(name, low, low + draw(st.sampled_from([1, 2, 3, 5, 7]))))
    return found


@st.composite
def index_terms(draw: st.DrawFn, steps: int = 6) -> list[Expr]:
    """The terms that one random index computation makes, in order, integers only."""
    terms = draw(index_variables())
    for _ in range(draw(st.integers(2, steps))):
        total: Expr = const(draw(st.sampled_from([0, 0, 1, -1, 3, 7, 11])))
        for part in draw(st.lists(st.sampled_from(terms[::-1]), min_size=1, max_size=3)):
            total = total + part * draw(_COEFFICIENTS)
        kind = draw(st.sampled_from(_KINDS))
        other = draw(st.sampled_from(terms))
        if kind in ("//", "%"):
            divisor = draw(_DIVISORS)
            total = total // divisor if kind == "//" else total % divisor
        elif kind.startswith("two periods"):
            extent = total.vmax - total.vmin
            period = max(2, draw(st.sampled_from([extent // 2 + 1, extent * 2 // 3, extent])))
            total = total // period if kind == "two periods //" else total % period
        elif kind == "where":
            total = where(other < draw(st.integers(-4, 8)), total, draw(st.sampled_from(terms)))
        elif kind in ("min", "max"):
            total = minimum(total, other) if kind == "min" else maximum(total, other)
        elif kind == "*":
            product = total * other
            total = product if max(-product.vmin, product.vmax) < 2**31 else total
        elif kind.startswith("variable"):
            positive = maximum(other, 1)
            total = total // positive if kind == "variable //" else total % positive
        terms.append(total)
    return terms
