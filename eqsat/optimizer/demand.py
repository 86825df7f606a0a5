"""Which classes rules look at where no normal form bounds the sums that they make: those that short terms need.

A rule may add to a class terms that are longer than others there, and rules match these in turn, without end. So a sum
is matched only if it is part of a term of the roots in which each class is written in few operators more than its
shortest term.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from math import inf
from typing import cast

from eqsat.extract.graph import EGraph, Node

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
        return self.size(node) <= self._sizes[c] + SLACK

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
        pending = [*self.graph.roots]
        while pending:
            c = pending.pop()
            if c not in self.needed:
                self.needed.add(c)
                found = [node for node in self.graph.classes[c] if self.is_short(c, node)]
                if len(found) > MOST_NEEDED:
                    found = sorted(found, key=self.size)[:MOST_NEEDED]
                pending += [a for node in found for a in node[2]]
