"""Comparisons of integers in normal form: a form against a constant.

A comparison is decided, split where a minimum or a selection chooses, or written with fewer terms and quotients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.theory.arithmetic import Arithmetic, kept
from eqsat.theory.forms import ZERO, LinearForm, factors, literal_divisor, number, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.refutation import cannot_hold, is_coupled


class Comparisons(Arithmetic):
    """``form >= 0`` and ``form == 0`` in normal form, and the conditions under which a form has one of two values."""

    @kept("answers")
    def at_least_zero(self, form: LinearForm) -> Expr:
        plainer: LinearForm | None = form
        while plainer is not None:
            form = plainer
            low, high = self.bounds(form)
            if low >= 0:
                return TRUE
            if high < 0:
                return FALSE
            if self.minimum_atoms and (split := self._split_comparison(form)) is not None:
                return split
            plainer = self._plainer_comparison(form, high)
        comparison = form.literal_comparison()
        found = self._split_selection(form, comparison, self.at_least_zero)
        if found is None and is_coupled(self, form):
            found = self._decided(form)
        return comparison if found is None else found

    def _plainer_comparison(self, form: LinearForm, high: int) -> LinearForm | None:
        """A plainer form that is at least zero just where this one, at most ``high``, is; ``None`` if none is known."""
        plainer = self._clear_comparison(form)
        if plainer is None and high == 0:
            plainer = self._moved_end(form)
        if plainer is None and len(form.terms) > 1:
            plainer = self._beyond_gap(form)
        return plainer

    def _split_selection(
        self, form: LinearForm, comparison: Expr, compared: Callable[[LinearForm], Expr]
    ) -> Expr | None:
        """``where(c, x, y) >= 0`` is ``c and x >= 0 or not c and y >= 0``, if that is shorter; equations likewise."""
        selections = [a for a in form.terms if a.op == "where"]
        if len(selections) != 1:
            return None
        (atom,) = selections
        rest = form.without(atom)
        branches = [rest.plus(self.inner(arg), form.terms[atom]) for arg in atom.args[1:]]
        # a selection alone may select between further ones: each is split in turn
        nested = () if rest.terms or self.simplicity.size(atom) > LIMITS.repeated_terms else ("where",)
        if any(a.op in ("where", "min") and a.op not in nested for branch in branches for a in branch.terms):
            return None
        holds = atom.args[0]
        given = zip((holds, self.negate(holds)), map(compared, branches), strict=True)
        split = self.junction("or", [self.junction("and", both) for both in given])
        return split if self.simplicity.size(split) < self.simplicity.size(comparison) else None

    @kept("proofs")
    def _decided(self, form: LinearForm) -> Expr | None:
        """``form >= 0`` decided by refutation."""
        fails = form.times(-1).shifted(-1)
        return TRUE if self.is_never_negative(form) else FALSE if self.is_never_negative(fails) else None

    def _moved_end(self, form: LinearForm) -> LinearForm | None:
        """``(A + c) % n >= n - 1``, or ``(A + c) % n <= 0``, without ``c``: it is an equation of ``A % n``."""
        if (moved := self._moved_remainder(form)) is None:
            return None
        low, high = self.bounds(moved)
        return moved.times(-1) if low == 0 else moved if high == 0 else None

    def _beyond_gap(self, form: LinearForm) -> LinearForm | None:
        """``3 <= x*2 + y*5`` is ``4 <= x*2 + y*5`` where the sum is never 3: one comparison for all such literals."""
        terms = sorted([(k, *self.range(atom)) for atom, k in form.terms.items()], key=lambda term: abs(term[0]))
        span = gaps = 0
        for k, least, most in terms:
            # values of the smaller terms are 1 apart, or have gaps themselves
            gaps += abs(k) > span + 1
            span += abs(k) * (most - least)
        if not gaps or span > LIMITS.reached_values:
            return None
        low, reached = _reached(terms)
        literal = -form.constant
        place = literal - low
        if not 0 < place <= span:
            # the bounds decide the comparison
            return None
        above, below = reached >> place, reached & ((1 << place) - 1)
        first, last = literal + (above & -above).bit_length() - 1, low + below.bit_length() - 1
        sizes = [abs(k) for k, *_ in reversed(terms)]
        # the opposite form, of the complement, gets the same literal
        plain = _plainest(last + 1, first, sizes) if form.sign() > 0 else 1 - _plainest(1 - first, -last, sizes)
        return form.shifted(literal - plain) if plain != literal else None

    def _split_comparison(self, form: LinearForm) -> Expr | None:
        """``min(x, y) >= 0`` iff both are; ``max(x, y) >= 0`` iff one is."""
        if (atom := self.split_minimum(form, LIMITS.split_comparisons)) is None:
            return None
        op = "and" if form.terms[atom] > 0 else "or"
        return self.junction(op, [self.at_least_zero(case) for case in self.cases(form, atom)])

    def _clear_comparison(self, form: LinearForm) -> LinearForm | None:
        """An equivalent form with fewer terms or quotients: ``d >= 0`` iff ``d // f >= 0`` for any ``f > 0``."""
        content = form.content()
        if content > 1:
            return form.divided(content)
        floors = [atom for atom, k in form.terms.items() if abs(k) == 1 and literal_divisor(atom)]
        if floors:
            # of two values a selection costs less than the quotient of many that would be left
            atom = min(floors, key=lambda atom: (self._has_two_values(atom), self.simplicity[atom]))
            n, inner, rest = literal_divisor(atom), self.inner(atom.args[0]), form.without(atom)
            return inner.plus(rest, n) if form.terms[atom] == 1 else rest.times(n).shifted(n - 1).plus(inner, -1)
        single = next(iter(form.terms))
        if len(form.terms) == 1 and single.op == "tdiv" and single.args[1].op == "const" and single.vmin < single.vmax:
            return self._clear_truncated(self.inner(single.args[0]), single.args[1].vmin, form)
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = form.partition(f)
                if (bucket := self.quotient_by_bounds(rest, f)) is not None:
                    return multiples.shifted(bucket)
        by_factor = self.by_factor(form)
        return self._unit_coefficients(form) if by_factor is None else by_factor[0]

    def _has_two_values(self, quotient: Expr) -> bool:
        low, high = self.range(quotient)
        return high - low < 2

    def _clear_truncated(self, dividend: LinearForm, n: int, form: LinearForm) -> LinearForm:
        """``tdiv(A, n) >= k`` is ``A >= n*k``, or for ``k`` up to 0 ``A > n*(k - 1)``; ``<=`` is its mirror image."""
        (sign,) = form.terms.values()
        k = -form.constant
        return dividend.times(sign).shifted(-(n * k if k > 0 else n * (k - 1) + 1))

    def _unit_coefficients(self, form: LinearForm) -> LinearForm | None:
        """A sum of non-negative terms is at least 1, or at most 0, whatever their positive coefficients."""
        sign = 1 if form.constant == -1 else -1 if form.constant == 0 else 0
        coefficients = [sign * c for c in form.terms.values()]
        is_positive = sign and min(coefficients) > 0 and max(coefficients) > 1
        if not is_positive or any(self.range(a)[0] < 0 for a in form.terms):
            return None
        return LinearForm(dict.fromkeys(form.terms, sign), form.constant)

    @kept("answers")
    def lower_value(self, quotient: Expr) -> tuple[Expr, int] | None:
        dividend, divisor = map(self.inner, quotient.args)
        if self.bounds(divisor)[0] <= 0:
            return None
        low, high = self.range(quotient)
        if high - low > 1 and divisor.terms:
            for k in (0, -1):
                if self.is_proper_remainder(dividend.plus(divisor, -k), divisor.times(2)):
                    low, high = k, k + 1
        if high - low != 1:
            return None
        condition = self.at_least_zero(divisor.times(high).plus(dividend, -1).shifted(-1))
        return None if condition is TRUE or condition is FALSE else (condition, low)

    def two_values(self, form: LinearForm) -> tuple[Expr, int, int] | None:
        low, high = self.bounds(form)
        if low == high or not self._has_none_between(form, low, high):
            return None
        condition = self.at_least_zero(form.times(-1).shifted(low))
        return None if condition is TRUE or condition is FALSE else (condition, low, high)

    def _has_none_between(self, form: LinearForm, low: int, high: int) -> bool:
        """Whether a form between ``low`` and ``high`` is one of them."""
        content = form.content()
        if (atom := self.outer_minimum(form)) is not None:
            end, *others = sorted(self.cases(form, atom), key=lambda case: len(case.terms))
            if end.terms or len(others) > 1:
                return False
            # the form has the value of a literal operand, and all values of the other operand beyond that
            sign = -1 if form.terms[atom] > 0 else 1
            beyond = others[0].plus(end, -1).times(sign)
            first = beyond.constant % beyond.content() or beyond.content()
            return end.constant == (high if sign < 0 else low) and high - low == first
        atom = next(iter(form.terms))
        if len(form.terms) == 1 and atom.op == "where" and all(x.op == "const" for x in atom.args[1:]):
            return high - low == content * abs(atom.args[1].vmin - atom.args[2].vmin)
        return high - low == content and (low - form.constant) % content == 0

    def ends(self, comparison: Expr) -> tuple[LinearForm, LinearForm]:
        form = self.difference(comparison)
        if form is None or comparison.op == "eq":
            return ZERO, ZERO
        low, high = self.bounds(form)
        return form if high == 0 else ZERO, form.shifted(1) if low == -1 else ZERO

    def equal_zero(self, form: LinearForm) -> Expr:
        if not (content := form.content()):
            return FALSE if form.constant else TRUE
        if self.is_nonzero(form):
            return FALSE
        form = form.divided(content)
        low, high = self.bounds(form)
        if form.sign() < 0:
            form, low, high = form.times(-1), -high, -low
        for law in (self._split_equation, self._select_equation, self._equated_remainder):
            if (found := law(form)) is not None:
                return found
        # at an end of its range equality is a comparison, which may simplify further
        if low == 0:
            return self.at_least_zero(form.times(-1))
        if high == 0:
            return self.at_least_zero(form)
        if (parts := self._equal_by_parts(form)) is not None:
            return parts
        if is_coupled(self, form) and self._never_zero(form):
            return FALSE
        equation = make("eq", to_expr(form.direction()), const(-form.constant))
        split = self._split_selection(form, equation, self.equal_zero)
        return equation if split is None else split

    def _select_equation(self, form: LinearForm) -> Expr | None:
        """``where(c, x, 3) == 5`` is ``c and x == 5``, and ``where(c, x, 5) == 5`` is ``not c or x == 5``, if shorter.

        So is a chain of such selections, as of a table that is looked up by comparisons.
        """
        outer: list[tuple[str, Expr]] = []
        rest = form
        while len(rest.terms) == 1 and (atom := next(iter(rest.terms))).op == "where":
            k = rest.terms[atom]
            branches = [self.inner(arg).times(k).shifted(rest.constant) for arg in atom.args[1:]]
            literal = next((place for place, branch in enumerate(branches) if not branch.terms), None)
            if literal is None:
                break
            holds = self.negate(atom.args[0]) if literal else atom.args[0]
            outer.append(("and", self.negate(holds)) if branches[literal].constant else ("or", holds))
            rest = branches[1 - literal]
        if not outer:
            return None
        found = self.equal_zero(rest)
        for op, condition in reversed(outer):
            found = self.junction(op, [condition, found])
        whole = make("eq", to_expr(form.direction()), const(-form.constant))
        return found if self.simplicity.size(found) < self.simplicity.size(whole) else None

    def _equal_by_parts(self, form: LinearForm) -> Expr | None:
        """``form == 0`` as conditions on its parts, if it is equal to them.

        ``f*x + r == 0`` fixes both ``r`` and ``x`` if ``r`` is a multiple of ``f`` at one value alone. So does
        ``f*q + r == 0`` for a product of atoms ``f`` and a proper remainder ``r``. Of a product one factor is zero.
        """
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = form.partition(f)
                low, high = self.bounds(rest)
                least = -(-low // f)
                if least > high // f:
                    return FALSE
                if least == high // f:
                    parts = multiples.shifted(least), rest.shifted(-least * f)
                    return self.junction("and", [self.equal_zero(part) for part in parts])
        product = form.single()
        if product is None or product.op != "mul":
            if (by_factor := self.by_factor(form) or self.by_factor(form.times(-1))) is None:
                return None
            return self.junction("and", [self.equal_zero(part) for part in by_factor])
        return self.junction("or", [self.equal_zero(self.inner(factor)) for factor in factors(product)])

    @kept("proofs")
    def _never_zero(self, form: LinearForm) -> bool:
        """Whether ``form == 0`` was refuted."""
        return cannot_hold(self, (), [form, form.times(-1)])

    def _equated_remainder(self, form: LinearForm) -> Expr | None:
        """``(A + c) % n == r`` by the remainder of ``A``."""
        moved = self._moved_remainder(form)
        return None if moved is None else self.equal_zero(moved)

    def _moved_remainder(self, form: LinearForm) -> LinearForm | None:
        """``(A + c) % n == r`` is ``A % n == (r - c) % n``."""
        for found in self.remainders_in(form):
            n, offset, rest = found.divisor, found.dividend.constant, found.rest
            if rest.terms or not offset or rest.constant % found.scale:
                continue
            value = -rest.constant // found.scale
            if not 0 <= value < n:
                return number(1)
            plain = found.dividend.direction()
            moved = plain.plus(self.quotient_by(plain, n), -n).shifted(-((value - offset) % n))
            return None if moved in (form, form.times(-1)) else moved
        return None

    def _split_equation(self, form: LinearForm) -> Expr | None:
        """``min(x, y) == 0`` is ``x == 0 and y >= 0`` if ``y`` is never 0, or only where ``x`` is."""
        if not self.minimum_atoms or (atom := self.split_minimum(form, LIMITS.split_comparisons)) is None:
            return None
        sign = 1 if form.terms[atom] > 0 else -1
        cases = self.cases(form, atom)
        equal = [self.equal_zero(case) for case in cases]
        possible = [place for place, e in enumerate(equal) if e is not FALSE]
        for one, other in permutations(possible) if len(possible) == 2 else ():
            if self.junction("and", [equal[one], equal[other]]) == equal[one]:
                # the other case says enough
                possible = [other]
                break
        if len(possible) != 1:
            return None if possible else FALSE
        others = [self.at_least_zero(case.times(sign)) for place, case in enumerate(cases) if place not in possible]
        return self.junction("and", [equal[possible[0]], *others])


def _reached(terms: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """The least value of a sum, and the values that it may have as a bit set, from the least on.

    Its terms are coefficients and the bounds of what they multiply.

    >>> low, reached = _reached([(2, 0, 2), (-5, 0, 1)])
    >>> low, [low + place for place in range(reached.bit_length()) if reached >> place & 1]
    (-5, [-5, -3, -1, 0, 2, 4])
    """
    low, reached = 0, 1
    for k, least, most in terms:
        low += min(k * least, k * most)
        # as many steps of the coefficient as there are values, doubled each time
        count, values = 1, most - least + 1
        while count < values:
            more = min(count, values - count)
            reached |= reached << abs(k) * more
            count += more
    return low, reached


def _plainest(least: int, most: int, sizes: Iterable[int]) -> int:
    """The literal from ``least`` to ``most`` that a sum is compared with.

    0 and 1 compare two sides without a literal. Multiples of a coefficient are divided by it. Else it is the largest.
    """
    multiples = [most // size * size for size in sizes]
    return next((literal for literal in (0, 1, *multiples) if least <= literal <= most), most)
