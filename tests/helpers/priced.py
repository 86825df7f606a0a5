"""Priced e-graphs made by hand and at random, and choices in them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from random import Random

from hypothesis import strategies as st

from eqsat.extract import Choice, EGraph, Node, Priced

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


def finite_choices(graph: Priced) -> list[Choice]:
    """Every choice there is."""
    classes = graph.graph.classes
    choices = [dict(zip(classes, nodes, strict=True)) for nodes in product(*classes.values())]
    return [choice for choice in choices if is_finite(choice, graph.graph.roots)]


def grown(source: Random, classes: int, options: int) -> Priced:
    """A random graph, with circles; the first node of each class needs only earlier classes."""
    table: Table = {0: [(0, ())], 1: [(source.randint(0, 3), ())]}
    for c in range(2, classes):
        among = [range(c), *[range(classes)] * source.randint(0, options - 1)]
        table[c] = [(source.randint(0, 9), tuple(source.choices(of, k=source.randint(1, 3)))) for of in among]
    return priced(table, source.sample(range(2, classes), k=min(3, classes - 2)))


def graphs(classes: int, options: int) -> st.SearchStrategy[Priced]:
    """Random graphs of up to ``classes`` classes, each with up to ``options`` nodes."""
    return st.builds(grown, st.randoms(use_true_random=False), st.integers(3, classes), st.just(options))
