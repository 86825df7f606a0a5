"""Tiles through indexing maps: which part of an operand a part of the output reads, and in which steps of memory.

A :class:`Tile` is a box of elements at offsets, with strides. :func:`read_by` finds the tile of an operand that a tile
of the output reads. For utilisation, :func:`elements_read` counts the elements of an operand that are read at all; for
coalescing, :func:`memory_steps` says how far apart in memory neighbouring elements of the output read.

Source: the uses that XLA's indexing analysis names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np

from eqsat.interop.hlo import Shape
from eqsat.interop.indexing import IndexingMap
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, ExprLike, as_expr, brief, replaced, var
from eqsat.lang.ops import INFINITY
from eqsat.lang.sampling import grid
from eqsat.lang.text import numbered
from eqsat.lang.traversal import domain_size, extent, topological, variables
from eqsat.lang.validation import counted, integers_of, require
from eqsat.prove.verify import MOST_POINTS
from eqsat.theory.forms import LinearForm, atom_form, number, to_expr
from eqsat.theory.linear import LinearArithmetic


@dataclass(frozen=True)
class Tile:
    """Elements ``offset + stride*[0, size)`` of each dimension; offsets may be terms (of a program's index).

    Parameters
    ----------
    offsets : sequence of Expr or int
        By dimension, the first index.
    sizes : sequence of int
        By dimension, how many elements, 1 or more.
    strides : sequence of int
        By dimension, the step between them.

    Raises
    ------
    ValueError, TypeError
        If the parts differ in their number of dimensions, a size is not positive, or an offset is no integer term.

    >>> Tile([0, 8], [4, 2], [1, 3]).sizes
    (4, 2)
    """

    offsets: Sequence[ExprLike]
    sizes: Sequence[int]
    strides: Sequence[int]

    def __post_init__(self) -> None:
        for name in ("sizes", "strides"):
            object.__setattr__(self, name, integers_of(getattr(self, name), f"the {name} of a tile"))
        require(self.offsets, Sequence, "the list of offsets of a tile")
        for offset in map(as_expr, self.offsets):
            if offset.is_bool or offset.element:
                raise TypeError(f"the offset {brief(offset)!r} of a tile is no integer")
        if not len(self.offsets) == len(self.sizes) == len(self.strides):
            raise ValueError(
                f"a tile has an offset, a size and a stride per dimension, not {len(self.offsets)}, {len(self.sizes)} "
                f"and {len(self.strides)}"
            )
        if min(self.sizes, default=1) < 1:
            raise ValueError(f"the sizes of a tile are positive, not {list(self.sizes)}")


def read_by(tile: Tile, of: IndexingMap) -> Tile:
    """The elements that ``tile`` reads through ``of``, a map from its tensor; outside of the domain nothing is read.

    Parts of the tile that are outside for all offsets are left out; where only some offsets lead outside it is refused.

    Parameters
    ----------
    tile : Tile
        Elements of the map's tensor.
    of : IndexingMap
        The map to the operand.

    Raises
    ------
    ValueError
        If the elements are not a tile; the message names the index that is in the way, or the runtime variable whose
        value is read at different places for different elements of the tile. If nothing is read it is a
        ``ContradictionError``.

    >>> of = IndexingMap.parse("(d0, d1)[s0] -> (d1, d0*2 + s0), domain: d0 in [0, 63], d1 in [0, 31], s0 in [0, 2]")
    >>> block = var("block", 0, 7)
    >>> read_by(Tile([block*8, 0], [8, 4], [1, 1]), of)
    Tile(offsets=(Expr('0'), Expr('block*16')), sizes=(4, 17), strides=(1, 1))
    """
    require(tile, Tile, "a tile")
    require(of, IndexingMap, "a map")
    if len(tile.sizes) != len(of.dims):
        raise ValueError(
            f"a tile of {counted(len(tile.sizes), 'dimension')} for a map from {len(of.dims)}: give one for each"
        )
    offsets = [as_expr(offset) for offset in tile.offsets]
    given = variables(offsets)
    names = numbered("t", {str(v.value) for v in given})
    steps = [var(name, 0, size - 1) for name, size in zip(names, tile.sizes, strict=False)]
    at = [o + t * stride for o, t, stride in zip(offsets, steps, tile.strides, strict=True)]
    found = _in_digits(IndexingMap(tuple(given), tuple(steps), tuple(at)).then(of).simplify())
    if found.is_empty:
        raise ContradictionError("the tile is outside of the domain of the map: nothing is read")
    if found.constraints or list(found.dims) != given:
        raise ValueError(f"only some elements of the tile read, or at some offsets, as in {found}: that is no tile")
    if moving := _read_along(found, found.symbols).intersection(topological(found.results)):
        name = min(map(str, moving))
        raise ValueError(f"the elements of the tile read different values of {name}: what is read is no tile")
    theory = LinearArithmetic()
    parts = [_progression(theory.form(result), found.symbols) for result in found.results]
    used = [v for result in found.results for v in topological([result]) if v in found.symbols]
    if len(set(used)) != len(used):
        raise ValueError(f"two indices of {found} move together: what is read is no tile")
    offsets_read, sizes, strides = zip(*parts, strict=True) if parts else ((), (), ())
    return Tile(offsets_read, sizes, strides)


def _in_digits(of: IndexingMap) -> IndexingMap:
    """The map with two steps for one that quotients or remainders take apart: 16 elements of rows of 8 are 2 rows."""
    theory = LinearArithmetic()
    for term in topological(of.results):
        if term.op not in ("floordiv", "mod") or term.args[1].op != "const":
            continue
        dividend, divisor = theory.form(term.args[0]), abs(term.args[1].vmin)
        for step in of.symbols:
            digit = divisor // gcd(divisor, dividend.terms.get(step, 0))
            if not 1 < digit < extent(step) or extent(step) % digit:
                continue
            names = numbered("t", {str(v.value) for v in of.variables})
            outer, inner = var(next(names), 0, extent(step) // digit - 1), var(next(names), 0, digit - 1)
            image = {step: outer * digit + inner + step.vmin}
            apart = replace(
                of,
                symbols=tuple(new for old in of.symbols for new in ((outer, inner) if old is step else (old,))),
                results=tuple(replaced(of.results, image)),
                constraints=tuple(replaced(of.constraints, image)),
                runtime=tuple(replace(r, indices=tuple(replaced(r.indices, image))) for r in of.runtime),
            )
            return _in_digits(apart.simplify())
    return of


def _read_along(of: IndexingMap, steps: Iterable[Expr]) -> set[Expr]:
    """The runtime variables of which different values are read where ``steps`` differ."""
    moving, found = {v for v in steps if v.vmin < v.vmax}, set[Expr]()
    while some := {r.variable for r in of.runtime if not moving.isdisjoint(topological(r.indices))} - found:
        # where one value is read may depend on another
        found |= some
        moving |= some
    return found


def _progression(index: LinearForm, steps: Sequence[Expr]) -> tuple[Expr, int, int]:
    """The values of a sum over ``steps`` as an offset, a size and a stride, if they are evenly spaced."""
    moving = {v: c for v, c in index.terms.items() if v in steps}
    first = index
    size, stride = 1, 0
    for v, c in sorted(moving.items(), key=lambda item: abs(item[1])):
        if INFINITY in (-v.vmin, v.vmax):
            raise ValueError(f"{v} has no end: what is read is no tile")
        first = first.plus(atom_form(v), -c).shifted(c * (v.vmin if c > 0 else v.vmax))
        stride = stride or abs(c)
        if c % stride or abs(c) > stride * size:
            raise ValueError(f"the values of {to_expr(index)} are not evenly spaced: what is read is no tile")
        size += abs(c) // stride * (v.vmax - v.vmin)
    offset = to_expr(first)
    if any(v in steps for v in topological([offset])):
        raise ValueError(f"{to_expr(index)} is no sum over the steps of the tile: what is read is no tile")
    return offset, size, stride or 1


def elements_read(of: IndexingMap) -> int:
    """How many different elements the whole domain of a map reads, whatever its runtime variables are.

    Parameters
    ----------
    of : IndexingMap
        The map to the operand.

    Raises
    ------
    ValueError
        If the elements are not a tile, and the domain has no end or is too large to count them.

    >>> elements_read(IndexingMap.parse("(d0, d1) -> (d0*2, d1 floordiv 4), domain: d0 in [0, 4], d1 in [0, 9]"))
    15
    """
    require(of, IndexingMap, "a map")
    if of.is_empty:
        return 0
    if unbounded := [v for v in (*of.dims, *of.symbols) if INFINITY in (-v.vmin, v.vmax)]:
        raise ValueError(f"{unbounded[0]} has no end, so its elements are not counted: give its range")
    whole = Tile([d.vmin for d in of.dims], [extent(d) for d in of.dims], [1] * len(of.dims))
    try:
        return prod(read_by(whole, of).sizes)
    except ContradictionError:
        return 0
    except ValueError as error:
        inputs = [*of.dims, *of.symbols]
        if of.runtime:
            raise ValueError(f"{error}, and how many elements it has is known at run time only") from None
        if domain_size(inputs) > MOST_POINTS:
            raise ValueError(f"{error}, and its elements are too many to count") from None
    *indices, inside = np.broadcast_arrays(*evaluate([*of.results, of.domain], grid(inputs), total=True))
    read = np.stack([*indices, inside])[:-1, inside]
    return len(set(map(tuple, read.T.tolist())))


def memory_steps(of: IndexingMap, shape: Shape) -> tuple[int | None, ...]:
    """How far apart in memory neighbours along each dim read a tensor of ``shape``; None where that varies.

    Tiles of the layout of ``shape`` do not count: the steps are those of its order of dimensions.

    Accesses along a dim of step 1 coalesce; those along a dim of step 0 read one element, or none on an empty domain.

    Parameters
    ----------
    of : IndexingMap
        The map to the operand.
    shape : Shape
        The operand's shape and layout.

    Returns
    -------
    tuple of (int or None)
        By dim of the map, the distance in elements.

    Raises
    ------
    ValueError
        If the map leads to another number of dimensions than ``shape`` has.
    TypeError
        If an argument is of another type.

    >>> transposed = IndexingMap.parse("(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 3]")
    >>> memory_steps(transposed, Shape.parse("f32[4,5]")), memory_steps(transposed, Shape.parse("f32[4,5]{0,1}"))
    ((1, 5), (4, 1))
    """
    require(of, IndexingMap, "a map")
    require(shape, Shape, "a shape")
    if len(of.results) != len(shape.sizes):
        raise ValueError(f"a map to {len(of.results)} dimensions does not lead to {shape}")
    try:
        theory = LinearArithmetic(of.constraints)
    except ContradictionError:
        return (0,) * len(of.dims)
    stride, address = 1, number(0)
    for dimension in shape.layout:
        address = address.plus(theory.form(of.results[dimension]), stride)
        stride *= shape.sizes[dimension]
    return tuple(_step(to_expr(address), d, of) for d in of.dims)


def _step(address: Expr, dim: Expr, of: IndexingMap) -> int | None:
    """By how much ``address`` grows from each value of ``dim`` to the next; None if that varies."""
    if dim.vmin == dim.vmax:
        return 0
    if not _read_along(of, [dim]).isdisjoint(topological([address])):
        return None
    here = var(str(dim.value), dim.vmin, dim.vmax - 1)
    before, after = replaced([address], {dim: here})[0], replaced([address], {dim: here + 1})[0]
    growth = LinearArithmetic().form(after - before)
    return None if growth.terms else growth.constant
