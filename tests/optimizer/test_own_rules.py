"""Rules of a user's own compose with the theory: the default finds what the rules alone find.

They match addends of longer sums, forms that are not the cheapest, and terms inside branches, bodies and indices.
"""

from itertools import pairwise

import numpy as np
import pytest

from eqsat import Budget, Rule, buffer, const, operator, optimize, parse, var
from eqsat.rules import DEFAULT

SQUARES = Rule("difference-of-squares", "x*x - y*y", "(x + y)*(x - y)")
BINOMIAL = Rule("binomial", "x*x + x*y*2 + y*y", "(x + y)*(x + y)")
PRODUCT = Rule("min-times-max", "min(x, y)*max(x, y)", "x*y")
OF_SQUARE = Rule("square-below", "x*x < y*y", "x < y", "0 <= vmin(x) and 0 <= vmin(y)")
SAME = Rule("squares-equal", "x*x == y*y", "x == y", "0 <= vmin(x) and 0 <= vmin(y)")
OPPOSITE = Rule("no-less-than-minus-a-square", "max(x*y, (y - x)*(x - y))", "x*y")
DISTANCE = Rule("distance-xor", "where(x < y, (y - x) ^ z, (x - y) ^ z)", "max(x - y, y - x) ^ z")
EVEN = Rule("parity-of-a-square", "x*x % 2", "x % 2")
ONES = operator("own_ones", 1, lambda x: np.bitwise_count(x).astype(np.int64), bounds=lambda x: (0, 64), price=3)
CARRIES = Rule(
    "ones-of-sum", "own_ones(x ^ y) + own_ones(x & y)*2", "own_ones(x) + own_ones(y)", "0 <= vmin(x) and 0 <= vmin(y)"
)

#: The expression, and rules without which its answer costs more.
CASES = [
    # a sum in a longer sum
    ("i*i - j*j + k", [SQUARES]),
    ("k + i*i + l - j*j", [SQUARES]),
    ("k*3 - j*j + l + i*i + 7", [SQUARES]),
    ("l - i*i + j*j", [SQUARES]),
    ("k*k - l + i - j*j", [SQUARES]),
    # up to the order of operands and brackets, and for literal coefficients
    ("i*i + i*j*2 + j*j", [BINOMIAL]),
    ("j*i*2 + (j*j + i*i)", [BINOMIAL]),
    ("k + j*j + 2*i*j + i*i", [BINOMIAL]),
    ("i*i + l + j*(i*2) + k + j*j", [BINOMIAL]),
    ("i*k*i - k*j*j", [SQUARES]),
    # against a form that is not the cheapest
    ("i*(i + 2*j) + j*j", [BINOMIAL]),
    ("i*(i + j) + j*i + j*j", [BINOMIAL]),
    ("i*(i + j) - j*i - j*j + k", [SQUARES]),
    # inside products, minima, junctions and comparisons
    ("(i*i - j*j + k)*l", [SQUARES]),
    ("min(i*i - j*j + k, l)", [SQUARES]),
    ("max(i*i + i*j*2 + j*j, k)", [BINOMIAL]),
    ("min(k, min(i*i - j*j + l, 7))", [SQUARES]),
    ("min(i, j)*k*max(i, j)", [PRODUCT]),
    ("max(j, i)*l*(k*min(i, j))", [PRODUCT]),
    ("k < i*i - j*j and l < 3", [SQUARES]),
    ("i*i < j*j and k < 3", [OF_SQUARE]),
    ("i*i == j*j or k == l", [SAME]),
    ("k < 3 or (l < 3 and j*j < i*i)", [OF_SQUARE]),
    ("not (i*i < j*j)", [OF_SQUARE]),
    # two sums, of which the first decides what the second must have
    ("max(i*j, (j - i)*(i - j))", [OPPOSITE]),
    ("where(i < j, (j - i) ^ k, (i - j) ^ k)", [DISTANCE]),
    # inside branches and conditions of selections
    ("where(k < 3, i*i - j*j + k, l)", [SQUARES]),
    ("where(k < 3, l, i*i + i*j*2 + j*j)", [BINOMIAL]),
    ("where(i*i < j*j, k, l)", [OF_SQUARE]),
    ("where(i*i - j*j < k, i, l)", [SQUARES]),
    # inside the body of a reduction, an index
    ("sum(where(i*i%2 == k, r*r%7, 3), r, 0, 8)", [EVEN]),
    ("sum(i*i%2*l + r*r%7, r, 0, k)", [EVEN]),
    ("sum((i*i + i*r*2 + r*r)%7, r, 0, 8)", [BINOMIAL]),
    ("sum(where(i*i < r*r, r*l%5, k), r, 0, 8)", [OF_SQUARE]),
    ("A[i*i + i*j*2 + j*j]", [BINOMIAL]),
    ("A[i*i - j*j + 90] + k", [SQUARES]),
    # where the right side is a leaf
    ("i*i%2 + j", [EVEN]),
    ("l*(j*j%2 + k)", [EVEN]),
    ("min(i*i%2 + 3, k)", [EVEN]),
    # rules that need each other's result
    ("i*i - k*k + i*j*2 + j*j", [SQUARES, BINOMIAL]),
    ("l + i*i + i*j*2 + j*j - k*k", [SQUARES, BINOMIAL]),
    ("min(i*i, j*j)*max(i*i, j*j) - k*k*l*l", [PRODUCT, SQUARES]),
    # a square that a rule made is never negative
    ("(i*i + i*j*9 + j*j + g)%7", [BINOMIAL]),
    # all but one term of what a rule makes cancels with the rest
    ("own_ones(i ^ j) + own_ones(i & j)*2 - own_ones(i)", [CARRIES]),
    ("k - own_ones(i ^ j) - own_ones(i & j)*2 + own_ones(j)", [CARRIES]),
    ("min(own_ones(own_ones(i ^ j) + own_ones(i & j)*2 - own_ones(j)), k)", [CARRIES]),
]
A = buffer("A", "i32", (512,))


