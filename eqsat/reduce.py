"""Reductions in normal form: closed forms where there are any, else a reduction of what cannot leave it.

The index is a variable of the body, and what is known of it there (the range) are facts of a theory of its own, so
nothing that is true only inside the range leaves it. A sum is taken apart: each addend is reduced alone, factors
without the index leave it, a selection by a comparison of the index splits the range, an equation with the index
leaves one value (a gather), and what is a polynomial in the index, or a quotient of an affine function of it by a
literal, has a closed form. An extreme of a monotone body is its value at an end of the range.

The identities, each checked point by point in ``tests/test_reduce.py``, also stand as rules in ``rules/reduce.py``.
A range may be empty (``high <= low``): each closed form says what it gives there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from itertools import product as cartesian
from math import comb, gcd, lcm, prod
from typing import Self, cast

from eqsat.conditions import Conditions
from eqsat.evaluation import evaluate
from eqsat.expr import FALSE, TRUE, Expr, const, instantiate, make, topological
from eqsat.extremes import MAX_NESTED
from eqsat.facts import ContradictionError, chain_members
from eqsat.forms import ZERO, Form, atom_form, common_factors, factors, number, product_form, to_expr, without
from eqsat.ops import REDUCTIONS

#: A reduction without free variables is computed if it has at most so many steps.
MAX_COMPUTED = 4096
#: A power with a larger exponent stays a product over a range.
MAX_EXPONENT = 64
#: So does a power of a sum with a larger exponent: multiplied out it has too many terms.
MAX_SUM_EXPONENT = 6
#: Powers of the index of a higher degree are not summed.
MAX_DEGREE = 8
#: A condition of more alternatives than this is not taken apart.
MAX_ALTERNATIVES = 3


@dataclass(frozen=True)
class Range:
    """The index of a reduction and the ends of its half-open range."""

    index: Expr
    low: Form
    high: Form

    @property
    def extent(self) -> Form:
        """``high - low``, which an empty range may make negative."""
        return self.high.plus(self.low, -1)


class Reductions(Conditions):
    """Sums, products and extremes over a range."""

    def inside(self, term: Expr) -> Self | None:
        """What is known in the body of a reduction; ``None`` if its range is empty."""
        _, index, low, high = term.args
        return self._inside(Range(index, self.form(low), self.form(high)))

    def _reduction(self, term: Expr) -> Form:
        body, index, low, high = term.args
        over = Range(index, self.forms[low], self.forms[high])
        inside = self._inside(over)
        if inside is None:
            return number(REDUCTIONS[term.op].identity)
        normal = inside.form(body)
        try:
            return self.reduced(term.op, normal, over)
        except ContradictionError:
            raise
        except ValueError:
            # a step that is never taken divides by zero, or a bound explodes
            return atom_form(term)

    def _inside(self, over: Range) -> Self | None:
        """The theory that knows that the index is in its range; ``None`` if that is empty."""
        index = atom_form(over.index)
        least, most = self.bounds(over.low)[0], self.bounds(over.high)[1] - 1
        facts = [
            self.at_least_zero(index.plus(over.low, -1)),
            self.at_least_zero(over.high.plus(index, -1).shifted(-1)),
        ]
        if least > most:
            return None
        return self.under(self.junction("and", facts))

    def reduced(self, op: str, body: Form, over: Range) -> Form:
        """The normal form of a reduction of ``body``, which is normal in the range.

        >>> from eqsat.expr import var
        >>> from eqsat.linear import Theory
        >>> i = var("i", 0, 9)
        >>> Theory().reduced("sum_over", Form({i: 2}, 1), Range(i, number(0), number(10)))
        Form(100)
        """
        high = self.bounds(over.extent)[1]
        if high <= 0:
            return number(REDUCTIONS[op].identity)
        if high == 1:
            full = self.at_least_zero(over.extent.shifted(-1))
            value = instantiate(to_expr(body), over.index, to_expr(over.low))
            return self._chosen(full, value, const(REDUCTIONS[op].identity))
        if op == "sum_over":
            return self._sum(body, over)
        if op == "prod_over":
            return self._product(body, over)
        return self._extreme_over(op, body, over)

    def _free_of(self, index: Expr, *parts: Form | Expr) -> bool:
        """Whether no part mentions ``index``."""
        bit = self.variables.of(index)
        atoms = [atom for part in parts for atom in (part.terms if isinstance(part, Form) else (part,))]
        return not any(self.variables.of(atom) & bit for atom in atoms)

    def _at(self, body: Form, index: Expr, value: Form) -> Form:
        """``body`` where the index is ``value``, which must lie in the range."""
        return self.form(instantiate(to_expr(body), index, to_expr(value)))

    def _sum_again(self, body: Form, over: Range) -> Form:
        """The normal form of a sum over a part of the range, where more may be known of the index."""
        return self.form(make("sum_over", to_expr(body), over.index, to_expr(over.low), to_expr(over.high)))

    def _residual(self, op: str, body: Form, over: Range) -> Form:
        """A reduction that stays; computed now if it speaks of nothing but its index."""
        term = make(op, to_expr(body), over.index, to_expr(over.low), to_expr(over.high))
        steps = term.args[3].vmax - term.args[2].vmin
        if not self.variables.of(term) and steps <= MAX_COMPUTED and not _loads(body):
            return number(int(evaluate([term], {})[0]))
        return atom_form(term)

    def _smaller(self, x: Form, y: Form) -> Form:
        return self.extreme("min", [x, y])

    def _larger(self, x: Form, y: Form) -> Form:
        return self.extreme("max", [x, y])

    def _ordered(self, over: Range) -> Range:
        """The same range with ``low <= high``."""
        if self.bounds(over.extent)[0] >= 0:
            return over
        return Range(over.index, over.low, self._larger(over.low, over.high))

    def _trips(self, over: Range) -> Form:
        """How many values the index takes."""
        return self._larger(over.extent, ZERO)

    def _chosen(self, condition: Expr, x: Expr, y: Expr) -> Form:
        """``x`` where ``condition``, in normal form, holds, else ``y``; neither is looked at where it is not taken."""
        if condition is TRUE or condition is FALSE:
            return self.form(x if condition is TRUE else y)
        return self.form(make("where", condition, x, y))

    def _select(self, condition: Expr, x: Form, y: Form) -> Form:
        return self._chosen(condition, to_expr(x), to_expr(y))

    def _sum(self, body: Form, over: Range) -> Form:
        index = over.index
        outside = Form({a: c for a, c in body.terms.items() if self._free_of(index, a)}, body.constant)
        total = self.times(outside, self._trips(over)) if outside.terms or outside.constant else ZERO
        for atom, coefficient in body.terms.items():
            if not self._free_of(index, atom):
                total = total.plus(self._sum_of_atom(atom, over), coefficient)
        return total

    def _sum_of_atom(self, atom: Expr, over: Range) -> Form:
        """The sum of one product: factors without the index leave it."""
        index = over.index
        parts = factors(atom)
        inside = [part for part in parts if not self._free_of(index, part)]
        outside = [part for part in parts if self._free_of(index, part)]
        if all(part is index for part in inside) and len(inside) <= MAX_DEGREE:
            found = self._power_sum(len(inside), self._ordered(over))
        else:
            found = (
                self._sum_of_selection(inside, over)
                or self._sum_of_extreme(inside, over)
                or self._sum_of_exact_quotient(inside, over)
                or self._sum_of_quotient(inside, over)
                or self._residual("sum_over", self._selected_product(inside), over)
            )
        return self.times(found, product_form(outside))

    def _power_sum(self, degree: int, over: Range) -> Form:
        """The sum of ``index**degree`` (Faulhaber), for ``low <= high``."""
        coefficients = faulhaber(degree)
        scale = lcm(*[c.denominator for c in coefficients])
        difference = ZERO
        for end, sign in ((over.high, 1), (over.low, -1)):
            power = number(1)
            for coefficient in coefficients:
                difference = difference.plus(power, sign * int(coefficient * scale))
                power = self.times(power, end)
        return self.quotient_by(difference, scale)

    def _sum_of_selection(self, inside: list[Expr], over: Range) -> Form | None:
        """A sum of ``where(c, x, y)`` times the other factors: split by what ``c`` says of the index."""
        index = over.index
        chosen = next((part for part in inside if part.op == "where"), None)
        if chosen is None:
            return None
        others = list(inside)
        others.remove(chosen)
        condition, *branches = _with_plain_condition(chosen).args
        x, y = [self._multiplied(self.inner(arg), others) for arg in branches]
        if condition.op == "or" or (x == ZERO and condition.op in ("lt", "le")):
            condition, x, y = self.negate(condition), y, x
        members = chain_members(condition, "and")
        same = [member for member in members if self._free_of(index, member)]
        if same:
            varying = self.junction("and", [member for member in members if member not in same])
            selected = x if varying is TRUE else atom_form(make("where", varying, to_expr(x), to_expr(y)))
            sums = [self._sum_again(body, over) for body in (selected, y)]
            return self._select(self.junction("and", same), *sums)
        value = self.equated(index, condition)
        if value is not None:
            return self._gathered(value, chosen, others, y, over)
        solved = self.solved_for(index, condition)
        if solved is not None and solved[2] is not TRUE and y != ZERO and self._free_of(index, y):
            apart = atom_form(make("where", condition, to_expr(x.plus(y, -1)), const(0)))
            return self._sum_again(apart, over).plus(self.times(y, self._trips(over)))
        if solved is None or (solved[2] is not TRUE and y != ZERO):
            return self._sum_of_residues(condition, x, y, over) or self._sum_of_alternatives(condition, x, y, over)
        first, beyond, rest = solved
        if rest is not TRUE:
            x = atom_form(make("where", rest, to_expr(x), const(0)))
        part = self._part(over, first, beyond)
        if self._free_of(index, y):
            everywhere = self.times(y, self._trips(over)) if y != ZERO else ZERO
            return self._sum_again(x.plus(y, -1), part).plus(everywhere)
        total = self._sum_again(x, part)
        return total.plus(self._sum_outside(y, over, first, beyond))

    def _selected_product(self, inside: list[Expr]) -> Form:
        """A product in which a factor ``where(c, x, 0)`` takes in the others."""
        for part in inside:
            if part.op == "where" and len(inside) > 1 and self.inner(part.args[2]) == ZERO:
                others = list(inside)
                others.remove(part)
                taken = to_expr(self._multiplied(self.inner(part.args[1]), others))
                return atom_form(make("where", part.args[0], taken, const(0)))
        return product_form(inside)

    def _part(self, over: Range, first: Form | None, beyond: Form | None) -> Range:
        """The part of the range from ``first`` to before ``beyond``."""
        low = over.low if first is None else self._larger(over.low, first)
        high = over.high if beyond is None else self._smaller(over.high, beyond)
        return Range(over.index, low, high)

    def _sum_outside(self, body: Form, over: Range, first: Form | None, beyond: Form | None) -> Form:
        """The sum over the part of the range before ``first``, or from ``beyond`` on: each value once."""
        over = self._ordered(over)
        start = over.low if first is None else self._smaller(self._larger(over.low, first), over.high)
        end = over.high if beyond is None else self._larger(start, self._smaller(over.high, beyond))
        pieces = (Range(over.index, over.low, start), Range(over.index, end, over.high))
        return self._sum_again(body, pieces[0]).plus(self._sum_again(body, pieces[1]))

    def equated(self, index: Expr, condition: Expr) -> Form | None:
        """The only value of the index for which ``condition`` can hold, if it says which."""
        equations = [self._difference(m) for m in chain_members(condition, "and") if m.op == "eq"]
        waiting = [equation for equation in equations if equation is not None]
        values: dict[Expr, Form] = {}
        # one equation may have a quotient by the index that another one knows
        for _ in range(len(waiting)):
            for equation in waiting:
                left = equation
                for atom, value in values.items():
                    left = left.plus(value.plus(atom_form(atom), -1), left.terms.get(atom, 0))
                moving = [atom for atom in left.terms if not self._free_of(index, atom)]
                if len(moving) == 1 and (moving[0] is index or abs(left.terms[moving[0]]) == 1):
                    scale = left.terms[moving[0]]
                    rest = left.plus(atom_form(moving[0]), -scale)
                    values[moving[0]] = self.quotient_by(rest.times(-1 if scale > 0 else 1), abs(scale))
            if index in values:
                return values[index]
        return None

    def _gathered(self, value: Form, chosen: Expr, others: list[Expr], y: Form, over: Range) -> Form:
        """The sum of ``where(index == value and ..., x, y)``: at most one ``x``, and ``y`` for the others.

        Nothing that holds for the index holds for ``value`` outside the range: ``x`` is taken under that condition.
        """
        index = over.index
        there = self._in_range(value, over)
        condition, x = chosen.args[:2]
        if condition.op == "or":
            condition, x = self.negate(condition), chosen.args[2]
        image = to_expr(value)
        taken, asked, *others = [instantiate(t, index, image) for t in (x, condition, *others)]
        for factor in others:
            taken = make("mul", taken, factor)
        if self._free_of(index, y):
            everywhere = self.times(y, self._trips(over)) if y != ZERO else ZERO
            found = self.junction("and", [*there, self.condition(asked)])
            return self._chosen(found, make("sub", taken, to_expr(y)), const(0)).plus(everywhere)
        here = make("where", asked, taken, instantiate(to_expr(y), index, image))
        outside = self._sum_outside(y, over, value, value.shifted(1))
        return self._chosen(self.junction("and", there), here, const(0)).plus(outside)

    def _multiplied(self, x: Form, others: list[Expr]) -> Form:
        return self.times(x, product_form(others))

    def solved_for(self, index: Expr, condition: Expr) -> tuple[Form | None, Form | None, Expr] | None:
        """``condition`` as ``first <= index < beyond`` and a rest; ``None`` if it bounds the index nowhere."""
        first: Form | None = None
        beyond: Form | None = None
        rest: list[Expr] = []
        for member in chain_members(condition, "and"):
            bounds = self._bounds_on(index, member)
            if bounds is None:
                rest.append(member)
                continue
            least, limit = bounds
            if least is not None:
                first = least if first is None else self._larger(first, least)
            if limit is not None:
                beyond = limit if beyond is None else self._smaller(beyond, limit)
        if first is None and beyond is None:
            return None
        return first, beyond, self.junction("and", rest)

    def _bounds_on(self, index: Expr, comparison: Expr) -> tuple[Form | None, Form | None] | None:
        """What one comparison with a literal says: ``first <= index < beyond``, either of which may be missing."""
        difference = self._difference(comparison)
        if difference is not None and comparison.op == "eq":
            # a quotient has a value from one bound of its dividend to another
            halves = [self.at_least_zero(difference.times(sign)) for sign in (1, -1)]
            bounds = [b for b in (self._bounds_on(index, half) for half in halves if half.op in ("lt", "le")) if b]
            least, limit = [next((b[end] for b in bounds if b[end] is not None), None) for end in (0, 1)]
            return None if least is None or limit is None else (least, limit)
        isolated = self._isolated(index, comparison)
        if isolated is None:
            return None
        scale, rest = isolated
        if scale > 0:
            # index >= -rest/scale, rounded up
            return self.quotient_by(rest, scale).times(-1), None
        return None, self.quotient_by(rest, -scale).shifted(1)

    def _isolated(self, index: Expr, comparison: Expr) -> tuple[int, Form] | None:
        """``scale`` and ``rest`` where a comparison says ``0 <= scale*index + rest``, or ``0 ==`` that."""
        difference = self._difference(comparison)
        if difference is None:
            return None
        scale = difference.terms.get(index, 0)
        rest = difference.plus(atom_form(index), -scale)
        return (scale, rest) if scale and self._free_of(index, rest) else None

    def _difference(self, comparison: Expr) -> Form | None:
        """What a comparison of numbers says is at least zero, or zero if it is an equation."""
        if comparison.op not in ("lt", "le", "eq") or comparison.args[0].is_bool:
            return None
        left, right = [self.inner(arg) for arg in comparison.args]
        return right.plus(left, -1).shifted(-1 if comparison.op == "lt" else 0)

    def _sum_of_residues(self, condition: Expr, x: Form, y: Form, over: Range) -> Form | None:
        """A sum of ``where(c, x, y)`` where ``c`` compares the remainder of a dividend by a literal."""
        difference = self._difference(condition)
        if difference is None:
            return None
        for quotient, coefficient in difference.terms.items():
            if quotient.op != "floordiv" or quotient.args[1].op != "const" or self._free_of(over.index, quotient):
                continue
            n, dividend = quotient.args[1].vmin, self.inner(quotient.args[0])
            sign = -1 if coefficient > 0 else 1
            rest = difference.plus(dividend.plus(Form({quotient: -n}, 0)), -sign)
            if n > 1 and self._free_of(over.index, rest):
                # eq: 0 == sign*(dividend % n) + rest, else 0 <= that
                one = rest.times(-sign)
                if condition.op == "eq":
                    return self._sum_of_residue(dividend, n, one, x, y, over)
                if sign > 0:
                    # the remainder is at least the residue
                    one, x, y = one.shifted(-1), y, x
                return self._sum_of_least_residues(dividend, n, one, x, y, over)
        return None

    def _sum_of_least_residues(self, dividend: Form, n: int, most: Form, x: Form, y: Form, over: Range) -> Form | None:
        """A sum of ``where(dividend % n <= most, x, y)``."""
        low, high = self.bounds(most)
        if low == high == 0 and self._free_of(over.index, y):
            return self._sum_of_residue(dividend, n, most, x, y, over)
        if low == high == n - 2 and self._free_of(over.index, x):
            return self._sum_of_residue(dividend, n, number(n - 1), y, x, over)
        # the remainder is below k, 0 <= k <= n, where dividend//n and (dividend - k)//n differ: by 1
        k = self._smaller(self._larger(most.shifted(1), ZERO), number(n))
        below = to_expr(dividend) // n - to_expr(dividend.plus(k, -1)) // n
        return self._counted(below, x, y, over)

    def _counted(self, ones: Expr, x: Form, y: Form, over: Range) -> Form | None:
        """A sum of ``x`` where ``ones`` is 1 and ``y`` where it is 0, if neither speaks of the index."""
        if not self._free_of(over.index, x, y):
            return None
        count = self._sum_again(self.inner(ones), over)
        if _reduces(count):
            return None
        return self.times(x.plus(y, -1), count).plus(self.times(y, self._trips(over)))

    def _sum_of_residue(self, dividend: Form, n: int, residue: Form, x: Form, y: Form, over: Range) -> Form | None:
        """A sum of ``where(dividend % n == residue, x, y)``."""
        shift = dividend.plus(atom_form(over.index), -1)
        if not self._free_of(over.index, shift, y):
            return None
        low, high = self.bounds(residue)
        if low >= 0 and high < n:
            return self._sum_of_steps(residue.plus(shift, -1), n, x, y, over)
        some = self.junction("and", [self.at_least_zero(r) for r in (residue, residue.times(-1).shifted(n - 1))])
        inside = self.under(some)
        if inside is None:
            return None
        found = inside._sum_of_steps(residue.plus(shift, -1), n, x, y, over)
        return self._select(some, found, self.times(y, self._trips(over)))

    def _sum_of_steps(self, residue: Form, n: int, x: Form, y: Form, over: Range) -> Form:
        """A sum of ``x`` where the index is ``n*q + residue`` for some ``q``, and of ``y`` elsewhere."""
        index = over.index
        # the least q with n*q + residue >= end is -((residue - end)//n)
        steps = [self.quotient_by(residue.plus(end, -1), n).times(-1) for end in (over.low, over.high)]
        there = x.plus(y, -1)
        image = atom_form(index).times(n).plus(residue)
        body = instantiate(to_expr(there), index, to_expr(image)) if not self._free_of(index, there) else to_expr(there)
        chosen = self.form(make("sum_over", body, index, *map(to_expr, steps)))
        return chosen.plus(self.times(y, self._trips(over)) if y != ZERO else ZERO)

    def _sum_of_alternatives(self, condition: Expr, x: Form, y: Form, over: Range) -> Form | None:
        """A sum of ``where(c, x, y)`` where ``c`` is a few alternatives: each alone, less what two of them share."""
        if condition.op == "and":
            condition, x, y = self.negate(condition), y, x
        members = chain_members(condition, "or")
        if not self._free_of(over.index, y) or not 1 < len(members) <= MAX_ALTERNATIVES:
            return None
        if condition in self._alternatives:
            # what two share led back here: it is the opposite of two alternatives again
            return None
        self._alternatives.add(condition)
        try:
            return self._sum_by_alternatives(members, x, y, over)
        finally:
            self._alternatives.remove(condition)

    def _sum_by_alternatives(self, members: Sequence[Expr], x: Form, y: Form, over: Range) -> Form | None:
        """As :meth:`_sum_of_alternatives`, by inclusion and exclusion; ``None`` if a part has no closed form."""
        there, total = to_expr(x.plus(y, -1)), self.times(y, self._trips(over))
        for count in range(1, len(members) + 1):
            for some in combinations(members, count):
                shared = make("where", self.junction("and", some), there, const(0))
                found = self._sum_again(atom_form(shared), over)
                if _reduces(found):
                    return None
                total = total.plus(found, 1 if count % 2 else -1)
        return total

    def _sum_of_extreme(self, inside: list[Expr], over: Range) -> Form | None:
        """A sum of a smaller or larger value: it is one operand up to where it becomes the other."""
        chosen = next((part for part in inside if part.op in ("min", "max")), None)
        if chosen is None:
            return None
        others = list(inside)
        others.remove(chosen)
        one, other = [self.inner(arg) for arg in chosen.args]
        first = self.at_least_zero(other.plus(one, -1) if chosen.op == "min" else one.plus(other, -1))
        solved = self.solved_for(over.index, first)
        if solved is None or solved[2] is not TRUE:
            return None
        found = self._sum_of_selection([make("where", first, *chosen.args), *others], over)
        return None if found is None or _reduces(found) else found

    def _sum_of_exact_quotient(self, inside: list[Expr], over: Range) -> Form | None:
        """The sum of ``p // n`` times the other factors, where ``n`` always divides ``p``: the division comes last."""
        for part in inside:
            if part.op == "floordiv" and part.args[1].op == "const" and part.args[1].vmin > 0:
                dividend, n = self.inner(part.args[0]), part.args[1].vmin
                if always_divisible(dividend, n):
                    others = list(inside)
                    others.remove(part)
                    return self.quotient_by(self._sum(self._multiplied(dividend, others), over), n)
        return None

    def _sum_of_quotient(self, inside: list[Expr], over: Range) -> Form | None:
        """The sum of ``(k*index + rest) // n`` for literals ``k`` and ``n``."""
        index = over.index
        if len(inside) != 1 or inside[0].op != "floordiv" or inside[0].args[1].op != "const":
            return None
        n = cast(int, inside[0].args[1].value)
        dividend = self.inner(inside[0].args[0])
        k = dividend.terms.get(index, 0)
        rest = dividend.plus(atom_form(index), -k)
        if not k or n <= 0 or not self._free_of(index, rest):
            return None
        over = self._ordered(over)
        if k < 0:
            # the index from the other end: low + high - 1 - index
            rest = rest.plus(over.low.plus(over.high).shifted(-1), k)
            k = -k
        # with a factor common to k and n, the rest may be rounded down first
        common = gcd(k, n)
        k, n, rest = k // common, n // common, self.quotient_by(rest, common)
        if n == 1:
            return self._sum(Form({index: k}, 0).plus(rest), over)
        if over.extent.terms:
            return self._sum_of_unit_quotient(rest, n, over) if k == 1 else None
        periods, left = divmod(over.extent.constant, n)
        if k == 1 and left:
            return self._sum_of_unit_quotient(rest, n, over)
        if not periods:
            return None
        # over one period the quotients add up to start + (k - 1)(n - 1)/2; the next period is k higher throughout
        start = over.low.times(k).plus(rest)
        total = start.times(periods).shifted(periods * (k - 1) * (n - 1) // 2 + k * n * periods * (periods - 1) // 2)
        if left:
            remaining = Range(index, over.low.shifted(n * periods), over.high)
            body = self.quotient_by(rest.plus(atom_form(index), k), n)
            total = total.plus(self._sum_again(body, remaining))
        return total

    def _sum_of_unit_quotient(self, rest: Form, n: int, over: Range) -> Form:
        """The sum of ``(index + rest) // n``: the difference of ``N*q - n*q*(q + 1)/2``, ``q = N//n``, at the ends."""
        total = ZERO
        for end, sign in ((over.high, 1), (over.low, -1)):
            reach = end.plus(rest)
            q = self.quotient_by(reach, n)
            pairs = self.quotient_by(self.times(q, q.shifted(1)), 2)
            total = total.plus(self.times(reach, q), sign).plus(pairs, -sign * n)
        return total

    def _product(self, body: Form, over: Range) -> Form:
        selected = self._product_of_selection(body, over)
        if selected is not None:
            return selected
        trips = self._trips(over)
        exponent = None if trips.terms or trips.constant > MAX_EXPONENT else trips.constant
        if exponent is None:
            return self._product_of_units(body, over) or self._residual("prod_over", body, over)
        if self._free_of(over.index, body) and _has_power(body, exponent):
            return self._power(body, exponent)
        # what all addends share is a factor of the body
        content = gcd(body.content(), body.constant)
        shared = common_factors([factors(a) for a in body.terms]) if not body.constant else []
        outside = [p for p in shared if self._free_of(over.index, p) and _has_power(self.inner(p), exponent)]
        rest = Form({}, body.constant // content)
        for atom, coefficient in body.terms.items():
            left = cast(list[Expr], without(factors(atom), outside))
            rest = rest.plus(product_form(left), coefficient // content)
        total = number(content**exponent)
        for part in outside:
            total = self.times(total, self._power(self.inner(part), exponent))
        return self.times(total, self._residual("prod_over", rest, over))

    def _product_of_units(self, body: Form, over: Range) -> Form | None:
        """A product of ``0``, ``1`` or ``-1`` over any range."""
        trips = self._trips(over)
        if body == number(1):
            return body
        if body == ZERO:
            return self._select(self.equal_zero(trips), number(1), ZERO)
        if body == number(-1):
            return self.remainder(trips, number(2)).times(-2).shifted(1)
        return None

    def _product_of_selection(self, body: Form, over: Range) -> Form | None:
        """A product of ``where(c, x, 1)`` where ``c`` bounds the index, or of nothing but zeros and ones."""
        chosen = body.single()
        if chosen is None or chosen.op != "where":
            return None
        one = number(1)
        condition, *branches = _with_plain_condition(chosen).args
        x, y = [self.inner(arg) for arg in branches]
        if (x, y) == (ZERO, one):
            zeros = self._holding(condition, over)
            return None if zeros is None else self._select(self.equal_zero(zeros), one, ZERO)
        if (x, y) == (one, ZERO):
            ones = self._holding(condition, over)
            return None if ones is None else self._select(self.equal_zero(self._trips(over).plus(ones, -1)), one, ZERO)
        if x == one:
            condition, x, y = self.negate(condition), y, x
        if y != one:
            return None
        value = self.equated(over.index, condition)
        if value is not None:
            return self._at_only(value, condition, x, one, over)
        return self._over_part("prod_over", condition, x, y, over)

    def _holding(self, condition: Expr, over: Range) -> Form | None:
        """For how many values of the index ``condition`` holds, if no sum is left in that."""
        count = self._sum_again(atom_form(make("where", condition, const(1), const(0))), over)
        return None if _reduces(count) else count

    def _at_only(self, value: Form, condition: Expr, x: Form, y: Form, over: Range) -> Form:
        """``x`` where the index is ``value``, if ``condition`` holds there and that is in the range; else ``y``."""
        asked, there = [instantiate(t, over.index, to_expr(value)) for t in (condition, to_expr(x))]
        found = self.junction("and", [*self._in_range(value, over), self.condition(asked)])
        return self._chosen(found, there, to_expr(y))

    def _in_range(self, value: Form, over: Range) -> list[Expr]:
        """That the index may be ``value``."""
        return [
            self.at_least_zero(value.plus(over.low, -1)),
            self.at_least_zero(over.high.plus(value, -1).shifted(-1)),
        ]

    def _over_part(self, op: str, condition: Expr, x: Form, y: Form, over: Range) -> Form | None:
        """The reduction of ``where(condition, x, y)`` over the part of the range that ``condition`` leaves."""
        solved = self.solved_for(over.index, condition)
        if solved is None:
            return None
        part, rest = self._part(over, *solved[:2]), solved[2]
        inside = to_expr(x) if rest is TRUE else make("where", rest, to_expr(x), to_expr(y))
        return self.form(make(op, inside, over.index, to_expr(part.low), to_expr(part.high)))

    def _power(self, base: Form, exponent: int) -> Form:
        total = number(1)
        for _ in range(exponent):
            total = self.times(total, base)
        return total

    def _extreme_over(self, op: str, body: Form, over: Range) -> Form:
        """The largest or smallest value of ``body``; closed forms hold for ranges that are not empty."""
        full = self.at_least_zero(over.extent.shifted(-1))
        if full is TRUE:
            return self._extreme_of_some(op, body, over)
        inside = self.under(full)
        if inside is not None:
            found = inside._extreme_of_some(op, body, over)
            if self._free_of(over.index, found) and not any(a.op in REDUCTIONS for a in found.terms):
                return self._select(full, found, number(REDUCTIONS[op].identity))
        return self._residual(op, body, over)

    def _extreme_of_some(self, op: str, body: Form, over: Range) -> Form:
        """As :meth:`_extreme_over`, for a range that is known to hold some value."""
        index = over.index
        outside = Form({a: c for a, c in body.terms.items() if self._free_of(index, a)}, body.constant)
        inside = body.plus(outside, -1)
        if not inside.terms:
            return outside
        scale = inside.content() * (1 if inside.sign() > 0 else -1)
        if scale < 0:
            op = {"max_over": "min_over", "min_over": "max_over"}[op]
        inside = Form({a: c // scale for a, c in inside.terms.items()}, 0)
        factor, sign, inside = self._factor_with_sign(inside, index)
        if sign < 0:
            op = {"max_over": "min_over", "min_over": "max_over"}[op]
        slope, last = self._slope(inside, over), over.high.shifted(-1)
        selected = self._extreme_of_selection(op, inside, over)
        if selected is not None:
            found = selected
        elif slope is not None:
            found = self._at(inside, index, last if (slope > 0) == (op == "max_over") else over.low)
        elif self._is_affine_in(index, inside):
            ends = [self._at(inside, index, end) for end in (over.low, last)]
            found = self.extreme(op.removesuffix("_over"), ends)
        else:
            found = self._residual(op, inside, over)
        return outside.plus(self.times(factor, found), scale)

    def _factor_with_sign(self, body: Form, index: Expr) -> tuple[Form, int, Form]:
        """``body`` as a factor without the index, the sign of that, and the rest."""
        if len(body.terms) == 1:
            parts = factors(next(iter(body.terms)))
            signs = {part: self._sign(part) for part in parts if self._free_of(index, part)}
            if signs and None not in signs.values():
                inside = [part for part in parts if part not in signs]
                outside = [part for part in parts if part in signs]
                sign = prod([cast(int, signs[part]) for part in outside])
                return product_form(outside), sign, product_form(inside)
        return number(1), 1, body

    def _extreme_of_selection(self, op: str, body: Form, over: Range) -> Form | None:
        """An extreme of ``where(c, x, y)`` over some values of the index, where ``y`` does not speak of it."""
        chosen = body.single()
        if chosen is None or chosen.op != "where":
            return None
        condition, *branches = _with_plain_condition(chosen).args
        if self._free_of(over.index, condition):
            return self._chosen(
                condition, *[make(op, x, over.index, to_expr(over.low), to_expr(over.high)) for x in branches]
            )
        x, y = [self.inner(arg) for arg in branches]
        if not self._free_of(over.index, y):
            condition, x, y = self.negate(condition), y, x
        if not self._free_of(over.index, y):
            return None
        holding = self._holding(condition, over)
        if holding is None:
            return None
        somewhere = self.at_least_zero(holding.shifted(-1))
        there = self.under(somewhere)
        if there is None:
            return y
        best = x if self._free_of(over.index, x) else there._over_part(op, condition, x, y, over)
        if best is None:
            return None
        difference = x.plus(y, -1)
        if self.is_never_negative(difference if op == "max_over" else difference.times(-1)):
            return self._select(somewhere, best, y)
        if _reduces(best):
            return None
        everywhere = self.equal_zero(self._trips(over).plus(holding, -1))
        both = there.extreme(op.removesuffix("_over"), [best, y])
        return self._select(somewhere, self._select(everywhere, best, both), y)

    def _is_affine_in(self, index: Expr, body: Form) -> bool:
        """Whether the index is a factor of each term that speaks of it, and once."""
        moving = [[p for p in factors(atom) if not self._free_of(index, p)] for atom in body.terms]
        return all(parts in ([], [index]) for parts in moving)

    def _slope(self, body: Form, over: Range) -> int | None:
        """1 if ``body`` never falls as the index grows, -1 if it never rises, 0 if it stays; ``None`` if unknown."""
        slopes = {0}
        minimum = self.outer_minimum(body)
        if minimum is not None:
            if self.operand_count(body, MAX_NESTED) > MAX_NESTED:
                return None
            each = {self._slope(case, over) for case in self.cases(body, minimum)} | slopes
            return None if None in each or len(each) > 2 else sum(cast(set[int], each))
        for atom, coefficient in body.terms.items():
            slope = self._slope_of(atom, over)
            if slope is None:
                return None
            slopes.add(slope if coefficient > 0 else -slope)
        return None if len(slopes) > 2 else sum(slopes)

    def _slope_of(self, atom: Expr, over: Range) -> int | None:
        if atom is over.index:
            return 1
        if self._free_of(over.index, atom):
            return 0
        if atom.op == "floordiv" and atom.args[1].op == "const" and atom.args[1].vmin > 0:
            return self._slope(self.inner(atom.args[0]), over)
        if atom.op == "mul":
            signs = [self._sign(part) for part in factors(atom) if self._free_of(over.index, part)]
            slopes = {self._slope_of(part, over) for part in factors(atom) if not self._free_of(over.index, part)}
            others = [part for part in factors(atom) if not self._free_of(over.index, part)]
            if len(others) > 1 and any(self.range(part)[0] < 0 for part in others):
                return None
            if None in slopes or None in signs or len(slopes) > 1:
                return None
            return prod(cast(list[int], signs)) * cast(int, slopes.pop())
        return None

    def _sign(self, atom: Expr) -> int | None:
        low, high = self.range(atom)
        return 1 if low >= 0 else -1 if high <= 0 else None


def _has_power(base: Form, exponent: int) -> bool:
    """Whether the power of a form is multiplied out."""
    return exponent <= MAX_SUM_EXPONENT or len(base.terms) + bool(base.constant) < 2


def _reduces(form: Form) -> bool:
    """Whether any reduction is left."""
    return any(term.op in REDUCTIONS for term in topological(form.terms))


def _with_plain_condition(chosen: Expr) -> Expr:
    """A selection by what is itself selected by a condition, or compares two, as nested selections."""
    condition, x, y = chosen.args
    if condition.op == "where":
        p, q, r = condition.args
        return make("where", p, make("where", q, x, y), make("where", r, x, y))
    if condition.op in ("eq", "ne") and condition.args[0].is_bool:
        p, q = condition.args
        x, y = (x, y) if condition.op == "eq" else (y, x)
        return make("where", p, make("where", q, x, y), make("where", q, y, x))
    return chosen


def _loads(body: Form) -> bool:
    return any(term.op == "load" for term in topological(body.terms))


#: So many cases are tried to see that a polynomial is always divisible.
MAX_CASES = 2000


def always_divisible(form: Form, n: int) -> bool:
    """Whether ``n`` divides a sum of products of atoms whatever integers the atoms are.

    >>> from eqsat.expr import var
    >>> x = var("x", 0, 9)
    >>> always_divisible(Form({x * x: 1, x: 1}, 0), 2), always_divisible(Form({x: 1}, 0), 2)
    (True, False)
    """
    products = {atom: factors(atom) for atom in form.terms}
    bases = list(dict.fromkeys(base for parts in products.values() for base in parts))
    if n ** len(bases) > MAX_CASES or all(len(parts) == 1 for parts in products.values()):
        return form.content() % n == 0 and form.constant % n == 0
    for residues in cartesian(range(n), repeat=len(bases)):
        value = dict(zip(bases, residues, strict=True))
        if (form.constant + sum(c * prod(value[b] for b in products[a]) for a, c in form.terms.items())) % n:
            return False
    return True


@cache
def faulhaber(degree: int) -> tuple[Fraction, ...]:
    """The coefficients of the polynomial whose value at ``n`` is the sum of ``k**degree`` over ``0 <= k < n``.

    >>> faulhaber(1)
    (Fraction(0, 1), Fraction(-1, 2), Fraction(1, 2))
    """
    # n**(degree + 1) telescopes: it is the sum of (k+1)**(degree+1) - k**(degree+1), a sum of lower powers
    total = [Fraction(0)] * (degree + 1) + [Fraction(1)]
    for lower in range(degree):
        share = comb(degree + 1, lower)
        for power, coefficient in enumerate(faulhaber(lower)):
            total[power] -= share * coefficient
    return tuple([coefficient / (degree + 1) for coefficient in total])
