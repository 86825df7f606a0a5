"""Every rule about reductions is true for every small range, and its guard has no idle part; false ones are refuted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from math import inf

import pytest
from alone import saturated
from decided import decides_most
from reduce_instances import instances as over_variables

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological
from eqsat.prove.binding import instances, proved
from eqsat.prove.proof import check_rule, prove_rule
from eqsat.prove.verify import check_equal
from eqsat.rules import REDUCE
from eqsat.theory.linear import LinearArithmetic

# ruff: noqa: E501
#: Forms found in print, or one step from a true rule.
FALSE_RULES = [
    ("max(0, v - y) counts too many for y < u", "sum(where(i < y, 0, x), i, u, v)", "max(0, v - y) * x", "free(x) and free(y)"),
    ("min(v, y) is no count", "sum(where(i < y, x, 0), i, u, v)", "max(0, min(v, y)) * x", "free(x) and free(y)"),
    ("the difference of the bounds is no count", "sum(where(y <= i and i < z, x, 0), i, u, v)", "(z - y) * x", "free(x) and free(y) and free(z)"),
    ("nothing to gather outside the range", "sum(where(i == y, x, 0), i, u, v)", "at(x, y)", "free(y)"),
    ("an empty maximum is no value of the body", "max_over(x, i, u, v)", "x", "free(x)"),
    ("an empty maximum may be above others", "max(max_over(x, i, u, v), max_over(x, i, v, w))", "max_over(x, i, u, w)", "u < v + 1 and v < w + 1"),
    ("it is above one less than it is", "max(max_over(x, i, u, v), max_over(x, i, v, w))", "max_over(x, i, u, w)", "u < v + 1 and v < w + 1 and -2147483650 < vmin(x)"),
    ("an empty minimum may be below others", "min(min_over(x, i, u, v), min_over(x, i, v, w))", "min_over(x, i, u, w)", "u < v + 1 and v < w + 1"),
    ("an empty maximum does not move", "max_over(x + y, i, u, v)", "x + max_over(y, i, u, v)", "free(x)"),
    ("a negative factor turns the order", "max_over(x * y, i, u, v)", "x * max_over(y, i, u, v)", "free(x) and u < v"),
    ("maxima do not add", "max_over(x + y, i, u, v)", "max_over(x, i, u, v) + max_over(y, i, u, v)", "u < v"),
    ("products do not add", "prod(x + y, i, u, v)", "prod(x, i, u, v) + prod(y, i, u, v)", ""),
    ("sums do not multiply", "sum(x * y, i, u, v)", "sum(x, i, u, v) * sum(y, i, u, v)", ""),
    ("x is another value each time", "sum(x, i, u, v)", "x * max(v - u, 0)", ""),
    ("a backward range is empty", "sum(x, i, u, v)", "x * (v - u)", "free(x)"),
    ("<= takes one more", "sum(where(i <= y, x, 0), i, u, v)", "sum(x, i, u, min(v, y))", "free(y)"),
    ("either bound may hold", "sum(where(y <= i or i < z, x, 0), i, u, v)", "sum(x, i, max(u, y), min(v, z))", "free(y) and free(z)"),
    ("Gauss for a backward range", "sum(i, i, u, v)", "(v*(v - 1) - u*(u - 1)) // 2", ""),
    ("a split inside out", "sum(x, i, u, v) + sum(x, i, v, w)", "sum(x, i, u, w)", "u < v + 1"),
    ("an inner range may have steps", "sum(sum(x, j, u, v), i, w, z)", "0", ""),
    ("an inner range may depend on the outer index", "sum(sum(x, j, u, v), i, w, z)", "sum(sum(x, i, w, z), j, u, v)", ""),
    ("d itself is one too many", "sum(x % d, i, u, v)", "sum(x, i, u, v)", "0 <= vmin(x) and vmax(x) < d + 1"),
    ("y may be less by one", "max_over(min(x, y), i, u, v)", "max_over(x, i, u, v)", "vmax(x) < vmin(y) + 2"),
    ("not all of d is common", "sum(x, i, u, v) % d", "0", "d > 0 and gcd(x, d) > 1"),
    ("a part of a period may begin anew", "max_over((i + x) % y, i, u, v)", "(v - 1 + x) % y", "free(x) and free(y) and 0 < y and u < v"),
    ("the remainder counts", "sum(x*y, i, u, v) % d", "0", "d > 0 and modulus(x) % d == 0"),
]  # fmt: skip

#: Rules whose guards measure a body.
TRUE_OF_BODIES = [
    ("sum(x % d, i, u, v)", "sum(x, i, u, v)", "0 <= vmin(x) and vmax(x) < d"),
    ("max_over(min(x, y), i, u, v)", "max_over(x, i, u, v)", "vmax(x) < vmin(y) + 1"),
    ("sum(x*y, i, u, v) % d", "0", "d > 0 and modulus(x) % d == 0 and remainder(x) % d == 0"),
    ("sum(x, i, u, v) % d", "0", "d > 0 and gcd(x, d) == d"),
    ("sum(x // d, i, u, v)", "sum(x, i, u, v) // d", "d > 0 and factor(x) % d == 0"),
    ("sum(x % d, i, u, v)", "sum(x, i, u, v)", "0 <= vmin(x) and vmax(x) < d and modulus(x) > 1"),
]

#: Conjuncts without which a rule is still true: they say when it gains anything, or follow from the others.
FROM_ZERO = "vmin(u) < vmax(u) or 0 < vmin(u) or vmax(u) < 0"
IDLE = {(f"lift-{name}", f"free({x})") for name in ("less", "not-less", "equal") for x in "xy"}
SPLITS = {f"{name}-split-range" for name in ("sum", "max", "min")} | {"sum-split-multiple"}
IDLE |= {(name, part) for name in SPLITS for part in ("divides(x, d)", "d < c")}
IDLE |= {(f"sum-merge-{rows}", part) for rows in ("shorter", "later") for part in ("steps(x, d)", "vmin(z) < vmax(z)")}
IDLE |= {("sum-merge-later", "vmin(w) < vmax(w)"), ("sum-merge-shorter", "0 < d")}
IDLE |= {(f"{name}-from-zero", FROM_ZERO) for name in ("sum", "prod", "max", "min")}
#: Without it a product may be of more elements than there are digits for.
IDLE |= {("prod-merge", "d > 0"), ("prod-swap", "free(w)"), ("prod-swap", "free(z)")}
#: Without it a bound may lie beyond what an empty range gives: no value that is tried does.
IDLE |= {("max-below", "u < v"), ("min-above", "u < v")}
#: The sum over less than a period is short.
IDLE |= {(name, "vmin(y) < vmax(v) + 1") for name in ("sum-quotients", "sum-remainder")}
IDLE |= {("count-least-residues", "d < vmax(v) + 1")}
#: The theory knows the sum over a number of steps.
IDLE |= {("sum-quotients", "vmin(v) < vmax(v)")}
#: With 0 it is another rule.
IDLE |= {("gather-beside", "(vmin(z) < 0 or 0 < vmax(z))")}

#: Conjuncts that soundness needs, but not where they are missed by one.
TRUE_AT_EDGE = {
    "a divisor is not zero": [
        *[(f"{name}-quotient", "d > 0") for name in ("sum", "max", "min")],
        ("sum-quotient", "0 < y"),
        *[(f"{name}-remainder-part", "0 < y") for name in ("max", "min")],
        ("count-least-residues", "d > 0"),
    ],
    "no loop is taken": [*[(f"{name}-merge", "d > 0") for name in ("sum", "max", "min")], ("sum-merge-later", "0 < d")],
    "one of the two digits is the number": [(name, "1 < d") for name in SPLITS],
}
EDGES = {row for rows in TRUE_AT_EDGE.values() for row in rows}
#: Of no instance here: elements of arrays of 32 bits are not that low or high.
OUT_OF_REACH = {("max-split", "-2147483649 < vmin(x)"), ("min-split", "vmax(x) < 2147483648")}
OUT_OF_REACH |= {("max-bound-split", f"-2147483649 < vmin({x})") for x in "xz"}
OUT_OF_REACH |= {("min-bound-split", f"vmax({x}) < 2147483648") for x in "xz"}
#: Sides that divide by zero alone differ.
OUT_OF_REACH |= {(name, "0 < y") for name in ("sum-quotients", "sum-remainder", "max-remainder", "min-remainder")}
#: Rules that no match is needed for: bounds say that a range is empty.
HELD = {f"{name}-empty" for name in ("sum", "prod", "max", "min")}

#: Rules that make more loops of one, or fewer: which is cheaper is for extraction to say.
LEFT_TO_COST = {"sum-split", "prod-distributes", "sum-where-apart", "bound-split", "sum-swap"}
LEFT_TO_COST |= {f"{name}-{law}" for name in ("sum", "prod", "max", "min") for law in ("from-zero", "swap")}
#: Rules that say what the theory does not.
LEFT_TO_COST |= {
    f"{name}-{law}" for name in ("max", "min") for law in ("distributes", "quotient", "split", "bound-split")
}
LEFT_TO_COST |= {"prod-index", "prod-index-from-zero"}
LEFT_TO_COST |= {"max-remainder-part", "min-remainder-part"}
LEFT_TO_COST |= {"max-below", "min-above", "gather-beside", "max-remainder", "min-remainder", "max-peak", "min-valley"}
#: Rules of which the theory says the same of literals alone, or with more terms.
LEFT_TO_COST |= {"sum-quotients", "sum-remainder", "count-residues", "count-least-residues", "sum-max"}
LEFT_TO_COST |= {
    "sum-merge-shorter",
    "sum-merge-later",
    *SPLITS,
    *[f"{name}-merge" for name in ("sum", "prod", "max", "min")],
}


def conjuncts(rule: Rule) -> list[str]:
    return rule.when.split(" and ") if rule.when else []


@pytest.mark.parametrize("rule", REDUCE, ids=lambda rule: rule.name)
def test_true_for_every_small_range_and_every_body(rule):
    assert next(instances(rule), None), "true of nothing"
    assert prove_rule(rule, inf).kinds == ("small ranges",)


@pytest.mark.parametrize(
    ("left", "right", "when"), [row[1:] for row in FALSE_RULES], ids=[row[0] for row in FALSE_RULES]
)
def test_false_rules_are_refuted(left, right, when):
    false = Rule("false", left, right, when)
    assert check_rule(false) is not None
    assert prove_rule(false, inf).kinds == ()


@pytest.mark.parametrize(("left", "right", "when"), TRUE_OF_BODIES)
def test_a_guard_may_measure_a_body(left, right, when):
    assert check_rule(Rule("true", left, right, when)) is None


GUARDED = [(rule, part) for rule in REDUCE for part in conjuncts(rule) if (rule.name, part) not in IDLE]


@pytest.mark.parametrize(("rule", "part"), GUARDED, ids=[f"{rule.name}: {part}" for rule, part in GUARDED])
def test_every_part_of_a_guard_is_needed(rule, part):
    others = " and ".join(other for other in conjuncts(rule) if other != part)
    assert not proved(Rule(rule.name, rule.left, rule.right, others))


def missed_by_one(rule: Rule, part: str) -> Rule | None:
    """The rule with the comparison ``part`` of its guard wider by one; ``None`` if it is no comparison."""
    compared = re.fullmatch(r"([^<>]* )([<>]=?)( [^<>]*)", part)
    if compared is None:
        return None
    wider = f"{part} {'+' if '<' in compared[2] else '-'} 1"
    parts = [wider if other == part else other for other in conjuncts(rule)]
    return Rule(rule.name, rule.left, rule.right, " and ".join(parts))


def may_divide_by_zero(sides: Sequence[Expr]) -> bool:
    return any(t.op in DIVISIONS and t.args[1].vmin <= 0 <= t.args[1].vmax for t in topological(sides))


AT_EDGE = [(rule, part, edge) for rule, part in GUARDED if (edge := missed_by_one(rule, part))]


@pytest.mark.parametrize(("rule", "part", "edge"), AT_EDGE, ids=[f"{rule.name}: {part}" for rule, part, _ in AT_EDGE])
def test_guard_stops_at_its_edge(rule, part, edge):
    assert (check_rule(edge) is None) == ((rule.name, part) in EDGES)
    if (rule.name, part) not in EDGES | OUT_OF_REACH:
        misses = (i.sides for i in over_variables(edge) if not i.is_guarded(rule) and not may_divide_by_zero(i.sides))
        left, right = next(sides for sides in misses if not check_equal(sides[:1], sides[1:]).equal)
        assert not saturated([left, right], rules=[rule], budget=Budget(rounds=4)).are_one()


@pytest.mark.parametrize(("name", "value"), [("sum", 6), ("max", 3), ("min", 0)])
def test_a_letter_that_the_right_side_lacks_is_free_all_the_same(name, value):
    (rule,) = [rule for rule in REDUCE if rule.name == f"{name}-remainder"]
    reduction = rule.left.partition("(")[0]
    turned = parse(f"{reduction}((r + A[r])%4, r, n, n + 4)", {"A": buffer("A"), "n": var("n", 0, 9)})
    assert not saturated([turned, const(value)], rules=[rule], budget=Budget(rounds=4)).are_one()


@pytest.mark.parametrize("rule", REDUCE, ids=lambda rule: rule.name)
def test_a_rule_alone_makes_its_sides_one(rule):
    sides = [instance.sides for instance in islice(over_variables(rule), 40)]
    found = [saturated(both, rules=[rule], budget=Budget(rounds=4)) for both in sides]
    assert any(graph.are_one() for graph in found)
    assert any(graph.are_one() and graph.matches.get(rule.name) for graph in found) == (rule.name not in HELD)


RULES = [rule for rule in REDUCE if rule.name not in LEFT_TO_COST]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_theory_decides_it(rule):
    decided = []
    for instance in list(instances(rule))[::5]:
        theory = LinearArithmetic([instance.when])
        decided.append(theory.simplify(instance.left) is theory.simplify(instance.right))
    assert decides_most(decided)
