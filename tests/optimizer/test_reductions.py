"""Rules about reductions modulo the theory: where they match, what they build, and that every node is right."""

from __future__ import annotations

from functools import reduce
from unittest.mock import patch

import numpy as np
import pytest
from audited import unequal_nodes
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from reductions import loop_nests, reduction_terms

from eqsat.alternatives.providers import without
from eqsat.egraph.budget import Budget
from eqsat.egraph.compilation import compiled
from eqsat.egraph.rule import Rule
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, make, var
from eqsat.lang.functions import sum_over, where
from eqsat.lang.properties import has_reductions
from eqsat.lang.text import parse
from eqsat.lang.traversal import buffer_key, buffers, topological, variables
from eqsat.optimizer.additions import Additions
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT, REDUCE
from eqsat.theory.forms import to_expr
from eqsat.theory.linear import LinearArithmetic

PATIENT = Budget(seconds=60.0)
NAMES = {"n": var("n", 0, 16), "m": var("m", 0, 9), "x": var("x", -4, 9), "A": buffer("A")}


def unequal(term: Expr) -> list[object]:
    """The nodes of the e-graph of an optimisation that do not have the value of their class."""
    result = optimize(term, budget=Budget(nodes=400, seconds=3))
    named = {str(v.value): v for v in variables([term])} | {buffer_key(a): a for a in buffers([term])}
    return unequal_nodes(result.graph, named)


@given(loop_nests())
@settings(max_examples=15)
def test_all_nodes_of_random_loop_nests_have_the_values_of_their_classes(term):
    assert not unequal(term)


@given(reduction_terms())
@settings(max_examples=20)
def test_all_nodes_of_random_reductions_have_the_values_of_their_classes(drawn):
    term, _ = drawn
    divisors = [t.args[1] for t in topological([term]) if t.op in ("floordiv", "mod")]
    if any(divisor.vmin <= 0 <= divisor.vmax for divisor in divisors):
        # where it divides by zero anything will do
        reject()
    assert not unequal(term)


def test_all_nodes_have_the_values_of_their_classes_beyond_64_bits():
    x, n = var("x", -(2**70), 2**63), var("n", 0, 4)
    assert not unequal(parse("sum(min(x*6//4, r*x), r, 0, n) + (x + 5)//3*3 - x", {"x": x, "n": n}))


@pytest.mark.parametrize("rule", REDUCE, ids=lambda rule: rule.name)
def test_every_rule_about_reductions_is_asked_of_egglog(rule):
    reductions = {"SumOver", "ProdOver", "MaxOver", "MinOver"}
    ways = compiled(rule)
    assert ways
    assert all(way.query is not None and reductions.intersection([kind for _, kind in way.needs]) for way in ways)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        # the ends of ranges are read off normal forms, however they are written
        ("sum(A[r], r, n*2 - n, n + 1)", 1),
        ("sum(sum(where(r*4 + s < n, 1, 0), s, m, m + 4 - m*0), r, 0, 4)", None),
        # one of several addends, and a multiple of it
        ("sum(sum(where(r*4 + s < n, 1, 0), s, 0, 4), r, 0, 4)*8 + m", 2),
        # a factor that the loops do not change
        ("sum(sum(where(r*4 + s < n, x, 0), s, 0, 4), r, 0, 4)", 3),
    ],
)
def test_reductions_inside_other_terms(text, cost):
    result = optimize(parse(text, NAMES))
    assert result.check().equal
    assert cost is None or result.cost <= cost


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        # 0 is among the factors, or is the first of them
        ("prod(r - m, r, 0, 10)", "0"),
        ("prod(r + m, r, -m, n + m)*x", "where(n + m*2 < 1, x, 0)"),
        ("prod(prod(r*3 + s, s, 0, 3), r, 0, n)", "where(n < 1, 1, 0)"),
    ],
)
def test_a_factor_of_zero_decides(text, answer):
    result = optimize(parse(text, NAMES))
    assert result.check().counterexample is None
    assert result.cost <= optimize(parse(answer, NAMES)).cost


