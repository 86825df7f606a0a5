"""Every rule is proved, fires, and stops at its guard; false rules are refuted."""

from __future__ import annotations

import re
from dataclasses import replace
from math import gcd, inf
from typing import Any

import pytest
from alone import saturated
from false_rules import COUNTEREXAMPLES, FALSE_RULES
from firing import FIRING, Firing
from near_misses import conjuncts_of, near_miss

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, var
from eqsat.lang.ops import truncated_div
from eqsat.lang.text import parse, to_text
from eqsat.optimizer.greedy import rewrite
from eqsat.prove.proof import prove_rule
from eqsat.rules import DEFAULT, REDUCE
from eqsat.rules.bits import BITS

BY_NAME = {rule.name: rule for rule in DEFAULT}
GUARDS = [(rule, conjunct) for rule in DEFAULT for conjunct in conjuncts_of(rule)]

#: Rules that z3 does not prove for all integers, and what proofs they have.
PROVED_IN_PART: dict[str, tuple[str, ...]] = {rule.name: ("bit-vectors", "exhaustive") for rule in BITS}
PROVED_IN_PART |= dict.fromkeys(["bucket-and-bucket", "no-bucket-or-no-bucket"], ("bit-vectors", "exhaustive"))
PROVED_IN_PART |= dict.fromkeys(
    [
        *[
            "where-half-period",
            "eq-mod-difference",
            "lt-mod-difference",
            "eq-mod-offset",
            "lt-mod-offset",
            "mod-complement",
            "first-bucket-or-bucket",
        ],
        *["tmod-inner", "tdiv-of-tmod"],
    ],
    ("instantiated", "exhaustive"),
)

#: Rules that the representation of terms holds, so that no match is needed.
HELD = {
    *["add-commutes", "add-associates", "mul-commutes", "mul-associates", "min-commutes", "min-associates"],
    *["max-commutes", "max-associates", "and-commutes", "and-associates", "or-commutes", "or-associates"],
    *["bitand-commutes", "bitand-associates", "bitor-commutes", "bitor-associates"],
    *["bitxor-commutes", "bitxor-associates", "eq-commutes"],
    # like terms, and literals
    *["add-zero", "mul-one", "offsets-add", "scales-multiply", "offset-outward", "scale-outward"],
    *["distribute-scale", "distribute-offset", "factor-scale", "factor-offset", "add-same", "add-like", "add-likes"],
    *["where-true", "where-false", "and-true", "and-false", "or-false", "or-true", "not-true", "not-false"],
    # what stands twice, and complements
    *["min-same", "max-same", "and-same", "or-same", "not-not", "not-lt", "eq-cancel-zero"],
    # bounds that leave one value
    *["known-value", "div-bucket", "cancel-div-symbolic", "lt-always", "lt-never", "lt-self", "eq-never-below"],
    "eq-self",
}

