"""Changes of variables: an input in other variables than its own, and what these stand for.

A sum that the input divides in several ways, a flat index, is one variable; so is each ``x + 5`` of an input that has
``x`` only so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eqsat.alternatives.limits import LIMITS
from eqsat.lang.expr import Expr, any_var
from eqsat.lang.ops import COMPARISONS, FLOORS, REDUCTIONS
from eqsat.lang.traversal import is_index, topological
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, to_expr

#: The operators whose literals depend on where a variable begins, and divisions, whose dividends do.
_WITH_LITERALS = COMPARISONS | FLOORS | {"add", "sub", "min", "max"}


class Change(NamedTuple):
    """Other variables: the terms of the input that they are part of, as written with them, and what each stands for."""

    images: dict[Expr, Expr]
    back: dict[Expr, Expr]


def flat_index(order: Sequence[Expr], terms: Iterable[Expr], theory: Arithmetic) -> Change | None:
    """One variable for the sum of variables that the ``terms`` divide in several ways, if they hardly divide another.

    Its digits are those of one variable, though each alone may be shorter in what the sum adds. ``order`` has the terms
    below the roots.
    """
    flat = _divided(order, theory)
    if flat is None:
        return None
    index = any_var("@flat", *theory.bounds(flat))
    images = {}
    for term in terms:
        if term.args and not term.is_bool:
            form = theory.form(term)
            if form.terms == flat.terms:
                images[term] = index + form.constant
    return Change(images, {index: to_expr(flat)})


def shifted_variables(order: Iterable[Expr], roots: Iterable[Expr], terms: Iterable[Expr]) -> Change | None:
    """A variable for each ``x + 5`` that the roots have in place of ``x``.

    Normal forms add up literals. So they have ``x`` with other literals in each sum, and below each divisor. ``terms``
    are those of facts and gates too.
    """
    shifted = _only_shifted(order, roots)
    if not shifted:
        return None
    images: dict[Expr, Expr] = {}
    new = {x: any_var(f"@shifted_{x.value}", whole.term.vmin, whole.term.vmax) for x, whole in shifted.items()}
    for term in terms:
        written = _shifted(term) or _Shifted(term, term, 1, 0)
        if (whole := shifted.get(written.variable)) is not None:
            # the new variable is sign*x + by, so that x is sign*(variable - by)
            sign = written.sign * whole.sign
            images[term] = to_expr(LinearForm({new[whole.variable]: sign}, written.by - sign * whole.by))
    return Change(images, {new[x]: whole.term for x, whole in shifted.items()})


def has_literals(terms: Iterable[Expr]) -> bool:
    """Whether more than one operation has a literal, so that there may be fewer, or there are loops."""
    order = topological(terms)
    beside = [t for t in order if t.op in _WITH_LITERALS and any(arg.op == "const" for arg in t.args)]
    return len(beside) > 1 or any(t.op in REDUCTIONS for t in order)


def _divided(order: Sequence[Expr], theory: Arithmetic) -> LinearForm | None:
    """The sum of variables that terms divide in several ways, if they hardly divide another."""
    divided: dict[LinearForm, set[tuple[str, int, int]]] = {}
    for term in order:
        if term.op in FLOORS and term.args[1].op == "const":
            dividend = theory.form(term.args[0])
            if dividend.is_affine():
                ways = divided.setdefault(dividend.direction(), set())
                ways.add((term.op, term.args[1].vmin, dividend.constant))
    if not 1 <= len(divided) <= 2:
        return None
    flat, *others = sorted(divided, key=lambda form: -len(divided[form]))
    most = len(divided[flat])
    alone = all(len(divided[other]) < most for other in others)
    return flat if len(flat.terms) > 1 and most >= LIMITS.flat_ways and alone else None


class _Shifted(NamedTuple):
    """A term that is ``sign * variable + by``, for a sign of 1 or -1."""

    term: Expr
    variable: Expr
    sign: int
    by: int

    def distance(self) -> tuple[int, int, int]:
        """How far it is from the variable: its key in an order."""
        return abs(self.by), self.by, self.sign


def _shifted(term: Expr) -> _Shifted | None:
    """What ``x + 5``, ``5 + x``, ``x - 5`` and ``5 - x`` are; nothing for other terms."""
    if term.op not in ("add", "sub"):
        return None
    left, right = term.args
    sign = -1 if term.op == "sub" else 1
    if left.op == "var" and _is_of_literals(right):
        return _Shifted(term, left, 1, sign * right.vmin)
    if _is_of_literals(left) and right.op == "var":
        return _Shifted(term, right, sign, left.vmin)
    return None


def _is_of_literals(term: Expr) -> bool:
    """Whether a term is a literal, or as ``2*8`` an operation on literals."""
    return term.op != "var" and all(arg.op == "const" for arg in term.args) and term.vmin == term.vmax


def _only_shifted(order: Iterable[Expr], roots: Iterable[Expr]) -> dict[Expr, _Shifted]:
    """The variables that terms have only with literals added, each in its sum with the least literal."""
    found: dict[Expr, list[_Shifted]] = {}
    alone = {*roots}
    for term in order:
        written = _shifted(term)
        if written is None:
            alone.update(term.args)
        elif not is_index(written.variable):
            found.setdefault(written.variable, []).append(written)
    return {x: min(sums, key=_Shifted.distance) for x, sums in found.items() if x not in alone}
