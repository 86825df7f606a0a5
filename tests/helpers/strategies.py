"""Hypothesis strategies for random expressions, for every property test.

An expression is grown as a graph: each step applies a random operator to earlier terms, so subterms are shared, and
every operator of the language occurs. Ranges and literals are small or close to the ends of 32 bits.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import DIVISIONS, INFINITY, OPS, OWN
from eqsat.lang.traversal import variables

#: The values that expressions stay within by default: symmetric, so that no magnitude overflows 64 bits.
FITS_I64 = (-(2**63) + 1, 2**63 - 1)

_ANCHORS = [0, 0, 0, 2**31 - 1, -(2**31)]
_LITERALS = st.integers(-12, 12) | st.sampled_from([16, 64, 97, 1024, -32, 2**31 - 1, -(2**31), 2**32])


@st.composite
def domains(draw: st.DrawFn, max_points: int = 512) -> list[Expr]:
    """One to three variables with at most ``max_points`` points between them."""
    found: list[Expr] = []
    points = 1
    for name in ("i", "j", "k")[: draw(st.integers(1, 3))]:
        low = draw(st.sampled_from(_ANCHORS)) + draw(st.integers(-9, 9))
        extent = draw(st.integers(1, max(1, min(16, max_points // points))))
        found.append(var(name, low, low + extent - 1))
        points *= extent
    return found


@st.composite
def unbounded_domains(draw: st.DrawFn) -> list[Expr]:
    """One to three variables, at least one of them without an end on some side."""
    found = []
    for name in ("n", "m", "x")[: draw(st.integers(1, 3))]:
        low = draw(st.sampled_from([None, 0, 1, 1, 2]) | st.integers(-9, 9))
        high = draw(st.sampled_from([None, None, None, 0, 7]) | st.integers(-9, 9)) if found or low is None else None
        found.append(var(name, low, high if low is None or high is None else low + abs(high)))
    return found


@st.composite
def _grown(
    draw: st.DrawFn,
    max_leaves: int,
    within: tuple[int, int],
    zero_divisors: bool,
    max_points: int,
    guarded: bool,
    unbounded: bool = False,
) -> tuple[list[Expr], list[Expr]]:
    """The integers and the conditions that a random program computes, in order."""
    integers = draw(unbounded_domains() if unbounded else domains(max_points))
    conditions = [TRUE, FALSE, integers[-1] < draw(_LITERALS)]
    for _ in range(draw(st.integers(1, max_leaves - 1))):
        op = OPS[draw(st.sampled_from(sorted(OPS.keys() - OWN)))]
        shared = draw(st.booleans()) if "s" in op.takes else False
        pools = [conditions if sort == "b" or (sort == "s" and shared) else integers for sort in op.takes]
        # one operand is the latest term, so that the program is about one thing
        chained = draw(st.integers(0, len(pools) - 1))
        args = [pool[-1] if at == chained else draw(_operand(pool)) for at, pool in enumerate(pools)]
        guard = TRUE
        if op.name in DIVISIONS and _holds_zero(args[1]) and not (zero_divisors and args[1].vmin < args[1].vmax):
            kept = maximum(args[1], 1) if draw(st.booleans()) else minimum(args[1], -1)
            if guarded and args[1].vmin < args[1].vmax:
                guard = draw(st.sampled_from([TRUE, args[1].ne(0), (args[1] < 0) | (args[1] > 0)]))
            args[1] = kept if guard is TRUE else args[1]
        if op.name in ("shl", "shr") and not (args[1].vmin >= 0 and args[1].vmax <= 40):
            args[1] = minimum(maximum(args[1], 0), draw(st.sampled_from([3, 31, 40])))
        term = make(op.name, *args)
        term = term if guard is TRUE else where(guard, term, args[0])
        if within[0] <= term.vmin and term.vmax <= within[1]:
            (conditions if term.is_bool else integers).append(term)
    return integers, conditions


def _operand(pool: list[Expr]) -> st.SearchStrategy[Expr]:
    """An earlier term, the latest ones first so that shrinking keeps to them, or a literal."""
    terms = st.sampled_from(pool[::-1])
    return terms if pool[0].is_bool else terms | _LITERALS.map(const)


@st.composite
def unbounded_expressions(draw: st.DrawFn, max_leaves: int = 10, zero_divisors: bool = False) -> Expr:
    """A random integer expression or condition over variables whose ranges have no end."""
    everything = (-INFINITY, INFINITY)
    integers, conditions = draw(_grown(max_leaves, everything, zero_divisors, 0, True, unbounded=True))
    return draw(st.sampled_from([integers[-1], integers[-1], conditions[-1]]))


def _holds_zero(term: Expr) -> bool:
    return term.vmin <= 0 <= term.vmax


@st.composite
def expressions(
    draw: st.DrawFn,
    max_leaves: int = 12,
    within: tuple[int, int] = FITS_I64,
    zero_divisors: bool = False,
    max_points: int = 512,
    guarded: bool = True,
    conditions: bool = False,
) -> tuple[Expr, list[Expr]]:
    """A random expression and its variables, sorted by name.

    Parameters
    ----------
    max_leaves : int
        The most operators, plus one.
    within : pair of int
        Bounds that no subterm leaves.
    zero_divisors : bool
        Whether the range of a divisor may contain 0; where it is 0 the value is unspecified.
    max_points : int
        The most points of the domain.
    guarded : bool
        Whether divisions by what may be 0 occur in the branches of selections that keep them from being evaluated.
    conditions : bool
        Whether it is a condition, not an integer.
    """
    found = draw(_grown(max_leaves, within, zero_divisors, max_points, guarded))[conditions]
    return found[-1], variables(found[-1:])


bool_expressions = partial(expressions, conditions=True)


def grid(domain: list[Expr]) -> dict[str, NDArray[np.int64]]:
    """The values of each variable at every point of ``domain``, in row-major order."""
    shape = [v.vmax - v.vmin + 1 for v in domain]
    axes = np.indices(shape, dtype=np.int64).reshape(len(shape), prod(shape))
    return {str(v.value): axis + v.vmin for v, axis in zip(domain, axes, strict=True)}
