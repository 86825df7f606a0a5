"""Reductions in normal form: closed forms where there are any, else a smaller reduction.

The body is normalised by a theory that assumes that the index is in its range, so what holds only there is not used
outside. Each kind of reduction has a module: :mod:`eqsat.theory.sums`, :mod:`eqsat.theory.products` and, for extremes,
:mod:`eqsat.theory.largest`.

The identities, each checked point by point in ``tests/theory/test_reduce.py``, are also rules in ``rules/reduce.py``.
Closed forms also hold for an empty range (``high <= low``), where the reduction is its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import gcd
from operator import or_

from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, any_var, const, instantiate, replaced
from eqsat.lang.ops import REDUCTIONS, np
from eqsat.lang.traversal import long_partial_chains, topological
from eqsat.theory.arithmetic import Arithmetic, begun
from eqsat.theory.forms import LinearForm, atom_form, literal, literal_divisor, number, to_expr
from eqsat.theory.largest import ExtremeOver
from eqsat.theory.limits import LIMITS
from eqsat.theory.nested import as_one_loop, runs_backward
from eqsat.theory.products import ProductOver
from eqsat.theory.ranges import Range, assuming_in, chosen, is_free_of
from eqsat.theory.sums import SumOver

#: Operators of terms that may be permutations of a range.
_PERMUTING = frozenset({"add", "sub", "where", "mod", "bitxor"})


def normal_reduction(theory: Arithmetic, term: Expr) -> LinearForm:
    """The normal form of a reduction whose ends have theirs."""
    if term in theory.reducing:
        # its normal form is being found, and asks for itself
        return atom_form(term)
    with begun(theory.reducing, term):
        return _normal_reduction(theory, term)


def _normal_reduction(theory: Arithmetic, term: Expr) -> LinearForm:
    body, index, low, high = term.args
    if theory.parent is not None and theory.touched & theory.variables.of(index):
        # facts about a variable must not be used for an index of the same name, which the reduction binds
        return theory.parent.form(term)
    if (whole := _unless_refused(lambda: as_one_loop(theory, term))) is not None:
        return theory.form(whole)
    over = Range(index, theory.forms[low], theory.forms[high])
    if (inside := assuming_in(theory, over)) is None:
        return number(REDUCTIONS[term.op].identity)
    normal = inside.form(_in_order(inside, body, over))
    found = _unless_refused(lambda: reduced(theory, term.op, _permuted(inside, normal, over), over))
    return atom_form(term) if found is None else found


def _unless_refused[T](find: Callable[[], T]) -> T | None:
    """``find()``; ``None`` if an unevaluated step divides by zero, or a number is too wide."""
    try:
        return find()
    except ContradictionError:
        raise
    except ValueError:
        return None


def reduced(theory: Arithmetic, op: str, body: LinearForm, over: Range) -> LinearForm:
    """The normal form of a reduction of ``body``, which is normal in the range.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.theory.linear import LinearArithmetic
    >>> i = var("i", 0, 9)
    >>> reduced(LinearArithmetic(), "sum_over", LinearForm({i: 2}, 1), Range(i, number(0), number(10)))
    LinearForm(100)
    """
    high = theory.bounds(over.extent)[1]
    if high <= 0:
        return number(REDUCTIONS[op].identity)
    if high == 1:
        full = theory.at_least_zero(over.extent.shifted(-1))
        value = instantiate(to_expr(body), over.index, to_expr(over.low))
        return chosen(theory, full, value, const(REDUCTIONS[op].identity))
    if op == "sum_over":
        return SumOver(theory, over).of(body)
    if op == "prod_over":
        return ProductOver(theory, over).of(body)
    return ExtremeOver(theory, over, op).of(body)


def _in_order(theory: Arithmetic, body: Expr, over: Range) -> Expr:
    """``body`` with the index in place of a permutation of the range, if it depends on the index in no other way.

    A reduction takes the values of the range in any order, but for one of floats: ``sum(A[(r + k)%8], r, 0, 8)`` and
    ``sum(A[7 - r], r, 0, 8)`` are ``sum(A[r], r, 0, 8)``.
    """
    order = topological([body])
    if over.index not in order:
        return body
    if (plain := _without_permutation(theory, body, over, order)) is not None:
        return plain
    # only with loads or inner reductions: other bodies have a closed form, or are summed in their own order
    if any(term.op == "load" or term.op in REDUCTIONS for term in order) and runs_backward(body, over.index):
        image = over.high.plus(over.low).shifted(-1).plus(atom_form(over.index), -1)
        return replaced([body], {over.index: to_expr(image)})[0]
    return body


def _without_permutation(theory: Arithmetic, body: Expr, over: Range, order: Sequence[Expr]) -> Expr | None:
    """A body with the index in place of a term that permutes a range between literals; ``None`` if it has none."""
    extent, low = literal(over.extent), literal(over.low)
    if extent is None or extent <= 0 or low is None:
        return None
    # a term with the index of an inner reduction is another permutation for each of its values
    within = _indices_within(theory, order)
    # the values of all partial chains of a long chain would take time quadratic in its length
    parts = long_partial_chains(order, LIMITS.wide_chain)
    candidates = [term for term in order if not term.is_bool and term not in parts]
    one = [term for term in candidates if not theory.variables.of(term) & within]
    least = {term: _least_permuted(theory, term, over, low, extent) for term in one}
    found = {term: first for term, first in least.items() if first is not None}
    if len({theory.form(term).shifted(-first) for term, first in found.items()}) != 1:
        return None
    other = any_var("#permuted", low, low + extent - 1)
    (moved,) = replaced([body], {term: other + (first - low) for term, first in found.items()})
    return None if over.index in topological([moved]) else replaced([moved], {other: over.index})[0]


def _least_permuted(theory: Arithmetic, term: Expr, over: Range, low: int, extent: int) -> int | None:
    """The least value of a term that takes ``extent`` adjacent values, each at one value of the index; or ``None``."""
    if term.op not in _PERMUTING:
        return None
    last, index = term.args[1], over.index
    if term.op == "mod" and last.op == "const" and last.vmin == extent:
        form = theory.form(term.args[0])
        scale = form.terms.get(index, 0)
        rest = form.without(index)
        return 0 if gcd(scale, extent) == 1 and is_free_of(theory, index, rest) else None
    if term.op == "bitxor" and index in term.args and extent & (extent - 1) == low == 0:
        mask = theory.form(last if term.args[0] is index else term.args[0])
        least, most = theory.bounds(mask)
        return 0 if is_free_of(theory, index, mask) and least >= 0 and most < extent else None
    if theory.variables.of(term) != theory.variables.of(index) or theory.form(term).is_affine():
        return None
    if extent > LIMITS.computed_steps:
        return None
    values = {str(index.value): np.arange(low, low + extent)}
    taken = sorted(map(int, evaluate([term], values, total=True)[0]))
    return taken[0] if taken == [*range(taken[0], taken[0] + extent)] else None


def _indices_within(theory: Arithmetic, terms: Iterable[Expr]) -> int:
    """The indices of the reductions among terms, as a bit set."""
    return reduce(or_, [theory.variables.of(term.args[1]) for term in terms if term.op in REDUCTIONS], 0)


def _permuted(theory: Arithmetic, body: LinearForm, over: Range) -> LinearForm:
    """``body`` with its index replaced by a permutation of the range, if that makes it simpler.

    Over ``n`` values ``k*index + rest`` has each remainder by ``n`` once. If the body has ``(k*index + rest)//n``, the
    new index is the one that is congruent to this dividend.
    """
    extent = literal(over.extent)
    if extent is None or extent < 2:
        return body
    index, size = over.index, theory.simplicity.size
    order = topological([to_expr(body)])
    within = _indices_within(theory, order)
    for term in order:
        if literal_divisor(term) != extent or theory.variables.of(term) & within:
            continue
        dividend = theory.inner(term.args[0])
        scale = dividend.terms.get(index, 0)
        rest = dividend.without(index)
        if gcd(scale, extent) > 1 or not is_free_of(theory, index, rest):
            continue
        # the index at which k*index + rest has the remainder of the new index
        moved = atom_form(index).plus(rest, -1).times(pow(scale, -1, extent)).plus(over.low, -1)
        image = to_expr(theory.remainder(moved, number(extent)).plus(over.low))
        found = theory.form(instantiate(to_expr(body), index, image))
        if size(to_expr(found)) < size(to_expr(body)):
            return found
    return body
