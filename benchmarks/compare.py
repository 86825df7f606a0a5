"""Compare eqsat with other simplifiers: what each leaves of a corpus, what that costs, how long it takes.

    python benchmarks/compare.py [CORPUS.jsonl] [--peers tinygrad,tvm,halide,isl] [--gates] [-o ROWS.jsonl]

All solve a case before the next one begins, each in turn first. Every answer is checked and priced by eqsat; a peer's
answer is its cheapest right alternative. Times are CPU time in the simplifier alone, conversions excluded, until that
answer was known; only their ratios mean anything. A row of the output is
``{"id", "before": {"divmod", "cost"}, "answers": {solver: answer}}``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TextIO

from peers import PEERS, USUAL
from peers.environment import UnavailableError
from peers.judge import LATENCY, Answer, divisions, judge
from peers.session import Session
from peers.spelling import to_request
from rich.console import Console
from rich.progress import track
from rich.table import Table

from eqsat.cases import Case, read_case
from eqsat.optimize import cost_of, optimize
from eqsat.runtime import cache_directory

SAMPLE = Path(__file__).parent / "data" / "tinygrad_sample.jsonl"
OURS, BEST = "eqsat", "best of the peers"

Solver = Callable[[Case], Answer]
Answers = dict[str, Answer]


def solve(case: Case, gates: bool) -> Answer:
    """What eqsat makes of a case."""
    start = process_time()
    result = optimize(case.exprs, gates=case.gates if gates else (), constraints=case.constraints)
    milliseconds = 1e3 * (process_time() - start)
    point = result.check().counterexample
    wrong = {"eqsat": point} if point else {}
    return Answer(list(result.exprs), "eqsat", result.cost, divisions(result.exprs), milliseconds, wrong)


def ask(session: Session, gates: bool, seconds: float) -> Solver:
    """A running peer as a solver."""
    return lambda case: judge(case, gates, session.ask(to_request(case, gates, seconds)))


@dataclass(frozen=True)
class Standing:
    """One line of the table: a solver over all cases, against eqsat."""

    divisions: int
    cost: int
    wins: int
    ties: int
    losses: int
    wrong: int
    failed: int
    milliseconds: list[float]


def standing(answers: Sequence[Answers], name: str) -> Standing:
    """The standing of a solver; a win is a case that eqsat solves at lower cost."""
    given = [answer[name] for answer in answers]
    ours = [answer[OURS].cost for answer in answers]
    return Standing(
        divisions=sum(answer.divisions for answer in given),
        cost=sum(answer.cost for answer in given),
        wins=sum(our < answer.cost for our, answer in zip(ours, given, strict=True)),
        ties=sum(our == answer.cost for our, answer in zip(ours, given, strict=True)),
        losses=sum(our > answer.cost for our, answer in zip(ours, given, strict=True)),
        wrong=sum(bool(answer.wrong) for answer in given),
        failed=sum(bool(answer.error) for answer in given),
        milliseconds=sorted(answer.milliseconds for answer in given),
    )


def with_best(answers: Answers) -> Answers:
    """``answers`` and the cheapest one of the peers; its time is that of all of them."""
    peers = [answer for name, answer in answers.items() if name != OURS]
    if not peers:
        return answers
    best = min(peers, key=lambda answer: answer.cost)
    milliseconds = sum(answer.milliseconds for answer in peers)
    return {**answers, BEST: Answer(best.exprs, best.mode, best.cost, best.divisions, milliseconds)}


def table(before: Sequence[tuple[int, int]], answers: Sequence[Answers], versions: Mapping[str, str]) -> Table:
    """The comparison, a line per solver."""
    heads = ("", "div+mod", "cost", "eqsat wins", "ties", "loses", "median", "p95", "total", "wrong", "unfinished")
    result = Table(*heads, box=None)
    result.add_row("input", str(sum(count for count, _ in before)), str(sum(cost for _, cost in before)))
    lines = [with_best(answer) for answer in answers]
    ours = standing(lines, OURS).milliseconds
    for name in lines[0]:
        line = standing(lines, name)
        against = ("",) * 3 if name == OURS else (str(line.wins), str(line.ties), str(line.losses))
        result.add_row(
            f"{name} {versions.get(name, '')}",
            str(line.divisions),
            str(line.cost),
            *against,
            *(f"{measure(line.milliseconds) / measure(ours):.2f}" for measure in (statistics.median, _p95, sum)),
            str(line.wrong),
            str(line.failed),
        )
    return result


def _p95(times: Sequence[float]) -> float:
    return times[len(times) * 95 // 100]


def start(
    names: Sequence[str], pythons: Mapping[str, str], cache: Path, running: ExitStack, console: Console
) -> dict[str, Session]:
    """The peers that can be had, started; of the others the reason is printed."""
    sessions = {}
    for name in names:
        try:
            with console.status(f"starting {name}"):
                sessions[name] = running.enter_context(PEERS[name].session(cache, pythons.get(name, sys.executable)))
        except UnavailableError as reason:
            console.print(f"not compared: {reason}", style="red", highlight=False, soft_wrap=True)
    return sessions


def compare(cases: Iterator[Case], solvers: Mapping[str, Solver], output: TextIO | None) -> Iterator[Answers]:
    """The answers of all solvers to each case, written to ``output`` as they come."""
    names = list(solvers)
    for number, case in enumerate(cases):
        turn = number % len(names)
        found = {name: solvers[name](case) for name in names[turn:] + names[:turn]}
        answers = {name: found[name] for name in names}
        if output:
            before = {"divmod": divisions(case.exprs), "cost": cost_of(case.exprs, LATENCY)}
            rows = {name: answer.row(case) for name, answer in answers.items()}
            output.write(json.dumps({"id": case.id, "before": before, "answers": rows}) + "\n")
            output.flush()
        yield answers


def main() -> None:
    """Run the comparison and print the table."""
    peers = "\n".join(f"  {peer.name:<10}{peer.about}" for peer in PEERS.values())
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=f"peers:\n{peers}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--peers", default=",".join(USUAL), help=f"comma-separated (default: {','.join(USUAL)})")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PATH", help="builds its environment")
    parser.add_argument("--gates", action="store_true", help="tell all of them under which condition a root matters")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of a peer for a case (default: 20)")
    parser.add_argument("-o", "--output", type=argparse.FileType("w"), help="write a row per case")
    parser.add_argument("--cache", type=Path, default=cache_directory() / "peers", help="where environments are kept")
    given = parser.parse_args()
    names = [name for name in given.peers.split(",") if name]
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"no peer is called {unknown[0]!r}: choose from {', '.join(PEERS)}")
    lines = given.corpus.read_text(encoding="utf-8").splitlines()
    cases = [read_case(line) for line in lines if json.loads(line).get("kind", "plain") == "plain"]
    progress = Console(stderr=True)
    with ExitStack() as running:
        pythons = dict(choice.split("=", 1) for choice in given.python)
        sessions = start(names, pythons, given.cache, running, progress)
        optimize("x + 0", x=(0, 1))  # compiles the rules, once per process
        solvers: dict[str, Solver] = {OURS: lambda case: solve(case, given.gates)}
        solvers |= {name: ask(session, given.gates, given.seconds) for name, session in sessions.items()}
        steps = track(cases, "comparing", console=progress, disable=not progress.is_terminal)
        answers = list(compare(iter(steps), solvers, given.output))
    before = [(divisions(case.exprs), cost_of(case.exprs, LATENCY)) for case in cases]
    versions = {name: session.version for name, session in sessions.items()}
    print(f"{len(cases)} cases of {given.corpus.name}, gates {'used' if given.gates else 'ignored'}")
    Console(width=120).print(table(before, answers, versions))
    print("median, p95, total: CPU time as a multiple of eqsat's; unfinished: stopped by the time limit or failed")
    sys.exit(any(answer[OURS].wrong for answer in answers))


if __name__ == "__main__":
    main()
