"""What the default finds by rules that make cheaper forms of one or two operators, and where it must not."""

from __future__ import annotations

import pytest

from eqsat import optimize

X = {"x": (0, 200)}
BITS = {"x": (0, 1), "y": (0, 1)}
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
    # whichever branch is which, and whatever the sign
    ("x*71 - 64", {"x": (0, 1)}, "where(x < 1, -64, 7)", 2),
    ("where(x < 1, z, where(y < 1, w, z))", {**BITS, "z": (0, 9), "w": (0, 9)}, "where(x <= y, z, w)", 2),
    ("where(x < 1, where(y < 1, z, w), z)", {**BITS, "z": (0, 9), "w": (0, 9)}, "where(x < y, w, z)", 2),
    # sides of comparisons
    ("w + x//64*64 < x + z", {"w": (0, 99), "x": (0, 999), "z": (0, 99)}, "w < z + x%64", 3),
    ("w + x//64*64 == x + z", {"w": (0, 99), "x": (0, 999), "z": (0, 99)}, "w == z + x%64", 3),
    ("x*y == z*y", {"x": (-50, 50), "y": (-50, 50), "z": (-50, 50)}, "y == 0 or x == z", 3),
    ("(x - 1)*(y + 2) == 0", {"x": (-9, 9), "y": (-9, 9)}, "x == 1 or y == -2", 3),
    ("min(x, z) == min(y, x + 32)", {"x": (-50, 50), "y": (-50, 50), "z": (-50, 50)}, "y == min(z, x)", 2),
    ("min(x, 6) - min(y, -5) == 0", {"x": (-50, 50), "y": (-50, 50)}, "x == min(-5, y)", 2),
    ("tdiv(x, 7) != -9", {"x": (-(2**31), 2**31 - 1)}, "-62 <= x or x < -69", 3),
    ("y + (x - 3)*z < 0", {"x": (0, 9), "y": (-99, 99), "z": (1, 9)}, "y < (3 - x)*z", 5),
    ("(x - 3)*z + y == 0", {"x": (0, 9), "y": (-99, 99), "z": (1, 9)}, "y == (3 - x)*z", 5),
    # sums
    ("u - x*y - z*y", {"x": (-50, 50), "y": (-50, 50), "z": (-50, 50), "u": (-50, 50)}, "u - (x + z)*y", 5),
    ("z + (x + y)//2 - (x + 100)//2", {"x": X["x"], "y": (0, 63), "z": (0, 9)}, "z + (y + x%2)//2 - 50", 5),
    ("(x - y)//2 - x//2", {"x": X["x"], "y": (0, 63)}, "(x%2 - y)//2", 3),
    ("x - (x + y + 7)//8*8", {"x": X["x"], "y": (0, 63)}, "(x + y)%-8 - y", 4),
    ("(y + 3)//4*4 + x - 3", {"x": X["x"], "y": (0, 40)}, "x + y - (y + 3)%4", 4),
    # quotients and extremes
    ("(x*35 + y)//2%35", {"x": X["x"], "y": (0, 34)}, "(y + where(x%2 < 1, 0, 35))//2", 5),
    ("(z*4 + x*160 + y*5 + 3)//60", {"x": (0, 20), "y": (0, 31), "z": (0, 2)}, "(x*32 + y + z)//12", 8),
    ("max(x//7, y, z//7)", {"x": (-50, 50), "y": (-50, 50), "z": (-50, 50)}, "max(max(x, z)//7, y)", 9),
    (
        "max((x + 3)//7 + 1, y//7 + 2, z)",
        {"x": (-50, 50), "y": (0, 99), "z": (0, 99)},
        "max(z, max(y + 14, x + 10)//7)",
        9,
    ),
    (
        "max(x//7 + 1, y//7 + w, z)",
        {"x": (-99, 99), "y": (0, 99), "z": (0, 9), "w": (0, 9)},
        "max(max(x + 7, w*8 - w + y)//7, z)",
        11,
    ),
    ("tdiv(max(x*48, y), 48)", {"x": (-500, 500), "y": (-500, 500)}, "max(tdiv(y, 48), x)", 8),
    # a dividend that is never negative, below the quotient
    ("x//7%2", {"x": (-20, 50)}, "(x + 28)//7%2", 7),
    ("x//3%72", {"x": (-800, 700)}, "(x + 864)//3%72", 15),
    ("(x//3 + 1)%5", {"x": (-8, 70)}, "(x + 18)//3%5", 14),
    # a literal that is shifted by a variable
    ("x*(1 << y)", {"x": (-99, 99), "y": (0, 5)}, "x << y", 1),
    ("x//(1 << y)", {"x": (-99, 99), "y": (0, 5)}, "x >> y", 1),
    ("x//(8 << y)", {"x": (-99, 99), "y": (0, 5)}, "x//8 >> y", 2),
    ("z + x%(4 << y)", {"x": (-99, 99), "y": (0, 5), "z": (0, 9)}, "z + (x & (4 << y) - 1)", 4),
    # branches and junctions
    ("where(x < 9, z*y, -(w*y))", {**X, "y": (-9, 9), "z": (-9, 9), "w": (-9, 9)}, "y*where(x < 9, z, -w)", 6),
    ("x < 4 and y < 3 or x < 4 and z < 5", {**X, "y": (0, 9), "z": (0, 9)}, "x < 4 and (z < 5 or y < 3)", 5),
    ("5*((x + 7)//5) < x - y", {"x": (0, 63), "y": (-100, -1)}, "(x + 7)//5*4 + (x + 7)//5 < x - y", 10),
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
