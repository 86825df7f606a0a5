"""What a user writes passes ``mypy --strict``: lists where a sequence is asked for, numbers where a term is."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import eqsat
import eqsat.extract
import eqsat.rules

SCRIPT = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import eqsat
from eqsat.interop import tinygrad, triton
from eqsat.kernels.ranges import Axis, Nest
from eqsat.kernels.staging import Pipeline
from eqsat.interop.tiles import Tile
from eqsat.interop.views import View

image, out = eqsat.buffer("X", "f32", (4, 6)), eqsat.buffer("Y", "f32", (6, 4))
k = eqsat.var("k", 0, 23)
turn = eqsat.Kernel("turn", [eqsat.Store(out[k // 4, k % 4], image[k % 4, k // 4], [k])])
ones = eqsat.Kernel("ones", (eqsat.Store(out[k // 4, k % 4], 1.0, (k,), k < 20),))
found = eqsat.compile(turn)(X=np.ones((4, 6), np.float32))["Y"]
arrays = {"X": np.ones((4, 6), np.float32)}
found = eqsat.compile(turn)(**arrays, out={"Y": np.empty((6, 4), np.float32)})["Y"]
found = eqsat.compile(turn)(**arrays)["Y"]
shape: tuple[int, ...] = found.shape
assert_type(found, NDArray[Any])
with triton.enabled(cost="gpu"), tinygrad.enabled(cost="gpu"):
    pass
stages = Pipeline([turn])
nest = Nest([Axis(k, scopes=["sum"])], [k // 4, k % 4], [k < 9, None])
view = View([4, 6], [6, 1], mask=[(0, 2), (1, k)])
tile = Tile([k, 0], [2, 3], [1, 1])
result = eqsat.optimize(["i // 4", k % 4], gates=[None, k < 9], constraints=["i < 5", k > 2], i=(0, 9))
names: tuple[eqsat.Expr, ...] = turn.stores[0].over
ranges = {"i": (0, 9), "j": (0, None)}
result = eqsat.optimize("i + j", **ranges)
address = out[k // np.int64(4), k % 4] + image[np.int64(0), k % 4]
"""


#: Kept from run to run, with mypy's cache: checking all of numpy takes longer than the rest.
KEPT = Path(__file__).parents[1] / "build" / "typing"


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_a_script_passes_mypy(tmp_path):
    # the installed layout, as links: mypy cannot follow the package directories of an editable install
    package = KEPT / "path" / "eqsat"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for part in Path(eqsat.__file__).parent.iterdir():
        (package / part.name).symlink_to(part.resolve())
    for part in (eqsat.rules, eqsat.extract):
        (package / part.__name__.rpartition(".")[2]).symlink_to(Path(part.__file__).parent.resolve())
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", f"--cache-dir={KEPT / 'cache'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