I9, N5, X = {"i": var("i", 0, 9)}, {"n": var("n", 1, 5)}, {"x": var("x", 0, 9)}


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        # ranges that begin anywhere
        ("sum(A[r], r, i*8, i*8 + 8)", I9, "sum(A[i*8 + r], r, 0, 8)"),
        ("max_over(A[r], r, i*8, i*8 + 8)", I9, "max_over(A[i*8 + r], r, 0, 8)"),
        ("sum(where(0 <= r - i and r - i < 3, A[r - i], 0), r, 0, 12)", I9, "sum(A[r], r, 0, 3)"),
        ("sum(where(i <= r and r < i + 4, A[r]*B[r - i], 0), r, 0, 16)", I9, "sum(A[i + r]*B[r], r, 0, 4)"),
        ("sum(A[r - 3], r, 3, n + 3)", N5, "sum(A[r], r, 0, n)"),
        ("sum(where(r < 4, A[r], A[r - 4]), r, 0, 8)", {}, "sum(A[r], r, 0, 4)*2"),
        # products and extremes, as sums
        ("prod(prod(A[s*4 + r], s, 0, 4), r, 0, 4)", {}, "prod(A[r], r, 0, 16)"),
        ("max_over(max_over(A[s*4 + r], s, 0, 4), r, 0, 4)", {}, "max_over(A[r], r, 0, 16)"),
        ("min_over(min_over(A[s*4 + r], s, 0, 4), r, 0, 4)", {}, "min_over(A[r], r, 0, 16)"),
        ("max(max_over(A[r], r, 0, n), max_over(A[r], r, n, 16))", {"n": var("n", 0, 16)}, "max_over(A[r], r, 0, 16)"),
        ("min(min_over(A[r], r, 0, n), min_over(A[r], r, n, 16))", {"n": var("n", 0, 16)}, "min_over(A[r], r, 0, 16)"),
        ("max(max_over(A[r], r, 0, 8), max_over(B[r], r, 0, 8))", {}, "max_over(max(A[r], B[r]), r, 0, 8)"),
        ("max_over(max(A[r], 0), r, 0, 8)", {}, "max(max_over(A[r], r, 0, 8), 0)"),
        ("max_over(min(A[r], x), r, 0, 8)", X, "min(max_over(A[r], r, 0, 8), x)"),
        ("min_over(max(A[r], x), r, 0, 8)", X, "max(min_over(A[r], r, 0, 8), x)"),
        ("max_over(A[r]//3, r, 0, 8)", {}, "max_over(A[r], r, 0, 8)//3"),
        ("min_over(A[r]//3, r, 0, 8)", {}, "min_over(A[r], r, 0, 8)//3"),
        ("max_over((r + x)%4, r, 0, 4)", X, "3"),
        ("min_over((r + x)%4, r, 0, 4) + x", X, "x"),
        ("prod(r, r, 0, n)", N5, "0"),
        # parts of a range, also where each has a closed form, another index, or none of its values
        ("sum(A[r], r, 0, min(x, 4)) + sum(A[r], r, 4, x)", X, "sum(A[r], r, 0, x)"),
        ("sum(A[r], r, 0, x) + sum(A[r], r, max(0, x), 16)", {"x": var("x", -4, 9)}, "sum(A[r], r, 0, 16)"),
        ("sum(r*2 + i, r, 0, min(x, 4)) + sum(r*2 + i, r, min(x, 4), x)", X | I9, "x*(x + i - 1)"),
        ("sum(where(r < x, A[r], 0), r, 0, 5) + sum(where(r - 2 < x, A[r - 2], 0), r, 7, 12)", X, "sum(A[r], r, 0, x)"),
        ("sum(where(r < 6, A[r]//2, 0), r, 0, 6) + (x + sum(A[r - 1]//2, r, 7, 11))", X, "sum(A[r]//2, r, 0, 10) + x"),
        ("prod(A[r]%3, r, 0, 3)*prod(A[r + 3]%3, r, 0, 3)", {}, "prod(A[r]%3, r, 0, 6)"),
        ("max(max_over(A[r], r, 0, 4), max_over(A[r - 1], r, 5, 9))", {}, "max_over(A[r], r, 0, 8)"),
        ("min(min_over(A[r], r, 0, 4), min_over(A[r - 1], r, 5, 9))", {}, "min_over(A[r], r, 0, 8)"),
        # the values of a range in another order
        ("sum(where(r < 11, A[(r + 1)%11], 0), r, 0, 14)", {}, "sum(A[r], r, 0, 11)"),
        ("sum(where(r < 6, A[(r + i)%6]*B[(r + i)%6], 0), r, 0, 9)", I9, "sum(A[r]*B[r], r, 0, 6)"),
        ("sum(where(r < 6, where((r + i)%6*2 + x == 9, A[(r + i)%6], 0), 0), r, 0, 9)", I9 | X, "x%2*A[(9 - x)//2]"),
        ("sum(A[r%10], r, 3, 13)", {}, "sum(A[r], r, 0, 10)"),
        ("max_over(A[(r*3 + x)%8] + (r*3 + x)%8, r, 0, 8)", X, "max_over(A[r] + r, r, 0, 8)"),
        ("sum(sum(where((1 - r)*4 + s < x, 1, 0)*A[s], s, 0, 4), r, 0, 2)", X, "sum(A[r%4], r, 0, min(x, 8))"),
        # remainders of multiples of the index
        ("sum(where((x - 1 - r)%4 == 2, 1, 0), r, 0, x)", X, "(x + 1)//4"),
        ("sum(where((r*3 + 1)%8 == 2, A[r], 0), r, 0, 16)", {}, "sum(A[r*8 + 3], r, 0, 2)"),
        # clamps that go on where the one before them ends
        ("sum(sum(where(0 <= s, where(r*2 + s < x, i, n), 0), s, -2, 2), r, 0, 5)", X | I9 | N5, "n*10 + x*(i - n)"),
        # digits of one number, before what is over one of them has a closed form
        ("sum(sum(where(r*4 + s < x, (r*4 + s)*2 + i, 0), s, 0, 4), r, 0, 4)", X | I9, "x*(x + i - 1)"),
        ("sum(sum(where((1 - r)*5 + s < x, ((1 - r)*5 + s)*2, 0) + 3, s, 0, 5) - 6, r, 0, 2)", X, "x*(x - 1) + 18"),
        ("sum(x*sum(where(s*4 + r < i, s*4 + r, 0), s, 0, 4), r, 0, 4)", X | I9, "x*(i*(i - 1)//2)"),
        ("sum(sum(where(r*3 + s < 7, min(r*3 + s, x), 0), s, 0, 3), r, 0, 3)", X, "sum(min(r, x), r, 0, 7)"),
        # rows that are empty before the first index
        ("sum(sum(A[r*8 + s], s, 0, r + 1), r, -2, 6)", {}, "sum(sum(A[r*8 + s], s, 0, r + 1), r, 0, 6)"),
        # rows of other lengths
        ("sum(sum(A[r*4 + s], s, 0, min(4, x - r*4)), r, 0, 3)", X, "sum(A[r], r, 0, x)"),
        ("sum(sum(A[r*2 + s], s, max(0, x - r*2), 2), r, 0, 5)", X, "sum(A[r], r, x, 10)"),
        ("sum(sum(A[r*2 + s], s, 0, where(r < 4, 2, 1)), r, 0, 5)", {}, "sum(A[r], r, 0, 9)"),
        # all but one
        ("sum(where(r == i, 0, A[r]), r, 0, 16) + A[i]", I9, "sum(A[r], r, 0, 16)"),
        ("sum(where(r == i, A[r], B[r]), r, 0, 16)", I9, "sum(B[r], r, 0, 16) + A[i] - B[i]"),
        # clamps, whichever end is written first
        ("sum(max(0, min(4, x - r*4)), r, 0, 10)", X, "x"),
        ("sum(min(4, max(0, x - r*4)), r, 0, 10)", X, "x"),
        ("sum(max(0, min(4, x - r*4))*3 + r, r, 0, 10)", X, "x*3 + 45"),
        ("sum(max(0, min(4, r*4 - x)), r, 0, 10)", X, "36 - x"),
        ("sum(min(4, max(0, r*4 - x)), r, 0, 10)", X, "36 - x"),
        ("sum(max(0, min(r - x, 1)), r, 0, 12)", X, "11 - x"),
        # a period that is no literal
        ("sum((r + x)//n, r, 0, n)", N5 | X, "x"),
        ("sum((r + x)%n, r, 0, n)", N5 | X, "n*(n - 1)//2"),
        ("sum(r//n, r, 0, n*x)", N5 | X, "x*(x - 1)//2*n"),
        ("sum(r%n, r, 0, n*x)", N5 | X, "x*(n*(n - 1)//2)"),
        ("max_over((r + i)%n, r, x, x + 7)", N5 | X | I9, "n - 1"),
        ("sum(where(r%n == 0, 1, 0), r, 0, n*x)", N5 | X, "x"),
        ("sum(where((r + i)%5 == x, 1, 0), r, 0, 5)", {"x": var("x", 0, 4)} | I9, "1"),
        # a part of a period
        ("sum(where(r%4 < 2, 1, 0), r, 0, x)", X, "x//4*2 + min(x%4, 2)"),
        ("sum(where(r%8 < 3, i, 0), r, 0, x)", X | I9, "(x//8*3 + min(x%8, 3))*i"),
        ("sum(where(r%4 < i, 1, 0), r, 0, x)", X | I9, "x//4*min(i, 4) + min(x%4, i)"),
        ("sum(r%8, r, 0, x)", X, "x//8*28 + x%8*(x%8 - 1)//2"),
        ("sum(r%2, r, 0, x)", X, "x//2"),
        ("sum((r + i)%2, r, x, x + n)", X | N5 | I9, "(i + x + n)//2 - (i + x)//2"),
        ("max_over((r + i)%8, r, 0, n)", N5 | I9, "where(i//8 == (i + n - 1)//8, (i + n - 1)%8, 7)"),
        ("min_over((r + i)%8, r, 0, n)", N5 | I9, "where(i//8 == (i + n - 1)//8, i%8, 0)"),
        ("sum((r + 1)//2, r, 0, x)", X, "x//2*(x - x//2)"),
        # one value up to where a condition holds, another from there on
        ("min_over(where(r < n, r, 99), r, 3, 20)", {"n": var("n", 0, 20)}, "where(3 < n, 3, 99)"),
        ("max_over(where(r < n, A[r], x), r, 0, 16)", X | N5, "max(max_over(A[r], r, 0, n), x)"),
        # windows that overlap, or meet
        ("max_over(max_over(A[r + s], s, 0, 3), r, 0, 8)", {}, "max_over(A[r], r, 0, 10)"),
        ("min_over(min_over(A[i*8 + r - s], s, 0, 3), r, 2, 8)", I9, "min_over(A[i*8 + r], r, 0, 8)"),
        ("max_over(max_over(A[s], s, r*2, r*2 + 2), r, 0, 8)", {}, "max_over(A[r], r, 0, 16)"),
        ("max_over(max_over(A[s], s, 0, r + 1), r, 0, n)", N5, "max_over(A[r], r, 0, n)"),
        ("min_over(min_over(A[s], s, r, n), r, 0, n)", N5, "min_over(A[r], r, 0, n)"),
        ("max_over(max_over(max_over(A[r + s + t], s, 0, 3), r, 0, 3), t, 0, 6)", {}, "max_over(A[r], r, 0, 10)"),
        # where one operand overtakes the other
        ("min_over(max(r - x, x - r), r, 0, 10)", X, "0"),
        ("min_over(max(r - x, x - r), r, 0, 9)", {"x": var("x", -9, 20)}, "max(max(-x, x - 8), 0)"),
        ("max_over(min(r, x - r), r, 0, 16)", X, "x//2"),
        ("sum(max(r - i, 0), r, 0, x)", X | I9, "max(x - i, 0)*(max(x - i, 0) - 1)//2"),
        ("sum(max(r, i), r, 0, x)", X | I9, "x*i + max(x - i, 0)*(max(x - i, 0) - 1)//2"),
    ],
)
def test_what_is_expected_of_reductions_is_found(text, names, expected):
    arrays = {name: buffer(name, "i32", (128,)) for name in "AB"}
    result = optimize(parse(text, names | arrays))
    assert result.check().equal
    assert result.cost <= cost_of([parse(expected, names | arrays)], LATENCY)


