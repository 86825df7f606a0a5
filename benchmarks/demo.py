"""The demo: optimise real kernels, check every result, compile both versions to C and time them.

``python benchmarks/demo.py [CORPUS.jsonl]`` prints one line per kernel; by default the bundled sample of index
expressions captured from tinygrad before its simplifier saw them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from eqsat.cli.cases import read_case
from eqsat.cli.records import one_line
from eqsat.codegen.runtime import compile_many
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.errors import CompileError
from eqsat.lang.properties import division_count
from eqsat.lang.text import to_text
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.verify import Check

SAMPLE = Path(__file__).parent / "data" / "tinygrad_sample.jsonl"

#: How many expressions are shown in full, and of how many characters at most.
SHOWN, MOST_SHOWN = 3, 90

HEADING = """\
                                          div+mod           cost          ms  checked       ns per evaluation
kernel                                 before  after   before   after                        before    after"""

LEGEND = """\
div+mod: distinct divisions and remainders in all expressions of the kernel; cost: cycles by the latency model
ms: time to optimise; checked: at all points of the ranges, or at a sample; ns: one evaluation in compiled C"""


@dataclass
class Line:
    """One kernel's result; the nanoseconds are per evaluation of all its roots."""

    name: str
    result: Result
    check: Check
    before_ns: float = 0.0
    after_ns: float = 0.0


def optimized(path: Path, progress: Progress) -> list[Line]:
    """Optimise and check every kernel of a corpus."""
    texts = path.read_text(encoding="utf-8").splitlines()
    task = progress.add_task("optimising", total=len(texts))
    optimize("x + 0", x=(0, 1))  # what is built on first use is not at the expense of the first kernel
    lines = []
    for text in texts:
        case = read_case(text)
        result = optimize(case.exprs, gates=case.gates, constraints=case.constraints)
        lines.append(Line(case.id.removeprefix("tinygrad/"), result, result.check()))
        progress.advance(task)
    return lines


def measure(lines: list[Line], progress: Progress) -> None:
    """Compile both versions of every kernel and fill in their times."""
    task = progress.add_task("compiling C", total=None)
    arguments = [variables([*line.result.before, *line.result.exprs]) for line in lines]
    before = compile_many([line.result.before for line in lines], arguments)
    after = compile_many([line.result.exprs for line in lines], arguments)
    progress.update(task, description="measuring", total=len(lines))
    for line, old, new in zip(lines, before, after, strict=True):
        line.before_ns, line.after_ns = old.measure(), new.measure()
        progress.advance(task)


def shown(lines: list[Line]) -> str:
    """The roots, at most one of a program and short enough for a line, for which most was gained, before and after."""
    best: dict[str, tuple[int, str]] = {}
    for line in lines:
        program = line.name.partition("/")[0]
        of_line = line.result
        for before, after, gate in zip(of_line.before, of_line.exprs, of_line.gates, strict=True):
            texts = to_text(before, most=MOST_SHOWN + 1), to_text(after, most=MOST_SHOWN + 1)
            # a variable with one value is a size of 1 that a reader has to see first
            varied = all(v.vmin < v.vmax for v in variables([before]))
            if varied and max(map(len, texts)) <= MOST_SHOWN:
                costs = cost_of([before], LATENCY), cost_of([after], LATENCY)
                ranges = ", ".join([f"{v} in [{v.vmin}, {v.vmax}]" for v in variables([before])])
                ranges += f", where {to_text(gate)}" if gate is not None else ""
                text = f"{program}: {ranges}\n    {texts[0]}    (cost {costs[0]})\n    {texts[1]}    (cost {costs[1]})"
                best[program] = max(best.get(program, (0, "")), (costs[0] - costs[1], text))
    return "\n".join([text for _, text in sorted(best.values(), reverse=True)[:SHOWN]])


def row(name: str, lines: list[Line], checked: str) -> str:
    """One row of the table, with the totals of ``lines``."""
    before = sum(division_count(line.result.before) for line in lines)
    after = sum(division_count(line.result.exprs) for line in lines)
    cost_before, cost = sum(line.result.cost_before for line in lines), sum(line.result.cost for line in lines)
    milliseconds = sum(line.result.milliseconds for line in lines)
    old, new = sum(line.before_ns for line in lines), sum(line.after_ns for line in lines)
    counts = f"{before:>7}{after:>7}{cost_before:>9}{cost:>8}"
    return f"{name:<38}{counts}{milliseconds:>8.1f}  {checked:<13}{old:>9.1f}{new:>9.1f}"


def report(lines: list[Line]) -> str:
    rule = "-" * len(row("", lines, ""))
    rows = [row(line.name, [line], line.check.kind if line.check.equal else "WRONG") for line in lines]
    right = sum(line.check.equal for line in lines)
    total = row(f"{len(lines)} kernels", lines, f"{right} right")
    return "\n".join([HEADING, rule, *rows, rule, total])


def main() -> None:
    """Run the demo; the exit code is 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", type=Path, default=SAMPLE, help="cases (default: the bundled sample)")
    path = parser.parse_args().corpus
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        lines = optimized(path, progress)
        measure(lines, progress)
    print(f"Index expressions of three programs, before and after:\n\n{shown(lines)}\n\n{report(lines)}")
    print("\n" + LEGEND)
    sys.exit(any(not line.check.equal for line in lines))


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, CompileError) as error:
        sys.exit(f"demo.py: {one_line(error)}")
