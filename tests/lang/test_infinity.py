"""Infinite bounds: their arithmetic, and the ranges that variables without an end give to terms."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from strategies import unbounded_expressions

from eqsat.codegen.expressions import to_c
from eqsat.lang.dtypes import select_width
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import buffer, var
from eqsat.lang.functions import prod_over, sum_over
from eqsat.lang.ops import INFINITY
from eqsat.lang.sampling import REACHES, sample
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables

X, N = var("x", None, None), var("n", 1, None)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (INFINITY + 5, INFINITY),
        (5 - INFINITY, -INFINITY),
        (-3 * INFINITY, -INFINITY),
        (0 * -INFINITY, 0),
        (INFINITY * -INFINITY, -INFINITY),
        (-INFINITY // 7, -INFINITY),
        (-INFINITY // -7, INFINITY),
        (-1 // INFINITY, -1),
        (-1 // -INFINITY, 0),
        (INFINITY**3, INFINITY),
        ((-INFINITY) ** 3, -INFINITY),
        ((-INFINITY) ** 2, INFINITY),
        (INFINITY**0, 1),
        (abs(-INFINITY), INFINITY),
        (max(10**400, INFINITY), INFINITY),
        (min(-INFINITY, -(10**400)), -INFINITY),
        (sorted([INFINITY, 3, -INFINITY]), [-INFINITY, 3, INFINITY]),
        (sum([1, 2, INFINITY]), INFINITY),
        (float(-INFINITY), -math.inf),
        (INFINITY, math.inf),
        (INFINITY == 1 << 20_000, False),
        (f"{INFINITY:>4}", " inf"),
    ],
)
def test_limits(found, wanted):
    assert found == wanted


@pytest.mark.parametrize(
    "use",
    [
        lambda: INFINITY - INFINITY,
        lambda: INFINITY % 7,
        lambda: 7 % INFINITY,
        lambda: INFINITY & 7,
        lambda: 1 << INFINITY,
        lambda: int(INFINITY),
        lambda: INFINITY.bit_length(),
        lambda: np.array([INFINITY], dtype=np.int64),
    ],
)
def test_no_infinity_passes_for_a_number(use):
    with pytest.raises(OverflowError):
        use()


def test_copies_are_the_same():
    assert pickle.loads(pickle.dumps(-INFINITY)) is copy.deepcopy(-INFINITY) is -INFINITY
    assert pickle.loads(pickle.dumps(N * 8 + X)) is N * 8 + X


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("x % 8", (0, 7)),
        ("n % x", (-INFINITY, INFINITY)),
        ("100 // n", (0, 100)),
        ("-5 // n", (-5, -1)),
        ("n // (n + 6)", (0, INFINITY)),
        ("x * 0", (0, 0)),
        ("n * n + 3", (4, INFINITY)),
        ("-n", (-INFINITY, -1)),
        ("min(n, 9)", (1, 9)),
        ("max(x, n)", (1, INFINITY)),
        ("tmod(x, 5)", (-4, 4)),
        ("tdiv(x, n)", (-INFINITY, INFINITY)),
        ("shl(n, 3)", (8, INFINITY)),
        ("shr(x, min(n, 5))", (-INFINITY, INFINITY)),
        ("x < x + 1", (0, 1)),
        ("n < 1", (0, 0)),
        ("sum(2, r, 0, n)", (2, INFINITY)),
        ("max_over(r, r, 0, n)", (0, INFINITY)),
    ],
)
def test_bounds(text, bounds):
    term = parse(text, {"x": X, "n": N})
    assert (term.vmin, term.vmax) == bounds


@given(unbounded_expressions(zero_divisors=True))
def test_bounds_hold_at_sample_points(term):
    points = sample(variables([term]), [], 50, seed=1)
    parts = [part for part in topological([term]) if variables([part])]
    for part, values in zip(parts, evaluate(parts, points, total=True), strict=True):
        assert np.all(values >= part.vmin), part
        assert np.all(values <= part.vmax), part


def test_points_are_small_and_large():
    values = np.abs(sample([X], [], 1000, seed=0)["x"])
    for reach in REACHES:
        assert np.any((values > reach // 4) & (values <= reach))


def test_an_index_without_end():
    i = var("i", 0, 9)
    total = sum_over(i * 2, i, 0, N)
    assert pickle.loads(pickle.dumps(total)) is total
    assert total.args[1].vmax == INFINITY
    assert total.evaluate({"n": 4}) == 12
    with pytest.raises(ValueError, match="over inf values can have more than 10000 bits"):
        prod_over(i + 1, i, 0, N)


@pytest.mark.parametrize("bounds", [(1, 2.5), (math.inf, None), (INFINITY, None)])
def test_bounds_that_are_none(bounds):
    with pytest.raises(TypeError, match=r"bounds of variable 'n' must be integers.*None: no bound"):
        var("n", *bounds)


def test_c_needs_bounds():
    with pytest.raises(ValueError, match=r"no 64-bit integer holds: give bounds to 'n'") as caught:
        to_c([N + X])
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="give a size to the elements of 'f', such as i32"):
        select_width(buffer("f", "int")[var("i", 0, 7)])
