"""The operators of the language: one row each for sort, bounds, evaluation and notation; reductions, types of elements.

Index terms are mathematical integers; ``//`` and ``%`` are floor division and floor modulo, ``tdiv`` and ``tmod`` are
C's truncating ones. ``&``, ``|`` and ``^`` are Python's: two's complement with as many sign bits as it takes.
Everything that walks expressions (printer, evaluator, rule compiler, lowering) reads this table.

Bounds are inclusive pairs of integers, or one of :data:`INFINITY` and ``-INFINITY``: all code that compares and adds
bounds works on either. A lower bound is never ``INFINITY``, an upper one never ``-INFINITY``. A bool term has bounds
within ``(0, 1)``. What modules that ``import eqsat`` loads evaluate with is here too: NumPy, imported on first use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from math import inf
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any, NoReturn, cast

_TOLD: ContextVar[Callable[[float], object]] = ContextVar("told", default=lambda _: None)


class Lazy:
    """A module that is imported when it is first used, since that takes long, or it is not installed everywhere."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # what tools ask of any object
            raise AttributeError(name)
        began = time.perf_counter()
        module = import_module(self._name)
        _TOLD.get()(time.perf_counter() - began)
        found = getattr(module, name)
        # it is an attribute from now on, so that this function is not called again for it
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    np = numpy
else:
    # to import it takes as long as all of eqsat, and many answers need no array
    np = Lazy("numpy")

#: An array of NumPy's.
type Array = NDArray[Any]


