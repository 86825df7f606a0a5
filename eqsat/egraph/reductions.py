"""The right sides of rules about reductions, built of terms.

A substitution for an index is made in a term, one for each letter of the rule: the terms of a class are equal where the
index is in its range, and elsewhere they need not be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import product
from operator import or_
from types import MappingProxyType

from eqsat.egraph.patterns import Pattern, divided, is_condition_letter, levels_around, moved_letter
from eqsat.lang.expr import (
    Expr,
    any_var,
    divides_by_zero,
    index_level,
    is_index,
    make,
    refuse_capture,
    replaced,
    topological,
)
from eqsat.lang.ops import FLOORS, REDUCTIONS, SUMS
from eqsat.lang.traversal import VariableSets

#: Terms of more nodes than this are not built: no rule makes them smaller again.
MOST_TERMS = 400


def is_accepted(sets: VariableSets, term: Expr) -> bool:
    """Whether a term that a rule makes may enter a graph.

    Rules about divisions make all things of what divides by zero. An index that is bound in a term and free in it
    too is one name for two things: what is known of one would be known of the other.
    """
    order = topological([term])
    if len(order) > MOST_TERMS or any(map(divides_by_zero, order)):
        return False
    bound = reduce(or_, [sets.of(t.args[1]) for t in order if t.op in REDUCTIONS], 0)
    return not bound & sets.of(term)


def divisors(
    pattern: Pattern, letters: Mapping[str, Expr], bound: Mapping[int, Expr], sets: VariableSets
) -> Iterator[dict[str, Expr]]:
    """The literals that the terms of bodies divide what speaks of an index by, as a guard asks for them."""
    asked = divided(pattern)
    if not asked:
        yield {}
        return
    indices = reduce(or_, map(sets.of, bound.values()))
    choices = []
    for letter, _ in asked:
        divisions = [t for t in topological([letters[letter]]) if t.op in FLOORS and t.args[1].op == "const"]
        choices.append(dict.fromkeys(t.args[1] for t in divisions if _is_linear(t.args[0], indices, sets)))
    for chosen in product(*choices):
        found = {name: number for (_, name), number in zip(asked, chosen, strict=True)}
        # the left side may have said which
        if all(letters.get(name, number) is number for name, number in found.items()):
            yield found


def _is_linear(term: Expr, indices: int, sets: VariableSets) -> bool:
    """Whether a term is a sum with a multiple of one of the ``indices``: of other dividends digits say nothing."""
    while term.op in SUMS or (term.op == "mul" and term.args[1].op == "const"):
        held = [a for a in term.args if sets.of(a) & indices]
        if len(held) != 1:
            return False
        (term,) = held
    return term.op == "var" and is_index(term)


class RightSide:
    """The right side of a rule, built of one term for each letter.

    ``bound`` are the indices of the left side by their levels in the pattern.
    """

    def __init__(
        self, pattern: Pattern, letters: Mapping[str, Expr], bound: Mapping[int, Expr], sets: VariableSets
    ) -> None:
        self.pattern, self.letters, self.bound, self.sets = pattern, letters, bound, sets
        self.around = levels_around(pattern.left)
        self.fresh = 0

    def built(self, part: Expr, scope: Mapping[int, Expr] = MappingProxyType({})) -> Expr:
        """A part of the rule as a term, in reductions over the indices of ``scope``, by their levels.

        Raises
        ------
        ValueError
            If it speaks of another index of the left side, or is refused.
        """
        if is_condition_letter(part):
            return self._letter(str(part.args[0].value), scope)
        if part.op == "var":
            return scope[index_level(part)] if is_index(part) else self._letter(str(part.value), scope)
        if part.op == "load":
            letter = moved_letter(part.args[0])
            places = [self.built(place, scope) for place in part.args[1:]]
            return self._letter(letter, dict(zip(self.around[letter], places, strict=True)))
        if part.op in REDUCTIONS:
            body, index, low, high = part.args
            first, end = self.built(low, scope), self.built(high, scope)
            # no name that a term has
            own = any_var(f"#{self.fresh}", first.vmin, max(first.vmin, end.vmax - 1))
            self.fresh += 1
            return make(part.op, self.built(body, {**scope, index_level(index): own}), own, first, end)
        return make(part.op, *[self.built(a, scope) for a in part.args]) if part.args else part

    def _letter(self, letter: str, places: Mapping[int, Expr]) -> Expr:
        """The term of a letter where the indices around it have these values."""
        term = self.letters[letter]
        images = {}
        for level in self.around.get(letter, ()):
            if self.sets.of(term) & self.sets.of(self.bound[level]):
                if level not in places:
                    raise ValueError(f"{letter} speaks of an index outside its reduction")
                images[self.bound[level]] = places[level]
        if not images:
            return term
        refuse_capture(term, images)
        return replaced([term], images)[0]
