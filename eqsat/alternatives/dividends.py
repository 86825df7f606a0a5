"""Sums as a multiple of a dividend and of its quotient: ``7*x - 524*y - 1259*((x - 75*y)//180)`` by one ``x + 105*y``.

A normal form has the smallest coefficients below ``//``, so a sum beside it that was a multiple of what is divided is
none any more: ``S*7 - S//180*1259`` becomes the sum above. Which multiple of 180 the dividend has lost is what makes
both one again: of ``a*S + c*(S//n)`` the normal form is ``R + c*(D//n)``, where ``S`` is ``D + n*w`` and ``R - a*D`` is
``(c + a*n)*w``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.limits import LIMITS
from eqsat.extract.cost import is_power_of_two
from eqsat.lang.expr import Expr
from eqsat.lang.infinity import is_finite
from eqsat.theory.forms import LinearForm, atom_form, number


def add_by_dividends(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> bool:
    """Add the alternatives of sums that use a dividend and its quotient; whether there are any."""
    found = False
    for c, form in forms:
        if builder.theory.late_or_raise():
            break
        if not 2 < len(form.terms) <= LIMITS.wide_sum:
            continue
        for atom, coefficient in form.terms.items():
            if atom.op != "floordiv" or atom.args[1].op != "const":
                continue
            for dividend, n in _readings(builder, atom):
                for whole, left, a in _dividends(builder, form, atom, coefficient, dividend, n):
                    base, quotient = builder.add_class(whole), builder.theory.quotient_by(whole, n)
                    divided = builder.add_class(quotient, expand=False)
                    builder.add_node(divided, ("floordiv", None, (base, builder.add_class(number(n)))))
                    others = [(atom_form(other), k) for other, k in left.terms.items()]
                    builder.add_node(c, builder.sum_node([(whole, a), (quotient, coefficient), *others], left.constant))
                    found = True
    return found


def _readings(builder: Builder, atom: Expr) -> Iterator[tuple[LinearForm, int]]:
    """The dividends and divisors of which a quotient by a literal is the quotient."""
    dividend, n = builder.theory.inner(atom.args[0]), atom.args[1].vmin
    yield dividend, n
    for inside, k in dividend.terms.items():
        # (x//b + r)//n is (x + b*r)//(b*n), and -(x//b) is (b - 1 - x)//b
        if abs(k) == 1 and inside.op == "floordiv" and inside.args[1].op == "const" and inside.args[1].vmin > 1:
            b = inside.args[1].vmin
            below = builder.theory.inner(inside.args[0])
            rest = dividend.plus(atom_form(inside), -k)
            yield rest.times(b).plus(below, k).shifted(b - 1 if k < 0 else 0), b * n


def _dividends(
    builder: Builder, form: LinearForm, atom: Expr, coefficient: int, dividend: LinearForm, n: int
) -> Iterator[tuple[LinearForm, LinearForm, int]]:
    """Dividends of a quotient in a sum, with what is left of that beside a multiple of them and of the quotient."""
    rest = form.plus(atom_form(atom), -coefficient)
    scales = {rest.terms[x] // k: None for x, k in dividend.terms.items() if x in rest.terms and not rest.terms[x] % k}
    for near in (1, -1):
        if not (near - coefficient) % n:
            scales[(near - coefficient) // n] = None
    for a in scales:
        step = coefficient + a * n
        if not a or not step:
            continue
        difference = rest.plus(dividend, -a)
        whole = LinearForm({x: k // step for x, k in difference.terms.items() if not k % step}, 0)
        left = difference.plus(whole, -step)
        if not whole.terms or len(left.terms) + 2 >= len(form.terms):
            continue
        total = dividend.plus(whole, n)
        shifts = {} if left.constant % step else {left.constant // step: None}
        low = builder.theory.plain_bounds(total)[0]
        shifts[0 if low >= 0 or is_power_of_two(n) or not is_finite(low) else -(low // n)] = None
        for shift in shifts:
            yield total.shifted(n * shift), left.shifted(-step * shift), a
