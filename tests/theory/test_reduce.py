"""Reductions: closed forms, what stays a loop, soundness at the edges, and random ones."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from corpora import REDUCTIONS as CORPUS
from corpora import records
from hypothesis import given, settings
from reductions import reduction_terms

from eqsat.cli.cases import case_of
from eqsat.egraph.budget import Budget
from eqsat.extract import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import max_over, sum_over, where
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal, prove_equal
from eqsat.theory import reduce as theory_reduce
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.sums import faulhaber

RANGES = {"n": (-3, 9), "m": (-5, 12), "x": (-9, 9), "k": (0, 6), "p": (0, 1)}
NAMES = {name: var(name, *bounds) for name, bounds in RANGES.items()}
NAMES |= {"A": buffer("A"), "B": buffer("B"), "M": buffer("M", "bool"), "S": buffer("S", "i32", (8, 8))}


def loops(term: Expr) -> int:
    return sum(t.op in REDUCTIONS for t in topological([term]))


def sound(text: str, **options) -> Expr:
    result = optimize(parse(text, NAMES), **options)
    assert result.check().equal, (text, str(result.expr), result.check())
    return result.expr


def test_a_large_power_of_a_sum_is_not_multiplied_out():
    assert optimize("prod(n % 5 - 1, r, 0, 40)", n=(0, 9)).nodes < 100


#: Reductions, each with the number of loops that its normal form may keep.
COLLAPSE = [(case_of(record), record["loops"]) for record in records(CORPUS, "plain") if "loops" in record]


@pytest.mark.parametrize(("case", "left"), COLLAPSE, ids=[case.id for case, _ in COLLAPSE])
def test_collapses(case, left):
    collapses(case.exprs[0], left)


def test_a_condition_from_a_buffer_collapses_too():
    # the buffers of cases hold no conditions
    collapses(parse("sum(where(r == m and M[r], A[r], 0), r, 0, 8)", NAMES), 0)


def collapses(term: Expr, left: int) -> None:
    found = LinearArithmetic().simplify(term)
    assert check_equal([term], [found]).equal
    assert loops(found) == left, str(found)
    # some saturate in a minute, and what is there sooner must be right too
    result = optimize(term, budget=Budget(seconds=1.0))
    assert result.check().equal, str(result.expr)


def test_a_long_equation_that_selects_between_conditions_keeps_both():
    # too long to be written twice, so the selection of conditions stays one
    place = reduce(add, [var(f"v{k}", 0, 1) for k in range(300)])
    r, m, x = var("r", 0, 2), NAMES["m"], NAMES["x"]
    term = sum_over(where(where(r.eq(place), m < x, x < 3), x, 5), r, 0, 3)
    assert check_equal([term], [LinearArithmetic().simplify(term)]).equal


#: Terms that are undefined, or other, outside their range: nothing true inside may leave it.
EDGES = [
    # r % 8 is r in the range, m % 8 is not m
    "sum(where(r == m, r % 8, 0), r, 0, 8)",
    "sum(where(r == m, (r + 8) // 8, 7), r, 0, 8)",
    # divisors that are zero at other values of the index, or where the range is empty
    "sum(where(r == m, x, x // (r - m)), r, 0, 8)",
    "sum(where(r != m, x // (r - m), 3), r, 0, 8)",
    "sum(x // (r + 1), r, 0, n)",
    "max_over(x // (n - r), r, 0, n)",
    "sum(sum(x // (r - s), s, 0, r), r, 0, n)",
    # what is known of the index may not be assumed for an empty range
    "max_over(where(r < n, x, 0), r, 0, n)",
    "max_over(x - r, r, n, 3)",
    # the value next to the end, where the end is the only one
    "max_over(where(r == k, -9, r), r, 3 - n, 4)",
    "min_over(where(r == k, x, x // (r + 1)), r, 0, n)",
    "min_over(r + max_over(s, s, 0, r), r, 0, n)",
    "prod(where(r < n, r + 2, 0), r, 0, n)",
    "sum(where(n > 0, x // max(n, 1), A[r]), r, 0, n)",
    # an index that is not the same index
    "sum(sum(where(s < r, A[s], B[r]), s, 0, r), r, 0, 5)",
    "sum(r + sum(r, r, 0, r), r, 0, n)",
    "sum(where(sum(s, s, 0, r) == m, A[r], 0), r, 0, 8)",
    "sum(where(r == m, sum(A[r + s], s, 0, r), 0), r, 0, 8)",
    "sum(where(r == sum(s, s, 0, n), sum(A[r*s], s, 0, 3), 0), r, 0, 8)",
    "sum(where(M[r], r*2 // 2, A[r]), r, 0, 2)",
    "sum(A[r], r, 0, n) - sum(A[r], r, 0, m) + max_over(A[r], r, 0, n)",
]

#: Terms near those that have a closed form.
NEAR = [
    # a residue that no remainder may have, and a condition that says more than where the index ends
    "sum(where((r + m) % 4 == k, 1, 0), r, 0, 9)",
    "sum(where(r < n and M[r], x, 0), r, 0, 9)",
    # adjacent clamps with another factor, or none that are adjacent
    "sum(min(max(x - 3*r, -3), 0)*A[r], r, 0, 6)",
    "sum(min(max(x + 3*r + A[r]%3, -3), 0), r, 0, 6)",
    # factors or addends of which one grows and one falls, a branch that decides only if it is taken everywhere
    "max_over((r//2)*((9 - r)//2), r, 0, 9)",
    "max_over(r//2 - r//3*2, r, 0, 9)",
    "max_over(where(r < n, x, x + k), r, 0, 8)",
    "min_over(where(r < n, x + k, x), r, 0, 8)",
    # inner ranges that become empty, whose value is above all others
    "max_over(max_over(A[s] - 4294967296, s, r, 3), r, 0, 6)",
    "min_over(min_over(A[s] + 4294967296, s, 3, r), r, 0, 6)",
    # a product of zeros and ones, of which a condition has a part without the index
    "prod(where(x < 3 and r < n, 0, 1), r, 0, 8)",
    "prod(where(x < 3 or r < n, 0, 1), r, 0, 8)",
    # an addend beside a nest that becomes one loop
    "sum(sum(A[i*4 + j], j, 0, 4) + x, i, 0, n)",
]


@pytest.mark.parametrize("text", [*EDGES, *NEAR])
@pytest.mark.parametrize("theory", [True, False], ids=["theory", "rules"])
def test_nothing_leaves_its_range(text, theory):
    sound(text, theory=theory)


@pytest.mark.parametrize("text", NEAR)
def test_a_near_miss_of_a_closed_form_keeps_its_value(text):
    term = parse(text, NAMES)
    assert check_equal([term], [LinearArithmetic().simplify(term)]).equal


@pytest.mark.parametrize("text", [*EDGES, *NEAR])
def test_the_greedy_engine_keeps_it_too(text):
    sound(text, engine="greedy")


@pytest.mark.parametrize(
    "text",
    [
        # what two alternatives share is the opposite of two alternatives, which share what one began with
        "sum(where(r%2 < n - 2 and r%3 < k, 1, 0), r, 0, 7)",
        "sum(where(r%5 == n and r%2 < n - 1, 1, 0), r, 0, 7)",
        "sum(where((r%2 < n - 2) == (r%3 < k), r, 0), r, 0, 7)",
        "sum(where(r%2 < n - 2 and r%3 < k and r%5 < n, 1, 0), r, n, n + 7)",
        # a condition that puts a residue into its range, though no bounds say so
        "sum(where((-2 - k)//2 == r%-3, 1, 0), r, 0, 4)",
        "max_over(where((-2 - k)//2 == r%-3, k, n), r, 0, 4)",
    ],
)
def test_taking_a_condition_apart_comes_to_an_end(text):
    sound(text)


def test_a_divisor_that_may_be_zero_in_the_range_is_refused():
    with pytest.raises(ValueError, match=r"the divisor 'r1' of 'x//r1' may be zero"):
        optimize(parse("sum(x // r, r, 0, n)", NAMES))


@pytest.mark.parametrize("options", [{}, {"theory": False}, {"engine": "greedy"}, {"extract": "tree"}], ids=str)
def test_where_its_only_value_is_zero_an_index_divides_nothing(options):
    x, r = var("x", 0, 9), var("r", 0, 3)
    guarded = where(r.ne(0), max_over(x, var("s", 0, 9), 0, x + 1) // r, x + 1)
    assert optimize(sum_over(guarded, r, 0, 1), **options).check().equal
    with pytest.raises(ValueError, match="is zero wherever it is needed"):
        optimize(sum_over(x // r, r, 0, 1), **options)


def test_facts_reach_into_bodies_and_ranges():
    n, x = NAMES["n"], NAMES["x"]
    assert optimize("sum(x // n, r, 0, n)", constraints=["n > 0"], n=(-3, 9), x=(-9, 9)).check().equal
    result = optimize(max_over(x, var("r", 0, 9), 0, n), gates=[n > 2])
    assert result.expr is x


def test_nothing_is_concluded_from_what_a_buffer_happens_to_hold():
    k = NAMES["k"]
    assert optimize(k * 8 // 8, constraints=[NAMES["A"][k].eq(k)]).expr is k
    assert optimize(parse("where(A[k] < 3, k, n)", NAMES), gates=[NAMES["A"][k] < 3]).expr is k


def test_faulhaber():
    for degree in range(9):
        for n in range(8):
            value = sum(c * n**power for power, c in enumerate(faulhaber(degree)))
            assert value == sum(k**degree for k in range(n))


def test_a_proof_is_for_all_contents():
    x = NAMES["x"]
    left, right = parse("sum(A[r] + x, r, 0, 5)", NAMES), parse("sum(A[r], r, 0, 5) + 5*x", NAMES)
    sampled, proved = check_equal([left], [right]), prove_equal([left], [right])
    assert (sampled.kind, sampled.equal) == ("sampled", True)
    assert (proved.kind, proved.equal) == ("proved", True)
    assert prove_equal([left], [right + x]).counterexample


@pytest.mark.parametrize("text", ["(i*3 + r*2)*2//7", "(i + (i + r)*2)*2//7", "A[(i*3 + r*2)*2 % 8]"])
def test_an_index_is_used_in_its_reduction_alone(text):
    # the dividend is congruent to i*2 with or without the index
    i = var("i", 3, 7)
    names = {**NAMES, "i": i}
    result = optimize([parse(f"sum({text}, r, 0, 5)", names), i * 2 % 4])
    assert variables([result.exprs[1]]) == [i]
    assert result.check().equal


@pytest.mark.parametrize(
    ("condition", "body"),
    [
        ("r//2 == i", "(where(r//2 == i, i*3, 2) + 98)//100"),
        ("r//2 == i", "A[r//2 + i*r]"),
        ("x//4 == r - i", "A[x//4 + r]"),
        ("r//2 == i", "sum(A[r//2 + s*r + i], s, 0, 2)"),
        ("r//2 == i", "max_over(A[s*r + i], s, 0, r//2 + 1)"),
    ],
)
def test_what_equals_a_quotient_of_an_index_stays_out_of_other_reductions(condition, body):
    # in the e-graph the index of a body may have the name of one that the operands of the body bind
    r, i, x = var("r", 1, 5), var("i", 0, 3), NAMES["x"]
    loop = parse(f"sum({body}, r, 1, 6)", {**NAMES, "r": r, "i": i})
    index = loop.args[1]
    taken = parse(condition, {"r": r, "i": i, "x": x}).substitute({r: index})
    term = where(taken, loop, 5)
    points = {"i": np.arange(4)[:, None, None], "x": np.arange(-9, 10)[:, None], str(index.value): np.arange(1, 6)}
    before, after = evaluate([term, LinearArithmetic().simplify(term)], points)
    assert (before == after).all()


def test_what_equals_another_quotient_reaches_into_a_reduction():
    names = {**NAMES, "i": var("i", 0, 3)}
    terms = [parse(f"where(x//4 == i, sum(A[{place} + r], r, 0, 6), 5)", names) for place in ("x//4", "i")]
    quotient, plain = map(LinearArithmetic().simplify, terms)
    assert quotient is plain


def test_costs_count_the_steps_of_a_loop():
    model = Latency()
    i, n = var("i", 0, 0), NAMES["n"]
    body = NAMES["A"][i] * (n * n)
    # 10 steps of a load, a product and the loop's own; n*n is computed once
    assert cost_of([sum_over(body, i, 0, 10)], model) == 10 * (model.load + 3 + 2) + 3


@given(reduction_terms())
@settings(max_examples=100)
def test_random_normal_forms_keep_their_value(drawn):
    term, _ = drawn
    assert check_equal([term], [LinearArithmetic().simplify(term)]).equal


def test_a_nest_among_many_addends():
    # each addend was looked at in a recursion of its own
    i, j, n = var("i", 0, 8), var("j", 0, 8), var("n", 0, 9)
    body = sum_over(NAMES["A"][i + j], j, 0, n)
    for place in range(600):
        body = body + NAMES["B"][i * 2 + place]
    assert loops(LinearArithmetic().simplify(sum_over(body, i, 0, n))) > 1


def test_partial_chains_of_a_long_index_are_not_evaluated(monkeypatch):
    evaluated = []

    def noted(roots, *given, **options):
        evaluated.append(roots)
        return evaluate(roots, *given, **options)

    monkeypatch.setattr(theory_reduce, "evaluate", noted)
    i = var("i", 0, 31)
    total = i
    for place in range(200):
        total = total + (i * (place + 3) // 7) * (i // (place + 2))
    assert loops(LinearArithmetic().simplify(sum_over(NAMES["A"][total], i, 0, 32))) == 1
    assert len(evaluated) < 100


def test_a_part_that_stands_again_and_again_is_looked_at_once():
    # each took time exponential in the number of rounds
    i, j, n = var("i", 0, 8), var("j", 0, 8), var("n", 0, 9)
    nest = sum_over(NAMES["A"][i + j], j, 0, n)
    far, size = var("far", 0, 10**40), var("size", 1, 10**40)
    steep = far
    for _ in range(40):
        nest = nest + nest
        steep = (steep * 3 + n) // 11 + (steep * 3 + n) // 13
    assert loops(LinearArithmetic().simplify(sum_over(nest + NAMES["B"][i], i, 0, n))) > 1
    assert loops(LinearArithmetic().simplify(max_over(steep, far, 0, size))) == 0


@pytest.mark.parametrize(
    "text",
    [
        "sum(sum(where(q < m, A[r//2*7 + r + x], 5), r, 0, 4 - q), q, 0, 4)",
        "sum(max_over(where(q < m, A[r//2*7 + r + x], 5), r, 0, 4 - q), q, 0, 4)",
        "max_over(where(q < m, sum(where(r < m, A[r//2*7 + r + x]*r, 3), r, 0, 4 - q), 3), q, 0, 4)",
    ],
)
def test_an_index_differs_from_those_in_the_ends_of_its_range(text):
    # with the sum for x, r gets the level that q has: r < 4 - q was read as r < 4 - r
    names = {"x": var("x", 0, 20), "m": var("m", 0, 6), "A": NAMES["A"]}
    fact = parse("x == sum(m*t*t%5, t, 0, 4)", names)
    found = LinearArithmetic([fact]).simplify(parse(text, names))
    assert check_equal([parse(text, names)], [found], constraints=[fact]).equal, str(found)


@pytest.mark.parametrize(
    "text",
    [
        "sum(sum(100//n, s, 0, 4), r, 0, n)",
        "sum(sum(200//(n*2), s, 0, 4), r, 0, n)",
        "sum(where(r < n, 100//n, 7), r, 0, 10)",
        "sum(where(r < n, 1, 100//(10 - n)), r, 0, 10)",
        "sum(where(r < n, 1, 200//(20 - n*2)), r, 0, 10)",
        "sum(sum(sum(100//r, s, 0, 4), t, 0, r), r, 0, n)",
        "sum(sum(tdiv(x, n), s, 0, 4), r, 0, n)",
    ],
)
def test_a_remainder_by_zero_is_the_dividend_where_its_value_counts(text):
    # n*(100//n) is 0 where n is 0, and 100 - 100%max(n, 1) is 100
    result = optimize(text, n=(0, 10), **({"x": (-9, 9)} if "x" in text else {}))
    assert result.check().equal, str(result.expr)


def test_a_remainder_by_zero_that_does_not_count_has_another_divisor():
    assert str(optimize("sum(100%n, r, 0, n)", n=(0, 10)).expr) == "100%max(n, 1)*n"


def test_a_nest_of_many_steps_is_not_computed():
    # 10**9 steps took ten seconds, whatever the budget
    inner = "sum(sum((r*s*t*t + s)%97, t, 0, {0}), s, 0, {0})"
    assert loops(LinearArithmetic().simplify(parse(f"sum({inner.format(1000)}, r, 0, 1000)", {}))) == 3
    assert loops(LinearArithmetic().simplify(parse(f"sum({inner.format(20)}, r, 0, 1000)", {}))) == 0


def test_evaluation_over_ranges_that_hang_on_the_point():
    n = np.arange(-3, 6)
    text = "sum(sum(s*r, s, 0, r), r, 0, n)"
    found = parse(text, {"n": var("n", -3, 5)}).evaluate({"n": n})
    assert found.tolist() == [sum(s * r for r in range(m) for s in range(r)) for m in n]


def test_contents_of_buffers():
    i = var("i", 0, 2)
    total = sum_over(NAMES["S"][i, 1], i, 0, 3)
    assert evaluate([total], {}, {"S": np.arange(64).reshape(8, 8)})[0] == 1 + 9 + 17


def test_too_many_steps_are_refused():
    i = var("i", 0, 1)
    with pytest.raises(ValueError, match="steps to evaluate"):
        evaluate([sum_over(NAMES["A"][i], i, 0, const(2**40))], {})
