"""Ranges of reductions: their parts, and what all kinds of reductions over a range have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, topological
from eqsat.lang.ops import REDUCTIONS
from eqsat.theory.conditions import Conditions
from eqsat.theory.forms import ZERO, LinearForm, atom_form, number, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.solving import is_free_of, solved_for


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


@dataclass(frozen=True)
class Reducer(ABC):
    """What reduces bodies, which are normal in the range, by what a theory knows where the reduction stands."""

    theory: Conditions
    over: Range

    @abstractmethod
    def of(self, body: LinearForm) -> LinearForm:
        """The normal form of the reduction of ``body``."""

    @property
    def index(self) -> Expr:
        """The index of the range."""
        return self.over.index

    def is_free(self, *parts: LinearForm | Expr) -> bool:
        """Whether no part mentions the index."""
        return is_free_of(self.theory, self.index, *parts)

    def trips(self) -> LinearForm:
        """How many values the index takes."""
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

    def in_range(self, value: LinearForm) -> list[Expr]:
        """That the index may be ``value``."""
        return in_range(self.theory, self.over, value)

    def holding(self, condition: Expr) -> LinearForm | None:
        """For how many values of the index ``condition`` holds, if no sum is left in that."""
        count = self.theory.form(reduction("sum_over", make("where", condition, const(1), const(0)), self.over))
        return None if has_reductions(count) else count

    def over_part(self, op: str, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """The reduction of ``where(condition, x, y)`` over the part of the range that ``condition`` leaves."""
        solved = solved_for(self.theory, self.index, condition)
        if solved is None:
            return None
        part = self.part(solved.first, solved.beyond)
        inside = to_expr(x) if solved.rest is TRUE else make("where", solved.rest, to_expr(x), to_expr(y))
        return self.theory.form(reduction(op, inside, part))

    def residual(self, op: str, body: LinearForm) -> LinearForm:
        """A reduction that stays; computed now if it speaks of nothing but its index."""
        term = reduction(op, to_expr(body), self.over)
        steps = term.args[3].vmax - term.args[2].vmin
        if not self.theory.variables.of(term) and steps <= LIMITS.computed_steps and not _loads(body):
            return number(int(evaluate([term], {}, total=True)[0]))
        return atom_form(term)


def in_range(theory: Conditions, over: Range, value: LinearForm) -> list[Expr]:
    """That the index of a range may be ``value``."""
    ends = value.plus(over.low, -1), over.high.plus(value, -1).shifted(-1)
    return [theory.at_least_zero(end) for end in ends]


def reduction(op: str, body: Expr, over: Range) -> Expr:
    """A reduction as a term."""
    return make(op, body, over.index, to_expr(over.low), to_expr(over.high))


def has_reductions(form: LinearForm) -> bool:
    """Whether any reduction is left."""
    return any(term.op in REDUCTIONS for term in topological(form.terms))


def _loads(body: LinearForm) -> bool:
    return any(term.op == "load" for term in topological(body.terms))


def chosen(theory: Conditions, condition: Expr, x: Expr, y: Expr) -> LinearForm:
    """``x`` where ``condition``, in normal form, holds, else ``y``; neither is looked at where it is not taken."""
    if condition is TRUE or condition is FALSE:
        return theory.form(x if condition is TRUE else y)
    return theory.form(make("where", condition, x, y))


def selected(theory: Conditions, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
    """As :func:`chosen`, for normal forms."""
    return chosen(theory, condition, to_expr(x), to_expr(y))


def selection_in(body: LinearForm) -> tuple[Expr, ...] | None:
    """The plain condition and the branches of a body that is one selection."""
    choice = body.single()
    return None if choice is None or choice.op != "where" else with_plain_condition(choice).args


def with_plain_condition(selection: Expr) -> Expr:
    """A selection by what is itself selected by a condition, or compares two, as nested selections."""
    condition, x, y = selection.args
    if condition.op == "where":
        p, q, r = condition.args
        return make("where", p, make("where", q, x, y), make("where", r, x, y))
    if condition.op in ("eq", "ne") and condition.args[0].is_bool:
        p, q = condition.args
        x, y = (x, y) if condition.op == "eq" else (y, x)
        return make("where", p, make("where", q, x, y), make("where", q, y, x))
    return selection
