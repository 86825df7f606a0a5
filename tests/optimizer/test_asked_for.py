"""Forms that users of other systems ask for: what is given, what is known, and what is found."""

from itertools import product

import numpy as np
import pytest

from eqsat.extract import COST_MODELS
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import buffer, const, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal

NAMES = {
    **{name: var(name, 0, 9) for name in "xys"},
    "z": var("z", -9, 9),
    "w": var("w", -9, 0),
    "A": buffer("A", "i32", (10,)),
    **{"n": var("n", 1, 9), "q": var("q", -999, 999), "t": var("t", 0, 1), "i": var("i", 0, 63), "j": var("j", 0, 31)},
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

#: What users, and those who maintain them, asked of other systems: the system with the number of the report or change.
ASKED = [
    # where, given, known, found
    ("SymPy 15493", "q*3 % 2", "", "q % 2"),
    ("SymPy 15493", "q*4 % 4", "", "0"),
    ("SymPy 1997", "(z + n) % n", "", "z % n"),
    ("SymPy 1997", "n*4 % (n*2)", "", "0"),
    ("SymPy 1997", "x*n % (n*(x + 1))", "", "x*n"),
    ("SymPy 27304", "((z - x) % n + (x - z) % n) % n", "", "0"),
    ("SymPy 30300", "q//7 + ceildiv(-q, 7)", "", "0"),
    ("SymPy 27400", "q//3//5", "", "q//15"),
    ("SymPy 28744", "(8*(q//64 % 4) + q % 64//8) % 64", "", "q//8 % 32"),
    ("MLIR 202", "(z*2 + 1)//2", "", "z"),
    ("MLIR 202", "(x*8 + y*4 + s)//4", "", "x*2 + y + s//4"),
    ("MLIR 202", "(z*4 + 1) % 2", "", "1"),
    ("MLIR 202", "(z*2 + y*8) % 8", "", "z*2 % 8"),
    ("PyTorch 95076", "(x*8 + y*16)//8", "", "x + y*2"),
    ("TVM 3478", "(z*4 + 3)//4", "", "z"),
    ("TVM 13936", "q % 2 + (q + 1) % 2", "", "1"),
    ("TVM 13936", "(t + 1) % 2 * 8192", "", "8192 - t*8192"),
    ("TVM 17765", "64*(n + 1) % (31*(n + 1))", "", "n*2 + 2"),
    ("TVM 1711", "q//6*6 + q//3 % 2*3 + q % 3", "", "q"),
    ("TVM 5922", "x - (0 - y*5)//2 - 1 + (37 + (y + 7)*-5)//2", "", "x"),
    ("TVM 19832", "(x*10 + y) % 2", "", "y % 2"),
    ("TVM 2722", "max(x, z) + min(x, z)", "", "x + z"),
    ("TVM 2722", "min(x, z) - min(z, x)", "", "0"),
    ("TVM 2722", "(q - q % 7)//7", "", "q//7"),
    ("TVM 2722", "x*n//n + x*n % n", "", "x"),
    ("Halide 5100", "max(where(z == -1, 1, z), 6)", "", "max(z, 6)"),
    ("Halide 9324", "where(z < x, y, (where(z < x, s, x) + s)//3)", "", "where(z < x, y, (x + s)//3)"),
    ("Halide 1485", "where(x < y, max(x, z), max(x, s))", "", "max(x, where(x < y, z, s))"),
    ("Halide 1397", "min(max(min(z, 4), -4), 4)", "", "max(min(z, 4), -4)"),
    ("Halide 1397", "max(min(max(min(z, 4), -4) + 1, 4), -4)", "", "min(max(z + 1, -3), 4)"),
    ("Halide 1485", "where(x < y, min(x, z), min(x, s))", "", "min(x, where(x < y, z, s))"),
    ("Halide 1485", "min(min(x, y), max(x, y))", "", "min(x, y)"),
    ("Halide 6160", "where(z < x, 5 - y, 3) + 2", "", "where(z < x, 7 - y, 5)"),
    ("Halide 6160", "where(x < z, y, s) + (z - where(x < z, y, 0))", "", "z + where(x < z, 0, s)"),
    ("", "(i*32 + j)//32 % 64", "", "i"),
    ("", "q % 64 % 8", "", "q % 8"),
    ("", "i*32 + j < 2048", "", "True"),
    ("", "x + 1 <= y", "", "x < y"),
    ("", "not (x < y) and not (y < x)", "", "x == y"),
    ("", "x < y or x == y", "", "x <= y"),
    ("", "q//4 < 5", "", "q < 20"),
    ("", "q*4 < 10", "", "q < 3"),
    ("", "x - z < x - s", "", "s < z"),
    ("", "min(x, y) <= x", "", "True"),
    ("", "abs(-z) - abs(z)", "", "0"),
    ("", "max(-x, -y)", "", "-min(x, y)"),
    ("", "where(x < y, x, y)", "", "min(x, y)"),
    ("", "where(x == y, x, y)", "", "y"),
    ("", "where(x < y, 1, 0) == 1", "", "x < y"),
    ("", "(x ^ y) ^ y", "", "x"),
    ("", "(x << 3) & 7", "", "0"),
    ("", "x & 15", "", "x"),
    ("", "ceildiv(x*n, n)", "", "x"),
    ("", "(x + n - 1)//n - ceildiv(x, n)", "", "0"),
    ("", "sum(where(r == x, z, 0), r, 0, 10)", "", "z"),
    ("", "max_over(min(r, x), r, 0, 10)", "", "x"),
    ("", "x % n", "x < n", "x"),
    ("", "q % 64 % 8", "q % 8 == 0", "0"),
    ("", "max(x, y)", "x <= y", "y"),
]


@pytest.mark.parametrize(("given", "known", "found"), [*FOUND, *[row[1:] for row in ASKED]])
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
