"""Infinite ends of ranges: integers extended by one number above all others, and one below.

Bounds are integers, or one of :data:`INFINITY` and ``-INFINITY``: all code that compares and adds bounds works on
either. A lower bound is never ``INFINITY``, an upper one never ``-INFINITY``. Arithmetic gives the limit of what it
gives for ever larger numbers; zero times infinity is zero, because bounds multiply values, which are finite. What has
no limit, and each use as a machine number, raises :exc:`OverflowError`: no infinite number passes for an ordinary one.
"""

from __future__ import annotations

from math import inf
from typing import Any, NoReturn, cast

# C code may read the digits of an int without calling its methods: then it finds a number of this many bits
_BITS = 20_000


class Infinity(int):
    """A number above all integers, or below all: :data:`INFINITY`, or minus that."""

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
