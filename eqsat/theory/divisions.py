"""Quotients read as divisions: a dividend is a divisor times the quotient, plus a remainder in a known range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd

from eqsat.lang.expr import Expr
from eqsat.lang.traversal import topological_until
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, Division, LinearForm, atom_form, factors, number, product_form, without
from eqsat.theory.limits import LIMITS


class Divisions(Arithmetic):
    """The ways to read atoms as quotients; bounds, products and quotients of forms are those of the layers above."""

    def divisions(self, atom: Expr) -> tuple[Division, ...]:
        """The ways to read ``atom`` as a quotient, or as a divisor times its quotient.

        ``A // (b*m)`` is also ``(A//b) // m``; the coefficients of ``A`` and the factors of ``atom`` suggest which.
        """
        found = self._divisions.get(atom)
        if found is None:
            # what asks for the divisions of this atom while they are being found sees the plain one
            found = self._divisions[atom] = self._flat_division(atom)
            nested = self._in_depth(atom, self._divisions, self.divisions, lambda a: tuple(self._nested_divisions(a)))
            found = self._divisions[atom] = (*found, *nested)
        return found

    def _in_depth[T](
        self, atom: Expr, memo: Mapping[Expr, object], ask: Callable[[Expr], object], find: Callable[[Expr], T]
    ) -> T:
        """What is found of ``atom``; deep inside such searches all below it that ``memo`` lacks is asked for first."""
        self._open += 1
        try:
            if self._open % LIMITS.open_searches == 0:
                for part in topological_until(atom.args, memo.__contains__):
                    ask(part)
            return find(atom)
        finally:
            self._open -= 1

    def divisions_in(self, form: LinearForm, atom: Expr) -> Iterator[Division]:
        """The divisions of ``atom`` whose dividends ``form`` holds; its other quotients may be dividends too."""
        for division in self.divisions(atom):
            if division.dividend.terms.keys() <= form.terms.keys():
                yield division
        if atom.op != "floordiv" or not self.has_time_for(form):
            return
        met = self.variables.of(atom)
        for other in form.terms:
            if other.op == "floordiv" and other is not atom and self.variables.of(other) & met:
                beside = self._division_of(other, atom)
                if beside is not None:
                    yield beside

    def _division_of(self, dividend: Expr, quotient: Expr) -> Division | None:
        """``A//b`` as the dividend of ``A // (b*m)``, of which common factors may be gone."""
        pair = (dividend, quotient)
        if pair not in self._pairs:
            self._pairs[pair] = None
            m = self._periods(dividend, quotient)
            # each may ask for those of the quotients in it, as deep as these nest
            if m > 1 and self._open < LIMITS.open_searches:
                form = atom_form(dividend)
                self._open += 1
                try:
                    if self.quotient_by(form, m) == atom_form(quotient):
                        self._pairs[pair] = Division(
                            form, number(m), form.plus(LinearForm({quotient: m}, 0), -1), m - 1
                        )
                finally:
                    self._open -= 1
        return self._pairs[pair]

    def _periods(self, dividend: Expr, quotient: Expr) -> int:
        """How often ``dividend`` grows where ``quotient`` does, by the first term that both have; 0 if unevenly."""
        b, n = dividend.args[1], quotient.args[1]
        if b.op == n.op == "const" and b.vmin > 0 and n.vmin > 0:
            faster = self.inner(dividend.args[0]).terms
            for atom, coefficient in self.inner(quotient.args[0]).terms.items():
                if atom in faster:
                    m, uneven = divmod(faster[atom] * n.vmin, coefficient * b.vmin)
                    return 0 if uneven else m
        return 0

    def _flat_division(self, atom: Expr) -> tuple[Division, ...]:
        for quotient in factors(atom):
            if quotient.op != "floordiv":
                continue
            dividend, divisor = self.inner(quotient.args[0]), self.inner(quotient.args[1])
            if quotient.args[1].vmin <= 0 and self.plain_bounds(divisor)[0] <= 0:
                continue
            if divisor.terms or quotient is atom:
                multiple = self.times(divisor, atom_form(quotient))
                if not divisor.terms or multiple.terms.keys() == {atom}:
                    most = self.plain_bounds(divisor)[1] - 1
                    return (Division(dividend, divisor, dividend.plus(multiple, -1), most),)
        return ()

    def _nested_divisions(self, atom: Expr) -> Iterator[Division]:
        for quotient in factors(atom):
            divisor = self.inner(quotient.args[1]) if quotient.op == "floordiv" else ZERO
            n = sum(divisor.terms.values()) + divisor.constant
            if divisor.addends() != 1 or n < 0:
                continue
            dividend = self.inner(quotient.args[0])
            beside = without(factors(atom), [quotient]) or []
            symbols = without([f for monomial in divisor.terms for f in factors(monomial)], beside)
            if symbols is None:
                continue
            for b in sorted({gcd(c, n) for c in dividend.terms.values()} | {n}):
                if not self.has_time_for(dividend):
                    return
                # neither part may be one
                if (b > 1 or symbols) and (b < n or beside):
                    outer = product_form(beside).times(n // b)
                    low, high = self.plain_bounds(outer)
                    if low > 0:
                        part = self.quotient(dividend, product_form(symbols).times(b))
                        yield Division(part, outer, part.plus(LinearForm({atom: n // b}, 0), -1), high - 1)
