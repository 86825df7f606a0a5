"""Extraction from the e-graph of a result, by another cost model or extractor: nothing is saturated again.

The search starts from what is cheapest for each class alone, and from the result's own answer; sums and junctions are
bracketed for the choice itself. What :mod:`eqsat.alternatives.availability` adds on behalf of one choice is there as
the first run left it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from eqsat.alternatives.choosing import BRACKETED, Improver
from eqsat.alternatives.linear_programs import programs_by
from eqsat.alternatives.partial_sums import hoisted_sums, share_junctions, share_sums
from eqsat.alternatives.plain import PlainClasses
from eqsat.egraph.budget import Budget
from eqsat.egraph.trace import FROM_RESULT
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.extract.graph import EGraph
from eqsat.extract.select import Choice, Priced, ProductPrices, reachable_part, search_starts, tree
from eqsat.lang.costs import cost_of, model_of, reduced, strength_reduced
from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import Expr
from eqsat.lang.properties import suspects, symbolic_divisors
from eqsat.lang.traversal import named_leaves, topological
from eqsat.optimizer.optimisation import Contexts, Optimisation, collection_paused
from eqsat.optimizer.result import EXTRACTED, Extractor, Result
from eqsat.optimizer.snapshot import Built
from eqsat.theory.arithmetic import OverdueError, Work

#: The extractors that have a name.
EXTRACTORS = ("tree", "dag", "exact")


@EXTRACTED.fill
def extracted(result: Result, cost: CostModel | str, extract: str | Extractor, seconds: float) -> Result:
    """The result of choosing again; see :meth:`eqsat.optimizer.result.Result.extract`."""
    own = None if isinstance(extract, str) else extract
    if own is None and extract not in EXTRACTORS:
        raise ValueError(f"unknown extractor {extract!r}: use one of {', '.join(EXTRACTORS)}, or a function")
    if own is not None and not callable(own):
        raise TypeError(f"{own!r} is no extractor: give a name, or a function of a Priced graph")
    model = model_of(cost)
    with collection_paused():
        run = Extraction(
            roots=result.before,
            facts=result.constraints,
            gates=result.gates,
            rules=result.rule_set,
            model=strength_reduced(model),
            budget=Budget(seconds=seconds),
            engine="egraph",
            extract=extract if isinstance(extract, str) else "dag",
            pareto=None,
            lazy=result.snapshot is not None and result.snapshot.lazy,
            result=result,
            own=own,
        )
        return run.run()


@dataclass
class Extraction(Optimisation):
    """One extraction from the e-graph of a result."""

    result: Result = field(kw_only=True)
    #: The user's own extractor, if there is one.
    own: Extractor | None = field(kw_only=True)

    def __post_init__(self) -> None:
        self.stop, self.conjectures = self.result.stop, [*self.result.conjectures]
        self.spent.rounds = self.result.rounds
        self.spent.matches.update(self.result.rules)
        self.spent.skip(FROM_RESULT)

    def run(self) -> Result:
        """The answer chosen from the graph, or that of the result if it costs no more."""
        before = reduced(self.result.exprs, self.model)
        self.spent.enter("build")
        built = self.result.built
        self.sets.read(self.terms)
        contexts: Contexts = [None] * len(before)
        try:
            chosen = self._chosen(built, built.graph.copy())
            self._has_time()
            found = [
                old if self._escapes(i, new) else new for i, (old, new) in enumerate(zip(before, chosen, strict=True))
            ]
            contexts = self._contexts(found)
        except OverdueError:
            self.stop, found = "time", before
        except TooWideError:
            # a product that the run did not choose either
            found = before
        result = self._result(found, len(built.graph), contexts, self.result.snapshot)
        # what the checks change may cost more
        exprs = self._cheapest([*result.exprs], before, result.model)
        if isinstance(self.model, LoopAware):
            exprs = self._cheapest(exprs, self._bracketed(before, self.model), result.model)
        cost = cost_of(exprs, result.model)
        bound = None if result.bound is None else min(result.bound, cost)
        return replace(result, exprs=tuple(exprs), cost=cost, bound=bound)

    def _chosen(self, built: Built, graph: EGraph) -> list[Expr]:
        """The terms of the roots of ``graph``, which may gain brackets."""
        if self.own is not None:
            with self.spent.during("extract"):
                # nodes that it may add are none of the graph
                choice = self.own(Priced.of(graph.copy(), self.model))
            if not isinstance(choice, Mapping):
                kind = type(choice).__name__
                raise ValueError(
                    f"the extractor gave a value of type {kind}: give a mapping of classes to nodes, or extract='exact'"
                )
            return built.terms(choice, graph)
        with self.spent.during("extract"):
            choice = self._best(built, graph)
        terms = built.terms(choice, graph)
        if self.extract == "exact":
            found = self._exactly(graph, choice)
            # the whole graph comes first; a later one is a part of it
            self.bound = found.bound if self.bound is None else self.bound
            # classes that become the same term are paid twice in the e-graph, once here
            terms = self._cheapest(terms, built.terms(found.choice, graph))
        return terms

    def _best(self, built: Built, graph: EGraph) -> Choice:
        """The cheapest choice found."""
        prices = ProductPrices(self.model)
        late = Work(until=self._ends()).is_late

        @cache
        def classes() -> PlainClasses:
            return PlainClasses(graph, everywhere, late)

        def share(choice: Choice) -> Choice:
            return share_junctions(classes(), share_sums(classes(), choice, programs_by(prices)))

        def hoist(choice: Choice) -> Choice | None:
            return hoisted_sums(classes(), choice) if graph.weights else None

        search = Improver(graph, prices, late, share, hoist)
        everywhere = tree(search.priced)
        if self.extract == "tree":
            return everywhere
        # the answer needs no class besides those that it chooses for
        starts = search_starts(search.priced, everywhere)
        if built.choice:
            starts.append(everywhere | built.choice)
        found = [search.improved(start) for start in starts]
        shared = [search.bracketed(end) for end, _ in found if any(op in BRACKETED for op, _, _ in end.values())]
        return min([*shared, *found], key=lambda end: end[1])[0]

    def _escapes(self, place: int, term: Expr) -> bool:
        """Whether the index of a reduction is free in a term, but not in its root."""
        sets = self.sets
        return bool(sets.index_extents) and bool(sets.of(term) & ~sets.of(self.roots[place]) & sum(sets.index_extents))

    def _contexts(self, found: Sequence[Expr]) -> Contexts:
        """What is known of each root if divisions have to be checked, else nothing: reading facts may take long."""
        adds_divisor = self.divides_by_terms and not symbolic_divisors(found) <= symbolic_divisors(self.roots)
        if adds_divisor or suspects(topological(found)):
            return self._theories()[1]
        return [None] * len(found)

    def _alone(self, places: Sequence[int]) -> dict[int, Expr]:
        """The answers for roots of the same variables by nodes without other variables, or else the result's."""
        names = named_leaves(topological([*(self.roots[i] for i in places), *self.facts]))
        built = self.result.built
        classes = {
            c: [n for n in nodes if n[0] not in ("var", "buffer") or n[1] in names or str(n[1])[0] == "$"]
            for c, nodes in built.graph.classes.items()
        }
        whole = EGraph(classes, built.graph.bounds, [], built.graph.weights)
        found = {place: self.result.exprs[place] for place in places}
        roots = {place: built.graph.roots[place] for place in places}
        whole.roots = [*roots.values()]
        left = {place: c for place, c in roots.items() if reachable_part(whole).classes[c]}
        if left:
            whole.roots = [*left.values()]
            part = reachable_part(whole)
            terms = self._chosen(replace(built, choice={}), part)
            found.update(
                (place, term) for place, term in zip(left, terms, strict=True) if not self._escapes(place, term)
            )
        return found
