"""Rules of a user's own compose with the theory: the default finds what the rules alone find.

They match addends of longer sums, forms that are not the cheapest, and terms inside branches, bodies and indices.
"""

from itertools import pairwise

import pytest

from eqsat import Rule, buffer, optimize, parse, var
from eqsat.rules import DEFAULT

SQUARES = Rule("difference-of-squares", "x*x - y*y", "(x + y)*(x - y)")
BINOMIAL = Rule("binomial", "x*x + x*y*2 + y*y", "(x + y)*(x + y)")
PRODUCT = Rule("min-times-max", "min(x, y)*max(x, y)", "x*y")
OF_SQUARE = Rule("square-below", "x*x < y*y", "x < y", "0 <= vmin(x) and 0 <= vmin(y)")
SAME = Rule("squares-equal", "x*x == y*y", "x == y", "0 <= vmin(x) and 0 <= vmin(y)")
OPPOSITE = Rule("no-less-than-minus-a-square", "max(x*y, (y - x)*(x - y))", "x*y")
DISTANCE = Rule("distance-xor", "where(x < y, (y - x) ^ z, (x - y) ^ z)", "max(x - y, y - x) ^ z")
EVEN = Rule("parity-of-a-square", "x*x % 2", "x % 2")

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
    ("i*(i + j) + j*(i + j)", [BINOMIAL]),
    ("i*(i + j) - j*(i + j) + k", [SQUARES]),
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
    ("sum(i*i%2 + r%3, r, 0, k)", [EVEN]),
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
]
A = buffer("A", "i32", (512,))


def answer(text, rules, theory):
    names = {n: var(n, 0, 9) for n in "ijkl"} | {"A": A}
    return optimize(parse(text, names), rules=[*DEFAULT, *rules], theory=theory)


@pytest.mark.parametrize(("text", "rules"), CASES, ids=[text for text, _ in CASES])
def test_the_default_finds_what_the_rules_alone_find(text, rules):
    default, alone, without = answer(text, rules, True), answer(text, rules, False), answer(text, [], True)
    assert default.cost <= alone.cost
    assert default.cost < without.cost
    if "A[" not in text:
        assert default.check().counterexample is None


def test_a_rule_sees_the_node_that_another_one_adds_to_a_class() -> None:
    # they are false, so that the theory knows none of these nodes; what is tested is that each rule is run on the next
    chain = ["tdiv(x, d)", "tmod(x, d)", "where(x < d, x, d)", "min(x, 3)"]
    rules = [Rule(left, left, right, check=False) for left, right in pairwise(chain)]
    result = optimize("tdiv(i, 7)", rules=rules, i=(-20, 20))
    assert (result.stop, result.rules) == ("saturated", dict.fromkeys(chain[:-1], 1))
