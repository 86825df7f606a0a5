"""Random reductions: nested, over ranges that are empty or backwards or hang on variables and outer indices."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from eqsat.lang.expr import Expr, buffer, const, make, var
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import REDUCTIONS

A = buffer("A")
B = buffer("B", "bool")
_OPS = st.sampled_from(["sum_over", "sum_over", "sum_over", "max_over", "min_over", "prod_over"])
_SMALL = st.integers(-4, 9)


@st.composite
def _affine(
    draw: st.DrawFn, names: list[Expr], most: int = 2, factors: Sequence[int] = (1, 1, 1, -1, 2, 3, -2)
) -> Expr:
    total: Expr = const(draw(st.sampled_from([0, 0, 1, -2, 5])))
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=most)):
        total = total + name * draw(st.sampled_from(factors))
    return total


@st.composite
def _condition(draw: st.DrawFn, names: list[Expr]) -> Expr:
    x, y = draw(_affine(names)), draw(_affine(names) | _SMALL.map(const))
    match draw(st.sampled_from(["<", "<", ">=", "==", "!=", "%", "% <", "//", "and", "or", "load"])):
        case "<":
            return x < y
        case ">=":
            return x >= y
        case "==":
            return x.eq(y)
        case "!=":
            return x.ne(y)
        case "%":
            return (x % draw(st.integers(2, 4))).eq(draw(st.integers(-1, 3)))
        case "% <":
            return x % draw(st.integers(2, 4)) < y
        case "//":
            return (x // draw(st.integers(2, 4))).eq(y)
        case "load":
            return B[x]
        case op:
            left, right = draw(_condition(names)), draw(_condition(names))
            return left & right if op == "and" else left | right


@st.composite
def _body(draw: st.DrawFn, names: list[Expr], depth: int) -> Expr:
    kind = draw(
        st.sampled_from(["affine", "//", "%", "where", "where", "+", "*", "load", "min", "max", "divide", "reduce"])
    )
    if kind == "affine" or depth <= 0:
        return draw(_affine(names))
    if kind in ("//", "%"):
        x, d = draw(_body(names, depth - 1)), draw(st.sampled_from([2, 3, 4, 5, -3]))
        return x // d if kind == "//" else x % d
    if kind == "where":
        return where(
            draw(_condition(names)),
            draw(_body(names, depth - 1) | st.just(const(0))),
            draw(st.just(const(0)) | _body(names, depth - 1)),
        )
    if kind == "load":
        return A[draw(_body(names, depth - 1))] % 7
    if kind == "divide":
        # defined only where the condition holds
        x, divisor = draw(_affine(names)), draw(_affine(names))
        if divisor.vmin == divisor.vmax == 0:
            return x
        return where(divisor.ne(0), x // divisor, draw(_affine(names)))
    if kind == "reduce":
        return draw(reductions(names, depth - 1))
    x, y = draw(_body(names, depth - 1)), draw(_body(names, depth - 1))
    match kind:
        case "min":
            return minimum(x, y)
        case "max":
            return maximum(x, y)
        case "+":
            return x + y
    return x * y


@st.composite
def reductions(draw: st.DrawFn, names: list[Expr], depth: int = 3) -> Expr:
    """A reduction whose body and range speak of ``names``."""
    low, high = [
        draw(_SMALL.map(const) | _affine(names) if draw(st.booleans()) else _SMALL.map(const)) for _ in range(2)
    ]
    if high.vmax - low.vmin > 24:
        high = minimum(high, low + 24)
    index = var(f"r{len(names)}", low.vmin, max(low.vmin, high.vmax - 1))
    body = draw(_body([index, index, *names], depth))
    op = draw(_OPS)
    if op == "prod_over":
        body = body % 5 - 2
    assert op in REDUCTIONS
    return make(op, body, index, low, high)


@st.composite
def reduction_terms(draw: st.DrawFn) -> tuple[Expr, list[Expr]]:
    """A random reduction beside other terms, and its variables."""
    names = [var("i", draw(st.sampled_from([-3, 0, 0])), 4), var("n", -2, draw(st.sampled_from([3, 8])))]
    term = draw(reductions(names))
    if draw(st.booleans()):
        term = term + draw(reductions(names, 1)) * draw(st.sampled_from([1, -1, 2]))
    return term, names


@st.composite
def _inner_body(draw: st.DrawFn, names: list[Expr], depth: int) -> Expr:
    one = draw(_affine(names, 3, (1, 1, 2, 4, -1, 3)))
    kind = draw(st.sampled_from(["sum", "sum", "//", "%", "where", "*", "min", "load"])) if depth else "sum"
    match kind:
        case "sum":
            return one
        case "//":
            return one // draw(st.sampled_from([2, 4, 3]))
        case "%":
            return one % draw(st.sampled_from([2, 4, 3]))
        case "load":
            return A[one] % 5
    other = draw(_inner_body(names, depth - 1))
    match kind:
        case "*":
            return one * other
        case "min":
            return minimum(one, other)
    condition = draw(_condition(names))
    return where(condition, other, draw(st.just(const(0)) | _inner_body(names, depth - 1)))


@st.composite
def loop_nests(draw: st.DrawFn) -> Expr:
    """Up to three loops that may merge, split or swap, over ranges of literal and of other lengths."""
    n, m, x = var("n", -3, 6), var("m", 0, 5), var("x", -4, 4)
    op = draw(st.sampled_from(["sum_over", "sum_over", "max_over", "min_over", "prod_over"]))
    indices: list[Expr] = []
    ends: list[tuple[Expr, Expr]] = []
    for depth in range(draw(st.sampled_from([1, 2, 2, 3]))):
        low = draw(st.sampled_from([const(0), const(0), const(-2), const(1), m, n]))
        outer = [const(4), const(6), n, m * 4, n * 2, low + 4, const(0), m + 1]
        inner = [low + 2, low + 4, low + 3, const(2), m]
        high = draw(st.sampled_from([*inner, indices[0] + 1] if depth else outer))
        if high.vmax - low.vmin > 24:
            high = minimum(high, low + 24)
        indices.append(var(f"i{depth}", low.vmin, max(low.vmin, high.vmax - 1)))
        ends.append((low, high))
    term = draw(_inner_body([*indices, *indices, n, m, x], 2))
    if op == "prod_over":
        term = term % 3 - 1
    for depth in reversed(range(len(indices))):
        term = make(op, term, indices[depth], *ends[depth])
    return term
