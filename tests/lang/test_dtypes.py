"""Width selection at its exact boundaries."""

from __future__ import annotations

import re

import numpy as np
import pytest

import eqsat
from eqsat.codegen import nests
from eqsat.codegen.expressions import to_c
from eqsat.kernels.kernel import Kernel, Store
from eqsat.lang.dtypes import common_width, select_width, widths
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import maximum, minimum, sum_over, where
from eqsat.lang.properties import misfits
from eqsat.lang.text import parse

I32 = (-(2**31), 2**31 - 1)
I64 = (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("low", "high", "width"),
    [
        (0, 0, 32),
        (*I32, 32),
        (0, I32[1], 32),
        (0, I32[1] + 1, 64),
        (I32[0] - 1, 0, 64),
        (I32[1] + 1, I32[1] + 1, 64),
        (*I64, 64),
    ],
)
def test_the_width_of_a_value_is_that_of_its_bounds(low: int, high: int, width: int) -> None:
    assert select_width(var("x", low, high)) == width


def test_the_widest_range_of_64_bits_fits() -> None:
    least, most = var("least", I64[0], 0), var("most", 0, I64[1])
    assert misfits([least, most, least - 1, most + 1]) == {least - 1, most + 1}
    # what is no integer has no width
    assert misfits([where(buffer("F", "f32")[least] < 1.0, most, 0), buffer("G", "int")[most] % 9]) == set()


@pytest.mark.parametrize(("low", "high"), [(0, I64[1] + 1), (I64[0] - 1, 0)])
def test_beyond_64_bits_is_an_error_that_names_term_range_and_remedy(low: int, high: int) -> None:
    with pytest.raises(ValueError, match=rf"'x' has range \[{low}, {high}\].*narrow the range of 'x'"):
        select_width(var("x", low, high))
    with pytest.raises(ValueError, match="use a smaller literal"):
        select_width(const(2**70))


L, P, N = buffer("L", "i64", (5,)), buffer("P", "i32", (5,)), var("n", 0, 9)

#: A term over the elements of an array, and the remedy that a message gives.
REMEDIES = [
    (sum_over(L[N], N, 0, 5), "bound the elements of 'L' by min(max(..., least), greatest)"),
    (L[P[N % 5]] * 4, "bound the elements of 'L' by min(max(..., least), greatest)"),
    (L[N % 5] * N, "narrow the range of 'n' or bound the elements of 'L' by min(max(..., least), greatest)"),
    (sum_over(const(2**62), N, 0, 5), "use a smaller literal"),
]


@pytest.mark.parametrize(("term", "remedy"), REMEDIES, ids=[str(row[0]) for row in REMEDIES])
def test_the_remedy_is_about_what_the_range_comes_from(term: Expr, remedy: str) -> None:
    with pytest.raises(ValueError, match="no 64-bit integer holds: " + re.escape(remedy) + "$"):
        select_width(term)


def test_a_message_names_the_element_that_was_written() -> None:
    out = buffer("O", "i64", (1,))
    with pytest.raises(ValueError, match=re.escape("the term 'sum(L[r1], r1, 0, 5)' has range")):
        eqsat.compile(Kernel("total", [Store(out[0], sum_over(L[N], N, 0, 5) % 7)]))
    bounded = sum_over(minimum(maximum(L[N], -(2**40)), 2**40), N, 0, 5) % 7
    found = eqsat.compile(Kernel("total", [Store(out[0], bounded)]))(L=np.array([1, 2, 3, 4, 2**50]))
    assert found["O"] == (10 + 2**40) % 7


def test_a_condition_is_32_bits_wide() -> None:
    assert select_width(var("x", *I64) < 3) == 32


X = {"i": var("i", *I32), "j": var("j", 0, 100), "n": var("n", *I64), "s": var("s", 0, 31), "t": var("t", 0, 32)}


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("j + 1", 32),
        ("i + 1", 64),  # its result leaves 32 bits
        ("-i", 64),
        ("i // -1", 64),
        ("i // -2", 32),
        ("i % -1", 32),
        ("n % 8", 64),  # its operand does not fit 32 bits
        ("n % 8 + 1", 32),  # but its value does
        ("n < 3", 64),
        ("where(n < 3, i, j)", 32),
        ("where(j < 3, n % 8, n)", 64),
        ("min(n, 3)", 64),
        ("shr(i, 31)", 32),
        ("shr(i, s)", 32),
        ("shr(i, t)", 64),  # 32 bits cannot be shifted by 32
        ("shl(j, 24)", 32),
        ("shl(j, 25)", 64),
        ("i ^ j", 32),
        ("n & 7", 64),
        ("(n & 7) | 8", 32),
    ],
)
def test_a_term_is_computed_at_the_widest_of_its_value_and_operands(text: str, width: int) -> None:
    root: Expr = parse(text, X)
    assert widths([root])[root] == width


def test_every_term_is_checked_not_only_roots() -> None:
    with pytest.raises(ValueError, match="which no 64-bit integer holds"):
        widths([(X["n"] * X["n"]) % 8])


LEAVES = [
    (const(42), 32),
    (const(-7), 32),
    (const(2**40), 64),
    (var("n", 0, 1000), 32),
    (var("n", 1, 2**31 - 1), 32),
    (var("n", 0, 2**31), 64),
]


@pytest.mark.parametrize(("leaf", "width"), LEAVES)
def test_leaves(leaf: Expr, width: int) -> None:
    assert select_width(leaf) == widths([leaf])[leaf] == width


@pytest.mark.parametrize(
    ("terms", "width"),
    [
        ([const(0), const(1), const(2), const(3)], 32),  # a vector of literals
        ([const(0), const(2**33)], 64),
        ([X["j"], X["j"] * 2 + 1, X["s"]], 32),  # lanes
        ([X["j"], X["n"]], 64),
        ([var("size", 1, 100), const(77)], 32),  # a variable and its value
        ([var("size", 1, 2**40), const(77)], 64),
    ],
)
def test_what_shares_one_width(terms: list[Expr], width: int) -> None:
    assert common_width(*terms) == width


def test_an_index_is_used_at_the_width_at_which_it_is_computed() -> None:
    """The place of a store was cast to the width of its value, that of a load was not."""
    last, w = var("last", 0, 2**31 - 1), var("w", 0, 2**40)
    source, out = buffer("SOURCE", "i32", (2**31,)), buffer("OUT", "i32", (2**31,))
    stores = [Store(out[last], source[last], [last]), Store(out[w % 7], source[w % 5], [w])]
    code = nests.to_c(Kernel("moved", stores))
    assert "OUT[last] = SOURCE[last];" in code
    assert "OUT[w % 7] = SOURCE[w % 5];" in code


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("j + s", "int32_t *out0 = j + s"),
        ("u*65536", "int64_t *out0 = (int64_t)u * 65536"),
        ("w + j", "int64_t *out0 = w + j"),
        ("w*8%64", "int32_t *out0 = (int32_t)((w * 8) & 63)"),  # computed wide, stored as narrow as it is
        ("j < w", "bool *out0 = j < w"),
        ("where(j < 3, s, w)", "int64_t *out0 = j < 3 ? s : w"),  # C widens a branch by itself
        ("where(j < 3, s, u)", "int32_t *out0 = j < 3 ? s : u"),
    ],
)
def test_casts_in_c(text: str, statement: str) -> None:
    names = X | {"u": var("u", 0, 65535), "w": var("w", 0, 2**40)}
    source = to_c([parse(text, names)])
    parameter, value = statement.split(" = ")
    assert f"{parameter})" in source
    assert f"*out0 = {value};" in source
