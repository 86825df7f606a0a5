"""Ranges of loops: how many values they have, and along which of them a value varies.

A value varies along the ranges that it names, as ``load(r0)`` does; ``r0``, ``r1``, ... are ranges, and so are those of
the buffer, letters that are literals in rules (``c``) are constants, and any other name may vary along every range. A
reduction does not vary along its own ranges; an element ``INDEX(buf, r0)`` varies as its indices do. The extent of a
range may be a variable that is never negative, as in ``r1(n)``.
"""

from __future__ import annotations

import re

from eqsat.egraph.patterns import LITERALS
from eqsat.extract.graph import reached
from eqsat.interop.structure.trees import WORD, Tree, leaf, name_of, node
from eqsat.interop.structure.widths import constant, value_of

_EXTENT = re.compile(r"[A-Za-z_]\w*\((\d+)\)")
#: A range whose extent is a variable.
_SYMBOLIC_EXTENT = re.compile(r"r\d+\(([A-Za-z_]\w*)\)")
_UNCALLED = re.compile(r"[A-Za-z_]\w*\b(?!\()")
_RANGE = re.compile(r"r\d+")
#: Operations that are loops, whose ranges have no name.
LOOPS = ("RANGE", "new_range")
_UNNAMED = re.compile(r"\b(?:RANGE|new_range)\(")


def extent_of(tree: Tree) -> int | None:
    """How many values a range has at most, or None if that is not known; a constant is a range of one value."""
    if tree.op == "CONST":
        return 1
    if tree.op in LOOPS and tree.args:
        end = value_of(tree.args[0])
        return max(0, end.vmin) if end is not None and end.vmin == end.vmax else None
    sized = _EXTENT.fullmatch(tree.text)
    return constant(sized[1]).vmin if sized else None


def is_long(tree: Tree) -> bool:
    extent = extent_of(tree)
    return extent is None or extent > 1


def size_of(tree: Tree, symbolic: bool = True) -> str:
    """How many values a range has, a number or, if ``symbolic``, a variable; empty if that is not known."""
    if (extent := extent_of(tree)) is not None:
        return str(extent)
    sized = _SYMBOLIC_EXTENT.fullmatch(tree.text)
    return sized[1] if sized and symbolic else ""


def names_in(value: Tree, ranges: set[str]) -> set[str] | None:
    """The names in a value, among them the ranges along which it varies.

    ``None`` if it may vary along any range: if a name is not known, or a range in it has no name.
    """
    if _UNNAMED.search(f"{value.op}({value.text}"):
        return None
    match value:
        case Tree("CONST" | "VCONST" | "DEFINE_VAR"):
            return set()
        case Tree(".cast", (inner, _)):
            return names_in(inner, ranges)
        case Tree("REDUCE", (inner, Tree("[]", bound), _)) | Tree("BUFFERIZE", (inner, Tree("[]", bound))):
            # its ranges end there
            names = names_in(inner, ranges | set(map(name_of, bound)))
            return None if names is None else names - set(map(name_of, bound))
        case Tree("INDEX", (Tree("", _, array), *indices)) if WORD.fullmatch(array):
            # an element of an array varies as its indices do, and as the condition under which it is loaded
            return names_in(
                node("[]", *[leaf(a.text.removeprefix("gate=")) if not a.op else a for a in indices]), ranges
            )
    if value.op:
        parts = [names_in(a, ranges) for a in value.args]
        return None if None in parts else set().union(*[part for part in parts if part is not None])
    # r1(8) is a range with its extent, and no call
    names = set(_UNCALLED.findall(value.text)) | ranges.intersection(WORD.findall(value.text))
    known = {n for n in names if n in ranges or n in LITERALS or _RANGE.fullmatch(n)}
    return names if names == known else None


def declared(tree: Tree) -> dict[str, tuple[int, int]]:
    """The ranges that leaves such as ``r1(8)`` give variables; the widest, if they give several."""
    found: dict[str, tuple[int, int]] = {}
    for part in reached([tree], lambda part: part.args):
        sized = _EXTENT.fullmatch(part.text)
        if sized and (extent := constant(sized[1]).vmin):
            name = name_of(part)
            found[name] = (0, max(extent - 1, found.get(name, (0, 0))[1]))
    return found
