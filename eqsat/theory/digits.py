"""Comparisons of all digits of a number, one by one, as one comparison of the number.

With ``|lower| < n`` the equations ``lower == 0`` and ``upper == 0`` are ``lower + n*upper == 0``, which has no quotient
where that cancels; so ``x//6 == y and x%6 == z`` is ``x == y*6 + z``, and the order of mixed-radix numbers is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import gcd, lcm

from eqsat.lang.expr import TRUE, Expr
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import ZERO, LinearForm, Remainder, factors, number
from eqsat.theory.limits import LIMITS


def shortened(theory: Arithmetic, op: str, members: list[Expr]) -> list[Expr]:
    """``x < 1 and x + y == 3`` as ``x < 1 and y == 3``: less a form that is zero where another member does not decide.

    This is no normal form: the longer sum may be computed anyway.
    """
    if not 1 < len(members) <= LIMITS.deciding:
        return members
    found = [*members]
    zeros = [_zero_beside(theory, op, member) for member in found]
    for place, member in enumerate(found):
        # in turn, by the current form of the others: two members must not both be shortened by each other
        found[place] = _less(theory, member, [z for at, z in enumerate(zeros) if at != place and z.terms])
        if found[place] is not member:
            zeros[place] = _zero_beside(theory, op, found[place])
    return found


def _less(theory: Arithmetic, member: Expr, zeros: Sequence[LinearForm]) -> Expr:
    """A comparison less multiples of ``zeros``, forms that are zero, if that is shorter."""
    equation = theory.negate(member) if member.op == "ne" else member
    form = theory.difference(equation) if zeros else None
    if form is None:
        return member
    shorter = form
    for zero in zeros:
        less = shorter.plus(zero, -shorter.scale_of(zero))
        shorter = less if len(less.terms) < len(shorter.terms) else shorter
    found = theory.equal_zero(shorter) if equation.op == "eq" else theory.at_least_zero(shorter)
    return found if equation is member else theory.negate(found)


def _zero_beside(theory: Arithmetic, op: str, comparison: Expr) -> LinearForm:
    """A form that is zero wherever a member does not decide its junction; :data:`ZERO` if none is known."""
    decisive = comparison if op == "and" else theory.negate(comparison)
    form = theory.difference(decisive)
    return form if form is not None and (decisive.op == "eq" or theory.bounds(form)[1] == 0) else ZERO


def join_digits(theory: Arithmetic, op: str, members: list[Expr]) -> list[Expr]:
    """The members of a junction with two equations of digits joined to one; under "or", two inequations."""
    conjoined = members if op == "and" else [theory.negate(m) for m in members]
    equations = {m: form for m in conjoined if (form := _zero_where(theory, m)) is not None}
    for lower, upper in permutations(conjoined, 2) if equations else ():
        if lower not in equations:
            continue
        form = equations.get(upper) or _zero_where(theory, upper, equations[lower])
        joined = form and (_without_digit(theory, equations[lower], form) or _of_both(theory, equations[lower], form))
        if joined is not None:
            both = theory.equal_zero(joined)
            rest = [m for m, c in zip(members, conjoined, strict=True) if c is not lower and c is not upper]
            return [*rest, both if op == "and" else theory.negate(both)]
    return members


def _zero_where(theory: Arithmetic, comparison: Expr, zero: LinearForm = ZERO) -> LinearForm | None:
    """A form with a quotient that is zero iff a comparison holds, provided that ``zero`` is zero; else ``None``.

    Where ``x%6`` is zero, ``x%18 < 6`` holds iff ``x//6%3`` is zero.
    """
    form = theory.difference(comparison)
    if form is None or not any(atom.op in ("floordiv", "mul") for atom in form.terms):
        return None
    if comparison.op != "eq":
        form = form.plus(zero, -form.scale_of(zero))
        form = form.divided(form.content()) if form.terms else form
        if theory.bounds(form)[1] != 0:
            return None
    return form


def _without_digit(theory: Arithmetic, lower: LinearForm, upper: LinearForm) -> LinearForm | None:
    """A form that is zero iff ``lower`` and ``upper`` both are, without a quotient that both have; else ``None``."""
    for quotient, k in upper.terms.items():
        if quotient.op != "floordiv":
            continue
        n, uneven = divmod(lower.terms.get(quotient, 0), k)
        if n and not uneven:
            low, high = theory.bounds(lower)
            return lower.plus(upper, -n) if -abs(n) < low and high < abs(n) else None
        if abs(k) == 1 and quotient.args[1].op != "const":
            joined = _without_quotient(theory, theory.inner(quotient.args[1]), quotient, lower, upper)
            if joined is not None:
                return joined
    return None


def _of_both(theory: Arithmetic, first: LinearForm, other: LinearForm) -> LinearForm | None:
    """A form that is zero iff ``x % c == k`` and ``x % d == m``: of the remainder by the least common multiple."""
    one, two = _equated_remainder(theory, first), _equated_remainder(theory, other)
    if one is None or two is None or one[0].dividend != two[0].dividend:
        return None
    (remainder, k), (second, m) = one, two
    c, d = remainder.divisor, second.divisor
    common = gcd(c, d)
    if (m - k) % common:
        return number(1)
    steps = (m - k) // common * pow(c // common, -1, d // common) % (d // common)
    return theory.remainder(remainder.dividend, number(lcm(c, d))).shifted(-(k + c * steps))


def _equated_remainder(theory: Arithmetic, form: LinearForm) -> tuple[Remainder, int] | None:
    """``A % n`` and ``value`` if ``form == 0`` is ``A % n == value`` with a literal ``n``; else ``None``."""
    for found in theory.remainders_in(form):
        if abs(found.scale) == 1:
            value = -found.rest.constant * found.scale
            return (found, value) if not found.rest.terms and 0 <= value < found.divisor else None
    return None


def _without_quotient(
    theory: Arithmetic, divisor: LinearForm, quotient: Expr, lower: LinearForm, upper: LinearForm
) -> LinearForm | None:
    """``lower ± divisor*upper`` if one of them has no ``quotient`` and ``abs(lower) < divisor``; else ``None``."""
    for sign in (1, -1):
        joined = lower.plus(theory.times(divisor, upper), sign)
        if not any(quotient in factors(atom) for atom in joined.terms):
            gaps = [divisor.plus(lower, side).shifted(-1) for side in (1, -1)]
            return joined if all(theory.at_least_zero(gap) is TRUE for gap in gaps) else None
    return None


def join_order(theory: Arithmetic, op: str, members: list[Expr]) -> list[Expr]:
    """``x//6 < y or x//6 == y and x%6 < z`` as ``x < y*6 + z``; under "and", the complements."""
    inside = "and" if op == "or" else "or"
    turned = theory.negate if op == "and" else _itself
    for member in members:
        parts = chain_members(member, inside)
        for equal, below in permutations(parts, 2) if len(parts) == 2 else ():
            for higher, both in _in_order(theory, turned(equal), turned(below)):
                strict, joined = turned(higher), turned(both)
                if strict in members:
                    return [joined, *[m for m in members if m is not member and m is not strict]]
    return members


def _itself(condition: Expr) -> Expr:
    return condition


def _in_order(theory: Arithmetic, equal: Expr, below: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The strict comparison of the higher digits, and the comparison that it makes with ``equal and below``."""
    upper = _zero_where(theory, equal) if equal.op == "eq" else None
    lower = theory.difference(below) if below.op != "eq" else None
    if upper is None or lower is None:
        return
    for quotient, k in upper.terms.items():
        n, uneven = divmod(-lower.terms.get(quotient, 0), k)
        if n and not uneven:
            low, high = theory.bounds(lower)
            if -abs(n) <= low and high < abs(n):
                upper = upper.times(1 if n > 0 else -1)
                yield theory.at_least_zero(upper.shifted(-1)), theory.at_least_zero(lower.plus(upper, abs(n)))
            return
