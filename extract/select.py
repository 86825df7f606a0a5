"""Extraction: choose one node per class so that the roots are cheap.

``tree`` pays a subterm once for each use, and is exact where nothing is shared. ``dag`` pays every class once over all
roots: it starts from the tree's choice and changes one choice at a time while the total falls. Both break ties by the
order of nodes within a class, so equal graphs give equal answers.

Both read tables that :class:`Priced` keeps from one search to the next, and to which it adds what the graph gains. For
the tree, nodes have numbers, and lists by number say what each costs and how many operands it waits for: a class that
is settled tells the nodes that use it. For the search, the nodes of each class are sorted by price: what costs more
alone than the chosen node with all that is needed for it only is not looked at. A search counts the uses of each class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from math import inf
from operator import add
from typing import cast

from eqsat.extract.cost import CostModel, LoopAware, refuse_other
from eqsat.extract.graph import EGraph, Node, reached, require_graph

_I64 = (-(2**63), 2**63 - 1)
#: How many additions a value costs that no machine integer holds, beside what its node does.
_TOO_WIDE = 1000

#: What adds: a sum of several terms, or two.
_SUMS = frozenset({"sum", "add", "sub"})
#: Passes of the search over all classes, in each of which every class is tried once.
MAX_ROUNDS = 8
#: A class with up to this number of uses may be given up by all its users at once.
MAX_USERS = 4

#: If the nodes of a class have more operands than this in all, it is not changed so that one of these is given up: that
#: would be tried for each of them.
WIDE = 256

#: If the nodes of a class have more operands than this on average, each is tried by what the last one does not have.
MANY_OPERANDS = 16

#: Steps of a search between two looks at the clock: a small graph is searched to the end whatever the clock says.
STEPS_PER_LOOK = 32
#: With more chosen classes than this the search looks at the clock in every step.
MANY_CHOSEN = 1000

#: A choice: the node for each class that some root needs.
Choice = dict[int, Node]
#: A node of a class: its price, its place there, and itself.
_Alternative = tuple[int, int, Node]
#: A class to change, and the operand that it is to do without.
_Way = tuple[int, int]


@dataclass
class Priced:
    """A graph with the price of each of its nodes, in the order of ``graph.classes``.

    Attributes
    ----------
    graph : EGraph
        The graph.
    prices : dict of int to list of int
        By class, the price of each of its nodes, operands not counted.
    waits : _Waits
        The nodes by number.
    by_number : list of int
        The price of each node by its number.

    >>> from eqsat.extract.cost import OpCount
    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> Priced.of(graph, OpCount()).prices
    {0: [0], 1: [1]}
    """

    graph: EGraph
    prices: dict[int, list[int]]
    waits: _Waits = field(init=False, repr=False, compare=False)
    by_number: list[int] = field(init=False, repr=False, compare=False)
    # what `ranked` has found for classes that have gained no node since
    _ranked: dict[int, list[_Alternative]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.waits = _waits_of(self.graph, self.prices)
        self.by_number = [self.prices[c][place] for c, place in self.waits.nodes]

    @classmethod
    def of(cls, graph: EGraph, model: CostModel) -> Priced:
        """Price every node of ``graph`` once."""
        require_graph(graph)
        refuse_other(model)
        priced = cls(graph, {})
        priced.refresh(ProductPrices(model))
        return priced

    def refresh(self, of_products: ProductPrices) -> None:
        """Price the nodes that the graph has gained, by the model of these prices."""
        pricer = _Pricer(self.graph, of_products)
        known = self.prices
        graph = self.graph
        # the theory splits sums without regard to overflow: prefer those that a machine integer holds, where any can
        within = self._below_what_fits() if graph.weights else ()
        too_wide = _TOO_WIDE * of_products.addition
        for c, nodes in graph.classes.items():
            prices = known.setdefault(c, [])
            if len(prices) < len(nodes):
                beside = too_wide if c in within and not self._fits(c) else 0
                times = graph.weights.get(c, 1)
                new = nodes[len(prices) :]
                costs = [(pricer.price(c, node) + beside) * times if node[2] else 0 for node in new]
                self.waits.read(c, len(prices), new)
                self.by_number += costs
                prices += costs
                self._ranked.pop(c, None)

    def at(self, prices: dict[int, list[int]]) -> Priced:
        """The same graph with other prices."""
        other = copy(self)
        other.prices, other._ranked = prices, {}
        other.by_number = [prices[c][place] for c, place in self.waits.nodes]
        return other

    def price(self, c: int, node: Node) -> int:
        """The price of a node of a class, operands not counted."""
        return self.prices[c][self.graph.classes[c].index(node)]

    def ranked(self, c: int) -> list[_Alternative]:
        """The nodes of a class, the cheapest first; of those that cost the same, the first."""
        if (found := self._ranked.get(c)) is None:
            nodes = self.graph.classes[c]
            found = self._ranked[c] = sorted(zip(self.prices[c], range(len(nodes)), nodes, strict=True))
        return found

    def _below_what_fits(self) -> Collection[int]:
        """The classes that may be needed for a root of which 64 bits hold a form."""
        graph = self.graph
        fitting = {c for c in graph.roots if any(map(self._fits, graph.equal_classes(c)))}
        if len(fitting) == len({*graph.roots}):
            return graph.classes
        return reached(fitting, lambda c: [a for _, _, operands in graph.classes[c] for a in operands])

    def _fits(self, c: int) -> bool:
        """Whether 64 bits hold the values of a class, as far as they have bounds."""
        low, high = self.graph.bounds[c]
        return (low >= _I64[0] or low == -inf) and (high <= _I64[1] or high == inf)


class _Waits:
    """Which nodes of a graph wait for which classes, by numbers of nodes; the graph may only gain nodes."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        #: The class of each node, and its place there.
        self.nodes: list[tuple[int, int]] = []
        #: How many operands each node has; and the nodes without any.
        self.missing: list[int] = []
        self.leaves: list[int] = []
        #: By class the nodes that it is an operand of, as often as it is.
        self.users: dict[int, list[int]] = defaultdict(list)
        #: How many operands the nodes of each class have in all; and the classes with more than ``WIDE``.
        self.widths: dict[int, int] = defaultdict(int)
        self.wide: set[int] = set()

    def read(self, c: int, first: int, new: Sequence[Node]) -> None:
        """Read the nodes that a class has gained, the ``first`` of which has that place there."""
        users = self.users
        for place, (_, _, operands) in enumerate(new, first):
            number = len(self.nodes)
            self.nodes.append((c, place))
            self.missing.append(len(operands))
            for a in operands:
                users[a].append(number)
            if not operands:
                self.leaves.append(number)
            self.widths[c] += len(operands)
        if self.widths[c] > WIDE:
            self.wide.add(c)


