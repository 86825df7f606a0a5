"""What patterns need of an e-graph, and what an e-graph has of that: which operators stand where.

A round costs for every rule that runs in it, since egglog plans its query whether that matches or not. Most patterns
have one operator as an operand of another, and most e-graphs have few such pairs: a rule whose pattern has a pair that
the e-graph lacks cannot match, and is left out of the round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from eqsat.egraph.patterns import (
    MEASURES,
    Pattern,
    alternatives,
    as_sum,
    ends_in,
    is_number,
    is_sum,
    letter_of,
    operands_of,
)
from eqsat.egraph.program import CONTAINERS, PLAIN, Kind, negated
from eqsat.lang.expr import Expr
from eqsat.lang.ops import OPS, REDUCTIONS

#: A place and what stands there, as ``("Where0", "Lt")``: an operand of a constructor, or ``""`` for anywhere; and a
#: class that has a node of a constructor, or is of one of the kinds below.
Shape = tuple[str, str]

#: A sum that rules match, a literal, what may have several values, a condition that holds or fails.
SUM, LITERAL, VARYING, TRUE, FALSE = "Sum", "literal", "varying", "true", "false"


def _constructor(op: str) -> str:
    return CONTAINERS.get(op) or PLAIN[op].name


def _placed[T](op: str, operands: Sequence[T]) -> Iterator[tuple[str, T]]:
    """The operands of a node, each with its place."""
    constructor = _constructor(op)
    # of a container, and of an equality, operands may change places
    is_ordered = op in PLAIN and op != "eq"
    for i, operand in enumerate(operands):
        yield f"{constructor}{i}" if is_ordered else constructor, operand


#: The constructors of what patterns write by name or sign; a sum or product may be another node, as where a part is a
#: literal.
_WRITTEN = {
    **{op: _constructor(op) for op in (*CONTAINERS, *PLAIN)},
    **{OPS[op].symbol: _constructor(op) for op in (*CONTAINERS, *PLAIN) if op in OPS},
    **{REDUCTIONS[op].text: _constructor(op) for op in PLAIN if op in REDUCTIONS},
    ">": "Lt",
    "!=": "Eq",
}
_WORD_OR_SIGN = re.compile(r"\w+|//|<<|>>|==|!=|[%<>&|^]")


@cache
def written_in(left: str) -> frozenset[Shape]:
    """Shapes that the left side of a shipped rule needs, as its text tells before it is parsed.

    They are some of those of :func:`shapes_of`. No left side of a shipped rule has an operator of literals alone.
    """
    return frozenset([("", _WRITTEN[token]) for token in _WORD_OR_SIGN.findall(left) if token in _WRITTEN])


@cache
def shapes_of(pattern: Pattern) -> frozenset[Shape]:
    """The shapes that an e-graph must have for the pattern to match."""
    needs = _Needs(pattern)
    return frozenset([shape for term in pattern.matched for shape in needs.at("", term)])


class _Needs:
    """What the parts of one pattern need."""

    def __init__(self, pattern: Pattern) -> None:
        self._ends = ends_in(pattern.left)
        self._guard = [] if pattern.binds_index else alternatives(pattern.when)

    def at(self, place: str, term: Expr) -> Iterator[Shape]:
        """The shapes of a part of the pattern that stands at a place, and those of its own parts."""
        letter = letter_of(term)
        if term in self._ends:
            # they are read off normal forms
            return
        if letter is not None:
            # a letter in a sum or a container may be several members
            if place[-1:].isdigit() and not term.is_bool and self._guard:
                several = ("lt", MEASURES[f"vmin_{letter}"], MEASURES[f"vmax_{letter}"])
                if all(several in conjuncts for conjuncts in self._guard):
                    yield place, VARYING
        elif is_number(term):
            yield place, LITERAL
        elif term.op == "bool":
            yield place, TRUE if term.value else FALSE
        elif is_sum(term):
            yield from self._node(place, SUM, [(SUM, addend) for _, addend in as_sum(term)[1]])
        elif (inner := negated(term.op, term.args)) is not None:
            yield from self._node(place, "Not", ())
            yield from self._node("Not0", _constructor(inner[0]), _placed(*inner))
        elif term.op in CONTAINERS:
            yield from self._node(place, _constructor(term.op), _placed(term.op, operands_of(term, term.op)))
        elif term.op in PLAIN:
            yield from self._node(place, _constructor(term.op), _placed(term.op, term.args))

    def _node(self, place: str, kind: str, operands: Iterable[tuple[str, Expr]]) -> Iterator[Shape]:
        """The shapes of a node and of its operands by their places."""
        yield place, kind
        yield "", kind
        for inner, operand in operands:
            yield from self.at(inner, operand)


@dataclass
class _Class:
    """The numbers of a class, the places where it stands, and the kinds of its nodes."""

    numbers: list[int]
    places: set[str] = field(default_factory=lambda: {""})
    kinds: set[str] = field(default_factory=set)


class Shapes:
    """What an e-graph has, or may have."""

    def __init__(self) -> None:
        #: Its shapes.
        self.found: set[Shape] = set()
        self._classes: dict[int, _Class] = {}

    def _class(self, c: int) -> _Class:
        if (found := self._classes.get(c)) is None:
            found = self._classes[c] = _Class([c])
        return found

    def add(self, kind: str, c: int, *numbers: int) -> None:
        """Add a row that is no sum, as :meth:`eqsat.egraph.tables.Tables.add` takes it."""
        if kind in PLAIN or kind in ("le", "ne"):
            self.add_node(c, kind, numbers)
        elif kind in (Kind.KNOWN, Kind.ATOM):
            self.add_kind(c, VARYING)
        elif kind == Kind.NUMBER:
            self.add_kind(c, LITERAL)
            self.add_kind(c, SUM)
        elif kind in (Kind.HOLDS, Kind.FAILS):
            self.add_kind(c, TRUE if kind == Kind.HOLDS else FALSE)

    def add_container(self, op: str, c: int, members: Sequence[int]) -> None:
        """Add a node over a multiset."""
        self.add_node(c, op, members)

    def add_node(self, c: int, op: str, operands: Sequence[int]) -> None:
        """Add a node of the class ``c`` that is no sum."""
        inner = negated(op, operands)
        if inner is None:
            self.add_kind(c, _constructor(op))
        else:
            self.add_kind(c, "Not")
            constructor = _constructor(inner[0])
            self.found |= {("", constructor), ("Not0", constructor)}
        for place, a in _placed(*(inner or (op, operands))):
            self._add_place(a, place)

    def add_sum(self, c: int, constant: int, terms: Sequence[tuple[int, int]], kind: str) -> None:
        """Add a sum of (coefficient, class) pairs of the class ``c``, if rules match it."""
        if kind != Kind.EQUAL:
            self.add_kind(c, SUM)
            for _, a in terms:
                self._add_place(a, SUM)

    def add_kind(self, c: int, kind: str) -> None:
        """Add that the class ``c`` has a node of a constructor, or is of a kind."""
        of = self._class(c)
        if kind not in of.kinds:
            of.kinds.add(kind)
            self.found.update([(place, kind) for place in of.places])

    def _add_place(self, c: int, place: str) -> None:
        of = self._class(c)
        if place not in of.places:
            of.places.add(place)
            self.found.update([(place, kind) for kind in of.kinds])

    def unite(self, c: int, other: int) -> None:
        """Make two classes one."""
        one, two = self._class(c), self._class(other)
        if one is not two:
            one.numbers += two.numbers
            one.places |= two.places
            one.kinds |= two.kinds
            self.found.update(product(one.places, one.kinds))
            self._classes.update(dict.fromkeys(two.numbers, one))
