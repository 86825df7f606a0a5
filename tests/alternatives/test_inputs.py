"""Hidden laws: each at every point of small domains, and answers that need one cost no more than it gives."""

import itertools
from dataclasses import replace

import pytest
from corpora import read

from eqsat.alternatives.inputs import HIDDEN, HiddenLaws
from eqsat.alternatives.limits import LIMITS
from eqsat.extract import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.functions import prod_over
from eqsat.lang.traversal import topological
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal
from eqsat.theory.linear import LinearArithmetic

R = var("r", 0, 9)

#: Quotients and remainders, and how the law that their names stand for writes them.
LAWS = [
    # whole multiples of the divisor leave, and what is left keeps its sign
    ("(x*7 + y*4)//7", "x + y*4//7"),
    ("(x*28 + y*4)//7", "x*4 + y*4//7"),
    ("(x*8 + y*3)//8", "x + y*3//8"),
    ("(x*12 + y*11 + z*16 + 16)//3", "x*4 + (y*11 + z*16 + 16)//3"),
    ("(x*7 + y*4)//-7", "y*4//-7 - x"),
    ("(x*7 + y*4)%7", "y*4%7"),
    ("(x*48 + y*5)%16", "y*5%16"),
    ("(x*17 + y*53)%16", "(x + y*5)%16"),
    ("(x%12 + y)%-4", "(x + y)%-4"),
    # floors compose, whatever the normal form of the inner one
    ("x*2//3//2", "x//3"),
    ("x*2//3//5", "x*2//15"),
    ("(x*8 + y*7)//3//5//4", "(x*8 + y*7)//60"),
    ("(x//-4 + y)//5", "(x - y*4)//-20"),
    ("((x + y*8)//2 + 7)//2", "(x + y*8 + 14)//4"),
    # a quotient of a remainder is a remainder of a quotient
    ("(x*7 + y)%20//5", "(x*7 + y)//5%4"),
    ("(x*3 + y*5)%24//6", "(x*3 + y*5)//6%4"),
    ("x%(n*2)//n", "x//n%2"),
    ("x%(n*4)//4", "x//4%n"),
    # a factor of the divisor divides first
    ("(x%7*5 + 2)//15", "x%7//3"),
    ("(x%6*2 + 1)//8", "x%6//4"),
    # multiples of a factor of the divisor leave a remainder beside less than that factor
    ("((x + 16)//10*10 + y%10)%40", "(x + 16)//10%4*10 + y%10"),
    ("((x*32 + z)//10*10 + 9 - y%10)%40", "(x*32 + z)//10%4*10 + 9 - y%10"),
    ("(x*5//7*15 + y%5)%20", "x*5//7*3%4*5 + y%5"),
    # what is rounded down is subtracted: a mask of the same dividend
    ("(x + y*16)//24 - (x + y*16)//24//4*4", "(x + y*16)//24%4"),
    # near misses: each is as it was
    ("(x*7 + y*4)//8", "(x*7 + y*4)//8"),
    ("(x*7 + y)%20//7", "(x*7 + y)%20//7"),
    ("(x*3 + y + z*5)//-12", "(x*-3 - y - z*5)//12"),
    ("((x + 16)//10*10 + y%11)%40", "((x + 16)//10*10 + y%11)%40"),
    ("((x + 16)//10*10 + y%10 - 1)%40", "((x + 16)//10*10 + y%10 - 1)%40"),
]


@pytest.mark.parametrize("ranges", [(-9, 9), (-3, 30), (0, 19)], ids=str)
@pytest.mark.parametrize(("text", "wanted"), LAWS, ids=str)
def test_they_cost_no_more_than_by_the_law(text, wanted, ranges):
    bounds = {**dict.fromkeys("xyz", ranges), "n": (1, 5)}
    result = optimize(read(text, bounds))
    assert result.cost <= cost_of([read(wanted, bounds)], Latency())
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)


def test_every_hidden_law_rewrite_is_equal_to_its_term():
    """Proved by evaluation at every point, for small coefficients, divisors of either sign, and ranges around zero."""
    x, y, z, n = var("x", -5, 6), var("y", -4, 3), var("z", -1, 0), var("n", 1, 4)
    terms = [
        term
        for a, b, c, d in itertools.product((-7, 1, 4, 6), (-3, 2, 9), (-5, 0, 4), (-12, -6, 4, 5, 12))
        for total in [x * a + y * b + c]
        for term in (
            total // d,
            total % d,
            total // d * d,
            total // 3 // d,
            (total // -2 + y) // d,
            total % 12 // d,
            total % -12 // d,
            total % (n * 2) // n,
            (total // 5 * 4 + y % 4) % (d * 4),
            (total // 5 * 4 - y % 4 + 3) % (d * 4),
            (total // 5 * 4 + y % 5) % (d * 4),
            total % (n + 3),
            total // (n + 3),
            # z//d is z
            (total * d + z) // d,
            total * total * total * total,
            total * (x + n) * total * total * (x + n),
            prod_over(total, R, 0, d % 7),
        )
    ]
    count = 0
    for term in terms:
        hidden_laws = HiddenLaws(LinearArithmetic())
        for part in topological([term]):
            for before, after in hidden_laws.rewritten(part) if part.op in HIDDEN else ():
                check = check_equal([before], [after])
                assert (check.kind, check.equal) == ("exhaustive", True), f"{before} is not {after}"
                count += 1
    assert count > len(terms)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("where(z < min(x, 12)%3, z, min(x, 12)%3)", "min(z, min(x, 12)%3)"),
        ("where(z <= min(x, 12)%3, min(x, 12)%3, z)", "max(z, min(x, 12)%3)"),
        ("where(not z < min(x, 12)%3, z, min(x, 12)%3)", "max(z, min(x, 12)%3)"),
        # near misses: of what is compared a branch has something else
        ("where(z < min(x, 12)%3, z, min(x, 13)%3)", "where(z < min(x, 12)%3, z, min(x, 13)%3)"),
        ("where(z < min(x, 12)%3, x, min(x, 12)%3)", "where(z < min(x, 12)%3, x, min(x, 12)%3)"),
    ],
)
def test_a_selection_of_the_lesser_term_is_an_extreme(text, wanted):
    bounds = {"x": (0, 63), "z": (0, 5)}
    result = optimize(read(text, bounds))
    assert result.cost <= cost_of([read(wanted, bounds)], Latency())
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)


#: A sum with values in [0, 147], whose remainder by 7 has a normal form without its first term.
DIVIDEND = "x*14 + y%5*3 + z"


@pytest.mark.parametrize(
    ("texts", "divisions", "is_divided"),
    [
        ([f"({DIVIDEND})%7"], 120, True),
        ([f"({DIVIDEND})%7"], 1, False),
        ([f"({DIVIDEND})%7", DIVIDEND], 1, True),
    ],
    ids=["short input", "long input", "long input that has the dividend"],
)
def test_long_inputs_divide_as_they_are_written_what_is_there_alone(texts, divisions, is_divided, monkeypatch):
    monkeypatch.setattr("eqsat.alternatives.inputs.LIMITS", replace(LIMITS, input_divisions=divisions))
    graph = optimize(texts, x=(0, 9), y=(0, 50), z=(0, 9)).graph
    divided = {operands[0] for nodes in graph.classes.values() for op, _, operands in nodes if op == "mod"}
    assert any(graph.bounds[c] == (0, 147) for c in divided) is is_divided
