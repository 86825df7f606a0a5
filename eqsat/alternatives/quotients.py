"""E-nodes of quotients and remainders: ``A - n*(A//n)`` is ``A % n``, and the rest of a sum may enter a floor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import gcd, lcm
from operator import or_

from eqsat.alternatives.canonical import CanonicalGraph, KindNodes, shift_to_non_negative
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr
from eqsat.lang.ops import is_finite
from eqsat.lang.properties import may_divide_by_zero
from eqsat.theory.forms import ZERO, LinearForm, atom_form, factors, literal_divisor, number, read
from eqsat.theory.periods import constant_remainder, lacking


class QuotientNodes(KindNodes):
    """The e-nodes of quotients, alone and in sums."""

    def __init__(self, classes: CanonicalGraph) -> None:
        super().__init__(classes)
        #: By class, the quotients by a literal whose dividend has a constant.
        self.of_shifted: dict[int, Expr] = {}
        #: By class, the quotients by a literal whose dividend may be negative, where that makes them cost more.
        self.signed: dict[int, Expr] = {}
        # quotients, each with another dividend and divisor; added if the atoms of that dividend have classes
        self._nested: list[tuple[Expr, LinearForm, LinearForm]] = []
        # of products and quotients, whether they have a quotient without remainder: each stands in many sums
        self._are_exact: dict[Expr, bool] = {}

    def nodes(self, atom: Expr) -> Iterator[Node]:
        """A quotient rounded down."""
        return self._of_literal_divisor(atom) if atom.args[1].op == "const" else self._of_symbolic_divisor(atom)

    def _of_literal_divisor(self, atom: Expr) -> Iterator[Node]:
        """The quotient, and its opposite; other dividends and divisors of it are noted for :meth:`add_nested`."""
        dividend, n = self.theory.inner(atom.args[0]), atom.args[1].vmin
        if dividend.constant:
            self.of_shifted[self.add_class(atom_form(atom))] = atom
        yield from self._by_literal(dividend, n)
        low, high = self.theory.plain_bounds(dividend)
        if shift_to_non_negative(low, n):
            self.signed[self.add_class(atom_form(atom))] = atom
        if low < 0 and high < n and not is_power_of_two(n):
            # the dividend of the opposite is never negative
            yield self.sum_node([(atom_form(atom).times(-1), -1)])
        self._nested += [(atom, of.dividend, of.divisor) for of in self.theory.divisions(atom)[1:]]
        self._nested += [(atom, other, number(d)) for other, d in self._beside_multiple(dividend, n)]

    def _of_symbolic_divisor(self, atom: Expr) -> Iterator[Node]:
        """The quotient, also by a literal factor of its divisor first, as a shift, or rounded toward zero."""
        dividend, divisor = map(self.theory.inner, atom.args)
        yield self.node("floordiv", dividend, divisor)
        if (power := shifted_literal(divisor)) is not None:
            yield self.node("shr", self.theory.quotient_by(dividend, power[0]), power[1])
        n = divisor.common_factor()
        smaller = divisor.divided(n)
        if n > 1 and self.theory.bounds(smaller)[0] > 0:
            # by the literal first where that spares a product
            first = self.theory.quotient_by(dividend, n)
            yield self.node("floordiv", first, smaller)
        if self.classes.truncates and self.theory.bounds(dividend)[0] >= 0 and self.theory.bounds(divisor)[0] > 0:
            # of numbers that are not negative the two quotients are one
            yield "tdiv", None, self.operands(atom)

    def completed_remainders(self, form: LinearForm) -> Iterator[Node]:
        """``k*(x - n*((x + z)//n))`` is ``k*((x + z)%n - z)``."""
        for quotient, coefficient in form.terms.items():
            if quotient.op not in ("floordiv", "tdiv") or quotient.args[1].op != "const":
                continue
            k, left = divmod(-coefficient, quotient.args[1].vmin)
            if left or any(c % k for c in form.terms.values()):
                continue
            for scale in dict.fromkeys([k, abs(k)]):
                if scale != 1:
                    yield self.sum_node([(form.direction().divided(scale), scale)], number(form.constant))
            if abs(k) != 1:
                continue
            remainder = self.classes.remainder_of(quotient)
            rest = form.plus(remainder, -k)
            if len(rest.terms) == 1:
                yield self.sum_node([(remainder, k)], rest)

    def of_symbolic_divisors(self, form: LinearForm) -> Iterator[Node]:
        """``k*x - k*y*(x//y)`` is ``k*(x % y)``, where ``y`` is a sum or may be zero, as far as is known.

        Rules leave a divisor alone that may be zero, and do not see one that is multiplied out.
        """
        for atom in form.terms:
            for quotient in factors(atom) if atom.op == "mul" else ():
                if quotient.op != "floordiv":
                    continue
                dividend, divisor = map(self.theory.inner, quotient.args)
                power = shifted_literal(divisor)
                if power is not None and is_power_of_two(power[0]):
                    c = self.add_class(self.classes.remainder_of(quotient))
                    self.classes.add_node(c, self.node("bitand", dividend, divisor.shifted(-1)))
                if divisor.single() is not None and not may_divide_by_zero(quotient):
                    continue
                remainder = dividend.plus(self.theory.times(divisor, atom_form(quotient)), -1)
                k = form.scale_of(remainder)
                rest = form.plus(remainder, -k)
                if len(rest.terms) + len(remainder.terms) == len(form.terms):
                    c = self.add_class(remainder)
                    self.classes.add_node(c, self.node("mod", dividend, divisor))
                    if rest.terms or rest.constant or k != 1:
                        yield self.sum_node([(remainder, k)], rest)

    def rounded_up(self, form: LinearForm) -> Iterator[Node]:
        """What is missing to the next multiple of ``n``, also in longer sums: ``(x + n-1)//n*n - x`` is ``-x % n``."""
        for of in self.theory.remainders_in(form) if len(form.terms) <= LIMITS.wide_sum else ():
            quotient, n, scale = of.quotient, of.divisor, -of.scale
            missing = number(n - 1).plus(self.classes.remainder_of(quotient), -1)
            rest = form.plus(missing, -scale)
            # a sum of two terms may also be what is missing and a third one
            spare = 1 if len(form.terms) == 2 else 0
            if not rest.constant and len(rest.terms) + len(missing.terms) <= len(form.terms) + 2 * spare:
                opposite = missing.plus(atom_form(quotient), -n)
                self.classes.add_node(self.add_class(missing), self.node("mod", opposite, number(n)))
                if form != missing:
                    yield self.sum_node([(missing, scale)], rest)
                if scale < 0 and rest.terms:
                    # a remainder by the negative divisor is what exceeds the next multiple
                    exceeding = missing.times(-1)
                    self.classes.add_node(self.add_class(exceeding), self.node("mod", opposite.times(-1), number(-n)))
                    yield self.sum_node([(exceeding, -scale)], rest)

    def multiples_between(self, form: LinearForm) -> Iterator[Node]:
        """How many multiples lie between two values: ``(x + y)//n - x//n`` is ``(x%n + y)//n``, also in longer sums."""
        quotients = [(k, a) for a, k in form.terms.items() if literal_divisor(a)]
        if len(form.terms) > LIMITS.wide_sum or len(quotients) != 2 or quotients[0][0] != -quotients[1][0]:
            return
        less, more = [quotient for _, quotient in sorted(quotients, key=lambda item: item[0])]
        difference, scale = LinearForm({more: 1, less: -1}, 0), form.terms[more]
        between = self.theory.inner(more.args[0]).plus(self.theory.inner(less.args[0]), -1)
        rest = form.plus(difference, -scale)
        if more.args[1] is not less.args[1] or len(between.terms) > 1:
            return
        n = less.args[1].vmin
        if form != difference and not (between.terms and is_power_of_two(n)):
            # other remainders cost as much as the quotient that they spare
            return
        if scale > 1 or not rest.terms.keys() <= between.terms.keys():
            yield self.sum_node([(difference, scale)], rest)
        elif form.constant:
            yield self.sum_node([(form.direction(), 1)], number(form.constant))
        else:
            dividend = self.classes.remainder_of(less).plus(between).plus(rest, n)
            yield self.node("floordiv", dividend, number(n))

    def remainders_of_quotients(self, form: LinearForm) -> Iterator[Node]:
        """``(x + 11)//12 - 8*((x + 11)//96)`` is ``(x + 11)//12 % 8``, however the theory writes the two quotients.

        ``rest - n*Q`` is ``rest % n`` where ``rest // n`` is ``Q``, and ``rest + n*Q`` where it is ``-Q``.
        """
        if not 1 < len(form.terms) <= LIMITS.remainder_terms:
            return
        variables = self.theory.variables
        for quotient, k in form.terms.items():
            n = abs(k)
            if n == 1 or not literal_divisor(quotient):
                continue
            rest = form.without(quotient)
            own, others = variables.of(quotient), reduce(or_, map(variables.of, rest.terms))
            # rest // n is not that quotient if it lacks variables of it; a plain remainder has its node already
            is_plain = literal_divisor(quotient) == n and self.theory.inner(quotient.args[0]) == rest
            if is_plain or own & others != own or all(j % n == 0 for j in rest.terms.values()):
                continue
            left = self.theory.quotient_by(rest, n).plus(atom_form(quotient), 1 if k > 0 else -1)
            if not left.terms:
                remainder = self.add_class(form.shifted(-n * left.constant))
                self.classes.add_node(remainder, self.node("mod", rest, number(n)))
                if (opposite := self._never_negative_opposite(rest, n)) is not None:
                    self.classes.add_node(remainder, self.node("mod", opposite, number(n)))
                if left.constant:
                    yield self.sum_node([(self.classes.form_of(remainder), 1)], number(n * left.constant))

    def remainders_of_cases(self, form: LinearForm) -> Iterator[Node]:
        """``k*x - k*n*min(y, x//n)`` where ``min(y, x//n)`` is the quotient of a minimum: ``k`` times its remainder."""
        for atom, coefficient in form.terms.items():
            if (known := self.theory.quotients_of_cases.get(atom)) is None:
                continue
            dividend, n, quotient = known
            remainder = dividend.plus(quotient, -n)
            by = remainder.terms.get(atom, 0)
            if not by or coefficient % by:
                continue
            k = coefficient // by
            rest = form.plus(remainder, -k)
            if len(rest.terms) + len(remainder.terms) == len(form.terms):
                self.classes.add_node(self.add_class(remainder), self.node("mod", dividend, number(n)))
                if k != 1 or rest != ZERO:
                    yield self.sum_node([(remainder, k)], rest)

    def _never_negative_opposite(self, form: LinearForm, n: int) -> LinearForm | None:
        """``7 - A//5`` plus the multiple of ``n`` by which it is never negative, so that its remainder costs less."""
        ((atom, k), *others) = form.terms.items()
        low, _ = self.theory.bounds(form)
        if others or k != -1 or low >= 0 or not is_finite(low) or is_power_of_two(literal_divisor(atom)):
            return None
        return form.shifted(-(low // n) * n)

    def of_multiples(self, form: LinearForm) -> Iterator[Node]:
        """``x//(n*k)*k`` is ``x//n`` where facts say that ``x % (n*k)`` is less than ``n``: of multiples it is 0."""
        for atom, k in form.terms.items():
            n, left = divmod(literal_divisor(atom), abs(k))
            if abs(k) == 1 or left or n < 2:
                continue
            sign, dividend = (1 if k > 0 else -1), self.theory.inner(atom.args[0])
            whole = self.theory.quotient_by(dividend, n)
            if whole.terms.get(atom) != abs(k):
                continue
            rest = form.plus(whole, -sign)
            if len(rest.terms) < len(form.terms):
                operands = self.add_class(dividend), self.add_class(number(n))
                self.classes.add_node(self.add_class(whole), ("floordiv", None, operands))
                yield self.sum_node([(whole, sign)], rest)

    def absorbing(self, form: LinearForm) -> Iterator[Node]:
        """The rest of a sum may enter the floor: ``A//n + w = (A + n*w)//n``, ``w - A//n = (n*w - A + n-1)//n``."""
        some = 0
        for atom, coefficient in form.terms.items():
            if abs(coefficient) != 1 or atom.op != "floordiv" or atom.args[1].op != "const":
                continue
            n = atom.args[1].vmin
            inner = self.theory.inner(atom.args[0])
            # each such node has about as many terms as the sum
            if some * len(form.terms) < LIMITS.partly_absorbed and (node := self._absorbing_some(form, atom, inner)):
                some += 1
                yield node
            if len(form.terms) > 2 * len(inner.terms) + 2:
                # more is left than can cancel
                continue
            rest = form.without(atom).times(n)
            dividend = rest.plus(inner, coefficient).shifted(lacking(inner, n) if coefficient < 0 else 0)
            # the rest may cancel terms of one operand of a minimum, or complete a remainder
            more = len(dividend.terms) - len(inner.terms) - dividend.has_minimum()
            completes = more == 1 and len(form.terms) > 2 and is_power_of_two(n)
            if more <= 0 or (completes and self._has_remainder(dividend)):
                yield from self._by_literal(dividend, n)

    def over_one_divisor(self, form: LinearForm) -> Iterator[Node]:
        """Quotients of polynomials that their divisors always divide, as one: ``(n*n + n)//2*4`` is ``(n*n + n)*2``.

        ``(n*n*n - n)//3 + (n*n - n)//2`` is ``(n*n*n*2 + n*n*3 - n*5)//6``.
        """
        if len(form.terms) > LIMITS.wide_sum or not any(map(self._has_exact_quotient, form.terms)):
            return
        found = [self._exact(atom) for atom in form.terms]
        exact = [(k, *whole) for k, whole in zip(form.terms.values(), found, strict=True) if whole is not None]
        if len(form.terms) == 1 and gcd(exact[0][0], exact[0][2]) == 1:
            return
        divisor = lcm(*[n // gcd(k, n) for k, _, n in exact])
        total = number(form.constant * divisor)
        for (atom, k), whole in zip(form.terms.items(), found, strict=True):
            dividend, n = (atom_form(atom), 1) if whole is None else whole
            total = total.plus(dividend, k * divisor // n)
        if len(total.terms) > max(len(form.terms), LIMITS.dividend_terms):
            # multiplied out, polynomials of several variables are longer than their factors
            return
        common = gcd(total.common_factor(), divisor)
        dividend, divisor = total.divided(common), divisor // common
        yield self.sum_node([(dividend, 1)]) if divisor == 1 else self.node("floordiv", dividend, number(divisor))

    def _exact(self, atom: Expr) -> tuple[LinearForm, int] | None:
        """A product with quotients that have no remainder, as one dividend and divisor; ``None`` if it has none."""
        if not self._has_exact_quotient(atom):
            return None
        dividend, divisor = number(1), 1
        for part in factors(atom):
            is_exact = self._is_exact(part)
            divisor *= literal_divisor(part) if is_exact else 1
            dividend = self.theory.times(dividend, self.theory.inner(part.args[0]) if is_exact else read(part))
        return dividend, divisor

    def _has_exact_quotient(self, atom: Expr) -> bool:
        if atom.op not in ("floordiv", "mul"):
            return False
        if (found := self._are_exact.get(atom)) is None:
            found = self._are_exact[atom] = any(map(self._is_exact, factors(atom)))
        return found

    def _is_exact(self, atom: Expr) -> bool:
        """Whether this is the quotient of a polynomial by a literal that always divides it."""
        if atom.op != "floordiv" or (n := literal_divisor(atom)) < 2:
            return False
        return constant_remainder(self.theory.inner(atom.args[0]), n, LIMITS.divided_cases) == 0

    def _has_remainder(self, form: LinearForm) -> bool:
        """Whether a sum has a multiple of some ``x - n*(x//n)``."""
        parts = [(self.classes.remainder_of(of.quotient), of.rest) for of in self.theory.remainders_in(form)]
        return any(len(remainder.terms) + len(rest.terms) == len(form.terms) for remainder, rest in parts)

    def _absorbing_some(self, form: LinearForm, quotient: Expr, dividend: LinearForm) -> Node | None:
        """The sum with its terms that the dividend has too in the floor: ``(n*n + n)//2 - n`` is ``(n*n - n)//2``."""
        k, n = form.terms[quotient], quotient.args[1].vmin
        entering = {}
        for atom in form.terms.keys() & dividend.terms.keys():
            after = dividend.terms[atom] + form.terms[atom] * k * n
            if abs(after) <= max(1, abs(dividend.terms[atom])):
                entering[atom] = form.terms[atom] * k
        if not entering or len(entering) + 1 == len(form.terms):
            return None
        whole = LinearForm({quotient: 1} | entering, 0)
        return self.sum_node([(whole, k)], form.plus(whole, -k))

    def shifted(self, atom: Expr, by: int) -> int | None:
        """The class of ``A//n + by`` as one quotient; ``None`` if its dividend may be negative and that costs more."""
        n = atom.args[1].vmin
        dividend = self.theory.inner(atom.args[0]).shifted(n * by)
        if not is_power_of_two(n) and self.theory.plain_bounds(dividend)[0] < 0:
            return None
        direction = dividend.direction()
        if len(direction.terms) > 1 and direction in self.classes:
            self.classes.add_node(self.add_class(dividend), self.sum_node([(direction, 1)], number(dividend.constant)))
        # not as the old quotient and a constant, which would pay for both
        c = self.add_class(atom_form(atom).shifted(by), expand=False)
        self.classes.add_node(c, self.node("floordiv", dividend, number(n)))
        return c

    @provides("nested quotients", otherwise=lambda self: None)
    def add_nested(self) -> None:
        """Add the other dividends and divisors of quotients, if all atoms of that dividend have classes."""
        nested, self._nested = self._nested, []
        for atom, dividend, divisor in nested:
            if all(a.op == "var" or atom_form(a) in self.classes for a in dividend.terms):
                operands = self.add_class(dividend), self.add_class(divisor)
                self.classes.add_node(self.add_class(atom_form(atom)), ("floordiv", None, operands))

    def _beside_multiple(self, dividend: LinearForm, n: int) -> Iterator[tuple[LinearForm, int]]:
        """``a*A // (a*d - 1)`` as ``(A + A//n) // d``, ``a*(A + 1) // (a*d + 1)`` as ``(A - A//n) // d``.

        With ``A = n*q + r`` both are ``a*q + r//d``.
        """
        common = dividend.common_factor()
        for sign in (1, -1):
            a = gcd(common, n + sign)
            if 1 < a < n + sign or (sign < 0 and n > 2 and is_power_of_two(n - 1)):
                part = dividend.divided(a).shifted(min(sign, 0))
                yield part.plus(self.theory.quotient_by(part, n), sign), (n + sign) // a

    def _by_literal(self, dividend: LinearForm, n: int) -> Iterator[Node]:
        c = self.add_class(dividend)
        # the sign of the dividend decides the price, so its bounds are found with more effort
        self.classes.graph.bounds[c] = self.theory.bounds(dividend)
        yield "floordiv", None, (c, self.add_class(number(n)))
        if dividend.only_subtracts() or dividend.has_minimum():
            yield self.node("floordiv", dividend.times(-1), number(-n))


def shifted_literal(form: LinearForm) -> tuple[int, LinearForm] | None:
    """The literal and the amount of a positive literal that is shifted to the left: 1 and ``y`` of ``1 << y``."""
    atom, k = form.multiple() or (None, 0)
    if atom is not None and atom.op == "shl" and atom.args[0].op == "const" and k * atom.args[0].vmin > 0:
        return k * atom.args[0].vmin, read(atom.args[1])
    return None
