"""Definedness: divisions by what may be zero, under all that is known where they are evaluated.

A branch of a selection is evaluated where the condition decides for it, and a body where its reduction has a step: what
is not evaluated there may divide by zero. Inputs that may are refused; answers that compute more than their input are
given divisors that are never zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from eqsat.evaluation import evaluate
from eqsat.expr import (
    Expr,
    const,
    divides_by_zero,
    make,
    maximum,
    may_divide_by_zero,
    minimum,
    rebuild,
    stated,
    topological,
    where,
    with_users,
)
from eqsat.linear import Theory
from eqsat.ops import DIVISIONS, REDUCTIONS


def unsafe_divisions(
    roots: Sequence[Expr], suspected: Collection[Expr], contexts: Sequence[Theory | None]
) -> Iterator[tuple[Expr, Theory]]:
    """The divisions below ``roots`` by what may be zero under all that is known there, and the theory of that.

    ``suspected`` are the :func:`suspects` among the terms below the roots.
    """
    seen: set[tuple[Theory, Expr]] = set()
    pairs = zip(roots, contexts, strict=True)
    stack = [(root, theory) for root, theory in pairs if root in suspected and theory is not None]
    while stack:
        term, theory = stack.pop()
        if (theory, term) in seen or term not in suspected:
            continue
        seen.add((theory, term))
        if term.op in DIVISIONS and not _is_nonzero(term.args[1], theory):
            yield term, theory
        if term.op == "where":
            stack += [(term.args[0], theory), *live_branches(term, theory)]
        elif term.op in REDUCTIONS:
            inside = theory.inside(term)
            stack += [(term.args[0], inside)] if inside is not None else []
            stack += [(a, theory) for a in term.args[2:]]
        else:
            stack += [(a, theory) for a in term.args]


def undefined(order: Sequence[Expr], theory: Theory) -> set[Expr]:
    """The terms of ``order``, operands first, that may divide by zero if no more is known than ``theory`` says.

    Here ``and`` and ``or`` do not need a member where others decide them.
    """
    suspected = suspects(order)
    found = {term for term in suspected if any(unsafe_divisions([term], suspected, [theory]))}
    parts = topological(found)
    points = None if not found or any(part.op in REDUCTIONS for part in parts) else theory.every_point(found)
    if points is None:
        return found
    values = dict(zip(parts, evaluate(parts, points), strict=True))
    # at which points a value needs a quotient by zero
    lost: dict[Expr, Any] = {}
    for term in parts:
        of_args = [lost[a] for a in term.args]
        lost[term] = reduce(np.logical_or, of_args, np.False_)
        if term.op in DIVISIONS:
            lost[term] = lost[term] | (values[term.args[1]] == 0)
        elif term.op == "where":
            lost[term] = of_args[0] | np.where(values[term.args[0]], *of_args[1:])
        elif term.op in ("and", "or"):
            decisive = [(values[a] == (term.op == "or")) & ~of_a for a, of_a in zip(term.args, of_args, strict=True)]
            lost[term] = lost[term] & ~reduce(np.logical_or, decisive)
    return {term for term in found if np.any(lost[term])}


def without_dead_divisions(roots: Sequence[Expr], theory: Theory) -> list[Expr]:
    """``roots`` with zero in place of divisions by what is always zero, which are never evaluated.

    Rules about divisions would make whatever such a division is the same as other things that it is.
    """

    def dead(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        is_dead = may_divide_by_zero(term) and theory.bounds(theory.form(term.args[1])) == (0, 0)
        return const(0) if is_dead else None

    return rebuild(roots, dead)


def settled(roots: Sequence[Expr], theory: Theory) -> list[Expr]:
    """``roots`` with zero in place of the divisions by zero that are never evaluated.

    Raises
    ------
    ValueError
        If one is evaluated for all that ``theory`` knows.

    >>> from eqsat.expr import replaced, var
    >>> x, d = var("x", 0, 9), var("d", 0, 3)
    >>> settled(replaced([where(d < 1, 0, x//d)], {d: const(0)}), Theory())
    [Expr('where(0 < 1, 0, 0)')]
    """
    found = list(roots)
    while any(map(divides_by_zero, order := topological(found))):
        for division, _ in unsafe_divisions(found, suspects(order), [theory] * len(found)):
            if divides_by_zero(division):
                stated(division.op, *division.args)
        found = rebuild(found, lambda term, args: const(0) if divides_by_zero(term) else None)
    return found


def defined(roots: Sequence[Expr], contexts: Sequence[Theory | None]) -> list[Expr]:
    """Answers without divisions by zero: where such a quotient is computed it counts for nothing, so any will do."""
    answers = list(roots)
    kept: set[Expr] = set()

    def never_zero(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in DIVISIONS or term.args[1] not in unsafe:
            return None
        divisor = args[1]
        if divisor.vmin < 0 < divisor.vmax:
            divisor = where(divisor.eq(0), 1, divisor)
        else:
            divisor = maximum(divisor, 1) if divisor.vmin >= 0 else minimum(divisor, -1)
        kept.add(divisor)
        return make(term.op, args[0], divisor)

    # a quotient that counts for nothing may have kept another divisor from zero
    while unsafe := _unsafe_divisors(answers, contexts) - kept:
        answers = rebuild(answers, never_zero)
    return answers


def _unsafe_divisors(roots: Sequence[Expr], contexts: Sequence[Theory | None]) -> set[Expr]:
    suspected = suspects(topological(roots))
    return {term.args[1] for term, _ in unsafe_divisions(roots, suspected, contexts)}


def live_branches(selection: Expr, theory: Theory) -> list[tuple[Expr, Theory]]:
    """The branches of a selection that may be taken, and what is known there."""
    condition = theory.condition(selection.args[0])
    inside = (theory.under(condition), theory.under(theory.negate(condition)))
    return [(branch, known) for branch, known in zip(selection.args[1:], inside, strict=True) if known is not None]


def _is_nonzero(divisor: Expr, theory: Theory) -> bool:
    """Whether a divisor is known never to be zero, branch by branch."""
    stack = [(divisor, theory)]
    while stack:
        term, known = stack.pop()
        if known.is_nonzero(known.form(term)) or known.excludes(term.eq(0)):
            continue
        if term.op != "where":
            return False
        stack += live_branches(term, known)
    return True


def suspects(terms: Sequence[Expr]) -> set[Expr]:
    """The terms that contain a division whose divisor has a range with 0."""
    divisions = {t for t in terms if t.op in DIVISIONS and may_divide_by_zero(t)}
    return with_users(divisions, terms) if divisions else divisions
