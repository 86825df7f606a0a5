"""Flat indices over sizes that are no literals: their bounds are those of the digits.

Each answer is compared with its input at every point of small ranges; the property test evaluates the one lemma,
``Quotients.by_factor``, at every point where its facts hold.
"""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import grid

from eqsat import Budget, optimize
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import const, var
from eqsat.lang.text import parse
from eqsat.optimizer.result import Result
from eqsat.theory.forms import to_expr
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.refutation import without_quotient_by_term

RANGES = {"i": (0, 4), "j": (0, 4), "k": (0, 2), "m": (1, 4), "n": (1, 4), "p": (1, 3), "x": (-3, 3), "y": (-3, 3)}
NAMES = {name: var(name, *bounds) for name, bounds in RANGES.items()}

BUDGET = Budget(seconds=30)

DECIDED = [
    ("i*n + j < m*n", "i < m and j < n", "True"),
    ("m*n <= i*n + j", "i < m and j < n", "False"),
    ("0 <= i*n + j and i*n + j < m*n", "i < m and j < n", "True"),
    ("(i*n + j)*p + k < m*n*p", "i < m and j < n and k < p", "True"),
    ("i*n*4 + j < m*n*4", "i < m and j < n*4", "True"),
    ("i*(n + 2) + j < m*(n + 2)", "i < m and j < n + 2", "True"),
    ("i*(n*2 - 1) + j < m*(n*2 - 1)", "i < m and j < n*2 - 1", "True"),
    ("i*((n + 3)//4) + j < m*((n + 3)//4)", "i < m and j < (n + 3)//4", "True"),
    ("i*n + j//4 < m*n", "i < m and j < n*4", "True"),
    ("i*n*p + j < m*n*p", "i < m and j < n*p", "True"),
    ("(i*n + j)//p < (m*n + p - 1)//p", "i < m and j < n", "True"),
    ("(i*n + j)//4 < (m*n + 3)//4", "i < m and j < n", "True"),
    ("i*n + j < n", "j < n", "i < 1"),
    ("i*n + j < n*3", "j < n", "i < 3"),
    ("i*n + j < m*n", "j < n", "i < m"),
    ("i*n + j < m*n", "i <= m and j < n", "i < m"),
    ("n <= i*n + j", "j < n", "1 <= i"),
    ("x*n < y*n", "True", "x < y"),
    ("x*n <= y*n", "True", "x <= y"),
    ("x*n == y*n", "True", "x == y"),
    ("i*n + j == k*n + j", "True", "i == k"),
    ("i*n + j == x*n", "j < n", "i == x and j == 0"),
    ("x*n - j == i*n", "j < n", "x == i and j == 0"),
]


@pytest.mark.parametrize(("condition", "known", "expected"), DECIDED)
def test_flat_indices_are_compared_by_their_digits(condition, known, expected):
    found, simple = [
        optimize(f"where({text}, x, y)", constraints=[known], budget=BUDGET, **RANGES) for text in (condition, expected)
    ]
    assert found.check().kind == "exhaustive"
    assert found.check().equal
    assert found.cost == simple.cost


#: The same with one fact that just fails: the digits do not decide.
UNDECIDED = [
    ("i*n + j < m*n", "i < m and j <= n"),
    ("(i*n + j)*p + k < m*n*p", "i < m and j < n and k <= p"),
    ("i*n*4 + j < m*n*4", "i < m and j <= n*4"),
    ("i*(n + 2) + j < m*(n + 2)", "i < m and j <= n + 2"),
    ("x*n + j < y*n", "j <= n"),
    ("x*n - j < y*n", "j < n"),
    ("x*n + j == i*n", "j <= n"),
    # a factor that may be zero, or below it
    ("x*(n - 1) < y*(n - 1)", "True"),
    ("x*(n - 2) < y*(n - 2)", "True"),
    ("x*(n - 1) == y*(n - 1)", "True"),
]


@pytest.mark.parametrize(("condition", "known"), UNDECIDED)
def test_digits_that_do_not_decide(condition, known):
    found = optimize(f"where({condition}, 1, 0)", constraints=[known], budget=BUDGET, **RANGES)
    assert found.check().kind == "exhaustive"
    assert found.check().equal
    assert found.cost > optimize("where(x < y, 1, 0)", **RANGES).cost


def test_a_clamp_of_a_flat_index_is_idle():
    facts = ["i < m", "j < n"]
    assert optimize("min(i*n + j, m*n - 1)", constraints=facts, **RANGES).cost == 4
    assert optimize("min(i*n + j, m*n - 2)", constraints=facts, **RANGES).cost > 4


