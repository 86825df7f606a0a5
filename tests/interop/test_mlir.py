"""Rewriting MLIR: the same loads and stores, fewer divisions, all else verbatim."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from mlir_evaluator import run

from eqsat.interop.mlir import rewrite

FILES = sorted((Path(__file__).parent.parent / "data" / "mlir").glob("*.mlir"))
DIVISION = re.compile(r"\b(?:arith\.(?:floor|ceil)?(?:div|rem)[su]i|floordiv|ceildiv|mod)\b")
IREE_OPT = shutil.which("iree-opt", path=str(Path(sys.executable).parent)) or shutil.which("iree-opt")
#: Per file how many divisions and remainders it writes, and how many are left.
DIVISIONS = {
    "affine_collapse": (2, 0),
    "bits": (0, 0),
    "ceildiv_tiles": (6, 2),
    "im2col": (9, 6),
    "min_tiles": (1, 1),
    "negative": (6, 3),
    "nested_ifs": (4, 0),
    "outer_values": (4, 0),
    "padding": (2, 0),
    "parallel": (5, 0),
    "pixel_shuffle": (6, 4),
    "selects": (1, 0),
    "strided": (4, 0),
    "symbols": (5, 1),
    "tiled_copy": (4, 0),
    "transpose": (2, 0),
}
ARGUMENTS = [(0, 0), (1, 1), (7, 1), (-9, 0), (64, 1), (2**31 - 1, 1), (2**63 - 1, 0), (-(2**63), 1)]


answer = cache(rewrite)


def divisions(text):
    """How many are written; those of named maps as often as they are applied."""
    maps = dict(re.findall(r"^(#\w+) = (.*)$", text, re.MULTILINE))
    body = re.sub(r"^#\w+ = .*$|//.*$", "", text, flags=re.MULTILINE)
    return len(DIVISION.findall(re.sub(r"#\w+", lambda m: maps[m[0]], body)))


def verified(text):
    """Whether iree-opt takes it."""
    found = subprocess.run([IREE_OPT, "-"], input=text, capture_output=True, text=True)
    assert not found.returncode, found.stderr


def test_every_file_has_a_row():
    assert {path.stem for path in FILES} == DIVISIONS.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_same_loads_and_stores(path):
    text = path.read_text()
    found = answer(text)
    takes_integers = re.search(r"func.func .*%\w+: (?:index|i\d+)\b", text)
    for arguments in ARGUMENTS if takes_integers else ARGUMENTS[:1]:
        # a plain truth: of long traces pytest would show the difference for minutes
        same = run(found, arguments) == run(text, arguments)
        assert same, arguments


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_division_is_left_where_none_is_needed(path):
    text = path.read_text()
    assert (divisions(text), divisions(answer(text))) == DIVISIONS[path.stem]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_rewritten_stays(path):
    once = answer(path.read_text())
    assert divisions(rewrite(once)) == divisions(once)


@pytest.mark.skipif(IREE_OPT is None, reason="needs the extra: mlir")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_answer_is_mlir(path):
    verified(path.read_text())
    verified(answer(path.read_text()))
