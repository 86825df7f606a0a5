"""Maps of single operations, as the relations of their operands: against what NumPy reads."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from element_pairs import agrees, depends, pad, pairs, turned
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from eqsat.interop import relations
from eqsat.interop.hlo import Shape
from eqsat.interop.indexing import IndexingMap
from eqsat.lang.evaluation import evaluate

SIZES = st.lists(st.integers(1, 4), min_size=0, max_size=3)


@settings(max_examples=15)
@given(SIZES, st.data())
def test_transposes_and_reversals(sizes: list[int], data: Any) -> None:
    order = data.draw(st.permutations(range(len(sizes))))
    agrees(relations.transposed(sizes, order), lambda x: np.transpose(x, order), sizes)
    some = data.draw(st.sets(st.sampled_from(range(len(sizes))))) if sizes else set()
    agrees(relations.reversed_along(sizes, sorted(some)), lambda x: np.flip(x, sorted(some)), sizes)


@settings(max_examples=15)
@given(SIZES, st.data())
def test_reductions_and_broadcasts(sizes: list[int], data: Any) -> None:
    some = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(sizes)))))) if sizes else ())
    agrees(relations.reduced(sizes, some), lambda x: x.sum(axis=some), sizes)
    kept = [d for d in range(len(sizes)) if d not in some]
    small, wide = [sizes[d] for d in kept], [sizes[d] if d in kept else 1 for d in range(len(sizes))]
    broadcast = relations.broadcasted(small, sizes, kept)
    agrees(broadcast, lambda x: np.broadcast_to(x.reshape(wide), sizes), small)
    agrees(relations.expanded(wide, sizes), lambda x: np.broadcast_to(x, sizes), wide)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2)), max_size=2))
def test_slices(parts: list[tuple[int, int, int, int]]) -> None:
    starts, limits = [start for start, _, _, _ in parts], [start + count for start, count, _, _ in parts]
    strides, sizes = [stride for _, _, stride, _ in parts], [a + b + rest for a, b, _, rest in parts]
    chosen = tuple(map(slice, starts, limits, strides))
    agrees(relations.sliced(sizes, starts, limits, strides), lambda x: x[chosen], sizes)


PADS = st.tuples(st.integers(1, 4), st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 2))


@settings(max_examples=20)
@given(st.lists(PADS.filter(lambda p: (p[0] - 1) * (p[3] + 1) + 1 + p[1] + p[2] > 0), min_size=1, max_size=2))
def test_pads(parts: list[tuple[int, int, int, int]]) -> None:
    sizes, low, high, interior = [[part[k] for part in parts] for k in range(4)]
    agrees(relations.padded(sizes, low, high, interior), lambda x: pad(x, low, high, interior), sizes)


WINDOWS = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))


@settings(max_examples=20)
@given(st.lists(WINDOWS.filter(lambda p: (p[1] - 1) * p[3] < p[0]), min_size=1, max_size=2))
def test_windows(parts: list[tuple[int, int, int, int]]) -> None:
    sizes, window, strides, dilations = [[part[k] for part in parts] for k in range(4)]
    rank = len(sizes)

    def windowed(x: Any) -> Any:
        extents = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
        views = sliding_window_view(x, extents)[tuple(slice(None, None, s) for s in strides)]
        inside = views[(..., *(slice(None, None, d) for d in dilations))]
        return inside.sum(axis=tuple(range(rank, 2 * rank)))

    agrees(relations.windowed(sizes, window, strides, dilations), windowed, sizes)


RESHAPES = [
    ([4, 8], [32]),
    ([32], [4, 8]),
    ([4, 8], [2, 4, 4]),
    ([6, 10], [4, 15]),
    ([2, 3, 4], [4, 3, 2]),
    ([], [1, 1]),
    ([1, 5, 1], [5]),
]


@pytest.mark.parametrize(("sizes", "output"), RESHAPES)
def test_reshapes(sizes: list[int], output: list[int]) -> None:
    agrees(relations.reshaped(sizes, output), lambda x: x.reshape(output), sizes)


BITCASTS = [
    ("f32[16,17,3]{2,1,0}", "f32[51,16]{0,1}"),
    ("f32[2,3,4]{1,0,2}", "f32[4,6]{1,0}"),
    ("f32[6,4]{0,1}", "f32[2,3,4]{0,1,2}"),
]


@pytest.mark.parametrize(("here", "there"), BITCASTS)
def test_bitcasts(here: str, there: str) -> None:
    """Element ``e`` of memory stays where it is."""
    one, other = Shape.parse(here), Shape.parse(there)

    def places(shape: Shape) -> Any:
        order = shape.layout[::-1]
        memory = np.arange(prod(shape.sizes)).reshape([shape.sizes[d] for d in order])
        return np.transpose(memory, np.argsort(order))

    where = {int(place): e for e, place in enumerate(places(one).ravel())}
    wanted = {(o, where[int(place)]) for o, place in enumerate(places(other).ravel())}
    relation = relations.bitcast(one.sizes, one.layout, other.sizes, other.layout)
    assert pairs(relation.to_operand.simplify(), other.sizes, one.sizes) == wanted
    assert turned(pairs(relation.to_output.simplify(), one.sizes, other.sizes)) == wanted


def test_concatenations() -> None:
    shapes = [(2, 3, 2), (2, 1, 2), (2, 4, 2)]
    for n, relation in enumerate(relations.concatenated(shapes, 1)):
        agrees(
            relation,
            lambda x, n=n: np.concatenate([x if k == n else np.zeros(s) for k, s in enumerate(shapes)], 1),
            shapes[n],
        )


DOTS = [
    # shapes, batch and contracting dimensions, the product by numpy.einsum
    ((2, 3, 4), (2, 4, 5), ([0], [0]), ([2], [1]), "bmk,bkn->bmn"),
    ((3, 4), (4, 5), ([], []), ([1], [0]), "mk,kn->mn"),
    ((4, 2, 3), (5, 3, 2), ([1], [2]), ([2], [1]), "mbk,nkb->bmn"),
    ((2, 3), (2, 3), ([], []), ([0, 1], [0, 1]), "ij,ij->"),
    ((2,), (3,), ([], []), ([], []), "i,j->ij"),
]


@pytest.mark.parametrize(("lhs", "rhs", "batch", "contracting", "product"), DOTS)
def test_dots(lhs: Any, rhs: Any, batch: Any, contracting: Any, product: str) -> None:
    left, right = relations.contracted(lhs, rhs, batch, contracting)
    agrees(left, lambda x: np.einsum(product, x, np.ones(rhs, np.int64)), lhs)
    agrees(right, lambda x: np.einsum(product, np.ones(lhs, np.int64), x), rhs)


def test_dynamic_slices_and_updates() -> None:
    for offsets in ((0, 0), (2, 1), (1, 3)):
        values = {f"rt{n}": offset for n, offset in enumerate(offsets)}
        place = tuple(slice(o, o + n) for o, n in zip(offsets, (3, 2), strict=True))
        sliced = relations.dynamically_sliced([5, 5], [3, 2], ["a", "b"])
        wanted = depends(lambda x, place=place: x[place], [5, 5])
        assert pairs(sliced.to_operand, [3, 2], [5, 5], values) == wanted
        assert turned(pairs(sliced.to_output, [5, 5], [3, 2], values)) == wanted

        def updated(x: Any, place: Any = place) -> Any:
            whole = np.zeros((5, 5), np.int64)
            whole[place] = x
            return whole

        update = relations.dynamically_updated([5, 5], [3, 2], ["a", "b"])
        assert turned(pairs(update.to_output, [3, 2], [5, 5], values)) == depends(updated, [3, 2])
        # from the output the map says more: composing it with a map of the update leaves what is inside
        inside = update.to_operand.then(relations.identity([3, 2]).to_operand)
        assert pairs(inside, [5, 5], [3, 2], values) == depends(updated, [3, 2])


GATHERS = [
    # sizes, indices, slice_sizes, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim
    ([5, 6, 3], [4, 2], [2, 3, 3], [1, 2, 3], [], [0, 1], 1),
    ([5, 6], [4], [1, 6], [1], [0], [0], 1),
    ([5, 6], [2, 3], [2, 1], [0], [1], [1, 0], 0),
    ([7], [2, 3, 1], [1], [], [0], [0], 2),
]


@pytest.mark.parametrize(("sizes", "indices", "part", "offsets", "collapsed", "starts", "vector"), GATHERS)
def test_gathers(sizes: Any, indices: Any, part: Any, offsets: Any, collapsed: Any, starts: Any, vector: int) -> None:
    """Each element of the output is where the definition of XLA's gather says."""
    dimensions = relations.GatherDimensions(offsets, collapsed, starts, vector)
    operand, rows = relations.gathered(sizes, indices, "indices", part, dimensions)
    random = np.random.default_rng(0)
    shape = indices if vector < len(indices) else [*indices, 1]
    most = np.array([sizes[d] - part[d] for d in starts])
    starting = np.moveaxis(random.integers(0, most + 1, [*(np.delete(shape, vector)), len(starts)]), -1, vector)
    for point in np.ndindex(*operand.output_sizes):
        batch = [p for d, p in enumerate(point) if d not in offsets]
        start = starting[(*batch[:vector], slice(None), *batch[vector:])]
        wanted = [0] * len(sizes)
        for d, o in zip([d for d in range(len(sizes)) if d not in collapsed], offsets, strict=True):
            wanted[d] = point[o]
        for d, value in zip(starts, start, strict=True):
            wanted[d] += int(value)
        values: dict[str, int] = {f"d{n}": p for n, p in enumerate(point)}
        for r in operand.to_operand.runtime:
            element = [int(i) for i in evaluate(r.indices, values)]
            values[str(r.variable)] = int(starting.reshape(indices)[tuple(element)])
        assert [int(i) for i in evaluate(operand.to_operand.results, values)] == wanted
    read = pairs(rows.to_operand, rows.output_sizes, indices)
    assert turned(pairs(rows.to_output, indices, rows.output_sizes)) == read
    assert {e for _, e in read} == set(range(prod(indices)))