def require_priced(given: object) -> None:
    """Raise ``TypeError`` unless ``given`` is a graph with its prices."""
    if not isinstance(given, Priced):
        raise TypeError(f"a graph with prices is Priced.of(graph, model), not a value of type {type(given).__name__}")


class ProductPrices(dict[int, int]):
    """What a product by each literal costs, beside what an addition does."""

    def __init__(self, model: CostModel) -> None:
        self.model = model
        self.addition = model.price("add", [(0, 9), (0, 9)], (0, 18))
        super().__init__({1: 0, -1: self.addition})

    def __missing__(self, by: int) -> int:
        result = (min(0, 9 * by), max(0, 9 * by))
        found = self[by] = self.model.price("mul", [(0, 9), (by, by)], result)
        return found


class _Pricer:
    """Prices nodes by a model, times how often each runs; the terms of a sum are added from the outermost loop on."""

    def __init__(self, graph: EGraph, of_products: ProductPrices) -> None:
        self.bounds, self.of_products, self.price_of = graph.bounds, of_products, of_products.model.price
        # empty if there are no loops
        self.runs: dict[int, int] = {}
        if isinstance(model := of_products.model, LoopAware):
            self.runs = {c: model.runs(level) for c, level in _levels(graph, model).items()}

    def price(self, c: int, node: Node) -> int:
        op, value, args = node
        # a class without a finite term has no level, and is never chosen
        runs = [self.runs.get(a, 1) for a in args] if self.runs else [1] * len(args)
        if op != "sum" or not isinstance(value, tuple):
            return max(runs) * self.price_of(op, [self.bounds[a] for a in args], self.bounds[c])
        constant, coefficients = value
        of_products = self.of_products
        cost = sum(runs) * of_products.addition
        cost += sum([r * of_products[abs(k)] for r, k in zip(runs, coefficients, strict=True)])
        if constant:
            return cost
        first = min(coefficients)
        # if all terms are subtracted, the first has a sign
        sign = of_products[first] - of_products[-first] if max(coefficients) < 0 else 0
        return cost + min(runs) * (sign - of_products.addition)


