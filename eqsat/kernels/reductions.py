"""Reductions taken apart: nested ones by one operator are a body, and the variables that it is reduced over.

What is taken out of the reductions around it has free variables for their indices (:func:`as_free`), and no conditions
that keep its divisors from zero but those that are given with it (:func:`unguarded_divisions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eqsat.lang.expr import Expr, any_var, const, make, substitute, var
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.properties import suspects
from eqsat.lang.text import free_name
from eqsat.lang.traversal import index_level, topological, variables
from eqsat.lang.validation import list_of, require
from eqsat.theory.definedness import unsafe_divisions
from eqsat.theory.linear import LinearArithmetic


def as_free(index: Expr) -> Expr:
    """A free variable of the range of ``index``, the index of a reduction, for terms outside of that reduction."""
    return any_var(f"#{index.value}", index.vmin, index.vmax)


def body_and_variables(term: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """The body of nested reductions by one operator, and a variable for each of their ranges, outermost first.

    Ranges that are no literals, or depend on an outer index, end the chain.
    """
    require(term, Expr, "a reduction")
    found: list[Expr] = []
    taken = {str(v.value) for v in variables([term])}
    op = term.op
    while term.op == op and op in REDUCTIONS and all(end.op == "const" for end in term.args[2:]):
        body, index, low, high = term.args
        if low.vmin >= high.vmin:
            break
        found.append(var(free_name(f"r{index_level(index)}", taken), low.vmin, high.vmin - 1))
        (term,) = substitute([body], {index: found[-1]})
    return term, tuple(found)


def reduction(op: str, body: Expr, over: Iterable[Expr]) -> Expr:
    """The nested reductions of ``body`` over variables, outermost first: the inverse of :func:`body_and_variables`."""
    require(body, Expr, "the body of a reduction")
    for variable in reversed(list_of(Expr, over, "the variables of a reduction")):
        body = make(op, body, variable, const(variable.vmin), const(variable.vmax + 1))
    return body


def unguarded_divisions(terms: Sequence[Expr], gates: Sequence[Expr | None] = ()) -> list[Expr]:
    """The divisions below ``terms`` whose divisors may be zero, as far as their branches, ranges and ``gates`` tell."""
    theory = LinearArithmetic()
    around = gates or [None] * len(terms)
    known = [theory if gate is None else theory.assuming(theory.condition(gate)) for gate in around]
    return [division for division, _ in unsafe_divisions(terms, suspects(topological(terms)), known)]
