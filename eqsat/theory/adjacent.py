"""Two reductions over adjacent ranges as one, and the difference of two sums over ranges that overlap.

For ``0 <= m <= n``, ``sum(A[i], i, 0, m) + sum(A[i], i, m, n)`` is ``sum(A[i], i, 0, n)``. They are joined before they
are normalised: a closed form no longer shows the range. :mod:`eqsat.alternatives.ranges` joins those found later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import permutations, product

from eqsat.lang.expr import TRUE, Expr, instantiate, make
from eqsat.lang.ops import SUMS, np
from eqsat.lang.traversal import chain_members, topological
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, LinearForm, atom_form, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.ranges import inside_reduction, is_decided_by_some, new_range, selected

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
        over = new_range(theory, "#whole", low, high.plus(step))
        if _is_adjacent(theory, low, end, start.plus(step), over.high):
            body = _common_body(theory, one, other, over.index, step)
            if body is not None and is_decided_by_some(theory, one.op, body):
                return over.reduction(one.op, to_expr(body))
    return None


def difference(theory: Arithmetic, one: Expr, other: Expr) -> LinearForm | None:
    """One sum less another with the same body over a range that overlaps: the sums over what only one of them has.

    The index of the other may be shifted: ``sum(A[r + 1], r, 0, n)`` less ``sum(A[r], r, 0, n)`` is ``A[n] - A[0]``,
    if there is any ``r``.
    """
    low, high, start, end = [theory.form(t) for t in (*one.args[2:], *other.args[2:])]
    extent = high.plus(low, -1)
    # the shifts that may make the bodies equal: those that make ends or operands equal
    offsets = [there.plus(here, -1) for here, there in product(_offsets(theory, one), _offsets(theory, other))]
    for step in dict.fromkeys([low.plus(start, -1), high.plus(end, -1), *offsets]):
        found, some = _without_common(theory, one, other, step), TRUE
        if found is None and extent == end.plus(start, -1):
            # both are empty, or none is
            some = theory.at_least_zero(extent.shifted(-1))
            inside = theory.assuming(some)
            found = None if inside is None else _without_common(inside, one, other, step)
        if found is not None:
            return selected(theory, some, found, ZERO)
    return None


def _without_common(theory: Arithmetic, one: Expr, other: Expr, step: LinearForm) -> LinearForm | None:
    """One sum less another without the addends of both, if the ranges are known to overlap; ``step`` moves the other.

    Each body is used in its own range alone.
    """
    low, high, start, end = [theory.form(t) for t in (*one.args[2:], *other.args[2:])]
    first, last = start.plus(step), end.plus(step)
    meets = (high.plus(low, -1), last.plus(first, -1), high.plus(first, -1), last.plus(low, -1))
    index = new_range(theory, "#whole", low, high).index
    if not all(map(theory.is_never_negative, meets)) or _common_body(theory, one, other, index, step) is None:
        return None
    total = ZERO
    for begin, stop in ((low, first), (last, high)):
        if theory.is_never_negative(stop.plus(begin, -1)):
            total = total.plus(_part(theory, one, begin, stop))
        elif theory.is_never_negative(begin.plus(stop, -1)):
            total = total.plus(_part(theory, other, stop.plus(step, -1), begin.plus(step, -1)), -1)
        else:
            return None
    return total


def _part(theory: Arithmetic, term: Expr, low: LinearForm, high: LinearForm) -> LinearForm:
    """A reduction over a part of its range."""
    (body, index), over = term.args[:2], new_range(theory, "#whole", low, high)
    return theory.form(over.reduction(term.op, instantiate(body, index, over.index)))


def _offsets(theory: Arithmetic, term: Expr) -> list[LinearForm]:
    """What is added to the index in the operands of a body."""
    body, index = term.args[:2]
    operands = dict.fromkeys([a for t in topological([body]) if t.op not in SUMS for a in t.args if not a.is_bool])
    found = []
    for operand in operands:
        form = theory.form(operand)
        scale, rest = form.terms.get(index, 0), form.without(index)
        if scale and rest == (divided := theory.quotient_by(rest, abs(scale))).times(abs(scale)):
            found.append(divided.times(1 if scale > 0 else -1))
    return [*dict.fromkeys(found)]


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
    yield ZERO
    ends = [end]
    if (minimum := theory.outer_minimum(end)) is not None:
        ends += theory.cases(end, minimum)
    for found in dict.fromkeys(ends):
        if found != start:
            yield found.plus(start, -1)


def _is_adjacent(theory: Arithmetic, low: LinearForm, end: LinearForm, start: LinearForm, high: LinearForm) -> bool:
    """Whether ``[low, end)`` and ``[start, high)`` are ``[low, high)``, each value once."""
    # at sample points first: to prove the order of the ends may take long
    at = {form: theory.sampled(form)[theory.witnessed()] for form in (low, end, start, high)}
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
