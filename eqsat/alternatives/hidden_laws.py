"""Hidden laws: quotients and remainders by laws that normal forms hide.

A normal form has small coefficients of either sign, and no nested floors that it could compose. What is cheap may be
neither: ``x + y*4//7`` is ``x + y - (y*3 + 6)//7`` then, and says no more that one multiplication by a power of two
would do. So the input's own divisions are also rewritten by such laws; each is checked at every point in
``tests/alternatives/test_hidden_laws.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import mul

from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.lang.expr import Expr, chain_members, const, make
from eqsat.lang.ops import FLOORS
from eqsat.lang.traversal import mentions
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, number, partition, split, to_expr
from eqsat.theory.limits import LIMITS as THEORY_LIMITS
from eqsat.theory.quotients import common_divisors

#: The operators whose terms are rewritten.
HIDDEN = FLOORS | {"mul", "prod_over"}


class HiddenLaws:
    """Other terms for the quotients, remainders and products of an input, asked for operands first."""

    def __init__(self, theory: Arithmetic) -> None:
        self.theory = theory
        # for each quotient by a literal, a dividend and a divisor that take in the quotients inside
        self._floors: dict[Expr, tuple[LinearForm, int]] = {}

    @provides("hidden laws")
    def rewritten(self, term: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Pairs of ``term``, or a quotient that its other terms use, and a term that is equal to it."""
        if term.op == "mul":
            yield from self._masked(*term.args)
            parts = chain_members(term, "mul", LIMITS.hidden_operands + 1)
            if 3 < len(parts) <= LIMITS.hidden_operands:
                yield from self._powers(term, parts)
            return
        if term.op == "prod_over":
            body, index, low, high = term.args
            times = high.vmax - low.vmin
            if low.op == high.op == "const" and times <= THEORY_LIMITS.sum_exponent and not mentions(body, index):
                yield from self._powers(term, [body] * times)
            return
        dividend, divisor = map(self.theory.form, term.args)
        n = divisor.constant
        if term.op == "floordiv" and term.args[0].op == "mod":
            yield from self._exchanged(term, divisor)
        if divisor.terms or abs(n) < 2:
            return
        if term.op == "mod":
            for residue in dict.fromkeys([split(dividend, abs(n), balanced)[1] for balanced in (False, True)]):
                if residue.terms and residue != dividend:
                    yield term, make("mod", to_expr(residue), term.args[1])
        else:
            if n > 0:
                yield from self._composed(term, dividend, n)
                yield from self._divided_first(term, dividend, n)
            yield from self._without_multiples(term, dividend, n)

    def _masked(self, quotient: Expr, divisor: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Beside ``x//n*n``, which something is less of, ``x % n`` of the same ``x`` for a power of two."""
        if quotient.op == "floordiv" and quotient.args[1] is divisor and is_power_of_two(divisor.vmin):
            remainder = make("mod", *quotient.args)
            yield remainder, remainder

    def _powers(self, product: Expr, parts: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
        """``x*x*x*x*y`` is ``(x*x)*(x*x)*y``, with what that is made of."""
        if len(parts) < 2:
            return
        values = list(map(self.theory.form, parts))
        counts = Counter(values)
        by_value = dict(zip(values, parts, strict=True))
        odd = next((value for value, count in counts.items() if count % 2), None)
        if odd is None:
            parts = [by_value[value] for value, count in counts.items() for _ in range(count // 2)]
            below = last = reduce(mul, parts)
        else:
            parts, last = [by_value[value] for value in (counts - Counter([odd])).elements()], by_value[odd]
            below = reduce(mul, parts)
        yield product, below * last
        yield from self._powers(below, parts)

    def _exchanged(self, term: Expr, divisor: LinearForm) -> Iterator[tuple[Expr, Expr]]:
        """``x % (n*k) // n`` is ``x // n % k`` for positive ``k``."""
        whole = self.theory.form(term.args[0].args[1])
        k = self.theory.quotient(whole, divisor)
        if self.theory.bounds(k)[0] > 0 and self.theory.times(k, divisor) == whole:
            yield term, make("mod", make("floordiv", term.args[0].args[0], term.args[1]), to_expr(k))

    def _composed(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(x//b + r) // n`` is ``(x + b*r) // (b*n)``."""
        inside = _floor_inside(term.args[0])
        if inside is not None:
            below, b = self._floors.get(inside) or (self.theory.form(inside.args[0]), inside.args[1].vmin)
            dividend, n = below.plus(dividend.plus(self.theory.form(inside), -1), b), b * n
            yield term, make("floordiv", to_expr(dividend), const(n))
            quotient = self.theory.quotient(dividend, number(n))
            if quotient.terms:
                yield term, to_expr(quotient)
        self._floors[term] = dividend, n

    def _divided_first(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(f*x + y) // (f*m)`` is ``(x + y//f) // m``, where ``y//f`` is as good as free or ``m`` a power of two."""
        for f in common_divisors(dividend, n) if not is_power_of_two(n) else ():
            multiples, rest = partition(dividend, f)
            if 1 < f < n and rest.terms and multiples.terms:
                low, high = self.theory.bounds(rest)
                if is_power_of_two(n // f) or high // f - low // f < 2:
                    inside = make("add", to_expr(multiples), make("floordiv", to_expr(rest), const(f)))
                    yield term, make("floordiv", inside, const(n // f))
                    return

    def _without_multiples(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(n*w + x) // n`` is ``w + x//n``: of all terms what ``n`` divides, or those alone that it divides."""
        undivided = LinearForm({a: k for a, k in dividend.terms.items() if k % n}, dividend.constant)
        for left in dict.fromkeys([split(dividend, abs(n), balanced=False)[1], undivided]):
            if left.terms and left != dividend and not self._is_atom(left, n):
                whole = dividend.plus(left, -1).divided(n)
                quotient = make("floordiv", to_expr(left), term.args[1])
                yield term, make("add", to_expr(whole), quotient)
                yield quotient, quotient

    def _is_atom(self, dividend: LinearForm, n: int) -> bool:
        """Whether the normal form of ``dividend // n`` is that quotient, which is written anyway."""
        atom = self.theory.quotient(dividend, number(n)).single()
        return atom is not None and atom.op == "floordiv" and atom.args[0] is to_expr(dividend)


def _floor_inside(term: Expr) -> Expr | None:
    """The one quotient by a literal that a sum adds, if there is just one."""
    found: Expr | None = None
    stack = [term]
    for _ in range(LIMITS.hidden_operands):
        if not stack:
            return found
        part = stack.pop()
        if part.op in ("add", "sub"):
            stack += part.args[: 2 if part.op == "add" else 1]
        elif part.op == "floordiv" and part.args[1].op == "const":
            if found is not None:
                return None
            found = part
    return None
