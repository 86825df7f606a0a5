"""Terms: identity, bounds, evaluation, and what is refused."""

import gc
import pickle
import subprocess
import sys

import numpy
import pytest
from hypothesis import given, settings
from strategies import expressions, grid

from eqsat.egraph.trace import Spent
from eqsat.lang import expr, functions, traversal
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, as_expr, buffer, const, make, rebuild, substitute, var
from eqsat.lang.functions import maximum, minimum, sum_over, tdiv, tmod, where
from eqsat.lang.ops import DIVISIONS, ELEMENTS, INFINITY, OPS, OWN, SHIFTS, apply_to_numbers, np, telling_of_imports
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.lang.validation import integer_of, integers_of
from eqsat.optimizer.front import optimize
from eqsat.theory.arithmetic import Work

X, Y = var("x", -5, 7), var("y", 0, 3)
F, D, N = [expr.buffer(name, element, (4,))[Y] for name, element in (("F", "f32"), ("D", "f64"), ("N", "i32"))]


def plain(term: Expr, point: dict[str, int]) -> int | bool:
    """The value of a term at one point by Python's own operators: the meaning that evaluation must agree with."""
    if term.op == "where":
        return plain(term.args[1 if plain(term.args[0], point) else 2], point)
    args = [plain(arg, point) for arg in term.args]
    if term.op == "var":
        return point[term.value]
    if not args:
        return term.value
    if term.op in ("tdiv", "tmod"):
        quotient = abs(args[0]) // abs(args[1]) * (1 if (args[0] < 0) == (args[1] < 0) else -1)
        return quotient if term.op == "tdiv" else args[0] - args[1] * quotient
    if term.op in ("min", "max"):
        return {"min": min, "max": max}[term.op](args)
    symbol = OPS[term.op].symbol
    names = dict(zip("xy", args, strict=False))
    return eval(f"{symbol} x" if len(args) == 1 else f"x {symbol} y", names)


#: Python asks the right operand where the left is no term.
FROM_THE_RIGHT = [
    (7 << Y, "7 << y"),
    (64 >> Y, "64 >> y"),
    (6 & Y, "6 & y"),
    (6 | Y, "6 | y"),
    (6 ^ Y, "6 ^ y"),
    (True ^ (X < Y), "True != (x < y)"),
    (True & (X < Y), "True and x < y"),
    (False | (X < Y), "False or x < y"),
    (divmod(X, 4), "x//4, x%4"),
    (abs(X - 3), "max(x - 3, -(x - 3))"),
    (divmod(9, Y + 1), "9//(y + 1), 9%(y + 1)"),
]


@pytest.mark.parametrize(("built", "text"), FROM_THE_RIGHT, ids=lambda value: str(value))
def test_operators_take_numbers_on_the_left(built, text):
    assert (", ".join(map(str, built)) if isinstance(built, tuple) else str(built)) == text


def test_equal_terms_are_one_object():
    assert (X * 4 + Y) // 3 is (X * 4 + Y) // 3
    assert X + Y is not Y + X
    assert var("x", -5, 7) is X
    assert var("x", -5, 8) is not X


def test_terms_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        X.vmin = 3


@pytest.mark.parametrize("exponent", range(8))
def test_powers_are_what_python_computes(exponent):
    term = (X + Y) ** exponent
    assert term is parse(f"(x + y)**{exponent}", {"x": X, "y": Y})
    at = {"x": np.arange(-5, 8)[:, None], "y": np.arange(4)}
    assert np.array_equal(np.broadcast_to(term.evaluate(at), (13, 4)), (at["x"] + at["y"]) ** exponent)


def test_powers_of_floating_point_values_are_of_their_type():
    element = expr.buffer("A", "f64", (4,))[Y]
    assert [(element**n).element for n in (0, 1, 2)] == ["f64"] * 3


def test_bool_literals_are_not_the_numbers():
    assert as_expr(True) is TRUE
    assert as_expr(np.bool_(False)) is FALSE
    assert as_expr(1) is const(1) is as_expr(np.int64(1)) is not TRUE
    assert const(True) is as_expr(True) is TRUE
    assert const(False) is FALSE


