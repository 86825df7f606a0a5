"""Rows by index, stated as a sum over all rows; an index that is out of range takes zeros.

``eqsat run examples/gather.py``
"""

import numpy as np

from eqsat import Kernel, Store, buffer, sum_over, var, where

ROWS, COLUMNS, TAKEN = 200, 64, 100
A, N, Y = buffer("A", "f32", (ROWS, COLUMNS)), buffer("N", "i32", (TAKEN,)), buffer("Y", "f32", (TAKEN, COLUMNS))
i, c, r = var("i", 0, TAKEN - 1), var("c", 0, COLUMNS - 1), var("r", 0, ROWS - 1)

gather = Kernel("gather", [Store(Y[i, c], sum_over(where(N[i].ne(r), 0.0, A[r, c]), r, 0, ROWS), [i, c])])


def gather_numpy(A, N):
    inside = (N >= 0) & (N < ROWS)
    return np.where(inside[:, None], A[np.clip(N, 0, ROWS - 1)], 0)
