"""Texts of other systems that are too long or too deep are refused before they are read, in one line with a remedy."""

from functools import reduce
from math import inf

import pytest
from counted import calls

from eqsat.interop import hlo, mlir
from eqsat.interop.affine import AffineFunction
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.structure.trees import Tree

LONG = "x" * (INTEROP_LIMITS.characters + 1)
MANY = "\n" * (INTEROP_LIMITS.lines + 1)
DEEP = INTEROP_LIMITS.nested_regions + 1
NESTED = "scf.execute_region {\n" * DEEP + "}\n" * DEEP
MAP = "(d0) -> (" + "d0, " * (INTEROP_LIMITS.map_characters // 4) + "d0)"


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (mlir.rewrite, LONG, "an MLIR module of 20000001 characters is too long: give at most 20000000"),
        (mlir.rewrite, MANY, "an MLIR module of 200001 lines is too long: give at most 200000"),
        (mlir.rewrite, NESTED, f"line {DEEP} of the MLIR text opens a region within 1000 others"),
        (hlo.parse, LONG, "an HLO module of 20000001 characters is too long: give at most 20000000"),
        (hlo.parse, MANY, "an HLO module of 200001 lines is too long: give at most 200000"),
        (IndexingMap.parse, MAP, "a map of 1000012 characters"),
        (AffineFunction.parse, f"affine_map<{MAP}>", "an affine function of 1000024 characters"),
        (Tree.parse, MAP, "a tree of 1000012 characters"),
    ],
)
def test_long_texts_are_refused_in_one_line(read, text, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert ": give " in str(caught.value)
    assert len(str(caught.value)) < 200


def test_regions_as_deep_as_the_limit_are_read():
    text = "scf.execute_region {\n" * (DEEP - 1) + "}\n" * (DEEP - 1)
    assert mlir.rewrite(text) == text


@pytest.mark.parametrize("end", ["8", "%i{outer}"])
def test_loops_as_deep_as_the_limit_are_rewritten(end):
    count = DEEP - 1
    ends = ["8", *[end.format(outer=k) for k in range(count - 1)]]
    heads = "".join(f"affine.for %i{k} = 0 to {ends[k]} {{\n" for k in range(count))
    text = heads + f'%x = arith.remsi %i0, %i{count - 1} : index\n"use"(%x) : (index) -> ()\n' + "}\n" * count
    assert mlir.rewrite(text).count("affine.for") == count


def test_composed_maps_are_not_looked_through_at_each_step():
    once = IndexingMap.parse("(d0, d1) -> (d1, (d0 + d1 * 3) mod 64), domain: d0 in [0, 63], d1 in [0, 63]")

    def work(count: int) -> int:
        return calls(lambda: reduce(lambda before, _: before.then(once), range(count), once))

    # each result is as long as all before, and was traversed four times
    assert work(200) < 2.5 * work(100)


def test_chains_of_applied_maps_take_time_by_their_length():
    """Each map was composed with all before it, which were optimised and searched for symbols again."""

    def work(count: int) -> int:
        lines = [f"%{k + 1} = affine.apply affine_map<(d0) -> (d0 + 1)>(%{k})" for k in range(count)]
        text = "\n".join(["affine.for %0 = 0 to 9 {", *lines, f'"use"(%{count}) : (index) -> ()', "}"])
        return calls(lambda: mlir.rewrite(text, total=inf))

    assert work(160) < 2.5 * work(80)


def test_divisions_by_zero_of_empty_maps_are_left_out_at_each_step():
    to_zero = IndexingMap.parse("(d0) -> (d0, 0), domain: d0 in [0, 9]")
    divided = IndexingMap.parse("(d0, d1) -> (d0 floordiv d1, d1), domain: d0 in [0, 9], d1 in [0, 3], d1 in [1, 3]")
    once = to_zero.then(divided)
    assert [str(r) for r in (*once.results, *once.then(divided).results)] == ["0", "0"] * 2