BOUNDS = [
    (X + Y, -5, 10),
    (X - Y, -8, 7),
    (X * Y, -15, 21),
    (-X, -7, 5),
    (X // 2, -3, 3),
    (X // -2, -4, 2),
    (Y % 2, 0, 1),
    (Y % 9, 0, 3),
    (X % 4, 0, 3),
    (X % -4, -3, 0),
    (var("x", 8, 11) % 8, 0, 3),
    (tdiv(X, 2), -2, 3),
    (tmod(X, 4), -3, 3),
    (minimum(X, Y), -5, 3),
    (maximum(X, Y), 0, 7),
    (where(X < Y, X, 9), -5, 9),
    (X < 8, 1, 1),
    (X > 7, 0, 0),
    (X.eq(Y), 0, 1),
    (X.eq(9), 0, 0),
    (X << 2, -20, 28),
    (X >> 1, -3, 3),
    (X & 6, 0, 6),
    (X & -4, -8, 4),
    (Y | 4, 4, 7),
    (X ^ Y, -8, 7),
    (~X, -8, 4),
    # multiples of one term are no two numbers, but a difference of equal ones stays one
    (Y * 8 - Y, 0, 21),
    (X - X * 3, -14, 10),
    (Y * 8 - X, -7, 29),
    (Y - Y, -3, 3),
    # a square is never negative
    (X * X, 0, 49),
    ((X - 9) * (X - 9), 4, 196),
    ((X + 8) * (X + 8), 9, 225),
    (X * (X + 0), -35, 49),
]


@pytest.mark.parametrize(("term", "low", "high"), BOUNDS, ids=lambda value: str(value))
def test_bounds(term, low, high):
    assert (term.vmin, term.vmax) == (low, high)


#: The operators on two integers, but for those that a test has added.
BINARY = sorted(name for name, op in OPS.items() if op.takes == "ii" and name not in OWN)


def operands(op, values):
    """Which of some values an operator takes on its right, and what it makes of each pair; the left ones are rows."""
    taken = (values != 0) if op in DIVISIONS else (values >= 0) if op in SHIFTS else np.full(len(values), True)
    return taken, np.asarray(OPS[op].evaluate(values[:, None], np.where(taken, values, 1))).astype(np.int64)


@pytest.mark.parametrize("op", BINARY)
def test_bounds_of_small_ranges_are_the_ends(op):
    values = np.arange(-7, 9)
    taken, table = operands(op, values)
    ranges = [(low, high) for low in range(-7, 9) for high in range(low, 9)]
    for y in ranges:
        columns = taken & (values >= y[0]) & (values <= y[1])
        if not columns.any() or (op in SHIFTS and y[0] < 0):
            continue
        least, most = table[:, columns].min(1), table[:, columns].max(1)
        for x in ranges:
            low, high = OPS[op].bounds(x, y)
            ends = least[x[0] + 7 : x[1] + 8].min(), most[x[0] + 7 : x[1] + 8].max()
            if op in ("mod", "tmod") and (x[0] < x[1] or y[0] < y[1]):
                # remainders may leave out some
                assert low <= ends[0]
                assert ends[1] <= high
            else:
                assert (low, high) == ends


@pytest.mark.parametrize("op", BINARY)
def test_bounds_hold_in_ranges_without_an_end(op):
    values, endless = np.array([-(10**6), *range(-4, 5), 10**6]), [-INFINITY, *range(-4, 5), INFINITY]
    taken, table = operands(op, np.clip(values, -9, 9) if op in SHIFTS else values)
    places = [(low, high) for low in range(len(values) - 1) for high in range(max(low, 1), len(values))]
    for first, last in places:
        columns = taken & (np.arange(len(values)) >= first) & (np.arange(len(values)) <= last)
        # an amount to shift by has an end
        if not columns.any() or (op in SHIFTS and (values[first] < 0 or last == len(values) - 1)):
            continue
        least, most = table[:, columns].min(1), table[:, columns].max(1)
        for start, stop in places:
            low, high = OPS[op].bounds((endless[start], endless[stop]), (endless[first], endless[last]))
            assert low <= least[start : stop + 1].min()
            assert most[start : stop + 1].max() <= high


@pytest.mark.parametrize("element", ["i32", "i64", "f32", "f64"])
def test_an_element_is_any_value_of_its_type(element):
    term = buffer("A", element)[X]
    if element[0] == "i":
        info = np.iinfo(f"int{element[1:]}")
        assert (term.vmin, term.vmax) == (info.min, info.max)
    else:
        info = np.finfo(f"float{element[1:]}")
        assert term.vmin <= int(info.min)
        assert int(info.max) <= term.vmax


@pytest.mark.parametrize(
    ("op", "numbers"),
    [
        ("mod", (7, 0)),
        ("tdiv", (7, 0)),
        ("shl", (1, -1)),
        ("shl", (1, 64)),
        ("shr", (1, 64)),
        ("mul", (2**6000, 2**6000)),
    ],
)
def test_numbers_that_an_operator_does_not_take_are_an_arithmetic_error(op, numbers):
    with pytest.raises(ArithmeticError):
        apply_to_numbers(op, numbers)
    assert apply_to_numbers("shr", (2**63, 63)) == 1


@given(expressions())
def test_bounds_hold_at_every_point(drawn):
    term, inputs = drawn
    values = evaluate(topological([term]), grid(inputs), total=True)
    for part, results in zip(topological([term]), values, strict=True):
        assert part.vmin <= results.min()
        assert results.max() <= part.vmax


@given(expressions())
@settings(max_examples=50)
def test_evaluation_means_what_python_means(drawn):
    term, inputs = drawn
    points = grid(inputs)
    results = np.broadcast_to(term.evaluate(points), len(next(iter(points.values()), [0])))
    for index in range(0, len(results), 7):
        assert results[index] == plain(term, {name: int(column[index]) for name, column in points.items()})


def test_evaluation_gives_each_term_its_own_axes():
    a, b = np.arange(3).reshape(3, 1), np.arange(4).reshape(1, 4)
    x, y = var("x", 0, 2), var("y", 0, 3)
    results = evaluate([x * 2, x + y, const(5)], {"x": a, "y": b})
    assert [result.shape for result in results] == [(3, 1), (3, 4), ()]
    assert all(result.dtype == np.int64 for result in results)


@pytest.mark.parametrize("size", [31, 62, 63, 70, 200])
def test_evaluation_is_exact_at_every_width(size):
    x = var("x", -(2**size), 2**size)
    values = np.array([2**size, -(2**size), 3], dtype=object)
    wanted = [(value * 6 - 5) // 7 for value in values.tolist()]
    assert ((x * 6 - 5) // 7).evaluate({"x": values}).tolist() == wanted


def test_elements_of_arrays_that_are_not_given_are_at_every_place():
    x = var("x", -(2**70), 2**70)
    places = np.array([2**70, -(2**63) - 1, 2**63, 5, -5], dtype=object)
    for element in ("i32", "i64", "f32", "bool"):
        array = buffer("A", element)
        (found,) = evaluate([array[x]], {"x": places})
        # a place has the same element whatever type holds it
        (small,) = evaluate([array[var("y", -9, 9)]], {"y": [5, -5]})
        assert found[3:].tolist() == small.tolist()
        assert evaluate([array[x]], {"x": 2**70})[0] == found[0]


@pytest.mark.parametrize("element", ["bool", "i32", "i64"])
def test_elements_of_arrays_that_are_not_given_are_of_their_type(element):
    (found,) = evaluate([buffer("A", element)[var("x", 0, 99)]], {"x": np.arange(100)})
    low, high = ELEMENTS[element]
    assert low <= int(found.min()) < int(found.max()) <= high


@pytest.mark.parametrize("x", [-(2**63), 2**63, 10**20, -(10**20)])
@pytest.mark.parametrize("divisor", [7, -1, 2**64])
def test_truncated_quotients_of_single_values_are_exact(x, divisor):
    single = var("x", x, x)
    quotient = abs(x) // abs(divisor) * (1 if (x < 0) == (divisor < 0) else -1)
    assert tdiv(single, divisor).evaluate({"x": x}).tolist() == quotient
    assert tmod(single, divisor).evaluate({"x": x}).tolist() == x - divisor * quotient


def test_reductions_are_exact_across_the_end_of_int64():
    r, n = var("r", 0, 9), var("n", 0, 3)
    wanted = [sum(range(2**63 - 2, 2**63 + k)) for k in range(4)]
    assert sum_over(r, r, 2**63 - 2, n + 2**63).evaluate({"n": range(4)}).tolist() == wanted


def test_a_zero_divisor_that_does_not_matter_is_harmless():
    x, d = var("x", 0, 2**70), var("d", -2, 2)
    safe = where(d.ne(0), x // d + tmod(x, d), -1)
    assert safe.evaluate({"x": [7, 7, 2**70], "d": [0, 2, -1]}).tolist() == [-1, 4, -(2**70)]


#: Terms at x = 8 and some values of y, and their values, or the division by zero that they need.
DIVIDING = [
    ("x//y", [1, 2], [8, 4]),
    ("x//y", [1, 0], "x//y"),
    ("x%y + 1", [0], "x%y"),
    ("tdiv(x, y)", [0], "tdiv(x, y)"),
    ("tmod(x, y*y)", [0, 1], "tmod(x, y*y)"),
    # a variable that is given a value outside of its range
    ("x//o", [0, 2], "x//o"),
    ("where(y != 0, x//y, 7)", [0, 1], [7, 8]),
    ("where(y == 0, x//y, 7)", [1, 2], [7, 7]),
    ("where(y == 0, x//y, 7)", [1, 0], "x//y"),
    ("where(x//y < 3, 1, 2)", [4, 0], "x//y"),
    ("where(x < 9, 7, where(y == 0, x//y, 1))", [0, 1], [7, 7]),
    ("y != 0 and x//y < 3", [0, 4], [False, True]),
    ("x//y < 3 and y != 0", [0, 4], [False, True]),
    ("y == 0 or x//y < 3", [0, 4], [True, True]),
    ("y != 0 or x//y < 3", [1, 0], "x//y"),
    ("min(x, x//y)", [0], "x//y"),
    ("sum(x//r, r, y, 3)", [1, 2], [12, 4]),
    ("sum(x//r, r, y, 3)", [1, 0], "x//r1"),
    ("sum(x//y, r, 0, y)", [0, 2], [0, 8]),
    ("sum(x//y, r, 0, y) + x//y", [0, 2], "x//y"),
    ("sum(1, r, 0, x//y)", [0], "x//y"),
    ("A[x//y]", [2, 0], "x//y"),
    ("where(y == 0, 0, where(A[x//y] < A[x//y] + 1, 1, 0))", [2, 0], [1, 0]),
]


@pytest.mark.parametrize(("text", "values", "wanted"), DIVIDING)
def test_a_needed_division_by_zero_is_refused(text, values, wanted):
    names = {"x": var("x", 0, 9), "y": var("y", 0, 9), "o": var("o", 1, 9), "A": buffer("A", "i32", (9,))}
    term = parse(text, names)
    at = {"x": 8, "y": values, "o": values}
    if isinstance(wanted, list):
        assert np.broadcast_to(term.evaluate(at), len(values)).tolist() == wanted
        return
    with pytest.raises(ZeroDivisionError) as refused:
        term.evaluate(at)
    assert str(refused.value).startswith(f"division by zero: {wanted!r} is needed where ")
    evaluate([term], at, total=True)


def test_where_nothing_is_evaluated_nothing_is_divided():
    assert (var("x", 0, 9) // var("y", 0, 9)).evaluate({"x": [], "y": []}).shape == (0,)


@pytest.mark.parametrize("term", [TRUE, const(3), X * 0 + 3, Y < 4])
def test_a_term_of_one_value_has_its_truth(term):
    assert bool(term)
    assert not bool(~term if term.is_bool else term * 0)


def test_a_missing_value_is_named():
    with pytest.raises(KeyError, match="'y'"):
        (X + Y).evaluate({"x": 3})


def _sums(depth: int) -> Expr:
    """Sums within each other, each over an index of its own."""
    found = X
    for place in range(depth):
        index = var(f"i{place}", 0, 3)
        found = sum_over(found + index, index, 0, 3)
    return found


REFUSED = [
    (lambda: X // 0, ValueError, "division by zero"),
    (lambda: topological(X + 1), TypeError, r"the roots must be a list of terms, not Expr\('x \+ 1'\)"),
    (lambda: X % (Y * 0), ValueError, "always 0"),
    (lambda: X << 64, ValueError, r"shift amount '64' has range \[64, 64\]"),
    (lambda: X >> (Y - 1), ValueError, r"\[-1, 2\]: it must lie in \[0, 63\]"),
    (lambda: var("x", 3, 2), ValueError, r"the range of variable 'x' is empty: \[3, 2\]"),
    (lambda: var("x y", 0, 2), ValueError, "not a variable name"),
    (lambda: var("e\u0301", 0, 2), ValueError, "'e\u0301' is not a variable name: use letters"),
    (lambda: expr.buffer("a\u00b7b"), ValueError, "'a\u00b7b' is not a buffer name: use letters"),
    (lambda: var("not", 0, 2), ValueError, "'not' is not a variable name: .* but not and, or, not, True, False"),
    (lambda: expr.buffer("True"), ValueError, "'True' is not a buffer name"),
    (lambda: (X < Y) + 1, TypeError, "needs an integer"),
    (lambda: where(X, 1, 2), TypeError, "needs a condition"),
    (lambda: where(X < Y, 1, TRUE), TypeError, "condition"),
    (lambda: make("add", X), TypeError, "takes 2 operands, not 1"),
    (lambda: make("neg", X, Y), TypeError, "neg takes 1 operand, not 2"),
    (lambda: make("sum_over", X, Y), TypeError, r"takes 4 operands \(body, index, low, high\), not 2"),
    (lambda: make("fdiv", D), TypeError, "fdiv takes 2 operands, not 1"),
    (lambda: make("fdiv", D, X < Y), TypeError, "fdiv needs a number where 'x < y' stands"),
    (lambda: make("nope", X), ValueError, "unknown operator 'nope': one of your own is made by eqsat.operator"),
    (lambda: X[0], TypeError, "'x' is not an array: only buffers are subscripted"),
    (lambda: 1 / X, TypeError, "'x' is an integer: use // for whole quotients"),
    (lambda: _sums(65), ValueError, "reductions nest more than 64 deep in 'sum"),
    (lambda: bool(X < Y), TypeError, "truth of 'x < y' depends"),
    (lambda: min(X, Y), TypeError, "truth of 'y < x' depends .* minimum, maximum"),
    (lambda: make("and", X, TRUE), TypeError, "and needs a condition where 'x' is an integer: for its bits write &"),
    (lambda: X & (X < Y), TypeError, r"bitand needs an integer where 'x < y' is a condition: as a number it is where"),
    (lambda: sum_over(X < Y, X, 0, 3), TypeError, r"sum_over needs an integer .* a condition: as a number it is where"),
    (lambda: (X < Y) + 1, TypeError, r"add needs an integer where 'x < y' is a condition: as a number it is where"),
    (lambda: (X < Y) ^ 1, TypeError, r"bitxor needs an integer where 'x < y' is a condition"),
    (lambda: X | D, TypeError, r"bitor needs an integer where 'D\[y\]' is a floating-point value"),
    (lambda: ~D, TypeError, r"~ needs an integer or a condition where 'D\[y\]' is a floating-point value"),
    (lambda: ~D.args[0], TypeError, r"~ needs an integer or a condition where 'D' is an array"),
    (lambda: 64 >> X, ValueError, "shift amount 'x'"),
    (lambda: X.substitute({"x": 3}), TypeError, "'x' is no term to replace: give a variable itself, not its name"),
    (lambda: var("x", 0, 2.5), TypeError, "the bounds of variable 'x' must be integers, not 0 and 2.5"),
    (lambda: var("x", 0, np.array([3])), TypeError, "the bounds of variable 'x' must be integers"),
    (lambda: integer_of(np.array([3]), "the value of 'n'"), TypeError, "the value of 'n' is given as array"),
    (lambda: integers_of([np.array([3])], "the sizes"), TypeError, "the sizes are given as .array"),
    (lambda: var(5, 0, 3), TypeError, "the name of a variable must be a text, not 5"),
    (lambda: expr.buffer(5), TypeError, "the name of a buffer must be a text, not 5"),
    (lambda: expr.buffer("A", "i32", 3), TypeError, "the shape of buffer 'A' must be a sequence of integers, not 3"),
    (lambda: sum_over(X, 3, 0, 5), TypeError, "sum_over needs a variable as its index, not 3"),
    (lambda: expr.Expr("x"), TypeError, "made by var, const, parse and operators"),
    (lambda: X**Y, ValueError, "the exponent 'y' is not a number from 0 to 1000"),
    (lambda: X**-1, ValueError, "the exponent '-1' is not a number from 0 to 1000"),
    (lambda: X**1.5, ValueError, "the exponent '1.5' is not a number from 0 to 1000"),
    (lambda: (X < 2) ** 2, TypeError, "condition"),
    (lambda: X.evaluate({"x": 1.5}), TypeError, "the values of variable 'x' are of type float64: give integers"),
    (lambda: X.evaluate({"x": "7"}), TypeError, "the values of variable 'x' are of type <U1: give integers"),
    (lambda: expr.buffer("A", ["i32"]), ValueError, r"unknown type \['i32'\]: use one of bool, i32"),
    (lambda: const("3"), TypeError, "'3' is no integer: give an int"),
    (lambda: const(2.5), TypeError, "2.5 is no integer: give an int"),
    (lambda: X * 10**5000, ValueError, r"the product 'x' \* '0x[0-9a-f]*\.\.\.' can have more than 10000 bits"),
    (lambda: as_expr("i"), TypeError, "'i' is not an index expression"),
    (lambda: X + np.array([1, 2]), TypeError, r"array\(\[1, 2\]\) is not an index expression"),
    (lambda: X + np.ones((2, 2), int), TypeError, "ndarray is not an index expression"),
    (lambda: variables([X, var("x", 0, 1)]), ValueError, "two ranges"),
    (lambda: D * 10**400, ValueError, "an integer of 1329 bits is too large for f64"),
    (lambda: F * 10**50, ValueError, r"the literal 1e\+50 is too large for f32"),
    (lambda: F > 1e39, ValueError, r"the literal 1e\+39 is too large for f32"),
    (lambda: as_expr(1e39).evaluate({}), ValueError, r"the literal 1e\+39 is too large for f32"),
    (lambda: D.args[0].evaluate({}), ValueError, r"'D' is an array, not a value: index it"),
    (lambda: D.evaluate({"y": 0}, {"D": [[0.5]]}), ValueError, "array 'D' has 1 index, but its contents have 2 axes"),
    (lambda: D.evaluate({"y": 0}, {"D": []}), ValueError, "the contents of array 'D' are empty"),
]


@pytest.mark.parametrize(("build", "error", "message"), REFUSED)
def test_refused_with_one_line(build, error, message):
    with pytest.raises(error, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


ROUNDED = [
    # a term, its type, its text
    (lambda: D * 0.1, "f64", "D[y]*0.1"),
    (lambda: 0.1 - D, "f64", "0.1 - D[y]"),
    (lambda: 1 / D, "f64", "1.0/D[y]"),
    (lambda: D / 0.1, "f64", "D[y]/0.1"),
    (lambda: D * 1e300, "f64", "D[y]*1e+300"),
    (lambda: D + 1e-50, "f64", "D[y] + 1e-50"),
    (lambda: D.eq(0.1), None, "D[y] == 0.1"),
    (lambda: where(X < 3, 0.1, D), "f64", "where(x < 3, 0.1, D[y])"),
    (lambda: as_expr(np.float64(0.1)) * 0.3, "f64", "0.1*0.3"),
    (lambda: D * np.float32(0.1), "f64", "D[y]*0.10000000149011612"),
    (lambda: (F * 0.1) * D, "f64", "F[y]*0.10000000149011612*D[y]"),
    (lambda: F * np.float64(0.1), "f32", "F[y]*0.10000000149011612"),
    (lambda: D + N, "f64", "D[y] + to_double(N[y])"),
    (lambda: X / D, "f64", "to_double(x)/D[y]"),
    (lambda: where(X < 3, D, X), "f64", "where(x < 3, D[y], to_double(x))"),
    (lambda: X < D, None, "to_double(x) < D[y]"),
    (lambda: D * functions.to_float(X), "f64", "D[y]*to_float(x)"),
    (lambda: functions.to_double(X) * F, "f64", "to_double(x)*F[y]"),
    (lambda: F * X, "f32", "F[y]*to_float(x)"),
    (lambda: functions.sum_over(0.1, X, 0, 3), "f32", "sum(0.10000000149011612, r1, 0, 3)"),
]


@pytest.mark.parametrize(("build", "element", "text"), ROUNDED, ids=[row[2] for row in ROUNDED])
def test_a_number_is_rounded_once_to_the_type_of_what_it_stands_beside(build, element, text):
    term = build()
    assert term.element == element
    assert str(term) == text


def test_a_literal_alone_keeps_its_digits_until_it_has_a_type():
    literal = as_expr(0.1)
    assert pickle.loads(pickle.dumps(literal)) is literal
    assert literal.evaluate({}) == np.float32(0.1)
    assert str(F * np.inf) == "F[y]*inf()"
    assert (F * literal).args[1] is expr.literal_float(0.1, "f32")


def test_substitution_is_simultaneous():
    k = var("k", 0, 9)
    assert substitute([X + Y, X], {X: Y, Y: k}) == [Y + k, Y]


def test_literals_of_any_size():
    assert (const(2**70) * X).vmax == 7 * 2**70


def test_terms_that_differ_by_a_literal_are_in_one_order():
    # -1 and -2 have one hash in Python, 0 and 2**61 - 1 too
    numbers = [-2, -1, 0, 1, 2**61 - 1, 2**61, -(2**61) - 1]
    assert len({(X * number).key for number in numbers}) == len(numbers)
    f = expr.buffer("f", "int")
    x, y = f[X, -1], f[X, -2]
    assert str(optimize(where((x * y).eq(y * x), 1, X)).expr) == "1"


def deep(levels: int) -> Expr:
    term = X
    for level in range(levels):
        term = (term + level % 3) // 2
    return term


def test_five_thousand_levels():
    term = deep(5000)
    assert term.evaluate({"x": [0]}).shape == (1,)
    assert len(str(term)) > 5000
    assert len(repr(term)) > 5000
    assert rebuild([term], lambda t, args: None) == [term]
    assert pickle.loads(pickle.dumps(term)) is term
    assert term.substitute({X: Y}) is not term


@given(expressions())
@settings(max_examples=30)
def test_pickling_gives_the_same_object(drawn):
    assert pickle.loads(pickle.dumps(drawn[0])) is drawn[0]


def test_terms_that_nothing_uses_are_forgotten():
    gc.collect()
    traversal.sweep()
    before = len(traversal.in_use)
    term = deep(500)
    for number in range(1 << 16):
        const(10**6 + number)
    assert len(traversal.in_use) <= 3 * max(before, traversal.MIN_SWEPT)
    traversal.sweep()
    # a term keeps those below it
    assert before + 500 <= len(traversal.in_use)
    assert deep(500) is term
    del term
    gc.collect()
    traversal.sweep()
    assert len(traversal.in_use) == before


def test_what_an_array_holds_is_no_value_of_a_variable():
    a, i = buffer("A", "i32", (3,)), var("i", 0, 2)
    assert a[i].evaluate({"i": 1}, {"A": [5, 6, 7]}) == 6
    with pytest.raises(ValueError, match="'A' is an array, no variable: give what it holds as the second argument"):
        a[i].evaluate({"i": 1, "A": [5, 6, 7]})


def test_numpy_is_imported_when_arrays_are_evaluated():
    program = (
        "import sys; from eqsat import optimize, var; i = var('i', 0, 9);"
        "optimize((i*32 + i)//32 + i*3); print('numpy' in sys.modules);"
        "i.evaluate({'i': [1]}); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_what_an_import_takes_does_not_count_as_time_of_a_run():
    work, spent = Work(until=7.0, end=8.0), Spent()
    began = spent.started
    spent.deadlines = work
    with telling_of_imports(spent.skip_import):
        # as in a process that has not used NumPy before
        assert type(np)("numpy").ndarray is numpy.ndarray
    taken = spent.started - began
    assert taken > 0
    assert (work.until, work.end) == pytest.approx((7 + taken, 8 + taken))
