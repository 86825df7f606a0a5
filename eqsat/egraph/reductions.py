"""Reductions in the e-graph: which terms may stand where, and what rules about them build of terms.

A class is a function of the free variables and of the indices, each index being any number that its name allows. Its
nodes are equal for all of these, so an index is a leaf like a variable, and what is known of the range where it is
bound is not known of it. A class may hold terms that speak of an index beside terms that do not: outside the reduction
that binds the index only the latter may be chosen. :func:`scoped` writes that into the graph, as classes in a scope.

A substitution for an index is made in one term of a class, not in the class: its terms are equal where the index is in
its range, and elsewhere they need not be. So a rule that substitutes is applied to terms, one for each of its letters:
where the rule is true of these, the left side is the class that was matched, whatever the term of the body is outside
the range, and the right side is a term, of which nothing else is said. :class:`Reductions` does that between rounds. It
also names indices anew where less of their range is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, product
from math import prod
from operator import or_
from typing import cast

from eqsat.egraph.compiling import CompiledRule
from eqsat.egraph.export import REDUCTION_OPERATORS, Tables
from eqsat.egraph.patterns import Pattern, divided, is_condition_letter, levels_around, moved_letter
from eqsat.extract.graph import EGraph, Node
from eqsat.extract.select import Priced, tree
from eqsat.lang.costs import LATENCY
from eqsat.lang.expr import (
    Expr,
    any_var,
    chain_members,
    const,
    divides_by_zero,
    index_level,
    is_index,
    make,
    replaced,
    topological,
    variables,
)
from eqsat.lang.ops import FLOORS, REDUCTIONS, SUMS
from eqsat.lang.terms import buffer_key, to_exprs
from eqsat.lang.traversal import VariableSets

#: Terms of more nodes than this are not built: no rule makes them smaller again.
MOST_TERMS = 400

#: The names of the indices that a term may speak of.
Scope = frozenset[str]

#: A class and a term that equals it.
Found = tuple[int, Expr]


@dataclass(frozen=True)
class Asked:
    """A match of a rule that is applied to terms: the class of its left side, and what its columns stand for."""

    whole: int
    rule: CompiledRule
    row: tuple[int, ...]


class Scopes:
    """The indices that the classes of a graph speak of."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        binders = {args[1] for nodes in graph.classes.values() for op, _, args in nodes if op in REDUCTIONS}
        #: The name of each class that stands where an index is bound.
        self.indices = {c: cast(str, graph.classes[c][0][1]) for c in binders}
        self.extents = {name: graph.bounds[c][1] - graph.bounds[c][0] + 1 for c, name in self.indices.items()}
        self.all = self._mentioned()
        self.least = self._needed()

    def _of_node(self, node: Node, of: Mapping[int, Scope]) -> Scope | None:
        """What a node speaks of, given that of its operands; ``None`` while that is not known of all."""
        op, value, args = node
        if op == "var":
            return frozenset({cast(str, value)}) if cast(str, value)[0] == "$" else frozenset()
        if op in REDUCTIONS:
            body, index, low, high = args
            if not all(a in of for a in (body, low, high)):
                return None
            return (of[body] - {self.indices[index]}) | of[low] | of[high]
        if not all(a in of for a in args):
            return None
        return frozenset().union(*[of[a] for a in args])

    def _users(self) -> dict[int, list[int]]:
        users: dict[int, list[int]] = {}
        for c, nodes in self.graph.classes.items():
            for operand in {a for node in nodes for a in node[2]}:
                users.setdefault(operand, []).append(c)
        return users

    def _mentioned(self) -> dict[int, Scope]:
        """What any term of each class speaks of."""
        found: dict[int, Scope] = dict.fromkeys(self.graph.classes, frozenset())
        users = self._users()
        waiting = list(self.graph.classes)
        while waiting:
            c = waiting.pop()
            scopes = [cast(Scope, self._of_node(node, found)) for node in self.graph.classes[c]]
            whole = found[c].union(*scopes)
            if whole != found[c]:
                found[c] = whole
                waiting += users.get(c, ())
        return found

    def _needed(self) -> dict[int, Scope]:
        """What some term of each class speaks of: one that speaks of few indices."""
        found: dict[int, Scope] = {}
        users = self._users()
        waiting = list(self.graph.classes)
        while waiting:
            c = waiting.pop()
            scopes = [s for node in self.graph.classes[c] if (s := self._of_node(node, found)) is not None]
            if not scopes:
                continue
            least = min(scopes, key=lambda s: (len(s), sorted(s)))
            if c not in found or len(least) < len(found[c]):
                found[c] = least
                waiting += users.get(c, ())
        return found

    def within(self, c: int, scope: Scope) -> Scope:
        """The indices that terms of class ``c`` may speak of where those of ``scope`` have values.

        Where a term needs fewer, it is computed less often.
        """
        least = self.least.get(c)
        return least if least is not None and least <= scope else scope & self.all[c]


