"""Quotients of polynomials that their divisors always divide, as one quotient."""

import pytest

from eqsat.extract import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize

RANGES = {"n": (-3, 20), "m": (0, 9), "x": (-9, 9)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(n*n + n)//2*4", "(n + 1)*n*2"),
        ("n*(n + 1)*(n*2 + 1)//6 - n*(n + 1)//2", "(n*n*n - n)//3"),
        ("(n*n*n - n)//3 + (n*n - n)//2 + n", "((n*2 + 3)*n + 1)*n//6"),
        ("(n*n + n)//2*n - (n*n*n - n)//6", "((n*n*2 + n*3) + 1)*n//6"),
        ("(n*n - n)//2*6 - x", "(n*n - n)*3 - x"),
    ],
)
def test_quotients_become_one(text, expected):
    result = optimize(text, **RANGES)
    assert result.check().equal
    names = {str(v.value): v for v in result.leaves.values()}
    assert result.cost <= cost_of([parse(expected, names)], Latency())


@pytest.mark.parametrize(
    "text",
    [
        # divisors that do not always divide
        "(n*n + n)//3*3 + (n*n + n)//2",
        "(n*n + 1)//2*4 - n",
        "(n*n + n)//2 + (n*n*n + n)//3",
        "(n*m + n)//2*2 + (m*m - m)//2",
        "(n*n + n)//2*(m//2) + (m*m + m)//2*(n//3)",
    ],
)
def test_what_leaves_a_remainder_keeps_its_value(text):
    assert optimize(text, **RANGES).check().equal
