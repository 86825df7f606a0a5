"""The right sides of rules about reductions: built of one term for each letter, and as nodes over the letters' classes.

Some take a reduction apart, or put some together: ``sum(x + y)`` is ``sum(x) + sum(y)``, and so are products, minima
and maxima. These do so with all members of a body at once (:class:`Members`, :class:`ExtremesApart`): member by member,
each of the 2**n parts of a body of ``n`` members would become a reduction of its own.

A substitution for an index is made in one term of a class, its normal form: the terms of a class are equal where the
index is in its range, and elsewhere they need not be. Nodes are over the classes of the letters, with all that these
hold, as far as the letters stay in the scope of their indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from operator import or_
from types import MappingProxyType
from typing import NamedTuple, cast

from eqsat.alternatives.canonical import CanonicalGraph
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
from eqsat.egraph.rule import Rule
from eqsat.extract.graph import EQUALITY, EGraph, Node, Payload, sum_of, sum_payload
from eqsat.lang.expr import Expr, any_var, divides_by_zero, make, refuse_capture, replaced
from eqsat.lang.ops import FLOORS, REDUCTIONS, SUMS
from eqsat.lang.properties import VariableSets
from eqsat.lang.traversal import index_level, is_index, topological
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import Value, as_term, number, to_expr

#: The term of each letter of a rule.
type Letters = Mapping[str, Expr]
#: The terms of the indices of a rule by their levels.
type Indices = Mapping[int, Expr]
#: The value of a node over classes; ``None`` if it is no term.
type ValueOf = Callable[[str, Payload, tuple[int, ...]], Value | None]
#: Adds a node over classes: its class, or ``None`` if it is no term.
type Add = Callable[[str, Payload, tuple[int, ...]], int | None]


class RightSide:
    """The right side of a rule, built of one term for each letter.

    ``bound`` are the indices of the left side by their levels in the pattern.
    """

    def __init__(self, pattern: Pattern, letters: Letters, bound: Indices, sets: VariableSets) -> None:
        self.pattern, self.letters, self.bound, self.sets = pattern, letters, bound, sets
        self.around = levels_around(pattern.left)
        self.fresh = 0

    def built(self, part: Expr, scope: Indices = MappingProxyType({})) -> Expr:
        """A part of the rule as a term, in reductions over the indices of ``scope``, by their levels.

        Raises ``ValueError`` if it speaks of another index of the left side, or is refused.
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

    def _letter(self, letter: str, places: Indices) -> Expr:
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

    def __init__(self, classes: CanonicalGraph, match: Match, side: RightSide, add: Add) -> None:
        self.classes, self.match, self.side, self.add = classes, match, side, add
        self.left = reductions_of(match.query.pattern.left)

    def of(self, part: Expr, scope: frozenset[int]) -> int | None:
        """The class of a part within reductions over the indices of these levels; ``None`` where it has none."""
        if (letter := letter_of(part)) is not None:
            return self._letter(letter, scope)
        if part.op == "var" and is_index(part):
            return self.match.letters.get(f"i{index_level(part)}")
        if part.op == "load":
            return None
        if part.op == "bool" or is_number(part):
            return self.classes.add_class(self.classes.value_of(self.side.built(part)))
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
        return self.classes.add_class(self.classes.value_of(self.side.letters[letter]))

    def _reduction(self, part: Expr, scope: frozenset[int]) -> int | None:
        """A reduction over an index of the left side, whose range has all of the range here."""
        body, index, low, high = part.args
        level = index_level(index)
        if f"i{level}" not in self.match.letters or not any(is_within(part, other) for other in self.left):
            return None
        operands = [self.of(body, scope | {level}), self.of(index, scope), self.of(low, scope), self.of(high, scope)]
        return self._node(part.op, None, operands)


def captures(match: Match, letters: Letters, bound: Indices) -> bool:
    """Whether a letter stands in a loop over an index that a reduction in it binds too.

    No term is like that, but a class may be that was found to equal such a reduction.
    """
    for name, levels in levels_around(match.query.pattern.left).items():
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
    pattern: Pattern, letters: Letters, bound: Indices, sets: VariableSets
) -> Iterator[dict[str, Expr]]:
    """The literals that the guard of a rule finds in the terms of bodies."""
    asked = found_in_bodies(pattern)
    if not asked:
        yield {}
        return
    indices = reduce(or_, map(sets.of, bound.values()))
    found = [_literals_in(letters[measure.letter], measure.function, indices, sets) for measure in asked]
    for chosen in product(*found):
        literals = {measure.literal: number for measure, number in zip(asked, chosen, strict=True)}
        # the left side may have said which
        if all(letters.get(name, number) is number for name, number in literals.items()):
            yield literals