@pytest.mark.parametrize(
    "text",
    [
        # a value is left out, or twice there
        "sum(A[r], r, 0, 4) + sum(A[r], r, 5, 8)",
        "sum(A[r], r, 0, 4) + sum(A[r], r, 3, 8)",
        "sum(A[r], r, 0, n) + sum(A[r], r, 4, 16)",
        "sum(A[r], r, 0, min(n, m)) + sum(A[r], r, m, n)",
        "sum(A[r], r, x, min(n, 4)) + sum(A[r], r, 4, n)",
        "sum(A[r], r, 0, 4) + sum(A[r + 1], r, 4, 8)",
        "sum(A[r], r, 0, n) + sum(A[r], r, n, m)",
        "max(max_over(x*r, r, 0, 4), max_over(x*r, r, 5, 8))",
        # an index that stands beside the permutation, or in a loop that moves it
        "sum(A[(r + m)%8]*r, r, 0, 8)",
        "sum(A[(r + 3)%8]*(r//5), r, 0, 8)",
        "sum(sum(A[(r + s)%4], s, 0, r + 1), r, 0, 4)",
        "sum(A[(r*2 + m)%8], r, 0, 8)",
        # multiples that have no inverse
        "sum(where((n - r*2)%4 == 2, A[r], 0), r, 0, 9)",
        "sum(where((n - r*3)%4 == m - 2, A[r], 0), r, 0, 9)",
        # digits that stand beside their number, or are no digits
        "sum(r*sum(where(r*4 + s < n, s, 0), s, 0, 4), r, 0, 4)",
        "sum(sum((r*4 + s)//3, s, 0, 5), r, 0, n)",
        "sum(sum(A[r*4 + s]*r, s, 0, 4), r, 0, m)",
        "sum(sum(x//(r*2 + s), s, 1, 3), r, 0, n)",
        "prod(prod(r*3 + s - 4, s, 0, 3)*2, r, 0, 2)",
        "max_over(max_over(r*3 + s - x, s, 0, 3), r, n, m)",
        "sum(sum(s*r, s, n, r), r, -2, m)",
        # rows that are longer than what the body steps by, or begin before it
        "sum(sum(A[r*4 + s], s, 0, min(5, n - r*4)), r, 0, 3)",
        "sum(sum(A[r*4 + s], s, min(r, 3), 3), r, 0, 3)",
        "sum(sum(A[s - r*2 + 8], s, 0, min(2, n - r)), r, 0, 3)",
        # clamps that leave gaps
        "sum(min(max(n - r*3, 0), 2), r, 0, m)",
        "sum(min(max(n - r*2, 0), 3), r, x, m)",
        # less than a period, or a range that may be empty
        "max_over((r + x)%(m + 2), r, 0, m + 1) + min_over((r + x)%(m + 2), r, n, m + 2)",
        "sum(where((r + x)%4 < m, x, 0), r, n, m) + sum((r + x)%(m + 1), r, n, 7)",
        "sum(where((r + x)%(m + 1) == m + 1, x, 0), r, 0, n) + sum((r + x)//(m + 1), r, n, 9)",
        # a branch that is worse where both hold, or an end that cuts nothing off
        "max_over(where(r == n or r == m, -r, 0), r, 0, 9) + min_over(where(r < n, r, 3 - r), r, m, 9)",
        "prod(where(r == n, x, m), r, 0, 4) + prod(where(r < n, x, 2), r, m, 4)",
        # a residue that is no residue
        "sum(where(r%4 == m, 1, 0), r, 0, n)",
        # values beyond what an empty part of a range gives
        "max_over(where(r < n, F[r], -3000000000), r, 0, 5) + min_over(where(r < n, F[r], 3000000000), r, 0, 5)",
        # windows with gaps, or of other values each time, or none at first, or fewer than the bounds of an index say
        "max_over(max_over(A[s], s, r*3, r*3 + 2), r, 0, 4)",
        "max_over(max_over(A[r + s]*s, s, 0, 3), r, 0, 4) + min_over(min_over(A[s], s, r - n, r), r, 0, 4)",
        "max_over(max_over(F[s]//9, s, 0, r), r, 0, 4) + min_over(min_over(F[s], s, r, 3), r, 0, 4)",
        "max_over(max_over(min(A[r + s], min(r + s, 2)), s, 0, 3), r, 0, 8)",
        # operands that meet between two values, or fall faster than the other rises
        "min_over(max(r - x, x - r*2), r, 0, 9) + max_over(min(r, n - r), r, m, 9)",
        "sum(max(r*2 - x, m), r, n, 9)",
    ],
)
def test_what_is_almost_like_that_keeps_its_value(text):
    assert optimize(parse(text, NAMES | {"F": buffer("F", "int")})).check().equal


