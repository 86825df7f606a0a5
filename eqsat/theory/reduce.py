"""Reductions in normal form: closed forms where there are any, else a reduction of what cannot leave it.

The index is a variable of the body, and what is known of it there (the range) are facts of a theory of its own, so
nothing that is true only inside the range leaves it. Each kind of reduction has a module: :mod:`eqsat.theory.sums`,
:mod:`eqsat.theory.products` and, for extremes, :mod:`eqsat.theory.largest`.

The identities, each checked point by point in ``tests/theory/test_reduce.py``, also stand as rules in
``rules/reduce.py``. A range may be empty (``high <= low``): each closed form says what it gives there.
"""

from __future__ import annotations

from typing import Self

from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, const, instantiate
from eqsat.lang.ops import REDUCTIONS
from eqsat.theory.conditions import Conditions
from eqsat.theory.forms import LinearForm, atom_form, number, to_expr
from eqsat.theory.largest import ExtremeOver
from eqsat.theory.over import Range, chosen
from eqsat.theory.permutations import in_order
from eqsat.theory.products import ProductOver
from eqsat.theory.sums import SumOver


class Reductions(Conditions):
    """Sums, products and extremes over a range."""

    def inside(self, term: Expr) -> Self | None:
        """What is known in the body of a reduction; ``None`` if its range is empty."""
        _, index, low, high = term.args
        return self._inside(Range(index, self.form(low), self.form(high)))

    def _inside(self, over: Range) -> Self | None:
        """The theory that knows that the index is in its range; ``None`` if that is empty."""
        index = atom_form(over.index)
        least, most = self.bounds(over.low)[0], self.bounds(over.high)[1] - 1
        facts = [
            self.at_least_zero(index.plus(over.low, -1)),
            self.at_least_zero(over.high.plus(index, -1).shifted(-1)),
        ]
        if least > most:
            return None
        return self.assuming(self.junction("and", facts))

    def _reduction(self, term: Expr) -> LinearForm:
        body, index, low, high = term.args
        if self.parent is not None and self.touched & self.variables.of(index):
            # what is known of an index here is not about the one of that name which the reduction binds
            return self.parent.form(term)
        over = Range(index, self.forms[low], self.forms[high])
        inside = self._inside(over)
        if inside is None:
            return number(REDUCTIONS[term.op].identity)
        normal = inside.form(in_order(inside, body, over))
        try:
            return self.reduced(term.op, normal, over)
        except ContradictionError:
            raise
        except ValueError:
            # a step that is never taken divides by zero, or a bound explodes
            return atom_form(term)

    def reduced(self, op: str, body: LinearForm, over: Range) -> LinearForm:
        """The normal form of a reduction of ``body``, which is normal in the range.

        >>> from eqsat.lang.expr import var
        >>> from eqsat.theory.linear import LinearArithmetic
        >>> i = var("i", 0, 9)
        >>> LinearArithmetic().reduced("sum_over", LinearForm({i: 2}, 1), Range(i, number(0), number(10)))
        LinearForm(100)
        """
        high = self.bounds(over.extent)[1]
        if high <= 0:
            return number(REDUCTIONS[op].identity)
        if high == 1:
            full = self.at_least_zero(over.extent.shifted(-1))
            value = instantiate(to_expr(body), over.index, to_expr(over.low))
            return chosen(self, full, value, const(REDUCTIONS[op].identity))
        if op == "sum_over":
            return SumOver(self, over).of(body)
        if op == "prod_over":
            return ProductOver(self, over).of(body)
        return ExtremeOver(self, over, op).of(body)