#: Conjuncts without which a rule would still be true: they keep it from firing where it gains nothing.
FENCES = {
    "nothing to take out": [
        ("factor-scale", "c != 1"),
        ("factor-scale", "c != -1"),
        ("factor-offset", "c != 1"),
        ("factor-offset", "c != -1"),
        ("gcd-div", "1 < gcd_x_d"),
        ("gcd-mod", "1 < gcd_x_d"),
        ("gcd-div-rest", "1 < gcd_x_d"),
        ("gcd-mod-rest", "1 < gcd_x_d"),
        ("cancel-literal-div", "1 < gcd_x_c"),
        ("cancel-literal-mod", "1 < gcd_x_c"),
        ("cancel-literal-div-rest", "1 < gcd_x_c"),
        ("lt-scaled", "1 < factor_x"),
        ("scaled-lt", "1 < factor_x"),
        ("lt-factor", "1 < factor_x"),
        ("factor-lt", "1 < factor_x"),
        ("eq-scaled", "1 < factor_x"),
        ("eq-factor", "1 < factor_x"),
    ],
    "another rule says it more simply": [
        ("factor-scale", "d != c"),
        ("congruent-mod", "c%d != 0"),
        ("congruent-mod-alone", "c%d != 0"),
        ("congruent-div", "c%d != 0"),
        ("congruent-div-alone", "c%d != 0"),
        ("gcd-div", "gcd_x_d < d"),
        ("gcd-mod", "gcd_x_d < d"),
        ("div-div-symbolic", "vmin_y < vmax_y or vmin_z < vmax_z"),
        ("div-sum-div", "vmin_y < vmax_y"),
        ("div-sum-div-symbolic", "vmin_y < vmax_y or vmin_w < vmax_w"),
        ("mod-of-same-mod", "vmin_z < vmax_z"),
        ("two-periods-div-symbolic", "vmin_y < vmax_y"),
        ("two-periods-mod-symbolic", "vmin_y < vmax_y"),
        ("symbolic-two-periods-div", "vmin_y < vmax_y"),
        ("symbolic-two-periods-mod", "vmin_y < vmax_y"),
        ("symbolic-period-below-div", "vmin_y < vmax_y"),
        ("symbolic-period-below-mod", "vmin_y < vmax_y"),
        ("symbolic-period-below-div", "vmin_x < 0"),
        ("symbolic-period-below-mod", "vmin_x < 0"),
        ("where-of-two-values", "vmin_y + 1 < vmax_y"),
        ("min-of-two-values", "vmin_x < c"),
        ("max-of-two-values", "c < vmax_x"),
        ("div-symbolic-lt", "vmin_z < vmax_z"),
        ("lt-div-symbolic", "vmin_z < vmax_z"),
        ("eq-div-symbolic", "vmin_z < vmax_z"),
        ("plus-div-symbolic-lt", "vmin_z < vmax_z"),
        ("less-div-symbolic-lt", "vmin_z < vmax_z"),
        ("less-div-symbolic-eq", "vmin_z < vmax_z"),
        ("div-takes-literal", "vmin_y < vmax_y"),
        ("tdiv-by-floor", "vmin_x <= -d"),
        ("tdiv-by-floor", "0 < vmax_x"),
    ],
    "no such bounds, no such comparisons: asking adds terms of which the rules make longer ones without end": [
        ("symbolic-period-below-div", "vmax_x <= vmax_y"),
        ("symbolic-period-below-mod", "vmax_x <= vmax_y"),
    ],
    "of two literals another rule takes the offset, and of two values there is no end of literals": [
        ("where-less-offset-then", "vmin_x + 1 < vmax_x"),
        ("where-less-offset-else", "vmin_x + 1 < vmax_x"),
    ],
    "a division in each branch is more than one of both, unless one of them is exact": [
        ("where-div-aligned", "modulus_x%d == 0 or modulus_y%d == 0"),
        ("where-mod-aligned", "modulus_x%d == 0 or modulus_y%d == 0"),
    ],
    "less of the quotient is left": [
        ("mod-part", "(c + n*k)*(c + n*k) < c*c"),
        ("mod-part-inner", "(c + k*(b//a))*(c + k*(b//a)) < c*c or c + k*(b//a) == b"),
    ],
    "shifts and masks cost less, or more": [
        ("multiple-above-power", "c - 1 & c - 2 == 0"),
        ("eq-or-eq", "d - c & d - c - 1 == 0"),
        ("tdiv-by-floor", "d & d - 1 == 0"),
        ("mod-by-quotient", "d & d - 1 != 0"),
        ("between-is-bucket", "d - c & d - c - 1 == 0"),
        ("outside-is-no-bucket", "d - c & d - c - 1 == 0"),
        ("mod-two-periods", "d & d - 1 != 0"),
        ("mod-two-periods-offset", "d & d - 1 != 0"),
        ("mod-at-start", "d & d - 1 != 0"),
        ("where-of-scaled-bit", "c & c - 1 != 0"),
        ("where-of-scaled-bit", "-c & -c - 1 != 0"),
        ("where-bit-scaled", "b & b - 1 == 0"),
        ("last-bucket-or-bucket", "c//d - k & c//d - k - 1 == 0"),
        ("first-or-eq", "c & c - 1 == 0"),
        ("last-or-eq", "c - k & c - k - 1 == 0"),
        ("max-of-quotient", "vmin_x < 0"),
        ("max-of-quotient", "0 <= c"),
    ],
    "a power of two is positive, which the proof does not know": [
        ("multiple-above-power", "1 < c"),
        ("tdiv-by-floor", "1 < d"),
        ("between-is-bucket", "c < d"),
        ("outside-is-no-bucket", "c < d"),
    ],
    "a factor of one changes nothing": [("min-common-factor", "1 < factor_x"), ("max-common-factor", "1 < factor_x")],
    "the quotient is never positive": [("div-negated", "vmin_x < 0"), ("div-negated", "vmax_x < d")],
    "a divisor that is zero is no term": [
        ("bitand-low-mask", "0 <= c"),
        ("div-of-two-values", "0 < vmin_y"),
    ],
    "the terms that are drawn take the bounds that are known": [
        ("min-of-two-values", "vmin_x%modulus_x == remainder_x"),
        ("max-of-two-values", "vmax_x%modulus_x == remainder_x"),
    ],
    "the literal is small enough already": [
        ("div-offset", "d <= c or c < 0"),
        ("mod-offset", "d <= c or c < 0"),
        ("congruent-mod", "d <= c or 2*c <= -d"),
        ("congruent-mod-alone", "d <= c or 2*c <= -d"),
        ("congruent-div", "d <= c or 2*c <= -d"),
        ("congruent-div-alone", "d <= c or 2*c <= -d"),
        ("closest-mod", "c < d"),
        ("closest-mod", "d < 2*c"),
        ("nearest-div", "d < 2*(c%d)"),
        ("nearest-div", "d <= c or c <= -d"),
        ("closest-div", "c < d"),
        ("closest-div", "d < 2*c"),
    ],
    "literals become positive, not the other way": [
        ("congruent-mod", "0 < d"),
        ("congruent-mod-alone", "0 < d"),
        ("congruent-div", "0 < d"),
        ("nearest-div", "0 < d"),
        ("congruent-div-alone", "0 < d"),
        ("div-negative", "d < 0"),
        ("mod-negative", "d < 0"),
        ("tdiv-negative", "d < 0"),
        ("tmod-negative", "d < 0"),
        ("lt-lift-term", "d < 0"),
        ("eq-lift-negative", "d < 0"),
    ],
}
FENCED = {row for rows in FENCES.values() for row in rows}