def test_a_rule_of_ones_own_about_reductions_meets_the_shipped_ones():
    # the loop over pairs is no rule of eqsat's; what it leaves is
    pairs = Rule("pairs", "sum(x, i, 0, 2*v)", "sum(at(x, 2*i) + at(x, 2*i + 1), i, 0, v)", "0 < v + 1")
    term = parse("sum(A[r//2]*(r%2), r, 0, 2*m)", NAMES)
    result = optimize(term, rules=[*DEFAULT, *REDUCE, pairs])
    assert str(result.expr) == "sum(A[r1], r1, 0, m)"


@pytest.mark.parametrize(
    "text",
    [
        "sum(where(-2 + r1*1 != 0, (-2 + r1*1 + m*1)//(-2 + r1*1), 0 + r1*1), r1, -2 + m*1, 1)",
        "sum(max_over((5 + r1*3)%2, r1, 5 + m*4, -2 + r2*1)//4, r2, 0, 1 + n)",
    ],
)
def test_a_node_that_speaks_of_another_index_is_left_out_of_an_empty_class(text):
    assert optimize(parse(text, NAMES)).check().equal


@pytest.mark.parametrize("rounds", [2, 3, 6])
def test_a_reduction_that_a_part_of_a_body_equals_does_not_capture_its_index(rounds):
    # the first sum has one addend, which equals the sum: in the body of a loop it is not the sum
    text = (
        "where(i*2//6 < 5 + i, sum(where((1 + r*3)//6 == i, -2 + i*3, 0)%100, r, 1, 6),"
        " sum(sum((i + s*6)%6%100, r, -1, 6)%100, s, 0, 2))%1000"
    )
    term = parse(text, {"i": var("i", 0, 3)})
    result = optimize(term, budget=Budget(seconds=60, rounds=rounds))
    assert result.check().equal
    assert not unequal_nodes(result.graph, {"i": var("i", 0, 3)})


@pytest.mark.parametrize("rounds", [4, 5])
def test_a_selection_by_an_index_says_nothing_of_a_loop_that_its_branch_equals(rounds):
    # rules find the first sum to be the first branch plus a literal: both loops have an index of one name
    texts = [
        "sum((where(r//2 == i, i*3, 2) + 98)//100, r, 1, 6) - 5",
        "sum(where(r//2 == i, min(i*2 - 1, 0) + 5, 5)//3, r, 1, 6)",
    ]
    i = var("i", 0, 3)
    result = optimize([parse(text, {"i": i}) for text in texts], budget=Budget(seconds=60, rounds=rounds))
    assert result.check().equal
    assert not unequal_nodes(result.graph, {"i": i})


