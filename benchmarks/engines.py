"""Compare the engines on a corpus: what each leaves, what it costs, how long it takes.

    python benchmarks/engines.py [CORPUS.jsonl] [--engines both,theory,rules,greedy]

Gates are ignored, so that every engine solves the same problem. Times are of the optimisation alone, in one process,
after a first case that warms it up; only their ratios mean anything.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from eqsat.cases import Case, read_case
from eqsat.expr import topological
from eqsat.ops import DIVISIONS
from eqsat.optimize import Result, optimize

SAMPLE = Path(__file__).parent / "data" / "tinygrad_sample.jsonl"
ENGINES: dict[str, dict[str, object]] = {
    "both": {},
    "theory": {"engine": "theory"},
    "rules": {"theory": False},
    "greedy": {"engine": "greedy"},
}


def divisions(result: Result) -> int:
    """How many division nodes the answer has."""
    return sum(term.op in DIVISIONS for term in topological(result.exprs))


def run(cases: list[Case], name: str) -> list[Result]:
    """Every case through one engine."""
    options = ENGINES[name]
    optimize(cases[0].exprs, constraints=cases[0].constraints, **options)
    return [optimize(case.exprs, constraints=case.constraints, **options) for case in track(cases, name)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated (default: all)")
    given = parser.parse_args()
    lines = given.corpus.read_text().splitlines()
    cases = [read_case(line) for line in lines if "kind" not in json.loads(line)]
    table = Table("engine", "div+mod", "cost", "median ms", "p95 ms", "total s", "rules' s", "stopped", box=None)
    for name in given.engines.split(","):
        results = run(cases, name)
        times = sorted(result.milliseconds for result in results)
        stops = Counter(result.stop for result in results)
        table.add_row(
            name,
            str(sum(map(divisions, results))),
            str(sum(result.cost for result in results)),
            f"{statistics.median(times):.1f}",
            f"{times[int(0.95 * len(times))]:.1f}",
            f"{sum(times) / 1000:.1f}",
            f"{sum(result.engine_milliseconds for result in results) / 1000:.1f}",
            " ".join(f"{stop} {count}" for stop, count in stops.most_common()),
        )
    Console(width=110).print(f"{len(cases)} cases of {given.corpus.name}", table)


if __name__ == "__main__":
    main()