#: Conjuncts that soundness needs, but not where they are missed by one.
TRUE_AT_EDGE = {
    "a divisor is not zero": [
        ("cancel-literal-mod-rest", "0 < vmin_y"),
        ("cancel-literal-div-rest", "0 < vmin_y"),
        ("cancel-literal-mod-rest", "0 < c"),
        ("div-div-symbolic", "0 < vmin_z"),
        ("div-sum-div-symbolic", "0 < vmin_w"),
        ("div-of-product", "0 < vmin_z"),
        ("div-of-multiple", "0 < vmin_z"),
        ("div-of-mod-symbolic", "0 < vmin_y"),
        ("tdiv-same-sign", "0 < vmin_y"),
        ("tmod-same-sign", "0 < vmin_y"),
        ("div-symbolic-lt", "0 < vmin_z"),
        ("lt-div-symbolic", "0 < vmin_z"),
        ("eq-div-symbolic", "0 < vmin_z"),
        ("plus-div-symbolic-lt", "0 < vmin_z"),
        ("less-div-symbolic-lt", "0 < vmin_z"),
        ("less-div-symbolic-eq", "0 < vmin_z"),
        ("mod-complement-symbolic", "0 < vmin_y"),
    ],
    "a quotient by -1 is exact": [
        ("div-of-mod", "0 < d"),
        ("div-of-mod", "0 < c"),
        ("tdiv-below-zero", "0 < d"),
        ("tdiv-of-maximum", "0 < d"),
        ("tmod-below-zero", "0 < d"),
        ("tmod-to-minimum", "0 < d"),
        ("eq-div-before", "0 < d"),
        ("eq-div-after", "0 < d"),
        ("lt-mod-offset", "0 < d"),
        ("where-floor", "0 < d"),
    ],
    "no step, and a step of a whole bucket, are known": [
        ("div-difference", "0 < c"),
        ("div-difference", "c < d"),
        ("eq-div-before", "c < 0"),
        ("eq-div-before", "-d < c"),
        ("eq-div-after", "0 < c"),
        ("eq-div-after", "c < d"),
    ],
    "another rule says it": [
        ("mod-part-inner", "1 < a"),
        ("mod-part-inner", "a < b"),
        ("gcd-div-rest", "gcd_x_d < d"),
        ("gcd-mod-rest", "gcd_x_d < d"),
        ("clamp-turned", "d < c"),
        ("where-sign", "k == b + 1"),
        ("where-staircase", "c < d"),
        ("min-scale-negative", "c < 0"),
        ("max-scale-negative", "c < 0"),
    ],
}
EDGES = {row for rows in TRUE_AT_EDGE.values() for row in rows}


