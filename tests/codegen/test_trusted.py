"""Kernels as C compilers make them, and what is done where one gets them wrong."""

import os
import pickle
import random
import re
import shutil
import subprocess
import warnings
from itertools import batched
from pathlib import Path

import cffi
import numpy as np
import pytest

import eqsat
from eqsat.codegen import trusted
from eqsat.codegen.expressions import preamble
from eqsat.codegen.nests import function
from eqsat.codegen.programs import ARRAY_FLAGS, GCC_FLAGS, _array_call
from eqsat.kernels.kernel import DTYPES, Kernel, Store, flattened
from eqsat.kernels.simplification import optimized
from eqsat.lang.errors import CompileError, MiscompilationWarning
from eqsat.lang.expr import buffer, const, var
from eqsat.lang.functions import exp, maximum, minimum, sum_over, where

X, Y = buffer("X", "f32", (2,)), buffer("Y", "f32", (4,))
M = var("m", 0, 3)
REVERSED = Kernel("k", [Store(Y[3 - M], X[(M + 1) // 4], [M])])


def test_gcc_12_takes_lanes_of_a_comparison_for_an_offset():
    found = eqsat.compile(REVERSED, verify=False)(X=np.array([10, 11], np.float32))["Y"]
    assert found.tolist() == [11, 10, 10, 10]


FLAG = buffer("F", "bool", (4,))
LONG = buffer("X", "f32", (9,))


@pytest.mark.parametrize(
    ("place", "stays"),
    [
        (where(M < 3, 0, 1), False),
        (where(M < 3, 0, 1) + 5, False),
        (1 - where(M < 3, 0, 1), False),
        (where(M < 3, where(FLAG[M], 1, 0), 1), False),
        (where(FLAG[M], 1, 0) * where(M < 3, 1, 0), False),
        # unrolled, some iterations select what varies, and the others a neighbour
        (where(M < 2, M, where(FLAG[M], 0, 1)) + 3, False),
        # as one alternative of several
        (where(M < 2, M + 5, where(FLAG[M], 0, 1)), False),
        # any other index is gathered rightly
        (where(M < 3, 0, 4), True),
        (where(M < 3, 0, 1) + M, True),
    ],
)
def test_a_load_at_one_of_two_selected_neighbours_is_a_selection_of_loads(place, stays):
    kernel = Kernel("k", [Store(Y[M], LONG[place], [M])])
    text = function(flattened(kernel)).text
    # what is subscripted by a selection, or by the name of one
    assert bool(re.search(r"X\[(t\d|[^]]*\?)", text.partition("{")[2])) is stays
    given = {"X": np.arange(9, dtype=np.float32), "F": np.array([1, 0, 1, 1], bool)}
    given = {b.name: given[b.name] for b in kernel.inputs}
    run = eqsat.compile(kernel, optimize=False, verify=False)
    assert np.array_equal(run(**given)["Y"], kernel.reference(given)["Y"])


def test_a_selection_in_a_sum_of_64_bits_is_one_of_loads_unless_a_reduction_binds_what_it_speaks_of():
    wide, n, r = buffer("X", "f32", (2**33,)), var("n", 0, 2**32), var("r", 0, 2)
    for place, line in [
        (n + where(M < 3, 0, 1), "Y[m] = m < 3 ? t0 : t1;"),
        (n + sum_over(where(r < M, 0, 1), r, 0, 3), "acc0 += r1 < m ? 0 : 1;"),
    ]:
        text = function(flattened(Kernel("k", [Store(Y[M], wide[place], [M])]))).text
        assert line in text, text


def test_a_selection_in_a_small_index_that_is_a_sum_of_64_bits_is_one_of_loads():
    n = var("n", -(2**41), 3 - 2**41)
    kernel = Kernel("k", [Store(Y[M], LONG[n + 2**40 + where(M < 3, 0, 1) + 2**40], [M])])
    assert "Y[m] = m < 3 ? t1 : t2;" in function(flattened(kernel)).text
    given = {"X": np.arange(9, dtype=np.float32)}
    run = eqsat.compile(kernel, optimize=False, verify=False)
    assert run(**given, n=2 - 2**41)["Y"].tolist() == [2, 2, 2, 3]


def random_kernel(seed):
    """A kernel of 1 to 3 stores of 2 to 16 elements each, of any element type."""
    rng = random.Random(seed)

    def condition(v, size):
        k = rng.randrange(size + 1)
        return rng.choice([v < k, v.eq(k), v >= k, (v < k) & (v > 0), flags[v], (v * 3 + 1) % 4 < 2, ints[v] < 3])

    def place(v, size, depth=2):
        kind = rng.randrange(9 if depth else 4)
        if kind < 3:
            return v
        if kind == 3:
            return const(rng.randrange(3))
        if kind < 7:
            return where(condition(v, size), place(v, size, depth - 1), place(v, size, depth - 1))
        inner = place(v, size, depth - 1)
        low, high = inner.vmin, inner.vmax
        other = where(condition(v, size), 0, 1)
        return rng.choice(
            [(inner + 1) // 3, inner // 2, high - (inner - low), inner % 5, minimum(inner, 3), inner + other, other]
        )

    def value(v, size, element, depth=2):
        at = place(v, size)
        array = buffer(f"A_{element}", element, (24,))
        load = array[minimum(maximum(at, 0), 23)]
        if element == "bool":
            return rng.choice([load, ~load, load & flags[v], condition(v, size)])
        if element in ("i32", "i64"):
            load = load % 100
            if not depth:
                return load
        kind = rng.randrange(6) if depth else 0
        if kind < 3:
            return load
        if kind == 3:
            return where(condition(v, size), load, value(v, size, element, depth - 1))
        if kind == 4:
            return load + value(v, size, element, depth - 1)
        r = var("r", 0, 7)
        return sum_over(array[minimum(v + r, 23)] % 9 if element[0] == "i" else array[minimum(v + r, 23)], r, 0, 4)

    flags, ints = buffer("F", "bool", (16,)), buffer("I", "i32", (16,))
    size = rng.randint(2, 16)
    stores = []
    for number in range(rng.randint(1, 3)):
        if rng.random() < 0.5:
            size = rng.randint(2, 16)
        v, element = var(f"v{size}", 0, size - 1), rng.choice(list(DTYPES))
        out = buffer(f"O{number}", element, (size,))
        target = rng.choice([v, size - 1 - v, v])
        when = condition(v, size) if rng.random() < 0.2 else const(1).eq(1)
        stores.append(Store(out[target], value(v, size, element), [v], when))
    return Kernel("k", stores)


COMPILERS = [
    ("gcc", ("-O2", "-march=native")),
    ("gcc", ("-O2",)),
    ("gcc", ("-O3",)),
    ("gcc", ("-O3", "-march=native")),
    ("clang", ("-O3", "-march=native")),
]


def wrong_kernels(seeds, directory, compilers=COMPILERS):
    """Which of the random kernels differ from the evaluator, by compiler and flags; all are in one library."""
    parts, names, texts = [], [], []
    for seed in seeds:
        given = random_kernel(seed)
        kernel = optimized(given) if seed % 4 else flattened(given)
        name = f"k{seed}"
        kernel = Kernel(name, kernel.stores)
        written = function(kernel, storage="static ")
        parts.append(kernel)
        names.append(name)
        texts += [written, _array_call(kernel, kernel, written.name).replace("eqsat_call", f"call_{name}")]
    functions = texts[::2]
    table = f"void (*const table[])(void *const *, const int64_t *) = {{{', '.join(f'call_{n}' for n in names)}}};"
    body = [text if isinstance(text, str) else text.text for text in texts]
    entry = "void eqsat_call(int at, void *const *arrays, const int64_t *numbers) { table[at](arrays, numbers); }"
    source = "\n".join(["#include <math.h>\n" + preamble(functions), *body, table, entry])
    file = directory / "kernels.c"
    file.write_text(source)
    found = {}
    for number, (compiler, flags) in enumerate(compilers):
        if shutil.which(compiler) is None:
            continue
        library = directory / f"kernels{number}.so"
        plain = [f for f in ARRAY_FLAGS if f[:2] != "-O" and f != "-march=native"]
        order = GCC_FLAGS if compiler == "gcc" else ()
        command = [compiler, *plain, *order, *flags, "-shared", "-fPIC", "-o", library, file, "-lm"]
        subprocess.run(command, check=True)
        ffi = cffi.FFI()
        ffi.cdef("void eqsat_call(int at, void *const *arrays, const int64_t *numbers);")
        loaded = ffi.dlopen(str(library))
        for at, kernel in enumerate(parts):

            def run(arrays, parameters, at=at, kernel=kernel, ffi=ffi, loaded=loaded):
                named = [arrays[b.name] for b in (*kernel.inputs, *kernel.outputs)]
                loaded.eqsat_call(at, ffi.new("void *[]", [ffi.from_buffer(a) for a in named]), ffi.NULL)

            if trusted.differs(kernel, run):
                found.setdefault((compiler, *flags), []).append(names[at])
    return found


@pytest.mark.parametrize("optimize", [False, True])
def test_an_element_that_is_stored_to_again_has_its_last_value(optimize: bool):
    """Stores of these kernels were dropped by gcc 12, or came in another order; of large ones that was not found."""
    i, u = var("i", 0, 15), var("u", 0, 31)
    j, v = var("j", 0, 30), var("v", 0, 15)
    large = var("large", 0, 4999)
    x, y = buffer("X", "f64", (256,)), buffer("Y", "f64", (5128,))
    for lanes, store in (
        (1, Store(y[j + v], x[v * 2], [j, v])),
        (1, Store(y[large + v], x[v * 2], [large, v])),
        (4, Store(y[i * 2 + u], x[i * 8 + u + 1], [i, u])),
        (16, Store(y[j + v], x[j * 2] + x[v], [j, v])),
    ):
        kernel = Kernel("overlapping", [store])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = eqsat.compile(kernel, lanes=lanes, optimize=optimize)
        arrays = {"X": np.arange(256.0)}
        assert np.array_equal(run(**arrays)["Y"], kernel.reference(arrays)["Y"])


def test_random_tiny_kernels_are_right_with_every_compiler(tmp_path, request):
    """As many as ``--kernels`` says, 40 by default, a hundred to a library."""
    for batch in batched(range(request.config.getoption("--kernels")), 100):
        # a library that is loaded may not be written again
        directory = tmp_path / str(batch[0])
        directory.mkdir()
        assert wrong_kernels(batch, directory) == {}


def test_kernels_that_divide_by_elements_are_compiled():
    i, x, y = var("i", 0, 7), buffer("X", "i32", (8,)), buffer("Y", "i32", (8,))
    run = eqsat.compile(Kernel("k", [Store(y[i], i // x[i], [i])]), optimize=False)
    assert run(X=np.full(8, 2, np.int32))["Y"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: Path(path).write_text("right")])
def test_what_stands_in_the_place_of_a_verdict_is_not_believed(tmp_path, monkeypatch, put):
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    i, x, y = var("i", 0, 7), buffer("X", "i32", (8,)), buffer("Y", "i32", (8,))
    kernel = Kernel("k", [Store(y[i], x[7 - i], [i])])
    eqsat.compile(kernel)
    (verdict,) = (tmp_path / "cache").glob("*.verdict")
    verdict.unlink()
    put(verdict)
    assert eqsat.compile(kernel)(X=np.arange(8, dtype=np.int32))["Y"].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A function that makes ``CC`` a compiler that changes its input by sed if its options match."""

    def made(options, sed):
        script = tmp_path / f"cc{len(list(tmp_path.iterdir()))}"
        script.write_text(
            "#!/bin/sh\nfor last; do :; done\n"
            f'case "$*" in {options}) case "$last" in *.c) sed -i "{sed}" "$last";; esac;; esac\nexec gcc "$@"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("CC", str(script))
        monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))

    return made


A, B, I = buffer("A", "f32", (8,)), buffer("B", "f32", (8,)), var("i", 0, 7)  # noqa: E741
DOUBLED = Kernel("doubled", [Store(B[I], A[I] * 2.0, [I])])
ONES = np.ones(8, np.float32)
ANYTHING, VECTORS = "*", "*-O3*"


@pytest.mark.parametrize(
    "sed",
    ["s/2.0f/3.0f/", "s/i < 8/i < 7/", "s/i < 8/i < 9/", "s/B.i. =/B[7 - i] =/", "s/A.i. /A[i - 1] /"],
    ids=["value", "too few", "behind the end", "elsewhere", "before the start"],
)
def test_a_kernel_that_the_compiler_gets_wrong_is_compiled_with_safer_options(compiler, sed):
    compiler(VECTORS, sed)
    for _ in range(2):
        # the verdict is kept, and told again
        with pytest.warns(MiscompilationWarning, match="got kernel 'doubled' wrong"):
            run = eqsat.compile(DOUBLED)
        assert run(A=ONES)["B"].tolist() == [2.0] * 8


def test_a_kernel_that_is_wrong_with_every_option_is_refused_by_the_name_of_the_compiler(compiler):
    compiler(ANYTHING, "s/2.0f/3.0f/")
    with pytest.raises(
        CompileError, match=r"the C compiler '.*cc0' gets kernel 'doubled' wrong with every option: set CC"
    ):
        eqsat.compile(DOUBLED)
    run = eqsat.compile(DOUBLED, verify=False)
    assert run(A=ONES)["B"].tolist() == [3.0] * 8
    assert pickle.loads(pickle.dumps(run))(A=ONES)["B"].tolist() == [3.0] * 8


def test_the_kernel_runs_for_its_verdict_only_once(tmp_path, monkeypatch):
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    eqsat.compile(DOUBLED)
    (library,) = tmp_path.glob("*.so")
    (verdict,) = tmp_path.glob("*.verdict")
    assert verdict.stem == library.stem
    with monkeypatch.context() as patched:
        patched.setattr("eqsat.codegen.programs.differs", lambda *_: pytest.fail("it ran again"))
        eqsat.compile(DOUBLED)
    # one for another library, or none at all, does not count
    for text in (f"{'0' * 32} wrong\n", "", "right"):
        verdict.write_text(text)
        eqsat.compile(DOUBLED)
        assert verdict.read_text().split()[1] == "right"


def test_a_kernel_with_more_steps_is_compared_with_shorter_outer_loops(compiler):
    n = 4096
    a, b = buffer("A", "f32", (n,)), buffer("B", "f32", (64, n))
    i, j, k = var("i", 0, 63), var("j", 0, n - 1), var("k", 0, n - 1)
    kernel = flattened(Kernel("rows", [Store(b[i, j], sum_over(a[k] * a[j], k, 0, n), [i, j])]))
    part = trusted.comparable_part(kernel)
    (store,) = part.stores
    assert [v.vmax + 1 for v in store.over] == [2, 1024]
    assert (part.inputs, part.outputs) == (kernel.inputs, kernel.outputs)
    compiler(VECTORS, "s/ += / -= /")
    with pytest.warns(MiscompilationWarning):
        eqsat.compile(kernel, optimize=False)


def test_one_reduction_beyond_all_limits_and_arrays_beyond_memory_are_not_compared():
    r = var("r", 0, 2**40)
    assert trusted.comparable_part(Kernel("k", [Store(B[0], sum_over(A[r % 8], r, 0, 2**40))])) is None
    huge, g = buffer("G", "f32", (2**26,)), var("g", 0, 2**26 - 1)
    assert trusted.comparable_part(Kernel("k", [Store(huge[g], 1.0, [g])])) is None


def test_loads_outside_of_their_arrays_and_roundings_of_the_library_are_no_errors_of_the_compiler():
    outside = Store(B[I], A[I * 3 - 4], [I])
    # the evaluator took an element of the edge for one outside, C takes 0
    scattered = Store(B[minimum(7, maximum(0, buffer("P", "i32", (8,))[I * 3 - 4]))], A[I], [I])
    decided = Store(B[I], where(exp(A[I]) < exp(A[7 - I] + 0.125), 1.0, 2.0), [I])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for store in (outside, scattered, decided):
            eqsat.compile(Kernel("k", [store]))


@pytest.mark.parametrize("size", [8, 2**20])
def test_values_that_overflow_where_they_are_stored_give_no_warning(size):
    d, b, i = buffer("D", "f64", (size,)), buffer("B", "f32", (size,)), var("i", 0, size - 1)
    kernel = Kernel("k", [Store(b[i], (d[i] * d[i] + 1.0) * 1e300, [i])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = eqsat.compile(kernel)(D=np.ones(size))["B"]
        assert np.isinf(found).all()
        assert np.array_equal(kernel.reference({"D": np.ones(size)})["B"], found)


def test_the_command_line_can_leave_the_comparison_out(compiler, tmp_path, eqsat):
    compiler(ANYTHING, "s/2.0f/3.0f/")
    file = tmp_path / "kernels.py"
    file.write_text(
        "from eqsat import Kernel, Store, buffer, var\n"
        "a, b, i = buffer('A', 'f32', (8,)), buffer('B', 'f32', (8,)), var('i', 0, 7)\n"
        "doubled = Kernel('doubled', [Store(b[i], a[i]*2.0, [i])])\n"
    )
    assert "gets kernel 'doubled' wrong with every option" in eqsat("run", str(file))[2]
    assert "differs from NumPy's result" in eqsat("run", str(file), "--no-verify")[2]
