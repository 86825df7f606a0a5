"""Faults from outside: nothing is lost, nothing is wrong, and what is said is one line."""

import errno
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from eqsat.codegen.libraries import _run
from eqsat.codegen.runtime import compile_exprs
from eqsat.egraph.program import Kind
from eqsat.egraph.tables import Tables
from eqsat.lang.errors import CompileError
from eqsat.lang.expr import var
from eqsat.optimizer.front import optimize

#: For a process that can write no long file: of a module that it compiles it would keep a part, which later ones read.
CACHELESS = {"PYTHONDONTWRITEBYTECODE": "1"}

#: Enough for two workers to be busy for a second or two.
COUNT = 40
LINES = [
    json.dumps({"id": n, "vars": {"i": [0, 31], "j": [0, n]}, "exprs": [f"(i*{n + 1} + j) // {n + 1} + j % {n + 2}"]})
    for n in range(COUNT)
]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "eqsat", *words]


def is_whole(output: Path) -> bool:
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    answers = {tuple(row["out"]) for row in rows}
    return [row["id"] for row in rows] == [*range(COUNT)] and answers == {("i",), ("i + j",)}


@pytest.fixture
def corpus(tmp_path) -> tuple[Path, Path]:
    (tmp_path / "in.jsonl").write_text("\n".join(LINES))
    return tmp_path / "in.jsonl", tmp_path / "out.jsonl"


def resumed(source: Path, output: Path) -> None:
    """The rest is done afterwards, and no row is lost."""
    subprocess.run(command("corpus", str(source), "-o", str(output), "--resume"), check=True, capture_output=True)
    assert is_whole(output)


def test_a_full_disk_is_one_line_and_the_rest_can_be_done_later(corpus):
    source, output = corpus
    done = subprocess.run(
        command("corpus", str(source), "-o", str(output)),
        capture_output=True,
        text=True,
        env=os.environ | CACHELESS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500)),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"eqsat: {output}: ")
    assert done.stderr.count("\n") == 1
    resumed(source, output)


@pytest.mark.parametrize("words", [["corpus"], ["mlir"], ["discover"], ["experiment", "-o", "rows"]])
def test_a_file_that_cannot_be_read_to_its_end_is_named(words):
    done = subprocess.run(command(*words, "/proc/self/mem"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "eqsat: /proc/self/mem: Input/output error\n")


def test_standard_input_that_cannot_be_read_is_named():
    with open("/proc/self/mem", "rb") as memory:
        done = subprocess.run(command("mlir", "-"), stdin=memory, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "eqsat: standard input: Input/output error\n")


def test_a_full_disk_is_said_of_the_file_that_is_written(corpus):
    source, output = corpus
    done = subprocess.run(
        command("experiment", str(source), "-o", str(output), "--limit", "3", "--repeats", "0"),
        capture_output=True,
        text=True,
        env=os.environ | CACHELESS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"eqsat: {output / 'measurements.csv'}: ")
    assert not [*output.iterdir()]


def test_a_full_directory_of_temporary_files_is_named_and_left_empty(tmp_path):
    done = subprocess.run(
        command("optimize", "where(x < 5, where(y < 3, x, 2), 2) // 4", "--range", "x=40", "--range", "y=20"),
        capture_output=True,
        text=True,
        env=os.environ | CACHELESS | {"TMPDIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)),
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr == f"eqsat: {tmp_path}: File too large: make room, or set TMPDIR to another directory\n"
    assert not [*tmp_path.iterdir()]


def test_workers_that_are_killed_leave_nothing_among_temporary_files(tmp_path):
    source, folder = tmp_path / "in.jsonl", tmp_path / "temporary"
    source.write_text('{"vars": {"x": [0, 39], "y": [0, 19]}, "exprs": ["where(x < 5, where(y < 3, x, 2), 2) // 4"]}')
    folder.mkdir()
    done = subprocess.run(
        command("corpus", str(source)), capture_output=True, text=True, env=os.environ | {"TMPDIR": str(folder)}
    )
    assert (done.returncode, "out" in json.loads(done.stdout)) == (0, True)
    assert not [*folder.iterdir()]


def test_without_a_directory_for_temporary_files_the_error_says_how_to_name_one(monkeypatch):
    def no_directory(**options: object) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_directory)
    tables = Tables(())
    tables.begin()
    tables.add(Kind.ATOM, 0, 0, 9, 1)
    with pytest.raises(OSError, match=r"No usable .*\['/tmp'\]: make room, or set TMPDIR to another directory"):
        tables.insert()


def test_without_names_for_open_files_the_error_says_what_to_mount(monkeypatch, tmp_path):
    monkeypatch.setattr("eqsat.egraph.tables.DESCRIPTORS", str(tmp_path / "fd"))
    tables = Tables(())
    tables.begin()
    tables.add(Kind.ATOM, 0, 0, 9, 1)
    with pytest.raises(OSError, match=r"open files have no names there: mount /proc: '.*/fd'"):
        tables.insert()


@pytest.mark.parametrize("before", [None, "as it was"])
@pytest.mark.parametrize("words", [["mlir", "IN", "-o"], ["discover", "IN", "-o"], ["optimize", "3", "--html"]])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, words, before):
    source, output = tmp_path / "in", tmp_path / "out"
    if words[0] == "discover":
        pytest.importorskip("z3")
    source.write_text("// a comment\n" * 30 if words[0] == "mlir" else LINES[0])
    if before:
        output.write_text(before)
    done = subprocess.run(
        command(*[word.replace("IN", str(source)) for word in words], str(output)),
        capture_output=True,
        text=True,
        env=os.environ | CACHELESS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (90, 90)),
    )
    assert done.returncode == 2
    assert done.stderr.endswith(f"eqsat: {output}: File too large\n")
    assert (output.read_text() if output.exists() else None) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_signals_at_any_moment_lose_no_row(corpus, number, code):
    source, output = corpus
    with subprocess.Popen(
        command("corpus", str(source), "-o", str(output), "--jobs", "2"), stderr=subprocess.PIPE, text=True
    ) as running:
        # not before the first row, but at any moment after that
        while running.poll() is None and not (output.exists() and output.stat().st_size):
            time.sleep(0.01)
        time.sleep(random.Random(int(number)).random() / 5)
        running.send_signal(number)
        said = running.communicate(timeout=60)[1]
    # at its very end a process has no row left to lose, and signals end it at once
    assert running.returncode in (code, 0, -number)
    assert running.returncode < 0 or said.count("\n") == 1
    resumed(source, output)


