"""What the default finds by rules that make cheaper forms of one or two operators, and where it must not."""

from __future__ import annotations

import pytest

from eqsat import optimize

X = {"x": (0, 200)}
FORMS = [
    # input, ranges, answer, cost by latency
    ("x % 17 == 0", X, "x//16 == x%16", 3),
    ("x % 33 != 0", {"x": (-32, 1000)}, "x//32 != x%32", 3),
    ("where(x % 9 == 0, y, 2)", {"x": (0, 71), "y": (0, 9)}, "where(x//8 == x%8, y, 2)", 4),
    ("x == 3 or x == 11", {"x": (-4, 18)}, "x%8 == 3", 2),
    ("tdiv(x, 5)", {"x": (-4, 20)}, "max(x, 0)//5", 6),
    ("tmod(x, 4) + y", {"x": (-3, 20), "y": (0, 9)}, "y + min(x, x%4)", 3),
    ("where(x < 3, 0, 1) - where(x < 2, 0, 1)", X, "where(x == 2, -1, 0)", 2),
    ("min(i, 4) - min(i, 3)", {"i": (0, 20)}, "where(i < 4, 0, 1)", 2),
    ("(x//32 ^ y)%4*32 + x%32", {"x": (0, 255), "y": (0, 3)}, "(x ^ y*32)%128", 3),
    ("x - where(y < 3, 2, 4) < 6", {"x": (0, 20), "y": (0, 9)}, "x < where(y < 3, 8, 10)", 3),
    ("(x//2 + 4)%5 == 2", X, "x//2%5 == 3", 10),
    ("(x//2 + 4)%5 != 0", X, "x//2%5 != 1", 10),
    ("n + (x + 15)//16 - x//16", {"x": (0, 63), "n": (0, 20)}, "n + min(x%16, 1)", 3),
    ("where(x < 4, 0, 1) - where(x < 2, 0, 1)", X, "where(x//2 == 1, -1, 0)", 3),
]
SAME = [
    # a number too many, or a remainder that has no such form
    ("x % 17 == 0", {"x": (0, 272)}),
    ("x % 18 == 0", X),
    ("tdiv(x, 5)", {"x": (-5, 20)}),
]


@pytest.mark.parametrize(("text", "ranges", "answer", "cost"), FORMS)
def test_cheaper_form(text: str, ranges: dict[str, tuple[int, int]], answer: str, cost: int) -> None:
    found = optimize(text, **ranges)
    assert found.cost == cost
    assert sorted(str(found.expr)) == sorted(answer)
    assert found.prove().equal


@pytest.mark.parametrize(("text", "ranges"), SAME)
def test_no_such_form(text: str, ranges: dict[str, tuple[int, int]]) -> None:
    found = optimize(text, **ranges)
    assert found.cost > 4
    assert found.prove().equal
