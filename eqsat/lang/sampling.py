"""Points at which given conditions hold: random ones, corners, and a search where the conditions are tight.

A set of points is a mapping from variable name to a one-dimensional array, all of one length; a :func:`grid` is every
point. The search is local: how far a condition is from holding is itself an expression, and the points reduce that
distance one variable at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf
from time import monotonic
from typing import Any, cast

from eqsat.lang.evaluation import Points, evaluate, integers
from eqsat.lang.expr import Expr
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import Array, finite_part, is_finite, np
from eqsat.lang.traversal import extent, topological

#: How far points lie from zero, or from the end of a range whose other end is infinite: at most.
REACHES = (16, 1000, 2**31, 2**60)

#: How often the search moves every point that does not satisfy the conditions yet.
ROUNDS = 16


def sample(
    variables: Sequence[Expr], conditions: Sequence[Expr], count: int, seed: int, deadline: float = inf
) -> Points:
    """``count`` points within the ranges of ``variables`` at which all ``conditions`` hold, the same for one ``seed``.

    There are fewer if the search finds fewer, as it may by the ``deadline`` on the clock of :func:`time.monotonic`.
    """
    random = np.random.default_rng(seed)
    points = {cast(str, v.value): _candidates(v, count, random) for v in variables}
    if not conditions or not variables:
        return points
    distance = reduce(lambda x, y: x + y, map(violation, conditions))
    _search(points, variables, distance, random, deadline)
    return select(points, np.broadcast_to(all_hold(conditions, points), count))


def grid(names: Sequence[Expr]) -> Points:
    """Every value of every variable, each on an axis of its own, so that they broadcast to the whole domain."""
    axes = np.ix_(*[integers(v.vmin, v.vmax + 1) for v in names])
    return {cast(str, v.value): axis for v, axis in zip(names, axes, strict=True)}


def grid_where(conditions: Sequence[Expr], names: Sequence[Expr]) -> Points:
    """The points of a :func:`grid` at which all conditions hold, in order."""
    axes = grid(names)
    holds = np.nonzero(np.broadcast_to(all_hold(conditions, axes), [*map(extent, names)])) if names else ()
    return {name: values.ravel()[at] for (name, values), at in zip(axes.items(), holds, strict=True)}


def select(points: Mapping[str, Array], chosen: Array | slice) -> Points:
    """The points that a mask, an array of indices or a slice chooses."""
    return {name: values[chosen] for name, values in points.items()}


def all_hold(conditions: Sequence[Expr], points: Mapping[str, Array]) -> Array:
    """At which points all conditions hold; of the shape that the conditions broadcast to."""
    total: Array = np.asarray(True)
    for value in evaluate(conditions, points, total=True):
        total = total & value
    return total


def _candidates(variable: Expr, count: int, random: np.random.Generator) -> Array:
    """Values of a variable: its ends, 0, 1 and -1, numbers near those, and numbers from the whole range."""
    if is_finite(variable.vmin, variable.vmax):
        return _within(variable.vmin, variable.vmax, count, random)
    found = [_within(*finite_part(variable.vmin, variable.vmax, reach), count, random) for reach in REACHES]
    return np.stack(found)[random.integers(len(REACHES), size=count), np.arange(count)]


def _within(low: int, high: int, count: int, random: np.random.Generator) -> Array:
    corners = [x for x in (low, high, 0, 1, -1, low + 1, high - 1) if low <= x <= high]
    kind: Any = np.int64 if max(high, -low) < 2**62 else object
    corner = np.array(corners, dtype=kind)[random.integers(len(corners), size=count)]
    near = np.clip(corner + random.integers(-64, 65, size=count).astype(kind), low, high)
    choice = random.integers(4, size=count)
    if kind is object:
        size = 4 * ((high - low).bit_length() // 32 + 2)
        numbers = [int.from_bytes(random.bytes(size)) for _ in range(count)]
        anywhere = np.array([low + number % (high - low + 1) for number in numbers], dtype=object)
    else:
        anywhere = random.integers(low, high + 1, size=count)
    values = np.where(choice == 0, corner, np.where(choice == 1, near, anywhere))
    # the first point is the lowest corner, the second the highest
    values[:2] = np.array([low, high], dtype=kind)[:count]
    return values


def _search(
    points: Points, variables: Sequence[Expr], distance: Expr, random: np.random.Generator, deadline: float
) -> None:
    """Move the points, in place, until ``distance`` is zero, or the rounds or the time are over."""
    below = set(topological([distance]))
    movable = [v for v in variables if v.vmin < v.vmax and v in below]
    far = evaluate([distance], points, total=True)[0]
    for turn in range(ROUNDS * len(movable)):
        away = np.flatnonzero(far)
        if not len(away) or monotonic() > deadline:
            return
        variable = movable[turn % len(movable)]
        name = cast(str, variable.value)
        here = select(points, away)
        best, least = here[name], far[away]
        for move in _moves(here, variable, distance, least, random):
            there = evaluate([distance], {**here, name: move}, total=True)[0]
            closer = there < least
            best, least = np.where(closer, move, best), np.where(closer, there, least)
        points[name][away] = best
        far[away] = least


def _moves(here: Points, variable: Expr, distance: Expr, far: Array, random: np.random.Generator) -> list[Array]:
    """New values to try: the zero of the secant through two neighbouring points, and a random one."""
    values = here[cast(str, variable.value)]
    low, high = finite_part(variable.vmin, variable.vmax, REACHES[-1])
    step = np.where(values < high, 1, -1)
    slope = evaluate([distance], {**here, cast(str, variable.value): values + step}, total=True)[0] - far
    secant = values - step * (far // np.where(slope == 0, 1, slope))
    moves = [secant, _candidates(variable, len(values), random)]
    return [np.clip(move, low, high).astype(values.dtype) for move in moves]


def violation(condition: Expr) -> Expr:
    """An integer term that is 0 where ``condition`` holds, else how far it is from holding."""
    # per condition: how far it is from holding, and how far from failing
    far: dict[Expr, tuple[Expr, Expr]] = {}
    for term in topological([condition]):
        if not term.is_bool or term.op == "buffer":
            continue
        measure = _MEASURES.get(term.op)
        if term.op == "not":
            far[term] = far[term.args[0]][::-1]
        elif term.op in ("and", "or"):
            (x, not_x), (y, not_y) = far[term.args[0]], far[term.args[1]]
            far[term] = (x + y, minimum(not_x, not_y)) if term.op == "and" else (minimum(x, y), not_x + not_y)
        elif measure and not term.args[0].is_bool:
            far[term] = measure(*term.args)
        else:
            far[term] = where(term, 0, 1), where(term, 1, 0)
    return far[condition][0]


#: By comparison, how far two integers are from its holding, and how far from its failing.
_MEASURES: dict[str, Callable[[Expr, Expr], tuple[Expr, Expr]]] = {
    "lt": lambda x, y: (maximum(x + 1 - y, 0), maximum(y - x, 0)),
    "le": lambda x, y: (maximum(x - y, 0), maximum(y + 1 - x, 0)),
    "eq": lambda x, y: (abs(x - y), where(x.eq(y), 1, 0)),
    "ne": lambda x, y: (where(x.eq(y), 1, 0), abs(x - y)),
}
