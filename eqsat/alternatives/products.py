"""E-nodes of products: taken apart factor by factor, and put together from the addends that share a factor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from eqsat.alternatives.canonical import KindNodes
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr
from eqsat.theory.forms import (
    ZERO,
    LinearForm,
    atom_form,
    combination,
    factors,
    number,
    product_form,
    read,
    without,
    without_factor,
)


class ProductNodes(KindNodes):
    """The e-nodes of products, alone and in sums."""

    def nodes(self, atom: Expr) -> Iterator[Node]:
        """A product as one factor times the rest, by each factor in turn, or as a square."""
        if self.classes.is_crowded():
            yield "mul", None, self.operands(atom)
            return
        parts = factors(atom)
        if parts[::2] == parts[1::2]:
            # equal factors are neighbours: the square of every other one
            half = self.add_class(product_form(parts[::2]))
            yield "mul", None, (half, half)
        # one factor at a time: the number of all ways grows exponentially with the factors
        for factor in dict.fromkeys(parts):
            yield self.node("mul", without_factor(atom, factor), read(factor))
            if factor.op == "shl" and factor.args[0].op == "const":
                # x*(1 << y) is x << y
                shifted = without_factor(atom, factor).times(factor.args[0].vmin)
                yield self.node("shl", shifted, read(factor.args[1]))
        for product in self._products:
            left = without(parts, factors(product))
            if left:
                yield self.node("mul", product_form(left), atom_form(product))

    @provides("factored products")
    def factored(self, form: LinearForm) -> Iterator[Node]:
        """``x*z + y*z`` is ``(x + y)*z``."""
        users: dict[Expr, list[Expr]] = {}
        for atom in form.terms:
            for factor in dict.fromkeys(factors(atom)):
                users.setdefault(factor, []).append(atom)
        # by cofactor, a sum without its sign and content, the sum of the factors that have it
        cofactors: dict[LinearForm, LinearForm] = {}
        for factor, atoms in users.items():
            if len(atoms) < 2:
                continue
            quotient = combination([(without_factor(atom, factor), form.terms[atom]) for atom in atoms], 0)
            part = LinearForm({atom: form.terms[atom] for atom in atoms}, 0)
            if part == form:
                yield self._product_with(factor, quotient)
                if factor.op == "min" and max(quotient.terms.values(), default=0) < 0:
                    # less a minimum is a maximum, as in `by_maximum`
                    yield self.node("mul", atom_form(factor).times(-1), quotient.times(-1))
            else:
                yield self._in_sum(part, form.plus(part, -1))
            if self.classes.is_crowded():
                return
            if quotient.terms:
                scale = quotient.common_factor() * quotient.sign()
                direction = quotient.divided(scale)
                cofactors[direction] = cofactors.get(direction, ZERO).plus(read(factor), scale)
        for common, cofactor in cofactors.items():
            yield from self._by_sum(form, common, cofactor)

    def _in_sum(self, part: LinearForm, rest: LinearForm) -> Node:
        """``rest + part``, or ``rest - -part`` if all terms of ``part`` are negative: ``u - (x + z)*y``."""
        return self.sum_node([(part.times(-1), -1) if _negative_terms(part) == len(part.terms) else (part, 1)], rest)

    def _by_sum(self, form: LinearForm, common: LinearForm, cofactor: LinearForm) -> Iterator[Node]:
        """``(x + y)*(z + w)`` for ``x*z + y*z + x*w + y*w``; ``(x + y)*(z + 3)`` where ``(x + y)*3`` is left.

        And ``(x + y)*(x - z)``, where ``(x + y)*x`` is left; ``(x + y)*(z + 3) + x`` where ``x*4 + y*3`` is.
        """
        left = form.plus(self.theory.times(common, cofactor), -1)
        squares = [atom_form(a) for a in common.terms if product_form([a, a]).single() in left.terms]
        found = [(cofactor, left)]
        for multiple in (number(1), *squares):
            cofactor, left = found[0]
            part = self.theory.times(common, multiple)
            scales = dict.fromkeys([left.terms.get(a, 0) // k for a, k in part.terms.items()])
            rests = {k: left.plus(part, -k) for k in scales if k}
            if rests:
                times = min(rests, key=lambda k: (len(rests[k].terms), abs(k)))
                taken = len(left.terms) - len(rests[times].terms)
                more = [(cofactor.plus(multiple, times), rests[times])] if taken > 0 else []
                found = more if taken == len(part.terms) else [*found, *more]
        for cofactor, left in found:
            if cofactor.addends() < 2 or len(left.terms) >= len(form.terms):
                continue
            part = form.plus(left, -1)
            if part != form:
                yield self._in_sum(part, left)
                continue
            yield self.node("mul", common, cofactor)
            if _negative_terms(common) + _negative_terms(cofactor) > 1:
                # the opposite of both may have a cheaper form: a remainder ``x - n*(x//n)`` does
                yield self.node("mul", common.times(-1), cofactor.times(-1))

    def by_maximum(self, form: LinearForm) -> Iterator[Node]:
        """``max(-x, 0)*y`` for ``-(min(x, 0)*y)``."""
        if (multiple := form.multiple()) is None:
            return
        atom, coefficient = multiple
        for factor in dict.fromkeys(factors(atom)) if atom.op == "mul" and coefficient < 0 else ():
            if factor.op == "min":
                rest = without_factor(atom, factor).times(-coefficient)
                yield self.node("mul", atom_form(factor).times(-1), rest)

    @cached_property
    def _multiples(self) -> list[tuple[Expr, int]]:
        """The multiples of a single atom that variables are known to equal."""
        return [multiple for form in self.theory.solved.values() if (multiple := form.multiple()) is not None]

    @cached_property
    def _steps(self) -> dict[Expr, int]:
        """Atoms of which a multiple is a variable, with that multiple: 4 for ``n//4`` where ``n`` is ``n//4*4``."""
        return dict(self._multiples)

    @cached_property
    def _products(self) -> list[Expr]:
        """Products that are variables: ``n//m*m`` where that is known to be ``n``."""
        return [atom for atom, k in self._multiples if k == 1 and atom.op == "mul"]

    def _product_with(self, factor: Expr, rest: LinearForm) -> Node:
        """``rest*factor``, by the variable that is a multiple of ``factor`` if there is one."""
        step = self._steps.get(factor, 1)
        if rest.constant % step or rest.content() % step:
            step = 1
        smaller = rest.divided(step)
        return self.node("mul", smaller, LinearForm({factor: step}, 0) if step != 1 else read(factor))

    def of_variables(self, form: LinearForm) -> Iterator[Node]:
        """``n*x`` for ``n//4*x*4`` where ``n`` is known to be ``n//4*4``."""
        for atom, coefficient in form.terms.items() if self._steps else ():
            for factor in dict.fromkeys(factors(atom)):
                step = self._steps.get(factor, 0)
                if atom is factor or not step or coefficient % step:
                    continue
                part, times = LinearForm({atom: step}, 0), coefficient // step
                if form.multiple() is not None:
                    yield self._product_with(factor, without_factor(atom, factor).times(coefficient))
                if part != form:
                    yield self.sum_node([(part, times)], form.plus(part, -times))


def _negative_terms(form: LinearForm) -> int:
    return sum([k < 0 for k in form.terms.values()])
