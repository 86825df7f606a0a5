"""Kernels tried out: a file states some, and each, compiled, is run on random data, compared and timed.

A file is a Python file with kernels among its global names. For the kernel ``k`` it may have a function ``k_numpy``,
which takes the inputs and parameters by name and returns the output, or a mapping of outputs by name; without it the
kernel's own evaluation by NumPy is what it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqsat.codegen.trusted import with_tests
from eqsat.extract.cost import globals_of
from eqsat.kernels.kernel import DTYPES, Arrays, Kernel, flattened

Reference = Callable[..., Any]
#: A compiled kernel: of its inputs and parameters, and of arrays to store to as ``out``, all by name, its outputs.
type Compiled = Callable[..., Arrays]

#: How far a rounded result may be from NumPy's, relative to the greatest value: sums go in other orders.
TOLERANCE = {"f32": 1e-4, "f64": 1e-10}

#: Seconds that one repetition of a measurement lasts at least.
LEAST_SECONDS = 0.002


@dataclass(frozen=True)
class Trial:
    """The outcome for one kernel."""

    #: What it is called.
    kernel: str
    #: Seconds of a call of the optimised and of the unoptimised kernel, and of the file's function, if it has one.
    optimized: float
    plain: float
    numpy: float | None
    #: The greatest difference from NumPy's result, over the greatest value.
    error: float

    @property
    def speed_up(self) -> float:
        """How many times as fast as the unoptimised kernel."""
        return self.plain / self.optimized

    def record(self) -> dict[str, Any]:
        """The figures as a row, with times in milliseconds."""
        return {
            "kernel": self.kernel,
            "ms": 1e3 * self.optimized,
            "ms_plain": 1e3 * self.plain,
            "ms_numpy": None if self.numpy is None else 1e3 * self.numpy,
            "speed_up": self.speed_up,
            "error": self.error,
        }

    def __str__(self) -> str:
        beside = "" if self.numpy is None else f", NumPy {1e3 * self.numpy:.4f} ms"
        difference = f"within {self.error:.1g} of" if self.error else "equal to"
        times = f"{1e3 * self.optimized:.4f} ms, not optimised {1e3 * self.plain:.4f} ms{beside}"
        return f"{self.kernel}: {times}: {self.speed_up:.2f} times as fast, {difference} NumPy's result"


def load_kernels(target: str) -> list[tuple[Kernel, Reference | None]]:
    """The kernels of ``FILE.py``, or the one of ``FILE.py:name``, each with the function that it is compared with."""
    path, _, chosen = target.rpartition(":")
    if not path:
        path, chosen = target, ""
    if not Path(path).is_file():
        raise ValueError(f"{path!r} is not a file: give FILE.py or FILE.py:kernel")
    names = globals_of(path)
    if not (kernels := {name: value for name, value in names.items() if isinstance(value, Kernel)}):
        raise ValueError(f"{path}: no kernel among its global names: assign an eqsat.Kernel to one")
    if chosen and chosen not in kernels:
        raise ValueError(f"{path} has no kernel {chosen!r}, only {', '.join(kernels)}")
    return [(kernels[name], names.get(f"{name}_numpy")) for name in ([chosen] if chosen else kernels)]


def random_arguments(kernel: Kernel, seed: int) -> dict[str, Any]:
    """Inputs and parameters: normal numbers; integers that are indices of some axis, or just outside of it."""
    random = np.random.default_rng(seed)
    most = max([n for b in (*kernel.inputs, *kernel.outputs) for n in b.shape or ()])
    found: dict[str, Any] = {}
    for b in kernel.inputs:
        low, high = (0, 2) if b.element == "bool" else (-1, most + 1)
        real = b.element.startswith("f")
        values: Any = random.standard_normal(b.shape) if real else random.integers(low, high, b.shape)
        found[b.name] = values.astype(DTYPES[b.element])
    for v in kernel.parameters:
        found[str(v.value)] = int(random.integers(v.vmin, v.vmax, endpoint=True))
    return found


def try_kernel(
    kernel: Kernel,
    program: Compiled,
    plain: Compiled,
    reference: Reference | None = None,
    *,
    reassociated: bool = False,
    repeats: int = 7,
    seed: int = 0,
) -> Trial:
    """Run, compare and time a kernel that is compiled twice, with and without optimisation.

    Times are medians of ``repeats``. Raises ``ValueError`` if the optimised kernel differs from the unoptimised one at
    all, unless sums are ``reassociated``, or from NumPy's result by more than rounding.
    """
    arguments = random_arguments(kernel, seed)
    found, before = program(**arguments), plain(**arguments)
    for name, values in found.items():
        if not reassociated and not np.array_equal(values, before[name], equal_nan=values.dtype.kind == "f"):
            raise ValueError(f"kernel {kernel.name!r}: the output {name!r} differs from that of the unoptimised kernel")
    want = _reference(kernel, reference, arguments)
    errors = [_error(kernel, name, values, want) for name, values in found.items()]
    return Trial(
        kernel.name,
        _seconds(lambda: program(out=found, **arguments), repeats),
        _seconds(lambda: plain(out=before, **arguments), repeats),
        None if reference is None else _seconds(lambda: reference(**arguments), repeats),
        max(errors),
    )


def _reference(kernel: Kernel, reference: Reference | None, arguments: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
    if reference is None:
        # the value of a load outside its array is not specified: it is compared with that which C has
        parameters = {str(v.value): arguments[str(v.value)] for v in kernel.parameters}
        inputs = {b.name: np.ravel(arguments[b.name]) for b in kernel.inputs}
        found = with_tests(flattened(kernel)).reference(inputs, **parameters)
        return {b.name: found[b.name].reshape(b.shape or ()) for b in kernel.outputs}
    try:
        result = reference(**arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"the NumPy function of kernel {kernel.name!r}: {type(error).__name__}: {error}") from None
    if isinstance(result, Mapping):
        return result
    names = [b.name for b in kernel.outputs]
    if len(names) > 1:
        raise ValueError(f"kernel {kernel.name!r} has several outputs: its NumPy function must return a mapping")
    return {names[0]: result}


def _error(kernel: Kernel, name: str, values: NDArray[Any], want: Mapping[str, NDArray[Any]]) -> float:
    """How far an output is from NumPy's, relative to its greatest value."""
    whose = f"the NumPy function of kernel {kernel.name!r}"
    if name not in want:
        raise ValueError(f"{whose} returns no {name!r}")
    try:
        expected = np.asarray(want[name])
    except ValueError as problem:
        raise ValueError(f"{whose} returns no array for {name!r}: {problem}") from None
    if expected.dtype.kind not in "biuf":
        raise ValueError(f"{whose} returns elements of type {expected.dtype} for {name!r}: give numbers or conditions")
    if expected.shape != values.shape:
        raise ValueError(f"kernel {kernel.name!r}: {name!r} has shape {values.shape}, NumPy's result {expected.shape}")
    same = (values == expected) | ((values != values) & (expected != expected))
    if same.all():
        return 0.0
    # floats do not tell large integers apart
    exact = float if "f" in (values.dtype.kind, expected.dtype.kind) else object
    differences = np.abs(values[~same].astype(exact) - expected[~same].astype(exact))
    greatest = float(np.max(np.abs(expected[np.isfinite(expected)].astype(exact)), initial=0))
    error = float(differences.max() / max(1.0, greatest))
    element = next(b.element for b in kernel.outputs if b.name == name)
    if not error <= TOLERANCE.get(element, 0.0):
        raise ValueError(f"kernel {kernel.name!r}: the output {name!r} differs from NumPy's result by {error:.1g}")
    return error


def _seconds(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, which is repeated within a measurement if it is short."""
    started = perf_counter()
    call()
    rounds = max(1, int(LEAST_SECONDS / max(perf_counter() - started, 1e-9)))
    times = []
    for _ in range(repeats):
        clock, processor = perf_counter(), process_time()
        for _ in range(rounds):
            call()
        # the clock runs on where others have the processor, the processor's time is that of all threads
        times.append(min(perf_counter() - clock, process_time() - processor) / rounds)
    return median(times)
