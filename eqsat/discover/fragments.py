"""Fragments of terms: some operators that meet, over variables that stand for all below them.

A variable has the bounds of what it stands for, so that what is true of a fragment is true of each term that has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations

from eqsat.discover.search import within_reach
from eqsat.lang.expr import Expr, const, make, var
from eqsat.lang.ops import OPS, is_finite
from eqsat.lang.traversal import signed_members, topological

#: The most operators of a fragment, variables of it, and fragments of one term.
MOST_OPERATORS = 5
MOST_VARIABLES = 3
MOST_OF_ONE = 40
#: The most members of a sum, junction, minimum or maximum of which each pair is a fragment.
MOST_MEMBERS = 8
_INTEGERS, _CONDITIONS = "xyzuvw", "pqr"
_CHAINS = frozenset({"add", "sub", "and", "or", "min", "max"})


def fragments(roots: Iterable[Expr]) -> Counter[Expr]:
    """How many places of ``roots`` have which fragment; fragments that differ in the names of variables are one.

    The term ``i//4 + i%4`` has the fragments ``x + y``, ``x + y%4``, ``x%4``, ``x//4``, ``x//4 + x%4``, ``x//4 + y``.
    """
    found: Counter[Expr] = Counter()
    for term in topological(roots):
        if term.args and term.op in OPS:
            found.update(dict.fromkeys(_of(term), 1))
            found.update(dict.fromkeys([part for pair in _pairs(term) for part in _of(pair)], 1))
    return Counter({fragment: count for fragment, count in found.items() if fragment.args and within_reach(fragment)})


def _of(root: Expr) -> Iterator[Expr]:
    """The fragments with this root, those of few operators first."""
    seen: dict[frozenset[Expr], tuple[Expr, ...]] = {frozenset([root]): (root,)}
    # the list grows behind what is read
    for inside in (waiting := [*seen]):
        if (fragment := _cut(root, inside)) is not None:
            yield fragment
        if len(inside) == MOST_OPERATORS:
            continue
        terms = seen[inside]
        border = dict.fromkeys(a for term in terms for a in term.args if a.args and a.op in OPS and a not in inside)
        for more in border:
            if len(seen) < MOST_OF_ONE and (larger := inside | {more}) not in seen:
                # a set has no order that is the same in each process
                seen[larger] = (*terms, more)
                waiting.append(larger)


def _cut(root: Expr, inside: frozenset[Expr]) -> Expr | None:
    """``root`` with variables for what is not ``inside``; ``None`` if these are too many, or have no bounds."""
    names: dict[Expr, Expr] = {}
    counts = [0, 0]

    def read(term: Expr) -> Expr | None:
        if term in inside:
            args = [read(a) for a in term.args]
            return None if any(a is None for a in args) else make(term.op, *[a for a in args if a is not None])
        if term.op in ("const", "bool"):
            return term
        if term not in names:
            letters = _CONDITIONS if term.is_bool else _INTEGERS
            if counts[term.is_bool] == MOST_VARIABLES or not is_finite(term.vmin, term.vmax):
                return None
            name = letters[counts[term.is_bool]]
            counts[term.is_bool] += 1
            names[term] = make("ne", var(name, 0, 1), const(0)) if term.is_bool else var(name, term.vmin, term.vmax)
        return names[term]

    return read(root)


def _pairs(root: Expr) -> Iterator[Expr]:
    """Every two members of a chain of one operator, as if they stood alone."""
    if root.op not in _CHAINS:
        return
    op = "add" if root.op == "sub" else root.op
    members = signed_members(root, lambda term: term.op == op or (term.op == "sub" and op == "add"))
    if 2 < len(members) <= MOST_MEMBERS:
        for (one, sign), (other, also) in combinations(members, 2):
            yield make(op if sign == also else "sub", *((one, other) if sign >= also else (other, one)))
