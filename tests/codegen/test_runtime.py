"""Compiled kernels: equal to the reference semantics everywhere, cached, and safe under concurrent builds."""

from __future__ import annotations

import copy
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bool_expressions, expressions, grid

from eqsat import Kernel, Store
from eqsat.codegen import libraries, runtime
from eqsat.codegen.libraries import cache_directory, find_compiler
from eqsat.codegen.programs import compile_kernel
from eqsat.codegen.runtime import FLAGS, compile_exprs, compile_many
from eqsat.lang.errors import CompileError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import sum_over
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables

#: Options added to every compilation of a property test: how the sanitizer's run is asked for.
EXTRA = tuple(os.environ.get("EQSAT_TEST_FLAGS", "").split())
QUICK = ("-std=c99", "-O0")
I32 = (-(2**31), 2**31 - 1)
I64 = (-(2**63), 2**63 - 1)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQSAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


Case = tuple[Expr, list[Expr]]


def agree(cases: list[Case], well_defined: bool = True) -> None:
    """Compare compiled code with the reference at every point; where that is unspecified, with the bounds."""
    kernels = compile_many([[root] for root, _ in cases], flags=[*FLAGS, *EXTRA])
    for (root, domain), kernel in zip(cases, kernels, strict=True):
        points = grid(domain)
        (expected,) = evaluate([root], points, total=not well_defined)
        (called,) = kernel(points)
        assert called.dtype == expected.dtype
        assert root.vmin <= called.min()
        assert called.max() <= root.vmax
        if well_defined:
            assert np.array_equal(np.broadcast_to(expected, called.shape), called), kernel.source


@settings(max_examples=12)
@given(st.lists(expressions() | bool_expressions(), min_size=8, max_size=24))
def test_random_expressions_equal_their_evaluation(cases: list[Case]) -> None:
    agree(cases)


@settings(max_examples=6)
@given(st.lists(expressions(zero_divisors=True) | bool_expressions(zero_divisors=True), min_size=8, max_size=24))
def test_random_zero_divisors_do_not_trap(cases: list[Case]) -> None:
    with np.errstate(all="ignore"):
        agree(cases, well_defined=False)


DIVISORS = [-(2**31), -7, -4, -2, -1, 1, 2, 3, 7, 8, 2**30, 2**31 - 1]


@pytest.mark.parametrize("op", ["x // y", "x % y", "tdiv(x, y)", "tmod(x, y)"])
def test_division_tables(op: str) -> None:
    """Each range of the dividend, which decides how it is written, by each literal divisor, and by a variable one."""
    cases: list[Case] = []
    ranges = [(-20, 20), (0, 20), (-20, -1), (I32[0], I32[0] + 20), (I32[1] - 20, I32[1] + 1)]
    # what a product and a shift must get right is next to the ends of a long range
    ranges += [(-(2**40), -(2**40) + 20), (2**62 - 20, 2**62)]
    for low, high in ranges:
        x = var("x", low, high)
        for divisor in [const(d) for d in DIVISORS] + [var("y", 1, 9), var("y", -9, -1)]:
            root = parse(op, {"x": x, "y": divisor})
            cases.append((root, variables([root])))
    agree(cases)


