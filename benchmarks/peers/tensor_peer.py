"""The data movement and pooling of benchmarks/kernels.py by NumPy, torch (one thread) or tinygrad (CPU, one thread).

``python benchmarks/peers/tensor_peer.py numpy|torch|tinygrad [--repeats N]`` prints one JSON object: per case the
median seconds of a call, and the sum of the result weighted by place, by which results are compared. It imports NumPy
and the peer alone, so that it runs in an environment of the peer's own. Each operation is the peer's own for the
purpose, stores to an array that is there already if the peer can, and is called often enough that a repeat takes 3 ms.
Times are of the clock or of the processor, whichever is less.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Im2col:
    """Windows of a padded image as columns: (channels, height, width) to (channels*size*size, rows*columns)."""

    shape: tuple[int, int, int]
    size: int
    stride: int
    padding: int

    @property
    def outputs(self) -> tuple[int, int]:
        """How many rows and columns of windows there are."""
        _, height, width = self.shape
        return tuple((n + 2 * self.padding - self.size) // self.stride + 1 for n in (height, width))  # type: ignore

    @property
    def result(self) -> tuple[int, ...]:
        rows, columns = self.outputs
        return (self.shape[0] * self.size**2, rows * columns)


@dataclass(frozen=True)
class Pool(Im2col):
    """The greatest element of each window of an image, outside of which there is nothing."""

    @property
    def result(self) -> tuple[int, ...]:
        return (self.shape[0], *self.outputs)


@dataclass(frozen=True)
class Permute:
    """A reshape, a permutation of the axes, a reshape."""

    shape: tuple[int, ...]
    parts: tuple[int, ...]
    axes: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    """Elements of each axis at equal distances: (start, step) per axis; a negative step goes back."""

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(a, None, s) for a, s in zip(self.starts, self.steps, strict=True))

    @property
    def result(self) -> tuple[int, ...]:
        return tuple(len(range(n)[s]) for n, s in zip(self.shape, self.slices, strict=True))


#: Cases of the four families, named after where they occur.
CASES: dict[str, Im2col | Permute | Slice] = {
    "im2col 3x3": Im2col((64, 56, 56), 3, 1, 1),
    "im2col 3x3 stride 2": Im2col((32, 112, 112), 3, 2, 1),
    "im2col 7x7 stride 2": Im2col((3, 224, 224), 7, 2, 3),
    "permute channels last": Permute((64, 56, 56), (64, 3136), (1, 0), (56, 56, 64)),
    "permute channels first": Permute((56, 56, 64), (3136, 64), (1, 0), (64, 56, 56)),
    "permute heads": Permute((512, 768), (512, 12, 64), (1, 0, 2), (12, 512, 64)),
    "permute keys": Permute((512, 768), (512, 12, 64), (1, 2, 0), (12, 64, 512)),
    "permute patches": Permute((3, 224, 224), (3, 14, 16, 14, 16), (1, 3, 0, 2, 4), (196, 768)),
    "permute pixel shuffle": Permute((64, 56, 56), (16, 2, 2, 56, 56), (0, 3, 1, 4, 2), (16, 112, 112)),
    "permute channel shuffle": Permute((240, 28, 28), (3, 80, 784), (1, 0, 2), (240, 28, 28)),
    "permute transpose": Permute((1000, 1000), (1000, 1000), (1, 0), (1000, 1000)),
    "pool 3x3 stride 2": Pool((64, 112, 112), 3, 2, 1),
    "pool 3x3": Pool((64, 56, 56), 3, 1, 1),
    "pool 5x5": Pool((32, 56, 56), 5, 1, 2),
    "slice every second": Slice((64, 112, 112), (0, 0, 0), (1, 2, 2)),
    "slice every third": Slice((1000, 1500), (0, 1), (1, 3)),
    "slice rows": Slice((1000, 1024), (1, 0), (2, 1)),
    "slice reversed": Slice((1000, 1000), (0, 999), (1, -1)),
}


def data(shape: tuple[int, ...]) -> np.ndarray:
    """An input of a shape."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def fingerprint(result: np.ndarray) -> float:
    """A number that tells results apart, and their orders."""
    flat = np.asarray(result, dtype=np.float64).ravel()
    return float(flat @ np.cos(np.arange(flat.size)))


def seconds(call: Call, repeats: int) -> float:
    """The median time of a call."""
    call()
    started = perf_counter()
    call()
    inner = max(1, int(0.003 / (perf_counter() - started)))
    times = []
    for _ in range(repeats):
        clock, processor = perf_counter(), process_time()
        for _ in range(inner):
            call()
        # neither a busy machine counts nor a thread that waits for work
        times.append(min(perf_counter() - clock, process_time() - processor) / inner)
    return median(times)


