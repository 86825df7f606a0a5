"""Run time of compiled kernels: against themselves unoptimised, against memcpy, and against other systems.

``python benchmarks/kernels.py [--torch PYTHON] [--tinygrad PYTHON] [--repeats N]`` prints three tables, all from one
run, medians of repeats:

1. kernels stated by flat indices, optimised over not, and what only moves contiguous data over memcpy;
2. sums over a mask, per element of the output, for growing ranges;
3. data movement and pooling against NumPy, torch and tinygrad (``benchmarks/peers/tensor_peer.py``), each in the
   environment whose Python is named; a peer that is not there is reported as absent.

Everything runs on one thread. The times include the call from Python; they are of the clock or of the processor,
whichever is less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from math import inf, prod
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import eqsat
from eqsat import Kernel, Store
from eqsat.lang.expr import Expr, ExprLike, buffer, const, var
from eqsat.lang.functions import max_over, sum_over, where

sys.path.insert(0, str(Path(__file__).parent))
from peers.tensor_peer import CASES, Im2col, Permute, Pool, Slice, data, fingerprint, seconds, with_numpy

PEER_SCRIPT = Path(__file__).parent / "peers" / "tensor_peer.py"

#: How often the measurement goes around all systems, so that a slow moment of the machine hits none alone.
ROUNDS = 5


def flat_indices(flat: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The indices into ``shape`` that one row-major index stands for, as a compiler states a reshape."""
    return tuple(flat // prod(shape[axis + 1 :]) % n for axis, n in enumerate(shape))


def row_major(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """One index for many."""
    total: Expr = const(0)
    for index, n in zip(indices, shape, strict=True):
        total = total * n + index
    return total


def elementwise(name: str, result: tuple[int, ...], value: Callable[[Expr], ExprLike]) -> Kernel:
    """A kernel with one loop over the flat index of its output."""
    k = var("k", 0, prod(result) - 1)
    return Kernel(name, [Store(buffer("Y", "f32", result)[flat_indices(k, result)], value(k), [k])])


def windows(case: Im2col, c: Expr, y: Expr, x: Expr, outside: float) -> Expr:
    """An element of a padded image."""
    _, height, width = case.shape
    y, x = y - case.padding, x - case.padding
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    return where(inside, buffer("X", "f32", case.shape)[c, y, x], outside)


def stated(name: str, case: Im2col | Permute | Slice) -> Kernel:
    """The kernel of a case, by one flat index over its output."""
    name = "".join(character if character.isalnum() else "_" for character in name)
    x = buffer("X", "f32", case.shape)

    def value(k: Expr) -> Expr:
        if isinstance(case, Permute):
            there = flat_indices(k, [case.parts[axis] for axis in case.axes])
            here = row_major([there[case.axes.index(axis)] for axis in range(len(case.axes))], case.parts)
            return x[flat_indices(here, case.shape)]
        if isinstance(case, Slice):
            places = flat_indices(k, case.result)
            return x[tuple(a + i * s for i, a, s in zip(places, case.starts, case.steps, strict=True))]
        if isinstance(case, Pool):
            c, row, column = flat_indices(k, case.result)
            a, b = var("a", 0, case.size - 1), var("b", 0, case.size - 1)
            element = windows(case, c, row * case.stride + a, column * case.stride + b, -inf)
            return max_over(max_over(element, b, 0, case.size), a, 0, case.size)
        place, window = flat_indices(k, case.result)
        c, a, b = flat_indices(place, (case.shape[0], case.size, case.size))
        row, column = flat_indices(window, case.outputs)
        return windows(case, c, row * case.stride + a, column * case.stride + b, 0.0)

    return elementwise(name, case.result, value)


def caller(kernel: Kernel, arrays: dict[str, np.ndarray], **options: Any) -> tuple[Callable[[], Any], np.ndarray]:
    """A call of a compiled kernel, and the array that it stores to."""
    run = eqsat.compile(kernel, **options)
    (array,) = kernel.outputs
    out = np.zeros(array.shape or (), dtype=np.dtype({"f32": "f4", "i32": "i4"}[array.element]))
    return lambda: run(**arrays, out={array.name: out}), out


def worked() -> dict[str, tuple[Kernel, dict[str, np.ndarray]]]:
    """Kernels with reductions, by flat indices, and their inputs."""
    n = 128
    a, b = buffer("A", "f32", (n * n,)), buffer("B", "f32", (n * n,))
    p, r = var("p", 0, n * n - 1), var("r", 0, n - 1)
    product = sum_over(a[p // n * n + r] * b[r * n + p % n], r, 0, n)
    square = {name: data((n * n,)) for name in "AB"}

    image, weight = buffer("X", "f32", (28, 28, 16)), buffer("W", "f32", (144, 32))
    q, o, w = var("q", 0, 143), var("o", 0, 31), var("w", 0, 783)
    y, x = w // 28 + q // 48 - 1, w % 28 + q % 48 // 16 - 1
    inside = (y >= 0) & (y < 28) & (x >= 0) & (x < 28)
    convolved = sum_over(where(inside, image[y, x, q % 16], 0.0) * weight[q, o], q, 0, 144)
    arrays = {"X": data((28, 28, 16)), "W": data((144, 32))}

    c = var("c", 0, 511)
    rows = buffer("A", "f32", (256, 512))
    total = buffer("Y", "f32", (256,))
    k = var("k", 0, 255)
    flat = k * 512 + c
    return {
        "matmul": (Kernel("matmul", [Store(buffer("Y", "f32", (n, n))[p // n, p % n], product, [p])]), square),
        "convolution": (Kernel("conv", [Store(buffer("Y", "f32", (784, 32))[w, o], convolved, [w, o])]), arrays),
        "row sums": (
            Kernel("rows", [Store(total[k], sum_over(rows[flat // 512, flat % 512], c, 0, 512), [k])]),
            {"A": data((256, 512))},
        ),
    }


def copies() -> dict[str, tuple[Kernel, dict[str, np.ndarray]]]:
    """Reshapes and moves of megabytes whose reads and writes are contiguous, or contiguous runs of some lines."""
    chain = ((2048, 768), (768, 2048), (64, 24576), (1572864,))

    def reshaped(k: Expr) -> Expr:
        for shape in chain[::-1]:
            k = row_major(flat_indices(k, shape), shape)
        return buffer("X", "f32", chain[0])[flat_indices(k, chain[0])]

    heads = Permute((2048, 768), (2048, 12, 64), (1, 0, 2), (12, 2048, 64))
    shuffle = Permute((240, 56, 56), (3, 80, 3136), (1, 0, 2), (240, 56, 56))
    return {
        "reshape chain": (elementwise("reshape", chain[-1], reshaped), {"X": data(chain[0])}),
        "heads of 64": (stated("heads", heads), {"X": data(heads.shape)}),
        "shuffle of channels": (stated("shuffle", shuffle), {"X": data(shuffle.shape)}),
    }


def report_flat(repeats: int) -> None:
    print("flat indices: microseconds not optimised, optimised, ratio")
    kernels = {**worked(), **copies()}
    kernels |= {
        name: (stated(name, case), {"X": data(case.shape)}) for name, case in CASES.items() if name not in kernels
    }
    ratios = []
    for name, (kernel, arrays) in kernels.items():
        plain, first = caller(kernel, arrays, optimize=False)
        fast, second = caller(kernel, arrays)
        before, after = seconds(plain, repeats), seconds(fast, repeats)
        assert np.array_equal(first, second), name
        ratios.append(before / after)
        print(f"  {name:26} {1e6 * before:9.1f} {1e6 * after:9.1f} {ratios[-1]:7.2f}")
    print(f"  geometric mean of {len(ratios)}: {geometric_mean(ratios):.2f}")

    print("contiguous moves: microseconds of memcpy, optimised, ratio")
    for name, (kernel, arrays) in copies().items():
        fast, _ = caller(kernel, arrays)
        source = arrays["X"].ravel()
        target = np.empty_like(source)
        times = [(seconds(lambda: np.copyto(target, source), repeats), seconds(fast, repeats)) for _ in range(ROUNDS)]  # noqa: B023
        copied, moved = [median(column) for column in zip(*times, strict=True)]
        print(f"  {name:26} {1e6 * copied:9.1f} {1e6 * moved:9.1f} {moved / copied:7.2f}")


def masked(n: int) -> dict[str, tuple[Kernel, dict[str, np.ndarray]]]:
    """Sums over a range of ``n`` of which a mask leaves little, 1000 of them each."""
    i, r = var("i", 0, 999), var("r", 0, n - 1)
    out = buffer("Y", "i32", (1000,))
    values, places = buffer("V", "f32", (n,)), buffer("N", "i32", (1000,))
    chosen = {
        "V": data((n,)),
        "N": np.random.default_rng(1).integers(-5, n + 5, 1000).astype(np.int32),
    }
    floats = buffer("Y", "f32", (1000,))
    return {
        "arange": (Kernel("arange", [Store(out[i], sum_over(where(r < i, 1, 0), r, 0, n), [i])]), {}),
        "count": (
            Kernel("count", [Store(out[i], sum_over(where(r >= places[i], 1, 0), r, 0, n), [i])]),
            {"N": chosen["N"]},
        ),
        "gather": (
            Kernel("gather", [Store(floats[i], sum_over(where(places[i].ne(r), 0.0, values[r]), r, 0, n), [i])]),
            chosen,
        ),
    }


def report_masked(repeats: int) -> None:
    sizes = (1000, 10_000, 100_000)
    print(f"masked sums: nanoseconds per output for ranges of {', '.join(map(str, sizes))}: not optimised; optimised")
    for name in masked(1000):
        rows: list[list[float]] = [[], []]
        for n in sizes:
            kernel, arrays = masked(n)[name]
            plain, first = caller(kernel, arrays, optimize=False)
            fast, second = caller(kernel, arrays)
            rows[0].append(1e6 * seconds(plain, 3))
            rows[1].append(1e6 * seconds(fast, repeats))
            assert np.array_equal(first, second), name
        print(f"  {name:10} " + ";".join("".join(f"{x:11.1f}" for x in row) for row in rows))


def of_peer(peer: str, python: str, repeats: int) -> dict[str, dict[str, float]] | str:
    """What a peer measures in its own environment, or why it cannot."""
    command = [python, str(PEER_SCRIPT), peer, "--repeats", str(repeats)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{python}: {error.strerror}"
    found: dict[str, dict[str, float]] | str = done.stderr.strip().rpartition("\n")[2] or "no answer"
    return json.loads(done.stdout) if done.returncode == 0 else found


def report_peers(pythons: dict[str, str], repeats: int) -> None:
    ours = {name: caller(stated(name, case), {"X": data(case.shape)}) for name, case in CASES.items()}
    times: dict[str, dict[str, list[float]]] = {name: {} for name in CASES}
    for _ in range(ROUNDS):
        for name, case in CASES.items():
            call, out = ours[name]
            numpy_call, result = with_numpy(case, data(case.shape))
            times[name].setdefault("eqsat", []).append(seconds(call, repeats))
            times[name].setdefault("numpy", []).append(seconds(numpy_call, repeats))
            assert np.array_equal(out, result()), name
        for peer, python in list(pythons.items()):
            found = of_peer(peer, python, repeats)
            if isinstance(found, str):
                print(f"{peer} is absent: {found}")
                del pythons[peer]
                continue
            for name, row in found.items():
                times[name].setdefault(peer, []).append(row["seconds"])
                assert np.isclose(row["fingerprint"], fingerprint(ours[name][1]), rtol=1e-6), (peer, name)
    systems = ["eqsat", "numpy", *pythons]
    print(f"other systems: microseconds of {', '.join(systems)}; ours over the best of the others")
    ratios: dict[str, list[float]] = {}
    for name, row in times.items():
        middle = [1e6 * median(row[system]) for system in systems]
        ratio = middle[0] / min(middle[1:])
        ratios.setdefault(name.split()[0], []).append(ratio)
        print(f"  {name:26}" + "".join(f"{x:10.1f}" for x in middle) + f"{ratio:8.2f}")
    for family, found_ratios in ratios.items():
        print(f"  geometric mean, {family}: {geometric_mean(found_ratios):.2f}")
    print(f"  geometric mean, all: {geometric_mean([x for family in ratios.values() for x in family]):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time compiled kernels.")
    parser.add_argument("--torch", metavar="PYTHON", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--tinygrad", metavar="PYTHON", default=sys.executable, help="a Python that has tinygrad")
    parser.add_argument("--repeats", type=int, default=7, help="medians count (default 7)")
    options = parser.parse_args()
    report_flat(options.repeats)
    report_masked(options.repeats)
    report_peers({"torch": options.torch, "tinygrad": options.tinygrad}, options.repeats)


if __name__ == "__main__":
    main()
