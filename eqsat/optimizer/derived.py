"""E-nodes that are read off others: of sums before rules match, and of comparisons and quotients when they are done.

As rules these would make sums without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from eqsat.alternatives.canonical import sum_of
from eqsat.extract.graph import EQUALITY, Node, sum_payload, sum_terms
from eqsat.lang.ops import DIVISIONS, OPS
from eqsat.optimizer.additions import Additions
from eqsat.optimizer.demand import Demand
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import LinearForm, literal, number


class Derived:
    """Adds e-nodes that are read off others."""

    def __init__(self, additions: Additions) -> None:
        self.additions, self.builder = additions, additions.builder
        self.classes, self.values = additions.classes, additions.values
        self._flattened: set[tuple[int, Node, Node]] = set()

    def multiples(self, first: int) -> None:
        """Add to sums that are multiples of others, or of what is there negated, that they are: ``x*8`` may match.

        Only to those of classes from ``first`` on.
        """
        for c in range(first, len(self.values)):
            value = self.values[c]
            if isinstance(value, LinearForm) and len(value.terms) + bool(value.constant) > 1:
                scale = gcd(value.constant, *value.terms.values())
                part = LinearForm({atom: k // scale for atom, k in value.terms.items()}, value.constant // scale)
                if (opposite := part.times(-1)) in self.builder.classes and part not in self.builder.classes:
                    part, scale = opposite, -scale
                elif scale == 1 and opposite in self.builder.classes:
                    part, scale = opposite, -1
                if scale != 1:
                    self.additions.add_node(c, sum_of([(self.builder.add_class(part), scale)], 0))
        self.builder.grow()

    def cancelled_sums(self) -> None:
        """Add to classes their sums in which a term is written as a sum that it equals, where that makes them shorter.

        The theory knows what cancels in sums of atoms, but a rule may match terms that are none.
        """
        for c, nodes in self.classes.items():
            if self.builder.classes.may_be_undefined(c):
                continue
            for node in [*nodes]:
                if node[0] == "sum" and 2 < len(node[2]) <= LIMITS.long_sum:
                    for flat in self._flat(c, node):
                        if 1 < len(flat[2]) < len(node[2]):
                            self.additions.add_node(c, flat)

    def flat_sums(self, demand: Demand) -> bool:
        """Add to classes their sums in which a term is written as a sum that it equals; whether there were any."""
        before = self.builder.classes.size
        with self.builder.adding("rules"):
            for c in sorted(demand.needed):
                for node in [*self.classes[c]]:
                    if node[0] == "sum" and demand.is_short(c, node):
                        self._flat_sums(c, node, demand)
        return self.builder.classes.size > before

    def _flat_sums(self, c: int, node: Node, demand: Demand) -> None:
        for flat in self._flat(c, node):
            if not demand.is_short(c, flat):
                continue
            if flat[0] == "sum":
                self.additions.add_found(c, *flat)
            else:
                self.additions.add_node(c, flat)

    def _flat(self, c: int, node: Node) -> Iterator[Node]:
        """A sum with a term written as each sum that it equals, once."""
        constant, coefficients = sum_payload(node[1])
        for a, k in zip(node[2], coefficients, strict=True):
            is_name = self.builder.classes.may_be_undefined(a)
            for inner in () if is_name else [*self.classes[a]]:
                if inner[0] != "sum" or inner[:2] == EQUALITY or (c, node, inner) in self._flattened:
                    continue
                self._flattened.add((c, node, inner))
                offset, scales = sum_payload(inner[1])
                others = [(b, scale) for b, scale in zip(node[2], coefficients, strict=True) if b != a]
                inside = [(b, k * scale) for b, scale in zip(inner[2], scales, strict=True)]
                yield sum_of([*others, *inside], constant + k * offset)

    def combined_sums(self) -> None:
        """Add to classes the sum in which all parts are replaced at once that a user's own rules replaced each alone.

        Of parts that share terms the first is replaced, those that leave the fewest terms before others.
        """
        found, self.additions.found_sums = self.additions.found_sums, {}
        for c, nodes in found.items():
            if c not in self.additions.insertion.normal or len(nodes) < 2:
                continue
            first_constant, first = sum_terms(self.additions.insertion.normal[c])
            constant, terms = first_constant, dict(first)
            count = 0
            for node in sorted(nodes, key=_shortest_first):
                offset, others = sum_terms(node)
                gone = [a for a, k in first.items() if others.get(a) != k]
                if gone and all(terms.get(a) == first[a] for a in gone):
                    # what is added and taken away is zero together
                    constant += offset - first_constant
                    for a in {*gone, *others}:
                        terms[a] = terms.get(a, 0) + others.get(a, 0) - first.get(a, 0)
                    count += 1
            if count > 1:
                self.additions.add_node(c, sum_of([(a, k) for a, k in terms.items() if k], constant))

    def shared_terms(self) -> None:
        """Add sums the multiples of their atoms that have a node besides the product: ``where(p, 0, 3)*4``."""
        with self.builder.adding("rules"):
            for c, nodes in self.classes.items():
                for op, payload, operands in [*nodes]:
                    if op == "sum" and len(operands) > 1:
                        constant, coefficients = sum_payload(payload)
                        terms = [self._shared_term(a, k) for a, k in zip(operands, coefficients, strict=True)]
                        if any(a != b for (a, _), b in zip(terms, operands, strict=True)):
                            self.additions.add_node(c, sum_of(terms, constant))

    def _shared_term(self, a: int, k: int) -> tuple[int, int]:
        """A term of a sum, with the class of the whole term where that has a node of its own."""
        value = self.values[a]
        if not isinstance(value, LinearForm):
            return a, k
        for scale in (k, -k) if k != 1 else (-1,):
            whole = value.times(scale)
            if whole in self.builder.classes:
                c = self.builder.add_class(whole)
                if any(op not in ("sum", "mul") for op, _, _ in self.classes[c]):
                    return c, k // scale
        return a, k

    def moved_terms(self) -> None:
        """Add to comparisons with a literal those with a constant, or one of two terms, on the other side.

        ``x%8 - 3 < 1`` is ``x%8 < 4``, and ``x - y < 0`` is ``x < y``.
        """
        with self.builder.adding("rules"):
            for c, nodes in [*self.classes.items()]:
                for op, _, operands in [*nodes]:
                    if op in ("lt", "le"):
                        for place in (0, 1):
                            self._move(c, op, place, operands[place], literal(self.values[operands[1 - place]]))
            self.builder.grow()

    def _move(self, c: int, op: str, place: int, compared: int, limit: int | None) -> None:
        """Move terms of ``compared``, at a place of a comparison with ``limit``."""
        if limit is None:
            return
        # one more, or less, turns < into <= or back
        if limit == 0 or limit == (1 if (op == "lt") == (place == 0) else -1):
            other = op if limit == 0 else "le" if op == "lt" else "lt"
            for x, y in self._differences(compared):
                self.additions.add_node(c, (other, None, (x, y) if place == 0 else (y, x)))
        for constant, x in self._without_constants(compared):
            end = self.builder.add_class(number(limit - constant))
            self.additions.add_node(c, (op, None, (x, end) if place == 0 else (end, x)))

    def _without_constants(self, c: int) -> Iterator[tuple[int, int]]:
        """The constants of the short sums of a class besides its normal form, and the classes of what is left."""
        value = self.values[c]
        for node in [*self.classes[c]]:
            op, payload, operands = node
            if op == "sum" and len(operands) <= LIMITS.derived_terms and node != self.additions.insertion.normal.get(c):
                constant, coefficients = sum_payload(payload)
                if constant and coefficients == (1,):
                    yield constant, operands[0]
                elif constant and isinstance(value, LinearForm):
                    rest = self.builder.add_class(value.shifted(-constant), expand=False)
                    self.additions.add_node(rest, sum_of(zip(operands, coefficients, strict=True), 0))
                    yield constant, rest

    def _differences(self, c: int) -> Iterator[tuple[int, int]]:
        """The pairs of classes of which a class is the difference."""
        for op, payload, operands in self.classes[c]:
            if op == "sum" and payload in ((0, (1, -1)), (0, (-1, 1))):
                x, y = operands if payload == (0, (1, -1)) else operands[::-1]
                yield x, y

    def sort_dividends(self) -> None:
        """Of equal prices a dividend that is seen to be positive comes first: it needs no fix-up of its sign."""
        bounds = self.builder.graph.bounds

        def may_be_negative(node: Node) -> bool:
            op, payload, operands = node
            if op == "mul":
                return OPS["mul"].bounds(*[bounds[a] for a in operands])[0] < 0
            if op != "sum":
                return False
            constant, coefficients = sum_payload(payload)
            ends = [k * bounds[a][k < 0] for a, k in zip(operands, coefficients, strict=True)]
            return constant + sum(ends) < 0

        divisions = [node for nodes in self.classes.values() for node in nodes if node[0] in DIVISIONS]
        for c in {operands[0] for _, _, operands in divisions}:
            if bounds[c][0] >= 0:
                self.classes[c].sort(key=may_be_negative)


def _shortest_first(node: Node) -> tuple[int, int]:
    """The order of sums by their terms, and by those that are subtracted."""
    _, terms = sum_terms(node)
    return len(terms), sum(k < 0 for k in terms.values())
