"""Explanations: derivations that end at the answer, whose every step holds, by no more laws than are needed."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from corpora import HAND, SAMPLE, cases
from hypothesis import given, reject, settings
from index_terms import index_terms
from reductions import reduction_terms

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.explain import plan
from eqsat.explain.chains import LEMMAS, WITHOUT_PATTERN, laws_with
from eqsat.explain.derivation import explain
from eqsat.lang.errors import UnsoundStepError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, substitute, var
from eqsat.lang.functions import where
from eqsat.lang.text import parse, parse_program
from eqsat.lang.traversal import variables
from eqsat.optimizer import matcher
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.explanation import COARSE, Explanation
from eqsat.prove.proof import prove_rule
from eqsat.rules import DEFAULT


def points_of(terms: list[Expr], count: int = 400) -> dict[str, np.ndarray]:
    """Random points, the ends of every range among them."""
    random = np.random.default_rng(0)
    found = {"no variable": np.zeros(count)}
    for v in variables(terms):
        values = random.integers(v.vmin, v.vmax, count, endpoint=True)
        values[: count // 4] = np.where(random.integers(0, 2, count // 4), v.vmin, v.vmax)
        found[str(v.value)] = values
    return found


def assert_equal_where(conditions: list[Expr], before: Expr, after: Expr) -> None:
    points = points_of([before, after, *conditions])
    *holds, x, y = np.broadcast_arrays(*evaluate([*conditions, before, after], points, total=True), np.zeros(400))[:-1]
    wrong = np.all([np.ones(400, dtype=bool), *holds], axis=0) & (x != y)
    assert not wrong.any(), f"{before} = {after} fails where {[{n: v[wrong][0] for n, v in points.items()}]}"


def sound(result: Result, **options: object) -> Explanation:
    """The explanation, once its steps are known to hold, and to lead from the input to the output."""
    # a busy machine shall not stop what is to be found
    found = explain(result, **{"seconds": 60.0} | options)
    roots = list(result.before)
    for step in found.steps:
        assert step.before is not step.after
        assert step.check.equal
        for index in step.roots:
            gate = result.gates[index]
            context = [*result.constraints, *step.given, *([] if gate is None else [gate])]
            assert_equal_where(context, step.before, step.after)
            old = roots[index]
            roots[index] = step.apply(old)
            assert roots[index] is not old
            if not step.given:
                assert roots[index] is substitute([old], {step.before: step.after})[0]
    assert tuple(roots) == result.exprs
    assert list(found.laws) == list(dict.fromkeys(step.law for step in found.steps))
    return found


@pytest.mark.parametrize("rule", LEMMAS, ids=lambda rule: rule.name)
def test_lemmas_are_true(rule):
    assert prove_rule(rule).kinds == ("symbolic",)


R = {"R3": (0, 3), "R4": (0, 1), "R2": (0, 3)}
X = {"x": (0, 999), "y": (0, 9)}

DERIVED = [
    # root, ranges, the terms in between, the laws
    ("R0//8*8 + R0%8", {"R0": (0, 31)}, [], ["mod-core"]),
    ("(R3*8 + R4*4 + R2)//8", R, [], ["div-aligned-rest"]),
    ("(R3*8 + R4*4 + R2)%8", R, ["(R4*4 + R2)%8"], ["mod-whole", "mod-in-range"]),
    ("(R3*8 + R4*4 + R2)//8*8 + (R3*8 + R4*4 + R2)%8", R, [], ["mod-core"]),
    ("x//96*96 + x//12%8*12 + x%12", X, ["x//96*96 + x%96"], ["mod-digits", "mod-core"]),
    ("x%24%8", X, [], ["mod-of-mod"]),
    ("x//4//8", X, [], ["div-div"]),
    ("tdiv(x, 16)", X, [], ["tdiv-same-sign"]),
    ("x + 2*y - y + x", X, [], ["collect"]),
    ("x//(16*12)", X, [], ["compute"]),
    ("y + x", X, [], ["reorder"]),
    ("where(x < 5, y, y)", X, [], ["where-same"]),
    ("x < 5 and x < 9", X, [], ["lt-and-lt"]),
    ("x//8 < 4", X, [], ["lt-div"]),
    ("x + 3", X, [], []),
    # an equation that a condition states
    ("where((x + y)%2 == 0, (x + y)//2*2, 0)", X, ["(x + y)%2 < 1"], ["eq-lowest", "solve"]),
    (
        "where((x + y)%2 == 0, (x + y)//2*2 + z, x + y)",
        X | {"z": (0, 3)},
        ["(x + y)%2 < 1", "x + y + z"],
        ["eq-lowest", "solve", "where-pull-add-one"],
    ),
]


@pytest.mark.parametrize(("text", "ranges", "between", "laws"), DERIVED, ids=str)
def test_a_derivation(text, ranges, between, laws):
    found = sound(optimize([text], **ranges))
    assert [step.law for step in found.steps] == laws
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    assert [step.after for step in found.steps[:-1]] == [parse(t, names) for t in between]


KNOWN = [
    # roots, constraints, gates, the answers, laws that must be cited
    (["(x*n + y)//n"], ["y < n"], [None], ["x"], ["symbolic-multiple-div", "symbolic-below-div"]),
    (["x//n*n + x%n"], [], [None], ["x"], ["mod-core-symbolic"]),
    (["(x*n + y*n)//(n*n)"], [], [None], ["(x + y)//n"], ["factor-out", "cancel-factor-div"]),
    (["x%8"], [], ["x < 8"], ["x"], ["mod-in-range"]),
    (["x%8", "x%8"], [], ["x < 8", None], ["x", "x%8"], ["mod-in-range"]),
    (["(x + y)//8"], [], ["x + y < 8"], ["0"], ["symbolic-below-div"]),
    (["x//8*8", "x%8"], ["x%8 == 0"], [None, None], ["x", "0"], ["solve"]),
    (["x + y"], ["x == 7"], [None], ["y + 7"], ["known-value"]),
    (["where(x < 8, x//8, 1)"], [], [None], ["where(x < 8, 0, 1)"], ["where-narrow-div"]),
    (["where(x < 8, y, where(x < 4, 3, x//8))"], [], [None], ["where(x < 8, y, x//8)"], ["where-else-refuted"]),
    (["where(x < 8 and y < 4, (x + y*8)//32, x)"], [], [None], ["where(x < 8 and y < 4, 0, x)"], ["div-bucket"]),
    (["x < 9 and x + y < 5"], [], [None], ["x + y < 5"], ["implied"]),
    (["min(x < 9, y < 3)"], [], [None], ["x < 9 and y < 3"], ["junction"]),
    (["where(max(x < 9, y < 3), x%7, x)"], [], [None], ["where(x < 9 or y < 3, x%7, x)"], ["junction"]),
    (["min(x, y)%4", "max(x, y)"], ["x <= y"], [None, None], ["x%4", "y"], ["min-ordered", "max-ordered"]),
]


@pytest.mark.parametrize(("roots", "constraints", "gates", "answers", "laws"), KNOWN, ids=str)
def test_what_is_known_is_used(roots, constraints, gates, answers, laws):
    ranges = {"x": (0, 999), "y": (0, 63), "n": (1, 64)}
    result = optimize(roots, constraints=constraints, gates=gates, **ranges)
    found = sound(result)
    assert found.coarse == 0
    assert set(laws) <= set(found.rules)
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    for answer, expr, gate in zip(answers, result.exprs, result.gates, strict=True):
        assert_equal_where([*result.constraints, *([] if gate is None else [gate])], parse(answer, names), expr)


W = {"u": (0, 999), "v": (0, 999), "x": (-20, 20), "y": (-9, 9), "z": (0, 9), "w": (0, 9), "n": (1, 9)} | {
    "bit": (0, 1),
    "one": (0, 2),
    "two": (4, 5),
    "few": (10, 12),
}

WAYS = [
    # a kind of step, and a root whose derivation has one
    ("the cases of a condition of the answer", "z%9"),
    ("of one that is about the divisor", "few//two"),
    ("of one of the input", "where(x < 0, -x, x)"),
    ("of one that the answer has not", "where(2 != one, one, 0)"),
    ("of a variable with two values", "bit*x"),
    ("of two such variables", "(bit*3 + 2 + 2*where(x < 1, 0, 1))//6"),
    ("the sides of an equation", "y*-1 != x"),
    ("a quotient that is one value", "(u - z)//33 == 0"),
    ("quotients and what they are compared with", "where(v//2 <= u, 1, 0)*2 < 1"),
    ("sums out of extremes", "min(min(u*-1220 + v*8, x*8 + 1113) - x*8, 504)//4"),
    ("factors out of extremes", "max(x*4 + 8, y*4)"),
    ("signs out of extremes", "max(x*-4 + 8, y*-4)"),
    ("quotients of extremes", "max(3, z + z)//3"),
    ("a sum and an extreme of it", "(u - v + 193)//124 - max((u - v + 69)//124, 0)"),
    ("extremes in extremes", "max(y, min(z, max(x, y)))"),
    ("an extreme of extremes with offsets", "min(max(x, 3), max(y, -1) + 4)"),
    ("products of extremes", "min(x, y)*max(x, y)"),
    ("products of two sums", "x*z + y*z + x*w + y*w"),
    ("a product that is zero", "x*y == 0"),
    ("powers", "prod(x, r, 0, 5)"),
    ("a sum with two branches", "sum(where(r < x, y, 1), r, 0, 10)"),
    ("truncated quotients compared", "0 <= tdiv(x, 3) and tdiv(x, 2) < 3"),
    ("truncated quotients of quotients", "tdiv(tdiv(x, 2), 3)"),
    ("truncated quotients of multiples", "tdiv(x*2, 4)"),
    ("truncated quotients of negatives", "min(tdiv(u - v, -10), tdiv(v - x, -10))"),
    ("truncated remainders", "x*3 - tdiv(x, 2)*6"),
    ("common factors of truncated quotients", "tdiv(x*n*6, n*3)"),
    ("multiples by multiples of a variable", "(4*z + 3)//(2*n)"),
    ("negative multiples of a variable", "100//(n*-1)"),
    ("a factor that is a sum", "z*(w*4 + 4)//(w + 1)"),
    ("what an equation says of a comparison", "u//10 == 5 and u%10 < 7"),
    ("a condition as a value", "where(1 <= x, True, False)"),
    ("a branch in a branch", "where(x < 5, where(x < 5, where(x < 5, -x, x)*2, where(x < 5, -x, x) + 1)*3, x)"),
]


@pytest.mark.parametrize("root", [root for _, root in WAYS], ids=[kind for kind, _ in WAYS])
def test_the_ways_between_the_two_sides_of_a_step(root):
    assert sound(optimize([root], **W)).coarse == 0


@pytest.mark.parametrize(
    "root",
    [
        "sum(where(r1 != 0, z%r1, 2), r1, 0, 3)",
        "24 - where(one != 0, 8//one, one)",
        "where(one != 0, 8//one, one*0) + 1",
    ],
)
def test_no_step_divides_by_what_only_a_selection_keeps_from_zero(root):
    sound(optimize([root], **W))


def test_a_number_does_not_become_a_quotient_that_a_branch_of_the_answer_keeps_from_zero():
    # the answer has the 1 below as a quotient by what is zero at one of the two points
    part = "where(tmod(j, 2) != 0, tmod(j, 2)//tmod(j, 2), tmod(j, 2)) + tmod(j, 2)"
    result = optimize(f"({part})//max({part}, 1)", j=(-10, -9), theory=False)
    assert "//" in str(result.expr)
    sound(result)


def test_a_rule_without_a_reason_is_cited_by_its_name():
    for left, right, text, cited in [
        ("x*x % 2", "x % 2", "i*i%2", "parity  [at all 101 points]"),
        ("(x*x + y) % 2", "(x + y) % 2", "(i*i + j)%2", "parity: (i*i + j)%2 = (i + j)%2  [at all 505 points]"),
    ]:
        rules = [*DEFAULT, Rule("parity", left, right)]
        assert str(optimize(text, i=(0, 100), j=(0, 4), rules=rules).explain()).splitlines()[1].endswith(f"  {cited}")


def test_what_was_conjectured_and_proved_is_cited():
    result = optimize("x//3 + (x + 1)//3 + (x + 2)//3", **X)
    assert result.conjectures
    assert sound(result).rules == ("conjecture",)


def test_where_a_gate_never_holds_any_value_will_do():
    result = optimize(["x%8", "x%24%8"], gates=["x < y and y < x", None], **X)
    assert sound(result).rules == ("never", "mod-of-mod")


def test_a_branch_is_rewritten_where_its_condition_holds_and_nowhere_else():
    x, y = var("x", 0, 999), var("y", 0, 9)
    (step,) = sound(optimize(where(x < 8, y * 3 + x // 8, y))).steps
    assert (step.before, step.after, step.given) == (y * 3 + x // 8, y * 2 + y, (x < 8,))
    elsewhere = where(y < 8, step.before, 0) + where(x < 8, x, step.before)
    assert step.apply(elsewhere) is elsewhere
    assert step.apply(where(x < 8, step.before, step.before)) is where(x < 8, step.after, step.before)
    other = replace(step, given=(~(x < 8),))
    assert other.apply(where(x < 8, step.before, step.before)) is where(x < 8, step.before, step.after)


@pytest.mark.parametrize("case", cases(HAND), ids=lambda case: case.id)
def test_every_hand_case_by_single_laws_none_of_which_can_be_spared(case):
    result = optimize(case.exprs, constraints=case.constraints, gates=case.gates)
    found = sound(result)
    assert found.coarse == 0
    assert found.minimal
    for law in found.rules:
        others = set(found.rules) - {law}
        assert explain(result, only=others).coarse > 0, law


@settings(max_examples=30)
@given(index_terms())
def test_index_terms(terms):
    sound(optimize(terms[-3:]), seconds=1.0)


@pytest.mark.parametrize("options", [{"theory": False}, {"engine": "greedy"}, {"extract": "exact"}], ids=str)
def test_however_it_was_found(options):
    result = optimize(["min(x*4, y*4)//4 + max(x, y)", "(x*12 + y)%12"], **X, **options)
    assert sound(result).coarse == 0


@pytest.mark.parametrize("name", ["reduce_reshape/merge/0", "tril/raw/0", "repeat/postopt/0"])
def test_kernels(name):
    case = next(case for case in cases(SAMPLE) if case.id == f"tinygrad/{name}")
    result = optimize(case.exprs, gates=case.gates, constraints=case.constraints)
    assert sound(result).coarse == 0


def test_deep_terms_in_bounded_time():
    x = var("x", 0, 63)
    term = x
    for _ in range(200):
        term = (term + x) % 97
    sound(optimize([term]), seconds=0.5)


def test_the_time_begins_when_the_rules_are_compiled(monkeypatch):
    passed = 0.0

    def slow(rule: Rule) -> object:
        nonlocal passed
        passed += 1.0
        return compiled(rule)

    compiled, clock = matcher._compile, time.perf_counter
    monkeypatch.setattr(matcher, "_compile", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + passed)
    matcher._compiled.cache_clear()
    result = optimize("x//4*4 + x%4", x=(0, 31), budget=Budget(seconds=1000))
    assert explain(result, seconds=100.0).rules == ("mod-core",)
    assert passed > 100


def test_without_time_one_coarse_step_for_each_root():
    found = sound(optimize(["x%24%8", "x//4//8"], **X), seconds=0.0)
    assert [(step.roots, step.law) for step in found.steps] == [((0,), "normal-form"), ((1,), "normal-form")]
    assert not found.minimal
    assert "coarse" in str(found)


def test_without_time_no_shorter_forms_are_looked_for(monkeypatch):
    # each is found by a traversal of all that is below
    monkeypatch.setattr(plan, "_simple", None)
    sound(optimize(["(x//8*8 + x%8)*2 + (x*3 + y)%3"], x=(0, 99), y=(0, 2)), seconds=0.0)


def test_a_divisor_that_is_kept_and_always_zero():
    result = optimize("k//6//k", k=(-9, 0), constraints=["0 <= k"], unknown_divisors="keep")
    assert [step.law for step in result.explain().steps] == ["never"]


def test_what_the_laws_do_not_reach_is_coarse():
    result = optimize(["x%24%8"], **X)
    assert sound(result, only=[]).coarse == 1
    assert sound(result, only=["mod-of-mod"]).coarse == 0


def test_one_name_is_no_list_of_laws():
    with pytest.raises(TypeError, match="the laws that may be cited are given as 'mod-of-mod': give a list of str"):
        explain(optimize(["x%24%8"], **X), only="mod-of-mod")


def test_a_rule_of_ones_own():
    rule = Rule("least-times-most", "min(x, y) * max(x, y)", "x*y", why="one of them is the least, the other the most")
    result = optimize(["min(x, y % 4) * max(x, y % 4)"], rules=[*DEFAULT, rule], **X)
    assert sound(result).rules == ("least-times-most",)
    assert rule in laws_with((rule,))


@pytest.mark.parametrize("name", ["normal-form", "reorder"])
def test_a_rule_called_as_another_law_is_not_cited(name):
    rule = Rule(name, "min(x, y) * max(x, y) * 3 % 5", "x*y*3%5", why="one of them is the least, the other the most")
    assert rule not in laws_with((rule,))
    explanation = sound(optimize(["min(x, y % 4) * max(x, y % 4) * 3 % 5"], rules=[*DEFAULT, rule], **X))
    assert all(explanation.laws[law] == {**WITHOUT_PATTERN, **COARSE}[law] for law in explanation.laws if law == name)


@pytest.mark.parametrize("answer", ["x", "x%8 + 1", "x%4"])
def test_a_false_answer_is_an_error(answer):
    result = optimize(["x%24%8"], **X)
    names = {name: var(name, *bounds) for name, bounds in X.items()}
    with pytest.raises(UnsoundStepError, match=r"is not .*: see \{'x': \d+"):
        explain(replace(result, exprs=(parse(answer, names),)))


def test_proofs_on_request():
    result = optimize(["(x*6 + 5)//3"], x=(-(2**40), 2**40))
    assert {step.check.kind for step in sound(result).steps} == {"sampled"}
    assert {step.check.kind for step in sound(result, prove=True).steps} == {"proved"}


def test_as_text():
    text = str(explain(optimize(["(R3*8 + R4*4 + R2)%8"], **R)))
    assert text == (
        "(R3*8 + R4*4 + R2)%8\n"
        "  = (R4*4 + R2)%8    mod-whole: whole multiples vanish  [at all 32 points]\n"
        "  = R2 + R4*4        mod-in-range: (R4*4 + R2)%8 = R4*4 + R2 (0 <= x < d)  [at all 8 points]\n"
        "\n"
        "By 2 laws, none of which can be spared:\n"
        "  mod-whole     (x*c + y) % d = y % d  when d > 0 and c % d == 0\n"
        "  mod-in-range  x % d = x  when 0 <= vmin(x) and vmax(x) < d"
    )
    assert "nothing to derive" in str(explain(optimize(["x + 1"], **X)))


def test_as_data():
    big = " + ".join(f"x//{n}%7" for n in range(2, 12))
    result = optimize([f"(({big})*8 + y)//8", f"(({big})*8 + y)%8 + {big}"], x=(0, 999), y=(0, 7))
    found = sound(result)
    record = json.loads(json.dumps(found.record()))
    assert record["lets"]
    names = {"x": var("x", 0, 999), "y": var("y", 0, 7)}
    for step, data in zip(found.steps, record["steps"], strict=True):
        assert parse_program(record["lets"], [data["before"], data["after"]], names) == [step.before, step.after]
        assert (data["law"], data["roots"], data["checked"]) == (step.law, list(step.roots), step.check.kind)
    assert set(record["laws"]) == {step["law"] for step in record["steps"]}


REFLECTED = {"bound-below", "sum-unparented", "clamp-turned", "min-reflected", "max-reflected"}
#: (a reduction, the laws that its derivation cites)
OF_REDUCTIONS = [
    ("sum(where(r < n, 0, x), r, 0, 10)", REFLECTED),
    ("sum(where(m != r, 0, A[r]), r, 0, 8)", {"gather-ne", "eq-div"}),
    ("sum((r + 8*x)//8, r, 0, 8)", {"div-aligned-rest", "sum-unparented"}),
    ("sum(sum(where(r == s, A[r], 0), r, 0, 8), s, 0, 8)", {"gather", "dead-branch"}),
    ("max_over(x, r, 0, 5) + A[(x*4 + 1)//4]", {"max-unparented", "div-whole"}),
]


@pytest.mark.parametrize(("text", "laws"), OF_REDUCTIONS, ids=[row[0] for row in OF_REDUCTIONS])
def test_reductions_are_derived_by_the_rules_about_them(text, laws):
    names = {"n": var("n", -3, 12), "m": var("m", -3, 12), "x": var("x", -9, 9), "A": buffer("A")}
    found = optimize(parse(text, names)).explain()
    assert set(found.rules) == laws
    assert not found.coarse


#: Divisions that are right only where a condition keeps their divisor from zero, or that simplify to one by zero.
GUARDED = [
    "where(y != 0 and z < 7, (x*y + z%y)//y + (x*10 + z*100)//10, (z*8 + x*8 + 4)//8 + (x*10 + z)//10%7)",
    "where(y < 0 or 0 < y, (x*y + z%y)//y, 0)",
    "where(y%3 != 0, (x*y + z%y)//y, 0)",
    "where((z - z)//4 != 0, tmod(y + z*(z - z), z - z), y) + where(z != 0, tdiv(y*z, z), 1)",
    "where(not 0 < x - x, z, (z + (y - y)*(x - x))%(x - x))",
    "where(y == 0, y, where(0 < max(y, 0), tmod(x + x*y, y), x))",
]


@pytest.mark.parametrize("text", GUARDED)
def test_what_is_true_only_under_a_condition_is_shown_under_it(text):
    found = sound(optimize(text, x=(0, 9), y=(-9, 9), z=(0, 9)))
    assert found.steps


def test_an_index_that_is_always_zero_is_no_name_for_zero_outside_of_its_reduction():
    large = "where(tdiv(1 + i*1 + r*1, 2) <= -2 + n*-2, min(5 + n*6, tdiv(1 + r*-2, 4)), 1)%5"
    result = optimize(f"prod({large} - 2, r, 0, 0 + 1)", i=(0, 11), n=(1, 6), engine="greedy")
    assert "prod" in str(result.expr)
    sound(result)


def test_a_condition_on_an_index_is_no_case_outside_of_its_reduction():
    names = {"P": buffer("P", "bool"), "m": var("m", 0, 9)}
    sound(optimize(parse("sum(where(P[r], r, 0)*r, r, 0, m)", names)))


def test_what_no_rule_about_reductions_reaches_is_a_coarse_step():
    """Also where the body has changed, which is no term of its own."""
    names = {"A": buffer("A")}
    for text in ("sum(r//4*r, r, 0, 9) + A[0]", "max_over(A[(r*4 + 1)//4]*2, r, 0, 8)"):
        assert optimize(parse(text, names)).explain().steps


@settings(max_examples=25)
@given(reduction_terms())
def test_random_reductions_are_derived(case):
    try:
        result = optimize(case[0])
    except ValueError:
        # a divisor may be zero
        reject()
    found = result.explain(seconds=1.0)
    assert bool(found.steps) == (result.exprs != result.before)


def test_steps_on_sums_that_take_seconds_to_evaluate_are_unchecked():
    steps = explain(optimize("sum(r*3//7 + n%7, r, 0, 1000000000)", n=(0, 9)), seconds=1.0).steps
    assert {step.check.kind for step in steps if step.before.op == "sum_over"} == {"unchecked"}


def test_large_subterms_have_names_and_long_terms_lines_of_their_own():
    flat = "((((a*14 + b)*3 + c)*3 + d)*5 + e)"
    ranges = {"a": (0, 13), "b": (0, 13), "c": (0, 2), "d": (0, 2), "e": (0, 4)}
    product = f"({flat}%3 + a)*({flat}//7)"
    found = sound(optimize([f"{flat}//126 + {flat}//3%3", f"{flat}//9%14 + {product}"], rules=(), **ranges))
    lines = str(found).splitlines()
    (named,) = [line for line in lines if line.startswith("t0 stands for ")]
    record = found.record()
    assert ["t0", named.removeprefix("t0 stands for ")] in record["lets"]
    assert any("t0" in step["after"] for step in record["steps"])
    # a term of more than MAX_COLUMN characters, and on the next line its law
    long = [n for n, line in enumerate(lines) if line.startswith("  = ") and len(line) > 64 and "  [" not in line]
    assert long
    assert all(lines[n + 1].startswith(" " * 8) for n in long)


def test_no_subterm_is_called_like_an_array():
    names = {name: var(name, 0, 9) for name in "abcdefg"}
    large = parse("(a*b + c*d + e*f + g*a + b*c + d*e)%17*a + (c*e + d*f + a*g)%13", names)
    derivation = optimize([(large * 32 + names["a"]) // 32 + buffer("t0")[names["a"]] + large]).explain()
    assert [name for name, _ in derivation.record()["lets"]][:1] == ["t1"]