@pytest.mark.parametrize("theory", [True, False])
def test_a_number_has_no_modulus(theory):
    left, guard = (
        "sum(where(p, x, 0), i, u, v) % d",
        "free(x) and d > 0 and modulus(x) % d == 0 and remainder(x) % d == 0",
    )
    rule = Rule("even total", left, "0", guard)
    counted = optimize("sum(where(r*r % 5 < n, 1, 0), r, 0, 7) % 2", rules=[*DEFAULT, rule], theory=theory, n=(0, 4))
    assert counted.check().equal
    even = optimize("sum(where(r*r % 5 < n, x*4, 0), r, 0, 7) % 2", rules=[*DEFAULT, rule], n=(0, 4), x=(0, 9))
    assert even.expr is const(0)


@pytest.mark.parametrize(
    ("right", "guard", "text", "near_miss"),
    [
        ("0", "factor(x) % d == 0", "sum(r*m*2, r, 0, n) % 2", "sum(r*m*3, r, 0, n) % 2"),
        ("0", "gcd(x, d) == d", "sum(r*m*6, r, 0, n) % 3", "sum(r*m*4, r, 0, n) % 3"),
        ("0", "gcd(x, d) == d", "sum(r*m*8 + 4, r, 0, n) % 4", "sum(r*m*8 + 2, r, 0, n) % 4"),
        (
            "(v - u)*remainder(x)%d",
            "u < v + 1 and modulus(x) == d",
            "sum(r*m*3 + 1, r, 0, n)%3",
            "sum(r*m*3, r, 0, n)%4",
        ),
    ],
)
def test_guards_measure_what_is_added_up(right: str, guard: str, text: str, near_miss: str):
    rule = Rule("of multiples", "sum(x, i, u, v) % d", right, guard, why="what the terms have in common, all have")
    names = {name: var(name, 0, 9) for name in "mn"}
    for whole, is_left in ((text, False), (near_miss, True)):
        found = optimize(parse(whole, names), rules=[rule], theory=False)
        assert found.check().equal
        assert has_reductions(found.exprs) is is_left


def test_a_product_keeps_the_factors_beside_the_reductions_of_a_rule():
    rule = Rule(
        "one of two", "sum(x, i, u, v)*sum(y, i, u, v)", "sum(at(x, i)*sum(y, j, u, v), i, u, v)", why="distributes"
    )
    names = {"n": var("n", 0, 3), "m": var("m", 0, 2), "k": var("k", -2, 2)}
    term = parse("sum((r*r*m + 1)%7, r, 0, n)*sum((r*r*k + 2)%5, r, 0, n)*k", names)
    with patch.object(Additions, "unite", autospec=True, side_effect=Additions.unite) as united:
        found = optimize(term, rules=[rule])
    assert any(match.rest for match in [call.args[1] for call in united.call_args_list] if match.query.kept == "mul")
    assert found.check().equal
    assert not unequal_nodes(found.graph, names)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("sum(where(r == m, 1, F[r]), r, 0, 6)", "sum(F[r], r, 0, 6) + where(m < 6, 1 - F[m], 0)"),
        ("sum(where(r == m, 1, y*r), r, 0, 6)", "where(m < 6, y*(15 - m) + 1, y*15)"),
    ],
)
def test_guards_ask_for_bounds_that_are_infinite(text, answer):
    names = {**NAMES, "F": buffer("F", "int"), "y": var("y", 0, None)}
    assert optimize(parse(text, names)).cost <= cost_of([parse(answer, names)], LATENCY)


@pytest.mark.parametrize("extract", ["dag", "tree", "exact"])
def test_an_index_of_one_value_keeps_its_name(extract):
    class Registers:
        def price(self, op, operands, result):
            return 3 if op == "var" else 1 if operands else 0

    rule = Rule("difference of squares", "x*x - y*y", "(x + y)*(x - y)")
    text = parse("sum(A[r]*3 % 5, r, x, i)", {"A": NAMES["A"], "x": var("x", 0, 4), "i": var("i", 0, 1)})
    result = optimize(text, rules=[*DEFAULT, rule], cost=Registers(), extract=extract)
    assert result.check().equal


#: A nest whose inner sum does not depend on the outer index that its range begins at, and what is beside it.
SHIFTED = "sum(sum((x + r - s - 2)%3, r, s, s + 2), s, 0, 3)"


@pytest.mark.parametrize(("rest", "most"), [("", 40), (" - sum(max((r + m - 1)//4, A[(x + r)%4]), r, n, n + 4)", 110)])
@pytest.mark.parametrize("engine", ["egraph", "theory"])
def test_a_range_that_begins_at_an_index_stays_inside_its_loop(rest, most, engine):
    # a closed form of the inner sum does not fit into 64 bits
    names = {"n": var("n", -2, 3), "m": var("m", -2, 4), "x": var("x", -(2**40), 2**40), "A": NAMES["A"]}
    result = optimize(parse(SHIFTED + rest, names), engine=engine, budget=Budget(seconds=60, rounds=8))
    assert {str(v.value) for v in variables(result.exprs)} <= set("nmx")
    assert result.check().equal
    assert engine == "theory" or result.cost <= most


def test_what_is_known_of_an_index_says_nothing_of_another_of_its_name():
    # a branch where the outer index is 0 has a sum over one that shares its leaf: it was taken for 0 there
    result = optimize("sum((p*r*3 + r*3 - 1) % 100, r, 0, 2)", p=(0, 2))
    assert result.check().equal
    r = var("r", 0, 1)
    (index,) = {t.args[1] for t in topological([sum_over(r, r, 0, 2)]) if t.op == "sum_over"}
    body = make("sum_over", index, index, const(0), const(2))
    theory = LinearArithmetic()
    assert theory.value(where(index < 1, body, 0)) == theory.value(where(index < 1, 1, 0))