def _products(x, y):
    return [a * b for a in x for b in y]


operator("own_distance", 2, lambda x, y: abs(x - y), bounds=lambda x, y: (0, max(x[1] - y[0], y[1] - x[0])), price=1)
operator("own_bits", 1, lambda x: np.bitwise_count(np.abs(x)), bounds=lambda x: (0, 64), price=3)
operator(
    "own_fma",
    3,
    lambda x, y, z: x * y + z,
    bounds=lambda x, y, z: (min(_products(x, y)) + z[0], max(_products(x, y)) + z[1]),
    price=3,
)
operator(
    "own_median",
    3,
    lambda x, y, z: np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z)),
    bounds=lambda *ends: (min(low for low, _ in ends), max(high for _, high in ends)),
    price=1,
)
operator(
    "own_square",
    1,
    lambda x: x * x,
    bounds=lambda x: (0 if x[0] <= 0 <= x[1] else min(_products(x, x)), max(_products(x, x))),
    price=2,
)
operator("own_sign", 1, lambda x: np.where(x < 0, 1, 0), bounds=lambda x: (0, 1), price=4)
operator("own_clamp", 1, lambda x: np.minimum(np.maximum(x, 0), 255), bounds=lambda x: (0, 255), price=4)
operator("own_hash", 1, lambda x: (x * 7 + 3) % 11, bounds=lambda x: (0, 10), price=2)

