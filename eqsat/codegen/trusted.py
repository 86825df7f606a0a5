"""Whether a compiled kernel does what its terms say: it is run once on random arrays and compared with the evaluator.

If evaluating all output elements takes at most ``CODE_LIMITS.evaluated_steps``, all are compared. Of a larger kernel,
elements at random points of the loops of each store are compared, the ends of the loops among them. Left out are stores
to arrays or elements that are stored to more than once, and reductions of which one element takes more steps than that.
Not compared in any kernel are inputs that no random ones resemble, and inputs by which the kernel would divide by zero.
The memory beside the arrays is filled with arbitrary values, so that reading it gives a wrong result; the memory beside
the outputs is looked at afterwards, so that writing it is found.

Floating-point elements must be exactly equal unless the kernel takes sums or products, whose order counts, or calls
``exp`` or ``log``, which C's library computes in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqsat.codegen.limits import CODE_LIMITS
from eqsat.kernels.kernel import DTYPES, Arrays, Kernel, Store, equal_store, zero_like
from eqsat.kernels.schedule import writes_once
from eqsat.lang.evaluation import evaluate, most_steps
from eqsat.lang.expr import Expr, any_var, make, rebuild, replaced
from eqsat.lang.functions import where
from eqsat.lang.ops import ELEMENTS
from eqsat.lang.sampling import sample
from eqsat.lang.traversal import Buffer, array_of, extent, topological

#: Elements that were stored, and those expected.
Pairs = Iterator[tuple[NDArray[Any], NDArray[Any]]]

#: A compiled kernel: it takes all arrays and parameters by name, and stores to the outputs.
CompiledKernel = Callable[[Arrays, Mapping[str, int]], None]

#: Elements before and behind every array.
MARGIN = 64

#: How often a kernel is run, with other arrays and parameters; once if its arrays have more bytes than LARGE.
ROUNDS = 2
LARGE = 2**22

#: How far elements whose rounding is not fixed may differ, relative to the greatest of them.
TOLERANCE = {"f32": 1e-3, "f64": 1e-9}

#: The most iterations of a store that are evaluated where not all are.
POINTS = 256

#: Random elements; longer arrays repeat them.
PERIOD = 2**16 - 17

#: What the bytes beside the outputs hold.
WATCHED = 0xA5

_ROUNDED_AT_WILL = {"exp", "log", "fsum_over", "fprod_over"}


def rounds_at_will(kernel: Kernel) -> bool:
    """Whether compilers may round the kernel's elements differently."""
    return any(t.op in _ROUNDED_AT_WILL for t in topological(kernel.roots))


