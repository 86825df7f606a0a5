"""Large terms of other systems, optimised in parts; equal problems under other names have one answer, which is kept.

:func:`without_multiples` prepares terms: multiples of a divisor leave the dividend, so that they are not normalised.

:func:`optimized` optimises a large selection by itself, once for all terms that have it. A variable stands in its place
while the terms around it are optimised. If their answer does more with the variable than to add and scale it, all is
optimised together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from operator import add
from typing import Any

from eqsat.interop.drop_in import Answers
from eqsat.lang.expr import Expr, const, free_name, make, rebuild, replaced, var
from eqsat.lang.ops import FLOORS, SUMS
from eqsat.lang.terms import written_product, written_sum
from eqsat.lang.traversal import chain_members, facts_on, reached, topological, variables
from eqsat.optimizer.front import optimize

#: A selection of as many terms or more is optimised by itself.
LARGE = 12
_LINEAR = SUMS | {"mul"}
_ANSWERS = Answers()


def optimized(terms: Sequence[Expr], facts: Sequence[Expr], options: dict[str, Any]) -> tuple[Expr, ...]:
    """The cheapest terms found equal to ``terms`` where ``facts`` hold.

    >>> x = var("x", 0, 99)
    >>> optimized([x*8 // 4], [], {})
    (Expr('x*2'),)
    """
    # the outermost large selections
    large = [t for t in reached(terms, lambda t: () if _is_large(t) else t.args) if _is_large(t)]
    if not large or not set(large).isdisjoint(terms):
        return _answer(terms, facts, options)
    taken = {str(x.value) for x in variables([*terms, *facts])}
    images = {part: var(free_name("part", taken), part.vmin, part.vmax) for part in large}
    found = _answer(replaced(terms, images), facts, options)
    if (used := _uses(found, set(images.values()))) is None:
        return _answer(terms, facts, options)
    inside = [part for part, image in images.items() if image in used]
    answers = _answer(inside, facts, options) if inside else ()
    return tuple(replaced(found, {images[part]: answer for part, answer in zip(inside, answers, strict=True)}))


def _is_large(term: Expr) -> bool:
    """Whether a term is a large selection between integers."""
    return term.op == "where" and not term.is_bool and len(topological([term])) >= LARGE


def _uses(terms: Iterable[Expr], images: set[Expr]) -> set[Expr] | None:
    """Those of ``images`` that ``terms`` add, perhaps scaled; None if one of them stands elsewhere."""
    summands: set[Expr] = set()
    rest: list[Expr] = []
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term in images:
            summands.add(term)
        elif term.op in SUMS:
            stack += term.args
        elif term.op == "mul" and not images.isdisjoint(topological(term.args[:1])):
            stack.append(term.args[0])
            rest.append(term.args[1])
        else:
            rest.append(term)
    return None if not images.isdisjoint(topological(rest)) else summands


def _answer(terms: Sequence[Expr], facts: Sequence[Expr], options: dict[str, Any]) -> tuple[Expr, ...]:
    """The answer for ``terms`` under those facts that bear on them; it is kept for the same problem in other names."""
    terms = tuple(terms)
    known = facts_on(terms, facts)
    names = {x: var(f"v{k}", x.vmin, x.vmax) for k, x in enumerate(variables([*terms, *known]))}
    roots, constraints = (tuple(replaced(those, names)) for those in (terms, known))

    def solve() -> tuple[Expr, ...]:
        try:
            return optimize(roots, constraints=constraints, **options).exprs
        except ValueError:
            # raises the error again, with the names of the caller
            return tuple(replaced(optimize(terms, constraints=known, **options).exprs, names))

    problem = roots, constraints, tuple(sorted(options.items()))
    found = _ANSWERS.of(problem, solve) if all(map(_is_fixed, options.values())) else solve()
    return tuple(replaced(found, {new: old for old, new in names.items()}))


def _is_fixed(option: object) -> bool:
    """Whether an option cannot change between calls, as rules in a list can, or a cost model's attributes."""
    try:
        hash(option)
    except TypeError:
        return False
    return type(option).__hash__ is not object.__hash__


def without_multiples(terms: Sequence[Expr]) -> list[Expr]:
    """Terms in which no dividend has a multiple of its divisor as a summand; equal wherever ``terms`` are defined.

    >>> x, y, n = var("x", 0, 99), var("y", 0, 99), var("n", 1, 99)
    >>> without_multiples([(x + (y*2 - 3)*8) % 16, (y*(n*12) + x) // (n*4)])
    [Expr('(x - 24)%16'), Expr('x//(n*4) + y*3')]
    """

    def shortened(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in FLOORS or args[0].op not in _LINEAR:
            return None
        literal, factors = _product(args[1])
        if not literal:
            return None
        kept: list[tuple[Expr, int]] = []
        quotients: list[Expr] = []
        for summand, scale in _summands(args[0]):
            own, others = _product(summand)
            if scale * own % literal or factors - others:
                kept.append((summand, scale))
            else:
                quotients.append(written_product([*(others - factors).elements(), const(scale * own // literal)]))
        if not quotients:
            return None
        rest = make(term.op, written_sum(kept, 0), args[1]) if kept else const(0)
        return rest if term.op == "mod" else reduce(add, [*([rest] if kept else []), *quotients])

    return rebuild(terms, shortened)


def _product(root: Expr) -> tuple[int, Counter[Expr]]:
    """The literal factor of a product as it is written, and its other factors."""
    members = chain_members(root, "mul")
    return prod([t.vmin for t in members if t.op == "const"]), Counter([t for t in members if t.op != "const"])


def _summands(root: Expr) -> list[tuple[Expr, int]]:
    """The summands of a sum as it is written, each with what it is multiplied by from outside."""
    found: list[tuple[Expr, int]] = []
    stack = [(root, 1)]
    while stack:
        term, scale = stack.pop()
        if term.op in ("add", "sub"):
            stack += [(term.args[1], scale if term.op == "add" else -scale), (term.args[0], scale)]
        elif term.op == "neg":
            stack.append((term.args[0], -scale))
        elif term.op == "mul" and term.args[1].op == "const":
            stack.append((term.args[0], scale * term.args[1].vmin))
        else:
            found.append((term, scale))
    return found
