"""Refutation: conditions that cannot hold together, found by elimination and case distinction.

Conditions in normal form become *rows*, forms that are at least zero, and *choices*, of whose alternatives one holds:
which member of an ``or`` holds, which operand a ``min`` is, which branch a ``where`` takes. The definitions of the
atoms in rows add further ones: ``A - n*(A//n)`` lies in ``[0, n)``, ``min(x, y)`` is one of the two and above neither.
Rows are refuted by :mod:`eqsat.theory.elimination`, a choice by refuting all its alternatives. The work is bounded:
what is not refuted may hold or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from eqsat.lang.expr import FALSE, Expr
from eqsat.lang.ops import is_finite
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.elimination import Rows
from eqsat.theory.forms import LinearForm, atom_form, factors, product, product_form, without_one
from eqsat.theory.limits import LIMITS


class _Alternative(NamedTuple):
    """One alternative of a choice: the rows, and the conditions, that hold in it."""

    rows: Sequence[LinearForm] = ()
    conditions: Sequence[Expr] = ()


@dataclass
class _Case:
    """Rows and open choices; ``seen`` are the atoms and facts whose rows have been added.

    ``of_products`` are rows from the definitions of products, which may mention further products.
    """

    rows: list[LinearForm] = field(default_factory=list)
    choices: list[list[_Alternative]] = field(default_factory=list)
    seen: set[Expr | LinearForm] = field(default_factory=set)
    of_products: set[LinearForm] = field(default_factory=set)
    impossible: bool = False

    def copied(self, choices: Sequence[list[_Alternative]]) -> Self:
        """The case with other choices left, to which more can be added."""
        return replace(self, rows=[*self.rows], choices=[*choices], seen={*self.seen}, of_products={*self.of_products})

    def without_further_products(self) -> list[LinearForm]:
        """The rows, except those in ``of_products`` with products that no other row has."""
        products = {a for row in self.rows if row not in self.of_products for a in row.terms if a.op == "mul"}
        return [row for row in self.rows if all(a in products for a in row.terms if a.op == "mul")]


def cannot_hold(theory: Arithmetic, conditions: Iterable[Expr], rows: Iterable[LinearForm] = ()) -> bool:
    """Whether ``conditions``, in normal form, and ``rows``, forms that are at least zero, were refuted."""
    rows, conditions = list(rows), list(conditions)
    if theory.late_or_raise() or _is_witnessed(theory, conditions, rows):
        return False
    case = _Case()
    _extend(theory, case, _Alternative(rows, conditions))
    return _is_refuted(theory, case, theory.work.steps - LIMITS.refutation_steps)


def never_negative(theory: Arithmetic, form: LinearForm) -> bool:
    """Whether ``form >= 0`` was proved."""
    if theory.bounds(form)[0] >= 0:
        return True
    if not is_coupled(theory, form):
        return False
    if (by_factor := theory.by_factor(form)) is not None:
        return never_negative(theory, by_factor[0])
    if theory.multiplied < LIMITS.multiplied_quotients:
        theory.multiplied += 1
        try:
            if any(never_negative(theory, other) for other in without_quotient_by_term(theory, form)):
                return True
        finally:
            theory.multiplied -= 1
    return cannot_hold(theory, (), [form.times(-1).shifted(-1)])


def without_quotient_by_term(theory: Arithmetic, form: LinearForm) -> Iterator[LinearForm]:
    """Forms with one symbolic quotient less: ``form`` is never negative if any of them never is.

    ``c - A//d`` is negative only where ``(c + 1)*d - 1 - A`` is, and ``c - k*(A//(k*d))`` only where ``c - A//d`` is.
    """
    content = form.common_factor() or 1
    for atom, coefficient in form.ordered().terms.items():
        parts = factors(atom)
        quotient = next((part for part in parts if part.op == "floordiv" and part.args[1].op != "const"), None)
        if quotient is None or theory.late_or_raise():
            continue
        dividend, divisor = map(theory.inner, quotient.args)
        if theory.bounds(divisor)[0] <= 0:
            continue
        rest = form.without(atom)
        if atom is quotient and abs(coefficient) == content:
            rest = rest.divided(content)
            if coefficient > 0:
                yield dividend.plus(theory.times(rest, divisor))
            else:
                yield theory.times(rest.shifted(1), divisor).plus(dividend, -1).shifted(-1)
        elif coefficient < 0:
            beside, k = without_one(parts, quotient), -coefficient
            smaller, left = divisor.partition_by(product(beside), k) if beside else divisor.partition(k)
            if not left.terms and not left.constant and theory.bounds(smaller)[0] > 0:
                yield rest.plus(theory.quotient(dividend, smaller), -1)


def _is_witnessed(theory: Arithmetic, conditions: Sequence[Expr], rows: Sequence[LinearForm]) -> bool:
    """Whether the conditions and rows hold together at some sample point."""
    holds = theory.witnessed() & theory.sampled_where(conditions)
    for row in rows:
        if not holds.any():
            return False
        holds = holds & (theory.sampled(row) >= 0)
    return bool(holds.any())


def is_coupled(theory: Arithmetic, form: LinearForm) -> bool:
    """Whether the atoms of a form may be related; if not, its bounds decide its sign."""
    met = theory.touched if theory.directions else 0
    for atom in form.terms:
        of_atom = theory.variables.of(atom)
        if of_atom & met or atom.op not in ("var", "floordiv"):
            return True
        met |= of_atom
    return False


def _is_refuted(theory: Arithmetic, case: _Case, left: int) -> bool:
    """Whether every choice leads to a clash; no once the steps of the theory are down to ``left``."""
    work = theory.work
    work.steps -= LIMITS.steps_of_case
    if work.steps <= max(left, 0) or theory.late_or_raise():
        return False
    _close(theory, case)
    if case.impossible:
        return True
    few = case.without_further_products() if case.of_products else case.rows
    if _clash(theory, few) or (len(few) < len(case.rows) and _clash(theory, case.rows)):
        return True
    if not case.choices:
        return False
    choice, *others = case.choices
    for alternative in choice:
        narrower = case.copied(others)
        _extend(theory, narrower, alternative)
        if not _is_refuted(theory, narrower, left):
            return False
    return True


def _clash(theory: Arithmetic, given: Iterable[LinearForm]) -> bool:
    """Whether rows contradict each other; the pairs that are combined count as steps."""
    rows = Rows(given, theory.range)
    clash = rows.clash()
    theory.work.steps -= rows.combined
    return clash


def _extend(theory: Arithmetic, case: _Case, alternative: _Alternative) -> None:
    """Add the rows of an alternative, and the rows and choices of its conditions."""
    case.rows += alternative.rows
    stack = list(alternative.conditions)
    while stack:
        condition = stack.pop()
        op = condition.op
        if condition is FALSE:
            case.impossible = True
        elif op == "and":
            stack += condition.args
        elif op == "or":
            case.choices.append([_Alternative(conditions=[m]) for m in chain_members(condition, "or")])
        elif op in ("lt", "le", "eq", "ne") and not condition.args[0].is_bool:
            left, right = (theory.inner(a) for a in condition.args)
            above, below = right.plus(left, -1), left.plus(right, -1)
            if op == "ne":
                case.choices.append([_Alternative([gap.shifted(-1)]) for gap in (above, below)])
            else:
                case.rows += [above, below] if op == "eq" else [above.shifted(-1) if op == "lt" else above]


def _close(theory: Arithmetic, case: _Case) -> None:
    """Add the definitions of the atoms of the rows, and facts about them, to which the same applies."""
    at = 0
    while at < len(case.rows) and len(case.seen) < LIMITS.refutation_atoms:
        for atom in case.rows[at].ordered().terms:
            for part in factors(atom) if atom.op == "mul" else ():
                if part not in case.seen and part.op == "floordiv":
                    case.seen.add(part)
                    _define(theory, case, part)
            if atom not in case.seen:
                case.seen.add(atom)
                _define(theory, case, atom)
                for direction, (low, high) in theory.directions:
                    if atom in direction.terms and direction not in case.seen:
                        case.seen.add(direction)
                        case.rows += _distances(direction, low, high)
        at += 1


def _define(theory: Arithmetic, case: _Case, atom: Expr) -> None:
    """Add the rows and the choice that say what an atom is."""
    op = atom.op
    itself = atom_form(atom)
    if op == "floordiv":
        dividend, divisor = theory.inner(atom.args[0]), theory.inner(atom.args[1])
        if theory.bounds(divisor)[0] > 0:
            rest = dividend.plus(theory.times(divisor, itself), -1)
            case.rows += [rest, divisor.plus(rest, -1).shifted(-1)]
    elif op == "min":
        gaps = [gap.plus(itself, -1) for gap in theory.gaps(atom)]
        case.rows += gaps
        case.choices.append([_Alternative([gap.times(-1)]) for gap in gaps])
    elif op == "where":
        branches = zip(atom.args[1:], (atom.args[0], theory.negate(atom.args[0])), strict=True)
        equal = [(theory.inner(branch).plus(itself, -1), holds) for branch, holds in branches]
        case.choices.append([_Alternative([gap, gap.times(-1)], [holds]) for gap, holds in equal])
    elif op == "tdiv" and atom.args[1].op == "const":
        dividend, n = theory.inner(atom.args[0]), atom.args[1].vmin
        # what is left has the sign of the dividend, and is nearer to zero than n
        rest = dividend.plus(itself, -n)
        signed = [(dividend.times(sign), rest.times(sign)) for sign in (1, -1)]
        case.choices.append([_Alternative([form, left, left.times(-1).shifted(n - 1)]) for form, left in signed])
    elif op == "mul":
        rows = [*_product_rows(theory, atom), *_scaled_facts(theory, atom)]
        case.rows += rows
        case.of_products.update(rows)


def _product_rows(theory: Arithmetic, atom: Expr) -> list[LinearForm]:
    """Products of the distances of two factors from the ends of their ranges, neither of which is negative."""
    *rest, last = factors(atom)
    x, y = product_form(rest), theory.inner(last)
    of_x, of_y = _distances(x, *theory.range(product(rest))), _distances(y, *theory.range(last))
    return [theory.times(one, other) for one in of_x for other in of_y]


def _scaled_facts(theory: Arithmetic, atom: Expr) -> Iterator[LinearForm]:
    """Facts about a sum with some of the factors, times the other factor, if that is not negative."""
    parts = factors(atom)
    for index, factor in enumerate(parts):
        rest = product(parts[:index] + parts[index + 1 :])
        if theory.range(factor)[0] < 0:
            continue
        for direction, (low, high) in theory.directions:
            if rest in direction.terms:
                for distance in _distances(direction, low, high):
                    yield theory.times(distance, theory.inner(factor))


def _distances(form: LinearForm, low: int, high: int) -> list[LinearForm]:
    """The distances of a form from each of its bounds that is finite."""
    above = [form.shifted(-low)] if is_finite(low) else []
    return [*above, form.times(-1).shifted(high)] if is_finite(high) else above
