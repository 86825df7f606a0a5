"""Kernels: arrays in, arrays out, by stores over ranges of variables.

A :class:`Store` gives each element of an output a value made of loads, arithmetic and reductions; a :class:`Kernel` is
a list of stores. Variables that no store ranges over are parameters of the kernel. :func:`simplified` rewrites every
index, condition and integer of a kernel through :func:`eqsat.optimize`, all together; floating-point values
keep their operations and the order of their sums, unless the caller allows otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import groupby
from math import prod
from operator import and_
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsat.egraph.engine import Budget
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.kernels.limits import LIMITS
from eqsat.kernels.ranges import Axis, Nest, cheapest, in_cheapest_ranges
from eqsat.lang.costs import LATENCY, model_of
from eqsat.lang.display import Displayed, html_table
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import (
    TRUE,
    Expr,
    ExprLike,
    any_buffer,
    any_var,
    array_of,
    as_expr,
    as_float,
    as_free,
    brief,
    buffer,
    buffers,
    const,
    extent,
    index_level,
    instantiate,
    is_index,
    make,
    rebuild,
    refuse_array,
    replaced,
    substitute,
    topological,
    variables,
)
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import ELEMENTS, FLOATS, REDUCTIONS, Buffer
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import mentions, with_users
from eqsat.lang.validation import integer_of, require, shown
from eqsat.optimizer.front import optimize
from eqsat.theory.forms import to_expr
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.solving import equated, solved_for

#: What optimising a kernel may use: its loops and terms are optimised several times over.
KERNEL_BUDGET = Budget(seconds=10.0)
#: The share of the time after which no further loops are looked for.
FOR_LOOPS = 1 / 2

#: NumPy's type of each element type.
DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("bool"),
    "i32": np.dtype("int32"),
    "i64": np.dtype("int64"),
    "f32": np.dtype("float32"),
    "f64": np.dtype("float64"),
}


@dataclass(frozen=True)
class Store:
    """``target = value`` for all values of ``over``, outermost loop first, where ``when`` holds.

    Parameters
    ----------
    target : Expr
        An element of the output: a buffer with a shape, subscripted.
    value : Expr, int or float
        Converted to a floating-point value if the elements are.
    over : sequence of Expr
        The variables of the loops, outermost first.
    when : Expr, optional
        A condition; where it does not hold nothing is stored.

    Raises
    ------
    ValueError, TypeError
        If an index can leave its axis, or the value does not fit the elements; the message says which.

    >>> from eqsat.lang.expr import var
    >>> a, b, i = buffer("A", "i32", (8,)), buffer("B", "i32", (8,)), var("i", 0, 7)
    >>> Store(b[i], a[7 - i], [i])
    Store('B[i] = A[7 - i] for i')
    """

    target: Expr
    value: Expr
    over: tuple[Expr, ...]
    when: Expr

    def __init__(self, target: Expr, value: ExprLike, over: Iterable[Expr] = (), when: ExprLike = TRUE) -> None:
        set_field = object.__setattr__
        if not isinstance(over, Iterable):
            raise TypeError(f"a store ranges over {shown(over)}: give a list of variables, such as [i]")
        set_field(self, "target", target)
        set_field(self, "over", tuple(over))
        set_field(self, "value", as_expr(value))
        set_field(self, "when", as_expr(when))
        refuse_array(self.value)
        refuse_array(self.when)
        if not isinstance(target, Expr) or target.op != "load":
            stated = repr(brief(target)) if isinstance(target, Expr) else type(target).__name__
            raise TypeError(f"the target of a store is an element such as C[i], not {stated}")
        array = self.array
        if array.element in ("f32", "f64") and not self.value.is_bool:
            set_field(self, "value", as_float(self.value, self.target))
        self._check_value(array)
        if not self.when.is_bool:
            raise TypeError(f"the guard of a store is a condition, not {brief(self.when)!r}")
        for variable in self.over:
            if not isinstance(variable, Expr) or variable.op != "var" or self.over.count(variable) > 1:
                raise ValueError(f"a store ranges over distinct variables, not over {brief(as_expr(variable))!r}")
        self._check_indices(array)

    def __repr__(self) -> str:
        over = ", ".join(map(str, self.over))
        guard = "" if self.when is TRUE else f" where {self.when}"
        return f"Store('{self.target} = {self.value}{' for ' * bool(over)}{over}{guard}')"

    @property
    def array(self) -> Buffer:
        """The output that is stored to."""
        return array_of(self.target)

    @property
    def parts(self) -> tuple[Expr, Expr, Expr]:
        """Where a store to a flat array stores, what, and under which condition."""
        return self.target.args[1], self.value, self.when

    def where_stored(self) -> list[Expr]:
        """The place of each axis, the value and the condition: what is not stored is 0, as it may divide by zero."""
        return [*[where(self.when, t, _nothing(t)) for t in (*self.target.args[1:], self.value)], self.when]

    def _check_value(self, array: Buffer) -> None:
        value = self.value
        if array.element not in DTYPES:
            raise ValueError(f"the elements of {array.name!r} have no size: use one of {', '.join(DTYPES)}")
        if (array.element == "bool") is not value.is_bool:
            kind = "a condition" if value.is_bool else "a number"
            raise TypeError(f"{brief(value)!r} is {kind}, but the elements of {array.name!r} are {array.element}")
        if value.element and not array.element.startswith("f"):
            raise TypeError(f"{brief(value)!r} is a floating-point value, the elements of {array.name!r} are integers")
        low, high = ELEMENTS[array.element]
        if not value.element and not (low <= value.vmin and value.vmax <= high):
            raise ValueError(
                f"{brief(value)!r} has range [{value.vmin}, {value.vmax}], which {array.element}, the element type of "
                f"{array.name!r}, does not hold: bound it by minimum and maximum"
            )

    def _check_indices(self, array: Buffer) -> None:
        if array.shape is None:
            raise ValueError(f"buffer {array.name!r} has no shape: an output needs one")
        try:
            theory = LinearArithmetic([self.when])
        except ContradictionError:
            # nothing is ever stored
            return
        for axis, (index, size) in enumerate(zip(self.target.args[1:], array.shape, strict=True)):
            low, high = theory.bounds_of(index)
            if low < 0 or high >= size:
                raise ValueError(
                    f"the index {brief(index)!r} of {brief(self.target)!r} has range [{low}, {high}], but axis {axis} "
                    f"has extent {size}: narrow the range, or give the store a guard (when=...)"
                )


@dataclass(frozen=True)
class Kernel(Displayed):
    """Stores, done one after the other, as one function.

    Parameters
    ----------
    name : str
        What messages call it, and its C function, where C has such a name.
    stores : sequence of Store
        In the order in which they are done.

    Raises
    ------
    TypeError
        If something else than a :class:`Store` is among the stores.
    ValueError
        If there is no store, a buffer has no shape or two, a name means two things, or an output is also loaded.

    >>> from eqsat import sum_over, var
    >>> a, b, c = buffer("A", "f32", (4, 8)), buffer("B", "f32", (8, 5)), buffer("C", "f32", (4, 5))
    >>> i, j, k = var("i", 0, 3), var("j", 0, 4), var("k", 0, 7)
    >>> matmul = Kernel("matmul", [Store(c[i, j], sum_over(a[i, k] * b[k, j], k, 0, 8), [i, j])])
    >>> [b.name for b in matmul.inputs], [b.name for b in matmul.outputs], matmul.parameters
    (['A', 'B'], ['C'], [])
    """

    name: str
    stores: tuple[Store, ...]

    def __init__(self, name: str, stores: Iterable[Store]) -> None:
        require(name, str, "the name of a kernel")
        if isinstance(stores, Store):
            raise TypeError(f"kernel {name!r} takes a list of stores: give it [Store(...)]")
        object.__setattr__(self, "name", name)
        require(stores, Iterable, f"the list of stores of kernel {name!r}")
        object.__setattr__(self, "stores", tuple(stores))
        for store in self.stores:
            if not isinstance(store, Store):
                raise TypeError(f"kernel {name!r} takes a list of stores, and {type(store).__name__} is no Store")
        if not self.stores:
            raise ValueError(f"kernel {self.name!r} stores nothing: give it at least one Store")
        self._check_arrays()
        self._check_loops()

    def _repr_html_(self) -> str:
        rows = [
            [
                ", ".join(f"{v} in [{v.vmin}, {v.vmax}]" for v in store.over),
                "" if store.when is TRUE else brief(store.when),
                f"{brief(store.target)} = {brief(store.value)}",
            ]
            for store in self.stores
        ]
        return html_table(["for", "where", "store"], rows, f"kernel {self.name}")

    def _check_arrays(self) -> None:
        """Raise unless each array is either loaded from or stored to, and has a shape and a name of its own."""
        outputs = {b.name for b in self.outputs}
        for array in self.inputs:
            if array.name in outputs:
                raise ValueError(
                    f"kernel {self.name!r} loads from {array.name!r}, which it also stores to: "
                    "load from it in a kernel of its own, to be run afterwards"
                )
            if array.shape is None:
                raise ValueError(f"buffer {array.name!r} has no shape: the arrays of a kernel need one")
        names = [str(v.value) for v in self.variables]
        for array in (*self.inputs, *self.outputs):
            if array.name in names:
                raise ValueError(f"{array.name!r} is both a buffer and a variable of kernel {self.name!r}")

    def _check_loops(self) -> None:
        """Raise if a variable is a loop of one store and a parameter of another."""
        ranged = {v for s in self.stores for v in s.over}
        for store in self.stores:
            for v in variables([store.target, store.value, store.when]):
                if v in ranged and v not in store.over:
                    raise ValueError(
                        f"{str(v.value)!r} is a parameter of one store of kernel {self.name!r} and a loop of another: "
                        "rename one of them"
                    )

    @cached_property
    def roots(self) -> list[Expr]:
        """Every term of every store."""
        return [t for s in self.stores for t in (*s.target.args[1:], s.value, s.when, *s.over)]

    @cached_property
    def inputs(self) -> list[Buffer]:
        """The arrays that are loaded from, by name."""
        return [cast(Buffer, b.value) for b in buffers(self.roots)]

    @cached_property
    def outputs(self) -> list[Buffer]:
        """The arrays that are stored to, by name."""
        return [cast(Buffer, b.value) for b in buffers([s.target.args[0] for s in self.stores])]

    @cached_property
    def variables(self) -> list[Expr]:
        """All variables but the indices of reductions, by name."""
        return variables(self.roots)

    @property
    def names(self) -> set[str]:
        """The names of its buffers and variables."""
        return {str(v.value) for v in self.variables} | {b.name for b in (*self.inputs, *self.outputs)}

    @cached_property
    def parameters(self) -> list[Expr]:
        """The variables over which no store ranges, by name."""
        ranged = {v for s in self.stores for v in s.over}
        return [v for v in self.variables if v not in ranged]

    def reference(self, arrays: Mapping[str, ArrayLike], /, **parameters: int) -> dict[str, NDArray[Any]]:
        """The outputs as the expressions' own evaluator computes them; elements that no store reaches are 0.

        Raises
        ------
        TypeError, ValueError
            If an input or a parameter is missing, an input has another shape or another kind of elements, or a
            parameter is out of range.
        ZeroDivisionError
            If an element that is stored, or its place, needs a quotient by zero; the message names it.
        """
        require(arrays, Mapping, f"what the arrays of kernel {self.name!r} hold")
        missing = [b.name for b in self.inputs if b.name not in arrays]
        missing += [str(v.value) for v in self.parameters if v.value not in parameters]
        if missing:
            raise TypeError(f"kernel {self.name!r} lacks {', '.join(missing)}")
        for b in self.inputs:
            given = np.asarray(arrays[b.name])
            if given.shape != b.shape:
                raise ValueError(f"array {b.name!r} has shape {given.shape}, not {b.shape}")
            if not np.can_cast(given.dtype, DTYPES[b.element], "same_kind"):
                raise TypeError(f"array {b.name!r} has elements of type {given.dtype}, not {b.element}: convert it")
        for v in self.parameters:
            name = str(v.value)
            number = integer_of(parameters[name], f"the value of {name!r}")
            if not v.vmin <= number <= v.vmax:
                raise ValueError(f"variable {name!r} is given {number}, outside its range [{v.vmin}, {v.vmax}]")
        found: dict[str, NDArray[Any]] = {
            b.name: np.zeros(cast(tuple[int, ...], b.shape), dtype=DTYPES[b.element]) for b in self.outputs
        }
        for store in self.stores:
            full = tuple([extent(v) for v in store.over])
            values = evaluate(store.where_stored(), {**parameters, **grid(store.over)}, arrays)
            *places, value, when = [np.broadcast_to(x, full) for x in values]
            found[store.array.name][tuple([p[when] for p in places])] = value[when]
        return found


def _nothing(term: Expr) -> bool | float:
    """A literal of the kind of ``term``."""
    return False if term.is_bool else 0.0 if term.element else 0


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
    flat = [_collapsed(s, reassociate, cost, budget.until(for_loops)) for s in map(_flattened, kernel.stores)]
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
    return Kernel(kernel.name, pieces.joined(result.exprs))


def _in_cheapest_loops(stores: list[Store], model: CostModel, taken: set[str], budget: Budget) -> list[Store]:
    """Stores of one loop nest in the nest that is cheapest for their addresses and conditions; names are ``taken``."""
    if not budget.seconds:
        return stores
    pieces = _Pieces(stores)
    over = stores[0].over
    reductions = [t for s in stores for t in topological([s.value, s.when]) if t.op in REDUCTIONS]
    free = [{v for v in topological([t]) if v.op == "var"} for t in reductions]
    axes = [Axis(v, scopes=frozenset([str(n) for n, vs in enumerate(free) if v in vs])) for v in over]
    given = Nest(axes, pieces.terms, pieces.gates)
    inside = {name: trips for name, trips in pieces.loops().items() if name not in {str(v.value) for v in over}}
    nest = cheapest(given, model, inside=inside, gain=LIMITS.least_gain, seconds=budget.seconds, taken=taken)
    if any(_repeats(nest, variables) > _repeats(given, variables) for variables in free):
        return stores
    loops = tuple([axis.variable for axis in nest.axes])
    taken |= {str(v.value) for v in loops}
    return [equal_store(s, substitute(s.parts, nest.images), loops) for s in stores]


def _repeats(nest: Nest, free: Collection[Expr]) -> int:
    """How often what speaks of these variables is computed in a nest."""
    speaks_of = set(topological([nest.images.get(v, v) for v in free]))
    return prod([axis.extent for axis in nest.axes if axis.variable in speaks_of])


def _flattened(store: Store) -> Store:
    """The store with loads and targets in flat arrays, in row-major order."""

    def flat_load(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        return _flat(args[0], args[1:]) if term.op == "load" else None

    target, value, when = rebuild([store.target, store.value, store.when], flat_load)
    return equal_store(store, [target.args[1], value, when], store.over, target.args[0])


def _flat(array: Expr, indices: Sequence[Expr]) -> Expr:
    """The element of the flat array that ``array[indices]`` is."""
    declared = cast(Buffer, array.value)
    shape = cast(tuple[int, ...], declared.shape)
    # a flat array stays as it is written
    place = indices[0] if indices else const(0)
    for index, size in zip(indices[1:], shape[1:], strict=True):
        place = place * size + index
    return make("load", buffer(declared.name, declared.element, (prod(shape),)), place)


def flattened(kernel: Kernel) -> Kernel:
    """The kernel as it is, but with flat arrays."""
    require(kernel, Kernel, "a kernel")
    return Kernel(kernel.name, map(_flattened, kernel.stores))


def _collapsed(store: Store, reassociate: bool, model: CostModel, budget: Budget) -> Store:
    """The store with its floating-point reductions over no more than what counts.

    A step that adds 0.0 changes nothing (but the sign of a zero), and so one that multiplies by 1.0 or compares with an
    infinity: a condition on the index narrows the range, and an equation leaves one step. Only with ``reassociate`` do
    factors leave a sum, and is a condition as a factor one on the index.
    """
    end = budget.ends()

    def in_cheapest(term: Expr) -> Expr:
        seconds = budget.until(end).seconds
        return in_cheapest_ranges(term, model, LIMITS.least_gain, seconds) if seconds else term

    def shorter(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in REDUCTIONS:
            return None
        whole = make(term.op, *args)
        if not term.element:
            return in_cheapest(whole)
        while whole.op in REDUCTIONS and (narrowed := _narrowed(whole)) is not None:
            whole = narrowed
        if whole.op not in REDUCTIONS:
            return whole
        whole = _out_of_the_loop(whole, reassociate)
        if whole.op in ("fmax_over", "fmin_over") or (reassociate and whole.op in REDUCTIONS):
            return in_cheapest(whole)
        return whole

    value = rebuild([store.value], _selected_product)[0] if reassociate else store.value
    (value,) = rebuild([value], shorter)
    return equal_store(store, [store.target.args[1], value, store.when], store.over)


def _narrowed(term: Expr) -> Expr | None:
    """A reduction of ``where(c, x, y)``, where ``y`` changes nothing, over the part of the range where ``c`` can hold.

    ``None`` if ``c`` says nothing of the index.
    """
    body, index, low, high = term.args
    if body.op != "fwhere" or _have_floats(body.args[:1])[0]:
        return None
    neutral = REDUCTIONS[term.op].rounded
    condition, x, y = body.args
    theory = LinearArithmetic()
    known = theory.condition(condition)
    if _is_literal(x, neutral):
        known, x, y = theory.negate(known), y, x
    if not _is_literal(y, neutral):
        return None
    value = equated(theory, index, known)
    if value is not None:
        place = to_expr(value)
        there = (low <= place) & (place < high) & instantiate(known, index, place)
        return make("fwhere", there, instantiate(x, index, place), y)
    solved = solved_for(theory, index, known)
    if solved is None:
        return None
    first, beyond, rest = solved
    start = low if first is None else maximum(low, to_expr(first))
    end = high if beyond is None else minimum(high, to_expr(beyond))
    inside = x if rest is TRUE else make("fwhere", rest, x, y)
    if theory.condition(end - start <= 1) is TRUE:
        return make("fwhere", start < end, instantiate(inside, index, start), y)
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
            return make("fwhere", one.args[0], *scaled)
    return None


def _out_of_the_loop(term: Expr, reassociate: bool) -> Expr:
    """What does not change with the index leaves the reduction."""
    body, index, low, high = term.args
    if term.op in ("fmax_over", "fmin_over") and not mentions(body, index) and (low < high).vmin:
        return body
    if not reassociate or term.op != "fsum_over":
        return term
    if not mentions(body, index):
        # no times infinity is nothing, and no number as a product
        some, product = low < high, make("fmul", body, as_float(maximum(high - low, 0), body))
        return product if some.vmin else make("fwhere", some, product, as_float(0, body))
    if body.op == "fmul":
        x, y = body.args
        if not mentions(y, index):
            x, y = y, x
        if not mentions(x, index):
            return make("fmul", x, _out_of_the_loop(make("fsum_over", y, index, low, high), reassociate))
    return term


def _is_literal(term: Expr, value: float) -> bool:
    return term.op == "float" and term.value == value


def _have_floats(terms: Iterable[Expr]) -> list[bool]:
    """For each term whether it has floating-point values."""
    terms = list(terms)
    order = topological(terms)
    found = with_users({t for t in order if t.element}, order)
    return [t in found for t in terms]


class _Pieces:
    """The addresses, conditions and integers of stores as roots for one optimisation, and the way back.

    Attributes
    ----------
    terms : list of Expr
        The roots, without floating-point values: comparisons of those are variables, and so are the indices of the
        reductions around a root.
    gates : list of (Expr or None)
        Per root what holds wherever it is evaluated.
    """

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = stores
        self.order = topological([t for s in stores for t in s.parts])
        # what holds wherever a term is evaluated, from the outside in: gates share what is around them
        self.contexts: dict[Expr, dict[Expr, None]] = {}
        self.pieces: list[Expr] = []
        self.images: dict[Expr, Expr] = {}
        # by the name of its array, what a comparison is and the indices that it speaks of
        self.hidden: dict[str, tuple[Expr, list[Expr]]] = {}
        for s in stores:
            self._reach([s.target.args[1], s.value], {} if s.when is TRUE else {s.when: None})
            self._reach([s.when], {})
        # users come before what they use, so a context is complete when it is passed on
        for term in self.order[::-1]:
            if term in self.contexts:
                self._visit(term, self.contexts[term])
        for term in self.order:
            if term.op == "var" and is_index(term):
                self.images[term] = as_free(term)
        self.terms = substitute(self.pieces, self.images)
        conditions = dict.fromkeys(c for piece in self.pieces for c in self.contexts[piece])
        known = [c for c, has_floats in zip(conditions, _have_floats(conditions), strict=True) if not has_floats]
        self.known = dict(zip(known, substitute(known, self.images), strict=True))
        self.gates = [self._gate(self.contexts[piece]) for piece in self.pieces]

    def loops(self) -> dict[str, int]:
        """How often each loop runs, outermost first; none if the stores do not share theirs."""
        over = self.stores[0].over
        if any(s.over != over for s in self.stores):
            return {}
        indices = sorted([t for t in self.images if t.op == "var"], key=lambda t: (-index_level(t), t.key))
        nest = [*over, *[self.images[t] for t in indices]]
        return {str(v.value): extent(v) for v in nest}

    def _reach(self, terms: Iterable[Expr], context: Mapping[Expr, None]) -> None:
        for term in terms:
            self.contexts[term] = {c: None for c in self.contexts.get(term, context) if c in context}

    def _visit(self, term: Expr, context: dict[Expr, None]) -> None:
        if not term.element:
            self.pieces.append(term)
            for inner in topological([term]):
                if inner.op in FLOATS and inner.is_bool:
                    self._hide(inner)
                    self._reach(inner.args, context)
        elif term.op == "fwhere":
            condition, x, y = term.args
            self._reach([condition], context)
            self._reach([x], context | {condition: None})
            self._reach([y], context | {~condition: None})
        elif term.op in REDUCTIONS:
            body, index, low, high = term.args
            inside = [low <= index, index < high] if low.args or high.args else []
            self._reach([body], context | dict.fromkeys(inside))
            self._reach([low, high], context)
        else:
            self._reach([a for a in term.args if a.op != "buffer"], context)

    def _hide(self, comparison: Expr) -> None:
        """Let an element of an unknown array, at the indices that it speaks of, stand for a comparison."""
        if comparison not in self.images:
            parts = topological([comparison])
            bound = {t.args[1] for t in parts if t.op in REDUCTIONS}
            free = [t for t in parts if t.op == "var" and is_index(t) and t not in bound]
            name = f"#{len(self.hidden)}"
            self.hidden[name] = (comparison, free)
            self.images[comparison] = any_buffer(Buffer(name, "bool"))[tuple(map(as_free, free)) or 0]

    def _gate(self, context: Iterable[Expr]) -> Expr | None:
        known = [self.known[c] for c in context if c in self.known]
        return reduce(and_, known) if known else None

    def joined(self, terms: Sequence[Expr]) -> list[Store]:
        """The stores put together from what has become of the pieces."""
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
        """``term`` with its indices and comparisons again."""
        bound = dict.fromkeys(t.args[1] for t in topological([term]) if t.op in REDUCTIONS)
        # comparisons may have reductions, whose indices are not to capture those around them
        own = {index: any_var(f"#own{n}", index.vmin, index.vmax) for n, index in enumerate(bound)}

        def restore(part: Expr, args: tuple[Expr, ...]) -> Expr | None:
            name = array_of(part).name if part.op == "load" else ""
            if name not in self.hidden:
                return indices.get(part, own.get(part))
            comparison, free = self.hidden[name]
            moved = {index: place for index, place in zip(free, args[1:], strict=False) if index is not place}
            # all at once: a place may speak of another of these indices
            fresh = {index: any_var(f"#{n}", index.vmin, index.vmax) for n, index in enumerate(moved)}
            (found,) = replaced([new[comparison]], fresh)
            for index, place in moved.items():
                found = instantiate(found, fresh[index], place)
            return found

        return rebuild([term], restore)[0]


def equal_store(store: Store, parts: Sequence[Expr], over: Sequence[Expr], array: Expr | None = None) -> Store:
    """``store`` with equal parts, in equal loops: what was checked holds for them, though bounds may not show it."""
    new = object.__new__(Store)
    place, value, when = parts
    target = make("load", store.target.args[0] if array is None else array, place)
    for name, part in {"target": target, "value": value, "over": tuple(over), "when": when}.items():
        object.__setattr__(new, name, part)
    return new
