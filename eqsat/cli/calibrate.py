"""Measure what operations take on this machine, for :class:`eqsat.extract.cost.Calibrated`.

A :class:`Probe` repeats one step, which has the operation to measure and a few others, and is compiled at several
lengths. The slope of its time over its length leaves out what an evaluation takes once, such as the call. A least
squares fit of all slopes gives the time of each kind of operation. There are three figures: throughput, where steps are
independent; latency, where each step waits for the last; and throughput with vector instructions.
"""

from __future__ import annotations

import json
import platform
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from statistics import median

import numpy as np

from eqsat.cli.files import refuse_unwritable, write_whole
from eqsat.codegen.libraries import compiler_version
from eqsat.codegen.runtime import FLAGS, VECTOR_FLAGS, CompiledExprs, compile_many
from eqsat.extract.cost import FIGURES, FORMAT, OPERATIONS, operation
from eqsat.lang.expr import Expr, const, var
from eqsat.lang.functions import maximum, minimum, tdiv, tmod, where
from eqsat.lang.traversal import topological

#: How often a probe repeats its step: at least as often as a program has start values to take in turn, which is 4.
LENGTHS = (4, 6, 8, 10, 12)

#: Factors and divisors that a probe takes in turn; none is near a power of two.
LITERALS = (3, 100, 7, 641, 10, 1000)


@dataclass(frozen=True)
class Operands:
    """What a step may use: two operands as wide as the probe, a small positive one, and literals."""

    a: Expr
    b: Expr
    small: Expr
    literal: Expr
    power_of_two: int
    shift: int


@dataclass(frozen=True)
class Probe:
    """A step from a value ``v`` to the next."""

    #: The kinds of operations that it measures, without their width; several share the time equally.
    measures: tuple[str, ...]
    #: The next value, of ``v`` and :class:`Operands`; it must stay in the range of ``v``.
    step: Callable[[Expr, Operands], Expr]
    #: Whether operands may be negative.
    signed: bool = False
    #: Whether each step reads a variable of its own, and is stored.
    loads: bool = False
    stores: bool = False


def _divisions(op: str, divide: Callable[[Expr, Expr], Expr], signs: Sequence[bool]) -> Iterator[Probe]:
    for signed in signs:
        sign = "signed" if signed else "unsigned"
        yield Probe((f"{op} by literal {sign}",), lambda v, x: divide(v, x.literal) + x.a, signed)
        yield Probe((f"{op} by variable {sign}",), lambda v, x: divide(v, x.small) + x.a, signed)


