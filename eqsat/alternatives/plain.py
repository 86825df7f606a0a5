"""Sums and conditions of a plain e-graph, so that what is chosen from it can be bracketed.

While a graph is built, a partial sum has the class of its normal form (:mod:`eqsat.alternatives.canonical`). Of a
graph that is read later only classes and nodes are left: here a class is the sum of other classes that its cheapest
node is, and a partial sum has the class of the sum that is equal, term for term.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from operator import or_

from eqsat.extract.graph import EGraph, Node, Payload, added, trips
from eqsat.extract.select import Choice, reachable
from eqsat.lang.expr import Expr, any_var
from eqsat.lang.ops import free_in, linear_bounds
from eqsat.theory.forms import LinearForm, Value, atom_form, combination

#: What :func:`eqsat.alternatives.partial_sums.share_junctions` brackets.
_JUNCTIONS = ("and", "or")


class PlainClasses:
    """The classes of a graph as sums over each other; nodes and classes that are added go into the graph.

    ``graph`` gains the brackets, ``everywhere`` has a node for every class that may be chosen, and ``late_or_raise``
    says whether the time is up; it may raise when that is long past.
    """

    def __init__(self, graph: EGraph, everywhere: Choice, late_or_raise: Callable[[], bool]) -> None:
        self.graph, self.late_or_raise = graph, late_or_raise
        self.values: dict[int, Value] = {}
        self._ids: dict[Value, int] = {}
        self._indices = _Indices(graph)
        # the indices of reductions that a class, or the class of an atom, speaks of, as bits
        self._bits = self._indices.of
        self._of_atom: dict[Expr, int] = {}
        self._next = max(graph.classes, default=-1) + 1
        conditions: set[int] = set()
        for c, nodes in graph.classes.items():
            for op, _, operands in nodes:
                if op in _JUNCTIONS:
                    conditions.update((c, *operands))
        for c in reachable(everywhere, everywhere):
            node = everywhere[c]
            if graph.weights:
                self._bits[c] = self._indices.below(c, node)
            found = any_var(f"class {c}", 0, 1).ne(0) if c in conditions else self._sum(c, everywhere)
            self.values[c] = found
            self._ids.setdefault(found, c)

    def _sum(self, c: int, everywhere: Choice) -> LinearForm:
        """The class as the sum that its node is, or else as an atom."""
        found = added(everywhere, everywhere[c])
        if found is not None and not (found[1] and self.late_or_raise()):
            parts = [(self.values[a], k) for a, k in found[1].items()]
            forms = [(part, k) for part, k in parts if isinstance(part, LinearForm)]
            if len(forms) == len(parts):
                return combination(forms, found[0])
        atom = any_var(f"class {c}", *self.graph.bounds[c])
        if self._bits:
            self._of_atom[atom] = self._bits[c]
        return atom_form(atom)

    def add_class(self, value: Value, expand: bool = False) -> int:
        """The class of a sum or of a joined condition, made if there is none; it has no nodes yet."""
        if (found := self._ids.get(value)) is None:
            found = self._ids[value] = self._next
            self._next += 1
            self.values[found] = value
            self.graph.classes[found] = []
            self.graph.bounds[found] = 0, 1
            if isinstance(value, LinearForm):
                ends = [((atom.vmin, atom.vmax), k) for atom, k in value.terms.items()]
                self.graph.bounds[found] = linear_bounds(value.constant, ends)
            if self._bits and isinstance(value, LinearForm):
                self._bits[found] = reduce(or_, [self._of_atom.get(atom, 0) for atom in value.terms], 0)
                self._indices.weigh(found)
        return found

    def known(self, value: Value) -> int | None:
        """The class of a value, if there is one."""
        return self._ids.get(value)

    def add_node(self, c: int, node: Node) -> bool:
        """Add a node to a class, unless it needs the class itself or an index that the class does not speak of.

        Return whether the class has the node now.
        """
        nodes = self.graph.classes[c]
        if node in nodes:
            return True
        if self._bits and c not in self._bits:
            # only the class of a new junction has none yet: it has those of its members
            self._bits[c] = self._indices.below(c, node)
            self._indices.weigh(c)
        if c in node[2] or (self._bits and self._indices.below(c, node) & ~self._bits[c]):
            return False
        nodes.append(node)
        return True


class _Indices:
    """The indices of reductions that the classes of a graph speak of, as bits."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        self.of: dict[int, int] = {}
        # by name, which says the range, the bit of an index; by bit the number of its values
        self._bits: dict[Payload, int] = {}
        self._extents: dict[int, int] = {}

    def below(self, c: int, node: Node) -> int:
        """Those that a node of a class speaks of."""
        op, value, operands = node
        if op != "var" or str(value)[0] != "$":
            return free_in(op, [self.of[a] for a in operands])
        low, high = self.graph.bounds[c]
        bit = self._bits.setdefault(value, 1 << len(self._bits))
        self._extents[bit] = trips(high - low + 1)
        return bit

    def weigh(self, c: int) -> None:
        """Note how often a class is computed: once for each value of the indices that it speaks of."""
        self.graph.weights[c] = prod([n for bit, n in self._extents.items() if self.of[c] & bit])


def bind_indices(graph: EGraph) -> None:
    """Weigh the classes by the indices of reductions that they speak of, and keep indices inside their reductions.

    A class speaks of the indices of the node that has the fewest. Nodes with an index that their class does not speak
    of are dropped.
    """
    indices = _Indices(graph)
    bits, below = indices.of, indices.below
    changed = True
    while changed:
        changed = False
        for c, nodes in graph.classes.items():
            found = [below(c, node) for node in nodes if all(map(bits.__contains__, node[2]))]
            least = min(found, key=int.bit_count, default=None)
            if least is not None and (c not in bits or least.bit_count() < bits[c].bit_count()):
                bits[c], changed = least, True
    for c in bits:
        nodes = graph.classes[c]
        inside = [node for node in nodes if all(map(bits.__contains__, node[2])) and not below(c, node) & ~bits[c]]
        if inside:
            graph.classes[c] = inside
        indices.weigh(c)
