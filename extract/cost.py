"""What is cheap: cost models, each of which prices one node.

A model sees a node's operator and the inclusive bounds of its operands and of its result; an operand whose bounds are
one number is that literal. The cost of roots is the sum over their distinct nodes: what is shared is paid once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

Bounds = tuple[int, int]

_I32 = (-(2**31), 2**31 - 1)
_DIVISIONS = ("floordiv", "mod", "tdiv", "tmod")


class CostModel(Protocol):
    """Anything with a price per node; see :class:`Latency` for a full one."""

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The cost of one node, its operands not counted: an integer, 0 or more."""
        ...


@dataclass(frozen=True)
class OpCount:
    """Every operation costs one; literals and variables are free. ``weights`` overrides single operators.

    >>> OpCount().price("floordiv", [(0, 99), (7, 7)], (0, 14))
    1
    >>> OpCount(weights={"floordiv": 10}).price("floordiv", [(0, 99), (7, 7)], (0, 14))
    10
    """

    weights: dict[str, int] = field(default_factory=dict)

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The weight of the operator, by default 1."""
        return self.weights.get(op, 1) if operands else 0


@dataclass(frozen=True)
class Latency:
    """Cycles to evaluate one node with its operands in registers, on a recent x86-64 core.

    Only ratios matter. Additions, comparisons, selections, shifts and masks take a cycle, a multiplication three.
    Floor division and remainder by ``2**k`` are one shift or mask for either sign. By another constant a quotient is
    a widening multiplication and a shift, with a fix-up if the numerator may be negative; the remainder multiplies
    back and subtracts. By a variable the divider takes 20 cycles to a remainder and 4 more to a floor quotient;
    operands that may be negative need a fix-up, and 64-bit operands take twice as long. Source: Agner Fog's
    instruction tables (2022), rounded.

    >>> model = Latency()
    >>> model.price("floordiv", [(0, 99), (1, 9)], (0, 99)), model.price("shr", [(0, 99), (3, 3)], (0, 12))
    (24, 1)
    """

    simple: int = 1
    multiply: int = 3
    divide_by_constant: int = 5
    sign_fix_up: int = 2
    remainder_by_variable: int = 20
    quotient_by_variable: int = 24

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """Cycles; 0 for literals and variables."""
        if not operands:
            return 0
        if op == "mul":
            return min(self._multiply(x) for x in operands)
        if op in _DIVISIONS:
            return self._divide(op, operands[0], operands[1])
        return self.simple

    def _multiply(self, by: Bounds) -> int:
        low, high = by
        if low != high:
            return self.multiply
        if low in (0, 1):
            return 0
        return self.simple * (1 + (low < -1)) if _is_power_of_two(abs(low)) else self.multiply

    def _divide(self, op: str, x: Bounds, y: Bounds) -> int:
        signed = x[0] < 0 or y[0] < 0
        truncates = op in ("tdiv", "tmod")
        if y[0] == y[1]:
            if _is_power_of_two(abs(y[0])):
                return self.simple + (self.sign_fix_up if truncates and signed else 0) + (y[0] < 0)
            quotient = self.divide_by_constant + (self.sign_fix_up if signed else 0)
            return quotient if op in ("floordiv", "tdiv") else quotient + self.multiply + self.simple
        cycles = self.quotient_by_variable if op == "floordiv" else self.remainder_by_variable
        if signed and not truncates:
            cycles += 2 * self.sign_fix_up
        wide = any(low < _I32[0] or high > _I32[1] for low, high in (x, y))
        return 2 * cycles if wide else cycles


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


#: The shipped models by name.
COST_MODELS: dict[str, CostModel] = {"latency": Latency(), "opcount": OpCount()}
