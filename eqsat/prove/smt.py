"""Terms as z3 terms over mathematical integers: the one encoding that proofs of results and of rules share.

z3 (the extra ``check``) is imported when it is first used, so this module may be imported without it. A proof that must
come out the same in every process gives a z3 context of its own: names and their order then decide what z3 does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import product
from math import inf
from types import MappingProxyType
from typing import Any, cast

from eqsat.lang.expr import Expr, brief, const, instantiate, make, rebuild
from eqsat.lang.functions import where
from eqsat.lang.ops import BITWISE, DIVISIONS, MAX_SHIFT, OWN, REDUCTIONS, Lazy, Op, is_finite, np
from eqsat.lang.properties import neutral
from eqsat.lang.traversal import array_of, topological
from eqsat.prove.boxes import FLOATING, UndecidedError

z3: Any = Lazy("z3")
#: What z3 takes no larger limits than.
Z3_LARGEST = 2**32 - 1


@dataclass(frozen=True)
class Quotient:
    """``dividend == divisor*quotient + remainder``, rounded down, or toward zero where it ``truncates``."""

    dividend: Any
    divisor: Any
    quotient: Any
    remainder: Any
    truncates: bool

    def definition(self) -> Any:
        """The fact that makes quotient and remainder unique; nothing is said of a zero divisor."""
        remainder, divisor = self.remainder, self.divisor
        if self.truncates:
            size = z3.If(divisor < 0, -divisor, divisor)
            small = z3.And(
                z3.If(self.dividend < 0, remainder <= 0, remainder >= 0), -size < remainder, remainder < size
            )
        else:
            small = z3.If(
                divisor > 0, z3.And(remainder >= 0, remainder < divisor), z3.And(divisor < remainder, remainder <= 0)
            )
        return z3.Implies(divisor != 0, z3.And(self.dividend == divisor * self.quotient + remainder, small))


@dataclass
class Quotients:
    """Divisions as variables: z3 is better at ``a == b*q + r`` than at its own division by a term.

    A proof that uses the encoded terms must assume the definition of every quotient ``found``.
    """

    found: list[Quotient] = field(default_factory=list)

    def divide(self, op: str, dividend: Any, divisor: Any) -> Any:
        """The variable for the value of the division ``op``; equal operands give the same one."""
        truncates = op in ("tdiv", "tmod")
        for known in self.found:
            if truncates is known.truncates and z3.eq(dividend, known.dividend) and z3.eq(divisor, known.divisor):
                break
        else:
            quotient, remainder = (
                z3.Int(f"{part}_{len(self.found)}", dividend.ctx) for part in ("quotient", "remainder")
            )
            known = Quotient(dividend, divisor, quotient, remainder, truncates)
            self.found.append(known)
        return known.quotient if op in ("floordiv", "tdiv") else known.remainder


#: Reductions with up to this number of values are written out.
MAX_UNROLLED = 256


def unrolled(roots: Sequence[Expr]) -> list[Expr]:
    """``roots`` with every reduction written out.

    Raises ``ValueError`` if a reduction has more than :data:`MAX_UNROLLED` steps, or one of them divides by zero, or it
    is one of floating-point values, which evaluation may add in another order.
    """
    return rebuild(roots, lambda term, args: _unrolled(term.op, *args) if term.op in REDUCTIONS else None)


def _unrolled(op: str, body: Expr, index: Expr, low: Expr, high: Expr) -> Expr:
    reduction = REDUCTIONS[op]
    extreme = op in ("max_over", "min_over")
    if body.element:
        raise ValueError(f"the reduction of {brief(body)!r} is one of floating-point values")
    if high.vmax - low.vmin > MAX_UNROLLED:
        raise ValueError(f"a reduction of {brief(body)!r} has more than {MAX_UNROLLED} steps: narrow its range")
    is_fixed = low.vmin == low.vmax and high.vmin == high.vmax
    if extreme and not is_finite(cast(int, neutral(op, body))) and not (is_fixed and (low < high).vmin):
        raise ValueError(f"{brief(body)!r} has no bound for steps out of the range: give bounds to its variables")
    total: Expr | None = None
    for number in range(low.vmin, high.vmax):
        step = instantiate(body, index, const(number))
        inside = (low <= number) & (const(number) < high)
        if not inside.vmin:
            step = where(inside, step, neutral(op, body))
        total = step if total is None else make(reduction.combine, total, step)
    if total is None:
        return const(reduction.identity)
    return where(low < high, total, reduction.identity) if extreme and not (low < high).vmin else total


def to_z3(
    roots: Sequence[Expr],
    quotients: Quotients | None = None,
    letters: Mapping[str, Any] = MappingProxyType({}),
    context: Any = None,
) -> dict[Expr, Any]:
    """Every term below ``roots`` as a z3 term over mathematical integers, with floor division.

    The ranges of variables are not stated. Bit operators are encoded as bit-vectors that hold their operands, so the
    ranges of what is in these must be. ``quotients`` takes every division by what is no number; without it they are
    z3's own. ``letters`` stand for the variables of these names; the others keep theirs. The terms live in ``context``,
    or z3's main one.

    Raises ``UndecidedError`` if an operand of a bit operator has no bound, or there are floating-point values.
    """
    operators = _operators()
    encoded: dict[Expr, Any] = {}
    for term in topological(roots):
        args = [encoded[arg] for arg in term.args]
        if term.element:
            raise UndecidedError(FLOATING)
        if term.op == "var":
            encoded[term] = letters[str(term.value)] if term.value in letters else z3.Int(term.value, context)
        elif term.op == "buffer":
            # an array is known by its loads alone
            encoded[term] = None
        elif term.op == "load":
            sorts = [*[z3.IntSort(context)] * len(args[1:]), (z3.BoolSort if term.is_bool else z3.IntSort)(context)]
            encoded[term] = z3.Function(array_of(term).name, *sorts)(*args[1:])
        elif term.op in OWN:
            encoded[term] = _own(OWN[term.op], args, context)
        elif term.op in BITWISE:
            encoded[term] = _bitwise(term, *args)
        elif not args:
            encoded[term] = (z3.BoolVal if term.is_bool else z3.IntVal)(term.value, context)
        else:
            encoded[term] = _apply(term.op, args, operators, quotients)
    return encoded


def limited(solver: Any, steps: int, seconds: float = inf) -> Any:
    """The solver with a limit in z3's own steps, and one of time.

    Ctrl-C is left to Python: what z3 answers when it takes one looks like a limit that was reached.
    """
    solver.set("rlimit", steps)
    if seconds < Z3_LARGEST / 1000:
        solver.set("timeout", max(1, int(seconds * 1000)))
    solver.set("ctrl_c", False)
    return solver


def _bitwise(term: Expr, x: Any, y: Any) -> Any:
    """A bit operator, on as many bits as its operands have by their bounds."""
    if not is_finite(*[end for a in term.args for end in (a.vmin, a.vmax)]):
        raise UndecidedError(f"an operand of {brief(term)!r} has no bound, and so no number of bits")
    bits = 1 + max(end.bit_length() for a in term.args for end in (a.vmin, a.vmax))
    one, other = z3.Int2BV(x, bits), z3.Int2BV(y, bits)
    joined = one & other if term.op == "bitand" else one | other if term.op == "bitor" else one ^ other
    return z3.BV2Int(joined, is_signed=term.vmin < 0)


def _apply(op: str, args: list[Any], operators: dict[str, Callable[..., Any]], quotients: Quotients | None) -> Any:
    if quotients is None or op not in DIVISIONS | {"shr"}:
        return operators[op](*args)
    dividend, divisor = args
    if op == "shr":
        op, divisor = "floordiv", _power_of_two(divisor)
    number = z3.simplify(divisor)
    return operators[op](dividend, number) if z3.is_int_value(number) else quotients.divide(op, dividend, divisor)


def _power_of_two(exponent: Any) -> Any:
    if z3.is_int_value(exponent):
        return z3.IntVal(2 ** exponent.as_long(), exponent.ctx)
    one = z3.IntVal(1, exponent.ctx)
    return reduce(lambda power, k: z3.If(exponent == k, 2**k, power), range(1, MAX_SHIFT + 1), one)


def _operators() -> dict[str, Callable[..., Any]]:
    """What each operator means to z3, whose own ``/`` and ``%`` round down for positive divisors only."""

    def magnitude(a: Any) -> Any:
        return z3.If(a < 0, -a, a)

    def truncated(a: Any, b: Any) -> Any:
        quotient = magnitude(a) / magnitude(b)
        return z3.If((a < 0) == (b < 0), quotient, -quotient)

    return {
        "or": z3.Or,
        "and": z3.And,
        "not": z3.Not,
        **{op: getattr(operator, op) for op in ("lt", "le", "eq", "ne", "add", "sub", "mul", "neg")},
        "floordiv": lambda a, b: z3.If(b > 0, a / b, -a / -b),
        "mod": lambda a, b: z3.If(b > 0, a % b, -(-a % -b)),
        "tdiv": truncated,
        "tmod": lambda a, b: a - b * truncated(a, b),
        "shl": lambda a, b: a * _power_of_two(b),
        "shr": lambda a, b: a / _power_of_two(b),
        "min": lambda a, b: z3.And(a, b) if z3.is_bool(a) else z3.If(a <= b, a, b),
        "max": lambda a, b: z3.Or(a, b) if z3.is_bool(a) else z3.If(a >= b, a, b),
        "where": z3.If,
    }


def _own(op: Op, operands: Sequence[Any], context: Any) -> Any:
    """An operator of a user's own: by its meaning, or as any function."""
    if op.z3 is not None:
        _refuse_other_meaning(op)
        return _meaning(op, operands, context)
    return z3.Function(f"{op.name}()", *[z3.IntSort(context)] * (len(operands) + 1))(*operands)