@pytest.mark.parametrize("rule", DEFAULT, ids=lambda rule: rule.name)
def test_proof_is_of_its_kind(rule: Rule) -> None:
    proof = prove_rule(rule, inf)
    assert proof.counterexample is None
    assert proof.kinds == PROVED_IN_PART.get(rule.name, ("symbolic",))


#: What a pattern may call, as Python has it.
FUNCTIONS = {
    "where": lambda condition, x, y: x if condition else y,
    "tdiv": truncated_div,
    "tmod": lambda x, y: x - y * truncated_div(x, y),
    "min": min,
    "max": max,
    "gcd": gcd,
}


#: What a measure must be to a value of its letter, whose modulus may be known.
MEASURES = {
    "vmin": lambda low, x, modulus: low <= x,
    "vmax": lambda high, x, modulus: x <= high,
    "factor": lambda factor, x, modulus: x % factor == 0,
    "gcd": lambda divisor, x, modulus: x % divisor == 0,
    "modulus": lambda modulus, x, same: modulus > 0,
    "remainder": lambda remainder, x, modulus: x % modulus == remainder,
}


def by_python(text: str, values: dict[str, int]) -> int | None:
    """The value of a pattern or guard at values of its letters and measures; None where a divisor is zero."""
    for measure in [name for name in values if "(" in name]:
        text = text.replace(measure, str(values[measure]))
    try:
        return int(eval(text, FUNCTIONS | values))
    except ZeroDivisionError:
        return None


def assert_refutes(rule: Rule, values: dict[str, int]) -> None:
    """Hold a counterexample against the text of the rule, with Python's own arithmetic."""
    for measure, value in values.items():
        if "(" in measure:
            function, letter = measure[: measure.index("(")], measure[measure.index("(") + 1]
            assert MEASURES[function](value, values[letter], values.get(f"modulus({letter})"))
    assert not rule.when or by_python(rule.when, values)
    left = by_python(rule.left, values)
    assert left is not None
    assert left != by_python(rule.right, values)


@pytest.mark.parametrize("rule", FALSE_RULES, ids=lambda rule: rule.name)
def test_false_rules_are_refuted(rule: Rule) -> None:
    counterexample = prove_rule(rule, inf).counterexample
    assert counterexample is not None
    assert_refutes(rule, counterexample.values)
    assert counterexample.left == str(by_python(rule.left, counterexample.values))
    right = by_python(rule.right, counterexample.values)
    assert counterexample.right == ("undefined" if right is None else str(right))


@pytest.mark.parametrize("rule", FALSE_RULES, ids=lambda rule: rule.name)
def test_recorded_counterexamples_refute(rule: Rule) -> None:
    recorded = re.findall(r"([\w()]+) = (-?\d+)", COUNTEREXAMPLES[rule.name])
    assert_refutes(rule, {name: int(value) for name, value in recorded})


def test_every_rule_has_a_firing_row_and_a_reason() -> None:
    assert [row.rule for row in FIRING] == [rule.name for rule in DEFAULT]
    assert all(rule.why for rule in DEFAULT)


@pytest.mark.parametrize("rule", [*DEFAULT, *REDUCE], ids=lambda rule: rule.name)
def test_a_shipped_rule_is_one_that_a_user_could_make(rule: Rule) -> None:
    # the tables are not parsed when they are imported
    assert replace(rule) == rule


