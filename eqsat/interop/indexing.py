"""Indexing maps made simpler: the results of a map, the conditions of its domain, and the ranges of its variables.

The whole domain is used: results are optimised under the constraints, constraints are normalised, those that always
hold go, and the others narrow the ranges of the variables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd, inf, lcm
from typing import Any, cast

from eqsat.egraph.budget import Budget
from eqsat.interop.affine import Affine
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.maps import IndexingMap, Interval, in_order, intervals, list_of_conditions, within
from eqsat.lang.costs import LATENCY, model_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import FALSE, TRUE, Expr, const, replaced, var
from eqsat.lang.properties import suspects
from eqsat.lang.terms import all_of
from eqsat.lang.traversal import chain_members, topological, variables
from eqsat.lang.validation import require
from eqsat.optimizer.front import DEFAULT_BUDGET, optimize
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.definedness import unsafe_divisions
from eqsat.theory.forms import LinearForm, atom_form, read, to_expr
from eqsat.theory.linear import LinearArithmetic

__all__ = ["Affine", "IndexingMap", "simplify_constraints"]


def simplified(given: IndexingMap, **options: Any) -> IndexingMap:
    """The map that :meth:`eqsat.interop.maps.IndexingMap.simplify` returns."""
    if own := {"constraints", "gates"}.intersection(options):
        raise TypeError(f"{min(own)} is no option here: what holds on the domain are the constraints of the map")
    options = {"extract": "tree", **options, "cost": Affine(model_of(options.get("cost", LATENCY)))}
    until = _budget(options).ends()
    # the range of a runtime variable stays: it is that of the value, not of the domain
    narrow = {v: v for v in (*given.dims, *given.symbols)}
    constraints = list(given.constraints)
    try:
        for _ in range(INTEROP_LIMITS.rounds):
            before, constraints = constraints, _simpler(constraints, options, until)
            if constraints == [FALSE]:
                return given.emptied()
            ranges = narrowed(narrow.values(), constraints, until)
            narrow = {old: ranges[v] for old, v in narrow.items()}
            constraints = replaced(constraints, ranges)
            if constraints == before or time.perf_counter() > until:
                break
        terms = replaced(given.terms, narrow)
        found = optimize(terms, constraints=constraints, **_in_time(options, until)).exprs if terms else ()
    except ContradictionError:
        # the time was up before the constraints showed it
        return given.emptied()
    dims, symbols = [tuple(narrow[v] for v in some) for some in (given.dims, given.symbols)]
    return replace(given.with_terms(found, constraints), dims=dims, symbols=symbols)


def _budget(options: Mapping[str, Any]) -> Budget:
    budget = options.get("budget", DEFAULT_BUDGET)
    require(budget, Budget, "the budget")
    return cast(Budget, budget)


def _in_time(options: Mapping[str, Any], until: float) -> dict[str, Any]:
    """The options with what is left of the budget's time."""
    return {**options, "budget": _budget(options).until(until)}


def simplify_constraints(constraints: Iterable[Expr], **options: Any) -> list[Expr]:
    """Fewer and simpler conditions that hold together exactly where ``constraints`` do; ``[False]`` if nowhere.

    Constants move to one side, conditions that the ranges or other conditions imply are dropped, the terms inside are
    optimised, bounds of one term become one interval, and known remainders of one term one remainder.

    Parameters
    ----------
    constraints : iterable of bool Expr
        Conditions.
    options
        Those of :func:`eqsat.optimize`.

    Raises
    ------
    ValueError
        If a divisor can be zero where the other conditions hold.
    TypeError
        If a constraint is no condition.

    >>> d0 = var("d0", 0, 99)
    >>> simplify_constraints([6 <= d0 % 8 + 5, d0 % 8 + 5 <= 10])
    [Expr('1 <= d0%8'), Expr('d0%8 <= 5')]
    >>> simplify_constraints([(d0 % 2).eq(0), (d0 % 3).eq(1), d0 < 200])
    [Expr('d0%6 == 4')]
    """
    if isinstance(constraints, Expr | str) or not isinstance(constraints, Iterable):
        raise TypeError(f"the constraints must be a list of conditions, not {constraints!r}")
    return _simpler(constraints, options, _budget(options).ends())


def _simpler(constraints: Iterable[Expr], options: Mapping[str, Any], until: float) -> list[Expr]:
    """What :func:`simplify_constraints` finds until the time is up."""
    given = [c for c in chain_members(all_of(list_of_conditions(constraints)), "and") if c is not TRUE]
    if FALSE in given:
        return [FALSE]
    found: list[Expr] = []
    try:
        for some in in_order(given):
            found += _simplified(some, found, options, until)
        narrowed(variables(found), found, until)
        return found
    except ContradictionError:
        return [FALSE]
    except OverdueError:
        return given


