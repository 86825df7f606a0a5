"""Compile expressions with the system's C compiler and run them.

A library (:mod:`eqsat.codegen.libraries`) holds any number of kernels, so that hundreds cost one start of the compiler.
By default the code is scalar (vectorisation is off): :meth:`CompiledExprs.measure` times one evaluation, not a vector
lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import prod
from statistics import median
from time import thread_time_ns
from typing import Any, cast

import cffi
import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsat.codegen.expressions import Function, arguments, function, points_function, preamble
from eqsat.codegen.libraries import build, load
from eqsat.lang.dtypes import width_of
from eqsat.lang.expr import Expr, digits
from eqsat.lang.traversal import domain_size, extent
from eqsat.lang.validation import counted, integer_of, list_of, require, shortened, shown

#: What every library is compiled with.
FLAGS = ("-std=c99", "-O2", "-fno-tree-vectorize", "-fno-tree-slp-vectorize")

#: The same with vector instructions, as many as this machine has.
VECTOR_FLAGS = ("-std=c99", "-O3", "-march=native")

#: Elements that a sample of points and its results may hold, so that they stay in a first-level cache of 32 KiB.
SAMPLE = 2048

#: Nanoseconds that one repetition of a measurement lasts at least.
LEAST_NS = 1_000_000

_DECLARATIONS = """
typedef void (*points_function)(int64_t count, const int64_t *const *in, void *const *out);
extern const points_function eqsat_kernels[];
void eqsat_repeat(points_function points, int64_t rounds, int64_t count, const int64_t *const *in, void *const *out);
"""

_DRIVER = """
/* Apply a kernel to the same points again and again. */
void eqsat_repeat(points_function points, int64_t rounds, int64_t count, const int64_t *const *in, void *const *out)
{
    for (int64_t round = 0; round < rounds; round++)
        points(count, in, out);
}
"""


@dataclass(frozen=True, eq=False)
class CompiledExprs:
    """Compiled expressions.

    Attributes
    ----------
    roots : tuple of Expr
        What it computes.
    variables : tuple of Expr
        Its arguments, in order; variables that no root uses may be among them.
    source : str
        Its C text: one function.
    flags : tuple of str
        What it was compiled with; a copy, or one from a pickle, is compiled again or taken from the cache.
    """

    roots: tuple[Expr, ...]
    variables: tuple[Expr, ...]
    source: str
    flags: tuple[str, ...]
    _library: Any = field(repr=False)
    _points: Any = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(compile_exprs, flags=self.flags), (self.roots, self.variables)

    def __call__(self, values: Mapping[str, ArrayLike]) -> list[NDArray[Any]]:
        """The values of the roots at the given values of the variables.

        Parameters
        ----------
        values : mapping from variable name to array_like of int
            Within the variables' ranges; broadcast against one another.

        Returns
        -------
        list of ndarray
            One per root, int64 or bool, all of the shape that the values broadcast to.

        Raises ``KeyError`` if a variable has no value, ``TypeError`` if a value is not an integer, ``ValueError`` if a
        value lies outside its variable's range, or the shapes do not broadcast.
        """
        require(values, Mapping, "the values of the variables")
        columns = self._broadcast([values_of(v, values) for v in self.variables])
        shape = columns[0].shape if columns else ()
        results = self._results(shape)
        inputs = [np.ascontiguousarray(c) for c in columns]
        self._points(prod(shape), _pointers("const int64_t *[]", inputs), _pointers("void *[]", results))
        return results

    def measure(self, repeats: int = 5, *, chained: bool = False) -> float:
        """Nanoseconds to evaluate all roots once: the median of ``repeats`` runs of at least a millisecond.

        The kernel is inlined in a loop that reads the variables from arrays and stores every root, so nothing is known
        to the compiler but the types, nothing is hoisted out of the loop, and nothing is optimised away. The points
        are runs of the domain in row-major order, spread over all of it, as many as stay in the first-level cache. Time
        is processor time: what else the machine does meanwhile does not count.

        Parameters
        ----------
        repeats : int
            How many runs, 1 or more.
        chained : bool
            Whether each evaluation waits for the last, whose first root it takes as its first variable. The time is
            then the latency from that variable to that root, with that of a store and a load.

        Raises ``ValueError`` if ``repeats`` is below 1, or a chain could leave the range of the first variable.
        """
        repeats = integer_of(repeats, "how often a measurement is repeated")
        if repeats < 1:
            raise ValueError(f"cannot repeat a measurement {repeats} times: give at least 1")
        if chained and not (self.variables and _holds(self.variables[0], self.roots[0])):
            raise ValueError("a chained measurement needs a first root whose values the first variable can take")
        columns = self._sample(max(16, SAMPLE // (len(self.variables) + len(self.roots))))
        count = len(columns[0]) if columns else 1
        results = self._results((count,))
        if chained:
            # each point reads what the one before has stored; the C code cannot know this, so it must wait for it
            columns[0] = np.resize(columns[0], count + 1)
            results[0] = columns[0][1:]
        inputs, outputs = _pointers("const int64_t *[]", columns), _pointers("void *[]", results)

        def run(rounds: int) -> int:
            start = thread_time_ns()
            self._library.eqsat_repeat(self._points, rounds, count, inputs, outputs)
            return thread_time_ns() - start

        rounds = 1
        while (elapsed := run(rounds)) < LEAST_NS // 4:
            rounds *= 4
        rounds = max(1, -(-rounds * LEAST_NS // elapsed))
        return median(run(rounds) for _ in range(repeats)) / (rounds * count)

    def _broadcast(self, columns: Sequence[NDArray[np.int64]]) -> Sequence[NDArray[np.int64]]:
        """The values of all variables, in arrays of one shape."""
        try:
            return np.broadcast_arrays(*columns)
        except ValueError:
            shapes = {str(v.value): c.shape for v, c in zip(self.variables, columns, strict=True)}
            stated = ", ".join(f"{name!r} {shape}" for name, shape in shapes.items() if shape)
            raise ValueError(f"the shapes of the values do not broadcast ({stated}): give arrays that do") from None

    def _results(self, shape: tuple[int, ...]) -> list[NDArray[Any]]:
        return [np.empty(shape, dtype=bool if root.is_bool else np.int64) for root in self.roots]

    def _sample(self, most: int) -> list[NDArray[np.int64]]:
        """Points of the domain, one array per variable: all, or up to ``most`` in 8 evenly spread runs."""
        total = domain_size(self.variables)
        if total <= most:
            flat = np.arange(total, dtype=object)
        else:
            run, runs = most // 8, 8
            starts = [(total - run) * index // (runs - 1) for index in range(runs)]
            flat = np.array([start + step for start in starts for step in range(run)], dtype=object)
        columns = []
        for variable in reversed(self.variables):
            size = extent(variable)
            columns.append((flat % size + variable.vmin).astype(np.int64))
            flat = flat // size
        return columns[::-1]


def compile_exprs(
    roots: Sequence[Expr], variables: Sequence[Expr] | None = None, *, flags: Sequence[str] = FLAGS
) -> CompiledExprs:
    """Compile ``roots`` into one function, which takes an array for each variable and returns one for each root.

    Parameters
    ----------
    roots : sequence of Expr
        Terms, computed together.
    variables : sequence of Expr, optional
        The arguments in order; all variables of the roots by name if none are given.
    flags : sequence of str
        Options of the C compiler.

    Raises
    ------
    ValueError
        If there is no root, a term does not fit 64 bits, or ``variables`` lack a variable of the roots.
    TypeError
        If an argument is of another type.
    CompileError
        If there is no C compiler, it fails, or the cache directory cannot be written.

    >>> from eqsat.lang.expr import var
    >>> i = var("i", -100, 100)
    >>> kernel = compile_exprs([i // 7, i % 7 < 3])
    >>> kernel({"i": [-1, 0, 50]})
    [array([-1,  0,  7]), array([False,  True,  True])]
    """
    return compile_many([roots], None if variables is None else [variables], flags=flags)[0]


def compile_many(
    programs: Sequence[Sequence[Expr]],
    variables: Sequence[Sequence[Expr] | None] | None = None,
    *,
    flags: Sequence[str] = FLAGS,
) -> list[CompiledExprs]:
    """Compile each list of roots into a function of its own, all in one library, with ``flags`` for the C compiler.

    ``variables`` are per kernel its arguments in order, or None for the variables of its roots sorted by name. Kernels
    that are to be compared over one domain need the same arguments.

    Raises ``ValueError`` if a term does not fit 64 bits, a kernel has no root, or its arguments lack a variable,
    ``CompileError`` if there is no C compiler, or it fails, or the cache directory cannot be written.
    """
    require(programs, Iterable, "the list of what to compile")
    if not (programs := [list_of(Expr, roots, "the expressions to compile") for roots in programs]):
        return []
    if isinstance(flags, str):
        raise TypeError(f"the options of the C compiler are given as {shown(flags)}: give a list of str")
    flags = list_of(str, flags, "the options of the C compiler")
    given = variables if variables is not None else [None] * len(programs)
    require(given, Sequence, "the arguments of the kernels")
    if len(given) != len(programs):
        number = counted(len(programs), "kernel")
        raise ValueError(f"arguments are given for {len(given)} of {number}: give a list, or None, for each")
    orders = [arguments(roots, order) for roots, order in zip(programs, given, strict=True)]
    numbered = list(enumerate(zip(programs, orders, strict=True)))
    functions = [function(roots, f"kernel{n}", order, storage="static ") for n, (roots, order) in numbered]
    library = load(build(_unit(programs, orders, functions), tuple(flags)), ffi_of(_DECLARATIONS), "eqsat_kernels")
    return [
        CompiledExprs(tuple(roots), tuple(order), functions[n].text, tuple(flags), library, library.eqsat_kernels[n])
        for n, (roots, order) in numbered
    ]


def _holds(variable: Expr, value: Expr) -> bool:
    """Whether ``variable`` can take every value of ``value``."""
    return not value.is_bool and variable.vmin <= value.vmin and value.vmax <= variable.vmax


def _unit(programs: Sequence[Sequence[Expr]], orders: Sequence[Sequence[Expr]], functions: Sequence[Function]) -> str:
    """The C file of a library: its kernels, a table of them, and the loop that measures them."""
    parts = [preamble(functions)]
    for roots, order, written in zip(programs, orders, functions, strict=True):
        parts += [written.text, points_function(roots, written.name, order)]
    entries = ", ".join(f"{written.name}_points" for written in functions)
    parts += [_DECLARATIONS, f"const points_function eqsat_kernels[] = {{{entries}}};", _DRIVER]
    return "\n".join(parts)


def as_array(name: str, given: ArrayLike) -> NDArray[Any]:
    """``given`` as an array, without a copy where it is one of another library."""
    only_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
    try:
        return np.from_dlpack(cast(Any, given)) if only_dlpack else np.asarray(given)
    except Exception as error:  # other libraries raise what they like, as for an array on a device
        reason = str(error).partition("\n")[0]
        raise ValueError(f"the input {name!r} is no array ({reason}): give a NumPy array") from None


def values_of(variable: Expr, values: Mapping[str, ArrayLike]) -> NDArray[Any]:
    """The values of one variable, refused where its range does not hold them; as int64 if that holds its range."""
    name = cast(str, variable.value)
    if name not in values:
        raise KeyError(f"no value for variable {name!r}")
    given = as_array(name, values[name])
    if not given.size:
        return given.astype(np.int64)
    # integers of more than 64 bits are objects
    if given.dtype.kind not in "biu" and not all(type(x) is int for x in given.flat):
        raise TypeError(f"the values of variable {name!r} are {given.dtype}, not integers")
    least, most = int(given.min()), int(given.max())
    if least < variable.vmin or most > variable.vmax:
        stated = shortened(digits(least if least < variable.vmin else most), 60)
        raise ValueError(f"variable {name!r} is given {stated}, outside its range [{variable.vmin}, {variable.vmax}]")
    return given.astype(np.int64 if width_of(variable.vmin, variable.vmax) else object)


def _pointers(c_type: str, arrays: Sequence[NDArray[Any]]) -> Any:
    """A C array of pointers to ``arrays``, which the caller keeps alive."""
    ffi = ffi_of(_DECLARATIONS)
    return ffi.new(c_type, [ffi.cast("void *", array.ctypes.data) for array in arrays])


@cache
def ffi_of(declarations: str) -> Any:
    """What calls the C functions of these declarations."""
    ffi = cffi.FFI()
    ffi.cdef(declarations)
    return ffi
