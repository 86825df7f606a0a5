"""What is cheap: cost models, each of which prices one node.

A model sees a node's operator and the inclusive bounds of its operands and of its result; an operand whose bounds are
one number is that literal, and :func:`literal`, :func:`width` and :func:`is_signed` read the rest from bounds. Beside
the operators of the language, ``"load"`` is the reading of an argument too, and ``"store"`` the writing of a result.
The cost of roots is the sum over their distinct nodes: what is shared is paid once, and what the body of a reduction
computes is paid once for each step of the reductions whose index it needs. Under :class:`LoopAware` a node is paid as
often as it runs.

:class:`Calibrated` prices what was measured on one machine. The kinds of operations are :data:`OPERATIONS`: an operator
with what its price depends on (literal or variable operand, sign, width). ``eqsat calibrate`` measures them and writes
a model file, JSON: ``{"format", "machine", "picoseconds": {figure: {kind: number}}}``, in which a figure is one of
:data:`FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import index, mul
from pathlib import Path
from runpy import run_path
from typing import Any, Protocol, cast

from eqsat.extract.graph import Bounds, trips

_I32 = (-(2**31), 2**31 - 1)
DIVISIONS = frozenset({"floordiv", "mod", "tdiv", "tmod"})

#: Reductions; their operands are the body, the index and the ends of the range.
_REDUCTIONS = frozenset({"sum_over", "prod_over", "max_over", "min_over"})


def steps(operands: Sequence[Bounds]) -> int:
    """The number of steps of a reduction with these operands: the values of its index."""
    low, high = operands[1]
    return trips(high - low + 1)


class CostModel(Protocol):
    """A price for each e-node: any object with this method.

    :class:`OpCount` is a short one, :class:`Latency` a full one.

    >>> class Divisions:
    ...     def price(self, op, operands, result):
    ...         return 10 if op in ("floordiv", "mod") else 1
    >>> Divisions().price("mod", [(0, 9), (3, 3)], (0, 2))
    10
    """

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The cost of one node without its operands, in the unit of the model: 0 or more, 0 for literals and variables.

        It is asked for every node of an e-graph, so it should be quick.

        Parameters
        ----------
        op : str
            The operator, such as ``"add"``, as ``Expr.op`` has it, or the name of a user's own.
        operands : sequence of (int, int)
            Inclusive bounds of each operand; none for literals and variables. Both bounds of a literal are its value.
            What has no bound has an infinite one, which compares as ``math.inf`` does.
        result : (int, int)
            Inclusive bounds of the node's value. Those of a condition, here and of operands, are within 0 and 1.
        """
        ...


def refuse_other(model: object) -> None:
    """Raise ``TypeError`` unless ``model`` has prices."""
    if isinstance(model, type) or not hasattr(model, "price"):
        raise TypeError(f"{model!r} is no cost model: give an object with a price, such as eqsat.extract.Latency()")


#: By name of a user's own operator, its price in additions, or a function of the bounds of operands and value.
OWN_PRICES: dict[str, int | Callable[[Sequence[Bounds], Bounds], int]] = {}


def additions(op: str, operands: Sequence[Bounds], result: Bounds) -> int:
    """The price, in additions, of an operator that no model knows: for a user's own what they gave, else 1."""
    price = OWN_PRICES.get(op, 1)
    if not callable(price):
        return price
    try:
        found = price(operands, result)
    except Exception as error:
        raise _unpriced("its price function", op, error) from error
    return _checked_price(found, "its price function", op)


class PriceError(ValueError, TypeError):
    """A cost model has no price, or none that is an integer of 0 or more."""


def _unpriced(who: str, op: str, error: Exception) -> PriceError:
    return PriceError(f"{who} fails to price {op!r}: {type(error).__name__}: {error}")


def _checked_price(price: Any, who: str, op: str) -> int:
    """A price as an integer, or a :class:`PriceError`."""
    if type(price) is int and price >= 0:
        return price
    if not hasattr(price, "__index__"):
        raise PriceError(f"{who} prices {op!r} at {price!r}: a price must be an integer")
    if price < 0:
        raise PriceError(f"{who} prices {op!r} at {price}: a price must be 0 or more")
    return cast(int, price.__index__())


