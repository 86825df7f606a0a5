"""What a condition says of one variable: the values that it leaves to it."""

from __future__ import annotations

from typing import NamedTuple

from eqsat.lang.expr import Expr, chain_members
from eqsat.theory.conditions import Conditions
from eqsat.theory.digits import difference
from eqsat.theory.forms import LinearForm, atom_form


class Solved(NamedTuple):
    """``first <= variable < beyond``, either of which may be missing, and what the condition says besides."""

    first: LinearForm | None
    beyond: LinearForm | None
    rest: Expr


def is_free_of(theory: Conditions, variable: Expr, *parts: LinearForm | Expr) -> bool:
    """Whether no part mentions ``variable``."""
    bit = theory.variables.of(variable)
    atoms = [atom for part in parts for atom in (part.terms if isinstance(part, LinearForm) else (part,))]
    return not any(theory.variables.of(atom) & bit for atom in atoms)


def equated(theory: Conditions, variable: Expr, condition: Expr) -> LinearForm | None:
    """The only value of the variable for which ``condition`` can hold, if it says which."""
    equations = [difference(theory, m) for m in chain_members(condition, "and") if m.op == "eq"]
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


def solved_for(theory: Conditions, variable: Expr, condition: Expr) -> Solved | None:
    """``condition`` as bounds of the variable and a rest; ``None`` if it bounds the variable nowhere."""
    first: LinearForm | None = None
    beyond: LinearForm | None = None
    rest: list[Expr] = []
    for member in chain_members(condition, "and"):
        bounds = _bounds_on(theory, variable, member)
        if bounds is None:
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
    theory: Conditions, variable: Expr, comparison: Expr
) -> tuple[LinearForm | None, LinearForm | None] | None:
    """What one comparison says: ``first <= variable < beyond``, either of which may be missing."""
    gap = difference(theory, comparison)
    if gap is None:
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
