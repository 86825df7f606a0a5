"""The pieces of a softmax over rows, and the whole: ``eqsat run examples/softmax.py``."""

import numpy as np

from eqsat import Kernel, Store, buffer, exp, max_over, sum_over, var

ROWS, COLUMNS = 64, 128
A, P = buffer("A", "f32", (ROWS, COLUMNS)), buffer("P", "f32", (ROWS, COLUMNS))
TOP, TOTAL = buffer("TOP", "f32", (ROWS,)), buffer("TOTAL", "f32", (ROWS,))
i, c, r = var("i", 0, ROWS - 1), var("c", 0, COLUMNS - 1), var("r", 0, COLUMNS - 1)
greatest = max_over(A[i, r], r, 0, COLUMNS)
total = sum_over(exp(A[i, r] - greatest), r, 0, COLUMNS)

pieces = Kernel("pieces", [Store(TOP[i], greatest, [i]), Store(TOTAL[i], total, [i])])
softmax = Kernel("softmax", [Store(P[i, c], exp(A[i, c] - greatest) / total, [i, c])])


def pieces_numpy(A):
    top = A.max(axis=1)
    return {"TOP": top, "TOTAL": np.exp(A - top[:, None]).sum(axis=1)}


def softmax_numpy(A):
    shifted = np.exp(A - A.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