def literal(bounds: Bounds) -> int | None:
    """The number that an operand always is, or None.

    Parameters
    ----------
    bounds : (int, int)
        Inclusive bounds of the operand.

    >>> literal((7, 7)), literal((0, 7))
    (7, None)
    """
    return bounds[0] if bounds[0] == bounds[1] else None


def width(bounds: Iterable[Bounds]) -> int:
    """The bits that hold all of some values: 32 or 64.

    Parameters
    ----------
    bounds : iterable of (int, int)
        Inclusive bounds of the values.

    >>> width([(0, 9), (0, 2**31 - 1)]), width([(0, 9), (0, 2**31)])
    (32, 64)
    """
    return 64 if any(low < _I32[0] or high > _I32[1] for low, high in bounds) else 32


def is_signed(bounds: Iterable[Bounds]) -> bool:
    """Whether some value may be negative.

    >>> is_signed([(0, 9), (-1, 9)])
    True
    """
    return any(low < 0 for low, _ in bounds)


@dataclass(frozen=True)
class OpCount:
    """Every operation costs ``other``, by default 1; literals and variables are free. ``weights`` overrides operators.

    >>> OpCount().price("floordiv", [(0, 99), (7, 7)], (0, 14))
    1
    >>> OpCount(weights={"floordiv": 10}).price("floordiv", [(0, 99), (7, 7)], (0, 14))
    10
    """

    weights: dict[str, int] = field(default_factory=dict)
    other: int = 1

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The weight of the operator; for a reduction, of each step."""
        if not operands:
            return 0
        return self.weights.get(op, self.other) * (steps(operands) if op in _REDUCTIONS else 1)


@dataclass(frozen=True)
class Latency:
    """Cycles to evaluate one node with its operands in registers, on a recent x86-64 core.

    Only ratios matter. Additions, comparisons, selections, shifts and masks take a cycle, a multiplication three. Floor
    division and remainder by ``2**k`` are one shift or mask for either sign. By another constant a quotient is a
    widening multiplication and a shift, with a fix-up if the numerator may be negative; the remainder multiplies back,
    by a shift and a sum where that is quicker, and subtracts; what takes more than 32 bits costs ``widening`` more, as
    its product needs 128 bits, of which there are no vectors. By a variable the divider takes 20 cycles to a remainder
    and 4 more to a floor quotient; operands that may be negative need a fix-up, and 64-bit operands take twice as long.
    Loads are issued early, so that little is waited for; a stored result is forwarded after four cycles. A step of a
    reduction takes its operation and one cycle for the loop. Source: Agner Fog's instruction tables (2022), rounded;
    `docs/gallery.md` compares them with measurements.

    >>> model = Latency()
    >>> model.price("floordiv", [(0, 99), (1, 9)], (0, 99)), model.price("shr", [(0, 99), (3, 3)], (0, 12))
    (24, 1)
    """

    simple: int = 1
    multiply: int = 3
    divide_by_constant: int = 5
    widening: int = 3
    sign_fix_up: int = 2
    remainder_by_variable: int = 20
    quotient_by_variable: int = 24
    load: int = 1
    store: int = 4

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The cost in the model's unit; 0 for literals and variables."""
        if not operands:
            return 0
        if op == "mul":
            return min([self._multiply(x) for x in operands])
        if op in DIVISIONS:
            return self._divide(op, operands[0], operands[1])
        if op in _REDUCTIONS:
            step = self.multiply if op == "prod_over" else self.simple
            return (step + self.simple) * steps(operands)
        if op in OWN_PRICES:
            return self.simple * additions(op, operands, result)
        return self.store if op == "store" else self.load if op == "load" else self.simple

    def _multiply(self, by: Bounds) -> int:
        low, high = by
        if low != high:
            return self.multiply
        if low in (0, 1):
            return 0
        return self.simple * (1 + (low < -1)) if is_power_of_two(abs(low)) else self.multiply

    def _divide(self, op: str, x: Bounds, y: Bounds) -> int:
        signed = x[0] < 0 or y[0] < 0
        truncates = op in ("tdiv", "tmod")
        if y[0] == y[1]:
            if is_power_of_two(abs(y[0])):
                return self.simple * (1 + (y[0] < 0)) + (self.sign_fix_up if truncates and signed else 0)
            quotient = self.divide_by_constant + (self.sign_fix_up if signed else 0)
            if x[0] < _I32[0] or x[1] > _I32[1]:
                quotient += self.widening
            if op in ("floordiv", "tdiv"):
                return quotient
            return quotient + min(self.multiply, self.simple * shifts_and_sums(abs(y[0]))) + self.simple
        cycles = self.quotient_by_variable if op == "floordiv" else self.remainder_by_variable
        if signed and not truncates:
            cycles += 2 * self.sign_fix_up
        return 2 * cycles if width((x, y)) == 64 else cycles