NO_SQUARES = Rule("no-squares", "x*x + y*y == 0", "x == 0 and y == 0")
FAR = Rule("far", "3 < x*x", "1 < max(x, -x)")
POSITIVE = Rule("positive", "where(x != 0 and 0 < y, x*y, 0)", "max(y, 0)*x")
HASHED = [
    Rule(f"hash-{left}", f"where({left}, own_hash(y), own_hash(z))", f"own_hash(where({right}, y, z))")
    for left, right in [("x == c", "x == c"), ("x <= c", "x <= c"), ("c < x", "c < x"), ("x != c", "x != c")]
]
SWAPPED = Rule("hash-not", "where(not p, own_hash(y), own_hash(z))", "own_hash(where(p, z, y))")
TO_DISTANCE = Rule("to-distance", "max(x, y) - min(x, y)", "own_distance(x, y)")
FROM_DISTANCE = Rule("from-distance", "own_distance(x, y)", "max(x, y) - min(x, y)")
FMA = Rule("fma", "own_fma(x, y, z)", "x*y + z")
FMA_SUM = Rule("fma-sum", "own_fma(x, y, z + w)", "own_fma(x, y, z) + w")
IN_PARTS = Rule(
    "bits-in-parts", "own_bits(x % d) + own_bits(x // d)", "own_bits(x)", "0 <= vmin(x) and d & (d - 1) == 0 and d > 0"
)
OF_HALF = Rule("sign-of-half", "own_sign(x // 2)", "own_sign(x)")
DOUBLED = Rule("bits-of-double", "own_bits(x*2)", "own_bits(x)")
OF_8 = Rule("bits-of-8", "own_bits(x*8)", "own_bits(x)")
SHIFTED = Rule("bits-shifted", "own_bits(x << s)", "own_bits(x)")
ABSOLUTE = Rule("square-of-absolute", "max(x, -x)*max(x, -x)", "x*x")
APART = Rule("apart", "max(x - y, y - x)", "own_distance(x, y)")
TO_LEAST = Rule("to-least", "x + y - own_distance(x, y)", "min(x, y)*2")
PERIOD = Rule("period", "own_hash(x + 11*y)", "own_hash(x)")
PERIODIC = Rule("periodic", "own_hash(x + 11)", "own_hash(x)")
LOWEST = Rule("without-lowest-bit", "x - (x & -x)", "x & (x - 1)")
HASH_OPPOSITE = Rule("hash-opposite", "own_hash(x) + own_hash(10 - x)", "10")
NEAR = Rule("near", "own_distance(x + y, y)", "max(x, -x)")
APART_BY_3 = Rule("apart-by-3", "own_distance(x, x + 3)", "3")
BEYOND = Rule("beyond", "own_distance(x, y - x)", "x*2 - y", "vmax(y) <= 0 and 0 <= vmin(x)")
NEXT = Rule("next-square", "x*x + x*2 + 1", "own_square(x + 1)")
MEANS = Rule("means", "max(x*x + y*y, x*y*2)", "x*x + y*y")
STRETCHED = Rule("stretched-distance", "own_distance(x*z, y*z)", "own_distance(x, y)*z", "0 <= vmin(z)")
MODULO_4 = Rule("square-modulo-4", "x*x % 4", "x % 2")
CUBE = Rule("cube", "x*x*x + x*x*y*3 + x*y*y*3 + y*y*y", "(x + y)*(x + y)*(x + y)")
MEDIAN = Rule("median", "max(min(x, y), min(max(x, y), z))", "own_median(x, y, z)")

