"""Compile expressions with the system's C compiler and run them.

A library holds any number of kernels, so that hundreds cost one start of the compiler. It is built by the compiler that
``CC`` names, or else the first of cc, gcc and clang, and loaded through cffi. It is kept in a cache
(:func:`cache_directory`) under a name made of its source, its flags and the compiler's version. One atomic rename puts
it there, so any number of processes may build the same library at once. It ends with a digest of itself, by which a
damaged one is found and built again. A library is loaded only if this user built it where nobody else may write.

By default the code is scalar (vectorisation is off): :meth:`CompiledExprs.measure` times one evaluation, not a vector
lane.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import blake2b
from math import prod
from pathlib import Path
from statistics import median
from time import thread_time_ns, time
from typing import Any, cast

import cffi
import numpy as np
from numpy.typing import ArrayLike, NDArray
from platformdirs import user_cache_dir

from eqsat.codegen.elements import C_TYPES
from eqsat.codegen.expressions import Function, arguments, function, points_function, preamble
from eqsat.codegen.nests import function as loop_function
from eqsat.codegen.schedule import optimized
from eqsat.codegen.trusted import Arrays, differs, rounds_at_will, shortened
from eqsat.egraph.engine import Budget
from eqsat.kernels.kernel import DTYPES, KERNEL_BUDGET, Kernel, flattened
from eqsat.lang.errors import CompileError, MiscompilationWarning
from eqsat.lang.expr import Expr, extent
from eqsat.lang.ops import Buffer
from eqsat.lang.sampling import domain_size
from eqsat.lang.validation import list_of, require, shown
from eqsat.theory.facts import late_after

#: What every library is compiled with.
FLAGS = ("-std=c99", "-O2", "-fno-tree-vectorize", "-fno-tree-slp-vectorize")

#: The same with vector instructions, as many as this machine has.
VECTOR_FLAGS = ("-std=c99", "-O3", "-march=native")

#: What kernels over arrays are compiled with: vectorised, and every operation rounded as it is written.
ARRAY_FLAGS = (*VECTOR_FLAGS, "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")

#: What keeps gcc from changing the order of loops, which it does at the expense of vectors; clang does not.
GCC_FLAGS = ("-fno-loop-interchange", "-fno-loop-unroll-and-jam")

#: What a kernel is compiled with that comes out wrong with those: no option that compilers are known to get wrong.
SAFE_FLAGS = ("-std=c99", "-O1", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-ffp-contract=off")

#: Points computed at a time over a domain.
BLOCK = 1024

#: Elements that a sample of points and its results may hold: they stay in a first-level cache of 32 KiB.
SAMPLE = 2048

#: Nanoseconds that one repetition of a measurement lasts at least.
LEAST_NS = 1_000_000

#: Seconds after which the C compiler is stopped, as one that hangs.
COMPILE_SECONDS = 600

#: Seconds after which a directory that a build left behind is removed: no build takes as long.
ABANDONED_SECONDS = 24 * 3600

#: The rights by which others than its owner write a file.
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

#: Bytes of the digest that ends a library; the loader does not look behind the last section.
DIGEST_SIZE = 16

_DECLARATIONS = """
typedef void (*points_function)(int64_t start, int64_t count, const int64_t *const *in, void *const *out);
extern const points_function eqsat_kernels[];
void eqsat_domain(points_function points, int64_t total, int64_t block_size, int64_t variables, const int64_t *low,
                  const int64_t *high, int64_t *at, int64_t *const *block, void *const *out);
void eqsat_repeat(points_function points, int64_t rounds, int64_t count, const int64_t *const *in, void *const *out);
"""

_DRIVERS = """
/* Apply a kernel to the points from `at` on, in row-major order, a block at a time. */
void eqsat_domain(points_function points, int64_t total, int64_t block_size, int64_t variables, const int64_t *low,
                  const int64_t *high, int64_t *at, int64_t *const *block, void *const *out)
{
    for (int64_t start = 0; start < total; start += block_size) {
        const int64_t count = total - start < block_size ? total - start : block_size;
        for (int64_t p = 0; p < count; p++) {
            for (int64_t v = 0; v < variables; v++)
                block[v][p] = at[v];
            int64_t v = variables - 1;
            for (; v >= 0 && at[v] == high[v]; v--)
                at[v] = low[v];
            if (v >= 0)
                at[v]++;
        }
        points(start, count, (const int64_t *const *)block, out);
    }
}

