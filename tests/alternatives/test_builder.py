"""The builder: every e-node added to a class has the value of the class, and sums are shared without changing it."""

import weakref
from collections.abc import Sequence
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest
from corpora import read
from hypothesis import given, settings
from hypothesis import strategies as st
from index_terms import index_terms
from strategies import bool_expressions, expressions, grid

from eqsat.alternatives.availability import add_available
from eqsat.alternatives.builder import Builder
from eqsat.alternatives.choosing import Chooser
from eqsat.alternatives.linear_programs import LinearPrograms
from eqsat.alternatives.partial_sums import share_sums
from eqsat.egraph.budget import Budget
from eqsat.egraph.tables import Tables
from eqsat.extract import Choice, Latency, OpCount, Priced, dag, reachable, total_cost, tree
from eqsat.extract.cost import width
from eqsat.extract.select import ProductPrices, needed
from eqsat.lang.costs import cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, make, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.properties import divisors
from eqsat.lang.sampling import all_hold
from eqsat.lang.terms import term_of_node
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.optimizer.relevant import relevant_rules
from eqsat.optimizer.result import Result
from eqsat.optimizer.saturation import saturate
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT
from eqsat.theory.arithmetic import OverdueError
from eqsat.theory.forms import LinearForm, to_expr
from eqsat.theory.linear import LinearArithmetic


def built(roots: Sequence[Expr], facts: Sequence[Expr] = ()) -> Builder:
    """The e-graph of ``roots``, grown, with what the shipped rules find in it."""
    builder = Builder(LinearArithmetic(facts), {str(v.value): v for v in variables([*roots, *facts])})
    builder.input.add(topological(roots))
    values = [builder.value_of(root) for root in roots]
    builder.graph.roots = [builder.add_class(value) for value in values]
    builder.grow()
    # beyond that some random terms grow for minutes
    saturate(builder, tables(), Budget(nodes=2_000), lambda seconds: False)
    return builder


@cache
def tables() -> Tables:
    return Tables(relevant_rules(DEFAULT))


def class_terms(builder: Builder) -> dict[int, Expr]:
    """A term for each class: its normal form."""
    return {c: to_expr(v) if isinstance(v, LinearForm) else v for c, v in enumerate(builder.values)}


def assert_equal_values(left: Sequence[Expr], right: Sequence[Expr], facts: Sequence[Expr] = ()) -> None:
    """Compare two lists of terms at every point at which the facts hold."""
    points = grid(variables([*left, *right, *facts]) or [var("i", 0, 0)])
    count = len(next(iter(points.values())))
    relevant = all_hold(facts, points)
    values = evaluate([*left, *right], points, total=True)
    for index, term in enumerate(left):
        differs = np.broadcast_to(values[index] != values[len(left) + index], (count,)) & relevant
        assert not differs.any(), f"{term} is not {right[index]} at {at(points, differs)}"


def nonzero_divisors(terms: Sequence[Expr]) -> list[Expr]:
    """That no divisor is zero: where one is, the value of a class that may be undefined counts for nothing."""
    return [divisor.ne(0) for divisor in divisors(terms)]


def at(points: dict[str, np.ndarray], chosen: np.ndarray) -> dict[str, int]:
    return {name: int(values[chosen][0]) for name, values in points.items()}


def assert_sound(roots: Sequence[Expr], facts: Sequence[Expr] = ()) -> Builder:
    """Compare every node with its class, those of what is there already too, and the roots with theirs."""
    builder = built(roots, facts)
    choice = tree(Priced.of(builder.graph, Latency()))
    add_available(builder, needed(choice, builder.graph.roots))
    terms = class_terms(builder)
    everywhere: list[tuple[Expr, Expr]] = []
    for c, nodes in builder.graph.classes.items():
        pairs = [(terms[c], term_of_node(node, [terms[a] for a in node[2]], builder.leaves)) for node in nodes]
        if builder.classes.may_be_undefined(c):
            left, right = zip(*pairs, strict=True)
            assert_equal_values(left, right, [*facts, *nonzero_divisors([*left, *right])])
        else:
            everywhere += pairs
    assert_equal_values([a for a, _ in everywhere], [b for _, b in everywhere], facts)
    assert_equal_values(roots, [terms[c] for c in builder.graph.roots], facts)
    return builder


def checked(roots: Sequence[Expr], constraints: Sequence[Expr] = ()) -> Result:
    """The result, of which every e-node that was added and, at every point, the answer is right."""
    assert_sound(roots, constraints)
    result = optimize(roots, constraints=constraints)
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)
    return result


def assert_within_bounds(builder: Builder, facts: Sequence[Expr] = ()) -> None:
    """Every class's values lie within its bounds wherever the facts hold: prices and widths rest on them."""
    terms = class_terms(builder)
    points = grid(variables([*terms.values(), *facts]) or [var("i", 0, 0)])
    relevant, shape = all_hold(facts, points), next(iter(points.values())).shape
    for (c, term), values in zip(terms.items(), evaluate(terms.values(), points, total=True), strict=True):
        low, high = builder.graph.bounds[c]
        counts = relevant
        if builder.classes.may_be_undefined(c):
            counts = relevant & all_hold(nonzero_divisors([term]), points)
        outside = (np.broadcast_to((values < low) | (values > high), shape)) & counts
        assert not outside.any(), f"{term} leaves [{low}, {high}]"


@settings(max_examples=150)
@given(index_terms())
def test_every_node_of_index_terms(terms):
    assert_within_bounds(assert_sound(terms[-3:]))


@settings(max_examples=150)
@given(expressions(guarded=False) | bool_expressions(guarded=False))
def test_every_node_of_any_term(example):
    assert_within_bounds(assert_sound([example[0]]))


@settings(max_examples=100)
@given(index_terms())
def test_every_node_where_facts_hold(terms):
    first, middle = terms[0], terms[-2:][0]
    facts = [first <= first.vmax - 1, middle <= (middle.vmin + middle.vmax) // 2]
    try:
        LinearArithmetic(facts)
    except ValueError:
        return
    assert_within_bounds(assert_sound([terms[-1]], facts), facts)


@st.composite
def polynomials(draw):
    """A sum of products of three variables, and how one of them depends on another."""
    names = [var("x", -3, 4), var("y", 0, 6), var("z", -8, 2)]
    coefficients = st.integers(-12, 12)
    parts = st.lists(st.tuples(coefficients, st.lists(st.sampled_from(names), max_size=3)), min_size=1, max_size=4)
    total = sum((prod(factors, start=const(k)) for k, factors in draw(parts)), start=const(0))
    a, b = draw(st.permutations(names))[:2]
    return total, (a * draw(st.sampled_from([-3, -2, -1, 1, 2]))).eq(b + draw(st.integers(-1, 1)))


@settings(max_examples=150)
@given(polynomials())
def test_every_node_where_variables_depend_on_each_other(example):
    assert_sound([example[0]], [example[1]])


#: Products that stay beside a constant, and products of sums too long to be distributed.
PRODUCTS = [
    "(3 - min(3, max(x, 1)))*x + 2",
    "(a + b + c + d + 1)*(a - b + c - d)*(x - 1)",
    "(x%5 - 1)*(x%5 - 1)*(x%5 - 1)*(x%5 - 1)",
    "(a - b)*(c + 3)*2 + (a - b)*d*x + x",
    "(a + b)*(a + b)*(a + b)*(c - x)*(a + b)*(c - x)",
]


@pytest.mark.parametrize("text", PRODUCTS)
def test_every_node_of_products(text):
    assert_sound([read(text, dict.fromkeys("abcd", (0, 2)) | {"x": (0, 7)})])


#: Products with a quarter of what is a multiple of 4, and some in which all terms but one are multiples of 4 too.
ALIGNED_PRODUCTS = ["n//4*(x*4 + 4)", "n//4*(x*4 + 2)", "n//4*(x*4 + y*2 + 4)", "n//4*(x*2 + y*6 + 4)"]


@pytest.mark.parametrize("text", ALIGNED_PRODUCTS)
def test_every_node_of_products_of_known_alignment(text):
    ranges = {"n": (0, 16), "x": (0, 5), "y": (0, 2)}
    assert_sound([read(text, ranges)], [read("n % 4 == 0", ranges)])


@st.composite
def sums_of_minima(draw):
    """A minimum or maximum beside, or less, others that it is an operand of."""
    affine = st.builds(
        lambda term, k, c: term * k + c,
        st.sampled_from([var("x", -4, 4), var("y", -3, 5)]),
        st.sampled_from([1, 1, 1, -1, 2]),
        st.integers(-2, 2),
    )
    extreme, operand = st.sampled_from([minimum, maximum]), affine | st.just(const(0))
    shared = draw(extreme)(draw(operand), draw(affine))
    sides = draw(st.lists(st.tuples(extreme, operand, st.sampled_from([1, -1])), min_size=1, max_size=2))
    return sum([pick(shared, other) * sign for pick, other, sign in sides], shared)


@settings(max_examples=200)
@given(sums_of_minima())
def test_every_node_of_minima(term):
    assert_sound([term])


@settings(max_examples=200)
@given(sums_of_minima(), st.integers(-12, 12), st.integers(-3, 3), st.booleans())
def test_every_node_of_comparisons_of_minima(term, literal, coefficient, is_lower):
    compared = term + var("z", 0, 9) * coefficient
    assert_sound([compared < literal if is_lower else compared.eq(literal)])


@pytest.mark.parametrize(
    "text", ["min(max(-x, 0), 5) - min(max(-y, 0), 5) < 3", "min(max(2 - x, -1), 5) - min(max(1 - y, 0), 5) < 1"]
)
def test_a_difference_of_clamps_below_a_literal_is_not_at_most_that_literal(text):
    assert_sound([read(text, {"x": (-9, 9), "y": (-9, 9)})])


@pytest.mark.parametrize(
    "texts",
    [
        ["k - i*4 - j", "i == 2 or i == 1 and j == 3"],
        ["i*-4 - j", "i == 2 or i == 1 and j == 3"],
    ],
)
def test_a_condition_on_a_subtracted_sum_is_not_turned_round(texts):
    names = {"i": var("i", 0, 2), "j": var("j", 0, 3), "k": var("k", 0, 9)}
    checked([parse(text, names) for text in texts])


def test_steps_between_values_near_the_ends_of_int64():
    names = {"x": var("x", -1, 1), "y": var("y", 0, 1)}
    checked([parse(text, names) for text in (f"x*{2**62 + 1} + y", "x%2 == 1 and y < 1")])


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("min(x, 1)%5 - min(x%4, min(x, 1))", -40, 63),
        ("max(x//max(x, 1) - x + x%5, -1)", -40, 5),
        ("max(x*x - x*2, x%6 + x//max(x, 1))", -1, 5),
    ],
)
def test_a_minimum_of_three_is_none_of_two(text, low, high):
    check = optimize(text, x=(low, high)).check()
    assert (check.kind, check.equal) == ("exhaustive", True)


