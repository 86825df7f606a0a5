"""Kernels: what is refused, worked examples against NumPy, the C they become, random ones under the sanitizers."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import subprocess
import sys
from itertools import batched
from types import SimpleNamespace

import numpy as np
import pytest
from random_kernels import contents, random_kernel, run_in_c

import eqsat
from eqsat.codegen.nests import to_c
from eqsat.codegen.programs import Program
from eqsat.codegen.trusted import with_tests
from eqsat.extract import OpCount
from eqsat.kernels.kernel import Kernel, Store, flattened
from eqsat.kernels.simplification import optimized, simplified
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import (
    exp,
    log,
    max_over,
    maximum,
    min_over,
    minimum,
    prod_over,
    sqrt,
    sum_over,
    to_double,
    where,
)
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables

I, J, K, R = var("i", 0, 15), var("j", 0, 23), var("k", 0, 511), var("r", 0, 31)  # noqa: E741
A, B, C = buffer("A", "f32", (16, 32)), buffer("B", "f32", (32, 24)), buffer("C", "f32", (16, 24))
N = buffer("N", "i32", (16,))
SHIFT = buffer("SHIFT", "i32", (16,))
SHORT = buffer("N", "i32", (8,))
DOUBLE = buffer("DOUBLE", "f64", (16,))
ROW = buffer("ROW", "f32", (32,))
U = var("u", 0, None)
OUT, OUTER = buffer("OUT", "i32", (16,)), buffer("out", "i32", (16,))
ADDED = Kernel("added", [Store(OUT[I], I + var("p", 0, 9), [I])])
TWICE = Kernel("twice", [Store(OUT[I], N[I] % 9 * 2, [I], True)])


def compile_one(value: Expr) -> Program:
    """A kernel that stores ``value`` to elements of f32."""
    return eqsat.compile(Kernel("k", [Store(buffer("Y", "f32", (16,))[I], value, [I])]))


REFUSED = [
    (lambda: Kernel("k", []), ValueError, "kernel 'k' stores nothing"),
    (lambda: Store(C, 1.0, [I]), TypeError, "the target of a store is an element"),
    (lambda: Store(C[I, J], I < 3, [I, J]), TypeError, "is a condition, but the elements of 'C' are f32"),
    (lambda: Store(OUT[I], A[I, 0], [I]), TypeError, "the elements of 'OUT' are integers"),
    (lambda: Store(OUT[I], N[I] * 2, [I]), ValueError, "which i32, the element type of 'OUT', does not hold"),
    (lambda: Store(OUT[I + 1], 0, [I]), ValueError, r"the index 'i \+ 1' of 'OUT\[i \+ 1\]' has range \[1, 16\]"),
    (lambda: Store(OUT[I], 0, [I, I]), ValueError, "ranges over distinct variables"),
    (lambda: Store(OUT[U % 16], 0, [U]), ValueError, "the loop over 'u' has no end: give the variable bounds"),
    (lambda: Store(OUT[I], 0, [I], N[I]), TypeError, "the guard of a store is a condition"),
    (lambda: Store(buffer("X")[I], 0, [I]), ValueError, "buffer 'X' has no shape"),
    (lambda: Kernel("k", [Store(OUT[I], OUT[I] // 2, [I])]), ValueError, "loads from 'OUT', which it also stores to"),
    (lambda: Kernel("k", [Store(OUT[I], buffer("X")[I], [I])]), ValueError, "buffer 'X' has no shape"),
    (lambda: Kernel("k", [Store(OUT[I], N[I] // 2 * var("N", 0, 1), [I])]), ValueError, "both a buffer and a variable"),
    (lambda: Kernel("k", [Store(OUT[I], N[I] % 2 - SHORT[3] % 2, [I])]), ValueError, "two declarations"),
    (lambda: A[I], TypeError, "buffer 'A' takes 2 indices, not 1"),
    (lambda: A[A[I, 0], 0], TypeError, "load needs an integer"),
    (lambda: buffer("X", "f16"), ValueError, "elements of unknown type 'f16'"),
    (lambda: buffer("X", "f32", (3, 0)), ValueError, r"the shape \(3, 0\) of buffer 'X' must have an axis"),
    (lambda: buffer("X", "f32", ()), ValueError, r"the shape \(\) of buffer 'X' must have an axis"),
    (lambda: Kernel("k", Store(OUT[I], 0, [I])), TypeError, "kernel 'k' takes a list of stores"),
    (lambda: Store(OUT[I], 0, I), TypeError, r"a store ranges over Expr\('i'\): give a list of variables"),
    (lambda: Store(OUT[I], 0, None), TypeError, "a store ranges over None: give a list of variables"),
    (lambda: Kernel("k", [None]), TypeError, "kernel 'k' takes a list of stores, and NoneType is no Store"),
    (lambda: Store(None, 0, [I]), TypeError, r"the target of a store is an element such as C\[i\], not NoneType"),
    (lambda: Kernel("k", [OUT[I]]), TypeError, "kernel 'k' takes a list of stores, and Expr is no Store"),
    (lambda: Store(DOUBLE[I], 10**400, [I]), ValueError, "an integer of 1329 bits is too large for f64"),
    (lambda: Store(DOUBLE[I], -(10**5000), [I]), ValueError, "an integer of 16610 bits is too large for f64"),
    (lambda: Store(C[I, J], 10**50, [I, J]), ValueError, r"the literal 1e\+50 is too large for f32"),
    (lambda: Store(C[I, J], -1e39, [I, J]), ValueError, r"the literal -1e\+39 is too large for f32"),
    (lambda: Kernel("k", [Store(OUT[I], 0, [I]), Store(OUTER[0], I)]), ValueError, "'i' is a parameter of one store"),
    (lambda: TWICE.reference({}), TypeError, "kernel 'twice' lacks N"),
    (lambda: TWICE.reference({"N": np.full(16, None)}), TypeError, "array 'N' has elements of type object, not i32"),
    (lambda: TWICE.reference({"N": np.ones(16)}), TypeError, "array 'N' has elements of type float64, not i32"),
    (lambda: ADDED.reference({}), TypeError, "kernel 'added' lacks p"),
    (lambda: ADDED.reference({}, p="3"), TypeError, "the value of 'p' is given as '3': give an integer"),
    (lambda: ADDED.reference({}, p=10), ValueError, r"variable 'p' is given 10, outside its range \[0, 9\]"),
    (lambda: TWICE.reference({"N": np.zeros(3)}), ValueError, r"array 'N' has shape \(3,\), not \(16,\)"),
    (lambda: Store(OUT[I], 0, [3]), ValueError, "ranges over distinct variables, not over '3'"),
    (lambda: Store(OUT[I], N, [I]), ValueError, r"'N' is an array, not a value: index it, as in N\[i\]"),
    (lambda: Store(C[I, J], A, [I, J]), ValueError, r"'A' is an array, not a value: index it, as in A\[i, j\]"),
    (lambda: Store(3, 0, [I]), TypeError, r"the target of a store is an element such as C\[i\], not int"),
    (lambda: Kernel("k", [3]), TypeError, "kernel 'k' takes a list of stores, and int is no Store"),
    (lambda: eqsat.compile(3), TypeError, "3 is no kernel: give an eqsat.Kernel"),
    (lambda: to_c(flattened(Kernel("exp", [Store(OUT[I], 0, [I])]))), ValueError, "'exp' cannot name a C function"),
    (lambda: eqsat.compile(Kernel("k", [Store(OUT[I], OUTER[I], [I])])), ValueError, "has an argument 'out'"),
    (lambda: eqsat.optimize(A[I, 0]), ValueError, "is a floating-point value"),
    (lambda: ADDED.reference({}, p=10**5000), ValueError, r"variable 'p' is given 0x31e2.*\.\.\., outside its range"),
    (lambda: Store(OUT[0], var("w", 0, 10**5000)), ValueError, r"'w' has range \[0, 0x31e2.*\.\.\.\], which i32, the"),
    (lambda: Store(OUT[var("w", 0, 10**5000)], 0), ValueError, r"has range \[0, 0x31e2.*\.\.\.\], but axis 0 has ext"),
    (lambda: Kernel("k", [Store(OUT[0], sum_over(I, I, 0, 9).args[0])]), ValueError, "'r1' has 'r1', the index of no"),
    (lambda: compile_one(sum_over(A[0, R], R, 0, U)), ValueError, "'u' has range .* holds: give bounds to 'u'"),
    (lambda: compile_one(A[9 // var("d", 0, 9), 0]), ValueError, r"where\(d != 0, 9//d, 0\)"),
    (lambda: compile_one(sum_over(A[9 // (5 - R), 0], R, 0, 9)), ValueError,
     r"the divisor '5 - r1' of '9//\(5 - r1\)' in kernel 'k' may be zero: its range is \[-3, 5\]; narrow it or write"),
    (lambda: compile_one(max_over(A[R // 4 % 16, 9 // (R % 4 - I % 2)], R, 0, 32)), ValueError, "'r1%4 - i%2' of"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refused_with_one_line(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


#: What the wrapper, the drivers, helpers, headers, compilers and the written function itself call something.
NAMES_OF_C = [
    *["arrays", "numbers", "eqsat_call", "eqsat_arrays", "omp_set_num_threads", "omp_get_num_threads", "GOMP_parallel"],
    *["floor_div_i32", "x", "T", "f32x4", "t0", "acc0", "r1", "v0", "exp", "fabsf", "memcpy", "printf", "main"],
    *["int32_t", "INT32_MIN", "INFINITY", "HUGE_VAL", "bool", "true", "for", "asm", "typeof", "linux", "_x"],
    *["__LINE__", "__builtin_memcpy", "α", "u3b1"],
]


@pytest.mark.parametrize("n", range(len(NAMES_OF_C)), ids=NAMES_OF_C)
def test_names_of_users_do_not_clash_with_those_of_c(n):
    """Kernels called arrays or numbers did not compile: parameters of what calls them had these names."""
    name, a, b, out, i, j, p = [NAMES_OF_C[(n + 5 * k) % len(NAMES_OF_C)] for k in range(7)]
    row, column, least = var(i, 0, 7), var(j, 0, 3), var(p, -9, 9)
    x, y = buffer(a, "f32", (8, 4))[row, column], buffer(b, "i32", (8, 4))[row, column]
    summed = sum_over(x * buffer(a, "f32", (8, 4))[row, R % 4], R, 0, 4)
    values = [where(y > least, summed, -math.inf), (y + least) // (y % 99 + 1)]
    outs = [buffer(out, "f32", (8, 4)), buffer("other", "i64", (8, 4))]
    stores = [Store(o[row, column], v, [row, column]) for o, v in zip(outs, values, strict=True)]
    given = {a: f32((8, 4)), b: np.arange(32, dtype=np.int32).reshape(8, 4)}
    kernel = Kernel(name, stores)
    for options in ({}, {"parallel": True}, {"lanes": 4}):
        found = eqsat.compile(kernel, **options)(**given, **{p: 2})
        want = kernel.reference(given, **{p: 2})
        assert all(np.array_equal(found[o], want[o]) for o in want)


@pytest.mark.parametrize("name", ["", "3x3 pool", "a/*b", "π", "switch"])
def test_a_kernel_may_have_any_name(name):
    n = np.arange(16, dtype=np.int32)
    assert np.array_equal(eqsat.compile(Kernel(name, TWICE.stores))(N=n)["OUT"], TWICE.reference({"N": n})["OUT"])


def test_a_guard_keeps_an_index_inside():
    kernel = Kernel("shift", [Store(OUT[I + 1], N[I], [I], I < 15)])
    n = np.arange(16, dtype=np.int32)
    assert np.array_equal(eqsat.compile(kernel)(N=n)["OUT"], np.concatenate([[0], n[:15]]))


def f32(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def im2col() -> tuple[Kernel, dict, dict]:
    """A 3x3 convolution of an 8x8x4 image with padding 1, by one flat index over (ky, kx, channel)."""
    image, weight, out = buffer("X", "f32", (8, 8, 4)), buffer("W", "f32", (36, 5)), buffer("Y", "f32", (64, 5))
    p, o, q = var("p", 0, 63), var("o", 0, 4), var("q", 0, 35)
    y, x = p // 8 + q // 12 - 1, p % 8 + q % 12 // 4 - 1
    inside = (y >= 0) & (y < 8) & (x >= 0) & (x < 8)
    taken = where(inside, image[y, x, q % 4], 0.0)
    kernel = Kernel("conv", [Store(out[p, o], sum_over(taken * weight[q, o], q, 0, 36), [p, o])])
    xs, ws = f32((8, 8, 4)), f32((36, 5), 1)
    padded = np.pad(xs, ((1, 1), (1, 1), (0, 0)))
    want = sum(
        padded[ky : ky + 8, kx : kx + 8].reshape(64, 4) @ ws.reshape(3, 3, 4, 5)[ky, kx]
        for ky in range(3)
        for kx in range(3)
    )
    return kernel, {"X": xs, "W": ws}, {"Y": want}


def matmul() -> tuple[Kernel, dict, dict]:
    a, b = f32((16, 32)), f32((32, 24), 1)
    kernel = Kernel("matmul", [Store(C[I, J], sum_over(A[I, R] * B[R, J], R, 0, 32), [I, J])])
    return kernel, {"A": a, "B": b}, {"C": a @ b}


def transpose() -> tuple[Kernel, dict, dict]:
    """(16, 32) to (32, 16) by flat indices, twice turned and turned back."""
    out = buffer("T", "f32", (32, 16))
    turned = K % 16 * 32 + K // 16
    a = f32((16, 32))
    return Kernel("turn", [Store(out[K // 16, K % 16], A[turned // 32, turned % 32], [K])]), {"A": a}, {"T": a.T}


def reshape() -> tuple[Kernel, dict, dict]:
    out = buffer("S", "f32", (8, 64))
    a = f32((16, 32))
    kernel = Kernel("reshape", [Store(out[K // 64, K % 64], A[K // 32, K % 32], [K])])
    return kernel, {"A": a}, {"S": a.reshape(8, 64)}


def pooling() -> tuple[Kernel, dict, dict]:
    image, out = buffer("X", "f32", (10, 10)), buffer("P", "f32", (5, 5))
    y, x, a, b = var("y", 0, 4), var("x", 0, 4), var("a", 0, 2), var("b", 0, 2)
    at_y, at_x = y * 2 + a - 1, x * 2 + b - 1
    inside = (at_y >= 0) & (at_y < 10) & (at_x >= 0) & (at_x < 10)
    value = max_over(max_over(where(inside, image[at_y, at_x], -99.0), b, 0, 3), a, 0, 3)
    xs = f32((10, 10))
    padded = np.pad(xs, 1, constant_values=-99)
    want = np.array([[padded[2 * r : 2 * r + 3, 2 * c : 2 * c + 3].max() for c in range(5)] for r in range(5)])
    return Kernel("pool", [Store(out[y, x], value, [y, x])]), {"X": xs}, {"P": want}


def softmax() -> tuple[Kernel, dict, dict]:
    c = var("c", 0, 31)
    out = buffer("P", "f32", (16, 32))
    top = max_over(A[I, R], R, 0, 32)
    kernel = Kernel("softmax", [Store(out[I, c], exp(A[I, c] - top) / sum_over(exp(A[I, R] - top), R, 0, 32), [I, c])])
    a = f32((16, 32)) / 4
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return kernel, {"A": a}, {"P": e / e.sum(axis=1, keepdims=True)}


def one_hot() -> tuple[Kernel, dict, dict]:
    out, c = buffer("H", "i32", (16, 10)), var("c", 0, 9)
    n = np.arange(16, dtype=np.int32) % 13
    kernel = Kernel("one_hot", [Store(out[I, c], where(N[I].eq(c), 1, 0), [I, c])])
    return kernel, {"N": n}, {"H": n[:, None] == np.arange(10)}


def cumulative_sum() -> tuple[Kernel, dict, dict]:
    """By a sum over everything with what comes later masked."""
    out, a = buffer("S", "f32", (32,)), buffer("V", "f32", (32,))
    i, r = var("i", 0, 31), var("r", 0, 31)
    v = f32((32,))
    kernel = Kernel("cumsum", [Store(out[i], sum_over(where(r <= i, a[r], 0.0), r, 0, 32), [i])])
    return kernel, {"V": v}, {"S": np.cumsum(v)}


def arange() -> tuple[Kernel, dict, dict]:
    """By counting: how many smaller indices there are."""
    kernel = Kernel("arange", [Store(OUT[I], sum_over(where(R < I, 1, 0), R, 0, 16), [I])])
    return kernel, {}, {"OUT": np.arange(16)}


def gather() -> tuple[Kernel, dict, dict]:
    """Rows by index, by a sum over all rows; out of range there are zeros."""
    out, c = buffer("G", "f32", (16, 32)), var("c", 0, 31)
    r = var("r", 0, 15)
    value = sum_over(where(N[I].ne(r), 0.0, A[r, c]), r, 0, 16)
    a, n = f32((16, 32)), np.random.default_rng(2).integers(-3, 19, 16).astype(np.int32)
    want = np.where(((n >= 0) & (n < 16))[:, None], a[np.clip(n, 0, 15)], 0)
    return Kernel("gather", [Store(out[I, c], value, [I, c])]), {"A": a, "N": n}, {"G": want}


def normalise() -> tuple[Kernel, dict, dict]:
    """Two outputs of one kernel, a parameter, and a mean of squares."""
    out, norm, c = buffer("Y", "f64", (16, 32)), buffer("Z", "f64", (16,)), var("c", 0, 31)
    scale = var("scale", 1, 100)
    x = buffer("X", "f64", (16, 32))
    size = sqrt(sum_over(x[I, R] * x[I, R], R, 0, 32) / 32)
    stores = [Store(out[I, c], x[I, c] * scale / maximum(size, 1.0), [I, c]), Store(norm[I], size, [I])]
    a = f32((16, 32)).astype(np.float64)
    rms = np.sqrt((a * a).mean(axis=1))
    want = {"Y": a * 7 / np.maximum(rms, 1)[:, None], "Z": rms}
    return Kernel("normalise", stores), {"X": a, "scale": 7}, want


def agrees(value: object, element: str, *arrays: tuple[str, str, list]) -> list:
    """What storing ``value`` over ``I`` gives in C, optimised or not, and by the evaluator: all the same."""
    out = buffer("Y", element, (16,))
    kernel = Kernel("rounded", [Store(out[I], value, [I])])
    given = {name: np.resize(np.array(content, dtype=kind), 16) for name, kind, content in arrays}
    want = kernel.reference(given)["Y"]
    for optimize in (True, False):
        assert np.array_equal(eqsat.compile(kernel, optimize=optimize)(**given)["Y"], want)
    return want.tolist()


def test_literals_keep_their_digits_beside_and_in_arrays_of_f64():
    d = buffer("D", "f64", (16,))
    assert agrees(0.1, "f64") == [0.1] * 16
    assert agrees(0.1, "f32") == [float(np.float32(0.1))] * 16
    assert agrees(d[I] * 0.1 + 1e300, "f64", ("D", "f8", [7.0])) == [7.0 * 0.1 + 1e300] * 16


def test_integers_keep_their_digits_beside_and_in_arrays_of_f64():
    d, odd = ("D", "f8", [0.5]), 2**24 + 1
    n, wide = ("N", "i4", [odd]), ("W", "i8", [2**53 - 1, -odd])
    whole = buffer("W", "i64", (16,))[I]
    assert agrees(N[I], "f64", n) == [odd] * 16
    assert agrees(odd, "f64") == [odd] * 16
    assert agrees(whole, "f64", wide)[:2] == [2**53 - 1, -odd]
    assert agrees(N[I], "f32", n) == [2**24] * 16
    # half way between two values of f32, and one more, which f64 does not hold
    above = 2**62 + 2**38 + 1
    assert agrees(whole, "f32", ("W", "i8", [above, -above]))[:2] == [2**62 + 2**39, -(2**62) - 2**39]
    assert agrees(above, "f32") == [2**62 + 2**39] * 16
    assert agrees(buffer("D", "f64", (16,))[I] + N[I], "f64", d, n) == [odd + 0.5] * 16
    assert agrees(where(N[I] < 0, buffer("D", "f64", (16,))[I], N[I]), "f64", d, n) == [odd] * 16


def test_products_signs_roots_and_logarithms():
    x, r = buffer("D", "f64", (16,)), var("r", 0, 3)
    given = ("D", "f8", [2.0, -0.5, 1.0, 4.0])
    assert agrees(prod_over(x[r], r, 0, 4), "f64", given) == [-4.0] * 16
    assert agrees(prod_over(N[r] % 5, r, 0, I % 4), "i64", ("N", "i4", [2, -1, 3, 9]))[:4] == [1, 2, 8, 24]
    assert agrees((-x[I]) * -1.0 - -1.5, "f64", given)[:4] == [3.5, 1.0, 2.5, 5.5]
    assert agrees(log(x[2]), "f64", given) == [0.0] * 16
    assert agrees(sqrt(x[0]), "f64", given) == [math.sqrt(2.0)] * 16
    single = buffer("S", "f32", (16,))
    assert agrees(sqrt(single[0]), "f64", ("S", "f4", [2.0])) == [float(np.sqrt(np.float32(2.0)))] * 16
    assert agrees(where(x[I].ne(math.nan), math.inf, x[I]), "f64", given) == [math.inf] * 16


def test_a_range_may_begin_where_no_32_bits_reach():
    n, r = var("n", 0, 2**40), var("r", 0, 15)
    out = buffer("Y", "i64", (16,))
    for value, over in ((sum_over(N[r], r, n, 10), []), (sum_over(A[r, I] * 1.0, r, n, 10), [I])):
        target = buffer("Y", value.element, (16,))[I] if over else out[0]
        kernel = Kernel("wide", [Store(target, value, over)])
        given = {b.name: np.ones(b.shape, "i4" if b.element == "i32" else "f4") for b in kernel.inputs}
        for first in (3, 10, 2**32 + 3, 2**40):
            want = kernel.reference(given, n=first)["Y"]
            for optimize in (True, False):
                assert np.array_equal(eqsat.compile(kernel, optimize=optimize)(**given, n=first)["Y"], want)


def test_a_row_of_sums_may_end_where_a_selection_says():
    n, r = var("n", 0, 9), var("r", 0, 15)
    kernel = Kernel("chosen", [Store(buffer("Y", "f32", (32,))[R], sum_over(A[r, R], r, 0, where(n < 3, 2, 4)), [R])])
    assert "r1 < (n < 3 ? 2 : 4)" in to_c(flattened(kernel))
    given = {"A": np.ones((16, 32), "f4")}
    assert eqsat.compile(kernel, optimize=False)(**given, n=2)["Y"].tolist() == [2.0] * 32


def test_no_interior_is_where_a_parameter_is_at_its_bound():
    r, m, out = var("r", -(2**33), 9), var("m", -(2**33), 7), buffer("Y", "i64", (16, 24))
    kernel = Kernel("rare", [Store(out[I, J], sum_over(r % 7, r, m, minimum(I, 2)), [I, J])])
    assert "r1 = -" not in to_c(flattened(kernel))
    assert eqsat.compile(kernel, optimize=False)(m=-5)["Y"].tolist() == kernel.reference({}, m=-5)["Y"].tolist()


LEAST = -(2**63)
SMALL, ANYWHERE, ELEMENT = var("s", 0, 9), var("n", LEAST, 2**63 - 1), buffer("L", "i64", (16,))
LOW, HIGH = var("v", LEAST, LEAST + 15), var("v", 2**62, 2**62 + 15)


@pytest.mark.parametrize(
    "store",
    [
        # the interior would start at n - min(n, 0), or test L[v - 2**62] - v
        Store(OUT[I], where(ANYWHERE.eq(I), N[I], -1), [I]),
        Store(
            OUT[HIGH - 2**62],
            where((HIGH - 2**62 < SMALL + 9) & (ELEMENT[HIGH - 2**62] <= HIGH - 2**62), N[HIGH - 2**62], 0),
            [HIGH],
        ),
        # added from the outermost loop to the innermost, s + 2**63 would come first
        Store(
            OUT[LOW - LEAST],
            sum_over(where(ELEMENT[LOW - LEAST] >= SMALL, N[(SMALL + LOW - LEAST + R) % 16], 0) % 2, R, 0, 10),
            [LOW],
        ),
    ],
    ids=["ends", "tests", "sums"],
)
def test_what_fits_64_bits_still_fits_when_optimised(store):
    kernel = Kernel("far", [store])
    contents = {"N": np.arange(16, dtype=np.int32), "L": np.arange(16) ** 2 - 100}
    given = {b.name: contents[b.name] for b in kernel.inputs}
    run = eqsat.compile(kernel)
    for n, s in ((LEAST, 3), (5, 0), (2**63 - 1, 9)):
        parameters = {str(v.value): {"n": n, "s": s}[v.value] for v in kernel.parameters}
        assert np.array_equal(run(**given, **parameters)["OUT"], kernel.reference(given, **parameters)["OUT"])


@pytest.mark.parametrize(
    "term",
    [
        # the body for r = n would have 104 bits, n + 1 and the number of steps have 65
        sum_over(where(R.eq(ANYWHERE), to_double(R * 2**40), 0.0), R, 0, 9),
        sum_over(where(R <= ANYWHERE, DOUBLE[R % 16], 0.0), R, 0, 9),
        max_over(where(R > ANYWHERE, DOUBLE[R % 16], -math.inf), R, 0, 9),
        sum_over(DOUBLE[3], var("q", LEAST, 2**63 - 2), ANYWHERE, var("m", LEAST, 2**63 - 1)),
    ],
)
@pytest.mark.parametrize("reassociate", [False, True])
def test_what_fits_64_bits_still_fits_over_fewer_steps(term: Expr, reassociate: bool):
    kernel = Kernel("far", [Store(buffer("Y", "f64", (1,))[0], term)])
    given = {b.name: np.arange(16.0) for b in kernel.inputs}
    run = eqsat.compile(kernel, reassociate=reassociate)
    for n, m, s in ((LEAST, LEAST + 9, 3), (5, 9, 0), (2**63 - 1, 5, 0)):
        parameters = {str(v.value): {"n": n, "m": m, "s": s}[v.value] for v in kernel.parameters}
        assert run(**given, **parameters)["Y"] == kernel.reference(given, **parameters)["Y"]


@pytest.mark.parametrize("optimize", [False, True])
def test_addresses_whose_literals_add_up_to_more_than_64_bits(optimize: bool) -> None:
    """One kernel has loops that could merge, one a loop and one a sum that could be taken in digits."""
    n, i, j, f = var("n", LEAST, LEAST + 3), var("i", 0, 7), var("j", 0, 7), buffer("F", "f32", (99,))
    far, digits, k = n + 2**62 + 2**62, R % 4 * 6 + R // 4, var("k", 0, 63)
    values, out = np.arange(99, dtype=np.float32), buffer("Y", "f32", (64,))
    for store in (
        Store(out[i * 8 + j], f[far + i * 8 + j], [i, j]),
        Store(out[k // 8 + k % 8 * 8], f[far + k], [k]),
        Store(out[i], sum_over(f[far + digits + i], R, 0, 24), [i]),
    ):
        kernel = Kernel("far", [store])
        found = eqsat.compile(kernel, optimize=optimize)(F=values, n=LEAST + 2)
        assert np.array_equal(found["Y"], kernel.reference({"F": values}, n=LEAST + 2)["Y"])


def test_the_reference_loads_by_indices_of_more_than_64_bits():
    kernel = Kernel("far", [Store(OUT[I], N[ANYWHERE * 2 + I], [I])])
    assert kernel.reference({"N": np.arange(16)}, n=0)["OUT"].tolist() == list(range(16))


def test_the_reference_divides_only_for_what_is_stored():
    x, out = var("x", 0, 3), buffer("O", "i32", (4,))
    stored = Kernel("some", [Store(out[x], 12 // x, [x], when=x > 0)])
    assert stored.reference({})["O"].tolist() == [0, 12, 6, 4]
    with pytest.raises(ZeroDivisionError, match="division by zero: '12//x' is needed where 'x' is 0"):
        Kernel("all", [Store(out[x], 12 // x, [x])]).reference({})


def test_the_reference_divides_only_in_the_branch_that_is_chosen():
    x, given = var("x", 0, 3), {"A": np.arange(512, dtype="f4").reshape(16, 32)}
    chosen = Kernel("some", [Store(buffer("Y", "f32", (4,))[x], where(x.ne(0), A[12 // x, 0], -1.0), [x])])
    assert chosen.reference(given)["Y"].tolist() == [-1.0, 384.0, 192.0, 128.0]
    other = Kernel("all", [Store(buffer("Y", "f32", (4,))[x], where(x.eq(0), A[12 // x, 0], -1.0), [x])])
    with pytest.raises(ZeroDivisionError, match="'12//x' is needed where 'x' is 0"):
        other.reference(given)


@pytest.mark.parametrize(
    "value",
    [
        # the range of a reduction keeps the divisor from zero, a branch around it or around the load does
        sum_over(A[12 // (SMALL - R) % 16, 0], R, 0, SMALL),
        max_over(where(SMALL > 0, A[R // 4 % 16, (R % 4 + 12 // SMALL) % 32], 0.0), R, 0, 32),
        where(SMALL > 0, sum_over(A[R // 4 % 16, (R % 4 + 12 // SMALL) % 32], R, 0, 32), -1.0),
        where(SMALL > 0, max_over(A[R // 4 % 16, (R % 4 + 12 // SMALL) % 32], R, 0, 32), -1.0),
        where(SMALL > 0, sum_over(N[R // 4 % 16] % 9 * (R % 4) * (12 // SMALL), R, 0, 32), -1),
        # the same for what a comparison loads
        where(SMALL > 0, where(A[12 // SMALL, 0] < 99.5, 1, 0), 0),
        sum_over(where(A[12 // (SMALL - R) % 16, 0] < 99.5, R, 0), R, 0, SMALL),
        # neither does a comparison leave its branch or its reduction, nor a condition on the index that divides
        where(SMALL > 0, where(ROW[12 // SMALL] < 0.5, 1, 0), 0),
        sum_over(where(ROW[12 // SMALL] < 99.5, R, 0), R, 0, SMALL),
        sum_over(where(R < 12 // SMALL, ROW[R], 0.0), R, 0, SMALL),
        sum_over(where(R.eq(12 // SMALL - 2), ROW[R], 0.0), R, 0, SMALL),
    ],
)
@pytest.mark.parametrize("reassociate", [False, True])
def test_what_is_around_a_division_keeps_its_divisor_from_zero(value: Expr, reassociate: bool):
    kernel = Kernel("guarded", [Store(buffer("Y", "f64", (1,))[0], value)])
    contents = {"A": np.arange(512, dtype="f4").reshape(16, 32), "N": np.arange(16, dtype="i4")}
    contents["ROW"] = np.arange(32, dtype="f4")
    given = {b.name: contents[b.name] for b in kernel.inputs}
    run = eqsat.compile(kernel, reassociate=reassociate)
    found = optimized(flattened(kernel), reassociate=reassociate)
    flat = {name: array.ravel() for name, array in given.items()}
    for s in (0, 1, 5, 9):
        want = kernel.reference(given, s=s)["Y"]
        assert run(**given, s=s)["Y"] == found.reference(flat, s=s)["Y"] == want


def test_loops_at_the_ends_of_64_bits():
    least = -(2**63)
    first, last = var("v", least, least + 15), var("v", 2**63 - 16, 2**63 - 1)
    kernel = Kernel("least", [Store(OUT[first % 16], first // 2**40, [first])])
    assert "int64_t v = INT64_MIN;" in to_c(flattened(kernel))
    assert eqsat.compile(kernel)()["OUT"].tolist() == kernel.reference({})["OUT"].tolist()
    with pytest.raises(ValueError, match=r"the term 'v \+ 1' has range .*: narrow the range of 'v'"):
        to_c(flattened(Kernel("last", [Store(OUT[last % 16], 1, [last])])))


def test_extremes_over_no_values_and_over_the_least():
    r = var("r", 0, 15)
    assert agrees(max_over(N[r], r, 0, I), "i64", ("N", "i4", [-(2**31), 5]))[:3] == [-(2**31), -(2**31), 5]
    wide = buffer("W", "i64", (16,))
    assert agrees(max_over(wide[r], r, 0, I), "i64", ("W", "i8", [-(2**63), 5]))[:3] == [-(2**31), -(2**63), 5]
    assert agrees(min_over(wide[r], r, 0, I), "i64", ("W", "i8", [2**63 - 1, 5]))[:3] == [2**31 - 1, 2**63 - 1, 5]


def test_parameters_keep_their_digits_beside_f64():
    p, out, d = var("p", 0, 2**30), buffer("Y", "f64", (16,)), buffer("D", "f64", (16,))
    kernel = Kernel("scaled", [Store(out[I], d[I] * p, [I])])
    given = {"D": np.full(16, 0.5)}
    for found in (kernel.reference(given, p=2**24 + 1), eqsat.compile(kernel)(**given, p=2**24 + 1)):
        assert found["Y"].tolist() == [2**23 + 0.5] * 16


def test_a_sum_of_one_f64_value_counts_its_steps_in_f64():
    p, out, d = var("p", 0, 2**30), buffer("Y", "f64", (16,)), buffer("D", "f64", (16,))
    kernel = Kernel("repeated", [Store(out[I], sum_over(d[I], var("r", 0, 2**30), 0, p), [I])])
    found = eqsat.compile(kernel, reassociate=True)(D=np.full(16, 0.5), p=2**24 + 1)
    assert found["Y"].tolist() == [2**23 + 0.5] * 16


#: The kernel, how many loops over a reduction may stay, how many divisions.
EXAMPLES = [
    (matmul, 1, 0),
    (im2col, 1, 4),
    (transpose, 0, 2),
    (reshape, 0, 0),
    (pooling, 2, 0),
    (softmax, 2, 0),
    (one_hot, 0, 0),
    (cumulative_sum, 1, 0),
    (arange, 0, 0),
    # bounds of what is gathered are one shift
    (gather, 0, 1),
    (normalise, 1, 0),
]


def count(kernel: Kernel, ops: object) -> int:
    return sum(t.op in ops for t in topological(kernel.roots))


@pytest.mark.parametrize(("make", "loops", "divisions"), EXAMPLES, ids=lambda x: getattr(x, "__name__", ""))
def test_worked_examples(make, loops, divisions):
    kernel, inputs, want = make()
    compiled = eqsat.compile(kernel)
    plain = eqsat.compile(kernel, optimize=False)
    lanes = eqsat.compile(kernel, reassociate=True, parallel=True)
    found, unoptimised = compiled(**inputs), plain(**inputs)
    for name, values in want.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
        # every operation is kept, in its order
        assert np.array_equal(found[name], unoptimised[name])
        np.testing.assert_allclose(lanes(**inputs)[name], values, rtol=1e-5)
        np.testing.assert_allclose(
            kernel.reference(inputs, **{})[name] if "scale" not in inputs else values, values, rtol=1e-5
        )
    assert count(compiled.kernel, REDUCTIONS) == loops
    assert count(compiled.kernel, DIVISIONS) <= divisions


def test_calls_are_checked():
    run = eqsat.compile(matmul()[0])
    a, b = f32((16, 32)), f32((32, 24))
    with pytest.raises(TypeError, match=r"kernel 'matmul' lacks B: call it with \(A=\.\.\., B=\.\.\.\)"):
        run(A=a)
    with pytest.raises(TypeError, match="'matmul' takes no D: call it with"):
        run(A=a, B=b, D=b)
    with pytest.raises(TypeError, match="'matmul' lacks B and takes no b: call it with"):
        run(A=a, b=b)
    with pytest.raises(TypeError, match="'matmul' takes its arrays by name and lacks A, B: call it with"):
        run(a, b)
    with pytest.raises(TypeError, match="array 'A' has elements of type float64, not f32"):
        run(A=a.astype(float), B=b)
    with pytest.raises(ValueError, match=r"array 'B' has shape \(24, 32\), not \(32, 24\)"):
        run(A=a, B=b.T)
    out = np.empty((16, 24), dtype=np.float32)
    assert run(A=a, B=b, out={"C": out})["C"] is out
    assert np.array_equal(out, a @ b)
    with pytest.raises(TypeError, match="'C' is a list, not a NumPy array"):
        run(A=a, B=b, out={"C": [0] * 384})
    with pytest.raises(ValueError, match="the output 'C' is not contiguous"):
        run(A=a, B=b, out={"C": np.empty((24, 16), dtype=np.float32).T})
    with pytest.raises(TypeError, match="out is a ndarray, not a mapping"):
        run(A=a, B=b, out=out)
    with pytest.raises(ValueError, match="the output 'C' is not contiguous, aligned and writable"):
        run(A=a, B=b, out={"C": unaligned(out)})
    # inputs need not be contiguous, nor aligned
    assert np.array_equal(run(A=np.asfortranarray(a), B=b)["C"], out)
    assert np.array_equal(run(A=unaligned(a), B=b)["C"], out)


def unaligned(array: np.ndarray) -> np.ndarray:
    """The same one byte further on than its elements should be."""
    raw = np.frombuffer(bytearray(b" " + array.tobytes()), dtype=np.uint8)[1:]
    return raw.view(array.dtype).reshape(array.shape)


def test_conditions_in_other_bytes_than_0_and_1_are_true():
    given = np.array([0, 1, 2, 255] * 4, np.uint8).view(bool)
    held = buffer("M", "bool", (16,))
    kernel = Kernel("held", [Store(OUT[I], where(held[I], 1, 0) + where(held[15 - I], 2, 0), [I])])
    for m in (given, np.repeat(given, 2)[::2]):
        assert eqsat.compile(kernel)(M=m)["OUT"].tolist() == [2, 3, 3, 1] * 4


def test_inputs_that_are_no_arrays_are_named():
    run = eqsat.compile(TWICE)
    with pytest.raises(ValueError, match=r"the input 'N' is no array .*: give a NumPy array"):
        run(N=[[1], [1, 2]])
    for raised, said in ((TypeError("on a device\nmore"), "on a device"), (RuntimeError("sparse"), "sparse")):
        with pytest.raises(ValueError, match=rf"the input 'N' is no array \({said}\): give a NumPy array$"):
            run(N=Foreign(raised))
    with pytest.raises(TypeError, match=r"kernel 'twice' has no output 1, Z"):
        run(N=np.zeros(16, np.int32), out={1: 2, "Z": 3})
    with pytest.raises(ValueError, match=r"2\.0 lanes: give one of"):
        eqsat.compile(TWICE, lanes=2.0)
    with pytest.raises(ValueError, match=r"'2' lanes: give one of"):
        eqsat.compile(TWICE, lanes="2")
    with pytest.raises(TypeError, match="parallel is 'yes': give True or False"):
        eqsat.compile(TWICE, parallel="yes")


def test_lanes_at_places_that_floats_decide():
    i, p = var("i", 0, 15), var("p", 0, 3)
    f, out = buffer("F", "f32", (16,)), buffer("OUT", "f32", (32,))
    kernel = Kernel("k", [Store(out[where(f[p] < 1.5, i, i + 3)], f[i] + 1.0, [i])])
    values = np.arange(16, dtype=np.float32)
    wanted = eqsat.compile(kernel)(F=values, p=1)["OUT"]
    for lanes in (2, 4):
        assert np.array_equal(eqsat.compile(kernel, lanes=lanes)(F=values, p=1)["OUT"], wanted)


class Foreign:
    """An array of another library, which gives itself away by DLPack only, or raises."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **options):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)


