"""Texts of other systems that are too long or too deep are refused before they are read, in one line with a remedy."""

import pytest

from eqsat.interop import hlo, mlir
from eqsat.interop.affine import AffineFunction
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.structure import Tree

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