@dataclass(frozen=True)
class Throughput(Latency):
    """Quarter cycles that one node keeps a recent x86-64 core busy, while other nodes run beside it.

    Such a core starts four simple operations a cycle, but one multiplication; its divider is busy for 6 cycles, and
    for twice as long at 64 bits. A quotient by a constant is a multiplication, a shift and a move. This is what counts
    where a loop evaluates many independent points; :class:`Latency` is what counts where each waits for the last.
    Source: Agner Fog's instruction tables (2022), rounded.

    >>> Throughput().price("mul", [(0, 9), (7, 7)], (0, 63)), Latency().price("mul", [(0, 9), (7, 7)], (0, 63))
    (4, 3)
    """

    simple: int = 1
    multiply: int = 4
    divide_by_constant: int = 6
    widening: int = 4
    sign_fix_up: int = 2
    remainder_by_variable: int = 24
    quotient_by_variable: int = 26


@dataclass(frozen=True)
class CodeSize:
    """Bytes of x86-64 code that compute a node, its operands in registers and its result left in one.

    An instruction between two registers has an opcode and a byte that names them, a literal adds one byte or four,
    shifts and products by literals as much; one on 64 bits has a prefix more. A comparison sets a register, a selection
    is a test and a conditional move. A quotient by a constant loads a multiplier, multiplies and shifts; one by a
    variable moves its operands to where the divider takes them; floors of what may be negative are corrected. Copies
    between registers are not counted. A reduction counts each step, as if it were written out. Source: Intel 64 and
    IA-32 Architectures Software Developer's Manual (2023), volume 2, formats and opcodes.

    >>> model = CodeSize()
    >>> model.price("add", [(0, 9), (0, 9)], (0, 18)), model.price("add", [(0, 9), (500, 500)], (500, 509))
    (2, 6)
    >>> model.price("floordiv", [(0, 99), (7, 7)], (0, 14)), model.price("floordiv", [(0, 99), (8, 8)], (0, 12))
    (13, 3)
    """

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The bytes; 0 for literals and variables. A user's own operator has three for each addition that it costs."""
        if not operands:
            return 0
        if op in OWN_PRICES:
            return 3 * additions(op, operands, result)
        count = steps(operands) if op in _REDUCTIONS else 1
        size, instructions = _code(op, operands)
        return count * (size + (instructions if width([*operands, result]) == 64 else 0))


def _code(op: str, operands: Sequence[Bounds]) -> tuple[int, int]:
    """The bytes of the instructions of a node on 32 bits, and how many these are."""
    number = next((value for value in map(literal, operands) if value is not None), None)
    # of two registers, of a register and a literal of 8 bits, and of one of 32
    plain = 2 if number is None else 3 if -128 <= number < 128 else 6
    if op in DIVISIONS:
        return _division_code(op, operands, plain)
    if op == "mul":
        if number in (0, 1):
            return 0, 0
        if number is not None and is_power_of_two(abs(number)):
            return (3, 1) if number > 0 else (5, 2)
        return max(3, plain), 1
    if op in ("shl", "shr"):
        return (3, 1) if literal(operands[1]) is not None else (4, 2)
    if op in ("lt", "le", "eq", "ne", "where", "min", "max", "max_over", "min_over"):
        return plain + 3, 2
    return (3, 1) if op in ("load", "store", "prod_over") else (plain, 1)


