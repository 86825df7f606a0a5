"""Buffers: of a constant or of a buffer, along axes where nothing varies, and read where they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eqsat.interop.structure.ranges import names_in, size_of
from eqsat.interop.structure.trees import WORD, Tree, leaf, name_of, node
from eqsat.interop.structure.widths import uncast
from eqsat.lang.validation import shortened


def stored(tree: Tree) -> Tree | None:
    """One STORE, with the ranges of both, for stores one inside the other."""
    match tree.args:
        case (Tree("STORE", (buffer, value, Tree("[]", inner))), Tree("[]", ranges)):
            return node("STORE", buffer, value, node("[]", *inner, *ranges))
        case (Tree("STORE", (_, _, _)), _):
            raise ValueError(
                f"{shortened(str(tree), 80)} is no STORE: stores one inside the other take lists of ranges, as "
                f"STORE(STORE(b, v, [r0]), [r1])"
            )
    return None


def buffered(tree: Tree) -> Tree | None:
    match tree.args:
        case ():
            raise ValueError("BUFFERIZE() stores nothing: it takes a value and a list of ranges, as BUFFERIZE(x, [r0])")
        case (Tree("BUFFERIZE") as value,):
            return value
        case (value, *_) if _is_constant(value):
            return value
        case (Tree("BUFFERIZE", (value, inner)), ranges):
            # the value is stored without the buffer between, unless a range of its would not be one of the outer buffer
            agree = ranges.op == inner.op == "[]" and all(any(_is_same(r, o) for o in ranges.args) for r in inner.args)
            # a range has its extent if either buffer says it
            sized = [next((r for r in inner.args if _is_same(r, o) and size_of(r)), o) for o in ranges.args]
            return node("BUFFERIZE", value, node("[]", *sized)) if agree else None
        case (value, ranges):
            return _along_what_varies(value, ranges.args)
    return None


def _along_what_varies(value: Tree, ranges: Sequence[Tree]) -> Tree | None:
    """A buffer without the axes along which its elements are equal, expanded along these; None if there are none."""
    named = names_in(value, set(map(name_of, ranges)))
    extents = {r: size_of(r) for r in ranges}
    varying = {r for r, n in extents.items() if not n or (n != "1" and (named is None or name_of(r) in named))}
    if len(varying) == len(extents):
        return None
    # a buffer without axes stays: a kernel must store something
    kept = node("BUFFERIZE", value, node("[]", *[r for r in ranges if r in varying]))
    sizes = list(map(_axis_size, ranges))
    inserted = [size if r in varying else leaf(1) for r, size in zip(ranges, sizes, strict=True)]
    return node("EXPAND", node("RESHAPE", kept, node("[]", *inserted)), node("[]", *sizes))


def _axis_size(tree: Tree) -> Tree:
    """The size of the axis along which a buffer has the values of a range: its extent, or else the range."""
    return leaf(size_of(tree) or tree)


def indexed(tree: Tree) -> Tree | None:
    match tree.args:
        # not with a gate as third operand: where that fails the access has another value
        case (array, _) if _is_constant(array):
            return array
        case (Tree("BUFFERIZE", (value, Tree("[]", ranges))), index) if _are_same(ranges, index):
            return value
        case (array, index, *others):
            return replace(tree, args=(*_unexpanded(array, uncast(index)), *others))
    return None


def _is_constant(tree: Tree) -> bool:
    return tree.op == "CONST" or (tree.op == ".cast" and tree.args[0].op == "CONST")


def _are_same(ranges: Sequence[Tree], index: Tree) -> bool:
    """Whether the indices of an access are the ranges that a buffer is written along, with or without their extents."""
    indices = index.args if index.op == "[]" else (index,)
    return len(ranges) == len(indices) and all(map(_is_same, ranges, indices))


def _is_same(one: Tree, other: Tree) -> bool:
    sizes = {size_of(r) for r in (one, other)} - {""}
    named = [not r.op and (WORD.fullmatch(r.text) or size_of(r)) for r in (one, other)]
    return one == other or (all(named) and name_of(one) == name_of(other) != "" and len(sizes) < 2)


def _unexpanded(array: Tree, index: Tree) -> tuple[Tree, Tree]:
    """A buffer and indices whose element is that of ``array``, which may be a buffer expanded along further axes."""
    match array:
        case Tree("EXPAND", (Tree("RESHAPE", (Tree("BUFFERIZE", (_, Tree("[]", ranges))) as kept, inserted)), sizes)):
            axes = list(zip(inserted.args, sizes.args, index.args, strict=False))
            live = [axis for axis in axes if axis[0] != leaf(1)]
            dropped = [place for size, _, place in axes if size == leaf(1)]
            fits = len(inserted.args) == len(sizes.args) == len(index.args) and index.op == "[]"
            same = [size for size, _, _ in live] == list(map(_axis_size, ranges)) == [size for _, size, _ in live]
            # an index that may be invalid says where the access happens
            if fits and same and not any("Invalid" in str(place) for place in dropped):
                return kept, node("[]", *[place for _, _, place in live])
    return array, index
