"""The e-graph that an answer was chosen from, kept so that one may choose from it again.

A run leaves a :class:`Snapshot`: its e-graphs and what is needed to read them. :meth:`Snapshot.built` makes
one :class:`~eqsat.extract.graph.EGraph` of it: the part that the roots can reach, in which every class
has a finite term, with the answer's own nodes where those are not in it (a division kept from zero, a root that was
found in another way). All nodes of a class are equal where the constraints hold, and the class of a root equals that
root where its gate holds; by rules alone all classes of the roots with a gate are equal only where that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from eqsat.alternatives.plain import bind_indices
from eqsat.extract.graph import EQUALITY, EGraph, Node
from eqsat.extract.select import Choice, reachable, reachable_part, refuse_other_choice
from eqsat.lang.expr import Expr
from eqsat.lang.properties import VariableSets
from eqsat.lang.terms import node_of, terms_of
from eqsat.lang.traversal import named_leaves, topological

#: The number of the part of roots that are in none.
NO_PART = -1


@dataclass(frozen=True)
class Part:
    """One e-graph of a run as the run left it, for all roots or for some."""

    graph: EGraph
    #: Pairs of the place of a root and a class that equals the root where its gate holds; a place may have several.
    wanted: tuple[tuple[int, int], ...]
    #: What the run chose, for the classes that it needs.
    choice: Choice = field(default_factory=dict)
    #: By class a term of the input, which stands for one that would be too wide.
    narrower: dict[int, Expr] = field(default_factory=dict)


@dataclass
class Built:
    """The e-graph of an answer, and how it holds that answer."""

    #: Its roots are the classes of the result's roots, in their order.
    graph: EGraph
    #: The e-nodes of the answer.
    choice: Choice
    #: By class a term of the input, which stands for one that would be too wide.
    narrower: dict[int, Expr]
    #: What the nodes ``"var"`` and ``"buffer"`` name.
    leaves: dict[str, Expr]

    def terms(self, choice: Choice, graph: EGraph | None = None) -> list[Expr]:
        """The terms of a choice for the roots of the graph, or of one that has gained classes since."""
        graph = self.graph if graph is None else graph
        refuse_other_choice(graph, choice)
        terms = terms_of(choice, graph.roots, self.leaves, self.narrower.get)
        return [terms[root] for root in graph.roots]


@dataclass(frozen=True)
class Snapshot:
    """What a run leaves of its e-graphs."""

    #: The theory's e-graph, or those of the rules alone, one for each gate.
    parts: tuple[Part, ...]
    #: Whether branches that are not chosen, and roots whose gate does not hold, may divide by zero.
    lazy: bool

    def built(self, exprs: tuple[Expr, ...], gates: Sequence[Expr | None], known: Iterable[Expr]) -> Built:
        """The e-graph with the answer ``exprs`` in it; leaves of the input and the facts (``known``) may occur."""
        return _Building(self.parts, [*known, *exprs]).with_answer(exprs, gates)


class _Building:
    """One e-graph made of the parts and the answer; leaves of ``known`` terms may occur."""

    def __init__(self, parts: Sequence[Part], known: Iterable[Expr]) -> None:
        self.leaves = named_leaves(topological(known))
        self.graph = EGraph()
        self.next = 0
        self.sets = VariableSets()
        self.chosen: Choice = {}
        self.narrower: dict[int, Expr] = {}
        # by the place of a root, its classes; the term that was chosen for each class
        self.wanted: dict[int, list[int]] = {}
        self.term_of: dict[int, Expr] = {}
        # the number of the part of each class
        self.part_of: dict[int, int] = {}
        for number, part in enumerate(parts):
            self._add(part, number)
        if any(not part.choice for part in parts):
            # e-graphs of rules alone do not say how often their nodes are computed
            bind_indices(self.graph)
        # by part: where a gate holds more is equal than elsewhere
        self.class_of: dict[tuple[int, Expr], int] = {}
        for c, term in self.term_of.items():
            self.class_of.setdefault((self.part_of[c], term), c)
        self.owner: dict[tuple[int, Node], int] = {}
        for c, nodes in self.graph.classes.items():
            for node in nodes:
                self.owner.setdefault((self.part_of[c], node), c)
        #: The answer's choice, and the classes of its terms by the part that they are in.
        self.choice: Choice = {}
        self.done: dict[tuple[int, Expr], int] = {}

    def with_answer(self, exprs: Sequence[Expr], gates: Sequence[Expr | None]) -> Built:
        """The e-graph once it holds the terms of an answer; its roots are the classes of these."""
        classes = [self.wanted.get(place, []) for place in range(len(exprs))]
        # first what the run chose, which other terms are made of
        tops = [self._as_chosen(of_root, term) for of_root, term in zip(classes, exprs, strict=True)]
        for place, (of_root, term) in enumerate(zip(classes, exprs, strict=True)):
            if tops[place] is None:
                tops[place] = self._insert(term, self.part_of[of_root[0]] if of_root else NO_PART)
        for of_root, top, gate in zip(classes, tops, gates, strict=True):
            self.graph.roots.append(self._root(of_root, cast(int, top), gate))
        graph = reachable_part(self.graph)
        narrower = {c: term for c, term in self.narrower.items() if c in graph.classes}
        choice = {c: self.choice[c] for c in reachable(self.choice, graph.roots)}
        return Built(graph, choice, narrower, self.leaves)

    def _add(self, part: Part, number: int) -> None:
        """Copy a part, its classes numbered from where those before end."""
        first, graph = self.next, part.graph
        self.next += max(graph.classes, default=-1) + 1

        def moved(node: Node) -> Node:
            return (node[0], node[1], tuple([a + first for a in node[2]])) if first else node

        for c, nodes in graph.classes.items():
            self.graph.classes[c + first] = [*map(moved, nodes)]
            self.graph.bounds[c + first] = graph.bounds[c]
            self.part_of[c + first] = number
        self.graph.weights |= {c + first: weight for c, weight in graph.weights.items()}
        self.narrower |= {c + first: term for c, term in part.narrower.items()}
        for place, c in part.wanted:
            self.wanted.setdefault(place, []).append(c + first)
        if part.choice:
            roots = [c for _, c in part.wanted]
            found = terms_of(part.choice, roots, self.leaves, part.narrower.get)
            self.term_of |= {c + first: term for c, term in found.items()}
            self.chosen |= {c + first: moved(part.choice[c]) for c in found}

    def _fresh(self, node: Node, bounds: tuple[int, int], weight: int) -> int:
        """A new class with one node."""
        c, self.next = self.next, self.next + 1
        self.graph.classes[c] = [node]
        self.graph.bounds[c] = bounds
        if weight > 1:
            self.graph.weights[c] = weight
        return c

    def _as_chosen(self, classes: Iterable[int], term: Expr) -> int | None:
        """The class among those of a root for which the run chose ``term``; the answer's choice is the run's there."""
        c = next((c for c in classes if self.term_of.get(c) is term), None)
        if c is not None:
            self._keep(c)
        return c

    def _keep(self, c: int) -> None:
        for k in reachable(self.chosen, [c]):
            self.choice[k] = self.chosen[k]

    def _insert(self, root: Expr, part: int) -> int:
        """The class of a term of the answer, made of what the run chose in this part as far as that goes."""
        waiting = [root]
        while waiting:
            term = waiting[-1]
            if (part, term) in self.done:
                waiting.pop()
            elif (part, term) in self.class_of:
                c = self.done[part, term] = self.class_of[part, term]
                self._keep(c)
            elif missing := [a for a in term.args if (part, a) not in self.done]:
                waiting += missing
            else:
                node = node_of(term, tuple([self.done[part, a] for a in term.args]))
                self.done[part, term] = self._class_for(term, node, part)
        return self.done[part, root]

    def _class_for(self, term: Expr, node: Node, part: int) -> int:
        """The class of this part that has the node, unless that is chosen otherwise, or else a new one.

        The node is chosen.
        """
        c = self.owner.get((part, node), -1)
        other = self.choice.get(c, self.chosen.get(c, node))
        if c < 0 or other != node:
            c = self._fresh(node, (term.vmin, term.vmax), self.sets.times(self.sets.of(term)))
            self.owner.setdefault((part, node), c)
        self.choice[c] = node
        return c

    def _root(self, classes: Sequence[int], top: int, gate: Expr | None) -> int:
        """The class of a root: that of the graph, or a new one with both that and the answer's."""
        others = [c for c in classes if c != top]
        if not others:
            return top
        if gate is None:
            # equal wherever the constraints hold
            if top in classes:
                self.graph.classes[top] += map(same, others)
                return top
            c = others[0]
            if c not in self.choice:
                self.graph.classes[c] += map(same, [*others[1:], top])
                self.choice[c] = same(top)
                return c
        c = others[0]
        low, high = self.graph.bounds[c]
        least, most = self.graph.bounds[top]
        bounds = (max(low, least), min(high, most)) if max(low, least) <= min(high, most) else (least, most)
        root = self._fresh(same(c), bounds, 1)
        self.graph.classes[root] = [*map(same, [*others, top])]
        self.choice[root] = same(top)
        return root


def same(c: int) -> Node:
    """The node that is class ``c`` itself, and costs nothing."""
    return (*EQUALITY, (c,))