/* Apply a kernel to the same points again and again. */
void eqsat_repeat(points_function points, int64_t rounds, int64_t count, const int64_t *const *in, void *const *out)
{
    for (int64_t round = 0; round < rounds; round++)
        points(0, count, in, out);
}
"""

#: A forked process has none of the threads that OpenMP waits for: it goes on without them.
_ALONE = """
void omp_set_num_threads(int threads);

void eqsat_alone(void)
{
    omp_set_num_threads(1);
}
"""

#: The process that is no fork of another that has this module.
_PROCESS = os.getpid()


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

        Raises
        ------
        KeyError
            If a variable has no value.
        TypeError
            If a value is not an integer.
        ValueError
            If a value lies outside its variable's range, or the shapes do not broadcast.
        """
        columns = np.broadcast_arrays(*[_checked(v, values) for v in self.variables])
        shape = columns[0].shape if columns else ()
        results = self._results(shape)
        inputs = [np.ascontiguousarray(c) for c in columns]
        self._points(0, prod(shape), _pointers("const int64_t *[]", inputs), _pointers("void *[]", results))
        return results

    def over_domain(self, most: int = 10**8) -> list[NDArray[Any]]:
        """The values of the roots at every point of the domain.

        Parameters
        ----------
        most : int
            The most values to compute, over all roots.

        Returns
        -------
        list of ndarray
            One per root, int64 or bool, with one axis per variable in the order of ``variables``: element
            ``[a, b, ...]`` is the value where the first variable is ``vmin + a``, the second ``vmin + b``, and so on.

        Raises
        ------
        ValueError
            If there are more than ``most`` values, or more variables than an array has axes (64).

        >>> from eqsat.lang.expr import var
        >>> compile_exprs([var("i", -2, 1) * 10 + var("j", 0, 2)]).over_domain()[0]
        array([[-20, -19, -18],
               [-10,  -9,  -8],
               [  0,   1,   2],
               [ 10,  11,  12]])
        """
        shape = tuple([extent(v) for v in self.variables])
        total = prod(shape)
        if total * len(self.roots) > most:
            raise ValueError(
                f"the domain has {total} points and {len(self.roots)} roots: more than {most} values; "
                "narrow the ranges, or call the kernel on some points"
            )
        if len(shape) > 64:
            raise ValueError(f"{len(shape)} variables are more than an array has axes (64): call the kernel on points")
        results = self._results(shape)
        low = np.array([v.vmin for v in self.variables], dtype=np.int64)
        high = np.array([v.vmax for v in self.variables], dtype=np.int64)
        block_size = min(total, BLOCK)
        block = [np.empty(block_size, dtype=np.int64) for _ in self.variables]
        numbers = partial(_ffi().from_buffer, "int64_t[]")
        self._library.eqsat_domain(
            self._points,
            total,
            block_size,
            len(shape),
            numbers(low),
            numbers(high),
            numbers(low.copy()),
            _pointers("int64_t *[]", block),
            _pointers("void *[]", results),
        )
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

        Raises
        ------
        ValueError
            If ``repeats`` is below 1, or a chain could leave the range of the first variable.
        """
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


def _holds(variable: Expr, value: Expr) -> bool:
    """Whether ``variable`` can take every value of ``value``."""
    return not value.is_bool and variable.vmin <= value.vmin and value.vmax <= variable.vmax


def compile_exprs(
    roots: Sequence[Expr], variables: Sequence[Expr] | None = None, *, flags: Sequence[str] = FLAGS
) -> CompiledExprs:
    """Compile ``roots`` into one function; see :func:`compile_many`.

    Parameters
    ----------
    roots : sequence of Expr
        Terms, computed together.
    variables : sequence of Expr, optional
        The arguments in order; all variables of the roots by name if none are given.
    flags : sequence of str
        Options of the C compiler.

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
    """Compile each list of roots into a function of its own, all in one library.

    Parameters
    ----------
    programs : sequence of sequences of Expr
        The roots of each kernel.
    variables : sequence, optional
        Per kernel its arguments in order, or None for the variables of its roots sorted by name. Kernels that are to be
        compared over one domain need the same arguments.
    flags : sequence of str
        Options of the C compiler.

    Raises
    ------
    ValueError
        If a term does not fit 64 bits, a kernel has no root, or its arguments lack a variable.
    CompileError
        If there is no C compiler, or it fails, or the cache directory cannot be written.
    """
    programs = [list_of(Expr, roots, "the expressions to compile") for roots in programs]
    if not programs:
        return []
    given = variables if variables is not None else [None] * len(programs)
    orders = [arguments(roots, order) for roots, order in zip(programs, given, strict=True)]
    functions = [
        function(roots, f"kernel{index}", order, storage="static ")
        for index, (roots, order) in enumerate(zip(programs, orders, strict=True))
    ]
    library = _load(_build(_unit(programs, orders, functions), tuple(flags)), _ffi(), "eqsat_kernels")
    return [
        CompiledExprs(tuple(roots), tuple(order), written.text, tuple(flags), library, library.eqsat_kernels[index])
        for index, (roots, order, written) in enumerate(zip(programs, orders, functions, strict=True))
    ]


