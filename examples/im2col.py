"""Index arithmetic of an unrolled convolution: flatten, tile, and take the digits back.

>>> before, after = convolution()
>>> [str(term) for term in after]
['ky + y0', 'kx + x0']
"""

from __future__ import annotations

from eqsat import Expr, optimize, var


def convolution() -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The input row and column that one flat index over (y, x, ky, kx) reads, before and after."""
    y, x, ky, kx = var("y0", 0, 13), var("x0", 0, 13), var("ky", 0, 2), var("kx", 0, 2)
    flat = ((y * 14 + x) * 3 + ky) * 3 + kx
    row = flat // 126 + flat // 3 % 3
    column = flat // 9 % 14 + flat % 3
    result = optimize([row, column])
    assert result.check().equal
    return result.before, result.exprs


if __name__ == "__main__":
    for old, new in zip(*convolution(), strict=True):
        print(f"{old}\n    = {new}")
