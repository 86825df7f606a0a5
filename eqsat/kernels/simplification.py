"""Kernels made cheaper: their loops, addresses, conditions and integers.

:func:`simplified` rewrites every index, condition and integer of a kernel through :func:`eqsat.optimize`, all together;
floating-point values keep their operations and the order of their sums, unless the caller allows otherwise.
:func:`optimized` chooses the loops (:mod:`eqsat.kernels.schedule`) too: it makes the kernel that is compiled.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import copysign, prod
from typing import cast

from eqsat.egraph.budget import Budget
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.kernels.kernel import Kernel, Store, equal_store, flat_store, flattened
from eqsat.kernels.limits import LIMITS
from eqsat.kernels.ranges import Axis, Nest, cheapest, in_cheapest_ranges, with_floats
from eqsat.kernels.reductions import as_free, unguarded_divisions
from eqsat.kernels.schedule import arranged, in_digits, split
from eqsat.lang.costs import LATENCY, model_of
from eqsat.lang.dtypes import bounds_text
from eqsat.lang.expr import (
    TRUE,
    Expr,
    any_buffer,
    any_var,
    as_float,
    brief,
    const,
    indices_around,
    instantiate,
    make,
    rebuild,
    replaced,
    substitute,
)
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import DIVISIONS, FLOATS, REDUCTIONS
from eqsat.lang.properties import misfits
from eqsat.lang.terms import all_of
from eqsat.lang.traversal import Buffer, array_of, extent, index_level, mentions, topological, with_users
from eqsat.lang.validation import require
from eqsat.optimizer.front import optimize
from eqsat.theory.arithmetic import late_after
from eqsat.theory.forms import to_expr
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.ranges import equated, solved_for

#: What optimising a kernel may use: its loops and terms are optimised several times over.
KERNEL_BUDGET = Budget(seconds=10.0)
#: The share of the time of :func:`simplified` that may go to choosing loops.
FOR_LOOPS = 1 / 2
#: The share of the time of :func:`optimized` that may go to simplifying the kernel before it is split again.
ONCE = 2 / 3


def optimized(kernel: Kernel, *, reassociate: bool = False, budget: Budget = KERNEL_BUDGET) -> Kernel:
    """The kernel that is compiled: split and simplified, once more if that helps, and arranged.

    It is split first, since rules that know nothing of the loops would mix the digits of an index. With
    ``reassociate`` it is optimised with and without, and what divides less often in the loops of its sums is taken: a
    condition may have become the end of a range, and such a range has no loops for its digits.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    reassociate : bool
        Whether floating-point sums may be taken in another order, which rounds differently.
    budget : Budget
        What all of it may use together.

    Raises
    ------
    ValueError
        If a divisor may be zero; the message names it and the kernel.
    TypeError
        If ``kernel`` is no kernel, or ``budget`` no budget.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, k = buffer("A", "f32", (4, 6)), buffer("B", "f32", (24,)), var("k", 0, 23)
    >>> optimized(Kernel("turn", [Store(b[k], a[k % 4, k // 4], [k])])).stores
    (Store('B[k_0 + k_1*4] = A[k_0*6 + k_1] for k_1, k_0'),)
    """
    require(budget, Budget, "a budget")
    end = budget.ends()

    def simplest(reassociate: bool, end: float) -> Kernel:
        found = simplified(start, reassociate=reassociate, budget=budget.until(end, ONCE))
        apart = found if time.perf_counter() > end else split(found)
        if apart is not found:
            found = simplified(apart, reassociate=reassociate, budget=budget.until(end))
        return found if time.perf_counter() > end else arranged(found)

    with late_after(end), _naming_zero_divisors(kernel):
        start = split(flattened(kernel))
        in_order = simplest(False, budget.ends(1 / 2) if reassociate else end)
        return min([simplest(True, end), in_order], key=_divisions_in_sums) if reassociate else in_order


def _divisions_in_sums(kernel: Kernel) -> int:
    """How many divisions there are in the bodies of reductions."""
    stores, _ = in_digits(kernel.stores)
    reductions = [t for t in topological([part for s in stores for part in s.parts]) if t.op in REDUCTIONS]
    return sum(t.op in DIVISIONS for t in topological([r.args[0] for r in reductions]))


def simplified(
    kernel: Kernel, *, cost: CostModel | str = LATENCY, reassociate: bool = False, budget: Budget = KERNEL_BUDGET
) -> Kernel:
    """The same kernel with every address, condition and integer as cheap as it gets.

    Parameters
    ----------
    cost : CostModel or str
        What is cheap, a model or its name, for one evaluation; each is paid as often as its loop runs.
    reassociate : bool
        Whether sums of floating-point values may be taken in another order, which rounds differently. A product
        with 0.0 is 0.0 then, whatever the other factor is.
    budget : Budget
        What all of it may use together. Where time runs out loops and terms stay as they are.

    Raises
    ------
    ValueError
        If a divisor may be zero, there is no such cost model, or it gives no price; the message names it.
    TypeError
        If an argument is of another type.

    Notes
    -----
    Arrays of the kernel become flat ones, inputs and outputs: what runs it is to be given them reshaped. So splitting a
    flat index and putting it together again cancels. Loops are split and merged where that saves enough
    (:mod:`eqsat.kernels.ranges`); elements are stored in the same order.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, k = buffer("A", "f32", (4, 6)), buffer("B", "f32", (24,)), var("k", 0, 23)
    >>> simplified(Kernel("copy", [Store(b[k], a[k // 6, k % 6], [k])])).stores
    (Store('B[k] = A[k] for k'),)
    """
    require(kernel, Kernel, "a kernel")
    cost = model_of(cost)
    require(budget, Budget, "a budget")
    end, for_loops = budget.ends(), budget.ends(FOR_LOOPS)
    with _naming_zero_divisors(kernel):
        flat = [_collapsed(s, reassociate, cost, budget.until(for_loops)) for s in map(flat_store, kernel.stores)]
        taken = kernel.names
        flat = [
            s
            for _, nest in groupby(flat, key=lambda s: s.over)
            for s in _in_cheapest_loops(list(nest), cost, taken, budget.until(for_loops))
        ]
        pieces = _Pieces(flat)
        loops = pieces.loops()
        model = LoopAware(loops, cost) if loops else cost
        result = optimize(pieces.terms, gates=pieces.gates, cost=model, budget=budget.until(end))
    return Kernel(kernel.name, pieces.joined_safely(result.exprs))


@contextmanager
def _naming_zero_divisors(kernel: Kernel) -> Iterator[None]:
    """If a kernel is refused for a divisor that may be zero, say so by the names of the kernel, with its remedies."""
    try:
        yield
    except ValueError:
        pieces = _Pieces(flattened(kernel).stores)
        given = {image: term for term, image in pieces.images.items()}
        for division in unguarded_divisions(pieces.terms, pieces.gates):
            (division,) = replaced([division], given)
            divisor = division.args[1]
            raise ValueError(
                f"the divisor {brief(divisor)!r} of {brief(division)!r} in kernel {kernel.name!r} may be zero: "
                f"its range is {bounds_text(divisor.vmin, divisor.vmax)}; narrow it or write "
                f"where({brief(divisor)} != 0, {brief(division)}, 0)"
            ) from None
        raise


def _in_cheapest_loops(stores: list[Store], model: CostModel, taken: set[str], budget: Budget) -> list[Store]:
    """Stores of one loop nest in the cheapest nest; new loops get names that are not ``taken``, which gains these."""
    if not budget.seconds:
        return stores
    pieces = _Pieces(stores)
    over = stores[0].over
    reductions = [t for s in stores for t in topological([s.value, s.when]) if t.op in REDUCTIONS]
    free = [{v for v in topological([t]) if v.op == "var"} for t in reductions]
    axes = [Axis(v, scopes=[str(n) for n, vs in enumerate(free) if v in vs]) for v in over]
    given = Nest(axes, pieces.terms, pieces.gates)
    inside = {name: trips for name, trips in pieces.loops().items() if name not in {str(v.value) for v in over}}
    nest = cheapest(given, model, inside=inside, gain=LIMITS.least_gain, seconds=budget.seconds, taken=taken)
    if any(_repeats(nest, variables) > _repeats(given, variables) for variables in free):
        # a reduction would run more often
        return stores
    loops = tuple([axis.variable for axis in nest.axes])
    taken |= {str(v.value) for v in loops}
    return [equal_store(s, substitute(s.parts, nest.images), loops) for s in stores]


def _repeats(nest: Nest, free: Collection[Expr]) -> int:
    """How often a nest computes a term with the variables ``free``."""
    read = set(topological([nest.images.get(v, v) for v in free]))
    return prod([axis.extent for axis in nest.axes if axis.variable in read])


def _collapsed(store: Store, reassociate: bool, model: CostModel, budget: Budget) -> Store:
    """The store with its floating-point reductions only over the steps that change their results.

    A step that adds 0.0 changes nothing, nor does one that multiplies by 1.0 or compares with an infinity. So a
    condition on the index narrows the range, and an equation leaves one step. To this 0.0 is added, since no sum is
    -0.0. Only with ``reassociate`` may it be, may factors leave a sum, or a factor of 0 or 1 count as a condition.
    Ranges that may be taken in any order are split and merged where that costs less.
    """
    end = budget.ends()

    def in_cheapest(term: Expr) -> Expr:
        seconds = budget.until(end).seconds
        return in_cheapest_ranges(term, model, LIMITS.least_gain, seconds) if seconds else term

    def fits(new: Expr, old: Expr) -> bool:
        if misfits([new]) and not misfits([old]):
            return False
        return {*unguarded_divisions([new])} <= {*unguarded_divisions([old])}

    def shorter(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in REDUCTIONS:
            return None
        whole = make(term.op, *args)
        if not term.element:
            return in_cheapest(whole)
        while whole.op in REDUCTIONS:
            narrowed = _narrowed(whole, reassociate)
            if narrowed is None or not fits(narrowed, whole):
                break
            whole = narrowed
        if whole.op not in REDUCTIONS:
            return whole
        outside = _out_of_the_loop(whole, reassociate)
        # the number of steps may not fit 64 bits where each end of the range does
        whole = outside if fits(outside, whole) else whole
        if whole.op in ("fmax_over", "fmin_over") or (reassociate and whole.op in REDUCTIONS):
            return in_cheapest(whole)
        return whole

    value = rebuild([store.value], _selected_product)[0] if reassociate else store.value
    (value,) = rebuild([value], shorter)
    return equal_store(store, [store.target.args[1], value, store.when], store.over)


def _narrowed(term: Expr, reassociate: bool) -> Expr | None:
    """A reduction of ``where(c, x, y)``, where ``y`` changes nothing, over the part of the range where ``c`` can hold.

    ``None`` if the body is no such selection, or ``c`` does not bound the index. What bounds the index may not fit 64
    bits, nor may the body there, where the index is outside of its range.
    """
    body, index, low, high = term.args
    if body.op != "fwhere" or with_floats(body.args[:1]):
        return None
    neutral = REDUCTIONS[term.op].rounded
    condition, x, y = body.args
    theory = LinearArithmetic()
    known = theory.condition(condition)

    def only(step: Expr) -> Expr:
        """The reduction whose only step this is."""
        is_same = reassociate or term.op != "fsum_over" or _is_never_negative_zero(step)
        return step if is_same else make("fadd", step, as_float(0.0, step))

    if _is_literal(x, neutral):
        known, x, y = theory.negate(known), y, x
    if not _is_literal(y, neutral):
        return None
    if term.op == "fsum_over":
        # it may be -0.0
        y = as_float(0.0, y)
    if (value := equated(theory, index, known)) is not None:
        place = to_expr(value)
        there = (low <= place) & (place < high) & instantiate(known, index, place)
        return make("fwhere", there, only(instantiate(x, index, place)), y)
    if (solved := solved_for(theory, index, known)) is None:
        return None
    first, beyond, rest = solved
    start = low if first is None else maximum(low, to_expr(first))
    end = high if beyond is None else minimum(high, to_expr(beyond))
    inside = x if rest is TRUE else make("fwhere", rest, x, y)
    if theory.condition(end - start <= 1) is TRUE:
        return make("fwhere", start < end, only(instantiate(inside, index, start)), y)
    return make(term.op, inside, index, start, end)


def _selected_product(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """``where(c, x, 0.0)`` for ``c*x``, and ``where(c, x*y, 0.0)`` for ``where(c, x, 0.0)*y``."""
    if term.op in ("to_float", "to_double") and args[0].op == "where" and args[0].args[1:] == (const(1), const(0)):
        one = as_float(1.0, term)
        return make("fwhere", args[0].args[0], one, as_float(0.0, one))
    if term.op != "fmul":
        return None
    for one, other in (args, args[::-1]):
        if one.op == "fwhere" and (_is_literal(one.args[1], 0) or _is_literal(one.args[2], 0)):
            scaled = [
                part if _is_literal(part, 0) else other if _is_literal(part, 1) else make("fmul", part, other)
                for part in one.args[1:]
            ]
            found = make("fwhere", one.args[0], *scaled)
            # literals take the type of the other factor, in which the product would be rounded
            return found if found.element == make("fmul", *args).element else None
    return None


def _out_of_the_loop(term: Expr, reassociate: bool) -> Expr:
    """What does not change with the index leaves the reduction."""
    body, index, low, high = term.args
    some = low < high
    if term.op in ("fmax_over", "fmin_over") and not mentions(body, index) and some.vmin:
        return body
    if not reassociate or term.op != "fsum_over":
        return term

    def outside(body: Expr) -> Expr:
        if not mentions(body, index):
            return make("fmul", body, as_float(maximum(high - low, 0), body))
        if body.op == "fmul":
            x, y = body.args
            if not mentions(y, index):
                x, y = y, x
            # the sum of narrower factors would be rounded to their type
            if not mentions(x, index) and y.element == body.element:
                return make("fmul", x, outside(y))
        return make("fsum_over", body, index, low, high)

    found = outside(body)
    # over no steps a sum of infinities is 0, but 0 times infinity is NaN
    return found if found.op == "fsum_over" or some.vmin else make("fwhere", some, found, as_float(0, found))


def _is_never_negative_zero(term: Expr) -> bool:
    """Whether a value is plainly not ``-0.0``, so that to add 0.0 changes nothing."""
    if term.op == "fwhere":
        return all(map(_is_never_negative_zero, term.args[1:]))
    if term.op == "fadd":
        return any(map(_is_never_negative_zero, term.args))
    if term.op == "float":
        return copysign(1.0, cast(float, term.value)) > 0 or term.value != 0
    return term.op in ("fsum_over", "to_float", "to_double")


def _is_literal(term: Expr, value: float) -> bool:
    return term.op == "float" and term.value == value


def _operands_in_context(term: Expr, context: dict[Expr, None]) -> list[tuple[Expr, dict[Expr, None]]]:
    """The operands of a term that is evaluated where the conditions of ``context`` hold, each with those around it."""
    if term.op in ("where", "fwhere"):
        condition, x, y = term.args
        return [(condition, context), (x, context | {condition: None}), (y, context | {~condition: None})]
    if term.op in REDUCTIONS:
        body, index, low, high = term.args
        inside = [low <= index, index < high] if not low.op == high.op == "const" else []
        return [(body, context | dict.fromkeys(inside)), (low, context), (high, context)]
    return [(a, context) for a in term.args if a.op != "buffer"]


def _note(contexts: dict[Expr, dict[Expr, None]], uses: Iterable[tuple[Expr, Mapping[Expr, None]]]) -> None:
    """Keep of each term's conditions those of all its uses."""
    for term, context in uses:
        contexts[term] = {c: None for c in contexts.get(term, context) if c in context}


class _Pieces:
    """The addresses, conditions and integers of stores as roots for one optimisation, and the way back.

    ``pieces`` are the addresses, conditions and integers that stores and floating-point terms use. ``terms``, the
    roots, are the same without floating-point comparisons, for which loads from unknown arrays stand, and with free
    variables for the indices of the reductions around them. ``gates`` say per root what holds wherever it is evaluated.
    """

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = stores
        self.order = topological([t for s in stores for t in s.parts])
        # per term the conditions that hold wherever it is evaluated, the outermost first, as the keys of a dict
        self.contexts: dict[Expr, dict[Expr, None]] = {}
        self.pieces: list[Expr] = []
        # what stands for comparisons and indices
        self.images: dict[Expr, Expr] = {}
        # per name of an unknown array, the comparison that its elements stand for, and the indices in that
        self.hidden: dict[str, tuple[Expr, list[Expr]]] = {}
        for s in stores:
            around: dict[Expr, None] = {} if s.when is TRUE else {s.when: None}
            _note(self.contexts, [(s.target.args[1], around), (s.value, around), (s.when, {})])
        # users come before what they use, so a context is complete when it is passed on
        for term in self.order[::-1]:
            if term in self.contexts:
                self._visit(term, self.contexts[term])
        self.images |= {t.args[1]: as_free(t.args[1]) for t in self.order if t.op in REDUCTIONS}
        self.terms = substitute(self.pieces, self.images)
        conditions = dict.fromkeys(c for piece in self.pieces for c in self.contexts[piece])
        rounded = with_floats(conditions)
        known = [c for c in conditions if c not in rounded]
        facts = dict(zip(known, substitute(known, self.images), strict=True))
        gates = [[facts[c] for c in self.contexts[piece] if c in facts] for piece in self.pieces]
        self.gates = [all_of(conditions) if conditions else None for conditions in gates]

    def loops(self) -> dict[str, int]:
        """How often each loop runs, outermost first; none if the stores do not share theirs."""
        over = self.stores[0].over
        if any(s.over != over for s in self.stores):
            return {}
        indices = sorted([t for t in self.images if t.op == "var"], key=lambda t: (-index_level(t), t.key))
        nest = [*over, *[self.images[t] for t in indices]]
        return {str(v.value): extent(v) for v in nest}

    def _visit(self, term: Expr, context: dict[Expr, None]) -> None:
        """Make a piece of ``term``, or pass its context on to its operands if it is a floating-point value."""
        if term.element:
            _note(self.contexts, _operands_in_context(term, context))
            return
        self.pieces.append(term)
        order = topological([term])
        if not any(t.op in FLOATS for t in order):
            return
        contexts = {term: context}
        for inner in order[::-1]:
            if inner not in contexts:
                continue
            if inner.op in FLOATS:
                self._hide(inner)
                _note(self.contexts, [(a, contexts[inner]) for a in inner.args])
            else:
                _note(contexts, _operands_in_context(inner, contexts[inner]))

    def _hide(self, comparison: Expr) -> None:
        """Let an element of an unknown array stand for a comparison, at the indices that occur in it."""
        if comparison not in self.images:
            free = indices_around(comparison)
            name = f"#{len(self.hidden)}"
            self.hidden[name] = (comparison, free)
            self.images[comparison] = any_buffer(Buffer(name, "bool"))[tuple(map(as_free, free)) or 0]

    def joined_safely(self, terms: Sequence[Expr]) -> list[Store]:
        """:meth:`joined`; pieces with comparisons stay if one has left the branch that keeps its divisor from zero."""
        stores = self.joined(terms)
        found = _Pieces(stores) if self.hidden else None
        if found is None or not unguarded_divisions(found.terms, found.gates):
            return stores
        hiding = with_users({t for t in self.images.values() if t.op == "load"}, topological(self.terms))
        return self.joined([old if old in hiding else new for old, new in zip(self.terms, terms, strict=True)])

    def joined(self, terms: Sequence[Expr]) -> list[Store]:
        """The stores, with each piece replaced by that of ``terms``, in the same order."""
        found = dict(zip(self.pieces, terms, strict=True))
        indices = {image: index for index, image in self.images.items() if index.op == "var"}
        new: dict[Expr, Expr] = {}
        for term in self.order:
            if term.element or (term.op in FLOATS and term.is_bool):
                # an index may be an address too, which is another term where its value is known
                bound = term.args[1:2] if term.op in REDUCTIONS else ()
                new[term] = make(term.op, *[a if a in bound else new[a] for a in term.args]) if term.args else term
            elif term in found:
                new[term] = self._restored(found[term], indices, new)
            elif not term.args:
                new[term] = term
        return [equal_store(s, [new[part] for part in s.parts], s.over) for s in self.stores]

    def _restored(self, term: Expr, indices: Mapping[Expr, Expr], new: Mapping[Expr, Expr]) -> Expr:
        """``term`` with the indices and comparisons that variables and loads stood for."""
        bound = dict.fromkeys(t.args[1] for t in topological([term]) if t.op in REDUCTIONS)
        # indices of the term's reductions are free until these are made again: a comparison that is put into a body may
        # have reductions of its own, which must not capture them
        own = {index: any_var(f"#own{n}", index.vmin, index.vmax) for n, index in enumerate(bound)}

        def restore(part: Expr, args: tuple[Expr, ...]) -> Expr | None:
            name = array_of(part).name if part.op == "load" else ""
            if name not in self.hidden:
                return indices.get(part, own.get(part))
            comparison, free = self.hidden[name]
            moved = {index: place for index, place in zip(free, args[1:], strict=False) if index is not place}
            # by way of new variables: a place may contain another of these indices
            fresh = {index: any_var(f"#{n}", index.vmin, index.vmax) for n, index in enumerate(moved)}
            (found,) = replaced([new[comparison]], fresh)
            for index, place in moved.items():
                found = instantiate(found, fresh[index], place)
            return found

        return rebuild([term], restore)[0]
