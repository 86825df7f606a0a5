"""Nested reductions whose indices are the digits of one number, as one reduction over that number.

``sum(sum(A[i*4 + j], j, 0, 4), i, 0, 8)`` is ``sum(A[k], k, 0, 32)``. They are merged before they are normalised: once
the inner one has a closed form, the outer one hardly ever shows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.extract.graph import reached
from eqsat.lang.expr import Expr, make, replaced
from eqsat.lang.ops import SUMS
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import term_count, topological_until
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, literal, number, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.ranges import Range, assuming_in, is_free_of, new_range

#: Operators of bodies whose reduction is made of reductions of their operands.
_APART = {"sum_over": ("add", "sub", "mul"), "prod_over": ("mul",)}


def as_one_loop(theory: Arithmetic, term: Expr) -> Expr | None:
    """A nest of two loops as one, if the body is shorter as a function of the number whose digits the indices are."""
    body, index, low, high = term.args
    if not has_reductions([body]):
        return None
    if body.op in _APART.get(term.op, ()):
        return _by_parts(theory, term)
    if body.op != term.op:
        return None
    over = Range(index, theory.form(low), theory.form(high))
    if (inside := assuming_in(theory, over)) is None:
        return None
    merged = as_one_loop(inside, body)
    loop = body if merged is None else merged
    # factors may have left the inner loop
    whole = _merged(theory, inside, over, loop) if loop.op == term.op else None
    return make(term.op, merged, index, low, high) if whole is None and merged is not None else whole


def _merged(theory: Arithmetic, inside: Arithmetic, outer: Range, loop: Expr) -> Expr | None:
    """A ``loop`` in a loop over the range ``outer`` as one; ``inside`` is the theory in the range."""
    body = loop.args[0]
    if term_count([body]) > LIMITS.merged_terms or has_reductions([body]):
        return None
    inner = Range(loop.args[1], inside.form(loop.args[2]), inside.form(loop.args[3]))
    if not is_free_of(inside, outer.index, inner.low, inner.high):
        return None
    if (within := assuming_in(inside, inner)) is None:
        return None
    size = theory.simplicity.size(to_expr(within.form(body)))
    # either loop may be the one over the upper digit
    for above, below in ((outer, inner), (inner, outer)):
        radix = literal(below.extent)
        if radix is None or radix < 2:
            continue
        whole = new_range(theory, "#number", number(0), above.extent.times(radix))
        images = {
            above.index: _digit(body, above, theory.form(whole.index // radix)),
            below.index: _digit(body, below, theory.form(whole.index % radix)),
        }
        if (there := assuming_in(theory, whole)) is None:
            continue
        found = to_expr(there.form(replaced([body], images)[0]))
        if size > theory.simplicity.size(found):
            return whole.reduction(loop.op, found)
    return None


def _by_parts(theory: Arithmetic, term: Expr) -> Expr | None:
    """A reduction of operands in place of that of a sum or product, if a nest among them becomes one loop."""
    body, index, low, high = term.args
    apart = _APART[term.op]
    # a sum may be long, and parts of it may stand in it again and again: no recursion, and each part once
    taken_apart = reached([body], lambda part: part.args if part.op in apart else ())
    found: dict[Expr, Expr | None] = {}
    for part in topological_until([body], lambda part: part in found or part not in taken_apart):
        loops = [make(term.op, operand, index, low, high) for operand in (part.args if part.op in apart else (part,))]
        if part.op not in apart:
            found[part] = as_one_loop(theory, loops[0]) if has_reductions(loops[0].args[:1]) else None
            continue
        wholes = [found[operand] for operand in part.args]
        operands = [loop if whole is None else whole for loop, whole in zip(loops, wholes, strict=True)]
        is_merged = wholes != [None, None]
        if is_merged and (part.op, term.op) == ("mul", "sum_over"):
            # the one factor with the index stays in the loop, the other leaves it
            held = [not is_free_of(theory, index, factor) for factor in part.args]
            factors = zip(held, operands, part.args, strict=True)
            operands = [operand if is_held else factor for is_held, operand, factor in factors]
            is_merged = sum(held) == 1
        found[part] = make(part.op, *operands) if is_merged else None
    return found[body]


def _digit(body: Expr, over: Range, place: LinearForm) -> Expr:
    """The value of an index at some place of its range, counted from the end if it runs backward."""
    return to_expr(over.high.shifted(-1).plus(place, -1) if runs_backward(body, over.index) else over.low.plus(place))


def runs_backward(body: Expr, index: Expr) -> bool:
    """Whether the index is subtracted wherever it stands."""

    def signed_operands(signed: tuple[Expr, int]) -> Iterable[tuple[Expr, int]]:
        term, sign = signed
        if term.op in SUMS:
            # the last operand is the one that "neg" and "sub" subtract
            *first, last = term.args
            return [*((a, sign) for a in first), (last, sign if term.op == "add" else -sign)]
        if term.op == "mul" and term.args[1].op == "const":
            return [(term.args[0], sign if term.args[1].vmin > 0 else -sign)]
        return [(a, 1) for a in term.args]

    return {sign for term, sign in reached([(body, 1)], signed_operands) if term is index} == {-1}
