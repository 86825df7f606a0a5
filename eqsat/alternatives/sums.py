"""Spellings of sums: term by term, and with other sums as operands, each of which has spellings of its own."""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.alternatives.extremes import ExtremeSpeller
from eqsat.alternatives.given import InputSpeller
from eqsat.alternatives.products import ProductSpeller
from eqsat.alternatives.quotients import QuotientSpeller
from eqsat.alternatives.selections import SelectionSpeller
from eqsat.alternatives.value_graph import KindSpeller, ValueGraph, sum_of
from eqsat.extract.graph import Node
from eqsat.theory.forms import Form

#: One sum is spelled in at most so many ways.
MAX_SPELLINGS = 8
#: From so many terms on, or if there are many classes, in fewer.
MANY_TERMS = 24
FEW_SPELLINGS = 3


class SumSpeller(KindSpeller):
    """What spells sums; others know those with a quotient, a product, a selection or an extreme."""

    def __init__(
        self,
        classes: ValueGraph,
        quotients: QuotientSpeller,
        products: ProductSpeller,
        selections: SelectionSpeller,
        extremes: ExtremeSpeller,
        given: InputSpeller,
    ) -> None:
        super().__init__(classes)
        self.quotients = quotients
        self.products = products
        self.selections = selections
        self.extremes = extremes
        self.input = given

    def nodes(self, form: Form) -> Iterator[Node]:
        """A literal, or a sum of several terms, or of a multiple of one; of equal prices the first wins."""
        if not form.terms:
            yield "const", form.constant, ()
            return
        if form.is_affine():
            yield sum_of([(self.classes.need_atom(a), k) for a, k in form.terms.items()], form.constant)
            return
        if self.classes.is_out_of_time(len(form.terms)):
            yield self.sum_node([(self.theory.inner(a), k) for a, k in form.terms.items()], form.constant)
            return
        yield from self.selections.entered(form)
        yield from self.selections.wrapped(form)
        yield self.sum_node([(self.theory.inner(a), k) for a, k in form.terms.items()], form.constant)
        if len(form.terms) == 2:
            yield from self.quotients.completed_remainders(form)
        yield from self.quotients.absorbing(form)
        yield from self.products.factored(form)
        yield from self.products.of_variables(form)
        yield from self.extremes.of_sum(form)
