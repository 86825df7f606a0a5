"""Loads: which stay inside their arrays wherever they are evaluated, and which become selections between two.

Some loads are inside their array only where the condition of a selection holds. Such a load is written in that branch,
which C evaluates only if it is taken. The terms between the selection and the load stay there too: none is hoisted.

A load at one of two neighbours that a selection decides, ``X[where(c, 0, 1)]``, is ``where(c, X[0], X[1])``: both loads
leave the loop, and every compiler gets it right. gcc 12 makes ``X[c ? 0 : 1]`` an access at the offset ``!c``. Its
vectoriser then takes the lanes of a comparison, which are 0 and -1, for 0 and 1, so that it reads ``X[-1]``. In 32 bits
this happens if the address in the loop is a comparison plus literals, perhaps only after another loop was unrolled:
other sums are widened as a whole. In 64 bits it happens in any sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from eqsat.codegen.expressions import by_products
from eqsat.codegen.limits import CODE_LIMITS
from eqsat.extract.graph import reached
from eqsat.kernels.kernel import Store, equal_store
from eqsat.lang.dtypes import widths
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, const, make, rebuild, replaced, substitute
from eqsat.lang.functions import where
from eqsat.lang.ops import REDUCTIONS, SUMS
from eqsat.lang.traversal import array_of, mentions, topological, with_users
from eqsat.theory.linear import LinearArithmetic


def guarded_loads(
    roots: Sequence[Expr], facts: Sequence[Expr], row: Expr | None
) -> tuple[frozenset[Expr], frozenset[Expr]]:
    """The loads that are inside their array wherever they are evaluated, and the terms that must stay in a branch.

    Terms with ``row`` are evaluated only where ``facts`` hold. Others may be hoisted to where they do not.
    """
    inside: set[Expr] = set()
    inline: set[Expr] = set()
    doubtful = []
    order = topological(roots)
    for term in [t for t in order if t.op == "load"]:
        known = facts if row is not None and mentions(term, row) else ()
        place = term.args[1]
        if (place.vmin >= 0 and place.vmax < array_of(term).size) or is_inside_where(known, term):
            inside.add(term)
        else:
            doubtful.append((term, known))
    branches = list(_branches(roots)) if doubtful else []
    for term, known in doubtful:
        around = [(condition, terms) for condition, terms in branches if term in terms]
        between = _guarded_in(around, term, known)
        if between and _most_operators(order, inline | between) <= CODE_LIMITS.in_branch:
            inside.add(term)
            inline |= between
    return frozenset(inside), frozenset(inline)


def _most_operators(order: Iterable[Expr], inline: Collection[Expr]) -> int:
    """The operators of the longest of the terms ``inline`` as written: none has a local, so they are repeated."""
    sizes: dict[Expr, int] = {}
    for term in order:
        if term in inline:
            # an extreme is written as a selection, which repeats its operands
            times = 2 if term.op in ("fmin", "fmax") else 1
            sizes[term] = 1 + times * sum([sizes.get(a, 0) for a in term.args])
    return max(sizes.values(), default=0)


def _guarded_in(around: Sequence[tuple[Expr, set[Expr]]], load: Expr, known: Sequence[Expr]) -> set[Expr]:
    """The terms from a load to its outermost branch, if the conditions ``around`` keep it in its array; else none."""
    if not around or not is_inside_where([*known, *[condition for condition, _ in around]], load):
        return set()
    widest = max((terms for _, terms in around), key=len)
    between = with_users({load}, [t for t in topological(widest) if t in widest])
    return set() if any(t.op in REDUCTIONS for t in between) else between


def is_inside_where(known: Sequence[Expr], term: Expr) -> bool:
    """Whether a load is known to be inside its array where the conditions ``known`` hold; not once it is late."""
    try:
        theory = LinearArithmetic(known)
        low, high = (-1, -1) if theory.late_or_raise() else theory.bounds_of(term.args[1])
    except ContradictionError:
        # never evaluated
        return False
    return low >= 0 and high < array_of(term).size


def _branches(roots: Sequence[Expr]) -> Iterator[tuple[Expr, set[Expr]]]:
    """Every branch of every selection: its condition, and the terms that only this branch uses."""
    users: dict[Expr, set[Expr]] = defaultdict(set)
    order = topological(roots)
    for term in order:
        for arg in term.args:
            users[arg].add(term)
    for term in order:
        if term.op in ("where", "fwhere") and not any(t.element for t in topological([term.args[0]])):
            for branch, condition in zip(term.args[1:], (term.args[0], ~term.args[0]), strict=True):
                if branch in roots or users[branch] != {term} or term.args.count(branch) > 1:
                    continue
                own: set[Expr] = {branch}
                for part in [*topological([branch])][-2::-1]:
                    if part not in roots and users[part] <= own:
                        own.add(part)
                yield condition, own


def with_selected_loads(stores: Sequence[Store]) -> list[Store]:
    """The same stores with every load at a selected one of two neighbours as a selection between two loads.

    What is left of selections are products where :func:`eqsat.codegen.expressions.by_products` makes them so.
    """
    parts = [part for s in stores for part in s.parts]
    if not any(t.op == "where" for t in topological(parts)):
        return [*stores]
    theory = LinearArithmetic()
    selected = rebuild(parts, lambda term, args: _among_loads(theory, *args) if term.op == "load" else None)
    images = iter(by_products(selected))
    return [equal_store(s, [next(images) for _ in s.parts], s.over) for s in stores]


def _among_loads(theory: LinearArithmetic, array: Expr, index: Expr) -> Expr | None:
    """The load at ``index`` as a selection of two loads, or ``None`` if its index does not select two neighbours."""
    order = topological([index])
    selecting = with_users({t for t in order if t.op == "where"}, order)
    if index not in selecting:
        return None
    if widths([index])[index] == 64:
        return _between_two(theory, array, index, [t for t in order if t in selecting])
    # what a literal is added to
    others = [a for a in index.args if a.op != "const"] if index.op in ("add", "sub") else []
    part = others[0] if len(others) == 1 else index

    def at(place: Expr) -> Expr:
        (there,) = substitute([index], {part: place})
        return make("load", array, theory.simplify(there) if place.op == "const" else there)

    # for each alternative that the part may be, the load with that alternative as the part
    images: dict[Expr, Expr] = {}
    alternatives = _operands(part, {"where"})
    for term in order:
        if term not in selecting or term not in alternatives:
            continue
        low, high = theory.bounds_of(term)
        if high - low == 1:
            images[term] = where(theory.condition(term.eq(low)), at(const(low)), at(const(high)))
        elif any(a in images for a in term.args[1:]):
            images[term] = where(term.args[0], *[images[a] if a in images else at(a) for a in term.args[1:]])
    return images.get(part)


def _between_two(theory: LinearArithmetic, array: Expr, index: Expr, selecting: Sequence[Expr]) -> Expr | None:
    """A selection of two loads, by the first addend of the index among ``selecting`` that has two values."""
    addends = _operands(index, SUMS | {"mul", "where"})
    for term in selecting:
        low, high = theory.bounds_of(term) if term in addends else (0, 0)
        if high - low == 1:
            loads = [make("load", array, *replaced([index], {term: const(end)})) for end in (low, high)]
            return where(theory.condition(term.eq(low)), *loads)
    return None


def _operands(root: Expr, operators: Collection[str]) -> set[Expr]:
    """A term and what it joins by these operators, at any depth; of a selection its branches."""
    return set(reached([root], lambda term: term.args[term.op == "where" :] if term.op in operators else ()))