ENDS = [
    ("x // y", I32[0], -1, 2**31),
    ("x % y", I32[0], -1, 0),
    ("tmod(x, y)", I32[0], -1, 0),
    ("x % y", I64[0], -1, 0),
    ("tmod(x, y)", I64[0], -1, 0),
    ("x // y", I64[0], 3, I64[0] // 3),
    ("x % y", I64[0], 3, I64[0] % 3),
    ("x // y", I64[1], -2, I64[1] // -2),
    ("tdiv(x, y)", I64[0], 2, -(2**62)),
    ("x // y", I64[0], I64[0], 1),
    ("x % y", I64[1], I64[0], -1),
    ("shl(x, y)", -1, 63, I64[0]),
    ("shl(x, y)", -1, 31, I32[0]),
    ("shr(x, y)", -5, 63, -1),
    ("shr(x, y)", 5, 40, 0),
    ("x & y", I64[0], -1, I64[0]),
    ("x & y", -1, I32[1], I32[1]),
    ("x | y", I32[0], I64[1], -(2**31) | I64[1]),
    ("x ^ y", I64[0], I64[1], -1),
    ("x ^ y", I32[0], 2**31, -(2**32)),
    ("~x & y", I64[0], I64[1], I64[1]),
    ("-x + y*0", I32[0], 1, 2**31),
    ("x - y", I64[0], -1, I64[0] + 1),
    ("x + y", I32[1], 1, 2**31),
    ("x*y", I32[0], I32[0], 2**62),
    ("min(x, y)", I64[0], I64[1], I64[0]),
    ("x // 9223372036854775807 % 7 + y", I64[0], 0, 5),
    ("x % 4611686018427387904 + y", -1, 0, 2**62 - 1),
]


@pytest.mark.parametrize("literal", [False, True])
def test_values_at_the_ends_of_the_widths(literal: bool) -> None:
    roots = [parse(text, {"x": var("x", x, x), "y": const(y) if literal else var("y", y, y)}) for text, x, y, _ in ENDS]
    kernels = compile_many([[root] for root in roots], flags=[*FLAGS, *EXTRA])
    got = [int(kernel({"x": x, "y": y})[0]) for kernel, (_, x, y, _) in zip(kernels, ENDS, strict=True)]
    assert got == [expected for *_, expected in ENDS]


def test_a_division_that_a_gate_excludes_does_not_trap() -> None:
    x, y = var("x", 100, 120), var("y", -2, 3)
    for division in ("x // y", "x % y", "tdiv(x, y)", "tmod(x, y)"):
        quotient = parse(division, {"x": x, "y": y})
        # used by two roots, so it is computed before the condition is known
        roots = [parse("where(y != 0, q, 0)", {"y": y, "q": quotient}), quotient + 1]
        points = grid([x, y])
        gated, _ = compile_exprs(roots)(points)
        assert np.array_equal(gated, evaluate(roots[:1], points)[0])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 0), (-3, 2)])
def test_values_at_zero_divisors_stay_within_bounds(low: int, high: int) -> None:
    x, y = var("x", 2**30, 2**30 + 3), var("y", low, high)
    agree([(parse(f"{op} - 7", {"x": x, "y": y}), [x, y]) for op in ("x // y", "tdiv(x, y)")], False)


