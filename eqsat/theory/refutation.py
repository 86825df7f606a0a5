"""Refutation: conditions that cannot hold together, found by elimination and case distinction.

Conditions in normal form become *rows*, forms that are at least zero, and *choices*, of whose alternatives one holds:
what ``or`` leaves open, which operand a ``min`` is, which branch a ``where`` takes. The atoms of the rows bring rows
and choices of their own: ``A - n*(A//n)`` lies in ``[0, n)``, ``min(x, y)`` is one of the two and above neither. Rows
are refuted by :mod:`eqsat.theory.elimination`, choices alternative by alternative. All is bounded in size: what is not
refuted may hold or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd

from eqsat.lang.expr import FALSE, Expr, chain_members
from eqsat.lang.infinity import is_finite
from eqsat.theory.bits import Bits
from eqsat.theory.elimination import Rows
from eqsat.theory.forms import LinearForm, atom_form, factors, partition, partition_by, product, product_form, without
from eqsat.theory.limits import LIMITS

#: What one alternative of a choice says: rows that are at least zero, and conditions.
Alternative = tuple[list[LinearForm], list[Expr]]


@dataclass
class _Case:
    """Rows and open choices; ``seen`` are the atoms and facts that have brought theirs.

    ``of_products`` are the rows that products have brought, which may speak of further products.
    """

    rows: list[LinearForm] = field(default_factory=list)
    choices: list[list[Alternative]] = field(default_factory=list)
    seen: set[Expr | LinearForm] = field(default_factory=set)
    of_products: set[LinearForm] = field(default_factory=set)
    impossible: bool = False

    def without_further_products(self) -> list[LinearForm]:
        """The rows, without those of products that speak of others than all the rest do."""
        products = {a for row in self.rows if row not in self.of_products for a in row.terms if a.op == "mul"}
        return [row for row in self.rows if all(a in products for a in row.terms if a.op == "mul")]


class Refutations(Bits):
    """Conditions that contradict each other, or the facts."""

    #: Quotients that forms are being multiplied by the divisors of, one within the other.
    _multiplied = 0

    def cannot_hold(self, conditions: Iterable[Expr], rows: Iterable[LinearForm] = ()) -> bool:
        """Whether ``conditions``, in normal form, and ``rows``, forms that are at least zero, were refuted."""
        rows, conditions = list(rows), list(conditions)
        if self.is_late() or self._is_witnessed(conditions, rows):
            return False
        case = _Case()
        self._extend(case, (rows, conditions))
        return self._is_refuted(case, self.work.steps - LIMITS.refutation_steps)

    def is_never_negative(self, form: LinearForm) -> bool:
        """Whether ``form >= 0`` was proved."""
        if self.bounds(form)[0] >= 0:
            return True
        if not self.is_coupled(form):
            return False
        by_factor = self.by_factor(form)
        if by_factor is not None:
            return self.is_never_negative(by_factor[0])
        if self._multiplied < LIMITS.multiplied_quotients:
            self._multiplied += 1
            try:
                if any(map(self.is_never_negative, self._without_quotient_by_term(form))):
                    return True
            finally:
                self._multiplied -= 1
        return self.cannot_hold((), [form.times(-1).shifted(-1)])

    def _without_quotient_by_term(self, form: LinearForm) -> Iterator[LinearForm]:
        """Forms without a quotient by what is no literal and is positive: ``form`` is not negative if one of them is.

        ``c - A//d`` is not where ``(c + 1)*d - 1 - A`` is not, and ``c - k*(A//(k*d))`` where ``c - A//d`` is not.
        """
        content = gcd(form.content(), form.constant) or 1
        for atom, coefficient in form.ordered().terms.items():
            parts = factors(atom)
            quotient = next((part for part in parts if part.op == "floordiv" and part.args[1].op != "const"), None)
            if quotient is None or self.is_late():
                continue
            dividend, divisor = map(self.inner, quotient.args)
            if self.bounds(divisor)[0] <= 0:
                continue
            rest = form.plus(LinearForm({atom: coefficient}, 0), -1)
            if atom is quotient and abs(coefficient) == content:
                rest = rest.divided(content)
                if coefficient > 0:
                    yield dividend.plus(self.times(rest, divisor))
                else:
                    yield self.times(rest.shifted(1), divisor).plus(dividend, -1).shifted(-1)
            elif coefficient < 0:
                beside, k = without(parts, [quotient]) or [], -coefficient
                smaller, left = partition_by(divisor, product(beside), k) if beside else partition(divisor, k)
                if not left.terms and not left.constant and self.bounds(smaller)[0] > 0:
                    yield rest.plus(self.quotient(dividend, smaller), -1)

    def _is_witnessed(self, conditions: Sequence[Expr], rows: Sequence[LinearForm]) -> bool:
        """Whether the conditions and rows hold together at some sample point."""
        holds = self.witnessed() & self.witnesses.where_all(conditions)
        for row in rows:
            if not holds.any():
                return False
            holds = holds & (self.witnesses.of_form(row) >= 0)
        return bool(holds.any())

    def is_coupled(self, form: LinearForm) -> bool:
        """Whether the atoms of a form may be related: else its bounds say all there is to say."""
        met = self.touched if self.directions else 0
        for atom in form.terms:
            of_atom = self.variables.of(atom)
            if of_atom & met or atom.op not in ("var", "floordiv"):
                return True
            met |= of_atom
        return False

    def _is_refuted(self, case: _Case, left: int) -> bool:
        """Whether every choice leads to a clash, while more than ``left`` of all steps are left."""
        work = self.work
        work.steps -= LIMITS.steps_of_case
        if work.steps <= max(left, 0) or self.is_late():
            return False
        self._close(case)
        if case.impossible:
            return True
        few = case.without_further_products() if case.of_products else case.rows
        if self._clash(few) or (len(few) < len(case.rows) and self._clash(case.rows)):
            return True
        if not case.choices:
            return False
        choice, *others = case.choices
        for alternative in choice:
            narrower = _Case(list(case.rows), list(others), set(case.seen), set(case.of_products))
            self._extend(narrower, alternative)
            if not self._is_refuted(narrower, left):
                return False
        return True

    def _clash(self, given: Iterable[LinearForm]) -> bool:
        rows = Rows(given, self.range)
        clash = rows.clash()
        self.work.steps -= rows.combined
        return clash

    def _extend(self, case: _Case, alternative: Alternative) -> None:
        rows, stack = alternative[0], list(alternative[1])
        case.rows += rows
        while stack:
            condition = stack.pop()
            op = condition.op
            if condition is FALSE:
                case.impossible = True
            elif op == "and":
                stack += condition.args
            elif op == "or":
                case.choices.append([([], [member]) for member in chain_members(condition, "or")])
            elif op in ("lt", "le", "eq", "ne") and not condition.args[0].is_bool:
                left, right = (self.inner(a) for a in condition.args)
                above, below = right.plus(left, -1), left.plus(right, -1)
                if op == "ne":
                    case.choices.append([([above.shifted(-1)], []), ([below.shifted(-1)], [])])
                else:
                    case.rows.append(above.shifted(-1) if op == "lt" else above)
                    if op == "eq":
                        case.rows.append(below)

    def _close(self, case: _Case) -> None:
        """Add what is known of the atoms of the rows, and of theirs."""
        at = 0
        while at < len(case.rows) and len(case.seen) < LIMITS.refutation_atoms:
            for atom in case.rows[at].ordered().terms:
                for part in factors(atom) if atom.op == "mul" else ():
                    if part not in case.seen and part.op == "floordiv":
                        case.seen.add(part)
                        self._define(case, part)
                if atom not in case.seen:
                    case.seen.add(atom)
                    self._define(case, atom)
                    for direction, (low, high) in self.directions:
                        if atom in direction.terms and direction not in case.seen:
                            case.seen.add(direction)
                            case.rows += _distances(direction, low, high)
            at += 1

    def _define(self, case: _Case, atom: Expr) -> None:
        """Add the rows and the choice that say what an atom is."""
        op = atom.op
        itself = atom_form(atom)
        if op == "floordiv":
            dividend, divisor = self.inner(atom.args[0]), self.inner(atom.args[1])
            if self.bounds(divisor)[0] > 0:
                rest = dividend.plus(self.times(divisor, itself), -1)
                case.rows += [rest, divisor.plus(rest, -1).shifted(-1)]
        elif op == "min":
            gaps = [gap.plus(itself, -1) for gap in self.gaps(atom)]
            case.rows += gaps
            case.choices.append([([gap.times(-1)], []) for gap in gaps])
        elif op == "where":
            condition = atom.args[0]
            gaps = [self.inner(a).plus(itself, -1) for a in atom.args[1:]]
            case.choices.append(
                [
                    ([gap, gap.times(-1)], [holds])
                    for gap, holds in zip(gaps, (condition, self.negate(condition)), strict=True)
                ]
            )
        elif op == "tdiv" and atom.args[1].op == "const":
            dividend, n = self.inner(atom.args[0]), atom.args[1].vmin
            rest = dividend.plus(itself, -n)
            case.choices.append(
                [
                    ([dividend, rest, rest.times(-1).shifted(n - 1)], []),
                    ([dividend.times(-1), rest.times(-1), rest.shifted(n - 1)], []),
                ]
            )
        elif op == "mul":
            rows = [*self._product_rows(atom), *self._scaled_facts(atom)]
            case.rows += rows
            case.of_products.update(rows)

    def _product_rows(self, atom: Expr) -> list[LinearForm]:
        """The products of the distances of two factors from the ends of their ranges, which are not negative."""
        *rest, last = factors(atom)
        x, y = product_form(rest), self.inner(last)
        of_x, of_y = _distances(x, *self.range(product(rest))), _distances(y, *self.range(last))
        return [self.times(one, other) for one in of_x for other in of_y]

    def _scaled_facts(self, atom: Expr) -> Iterator[LinearForm]:
        """What is known of a sum with one factor, times another factor that is not negative."""
        parts = factors(atom)
        for index, factor in enumerate(parts):
            rest = product(parts[:index] + parts[index + 1 :])
            if self.range(factor)[0] < 0:
                continue
            for direction, (low, high) in self.directions:
                if rest in direction.terms:
                    for distance in _distances(direction, low, high):
                        yield self.times(distance, self.inner(factor))


def _distances(form: LinearForm, low: int, high: int) -> list[LinearForm]:
    """How far a form between two bounds is from each that is finite."""
    above = [form.shifted(-low)] if is_finite(low) else []
    return [*above, form.times(-1).shifted(high)] if is_finite(high) else above
