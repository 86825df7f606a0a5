"""Whether a rule may match what egglog is about to be given: told in less time than egglog takes to read it.

Many small inputs have no match. Here the left sides of rules are looked for among the rows themselves, and guards are
computed from what is known of classes. A letter that may stand for several terms or members counts as unknown, and
what is computed from it as possible. So the answer "no" is certain: it holds as long as no two classes are one.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from eqsat.egraph.patterns import (
    MEASURES,
    Conjunct,
    Pattern,
    alternatives,
    as_sum,
    is_literal_letter,
    is_number,
    is_one_term,
    is_sum,
    is_unit,
    letter_of,
    operands_of,
)
from eqsat.egraph.program import CONTAINERS, COUNTED, PLAIN, Kind, negated
from eqsat.egraph.rule import Rule
from eqsat.egraph.shapes import SUM, Shape
from eqsat.egraph.variants import by_representation, needed_by
from eqsat.lang.expr import Expr
from eqsat.lang.ops import apply_to_numbers
from eqsat.lang.traversal import variables

#: More rows than this have a match nearly always, and are not looked at.
MOST_ROWS = 200

#: What letters stand for: a class, or the number that a literal is; ``None`` where that is not known.
Bound = dict[str, int | None]
#: The ways to match something.
type Ways = Iterator[Bound]
#: A coefficient and the class that it multiplies.
Term = tuple[int, int]


class Given:
    """The rows that egglog is about to be given."""

    def __init__(self) -> None:
        #: By class, or ``None`` for any, and constructor: the operands of its nodes, or the constants and terms of its
        #: sums that rules match.
        self.nodes: dict[tuple[int | None, str], list[Any]] = defaultdict(list)
        #: The terms of the normal form of a class.
        self.normal: dict[int, list[Term]] = {}
        #: The classes that are a number.
        self.numbers: dict[int, int] = {}
        #: What a guard may ask of a class.
        self.measures: dict[int, dict[str, int]] = defaultdict(dict)
        #: Whether no two classes are one: egglog unites those that have a node in common.
        self.is_apart = True
        #: How many rows there are.
        self.size = 0
        self._class_of: dict[object, int] = {}

    def add(self, kind: str, c: int, *numbers: int) -> None:
        """Add a row that is no sum, as :meth:`eqsat.egraph.tables.Tables.add` takes it."""
        self.size += 1
        if kind in PLAIN or kind in ("le", "ne"):
            self._add_plain(kind, c, numbers)
        elif kind in (Kind.KNOWN, Kind.ATOM):
            self.measures[c].update(zip(("vmin", "vmax", "factor"), numbers, strict=True))
        elif kind == Kind.ALIGNED:
            self.measures[c].update(zip(("modulus", "remainder"), numbers, strict=True))
        elif kind == Kind.NUMBER:
            (number,) = numbers
            self.numbers[c] = number
            self.measures[c].update(vmin=number, vmax=number, factor=max(1, abs(number)))
            self._add_node(c, SUM, (number, []))

    def _add_plain(self, op: str, c: int, operands: tuple[int, ...]) -> None:
        inner = negated(op, operands)
        if inner is None:
            self._add_named(c, PLAIN[op].name, operands)
            return
        node = PLAIN[inner[0]].name, tuple(inner[1])
        if node not in self._class_of:
            # it has no name of its own
            self._add_named(-1 - self.size, *node)
        self._add_named(c, "Not", (self._class_of[node],))

    def add_container(self, op: str, c: int, members: Sequence[int]) -> None:
        """Add a node over a multiset."""
        self.size += 1
        members = sorted(members if op in COUNTED else set(members))
        # a conjunction, or minimum, of one and the same is that
        self.is_apart &= len(members) > 1
        self._add_named(c, CONTAINERS[op], tuple(members))

    def add_sum(self, c: int, constant: int, terms: Sequence[Term], kind: str) -> None:
        """Add a sum."""
        self.size += 1
        if not constant and len(terms) == 1 and terms[0][0] == 1:
            self.is_apart &= terms[0][1] == c
        self._note(c, (constant, tuple(sorted(terms))))
        if kind != Kind.EQUAL:
            self._add_node(c, SUM, (constant, [*terms]))
        if kind == Kind.NORMAL:
            self.normal[c] = [*terms]

    def _add_named(self, c: int, constructor: str, operands: tuple[int, ...]) -> None:
        self._note(c, (constructor, operands))
        self._add_node(c, constructor, operands)

    def _add_node(self, c: int, constructor: str, node: object) -> None:
        self.nodes[c, constructor].append(node)
        self.nodes[None, constructor].append(node)

    def _note(self, c: int, node: object) -> None:
        self.is_apart &= self._class_of.setdefault(node, c) == c

    def may_match(self, sides: Iterable[Prefilter], found: set[Shape]) -> bool:
        """Whether one of the left sides may match; those that need a shape that is not ``found`` do not."""
        if not self.is_apart or self.size > MOST_ROWS:
            return True
        return any(side.needs <= found and side.may_match(self) for side in sides)


#: What is raised where a guard asks for a number that there is not, as where it divides by zero.
_NO_NUMBER = (ValueError, ArithmeticError)


def _number(term: Expr, given: Given, bound: Bound) -> int | None:
    """A number that a pattern or guard computes; ``None`` if it is not known."""
    if term.op == "const":
        return term.vmin
    if term.op == "var":
        return _measure(str(term.value), given, bound)
    numbers = [n for operand in term.args if (n := _number(operand, given, bound)) is not None]
    return apply_to_numbers(term.op, numbers) if len(numbers) == len(term.args) else None


def _measure(name: str, given: Given, bound: Bound) -> int | None:
    """What a letter of a literal stands for, or what is known of the class that a letter stands for."""
    if name not in MEASURES:
        return bound.get(name)
    measure, letter, *_ = name.split("_")
    c = bound.get(letter)
    if c is None or measure == "gcd":
        return None
    if (number := given.measures[c].get(measure)) is None:
        raise ValueError(f"there is no {measure} of {letter}")
    return number


def _as_number(term: Expr, number: int, given: Given, bound: Bound) -> Ways:
    """A number of a pattern matched with one that a row has."""
    name = str(term.value)
    if is_literal_letter(term) and bound.get(name) is None:
        yield {**bound, name: number}
        return
    try:
        if _number(term, given, bound) in (None, number):
            yield bound
    except _NO_NUMBER:
        return


@cache
def _literal_letters(term: Expr) -> tuple[str, ...]:
    return tuple([str(v.value) for v in variables([term]) if is_literal_letter(v)])


def _is_open(term: Expr, bound: Bound) -> bool:
    """Whether a letter of a literal is not bound."""
    return any(name not in bound for name in _literal_letters(term))


def _unknown(names: Iterable[str], bound: Bound) -> Bound:
    """``bound``, with those of these letters that it lacks bound to what is not known."""
    return {**dict.fromkeys(names), **bound}


def _may_hold(conjuncts: Sequence[Conjunct], given: Given, bound: Bound) -> bool:
    """Whether comparisons of numbers may hold."""
    for op, left, right in conjuncts:
        try:
            one, other = _number(left, given, bound), _number(right, given, bound)
        except _NO_NUMBER:
            return False
        if one is not None and other is not None and not getattr(operator, op)(one, other):
            return False
    return True


#: A part of a pattern: the ways to match a node, or a class, or with ``None`` any.
_Part = Callable[[Any, Given, Bound], Ways]
#: A part and the place of the operand that it matches.
_Placed = tuple[int, _Part]


def _letter(name: str, c: int, given: Given, bound: Bound) -> Ways:
    if bound.get(name) in (None, c):
        yield {**bound, name: c}


def _literal(number: Expr, c: int, given: Given, bound: Bound) -> Ways:
    if c in given.numbers:
        yield from _as_number(number, given.numbers[c], given, bound)


def _nodes(constructor: str, with_node: _Part, c: int | None, given: Given, bound: Bound) -> Ways:
    """A part with an operator: it matches the nodes of a constructor, each in the ways that ``with_node`` yields."""
    for node in given.nodes.get((c, constructor), ()):
        yield from with_node(node, given, bound)


def _in_order(parts: Sequence[_Placed], operands: Sequence[int | None], given: Given, bound: Bound) -> Ways:
    """The ways to match operands, each by a part with its place."""
    if not parts:
        yield bound
        return
    place, part = parts[0]
    for found in part(operands[place], given, bound):
        yield from _in_order(parts[1:], operands, given, found)


def _either_order(parts: Sequence[_Placed], operands: tuple[int, ...], given: Given, bound: Bound) -> Ways:
    """The ways to match the operands of an equality."""
    for ordered in (operands, operands[::-1]):
        yield from _in_order(parts, ordered, given, bound)


def _members(
    written: Sequence[_Part], letters: Sequence[str], top: bool, members: tuple[int, ...], given: Given, bound: Bound
) -> Ways:
    """The ways to match a multiset by parts that are written out, and letters; at the ``top`` others may be left."""
    # further down a letter may be all that is left
    alone = [partial(_letter, name) for name in letters] if top else []
    for found in _chosen([*written, *alone], members, given, bound):
        yield found if top else _unknown(letters, found)


def _chosen(parts: Sequence[_Part], members: tuple[int, ...], given: Given, bound: Bound) -> Ways:
    """The ways to match each part with a member of its own."""
    if not parts:
        yield bound
        return
    for place, member in enumerate(members):
        for found in parts[0](member, given, bound):
            yield from _chosen(parts[1:], members[:place] + members[place + 1 :], given, found)


class _Written(NamedTuple):
    """An addend that is written out, and its coefficient; of a product, that may be part of a letter."""

    coefficient: Expr
    part: _Part
    is_product: bool


@dataclass(frozen=True)
class _Sum:
    """A sum: its constant, what is written out, letters with their coefficients; at the ``top`` others may be left."""

    constant: Expr
    written: tuple[_Written, ...]
    letters: tuple[tuple[Expr, str], ...]
    top: bool

    @cached_property
    def _has_taker(self) -> bool:
        """Whether further down a letter may be all that is left."""
        return any(is_unit(k) for k, _ in self.letters)

    def ways(self, node: tuple[int, Sequence[Term]], given: Given, bound: Bound) -> Ways:
        """The ways to match the constant and the terms of a sum."""
        constant, terms = node
        if len(terms) < len(self.written):
            return
        # at the top all may be multiplied by one factor
        for found, left, factor in self._written(self.written, terms, None if self.top else 1, given, bound):
            known = [c for _, name in self.letters if (c := found.get(name)) is not None]
            if not all(_contains(left, c, given) for c in known):
                continue
            # a letter that is a sum itself may be several terms, and a part of the constant
            several = not given.normal.keys().isdisjoint(known)
            for end in self._lettered(left, factor, several, found):
                yield from self._offset(constant, factor, several, given, end)

    def _written(
        self,
        addends: Sequence[_Written],
        terms: Sequence[Term],
        factor: int | None,
        given: Given,
        bound: Bound,
    ) -> Iterator[tuple[Bound, Sequence[Term], int | None]]:
        """The ways to match what is written out: the terms that are left, and the factor if it is known."""
        if not addends:
            yield bound, terms, factor
            return
        addend, *others = addends
        for place, (scale, c) in enumerate(terms):
            left = [*terms[:place], *terms[place + 1 :]]
            for found in addend.part(c, given, bound):
                for end, known in _scaled(addend, scale, factor, given, found):
                    yield from self._written(others, left, known, given, end)

    def _lettered(self, left: Sequence[Term], factor: int | None, several: bool, bound: Bound) -> Ways:
        """The ways to match the letters with what is left."""
        if not self.top and not self._has_taker and not several and len(left) != len(self.letters):
            return
        if len(self.letters) == 1 and factor in (None, 1):
            [(coefficient, name)] = self.letters
            if is_literal_letter(coefficient) and _is_open(coefficient, bound):
                for scale, c in left:
                    if bound.get(name) in (None, c):
                        yield {**bound, name: c, str(coefficient.value): scale}
                if not several:
                    return
        names = [name for _, name in self.letters]
        names += [letter for k, _ in self.letters for letter in _literal_letters(k)]
        yield _unknown(names, bound)

    def _offset(self, constant: int, factor: int | None, several: bool, given: Given, bound: Bound) -> Ways:
        """The ways to match the constant."""
        wanted = self.constant
        if several:
            yield _unknown(_literal_letters(wanted), bound)
        elif is_literal_letter(wanted) and str(wanted.value) not in bound:
            if constant and factor in (None, 1):
                yield {**bound, str(wanted.value): constant}
        elif wanted.op == "const" and not wanted.vmin:
            # a letter may take it
            if self.top or not constant or self._has_taker:
                yield bound
        elif factor == 1:
            yield from _as_number(wanted, constant, given, _unknown(_literal_letters(wanted), bound))
        else:
            yield _unknown(_literal_letters(wanted), bound)


def _scaled(
    addend: _Written, scale: int, factor: int | None, given: Given, bound: Bound
) -> Iterator[tuple[Bound, int | None]]:
    """The coefficient of an addend matched with that of a term, up to the factor; the factor if it is known then."""
    coefficient = addend.coefficient
    if addend.is_product:
        yield _unknown(_literal_letters(coefficient), bound), factor
    elif _is_open(coefficient, bound):
        if factor in (None, 1):
            for found in _as_number(coefficient, scale, given, bound):
                yield _unknown(_literal_letters(coefficient), found), 1
    else:
        try:
            number = _number(coefficient, given, bound)
        except _NO_NUMBER:
            return
        if number is None:
            yield bound, factor
        elif factor is None and number and scale % number == 0:
            yield bound, scale // number
        elif factor is not None and number * factor == scale:
            yield bound, factor


def _contains(terms: Sequence[Term], c: int, given: Given) -> bool:
    """Whether a class is one of the terms, or all atoms of its normal form are."""
    classes = {a for _, a in terms}
    return c in classes or (c in given.normal and all(a in classes for _, a in given.normal[c]))


def _any_term(coefficient: Expr, part: _Part, node: tuple[int, Sequence[Term]], given: Given, bound: Bound) -> Ways:
    """The ways to match a left side that is a multiple of one term: by each term of any sum."""
    for scale, a in node[1]:
        for found in part(a, given, bound):
            yield from _as_number(coefficient, scale, given, found)


def _part(term: Expr) -> _Part:
    """A part of a pattern below the top."""
    letter = letter_of(term)
    if letter is not None:
        return partial(_letter, letter)
    return partial(_literal, term) if is_number(term) else _whole(term)


def _whole(term: Expr, top: bool = False) -> _Part:
    """A part with an operator, or at the ``top`` the left side."""
    if is_sum(term):
        return partial(_nodes, SUM, _sum(term, top))
    if term.op in CONTAINERS:
        members = operands_of(term, term.op)
        written = sorted([m for m in members if letter_of(m) is None], key=_turn)
        letters = [name for m in members if (name := letter_of(m)) is not None]
        return partial(_nodes, CONTAINERS[term.op], partial(_members, [*map(_part, written)], letters, top))
    inner = negated(term.op, term.args)
    op, operands = inner or (term.op, term.args)
    order = sorted(range(len(operands)), key=lambda place: _turn(operands[place]))
    with_node = partial(_either_order if op == "eq" else _in_order, [(at, _part(operands[at])) for at in order])
    node = partial(_nodes, PLAIN[op].name, with_node)
    return node if inner is None else partial(_nodes, "Not", partial(_in_order, [(0, node)]))


def _sum(term: Expr, top: bool) -> _Part:
    constant, addends = as_sum(term)
    if top and is_one_term(term):
        [(coefficient, addend)] = addends
        return partial(_any_term, coefficient, _part(addend))
    written = [_Written(k, _part(a), a.op == "mul") for k, a in addends if letter_of(a) is None]
    letters = [(k, name) for k, a in addends if (name := letter_of(a)) is not None]
    return _Sum(constant, tuple(written), tuple(letters), top).ways


def _turn(operand: Expr) -> int:
    """When an operand is matched: literals first, since others are computed of them, and letters last."""
    return 0 if is_literal_letter(operand) else 2 if letter_of(operand) else 1


@dataclass(frozen=True)
class Prefilter:
    """The prefilter for one left side of a shipped rule, and the shapes that it needs."""

    needs: frozenset[Shape]
    pattern: Pattern

    def may_match(self, given: Given) -> bool:
        """Whether it may match; the left sides of rules about reductions may wherever their shapes are."""
        return self.pattern.binds_index or any(
            any(_may_hold(conjuncts, given, bound) for conjuncts in self._guards)
            for bound in _in_order(self._parts, [None] * len(self._parts), given, {})
        )

    @cached_property
    def _parts(self) -> list[_Placed]:
        first, *others = self.pattern.matched
        return [*enumerate([_whole(first, top=True), *map(_whole, others)])]

    @cached_property
    def _guards(self) -> list[list[Conjunct]]:
        """The ways in which the guard may hold; comparisons of terms are facts, which others may know."""
        return [[c for c in way if not c.compares_terms] for way in alternatives(self.pattern.when)]


@cache
def prefilters(rule: Rule, thoroughly: bool = False) -> tuple[Prefilter, ...]:
    """The prefilters for a rule: one for each pattern that is matched for it."""
    return () if by_representation(rule) else tuple([Prefilter(*needed) for needed in needed_by(rule, thoroughly)])
