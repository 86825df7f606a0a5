"""Priced e-graphs made by hand, and choices in them."""

from __future__ import annotations

from collections.abc import Mapping

from eqsat.extract import EGraph, Node, Priced

#: The price and the operands of each node of each class.
Table = dict[int, list[tuple[int, tuple[int, ...]]]]


def priced(table: Table, roots: list[int]) -> Priced:
    """The graph of a table."""
    nodes: dict[int, list[Node]] = {}
    for c, row in table.items():
        nodes[c] = [("add", n, args) for n, (_, args) in enumerate(row)]
    graph = EGraph(nodes, dict.fromkeys(table, (0, 9)), roots)
    return Priced(graph, {c: [price for price, _ in row] for c, row in table.items()})


def depths(choice: Mapping[int, Node], roots: list[int]) -> dict[int, int]:
    """The depth of each class below ``roots``; fails if some class needs itself."""
    found: dict[int, int] = {}

    def visit(c: int, above: tuple[int, ...]) -> int:
        assert c not in above, f"class {c} needs itself"
        if c not in found:
            found[c] = 1 + max((visit(a, (*above, c)) for a in choice[c][2]), default=0)
        return found[c]

    for root in roots:
        visit(root, ())
    return found


def is_finite(choice: Mapping[int, Node], roots: list[int]) -> bool:
    """Whether no class that the roots need needs itself."""
    try:
        depths(choice, roots)
    except AssertionError:
        return False
    return True
