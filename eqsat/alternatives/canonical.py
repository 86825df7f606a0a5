"""An e-graph whose classes are normal forms and conditions: one class for each value that is needed.

Classes are numbered in the order in which they are first needed, which depends on the normal forms alone. An n-ary
node is ``("sum", (constant, coefficients), operands)``: one row where associativity and commutativity would make
exponentially many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from eqsat.alternatives.limits import LIMITS
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Bounds, EGraph, Node, sum_of, sum_payload
from eqsat.lang.expr import Expr, make
from eqsat.lang.ops import DIVISIONS, OPS, REDUCTIONS, free_in, is_finite, linear_bounds, reduction_bounds, trip_bounds
from eqsat.lang.terms import node_of
from eqsat.lang.traversal import index_level
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, LinearForm, Value, as_term, atom_form, to_expr

#: The operators whose bounds are often tighter than those of the sums that they are.
_NARROWING = DIVISIONS | {"min", "max", "where"}
#: Of an operator, a dividend and a divisor, what may stand in place of the divisor
#: (:meth:`eqsat.theory.definedness.AllowedDivisions.divisor`).
type Divisor = Callable[[str, LinearForm, LinearForm], LinearForm]


class CanonicalGraph:
    """Classes by their values, with the nodes that compute them."""

    def __init__(self, theory: Arithmetic, allowed_divisor: Divisor | None = None) -> None:
        self.theory, self.late_or_raise = theory, theory.late_or_raise
        # what nodes may divide by, if not all divisions are allowed
        self._allowed_divisor = allowed_divisor
        #: The class value of any term.
        self.value_of = theory.value
        self.graph = EGraph()
        #: The number of its e-nodes.
        self.size = 0
        self.values: list[Value] = []
        self._ids: dict[Value, int] = {}
        # the classes of atoms that sums were made of
        self._atoms: dict[Expr, int] = {}
        #: The classes that have no e-nodes yet.
        self.pending: list[int] = []
        # the number of values of each index of a reduction, by its bit
        self._extents = theory.variables.index_extents
        self._indices: dict[int, int] = {}
        #: Nodes that equal a class and were refused: they use an index that the value of the class does not speak of,
        #: or are terms of the input with the class itself as an operand.
        self.outside: dict[tuple[int, Node], None] = {}
        # the nodes of classes that have many
        self._nodes_of_large: dict[int, set[Node]] = {}
        self._remainders: dict[Expr, LinearForm] = {}
        #: Whether the input divides toward zero: an answer divides as its input does.
        self.truncates = False
        # how many classes have been narrowed
        self._narrowed = 0
        # whether any node divides by what may be zero; of classes asked about, whether their values do
        self._has_suspects = False
        self._undefined: dict[int, bool] = {}

    def add_class(self, value: Value, expand: bool = True) -> int:
        """The class of a normal form; it waits for its e-nodes, unless ``expand`` is false."""
        if (found := self._ids.get(value)) is None:
            # this may raise when the time is up: a class is never without bounds
            bounds = self.theory.plain_bounds(value) if isinstance(value, LinearForm) else (value.vmin, value.vmax)
            found = self._ids[value] = len(self.values)
            self.values.append(value.ordered() if isinstance(value, LinearForm) else value)
            self.graph.classes[found] = []
            self.graph.bounds[found] = bounds
            if self._extents:
                self.graph.weights[found] = self.theory.variables.times(self._indices_of(found))
            if expand:
                self.pending.append(found)
        return found

    def known(self, value: Value) -> int | None:
        """The class of a normal form, if there is one."""
        return self._ids.get(value)

    def add_atom(self, atom: Expr) -> int:
        """The class of an atom, which may be known to equal another form."""
        if (found := self._atoms.get(atom)) is None:
            found = self._atoms[atom] = self.add_class(self.theory.inner(atom))
        return found

    def form_of(self, c: int) -> LinearForm:
        """The normal form that a class of integers is."""
        return cast(LinearForm, self.values[c])

    def __contains__(self, value: Value) -> bool:
        return value in self._ids

    def is_sum(self, c: int) -> bool:
        """Whether a class has several terms."""
        value = self.values[c]
        return isinstance(value, LinearForm) and len(value.terms) > 1

    def remainder_of(self, quotient: Expr) -> LinearForm:
        """``A % n`` of a quotient ``A // n``, as a sum."""
        if (found := self._remainders.get(quotient)) is None:
            dividend, divisor = map(self.theory.inner, quotient.args)
            multiple = self.theory.times(divisor, atom_form(quotient))
            found = self._remainders[quotient] = dividend.plus(multiple, -1)
        return found

    def operands(self, term: Expr) -> tuple[int, ...]:
        """The classes of the operands of a term in normal form."""
        return tuple([self.add_class(a if a.is_bool else self.theory.inner(a)) for a in term.args])

    def node(self, op: str, *operands: Value) -> Node:
        """The node that applies an operator to classes."""
        return op, None, tuple([self.add_class(operand) for operand in operands])

    def own_node(self, term: Expr) -> Node:
        """A term in normal form as its operator over its operands."""
        return node_of(term, self.operands(term))

    def plain_sum(self, form: LinearForm) -> Node:
        """A sum as multiples of its atoms, and a constant."""
        return sum_of([(self.add_atom(a), k) for a, k in form.terms.items()], form.constant)

    def hoisted_sum(self, form: LinearForm) -> Iterator[Node]:
        """A sum whose terms with fewer indices of reductions than it has are one operand, which is computed less often.

        If all have fewer, the operand has those without the index of the innermost loop: of ``i*64 + r*8 + s``, with
        ``s`` in the inner loop, ``i*64 + r*8``. There must be at least two such terms, counting the constant.
        """
        if not self._extents:
            return
        own, sets = self._indices_of(self.add_class(form)), self.theory.variables
        if not own:
            return
        often = LinearForm({a: k for a, k in form.terms.items() if sets.of(a) & own == own}, 0)
        if not often.terms:
            innermost = min([(index_level(index), bit) for bit, index in sets.indices.items() if bit & own])[1]
            often = LinearForm({a: k for a, k in form.terms.items() if sets.of(a) & innermost}, 0)
        rest = form.plus(often, -1)
        if rest.addends() > 1:
            yield self.sum_node([(rest, 1)], often)

    def sum_node(self, parts: Iterable[tuple[Value, int]], rest: LinearForm = ZERO) -> Node:
        """The node that adds multiples of classes, and the terms of ``rest`` one by one."""
        terms = [*parts, *[(atom_form(a), k) for a, k in rest.terms.items()]]
        return sum_of([(self.add_class(part), k) for part, k in terms], rest.constant)

    def add_node(self, c: int, node: Node) -> bool:
        """Add a node to a class, and return whether the class has it now.

        A node is refused if it needs the class itself, or an index that the class does not speak of: an index may be
        used inside its reduction alone. In place of a division that is not allowed, one by what is never zero is added.
        """
        if node[0] in DIVISIONS:
            low, high = self.graph.bounds[node[2][1]]
            self._has_suspects |= low <= 0 <= high
            if low <= 0 <= high and self._is_undefined_alone(c, node):
                return False
            if self._allowed_divisor is not None:
                node = self._safe(node, self._allowed_divisor)
        if self.has_node(c, node):
            return True
        nodes = self.graph.classes[c]
        if c in node[2]:
            return False
        if self._extents and free_in(node[0], list(map(self._indices_of, node[2]))) & ~self._indices_of(c):
            self.outside[c, node] = None
            return False
        nodes.append(node)
        if c in self._nodes_of_large:
            self._nodes_of_large[c].add(node)
        self.size += 1
        if node[0] == "mul" or node[0] in REDUCTIONS or (node[0] in _NARROWING and c < self._narrowed):
            self._narrow(c, node)
        return True

    def has_node(self, c: int, node: Node) -> bool:
        """Whether a class has a node."""
        nodes = self.graph.classes[c]
        if len(nodes) < LIMITS.listed_nodes:
            return node in nodes
        known = self._nodes_of_large.get(c)
        if known is None or len(known) != len(nodes):
            known = self._nodes_of_large[c] = set(nodes)
        return node in known

    def narrow(self) -> None:
        """Narrow the bounds of the classes since the last time by their nodes, operands first."""
        for c in reversed(range(self._narrowed, len(self.values))):
            for node in self.graph.classes[c]:
                if node[0] in _NARROWING:
                    self._narrow(c, node)
        self._narrowed = len(self.values)

    def narrowed_sum(self, c: int) -> Bounds:
        """The bounds of a class, narrowed by the sums that it is: where it is a dividend, its sign decides a price."""
        for node in self.graph.classes[c]:
            if node[0] == "sum":
                self._narrow(c, node)
        return self.graph.bounds[c]

    def may_be_undefined(self, c: int) -> bool:
        """Whether a class divides by what may be zero: where it does, its e-nodes may have different values."""
        if not self._has_suspects:
            return False
        if (found := self._undefined.get(c)) is None:
            found = self._undefined[c] = self.theory.may_be_undefined(as_term(self.values[c]))
        return found

    def _is_undefined_alone(self, c: int, division: Node) -> bool:
        """Whether a division may be by zero where the class has a value: ``(d*y*z)//d`` is no ``y*z`` there."""
        if not self.theory.is_canonical or self.may_be_undefined(c):
            return False
        term = make(division[0], *[to_expr(self.form_of(a)) for a in division[2]])
        # a class itself has a value where it has one, even when it is too late for the theory to see that
        return term is not as_term(self.values[c]) and self.theory.may_be_undefined(term)

    def _narrow(self, c: int, node: Node) -> None:
        """Narrow the bounds of a class by those of a node, if they overlap: the normal form often has wider ones."""
        bounds = self.graph.bounds
        op, payload, inner = node
        operands = [bounds[a] for a in inner]
        if op == "sum":
            constant, coefficients = sum_payload(payload)
            known = linear_bounds(constant, zip(operands, coefficients, strict=True))
        elif op in REDUCTIONS:
            body, _, first, end = operands
            known = reduction_bounds(op, body, trip_bounds(first, end)) or bounds[c]
        else:
            known = OPS[op].bounds(*operands)
        (low, high), (least, most) = bounds[c], known
        if low < least <= high or low <= most < high:
            bounds[c] = max(low, least), min(high, most)

    def _safe(self, division: Node, allowed_divisor: Divisor) -> Node:
        """A division, by what is never zero in place of a divisor that is not allowed."""
        dividend, divisor = map(self.form_of, division[2])
        # what keeps an index from being some number is its reduction, which is not known here
        if not divisor.terms or self._indices_of(division[2][1]):
            return division
        by = allowed_divisor(division[0], dividend, divisor)
        return division if by is divisor else (division[0], None, (division[2][0], self.add_class(by)))

    def _indices_of(self, c: int) -> int:
        """The indices that a class speaks of, as bits: it is computed once for each of their values."""
        if (found := self._indices.get(c)) is None:
            found = self._indices[c] = self._variables_of(c) & sum(self._extents)
        return found

    def _variables_of(self, c: int) -> int:
        """The variables, indices and buffers that a class speaks of, as bits."""
        value, found = self.values[c], 0
        for atom in value.terms if isinstance(value, LinearForm) else (value,):
            found |= self.theory.variables.of(atom)
        return found

    def within_variables(self) -> EGraph:
        """The graph without the nodes that speak of a variable that the value of their class does not."""
        found, of_class = self.graph.copy(), [self._variables_of(c) for c in range(len(self.values))]
        for c, nodes in found.classes.items():
            found.classes[c] = [n for n in nodes if not free_in(n[0], [of_class[a] for a in n[2]]) & ~of_class[c]]
        return found

    def is_crowded(self) -> bool:
        """Whether there are many classes, for the time that is left."""
        return len(self.values) >= LIMITS.classes or self.is_out_of_time()

    def is_out_of_time(self, terms: int = 0) -> bool:
        """Whether the time is up and classes, and ``terms``, are many: one alternative of each must do."""
        return len(self.values) + terms >= LIMITS.late_classes and self.theory.late_or_raise()


class KindNodes:
    """The base of what adds e-nodes of one kind of value: the classes, with short names for what it uses most.

    The classes do not refer back to it: cyclic garbage would stay, as collection is paused during a run.
    """

    def __init__(self, classes: CanonicalGraph) -> None:
        self.classes = classes
        self.theory = classes.theory
        self.add_class = classes.add_class
        self.operands = classes.operands
        self.node = classes.node
        self.sum_node = classes.sum_node


def shift_to_non_negative(low: int, n: int) -> int:
    """The multiple of ``n`` to add to numbers from ``low`` on so that none is negative; 0 if no division is cheaper so.

    A division by a literal that is no power of two costs more if the dividend may be negative.
    """
    return 0 if low >= 0 or not is_finite(low) or n < 0 or is_power_of_two(n) else -(low // n) * n
