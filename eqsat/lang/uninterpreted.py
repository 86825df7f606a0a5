"""Loads and reductions as variables, for the engines that match rules.

A rule speaks of arithmetic and of conditions; a load or a reduction is a value to it. :func:`hidden` puts a variable
with the same bounds in the place of each. The e-graph of the rules alone has them as nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.lang.expr import Expr, any_var, const, make, replaced, topological
from eqsat.lang.ops import REDUCTIONS

#: What is hidden.
UNINTERPRETED = frozenset({"load", *REDUCTIONS})


def abstraction_variables(roots: Iterable[Expr]) -> dict[Expr, Expr]:
    """A term in the place of each load and reduction below ``roots``: a variable, or a condition on one.

    >>> from eqsat.lang.expr import buffer, var
    >>> load = buffer("A")[var("i", 0, 7) % 8]
    >>> hidden([load + 1], abstraction_variables([load]))
    [Expr('@0 + 1')]
    """
    found: dict[Expr, Expr] = {}
    for term in topological(roots):
        if term.op in UNINTERPRETED:
            variable = any_var(f"@{len(found)}", term.vmin, term.vmax)
            found[term] = variable.ne(0) if term.is_bool else variable
    return found


def hidden(terms: Iterable[Expr], images: dict[Expr, Expr]) -> list[Expr]:
    """``terms`` with each outermost load and reduction replaced by its abstraction variable."""
    return replaced(terms, images)


def _variable(image: Expr) -> Expr:
    """The variable of a abstraction variable, which is itself, or ``variable != 0``."""
    return image.args[0] if image.args else image


def meanings(images: dict[Expr, Expr]) -> dict[str, Expr]:
    """What the variable of each abstraction variable stands for."""
    found = {}
    for term, image in images.items():
        found[str(_variable(image).value)] = make("where", term, const(1), const(0)) if term.is_bool else term
    return found