def _unit(programs: Sequence[Sequence[Expr]], orders: Sequence[Sequence[Expr]], functions: Sequence[Function]) -> str:
    """The C file of a library: its kernels, a table of them, and the loops that drive them."""
    parts = [preamble(functions)]
    for roots, order, written in zip(programs, orders, functions, strict=True):
        parts += [written.text, points_function(roots, written.name, order)]
    entries = ", ".join(f"{written.name}_points" for written in functions)
    parts += [_DECLARATIONS, f"const points_function eqsat_kernels[] = {{{entries}}};", _DRIVERS]
    return "\n".join(parts)


def find_compiler() -> list[str]:
    """The command of the C compiler: ``CC``, or else the first of cc, gcc and clang that is installed.

    Raises
    ------
    CompileError
        If there is none, or ``CC`` is no command.
    """
    named = os.environ.get("CC", "")
    try:
        chosen = shlex.split(named)
    except ValueError as error:
        raise CompileError(f"CC is {named!r}, which is no command ({error}): set it to that of the compiler") from None
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    if chosen:
        raise CompileError(f"the C compiler that CC names, {chosen[0]!r}, is not installed: install it or set CC")
    raise CompileError("no C compiler (cc, gcc or clang) is installed: install one, or set CC to the command of yours")


@cache
def _version(command: tuple[str, ...]) -> str:
    """What the compiler says of itself: a new version makes new libraries."""
    return _run([*command, "--version"])


@cache
def _machine(command: tuple[str, ...]) -> str:
    """What the compiler takes this machine for: a cache may be shared by several, which run different instructions."""
    return _run([*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull])


