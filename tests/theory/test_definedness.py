"""Definedness: which terms may divide by zero, and what answers that do become.

``EQSAT_EXAMPLES=5000 pytest tests/theory/test_definedness.py -k eagerly`` tries more random terms than usual.
"""

import os
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from strategies import expressions, grid

from eqsat.egraph.budget import Budget
from eqsat.extract import OpCount
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, var
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.properties import may_divide_by_zero, suspects
from eqsat.lang.text import parse, to_text
from eqsat.lang.traversal import is_index, topological, variables
from eqsat.optimizer.front import optimize
from eqsat.theory.definedness import (
    AllowedDivisions,
    defined,
    divides_outside_branches,
    undefined,
    unsafe_divisions,
    without_dead_divisions,
)
from eqsat.theory.linear import LinearArithmetic

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
    # what a branch says of one variable, facts say of another
    ("where(0 < x, 7//n, 0)", ["x <= n"], {"7//n"}),
    ("where(0 < n, 7//x, 0)", ["n <= x"], {"7//x"}),
    ("where(0 < x, 7//n, 0)", ["x <= n + 1"], {"7//n", "where(0 < x, 7//n, 0)"}),
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
    found = undefined(topological([term]), LinearArithmetic([parse(fact, NAMES) for fact in facts]))
    # the body of a reduction is evaluated nowhere but in it
    shown = {text for text in map(to_text, found) if "r1" not in text or "sum" in text}
    assert {part.replace("r1", "r").replace("r2", "r") for part in shown} == wanted


OUTSIDE = [
    ("x//y + 3", True),
    ("where(x//y < 3, x, 0)", True),
    ("where(x < 3, x//y, x%y)", False),
    ("sum(r//y, r, 0, x)", False),
    ("sum(r, r, x//y, 5)", True),
    ("sum(r, r, 0, x//y)", True),
]


@pytest.mark.parametrize(("text", "wanted"), OUTSIDE)
def test_a_division_in_a_branch_or_a_body_is_not_outside(text, wanted):
    assert divides_outside_branches(parse(text, NAMES)) is wanted


@settings(max_examples=200)
@given(expressions(zero_divisors=True))
@example((parse("1%(x + x)%(1%(x + x))", NAMES), [NAMES["x"]]))
def test_what_has_been_defined_divides_by_nothing_that_is_zero(drawn):
    term, inputs = drawn
    (safe,) = defined([term], [LinearArithmetic()])
    assert not list(unsafe_divisions([safe], suspects(topological([safe])), [LinearArithmetic()]))
    risky = [part for part in topological([term]) if may_divide_by_zero(part)]
    values = evaluate([term, safe, *[part.args[1] for part in risky]], grid(inputs), total=True)
    same = values[0] == values[1]
    for divisor in values[2:]:
        same |= divisor == 0
    assert same.all()


def test_divisions_by_what_is_always_zero_are_taken_out():
    root = parse("where(y == 0, 3, x//y) + y//(x + 1)", NAMES)
    facts = {fact: LinearArithmetic([parse(fact, NAMES)]) for fact in ("y == 0", "x == 0", "y <= 0")}
    assert without_dead_divisions([root], facts["y == 0"]) == [parse("where(y == 0, 3, 0) + y//(x + 1)", NAMES)]
    assert without_dead_divisions([root], facts["x == 0"]) == without_dead_divisions([root], facts["y <= 0"]) == [root]


WAYS = {
    "theory and rules": {},
    "theory": {"engine": "theory"},
    "rules": {"theory": False},
    "greedy": {"engine": "greedy"},
}
every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)

RANGES = {"x": (-9, 12), "w": (0, 9), "z": (-50, 50), "n": (1, 4), "m": (0, 4)}

#: Roots, and their gates.
GUARDED = [
    # a branch that its condition keeps from zero took the divisor as it is there
    (["where(0 < x, z//max(x, 1), 0)"], []),
    (["where(0 < x, z//max(x, 1), 0) + z"], []),
    (["where(x == n, tmod(z, n), 3)"], []),
    (["where(0 < w, z//where(0 < w, w, 1), 0)"], []),
    # a divisor was replaced by what its gate says that it equals
    (["z//n"], ["x == n"]),
    (["z//n"], ["n == w"]),
    (["z*5//n//4 == x"], ["n == x"]),
    (["z % n", "z//n"], ["w == n", None]),
    # a divisor was cancelled, and with it what kept it from zero
    (["where(m > 0, (z*m)//(m*max(m, 1)), 0)"], []),
    # the index of a reduction is found where its range does not keep it
    (["sum(where(r == x, z//(r + 1), 0), r, 0, 9)"], []),
    # a factor leaves a branch with its reduction
    (["sum(where(x != 0, z//x, 0), r, 0, 5)"], []),
    # a condition becomes a selection, and back
    (["where(x > 0, z//max(x, 1) < 3, False)"], []),
    # a divisor of both signs
    (["where(x == 0, 0, z//where(x == 0, 1, x))"], []),
]


