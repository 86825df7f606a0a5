"""The choice among spellings: the cheapest way to compute the roots together over a speller's graph.

Each step starts from a choice and offers the graph spellings that serve it: sums that share parts, the input as it is
written, what is computed anyway. What costs less is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eqsat.alternatives.reuse import offer_reuse
from eqsat.alternatives.sharing import share_junctions, share_sums
from eqsat.alternatives.speller import Speller
from eqsat.extract.select import Choice, Priced, ProductPrices, completed, improved, needed, tree, tree_cost

#: A choice that costs so much more than another may still be the cheaper once its sums share what they can.
MAX_BEHIND = 3
#: What is bracketed to share parts: choices of the same sums and junctions share the same.
BRACKETED = ("sum", "and", "or")


@dataclass
class Chooser:
    """Chooses among what is spelled, by one cost model; every choice comes with its cost.

    Attributes
    ----------
    of_products : ProductPrices
        What the cost model says of products, and the model.
    trees : bool
        Whether a term that is used twice is paid twice, so that nothing is gained by sharing.
    """

    speller: Speller
    of_products: ProductPrices
    trees: bool
    priced: Priced = field(init=False)

    def __post_init__(self) -> None:
        self.priced = Priced(self.speller.graph, {})
        self.priced.refresh(self.of_products)

    def choose(self, start: Choice | None = None) -> tuple[Choice, int]:
        """The cheapest choice found from what is cheapest for each class alone, with ``start`` where that chooses."""
        everywhere = tree(self.priced)
        if self.trees:
            return everywhere, tree_cost(self.priced, everywhere)
        starts = [self._improved({**everywhere, **(start or {})})]
        given = self.speller.as_given(everywhere)
        if given is not None:
            # what the input shares may take several changes at once to see
            starts.append(self._improved(given))
        least = min(cost for _, cost in starts)
        shared: list[tuple[Choice, int]] = []
        seen: list[Choice] = []
        for choice, cost in starts:
            parts = {c: node for c, node in choice.items() if node[0] in BRACKETED}
            if cost <= least + MAX_BEHIND and parts not in seen:
                seen.append(parts)
                shared.append(self._with_sharing(choice))
        return min([*shared, *starts], key=lambda end: end[1])

    def reusing(self, choice: Choice, cost: int, has_time: Callable[[], bool]) -> tuple[Choice, int]:
        """The choice improved by spellings that use what is computed anyway."""
        source = self.speller.enter("reuse")
        together = offer_reuse(self.speller, choice)
        self.speller.enter(source)
        if together is None:
            return choice, cost
        self.priced.refresh(self.of_products)
        kept = completed(self.priced, choice)
        found = [self._improved(kept, thorough=True)]
        for nodes in together:
            if not has_time():
                break
            start = self.speller.with_nodes(kept, nodes)
            if start != kept:
                found.append(self._improved(start, thorough=True))
        ends = [(choice, cost)]
        seen = [choice]
        for end, spent in found:
            # what costs the same may share more
            if spent <= cost and end not in seen:
                seen.append(end)
                ends += [(end, spent), self._with_sharing(end)]
        return min(ends, key=lambda pair: pair[1])

    def _improved(self, start: Choice, thorough: bool = False) -> tuple[Choice, int]:
        return improved(self.priced, start, thorough=thorough, late=self.speller.theory.is_late)

    def _with_sharing(self, choice: Choice) -> tuple[Choice, int]:
        """The choice bracketed so that sums and junctions share parts.

        Sharing counts each operation once: where loops repeat some, it may be dearer.
        """
        speller = self.speller
        source = speller.enter("sharing")
        shared = share_junctions(speller, share_sums(speller, choice, self.of_products))
        speller.selections.absorb_constants(shared)
        speller.grow()
        speller.enter(source)
        self.priced.refresh(self.of_products)
        # the brackets are the latest spellings
        rest = completed(self.priced, needed(shared, speller.graph.roots), latest=True)
        return self._improved(rest, thorough=True)