def _simplified(
    together: Sequence[Expr], known: Sequence[Expr], options: Mapping[str, Any], until: float
) -> list[Expr]:
    """Conditions that hold together exactly where those of ``together`` do, wherever the ``known`` ones hold."""
    given = all_of(together)
    # with its time up, the theory may not see that a divisor is never zero
    theory = LinearArithmetic(known, work=Work.ending(inf if suspects(topological([given])) else until))
    solved = [part for c in together for part in chain_members(theory.condition(c), "and")]
    # an equality that is left is two bounds, since the bounds of a quotient are bounds of its numerator
    normal = theory.condition(all_of(half for part in solved for half in _halves(part)))
    if normal.op == "bool":
        return [] if normal is TRUE else [FALSE]
    if any(unsafe_divisions([normal], suspects(topological([normal])), [theory])):
        # a selection keeps a divisor from zero in the given conditions, but not in their normal form
        normal = given
    members = sorted((m for m in chain_members(normal, "and") if m is not TRUE), key=lambda m: m.key)
    bounded = [_as_remainder(*interval) for interval in intervals(members)]
    options = {"extract": "tree", **_in_time(options, until), "constraints": known}
    terms = optimize([term for term, _, _ in bounded], **options).exprs
    written = [_plainly(t, low, high) for t, (_, low, high) in zip(terms, bounded, strict=True)]
    return [c for term, low, high in _join_remainders(written) for c in within(term, low, high)]


def narrowed(given: Iterable[Expr], constraints: Sequence[Expr], until: float = inf) -> dict[Expr, Expr]:
    """Each variable of ``given``, and the one of its name with the range that it has where ``constraints`` hold.

    Ranges may be wider if ``until``, a time of :func:`time.perf_counter`, comes before they are found. Raises
    ``ValueError`` if they cannot hold together.
    """
    image = {v: v for v in given}
    constraints = list_of_conditions(constraints)
    for _ in range(INTEROP_LIMITS.rounds):
        try:
            theory = LinearArithmetic(replaced(constraints, image), work=Work.ending(until))
        except OverdueError:
            break
        narrower = {g: var(cast(str, v.value), *theory.range(v)) for g, v in image.items()}
        if narrower == image:
            break
        image = narrower
    return image


def _halves(condition: Expr) -> list[Expr]:
    if condition.op != "eq" or condition.args[0].is_bool:
        return [condition]
    left, right = condition.args
    return [left <= right, right <= left]


def _plainly(term: Expr, low: int, high: int) -> Interval:
    """The same condition, of a term that is not negated and to which no literal is added."""
    while True:
        if term.op == "neg":
            term, low, high = term.args[0], -high, -low
        elif term.op in ("add", "sub") and term.args[1].op == "const":
            offset = term.args[1].vmin if term.op == "add" else -term.args[1].vmin
            term, low, high = term.args[0], low - offset, high - offset
        else:
            return term, low, high


def _as_remainder(term: Expr, low: int, high: int) -> Interval:
    """The same condition of ``x % n`` if the term is ``x - x//n*n + c``; as it is otherwise."""
    if term.is_bool:
        return term, low, high
    form = read(term)
    for atom, coefficient in form.terms.items():
        if atom.op == "floordiv" and atom.args[1] is const(-coefficient) and coefficient < 0:
            rest = form.plus(atom_form(atom), -coefficient).plus(read(atom.args[0]), -1)
            if not rest.terms:
                return atom.args[0] % -coefficient, low - rest.constant, high - rest.constant
    return term, low, high


def _join_remainders(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """The conditions with the known remainders of a term by several literals as one (Chinese remainder theorem)."""
    known: dict[LinearForm, tuple[int, int]] = {}
    for term, low, high in intervals:
        if term.op != "mod" or term.args[1].op != "const" or max(low, term.vmin) != min(high, term.vmax):
            yield term, low, high
            continue
        dividend, modulus, remainder = read(term.args[0]), term.args[1].vmin, max(low, term.vmin)
        remainder -= dividend.constant
        dividend = dividend.direction()
        other, first = known.get(dividend, (1, 0))
        common = gcd(other, modulus)
        if (remainder - first) % common:
            yield FALSE, 1, 1
            return
        steps = (remainder - first) // common * pow(other // common, -1, modulus // common)
        known[dividend] = lcm(other, modulus), first + other * steps
    for dividend, (modulus, remainder) in known.items():
        yield to_expr(dividend) % modulus, remainder % modulus, remainder % modulus
