"""Loop-invariant code: how often terms run in a loop nest, and sums bracketed so that little of them runs often.

A term runs once per iteration of the innermost loop whose variable it contains. Extraction chooses terms; here the
brackets of their sums are chosen: what changes in outer loops is added first, inner loops add to a finished sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from eqsat.extract.cost import LoopAware
from eqsat.lang.expr import Expr, make
from eqsat.lang.ops import SUMS
from eqsat.lang.traversal import signed_members, topological, use_counts


def levels(terms: Iterable[Expr], loops: LoopAware) -> dict[Expr, int]:
    """How deep the innermost loop is that each of ``terms``, operands first, depends on; 0 is outside all loops."""
    found: dict[Expr, int] = {}
    for term in terms:
        if term.op == "var":
            found[term] = loops.level(cast(str, term.value))
        else:
            found[term] = max([found[a] for a in term.args], default=0)
    return found


def hoist(roots: Sequence[Expr], loops: LoopAware) -> list[Expr]:
    """``roots`` with every sum added from the outermost loop to the innermost; sums that are used twice stay whole."""
    order = topological(roots)
    level = levels(order, loops)
    uses = use_counts(roots)
    # the sums that are an operand of one other sum, once
    inside = {a for term in order if term.op in SUMS for a in term.args if a.op in SUMS and uses[a] == 1}
    new: dict[Expr, Expr] = {}
    for term in order:
        if term.op not in SUMS:
            new[term] = make(term.op, *[new[a] for a in term.args]) if term.args else term
        elif term not in inside:
            # within a level what is subtracted comes last, so that there is something to subtract from
            parts = sorted(signed_members(term, inside.__contains__), key=lambda addend: (level[addend[0]], -addend[1]))
            new[term] = _sum([(new[part], sign) for part, sign in parts])
    return [new[root] for root in roots]


def _sum(parts: Sequence[tuple[Expr, int]]) -> Expr:
    """Signed terms added from first to last; while all are subtracted, their sum waits for one to subtract it from."""
    total, positive = parts[0][0], parts[0][1] > 0
    for term, sign in parts[1:]:
        if (sign > 0) == positive:
            total = make("add", total, term)
        elif positive:
            total = make("sub", total, term)
        else:
            total, positive = make("sub", term, total), True
    return total if positive else make("neg", total)
