"""Operators of users' own: what one is, as data, and whether what is said of it agrees.

An operator takes integers and gives one. Terms, rules, texts, checks and C have it as they have those of
:mod:`eqsat.lang.ops`; the theory knows no law of it, so its laws are rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from random import Random
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from eqsat.extract.cost import OWN_PRICES
from eqsat.lang.expr import WORDS, Expr, ExprLike, as_expr, make
from eqsat.lang.ops import FLOATS, INFINITY, LETTERS, OPS, REDUCTIONS, Array, Bounds, Op, add_own, is_finite, np
from eqsat.lang.validation import require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: What the text form and the language of rules call by name already.
_TAKEN = {
    *WORDS,
    *OPS,
    *FLOATS,
    *REDUCTIONS,
    *(reduction.text for reduction in REDUCTIONS.values()),
    *("abs", "ceildiv", "load", "inf", "nan", "if", "else"),
    *("vmin", "vmax", "factor", "gcd", "modulus", "remainder", "free", "divides", "steps", "at"),
}
#: The ends of the ranges over which the bounds of an operator are compared with its values.
_ENDS = (-1000, -8, -1, 0, 1, 5, 8, 250, 70000)


@dataclass(frozen=True)
class Operator:
    """An operator of one's own, made by :func:`operator`; call it to build terms.

    >>> from eqsat import var
    >>> odd = operator("odd", 1, lambda x: x & 1, bounds=lambda x: (0, 1), c="x & 1")
    >>> odd(7), odd(var("i", 0, 9))
    (Expr('odd(7)'), Expr('odd(i)'))

    Attributes
    ----------
    name : str
        What texts and rules call it.
    """

    name: str

    def __call__(self, *operands: ExprLike) -> Expr:
        """The term that applies it."""
        return make(self.name, *map(as_expr, operands))


def operator(
    name: str,
    arity: int,
    evaluate: Callable[..., Any],
    *,
    bounds: Callable[..., Bounds] | None = None,
    price: int | Callable[[Sequence[Bounds], Bounds], int] = 1,
    c: str = "",
    z3: Callable[..., Any] | None = None,
) -> Operator:
    """An operator on integers, which terms, texts and rules may have from now on.

    Parameters
    ----------
    name : str
        What texts and rules call it: an ASCII identifier that nothing else has.
    arity : int
        How many operands it takes, 1 to 4.
    evaluate : callable
        Takes one NumPy array of integers for each operand, which are broadcast together, and returns an array of
        integers: a value for all integers, negative ones and zero included. Arrays are of ``int64``; of ``object``,
        with Python's integers, where an operand has more than 62 bits, or the value may by ``bounds``.
    bounds : callable, optional
        Takes inclusive bounds ``(low, high)`` of each operand, and returns those of the value. An end may be infinite,
        as ``math.inf`` is; an end that is returned may be ``None``, for no bound. Without it there are none.
    price : int or callable
        What it costs under the models that are shipped, in additions; or what takes the bounds of the operands and of
        the value to that. ``opcount`` counts 1. A model of one's own is asked by its name.
    c : str, optional
        Its value in C, an expression over the operands, which are called ``x``, ``y``, ``z``, ``w``. They and the value
        have the type ``T``, an ``int32_t`` or ``int64_t`` that holds them all by their bounds; ``U`` is its unsigned
        twin. Without it terms that have it cannot be lowered.
    z3 : callable, optional
        Takes z3's integers to its value there, for proofs. Without it proofs take it for any function.

    Raises
    ------
    ValueError
        If the name is taken, or values lie beyond the bounds; the message names what is wrong.
    TypeError
        If an argument is of another type, or ``evaluate`` or ``bounds`` gives no integers.

    >>> ones = operator(
    ...     "ones", 1, np.bitwise_count, bounds=lambda x: (0, max(abs(x[0]), abs(x[1])).bit_length()),
    ...     c="__builtin_popcountll(x < 0 ? -(uint64_t)x : x)",
    ... )
    >>> from eqsat import Rule, optimize
    >>> same = Rule("ones-of-shifted", "ones(x*c)", "ones(x)", "c > 0 and c & (c - 1) == 0")
    >>> optimize("ones(i*8) + ones(6)", i=(0, 99), rules=[same]).expr
    Expr('ones(i) + 2')
    """
    require(name, str, "the name of an operator")
    given = (name, arity, evaluate, bounds, price, c, z3)
    if (before := _DEFINED.get(name)) is not None:
        # a cell of a notebook is run again
        if all(map(_is_same, before, given)):
            return Operator(name)
        raise ValueError(f"there is an operator {name!r} already: give another name")
    _refuse_arguments(*given)
    ranges = partial(_ranges, name, bounds)
    values = partial(_values, name, evaluate, ranges)
    op = Op(name, "i" * arity, "i", partial(_bounds, values, ranges), values, c=c, z3=z3)
    _refuse_beyond_bounds(op, ranges)
    _DEFINED[name], OWN_PRICES[name] = given, price
    add_own(op)
    return Operator(name)


def _refuse_arguments(
    name: str, arity: object, evaluate: object, bounds: object, price: object, c: object, z3: object
) -> None:
    """Raise ``ValueError`` or ``TypeError`` if an argument of :func:`operator` is none that it takes."""
    if not name.isascii() or not name.isidentifier() or name in _TAKEN or name[0] == "_":
        raise ValueError(f"{name!r} cannot name an operator: use letters, digits and underscores, and no name of eqsat")
    if type(arity) is not int or not 1 <= arity <= len(LETTERS):
        raise ValueError(f"operator {name!r} takes {arity!r} operands: give 1 to {len(LETTERS)}")
    if not isinstance(c, str):
        raise TypeError(f"the C of operator {name!r} is a text, not {c!r}")
    for what, function in (("evaluate", evaluate), ("bounds", bounds), ("z3", z3)):
        if not (callable(function) or (function is None and what != "evaluate")):
            raise TypeError(f"{what} of operator {name!r} is {function!r}: give a function")
    if not (callable(price) or (type(price) is int and price >= 0)):
        raise TypeError(f"the price of operator {name!r} is {price!r}: give an integer of 0 or more, or a function")


#: What each operator was made of.
_DEFINED: dict[str, tuple[Any, ...]] = {}


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arguments are equal, or functions of the same code over equal values."""
    if not (isinstance(one, FunctionType) and isinstance(other, FunctionType)):
        return _are_equal(one, other)
    values, others = _parts(one), _parts(other)
    return len(values) == len(others) and all(map(_are_equal, values, others))


