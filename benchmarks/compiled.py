"""Run time of compiled answers, before and after: two files of rows of one corpus, by ``eqsat corpus ... -o``.

    python benchmarks/compiled.py CORPUS.jsonl BEFORE.jsonl AFTER.jsonl [--limit 200] [--seed 0] [--repeats 7]
        [--compilers gcc "python -m ziglang cc"] [--rows FILE.jsonl]

Of cases chosen at random, those whose answers differ are compiled by gcc and clang, as far as these are installed, or
by other compilers, at -O3: alone, one point after another, and in a loop over arrays of indices that the compiler may
vectorise. Both answers of a case are measured in turns, by the time of the processor; those that seem slower are
measured again, three times as often, which counts. Cases whose answers are the same count as 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from eqsat.cli.cases import Case, read_corpus
from eqsat.codegen.runtime import CompiledExprs, compile_many
from eqsat.lang.expr import Expr
from eqsat.lang.text import parse_program
from eqsat.lang.traversal import variables

COMPILERS = ("gcc", "clang")
FLAGS = {
    "alone": ("-std=c99", "-O3", "-march=native", "-fno-tree-vectorize", "-fno-tree-slp-vectorize"),
    "in a vectorised loop": ("-std=c99", "-O3", "-march=native"),
}
#: A case counts as slower if it takes more than this many times what it took before.
SLOWER = 1.05
#: How many pairs one library holds.
BATCH = 20


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """The rows in a file that have answers, by case."""
    rows = map(json.loads, path.read_text().splitlines())
    return {str(row["id"]): row for row in rows if "out" in row}


def answer(case: Case, row: dict[str, Any]) -> list[Expr]:
    """The answer in a row, which has names of its own for what is shared."""
    inputs = {name: term for name, term in case.variables.items() if term.op == "var"}
    return parse_program([(name, text) for name, text in row.get("lets", ())], row["out"], inputs)


def ratio(before: CompiledExprs, after: CompiledExprs, repeats: int) -> float:
    """What ``after`` takes of the time of ``before``, measured in turns."""
    times = [(before.measure(1), after.measure(1)) for _ in range(repeats)]
    old, new = [median(column) for column in zip(*times, strict=True)]
    return new / old


def ratios(pairs: Sequence[tuple[Case, list[Expr], list[Expr]]], flags: Sequence[str], repeats: int) -> list[float]:
    """The ratio of each pair, compiled with ``flags``."""
    found = []
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        orders = [sorted(variables([*old, *new]), key=str) for _, old, new in batch]
        before, after = [compile_many([p[which] for p in batch], orders, flags=flags) for which in (1, 2)]
        for pair in zip(before, after, strict=True):
            once = ratio(*pair, repeats)
            found.append(once if once <= SLOWER else ratio(*pair, 3 * repeats))
    return found


def line(name: str, found: Sequence[float], same: int, slowest: str) -> str:
    """What was found under one condition."""
    slower = sum(value > SLOWER for value in found)
    every = geometric_mean([*found, *[1.0] * same])
    return (
        f"{name:28} geometric mean {every:.3f}, of those that differ {geometric_mean(found):.3f};"
        f" {slower / (len(found) + same):.1%} slower by more than {SLOWER - 1:.0%}, {max(found):.2f} most ({slowest})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the cases")
    parser.add_argument("before", type=Path, help="rows of their answers")
    parser.add_argument("after", type=Path, help="rows of other answers")
    parser.add_argument("--limit", type=int, default=200, help="how many cases (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which cases (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="medians count (default: %(default)s)")
    parser.add_argument("--compilers", nargs="+", default=COMPILERS, help="commands (default: gcc clang)")
    parser.add_argument("--rows", type=Path, help="where the ratio of each case goes, one JSON object a line")
    options = parser.parse_args()
    before, after = rows_of(options.before), rows_of(options.after)
    cases = {str(case.id): case for case in read_corpus(options.corpus)}
    known = [name for name in cases if name in before and name in after]
    if not known:
        parser.error(f"{options.before} and {options.after} have no case of {options.corpus} in common")
    chosen = random.Random(options.seed).sample(known, min(options.limit, len(known)))
    pairs = [(cases[name], *[answer(cases[name], rows[name]) for rows in (before, after)]) for name in chosen]
    pairs = [pair for pair in pairs if pair[1] != pair[2]]
    same = len(chosen) - len(pairs)
    print(f"{len(chosen)} cases, {same} with the same answer")
    rows = []
    for compiler in options.compilers:
        if not shutil.which(shlex.split(compiler)[0]):
            print(f"{compiler} is not installed: skipped", file=sys.stderr)
            continue
        os.environ["CC"] = compiler
        for condition, flags in FLAGS.items():
            found = ratios(pairs, flags, options.repeats)
            names = [str(case.id) for case, _, _ in pairs]
            rows += [(compiler, condition, *one) for one in zip(names, found, strict=True)]
            slowest = names[found.index(max(found))]
            print(line(f"{compiler} -O3, {condition}", found, same, slowest), flush=True)
    if options.rows:
        keys = ("compiler", "condition", "id", "ratio")
        options.rows.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))


if __name__ == "__main__":
    main()
