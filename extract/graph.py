"""A frozen e-graph as plain data: what the extractors read.

A class is an integer. A node is a triple ``(op, value, operands)``: an operator name of the language, the literal or
the variable's name for a leaf (else ``None``), and the classes of its operands. An n-ary sum is ``("sum", (constant,
coefficients), operands)``. All nodes of a class have equal values for every value of the variables; ``bounds`` gives
the inclusive range of that value, from which nodes are priced, and ``weights`` how often it is computed where that is
more than once: in the body of a reduction once per step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

Payload = int | str | tuple[int, tuple[int, ...]] | None
Node = tuple[str, Payload, tuple[int, ...]]
Bounds = tuple[int, int]


@dataclass
class EGraph:
    """Classes of equal nodes, the bounds of each class, and the classes that are wanted."""

    classes: dict[int, list[Node]] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of e-nodes."""
        return sum(map(len, self.classes.values()))


def united(graph: EGraph, pairs: Iterable[Sequence[int]]) -> tuple[EGraph, dict[int, int]]:
    """``graph`` with the classes of each pair as one, and so all that follows by congruence; and where each class is.

    >>> nodes = [("var", "x", ()), ("var", "y", ()), ("neg", None, (0,)), ("neg", None, (1,))]
    >>> graph = EGraph({c: [node] for c, node in enumerate(nodes)}, dict.fromkeys(range(4), (-9, 9)))
    >>> found, home = united(graph, [(0, 1)])
    >>> found.classes, home
    ({0: [('var', 'x', ()), ('var', 'y', ())], 2: [('neg', None, (0,))]}, {0: 0, 1: 0, 2: 2, 3: 2})
    """
    parent = {c: c for c in graph.classes}

    def find(c: int) -> int:
        while parent[c] != c:
            parent[c] = parent[parent[c]]
            c = parent[c]
        return c

    waiting = list(pairs)
    while True:
        for x, y in waiting:
            low, high = sorted((find(x), find(y)))
            parent[high] = low
        waiting = []
        owner: dict[Node, int] = {}
        classes: dict[int, list[Node]] = {}
        for c, nodes in graph.classes.items():
            home = find(c)
            own = classes.setdefault(home, [])
            for node in nodes:
                canonical = _with_operands(node, tuple([find(a) for a in node[2]]))
                other = owner.setdefault(canonical, home)
                if other != home:
                    waiting.append((other, home))
                elif canonical not in own and home not in canonical[2]:
                    own.append(canonical)
        if not waiting:
            break
    bounds: dict[int, Bounds] = {}
    weights: dict[int, int] = {}
    for c in graph.classes:
        home = find(c)
        low, high = graph.bounds[c]
        least, most = bounds.get(home, (low, high))
        bounds[home] = max(low, least), min(high, most)
        if c in graph.weights:
            weights[home] = min(graph.weights[c], weights.get(home, graph.weights[c]))
    places = {c: find(c) for c in graph.classes}
    return EGraph(classes, bounds, [places[c] for c in graph.roots], weights), places


def _with_operands(node: Node, operands: tuple[int, ...]) -> Node:
    """``node`` with other operands; those of a sum in order."""
    op, value, _ = node
    if op != "sum":
        return op, value, operands
    constant, coefficients = cast(tuple[int, tuple[int, ...]], value)
    terms = sorted(zip(operands, coefficients, strict=True))
    return op, (constant, tuple([k for _, k in terms])), tuple([c for c, _ in terms])
