"""Which elements of two tensors a map joins, and which a function of NumPy reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from eqsat.interop.indexing import IndexingMap
from eqsat.interop.relations import Relation
from eqsat.lang.evaluation import evaluate

Pairs = set[tuple[int, int]]


def pairs(
    of: IndexingMap, source: Sequence[int], target: Sequence[int], values: Mapping[str, int] | None = None
) -> Pairs:
    """Which flat indices of two tensors of these sizes a map joins, for these values of its runtime variables."""
    values = values or {}
    free = [v for v in of.variables if str(v) not in values]
    axes = np.meshgrid(*(np.arange(v.vmin, v.vmax + 1) for v in free), indexing="ij")
    points = {**values, **{str(v): axis.ravel() for v, axis in zip(free, axes, strict=True)}}
    inside, *indices = np.broadcast_arrays(*evaluate([of.domain, *of.dims, *of.results], points), np.zeros(1))[:-1]
    here, there = [i[inside] for i in indices[: len(of.dims)]], [i[inside] for i in indices[len(of.dims) :]]
    count = int(inside.sum())
    return set(zip(flat(here, source, count), flat(there, target, count), strict=True))


def flat(indices: Sequence[Any], sizes: Sequence[int], count: int) -> list[int]:
    if not sizes:
        return [0] * count
    return [int(i) for i in np.ravel_multi_index(tuple(i.astype(np.int64) for i in indices), tuple(sizes))]


def depends(function: Callable[[Any], Any], sizes: Sequence[int]) -> Pairs:
    """Which elements a linear function of a tensor reads: those that change its elements."""
    size = prod(sizes)
    columns = [np.ravel(function(one.reshape(sizes))) for one in np.eye(size, dtype=np.int64)]
    return {(int(o), e) for e, column in enumerate(columns) for o in np.flatnonzero(column)}


def turned(found: Pairs) -> Pairs:
    return {(b, a) for a, b in found}


def agrees(relation: Relation, function: Callable[[Any], Any], sizes: Sequence[int]) -> None:
    """Both maps, as they are made and simplified, say what ``function`` reads."""
    wanted, output = depends(function, sizes), relation.output_sizes
    for form in (relation, Relation(relation.to_operand.simplify(), relation.to_output.simplify())):
        assert pairs(form.to_operand, output, sizes) == wanted
        assert turned(pairs(form.to_output, sizes, output)) == wanted


def pad(x: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Any:
    """XLA's padding in terms of NumPy's: spread, pad, cut."""
    spread = np.zeros([(n - 1) * (step + 1) + 1 for n, step in zip(x.shape, interior, strict=True)], x.dtype)
    spread[tuple(slice(None, None, step + 1) for step in interior)] = x
    wide = np.pad(spread, [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)])
    cut = zip(low, high, wide.shape, strict=True)
    return wide[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in cut)]
