"""Reductions, bodies and loops: what is found only where rules about each of them alternate.

Each case needs all the rules that it names: without any one of them the rules alone answer at a higher cost.
"""

from __future__ import annotations

import pytest

from eqsat.egraph.budget import Budget
from eqsat.lang.expr import Expr, buffer, var
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT, REDUCE

ALL = (*DEFAULT, *REDUCE)
#: A busy machine shall not stop what is to be found.
PATIENT = Budget(seconds=120)

#: (text, ranges, the cost of the answer, that of the rules alone, rules without any of which it is higher)
CASES = [
    # the outermost two, or the innermost two first
    (
        "sum(sum(sum(where(q*4 + r*2 + s < n, 1, 0), s, 0, 2), r, 0, 2), q, 0, 2)",
        {"n": (0, 8)},
        0,
        12,
        ("sum-merge", "sum-unparented"),
    ),
    # the body is 1 more where the condition holds, which is counted
    (
        "sum(where(r < n, (r*2 + 1)%2 + x, x), r, 0, 10)",
        {"n": (-3, 12), "x": (0, 9)},
        6,
        6,
        ("sum-unparented",),
    ),
    # the loops merge, the body becomes t < n, which is counted
    (
        "sum(sum(where(r*8 + s < n, 1, 0), s, 0, 8), r, 0, 8)",
        {"n": (0, 64)},
        0,
        0,
        ("sum-merge", "sum-unparented"),
    ),
    (
        "sum(sum(where(r*4 + s == n, x + r, 0), s, 0, 4), r, 0, 8)",
        {"n": (-3, 40), "x": (0, 9)},
        5,
        6,
        ("sum-merge", "gather"),
    ),
    (
        "sum(sum(where(r*4 + s == n, A[r*4 + s], 0), s, 0, 4), r, 0, 4)",
        {"n": (0, 15)},
        1,
        1,
        ("sum-merge", "gather"),
    ),
    # the sum of the index is in a range that rules made, and its closed form shares the end of that
    (
        "sum(where(r < n, x + r, 0), r, 0, 6)",
        {"n": (0, 9), "x": (0, 20)},
        10,
        10,
        ("sum-index", "sum-distributes"),
    ),
    (
        "sum(where(r < n, x + r, y), r, 0, 6)",
        {"n": (0, 9), "x": (0, 20), "y": (0, 9)},
        15,
        15,
        ("sum-index", "sum-distributes"),
    ),
    # the outer loop is the lower digit
    (
        "sum(sum(where(s*4 + r < n, 1, 0), s, 0, 8), r, 0, 4)",
        {"n": (0, 32)},
        0,
        0,
        ("sum-swap", "sum-merge", "sum-unparented"),
    ),
    # a factor leaves the outer loop before the loops are next to each other
    (
        "sum(sum(where(r*4 + s < n, 1, 0), s, 0, 4)*x, r, 0, 4)",
        {"n": (0, 16), "x": (0, 9)},
        3,
        3,
        ("sum-factor", "sum-merge", "sum-unparented"),
    ),
    (
        "sum(sum(where((r*4 + s)*2 < n*2, 1, 0), s, 0, 4), r, 0, 4)",
        {"n": (0, 16)},
        0,
        0,
        ("sum-merge", "lt-scales", "sum-unparented"),
    ),
    (
        "sum(sum(where(r*2 + s < n, (r*4 + s*2)//2, 0), s, 0, 2), r, 0, 4)",
        {"n": (0, 8)},
        5,
        5,
        ("sum-merge", "sum-index"),
    ),
    (
        "sum(sum(where(r*3 + s < n, where(r*3 + s >= m, x, 0), 0), s, 0, 3), r, 0, 5)",
        {"n": (0, 15), "m": (0, 15), "x": (0, 9)},
        5,
        5,
        ("sum-merge", "sum-unparented"),
    ),
    (
        "sum(sum(where(r*4 + s < n, x, y), s, 0, 4), r, 0, 4)",
        {"n": (0, 16), "x": (0, 9), "y": (0, 9)},
        6,
        6,
        ("sum-merge", "sum-where-apart", "sum-unparented"),
    ),
    # one condition is known in the body, the other in the merged loop
    (
        "sum(sum(where(r*4 + s < n, where(s < 4, x, y), 0), s, 0, 4), r, 0, 4)",
        {"n": (0, 16), "x": (0, 9), "y": (0, 9)},
        3,
        3,
        ("sum-merge", "sum-unparented"),
    ),
    (
        "prod(prod(where(r*4 + s == n, x, 1), s, 0, 4), r, 0, 4)",
        {"n": (0, 15), "x": (0, 3)},
        0,
        0,
        ("prod-merge", "prod-gather"),
    ),
    # the loop splits into the digits that the body asks for
    (
        "sum(where(r%4 < m, x, 0), r, 0, 16)",
        {"m": (0, 4), "x": (0, 9)},
        4,
        4,
        # residues are counted without that too
        (),
    ),
    (
        "sum(where(r%4 == n, where(r//4 == m, A[r], 0), 0), r, 0, 16)",
        {"n": (0, 3), "m": (0, 3)},
        3,
        3,
        ("mod-multiple", "gather"),
    ),
    (
        "sum(where(r//4 == n and r%4 < m, x, 0), r, 0, 16)",
        {"n": (0, 3), "m": (0, 4), "x": (0, 9)},
        3,
        3,
        ("mod-multiple", "sum-where-and", "gather"),
    ),
    (
        "sum((r//4)*x + r%4, r, 0, 4*n)",
        {"n": (0, 6), "x": (0, 9)},
        9,
        12,
        ("sum-distributes", "sum-factor"),
    ),
    (
        "max_over(r%4*3 + r//4 + x, r, 0, 16)",
        {"x": (-5, 9)},
        1,
        1,
        ("mod-multiple", "max-index"),
    ),
    (
        "max_over(max_over((r*4 + s)//2 + x, s, 0, 4), r, 0, 4)",
        {"x": (-5, 9)},
        1,
        14,
        ("max-index",),
    ),
]


def term_of(text: str, ranges: dict[str, tuple[int, int]]) -> Expr:
    return parse(text, {"A": buffer("A"), **{name: var(name, *bounds) for name, bounds in ranges.items()}})


@pytest.mark.parametrize(("text", "ranges", "cost", "alone", "names"), CASES, ids=[case[0] for case in CASES])
def test_all_that_is_named_is_needed(text, ranges, cost, alone, names):
    term = term_of(text, ranges)
    result = optimize(term, budget=PATIENT)
    assert result.cost <= cost
    check = result.check()
    # what an array holds is compared for one content
    assert check.equal
    assert check.kind == ("sampled" if "A[" in text else "exhaustive")
    by_rules = optimize(term, theory=False, budget=PATIENT)
    assert by_rules.cost <= alone
    assert by_rules.check().equal
    for name in names:
        others = [rule for rule in ALL if rule.name != name]
        assert len(others) == len(ALL) - 1
        without = optimize(term, theory=False, rules=others, budget=PATIENT)
        assert without.cost > by_rules.cost, name


def test_a_dividend_that_is_seen_to_be_positive_is_chosen():
    # multiplied out, or as n*(n*(n*2 - 3) + 1), it may be negative as far as bounds tell
    result = optimize("sum(r*r, r, 0, n)", n=(1, 9))
    assert (str(result.expr), result.cost) == ("n*(n - 1)*(n*2 - 1)//6", 14)
    assert result.check().equal
