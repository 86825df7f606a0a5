"""``eqsat run``: the examples, what is printed, what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eqsat.cli.main import main

EXAMPLES = {
    "matmul": 1,
    "convolution": 2,
    "pooling": 2,
    "softmax": 2,
    "views": 3,
    "masked_sums": 3,
    "gather": 1,
}
FOLDER = Path(__file__).parents[2] / "examples"

STATED = """
from eqsat import Kernel, Store, buffer, var
i, n = var("i", 0, 63), var("n", 1, 9)
A, B = buffer("A", "i32", (64,)), buffer("B", "f64", (64,))
ramp = Kernel("ramp", [Store(buffer("Y", "i32", (64,))[i], i * n, [i])])
half = Kernel("half", [Store(buffer("Y", "f64", (64,))[i], B[i] / 2, [i])])
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["run", "--repeats", "1", *map(str, arguments)])
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_and_agree_with_numpy(name, capsys):
    code, out, err = run(capsys, FOLDER / f"{name}.py")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", EXAMPLES[name])
    assert all("times as fast" in line and line.endswith("NumPy's result") for line in lines)


def test_what_is_loaded_outside_an_array_is_no_difference(tmp_path, capsys):
    file = tmp_path / "rows.py"
    file.write_text(
        "from eqsat import Kernel, Store, buffer, var\n"
        'i, j = var("i", 0, 7), var("j", 0, 2)\n'
        'index, table = buffer("I", "i32", (8,)), buffer("T", "i32", (5, 3))\n'
        'rows = Kernel("rows", [Store(buffer("Y", "i32", (8, 3))[i, j], table[index[i], j], [i, j])])\n'
    )
    code, out, err = run(capsys, file)
    assert (code, err) == (0, "")
    assert out.endswith("equal to NumPy's result\n")


@pytest.fixture
def stated(tmp_path):
    file = tmp_path / "stated.py"
    file.write_text(STATED)
    return file


def test_one_kernel_of_a_file_as_json(stated, capsys):
    code, out, _ = run(capsys, f"{stated}:ramp", "--json", "--c", "--parallel", "--reassociate", "--lanes", "4")
    row = json.loads(out)
    assert (code, row["kernel"], row["error"], row["ms_numpy"]) == (0, "ramp", 0, None)
    assert row["speed_up"] > 0
    assert "void ramp(int32_t *restrict Y, int32_t n)" in row["c"]


#: Values that floats do not tell apart from their neighbours.
LARGE = "large = Kernel('large', [Store(buffer('L', 'i64', (64,))[i], i + 2**60, [i])])\n"

REFUSED = [
    ("", ":other", "has no kernel 'other', only ramp, half"),
    (LARGE + "def large_numpy(): return [j + 2**60 + 1 for j in range(64)]", ":large", "'L' differs from NumPy's"),
    ("def half_numpy(B): return B * float('nan')", ":half", "the output 'Y' differs from NumPy's result by nan"),
    ("def half_numpy(B): return B", ":half", "kernel 'half': the output 'Y' differs from NumPy's result by"),
    ("def half_numpy(B): return B[:3]", ":half", "'Y' has shape (64,), NumPy's result (3,)"),
    ("def half_numpy(B): return {}", ":half", "the NumPy function of kernel 'half' returns no 'Y'"),
    ("def half_numpy(A): return A", ":half", "NumPy function of kernel 'half': TypeError: half_numpy() got an"),
    ("def half_numpy(B): return [[1], [2, 3]]", ":half", "NumPy function of kernel 'half' returns no array for 'Y'"),
    ("import numpy\ndef half_numpy(B): return numpy.array([None] * 64)", ":half", "elements of type object"),
    ("raise SystemExit(3)", "", "SystemExit: 3"),
    ("1 // 0", "", "stated.py fails: ZeroDivisionError: "),
    ("del ramp, half", "", "no kernel among its global names"),
]


@pytest.mark.parametrize(("more", "chosen", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refused_with_one_line(stated, capsys, more, chosen, message):
    stated.write_text(STATED + more)
    code, out, err = run(capsys, f"{stated}{chosen}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_one_bad_kernel_stops_no_other(stated, capsys):
    stated.write_text(STATED + "def ramp_numpy(n): return n\nother = Kernel('other', half.stores)")
    code, out, err = run(capsys, stated)
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (2, ["half", "other"])
    assert err == "eqsat: kernel 'ramp': 'Y' has shape (64,), NumPy's result ()\n"


def test_a_failure_names_its_kernel(stated, capsys, monkeypatch):
    monkeypatch.setattr("eqsat.cli.trial.random_arguments", lambda *given: {}["surprise"])
    code, out, err = run(capsys, stated)
    assert (code, out) == (2, "")
    assert err.splitlines() == [f"eqsat: kernel {name!r}: KeyError: 'surprise'" for name in ("ramp", "half")]


def test_lanes_that_there_cannot_be(stated, capsys):
    assert run(capsys, stated, "--lanes", "5")[::2] == (2, "eqsat: 5 lanes: give one of 1, 2, 4, 8, 16\n")


def test_a_file_that_is_not_there(capsys):
    assert run(capsys, "nowhere.py")[2] == "eqsat: 'nowhere.py' is not a file: give FILE.py or FILE.py:kernel\n"


def test_no_c_compiler_is_said_in_one_line(stated, capsys, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    code, out, err = run(capsys, f"{stated}:ramp")
    assert (code, out) == (2, "")
    assert err == "eqsat: the C compiler that CC names, 'no-such-compiler', is not installed: install it or set CC\n"


def test_a_cache_that_is_not_used_is_one_line(stated: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    command = [sys.executable, "-m", "eqsat", "run", str(stated), "--repeats", "1"]
    environment = {**os.environ, "EQSAT_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0
    assert re.fullmatch(
        r"eqsat: warning: the cache directory .* is not used, as other users may write .*\n", found.stderr
    )
