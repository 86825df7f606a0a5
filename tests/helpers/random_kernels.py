"""Random kernels, and a C program that runs many of them under the sanitizers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from math import prod
from pathlib import Path
from random import Random

import numpy as np

from eqsat.codegen.expressions import C_TYPES, preamble
from eqsat.codegen.nests import function
from eqsat.kernels.kernel import DTYPES, Kernel, Store
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import max_over, maximum, min_over, minimum, sum_over, where

F = buffer("F", "f32", (4, 6))
D = buffer("D", "f64", (5,))
I = buffer("I", "i32", (3, 2, 4))  # noqa: E741
L = buffer("L", "i64", (7,))
M = buffer("M", "bool", (4, 4))
S = buffer("S", "f32", (17, 24))
T = buffer("T", "i32", (9, 20))
_ARRAYS = (F, D, I, L, M, S, T)


class _Maker:
    """Grows one random kernel from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.number = 0

    def kernel(self, name: str) -> Kernel:
        return Kernel(name, [self.store(f"out{n}") for n in range(self.random.choice([1, 1, 2]))])

    def store(self, name: str) -> Store:
        return self.movement(name) if self.random.random() < 0.3 else self.computation(name)

    def movement(self, name: str) -> Store:
        """Slices of an array, padded, turned around, and perhaps summed up in windows; by axes or one flat index."""
        array = self.random.choice([S, T])
        shape = [self.random.choice([1, 3, 8, 9, 16, 21]) for _ in range(2)]
        flat = var(f"{name}_f", 0, prod(shape) - 1)
        over = [var(f"{name}_{'ij'[n]}", 0, e - 1) for n, e in enumerate(shape)]
        there = over
        if self.random.random() < 0.5:
            over, there = [flat], [flat // shape[1], flat % shape[1]]
        axes = there[::-1] if self.random.random() < 0.5 else there
        window = self.random.choice([0, 0, 2, 3])
        index = var("w", 0, max(window - 1, 0))
        places = [
            p * self.random.choice([1, 1, 2, -1]) + self.random.choice([0, 0, 1, -2, 7]) + (index if window else 0)
            for p in axes
        ]
        inside = const(0).eq(0)
        for place, extent in zip(places, array.value.shape, strict=True):
            inside = inside & (const(0) <= place) & (place < extent)
        value = where(inside, array[tuple(places)], self.random.choice([0, -3]))
        if window:
            reduce = sum_over if array is S or self.random.random() < 0.5 else max_over
            value = reduce(value if array is S else value % 100, index, 0, window)
        return Store(buffer(name, array.value.element, shape)[tuple(there)], value, over)

    def computation(self, name: str) -> Store:
        element = self.random.choice(["f32", "f32", "f64", "i32", "i64", "bool"])
        shape = [self.random.choice([1, 2, 3, 4, 8]) for _ in range(self.random.choice([1, 2, 2]))]
        array = buffer(name, element, shape)
        flat = self.random.random() < 0.5
        extents = [prod(shape)] if flat else shape
        over = [var(f"{name}_{'ijk'[n]}", 0, extent - 1) for n, extent in enumerate(extents)]
        place: list[Expr] = list(over)
        if flat and len(shape) == 2:
            place = [over[0] // shape[1], over[0] % shape[1]]
        elif self.random.random() < 0.3:
            place = [extent - 1 - v for v, extent in zip(over, extents, strict=True)]
        value = {"f": self.real, "i": self.integer, "b": self.condition}[element[0]](over, 3)
        if element == "i32":
            value = value % 1000
        elif element == "i64":
            value = value % 10**12
        when = self.condition(over, 1) if self.random.random() < 0.2 else const(0).eq(0)
        return Store(array[tuple(place)], value, over, when)

    def index(self, names: Sequence[Expr]) -> Expr:
        """An affine term, or one digit of it."""
        total: Expr = const(self.random.choice([0, 0, 1, -2, 5]))
        for v in self.random.choices(names or [const(1)], k=self.random.choice([1, 1, 2])):
            total = total + v * self.random.choice([1, 1, 2, 3, -1, 6])
        kind = self.random.choice(["", "", "//", "%", "%"])
        divisor = self.random.choice([2, 3, 4, 6])
        return total // divisor if kind == "//" else total % divisor if kind == "%" else total

    def load(self, arrays: Sequence[Expr], names: Sequence[Expr], otherwise: object) -> Expr:
        """An element inside its array: by a remainder, or under a condition."""
        array = self.random.choice(arrays)
        shape = array.value.shape
        places = [self.index(names) for _ in shape]
        if self.random.random() < 0.5:
            return array[tuple([p % extent for p, extent in zip(places, shape, strict=True)])]
        inside = const(0).eq(0)
        for place, extent in zip(places, shape, strict=True):
            inside = inside & (const(0) <= place) & (place < extent)
        return where(inside, array[tuple(places)], otherwise)

    def loop(self, names: Sequence[Expr]) -> tuple[Expr, Expr, Expr]:
        self.number += 1
        low: Expr = const(self.random.choice([0, 0, 0, 1, -1]))
        high: Expr = const(self.random.choice([0, 1, 2, 4, 6]))
        if names and self.random.random() < 0.25:
            high = minimum(self.random.choice(names), 6)
        return var(f"r{self.number}", low.vmin, max(low.vmin, high.vmax - 1)), low, high

    def condition(self, names: Sequence[Expr], depth: int) -> Expr:
        kind = self.random.choice(["<", "<", "==", "!=", "and", "or", "load", "real"])
        if kind == "load":
            return self.load([M], names, const(0).eq(1))
        if kind == "real" and depth > 0:
            return self.real(names, 0) < self.real(names, 0)
        if kind in ("and", "or") and depth > 0:
            x, y = self.condition(names, depth - 1), self.condition(names, depth - 1)
            return x & y if kind == "and" else x | y
        x, y = self.index(names), self.index(names)
        return x.eq(y) if kind == "==" else x.ne(y) if kind == "!=" else x < y

    def integer(self, names: Sequence[Expr], depth: int) -> Expr:
        kind = self.random.choice(["index", "load", "where", "+", "*", "//", "%", "min", "sum", "sum", "max"])
        if depth <= 0 or kind == "index":
            return self.index(names)
        if kind == "load":
            return self.load([I, L], names, 0) % 50
        if kind in ("sum", "max"):
            r, low, high = self.loop(names)
            reduce = sum_over if kind == "sum" else self.random.choice([max_over, min_over])
            return reduce(self.integer([r, r, *names], depth - 1) % 100, r, low, high)
        x, y = self.integer(names, depth - 1), self.integer(names, depth - 1)
        match kind:
            case "where":
                return where(self.condition(names, 1), x, self.random.choice([y, const(0)]))
            case "+":
                return x + y
            case "*":
                return (x % 30) * (y % 30)
            case "//":
                return x // self.random.choice([2, 3, -4])
            case "%":
                return x % self.random.choice([3, 8, -5])
        return minimum(x, y)

    def real(self, names: Sequence[Expr], depth: int) -> Expr:
        """Sums and products of small whole numbers, which no order of operations rounds."""
        kind = self.random.choice(["load", "load", "where", "+", "*", "max", "sum", "sum", "sum", "extreme", "convert"])
        if depth <= 0 or kind == "load":
            return self.load([F, F, D], names, 0.0)
        if kind == "convert":
            return self.integer(names, 1) % 64 + self.load([F], names, 0.0)
        if kind in ("sum", "extreme"):
            r, low, high = self.loop(names)
            body = self.real([r, r, *names], depth - 1)
            if kind == "sum":
                chosen = self.condition([r, *names], 1)
                return sum_over(where(chosen, body, 0.0) if self.random.random() < 0.5 else body, r, low, high)
            # over an empty range an extreme is infinite
            return maximum(minimum(max_over(body, r, low, high), 100.0), -100.0)
        x, y = self.real(names, depth - 1), self.real(names, depth - 1)
        match kind:
            case "where":
                return where(self.condition(names, 1), x, y)
            case "+":
                return x + y
            case "*":
                return maximum(minimum(x, 9.0), -9.0) * maximum(minimum(y, 9.0), -9.0)
        return maximum(x, y)


def random_kernel(seed: int) -> Kernel:
    """The kernel of that seed."""
    return _Maker(seed).kernel(f"kernel{seed}")


def contents() -> dict[str, np.ndarray]:
    """Small whole numbers for every input of a random kernel."""
    random = np.random.default_rng(0)
    return {a.value.name: random.integers(-8, 9, a.value.shape).astype(DTYPES[a.value.element]) for a in _ARRAYS}


def run_in_c(
    kernels: Sequence[Kernel], directory: Path, flags: Sequence[str], lanes: int = 1
) -> list[dict[str, np.ndarray]]:
    """The outputs of flat kernels, computed by one C program built with ``flags``; inputs are :func:`contents`."""
    functions = [function(k, lanes=lanes) for k in kernels]
    lines = [
        "#include <math.h>",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        preamble(functions),
    ]
    lines += [f.text for f in functions]
    for name, content in contents().items():
        kind = C_TYPES[next(a.value.element for a in _ARRAYS if a.value.name == name)]
        lines.append(f"static const {kind} data_{name}[] = {{{', '.join(str(x).lower() for x in content.ravel())}}};")
    lines.append("int main(void) {")
    for kernel in kernels:
        lines.append("    {")
        for b in (*kernel.inputs, *kernel.outputs):
            # on the heap, and no larger than they are: what is outside is poisoned
            kind, size = C_TYPES[b.element], prod(b.shape)
            lines.append(f"        {kind} *{b.name} = calloc({size}, sizeof({kind}));")
        lines += [f"        memcpy({b.name}, data_{b.name}, sizeof(data_{b.name}));" for b in kernel.inputs]
        lines.append(f"        {kernel.name}({', '.join(b.name for b in (*kernel.inputs, *kernel.outputs))});")
        lines += [f"        fwrite({b.name}, sizeof({b.name}[0]), {prod(b.shape)}, stdout);" for b in kernel.outputs]
        lines += [f"        free({b.name});" for b in (*kernel.inputs, *kernel.outputs)]
        lines.append("    }")
    lines.append("    return 0;\n}")
    source, program = directory / "kernels.c", directory / "kernels"
    source.write_text("\n".join(lines))
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *flags, "-o", str(program), str(source), "-lm"], check=True)
    done = subprocess.run([str(program)], capture_output=True, check=False)
    assert not done.stderr, done.stderr.decode()[:2000]
    assert done.returncode == 0
    found, at = [], 0
    for kernel in kernels:
        outputs = {}
        for b in kernel.outputs:
            dtype = np.dtype(DTYPES[b.element])
            end = at + dtype.itemsize * prod(b.shape)
            outputs[b.name] = np.frombuffer(done.stdout[at:end], dtype=dtype)
            at = end
        found.append(outputs)
    return found