@pytest.mark.skipif("EQSAT_TEST_FLAGS" in os.environ, reason="this is the sanitizer's run")
def test_no_undefined_behaviour() -> None:
    sanitizer = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    try:
        compile_exprs([const(1)], flags=[*FLAGS, *sanitizer])
    except CompileError:
        pytest.skip("the C compiler has no sanitizer for undefined behaviour")
    chosen = "random or tables or ends_of_the_widths"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen],
        env={**os.environ, "EQSAT_TEST_FLAGS": " ".join(["-O0", *sanitizer])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_source_compiles_without_warnings() -> None:
    x, y = var("x", -9, 9), var("y", 0, 2**40)
    roots = [x // 7 + y, (x % 8 < 3) & ((y < 5) | ~(x < 1)), -x * 3 - (y - x) % 11, (x < 1).eq(y < 2)]
    compile_exprs(roots, flags=[*FLAGS, "-Wall", "-Wextra", "-Wpedantic", "-Werror"])


def test_values_broadcast() -> None:
    i, j = var("i", 0, 9), var("j", 0, 9)
    total, less, seven = compile_exprs([i * 10 + j, i < j, const(7)])({"i": [[1], [2]], "j": [3, 4, 5], "unused": 0})
    assert total.tolist() == [[13, 14, 15], [23, 24, 25]]
    assert less.tolist() == [[True] * 3, [True] * 3]
    assert less.dtype == bool
    assert seven.tolist() == [[7] * 3] * 2


def test_kernels_without_variables_or_points() -> None:
    (seven,) = compile_exprs([const(7)])({})
    assert seven.shape == ()
    assert seven == 7
    assert compile_exprs([const(7)]).measure(1) > 0
    assert compile_exprs([var("i", 0, 9) + 1])({"i": []})[0].shape == (0,)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, KeyError, "no value for variable 'i'"),
        ({"i": [3, 10]}, ValueError, r"'i' is given 10, outside its range \[0, 9\]"),
        ({"i": np.uint64(2**64 - 1)}, ValueError, "outside its range"),
        ({"i": 0.5}, TypeError, "'i' are float64, not integers"),
    ],
)
def test_bad_values_are_refused(values: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compile_exprs([var("i", 0, 9)])(values)  # type: ignore[arg-type]


def test_a_kernel_may_be_called_by_several_threads() -> None:
    i, values = var("i", -50, 50), np.arange(-50, 51)
    kernel = compile_exprs([i // 7], [i], flags=QUICK)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: kernel({"i": values})[0], range(2000)))
    finally:
        sys.setswitchinterval(before)
    assert all(np.array_equal(each, values // 7) for each in found)


J, W = var("j", 0, 9), var("w", 0, 10**5000)
SUM = var("i", 0, 9) + J

#: What is no argument, one line each.
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: compile_exprs([SUM], 3), TypeError, "the arguments of a function are given as 3: give a list of Expr"),
    (lambda: compile_exprs([SUM], ["i", "j"]), TypeError, r"given as \['i', 'j'\]: give a list of Expr"),
    (lambda: compile_exprs([J], [J, J + 1]), TypeError, r"'j \+ 1' is among the arguments of a function: give var"),
    (lambda: compile_exprs([W % 7]), ValueError, r"the term 'w' has range \[0, 0x31e2.*\.\.\.\], which no 64-bit"),
    (lambda: compile_exprs([J])({"j": W.vmax}), ValueError, r"'j' is given 0x31e2.*\.\.\., outside its range"),
    (lambda: compile_exprs([J])(None), TypeError, "the values of the variables must be a Mapping, not None"),
    (lambda: compile_exprs([SUM])({"i": [1, 2], "j": [1, 2, 3]}), ValueError, r"\('i' \(2,\), 'j' \(3,\)\): give arr"),
    (lambda: compile_exprs([J], flags="-O2"), TypeError, "the C compiler are given as '-O2': give a list of str"),
    (lambda: compile_exprs([J], flags=[2]), TypeError, r"the C compiler are given as \[2\]: give a list of str"),
    (lambda: compile_exprs([J]).measure(1.5), TypeError, "is repeated is given as 1.5: give an integer"),
    (lambda: compile_many(None), TypeError, "the list of what to compile must be an Iterable, not None"),
    (
        lambda: compile_many([[J], [J]], [[J]]),
        ValueError,
        "arguments are given for 1 of 2 kernels: give a list, or None",
    ),
    (lambda: compile_exprs([sum_over(J * J, J, 0, 9).args[0]]), ValueError, r"'r1\*r1' has 'r1', the index of no"),
]


@pytest.mark.parametrize(("make", "error", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refused_with_one_line(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_hundreds_of_roots() -> None:
    i, j = var("i", 0, 63), var("j", 0, 63)
    roots = [((i * 64 + j) // (n + 1)) % (n + 3) for n in range(500)]
    points = {"i": [0, 13, 63], "j": [63, 5, 1]}
    for got, expected in zip(compile_exprs(roots, flags=QUICK)(points), evaluate(roots, points), strict=True):
        assert np.array_equal(got, expected)


def test_terms_thousands_deep() -> None:
    deep = i = var("i", 0, 100)
    for step in range(5000):
        deep = (deep + step) % 1009 if step % 3 else -deep - step
    points = {"i": np.arange(i.vmax + 1)}
    assert np.array_equal(compile_exprs([deep], flags=QUICK)(points)[0], evaluate([deep], points)[0])


def test_measured_time_grows_with_the_work() -> None:
    i, n = var("i", 0, 2**20), var("n", 1, 99)
    cheap, dear = compile_many([[i + n], [sum(((i + k) // (n + k) for k in range(20)), const(0))]])
    assert 0 < 3 * cheap.measure(3) < dear.measure(3)
    with pytest.raises(ValueError, match="give at least 1"):
        cheap.measure(0)


def test_a_measurement_samples_the_whole_of_a_huge_domain() -> None:
    kernel = compile_exprs([var("a", *I64) // 7 + var("b", *I32) % 3 + var("c", 2, 2)])
    a, b, c = kernel._sample(100)
    assert a[0] == I64[0]
    assert a[-1] == I64[1]
    assert b.min() == I32[0]
    assert len(a) == len(b) == len(c) <= 100
    assert kernel.measure(1) > 0


def test_many_programs_share_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    i = var("i", 0, 9)
    kernels = compile_many([[i * k, i % (k + 1)] for k in range(50)], flags=QUICK)
    assert [int(kernel({"i": 9})[0]) for kernel in kernels] == [9 * k for k in range(50)]
    assert len(list(tmp_path.iterdir())) == 1
    assert compile_many([]) == []


def logging_compiler(directory: Path) -> tuple[str, Path]:
    """A command that compiles and notes each compilation in a file."""
    log, script = directory / "log", directory / "compiler"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo run >> {log}\nexec {find_compiler()[0]} "$@"\n')
    script.chmod(0o755)
    return str(script), log


def test_a_cached_library_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, log = logging_compiler(tmp_path)
    monkeypatch.setenv("CC", command)
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    root = var("i", 0, 9) + 1
    for _ in range(2):
        assert compile_exprs([root])({"i": 3})[0] == 4
    assert log.read_text() == "run\n"
    compile_exprs([root], flags=QUICK)
    assert log.read_text() == "run\nrun\n"


def test_a_kernel_can_be_copied_and_pickled() -> None:
    kernel = compile_exprs([var("i", 0, 9) + 1], flags=QUICK)
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other.flags == kernel.flags
        assert other({"i": 3})[0] == 4


#: Prints 135.
SCRIPT = (
    "from eqsat.lang.expr import var\nfrom eqsat.codegen.runtime import compile_exprs\n"
    "print(sum(compile_exprs([var('i', 0, 9) * 3])({'i': range(10)})[0]))"
)


def test_two_processes_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "EQSAT_CACHE_DIR": str(tmp_path / "new" / "cache")}
    runs = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [run.communicate()[0] for run in runs] == ["135\n"] * 3
    assert [path.suffix for path in (tmp_path / "new" / "cache").iterdir()] == [".so"]


@pytest.mark.parametrize("damage", ["empty", "truncated", "overwritten", "longer"])
def test_a_damaged_library_is_built_again(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader does not look: it would kill the process, so another one loads what is damaged."""
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    compile_exprs([var("i", 0, 9) * 3])
    (library,) = tmp_path.iterdir()
    whole = library.read_bytes()
    changed = {
        "empty": b"",
        "truncated": whole[: len(whole) // 4],
        "overwritten": whole[:64] + b"\xff" * 64 + whole[128:],
        "longer": whole + b"\0",
    }
    library.unlink()
    library.write_bytes(changed[damage])
    ran = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert ran.stdout == "135\n"
    assert list(tmp_path.iterdir()) == [library]
    assert library.read_bytes() != changed[damage]


@pytest.mark.parametrize("kind", ["only a digest", "FIFO", "directory", "link", "written by others"])
def test_what_is_no_library_of_ours_is_built_again(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is only a digest was loaded, a FIFO waited for, a directory an error."""
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    compile_exprs([const(5)], flags=QUICK)
    (library,) = (tmp_path / "cache").iterdir()
    whole = library.read_bytes()
    before = library.stat().st_ino
    library.rename(tmp_path / "kept")
    if kind == "only a digest":
        library.write_bytes(libraries.digest(b""))
    elif kind == "FIFO":
        os.mkfifo(library)
    elif kind == "directory":
        library.mkdir()
        (library / "file").write_text("")
    elif kind == "link":
        library.symlink_to(tmp_path / "kept")
    else:
        library.write_bytes(whole)
        library.chmod(0o666)
    assert compile_exprs([const(5)], flags=QUICK)({})[0] == 5
    assert list((tmp_path / "cache").iterdir()) == [library]
    assert not library.is_symlink()
    assert library.stat().st_ino != before
    assert library.stat().st_mode == 0o100700


def test_what_is_made_for_libraries_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        compile_exprs([const(5)], flags=QUICK)
    finally:
        os.umask(before)
    made = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


def plant(directory: Path, built: Path) -> Path:
    """A library with a valid digest for the constant 5, which computes another; ``built`` holds what it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQSAT_CACHE_DIR", str(built))
        compile_exprs([const(5)], flags=QUICK)
        (honest,) = built.iterdir()
        compile_exprs([const(666)], flags=QUICK)
        (other,) = set(built.iterdir()) - {honest}
    directory.mkdir(parents=True)
    library = directory / honest.name
    library.write_bytes(other.read_bytes())
    return library


#: The directory that is used, the one that others own or may write, its mode, and what the warning says of it.
NOT_PRIVATE = [
    ("cache", "cache", 0o777, "other users may write"),
    ("cache", "cache", 0o770, "other users may write"),
    ("cache", "cache", 0o1777, "other users may write"),
    ("above/cache", "above", 0o777, "other users may write"),
    ("link", "cache", 0o777, "other users may write"),
    ("cache", "cache", None, "belongs to another user"),
    ("above/cache", "above", None, "belongs to another user"),
]


@pytest.mark.parametrize(("used", "open_to_others", "mode", "reason"), NOT_PRIVATE)
@pytest.mark.parametrize("chosen", [True, False])
def test_a_library_planted_where_others_may_write_is_not_loaded(
    used: str,
    open_to_others: str,
    mode: int | None,
    reason: str,
    chosen: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = tmp_path / used
    if used == "link":
        directory.symlink_to(tmp_path / "cache")
    library = plant(directory.resolve(), tmp_path / "built")
    monkeypatch.setattr(libraries, "user_cache_dir", lambda name, appauthor: str(directory))
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(directory) if chosen else "")
    # what was planted is loaded where only this user may write
    assert compile_exprs([const(5)], flags=QUICK)({})[0] == 666
    if mode is not None:
        (tmp_path / open_to_others).chmod(mode)
    elif os.geteuid() == 0:
        os.chown(tmp_path / open_to_others, 65534, -1)
    else:
        pytest.skip("only root can give a directory away")
    with pytest.warns(RuntimeWarning, match=f"is not used, as .*{reason}") as warned:
        assert compile_exprs([const(5)], flags=QUICK)({})[0] == 5
    assert "\n" not in str(warned[0].message)
    assert "set EQSAT_CACHE_DIR to a directory of your own" in str(warned[0].message)
    assert [*library.parent.iterdir()] == [library]


def test_a_directory_of_ours_in_a_sticky_one_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    compile_exprs([const(5)], flags=QUICK)
    assert len([*(tmp_path / "cache").iterdir()]) == 1


def test_what_killed_builds_left_behind_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    for name, age in (("build-old", 2 * 24 * 3600), ("build-running", 60), ("other", 2 * 24 * 3600)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernels.c").write_text("")
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    compile_exprs([const(1)], flags=QUICK)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".so") == ["build-running", "other"]


def waiting_compiler(directory: Path) -> Path:
    """A command that starts another, which says in the file ``started`` that it runs and waits; and it waits too."""
    started, script = directory / "started", directory / "compiler"
    inner = f"echo $$ > {started}.new; mv {started}.new {started}; exec sleep 600"
    script.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && exec echo some\nsh -c '{inner}' &\nwait\n")
    script.chmod(0o755)
    return script


def goes_on(started: Path) -> bool:
    """Whether it still runs; what was killed may do so for a moment."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{int(started.read_text())}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state.rpartition(")")[2].split()[0] in "ZX":
            return False
        time.sleep(0.01)
    return True


def test_an_interrupted_compilation_leaves_nothing(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CC": str(waiting_compiler(tmp_path)),
        "EQSAT_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }
    run = subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stderr=subprocess.PIPE, text=True)
    started = tmp_path / "started"
    while not started.exists():
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in run.communicate(timeout=60)[1]
    assert not goes_on(started)
    assert not list((tmp_path / "cache").iterdir())


def test_an_interrupt_while_the_compiler_starts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = subprocess.Popen
    started = tmp_path / "started"

    def interrupted(command: list[str], **options: Any) -> subprocess.Popen[str]:
        process = starts(command, **options)
        if "--version" not in command:
            while not started.exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setenv("CC", str(waiting_compiler(tmp_path)))
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_exprs([const(1)])
    assert not goes_on(started)
    assert not list((tmp_path / "cache").iterdir())


def test_a_compiler_that_hangs_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", str(waiting_compiler(tmp_path)))
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "COMPILE_SECONDS", 1)
    with pytest.raises(CompileError, match=r"compiler' did not end within 1 seconds: check CC"):
        compile_exprs([const(1)])
    assert not goes_on(tmp_path / "started")
    assert not list((tmp_path / "cache").iterdir())


def test_the_compiler_keeps_its_files_beside_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\necho "$TMPDIR" >> {tmp_path}/log\nexec {find_compiler()[0]} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    compile_exprs([const(1)], flags=QUICK)
    assert Path((tmp_path / "log").read_text().splitlines()[-1]).name.startswith("build-")


def test_a_missing_compiler_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(CompileError, match="'no-such-compiler', is not installed: install it or set CC"):
        compile_exprs([const(1)])
    monkeypatch.setenv("CC", "'cc")
    with pytest.raises(CompileError, match=r"CC is \"'cc\", which is no command \(No closing quotation\): set it to"):
        compile_exprs([const(1)])
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompileError, match=r"no C compiler .* is installed: install one, or set CC"):
        compile_exprs([const(1)])


def test_a_compiler_that_fails_is_one_line() -> None:
    with pytest.raises(CompileError, match=r"failed: .*no-such-option") as raised:
        compile_exprs([const(1)], flags=["--no-such-option"])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 1", "failed: it ended with status 1: check CC and the flags"),
        ("exit 0", "made no library: check CC and the flags"),
        ("echo no space left >&2; echo collect2: error: ld failed >&2; exit 1", "failed: no space left: check CC"),
        (
            "echo ld: cannot find -lomp >&2; echo clang: error: linker command failed >&2; exit 1",
            "failed: ld: cannot find -lomp: check CC",
        ),
        (r"printf '\377 error' >&2; exit 1", "failed: \ufffd error: check CC and the flags"),
        ('while [ "$2" ]; do [ "$1" != -o ] || echo text > "$2"; shift; done', "file too short: delete it, and if"),
    ],
)
def test_a_compiler_that_is_none_is_one_line_with_the_remedy(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "compiler"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    with pytest.raises(CompileError, match=re.escape(message)) as raised:
        compile_exprs([const(1)])
    assert "\n" not in str(raised.value)


def test_a_library_that_is_another_is_one_line_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    (tmp_path / "other.c").write_text("int other;")
    subprocess.run([*find_compiler(), "-shared", "-o", tmp_path / "other.so", tmp_path / "other.c"], check=True)
    monkeypatch.setattr(runtime, "build", lambda source, flags: tmp_path / "other.so")
    with pytest.raises(CompileError, match=r"undefined symbol: eqsat_kernels: delete it"):
        compile_exprs([const(1)])


def test_a_cache_for_several_machines_has_libraries_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path))
    for machine in ("one", "another"):
        monkeypatch.setattr(libraries, "_machine", lambda command, machine=machine: machine)
        compile_exprs([const(1)], flags=QUICK)
        compile_exprs([const(1)], flags=runtime.VECTOR_FLAGS)
    assert len(list(tmp_path.iterdir())) == 3


def test_the_cache_may_be_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQSAT_CACHE_DIR", ".")
    assert compile_exprs([const(5)])({})[0] == 5


def test_an_unwritable_cache_is_one_line_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(CompileError, match=r"cannot write the cache directory .*set EQSAT_CACHE_DIR"):
        compile_exprs([const(1)])
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / ("long" * 100)))
    with pytest.raises(CompileError, match=r"cannot write the cache directory .*set EQSAT_CACHE_DIR"):
        compile_exprs([const(1)])


def test_the_cache_is_the_users_if_it_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQSAT_CACHE_DIR")
    usual = tmp_path / "home" / "eqsat"
    monkeypatch.setattr(libraries, "user_cache_dir", lambda name, appauthor: str(usual))
    assert cache_directory() == usual
    usual.rmdir()
    usual.parent.rmdir()
    usual.parent.write_text("no directory")
    assert usual.parent not in cache_directory().parents
    assert compile_exprs([const(3)])({})[0] == 3
    assert any(cache_directory().glob("*.so"))


def test_a_user_without_a_home_has_no_directory_called_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQSAT_CACHE_DIR")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(libraries, "user_cache_dir", lambda name, appauthor: "~/.cache/eqsat")
    assert cache_directory().is_absolute()
    assert not list(tmp_path.iterdir())


def test_a_process_without_a_cache_removes_its_directory_and_its_forks_do_not(tmp_path: Path) -> None:
    script = (
        "import os; from pathlib import Path; from eqsat.codegen.libraries import cache_directory\n"
        "place = cache_directory(); child = os.fork()\n"
        "if child: os.waitpid(child, 0); print(place.is_dir(), place)"
    )
    changed = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc", "TMPDIR": str(tmp_path)}
    environment = {name: value for name, value in os.environ.items() if name != "EQSAT_CACHE_DIR"} | changed
    words = [sys.executable, "-X", "dev", "-c", script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert (done.stdout.split()[0], done.stderr) == ("True", "")
    assert not list(tmp_path.iterdir())


def test_no_directory_at_all_is_one_line_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EQSAT_CACHE_DIR")
    monkeypatch.setattr(libraries, "user_cache_dir", lambda name, appauthor: "/proc/none")
    monkeypatch.setattr(libraries, "_directory_of_process", cache(libraries._directory_of_process.__wrapped__))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(CompileError, match=r"can be written \(No such file or directory\): set EQSAT_CACHE_DIR to one"):
        compile_exprs([const(1)])


def test_a_cache_whose_name_is_no_text_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQSAT_CACHE_DIR", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(CompileError, match=r"cannot load .*surrogates not allowed: .*set CC or EQSAT_CACHE_DIR"):
        compile_exprs([const(1)])


def test_what_is_no_budget_is_refused() -> None:
    k, y = var("k", 0, 3), buffer("Y", "i32", (4,))
    with pytest.raises(TypeError, match="budget"):
        compile_kernel(Kernel("k", [Store(y[k], k, [k])]), budget=3)  # type: ignore[arg-type]