@every_way
@pytest.mark.parametrize(("texts", "gates"), GUARDED, ids=str)
def test_a_guarded_division_is_not_made_one_by_zero(texts, gates, options):
    result = optimize(texts, gates=gates, **RANGES, **options)
    assert not _dividing_by_zero(result.before, result.exprs, ())
    assert result.cost <= result.cost_before
    assert result.check().equal
    # an answer is an input like others
    optimize(result.exprs, **RANGES, **options)


LAZY = [
    ("where(0 < x, z//max(x, 1), 0)", None, "where(x < 1, 0, z//x)"),
    ("z//n", "x == n", "z//x"),
    ("where(m > 0, (m*5 + z)//m, 0)", None, "where(m < 1, 0, z//m + 5)"),
    # a remainder has its quotient in it
    ("where(0 < x, z % max(x, 1), 0)", None, "where(x < 1, 0, z%x)"),
    ("where(0 < m, (z + m*3)%m, 7)", None, "where(m < 1, 7, z%m)"),
]


@pytest.mark.parametrize(("text", "gate", "wanted"), LAZY)
def test_branches_that_are_evaluated_lazily_may_divide_by_zero_elsewhere(text, gate, wanted):
    result = optimize(text, gates=[gate], branches="lazy", **RANGES)
    assert to_text(result.expr) == wanted
    assert result.check().equal


KEPT = [
    # the divisions of the input are those of the answer, in whatever form
    ("where(m > 0, (z + 1 - 1)//m, 0)", None, "where(m < 1, 0, z//m)"),
    ("where(m != 0, z//m*m + z%m, z)", None, "z"),
    ("where(m != 0, z - z//m*m, 7)", None, "where(m < 1, 7, z%m)"),
    ("where(x != 0, w - (z//x*x - z), 7)", None, "where(x == 0, 7, w + z%x)"),
    ("z - z//m*m", "m > 0", "z%m"),
    ("where(m > 0, m*z//m, 0)", None, "where(m < 1, 0, z)"),
    # of equal cost is the form of the input
    ("z//n", "u == n", "z//n"),
    ("z//n//4 == v", "n == v", "z//n//4 == v"),
]


@pytest.mark.parametrize(("text", "gate", "wanted"), KEPT)
def test_divisions_of_the_input_are_kept(text, gate, wanted):
    result = optimize(text, gates=[gate], u=(1, 4), v=(0, 4), **RANGES)
    assert to_text(result.expr) == wanted


@pytest.mark.parametrize("options", [{}, {"extract": "exact"}, {"branches": "lazy"}, {"theory": False}], ids=str)
def test_a_divisor_that_is_cancelled_is_not_multiplied_by_and_divided_by_again(options):
    class Products(OpCount):
        def price(self, op, operands, result):
            return 50 if op == "mul" else super().price(op, operands, result)

    # where d is 0, what is divided is 0 too, whatever y*z is
    texts = ["d*y", "d*y*z", "where(d != 0, d*y*z//d, y*z)"]
    assert optimize(texts, cost=Products(), d=(0, 3), y=(0, 3), z=(-1, 3), **options).check().equal


def test_a_gate_says_nothing_of_the_divisions_that_an_answer_may_have():
    x, n, z = var("x", 0, 9), var("n", 1, 4), var("z", -50, 50)
    theory = LinearArithmetic()
    guarded = parse("where(0 < x, z//x, 0)", {"x": x, "z": z})
    allowed = AllowedDivisions([guarded], suspects(topological([guarded])), theory)
    forms = {name: theory.form(term) for name, term in {"x": x, "n": n, "z": z}.items()}
    cases = [("z", "x", True), ("n", "x", False), ("z", "n", True), ("x", "z", False)]
    assert [allowed.has(forms[a], forms[b]) for a, b, _ in cases] == [wanted for *_, wanted in cases]


