"""Reductions over ranges of which one begins where the other ends, or is a part of the other, as one reduction.

They are joined before they are normalised: a closed form no longer shows the range. :mod:`eqsat.alternatives.ranges`
joins those that are only found later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import permutations, product

from eqsat.lang.arrays import np
from eqsat.lang.expr import Expr, any_var, instantiate, make
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, atom_form, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.ranges import Range, inside_reduction, reduction

#: By operator, the reduction over a whole range that joins the reductions over two parts of it.
JOINS = {"add": "sum_over", "mul": "prod_over", "max": "max_over", "min": "min_over"}


def as_one_range(theory: Arithmetic, term: Expr) -> Expr | None:
    """A sum with two sums over adjacent ranges replaced by one; the same for products and extremes."""
    members = chain_members(term, term.op)
    loops = [m for m in members if m.op == JOINS[term.op]]
    for one, other in permutations(loops, 2) if len(loops) <= LIMITS.adjacent_loops else ():
        if (whole := joined(theory, one, other)) is not None:
            members.remove(one)
            members.remove(other)
            return reduce(lambda x, y: make(term.op, x, y), members, whole)
    return None


def joined(theory: Arithmetic, one: Expr, other: Expr) -> Expr | None:
    """Both reductions as one, if the second starts where the first ends, perhaps after its index is shifted."""
    low, end, start, high = [theory.form(t) for t in (*one.args[2:], *other.args[2:])]
    for step in _steps(theory, end, start):
        over = _range(theory, low, high.plus(step))
        if _is_adjacent(theory, low, end, start.plus(step), over.high):
            body = _common_body(theory, one, other, over.index, step)
            if body is not None and _is_decided_by_some(theory, one.op, body):
                return reduction(one.op, to_expr(body), over)
    return None


def beyond(theory: Arithmetic, whole: Expr, part: Expr) -> Expr | None:
    """The sum over what the range of ``whole`` has beyond that of ``part``, which is a beginning or an end of it."""
    low, high, start, end = [theory.form(t) for t in (*whole.args[2:], *part.args[2:])]
    extent = end.plus(start, -1)
    if not all(map(theory.is_never_negative, (extent, high.plus(low, -1).plus(extent, -1)))):
        return None
    index = _range(theory, low, high).index
    for step, left in (
        (low.plus(start, -1), _range(theory, low.plus(extent), high)),
        (high.plus(end, -1), _range(theory, low, high.plus(extent, -1))),
    ):
        if _common_body(theory, whole, part, index, step) is not None:
            # the body of the part may be simplified by its range: the body of the whole holds everywhere
            return reduction(whole.op, instantiate(whole.args[0], whole.args[1], left.index), left)
    return None


def _range(theory: Arithmetic, low: LinearForm, high: LinearForm) -> Range:
    """The range with a new index."""
    first, last = theory.bounds(low)[0], theory.bounds(high)[1]
    return Range(any_var("#whole", first, max(first, last - 1)), low, high)


def _common_body(theory: Arithmetic, one: Expr, other: Expr, index: Expr, step: LinearForm) -> LinearForm | None:
    """The body of one reduction at ``index``, if that is the body of the other ``step`` before it."""
    try:
        bodies = _bodies(theory, one, index), _bodies(theory, other, to_expr(atom_form(index).plus(step, -1)))
    except ValueError:
        # an index would be captured, or a step that is never taken divides by zero
        return None
    return next((x for x, y in product(*bodies) if x == y), None)


def _steps(theory: Arithmetic, end: LinearForm, start: LinearForm) -> Iterator[LinearForm]:
    """The shifts of the second range that may make it start where the first ends."""
    yield start.plus(start, -1)
    ends = [end]
    if (minimum := theory.outer_minimum(end)) is not None:
        ends += theory.cases(end, minimum)
    for found in dict.fromkeys(ends):
        if found != start:
            yield found.plus(start, -1)


def _is_adjacent(theory: Arithmetic, low: LinearForm, end: LinearForm, start: LinearForm, high: LinearForm) -> bool:
    """Whether ``[low, end)`` and ``[start, high)`` are ``[low, high)``, each value once."""
    # at sample points first: to prove the order of the ends may take long
    at = {form: theory.witnesses.of_form(form)[theory.witnessed()] for form in (low, end, start, high)}
    is_cut_above = (np.minimum(at[start], at[high]) == at[end]).all() and (at[start] >= at[low]).all()
    if is_cut_above and theory.extreme("min", [start, high]) == end and theory.is_never_negative(start.plus(low, -1)):
        return True
    is_cut_below = (np.maximum(at[low], at[end]) == at[start]).all() and (at[high] >= at[end]).all()
    return bool(
        is_cut_below and theory.extreme("max", [low, end]) == start and theory.is_never_negative(high.plus(end, -1))
    )


def _bodies(theory: Arithmetic, term: Expr, value: Expr) -> list[LinearForm]:
    """The body as it is written, and as it is in its range, where the index is ``value``."""
    body, index = term.args[:2]
    written = [body]
    if (inside := inside_reduction(theory, term)) is not None:
        written.append(to_expr(inside.form(body)))
    return [theory.form(instantiate(each, index, value)) for each in dict.fromkeys(written)]


def _is_decided_by_some(theory: Arithmetic, op: str, body: LinearForm) -> bool:
    """Whether the value of an empty part never decides: the identity of an extreme is finite, so it might."""
    least, most = theory.bounds(body)
    identity = REDUCTIONS[op].identity
    return op not in ("max_over", "min_over") or (least >= identity if op == "max_over" else most <= identity)
