"""A remainder or quotient over two periods is a selection: an alternative where it is cheaper, and read back."""

import numpy as np
import pytest
from hypothesis import given, settings
from index_terms import index_terms
from strategies import grid

from eqsat.codegen.runtime import compile_many
from eqsat.extract import Latency, OpCount
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize
from eqsat.theory.linear import LinearArithmetic

RANGES = {
    "x": (0, 13),
    "y": (0, 6),
    "z": (0, 6),
    "w": (-5, 8),
    "v": (7, 20),
    "b": (0, 15),
    "u": (0, 1),
    "p": (0, 7),
    "n": (7, 20),
    "m": (1, 99),
    "k": (5, 8),
}
NAMES = {name: var(name, *ends) for name, ends in RANGES.items()}

#: What comes in, and what it becomes.
SELECTED = [
    ("x%7", "x - where(x < 7, 0, 7)"),
    ("x//7", "where(x < 7, 0, 1)"),
    ("(y + 3)%7", "y + where(y < 4, 3, -4)"),
    ("(y + z)%7", "y + z - where(y + z < 7, 0, 7)"),
    ("v//7", "where(v < 14, 1, 2)"),
    ("v%7", "v - where(v < 14, 7, 14)"),
    ("x//7*5 + 3", "where(x < 7, 3, 8)"),
    # a multiple of a minimum that is a selection too
    ("(-p)%6 + p%6", "where(p <= where(p < 6, 0, 6), 0, 6)"),
    ("x//7*y", "where(x < 7, 0, y)"),
    ("(1 - x//7)*y", "where(x < 7, y, 0)"),
    ("x//7*5 + x%7*3", "x*3 - where(x < 7, 0, 16)"),
    # of a period that has but one number
    ("(y + u)%7", "where(u + y < 7, u + y, 0)"),
    # a mask or a shift is cheaper than a selection, their multiples are not
    ("b%8", "b%8"),
    ("b//8", "b//8"),
    ("b//8*5", "where(b < 8, 0, 5)"),
    # by a variable
    ("(y + z)%n", "y + z - where(y + z < n, 0, n)"),
    ("(y + z)//n", "where(y + z < n, 0, 1)"),
    ("(y - 9)//k", "where(y + k < 9, -2, -1)"),
    # three periods
    ("x%6", "x%6"),
    ("v//5", "v//5"),
    ("x%(n - 1)", "x%(n - 1)"),
    ("w//7", "w//7"),
    ("w%7", "(w + 7)%7"),
]


@pytest.mark.parametrize(("text", "wanted"), SELECTED, ids=[row[0] for row in SELECTED])
def test_a_selection_where_it_is_cheaper(text, wanted):
    result = optimize([parse(text, NAMES)])
    assert result.cost <= cost_of([parse(wanted, NAMES)], Latency())
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)


def test_facts_bound_a_symbolic_period():
    known = {"x": (0, 2**20), "n": (1, 2**20)}
    assert str(optimize("x%n", constraints=["x < 2*n"], **known).expr) == "x - where(x < n, 0, n)"
    assert str(optimize("x%n", constraints=["x <= 2*n"], **known).expr) == "x%n"


def test_the_cost_model_decides():
    class DearSelections(Latency):
        def price(self, op, operands, result):
            return 9 * super().price(op, operands, result) if op == "where" else super().price(op, operands, result)

    chosen = {
        type(model): str(optimize("(x + 3)%7", x=(0, 6), cost=model).expr) for model in (OpCount(), DearSelections())
    }
    assert chosen[OpCount] == "(x + 3)%7"
    assert "where" not in chosen[DearSelections]


def test_constants_are_taken_in_where_the_rest_is_there():
    result = optimize(["y + z*9", "(y + z*9)%45 + 2"], **RANGES)
    wanted = [parse(text, NAMES) for text in ("y + z*9", "where(z < 5, 2, -43) + (y + z*9)")]
    assert result.cost <= cost_of(wanted, Latency())


CLAMPED = [
    # a clamp that is multiplied, its constant in the literals beside it
    ("max(x - 2, 0)*6 + z//5*270", "max(x, 2)*6 + where(z < 5, -12, 258)"),
    ("min(x + 3, 5)*6 + z//5*270", "min(x, 2)*6 + where(z < 5, 18, 288)"),
    # without literals beside it there is nothing to gain
    ("max(x - 2, 0)*6 + y*270", "max(0, x*6 - 12) + y*270"),
    # a branch, as a clamp
    ("where(y < z, x - 1, 0)*13 + z//5*270", "where(y < z, x, 1)*13 + where(z < 5, -13, 257)"),
    ("z//5*270 - where(y < z, 1 - x, 0)", "where(y < z, x, 1) + where(z < 5, -1, 269)"),
    # the constants of two branches together, in literals or not
    (
        "where(y < z, x - 1, 0)*13 + where(z < x, y - 1, 0)*11 + z//5*270",
        "(where(y < z, x, 1) + where(z < x, y, 1))*11 + where(y < z, x, 1)*2 + where(z < 5, -24, 246)",
    ),
    (
        "where(y < z, x - 1, 0)*13 + where(z < x, y - 1, 0)*11",
        "(where(y < z, x, 1) + where(z < x, y, 1))*11 + where(y < z, x, 1)*2 - 24",
    ),
    # nor without a constant that is added to what is clamped
    ("max(x, 2)*6 + z//5*270", "max(x, 2)*6 + where(z < 5, 0, 270)"),
]


