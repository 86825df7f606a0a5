"""Tiles: what of an operand a tile reads, how many elements that are, and how these lie in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from element_pairs import pairs

from eqsat.interop import relations
from eqsat.interop.hlo import Shape
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.maps import RuntimeVariable
from eqsat.interop.tiles import Tile, elements_read, memory_steps, read_by
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import const, var

BLOCK = var("block", 0, 3)

TILES = [
    # a map, a tile of its dims, the tile that it reads
    (
        "(d0, d1) -> (d1, d0), domain: d0 in [0, 31], d1 in [0, 15]",
        Tile([BLOCK * 8, 2], [8, 4], [1, 3]),
        ("2, block*8", (4, 8), (3, 1)),
    ),
    # a matrix product reads whole rows
    (
        "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 31], d1 in [0, 15], s0 in [0, 63]",
        Tile([BLOCK * 8, 2], [8, 4], [1, 1]),
        ("block*8, 0", (8, 64), (1, 1)),
    ),
    # windows overlap
    (
        "(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 15], s0 in [0, 2]",
        Tile([BLOCK * 4], [4], [1]),
        ("block*8", (9,), (1,)),
    ),
    ("(d0) -> (15 - d0), domain: d0 in [0, 15]", Tile([4], [3], [2]), ("7", (3,), (2,))),
    ("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]", Tile([1, 0], [2, 8], [1, 1]), ("8", (16,), (1,))),
    (
        "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]",
        Tile([BLOCK * 8], [8], [1]),
        ("block, 0", (1, 8), (1, 1)),
    ),
    # whole rows of a reshape, and every second element
    (
        "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 63]",
        Tile([BLOCK * 16], [16], [1]),
        ("block*2, 0", (2, 8), (1, 1)),
    ),
    (
        "(d0)[s0] -> (d0 floordiv 16, d0 floordiv 4 mod 4, d0 mod 4, s0), domain: d0 in [0, 63], s0 in [2, 5]",
        Tile([0], [16], [2]),
        ("0, 0, 0, 2", (2, 4, 2, 4), (1, 1, 2, 1)),
    ),
    (
        "(d0, d1) -> (d0 * 5 + d1 floordiv 2, d1 mod 2 * 10), domain: d0 in [0, 9], d1 in [0, 9]",
        Tile([0, 0], [3, 10], [1, 1]),
        ("0, 0", (15, 2), (1, 10)),
    ),
    # outside of the domain, padding, nothing is read
    ("(d0) -> (d0 - 2), domain: d0 in [2, 6]", Tile([0], [4], [1]), ("0", (2,), (1,))),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 7], rt0 in [0, 9]", Tile([2], [4], [1]), ("rt0 + 2", (4,), (1,))),
    # a divisor is zero where the quotient is not chosen
    ("(d0) -> (where(d0 < 1, 0, 6 floordiv d0)), domain: d0 in [0, 3]", Tile([0], [1], [1]), ("0", (1,), (1,))),
]


@pytest.mark.parametrize(("of", "tile", "wanted"), TILES)
def test_tiles(of: str, tile: Tile, wanted: tuple[str, tuple[int, ...], tuple[int, ...]]) -> None:
    found = read_by(tile, IndexingMap.parse(of))
    assert (", ".join(map(str, found.offsets)), found.sizes, found.strides) == wanted


NO_TILES = [
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]", Tile([0], [12], [1]), "what is read is no tile"),
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]", Tile([4], [16], [1]), "move together"),
    ("(d0) -> (d0, d0), domain: d0 in [0, 31]", Tile([0], [12], [1]), "move together"),
    (
        "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]",
        Tile([0, 0], [2, 4], [1, 1]),
        "not evenly spaced",
    ),
    (
        "(d0) -> (d0 floordiv 2), domain: d0 in [0, 7], d0 mod 2 in [0, 0]",
        Tile([0], [4], [1]),
        "only some elements",
    ),
    (
        "(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 7], s0 in [0, 2], d0 + s0 in [1, 8]",
        Tile([0], [4], [1]),
        "only some elements",
    ),
    ("(d0) -> (d0), domain: d0 in [8, 9]", Tile([0], [4], [1]), "nothing is read"),
    (
        "(d0, d1) -> (d0 floordiv d1), domain: d0 in [0, 9], d1 in [-1, 3], d1 != 0",
        Tile([0, 0], [2, 1], [1, 1]),
        "nothing is read",
    ),
    ("(d0) -> (d0), domain: d0 in [8, 31]", Tile([BLOCK * 8], [8], [1]), "or at some offsets"),
    ("(d0) -> (d0), domain: d0 in [0, 9]", Tile([0, 0], [4, 4], [1, 1]), "2 dimensions for a map from 1"),
]


@pytest.mark.parametrize(("of", "tile", "message"), NO_TILES)
def test_no_tiles(of: str, tile: Tile, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_by(tile, IndexingMap.parse(of))


@pytest.mark.parametrize(
    ("sizes", "message"), [([4, 4], "an offset, a size and a stride per dimension"), ([0], "are positive")]
)
def test_no_such_tile(sizes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tile([0], sizes, [1])
    with pytest.raises(TypeError, match="the offset 'block < 2' of a tile is no integer"):
        Tile([BLOCK < 2], [1], [1])


def test_any_tile_reads_what_its_elements_read() -> None:
    """Propagated tiles against all their elements, one by one."""
    relation = relations.reversed_along([12], [0]).then(relations.windowed([12], [3], [2], [1]))
    for offset in range(4):
        found = read_by(Tile([offset], [2], [1]), relation.to_operand)
        start = int(evaluate([found.offsets[0]], {})[0])
        read = {start + found.strides[0] * n for n in range(found.sizes[0])}
        assert read == {e for o, e in pairs(relation.to_operand, [5], [12]) if offset <= o < offset + 2}


COUNTED = [
    ("(d0, d1, d2) -> (d1), domain: d0 in [0, 9], d1 in [0, 19], d2 in [0, 29]", 20),
    ("(d0) -> (d0 * 3 + 1), domain: d0 in [0, 4]", 5),
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 19]", 20),
    ("(d0) -> (d0, d0), domain: d0 in [0, 19], d0 mod 3 in [0, 0]", 7),
    ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 7], rt0 in [0, 9]", 8),
    ("(d0) -> (0), domain: d0 in [0, 7], False", 0),
    # across the end of int64
    (f"(d0) -> (d0, d0), domain: d0 in [{2**63 - 3}, {2**63 + 3}]", 7),
    ("() -> ()", 1),
    # an empty domain, which is found by simplification alone
    ("(d0) -> (d0), domain: d0 in [0, 999999999], d0 * 2 in [1, 1]", 0),
]


@pytest.mark.parametrize(("of", "wanted"), COUNTED)
def test_elements_read(of: str, wanted: int) -> None:
    assert elements_read(IndexingMap.parse(of)) == wanted


ROWS = """(d0, d1)[s0] -> (s0, d1)
domain:
d0 in [0, 15]
d1 in [0, 7]
s0 in [0, 32]
  hlo: rows = s32[16,1] parameter(1)
  (d0, d1) -> (d0, 0)
