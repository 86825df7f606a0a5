"""Saturation modulo the theory: rules match in egglog, the theory names the values of what they make.

Each round inserts the classes and e-nodes that egglog does not have, runs the rules, and reads what is new. An e-node
of a known class is added to it. For a new class the theory computes the normal form from the operands, and what the
theory knows of its values goes back to egglog. Equal normal forms are one class. Two classes that a rule united, though
the theory does not know them to be equal, get each other's e-nodes.

Some equalities would make sums without end if they were rules. Code adds these e-nodes instead (:class:`Derived`): sums
before rules match, and comparisons and quotients when they are done.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import islice
from math import gcd, inf
from operator import attrgetter
from typing import Any

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.congruent import CongruentRemainders
from eqsat.alternatives.multiples import of_products
from eqsat.egraph.budget import Budget
from eqsat.egraph.compilation import Match
from eqsat.egraph.program import CONTAINERS, Kind
from eqsat.egraph.rule import Rule
from eqsat.egraph.tables import Tables
from eqsat.egraph.trace import NO_MATCH, NO_RULES, Deadlines, Round, Spent
from eqsat.extract.graph import EQUALITY, Node, sum_of, sum_payload, sum_terms
from eqsat.lang.expr import FALSE, TRUE, Expr
from eqsat.lang.ops import DIVISIONS, OPS, linear_bounds
from eqsat.lang.properties import has_reductions
from eqsat.optimizer.additions import Additions, Reader, Row
from eqsat.optimizer.demand import Demand
from eqsat.optimizer.insertion import Insertion
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.reductions import ReductionRules
from eqsat.optimizer.relevant import is_shipped
from eqsat.optimizer.right_sides import ExtremesApart
from eqsat.theory.forms import LinearForm, as_term, is_affine, literal, literal_divisor, number


@dataclass
class Saturated:
    """How a saturation modulo the theory ended, and what each step did."""

    #: ``"saturated"``, or which budget ran out: ``"nodes"``, ``"time"``, ``"iterations"``.
    stop: str
    rounds: tuple[Round, ...]


def run_rules(
    builder: Builder,
    rules: tuple[Rule, ...],
    budget: Budget,
    spent: Spent,
    has_own_rules: bool = False,
    seconds: float = inf,
) -> Saturated:
    """:func:`saturate` with these rules, where they can match, within what is left of the budget, and ``seconds``.

    ``spent`` says how much that is, and counts what is done.
    """
    with _tables(rules, spent, builder.theory.work) as tables:
        operators = {node[0] for nodes in builder.graph.classes.values() for node in nodes}
        # of sums with quotients egglog may be told narrower bounds
        with_two_values = "floordiv" in operators or any(low + 1 == high for low, high in builder.graph.bounds.values())
        if not tables.can_match(operators, with_two_values):
            if builder.theory.is_canonical:
                CongruentRemainders(builder.classes).add()
                builder.grow()
            spent.skip(NO_MATCH if rules else NO_RULES)
            return Saturated("saturated", ())
        with spent.during("saturate"):
            # half of the time that is left is for choosing
            ends = spent.seconds() + min(spent.left(budget.seconds) / 2, seconds)
            once = partial(spent.off_the_clock, builder.theory.work)
            found = saturate(builder, tables, budget, lambda more: spent.seconds() + more >= ends, has_own_rules, once)
        if found.rounds:
            spent.not_entered = None
        elif found.stop == "saturated":
            spent.skip(NO_MATCH)
            return found
        spent.rounds += sum(r.number > 0 for r in found.rounds)
        spent.count(tables.matches, tables.seconds, found.rounds)
    return found


def saturate(
    builder: Builder,
    tables: Tables,
    budget: Budget,
    is_late: Callable[[float], bool],
    has_own_rules: bool = False,
    once: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Saturated:
    """Let the rules of ``tables`` match all that a canonical e-graph has, until nothing changes; it gains what they
    find.

    ``is_late`` says whether there is no time for what takes a number of seconds. Some limits keep the graph small for
    shipped rules, and are lifted where a caller ``has_own_rules``: those match wide sums and sums that rules have made,
    and rules of letters under one operator always match. Egglog reads the rules that may match within ``once``.
    """
    run = _Run(builder, tables, is_late, has_own_rules)
    tables.begin(builder.theory.is_canonical and not has_own_rules, once)
    try:
        stop = run.steps(budget)
        run.derived.shared_terms()
        run.derived.moved_terms()
        run.derived.sort_dividends()
    finally:
        tables.clear()
    return Saturated(stop, tuple(run.rounds))


class _Run:
    """One saturation of a canonical e-graph."""

    def __init__(self, builder: Builder, tables: Tables, is_late: Callable[[float], bool], has_own_rules: bool) -> None:
        self.builder, self.tables, self.has_own_rules = builder, tables, has_own_rules
        self.is_late = is_late
        self.classes, self.values = builder.graph.classes, builder.values
        is_canonical = builder.theory.is_canonical
        self.congruent = CongruentRemainders(builder.classes) if is_canonical else None
        # what bounds the sums that rules match, where no normal form does
        self.demand = None if is_canonical else Demand(builder.graph)
        self.insertion = Insertion(builder, tables, self.demand, is_late, has_own_rules)
        self.additions = Additions(builder, self.insertion)
        self.derived = Derived(self.additions)
        self.reader = Reader(tables, is_late)
        self.reductions = ReductionRules(builder)
        self.extremes = ExtremesApart(builder.classes, tables.taken_apart)
        # the matches of rules about reductions that are to be applied; those that merge, split and swap loops wait
        self.matched: list[Match] = []
        self.reindexing: list[Match] = []
        # the rounds since these were last applied
        self.waited = 0
        # whether every rule was run
        self.is_whole = True
        self.rounds: list[Round] = []

    def steps(self, budget: Budget) -> str:
        """Insert, match and normalise until nothing changes; why that ended."""
        if self.is_late(LIMITS.seconds_per_node * len(self.builder.graph)):
            return "time"
        is_new = self.enter()
        most_nodes: float = budget.nodes
        if self.insertion.is_limited:
            most_nodes = min(most_nodes, max(LIMITS.matched_nodes, 2 * len(self.builder.graph)))
        # the number of rounds may be infinite
        for turn in range(1, min(budget.rounds, sys.maxsize) + 1):
            if not is_new:
                break
            # a round cannot be interrupted, and may take twice as long as the last, or as inserting did
            if self.is_late(2 * self.rounds[-1].seconds):
                return "time"
            began, matched = self.now(), self.tables.matches.total()
            changed = self.match()
            if changed:
                self.read()
                if self.is_late(0):
                    return "time"
                self.apply(self.matched)
                is_new = self.insert()
            changed, is_new = self.reindex(changed, is_new)
            self.note(turn, self.tables.matches.total() - matched, began)
            # sums of variables have no loops left that could go
            has_no_loops = self.tables.reduces and all(map(self._is_affine, self.builder.graph.roots))
            if not changed or self.tables.is_cut or has_no_loops:
                break
            if len(self.builder.graph) > most_nodes:
                return "nodes"
        else:
            if is_new:
                return "iterations"
        if self.insertion.is_cut or self.tables.is_cut:
            return "time"
        return "saturated" if self.is_whole and not self.reductions.is_cut else "nodes"

    def now(self) -> float:
        """The time, without what egglog took to read rules: it does so once in a process."""
        return time.perf_counter() - self.tables.seconds_reading

    def enter(self) -> bool:
        """Give egglog the graph as it is, if rules may match that; whether they may."""
        began = self.now()
        is_new = self.insert(wait=True)
        if not is_new or not self.tables.may_match():
            return False
        self.tables.insert()
        self.note(0, 0, began)
        return True

    def insert(self, wait: bool = False) -> bool:
        """Give egglog what it does not have of the graph; whether rules have anything new to match."""
        self.builder.grow()
        with self.builder.adding("rules"):
            for rule, c, whole in self.extremes.extremes(self.additions.add, self.additions.value):
                self.tables.matches[rule.name] += 1
                self.additions.link(c, whole)
        self.builder.grow()
        if self.congruent is not None:
            self.congruent.add()
            self.builder.grow()
        if self.has_own_rules:
            self.derived.multiples(self.insertion.count)
            self.derived.nested_quotients(self.insertion.count, self.tables.own_divisors)
        if self.demand is not None:
            self.demand.update()
            if self.derived.flat_sums(self.demand):
                self.demand.update()
        return self.insertion.insert(wait)

    def match(self) -> bool:
        """Run the rules, broad ones unless there are many containers; whether that changed anything."""
        with_broad = self.has_own_rules or self.insertion.containers < LIMITS.containers
        self.is_whole &= with_broad or not self.tables.has_broad
        return self.tables.round(with_broad, self.is_late)

    def read(self) -> None:
        """Add to the canonical e-graph what rules made in egglog."""
        with self.builder.adding("rules"):
            rows = self.tables.rows()
            home = self._home(rows)
            nodes, sums = self.reader.nodes(rows)
            self._add_rows(nodes, home)
            for output, constant, written in sums:
                if output in home and all(a in home for _, a in written):
                    self.tables.add_sum(home[output], constant, [(k, home[a]) for k, a in written], Kind.EQUAL)
            if self.additions.has_multiples:
                self.additions.has_multiples = False
                for c, node in list(of_products(self.builder.classes)):
                    self.builder.add_node(c, node)
            for match in self.reader.matches(rows, home):
                (self.reindexing if match.has_own_loops else self.matched).append(match)
            self.additions.rewrite()
            self.derived.combined_sums()

    def _home(self, rows: Mapping[str, Any]) -> dict[Any, int]:
        """The classes by egglog's names. Those that egglog has made one are equal, also to what it has decided."""
        home: dict[Any, int] = {}
        for c, name in self.tables.named:
            if (other := home.setdefault(name, c)) != c:
                self.additions.equate(other, c)
        for name, decided in (("Yes", TRUE), ("No", FALSE)):
            # a literal that is no term of the input has no class yet
            for row in rows.get(name, ()):
                if row.output in home and self.values[home[row.output]] is not decided:
                    self.additions.equate(home[row.output], self.builder.add_class(decided))
        return home

    def _add_rows(self, rows: Sequence[Row], home: dict[Any, int]) -> None:
        """Add the nodes whose operands are known, until the time is up.

        ``home`` has the classes by egglog's names, and gains those of the nodes.
        """
        known = set(home)
        waiting = rows
        while waiting:
            are_ready = [all(map(home.__contains__, row.operands)) for row in waiting]
            ready = [row for row, is_ready in zip(waiting, are_ready, strict=True) if is_ready]
            if not ready:
                break
            # egglog's order of rows depends on what the session did before
            found = sorted([_over_classes(row, home) for row in ready], key=attrgetter("op", "payload", "operands"))
            for count, (output, op, payload, args) in enumerate(found):
                if count % LIMITS.rows_per_look == 0 and self.is_late(0):
                    return
                if (c := home.get(output)) is None:
                    value = self.additions.value(op, payload, args)
                    if value is None:
                        continue
                    c = home[output] = self.builder.add_class(value)
                    # egglog does not know yet what it has there
                    self.insertion.add_equal(c, op, payload, args)
                else:
                    self.tables.note_node(c, op, args)
                self.additions.add_found(c, op, payload, args, output in known)
            waiting = [row for row, is_ready in zip(waiting, are_ready, strict=True) if not is_ready]

    def apply(self, matches: list[Match]) -> None:
        """Unite the left sides of matches of rules about reductions with their right sides."""
        with self.builder.adding("rules"):
            for match in matches:
                is_done = self._is_affine(match.whole) or self._is_in_vain(match)
                for found, c in () if is_done else self.reductions.right_sides(match, self.additions.add):
                    self.additions.unite(found, c)
                    if self.demand is not None and (match.has_own_loops or match.whole in self.demand.nests):
                        self.demand.nests.add(c)
            matches.clear()

    def reindex(self, changed: bool, is_new: bool) -> tuple[bool, bool]:
        """Merge, split and swap loops when their bodies have become what the other rules make of them.

        It takes and returns whether the round has changed anything, and whether rules have anything new to match.
        """
        if self.reindexing and len(self.builder.graph) > LIMITS.reindexed_nodes:
            self.reindexing.clear()
            self.is_whole = False
        self.waited += 1
        # a user's own rules, and what distributes sums for them, may have something new to match without end
        is_due = self.has_own_rules and self.waited >= LIMITS.reindexed_rounds
        while self.reindexing and (is_due or not (changed and is_new)):
            merging = [match for match in self.reindexing if match.merges]
            # to split and swap loops leaves as many or more
            waiting = [match for match in self.reindexing if not match.merges] if merging else []
            self.apply(merging or self.reindexing)
            self.reindexing = waiting
            is_new = changed = self.insert() or is_due
            is_due, self.waited = False, 0
        return changed, is_new

    def _is_affine(self, c: int) -> bool:
        """Whether a class is known to be a sum of variables: no reduction can be better."""
        return any(
            op in ("const", "var") or (op == "sum" and all(is_affine(self.values[a]) for a in operands))
            for op, _, operands in self.classes[c]
        )

    def _is_in_vain(self, match: Match) -> bool:
        """Whether a shipped rule makes loops of what rules made of their own, though a form without loops is known.

        It might go on without end.
        """
        # what the first round leaves is the input's, and what rules made of that
        is_given = match.whole < self.rounds[:2][-1].classes
        if is_given or match.query.is_own or self.demand is not None or not has_reductions([match.query.pattern.right]):
            return False
        return not has_reductions([as_term(self.values[match.whole])])

    def note(self, number: int, matches: int, began: float) -> None:
        """Trace the round that has just ended."""
        nodes, classes = len(self.builder.graph), len(self.values)
        self.rounds.append(Round(1, number, nodes, classes, matches, self.now() - began))


