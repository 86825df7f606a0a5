"""Kernels over arrays, compiled by the system's C compiler and called with NumPy arrays.

What a new library computes is compared with the evaluator first (:mod:`eqsat.codegen.trusted`).
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsat.codegen.expressions import C_TYPES, preamble
from eqsat.codegen.libraries import DIGEST_SIZE, build, compiler_version, find_compiler, load, own_file
from eqsat.codegen.nests import function as loop_function
from eqsat.codegen.runtime import VECTOR_FLAGS, as_array, ffi_of, values_of
from eqsat.codegen.trusted import comparable_part, differs, rounds_at_will
from eqsat.egraph.budget import Budget
from eqsat.kernels.kernel import DTYPES, Arrays, Kernel, flattened
from eqsat.kernels.schedule import writes_once
from eqsat.kernels.simplification import KERNEL_BUDGET, optimized
from eqsat.lang.errors import CompileError, MiscompilationWarning
from eqsat.lang.expr import Expr
from eqsat.lang.traversal import Buffer
from eqsat.lang.validation import require, shown
from eqsat.theory.arithmetic import late_after

#: What kernels over arrays are compiled with: vectorised, and every operation rounded as it is written.
ARRAY_FLAGS = (*VECTOR_FLAGS, "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")

#: What keeps gcc from changing the order of loops, which it does at the expense of vectors; clang does not.
GCC_FLAGS = ("-fno-loop-interchange", "-fno-loop-unroll-and-jam")

#: What keeps gcc from changing the order in which one element is stored to again and again, as gcc 12 does at ``-O3``:
#: even in ``for (i...) for (u...) Y[i + u] = X[u]``.
GCC_ORDER_FLAGS = ("-fno-tree-loop-vectorize", "-fno-predictive-commoning")

#: What a kernel is compiled with that comes out wrong with those: none of the options that compilers have got wrong.
SAFE_FLAGS = ("-std=c99", "-O1", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-ffp-contract=off")

#: A forked process has none of the threads that OpenMP waits for: it goes on without them.
_ALONE = """
void omp_set_num_threads(int threads);

