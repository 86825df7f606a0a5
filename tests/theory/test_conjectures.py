"""Conjectures from sample points: what is found, that it is true, and that what only looks true is not concluded."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import minimum
from eqsat.lang.text import parse, to_text
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal
from eqsat.theory.conjectures import find_conjectures
from eqsat.theory.limits import LIMITS
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.periods import constant_remainder, holds_in_a_period

RANGES = {"i": (0, 99), "j": (0, 7), "k": (0, 3), "n": (-50, 50), "far": (0, 10**9)}
NAMES = {name: var(name, low, high) for name, (low, high) in RANGES.items()}


def read(*texts: str) -> list[Expr]:
    return [parse(text, NAMES) for text in texts]


def found(roots: list[Expr], facts: list[Expr] | None = None) -> dict[str, str]:
    return {to_text(g.before): to_text(g.after) for g in find_conjectures(roots, facts or []).conjectures}


#: terms, facts, and one equality that must be among those learned
ASSERTED = [
    (["i//2", "(i + 1)//2"], [], ("(i + 1)//2", "i - i//2")),
    (["i//8", "(i + 8)//8"], [], ("(i + 8)//8", "i//8 + 1")),
    (["(i + i//3)//4", "i//3"], [], ("(i + i//3)//4", "i//3")),
    (["n//2", "(n*-1)//2"], [], ("(n*-1)//2", "n//2 - n")),
    (["(i + j)//8"], ["i < 1"], ("(i + j)//8", "0")),
    (["(i*7 + n)//8"], ["n == i"], ("(i*7 + n)//8", "i")),
    (["i//4", "j + 3*(i//4) < 90"], ["i < 40", "j < 4"], ("j + 3*(i//4) < 90", "True")),
    (["i//2 < 3", "i//2", "(i + 2)//8"], [], None),
    (["where((i + j)//200 < 1, i, j)", "j//2"], [], ("where((i + j)//200 < 1, i, j)", "i")),
]


@pytest.mark.parametrize(("texts", "facts", "expected"), ASSERTED)
def test_learns(texts: list[str], facts: list[str], expected: tuple[str, str] | None) -> None:
    conjectures = found(read(*texts), read(*facts))
    if expected is not None:
        before, after = expected
        assert any(
            check_equal(read(before), read(b)).equal
            and check_equal(read(after), read(a), constraints=read(*facts)).equal
            for b, a in conjectures.items()
        ), conjectures


#: equations of sums and quotients by literals over a domain too large to go through, and whether they hold
OF_ONE_PERIOD = [
    ("(far - wide)//3", "-((wide - far + 2)//3)", True),
    ("(far - wide)//3", "-((wide - far + 1)//3)", False),
    ("(far*2 + wide)//4", "far - (far*2 - wide + 3)//4", True),
    ("(far*2 + wide)//4", "far - (far*2 - wide + 2)//4", False),
    ("(wide//2 + far)//3", "(wide + far*2)//6", True),
    ("(wide//2 + far)//3", "(wide + far*2)//5", False),
    # equal in the period from 0 but for its other end
    ("far + wide//4*4", "far*2 - far//16*16 + wide//4*4", False),
    # what is no sum of quotients by literals has no period
    ("far//7 + min(far, 1000)", "far//7 + far", False),
    ("far//(wide + 200001)", "far//400000", False),
    ("far*far//1000", "0", False),
]


@pytest.mark.parametrize(("one", "other", "equal"), OF_ONE_PERIOD)
def test_one_period_of_quotients_decides_a_large_domain(one: str, other: str, equal: bool) -> None:
    names = {"far": var("far", -(10**9), 10**9), "wide": var("wide", -200000, 200000)}
    assert holds_in_a_period(parse(one, names).eq(parse(other, names))) == equal


def test_equations_that_hold_in_a_period_hold_beyond_it() -> None:
    names = {name: var(name, -(10**6), 10**6) for name in "xy"}
    texts = [f"(x*{k} + y*{m} + {c})//{n}" for n in (2, 3, 4) for k in (-1, 1) for m in (-1, 1, 2) for c in range(n)]
    terms = [parse(f"{sign}({text})", names) for sign in ("", "-") for text in texts]
    near = {"x": np.arange(-30, 31)[:, None], "y": np.arange(-30, 31)[None, :]}
    held = 0
    for one, other in combinations(terms, 2):
        equal = bool(one.eq(other).evaluate(near).all())
        assert holds_in_a_period(one.eq(other)) == equal, (one, other)
        held += equal
    assert held


@pytest.mark.parametrize("size", [1000, 2**31 - 1])
def test_a_quotient_of_a_difference_is_minus_that_of_the_other(size: int) -> None:
    result = optimize("(a*3 + b)%5 + -((-(a*3 + b) + 4)//5)*5", a=(-size, size), b=(0, size))
    assert result.cost == optimize("a*3 + b", a=(-size, size), b=(0, size)).cost
    assert "div-reflected" in str(result.explain())


@pytest.mark.parametrize(("below", "affine"), [("i < 11", True), ("i < 22", False)])
def test_a_sum_is_affine_in_the_quotient_that_a_variable_is_said_by(below: str, affine: bool) -> None:
    # j is 2*((j + k)//2) - k, and (i*-5)//11 is half of -i for even i below 11, where (i*-5) % 11 is below 6
    whole, *facts = read("(j + k)//2*6 - (i*-5)//11*2", "(j + k) % 2 == 0", "(i*-5) % 11 < 6", below)
    theory = LinearArithmetic(facts)
    asserted = find_conjectures([theory.simplify(whole)], facts, theory.solved).conjectures
    expected = theory.simplify(parse("(j + k)//2*6 + i", NAMES))
    assert (theory.simplify(asserted[0].after) == expected if asserted else False) is affine


@pytest.mark.parametrize(
    "texts",
    [
        # true at almost every point, and at every sample
        ["where(far == 123456, 1, 0)", "far//7"],
        ["(where(i*1000 + far//1000000 == 55555, 3, 0) + i)//2", "i//2"],
        ["far//999999999", "far//3"],
    ],
)
def test_a_rare_exception_is_not_overlooked(texts: list[str]) -> None:
    assert not found(read(*texts))


def test_nothing_is_proved_when_the_time_is_over() -> None:
    roots = read("i//2", "(i + 1)//2")
    assert find_conjectures(roots, []).conjectures
    looks = iter([False, True, True, True])
    assert not find_conjectures(roots, [], is_over=lambda: True).conjectures
    assert len(find_conjectures([*roots, *read("j//2", "(j + 1)//2")], [], is_over=lambda: next(looks)).conjectures) < 2


def test_one_exception_in_a_domain_that_is_decided() -> None:
    x = var("x", 0, LIMITS.conjecture_points // 2)
    special = 98_765
    terms = [(x + parse(f"where(x == {special}, 4, 0)", {"x": x})) // 4, x // 4]
    assert not find_conjectures(terms, []).conjectures


def test_facts_that_never_hold_are_recognised() -> None:
    assert find_conjectures(read("i//3"), read("i % 2 == 1 and (i + 1) % 2 == 1")).impossible


def test_facts_that_hold_rarely_are_not_taken_for_impossible() -> None:
    asserted = find_conjectures(read("i//3"), read("(i*37 + j*11 + k) % 1009 == 1008"))
    assert not asserted.impossible


def test_facts_beyond_the_domain_that_is_searched_are_not_taken_for_impossible() -> None:
    assert not find_conjectures(read("far//3"), read("far == 123456789 + j")).impossible


def test_facts_about_other_variables_are_used_where_they_matter() -> None:
    # j bounds k, which bounds i
    conjectures = found(read("(i + k)//4"), read("k < j", "j < 2", "i < 3"))
    assert list(conjectures.values()) == ["0"]


def test_a_chain_of_permutations_is_one_remainder() -> None:
    x, y = var("x", 0, 5), var("y", 0, 6)
    index = x * 35 + y * 5
    for size, stride in ((21, 10), (14, 15), (10, 21)):
        index = index // size + index % size * stride
    result = optimize([index])
    assert to_text(result.expr).count("//") + to_text(result.expr).count("%") == 1
    assert result.check().equal


@pytest.mark.parametrize(("slope", "is_remainder"), [(107, True), (108, False)])
def test_a_sum_that_stays_within_the_multiple_of_its_quotient_is_one_remainder(slope, is_remainder) -> None:
    # with 108 its greatest value is 213
    result = optimize(f"x*75 + y*{slope} - (x*211 + y*301)//588*209", x=(0, 6), y=(0, 5))
    assert (result.expr.op == "mod") == is_remainder
    assert result.check().equal


def test_what_is_no_remainder_at_one_point_is_not_taken_for_one() -> None:
    names = {"x": var("x", 0, 999)}
    chain, exception = parse("(x*75 + 15) % 209", names), parse("where(x == 997, 209, 0)", names)
    normal = LinearArithmetic().simplify(chain // 7 * 7 + chain % 7 + exception)
    for conjecture in find_conjectures([normal], []).conjectures:
        assert check_equal([conjecture.before], [conjecture.after]).equal


def test_a_gate_that_never_holds_frees_its_root() -> None:
    result = optimize(
        ["i//3 + j", "i % 2 == 1 and (i + 1) % 2 == 1"], gates=["i % 2 == 1 and (i + 1) % 2 == 1", None], **RANGES
    )
    assert [to_text(e) for e in result.exprs] == ["0", "False"]


def test_the_result_records_what_was_conjectured_and_how_it_was_proved() -> None:
    result = optimize("i//3 + (i + 1)//3 + (i + 2)//3", **RANGES)
    assert [(to_text(g.before), to_text(g.after), g.proof) for g in result.conjectures] == [
        ("i//3 + (i + 1)//3 + (i + 2)//3", "i", "exhaustive")
    ]
    assert result.check().equal


def quotients(depth: int) -> st.SearchStrategy[Expr]:
    leaf = st.sampled_from([NAMES["i"], NAMES["j"], NAMES["k"], NAMES["n"]])
    terms = leaf
    for _ in range(depth):
        sums = st.tuples(terms, leaf, st.integers(-9, 9), st.integers(-9, 9)).map(lambda t: t[0] * t[2] + t[1] * t[3])
        terms = st.tuples(sums, st.integers(2, 9), st.booleans()).map(lambda t: t[0] // t[1] if t[2] else t[0] % t[1])
    return terms


@settings(max_examples=60)
@given(st.lists(quotients(2), min_size=1, max_size=4), st.integers(1, 40))
def test_every_guess_is_true(terms: list[Expr], limit: int) -> None:
    fact = NAMES["i"] < limit
    theory = LinearArithmetic([fact])
    normal = [theory.simplify(term) for term in terms]
    for conjecture in find_conjectures(normal, [fact]).conjectures:
        check = check_equal([conjecture.before], [conjecture.after], constraints=[fact])
        assert check.equal, (conjecture, check)
        assert len(variables([conjecture.before, conjecture.after])) <= 4


@settings(max_examples=40)
@given(st.lists(quotients(2), min_size=1, max_size=3))
def test_learning_keeps_normal_forms_equal(terms: list[Expr]) -> None:
    theory = LinearArithmetic()
    for _ in range(3):
        conjectures = find_conjectures([theory.simplify(term) for term in terms], []).conjectures
        theory.assert_equal([(g.before, g.after) for g in conjectures])
    check = check_equal(terms, [theory.simplify(term) for term in terms])
    assert check.equal, check


#: Conditions, and how bounds of their variables say them; None where they do not, or no shorter.
BY_BOUNDS = [
    ("(j*7 + k)%50 < 3 and j//2*2 == j", "j == 0 and k < 3"),
    ("j%4 < 1 and (j + k)//4 == 1", "j == 4"),
    ("j%4 > 0 or (j + k)//4 != 1", "j != 4"),
    ("(k*5 + j)%8 == 3 and (k + j)//2 < 3", "j < 4 and (j - k*3)%8 == 3"),
    ("(j*5 + k)%11 < 4 and (j - k)%3 == 0", None),
    ("i%10 < 3", None),
]


@pytest.mark.parametrize(("text", "wanted"), BY_BOUNDS)
def test_conditions_are_read_as_bounds(text: str, wanted: str | None) -> None:
    (condition,) = read(text)
    by_bounds = find_conjectures([LinearArithmetic().condition(condition)], []).by_bounds
    found = [conjecture.after for conjecture in by_bounds if check_equal([conjecture.before], [condition]).equal]
    assert [to_text(LinearArithmetic().condition(e)) for e in found] == [
        to_text(LinearArithmetic().condition(e)) for e in read(*([wanted] if wanted else []))
    ]
    for conjecture in by_bounds:
        assert check_equal([conjecture.before], [conjecture.after]).kind == "exhaustive"
        assert check_equal([conjecture.before], [conjecture.after]).equal


#: Roots, their gate, and what the two become.
GATED = [
    ("(x + y*10 + k*4)//20", "(x + k*5)%11 < 6 and (x*2 - k)%11 < 10 and x + k*5 < 11", "y//2", "k < 1"),
    (
        "(x + y*10 + k*4)//20",
        "(x + k*5)%11 < 6 and (x*2 + k*10 + y*22)%44 < 22 and (x*2 - k)%11 < 10 and x + k*5 < 11",
        "y//2",
        "k + y <= y//2*2",
    ),
]


@pytest.mark.parametrize(("root", "gate", "value", "condition"), GATED, ids=[row[1] for row in GATED])
def test_the_bounds_of_a_gate_are_known_under_it(root: str, gate: str, value: str, condition: str) -> None:
    result = optimize([root, gate], gates=[gate, None], x=(0, 4), y=(0, 3), k=(0, 2))
    assert to_text(result.exprs[0]) == value
    assert sorted(to_text(result.exprs[1]).split(" and ")) == condition.split(" and ")
    assert result.check().kind == "exhaustive"
    assert result.check().equal


def test_a_condition_that_holds_nowhere_is_known() -> None:
    (condition,) = read("(j*5 + k)%11 * ((j*3 + k*2)%7) == 35")
    assert list(found([LinearArithmetic().condition(condition)]).values()) == ["False"]
    check = check_equal([condition], read("False"))
    assert (check.kind, check.equal) == ("exhaustive", True)


def test_a_part_of_a_longer_chain_is_read_where_it_is_a_root() -> None:
    part = parse("j%4 < 1 and (j + k)//4 == 1", NAMES)
    theory = LinearArithmetic()
    roots = [theory.condition(part), theory.condition(part & parse("(i + j*3)%7 < 3", NAMES))]
    assert "j == 4" in [to_text(conjecture.after) for conjecture in find_conjectures(roots, []).by_bounds]


def test_quotients_by_zero_are_on_neither_side_of_a_guess() -> None:
    names = {"y": var("y", -4, 2), "x": var("x", 0, 9)}
    guarded = parse("y != 0 and -3//y < 0", names)
    # at y == 0 evaluation happens to make the second member false
    assert [g.after for g in find_conjectures([guarded], []).conjectures] == [parse("-3//y < 0", names)]
    undefined = {part for part in topological([guarded]) if part.op in ("floordiv", "lt")}
    found = find_conjectures([guarded], [], undefined=undefined)
    assert [g.after for g in [*found.conjectures, *found.by_bounds]] == [parse("1 <= y", names)]


def test_nothing_is_conjectured_of_values_that_no_machine_integer_holds():
    far = var("far", 2**64, 2**64 + 3)
    assert not find_conjectures([(far + 1) // 2, far // 2], []).conjectures
    assert optimize([(far + 1) // 2, far // 2]).check().equal


@pytest.mark.filterwarnings("error")
def test_nothing_is_evaluated_outside_the_ranges():
    """It divided by zero there, and NumPy said so."""
    assert optimize("where(n % 2 == 0, n % 3, i // 4)", i=(0, 3), n=(1, 5)).check().equal


def asserted_by_theory(texts: list[str], **ranges: tuple[int, int]) -> tuple[LinearArithmetic, list[tuple[Expr, Expr]]]:
    """A theory that asserts what is conjectured of the texts, and what that was."""
    theory = LinearArithmetic()
    names = {name: var(name, low, high) for name, (low, high) in ranges.items()}
    conjectures = find_conjectures([theory.simplify(parse(text, names)) for text in texts], []).conjectures
    equalities = [(conjecture.before, conjecture.after) for conjecture in conjectures]
    theory.assert_equal(equalities)
    return theory, equalities


def test_what_is_learned_of_an_atom_holds_though_its_operands_change_too() -> None:
    inner = "(b*11 + (g*2 + (g*2 - a)//11*-11 - a)//10*5 + a*5 + g)//22"
    outer = f"((a*5 + g + (a*5 + g)//11*-11)//10*11 + a*5 + g + {inner}*-11 + 22)//44"
    beside = ["(a*5 + g + b*-11)//110", "(a*5 + g + b*-11 + 22)//110"]
    theory, equalities = asserted_by_theory([inner, outer, *beside], g=(0, 4), a=(0, 2), b=(0, 3))
    assert {to_text(before) for before, _ in equalities} == {inner, outer}
    assert all(theory.simplify(before) is theory.simplify(after) for before, after in equalities)


def test_what_is_learned_of_a_quotient_is_carried_to_quotients_of_it() -> None:
    ranges = {"x": (0, 48), "y": (0, 3)}
    x, y = (var(name, low, high) for name, (low, high) in ranges.items())
    inner = (x // 7 * 7 + y * 7 + x) // 14
    in_two, in_one = (inner + y // 2 * 6 + 3) // 14, (y // 2 * 84 + x // 7 * 7 + y * 7 + x + 42) // 196
    theory = LinearArithmetic()
    assert theory.form(in_two) == theory.form(in_one)
    theory.assert_equal([(theory.simplify(inner), y // 2 + x // 7)])
    expected = (y // 2 * 49 + x + 21) // 98
    assert [theory.simplify(in_two), theory.simplify(in_one)] == [theory.simplify(expected)] * 2


def test_of_equal_quotients_that_with_smaller_literals_is_kept() -> None:
    small = "(i3*3 + i0 + i1)//6 - i3"
    large = "(i1*33299 + i0*32436 + i2*16218 + i3*-89091)//194400"
    _, equalities = asserted_by_theory([small, large], i0=(0, 24), i1=(0, 8), i2=(0, 1), i3=(0, 1))
    assert [(to_text(before), to_text(after)) for before, after in equalities] == [(large, small)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(n*n + n)%2", "0"),
        ("(n*n - n + 7)%2", "1"),
        ("n*(n + 1)//2*2", "n*n + n"),
        ("n*(n - 1)//2*2 + m", "n*n - n + m"),
        ("n*(n - 1)//2*m*2", "(n*n - n)*m"),
        ("n*(n + 1)*(n + 2)%6", "0"),
        ("(n*n*n - n + 2)%3", "2"),
        ("(n*m*(n + m))%2", "0"),
        ("(A[n]*A[n] + A[n])%2", "0"),
        ("sum(i*2, i, 0, n)", "n*n - n"),
        ("sum(i*2 + 1, i, 0, n)", "n*n"),
    ],
)
def test_remainders_of_products_that_are_the_same_for_all_values(text, expected):
    names = {"n": var("n", 0, 40), "m": var("m", 0, 9), "i": var("i", 0, 40), "A": buffer("A")}
    result = optimize(parse(text, names))
    assert result.check().equal
    assert result.cost <= cost_of([parse(expected, names)], LATENCY)


#: The same with a term, or a divisor, for which there are several remainders.
@pytest.mark.parametrize("text", ["(n*n + n)%4", "(n*n + m)%2", "(n*n*n - n)%4", "n*(n + 2)%6", "n*m%2", "(n*n + n)%3"])
def test_remainders_of_products_that_are_not(text):
    n, m = var("n", -40, 40), var("m", 0, 9)
    term = parse(text, {"n": n, "m": m})
    assert constant_remainder(LinearArithmetic().form(term.args[0]), term.args[1].vmin) is None
    result = optimize(term)
    assert result.check().equal
    assert result.cost > 0


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=5), st.integers(2, 7))
def test_constant_remainders_are_those_at_every_point(coefficients, n):
    x = var("x", -20, 20)
    term = sum((reduce(mul, [x] * k, const(c)) for k, c in enumerate(coefficients)), const(0))
    found = constant_remainder(LinearArithmetic().form(term), n)
    values = {int(v) % n for v in evaluate([term], {"x": np.arange(-20, 21)})[0].ravel()}
    assert found is None or values == {found}
    # sums of multiples alone are left to the theory
    assert found is not None or len(values) > 1 or not any(coefficients[2:])


@pytest.mark.parametrize(("exponent", "n", "remainder"), [(258, 4, 0), (258, 8, None), (900, 2**16, None)])
def test_remainders_of_high_powers_need_no_wide_numbers(exponent, n, remainder):
    # the power of all remainders was computed: one by 2**16 could have more than 10,000 bits, which was refused
    x = var("x", 0, 2)
    assert constant_remainder(LinearArithmetic().form(x**exponent - x**2), n) == remainder


@pytest.mark.parametrize("shift", [0, 1, 7, -7])
def test_a_division_by_a_variable_is_worth_more_than_a_sum(shift: int) -> None:
    k = var("k", -5 - shift, 60) + shift
    question = 64 // minimum(k, -1)
    assert optimize(question, constraints=[k < -3]).cost <= 3
    # where all operations cost the same the quotient stays
    assert optimize(question, cost="opcount", constraints=[k < -3]).cost == 1 + (shift != 0)