CLAMPS = ["max({a}, min({b}, {x}))", "min({b}, max({a}, {x}))", "{b} - max(0, min({b} - {a}, {b} - ({x})))"]


@given(
    st.sampled_from(CLAMPS),
    st.tuples(st.integers(-3, 3), st.integers(0, 5)),
    st.tuples(st.integers(-3, 3).filter(bool), st.integers(-5, 5)),
    st.tuples(st.integers(-2, 2), st.integers(0, 6)),
)
def test_sums_of_clamps_keep_their_values(clamp, ends, slope, steps):
    (a, width), (k, c), (low, count) = ends, slope, steps
    text = clamp.format(a=f"({a})", b=f"({a + width})", x=f"r*({k}) + n + ({c})")
    (total,) = [parse(f"sum({text}, r, {low}, {low + count})", {"n": var("n", -8, 8)})]
    found = to_expr(LinearArithmetic().form(total))
    points = {"n": np.arange(-8, 9)}
    assert (total.evaluate(points) == found.evaluate(points)).all()


HALVES = ("max(max_over(x, r, 0, n), max_over(x, r, n, 3))", "min(min_over(x, r, 0, n), min_over(x, r, n, 3))")


@pytest.mark.parametrize("options", [{}, {"theory": False}, {"engine": "greedy"}], ids=str)
@pytest.mark.parametrize("end", [2**31 - 1, 2**40])
@pytest.mark.parametrize("text", HALVES)
def test_an_empty_half_of_a_range_may_be_beyond_all_values(text, end, options):
    found = optimize(text, x=(-end - 1, end), n=(0, 3), **options)
    x, n = np.meshgrid([-end - 1, 0, end], range(4))
    before, after = evaluate([*found.before, found.expr], {"x": x, "n": n})
    assert np.array_equal(before, np.broadcast_to(after, before.shape))
    if end < 2**31:
        assert str(found.expr) == "x"


@pytest.mark.parametrize(
    ("text", "cost", "most"),
    [
        ("sum(where(r < a, u, 0) + where(r < b, 0, v), r, 0, 10)", 12, 250),
        ("sum(u*where(r < a, 1, 0), r, 0, 10)", 5, 80),
    ],
)
def test_what_rules_make_of_a_sum_with_a_closed_form_is_rewritten_one_step_further(text, cost, most):
    ranges = {name: (-5, 12) for name in "abuv" if f" {name}" in text or f"({name}" in text}
    result = optimize(text, **ranges)
    # there were 3,382 matches of one rule in half the budget's seconds
    assert max(result.rules.get(name, 0) for name in ("sum-distributes", "sum-factor", "sum-from-zero")) < most
    assert result.cost <= cost
    assert result.check().equal


def test_a_closed_form_that_shares_much_is_chosen_though_a_loop_is_the_cheaper_tree():
    names = {name: var(name, -5, 12) for name in "nmxk"}
    term = parse("sum((r + x)//4, r, 0, 6)", names)
    found = optimize(term)
    assert not {t.op for t in topological([found.expr])} & {"sum_over"}
    assert found.cost < found.cost_before
    assert found.check().equal
    with without("start without loops"):
        assert optimize(term).cost > found.cost


@pytest.mark.parametrize("rules", [(), DEFAULT], ids=["theory", "rules"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        # a factor gives its sign away
        ("-(min(0, n - 9)*x)", "max(0, 9 - n)*x"),
        ("min(n, 2)*x*-3", "min(2, n)*x*-3"),
        ("x - min(0, n - 9)*x*m", "x - x*m*min(0, n - 9)"),
        # what all operands add leaves it
        ("min(x + k, k + n)", "k + min(x, n)"),
        ("max((x*32 + n)*4, x*128 + 4)", "x*128 + max(n*4, 4)"),
        ("min(min(x + n, m), k) - x", "min(n, min(m, k) - x)"),
        ("min(m*n + x, m*n + k)", "m*n + min(x, k)"),
    ],
)
def test_minima_in_products_and_sums(text, answer, rules):
    names = {name: var(name, -9, 12) for name in "nmxk"}
    result = optimize(parse(text, names), rules=rules)
    assert result.cost <= cost_of([parse(answer, names)], LATENCY)
    assert result.check().equal


def test_a_reduction_whose_parts_speak_of_it_again_stays():
    # where x%2 is known, the condition on x//2 became a condition of its own and the same sum, without end
    names = {"A": buffer("A"), "x": var("x", 0, 3)}
    result = optimize(parse("sum(sum(where(r == x//2, where(s == x%2, A[r*2 + s], 0), 0), s, 0, 2), r, 0, 2)", names))
    assert str(result.expr) == "A[x]"


def _loads(text: str, count: int) -> str:
    """The sum of loads ``A0[...]``, ``A1[...]``, ... where ``text`` says of which index, given its number."""
    return " + ".join(f"A{k}[{text.format(k + 1)}]" for k in range(count))


def _reductions_in(graph, op="sum_over"):
    return {c for c, nodes in graph.classes.items() if any(node[0] == op for node in nodes)}


