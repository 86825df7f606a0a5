"""The enumerator: what it finds is equal and costs less, and what it proves least is."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import pytest

from eqsat.discover.search import search
from eqsat.extract.cost import Latency, OpCount
from eqsat.extract.graph import Bounds
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


@pytest.mark.parametrize(
    ("weights", "text", "ranges", "cost"),
    [
        ({}, "where(x < 1, 0, y)", {"x": (0, 1), "y": (0, 9)}, 1),
        ({}, "where(x < 1, y & 1, y)", {"x": (0, 1), "y": (0, 1)}, 0),
        ({}, "where(x < y, z*y - 1 + 1, z*x)", {"x": (1, 3), "y": (0, 9), "z": (0, 9)}, 2),
    ],
)
def test_a_product_of_two_terms_is_looked_at(weights, text, ranges, cost) -> None:
    root = parse(text, {name: var(name, *bounds) for name, bounds in ranges.items()})
    found = search(root, root, OpCount(weights=weights))
    assert (found.cost, found.least) == (cost, True)


def test_where_an_operator_is_free_nothing_is_proved_least() -> None:
    root = parse("x*3", {"x": var("x", 0, 999)})
    found = search(root, root, OpCount(weights={"add": 0}))
    # x + x + x costs nothing
    assert (found.cost, found.least) == (1, False)


def test_forms_of_quotients_are_found() -> None:
    model = OpCount(weights={"floordiv": 40, "mul": 4}, other=2)
    root = parse("x//7*7 + x%7 + x//7", {"x": var("x", 0, 99)})
    found = search(root, root, model)
    assert found.cost == cost_of([found.term], model) == 8
    assert ">> 10" in str(found.term)


def test_prices_of_thousands_take_no_longer() -> None:
    class Picoseconds:
        def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
            return 1000 * Latency().price(op, operands, result)

    root = parse("x%8 + x//8*8 + x//9", {"x": var("x", 0, 999)})
    started = process_time()
    assert search(root, root, Picoseconds()).cost == 6000
    assert process_time() - started < 20
