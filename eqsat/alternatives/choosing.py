"""The choice among alternatives: the cheapest way to compute the roots together over a canonical e-graph.

Each step starts from a choice and adds alternatives that may improve it: shared partial sums, the input as it is
written, what is computed anyway. It keeps the choice that costs less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eqsat.alternatives.availability import add_available
from eqsat.alternatives.builder import Builder
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.linear_programs import LinearPrograms, programs_by
from eqsat.alternatives.partial_sums import share_junctions, share_sums
from eqsat.extract.graph import Node
from eqsat.extract.select import Choice, Priced, ProductPrices, completed, improved, needed, tree, tree_cost

#: What is bracketed to share parts: choices of the same sums and junctions share the same.
BRACKETED = ("sum", "and", "or")


@dataclass
class Chooser:
    """Chooses among e-nodes, by one cost model; every choice comes with its cost.

    Attributes
    ----------
    of_products : ProductPrices
        What the cost model says of products, and the model.
    trees : bool
        Whether a term that is used twice is paid twice, so that nothing is gained by sharing.
    """

    builder: Builder
    of_products: ProductPrices
    trees: bool
    priced: Priced = field(init=False)
    programs: LinearPrograms = field(init=False)
    # by the sums and junctions of a choice, the choice in which they share parts
    _bracketed: dict[frozenset[tuple[int, Node]], tuple[Choice, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.programs = programs_by(self.of_products)
        self.priced = Priced(self.builder.graph, {})
        self.priced.refresh(self.of_products)

    def choose(self) -> tuple[Choice, int]:
        """The cheapest choice found from what is cheapest for each class alone."""
        everywhere = tree(self.priced)
        if self.trees:
            return everywhere, tree_cost(self.priced, everywhere)
        starts = [self._improved(everywhere)]
        given = self.builder.as_written(everywhere)
        if given is not None:
            # what the input shares may take several changes at once to see
            starts.append(self._improved(given))
        least = min(cost for _, cost in starts)
        if len(everywhere) > LIMITS.late_choice and self.builder.theory.is_late():
            return min(starts, key=lambda end: end[1])
        shared = [self._with_partial_sums(choice) for choice, cost in starts if cost <= least + LIMITS.behind]
        if (programmed := self._by_programs()) is not None:
            shared.append(self._with_partial_sums(programmed))
        return min([*shared, *starts], key=lambda end: end[1])

    def _by_programs(self) -> Choice | None:
        """The cheapest choice found with each sum at the price of its program; ``None`` if no program is cheaper."""
        graph = self.builder.graph
        if len(graph) > LIMITS.programmed_nodes:
            return None
        # of equal prices that of a program counts: the other start has taken what is cheapest without
        prices = {c: [2 * price for price in of_class] for c, of_class in self.priced.prices.items()}
        is_new = False
        for c, nodes in graph.classes.items():
            times = 2 * graph.weights.get(c, 1)
            for place, node in enumerate(nodes):
                price = self.programs.price(node)
                if price is not None and times * price < prices[c][place]:
                    prices[c][place], is_new = times * price - 1, True
        if not is_new:
            return None
        priced = Priced(graph, prices)
        return improved(priced, tree(priced), late=self.builder.theory.is_late)[0]

    def choose_from(self, start: Choice) -> tuple[Choice, int]:
        """The cheapest choice found from ``start``, and from what is cheapest for a class alone where that has none."""
        # a search for what is available adds classes even where it finds nothing
        self.priced.refresh(self.of_products)
        whole = {**tree(self.priced), **start}
        # the graph has gained parts since the same sums were bracketed
        return self._bracket(needed(whole, self.builder.graph.roots))

    def reusing(self, choice: Choice, cost: int, has_time: Callable[[], bool]) -> tuple[Choice, int]:
        """The choice improved by alternatives that use what is computed anyway."""
        with self.builder.adding("availability"):
            together = add_available(self.builder, choice)
        # there may be new classes even where nothing is to be chosen
        self.priced.refresh(self.of_products)
        if together is None:
            return choice, cost
        kept = completed(self.priced, choice)
        found = [self._improved(kept, thorough=True)]
        for nodes in together:
            if not has_time():
                break
            start = self.builder.with_nodes(kept, nodes)
            if start != kept:
                found.append(self._improved(start, thorough=True))
        ends = [(choice, cost)]
        seen = [choice]
        for end, spent in found:
            # what costs the same may share more
            if spent <= cost and end not in seen:
                seen.append(end)
                ends += [(end, spent), self._with_partial_sums(end)]
        return min(ends, key=lambda pair: pair[1])

    def _improved(self, start: Choice, thorough: bool = False) -> tuple[Choice, int]:
        return improved(self.priced, start, thorough=thorough, late=self.builder.theory.is_late)

    def _with_partial_sums(self, choice: Choice) -> tuple[Choice, int]:
        """The choice bracketed so that sums and junctions share parts.

        Sharing counts each operation once: where loops repeat some, it may cost more.
        """
        parts = frozenset([(c, node) for c, node in choice.items() if node[0] in BRACKETED])
        if parts not in self._bracketed:
            self._bracketed[parts] = self._bracket(choice)
        return self._bracketed[parts]

    def _bracket(self, choice: Choice) -> tuple[Choice, int]:
        builder = self.builder
        with builder.adding("partial sums"):
            shared = share_junctions(builder, share_sums(builder, choice, self.programs))
            if builder.theory.is_canonical:
                builder.selections.absorb_constants(shared)
            builder.grow()
        self.priced.refresh(self.of_products)
        # the brackets are the latest alternatives
        rest = completed(self.priced, needed(shared, builder.graph.roots), latest=True)
        return self._improved(rest, thorough=True)