def _literals_in(body: Expr, function: str, indices: int, sets: VariableSets) -> list[Expr]:
    """The distinct literals in a body by which something with one of the ``indices`` is divided, or else multiplied."""
    with_literal = [t for t in topological([body]) if len(t.args) == 2 and t.args[1].op == "const"]
    if function == "divides":
        found = [t.args[1] for t in with_literal if t.op in FLOORS and _is_linear(t.args[0], indices, sets)]
    else:
        found = [t.args[1] for t in with_literal if t.op == "mul" and t.args[0].op == "var" and is_index(t.args[0])]
    return [*dict.fromkeys(found)]


def _is_linear(term: Expr, indices: int, sets: VariableSets) -> bool:
    """Whether a term is a sum with a multiple of one of the ``indices``: of other dividends digits say nothing."""
    while term.op in SUMS or (term.op == "mul" and term.args[1].op == "const"):
        held = [a for a in term.args if sets.of(a) & indices]
        if len(held) != 1:
            return False
        (term,) = held
    return term.op == "var" and is_index(term)


class _Beside(NamedTuple):
    """A reduction beside a match: its class, the class of its body, and how often it counts."""

    reduction: int
    body: int
    times: int


class Members:
    """Takes reductions apart that a rule takes apart, and puts those together that a rule puts together."""

    def __init__(self, classes: CanonicalGraph) -> None:
        self.classes = classes
        self.sets = classes.theory.variables
        self._done: set[tuple[object, ...]] = set()

    def one_member(self, match: Match, letters: tuple[str, str]) -> tuple[str, str] | None:
        """The letter that is one member of a body, and that of the others; none if these are more than a sum of theirs.

        What they are besides, such as a product, may be what a rule needs.
        """
        kind, reduction = _container_of(match.query.pattern.right), match.query.pattern.left.op
        for one, rest in (letters, letters[::-1]):
            if self._is_combined(match.letters[rest], kind, reduction):
                return one, rest
        return None

    def _is_combined(self, c: int, kind: str, reduction: str) -> bool:
        """Whether a class has members of this kind, and is nothing besides but a reduction."""
        nodes = self.classes.graph.classes[c]
        has_members = any(op == kind and len(members) > 1 for op, _, members in nodes)
        is_that = all(op in (kind, reduction) or (op == "sum" and len(over) == 1) for op, _, over in nodes)
        return has_members and is_that and not self.classes.may_be_undefined(c)

    def taken_apart(
        self, match: Match, add: Add, letters: Letters, bound: Indices, one: str, rest: str
    ) -> Iterator[int]:
        """The reductions of all members of a body together, for each of its sums in which ``one`` comes first.

        Member by member, each part of a sum would become a sum of its own, and there are 2**n of them. What is free of
        the index stays together: its reduction is a product.
        """
        kind = _container_of(match.query.pattern.right)
        indices = reduce(or_, map(self.sets.of, bound.values()))
        first = match.letters[one]
        for constant, others in self._members(match.letters[rest], kind, match.query.pattern.left.op):
            # a product may have one member twice
            if any(self.classes.form_of(c).order() < self.classes.form_of(first).order() for c, _ in others):
                continue
            members = [(first, 1), *others]
            key = (match.query.pattern, *sorted(match.letters.items()), *members, constant)
            if key in self._done:
                continue
            self._done.add(key)
            free = [(c, k) for c, k in members if not self.sets.of(self._term(c)) & indices]
            parts = [member for member in members if member not in free]
            if parts and (free or constant):
                together = self._combined(add, kind, free, constant)
                if together is None:
                    continue
                parts.append((together, 1))
            reductions = [(self._reduced(match, add, letters, bound, one, c), k) for c, k in parts]
            found = [(c, k) for c, k in reductions if c is not None]
            if found and len(found) == len(parts) and (c := self._combined(add, kind, found)) is not None:
                yield c

    def _members(self, c: int, kind: str, reduction: str) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Of each sum that a class is, or of its container: the constant, and the members with their coefficients."""
        graph = self.classes.graph
        if kind != "sum":
            is_open = partial(self._is_combined, kind=kind, reduction=reduction)
            yield 0, [(member, 1) for member in members_within(graph, c, kind, is_open)]
            return
        for op, payload, operands in [*graph.classes[c]]:
            if op == "sum":
                constant, coefficients = sum_payload(payload)
                yield constant, list(zip(operands, coefficients, strict=True))

    def _reduced(self, match: Match, add: Add, letters: Letters, bound: Indices, letter: str, c: int) -> int | None:
        """The reduction that the right side has of a letter, where the letter stands for ``c``."""
        known = {**letters, letter: self._term(c)}
        match = replace(match, letters={**match.letters, letter: c})
        if captures(match, known, bound):
            return None
        side = RightSide(match.query.pattern, known, bound, self.sets)
        part = next(r for r in match.query.pattern.right.args if letter_of(r.args[0]) == letter)
        return OverClasses(self.classes, match, side, add).of(part, frozenset())

    def put_together(
        self, match: Match, add: Add, letters: Letters, bound: Indices, halves: tuple[str, str]
    ) -> Iterator[tuple[Match, int]]:
        """All reductions over one range that a match has, in it and beside it, as one, unless they are known as one.

        Two by two, each part of a sum would become a reduction. The match of the two that come first does it.
        """
        if captures(match, letters, bound):
            return
        right = match.query.pattern.right
        names = [f"i{index_level(a)}" if is_index(a) else str(letter_of(a)) for a in right.args[1:]]
        over = tuple([match.letters[name] for name in names])
        alike, rest = self._alike(match, right.op, over)
        first = [match.letters[x] for x in halves]
        order = {c: self.classes.form_of(c).order() for c in (*first, *[beside.body for beside in alike])}
        last = max([order[c] for c in first])
        if any(order[beside.body] < last and beside.body not in match.letters.values() for beside in alike):
            # another match has the two that come first
            return
        together = replace(match, rest=tuple(rest))
        if self._is_one(together, alike, letters, bound, over):
            return
        bodies = [*[(c, 1) for c in first], *[(beside.body, beside.times) for beside in alike]]
        inside = self._combined(add, _container_of(match.query.pattern.left), bodies)
        found = None if inside is None else add(right.op, None, (inside, *over))
        if found is not None:
            yield together, found

    def _alike(self, match: Match, op: str, over: tuple[int, ...]) -> tuple[list[_Beside], list[tuple[int, int]]]:
        """What stands beside a match: the reductions over this index and range, and all else."""
        alike: list[_Beside] = []
        rest: list[tuple[int, int]] = []
        for c, k in match.rest:
            body = self._body(c, op, over) if k % match.factor == 0 else None
            if body is None:
                rest.append((c, k))
            else:
                alike.append(_Beside(c, body, k // match.factor))
        return alike, rest

    def _is_one(
        self, together: Match, alike: Sequence[_Beside], letters: Letters, bound: Indices, over: tuple[int, ...]
    ) -> bool:
        """Whether the reductions of a match, with those ``alike`` beside it, are known as one over this range."""
        pattern = together.query.pattern
        if not together.rest and not together.constant and together.factor == 1:
            return self._body(together.whole, pattern.right.op, over) is not None
        kind, theory = _container_of(pattern.left), self.classes.theory
        form = theory.form(RightSide(pattern, letters, bound, self.sets).built(pattern.left, bound))
        for beside in alike:
            if kind == "sum":
                form = form.plus(self.classes.form_of(beside.reduction), beside.times)
            else:
                form = theory.form(make(kind, to_expr(form), self._term(beside.reduction)))
        return form in self.classes and self._body(self.classes.add_class(form), pattern.right.op, over) is not None

    def _body(self, c: int, op: str, over: tuple[int, ...]) -> int | None:
        """The body of a class that is a reduction over this index and range."""
        if self.classes.may_be_undefined(c):
            return None
        nodes = self.classes.graph.classes[c]
        return next((operands[0] for name, _, operands in nodes if name == op and operands[1:] == over), None)

    def _combined(self, add: Add, kind: str, members: Sequence[tuple[int, int]], constant: int = 0) -> int | None:
        """The class of a sum of multiples of classes, or of another container of classes."""
        if kind != "sum":
            classes = [c for c, _ in members]
            return add(kind, None, tuple(classes)) if len(classes) > 1 else classes[0]
        op, payload, operands = sum_of(members, constant)
        if op == "const":
            return self.classes.add_class(number(cast(int, payload)))
        return operands[0] if (op, payload) == EQUALITY else add(op, payload, operands)

    def _term(self, c: int) -> Expr:
        return as_term(self.classes.values[c])


class ExtremesApart:
    """Takes the reductions of extremes apart that ``rules`` take apart, by reduction, each once.

    ``max_over(max(x, y))`` is ``max(max_over(x), max_over(y))``. These rules are not matched at all, as the others are.
    """

    def __init__(self, classes: CanonicalGraph, rules: Mapping[str, Rule]) -> None:
        self.classes, self.rules = classes, rules
        #: By reduction, the extreme that it is taken apart into.
        self.kinds = {op: rule.pattern.right.op for op, rule in rules.items()}
        self._done: set[tuple[int, Node, frozenset[int]]] = set()

    def extremes(self, add: Add, value: ValueOf) -> Iterator[tuple[Rule, int, int]]:
        """The classes of reductions that are new, or whose bodies are extremes by now, and of the extremes they are.

        Each with its rule. ``add`` adds a node to the class of its value, ``value`` tells that value.
        """
        for c, node in [*self._reductions()] if self.kinds else ():
            for members in self._extremes(node[2][0], self.kinds[node[0]]):
                key = c, node, frozenset(members)
                if key not in self._done:
                    self._done.add(key)
                    whole = self._extreme(c, node, members, add, value)
                    if whole is not None:
                        yield self.rules[node[0]], c, whole

    def _reductions(self) -> Iterator[tuple[int, Node]]:
        may_be_undefined = self.classes.may_be_undefined
        for c, nodes in self.classes.graph.classes.items():
            for node in nodes:
                if node[0] in self.kinds and not may_be_undefined(c) and not may_be_undefined(node[2][0]):
                    yield c, node

    def _extremes(self, body: int, kind: str) -> Iterator[list[int]]:
        """The operands of each extreme that a class is."""
        graph, classes = self.classes.graph, self.classes
        for op, _, operands in [*graph.classes[body]]:
            if op == kind:
                inside = [
                    members_within(graph, c, kind, lambda c: not classes.may_be_undefined(c), (body,)) for c in operands
                ]
                yield sorted(set().union(*inside))

    def _extreme(self, c: int, node: Node, members: list[int], add: Add, value: ValueOf) -> int | None:
        """The class of the extreme of the reductions of its operands, if it is another than that of the reduction."""
        op, _, (_, index, low, high) = node
        sets, values = self.classes.theory.variables, self.classes.values
        own = sets.of(as_term(values[index]))
        inside = [t for member in members for t in topological([as_term(values[member])]) if t.op in REDUCTIONS]
        if own & reduce(or_, [sets.of(t.args[1]) for t in inside], 0):
            # an operand would be reduced over an index that it binds
            return None
        found = [add(op, None, (member, index, low, high)) for member in members]
        reductions = [r for r in found if r is not None]
        kind = self.kinds[op]
        if len(reductions) < len(members) or value(kind, None, tuple(reductions)) == values[c]:
            return None
        return add(kind, None, tuple(reductions))


def _container_of(part: Expr) -> str:
    """The operator of the nodes that a part of a rule with two operands becomes."""
    return "sum" if part.op == "add" else part.op


def members_within(
    graph: EGraph, c: int, kind: str, is_open: Callable[[int], bool], above: tuple[int, ...] = ()
) -> Iterator[int]:
    """The members of a container in a class: a node has two, which are read in turn if they are open.

    A class has itself as a member if another one is neutral, so those ``above`` are not looked into again.
    """
    nodes = graph.classes[c] if c not in above and is_open(c) else ()
    inner = [members for op, _, members in nodes if op == kind and not {c, *above} & {*members}]
    if not inner:
        yield c
    for member in inner[0] if inner else ():
        yield from members_within(graph, member, kind, is_open, (c, *above))
