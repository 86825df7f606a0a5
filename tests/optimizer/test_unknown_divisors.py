"""Divisions by what may be zero, kept as they are: equal wherever the input is defined."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import expressions, grid

from eqsat.egraph.budget import Budget
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize

ANY, COUNT = (None, None), (0, None)
SMALL = Budget(nodes=3000, seconds=0.5, rounds=8)

KEPT = [
    ("s // (s//7)", {"s": COUNT}, "s//(s//7)"),
    ("(s + 0)//(s//7) - s//(s//7) + s*8//4", {"s": COUNT}, "s*2"),
    ("x // (s // t)", {"x": ANY, "s": ANY, "t": ANY}, "x//(s//t)"),
    ("sum(x//(r - 3), r, 0, 9)", {"x": ANY}, "sum(x//(r1 - 3), r1, 0, 9)"),
    # laws that need a divisor that is not zero
    ("x//d*d + x%d", {"x": ANY, "d": COUNT}, "x//d*d + x%d"),
    ("d // d", {"d": COUNT}, "d//d"),
    ("0 // d", {"d": COUNT}, "0//d"),
    ("x//d < x//d + 1", {"x": ANY, "d": ANY}, "True"),
    # known from the context
    ("where(d > 0, x//d*d + x%d, 0)", {"x": ANY, "d": ANY}, "where(d < 1, 0, x)"),
    # in one branch or the other, it is evaluated at every point
    ("where(c > 0, x//d, x//d) + where(c > 5, x//d, 0)*0", {"x": ANY, "d": COUNT, "c": ANY}, "x//d"),
]


@pytest.mark.parametrize(("text", "ranges", "wanted"), KEPT)
def test_unknown_divisors(text, ranges, wanted):
    result = optimize(text, unknown_divisors="keep", **ranges)
    assert str(result.expr) == wanted
    assert result.check(samples=500)


ASSUMED = [
    ("x//d*d + x%d", {"x": ANY, "d": COUNT}, "x"),
    ("d // d", {"d": ANY}, "1"),
    ("(x*d*32 + y%16) // (d*16)", {"x": ANY, "y": ANY, "d": COUNT}, "x*2"),
    ("s // (s//7) + s//7*0", {"s": COUNT}, "s//(s//7)"),
    # whatever is chosen, the input divides
    ("where(c > 0, x//d*d, y//d*d) + where(c > 0, x%d, y%d)", dict.fromkeys("xydc", COUNT), "where(c < 1, y, x)"),
    # in a branch, the divisor may be zero elsewhere
    ("where(c > 0, x//d*d + x%d, 0)", dict.fromkeys("xdc", COUNT), "where(c < 1, 0, x%d + x//d*d)"),
    ("where(c > 0, 3//d, 4) + d//9*9 + d%9", dict.fromkeys("dc", COUNT), "where(c < 1, 4, 3//d) + d"),
    ("x // d < 3 and y // d*d + y%d == y", dict.fromkeys("xyd", COUNT), "x < d*2 + d"),
]


@pytest.mark.parametrize(("text", "ranges", "wanted"), ASSUMED)
def test_divisors_that_are_assumed_not_to_be_zero(text, ranges, wanted):
    result = optimize(text, unknown_divisors="assume", branches="lazy", **ranges)
    assert str(result.expr) == wanted
    assert result.check(samples=500)


DIGIT = dict.fromkeys("jkm", (0, 9))
#: A branch may be evaluated where its condition fails: there a divisor that is known in it is not the input's.
KNOWN_IN_A_BRANCH = [
    ("where(j < 1, k//j, 7) + 9//j", "where(j < 1, 0, 7) + 9//j"),
    ("where(m <= j and j <= m, k//j, 7) + 9//j + m", "where(j == m, k//max(m, 1), 7) + 9//j + m"),
    ("where(j == 3, k//j, 7) + 9//j", "where(j == 3, k//3, 7) + 9//j"),
    (
        "where(j == m*2, k//j, 7) + where(j == m*2, 0, k//(m*2)) + 9//j",
        "9//j + where(j == m*2, k//(m*2), k//(m*2) + 7)",
    ),
    # the input divides where m is positive, a minimum always
    ("0 < m and 0 < k//j", "1 <= min(m, k//max(j, 1))"),
]


@pytest.mark.parametrize(("text", "wanted"), KNOWN_IN_A_BRANCH)
def test_divisors_that_a_branch_knows_are_kept_from_zero_outside_of_it(text, wanted):
    result = optimize(text, unknown_divisors="keep", **DIGIT)
    assert str(result.expr) == wanted
    assert result.check()


@pytest.mark.parametrize("treatment", ["keep", "assume"])
def test_a_division_under_a_gate_is_not_evaluated_always(treatment):
    roots, gates = ["k//j*j + k%j", "0 < m and 0 < k//j"], ["0 < m", None]
    result = optimize(roots, gates=gates, unknown_divisors=treatment, **DIGIT)
    assert [str(expr) for expr in result.exprs] == ["k%j + k//max(j, 1)*j", "1 <= min(m, k//max(j, 1))"]
    assert result.check()


def test_where_a_divisor_is_always_zero_nothing_is_divided():
    assert str(optimize("k//6//j", unknown_divisors="keep", constraints=["j < 1"], **DIGIT).expr) == "0"


def test_what_is_assumed_is_said():
    assert [str(c) for c in optimize("x//d*d + x%d", unknown_divisors="assume", x=ANY, d=COUNT).constraints] == [
        "d != 0"
    ]


IN_REDUCTIONS = [
    "max_over((r*3 + 5)//(r - d), r, 0, 2)",
    "sum(where(d > 1, x//(r - d), r), r, 0, 4)",
    "sum(sum(x%(r + s - d), s, 0, r), r, 1, 3)",
    "sum(x//d//(r - 1 - d), r, 0, d)",
]


@pytest.mark.parametrize("treatment", ["keep", "assume"])
@pytest.mark.parametrize("text", IN_REDUCTIONS)
def test_an_index_divides_by_zero_for_no_value_of_it(text, treatment):
    ranges = {"x": (-3, 5), "d": (0, 6)}
    result = optimize(text, unknown_divisors=treatment, **ranges)
    assert result.check().equal
    assert result.prove().equal
    assert str(result.explain())
    names = {str(v.value): v for v in variables(result.before)}
    points = grid(list(names.values()))
    for place in range(len(next(iter(points.values())))):
        point = {name: int(axis[place]) for name, axis in points.items()}
        wanted = value(result.before[0], point)
        assert wanted is None or value(result.expr, point) == wanted
        # where all that is asked for holds the input has a value
        assert wanted is not None or not all(value(c, point) for c in result.constraints)


def test_constraints_that_are_enough():
    assert str(optimize("x//d*d + x%d", unknown_divisors="keep", constraints=["d != 0"], x=ANY, d=ANY).expr) == "x"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x << y//d", "x << y//d"),
        ("(x*2//2) >> (y%d + 3)", "x >> y%d + 3"),
        ("prod(r + x - x, r, 2, 3 + y%d)", "prod(r1, r1, 2, y%d + 3)"),
        ("sum(1 << r, r, 0, x//d)", "sum(1 << r1, r1, 0, x//d)"),
        ("max_over(1 << (9 - r), r, 0, x//d)", "max_over(1 << 9 - r1, r1, 0, x//d)"),
        ("sum(prod(x, s, 0, r), r, 0, x//d)", "sum(prod(x, r1, 0, r2), r2, 0, x//d)"),
        ("x << min(y//d, 40)", "x << y//d"),
    ],
)
@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_what_needs_bounds_knows_those_of_a_division_that_is_kept(text, answer, seconds):
    """No laws hold for the division, but a shift amount or a number of factors has the bounds that it had."""
    result = optimize(text, unknown_divisors="keep", budget=Budget(seconds=seconds), x=(0, 9), y=(0, 9), d=(0, 3))
    assert seconds == 0 or str(result.expr) == answer
    assert result.cost <= result.cost_before
    for d in (1, 2, 3):
        point = {"x": 7, "y": 5, "d": d}
        assert value(result.expr, point) == value(result.before[0], point)


def test_each_root_costs_no_more_alone_though_its_division_is_kept_from_zero():
    roots = ["x%5 + x//5*5", "where(0 < x or d == y, x, where(d == e, x, 0))%d"]
    result = optimize(roots, unknown_divisors="keep", extract="tree", x=(-3, 4), y=(0, 5), d=(-1, 3), e=(0, 2))
    assert str(result.exprs[0]) == "x"
    assert cost_of([result.exprs[1]], result.model) <= cost_of([result.before[1]], result.model)


def test_the_default_refuses():
    with pytest.raises(ValueError, match="the divisor 'd' of 'x//d' may be zero"):
        optimize("x // d", x=ANY, d=COUNT)
    with pytest.raises(ValueError, match="unknown_divisors='drop' is unknown: use one of refuse, keep, assume"):
        optimize("x // d", unknown_divisors="drop", x=ANY, d=COUNT)


@given(expressions(8, zero_divisors=True, max_points=40), expressions(8, zero_divisors=True, max_points=40), st.data())
@settings(max_examples=150)
def test_equal_where_the_input_is_defined(one, other, data):
    try:
        roots = [one[0], other[0]] if variables([one[0], other[0]]) else [one[0]]
    except ValueError:
        # one name with two ranges
        roots = [one[0]]
    branches, treatment = data.draw(st.sampled_from(["eager", "lazy"])), data.draw(st.sampled_from(["keep", "assume"]))
    try:
        result = optimize(roots, unknown_divisors=treatment, branches=branches, budget=SMALL)
    except ContradictionError:
        return
    assert result.cost <= result.cost_before
    points = grid(variables(roots))
    for place in range(min(map(len, points.values()), default=0)):
        point = {name: int(axis[place]) for name, axis in points.items()}
        for root, answer in zip(roots, result.exprs, strict=True):
            wanted = value(root, point)
            assert wanted is None or value(answer, point) == wanted, f"{root} became {answer} at {point}"


def value(term: Expr, point: dict[str, int]) -> int | None:
    """The value of a term at a point; ``None`` where it is not defined."""
    try:
        return int(evaluate([term], point)[0])
    except ZeroDivisionError:
        return None
