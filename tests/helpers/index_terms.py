"""Random index terms: sums of digits of sums, as layouts and loop transformations make them.

Where :mod:`strategies` draws from the whole language, these stay where the theory has most to say: literals that
divide one another or leave two quotients, quotients and remainders of sums of quotients and remainders, by literals and
by terms of one sign, conditions that share what they compare, ranges on both sides of zero.
"""

from __future__ import annotations

from hypothesis import strategies as st

from eqsat.lang.expr import Expr, const, var
from eqsat.lang.functions import maximum, minimum, tdiv, tmod, where

_COEFFICIENTS = st.sampled_from([1, 1, 1, -1, 2, 3, 4, 5, 6, 8, 9, 12, -2, -3, -4])
_DIVISORS = st.sampled_from([2, 3, 4, 5, 6, 7, 8, 12, 24, -3, -4])
#: How often each kind of operation is drawn.
_WEIGHTS = {"//": 2, "%": 2, "+": 1, "tdiv": 1, "tmod": 1, "where": 2, "min": 1, "max": 1, "*": 1}
_WEIGHTS |= {"variable //": 2, "variable %": 2, "guarded //": 2, "multiple //": 1}
_WEIGHTS |= {"two periods //": 1, "two periods %": 1, "condition": 3}


@st.composite
def index_variables(draw: st.DrawFn) -> list[Expr]:
    """One to three variables with at most 1728 points between them."""
    found = []
    for name in ("i", "j", "k")[: draw(st.integers(1, 3))]:
        low = draw(st.sampled_from([0, 0, 0, 1, -1, -3, -8]))
        found.append(var(name, low, low + draw(st.sampled_from([1, 2, 3, 5, 7, 11]))))
    return found


@st.composite
def _sums(draw: st.DrawFn, terms: list[Expr]) -> Expr:
    total: Expr = const(draw(st.sampled_from([0, 0, 1, -1, 3, 7, 11])))
    for part in draw(st.lists(st.sampled_from(terms[::-1]), min_size=1, max_size=3)):
        total = total + part * draw(_COEFFICIENTS)
    return total


@st.composite
def _one_sign(draw: st.DrawFn, term: Expr) -> Expr:
    """A multiple of the term, or of one that is the same where it is positive, without zero in its range."""
    if term.vmin <= 0 <= term.vmax:
        term = draw(st.sampled_from([maximum(term, 1), term - term.vmin + 1]))
    return term * draw(st.sampled_from([1, 1, 2, -1, -2, -3]))


def _tests(term: Expr, conditions: list[Expr]) -> st.SearchStrategy[Expr]:
    """Whether the term is small, or an earlier condition."""
    return st.integers(-4, 8).map(lambda bound: term < bound) | st.sampled_from(conditions or [term < 3])


@st.composite
def _conditions(draw: st.DrawFn, total: Expr, terms: list[Expr], conditions: list[Expr]) -> Expr:
    """A comparison of two terms, often joined with an earlier condition."""
    x = draw(st.sampled_from([total, *terms]))
    y = draw(st.sampled_from(terms) | st.integers(-5, 12).map(const) | _sums(terms))
    middle = (x.vmin + x.vmax) // 2
    about = [x < y, x <= y, y < x + 3, x.eq(y), x.ne(y), x <= middle, x.eq(middle), x.ne(middle)]
    found = draw(st.sampled_from([*about, (x % draw(st.sampled_from([2, 3, 4, 6]))).eq(draw(st.integers(0, 3)))]))
    if not conditions or draw(st.booleans()):
        return found
    other = draw(st.sampled_from(conditions))
    return draw(
        st.sampled_from([other & found, other | found, ~other & found, other & ~found, where(other, found, ~other)])
    )


@st.composite
def index_programs(draw: st.DrawFn, steps: int = 6) -> tuple[list[Expr], list[Expr]]:
    """The integers and the conditions that one random index computation makes, in order."""
    terms, conditions = draw(index_variables()), []
    for _ in range(draw(st.integers(2, steps))):
        total = draw(_sums(terms))
        kind = draw(st.sampled_from([kind for kind, times in _WEIGHTS.items() for _ in range(times)]))
        other = draw(st.sampled_from(terms))
        match kind:
            case "condition":
                conditions.append(draw(_conditions(total, terms, conditions)))
                continue
            case "//":
                total = total // draw(_DIVISORS)
            case "%":
                total = total % draw(_DIVISORS)
            case "tdiv":
                total = tdiv(total, draw(_DIVISORS))
            case "tmod":
                total = tmod(total, draw(_DIVISORS))
            case "two periods //" | "two periods %":
                extent = total.vmax - total.vmin
                period = max(2, draw(st.sampled_from([extent // 2 + 1, extent * 2 // 3, extent])))
                total = total // period if kind == "two periods //" else total % period
            case "where":
                default = draw(st.sampled_from(terms) | st.integers(-3, 3).map(const))
                total = where(draw(_tests(other, conditions)), total, default)
            case "min":
                total = minimum(total, other)
            case "max":
                total = maximum(total, other)
            case "*":
                total = total * other
            case "variable //":
                total = total // draw(_one_sign(other))
            case "variable %":
                total = total % draw(_one_sign(other))
            case "guarded //":
                quotient = total // draw(_one_sign(other))
                total = where(draw(_tests(other, conditions)), quotient * draw(_COEFFICIENTS), quotient)
            case "multiple //":
                divisor = draw(_one_sign(other))
                total = (total * divisor + draw(st.sampled_from(terms))) // divisor
        if max(-total.vmin, total.vmax) < 2**31:
            terms.append(total)
    return terms, conditions


def index_terms(steps: int = 6) -> st.SearchStrategy[list[Expr]]:
    """The integers that one random index computation makes, in order."""
    return index_programs(steps).map(lambda program: program[0])


def index_conditions() -> st.SearchStrategy[Expr]:
    """The last condition that one random index computation makes, or whether its last integer is small."""
    return index_programs().map(lambda program: (program[1] or [program[0][-1] < 3])[-1])