ADDED = [
    # a term, ranges, the operators that must be among the e-nodes of its class
    ("x - x//8*8", {"x": (-99, 99)}, {"sum", "mod"}),
    ("x%8", {"x": (-99, 99)}, {"sum", "mod"}),
    ("x//8 + 3", {"x": (0, 99)}, {"sum", "floordiv"}),
    ("x//n", {"x": (0, 99), "n": (1, 9)}, {"floordiv"}),
    ("x - x//n*n", {"x": (0, 99), "n": (1, 9)}, {"sum", "mod"}),
    ("x*y", {"x": (0, 9), "y": (0, 9)}, {"mul"}),
    ("x - y < 0", {"x": (0, 9), "y": (0, 9)}, {"lt"}),
    ("shl(x, n)", {"x": (0, 9), "n": (0, 9)}, {"shl"}),
    ("min(x, y) - x", {"x": (0, 9), "y": (0, 9)}, {"min"}),
    ("x - min(x, y)", {"x": (0, 9), "y": (0, 9)}, {"max"}),
    ("min(x - y, 6) - min(x - y, 2)", {"x": (0, 9), "y": (0, 9)}, {"max"}),
    ("max(min(y - x, 2), 6) - 9", {"x": (0, 19), "y": (0, 19)}, {"const"}),
    ("x < y and x < n", {"x": (0, 9), "y": (0, 9), "n": (0, 9)}, {"and", "lt"}),
    ("y < x or n < x", {"x": (0, 9), "y": (0, 9), "n": (0, 9)}, {"or", "lt"}),
    ("-x%8", {"x": (-99, 99)}, {"mod"}),
    ("x - tdiv(x, 8)*8", {"x": (-99, 99)}, {"tmod"}),
    ("tdiv(x, 8)", {"x": (-7, 99)}, {"tdiv", "max"}),
    ("b*x", {"b": (0, 1), "x": (-9, 9)}, {"mul", "where"}),
    ("b*x*n", {"b": (-1, 0), "x": (-9, 9), "n": (0, 3)}, {"mul"}),
    ("x + b*(31 - x*2)", {"b": (0, 1), "x": (0, 31)}, {"sum"}),
    ("min(x, 1)*y", {"x": (0, 9), "y": (-9, 9)}, {"mul", "where"}),
    ("b*b*x + b*n", {"b": (0, 1), "x": (-9, 9), "n": (0, 3)}, {"sum", "where"}),
]


@pytest.mark.parametrize(("text", "ranges", "operators"), ADDED)
def test_operators_of_a_class(text, ranges, operators):
    builder = assert_sound([read(text, ranges)])
    (root,) = builder.graph.roots
    assert operators <= {op for op, _, _ in builder.graph.classes[root]}


@pytest.mark.parametrize("high", [1, 2])
def test_a_product_with_a_variable_of_two_values_is_a_selection(high):
    builder = assert_sound([read("b*x", {"b": (0, high), "x": (-9, 9)})])
    (root,) = builder.graph.roots
    assert any(op == "where" for op, _, _ in builder.graph.classes[root]) == (high == 1)


def test_a_variable_of_two_values_selects():
    result = optimize("x + b*(31 - x*2)", x=(0, 31), b=(0, 1))
    assert result.cost <= cost_of([parse("x + where(b < 1, 0, 31 - x*2)", {v: var(v, 0, 31) for v in "xb"})], Latency())


#: Conditions, and others that say the same and are answered as cheaply.
AS_CHEAP = [
    ("(x - y)//7 == 0", "0 <= x - y and x - y < 7"),
    ("(x - y)//7 != 2", "x - y < 14 or 21 <= x - y"),
    ("0 <= x - y and x - y < 16", "(x - y)//16 == 0"),
    ("0 <= x - y and x - y < 16 and x != 3", "(x - y)//16 == 0 and x != 3"),
    ("x*16 + i <= y*16 + j and y*16 + j - x*16 - i < 16", "x + where(j < i, 1, 0) == y"),
]


@pytest.mark.parametrize(("text", "other"), AS_CHEAP)
def test_bounds_and_quotients_are_answered_alike(text, other):
    ranges = {"x": (0, 40), "y": (0, 40), "i": (0, 15), "j": (0, 15)}
    one, same = (read(condition, ranges) for condition in (text, other))
    assert optimize([one]).cost == optimize([same]).cost
    assert check_equal([one], [same]).equal


_DIGITS = {"x": (0, 2), "y": (0, 2), "i": (0, 3), "j": (0, 3)}
#: Comparisons of numbers in digits, whether they are also selections, and whether also comparisons without multiples.
BY_DIGITS = [
    ("x*4 + i <= y*4 + j", _DIGITS, True, True),
    ("x*4 + i < y*4 + j", _DIGITS, True, True),
    ("x*3 + i < y*3 + j + 4", _DIGITS | {"i": (0, 2), "j": (0, 2)}, True, False),
    ("y*3 + j <= x*3 + i - 1", _DIGITS | {"i": (0, 2), "j": (0, 2)}, True, False),
    # three values of a quotient
    ("y*4 + j < x*4 + i + 2", _DIGITS, False, True),
    ("x*3 + i <= y*3 + j", _DIGITS, False, False),
    # the higher digits are on one side
    ("x*4 + y*4 + i < 9", _DIGITS, False, False),
    ("x*4 + i < 14", {"x": (0, 15), "i": (0, 15)}, False, False),
    # what is left of a number without its last digit
    ("i - x//4*4 < 4", {"x": (0, 15), "i": (0, 15)}, False, True),
    ("i - x//4*4 < 2", {"x": (0, 15), "i": (0, 15)}, False, True),
    ("i - x//3*3 < 3", {"x": (0, 15), "i": (0, 15)}, False, False),
]


@pytest.mark.parametrize(("text", "ranges", "is_selection", "has_no_multiples"), BY_DIGITS)
def test_comparisons_of_numbers_in_digits(text, ranges, is_selection, has_no_multiples):
    builder = assert_sound([read(text, ranges)])
    (root,) = builder.graph.roots
    nodes = builder.graph.classes[root]
    assert any(op == "where" for op, _, _ in nodes) == is_selection
    compared = [[builder.values[a] for a in args] for op, _, args in nodes if op in ("lt", "le")]
    assert any(all(max(map(abs, form.terms.values()), default=1) == 1 for form in sides) for sides in compared) == (
        has_no_multiples
    )