"""


def test_rows_at_offsets_that_differ_are_no_tile() -> None:
    """Four rows were one row, since the runtime variable has one name, and 16 rows were counted as one."""
    of = IndexingMap.parse(ROWS)
    with pytest.raises(ValueError, match="the elements of the tile read different values of s0"):
        read_by(Tile([0, 0], [4, 8], [1, 1]), of)
    with pytest.raises(ValueError, match="how many elements it has is known at run time only"):
        elements_read(of)
    assert memory_steps(of, Shape.parse("f32[33,8]")) == (None, 1)
    one = read_by(Tile([var("block", 0, 15), 0], [1, 8], [1, 1]), of)
    assert (one.sizes, one.strides) == ((1, 8), (1, 1))


def test_offsets_read_at_offsets_that_differ_are_no_tile() -> None:
    """Which value is read depends on another one, and this on the element."""
    d0, first, second = var("d0", 0, 3), var("rt0", 0, 5), var("rt1", 0, 9)
    reads = (RuntimeVariable(second, "b", (first,)), RuntimeVariable(first, "a", (d0,)))
    of = IndexingMap((d0,), (), (second,), (), reads)
    with pytest.raises(ValueError, match="different values of rt1"):
        read_by(Tile([0], [2], [1]), of)
    assert memory_steps(of, Shape.parse("f32[10]")) == (None,)
    assert elements_read(replace(of, results=(d0,))) == 4


def test_too_many_elements_to_count() -> None:
    with pytest.raises(ValueError, match="too many to count"):
        elements_read(IndexingMap.parse("(d0) -> (d0, d0), domain: d0 in [0, 1999999]"))


@pytest.mark.parametrize("scale", [1, -3])
def test_what_has_no_end_is_no_tile(scale: int) -> None:
    """Its size was a number of thousands of digits."""
    of = IndexingMap.parse(f"(d0)[s0] -> (s0 * {scale} + d0), domain: d0 in [0, 9], s0 in [0, inf]")
    with pytest.raises(ValueError, match=r"s0 has no end: what is read is no tile"):
        read_by(Tile([0], [4], [1]), of)


@pytest.mark.parametrize("domain", ["d0 in [0, inf]", "d0 in [-inf, 3]", "d0 in [-inf, inf]"])
def test_elements_without_end_are_not_counted(domain: str) -> None:
    """The bounds that are infinite ended in an OverflowError."""
    with pytest.raises(ValueError, match="d0 has no end, so its elements are not counted: give its range"):
        elements_read(IndexingMap.parse(f"(d0) -> (d0 floordiv 2), domain: {domain}"))


SCANS = [
    ("(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 3]", "f32[4,5]", (1, 5)),
    ("(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 3]", "f32[4,5]{0,1}", (4, 1)),
    ("(d0, d1) -> (d1), domain: d0 in [0, 4], d1 in [0, 3]", "f32[4]", (0, 1)),
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]", "f32[4,8]", (1,)),
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]", "f32[4,8]{0,1}", (None,)),
    ("(d0, d1) -> (0, d1), domain: d0 in [0, 0], d1 in [0, 7]", "f32[1,8]", (0, 1)),
    # nothing is read
    ("(d0)[s0] -> (d0*1 + 0), domain: d0 in [0, 0], s0 in [0, 4], d0 + d0 in [1, 6]", "f32[4]", (0,)),
    ("(d0, d1) -> (d0*2 + d1), domain: d0 in [0, 5], d1 in [0, 4], d0 + d1 in [20, 26]", "f32[40]", (0, 0)),
    ("(d0) -> (d0), domain: d0 in [0, 7], False", "f32[8]", (0,)),
    ("(d0) -> (where(d0 < 1, 0, 6 floordiv d0)), domain: d0 in [0, 1]", "f32[8]", (6,)),
]


@pytest.mark.parametrize(("of", "shape", "wanted"), SCANS)
def test_memory_steps(of: str, shape: str, wanted: tuple[int | None, ...]) -> None:
    assert memory_steps(IndexingMap.parse(of), Shape.parse(shape)) == wanted


def test_offsets_of_a_tile_may_have_any_names() -> None:
    of = IndexingMap.parse("(d0, d1) -> (d1, d0*2), domain: d0 in [0, 63], d1 in [0, 31]")
    for name in ("t0", "t1", "d0", "s0"):
        at = var(name, 0, 3)
        found = read_by(Tile([at * 4, 0], [4, 8], [1, 1]), of)
        assert (found.offsets, found.sizes, found.strides) == ((const(0), at * 8), (8, 4), (1, 2))