def _levels(graph: EGraph, model: LoopAware) -> dict[int, int]:
    """The level of the innermost loop that each class depends on, the least among its e-nodes."""
    nodes = chain.from_iterable(graph.classes.values())
    levels = [model.level(cast(str, value)) if op == "var" else 0 for op, value, _ in nodes]
    return _least(_waits_of(graph, graph.classes), levels, combine=max)[0]


def reachable(choice: Mapping[int, Node], roots: Iterable[int]) -> list[int]:
    """The classes that ``roots`` need under ``choice``, operands before users.

    Parameters
    ----------
    choice : mapping of int to Node
        A node for each class.
    roots : iterable of int
        Classes.

    Raises
    ------
    ValueError
        If a class needs itself, or has no node; the message names it.

    >>> reachable({0: ("var", "x", ()), 1: ("neg", None, (0,))}, [1])
    [0, 1]
    """
    found: dict[int, None] = {}
    opened: set[int] = set()
    user, operands = None, iter(roots)
    above: list[tuple[int | None, Iterator[int]]] = []
    try:
        while True:
            for c in operands:
                if c not in found:
                    if args := choice[c][2]:
                        if c in opened:
                            raise ValueError(f"by the choice class {c} needs itself")
                        opened.add(c)
                        above.append((user, operands))
                        user, operands = c, iter(args)
                        break
                    found[c] = None
            else:
                if user is None:
                    return list(found)
                found[user] = None
                user, operands = above.pop()
    except KeyError as error:
        raise ValueError(f"the choice has no node for class {error.args[0]!r}") from None


def refuse_other_choice(graph: EGraph, choice: Mapping[int, Node]) -> None:
    """Raise ``ValueError`` unless ``choice`` has a term for each root of ``graph``; the message names the class."""
    if not isinstance(choice, Mapping):
        raise ValueError(f"a choice is a mapping of classes to nodes, not {type(choice).__name__}")

    def operands(c: int) -> tuple[int, ...]:
        node = choice.get(c)
        if node is None or node not in graph.classes.get(c, ()):
            raise ValueError(f"the choice has {'no node' if node is None else f'{node}, no node of it,'} for class {c}")
        return node[2]

    reached(graph.roots, operands)
    reachable(choice, graph.roots)


def needed(choice: Choice, roots: Iterable[int]) -> Choice:
    """The part of ``choice`` that ``roots`` need."""
    return {c: choice[c] for c in reachable(choice, roots)}


def reaches(choice: Mapping[int, Node], start: Iterable[int], target: int, past: Iterable[int] = ()) -> bool:
    """Whether a class of ``start`` needs ``target`` under ``choice``, other than through those of ``past``.

    Parameters
    ----------
    choice : mapping of int to Node
        A node for each class.
    start : iterable of int
        Classes.
    target : int
        A class.
    past : iterable of int
        Classes that are not looked into.

    Raises
    ------
    ValueError
        If a class that is reached has no node; the message names it.

    >>> reaches({0: ("var", "x", ()), 1: ("neg", None, (0,))}, [1], 0)
    True
    """
    seen: set[int] = set(past)
    waiting = list(start)
    try:
        for c in waiting:
            if c == target:
                return True
            operands = choice[c][2]
            if operands and c not in seen:
                seen.add(c)
                waiting += operands
    except KeyError as error:
        raise ValueError(f"the choice has no node for class {error.args[0]!r}") from None
    return False


def with_nodes(graph: EGraph, choice: Choice, nodes: Mapping[int, Node]) -> Choice:
    """``choice`` with other nodes for some of its classes, except where a class would then need itself."""
    changed = dict(choice)
    for c, node in nodes.items():
        known = c in changed and node in graph.classes[c] and all(map(changed.__contains__, node[2]))
        if known and changed[c] != node and not reaches(changed, node[2], c):
            changed[c] = node
    return changed