#: Roots that differ by literals: of one sum only the first takes its constant in.
STEPS = [
    (["x*2 + z//5*4 + 32", "x*2 + z//5*4 + 33"], ["x*2 + where(z < 5, 32, 36)", "x*2 + where(z < 5, 32, 36) + 1"]),
    (
        ["x*2 + where(z < 5, 0, 4) + 9", "x*2 + where(z < 5, 0, 4) + 7", "x*2 + where(z < 5, 0, 4) + 8"],
        ["x*2 + where(z < 5, 7, 11) + 2", "x*2 + where(z < 5, 7, 11)", "x*2 + where(z < 5, 7, 11) + 1"],
    ),
    # the sum is needed too
    (["x*2 + y*3", "x*2 + y*3 + 4", "x*2 + y*3 + 5"], ["(x + y)*2 + y", "(x + y)*2 + y + 4", "(x + y)*2 + y + 5"]),
]


@pytest.mark.parametrize(("texts", "wanted"), STEPS)
def test_one_of_roots_that_differ_by_literals_takes_its_constant_in(texts, wanted):
    ranges = {"x": (0, 6), "y": (0, 6), "z": (0, 9)}
    result = optimize(texts, **ranges)
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    assert result.cost <= cost_of([parse(text, names) for text in wanted], Latency())
    assert result.check().equal


@pytest.mark.parametrize(("text", "wanted"), CLAMPED)
def test_the_constant_of_a_clamp_is_taken_into_literals(text, wanted):
    ranges = {"x": (0, 6), "y": (0, 6), "z": (0, 9)}
    result = optimize(text, **ranges)
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    assert result.cost == cost_of([parse(wanted, names)], Latency())
    assert result.check().equal


#: Selections, and what they stand for: equal normal forms, whatever the ranges would let evaluation find.
READ = [
    ("where(x < 8, x, x - 8)", "x - x//8*8", {"x": (0, 2**40)}, ["x < 16"]),
    ("where(x < 7, x, x - 7) + where(7 <= x, 7, 0)", "x", {"x": (0, 2**40)}, []),
    ("where(x >= 7, x - 7, x)", "x%7", {"x": (0, 13)}, []),
    ("where(x < 7, 3, 8)", "x//7*5 + 3", {"x": (0, 13)}, []),
    ("where(x + y*7 < 21, x, x - 2)", "x - (x + y*7)//21*2", {"x": (0, 6), "y": (0, 5)}, []),
    ("where(x < n, x, x - n)", "x%n", {"x": (0, 2**40), "n": (1, 2**40)}, ["x < 2*n"]),
    ("where(n <= x, x - n, x)", "x%n", {"x": (0, 2**40), "n": (1, 2**40)}, ["x < 2*n"]),
    ("where(x < n, 0, n)", "x//n*n", {"x": (0, 13), "n": (7, 20)}, []),
    # indices that wrap: from the end, or around it
    ("where(x < 0, x + 8, x)", "x%8", {"x": (-8, 7)}, []),
    ("where(x < 5, x*3 + y + 9, x*3 + y - 15)", "(x + 3)%8*3 + y", {"x": (0, 7), "y": (0, 6)}, []),
    ("where(y <= x, x - y, x - y + 8)", "(x - y)%8", {"x": (0, 7), "y": (0, 7)}, []),
    ("where(x < 2, 1 - x, 9 - x)", "(1 - x)%8", {"x": (0, 9)}, []),
    # of a period that has but one number
    ("where(x + y < 8, x + y, 0)", "(x + y)%8", {"x": (0, 2**40), "y": (0, 9)}, ["x + y < 9"]),
    ("where(x + y < 1, 7, x + y - 1)", "(x + y - 1)%8", {"x": (0, 5), "y": (0, 3)}, []),
    # a quotient rounded up where it is negative
    ("where(x < 0, -(-x//7), x//7)", "tdiv(x, 7)", {"x": (-99, 99)}, []),
    ("where(x*3 + y < 1, (x*3 + y + 6)//7, (x*3 + y)//7)", "tdiv(x*3 + y, 7)", {"x": (-9, 9), "y": (0, 9)}, []),
    # a quotient rounded up by its remainder
    ("where(x%8 == 0, x//8, x//8 + 1)", "(x + 7)//8", {"x": (-99, 99)}, []),
    ("where(x%n == 0, x//n, x//n + 1)", "(x + n - 1)//n", {"x": (0, 2**40), "n": (1, 2**40)}, []),
    ("where(x%7 < 3, x//7*5 + y, x//7*5 + y + 5)", "(x + 4)//7*5 + y", {"x": (-99, 99), "y": (0, 6)}, []),
]
#: Near misses: the range is a value too long, the comparison or the step is another.
UNREAD = [
    ("where(x + y < 8, x + y, 0)", "(x + y)%8", {"x": (0, 2**40), "y": (0, 9)}, ["x + y < 10"]),
    ("where(x + y < 8, x + y, 1)", "(x + y)%8", {"x": (0, 2**40), "y": (0, 9)}, ["x + y < 9"]),
    ("where(x < -1, -(-x//7), x//7)", "tdiv(x, 7)", {"x": (-99, 99)}, []),
    ("where(x < 2, -(-x//7), x//7)", "tdiv(x, 7)", {"x": (-99, 99)}, []),
    ("where(x < 0, (x + 5)//7, x//7)", "tdiv(x, 7)", {"x": (-99, 99)}, []),
    ("where(x < 8, x, x - 8)", "x%8", {"x": (0, 16)}, []),
    ("where(x < 8, x, x - 8)", "x%8", {"x": (-1, 15)}, []),
    ("where(x < 7, x, x - 8)", "x%8", {"x": (0, 13)}, []),
    ("where(x < n, x, x - n)", "x%n", {"x": (0, 2**40), "n": (1, 2**40)}, ["x <= 2*n"]),
    ("where(x < n, x, x - n)", "x%n", {"x": (-1, 13), "n": (7, 20)}, []),
    ("where(x <= n, x, x - n)", "x%n", {"x": (0, 13), "n": (7, 20)}, []),
    ("where(x < 0, x + 8, x)", "x%8", {"x": (-9, 7)}, []),
    ("where(x < 0, x + 8, x)", "x%8", {"x": (-8, 8)}, []),
    ("where(x < 1, x + 8, x)", "x%8", {"x": (-8, 7)}, []),
    ("where(x%8 == 0, x//8, x//8 - 1)", "(x + 7)//8 - 1", {"x": (-99, 99)}, []),
    ("where(x%8 == 0, x//8, x//8 + 2)", "(x + 7)//8", {"x": (-99, 99)}, []),
    ("where(x%8 == 1, x//8, x//8 + 1)", "(x + 7)//8", {"x": (-99, 99)}, []),
    ("where(x%n == 1, x//n, x//n + 1)", "(x + n - 1)//n", {"x": (0, 2**40), "n": (1, 2**40)}, []),
    ("where(x < 5, x*3 + y + 9, x*3 + y - 14)", "(x + 3)%8*3 + y", {"x": (0, 7), "y": (0, 6)}, []),
    ("where(y <= x, x - y, x - y + 8)", "(x - y)%8", {"x": (0, 7), "y": (-1, 7)}, []),
]


