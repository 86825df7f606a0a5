"""What terms need on their way from other systems and back.

:func:`optimized` optimises equal problems under other names once. :func:`without_multiples` prepares terms: multiples
of a divisor leave the dividend, so that they are not normalised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod
from operator import add
from typing import Any

from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.lang.expr import Expr, const, make, rebuild, replaced, var
from eqsat.lang.ops import FLOORS, SUMS
from eqsat.lang.properties import facts_on
from eqsat.lang.terms import written_product, written_sum
from eqsat.lang.traversal import chain_members, variables
from eqsat.optimizer.front import optimize
from eqsat.theory.forms import read

_LINEAR = SUMS | {"mul"}


def optimized(terms: Sequence[Expr], facts: Sequence[Expr], options: dict[str, Any]) -> tuple[Expr, ...]:
    """The cheapest terms found equal to ``terms`` where ``facts`` hold; kept for the same problem in other names."""
    known = facts_on(terms, facts)
    names = {x: var(f"v{k}", x.vmin, x.vmax) for k, x in enumerate(variables([*terms, *known]))}
    roots, constraints = (tuple(replaced(those, names)) for those in (terms, known))
    answer = _answer if all(map(_is_fixed, options.values())) else _answer.__wrapped__
    try:
        found = answer(roots, constraints, tuple(sorted(options.items())))
    except ValueError:
        # raises the error again, with the names of the caller
        return optimize(terms, constraints=known, **options).exprs
    return tuple(replaced(found, {new: old for old, new in names.items()}))


@lru_cache(INTEROP_LIMITS.kept_kernels)
def _answer(
    roots: tuple[Expr, ...], constraints: tuple[Expr, ...], options: tuple[tuple[str, Any], ...]
) -> tuple[Expr, ...]:
    return optimize(roots, constraints=constraints, **dict(options)).exprs


def _is_fixed(option: object) -> bool:
    """Whether an option cannot change between calls, as rules in a list can, or a cost model's attributes."""
    try:
        hash(option)
    except TypeError:
        return False
    return type(option).__hash__ is not object.__hash__


def without_multiples(terms: Sequence[Expr]) -> list[Expr]:
    """Terms in which no dividend has a multiple of its divisor as a summand; equal wherever ``terms`` are defined."""

    def shortened(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in FLOORS or args[0].op not in _LINEAR:
            return None
        literal, factors = _product(args[1])
        if not literal:
            return None
        form = read(args[0])
        summands = {**form.terms, **({const(1): form.constant} if form.constant else {})}
        quotients: dict[Expr, Expr] = {}
        for summand, scale in summands.items():
            own, others = _product(summand)
            if not (scale * own % literal or factors - others):
                number = const(scale * own // literal)
                quotients[summand] = written_product([*(others - factors).elements(), number])
        if not quotients:
            return None
        kept = [item for item in summands.items() if item[0] not in quotients]
        rest = make(term.op, written_sum(kept, 0), args[1]) if kept else const(0)
        return rest if term.op == "mod" else reduce(add, [*([rest] if kept else []), *quotients.values()])

    return rebuild(terms, shortened)


def _product(root: Expr) -> tuple[int, Counter[Expr]]:
    """The literal factor of a product as it is written, and its other factors."""
    members = chain_members(root, "mul")
    return prod([t.vmin for t in members if t.op == "const"]), Counter([t for t in members if t.op != "const"])