#: What is written as the normal form does not have it, and terms that cancel once a rule has found what an atom equals.
HIDDEN = [
    # quotients of quotients: of one that is there, and of one that a rule divides by
    ("own_bits(i%2) + own_bits(i//2%2) + own_bits(i//4) + k", [IN_PARTS]),
    ("own_sign(g*j//8)*3 + k", [OF_HALF]),
    ("min(k, own_sign((g + i)//4))", [OF_HALF]),
    # comparisons, complements and shifts as they are written
    ("g*g + h*h == 0", [NO_SQUARES]),
    ("3 < g*g", [FAR]),
    ("where(g != 0 and 0 < h, g*h, 0)", [POSITIVE]),
    ("where(i == 0, own_hash(g), own_hash(h))", HASHED),
    ("where(i == 9, own_hash(g), own_hash(h))", HASHED),
    ("where(i <= 3, own_hash(g), own_hash(h))", HASHED),
    ("where(3 < i, own_hash(g), own_hash(h)) + i", HASHED),
    ("where(i != 4, own_hash(g), own_hash(h))", HASHED),
    ("where(not 0 < g, own_hash(h), own_hash(i))", [SWAPPED]),
    ("where(not (i < 3 and k < 4), own_hash(g), own_hash(h))", [SWAPPED]),
    ("own_bits(g << 3) + h", [SHIFTED]),
    # terms that cancel
    ("min(g, h) + own_distance(g, h) - max(g, h)", [FROM_DISTANCE]),
    ("own_fma(g, h, i) == own_fma(g, h, k)", [FMA]),
    ("own_fma(g, h, i) < own_fma(g, h, k) + 1", [FMA]),
    ("own_fma(g, h, i) - i", [FMA]),
    ("own_fma(g, h, i)*2 - i*2 + k", [FMA]),
    ("max(own_fma(g, h, i) - i, 0)", [FMA]),
    ("where(k < 3, own_fma(g, h, i) - i, 0)", [FMA]),
    ("own_fma(g, h, i + k) - k", [FMA_SUM]),
    ("sum(max(own_fma(r, g, i) - i, h), r, 0, k)", [FMA]),
    # multiples of sums
    ("own_bits((g + h)*8)", [OF_8]),
    ("own_bits(g*16 + h*8)", [OF_8]),
    ("own_bits(tmod(g, i + 1)*8)", [OF_8]),
    ("own_bits(min(g, h)*8)", [OF_8]),
    ("max(g - h, h - g)*max(g - h, h - g)", [ABSOLUTE]),
    ("g + h - ((g + h) & -(g + h))", [LOWEST]),
    ("prod(own_bits(2*r + 2), r, 0, k)", [DOUBLED]),
    ("max_over(own_bits(2*r + 2*k), r, 0, 9)", [DOUBLED]),
    # literals among addends
    ("max(g - 3, 3 - g)", [APART]),
    ("max(g*2 + 5, -5 - g*2)*h", [APART]),
    ("i + 6 - own_distance(i, 6)", [TO_LEAST]),
    ("i*k + 4 - own_distance(i*k, 4)", [TO_LEAST]),
    ("own_hash(i + 33)", [PERIOD]),
    ("own_hash(k + 22*j + 33)*h", [PERIOD]),
    ("own_hash(g*11 + 36)", [PERIOD]),
    ("own_hash(i - 11) + k", [PERIOD]),
    ("own_hash(i + 33)", [PERIODIC]),
    ("own_hash(j*k + 22) + k", [PERIODIC]),
    # a term that another rule rewrites to a sum, of which a part cancels
    ("max(g + k, h + k) - min(g, h) - k", [APART, TO_DISTANCE]),
    # a letter that is an operand decides what the sums are in which it stands too
    ("own_hash(g + 2) + own_hash(8 - g) + k", [HASH_OPPOSITE]),
    ("own_hash(10 - g - i*j) + own_hash(i*j + g)", [HASH_OPPOSITE]),
    ("k - own_hash(3 - h)*2 - own_hash(h + 7)*2", [HASH_OPPOSITE]),
    ("own_distance(i + j + k, i + j)", [NEAR]),
    ("own_distance(g*3 + h, g*3 + h + 3) + k", [APART_BY_3]),
    ("own_distance(g + 1, g + 4)*h", [APART_BY_3]),
    ("own_distance(i + j, 0 - i*2 - j - k)", [BEYOND]),
    # a letter that is something negated
    ("g*g - 2*g*i + i*i", [BINOMIAL]),
    ("k + 2*g*h - g*g - h*h", [BINOMIAL]),
    ("max(g*g + h*h, -2*g*h)", [MEANS]),
    # a literal that is a part of a larger one
    ("i*i + i*2 + 9 + j", [NEXT]),
    ("k - 3*i*i - 6*i - 4", [NEXT]),
    # products with literals among their factors, and with products for letters
    ("(i*2 + j)*(i*2 + j) + 2*(i*2 + j)*g + g*g", [BINOMIAL]),
    ("i*i + 2*i*(i + 1) + (i + 1)*(i + 1)", [BINOMIAL]),
    ("i*i + 2*i*min(i, g) + min(i, g)*min(i, g)", [BINOMIAL]),
    ("(3*i)*(3*i) + 2*(3*i)*g + g*g", [BINOMIAL]),
    ("A[(3*i)*(3*i) - j*j + 90]", [SQUARES]),
    ("max((g - h)*(g - h) + (g*h)*(g*h), (g - h)*(g*h)*2)", [MEANS]),
    ("own_distance((3*i)*(3*i), max(g, 0)*(3*i))", [STRETCHED]),
    # a sum to the theory, of which a rule finds another value
    ("sum((i*i%4 + r)%3, r, 0, 4)", [MODULO_4]),
    ("(i*i%4*4 + k%4)//4 + l", [MODULO_4]),
    # of which the theory knows a part to be one of its operands
    ("max(min(i*2 + j, g), min(max(i*2 + j, g), j))", [MEDIAN]),
    # a square in a sum: what is squared is computed once
    ("k - (i*i + i*(i%3)*2 + i%3*(i%3))*2", [BINOMIAL]),
    ("g//2*(g//2) - where(k < 2, g, h)*where(k < 2, g, h) + l", [SQUARES]),
    # a long left side, in a graph with many products
    ("j*j*j + j*j*min(i, g)*3 + j*min(i, g)*min(i, g)*3 + min(i, g)*min(i, g)*min(i, g)", [CUBE]),
    # a remainder that a mask is
    ("(max(g, h) - min(g, h)) & 7", [TO_DISTANCE]),
    # a sum of which there are many forms
    ("g*h + max(g, h) - min(g, h)", [TO_DISTANCE]),
]

