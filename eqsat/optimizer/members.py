"""Reductions taken apart and put together, all members at once.

``sum(x + y)`` is ``sum(x) + sum(y)``, and so are products, minima and maxima of as many. Member by member, each of the
2**n parts of a body of ``n`` members would become a reduction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import cast

from eqsat.alternatives.builder import Builder
from eqsat.egraph.compilation import Match
from eqsat.egraph.patterns import letter_of
from eqsat.extract.graph import EQUALITY, EGraph, sum_of, sum_payload
from eqsat.lang.expr import Expr, make
from eqsat.lang.traversal import index_level, is_index
from eqsat.optimizer.right_sides import Add, OverClasses, RightSide, captures
from eqsat.theory.forms import as_term, number, to_expr


class Members:
    """Takes reductions apart that a rule takes apart, and puts those together that a rule puts together."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.sets = builder.theory.variables
        self._done: set[tuple[object, ...]] = set()

    def one_member(self, match: Match, letters: tuple[str, str]) -> tuple[str, str] | None:
        """The letter that is one member of a body, and that of the others; none if these are more than a sum of theirs.

        What they are besides, such as a product, may be what a rule needs.
        """
        kind, reduction = _container_of(match.rule.pattern.right), match.rule.pattern.left.op
        for one, rest in (letters, letters[::-1]):
            if self._is_combined(match.letters[rest], kind, reduction):
                return one, rest
        return None

    def _is_combined(self, c: int, kind: str, reduction: str) -> bool:
        """Whether a class has members of this kind, and is nothing besides but a reduction."""
        nodes = self.builder.graph.classes[c]
        has_members = any(op == kind and len(members) > 1 for op, _, members in nodes)
        is_that = all(op in (kind, reduction) or (op == "sum" and len(over) == 1) for op, _, over in nodes)
        return has_members and is_that and not self.builder.classes.may_be_undefined(c)

    def taken_apart(
        self, match: Match, add: Add, letters: Mapping[str, Expr], bound: dict[int, Expr], one: str, rest: str
    ) -> Iterator[int]:
        """The reductions of all members of a body together, for each of its sums in which ``one`` comes first.

        Member by member, each part of a sum would become a sum of its own, and there are 2**n of them. What is free of
        the index stays together: its reduction is a product.
        """
        kind = _container_of(match.rule.pattern.right)
        indices = reduce(or_, map(self.sets.of, bound.values()))
        first = match.letters[one]
        nodes = [*self.builder.graph.classes[match.letters[rest]]]
        if kind != "sum":
            is_open = partial(self._is_combined, kind=kind, reduction=match.rule.pattern.left.op)
            nodes = [(kind, None, tuple(members_within(self.builder.graph, match.letters[rest], kind, is_open)))]
        for op, payload, others in nodes:
            # a product may have one member twice
            if op != kind or any(self.builder.form_of(c).order() < self.builder.form_of(first).order() for c in others):
                continue
            constant, coefficients = sum_payload(payload) if kind == "sum" else (0, (1,) * len(others))
            members = [(first, 1), *zip(others, coefficients, strict=True)]
            key = (match.rule.pattern, *sorted(match.letters.items()), *members, constant)
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

    def _reduced(
        self, match: Match, add: Add, letters: Mapping[str, Expr], bound: dict[int, Expr], letter: str, c: int
    ) -> int | None:
        """The reduction that the right side has of a letter, where the letter stands for ``c``."""
        known = {**letters, letter: self._term(c)}
        match = replace(match, letters={**match.letters, letter: c})
        if captures(match, known, bound):
            return None
        side = RightSide(match.rule.pattern, known, bound, self.sets)
        part = next(r for r in match.rule.pattern.right.args if letter_of(r.args[0]) == letter)
        return OverClasses(self.builder, match, side, add).of(part, frozenset())

    def put_together(
        self, match: Match, add: Add, letters: Mapping[str, Expr], bound: Mapping[int, Expr], halves: tuple[str, str]
    ) -> Iterator[tuple[Match, int]]:
        """All reductions over one range that a match has, in it and beside it, as one, unless they are known as one.

        Two by two, each part of a sum would become a reduction. The match of the two that come first does it.
        """
        if captures(match, letters, bound):
            return
        pattern = match.rule.pattern
        kind, op = _container_of(pattern.left), pattern.right.op
        around = [f"i{index_level(a)}" if is_index(a) else str(letter_of(a)) for a in pattern.right.args[1:]]
        ends = tuple([match.letters[name] for name in around])
        form = self.builder.theory.form(RightSide(pattern, letters, bound, self.sets).built(pattern.left, bound))
        bodies = [(match.letters[x], 1) for x in halves]
        last = max(self.builder.form_of(c).order() for c, _ in bodies)
        rest = []
        for c, k in match.rest:
            body = self._body(c, op, ends) if k % match.factor == 0 else None
            if body is None:
                rest.append((c, k))
                continue
            if self.builder.form_of(body).order() < last and body not in match.letters.values():
                return
            bodies.append((body, k // match.factor))
            if kind == "sum":
                form = form.plus(self.builder.form_of(c), k // match.factor)
            else:
                form = self.builder.theory.form(make(kind, to_expr(form), self._term(c)))
        is_whole = not rest and not match.constant and match.factor == 1
        if is_whole or form in self.builder.classes:
            known = match.whole if is_whole else self.builder.add_class(form)
            if self._body(known, op, ends) is not None:
                return
        inside = self._combined(add, kind, bodies)
        found = None if inside is None else add(op, None, (inside, *ends))
        if found is not None:
            yield replace(match, rest=tuple(rest)), found

    def _body(self, c: int, op: str, ends: tuple[int, ...]) -> int | None:
        """The body of a class that is a reduction over this index and range."""
        if self.builder.classes.may_be_undefined(c):
            return None
        nodes = self.builder.graph.classes[c]
        return next((over[0] for name, _, over in nodes if name == op and over[1:] == ends), None)

    def _combined(self, add: Add, kind: str, members: Sequence[tuple[int, int]], constant: int = 0) -> int | None:
        """The class of a sum of multiples of classes, or of another container of classes."""
        if kind != "sum":
            classes = [c for c, _ in members]
            return add(kind, None, tuple(classes)) if len(classes) > 1 else classes[0]
        op, payload, operands = sum_of(members, constant)
        if op == "const":
            return self.builder.add_class(number(cast(int, payload)))
        return operands[0] if (op, payload) == EQUALITY else add(op, payload, operands)

    def _term(self, c: int) -> Expr:
        return as_term(self.builder.values[c])


def _container_of(part: Expr) -> str:
    """The operator of the nodes that a part of a rule with two operands becomes."""
    return "sum" if part.op == "add" else part.op


def members_within(
    graph: EGraph, c: int, kind: str, is_open: Callable[[int], bool], above: tuple[int, ...] = ()
) -> Iterator[int]:
    """The members of a container in a class, and of those in it that are ``open``: a node has two of them.

    A class has itself as a member if another one is neutral, so those ``above`` are not looked into again.
    """
    nodes = graph.classes[c] if c not in above and is_open(c) else ()
    inner = [members for op, _, members in nodes if op == kind and not {c, *above} & {*members}]
    if not inner:
        yield c
    for member in inner[0] if inner else ():
        yield from members_within(graph, member, kind, is_open, (c, *above))
