"""Where a term has a value: the points at which evaluating it divides by nothing that is zero.

Terms are read as :func:`eqsat.lang.evaluation.evaluate` reads them: a branch of a selection is needed where it is
chosen, a member of ``and`` or ``or`` where no other decides, a body where its index is in range.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from eqsat.lang.expr import FALSE, TRUE, Expr, brief, make
from eqsat.lang.functions import where
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.properties import may_divide_by_zero
from eqsat.lang.terms import all_of, both, chosen
from eqsat.lang.traversal import topological


def has_value(term: Expr) -> Expr:
    """The condition under which no quotient by zero is needed for ``term``; true if no divisor has a range with 0."""
    found: dict[Expr, Expr] = {}
    for part in topological([term]):
        found[part] = _has_value(part, [found[a] for a in part.args])
    return found[term]


def holds(condition: Expr) -> Expr:
    """Where a condition has a value, which is true; raises ``ValueError`` if it is no condition."""
    if not condition.is_bool or condition.op == "buffer":
        raise ValueError(f"a constraint or gate must be a condition, not {brief(condition)!r}")
    return both(has_value(condition), condition)


def _has_value(term: Expr, operands: Sequence[Expr]) -> Expr:
    """The condition of ``term``, given those of its operands."""
    if may_divide_by_zero(term):
        return all_of([*operands, term.args[1].ne(0)])
    if all(operand is TRUE for operand in operands):
        return TRUE
    match term.op:
        case "where" | "fwhere":
            condition, x, y = operands
            return both(condition, chosen(term.args[0], x, y))
        case "and" | "or":
            alone = [~a if term.op == "and" else a for a in term.args]
            return reduce(_either, [all_of(operands), *map(both, operands, alone)], FALSE)
        case op if op in REDUCTIONS:
            body, _, low, high = operands
            _, index, *ends = term.args
            steps = TRUE if body is TRUE else make("min_over", where(body, 1, 0), index, *ends) > 0
            return all_of([low, high, steps])
    return all_of(operands)


def _either(x: Expr, y: Expr) -> Expr:
    return y if x is FALSE else x if y is FALSE else TRUE if TRUE in (x, y) else x | y