def _meaning(op: Op, operands: Sequence[Any], context: Any) -> Any:
    """What an operator of a user's own is to z3, where that is an integer."""
    try:
        meant = cast(Callable[..., Any], op.z3)(*operands)
    except Exception as error:
        raise TypeError(f"the z3 of operator {op.name!r} fails ({type(error).__name__}: {error})") from error
    if type(meant) is int:
        return z3.IntVal(meant, context)
    if not z3.is_int(meant):
        raise TypeError(f"the z3 of operator {op.name!r} gives {meant!r}: give one of z3's integers")
    return meant


@cache
def _refuse_other_meaning(op: Op) -> None:
    """Compare the meaning to z3 of an operator with its values at small numbers."""
    context = z3.Context()
    for point in product(range(-3, 10), repeat=len(op.takes)):
        meant = z3.simplify(_meaning(op, [z3.IntVal(value, context) for value in point], context))
        value = int(op.evaluate(*map(np.asarray, point)))
        if str(meant) != str(value):
            raise ValueError(f"operator {op.name!r} is {value} at {point}, and {meant} to z3: mend one of them")


def to_bit_vectors(roots: Sequence[Expr], context: Any) -> dict[Expr, Any]:
    """Every term below ``roots`` as a z3 bit-vector, all of one width, that holds it by its bounds; conditions as such.

    Nothing overflows where the variables are in their ranges, which are not stated, and no divisor is zero.
    """
    order = topological(roots)
    # a bit for the sign, and one for the dividend of a floor
    width = 2 + max(end.bit_length() for term in order for end in (term.vmin, term.vmax))
    operators = _operators() | {
        "floordiv": lambda a, b: (a - a % b) / b,
        "mod": lambda a, b: a % b,
        "tdiv": lambda a, b: a / b,
        "tmod": lambda a, b: z3.SRem(a, b),
        "shl": lambda a, b: a << b,
        "shr": lambda a, b: a >> b,
        "bitand": lambda a, b: a & b,
        "bitor": lambda a, b: a | b,
        "bitxor": lambda a, b: a ^ b,
    }
    encoded: dict[Expr, Any] = {}
    for term in order:
        if term.op == "var":
            encoded[term] = z3.BitVec(term.value, width, context)
        elif term.args:
            encoded[term] = operators[term.op](*[encoded[arg] for arg in term.args])
        else:
            known = z3.BoolVal(term.value, context) if term.is_bool else z3.BitVecVal(term.value, width, context)
            encoded[term] = known
    return encoded
