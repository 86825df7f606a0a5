"""The interior of a row: the part of an innermost loop in which conditions hold, so that they need not be tested.

A padded window, for example, tests whether it is inside its image. In one row of the output it is inside from some
element to another, and both can be computed before the row. Between them the loop has no tests, so that C compilers can
use vector instructions. A condition on the index of a reduction must hold for all values of the index. A reduction
whose range ends early in places runs over its whole range in the interior.
"""

from __future__ import annotations

from dataclasses import dataclass

from eqsat.codegen.limits import CODE_LIMITS
from eqsat.kernels.kernel import Store, equal_store
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, rebuild
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import FLOATS, REDUCTIONS
from eqsat.lang.properties import misfits
from eqsat.lang.terms import all_of
from eqsat.lang.traversal import chain_members, extent, is_index, mentions, topological, variables
from eqsat.theory.forms import LinearForm, to_expr
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.ranges import solved_for

#: Comparisons with these operators are not solved for an index.
_UNSOLVED = frozenset({"load", *REDUCTIONS, *FLOATS})


@dataclass(frozen=True)
class Interior:
    """The part ``start <= row < stop`` of the innermost loop of a store, within its range."""

    #: Terms that do not change in the loop.
    start: Expr
    stop: Expr
    #: What is stored there, without the tests.
    store: Store
    #: What holds there.
    facts: tuple[Expr, ...]


def interior_of(store: Store) -> Interior | None:
    """The interior of the innermost loop of ``store``; ``None`` if no condition holds in one long part of the loop."""
    if not store.over or extent(store.over[-1]) < CODE_LIMITS.row:
        return None
    row = store.over[-1]
    theory = LinearArithmetic()
    terms = topological([store.value])
    choices = {t: _choice(theory, t) for t in terms if t.op in ("where", "fwhere")}
    # not ends with parameters: these may never be near their bounds, and then the interior would always be empty
    ranges = [(r, place) for r in terms if r.op in REDUCTIONS for place in (2, 3)]
    near = [(r, place) for r, place in ranges if set(variables([r.args[place]])) <= set(store.over)]
    ends = {(r, place): _whole_end(theory, r, place) for r, place in near}
    members = [*[condition for condition, _ in ends.values()], *[m for own, _ in choices.values() for m in own]]
    everywhere = {m: _for_all_indices(theory, m) for m in members}
    holds = {m: c for m, c in everywhere.items() if c not in (None, TRUE, FALSE) and _is_solved(theory, row, c)}
    if not holds:
        return None
    condition = theory.condition(all_of(holds.values()))
    first, beyond, rest = solved_for(theory, row, condition) or (None, None, condition)
    try:
        LinearArithmetic(holds)
    except ContradictionError:
        return None

    def without_tests(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op in REDUCTIONS:
            whole = [ends.get((term, place), (FALSE, FALSE)) for place in (2, 3)]
            low, high = [end if c in holds else arg for (c, end), arg in zip(whole, args[2:], strict=True)]
            return make(term.op, *args[:2], low, high)
        own, taken = choices.get(term, ([], 0))
        if holds.keys().isdisjoint(own):
            return None
        left = [m for m in own if m not in holds]
        inside, outside = args[taken], args[3 - taken]
        return make(term.op, all_of(left), inside, outside) if left else inside

    (value,) = rebuild([store.value], without_tests)
    start, stop = _within(theory, row, first, beyond, rest)
    parts = (store.target.args[1], value, store.when)
    if misfits([start, stop, *parts]):
        # a normal form may not fit 64 bits where the given term does
        return None
    return Interior(start, stop, equal_store(store, parts, store.over), tuple(holds))


def _choice(theory: LinearArithmetic, selection: Expr) -> tuple[list[Expr], int]:
    """Conditions, and which operand a selection takes where all of them hold."""
    condition, yes, no = selection.args
    condition, taken = theory.condition(condition), 1
    # of the complement, if that is a conjunction or only the other branch loads
    loads = [any(t.op == "load" for t in topological([branch])) for branch in (yes, no)]
    if condition.op == "or" or (condition.op != "and" and loads == [False, True]):
        condition, taken = theory.negate(condition), 2
    return chain_members(condition, "and"), taken


def _whole_end(theory: LinearArithmetic, reduction: Expr, place: int) -> tuple[Expr, Expr]:
    """A condition by which an end of a range, the operand ``place``, is as far out as it can be; and that value."""
    end = reduction.args[place]
    if place == 2:
        return theory.condition(end <= end.vmin), const(end.vmin)
    return theory.condition(end >= end.vmax), const(end.vmax)


def _for_all_indices(theory: LinearArithmetic, member: Expr) -> Expr | None:
    """A comparison that implies ``member`` for all values of its indices of reductions; ``None`` if none is found."""
    terms = topological([member])
    if not _UNSOLVED.isdisjoint(t.op for t in terms):
        return None
    if not any(t.op == "var" and is_index(t) for t in terms):
        return member
    if member.op not in ("lt", "le") or member.args[0].is_bool:
        return None
    slack = theory.form(member.args[1]).plus(theory.form(member.args[0]), -1)
    least = slack.constant - (member.op == "lt")
    outer = {}
    for atom, coefficient in slack.terms.items():
        if atom.op == "var" and is_index(atom):
            least += coefficient * (atom.vmin if coefficient > 0 else atom.vmax)
        elif any(t.op == "var" and is_index(t) for t in topological([atom])):
            return None
        else:
            outer[atom] = coefficient
    return theory.condition(const(0) <= to_expr(LinearForm(outer, least)))


def _is_solved(theory: LinearArithmetic, row: Expr, condition: Expr) -> bool:
    """Whether ``condition`` holds in one part of the row, or nowhere in it, and that part may be long enough."""
    first, beyond, rest = solved_for(theory, row, condition) or (None, None, condition)
    low, high = row.vmin, row.vmax + 1
    start = low if first is None else max(low, theory.bounds(first)[0])
    stop = high if beyond is None else min(high, theory.bounds(beyond)[1])
    return stop - start >= CODE_LIMITS.row and not mentions(rest, row)


def _within(
    theory: LinearArithmetic, row: Expr, first: LinearForm | None, beyond: LinearForm | None, rest: Expr
) -> tuple[Expr, Expr]:
    """Where the interior starts and stops, within the row; where ``rest`` fails it is empty, at the end of the row."""
    end = const(row.vmax + 1)
    start = const(row.vmin) if first is None else minimum(maximum(to_expr(first), row.vmin), end)
    stop = end if beyond is None else maximum(minimum(to_expr(beyond), end), start)
    if rest is not TRUE:
        start, stop = where(rest, start, end), where(rest, stop, end)
    return theory.simplify(start), theory.simplify(stop)
