"""Transposes and reshapes through flat indices, as a chain of views leaves them: ``eqsat run examples/views.py``."""

from eqsat import Kernel, Store, buffer, var

A = buffer("A", "f32", (96, 128))
k = var("k", 0, 96 * 128 - 1)
turned = k % 96 * 128 + k // 96
around = k // 64 * 64 + k % 64
head, row, column = k // (96 * 16), k // 16 % 96, k % 16

transpose = Kernel(
    "transpose", [Store(buffer("T", "f32", (128, 96))[k // 96, k % 96], A[turned // 128, turned % 128], [k])]
)
reshape = Kernel(
    "reshape", [Store(buffer("S", "f32", (192, 64))[k // 64, k % 64], A[around // 128, around % 128], [k])]
)
heads = Kernel("heads", [Store(buffer("H", "f32", (8, 96, 16))[head, row, column], A[row, head * 16 + column], [k])])


def transpose_numpy(A):
    return A.T.copy()


def reshape_numpy(A):
    return A.reshape(192, 64).copy()


def heads_numpy(A):
    return A.reshape(96, 8, 16).transpose(1, 0, 2).copy()