void eqsat_alone(void)
{
    omp_set_num_threads(1);
}
"""

_ffi = ffi_of("void eqsat_call(void *const *arrays, const int64_t *numbers); void eqsat_alone(void);")

#: The process that is no fork of another that has this module.
_PROCESS = os.getpid()


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled kernel over arrays.

    Attributes
    ----------
    given, kernel : eqsat.kernels.kernel.Kernel
        The kernel as stated, and as compiled.
    source : str
        Its C text.
    options : dict
        How it was compiled; a copy, or one from a pickle, is compiled again or taken from the cache.
    """

    given: Kernel
    kernel: Kernel = field(repr=False)
    source: str = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    _library: Any = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(compile_kernel, **self.options), (self.given,)

    @overload  # of a dict of arrays, as in program(**arrays), a checker takes each value for an `out` too
    def __call__(self, /, **arguments: ArrayLike) -> Arrays: ...

    @overload
    def __call__(self, /, *, out: Mapping[str, NDArray[Any]] | None, **arguments: ArrayLike) -> Arrays: ...

    def __call__(self, /, *unnamed: object, out: Any = None, **arguments: ArrayLike) -> Arrays:
        """The outputs by name: the arrays that ``out`` has to store to, and new ones, filled with 0.

        The arguments are the inputs, by the names of their buffers, and the parameters. Arrays of other libraries are
        read where they are, by ``__array__`` or DLPack.

        Raises
        ------
        TypeError
            If an array or a parameter is missing, unknown or not named, or has another element type.
        ValueError
            If an array has another shape, an output is not contiguous, not aligned, read-only or shares memory, or a
            parameter is out of range.
        """
        wanted = set(self.given.arguments)
        wrong = ["takes its arrays by name"] if unnamed else []
        if missing := sorted(wanted - arguments.keys()):
            wrong.append(f"lacks {', '.join(missing)}")
        if unknown := sorted(arguments.keys() - wanted):
            wrong.append(f"takes no {', '.join(unknown)}")
        if wrong:
            call = ", ".join(f"{name}=..." for name in self.given.arguments)
            raise TypeError(f"kernel {self.given.name!r} {' and '.join(wrong)}: call it with ({call})")
        arrays = [_of_buffer(b, as_array(b.name, arguments[b.name])) for b in self.given.inputs]
        # C has only the bytes 0 and 1 for conditions, a view of other elements may have more
        arrays = [a.view(np.uint8) != 0 if a.dtype == bool else a for a in arrays]
        arrays = [a if a.flags.c_contiguous and a.flags.aligned else a.copy() for a in arrays]
        results = self._results({} if out is None else out, arrays)
        used = self.kernel.parameters
        stated = [(v, _number(v, arguments)) for v in self.given.parameters]
        # what nothing depends on may have more than 64 bits
        numbers = [number if v in used else 0 for v, number in stated]
        _call(self._library, [*arrays, *results.values()], numbers, self.options["parallel"])
        return results

    def _results(self, out: Mapping[str, NDArray[Any]], inputs: Sequence[NDArray[Any]]) -> Arrays:
        """The arrays to store to: those given, which nothing else may use, and new ones."""
        if not isinstance(out, Mapping):
            raise TypeError(f"out is a {type(out).__name__}, not a mapping from the names of outputs to arrays")
        results: Arrays = {}
        for b in self.given.outputs:
            if (given := out.get(b.name)) is None:
                results[b.name] = np.zeros(cast(tuple[int, ...], b.shape), dtype=DTYPES[b.element])
                continue
            if not _of_buffer(b, given).flags.carray:
                raise ValueError(f"the output {b.name!r} is not contiguous, aligned and writable: give a plain array")
            if any(np.may_share_memory(given, other) for other in (*inputs, *results.values())):
                raise ValueError(f"the output {b.name!r} shares memory with another array: give it its own")
            results[b.name] = given
        if not out.keys() <= results.keys():
            unknown = sorted(map(str, out.keys() - results.keys()))
            raise TypeError(f"kernel {self.given.name!r} has no output {', '.join(unknown)}, only {', '.join(results)}")
        return results