#: What quotients by sizes leave: the input, what is known of it, the answer, and what is not enough for that.
QUOTIENTS = [
    ("where(x//(8*n)*8 < m, 1, 0)", ["x < m*n"], "1", ["x < m*n + n"]),
    ("where(x//(k*n)*k < m, 1, 0)", ["x < m*n"], "1", ["x < m*n + n"]),
    ("min(m - x//(8*n)*8, 8)", ["x < m*n", "m%8 == 0"], "8", ["x < m*n", "m%4 == 0"]),
    ("min(m - x//(k*n)*k, k)", ["x < m*n", "m%k == 0"], "k", ["x < m*n"]),
    ("min(x//n, m - 1)", ["x < m*n"], "x//n", ["x < m*n + n"]),
    ("max(x//n, y//n)", ["x <= y"], "y//n", ["x <= y + 1"]),
    ("min(x//n, x//m)", ["m <= n"], "x//n", ["m <= n + 1"]),
    ("min(y*m//n, m - 1)", ["y < n"], "y*m//n", ["y <= n"]),
    ("(y - j)%n", ["y < n", "j < n"], "y - j + where(y < j, n, 0)", ["y < n", "j <= n + 1"]),
    ("(y - j)//n", ["y < n", "j < n"], "where(y < j, -1, 0)", ["y <= n", "j <= n + 1"]),
]
#: What a size that another divides leaves.
DIVIDED = [
    ("x//k%(n//k)", ["n%k == 0", "x < n"], "x//k", ["n%k == 0", "x <= n"]),
    ("x//k//(n//k)", ["n%k == 0"], "x//n", ["k <= n"]),
    ("x//k*k//n", ["n%k == 0"], "x//n", ["0 < n"]),
    ("x//k%(n//k)*k + x%k", ["n%k == 0"], "x%n", ["k <= n"]),
    ("(m//k)*(n//k)*k*k", ["m%k == 0", "n%k == 0"], "m*n", ["m%k == 0"]),
    ("(m//4)*(n//4)*16", ["m%4 == 0", "n%4 == 0"], "m*n", ["m%4 == 0"]),
    ("x//((m//k)*(n//k)*k*k)", ["m%k == 0", "n%k == 0"], "x//(m*n)", ["m%k == 0", "k <= n"]),
    ("max((m - k + 3)//n, 0)", ["k <= m"], "(m - k + 3)//n", ["k <= m + 5"]),
]
LARGE = {"x": (0, 600), "y": (0, 40), "j": (0, 40), "k": (1, 9), "m": (1, 24), "n": (1, 24)}
LARGE_NAMES = {name: var(name, *bounds) for name, bounds in LARGE.items()}


@pytest.mark.parametrize(("text", "facts", "expected", "fewer"), [*QUOTIENTS, *DIVIDED])
def test_quotients_by_sizes_are_bounded_by_products(text, facts, expected, fewer):
    cost = cost_of([parse(expected, LARGE_NAMES)], LATENCY)
    found, other = [optimize(parse(text, LARGE_NAMES), constraints=known, budget=BUDGET) for known in (facts, fewer)]
    assert found.check().equal
    assert other.check().equal
    assert found.cost <= cost < other.cost


#: Reshapes: what an equation of products leaves.
RESHAPED = [
    ("m*n//q", ["m*n == p*q"], "p"),
    ("p*q//n", ["m*n == p*q"], "m"),
    ("m*n//n", ["m*n == p*q"], "m"),
    ("m*n%q", ["m*n == p*q"], "0"),
    ("m*n - p*q", ["m*n == p*q"], "0"),
    ("x//(m*n) - x//(p*q)", ["m*n == p*q"], "0"),
    ("(y*(m*n) + x)//(p*q)", ["m*n == p*q", "x < p*q"], "y"),
    ("(y*(p*q) + x)//(m*n)", ["m*n == p*q", "x < m*n"], "y"),
    ("(x + y*m*n)//q%p", ["m*n == p*q", "x < m*n"], "x//q"),
    ("x//n%m*n + x%n", ["m*n == p*q", "x < p*q"], "x"),
    ("m*n//6", ["m*n == p*6"], "p"),
    ("m*n//p", ["m*n == p*6"], "6"),
    ("where(x//q < p, 1, 0)", ["m*n == p*q", "x < m*n"], "1"),
]
SIZES = {name: var(name, 1, 6) for name in "mnpq"} | {"x": var("x", 0, 36), "y": var("y", 0, 2)}


def under(text: str, *facts: str) -> Result:
    return optimize(parse(text, SIZES), constraints=[parse(fact, SIZES) for fact in facts], budget=BUDGET)


@pytest.mark.parametrize(("text", "facts", "expected"), RESHAPED)
def test_products_that_are_equal_stand_for_each_other(text, facts, expected):
    found = under(text, *facts)
    assert found.check().kind == "exhaustive"
    assert found.check().equal
    assert found.cost <= cost_of([parse(expected, SIZES)], LATENCY)


