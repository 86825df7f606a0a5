"""A matrix product by one flat index over its output: ``eqsat run examples/matmul.py``."""

from eqsat import Kernel, Store, buffer, sum_over, var

M, N, K = 96, 128, 64
A, B, C = buffer("A", "f32", (M, K)), buffer("B", "f32", (K, N)), buffer("C", "f32", (M, N))
p, k = var("p", 0, M * N - 1), var("k", 0, K - 1)

matmul = Kernel("matmul", [Store(C[p // N, p % N], sum_over(A[p // N, k] * B[k, p % N], k, 0, K), [p])])


def matmul_numpy(A, B):
    return A @ B
