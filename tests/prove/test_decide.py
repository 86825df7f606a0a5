"""Decision procedures: what each decides, that what they say is true, and that near misses are never proved."""

import sys
from collections.abc import Iterator
from functools import partial, reduce
from itertools import count, islice, product
from operator import and_

import pytest
from corpora import HAND, SEEDS, cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from index_terms import index_terms
from strategies import bool_expressions

from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, substitute, var
from eqsat.lang.functions import tdiv
from eqsat.lang.ops import BITWISE, DIVISIONS, SHIFTS
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.prove import boxes
from eqsat.prove.boxes import UndecidedError, period, restricted, sweep
from eqsat.prove.decide import METHODS, decide
from eqsat.prove.presburger import find_by_isl
from eqsat.prove.verify import check_equal, prove_equal

WIDE = (-(2**40), 2**40)
INT = (-(2**31), 2**31 - 1)
SIZE = (1, 2**31 - 1)


def read(text: str, ranges: dict[str, tuple[int, int | None]]) -> list[Expr]:
    """The conditions that ``text`` separates by semicolons."""
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    return [parse(part, names) for part in text.split(";")]


LINEAR, SYMBOLIC = {"isl", "z3", "boxes"}, {"z3", "cases"}

NOWHERE = [
    # conditions that hold together nowhere, ranges, methods that show it
    ("x // 64 * 64 + x % 64 != x", {"x": WIDE}, LINEAR),
    ("(x*6 + 5) // 3 != x*2 + 1", {"x": WIDE}, LINEAR),
    ("tdiv(x, -4) != -where(x < 0, -(-x // 4), x // 4)", {"x": INT}, {"isl", "z3", "boxes"}),
    ("where(x < 0, x + 10, x) % 10 != x % 10; x >= -10", {"x": INT}, LINEAR),
    ("min(x // 3, 5) != min(x, 15) // 3", {"x": WIDE}, LINEAR),
    ("x != y*12 + 5; x % 12 == 5; x // 12 == y", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    ("i*4096 + j*64 + k != x; x // 4096 == i; x // 64 % 64 == j; x % 64 == k",
     {"i": (0, 99), "j": (0, 63), "k": (0, 63), "x": (0, 2**20)}, {"isl"}),
    ("(x*n + y) // n != x; y < n", {"x": INT, "y": (0, 2**31 - 1), "n": SIZE}, {"z3"}),
    ("(x*n + y) // n != x; y < n", {"x": INT, "y": (0, 49), "n": (1, 50)}, SYMBOLIC),
    ("x // d * d + x % d != x", {"x": INT, "d": (1, 9)}, {*SYMBOLIC, "boxes"}),
    ("x * y % 8 // 4 != x * y // 4 % 2", {"x": INT, "y": INT}, {"isl"}),
    ("shl(x, s) // 2 != shl(x, s - 1)", {"x": INT, "s": (1, 20)}, {"cases", "boxes"}),
    ("where(x < 0, y < 3, y < 5); x < 0; 2 < y", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    ("(x < y) == (y < x + 1)", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    ("(x < y) != (y < x); x != y; not (x < y or y < x)", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    ("(x < y) != (0 < y - x)", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    # a quotient by zero may have any value, but only where it is not used
    ("where(d != 0, x // max(d, 1), 7) != where(d == 0, 7, x // d)", {"x": INT, "d": (0, 4)}, {"cases", "boxes"}),
]  # fmt: skip

SOMEWHERE = [
    ("x // 4096 * 4096 + x % 4095 == x; x > 5000", {"x": (0, 2**31)}, {"isl", "z3", "boxes"}),
    ("x % 1000000 == 999999", {"x": WIDE}, {"isl", "z3"}),
    ("x != min(x, 1099511627775)", {"x": WIDE}, {"isl", "z3", "boxes"}),
    ("(x*n + y) // n != x; y <= n", {"x": INT, "y": (0, 20), "n": (1, 20)}, {"cases", "boxes"}),
    ("where(x < 0, y < 3, y < 5) == (y < 3); 3 <= y; y < 5", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    ("(x < 4) != (y < x); y == 70000; x > 5", {"x": WIDE, "y": WIDE}, {"isl", "z3"}),
    # at an end of the range, and nowhere else
    ("x*x*x == -729", {"x": (-9, 9)}, {"isl", "z3", "boxes", "cases"}),
    ("x*x*x == 729", {"x": (-9, 9)}, {"z3", "boxes", "cases"}),
    # a product by what is no literal, and what a mask leaves, have other periods than their operands
    ("x*y % 1000 == 999", {"x": (0, 2**40), "y": (0, 9)}, {"cases", "boxes"}),
    ("(x & y) + 8 < x", {"x": (0, 2**40), "y": (0, 7)}, {"boxes"}),
    ("x*7 + y*11 == 36893488147419103233; y < x", {"x": (0, 2**63), "y": (0, 2**63)}, {"isl"}),
]


@pytest.mark.parametrize(("text", "ranges", "methods"), NOWHERE)
def test_what_holds_nowhere(text, ranges, methods):
    for method in METHODS:
        found = decide([read(text, ranges)], 10 if method in methods else 0.05, [method])
        assert found.point is None
        if method in methods:
            assert (found.methods, found.undecided) == ((method,), "")


@pytest.mark.parametrize(("text", "ranges", "methods"), SOMEWHERE)
def test_what_holds_somewhere(text, ranges, methods):
    conditions = read(text, ranges)
    for method in METHODS:
        found = decide([conditions], 10 if method in methods else 0.05, [method])
        assert found.undecided or found.point
        if method in methods:
            assert all(evaluate(conditions, found.point))


def test_a_question_without_points_by_its_bounds_needs_no_method():
    x = var("x", 0, 9)
    assert decide([[x > 9]], 1).methods == ("bounds",)


def test_without_packages_boxes_remain(monkeypatch):
    for package in ("islpy", "z3"):
        monkeypatch.setitem(sys.modules, package, None)
    # a clock that counts how often it is asked, so that a busy machine has the same time
    for module in ("decide", "boxes"):
        monkeypatch.setattr(f"eqsat.prove.{module}.monotonic", partial(next, count(step=1e-3)))
    x, y = var("x", *WIDE), var("y", *WIDE)
    assert decide([[(x // 8 * 8 + x % 8).ne(x)]], 1).methods == ("boxes",)
    undecided = decide([[x.eq(y * 2), (x % 2).eq(1)]], 0.2).undecided
    assert "islpy is not installed" in undecided
    assert "z3 is not installed" in undecided
    assert undecided.count("pip install 'eqsat[check]'") == 1


def test_long_questions_stop_in_time():
    x = var("x", *WIDE)
    term = x
    for k in range(300):
        term = (term * 3 + k) // 2 - (term + k) % 7
    for method in METHODS:
        assert decide([[term.eq(x)]], 0.2, [method]).point is None


PERIODS = [
    # conditions, the period of x, by what it is right
    ("x % 6 == 1", 6, "a remainder is periodic"),
    ("x*4 % 6 == 2", 3, "6/gcd(4, 6)"),
    ("x // 4 * 4 + x % 4 == x", 4, "both sides move by 4"),
    ("x // 4 == x // 6", None, "3 steps against 2 in 12"),
    ("x // 4 // 3 == x // 12", 12, "quotients of quotients"),
    ("x // -4 * -4 + x % -4 == x", 4, "negative divisors"),
    ("(x % 4 + x % 6) % y == 0", 12, "any operator on periodic operands"),
    ("min(x, x + 1) == x", 1, "both move by 1"),
    ("where(y < 5, x, x + y) % 8 == 0", 8, "the selection moves by 1"),
    ("(x * 3 - x) % 8 == 0", 4, "the difference moves by 2"),
    ("(x * 3 + -x) % 8 == 0", 4, "the sum moves by 2"),
    ("x < y", None, "x moves, y does not"),
    ("min(x, y) == 0", None, "x moves, y does not"),
    ("where(y < 5, x, y) == 0", None, "x moves, y does not"),
    ("x * y == 0", None, "moves by y"),
    ("97 // (x + 1) == 0", None, "no literal divides"),
    ("x % y == 0", None, "no literal"),
    ("x % 4 == 0; x % 6 == 0", 12, "all conditions"),
    ("x % 1000 == 0; x % 1001 == 0", None, "longer than the range"),
    ("(x & y) % 16 == 0", 16, "y has no bit beyond the fourth"),
    ("(x & n) % 16 == 0", None, "n has bits without end"),
    ("(x | -1 - n) % 16 == 0", None, "so has its complement"),
]


@pytest.mark.parametrize(("text", "expected", "why"), PERIODS)
def test_periods(text, expected, why):
    conditions = read(text, {"x": (0, 10**5), "y": (1, 9), "n": (0, None)})
    assert period(conditions, var("x", 0, 10**5)) == expected, why


WITHIN = [
    # condition, narrower ranges, what is left
    ("x < 50", {"x": (0, 49)}, []),
    ("x < 50", {"x": (50, 99)}, None),
    ("x % 64 + y > 4 and y < 9", {"x": (64, 80)}, ["4 < x - 64 + y", "y < 9"]),
    ("tdiv(x - 50, 4) == y", {"x": (0, 49)}, ["-(-(x - 50)//4) == y"]),
    ("shl(x, y) == 8", {"y": (2, 2)}, ["x*4 == 8"]),
    ("shl(x, y) == 8", {"y": (2, 3)}, ["x << y == 8"]),
    ("x & 7 == 5", {}, ["x%8 == 5"]),
    ("-20 & x == 5", {}, ["x - (x%4 + x//16%2*16) == 5"]),
    ("x | 5 == 5", {}, ["x + 5 - (x%2 + x//4%2*4) == 5"]),
    ("x ^ 6 == 5", {}, ["x + 6 - x//2%4*2*2 == 5"]),
    ("x ^ y == 5", {}, ["x ^ y == 5"]),
    ("tdiv(x, y) == 8", {"y": (2, 3)}, ["tdiv(x, y) == 8"]),
    ("x % y == 1", {"x": (4, 5), "y": (2, 3)}, ["x%y == 1"]),
    ("max(x, y) == 40", {"x": (20, 60)}, ["x == 40"]),
    # ranges that touch
    ("max(x, y) == 5", {"x": (0, 4), "y": (4, 9)}, ["y == 5"]),
    ("min(x, y) == 3", {"x": (0, 4), "y": (4, 9)}, ["x == 3"]),
    ("min(x, y) == 3", {"x": (4, 9), "y": (0, 4)}, ["y == 3"]),
    ("x < 50 and y < 3 or y == 5", {"x": (0, 49)}, ["y < 3 or y == 5"]),
    ("x < 50 and y < 3 or y == 5", {"x": (50, 99)}, ["y == 5"]),
    ("(x < 50 or y < 3) and y < 5", {"x": (50, 99)}, ["y < 3", "y < 5"]),
    ("(x < 50 or y < 3) == (y < 5)", {"x": (0, 49)}, ["True == (y < 5)"]),
    ("where(y > 0, x // max(y, 1), x) == 5", {"y": (0, 0)}, ["x == 5"]),
]


@pytest.mark.parametrize(("text", "ranges", "left"), WITHIN)
def test_conditions_within_narrower_ranges(text, ranges, left):
    found = restricted(read(text, {"x": (0, 99), "y": (0, 9)}), ranges)
    assert (found if found is None else [str(condition) for condition in found]) == left


@pytest.mark.parametrize("op", ["floordiv", "mod", "tdiv", "tmod", "min", "max", *sorted(SHIFTS | BITWISE)])
def test_operators_on_literals_keep_their_values(op):
    y = var("y", -12, 12)
    for low, extent, literal in product(range(-5, 4), range(5), range(-4, 5)):
        if literal > 0 or op in ("min", "max", *BITWISE) or (literal and op not in SHIFTS):
            condition = make(op, var("x", low, low + extent), const(literal)).eq(y)
            left = restricted([condition], {})
            assert check_equal([condition], [FALSE if left is None else reduce(and_, left, TRUE)]).equal


def test_a_quotient_by_zero_may_be_anything():
    x, d = var("x", 0, 99), var("d", 0, 1)
    (unspecified,) = restricted([(x // d).eq(5)], {"d": (0, 0)})
    (value,) = variables([unspecified])
    assert value is not x
    assert (value.vmin, value.vmax) == (0, 99)


# what is said is true

quickly = settings(max_examples=60)


@pytest.fixture
def small_leaves(monkeypatch):
    """Domains are split and cut to periods down to a few points."""
    monkeypatch.setattr(boxes, "LEAF", 4)


def assert_true(conditions: list[Expr]) -> None:
    """Each method that decides agrees with a look at every point."""
    _, existing = sweep([reduce(and_, conditions)])
    folded = restricted(conditions, {})
    if folded is None:
        assert existing is None
        return
    for name, method in METHODS.items():
        try:
            point = method(folded, 0.1)
        except UndecidedError:
            continue
        assert (point is None) == (existing is None), name
        assert point is None or all(evaluate(folded, point)), name


@quickly
@given(bool_expressions(max_leaves=10))
def test_random_conditions(small_leaves, drawn):
    condition, _ = drawn
    assert_true([condition])


def zero_divisors(terms: list[Expr]) -> int:
    """How many divisors have zero in their range."""
    divisors = [term.args[1] for term in topological(terms) if term.op in DIVISIONS]
    return sum(d.vmin <= 0 <= d.vmax for d in divisors)


@quickly
@given(index_terms(steps=4), st.integers(0, 400), st.data())
def test_index_terms_over_long_ranges(small_leaves, terms, extent, data):
    first = next(t for t in terms if t.op == "var")
    long = var(str(first.value), first.vmin, first.vmin + extent)
    given_terms = [terms[-1], data.draw(st.sampled_from(terms))]
    x, y = substitute(given_terms, {first: long})
    # a longer range may hold values at which a divisor is zero, which no guard excludes
    assume(zero_divisors([x, y]) == zero_divisors(given_terms))
    assert_true([x.eq(y + data.draw(st.integers(-3, 3)))])


def near_misses(root: Expr) -> Iterator[Expr]:
    """``root`` with one thing wrong: a literal off by one, ``//`` for ``%``, ``<`` for ``<=``, ``+`` for ``-``."""
    swapped = {"floordiv": "mod", "mod": "floordiv", "lt": "le", "le": "lt", "add": "sub", "min": "max", "and": "or"}
    for term in topological([root]):
        for at, arg in enumerate(term.args):
            other = arg + 1 if arg.op == "const" else None
            if other is not None and not (term.op in DIVISIONS and other.vmin == 0):
                args = [*term.args[:at], const(other.vmin), *term.args[at + 1 :]]
                yield substitute([root], {term: make(term.op, *args)})[0]
        if term.op in swapped:
            yield substitute([root], {term: make(swapped[term.op], *term.args)})[0]


def test_results_are_proved_and_near_misses_are_not():
    """All small suites: every result is decided, and one thing wrong in it is never called right."""
    missed = compared = 0
    for number, case in enumerate(cases(HAND) + cases(SEEDS)):
        result = optimize(case.exprs, constraints=case.constraints, gates=case.gates)
        proof = result.prove(seconds=5)
        assert (proof.kind in ("exhaustive", "proved"), proof.counterexample) == (True, None), (case.id, proof)
        given = {"constraints": result.constraints, "gates": result.gates}
        for wrong in islice(near_misses(result.exprs[0]), number % 3, None, 11):
            mutated = [wrong, *result.exprs[1:]]
            truth = check_equal(case.exprs, mutated, **given, most=10**4, samples=200)
            if truth.kind != "exhaustive":
                continue
            compared += 1
            found = prove_equal(case.exprs, mutated, **given, seconds=0.5, most=0)
            missed += found.kind == "sampled" and found.equal
            assert found.equal or not truth.equal, case.id
            assert found.kind == "sampled" or found.equal == truth.equal, case.id
    assert compared > 100
    assert missed < compared // 20


def test_shift_amounts_whose_bounds_are_wider_in_plainer_operators():
    x, y = var("x", -1, 1), var("y", 0, 2**40)
    assert prove_equal([y << tdiv(x, 2)], [y]).kind == "proved"
    assert prove_equal([(y + 1) >> tdiv(x, 2)], [y], seconds=1).counterexample is not None


def test_numbers_of_any_length_are_told_to_isl():
    x = var("x", 0, 2**900)
    assert find_by_isl([(x * 2).eq(2**900 + 1)], 1) is None


def test_isl_looks_at_the_clock_between_its_operations():
    # numbers grow with each step, and its own count of operations does not know how long one takes
    x = var("x", *WIDE)
    with pytest.raises(UndecidedError, match="isl takes too long"):
        find_by_isl([(x * 3 // 2).ne(x + x // 2)], 0)
