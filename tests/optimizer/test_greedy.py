"""The greedy baseline: what it rewrites, that it is right, that it stops, and that the order of rules decides."""

from unittest.mock import patch

import pytest
from corpora import HAND, SEEDS, cases
from hypothesis import given, settings
from strategies import bool_expressions, expressions

from eqsat.egraph.rule import Rule
from eqsat.extract import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, buffer, const, make, var
from eqsat.lang.functions import minimum
from eqsat.lang.functions import where as choose
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological
from eqsat.optimizer.canonical_terms import canonical, canonical_terms
from eqsat.optimizer.front import optimize
from eqsat.optimizer.greedy import rewrite
from eqsat.optimizer.matcher import UNDOES, Matcher
from eqsat.optimizer.matcher import _Plan as Plan
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT

NAMES = {
    "i": var("i", 0, 7),
    "j": var("j", 0, 31),
    "x": var("x", 0, 1000),
    "y": var("y", -50, 50),
    "z": var("z", 0, 1),
    "n": var("n", 1, 99),
}

TABLE = [
    # before, after
    ("(i*32 + j)//32", "i"),
    ("(i*32 + j)%32", "j"),
    ("(x//8)*8 + x%8", "x"),
    ("y + (x//8)*8 + i + x%8", "i + x + y"),
    ("(x + 70)//8", "(x + 6)//8 + 8"),
    ("x//4//6", "x//24"),
    ("(y + 0)*1 + 3 - 3", "y"),
    ("y - x + 2*x", "x + y"),
    ("x*n//n", "x"),
    ("(x*n + y)%n", "y%n"),
    ("(4*x + 2)//8", "x//2"),
    ("tdiv(y*8, 4)", "y*2"),
    ("shr(x, 3)", "x//8"),
    ("not x < 5", "4 < x"),
    ("x <= 5 and x < 9", "x < 6"),
    ("x < 2000", "True"),
    ("x//8 == 3 and i < 8", "23 < x and x < 32"),
    ("where(i < 8, x, y)", "x"),
    ("where(x < 5, y, y)", "y"),
    ("min(x, x + i)", "x"),
    ("max(y, 60)", "60"),
    ("y != 0", "y != 0"),
    ("y - 1 < x", "y <= x"),
    ("-y", "-y"),
    ("y*-3 - x + 5", "5 - x - y*3"),
    ("x + i - (x & i)*2", "i ^ x"),
    ("x + i - (x & i)*3", "i + x - (i & x)*3"),
]


@pytest.mark.parametrize(("before", "after"), TABLE)
def test_table(before, after):
    found = rewrite([parse(before, NAMES)], seconds=60)
    expected = parse(after, NAMES)
    # the order of operands is free
    assert rewrite([expected]).roots == found.roots
    assert cost_of(found.roots, Latency()) == cost_of([expected], Latency())
    assert found.stop == "saturated"
    assert check_equal([parse(before, NAMES)], found.roots).equal


CANONICAL = [
    ("x + y", "y + x"),
    ("x + (y + (3 + i)) + 4", "(i + 7) + (y + x)"),
    ("x*(3*y)*n", "y*(n*x)*3"),
    ("min(x, min(5, y))", "min(min(y, x), 5)"),
    ("x < 5 and (y < 3 and i < 2)", "(i < 2 and x < 5) and y < 3"),
    ("x + 1 == y", "y == x + 1"),
    ("x - y", "y*-1 + x"),
    ("x <= y", "x < y + 1"),
    ("5 <= y", "4 < y"),
    ("x != y", "not y == x"),
]


@pytest.mark.parametrize(("one", "other"), CANONICAL)
def test_order_and_brackets_do_not_matter(one, other):
    # no rules: only the fixed order
    assert rewrite([parse(one, NAMES)], []).roots == rewrite([parse(other, NAMES)], []).roots


def test_a_canonical_term():
    x, y = NAMES["x"], NAMES["y"]
    assert canonical("sub", x, x) is canonical("add", canonical("mul", x, const(-1)), x)
    assert canonical("add", canonical("add", x, const(3)), canonical("sub", y, const(3))) is canonical("add", y, x)


@settings(max_examples=250)
@given(expressions() | bool_expressions())
def test_the_result_is_equal(drawn):
    root, _ = drawn
    found = rewrite([root], seconds=0.5)
    assert check_equal([root], found.roots).equal


@pytest.mark.parametrize("corpus", [HAND, SEEDS], ids=lambda path: path.stem)
def test_it_stops_on_the_corpora_by_itself_and_is_right(corpus):
    for case in cases(corpus):
        found = rewrite(case.exprs, DEFAULT, case.constraints)
        assert found.stop == "saturated", case.id
        assert check_equal(case.exprs, found.roots, constraints=case.constraints).equal, case.id


