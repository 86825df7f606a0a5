"""Ranges of reductions: their parts, and what all kinds of reductions over a range have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.lang.traversal import chain_members, has_reductions
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, LinearForm, atom_form, number, to_expr
from eqsat.theory.limits import LIMITS


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


class Solved(NamedTuple):
    """``first <= variable < beyond``, either of which may be missing, and what the condition says besides."""

    first: LinearForm | None
    beyond: LinearForm | None
    rest: Expr


@dataclass(frozen=True)
class Reducer(ABC):
    """What reduces bodies, which are normal in the range, by what a theory knows where the reduction stands."""

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

    def holding(self, condition: Expr) -> LinearForm | None:
        """For how many values of the index ``condition`` holds, if no sum is left in that."""
        count = self.theory.form(reduction("sum_over", make("where", condition, const(1), const(0)), self.over))
        return None if has_reductions(count.terms) else count

    def over_part(self, op: str, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """The reduction of ``where(condition, x, y)`` over the part of the range that ``condition`` leaves."""
        if (solved := solved_for(self.theory, self.index, condition)) is None:
            return None
        part = self.part(solved.first, solved.beyond)
        inside = to_expr(x) if solved.rest is TRUE else make("where", solved.rest, to_expr(x), to_expr(y))
        return self.theory.form(reduction(op, inside, part))

    def residual(self, op: str, body: LinearForm) -> LinearForm:
        """A reduction that stays; computed now if it speaks of nothing but its index."""
        term = reduction(op, to_expr(body), self.over)
        steps = term.args[3].vmax - term.args[2].vmin
        if not self.theory.variables.of(term) and steps <= LIMITS.computed_steps:
            return number(int(evaluate([term], {}, total=True)[0]))
        return atom_form(term)


def inside_reduction[T: Arithmetic](theory: T, term: Expr) -> T | None:
    """What is known in the body of a reduction; ``None`` if its range is empty."""
    _, index, low, high = term.args
    return assuming_in(theory, Range(index, theory.form(low), theory.form(high)))


def assuming_in[T: Arithmetic](theory: T, over: Range) -> T | None:
    """The theory that knows that the index is in its range; ``None`` if that is empty."""
    if theory.bounds(over.low)[0] >= theory.bounds(over.high)[1]:
        return None
    return theory.assuming(theory.junction("and", in_range(theory, over, atom_form(over.index))))


def is_free_of(theory: Arithmetic, variable: Expr, *parts: LinearForm | Expr) -> bool:
    """Whether no part mentions ``variable``."""
    bit = theory.variables.of(variable)
    atoms = [atom for part in parts for atom in (part.terms if isinstance(part, LinearForm) else (part,))]
    return not any(theory.variables.of(atom) & bit for atom in atoms)


def equated(theory: Arithmetic, variable: Expr, condition: Expr) -> LinearForm | None:
    """The only value of the variable for which ``condition`` can hold, if it says which."""
    equations = [theory.difference(m) for m in chain_members(condition, "and") if m.op == "eq"]
    waiting = [equation for equation in equations if equation is not None]
    values: dict[Expr, LinearForm] = {}
    # one equation may have a quotient by the variable that another one knows
    for _ in range(len(waiting)):
        for equation in waiting:
            left = equation
            for atom, value in values.items():
                left = left.plus(value.plus(atom_form(atom), -1), left.terms.get(atom, 0))
            moving = [atom for atom in left.terms if not is_free_of(theory, variable, atom)]
            if len(moving) == 1 and (moving[0] is variable or abs(left.terms[moving[0]]) == 1):
                scale = left.terms[moving[0]]
                rest = left.plus(atom_form(moving[0]), -scale)
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
    """What one comparison says: ``first <= variable < beyond``, either of which may be missing."""
    if (gap := theory.difference(comparison)) is None:
        return None
    if comparison.op == "eq":
        # a quotient has a value from one bound of its dividend to another
        halves = [theory.at_least_zero(gap.times(sign)) for sign in (1, -1)]
        bounds = [b for b in (_bounds_on(theory, variable, h) for h in halves if h.op in ("lt", "le")) if b]
        least, limit = [next((b[end] for b in bounds if b[end] is not None), None) for end in (0, 1)]
        return None if least is None or limit is None else (least, limit)
    scale = gap.terms.get(variable, 0)
    rest = gap.plus(atom_form(variable), -scale)
    if not scale or not is_free_of(theory, variable, rest):
        return None
    if scale > 0:
        # variable >= -rest/scale, rounded up
        return theory.quotient_by(rest, scale).times(-1), None
    return None, theory.quotient_by(rest, -scale).shifted(1)


def in_range(theory: Arithmetic, over: Range, value: LinearForm) -> list[Expr]:
    """That the index of a range may be ``value``."""
    ends = value.plus(over.low, -1), over.high.plus(value, -1).shifted(-1)
    return [theory.at_least_zero(end) for end in ends]


def reduction(op: str, body: Expr, over: Range) -> Expr:
    return make(op, body, over.index, to_expr(over.low), to_expr(over.high))


def chosen(theory: Arithmetic, condition: Expr, x: Expr, y: Expr) -> LinearForm:
    """``x`` where ``condition``, in normal form, holds, else ``y``; neither is looked at where it is not taken."""
    if condition is TRUE or condition is FALSE:
        return theory.form(x if condition is TRUE else y)
    return theory.form(make("where", condition, x, y))


def selected(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
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