def compiler_version() -> str:
    """The first line of what the C compiler says of itself.

    Raises
    ------
    CompileError
        If there is none.
    """
    return _version(tuple(find_compiler())).partition("\n")[0]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """What Ctrl-C raises in Python is raised at the end of the block, and so is what SIGTERM raises."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in raising:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def _kill_if_failed(process: subprocess.Popen[str], failure: object, *_: object) -> None:
    if failure is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _run(command: Sequence[str], scratch: str | None = None) -> str:
    """What the compiler prints; its own files go to the directory ``scratch``."""
    environment = os.environ if scratch is None else {**os.environ, "TMPDIR": scratch}
    try:
        with ExitStack() as ending:
            # an interrupt within Popen would leave the compiler running
            with _interrupts_held():
                # a group of its own, so that what the compiler has started ends with it
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    env=environment,
                    process_group=0,
                )
                ending.enter_context(process)
                ending.push(partial(_kill_if_failed, process))
            printed, complaints = process.communicate(timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"the C compiler {command[0]!r} did not end within {COMPILE_SECONDS} seconds: check CC, or split the kernel"
        ) from None
    except OSError as error:
        raise CompileError(f"cannot run the C compiler {command[0]!r} ({error.strerror}): set CC to another") from None
    if process.returncode:
        lines = complaints.splitlines() or [f"it ended with status {process.returncode}"]
        # collect2 only says that the linker failed, which has said why
        errors = [line for line in lines if "error" in line and not line.startswith("collect2")]
        reason = (errors or lines)[0].strip()
        raise CompileError(f"the C compiler {command[0]!r} failed: {reason}: check CC and the flags")
    return printed


def cache_directory() -> Path:
    """Where libraries are kept: ``EQSAT_CACHE_DIR``, or the user's cache directory. It may be deleted at any time.

    Whoever can write there decides what this process runs. So the directory is made for this user alone. If other users
    own it or a directory above it, or may write one of them, a temporary directory is used instead, and a warning says
    why; so it is, without a warning, if the user's cache directory cannot be written, as in many containers.
    """
    chosen = os.environ.get("EQSAT_CACHE_DIR")
    # the loader of libraries looks for a name without a directory in other places
    wanted = Path(chosen).absolute() if chosen else Path(user_cache_dir("eqsat", appauthor=False))
    # a user without a home has a path from `~`, which is no directory
    if wanted.is_absolute():
        try:
            _make_private(wanted)
            # a link on the way may be changed by whoever owns it
            directory = wanted.resolve(strict=True)
            reason = _why_not_private(directory)
        except OSError:
            if chosen:
                # the first library to be written says why it cannot be
                return wanted
        else:
            if reason is None and (chosen or os.access(directory, os.W_OK)):
                return directory
            if reason is not None:
                _warn_once(
                    f"the cache directory {str(wanted)!r} is not used, as {reason}: take the right to write away from "
                    "others, or set EQSAT_CACHE_DIR to a directory of your own"
                )
    return Path(_directory_of_process().name)


@cache
def _warn_once(message: str) -> None:
    # what the module of warnings counts begins anew when some other module sets a filter
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def _make_private(directory: Path) -> None:
    """Make a directory and those above it for this user alone; those that exist stay as they are."""
    for missing in [d for d in (directory, *directory.parents) if not d.exists()][::-1]:
        missing.mkdir(mode=0o700, exist_ok=True)


def _why_not_private(directory: Path) -> str | None:
    """Who but this user and root could change what is in a directory, as a clause; None if nobody could.

    ``directory`` has no links in it. In a sticky directory, such as /tmp, others cannot remove what they do not own.
    """
    for place in (directory, *directory.parents):
        status = place.stat()
        above = place != directory
        if status.st_uid != os.geteuid() and not (above and status.st_uid == 0):
            return f"{str(place)!r} belongs to another user"
        if status.st_mode & OTHERS_WRITE and not (above and status.st_mode & stat.S_ISVTX):
            return f"other users may write {str(place)!r}"
    return None


@cache
def _directory_of_process() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="eqsat-")
    except OSError as error:
        raise CompileError(
            f"no directory for compiled libraries can be written ({error.strerror}): set EQSAT_CACHE_DIR to one"
        ) from None


def _build(source: str, flags: tuple[str, ...]) -> Path:
    """The library compiled from ``source``, from the cache if it is there."""
    compiler = find_compiler()
    machine = [_machine(tuple(compiler))] if "-march=native" in flags else []
    identity = "\0".join([source, *flags, *compiler, _version(tuple(compiler)), *machine])
    directory = cache_directory()
    library = directory / (blake2b(identity.encode(), digest_size=16).hexdigest() + ".so")
    try:
        if _is_whole(library):
            return library
        _make_private(directory)
        _remove_abandoned(directory)
        with tempfile.TemporaryDirectory(dir=directory, prefix="build-") as scratch:
            file, built = Path(scratch, "kernels.c"), Path(scratch, "kernels.so")
            file.write_text(source, encoding="utf-8")
            _run([*compiler, *flags, "-shared", "-fPIC", "-o", str(built), str(file)], scratch)
            if not built.exists():
                raise CompileError(f"the C compiler {compiler[0]!r} made no library: check CC and the flags")
            code = built.read_bytes()
            built.write_bytes(code + _digest(code))
            built.chmod(0o700)
            if library.is_dir() and not library.is_symlink():
                # a file cannot replace a directory: move that to the scratch, which is removed
                with suppress(FileNotFoundError):
                    library.rename(Path(scratch, "other"))
            os.replace(built, library)
    except OSError as error:
        raise CompileError(
            f"cannot write the cache directory {str(directory)!r} ({error.strerror}): set EQSAT_CACHE_DIR to another"
        ) from None
    return library


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=DIGEST_SIZE).digest()


def _is_whole(library: Path) -> bool:
    """Whether a library is there as this user built it."""
    code = _own_file(library)
    return len(code) > DIGEST_SIZE and code.endswith(_digest(code[:-DIGEST_SIZE]))


def _own_file(path: Path) -> bytes:
    """The content of a file that belongs to this user and that nobody else may write; empty if there is none."""
    try:
        # follow no link, and wait for no writer if it is a FIFO
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE:
                return file.read()
    except OSError:
        pass
    return b""


def _remove_abandoned(directory: Path) -> None:
    """Remove the directories of builds that were killed."""
    for scratch in directory.glob("build-*"):
        with suppress(OSError):
            if time() - scratch.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(scratch, ignore_errors=True)


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
    kernel: Kernel
    source: str
    options: dict[str, Any]
    _library: Any = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(compile_kernel, **self.options), (self.given,)

    def __call__(self, /, *, out: Mapping[str, NDArray[Any]] | None = None, **arguments: ArrayLike) -> dict[str, Any]:
        """The outputs by name.

        Parameters
        ----------
        out : mapping from str to ndarray, optional
            Arrays to store to; others are made, filled with 0.
        **arguments
            The inputs, by the names of their buffers, and the parameters. Arrays of other libraries are read where they
            are, by ``__array__`` or DLPack.

        Raises
        ------
        TypeError
            If an array or a parameter is missing or unknown, or has another element type.
        ValueError
            If an array has another shape, an output is not contiguous, not aligned, read-only or shares memory, or a
            parameter is out of range.
        """
        if arguments.keys() != self._wanted:
            raise TypeError(f"kernel {self.given.name!r} {_difference(self._wanted, arguments.keys())}")
        arrays = [_of_buffer(b, _array(b.name, arguments[b.name])) for b in self.given.inputs]
        # C has only the bytes 0 and 1 for conditions, a view of other elements may have more
        arrays = [a.view(np.uint8) != 0 if a.dtype == bool else a for a in arrays]
        arrays = [a if a.flags.c_contiguous and a.flags.aligned else a.copy() for a in arrays]
        results = self._results({} if out is None else out, arrays)
        numbers = [_number(v, arguments) for v in self.given.parameters]
        _call(self._library, [*arrays, *results.values()], numbers, self.options["parallel"])
        return results

    @cached_property
    def _wanted(self) -> set[str]:
        """The names of the arguments."""
        return {b.name for b in self.given.inputs} | {str(v.value) for v in self.given.parameters}

    def _results(self, out: Mapping[str, NDArray[Any]], inputs: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The arrays to store to: those given, which nothing else may use, and new ones."""
        if not isinstance(out, Mapping):
            raise TypeError(f"out is a {type(out).__name__}, not a mapping from the names of outputs to arrays")
        results: dict[str, NDArray[Any]] = {}
        for b in self.given.outputs:
            given = out.get(b.name)
            if given is None:
                results[b.name] = np.zeros(cast(tuple[int, ...], b.shape), dtype=DTYPES[b.element])
                continue
            if not _of_buffer(b, given).flags.carray:
                raise ValueError(f"the output {b.name!r} is not contiguous, aligned and writable: give a plain array")
            if any(np.may_share_memory(given, other) for other in (*inputs, *results.values())):
                raise ValueError(f"the output {b.name!r} shares memory with another array: give it its own")
            results[b.name] = given
        if not out.keys() <= results.keys():
            unknown = sorted(map(str, out.keys() - results.keys()))
            raise TypeError(f"kernel {self.given.name!r} has no output {', '.join(unknown)}")
        return results


