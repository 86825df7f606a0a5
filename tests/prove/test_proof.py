"""Proofs of rules: their kinds, their parts, what refutes a false rule, and how a user's own rule is refused."""

from __future__ import annotations

import re
import sys
from itertools import product
from time import process_time

import pytest
import z3

from eqsat import Rule, optimize
from eqsat.lang.ops import truncated_div
from eqsat.prove.proof import (
    _ATTEMPTS,
    _grid,
    bucket_lemma,
    check_rule,
    congruence_lemma,
    multiple_lemma,
    prove_rule,
    refuse_false,
    small_lemma,
)
from eqsat.prove.smt import Quotient, Quotients
from eqsat.rules import DEFAULT

SOME = [rule for rule in DEFAULT if rule.name in ("mod-core", "mod-digits", "div-sum-div", "where-mod-branch")]


def is_valid(claim: z3.BoolRef, *facts: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(*facts, z3.Not(claim))
    return solver.check() == z3.unsat


@pytest.mark.parametrize("truncates", [False, True])
def test_a_quotient_is_defined_as_in_python_and_as_in_c(truncates: bool) -> None:
    for dividend, divisor in product(range(-4, 5), (-3, -2, -1, 1, 2, 3)):
        right = truncated_div(dividend, divisor) if truncates else dividend // divisor
        for value in range(-5, 6):
            numbers = [z3.IntVal(n) for n in (dividend, divisor, value, dividend - divisor * value)]
            held = z3.simplify(Quotient(*numbers, truncates).definition())
            assert z3.is_true(held) is (value == right)


def test_equal_divisions_are_one_quotient() -> None:
    x, d = z3.Ints("x d")
    quotients = Quotients()
    assert quotients.divide("floordiv", x + 1, d).eq(quotients.divide("floordiv", x + 1, d))
    quotients.divide("mod", x + 1, d)
    assert len(quotients.found) == 1
    quotients.divide("tdiv", x + 1, d)
    assert len(quotients.found) == 2


def test_lemmas_follow_from_the_definition_of_a_quotient() -> None:
    x, y, d, k = z3.Ints("x y d k")
    quotients = Quotients()
    for dividend in (x, y):
        quotients.divide("floordiv", dividend, d)
    one, other = quotients.found
    quotients.divide("tdiv", x, d)
    facts = [quotient.definition() for quotient in quotients.found]
    assert is_valid(bucket_lemma(one, k), *facts)
    assert is_valid(multiple_lemma(one, k), *facts)
    assert is_valid(congruence_lemma(one, other, k), *facts)
    assert is_valid(small_lemma(quotients.found[-1]), *facts)


@pytest.mark.parametrize("attempt", _ATTEMPTS)
def test_the_lemmas_of_an_attempt_hold_of_quotients_of_both_kinds(attempt: str) -> None:
    _, lemmas = _ATTEMPTS[attempt]
    x, y, d, e = z3.Ints("x y d e")
    quotients = Quotients()
    for op, dividend, divisor in (("floordiv", x, d), ("floordiv", y, d), ("tdiv", x, d), ("tdiv", y, e)):
        quotients.divide(op, dividend, divisor)
    claims = lemmas(quotients.found)
    assert claims or attempt == "no lemma"
    for values in product((-5, -1, 0, 4), (-3, 2), (-3, -1, 2), (3, -2)):
        numbers = dict(zip((x, y, d, e), values, strict=True))
        at = [(letter, z3.IntVal(value)) for letter, value in numbers.items()]
        for found in quotients.found:
            dividend, divisor = numbers[found.dividend], numbers[found.divisor]
            quotient = truncated_div(dividend, divisor) if found.truncates else dividend // divisor
            at.append((found.quotient, z3.IntVal(quotient)))
            at.append((found.remainder, z3.IntVal(dividend - divisor * quotient)))
        assert all(z3.is_true(z3.simplify(z3.substitute(claim, *at))) for claim in claims)


EULER = "a*a*a + b*b*b == c*c*c and a*b*c != 0"
MASK = "c >= 0 and c & (c + 1) == 0"
KINDS = [
    # true by, left, right, guard, kinds
    ("a lemma", "where(p, x % d, y % d)", "where(p, x, y) % d", "", ("symbolic",)),
    ("a shift of any width", "shr(x*shl(1, s), s)", "x", "", ("symbolic",)),
    ("bits", "x ^ y", "(x | y) - (x & y)", "", ("bit-vectors", "exhaustive")),
    ("bits and quotients", "x & c", "x % (c + 1)", MASK, ("bit-vectors", "exhaustive")),
    ("bits and bounds", "x & c", "x", f"0 <= vmin(x) and vmax(x) <= c and {MASK}", ("bit-vectors", "exhaustive")),
    ("bits and factors", "x & c", "0", f"factor(x) == c + 1 and {MASK}", ("exhaustive",)),
    ("Euler, for literals", "x*a + x*b + x*c", "0", EULER, ("instantiated", "exhaustive")),
    ("Euler, for terms", "x*x*x + y*y*y == z*z*z and x*y*z != 0", "False", "", ("exhaustive",)),
]


@pytest.mark.parametrize(("left", "right", "when", "kinds"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_kinds_of_proof(left: str, right: str, when: str, kinds: tuple[str, ...]) -> None:
    proof = prove_rule(Rule("mine", left, right, when))
    assert (proof.kinds, proof.counterexample) == (kinds, None)


def test_a_proof_does_not_depend_on_what_was_proved_before() -> None:
    assert [prove_rule(rule) for rule in SOME] == [prove_rule(rule) for rule in reversed(SOME)][::-1]


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        (Rule("terms", "x % n + (x // n)*n", "x"), 0),
        (next(rule for rule in DEFAULT if rule.name == "tdiv-of-tmod"), 0.5),
        (Rule("bits", "(x & y) * (x | y) + (x & ~y) * (y & ~x)", "x*y"), 0.5),
        (Rule("sums", "sum(x + y, i, u, v)", "sum(x, i, u, v) + sum(y, i, u, v)"), 0.02),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_end_of_its_time_leaves_a_proof_open(rule: Rule, seconds: float) -> None:
    started = process_time()
    proof = prove_rule(rule, seconds)
    assert process_time() - started < seconds + 2
    assert (proof.counterexample, proof.left_open, proof.how) == (None, True, f"left open after {seconds:g} s")
    # small numbers come first, if there is time for them
    assert proof.kinds in ((), ("exhaustive",))


def test_a_rule_of_which_there_is_no_small_instance_is_not_proved() -> None:
    proof = prove_rule(Rule("far", "sum(x, i, u, v)", "0", "v + 100 < u"))
    assert (proof.kinds, proof.how) == ((), "not proved: no small range meets its guard")
    assert not proof.left_open


def test_without_z3_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'eqsat\[check\]'"):
        prove_rule(SOME[0])


def test_a_rule_of_two_ways_must_be_true_in_both() -> None:
    assert check_rule(Rule("one", "y//y - 1", "y*0")) is None
    found = check_rule(Rule("both", "y//y - 1", "y*0", both_ways=True))
    assert found is not None
    assert (found.values, found.left, found.right) == ({"y": 0}, "0", "undefined")
    assert prove_rule(Rule("both", "y//y - 1", "y*0", both_ways=True)).counterexample == found


def test_each_alternative_of_a_guard_must_suffice() -> None:
    # where d is 0 the second alternative divides by it, and the first lets the rule fire all the same
    found = check_rule(Rule("false", "x*c + d", "x*c + 1", "d == 0 or c // d == c and d == 1"))
    assert found is not None
    assert found.values["d"] == 0
    assert check_rule(Rule("true", "x*c + d", "x*c", "d == 0 or c // d == c and d != d")) is None


def test_what_only_large_numbers_refute_is_refuted_by_z3() -> None:
    proof = prove_rule(Rule("large", "x // 300 // 300", "0", "0 <= vmin(x)"))
    assert (proof.kinds, proof.how) == ((), "refuted by z3")
    assert proof.counterexample is not None
    assert proof.counterexample.values["x"] // 300 // 300 == int(proof.counterexample.left) != 0


LITERALS_MENTIONED = [
    # left, right, guard, letters that refute it
    ("min(x, 100)", "x", "", {"x": 101}),
    ("max(x, -1000)", "x", "", {"x": -1001}),
    ("x // 1000", "0", "vmin(x) >= 0", {"vmin(x)": 0, "x": 1000}),
    ("x % 64", "x", "vmin(x) >= 0 and vmax(x) < 65", {"vmax(x)": 64, "vmin(x)": 0, "x": 64}),
    ("where(x == 12345 and y == 54, 1, 0)", "0", "", {"x": 12345, "y": 54}),
    ("x * c // d", "x * (c // d)", "d > 0 and c > 100", {"c": 101, "d": 2, "x": -1}),
    ("shl(x, s)", "x * 2", "s > 10", {"s": 11, "x": -1}),
    ("min(x, 100000)", "x", "", {"x": 100001}),
    ("x // c", "0", "vmin(x) >= 0 and c > 40000", {"c": 40001, "vmin(x)": 0, "x": 40001}),
    ("max(x, -9223372036854775808)", "x", "", {"x": -(2**63) - 1}),
    ("sum(where(i < 20, x, y), i, 0, v)", "sum(x, i, 0, v)", "", {"v": 21}),
    ("sum(x // c, i, 0, 3)", "sum(x, i, 0, 3) // c", "c > 8", {"c": 9}),
    ("sum(shl(x, s), i, u, u + 2)", "sum(x, i, u, u + 2)*8", "s > 2", {"s": 7, "u": -2}),
]


@pytest.mark.parametrize(("left", "right", "when", "values"), LITERALS_MENTIONED)
def test_values_next_to_the_literals_of_a_rule_are_tried(
    left: str, right: str, when: str, values: dict[str, int]
) -> None:
    found = check_rule(Rule("wrong", left, right, when))
    assert found is not None
    assert found.values == values


def test_a_rule_of_many_letters_and_measures_is_checked_at_few_values_of_each() -> None:
    guard = " and ".join(f"vmin({letter}) <= vmax({letter})" for letter in "xyzuvw")
    rule = Rule("many", "x + y + z + u + v + w", "w + v + u + z + y", guard)
    assert _grid(rule.pattern)[1].size < 10**7
    found = check_rule(rule)
    assert found is not None
    assert found.values["x"] == 1


def test_measures_in_a_rule_that_mentions_no_literal() -> None:
    assert check_rule(Rule("divisor", "c < x", "c//factor(x) < x//factor(x)")) is None
    assert check_rule(Rule("wrong", "x < c", "x//factor(x) < c//factor(x)")) is not None


def test_what_a_letter_stands_for_in_the_body_of_a_reduction_may_speak_of_its_index() -> None:
    with pytest.raises(ValueError, match=r"^rule 'unfree' is false: with u = -2, v = -1 the left side is .*$"):
        refuse_false([Rule("unfree", "sum(x, i, u, v)", "x * max(v - u, 0)")])
    # a value need not be one of the few that letters have bounds of
    refuse_false([Rule("free", "max_over(x, i, u, v)", "x", "free(x) and u < v")])


def test_a_counterexample_of_bodies_alone():
    assert str(check_rule(Rule("body", "sum(x, i, 0, 3)", "x"))).startswith("rule 'body' is false: for some bodies the")


def test_what_a_guard_measures_of_an_end_or_a_factor_is_true_of_it() -> None:
    for rule in (
        Rule("not-empty", "max_over(x, i, 0, v)", "x", "free(x) and vmin(v) >= 1"),
        Rule("apart", "sum(x, i, u, v)", "0", "vmax(v) <= vmin(u)"),
        Rule("even", "sum(x, i, 0, v)", "x*v", "free(x) and factor(v) == 2 and vmin(v) > -2"),
        Rule("odd", "sum(i*(y % 2), i, u, v)", "sum(i, i, u, v)", "modulus(y) == 4 and remainder(y) == 3 and free(y)"),
        Rule("negative", "sum(max(y, 0)*x, i, u, v)", "0", "free(y) and vmax(y) <= 0"),
    ):
        assert check_rule(rule) is None
    # other bounds may be known of a positive y
    assert check_rule(Rule("loose", "sum(max(y, 0)*x, i, u, v)", "0", "free(y) and vmin(y) <= 0"))
    found = check_rule(Rule("factor", "sum(x, i, 0, v)", "0", "factor(v) == 2"))
    assert found is not None
    assert found.values == {"v": 2, "factor(v)": 2}


MINE = Rule("halves", "x//2 + (x + 1)//2", "x")
WRONG = Rule("wrong", "x//2 + x//2", "x")


def test_a_false_rule_is_refused_in_one_line_and_used_where_its_check_is_off() -> None:
    message = "rule 'wrong' is false: with x = -1 the left side is -2, the right side -1"
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        optimize("x // 2", x=(0, 7), rules=[*DEFAULT, WRONG])
    assert "\n" not in str(caught.value)
    unchecked = Rule(WRONG.name, WRONG.left, WRONG.right, check=False)
    assert optimize("x // 2", x=(0, 7), rules=[unchecked]).stop == "saturated"


def test_a_true_rule_is_used() -> None:
    result = optimize("x//2 + (x + 1)//2", x=(0, 7), rules=[MINE], theory=False)
    assert str(result.expr) == "x"


def test_a_rule_is_checked_once_and_a_shipped_one_never(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_false([MINE])
    monkeypatch.setattr("eqsat.prove.proof.check_rule", lambda rule: pytest.fail(f"{rule.name} is checked again"))
    refuse_false([MINE])
    optimize("x // 2", x=(0, 7), rules=[*DEFAULT[:5], MINE])
