"""What each operation of HLO reads of its operands, by its shapes and attributes.

:func:`related` returns the relations of one instruction. :data:`OPERATIONS` and :data:`OF_OUTPUT` say in terms of
:mod:`eqsat.interop.relations` what each operation is. What instructions call is for
:mod:`eqsat.interop.indexing_analysis`.

Source: XLA's indexing analysis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from eqsat.extract.graph import reached
from eqsat.interop import relations
from eqsat.interop.hlo import NESTED, UNSIZED, Instruction, Shape, integers
from eqsat.interop.relations import Convolution, GatherDimensions, Relation, Sizes
from eqsat.lang.text import split_list
from eqsat.lang.validation import counted

_ELEMENTWISE = """
    abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp compare complex convert copy cosh
    cosine count-leading-zeros divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one
    logistic map maximum minimum multiply negate not or popcnt power real reduce-precision
    remainder round-nearest-afz round-nearest-even rsqrt select shift-left shift-right-arithmetic
    shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan tanh xor
"""
NULLARY = ("constant", "iota", "parameter", "partition-id", "replica-id")
CALLS = ("fusion", "call")
#: Operations that read elements of tuples.
_TAKE_TUPLES = ("get-tuple-element", "opt-barrier", "conditional")


def related(instruction: Instruction, output: int) -> list[Relation | None]:
    """How each operand is read for one output, None if it is not; ``ValueError`` if the shapes do not fit."""
    opcode, shape = instruction.opcode, instruction.shapes[output]
    if opcode in NULLARY:
        return []
    refuse_unread(instruction, shape)
    if opcode == "tuple":
        return _of_tuple(instruction, output)
    _check_operands(instruction)
    try:
        if opcode in OPERATIONS:
            found: list[Relation | None] = [*OPERATIONS[opcode][1](instruction)]
        else:
            found = OF_OUTPUT[opcode][1](instruction, output)
        for relation in found:
            if relation is not None and relation.output_sizes != shape.sizes:
                raise ValueError(f"its operands and attributes give sizes {list(relation.output_sizes)}, not {shape}")
    except ValueError as error:
        raise ValueError(f"{instruction!r}: {error}") from None
    return found


def _check_operands(instruction: Instruction) -> None:
    """Raise unless an operation is known, has as many operands as it takes, and these are arrays of known sizes."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode not in OPERATIONS and opcode not in OF_OUTPUT:
        raise ValueError(
            f"{instruction!r} is not supported: analyse the instructions before and behind it on their own"
        )
    for operand in operands if opcode not in _TAKE_TUPLES else ():
        if len(operand.shapes) != 1 or operand.shapes[0] == NESTED:
            raise ValueError(f"{instruction!r} has a tuple as operand: read its elements by get-tuple-element")
        refuse_unread(instruction, operand.shapes[0])
    count = OPERATIONS[opcode][0] if opcode in OPERATIONS else OF_OUTPUT[opcode][0]
    if (len(operands) != count) if count >= 0 else (len(operands) < -count):
        least = "at least " if count < 0 else ""
        raise ValueError(f"{instruction!r} has {counted(len(operands), 'operand')}: give {least}{abs(count)}")


def _of_tuple(instruction: Instruction, output: int) -> list[Relation | None]:
    """Each element of a tuple is one operand."""
    given = [[s.sizes for s in operand.shapes] for operand in instruction.operands]
    arrays = {n: [s.sizes] for n, s in enumerate(instruction.shapes) if s not in (NESTED, UNSIZED)}
    if len(given) != len(instruction.shapes) or any(given[n] != sizes for n, sizes in arrays.items()):
        raise ValueError(f"{instruction!r}: its operands do not have the shapes of its result")
    return [relations.identity(arrays[output][0]) if n == output else None for n in range(len(given))]


def selected(user: Instruction, output: int = 0) -> int:
    """Which output of its operand an instruction reads for an output of its own."""
    if user.opcode == "opt-barrier":
        return output
    if user.opcode != "get-tuple-element":
        return 0
    index = user.dimension("index")
    shapes = user.operands[0].shapes
    if not 0 <= index < len(shapes):
        raise ValueError(f"{user.operands[0]!r} has no output {index}")
    refuse_unread(user, shapes[index])
    return index


def refuse_unread(instruction: Instruction, *shapes: Shape) -> None:
    """Raise if one of the shapes that an instruction reads or gives has no sizes."""
    for shape, what in ((NESTED, "a tuple in a tuple"), (UNSIZED, "a size that is not known")):
        if shape in shapes:
            raise ValueError(f"{instruction!r} has {what}: analyse the instructions behind it on their own")


def _elementwise(i: Instruction) -> list[Relation]:
    sizes = i.shapes[0].sizes
    scalars = [()] if i.opcode in ("select", "clamp") else []
    return [relations.scalar(sizes) if own in scalars else relations.identity(own) for own in i.operand_sizes]


