"""E-graphs for other programs: the language of Graphviz, and the JSON of egraph-serialize that extraction-gym reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eqsat.extract.graph import EGraph, Node
from eqsat.extract.select import Choice


def label(node: Node) -> str:
    """What a node is called without its operands.

    Parameters
    ----------
    node : Node
        The node.

    >>> label(("sum", (3, (1, -2)), (4, 5))), label(("var", "x", ())), label(("mod", None, (0, 1)))
    ('sum 3 1 -2', 'x', 'mod')
    """
    op, payload, operands = node
    if isinstance(payload, tuple):
        return " ".join(map(str, (op, payload[0], *payload[1])))
    return op if operands or payload is None else str(payload)


def to_dot(graph: EGraph, choice: Choice | None = None) -> str:
    """A graph in the language of Graphviz: a box for each class, its nodes inside, and those of ``choice`` filled.

    Parameters
    ----------
    graph : EGraph
        The graph.
    choice : mapping of int to Node, optional
        The nodes of an answer by class, such as ``Result.choice``.

    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> print(to_dot(graph, {1: ("neg", None, (0,))}))
    digraph {
      compound=true; node [shape=box]; clusterrank=local;
      subgraph cluster_0 { style=dotted; label="0"; n0_0 [label="x"]; }
      subgraph cluster_1 { style=dotted; label="1 (root)"; n1_0 [label="neg" style=filled]; }
      n1_0 -> n0_0 [lhead=cluster_0];
    }
    """
    chosen = choice or {}
    lines = ["digraph {", "  compound=true; node [shape=box]; clusterrank=local;"]
    edges = []
    for c, nodes in graph.classes.items():
        inside = []
        for place, node in enumerate(nodes):
            text = label(node).replace("\\", "\\\\").replace('"', '\\"')
            inside.append(f'n{c}_{place} [label="{text}"{" style=filled" if chosen.get(c) == node else ""}];')
            edges += [f"  n{c}_{place} -> n{a}_0 [lhead=cluster_{a}];" for a in node[2]]
        name = f"{c} (root)" if c in graph.roots else str(c)
        lines.append(f'  subgraph cluster_{c} {{ style=dotted; label="{name}"; {" ".join(inside)} }}')
    return "\n".join([*lines, *edges, "}"])


def to_egraph_serialize(graph: EGraph, prices: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """A graph as egraph-serialize has it: nodes with operator, class, cost and children, and the root classes.

    A child is a node that stands for its class: the first of it.

    Parameters
    ----------
    graph : EGraph
        The graph.
    prices : mapping of int to sequence of int
        By class the price of each node: :attr:`eqsat.extract.Priced.prices`.

    >>> graph = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
    >>> to_egraph_serialize(graph, {0: [0], 1: [1]})["nodes"]["1.0"]
    {'op': 'neg', 'children': ['0.0'], 'eclass': '1', 'cost': 1}
    """
    return {
        "nodes": {
            f"{c}.{place}": {
                "op": label(node),
                "children": [f"{a}.0" for a in node[2]],
                "eclass": str(c),
                "cost": prices[c][place],
            }
            for c, nodes in graph.classes.items()
            for place, node in enumerate(nodes)
        },
        "root_eclasses": list(dict.fromkeys(map(str, graph.roots))),
        "class_data": {str(c): {"low": str(low), "high": str(high)} for c, (low, high) in graph.bounds.items()},
    }
