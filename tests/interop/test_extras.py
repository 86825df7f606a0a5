"""Scripts that need an extra say so in one line where it is not installed."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("script", "arguments", "package", "extra"),
    [
        ("examples/own_operator.py", [], "matplotlib", "plots"),
        ("examples/triton_kernels.py", [], "triton", "triton"),
        ("benchmarks/drop_ins.py", ["inductor"], "torch", "torch"),
        ("benchmarks/drop_ins.py", ["tinygrad"], "tinygrad", "tinygrad"),
        ("benchmarks/drop_ins.py", ["triton"], "triton", "triton"),
    ],
)
def test_the_extra_is_named(script, arguments, package, extra, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(SystemExit, match=rf"^[^\n]*pip install 'eqsat\[{extra}\]'$"):
        runpy.run_path(str(ROOT / script), run_name="__main__")


def test_a_drop_in_that_is_none_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["drop_ins.py", "pytorch"])
    with pytest.raises(SystemExit, match=r"^no drop-in is called 'pytorch': choose among inductor, tinygrad, triton$"):
        runpy.run_path(str(ROOT / "benchmarks" / "drop_ins.py"), run_name="__main__")