def test_comparisons_of_numbers_in_digits_need_no_products():
    ranges = {"x": (0, 9), "y": (0, 9), "i": (0, 14), "j": (0, 14)}
    ordered = optimize([read("x*15 + i <= y*15 + j", ranges)])
    assert ordered.cost == optimize([read("where(x == y, i <= j, x < y)", ranges)]).cost
    begun = optimize("i - x//16*16 < 16", x=(0, 99), i=(0, 99))
    assert str(begun.expr) == "i//16 <= x//16"


#: Divisors, and their two values if they are seen to have two.
TWO_VALUES = [
    ("where(x < 3, 8, 4)", (4, 8)),
    ("where(x < 3, 8, 4) + 1", (5, 9)),
    ("x//4 + 3", (3, 4)),
    ("x//4*5 + 1", (1, 6)),
    ("min(20 - x//2*8, 9)", None),
    ("min(36 - x//2*8, 8)", None),
    ("min(28 - x//2*8, 8)", (4, 8)),
    ("max(x*4 - 23, 2)", (2, 5)),
    ("max(x*4 - 22, 2)", (2, 6)),
    ("max(x*4 - 21, 2)", None),
    ("min(28 - x//2*8, 8, y + 4)", None),
    ("x//3 + 3", None),
    ("where(x < 3, 8, y)", None),
]


@pytest.mark.parametrize(("text", "values"), TWO_VALUES)
def test_values_of_divisors(text, values):
    divisor = read(text, {"x": (0, 7), "y": (0, 9)})
    theory = LinearArithmetic()
    found = theory.two_values(theory.form(divisor))
    points = grid(variables([divisor]))
    assert values == (None if found is None else found[1:])
    if found is not None:
        expected = np.where(found[0].evaluate(points), *values)
        assert np.array_equal(divisor.evaluate(points), expected)


#: Divisions by what has two values, and what is as cheap.
BY_EITHER = [
    (
        ["x//where(y < 3, 8, 4)", "x%where(y < 3, 8, 4)"],
        ["where(y < 3, x//8, x//4)", "x - where(y < 3, x//8*8, x//4*4)"],
    ),
    (["x%48//min(20 - x//48*8, 8)"], ["where(x < 96, x//8 - x//48*6, x//4 - 24)"]),
    (["x//(y//5 + 2)"], ["where(y < 5, x//2, x//3)"]),
]


def test_equal_roots_are_one_class():
    ranges = {"x": (-99, 99), "y": (0, 7)}
    texts = ["x*8 + y", "y + 8*x", "(x*8 + y)//8*8 + y", "x*8 + y%8"]
    builder = built([read(text, ranges) for text in texts])
    assert len(set(builder.graph.roots)) == 1


SUMS = [
    # a sum, how it is written
    ("x - 5", "x - 5"),
    ("5 - x", "5 - x"),
    ("-x", "-x"),
    ("-x - 5", "-5 - x"),
    ("x*-4", "x*-4"),
    ("3 - x*4", "3 - x*4"),
    ("x*2 - x*2 + 7", "7"),
    ("x*3 + x", "x*4"),
]


@pytest.mark.parametrize(("text", "written"), SUMS)
def test_a_sum_is_written_without_waste(text, written):
    term = read(text, {"x": (-9, 9)})
    builder = built([term])
    choice = tree(Priced.of(builder.graph, Latency()))
    (found,) = terms_of_roots(builder, choice)
    assert str(found) == written
    assert_equal_values([term], [found])


SHARED = [
    # roots, the cost of all of them: additions 1, products by powers of two 1, by their neighbours 2, others 3
    (["a + b + c", "a + b + d"], 3),
    (["a + b + c + d", "c + d", "a + b"], 3),
    (["a + b", "a + b + 1", "a + b + 2"], 3),
    (["a - b + c", "b - a + d"], 3),
    (["a*3 + b*5", "a*3 + b*5 + c"], 5),
    (["a*3 + b*5 + c", "a*6 + b*10 + d"], 7),
    (["a*8 + b*8"], 2),
    (["a*7 + b*7 + c*7"], 4),
    (["a + b", "c + d"], 2),
    # a product that a partial sum has serves another one
    (["c + b*10 + a*100", "b*8 + a*80 + d", "c*8 + a*80 + d"], 13),
    # a sum that is there is subtracted, not negated
    (["a*2 + b + c*64", "64 - a*2 - b"], 5),
    # a difference is built the way round in which most sums have it
    (["b*42 - a + 8", "c*6 + b*42 - a - 4", "b*42 - a - c*6 + 80"], 12),
    (["a - b*42 - 8", "a - c*6 - b*42 + 4", "c*6 - b*42 + a - 80"], 12),
]
LETTERS = dict.fromkeys("abcd", (0, 9))


@pytest.mark.parametrize(("texts", "cost"), SHARED, ids=str)
def test_roots_share_partial_sums(texts, cost):
    result = optimize([read(text, LETTERS) for text in texts], engine="theory")
    assert result.cost == cost
    assert result.check().equal


_ROUNDED = {"n": (0, 60), "x": (0, 15), "y": (-40, 40)}
#: What wraps or rounds, by what has two values, and its answer.
ROUNDED = [
    ("n//8 + min(n%8, 1)", "(n + 7)//8"),
    ("n//11*11 + min(n%11, 1)*11", "(n + 10)//11*11"),
    ("n//7 + min(1, n%7) + x", "(n + 6)//7 + x"),
    ("where(n%8 == 0, n, n - n%8 + 8)", "(n + 7)//8*8"),
    ("where(y%8 == 0, y, y - y%8 + 8)", "(y + 7)//8*8"),
    ("where(n%11 != 0, n - n%11 + 11, n)", "(n + 10)//11*11"),
    ("x + 5 - where(x >= 11, 16, 0)", "(x + 5)%16"),
    ("y - where(x >= 11, 16, 0) + x", "y - 5 + (x + 5)%16"),
    ("min(y, 31) - min(y, 0)", "max(min(31, y), 0)"),
    # near misses: another divisor, one more value, one more bit, and what is not wrapped
    ("n//8 + min(n%11, 1)", "n//8 + min(1, n%11)"),
    ("n//8 + min(n%8, 2)", "n//8 + min(2, n%8)"),
    ("n//8*2 + min(n%8, 1)", "n//8*2 + min(1, n%8)"),
    ("where(n%8 == 1, n, n - n%8 + 8)", "where(n%8 == 1, n, n - n%8 + 8)"),
    ("x + 5 - where(x >= 10, 16, 0)", "where(x < 10, 5, -11) + x"),
    ("x + 5 - where(x >= 11, 8, 0)", "where(x < 11, 5, -3) + x"),
]


@pytest.mark.parametrize(("text", "wanted"), ROUNDED)
def test_what_has_two_values_wraps_and_rounds(text, wanted):
    term, answer = (read(t, _ROUNDED) for t in (text, wanted))
    assert_sound([term])
    result = optimize([term])
    assert result.cost == optimize([answer]).cost == cost_of([answer], Latency())
    assert check_equal([term], [answer]).equal