operator("own_oblong", 1, lambda x: x * x + x, bounds=lambda x: (0, max(_products(x, x)) + max(x[1], 0)), price=6)
OBLONG = Rule("oblong", "own_square(x) + x", "own_oblong(x)")
SUM_OF_OBLONG = Rule("sum-of-oblong", "sum(own_oblong(i), i, 0, v)", "v*(v - 1)*(v + 1)//3", "0 <= vmin(v)")
MOVED = Rule("moved-distance", "own_distance(x + z, y + z)", "own_distance(x, y)")
SQUARED = Rule("squared", "own_square(x) - own_square(y)", "(x + y)*(x - y)")

#: Reductions in which rules about bodies, about loops and about sums alternate, and what their answers cost at most.
REDUCED = [
    # the sum of an addend has a closed form that is asserted, of all of the root
    ("sum(sum(own_square(r*4 + s) + r*4 + s, s, 0, 4), r, 0, k)", [OBLONG, SUM_OF_OBLONG], 15),
    ("where(l < 3, sum(sum(own_square(s*4 + r) + s*4 + r, s, 0, k), r, 0, 4), 7)", [OBLONG, SUM_OF_OBLONG], 17),
    # the loop begins at zero, though there is always something else to match
    ("sum(own_square(r - 3) + r - 3, r, 3, k + 3)", [OBLONG, SUM_OF_OBLONG], 14),
    # a remainder that is the same for all values, of what rules found
    ("sum(own_square(r + g) - own_square(r), r, 0, k)", [SQUARED], 11),
    # the body speaks of the index, its value does not
    ("sum(max(r + g, r + h) - min(r + g, r + h), r, 0, k)", [TO_DISTANCE, MOVED], 4),
]


def answer(text, rules, theory):
    names = {n: var(n, 0, 9) for n in "ijkl"} | {n: var(n, -6, 6) for n in "gh"} | {"A": A}
    return optimize(parse(text, names), rules=[*DEFAULT, *rules], theory=theory)


@pytest.mark.parametrize(("text", "rules"), CASES + HIDDEN, ids=[text for text, _ in CASES + HIDDEN])
def test_the_default_finds_what_the_rules_alone_find(text, rules):
    default, alone, without = answer(text, rules, True), answer(text, rules, False), answer(text, [], True)
    assert default.cost <= alone.cost
    assert default.cost < without.cost
    if "A[" not in text:
        assert default.check().counterexample is None


RESIDUE = Rule("residues-of-fourth-powers", "x*x*x*x % 7 < 5", "True")
DECIDED = [
    ("i*i*i*i%7 < 5", "True"),
    ("5 <= i*i*i*i%7", "False"),
    ("i*i*i*i%7 < 5 and j < 5", "j < 5"),
    ("i*i*i*i%7 < 5 or j < 5", "True"),
    ("5 <= i*i*i*i%7 and j < 5", "False"),
    ("not (i*i*i*i%7 < 5 and j < 5)", "5 <= j"),
    ("where(i*i*i*i%7 < 5 and j < 5, j, 2)", "where(j < 5, j, 2)"),
    ("where(i*i*i*i%7 < 5 or j < 5, j, 2)", "j"),
]


@pytest.mark.parametrize(("text", "becomes"), DECIDED, ids=[text for text, _ in DECIDED])
def test_a_condition_that_a_rule_decides_decides_what_has_it(text: str, becomes: str) -> None:
    # that many values are not tried
    names = {"i": var("i", 0, 10**6), "j": var("j", 0, 9)}
    result = optimize(parse(text, names), rules=[*DEFAULT, RESIDUE])
    assert result.expr is parse(becomes, names)