@contextmanager
def telling_of_imports(told: Callable[[float], object]) -> Iterator[None]:
    """Call ``told`` with the seconds that each import of a :class:`Lazy` module within took: one in a process."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)


# C code may read the digits of an int without calling its methods: then it finds a number of this many bits
_BITS = 20_000


class Infinity(int):
    """A number above all integers, or below all: :data:`INFINITY`, or minus that.

    Arithmetic gives the limit of what it gives for ever larger numbers; zero times infinity is zero, because bounds
    multiply values, which are finite. What has no limit, and each use as a machine number, raises ``OverflowError``: no
    infinite number passes for an ordinary one.
    """

    __slots__ = ()

    @property
    def sign(self) -> int:
        """1 above all integers, -1 below."""
        return 1 if self is INFINITY else -1

    def __repr__(self) -> str:
        return "inf" if self.sign > 0 else "-inf"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec.rstrip("dxX,"))

    def __reduce__(self) -> str:
        # the name of the only number of this sign
        return "INFINITY" if self.sign > 0 else "_BELOW"

    def __float__(self) -> float:
        return self.sign * inf

    def __hash__(self) -> int:
        return hash(self.sign * inf)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, float) and other == self.sign * inf)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        return self.sign < 0 and self != other

    def __le__(self, other: float) -> bool:
        return self.sign < 0 or self == other

    def __gt__(self, other: float) -> bool:
        return self.sign > 0 and self != other

    def __ge__(self, other: float) -> bool:
        return self.sign > 0 or self == other

    def __neg__(self) -> Infinity:
        return _BELOW if self is INFINITY else INFINITY

    def __pos__(self) -> Infinity:
        return self

    def __abs__(self) -> Infinity:
        return INFINITY

    def __add__(self, other: int) -> int:
        if type(other) is int:
            return self
        if isinstance(other, Infinity) and other is not self:
            raise OverflowError("infinity less infinity is no number")
        return self if isinstance(other, int) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return self + -other

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __mul__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return self if other > 0 else -self if other else 0

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        if isinstance(other, Infinity):
            # between the quotients of one of them by an integer and of an integer by the other
            return 0 if other is self else -1
        if other == 0:
            raise ZeroDivisionError("infinity divided by zero")
        return self * other

    def __rfloordiv__(self, other: int) -> int:
        return 0 if other == 0 or (other > 0) == (self > 0) else -1

    def __pow__(self, exponent: int, modulo: None = None) -> Any:  # type: ignore[override]
        return 1 if exponent == 0 else self if exponent % 2 else INFINITY

    def __rpow__(self, base: int, modulo: None = None) -> Any:  # type: ignore[override]
        return base if base in (0, 1) else INFINITY if base > 1 and self > 0 else self._refuse()

    def _refuse(self, *given: object) -> NoReturn:
        raise OverflowError("an infinite bound is used where an integer is needed")

    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __truediv__ = __rtruediv__ = cast(Any, _refuse)
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __invert__ = cast(Any, _refuse)
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = cast(Any, _refuse)
    __int__ = __index__ = __trunc__ = __round__ = __floor__ = __ceil__ = cast(Any, _refuse)
    bit_length = bit_count = to_bytes = cast(Any, _refuse)


#: The number above all integers.
INFINITY = int.__new__(Infinity, 1 << _BITS)
_BELOW = int.__new__(Infinity, -(1 << _BITS))


def is_finite(*numbers: int) -> bool:
    """Whether none of the numbers is an infinity."""
    return Infinity not in map(type, numbers)


def bits(number: int) -> int:
    """The bit length of an integer; 0 for an infinity, since its products need no more bits than it has."""
    return 0 if isinstance(number, Infinity) else number.bit_length()


def finite_part(low: int, high: int, reach: int) -> tuple[int, int]:
    """A range whose infinite ends are replaced by numbers ``reach`` beyond zero and beyond the other end."""
    least = low if not isinstance(low, Infinity) else min(0, high if is_finite(high) else 0) - reach
    most = high if not isinstance(high, Infinity) else max(0, low if is_finite(low) else 0) + reach
    return least, most


Bounds = tuple[int, int]

#: The widest shift amount: a shift by more would leave every machine integer.
MAX_SHIFT = 63


@dataclass(frozen=True, slots=True)
class Op:
    """One operator.

    Sorts are letters: ``i`` integer, ``b`` bool, ``s`` one sort shared by all ``s`` operands.
    """

    name: str
    #: The sort of each operand, and that of the result.
    takes: str
    gives: str
    bounds: Callable[..., Bounds]
    evaluate: Callable[..., Any]
    #: Infix or prefix notation; empty for operators written as function calls.
    symbol: str = ""
    #: Binding strength of the notation, as in Python; function calls bind tightest.
    precedence: int = 100
    commutes: bool = False
    #: Of a user's own operator, its value in C and to z3: :func:`eqsat.lang.own.operator`.
    c: str = ""
    z3: Callable[..., Any] | None = None


def rounded_to_odd(number: int) -> int:
    """``number`` to 40 binary digits, the last of which is 1 if others were cut off: rounding it again rounds once."""
    cut = max(0, number.bit_length() - 40)
    kept = number >> cut
    return number if kept << cut == number else (kept | 1) << cut


def truncated_div(a: int, b: int) -> int:
    """C's ``/``: the quotient rounded toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divisors(y: Bounds) -> list[int]:
    """The divisors at which a quotient over the range ``y`` is extreme; zero is not one, and alone stands for 1."""
    return [d for d in {y[0], y[1], -1, 1} if d != 0 and y[0] <= d <= y[1]] or [1]


def _mul(x: Bounds, y: Bounds) -> Bounds:
    corners = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return min(corners), max(corners)


