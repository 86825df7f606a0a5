"""E-nodes that rules found, added to an e-graph modulo the theory, and classes that they united.

What rules of a user's own found atoms to equal is carried to the values in which these atoms stand.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.canonical import sum_of
from eqsat.egraph.matching import Match
from eqsat.egraph.program import CONTAINERS
from eqsat.extract.graph import EQUALITY, Node, sum_payload
from eqsat.lang.errors import TooWideError, UnsoundUnionError
from eqsat.lang.expr import Expr, brief, is_index, make, substitute, topological
from eqsat.lang.ops import REDUCTIONS, Bounds
from eqsat.optimizer.exchange import Insertion
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import LinearForm, Value, as_term, combination, literal


class Additions:
    """Adds what rules found; what egglog has of it already is noted in ``insertion``."""

    def __init__(self, builder: Builder, insertion: Insertion) -> None:
        self.builder, self.insertion = builder, insertion
        self.classes, self.values = builder.graph.classes, builder.values
        self.has_own_rules = insertion.has_own_rules
        # what rules found is carried to what is around it for a user's own: those that are shipped gain nothing by that
        is_canonical = builder.theory.is_canonical
        self.equations = _Equations(builder) if self.has_own_rules and is_canonical else None
        #: By class the sums that a user's own rules found since these were last combined.
        self.found_sums: dict[int, list[Node]] = {}
        #: Whether a multiple of a term was found to equal something else since this was last set.
        self.has_multiples = False

    def add(self, op: str, payload: Any, operands: tuple[int, ...]) -> int | None:
        """The class of a node over classes, which has that node then; ``None`` if it is no term."""
        value = self.value(op, payload, operands)
        if value is None:
            return None
        c = self.builder.add_class(value)
        self.add_found(c, op, payload, operands)
        return c

    def unite(self, match: Match, c: int) -> None:
        """Add to the class that a match is a part of what has the class ``c`` in place of that."""
        kept = match.rule.kept
        if kept == "sum" and (match.rest or match.constant or match.factor != 1):
            pairs = [*match.rest, (c, match.factor)]
            self.add_found(
                match.whole, "sum", (match.constant, tuple([k for _, k in pairs])), tuple([a for a, _ in pairs])
            )
        elif kept in CONTAINERS and match.rest:
            self.add_found(match.whole, kept, None, (*[a for a, _ in match.rest], c))
        else:
            self.link(match.whole, c)

    def link(self, c: int, other: int) -> None:
        """Unite two classes, in egglog too."""
        if c != other:
            self.equate(c, other)
            self.insertion.unite(c, other)

    def value(self, op: str, payload: Any, args: tuple[int, ...]) -> Value | None:
        """The value of a new node; none if it is no term."""
        values = [self.values[a] for a in args]
        if op == "sum":
            if not all(isinstance(v, LinearForm) for v in values):
                return None
            constant, coefficients = payload
            return combination(zip(cast(list[LinearForm], values), coefficients, strict=True), constant)
        terms = [*map(as_term, values)]
        try:
            term = terms[0] if op in CONTAINERS else make(op, *terms)
            for other in terms[1:] if op in CONTAINERS else ():
                term = make(op, term, other)
            return self.builder.value_of(term)
        except (TooWideError, TypeError, ValueError):
            return None

    def add_found(self, c: int, op: str, payload: Any, args: tuple[int, ...], is_held: bool = False) -> None:
        """Add a node to a class; egglog has it, and if it ``is_held``, as one of that class."""
        if self.equations is not None:
            self.equations.note(c, self.value(op, payload, args))
        if op == "sum":
            self._add_sum(c, payload, args, is_held)
        elif op in CONTAINERS:
            self._add_members(c, op, args)
        else:
            self.add_node(c, (op, None, args), is_held)

    def _add_sum(self, c: int, payload: Any, args: tuple[int, ...], is_held: bool) -> None:
        """Add a sum, its literals as part of its constant."""
        constant, coefficients = payload
        terms = [(a, k, literal(self.values[a])) for a, k in zip(args, coefficients, strict=True)]
        numbers = [n * k for _, k, n in terms if n is not None]
        node = sum_of([(a, k) for a, k, n in terms if n is None], constant + sum(numbers))
        if node[:2] == EQUALITY:
            if node[2][0] != c and not self.builder.theory.is_canonical:
                self.equate(c, node[2][0])
            return
        if node[0] != "sum":
            constant = cast(int, node[1])
            self._check(c, (constant, constant))
            self.add_node(c, node, is_held)
            return
        constant, coefficients = sum_payload(node[1])
        ends = [self.builder.graph.bounds[a] for a in node[2]]
        low = constant + sum(k * end[k < 0] for k, end in zip(coefficients, ends, strict=True))
        high = constant + sum(k * end[k > 0] for k, end in zip(coefficients, ends, strict=True))
        self._check(c, (low, high))
        self.add_node(c, node, is_held)
        if self.has_own_rules and len(coefficients) > 1:
            self.found_sums.setdefault(c, []).append(node)
        if self.has_own_rules and len(coefficients) == 1 and not constant:
            # a term that longer sums have: what it equals may stand there
            multiple = self.builder.add_class(cast(LinearForm, self.value(*node)))
            if multiple != c:
                self.equate(c, multiple)
                self.has_multiples = True

    def _add_members(self, c: int, op: str, members: tuple[int, ...]) -> None:
        """Add the nodes of two operands that a container of these members is."""
        if len(members) == 1:
            return
        left = members[0]
        for member in members[1:-1]:
            value = self.value(op, None, (left, member))
            if value is None:
                return
            inner = self.builder.add_class(value)
            self.add_node(inner, (op, None, tuple(sorted((left, member)))))
            left = inner
        self.add_node(c, (op, None, tuple(sorted((left, members[-1])))))

    def add_node(self, c: int, node: Node, is_held: bool = False) -> None:
        """Add a node to a class, unless that is a number; egglog has it if it ``is_held``."""
        if literal(self.values[c]) is not None or self._is_index(c):
            # an index that is always the same number keeps its name, by which reductions bind it
            return
        nodes = self.classes[c]
        if not self.builder.classes.has_node(c, node):
            self.builder.add_node(c, node)
            if node[0] != "sum" and nodes[-1:] == [node] and isinstance(self.values[c], LinearForm):
                # of equal prices the first wins: an operator reads better than the sum that it stands for
                nodes.insert(0, nodes.pop())
        elif node[0] == "mod" and nodes[0] != node:
            nodes.remove(node)
            nodes.insert(0, node)
        if is_held:
            self.insertion.note_held(c, node)

    def _is_index(self, c: int) -> bool:
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else None
        return atom is not None and atom.op == "var" and is_index(atom)

    def equate(self, c: int, other: int) -> None:
        """Two classes that the rules found equal add each other's nodes."""
        one, two = self.values[c], self.values[other]
        self._check(c, self.builder.graph.bounds[other])
        if self.equations is not None:
            self.equations.note(c, two)
            self.equations.note(other, one)
        if isinstance(one, LinearForm) and isinstance(two, LinearForm):
            self.add_node(c, _itself(other, two))
            self.add_node(other, _itself(c, one))
            return
        for x, y in ((c, other), (other, c)):
            for node in [*self.classes[y]]:
                self.add_node(x, node)

    def _check(self, c: int, bounds: Bounds) -> None:
        """Refuse ``bounds`` in which no value of the class ``c`` lies, though rules say that it has them."""
        known = self.builder.graph.bounds[c]
        if known[1] < bounds[0] or bounds[1] < known[0]:
            value = self.values[c]
            term = brief(as_term(value))
            fired = ", ".join(name for name, count in self.insertion.tables.matches.items() if count) or "none"
            raise UnsoundUnionError(
                f"{term} lies in {[*known]}, and in {[*bounds]} by a false rule; rules that fired: {fired}"
            )

    def rewrite(self) -> None:
        """Let classes be chosen as their values in which atoms are written as what rules found them to equal.

        To egglog these are classes of their own: of a sum that equals another, or zero, rules would make sums without
        end.
        """
        if self.equations is None:
            return
        pairs = self.equations.rewrite()
        self.builder.grow()
        for c, other in pairs:
            self._check(c, self.builder.graph.bounds[other])
            value = self.values[other]
            if not isinstance(value, LinearForm):
                for node in [*self.classes[other]]:
                    self.add_node(c, node)
                continue
            node = _itself(other, value)
            self.add_node(c, node)
            self.insertion.apart.add((c, node))