def scoped(graph: EGraph, wanted: Iterable[int] | None = None) -> EGraph:
    """``graph`` with its classes in the scopes where its roots need them, so that no choice has an index by itself.

    The roots are those of ``graph`` outside all reductions, or ``wanted`` classes, which speak of as few indices as
    they can. A root that has no term is a class without nodes.

    >>> nodes = [("var", "$1:0:3", ()), ("var", "n", ()), ("const", 0, ()), ("const", 4, ())]
    >>> classes = {c: [node] for c, node in enumerate(nodes)}
    >>> classes |= {4: [("sum_over", None, (5, 0, 2, 3))], 5: [("max", None, (0, 1)), ("var", "n", ())]}
    >>> bounds = {0: (0, 3), 1: (3, 9), 2: (0, 0), 3: (4, 4), 4: (12, 36), 5: (3, 9)}
    >>> found = scoped(EGraph(classes, bounds, [4, 5]))
    >>> [len(found.classes[root]) for root in found.roots]
    [1, 1]
    """
    if wanted is None and not any(op in REDUCTIONS for nodes in graph.classes.values() for op, _, _ in nodes):
        return graph
    scopes = Scopes(graph)
    numbers: dict[tuple[int, Scope], int] = {}
    waiting: list[tuple[int, Scope]] = []

    def number(c: int, scope: Scope) -> int:
        key = c, scopes.within(c, scope)
        if key not in numbers:
            numbers[key] = len(numbers)
            waiting.append(key)
        return numbers[key]

    if wanted is None:
        roots = [number(c, frozenset()) for c in graph.roots]
    else:
        roots = [number(c, scopes.least.get(c, frozenset())) for c in wanted]
    found = EGraph({}, {}, roots)
    while waiting:
        key = c, scope = waiting.pop()
        nodes: list[Node] = []
        for op, value, args in graph.classes[c]:
            if op == "var" and cast(str, value)[0] == "$" and value not in scope:
                continue
            if op in REDUCTIONS:
                body, index, *ends = args
                bound = frozenset({scopes.indices[index]})
                operands = (number(body, scope | bound), number(index, bound), *[number(a, scope) for a in ends])
            else:
                operands = tuple([number(a, scope) for a in args])
            nodes.append((op, value, operands))
        own = numbers[key]
        found.classes[own] = nodes
        found.bounds[own] = graph.bounds[c]
        if scope:
            found.weights[own] = prod([scopes.extents.get(name, 1) for name in scope])
    _leave_out_empty(found)
    return found


def _leave_out_empty(graph: EGraph) -> None:
    """Leave out nodes over classes that have none."""
    empty = {c for c, nodes in graph.classes.items() if not nodes}
    users: dict[int, set[int]] = {}
    for c, nodes in graph.classes.items() if empty else ():
        for operand in {a for node in nodes for a in node[2]}:
            users.setdefault(operand, set()).add(c)
    while empty:
        gone = empty.pop()
        for c in users.get(gone, ()):
            nodes = graph.classes[c]
            graph.classes[c] = [node for node in nodes if gone not in node[2]]
            if nodes and not graph.classes[c]:
                empty.add(c)


class Reductions:
    """What a run adds to its graph between the rounds."""

    def __init__(self) -> None:
        self.done: set[tuple[object, ...]] = set()
        self.sets = VariableSets()

    def found(self, graph: EGraph, tables: Tables, asked: Sequence[Asked], until: float) -> list[Found]:
        """Classes, and terms that equal them, that have not been found before."""
        rows = [
            (c, constructor, operands)
            for c, nodes in tables.rows.items()
            for constructor, operands in nodes
            if constructor in REDUCTION_OPERATORS and c in graph.classes
        ]
        wanted = {cast(int, operand) for _, _, operands in rows for operand in operands[:3]}
        wanted.update(c for c, _, _ in rows)
        for match in asked:
            wanted.update(c for c, sort in zip(match.row, match.rule.sorts(), strict=True) if sort == "T")
        terms = _best_terms(graph, tables, sorted(wanted & graph.classes.keys()))
        found: list[Found] = []
        for match in asked:
            if match.whole in graph.classes and time.perf_counter() < until:
                found += self._applied(match, terms, tables.indices)
        for c, constructor, operands in rows:
            if time.perf_counter() < until:
                found += self._renamed(c, REDUCTION_OPERATORS[constructor], operands, terms, tables.indices)
        return found

    def _is_new(self, *key: object) -> bool:
        if key in self.done:
            return False
        self.done.add(key)
        return True

    def _applied(self, match: Asked, terms: Mapping[int, Expr], indices: Sequence[Expr]) -> Iterator[Found]:
        """The right side of a rule for the terms of its letters."""
        letters: dict[str, Expr] = {}
        bound: dict[int, Expr] = {}
        for name, sort, value in zip(match.rule.columns, match.rule.sorts(), match.row, strict=True):
            if sort == "T":
                if value not in terms:
                    return
                letters[name] = terms[value]
            elif name[0] == "i":
                bound[int(name[1:])] = indices[value]
            else:
                letters[name] = const(value)
        if not self._is_new(match.rule.name, match.rule.body, *letters.values(), *bound.values()):
            return
        pattern = cast(Pattern, match.rule.pattern)
        for literals in divisors(pattern, letters, bound, self.sets):
            try:
                side = RightSide(pattern, {**letters, **literals}, bound, self.sets)
                if literals and not side.holds():
                    continue
                term = side.term()
            except ValueError:
                # an index would leave its scope, or the term is one that is refused
                continue
            if is_accepted(self.sets, term):
                yield match.whole, term

    def _renamed(
        self, c: int, op: str, operands: Sequence[int | str], terms: Mapping[int, Expr], indices: Sequence[Expr]
    ) -> Iterator[Found]:
        """A reduction whose index has the name that its terms give it: of all that is known, its range says the most.

        So equal reductions meet whatever their indices are called.
        """
        parts = [terms.get(cast(int, operand)) for operand in operands[:3]]
        if None in parts:
            return
        body, low, high = cast(list[Expr], parts)
        index = indices[int(operands[3])]
        try:
            term = make(op, body, index, low, high)
        except ValueError:
            return
        if term.args[1] is not index and self._is_new(c, term) and is_accepted(self.sets, term):
            yield c, term


