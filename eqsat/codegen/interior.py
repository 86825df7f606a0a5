"""The interior of a row: the part of an innermost loop in which conditions hold, so that they need not be tested.

A padded window, for example, tests whether it is inside its image. In one row of the output it is inside from some
element to another, and both can be computed before the row. Between them the loop has no tests, so that C compilers can
use vector instructions. A condition on the index of a reduction must hold for all values of the index. A reduction
whose range ends early in places runs over its whole range in the interior.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    row, theory = store.over[-1], LinearArithmetic()
    tests = _Tests(theory, store)
    everywhere = {c: _for_all_indices(theory, c) for c in tests.conditions}
    holds = {c: e for c, e in everywhere.items() if e not in (None, TRUE, FALSE) and _is_solved(theory, row, e)}
    if not holds:
        return None
    start, stop = _within(theory, row, theory.condition(all_of(holds.values())))
    try:
        LinearArithmetic(holds)
    except ContradictionError:
        return None
    parts = (store.target.args[1], tests.left_out(store.value, holds), store.when)
    if misfits([start, stop, *parts]):
        # a normal form may not fit 64 bits where the given term does
        return None
    return Interior(start, stop, equal_store(store, parts, store.over), tuple(holds))


class _Choice(NamedTuple):
    """Conditions, and which operand a selection takes where all of them hold."""

    conditions: list[Expr]
    taken: int


class _WholeEnd(NamedTuple):
    """A condition by which an end of a range is as far out as it can be, and that end."""

    condition: Expr
    end: Expr


class _Tests:
    """The tests in the value of a store: of its selections, and of its reductions whose ranges end early in places."""

    def __init__(self, theory: LinearArithmetic, store: Store) -> None:
        order = topological([store.value])
        self.choices = {t: _choice(theory, t) for t in order if t.op in ("where", "fwhere")}
        #: By a reduction and the place of an end among its operands.
        self.ends: dict[tuple[Expr, int], _WholeEnd] = {}
        for reduction in [t for t in order if t.op in REDUCTIONS]:
            for place in (2, 3):
                # not ends with parameters: these may never be near their bounds, and the interior would always be empty
                if set(variables([reduction.args[place]])) <= set(store.over):
                    self.ends[reduction, place] = _whole_end(theory, reduction, place)

    @property
    def conditions(self) -> list[Expr]:
        """All that is tested."""
        ends = [whole.condition for whole in self.ends.values()]
        return [*ends, *[c for choice in self.choices.values() for c in choice.conditions]]

    def left_out(self, value: Expr, holds: Collection[Expr]) -> Expr:
        """The value of the store without the tests of what ``holds``."""

        def without(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
            if term.op in REDUCTIONS:
                return make(term.op, *args[:2], *[self._end(term, place, args, holds) for place in (2, 3)])
            if term not in self.choices:
                return None
            conditions, taken = self.choices[term]
            left = [c for c in conditions if c not in holds]
            if len(left) == len(conditions):
                return None
            inside, outside = args[taken], args[3 - taken]
            return make(term.op, all_of(left), inside, outside) if left else inside

        return rebuild([value], without)[0]

    def _end(self, reduction: Expr, place: int, args: Sequence[Expr], holds: Collection[Expr]) -> Expr:
        whole = self.ends.get((reduction, place))
        return whole.end if whole is not None and whole.condition in holds else args[place]


def _choice(theory: LinearArithmetic, selection: Expr) -> _Choice:
    condition, yes, no = selection.args
    condition, taken = theory.condition(condition), 1
    # of the complement, if that is a conjunction or only the other branch loads
    loads = [any(t.op == "load" for t in topological([branch])) for branch in (yes, no)]
    if condition.op == "or" or (condition.op != "and" and loads == [False, True]):
        condition, taken = theory.negate(condition), 2
    return _Choice(chain_members(condition, "and"), taken)


def _whole_end(theory: LinearArithmetic, reduction: Expr, place: int) -> _WholeEnd:
    end = reduction.args[place]
    if place == 2:
        return _WholeEnd(theory.condition(end <= end.vmin), const(end.vmin))
    return _WholeEnd(theory.condition(end >= end.vmax), const(end.vmax))


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
    first, beyond, rest = _solved(theory, row, condition)
    low, high = row.vmin, row.vmax + 1
    start = low if first is None else max(low, theory.bounds(first)[0])
    stop = high if beyond is None else min(high, theory.bounds(beyond)[1])
    return stop - start >= CODE_LIMITS.row and not mentions(rest, row)


def _within(theory: LinearArithmetic, row: Expr, condition: Expr) -> tuple[Expr, Expr]:
    """Where the part of the row starts and stops in which ``condition`` holds; if it does nowhere, that is empty."""
    first, beyond, rest = _solved(theory, row, condition)
    end = const(row.vmax + 1)
    start = const(row.vmin) if first is None else minimum(maximum(to_expr(first), row.vmin), end)
    stop = end if beyond is None else maximum(minimum(to_expr(beyond), end), start)
    if rest is not TRUE:
        # where the rest fails, at the end of the row
        start, stop = where(rest, start, end), where(rest, stop, end)
    return theory.simplify(start), theory.simplify(stop)


def _solved(theory: LinearArithmetic, row: Expr, condition: Expr) -> tuple[LinearForm | None, LinearForm | None, Expr]:
    """The first value of ``row`` at which a condition holds, the one beyond the last, and what else must hold."""
    return solved_for(theory, row, condition) or (None, None, condition)
