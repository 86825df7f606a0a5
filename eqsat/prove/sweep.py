"""Every point of a domain, in boxes that fit the cache: is there one at which a condition holds?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import inf, prod
from time import monotonic

import numpy as np

from eqsat.lang.evaluation import Points, evaluate, integers
from eqsat.lang.expr import Expr, variables
from eqsat.lang.traversal import domain_size

#: The most elements of one array while a domain is swept: a few of them fit the cache.
SWEEP = 2**17

#: Bytes that the verdicts on all conditions may take at once.
VERDICTS = 2**25


def sweep(
    wanted: Sequence[Expr], facts: Sequence[Expr] = (), deadline: float = inf
) -> tuple[int, dict[str, int] | None]:
    """Look at every point where all ``facts`` hold for one at which some condition of ``wanted`` holds.

    Parameters
    ----------
    deadline : float
        On the clock of :func:`time.monotonic`; looked at between boxes of 100,000 points.

    Returns
    -------
    (int, dict or None)
        How many points satisfied the facts, up to the one that was found; it has a value for each variable that occurs.

    Raises
    ------
    TimeoutError
        If the deadline passes first.

    >>> from eqsat import var
    >>> i = var("i", 0, 99)
    >>> sweep([(i*2 + 1).eq(7)]), sweep([(i % 3).eq(2)], [i % 6 < 2])
    ((100, {'i': 3}), (34, None))
    """
    # the longest axis is innermost: that is what array operations are fast at
    axes = sorted(variables([*wanted, *facts]), key=lambda v: v.vmax - v.vmin)
    limit = min(SWEEP, max(2**12, VERDICTS // (len(wanted) + 1)))
    points = 0
    for box in _boxes([(v.vmin, v.vmax) for v in axes], limit):
        if monotonic() > deadline:
            raise TimeoutError(f"{domain_size(axes):.2g} points are more than there is time for")
        mesh = _open_mesh(axes, box)
        verdicts = evaluate([*facts, *wanted], mesh, total=True)
        allowed = reduce(np.logical_and, verdicts[: len(facts)], np.asarray(True))
        size = prod(high - low + 1 for low, high in box)
        points += int(np.count_nonzero(allowed)) * (size // allowed.size)
        for verdict in verdicts[len(facts) :]:
            if verdict.any() and (found := verdict & allowed).any():
                place = np.unravel_index(int(np.argmax(found)), found.shape)
                steps = [0] * (len(axes) - len(place)) + [int(step) for step in place]
                return points, {str(v.value): low + step for v, (low, _), step in zip(axes, box, steps, strict=True)}
    return points, None


def _boxes(ranges: list[tuple[int, int]], limit: int) -> Iterator[list[tuple[int, int]]]:
    """Split a box of inclusive ranges, outermost axes first, into boxes of up to ``limit`` points."""
    pieces: list[list[tuple[int, int]]] = []
    for index, (low, high) in enumerate(ranges):
        inner = prod(last - first + 1 for first, last in ranges[index + 1 :])
        rows = min(high - low + 1, max(1, limit // inner))
        pieces.append([(start, min(start + rows - 1, high)) for start in range(low, high + 1, rows)])
    for box in product(*pieces):
        yield list(box)


def _open_mesh(axes: Sequence[Expr], box: Sequence[tuple[int, int]]) -> Points:
    """All combinations of the values in ``box``, each variable on an axis of its own; those with one value on none."""
    mesh: Points = {}
    for index, (variable, (low, high)) in enumerate(zip(axes, box, strict=True)):
        values = integers(low, high + 1)
        inner = len(axes) - 1 - index
        mesh[str(variable.value)] = values.reshape(-1, *[1] * inner) if high > low else values[0]
    return mesh
