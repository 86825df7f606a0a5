"""Sums in loop nests: what is added first, and what that costs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import expressions

from eqsat.extract import LoopAware, OpCount
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, var
from eqsat.lang.hoist import hoist
from eqsat.lang.text import parse, to_text
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal

LOOPS = LoopAware({"i": 10, "j": 8}, OpCount())
NAMES = {name: var(name, 0, 9) for name in "ijmn"}

HOISTED = [
    ("j + i + n", "n + i + j"),
    ("j + (i + (n + m))", "n + m + i + j"),
    ("n - j + m", "n + m - j"),
    ("j - n - m", "j - (n + m)"),
    ("-(j + n)", "-(n + j)"),
    ("j - (m - n)", "n - m + j"),
    ("-(-j - 1)", "1 + j"),
    ("(j + n)*3 + i", "i + (n + j)*3"),
    ("(j + 1)//3 + n", "n + (1 + j)//3"),
]


@pytest.mark.parametrize(("before", "after"), HOISTED)
def test_what_changes_in_outer_loops_is_added_first(before, after):
    assert [to_text(term) for term in hoist([parse(before, NAMES)], LOOPS)] == [after]


def test_a_root_that_is_part_of_another_stays_whole() -> None:
    inner = parse("j + n", NAMES)
    assert hoist([inner, inner + NAMES["i"]], LOOPS)[0] is parse("n + j", NAMES)


def test_a_sum_with_several_users_stays_whole():
    shared = parse("j + n", NAMES)
    roots = [shared + 1, shared + NAMES["m"]]
    assert cost_of(hoist(roots, LOOPS), LOOPS) == cost_of(roots, LOOPS) == 3 * 80


def test_a_sum_that_one_term_uses_twice_stays_whole():
    total = parse("(j + n) + (j + n)", NAMES)
    assert hoist([total], LOOPS) == [parse("(n + j) + (n + j)", NAMES)]


COSTS = [
    ("n*m", 1),
    ("n*m + i", 1 + 10),
    ("n*m + i + j", 1 + 10 + 80),
    ("j + i + n*m", 1 + 80 + 80),
]


@pytest.mark.parametrize(("text", "cost"), COSTS)
def test_a_term_is_paid_as_often_as_it_runs(text, cost):
    assert cost_of([parse(text, NAMES)], LOOPS) == cost


@pytest.mark.parametrize("extract", ["tree", "dag", "exact"])
def test_hoisting_is_priced_in(extract):
    ranges = dict.fromkeys("ijmn", (0, 9))
    result = optimize("j + i*3 + n*m", cost=LOOPS, extract=extract, **ranges)
    assert result.cost == 1 + 10 + 10 + 80
    assert result.check().equal


def test_a_quotient_of_what_no_loop_changes_leaves_the_loop():
    # one division either way; the first form does it once per iteration
    result = optimize("(n + 9*j) // 9 + i", cost=LoopAware({"i": 10, "j": 8}), n=(0, 99), i=(0, 9), j=(0, 7))
    assert result.cost < 10 * 8 * 2 < result.cost_before


@settings(max_examples=100)
@given(st.lists(expressions(), min_size=1, max_size=3), st.permutations(["i", "j", "k"]))
def test_hoisting_keeps_values(cases: list[tuple[Expr, list[Expr]]], order: list[str]):
    for root, _domain in cases:
        found = hoist([root], LoopAware(dict.fromkeys(order, 4)))
        assert check_equal([root], found).equal
