"""Reductions whose bodies speak of a permutation of the index: the index in its place, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqsat.lang.expr import Expr, buffer, var
from eqsat.lang.functions import max_over, min_over, prod_over, sum_over
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables
from eqsat.prove.verify import check_equal
from eqsat.theory.linear import LinearArithmetic

K, N = var("k", -20, 99), var("n", 0, 9)
A, B = buffer("A"), buffer("B")
NAMES = {"A": A, "B": B, "F": buffer("F", "f32"), "k": K, "n": N, "m": var("m", 0, 7)}

PERMUTED = [
    ("sum(A[(r + k) % 16], r, 0, 16)", "sum(A[r], r, 0, 16)"),
    ("sum(A[(r + k) % 16] * B[(k + r) % 16], r, 0, 16)", "sum(A[r] * B[r], r, 0, 16)"),
    ("sum(A[(r*3 + k) % 16], r, 0, 16)", "sum(A[r], r, 0, 16)"),
    ("max_over(A[(5 - r) % 8], r, 0, 8)", "max_over(A[r], r, 0, 8)"),
    ("sum(A[r ^ 5], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("sum(A[r ^ m], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("prod(A[3 - r], r, 0, 4)", "prod(A[r], r, 0, 4)"),
    ("sum(A[n - 1 - r], r, 0, n)", "sum(A[r], r, 0, n)"),
    ("sum(A[n - r] * B[9 - r], r, k, n)", "sum(A[r - k + 1] * B[r - k - n + 10], r, k, n)"),
    ("sum(sum(A[(r + s) % 8], r, 0, 8), s, 0, 4)", "sum(A[r], r, 0, 8) * 4"),
    ("sum(sum(A[(7 - r)*8 + 7 - s], s, 0, 8), r, 0, 8)", "sum(sum(A[r*8 + s], s, 0, 8), r, 0, 8)"),
]


@pytest.mark.parametrize(("text", "answer"), PERMUTED)
def test_a_permutation_of_the_range_is_the_index(text, answer):
    theory = LinearArithmetic()
    term, wanted = parse(text, NAMES), parse(answer, NAMES)
    assert theory.form(term) == theory.form(wanted)
    assert check_equal([term], [wanted]).equal


DIFFERENT = [
    # every second residue twice
    ("sum(A[(r*2 + k) % 16], r, 0, 16)", "sum(A[r], r, 0, 16)"),
    # half of the residues, or all twice
    ("sum(A[(r + k) % 16], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("sum(A[(r + k) % 4], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    # others than those of the range
    ("sum(A[(r + k) % 8], r, 8, 16)", "sum(A[r], r, 8, 16)"),
    ("sum(A[r ^ 9], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("sum(A[r ^ 3], r, 0, 6)", "sum(A[r], r, 0, 6)"),
    ("sum(A[r ^ (m + 1)], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("sum(A[r ^ (m - 1)], r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("sum(max_over(A[r ^ s], s, 0, 4), r, 0, 4)", "sum(A[r], r, 0, 4)"),
    # the index itself, or another permutation, stands there too
    ("sum(A[(r + k) % 16] * r, r, 0, 16)", "sum(A[r] * r, r, 0, 16)"),
    ("sum(A[(r + k) % 16] * B[(r + 1) % 16], r, 0, 16)", "sum(A[r] * B[r], r, 0, 16)"),
    ("sum(A[7 - r] * B[r], r, 0, 8)", "sum(A[r] * B[r], r, 0, 8)"),
    ("sum(A[(r*r + k) % 16], r, 0, 16)", "sum(A[r], r, 0, 16)"),
    # another permutation for each value of an index of the body
    ("sum(max_over(A[(r + s) % 8], s, 0, 3), r, 0, 8)", "sum(A[r], r, 0, 8)"),
    ("max_over(sum(A[(r*3 + s) % 8], s, 0, n), r, 0, 8)", "max_over(A[r]*n, r, 0, 8)"),
    ("sum(prod(A[(r - s) % 4], s, 0, 2), r, 0, 4)", "sum(A[r]*A[r], r, 0, 4)"),
    # floats are added in their own order
    ("sum(F[7 - r], r, 0, 8)", "sum(F[r], r, 0, 8)"),
]


@pytest.mark.parametrize(("text", "other"), DIFFERENT)
def test_what_is_no_permutation_or_not_alone_stays(text, other):
    theory = LinearArithmetic()
    term, other = parse(text, NAMES), parse(other, NAMES)
    assert theory.value(term) != theory.value(other)


@st.composite
def permuted(draw: st.DrawFn) -> Expr:
    """A reduction of what may be a permutation of its index, among other things."""
    extent, low = draw(st.integers(1, 9)), draw(st.sampled_from([0, 0, 0, 1, -2]))
    r, s = var("r", -9, 20), var("s", 0, 9)
    scale, offset = draw(st.sampled_from([1, 1, -1, 2, 3, 5, -3])), draw(st.sampled_from([0, 1, -4, K, K * 2, N, s]))
    inner = r * scale + offset
    mask = draw(st.one_of(st.integers(0, 9), st.sampled_from([N, K % 4, s])))
    index = draw(st.sampled_from([inner % extent, inner % draw(st.integers(1, 9)), inner, r ^ mask]))
    beside = draw(st.sampled_from([1, 1, B[index], B[r], B[inner % extent], N - r]))
    over, within = [draw(st.sampled_from([sum_over, prod_over, max_over, min_over])) for _ in range(2)]
    end = draw(st.sampled_from([low + extent, low + extent, N]))
    body = A[index] * beside
    return over(within(body, s, 0, 3) if s in variables([body]) else body, r, low, end)


@given(permuted())
def test_random_permutations(term):
    assert check_equal([term], [LinearArithmetic().simplify(term)], samples=200).equal
