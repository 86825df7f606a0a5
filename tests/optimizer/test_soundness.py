"""Whatever comes in, what comes out is equal: random terms through every way, and shapes on which others were wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_terms import index_programs
from strategies import bool_expressions, expressions, grid

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import TRUE, Expr, buffer, var
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT

WAYS = {"theory and rules": {}, "theory": {"engine": "theory"}, "rules": {"theory": False}}
every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)

#: Enough for most, and an end for the others: a budget that runs out must not cost the truth.
SMALL = Budget(nodes=3000, seconds=0.5, rounds=8)


def assert_sound(
    roots: list[Expr], options: dict, facts: list[Expr] | None = None, gates: list[Expr | None] | None = None
) -> None:
    """Optimise, and compare input and output at every point at which the facts, and the root's gate, hold."""
    facts, gates = facts or [], gates or [None] * len(roots)
    result = optimize(roots, constraints=facts, gates=gates, budget=SMALL, **options)
    assert result.cost <= result.cost_before
    terms = [*roots, *result.exprs, *facts, *[g for g in gates if g is not None]]
    points = grid(variables(terms)) or {"no variable": np.zeros(1)}
    holds = np.all([np.ones(count_of(points), dtype=bool), *values(facts, points)], axis=0)
    # beyond the facts an answer may divide by zero
    points = {name: axis[holds] for name, axis in points.items()}
    for root, found, gate in zip(roots, result.exprs, gates, strict=True):
        before, after, matters = values([root, found, TRUE if gate is None else gate], points)
        wrong = (before != after) & matters
        where = {name: int(axis[wrong][0]) for name, axis in points.items() if wrong.any()}
        assert not wrong.any(), f"{root} became {found}, which differs at {where}"


def count_of(points: dict[str, np.ndarray]) -> int:
    return len(next(iter(points.values())))


def values(of: list[Expr], points: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.broadcast_to(v, (count_of(points),)) for v in evaluate(of, points)]


# shapes that were wrong elsewhere

AROUND_ZERO = {"x": (-40, 40), "y": (-6, 6), "n": (-5, 5)}
ENDS = {"x": (-(2**31), -(2**31) + 40), "y": (2**31 - 7, 2**31 - 1), "n": (-5, 5)}
RANGES = {"around zero": AROUND_ZERO, "ends of 32 bits": ENDS}

SHAPES = [
    # a canonicaliser of affine maps folded this over negative ranges
    "((x % 16) // 2 * 2) // 4",
    # an integer range pass lost the sign
    "-((-x) % 3)",
    # nested extremes collapsed wrongly in a computer algebra system
    "max(min(x, y), min(-x, n))",
    "min(max(x, 3), max(y, min(x, 5)))",
    "max(x, max(y, -x)) - min(x, min(y, -x))",
    "(x % max(n, 1)) // max(n, 1)",
    "(x % min(n, -1)) // min(n, -1)",
    "where(x < 0, -(-x // 8), x // 8)",
    "where(x < 0, (x + 7) // 8, x // 8)",
    "tdiv(x, 4) * 4 + tmod(x, 4)",
    "tdiv(x, -4) * -4 + tmod(x, -4)",
    "tmod(x, 8) % 8",
    "tdiv(tdiv(x, 3), 4) - tdiv(x, 12)",
    "x // -8 + x // 8",
    "x % -8 + (-x) % 8",
    "(x // -3) % -5",
    "shr(x, 3) * 8 + x % 8",
    "shr(shl(x, 4) + y, 2)",
    "shr(-x, 1) + shr(x, 1)",
    "(x*4 + y) // 4 % 3 - (x*4 + y) % 12 // 4",
    "(x*7 + y*3) // 21",
    "(x*6 + 4) // 8 - (x*3 + 2) // 4",
    "(x + x // 4) // 5 - x // 4",
    "(x - x % 3) // 3",
    "where(x // 8 == -1, x % 8, x + 8)",
    "where(x % 8 == x, x, x // 8 * 8)",
    "where(x < y and y < n, n - x, where(y <= x, y, x))",
    "(x + 1180591620717411303424) // 1180591620717411303424",
    "(x * 1180591620717411303424 + y) % 1180591620717411303424",
    "x * -2147483648 // 2147483648",
    "min(x, 1180591620717411303424) + max(y, -1180591620717411303424)",
    "x * x * x // 8 - x % 2 * y",
]