def _over_classes(row: Row, home: Mapping[Any, int]) -> Row:
    """A row with the classes of its operands, which are in order where their order does not matter."""
    output, op, payload, names = row
    operands = [home[a] for a in names]
    if op == "sum":
        constant, coefficients = payload
        pairs = sorted(zip(operands, coefficients, strict=True))
        return Row(output, op, (constant, tuple([k for _, k in pairs])), tuple([a for a, _ in pairs]))
    return Row(output, op, (), tuple(sorted(operands) if op in CONTAINERS else operands))


class _Rules(tuple[Rule, ...]):
    """Rules to look something up by: equal ones are mostly the same objects, and to hash all of them takes longer."""

    def __hash__(self) -> int:
        return len(self)


@lru_cache(maxsize=16)
def _free_tables(rules: _Rules) -> list[Tables]:
    """The e-graphs' tables for these rules that no thread is using."""
    return []


@contextmanager
def _tables(rules: tuple[Rule, ...], spent: Spent, deadlines: Deadlines) -> Iterator[Tables]:
    """Tables for this thread alone, compiled outside the clock if none are free."""
    free = _free_tables(_Rules(rules))
    with spent.off_the_clock(deadlines):
        try:
            # those of the process that this one was forked from are of no use
            while (tables := free.pop()).is_left:
                pass
        except IndexError:
            tables = Tables(rules, frozenset([rule for rule in rules if not is_shipped(rule)]))
    yield tables
    # after an error they are not used again: a handler of signals may have raised it while they read rules
    if not tables.is_worn:
        free.append(tables)