def tree(priced: Priced, once: bool = False) -> Choice:
    """For every class that has a finite term, the node of least cost, where what is used twice is paid twice.

    Parameters
    ----------
    priced : Priced
        The graph and its prices.
    once : bool
        Whether a node pays once for an operand that it has twice, as a square has: the start of a search that pays
        each class once.

    Returns
    -------
    Choice
        A node for each class.

    Raises
    ------
    ValueError
        If a root has no finite term; the message names it.

    >>> from eqsat.extract.cost import OpCount
    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> tree(Priced.of(graph, OpCount()))
    {0: ('var', 'x', ()), 1: ('neg', None, (0,))}
    """
    require_priced(priced)
    choice = trees(priced, once)[1]
    for root in priced.graph.roots:
        if root not in choice:
            raise ValueError(f"the root {root} has no finite term: each of its e-nodes needs a class without one")
    return choice


def search_starts(priced: Priced, everywhere: Choice) -> list[Choice]:
    """The choices that a search begins from: ``everywhere``, which is that of :func:`tree`, and the one with ``once``.

    The second one is left out if no node has an operand twice.
    """
    nodes = chain.from_iterable(priced.graph.classes.values())
    if all(len(args) < 2 or args[0] != args[1] for _, _, args in nodes):
        return [everywhere]
    return [everywhere, tree(priced, once=True)]


def trees(priced: Priced, once: bool = False) -> tuple[dict[int, int], Choice]:
    """What the cheapest tree of every class that has a finite term costs, and the choice of :func:`tree`."""
    return _least(priced.waits, priced.by_number, once=once)


def _alone(priced: Priced, choice: Choice) -> dict[int, int]:
    """What each chosen class costs with all that it alone needs; 0 for a class that several need, or a root."""
    roots, order = priced.graph.roots, reachable(choice, priced.graph.roots)
    uses = dict.fromkeys(choice, 0)
    for c in chain(roots, roots, *[set(choice[c][2]) for c in order]):
        uses[c] += 1
    found = dict.fromkeys(choice, 0)
    for c in order:
        if uses[c] < 2:
            node = choice[c]
            found[c] = priced.price(c, node) + sum([found[a] for a in set(node[2])])
    return found


def completed(priced: Priced, choice: Choice, latest: bool = False, alone: bool = False) -> Choice:
    """``choice`` with the node of least tree cost for every other class; classes chosen already cost nothing there.

    Of nodes that cost the same it takes the first, or the ``latest``. With ``alone``, a chosen class that one other
    alone needs is not free: if more used it, it could no longer be given up together with that class.
    """
    known = _alone(priced, choice) if alone else dict.fromkeys(choice, 0)
    return {**choice, **_least(priced.waits, priced.by_number, known, latest)[1]}


def _least(
    waits: _Waits,
    prices: Sequence[int],
    known: Mapping[int, int] | None = None,
    latest: bool = False,
    once: bool = False,
    combine: Callable[[int, int], int] = add,
) -> tuple[dict[int, int], Choice]:
    """The least value of every class that has a finite term, and its node (Knuth's generalisation of Dijkstra).

    The value of a node is its price, by its number, combined with the values of its operands, and at least each of
    these; with ``once``, an operand that it has twice counts once. Classes whose value is ``known`` are left out. Of
    equal nodes it is the first, or the ``latest``.
    """
    order = -1 if latest else 1
    nodes, users, classes = waits.nodes, waits.users, waits.graph.classes
    best: dict[int, int] = {} if known is None else {**known}
    # by number of node how many of its operands have no value yet, and its price combined with those that have one
    missing, values = waits.missing[:], [*prices]
    heap: list[tuple[int, int, int]] = []

    def settle(c: int) -> None:
        least, above = best[c], users.get(c, ())
        # most are leaves, whose 0 changes nothing
        if least:
            for number in dict.fromkeys(above) if once else above:
                values[number] = combine(values[number], least)
        for number in above:
            missing[number] -= 1
            if not missing[number]:
                user, place = nodes[number]
                if user not in best:
                    heappush(heap, (values[number], user, order * place))

    for number in waits.leaves:
        c, place = nodes[number]
        if c not in best:
            heappush(heap, (values[number], c, order * place))
    for c in known or ():
        settle(c)
    choice: Choice = {}
    while heap:
        least, c, place = heappop(heap)
        if c not in best:
            best[c] = least
            choice[c] = classes[c][order * place]
            settle(c)
    return best, choice


