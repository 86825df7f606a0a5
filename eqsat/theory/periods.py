"""What holds for all integers, decided over one period: of remainders of products, and of quotients by literals."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from math import lcm
from typing import Any

from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, var
from eqsat.lang.ops import SUMS, np
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import domain_size, topological, variables
from eqsat.theory.forms import LinearForm, factors, literal_divisor
from eqsat.theory.limits import LIMITS

#: Operators that, with multiples and quotients by literals, make periodic terms.
_PERIODIC = SUMS | {"var", "const"}


def constant_remainder(form: LinearForm, n: int, most: int = LIMITS.periodic_points) -> int | None:
    """The remainder of a sum of products by ``n > 1``, if it is the same for all values of the factors modulo ``n``.

    ``None`` if there are more than ``most`` cases of them.
    """
    parts = [factors(atom) for atom in form.terms]
    if all(len(part) < 2 for part in parts):
        return None
    atoms = dict.fromkeys(a for part in parts for a in part)
    if n ** len(atoms) > most:
        return None
    residues: dict[Expr, Any] = dict(zip(atoms, np.ix_(*[np.arange(n)] * len(atoms)), strict=True))
    total: Any = form.constant % n
    for part, coefficient in zip(parts, form.terms.values(), strict=True):
        powers = [reduce(lambda x, y: x * y % n, [residues[atom]] * k) for atom, k in Counter(part).items()]
        total = total + reduce(lambda x, y: x * y % n, powers, coefficient % n)
    remainders = total % n
    low, high = int(remainders.min()), int(remainders.max())
    return low if low == high else None


def lacking(form: LinearForm, n: int) -> int:
    """The least known ``k`` for which ``-(A//n)`` is ``(k - A)//n``: what ``A`` is more than a multiple of ``n``.

    >>> from eqsat.theory.forms import read
    >>> x = var("x", 0, 9)
    >>> lacking(read(x), 2), lacking(read(x * x + x), 2)
    (1, 0)
    """
    left = constant_remainder(form, n, LIMITS.lacking_points)
    return n - 1 if left is None else left


def holds_in_a_period(equation: Expr) -> bool:
    """Whether sums and quotients by literals are equal at all integers, decided over one period of each variable.

    If ``A`` changes by a constant whenever a variable grows by ``k``, so does ``A // n`` whenever it grows by ``n*k``.
    """
    steps: dict[Expr, int] = {}
    for term in topological(equation.args):
        divisor = literal_divisor(term)
        if divisor <= 0 and term.op not in _PERIODIC and not (term.op == "mul" and term.args[1].op == "const"):
            return False
        steps[term] = lcm(*[steps[arg] for arg in term.args]) * (divisor or 1)
        if steps[term] > LIMITS.periodic_points:
            return False
    # with both ends of the period, so that the two sides also change by the same constant over it
    period = lcm(*[steps[side] for side in equation.args])
    names = [var(str(v.value), 0, period) for v in variables([equation])]
    return domain_size(names) <= LIMITS.periodic_points and bool(evaluate([equation], grid(names), total=True)[0].all())
