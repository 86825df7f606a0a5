"""Measure what each part of eqsat is worth: cost, divisions left and time without it, against all parts together.

    python benchmarks/ablation.py [CORPUS.jsonl ...] [--limit N] [--tables default,rules] [-o FILE.md]

Parts are families of rules, the theory, and what adds alternatives without being a rule (a provider). Two tables are
written: the default engine without each part, and the rules alone without each family, since the theory decides most of
what these say. Every answer is checked, and all parts are tried on a case before the next one begins.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from bench import ROOT, progress_bars, steps
from comparison.orders import PATIENT
from comparison.report import Run, table, what
from comparison.run import Item, compare, machine, read_corpora
from comparison.solvers import Solver, configured
from comparison.summary import standing
from peers.judge import Answer, Examiner
from rich.progress import Progress

from eqsat.alternatives.providers import PROVIDERS, Provider
from eqsat.alternatives.providers import without as without_providers
from eqsat.cli.records import Row, one_line
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import model_of
from eqsat.lang.errors import CompileError
from eqsat.optimizer import front, optimisation
from eqsat.optimizer.modulo_theory import ModuloTheory
from eqsat.optimizer.relevant import relevant_rules
from eqsat.rules import DEFAULT, FAMILIES

#: All corpora of the checkout, and the kinds of cases in them that are lists of expressions or reductions.
SAMPLE = ROOT / "benchmarks/data/tinygrad_sample.jsonl"
CORPORA = [*sorted((ROOT / "tests/data").glob("*.jsonl")), SAMPLE]
KINDS = ("plain", "reduce")

#: A provider that is left out; or a module or class, the name of something in it, and what stands in its place.
Change = Provider | tuple[Any, str, Any]


def with_rules(rules: tuple[Rule, ...]) -> list[Change]:
    """What puts ``rules`` in the place of those that are shipped, prepared once as those are."""

    @cache
    def prepared(modulo_theory: bool) -> tuple[Rule, ...]:
        return relevant_rules(rules, modulo_theory)

    return [
        *[(module, "DEFAULT", rules) for module in (front, optimisation)],
        (optimisation, "relevant_of_default", prepared),
    ]


#: What leaves out each family of rules.
FAMILY = {
    f"{name} rules": with_rules(tuple(rule for rule in DEFAULT if rule not in family))
    for name, family in FAMILIES.items()
}

#: What leaves out each provider, and the rules about reductions, which the input's reductions bring in.
PROVIDER: dict[str, list[Change]] = {
    "rules about reductions": [(ModuloTheory, "used", property(lambda self: self.rules))],
    **{provider.name: [provider] for provider in PROVIDERS},
}

#: The engine with all its parts, which everything is compared with.
NOTHING = "nothing"

#: Options of the default engine and of the rules alone: a busy machine shall stop neither.
WHOLE: dict[str, Any] = {"budget": PATIENT}
ALONE: dict[str, Any] = {"theory": False, **WHOLE}

#: By table, what is left out and how: options of :func:`eqsat.optimize`, and changes made while it runs.
TABLES: dict[str, dict[str, tuple[Mapping[str, Any], Sequence[Change]]]] = {
    "default": {
        NOTHING: (WHOLE, ()),
        **{name: (WHOLE, changes) for name, changes in FAMILY.items()},
        "all rules": (WHOLE, with_rules(())),
        "the theory (rules alone)": (ALONE, ()),
        **{name: (WHOLE, changes) for name, changes in PROVIDER.items()},
    },
    "rules": {
        NOTHING: (ALONE, ()),
        **{name: (ALONE, changes) for name, changes in FAMILY.items()},
        "reduce rules": (ALONE, [(optimisation, "REDUCE", ())]),
    },
}
TITLES = {"default": "The default engine", "rules": "The rules alone"}

LEGEND = """\
Divisions and remainders left and cost without each part, in total over the cases; what that changes in cost; on how
many cases the cost is higher, and lower, than with all parts; median and total time over those with all parts; and how
many cases used up their budget, of 60 seconds. What these cost is up to the machine: a case counts in no other column
if it stopped the engine of the table without a part, and is not tried without parts if it did with all. Empty cells are
zero."""


@contextmanager
def changed(changes: Sequence[Change]) -> Iterator[None]:
    """With the changes made; they are undone at the end."""
    with ExitStack() as made:
        for change in changes:
            made.enter_context(
                without_providers(change.name) if isinstance(change, Provider) else patch.object(*change)
            )
        yield


def without(name: str, options: Mapping[str, Any], changes: Sequence[Change]) -> Solver:
    """A solver with some options of eqsat's, and with ``changes`` while it runs."""
    with changed(changes):
        solver = configured(name, options)

    def solve(examiner: Examiner) -> Answer:
        with changed(changes):
            return solver(examiner)

    return solve


def ablated(name: str, items: Sequence[Item], model: CostModel, progress: Progress) -> list[Row]:
    """The rows of a table: each case that no budget stops with all parts, answered without each part."""
    parts = TABLES[name]
    # each compiles its rules
    started = ((part, without(part, *how)) for part, how in parts.items())
    solvers = dict(steps(progress, "starting", len(parts), 0, started))
    rows = []
    for item in steps(progress, TITLES[name], len(items), 0, items):
        [whole] = compare([item], {NOTHING: solvers[NOTHING]}, True, model, repeats=0)
        if "error" not in whole["answers"][NOTHING]:
            rows += compare([item], solvers, True, model, repeats=0)
    return rows