def _best_terms(graph: EGraph, tables: Tables, classes: Sequence[int]) -> dict[int, Expr]:
    """The cheapest term of each class that has one, which speaks of few indices."""
    within = scoped(graph, classes)
    choice = tree(Priced.of(within, LATENCY))
    variables = {name: any_var(name, low, high) for name, (low, high) in tables.leaves.items()}
    variables |= {buffer_key(array): array for array in tables.arrays}
    roots = {c: root for c, root in zip(classes, within.roots, strict=True) if root in choice}
    try:
        return dict(zip(roots, to_exprs(within, choice, [*roots.values()], variables), strict=True))
    except ValueError:
        # one of them is a term that is refused
        return dict(chain.from_iterable(_alone(c, root, within, choice, variables) for c, root in roots.items()))


def _alone(
    c: int, root: int, graph: EGraph, choice: dict[int, Node], variables: Mapping[str, Expr]
) -> Iterator[tuple[int, Expr]]:
    try:
        (term,) = to_exprs(graph, choice, [root], variables)
    except ValueError:
        return
    yield c, term


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

    def term(self) -> Expr:
        """The term.

        Raises
        ------
        ValueError
            If it speaks of an index of the left side, or is refused.
        """
        return self._built(self.pattern.right, {})

    def holds(self) -> bool:
        """Whether the guard holds, as far as it speaks of literals."""
        found = {name for _, name in divided(self.pattern)}
        for conjunct in chain_members(self.pattern.when, "and"):
            names = {str(v.value) for v in variables([conjunct])}
            if names & found and not self.built(conjunct).vmin:
                return False
        return True

    def built(self, part: Expr) -> Expr:
        """A part of the guard, or of the left side outside its reductions, as a term.

        Raises
        ------
        ValueError
            As :meth:`term`.
        """
        return self._built(part, {})

    def _built(self, pattern: Expr, scope: Mapping[int, Expr]) -> Expr:
        """A part of the right side, in reductions over the indices of ``scope``, by their levels."""
        if is_condition_letter(pattern):
            return self._letter(str(pattern.args[0].value), scope)
        if pattern.op == "var":
            return scope[index_level(pattern)] if is_index(pattern) else self._letter(str(pattern.value), scope)
        if pattern.op == "load":
            letter = moved_letter(pattern.args[0])
            places = [self._built(place, scope) for place in pattern.args[1:]]
            return self._letter(letter, dict(zip(self.around[letter], places, strict=True)))
        if pattern.op in REDUCTIONS:
            body, index, low, high = pattern.args
            first, end = self._built(low, scope), self._built(high, scope)
            # no name that a term has
            own = any_var(f"#{self.fresh}", first.vmin, max(first.vmin, end.vmax - 1))
            self.fresh += 1
            return make(pattern.op, self._built(body, {**scope, index_level(index): own}), own, first, end)
        return make(pattern.op, *[self._built(a, scope) for a in pattern.args]) if pattern.args else pattern

    def _letter(self, letter: str, places: Mapping[int, Expr]) -> Expr:
        """The term of a letter where the indices around it have these values."""
        term = self.letters[letter]
        images = {}
        for level in self.around.get(letter, ()):
            if self.sets.of(term) & self.sets.of(self.bound[level]):
                if level not in places:
                    raise ValueError(f"{letter} speaks of an index outside its reduction")
                images[self.bound[level]] = places[level]
        return moved(term, images) if images else term


def moved(term: Expr, images: Mapping[Expr, Expr]) -> Expr:
    """``term`` with other terms for its indices.

    Raises
    ------
    ValueError
        If a reduction in it binds one of these, or one that an image speaks of.
    """
    inside = {t.args[1] for t in topological([term]) if t.op in REDUCTIONS}
    if inside:
        free = {t for t in topological(images.values()) if t.op == "var"}
        if inside & (free | images.keys()):
            raise ValueError("an index would be captured")
    return replaced([term], images)[0]