def _difference(wanted: Set[str], given: Set[str]) -> str:
    missing, unknown = sorted(wanted - given), sorted(given - wanted)
    return f"lacks {', '.join(missing)}" if missing else f"takes no {', '.join(unknown)}"


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
        Whether to simplify it and choose its loops first (:func:`eqsat.codegen.schedule.optimized`).
    parallel : bool
        Whether its outermost loops run in parallel (OpenMP); in a process that was forked, on one thread.
    reassociate : bool
        Whether floating-point sums may be taken in another order, which rounds differently.
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
    if "out" in {b.name for b in kernel.inputs} | {str(v.value) for v in kernel.parameters}:
        raise ValueError(f"kernel {kernel.name!r} has an argument 'out', which is how outputs are given: rename it")
    require(budget, Budget, "a budget")
    unit = partial(_array_unit, parallel=parallel, reassociate=reassociate, lanes=lanes)
    with late_after(budget.ends()):
        compiled = optimized(kernel, reassociate=reassociate, budget=budget) if optimize else flattened(kernel)
        text, source = unit(kernel, compiled)
    order = () if "clang" in compiler_version() else GCC_FLAGS
    flags = (*ARRAY_FLAGS, *order, "-fopenmp" if parallel else "-fopenmp-simd", "-lm")
    part = shortened(compiled) if verify else None
    if part is not None:
        owner = kernel if part is compiled else part
        check = partial(_Check, source, source if part is compiled else unit(part, part)[1], owner, part, parallel)
        flags = _trusted(check, flags, (*SAFE_FLAGS, *["-fopenmp"] * parallel, "-lm"))
    library = _load(_build(source, flags), _array_ffi(), "eqsat_call")
    options = {
        "optimize": optimize,
        "parallel": parallel,
        "reassociate": reassociate,
        "lanes": lanes,
        "verify": verify,
        "budget": budget,
    }
    return Program(kernel, compiled, text, options, library)