def idle(rows: Sequence[Row]) -> list[str]:
    """The parts without which all answers are the same."""

    def said(row: Row, name: str) -> object:
        answer = row["answers"][name]
        return answer["out"], answer.get("lets")

    names = list(rows[0]["answers"])[1:]
    return [name for name in names if all(said(row, name) == said(row, NOTHING) for row in rows)]


def finished(name: str, rows: Sequence[Row]) -> list[Row]:
    """The cases of a table that no budget stopped, with and without each part; another engine may have been stopped."""
    engine = TABLES[name][NOTHING][0]
    parts = [part for part, (options, _) in TABLES[name].items() if options == engine]
    return [row for row in rows if not any("error" in row["answers"][part] for part in parts)]


def section(name: str, found: Sequence[Row], cases: int) -> str:
    """One table over the rows found for so many cases, with its title and what it shows of parts that change nothing.

    Raises ``ValueError`` if a budget stopped every case.
    """
    rows = finished(name, found)
    if not rows:
        raise ValueError(f"the budget stopped every case of {TITLES[name].lower()}: give smaller ones")
    times = [row["answers"][NOTHING]["ms"] for row in rows]
    cost = standing(rows, NOTHING, NOTHING).cost
    lines: list[list[object]] = []
    for part in rows[0]["answers"]:
        line = standing(rows, part, NOTHING)
        ratios = [f"{ratio:.2f}" for ratio in (line.median, line.total)]
        counts = [line.wins or "", line.losses or "", *ratios, standing(found, part, NOTHING).failed or ""]
        change = f"{(line.cost - cost) / max(cost, 1):+.2%}" if line.cost != cost else ""
        lines.append([part, line.divisions, line.cost, change, *counts])
    head = ["without", "div+mod", "cost", "change", "higher on", "lower on", "median", "total", "unfinished"]
    parts = [
        f"### {TITLES[name]}",
        table(head, lines),
        f"With all parts: {median(times):.1f} ms in the median, {sum(times) / 1000:.1f} s in all.",
    ]
    if len(rows) < cases:
        counts = f"{cases - len(found)} with all parts, {len(found) - len(rows)} without some part"
        parts.append(f"Left out, since a budget stopped them: {counts}.")
    if unchanged := idle(rows):
        parts.append(f"No answer changes without: {', '.join(unchanged)}.")
    return "\n\n".join(parts)


def report(found: Mapping[str, Sequence[Row]], cases: int, command: str) -> str:
    """All tables as Markdown."""
    run = Run({"settings": {"gates": True}, "machine": machine(), "missing": {}}, next(iter(found.values())), command)
    parts = [what(run), f"    {command}", LEGEND, *[section(name, rows, cases) for name, rows in found.items()]]
    if found.keys() == TABLES.keys():
        unchanged = [idle(finished(name, rows)) for name, rows in found.items()]
        nowhere = [family for family in FAMILY if all(family in names for names in unchanged)]
        parts.append(f"Families of rules that change no answer in either table: {', '.join(nowhere) or 'none'}.")
    return "\n\n".join(parts) + "\n"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("corpora", nargs="*", type=Path, default=CORPORA, help="files of cases (default: all of the checkout)")
    add("-o", "--output", type=Path, help="write the Markdown here too")
    add("--tables", default=",".join(TABLES), help=f"comma-separated (default: {','.join(TABLES)})")
    add("--cost", default="latency", help="the cost model: a name, or a file of eqsat calibrate")
    add("--limit", type=int, help="a random sample of N cases")
    add("--seed", type=int, default=0, help="for samples")
    given = parser.parse_args()
    given.tables = given.tables.split(",")
    if unknown := [name for name in given.tables if name not in TABLES]:
        parser.error(f"no table is called {unknown[0]!r}: choose from {', '.join(TABLES)}")
    if given.limit is not None and given.limit < 1:
        parser.error(f"--limit {given.limit} leaves no case: give 1 or more")
    return given


def main(given: argparse.Namespace) -> bool:
    """Measure and write the tables; whether all answers are right."""
    items = read_corpora(given.corpora, given.limit, given.seed, KINDS)
    model = model_of(given.cost)
    with progress_bars() as progress:
        found = {name: ablated(name, items, model, progress) for name in given.tables}
    text = report(found, len(items), shlex.join(["python", "benchmarks/ablation.py", *sys.argv[1:]]))
    print(text, end="")
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    wrong = [
        f"{row['id']}, without {name}"
        for rows in found.values()
        for row in rows
        for name, answer in row["answers"].items()
        if "wrong" in answer
    ]
    if wrong:
        print("wrong answers:", "; ".join(wrong), file=sys.stderr)
    return not wrong


if __name__ == "__main__":
    try:
        sys.exit(not main(parse()))
    except (ValueError, OSError, CompileError) as error:
        sys.exit(f"ablation.py: {one_line(error)}")
