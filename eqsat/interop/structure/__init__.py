"""The normal form of the operations around index expressions, in the notation of tensor compilers.

:func:`normalized` rewrites a tree (:mod:`eqsat.interop.structure.trees`) from the leaves up, each operation by its own
function in :data:`RULES`, until nothing changes:

* ``widths``: an index without a width gets the least that holds its values; casts go from what uses an index;
* ``ranges``: along which ranges a value varies; loops with no or one value vanish, and reductions of equal values;
* ``buffers``: a buffer of a constant is the constant; of an axis along which nothing varies, one element is kept;
* ``accesses``: index expressions go through :func:`eqsat.optimize`; one that gets no cheaper stays as written;
* here: loops that end one inside the other end together; a large reduction becomes two, and more if the first of
  these is large (:func:`eqsat.kernels.staging.two_stages`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from eqsat.extract.cost import CostModel
from eqsat.interop.structure.accesses import with_access, with_gate_inside
from eqsat.interop.structure.buffers import buffered, indexed, stored
from eqsat.interop.structure.ranges import LOOPS, declared, extent_of, is_long, names_in, size_of
from eqsat.interop.structure.trees import INVALID_INDEX, Tree, leaf, name_of, node
from eqsat.interop.structure.widths import BINARY, cast_to, computed, constant, is_cast, launched, typed, uncast
from eqsat.kernels.staging import SPLIT_LIMITS, SplitLimits, TwoStages, two_stages
from eqsat.lang.costs import LATENCY
from eqsat.lang.expr import digits
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.validation import shortened
from eqsat.optimizer.front import variables_of

_SHAPED = re.compile(r"([A-Za-z_]\w*)\[(\d+(?:,\s*\d+)*)\]")
_AXES = re.compile(r"axes=\[(\d+(?:,\s*\d+)*)\]")
#: By reduction, the operation on a value and a number N that reduces N equal values; none if that is the value.
_REPEATED = {"ADD": "Mul", "MUL": "Pow", "MAX": "", "MIN": ""}
_REDUCED = {"ADD": "sum_over", "MUL": "prod_over", "MAX": "max_over", "MIN": "min_over"}


def _looped(tree: Tree) -> Tree | None:
    """A loop whose index has the width of its end; one with at most one value is the constant 0 of its type."""
    found = launched(tree) or tree
    loop = uncast(found)
    if is_long(loop):
        return found
    zero = node("CONST", leaf(0), *loop.args[1:])
    return zero if loop is found else cast_to(zero, "Index")


def _ended(tree: Tree) -> Tree | None:
    """One END for loops that end one inside the other, without loops of no or one value."""
    match tree.args:
        case (value,):
            return replace(tree, args=(uncast(value),))
        case (Tree("END", (value, inner)), Tree("[]", ranges)):
            return node("END", value, node("[]", *inner.args, *ranges))
        case (value, Tree("[]", ranges)):
            live = [r for r in ranges if is_long(r)]
            return node("END", uncast(value), node("[]", *live)) if live else uncast(value)
    raise ValueError(
        f"{shortened(str(tree), 80)} is no END: it takes what ends and a list of ranges, as END(x, [r0, r1])"
    )


def _reduced(tree: Tree) -> Tree | None:
    """A reduction over the ranges along which its value varies; of a large array over axes, in two stages."""
    match tree.args:
        case (Tree("REDUCE", (value, Tree("[]", inner), same)), Tree("[]", ranges), op) if (
            # the value of a reduction does not vary along a range of its own
            same == op and not ({*map(name_of, inner)} & {*map(name_of, ranges)} - {""})
        ):
            return node("REDUCE", value, node("[]", *inner, *ranges), op)
        case (_, Tree("[]", ranges), op) if any(extent_of(r) == 0 for r in ranges):
            return node("CONST", leaf(REDUCTIONS[_REDUCED[op.text]].identity)) if op.text in _REDUCED else None
        case (value, Tree("[]", ranges), op):
            return _over_what_varies(value, ranges, op)
        case (data, axes, *operator) if len(operator) < 2:
            return _in_two_stages(data, axes, operator)
    return None


def _over_what_varies(value: Tree, ranges: Sequence[Tree], op: Tree) -> Tree:
    """A reduction over the ranges along which its value varies, and of the equal values along the others."""
    named = names_in(value, set(map(name_of, ranges))) if op.text in _REPEATED else None
    repeated = _REPEATED.get(op.text, "")
    long = [r for r in ranges if is_long(r)]
    # of no values there is a sum, but no maximum
    same = set() if named is None else {r for r in long if size_of(r, bool(repeated)) and name_of(r) not in named}
    live = [r for r in long if r not in same]
    found = node("REDUCE", value, node("[]", *live), op) if live else value
    if not repeated:
        return found
    count = prod([extent_of(r) or 1 for r in long if r in same])
    counts = [node("CONST", leaf(digits(count)))] if count > 1 else []
    for number in [*counts, *[leaf(size_of(r)) for r in long if r in same and not extent_of(r)]]:
        found = node(repeated, found, number)
    return found


def _in_two_stages(data: Tree, axes: Tree, operator: Sequence[Tree]) -> Tree | None:
    array, listed = _SHAPED.fullmatch(data.text), _AXES.fullmatch(axes.text)
    if not array or not listed:
        return None
    shape, over = [[constant(n).vmin for n in text.split(",")] for text in (array[2], listed[1])]
    found = two_stages(shape, over)
    return None if found is None else in_stages(array[1], found, *operator)


def in_stages(
    name: str, found: TwoStages, *operator: Tree, expanded: Iterable[int] = (), limits: SplitLimits = SPLIT_LIMITS
) -> Tree:
    """The reduction of an array in stages, each by the ``operator`` if one is given.

    If the first of the two stages is large itself, it is split too, but not at axes of the array that are ``expanded``.
    """
    shape, axes, copies = found.split_shape, found.first_axes, found.shifted(expanded)
    if (further := two_stages(shape, axes, copies, limits)) is not None:
        first = in_stages(name, further, *operator, expanded=copies, limits=limits)
    else:
        first = node("REDUCE", node("RESHAPE", leaf(name), leaf(list(shape))), leaf(f"axes={list(axes)}"), *operator)
    return node("REDUCE", node("CONTIGUOUS", first), leaf(f"axes=[{found.last_axis}]"), *operator)


#: What an operation becomes; ``None``, or an equal tree, if it stays.
RULES: Mapping[str, Callable[[Tree], Tree | None]] = {
    **dict.fromkeys(("CONST", "DEFINE_VAR", "VCONST"), typed),
    **dict.fromkeys((*BINARY, "WHERE", "VECTORIZE", "BIND"), computed),
    "SPECIAL": launched,
    **dict.fromkeys(LOOPS, _looped),
    "END": _ended,
    "REDUCE": _reduced,
    "STORE": stored,
    "BUFFERIZE": buffered,
    "INDEX": indexed,
    ".cast": lambda tree: INVALID_INDEX if is_cast(tree) and tree.args[0] == INVALID_INDEX else None,
    "SINK": lambda tree: replace(tree, args=tuple(map(uncast, tree.args))),
}


def normalized(
    tree: Tree, ranges: Mapping[str, tuple[int, int]] | None = None, *, cost: CostModel = LATENCY, **options: Any
) -> Tree:
    """The normal form of a tree; see the head of this module.

    Variables of index expressions have the inclusive ``ranges``, others those of 32-bit integers; the options are those
    of :func:`eqsat.optimize`.

    >>> print(normalized(Tree.parse("INDEX(buf, WHERE(r0 < 5, (r0*8 + r1)//8*8, Invalid))"), {"r1": (0, 7)}))
    INDEX(buf, r0*8, gate=(r0 < 5))
    """
    given = variables_of({} if ranges is None else ranges)
    known = {**declared(tree), **{name: (variable.vmin, variable.vmax) for name, variable in given.items()}}

    def visit(tree: Tree, in_list: bool) -> Tree:
        args = [visit(a, tree.op == "[]") for a in tree.args]
        # what takes a list takes its ranges, indices and sizes as they are
        tree = replace(tree, args=tuple(map(uncast, args) if tree.op == "[]" else args))
        while tree.op in RULES:
            # a range in a list is one to end, to reduce or to store along, not a value
            found = launched(tree) if in_list and tree.op in LOOPS else RULES[tree.op](tree)
            if found is None or found == tree:
                break
            tree = found
        if tree.op == "INDEX":
            tree = with_gate_inside(tree)
        if tree.op != "INDEX" or len(tree.args) != 2:
            return tree
        tree = with_access(tree, known, cost, options)
        # indices that became cheap may be those that the buffer is written at
        return indexed(tree) or tree

    return visit(tree, False)
