"""What is known where a part of a term matters: in the branches of selections, and in the bodies of reductions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eqsat.lang.expr import Expr, make, replaced
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import topological
from eqsat.theory.forms import opposite


class Place(NamedTuple):
    """An operand of a term, and a condition that holds wherever the operand's value matters."""

    whole: Expr
    operand: int
    fact: Expr

    @property
    def part(self) -> Expr:
        """The operand."""
        return self.whole.args[self.operand]


def places(terms: Iterable[Expr]) -> Iterator[Place]:
    """The outermost branches, and bodies of loops with ends that are no literals, that share a variable with the fact.

    >>> from eqsat.lang.text import parse
    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> [(place.part, place.fact) for place in places([parse("where(x < 3, x*y, y) + 1", {"x": x, "y": y})])]
    [(Expr('x*y'), Expr('x < 3'))]
    """
    seen: set[Expr] = set()
    waiting = [*terms]
    while waiting:
        term = waiting.pop()
        if term in seen:
            continue
        seen.add(term)
        found = [place for place in _operands(term) if _says_something(place)]
        yield from found
        inside = {place.operand for place in found}
        waiting += [operand for place, operand in enumerate(term.args) if place not in inside]


def with_parts(terms: Iterable[Expr], parts: Iterable[tuple[Place, Expr]]) -> list[Expr]:
    """``terms`` with other terms at some places."""
    operands: dict[Expr, list[Expr]] = {}
    for place, part in parts:
        operands.setdefault(place.whole, [*place.whole.args])[place.operand] = part
    return replaced(terms, {whole: make(whole.op, *args) for whole, args in operands.items()})


def _operands(term: Expr) -> Iterator[Place]:
    if term.op == "where":
        condition = term.args[0]
        yield Place(term, 1, condition)
        yield Place(term, 2, opposite(condition))
    elif term.op in REDUCTIONS:
        _, index, low, high = term.args
        if low.args or high.args or "var" in (low.op, high.op):
            yield Place(term, 0, make("and", make("le", low, index), make("lt", index, high)))


def _says_something(place: Place) -> bool:
    """Whether the operand is no leaf, and has a variable or an array of which the fact speaks."""
    return bool(place.part.args) and not _leaves(place.part).isdisjoint(_leaves(place.fact))


def _leaves(term: Expr) -> set[Expr]:
    return {part for part in topological([term]) if part.op in ("var", "load")}