@every_way
@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("text", SHAPES)
def test_shapes_that_were_wrong_elsewhere(text, ranges, options):
    result = optimize([text], budget=SMALL, **ranges, **options)
    check = result.check()
    assert check.equal, f"{result.expr} differs at {check.counterexample}"
    assert result.cost <= result.cost_before


#: What was wrong here, under what is known.
OURS = [
    # a factor of a sum was taken out, and its constant lost
    (["(3 - min(3, max(i, 1)))*i + 2"], []),
    # a factor that is a sum itself, of a product too long to distribute, was counted twice
    (["sum(prod(r % 5 - 1, s, 0, 4), r, n, n + 1)"], []),
    # a condition was said without a quotient, with a constant on both sides
    (["where(i <= n, i, 1)"], ["i % 2 == 1"]),
    # a refutation asked for itself
    (["(where(4 < n, 0, i) + A[n]) % 2 % max(i % 6 % max(i, 1), 1)"], []),
    # and so did the complement of a condition
    (["where(k == 1 or m == 1 and k == -2, 1, 3) < min(i, m*3) + where(i == m, -2, k)"], []),
    # a selection was entered where nothing more is known, and came back
    (["where(3 < m, min(k, m), i) < k and i == m % 2 + where(k == i, i, 0)*2"], []),
    # a quotient in a branch that excludes zero as its divisor was evaluated where that is zero
    (["where(n < 3, (n*5 + 7)//max(n, 1)*-3, (n*5 + 7)//max(n, 1))"], []),
    # laws of symbolic quotients led from one to the next for ever
    (["((11 - t*2)*(t + 1) + r)//(t + 1)".replace("t", "tdiv(r*9 + 3, 8)").replace("r", "((k*3 + i*11 - 1)%7)")], []),
    # what a constraint makes of a condition had its first term subtracted, and was taken for the complement
    (["where(k < 0, n, 1)", "where(k == -2, i, n)", "where(2 < k, where(n - k < 4, 1, i), n)"], ["(k + n) % 3 == 0"]),
    # a quotient in a branch that is never taken was zero there, and one in what the e-graph had of it
    (["where(0 < n, where(n == 0, n//n, 2), 1)"], []),
    (["where(i == 0, 0, where(i < 1, tdiv(i, i), 1))"], []),
    # the only value of an index bound a loop
    (["prod(sum(where(r != i, prod(r % 5 - 1, s, 1, 6), 0), r, 1, 3) % 5 - 1, t, 1, 2)", "i // 3"], []),
]


@pytest.mark.parametrize(("texts", "facts"), OURS, ids=str)
def test_what_was_wrong_here(texts, facts):
    ranges = {"i": (0, 7), "k": (-3, 5), "m": (0, 30), "n": (0, 5)}
    names = {"A": buffer("A"), **{name: var(name, *bounds) for name, bounds in ranges.items()}}
    result = optimize([parse(t, names) for t in texts], constraints=[parse(f, names) for f in facts])
    assert result.check().equal


def test_a_divisor_keeps_the_sign_of_its_factor():
    assert optimize("(-1 - i*17)%(i*-2)", i=(-3, -2)).check().equal


@every_way
@settings(max_examples=60)
@given(expressions(max_points=128), bool_expressions(max_points=128))
def test_any_term(options, number, condition):
    assert_sound([number[0]], options)
    assert_sound([condition[0]], options)