@pytest.mark.parametrize("count", [2, 4, 7])
def test_a_sum_of_addends_is_taken_apart_at_once(count):
    names = {f"A{k}": buffer(f"A{k}") for k in range(count)}
    found = optimize(parse(f"sum({_loads('r', count)}, r, 0, 64)", names), budget=PATIENT)
    assert found.stop == "saturated"
    # one by one, there is a reduction for each of 2**count parts
    assert len(_reductions_in(found.graph)) == count + 1
    assert unequal(found.before[0]) == []


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("sum({}, r, 0, 64)".format(_loads("r", 5)), 1),
        ("sum(sum({}, s, 0, 8), r, 0, 8)".format(_loads("i*64 + r*8 + s", 4)), 1),
        ("sum(sum({}, s, 0, 8), r, 0, 8)".format(_loads("r*8 + s*{}", 3)), 2),
        ("sum(sum({}, s, 0, 8), r, 0, 16)".format(_loads("r*{} + s + i", 3)), 2),
        ("sum(A0[r], r, 0, 64)*6 + sum(A1[r], r, 0, 64)*6 + i + sum(A2[r], r, 0, 64)*6", 1),
        ("sum(A0[r], r, 0, 64) + sum(A1[r], r, 0, 64) + sum(A0[r] + A2[r], r, 0, 64)", 1),
        ("max(max_over(A0[r], r, 0, 64), max(i, max_over(A1[r], r, 0, 64)))", 1),
        ("prod(A0[r], r, 0, 3)*prod(A1[r], r, 0, 3)*i*prod(A0[r], r, 0, 3)", 1),
    ],
)
def test_reductions_of_many_addends_saturate_in_one_nest(text, loops):
    names = {f"A{k}": buffer(f"A{k}") for k in range(5)} | {"i": var("i", 0, 3)}
    term = parse(text, names)
    found = optimize(term, budget=PATIENT)
    assert found.stop == "saturated"
    assert sum(t.op in ("sum_over", "max_over", "prod_over") for t in topological([found.expr])) == loops
    assert unequal(term) == []


def test_addends_that_are_free_of_the_index_stay_together():
    names = {"A": buffer("A"), "B": buffer("B")} | {name: var(name, 0, 9) for name in "xyn"}
    found = optimize(parse("sum(x + A[r] + y + B[r] + 3, r, 0, n)", names), budget=PATIENT)
    # 31 if each part of the body is taken apart by itself
    assert len(_reductions_in(found.graph)) < 16
    assert sum(t.op == "mul" for t in topological([found.expr])) == 1


@pytest.mark.parametrize("options", [{}, {"rules": ()}, {"theory": False}, {"extract": "exact"}], ids=str)
@pytest.mark.parametrize("reduction", ["sum", "max_over"])
def test_of_what_no_machine_integer_holds_the_cheapest_form_is_taken(reduction, options):
    # no form of the root has 64 bits, so none is preferred for that
    names = {name: buffer(name) for name in "ABC"}
    product, factored = [
        parse(f"{reduction}({body}, r, 0, 64)", names) for body in ("A[r]*B[r] + C[r]*B[r]", "(A[r] + C[r])*B[r]")
    ]
    found = optimize(product, **options)
    assert found.cost == cost_of([factored], LATENCY) < found.cost_before


def test_forms_that_machine_integers_hold_are_preferred_where_there_are_any():
    # cheaper is the sum of A less 3 times that of A//3, but 64 bits do not hold that
    names = {"A": buffer("A", "i64")}
    found = optimize(parse("sum(A[r]%3*5 + A[r]%3*2, r, 0, 64)", names))
    assert str(found.expr) == "sum(A[r1]%3, r1, 0, 64)*8 - sum(A[r1]%3, r1, 0, 64)"


@pytest.mark.parametrize("extract", ["tree", "dag", "exact"])
def test_forms_that_machine_integers_hold_are_preferred_beside_a_root_that_has_none(extract):
    # of a root that needs more bits than its input, the input is kept
    names = {name: buffer(name, "i64") for name in "ABCD"}
    texts = ["sum(A[r]%3*5 + A[r]%3*2, r, 0, 64)", "sum(B[r]*C[r] + B[r]*D[r], r, 0, 64)"]
    terms = [parse(text, names) for text in texts]
    assert optimize(terms, extract=extract).cost == sum(optimize(term, extract=extract).cost for term in terms)


@pytest.mark.parametrize("factors", ["AAB", "BBA", "ABCD", "GDBI", "AADG", "DDAG", "AABB"])
def test_a_product_is_taken_apart_in_whatever_order_its_factors_are(factors):
    names = {name: buffer(name) for name in factors}
    parts = [f"prod({name}[r], r, 0, 9)" for name in names]
    whole = f"prod({'*'.join(f'{name}[r]' for name in factors)}, r, 0, 9)"
    terms = [parse(text, names) for text in (whole, *parts)]
    found = optimize(terms, budget=PATIENT)
    apart = [parse("*".join(f"prod({name}[r], r, 0, 9)" for name in factors), names), *terms[1:]]
    assert found.cost <= cost_of(apart, LATENCY) < found.cost_before
    assert unequal(terms[0]) == []


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        # what stands still in the inner loop is one operand while loops are compared, not only once they are chosen
        ("sum(sum(A[i*64 + r*8 + s]*B[(r*8 + s)*64 + j], s, 0, 8), r, 0, 8)", 633),
        ("sum(sum(A[i*64 + r*8 + s] + B[i*64 + r*8 + s*2], s, 0, 8), r, 0, 8)", 481),
        ("sum(sum(A[j*100 + (i + r)*10 + i + s]*B[j*9 + r*3 + s], s, 0, 3), r, 0, 3)", 119),
    ],
)
def test_sums_of_indices_are_hoisted_while_loops_are_chosen(text, cost):
    found = optimize(parse(text, {"A": buffer("A"), "B": buffer("B"), "i": var("i", 0, 9), "j": var("j", 0, 63)}))
    assert found.check().equal
    assert found.cost <= cost


@pytest.mark.parametrize("count", [3, 4, 6])
@pytest.mark.parametrize(("extreme", "reduction"), [("max", "max_over"), ("min", "min_over")])
def test_an_extreme_of_loads_is_taken_apart_at_once(extreme, reduction, count):
    names = {f"A{k}": buffer(f"A{k}") for k in range(count)}
    body = reduce(lambda x, y: f"{extreme}({x}, {y})", [f"A{k}[r*{k + 1}]" for k in range(count)])
    found = optimize(parse(f"{reduction}({body}, r, 0, 64)", names), budget=PATIENT)
    assert found.stop == "saturated"
    # operand by operand, there is a reduction for each of 2**count parts, and one for each of their negations
    assert len(_reductions_in(found.graph, reduction)) <= 3 * count
    assert not _reductions_in(found.graph, "min_over" if extreme == "max" else "max_over")