@pytest.mark.parametrize("row", FIRING, ids=lambda row: row.rule)
def test_rule_is_needed(row: Firing) -> None:
    names = {name: var(name, *bounds) for name, bounds in row.ranges.items()}
    left, right = parse(row.left, names), parse(row.right, names)
    facts = [parse(fact, names) for fact in row.facts]
    if row.rule in HELD:
        assert saturated([left, right], facts, rules=()).are_one()
        return
    found = saturated([left, right], facts, without=row.besides)
    assert found.are_one()
    assert found.matches[row.rule] > 0
    assert not saturated([left, right], facts, without=[row.rule, *row.besides]).are_one()


COVERED = [row for row in FIRING if BY_NAME[row.rule].covered_by]


@pytest.mark.parametrize("row", COVERED, ids=lambda row: row.rule)
def test_what_a_rule_covers_in_an_e_graph_needs_another_one_by_one(row: Firing) -> None:
    names = {name: var(name, *bounds) for name, bounds in row.ranges.items()}
    left, right = parse(row.left, names), parse(row.right, names)
    assert BY_NAME[row.rule].covered_by in BY_NAME
    assert saturated([left, right], without=[row.rule]).are_one()
    assert rewrite([left], DEFAULT).matches[row.rule]


#: What rules of their own said before sums in patterns matched parts of longer ones, up to a literal factor.
FAMILY = [
    ("min-add", "min(x + 6, y + 6)", "min(x, y) + 6"),
    ("min-add", "min(x + 7, x + 3)", "x + 3"),
    ("min-add", "min(x + y + 6, z + y + 6)", "min(x, z) + y + 6"),
    ("max-add", "max(x + 2, y + 2)", "max(x, y) + 2"),
    ("max-add", "max(x + 2, x + 3)", "x + 3"),
    ("where-pull-add", "where(x < y, x*3 + 4, y*2 + 4)", "where(x < y, x*3, y*2) + 4"),
    ("where-pull-add", "where(x < y, z + 4, z + 6)", "z + where(x < y, 4, 6)"),
    ("mod-core", "x%2*2 + x//2*4", "x*2"),
    ("mod-core", "x//2*-6 - x%2*3 + y", "y - x*3"),
    ("mod-part", "x//9*-9 + x", "x%9"),
    ("mod-part", "x*3 - x//4*12", "x%4*3"),
    ("mod-digits", "x//3%2*6 + x%3*2", "x%6*2"),
    ("cancel-mod-symbolic", "(x + 70)%100", "x + 70"),
    ("cancel-mod-symbolic", "(x + 140)%100", "x + 40"),
    ("div-div-symbolic", "x//3//y", "x//(y*3)"),
    ("tdiv-tdiv", "tdiv(tdiv(x, 3), -5)", "tdiv(x, -15)"),
    ("tdiv-of-negated", "tdiv(-x, -3)", "tdiv(x, 3)"),
]


@pytest.mark.parametrize(("rule", "left", "right"), FAMILY)
def test_one_rule_does_what_its_family_did(rule: str, left: str, right: str) -> None:
    names = {name: var(name, low, 16) for name, low in (("x", 0), ("y", 1), ("z", -9))}
    roots = [parse(left, names), parse(right, names)]
    assert saturated(roots, rules=[BY_NAME[rule]]).are_one()
    assert not saturated(roots, rules=()).are_one()


@pytest.mark.parametrize(("rule", "conjunct"), GUARDS, ids=lambda value: getattr(value, "name", str(value)))
def test_guard_stops_at_its_edge(rule: Rule, conjunct: Expr) -> None:
    miss = near_miss(rule, conjunct)
    if (rule.name, to_text(conjunct)) in FENCED:
        assert miss is None, "this conjunct is needed for truth: it is no mere fence"
        return
    assert miss is not None, "the rule is true without this conjunct: drop it, or say in FENCES why it stands"
    assert (miss.past > 0) == ((rule.name, to_text(conjunct)) in EDGES)
    assert not saturated([miss.left, miss.right], miss.facts, [rule], Budget(rounds=4)).are_one()