SHORTER = [
    # roots, their answers
    (["x - (x + z)//2*2"], ["(x + z)%2 - z"]),
    (["y*5 - tdiv(y + z, 2)*10"], ["(tmod(y + z, 2) - z)*4 + (tmod(y + z, 2) - z)"]),
    (["(x + z)//8*24 - x*3 + 7"], ["7 - (((x + z)%8 - z)*2 + ((x + z)%8 - z))"]),
    (["x - (x + z)//2*4"], ["x - (x + z)//2*4"]),
    (["x - (x + y + z)//2*2"], ["x - (x + y + z)//2*2"]),
    (["where(x < 6, 3, 8) - where(x < 6, 2, 6)"], ["where(x < 6, 1, 2)"]),
    (["where(x < 6, y, 0) + where(x < 6, 0, z) + y*z + z*9"], ["where(x < 6, y, z) + (y + 9)*z"]),
    # what one branch of a selection takes away
    (["y*9 - (x + where(z < 3, 0, 1 - x))*3 + 3"], ["where(z < 3, y*8 + y - (x*2 + x) + 3, y*8 + y)"]),
    # a quotient of a quotient, whose common factor is gone
    (["(x + y*4)//18*24 - y//9*47", "x < 0 or 4 < x"], ["((x + y*4)//18 - y//9*2)*24 + y//9", "5 <= x%1024"]),
    # the complement of what is written
    (["not x//32 < x%16 + 3", "x//32 + x%32*18"], ["x%16 + 3 <= x//32", "x//32 + x%32*18"]),
    (["not (x//32 < x%16 + 3 or y < 9)", "x//32 + x%32*18"], ["x%16 + 3 <= x//32 and 9 <= y", "x//32 + x%32*18"]),
    # some of what lies below others
    (["x < z and x < w and y < z and y < w + 1"], ["x < min(z, w) and y < z and y <= w"]),
    (["x < z and x < w and y < z"], ["x < min(z, w) and y < z"]),
    # what another comparison says is zero, and a sum that is there
    (["x < -998 and x + y == -996"], ["x < -998 and y == 3"]),
    (["x + y == -996 or -999 < x"], ["y == 3 or -998 <= x"]),
    (["x + y == -996 or -998 < x"], ["x + y == -996 or -997 <= x"]),
    # what a table has at the ends of its range and between them; one that is needed may be compared
    (["where(x != 3, where(x != 5, where(x != 7, 10, 4), 2), 1) == 10"], ["x != 3 and x != 5 and x != 7"]),
    (["where(x != 3, y, 1)", "where(x != 3, y, 1) == 4"], ["where(x != 3, y, 1)", "where(x != 3, y, 1) == 4"]),
    # a digit of two values selects
    (["x//12%2*12 - 16"], ["where((x + 1008)//12%2 < 1, -16, -4)"]),
    # what is subtracted loses its constant
    (["-((x*3 + 7)//8) - y"], ["x*-3//8 - y"]),
    # a power of two divides before a product has to
    (["(x*3 + y*4 + 2)//8"], ["((x + y)*4 - x + 2)//8"]),
    (["(x*5 + y*8)//20"], ["(x//4 + x + y*2)//5"]),
    (["(x*5 + y*6)//20"], ["(x + y + y//5)//4"]),
    (["(x*7 + y*4)//20"], ["(x*8 - x + y*4)//20"]),
    (["where(x < 6, 3, 8) - where(y < 6, 2, 6)"], ["where(x < 6, 3, 8) - where(y < 6, 2, 6)"]),
    # of two maxima one is a minimum that is subtracted
    (["max(0, x) + max(-6, -y)"], ["max(x, 0) - min(y, 6)"]),
    (["min(0, max(0, x) + max(-6, -y))*(-2 - z)"], ["max(0, min(y, 6) - max(x, 0))*(z + 2)"]),
    (["max(0, x) + max(-6, y)"], ["max(x, 0) + max(-6, y)"]),
    # a sum by which several terms are multiplied, and near misses
    (["x*z + y*z + x*w + y*w"], ["(x + y)*(z + w)"]),
    (["x*z - y*z + y*w - x*w + 5"], ["(x - y)*(z - w) + 5"]),
    (["x*z*2 + y*z*2 + x*w*3 + y*w*3"], ["(x + y)*((w + z)*2 + w)"]),
    (["x*x + x*y - x*z - y*z"], ["(x + y)*(x - z)"]),
    (["x*x*2 + x*y*2 - x*z - y*z + w*x + w*y"], ["(x + y)*(x*2 - z + w)"]),
    (["x*x + x*y + x*z - y*z"], ["(x + y + z)*x - y*z"]),
    (["x*y + x*2 + y*3 + 7 + w"], ["(x + 3)*(y + 2) + w + 1"]),
    (["x*z - y*z - x*3 + y*3 + w"], ["(x - y)*(z - 3) + w"]),
    (["x*z + y*z + x*w - y*w"], ["(w + z)*x + (z - w)*y"]),
    (["x*z + y*z + x*3 + y*2"], ["(x + y)*(z + 2) + x"]),
    (["x*z*4 - z - x*8 - x*y*4 + y + 2 + x"], ["(x*4 - 1)*(z - y - 2) + x"]),
    # powers by squares
    (["(x + y)*(x + y)*(x + y)*(x + y)"], ["(x + y)*(x + y)*((x + y)*(x + y))"]),
    (["(x + y)*z*(y + x)*(x + y)*(x + y)"], ["(x + y)*(x + y)*((x + y)*(x + y))*z"]),
    (["(x + y)*(x + y)*z*z"], ["(x + y)*z*((x + y)*z)"]),
    # a product that is there is a factor of a longer one, whatever the names of the variables
    (["w*x*y*z", "x*z"], ["x*z*(w*y)", "x*z"]),
    (["w*x*y*z", "w*y"], ["w*y*(x*z)", "w*y"]),
    (["prod(x + y, r, 0, 5)"], ["(x + y)*(x + y)*((x + y)*(x + y))*(x + y)"]),
]


@pytest.mark.parametrize(("texts", "wanted"), SHORTER, ids=str)
def test_a_term_that_has_a_shorter_form_gets_it(texts, wanted):
    ranges = dict.fromkeys("wxyz", (-999, 999))
    result = optimize([read(text, ranges) for text in texts])
    assert result.cost == cost_of([read(text, ranges) for text in wanted], Latency())
    assert result.check().equal


@pytest.mark.parametrize("divisor", [(1, 9), (-9, -1)], ids=str)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x%d*y + x%d*z", "x%d*(y + z)"),
        ("x%d*y - x%d*z", "x%d*(y - z)"),
        ("x%d*y + x%d*3", "x%d*(y + 3)"),
        ("(x%d + w)*y + (x%d + w)*z", "(x%d + w)*(y + z)"),
        ("x*y - x//d*d*y + x*z - x//d*d*z + w", "x%d*(y + z) + w"),
    ],
)
def test_products_of_a_remainder_by_a_symbol_and_a_sum_negate_nothing(text, wanted, divisor):
    ranges = dict.fromkeys("wyz", (-4, 5)) | {"x": (0, 50), "d": divisor}
    result = optimize(text, **ranges)
    assert result.cost == cost_of([read(wanted, ranges)], Latency())
    assert result.check().equal


@pytest.mark.parametrize(
    ("highest", "most"), [(0, "x - (3 - a)//12 - 1"), (15, "x + (a - 4)//12"), (16, "x + (a - 4)//12")]
)
def test_a_quotient_that_is_never_positive_is_subtracted(highest, most):
    ranges = {"a": (-1000, highest), "x": (0, 9)}
    result = optimize("(a - 4)//12 + x", **ranges)
    assert result.cost <= cost_of([read(most, ranges)], Latency())
    assert result.check().equal


#: Terms, and what costs no more: what subtracts minima is written with maxima, and comparisons of extremes as one.
BY_MAXIMA = [
    ("-min(0, max(c, y + 3) - min(n, y + 14))", "max(0, min(n, y + 14) - max(c, y + 3))"),
    ("-min(0, max(c, y + 3) - min(n, y + 14))*z", "max(0, min(n, y + 14) - max(c, y + 3))*z"),
    ("-(y//3 + z)*min(0, max(3 - m, 2 - n))", "(y//3 + z)*max(0, min(m - 3, n - 2))"),
    ("z - (y//3 + z)*min(0, max(3 - m, 2 - n))", "z + (y//3 + z)*max(0, min(m - 3, n - 2))"),
    ("sum(where(r + y >= c and r + y < n, z, 0), r, 3, 14)", "max(0, min(n, y + 14) - max(c, y + 3))*z"),
    ("sum(where(r > n or r >= m, 0, y//3 + z), r, 3, 10)", "max(0, min(10, min(n + 1, m)) - 3)*(y//3 + z)"),
    ("sum(where(r + y < c, 1, 0), r, 3, 9) < z", "max(0, min(9, c - y) - 3) < z"),
    ("max(0, min(9, c - y) - 3) + 5 < z + 5", "max(0, min(9, c - y) - 3) < z"),
    ("max(min(c, n), min(c, z)) < y", "min(c, max(n, z)) < y"),
]