def _itself(c: int, form: LinearForm) -> Node:
    """The node that says that its class equals the class ``c`` of a form; of a number that number."""
    return sum_of([(c, 1)], 0) if form.terms else sum_of([], form.constant)


class _Equations:
    """Equations of atoms with values that do not follow from what the theory knows."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.values = builder, builder.values
        self._equations: dict[tuple[Expr, Value], None] = {}
        # by class with how many of the equations it was rewritten
        self._rewritten: dict[int, int] = {}

    def note(self, c: int, other: Value | None) -> None:
        """Note what rules found a class to equal, if it is an atom and that does not follow from what is known."""
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else value
        if atom is None or not atom.args or other is None or other == value or (atom, other) in self._equations:
            return
        below = topological([as_term(other)])
        # other loops would stand between an index and its reduction
        if atom in below or not REDUCTIONS.keys().isdisjoint([term.op for term in below]):
            return
        if self._simplified(value) != self._simplified(other):
            self._equations[atom, other] = None

    def rewrite(self) -> list[tuple[int, int]]:
        """The classes with others whose values are theirs, in which atoms are written as what rules found.

        In a sum around such an atom terms may cancel then, and a comparison may lose one on either side.
        """
        equations = [*self._equations]
        pairs: list[tuple[int, int]] = []
        for c in range(len(self.values) if equations else 0):
            done = self._rewritten.get(c, 0)
            if done >= len(equations) or self.builder.classes.may_be_undefined(c):
                continue
            self._rewritten[c] = len(equations)
            value = self.values[c]
            below = set(topological([as_term(value)]))
            new = [(atom, other) for atom, other in equations[done:] if atom in below]
            found = [self._replaced(value, {atom: other}) for atom, other in new]
            for written in (*found, self._simplified(value)) if new else ():
                count, other = len(self.values), self.builder.add_class(written)
                if other == count:
                    # what comes of this is not rewritten in turn
                    self._rewritten[other] = sys.maxsize
                if other != c:
                    pairs.append((c, other))
        return pairs

    def _simplified(self, value: Value) -> Value:
        """A value in which each atom is written as what it was first found to equal."""
        images = dict(reversed(self._equations))
        for _ in range(LIMITS.nested):
            written = self._replaced(value, images)
            if written == value:
                break
            value = written
        return value

    def _replaced(self, value: Value, images: Mapping[Expr, Value]) -> Value:
        """A value with other values for atoms; the value itself where that is no term."""
        try:
            (term,) = substitute([as_term(value)], {atom: as_term(other) for atom, other in images.items()})
            return self.builder.value_of(term)
        except (TooWideError, TypeError, ValueError):
            return value