def _bitcast_convert(i: Instruction) -> list[Relation]:
    """Where the elements differ in width, the wider one is made of those of one more dimension."""
    (given,), made = i.operand_sizes, i.shapes[0].sizes
    if len(made) > len(given):
        return [relations.broadcasted(given, made, range(len(given)))]
    return [relations.reduced(given, [len(given) - 1]) if len(made) < len(given) else relations.identity(given)]


def _bitcast(i: Instruction) -> list[Relation]:
    given, made = i.operands[0].shapes[0], i.shapes[0]
    if (given.tiles or made.tiles) and replace(given, element=made.element) != made:
        raise ValueError("bitcasts between tiled layouts are not supported: give the operand and the result one layout")
    return [relations.bitcast(given.sizes, given.layout, made.sizes, made.layout)]


def _slice(i: Instruction) -> list[Relation]:
    parts = [integers(part.strip("[]").replace(":", ",")) for part in split_list(i.attribute("slice"))]
    if not all(len(part) in (2, 3) for part in parts):
        raise ValueError("write slice={[start:limit:stride], ...}")
    starts, limits, strides = zip(*[(*part, 1)[:3] for part in parts], strict=True) if parts else ((), (), ())
    return [relations.sliced(i.operand_sizes[0], starts, limits, strides)]


def _pad(i: Instruction) -> list[Relation]:
    low, high, interior = _padding(i.attribute("padding"))
    sizes, value = i.operand_sizes
    return [relations.padded(sizes, low, high, interior), *_scalars(i, [value])]


def _reduce(i: Instruction) -> list[Relation]:
    inputs, initial = _halves(i)
    return [*(relations.reduced(own, i.dimensions("dimensions")) for own in inputs), *_scalars(i, initial)]


def _reduce_window(i: Instruction) -> list[Relation]:
    inputs, initial = _halves(i)
    window = _window(i, len(inputs[0]))
    found = []
    for own in inputs:
        padding = relations.padded(own, window.low, window.high, window.interior)
        windowed = relations.windowed(padding.output_sizes, window.sizes, window.strides, window.dilations)
        found.append(padding.then(windowed))
    return [*found, *_scalars(i, initial)]


class _Window(NamedTuple):
    """The attribute ``window``, by dimension."""

    sizes: Sizes
    strides: Sizes
    #: The distances of the elements that a window combines (``rhs_dilate``).
    dilations: Sizes
    #: Padding of the operand, in front, behind and between its elements (``lhs_dilate`` less 1).
    low: Sizes
    high: Sizes
    interior: Sizes
    #: Whether the window runs backwards (``rhs_reversal``).
    backwards: Sizes


def _window(i: Instruction, rank: int) -> _Window:
    window = dict(re.findall(r"\b(\w+)=([\w\-]+)", i.attribute("window") if rank else ""))

    def per_dimension(key: str, default: str) -> Sizes:
        return integers(window.get(key, "x".join([default] * rank)).replace("x", ","))

    sizes, strides, dilations, steps = [per_dimension(k, "1") for k in ("size", "stride", "rhs_dilate", "lhs_dilate")]
    low, high, _ = _padding(window.get("pad", "x".join(["0_0"] * rank)))
    interior, backwards = [step - 1 for step in steps], per_dimension("rhs_reversal", "0")
    return _Window(sizes, strides, dilations, low, high, interior, backwards)


def _convolution(i: Instruction) -> list[Relation]:
    lhs, rhs = i.operand_sizes
    if not (found := re.fullmatch(r"(\w+)_(\w+)->(\w+)", i.attribute("dim_labels"))):
        raise ValueError("write dim_labels=b01f_01io->b01f")
    image, kernel, output = found.groups()
    rank = len(image) - 2
    window = _window(i, rank)
    # the batch and the features are dimension ``rank`` of the window, which has no padding
    spatial = [int(d) if d.isdecimal() else rank for d in image]
    wide = [[*given, 0] for given in (window.low, window.high, window.interior)]
    if any(len(given) != rank + 1 for given in wide) or len(spatial) != len(lhs) or max(spatial) > rank:
        raise ValueError(f"the labels {found[0]!r} and the window must have an entry for each dimension")
    sizes = dict(zip(kernel, rhs, strict=False))
    if [sizes[d] for d in sorted(sizes) if d.isdecimal()] != list(window.sizes):
        raise ValueError(f"a window of {list(window.sizes)} is not that of a kernel of {list(rhs)}")
    padding = relations.padded(lhs, *[[given[d] for d in spatial] for given in wide])
    counts = ("feature_group_count", "batch_group_count")
    groups = [i.dimension(count) if count in i.attributes else 1 for count in counts]
    convolution = Convolution(image, kernel, output, window.strides, window.dilations, window.backwards, *groups)
    read, weights = relations.convolved(padding.output_sizes, rhs, convolution)
    return [padding.then(read), weights]


