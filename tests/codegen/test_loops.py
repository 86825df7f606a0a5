"""Loop headers, launch grids and unrolling."""

from __future__ import annotations

import pytest

from eqsat.codegen.limits import CODE_LIMITS
from eqsat.codegen.loops import LoopHeader, expand, loop_variable
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize

N = var("n", 1, 10)

HEADERS = [
    # the loop, its operations, its trip count, its C
    (LoopHeader.of(var("x", 0, 10)), ["CONST 0", "CONST 11"], 11, "for (int ridx0 = 0; ridx0 < 11; ridx0++) {"),
    (LoopHeader.of(var("x", 5, 7)), ["CONST 5", "CONST 8"], 3, "for (int ridx0 = 5; ridx0 < 8; ridx0++) {"),
    (LoopHeader.of(var("x", -3, -3)), ["CONST -3", "CONST -2"], 1, "for (int ridx0 = -3; ridx0 < -2; ridx0++) {"),
    (LoopHeader.of(var("x", 0, 9), last=N - 1), ["CONST 0", "n"], 10, "for (int ridx0 = 0; ridx0 < n; ridx0++) {"),
    (LoopHeader.of(var("x", 1, 10), start=N), ["n", "CONST 11"], 10, "for (int ridx0 = n; ridx0 < 11; ridx0++) {"),
    (
        LoopHeader.of(var("x", 0, 9), last=N // 2),
        ["CONST 0", "n//2 + 1"],
        6,
        "for (int ridx0 = 0; ridx0 < (n >> 1) + 1; ridx0++) {",
    ),
]


@pytest.mark.parametrize(("header", "bounds", "trips", "code"), HEADERS)
def test_headers(header: LoopHeader, bounds: list[str], trips: int, code: str) -> None:
    assert header.operations == [*bounds, "LOOP [0, 1]"]
    assert header.trip_count == trips
    assert header.to_c("ridx0") == code


TRIPS = [
    # a loop from start to last, and how often it runs at most
    (N * 4, N * 4 + 3, 4),
    (N // 3 * 3, N, 3),
    (N, minimum(N + 7, 12), 8),
    (N, 12, 12),
    (N, N - 1, 0),
    (N, N // 2, 1),
    (3, 2, 0),
]


@pytest.mark.parametrize(("start", "last", "trips"), TRIPS, ids=[f"{row[0]} to {row[1]}" for row in TRIPS])
def test_bounds_over_the_same_variables_count_together(start: Expr | int, last: Expr | int, trips: int) -> None:
    assert LoopHeader.of(var("x", 0, 99), start, last).trip_count == trips


@pytest.mark.parametrize(("last", "width"), [(2**31 - 2, 32), (2**31 - 1, 64), (2**33, 64)])
def test_a_counter_holds_its_end(last: int, width: int) -> None:
    header = LoopHeader.of(var("r", 0, last))
    assert header.width == width
    assert header.to_c().startswith(f"for ({'int' if width == 32 else 'int64_t'} r = 0; r < ")


def test_loop_variables() -> None:
    assert loop_variable("r", 3) is var("r", 0, 2)
    with pytest.raises(ValueError, match="range of variable 'r' is empty"):
        loop_variable("r", 0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LoopHeader.of(const(3)), "a loop needs a variable, not '3'"),
        (lambda: LoopHeader.of(N + 1), "a loop needs a variable"),
        (lambda: LoopHeader.of(var("x", 0, 9), last=N), r"runs from 0 to 10, outside of its range \[0, 9\]"),
        (lambda: LoopHeader.of(var("x", 0, 9), last=1.5), "the bound '1.5' of a loop must be an integer"),
        (lambda: LoopHeader.of(var("x", 0, None)), "the loop over 'x' has no end: give the variable bounds"),
        (lambda: LoopHeader.of(N, last=N - 1), "the bounds of the loop over 'n' depend on 'n' itself"),
        (lambda: LoopHeader.of(U, last=minimum(maximum(buffer("A")[0], 5), 7)).to_c(), r"'A\[0\]' needs an array"),
        (lambda: LoopHeader.of(var("int", 0, 9)).to_c(), "'int' cannot name a C counter"),
        (lambda: LoopHeader.of(var("x", 0, 9), last=N - 1).to_c("n"), "rename one of the two"),
        (lambda: expand(var("m", 0, None), [var("m", 0, None)]), "'m' that is unrolled has no end: give it two bounds"),
        (lambda: expand(N + 1, [N, N]), "'n' is unrolled twice"),
        (
            lambda: expand(var("u", 0, CODE_LIMITS.unrolled), [var("u", 0, CODE_LIMITS.unrolled)]),
            "unroll fewer or shorter loops",
        ),
    ],
)
def test_refused(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]


ROW, U, V = var("i", 0, 15), var("u", 5, 7), var("v", 0, 1)
NAMES = {"i": ROW, "u": U, "v": V}

EXPANSIONS = [
    # the term, what is unrolled, the terms
    ("42", [U], ["42"]),
    ("u", [], ["u"]),
    ("i", [U], ["i"]),
    ("u", [U], ["5", "6", "7"]),
    ("u*3", [U], ["15", "18", "21"]),
    ("i*4 + u", [U], ["i*4 + 5", "i*4 + 6", "i*4 + 7"]),
    ("u*10 + v", [U, V], ["50", "51", "60", "61", "70", "71"]),
    ("u*10 + v", [V, U], ["50", "60", "70", "51", "61", "71"]),
    ("tmod(u, 4) + tdiv(-u, 2)", [U], ["-1", "-1", "0"]),
    ("u < 6", [U], ["True", "False", "False"]),
    # constants are computed beside what has variables too
    ("i*4 + u*3", [U], ["i*4 + 15", "i*4 + 18", "i*4 + 21"]),
    ("(i + (u*2 - 3)//4)*(u % 2)", [U], ["(i + 1)*1", "(i + 2)*0", "(i + 2)*1"]),
    ("where(u < 6, i, i*u)", [U], ["i", "i*6", "i*7"]),
    (
        "sum(r*u + i, r, 0, u - 4) + sum(r*u, r, 0, u - 4)",
        [U],
        ["sum(r*5 + i, r, 0, 1) + 0", "sum(r*6 + i, r, 0, 2) + 6", "sum(r*7 + i, r, 0, 3) + 21"],
    ),
    # the index of a sum is no variable
    ("sum(r*u, r, 0, u - 4)", [U], ["0", "6", "21"]),
]


@pytest.mark.parametrize(("text", "unrolled", "lanes"), EXPANSIONS)
def test_expand(text: str, unrolled: list[Expr], lanes: list[str]) -> None:
    assert expand(parse(text, NAMES), unrolled) == [parse(lane, NAMES) for lane in lanes]


D = var("d", 0, 3)
GUARDED = [
    # the term, its terms for d from 0 to 3; what divides by zero is never evaluated
    ("where(d < 1, 0, 6//d)", ["0", "6", "3", "2"]),
    (
        "where(d < 1, i, i//d)",
        ["i", "i//1", "i//2", "i//3"],
    ),
    ("sum(6 % d, k, 0, d)", ["0", "0", "0", "0"]),
    ("sum(i % d, k, 0, d)", ["0", "sum(i % 1, k, 0, 1)", "sum(i % 2, k, 0, 2)", "sum(i % 3, k, 0, 3)"]),
]


@pytest.mark.parametrize(("text", "lanes"), GUARDED)
def test_what_is_never_evaluated_may_divide_by_zero(text: str, lanes: list[str]) -> None:
    names = {**NAMES, "d": D}
    assert expand(parse(text, names), [D]) == [parse(lane, names) for lane in lanes]


@pytest.mark.parametrize("text", ["6//d", "i//d", "where(i < 1, 0, i % d)", "where(d < 2, i//d, 0)"])
def test_what_is_evaluated_may_not(text: str) -> None:
    with pytest.raises(ValueError, match=r"division by zero: the divisor of '.' is '0'") as caught:
        expand(parse(text, {**NAMES, "d": D}), [D])
    assert "\n" not in str(caught.value)


def test_unrolled_addresses() -> None:
    addresses = expand((ROW * 4 + V) // 2, [V])
    assert [str(e) for e in optimize(addresses).exprs] == ["i*2", "i*2"]
    assert [str(e) for e in optimize(expand(U * 3, [U])).exprs] == ["15", "18", "21"]


def test_bounds_call_different_variables_differently() -> None:
    """The start of a loop called α what its end called u3b1, and the end called a variable like the counter."""
    header = LoopHeader(var("c", 0, 99), var("α", 0, 9), var("u3b1", 10, 19) + var("for", 0, 9))
    assert header.to_c("v_for_") == "for (int v_for_ = v_u3b1_; v_for_ < u3b1 + v_v_for__; v_for_++) {"
