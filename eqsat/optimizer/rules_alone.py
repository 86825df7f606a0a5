"""A run without the theory: rules alone, in an e-graph that starts again from its best terms, or greedily."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eqsat.egraph.reductions import scoped
from eqsat.egraph.rule import Rule, grows, is_commutativity, only_reorders
from eqsat.egraph.trace import NO_ROOTS, ONE_BY_ONE
from eqsat.extract.graph import EGraph
from eqsat.extract.select import Choice, Priced, dag, tree
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, term_count
from eqsat.lang.terms import to_exprs
from eqsat.optimizer.greedy import rewrite
from eqsat.optimizer.optimisation import FIRST_NODES, LARGE, NODES_GROW, Optimisation, dont_care
from eqsat.optimizer.result import Result
from eqsat.optimizer.snapshot import Part, Snapshot
from eqsat.theory.definedness import without_dead_divisions
from eqsat.theory.facts import OverdueError
from eqsat.theory.linear import LinearArithmetic


@dataclass
class _Group:
    """Roots that matter under the same facts, for the rules alone.

    ``graph`` is what was last saturated, and ``stop`` says why that ended.
    """

    facts: tuple[Expr, ...]
    members: list[int]
    graph: EGraph = field(default_factory=EGraph)
    stop: str = "time"

    def part(self) -> Part:
        """What choosing again needs of it: each root as given and, where that differs, with fewer reductions."""
        return Part(self.graph, tuple(zip(self.members, self.graph.roots, strict=True)))


class RulesAlone(Optimisation):
    """Optimisation by rules alone."""

    def run(self, engine: str) -> Result:
        """The answer of the rules: for the engine ``"greedy"`` applied one after the other, else in an e-graph."""
        try:
            return self._greedily() if engine == "greedy" else self._saturated()
        except OverdueError:
            # reading what is known took all the time
            self.stop = "time"
            return self._result(list(self.roots), 0, [None] * len(self.roots), engine)

    def _saturated(self) -> Result:
        base, contexts = self._theories()
        self._check_divisors(contexts)
        self.spent.enter("build")
        with self._session(self.used):
            # compiled outside the clock
            pass
        alive = without_dead_divisions(self.roots, base) if self.suspected else self.roots
        found = [root if theory else dont_care(root) for root, theory in zip(alive, contexts, strict=True)]
        groups = self._groups(contexts)
        if not groups:
            self.spent.skip(NO_ROOTS)
        # gates start from what all roots together come to without them
        everything = _Group(self.facts, [i for group in groups for i in group.members])
        waiting = [everything, *groups] if len(groups) > 1 else groups
        nodes = FIRST_NODES
        if term_count(found) > LARGE:
            found = self._pulsed(everything, found, nodes, self._seconds_left() / 2, _eager(self.used))
        while waiting:
            for place, group in enumerate(waiting):
                sizes = [term_count([found[i] for i in of.members]) for of in waiting[place:]]
                found = self._pulsed(group, found, nodes, self._seconds_left() * sizes[0] / sum(sizes))
            waiting = [group for group in groups if group.stop == "nodes" and nodes < self.budget.nodes]
            nodes *= NODES_GROW
        if self.extract == "exact":
            for group in groups:
                if group.graph.roots:
                    found = self._with_best(group, found, self._exactly)
        self.stop = next((group.stop for group in groups if group.stop != "saturated"), "saturated")
        parts = tuple([group.part() for group in groups if group.graph.roots])
        snapshot = Snapshot(parts, self.lazy) if parts else None
        return self._result(found, sum(len(group.graph) for group in groups), contexts, "egraph", snapshot)

    def _groups(self, contexts: Sequence[LinearArithmetic | None]) -> list[_Group]:
        """The roots by their gates, without those whose gate never holds."""
        groups: dict[Expr | None, _Group] = {}
        for index, (gate, theory) in enumerate(zip(self.gates, contexts, strict=True)):
            if theory is not None:
                facts = self.facts if gate is None else (*self.facts, gate)
                groups.setdefault(gate, _Group(facts, [])).members.append(index)
        return list(groups.values())

    def _pulsed(
        self, group: _Group, found: list[Expr], nodes: int, seconds: float, without: frozenset[str] = frozenset()
    ) -> list[Expr]:
        """``found`` with what the rules make of the roots of ``group`` in e-graphs of up to ``nodes`` nodes.

        Rules that outgrow theirs start again from the best terms so far, which leave more room than those before, while
        that pays (Caviar, CC 2022).
        """
        ends = time.perf_counter() + seconds
        while (left := ends - time.perf_counter()) > 0:
            given = [found[i] for i in group.members]
            try:
                limit = min(self.budget.nodes, max(nodes, 2 * term_count(given)))
                saturation = self._saturate_terms(self.used, given, group.facts, left, limit, without)
            except ContradictionError:
                if group.facts == self.facts:
                    raise
                self.spent.enter("build")
                # what was saturated before is not of these pieces
                group.graph, group.stop = EGraph(), "saturated"
                return _replaced(found, group.members, [dont_care(root) for root in given])
            group.graph, group.stop = scoped(saturation.graph), saturation.stop
            best = self._with_best(group, found, lambda _, choice: choice)
            if best is found or group.stop in ("saturated", "time"):
                return best
            found = best
        group.stop = "time"
        return found

    def _with_best(self, group: _Group, found: list[Expr], better: Callable[[EGraph, Choice], Choice]) -> list[Expr]:
        """``found`` with the roots of ``group`` as extraction chooses them, unless all together cost no less."""
        graph = group.graph
        with self.spent.extracting():
            priced = Priced.of(graph, self.model)
            choice = tree(priced) if self.extract == "tree" else dag(priced)
        variables = self._variables()
        try:
            best = to_exprs(graph, better(graph, choice), graph.roots, variables)
        except ValueError:
            # in this form a product has more digits than are accepted
            return found

        def costs(exprs: list[Expr]) -> tuple[int, int]:
            return cost_of(exprs, self.model), cost_of([exprs[i] for i in group.members], self.model)

        replaced = _replaced(found, group.members, best)
        if self.extract == "tree":
            cheapest = self._cheapest(found, replaced)
            return found if cheapest == found else cheapest
        return min(found, replaced, key=costs)

    def _greedily(self) -> Result:
        self.spent.skip(ONE_BY_ONE)
        base, contexts = self._theories()
        self._check_divisors(contexts)
        self.spent.enter("rewrite")
        groups: dict[tuple[Expr, ...], list[int]] = {}
        found: dict[int, Expr] = {}
        for index, (gate, theory) in enumerate(zip(self.gates, contexts, strict=True)):
            if theory is None:
                found[index] = dont_care(self.roots[index])
            else:
                facts = self.facts if gate is None or theory is base else (*self.facts, gate)
                groups.setdefault(facts, []).append(index)
        for facts, members in groups.items():
            given = [self.roots[i] for i in members]
            try:
                rewritten = rewrite(given, self.used, facts, seconds=self._seconds_left())
            except ContradictionError as error:
                if facts == self.facts:
                    raise self._contradiction() from error
                found.update((i, dont_care(self.roots[i])) for i in members)
                continue
            found.update(zip(members, rewritten.roots, strict=True))
            self.spent.matches.update(rewritten.matches)
            if rewritten.stop != "saturated":
                self.stop = rewritten.stop
        exprs = [found[i] for i in range(len(self.roots))]
        return self._result(exprs, term_count(exprs), contexts, "greedy")


@lru_cache(maxsize=16)
def _eager(rules: tuple[Rule, ...]) -> frozenset[str]:
    """The rules that make e-graphs grow fastest: those that reorder, and those that make terms bigger.

    Those that take sums apart, so that their parts can cancel, are none of these.
    """
    found = [rule for rule in rules if grows(rule) or (only_reorders(rule) and not is_commutativity(rule))]
    return frozenset(rule.name for rule in found) - {"distribute-scale", "div-multiple"}


def _replaced(exprs: Sequence[Expr], places: Sequence[int], terms: Sequence[Expr]) -> list[Expr]:
    image = dict(zip(places, terms, strict=True))
    return [image.get(place, expr) for place, expr in enumerate(exprs)]
