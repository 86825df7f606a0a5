"""Windows of an image that reach over its border, for their greatest element and for their mean.

``eqsat run examples/pooling.py``
"""

import numpy as np

from eqsat import Kernel, Store, buffer, max_over, sum_over, var, where

CHANNELS, SIDE, POOLED = 64, 112, 56
X, Y = buffer("X", "f32", (CHANNELS, SIDE, SIDE)), buffer("Y", "f32", (CHANNELS, POOLED, POOLED))
c, i, j = var("c", 0, CHANNELS - 1), var("i", 0, POOLED - 1), var("j", 0, POOLED - 1)
a, b = var("a", 0, 2), var("b", 0, 2)


def window(outside: float):
    """The element (a, b) of the 3x3 window of output (i, j), which steps by 2."""
    y, x = i * 2 + a - 1, j * 2 + b - 1
    return where((y >= 0) & (y < SIDE) & (x >= 0) & (x < SIDE), X[c, y, x], outside)


greatest = max_over(max_over(window(float("-inf")), b, 0, 3), a, 0, 3)
mean = sum_over(sum_over(window(0.0), b, 0, 3), a, 0, 3) / 9
max_pool = Kernel("max_pool", [Store(Y[c, i, j], greatest, [c, i, j])])
mean_pool = Kernel("mean_pool", [Store(Y[c, i, j], mean, [c, i, j])])


def _windows(image, outside):
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)), constant_values=outside)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2]


def max_pool_numpy(X):
    return _windows(X, -np.inf).max(axis=(3, 4))


def mean_pool_numpy(X):
    return _windows(X, 0).mean(axis=(3, 4))