def _array_unit(given: Kernel, compiled: Kernel, parallel: bool, reassociate: bool, lanes: int) -> tuple[str, str]:
    """The C function of a kernel, and the file of its library."""
    written = loop_function(compiled, parallel, reassociate, lanes, storage="static ")
    calls = [_array_call(given, compiled, written.name), *[_ALONE] * parallel]
    return written.text, "\n".join(["#include <math.h>\n" + preamble([written]), written.text, *calls])


def _trusted(
    check: Callable[[tuple[str, ...]], _Check], fast: tuple[str, ...], safe: tuple[str, ...]
) -> tuple[str, ...]:
    """The flags with which the compiled kernel is right."""
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
    """What a library computes, and whether it is right; the verdict is kept in a file beside the library.

    Attributes
    ----------
    source, shorter : str
        The C of the library, and of the one that is run to judge it.
    owner, part : eqsat.kernels.kernel.Kernel
        The kernel whose arguments the latter takes, and the one that it computes.
    """

    source: str
    shorter: str
    owner: Kernel
    part: Kernel
    parallel: bool
    flags: tuple[str, ...]

    @cached_property
    def _verdict(self) -> Path:
        return _build(self.source, self.flags).with_suffix(".verdict")

    @cached_property
    def _digest(self) -> str:
        return self._verdict.with_suffix(".so").read_bytes()[-DIGEST_SIZE:].hex()

    def is_right(self) -> bool:
        """Whether the library computes what the kernel says, as far as it was compared."""
        stated = _own_file(self._verdict)
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
        return _load(_build(self.shorter, self.flags), _array_ffi(), "eqsat_call")

    def run(self, arrays: Arrays, parameters: Mapping[str, int]) -> None:
        """Run it; an array that it does not use may be missing."""
        named = [arrays.get(b.name) for b in (*self.owner.inputs, *self.owner.outputs)]
        numbers = [parameters.get(str(v.value), v.vmin) for v in self.owner.parameters]
        _call(self._library, named, numbers, self.parallel)


