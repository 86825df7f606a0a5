"""Measure the drop-ins into other compilers: divisions, run time and compile time, without eqsat and with it.

    python benchmarks/drop_ins.py [inductor] [tinygrad] [triton] [--rounds N] [--only 'NAME;NAME']

Results of both sides must be bit-equal. Both are run in turn in one process, by processor time, the best of N rounds;
time to compile is that of this process and its children. A gain is before / after. tinygrad
compiles for the processor with ``clang``, or else by ``python -m ziglang`` (``pip install ziglang``).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import inf
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from shutil import which
from statistics import geometric_mean
from tempfile import mkdtemp
from typing import Any


@dataclass
class Row:
    """One program: without eqsat and with it."""

    name: str
    divisions: tuple[int, int]
    running: tuple[float, float]
    compiling: tuple[float, float]
    unit: str = "ms"

    def cells(self) -> list[str]:
        scale = 1000 if self.unit == "ms" else 1
        cells = [self.name, f"{self.divisions[0]} -> {self.divisions[1]}"]
        for (before, after), factor in ((self.running, scale), (self.compiling, 1)):
            cells += [f"{before * factor:.3g}", f"{after * factor:.3g}", f"{before / after:.2f}"]
        return cells


def processor_seconds() -> float:
    """User and system time of this process and of its children that have ended."""
    spent = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def in_turn(before: Callable[[], Any], after: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The best processor time of each of two, which are run by turns."""
    runs = before, after
    best = [float("inf"), float("inf")]
    repeats = [1, 1]
    for round_ in range(rounds):
        for side in (0, 1) if round_ % 2 else (1, 0):
            start = time.process_time()
            for _ in range(repeats[side]):
                runs[side]()
            spent = (time.process_time() - start) / repeats[side]
            best[side] = min(best[side], spent)
            # what is short is repeated, for 20 ms
            repeats[side] = max(repeats[side], min(1000, int(0.02 / max(spent, 1e-6))))
    return best[0], best[1]


def compared(
    name: str, compiled: Callable[[int], tuple[Any, Any, Any, float]], given: Any, rounds: int
) -> tuple[list[Any], list[Any], tuple[float, float], tuple[float, float]]:
    """Of both sides, without eqsat (0) and with it: the results, what else is known, times to run and to compile.

    Each side is compiled to what is run, its result, what else is known of it, and the time that took.
    """
    found: list[Any] = [None, None]
    took, running = [inf, inf], [inf, inf]
    # in both orders: where buffers and code come to lie in memory depends on what was done before
    for order in ((0, 1), (1, 0)):
        for side in order:
            found[side] = compiled(side)
            took[side] = min(took[side], found[side][3])
        best = in_turn(partial(found[0][0], given), partial(found[1][0], given), rounds)
        running = [*map(min, running, best)]
    results = [side[1] for side in found]
    assert (results[0] == results[1]).all(), f"{name}: other results"
    return results, [side[2] for side in found], (running[0], running[1]), (took[0], took[1])


# ---- PyTorch's Inductor


