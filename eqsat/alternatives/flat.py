"""Flat indices: a sum of variables that an input takes apart, as one variable.

The digits of a flat index are those of the variable, though each alone may be shorter in what the sum adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eqsat.alternatives.limits import LIMITS
from eqsat.lang.expr import Expr, any_var
from eqsat.lang.ops import FLOORS
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm


def flat_index(order: Sequence[Expr], theory: Arithmetic) -> LinearForm | None:
    """The sum of variables that the terms divide in several ways, if they hardly divide another."""
    divided: dict[LinearForm, set[tuple[str, int, int]]] = {}
    for term in order:
        if term.op in FLOORS and term.args[1].op == "const":
            dividend = theory.form(term.args[0])
            if dividend.is_affine():
                ways = divided.setdefault(LinearForm(dividend.terms, 0), set())
                ways.add((term.op, term.args[1].vmin, dividend.constant))
    if not 1 <= len(divided) <= 2:
        return None
    flat, *others = sorted(divided, key=lambda form: -len(divided[form]))
    most = len(divided[flat])
    alone = all(len(divided[other]) < most for other in others)
    return flat if len(flat.terms) > 1 and most >= LIMITS.flat_ways and alone else None


def as_variable(flat: LinearForm, terms: Iterable[Expr], theory: Arithmetic) -> tuple[Expr, dict[Expr, Expr]]:
    """A variable for a sum, and what those of the terms are in it that are the sum and a literal."""
    index = any_var("@flat", *theory.bounds(flat))
    images = {}
    for term in terms:
        if term.args and not term.is_bool:
            form = theory.form(term)
            if form.terms == flat.terms:
                images[term] = index + form.constant
    return index, images