def comparable_part(kernel: Kernel) -> Kernel | None:
    """The kernel, or if it is too large to compare, the same with fewer values of its outer variables.

    ``None`` if that is too large too: its arrays, or the steps of its inner loops.
    """
    if _held(kernel) > CODE_LIMITS.held_bytes:
        return None
    shorter: dict[Expr, Expr] = {}
    for store in kernel.stores:
        steps = _steps(store)
        for v in store.over:
            now = shorter.get(v, v)
            steps = steps // extent(v) * extent(now)
            if steps > CODE_LIMITS.run_steps:
                count = min(extent(now), max(2, extent(now) * CODE_LIMITS.run_steps // steps))
                steps = steps // extent(now) * count
                shorter[v] = any_var(str(v.value), now.vmin, now.vmin + count - 1)
        if steps > CODE_LIMITS.run_steps:
            return None
    if not shorter:
        return kernel
    stores = [equal_store(s, replaced(s.parts, shorter), [shorter.get(v, v) for v in s.over]) for s in kernel.stores]
    return Kernel(kernel.name, stores)


def differs(kernel: Kernel, run: CompiledKernel, other: CompiledKernel | None = None) -> bool:
    """Whether a compiled kernel over flat arrays stores other values than the evaluator computes, or than ``other``."""
    exact, stated = not rounds_at_will(kernel), with_tests(kernel)
    points = sample(kernel.parameters, [], ROUNDS + 1, seed=0)
    for number in range(ROUNDS if _held(kernel) <= LARGE else 1):
        random = np.random.default_rng(number)
        # the lowest values of all parameters come first, then the highest, then random ones
        parameters = {name: int(values[ROUNDS - number]) for name, values in points.items()}
        inputs = {b.name: _random_input(b, random) for b in kernel.inputs}
        found, intact = _run_between_margins(kernel, run, inputs, parameters)
        if not intact:
            return True
        pairs: Pairs = _expected(stated, inputs, parameters, found, number)
        if other is not None:
            others, _ = _run_between_margins(kernel, other, inputs, parameters)
            pairs = zip(found.values(), others.values(), strict=True)
        try:
            if not all(_is_close(values, expected, exact) for values, expected in pairs):
                return True
        except ZeroDivisionError:
            # an input element happens to be zero: the kernel has no value for such inputs
            continue
    return False


def with_tests(kernel: Kernel) -> Kernel:
    """A kernel over flat arrays with 0 for loads outside, as in C: the evaluator takes an element of the edge."""

    def tested(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op != "load":
            return None
        load, index, size = make("load", *args), args[1], array_of(term).size
        if index.vmin >= 0 and index.vmax < size:
            return load
        return where((index >= 0) & (index < size), load, zero_like(load))

    return Kernel(kernel.name, [equal_store(s, rebuild(s.parts, tested), s.over) for s in kernel.stores])


def _run_between_margins(
    kernel: Kernel, run: CompiledKernel, inputs: Arrays, parameters: Mapping[str, int]
) -> tuple[Arrays, bool]:
    """The outputs of a kernel, and whether the memory beside them was left alone."""
    outputs: Arrays = {}
    margins = []
    for b in kernel.outputs:
        whole = np.zeros(b.size + 2 * MARGIN, DTYPES[b.element])
        outputs[b.name] = whole[MARGIN:-MARGIN]
        margins += [end.view(np.uint8) for end in (whole[:MARGIN], whole[-MARGIN:])]
    for margin in margins:
        margin[:] = WATCHED
    run({**inputs, **outputs}, parameters)
    return outputs, all(bool((margin == WATCHED).all()) for margin in margins)


def _expected(kernel: Kernel, inputs: Arrays, parameters: Mapping[str, int], found: Arrays, seed: int) -> Pairs:
    """Elements that were stored, each array with the values that the evaluator computes."""
    if sum(map(_steps, kernel.stores)) <= CODE_LIMITS.evaluated_steps:
        for name, expected in kernel.reference(inputs, **parameters).items():
            yield found[name], expected
        return
    for store in kernel.stores:
        name, count = store.array.name, CODE_LIMITS.evaluated_steps // most_steps(store.parts)
        if not count or sum(s.array.name == name for s in kernel.stores) > 1 or not writes_once(store):
            continue
        at = sample(store.over, [], min(count, POINTS), seed)
        shape = np.broadcast_shapes(*[values.shape for values in at.values()])
        values = evaluate(store.where_stored(), {**parameters, **at}, inputs)
        place, value, when = [np.broadcast_to(x, shape) for x in values]
        with np.errstate(over="ignore"):
            expected = value[when].astype(DTYPES[store.array.element])
        yield found[name][place[when].astype(np.intp)], expected


def _steps(store: Store) -> int:
    """How often the innermost body of a store's loops is evaluated at most."""
    return prod(map(extent, store.over)) * most_steps(store.parts)


def _held(kernel: Kernel) -> int:
    """The bytes of all arrays."""
    return sum(np.dtype(DTYPES[b.element]).itemsize * b.size for b in (*kernel.inputs, *kernel.outputs))


def _random_input(array: Buffer, random: np.random.Generator) -> NDArray[Any]:
    """Random elements of an input with others around: multiples of 1/8, whose sums are exact, indices, any integers."""
    size = array.size + 2 * MARGIN
    count = min(size, PERIOD)
    values: NDArray[Any]
    if array.element.startswith("f"):
        values = random.integers(-64, 65, count) / 8
    elif array.element == "bool":
        values = random.integers(0, 2, count)
    else:
        low, high = ELEMENTS[array.element]
        kinds = [random.integers(-1, 9, count), random.integers(-1, 65, count), random.integers(low, high, count)]
        values = np.choose(random.integers(3, size=count), kinds)
    return np.resize(values.astype(DTYPES[array.element]), size)[MARGIN:-MARGIN]


def _is_close(values: NDArray[Any], expected: NDArray[Any], exact: bool) -> bool:
    real = values.dtype.kind == "f"
    if not real or exact or np.array_equal(values, expected, equal_nan=True):
        return np.array_equal(values, expected, equal_nan=real)
    element = next(name for name, kind in DTYPES.items() if kind == values.dtype)
    finite = np.isfinite(expected)
    greatest = float(np.max(np.abs(expected[finite]), initial=0))
    tolerance = TOLERANCE[element] * greatest
    return bool(np.allclose(values, expected, rtol=TOLERANCE[element], atol=tolerance, equal_nan=True))
