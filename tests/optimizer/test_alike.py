"""Inputs that are alike, up to a shift, a sign, a split or how they are written, have answers that are as cheap."""

import pytest

from eqsat.extract import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize

ALIKE = [
    # what is given, the ranges of its variables, an answer that costs what it may
    # a remainder divided is a digit, whatever the sign, the shift and the parts of the number
    (["a%96//12"], {"a": (0, 4095)}, ["a//12%8"]),
    (["-a%96//12"], {"a": (-4095, 0)}, ["-a//12%8"]),
    (["(a - 7)%96//12"], {"a": (7, 5000)}, ["(a - 7)//12%8"]),
    (["(y*8 + z)%96//12"], {"y": (0, 511), "z": (0, 7)}, ["(y*8 + z)//12%8"]),
    (["(4095 - a)%96//12"], {"a": (0, 4095)}, ["(4095 - a)//12%8"]),
    (["7 - (-1 - x)//12%8"], {"x": (0, 4095)}, ["x//12%8"]),
    # near misses: what is left of 90 is no multiple of 12, and 97 none of a digit
    (["-a%90//12"], {"a": (-4095, 0)}, ["-a%90//12"]),
    (["a//12 - a//97*8"], {"a": (0, 4095)}, ["a//12 - a//97*8"]),
    # what is never negative is divided, wherever the opposite is
    (["x - (-d)//6"], {"d": (-12, 0), "x": (0, 9)}, ["x - (-d)//6"]),
    (["x + (d + 5)//6"], {"d": (-12, 0), "x": (0, 9)}, ["x - (-d)//6"]),
    (["x + (d + 5)//6"], {"d": (-12, 1), "x": (0, 9)}, ["x + (d + 5)//6"]),
    # a quotient by steps
    (["x//12%16", "x//192"], {"x": (0, 3071)}, ["x//12%16", "x//12//16"]),
    (["(x - 64)//12%16", "(x - 64)//192"], {"x": (64, 3135)}, ["(x - 64)//12%16", "(x - 64)//12//16"]),
    (["-x//12%16", "-x//192"], {"x": (-3071, 0)}, ["-x//12%16", "-x//12//16"]),
    # a shifted variable that is there
    (["x*2 + y", "x"], {"x": (0, 9), "y": (0, 9)}, ["x*2 + y", "x"]),
    (["x*2 + y - 128", "x - 64"], {"x": (64, 73), "y": (0, 9)}, ["(x - 64)*2 + y", "x - 64"]),
    (["14 - x*2", "7 - x"], {"x": (0, 7)}, ["(7 - x)*2", "7 - x"]),
    (["x + y - 3", "3 - x"], {"x": (0, 3), "y": (3, 6)}, ["y - (3 - x)", "3 - x"]),
    (["x*2 + y - 127", "x - 64"], {"x": (64, 73), "y": (0, 9)}, ["x*2 + y - 127", "x - 64"]),
    # a negative divisor
    (["min(x%5, y%8)//2"], {"x": (0, 99), "y": (0, 99)}, ["min(x%5, y%8)//2"]),
    (["-min(x%5, y%8)//-2"], {"x": (0, 99), "y": (0, 99)}, ["min(x%5, y%8)//2"]),
    # a further addend
    (["y + x%9 + x//3*9"], {"x": (0, 999), "y": (0, 999)}, ["x + y + (x//3 - x//9)*9"]),
    (["y + x%9 + x//3*9 + z"], {"x": (0, 999), "y": (0, 999), "z": (0, 99)}, ["x + y + (x//3 - x//9)*9 + z"]),
    # other names of the variables, whose order decides nothing
    (["tmod(12*a + 11*b - 19, 7)"], {"a": (0, 5), "b": (0, 7)}, ["tmod((a + b)*11 + a - 19, 7)"]),
    (["tmod(12*b + 11*a - 19, 7)"], {"b": (0, 5), "a": (0, 7)}, ["tmod((a + b)*11 + b - 19, 7)"]),
    # multiples that decide nothing, with any sign
    (["1 <= a*3 + d*4"], {"a": (0, 3), "d": (-3, 3)}, ["1 <= a + d"]),
    (["1 <= a*3 - d*4"], {"a": (0, 3), "d": (-3, 3)}, ["d < a"]),
    (["1 <= a*3 - d*4"], {"a": (0, 4), "d": (-3, 3)}, ["d*4 < a*3"]),
    # what is there is compared
    (["where(c == x, 1, c)", "x*5"], {"x": (0, 99), "c": (0, 99)}, ["where(c == x, 1, c)", "x*5"]),
    (["where(c == -x, 1, c)", "(-x)//5"], {"x": (-99, 0), "c": (0, 99)}, ["where(c == -x, 1, c)", "(-x)//5"]),
    (["where(c != x - 7, 1, c)", "(x - 7)//5"], {"x": (7, 99), "c": (0, 9)}, ["where(c != x - 7, 1, c)", "(x - 7)//5"]),
    (["where(c < -x, 1, c)", "(-x)//5"], {"x": (-99, 0), "c": (0, 99)}, ["where(c < -x, 1, c)", "(-x)//5"]),
    (["where(c <= 7 - x, 1, c)", "(7 - x)//5"], {"x": (-9, 7), "c": (0, 9)}, ["where(c <= 7 - x, 1, c)", "(7 - x)//5"]),
]


@pytest.mark.parametrize(("texts", "ranges", "wanted"), ALIKE, ids=str)
def test_inputs_that_are_alike_have_answers_that_are_as_cheap(
    texts: list[str], ranges: dict[str, tuple[int, int]], wanted: list[str]
) -> None:
    result = optimize(texts, **ranges)
    names = {name: var(name, *ends) for name, ends in ranges.items()}
    answer = optimize([parse(text, names) for text in wanted], engine="theory")
    assert result.cost <= min(answer.cost, cost_of([parse(text, names) for text in wanted], Latency()))
    assert result.check().equal
