"""What is computed in several steps: large reductions in two stages, intermediate results kept in a buffer or inlined.

A reduction splits at an axis into partial results, which do not wait for one another, and their reduction. An
intermediate is a store whose elements a later kernel loads; it is kept, or its value takes the place of the loads. That
choice is made by cost (:func:`cheaper`), or by the published policy (:func:`by_policy`), which sees only sizes and
kinds of operations. A :class:`Pipeline` is kernels that run one after the other.

Source: Morok's ``split_reduceop`` and ``buffer_removal_with_pcontig``, tinygrad's ``rangeify``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import Any

from numpy.typing import ArrayLike

from eqsat.extract.cost import CostModel, LoopAware
from eqsat.kernels.kernel import Arrays, Kernel, Store, fresh
from eqsat.kernels.limits import LIMITS
from eqsat.kernels.reductions import as_free, body_and_variables, reduction, unguarded_divisions
from eqsat.lang.costs import LATENCY, prices
from eqsat.lang.dtypes import select_width
from eqsat.lang.expr import TRUE, Expr, any_var, brief, buffer, indices_around, rebuild, substitute
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.text import free_name
from eqsat.lang.traversal import Buffer, array_of, extent, is_index, topological, variables
from eqsat.lang.validation import counted, integers_of, list_of, require


@dataclass(frozen=True)
class SplitLimits:
    """When a reduction is large enough to split, and into how many partial results.

    Raises ``ValueError`` if there could be a single partial result, or more than are tried.
    """

    #: It splits if it has more inputs per output than this.
    threshold: int = 32768
    #: How many partial results there may be for each output.
    least_factor: int = 8
    most_factor: int = 256
    #: How many partial results there may be in all.
    most_outputs: int = 2**22

    def __post_init__(self) -> None:
        names = ("threshold", "least_factor", "most_factor", "most_outputs")
        integers_of([getattr(self, name) for name in names], "limits of a split")
        if self.least_factor < 2:
            raise ValueError(f"there are at least 2 partial results for each output, not {self.least_factor}")
        if self.most_factor > LIMITS.factor:
            raise ValueError(f"there are up to {LIMITS.factor} partial results for each output, not {self.most_factor}")


SPLIT_LIMITS = SplitLimits()


@dataclass(frozen=True)
class TwoStages:
    """A reduction of an array in two: ``shape[axis]`` becomes ``outer`` partial results of ``inner`` values each."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    axis: int
    outer: int

    @property
    def inner(self) -> int:
        """How many values along the axis each partial result combines."""
        return self.shape[self.axis] // self.outer

    @property
    def split_shape(self) -> tuple[int, ...]:
        """The shape with the axis split in two, the partial results first; as it was if each is of one value of it."""
        parts = (self.outer, self.inner) if self.inner > 1 else (self.outer,)
        return (*self.shape[: self.axis], *parts, *self.shape[self.axis + 1 :])

    def shifted(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The axes of :attr:`split_shape` that those of the shape become, of the one that splits the inner part."""
        added = self.inner > 1
        return tuple([axis + (added and axis >= self.axis) for axis in axes if added or axis != self.axis])

    @property
    def first_axes(self) -> tuple[int, ...]:
        """The axes of :attr:`split_shape` that the first stage reduces."""
        return self.shifted(self.axes)

    @property
    def last_axis(self) -> int:
        """The axis that the second stage reduces, among those that the first leaves."""
        return self.axis - sum(axis < self.axis for axis in self.axes)


def two_stages(
    shape: Sequence[int], axes: Iterable[int], expanded: Iterable[int] = (), limits: SplitLimits = SPLIT_LIMITS
) -> TwoStages | None:
    """How a reduction of an array of ``shape`` over ``axes`` splits, or ``None`` if it is too small or has no factor.

    The first axis that a factor divides splits, into as many partial results as its largest factor says. Axes that are
    ``expanded``, copies of one element, do not split.

    Raises ``ValueError`` if an extent is less than 1, or an axis is not one of the array.

    >>> two_stages([131072], [0]).split_shape, two_stages([65537], [0])
    ((256, 512), None)
    """
    shape = integers_of(shape, "the extents of a shape")
    axes = tuple(sorted(set(integers_of(axes, "the axes of a reduction"))))
    expanded = set(expanded)
    if min(shape, default=1) < 1:
        raise ValueError(f"the shape {list(shape)} has no elements: extents are at least 1")
    if any(not 0 <= axis < len(shape) for axis in axes):
        raise ValueError(f"the axes {list(axes)} are not all axes of the shape {list(shape)}")
    outputs = prod([extent for axis, extent in enumerate(shape) if axis not in axes])
    if prod(shape) <= limits.threshold * outputs:
        return None
    most = min(limits.most_factor, limits.most_outputs // outputs)
    for axis in axes:
        for outer in range(most, limits.least_factor - 1, -1):
            # a partial result of a single value would be a copy
            if axis not in expanded and shape[axis] % outer == 0 and outer * outputs < prod(shape):
                return TwoStages(tuple(shape), axes, axis, outer)
    return None


def split_reduction(kernel: Kernel, limits: SplitLimits = SPLIT_LIMITS, reassociate: bool = False) -> Pipeline:
    """A kernel with each large reduction over literal ranges in stages; one without such a reduction as it is.

    Reductions by one operator, one inside the other, count as one. The first stage stores partial results, for all
    values of the variables that the reduction depends on. If it is large itself, it is split too.

    Parameters
    ----------
    kernel : Kernel
        The kernel. Reductions in the values of its stores are split.
    limits : SplitLimits
        How large a reduction must be, and how many partial results there may be.
    reassociate : bool
        Whether sums and products of floating-point values may be taken in parts, which rounds differently.

    Raises
    ------
    TypeError
        If ``kernel`` is no kernel.

    >>> from eqsat import sum_over, var
    >>> a, out, r = buffer("A", "i32", (65536,)), buffer("OUT", "i64", (1,)), var("r", 0, 65535)
    >>> for stage in split_reduction(Kernel("total", [Store(out[0], sum_over(a[r], r, 0, 65536))])).kernels:
    ...     print(*stage.stores)
    Store('OUT_parts[p] = sum(A[p*256 + r1], r1, 0, 256) for p')
    Store('OUT[0] = sum(min(max(OUT_parts[r1], -549755813888), 549755813632), r1, 0, 256)')
    """
    require(kernel, Kernel, "a kernel")
    return Pipeline(_in_stages(kernel, limits, reassociate, kernel.names))


def _in_stages(kernel: Kernel, limits: SplitLimits, reassociate: bool, taken: set[str]) -> list[Kernel]:
    parts = _Parts(limits, reassociate, taken)
    last = Kernel(kernel.name, map(parts.split, kernel.stores))
    if not parts.stores:
        return [kernel]
    return [*_in_stages(Kernel(f"{kernel.name}_first", parts.stores), limits, reassociate, taken), last]


class _Parts:
    """The stores of the partial results of the large reductions in one kernel."""

    def __init__(self, limits: SplitLimits, reassociate: bool, taken: set[str]) -> None:
        self.limits, self.reassociate, self.taken = limits, reassociate, taken
        self.stores: list[Store] = []
        #: By the number of partial results of each output, the loop over them: stores over one loop share it.
        self.outer: dict[int, Expr] = {}
        #: The last stages of reductions, by these, the loops and the condition of their first stages.
        self.known: dict[tuple[Expr, tuple[Expr, ...], Expr], Expr] = {}

    def split(self, store: Store) -> Store:
        """``store`` with the last stage of each large reduction in its value in place of this."""
        order = topological([store.value])
        bound = {t.args[1] for t in order if t.op in REDUCTIONS and any(end.op != "const" for end in t.args[2:])}
        last: dict[Expr, Expr] = {}
        inside: set[Expr] = set()
        for term in reversed(order):
            if term.op not in REDUCTIONS or term in inside or not bound.isdisjoint(indices_around(term)):
                continue
            if (found := self._last_stage(term, store)) is not None:
                last[term] = found
                inside.update(topological([term]))
        if not last:
            return store
        return replace(store, value=_without_capture([store.value], lambda term, args: last.get(term))[0])

    def _last_stage(self, term: Expr, store: Store) -> Expr | None:
        """The reduction of the partial results of ``term``, whose store is added; None if ``term`` stays as it is."""
        if term.element and term.op not in ("fmax_over", "fmin_over") and not self.reassociate:
            return None
        # a loop for each variable that it depends on, those of reductions around it among them
        loops = {v: v for v in store.over if v in variables([term])}
        loops |= {v: any_var(free_name("r", self.taken), v.vmin, v.vmax) for v in indices_around(term)}
        when = store.when if all(v in loops for v in variables([store.when]) if v in store.over) else TRUE
        key = term, tuple(loops), when
        if key not in self.known:
            images = {v: loop for v, loop in loops.items() if v is not loop}
            (alone,) = substitute([term], images)
            # as the value of its store, and where it is stored, its divisors are those of the kernel
            stated = term is store.value and when is store.when
            if not stated and unguarded_divisions([alone], [None if when is TRUE else when]):
                return None
            try:
                found = self._first_stage(alone, [*loops.values()], store, when)
            except ValueError:
                # a partial result has more than 64 bits
                found = None
            if found is None:
                return None
            self.known[key] = found
        return substitute([self.known[key]], {loop: as_free(v) if is_index(v) else v for v, loop in loops.items()})[0]

    def _first_stage(self, term: Expr, loops: list[Expr], store: Store, when: Expr) -> Expr | None:
        """Add the store of partial results of ``term`` for all values of ``loops``, and reduce them."""
        body, over = body_and_variables(term)
        used = variables([body])
        shape = [*map(extent, loops), *map(extent, over)]
        reduced = range(len(loops), len(shape))
        equal = [place for place in reduced if over[place - len(loops)] not in used]
        found = two_stages(shape, reduced, equal, self.limits)
        if found is None:
            return None
        split = over[found.axis - len(loops)]
        if found.outer not in self.outer:
            self.outer[found.outer] = fresh("p", self.taken, found.outer)
        outer, inner = self.outer[found.outer], fresh("q", self.taken, found.inner)
        place, low = outer if found.inner == 1 else outer * found.inner + inner, split.vmin
        (part,) = substitute([body], {split: place + low if low else place})
        rest = [inner if v is split else v for v in over if v is not split or found.inner > 1]
        first = reduction(term.op, part, rest)
        element = first.element or f"i{select_width(first)}"
        # the name of a kernel may be none of a buffer
        parts = buffer(free_name(f"{store.array.name}_parts", self.taken), element, (*shape[: len(loops)], found.outer))
        target = parts[(*[v - v.vmin if v.vmin else v for v in loops], outer)]
        self.stores.append(Store(target, first, (*loops, outer), when))
        # a sum of partial results is bounded by their bounds, not by those of the elements' type
        partial = target if term.element else minimum(maximum(target, first.vmin), first.vmax)
        return reduction(term.op, partial, [outer])


class Decision(StrEnum):
    """Whether an intermediate result gets a buffer, or is computed where it is used."""

    KEEP = "keep"
    INLINE = "inline"
    PARTIAL = "partial-inline"


#: Operations whose result always gets a buffer.
ALWAYS_KEPT = frozenset({"CONTIGUOUS", "COPY"})
#: An intermediate with a lower :func:`output_ratio` is kept.
LEAST_RATIO = 10


@dataclass(frozen=True)
class Intermediate:
    """What the published decision tree sees of an intermediate result."""

    #: The operation that computes it.
    op: str
    #: Whether that has one operand.
    unary: bool = False
    #: Whether its value contains a reduction, or a reduction repeats it.
    reduce_in_scope: bool = False
    #: How many buffers the kernel would use with it inlined, and how many one may use.
    buffers: int = 0
    limit: int = 31
    #: How much effort goes into partial inlining ("pcontig").
    partial_level: int = 0
    #: Its elements per element that it is computed from; see :func:`output_ratio`.
    ratio: float = 0.0

    @classmethod
    def of(cls, kernel: Kernel, producer: Store, limit: int = 31, partial_level: int = 0) -> Intermediate:
        """What is to be seen of what ``producer`` stores for ``kernel``."""
        require(kernel, Kernel, "a kernel")
        require(producer, Store, "a producer")
        alone = Kernel("producer", [producer])
        value, array = producer.value, producer.array
        reduced = any(t.op in REDUCTIONS for t in topological([value])) or bool(_reduced_loads(kernel, array))
        used = {b.name for b in (*kernel.inputs, *kernel.outputs, *alone.inputs)} - {array.name}
        ratio = output_ratio(array.size, [b.size for b in alone.inputs])
        return cls(value.op, len(value.args) == 1, reduced, len(used), limit, partial_level, ratio)


def output_ratio(output: int, inputs: Iterable[int]) -> float:
    """Elements of an output per element of its inputs, each counted with one more."""
    return (output + 1) / (sum(inputs) + 1)


def decide(given: Intermediate) -> Decision:
    """The published decision tree for an intermediate result; its first question that has an answer decides."""
    require(given, Intermediate, "an intermediate")
    if given.op in ALWAYS_KEPT or given.buffers > given.limit:
        return Decision.KEEP
    if not given.reduce_in_scope:
        return Decision.INLINE
    # a unary operation would be repeated at each step, instead of one read
    if given.unary or given.partial_level <= LIMITS.careful_level or given.ratio < LEAST_RATIO:
        return Decision.KEEP
    return Decision.PARTIAL


def _reduced_loads(kernel: Kernel, array: Buffer) -> list[Expr]:
    """The loads of an array that reductions in a kernel repeat."""
    bodies = [t.args[0] for t in topological(kernel.roots) if t.op in REDUCTIONS]
    return [t for t in topological(bodies) if t.op == "load" and array_of(t) == array]


@dataclass(frozen=True)
class Pipeline:
    """Kernels that run one after the other; each may load what earlier ones store.

    Parameters
    ----------
    kernels : iterable of Kernel
        In the order in which they run.

    Raises
    ------
    ValueError
        If two kernels store to one buffer, or a name means two things, or one loads what only a later one stores.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, k = buffer("A", "f32", (8,)), buffer("B", "f32", (8,)), var("k", 0, 7)
    >>> len(Pipeline([Kernel("twice", [Store(b[k], a[k] * 2.0, [k])])]).kernels)
    1
    """

    kernels: tuple[Kernel, ...]

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        object.__setattr__(self, "kernels", list_of(Kernel, kernels, "the kernels of a pipeline"))
        stored: set[str] = set()
        for kernel in self.kernels[::-1]:
            stored |= {b.name for b in kernel.outputs}
            if early := [b.name for b in kernel.inputs if b.name in stored]:
                raise ValueError(f"kernel {kernel.name!r} loads {early[0]!r} before a later kernel stores it")
        names = [b.name for kernel in self.kernels for b in kernel.outputs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two kernels store to {twice[0]!r}: give each buffer to one")
        known: dict[str, tuple[Kernel, Buffer]] = {}
        for kernel in self.kernels:
            for array in (*kernel.inputs, *kernel.outputs):
                other, first = known.setdefault(array.name, (kernel, array))
                if array != first:
                    raise ValueError(
                        f"kernel {kernel.name!r} has {array.name!r} as {array}, kernel {other.name!r} as {first}: "
                        "give both one array"
                    )
        parameters = {str(v.value): kernel for kernel in self.kernels for v in kernel.parameters}
        for name in sorted(parameters.keys() & known.keys()):
            raise ValueError(
                f"{name!r} is a parameter of kernel {parameters[name].name!r} and an array of kernel "
                f"{known[name][0].name!r}: rename one of them"
            )

    def reference(self, arrays: Mapping[str, ArrayLike], /, **parameters: int) -> Arrays:
        """All that the kernels store, by their own evaluator; see :meth:`eqsat.kernels.kernel.Kernel.reference`."""

        def evaluator(kernel: Kernel) -> Callable[..., Arrays]:
            names = [b.name for b in kernel.inputs]
            return lambda **given: kernel.reference({n: given.pop(n) for n in names if n in given}, **given)

        return self.run(map(evaluator, self.kernels), arrays, **parameters)

    def run(
        self, programs: Iterable[Callable[..., Arrays]], arrays: Mapping[str, ArrayLike], /, **parameters: int
    ) -> Arrays:
        """All that the kernels store, by compiled programs, one for each in order.

        Raises
        ------
        TypeError
            If an array or a parameter is missing, or no kernel has the parameter.
        ValueError
            If there is not one program for each kernel.
        """
        of_kernels = {str(v.value) for kernel in self.kernels for v in kernel.parameters}
        if unknown := sorted(parameters.keys() - of_kernels):
            raise TypeError(f"no kernel of the pipeline has a parameter {unknown[0]!r}")
        found: Arrays = {}
        programs = tuple(programs)
        if len(programs) != len(self.kernels):
            given = f"{counted(len(programs), 'program')} for {counted(len(self.kernels), 'kernel')}"
            raise ValueError(f"{given}: compile each kernel")
        for kernel, program in zip(self.kernels, programs, strict=True):
            known: dict[str, Any] = {**arrays, **found, **parameters}
            # the kernel itself names what it lacks
            found |= program(**{name: known[name] for name in kernel.arguments if name in known})
        return found

    def cost(self, model: CostModel = LATENCY) -> int:
        """What all kernels cost, each operation as often as its loop runs, loads and stores among them."""
        return sum(nest_cost(store, model) for kernel in self.kernels for store in kernel.stores)


def nest_cost(store: Store, model: CostModel = LATENCY) -> int:
    """What the loops of one store cost."""
    require(store, Store, "a store")
    loops = LoopAware({str(v.value): extent(v) for v in store.over}, model)
    order = topological([*store.target.args[1:], store.value, store.when])
    inside: dict[Expr, int] = {}
    while True:
        level: dict[Expr, int] = {}
        for term in order:
            own = inside.get(term, loops.level(str(term.value))) if term.op == "var" else 0
            level[term] = max([own, *[level[a] for a in term.args]])
        # a reduction inside a loop runs there, so its index, and what depends on that, changes in this loop too
        raised = {t.args[1]: level[t] for t in order if t.op in REDUCTIONS and level[t] > inside.get(t.args[1], 0)}
        if not raised:
            break
        inside |= raised
    spent = sum([price * loops.runs(level[t]) for t, price in zip(order, prices(order, model), strict=True)])
    return spent + loops.runs(len(store.over)) * model.price("store", [(0, 0)], (0, 0))


def inlined(kernel: Kernel, producer: Store) -> Kernel:
    """``kernel`` with the value of ``producer``, at the indices loaded, in place of its loads of what that stores.

    Raises ``ValueError`` if ``producer`` does not store one element for each of its variables, everywhere; if one of
    its parameters is a variable of a loop of ``kernel``; if its floating-point values are converted when they are
    stored; or if the new kernel has a value that does not fit its elements, or divides by what is always zero.
    """
    require(kernel, Kernel, "a kernel")
    require(producer, Store, "a producer")
    if obstacle := _obstacle(kernel, producer):
        raise ValueError(f"{brief(producer.target)!r} cannot be inlined: {obstacle}")
    array = producer.target.args[0]

    def computed(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op != "load" or args[0] is not array:
            return None
        return substitute([producer.value], dict(zip(producer.over, args[1:], strict=True)))[0]

    stores = []
    for store in kernel.stores:
        target, value, when = _without_capture([store.target, store.value, store.when], computed)
        stores.append(replace(store, target=target, value=value, when=when))
    return Kernel(kernel.name, stores)


def _without_capture(roots: Sequence[Expr], image: Callable[[Expr, tuple[Expr, ...]], Expr | None]) -> list[Expr]:
    """``roots`` with images, whose reductions capture no index: indices are free until their reductions are made."""
    return rebuild(roots, lambda t, args: as_free(t) if t.op == "var" and is_index(t) else image(t, args))


def _obstacle(kernel: Kernel, producer: Store) -> str:
    """What is in the way of inlining ``producer`` in ``kernel``; empty if nothing is."""
    if producer.target.args[1:] != producer.over or producer.when is not TRUE:
        return "its indices must be the variables it is for, without a guard"
    for axis, (variable, size) in enumerate(zip(producer.over, producer.array.shape or (), strict=True)):
        # an element that is not stored is 0
        if (variable.vmin, variable.vmax) != (0, size - 1):
            stored = f"{str(variable.value)!r} has range [{variable.vmin}, {variable.vmax}]"
            return f"all elements must be stored, but {stored} and axis {axis} has extent {size}"
    if producer.value.element and producer.value.element != producer.array.element:
        # no term says that a value is rounded to other elements, or that what follows is computed in their type
        return f"its value is {producer.value.element} and its elements are {producer.array.element}"
    loops = {v.value for store in kernel.stores for v in store.over}
    for parameter in variables([producer.value]):
        if parameter.value in loops and parameter not in producer.over:
            return f"its parameter {str(parameter.value)!r} is the variable of a loop of {kernel.name!r}"
    return ""


def cheaper(kernel: Kernel, producer: Store, cost: CostModel = LATENCY) -> Pipeline:
    """The intermediate that ``producer`` stores, kept for ``kernel`` or inlined in it, as the cost model says.

    Parameters
    ----------
    kernel : Kernel
        What loads the intermediate.
    producer : Store
        What stores it. One that :func:`inlined` refuses is kept.
    cost : CostModel
        What one evaluation costs; each term is paid as often as its loop runs.

    Raises
    ------
    TypeError
        If an argument is of another type.

    >>> from eqsat import max_over, var
    >>> x, t = buffer("X", "i32", (64,)), buffer("T", "i64", (64,))
    >>> i, j, k = var("i", 0, 63), var("j", 0, 99), var("k", 0, 63)
    >>> negation = Store(t[i], -x[i], [i])
    >>> few, many = buffer("F", "i64", (1,)), buffer("M", "i64", (100,))
    >>> once = Kernel("once", [Store(few[0], max_over(t[k], k, 0, 64))])
    >>> often = Kernel("often", [Store(many[j], max_over(t[(k + j) % 64], k, 0, 64), [j])])
    >>> [len(cheaper(kernel, negation).kernels) for kernel in (once, often)]
    [1, 2]
    """
    require(kernel, Kernel, "a kernel")
    require(producer, Store, "a store")
    kept, alone = _kept(kernel, producer), _inlined_or_kept(kernel, producer)
    return alone if alone.cost(cost) <= kept.cost(cost) else kept


def _kept(kernel: Kernel, producer: Store) -> Pipeline:
    return Pipeline((Kernel(f"{kernel.name}_{producer.array.name}", (producer,)), kernel))


def _inlined_or_kept(kernel: Kernel, producer: Store) -> Pipeline:
    try:
        return Pipeline((inlined(kernel, producer),))
    except ValueError:
        return _kept(kernel, producer)


def by_policy(kernel: Kernel, producer: Store, limit: int = 31, partial_level: int = 0) -> Pipeline:
    """The intermediate that ``producer`` stores, kept for ``kernel`` or inlined in it, as :func:`decide` says.

    An intermediate that is inlined in part keeps the axes that a reduction goes along. A kernel has no arrays of its
    own to keep them in, so it is kept as a whole if there are any. A kernel may use up to ``limit`` buffers;
    ``partial_level`` says how much effort goes into partial inlining.
    """
    decision = decide(Intermediate.of(kernel, producer, limit, partial_level))
    along = [load for load in _reduced_loads(kernel, producer.array) if indices_around(load)]
    is_kept = decision is Decision.KEEP or (decision is Decision.PARTIAL and along)
    return _kept(kernel, producer) if is_kept else _inlined_or_kept(kernel, producer)
