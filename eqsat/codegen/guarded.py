"""Which loads stay inside their arrays wherever they are evaluated, and which terms must stay in a branch for that.

Some loads are inside their array only where the condition of a selection holds. Such a load is written in that branch,
which C evaluates only if it is taken. The terms between the selection and the load stay there too: none is hoisted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, array_of, topological
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import mentions
from eqsat.theory.linear import LinearArithmetic


def guarded_loads(
    roots: Sequence[Expr], facts: Sequence[Expr] = (), row: Expr | None = None
) -> tuple[frozenset[Expr], frozenset[Expr]]:
    """The loads that are inside their array wherever they are evaluated, and the terms that must stay in a branch.

    What changes with ``row`` is evaluated only where ``facts`` hold; the rest may be hoisted to where they do not.
    """
    loads = [t for t in topological(roots) if t.op == "load"]
    inside: set[Expr] = set()
    inline: set[Expr] = set()
    doubtful = []
    for term in loads:
        known = facts if row is not None and mentions(term, row) else ()
        place = term.args[1]
        if (place.vmin >= 0 and place.vmax < array_of(term).size) or is_inside(LinearArithmetic(known), term):
            inside.add(term)
        else:
            doubtful.append((term, known))
    if doubtful:
        branches = list(_branches(roots))
        for term, known in doubtful:
            around = [(condition, terms) for condition, terms in branches if term in terms]
            if not around:
                continue
            try:
                theory = LinearArithmetic([*known, *[condition for condition, _ in around]])
            except ContradictionError:
                # never evaluated
                continue
            between = _between(max((terms for _, terms in around), key=len), term)
            if is_inside(theory, term) and not any(t.op in REDUCTIONS for t in between):
                inside.add(term)
                inline |= between
    return frozenset(inside), frozenset(inline)


def is_inside(theory: LinearArithmetic, term: Expr) -> bool:
    """Whether a load is known to be inside its array; not once it is late."""
    if theory.late_or_raise():
        return False
    low, high = theory.bounds_of(term.args[1])
    return low >= 0 and high < array_of(term).size


def _branches(roots: Sequence[Expr]) -> Iterator[tuple[Expr, set[Expr]]]:
    """Every branch of every selection: its condition, and the terms that only this branch uses."""
    users: dict[Expr, set[Expr]] = {}
    order = topological(roots)
    for term in order:
        for arg in term.args:
            users.setdefault(arg, set()).add(term)
    for term in order:
        if term.op in ("where", "fwhere") and not any(t.element for t in topological([term.args[0]])):
            for branch, condition in zip(term.args[1:], (term.args[0], ~term.args[0]), strict=True):
                if branch in roots or users[branch] != {term} or term.args.count(branch) > 1:
                    continue
                own: set[Expr] = {branch}
                for part in [*topological([branch])][-2::-1]:
                    if part not in roots and users[part] <= own:
                        own.add(part)
                yield condition, own


def _between(terms: set[Expr], low: Expr) -> set[Expr]:
    """``low``, and those of ``terms`` that need it."""
    found = {low}
    for term in topological(terms):
        if term in terms and any(a in found for a in term.args):
            found.add(term)
    return found
