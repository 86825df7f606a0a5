"""The builder of the canonical e-graph: it adds the e-nodes of each class that the roots need.

A class is a normal form; its e-nodes are the ways to compute it. Each kind of value has a module whose ``nodes`` yields
those that the theory knows: :mod:`eqsat.alternatives.quotients`, :mod:`eqsat.alternatives.products`,
:mod:`eqsat.alternatives.selections`, :mod:`eqsat.alternatives.extremes`, :mod:`eqsat.alternatives.conditions`;
:mod:`eqsat.alternatives.inputs` adds the terms of the input. About a sum the builder asks all of them in order.

Extraction then chooses, and :func:`eqsat.alternatives.partial_sums.share_sums` brackets the chosen sums so that they
share partial sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.conditions import ConditionNodes
from eqsat.alternatives.extremes import ExtremeNodes
from eqsat.alternatives.inputs import InputNodes
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.products import ProductNodes
from eqsat.alternatives.providers import provides
from eqsat.alternatives.quotients import QuotientNodes
from eqsat.alternatives.ranges import with_one_loop, with_one_range
from eqsat.alternatives.selections import SelectionNodes
from eqsat.extract.graph import EGraph, Node
from eqsat.extract.select import Choice, with_nodes
from eqsat.lang.expr import Expr
from eqsat.lang.terms import terms_of
from eqsat.lang.traversal import topological
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.definedness import AllowedDivisions
from eqsat.theory.forms import LinearForm, Value, atom_form, number


class Builder:
    """An e-graph over normal forms, grown on demand from the roots.

    ``added`` gains, by what added them, the numbers of its e-nodes.
    """

    def __init__(
        self,
        theory: Arithmetic,
        leaves: Mapping[str, Expr],
        allowed: AllowedDivisions | None = None,
        added: Counter[str] | None = None,
    ) -> None:
        classes = self.classes = CanonicalGraph(theory, None if allowed is None else allowed.divisor)
        # what others ask of the classes
        self.theory, self.graph, self.values = theory, classes.graph, classes.values
        self.value_of, self.form_of, self.is_sum = classes.value_of, classes.form_of, classes.is_sum
        self.add_class, self.add_node = classes.add_class, classes.add_node
        self.operands, self.node, self.sum_node = classes.operands, classes.node, classes.sum_node
        # by name the variables, and the buffers, whose names are followed by brackets
        self.leaves = dict(leaves)
        self.input = InputNodes(classes)
        self.products = ProductNodes(classes)
        self.selections = SelectionNodes(classes)
        self.extremes = ExtremeNodes(classes)
        self.quotients = QuotientNodes(classes)
        self.conditions = ConditionNodes(classes)
        # by operator, what adds the e-nodes of an atom, and its name; ``None`` if that is its own node alone
        self._kinds: dict[str, tuple[str, Callable[[Expr], Iterator[Node]] | None]] = {
            "mul": ("products", self.products.nodes),
            "floordiv": ("quotients", self.quotients.nodes),
            "tdiv": ("quotients", None),
            "min": ("extremes", self.extremes.nodes),
            "where": ("selections", None),
        }
        self.added: Counter[str] = Counter() if added is None else added
        # what adds e-nodes outside ``grow``, and how many are in ``added`` already
        self._source, self._credited = "conditions", 0

    @contextmanager
    def adding(self, source: str) -> Iterator[None]:
        """Count e-nodes that are added here as those of ``source``, but for those that ``grow`` adds."""
        self._credit(self._source)
        before, self._source = self._source, source
        try:
            yield
        finally:
            self._credit(source)
            self._source = before

    def _credit(self, source: str) -> None:
        """Count what has been added since the last time as e-nodes of ``source``."""
        size = self.classes.size
        if size > self._credited:
            self.added[source] += size - self._credited
            self._credited = size

    def add_term(self, term: Expr) -> int:
        """The class of a term; it and the classes of its operands gain the nodes that the term is written with."""
        c = self.add_class(self.value_of(term))
        for part in topological([term]):
            if (node := self.input.written(part)) is not None:
                self.add_node(self.add_class(self.value_of(part)), node)
        return c

    def add_roots(self, values: Iterable[Value]) -> None:
        """Make the classes of ``values`` the roots; a junction also gets the node that it has in context.

        There each member is simplified assuming the others (:meth:`eqsat.theory.arithmetic.Arithmetic.in_context`).
        """
        self.graph.roots = sorted({self.add_class(value) for value in values})
        for c in self.graph.roots if self.theory.is_canonical else ():
            value = self.values[c]
            if isinstance(value, Expr) and value.op in ("and", "or"):
                simpler = self.theory.in_context(value)
                if simpler is not value:
                    self.grow()
                    self.add_node(c, self.classes.own_node(simpler))

    def grow(self) -> None:
        """Add the e-nodes of every class that is needed and not yet expanded."""
        classes = self.classes
        self._credit(self._source)
        count = 0
        while classes.pending:
            count += 1
            if count % LIMITS.terms_per_look == 0:
                # raises if it is long past the time: the answer is then what was found before
                self.theory.late_or_raise()
            c = classes.pending.pop()
            kind, nodes = self._nodes(self.values[c])
            for node in nodes:
                self.add_node(c, node)
            self._credit(kind)
            if not classes.is_crowded():
                self.input.add_to(c)
                self._credit("input")
            if not classes.pending:
                self.quotients.add_nested()
                self._credit("nested quotients")
                self.input.add_waiting()
                self._credit("input")
        for variable, form in self.theory.solved.items():
            if form in classes:
                self.add_node(self.add_class(form), classes.own_node(variable))
        self._credit("nested quotients")
        classes.narrow()

    def _nodes(self, value: Value) -> tuple[str, Iterable[Node]]:
        """The kind of a value, and the ways to compute it by the laws of that."""
        if not self.theory.is_canonical:
            return "input", self._as_it_is(value)
        if isinstance(value, Expr):
            return "conditions", self.conditions.nodes(value)
        atom = value.single()
        if atom is None:
            return "sums", self._sums(value)
        kind, nodes = self._kinds.get(atom.op, ("leaves", None))
        return kind, nodes(atom) if nodes else [self.classes.own_node(atom)]

    def _sums(self, form: LinearForm) -> Iterator[Node]:
        """A literal, or a sum of several terms, or of a multiple of one, also with others that have alternatives.

        Among e-nodes of equal price extraction takes the first.
        """
        if not form.terms:
            yield "const", form.constant, ()
            return
        if form.is_affine() or self.classes.is_out_of_time(len(form.terms)):
            yield self.classes.plain_sum(form)
            if form.is_affine():
                yield from self.classes.hoisted_sum(form)
            return
        yield from self.input.by_one_operator(form)
        yield from self.selections.entered(form)
        yield self.classes.plain_sum(form)
        yield from self.classes.hoisted_sum(form)
        if len(form.terms) == 2:
            yield from self.quotients.completed_remainders(form)
        yield from self.quotients.of_symbolic_divisors(form)
        yield from self.quotients.rounded_up(form)
        yield from self.quotients.multiples_between(form)
        yield from self.quotients.remainders_of_quotients(form)
        yield from self.quotients.remainders_of_cases(form)
        yield from self.quotients.of_multiples(form)
        yield from self.quotients.absorbing(form)
        yield from self.quotients.over_one_divisor(form)
        yield from self.products.factored(form)
        yield from self.products.of_variables(form)
        yield from self.products.by_maximum(form)
        yield from self.extremes.of_sum(form)
        yield from with_one_range(self.classes, form)
        yield from with_one_loop(self.classes, form)

    def _as_it_is(self, value: Value) -> Iterator[Node]:
        """The node that a value is; without the theory, rules need the other nodes that are added here."""
        if isinstance(value, LinearForm) and value.single() is None:
            yield self.classes.plain_sum(value)
            return
        term = value if isinstance(value, Expr) else cast(Expr, value.single())
        yield self.classes.own_node(term)
        if term.op == "le" and not term.args[0].is_bool:
            # as rules write it
            low, high = map(self.theory.inner, term.args)
            ends = (low.shifted(-1), high) if not low.terms else (low, high.shifted(1))
            yield self.node("lt", *ends)
        known = self.theory.residues.get(term)
        if known is not None:
            # what leaves k modulo n is a multiple of n, and k
            quotient = self.theory.quotient(atom_form(term), number(known[0]))
            yield self.sum_node([(quotient, known[0])], number(known[1]))

    @provides("start from the input", otherwise=lambda self, choice, graph: None)
    def as_written(self, choice: Choice, graph: EGraph) -> Choice | None:
        """``choice`` with the input's own nodes where ``graph`` has any; ``None`` if the input has none."""
        return with_nodes(graph, choice, self.input.nodes) if self.input.nodes else None

    def root_terms(self, choice: Choice) -> dict[int, Expr]:
        """The terms of the graph's roots under a choice of nodes."""
        terms = self.terms(choice, self.graph.roots)
        for c, term in terms.items():
            value = self.values[c]
            is_plain = isinstance(value, LinearForm) and not _has_selections(value)
            if is_plain and term.op == "where" and _has_selections(self.theory.form(term)):
                self.theory.read_as(term, cast(LinearForm, value))
        return {root: terms[root] for root in self.graph.roots}

    def terms(self, choice: Choice, classes: Iterable[int]) -> dict[int, Expr]:
        """The terms of a choice for all classes that ``classes`` need.

        Where one would be wider than a term of the input with the same values, that stands for it: without
        remainders, products could grow beyond what is accepted.
        """
        return terms_of(choice, classes, self.leaves, self.input.narrower)


def _has_selections(form: LinearForm) -> bool:
    return any(atom.op == "where" for atom in form.terms)
