"""Lanes: which indices of an unrolled loop are neighbours in memory, so that one vector instruction loads them all.

Unrolling (:func:`eqsat.codegen.loops.expand`) makes one index per lane. Whether they are neighbours is asked of the
e-graph: the distance of each from the one before is a root, and is a literal if it is one at all. How an index is
written, and in which order its sums stand, does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eqsat.lang.expr import Expr, const, topological
from eqsat.optimizer.front import optimize


@dataclass(frozen=True)
class Run:
    """Lanes ``first``, ``first + 1``, ... that index neighbours, ``length`` of them, from ``base`` on."""

    first: int
    length: int
    base: Expr


def contiguous_runs(lanes: Sequence[Expr]) -> list[Run]:
    """All lanes as runs of neighbours, as long as they get, in order.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.codegen.loops import expand
    >>> i, u = var("i", 0, 9), var("u", 0, 3)
    >>> [run.length for run in contiguous_runs(expand(i*4 + u, [u]))]
    [4]
    >>> [run.length for run in contiguous_runs(expand(i*4 + u//2*8 + u%2, [u]))]
    [2, 2]
    >>> [run.length for run in contiguous_runs([i*4, u, u + 1])]
    [1, 2]
    """
    distances = [lane - before for before, lane in pairwise(lanes)]
    # how far apart two places are that floats decide is not known
    known = [d for d in distances if not any(t.element for t in topological([d]))]
    found = dict(zip(known, optimize(known).exprs if known else (), strict=True))
    steps = [None, *map(found.get, distances)]
    runs: list[Run] = []
    # there is no step without a lane
    for lane, (index, step) in enumerate(zip(lanes, steps, strict=False)):
        if step is const(1):
            runs[-1] = Run(runs[-1].first, runs[-1].length + 1, runs[-1].base)
        else:
            runs.append(Run(lane, 1, index))
    return runs
