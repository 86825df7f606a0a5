"""Large selections inside of terms, optimised by themselves; answers are kept by structure, whatever names are.

A term that adds to a large selection or scales it is optimised with a variable in the place of the selection, and so is
the selection once for all terms that have it. Where the answer does more with the variable than to add and scale it,
all is optimised together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eqsat.interop.drop_in import Answers
from eqsat.lang.expr import Expr, free_name, replaced, var
from eqsat.lang.ops import SUMS
from eqsat.lang.traversal import facts_on, reached, topological, variables
from eqsat.optimizer.front import optimize

#: Terms that a selection has, at least, that is optimised by itself.
LARGE = 12
_ANSWERS = Answers()


def optimized(terms: Sequence[Expr], facts: Sequence[Expr], options: dict[str, Any]) -> tuple[Expr, ...]:
    """The cheapest terms found equal to ``terms`` where ``facts`` hold.

    >>> x = var("x", 0, 99)
    >>> optimized([x*8 // 4], [], {})
    (Expr('x*2'),)
    """
    # the outermost ones
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
    """Whether it is a large selection between integers."""
    return term.op == "where" and not term.is_bool and len(topological([term])) >= LARGE


def _uses(terms: Iterable[Expr], images: set[Expr]) -> set[Expr] | None:
    """Those of ``images`` that are summands of ``terms``, perhaps scaled; None if one stands elsewhere."""
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
    """The answer for terms under those facts that speak of what they depend on, which is kept with other names."""
    terms = tuple(terms)
    known = facts_on(terms, facts)
    names = {x: var(f"v{k}", x.vmin, x.vmax) for k, x in enumerate(variables([*terms, *known]))}
    roots, constraints = (tuple(replaced(those, names)) for those in (terms, known))

    def solve() -> tuple[Expr, ...]:
        try:
            return optimize(roots, constraints=constraints, **options).exprs
        except ValueError:
            # the error speaks of the other names: that of the terms as they were given does not
            return tuple(replaced(optimize(terms, constraints=known, **options).exprs, names))

    problem = roots, constraints, tuple(sorted(options.items()))
    try:
        hash(problem)
    except TypeError:
        # rules in a list, or a cost model that changes
        found = solve()
    else:
        found = _ANSWERS.of(problem, solve)
    return tuple(replaced(found, {new: old for old, new in names.items()}))