def _select_and_scatter(i: Instruction) -> list[Relation]:
    sizes, source, initial = i.operand_sizes
    window = _window(i, len(sizes))
    found = relations.selected_and_scattered(sizes, source, window.sizes, window.strides, window.low)
    return [*found, *_scalars(i, [initial])]


def _dot(i: Instruction) -> list[Relation]:
    lhs, rhs = i.operand_sizes
    batch, contracting = [
        (i.dimensions(f"lhs_{kind}_dims", ()), i.dimensions(f"rhs_{kind}_dims", ()))
        for kind in ("batch", "contracting")
    ]
    return relations.contracted(lhs, rhs, batch, contracting)


def _dynamic_slice(i: Instruction) -> list[Relation]:
    sizes, *offsets = i.operand_sizes
    part = i.dimensions("dynamic_slice_sizes")
    return [relations.dynamically_sliced(sizes, part, i.operands[1:]), *_scalars(i, offsets)]


def _dynamic_update_slice(i: Instruction) -> list[Relation]:
    sizes, update, *offsets = i.operand_sizes
    found = relations.dynamically_updated(sizes, update, i.operands[2:])
    return [relations.identity(sizes), found, *_scalars(i, offsets)]


#: What a scatter calls the attributes of a gather.
_OF_SCATTER = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "input_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
}


def _gather_dimensions(i: Instruction, names: Mapping[str, str]) -> GatherDimensions:
    """The attributes of a gather; ``names`` has what ``i`` calls them, if it is no gather."""

    def given(name: str, otherwise: tuple[int, ...] | None = None) -> tuple[int, ...]:
        return i.dimensions(names.get(name, name), otherwise)

    return GatherDimensions(
        offset_dims=given("offset_dims"),
        collapsed_slice_dims=given("collapsed_slice_dims"),
        start_index_map=given("start_index_map"),
        index_vector_dim=i.dimension("index_vector_dim"),
        operand_batching_dims=given("operand_batching_dims", ()),
        start_indices_batching_dims=given("start_indices_batching_dims", ()),
    )


def _gather(i: Instruction) -> list[Relation]:
    sizes, indices = i.operand_sizes
    dimensions = _gather_dimensions(i, {})
    return relations.gathered(sizes, indices, i.operands[1], i.dimensions("slice_sizes"), dimensions)


def _scatter(i: Instruction) -> list[Relation]:
    """Operands, indices and updates; those of one output are not told apart from those of another."""
    count, rest = divmod(len(i.operands), 2)
    if not rest:
        raise ValueError(
            f"of {counted(len(i.operands), 'operand')} one must be the indices, and half of the others updates"
        )
    dimensions = _gather_dimensions(i, _OF_SCATTER)
    sizes = i.operand_sizes
    same, rows, updates = relations.scattered(sizes[0], sizes[count], sizes[-1], i.operands[count], dimensions)
    if len(set(sizes[:count])) > 1 or len(set(sizes[count + 1 :])) > 1:
        raise ValueError("the operands must have one shape, and the updates another")
    return [*[same] * count, rows, *[updates] * count]


def _mixed(i: Instruction, count: int) -> list[Relation]:
    """Each element reads all of the last ``count`` dimensions."""
    (sizes,), rank = i.operand_sizes, len(i.shapes[0].sizes)
    return [relations.mixed(sizes, i.shapes[0].sizes, range(rank - count, rank))]


