"""The C text: how each operator is written, what becomes a local, and what names are escaped."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.codegen.expressions import WRITE, points_function, to_c
from eqsat.extract.cost import exact_multiplier
from eqsat.lang.expr import Expr, as_expr, buffer, const, var
from eqsat.lang.functions import minimum
from eqsat.lang.ops import FLOATS, OPS, OWN
from eqsat.lang.text import parse

X = {
    "i": var("i", 0, 100),
    "j": var("j", -50, 50),
    "w": var("w", -(2**31), 2**31 - 1),
    "n": var("n", 0, 2**40),
    "d": var("d", 1, 9),
    "e": var("e", 3, 9),
    "z": var("z", 0, 9),
    "y": var("y", -9, 0),
    "q": var("q", -9, -1),
    "b": var("b", 0, 1),
}


def statements(*roots: Expr) -> list[str]:
    """The lines between the braces of the kernel."""
    return re.findall(r"^    (.*;)$", to_c(roots).split("void kernel(")[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i - (j + 1)*2", "i - (j + 1) * 2"),
        ("i - (j - 1)", "i - (j - 1)"),
        ("-(-j)", "-(-j)"),
        ("i*-3", "i * -3"),
        ("i // 8", "i >> 3"),
        ("(j + 1) // 8", "(j + 1) >> 3"),
        ("j % 8 + 1", "(j & 7) + 1"),
        ("i // 7", "quotient_i32(i, 7, 147u, 10)"),
        ("i % 7", "remainder_i32(i, 7, 147u, 10)"),
        ("tdiv(i, 7)", "quotient_i32(i, 7, 147u, 10)"),
        ("tmod(i, 7)", "remainder_i32(i, 7, 147u, 10)"),
        ("j // 7", "quotient_i32(j + 56, 7, 147u, 10) - 8"),
        ("j % 7", "remainder_i32(j + 56, 7, 147u, 10)"),
        ("i*20000000 // 7", "long_quotient_i32(i * 20000000, 7, 2454267027u, 34)"),
        ("(n - 5) // 7", "unsigned_quotient_i64(n - 5 + 7, 7) - 1"),
        ("w // 7", "floor_div_by_positive_i32(w, 7)"),
        ("n // 7", "n / 7"),
        ("j % d", "floor_mod_by_positive_i32(j, d)"),
        ("i // e", "i / e"),
        ("j % e", "floor_mod_by_positive_i32(j, e)"),
        ("i // q", "floor_div_i32(i, q)"),
        ("j // -7", "floor_div_i32(j, -7)"),
        ("i % -7", "floor_mod_i32(i, -7)"),
        ("tmod(i, -7)", "i % -7"),
        ("w % q", "floor_mod_i32(w, q)"),
        ("i // z", "i / nonzero_i32(z, 1)"),
        ("j // y", "floor_div_i32(j, nonzero_i32(y, -1))"),
        ("tdiv(j, 7)", "j / 7"),
        ("tmod(j, y)", "j % nonzero_i32(y, -1)"),
        ("tmod(w, q)", "trunc_mod_i32(w, q)"),
        ("shl(j, 3)", "j * 8"),
        ("shl(j, d)", "shift_left_i32(j, d)"),
        ("shr(j, d)", "j >> d"),
        ("i & 6 ^ j & -4 | i + 1", "((i & 6) ^ (j & -4)) | (i + 1)"),
        ("i & j & 5", "i & j & 5"),
        ("i & (j & 5)", "i & (j & 5)"),
        ("(i ^ 3) == j", "(i ^ 3) == j"),
        ("n & 7", "(int32_t)(n & 7)"),
        ("(n & 7) + i", "(int32_t)(n & 7) + i"),
        ("w ^ 5000000000", "w ^ INT64_C(5000000000)"),
        ("w + 1", "(int64_t)w + 1"),
        ("n % 7", "(int32_t)(n % 7)"),
        ("n % 7 + i", "(int32_t)(n % 7) + i"),
        ("min(i, n)", "(int32_t)min_i64(i, n)"),
        ("i*5000000000", "i * INT64_C(5000000000)"),
        ("min(j, -2147483648)", "min_i32(j, INT32_MIN)"),
        ("where(i < 3, j, where(i == 4, i, 0))", "i < 3 ? j : i == 4 ? i : 0"),
        ("i < 3 and j < 3 or not i != 4", "(i < 3 && j < 3) || !(i != 4)"),
        ("where(b < 1, 0, 840)", "b * 840"),
        ("where(b < 1, 3, 4)", "b + 3"),
        ("where(i % 2 < 1, 10, 3)", "(i & 1) * -7 + 10"),
        ("where(b < 1, i, 3)", "b < 1 ? i : 3"),
        ("where(i < 3, n, j) // 7", "unsigned_quotient_i64((i < 3 ? n : j) + 56, 7) - 8"),
        ("where(z < 1, 0, 840)", "z < 1 ? 0 : 840"),
        ("where(1 <= b, 840, 0)", "1 <= b ? 840 : 0"),
        ("where(b < 1, -2147483648, 2147483647)", "b < 1 ? INT32_MIN : 2147483647"),
        ("(i < 3) == (j <= 3)", "(i < 3) == (j <= 3)"),
        ("max(i < 3, j < 3)", "i < 3 || j < 3"),
        ("True", "true"),
    ],
)
def test_how_an_operator_is_written(text: str, expected: str) -> None:
    assert statements(parse(text, X)) == [f"*out0 = {expected};"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i*5", "(uint32_t)o0"),
        ("i*8 - i", "(uint32_t)o0"),
        ("(i*8 - i)*-3 + i*21 + 5", "(uint32_t)o0"),
        ("i*8 - i - 1", "o0"),
        ("i*3 - d*4 - i*2 + 36", "(uint32_t)o0"),
        ("i*3 - d*4 - i*2 + 35", "o0"),
        ("j", "o0"),
        ("n", "o0"),
        ("i < 3", "o0"),
    ],
)
def test_what_is_never_negative_is_widened_as_unsigned(text: str, expected: str) -> None:
    root = parse(text, X)
    assert f"= {expected};" in points_function([root], "kernel", [*X.values()])


def test_every_operator_can_be_written() -> None:
    assert set(WRITE) == (OPS.keys() - OWN) | FLOATS.keys() | {"const", "bool", "float", "load"}


@pytest.mark.parametrize("divisor", [2, 3, 5, 7, 11, 12, 100, 641, 1023, 1025])
def test_multipliers_are_exact_on_their_range_and_the_least(divisor):
    for most in [*range(40), 99, 100, 1000, 4095, 10007]:
        multiplier, shift = exact_multiplier(divisor, most)
        numbers = np.arange(most + 1)
        assert np.array_equal(numbers * multiplier >> shift, numbers // divisor)
        smaller = [(-(-(1 << s) // divisor), s) for s in range(shift)]
        assert most < divisor - 1 or all(any(n * m >> s != n // divisor for n in range(most + 1)) for m, s in smaller)


@settings(max_examples=300)
@given(st.integers(2, 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_multipliers_are_exact_next_to_multiples(divisor, most, near):
    multiplier, shift = exact_multiplier(divisor, most)
    for multiple in (near - near % divisor, most - most % divisor):
        for n in (multiple - 1, multiple, multiple + divisor - 1, most):
            if 0 <= n <= most:
                assert n * multiplier >> shift == n // divisor


def test_shared_terms_become_locals_and_others_are_inlined() -> None:
    i, j = X["i"], X["j"]
    flat = i * 32 + j
    assert statements(flat // 7 + 1, flat % 7) == [
        "const int32_t t0 = i * 32 + j;",
        "*out0 = quotient_i32(t0 + 56, 7, 2341u, 14) - 8 + 1;",
        "*out1 = remainder_i32(t0 + 56, 7, 2341u, 14);",
    ]


def test_a_root_that_another_root_uses_is_computed_once() -> None:
    i = X["i"]
    assert statements(i * 3, i * 3 + 1, i * 3) == [
        "const int32_t t0 = i * 3;",
        "*out0 = t0;",
        "*out2 = t0;",
        "*out1 = t0 + 1;",
    ]


def test_a_narrow_local_of_a_wide_computation_is_cast() -> None:
    digit = X["n"] % 10
    assert statements(digit * digit)[0] == "const int32_t t0 = (int32_t)(n % 10);"


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("i", "i"),
        ("for", "v_for_"),
        ("int32_t", "v_int32_t_"),
        ("INT32_MIN", "v_INT32_MIN_"),
        ("__LINE__", "v___LINE___"),
        ("floor_div_i32", "v_floor_div_i32_"),
        ("exp", "v_exp_"),
        ("lroundf", "v_lroundf_"),
        ("INFINITY", "v_INFINITY_"),
        ("rounds", "rounds"),
        ("kernel", "v_kernel_"),
        ("α", "u3b1"),
        ("t0", "t0"),
        ("out0", "out0"),
    ],
)
def test_names_that_c_has_taken_are_escaped(name: str, argument: str) -> None:
    text = to_c([(var(name, 0, 9) + 1) * (var(name, 0, 9) + 1)])
    assert f"void kernel(int32_t {argument}, " in text
    declared = re.findall(r"(?:int32_t|,) \*?(\w+)(?=[,)]| =)", text.split("void kernel")[1])
    assert len(declared) == len(set(declared)) == 3


def test_arguments_follow_the_given_order() -> None:
    i, j = X["i"], X["j"]
    assert "void kernel(int32_t j, int32_t i, int32_t *out0)" in to_c([i + 1], order=[j, i])
    with pytest.raises(ValueError, match="lacks the variables i"):
        to_c([i + j], order=[j])


@pytest.mark.parametrize(
    "name", ["", "a b", "for", "int8_t", "π", "_x", "main", "memcpy", "linux", "M_PI", "y0", "index", "exit"]
)
def test_a_name_that_c_cannot_take_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a C function"):
        to_c([X["i"]], name)


def test_arguments_are_called_otherwise_only_where_c_must() -> None:
    names = ["I", "M_PI", "errno", "exit", "linux", "near", "y0"]
    found = to_c([sum([var(name, 0, 9) for name in names], start=const(1))])
    assert "= 1 + I + v_M_PI_ + errno + exit + v_linux_ + near + y0;" in found


@pytest.mark.parametrize("text", ["A[i] + 1", "sum(r*r % 7 // (i + 1), r, 0, i)", "to_float(i)", "F[i] < 1.0"])
def test_what_needs_a_kernel_is_refused(text: str) -> None:
    names = {"A": buffer("A"), "F": buffer("F", "f32"), "i": var("i", 0, 9)}
    with pytest.raises(ValueError, match=r"give it as a store of a kernel"):
        to_c([parse(text, names)])


def test_leaves_that_no_function_computes_are_refused() -> None:
    with pytest.raises(ValueError, match="'A' is an array, not a value"):
        to_c([buffer("A")])
    with pytest.raises(ValueError, match=r"'2.5' needs an array, a loop or floating-point values"):
        to_c([as_expr(2.5)])


def test_no_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="no expression"):
        to_c([])


def test_deep_terms_do_not_nest_deeply_in_c() -> None:
    deep = X["i"]
    for step in range(5000):
        deep = minimum(-deep, const(step))
    text = to_c([deep])
    assert max(line.count("(") for line in text.splitlines()) < 40


def test_the_comment_names_ranges_and_sources() -> None:
    text = to_c([X["i"] // 8, X["j"] < 3])
    assert "/* for i in [0, 100], j in [-50, 50]:\n *   out0 = i//8\n *   out1 = j < 3\n */\n" in text