def _floordiv(x: Bounds, y: Bounds) -> Bounds:
    corners = [n // d for n in x for d in _divisors(y)]
    return min(corners), max(corners)


def _mod(x: Bounds, y: Bounds) -> Bounds:
    if y == (0, 0):
        return 0, 0
    if y[0] == y[1] and x[0] // y[0] == x[1] // y[0]:
        # all dividends lie in one period
        return x[0] % y[0], x[1] % y[0]
    low = 0 if y[0] >= 0 or (x[0] >= 0 and x[1] < 1) else y[0] + 1
    high = 0 if y[1] <= 0 else y[1] - 1
    if y[0] > 0 and x[0] >= 0:
        return (x[0], x[1]) if x[1] < y[0] else (0, min(high, x[1]))
    return low, high


def _tdiv(x: Bounds, y: Bounds) -> Bounds:
    corners = [truncated_div(n, d) for n in x for d in _divisors(y)]
    if x[0] <= 0 <= x[1]:
        corners.append(0)
    return min(corners), max(corners)


def _tmod(x: Bounds, y: Bounds) -> Bounds:
    if y == (0, 0):
        return 0, 0
    if x[0] == x[1] and y[0] == y[1]:
        left = x[0] - y[0] * truncated_div(x[0], y[0])
        return left, left
    most = max(abs(y[0]), abs(y[1])) - 1
    return (0 if x[0] >= 0 else max(-most, x[0])), (0 if x[1] <= 0 else min(most, x[1]))


def _least_or(a: int, b: int, c: int, d: int) -> int:
    """The least ``x | y`` for ``x`` in ``[a, b]`` and ``y`` in ``[c, d]``, none of them negative.

    This and what follows: Warren, Hacker's Delight, 2nd edition (2012), section 4-3.
    """
    differing = a ^ c
    while differing:
        bit = 1 << (differing.bit_length() - 1)
        if c & bit:
            raised = (a | bit) & -bit
            if raised <= b:
                a = raised
                break
        else:
            raised = (c | bit) & -bit
            if raised <= d:
                c = raised
                break
        differing ^= bit
    return a | c


def _greatest_or(a: int, b: int, c: int, d: int) -> int:
    common = b & d
    while common:
        bit = 1 << (common.bit_length() - 1)
        if (lowered := (b - bit) | (bit - 1)) >= a:
            b = lowered
            break
        if (lowered := (d - bit) | (bit - 1)) >= c:
            d = lowered
            break
        common ^= bit
    return b | d


def _least_xor(a: int, b: int, c: int, d: int) -> int:
    bit = 1 << max(b.bit_length(), d.bit_length())
    while bit := bit >> 1:
        if c & bit and not a & bit:
            if (raised := (a | bit) & -bit) <= b:
                a = raised
        elif a & bit and not c & bit and (raised := (c | bit) & -bit) <= d:
            c = raised
    return a ^ c


def _greatest_xor(a: int, b: int, c: int, d: int) -> int:
    # x ^ y and x ^ ~y have opposite bits
    ones = (1 << max(b.bit_length(), d.bit_length())) - 1
    return ones - _least_xor(a, b, ones - d, ones - c)


def _signed_parts(x: Bounds, size: int) -> list[tuple[int, int, bool]]:
    """The ranges of the negative values, with ``size`` added, and of the others; each with whether it is negative."""
    found = []
    if x[0] < 0:
        found.append((x[0] + size, min(x[1], -1) + size, True))
    if x[1] >= 0:
        found.append((max(x[0], 0), x[1], False))
    return found


def _bit_bounds(
    x: Bounds, y: Bounds, least: Callable[..., int], greatest: Callable[..., int], sign: Callable[[bool, bool], bool]
) -> Bounds:
    """Bounds of a bit operator from those on numbers of one sign, and the sign of its result."""
    size = 1 << max(n.bit_length() for n in (*x, *y))
    ends = []
    for a, b, one in _signed_parts(x, size):
        for c, d, other in _signed_parts(y, size):
            # what was added to make a negative result a number of bits
            below = size if sign(one, other) else 0
            ends += [least(a, b, c, d) - below, greatest(a, b, c, d) - below]
    # an operand without values, as where facts contradict each other, leaves none
    return (min(ends), max(ends)) if ends else (0, -1)


def _bitor(x: Bounds, y: Bounds) -> Bounds:
    if not is_finite(*x, *y):
        low, high = _bitand((-1 - x[1], -1 - x[0]), (-1 - y[1], -1 - y[0]))
        return -1 - high, -1 - low
    return _bit_bounds(x, y, _least_or, _greatest_or, lambda one, other: one or other)


def _bitand(x: Bounds, y: Bounds) -> Bounds:
    if not is_finite(*x, *y):
        # an operand that is never negative has all the ones of the result
        masks = [high for low, high in (x, y) if low >= 0]
        return (0, min(masks)) if masks else (-INFINITY, max(x[1], y[1]))
    # x & y is ~(~x | ~y)
    low, high = _bitor((~x[1], ~x[0]), (~y[1], ~y[0]))
    return ~high, ~low


def _bitxor(x: Bounds, y: Bounds) -> Bounds:
    if not is_finite(*x, *y):
        signs = {low >= 0 for low, high in (x, y) if low >= 0 or high < 0}
        is_known = len(signs) == 1 and all(low >= 0 or high < 0 for low, high in (x, y))
        return (0 if is_known else -INFINITY), INFINITY
    return _bit_bounds(x, y, _least_xor, _greatest_xor, lambda one, other: one is not other)


def _min(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), min(x[1], y[1])


def _max(x: Bounds, y: Bounds) -> Bounds:
    return max(x[0], y[0]), max(x[1], y[1])


def _eq(x: Bounds, y: Bounds) -> Bounds:
    return int(x[0] == x[1] == y[0] == y[1]), int(x[0] <= y[1] and y[0] <= x[1])


def _not(x: Bounds) -> Bounds:
    return 1 - x[1], 1 - x[0]


def _where(c: Bounds, x: Bounds, y: Bounds) -> Bounds:
    if c[0] == c[1]:
        return x if c[0] else y
    return min(x[0], y[0]), max(x[1], y[1])


def _numpy(name: str) -> Callable[..., Any]:
    """NumPy's function of that name, which is looked up when it is called."""
    return lambda *arrays: getattr(np, name)(*arrays)


def _numpy_tdiv(a: Any, b: Any) -> Any:
    # a single large quotient comes as a Python int, which alone would become unsigned or be refused
    quotient = np.asarray(np.abs(a) // np.abs(b), dtype=np.result_type(a, b))
    return np.where((np.less(a, 0)) == (np.less(b, 0)), quotient, -quotient)


_TABLE = [
    # name, operand sorts, result sort, bounds, evaluation, symbol, precedence, commutes
    Op("or", "bb", "b", _max, _numpy("logical_or"), "or", 1, True),
    Op("and", "bb", "b", _min, _numpy("logical_and"), "and", 2, True),
    Op("not", "b", "b", _not, _numpy("logical_not"), "not", 3),
    Op("lt", "ii", "b", lambda x, y: (int(x[1] < y[0]), int(x[0] < y[1])), _numpy("less"), "<", 4),
    Op("le", "ii", "b", lambda x, y: (int(x[1] <= y[0]), int(x[0] <= y[1])), _numpy("less_equal"), "<=", 4),
    Op("eq", "ss", "b", _eq, _numpy("equal"), "==", 4, True),
    Op("ne", "ss", "b", lambda x, y: _not(_eq(x, y)), _numpy("not_equal"), "!=", 4, True),
    # exact on numbers of any width: arrays of NumPy hold no two of both signs that need 64 bits
    Op("bitor", "ii", "i", _bitor, or_, "|", 5, True),
    Op("bitxor", "ii", "i", _bitxor, xor, "^", 6, True),
    Op("bitand", "ii", "i", _bitand, and_, "&", 7, True),
    Op("shl", "ii", "i", lambda x, y: _mul(x, (1 << y[0], 1 << y[1])), _numpy("left_shift"), "<<", 8),
    Op("shr", "ii", "i", lambda x, y: _floordiv(x, (1 << y[0], 1 << y[1])), _numpy("right_shift"), ">>", 8),
    Op("add", "ii", "i", lambda x, y: (x[0] + y[0], x[1] + y[1]), _numpy("add"), "+", 9, True),
    Op("sub", "ii", "i", lambda x, y: (x[0] - y[1], x[1] - y[0]), _numpy("subtract"), "-", 9),
    Op("mul", "ii", "i", _mul, _numpy("multiply"), "*", 10, True),
    Op("floordiv", "ii", "i", _floordiv, _numpy("floor_divide"), "//", 10),
    Op("mod", "ii", "i", _mod, _numpy("remainder"), "%", 10),
    Op("neg", "i", "i", lambda x: (-x[1], -x[0]), _numpy("negative"), "-", 11),
    Op("tdiv", "ii", "i", _tdiv, _numpy_tdiv),
    Op("tmod", "ii", "i", _tmod, lambda a, b: a - b * _numpy_tdiv(a, b)),
    Op("min", "ss", "s", _min, _numpy("minimum"), commutes=True),
    Op("max", "ss", "s", _max, _numpy("maximum"), commutes=True),
    Op("where", "bss", "s", _where, _numpy("where")),
]


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operator that combines the values of a body over a half-open range of its index."""

    name: str
    #: The operator of :data:`OPS` or :data:`FLOATS` that joins two values.
    combine: str
    #: The value over an empty range. For ``max_over`` and ``min_over`` it is an end of the 32-bit integers: there is no
    #: least integer, and a value that hung on the bounds of the body would change when that is rewritten.
    identity: int
    #: Its name in the text form.
    text: str
    #: The value over an empty range of a reduction of floating-point values.
    rounded: float = 0.0


#: The reductions by name; the operands are the body, its index, and the two ends of the range.
REDUCTIONS: dict[str, Reduction] = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum_over", "add", 0, "sum"),
        Reduction("prod_over", "mul", 1, "prod"),
        Reduction("max_over", "max", -(2**31), "max_over"),
        Reduction("min_over", "min", 2**31 - 1, "min_over"),
        Reduction("fsum_over", "fadd", 0, "sum", 0.0),
        Reduction("fprod_over", "fmul", 1, "prod", 1.0),
        Reduction("fmax_over", "fmax", 0, "max_over", -inf),
        Reduction("fmin_over", "fmin", 0, "min_over", inf),
    )
}

#: A product that could have more bits than this is refused: bounds are exact, so repeated squaring must end somewhere.
MOST_BITS = 10_000


def apply_to_numbers(op: str, numbers: Sequence[int]) -> int:
    """What an operator makes of numbers: its bounds, where each operand has one value.

    Raises ``ArithmeticError`` if a divisor is zero, a shift goes too far, or no literal may have as many bits.
    """
    if op in DIVISIONS and not numbers[1]:
        raise ZeroDivisionError(f"{numbers[0]} is divided by zero")
    if op in SHIFTS and not 0 <= numbers[1] <= MAX_SHIFT:
        raise OverflowError(f"{numbers[0]} is shifted by {numbers[1]}")
    value, _ = OPS[op].bounds(*[(number, number) for number in numbers])
    if bits(value) > MOST_BITS:
        raise OverflowError("a number has more bits than a literal may have")
    return value


def linear_bounds(constant: int, terms: Iterable[tuple[Bounds, int]]) -> Bounds:
    """The bounds of a constant and multiples of values that depend on nothing in common."""
    low = high = constant
    for (least, most), k in terms:
        low, high = (low + k * least, high + k * most) if k > 0 else (low + k * most, high + k * least)
    return low, high


def trip_bounds(low: Bounds, high: Bounds) -> Bounds:
    """How many values an index has at least and at most, by the bounds of the ends of its range."""
    return max(0, high[0] - low[1]), max(0, high[1] - low[0])


def reduction_bounds(name: str, body: Bounds, trips: Bounds) -> Bounds | None:
    """The bounds of a reduction; ``None`` for a product of more than :data:`MOST_BITS` bits."""
    least, most = trips
    if not most:
        return REDUCTIONS[name].identity, REDUCTIONS[name].identity
    if name == "sum_over":
        return min(least * body[0], most * body[0]), max(least * body[1], most * body[1])
    if name == "prod_over":
        return _power_bounds(body, least, most)
    if least:
        return body
    identity = REDUCTIONS[name].identity
    return min(body[0], identity), max(body[1], identity)


def free_in(op: str, operands: Sequence[int]) -> int:
    """The set of free variables of a term or an e-node from those of its operands: a reduction binds its index."""
    if len(operands) == 4 and op in REDUCTIONS:
        body, index, low, high = operands
        return (body & ~index) | low | high
    total = 0
    for operand in operands:
        total |= operand
    return total


def _power_bounds(base: Bounds, least: int, most: int) -> Bounds | None:
    largest = max(abs(base[0]), abs(base[1]))
    if largest > 1 and (not is_finite(most) or max(map(bits, base)) * most > MOST_BITS):
        return None
    if base[0] >= 0:
        ends = [base[0] ** least, base[0] ** most, base[1] ** least, base[1] ** most]
        return min(ends), max(ends)
    high = max(1 if not least else largest**least, largest**most)
    return -(largest**most), high


#: The types of a buffer's elements, with bounds that hold every one of their (finite) values.
ELEMENTS: dict[str, Bounds] = {
    "bool": (0, 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
    # integers of any size: an array of them is a function that nothing is known of
    "int": (-INFINITY, INFINITY),
    "f32": (-(2**128), 2**128),
    "f64": (-(2**1024), 2**1024),
}


@dataclass(frozen=True, slots=True)
class FloatOp:
    """An operator on floating-point values; ``takes`` and ``gives`` as in :class:`Op`, with ``f`` for such a value."""

    name: str
    takes: str
    gives: str
    evaluate: Callable[..., Any]
    #: The operator of :data:`OPS` that is written alike.
    integer: str = ""
    #: The type of the result where it is not that of the operands.
    element: str | None = None


#: The operators on floating-point values, which are rounded and so obey no law of arithmetic but what IEEE 754 says.
FLOATS: dict[str, FloatOp] = {
    op.name: op
    for op in (
        FloatOp("fadd", "ff", "f", _numpy("add"), "add"),
        FloatOp("fsub", "ff", "f", _numpy("subtract"), "sub"),
        FloatOp("fmul", "ff", "f", _numpy("multiply"), "mul"),
        FloatOp("fdiv", "ff", "f", _numpy("divide")),
        FloatOp("fneg", "f", "f", _numpy("negative"), "neg"),
        # as C's `x < y ? x : y`, which one instruction does; of a NaN and a number either may come out
        FloatOp("fmin", "ff", "f", lambda x, y: np.where(np.less(x, y), x, y), "min"),
        FloatOp("fmax", "ff", "f", lambda x, y: np.where(np.less(x, y), y, x), "max"),
        FloatOp("flt", "ff", "b", _numpy("less"), "lt"),
        FloatOp("fle", "ff", "b", _numpy("less_equal"), "le"),
        FloatOp("feq", "ff", "b", _numpy("equal"), "eq"),
        FloatOp("fne", "ff", "b", _numpy("not_equal"), "ne"),
        FloatOp("fwhere", "bff", "f", _numpy("where"), "where"),
        FloatOp("exp", "f", "f", _numpy("exp")),
        FloatOp("log", "f", "f", _numpy("log")),
        FloatOp("sqrt", "f", "f", _numpy("sqrt")),
        FloatOp("to_float", "i", "f", lambda x: x, element="f32"),
        FloatOp("to_double", "i", "f", lambda x: x, element="f64"),
    )
}

#: By the operator on integers, the one on floating-point values that is written alike.
FLOAT_OF = {op.integer: op.name for op in FLOATS.values() if op.integer} | {
    f"{name}_over": f"f{name}_over" for name in ("sum", "prod", "max", "min")
}


#: Every operator by name.
OPS: dict[str, Op] = {op.name: op for op in _TABLE}

#: What the C of a user's own operator calls its operands.
LETTERS = "xyzw"
#: The operators of users' own by name, which :data:`OPS` has too, and what other tables do with one.
OWN: dict[str, Op] = {}
_ADDING: list[Callable[[Op], object]] = []


def for_each_own(add: Callable[[Op], object]) -> Callable[[Op], object]:
    """Call ``add`` with every operator of a user's own: now those that there are, later each new one."""
    _ADDING.append(add)
    for op in OWN.values():
        add(op)
    return add


def add_own(op: Op) -> None:
    """Add an operator of a user's own to every table of operators."""
    OPS[op.name] = OWN[op.name] = op
    for add in _ADDING:
        add(op)


#: Operators whose value does not follow from those of their operands at one point.
UNINTERPRETED = frozenset({"load", *REDUCTIONS})
#: The operators that add.
SUMS = frozenset({"add", "sub", "neg"})
#: Division that rounds down, and what it leaves.
FLOORS = frozenset({"floordiv", "mod"})
#: The operators that divide; their second operand may not be zero.
DIVISIONS = FLOORS | {"tdiv", "tmod"}
#: The operators on the bits of two integers.
BITWISE = frozenset({"bitand", "bitor", "bitxor"})
#: The operators that shift the bits of an integer.
SHIFTS = frozenset({"shl", "shr"})
#: The operators that compare.
COMPARISONS = frozenset({"lt", "le", "eq", "ne"})