ABSOLUTE_OF = Rule("absolute-of-positive", "max(x, -x)*own_hash(x)", "x*own_hash(x)", "0 <= vmin(x)")
UP_TO = Rule("up-to", "own_distance(x, y) + x", "y", "x < y")

#: Roots with the gates under which they count, and rules whose guards hold there alone.
GATED = [
    (["max(g, -g)*own_hash(g) + k"], ["0 <= g"], [ABSOLUTE_OF]),
    (["own_distance(i*2, j) + k + i*2"], ["i*2 < j and k < 3"], [UP_TO]),
    (["own_distance(i, j)*2 + i*2", "k", "own_distance(k, l) + i + k"], ["i < j", None, "k < l"], [UP_TO]),
    (["own_distance(i, j) + i"], ["i < j and j < i"], [UP_TO]),
]


@pytest.mark.parametrize(("texts", "gates", "rules"), GATED, ids=[texts[0] for texts, _, _ in GATED])
def test_guards_know_the_gates(texts, gates, rules):
    names = {n: var(n, 0, 9) for n in "ijkl"} | {"g": var("g", -6, 6)}
    roots, when = (
        [parse(text, names) for text in texts],
        [None if gate is None else parse(gate, names) for gate in gates],
    )
    default, alone = [optimize(roots, rules=[*DEFAULT, *rules], gates=when, theory=theory) for theory in (True, False)]
    assert default.cost <= alone.cost
    assert "own_distance" not in str(default.exprs)
    assert "max" not in str(default.exprs)
    assert default.check().counterexample is None


SMALL = Rule("own-clamp-of-small", "own_clamp(x)", "x", "0 <= vmin(x) and vmax(x) < 256")

#: Terms in whose branches or bodies guards hold that do not hold elsewhere, a rule, and an answer that costs as much.
INSIDE = [
    ("where(g < 0, k, own_clamp(g*20))", SMALL, "where(g < 0, k, g*20)"),
    ("where(0 <= g and g < 5, own_clamp(g) - g, k)", SMALL, "where(0 <= g and g < 5, 0, k)"),
    ("where(i < j, own_distance(i, j) + i, k) + 1", UP_TO, "where(i < j, j, k) + 1"),
    ("where(j <= i, k, own_distance(i, j) + i)", UP_TO, "where(i < j, j, k)"),
    # in one another
    ("where(i < j, where(k < i, own_distance(k, j) + k, l), 3)", UP_TO, "where(i < j, where(k < i, j, l), 3)"),
    (
        "min(l, where(k < 3, where(i < j, own_distance(i, j) + i, k), 3))",
        UP_TO,
        "min(l, where(k < 3, where(i < j, j, k), 3))",
    ),
    # what is made of the branch leads on: of where(i < j, j - i, 0) a maximum, of a sum over a loop a closed form
    ("A[where(i < j, own_distance(i, j) + i, i)]", UP_TO, "A[max(i, j)]"),
    ("sum(own_distance(r, k) + r, r, 0, k)", UP_TO, "k*k"),
    ("sum(where(r < k, own_distance(r, k) + r, 0), r, 0, 9)", UP_TO, "k*k"),
    ("max_over(own_distance(r + i, k + i) + r + i, r, 0, k)", UP_TO, "where(k < 1, -2147483648, k + i)"),
]


@pytest.mark.parametrize(("text", "rule", "answer"), INSIDE, ids=[text for text, *_ in INSIDE])
def test_guards_know_conditions_of_branches_and_ends_of_loops(text, rule, answer):
    names = {n: var(n, 0, 9) for n in "ijkl"} | {"g": var("g", -6, 6), "A": A}
    result = optimize(parse(text, names), rules=[*DEFAULT, rule])
    assert result.cost == optimize(parse(answer, names)).cost
    assert result.check().counterexample is None


def test_what_a_condition_says_is_not_used_outside_of_its_branch():
    names = {n: var(n, 0, 9) for n in "ijk"}
    text = "where(i < j, own_distance(i, j) + i, own_distance(i, j)) + own_distance(i, j)"
    result = optimize(parse(text, names), rules=[*DEFAULT, UP_TO])
    assert result.check().equal
    assert str(result.expr).count("own_distance") >= 1