def _division_code(op: str, operands: Sequence[Bounds], plain: int) -> tuple[int, int]:
    by, signed, quotient = literal(operands[1]), is_signed(operands), op in ("floordiv", "tdiv")
    if by is None:
        # operands are moved to the divider's registers and the result from them; a negative remainder is corrected
        return (17, 8) if signed and op not in ("tdiv", "tmod") else (9, 4) if signed else (8, 4)
    if is_power_of_two(abs(by)):
        size, count = (3, 1) if quotient else (plain, 1)
        return (size + 5, count + 2) if by < 0 or (signed and op in ("tdiv", "tmod")) else (size, count)
    size, count = (18, 5) if signed else (13, 3)
    return (size, count) if quotient else (size + max(3, plain) + 2, count + 2)


@dataclass(frozen=True)
class GPU:
    """Instructions that a thread of a recent NVIDIA GPU issues for one node, where others hide how long they take.

    Additions, shifts, masks, comparisons, minima, selections and products of 32 bits are issued at one rate, and a
    product takes a sum with it; what has 64 bits is made of two of 32. There is no divider: a quotient by a variable is
    a routine of up to 20 instructions, and some more for signs, so that it takes 20 to 40. By a constant it is the high
    half of a product, issued at half the rate, and a shift, with a correction of the sign; a remainder is a product
    and difference more. Source: NVIDIA CUDA C++ Programming Guide, 12, arithmetic instructions: the table of throughput
    for compute capability 8.0, and "integer division and modulo operation are costly as they compile to up to 20
    instructions".

    >>> model = GPU()
    >>> model.price("floordiv", [(0, 99), (1, 9)], (0, 99)), model.price("floordiv", [(0, 99), (7, 7)], (0, 14))
    (20, 3)
    >>> model.price("mul", [(0, 9), (7, 7)], (0, 63)), model.price("mul", [(0, 9), (0, 2**40)], (0, 9 * 2**40))
    (1, 2)
    """

    simple: int = 1
    divide_by_constant: int = 3
    divide_by_variable: int = 20
    sign_fix_up: int = 1

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The instructions; 0 for literals and variables."""
        if not operands:
            return 0
        if op == "mul" and any(value in (0, 1) for value in map(literal, operands)):
            return 0
        if op in DIVISIONS:
            count = self._divide(op, operands)
        elif op in _REDUCTIONS:
            # and the counter of the loop
            count = 2 * self.simple * steps(operands)
        else:
            count = self.simple * additions(op, operands, result)
        return 2 * count if width([*operands, result]) == 64 else count

    def _divide(self, op: str, operands: Sequence[Bounds]) -> int:
        by, fixes = literal(operands[1]), self.sign_fix_up if is_signed(operands) else 0
        if by is None:
            # signs are taken off both operands and put on the result; a floor compares with the remainder
            return self.divide_by_variable + (3 if op in ("tdiv", "tmod") else 6) * fixes
        if is_power_of_two(abs(by)):
            return self.simple * (1 + (by < 0)) + (2 * fixes if op in ("tdiv", "tmod") else 0)
        return self.divide_by_constant + fixes + (self.simple if op in ("mod", "tmod") else 0)


@dataclass(frozen=True)
class LoopAware:
    """Another model's prices, each paid once per iteration of the innermost loop that the node depends on.

    What depends on no loop runs once; the cost is that of the whole loop nest, so hoisting is priced in.

    Attributes
    ----------
    loops : mapping from variable name to int
        How often each loop runs, 1 or more, the outermost loop first. Other variables do not change in the loops.
    model : CostModel
        What a node costs each time.

    Raises
    ------
    ValueError
        If a loop runs less than once.
    TypeError
        If an argument is of another type.

    >>> model = LoopAware({"i": 10, "j": 8})
    >>> model.runs(model.level("n")), model.runs(model.level("i")), model.runs(model.level("j"))
    (1, 10, 80)
    """

    loops: Mapping[str, int]
    model: CostModel = field(default_factory=Latency)

    def __post_init__(self) -> None:
        if not isinstance(self.loops, Mapping):
            raise TypeError(f"loops must say how often each runs, as in {{'i': 8}}, not {self.loops!r}")
        refuse_other(self.model)
        for name, runs in self.loops.items():
            if not hasattr(runs, "__index__"):
                raise TypeError(f"loop {name!r} runs {runs!r} times: give an integer")
            if runs < 1:
                raise ValueError(f"loop {name!r} runs {runs} times: give 1 or more")

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """What a node costs each time that it runs."""
        return self.model.price(op, operands, result)

    def level(self, variable: str) -> int:
        """How deep the loop of a variable is: 1 for the outermost, 0 for a variable without a loop."""
        return self._levels.get(variable, 0)

    def runs(self, level: int) -> int:
        """How often a node runs whose innermost loop is at ``level``."""
        return self._runs[level]

    @cached_property
    def _levels(self) -> dict[str, int]:
        return {name: level for level, name in enumerate(self.loops, start=1)}

    @cached_property
    def _runs(self) -> list[int]:
        # numbers of NumPy would overflow
        return list(accumulate(map(index, self.loops.values()), mul, initial=1))


@dataclass(frozen=True)
class Checked:
    """Another model whose prices are checked.

    Raises
    ------
    PriceError
        By :meth:`price`, if the model fails, or a price is no integer, or below 0; the message names the operator.
    """

    model: CostModel

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The other model's price."""
        try:
            price = self.model.price(op, operands, result)
        except PriceError:
            # of a model that asks another one
            raise
        except Exception as error:
            raise _unpriced("the cost model", op, error) from error
        return _checked_price(price, "the cost model", op)