def test_inputs_may_be_arrays_of_other_libraries():
    n = np.arange(16, dtype=np.int32)
    given = [Foreign(n), memoryview(n), SimpleNamespace(__array_interface__=n.__array_interface__, n=n)]
    for array in given:
        assert eqsat.compile(TWICE)(N=array)["OUT"].tolist() == (n % 9 * 2).tolist()


FORKED = """
import os, signal
import numpy as np
import eqsat
from eqsat import Kernel, Store, buffer, var

i, r = var("i", 0, 99), var("r", 0, 9)
x, y = buffer("X", "f32", (100, 10)), buffer("Y", "f32", (100,))
sums = Kernel("sums", [Store(y[i], eqsat.sum_over(x[i, r], r, 0, 10), [i])])
run = eqsat.compile(sums, parallel=True)
assert "omp parallel" in run.source
assert run(X=np.ones((100, 10), np.float32))["Y"].sum() == 1000
if not os.fork():
    signal.alarm(20)
    os._exit(int(run(X=np.ones((100, 10), np.float32))["Y"].sum() != 1000))
print(os.wait()[1])
"""


def test_parallel_kernels_run_in_forked_processes():
    """OpenMP's threads are not forked with the process, and it would wait for them."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    run = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "2"}, capture_output=True, text=True, check=True
    )
    assert run.stdout == "0\n"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_programs_can_be_copied_and_sent_to_other_processes(again):
    a, b = f32((16, 32)), f32((32, 24))
    run = eqsat.compile(matmul()[0], reassociate=True, lanes=8)
    other = again(run)
    assert other.source == run.source
    assert np.array_equal(other(A=a, B=b)["C"], run(A=a, B=b)["C"])


def test_inputs_and_parameters_that_nothing_depends_on_are_passed_by():
    """The first of each is optimised away: the others must not take its place."""
    gone, kept = var("gone", 0, 9), var("kept", 0, 9)
    value = N[I] % 9 * 0 + SHIFT[I] % 9 + gone * 0 + kept
    run = eqsat.compile(Kernel("kept", [Store(OUT[I], value, [I])]))
    n, shift = np.arange(16, dtype=np.int32), np.arange(16, dtype=np.int32)[::-1].copy()
    assert np.array_equal(run(N=n, SHIFT=shift, gone=3, kept=5)["OUT"], shift % 9 + 5)
    assert np.array_equal(n, np.arange(16))


@pytest.mark.parametrize("wide", [var("wide", None, None), var("wide", 0, 2**70)])
def test_parameters_that_nothing_depends_on_may_have_any_size(wide: Expr) -> None:
    run = eqsat.compile(Kernel("kept", [Store(OUT[I], where(wide < wide + 1, N[I], 0), [I])]))
    n = np.arange(16, dtype=np.int32)
    for number in (3, 2**70):
        assert np.array_equal(run(N=n, wide=number)["OUT"], n)


def test_a_parameter_out_of_range_is_refused():
    kernel, inputs, _ = normalise()
    run = eqsat.compile(kernel)
    for wrong in (101, 10**30):
        with pytest.raises(ValueError, match=rf"variable 'scale' is given {wrong}, outside its range \[1, 100\]"):
            run(**{**inputs, "scale": wrong})
    with pytest.raises(TypeError, match=r"parameter 'scale' has shape \(2,\): give one integer"):
        run(**{**inputs, "scale": [3, 4]})


@pytest.mark.parametrize(("dear", "other"), [("mod", "floordiv"), ("floordiv", "mod")])
def test_a_kernel_is_simplified_under_the_cost_model_that_is_given(dear, other):
    n = var("n", 0, 1000)
    kernel = simplified(Kernel("kept", [Store(OUT[I], n // 7 * 7 + n % 7 * 5, [I])]), cost=OpCount({dear: 9}))
    assert {t.op for t in topological([kernel.stores[0].value])} & {dear, other} == {other}


def test_the_c_of_a_kernel_reads_well():
    source = to_c(simplified(matmul()[0]))
    assert source.endswith(
        """\
