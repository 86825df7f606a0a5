"""Sums over a mask, which is how a compiler without a counter says arange, one-hot and running sums.

``eqsat run examples/masked_sums.py``
"""

import numpy as np

from eqsat import Kernel, Store, buffer, sum_over, var, where

SIZE, CLASSES = 1000, 10
OUT, N, V = buffer("OUT", "i32", (SIZE,)), buffer("N", "i32", (SIZE,)), buffer("V", "f32", (SIZE,))
i, c, r = var("i", 0, SIZE - 1), var("c", 0, CLASSES - 1), var("r", 0, SIZE - 1)
s = var("s", 0, CLASSES - 1)

arange = Kernel("arange", [Store(OUT[i], sum_over(where(r < i, 1, 0), r, 0, SIZE), [i])])
hits = sum_over(where(N[i].eq(s), where(s.eq(c), 1, 0), 0), s, 0, CLASSES)
one_hot = Kernel("one_hot", [Store(buffer("H", "i32", (SIZE, CLASSES))[i, c], hits, [i, c])])
cumulative_sum = Kernel(
    "cumulative_sum", [Store(buffer("S", "f32", (SIZE,))[i], sum_over(where(r <= i, V[r], 0.0), r, 0, SIZE), [i])]
)


def arange_numpy():
    return np.arange(SIZE, dtype=np.int32)


def one_hot_numpy(N):
    return (N[:, None] == np.arange(CLASSES)).astype(np.int32)


def cumulative_sum_numpy(V):
    return np.cumsum(V)