#: Terms, and what costs no more: with it divisors that are no literals, and dividends that must be seen to be positive.
DIVIDENDS = [
    (["(x*5 + y//3*5)//10", "(x*5 + y//3*5)%10"], ["(x + y//3)//2", "(x + y//3)%2*5"]),
    (["(x*n*3 + y//4)%n"], ["y//4%n"]),
    (["x//n%6 + x//(n*6)*6"], ["x//n"]),
    (["(x*24 + y*7 - 20)//3%n + (x*24 + y*7 - 20)//(n*3)*n"], ["(x*24 + y*7 - 20)//3"]),
    (["(x*5 + 30)//6%47 + (x*5 + 30)//282*47"], ["(x*5 + 30)//6"]),
    (["(x//n - 4)//9"], ["(x - n*4)//(n*9)"]),
    (["(n*2 + y//5 + x)//n"], ["(y//5 + x)//n + 2"]),
    # what the dividend has too, beside what it has not
    (["(y + (n*n + n)//2 - n)*n"], ["(y + n*(n - 1)//2)*n"]),
    (["(y - x - (n*n - n)//2 - n)*n"], ["(y - x - n*(n + 1)//2)*n"]),
    (["((x*y + y)//3 - y + n)*n"], ["((x*y - y*2)//3 + n)*n"]),
    (["sum(y + r*n, r, 0, n)"], ["(y + n*(n - 1)//2)*n"]),
]


#: Terms, and what costs no more: quotients by nearly a multiple of what remainders are divided by.
BESIDE_MULTIPLES = [
    ("x//25*2500 + x%25//8", "x//25*2497 + (x - x//25)//8"),
    ("x//49*2500 + x%49//16", "x//49*2497 + (x - x//49)//16"),
    ("x//9*2500 + x%9//8", "x//9*2499 + (x - x//9)//8"),
    ("x//3 + (x + 1)//3*100", "x//3 + (x - x//3)//2*100"),
    ("x//63*2500 + x%63//8", "x//63*2492 + (x + x//63)//8"),
    ("x//25*25 - x%25//8*199", "x//25*622 - (x - x//25)//8*199"),
    # near misses: no multiple, and no quotient that is there
    ("(x*3 + 3)//25", "(x*2 + x + 3)//25"),
    ("(x + 1)//3", "(x + 1)//3"),
]


@pytest.mark.parametrize(("text", "wanted"), BESIDE_MULTIPLES)
def test_quotients_by_nearly_a_multiple(text, wanted):
    ranges = {"x": (0, 400), "y": (0, 30)}
    root = read(text, ranges)
    result = checked([root])
    assert result.cost == cost_of([read(wanted, ranges)], Latency())


@pytest.mark.parametrize("sign", [1, -1])
def test_the_law_of_quotients_by_nearly_a_multiple(sign):
    # both sides grow by one where the term grows by n, so two periods show it for all
    for a, d in product(range(1, 12), range(2, 30)):
        n = a * d - sign
        assert all(_nearly(a, d, n, sign, x) for x in range(-n, n + 1))
        for other in (n - 1, n + 1) if a > 1 else ():
            assert not all(_nearly(a, d, other, sign, x) for x in range(-a * n, a * n))


def _nearly(a: int, d: int, n: int, sign: int, x: int) -> bool:
    return a * (x + (sign < 0)) // n == (x + sign * (x // n)) // d


#: Sums, and what they become where a quotient takes in their constant.
TAKEN_IN = [
    ("(i + 3)//4*4 + j - 4", "(i - 1)//4*4 + j"),
    ("(k + 2)//3*11 + j - 11", "(k - 1)//3*11 + j"),
    ("(i + 3)//4*22 + j*13 + 44", "(i + 11)//4*22 + j*13"),
    ("(i - j + 12)//11 + i - j + 1", "i - j + (i - j + 23)//11"),
    # near misses: no multiple, a dividend without a constant, one that would be negative
    ("(i + 3)//4*12 + j - 3", "(i + 3)//4*12 + j - 3"),
    ("i//4*4 + j - 4", "i//4*4 + j - 4"),
    ("(i + 2)//3*11 + j - 11", "(i + 2)//3*11 + j - 11"),
]


@pytest.mark.parametrize(("text", "wanted"), TAKEN_IN)
def test_a_quotient_takes_in_the_constant_of_a_sum(text, wanted):
    root = read(text, {"i": (0, 40), "j": (0, 9), "k": (1, 40)})
    result = checked([root])
    assert str(result.expr) == wanted


_BY_ANY_SIGN = "p//{0} + where(0 < p%{0}, 1, 0)"
_SYMBOLIC = {"n": (-9, 20), "p": (0, 20), "d": (1, 6), "e": (1, 3), "z": (-1, 3), "f": (0, 3), "i": (-4, 7)}
_SYMBOLIC["m"] = (-4, -1)
#: What divisions by what is no literal cost no more than.
SYMBOLIC = [
    # comparisons are those of products
    (["i < n//d"], ["i*d + d <= n"]),
    (["n//d <= i"], ["n < i*d + d"]),
    (["n//d < 0"], ["n < 0"]),
    (["(p + d - 1)//d <= i"], ["p <= i*d"]),
    (["n//d == 0"], ["0 <= n and n < d"]),
    (["n//d == -1"], ["n < 0 and -d <= n"]),
    (["n//d == i"], ["i*d <= n and n < i*d + d"]),
    (["n//d != i"], ["n < i*d or i*d + d <= n"]),
    (["i - n//d < 2"], ["i*d - d <= n"]),
    # remainders round down, and a quotient of what is not negative rounds up
    (["p//d*d"], ["p - p%d"]),
    (["p//d*d + i"], ["p - p%d + i"]),
    (["p//d*d", "p%d"], ["p - p%d", "p%d"]),
    (["(p + d - 1)//d*d"], ["d + (p - 1) - (p + d - 1)%d"]),
    (["(p - 1)//d + 1"], ["(p + d - 1)//d"]),
    (["p//d + min(p%d, 1)"], ["(p + d - 1)//d"]),
    (["i - p//d - min(p%d, 1)"], ["i - (p + d - 1)//d"]),
    (["p//d*3 + min(p%d, 1)*3"], ["(p + d - 1)//d*3"]),
    (["p//d*3 - max(-(p%d), -1)*3"], ["(p + d - 1)//d*3"]),
    (["p//d + where(0 < p%d, 1, 0)"], ["(p + d - 1)//d"]),
    (["where(p%d == 0, p//d, p//d + 1)"], ["(p + d - 1)//d"]),
    (["where(p//d*d < p, 3, 0) + p//d*3 + i"], ["(p + d - 1)//d*3 + i"]),
    # remainders by sums, which are multiplied out
    (["(p%((d + 3)*e) + i)%(d + 3)"], ["(p + i)%(d + 3)"]),
    (["(p%((d + e)*4) + i)%(d + e)"], ["(p + i)%(d + e)"]),
    (["i - p//(d + 3)*(d + 3)*2 + p*2"], ["i + p%(d + 3)*2"]),
    (["p - tdiv(p, d + 3)*(d + 3)"], ["p%(d + 3)"]),
    (["n - tdiv(n, d)*d"], ["tmod(n, d)"]),
    # a common factor is cancelled whatever the sign of the divisor
    (["(n*3 + i*3)//((d - 9)*3)"], ["(n + i)//(d - 9)"]),
    (["(n*d + i*d)//(d*(d - 9))"], ["(n + i)//(d - 9)"]),
    (["n*d*6//((d - 9)*d*4)"], ["n*3//((d - 9)*2)"]),
    (["tdiv(n*e*2, (d + 3)*e*4)"], ["tdiv(n, (d + 3)*2)"]),
    (["(p*6 + 4)//((-m)*6)"], ["p//-m"]),
    (["(p*6 + 4)%((-m)*6)"], ["p%-m*6 + 4"]),
    (["n*(d + 1)//(m*(d + 1))"], ["n//m"]),
    (["n*min(max(i, 1), 7)//(m*min(max(i, 1), 7))"], ["n//m"]),
    (["(n*(d + 1) + d)//(m*(d + 1))"], ["(n*(d + 1) + d)//(m*(d + 1))"]),
    (["n*3%((d - 9)*3)"], ["n%(d - 9)*3"]),
    (["(n*3 + 1)//((d - 9)*3)"], ["(n*3 + 1)//(d*3 - 27)"]),
    # near misses: the quotient is there, the divisor may be negative, another multiple or another remainder
    (["i < p//d", "p//d"], ["i < p//d", "p//d"]),
    (["p//d*d", "p//d"], ["p//d*d", "p//d"]),
    (["n//where(z == 0, 1, z) == i"], ["n//where(z == 0, 1, z) == i"]),
    (["p//max(f, 1)*f"], ["p//max(f, 1)*f"]),
    (["p//d*e"], ["p//d*e"]),
    (["p//d*2 < i"], ["p//d*2 < i"]),
    ([_BY_ANY_SIGN.format("where(z == 0, 1, z)")], [_BY_ANY_SIGN.format("where(z == 0, 1, z)")]),
    (["p//d*2 + where(0 < p%d, 1, 0)"], ["p//d*2 + where(0 < p%d, 1, 0)"]),
    (["p//d + where(1 < p%d, 1, 0)"], ["p//d + where(1 < p%d, 1, 0)"]),
    (["p//d + min(p%d, 2)"], ["p//d + min(p%d, 2)"]),
    (["p//d*3 + min(p%d, 1)*2"], ["p//d*3 + min(p%d, 1)*2"]),
    (["p//d + where(0 < n%d, 1, 0)"], ["p//d + where(0 < n%d, 1, 0)"]),
]