def _waits_of(graph: EGraph, classes: Iterable[int]) -> _Waits:
    """What :class:`_Waits` says of these classes of a graph."""
    found = _Waits(graph)
    for c in classes:
        found.read(c, 0, graph.classes[c])
    return found


def reachable_part(graph: EGraph) -> EGraph:
    """The classes that some term of a root needs, with the nodes that have a term.

    >>> nodes = {0: [("var", "x", ())], 1: [("neg", None, (0,)), ("neg", None, (2,))], 2: [], 3: [("const", 5, ())]}
    >>> reachable_part(EGraph(nodes, dict.fromkeys(nodes, (-9, 9)), [1])).classes
    {1: [('neg', None, (0,))], 0: [('var', 'x', ())]}
    """
    finite = _least(_waits_of(graph, graph.classes), [0] * len(graph))[0]
    nodes = {c: [node for node in own if finite.keys() >= set(node[2])] for c, own in graph.classes.items()}
    found = reached(graph.roots, lambda c: [a for _, _, operands in nodes[c] for a in operands])
    weights = {c: weight for c, weight in graph.weights.items() if c in found}
    return EGraph({c: nodes[c] for c in found}, {c: graph.bounds[c] for c in found}, [*graph.roots], weights)


def dag(priced: Priced, start: Choice | None = None) -> Choice:
    """A choice that no single change makes cheaper, each class paid once over all roots.

    Parameters
    ----------
    priced : Priced
        The graph and its prices.
    start : Choice, optional
        The choice to improve; that of :func:`tree` if none is given.

    Returns
    -------
    Choice
        A node for each class that the roots need, and for others.

    Raises
    ------
    ValueError
        As :func:`tree`, if no start is given; or if the start has no term for a root.

    >>> from eqsat.extract.cost import OpCount
    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> dag(Priced.of(graph, OpCount()))[1]
    ('neg', None, (0,))
    """
    require_priced(priced)
    if start is not None:
        refuse_other_choice(priced.graph, start)
    starts = search_starts(priced, tree(priced)) if start is None else [start]
    return min([_searched(priced, each) for each in starts], key=lambda search: search.total).choice


def improved(
    priced: Priced,
    start: Choice,
    thorough: bool = False,
    late: Callable[[], bool] = lambda: False,
) -> tuple[Choice, int]:
    """A choice from ``start`` on that no single change makes cheaper, and its cost, each class paid once.

    The choice holds the classes that the roots need, operands first. If ``thorough``, three more changes are tried:
    all users of a class give it up at once; it is computed from one of them; several classes use one that was not
    needed. When it is ``late``, the best choice so far is returned.
    """
    search = _searched(priced, start, thorough, late)
    return {c: search.choice[c] for c in search.in_order()}, search.total


def _searched(
    priced: Priced, start: Choice, thorough: bool = False, late: Callable[[], bool] = lambda: False
) -> _Search:
    search = _Search(priced, dict(start), late)
    for _ in range(MAX_ROUNDS):
        if not search.improve():
            break
    while thorough and (search.abandon() or search.turn() or search.adopt()):
        search.improve()
    return search