def test_the_order_of_rules_decides():
    split = Rule("split", "(x*c + y) // d", "x*(c//d) + y//d", "c % d == 0")
    nest = Rule("nest", "(x//c + y) // d", "(x + y*c) // (c*d)", "d > 0")
    root = parse("(x//4 + z*2) // 2", NAMES)
    assert rewrite([root], [split, nest]).roots == [parse("x//4//2 + z", NAMES)]
    assert rewrite([root], [nest, split]).roots == [parse("x//8 + z", NAMES)]


def test_the_e_graph_does_not_depend_on_it():
    root = parse("(x*12 + z*4 + 3) // 8", NAMES)
    costs = {optimize(root, rules=rules, theory=False).cost for rules in (DEFAULT, DEFAULT[::-1])}
    assert len(costs) == 1


def test_of_two_rules_that_undo_each_other_the_later_is_left_out():
    names = [rule.name for rule in DEFAULT]
    assert {*UNDOES, *UNDOES.values()} <= set(names)
    for rule, other in UNDOES.items():
        both = [r for r in DEFAULT if r.name in (rule, other)]
        x, y, n = NAMES["x"], NAMES["y"], NAMES["n"]
        roots = [x * 2 + y * 4, x * 2 + 4, x * n + n, (x + y) * 4, (x + 2) * n]
        assert rewrite(roots, both).stop == "saturated"
        assert rule not in rewrite(roots, both).matches
        turned = rewrite(roots, both[::-1])
        assert turned.matches[rule]
        assert (turned.stop, other in turned.matches) == ("saturated", False)


CIRCLES = [
    [Rule("there", "x // 8", "x // 4 // 2"), Rule("back", "x // c // d", "x // (c*d)", "d > 0")],
    [Rule("inward", "(x + y) * n", "x*n + y*n"), Rule("outward", "x*n + y*n", "(x + y) * n")],
]


@pytest.mark.parametrize("rules", CIRCLES, ids=lambda rules: rules[0].name)
def test_a_circle_is_reported_and_its_answer_is_right(rules):
    roots = [parse("x//8 + 1", NAMES), parse("(x + y)*3", NAMES)]
    found = rewrite(roots, rules)
    assert found.stop == "iterations"
    assert found.circles
    assert check_equal(roots, found.roots).equal


def test_rules_without_end_stop_at_the_limit():
    root = parse("x % 7", NAMES)
    found = rewrite([root], [Rule("grow", "x % d", "(x + d) % d")], limit=20)
    assert (found.roots, found.stop, found.matches) == ([parse("(x + 140) % 7", NAMES)], "iterations", {"grow": 20})
    assert found.circles == 0


def test_the_limit_repeats_the_first_steps():
    roots = [parse("x//4//6", NAMES), parse("j%64", NAMES)]
    assert rewrite(roots).applied == ["div-div", "mod-in-range"]
    assert [list(map(str, rewrite(roots, limit=limit).roots)) for limit in range(3)] == [
        ["x//4//6", "j%64"],
        ["x//24", "j%64"],
        ["x//24", "j"],
    ]


def test_without_time_the_terms_as_they_are():
    root = parse("x//4//6", NAMES)
    found = rewrite([root], seconds=0.0)
    assert (found.roots, found.stop, found.matches) == ([root], "time", {})


FACTS = [
    # root, fact, after
    ("x // 8", "x < 8", "0"),
    ("x % 8", "x <= 7", "x"),
    ("where(y < 0, x, y)", "y >= 0", "y"),
    ("x // n", "x < n", "0"),
    ("x % 8", "x + y < 3 or y == 2", "x % 8"),
]


@pytest.mark.parametrize(("root", "fact", "after"), FACTS)
def test_facts(root, fact, after):
    known = [parse(fact, NAMES)]
    found = rewrite([parse(root, NAMES)], DEFAULT, known)
    assert found.roots == [parse(after, NAMES)]
    assert check_equal([parse(root, NAMES)], found.roots, constraints=known).equal


def test_facts_that_contradict_each_other():
    with pytest.raises(ValueError, match="contradict"):
        rewrite([NAMES["x"]], DEFAULT, [parse("x < 5", NAMES), parse("x > 7", NAMES)])


def test_a_gate_that_the_constraints_exclude():
    known = {"constraints": ["i % (k*k) % 4 == 1"], "gates": ["k != 2", None]}
    result = optimize(["i + k*3", "i"], i=(8, 15), k=(1, 2), engine="greedy", **known)
    assert result.check().equal