SCATTERS = [
    # sizes, indices, updates, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, index_vector_dim
    ([5, 3], [4, 1], [4, 3], [1], [0], [0], 1),
    ([5, 4], [3, 2], [3], [], [0, 1], [1, 0], 1),
    ([6, 4], [2, 3], [3, 2, 3], [1, 2], [], [0, 1], 0),
    ([6], [3], [3, 2], [1], [], [0], 1),
]


@pytest.mark.parametrize(("sizes", "indices", "updates", "window", "inserted", "starts", "vector"), SCATTERS)
def test_scatters(sizes: Any, indices: Any, updates: Any, window: Any, inserted: Any, starts: Any, vector: int) -> None:
    """Each update is where the definition of XLA's scatter says; one that leads outside is nowhere."""
    dimensions = relations.GatherDimensions(window, inserted, starts, vector)
    same, rows, placed = relations.scattered(sizes, indices, updates, "indices", dimensions)
    assert pairs(same.to_operand, sizes, sizes) == {(n, n) for n in range(prod(sizes))}
    everything = {(o, e) for o in range(prod(sizes)) for e in range(prod(indices))}
    assert pairs(rows.to_operand, sizes, indices) == turned(pairs(rows.to_output, indices, sizes)) == everything
    shape = indices if vector < len(indices) else [*indices, 1]
    starting = np.random.default_rng(0).integers(-1, 6, shape)
    kept = [d for d in range(len(sizes)) if d not in inserted]
    extents = {d: updates[w] for d, w in zip(kept, window, strict=True)}

    def values(of: IndexingMap, point: dict[str, int]) -> dict[str, int]:
        read = {
            str(r.variable): starting.reshape(indices)[tuple(map(int, evaluate(r.indices, point)))] for r in of.runtime
        }
        return point | {name: int(value) for name, value in read.items()}

    wanted, forward, backward = set(), set(), set()
    for update in np.ndindex(*updates):
        batch = [p for d, p in enumerate(update) if d not in window]
        start = dict(zip(starts, starting[(*batch[:vector], slice(None), *batch[vector:])], strict=True))
        inside = {d: update[w] for d, w in zip(kept, window, strict=True)}
        if all(0 <= start.get(d, 0) <= sizes[d] - extents.get(d, 1) for d in range(len(sizes))):
            wanted.add((tuple(int(start.get(d, 0)) + inside.get(d, 0) for d in range(len(sizes))), update))
        of = placed.to_output.simplify()
        at = values(of, {f"d{n}": p for n, p in enumerate(update)})
        if evaluate([of.domain], at)[0]:
            backward.add((tuple(map(int, evaluate(of.results, at))), update))
    of = placed.to_operand.simplify()
    for output in np.ndindex(*sizes):
        for free in np.ndindex(*[s.vmax + 1 for s in of.symbols]):
            point = {f"d{n}": p for n, p in enumerate(output)} | {
                str(s): p for s, p in zip(of.symbols, free, strict=True)
            }
            at = values(of, point)
            if evaluate([of.domain], at)[0]:
                forward.add((output, tuple(map(int, evaluate(of.results, at)))))
    assert wanted == forward == backward
