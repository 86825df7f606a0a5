"""Reductions of minima and maxima taken apart: ``max_over(max(x, y))`` is ``max(max_over(x), max_over(y))``.

A rule that takes one operand after the other would make a reduction, and the rest, of each of the 2**n parts of ``n``
operands. So all operands are reduced at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from eqsat.egraph.tables import Tables
from eqsat.extract.graph import Node
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import topological
from eqsat.optimizer.additions import Additions
from eqsat.optimizer.reductions import members_within
from eqsat.theory.forms import as_term


class ExtremesApart:
    """Takes the reductions of extremes apart that the rules of a run take apart, each once."""

    def __init__(self, additions: Additions, tables: Tables) -> None:
        self.additions, self.builder, self.matches = additions, additions.builder, tables.matches
        self.rules = tables.taken_apart
        #: By reduction, the extreme that it is taken apart into.
        self.kinds = {op: rule.pattern.right.op for op, rule in self.rules.items()}
        self._done: set[tuple[int, Node, frozenset[int]]] = set()

    def add(self) -> None:
        """Take apart the reductions that are new, and those of bodies that are extremes by now."""
        if not self.kinds:
            return
        with self.builder.adding("rules"):
            for c, node in [*self._reductions()]:
                for members in self._extremes(node[2][0], self.kinds[node[0]]):
                    key = c, node, frozenset(members)
                    if key not in self._done:
                        self._done.add(key)
                        self._take_apart(c, node, members)

    def _reductions(self) -> Iterator[tuple[int, Node]]:
        is_name = self.builder.classes.may_be_undefined
        for c, nodes in self.builder.graph.classes.items():
            for node in nodes:
                if node[0] in self.kinds and not is_name(c) and not is_name(node[2][0]):
                    yield c, node

    def _extremes(self, body: int, kind: str) -> Iterator[list[int]]:
        """The operands of each extreme that a class is."""
        graph, is_name = self.builder.graph, self.builder.classes.may_be_undefined
        for op, _, operands in [*graph.classes[body]]:
            if op == kind:
                inside = [members_within(graph, c, kind, lambda c: not is_name(c), (body,)) for c in operands]
                yield sorted(set().union(*inside))

    def _take_apart(self, c: int, node: Node, members: list[int]) -> None:
        """Unite a reduction with the extreme of the reductions of its operands."""
        op, _, (_, index, low, high) = node
        sets, values = self.builder.theory.variables, self.builder.values
        own = sets.of(as_term(values[index]))
        inside = [t for member in members for t in topological([as_term(values[member])]) if t.op in REDUCTIONS]
        if own & reduce(or_, [sets.of(t.args[1]) for t in inside], 0):
            # an operand would be reduced over an index that it binds
            return
        found = [self.additions.add(op, None, (member, index, low, high)) for member in members]
        reductions = [r for r in found if r is not None]
        kind = self.kinds[op]
        if len(reductions) == len(members) and self.additions.value(kind, None, tuple(reductions)) != values[c]:
            whole = self.additions.add(kind, None, tuple(reductions))
            if whole is not None:
                self.matches[self.rules[op].name] += 1
                self.additions.link(c, whole)
