"""Terms as z3 terms over mathematical integers: the one encoding that proofs of results and of rules share.

z3 (the extra ``check``) is imported where it is used, so this module may be imported without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from eqsat.expr import Expr, topological
from eqsat.ops import MAX_SHIFT


def to_z3(roots: Sequence[Expr]) -> dict[Expr, Any]:
    """Every term below ``roots`` as a z3 term over mathematical integers, with floor division.

    >>> from eqsat import var
    >>> x = var("x", -5, 5)
    >>> to_z3([x + 2])[x + 2]
    x + 2
    """
    import z3

    operators = _operators()
    encoded: dict[Expr, Any] = {}
    for term in topological(roots):
        if term.op == "var":
            encoded[term] = z3.Int(term.value)
        elif not term.args:
            encoded[term] = z3.BoolVal(term.value) if term.is_bool else z3.IntVal(term.value)
        else:
            encoded[term] = operators[term.op](*[encoded[arg] for arg in term.args])
    return encoded


def _operators() -> dict[str, Callable[..., Any]]:
    """What each operator means to z3, whose own ``/`` and ``%`` round down for positive divisors only."""
    from z3 import And, If, IntVal, Not, Or, is_bool, is_int_value

    def power_of_two(b: Any) -> Any:
        if is_int_value(b):
            return IntVal(2 ** b.as_long())
        return reduce(lambda power, k: If(b == k, 2**k, power), range(1, MAX_SHIFT + 1), IntVal(1))

    def magnitude(a: Any) -> Any:
        return If(a < 0, -a, a)

    def truncated(a: Any, b: Any) -> Any:
        quotient = magnitude(a) / magnitude(b)
        return If((a < 0) == (b < 0), quotient, -quotient)

    return {
        "or": Or,
        "and": And,
        "not": Not,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "floordiv": lambda a, b: If(b > 0, a / b, -a / -b),
        "mod": lambda a, b: If(b > 0, a % b, -(-a % -b)),
        "tdiv": truncated,
        "tmod": lambda a, b: a - b * truncated(a, b),
        "shl": lambda a, b: a * power_of_two(b),
        "shr": lambda a, b: a / power_of_two(b),
        "min": lambda a, b: And(a, b) if is_bool(a) else If(a <= b, a, b),
        "max": lambda a, b: Or(a, b) if is_bool(a) else If(a >= b, a, b),
        "where": If,
    }
