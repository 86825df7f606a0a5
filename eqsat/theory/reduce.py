"""Reductions in normal form: closed forms where there are any, else a reduction of what cannot leave it.

The index is a variable of the body, and what is known of it there (the range) are facts of a theory of its own, so
nothing that is true only inside the range leaves it. Each kind of reduction has a module: :mod:`eqsat.theory.sums`,
:mod:`eqsat.theory.products` and, for extremes, :mod:`eqsat.theory.largest`.

The identities, each checked point by point in ``tests/theory/test_reduce.py``, also stand as rules in
``rules/reduce.py``. A range may be empty (``high <= low``): each closed form says what it gives there.
"""

from __future__ import annotations

from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, const, instantiate
from eqsat.lang.ops import REDUCTIONS
from eqsat.theory.conditions import Conditions
from eqsat.theory.forms import LinearForm, atom_form, number, to_expr
from eqsat.theory.largest import ExtremeOver
from eqsat.theory.over import Range, chosen, in_range
from eqsat.theory.permutations import in_order
from eqsat.theory.products import ProductOver
from eqsat.theory.sums import SumOver


def inside_reduction[T: Conditions](theory: T, term: Expr) -> T | None:
    """What is known in the body of a reduction; ``None`` if its range is empty."""
    _, index, low, high = term.args
    return _in_range(theory, Range(index, theory.form(low), theory.form(high)))


def _in_range[T: Conditions](theory: T, over: Range) -> T | None:
    """The theory that knows that the index is in its range; ``None`` if that is empty."""
    if theory.bounds(over.low)[0] >= theory.bounds(over.high)[1]:
        return None
    return theory.assuming(theory.junction("and", in_range(theory, over, atom_form(over.index))))


def normal_reduction(theory: Conditions, term: Expr) -> LinearForm:
    body, index, low, high = term.args
    if theory.parent is not None and theory.touched & theory.variables.of(index):
        # what is known of an index here is not about the one of that name which the reduction binds
        return theory.parent.form(term)
    over = Range(index, theory.forms[low], theory.forms[high])
    inside = _in_range(theory, over)
    if inside is None:
        return number(REDUCTIONS[term.op].identity)
    normal = inside.form(in_order(inside, body, over))
    try:
        return reduced(theory, term.op, normal, over)
    except ContradictionError:
        raise
    except ValueError:
        # a step that is never taken divides by zero, or a bound explodes
        return atom_form(term)


def reduced(theory: Conditions, op: str, body: LinearForm, over: Range) -> LinearForm:
    """The normal form of a reduction of ``body``, which is normal in the range.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.theory.linear import LinearArithmetic
    >>> i = var("i", 0, 9)
    >>> reduced(LinearArithmetic(), "sum_over", LinearForm({i: 2}, 1), Range(i, number(0), number(10)))
    LinearForm(100)
    """
    high = theory.bounds(over.extent)[1]
    if high <= 0:
        return number(REDUCTIONS[op].identity)
    if high == 1:
        full = theory.at_least_zero(over.extent.shifted(-1))
        value = instantiate(to_expr(body), over.index, to_expr(over.low))
        return chosen(theory, full, value, const(REDUCTIONS[op].identity))
    if op == "sum_over":
        return SumOver(theory, over).of(body)
    if op == "prod_over":
        return ProductOver(theory, over).of(body)
    return ExtremeOver(theory, over, op).of(body)
