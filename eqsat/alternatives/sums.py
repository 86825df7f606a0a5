"""E-nodes of sums: term by term, and with other sums as operands, each of which has alternatives of its own."""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.alternatives.canonical import CanonicalGraph, KindNodes, sum_of
from eqsat.alternatives.extremes import ExtremeNodes
from eqsat.alternatives.inputs import InputNodes
from eqsat.alternatives.products import ProductNodes
from eqsat.alternatives.quotients import QuotientNodes
from eqsat.alternatives.ranges import RangeNodes
from eqsat.alternatives.selections import SelectionNodes
from eqsat.extract.graph import Node
from eqsat.theory.forms import LinearForm


class SumNodes(KindNodes):
    """The e-nodes of sums; others know those with a quotient, a product, a selection or an extreme."""

    def __init__(
        self,
        classes: CanonicalGraph,
        quotients: QuotientNodes,
        products: ProductNodes,
        selections: SelectionNodes,
        extremes: ExtremeNodes,
        given: InputNodes,
    ) -> None:
        super().__init__(classes)
        self.quotients = quotients
        self.products = products
        self.selections = selections
        self.extremes = extremes
        self.input = given
        self.ranges = RangeNodes(classes)

    def nodes(self, form: LinearForm) -> Iterator[Node]:
        """A literal, or a sum of several terms, or of a multiple of one; of equal prices the first wins."""
        if not form.terms:
            yield "const", form.constant, ()
            return
        if form.is_affine():
            yield sum_of([(self.classes.add_atom(a), k) for a, k in form.terms.items()], form.constant)
            return
        if self.classes.is_out_of_time(len(form.terms)):
            yield self.sum_node([(self.theory.inner(a), k) for a, k in form.terms.items()], form.constant)
            return
        yield from self.input.bits.in_sum(form)
        yield from self.selections.entered(form)
        yield from self.selections.wrapped(form)
        yield self.sum_node([(self.theory.inner(a), k) for a, k in form.terms.items()], form.constant)
        if len(form.terms) == 2:
            yield from self.quotients.completed_remainders(form)
        yield from self.quotients.rounded_up(form)
        yield from self.quotients.of_multiples(form)
        yield from self.quotients.absorbing(form)
        yield from self.products.factored(form)
        yield from self.products.of_variables(form)
        yield from self.extremes.of_sum(form)
        yield from self.ranges.joined(form)
