"""The right sides of rules about reductions: built of one term for each letter, and as nodes over the letters' classes.

A substitution for an index is made in one term of a class, its normal form: the terms of a class are equal where the
index is in its range, and elsewhere they need not be. Nodes are over the classes of the letters, with all that these
hold, as far as the letters stay in the scope of their indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import or_
from types import MappingProxyType

from eqsat.alternatives.builder import Builder
from eqsat.egraph.compilation import Match
from eqsat.egraph.patterns import (
    Pattern,
    as_sum,
    found_in_bodies,
    is_condition_letter,
    is_number,
    is_sum,
    is_within,
    letter_of,
    levels_around,
    moved_letter,
    reductions_of,
)
from eqsat.extract.graph import Payload
from eqsat.lang.expr import Expr, any_var, make, refuse_capture, replaced
from eqsat.lang.ops import FLOORS, REDUCTIONS, SUMS
from eqsat.lang.traversal import VariableSets, divides_by_zero, index_level, is_index, topological
from eqsat.optimizer.limits import LIMITS

#: Adds a node over classes: its class, or ``None`` if it is no term.
type Add = Callable[[str, Payload, tuple[int, ...]], int | None]


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


class OverClasses:
    """The right side of a match as nodes over the classes of its letters."""

    def __init__(self, builder: Builder, match: Match, side: RightSide, add: Add) -> None:
        self.builder, self.match, self.side, self.add = builder, match, side, add
        self.left = reductions_of(match.rule.pattern.left)

    def of(self, part: Expr, scope: frozenset[int]) -> int | None:
        """The class of a part within reductions over the indices of these levels; ``None`` where it has none."""
        builder = self.builder
        if (letter := letter_of(part)) is not None:
            return self._letter(letter, scope)
        if part.op == "var" and is_index(part):
            return self.match.letters.get(f"i{index_level(part)}")
        if part.op == "load":
            return None
        if part.op == "bool" or is_number(part):
            return builder.add_class(builder.value_of(self.side.built(part)))
        if part.op in REDUCTIONS:
            return self._reduction(part, scope)
        if is_sum(part):
            constant, addends = as_sum(part)
            coefficients = tuple([self.side.built(k).vmin for k, _ in addends])
            payload = self.side.built(constant).vmin, coefficients
            return self._node("sum", payload, [self.of(a, scope) for _, a in addends])
        return self._node(part.op, None, [self.of(a, scope) for a in part.args])

    def _node(self, op: str, payload: Payload, operands: Sequence[int | None]) -> int | None:
        found = [c for c in operands if c is not None]
        return self.add(op, payload, tuple(found)) if len(found) == len(operands) else None

    def _letter(self, letter: str, scope: frozenset[int]) -> int | None:
        """The class of a letter, unless an index of another scope would be captured."""
        sets, around = self.side.sets, self.side.around.get(letter, ())
        for level in scope.difference(around):
            if sets.of(self.side.letters[letter]) & sets.of(self.side.bound[level]):
                return None
        if letter in self.match.letters:
            return self.match.letters[letter]
        return self.builder.add_class(self.builder.value_of(self.side.letters[letter]))

    def _reduction(self, part: Expr, scope: frozenset[int]) -> int | None:
        """A reduction over an index of the left side, whose range has all of the range here."""
        body, index, low, high = part.args
        level = index_level(index)
        if f"i{level}" not in self.match.letters or not any(is_within(part, other) for other in self.left):
            return None
        operands = [self.of(body, scope | {level}), self.of(index, scope), self.of(low, scope), self.of(high, scope)]
        return self._node(part.op, None, operands)


def captures(match: Match, letters: Mapping[str, Expr], bound: Mapping[int, Expr]) -> bool:
    """Whether a letter stands in a loop over an index that a reduction in it binds too.

    No term is like that, but a class may be that was found to equal such a reduction.
    """
    for name, levels in levels_around(match.rule.pattern.left).items():
        around = {bound[level] for level in levels if level in bound}
        # what stands in ends alone is not known yet, and speaks of no index
        parts = topological([letters[name]]) if around and name in letters else ()
        if any(t.args[1] in around for t in parts if t.op in REDUCTIONS):
            return True
    return False


def is_accepted(sets: VariableSets, term: Expr) -> bool:
    """Whether a term that a rule makes may enter a graph.

    Rules about divisions make all things of what divides by zero. An index that is bound in a term and free in it
    too is one name for two things: what is known of one would be known of the other.
    """
    order = topological([term])
    if len(order) > LIMITS.built_terms or any(map(divides_by_zero, order)):
        return False
    bound = reduce(or_, [sets.of(t.args[1]) for t in order if t.op in REDUCTIONS], 0)
    return not bound & sets.of(term)


def literals_of_bodies(
    pattern: Pattern, letters: Mapping[str, Expr], bound: Mapping[int, Expr], sets: VariableSets
) -> Iterator[dict[str, Expr]]:
    """The literals that the guard of a rule finds in the terms of bodies."""
    asked = found_in_bodies(pattern)
    if not asked:
        yield {}
        return
    indices = reduce(or_, map(sets.of, bound.values()))
    choices = []
    for what, letter, _ in asked:
        terms = topological([letters[letter]])
        if what == "divides":
            # what speaks of an index is divided by them
            divisions = [t for t in terms if t.op in FLOORS and t.args[1].op == "const"]
            found = [t.args[1] for t in divisions if _is_linear(t.args[0], indices, sets)]
        else:
            # indices are multiplied by them
            products = [t.args for t in terms if t.op == "mul" and t.args[0].op == "var" and t.args[1].op == "const"]
            found = [number for index, number in products if is_index(index)]
        choices.append(dict.fromkeys(found))
    for chosen in product(*choices):
        literals = {name: number for (*_, name), number in zip(asked, chosen, strict=True)}
        # the left side may have said which
        if all(letters.get(name, number) is number for name, number in literals.items()):
            yield literals


def _is_linear(term: Expr, indices: int, sets: VariableSets) -> bool:
    """Whether a term is a sum with a multiple of one of the ``indices``: of other dividends digits say nothing."""
    while term.op in SUMS or (term.op == "mul" and term.args[1].op == "const"):
        held = [a for a in term.args if sets.of(a) & indices]
        if len(held) != 1:
            return False
        (term,) = held
    return term.op == "var" and is_index(term)