def _sort(i: Instruction, output: int) -> list[Relation | None]:
    """Each output has the elements of its operand, in the order of those that are compared."""
    _refuse_other_count(i)
    if i.called is None:
        i.attribute("to_apply")
    compared = reached([i.called.root], lambda part: part.operands) if i.called else set()
    keys = {part.number // 2 for part in compared if part.number is not None}
    dimensions = [i.dimension("dimensions")]
    return [
        relations.mixed(sizes, i.shapes[output].sizes, dimensions) if n in keys or n == output else None
        for n, sizes in enumerate(i.operand_sizes)
    ]


def _all_gather(i: Instruction, output: int) -> list[Relation | None]:
    dimension, made = i.dimension("dimensions"), i.shapes[output].sizes

    def gathered(sizes: Sizes) -> Relation:
        times = made[dimension] // sizes[dimension] if dimension < min(len(made), len(sizes)) else 1
        return relations.repeated(sizes, dimension, times)

    return _own(i, output, gathered)


def _own(i: Instruction, output: int, relation: Callable[[Sizes], Relation]) -> list[Relation | None]:
    """Each output is made of its own operand."""
    _refuse_other_count(i)
    return [relation(sizes) if n == output else None for n, sizes in enumerate(i.operand_sizes)]


def _refuse_other_count(i: Instruction) -> None:
    if len(i.operands) != len(i.shapes):
        raise ValueError(
            f"{counted(len(i.operands), 'operand')} for {counted(len(i.shapes), 'output')}: give one for each"
        )


def _barrier(i: Instruction, output: int) -> list[Relation | None]:
    if [s.sizes for s in i.operands[0].shapes] != [s.sizes for s in i.shapes]:
        raise ValueError("its operand does not have the shapes of its result")
    return [relations.identity(i.shapes[output].sizes)]


def _conditional(i: Instruction, output: int) -> list[Relation | None]:
    """What all elements read; what its branches read is found as for calls."""
    if not i.branches or len(i.operands) != len(i.branches) + 1:
        raise ValueError(
            f"{counted(len(i.operands), 'operand')} for {counted(len(i.branches), 'branch', 'branches')}: "
            "give what decides, then one for each branch, and the branches as branch_computations={one, two}"
        )
    return [*_scalars(i, [i.operands[0].shapes[0].sizes], output), *[None] * len(i.branches)]


def _halves(i: Instruction) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The sizes of the inputs, and of the initial values behind them, one for each."""
    sizes = i.operand_sizes
    inputs, initial = sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]
    if len(inputs) != len(initial):
        raise ValueError(
            f"of {counted(len(sizes), 'operand')} no half is initial values: give as many of these as inputs"
        )
    if len(set(inputs)) > 1:
        raise ValueError(f"the inputs have different sizes: {', '.join(str(list(own)) for own in inputs)}")
    return inputs, initial


def _scalars(i: Instruction, sizes: Sequence[Sequence[int]], output: int = 0) -> list[Relation]:
    """The relations to operands of rank 0, which all elements of the output read."""
    if any(sizes):
        raise ValueError("initial values and offsets must have rank 0, as f32[]")
    return [relations.scalar(i.shapes[output].sizes)] * len(sizes)


def _padding(text: str) -> tuple[list[int], list[int], list[int]]:
    """The low, high and interior padding of each dimension, from a text such as ``1_4_1x4_8``."""
    parts = [integers(part.replace("_", ",")) for part in text.split("x") if part]
    if not all(len(part) in (2, 3) for part in parts):
        raise ValueError(f"cannot parse the padding {text!r}: write it as low_high_interior, joined by x")
    low, high, interior = [[(*part, 0)[n] for part in parts] for n in range(3)]
    return low, high, interior


#: By opcode the number of operands, ``-n`` for ``n`` or more, and how each is read.
OPERATIONS: Mapping[str, tuple[int, Callable[[Instruction], list[Relation]]]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), (-1, _elementwise)),
    "get-tuple-element": (1, lambda i: [relations.identity(i.operands[0].shapes[selected(i)].sizes)]),
    "broadcast": (
        1,
        lambda i: [relations.broadcasted(i.operand_sizes[0], i.shapes[0].sizes, i.dimensions("dimensions", ()))],
    ),
    "transpose": (1, lambda i: [relations.transposed(i.operand_sizes[0], i.dimensions("dimensions"))]),
    "reverse": (1, lambda i: [relations.reversed_along(i.operand_sizes[0], i.dimensions("dimensions"))]),
    "reshape": (1, lambda i: [relations.reshaped(i.operand_sizes[0], i.shapes[0].sizes)]),
    "bitcast": (1, _bitcast),
    "bitcast-convert": (1, _bitcast_convert),
    "slice": (1, _slice),
    "concatenate": (-1, lambda i: relations.concatenated(i.operand_sizes, i.dimension("dimensions"))),
    "pad": (2, _pad),
    "reduce": (-2, _reduce),
    "reduce-window": (-2, _reduce_window),
    "convolution": (2, _convolution),
    "dot": (2, _dot),
    "dynamic-slice": (-1, _dynamic_slice),
    "dynamic-update-slice": (-2, _dynamic_update_slice),
    "gather": (2, _gather),
    "scatter": (-3, _scatter),
    "select-and-scatter": (3, _select_and_scatter),
    "fft": (1, lambda i: _mixed(i, len(i.dimensions("fft_length")))),
    "topk": (1, lambda i: _mixed(i, 1)),
}
#: The same for operations of which each output reads other operands than the next.
OF_OUTPUT: Mapping[str, tuple[int, Callable[[Instruction, int], list[Relation | None]]]] = {
    "sort": (-1, _sort),
    **dict.fromkeys(
        ("all-reduce", "collective-permute", "collective-broadcast"),
        (-1, lambda i, output: _own(i, output, relations.identity)),
    ),
    "all-gather": (-1, _all_gather),
    "opt-barrier": (1, _barrier),
    "conditional": (-1, _conditional),
}