#: Remainders of clamped values, whose quotients are clamped quotients.
OF_CLAMPED = [
    ("(min(max(n, 0), 17)*5 + p)%10", "min(max(n, 0), 17)%2*5 + p"),
    ("(min(n, 17)*5 + p)%20", "min(n, 17)%4*5 + p"),
    ("(max(n, 3)*5 + p)%10", "max(n, 3)%2*5 + p"),
    ("(p - min(max(n, m), 17)*5)%10*3", "((-min(max(n, m), 17))%2*5 + p)*3"),
    ("min(n, 17)*5 + p - min(n, 17)//4*20", "min(n, 17)%4*5 + p"),
    ("(min(n, 17)*8 + p + 3)//16", "min(n, 17)//2"),
    # near misses: another multiple, another clamp, a term that carries
    ("min(n, 17)*5 + p - min(n, 17)//4*15", "min(n, 17)*5 + p - min(n, 17)//4*15"),
    ("min(n, 17)*5 + p - min(n, 18)//4*20", "min(n, 17)*5 + p - min(n, 18)//4*20"),
    ("(min(n, 17)*4 + p)%8", "(min(n, 17)*4 + p)%8"),
]


#: Remainders of what has a remainder among its terms, and what they cost no more than.
OF_REMAINDERS = [
    ("((n + m)%32*7 + i)%5 + j", "((n + m)%32*2 + i)%5 + j"),
    # near misses: another multiple of the quotient, not all that is divided
    ("(n*2 + n//32*2 + i)%5", "(n*2 + n//32*2 + i)%5"),
    ("(n*2 + (n + m)//32 + i)%5", "(n*2 + (n + m)//32 + i)%5"),
]


#: What quotients of multiples cost no more than, by the fact that says of what.
OF_MULTIPLES = [
    ("(n + 1)//2", "n%4 == 0", "n//2"),
    ("(n + 3)//4", "n%16 == 0", "n//4"),
    ("(n + 5)//2", "n%6 == 2", "n//2 + 2"),
    ("i - (n + 1)//2", "n%4 == 0", "i - n//2"),
    ("(n + 3)//4 + (n + 7)//8", "n%16 == 0", "n//4 + n//8"),
    ("max(i, (n + 1)//2*i)", "n%8 == 0", "max(i, n//2*i)"),
    # near misses: what is left is not less than the divisor, or nothing says so
    ("n//4*2", "n%2 == 0", "n//4*2"),
    ("n//4*2 + i", "0 <= n", "n//4*2 + i"),
]


@pytest.mark.parametrize(("text", "fact", "wanted"), OF_MULTIPLES)
def test_quotients_of_multiples(text, fact, wanted):
    ranges = {"n": (-48, 95), "i": (-3, 9)}
    root, fact, wanted = [read(t, ranges) for t in (text, fact, wanted)]
    assert check_equal([root], [wanted], constraints=[fact]).equal
    assert checked([root], constraints=[fact]).cost <= cost_of([wanted], Latency())


#: Multiples above a number, less that: what the number lacks to a multiple.
ROUNDED_UP = [
    ("(n + 3)//4*4 - n + i", "(-n)%4 + i"),
    ("(n + 3)//4*12 - n*3 + i + j", "(-n)%4*3 + i + j"),
    ("i + n - (n + 4)//5*5", "i - (-n)%5"),
    ("(n + m + 7)//8*8 - n - m + i", "(-n - m)%8 + i"),
    ("(n + d - 1)//d*d - n + i", "(-n)%d + i"),
    ("((n + d - 1)//d*d - n)*5 + i", "(-n)%d*5 + i"),
    # near misses: another constant, another multiple, not all of the dividend
    ("(n + 2)//4*4 - n + i", "(n + 2)//4*4 - n + i"),
    ("(n + 3)//4*5 - n + i", "(n + 3)//4*5 - n + i"),
    ("(n + m + 7)//8*8 - n + i", "(n + m + 7)//8*8 - n + i"),
    ("(n + d - 2)//d*d - n + i", "(n + d - 2)//d*d - n + i"),
]


_ENDS = {"i": (0, 3), "j": (-2, 5), "k": (1, 4), "n": (0, 40), "m": (-9, 9), "l": (-(2**31), 2**31 - 1)}
_ENDS |= dict.fromkeys("bcd", (0, 1))
#: Roots, and what they become: a sum that is needed anyway has its constant already.
BY_NEEDED = [
    (["i + 1", "n - i < 2"], ["i + 1", "n <= i + 1"]),
    (["i*11 + 1", "2 <= n - i*11"], ["i*11 + 1", "i*11 + 1 < n"]),
    (["n - 3", "i + 3 < n"], ["n - 3", "i < n - 3"]),
    # so has it two terms of three
    (["n - i", "n < i + j"], ["n - i", "n - i < j"]),
    (["n - i", "n != i + j"], ["n - i", "j != n - i"]),
    # near misses: another constant, another multiple, an equation
    (["n - i", "n < i*11 + j"], ["n - i", "n < i*11 + j"]),
    (["i + 5", "n - i < 2"], ["i + 5", "-1 <= i - n"]),
    (["i*4 + 1", "2 <= n - i*11"], ["i*4 + 1", "2 <= n - i*11"]),
    (["i + 1", "n == i + 3"], ["i + 1", "i - n == -3"]),
]


@pytest.mark.parametrize(("texts", "wanted"), BY_NEEDED, ids=str)
def test_comparisons_use_the_sums_that_are_needed(texts, wanted):
    roots = [read(text, _ENDS) for text in texts]
    result = checked(roots)
    assert [str(expr) for expr in result.exprs] == wanted


#: Conditions, and what they become.
AT_ENDS = [
    ("i == 3 and j == 5", "8 <= i + j"),
    ("i == 0 and j == 5", "i - j < -4"),
    ("i < 3 or j < 5", "i + j < 8"),
    ("0 < i or -2 < j", "-1 <= i + j"),
    ("i == 3 and j == 5 and k == 4", "12 <= i + j + k"),
    ("i == 3 and j == 5 and m < n", "8 <= i + j and m < n"),
    ("i*8 + j == 29", "8 <= i + j"),
    ("i*8 + j < 29", "i + j < 8"),
    ("j - i*8 <= -26", "5 <= i - j"),
    # remainders stay whole
    ("j%4 < 1 and i == 3", "j%4 + 3 <= i"),
    ("j%4 < 1 and i == 0", "max(i, j%4) < 1"),
    ("3 <= j%4 or i == 3", "3 <= max(i, j%4)"),
    ("1 <= b and n%2 < 1", "n%2 < b"),
    ("1 <= b or n%2 < 1", "n%2 <= b"),
    # several at the one end, and several at the other
    ("1 <= b and 1 <= c and d < 1", "d < min(c, b)"),
    ("b < 1 or c < 1 or 1 <= d", "min(c, b) <= d"),
    ("1 <= b and 1 <= n%2 and d < 1", "d < min(n%2, b)"),
    # near misses: no end, or another
    ("i == 3 and j%4 < 2", "3 <= i and j%4 < 2"),
    ("i == 3 and j == 4", "3 <= i and j == 4"),
    ("i < 3 or j < 4", "i < 3 or j < 4"),
    ("i < 3 and j < 5", "i < 3 and j < 5"),
    ("i < 3 or 0 < j", "i < 3 or 1 <= j"),
    ("i*8 + j < 28", "i*8 + j < 28"),
    # of two terms apart, where no more than one quotient is possible
    ("i*6 + j < 20", "i < 3 or j < 2"),
    ("1 <= i*6 - j", "1 <= i or j < 0"),
    ("i*6 + j <= 0", "max(i, j) < 1"),
    ("18 < i*6 + j", "3 <= i and 1 <= j"),
    ("i*6 + j < 14", "i*6 + j < 14"),
    ("i*6 + j < 8", "i*6 + j < 8"),
    ("2 <= i*6 - j", "j - i*6 < -1"),
    # a quotient takes a constant that would be added
    ("i*4 + 3 < n", "i < n//4"),
    ("i*8 + k*4 + 4 <= n", "i*2 + k < n//4"),
    ("n <= i*4 + 3", "n//4 <= i"),
    ("m < i*4 - 3", "m - i*4 < -3"),
    ("i*4 + 2 < n", "3 <= n - i*4"),
    ("i*6 + 3 < n", "4 <= n - i*6"),
    ("i*4 + n < 28", "i*4 + n < 28"),
]


