"""What the e-graph with reductions finds, where linear arithmetic works beside the rules.

Normal forms close a reduction as soon as they can, in one order; in the e-graph what a reduction becomes, what its body
becomes, and how its loops are merged and split are not ordered. It is asked from the input, normal forms of reductions
and bodies that it finds come into it where they are no longer, and what it finds competes with the best answer so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from eqsat.egraph.engine import Saturation
from eqsat.egraph.reductions import scoped
from eqsat.extract.select import Priced, dag, tree
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, term_count, topological
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.terms import to_exprs
from eqsat.optimizer.optimisation import FIRST_NODES, NODES_GROW, Optimisation
from eqsat.theory.definedness import without_dead_divisions
from eqsat.theory.linear import LinearArithmetic

#: Normal forms of larger terms are not asked for.
MOST_NORMAL = 60


class WithReductions(Optimisation):
    """A run that also asks the e-graph with reductions."""

    def _with_reductions(self, contexts: Sequence[LinearArithmetic | None], terms: list[Expr]) -> list[Expr]:
        """``terms``, the best answers so far, or what the e-graph finds for some roots, if all together cost less.

        ``contexts`` are the theories of the roots, each with its gate.
        """
        if not self.has_uninterpreted or not _has_reductions(self.roots) or not cost_of(terms, self.model):
            return terms
        by_gate: dict[Expr | None, list[int]] = {}
        for place, root in enumerate(self.roots):
            if contexts[place] is not None and _has_reductions([root]):
                by_gate.setdefault(self.gates[place], []).append(place)
        for gate, places in by_gate.items():
            if self._has_time():
                facts = self.facts if gate is None else (*self.facts, gate)
                terms = self._with_group(places, facts, cast(LinearArithmetic, contexts[places[0]]), terms)
        return terms

    def _with_group(
        self, places: Sequence[int], facts: Sequence[Expr], theory: LinearArithmetic, terms: list[Expr]
    ) -> list[Expr]:
        """As :meth:`_with_reductions`, for roots that matter under the same facts.

        Where e-nodes run out while loops are left it is asked once more with room for more of them; then from the best
        answers, as long as these have loops and cost less each time.
        """
        given = [self.roots[place] for place in places]
        if self.suspected:
            given = without_dead_divisions(given, theory)
        nodes, stop = FIRST_NODES, "saturated"
        asked: set[tuple[Expr, ...]] = set()
        while self._has_time():
            asked.add(tuple(given))
            saturation = self._saturated_with_reductions(given, facts, theory, max(nodes, 2 * term_count(given)))
            found = None if saturation is None else self._best_of_graph(saturation)
            if saturation is None or found is None:
                break
            for chosen in (range(len(places)), *[[n] for n in range(len(places) if len(places) > 1 else 0)]):
                other = list(terms)
                for n in chosen:
                    other[places[n]] = found[n]
                terms = self._cheapest(terms, other)
            stop, best = saturation.stop, [terms[place] for place in places]
            has_loops = _has_reductions(best)
            if stop == "nodes" and has_loops and nodes == FIRST_NODES < self.budget.nodes:
                nodes *= NODES_GROW
            elif tuple(best) not in asked and (has_loops or stop == "nodes"):
                given = best
            else:
                break
        if stop != "saturated":
            self.stop = stop
        return terms

    def _saturated_with_reductions(
        self, given: Sequence[Expr], facts: Sequence[Expr], theory: LinearArithmetic, nodes: int
    ) -> Saturation | None:
        """The e-graph from some terms; ``None`` if rules see that the facts never hold."""

        def simplified(term: Expr) -> Expr:
            # what sums become in closed form, which may be long, competes as it is
            size = term_count([term])
            simpler = term if size > MOST_NORMAL else theory.simplify(term)
            return simpler if term_count([simpler]) <= size else term

        self.spent.enter("match")
        limit, seconds = min(self.budget.nodes, nodes), self._seconds_left()
        try:
            return self._saturate_terms(self.used, given, facts, seconds, limit, simplify=simplified)
        except ContradictionError:
            return None

    def _best_of_graph(self, saturation: Saturation) -> list[Expr] | None:
        """The cheapest terms of the roots; ``None`` where a product has more digits than are accepted."""
        graph = scoped(saturation.graph)
        with self.spent.extracting():
            priced = Priced.of(graph, self.model)
            choice = tree(priced) if self.extract == "tree" else dag(priced)
        variables = self._variables()
        try:
            return to_exprs(graph, choice, graph.roots, variables)
        except ValueError:
            return None


def _has_reductions(terms: Iterable[Expr]) -> bool:
    return any(term.op in REDUCTIONS for term in topological(terms))