/* C[j + i*24] = sum(A[r1 + i*32]*B[r1*24 + j], r1, 0, 32) for i, j */
void matmul(const float *restrict A, const float *restrict B, float *restrict C)
{
    for (int32_t i_rows = 0; i_rows < 4; i_rows++) {
        float acc0[24];
        float acc1[24];
        float acc2[24];
        float acc3[24];
#pragma omp simd
        for (int32_t j_in = 0; j_in < 24; j_in++) {
            acc0[j_in] = 0;
            acc1[j_in] = 0;
            acc2[j_in] = 0;
            acc3[j_in] = 0;
        }
        const int32_t t4 = i_rows * 4;
        const int32_t t5 = t4 * 32;
        const int32_t t9 = (t4 + 1) * 32;
        const int32_t t11 = (t4 + 2) * 32;
        const int32_t t13 = (t4 + 3) * 32;
        for (int32_t r1 = 0; r1 < 32; r1++) {
            const int32_t t6 = r1 * 24;
            const float t8 = A[r1 + t5];
            const float t10 = A[r1 + t9];
            const float t12 = A[r1 + t11];
            const float t14 = A[r1 + t13];
#pragma omp simd
            for (int32_t j_in = 0; j_in < 24; j_in++) {
                const float t7 = B[t6 + j_in];
                acc0[j_in] += t8 * t7;
                acc1[j_in] += t10 * t7;
                acc2[j_in] += t12 * t7;
                acc3[j_in] += t14 * t7;
            }
        }
        const int32_t t15 = t4 * 24;
        const int32_t t16 = (t4 + 1) * 24;
        const int32_t t17 = (t4 + 2) * 24;
        const int32_t t18 = (t4 + 3) * 24;
#pragma omp simd
        for (int32_t j_in = 0; j_in < 24; j_in++) {
            C[j_in + t15] = acc0[j_in];
            C[j_in + t16] = acc1[j_in];
            C[j_in + t17] = acc2[j_in];
            C[j_in + t18] = acc3[j_in];
        }
    }
}
"""
    )


def test_the_arrays_of_a_kernel_may_be_called_like_the_results_of_expressions():
    out = buffer("out0", "i32", (16,))
    assert "out0[i] = i;" in to_c(Kernel("numbers", [Store(out[I], I, [I])]))


def test_c_of_arrays_of_several_axes_has_flat_ones():
    i, j = var("i", 0, 2), var("j", 0, 4)
    a, out = buffer("a", "i32", (3, 5)), buffer("out", "i32", (5, 3))
    source = to_c(Kernel("turned", [Store(out[j, i], a[i, j], [j, i])]))
    assert "t0 = j * 3;" in source
    assert "out[t0 + i] = a[i * 5 + j];" in source


def test_loops_run_in_parallel_on_request_and_only_if_no_element_is_written_twice():
    kernel = matmul()[0]
    assert "omp parallel" not in to_c(simplified(kernel))
    assert to_c(simplified(kernel), parallel=True).count("#pragma omp parallel for") == 1
    twice, once = Store(OUT[I // 2], I, [I]), Store(buffer("once", "i32", (16,))[I], I, [I])
    for stores in ([twice], [once, twice], [twice, once]):
        source = to_c(simplified(Kernel("some", stores)), parallel=True)
        assert source.count("for (") == 1
        assert "omp parallel" not in source


LINE, MOVED, AT = buffer("LINE", "f32", (1003,)), buffer("MOVED", "f32", (1003,)), var("at", 0, 1002)
ALONE = [
    # a store in one loop, which lanes or an interior take
    (Store(MOVED[AT], LINE[AT] * 2.0, [AT]), 8, "at_lanes = 0; at_lanes < 125"),
    (Store(MOVED[AT], where((AT > 1) & (AT < 1000), LINE[AT - 2] + LINE[AT + 3], 0.0), [AT]), 1, "at = 2; at < 1000"),
    (Store(MOVED[AT // 2], LINE[0], [AT]), 8, ""),
]


@pytest.mark.parametrize(("store", "lanes", "loop"), ALONE, ids=[str(row[0]) for row in ALONE])
def test_the_only_loop_runs_in_parallel_in_lanes_and_inside_too(store: Store, lanes: int, loop: str) -> None:
    kernel = Kernel("alone", [store])
    source = to_c(flattened(kernel), parallel=True, lanes=lanes)
    assert source.count("omp parallel") == bool(loop)
    assert not loop or f"#pragma omp parallel for\n    for (int32_t {loop};" in source
    given = {"LINE": np.arange(1003, dtype=np.float32)}
    found = eqsat.compile(kernel, parallel=True, lanes=lanes)(**given)
    assert np.array_equal(found["MOVED"], kernel.reference(given)["MOVED"])


@pytest.mark.parametrize(("given", "stored"), [("f32", "f64"), ("f64", "f32")])
def test_a_row_of_sums_is_taken_in_the_type_of_the_sums(given, stored):
    x, out = buffer("X", given, (64, 16)), buffer("Y", stored, (16,))
    kernel = Kernel("columns", [Store(out[I], sum_over(x[R, I], R, 0, 64), [I])])
    xs = np.random.default_rng(0).standard_normal((64, 16)).astype({"f32": "f4", "f64": "f8"}[given])
    assert np.array_equal(eqsat.compile(kernel)(X=xs)["Y"], kernel.reference({"X": xs})["Y"])


def test_sums_go_in_lanes_on_request():
    rows = Kernel("rows", [Store(buffer("S", "f32", (16,))[I], sum_over(A[I, R], R, 0, 32), [I])])
    assert "simd" not in to_c(simplified(rows))
    assert "#pragma omp simd reduction(+:acc0)" in to_c(simplified(rows), reassociate=True)


def test_reductions_over_one_range_share_a_loop():
    out = buffer("S", "f32", (16, 2))
    sums = [sum_over(A[I, R], R, 0, 32), sum_over(A[I, R] * A[I, R], R, 0, 32)]
    kernel = Kernel("moments", [Store(out[I, n], s, [I]) for n, s in enumerate(sums)])
    assert to_c(simplified(kernel)).count("for (") == 2
    a = f32((16, 32))
    assert np.array_equal(eqsat.compile(kernel)(A=a)["S"], np.stack([a.sum(axis=1), (a * a).sum(axis=1)], axis=1))


def guards(kernel: Kernel) -> int:
    """How many loads carry a test of their own."""
    return len(re.findall(r"\([^?(\n]* < \d+ \? \w+\[", to_c(simplified(kernel))))


def test_a_sum_over_a_flat_index_keeps_its_order_but_not_its_divisions():
    """A strided, padded window of an image with channels, and beside it a sum of all in the window."""
    o, q = var("o", 0, 7), var("q", 0, 26)
    image, out, sums = buffer("X", "f32", (3, 16, 16)), buffer("Y", "f32", (8,)), buffer("S", "f32", (8,))
    y, x = o * 2 + q % 9 // 3 - 1, q % 3 + 5
    taken = where((y >= 0) & (y < 16), image[q // 9, y, x], 0.0)
    kernel = Kernel(
        "window",
        [Store(out[o], sum_over(taken * taken, q, 0, 27), [o]), Store(sums[o], sum_over(taken, q, 0, 27), [o])],
    )
    run = eqsat.compile(kernel)
    code = re.sub(r"/\*.*?\*/", "", run.source)
    assert not re.search(r"quotient|remainder|%", code)
    assert code.count("for (int32_t r") == 3
    xs = np.random.default_rng(0).standard_normal((3, 16, 16)).astype(np.float32)
    padded = np.pad(xs, ((0, 0), (1, 1), (0, 0)))
    windows = np.array([padded[:, 2 * o : 2 * o + 3, 5:8].reshape(27) for o in range(8)])
    found = run(X=xs)
    # accumulated from left to right
    assert np.array_equal(found["Y"], np.add.accumulate(windows * windows, axis=1)[:, -1])
    assert np.array_equal(found["S"], np.add.accumulate(windows, axis=1)[:, -1])


@pytest.mark.parametrize("value", ["{sums} + Y[{count}%64]", "where({count} < 45, {sums}, Y[0])"])
def test_integers_may_be_summed_over_the_index_of_a_sum_in_digits(value: str) -> None:
    """The integers were taken for equal ones, since their index had become its digits."""
    arrays = {name: buffer(name, element, (size,)) for name, element, size in (("X", "f32", 24), ("Y", "f32", 64))}
    text = value.format(sums="sum(X[r%4*6 + r//4], r, 0, 24)", count="sum(K[r]%5, r, 0, 24)")
    kernel = Kernel("k", [Store(buffer("S", "f32", (1,))[0], parse(text, {**arrays, "K": buffer("K", "i32", (24,))}))])
    given = {"X": f32((24,)), "Y": f32((64,)), "K": np.arange(24, dtype=np.int32)}
    for optimize in (False, True):
        found = eqsat.compile(kernel, optimize=optimize)(**given)["S"]
        assert np.allclose(found, kernel.reference(given)["S"], rtol=1e-5)


def test_what_is_counted_may_be_a_comparison_of_rounded_values():
    q, out = var("q", 0, 143), buffer("Y", "i32", (8,))
    x, o = buffer("X", "f32", (8, 12, 13)), var("o", 0, 7)
    positive = sum_over(where(x[o, q // 12, q % 12] > 0.0, 1, 0), q, 0, 144)
    run = eqsat.compile(Kernel("positive", [Store(out[o], positive, [o])]))
    xs = np.random.default_rng(0).standard_normal((8, 12, 13)).astype(np.float32)
    assert np.array_equal(run(X=xs)["Y"], (xs[:, :, :12] > 0).sum(axis=(1, 2)))
    assert count(run.kernel, DIVISIONS) == 0


F7, G47, I8 = buffer("F", "f32", (7,)), buffer("G", "f32", (4, 7)), buffer("I", "i32", (8,))
R7, S7, J4 = var("r", 0, 6), var("s", 0, 6), var("j", 0, 3)
LARGEST_OF_F = max_over(F7[S7], S7, 0, 7)
COUNTED = [
    sum_over(where(F7[R7] >= LARGEST_OF_F, 1, 0), R7, 0, 7),
    min_over(where(F7[R7].eq(LARGEST_OF_F), R7, 99), R7, 0, 7),
    sum_over(where(F7[R7] >= max_over(F7[S7], S7, 0, R7 + 1), 1, 0), R7, 0, 7),
    sum_over(where(F7[R7] < sum_over(F7[S7], S7, 0, 7), R7 * 2, 3), R7, 0, 7),
    I8[sum_over(where(F7[R7] >= LARGEST_OF_F, 1, 0), R7, 0, 7)],
    max_over(where(G47[J4, R7] >= max_over(G47[J4, S7], S7, 0, 7), 6 - R7, -1), R7, 0, 7),
    sum_over(sum_over(where(G47[J4, R7] <= max_over(G47[J4, S7], S7, 0, 7) * 0.5, R7 + J4, 0), R7, 0, 7), J4, 0, 4),
]


@pytest.mark.parametrize("value", COUNTED, ids=str)
def test_comparisons_with_reductions_of_rounded_values_are_counted(value):
    over = [J4] if "j" in {v.value for v in variables([value])} else []
    kernel = Kernel("counted", [Store(buffer("S", "i64", (4 if over else 1,))[over[0] if over else 0], value, over)])
    rng = np.random.default_rng(1)
    held = {"F": rng.random(7, np.float32), "G": rng.random((4, 7), np.float32), "I": np.arange(8, dtype=np.int32) * 3}
    arrays = {b.name: held[b.name] for b in kernel.inputs}
    assert (eqsat.compile(kernel)(**arrays)["S"] == kernel.reference(arrays)["S"]).all()


def test_only_loads_that_nothing_keeps_inside_carry_a_test():
    a, out, i = buffer("V", "i32", (8,)), buffer("Y", "i32", (16,)), var("i", 0, 15)
    assert guards(Kernel("unguarded", [Store(out[i], a[i], [i])])) == 1
    assert guards(Kernel("kept", [Store(out[i], where(i < 8, a[i], 0), [i])])) == 0
    assert guards(Kernel("half", [Store(out[i], a[i // 2], [i])])) == 0
    values = np.arange(8, dtype=np.int32) + 1
    found = eqsat.compile(Kernel("free", [Store(out[i], a[i], [i])]))(V=values)["Y"]
    assert np.array_equal(found, [*values, *[0] * 8])


@pytest.mark.parametrize(
    "value",
    [
        "where(i < 8, A[i], 0.0) + A[i]",
        # a loop stands before the selection that chooses its result
        "where(i < 8, max_over(A[i]*B[r], r, 0, 4), 0.0)",
    ],
)
def test_a_load_that_is_not_only_in_its_branch_carries_a_test(value: str) -> None:
    i, out = var("i", 0, 9), buffer("Y", "f32", (10,))
    names = {"i": i, "A": buffer("A", "f32", (8,)), "B": buffer("B", "f32", (4,))}
    _, found, beyond = to_c(Kernel("k", [Store(out[i], parse(value, names), [i])])).partition("int32_t i = 8;")
    assert found
    assert beyond.count("A[i]") == beyond.count("(i < 8 ? A[i] : 0)") == 1


def test_a_load_in_a_branch_carries_a_test_in_other_loops() -> None:
    """Loads by a parameter alone: the C of a branch was used again where nothing keeps the load inside."""
    n, i, j, a = var("n", 0, 20), var("i", 0, 3), var("j", 0, 2), buffer("A", "f32", (8,))
    inside = where(n < 8, a[n], 0.0)
    stores = [
        Store(buffer("X", "f32", (4,))[i], inside * 2.0, [i]),
        Store(buffer("Y", "f32", (3,))[j], where(n < 9, a[n], 0.0), [j]),
        Store(buffer("Z", "f32", (4,))[i], a[n], [i]),
    ]
    wide, row = buffer("W", "f32", (32, 32)), var("row", 0, 31)
    sums = Store(buffer("V", "f32", (32, 32))[row, R], sum_over(inside * wide[K % 32, R], K, 0, 32), [row, R])
    for kernel in (Kernel("loops", stores), Kernel("strips", [sums])):
        code = to_c(kernel).partition("{")[2]
        assert code.count("A[n]") == code.count("n < 8 ? A[n] : 0") > 1


@pytest.mark.parametrize("step", ["max(t, {0}.0)", "t*t", "min(t + {0}.0, t*0.5)", "t + {0}.0"])
def test_what_a_branch_computes_of_a_load_is_written_once(step: str) -> None:
    """Each step wrote what is before it again, up to 2**60 times."""
    i, out, a = var("i", 0, 9), buffer("Y", "f32", (10,)), buffer("A", "f32", (8,))
    value = a[i - 1]
    for number in range(60):
        value = parse(step.format(number), {"t": value})
    kernel = Kernel("k", [Store(out[i], where((i >= 1) & (i < 9), value, 0.0), [i])])
    assert len(to_c(kernel)) < 20_000
    arrays = {"A": np.linspace(0, 1, 8, dtype=np.float32)}
    assert np.array_equal(eqsat.compile(kernel)(**arrays)["Y"], kernel.reference(arrays)["Y"])


def test_a_condition_is_used_in_its_branch_and_nowhere_else():
    """An address in a branch and the same one outside of it are one term."""
    out, a, b = buffer("Y", "f32", (32,)), buffer("A", "f32", (7,)), buffer("B", "f32", (7,))
    inside, outside = where(R < 7, a[R % 7], 0.0), b[R % 7]
    assert count(simplified(Kernel("inside", [Store(out[R], inside, [R])])), DIVISIONS) == 0
    arrays = {"A": f32((7,)), "B": f32((7,))}
    for value in (inside + outside, outside + inside):
        kernel = Kernel("both", [Store(out[R], value, [R])])
        assert np.array_equal(simplified(kernel).reference(arrays)["Y"], kernel.reference(arrays)["Y"])


#: Reductions of floating-point values that were refused, or read what they should not.
STEPWISE = [
    # an index whose value is known stays one
    "sum(where(r%4 < n, 0.0, where(r == i, A[0, r], 0.0)), r, 0, 32)",
    "sum(where(r == 3, F[r], 1.0), r, 0, 7)",
    "sum(A[i, r], r, 0, 1)",
    "prod(A[i, r + 3], r, 5, 5)",
    "min_over(max_over(A[r, s], s, 0, 8), r, 0, 1)",
    # conditions that compare floating-point values beside divisions
    "min_over(where(A[i, r%4] < 1.0 and r < n, A[i, r//4], 2.0), r, 0, 8)",
    "max_over(where(A[i, r%4] < A[i, r//4], 1.0, 2.0), r, 0, 8)",
    # an empty sum of infinities
    "sum(max_over(A[i, s], s, 4, 4), r, 3, 3)",
    "sum(max_over(A[i, s], s, 0, n), r, 0, n)",
]


@pytest.mark.parametrize("text", STEPWISE)
@pytest.mark.parametrize("reassociate", [False, True])
def test_reductions_of_rounded_values_keep_their_index(text: str, reassociate: bool):
    n = var("n", -2, 9)
    names = {"A": A, "F": F7, "i": I, "n": n}
    kernel = Kernel("k", [Store(buffer("OUT32", "f32", (16,))[I], parse(text, names), [I])])
    random = np.random.default_rng(0)
    arrays = {b.name: random.integers(-3, 4, b.shape).astype(np.float32) for b in kernel.inputs}
    run = eqsat.compile(kernel, reassociate=reassociate)
    for at in (-2, 0, 2, 9):
        given = {str(p): at for p in kernel.parameters}
        assert np.array_equal(run(**arrays, **given)["OUT32"], kernel.reference(arrays, **given)["OUT32"])


#: A reduction of floating-point values, its steps left where sums keep their order, and where they need not.
NARROWED = [
    ("max_over(where(r < n, A[i, r], -inf()), r, 0, 32)", "min(32, n)", "min(32, n)"),
    ("min_over(where(r < n, inf(), A[i, r]), r, 0, 32)", "32 - max(n, 0)", "32 - max(n, 0)"),
    ("prod(where(r >= n, A[i, r], 1.0), r, 0, 32)", "32 - max(n, 0)", "32 - max(n, 0)"),
    ("max_over(where(r == n, A[i, r], -inf()), r, 0, 32)", "0", "0"),
    ("max_over(where(r < n, A[i, r], 0.0), r, 0, 32)", "32", "32"),
    ("sum(where(r < n, where(r >= 3, A[i, r], 0.0), 0.0), r, 0, 32)", "min(32, n) - 3", "min(32, n) - 3"),
    ("sum(where(r//4 == n, A[i, r], 0.0), r, 0, 32)", "4", "4"),
    ("sum(where(r//4 == n and r%4 == N[i], A[i, r], 0.0), r, 0, 32)", "0", "0"),
    ("sum(sum(where(r*2 + s == n, A[i, r], 0.0), s, 0, 2), r, 0, 16)", "0", "0"),
    ("sum(A[i, r]*(N[i] == r), r, 0, 32)", "32", "0"),
    ("sum(where(r < n, 1.0, 0.0)*A[i, r]*2.0, r, 0, 32)", "32", "min(32, n)"),
    ("sum(A[i, 31 - r]*where(r < n, 0.0, A[i, r]), r, 0, 32)", "32", "32 - max(n, 0)"),
]


@pytest.mark.parametrize(("text", "steps", "loosely"), NARROWED)
def test_steps_that_change_nothing_are_not_taken(text: str, steps: str, loosely: str):
    n = var("n", -2, 40)
    out = buffer("OUT32", "f32", (16,))
    kernel = Kernel("k", [Store(out[I], parse(text, {"A": A, "N": N, "i": I, "n": n}), [I])])
    random = np.random.default_rng(0)
    arrays = {"A": random.integers(-3, 4, (16, 32)).astype(np.float32), "N": random.integers(-1, 5, 16, np.int32)}
    arrays = {b.name: arrays[b.name] for b in kernel.inputs}
    for reassociate, wanted in ((False, steps), (True, loosely)):
        found = simplified(kernel, reassociate=reassociate)
        (value,) = [store.value for store in found.stores]
        taken = [t.args[3] - t.args[2] for t in topological([value]) if t.op in REDUCTIONS] or [const(0)]
        for at in (-2, 0, 3, 7, 31, 40):
            given = {str(p): at for p in kernel.parameters}
            most = max(0, int(evaluate([parse(wanted, {"n": n})], {"n": at})[0]))
            assert all(int(evaluate([t], {"n": at})[0]) <= most for t in taken if variables([t]) in ([], [n]))
            flat = {b.name: arrays[b.name].reshape(b.shape) for b in found.inputs}
            expected = kernel.reference(arrays, **given)["OUT32"]
            assert np.array_equal(found.reference(flat, **given)["OUT32"].ravel(), expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum(where(r == N[i], A[i, r], 0.0), r, 0, 32)", "A[i*32 + N[i]] + 0.0"),
        ("sum(where(r < 1, A[i, r], -0.0), r, 0, 32)", "A[i*32] + 0.0"),
        ("sum(sum(where(r*2 + s == N[i], A[i, r], 0.0), s, 0, 2), r, 0, 16)", "A[i*32 + N[i]//2] + 0.0"),
        ("prod(where(r == N[i], A[i, r], 1.0), r, 0, 32)", "A[i*32 + N[i]]"),
    ],
)
def test_a_sum_of_one_step_is_never_negative_zero(text: str, value: str):
    """It was that step, which may be ``-0.0``, while a sum begins at 0.0."""
    out = buffer("OUT32", "f32", (16,))
    kernel = Kernel("k", [Store(out[I], parse(text, {"A": A, "N": N, "i": I}), [I])])
    (store,) = simplified(kernel).stores
    assert value in str(store.value)
    assert str(store.value).count("+ 0.0") == value.count("+ 0.0")
    arrays = {"A": np.full((16, 32), -0.0, np.float32), "N": np.arange(16, dtype=np.int32)}
    arrays = {b.name: arrays[b.name] for b in kernel.inputs}
    expected = kernel.reference(arrays)["OUT32"]
    assert np.array_equal(np.signbit(eqsat.compile(kernel)(**arrays)["OUT32"]), np.signbit(expected))


def test_sums_of_rounded_values_keep_their_order_unless_told():
    total: Expr = sum_over(A[I, 0], R, 0, 32)
    out = buffer("S", "f32", (16,))
    kernel = Kernel("same", [Store(out[I], total, [I])])
    assert count(simplified(kernel), REDUCTIONS) == 1
    assert count(simplified(kernel, reassociate=True), REDUCTIONS) == 0
    for product in (A[I, R] * B[0, 0], B[0, 0] * A[I, R]):
        (store,) = simplified(
            Kernel("scaled", [Store(out[I], sum_over(product, R, 0, 32), [I])]), reassociate=True
        ).stores
        assert (store.value.op, str(store.value.args[0])) == ("fmul", "B[0]")


@pytest.mark.parametrize(
    "text", ["sum(A[0, 0]*A[1, r], r, 0, n)", "sum(where(r < n, A[0, 0]*(A[1, r]*2.0), 0.0), r, 0, 32)"]
)
def test_a_factor_leaves_no_empty_sum(text: str) -> None:
    kernel = Kernel("k", [Store(buffer("S", "f32", (1,))[0], parse(text, {"A": A, "n": var("n", 0, 7)}))])
    found = simplified(kernel, reassociate=True)
    assert found != simplified(kernel)
    values = np.ones((16, 32), np.float32)
    values[0] = math.inf
    for n in (0, 1):
        expected = kernel.reference({"A": values}, n=n)["S"]
        assert np.array_equal(found.reference({"A": values.ravel()}, n=n)["S"], expected)


@pytest.mark.parametrize("seed", range(8, 16))
def test_random_kernels_through_the_front_door(seed):
    kernel, inputs = random_kernel(seed), contents()
    given = {b.name: inputs[b.name].copy() for b in kernel.inputs}
    found = eqsat.compile(kernel, reassociate=True)(**given)
    for name, values in kernel.reference(given).items():
        assert np.array_equal(found[name], values), name
    assert all(np.array_equal(values, inputs[name]) for name, values in given.items())


SANITIZED = ["-std=c99", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

#: How a kernel is lowered: what it becomes first, and in which numbers of lanes. Kernels whose sums are reassociated
#: are compared in ``test_ranges.py``.
LOWERED = [(flattened, [1]), (optimized, [1, 4])]


@pytest.mark.parametrize(("prepare", "lanes"), LOWERED, ids=lambda x: getattr(x, "__name__", str(x)))
def test_random_kernels_under_the_sanitizers(prepare, lanes, tmp_path, request):
    """As many as ``--kernels`` says, 40 by default, a hundred to a program."""
    inputs = contents()
    seeds = range(request.config.getoption("--kernels"))
    for batch in batched(seeds, 100):
        kernels = [random_kernel(seed) for seed in batch]
        flat = [prepare(k) for k in kernels]
        wanted = [kernel.reference({b.name: inputs[b.name] for b in kernel.inputs}) for kernel in kernels]
        for width in lanes:
            outputs = run_in_c(flat, tmp_path, SANITIZED, width)
            for kernel, found, want in zip(kernels, outputs, wanted, strict=True):
                for name, values in want.items():
                    assert np.array_equal(found[name], values.ravel()), (kernel.name, name)


def test_an_index_whose_only_value_is_zero_divides_nothing():
    i, r = var("i", 0, 8), var("r", 0, 3)
    value = sum_over(where((r // 2).ne(0), i // (r // 2), i % 4), r, 0, 2)
    out = buffer("Y", "i32", (9,))
    ran = eqsat.compile(Kernel("k", [Store(out[i], value, [i])]))()["Y"]
    assert ran.tolist() == [i % 4 * 2 for i in range(9)]


def test_what_is_never_chosen_divides_by_1_where_the_divisor_is_always_zero():
    x, r = var("x", -(2**31), 0), var("r", 0, 1)
    value = sum_over(where(r > 0, x // r * (x // r) % 7, 0), r, 0, 1)
    # the quotient has a name, so it is computed, and -2**31 / -1 overflows
    assert "nonzero_i32(r1, 1)" in to_c(flattened(Kernel("k", [Store(OUT[0], value)])))


def test_no_store_uses_the_loop_of_another():
    p, k, m = var("p", 0, 9), var("k", 0, 3), var("m", 0, 3)
    x, y, z = buffer("X", "i32", (300,)), buffer("Y", "i32", (4,)), buffer("Z", "i32", (4,))
    stores = [Store(z[m], (p + 1) % 2, [m]), Store(y[k], x[(p * 97 - k * 2 + 95) // 4], [k])]
    ran = eqsat.compile(Kernel("k", stores))(X=np.arange(300, dtype=np.int32), p=4)
    assert (ran["Z"].tolist(), ran["Y"].tolist()) == ([1] * 4, [120, 120, 119, 119])


def padded_convolution(side: int, outputs: int) -> Kernel:
    """A 3x3 window over (ky, kx, channel) by one flat index, at places (row, column) by another."""
    image, weight = buffer("X", "f32", (side, side, 8)), buffer("W", "f32", (72, outputs))
    p, q, o = var("p", 0, side * side - 1), var("q", 0, 71), var("o", 0, outputs - 1)
    y, x = p // side + q // 24 - 1, p % side + q % 24 // 8 - 1
    inside = (y >= 0) & (y < side) & (x >= 0) & (x < side)
    taken = where(inside, image[y, x, q % 8], 0.0)
    out = buffer("Y", "f32", (side * side, outputs))
    return Kernel("convolution", [Store(out[p, o], sum_over(taken * weight[q, o], q, 0, 72), [p, o])])


@pytest.mark.parametrize(
    ("side", "outputs", "tile"),
    [(12, 16, (4, 16)), (10, 48, (2, 16)), (12, 24, (4, 24)), (11, 16, None), (12, 40, None)],
)
@pytest.mark.parametrize("options", [{}, {"parallel": True}, {"reassociate": True}, {"optimize": False}])
def test_sums_over_rows_are_taken_in_strips(side, outputs, tile, options):
    kernel = padded_convolution(side, outputs)
    given = {"X": f32((side, side, 8)), "W": f32((72, outputs), 1)}
    program = eqsat.compile(kernel, **options)
    assert np.array_equal(program(**given)["Y"], kernel.reference(given)["Y"])
    if "optimize" not in options:
        strips = re.findall(r"float acc\d+\[(\d+)\];", program.source)
        parts = program.source.count("_rows++")
        assert strips == [str(tile[1])] * tile[0] * parts if tile else not strips


@pytest.mark.parametrize(("first", "least", "strips"), [(0, 0, 4), (1, 0, 0), (0, 1, 0)])
def test_rows_are_taken_in_strips_if_both_loops_start_at_0(first, least, strips):
    i, j, r = var("i", first, first + 3), var("j", least, least + 15), var("r", 0, 4)
    a, b, c = buffer("A", "f32", (4, 5)), buffer("B", "f32", (5, 16)), buffer("C", "f32", (4, 16))
    store = Store(c[i - first, j - least], sum_over(a[i - first, r] * b[r, j - least], r, 0, 5), [i, j])
    given = {"A": f32((4, 5)), "B": f32((5, 16), 1)}
    program = eqsat.compile(Kernel("rows", [store]), optimize=False)
    assert np.array_equal(program(**given)["C"], given["A"] @ given["B"])
    assert program.source.count("float acc") == strips


def test_strips_between_have_no_tests_and_large_arrays_none_at_all():
    code = to_c(optimized(padded_convolution(28, 16)))
    assert code.count("p_0_rows++") == 3
    assert (code.count("X["), code.count(" ? X[")) == (12, 8)
    a, b, c = buffer("A", "f32", (64, 64)), buffer("B", "f32", (64, 2048)), buffer("C", "f32", (64, 2048))
    i, j, r = var("i", 0, 63), var("j", 0, 2047), var("r", 0, 63)
    large = Kernel("large", [Store(c[i, j], sum_over(a[i, r] * b[r, j], r, 0, 64), [i, j])])
    assert "float acc" not in to_c(optimized(large))


@pytest.mark.parametrize(
    "value",
    [
        to_double(where(SMALL > 0, 1, 0)) * ROW[1] * ROW[1],
        where(SMALL > 0, np.float64(3), 0.0) * ROW[1] * ROW[1],
        sum_over(to_double(where(R < SMALL, 1, 0)) * ROW[R], R, 0, 9),
        sum_over(DOUBLE[SMALL] * ROW[R], R, 0, 9),
        sum_over(ROW[R] * (ROW[2] * DOUBLE[SMALL]), R, 0, 9),
    ],
)
def test_what_is_rounded_to_f64_still_is_in_another_order(value: Expr):
    kernel = Kernel("precise", [Store(buffer("Y", "f64", (1,))[0], value)])
    contents = {"DOUBLE": np.ones(16), "ROW": np.array([2**24, *[1 + 2**-20] * 31], "f4")}
    given = {b.name: contents[b.name] for b in kernel.inputs}
    assert eqsat.compile(kernel, reassociate=True)(**given, s=9)["Y"] == kernel.reference(given, s=9)["Y"]


def test_sums_are_reassociated_only_where_it_pays():
    """A window cut short in places had no loops for its digits: its steps divided, and took five times as long."""
    kernel = padded_convolution(28, 16)
    loosely = to_c(optimized(kernel, reassociate=True), reassociate=True)
    assert loosely == to_c(optimized(kernel))
    assert "quotient" not in loosely


@pytest.mark.parametrize(("steps", "in_lanes"), [(3, False), (15, False), (16, True), (64, True)])
def test_sums_of_few_steps_are_not_taken_in_lanes(steps: int, in_lanes: bool):
    a, b, i, r = buffer("A", "f32", (7, steps)), buffer("B", "f32", (7,)), var("i", 0, 6), var("r", 0, steps - 1)
    kernel = Kernel("rows", [Store(b[i], sum_over(a[i, r], r, 0, steps), [i])])
    assert ("reduction(+" in to_c(optimized(kernel, reassociate=True), reassociate=True)) == in_lanes


def test_an_interior_may_hold_no_whole_block_of_strips():
    """For no n and m do the conditions hold in four rows that are stored together."""
    n, m, i, j = var("n", 0, 31), var("m", 0, 40), var("i", 0, 31), var("j", 0, 15)
    x, y = buffer("X", "f32", (32, 40)), buffer("Y", "f32", (32, 16))
    inside = (n - m <= i) & (i * 2 < n - m + 2) & (i < n + 2)
    kernel = Kernel("k", [Store(y[i, j], sum_over(where(inside, x[R + i - n, j], 0.0), R, 0, 31), [i, j])])
    values = np.arange(32 * 40, dtype=np.float32).reshape(32, 40)
    run, stated = eqsat.compile(kernel, optimize=False), with_tests(flattened(kernel))
    for at in ({"n": 5, "m": 4}, {"n": 0, "m": 0}, {"n": 7, "m": 9}):
        expected = stated.reference({"X": values.ravel()}, **at)["Y"].reshape(32, 16)
        assert np.allclose(run(X=values, **at)["Y"], expected)


def test_an_interior_that_is_another_in_each_column_is_none_of_strips():
    a, b, out = buffer("A", "f32", (32, 16)), buffer("B", "f32", (4, 16)), buffer("Y", "f32", (32, 16))
    i, j, r = var("i", 0, 31), var("j", 0, 15), var("r", 0, 3)
    value = sum_over(where(i >= j, a[i, j] * b[r, j], 0.0), r, 0, 4)
    kernel = Kernel("below", [Store(out[i, j], value, [i, j])])
    given = {"A": f32((32, 16)), "B": f32((4, 16), 1)}
    program = eqsat.compile(kernel)
    assert "float acc0[16]" in program.source
    assert np.array_equal(program(**given)["Y"], kernel.reference(given)["Y"])