MALFORMED = [
    ("x +", "x", "", "an operand is missing"),
    ("x + 0", "y", "", "the left side does not bind 'y'"),
    ("x + i", "x", "", "unknown variable 'i': the letters of literals are abcdkmns"),
    ("x*c", "x * c", "", "both sides are 'x*c'"),
    ("x // c", "x", "foo(x) < 1", "unknown function 'foo'"),
    ("F[x] + F[y]", "F[x + y]", "", "'F[x] + F[y]' has an array: a letter stands for any integer term"),
    ("x // c", "x", "vmin(y) < 1", "does not bind 'y'"),
    ("x // c", "x", "vmin(x + 1) < 1", "'vmin(x + 1)' is no measure: measure one of uvwxyz as in vmin(x)"),
    (
        "x // c",
        "x",
        "vmin(x) + gcd(x, c) < ",
        "cannot parse 'vmin(x) + gcd(x, c) < ': an operand is missing at column 23",
    ),
    ("x // c", "x", " + ".join(["vmin(x)"] * 14) + " <", r"+ vmin(x)...': an operand is missing at column 140"),
    ("x // c", "x", "0 < vmin(c)", "cannot parse '0 < vmin(c)': 'vmin(c)' is no measure"),
    ("x // c", "x", "free(x)", "'free(x)' speaks of an index, and the left side has no reduction"),
    ("sum(x, i, u, v)", "x", "free(x", "'free' is not written like that: measure one of"),
    ("sum(x, i, u, v)", "at(x)", "", "'at' is not written like that: at(x, y) is x where the index"),
    ("sum(x, i, u, v)", "at(x, (u)", "", "cannot parse 'at(x, (u)': a closing bracket is missing at column 10"),
    ("sum(x, i, u, v)", "at(i, u)", "", "'at' is not written like that: at(x, y) is x where the index"),
    ("sum(x, i, u, v)", "at(x, u, )", "", "cannot parse 'at(x, u, )': unexpected ')' at column 10"),
    ("x // c", "x", "gcd(x) < 2", "'gcd(x)' is no measure: measure one of uvwxyz as in vmin(x), or as in gcd(x, d)"),
    ("x // c", "x", "x <= c", "may compare terms with < only"),
    ("x // c", "x", " and ".join(f"(c == {n} or 0 < vmin(x))" for n in range(40)), "in more than 64 ways, as 'and'"),
    # deeper than Python's stack
    ("x // c", "x", "(c == 7 and (c == 8 or " * 2000 + "c == 9" + "))" * 2000, "in more than 64 ways, as 'and'"),
    ("x < y", "x", "", "one side is a condition"),
    ("x + c", "c + x", "c", "the guard 'c' is no condition"),
    ("p", "not not p", "", "the left side is a letter"),
    ("x", "x + 0", "", "the left side is a letter"),
    ("x // c", "x // tdiv(c, 2)", "", "cannot be computed from literals: use + - * //"),
    ("x * c", "sum(x, i, 0, c)", "", "the right side has a reduction, the left side 'x * c' none"),
    ("sum(x, i, 0, v)", "0", "sum(x, i, 0, v) == 0", "has a reduction: measure letters instead"),
]


@pytest.mark.parametrize(("left", "right", "when", "message"), MALFORMED)
def test_malformed_rules_are_refused_in_one_line(left: str, right: str, when: str, message: str) -> None:
    with pytest.raises(ValueError, match="rule 'mine'") as caught:
        Rule("mine", left, right, when)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_about_reductions_of_two_ways_has_one_on_each_side() -> None:
    with pytest.raises(ValueError, match=r"^rule 'mine': both ways the right side '0' needs a reduction too$"):
        Rule("mine", "sum(x, i, u, u)", "0", both_ways=True)


@pytest.mark.parametrize("parts", [(3, "x + 0", "x"), ("mine", None, "x"), ("mine", "x + 0", "x", 1)])
def test_parts_that_are_no_text_are_refused(parts: Any) -> None:
    with pytest.raises(TypeError, match=r"^the (name|left|when) of a rule is a text, not (3|None|1)$"):
        Rule(*parts)


@pytest.mark.parametrize("name", ["", 'a"b', "a@b", "a\\b", "a\nb"])
def test_names_that_egglog_or_profiles_cannot_carry_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^a rule is named .*: give it a name without quotes") as caught:
        Rule(name, "x + 0", "x")
    assert "\n" not in str(caught.value)
