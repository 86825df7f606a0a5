"""The choice among alternatives: the cheapest way to compute the roots together over a canonical e-graph.

Each step starts from a choice and adds alternatives that may improve it: shared partial sums, the input as it is
written, what is computed anyway. It keeps the choice that costs less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import NamedTuple

from eqsat.alternatives.availability import add_available
from eqsat.alternatives.builder import Builder
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.linear_programs import LinearPrograms, programs_by
from eqsat.alternatives.partial_sums import hoisted_sums, share_junctions, share_sums
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import EGraph, Flat, Node, added, flattened, sum_by
from eqsat.extract.select import (
    Choice,
    Priced,
    ProductPrices,
    completed,
    improved,
    needed,
    reachable,
    search_starts,
    tree,
    tree_cost,
    with_nodes,
)
from eqsat.lang.ops import REDUCTIONS

#: What is bracketed to share parts: choices of the same sums and junctions share the same.
BRACKETED = frozenset({"sum", "and", "or"})


class End(NamedTuple):
    """Where a search ended: a choice and its cost."""

    choice: Choice
    cost: int


@dataclass
class Improver:
    """Improves choices among the e-nodes of a graph, by one cost model."""

    graph: EGraph
    of_products: ProductPrices
    is_late: Callable[[], bool]
    #: Brackets a choice so that its sums and junctions share parts, with new nodes of the graph.
    share: Callable[[Choice], Choice]
    #: Takes out of the sums of a choice what runs less often; ``None`` if nothing does.
    hoist: Callable[[Choice], Choice | None]
    priced: Priced = field(init=False)
    #: The cheapest choice found so far, for when the time is up before the next one is found.
    best: End | None = field(default=None, init=False)
    # by the sums and junctions of a choice, the choice in which they share parts
    _bracketed: dict[frozenset[tuple[int, Node]], End] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.priced = Priced(self.graph, {})
        self.refresh()

    def refresh(self) -> None:
        """Price the nodes that the graph has gained."""
        self.priced.refresh(self.of_products)

    def improved(self, start: Choice, thorough: bool = False) -> End:
        """The cheapest choice found from ``start``."""
        found = End(*improved(self.priced, start, thorough=thorough, late=self.is_late))
        if self.best is None or found.cost < self.best.cost:
            self.best = found
        return found

    def bracket(self, choice: Choice, cost: float = inf) -> End:
        """The choice bracketed so that sums and junctions share parts, and improved.

        Sharing counts each operation once: where loops repeat some, it may cost more. A choice that a search has found
        has a ``cost``: if the brackets are all there and it costs no less with them, it is not searched from again.
        """
        starts = [choice]
        if (hoisted := self.hoist(choice)) is not None:
            starts.append(hoisted)
        return min([self._shared(start, cost) for start in starts], key=_cost_of)

    def _shared(self, choice: Choice, cost: float) -> End:
        size = len(self.graph)
        shared = self.share(choice)
        self.refresh()
        start = needed(shared, self.graph.roots)
        total = sum([self.priced.price(c, node) for c, node in start.items()])
        if total >= cost and len(self.graph) == size:
            return End(start, total)
        # the brackets are the latest alternatives
        return self.improved(completed(self.priced, start, latest=True), thorough=True)

    def bracketed(self, choice: Choice, cost: float = inf) -> End:
        """As :meth:`bracket`, once for all choices of the same sums and junctions."""
        parts = frozenset([(c, node) for c, node in choice.items() if node[0] in BRACKETED])
        if parts not in self._bracketed:
            self._bracketed[parts] = self.bracket(choice, cost)
        return self._bracketed[parts]


@dataclass
class Chooser:
    """Chooses among the e-nodes of a builder, by one cost model; every choice comes with its cost."""

    builder: Builder
    #: What the cost model says of products, and the model.
    of_products: ProductPrices
    #: Whether a term that is used twice is paid twice, so that nothing is gained by sharing.
    trees: bool
    programs: LinearPrograms = field(init=False)
    search: Improver = field(init=False)

    def __post_init__(self) -> None:
        self.programs = programs_by(self.of_products)
        share = partial(_with_shared_parts, self.builder, self.programs)
        hoist = partial(hoisted_sums, self.builder.classes)
        self.search = Improver(self.builder.graph, self.of_products, self.builder.theory.work.is_late, share, hoist)

    def choose(self) -> End:
        """The cheapest choice found from what is cheapest for each class alone."""
        search = self.search
        everywhere = tree(search.priced)
        if self.trees:
            return End(everywhere, tree_cost(search.priced, everywhere))
        starts = [search.improved(start) for start in search_starts(search.priced, everywhere)]
        if (written := self.builder.as_written(everywhere, self.builder.graph)) not in (None, everywhere):
            # single changes may not lead to what the input shares
            starts.append(search.improved(written))
        if (closed := self._without_loops(everywhere)) is not None:
            starts.append(search.improved(closed))
        if len(everywhere) > LIMITS.late_choice and self.builder.theory.late_or_raise():
            return min(starts, key=_cost_of)
        shared = [search.bracketed(start.choice) for start in starts]
        if closed is not None:
            # where loops repeat a sum, what they share pays only once it is hoisted
            shared.append(search.bracketed(needed(everywhere, self.builder.graph.roots)))
        if (programmed := self._by_programs()) is not None:
            shared.append(search.bracketed(programmed))
        return min([*shared, *starts], key=_cost_of)

    @provides("start without loops", otherwise=lambda self, everywhere: None)
    def _without_loops(self, everywhere: Choice) -> Choice | None:
        """The cheapest choice found with as few loops as possible; ``None`` if ``everywhere`` needs no loop.

        In ``everywhere`` each class takes what is cheapest for it alone. There a closed form pays for what it shares at
        each use, so a loop may seem cheaper.
        """
        graph = self.builder.graph
        loops = {c for c, node in everywhere.items() if node[0] in REDUCTIONS}
        if not loops or loops.isdisjoint(reachable(everywhere, graph.roots)):
            return None
        # a class has no node where its only bracket was refused
        most = 1 + sum([max(of_class, default=0) for of_class in self.search.priced.prices.values()])
        prices = {
            c: [price + most * (node[0] in REDUCTIONS) for node, price in zip(graph.classes[c], of_class, strict=True)]
            for c, of_class in self.search.priced.prices.items()
        }
        return self._chosen_by(prices)

    def _by_programs(self) -> Choice | None:
        """The cheapest choice found with each sum at the price of its program; ``None`` if no program is cheaper."""
        graph = self.builder.graph
        if len(graph) > LIMITS.programmed_nodes:
            return None
        known, cheaper = self.search.priced.prices, []
        for c, nodes in graph.classes.items():
            for place, node in enumerate(nodes):
                price = self.programs.price(node)
                if price is not None and (price := graph.weights.get(c, 1) * price) < known[c][place]:
                    cheaper.append((c, place, price))
        if not cheaper:
            return None
        # all prices are doubled, so that one less prefers a program to what costs the same: the other start has that
        prices = {c: [2 * price for price in of_class] for c, of_class in known.items()}
        for c, place, price in cheaper:
            prices[c][place] = 2 * price - 1
        return self._chosen_by(prices)

    def _chosen_by(self, prices: dict[int, list[int]]) -> Choice:
        """The cheapest choice found if the nodes had these prices."""
        priced = self.search.priced.at(prices)
        return improved(priced, tree(priced), late=self.builder.theory.work.is_late)[0]

    def collected(self, choice: Choice, cost: int) -> End:
        """The choice with the like terms of each sum and of its parts collected, if that costs less."""
        found = _collected(self.builder, self.search.priced, self.programs, choice)
        if found is None:
            return End(choice, cost)
        self.search.refresh()
        return min(End(choice, cost), self.search.bracket(found), key=_cost_of)

    def reusing(self, choice: Choice, cost: int, has_time: Callable[[], bool]) -> End:
        """The choice improved by alternatives that use what is computed anyway."""
        with self.builder.adding("availability"):
            together = add_available(self.builder, choice)
        # classes are added even if no alternative is found
        self.search.refresh()
        if together is None:
            return End(choice, cost)
        kept = completed(self.search.priced, choice, alone=True)
        found = [self._settled(kept, cost)]
        for nodes in together:
            if not has_time():
                break
            start = with_nodes(self.builder.graph, kept, nodes)
            if start != kept:
                found.append(self.search.improved(start, thorough=True))
        ends = [End(choice, cost)]
        seen = [choice]
        for end in found:
            # what costs the same may share more
            if end.cost <= cost and end.choice not in seen:
                seen.append(end.choice)
                ends += [end, self.search.bracketed(*end)]
        return min(ends, key=_cost_of)

    def _settled(self, start: Choice, cost: int) -> End:
        """The choice improved from ``start`` on, and again while that makes it cost less than ``cost``.

        A class that is given up keeps its node, which shared something then. Once that is the cheapest one alone, the
        class may be taken again.
        """
        end = self.search.improved(start, thorough=True)
        while end.cost < cost:
            cost = end.cost
            again = self.search.improved(completed(self.search.priced, end.choice, alone=True))
            if again.cost < cost:
                end = self.search.improved(completed(self.search.priced, again.choice, alone=True), thorough=True)
        return end


def _cost_of(end: End) -> int:
    return end.cost


def _with_shared_parts(builder: Builder, programs: LinearPrograms, choice: Choice) -> Choice:
    """The choice with its sums and junctions bracketed, by nodes that the graph gains."""
    with builder.adding("partial sums"):
        shared = share_junctions(builder.classes, share_sums(builder.classes, choice, programs))
        if builder.theory.is_canonical:
            builder.selections.absorb_constants(shared)
        builder.grow()
    return shared


def _collected(builder: Builder, priced: Priced, programs: LinearPrograms, choice: Choice) -> Choice | None:
    """The choice with each part that one sum alone uses written into that sum; ``None`` if that spares no operation."""
    roots = builder.graph.roots
    uses = Counter([*roots, *[a for _, _, args in choice.values() for a in args]])
    users = Counter([*roots, *[a for _, _, args in choice.values() for a in set(args)]])
    shared = {a for a, count in users.items() if count > 1}
    changed: dict[int, Node] = {}
    for c, node in choice.items():
        # of two terms without a part there is nothing to collect
        if added(choice, node) is None or (node[0] != "sum" and not _has_part(choice, node[2], uses)):
            continue
        most = 0
        flats = [flattened(choice, c, uses, shared)]
        if not shared.isdisjoint(flats[0].terms):
            flats.append(flattened(choice, c, uses))
        for flat in flats:
            if len(flat.terms) > 1:
                cost = sum([priced.price(a, choice[a]) for a in flat.parts])
                additions = (len(flat.terms) - (not flat.constant)) * programs.prices.addition
                # a program has as many additions
                if cost - additions > most and (saved := cost - _price_of(flat, programs)) > most:
                    changed[c], most = sum_by(flat.terms, flat.constant), saved
    found = {c: node for c, node in changed.items() if builder.add_node(c, node)}
    return needed(choice | found, roots) if found else None


def _has_part(choice: Choice, operands: Sequence[int], uses: Mapping[int, int]) -> bool:
    """Whether some operand is itself a sum, or a multiple, that nothing else uses."""
    return any(uses[a] == operands.count(a) and choice[a][2] and added(choice, choice[a]) is not None for a in operands)


def _price_of(flat: Flat, programs: LinearPrograms) -> int:
    products = sum([programs.prices[abs(k)] for k in flat.terms.values()])
    by_terms = products + (len(flat.terms) - (not flat.constant)) * programs.prices.addition
    return min(by_terms, programs.price(sum_by(flat.terms, flat.constant)) or by_terms)