def with_numpy(case: Im2col | Permute | Slice, x: np.ndarray) -> tuple[Call, Call]:
    """A call, and a call that gives its result."""
    out = np.empty(case.result, dtype=np.float32)
    if isinstance(case, Permute):
        view = x.reshape(case.parts).transpose(case.axes)
        whole = out.reshape(view.shape)
        return lambda: np.copyto(whole, view), lambda: out
    if isinstance(case, Slice):
        view = x[case.slices]
        return lambda: np.copyto(out, view), lambda: out
    (channels, height, width), p, s, n = case.shape, case.padding, case.stride, case.size
    outside = -np.inf if isinstance(case, Pool) else 0
    padded = np.full((channels, height + 2 * p, width + 2 * p), outside, dtype=np.float32)
    inner = padded[:, p : p + height, p : p + width]
    rows, columns = case.outputs
    windows = [
        padded[:, a : a + s * rows : s, b : b + s * columns : s][:, :rows, :columns] for a in range(n) for b in range(n)
    ]

    def pool() -> None:
        np.copyto(inner, x)
        np.copyto(out, windows[0])
        for window in windows[1:]:
            np.maximum(out, window, out=out)

    columns_of = out.reshape(channels, n * n, rows, columns) if not isinstance(case, Pool) else out

    def im2col() -> None:
        np.copyto(inner, x)
        for place, window in enumerate(windows):
            np.copyto(columns_of[:, place], window)

    return (pool if isinstance(case, Pool) else im2col), lambda: out


def with_torch(case: Im2col | Permute | Slice, given: np.ndarray) -> tuple[Call, Call]:
    """A call, and a call that gives its result."""
    import torch

    torch.set_num_threads(1)
    x, out = torch.from_numpy(given), torch.empty(case.result)
    if isinstance(case, Permute):
        view = x.reshape(case.parts).permute(case.axes)
        whole = out.view(view.shape)
        return lambda: whole.copy_(view), lambda: out.numpy()
    if isinstance(case, Slice):
        if -1 in case.steps:
            axes = [axis for axis, step in enumerate(case.steps) if step < 0]
            return lambda: torch.flip(x, axes), lambda: torch.flip(x, axes).numpy()
        view = x[case.slices]
        return lambda: out.copy_(view), lambda: out.numpy()
    image, n, p, s = x[None], case.size, case.padding, case.stride
    if isinstance(case, Pool):
        pool = torch.nn.functional.max_pool2d
        return lambda: pool(image, n, s, p), lambda: pool(image, n, s, p).numpy()
    whole, im2col = out[None], torch.ops.aten.im2col.out
    return lambda: im2col(image, [n, n], [1, 1], [p, p], [s, s], out=whole), lambda: out.numpy()


def with_tinygrad(case: Im2col | Permute | Slice, given: np.ndarray) -> tuple[Call, Call]:
    """A call, and a call that gives its result."""
    os.environ.setdefault("DEV", "CPU")
    os.environ.setdefault("CPU_COUNT", "1")
    from tinygrad import Device, Tensor, TinyJit

    x = Tensor(given).realize()

    def value(t: Any) -> Any:
        if isinstance(case, Permute):
            return t.reshape(case.parts).permute(case.axes).reshape(case.result)
        if isinstance(case, Slice):
            return t[case.slices]
        p, n = case.padding, case.size
        if isinstance(case, Pool):
            return t[None].max_pool2d((n, n), case.stride, padding=p)[0]
        # its own windows, in torch's order
        windows = t.pad(((0, 0), (p, p), (p, p)))._pool((n, n), case.stride)
        return windows.permute(0, 3, 4, 1, 2).reshape(case.result)

    jitted = TinyJit(lambda t: value(t).contiguous().realize())
    for _ in range(3):
        jitted(x)

    def call() -> Any:
        result = jitted(x)
        Device[Device.DEFAULT].synchronize()
        return result

    return call, lambda: call().numpy()


PEERS = {"numpy": with_numpy, "torch": with_torch, "tinygrad": with_tinygrad}


def measure(peer: str, repeats: int) -> dict[str, dict[str, float]]:
    """Per case the median seconds and the fingerprint of the result."""
    found = {}
    for name, case in CASES.items():
        call, result = PEERS[peer](case, data(case.shape))
        found[name] = {"seconds": seconds(call, repeats), "fingerprint": fingerprint(result())}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Time tensor operations of a peer.")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--repeats", type=int, default=15, help="medians count (default 15)")
    options = parser.parse_args()
    print(json.dumps(measure(options.peer, options.repeats)))


if __name__ == "__main__":
    main()
