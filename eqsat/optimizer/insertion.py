"""The rows that egglog is given of an e-graph modulo the theory, each once.

A class becomes a row with what the theory knows of its values: a literal, an atom, or its normal form, a sum of
multiples of atoms. Of its other nodes egglog gets those that rules may match; of the sums of a class these are a few,
the first ones and shorter ones. :mod:`eqsat.optimizer.additions` reads the rows that rules make of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from math import gcd
from typing import Any

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.limits import LIMITS as ALTERNATIVES
from eqsat.egraph.program import CONSTRUCTORS, CONTAINERS, INFINITE, LARGEST_FINITE, Kind
from eqsat.egraph.tables import Tables
from eqsat.extract.graph import EQUALITY, Node, sum_of, sum_payload
from eqsat.lang.expr import FALSE, TRUE
from eqsat.lang.ops import DIVISIONS, FLOORS, REDUCTIONS, is_finite
from eqsat.optimizer.demand import Demand
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import LinearForm, literal


class Insertion:
    """What egglog has of a canonical e-graph, and what it is to be given.

    ``demand`` bounds the sums that rules match, if no normal form does.
    """

    def __init__(
        self,
        builder: Builder,
        tables: Tables,
        demand: Demand | None,
        is_late: Callable[[float], bool],
        has_own_rules: bool,
    ) -> None:
        self.builder, self.tables, self.demand = builder, tables, demand
        self.is_late, self.has_own_rules = is_late, has_own_rules
        #: Whether limits keep the graph small: the rules are shipped ones, and work modulo the theory.
        self.is_limited = demand is None and not has_own_rules
        self.classes, self.values = builder.graph.classes, builder.values
        #: The number of classes that egglog has.
        self.count = 0
        #: The normal form of each class in which it is a sum.
        self.normal: dict[int, Node] = {}
        #: Nodes of classes that egglog is not given.
        self.apart: set[tuple[int, Node]] = set()
        #: The number of products, junctions, minima and maxima that egglog was given.
        self.containers = 0
        #: Whether there was no time to match a wide sum.
        self.is_cut = False
        # by class the nodes that egglog has
        self._held: list[set[Node]] = []
        # the nodes outside of their classes that it has
        self._matched_outside: set[tuple[int, Node]] = set()
        # by class the number of sums that rules match, and the fewest terms of these
        self._opened: dict[int, tuple[int, int]] = {}
        # the classes whose normal forms are not matched yet, and the nodes that are not matched any more
        self._waiting: set[int] = set()
        self._retired: set[tuple[int, Node]] = set()
        # whether rows wait that say which class egglog's own nodes have, and whether rules have not matched some nodes
        self._has_links = False
        self._has_rows = False
        # a user's own operator may have no bounds
        ends = [*[(v.vmin, v.vmax) for v in builder.leaves.values()], *builder.graph.bounds.values()]
        bounded = all(is_finite(*pair) for pair in ends)
        # egglog gets smaller numbers only
        self._largest = INFINITE if bounded else LARGEST_FINITE

    def insert(self, wait: bool = False) -> bool:
        """Give egglog the classes and nodes that it does not have; whether rules have anything new to match.

        With ``wait`` egglog reads their rows at the next insertion.
        """
        any_new = self.count < len(self.values) or self._has_links
        self._has_links = False
        for c in range(self.count, len(self.values)):
            self._insert_class(c)
            self._held.append(set())
        self.count = len(self.values)
        any_new |= self._open_needed()
        self._retire_long()
        any_new |= self._insert_nodes()
        any_new |= self._match_outside()
        if any_new and not wait:
            self.tables.insert()
        any_new |= self._has_rows
        self._has_rows = False
        return any_new

    def _insert_nodes(self) -> bool:
        """Insert the nodes of classes that egglog does not have, where these are needed; whether there are any."""
        is_new = False
        for c, nodes in self.classes.items():
            held = self._held[c]
            if self.demand is not None and c not in self.demand.needed:
                continue
            if len(nodes) > len(held) and literal(self.values[c]) is None:
                for node in nodes:
                    if node not in held:
                        held.add(node)
                        is_new = True
                        self._insert_node(c, node)
        return is_new

    def _match_outside(self) -> bool:
        """Let rules match the nodes that stand outside of their classes; whether that is new.

        Those of a user's own match all of them, shipped ones the reductions: these may get a range without the index.
        ``max(x + i, y + i) - min(x + i, y + i)`` has a form without the index, and is equal to it inside the loop;
        ``min(x, y)`` is ``x`` where ``y`` is never smaller, and a pattern may have it all the same.
        """
        is_new = False
        for c, node in [*self.builder.classes.outside] if self.demand is None else ():
            if (c, node) in self._matched_outside or node[:2] == EQUALITY or literal(self.values[c]) is not None:
                continue
            if self.has_own_rules or node[0] in REDUCTIONS:
                self._matched_outside.add((c, node))
                self._insert_node(c, node)
                is_new = True
        return is_new

    def add_equal(self, c: int, op: str, payload: Any, operands: Sequence[int]) -> None:
        """A row that says which class a node has that rules made; they do not match it as one of that class yet."""
        self.add_row(c, op, payload, operands, Kind.EQUAL)
        self._has_links = True

    def unite(self, c: int, other: int) -> None:
        """Rows for two classes that are equal: what rules match of sums each of them has."""
        if isinstance(self.values[c], LinearForm):
            self.tables.add_sum(c, 0, [(1, other)], Kind.EQUAL)
        self._has_links = True

    def note_held(self, c: int, node: Node) -> None:
        """Note that egglog has a node as one of a class, if rules match all that it says."""
        if (
            c < self.count
            and self.builder.classes.has_node(c, node)
            and (node[0] != "sum" or not self._may_open(c, len(node[2])))
            and node not in self._held[c]
        ):
            self._held[c].add(node)
            self._has_rows |= node[0] != "sum"

    def _insert_class(self, c: int) -> None:
        """Insert a class, with what is known of its values."""
        value, add = self.values[c], self.tables.add
        if value is TRUE or value is FALSE:
            add(Kind.HOLDS if value is TRUE else Kind.FAILS, c)
        elif not isinstance(value, LinearForm) or self.builder.classes.may_be_undefined(c):
            # where a class may be undefined, what rules say of one of its nodes need not hold of the others
            add(Kind.UNKNOWN, c)
        else:
            low, high = self._bounds(c, value)
            if not self._can_hold(value, low, high):
                add(Kind.UNKNOWN, c)
            elif not value.terms:
                add(Kind.NUMBER, c, value.constant)
            else:
                self._insert_values(c, value, low, high)

    def _bounds(self, c: int, value: LinearForm) -> tuple[int, int]:
        """The bounds of a class of integers; of sums with quotients the theory knows narrower ones."""
        low, high = self.builder.graph.bounds[c]
        if len(value.terms) > 1 and any(a.op == "floordiv" for a in value.terms):
            least, most = self.builder.theory.bounds(value)
            return max(low, least), min(high, most)
        return low, high

    def _can_hold(self, value: LinearForm, low: int, high: int) -> bool:
        """Whether egglog can hold the numbers of a class."""
        if self._largest > LARGEST_FINITE and not is_finite(low, high):
            # rules have made the first class without bounds
            return False
        numbers = (value.constant, low, high, *value.terms.values())
        if max(map(abs, numbers)) <= self._largest:
            return True
        # an infinite number is larger than all, and is held as a large one
        return max(map(abs, filter(is_finite, numbers))) <= self._largest

    def _insert_values(self, c: int, value: LinearForm, low: int, high: int) -> None:
        """Insert a class of several integers: an atom, or the sum that it is, and what is known of these integers."""
        add = self.tables.add
        modulus, rest = self.builder.theory.alignment(value)
        if modulus > self._largest:
            modulus, rest = 1, 0
        known = max(low, -INFINITE), min(high, INFINITE), max(1, gcd(modulus, rest))
        if value.single() is not None or self._is_wide(value.terms):
            add(Kind.ATOM, c, *known)
        else:
            self._insert_normal_form(c, value)
            add(Kind.KNOWN, c, *known)
        if modulus > 1:
            add(Kind.ALIGNED, c, modulus, rest)

    def _insert_normal_form(self, c: int, value: LinearForm) -> None:
        """Insert the sum that a class is; rules match it once it is needed."""
        atoms = [(k, self.builder.classes.add_atom(a)) for a, k in value.terms.items()]
        kind = Kind.NORMAL if all(self._is_atom(a) for _, a in atoms) else Kind.OPEN
        if self.demand is not None and c not in self.demand.needed:
            self._waiting.add(c)
            kind = Kind.EQUAL
        self.tables.add_sum(c, value.constant, atoms, kind)
        self.normal[c] = sum_of([(a, k) for k, a in atoms], value.constant)

    def _open_needed(self) -> bool:
        """Let rules match the sums of classes that are needed by now; whether there are any."""
        if self.demand is None:
            return False
        found = self._waiting & self.demand.needed
        self._waiting -= found
        for c in sorted(found):
            constant, coefficients = sum_payload(self.normal[c][1])
            terms = list(zip(coefficients, self.normal[c][2], strict=True))
            self.tables.add_sum(c, constant, terms, Kind.NORMAL)
        return bool(found)

    def _retire_long(self) -> None:
        """Let rules match no nodes that are much longer than the shortest of their class."""
        if self.demand is None:
            return
        for c, nodes in self.classes.items():
            if self.values[c] in (TRUE, FALSE):
                # guards ask for what is known
                continue
            for node in nodes:
                if node[2] and not self.demand.is_short(c, node) and (c, node) not in self._retired:
                    self._retired.add((c, node))
                    op, payload, operands = node
                    if op == "sum" and not self._is_held_whole(payload):
                        continue
                    self.tables.retire(op, payload, self._members(op, operands) if op in CONTAINERS else operands)

    def _insert_node(self, c: int, node: Node) -> None:
        """Insert one node, if rules may match it."""
        op, payload, operands = node
        if self.builder.classes.may_be_undefined(c) or (c, node) in self.apart:
            return
        if op in DIVISIONS:
            low, high = self.builder.graph.bounds[operands[1]]
            if low <= 0 <= high and not self.builder.theory.is_nonzero(self.builder.classes.form_of(operands[1])):
                # it counts only where the divisor is not zero, and a rule would take it out of there
                return
            if op in FLOORS and self._has_excess(*operands):
                return
        if op in CONTAINERS:
            operands = self._members(op, operands)
        if op != "sum" or (node != self.normal.get(c) and self._is_matched(c, node) and self._opens(c, len(operands))):
            self.add_row(c, op, payload, operands, Kind.OPEN)
        elif self.demand is not None and node != self.normal.get(c):
            # what else is that sum is equal to the class
            self.add_row(c, op, payload, operands, Kind.EQUAL)

    def _has_excess(self, dividend: int, divisor: int) -> bool:
        """Whether the constant of a dividend is more than it needs, and what it needs has a class: rules match that.

        ``(x*4 + 13)//8`` is ``(x*4 + 4)//8 + 1``, and ``(x*4 + 13)%8`` is ``(x*4 + 4)%8 + 1``.
        """
        form, number = self.builder.form_of(dividend), literal(self.values[divisor]) or 0
        is_small = len(self.builder.graph) < LIMITS.excess_nodes
        if number <= 0 or is_small or not self.is_limited:
            return False
        step = gcd(number, *form.terms.values())
        excess = form.constant - form.constant % number // step * step
        return excess != 0 and form.shifted(-excess) in self.builder.classes

    def add_row(self, c: int, op: str, payload: Any, operands: Sequence[int], kind: str) -> None:
        """A row for a node of the class ``c``; ``kind`` says what a sum is for."""
        if op == "sum":
            if self._is_held_whole(payload):
                constant, coefficients = payload
                self.tables.add_sum(c, constant, list(zip(coefficients, operands, strict=True)), kind)
        elif op in CONTAINERS:
            self.containers += 1
            self.tables.add_container(op, c, operands)
        elif op in CONSTRUCTORS:
            self.tables.add(op, c, *operands)

    def _is_held_whole(self, payload: Any) -> bool:
        """Whether the numbers of a sum are small enough for egglog; a sum of others it does not get."""
        constant, coefficients = sum_payload(payload)
        return max(map(abs, (constant, *coefficients))) < self._largest

    def _is_atom(self, c: int) -> bool:
        value = self.values[c]
        return isinstance(value, LinearForm) and value.single() is not None

    def _is_matched(self, c: int, node: Node) -> bool:
        """Whether rules match a sum: in a long one what stands for a sum itself hides no term from them."""
        operands = node[2]
        if self._is_wide(operands):
            return False
        if self.demand is not None and not self.demand.is_short(c, node):
            return False
        return self.has_own_rules or len(operands) <= LIMITS.derived_terms or all(map(self._is_atom, operands))

    def _is_wide(self, terms: Sized) -> bool:
        """Whether a sum of these terms is too wide to be matched: it is one value to rules.

        A user's own rules, and rules alone, match it nevertheless if there is time.
        """
        if len(terms) <= ALTERNATIVES.wide_sum:
            return False
        if self.is_limited:
            return True
        # a rule that matches every two terms makes a sum of the others of each
        is_late = self.is_late(LIMITS.seconds_per_pair * len(terms) ** 3)
        self.is_cut |= is_late
        return is_late

    def _may_open(self, c: int, length: int) -> bool:
        count, shortest = self._opened.get(c, (0, length))
        has_many = self.has_own_rules and length <= LIMITS.long_sum
        return count < (LIMITS.open_sums_of_own_rules if has_many else LIMITS.open_sums) or length < shortest

    def _opens(self, c: int, length: int) -> bool:
        """Whether rules match one more sum of a class: one of the first, or a shorter one than those before."""
        count, shortest = self._opened.get(c, (0, length))
        if not self._may_open(c, length):
            return False
        self._opened[c] = count + 1, min(shortest, length)
        return True

    def _members(self, op: str, operands: Sequence[int], depth: int = LIMITS.nested) -> tuple[int, ...]:
        """The members of a container of ``op``: the operands, or those of a node of ``op`` in the class of each."""
        return tuple([m for a in operands for m in self._members_of(op, a, depth)])

    def _members_of(self, op: str, c: int, depth: int) -> tuple[int, ...]:
        # a user's own rules may match a multiple as one factor
        has_factors = self.has_own_rules and op == "mul"
        for kind, _, operands in self.classes[c] if depth else ():
            if kind == op and not (has_factors and any(literal(self.values[a]) is not None for a in operands)):
                return self._members(op, operands, depth - 1)
        return (c,)