class Derived:
    """Adds e-nodes that follow from others, which no rule adds."""

    def __init__(self, additions: Additions) -> None:
        self.additions, self.builder = additions, additions.builder
        self.classes, self.values = additions.classes, additions.values
        self._flattened: set[tuple[int, Node, Node]] = set()
        # by their dividend, the classes of quotients by their literal divisor
        self._quotients: dict[Expr, dict[int, int]] = defaultdict(dict)

    def multiples(self, first: int) -> None:
        """Add to each sum of the classes from ``first`` on the multiple that it is: a pattern ``x*c`` matches that.

        ``x*4 + y*4`` is ``(x + y)*4``; ``y - x`` is ``(x - y)*-1`` if ``x - y`` has a class.
        """
        for c in range(first, len(self.values)):
            value = self.values[c]
            if isinstance(value, LinearForm) and len(value.terms) + bool(value.constant) > 1:
                scale = gcd(value.constant, *value.terms.values())
                part = value.divided(scale)
                if (opposite := part.times(-1)) in self.builder.classes and part not in self.builder.classes:
                    part, scale = opposite, -scale
                elif scale == 1 and opposite in self.builder.classes:
                    part, scale = opposite, -1
                if scale != 1:
                    self.additions.add_node(c, sum_of([(self.builder.add_class(part), scale)], 0))
        self.builder.grow()

    def nested_quotients(self, first: int, divisors: frozenset[int] | None) -> None:
        """Add to the quotients of the classes from ``first`` on the quotients of quotients that they are.

        ``x//16`` is ``x//4//4`` if ``x//4`` has a class, or if a rule of a user's own divides by 4: ``divisors`` are
        the literals by which these divide.
        """
        if divisors is None:
            return
        # the list grows by what is added
        for c, value in islice(enumerate(self.values), first, None):
            atom = value.single() if isinstance(value, LinearForm) else None
            if atom is None or (n := literal_divisor(atom)) < 2:
                continue
            dividend = self.builder.theory.inner(atom.args[0])
            known = self._quotients[atom.args[0]]
            known[n] = c
            for d in sorted(divisors):
                if 1 < d < n and n % d == 0:
                    inner = self.builder.add_class(self.builder.theory.quotient_by(dividend, n // d))
                    self._add_quotient(c, inner, d)
            for m in known:
                short, long = min(m, n), max(m, n)
                if short < long and long % short == 0:
                    self._add_quotient(known[long], known[short], long // short)
        self.builder.grow()

    def _add_quotient(self, c: int, dividend: int, divisor: int) -> None:
        self.additions.add_node(c, ("floordiv", None, (dividend, self.builder.add_class(number(divisor)))))

    def flat_sums(self, demand: Demand) -> bool:
        """Add to classes their sums with a term replaced by a sum that it equals; whether classes are new by that."""
        before = self.builder.classes.size
        with self.builder.adding("rules"):
            for c in sorted(demand.needed):
                sums = [node for node in self.classes[c] if node[0] == "sum" and demand.is_short(c, node)]
                for flat in [flat for node in sums for flat in self._flat(c, node) if demand.is_short(c, flat)]:
                    if flat[0] == "sum":
                        self.additions.add_found(c, *flat)
                    else:
                        self.additions.add_node(c, flat)
        return self.builder.classes.size > before

    def _flat(self, c: int, node: Node) -> Iterator[Node]:
        """A sum with a term replaced by each sum that it equals, but for those that were made before."""
        constant, coefficients = sum_payload(node[1])
        for a, k in zip(node[2], coefficients, strict=True):
            is_known = not self.builder.classes.may_be_undefined(a)
            for inner in [*self.classes[a]] if is_known else ():
                if inner[0] != "sum" or inner[:2] == EQUALITY or (c, node, inner) in self._flattened:
                    continue
                self._flattened.add((c, node, inner))
                offset, scales = sum_payload(inner[1])
                others = [(b, scale) for b, scale in zip(node[2], coefficients, strict=True) if b != a]
                inside = [(b, k * scale) for b, scale in zip(inner[2], scales, strict=True)]
                yield sum_of([*others, *inside], constant + k * offset)

    def combined_sums(self) -> None:
        """Add to classes the sum with all parts replaced at once that a user's own rules replaced one by one.

        Of parts that share terms the one is replaced whose replacement left the fewest terms.
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
        """Add sums with the other form of a multiple that has one: ``where(p, 0, 12)`` for ``where(p, 0, 3)*4``."""
        # long sums have hundreds of e-nodes, with the same terms but for a few
        shared = cache(self._shared_term)
        with self.builder.adding("rules"):
            for c, nodes in self.classes.items():
                for op, payload, operands in [*nodes]:
                    if op == "sum" and len(operands) > 1:
                        constant, coefficients = sum_payload(payload)
                        terms = [*map(shared, operands, coefficients)]
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
        """Add to comparisons with a literal those with a constant, or one of two terms, moved to the other side.

        ``x%8 - 3 < 1`` is ``x%8 < 4``, ``x - y < 0`` is ``x < y``, ``x - max(y, z - 5) < 6`` is ``x <= max(y + 5, z)``,
        ``x - where(p, 2, 4) < 6`` is ``x < where(p, 8, 10)``.
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
        step = 1 if (op == "lt") == (place == 0) else -1
        differences = [*self._differences(compared)]
        for other, left in ((op, limit), ("le" if op == "lt" else "lt", limit - step)):
            for x, y in differences:
                end = self.builder.add_class(self.builder.form_of(y).shifted(left))
                self.additions.add_node(c, (other, None, (x, end) if place == 0 else (end, x)))
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
            ends = [bounds[a] for a in operands]
            if op == "mul":
                return OPS["mul"].bounds(*ends)[0] < 0
            if op != "sum":
                return False
            constant, coefficients = sum_payload(payload)
            return linear_bounds(constant, zip(ends, coefficients, strict=True))[0] < 0

        divisions = [node for nodes in self.classes.values() for node in nodes if node[0] in DIVISIONS]
        for c in {operands[0] for _, _, operands in divisions}:
            if bounds[c][0] >= 0:
                self.classes[c].sort(key=may_be_negative)


def _shortest_first(node: Node) -> tuple[int, int]:
    """The order of sums by their terms, and by those that are subtracted."""
    _, terms = sum_terms(node)
    return len(terms), sum(k < 0 for k in terms.values())
