"""Compare eqsat with greedy rewriting and with other simplifiers, and write a report.

    python benchmarks/bench.py [CORPUS.jsonl ...] [--quick] [--peers tinygrad,tvm,halide,isl] [-o DIRECTORY]

Everything is in DIRECTORY: ``rows.jsonl`` (a row per case), ``orders.jsonl`` (the order study), ``report.md`` with its
plots, and ``report.html``, which holds them. A run that was interrupted goes on where it was when the same command is
given again, with the same sources of eqsat; one that is complete only writes its report anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

from comparison import orders
from comparison.greedy_steps import walkthroughs
from comparison.plots import draw
from comparison.report import Run, headline, html, insert, markdown
from comparison.run import Item, Log, compare, key_of, machine, read_corpora, sources
from comparison.solvers import EQSAT, OURS, Solver, ours, peer, start
from peers import PEERS, USUAL
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from eqsat.cli.records import Row, one_line
from eqsat.codegen.libraries import cache_directory
from eqsat.lang.costs import model_of
from eqsat.lang.errors import CompileError

ROOT = Path(__file__).parent.parent
BUNDLED = [
    ROOT / "tests/data/hand.jsonl",
    ROOT / "tests/data/seeds.jsonl",
    ROOT / "benchmarks/data/tinygrad_sample.jsonl",
]

#: What ``--quick`` changes: it is done within 5 minutes on two cores, once the environments are there.
QUICK = {"ours": f"{EQSAT},rules alone,greedy", "limit": 120, "repeats": 3, "kernels": 20, "orders": 6}

#: Kernels that the report explains step by step.
EXPLAINED = 3


def parse() -> argparse.Namespace:
    peers = "\n".join(f"  {found.name:<10}{found.about}" for found in PEERS.values())
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=f"peers:\n{peers}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("corpora", nargs="*", type=Path, default=BUNDLED, help="files of cases (default: those of the checkout)")
    add("-o", "--output", type=Path, help="directory (default: build/bench, or build/quick)")
    add("--quick", action="store_true", help="a sample, within 5 minutes")
    add("--peers", default=",".join(USUAL), help=f"comma-separated, or all (default: {','.join(USUAL)})")
    add("--ours", default=",".join(OURS), help=f"comma-separated, with {EQSAT} (default: all of {', '.join(OURS)})")
    add("--no-gates", dest="gates", action="store_false", help="tell nobody under which condition a root matters")
    add("--cost", default="latency", help="the cost model that all are judged by: a name, or a file of eqsat calibrate")
    add("--seconds", type=float, default=20.0, help="CPU time of a peer for a case (default: 20)")
    add("--limit", type=int, help="a random sample of N cases")
    add("--seed", type=int, default=0, help="for samples")
    add("--repeats", type=int, default=5, help="measurements of compiled answers; 0: not compiled (default: 5)")
    add("--kernels", type=int, default=60, help="of the order study (default: 60)")
    add("--orders", type=int, default=20, help="orders tried in it; 0: no study (default: 20)")
    add("--python", action="append", default=[], metavar="PEER=PATH", help="builds the environment of a peer")
    add("--cache", type=Path, default=cache_directory() / "peers", help="where environments are kept")
    add("--report", type=Path, help="write the report here too, its plots in a directory of the same name")
    add("--command", default=shlex.join(["python", "benchmarks/bench.py", *sys.argv[1:]]), help="what it says made it")
    add("--headline", type=Path, help="write the table of all solvers between the marks of this file")
    given = parser.parse_args()
    if given.quick:
        parser.set_defaults(**QUICK)
        given = parser.parse_args()
    given.output = given.output or ROOT / "build" / ("quick" if given.quick else "bench")
    given.peers = list(PEERS) if given.peers == "all" else [name for name in given.peers.split(",") if name]
    given.ours = given.ours.split(",")
    for names, known in ((given.peers, PEERS), (given.ours, OURS)):
        if unknown := [name for name in names if name not in known]:
            parser.error(f"no solver is called {unknown[0]!r}: choose from {', '.join(known)}")
    if missing := [name for name in (EQSAT, orders.GREEDY) if name not in given.ours]:
        parser.error(f"--ours lacks {missing[0]!r}, which the report is about")
    return given


def progress_bars() -> Progress:
    """Bars for what takes long, if a person looks on."""
    columns = (TextColumn("{task.description:<18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)


def steps[T](progress: Progress, name: str, total: int, done: int, found: Iterable[T]) -> Iterable[T]:
    """``found`` with a bar for ``total`` of them, of which some were ``done`` before."""
    task = progress.add_task(name, total=total, completed=done)
    for element in found:
        yield element
        progress.advance(task)


def answered(given: argparse.Namespace, items: Sequence[Item], progress: Progress) -> Log:
    """All items through all solvers."""
    names = ("gates", "cost", "seconds", "limit", "seed", "repeats", "ours")
    settings: dict[str, Any] = {name: getattr(given, name) for name in names}
    settings["sources"] = sources()
    settings["corpora"] = {path.name: blake2b(path.read_bytes(), digest_size=8).hexdigest() for path in given.corpora}
    model = model_of(given.cost)
    with ExitStack() as running:
        task = progress.add_task("starting", total=len(given.peers))
        pythons = dict(choice.split("=", 1) for choice in given.python)
        sessions, missing = start(
            given.peers,
            pythons,
            given.cache,
            running,
            lambda name: progress.update(task, advance=1, description=f"starting {name}"),
        )
        progress.remove_task(task)
        for reason in missing.values():
            progress.console.print(f"not compared: {reason}", style="red", highlight=False, soft_wrap=True)
        head = {
            "settings": {**settings, "peers": list(sessions)},
            "machine": machine(),
            "versions": {name: session.version for name, session in sessions.items()},
            "missing": missing,
        }
        log = Log(given.output / "rows.jsonl", head)
        done = {key_of(row) for row in log.rows}
        left = [item for item in items if item.key not in done]
        if left:
            solvers: dict[str, Solver] = {name: ours(name) for name in given.ours}
            solvers |= {name: peer(session, given.seconds) for name, session in sessions.items()}
            rows = compare(left, solvers, given.gates, model, given.repeats)
            for row in steps(progress, "comparing", len(items), len(items) - len(left), rows):
                log.append(row)
    return log


def studied(given: argparse.Namespace, items: Sequence[Item], progress: Progress) -> list[Row]:
    """The rows of the order study; none without kernels of fitting size."""
    kernels = orders.kernels(items, given.kernels, given.seed)
    if not kernels:
        return []
    settings = {"gates": given.gates, "cost": given.cost, "kernels": [item.key for item in kernels]}
    settings["sources"] = sources()
    log = Log(given.output / "orders.jsonl", {"settings": json.loads(json.dumps(settings))})
    left = range(len(log.rows), given.orders)
    rows = orders.study(kernels, left, given.gates, model_of(given.cost))
    for row in steps(progress, "trying orders", given.orders, len(log.rows), rows):
        log.append(row)
    return log.rows[: given.orders]


def write(run: Run, path: Path, images: Path) -> str:
    """The report as Markdown at ``path`` and its plots in ``images``."""
    plots = draw(run.rows, run.orders, images)
    text = markdown(run, {name: os.path.relpath(plot, path.parent) for name, plot in plots.items()})
    path.write_text(text, encoding="utf-8")
    return text


def main(given: argparse.Namespace) -> bool:
    """Run the comparison and write the report; whether all answers of eqsat's are right."""
    items = read_corpora(given.corpora, given.limit, given.seed)
    with progress_bars() as progress:
        log = answered(given, items, progress)
        studies = studied(given, items, progress) if given.orders else []
        chosen = walkthroughs(items, log.rows, model_of(given.cost), EXPLAINED)
    run = Run(log.head, log.rows, given.command, studies, chosen)
    text = write(run, given.output / "report.md", given.output)
    (given.output / "report.html").write_text(html(text, given.output), encoding="utf-8")
    if given.report:
        write(run, given.report, given.report.with_suffix(""))
    if given.headline:
        table = f"{headline(run, short=True)}\n\n    {run.command}"
        given.headline.write_text(insert(given.headline.read_text(encoding="utf-8"), table), encoding="utf-8")
    print(headline(run))
    print(f"\n{given.output / 'report.html'}")
    return not any("wrong" in row["answers"][name] for row in log.rows for name in given.ours)


if __name__ == "__main__":
    try:
        sys.exit(not main(parse()))
    except (ValueError, OSError, CompileError) as error:
        sys.exit(f"bench.py: {one_line(error)}")
    except KeyboardInterrupt:
        sys.exit("bench.py: interrupted; the same command goes on where it stopped")