@pytest.mark.parametrize("text", ["m*n//q", "m*n%q", "x//(m*n) - x//(p*q)"])
@pytest.mark.parametrize("fact", ["m*n <= p*q", "m*n + 1 == p*q", "m*n == p*q + y"])
def test_products_that_are_not_equal_do_not(text, fact):
    found = under(text, fact)
    assert found.check().equal
    assert found.cost > under(text, "m*n == p*q").cost


def test_equations_of_products_that_lead_on_and_on_end():
    for text in ("m*n//x", "m*n*n//(p*q)", "(m*n + p)//m"):
        assert under(text, "m*n == p*q*2", "p*q == m*x", "0 < x").check().equal


def test_divisors_that_are_positive_by_a_fact_are_taken():
    names = {"x": (0, 300), "h": (1, 9), "w": (1, 9), "k": (1, 5), "s": (1, 3)}
    for text, facts in [
        ("x//((h - k)//s + 1)%((w - k)//s + 1)", ["k <= h", "k <= w"]),
        ("x//((h//k)*(w//k))", ["h%k == 0", "w%k == 0"]),
    ]:
        assert optimize(text, constraints=facts, **names).check().equal
        with pytest.raises(ValueError, match="may be zero"):
            optimize(text, constraints=facts[:1], **names)


def test_the_grouped_order_of_programs_has_no_remainder_by_what_is_left_of_a_group():
    group = "min(m - x//(8*n)*8, 8)"
    roots = [parse(f"x//(8*n)*8 + x%(8*n)%{group}", LARGE_NAMES), parse(f"x%(8*n)//{group}", LARGE_NAMES)]
    result = optimize(roots, constraints=["x < m*n", "m%8 == 0"])
    assert result.check().equal
    assert result.cost <= 32


@given(st.integers(-3, 3), st.integers(1, 4), st.integers(-3, 3), st.integers(0, 5))
def test_forms_without_a_quotient_say_no_more(coefficient, inside, other, constant):
    theory = LinearArithmetic()
    a, n, m = var("a", -9, 9), var("n", 1, 4), var("m", 1, 3)
    q = a // (n * inside)
    products = [q, q * q, q * n, q * (a // m), q * q * n, a // (n * m * inside) * m, a // (n * n) * n * n]
    for term in [p * coefficient for p in products]:
        form = theory.form(term + m * other + constant)
        for found in without_quotient_by_term(theory, form):
            before, after = evaluate([to_expr(form), to_expr(found)], grid([a, n, m]))
            assert not ((after >= 0) & (before < 0)).any()


ATOMS = ["i", "m", "n", "i*n", "m*n", "j", "j*m"]


@given(st.dictionaries(st.sampled_from(ATOMS), st.integers(-3, 3), min_size=2, max_size=5), st.integers(-4, 4))
def test_a_form_has_the_sign_of_the_multiple_of_its_factor(coefficients, constant):
    facts = [parse("i < m", NAMES), parse("j < n", NAMES)]
    theory = LinearArithmetic(facts)
    term = sum((parse(atom, NAMES) * c for atom, c in coefficients.items()), const(constant))
    found = theory.by_factor(theory.form(term))
    if found is None:
        return
    names = ["i", "j", "m", "n"]
    for point in product(*[range(low, high + 1) for low, high in map(RANGES.get, names)]):
        values = dict(zip(names, point, strict=True))
        if all(evaluate(facts, values)):
            value, whole, rest = evaluate([term, *map(to_expr, found)], values)
            assert rest >= 0
            assert (value < 0) == (whole < 0)
            assert (value == 0) == (whole == rest == 0)


FACTORS = ["x//n", "y//n", "x//(m*n)", "x%n", "x", "y", "m", "n", "n*n"]


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3)), max_size=3),
    st.integers(-3, 3),
    st.sampled_from([[], ["x%n == 0"], ["y%n == 0", "x < m*n"], ["m*n == p*n"]]),
)
def test_comparisons_of_products_of_quotients_keep_their_values(terms, constant, known):
    facts = [parse(fact, NAMES) for fact in known]
    theory = LinearArithmetic(facts)
    total = sum((prod([parse(f, NAMES) for f in factors], start=const(c)) for c, factors in terms), const(constant))
    conditions = [total < 1, total.eq(0)]
    points = grid([NAMES[name] for name in "xymnp"])
    inside = np.logical_and.reduce([*evaluate(facts, points), points["x"] <= 3])
    for before, after in zip(
        evaluate(conditions, points), evaluate([theory.condition(c) for c in conditions], points), strict=True
    ):
        assert not ((before != after) & inside).any()


def test_a_square_of_a_quotient_has_the_quotient_left():
    assert optimize("x*x", constraints=["x%n == 0"], x=(-1, 0), n=(1, 3)).check().equal
