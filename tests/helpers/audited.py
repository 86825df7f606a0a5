"""E-graphs checked by evaluation: every node of a class has the value of the class, for all indices too.

Where one of them divides by zero it has none.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from eqsat.extract.graph import EGraph
from eqsat.extract.select import Priced, tree
from eqsat.lang.costs import LATENCY
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, make, var
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.terms import term_of_node, terms_of
from eqsat.lang.traversal import is_index, topological

#: The number of random points.
POINTS = 40


def freed(term: Expr, bound: frozenset[Expr] = frozenset()) -> Expr:
    """``term`` with variables in the place of the indices that no reduction in it binds."""
    if term.op == "var" and is_index(term) and term not in bound:
        name = str(term.value).replace("$", "index_").replace(":", "_").replace("-", "m")
        return var(name, term.vmin, term.vmax)
    if term.op in REDUCTIONS:
        body, index, low, high = term.args
        return make(term.op, freed(body, bound | {index}), index, freed(low, bound), freed(high, bound))
    return make(term.op, *[freed(a, bound) for a in term.args]) if term.args else term


def unequal_nodes(graph: EGraph, variables: Mapping[str, Expr], seed: int = 0) -> list[tuple[str, str, dict[str, int]]]:
    """Two terms of one class, and a point where they differ, for each node that does not have its class's value."""
    choice = tree(Priced.of(graph, LATENCY))
    terms: dict[int, Expr] = {}
    for c in graph.classes:
        if c in choice:
            try:
                terms[c] = terms_of(choice, [c], variables)[c]
            except ValueError:
                # a product of too many digits
                continue
    rng = random.Random(seed)
    points: dict[str, Any] = {}

    def values(term: Expr) -> Any:
        term = freed(term)
        for v in topological([term]):
            if v.op == "var" and not is_index(v) and v.value not in points:
                drawn = [rng.choice([v.vmin, v.vmax, rng.randint(v.vmin, v.vmax)]) for _ in range(POINTS)]
                points[str(v.value)] = np.array(drawn, dtype=object if v.vmax >= 2**63 or v.vmin < -(2**63) else None)
        names = {str(v.value) for v in topological([term]) if v.op == "var"}
        given = {name: at for name, at in points.items() if name in names}
        return np.broadcast_to(evaluate([term], given, total=True)[0], (POINTS,)).astype(object)

    def is_defined(term: Expr, point: Mapping[str, int]) -> bool:
        try:
            evaluate([freed(term)], point)
        except ZeroDivisionError:
            return False
        return True

    found = []
    for c, nodes in graph.classes.items():
        of_class = None
        for node in nodes:
            if c not in terms or not node[2] or not all(a in terms for a in node[2]):
                continue
            try:
                term = term_of_node(node, [terms[a] for a in node[2]], variables)
            except ValueError:
                continue
            of_class = values(terms[c]) if of_class is None else of_class
            for place in np.flatnonzero(values(term) != of_class):
                point = {name: int(at[place]) for name, at in points.items()}
                if is_defined(terms[c], point) and is_defined(term, point):
                    found.append((str(terms[c]), str(term), point))
                    break
    return found
