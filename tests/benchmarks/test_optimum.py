"""The enumerator: what it finds is equal and costs less, and what it proves least is."""

from __future__ import annotations

import pytest
from optimum.__main__ import Row, measured, report
from optimum.cases import Root, bundled
from optimum.search import search

from eqsat.extract.cost import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.prove.verify import check_equal


@pytest.mark.parametrize(
    ("text", "ranges", "cost", "least"),
    [
        ("x%8 + x//8*8 + x", {"x": (0, 999)}, 1, True),
        ("where(x < 3, 2, 3)", {"x": (0, 3)}, 1, True),
        ("x < 2 and y < 2", {"x": (0, 9), "y": (0, 9)}, 2, True),
        ("x//17*17 == x", {"x": (0, 255)}, 3, True),
        ("x*3 + y*2", {"x": (0, 99), "y": (0, 9)}, 3, True),
        ("where(x < y, x*16 + 5, y*16 + 5)", {"x": (0, 99), "y": (0, 99)}, 3, True),
        ("x*4 + y", {"x": (0, 2**31 - 1), "y": (0, 3)}, 2, True),
        ("x%7 + x//7", {"x": (0, 999)}, 8, False),
    ],
)
def test_search(text: str, ranges: dict[str, tuple[int, int]], cost: int, least: bool) -> None:
    root = parse(text, {name: var(name, *bounds) for name, bounds in ranges.items()})
    found = search(root, root, Latency())
    assert (found.cost, found.least) == (cost, least)
    assert cost_of([found.term], Latency()) == cost
    assert check_equal([root], [found.term], prove=True)


def test_the_bundled_sample_is_the_same_each_time() -> None:
    sample = bundled(each=5)
    assert [root.name for root in sample] == [root.name for root in bundled(each=5)]
    assert [root.source for root in sample] == [s for s in ("kernels", "hand", "seeds", "random") for _ in range(5)]


def test_report() -> None:
    root = parse("x//4*4 + x%4", {"x": var("x", 0, 99)})
    row = measured(Root("hand", "recombined", root), "latency")
    assert (row.answer, row.cost, row.outcome) == ("x", 0, "proved least")
    better = Row("r", "hand", "bits", "x in [0, 9]", "x | 1", "x | 1", 5, "x", 4, "better found", 0.1, 0.1)
    text = report([row, better], "latency")
    assert "| all | 2 | 5 | 4 | 1.250 | 1 | 1 | 0 |" in text
    assert "| `x \\| 1` | 5 | `x` | 4 | x in [0, 9] |" in text