def compile_kernel(
    kernel: Kernel,
    *,
    optimize: bool = True,
    parallel: bool = False,
    reassociate: bool = False,
    lanes: int = 1,
    verify: bool = True,
    budget: Budget = KERNEL_BUDGET,
) -> Program:
    """Compile a kernel into a function on NumPy arrays: :func:`eqsat.compile`.

    Parameters
    ----------
    kernel : Kernel
        What to compute.
    optimize : bool
        Whether to simplify it and choose its loops first (:func:`eqsat.kernels.simplification.optimized`).
    parallel : bool
        Whether its outermost loops run in parallel (OpenMP); in a process that was forked, on one thread.
    reassociate : bool
        Whether floating-point sums may be taken in another order, which rounds differently, and products with a mask of
        0 and 1 as selections, in which NaN and infinities that are masked out do not count.
    lanes : int
        How many elements an innermost loop without a reduction stores at a time, 1 to 16 and a power of two; with 1
        that is left to the C compiler.
    verify : bool
        Whether a new library is run on random arrays and compared with the evaluator, as :mod:`eqsat.codegen.trusted`
        says. That takes some milliseconds; the verdict is kept beside the library. What differs is compiled again with
        ``SAFE_FLAGS``.
    budget : Budget
        What optimising may use; the C compiler and ``verify`` take their time beside it.

    Warns
    -----
    MiscompilationWarning
        If the C compiler got the kernel wrong, and right with safer options.

    Raises
    ------
    ValueError
        If an integer does not fit 64 bits, there cannot be ``lanes`` lanes, or an argument is called ``out``.
    TypeError
        If ``kernel`` is no kernel.
    CompileError
        If there is no C compiler, it fails, or what it makes is wrong with every option.

    >>> from eqsat.lang.expr import buffer, var
    >>> from eqsat.kernels.kernel import Kernel, Store
    >>> a, b, k = buffer("A", "f32", (2, 3)), buffer("B", "f32", (3, 2)), var("k", 0, 5)
    >>> turn = compile_kernel(Kernel("turn", [Store(b[k // 2, k % 2], a[k % 2, k // 2], [k])]))
    >>> turn(A=np.arange(6, dtype=np.float32).reshape(2, 3))["B"]
    array([[0., 3.],
           [1., 4.],
           [2., 5.]], dtype=float32)
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{shown(kernel)} is no kernel: give an eqsat.Kernel")
    if "out" in kernel.arguments:
        raise ValueError(f"kernel {kernel.name!r} has an argument 'out', which is how outputs are given: rename it")
    require(budget, Budget, "a budget")
    flags = {"optimize": optimize, "parallel": parallel, "reassociate": reassociate, "verify": verify}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} is {flag!r}: give True or False")
    unit = partial(_array_unit, parallel=parallel, reassociate=reassociate, lanes=lanes)
    with late_after(budget.ends()):
        compiled = optimized(kernel, reassociate=reassociate, budget=budget) if optimize else flattened(kernel)
        text, source = unit(kernel, compiled)
    compiled_by = (*ARRAY_FLAGS, *_of_gcc(compiled), "-fopenmp" if parallel else "-fopenmp-simd", "-lm")
    part = comparable_part(compiled) if verify else None
    if part is not None:
        owner = kernel if part is compiled else part
        check = partial(_Check, source, source if part is compiled else unit(part, part)[1], owner, part, parallel)
        compiled_by = _trusted(check, compiled_by, (*SAFE_FLAGS, *["-fopenmp"] * parallel, "-lm"))
    library = load(build(source, compiled_by), _ffi, "eqsat_call")
    return Program(kernel, compiled, text, {**flags, "lanes": lanes, "budget": budget}, library)


def _of_gcc(kernel: Kernel) -> tuple[str, ...]:
    """The flags that keep gcc from changing the order of loops and of stores; clang needs none."""
    if "clang" in compiler_version():
        return ()
    return GCC_FLAGS if all(map(writes_once, kernel.stores)) else (*GCC_FLAGS, *GCC_ORDER_FLAGS)


def _array_unit(given: Kernel, compiled: Kernel, parallel: bool, reassociate: bool, lanes: int) -> tuple[str, str]:
    """The C function of a kernel, and the file of its library."""
    written = loop_function(compiled, parallel, reassociate, lanes, storage="static ")
    calls = [_array_call(given, compiled, written.name), *[_ALONE] * parallel]
    return written.text, "\n".join(["#include <math.h>\n" + preamble([written]), written.text, *calls])


def _array_call(given: Kernel, compiled: Kernel, name: str) -> str:
    """A function of the same type for every kernel: of what ``given`` takes the compiled one may do without some."""
    arrays = [b.name for b in (*given.inputs, *given.outputs)]
    numbers = [v.value for v in given.parameters]
    arguments = [
        *[f"(const {C_TYPES[b.element]} *)eqsat_arrays[{arrays.index(b.name)}]" for b in compiled.inputs],
        *[f"({C_TYPES[b.element]} *)eqsat_arrays[{arrays.index(b.name)}]" for b in compiled.outputs],
        *[f"eqsat_numbers[{numbers.index(v.value)}]" for v in compiled.parameters],
    ]
    # names that no kernel has
    head = "void eqsat_call(void *const *eqsat_arrays, const int64_t *eqsat_numbers)"
    lines = [head, "{", "    (void)eqsat_numbers;"]
    return "\n".join([*lines, f"    {name}({', '.join(arguments)});", "}", ""])


def _trusted(
    check: Callable[[tuple[str, ...]], _Check], fast: tuple[str, ...], safe: tuple[str, ...]
) -> tuple[str, ...]:
    """The first of two sets of flags with which the compiled kernel is right; raise if there is none."""
    first = check(fast)
    if first.is_right():
        return fast
    second = check(safe)
    if second.is_right():
        warnings.warn(
            f"the C compiler {find_compiler()[0]!r} got kernel {first.owner.name!r} wrong, which is compiled without "
            "vector instructions instead: use another version of it, or set CC to another compiler",
            MiscompilationWarning,
            stacklevel=3,
        )
        return safe
    if rounds_at_will(first.part) and not differs(first.part, first.run, second.run):
        # two compilations agree: C's library rounds otherwise than NumPy, and a comparison depends on it
        first.note(True)
        return fast
    raise CompileError(
        f"the C compiler {find_compiler()[0]!r} gets kernel {first.owner.name!r} wrong with every option: set CC to "
        "another compiler, or give verify=False to use it as it is"
    )


@dataclass(frozen=True)
class _Check:
    """What a library computes, and whether it is right; the verdict is kept in a file beside the library."""

    #: The C of the library, and of the one that is run to judge it: the same, or that of ``part``.
    source: str
    run_source: str
    #: The kernel whose arguments that one takes, and the kernel that it computes.
    owner: Kernel
    part: Kernel
    parallel: bool
    flags: tuple[str, ...]

    @cached_property
    def _verdict(self) -> Path:
        return build(self.source, self.flags).with_suffix(".verdict")

    @cached_property
    def _digest(self) -> str:
        return self._verdict.with_suffix(".so").read_bytes()[-DIGEST_SIZE:].hex()

    def is_right(self) -> bool:
        """Whether the library computes what the kernel says, as far as it was compared."""
        stated = own_file(self._verdict)
        for right in (True, False):
            if stated == self._statement(right):
                return right
        right = not differs(self.part, self.run)
        self.note(right)
        return right

    def note(self, right: bool) -> None:
        """Keep a verdict on this very library."""
        with suppress(OSError), tempfile.TemporaryDirectory(dir=self._verdict.parent, prefix="build-") as scratch:
            file = Path(scratch, "verdict")
            file.write_bytes(self._statement(right))
            file.chmod(0o600)
            os.replace(file, self._verdict)

    def _statement(self, right: bool) -> bytes:
        return f"{self._digest} {'right' if right else 'wrong'}\n".encode()

    @cached_property
    def _library(self) -> Any:
        return load(build(self.run_source, self.flags), _ffi, "eqsat_call")

    def run(self, arrays: Arrays, parameters: Mapping[str, int]) -> None:
        """Run it; an array or a parameter that it does not use may be missing."""
        named = [arrays.get(b.name) for b in (*self.owner.inputs, *self.owner.outputs)]
        numbers = [parameters.get(str(v.value), 0) for v in self.owner.parameters]
        _call(self._library, named, numbers, self.parallel)


def _call(library: Any, arrays: Sequence[NDArray[Any] | None], numbers: Sequence[int], parallel: bool) -> None:
    """Call a kernel on its arrays and parameters, in order."""
    pointers = _ffi.new("void *[]", [_ffi.NULL if a is None else _ffi.from_buffer(a) for a in arrays])
    if parallel and os.getpid() != _PROCESS:
        library.eqsat_alone()
    library.eqsat_call(pointers, _ffi.new("int64_t[]", numbers))


def _of_buffer(declared: Buffer, array: NDArray[Any]) -> NDArray[Any]:
    """``array`` itself, refused where its type or shape is not the buffer's."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{declared.name!r} is a {type(array).__name__}, not a NumPy array")
    if array.dtype != DTYPES[declared.element]:
        raise TypeError(
            f"array {declared.name!r} has elements of type {array.dtype}, not {declared.element}: convert it"
        )
    if array.shape != declared.shape:
        raise ValueError(f"array {declared.name!r} has shape {array.shape}, not {declared.shape}: reshape it")
    return array


def _number(parameter: Expr, arguments: Mapping[str, ArrayLike]) -> int:
    """The value of one parameter, refused where it is several."""
    value = values_of(parameter, arguments)
    if value.ndim:
        raise TypeError(f"parameter {str(parameter.value)!r} has shape {value.shape}: give one integer")
    return int(value)
