"""The report on how far answers are from the least cost."""

from __future__ import annotations

from dataclasses import replace

from optimum.__main__ import Row, measured, report
from optimum.cases import Root, bundled

from eqsat.lang.expr import var
from eqsat.lang.text import parse


def test_the_bundled_sample_is_the_same_each_time() -> None:
    sample = bundled(each=5)
    assert [root.name for root in sample] == [root.name for root in bundled(each=5)]
    assert [root.source for root in sample] == [s for s in ("kernels", "hand", "seeds", "random") for _ in range(5)]


def test_report() -> None:
    root = parse("x//4*4 + x%4", {"x": var("x", 0, 99)})
    row = measured(Root("hand", "recombined", root), "latency")
    assert (row.answer, row.cost, row.outcome) == ("x", 0, "proved least")
    better = Row("latency", "r", "hand", "bits", "x in [0, 9]", "x | 1", "x | 1", 5, "x", 4, "better found", 0.1, 0.1)
    text = report([row, better])
    assert "| all | 2 | 5 | 4 | 1.250 | 1 | 1 | 0 |" in text
    assert "| model |" not in text
    assert "| `x \\| 1` | 5 | `x` | 4 | x in [0, 9] |" in text
    both = report([row, replace(better, model="divisions")])
    assert "| `latency` | 1 | 0 | 0 | 1.000 | 0 | 1 | 0 |" in both
    assert "| `divisions` | 1 | 5 | 4 | 1.250 | 1 | 0 | 0 |" in both