def checked(model: CostModel) -> CostModel:
    """``model`` with its prices checked, unless it is one of :data:`COST_MODELS`."""
    if isinstance(model, LoopAware):
        return replace(model, model=checked(model.model))
    return model if isinstance(model, Checked) or is_shipped_model(model) else Checked(model)


def is_shipped_model(model: CostModel) -> bool:
    """Whether ``model`` is one of :data:`COST_MODELS`."""
    return any(model is shipped for shipped in COST_MODELS.values())


def is_power_of_two(value: int) -> bool:
    """Whether ``value`` is 1, 2, 4, ..."""
    return value > 0 and value & (value - 1) == 0


def signed_digits(factor: int) -> int:
    """The places at which a positive literal has a digit 1 or -1, as bits, if it has as few as possible.

    No two of these are side by side then (Reitwiesner, Binary Arithmetic, 1960).

    >>> bin(signed_digits(7)), bin(signed_digits(11))
    ('0b1001', '0b10101')
    """
    return (factor ^ (3 * factor)) >> 1


def shifts_and_sums(factor: int) -> int:
    """How many shifts and sums multiply by a positive literal: one for each of its signed digits that is not 0.

    Each takes both but the first, which is not added, and the lowest one of an odd literal, which is not shifted.

    >>> shifts_and_sums(9), shifts_and_sums(7), shifts_and_sums(6), shifts_and_sums(11)
    (2, 2, 3, 4)
    """
    digits = signed_digits(factor)
    return 2 * digits.bit_count() - 1 - (digits & 1)


