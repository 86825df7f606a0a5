"""Operators of one's own, with their laws: population count, leading zeros, saturating addition, a swizzled layout.

    eqsat optimize "popcount(x*8)" --range x=100 --rules examples/operators.py

>>> from eqsat import optimize
>>> from eqsat.rules import DEFAULT
>>> optimize("popcount(x*8) + popcount(x*2)", rules=[*DEFAULT, *LAWS], x=(0, 99)).expr
Expr('popcount(x)*2')
>>> optimize("clz(x*8) + clz(x)", rules=[*DEFAULT, *LAWS], x=(1, 1000)).expr
Expr('clz(x)*2 - 3')
>>> optimize("add_sat(add_sat(x, 3), 4)", rules=[*DEFAULT, *LAWS], x=(0, 255)).expr
Expr('add_sat(7, x)')
>>> optimize(["swizzled(i, j)//8", "swizzled(i, j)//8*8 + i%4"], rules=[*DEFAULT, *LAWS], i=(0, 3), j=(0, 7)).exprs
(Expr('i'), Expr('i*8 + i'))
"""

from typing import Any

import numpy as np

from eqsat import Rule, operator


def _bits(x: tuple[int, int]) -> tuple[int, int]:
    """The least and the most ones of a number between two."""
    most = max(abs(x[0]), abs(x[1]))
    return 0, most.bit_length() if most < 2**63 else 64


def _leading_zeros(x: Any) -> Any:
    """Of 32 bits; 0 where a number does not fit 31."""
    length = sum((x >= 1 << bit).astype(np.int64) for bit in range(31))
    return np.where((x < 0) | (x >= 1 << 31), 0, 32 - length)


#: The ones of the magnitude, of up to 63 bits.
popcount = operator(
    "popcount",
    1,
    np.bitwise_count,
    bounds=_bits,
    price=3,
    c="__builtin_popcountll(x < 0 ? -(uint64_t)x : x)",
)
clz = operator(
    "clz",
    1,
    _leading_zeros,
    bounds=lambda x: (0, 32),
    price=3,
    c="x < 0 || x > INT32_MAX ? 0 : x == 0 ? 32 : __builtin_clz((uint32_t)x)",
)
#: The sum of two bytes, or 255.
add_sat = operator(
    "add_sat",
    2,
    lambda x, y: np.clip(np.clip(x, 0, 255) + np.clip(y, 0, 255), 0, 255),
    bounds=lambda x, y: (0, 255),
    price=2,
    c="(x < 0 ? 0 : x > 255 ? 255 : x) + (y < 0 ? 0 : y > 255 ? 255 : y) > 255 ? 255"
    " : (x < 0 ? 0 : x > 255 ? 255 : x) + (y < 0 ? 0 : y > 255 ? 255 : y)",
)
#: The place of element ``(row, column)`` of a matrix with 8 columns, in which the columns of each row change places.
swizzled = operator(
    "swizzled",
    2,
    lambda row, column: row * 8 + ((row ^ column) & 7),
    bounds=lambda row, column: (row[0] * 8, row[1] * 8 + 7),
    price=3,
    c="x * 8 + ((x ^ y) & 7)",
)

LAWS = [
    Rule("popcount-of-shifted", "popcount(x*c)", "popcount(x)", "c > 0 and c & (c - 1) == 0", "no one is moved out"),
    Rule(
        "clz-of-even",
        "clz(x*c)",
        "clz(x*(c//2)) - 1",
        "0 < vmin(x) and c > 0 and c % 2 == 0 and vmax(x)*c < 2147483648",
    ),
    Rule("add-sat-commutes", "add_sat(x, y)", "add_sat(y, x)"),
    Rule("add-sat-twice", "add_sat(add_sat(x, c), d)", "add_sat(x, c + d)", "0 <= c and 0 <= d and 0 <= vmin(x)"),
    Rule("row-of-swizzled", "swizzled(x, y) // 8", "x", why="the column stays below 8"),
]