def _parts(function: FunctionType) -> list[Any]:
    """The code of a function, and the values that it has besides."""
    keywords = function.__kwdefaults__ or {}
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__code__, *(function.__defaults__ or ()), *cells, *(keywords[name] for name in sorted(keywords))]


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


def _values(name: str, evaluate: Callable[..., Any], ranges: Callable[..., Bounds], *operands: ArrayLike) -> Array:
    """The values of an operator: integers, in arrays that hold them."""
    arrays = np.broadcast_arrays(*map(_wide, operands))
    if arrays[0].size and not _are_short(ranges(*[(int(a.min()), int(a.max())) for a in arrays])):
        arrays = tuple([a.astype(object) for a in arrays])
    try:
        with np.errstate(all="ignore"):
            found: Array = np.asarray(evaluate(*arrays))
    except Exception as error:
        raise TypeError(
            f"operator {name!r} fails for arrays of {arrays[0].dtype} and shape {arrays[0].shape} "
            f"({type(error).__name__}: {error}): let evaluate take any such"
        ) from error
    if found.dtype.kind not in "biuO" or found.shape != arrays[0].shape:
        raise TypeError(
            f"operator {name!r} evaluates to an array of {found.dtype} and shape {found.shape} for shape "
            f"{arrays[0].shape}: give integers, one for each point"
        )
    return found.astype(np.int64) if found.dtype.kind in "bu" and found.dtype != np.uint64 else found


def _wide(array: Any) -> Array:
    """``array`` as one of ``int64``, or of Python's integers where it has long ones."""
    array = np.asarray(array)
    is_long = array.size and not _are_short((array.min(), array.max()))
    return cast("Array", array.astype(object if is_long else np.int64))


def _are_short(ends: Bounds) -> bool:
    """Whether numbers within these bounds have up to 62 bits; of infinite ones nothing is known."""
    return all(-(2**62) < end < 2**62 or not is_finite(end) for end in ends)


def _bounds(values: Callable[..., Array], ranges: Callable[..., Bounds], *operands: Bounds) -> Bounds:
    """The bounds of an operator; exact where all operands are literals."""
    if all(low == high and is_finite(low) for low, high in operands):
        value = int(values(*[low for low, _ in operands]))
        return value, value
    return ranges(*operands)


def _ranges(name: str, given: Callable[..., Any] | None, *operands: Bounds) -> Bounds:
    """The bounds of an operator as they are given."""
    if given is None:
        return -INFINITY, INFINITY
    shown = ", ".join(map(str, operands))
    try:
        low, high = given(*operands)
        low = -INFINITY if low is None or low == -INFINITY else low if low is INFINITY else low.__index__()
        high = INFINITY if high is None or high == INFINITY else high if high is -INFINITY else high.__index__()
    except Exception as error:
        raise TypeError(f"the bounds of operator {name!r} fail for {shown}: {error}") from None
    if low > high:
        raise ValueError(f"the bounds of operator {name!r} are [{low}, {high}] for {shown}: the low end is first")
    return low, high


def _refuse_beyond_bounds(op: Op, bounds: Callable[..., Bounds]) -> None:
    """Compare values with bounds, over ranges of small and of larger numbers."""
    ranges = [(low, high) for low, high in product(_ENDS, _ENDS) if low <= high]
    arity, draws = len(op.takes), Random(0)
    most = round(2000 ** (1 / arity))
    chosen = [(ends,) for ends in ranges] if arity == 1 else [draws.choices(ranges, k=arity) for _ in range(200)]
    for operands in chosen:
        axes = [np.unique(np.linspace(low, high, most).astype(np.int64)) for low, high in operands]
        grid = np.meshgrid(*axes, indexing="ij")
        found = op.evaluate(*grid)
        low, high = bounds(*operands)
        # NumPy before 2.1 asks an infinite end for its digits
        below = found < low if is_finite(low) else False
        above = found > high if is_finite(high) else False
        bad = np.asarray(below | above)
        if bad.any():
            at = tuple(np.argwhere(bad)[0])
            point = ", ".join(str(axis[at]) for axis in grid)
            raise ValueError(
                f"operator {op.name!r} is {found[at]} at ({point}), beyond its bounds [{low}, {high}] for "
                f"{', '.join(map(str, operands))}: widen them"
            )
