"""Floor division of forms, their remainders and their products.

Each numbered step of :class:`Quotients` is an identity of floor division, checked point by point in
``tests/theory/test_linear.py``. A remainder ``x % n`` is ``x - n*(x // n)``.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import pairwise
from itertools import product as cartesian
from math import gcd

from eqsat.lang.expr import Expr, const, make, shift_amount
from eqsat.lang.ops import Bounds
from eqsat.theory.arithmetic import Arithmetic, provisional
from eqsat.theory.forms import (
    ZERO,
    LinearForm,
    atom_form,
    combination,
    common_divisors,
    common_factors,
    factors,
    literal_divisor,
    number,
    product,
    product_form,
    to_expr,
    undistributed,
    without,
)
from eqsat.theory.limits import LIMITS
from eqsat.theory.periods import constant_remainder


class _EndlessError(Exception):
    """More laws of symbolic quotients apply than the limit allows."""


class Quotients(Arithmetic):
    """Products, quotients and remainders of forms in normal form."""

    def times(self, x: LinearForm, y: LinearForm) -> LinearForm:
        if not y.terms:
            return x.times(y.constant)
        if not x.terms:
            return y.times(x.constant)
        if x.addends() * y.addends() > LIMITS.product_terms:
            literal, whole = undistributed(x, y)
            return self.atom(whole).times(literal)
        total = y.direction().times(x.constant).plus(x, y.constant)
        for (atom, coefficient), (other, scale) in cartesian(x.terms.items(), y.terms.items()):
            gap = self.gap(atom) if atom is other and atom.op == "min" else None
            if gap is not None:
                # min(d, 0) is d or 0, so its square is d times itself
                monomial = self.times(gap, atom_form(atom))
            elif atom is other and self.range(atom) == (0, 1):
                # 0 and 1 are their squares
                monomial = atom_form(atom)
            else:
                monomial = self._monomial([*factors(atom), *factors(other)])
            total = total.plus(monomial, coefficient * scale)
        return total

    def _monomial(self, parts: list[Expr]) -> LinearForm:
        """The form of a product of atoms, after known equal products have replaced factors."""
        scale = 1
        for _ in range(LIMITS.equal_products if self.equal_products else 0):
            for equal in self.equal_products:
                if (left := without(parts, equal.parts)) is not None:
                    parts, scale = [*left, *equal.others], scale * equal.scale
                    break
            else:
                break
        return LinearForm({product(parts): scale}, 0)

    def _as_multiples(self, x: LinearForm, monomial: Expr) -> LinearForm:
        """``x`` with products that equal a multiple of a monomial, but are not written as one, replaced by that."""
        for atom, coefficient in x.terms.items():
            for equal in self.equal_products:
                left = without(factors(atom), equal.others)
                if left is None or coefficient % equal.scale or without(factors(atom), factors(monomial)) is not None:
                    continue
                written = [*left, *equal.parts]
                if without(written, factors(monomial)) is not None:
                    multiple = LinearForm({product(written): coefficient // equal.scale}, 0)
                    x = x.without(atom).plus(multiple)
                    break
        return x

    def quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        if not divisor.terms:
            n = divisor.constant
            if n == 0:
                # where the facts make the divisor zero the term is never evaluated: any value is right
                return ZERO
            return self.quotient_by(x, n) if n > 0 else self.quotient_by(x.times(-1), -n)
        self._laws += 1
        try:
            return self._symbolic_quotient(x, divisor)
        except _EndlessError:
            if self._laws > 1:
                raise
        finally:
            self._laws -= 1
        return self._uninterpreted("floordiv", x, divisor)

    def quotient_by(self, x: LinearForm, n: int) -> LinearForm:
        if n == 1:
            return x
        if (found := self._quotients.get((x, n))) is None:
            found = self._quotients[(x, n)] = self._quotient_by(x, n)
        return found

    def _quotient_by(self, x: LinearForm, n: int) -> LinearForm:
        # 1. all values in one bucket
        low, high = self.plain_bounds(x)
        if low // n == high // n:
            return number(low // n)
        # 2. multiples of n leave the floor; the residue may lie in one bucket
        for balanced in (False, True):
            whole, residue = x.split(n, balanced)
            if (bucket := self.quotient_by_bounds(residue, n)) is not None:
                return whole.shifted(bucket)
            if 2 * max(residue.terms.values()) <= n:
                # the residues are balanced as they are
                break
        if len(residue.terms) > LIMITS.late_quotients and self._is_crowded(residue):
            return self._uninterpreted("floordiv", x, number(n))
        if n == 2 and list(x.terms.values()) == [-1] and not x.is_affine():
            # as A//2 - A it would be two quotients
            return self.quotient_by(x.times(-1).shifted(1), 2).times(-1)
        if self.minimum_atoms and (selected := self._quotient_of_cases(x, n)) is not None:
            return selected
        if whole.terms or whole.constant:
            return whole.plus(self.quotient_by(residue, n))
        return self._residue_quotient(residue, n)

    def _is_crowded(self, form: LinearForm) -> bool:
        """Whether a dividend has too many quotients to be rewritten, or, once the time is up, too many atoms."""
        ops = [a.op for a in form.terms]
        several = len(ops) - ops.count("var") > LIMITS.late_quotients
        return ops.count("floordiv") > LIMITS.quotients or (several and self.late_or_raise())

    def _residue_quotient(self, x: LinearForm, n: int) -> LinearForm:
        """``x // n`` where every coefficient and the constant is in ``[0, n)``."""
        if n == 2 and x.constant and len(x.terms) == 1 and x.is_affine():
            # the halves of a number add up to it: (A + 1)//2 + A//2 = A
            even = x.shifted(-1)
            return even.plus(self.quotient_by(even, 2), -1)
        if (known := self._quotient_in_digits(x, n) or self._pinned(x, n)) is not None:
            return known
        # one sign for all: x//n is -((n - 1 - x)//n)
        if x.only_subtracts():
            return self.quotient_by(x.times(-1).shifted(n - 1), n).times(-1)
        # 3. a common factor of the coefficients and n
        common = gcd(x.content(), n)
        if common > 1:
            return self.quotient_by(x.divided(common), n // common)
        # 4. floors compose
        if (composed := self._composed(x, number(n))) is not None:
            return composed
        # 5. terms drop out that stay in one bucket of a factor of n
        if (smaller := self._by_smaller_divisor(x, n)) is not None:
            return smaller
        if len(x.terms) > 1:
            # 6. so do terms that never carry into the floor of the largest
            largest = self._without_small_terms(x, n)
            found = None if largest is None else self.quotient_by(largest, n)
        else:
            # 7. one atom with few values may give an affine quotient, or one by a smaller divisor
            found = self._by_enumeration(x, n)
        if found is None and x.constant and (left := constant_remainder(x, n, LIMITS.lacking_points)):
            # 8. what is left over is always the same: (i*i + i + 1)//2 is (i*i + i)//2
            found = self.quotient_by(x.shifted(-left), n)
        return self._uninterpreted("floordiv", x, number(n)) if found is None else found

    def _by_smaller_divisor(self, x: LinearForm, n: int) -> LinearForm | None:
        """``x // n`` without the terms that a factor ``f`` of ``n`` does not divide, if they stay in one bucket of it.

        ``(6*i + r)//4`` is ``3*i//2`` for an ``r`` below 2. So does what remains of each term once its nearest multiple
        of ``f`` is taken away.
        """
        divisors = [f for f in common_divisors(x, n) if 1 < f < n]
        for apart in (x.partition, partial(x.split, balanced=True)):
            for f in divisors:
                multiples, rest = apart(f)
                if (bucket := self.quotient_by_bounds(rest, f)) is not None:
                    return self.quotient_by(multiples.shifted(bucket), n // f)
        return None

    def _pinned(self, x: LinearForm, n: int) -> LinearForm | None:
        """``x // n`` is ``e`` where facts say that ``e*n <= x < e*n + n``."""
        for direction, (low, high) in self.directions:
            for atom, k in x.terms.items():
                if atom not in direction.terms:
                    continue
                scale, uneven = divmod(k, direction.terms[atom])
                multiple = x.plus(direction, -scale)
                if uneven or any(k % n for k in multiple.terms.values()):
                    continue
                constants = {(scale * end + multiple.constant) // n for end in (low, high)}
                if len(constants) == 1:
                    return LinearForm({a: k // n for a, k in multiple.terms.items()}, constants.pop())
        return None

    def _composed(self, x: LinearForm, divisor: LinearForm) -> LinearForm | None:
        """``(A//b + r) // n`` is ``(A + b*r) // (b*n)``, and ``(r - A//b) // n`` is ``-1 - (A//b - r - 1) // n``."""
        floors = [(atom, k) for atom, k in x.terms.items() if atom.op == "floordiv" and k in (1, -1)]
        if len(floors) > 1:
            # the least simple one is composed, so that simpler ones are left, under all names
            floors.sort(key=lambda item: (item[1], self.simplicity[item[0]]), reverse=True)
        for atom, sign in floors:
            dividend, b = map(self.inner, atom.args)
            rest = x.without(atom)
            # a negative one adds no term to a sum, nor hides in it what a literal's floor would drop
            few = divisor.terms or (len(dividend.terms) == 1 and rest.terms.keys() <= dividend.terms.keys())
            if (sign > 0 or few) and (self.bounds(b)[0] > 0 or rest == ZERO):
                if sign > 0:
                    return self.quotient(dividend.plus(self.times(b, rest)), self.times(b, divisor))
                inside = dividend.plus(self.times(b, rest.times(-1).shifted(-1)))
                return self.quotient(inside, self.times(b, divisor)).times(-1).shifted(-1)
        return None

    def _without_small_terms(self, x: LinearForm, n: int) -> LinearForm | None:
        """The term with the largest coefficient, plus the least value of the others, if they never change the floor."""
        atom, coefficient = max(x.sorted_terms(), key=lambda item: abs(item[1]))
        low, high = self.range(atom)
        if high - low >= LIMITS.enumerated_values:
            return None
        least, most = self.bounds(x.without(atom))
        if any((coefficient * v + least) // n != (coefficient * v + most) // n for v in range(low, high + 1)):
            return None
        return LinearForm({atom: coefficient}, least)

    def _quotient_of_cases(self, x: LinearForm, n: int) -> LinearForm | None:
        """``min(x, y) // n`` is ``min(x//n, y//n)``, if that leaves at most one quotient."""
        atom = self.split_minimum(x, LIMITS.minimum_cases)
        if atom is None or x.terms[atom] % n == 0:
            return None
        common = gcd(x.terms[atom], n)
        if common > 1:
            # what stays in one bucket of the common divisor is no operand
            multiples, rest = x.partition(common)
            if (bucket := self.quotient_by_bounds(rest, common)) is not None:
                return self.quotient_by(multiples.shifted(bucket), n // common)
        # their extreme may be rewritten as this very quotient, which then stays an atom
        with provisional(self._quotients, (x, n), self._uninterpreted("floordiv", x, number(n))):
            quotients = [self.quotient_by(case, n) for case in self.cases(x, atom)]
            if sum(any(a.op == "floordiv" for a in quotient.terms) for quotient in quotients) > 1:
                return None
            found = self.extreme("min" if x.terms[atom] > 0 else "max", quotients)
        for extreme in found.terms:
            if extreme.op == "min":
                self.quotients_of_cases.setdefault(extreme, (x, n, found))
        return found

    def _quotient_in_digits(self, x: LinearForm, n: int) -> LinearForm | None:
        """``x // n`` with ``A`` written as ``m*(A//m) + A%m`` for quotients in ``x``.

        ``None`` unless that makes ``x`` shorter or leaves no new quotient.
        """
        if any(a.op == "mod" for a in x.terms):
            return None
        rewritten, digits = self.in_digits(x)
        if not digits:
            return None
        shorter = len(rewritten.terms) < len(x.terms)
        total = ZERO
        found = self.quotient_by(rewritten, n)
        for atom, coefficient in found.terms.items():
            if atom in digits:
                total = total.plus(digits[atom], coefficient)
            elif atom in x.terms or atom.op == "var":
                total = total.plus(atom_form(atom), coefficient)
            elif shorter and atom.op == "floordiv":
                dividend = self._without_digits(self.inner(atom.args[0]), digits)
                total = total.plus(self._uninterpreted("floordiv", dividend, self.inner(atom.args[1])), coefficient)
            else:
                return None
        return total.shifted(found.constant)

    def _without_digits(self, form: LinearForm, digits: dict[Expr, LinearForm]) -> LinearForm:
        """``form`` with the remainders in ``digits`` written as sums."""
        for atom in list(form.terms):
            if atom in digits:
                form = form.plus(digits[atom].plus(atom_form(atom), -1), form.terms[atom])
        return form

    def in_digits(self, x: LinearForm) -> tuple[LinearForm, dict[Expr, LinearForm]]:
        digits: dict[Expr, LinearForm] = {}
        for quotient, _ in x.sorted_terms():
            if not literal_divisor(quotient):
                continue
            for division in self.divisions_in(x, quotient):
                if not (scale := x.scale_of(division.dividend)):
                    continue
                rest = x.plus(division.remainder, -scale)
                if len(rest.terms) < len(x.terms):
                    digit = make("mod", to_expr(division.dividend), const(division.divisor.constant))
                    x = rest.plus(atom_form(digit), scale)
                    digits[digit] = division.remainder
                    break
        return x, digits

    def _by_enumeration(self, x: LinearForm, n: int) -> LinearForm | None:
        """``x // n`` for an ``x`` of one atom ``v``, if at all its values that is ``a*v + b`` or ``(v + b)//m + a``.

        What has N values is divided by N at most: ``(v + 7)//8`` is ``(v + 2)//3`` for a ``v`` in [0, 2].
        """
        ((atom, coefficient),) = x.terms.items()
        low, high = self.range(atom)
        if high - low >= LIMITS.enumerated_values:
            return None
        if low >= high:
            # an atom without values, under contradictory facts, may have any quotient
            return number((coefficient * low + x.constant) // n)
        values = [(coefficient * v + x.constant) // n for v in range(low, high + 1)]
        slope = values[1] - values[0]
        if all(b - a == slope for a, b in pairwise(values)):
            return LinearForm({atom: slope} if slope else {}, values[0] - slope * low)
        # where the quotient is another one than at the value before
        steps = [v for v, (a, b) in enumerate(pairwise(values), low + 1) if a != b]
        # by the bounds that hold everywhere, so that the quotient is the same where facts hold
        least, most = self.outermost().range(atom)
        count = most - least + 1
        if coefficient == 1 and n > count:
            # of N values a larger divisor has one multiple at most, and so has N
            return self.quotient_by(LinearForm({atom: 1}, count - steps[0]), count).shifted(values[-1] - 1)
        return None if abs(coefficient) == 1 else self._by_period(atom, (low, high), values, steps)

    def _by_period(self, atom: Expr, ends: Bounds, values: list[int], steps: list[int]) -> LinearForm | None:
        """What has ``values`` where an atom goes from end to end, if at regular ``steps`` it rises, or falls, by 1."""
        if abs(values[-1] - values[0]) != len(steps):
            return None
        # the first and the last value may come less often than those between
        longest = max(steps[0] - ends[0], ends[1] + 1 - steps[-1])
        period = steps[1] - steps[0] if len(steps) > 1 else max(longest, abs(steps[0]))
        if period < longest or any(b - a != period for a, b in pairwise(steps)):
            return None
        sign = 1 if values[-1] > values[0] else -1
        return self.quotient_by(LinearForm({atom: 1}, period - steps[0]), period).times(sign).shifted(values[0])

    def _symbolic_quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        if self._laws > LIMITS.laws or (self._laws > LIMITS.late_quotients and self.late_or_raise()):
            raise _EndlessError
        if (corners := self._corner_quotient(x, divisor)) is not None:
            return corners
        if not x.terms and not x.constant:
            return ZERO
        if (whole := self._polynomial_quotient(x, divisor)) is not None:
            return whole
        positive = self.bounds(divisor)[0] > 0
        if (shorter := self._divide_out(x, divisor)) is not None:
            multiple, rest = shorter
            return multiple.plus(self.quotient(rest, divisor))
        composed = self._composed(x, divisor) if positive else None
        if composed is not None:
            return composed
        if (monomial := divisor.multiple()) is not None:
            return self._monomial_quotient(x, *monomial)
        if (stepwise := self._quotient_by_parts(x, divisor)) is not None:
            return stepwise
        # k*divisor + r with r in [0, divisor) is k
        for ratio in dict.fromkeys([x.scale_of(divisor), 0]):
            if self.is_proper_remainder(x.plus(divisor, -ratio), divisor):
                return number(ratio)
        return self._uninterpreted_quotient(x, divisor)

    def _polynomial_quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm | None:
        """``x // divisor`` by division of polynomials, if that leaves terms of ``x``, or what lies below the divisor.

        ``(x*x - y*y + z) // (x - y)`` is ``x + y + z//(x - y)``, though to take out one multiple leaves as many terms.
        """
        (lead, scale), *others = sorted(divisor.terms.items(), key=_by_degree, reverse=True)
        below = factors(lead)
        degree = max([len(factors(a)) for a in x.terms], default=0)
        if (not others and not divisor.constant) or degree <= len(below):
            return None
        whole, divided, rest = ZERO, x, number(0)
        for _ in range(LIMITS.product_terms):
            if not divided.terms:
                break
            atom, coefficient = max(divided.terms.items(), key=_by_degree)
            left = without(factors(atom), below)
            if left is None or coefficient % scale:
                rest, divided = rest.plus(atom_form(atom), coefficient), divided.without(atom)
                continue
            multiple = product_form(left).times(coefficient // scale)
            whole, divided = whole.plus(multiple), divided.plus(self.times(multiple, divisor), -1)
        rest = rest.plus(divided)
        if self.is_proper_remainder(rest, divisor):
            return whole
        if whole == ZERO or any(x.terms.get(atom) != coefficient for atom, coefficient in rest.terms.items()):
            return None
        return whole.plus(self.quotient(rest, divisor)) if len(rest.terms) < len(x.terms) else None

    def _divide_out(self, x: LinearForm, divisor: LinearForm) -> tuple[LinearForm, LinearForm] | None:
        """``x = multiple*divisor + rest`` with a multiple that makes ``rest`` shorter than ``x``."""
        for atom, coefficient in x.sorted_terms():
            for lead, scale in divisor.sorted_terms():
                left = without(factors(atom), factors(lead))
                if left is not None and coefficient % scale == 0:
                    multiple = product_form(left).times(coefficient // scale)
                    rest = x.plus(self.times(multiple, divisor), -1)
                    if len(rest.terms) < len(x.terms):
                        return multiple, rest
        return None

    def by_factor(self, x: LinearForm) -> tuple[LinearForm, LinearForm] | None:
        # a factor is a multiple of a product of atoms, or that and a literal
        products = [factors(a) for a in x.terms if a.op == "mul"]
        if not products or self.late_or_raise():
            return None
        shared = common_factors(products)
        monomials = {f for parts in products for f in parts} | ({product(shared)} if len(shared) > 1 else set())
        for monomial in sorted(monomials, key=lambda m: m.key):
            whole, rest = x.partition_by(monomial)
            scale = whole.common_factor()
            if not scale:
                # a product that is too wide to be multiplied out has it as a factor, but no multiple
                continue
            whole, divisor = whole.divided(scale), LinearForm({monomial: scale}, 0)
            beside = rest.scale_of(whole)
            for literal in (0, beside) if beside else (0,):
                f, r = divisor.shifted(literal), rest.plus(whole, -literal)
                for k in (0, -1) if self.bounds(f)[0] > 0 else ():
                    moved = r.plus(f, -k)
                    if self.is_proper_remainder(moved, f):
                        return whole.shifted(k), moved
        return None

    def is_proper_remainder(self, x: LinearForm, divisor: LinearForm) -> bool:
        return self.bounds(x)[0] >= 0 and self.is_never_negative(divisor.plus(x, -1).shifted(-1))

    def _corner_quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm | None:
        """The quotient if it is the same number at all ends of the bounds of ``x`` and the divisor."""
        low, high = self.bounds(divisor)
        # under contradictory facts the bounds may be in no order, and one of them 0
        if low * high <= 0:
            return None
        values = {v // d for v in self.bounds(x) for d in (low, high)}
        return number(values.pop()) if len(values) == 1 else None

    def _monomial_quotient(self, x: LinearForm, monomial: Expr, scale: int) -> LinearForm:
        """``x // (scale*monomial)``: divisible terms leave the floor, common factors cancel."""
        multiple = self._as_multiples(x, monomial) if self.equal_products else x
        whole, rest = multiple.partition_by(monomial, scale)
        divisor = LinearForm({monomial: scale}, 0)
        if rest == ZERO or self.is_proper_remainder(rest, divisor):
            return whole
        reduced, smaller = self._reduced(rest, divisor)
        if smaller != divisor:
            return whole.plus(self.quotient(reduced, smaller))
        return whole.plus(self._quotient_by_parts(rest, divisor) or self._uninterpreted_quotient(rest, divisor))

    def _uninterpreted_quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        """``x // divisor`` as an atom; ``-1 - (-1-x)//divisor`` if ``x`` only subtracts and may be below zero."""
        if x.only_subtracts() and self.bounds(x)[0] < 0 < self.bounds(divisor)[0]:
            return self.quotient(x.times(-1).shifted(-1), divisor).times(-1).shifted(-1)
        return self._uninterpreted("floordiv", x, divisor)

    def _quotient_by_parts(self, x: LinearForm, divisor: LinearForm) -> LinearForm | None:
        """``x // (f*m)`` as ``x // f // m`` for a positive ``m``, if the first quotient needs no new division.

        For any ``m`` if ``x`` is a multiple of ``f``.
        """
        parts = _parts_of(divisor, x)
        for place, first in enumerate(parts) if len(parts) > 1 else ():
            others = parts[:place] + parts[place + 1 :]
            is_positive = all(self.bounds(part)[0] > 0 for part in others)
            quotient = self.quotient(x, first)
            if (is_positive or self.times(quotient, first) == x) and not self._divides_anew(quotient, x):
                return self.quotient(quotient, reduce(self.times, others))
        return None

    @staticmethod
    def _divides_anew(quotient: LinearForm, x: LinearForm) -> bool:
        """Whether ``quotient`` has a division that ``x`` has not, or adds one to others that ``x`` has in a product."""
        known = {f for a in x.terms for f in factors(a)}
        for atom, k in quotient.terms.items():
            # a new quotient with coefficient 1 in a sum would be composed with the next divisor again
            added = len(quotient.terms) > 1 and abs(k) == 1 and atom not in x.terms
            if any(f.op == "floordiv" and ((added and f is atom) or f not in known) for f in factors(atom)):
                return True
        return False

    def _reduced(self, x: LinearForm, divisor: LinearForm) -> tuple[LinearForm, LinearForm]:
        """``x`` and ``divisor`` without their common factors, which are not zero but may be negative."""
        has_constant = x.constant or divisor.constant
        shared = common_factors([factors(a) for a in [*x.terms, *divisor.terms]]) if not has_constant else []
        common = gcd(x.common_factor(), divisor.common_factor())
        return x.divided_by(shared, common), divisor.divided_by(shared, common)

    def remainder(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        quotient = self.quotient(x, divisor)
        if len(x.terms) > LIMITS.late_quotients and self._is_crowded(x):
            atom = quotient.single()
            if atom is not None and atom.op == "floordiv":
                return self._uninterpreted("mod", x, divisor)
        return x.plus(self.times(divisor, quotient), -1) if divisor.terms else x.plus(quotient, -divisor.constant)

    def truncated(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        if not divisor.terms and not divisor.constant:
            # as for a quotient
            return ZERO
        low, high = self.bounds(divisor)
        if high < 0:
            # in atoms literal divisors are positive
            return self.truncated(x, divisor.times(-1)).times(-1)
        for sign in (1, -1):
            # tdiv(tdiv(A, b), d) is tdiv(A, b*d)
            nested = x.times(sign).single()
            if nested is not None and nested.op == "tdiv":
                inner, below = map(self.inner, nested.args)
                return self.truncated(inner.times(sign), self.times(below, divisor))
        if low > 0:
            if self.is_never_negative(x):
                return self.quotient(x, divisor)
            if self.is_never_negative(x.times(-1)):
                return self.quotient(x.times(-1), divisor).times(-1)
        if not divisor.terms and divisor.constant > 0:
            return self._truncated_by(x, divisor.constant)
        if divisor.terms:
            reduced, smaller = self._reduced(x, divisor)
            if smaller != divisor:
                return self.truncated(reduced, smaller)
        return self._uninterpreted("tdiv", x, divisor)

    def _truncated_by(self, x: LinearForm, n: int) -> LinearForm:
        low, high = self.bounds(x)
        if n == 1 or (-n < low and high < n):
            return x if n == 1 else ZERO
        common = gcd(x.common_factor(), n)
        if common > 1:
            return self.truncated(x.divided(common), number(n // common))
        # tdiv(-x, n) is -tdiv(x, n)
        if x.sign() < 0:
            return self.truncated(x.times(-1), number(n)).times(-1)
        if self.minimum_atoms and (selected := self._truncated_of_cases(x, n)) is not None:
            return selected
        modulus, remainder = self.alignment(x)
        if modulus % n == 0 and remainder % n:
            # x is never a multiple of n: the floor is one less than the truncated quotient below zero
            below = self.at_least_zero(x.times(-1).shifted(-1))
            return self.quotient_by(x, n).plus(self.selection(below, number(1), ZERO))
        return self._uninterpreted("tdiv", x, number(n))

    def _truncated_of_cases(self, x: LinearForm, n: int) -> LinearForm | None:
        """``tdiv(min(x*n, y), n)`` is ``min(x, tdiv(y, n))``; ``None`` if more than one quotient would be left."""
        if (atom := self.split_minimum(x, LIMITS.minimum_cases)) is None:
            return None
        quotients = [self.truncated(case, number(n)) for case in self.cases(x, atom)]
        if sum(any(a.op in ("tdiv", "floordiv") for a in quotient.terms) for quotient in quotients) > 1:
            return None
        return self.extreme("min" if x.terms[atom] > 0 else "max", quotients)

    def _shifted(self, op: str, x: LinearForm, amount: LinearForm) -> LinearForm:
        """The normal form of ``x << amount`` or ``x >> amount``."""
        if not amount.terms:
            power = 1 << amount.constant
            return x.times(power) if op == "shl" else self.quotient_by(x, power)
        by = shift_amount(to_expr(amount))
        if op == "shr" and not x.constant and all(a.op == "shl" and a.args[1] is by for a in x.terms):
            # a sum of multiples of 2**by
            return combination([(self.inner(shifted.args[0]), k) for shifted, k in x.terms.items()], 0)
        return atom_form(make(op, to_expr(x), by))

    def _uninterpreted(self, op: str, x: LinearForm, y: LinearForm) -> LinearForm:
        return self.atom(make(op, to_expr(x), to_expr(y)))


def _parts_of(divisor: LinearForm, x: LinearForm) -> list[LinearForm]:
    """The factors of a divisor, other than 1: what its literal factor shares with a term of ``x`` comes first."""
    common = common_factors([factors(a) for a in divisor.terms]) if not divisor.constant else []
    scale = divisor.common_factor()
    shared = max([gcd(coefficient, scale) for coefficient in x.terms.values()], default=1)
    *several, last = [*map(atom_form, common), divisor.divided_by(common, scale)]
    if several and last.constant == -1 and not last.terms:
        # a negative factor may be the opposite of a positive one
        last = several.pop().times(-1)
    parts = [number(shared), number(scale // shared), *several, last]
    return [part for part in parts if part.terms or part.constant != 1]


def _by_degree(term: tuple[Expr, int]) -> tuple[int, list[int]]:
    """The place of a product of atoms in an order that products with another one keep."""
    parts = factors(term[0])
    return len(parts), sorted([a.key for a in parts])