@pytest.mark.parametrize(("text", "rules", "cost"), REDUCED, ids=[text for text, _, _ in REDUCED])
def test_rules_about_bodies_and_loops_alternate(text, rules, cost):
    names = {n: var(n, 0, 9) for n in "kl"} | {n: var(n, -6, 6) for n in "gh"}
    # a busy machine shall not stop what is to be found
    result = optimize(parse(text, names), rules=[*DEFAULT, *rules], budget=Budget(seconds=60))
    assert result.cost <= cost
    assert result.check().counterexample is None


@pytest.mark.parametrize("count", [5, 8, 12])
def test_a_rule_replaces_all_pairs_of_a_wide_sum(count) -> None:
    pairs = [(var(f"x{n}", 0, 63), var(f"y{n}", 0, 9)) for n in range(count)]
    total = sum((x * x - y * y for x, y in pairs), start=const(0))
    result = optimize(total, rules=[*DEFAULT, SQUARES], budget=Budget(seconds=20))
    # two sums and a product for each, and the sum of these
    assert result.cost <= 6 * count - 1
    assert result.check().equal


def test_a_rule_sees_the_node_that_another_one_adds_to_a_class() -> None:
    # they are false, so that the theory knows none of these nodes; what is tested is that each rule is run on the next
    chain = ["tdiv(x, d)", "tmod(x, d)", "where(x < d, x, d)", "min(x, 3)"]
    rules = [Rule(left, left, right, check=False) for left, right in pairwise(chain)]
    result = optimize("tdiv(i, 7)", rules=rules, i=(-20, 20))
    assert (result.stop, result.rules) == ("saturated", dict.fromkeys(chain[:-1], 1))


@pytest.mark.parametrize(
    ("text", "end"), [("sum(A[r]*i, r, m, 4)*4 + i", (3, 5)), ("5*max_over(A[r]*i, r, 3, m)", (0, 4))]
)
def test_a_multiple_of_a_reduction_over_one_value_keeps_its_index(text, end) -> None:
    names = {"A": buffer("A"), "i": var("i", 0, 9), "m": var("m", *end)}
    assert optimize(parse(text, names), rules=[SQUARES], cost="opcount").check().equal


#: Rules about reductions, roots, and what these cost at most, by the rules alone.
ABOUT_LOOPS = [
    # one pair of loops, and something else beside it in each root
    (
        [Rule("larger-and-smaller", "sum(max(x, y), i, u, v) + sum(min(x, y), i, u, v)", "sum(x + y, i, u, v)")],
        [f"sum(max(A[r], B[r]), r, 0, n) + sum(min(A[r], B[r]), r, 0, n) + {x}" for x in "kl"],
        57,
    ),
    # two rules with the same sides: of the first the guard does not hold
    (
        [
            Rule("beyond-two", "max_over(x, i, u, v)", "x", "free(x) and 2 < u and u < v"),
            Rule("somewhere", "max_over(x, i, u, v)", "x", "free(x) and u < v"),
        ],
        ["max_over(k, r, 0, n)"],
        0,
    ),
    # the letter that is a product is written after the other one
    (
        [Rule("large-factor", "max_over(y*x, i, u, v)", "x*max_over(y, i, u, v)", "free(x) and 7 < vmin(x) and u < v")],
        ["max_over(A[r]*a*b, r, 0, n)"],
        33,
    ),
]


@pytest.mark.parametrize(("rules", "texts", "cost"), ABOUT_LOOPS, ids=[rules[0].name for rules, _, _ in ABOUT_LOOPS])
def test_what_a_rule_makes_of_loops_does_not_depend_on_what_matched_before(rules, texts, cost) -> None:
    names = {"A": buffer("A"), "B": buffer("B"), "n": var("n", 1, 9), "a": var("a", 2, 3), "b": var("b", 4, 5)}
    names |= {name: var(name, 0, 9) for name in "kl"}
    result = optimize([parse(text, names) for text in texts], rules=rules, theory=False, budget=Budget(seconds=60))
    assert result.cost <= cost
    assert result.check().equal