def _call(library: Any, arrays: Sequence[NDArray[Any] | None], numbers: Sequence[int], parallel: bool) -> None:
    """Call a kernel on its arrays and parameters, in order."""
    address, new, nothing = _array_ffi().from_buffer, _array_ffi().new, _array_ffi().NULL
    pointers = new("void *[]", [nothing if a is None else address(a) for a in arrays])
    if parallel and os.getpid() != _PROCESS:
        library.eqsat_alone()
    library.eqsat_call(pointers, new("int64_t[]", numbers))


def _array_call(given: Kernel, compiled: Kernel, name: str) -> str:
    """A function of the same type for every kernel: the arrays and parameters of ``given``, inputs first.

    The compiled kernel, which C calls ``name``, may do without some of them.
    """
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


def _array(name: str, given: ArrayLike) -> NDArray[Any]:
    """``given`` as an array, without a copy where it is one of another library."""
    only_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
    try:
        return np.from_dlpack(cast(Any, given)) if only_dlpack else np.asarray(given)
    except Exception as error:  # other libraries raise what they like, as for an array on a device
        reason = str(error).partition("\n")[0]
        raise ValueError(f"the input {name!r} is no array ({reason}): give a NumPy array") from None


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


@cache
def _array_ffi() -> Any:
    ffi = cffi.FFI()
    ffi.cdef("void eqsat_call(void *const *arrays, const int64_t *numbers); void eqsat_alone(void);")
    return ffi


@cache
def _ffi() -> Any:
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    return ffi


def _load(library: Path, ffi: Any, symbol: str) -> Any:
    """The library, which defines ``symbol``."""
    try:
        loaded = ffi.dlopen(str(library))
        getattr(loaded, symbol)
    except (OSError, AttributeError, KeyError, UnicodeError) as error:
        # only what the system says, before what cffi tried next
        reason = str(error if isinstance(error, UnicodeError) else error.args[0]).partition(".  ")[0]
        raise CompileError(
            f"cannot load the compiled library {str(library)!r}: {reason}: delete it, and if that does not help, "
            "set CC or EQSAT_CACHE_DIR to another"
        ) from None
    return loaded


def _checked(variable: Expr, values: Mapping[str, ArrayLike]) -> NDArray[np.int64]:
    """The values of one variable as int64, refused where its range does not hold them."""
    name = cast(str, variable.value)
    if name not in values:
        raise KeyError(f"no value for variable {name!r}")
    given = _array(name, values[name])
    if not given.size:
        return given.astype(np.int64)
    # integers of more than 64 bits are objects
    if given.dtype.kind not in "biu" and not all(type(x) is int for x in given.flat):
        raise TypeError(f"the values of variable {name!r} are {given.dtype}, not integers")
    least, most = int(given.min()), int(given.max())
    if least < variable.vmin or most > variable.vmax:
        raise ValueError(
            f"variable {name!r} is given {least if least < variable.vmin else most}, "
            f"outside its range [{variable.vmin}, {variable.vmax}]"
        )
    return given.astype(np.int64)


def _number(parameter: Expr, arguments: Mapping[str, ArrayLike]) -> int:
    """The value of one parameter, refused where it is several."""
    value = _checked(parameter, arguments)
    if value.ndim:
        raise TypeError(f"parameter {str(parameter.value)!r} has shape {value.shape}: give one integer")
    return int(value)


def _pointers(c_type: str, arrays: Sequence[NDArray[Any]]) -> Any:
    """A C array of pointers to ``arrays``, which the caller keeps alive."""
    ffi = _ffi()
    return ffi.new(c_type, [ffi.cast("void *", array.ctypes.data) for array in arrays])