def exact_multiplier(divisor: int, most: int) -> tuple[int, int]:
    """A multiplier ``m`` and shift ``s`` with ``n // divisor == n*m >> s`` for every ``n`` in ``[0, most]``.

    They are the least if ``most >= divisor - 1``. For ``m = ceil(2**s / divisor)`` the product errs by
    ``n*(m*divisor - 2**s)``, and is nearest to the next quotient where ``n % divisor == divisor - 1``. Source: Granlund
    and Montgomery, Division by Invariant Integers using Multiplication (1994).

    >>> exact_multiplier(7, 100)
    (147, 10)
    >>> all(n * 147 >> 10 == n // 7 for n in range(101))
    True
    """
    critical = most - (most + 1) % divisor if most >= divisor - 1 else most
    shift = 0
    while True:
        multiplier = -(-(1 << shift) // divisor)
        if critical * (multiplier * divisor - (1 << shift)) < 1 << shift:
            return multiplier, shift
        shift += 1


#: The shipped models that need no data, by name. By none does an operation cost less than an addition.
COST_MODELS: dict[str, CostModel] = {
    "latency": Latency(),
    "throughput": Throughput(),
    "opcount": OpCount(),
    "codesize": CodeSize(),
    "gpu": GPU(),
}


FORMAT = "eqsat cost model 1"

#: What is measured of every kind: the time until the next operation can start, that until one which needs the result
#: can, and the share of one operation in a vectorised loop.
FIGURES = ("throughput", "latency", "vectorised")

_SIMPLE = {
    **dict.fromkeys(("add", "sub", "neg"), "add"),
    **dict.fromkeys(("lt", "le", "eq", "ne"), "compare"),
    **dict.fromkeys(("and", "or", "not"), "logic"),
    **dict.fromkeys(("min", "max"), "min"),
    **dict.fromkeys(("shl", "shr"), "shift"),
    **dict.fromkeys(("bitand", "bitor", "bitxor"), "mask"),
    "where": "select",
    "load": "load",
    "store": "store",
}
#: What a step of a reduction does, besides counting.
_STEPS = {"sum_over": "add", "prod_over": "multiply", "max_over": "min", "min_over": "min"}
_DIVISION_KINDS = [
    f"{op} by {by} {sign}"
    for op in ("floordiv", "mod", "tdiv", "tmod")
    for by in ("literal", "variable")
    # where nothing is negative, both roundings are one operation
    for sign in (("signed",) if op in ("tdiv", "tmod") else ("unsigned", "signed"))
]
_KINDS = [*dict.fromkeys(_SIMPLE.values()), "multiply", "multiply by literal", *_DIVISION_KINDS]

#: The kinds of operations, each at 32 and at 64 bits; conditions have no width.
OPERATIONS = [f"{name} i{bits}" for bits in (32, 64) for name in _KINDS if (name, bits) != ("logic", 64)]


def operation(op: str, operands: Sequence[Bounds], result: Bounds) -> str | None:
    """The kind of a node: one of :data:`OPERATIONS`, or None if it takes no time; an addition for other operators.

    >>> operation("floordiv", [(0, 99), (7, 7)], (0, 14)), operation("mod", [(-9, 9), (8, 8)], (0, 7))
    ('floordiv by literal unsigned i32', 'mask i32')
    """
    name = _kind(op, operands)
    return name and f"{name} i{width([*operands, result])}"


def _kind(op: str, operands: Sequence[Bounds]) -> str | None:
    if op in _SIMPLE:
        return _SIMPLE[op]
    literals = [value for value in map(literal, operands) if value is not None]
    if op == "mul":
        if not literals:
            return "multiply"
        if any(value in (0, 1) for value in literals):
            return None
        return "shift" if any(map(is_power_of_two, literals)) else "multiply by literal"
    if op not in DIVISIONS:
        return "add"
    divisor, signed = literal(operands[1]), is_signed(operands)
    truncates = op in ("tdiv", "tmod") and signed
    if divisor is not None and is_power_of_two(divisor) and not truncates:
        return "shift" if op in ("floordiv", "tdiv") else "mask"
    if not signed:
        op = {"tdiv": "floordiv", "tmod": "mod"}.get(op, op)
    by = "variable" if divisor is None else "literal"
    return f"{op} by {by} {'signed' if signed else 'unsigned'}"


@dataclass(frozen=True)
class Calibrated:
    """Picoseconds for each kind of operation, as measured on one machine.

    Attributes
    ----------
    picoseconds : mapping from str to int
        For each of :data:`OPERATIONS`.
    machine : mapping from str to str
        Where it was measured.

    >>> Calibrated(dict.fromkeys(OPERATIONS, 250)).price("add", [(0, 9), (0, 9)], (0, 18))
    250
    """

    picoseconds: Mapping[str, int]
    machine: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path, figure: str = "throughput") -> Calibrated:
        """The model in a file that ``eqsat calibrate`` has written.

        Parameters
        ----------
        path : str or Path
            The file.
        figure : {"throughput", "latency", "vectorised"}
            Which of its figures to price by.

        Raises
        ------
        ValueError
            If the file is not such a model, or there is no such figure.
        OSError
            If it cannot be read.
        """
        import json

        if figure not in FIGURES:
            raise ValueError(f"there is no figure {figure!r}: use one of {', '.join(FIGURES)}")
        try:
            content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(content, dict):
                raise ValueError("it holds no JSON object")
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
            given = content["picoseconds"][figure]
            picoseconds = {kind: int(given[kind]) for kind in OPERATIONS}
            if min(picoseconds.values()) < 0:
                raise ValueError("a figure is negative")
            return cls(picoseconds, dict(content["machine"]))
        except (ValueError, OverflowError, KeyError, TypeError, RecursionError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{str(path)!r} is not a cost model: {reason}; write one with eqsat calibrate") from None

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """Picoseconds; 0 for literals and variables.

        A step of a reduction takes its operation and an addition for the loop; what is not measured, as of floats, an
        addition.
        """
        if not operands:
            return 0
        bits = width([*operands, result])
        if op in _STEPS:
            step = self.picoseconds[f"{_STEPS[op]} i{bits}"] + self.picoseconds[f"add i{bits}"]
            return step * steps(operands)
        if op in OWN_PRICES:
            return self.picoseconds[f"add i{bits}"] * additions(op, operands, result)
        kind = operation(op, operands, result)
        return 0 if kind is None else self.picoseconds[kind]


def cost_model(name: CostModel | str) -> CostModel:
    """The cost model that ``name`` names, or is.

    Parameters
    ----------
    name : CostModel or str
        A model; or one of :data:`COST_MODELS`, the path of a file that ``eqsat calibrate`` has written, which ends in
        ``.json``, or ``FILE.py:NAME``, a model that a Python file defines, or its class.

    Raises
    ------
    ValueError
        If there is no such model, or the file holds none.
    TypeError
        If it is neither a name nor a model.
    OSError
        If the file cannot be read.

    >>> cost_model("opcount")
    OpCount(weights={}, other=1)
    """
    if not isinstance(name, str):
        refuse_other(name)
        return name
    if name.endswith(".json"):
        return Calibrated.load(name)
    path, colon, found = name.rpartition(":")
    if colon and path.endswith(".py"):
        defined = globals_of(path)
        if found not in defined:
            raise ValueError(f"{path} defines no {found!r}: name a cost model of it")
        try:
            model = defined[found]() if isinstance(defined[found], type) else defined[found]
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path}: {found}() fails ({wrong}): name an object instead of its class") from None
        if not hasattr(model, "price"):
            raise ValueError(f"{path}: {found!r} is no cost model: give it a method price(op, operands, result)")
        return cast(CostModel, model)
    if name not in COST_MODELS:
        from difflib import get_close_matches

        likely = "".join(f"; did you mean {near!r}?" for near in get_close_matches(name, COST_MODELS, 1))
        raise ValueError(
            f"unknown cost model {name!r}: use {', '.join(COST_MODELS)}, a model file, FILE.json, or a model of your "
            f"own, FILE.py:NAME{likely}"
        )
    return COST_MODELS[name]


#: What Python files define, by their absolute paths.
_DEFINED: dict[Path, dict[str, Any]] = {}


def globals_of(path: str | Path) -> dict[str, Any]:
    """What the Python file at ``path`` defines; it is run once in a process.

    Raises
    ------
    ValueError
        If it fails; the message says where.
    OSError
        If it cannot be read.
    """
    file = Path(path).resolve()
    if file not in _DEFINED:
        file.read_bytes()
        try:
            _DEFINED[file] = run_path(str(file))
        except (Exception, SystemExit) as error:
            raise ValueError(f"{path} fails: {type(error).__name__}: {error}") from error
        except BaseException as error:
            # it may be the caller's own, raised by a signal that came meanwhile
            error.add_note(f"while {path} ran")
            raise
    return _DEFINED[file]
