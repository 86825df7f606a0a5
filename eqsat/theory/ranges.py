"""Ranges of reductions, their parts, and the base class of the closed forms of each kind of reduction.

A condition in a body becomes a part of the range: ``sum(where(3 <= i, x, 0), i, 0, n)`` is the sum of ``x`` over
``[3, n)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple, Self

from eqsat.lang.evaluation import evaluate, most_steps
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, const, instantiate, make
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import chain_members, topological
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, LinearForm, atom_form, combination, literal, number, to_expr
from eqsat.theory.limits import LIMITS

#: Operators of bodies that stay loops, however few their steps are.
_NEVER_WRITTEN = frozenset({"load", *REDUCTIONS})


@dataclass(frozen=True)
class Range:
    """The index of a reduction and the ends of its half-open range."""

    index: Expr
    low: LinearForm
    high: LinearForm

    @property
    def extent(self) -> LinearForm:
        """``high - low``, which an empty range may make negative."""
        return self.high.plus(self.low, -1)

    def reduction(self, op: str, body: Expr) -> Expr:
        """A reduction over the range."""
        return make(op, body, self.index, to_expr(self.low), to_expr(self.high))


def new_range(theory: Arithmetic, name: str, low: LinearForm, high: LinearForm) -> Range:
    """A range with an index of its own, which has its bounds."""
    least, most = theory.bounds(low)[0], theory.bounds(high)[1]
    return Range(any_var(name, least, max(least, most - 1)), low, high)


class Solved(NamedTuple):
    """A condition as ``first <= variable < beyond``, without the bounds that are ``None``, and ``rest``."""

    first: LinearForm | None
    beyond: LinearForm | None
    rest: Expr


@dataclass(frozen=True)
class Reducer(ABC):
    """Finds closed forms of a reduction. Bodies are normal inside the range; the theory is the one outside it."""

    theory: Arithmetic
    over: Range

    @abstractmethod
    def of(self, body: LinearForm) -> LinearForm:
        """The normal form of the reduction of ``body``."""

    @property
    def index(self) -> Expr:
        return self.over.index

    def is_free(self, *parts: LinearForm | Expr) -> bool:
        """Whether no part mentions the index."""
        return is_free_of(self.theory, self.index, *parts)

    def trip_count(self) -> LinearForm:
        """The number of values that the index takes."""
        return self.theory.extreme("max", [self.over.extent, ZERO])

    def ordered(self) -> Self:
        """The same over a range with ``low <= high``."""
        if self.theory.bounds(self.over.extent)[0] >= 0:
            return self
        high = self.theory.extreme("max", [self.over.low, self.over.high])
        return replace(self, over=Range(self.index, self.over.low, high))

    def part(self, first: LinearForm | None, beyond: LinearForm | None) -> Range:
        """The part of the range from ``first`` to before ``beyond``."""
        over, extreme = self.over, self.theory.extreme
        low = over.low if first is None else extreme("max", [over.low, first])
        high = over.high if beyond is None else extreme("min", [over.high, beyond])
        return Range(over.index, low, high)

    def holding(self, condition: Expr) -> LinearForm | None:
        """The number of values of the index for which ``condition`` holds; ``None`` if it has no closed form."""
        count = self.theory.form(self.over.reduction("sum_over", make("where", condition, const(1), const(0))))
        return None if has_reductions(count.terms) else count

    def over_part(self, op: str, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """The reduction of ``where(condition, x, y)`` over the part of the range in which ``condition`` may hold."""
        if (solved := solved_for(self.theory, self.index, condition)) is None:
            return None
        part = self.part(solved.first, solved.beyond)
        inside = to_expr(x) if solved.rest is TRUE else make("where", solved.rest, to_expr(x), to_expr(y))
        return self.theory.form(part.reduction(op, inside))

    def _bounded(self, end: LinearForm) -> Expr:
        """The end of a range as a term with the bounds of its values: the index has them, and loops are as long.

        The bounds of ``min(j - 5, 0) - j`` are wider than those of ``min(-j, -5)``.
        """
        term, minimum = to_expr(end), self.theory.outer_minimum(end)
        if minimum is None or self.theory.bounds(end) == (term.vmin, term.vmax):
            return term
        op = "min" if end.terms[minimum] > 0 else "max"
        return reduce(partial(make, op), map(to_expr, self.theory.cases(end, minimum)))

    def residual(self, op: str, body: LinearForm) -> LinearForm:
        """A reduction without closed form, as an atom; its value if it has no free variables and few steps."""
        if (written := self.written_out(op, body)) is not None:
            return written
        ends = [self._bounded(end) for end in (self.over.low, self.over.high)]
        term = make(op, to_expr(body), self.index, *ends)
        steps = term.args[3].vmax - term.args[2].vmin
        if self.theory.variables.of(term) or steps > LIMITS.computed_steps or most_steps([term]) > LIMITS.nested_steps:
            return atom_form(term)
        return number(int(evaluate([term], {}, total=True)[0]))

    def written_out(self, op: str, body: LinearForm) -> LinearForm | None:
        """The few values of a short body, combined: ``sum(min(i + r, 9), r, 0, 2)`` is ``min(i, 9) + min(i + 1, 9)``.

        Loops over loads stay: they are loops of kernels, whose order of loads is chosen later.
        """
        extent = literal(self.over.extent)
        if extent is None or not 1 < extent <= LIMITS.written_steps:
            return None
        term = to_expr(body)
        parts = topological([term])
        if len(parts) > LIMITS.written_terms or any(part.op in _NEVER_WRITTEN or part.element for part in parts):
            return None
        places = [to_expr(self.over.low.shifted(step)) for step in range(extent)]
        values = [self.theory.form(instantiate(term, self.index, place)) for place in places]
        if op == "sum_over":
            found = combination([(value, 1) for value in values], 0)
        elif op == "prod_over":
            found = reduce(self.theory.times, values)
        else:
            found = self.theory.extreme(op.removesuffix("_over"), values)
        # rules would try each combination of the branches of many
        selections = sum(part.op == "where" for part in topological([to_expr(found)]))
        return found if selections <= LIMITS.written_selections else None


def inside_reduction[T: Arithmetic](theory: T, term: Expr) -> T | None:
    """What is known in the body of a reduction; ``None`` if its range is empty."""
    _, index, low, high = term.args
    return assuming_in(theory, Range(index, theory.form(low), theory.form(high)))


def assuming_in[T: Arithmetic](theory: T, over: Range) -> T | None:
    """The theory that knows that the index is in its range; ``None`` if that is empty."""
    if theory.bounds(over.low)[0] >= theory.bounds(over.high)[1]:
        return None
    return theory.assuming(theory.junction("and", in_range(theory, over, atom_form(over.index))))


def is_decided_by_some(theory: Arithmetic, op: str, body: LinearForm) -> bool:
    """Whether the value of an empty part never decides: the identity of an extreme is finite, so it might."""
    least, most = theory.bounds(body)
    identity = REDUCTIONS[op].identity
    return op not in ("max_over", "min_over") or (least >= identity if op == "max_over" else most <= identity)


def is_free_of(theory: Arithmetic, variable: Expr, *parts: LinearForm | Expr) -> bool:
    """Whether no part mentions ``variable``."""
    bit = theory.variables.of(variable)
    atoms = [atom for part in parts for atom in (part.terms if isinstance(part, LinearForm) else (part,))]
    return not any(theory.variables.of(atom) & bit for atom in atoms)


def equated(theory: Arithmetic, variable: Expr, condition: Expr) -> LinearForm | None:
    """The only value of the variable for which ``condition`` can hold, if its equations imply one."""
    equations = [theory.difference(m) for m in chain_members(condition, "and") if m.op == "eq"]
    waiting = [equation for equation in equations if equation is not None]
    values: dict[Expr, LinearForm] = {}
    # an equation may contain a quotient of the variable that another equation solves for
    for _ in range(len(waiting)):
        for equation in waiting:
            left = equation
            for atom, value in values.items():
                left = left.plus(value.plus(atom_form(atom), -1), left.terms.get(atom, 0))
            moving = [atom for atom in left.terms if not is_free_of(theory, variable, atom)]
            if len(moving) == 1 and (moving[0] is variable or abs(left.terms[moving[0]]) == 1):
                scale = left.terms[moving[0]]
                rest = left.without(moving[0])
                values[moving[0]] = theory.quotient_by(rest.times(-1 if scale > 0 else 1), abs(scale))
        if variable in values:
            return values[variable]
    return None


def solved_for(theory: Arithmetic, variable: Expr, condition: Expr) -> Solved | None:
    """``condition`` as bounds of the variable and a rest; ``None`` if it bounds the variable nowhere."""
    first: LinearForm | None = None
    beyond: LinearForm | None = None
    rest: list[Expr] = []
    for member in chain_members(condition, "and"):
        if (bounds := _bounds_on(theory, variable, member)) is None:
            rest.append(member)
            continue
        least, limit = bounds
        if least is not None:
            first = least if first is None else theory.extreme("max", [first, least])
        if limit is not None:
            beyond = limit if beyond is None else theory.extreme("min", [beyond, limit])
    if first is None and beyond is None:
        return None
    return Solved(first, beyond, theory.junction("and", rest))


def _bounds_on(
    theory: Arithmetic, variable: Expr, comparison: Expr
) -> tuple[LinearForm | None, LinearForm | None] | None:
    """One comparison as ``first <= variable < beyond``, of which one may be ``None``; ``None`` if it is no bound."""
    if (gap := theory.difference(comparison)) is None:
        return None
    if comparison.op == "eq":
        # a quotient has one value from one bound of its dividend to another
        halves = [theory.at_least_zero(gap.times(sign)) for sign in (1, -1)]
        bounds = [_bounds_on(theory, variable, half) or (None, None) for half in halves if half.op in ("lt", "le")]
        first = next((least for least, _ in bounds if least is not None), None)
        beyond = next((limit for _, limit in bounds if limit is not None), None)
        return None if first is None or beyond is None else (first, beyond)
    scale = gap.terms.get(variable, 0)
    rest = gap.without(variable)
    if not scale or not is_free_of(theory, variable, rest):
        return None
    if scale > 0:
        # variable >= -rest/scale, rounded up
        return theory.quotient_by(rest, scale).times(-1), None
    return None, theory.quotient_by(rest, -scale).shifted(1)


def in_range(theory: Arithmetic, over: Range, value: LinearForm) -> list[Expr]:
    """The conditions that ``value`` is in the range."""
    ends = value.plus(over.low, -1), over.high.plus(value, -1).shifted(-1)
    return [theory.at_least_zero(end) for end in ends]


def chosen(theory: Arithmetic, condition: Expr, x: Expr, y: Expr) -> LinearForm:
    """``where(condition, x, y)`` for a normal ``condition``; a branch that is never taken is not normalised."""
    if condition is TRUE or condition is FALSE:
        return theory.form(x if condition is TRUE else y)
    return theory.form(make("where", condition, x, y))


def selected(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
    """As :func:`chosen`, for forms."""
    return chosen(theory, condition, to_expr(x), to_expr(y))


def selection_in(body: LinearForm) -> tuple[Expr, ...] | None:
    """The condition and the branches of a body that is one selection, as :func:`with_plain_condition` writes it."""
    choice = body.single()
    return None if choice is None or choice.op != "where" else with_plain_condition(choice).args


def with_plain_condition(selection: Expr) -> Expr:
    """A selection by a selection, or by a comparison, of conditions as nested selections by these conditions."""
    condition, x, y = selection.args
    if condition.op == "where":
        p, q, r = condition.args
        return make("where", p, make("where", q, x, y), make("where", r, x, y))
    if condition.op in ("eq", "ne") and condition.args[0].is_bool:
        p, q = condition.args
        x, y = (x, y) if condition.op == "eq" else (y, x)
        return make("where", p, make("where", q, x, y), make("where", q, y, x))
    return selection
