"""Sums over two ranges become one where the ranges meet; of a difference, what both ranges have goes."""

import pytest
from audited import unequal_nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.egraph.budget import Budget
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.expr import Expr, buffer, var
from eqsat.lang.functions import sum_over, where
from eqsat.lang.text import parse
from eqsat.lang.traversal import buffer_key
from eqsat.optimizer.front import optimize
from eqsat.theory.adjacent import joined
from eqsat.theory.linear import LinearArithmetic

K, N = var("k", 0, 9), var("n", 0, 12)
A, B = buffer("A"), buffer("B")
NAMES = {"A": A, "B": B, "k": K, "n": N, "m": var("m", -3, 9), "q": var("q", 0, 10**6)}

JOINED = [
    ("sum(A[r], r, 0, 16) - sum(A[r], r, 0, 8)", "sum(A[r], r, 8, 16)"),
    ("sum(A[r], r, 0, n + 1) - sum(A[r], r, 0, n)", "A[n]"),
    ("sum(A[r], r, 0, n) - sum(A[r], r, 0, n + 1) + k", "k - A[n]"),
    ("sum(A[r], r, k, 20) - sum(A[r], r, 12, 20)", "sum(A[r], r, k, 12)"),
    ("sum(A[r], r, 0, n + 4) - sum(A[r], r, 4, n + 4)", "sum(A[r], r, 0, 4)"),
    ("sum(A[r + k], r, 0, 8) - sum(A[r + k + 1], r, 0, 7)", "A[k]"),
    ("sum(A[r]*B[r + k], r, 0, n) + sum(A[r]*B[r + k], r, n, 12)", "sum(A[r]*B[r + k], r, 0, 12)"),
    ("sum(A[r], r, 0, 8)*3 + sum(A[r + 8], r, 0, 8)*3", "sum(A[r], r, 0, 16)*3"),
    ("sum(A[r] % 7, r, 0, 9) - sum(A[r] % 7, r, 1, 9)", "A[0] % 7"),
    # multiples of sums over one range
    ("sum(A[r], r, k, 20) - sum(A[r]//8, r, k, 20)*8", "sum(A[r]%8, r, k, 20)"),
    ("sum(where(k <= r + 1 and r < n, A[r + k]%8, 0), r, 0, 9)", "sum(A[r + k]%8, r, max(0, k - 1), min(n, 9))"),
    ("sum(A[r]%8*3, r, m, n) - k + sum(B[r]*B[r], r, m, n)", "sum(A[r]%8*3 + B[r]*B[r], r, m, n) - k"),
    # what only one of two overlapping ranges has, where the index of the other is shifted
    ("sum(A[r + 1] - A[r], r, 0, 8)", "A[8] - A[0]"),
    ("sum(A[r + 1] - A[r], r, 0, n)", "A[n] - A[0]"),
    ("sum(A[r + 1] - A[r], r, 0, m)", "where(0 < m, A[m] - A[0], 0)"),
    ("sum(A[r] - A[r - 1], r, k, 20)*3", "(A[19] - A[k - 1])*3"),
    ("sum(A[k, r*4 + 4] - A[k, r*4], r, 0, n)", "A[k, n*4] - A[k, 0]"),
    ("sum(A[r + 1]*B[r + 1] - A[r]*B[r], r, 0, 8)", "A[8]*B[8] - A[0]*B[0]"),
    ("sum(A[k - r]//7 - A[k - r + 1]//7, r, 0, 9)", "A[k - 8]//7 - A[k + 1]//7"),
    ("sum(A[r], r, k + 1, k + 5) - sum(A[r], r, k, k + 4)", "A[k + 4] - A[k]"),
    ("sum(A[r], r, k, k + 5) - sum(A[r], r, k + 1, k + 4)", "A[k + 4] + A[k]"),
]


@pytest.mark.parametrize(("text", "answer"), JOINED)
def test_sums_over_ranges_are_joined(text, answer):
    result = optimize(parse(text, NAMES))
    assert result.cost <= cost_of([parse(answer, NAMES)], LATENCY)
    assert result.check().equal


def test_sample_points_tell_apart_what_does_not_meet(monkeypatch):
    # the ends were ordered under all that is known first: most of the time of a sum with two conditions
    theory = LinearArithmetic()
    one, other = [
        parse(f"sum(A[r], r, {ends})", NAMES) for ends in ("max(0, m), min(n, 9)", "max(m, k), min(k, n - 2)")
    ]
    for end in (*one.args[2:], *other.args[2:]):
        theory.form(end)
    monkeypatch.setattr(theory, "extreme", lambda *_: pytest.fail("the ends are ordered"))
    assert joined(theory, one, other) is None
    monkeypatch.undo()
    parts = [parse(f"sum(A[r], r, {ends})", NAMES) for ends in ("0, min(n, 5)", "min(n, 5), n")]
    assert joined(theory, *parts) is not None


APART = [
    # one step is missing, or taken twice
    "sum(A[r], r, 0, n) + sum(A[r], r, n + 1, 14)",
    "sum(A[r], r, 0, n + 1) + sum(A[r], r, n, 14)",
    # another body, another factor
    "sum(A[r], r, 0, n) + sum(A[r + 1], r, n, 14)",
    "sum(A[r], r, 0, 9)*2 - sum(A[r], r, 0, 8)",
    "sum(A[r + 1]*B[r] - A[r]*B[r], r, 0, n) - k",
    "sum(A[r], r, k, 20) - sum(A[r]//8, r, k, 19)*8",
    # two ranges with a gap
    "sum(A[r + 9] - A[r], r, 0, 8) - k",
    # a range that may be empty, or longer than the other
    "sum(A[r], r, 0, m) + sum(A[r], r, m, 14)",
    "sum(A[r], r, 0, n) - sum(A[r], r, 0, k)",
    # one is longer where no sample point is
    "sum(A[r], r, 0, where(q == 777777, 9, 0)) + sum(A[r], r, where(q == 777777, 9, 0), 6)",
    "sum(A[r], r, 0, where(q == 777777, -9, 6)) + sum(A[r], r, where(q == 777777, -9, 6), 12)",
]


@pytest.mark.parametrize("text", APART)
def test_ranges_that_do_not_meet_are_left(text):
    result = optimize(parse(text, NAMES))
    assert str(result.expr).count("sum(") == text.count("sum(")
    assert result.check().equal


@st.composite
def two_sums(draw: st.DrawFn) -> Expr:
    """Two sums over ranges that nearly meet."""
    r = var("r", -99, 99)
    body = draw(st.sampled_from([A[r], A[r] * r, A[r + K] - B[r], where(r < K, A[r], B[r]), r % 3 * A[r // 2]]))
    ends = [draw(st.sampled_from([0, 2, K, N, K + 1, N + 2, N + K, 13])) for _ in range(4)]
    if draw(st.booleans()):
        ends[2] = ends[draw(st.sampled_from([0, 1]))]
    shift, scale = draw(st.sampled_from([0, 0, 3, K])), draw(st.sampled_from([1, -1, 2, -2]))
    moved = body.substitute({r: r + shift})
    return (
        sum_over(body, r, ends[0], ends[1]) * abs(scale) + sum_over(moved, r, ends[2] - shift, ends[3] - shift) * scale
    )


@settings(max_examples=60)
@given(two_sums())
def test_random_ranges(term):
    result = optimize(term, budget=Budget(nodes=600, seconds=5))
    assert result.check().equal
    named = {"k": K, "n": N, buffer_key(A): A, buffer_key(B): B}
    assert result.graph is None or not unequal_nodes(result.graph, named)
