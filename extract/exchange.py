"""E-graphs for other programs: the language of Graphviz, and the JSON of egraph-serialize that extraction-gym reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, cast

from eqsat.extract.graph import Bounds, EGraph, Node, Payload, require_graph
from eqsat.extract.select import Choice, Priced


def label(node: Node) -> str:
    """What a node is called without its operands.

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
    require_graph(graph)
    if choice is not None and not isinstance(choice, Mapping):
        raise TypeError(f"a choice is a mapping of classes to nodes, not {choice!r}")
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
    require_graph(graph)
    if not isinstance(prices, Mapping):
        raise TypeError(f"prices must be those of a Priced, Priced.of(graph, model).prices, not {prices!r}")
    for c, nodes in graph.classes.items():
        if len(prices.get(c, ())) != len(nodes):
            raise ValueError(f"the prices of class {c} are not {len(nodes)}: give those of a Priced of this graph")
    weights = graph.weights
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
        "class_data": {
            str(c): {"low": str(low), "high": str(high)} | ({"weight": str(weights[c])} if c in weights else {})
            for c, (low, high) in graph.bounds.items()
        },
    }


def from_egraph_serialize(record: Mapping[str, Any]) -> Priced:
    """The graph and the prices that a JSON object of egraph-serialize holds, as extraction-gym has them.

    Classes are numbered in the order of their first nodes, or keep their names where all of these are numbers. A leaf
    is a literal, a variable or, with brackets, a buffer. A node that does not say so has no children, and costs 1.
    What :func:`to_egraph_serialize` has written is read as it was.

    Parameters
    ----------
    record : mapping
        The object, as ``json.load`` returns it.

    Raises
    ------
    ValueError
        If nodes or roots are missing; if a node is incomplete, has a child that is no node, a name that is no text, or
        a cost that is no whole number of 0 or more; if a root is no class; or if a bound or weight of a class is no
        integer, written as text. The message names it.

    >>> node = {"op": "x", "eclass": "a", "cost": 0}
    >>> read = from_egraph_serialize({"nodes": {"n": node}, "root_eclasses": ["a"]})
    >>> read.graph.classes, read.prices, read.graph.roots
    ({0: [('var', 'x', ())]}, {0: [0]}, [0])
    """
    _refuse_wrong_record(record)
    number = _numbers(list(dict.fromkeys(node["eclass"] for node in record["nodes"].values())))
    costs = _costs(record["nodes"], number)
    data = record.get("class_data", {})
    bounds = {c: _bounds(data.get(name, {})) for name, c in number.items()}
    weights = {c: int(data[name]["weight"]) for name, c in number.items() if "weight" in data.get(name, {})}
    roots = [number[name] for name in record["root_eclasses"]]
    graph = EGraph({c: [*own] for c, own in costs.items()}, bounds, roots, weights)
    return Priced(graph, {c: [*own.values()] for c, own in costs.items()})


def _numbers(names: Sequence[str]) -> dict[str, int]:
    """The number of each class: its name, if all names are numbers, else its place."""
    # 7 and 07 are two names
    are_numbers = all(name.isdecimal() and name == str(int(name)) for name in names)
    return {name: int(name) if are_numbers else place for place, name in enumerate(names)}


def _costs(nodes: Mapping[str, Mapping[str, Any]], number: Mapping[str, int]) -> dict[int, dict[Node, int]]:
    """By class the cost of each of its nodes: of one that is there twice, the lesser cost."""
    found: dict[int, dict[Node, int]] = {c: {} for c in number.values()}
    for node in nodes.values():
        own = found[number[node["eclass"]]]
        read = _node(node["op"], tuple([number[nodes[child]["eclass"]] for child in node.get("children", ())]))
        own[read] = min(cost := int(node.get("cost", 1)), own.get(read, cost))
    return found


def _refuse_wrong_record(record: object) -> None:
    for key, kind in (("nodes", Mapping), ("root_eclasses", Sequence)):
        given = record.get(key) if isinstance(record, Mapping) else None
        if isinstance(given, str) or not isinstance(given, kind):
            raise ValueError(f"an e-graph has no {key!r}: give an object with 'nodes' and 'root_eclasses'")
    written = cast(Mapping[str, Any], record)
    nodes = written["nodes"]
    for name, node in nodes.items():
        _refuse_wrong(name, node, nodes)
    classes = {node["eclass"] for node in nodes.values()}
    if unknown := [name for name in written["root_eclasses"] if not isinstance(name, str) or name not in classes]:
        raise ValueError(f"the root {unknown[0]!r} is no class: name one that a node has as its eclass")
    _refuse_wrong_data(written.get("class_data", {}))


def _refuse_wrong(name: str, node: Mapping[str, Any], nodes: Mapping[str, Any]) -> None:
    if not isinstance(node, Mapping):
        raise ValueError(f"node {name!r} is {node!r}: give an object with op and eclass")
    if missing := [key for key in ("op", "eclass") if key not in node]:
        raise ValueError(f"node {name!r} has no {missing[0]!r}: give op and eclass")
    children = node.get("children", ())
    if isinstance(children, str) or not isinstance(children, Sequence):
        raise ValueError(f"the children of node {name!r} are {children!r}: give a list of nodes")
    if unknown := [child for child in children if not isinstance(child, str) or child not in nodes]:
        raise ValueError(f"node {name!r} has the child {unknown[0]!r}, which is no node")
    if others := [key for key in ("op", "eclass") if not isinstance(node[key], str)]:
        raise ValueError(f"the {others[0]} of node {name!r} is {node[others[0]]!r}: give text")
    cost = node.get("cost", 1)
    if not isinstance(cost, int | float) or not 0 <= cost < inf or cost != int(cost):
        raise ValueError(f"node {name!r} costs {cost!r}: give whole numbers of 0 or more")


def _refuse_wrong_data(data: object) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"the class_data are {data!r}: give an object with an object for each class")
    for name, own in data.items():
        if not isinstance(own, Mapping):
            raise ValueError(f"the class_data of {name!r} are {own!r}: give an object")
        for key, besides in (("low", ", -inf or inf"), ("high", ", -inf or inf"), ("weight", "")):
            given = own.get(key, "0")
            is_end = bool(besides) and given in ("-inf", "inf")
            if not is_end and not (isinstance(given, str) and _is_integer(given)):
                raise ValueError(f"the {key} of {name!r} is {given!r}: give an integer as text{besides}")


def _node(text: str, operands: tuple[int, ...]) -> Node:
    """The node that :func:`label` calls ``text``."""
    op, *numbers = text.split() or [text]
    if op == "sum" and len(numbers) == len(operands) + 1 and all(map(_is_integer, numbers)):
        constant, *coefficients = map(int, numbers)
        return "sum", (constant, tuple(coefficients)), operands
    if operands:
        return text, None, operands
    payload: Payload = int(text) if _is_integer(text) else text
    # of a buffer the name ends with brackets
    name = "buffer" if text.endswith("[]") else "var"
    kind = "bool" if text in ("True", "False") else "const" if isinstance(payload, int) else name
    return kind, text == "True" if kind == "bool" else payload, operands


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _bounds(data: Mapping[str, str]) -> Bounds:
    low, high = [
        cast(int, float(end)) if end.endswith("inf") else int(end)
        for end in (data.get("low", "-inf"), data.get("high", "inf"))
    ]
    return low, high
