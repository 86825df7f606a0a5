"""Which elements of its operands an operation on tensors reads: its indexing maps, from sizes and attributes alone.

A :class:`Relation` holds the maps between the indices of an output and those of one operand, in both directions. Most
are derived from the loop nest of the operation, in which both indices are sums over loop variables. For the map from
one side, its sums are solved for their variables; those that only the other side has are the symbols of the map. So the
two directions are inverse to each other by construction. Reshapes go through the flat row-major index.

Sizes and attributes are those of XLA's operations. Each function raises ``ValueError`` if they do not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import NamedTuple

from eqsat.interop.maps import IndexingMap, RuntimeVariable, within
from eqsat.interop.views import row_major
from eqsat.lang.dtypes import LIMITS
from eqsat.lang.expr import Expr, substitute, var
from eqsat.lang.traversal import variables
from eqsat.lang.validation import counted
from eqsat.theory.forms import LinearForm, atom_form, combination, number, to_expr

Sizes = Sequence[int]


class Dimension(NamedTuple):
    """A dimension of a tensor: its index, a sum over loop variables, and its size."""

    place: LinearForm
    size: int


@dataclass(frozen=True)
class Relation:
    """The maps from an output to one operand, and from the operand to the output; not simplified."""

    to_operand: IndexingMap
    to_output: IndexingMap

    @property
    def output_sizes(self) -> tuple[int, ...]:
        """The shape of the output."""
        return tuple(d.vmax + 1 for d in self.to_operand.dims)

    def then(self, following: Relation) -> Relation:
        """The relation of the operand to the output of an operation on the output of this one."""
        taken = tuple(d.vmax + 1 for d in following.to_output.dims)
        if self.output_sizes != taken:
            raise ValueError(f"an operation gives sizes {list(self.output_sizes)}, and the next takes {list(taken)}")
        return Relation(following.to_operand.then(self.to_operand), self.to_output.then(following.to_output))


def identity(sizes: Sizes) -> Relation:
    """Each element is computed from the same element."""
    loops = _loops(sizes)
    return _related(loops, loops)


def scalar(sizes: Sizes) -> Relation:
    """All elements of the output read the one element of the operand."""
    return _related(_loops(sizes), [])


def broadcasted(sizes: Sizes, output: Sizes, dimensions: Sizes) -> Relation:
    """Dimension ``k`` of the operand is dimension ``dimensions[k]`` of the output; the others repeat it."""
    _check_dimensions(dimensions, len(output))
    if [output[d] for d in dimensions] != list(sizes):
        raise ValueError(f"sizes {list(sizes)} are not those of dimensions {list(dimensions)} of {list(output)}")
    loops = _loops(output)
    return _related(loops, [loops[d] for d in dimensions])


def expanded(sizes: Sizes, output: Sizes) -> Relation:
    """Dimensions of size 1 are repeated."""
    if len(sizes) != len(output) or any(size not in (1, wide) for size, wide in zip(sizes, output, strict=True)):
        raise ValueError(f"only dimensions of size 1 expand: {list(sizes)} does not become {list(output)}")
    loops = _loops(output)
    return _related(loops, [Dimension(number(0), 1) if n == 1 else loop for n, loop in zip(sizes, loops, strict=True)])


def transposed(sizes: Sizes, dimensions: Sizes) -> Relation:
    """Dimension ``k`` of the output is dimension ``dimensions[k]`` of the operand."""
    _check_dimensions(dimensions, len(sizes))
    if len(dimensions) != len(sizes):
        raise ValueError(f"{counted(len(dimensions), 'dimension')} for an operand of {len(sizes)}: give each once")
    loops = _loops(sizes)
    return _related([loops[d] for d in dimensions], loops)


def reversed_along(sizes: Sizes, dimensions: Sizes) -> Relation:
    """The listed dimensions run backwards."""
    _check_dimensions(dimensions, len(sizes))
    loops = _loops(sizes)
    return _related(loops, [_backwards(*loop) if d in dimensions else loop for d, loop in enumerate(loops)])


def sliced(sizes: Sizes, starts: Sizes, limits: Sizes, strides: Sizes | None = None) -> Relation:
    """Per dimension the elements ``start, start + stride, ...`` below ``limit``; strides are 1 if not given."""
    strides = [1] * len(sizes) if strides is None else strides
    _check_ranks(sizes, starts, limits, strides)
    for size, start, limit, stride in zip(sizes, starts, limits, strides, strict=True):
        if not (0 <= start <= limit <= size and stride > 0):
            raise ValueError(f"[{start}:{limit}:{stride}] is no slice of a dimension of size {size}")
    loops = _loops([-((start - limit) // stride) for start, limit, stride in zip(starts, limits, strides, strict=True)])
    parts = zip(loops, starts, strides, sizes, strict=True)
    return _related(loops, [Dimension(i.times(stride).shifted(start), size) for (i, _), start, stride, size in parts])


def padded(sizes: Sizes, low: Sizes, high: Sizes, interior: Sizes | None = None) -> Relation:
    """``low`` and ``high`` elements around each dimension, ``interior`` ones between two; negative ones are cut off."""
    interior = [0] * len(sizes) if interior is None else interior
    _check_ranks(sizes, low, high, interior)
    if min(interior, default=0) < 0:
        raise ValueError(f"padding between elements cannot be negative: {list(interior)}")
    loops = _loops(sizes)
    parts = zip(loops, [between + 1 for between in interior], low, high, strict=True)
    output = [Dimension(i.times(step).shifted(a), (n - 1) * step + 1 + a + b) for (i, n), step, a, b in parts]
    return _related(output, loops)


def concatenated(sizes: Sequence[Sizes], dimension: int) -> list[Relation]:
    """The operands one behind the other."""
    _check_dimensions([dimension], min(map(len, sizes), default=0))
    rests = {(*s[:dimension], *s[dimension + 1 :]) for s in sizes}
    if len(rests) != 1:
        raise ValueError(f"operands {[list(s) for s in sizes]} differ in more than dimension {dimension}")
    starts = [0, *accumulate(s[dimension] for s in sizes)]
    found = []
    for own, start in zip(sizes, starts, strict=False):
        loops = _loops(own)
        placed = Dimension(loops[dimension].place.shifted(start), starts[-1])
        found.append(_related([*loops[:dimension], placed, *loops[dimension + 1 :]], loops))
    return found


def reduced(sizes: Sizes, dimensions: Sizes) -> Relation:
    """The listed dimensions are combined."""
    _check_dimensions(dimensions, len(sizes))
    loops = _loops(sizes)
    return _related([loop for d, loop in enumerate(loops) if d not in dimensions], loops)


def mixed(sizes: Sizes, output: Sizes, dimensions: Sizes) -> Relation:
    """Of the listed dimensions each element of the output reads all; these may have other sizes in the output."""
    _check_dimensions(dimensions, len(sizes))
    _check_ranks(sizes, output)
    loops, inside = _loops(output), _loops(sizes, "w")
    if any(sizes[d] != output[d] for d in range(len(sizes)) if d not in dimensions):
        raise ValueError(f"sizes {list(sizes)} and {list(output)} differ in more than dimensions {list(dimensions)}")
    return _related(loops, [inside[d] if d in dimensions else loop for d, loop in enumerate(loops)])


def repeated(sizes: Sizes, dimension: int, times: int) -> Relation:
    """A dimension of the output is that of the operand, this many times one behind the other."""
    _check_dimensions([dimension], len(sizes))
    apart = [*sizes[:dimension], times, *sizes[dimension:]]
    whole = [size * times if d == dimension else size for d, size in enumerate(sizes)]
    return broadcasted(sizes, apart, [d + (d >= dimension) for d in range(len(sizes))]).then(reshaped(apart, whole))


def windowed(sizes: Sizes, window: Sizes, strides: Sizes, dilations: Sizes) -> Relation:
    """Each element combines a window of the operand; ``dilations`` are the distances of its elements."""
    _check_ranks(sizes, window, strides, dilations)
    loops = _loops([_places(*of) for of in zip(sizes, window, strides, dilations, strict=True)])
    parts = zip(loops, _inside(window, "w"), strides, dilations, sizes, strict=True)
    operand = [Dimension(i.times(stride).plus(w, apart), size) for (i, _), w, stride, apart, size in parts]
    return _related(loops, operand)


def selected_and_scattered(sizes: Sizes, source: Sizes, window: Sizes, strides: Sizes, low: Sizes) -> list[Relation]:
    """The operand, and the source, of which each element is added to one element of a window of the operand.

    Which one that is the operand decides: an element of the output reads all windows that it is in.
    """
    _check_ranks(sizes, source, window, strides, low)
    at = _loops(source)

    def in_window(letter: str) -> list[Dimension]:
        parts = zip(at, _inside(window, letter), strides, low, sizes, strict=True)
        return [Dimension(i.times(stride).plus(w).shifted(-before), size) for (i, _), w, stride, before, size in parts]

    output = in_window("w")
    return [_related(output, operand) for operand in (in_window("v"), at)]


def _places(size: int, extent: int, stride: int, dilation: int) -> int:
    """How many places a window has in a dimension."""
    if min(extent, stride, dilation) < 1 or (extent - 1) * dilation >= size:
        raise ValueError(f"a window of {extent} with stride {stride} and dilation {dilation} does not fit {size}")
    return (size - (extent - 1) * dilation - 1) // stride + 1


@dataclass(frozen=True)
class Convolution:
    """What the dimensions of a convolution are, and how its windows slide.

    ``image``, ``kernel`` and ``output`` have a letter for each of their dimensions: ``b`` for the batch, ``f`` for the
    features (of a kernel ``i`` and ``o``), digits for those that windows slide over. Of these there are ``strides`` and
    ``dilations``, and 1 in ``backwards`` for one that runs backwards in the kernel. A group of output features is made
    of a group of input features, or of the batch.
    """

    image: str
    kernel: str
    output: str
    strides: Sizes
    dilations: Sizes
    backwards: Sizes
    feature_groups: int = 1
    batch_groups: int = 1

    @property
    def spatial(self) -> str:
        """The letters of the dimensions that windows slide over."""
        return "".join(map(str, range(len(self.strides))))

    def check(self, lhs: Sizes, rhs: Sizes) -> None:
        """Raise ``ValueError`` if it is none of an image and a kernel of these sizes."""
        labels = ((self.image, lhs, "bf"), (self.kernel, rhs, "io"), (self.output, self.output, "bf"))
        for own, dimensions, kinds in labels:
            if sorted(own) != sorted(self.spatial + kinds) or len(own) != len(dimensions):
                raise ValueError(
                    f"the labels {own!r} must be each of {self.spatial + kinds!r} once, one for each dimension"
                )
        _check_ranks(self.strides, self.dilations, self.backwards)
        given, kernel = dict(zip(self.image, lhs, strict=True)), dict(zip(self.kernel, rhs, strict=True))
        groups = (self.feature_groups, self.batch_groups)
        if min(groups) != 1 or kernel["o"] % max(groups) or given["b"] % self.batch_groups:
            raise ValueError(f"{groups[0]} groups of features, {groups[1]} of the batch: they do not divide these")
        if given["f"] != kernel["i"] * self.feature_groups:
            raise ValueError(f"{given['f']} features are not {groups[0]} times the {kernel['i']} of the kernel")


def convolved(lhs: Sizes, rhs: Sizes, of: Convolution) -> list[Relation]:
    """The input, without padding, and the kernel of a convolution."""
    of.check(lhs, rhs)
    given, kernel = dict(zip(of.image, lhs, strict=True)), dict(zip(of.kernel, rhs, strict=True))
    count = max(of.feature_groups, of.batch_groups)
    group, batch, features, channels = _loops([count, given["b"] // of.batch_groups, kernel["i"], kernel["o"] // count])
    grouped = [group] if count > 1 else []
    # per dimension the loops that it is made of
    image = {"b": [*grouped[: of.batch_groups - 1], batch], "f": [*grouped[: of.feature_groups - 1], features]}
    weights, output = {"i": [features], "o": [*grouped, channels]}, {"b": [batch], "f": [*grouped, channels]}
    windows = list(zip(of.spatial, of.strides, of.dilations, of.backwards, strict=True))
    at = _loops([_places(given[d], kernel[d], stride, dilation) for d, stride, dilation, _ in windows], "x")
    inside = _loops([kernel[d] for d in of.spatial], "w")
    for (d, stride, dilation, back), x, w in zip(windows, at, inside, strict=True):
        output[d] = [x]
        image[d] = [Dimension(x.place.times(stride).plus(w.place, dilation), given[d])]
        weights[d] = [_backwards(*w) if back else w]
    *operands, made = [
        [part for letter in letters for part in parts[letter]]
        for letters, parts in ((of.image, image), (of.kernel, weights), (of.output, output))
    ]
    found = [_related(made, operand) for operand in operands]
    if count > 1:
        whole = [prod(_sizes(output[letter])) for letter in of.output]
        split = [reshaped(own, _sizes(operand)) for own, operand in zip((lhs, rhs), operands, strict=True)]
        found = [first.then(r).then(reshaped(_sizes(made), whole)) for first, r in zip(split, found, strict=True)]
    return found


def contracted(lhs: Sizes, rhs: Sizes, batch: tuple[Sizes, Sizes], contracting: tuple[Sizes, Sizes]) -> list[Relation]:
    """The operands of a matrix product; the output has the batch dimensions, then the others of lhs, then of rhs."""
    for own, both, summed in zip((lhs, rhs), batch, contracting, strict=True):
        _check_dimensions([*both, *summed], len(own))
    for dims in (batch, contracting):
        if [lhs[d] for d in dims[0]] != [rhs[d] for d in dims[1]]:
            raise ValueError(f"sizes of dimensions {list(dims[0])} and {list(dims[1])} differ: {lhs} and {rhs}")
    output, sums = _loops([lhs[d] for d in batch[0]]), _loops([lhs[d] for d in contracting[0]], "k")
    shared, operands = [*output, *sums], []
    for own, letter, both, summed in zip((lhs, rhs), "lr", batch, contracting, strict=True):
        alone = [d for d in range(len(own)) if d not in (*both, *summed)]
        free = _loops([own[d] for d in alone], letter)
        placed = dict(zip([*both, *summed, *alone], [*shared, *free], strict=True))
        operands.append([placed[d] for d in range(len(own))])
        output += free
    return [_related(output, operand) for operand in operands]


def reshaped(sizes: Sizes, output: Sizes) -> Relation:
    """The same elements in row-major order."""
    if prod(sizes) != prod(output):
        raise ValueError(f"{list(sizes)} has {prod(sizes)} elements, {list(output)} has {prod(output)}")
    return Relation(_flattened(output).then(_digits(sizes)), _flattened(sizes).then(_digits(output)))


def bitcast(sizes: Sizes, layout: Sizes, output: Sizes, output_layout: Sizes) -> Relation:
    """The same elements in the order of memory; layouts begin at the fastest dimension."""
    here = transposed(sizes, layout[::-1])
    there = transposed(output, output_layout[::-1])
    back = Relation(there.to_output, there.to_operand)
    return here.then(reshaped(here.output_sizes, there.output_sizes)).then(back)


def dynamically_sliced(sizes: Sizes, slice_sizes: Sizes, offsets: Sequence[object]) -> Relation:
    """A slice at offsets that are read from rank-0 tensors; all of it is inside the operand."""
    loops = _loops(slice_sizes)
    runtime = _offsets(sizes, slice_sizes, [(o, ()) for o in offsets])
    operand = [Dimension(i.plus(atom_form(r.variable)), n) for (i, _), r, n in zip(loops, runtime, sizes, strict=True)]
    return _related(loops, operand, runtime)


def dynamically_updated(sizes: Sizes, update: Sizes, offsets: Sequence[object]) -> Relation:
    """The relation to the update. As in XLA, it may lead outside of the update: there the element is the old one."""
    loops = _loops(update)
    runtime = _offsets(sizes, update, [(o, ()) for o in offsets])
    output = [Dimension(i.plus(atom_form(r.variable)), n) for (i, _), r, n in zip(loops, runtime, sizes, strict=True)]
    return _related(output, loops, runtime, everywhere=True)


@dataclass(frozen=True)
class GatherDimensions:
    """Which dimensions of the operand, the indices and the output of a gather belong together, by the names of XLA.

    Of the indices, ``index_vector_dim`` holds the offsets in the dimensions ``start_index_map`` of the operand. The
    output has the dimensions ``offset_dims`` of a slice without those that are collapsed, and those of the indices.
    Batching dimensions of the operand are those of the indices with the same entries.
    """

    offset_dims: Sizes
    collapsed_slice_dims: Sizes
    start_index_map: Sizes
    index_vector_dim: int
    operand_batching_dims: Sizes = ()
    start_indices_batching_dims: Sizes = ()

    def kept(self, rank: int) -> list[int]:
        """The dimensions of an operand of ``rank`` dimensions that the output has."""
        without = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return [d for d in range(rank) if d not in without]

    def rows(self, indices: Sizes) -> list[int]:
        """The sizes of the indices but for that of a row, which is an element if there is no such dimension."""
        return [size for d, size in enumerate(indices) if d != self.index_vector_dim]

    def check(self, sizes: Sizes, indices: Sizes, slice_sizes: Sizes) -> None:
        """Raise ``ValueError`` if they do not fit an operand, indices and slices of these sizes."""
        _check_ranks(sizes, slice_sizes)
        _check_ranks(self.operand_batching_dims, self.start_indices_batching_dims)
        collapsed = (*self.collapsed_slice_dims, *self.operand_batching_dims)
        for listed in (collapsed, [*self.operand_batching_dims, *self.start_index_map]):
            _check_dimensions(listed, len(sizes))
        vector, count = self.index_vector_dim, len(self.start_index_map)
        if not 0 <= vector <= len(indices):
            raise ValueError(f"index_vector_dim={vector} is no dimension of indices {list(indices)}")
        _check_dimensions([vector, *self.start_indices_batching_dims], len(indices) + 1)
        if [*indices, 1][vector] != count:
            raise ValueError(
                f"start_index_map has {counted(count, 'entry', 'entries')}, "
                f"which is not size {vector} of {list(indices)}"
            )
        kept = self.kept(len(sizes))
        if len(kept) != len(self.offset_dims) or any(slice_sizes[d] != 1 for d in collapsed):
            raise ValueError("give an offset dimension for each one that is not collapsed; those have slices of size 1")
        _check_dimensions(self.offset_dims, len(self.rows(indices)) + len(kept))


def gathered(
    sizes: Sizes, indices: Sizes, source: object, slice_sizes: Sizes, dimensions: GatherDimensions
) -> list[Relation]:
    """Slices of the operand at offsets that are rows of ``indices``, which ``source`` holds; and those rows."""
    dimensions.check(sizes, indices, slice_sizes)
    kept, rows, starts = dimensions.kept(len(sizes)), dimensions.rows(indices), dimensions.start_index_map
    batch = [d for d in range(len(rows) + len(kept)) if d not in dimensions.offset_dims]
    placed = dict(zip([*dimensions.offset_dims, *batch], [*(slice_sizes[d] for d in kept), *rows], strict=True))
    loops = _loops([placed[d] for d in range(len(placed))])
    at, vector = [loops[d].place for d in batch], dimensions.index_vector_dim

    def element(entry: LinearForm) -> list[LinearForm]:
        return [*at[:vector], entry, *at[vector:]][: len(indices)]

    reads = [(source, element(number(n))) for n in range(len(starts))]
    runtime = _offsets([sizes[d] for d in starts], [slice_sizes[d] for d in starts], reads)
    operand = [number(0)] * len(sizes)
    for dimension, output_dimension in zip(kept, dimensions.offset_dims, strict=True):
        operand[dimension] = loops[output_dimension].place
    batching = zip(dimensions.operand_batching_dims, dimensions.start_indices_batching_dims, strict=True)
    for dimension, of_indices in batching:
        row = of_indices - (of_indices > vector)
        if rows[row : row + 1] != [sizes[dimension]]:
            raise ValueError(f"dimension {dimension} of the operand and {of_indices} of indices differ in their sizes")
        operand[dimension] = at[row]
    for dimension, offset in zip(starts, runtime, strict=True):
        operand[dimension] = operand[dimension].plus(atom_form(offset.variable))
    [(entry, _)] = _loops([len(starts)], "v")
    read = [Dimension(*of) for of in zip(operand, sizes, strict=True)]
    rows_read = [Dimension(*of) for of in zip(element(entry), indices, strict=True)]
    return [_related(loops, read, runtime), _related(loops, rows_read)]


def scattered(
    sizes: Sizes, indices: Sizes, updates: Sizes, source: object, dimensions: GatherDimensions
) -> list[Relation]:
    """The operand, the rows of ``indices``, which ``source`` holds, and the updates, placed where the rows say.

    The dimensions are those of a gather of the updates from the output. Where a row leads a slice outside of the
    output, nothing is updated.
    """
    slice_dims, window = dimensions.kept(len(sizes)), dimensions.offset_dims
    if len(slice_dims) != len(window):
        raise ValueError("give an update_window_dims for each dimension that is not inserted")
    _check_dimensions(window, len(updates))
    inside = dict(zip(slice_dims, [updates[d] for d in window], strict=True))
    gather, _ = gathered(sizes, indices, source, [inside.get(d, 1) for d in range(len(sizes))], dimensions)
    if gather.output_sizes != tuple(updates):
        raise ValueError(f"updates of sizes {list(updates)} are not of sizes {list(gather.output_sizes)}")
    output, rows = _loops(sizes), _loops(indices, "v")
    for one, other in zip(dimensions.operand_batching_dims, dimensions.start_indices_batching_dims, strict=True):
        rows[other] = output[one]
    every = _related(output, rows)
    return [identity(sizes), every, Relation(_any_value(gather.to_output), _any_value(gather.to_operand))]


def _any_value(given: IndexingMap) -> IndexingMap:
    """The map where a runtime variable may have any value: what was its range is a constraint."""
    image = {r.variable: var(str(r.variable.value), *LIMITS[32]) for r in given.runtime}
    inside = [c for r in given.runtime for c in within(image[r.variable], r.variable.vmin, r.variable.vmax)]
    found = given.substituted(image)
    return replace(found, constraints=(*inside, *found.constraints))


def _loops(sizes: Sizes, prefix: str = "i") -> list[Dimension]:
    return [Dimension(atom_form(v), size) for v, size in zip(_dims(sizes, prefix), sizes, strict=True)]


def _dims(sizes: Sizes, prefix: str = "d") -> tuple[Expr, ...]:
    if min(sizes, default=1) < 1:
        raise ValueError(f"a tensor of sizes {list(sizes)} has no elements, so no indices: leave it out")
    return tuple(var(f"{prefix}{n}", 0, size - 1) for n, size in enumerate(sizes))


def _inside(window: Sizes, prefix: str) -> list[LinearForm]:
    """A loop variable per dimension of a window, 0 for one of size 1."""
    return [w if extent > 1 else number(0) for w, extent in _loops(window, prefix)]


def _backwards(index: LinearForm, size: int) -> Dimension:
    return Dimension(index.times(-1).shifted(size - 1), size)


def _sizes(dimensions: Sequence[Dimension]) -> list[int]:
    return [size for _, size in dimensions]


def _related(
    output: Sequence[Dimension],
    operand: Sequence[Dimension],
    runtime: Sequence[RuntimeVariable] = (),
    everywhere: bool = False,
) -> Relation:
    """The relation of two indices; ``everywhere``: also where a loop variable would be outside of its range."""
    return Relation(*[_solved(*ends, runtime, everywhere) for ends in ((output, operand), (operand, output))])


def _solved(
    source: Sequence[Dimension], target: Sequence[Dimension], runtime: Sequence[RuntimeVariable], everywhere: bool
) -> IndexingMap:
    """The map from the index ``source`` to the index ``target``: ``source`` is solved for its loop variables."""
    dims = _dims(_sizes(source))
    values = {r.variable for r in runtime}
    image: dict[Expr, Expr] = {}
    constraints: list[Expr] = []
    for dim, (index, _) in zip(dims, source, strict=True):
        if not (loops := {v: c for v, c in index.terms.items() if v not in values}):
            constraints += within(dim - to_expr(index), 0, 0)
            continue
        loop = min(loops, key=lambda v: abs(loops[v]))
        step = abs(loops[loop])
        rest = atom_form(dim).plus(index.plus(atom_form(loop), -loops[loop]), -1)
        steps = to_expr(rest if loops[loop] > 0 else rest.times(-1))
        image[loop] = steps // step if step > 1 else steps
        constraints += within(steps % step, 0, 0) if step > 1 else []
        constraints += [] if everywhere else within(image[loop], loop.vmin, loop.vmax)
    results = substitute([to_expr(index) for index, _ in target], image)
    if not everywhere:
        bounded = zip(results, _sizes(target), strict=True)
        constraints += [c for result, size in bounded for c in within(result, 0, size - 1)]
    reads = [RuntimeVariable(r.variable, r.hlo, tuple(substitute(r.indices, image))) for r in runtime]
    terms = [*results, *constraints, *(i for r in reads for i in r.indices)]
    symbols = [v for v in variables(terms) if v not in dims and v not in values]
    return IndexingMap(dims, tuple(symbols), tuple(results), tuple(constraints), tuple(reads)).trimmed()


def _offsets(
    sizes: Sizes, slice_sizes: Sizes, reads: Sequence[tuple[object, Sequence[LinearForm]]]
) -> list[RuntimeVariable]:
    """A runtime variable per dimension, its offset, so that a slice of ``slice_sizes`` is inside."""
    _check_ranks(sizes, slice_sizes, reads)
    found = []
    for n, (size, part, (source, indices)) in enumerate(zip(sizes, slice_sizes, reads, strict=True)):
        if not 0 < part <= size:
            raise ValueError(f"a slice of {part} does not fit a dimension of size {size}")
        found.append(RuntimeVariable(var(f"rt{n}", 0, size - part), source, tuple(map(to_expr, indices))))
    return found


def _flattened(sizes: Sizes) -> IndexingMap:
    """The map from an index to the flat row-major one."""
    dims = _dims(sizes)
    flat = combination(zip(map(atom_form, dims), row_major(sizes), strict=True), 0)
    return IndexingMap(dims, (), (to_expr(flat),))


def _digits(sizes: Sizes) -> IndexingMap:
    """The map from the flat row-major index to the index."""
    (flat,) = _dims([prod(sizes)])
    return IndexingMap((flat,), (), tuple(flat // s % n for n, s in zip(sizes, row_major(sizes), strict=True)))


def _check_dimensions(dimensions: Sizes, rank: int) -> None:
    if not all(0 <= d < rank for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions {list(dimensions)} must be different ones of 0 to {rank - 1}")


def _check_ranks(sizes: Sizes, *attributes: Sequence[object]) -> None:
    for given in attributes:
        if len(given) != len(sizes):
            raise ValueError(
                f"{counted(len(given), 'entry', 'entries')} for {counted(len(sizes), 'dimension')}: give one for each"
            )
