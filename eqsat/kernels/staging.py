"""What is computed in several steps: large reductions in two stages, intermediate results kept in a buffer or inlined.

A reduction splits at an axis into partial results, which do not wait for one another, and their reduction. An
intermediate is a store whose elements a later kernel loads; it is kept, or its value takes the place of the loads. That
choice is made by cost (:func:`cheaper`), or by the published policy (:func:`decide`), which sees only sizes and kinds
of operations. A :class:`Pipeline` is kernels that run one after the other.

Source: Morok's ``split_reduceop`` and ``buffer_removal_with_pcontig``, tinygrad's ``rangeify``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import Any

from numpy.typing import ArrayLike, NDArray

from eqsat.extract.cost import CostModel, LoopAware
from eqsat.kernels.kernel import Kernel, Store, fresh
from eqsat.kernels.limits import LIMITS
from eqsat.kernels.ranges import Axis, reduction
from eqsat.lang.costs import LATENCY, prices
from eqsat.lang.dtypes import select_width
from eqsat.lang.expr import TRUE, Expr, as_free, brief, buffer, free_name, instantiate, rebuild, substitute
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import REDUCTIONS, Buffer
from eqsat.lang.traversal import extent, is_index, topological, variables
from eqsat.lang.validation import integers_of, list_of, require


@dataclass(frozen=True)
class SplitLimits:
    """When a reduction is large enough to split, and how many values its partial results may combine.

    Raises ``ValueError`` if a partial result could combine a single value, or more values than are tried.
    """

    #: It splits if it has more inputs per output than this.
    threshold: int = 32768
    #: How many values each partial result may combine.
    least_factor: int = 8
    most_factor: int = 256
    #: The outputs, times the factor, may not be more than this.
    most_outputs: int = 2**22

    def __post_init__(self) -> None:
        names = ("threshold", "least_factor", "most_factor", "most_outputs")
        integers_of([getattr(self, name) for name in names], "limits of a split")
        if self.least_factor < 2:
            raise ValueError(f"a partial result combines at least 2 values, not {self.least_factor}")
        if self.most_factor > LIMITS.factor:
            raise ValueError(f"a partial result combines up to {LIMITS.factor} values, not {self.most_factor}")


SPLIT_LIMITS = SplitLimits()


@dataclass(frozen=True)
class TwoStages:
    """A reduction of an array in two: ``shape[axis]`` becomes ``outer`` partial results of ``inner`` values each."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    axis: int
    inner: int

    @property
    def outer(self) -> int:
        """How many partial results there are for each output."""
        return self.shape[self.axis] // self.inner

    @property
    def split_shape(self) -> tuple[int, ...]:
        """The shape with the axis split in two, the partial results first."""
        return (*self.shape[: self.axis], self.outer, self.inner, *self.shape[self.axis + 1 :])

    @property
    def first_axes(self) -> tuple[int, ...]:
        """The axes of :attr:`split_shape` that the first stage reduces."""
        return tuple([axis + (axis >= self.axis) for axis in self.axes])

    @property
    def last_axis(self) -> int:
        """The axis that the second stage reduces, among those that the first leaves."""
        return self.axis - sum(axis < self.axis for axis in self.axes)


