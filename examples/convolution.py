"""A padded convolution, and the columns that it multiplies: ``eqsat run examples/convolution.py``.

One flat index q over (ky, kx, channel) takes a window apart, one flat index p over (row, column) says where it stands.
"""

import numpy as np

from eqsat import Kernel, Store, buffer, sum_over, var, where

SIDE, CHANNELS, OUTPUTS, WINDOW = 28, 8, 16, 9 * 8
X = buffer("X", "f32", (SIDE, SIDE, CHANNELS))
W = buffer("W", "f32", (WINDOW, OUTPUTS))
p, q, o = var("p", 0, SIDE * SIDE - 1), var("q", 0, WINDOW - 1), var("o", 0, OUTPUTS - 1)
y, x = p // SIDE + q // (3 * CHANNELS) - 1, p % SIDE + q % (3 * CHANNELS) // CHANNELS - 1
inside = (y >= 0) & (y < SIDE) & (x >= 0) & (x < SIDE)
element = where(inside, X[y, x, q % CHANNELS], 0.0)

im2col = Kernel("im2col", [Store(buffer("Y", "f32", (SIDE * SIDE, WINDOW))[p, q], element, [p, q])])
convolution = Kernel(
    "convolution",
    [Store(buffer("Y", "f32", (SIDE * SIDE, OUTPUTS))[p, o], sum_over(element * W[q, o], q, 0, WINDOW), [p, o])],
)


def im2col_numpy(X):
    padded = np.pad(X, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    return windows.transpose(0, 1, 3, 4, 2).reshape(SIDE * SIDE, WINDOW)


def convolution_numpy(X, W):
    return im2col_numpy(X) @ W
