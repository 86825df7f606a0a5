"""Multiples of a divisor, taken out of dividends as they are written: what no remainder needs is not normalised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from operator import add, mul

from eqsat.lang.expr import Expr, const, make, rebuild
from eqsat.lang.ops import FLOORS
from eqsat.lang.traversal import chain_members

_LINEAR = frozenset({"add", "sub", "neg", "mul"})


def without_multiples(terms: Sequence[Expr]) -> list[Expr]:
    """Terms in which no dividend has a multiple of its divisor as a summand; equal wherever ``terms`` are defined.

    >>> from eqsat.lang.expr import var
    >>> x, y, n = var("x", 0, 99), var("y", 0, 99), var("n", 1, 99)
    >>> without_multiples([(x + (y*2 - 3)*8) % 16, (y*(n*12) + x) // (n*4)])
    [Expr('(x - 24)%16'), Expr('x//(n*4) + y*3')]
    """

    def shortened(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in FLOORS or args[0].op not in _LINEAR:
            return None
        literal, factors = _product(args[1])
        if not literal:
            return None
        kept: list[tuple[Expr, int]] = []
        quotients: list[Expr] = []
        for summand, scale in _summands(args[0]):
            own, others = _product(summand)
            if scale * own % literal or factors - others:
                kept.append((summand, scale))
            else:
                quotients.append(written_product([*(others - factors).elements(), const(scale * own // literal)]))
        if not quotients:
            return None
        rest = make(term.op, _sum(kept), args[1]) if kept else const(0)
        return rest if term.op == "mod" else reduce(add, [*([rest] if kept else []), *quotients])

    return rebuild(terms, shortened)


def _product(root: Expr) -> tuple[int, Counter[Expr]]:
    """The literal factor of a product as it is written, and its other factors."""
    members = chain_members(root, "mul")
    return prod([t.vmin for t in members if t.op == "const"]), Counter([t for t in members if t.op != "const"])


def _summands(root: Expr) -> list[tuple[Expr, int]]:
    """The summands of a sum as it is written, each with what it is multiplied by from outside."""
    found: list[tuple[Expr, int]] = []
    stack = [(root, 1)]
    while stack:
        term, scale = stack.pop()
        if term.op in ("add", "sub"):
            stack += [(term.args[1], scale if term.op == "add" else -scale), (term.args[0], scale)]
        elif term.op == "neg":
            stack.append((term.args[0], -scale))
        elif term.op == "mul" and term.args[1].op == "const":
            stack.append((term.args[0], scale * term.args[1].vmin))
        else:
            found.append((term, scale))
    return found


def _sum(summands: Iterable[tuple[Expr, int]]) -> Expr:
    (first, factor), *others = summands
    found = written_product([first, const(factor)])
    for term, scale in others:
        size = written_product([term, const(abs(scale))])
        negative = scale < 0
        if size.op == "const" and size.vmin < 0:
            size, negative = const(-size.vmin), not negative
        found = found - size if negative else found + size
    return found


def written_product(operands: Sequence[Expr]) -> Expr:
    """A product, without ones, its literals last."""
    number = prod([t.vmin for t in operands if t.op == "const"])
    if not (others := [t for t in operands if t.op != "const"]):
        return const(number)
    product = reduce(mul, others)
    return product if number == 1 else -product if number == -1 else product * number