@pytest.mark.parametrize("row", READ + UNREAD, ids=lambda row: f"{row[0]} in {row[2]}")
def test_selections_are_read_as_what_they_stand_for(row):
    selection, meaning, ranges, facts = row
    names = {name: var(name, *ends) for name, ends in ranges.items()}
    theory = LinearArithmetic([parse(fact, names) for fact in facts])
    same = theory.form(parse(selection, names)) == theory.form(parse(meaning, names))
    assert same == (row in READ)


def test_whole_domains():
    """Every short range around every boundary, by periods of both kinds, with and without the quotient beside."""
    for n in (2, 3, 4, 5, 7):
        for low in range(-2 * n, 2 * n + 1):
            for extent in (n - 1, n, 2 * n - 1, 2 * n):
                x = var("x", low, low + extent)
                for roots in ([x % n], [x // n * 3 + 1, x % n * 2]):
                    result = optimize(roots)
                    assert result.cost <= result.cost_before
                    assert result.check().equal, (n, low, extent)


@settings(max_examples=80)
@given(index_terms())
def test_an_answer_to_an_answer_is_right(terms):
    once = optimize(terms[-2:])
    again = optimize(once.exprs)
    assert once.check().equal
    assert again.check().equal


def test_compiled():
    roots = [parse(text, NAMES) for text, _ in SELECTED]
    found = [optimize([root]).expr for root in roots]
    for root, kernel in zip(roots, compile_many([[term] for term in found]), strict=True):
        points = grid(variables([root]))
        assert "if (" not in kernel.source
        assert np.array_equal(kernel(points)[0], root.evaluate(points)), root


#: The laws of a derivation.
DERIVED = [
    ("x%7", ("mod-two-periods",)),
    ("v//7", ("div-two-periods",)),
    ("(y + z)%n", ("two-periods-mod-symbolic",)),
    ("(y + z)//n", ("two-periods-div-symbolic",)),
    ("x//7*y", ("div-two-periods", "where-mul-scaled-not")),
    ("(y + z + 2)%9*4 + y", None),
    ("x//7*5 + x%7*3", None),
    ("where(x < 7, x, x - 7) + x//7*7", None),
]


@pytest.mark.parametrize(("text", "laws"), DERIVED, ids=[row[0] for row in DERIVED])
def test_derivations(text, laws):
    found = optimize([parse(text, NAMES)]).explain()
    assert not found.coarse
    assert laws is None or set(laws) <= set(found.rules)
