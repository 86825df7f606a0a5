"""Which classes rules look at where no normal form bounds the sums that they make: those that short terms need.

A rule may add to a class terms that are longer than others there, and rules match these in turn, without end. So a sum
is matched only if it is part of a term of the roots in which each class is written in few operators more than its
shortest term.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter
from typing import cast

from eqsat.extract.graph import EQUALITY, EGraph, Node
from eqsat.lang.ops import REDUCTIONS

#: A node is needed if its term has at most this number of operators and leaves more than the shortest of its class.
SLACK = 2
#: Of a class's nodes this number is needed, the shortest first.
MOST_NEEDED = 3


class Demand:
    """The lengths of classes' shortest terms, and the classes that the roots need."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        self._sizes: dict[int, float] = defaultdict(lambda: inf)
        # how many nodes of each class were read, and the nodes that have a class as an operand
        self._read: dict[int, int] = {}
        self._known: dict[int, set[Node]] = defaultdict(set)
        self._users: dict[int, list[tuple[int, Node]]] = defaultdict(list)
        #: Classes of nests whose loops were merged, split or swapped: they are needed however long they are, as they
        #: may be short once their bodies are rewritten.
        self.nests: set[int] = set()
        #: The classes that are reductions.
        self.loops: set[int] = set()
        #: The classes that the roots need, as they were when last asked for.
        self.needed: set[int] = set()

    def size(self, node: Node) -> float:
        """The operators and leaves of a node's shortest term."""
        op, payload, operands = node
        total = 1.0
        for a in operands:
            total += self._sizes[a]
        if op != "sum":
            return total
        constant, coefficients = cast(tuple[int, tuple[int, ...]], payload)
        total += len(operands) - 2 + 2 * bool(constant)
        for k in coefficients:
            if k not in (1, -1):
                total += 2
        return total

    def is_short(self, c: int, node: Node) -> bool:
        """Whether a node is hardly longer than the shortest of its class."""
        return self.size(node) <= self._sizes[c] + SLACK or (
            c in self.nests and (node[0] in REDUCTIONS or not self.loops.isdisjoint(node[2]))
        )

    def update(self) -> None:
        """Read what the graph has by now."""
        changed: list[tuple[float, int]] = []
        sizes = self._sizes
        for c, nodes in self.graph.classes.items():
            if len(nodes) != self._read.get(c, 0):
                self._read[c] = len(nodes)
                for node in nodes:
                    if node in self._known[c]:
                        continue
                    self._known[c].add(node)
                    if node[0] in REDUCTIONS:
                        self.loops.add(c)
                    for a in node[2]:
                        self._users[a].append((c, node))
                    if (size := self.size(node)) < sizes[c]:
                        changed.append((size, c))
        # the shortest first: each class is found once
        heapify(changed)
        while changed:
            size, c = heappop(changed)
            if size < sizes[c]:
                sizes[c] = size
                for user, node in self._users[c]:
                    if (longer := self.size(node)) < sizes[user]:
                        heappush(changed, (longer, user))
        self.needed = set()
        pending = [*self.graph.roots, *self.nests]
        while pending:
            c = pending.pop()
            if c in self.needed:
                continue
            self.needed.add(c)
            pending += self._shortest(c)

    def _shortest(self, c: int) -> Iterator[int]:
        """The classes that the shortest nodes of a class need: their operands, and the class that holds the node."""
        found: list[tuple[float, int, Node]] = []
        loops: list[tuple[int, Node]] = []
        equal = {c: None}
        pending = [c]
        while pending:
            home = pending.pop()
            for node in self.graph.classes[home]:
                if node[:2] == EQUALITY:
                    if node[2][0] not in equal:
                        equal[node[2][0]] = None
                        pending.append(node[2][0])
                elif node[0] in REDUCTIONS or not self.loops.isdisjoint(node[2]):
                    loops.append((home, node))
                elif self.is_short(home, node):
                    found.append((self.size(node), home, node))
        if len(found) > MOST_NEEDED:
            found.sort(key=itemgetter(0))
        for home, node in [*loops, *[(home, node) for _, home, node in found[:MOST_NEEDED]]]:
            yield home
            yield from node[2]