@pytest.mark.parametrize(("text", "wanted"), AT_ENDS)
def test_conditions_at_ends_and_in_parts(text, wanted):
    root = read(text, _ENDS)
    result = checked([root])
    assert str(result.expr) == wanted
    assert result.cost <= cost_of([root], Latency())


#: Roots with windows of sums, and what the last becomes.
WINDOWS = [
    (["0 <= j and j < 5"], "j%8 < 5"),
    (["j < 0 or 5 <= j"], "5 <= j%8"),
    (["10 <= n and n < 32"], "10 <= n%32"),
    (["n < 10 or 32 <= n"], "n%32 < 10"),
    (["0 <= j and j < 5 and i < k"], "j%8 < 5 and i < k"),
    # by a sum that is needed
    (["m + 1", "-1 <= m and m < 5"], "(m + 1)%16 < 6"),
    (["2 - m", "-1 <= m and m < 3"], "(2 - m)//4 == 0"),
    (["n - 5", "n < 5 or 13 <= n"], "(n - 5)//8 != 0"),
    # near misses: neither end is a multiple of the period
    (["1 <= j and j < 5"], "j < 5 and 1 <= j"),
    (["2 <= n and n < 32"], "2 <= n and n < 32"),
    # wider than 32 bits
    (["0 <= l and l < 5"], "0 <= l and l < 5"),
    # literals of selections
    (["m + where(i < 2, 3, 9) <= 7"], "m <= where(i < 2, 4, -2)"),
    (["2 <= n - where(i < k, 3, 9)"], "where(i < k, 5, 11) <= n"),
    (["n + where(i < k, 3, 9) == 17"], "n == where(i < k, 14, 8)"),
    (["n + where(i < k, 3, 9) != 17"], "n != where(i < k, 14, 8)"),
    (["n + b*5 < 9"], "n <= where(b < 1, 8, 3)"),
    (["7 <= n - b*3"], "where(b < 1, 7, 10) <= n"),
    # near misses: the product is a shift, a branch is no literal, or the sum is needed
    (["n + b*4 < 9"], "b*4 + n < 9"),
    (["m + where(i < k, j, 9) < 7"], "where(i < k, j, 9) + m < 7"),
    (["m + where(i < 2, 3, 9)", "m + where(i < 2, 3, 9) < 7"], "m + where(2 <= i, 9, 3) < 7"),
]


@pytest.mark.parametrize(("texts", "wanted"), WINDOWS, ids=str)
def test_windows_and_selections_in_comparisons(texts, wanted):
    roots = [read(text, _ENDS) for text in texts]
    result = optimize(roots)
    assert str(result.exprs[-1]) == wanted
    assert result.check().equal
    if "l" not in texts[0]:
        checked(roots)


@pytest.mark.parametrize("text", ["i < 3 or j < 5", "i == 3 and j == 5", "i*8 + j < 29"])
@pytest.mark.parametrize("fact", ["i + j <= 7", "8 <= i + j", "7 <= i + j"])
def test_facts_may_decide_what_conditions_at_ends_are(text, fact):
    result = checked([read(text, _ENDS)], constraints=[read(fact, _ENDS)])
    assert (result.cost == 0) == (fact != "7 <= i + j")


_FEW = {"o": (0, 3), "p": (0, 4), "h": (-5, 9), "w": (1, 6), "b": (0, 1), "c": (3, 4)}
#: Terms of few values, and equations that clip, with what they become.
FEW_VALUES = [
    ("min(20 - o*6, 6)", "where(3 <= o, 2, 6)"),
    ("min(o*6 + 6, 20) - o*6", "where(3 <= o, 2, 6)"),
    ("max(o*3, 7)", "where(o < 3, 7, 9)"),
    # near misses: one more value, and no literal
    ("min(20 - p*6, 6)", "min(p*-6, -14) + 20"),
    ("max(o*3, 5)", "max(o*3, 5)"),
    ("min(w, o*6)", "min(o*6, w)"),
    # equations that clip are bounds
    ("min(max(h, 0), 7) == h", "h//8 == 0"),
    ("max(min(h, 6), 0) == h", "h < 7 and 0 <= h"),
    ("min(max(h, 0), 6) != h", "7 <= h or h < 0"),
    ("min(max(h, 0), w - 1) == h", "h < w and 0 <= h"),
    ("min(max(h + o, 0), 6) == h + o", "h + o < 7 and 0 <= h + o"),
    # near misses: neither end lies inside the other, or it is another value that is clipped
    ("min(max(h, o), w) == h", "min(w, max(h, o)) == h"),
    ("min(max(h, 0), 2) == o", "min(2, max(h, 0)) == o"),
    # what one variable of two values decides is linear in it
    ("where(b < 1, 0, 1)", "b"),
    ("where(b < 1, 4, 0) + h", "h - b*4 + 4"),
    ("where(b < 1, h + 1, h)", "h - b + 1"),
    ("min(b*2 - 1, 0)", "b - 1"),
    ("max(b*3, 2) - h", "b - h + 2"),
    ("min(c*2 - 7, 0)", "c - 4"),
    ("min(min(h, h + b*2 - 1), 0)", "min(0, b + h - 1)"),
    ("min(min(h, 0), h + b*2 - 1)", "min(0, b + h - 1)"),
    # near misses: the selection is cheaper, there are more values or variables
    ("where(b < 1, 2, 7)", "where(b < 1, 2, 7)"),
    ("where(o < 1, 0, 1)", "where(o < 1, 0, 1)"),
    ("where(b + o < 1, 0, 1)", "where(b + o < 1, 0, 1)"),
    ("min(h*2 - 1, 0)", "min(0, h*2 - 1)"),
    ("min(b*2 - o, 0)", "min(b*2 - o, 0)"),
    # 0 and 1 are their squares
    ("b*b", "b"),
    ("(b + h)*b", "where(b < 1, 0, h + 1)"),
    ("o//3*(o//3)", "where(o < 3, 0, 1)"),
    ("o//2*(o//2) - o//2", "0"),
    ("p//2*(p//2) - p//2", "(p//2 - 1)*(p//2)"),
]


#: Comparisons of a remainder with its sign changed, which need not be computed.
COMPARED = [
    (["a*3 + b", "-((a*3 + b)%4) == -2"], ["a*3 + b", "(a*3 + b)%4 == 2"]),
    (["a*3 + b", "-((a*3 + b)%4) != -1"], ["a*3 + b", "(a*3 + b)%4 != 1"]),
    (["a*3 + b", "-((a*3 + b)%4) < -1"], ["a*3 + b", "2 <= (a*3 + b)%4"]),
    (["a*3 + b", "-1 <= -((a*3 + b)%4)"], ["a*3 + b", "(a*3 + b)%4 < 2"]),
]


#: Conditions of many comparisons with one value, and what they cost no more than.
BELOW_MANY = [
    ("x < a and x < b and x < c and x < d", "x < min(a, b, c, d)"),
    ("a <= x or b <= x or c <= x or d <= x", "min(a, b, c, d) <= x"),
    ("x < a and x < b and x < c and x < d and x < e and x < f and x < g", "x < min(a, b, c, d) and x < min(e, f, g)"),
    ("x < a and x < b and c < x and x < d and x < e and f < g", "x < min(a, b, d, e) and c < x and f < g"),
    # near misses: another value, another multiple, a constant more
    ("x < a and x < b and x < c and y < d", "x < min(a, b, c) and y < d"),
    ("x < a and x < b and x < c and x*2 < d", "x < min(a, b, c) and x*2 < d"),
    ("x < a and x < b and x < c and x < d + 7", "x < min(a, b, c, d + 7)"),
]


#: Conditions, and what they cost no more than.
BELOW_ONE = [
    ("z < x and y + 5 < x", "max(z, y + 5) < x"),
    ("y < x and z + 5 < x", "max(y, z + 5) < x"),
    ("z <= x and y + 5 <= x", "max(z, y + 5) <= x"),
    ("x <= z or x <= y + 5", "x <= max(z, y + 5)"),
    ("max(z, y + 5) < max(y, x)", "max(z, y + 5) < x"),
    ("z*2 < x and y + 5 < x", "max(z*2, y + 5) < x"),
    ("x < z and x < y + 5", "x < min(z, y + 5)"),
    # near misses: not of one term, and not of both
    ("z < x and y + 5 < x*2", "z < x and y + 5 < x*2"),
    ("z < x and x < y + 5", "z < x and x < y + 5"),
]


