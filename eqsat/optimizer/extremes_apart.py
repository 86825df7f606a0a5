"""Reductions of minima and maxima taken apart: ``max_over(max(x, y))`` is ``max(max_over(x), max_over(y))``.

A rule that takes one operand after the other would make a reduction, and the rest, of each of the 2**n parts of ``n``
operands. So all operands are reduced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_

from eqsat.alternatives.builder import Builder
from eqsat.egraph.tables import Tables
from eqsat.extract.graph import Node, Payload
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import topological
from eqsat.optimizer.right_sides import Add, members_within
from eqsat.theory.forms import Value, as_term

#: The value of a node over classes; ``None`` if it is no term.
type ValueOf = Callable[[str, Payload, tuple[int, ...]], Value | None]


class ExtremesApart:
    """Takes the reductions of extremes apart that the rules of a run take apart, each once."""

    def __init__(self, builder: Builder, tables: Tables) -> None:
        self.builder, self.tables = builder, tables
        self.rules = tables.taken_apart
        #: By reduction, the extreme that it is taken apart into.
        self.kinds = {op: rule.pattern.right.op for op, rule in self.rules.items()}
        self._done: set[tuple[int, Node, frozenset[int]]] = set()

    def extremes(self, add: Add, value: ValueOf) -> Iterator[tuple[int, int]]:
        """The classes of reductions that are new, or whose bodies are extremes by now, and of the extremes they are.

        ``add`` adds a node to the class of its value, ``value`` tells that value.
        """
        for c, node in [*self._reductions()] if self.kinds else ():
            for members in self._extremes(node[2][0], self.kinds[node[0]]):
                key = c, node, frozenset(members)
                if key not in self._done:
                    self._done.add(key)
                    whole = self._extreme(c, node, members, add, value)
                    if whole is not None:
                        self.tables.matches[self.rules[node[0]].name] += 1
                        yield c, whole

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

    def _extreme(self, c: int, node: Node, members: list[int], add: Add, value: ValueOf) -> int | None:
        """The class of the extreme of the reductions of its operands, if it is another than that of the reduction."""
        op, _, (_, index, low, high) = node
        sets, values = self.builder.theory.variables, self.builder.values
        own = sets.of(as_term(values[index]))
        inside = [t for member in members for t in topological([as_term(values[member])]) if t.op in REDUCTIONS]
        if own & reduce(or_, [sets.of(t.args[1]) for t in inside], 0):
            # an operand would be reduced over an index that it binds
            return None
        found = [add(op, None, (member, index, low, high)) for member in members]
        reductions = [r for r in found if r is not None]
        kind = self.kinds[op]
        if len(reductions) < len(members) or value(kind, None, tuple(reductions)) == values[c]:
            return None
        return add(kind, None, tuple(reductions))
