"""Spellings of sums: term by term, and with other sums as operands, each of which has spellings of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eqsat.expr import Expr
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node
from eqsat.spelling.extremes import ExtremeSpeller
from eqsat.spelling.given import InputSpeller
from eqsat.spelling.products import ProductSpeller
from eqsat.spelling.quotients import QuotientSpeller
from eqsat.spelling.selections import SelectionSpeller
from eqsat.spelling.value_graph import KindSpeller, ValueGraph, sum_of
from eqsat.theory.forms import ZERO, Form, atom_form, read, to_expr

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
        # by the operator of an atom, sums with it that may be one operand of a longer sum
        self._parts: dict[str, Callable[[Form, Expr], Iterator[Form]]] = {
            "floordiv": quotients.parts,
            "tdiv": quotients.parts,
            "min": extremes.parts,
            "where": selections.parts,
        }

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
        # a remainder reads better than what it stands for
        yield from self.quotients.remainders(form)
        yield from self.selections.entered(form)
        yield from self.selections.of_quotients(form)
        splits = self.splits(form)
        if len(splits) > 1 and self.need(form) in self.quotients.dividends:
            # a dividend that is seen to be positive needs no fix-up of its sign
            splits.sort(key=lambda operands: self._least(operands, form) < 0)
        for operands in splits:
            yield self.sum_node(operands, _beside(operands, form))
        if len(form.terms) == 2:
            yield from self.quotients.completed_remainders(form)
        yield from self.quotients.absorbing(form)
        yield from self.products.factored(form)
        yield from self.products.of_variables(form)
        yield from self._joined(form)
        yield from self.extremes.of_sum(form)

    def splits(self, form: Form) -> list[list[tuple[Form, int]]]:
        """The sum as it is, and with remainders ``K*(A % n)`` in place of quotients and terms of their numerators."""
        found: list[list[tuple[Form, int]]] = []
        stack: list[tuple[Form, list[tuple[Form, int]]]] = [(form, [])]
        most = FEW_SPELLINGS if len(form.terms) > MANY_TERMS or self.classes.is_crowded() else MAX_SPELLINGS
        inner = self.theory.inner
        while stack:
            rest, taken = stack.pop()
            found.append([*[(inner(a), k) for a, k in rest.terms.items()], *taken])
            if len(found) == most:
                break
            # no more than these are ever taken from the stack
            shortest = sorted(enumerate(self._shorter(rest, form)), key=_shortest_last)[len(found) - most :]
            stack += [(left, [*taken, operand]) for _, (left, operand) in shortest]
        return found

    def _shorter(self, rest: Form, form: Form) -> Iterator[tuple[Form, tuple[Form, int]]]:
        """What is left of ``rest`` beside each of the sums that may be one operand of ``form``."""
        for quotient in rest.terms:
            if quotient.op != "var":
                for part in self._parts_with(rest, quotient):
                    for scale in _shrinking_scales(part, rest, quotient) if part != form else ():
                        yield rest.plus(part, -scale), (part, scale)
                if self.classes.is_out_of_time(len(rest.terms)):
                    return

    def _parts_with(self, form: Form, quotient: Expr) -> Iterator[Form]:
        """Sums with ``quotient`` that may be one operand of a longer sum: remainders, and divisions of the input."""
        for division in self.quotients.divisions(form, quotient):
            yield division.remainder
        for part in self.input.parts.get(quotient, ()):
            if part.terms.keys() <= form.terms.keys():
                yield part
        if quotient.op in self._parts:
            yield from self._parts[quotient.op](form, quotient)

    def _joined(self, form: Form) -> Iterator[Node]:
        """Sums over one range are one sum."""
        over: dict[tuple[Expr, ...], Form] = {}
        for atom, k in form.terms.items():
            if atom.op == "sum_over":
                part = over.get(atom.args[1:], ZERO)
                over[atom.args[1:]] = part.plus(atom_form(atom), k)
        for (index, low, high), part in over.items():
            if len(part.terms) < 2:
                continue
            body = ZERO
            for atom, k in part.terms.items():
                body = body.plus(self.theory.inner(atom.args[0]), k)
            joined = "sum_over", None, tuple([self.need(read(a)) for a in (to_expr(body), index, low, high)])
            if part == form:
                yield joined
            else:
                self.classes.offer(self.need(part), joined)
                others = [(atom_form(a), k) for a, k in form.terms.items() if a not in part.terms]
                yield self.sum_node([*others, (part, 1)], form.constant)

    def _least(self, operands: Sequence[tuple[Form, int]], form: Form) -> int:
        """The lower bound of ``form`` that the operands of its sum show."""
        least = _beside(operands, form)
        for part, k in operands:
            low, high = self.theory.bounds(part)
            least += k * (low if k > 0 else high)
        return least


def _shortest_last(numbered: tuple[int, tuple[Form, object]]) -> tuple[int, int, int]:
    place, (form, _) = numbered
    return -len(form.terms), hash(form), place


def _beside(operands: Sequence[tuple[Form, int]], form: Form) -> int:
    """The constant that ``form`` has beside multiples of these operands."""
    return form.constant - sum([k * part.constant for part, k in operands])


def _shrinking_scales(part: Form, form: Form, quotient: Expr) -> list[int]:
    """The multiples of ``part`` that cancel a term of ``form`` and leave less of ``quotient``, or a shift of it."""
    found: dict[int, None] = {}
    coefficient, share = form.terms[quotient], part.terms[quotient]
    for atom, other in part.terms.items():
        scale, uneven = divmod(form.terms[atom], other)
        left = abs(coefficient - scale * share)
        shifts = abs(share) > 1 and is_power_of_two(left) and not is_power_of_two(abs(coefficient))
        if not uneven and (left < abs(coefficient) or shifts):
            found[scale] = None
    return sorted(found)
