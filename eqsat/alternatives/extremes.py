"""E-nodes of minima and maxima: with a sum inside or outside, as one operand and the others, or as a clamp."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import gcd

from eqsat.alternatives.canonical import KindNodes
from eqsat.alternatives.limits import LIMITS
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr
from eqsat.lang.properties import has_reductions
from eqsat.theory.branches import rounding_up
from eqsat.theory.extremes import extreme_of_needed
from eqsat.theory.forms import LinearForm, atom_form, literal_divisor, number


class ExtremeNodes(KindNodes):
    """The e-nodes of minima, alone and in sums; a minimum that is subtracted is a maximum."""

    def nodes(self, atom: Expr) -> Iterator[Node]:
        """A minimum of several values."""
        return self.of_sum(atom_form(atom))

    def of_sum(self, form: LinearForm) -> Iterator[Node]:
        """``x + min(y - x, 0)`` is ``min(x, y)``; subtracted, a minimum is a maximum."""
        atom = self.theory.outer_minimum(form)
        if atom is None:
            return
        yield from self._clamp(form)
        if form.terms[atom] == -1 and len(form.terms) > 2 and form.only_subtracts():
            # a maximum from which the others are subtracted, in place of a negation
            others = form.without(atom).times(-1)
            yield self.sum_node([(atom_form(atom).times(-1), 1), (others, -1)])
        step, cases, gaps = form.terms[atom], self.theory.cases(form, atom), self.theory.gaps(atom)
        op = "min" if step > 0 else "max"
        if len(cases) == 2:
            yield from self._rounded_up(step, cases, gaps)
        is_crowded = self.classes.is_crowded()
        yield from self._turned(op, cases)
        if len(cases) > 2 and not is_crowded:
            yield from self._with_one_division(op, cases)
        yield from self._with_terms_outside(form, cases, is_crowded)
        if len(form.terms) > 1 and (
            is_crowded or sum(map(LinearForm.addends, cases)) > sum(map(LinearForm.addends, [*gaps, form]))
        ):
            # the rest would be computed in every operand
            return
        yield from self._of_cases(op, cases, is_crowded)

    def _rounded_up(self, step: int, cases: Sequence[LinearForm], gaps: Sequence[LinearForm]) -> Iterator[Node]:
        """``q + min(A - d*q, 1)`` with ``q`` for ``A//d`` is a quotient rounded up."""
        gap = gaps[1].plus(gaps[0], -1)
        for case, compared in ((cases[1], gap.times(-1)), (cases[0], gap)):
            rest = case.shifted(-step)
            rounded_up = rounding_up(self.theory, compared, rest, step)
            if rounded_up is not None:
                yield self.sum_node([(rest.plus(rounded_up), 1)])

    def _turned(self, op: str, cases: Sequence[LinearForm]) -> Iterator[Node]:
        """``min(-x, -y, z)`` is ``min(-max(x, y), z)``: all that is negated is negated at once."""
        negated = [case for case in cases if _is_negated(case)]
        others = [case for case in cases if case not in negated]
        if not any(case.terms for case in others):
            negated, others = [*negated, *others], []
        if len(negated) < 2:
            return
        turned = extreme_of_needed(self.theory, "max" if op == "min" else "min", [case.times(-1) for case in negated])
        if others:
            yield self.node(op, turned.times(-1), extreme_of_needed(self.theory, op, others))
        else:
            scale = gcd(*map(LinearForm.common_factor, cases))
            yield self.sum_node([(turned.divided(scale), -scale)])

    def _with_one_division(self, op: str, cases: Sequence[LinearForm]) -> Iterator[Node]:
        """``max(x//7, y, z//7)`` is ``max(max(x, z)//7, y)``."""
        by_divisor: dict[int, list[LinearForm]] = defaultdict(list)
        for case in cases:
            divisors = [literal_divisor(atom) for atom in case.terms if literal_divisor(atom)]
            if len(divisors) == 1:
                by_divisor[divisors[0]].append(case)
        for some in by_divisor.values():
            if 1 < len(some) < len(cases) and not (one := self.theory.extreme(op, some)).has_minimum():
                others = [case for case in cases if case not in some]
                yield self.node(op, one, extreme_of_needed(self.theory, op, others))

    def _with_terms_outside(self, form: LinearForm, cases: Sequence[LinearForm], is_crowded: bool) -> Iterator[Node]:
        """``min(x + z, y + z)`` is ``min(x, y) + z``."""
        for common in dict.fromkeys([_common(cases)] if is_crowded else [_common(cases), _shared(cases)]):
            apart = form.plus(common, -1)
            if apart != form and apart.addends() > 1:
                yield self.sum_node([(apart, 1), (common, 1)])
                # a maximum is a minimum that is subtracted, which needs no negation
                of_apart = () if is_crowded else [case.plus(common, -1) for case in cases]
                for kept, other, parts in ((apart, common, ()), (common, apart, of_apart)):
                    if any(map(_is_negated, parts)) or other.only_subtracts():
                        yield self.sum_node([(kept, 1), (other.times(-1), -1)])

    def _of_cases(self, op: str, cases: Sequence[LinearForm], is_crowded: bool) -> Iterator[Node]:
        """An extreme of several values as that of two: of these, of its halves, or of one and the others."""
        if len(cases) == 2:
            yield self.node(op, *cases)
        elif is_crowded or len(cases) > LIMITS.parted_operands or any(has_reductions(case.terms) for case in cases):
            # with one operand apart at a time there would be as many parts as operands, each nearly as long, and rules
            # would make one loop of the reductions in each
            half = len(cases) // 2
            yield self.node(op, *[extreme_of_needed(self.theory, op, part) for part in (cases[:half], cases[half:])])
        else:
            for index, case in enumerate(cases[: LIMITS.last_operands]):
                others = extreme_of_needed(self.theory, op, [*cases[:index], *cases[index + 1 :]])
                yield self.node(op, others, case)

    def _clamp(self, form: LinearForm) -> Iterator[Node]:
        """``r + min(u - a, 0) - min(u - b, 0)`` is ``max(r + min(u - a, 0), r + b - a)`` if ``b <= a``."""
        atoms = [(a, k) for a, k in form.terms.items() if a.op == "min"]
        if len(atoms) != 2 or len(form.terms) > 2 or {k for _, k in atoms} != {1, -1}:
            return
        (plus, _), (minus, _) = sorted(atoms, key=lambda item: -item[1])
        one, other = self.theory.gap(plus), self.theory.gap(minus)
        if one is None or other is None:
            return
        width = other.plus(one, -1)
        if not width.terms:
            first = width.constant >= 0
            kept = form.without(minus if first else plus)
            end = self.add_class(number(form.constant - width.constant))
            yield "max" if first else "min", None, (self.add_class(kept), end)


def _is_negated(form: LinearForm) -> bool:
    """Whether a form has no constant and only negative terms."""
    return not form.constant and bool(form.terms) and form.only_subtracts()


def _shared(cases: Sequence[LinearForm]) -> LinearForm:
    """As much of each term as all of some sums have, and the constant if that is the same."""
    terms = {}
    for atom, k in cases[0].terms.items():
        multiples = [case.terms.get(atom, 0) for case in cases]
        if all(m * k > 0 for m in multiples):
            terms[atom] = min(multiples, key=abs)
    return LinearForm(terms, _common(cases).constant)


def _common(cases: Sequence[LinearForm]) -> LinearForm:
    """The terms that all of some sums have, and the constant if that is the same."""
    first, *others = cases
    terms = {a: k for a, k in first.terms.items() if all(other.terms.get(a) == k for other in others)}
    constant = first.constant if all(other.constant == first.constant for other in others) else 0
    return LinearForm(terms, constant)