def torch_programs() -> dict[str, tuple[Callable[..., Any], int | None]]:
    """By name a program and which of its input's sizes is dynamic."""
    import torch
    from torch.nn import functional

    def im2col(x: Any) -> Any:
        return functional.unfold(x, 3, padding=1).transpose(1, 2).reshape(-1, 72) + 1

    def channel_shuffle(x: Any) -> Any:
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h * w) * 2

    def permuted(x: Any) -> Any:
        return x.permute(0, 2, 3, 1).reshape(-1, 12) + 1

    def pixel_shuffle(x: Any) -> Any:
        return functional.pixel_shuffle(x, 2).reshape(2, -1, 4) + 1

    def repeated(x: Any) -> Any:
        return x.reshape(-1).repeat_interleave(6).reshape(-1, 3) * x.reshape(-1)[0]

    def padded(x: Any) -> Any:
        return functional.pad(x, (1, 1, 2, 2)).reshape(2, -1, 6) * 2

    def rolled(x: Any) -> Any:
        return torch.roll(x, 3, 2).reshape(-1, 5) + 1

    def concatenated(x: Any) -> Any:
        return torch.cat([x, x + 1], 1).permute(0, 2, 1, 3).reshape(-1, 20)

    def strided(x: Any) -> Any:
        return x.permute(0, 3, 1, 2)[:, ::2].reshape(-1, 24) + 1

    def windows(x: Any) -> Any:
        n, c, h, w = x.shape
        x = torch.roll(x, (-2, -2), (2, 3)).view(n, c, h // 4, 4, w // 4, 4)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c) + 1

    static = [
        im2col,
        channel_shuffle,
        permuted,
        pixel_shuffle,
        repeated,
        padded,
        rolled,
        concatenated,
        strided,
        windows,
    ]
    programs: dict[str, tuple[Callable[..., Any], int | None]] = {p.__name__: (p, None) for p in static}
    for program, size in ((permuted, 0), (channel_shuffle, 1), (im2col, 2), (strided, 2), (pixel_shuffle, 2)):
        programs[f"{program.__name__}, dynamic"] = (program, size)
    return programs


def inductor_rows(rounds: int, only: set[str]) -> Iterator[Row]:
    import torch
    from torch._inductor import config
    from torch._inductor.utils import fresh_cache, run_and_get_code

    from eqsat.interop import inductor

    # seconds that a busy machine does not run out of
    inductor.BUDGET = replace(inductor.BUDGET, seconds=20.0)
    torch.set_num_threads(1)
    x = torch.randn(2, 64, 96, 100, generator=torch.Generator().manual_seed(7))
    # once, so that what is made for the first compilation alone is not counted
    torch.compile(lambda x: x + 1)(x[0, 0])

    def compiled(program: Callable[..., Any], given: Any, side: int) -> tuple[Any, Any, int, float]:
        code = program.__code__.replace()
        program = type(program)(code, program.__globals__, program.__name__, closure=program.__closure__)
        settings = config.patch(fx_graph_cache=False, compile_threads=1, cpp_cache_precompile_headers=False)
        with fresh_cache(), settings, inductor.enabled() if side else nullcontext():
            start = processor_seconds()
            run = torch.compile(program)
            result, texts = run_and_get_code(run, given)
        took = processor_seconds() - start
        return run, result, len(re.findall(r"div_floor_integer|\) % ", "\n".join(texts))), took

    for name, (program, dynamic) in torch_programs().items():
        if only and name not in only:
            continue
        given = x.clone()
        if dynamic is not None:
            torch._dynamo.mark_dynamic(given, dynamic)
        results, counts, running, took = compared(name, partial(compiled, program, given), given, rounds)
        assert torch.equal(results[0], program(x)), f"{name}: other results than without a compiler"
        yield Row(name, (counts[0], counts[1]), running, took)


# ---- tinygrad


TINYGRAD: dict[str, Callable[[Any], Any]] = {
    "permute, reshape": lambda x: x.reshape(60, 80, 100).permute(2, 0, 1).reshape(1200, 400).permute(1, 0) + 1,
    "channel shuffle": lambda x: x.reshape(8, 4, 30, 500).permute(0, 2, 1, 3).reshape(8, 120, 50, 10) + 1,
    "pixel shuffle": lambda x: x.reshape(10, 12, 2, 2, 40, 25).permute(0, 1, 4, 2, 5, 3).reshape(10, 12, 80, 50) + 1,
    "im2col": lambda x: (
        x.reshape(4, 12, 100, 100)._pool((3, 3), 1, 1).permute(0, 1, 4, 5, 2, 3).reshape(108 * 4, -1) + 1
    ),
    "strided": lambda x: x.reshape(600, 800)[1::3, ::2].permute(1, 0).reshape(-1) + 1,
    "pad": lambda x: x.reshape(800, 600).permute(1, 0).reshape(1200, 400).pad(((1, 2), (3, 1))).reshape(-1) + 1,
    "roll": lambda x: x.reshape(600, 800).roll((5, 3), (0, 1)).reshape(-1) + 1,
    "concatenate": lambda x: x.reshape(600, 800)[:70].cat(x.reshape(600, 800)[30:50], x.reshape(600, 800)[90:]) * 2,
    "repeat": lambda x: x.reshape(600, 800).repeat(2, 3).reshape(-1) + 1,
    "flip": lambda x: x.reshape(1200, 400).flip(0).permute(1, 0).reshape(600, 800).flip(1).reshape(-1) + 1,
    "windows": lambda x: (
        x.reshape(10, 80, 100, 6).roll((2, 2), (1, 2)).reshape(10, 20, 4, 25, 4, 6).permute(0, 1, 3, 2, 4, 5) + 1
    ),
}


def c_compiler() -> str:
    """A ``clang`` for tinygrad: ziglang's, if there is no other, which writes objects to files alone."""
    if found := which("clang"):
        return found
    if find_spec("ziglang") is None:
        raise SystemExit("there is no clang: pip install ziglang")
    import ziglang

    path = Path(mkdtemp(prefix="eqsat-clang-"), "clang")
    path.write_text(f"""#!/bin/sh
for a in "$@"; do
  shift
  case "$a" in --target=*) a=--target=x86_64-freestanding-none ;; esac
  [ "$before" = -o ] || [ "$a" = -o ] || set -- "$@" "$a"
  before=$a
done
folder=$(mktemp -d)
out="$folder/out.o"
export ZIG_LOCAL_CACHE_DIR="$folder" ZIG_GLOBAL_CACHE_DIR="$folder"
"{Path(ziglang.__file__).parent / "zig"}" cc "$@" -g0 -o "$out" && cat "$out"
status=$?
rm -rf "$folder"
exit $status
""")
    path.chmod(0o755)
    return str(path)


def tinygrad_rows(rounds: int, only: set[str]) -> Iterator[Row]:
    os.environ |= {"PARALLEL": "0", "CACHELEVEL": "0", "THREADS": "1", "CC": c_compiler()}
    import numpy as np
    import tinygrad.codegen
    from tinygrad import Tensor, TinyJit

    from eqsat.egraph.budget import Budget
    from eqsat.interop import tinygrad as drop_in
    from eqsat.interop.drop_in import Statistics

    # seconds that a busy machine does not run out of
    budget = Budget(seconds=10.0)
    x = Tensor(np.random.default_rng(7).random(480_000, dtype=np.float32), device="CPU").realize()
    # once each, so that what is made for the first compilation alone is not counted
    (x + 1).realize()
    with drop_in.enabled():
        TINYGRAD["flip"](x).realize()

    def compiled(program: Callable[[Any], Any], side: int) -> tuple[Any, Any, Statistics, float]:
        drop_in.reset_statistics()
        tinygrad.codegen.to_program_cache.clear()
        run = TinyJit(lambda x: program(x).contiguous().realize())
        with drop_in.enabled(budget=budget) if side else nullcontext():
            start = processor_seconds()
            result = run(x).numpy()
            took = processor_seconds() - start
            run(x)
        return run, result, drop_in.statistics(), took

    for name, program in TINYGRAD.items():
        if only and name not in only:
            continue
        _, (_, done), running, took = compared(name, partial(compiled, program), x, rounds)
        yield Row(name, (done.divisions_before, done.divisions_after), running, took)


# ---- Triton


def triton_rows(rounds: int, only: set[str]) -> Iterator[Row]:
    """Compiled for a GPU that is not there: instructions stand for run time."""
    sys.path.append(str(Path(__file__).parent.parent / "examples"))
    from triton_kernels import KERNELS, PROGRAMS, compiled, divisions, instructions

    from eqsat.interop import triton as drop_in

    def fresh() -> None:
        os.environ["TRITON_CACHE_DIR"] = mkdtemp(prefix="eqsat-triton-")

    fresh()
    # once each, so that what is made for the first compilation alone is not counted
    compiled("rows")
    with drop_in.enabled(programs=PROGRAMS):
        compiled("rows")
    for name in KERNELS:
        if only and name not in only:
            continue
        found, took = [], []
        for context in (nullcontext(), drop_in.enabled(programs=PROGRAMS)):
            fresh()
            drop_in.reset_statistics()
            start = processor_seconds()
            with context:
                found.append(compiled(name).asm)
            took.append(processor_seconds() - start)
        counts = [divisions(asm["ttir"]) for asm in found]
        lengths = [instructions(asm["ptx"]) for asm in found]
        yield Row(name, (counts[0], counts[1]), (lengths[0], lengths[1]), (took[0], took[1]), unit="instructions")


ROWS = {"inductor": inductor_rows, "tinygrad": tinygrad_rows, "triton": triton_rows}
#: By drop-in the package that it needs, which is the name of its extra, too.
PACKAGES = {"inductor": "torch", "tinygrad": "tinygrad", "triton": "triton"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drop_ins", nargs="*", default=list(ROWS), metavar="DROP_IN")
    parser.add_argument("--rounds", type=int, default=15, help="the best of N counts (default: %(default)s)")
    parser.add_argument("--only", default="", help="programs, with ';' between them")
    arguments = parser.parse_args()
    for drop_in in arguments.drop_ins:
        if drop_in not in ROWS:
            raise SystemExit(f"no drop-in is called {drop_in!r}: choose among {', '.join(ROWS)}")
        if find_spec(package := PACKAGES[drop_in]) is None:
            raise SystemExit(f"{drop_in} needs {package}: pip install 'eqsat[{package}]'")
    for drop_in in arguments.drop_ins:
        rows = []
        for row in ROWS[drop_in](arguments.rounds, set(filter(None, arguments.only.split(";")))):
            if not rows:
                heads = ["program", "div, mod", row.unit, "with", "gain", "s to compile", "with", "gain"]
                print(f"\n{drop_in}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
            rows.append(row)
            print(f"| {' | '.join(row.cells())} |", flush=True)
        if rows:
            report(rows)


def report(rows: list[Row]) -> None:
    """Print what the programs have together."""
    static, dynamic = ([r for r in rows if r.name.endswith("dynamic") is is_dynamic] for is_dynamic in (False, True))
    print()
    for what, some in (("divisions", static), ("divisions, dynamic", dynamic)):
        if some:
            before, after = (sum(row.divisions[k] for row in some) for k in (0, 1))
            print(f"{what}: {before} -> {after}, {after / max(before, 1):.2f} times as many")
    for what, pairs in (("run", [row.running for row in rows]), ("compile", [row.compiling for row in rows])):
        ratios = [before / after for before, after in pairs]
        total = sum(after for _, after in pairs) / sum(before for before, _ in pairs)
        print(f"{what}: gain {geometric_mean(ratios):.3f} in geometric mean, least {min(ratios):.2f}; ", end="")
        print(f"{total:.3f} times as much together")


if __name__ == "__main__":
    main()