def two_stages(
    shape: Sequence[int], axes: Iterable[int], expanded: Iterable[int] = (), limits: SplitLimits = SPLIT_LIMITS
) -> TwoStages | None:
    """How a reduction of an array of ``shape`` over ``axes`` splits, or ``None`` if it is too small or has no factor.

    The first axis that a factor divides splits, by its largest factor. Axes that are ``expanded``, copies of one
    element, do not split.

    Raises ``ValueError`` if an extent is less than 1, or an axis is not one of the array.

    >>> found = two_stages([65536], [0])
    >>> found.split_shape, found.first_axes, found.last_axis
    ((256, 256), (1,), 0)
    >>> two_stages([65537], [0]) is two_stages([32768], [0]) is None
    True
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
        for inner in range(most, limits.least_factor - 1, -1):
            if axis not in expanded and shape[axis] % inner == 0 and inner < shape[axis]:
                return TwoStages(tuple(shape), axes, axis, inner)
    return None


def split_reduction(kernel: Kernel, limits: SplitLimits = SPLIT_LIMITS, reassociate: bool = False) -> Pipeline:
    """A kernel that stores one large reduction over a literal range, in two stages; any other kernel as it is.

    Parameters
    ----------
    kernel : Kernel
        The kernel. If it has several stores, it stays as it is.
    limits : SplitLimits
        How large the reduction must be, and how many values a partial result may combine.
    reassociate : bool
        Whether sums and products of floating-point values may be taken in parts, which rounds differently.

    >>> from eqsat import sum_over, var
    >>> a, out, r = buffer("A", "i32", (65536,)), buffer("OUT", "i64", (1,)), var("r", 0, 65535)
    >>> for stage in split_reduction(Kernel("total", [Store(out[0], sum_over(a[r], r, 0, 65536))])).kernels:
    ...     print(*stage.stores)
    Store('OUT_parts[p] = sum(A[p*256 + r1], r1, 0, 256) for p')
    Store('OUT[0] = sum(min(max(OUT_parts[r1], -549755813888), 549755813632), r1, 0, 256)')
    """
    require(kernel, Kernel, "a kernel")
    if len(kernel.stores) != 1:
        return Pipeline((kernel,))
    (store,) = kernel.stores
    term = store.value
    exact = not term.element or term.op in ("fmax_over", "fmin_over") or reassociate
    if term.op not in REDUCTIONS or not exact or any(end.op != "const" for end in term.args[2:]):
        return Pipeline((kernel,))
    body, index, low, high = term.args
    extents = [extent(v) for v in store.over]
    # an empty range counts as one of one step, which is too small as well
    found = two_stages([*extents, max(1, high.vmin - low.vmin)], [len(extents)], (), limits)
    if found is None:
        return Pipeline((kernel,))
    taken = kernel.names
    outer, inner = fresh("p", taken, found.outer), fresh("q", taken, found.inner)
    place = outer * found.inner + inner
    first = reduction(term.op, instantiate(body, index, place + low if low.vmin else place), [Axis(inner)])
    element = first.element or f"i{select_width(first)}"
    # the name of a kernel may be none of a buffer
    parts = buffer(free_name(f"{store.array.name}_parts", taken), element, (*extents, found.outer))
    target = parts[(*[v - v.vmin if v.vmin else v for v in store.over], outer)]
    # a sum of partial results is bounded by their bounds, not by those of the elements' type
    partial = target if term.element else minimum(maximum(target, first.vmin), first.vmax)
    second = replace(store, value=reduction(term.op, partial, [Axis(outer)]))
    stages = {f"{kernel.name}_first": Store(target, first, (*store.over, outer), store.when), kernel.name: second}
    return Pipeline(Kernel(name, [stage]) for name, stage in stages.items())


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


def output_ratio(output: int, inputs: Iterable[int]) -> float:
    """Elements of an output per element of its inputs, each counted with one more.

    >>> output_ratio(1023, [127]), output_ratio(0, [])
    (8.0, 1.0)
    """
    return (output + 1) / (sum(inputs) + 1)


def decide(given: Intermediate) -> Decision:
    """The published decision tree for an intermediate result; its first question that has an answer decides.

    >>> decide(Intermediate("ADD")), decide(Intermediate("ADD", reduce_in_scope=True)), decide(Intermediate("COPY"))
    (<Decision.INLINE: 'inline'>, <Decision.KEEP: 'keep'>, <Decision.KEEP: 'keep'>)
    """
    require(given, Intermediate, "an intermediate")
    if given.op in ALWAYS_KEPT or given.buffers > given.limit:
        return Decision.KEEP
    if not given.reduce_in_scope:
        return Decision.INLINE
    # a unary operation would be repeated at each step, instead of one read
    if given.unary or given.partial_level <= LIMITS.careful_level or given.ratio < LEAST_RATIO:
        return Decision.KEEP
    return Decision.PARTIAL


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

    def reference(self, arrays: Mapping[str, ArrayLike], /, **parameters: int) -> dict[str, NDArray[Any]]:
        """All that the kernels store, by their own evaluator; see :meth:`eqsat.kernels.kernel.Kernel.reference`."""

        def evaluator(kernel: Kernel) -> Callable[..., dict[str, NDArray[Any]]]:
            names = [b.name for b in kernel.inputs]
            return lambda **given: kernel.reference({n: given.pop(n) for n in names if n in given}, **given)

        return self.run(map(evaluator, self.kernels), arrays, **parameters)

    def run(
        self,
        programs: Iterable[Callable[..., dict[str, NDArray[Any]]]],
        arrays: Mapping[str, ArrayLike],
        /,
        **parameters: int,
    ) -> dict[str, NDArray[Any]]:
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
        found: dict[str, NDArray[Any]] = {}
        programs = tuple(programs)
        if len(programs) != len(self.kernels):
            raise ValueError(f"{len(self.kernels)} kernels are given {len(programs)} programs: compile each kernel")
        for kernel, program in zip(self.kernels, programs, strict=True):
            known: dict[str, Any] = {**arrays, **found, **parameters}
            # the kernel itself names what it lacks
            found |= program(**{name: known[name] for name in kernel.arguments if name in known})
        return found

    def cost(self, model: CostModel = LATENCY) -> int:
        """What all kernels cost, each operation as often as its loop runs, loads and stores among them."""
        return sum(nest_cost(store, model) for kernel in self.kernels for store in kernel.stores)


def nest_cost(store: Store, model: CostModel = LATENCY) -> int:
    """What the loops of one store cost.

    >>> from eqsat.lang.expr import var
    >>> a, b, i = buffer("A", "i32", (8,)), buffer("B", "i32", (8,)), var("i", 0, 7)
    >>> nest_cost(Store(b[i], a[i] // 2, [i]))
    48
    """
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

    >>> from eqsat.lang.expr import var
    >>> a, t, out, i = buffer("A", "i32", (8,)), buffer("T", "i64", (8,)), buffer("OUT", "i64", (8,)), var("i", 0, 7)
    >>> inlined(Kernel("k", [Store(out[i], t[7 - i], [i])]), Store(t[i], a[i] + 1, [i])).stores
    (Store('OUT[i] = A[7 - i] + 1 for i'),)
    """
    require(kernel, Kernel, "a kernel")
    require(producer, Store, "a producer")
    if obstacle := _obstacle(kernel, producer):
        raise ValueError(f"{brief(producer.target)!r} cannot be inlined: {obstacle}")
    array = producer.target.args[0]

    def replaced(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op == "var" and is_index(term):
            # free until its reduction is made again, so that no reduction of the producer captures it
            return as_free(term)
        if term.op != "load" or args[0] is not array:
            return None
        return substitute([producer.value], dict(zip(producer.over, args[1:], strict=True)))[0]

    stores = []
    for store in kernel.stores:
        target, value, when = rebuild([store.target, store.value, store.when], replaced)
        stores.append(replace(store, target=target, value=value, when=when))
    return Kernel(kernel.name, tuple(stores))


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
    kept = Pipeline((Kernel(f"{kernel.name}_{producer.array.name}", (producer,)), kernel))
    try:
        alone = Pipeline((inlined(kernel, producer),))
    except ValueError:
        return kept
    return alone if alone.cost(cost) <= kept.cost(cost) else kept