@pytest.mark.parametrize("op", ["shl", "shr"])
def test_a_shift_amount_that_facts_keep_in_its_range(op):
    x, y = var("x", 0, 99), var("y", 0, 9)
    result = optimize(make(op, x, y % 8) + y // 8, constraints=[y >= 8], engine="greedy")
    assert result.check().equal


def test_a_branch_that_is_never_evaluated():
    # its divisor is known to be zero once it is simplified
    x, y, n = NAMES["x"], NAMES["y"], NAMES["n"]
    root = choose(x + y < -50, x // (y * n - n * y), x)
    assert rewrite([root]).roots == [x]


def test_a_division_stays_in_the_branch_that_keeps_its_divisor_from_zero():
    result = optimize("sum(where(r < d, 1, 100//(10 - d)), r, 0, 10)", engine="greedy", d=(0, 10))
    assert result.check().equal
    # this one is never zero
    assert "sum" not in str(optimize("sum(where(r < d, 1, 100//(11 - d)), r, 0, 10)", engine="greedy", d=(0, 10)).expr)


@pytest.mark.parametrize("guard", ["steps(x, c) and 0 < c and c < d", "divides(x, c) and 0 < c and c < d"])
def test_a_rule_whose_guard_looks_for_a_literal_in_bodies_is_left_out(guard):
    rule = Rule("apart", "sum(x, i, 0, d)", "sum(x, i, 0, c) + sum(x, i, c, d)", guard)
    result = optimize("sum(r*3//5, r, 0, 7)", rules=[rule], engine="greedy")
    assert result.check().equal


def test_deep_terms():
    root: Expr = NAMES["x"]
    for _ in range(3000):
        root = minimum(root, NAMES["y"]) + 1
    found = rewrite([root], seconds=0.2)
    assert check_equal([root], found.roots, samples=100).equal


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.01, 60.0])
def test_a_range_of_one_value_where_the_time_is_up(seconds):
    root = parse("sum(x*r + x//3, r, 5, 6) + sum(max_over(x*r + s%7, r, 0, 1), s, 0, 1)", NAMES)
    assert check_equal([root], rewrite([root], seconds=seconds).roots, samples=100).equal


def test_behind_the_front_door():
    names = {"i": (0, 7), "j": (0, 31)}
    found = optimize(["(i*32 + j) // 32", "j % 64"], engine="greedy", **names)
    assert [str(e) for e in found.exprs] == ["i", "j"]
    assert (found.stop, found.bound) == ("saturated", None)
    assert found.rules["div-multiple"] == 1


def test_gates_are_facts_of_their_own_roots():
    found = optimize(["i % 4", "i % 4"], gates=["i < 4", None], engine="greedy", i=(0, 7))
    assert [str(e) for e in found.exprs] == ["i", "i%4"]
    never = optimize(["i % 4"], gates=["i < 0"], engine="greedy", i=(0, 7))
    assert str(never.expr) == "0"


REDUCED = [
    ("sum(where(r < n, 0, x), r, 0, 10)", 0),
    ("sum(where(r >= m and r < n, x, 0), r, 0, 10)", 0),
    ("sum(where(m != r, 0, A[r]), r, 0, 8)", 0),
    ("sum(x*(r < n) + 3, r, 0, 10)", 0),
    ("sum(sum(x, s, 0, 3), r, 0, n)", 0),
    ("max_over(x, r, 0, 5)", 0),
    ("prod(r, r, 0, 0)", 0),
    ("sum(A[(r*4 + 1)//4]*x, r, 0, 8)", 1),
    ("max_over(x, r, 0, n)", 1),
]


@pytest.mark.parametrize("options", [{"engine": "greedy"}, {"theory": False}], ids=["greedy", "rules"])
@pytest.mark.parametrize(("text", "loops"), REDUCED, ids=[row[0] for row in REDUCED])
def test_reductions_collapse_by_rules(text, loops, options):
    names = {"n": var("n", -3, 12), "m": var("m", -3, 12), "x": var("x", -9, 9), "A": buffer("A")}
    result = optimize(parse(text, names), **options)
    assert result.check().equal
    assert sum(t.op in REDUCTIONS for t in topological(result.exprs)) == loops


@pytest.mark.parametrize(("part", "joined"), [("x{n} < y{n}", " and "), ("where(x{n} < 3, 4, y{n})*5", " + ")])
def test_no_rule_is_matched_with_operands_that_lack_operators_of_its_own(part, joined) -> None:
    names = {f"{letter}{n}": var(f"{letter}{n}", 0, 9) for letter in "xy" for n in range(16)}
    (term,) = canonical_terms([parse(joined.join([part.format(n=n) for n in range(16)]), names)])
    with patch.object(Plan, "match", autospec=True, side_effect=Plan.match) as match:
        assert not [*Matcher(DEFAULT).rewrites(term)]
    # before, every two of these were matched with each of the rules
    assert 0 < match.call_count < 500


def test_a_rule_matches_the_first_term_that_it_is_tried_on():
    # no shipped rule has these operators below each other
    text = "tmod(tdiv(x, y) ^ y, z)"
    (term,) = canonical_terms([parse(text, {v: var(v, 1, 9) for v in "xyz"})])
    assert [name for name, _ in Matcher([Rule("first", text, "z", check=False)]).rewrites(term)] == ["first"]