_CLAMPED = {"n": (-12, 30), "m": (-3, 5), "p": (0, 4)}
_ROUNDED_UP = {"n": (0, 40), "m": (-9, 9), "d": (1, 5), "i": (0, 3), "j": (-2, 5)}
#: Tables of terms and what they cost no more than, by the ranges of their variables; these have few points.
CHEAP = [
    ({"x": (0, 119), "y": (0, 9)}, BY_EITHER),
    (_SYMBOLIC, SYMBOLIC),
    (_CLAMPED, OF_CLAMPED),
    ({"n": (0, 99), "m": (0, 5), "i": (0, 4), "j": (-2, 1)}, OF_REMAINDERS),
    (_ROUNDED_UP, ROUNDED_UP),
    (_FEW, FEW_VALUES),
    (LETTERS, COMPARED),
    (dict.fromkeys("xyz", (-9, 12)), BELOW_ONE),
]
#: The same, of many points.
CHEAP_OF_MANY_POINTS = [
    ({"n": (-2, 11), "m": (0, 9), "c": (-3, 9), "y": (0, 5), "z": (0, 4)}, BY_MAXIMA),
    ({"x": (0, 2001), "y": (0, 300), "n": (1, 9)}, DIVIDENDS),
    (dict.fromkeys("abcdefgxy", (0, 99)), BELOW_MANY),
]
ROWS = [
    (row, ranges, every_node)
    for tables, every_node in ((CHEAP, True), (CHEAP_OF_MANY_POINTS, False))
    for ranges, rows in tables
    for row in rows
]


@pytest.mark.parametrize(("row", "ranges", "every_node"), ROWS, ids=[str(row) for row, _, _ in ROWS])
def test_answers_cost_no_more_than_is_known_to_be_possible(row, ranges, every_node):
    roots, wanted = [[read(text, ranges) for text in ([texts] if isinstance(texts, str) else texts)] for texts in row]
    result = checked(roots) if every_node else optimize(roots)
    assert result.cost <= cost_of(wanted, Latency())
    assert every_node or result.stop == "saturated"
    assert check_equal(result.exprs, wanted).equal
    assert check_equal(roots, wanted).equal


def terms_of_roots(builder, choice):
    terms = builder.terms(choice, builder.graph.roots)
    return [terms[root] for root in builder.graph.roots]


def chosen(builder: Builder) -> Choice:
    return dag(Priced.of(builder.graph, Latency()))


@settings(max_examples=200)
@given(index_terms())
def test_terms_cost_no_more_than_their_classes_and_sharing_keeps_values_and_is_finite(terms):
    roots = terms[-3:]
    builder = built(roots)
    priced = Priced.of(builder.graph, OpCount())
    choice = dag(priced)
    # fewer if two classes become one term
    assert cost_of(terms_of_roots(builder, choice), OpCount()) <= total_cost(priced, choice)
    before = chosen(builder)
    shared = share_sums(builder.classes, before, LinearPrograms(ProductPrices(Latency())))
    order = reachable(shared, builder.graph.roots)
    place = {c: index for index, c in enumerate(order)}
    assert all(place[a] < place[c] for c in order for a in shared[c][2])
    assert_equal_values(roots, terms_of_roots(builder, shared))


@pytest.mark.parametrize(
    "texts",
    [["i//n", "i%n"], ["i//n*n*3", "i%n"], ["(i*n + j)*n"], ["i*n*m + j*n"], ["i*n + j*n*3"], ["n*n*i"]],
    ids=", ".join,
)
def test_a_variable_of_known_alignment_costs_no_more_than_any(texts):
    ranges = {"i": (0, 63), "j": (0, 9), "n": (4, 64), "m": (1, 9)}
    cost = optimize(texts, **ranges).cost
    found = optimize(texts, constraints=["n % 4 == 0"], **ranges)
    assert found.check().equal
    assert found.cost <= cost, found.exprs


def test_a_graph_leaves_no_cyclic_garbage():
    i, j = var("i", 0, 9), var("j", 0, 9)
    builder = built([(i * 3 + j) // 7, minimum(i, j) * 2 + i, make("where", i < j, i, j + 1)])
    chooser = Chooser(builder, ProductPrices(Latency()), trees=False)
    chooser.choose()
    gone = [weakref.ref(part) for part in (builder, builder.classes, chooser)]
    del builder, chooser
    assert [ref() for ref in gone] == [None, None, None]


@pytest.mark.parametrize("text", ["i*-2 + (k*12 + 12)*k*-1", "min(i*-2 + (k*12 + 12)*k*-1, j)", "k*j + k*2"])
def test_a_variable_that_is_the_opposite_of_another_stands_for_it_with_its_sign(text: str) -> None:
    i, j, k = var("i", 1, 13), var("j", -8, -5), var("k", -8, 4)
    result = optimize(parse(text, {"i": i, "j": j, "k": k}), constraints=[(i * -1).eq(k)])
    assert result.check()


def test_a_class_whose_bracket_was_refused_has_no_price() -> None:
    root = parse("sum((r*r%7 + x)%5, r, 0, 8)", {"x": var("x", 0, 9)})
    builder = built([root])
    # such a class stays where its only node has the index of a reduction
    builder.add_class(builder.form_of(builder.add_class(builder.value_of(root))).shifted(7), False)
    choice, _ = Chooser(builder, ProductPrices(Latency()), trees=False).choose()
    assert check_equal([root], [*builder.root_terms(choice).values()]).equal


def test_a_quotient_is_its_own_node_when_the_time_is_up():
    h, x = buffer("H", "i64"), var("x", 2**31 - 5, 2**31 + 4)
    builder = Builder(LinearArithmetic(), {"H": h, "x": x})
    c = builder.add_class(builder.value_of(x // where(h[0].ne(0), h[0], -1)))
    builder.grow()
    nodes = builder.graph.classes[c].copy()
    builder.graph.classes[c].clear()
    # now it is too late to see that the divisor is not zero
    builder.theory.work.until = 0
    assert [builder.add_node(c, node) for node in nodes] == [True] * len(nodes)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("min(a*-43, b*-43)", 4),
        ("max(b*-6, a*-3)", 6),
        ("min(-a, min(-b, c))", 3),
        ("min(min(-a, -b), min(-c, d))", 4),
        ("max(-a, max(-b, -5))", 3),
    ],
)
def test_what_is_negated_in_an_extreme_is_negated_at_once(text, cost):
    found = optimize(parse(text, {name: var(name, -9, 9) for name in "abcd"}), engine="theory")
    assert found.cost <= cost
    assert found.check().equal


@pytest.mark.parametrize("extreme", ["min", "max"])
def test_an_extreme_of_many_operands_has_few_parts(extreme):
    names = {f"A{k}": buffer(f"A{k}") for k in range(8)} | {"r": var("r", 0, 9)}
    text = "A0[r]"
    for k in range(1, 8):
        text = f"{extreme}({text}, A{k}[r])"
    found = optimize(parse(text, names))
    # one operand apart at a time, there are 2**8 parts
    assert found.stop == "saturated"
    assert len(found.graph) < 600


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        # a rule finds the class to be a remainder when it has its bounds by a sum
        ("x*4%16%8", 2),
        ("x//2 - (x - 1)//2", 2),
        ("tdiv(y, 3)*3 - y", 2),
    ],
)
def test_what_is_wide_costs_more(text, cost):
    class Wide:
        def price(self, op, operands, result):
            return (4 if width([*operands, result]) == 64 else 1) if operands else 0

    names = {name: var(name, -(2**31), 2**31 - 1) for name in "xyzw"}
    assert optimize(parse(text, names), cost=Wide()).cost <= cost


def test_a_class_for_which_there_is_no_time_is_not_half_added(monkeypatch):
    n = var("n", 0, 9)
    builder = built([n + 1])
    known, value = set(builder.graph.classes), builder.value_of(minimum(n, 3) + n)

    def overdue(form):
        raise OverdueError

    monkeypatch.setattr(builder.theory, "plain_bounds", overdue)
    with pytest.raises(OverdueError):
        builder.add_class(value)
    assert set(builder.graph.classes) == set(builder.graph.bounds) == known
