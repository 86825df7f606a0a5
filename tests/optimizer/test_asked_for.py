"""Forms that users of other systems ask for: what is given, what is known, and what is found."""

from itertools import product

import numpy as np
import pytest

from eqsat.extract import COST_MODELS
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import buffer, const, maximum, minimum, var, where
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal

NAMES = {
    **{name: var(name, 0, 9) for name in "xys"},
    "z": var("z", -9, 9),
    "w": var("w", -9, 0),
    "A": buffer("A", "i32", (10,)),
}

FOUND = [
    # given, known, found
    ("shr(shl(z, s), s)", "", "z"),
    ("(z + 1 << s) - (x << s) >> s", "", "z - x + 1"),
    ("shr(shl(z, s % 4), s % 4) - z", "", "0"),
    ("max(x*y, x*z)", "", "x*max(y, z)"),
    ("min(x*y, x*z)", "", "x*min(z, y)"),
    ("max(w*y, w*z)", "", "w*min(z, y)"),
    ("min(w*y, w*z)", "", "w*max(y, z)"),
    ("where(s < 4, x*z, y*z)", "", "z*where(s < 4, x, y)"),
    ("A[x] - A[y]", "A[x] == A[y]", "0"),
    ("A[x]//4*4 + A[y] % 4 - A[x]", "A[x] == A[y]", "0"),
    ("A[x] + 1", "A[x] == 5", "6"),
    ("A[A[x]] - A[x]", "A[A[x]] == A[x]", "0"),
    ("where(A[x] == A[y], A[x] - A[y] + z, 7)", "", "where(A[y] == A[x], z, 7)"),
]


@pytest.mark.parametrize(("given", "known", "found"), FOUND)
def test_found(given, known, found):
    result = optimize(parse(given, NAMES), constraints=[parse(known, NAMES)] if known else [])
    assert result.check().equal
    wanted = parse(found, NAMES)
    # operands may stand in another order
    assert result.cost == cost_of([wanted], COST_MODELS["latency"])
    assert check_equal([wanted], result.exprs, constraints=result.constraints).equal


#: What is near: elements are not equal, shifts are not undone, a factor may have either sign.
NOT_FOUND = ["A[x] - A[y]", "(z << s) + 1 >> s", "(z << s) >> x", "max(z*x, z*y)", "min(z*x, z*y)"]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_not_found_where_it_is_not_true(text):
    term = parse(text, NAMES)
    result = optimize(term)
    assert result.cost == result.cost_before
    assert result.check().equal


def test_an_element_that_is_equal_to_a_sum_is_still_read_where_that_is_cheaper():
    array, x, y = NAMES["A"], NAMES["x"], NAMES["y"]
    assert optimize(array[x], constraints=[array[x].eq(y * 3 + x * 7)]).expr is array[x]


@pytest.mark.parametrize("seed", range(12))
def test_equal_elements_over_all_small_contents(seed):
    draws = np.random.default_rng(seed)
    a, x, y = buffer("A", "i32", (4,)), var("x", 0, 3), var("y", 0, 3)
    inside = [x, y, minimum(maximum(a[x], 0), 3), minimum(y + 1, 3)]
    elements = [a[i] for i in inside]

    def draw(of):
        return of[draws.integers(len(of))]

    facts = [draw(elements).eq(draw([*elements, x, y]) + draw([0, 0, 1])) for _ in range(draws.integers(1, 3))]
    facts = [fact for fact in facts if fact.vmin < fact.vmax]
    roots = [draw(elements) * 2 - draw(elements), where(draw(elements) < draw(elements), draw(elements), y) // 2]
    try:
        found = optimize(roots, constraints=facts).exprs
    except ContradictionError:
        # then there is no point to compare at
        found = (const(0), const(0))
    points = {"x": np.arange(4)[:, None], "y": np.arange(4)}
    for content in product(range(4), repeat=4):
        values = evaluate([*roots, *found, *facts], points, contents={"A": np.array(content)})
        before, after, known = values[:2], values[2:4], values[4:]
        for left, right in zip(before, after, strict=True):
            differ = np.broadcast_to(left != right, (4, 4))
            for fact in known:
                differ = differ & fact
            assert not differ.any()