PROBES = (
    Probe(("min",), lambda v, x: maximum(minimum(v, x.a), x.b)),
    Probe(("add",), lambda v, x: minimum(v + x.a, x.b)),
    Probe(("compare", "select"), lambda v, x: where(v < x.a, x.b, v)),
    Probe(("logic",), lambda v, x: where((v < x.a) & (x.b < v), x.a, v)),
    Probe(("shift",), lambda v, x: (v >> x.shift) + x.a),
    Probe(("mask",), lambda v, x: v % x.power_of_two + x.a),
    Probe(("multiply",), lambda v, x: minimum(v % x.power_of_two * x.small, x.a)),
    Probe(("multiply by literal",), lambda v, x: minimum(v % x.power_of_two * x.literal, x.a)),
    Probe(("load",), lambda v, x: minimum(v + x.a, x.b), loads=True),
    Probe(("store",), lambda v, x: minimum(v + x.a, x.b), stores=True),
    *_divisions("floordiv", lambda x, y: x // y, (False, True)),
    *_divisions("mod", lambda x, y: x % y, (False, True)),
    *_divisions("tdiv", tdiv, (True,)),
    *_divisions("tmod", tmod, (True,)),
)


@dataclass(frozen=True)
class Program:
    """A probe at one width, its step repeated ``length`` times: ``chained``, or beside one another and summed."""

    probe: Probe
    bits: int
    length: int
    chained: bool

    def roots(self) -> list[Expr]:
        values: list[Expr] = []
        for step in range(self.length):
            value = values[-1] if self.chained and values else self.start(0 if self.chained else step % 4)
            values.append(self.probe.step(value, self.operands(step)))
        if self.chained:
            return values[::-1] if self.probe.stores else values[-1:]
        if not self.probe.stores:
            # pairwise, so that no addition waits for a long chain of others
            while len(values) > 1:
                values = [values[n] + values[n + 1] for n in range(0, len(values) - 1, 2)] + values[len(values) & ~1 :]
        return values

    def operands(self, step: int) -> Operands:
        """The operands that step number ``step`` may use: no two steps have the same."""
        most, power = (2**25, 2**8) if self.bits == 32 else (2**55, 2**40)
        least = -most if self.probe.signed else 0
        return Operands(
            var(f"a{step if self.probe.loads else step % 3}", least, most),
            var(f"b{step % 3}", least, most),
            var(f"s{step % 3}", 2, 1000),
            const(LITERALS[step % len(LITERALS)]),
            power << step,
            1 + step,
        )

    def start(self, index: int = 0) -> Expr:
        """A variable to start from; a chain carries the first."""
        most = 2**26 if self.bits == 32 else 2**56
        return var(f"v{index}", -most if self.probe.signed else 0, most)

    def arguments(self) -> list[Expr]:
        """The variables, that which a chain carries first."""
        found = (t for t in topological(self.roots()) if t.op == "var")
        return [self.start(), *sorted(set(found) - {self.start()}, key=str)]

    def operations(self) -> Counter[str]:
        return kinds(self.roots(), self.arguments())


def kinds(roots: Sequence[Expr], variables: Iterable[Expr]) -> Counter[str]:
    """How many operations of each kind an evaluation of ``roots`` takes, loads and stores among them."""
    found: Counter[str] = Counter()
    for term in topological(roots):
        if term.args and (kind := operation(term.op, [(a.vmin, a.vmax) for a in term.args], (term.vmin, term.vmax))):
            found[kind] += 1
    for op, terms in (("load", variables), ("store", roots)):
        found.update(str(operation(op, [(t.vmin, t.vmax)], (t.vmin, t.vmax))) for t in terms)
    return found


def measure(repeats: int, advance: Callable[[], object] = lambda: None) -> dict[str, dict[str, int]]:
    """Picoseconds of each kind of operation, for each of :data:`eqsat.extract.cost.FIGURES`.

    Everything is measured ``repeats`` times, in turn, so that a slow moment spoils no figure; medians count.

    Raises ``CompileError`` if there is no C compiler.
    """
    runs: dict[str, list[tuple[Program, CompiledExprs, list[float]]]] = {}
    for figure, (chained, flags) in _CONDITIONS.items():
        programs = [Program(probe, bits, n, chained) for bits in (32, 64) for probe in PROBES for n in LENGTHS]
        kernels = compile_many([p.roots() for p in programs], [p.arguments() for p in programs], flags=flags)
        runs[figure] = [(program, kernel, []) for program, kernel in zip(programs, kernels, strict=True)]
    for _ in range(repeats):
        for program, kernel, times in chain.from_iterable(runs.values()):
            times.append(kernel.measure(1, chained=program.chained))
        advance()
    return {figure: fit([p for p, _, _ in run], [median(times) for *_, times in run]) for figure, run in runs.items()}


#: For each figure whether steps wait for one another, and how they are compiled.
_CONDITIONS = dict(zip(FIGURES, ((False, FLAGS), (True, FLAGS), (False, VECTOR_FLAGS)), strict=True))


def fit(programs: Sequence[Program], nanoseconds: Sequence[float]) -> dict[str, int]:
    """The picoseconds of each kind of operation that explain what ``programs`` took, by least squares."""
    probes: dict[tuple[Probe, int], list[tuple[Program, float]]] = defaultdict(list)
    for program, time in zip(programs, nanoseconds, strict=True):
        probes[program.probe, program.bits].append((program, time))
    slopes: list[float] = []
    steps: list[dict[str, float]] = []
    for (probe, bits), timed in probes.items():
        first, last = timed[0][0], timed[-1][0]
        counts = last.operations()
        counts.subtract(first.operations())
        steps.append({kind: count / (last.length - first.length) for kind, count in counts.items() if count})
        slopes.append(np.polyfit([p.length for p, _ in timed], [time for _, time in timed], 1)[0])
        # a probe does not tell apart the kinds that it measures: they take equal times
        steps += [{f"{a} i{bits}": 1.0, f"{b} i{bits}": -1.0} for a, b in pairwise(probe.measures)]
        slopes += [0.0] * (len(probe.measures) - 1)
    found = sorted({kind for step in steps for kind in step})
    matrix = np.array([[step.get(kind, 0.0) for kind in found] for step in steps])
    times = np.linalg.lstsq(matrix, np.array(slopes))[0]
    # with a price of 0 an operation could be repeated at will
    return {kind: max(1, round(1000 * time)) for kind, time in zip(found, times, strict=True)}


def calibrate(path: Path, repeats: int = 5, advance: Callable[[], object] = lambda: None) -> None:
    """Measure, and write a model file whole; see :func:`measure`."""
    # half a minute of measuring would be lost
    refuse_unwritable(path)
    picoseconds = measure(repeats, advance)
    ordered = {figure: {kind: picoseconds[figure][kind] for kind in OPERATIONS} for figure in FIGURES}
    content = {"format": FORMAT, "machine": machine(), "picoseconds": ordered}
    write_whole(path, json.dumps(content, indent=1) + "\n")


def machine() -> dict[str, str]:
    """What was measured: processor, system, compiler and its options."""
    return {
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": compiler_version(),
        "flags": " ".join(FLAGS),
        "vector flags": " ".join(VECTOR_FLAGS),
    }


def processor() -> str:
    information = Path("/proc/cpuinfo")
    text = information.read_text("utf-8") if information.exists() else ""
    found = re.search(r"^model name\s*: *(.+)", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()
