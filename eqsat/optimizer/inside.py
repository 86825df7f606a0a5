"""What is known where a part of a term matters: in the branches of selections, and in the bodies of reductions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from eqsat.lang.expr import TRUE, Expr, any_var, make, replaced
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import topological
from eqsat.theory.forms import opposite


@dataclass(frozen=True, slots=True)
class Place:
    """An operand of a term, and what holds wherever the operand's value matters.

    Attributes
    ----------
    whole : Expr
        The term: a selection or a reduction.
    operand : int
        The place of the operand.
    part : Expr
        The operand; in a body a variable stands for the index.
    fact : Expr
        The condition.
    variable : Expr, optional
        That variable.
    """

    whole: Expr
    operand: int
    part: Expr
    fact: Expr
    variable: Expr | None = None

    def filled(self, part: Expr, whole: Expr) -> Expr:
        """``whole`` with another operand here."""
        args = [*whole.args]
        args[self.operand] = part
        if self.variable is not None:
            # what is made names the index again, by the reductions that the body has then
            args[1] = self.variable
        return make(whole.op, *args)


def places(terms: Iterable[Expr], names: Collection[str]) -> list[Place]:
    """The outermost branches and bodies in which more is known of a variable, or that have such places in them.

    ``names`` are those that no new variable may have.

    >>> from eqsat.lang.text import parse
    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> [(place.part, place.fact) for place in places([parse("where(x < 3, x*y, y) + 1", {"x": x, "y": y})], ())]
    [(Expr('x*y'), Expr('x < 3'))]
    """
    found: list[Place] = []
    seen: set[Expr] = set()
    waiting = [*terms]
    while waiting:
        term = waiting.pop()
        if term in seen:
            continue
        seen.add(term)
        own = [place for place in _operands(term, names) if _is_worth_it(place, names)]
        found += own
        inside = {place.operand for place in own} | ({0, 1} if term.op in REDUCTIONS else set())
        waiting += [operand for at, operand in enumerate(term.args) if at not in inside]
    return found


def with_parts(terms: Iterable[Expr], parts: Iterable[tuple[Place, Expr]]) -> list[Expr]:
    """``terms`` with other terms at some places."""
    images: dict[Expr, Expr] = {}
    for place, part in parts:
        images[place.whole] = place.filled(part, images.get(place.whole, place.whole))
    return replaced(terms, images)


def _operands(term: Expr, names: Collection[str]) -> Iterator[Place]:
    if term.op == "where":
        condition, yes, no = term.args
        yield Place(term, 1, yes, condition)
        yield Place(term, 2, no, opposite(condition))
    elif term.op in REDUCTIONS:
        body, index, low, high = term.args
        name = next(name for k in count() if (name := f"@index{k}") not in names)
        variable = any_var(name, index.vmin, index.vmax)
        ends = [
            end
            for end, literal in ((make("le", low, variable), low), (make("lt", variable, high), high))
            if literal.op != "const"
        ]
        fact = ends[0] if len(ends) == 1 else make("and", *ends) if ends else TRUE
        yield Place(term, 0, replaced([body], {index: variable})[0], fact, variable)


def _is_worth_it(place: Place, names: Collection[str]) -> bool:
    """Whether the fact speaks of a variable or an array that the operand has, or some place in the operand is."""
    if not place.part.args or place.part.element:
        return False
    if not _leaves(place.part).isdisjoint(_leaves(place.fact)):
        return True
    if place.variable is None:
        return False
    return bool(places([place.part], {*names, str(place.variable.value)}))


def _leaves(term: Expr) -> set[Expr]:
    return {part for part in topological([term]) if part.op in ("var", "load")}
