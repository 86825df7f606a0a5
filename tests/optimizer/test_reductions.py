"""Rules about reductions modulo the theory: where they match, what they build, and that every node is right."""

from __future__ import annotations

import pytest
from audited import unequal_nodes
from hypothesis import HealthCheck, given, reject, settings
from reductions import loop_nests, reduction_terms

from eqsat.egraph.engine import Budget
from eqsat.egraph.matching import compiled
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, buffer, buffers, const, make, sum_over, topological, var, variables, where
from eqsat.lang.terms import buffer_key
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT, REDUCE
from eqsat.theory.linear import LinearArithmetic

NAMES = {"n": var("n", 0, 16), "m": var("m", 0, 9), "x": var("x", -4, 9), "A": buffer("A")}


def unequal(term: Expr) -> list[object]:
    """The nodes of the e-graph of an optimisation that do not have the value of their class."""
    result = optimize(term, budget=Budget(nodes=400, seconds=3))
    named = {str(v.value): v for v in variables([term])} | {buffer_key(a): a for a in buffers([term])}
    return unequal_nodes(result.graph, named)


@given(loop_nests())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_all_nodes_of_random_loop_nests_have_the_values_of_their_classes(term):
    assert not unequal(term)


@given(reduction_terms())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_all_nodes_of_random_reductions_have_the_values_of_their_classes(drawn):
    term, _ = drawn
    divisors = [t.args[1] for t in topological([term]) if t.op in ("floordiv", "mod")]
    if any(divisor.vmin <= 0 <= divisor.vmax for divisor in divisors):
        # where it divides by zero anything will do
        reject()
    assert not unequal(term)


@pytest.mark.parametrize("rule", REDUCE, ids=lambda rule: rule.name)
def test_every_rule_about_reductions_is_asked_of_egglog(rule):
    reductions = {"SumOver", "ProdOver", "MaxOver", "MinOver"}
    ways = compiled(rule)
    assert ways
    assert all(way.query is not None and way.reads & reductions for way in ways)


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


def test_what_is_known_of_an_index_says_nothing_of_another_of_its_name():
    # a branch where the outer index is 0 has a sum over one that shares its leaf: it was taken for 0 there
    result = optimize("sum((p*r*3 + r*3 - 1) % 100, r, 0, 2)", p=(0, 2))
    assert result.check().equal
    r = var("r", 0, 1)
    (index,) = {t.args[1] for t in topological([sum_over(r, r, 0, 2)]) if t.op == "sum_over"}
    body = make("sum_over", index, index, const(0), const(2))
    theory = LinearArithmetic()
    assert theory.value(where(index < 1, body, 0)) == theory.value(where(index < 1, 1, 0))