@pytest.mark.parametrize("seed", range(int(os.environ.get("EQSAT_EXAMPLES", "200"))))
def test_an_answer_evaluated_eagerly_divides_by_zero_only_where_its_input_does(seed):
    random = Random(seed)
    names = {"x": var("x", -2, 3), "w": var("w", 0, 3), "n": var("n", 1, 3), "z": var("z", -7, 7)}
    roots = [parse(_number(random, 4), names) for _ in range(random.choice([1, 1, 2]))]
    gates = [parse(_condition(random, 1), names) if random.random() < 0.6 else None for _ in roots]
    facts = [parse(random.choice(["x != 0", "w != 0", "n <= w", "x < w"]), names)] if random.random() < 0.3 else []
    options = list(WAYS.values())[0 if random.random() < 0.7 else random.randrange(4)]
    budget = Budget(nodes=2000, seconds=0.5, rounds=8)
    result = optimize(roots, gates=gates, constraints=facts, budget=budget, **options)
    assert not _dividing_by_zero(roots, result.exprs, facts), result.exprs
    assert result.check().equal


def _number(random: Random, depth: int) -> str:
    """A random integer term in which no division by zero is evaluated, where branches are evaluated lazily."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(["x", "w", "n", "z", "z", str(random.randint(-5, 5))])
    a, b = (_number(random, depth - 1) for _ in range(2))
    divide = random.choice(["({})//({})", "({})%({})", "tdiv({}, {})", "tmod({}, {})"]).format
    kind = random.randrange(8)
    if kind == 0:
        return f"({a}) {random.choice('+-')} ({b})"
    if kind == 1:
        return f"({a})*{random.choice(['2', '3', '-4', 'n', 'w'])}"
    if kind == 2:
        return f"{random.choice(['min', 'max'])}({a}, {b})"
    if kind == 3:
        return f"where({_condition(random, depth - 1)}, {a}, {b})"
    if kind == 4:
        # where the condition says what the divisor is
        other, divisor = random.choice([("x", "n"), ("w", "n"), ("x", "max(x, 1)"), ("w", "max(w, 1)")])
        return f"where({other} == {divisor}, {divide(a, divisor)}, {b})"
    if kind == 5:
        guard, divisor = random.choice([("x > 0", "x"), ("w != 0", "w"), ("x*w != 0", "x*w"), ("x == n", "x")])
        return f"where({guard}, {divide(a, divisor)}, {b})"
    divisors = ["n", "n*2", "max(x, 1)", "min(x, -1)", "where(x == 0, 2, x)", "w + 1", "2", "4", "max(x*w, 1)", "n + w"]
    return divide(a, random.choice(divisors))


def _condition(random: Random, depth: int) -> str:
    if depth > 0 and random.random() < 0.4:
        return f"({_condition(random, depth - 1)} {random.choice(['and', 'or'])} {_condition(random, 0)})"
    simple = ["x == n", "w == n", "0 < x", "x < 1", "w != 0", "x != w", "n <= w", "x == w", "z < 0", "x >= n"]
    other = f"{_number(random, 1)} < {_number(random, 1)}"
    return random.choice([*simple, other]) if "/" not in other and "%" not in other else random.choice(simple)


def _dividing_by_zero(before, after, facts) -> list[Expr]:
    """The divisions of ``after`` by what is zero where the facts hold, but for those that ``before`` has."""
    names = variables([*before, *after, *facts])
    points = grid(names) if names else {"none": np.zeros(1, dtype=int)}
    count = len(next(iter(points.values())))
    holds = np.logical_and.reduce([np.ones(count, dtype=bool), *evaluate(facts, points, total=True)])

    @cache
    def value(term: Expr) -> np.ndarray:
        return np.broadcast_to(evaluate([term], points, total=True)[0], count)[holds]

    @cache
    def has_value(term: Expr) -> np.ndarray:
        divisors = [t.args[1] for t in topological([term]) if t.op in DIVISIONS]
        return np.logical_and.reduce([np.ones(count, dtype=bool)[holds], *[value(d) != 0 for d in divisors]])

    def is_one_of(division: Expr, others: list[Expr]) -> bool:
        for other in others:
            pairs = zip(division.args, other.args, strict=True)
            if all(((value(a) == value(b)) | ~has_value(a) | ~has_value(b)).all() for a, b in pairs):
                return True
        return False

    # what an index is, its reduction says
    indices = {t for t in topological([*before, *after]) if t.op == "var" and is_index(t)}
    divisions = [
        [t for t in topological(roots) if t.op in DIVISIONS and indices.isdisjoint(topological([t]))]
        for roots in (before, after)
    ]
    of_input = [t for t in divisions[0] if (value(t.args[1]) == 0).any()]
    return [t for t in divisions[1] if (value(t.args[1]) == 0).any() and not is_one_of(t, of_input)]
