"""Saturation modulo the theory: rules match in egglog, the theory names the values of what they make.

Each round inserts the classes and e-nodes that egglog does not have, runs the rules, and reads what is new. An e-node
of a known class is added to it. For a new class the theory computes the normal form from the operands, and what the
theory knows of its values goes back to egglog. Equal normal forms are one class. Two classes that a rule united, though
the theory does not know them to be equal, get each other's e-nodes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import gcd
from operator import itemgetter
from typing import Any, cast

from eqsat.alternatives.availability import of_products
from eqsat.alternatives.builder import Builder
from eqsat.alternatives.canonical import Value, is_affine, sum_of
from eqsat.alternatives.congruent import CongruentRemainders
from eqsat.alternatives.limits import LIMITS as ALTERNATIVES
from eqsat.egraph.engine import Budget
from eqsat.egraph.program import CONTAINERS, EQUAL, NORMAL, OPEN, PLAIN
from eqsat.egraph.tables import Tables, constructors
from eqsat.egraph.trace import Round
from eqsat.extract.graph import EQUALITY, Node
from eqsat.lang.errors import TooWideError, UnsoundUnionError
from eqsat.lang.expr import FALSE, TRUE, Expr, brief, make, substitute, topological
from eqsat.lang.infinity import is_finite
from eqsat.lang.ops import DIVISIONS, OPS, REDUCTIONS, Bounds, Op, for_each_own
from eqsat.optimizer.demand import Demand
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.reductions import Match, ReductionRules
from eqsat.theory.forms import LinearForm, as_term, combination, number

_LARGEST = 2**62
#: Where a bound is infinite, it is about ``_LARGEST`` to egglog, and finite numbers are at most this: what a guard
#: computes of two of them is far from infinite, and what it computes of an infinite one lies beyond them all.
_LARGEST_FINITE = 2**30
_BY_CONSTRUCTOR = {name: op for op, (name, _) in PLAIN.items()}
_OPERATOR = {name: op for op, name in CONTAINERS.items()}
_CONSTRUCTOR = {
    **{op: name for op, (name, _) in PLAIN.items()},
    **CONTAINERS,
    "sum": "Sum",
    "le": "Not",
    "ne": "Not",
}
#: What stands below ``Not`` in a comparison that is written with it.
_BELOW_NOT = {"le": "Lt", "ne": "Eq"}


@for_each_own
def _add_operator(op: Op) -> None:
    name, _ = PLAIN[op.name]
    _BY_CONSTRUCTOR[name], _CONSTRUCTOR[op.name] = op.name, name


@dataclass
class Saturated:
    """How a saturation modulo the theory ended.

    Attributes
    ----------
    stop : str
        ``"saturated"``, or which budget ran out: ``"nodes"``, ``"time"``, ``"iterations"``.
    rounds : tuple of Round
        What each step did.
    """

    stop: str
    rounds: tuple[Round, ...]


def saturate(
    builder: Builder, tables: Tables, budget: Budget, is_late: Callable[[float], bool], has_own_rules: bool = False
) -> Saturated:
    """Let the rules of ``tables`` match all that a canonical e-graph has, until nothing changes; it gains what they
    find.

    ``is_late`` says whether there is no time for what takes a number of seconds. What keeps the graph small for the
    shipped rules does not hold where a caller ``has_own_rules``: they match wide sums and sums that rules have made,
    and rules of letters under one operator match always.
    """
    run = _Run(builder, tables, has_own_rules)
    tables.begin()
    try:
        stop = run.steps(budget, is_late)
        run.share_terms()
        run.move_terms()
        run.sort_dividends()
    finally:
        tables.clear()
    return Saturated(stop, tuple(run.rounds))


def present(builder: Builder) -> frozenset[str]:
    """The constructors of the nodes of a canonical e-graph."""
    ops = {node[0] for nodes in builder.graph.classes.values() for node in nodes}
    return frozenset(
        [_CONSTRUCTOR[op] for op in ops if op in _CONSTRUCTOR] + [_BELOW_NOT[op] for op in ops if op in _BELOW_NOT]
    )


class _Run:
    """One saturation of a canonical e-graph."""

    def __init__(self, builder: Builder, tables: Tables, has_own_rules: bool) -> None:
        self.has_own_rules = has_own_rules
        #: Whether what rules found is carried to what is around it: those that are shipped gain nothing by that.
        self.equates = has_own_rules and builder.theory.is_canonical
        self.most_open = LIMITS.open_sums_of_own_rules if has_own_rules else LIMITS.open_sums
        self.builder, self.tables = builder, tables
        self.classes, self.values = builder.graph.classes, builder.values
        self.live: frozenset[str] = frozenset({"Sum"})
        self.rounds: list[Round] = []
        # how many classes egglog has, of each the nodes of it, and the node of its normal form
        self.inserted = 0
        self.held: list[set[Node]] = []
        self.normal: dict[int, Node] = {}
        # how many sums of a class rules match, and of how few terms
        self.opened: dict[int, tuple[int, int]] = {}
        # the rows that were read
        self.seen: set[tuple[str, Any]] = set()
        self.congruent = CongruentRemainders(builder) if builder.theory.is_canonical else None
        # what bounds the sums that rules match, and the classes whose own are not matched yet
        self.demand = None if builder.theory.is_canonical else Demand(builder.graph)
        self.waiting: set[int] = set()
        self.retired: set[tuple[int, Node]] = set()
        self.flattened: set[tuple[int, Node, Node]] = set()
        self.reductions = ReductionRules(builder)
        # the matches of rules about reductions that wait, and those that merge, split and swap loops, which wait longer
        self.matched: list[Match] = []
        self.reindexing: list[Match] = []
        # how many products, junctions, minima and maxima egglog was given
        self.containers = 0
        # whether egglog is to be told what its own nodes are, and whether it has nodes that rules have not seen
        self.has_links = False
        self.has_rows = False
        # whether a multiple of a term was found to equal something else
        self.has_multiples = False
        # what rules found atoms to equal, and with how many of these equations each class was rewritten
        self.equations: dict[tuple[Expr, Value], None] = {}
        self.rewritten: dict[int, int] = {}
        # the nodes that say so, which egglog is not given
        self.apart: set[tuple[int, Node]] = set()
        bounded = all(is_finite(v.vmin, v.vmax) for v in builder.variables.values())
        #: Numbers from here on are not given to egglog.
        self.largest = _LARGEST if bounded else _LARGEST_FINITE

    def steps(self, budget: Budget, is_late: Callable[[float], bool]) -> str:
        """Insert, match and normalise until nothing changes: why that ended."""
        if is_late(LIMITS.seconds_per_node * len(self.builder.graph)):
            return "time"
        began = time.perf_counter()
        is_new = self.insert()
        self.note(0, 0, began)
        # whether every rule was run
        is_whole = True
        for turn in range(1, budget.rounds + 1):
            if not is_new:
                break
            # a round cannot be interrupted, and may take twice as long as the last, or as inserting did
            if is_late(2 * self.rounds[-1].seconds):
                return "time"
            began, matched = time.perf_counter(), self.tables.matches.total()
            with_broad = self.has_own_rules or self.containers < LIMITS.containers
            is_whole &= with_broad or not self.tables.has_broad(self.live)
            changed = self.tables.round(self.live, with_broad)
            if changed:
                self.read()
                self.apply(self.matched)
                is_new = self.insert()
            if self.reindexing and len(self.builder.graph) > LIMITS.reindexed_nodes:
                self.reindexing.clear()
                is_whole = False
            while self.reindexing and not (changed and is_new):
                # when bodies have become what the other rules make of them
                self.reindex()
                is_new = changed = self.insert()
            self.note(turn, self.tables.matches.total() - matched, began)
            if not changed or (self.tables.queries and all(map(self._is_affine, self.builder.graph.roots))):
                # sums of variables have no loops left that could go
                break
            if len(self.builder.graph) > budget.nodes:
                return "nodes"
        else:
            if is_new:
                return "iterations"
        return "saturated" if is_whole and not self.reductions.is_cut else "nodes"

    def apply(self, matches: list[Match]) -> None:
        """Unite the left sides of matches of rules about reductions with their right sides."""
        with self.builder.adding("rules"):
            for match in matches:
                for c in () if self._is_affine(match.whole) else self.reductions.right_sides(match, self.add):
                    self._unite(match, c)
                    if self.demand is not None and (match.has_own_loops or match.whole in self.demand.nests):
                        self.demand.nests.add(c)
            matches.clear()

    def _is_affine(self, c: int) -> bool:
        """Whether a class is known to be a sum of variables: no reduction can be better."""
        return any(
            op in ("const", "var") or (op == "sum" and all(is_affine(self.values[a]) for a in operands))
            for op, _, operands in self.classes[c]
        )

    def add(self, op: str, payload: Any, operands: tuple[int, ...]) -> int | None:
        """The class of a node over classes, which has that node then; ``None`` if it is no term."""
        value = self._value(op, payload, operands)
        if value is None:
            return None
        c = self.builder.add_class(value)
        self._add_found(c, op, payload, operands)
        return c

    def reindex(self) -> None:
        """Merge loops; where none can be merged split and swap them, which leaves as many or more."""
        merging = [match for match in self.reindexing if match.merges]
        waiting = [match for match in self.reindexing if not match.merges] if merging else []
        self.apply(merging or self.reindexing)
        self.reindexing = waiting

    def _unite(self, match: Match, c: int) -> None:
        """Add to the class that a match is a part of what has the class ``c`` in place of that."""
        kept = match.rule.kept
        if kept == "sum" and (match.rest or match.constant or match.factor != 1):
            pairs = [*match.rest, (c, match.factor)]
            self._add_found(
                match.whole, "sum", (match.constant, tuple([k for _, k in pairs])), tuple([a for a, _ in pairs])
            )
        elif kept in CONTAINERS and match.rest:
            self._add_found(match.whole, kept, None, (*[a for a, _ in match.rest], c))
        else:
            self._link(match.whole, c)

    def note(self, number: int, matches: int, began: float) -> None:
        """Trace the round that has just ended."""
        nodes, classes = len(self.builder.graph), len(self.values)
        self.rounds.append(Round(1, number, nodes, classes, matches, time.perf_counter() - began))

    def share_terms(self) -> None:
        """Add sums the multiples of their atoms that have a node besides the product: ``where(p, 0, 3)*4``."""
        with self.builder.adding("rules"):
            for c, nodes in self.classes.items():
                for op, payload, operands in [*nodes]:
                    if op == "sum" and len(operands) > 1:
                        constant, coefficients = cast(tuple[int, tuple[int, ...]], payload)
                        terms = [self._shared_term(a, k) for a, k in zip(operands, coefficients, strict=True)]
                        if any(a != b for (a, _), b in zip(terms, operands, strict=True)):
                            self._add(c, sum_of(terms, constant))

    def move_terms(self) -> None:
        """Add to comparisons with a literal those with a constant, or one of two terms, on the other side.

        ``x%8 - 3 < 1`` is ``x%8 < 4``, and ``x - y < 0`` is ``x < y``. As rules these would make sums without end.
        """
        with self.builder.adding("rules"):
            for c, nodes in [*self.classes.items()]:
                for op, _, operands in [*nodes]:
                    if op in ("lt", "le"):
                        for place in (0, 1):
                            self._move(c, op, place, operands[place], self._literal(operands[1 - place]))
            self.builder.grow()

    def _move(self, c: int, op: str, place: int, compared: int, limit: int | None) -> None:
        """Move terms of ``compared``, at a place of a comparison with ``limit``."""
        if limit is None:
            return
        # one more, or less, turns < into <= or back
        if limit == 0 or limit == (1 if (op == "lt") == (place == 0) else -1):
            other = op if limit == 0 else "le" if op == "lt" else "lt"
            for x, y in self._differences(compared):
                self._add(c, (other, None, (x, y) if place == 0 else (y, x)))
        for constant, x in self._without_constants(compared):
            end = self.builder.add_class(number(limit - constant))
            self._add(c, (op, None, (x, end) if place == 0 else (end, x)))

    def _without_constants(self, c: int) -> Iterator[tuple[int, int]]:
        """The constants of the short sums of a class besides its normal form, and the classes of what is left."""
        value = self.values[c]
        for node in [*self.classes[c]]:
            op, payload, operands = node
            if op == "sum" and len(operands) <= LIMITS.derived_terms and node != self.normal.get(c):
                constant, coefficients = cast(tuple[int, tuple[int, ...]], payload)
                if constant and coefficients == (1,):
                    yield constant, operands[0]
                elif constant and isinstance(value, LinearForm):
                    rest = self.builder.add_class(value.shifted(-constant), expand=False)
                    self._add(rest, sum_of(zip(operands, coefficients, strict=True), 0))
                    yield constant, rest

    def sort_dividends(self) -> None:
        """Of equal prices a dividend that is seen to be positive comes first: it needs no fix-up of its sign."""
        bounds = self.builder.graph.bounds

        def may_be_negative(node: Node) -> bool:
            op, payload, operands = node
            if op == "mul":
                return OPS["mul"].bounds(*[bounds[a] for a in operands])[0] < 0
            if op != "sum":
                return False
            constant, coefficients = cast(tuple[int, tuple[int, ...]], payload)
            ends = [k * bounds[a][k < 0] for a, k in zip(operands, coefficients, strict=True)]
            return constant + sum(ends) < 0

        divisions = [node for nodes in self.classes.values() for node in nodes if node[0] in DIVISIONS]
        for c in {operands[0] for _, _, operands in divisions}:
            if bounds[c][0] >= 0:
                self.classes[c].sort(key=may_be_negative)

    def _differences(self, c: int) -> Iterator[tuple[int, int]]:
        """The pairs of classes of which a class is the difference."""
        for op, payload, operands in self.classes[c]:
            if op == "sum" and payload in ((0, (1, -1)), (0, (-1, 1))):
                x, y = operands if payload == (0, (1, -1)) else operands[::-1]
                yield x, y

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

    # ---- in

    def insert(self) -> bool:
        """Give egglog the classes and nodes that it does not have; whether rules have anything new to match."""
        self.builder.grow()
        if self.congruent is not None:
            self.congruent.add()
            self.builder.grow()
        if self.has_own_rules:
            self._add_multiples()
        if self.demand is not None:
            self.demand.update()
            if self._flatten():
                self.demand.update()
        any_new = self.inserted < len(self.values) or self.has_links
        self.has_links = False
        for c in range(self.inserted, len(self.values)):
            self._class(c)
            self.held.append(set())
        self.inserted = len(self.values)
        any_new |= self._open_needed()
        self._retire_long()
        live = set(self.live)
        for c, nodes in self.classes.items():
            held = self.held[c]
            if self.demand is not None and c not in self.demand.needed:
                continue
            if len(nodes) > len(held) and not self._is_literal(c):
                for node in nodes:
                    if node not in held:
                        held.add(node)
                        any_new = True
                        if (constructor := self._node(c, node)) is not None:
                            live.add(constructor)
                            if node[0] in _BELOW_NOT:
                                live.add(_BELOW_NOT[node[0]])
        self.live = frozenset(live)
        if any_new:
            self.tables.insert()
        any_new |= self.has_rows
        self.has_rows = False
        return any_new

    def _add_multiples(self) -> None:
        """Add to sums that are multiples of others, or of what is there negated, that they are: ``x*8`` may match."""
        for c in range(self.inserted, len(self.values)):
            value = self.values[c]
            if isinstance(value, LinearForm) and len(value.terms) + bool(value.constant) > 1:
                scale = gcd(value.constant, *value.terms.values())
                part = LinearForm({atom: k // scale for atom, k in value.terms.items()}, value.constant // scale)
                if (opposite := part.times(-1)) in self.builder.classes and part not in self.builder.classes:
                    part, scale = opposite, -scale
                elif scale == 1 and opposite in self.builder.classes:
                    part, scale = opposite, -1
                if scale != 1:
                    self._add(c, sum_of([(self.builder.add_class(part), scale)], 0))
        self.builder.grow()

    def _class(self, c: int) -> None:
        """A row for a class, with what is known of its values."""
        value, add = self.values[c], self.tables.add
        if not isinstance(value, LinearForm):
            add("holds" if value is TRUE else "fails" if value is FALSE else "condition", c)
            return
        if self.builder.classes.may_be_undefined(c):
            # rules know it by its number alone: what they say of one of its nodes need not hold of the others
            add("condition", c)
            return
        low, high = self.builder.graph.bounds[c]
        if len(value.terms) > 1 and any(a.op == "floordiv" for a in value.terms):
            least, most = self.builder.theory.bounds(value)
            low, high = max(low, least), min(high, most)
        numbers = (value.constant, low, high, *value.terms.values())
        if max(map(abs, numbers)) >= self.largest and max(map(abs, filter(is_finite, numbers))) >= self.largest:
            add("condition", c)
        elif not value.terms:
            add("literal", c, value.constant)
        else:
            modulus, rest = self.builder.theory.alignment(value)
            if modulus >= self.largest:
                modulus, rest = 1, 0
            known = max(low, 1 - _LARGEST), min(high, _LARGEST - 1), max(1, gcd(modulus, rest))
            if value.single() is not None or self._is_wide(value.terms):
                add("atom", c, *known)
            else:
                atoms = [(k, self.builder.classes.add_atom(a)) for a, k in value.terms.items()]
                kind = NORMAL if all(self._is_atom(a) for _, a in atoms) else OPEN
                if self.demand is not None and c not in self.demand.needed:
                    self.waiting.add(c)
                    kind = EQUAL
                self.tables.add_sum(c, value.constant, atoms, kind)
                self.normal[c] = sum_of([(a, k) for k, a in atoms], value.constant)
                add("known", c, *known)
            if modulus > 1:
                add("aligned", c, modulus, rest)

    def _open_needed(self) -> bool:
        """Let rules match the sums of classes that are needed by now; whether there are any."""
        if self.demand is None:
            return False
        found = self.waiting & self.demand.needed
        self.waiting -= found
        for c in sorted(found):
            constant, coefficients = cast(tuple[int, tuple[int, ...]], self.normal[c][1])
            terms = list(zip(coefficients, self.normal[c][2], strict=True))
            self.tables.add_sum(c, constant, terms, NORMAL)
        return bool(found)

    def _flatten(self) -> bool:
        """Add to classes their sums in which a term is written as a sum that it equals; whether there were any."""
        demand, before = cast(Demand, self.demand), self.builder.classes.size
        with self.builder.adding("rules"):
            for c in sorted(demand.needed):
                for node in [*self.classes[c]]:
                    if node[0] == "sum" and demand.is_short(c, node):
                        self._flatten_sum(c, node)
        return self.builder.classes.size > before

    def _flatten_sum(self, c: int, node: Node) -> None:
        constant, coefficients = cast(tuple[int, tuple[int, ...]], node[1])
        for a, k in zip(node[2], coefficients, strict=True):
            for inner in self.classes[a]:
                if inner[0] != "sum" or inner[:2] == EQUALITY or (c, node, inner) in self.flattened:
                    continue
                self.flattened.add((c, node, inner))
                offset, scales = cast(tuple[int, tuple[int, ...]], inner[1])
                others = [(b, scale) for b, scale in zip(node[2], coefficients, strict=True) if b != a]
                inside = [(b, k * scale) for b, scale in zip(inner[2], scales, strict=True)]
                flat = sum_of([*others, *inside], constant + k * offset)
                if not cast(Demand, self.demand).is_short(c, flat):
                    continue
                if flat[0] == "sum":
                    self._add_found(c, *flat)
                else:
                    self._add(c, flat)

    def _retire_long(self) -> None:
        """Let rules match no nodes that are much longer than the shortest of their class."""
        if self.demand is None:
            return
        for c, nodes in self.classes.items():
            if self.values[c] in (TRUE, FALSE):
                # guards ask for what is known
                continue
            for node in nodes:
                if node[2] and not self.demand.is_short(c, node) and (c, node) not in self.retired:
                    self.retired.add((c, node))
                    op, payload, operands = node
                    if op in CONTAINERS:
                        operands = tuple([m for a in operands for m in self._members(op, a, LIMITS.nested)])
                    self.tables.retire(op, payload, operands)

    def _literal(self, c: int) -> int | None:
        """The number that a class is; ``None`` if it is not one."""
        value = self.values[c]
        return value.constant if isinstance(value, LinearForm) and not value.terms else None

    def _is_literal(self, c: int) -> bool:
        """Whether a class is one number: it needs no other node."""
        return self._literal(c) is not None

    def _is_atom(self, c: int) -> bool:
        value = self.values[c]
        return isinstance(value, LinearForm) and value.single() is not None

    def _node(self, c: int, node: Node) -> str | None:
        """Insert one node, if rules may match it: its constructor, if there is one for such nodes."""
        op, payload, operands = node
        if self.builder.classes.may_be_undefined(c) or (c, node) in self.apart:
            return None
        if op in DIVISIONS:
            low, high = self.builder.graph.bounds[operands[1]]
            if low <= 0 <= high:
                # it counts only where the divisor is not zero, and a rule would take it out of there
                return None
        if op in CONTAINERS:
            operands = tuple([m for a in operands for m in self._members(op, a, LIMITS.nested)])
        if op != "sum" or (node != self.normal.get(c) and self._is_matched(c, node) and self._opens(c, len(operands))):
            self._row(c, op, payload, operands, OPEN)
        elif self.demand is not None and node != self.normal.get(c):
            # what else is that sum is equal to the class
            self._row(c, op, payload, operands, EQUAL)
        return _CONSTRUCTOR.get(op)

    def _row(self, c: int, op: str, payload: Any, operands: Sequence[int], kind: str) -> None:
        """A row for a node of the class ``c``; ``kind`` says what a sum is for."""
        if op == "sum":
            constant, coefficients = payload
            if max(map(abs, (constant, *coefficients))) < self.largest:
                self.tables.add_sum(c, constant, list(zip(coefficients, operands, strict=True)), kind)
        elif op in CONTAINERS:
            self.containers += 1
            self.tables.add_container(op, c, operands)
        elif op in _CONSTRUCTOR:
            self.tables.add(op, c, *operands)

    def _is_matched(self, c: int, node: Node) -> bool:
        """Whether rules match a sum: in a long one what stands for a sum itself hides no term from them."""
        operands = node[2]
        if self._is_wide(operands):
            return False
        if self.demand is not None and not self.demand.is_short(c, node):
            return False
        return self.has_own_rules or len(operands) <= LIMITS.derived_terms or all(map(self._is_atom, operands))

    def _is_wide(self, terms: Sized) -> bool:
        """Whether a sum of these is one value to rules, unless these are a user's own or there is no theory."""
        return self.demand is None and len(terms) > ALTERNATIVES.wide_sum and not self.has_own_rules

    def _may_open(self, c: int, length: int) -> bool:
        count, shortest = self.opened.get(c, (0, length))
        return count < self.most_open or length < shortest

    def _opens(self, c: int, length: int) -> bool:
        """Whether rules match one more sum of a class: one of the first, or a shorter one than those before."""
        count, shortest = self.opened.get(c, (0, length))
        if not self._may_open(c, length):
            return False
        self.opened[c] = count + 1, min(shortest, length)
        return True

    def _members(self, op: str, c: int, depth: int) -> list[int]:
        """The members of a class for a container of ``op``: those of its own node of that operator, or itself."""
        for kind, _, operands in self.classes[c] if depth else ():
            if kind == op:
                return [m for a in operands for m in self._members(op, a, depth - 1)]
        return [c]

    # ---- out

    def read(self) -> None:
        """Add the canonical e-graph what egglog has beyond it."""
        with self.builder.adding("rules"):
            rows = self.tables.rows()
            self.live |= constructors(rows)
            integer = self.tables.integer
            home: dict[Any, int] = {}
            for c, value in sorted((integer(row.inputs[0]), row.output) for row in rows["A"]):
                other = home.setdefault(value, c)
                if other != c:
                    self._equal(other, c)
            known = set(home)
            unsimplified: list[tuple[Any, int, list[tuple[int, Any]]]] = []
            waiting = list(self._nodes(rows, unsimplified))
            while waiting:
                are_ready = [all(map(home.__contains__, row[3])) for row in waiting]
                ready = [row for row, is_ready in zip(waiting, are_ready, strict=True) if is_ready]
                if not ready:
                    break
                # egglog's order of rows depends on what the session did before
                found = [_sorted(op, payload, [home[a] for a in args], output) for output, op, payload, args in ready]
                for op, payload, args, output in sorted(found, key=itemgetter(0, 1, 2)):
                    c = home.get(output)
                    if c is None:
                        value = self._value(op, payload, args)
                        if value is None:
                            continue
                        c = home[output] = self.builder.add_class(value)
                        # egglog does not know yet what it has there
                        self._row(c, op, payload, args, EQUAL)
                        self.has_links = True
                    self._add_found(c, op, payload, args, output in known)
                waiting = [row for row, is_ready in zip(waiting, are_ready, strict=True) if not is_ready]
            for output, constant, written in unsimplified:
                if output in home and all(a in home for _, a in written):
                    self.tables.add_sum(home[output], constant, [(k, home[a]) for k, a in written], EQUAL)
            if self.has_multiples:
                self.has_multiples = False
                for c, node in list(of_products(self.builder)):
                    self.builder.add_node(c, node)
            self._read_matches(rows, home)
            self._rewrite()

    def _assert_equation(self, c: int, other: Value | None) -> None:
        """Note what rules found a class to equal, if it is an atom and that does not follow from what is known."""
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else value
        if atom is None or not atom.args or other is None or other == value or (atom, other) in self.equations:
            return
        below = topological([as_term(other)])
        # other loops would stand between an index and its reduction
        if atom in below or not REDUCTIONS.keys().isdisjoint([term.op for term in below]):
            return
        if self._simplified(value) != self._simplified(other):
            self.equations[atom, other] = None

    def _rewrite(self) -> None:
        """Let classes be chosen as their values in which atoms are written as what rules found them to equal.

        In a sum around such an atom terms may cancel then, and a comparison may lose one on either side. To egglog
        these are classes of their own: of a sum that equals another, or zero, rules would make sums without end.
        """
        equations = [*self.equations]
        pairs: list[tuple[int, int]] = []
        for c in range(len(self.values) if equations else 0):
            done = self.rewritten.get(c, 0)
            if done >= len(equations) or self.builder.classes.may_be_undefined(c):
                continue
            self.rewritten[c] = len(equations)
            value = self.values[c]
            below = set(topological([as_term(value)]))
            new = [(atom, other) for atom, other in equations[done:] if atom in below]
            found = [self._replaced(value, {atom: other}) for atom, other in new]
            for written in (*found, self._simplified(value)) if new else ():
                count, other = len(self.values), self.builder.add_class(written)
                if other == count:
                    # what comes of this is not rewritten in turn
                    self.rewritten[other] = sys.maxsize
                if other != c:
                    pairs.append((c, other))
        self.builder.grow()
        for c, other in pairs:
            self._check(c, self.builder.graph.bounds[other])
            value = self.values[other]
            if not isinstance(value, LinearForm):
                for node in [*self.classes[other]]:
                    self._add(c, node)
                continue
            node = _itself(other, value)
            self._add(c, node)
            self.apart.add((c, node))

    def _simplified(self, value: Value) -> Value:
        """A value in which each atom is written as what it was first found to equal."""
        images = dict(reversed(self.equations))
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

    def _link(self, c: int, other: int) -> None:
        """Unite two classes, in egglog too."""
        if c != other:
            self._equal(c, other)
            if isinstance(self.values[c], LinearForm):
                self.tables.add_sum(c, 0, [(1, other)], EQUAL)
            self.has_links = True

    def _read_matches(self, rows: Mapping[str, Any], home: Mapping[Any, int]) -> None:
        """Read the matches of rules about reductions that were not read before, of classes that are known."""
        integer, members = self.tables.integer, self.tables.members
        terms: dict[Any, Any] = {}
        for query in self.tables.queries:
            for row in rows.get(query.table, ()):
                key = (query.table, *row.inputs)
                whole, *values = row.inputs
                if key in self.seen or whole not in home:
                    continue
                terms = terms or {term.output: term.inputs for term in rows.get("Sc", ())}
                letters, literals, rest, numbers = {}, {}, [], {"constant": 0, "factor": 1}
                for (name, sort), value in zip(query.columns, values, strict=True):
                    if sort == "E":
                        letters[name] = home.get(value)
                    elif sort == "MT":
                        rest = [(home.get(a), integer(k)) for k, a in [terms[t] for t in members(value)]]
                    elif sort == "ME":
                        rest = [(home.get(a), 1) for a in members(value)]
                    elif name in numbers:
                        numbers[name] = integer(value)
                    else:
                        literals[name] = integer(value)
                if None in letters.values() or any(a is None for a, _ in rest):
                    continue
                self.seen.add(key)
                match = Match(
                    query,
                    home[whole],
                    cast(dict[str, int], letters),
                    literals,
                    tuple(cast(list[tuple[int, int]], rest)),
                    **numbers,
                )
                (self.reindexing if match.has_own_loops else self.matched).append(match)

    def _nodes(
        self, rows: Mapping[str, Any], unsimplified: list[tuple[Any, int, list[tuple[int, Any]]]]
    ) -> Iterator[tuple[Any, str, Any, tuple[Any, ...]]]:
        """The rows that were not read before, as nodes over egglog's names of classes.

        ``unsimplified`` gains the sums of which terms are alike or zero, as they are.
        """
        below: dict[Any, list[tuple[str, Any]]] = {}
        for name in ("Lt", "Eq"):
            for row in rows.get(name, ()):
                below.setdefault(row.output, []).append((name, row.inputs))
        terms = {row.output: row.inputs for row in rows.get("Sc", ())}
        integer, members, seen = self.tables.integer, self.tables.members, self.seen
        for name in ("Sum", *_BY_CONSTRUCTOR, *_OPERATOR):
            for row in rows.get(name, ()):
                inputs = row.inputs
                key = (name, row.output, *inputs)
                if name == "Not":
                    key = (*key, len(below.get(inputs[0], ())))
                if key in seen:
                    continue
                seen.add(key)
                if name == "Sum":
                    written = [terms[term] for term in members(inputs[0])]
                    total: dict[Any, int] = {}
                    for k, a in written:
                        total[a] = total.get(a, 0) + integer(k)
                    kept = {a: k for a, k in total.items() if k}
                    if len(kept) != len(written):
                        unsimplified.append((row.output, integer(inputs[1]), [(integer(k), a) for k, a in written]))
                    yield row.output, "sum", (integer(inputs[1]), tuple(kept.values())), tuple(kept)
                elif name in _OPERATOR:
                    yield row.output, _OPERATOR[name], None, tuple(members(inputs[0]))
                else:
                    yield row.output, _BY_CONSTRUCTOR[name], None, tuple(inputs)
                    if name == "Not":
                        for of, (x, y) in below.get(inputs[0], ()):
                            yield row.output, "le" if of == "Lt" else "ne", None, (y, x) if of == "Lt" else (x, y)

    def _value(self, op: str, payload: Any, args: tuple[int, ...]) -> Value | None:
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

    def _add_found(self, c: int, op: str, payload: Any, args: tuple[int, ...], is_held: bool = False) -> None:
        """Add a node to a class; egglog has it, and if it ``is_held``, as one of that class."""
        if self.equates:
            self._assert_equation(c, self._value(op, payload, args))
        if op == "sum":
            constant, coefficients = payload
            multiples = list(zip(args, coefficients, strict=True))
            numbers = [cast(LinearForm, self.values[a]).constant * k for a, k in multiples if self._is_literal(a)]
            if numbers:
                multiples = [(a, k) for a, k in multiples if not self._is_literal(a)]
            node = sum_of(multiples, constant + sum(numbers))
            if node[:2] == EQUALITY:
                if node[2][0] != c and not self.builder.theory.is_canonical:
                    self._equal(c, node[2][0])
                return
            if node[0] != "sum":
                constant = cast(int, node[1])
                self._check(c, (constant, constant))
                self._add(c, node, is_held)
                return
            constant, coefficients = cast(tuple[int, tuple[int, ...]], node[1])
            ends = [self.builder.graph.bounds[a] for a in node[2]]
            low = constant + sum(k * end[k < 0] for k, end in zip(coefficients, ends, strict=True))
            high = constant + sum(k * end[k > 0] for k, end in zip(coefficients, ends, strict=True))
            self._check(c, (low, high))
            self._add(c, node, is_held)
            if self.has_own_rules and len(coefficients) == 1 and not constant:
                # a term that longer sums have: what it equals may stand there
                multiple = self.builder.add_class(cast(LinearForm, self._value(*node)))
                if multiple != c:
                    self._equal(c, multiple)
                    self.has_multiples = True
        elif op not in CONTAINERS:
            self._add(c, (op, None, args), is_held)
        elif len(args) > 1:
            left = args[0]
            for member in args[1:-1]:
                value = self._value(op, None, (left, member))
                if value is None:
                    return
                inner = self.builder.add_class(value)
                self._add(inner, (op, None, tuple(sorted((left, member)))))
                left = inner
            self._add(c, (op, None, tuple(sorted((left, args[-1])))))

    def _add(self, c: int, node: Node, is_held: bool = False) -> None:
        if self._is_literal(c):
            return
        nodes = self.classes[c]
        if node not in nodes:
            self.builder.add_node(c, node)
            if node[0] != "sum" and nodes[-1:] == [node] and isinstance(self.values[c], LinearForm):
                # of equal prices the first wins: an operator reads better than the sum that it stands for
                nodes.insert(0, nodes.pop())
        elif node[0] == "mod" and nodes[0] != node:
            nodes.remove(node)
            nodes.insert(0, node)
        if (
            is_held
            and c < self.inserted
            and node in self.classes[c]
            and (node[0] != "sum" or not self._may_open(c, len(node[2])))
            and node not in self.held[c]
        ):
            self.held[c].add(node)
            self.has_rows |= node[0] != "sum"

    def _check(self, c: int, bounds: Bounds) -> None:
        """Refuse ``bounds`` in which no value of the class ``c`` lies, though rules say that it has them."""
        known = self.builder.graph.bounds[c]
        if known[1] < bounds[0] or bounds[1] < known[0]:
            value = self.values[c]
            term = brief(as_term(value))
            fired = ", ".join(name for name, count in self.tables.matches.items() if count) or "none"
            raise UnsoundUnionError(
                f"{term} lies in {[*known]}, and in {[*bounds]} by a false rule; rules that fired: {fired}"
            )

    def _equal(self, c: int, other: int) -> None:
        """Two classes that the rules found equal add each other's nodes."""
        one, two = self.values[c], self.values[other]
        self._check(c, self.builder.graph.bounds[other])
        if self.equates:
            self._assert_equation(c, two)
            self._assert_equation(other, one)
        if isinstance(one, LinearForm) and isinstance(two, LinearForm):
            self._add(c, _itself(other, two))
            self._add(other, _itself(c, one))
            return
        for x, y in ((c, other), (other, c)):
            for node in [*self.classes[y]]:
                self._add(x, node)


def _itself(c: int, form: LinearForm) -> Node:
    """The node that says that its class equals the class ``c`` of a form; of a number that number."""
    return sum_of([(c, 1)], 0) if form.terms else sum_of([], form.constant)


def _sorted(op: str, payload: Any, operands: Sequence[int], output: Any) -> tuple[str, Any, tuple[int, ...], Any]:
    """A node whose operands are in order, where their order does not matter."""
    if op == "sum":
        constant, coefficients = payload
        pairs = sorted(zip(operands, coefficients, strict=True))
        return op, (constant, tuple([k for _, k in pairs])), tuple([a for a, _ in pairs]), output
    return op, (), tuple(sorted(operands) if op in CONTAINERS else operands), output
