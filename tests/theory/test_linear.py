"""The theory: its lemmas at every point of small domains, the normal forms it must reach, and those it must not."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations_with_replacement, permutations, product
from math import prod
from operator import add, itemgetter

import numpy as np
import pytest
from comparison.shuffle import shuffled
from corpora import read
from counted import calls
from hypothesis import given, settings
from hypothesis import strategies as st
from index_terms import index_conditions, index_terms
from strategies import bool_expressions, expressions, grid

from eqsat.egraph.budget import Budget
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, buffer, const, var
from eqsat.lang.functions import maximum, minimum, tdiv, tmod, where
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.properties import division_count
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.forms import ZERO, atom_form, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.linear import LinearArithmetic

POSITIVE, NEGATIVE, AROUND_ZERO = (0, 4), (-7, -3), (-3, 2)
BIG = (-(2**31), 2**31 - 1)


def wrong_points(before: Expr, after: Expr, facts: Iterable[Expr] = ()) -> list[dict[str, int]]:
    """Where the facts hold and the two differ."""
    points = grid(variables([before, after, *facts]) or [var("i", 0, 0)])
    before_values, after_values, *holds = evaluate([before, after, *facts], points, total=True)
    count = len(next(iter(points.values())))
    differ = np.broadcast_to(before_values != after_values, (count,)).copy()
    for condition in holds:
        differ &= condition
    return [{name: int(values[at]) for name, values in points.items()} for at in np.flatnonzero(differ)[:1]]


def assert_same(theory: LinearArithmetic, term: Expr, facts: Iterable[Expr] = ()) -> Expr:
    """The normal form, once it is known to be equal everywhere."""
    simplified = theory.simplify(term)
    assert not wrong_points(term, simplified, facts), f"{term} became {simplified}"
    return simplified


# the lemmas, over all small coefficients, divisors and ranges


def quotients_of_one_term() -> Iterator[Expr]:
    for low, high in (POSITIVE, NEGATIVE, AROUND_ZERO):
        x = var("x", low, high)
        for a, c, n in product(range(-6, 7), range(-7, 8), (-5, -4, -2, 2, 3, 4, 6)):
            yield (x * a + c) // n


def remainders_of_one_term() -> Iterator[Expr]:
    for term in quotients_of_one_term():
        yield term.args[0] % term.args[1]


def quotients_of_two_terms() -> Iterator[Expr]:
    for x_range, y_range in [(POSITIVE, (0, 3)), (NEGATIVE, (0, 1)), (AROUND_ZERO, (-1, 1)), ((0, 1), (-2, 0))]:
        x, y = var("x", *x_range), var("y", *y_range)
        for a, b, c, n in product((-6, -4, -1, 1, 2, 4, 5), (-5, -2, -1, 1, 3), (-5, 0, 1, 3), (-4, 2, 6, 8)):
            yield (x * a + y * b + c) // n


def quotients_of_quotients() -> Iterator[Expr]:
    for x_range, y_range in [((0, 17), (0, 2)), ((-9, 8), (-2, 1))]:
        x, y = var("x", *x_range), var("y", *y_range)
        for a, b, k, c, n in product((-2, 1, 3), (-3, 2, 4), (-2, 0, 1), (-1, 0, 3), (-3, 2, 4)):
            yield (x * a // b + y * k + c) // n


def quotients_beside_their_dividends() -> Iterator[Expr]:
    for x_range in [(0, 30), (-15, 15)]:
        x = var("x", *x_range)
        for m, a, b, c, n in product((2, 3, 6), (-1, 1, 2), (-6, -3, 1, 4), (0, 5), (2, 3, 12)):
            yield (x * a + x // m * b + c) // n


def digits_of_a_sum() -> Iterator[Expr]:
    for x_range, y_range in [((0, 11), (0, 5)), ((-6, 5), (-3, 2))]:
        x, y = var("x", *x_range), var("y", *y_range)
        for a, b, n, m in product((1, 2, 4, 6), (1, 3), (2, 4, 6), (2, 3, 4)):
            total = x * a + y * b
            yield total // n % m
            yield total // n * n + total % n
            yield total % (n * m) // n
            yield total % (n * m) % n


def truncating_divisions() -> Iterator[Expr]:
    for x_range, d in product((POSITIVE, NEGATIVE, AROUND_ZERO), (-4, -3, -1, 1, 2, 3, 4)):
        x = var("x", *x_range)
        for a, c in product((-4, -1, 1, 2, 4), (-4, 0, 1)):
            yield tdiv(x * a + c, d)
            yield tmod(x * a + c, d)


def symbolic_divisors() -> Iterator[Expr]:
    y, m = var("y", -3, 4), var("m", 1, 2)
    for n_range in [(1, 4), (-4, -1)]:
        n = var("n", *n_range)
        for a, b, c in product((-2, 0, 1, 3), (-2, -1, 1), (-1, 0, 2)):
            for x in (y * n * a + y * b + c, n * a + y * b + c, y * m * n * a + m * b, m * n * a + n * b + c):
                yield x // n
                yield x % n
                yield x // (n * 2)
                yield x // (m * n)
                yield x % (n * b + m * n_range[0] * abs(b))


def symbolic_divisors_in_parts() -> Iterator[Expr]:
    y, m = var("y", -3, 4), var("m", 1, 2)
    for n_range in [(1, 3), (-3, -1)]:
        n = var("n", *n_range)
        for a, b, c in product((-2, 1, 3, 6), (-1, 1, 2), (-1, 0, 2, 3)):
            yield (y * a * 2 + c) // (n * b * 4)
            yield (y * a + c * y) * (n + 4) // ((n + 4) * m * abs(b))
            yield (y * n * a + c) // (n * 4)
            yield (y // n * b + c) // m
            yield (y * a // n + c) // (m * 2 + 1)
            yield (y * a // n + c) // (abs(b) + 1)
            yield (c - y * a // 3) // m
            yield (y + c) * m + y * a // 3 // (m * abs(b))
            yield ((n + 4) * (y * a + c) + y) // (n + 4)
            yield (y * a // 3 * m + b) // (n * m)
            yield (y * a // 3 * m + y // 2 * (m * 3) + b) // (m * 2)


def truncating_divisions_of_truncating_divisions() -> Iterator[Expr]:
    for x_range, d, e in product((POSITIVE, NEGATIVE, AROUND_ZERO), (-3, 2, 5), (-4, -2, 2, 3)):
        x = var("x", *x_range)
        for a, c, k in product((-3, 1, 4), (-1, 0, 2), (-2, 0, 3)):
            yield tdiv(tdiv(x * a + c, d) + k, e)
            yield tmod(tdiv(x * a + c, d) + k, e)


def comparisons() -> Iterator[Expr]:
    for x_range, y_range in [(POSITIVE, (0, 3)), (AROUND_ZERO, (-2, 1))]:
        x, y = var("x", *x_range), var("y", *y_range)
        for a, b, c in product((-4, -1, 2, 3), (-3, 0, 1, 2), (-5, -1, 0, 2, 4)):
            total = x * a + y * b
            for left in (total, total // 3, x // 2 * a - y, (x + y * b) % 4):
                yield left < c
                yield left <= c
                yield left.eq(c)
                yield left.ne(c)


def junctions() -> Iterator[Expr]:
    x, y = var("x", -3, 3), var("y", 0, 1)
    for total in (x, x * 2 + y):
        members = [c for k in (-1, 0, 1) for c in (total < k, total <= k, total.eq(k), total.ne(k), k <= total)]
        for a, b, c in combinations_with_replacement(members, 3):
            yield a & b & c
            yield a | b | c


def selections_between_shifts() -> Iterator[Expr]:
    for low, high, bound, k in product((-5, -3, -2), (0, 1, 2), (-1, 0, 1), (-3, -2, 1, 2, 3)):
        x = var("x", low, high)
        yield where(x < bound, x + k, x)
        yield where(x < bound, x, x + k)


def quotients_of_selections() -> Iterator[Expr]:
    x, y, z = var("x", -3, 4), var("y", -2, 2), var("z", 0, 1)
    for end in (-4, -1, 2, 5):
        conditions = [x < end, x <= end, x.eq(end), x.ne(end), (x >= -1) & (x < end), (x < -1) | (end < x)]
        for holds, branch in product(conditions, (x, x * 2 - 3, 1 - x, x + z, x + y)):
            selection = where(holds, branch, 0)
            yield from ((selection + y * 4) // 4, (where(holds, 1, branch) + y * 4 + 8) // 12)


LEMMAS = [
    quotients_of_one_term,
    remainders_of_one_term,
    quotients_of_two_terms,
    quotients_of_quotients,
    quotients_beside_their_dividends,
    digits_of_a_sum,
    truncating_divisions,
    truncating_divisions_of_truncating_divisions,
    symbolic_divisors,
    symbolic_divisors_in_parts,
    comparisons,
    junctions,
    selections_between_shifts,
    quotients_of_selections,
]


def usable(term: Expr) -> bool:
    """Whether no divisor can be zero."""
    return all(not t.args[1].vmin <= 0 <= t.args[1].vmax for t in topological([term]) if t.op in DIVISIONS)


@pytest.mark.parametrize("terms", LEMMAS, ids=lambda terms: terms.__name__)
def test_the_lemmas_at_every_point(terms):
    theory = LinearArithmetic()
    chosen = [term for term in terms() if usable(term)]
    fewer = sum(division_count([assert_same(theory, term)]) < division_count([term]) for term in chosen)
    if terms not in (comparisons, junctions, selections_between_shifts):
        # most of the family must be what the lemma is about
        assert fewer > len(chosen) / 16


# what the theory must reach, and the nearest input for which it must not

XY = {"x": (0, 99), "y": (0, 3)}
DIGITS = {"x": (0, 47), "y": (0, 8)}
SYMBOLIC = {"x": (-9, 9), "y": (-9, 9), "z": (0, 3), "n": (1, 4), "m": (1, 4)}

SMALL_BASES = {"x": (0, 40), "y": (0, 9), "z": (0, 3)}

STEPS = [
    # a term, what it becomes, ranges where it does, ranges where it must not
    # 1. one bucket
    ("x//8", "2", {"x": (16, 23)}, {"x": (16, 24)}),
    ("x//8", "-1", {"x": (-8, -1)}, {"x": (-9, -1)}),
    ("x // -8", "-1", {"x": (1, 8)}, {"x": (0, 8)}),
    ("x%8", "x + 8", {"x": (-8, -1)}, {"x": (-8, 0)}),
    ("(x + 2**70)//2**70", "1", {"x": (0, 9)}, {"x": (-1, 9)}),
    # 2. multiples of the divisor leave, residues stay in one bucket: in [0, n) or balanced
    ("(x*8 + y)//8", "x", {"x": (-9, 9), "y": (0, 7)}, {"x": (-9, 9), "y": (0, 8)}),
    ("(x*8 + y)//8", "x", {"x": (-9, 9), "y": (0, 7)}, {"x": (-9, 9), "y": (-1, 7)}),
    ("(x*8 + y)%8", "y", {"x": (-9, 9), "y": (0, 7)}, {"x": (-9, 9), "y": (0, 8)}),
    ("(x*7 + y)//8", "x", {"x": (-3, 0), "y": (0, 4)}, {"x": (-3, 0), "y": (0, 5)}),
    ("(x*7 + y)//8", "x", {"x": (0, 3), "y": (3, 7)}, {"x": (0, 3), "y": (2, 7)}),
    # 3. a common factor
    ("(x*6 + 5)//4", "(x*3 + 2)//2", {"x": (-9, 9)}, None),
    ("(x*6 + y)//4", "x*3//2", {"x": (-9, 9), "y": (0, 1)}, {"x": (-9, 9), "y": (0, 2)}),
    # 4. floors compose
    ("x//3//4", "x//12", {"x": BIG}, None),
    ("(x//3 + y)//4", "(x + y*3)//12", {"x": (-99, 99), "y": (-5, 5)}, None),
    ("(x // -3)//4", "-x//12", {"x": BIG}, None),
    # 5. a factor of the divisor
    ("(x*4 + y)//8", "x//2", {"x": (-9, 9), "y": (0, 3)}, {"x": (-9, 9), "y": (0, 4)}),
    ("(x*4 + y)//8", "x//2", {"x": (-9, 9), "y": (0, 3)}, {"x": (-9, 9), "y": (-1, 3)}),
    ("(x*6 + y + 3)//9", "(x*2 + 1)//3", {"x": (-9, 9), "y": (0, 2)}, {"x": (-9, 9), "y": (0, 3)}),
    # 6. terms that never carry
    ("(x*128 + y)//1000", "x*16//125", {"x": (0, 30), "y": (0, 55)}, {"x": (0, 30), "y": (0, 56)}),
    ("(x*128 + y)//1000", "x*16//125", {"x": (0, 30), "y": (0, 55)}, {"x": (0, 31), "y": (-1, 55)}),
    ("(x*20881 + y*6960)//248832", "x//12", {"x": (0, 47), "y": (0, 2)}, {"x": (0, 47), "y": (0, 3)}),
    # 7. an affine quotient, or one by a smaller divisor, found by enumeration
    ("x*5//3", "x*2 - 2", {"x": (4, 6)}, {"x": (4, 7)}),
    ("(x*4 + 1)//3", "x", {"x": (-1, 1)}, {"x": (-2, 1)}),
    ("x*5//59", "x//12", {"x": (0, 47)}, {"x": (0, 59)}),
    ("(x*-5 + 3)//59", "-((x + 11)//12)", {"x": (0, 36)}, {"x": (0, 48)}),
    ("(x + 31)//32", "(x + 2)//3", {"x": (0, 2)}, {"x": (0, 4)}),
    ("(6 - x)//8", "1 - (x + 3)//5", {"x": (5, 9)}, {"x": (5, 15)}),
    # digits: a dividend beside its quotient
    ("(x//4*4 + x%4)//8", "x//8", {"x": BIG}, None),
    ("(x//4*8 + x%4)//8", "x//4", {"x": BIG}, None),
    ("(x//4*8 + x%4 + y)//8", "x//4", {"x": (-99, 99), "y": (0, 4)}, {"x": (-99, 99), "y": (0, 5)}),
    ("x//8*8 + x%8", "x", {"x": BIG}, None),
    ("x//96*96 + x//12%8*12 + x%12", "x", {"x": BIG}, None),
    ("(y*4 + x + (x + 1)//3)//4", "y", {"x": (0, 2), "y": (-9, 9)}, {"x": (0, 3), "y": (-9, 9)}),
    # symbolic divisors
    ("(x*n + y)//n", "x", {"x": (-9, 9), "n": (4, 8), "y": (0, 3)}, {"x": (-9, 9), "n": (3, 8), "y": (0, 3)}),
    ("(x*n + y)%n", "y", {"x": (-9, 9), "n": (4, 8), "y": (0, 3)}, {"x": (-9, 9), "n": (4, 8), "y": (-1, 3)}),
    ("(x*n*m + y*m)//(n*m)", "(x*n + y)//n", {"x": (-3, 3), "y": (-3, 3), "n": (1, 4), "m": (-2, -1)}, None),
    ("(n*2 + 2)//(n + 1)", "2", {"n": (0, 9)}, None),
    ("(n*2 + x)//(n + 1)", "2", {"n": (4, 9), "x": (2, 6)}, {"n": (4, 9), "x": (2, 7)}),
    ("(x*n + x)//(n + 1)", "x", {"n": (0, 9), "x": (-9, 9)}, None),
    ("(x % n)//n", "0", {"x": (-9, 9), "n": (1, 5)}, None),
    # a symbolic divisor in parts: the first of them leaves no division
    ("(x*n + y)//(n*6)", "x//6", {"x": (-9, 9), "n": (5, 9), "y": (0, 4)}, {"x": (-9, 9), "n": (5, 9), "y": (0, 5)}),
    ("(x*n + y)//(n*m)", "x//m", {"x": (-9, 9), "n": (5, 9), "y": (0, 4), "m": (1, 3)}, None),
    ("x*(n + 1)//(4*n + 4)", "x//4", {"x": (-9, 9), "n": (0, 9)}, None),
    ("x*(n + 1)//(m*(n + 1))", "x//m", {"x": (-9, 9), "n": (0, 9), "m": (1, 3)}, None),
    ("(x*6 + 5)//(6*n)", "x//n", {"x": (-9, 9), "n": (1, 9)}, None),
    ("(x*6 + y)//(6*n)", "x//n", {"x": (-9, 9), "n": (1, 9), "y": (0, 5)}, {"x": (-9, 9), "n": (1, 9), "y": (0, 6)}),
    (
        "(x//n + 1)//m",
        "(x + n)//(n*m)",
        {"x": (-9, 9), "n": (1, 4), "m": (1, 4)},
        {"x": (-9, 9), "n": (1, 4), "m": (-4, -1)},
    ),
    # 5., with a factor of several coefficients
    (
        "(x*6 + y*4 + z)//12",
        "(x*3 + y*2)//6",
        {"x": (-9, 9), "y": (-9, 9), "z": (0, 1)},
        {"x": (-9, 9), "y": (-9, 9), "z": (0, 2)},
    ),
    ("x//n*n + x%n", "x", {"x": (-9, 9), "n": (-5, -1)}, None),
    # truncating division and shifts
    ("tdiv(x, 4)", "x//4", {"x": (0, 99)}, {"x": (-1, 99)}),
    ("tdiv((x*128 + y)//36*2 + 1, 2)", "(x*128 + y)//36", {"x": (0, 5), "y": (0, 127)}, {"x": (-1, 5), "y": (0, 127)}),
    ("tdiv(x, 4)", "-(-x//4)", {"x": (-99, 0)}, {"x": (-99, 1)}),
    ("tdiv(x, -4)", "-(x//4)", {"x": (0, 99)}, {"x": (-1, 99)}),
    ("tdiv(x*12 - 8, 4)", "x*3 - 2", {"x": (-9, 9)}, None),
    ("tmod(x, 8)", "x", {"x": (0, 7)}, {"x": (0, 8)}),
    ("shr(shl(x, 3) + y, 3)", "x", {"x": (-9, 9), "y": (0, 7)}, {"x": (-9, 9), "y": (0, 8)}),
    # comparisons
    ("x*8 + y < 24", "x < 3", {"x": (-9, 9), "y": (0, 7)}, {"x": (-9, 9), "y": (0, 8)}),
    ("x*8 + y < 25", "x < 3", {"x": (-9, 9), "y": (1, 8)}, {"x": (-9, 9), "y": (0, 8)}),
    ("x//8 < 3", "x < 24", {"x": BIG}, None),
    ("x*6 < 20", "x < 4", {"x": BIG}, None),
    ("x*6 == 20", "False", {"x": BIG}, None),
    ("x*8 + y == 0", "x == 0 and y == 0", {"x": (-9, 9), "y": (-7, 7)}, {"x": (-9, 9), "y": (-7, 8)}),
    ("x == 5", "4 < x", {"x": (0, 5)}, {"x": (0, 6)}),
    ("x != 0", "0 < x", {"x": (0, 5)}, {"x": (-1, 5)}),
    ("x - y < 3", "True", {"x": (0, 4), "y": (2, 5)}, {"x": (0, 5), "y": (2, 5)}),
    # conjunctions and disjunctions
    ("x < 5 and x < 3", "x < 3", {"x": (0, 9)}, None),
    ("x < 5 or x < 3", "x < 5", {"x": (0, 9)}, None),
    ("x < 3 and 3 < x", "False", {"x": (0, 9)}, None),
    ("x < 4 or 3 <= x", "True", {"x": (0, 9)}, None),
    ("3 <= x and x < 4", "x == 3", {"x": (0, 9)}, None),
    ("not (x < 3 or 5 < x)", "3 <= x and x <= 5", {"x": (0, 9)}, None),
    ("x < 3 and (x < 3 or y < 2)", "x < 3", {"x": (0, 9), "y": (0, 9)}, None),
    ("x + y < 5 and x < 5", "x + y < 5", {"x": (0, 9), "y": (0, 9)}, {"x": (0, 9), "y": (-1, 9)}),
    ("x < 3 or x + y < 3", "x < 3", {"x": (0, 9), "y": (0, 9)}, {"x": (0, 9), "y": (-1, 9)}),
    # selections: each branch knows its condition
    ("where(x < 8, x//8, 5)", "where(x < 8, 0, 5)", {"x": (0, 99)}, {"x": (-1, 99)}),
    ("where(x < 8, x%8, x)", "x", {"x": (0, 99)}, {"x": (-1, 99)}),
    ("where(x < 8, 5, x//8)", "where(x < 8, 5, 1)", {"x": (0, 15)}, {"x": (0, 16)}),
    ("where(x == 3, x, 3)", "3", {"x": (0, 9)}, None),
    # of two quotients in a comparison that of two values stays
    ("x//6 < y//6", "x//6*6 + 6 <= y", {"x": (0, 7), "y": (0, 99)}, None),
    ("y//6 < x//6", "y < x//6*6", {"x": (0, 7), "y": (0, 99)}, None),
    # a step by 1 at an end of a range is an extreme
    ("where(x < 3, x + y + 1, x + y)", "max(x, 3) + y", {"x": (2, 9), "y": (0, 9)}, {"x": (1, 9), "y": (0, 9)}),
    ("where(x < 9, x*3, x*3 - 3)", "min(x, 8)*3", {"x": (0, 9)}, {"x": (0, 10)}),
    ("where(x < 3, x*2 + 2, x*2)", "max(x, 3)*2", {"x": (2, 9)}, {"x": (1, 9)}),
    # so is what a branch is found to be
    (
        "where(2 <= x, where(x < 3, x - 2, x - 3), y)",
        "where(2 <= x, max(x - 3, 0), y)",
        {"x": (0, 9), "y": (0, 9)},
        None,
    ),
    (
        "where(1 <= x, where(x < 3, x - 2, x - 3), y)",
        "where(1 <= x, x - where(x < 3, 2, 3), y)",
        {"x": (0, 9), "y": (0, 9)},
        None,
    ),
    # so a selection has the bounds that its condition leaves its branches
    ("(where(x < 6, x, 0) + y*6 + 18)//30", "(y + 3)//5", {"x": (0, 7), "y": (0, 6)}, {"x": (-1, 7), "y": (0, 6)}),
    ("(where(2 <= x and x < 8, x - 2, 0) + y*6)//30", "y//5", {"x": (0, 9), "y": (0, 9)}, None),
    ("(where(x < 2 or 7 < x, 0, x - 2) + y*6)//30", "y//5", {"x": (0, 9), "y": (0, 9)}, None),
    ("(where(x == 7, x - 2, 0) + y*6)//30", "y//5", {"x": (0, 9), "y": (0, 9)}, None),
    # a quotient of what the condition compares, with a term of it added
    (
        "(where(3 <= x + z*3 and x + z*3 < 33, x//3 + z - 1, 0) + y*10)//10",
        "y",
        {"x": (0, 8), "y": (0, 9), "z": (0, 9)},
        None,
    ),
    ("(where(x == 7, 9 - x, 5) + y*6)//30", "y//5", {"x": (0, 9), "y": (0, 9)}, None),
    ("(where(x < 3, x*2 + z, 0) + y*6)//30", "y//5", {**DIGITS, "z": (0, 1)}, {**DIGITS, "z": (0, 2)}),
    ("(where(x + z < 6, x + z, 0) + y*6)//30", "y//5", {**DIGITS, "z": (0, 9)}, {**DIGITS, "z": (-1, 9)}),
    ("where(0 <= x, x, y)", "x", {"x": (0, 9), "y": (0, 9)}, {"x": (-1, 9), "y": (0, 9)}),
    ("where(x < y, x + 3, x + 3)", "x + 3", {"x": (0, 9), "y": (0, 9)}, None),
    ("where(3 <= x, y, x)", "where(x < 3, x, y)", {"x": (0, 9), "y": (0, 9)}, None),
    # bounds say which branch is the lesser: a clamp
    ("where(x < 0, 0, where(7 < x, 7, x))", "max(min(x, 7), 0)", {"x": (-9, 19)}, None),
    ("where(x < 3, 2, min(x, 6))", "max(min(x, 6), 2)", {"x": (-9, 9)}, None),
    ("where(x < 0, 5, min(x*3 + 5, 26))", "max(min(x*3 + 5, 26), 5)", {"x": (-9, 9)}, None),
    # of the compared: these are extremes, however the comparison is read
    ("where(x//4 < y//4, y//4, x//4)", "max(x, y)//4", {"x": BIG, "y": BIG}, None),
    ("where(x//4 <= y//4, x//4, y//4)", "min(x, y)//4", {"x": BIG, "y": BIG}, None),
    ("where(y//-4 < x//-4, y//-4, x//-4)", "min(y//-4, x//-4)", {"x": BIG, "y": BIG}, None),
    ("where(x//4 + y < n//4, x//4 + y, n//4)", "min(x + y*4, n)//4", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x%8 <= y%8, y%8, x%8)", "max(x%8, y%8)", {"x": BIG, "y": BIG}, None),
    ("where(min(x, y) < n, n, min(x, y))", "max(min(x, y), n)", {"x": BIG, "y": BIG, "n": BIG}, None),
    (
        "where(x < where(p < 3, y, x), where(p < 3, y, x), x)",
        "max(x, where(p < 3, y, x))",
        {**DIGITS, "p": (0, 9)},
        None,
    ),
    ("where(not min(y - x, 1) < -1, min(y - x, 1), -1)", "max(min(y - x, 1), -1)", {"x": (0, 9), "y": (0, 9)}, None),
    (
        "where(where(p < 3, 0, 9) < x, where(p < 3, 0, 9), x)",
        "min(where(p < 3, 0, 9), x)",
        {**DIGITS, "p": (0, 9)},
        None,
    ),
    # minima and maxima
    ("min(x, y + 4)", "x", {"x": (0, 4), "y": (0, 9)}, {"x": (0, 5), "y": (0, 9)}),
    ("max(x*4 + 8, y*4)", "max(x + 2, y)*4", {"x": (-9, 9), "y": (-9, 9)}, None),
    ("min(x, min(x + 1, y))", "min(x, y)", {"x": (-9, 9), "y": (-9, 9)}, None),
    ("min(x + y, x + 3)", "x + min(y, 3)", {"x": (-9, 9), "y": (-9, 9)}, None),
    ("max(min(x, 9), 0)", "x", {"x": (0, 9)}, {"x": (0, 10)}),
    ("min(x + 7, y) - x", "min(7, y - x)", {"x": BIG, "y": BIG}, None),
    ("max(x, y) + min(x, y)", "x + y", {"x": BIG, "y": BIG}, None),
    ("max(x, y) * min(x, y)", "x*y", {"x": (-9, 9), "y": (-9, 9)}, None),
    ("max(y, min(n, max(x, y)))", "max(y, min(n, x))", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("min(max(x, 5), max(y, 5))", "max(min(x, y), 5)", {"x": BIG, "y": BIG}, None),
    ("min(x//4 + 3, y//4)", "min(x + 12, y)//4", {"x": BIG, "y": BIG}, None),
    ("min(x*7//10, y//10)", "min(x*7, y)//10", {"x": BIG, "y": BIG}, None),
    ("max(-(x//10), y//10 + z)", "-(min(x, 9 - y - z*10)//10)", {"x": BIG, "y": BIG, "z": BIG}, None),
    ("min(x//5, y//10)", "min(x*2, y)//10", {"x": BIG, "y": BIG}, None),
    ("max(3 - x//5, y//-10)", "-(min(x*2 - 30, y + 9)//10)", {"x": BIG, "y": BIG}, None),
    ("max(-(x//4), y//-4)", "max((3 - x)//4, -y//4)", {"x": (0, 0), "y": BIG}, None),
    ("min(x, 8*y)//8", "min(x//8, y)", {"x": BIG, "y": BIG}, None),
    ("min(x, x//5*5 + n)", "x", {"x": BIG, "n": (4, 9)}, {"x": (-99, 99), "n": (3, 9)}),
    ("max(where(x < 3, y, 0), where(x < 3, n, 1))", "where(x < 3, max(y, n), 1)", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x == 3, 5, x + 2)", "x + 2", {"x": (0, 9)}, None),
    ("where(x == 5, 9, x*3)", "where(x == 5, 9, 18)", {"x": (5, 6)}, {"x": (0, 6)}),
    # a selection with a literal that is compared, and a table that is looked up by comparisons
    ("where(x < y, n, 3) == 5", "x < y and n == 5", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x < y, n, 3) == 3", "y <= x or n == 3", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x < y, 3, n) != 5", "x < y or n != 5", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x < y, n*2 + 1, 3) == 5", "x < y and n == 2", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("where(x != 0, where(x != 1, where(x != 2, 9, 5), 0), 7) == 5", "x == 2", {"x": BIG}, None),
    ("where(x != 0, where(x != 1, where(x != 2, 9, 5), 0), 7) == 6", "False", {"x": BIG}, None),
    # comparisons of minima and maxima
    ("min(x, y) <= x", "True", {"x": BIG, "y": BIG}, None),
    ("min(x, 40) < min(x, 39)", "False", {"x": BIG}, None),
    ("max(x, n) < max(y, n)", "x < y and n < y", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("max(min(x, 9), 4) == 6", "x == 6", {"x": BIG}, None),
    # comparisons that need several facts at once
    ("x//3*3 + y < x + 1", "True", {"x": BIG, "y": (-9, 0)}, {"x": (-99, 99), "y": (-9, 1)}),
    ("x*y <= x*5 + y*7", "True", {"x": (0, 7), "y": (0, 5)}, {"x": (0, 14), "y": (0, 16)}),
    ("where(x < y, x, y - 1) < y", "True", {"x": BIG, "y": BIG}, None),
    ("x < y and y < n and x < n", "x < y and y < n", {"x": BIG, "y": BIG, "n": BIG}, None),
    # a member that others decide, of which some do not speak of its variables
    ("y < 12 and x < 2 and y <= x + 3", "x < 2 and y <= x + 3", {"x": BIG, "y": BIG}, None),
    ("min(x, y) < 10 or x <= y", "x <= y or y < 10", {"x": BIG, "y": BIG}, None),
    # each value of a selection compared
    ("where(x < y, 1, where(x == y, 0, -1)) < 0", "y < x", {"x": BIG, "y": BIG}, None),
    ("where(x < y, 1, where(x == y, 0, -1)) == 0", "x == y", {"x": BIG, "y": BIG}, None),
    (
        "where(x < y, where(y < 7, 1, 2), where(x < n, 3, 4)) == 3",
        "y <= x and x < n",
        {"x": BIG, "y": BIG, "n": BIG},
        None,
    ),
    ("x < y and (n < 3 or y <= x)", "x < y and n < 3", {"x": BIG, "y": BIG, "n": BIG}, None),
    ("x == 4 and x != 7", "x == 4", {"x": BIG}, None),
    ("x != 4 or x < 9", "True", {"x": BIG}, None),
    ("x*y == 0", "x == 0 or y == 0", {"x": (-9, 9), "y": (-9, 9)}, None),
    ("x*2 + y*3 <= 0", "x + y <= 0", {"x": (0, 9), "y": (0, 9)}, {"x": (-1, 9), "y": (0, 9)}),
    # equations of remainders
    ("(x + 5)%9 == 2", "x%9 == 6", {"x": BIG}, None),
    ("(x + 11)%12 == 11", "x%12 == 0", {"x": BIG}, None),
    ("(x + 1)//2 + x//2", "x", {"x": BIG}, None),
    # quotients that round to zero
    ("tdiv(tdiv(x, 3), 4)", "tdiv(x, 12)", {"x": BIG}, None),
    ("tdiv(tdiv(x, 3), 4)", "tdiv(x, 12)", {"x": (-2, 99)}, None),
    ("tdiv(-tdiv(x, 3), 4)", "tdiv(-x, 12)", {"x": (-2, 99)}, None),
    ("tdiv(tdiv(x, 9) - 6, 2)", "-((54 - x)//18)", {"x": (-99, 0)}, {"x": (-99, 99)}),
    ("tdiv(x*6, 15)", "tdiv(x*2, 5)", {"x": BIG}, None),
    ("tdiv(x, 3) < -2", "x < -8", {"x": BIG}, None),
    ("tdiv(x, 3) < 2", "x < 6", {"x": BIG}, None),
    ("tmod(x, 5) == 6", "False", {"x": BIG}, None),
    ("tdiv(tmod(x, 5), 5)", "0", {"x": BIG}, None),
    ("tmod(x*15 + 4, 3)", "1 - where(x < 0, 1, 0)*3", {"x": BIG}, None),
    ("tdiv(1 - x*6, 3)", "1 - x*2 - where(x < 1, 1, 0)", {"x": BIG}, None),
    ("max(tdiv(x, 6), tdiv(y, 6))", "tdiv(max(x, y), 6)", {"x": BIG, "y": BIG}, None),
    ("tdiv(x*y*6, y*4)", "tdiv(x*3, 2)", {"x": (-9, 9), "y": (1, 9)}, None),
    # nested divisors that are no literals
    ("x//n//m", "x//(n*m)", {"x": (-9, 9), "n": (1, 4), "m": (1, 4)}, {"x": (-9, 9), "n": (1, 4), "m": (-4, -1)}),
    ("(x//n + 2)//m", "(x + n*2)//(n*m)", SYMBOLIC, {**SYMBOLIC, "m": (-4, -1)}),
    ("(x//n + 2)//5", "(x + n*2)//(n*5)", SYMBOLIC, None),
    ("(x*9 + y*5 - 2)//3//n", "(x*9 + y*5 - 2)//(n*3)", SYMBOLIC, {**SYMBOLIC, "n": (-4, -1)}),
    ("(x - (x + y)//3)//n", "-((y - x*2 - 3)//(n*3)) - 1", SYMBOLIC, {**SYMBOLIC, "n": (-4, -1)}),
    ("(-1 - x)//n", "-1 - x//n", {"x": (0, 9), "n": (1, 4)}, {"x": (0, 9), "n": (-4, -1)}),
    ("(x*n*3 + y//4)//n", "x*3 + y//(n*4)", SYMBOLIC, {**SYMBOLIC, "n": (-4, -1)}),
    ("((n + 3)*(x*4 + 11) + y)//(n + 3)", "x*4 + 11 + y//(n + 3)", SYMBOLIC, None),
    ("(x//9*m + z)//(n*m)", "x//(n*9)", {**SYMBOLIC, "m": (4, 6)}, {**SYMBOLIC, "m": (3, 6)}),
    ("((x*2 + y%3)*m + z)//(n*m)", "(x*2 + y%3)//n", {**SYMBOLIC, "m": (4, 6)}, {**SYMBOLIC, "m": (3, 6)}),
    ("(x*5 + 1)//4//6", "(x*5 + 1)//24", {"x": BIG}, None),
    ("(x*5 - x//8)//6", "-((-39*x - 8)//48) - 1", {"x": BIG}, None),
    # what the bounds of a sum as it is written decide, where the terms of its normal form are bounded less tightly
    ("(x%4 + x//12%2*4 + y)%16", "x%4 + x//12%2*4 + y", DIGITS, {**DIGITS, "y": (0, 9)}),
    ("(x%4 + x//12%2*4 + y)%16", "x%4 + x//12%2*4 + y", DIGITS, {**DIGITS, "y": (-1, 8)}),
    ("(x%4 + x//12%2*4 + y)%16", "x%4 + x//12%2*4 + y + 16", {**DIGITS, "y": (-16, -8)}, {**DIGITS, "y": (-16, -7)}),
    ("(x%4 + x//12%2*4 + y)//16", "0", DIGITS, {**DIGITS, "y": (0, 9)}),
    ("min(x%4 + x//12%2*4, y)", "x%4 + x//12%2*4", {**DIGITS, "y": (7, 9)}, {**DIGITS, "y": (6, 9)}),
    ("max(y, x%4 + x//12%2*4)", "x%4 + x//12%2*4", {**DIGITS, "y": (-9, 0)}, {**DIGITS, "y": (-9, 1)}),
    ("min(x%4 + x//12%2*4, y)", "y", {**DIGITS, "y": (-9, 0)}, {**DIGITS, "y": (-9, 1)}),
    ("max(x%4 + x//12%2*4, y)", "y", {**DIGITS, "y": (7, 9)}, {**DIGITS, "y": (6, 9)}),
    # the same of sums of quotients
    ("x - x//4*4 + x//12*4 - x//24*8 + y < 16", "True", DIGITS, {**DIGITS, "y": (0, 9)}),
    ("x - x//4*4 + x//12*4 - x//24*8 + y < 0", "False", DIGITS, {**DIGITS, "y": (-1, 8)}),
    ("x//4*4 - x - x//12*4 + x//24*8 + y < 0", "False", {**DIGITS, "y": (7, 9)}, {**DIGITS, "y": (6, 9)}),
    ("x//2%2 == 0", "x%4 < 2", {"x": BIG}, None),
    ("x//3%4 == 3", "9 <= x%12", {"x": BIG}, None),
    ("x%4 + x//12%2*4 < y", "True", {**DIGITS, "y": (8, 9)}, {**DIGITS, "y": (7, 9)}),
    # digits compared one by one
    ("x//6 == y and x%6 == z", "x == y*6 + z", {**XY, "z": (0, 5)}, {**XY, "z": (-1, 5)}),
    ("x//6 == y and x%6 == z", "x == y*6 + z", {**XY, "z": (0, 5)}, {**XY, "z": (0, 6)}),
    ("x//6 != y or x%6 != z", "x != y*6 + z", {**XY, "z": (0, 5)}, {**XY, "z": (0, 6)}),
    ("x//6 == y//6 and x//2%3 == y//2%3 and x%2 == y%2", "x == y", {"x": BIG, "y": BIG}, None),
    ("x//n == y and x%n == z", "x == y*n + z", {**SMALL_BASES, "n": (4, 9)}, {**SMALL_BASES, "n": (3, 9)}),
    ("x%4 == 0 and x//4%4 == 0", "x%16 == 0", {"x": BIG}, None),
    ("x%10 == 0 and x%3 == 0", "x%30 == 0", {"x": BIG}, None),
    ("x%4 != 2 or x%6 != 0", "x%12 != 6", {"x": BIG}, None),
    ("x%10 == 3 and x%4 == 2", "False", {"x": BIG}, None),
    ("(x + 2)%10 == 0 and (x + 2)%3 == 0", "x%30 == 28", {"x": BIG}, None),
    ("0 < x%4 or 0 < x//4%4", "0 < x%16", {"x": BIG}, None),
    ("x*9 + y == 14", "x == 1 and y == 5", {"x": (-9, 9), "y": (-3, 13)}, {"x": (-9, 9), "y": (-4, 13)}),
    ("x*9 + y == 14", "False", {"x": (-9, 9), "y": (6, 13)}, {"x": (-9, 9), "y": (5, 13)}),
    ("x//6 < y or x//6 == y and x%6 < z", "x < y*6 + z", {**XY, "z": (0, 6)}, {**XY, "z": (0, 7)}),
    ("x//6 < y or x//6 == y and x%6 < z", "x < y*6 + z", {**XY, "z": (0, 6)}, {**XY, "z": (-1, 6)}),
    ("x//6 <= y and (x//6 != y or x%6 <= z)", "x <= y*6 + z", {**XY, "z": (-1, 5)}, {**XY, "z": (-1, 6)}),
    # what is left over is the same for all values
    ("(x*x + x + 1)//2", "(x*x + x)//2", {"x": BIG}, None),
    ("(x*x*x*4 - x*4 + y*6 + 5)//6", "(x*x*x*2 - x*2)//3 + y", {"x": BIG, "y": (-9, 9)}, None),
    # division of polynomials: exact, up to other terms, and up to less than the divisor
    ("(x + 1)*(x + 1)//(x + 1)", "x + 1", {"x": (0, 9)}, None),
    ("(x*x - y*y)//(x - y)", "x + y", {"x": (5, 9), "y": (0, 4)}, None),
    ("(x*x*2 + x*5 + 3)%(x + 1)", "0", {"x": (0, 9)}, None),
    ("(x*x*z - y*y*z)//(x*2 + y*2)", "(x*z - y*z)//2", {"x": (1, 9), "y": (0, 4), "z": (-9, 9)}, None),
    ("(x*x - y*y + z)//(x - y)", "x + y + z//(x - y)", {"x": (5, 9), "y": (0, 4), "z": (-9, 9)}, None),
    ("(x*x + x*2 + y)//(x + 1)", "x + 1", {"x": (2, 9), "y": (1, 3)}, {"x": (2, 9), "y": (0, 3)}),
    ("(x*x + x*2 + y)//(x + 1)", "x + 1", {"x": (2, 9), "y": (1, 3)}, {"x": (2, 9), "y": (1, 4)}),
]


@pytest.mark.parametrize(
    "text", ["where(x < 3, 1, min(x, 6))", "where(x < 3, 4, min(x, 6))", "where(x < 0, 0, min(x, 7)//max(x, 0))"]
)
def test_selections_that_are_no_clamps(text):
    x = var("x", -9, 9)
    (atom,) = [a for a in LinearArithmetic().form(parse(text, {"x": x})).terms if a is not x]
    assert atom.op == "where"


@pytest.mark.parametrize("condition", ["x//4 < y//4 - 1", "x//4 < y//4 + 2", "x//4 <= y//2", "x//4 < n//4"])
def test_a_selection_by_another_comparison_is_no_extreme(condition):
    ranges = {"x": (-9, 9), "y": (-9, 9), "n": (-9, 9)}
    selected = read(f"where({condition}, y//4, x//4)", ranges)
    extremes = [read(f"{op}(x//4, y//4)", ranges) for op in ("min", "max")]
    assert LinearArithmetic().form(selected) not in [LinearArithmetic().form(extreme) for extreme in extremes]
    assert all(wrong_points(selected, extreme) for extreme in extremes)


def without_powers(text: str) -> str:
    return text.replace("2**70", str(2**70))


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (5, 9), (-2, -1)])
def test_a_quotient_by_more_than_there_are_values_is_the_one_that_steps_there(low, high):
    x, theory = var("x", low, high), LinearArithmetic()
    forms = {}
    for n, c in product(range(high - low + 1, 20), range(-30, 31)):
        first = (low + c) // n
        steps = [v for v in range(low, high + 1) if (v + c) // n != first]
        form = theory.form((x + c) // n).shifted(-first)
        assert form == forms.setdefault(steps[0] if steps else None, form)
    assert len(forms) == high - low + 1


@pytest.mark.parametrize(("text", "becomes", "ranges", "near"), STEPS, ids=lambda x: x if isinstance(x, str) else "")
def test_step(text, becomes, ranges, near):
    text, becomes = without_powers(text), without_powers(becomes)
    theory = LinearArithmetic()
    term, other = read(text, ranges), read(becomes, ranges)
    assert theory.simplify(term) is theory.simplify(other)
    assert check_equal([term], [other]).equal
    if near is not None:
        term, other = read(text, near), read(becomes, near)
        assert wrong_points(term, other), "the near miss is no miss"
        assert_same(theory, term)


N8 = {"n": (0, 64), "x": (0, 99)}
SMALL = {"x": (0, 20), "y": (0, 20), "n": (0, 20)}

SMALL_DIVISOR = {"x": (0, 20), "y": (1, 9), "n": (0, 5)}

FACTS = [
    # facts, ranges, a term, what it becomes, facts that do not suffice
    (["x < 8"], SMALL, "x//8", "0", ["x < 9"]),
    (["8 <= x", "x <= 15"], SMALL, "x//8", "1", ["8 <= x"]),
    (["x*3 + 2 < 26"], SMALL, "x//8", "0", ["x*3 + 2 < 27"]),
    (["-x <= -8", "x - y == 0", "y < 16"], SMALL, "x//8", "1", ["-x <= -7", "y < 16"]),
    (["x + y < 8"], SMALL, "(x*2 + y*2)//16", "0", ["x + y < 9"]),
    (["x + y < 8"], SMALL, "x//8", "0", ["x + y < 9"]),
    (["x < y"], SMALL, "x < y + 1", "True", ["x <= y + 1"]),
    (["x < y"], SMALL, "y == x", "False", ["x <= y"]),
    (["y < n"], SMALL, "(x*n + y)//n", "x", ["y <= n", "n != 0"]),
    (["y < n"], SMALL, "(x*n + y)%n", "y", ["y <= n", "n != 0"]),
    (["y < n"], SMALL, "y//n", "0", ["y <= n", "n != 0"]),
    (["x == 5"], SMALL, "x*y", "y*5", ["x <= 5"]),
    (["x == y + 3"], SMALL, "x - y", "3", ["x >= y + 3"]),
    (["x != 0"], SMALL, "0 < x", "True", ["x != 1"]),
    (["x != 20"], SMALL, "x//20", "0", ["x != 19"]),
    (["x != y"], SMALL, "x - y == 0", "False", ["x != y + 1"]),
    (
        ["x != y"],
        SMALL,
        "where(y <= x, where(y < x, 5, 7) + where(y + 1 < x, 1, 0), 9)",
        "where(y <= x, where(y + 1 < x, 1, 0) + 5, 9)",
        ["x != y + 1"],
    ),
    (["x*2 != y"], SMALL, "y == x*2", "False", ["x != y"]),
    (["n % 8 == 0"], N8, "n//8*8", "n", ["n % 4 == 0"]),
    (["n % 8 == 0"], N8, "(n + 3)//8", "n//8", ["n % 2 == 0"]),
    (["n % 8 == 0"], N8, "(n + 7)%8", "7", ["n % 8 == 1"]),
    (["n % 8 == 3"], N8, "n%4", "3", ["n % 6 == 3"]),
    (["(x + 2)%4 == 0"], {"x": (0, 99)}, "x//4 - (x + 2)//4", "-1", ["(x + 2)%4 <= 2"]),
    (["(x + y + 3)%4 == 1"], SMALL, "(x + y)//4 - (x + y + 3)//4", "-1", ["(x + y + 3)%4 <= 3"]),
    (["x % y == 0"], SMALL_DIVISOR, "x//y*y*n", "x*n", ["x % y <= 1"]),
    (["(x + 1) % y == 0"], SMALL_DIVISOR, "(x + n*y)%y", "y - 1", ["(x + 1) % y <= 1"]),
    (["x % (y*2) == 0"], SMALL_DIVISOR, "x % y", "0", ["x % (y*2) <= 1"]),
    (["x//8 == 3"], {"x": (0, 99)}, "x%8", "x - 24", ["x//9 == 3"]),
    (["3 <= x//8"], {"x": (0, 31)}, "x//8", "3", ["2 <= x//8"]),
    (["x < 8 or y < 8", "8 <= x"], SMALL, "y//8", "0", ["x < 8 or y < 8", "7 <= x"]),
    (["8 <= x", "x < 8 or y < 8"], SMALL, "y//8", "0", ["7 <= x", "x < 8 or y < 8"]),
    (["x < 8 and y < 8"], SMALL, "x//8 + y//8", "0", ["x < 8 or y < 8"]),
    (["not 8 <= x"], SMALL, "x//8", "0", ["not 9 <= x"]),
]


@pytest.mark.parametrize(("facts", "ranges", "text", "becomes", "weaker"), FACTS, ids=lambda x: str(x)[:40])
def test_a_fact_is_used(facts, ranges, text, becomes, weaker):
    known = [read(fact, ranges) for fact in facts]
    term, other = read(text, ranges), read(becomes, ranges)
    theory = LinearArithmetic(known)
    assert assert_same(theory, term, known) is theory.simplify(other)
    known = [read(fact, ranges) for fact in weaker]
    assert wrong_points(term, other, known), "the weaker facts suffice"
    assert_same(LinearArithmetic(known), term, known)


@pytest.mark.parametrize(
    ("text", "branch"),
    [
        # the variable that comes first is solved: x by x//2, x by y
        ("where(y*2 + x%2 == z, min(z//2*71 + x//2 - y*66, 5), 0)", "min(y*5 + x//2 - 5, 0) + 5"),
        ("where(y*2 + z%2 == x, min(x//2*71 + z//2 - y*66, 5), 0)", "min(y*5 + z//2 - 5, 0) + 5"),
    ],
)
def test_a_variable_solved_by_its_own_quotient_leaves_that_as_it_is(text, branch):
    theory, term = LinearArithmetic(), read(text, {"x": (0, 9), "y": (0, 4), "z": (0, 9)})
    form = assert_same(theory, term)
    assert str(form.args[1]) == branch
    assert theory.simplify(form) is form


@pytest.mark.parametrize("facts", [facts for facts, *_ in FACTS], ids=str)
def test_facts_outside_a_theory_are_not_used(facts):
    ranges = SMALL | {"x": (0, 99), "n": (0, 64)}
    theory = LinearArithmetic()
    for fact in facts:
        child = theory.assuming(theory.condition(read(fact, ranges)))
        assert child is not None
        assert child is not theory
    for text in ("x//8", "n//8*8", "x - y"):
        assert_same(theory, read(text, ranges))
        assert theory.simplify(read(text, ranges)) is LinearArithmetic().simplify(read(text, ranges))


CONTRADICTIONS = [
    # facts that no point satisfies, facts that one point does
    (["x < 3", "3 <= x"], ["x <= 3", "3 <= x"]),
    (["x == 3", "x == 4"], ["x == 3", "x == 3"]),
    (["x == 3", "x != 3"], ["x == 3", "x != 4"]),
    (["x < y", "y < x"], ["x <= y", "y <= x", "x == 0"]),
    (["x + y < 0"], ["x + y < 1"]),
    (["x*2 == 3"], ["x*2 == 4"]),
    (["x % 2 == 0", "x % 2 == 1"], ["x % 2 == 0", "x % 3 == 1", "x < 5"]),
    (["20 < x"], ["20 <= x"]),
    (["x < 3", "x + y < 3", "20 < x*8 + y"], ["x < 3", "x + y < 3", "15 < x*8 + y"]),
    (["False"], ["x == 0"]),
    (["x//8 == 3"], ["x//8 == 2", "20 <= x"]),
    (["x < 2 and 5 < x"], ["5 < x and x < 7"]),
]


def test_facts_are_read_again_until_none_says_more():
    # read first, as it speaks of one variable, the alternative is decided by what is read later
    x, y = var("x", 0, 9), var("y", 0, 9)
    assert LinearArithmetic([(x < 3) | (x > 7), x + y % 3 < 5]).range(x) == (0, 2)


@pytest.mark.parametrize("extents", [*permutations((2, 3, 9))])
def test_a_product_is_within_those_of_all_its_factors(extents):
    x, y, n = [var(name, 0, high) for name, high in zip("xyn", extents, strict=True)]
    theory = LinearArithmetic()
    assert theory.range(theory.simplify(x * y * n)) == (0, 54)


@pytest.mark.parametrize(("bound", "wanted"), [("x + y < 8", "n//2"), ("x + y < 9", "(x + n*6 + y - 2)//12")])
def test_a_condition_is_read_knowing_its_other_members(bound, wanted):
    known, text, as_wanted = [
        read(text, SMALL)
        for text in (f"2 <= x + y and (n*6 + x + y - 2)//6%2 < 1 and {bound}", "(n*6 + x + y - 2)//12", wanted)
    ]
    theory = LinearArithmetic()
    inner = theory.assuming(theory.condition(known))
    assert inner is not None
    for knowing in (inner, LinearArithmetic([known])):
        assert assert_same(knowing, text, [known]) is LinearArithmetic().simplify(as_wanted)


@pytest.mark.parametrize(("facts", "possible"), CONTRADICTIONS, ids=str)
def test_contradictory_facts_are_refused(facts, possible):
    with pytest.raises(ValueError, match=r"contradict"):
        LinearArithmetic([read(fact, SMALL) for fact in facts])
    LinearArithmetic([read(fact, SMALL) for fact in possible])


def test_the_complement_of_a_fact_cannot_hold():
    x = var("x", 0, 8)
    theory = LinearArithmetic()
    flag = theory.condition(buffer("flags", "bool", (9,))[x])
    assert theory.assuming_all([flag, theory.negate(flag)]) is None
    inner = theory.assuming(flag)
    assert inner is not None
    assert inner.assuming(theory.negate(flag)) is None


NONZERO = [
    # facts, a divisor that they keep from zero, facts that do not
    (["x != 0"], "x", ["x != 1"]),
    (["x != y"], "y - x", ["x < y or y <= x"]),
    (["x*2 < y"], "x*2 - y", ["x*2 <= y"]),
    ([], "x*6 + 4", None),
    (["x != 0", "y != 0"], "x*y", ["x != 0"]),
]


@pytest.mark.parametrize(("facts", "text", "weaker"), NONZERO, ids=str)
def test_what_is_never_zero(facts, text, weaker):
    ranges = {"x": (-9, 9), "y": (-9, 9)}
    term = read(text, ranges)
    theory = LinearArithmetic([read(fact, ranges) for fact in facts])
    assert theory.is_nonzero(theory.form(term))
    if weaker is not None:
        theory = LinearArithmetic([read(fact, ranges) for fact in weaker])
        assert not theory.is_nonzero(theory.form(term))


# canonical: one normal form, whatever the order

CHAINS = [
    ("x + y*3 + n*5 + x%4 + 7 + (x + y)//3", SMALL),
    ("(x + y*3 + n*5 + 7)//8 % 4", SMALL),
    ("x*y*n + y*n*x*2", SMALL),
    ("min(x, y, n + 1, x + y, 7)", SMALL),
    ("max(min(x, y), min(y, n), 3)*2 - x", SMALL),
    ("x < 3 and y < x and n + x < 9 and (y < 7 or n < 2 or x + y < 5)", SMALL),
    ("where(x < 3 or y < 4 or n < 2, x + y + n, (x + y)*n)", SMALL),
    ("x == y or n == x or x + 1 == y and y != n", SMALL),
    # Python hashes -1 as -2, so the gaps x - y and x - y*2 were in the order of the operands
    ("min(x - y, x - y*2, 0)", {"x": (-9, 9), "y": (-9, 9)}),
]


@pytest.mark.parametrize(("text", "ranges"), CHAINS, ids=lambda x: x if isinstance(x, str) else "")
def test_one_normal_form_for_every_order(text, ranges):
    term = read(text, ranges)
    variants = [shuffled([term], seed)[0] for seed in range(8)]
    assert len(set(variants)) > 4
    assert len({LinearArithmetic().simplify(variant) for variant in variants}) == 1


@pytest.mark.parametrize("op", [minimum, maximum])
def test_a_long_extreme_has_one_normal_form_for_every_order(op):
    operands = [var(f"x{k}", -9, 9) * k for k in range(1, 11)]
    turned = [operands[k:] + operands[:k] for k in range(10)]
    assert len({LinearArithmetic().simplify(reduce(op, order)) for order in turned}) == 1


def test_of_extremes_that_facts_equate_one_is_kept_whatever_the_order():
    x, y = var("x", -9, 9), var("y", -9, 9)
    theory = LinearArithmetic([(x * 2).eq(y * 3)])
    for extreme in (minimum, maximum):
        assert theory.simplify(extreme(x * 2, y * 3)) is theory.simplify(extreme(y * 3, x * 2))


LANGUAGE = st.one_of(
    expressions().map(itemgetter(0)),
    bool_expressions().map(itemgetter(0)),
    index_terms().map(itemgetter(-1)),
    index_conditions(),
)


@settings(max_examples=400)
@given(LANGUAGE)
def test_any_term_keeps_its_value(term):
    assert_same(LinearArithmetic(), term)


@settings(max_examples=300)
@given(LANGUAGE, st.integers(0, 4), st.integers(0, 300))
def test_any_term_keeps_its_value_where_the_work_runs_out(term, contexts, steps):
    theory = LinearArithmetic()
    theory.work.contexts, theory.work.steps = contexts, steps
    assert_same(theory, term)


@given(LANGUAGE)
def test_any_term_keeps_its_value_when_the_time_is_up(term):
    theory = LinearArithmetic()
    theory.work.until = 0.0
    assert_same(theory, term)
    assert theory.work.contexts == LIMITS.contexts


class Interrupted(Work):
    """Work whose time is over at one look at the clock, and not before or after."""

    looks = 0
    ends_at = 0

    def late_or_raise(self):
        self.looks += 1
        if self.looks == self.ends_at:
            raise OverdueError
        return False


@pytest.mark.parametrize(
    "text",
    [
        "(x//8*8 + x%8 + y)//4 + (x & 12 | y & 3 & x) + ((x ^ y) & (z | x & 5))%8",
        "((x & y) | (z & w)) & ((x | z) ^ (y & 7))",
        "where(x//4 < 3, x//4*4 + x%4, max(x - 12, 0))//2",
        "(min(x, y*4) + z)//4 + min(x//4, y)",
        "(x//n//m) + (x//m)//n + x//(n*m)",
    ],
)
def test_a_theory_that_was_interrupted_answers_as_before(text):
    names = {name: var(name, 0, 99) for name in "wxyz"} | {name: var(name, 1, 32) for name in "mn"}
    term, work = parse(text, names), Interrupted()
    wanted = LinearArithmetic(work=work).form(term)
    looks, caught = work.looks, 0
    for work.ends_at in range(1, looks + 1):
        work.looks = 0
        theory = LinearArithmetic(work=work)
        try:
            theory.form(term)
        except OverdueError:
            caught += 1
        assert theory.form(term) == wanted
        assert not theory.nested_bits
    assert caught == looks


def test_an_equality_that_was_interrupted_is_still_used():
    x, y = var("x", 0, 99), var("y", 0, 99)
    work = Interrupted()
    theory = LinearArithmetic(work=work)
    quotient, other = x // 7, minimum(y, 3)
    theory.assert_equal([(quotient, other)])
    theory.assume(var("z", 0, 9) < 5)
    work.ends_at = work.looks + 1
    with pytest.raises(OverdueError):
        theory.form(quotient)
    assert theory.form(quotient) == theory.form(other)


def test_with_time_left_more_is_said():
    x = var("x", 0, 9)
    term = parse("where(x < 5, min(x, 4) + x//8, x)", {"x": x})
    theory = LinearArithmetic()
    theory.work.until = 0.0
    assert theory.simplify(term) is not x
    assert LinearArithmetic().simplify(term) is x


@st.composite
def terms_with_facts(draw: st.DrawFn) -> tuple[Expr, list[Expr]]:
    """A random term, and facts about parts of it."""
    term = draw(LANGUAGE)
    parts = topological([term])
    return term, [draw(facts_about(parts)) for _ in range(draw(st.integers(1, 2)))]


@st.composite
def facts_about(draw: st.DrawFn, parts: list[Expr]) -> Expr:
    part = draw(st.sampled_from(parts))
    if part.is_bool:
        return draw(st.sampled_from([part, ~part]))
    other = draw(st.integers(part.vmin, part.vmax).map(const) | st.sampled_from([p for p in parts if not p.is_bool]))
    modulus = draw(st.sampled_from([2, 3, 8]))
    congruent = (part % modulus).eq(draw(st.integers(0, modulus - 1)))
    return draw(st.sampled_from([part < other, part <= other, other < part, part.eq(other), part.ne(other), congruent]))


@settings(max_examples=400)
@given(terms_with_facts())
def test_any_term_keeps_its_value_where_facts_hold(example):
    term, facts = example
    try:
        theory = LinearArithmetic(facts)
    except ValueError:
        assert not wrong_points(FALSE, TRUE, facts), "facts that hold somewhere were refused"
        return
    assert_same(theory, term, facts)


@settings(max_examples=300)
@given(LANGUAGE, st.integers(0, 2**32))
def test_any_term_has_one_normal_form(term, seed):
    assert LinearArithmetic().simplify(shuffled([term], seed)[0]) is LinearArithmetic().simplify(term)


def test_no_theory_is_built_to_decide_what_sample_points_show_to_be_open() -> None:
    i, j = var("i", 0, 9), var("j", 0, 9)
    theory = LinearArithmetic()
    theory.condition(parse("i + j < 5 and i - j < 3", {"i": i, "j": j}))
    assert theory.work.contexts == LIMITS.contexts
    assert theory.condition(parse("i + j < 5 and i - j < 5", {"i": i, "j": j})) is (i + j < 5)
    assert theory.work.contexts < LIMITS.contexts


def test_a_quotient_that_no_law_ends_may_be_known_to_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.theory.quotients.LIMITS", replace(LIMITS, laws=0))
    x, n, m, known = var("x", 0, 99), var("n", 1, 9), var("m", 1, 9), LinearArithmetic()
    known.equal[x // n] = atom_form(x // m)
    assert known.simplify(x // n + 1) == x // m + 1


def test_a_selection_between_equal_branches_is_none_though_they_do_not_know_its_condition():
    theory = LinearArithmetic()
    both = theory.form(read("x*y", {"x": (0, 9), "y": (0, 9)}))
    condition = theory.condition(to_expr(both) < 1)
    assert theory.selection(condition, both.times(48), ZERO) == ZERO


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("where(p, x - 2, 0)", "where(p, x, 2) - 2"),
        ("where(p, 0, x - 2)", "where(p, 2, x) - 2"),
        ("where(p, x*3 - 1, 5)", "where(p, x*3 + 3, 9) - 4"),
        ("where(p, x - 2, 0)%2", "where(p, x, 2)%2"),
        ("where(p, x - 2, 0)//2", "where(p, x, 2)//2 - 1"),
    ],
)
def test_selections_beside_other_literals_are_one(text, same):
    ranges, theory = {"x": (0, 9), "p": (0, 1)}, LinearArithmetic()
    one, other = [read(each.replace("(p", "(p == 1"), ranges) for each in (text, same)]
    assert theory.form(one) == theory.form(other)
    assert not wrong_points(one, other)


@pytest.mark.parametrize("coefficients", [(2, 5), (-3, 5), (4, -7), (3, 5, 7), (5, 5, 4), (6, 10, 15), (1, 4, 9)])
def test_comparisons_between_which_no_value_lies_are_one(coefficients):
    theory, of_truth = LinearArithmetic(), {}
    names = [var(name, low, high) for name, (low, high) in zip("xyz", [(0, 3), (-1, 2), (0, 1)], strict=True)]
    points = grid(names)
    total = sum((k * v for k, v in zip(coefficients, names, strict=False)), const(0))
    values = evaluate([total], points)[0]
    for literal in range(values.min() - 1, values.max() + 2):
        for condition in (total < literal, literal <= total):
            found = theory.condition(condition)
            truth = np.broadcast_to(evaluate([found], points)[0], values.shape)
            assert (truth == evaluate([condition], points)[0]).all()
            assert of_truth.setdefault(truth.tobytes(), found) is found
            assert theory.negate(theory.negate(found)) is found


#: Comparisons with literals between which no value of the sum lies, and the same by the literal that costs least.
PLAINEST = [
    # none
    ("y*12 < x*5 + z*31", "where(y < 1, 0, 12) < where(x < 2, 5, 10) + (z*32 - z)", {"x": (1, 2), "y": (0, 1)}),
    ("x*12 <= x*9 + z*16", "x*2 + x <= z*16", {"x": (0, 5)}),
    # a multiple of a coefficient, which a quotient takes
    ("16 <= z*9 - y*16", "y < z//2", {"y": (0, 1)}),
    ("y*12 + z*7 < 34", "y < 2 or z < 2", {"y": (0, 2)}),
]


@pytest.mark.parametrize(("text", "wanted", "ranges"), PLAINEST)
def test_of_literals_between_which_no_value_lies_the_plainest_is_taken(text, wanted, ranges):
    root, wanted = [read(f"where({c}, w, 0)", ranges | {"z": (0, 3), "w": (0, 9)}) for c in (text, wanted)]
    assert check_equal([root], [wanted]).equal
    assert optimize(root).cost <= cost_of([wanted], LATENCY)


@pytest.mark.parametrize("names", ["a", "v", "zz"])
@pytest.mark.parametrize("factor", ["-z", "z*m", "m*z*2"])
def test_a_product_too_long_to_be_multiplied_out_has_the_factors_of_its_operands(names, factor):
    # a multiple, or a product, beside the sum was one factor, which nothing was divided by
    known = {"z": var("z", -9, 9), "m": var("m", -9, 9), "y": var("y", -9, 9)}
    terms = {f"{names}{k}": var(f"{names}{k}", 0, 9) for k in range(LIMITS.product_terms + 1)}
    condition = parse(f"({factor})*(y + {' + '.join(terms)}) < y*z", {**known, **terms})
    assert check_equal([condition], [LinearArithmetic().condition(condition)]).equal


def long_extreme(op: str, count: int, by_operators: bool) -> Expr:
    """Of each of many variables, that and one more; texts nest from the right, operators from the left."""
    names = {f"a{k}": var(f"a{k}", 0, 99) for k in range(count)}
    operands = [f"{name} + {step}" for step in (0, 1) for name in names]
    if not by_operators:
        return parse(f"{op}({', '.join(operands)})", names)
    return reduce(minimum if op == "min" else maximum, [parse(text, names) for text in operands])


@pytest.mark.parametrize("by_operators", [False, True])
@pytest.mark.parametrize("op", ["min", "max"])
def test_long_extremes_keep_one_operand_of_each_variable(op, by_operators):
    term = long_extreme(op, 100, by_operators)
    found = LinearArithmetic().simplify(term)
    assert sum(t.op in ("min", "max") for t in topological([found])) == 99
    assert check_equal([term], [found]).equal


def test_the_beginnings_of_long_extremes_are_not_read():
    count = [calls(partial(LinearArithmetic().form, long_extreme("min", n, by_operators=False))) for n in (100, 200)]
    # each two of the operands are compared: they were for each beginning
    assert count[1] < 4 * count[0]


@pytest.mark.parametrize("options", [{"theory": False}, {"engine": "greedy"}, {"engine": "theory"}])
def test_long_extremes_by_every_engine(options):
    term = long_extreme("max", 40, by_operators=False)
    assert optimize([term, term // 2], **options).check().equal


@pytest.mark.parametrize("op", ["min", "max"])
def test_a_long_extreme_without_time_has_its_value(op):
    term = long_extreme(op, 50, by_operators=False)
    assert optimize(term, budget=Budget(seconds=1e-9)).check().equal


def test_divisors_that_coefficients_share_in_every_combination_are_not_all_tried() -> None:
    primes = [p for p in range(2, 114) if all(p % d for d in range(2, p))]
    n = prod(primes)
    names = [var(f"x{p}", 0, 3 * p) for p in primes]
    dividend = reduce(add, [x * (n // p) for x, p in zip(names, primes, strict=True)], var("y", 0, 5))
    found = LinearArithmetic().simplify(dividend // n)
    assert check_equal([dividend // n], [found]).equal
