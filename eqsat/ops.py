"""The operators of the language: one row each for sort, bounds, evaluation and spelling.

Index terms are mathematical integers; ``//`` and ``%`` are floor division and floor modulo, ``tdiv`` and ``tmod`` are
C's truncating ones. Bounds are inclusive pairs of Python ints; a bool term has bounds within ``(0, 1)``.
Everything that walks expressions (printer, evaluator, rule compiler, lowering) reads this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Bounds = tuple[int, int]

#: The widest shift amount: a shift by more would leave every machine integer.
MAX_SHIFT = 63


@dataclass(frozen=True, slots=True)
class Op:
    """One operator.

    Attributes
    ----------
    takes : str
        Sort of each operand, one letter each: ``i`` integer, ``b`` bool, ``s`` one sort shared by all ``s`` operands.
    gives : str
        Sort of the result, in the same letters.
    symbol : str
        Infix or prefix spelling; empty for operators spelled as function calls.
    precedence : int
        Binding strength of the spelling, as in Python; function calls bind tightest.
    """

    name: str
    takes: str
    gives: str
    bounds: Callable[..., Bounds]
    evaluate: Callable[..., Any]
    symbol: str = ""
    precedence: int = 100
    commutes: bool = False


def truncated_div(a: int, b: int) -> int:
    """C's ``/``: the quotient rounded toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divisors(y: Bounds) -> list[int]:
    """The divisors at which a quotient over the range ``y`` is extreme; zero is not one, and alone has no quotients."""
    return [d for d in {y[0], y[1], -1, 1} if d != 0 and y[0] <= d <= y[1]] or [1]


def _add(x: Bounds, y: Bounds) -> Bounds:
    return x[0] + y[0], x[1] + y[1]


def _sub(x: Bounds, y: Bounds) -> Bounds:
    return x[0] - y[1], x[1] - y[0]


def _neg(x: Bounds) -> Bounds:
    return -x[1], -x[0]


def _mul(x: Bounds, y: Bounds) -> Bounds:
    corners = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return min(corners), max(corners)


def _floordiv(x: Bounds, y: Bounds) -> Bounds:
    corners = [n // d for n in x for d in _divisors(y)]
    return min(corners), max(corners)


def _mod(x: Bounds, y: Bounds) -> Bounds:
    if y[0] == y[1] and x[0] // y[0] == x[1] // y[0]:
        return x[0] % y[0], x[1] % y[0]
    low = 0 if y[0] >= 0 or (x[0] >= 0 and x[1] < 1) else y[0] + 1
    high = 0 if y[1] <= 0 else y[1] - 1
    if y[0] > 0 and x[0] >= 0:
        return (x[0], x[1]) if x[1] < y[0] else (0, min(high, x[1]))
    return min(low, 0), max(high, 0)


def _tdiv(x: Bounds, y: Bounds) -> Bounds:
    corners = [truncated_div(n, d) for n in x for d in _divisors(y)]
    if x[0] <= 0 <= x[1]:
        corners.append(0)
    return min(corners), max(corners)


def _tmod(x: Bounds, y: Bounds) -> Bounds:
    most = max(abs(y[0]), abs(y[1])) - 1
    return (0 if x[0] >= 0 else max(-most, x[0])), (0 if x[1] <= 0 else min(most, x[1]))


def _shl(x: Bounds, y: Bounds) -> Bounds:
    return _mul(x, (1 << y[0], 1 << y[1]))


def _shr(x: Bounds, y: Bounds) -> Bounds:
    return _floordiv(x, (1 << y[0], 1 << y[1]))


def _min(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), min(x[1], y[1])


def _max(x: Bounds, y: Bounds) -> Bounds:
    return max(x[0], y[0]), max(x[1], y[1])


def _lt(x: Bounds, y: Bounds) -> Bounds:
    return int(x[1] < y[0]), int(x[0] < y[1])


def _le(x: Bounds, y: Bounds) -> Bounds:
    return int(x[1] <= y[0]), int(x[0] <= y[1])


def _eq(x: Bounds, y: Bounds) -> Bounds:
    return int(x[0] == x[1] == y[0] == y[1]), int(x[0] <= y[1] and y[0] <= x[1])


def _not(x: Bounds) -> Bounds:
    return 1 - x[1], 1 - x[0]


def _ne(x: Bounds, y: Bounds) -> Bounds:
    return _not(_eq(x, y))


def _where(c: Bounds, x: Bounds, y: Bounds) -> Bounds:
    if c[0] == c[1]:
        return x if c[0] else y
    return min(x[0], y[0]), max(x[1], y[1])


def _numpy_tdiv(a: Any, b: Any) -> Any:
    quotient = np.abs(a) // np.abs(b)
    return np.where((np.less(a, 0)) == (np.less(b, 0)), quotient, -quotient)


def _numpy_tmod(a: Any, b: Any) -> Any:
    return a - b * _numpy_tdiv(a, b)


_TABLE = [
    # name, operand sorts, result sort, bounds, evaluation, symbol, precedence, commutes
    Op("or", "bb", "b", _max, np.logical_or, "or", 1, True),
    Op("and", "bb", "b", _min, np.logical_and, "and", 2, True),
    Op("not", "b", "b", _not, np.logical_not, "not", 3),
    Op("lt", "ii", "b", _lt, np.less, "<", 4),
    Op("le", "ii", "b", _le, np.less_equal, "<=", 4),
    Op("eq", "ss", "b", _eq, np.equal, "==", 4, True),
    Op("ne", "ss", "b", _ne, np.not_equal, "!=", 4, True),
    Op("add", "ii", "i", _add, np.add, "+", 6, True),
    Op("sub", "ii", "i", _sub, np.subtract, "-", 6),
    Op("mul", "ii", "i", _mul, np.multiply, "*", 7, True),
    Op("floordiv", "ii", "i", _floordiv, np.floor_divide, "//", 7),
    Op("mod", "ii", "i", _mod, np.remainder, "%", 7),
    Op("neg", "i", "i", _neg, np.negative, "-", 8),
    Op("tdiv", "ii", "i", _tdiv, _numpy_tdiv),
    Op("tmod", "ii", "i", _tmod, _numpy_tmod),
    Op("shl", "ii", "i", _shl, np.left_shift),
    Op("shr", "ii", "i", _shr, np.right_shift),
    Op("min", "ss", "s", _min, np.minimum, commutes=True),
    Op("max", "ss", "s", _max, np.maximum, commutes=True),
    Op("where", "bss", "s", _where, np.where),
]

#: Every operator by name.
OPS: dict[str, Op] = {op.name: op for op in _TABLE}

#: The operators that divide; their second operand may not be zero.
DIVISIONS = frozenset({"floordiv", "mod", "tdiv", "tmod"})
