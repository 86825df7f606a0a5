"""Which classes rules match where no normal form bounds the sums that they make: those that short terms need.

A rule may add to a class terms that are longer than others there, and rules match these in turn, without end. So a sum
is matched only if it is part of a term of the roots in which each class has few operators more than its shortest term.
Loops are matched however long they are: a nest that was merged or split is short only once its body is rewritten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter

from eqsat.extract.graph import EQUALITY, EGraph, Node, reached, sum_payload
from eqsat.lang.ops import REDUCTIONS
from eqsat.optimizer.limits import LIMITS


class Demand:
    """The lengths of classes' shortest terms, and the classes that the roots need."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        self._sizes: dict[int, float] = defaultdict(lambda: inf)
        # by class the number of nodes that were read, these nodes, and the nodes that have the class as an operand
        self._read: dict[int, int] = {}
        self._known: dict[int, set[Node]] = defaultdict(set)
        self._users: dict[int, list[tuple[int, Node]]] = defaultdict(list)
        #: Classes that loops were merged, split or swapped into, and what rules about reductions made of these.
        self.nests: set[int] = set()
        # the classes that are reductions
        self._loops: set[int] = set()
        #: The classes that the roots need, as they were when last asked for.
        self.needed: set[int] = set()

    def size(self, node: Node) -> float:
        """The operators and leaves of a node's shortest term."""
        op, payload, operands = node
        total = 1.0 + sum([self._sizes[a] for a in operands])
        if op != "sum":
            return total
        constant, coefficients = sum_payload(payload)
        products = [k for k in coefficients if k not in (1, -1)]
        return total + len(operands) - 2 + 2 * (bool(constant) + len(products))

    def is_short(self, c: int, node: Node) -> bool:
        """Whether a node is hardly longer than the shortest of its class, or a loop of a nest."""
        return self.size(node) <= self._sizes[c] + LIMITS.slack or (c in self.nests and self._is_loop(node))

    def _is_loop(self, node: Node) -> bool:
        """Whether a node is a reduction, or the sum of one and something else."""
        op, _, operands = node
        return op in REDUCTIONS or (op == "sum" and len(operands) == 2 and not self._loops.isdisjoint(operands))

    def update(self) -> None:
        """Read what the graph has by now."""
        self._shorten(self._read_nodes())
        self.needed = set(reached([*self.graph.roots, *self.nests], self._shortest))

    def _read_nodes(self) -> list[tuple[float, int]]:
        """Read the nodes that are new: the length and class of each that is shorter than its class was."""
        found: list[tuple[float, int]] = []
        for c, nodes in self.graph.classes.items():
            if len(nodes) == self._read.get(c, 0):
                continue
            self._read[c] = len(nodes)
            for node in nodes:
                if node in self._known[c]:
                    continue
                self._known[c].add(node)
                if node[0] in REDUCTIONS:
                    self._loops.add(c)
                for a in node[2]:
                    self._users[a].append((c, node))
                if (size := self.size(node)) < self._sizes[c]:
                    found.append((size, c))
        return found

    def _shorten(self, changed: list[tuple[float, int]]) -> None:
        """Take the new lengths of classes, and shorten the classes that use them."""
        sizes = self._sizes
        # the shortest first: each class is found once
        heapify(changed)
        while changed:
            size, c = heappop(changed)
            if size < sizes[c]:
                sizes[c] = size
                for user, node in self._users[c]:
                    if (longer := self.size(node)) < sizes[user]:
                        heappush(changed, (longer, user))

    def _shortest(self, c: int) -> Iterator[int]:
        """The classes that the shortest nodes of a class, and its loops, need: their own class and their operands."""
        short: list[tuple[float, int, Node]] = []
        loops: list[tuple[int, Node]] = []
        for home in self.graph.equal_classes(c):
            for node in self.graph.classes[home]:
                if node[:2] == EQUALITY:
                    continue
                if self._is_loop(node):
                    loops.append((home, node))
                elif self.is_short(home, node):
                    short.append((self.size(node), home, node))
        short.sort(key=itemgetter(0))
        for home, node in [*loops, *[(home, node) for _, home, node in short[: LIMITS.needed]]]:
            yield home
            yield from node[2]