class _Search:
    """Local search: reference counts tell exactly how much a change of one choice changes the total."""

    def __init__(self, priced: Priced, choice: Choice, late: Callable[[], bool]) -> None:
        self.graph, self.ranked = priced.graph, priced.ranked
        self.wide, self.widths = priced.waits.wide, priced.waits.widths
        self.late, self.steps, self.stopped = late, 0, False
        self.choice = choice
        classes, prices = self.graph.classes, priced.prices
        # the price of the chosen node of each class
        self.paid = {c: prices[c][classes[c].index(node)] for c, node in choice.items()}
        order = reachable(choice, self.graph.roots)
        self.uses = dict.fromkeys(choice, 0)
        for c in chain(self.graph.roots, *[choice[c][2] for c in order]):
            self.uses[c] += 1
        self.needed = {c for c, count in self.uses.items() if count}
        self.total = sum([self.paid[c] for c in order])
        self._order: list[int] | None = order
        # how many changes were kept, and by class how many had been when it was tried last
        self._changes = 0
        self._tried: dict[int, int] = {}
        # by class what it cost with all that it alone needs, when it was tried last and no other node cost less
        self._free: dict[int, int] = {}

    def _is_late(self) -> bool:
        self.steps += 1
        if self.steps % STEPS_PER_LOOK == 0 or len(self.choice) > MANY_CHOSEN:
            self.stopped = self.stopped or self.late()
        return self.stopped

    def in_order(self) -> list[int]:
        """The classes that the roots need, operands first."""
        if self._order is None:
            self._order = reachable(self.choice, self.graph.roots)
        return self._order

    def _choose(self, c: int, node: Node, price: int) -> None:
        self.choice[c], self.paid[c] = node, price
        self._order = None
        self._changes += 1

    def _take(self, classes: Iterable[int]) -> int:
        """Count one more use of each of ``classes``; the cost of what becomes needed."""
        cost, uses = 0, self.uses
        waiting = list(classes)
        for c in waiting:
            count = uses[c]
            uses[c] = count + 1
            if not count:
                self.needed.add(c)
                cost += self.paid[c]
                waiting += self.choice[c][2]
        return cost

    def _release(self, classes: Iterable[int]) -> int:
        """Count one use of each of ``classes`` less; the cost of what is no longer needed."""
        cost, uses = 0, self.uses
        waiting = list(classes)
        for c in waiting:
            count = uses[c] - 1
            uses[c] = count
            if not count:
                self.needed.discard(c)
                cost += self.paid[c]
                waiting += self.choice[c][2]
        return cost

    def improve(self) -> bool:
        """Try every alternative of every needed class once; return whether the total fell.

        A class is left out if nothing has changed since it was tried.
        """
        changed = False
        classes, uses, tried = self.graph.classes, self.uses, self._tried
        for c in self.in_order()[::-1]:
            if len(classes[c]) > 1 and uses[c] and tried.get(c) != self._changes:
                if self._is_late():
                    return False
                changed |= self._take_cheapest(c)
                tried[c] = self._changes
        return changed

    def _take_cheapest(
        self,
        c: int,
        among: Iterable[_Alternative] | None = None,
        fits: Callable[[Node], bool] | None = None,
        rise: float = inf,
    ) -> bool:
        """Choose the alternative of ``c`` that makes the total least, if it falls; return whether there was one.

        If they are given, only the alternatives ``among`` these that fit count, and the total may rise, by less than
        ``rise``.
        """
        choice, needed = self.choice, self.needed
        current = choice[c]
        free = self.paid[c] + self._release(current[2])
        # prices may be too large to be added to an infinity of floats
        least: float = free if among is None else inf if rise == inf else free + rise
        best: tuple[Node, int, int] | None = None
        first = -1
        is_wide, below, held = self.widths[c] > MANY_OPERANDS * len(self.graph.classes[c]), 0, set[int]()
        for price, place, node in self.ranked(c) if among is None else among:
            # of nodes that make the total the same it is the first
            if price >= least and (price > least or place > first):
                break
            if node is current:
                continue
            # what has no finite term is not chosen
            if is_wide:
                if not (operands := {*node[2]}) <= self.paid.keys():
                    continue
                # such nodes differ in few of their many operands: what the last one needs is not given up first
                below += self._take(operands - held) - self._release(held - operands)
                taken, held = price + below, operands
            else:
                new = {a for a in node[2] if a not in needed}
                if not new <= self.paid.keys():
                    continue
                taken = self._with_new(price, new, least) if new else price
            # the operands of `node` may not need `c` itself
            is_better = taken < least or (taken == least and place < first)
            if is_better and (fits is None or fits(node)) and not reaches(choice, node[2], c):
                best, least, first = (node, price, taken), taken, place
        self._release(held)
        if best is None:
            self._take(current[2])
            if among is None:
                self._free[c] = free
            return False
        node, price, taken = best
        self._take(node[2])
        self._choose(c, node, price)
        self.total += taken - free
        return True

    def _with_new(self, price: int, new: set[int], most: float) -> int:
        """A price with that of classes that are not needed yet and of all below them; once it is above ``most``, that.

        What is paid for is added to ``new``.
        """
        choice, paid, needed = self.choice, self.paid, self.needed
        waiting = list(new)
        for a in waiting:
            price += paid[a]
            if price > most:
                break
            for b in choice[a][2]:
                if b not in needed and b not in new:
                    new.add(b)
                    waiting.append(b)
        return price

    def abandon(self) -> bool:
        """Try to give up every class with several users that all have alternatives; return whether the total fell."""
        few = {c for c, count in self.uses.items() if 1 < count <= MAX_USERS and self.paid[c]}
        few.difference_update(self.graph.roots)
        users: dict[int, list[int]] = {}
        for c in self.in_order() if few else ():
            for a in self.choice[c][2]:
                users.setdefault(a, []).append(c)
        changed = False
        for shared in users:
            if shared in few:
                if self._is_late():
                    return False
                changed |= any(self._abandoned(shared, ways) for ways in self._ways_out(shared, users))
        return changed

    def _ways_out(self, shared: int, users: Mapping[int, Sequence[int]]) -> Iterator[list[_Way]]:
        """Sets of classes to change so that nothing needs ``shared``, each class with its operand that leads there.

        For each use: the nearest class with alternatives above it; the whole sum which that class is part of; the only
        user of that class, for one use and for all. There are none if some use has no class with alternatives.
        """
        ways = [self._way_out(c, shared, users) for c in users[shared]]
        if None not in ways:
            nearest = cast(list[_Way], ways)
            whole = [self._whole_sum(*way, users) for way in nearest]
            above = [self._above(*way, users) for way in nearest]
            higher = [[*nearest[:i], way, *nearest[i + 1 :]] for i, way in enumerate(above)]
            found = [nearest, whole, *higher, above]
            yield from [ways for i, ways in enumerate(found) if ways not in found[:i]]

    def _only_user(self, c: int, users: Mapping[int, Sequence[int]]) -> int | None:
        """The class of which ``c`` is an operand, if that is its only use."""
        above = users.get(c, ())
        return above[0] if self.uses[c] == 1 and len(above) == 1 else None

    def _way_out(self, c: int, operand: int, users: Mapping[int, Sequence[int]]) -> _Way | None:
        """The first class with alternatives from ``c`` upwards, while each has a single use; and its operand below."""
        while len(self.graph.classes[c]) == 1:
            if (user := self._only_user(c, users)) is None:
                return None
            operand, c = c, user
        return None if c in self.wide else (c, operand)

    def _above(self, c: int, operand: int, users: Mapping[int, Sequence[int]]) -> _Way:
        """The only user of ``c``, and ``c``; or, if there are several users, ``c`` and its operand."""
        user = self._only_user(c, users)
        return (c, operand) if user is None or user in self.wide else (user, c)

    def _whole_sum(self, c: int, operand: int, users: Mapping[int, Sequence[int]]) -> _Way:
        """The largest sum that ``c`` is part of, while each has a single use; and its operand below."""
        while (user := self._only_user(c, users)) is not None and self.choice[user][0] in _SUMS:
            if user in self.wide:
                break
            operand, c = c, user
        return c, operand

    def _abandoned(self, shared: int, ways: Sequence[_Way]) -> bool:
        """Change the choices ``ways`` so that none needs ``shared``, if the total falls; return whether it did.

        A class may need it only through classes that are left to be changed.
        """
        ways = [(c, operand) for c, operand in ways if self.uses[c] and operand in self.choice[c][2]]
        total, changes = self.total, self._changes
        undo: list[tuple[int, Node, int]] = []
        left = [c for c, _ in ways]

        def may_be_chosen(node: Node) -> bool:
            return not reaches(self.choice, node[2], shared, left)

        for c, operand in ways:
            left.remove(c)
            if self.uses[c] and operand in self.choice[c][2]:
                before = (c, self.choice[c], self.paid[c])
                others = (each for each in self.ranked(c) if operand not in each[2][2])
                # after the last change the total is less, or all are undone
                rise = inf if left else total - self.total
                if not self._take_cheapest(c, others, may_be_chosen, rise):
                    break
                undo.append(before)
        return self._kept(undo, total, changes)

    def turn(self) -> bool:
        """Try to compute a shared operand of a sum from that sum instead; return whether the total fell."""
        changed = False
        classes = self.graph.classes
        for user in self.in_order()[::-1]:
            if self.choice[user][0] not in _SUMS or len(classes[user]) == 1 or user in self.wide:
                continue
            for c in self.choice[user][2]:
                # an earlier change may have given up the sum or its operand
                if self.uses[c] > 1 and self.paid[c] and self.uses[user] and c in self.choice[user][2]:
                    turned = [each for each in self.ranked(c) if user in each[2][2]]
                    if turned:
                        if self._is_late():
                            return False
                        changed |= self._turned(c, user, turned)
        return changed

    def adopt(self) -> bool:
        """Try to compute each class that is not needed and that several could use; return whether the total fell.

        It could be used by what is cheaper then than its user is now, operands not counted.
        """
        changed = False
        for a, users in self._possible_users().items():
            if len(users) < 2 or a in self.needed:
                continue
            if self._is_late():
                return False
            total, changes, undo = self.total, self._changes, []
            self.total += self._take([a])
            for c in users:
                before = (c, self.choice[c], self.paid[c])
                if self.uses[c] and self._take_cheapest(c):
                    undo.append(before)
            self.total -= self._release([a])
            changed |= bool(undo) and self._kept(undo, total, changes)
        return changed

    def _possible_users(self) -> dict[int, dict[int, None]]:
        """By class that is not needed, the needed ones with a node that uses it and costs less than is free there."""
        found: dict[int, dict[int, None]] = defaultdict(dict)
        for c in self.in_order()[::-1]:
            free = 0 if c in self.wide else self._free.get(c, 0)
            for price, _, node in self.ranked(c):
                if price >= free:
                    break
                for a in node[2]:
                    if a not in self.needed and self.paid.get(a):
                        found[a][c] = None
        return found

    def _turned(self, c: int, user: int, turned: Sequence[_Alternative]) -> bool:
        """Let ``user`` do without ``c``, and ``c`` use it, as those ``turned`` do; return whether the total fell."""
        total, changes, (_, _, operands) = self.total, self._changes, self.choice[c]
        saved = self.paid[c] + self._release(operands) - turned[0][0]
        self._take(operands)
        undo = [(d, self.choice[d], self.paid[d]) for d in (user, c)]
        if saved <= 0:
            return False
        if not self._take_cheapest(user, self.ranked(user), lambda node: not reaches(self.choice, node[2], c), saved):
            return False
        # the user may have been all that needed it
        if self.uses[c]:
            self._take_cheapest(c, turned)
        return self._kept(undo, total, changes)

    def _kept(self, before: Sequence[tuple[int, Node, int]], total: int, changes: int) -> bool:
        """Whether the total is less than it was after ``changes``; if not, undo those since then, the last first."""
        if self.total < total:
            return True
        for c, node, price in reversed(before):
            current = self.choice[c]
            self._take(node[2])
            self._release(current[2])
            self._choose(c, node, price)
        self.total, self._changes = total, changes
        return False


def total_cost(priced: Priced, choice: Mapping[int, Node]) -> int:
    """The cost of the roots under ``choice``, every class paid once.

    Parameters
    ----------
    priced : Priced
        The graph and its prices.
    choice : mapping of int to Node
        A node for each class that the roots need.

    Raises
    ------
    ValueError
        If the choice has no term for a root; the message names the class.

    >>> from eqsat.extract.cost import OpCount
    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> total_cost(Priced.of(graph, OpCount()), {0: ("var", "x", ()), 1: ("neg", None, (0,))})
    1
    """
    require_priced(priced)
    refuse_other_choice(priced.graph, choice)
    return sum([priced.price(c, choice[c]) for c in reachable(choice, priced.graph.roots)])


def tree_cost(priced: Priced, choice: Mapping[int, Node]) -> int:
    """The cost of the roots under ``choice``, every use of a class paid."""
    found: dict[int, int] = {}
    for c in reachable(choice, priced.graph.roots):
        found[c] = priced.price(c, choice[c]) + sum([found[a] for a in choice[c][2]])
    return sum([found[root] for root in priced.graph.roots])