def test_without_a_compiler_or_a_place_to_keep_libraries(tmp_path):
    (tmp_path / "kernel.py").write_text(
        "from eqsat import Kernel, Store, buffer, var\n"
        "k = var('k', 0, 9)\n"
        "twice = Kernel('twice', [Store(buffer('B', 'i32', (10,))[k], k * 2, [k])])\n"
    )
    (tmp_path / "file").write_text("")
    for changed, code in (({"CC": "/no/such/cc"}, 2), ({"XDG_CACHE_HOME": str(tmp_path / "file")}, 0)):
        done = subprocess.run(
            command("run", f"{tmp_path}/kernel.py", "--repeats", "1"),
            capture_output=True,
            text=True,
            env=os.environ | changed,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 1


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("MemoryError", "MemoryError: allow it more, as by ulimit -v"),
        ("ImportError('no\\nlibrary')", "ImportError: no library: install eqsat and what it needs again"),
    ],
)
def test_what_cannot_be_imported_is_one_line(tmp_path, raised, said):
    (tmp_path / "cffi.py").write_text(f"raise {raised}\n")
    (tmp_path / "click.py").write_text(f"raise {raised}\n")
    done = subprocess.run(
        command("optimize", "x", "--range", "x=9"),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"eqsat: cannot start: {said}\n")


def test_another_kind_of_system_is_refused_in_one_line():
    started = [sys.executable, "-c", "import os; os.name = 'nt'; import eqsat"]
    done = subprocess.run(started, capture_output=True, text=True)
    assert done.stderr.endswith("ImportError: eqsat runs on Linux and other POSIX systems; on Windows, in WSL\n")


def test_remarks_that_nobody_can_read_lose_no_row(corpus):
    source, output = corpus
    words = command("corpus", str(source), "-o", str(output))
    assert subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *words]).returncode == 0
    assert is_whole(output)
    # a full disk takes the remarks, not the answer
    words = command("optimize", "x%3%3", "--range", "x=9")
    done = subprocess.run(["sh", "-c", '"$@" 2>/dev/full', "sh", *words], stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (2, "x%3\n")


def test_what_the_output_has_no_letters_for_is_named():
    settings = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    asked = command("optimize", "α + 0", "--range", "α=9")
    done = subprocess.run(asked, capture_output=True, env=settings)
    said = r"eqsat: output in latin-1 cannot have '\u03b1': set PYTHONUTF8=1" + "\n"
    assert (done.returncode, done.stderr.decode("latin-1")) == (2, said)
    done = subprocess.run(asked, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"})
    assert (done.returncode, done.stdout.decode()) == (0, "α\n")


def test_a_process_that_may_start_no_other_does_not_blame_the_compiler(monkeypatch):
    def no_process(*words: object, **options: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", no_process)
    with pytest.raises(CompileError, match=r"'cc' \(Too many open files\): end other processes, or raise the limit"):
        _run(["cc"])


def test_clocks_that_jump_cost_an_answer_its_time_and_nothing_else(monkeypatch):
    jumps, clock = random.Random(3), time.perf_counter
    ahead = [0.0]

    def jumping() -> float:
        ahead[0] += 3600.0 * (jumps.random() < 0.001)
        return clock() + ahead[0]

    monkeypatch.setattr(time, "perf_counter", jumping)
    i, j = var("i", 0, 31), var("j", 0, 31)
    stops = set()
    for n in range(30):
        result = optimize([(i * 32 + j + n) // 8 % 4, (i + j * n) % (n + 2) // 3])
        assert result.check().equal
        stops.add(result.stop)
    assert stops == {"saturated", "time"}


def _compiled(number: int) -> bool:
    x = var("x", 0, 99)
    values = compile_exprs([x * 3 + number % 5, x // 7])({"x": np.arange(100)})
    return bool((values[0] == np.arange(100) * 3 + number % 5).all())


def test_fifty_processes_compile_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with multiprocessing.get_context("fork").Pool(50) as pool:
        assert all(pool.map(_compiled, range(50), chunksize=1))
