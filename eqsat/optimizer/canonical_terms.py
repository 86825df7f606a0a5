"""Canonical terms: one order and one notation of operands, for rules that match terms one by one.

Addends, factors and the like are sorted by their keys, literals folded and last, neutral ones dropped. ``sub``,
``neg``, ``le`` and ``ne`` are written with other operators, as in the e-graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType

from eqsat.egraph.patterns import operands_of
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, const, make, rebuild, shift_amount, stated
from eqsat.lang.ops import BITWISE, OPS, REDUCTIONS
from eqsat.lang.traversal import topological
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.arithmetic import Work

#: Commutative and associative operators.
CHAINED = frozenset({"add", "mul", "min", "max", "and", "or", *BITWISE})
_NEUTRAL = {"add": const(0), "mul": const(1), "and": TRUE, "or": FALSE}
_NEUTRAL |= {"bitor": const(0), "bitxor": const(0), "bitand": const(-1)}

ONE, MINUS_ONE = const(1), const(-1)
#: The name of an index.
INDEX = "$"


def canonical(op: str, *args: Expr) -> Expr:
    """The operator ``op`` on canonical operands as a canonical term.

    Raises ``ValueError`` as :func:`eqsat.lang.expr.make` does, and if a divisor can only be zero.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> canonical("add", canonical("add", x, const(3)), y) is canonical("add", y, canonical("add", const(3), x))
    True
    """
    match op:
        case "sub":
            return canonical("add", args[0], canonical("mul", args[1], MINUS_ONE))
        case "neg":
            return canonical("mul", args[0], MINUS_ONE)
        case "ne":
            return canonical("not", canonical("eq", *args))
        case "le" if args[0].op == "const":
            return canonical("lt", const(args[0].vmin - 1), args[1])
        case "le":
            return canonical("lt", args[0], canonical("add", args[1], ONE))
    if op in CHAINED:
        return joined(op, [*operands_of(args[0], op), *operands_of(args[1], op)])
    if commutes(op):
        args = tuple(sorted(args, key=_order))
    if op in REDUCTIONS and args[1].op != "var":
        # an index with one value, which the body has in its place
        args = (args[0], any_var(INDEX, args[1].vmin, args[1].vmax), *args[2:])
    term = stated(op, *args)
    return literal_of(term) if all(map(is_literal, args)) and term.vmin == term.vmax else term


def commutes(op: str) -> bool:
    """Whether an operator, which may be a load or a reduction too, takes its operands in either order."""
    return op in OPS and OPS[op].commutes


def canonical_terms(terms: Iterable[Expr]) -> list[Expr]:
    """The terms as :class:`Matcher` takes them: every operator by :func:`canonical`."""

    def canonically(term: Expr, args: tuple[Expr, ...]) -> Expr:
        try:
            return canonical(term.op, *args) if args else term
        except ValueError:
            # never evaluated: simplified, its divisor is always zero
            return make(term.op, *args)

    return rebuild(terms, canonically)


def is_literal(term: Expr) -> bool:
    return term.op in ("const", "bool")


def literal_of(term: Expr) -> Expr:
    """The only value of a term whose bounds meet."""
    if term.is_bool:
        return TRUE if term.vmin else FALSE
    return const(term.vmin)


def _order(term: Expr) -> tuple[bool, int]:
    return is_literal(term), term.key


def joined(op: str, operands: list[Expr]) -> Expr:
    """The canonical chain of canonical operands, none of which is such a chain."""
    operands = sorted(operands, key=_order)
    while len(operands) > 1 and is_literal(operands[-2]):
        last = operands.pop()
        operands[-1] = literal_of(make(op, operands[-1], last))
    if len(operands) > 1 and operands[-1] is _NEUTRAL.get(op):
        operands.pop()
    return reduce(partial(make, op), operands)


def presentable(
    roots: Sequence[Expr], wide: Mapping[Expr, Expr] = MappingProxyType({}), work: Work | None = None
) -> list[Expr]:
    """Canonical terms with differences, negations, ``<=`` and ``!=`` again, and variables with their own ranges.

    Raises ``OverdueError`` at the end of ``work``.
    """
    new: dict[Expr, Expr] = {}
    for place, term in enumerate(topological(roots)):
        if work is not None and place % LIMITS.rows_per_look == 0:
            work.late_or_raise()
        args = [new[a] for a in term.args]
        match term.op:
            case "add":
                new[term] = _difference(new, operands_of(term, "add"))
            case "mul" if term.args[1] is MINUS_ONE:
                new[term] = make("neg", args[0])
            case "not" if term.args[0].op == "eq":
                new[term] = make("ne", *args[0].args)
            case "not" if term.args[0].op == "lt":
                new[term] = make("le", *[new[a] for a in term.args[0].args[::-1]])
            case "lt" if term.args[1].op == "add" and term.args[1].args[1] is ONE:
                new[term] = make("le", args[0], new[term.args[1].args[0]])
            case "shl" | "shr":
                # the range of a variable may be what kept the amount in its own
                new[term] = make(term.op, args[0], shift_amount(args[1]))
            case _:
                new[term] = make(term.op, *args) if args else wide.get(term, term)
    return [new[root] for root in roots]


def _difference(new: Mapping[Expr, Expr], addends: Iterable[Expr]) -> Expr:
    """A sum of canonical addends in which negative ones are subtracted."""
    plus: list[Expr] = []
    minus: list[Expr] = []
    for addend in addends:
        if addend.op == "const" and addend.vmin < 0:
            minus.append(const(-addend.vmin))
        elif addend.op == "mul" and addend.args[1].op == "const" and addend.args[1].vmin < 0:
            scale, body = -addend.args[1].vmin, new[addend.args[0]]
            minus.append(body if scale == 1 else make("mul", body, const(scale)))
        else:
            plus.append(new[addend])
    total = reduce(partial(make, "add"), plus) if plus else make("neg", minus.pop(0))
    return reduce(partial(make, "sub"), minus, total)
