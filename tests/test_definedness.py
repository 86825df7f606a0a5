"""Definedness: which terms may divide by zero, and what answers that do become."""

import pytest
from hypothesis import example, given, settings
from strategies import expressions, grid

from eqsat.definedness import defined, suspects, undefined, unsafe_divisions, without_dead_divisions
from eqsat.evaluation import evaluate
from eqsat.expr import may_divide_by_zero, topological, var
from eqsat.linear import Theory
from eqsat.text import parse, to_text

NAMES = {"x": var("x", 0, 9), "y": var("y", -4, 2), "n": var("n", 0, 2**40)}
# beyond int64, and across its end
NAMES |= {"w": var("w", 2**64, 2**64 + 3), "z": var("z", 2**63 - 2, 2**63 + 2), "u": var("u", -(2**64) - 4, 2 - 2**64)}

CASES = [
    # a term, facts, which of its terms may divide by zero
    ("x//y", [], {"x//y"}),
    ("x//y", ["y != 0"], set()),
    ("x//y", ["y*y > 3"], set()),
    ("x//y", ["y*y > -1"], {"x//y"}),
    ("where(y != 0, x%y, 7)", [], {"x%y"}),
    ("where(y != 1, x%y, 7)", [], {"x%y", "where(y != 1, x%y, 7)"}),
    ("y != 0 and x//y < 3", [], {"x//y", "x//y < 3"}),
    ("y == 0 or x//y < 3", [], {"x//y", "x//y < 3"}),
    ("y != 0 or x//y < 3", [], {"x//y", "x//y < 3", "y != 0 or x//y < 3"}),
    ("x//n + x//(n + 1)", [], {"x//n", "x//n + x//(n + 1)"}),
    ("x//n + x//(n + 1)", ["x < n"], set()),
    ("y % sum(r - 3, r, 0, x)", ["x != 0", "x != 7"], set()),
    ("y % sum(r - 3, r, 0, x)", ["x != 0"], {"y%sum(r - 3, r, 0, x)"}),
    ("7//(w%3)", [], {"7//(w%3)"}),
    ("7//(w%3)", ["w%3 != 0"], set()),
    (f"7//(z//{2**62} - 2)", [], {f"7//(z//{2**62} - 2)"}),
    ("u % where(min(y, y) == 0, 1, min(y, y))", ["u%6 == 3 or y == y"], set()),
    ("sum(x//r, r, 1, 9) + sum(x//r, r, 0, 9)", [], {"sum(x//r, r, 0, 9)", "sum(x//r, r, 1, 9) + sum(x//r, r, 0, 9)"}),
]


@pytest.mark.parametrize(("text", "facts", "wanted"), CASES, ids=[f"{text}, {facts}" for text, facts, _ in CASES])
def test_which_terms_may_divide_by_zero(text, facts, wanted):
    term = parse(text, NAMES)
    found = undefined(topological([term]), Theory([parse(fact, NAMES) for fact in facts]))
    # the body of a reduction is evaluated nowhere but in it
    shown = {text for text in map(to_text, found) if "r1" not in text or "sum" in text}
    assert {part.replace("r1", "r").replace("r2", "r") for part in shown} == wanted


@settings(max_examples=200)
@given(expressions(zero_divisors=True))
@example((parse("1%(x + x)%(1%(x + x))", NAMES), [NAMES["x"]]))
def test_what_has_been_defined_divides_by_nothing_that_is_zero(drawn):
    term, inputs = drawn
    (safe,) = defined([term], [Theory()])
    assert not list(unsafe_divisions([safe], suspects(topological([safe])), [Theory()]))
    risky = [part for part in topological([term]) if may_divide_by_zero(part)]
    values = evaluate([term, safe, *[part.args[1] for part in risky]], grid(inputs))
    same = values[0] == values[1]
    for divisor in values[2:]:
        same |= divisor == 0
    assert same.all()


def test_divisions_by_what_is_always_zero_are_taken_out():
    root = parse("where(y == 0, 3, x//y) + y//(x + 1)", NAMES)
    facts = {fact: Theory([parse(fact, NAMES)]) for fact in ("y == 0", "x == 0", "y <= 0")}
    assert without_dead_divisions([root], facts["y == 0"]) == [parse("where(y == 0, 3, 0) + y//(x + 1)", NAMES)]
    assert without_dead_divisions([root], facts["x == 0"]) == without_dead_divisions([root], facts["y <= 0"]) == [root]
