"""A run without the theory: rules alone, in an e-graph that starts again from its best terms, or greedily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.choosing import Chooser
from eqsat.egraph.trace import NO_ROOTS, ONE_BY_ONE
from eqsat.extract.select import ProductPrices
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError, TooWideError
from eqsat.lang.expr import FALSE, Expr, const
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import term_count, topological
from eqsat.optimizer.greedy import Rewritten, rewrite
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.optimisation import Contexts, Optimisation
from eqsat.optimizer.result import Result
from eqsat.optimizer.saturation import run_rules
from eqsat.optimizer.snapshot import Part, Snapshot
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.definedness import without_dead_divisions
from eqsat.theory.structural import StructuralArithmetic


@dataclass
class _Group:
    """Roots that matter under the same facts.

    ``stop`` says why the last saturation ended, ``part`` has its e-graph, and no choice over that costs less than
    ``bound``.
    """

    facts: tuple[Expr, ...]
    members: list[int]
    part: Part | None = None
    bound: int | None = None
    stop: str = "time"


class RulesAlone(Optimisation):
    """Optimisation by rules alone."""

    def run(self) -> Result:
        """The answer of the rules: for the engine ``"greedy"`` applied one after the other, else in an e-graph."""
        try:
            return self._greedily() if self.engine == "greedy" else self._saturated()
        except OverdueError:
            # reading what is known took all the time
            self.stop = "time"
            return self._result(list(self.roots), 0, [None] * len(self.roots))

    def _saturated(self) -> Result:
        """The answer of the rules in e-graphs, one for each gate."""
        base, contexts = self._checked_theories()
        alive = without_dead_divisions(self.roots, base) if self.suspected else self.roots
        found = [root if theory else _dont_care(root) for root, theory in zip(alive, contexts, strict=True)]
        groups = self._groups(contexts)
        if not groups:
            self.spent.skip(NO_ROOTS)
        found = self._in_turn(groups, found)
        self.stop = next((group.stop for group in groups if group.stop != "saturated"), self.stop)
        # groups may share terms, so the sum of their bounds is no bound for all, but the largest is
        self.bound = max([group.bound for group in groups if group.bound is not None], default=None)
        parts = tuple([group.part for group in groups if group.part is not None])
        # roots that never matter are in no part
        snapshot = Snapshot(parts, self.lazy) if parts or self.stop == "saturated" else None
        return self._result(found, sum(len(part.graph) for part in parts), contexts, snapshot)

    def _in_turn(self, groups: list[_Group], found: list[Expr]) -> list[Expr]:
        """``found`` with what the rules make of the roots of each group.

        Groups whose e-graph was too small have another turn with a larger one. Each has its share of the time that is
        left, by the number of its terms.
        """
        # the groups of gates start from what is found for all roots without gates
        everything = _Group(self.facts, [i for group in groups for i in group.members])
        if term_count(found) > (LIMITS.rewritten_first if self.has_own_rules else LIMITS.rewritten_if_shorter):
            found = self._one_by_one(everything, found)
        waiting = [everything, *groups] if len(groups) > 1 else groups
        nodes = LIMITS.first_nodes
        while waiting and self._seconds_left() > 0:
            sizes = [term_count([found[i] for i in group.members]) for group in waiting]
            for place, group in enumerate(waiting):
                found = self._pulsed(group, found, nodes, self._seconds_left() * sizes[place] / sum(sizes[place:]))
            waiting = [group for group in groups if group.stop == "nodes" and nodes < self.budget.nodes]
            nodes *= LIMITS.nodes_grow
        return found

    def _groups(self, contexts: Contexts) -> list[_Group]:
        """The roots by their gates, without those whose gate never holds."""
        groups: dict[Expr | None, _Group] = {}
        for index, (gate, theory) in enumerate(zip(self.gates, contexts, strict=True)):
            if theory is not None:
                facts = self.facts if gate is None else (*self.facts, gate)
                groups.setdefault(gate, _Group(facts, [])).members.append(index)
        return list(groups.values())

    def _theory(self, group: _Group) -> StructuralArithmetic | None:
        """What is known of the roots of ``group``; ``None`` if they never matter."""
        self.spent.enter("normalise")
        try:
            return StructuralArithmetic(group.facts, work=Work(until=self._ends(), end=self._last()))
        except ContradictionError as error:
            if group.facts == self.facts:
                raise self._contradiction() from error
            return None

    def _one_by_one(self, group: _Group, found: list[Expr]) -> list[Expr]:
        """``found`` with the roots of ``group`` rewritten by the rules one after the other, if that costs less.

        Where there are few terms, only if far fewer are left.
        """
        given = [found[i] for i in group.members]
        rewritten = self._rewritten(given, group.facts, self._seconds_to_rewrite() / 2)
        if rewritten is None or rewritten.roots == given:
            return found
        count = term_count(given)
        if count <= LIMITS.rewritten_first and term_count(rewritten.roots) > LIMITS.rewritten_share * count:
            return found
        best = self._cheaper(group, found, rewritten.roots)
        if best is not found:
            self.spent.matches.update(rewritten.matches)
        return best

    def _rewritten(self, given: Sequence[Expr], facts: tuple[Expr, ...], seconds: float) -> Rewritten | None:
        """The terms rewritten by the rules one after the other; ``None`` if a gate among the facts never holds."""
        with self.spent.during("rewrite"):
            try:
                return rewrite(given, self.used, facts, seconds=seconds)
            except ContradictionError as error:
                if facts == self.facts:
                    raise self._contradiction() from error
                return None

    def _seconds_to_rewrite(self) -> float:
        """The seconds left for greedy rewriting: without those that finishing the answer takes."""
        return max(0.0, self._seconds_left() - LIMITS.seconds_per_term * len(self.order))

    def _pulsed(self, group: _Group, found: list[Expr], nodes: int, seconds: float) -> list[Expr]:
        """``found`` with what the rules make of the roots of ``group`` in e-graphs of up to ``nodes`` nodes.

        As long as the terms get cheaper, another e-graph starts from the best ones (Caviar, CC 2022).
        """
        ends = self.spent.seconds() + seconds
        theory = self._theory(group)
        if theory is None:
            group.stop = "saturated"
            return _replaced(found, group.members, [_dont_care(found[i]) for i in group.members])
        while (left := ends - self.spent.seconds()) > 0:
            given = [found[i] for i in group.members]
            try:
                builder, wanted = self._insert(theory, given)
                rules = self._relevant(modulo_theory=False, work=theory.work)
                budget = replace(self.budget, nodes=min(max(nodes, 2 * term_count(given)), self.budget.nodes))
                with self._blaming_facts():
                    group.stop = run_rules(builder, rules, budget, self.spent, self.has_own_rules, left).stop
                terms = self._chosen(group, builder, wanted)
            except OverdueError:
                break
            except TooWideError:
                # a product has more digits than are accepted
                return found
            best = self._cheaper(group, found, terms)
            if best is found or group.stop == "time" or _is_last(group, given, best):
                return best
            found = best
        group.stop = "time"
        return found

    def _insert(self, theory: StructuralArithmetic, roots: Sequence[Expr]) -> tuple[Builder, list[int]]:
        """The e-graph of terms as they are written, and the classes of the roots."""
        self.spent.enter("build")
        builder = Builder(theory, self.leaves, None, self.spent.alternatives)
        order = topological(roots)
        theory.traverse(order)
        values = [theory.value(root) for root in roots]
        builder.input.add(order)
        builder.add_roots(values)
        builder.grow()
        return builder, [builder.add_class(value) for value in values]

    def _chosen(self, group: _Group, builder: Builder, wanted: Sequence[int]) -> list[Expr]:
        """The terms of the roots of ``group`` by the cheapest choice found; the group keeps the e-graph."""
        bound = None
        with self.spent.during("extract"):
            choice, _ = Chooser(builder, ProductPrices(self.model), self.extract == "tree").choose()
        if self.extract == "exact":
            found = self._exactly(builder.graph, choice)
            choice, bound = found.choice, found.bound
        terms = builder.terms(choice, wanted)
        group.part, group.bound = Part(builder.graph, tuple(zip(group.members, wanted, strict=True)), choice), bound
        return [terms[c] for c in wanted]

    def _cheaper(self, group: _Group, found: list[Expr], terms: Sequence[Expr]) -> list[Expr]:
        """``found`` with these terms for the roots of ``group``, unless all together cost no less."""

        def costs(exprs: list[Expr]) -> tuple[int, int]:
            return cost_of(exprs, self.model), cost_of([exprs[i] for i in group.members], self.model)

        replaced = _replaced(found, group.members, terms)
        if self.extract == "tree":
            cheapest = self._cheapest(found, replaced)
            return found if cheapest == found else cheapest
        return min(found, replaced, key=costs)

    def _greedily(self) -> Result:
        """The answer of the rules applied one after the other."""
        self.spent.skip(ONE_BY_ONE)
        _, contexts = self._checked_theories()
        found = [root if theory else _dont_care(root) for root, theory in zip(self.roots, contexts, strict=True)]
        for group in self._groups(contexts):
            if not self._has_time():
                break
            given = [found[i] for i in group.members]
            rewritten = self._rewritten(given, group.facts, self._seconds_to_rewrite())
            left = [*map(_dont_care, given)] if rewritten is None else rewritten.roots
            found = _replaced(found, group.members, left)
            if rewritten is not None:
                self.spent.matches.update(rewritten.matches)
                self.stop = self.stop if rewritten.stop == "saturated" else rewritten.stop
        return self._result(found, term_count(found), contexts)


def _is_last(group: _Group, given: Sequence[Expr], best: Sequence[Expr]) -> bool:
    """Whether another e-graph from the best terms of a group would seldom find more than that of the ``given`` ones.

    From terms about as long as before it would take as long again. With loops there may be more to find.
    """
    if group.stop != "saturated" or has_reductions(given):
        return False
    return term_count([best[i] for i in group.members]) > LIMITS.again * term_count(given)


def _replaced(exprs: Sequence[Expr], places: Sequence[int], terms: Sequence[Expr]) -> list[Expr]:
    image = dict(zip(places, terms, strict=True))
    return [image.get(place, expr) for place, expr in enumerate(exprs)]


def _dont_care(root: Expr) -> Expr:
    """A term for a root whose gate never holds: its value does not matter."""
    return FALSE if root.is_bool else const(0)
