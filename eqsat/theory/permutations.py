"""Bodies of reductions that speak of the index through one permutation of its range, and of that alone.

A sum, product or extreme over a range takes all its values in any order: ``sum(A[(r + k)%8], r, 0, 8)`` and
``sum(A[7 - r], r, 0, 8)`` are ``sum(A[r], r, 0, 8)``.
"""

from __future__ import annotations

from math import gcd

from eqsat.lang.expr import Expr, any_var, replaced, topological
from eqsat.lang.ops import SUMS
from eqsat.theory.conditions import Conditions
from eqsat.theory.forms import atom_form, literal, to_expr
from eqsat.theory.over import Range
from eqsat.theory.solving import is_free_of


def in_order(theory: Conditions, body: Expr, over: Range) -> Expr:
    """``body`` with the index in the place of the permutation of the range that it speaks of, or as it is.

    Sums of floats are taken in their own order.
    """
    order = topological([body])
    if body.element is not None or over.index not in order:
        return body
    extent = literal(over.extent)
    if extent is not None and literal(over.low) == 0:
        found = [term for term in order if _permutes(theory, term, over.index, extent)]
        if len({theory.form(term) for term in found}) == 1:
            other = any_var("#permuted", 0, extent - 1)
            (moved,) = replaced([body], dict.fromkeys(found, other))
            if over.index not in topological([moved]):
                return replaced([moved], {other: over.index})[0]
    # what has no elements of arrays has a closed form, or is summed in its own order
    if any(term.op == "load" for term in order) and _runs_backward(body, over.index):
        image = over.high.plus(over.low).shifted(-1).plus(atom_form(over.index), -1)
        return replaced([body], {over.index: to_expr(image)})[0]
    return body


def _permutes(theory: Conditions, term: Expr, index: Expr, extent: int) -> bool:
    """Whether a term takes each value from 0 to before ``extent`` for one value of the index there."""
    if term.op not in ("mod", "bitxor") or term.args[1].op != "const":
        return False
    number = term.args[1].vmin
    if term.op == "bitxor":
        return term.args[0] is index and extent & (extent - 1) == 0 and 0 <= number < extent
    form = theory.form(term.args[0])
    scale = form.terms.get(index, 0)
    rest = form.plus(atom_form(index), -scale)
    return number == extent and gcd(scale, extent) == 1 and is_free_of(theory, index, rest)


def _runs_backward(body: Expr, index: Expr) -> bool:
    """Whether the index is subtracted wherever it stands."""
    stack, seen = [(body, 1)], set()
    is_there = False
    while stack:
        term, sign = item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if term is index:
            if sign > 0:
                return False
            is_there = True
        elif term.op in SUMS:
            signs = (-sign,) if term.op == "neg" else (sign, -sign if term.op == "sub" else sign)
            stack += zip(term.args, signs, strict=True)
        elif term.op == "mul" and term.args[1].op == "const":
            stack.append((term.args[0], sign if term.args[1].vmin > 0 else -sign))
        else:
            stack += [(a, 1) for a in term.args]
    return is_there