@pytest.mark.parametrize("engine", ["egraph", "theory"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("max_over(max(A[r], B[r]), r, 0, n) - max(max_over(A[r], r, 0, n), max_over(B[r], r, 0, n))", "0"),
        ("max_over(max(max(A[r], x), r), r, 0, 9) - max(max_over(A[r], r, 0, 9), max(x, 8))", "0"),
        ("min_over(n - max(A[r], B[r]*2), r, 2, 9) + max(max_over(A[r], r, 2, 9), max_over(B[r], r, 2, 9)*2)", "n"),
        ("max_over(-max(A[r], r), r, 0, 9) + min_over(max(A[r], r), r, 0, 9)", "0"),
        ("max_over(min(A[r], B[r]), r, 0, 9) - min(max_over(A[r], r, 0, 9), max_over(B[r], r, 0, 9))", None),
    ],
)
def test_the_normal_form_of_an_extreme_of_extremes_is_that_of_the_parts(text, answer, engine):
    found = optimize(parse(text, NAMES | {"B": buffer("B")}), engine=engine)
    assert str(found.expr) == answer if answer else found.cost > 0


def test_loops_are_chosen_with_their_sums_hoisted():
    names = {f"A{k}": buffer(f"A{k}") for k in range(4)} | {"i": var("i", 0, 9)}
    body = reduce(lambda x, y: f"max({x}, {y})", [f"A{k}[i*64 + r*8 + s*{k + 1}]" for k in range(4)], "1")
    found = optimize(parse(f"max(0, max_over(max_over({body}, s, 0, 8), r, 0, 8))", names), budget=PATIENT)
    # what is cheapest for each class alone costs more before its sums share parts than loops that do not repeat them
    assert found.cost < 900 < found.cost_before


@pytest.mark.parametrize(
    ("text", "is_one_loop"),
    [
        ("sum(sum(A[s], s, 0, r + 1), r, 0, 8)", True),
        ("sum(sum(A[s], s, 0, r), r, 0, n)", True),
        ("sum(sum(A[s], s, r, n), r, 0, n)", True),
        ("sum(sum(s*A[s], s, 0, r + 1)*x, r, 0, n)", True),
        ("sum(sum(A[s] + r, s, 0, r + 1), r, 0, n)", True),
        ("sum(sum(A[s], s, r + 1, 9), r, m, 9)", True),
        # a value that is added up speaks of both indices, and a range grows by two
        ("sum(sum(A[s + r], s, 0, r), r, 0, n)", False),
        ("sum(sum(A[s], s, 0, r*2), r, 0, n)", False),
        # no range, and yet some values beyond where the first one would begin
        ("sum(sum(A[s], s, 0, r + 3), r, 0, m - 9)", False),
        ("sum(sum(A[12//x + s], s, 0, r + 3), r, 0, where(x == 0, 0, n))", False),
        ("sum(sum(A[12//x + s], s, r, 3), r, 0, where(x == 0, 0, n))", False),
    ],
)
@pytest.mark.parametrize("engine", ["egraph", "theory"])
def test_each_value_of_a_prefix_sum_is_added_as_often_as_ranges_have_it(text, is_one_loop, engine):
    found = optimize(parse(text, NAMES), engine=engine)
    assert found.check().equal
    assert not is_one_loop or found.cost * 2 < found.cost_before


def test_extremes_that_code_takes_apart_count_as_matches_of_their_rule():
    result = optimize("max_over(max(x*r, y + r), r, 0, 9)", x=(0, 9), y=(0, 9), theory=False)
    assert str(result.expr).count("max_over") == 1
    assert result.rules["max-distributes"] >= 1


@pytest.mark.parametrize(
    ("text", "cost", "size"),
    [
        # what was merged is not split again into loops whose ends are another form each time
        ("sum(sum(where(i + r < 8, A[(i + r)*10 + j + s], 0)*B[r*3 + s], s, 0, 3), r, 0, 3)", 110, 300),
        ("sum(where(1 <= i + r and i + r < 8, A[(i + r - 1)*10 + j], 0)*B[r], r, 0, 3)", 40, 300),
        # the bounds of these ends are wider than those of min(3, 8 - j) and min(3, 8 - i), which they are
        (
            "sum(sum(A[r*10 + i*10 + s + j]*B[r*3 + s], s, 0, min(j - 5, 0) - j + 8), r, 0, min(i - 5, 0) - i + 8)",
            112,
            600,
        ),
        # 10 is the distance of rows of A; no row of the sum has more than 3 values, so none is padded
        ("sum(sum(A[r*10 + s], s, 0, min(3, i - r)), r, 0, m)", 171, 50),
    ],
)
def test_loops_that_are_cut_are_not_merged_and_split_time_and_again(text, cost, size):
    found = optimize(parse(text, NAMES | {"B": buffer("B"), "i": var("i", 0, 9), "j": var("j", 0, 9)}), budget=PATIENT)
    assert found.cost <= cost
    assert len(found.graph) < size
    assert found.check().equal


@pytest.mark.parametrize("condition", ["r + j == i", "j + r - 1 == i"])
@pytest.mark.parametrize("body", ["where({}, A[r], A[r + 1])", "where({}, 0, A[r])"])
def test_the_addend_of_one_index_is_taken_apart_wherever_the_index_stands(condition, body):
    text = f"sum({body.format(condition)}, r, 0, 8)"
    found = optimize(parse(text, {"A": buffer("A"), "i": var("i", 0, 9), "j": var("j", 0, 9)}), budget=PATIENT)
    assert not any(term.op == "eq" and "r1" in str(term) for term in topological([found.expr]))
    assert found.check().equal