@every_way
@settings(max_examples=60)
@given(index_programs())
def test_index_terms_together(options, program):
    terms, conditions = program
    assert_sound([*terms[-3:], *conditions[-1:]], options)


@st.composite
def known_terms(draw: st.DrawFn) -> tuple[list[Expr], list[Expr], list[Expr | None]]:
    """An index term and a condition, facts about them that hold somewhere, and a gate for some."""
    terms, conditions = draw(index_programs())
    aligned = (terms[0] % draw(st.sampled_from([2, 4, 6]))).eq(0)
    known = st.sampled_from([terms[0] < terms[0].vmax, aligned, *conditions])
    facts = draw(st.lists(known, max_size=2))
    gate = draw(known | st.none())
    points = grid(variables([*terms, *facts]))
    while facts and not np.all(np.broadcast_arrays(*evaluate([TRUE, *facts], points)), axis=0).any():
        facts.pop()
    return [terms[-1], (conditions or terms)[-1]], facts, [gate, None]


@every_way
@settings(max_examples=50)
@given(known_terms())
def test_where_facts_and_gates_hold(options, example):
    roots, facts, gates = example
    assert_sound(roots, options, facts, gates)


@every_way
@pytest.mark.parametrize("cost", ["latency", "codesize"])
def test_what_a_division_by_zero_would_be_says_nothing_of_where_it_is_not_taken(options, cost):
    # a remainder by zero would be its dividend, and the answer would not need the condition; by 1 it is zero
    x = "(i & 6)*2 - 1"
    root = parse(f"where({x} & 64 != 0, ({x}) % ({x} & 64), {x})", {"i": var("i", 0, 8)})
    assert_sound([root], {**options, "cost": cost})


@every_way
def test_a_shift_by_what_only_a_constraint_bounds(options):
    i = var("i", -2, 7)
    amount = parse("min(max(i, 0), 3)", {"i": i})
    # the constraint says that it is min(i, 0)*3 + 3, whose bounds have negative numbers
    assert_sound([(i << amount) * 2], options, [((i + 1) % 4).eq(0)])


@every_way
def test_an_equation_of_a_quotient_and_what_holds_it(options):
    part = "where(1%i != 0, 1%i//(1%i), 1%i) + 1%i"
    assert_sound([parse(f"where(({part})*2 != 0, 0, ({part})*2)", {"i": var("i", 1, 2)})], options)


@every_way
def test_a_dividend_that_is_its_divisor(options):
    x = "tmod(i, j + j) + i"
    names = {"i": var("i", -1, 1), "j": var("j", 3, 3)}
    assert_sound([parse(f"where({x} != 0, ({x}) % ({x}), {x})", names)], options)


GUARDED = [
    "sum(where(z != 0, n % z, n), r, 0, 3)",
    "sum(where(z == 0, n, n % z), r, 0, 3)",
    "sum(where(z != 0, n % z - n, 0), r, 0, 3) + n*3",
    "sum(where(z != 0, n // z, 0), r, 0, n)",
    "sum(where(r < z, n // z, n), r, 0, 3)",
    "max_over(where(z != 0, n // z, 0), r, 0, n)",
]


@every_way
@pytest.mark.parametrize("text", GUARDED)
def test_no_rule_takes_a_division_out_of_the_branch_that_guards_it(text, options):
    result = optimize(text, z=(-2, 2), n=(1, 4), **options)
    assert result.check().kind == "exhaustive"
    assert result.check().equal


@pytest.mark.parametrize("theory", [True, False])
@pytest.mark.parametrize("text", ["where(z != 0, n%z, n) + 1", "where(z != 0, n%z - n, 0)*3 + n*3"])
def test_nor_does_a_rule_of_ones_own(text, theory):
    apart = Rule("apart", "where(p, x, y)", "where(p, x - y, 0) + y")
    result = optimize(text, z=(-2, 2), n=(1, 4), rules=[apart, *DEFAULT], theory=theory)
    assert result.check().equal
    assert "apart" not in result.trace.rules
