"""One run over corpora: every case through every solver, a row per case, resumed where it was interrupted.

A run is a file of JSON lines. The first is its head: ``{"settings", "machine", "versions", "missing"}``. Each other is
``{"corpus", "line", "id", "families", "nodes", "before": {"divmod", "cost", "ns"}, "answers": {solver: answer}}``; an
answer is ``{"out", "lets", "ms", "divmod", "cost", "mode", "ns", "wrong", "error", "parts"}``, of which the last four
may be missing. ``ns`` is the time to evaluate all roots once, compiled; equal programs are measured once.
"""

from __future__ import annotations

import json
import os
import platform
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from peers.judge import Answer, Examiner

import eqsat.extract
import eqsat.rules
from comparison.solvers import EQSAT, OURS, Solver
from comparison.summary import is_slower
from eqsat.cli.calibrate import processor
from eqsat.cli.cases import Case, case_of
from eqsat.cli.experiment import MOST_TERMS, measure
from eqsat.cli.experiment import Row as Measurement
from eqsat.cli.records import Row, kind_of, load, numbered_lines
from eqsat.codegen.libraries import compiler_version
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import cost_of
from eqsat.lang.properties import division_count
from eqsat.lang.traversal import term_count

#: How the input itself is called beside the solvers.
INPUT = "input"


@dataclass(frozen=True)
class Item:
    """A case, where it is from (a corpus, and a line of it, from 1), and the families that it counts in."""

    corpus: str
    line: int
    families: tuple[str, ...]
    case: Case

    @property
    def key(self) -> tuple[str, int]:
        """What identifies it in a run."""
        return self.corpus, self.line


def key_of(row: Row) -> tuple[str, int]:
    """The key of the item that a row answers."""
    return row["corpus"], row["line"]


def read_corpora(
    paths: Sequence[Path], limit: int | None, seed: int, kinds: Collection[str] = ("plain",)
) -> list[Item]:
    """The cases of some kinds in corpora, or ``limit`` of all of them, chosen by ``seed``.

    A case's families are its corpus and its tags. Peers are asked plain cases only.

    Raises ``ValueError`` if a line is no case, or no case is left.
    """
    items = []
    for path in paths:
        for number, line in numbered_lines(path.read_text(encoding="utf-8").splitlines()):
            try:
                record = load(line)
                if kind_of(record) in kinds:
                    case = case_of(record, f"line {number}")
                    items.append(Item(path.stem, number, tuple(dict.fromkeys([path.stem, *case.tags])), case))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    if not items:
        raise ValueError(f"no {' or '.join(kinds)} case in {', '.join(map(str, paths))}")
    if limit is not None and limit < len(items):
        chosen = set(random.Random(seed).sample(range(len(items)), limit))
        items = [item for place, item in enumerate(items) if place in chosen]
    return items


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, cores, Python, C compiler."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "compiler": compiler_version(),
    }


def sources() -> str:
    """A digest of eqsat's sources, without which a run would go on with the answers of others."""
    digest = blake2b(digest_size=8)
    for package in (eqsat, eqsat.rules, eqsat.extract):
        for path in sorted(Path(cast(str, package.__file__)).parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Log:
    """A file of a run: opened with the head of a run, it has the head and the rows that it held.

    Raises ``ValueError`` if the file holds a run with other settings or of other sources; the message says which
    differ.
    """

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        self.path = path
        # what was being written when the last run was ended is no row
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        lines = lines or [json.dumps(head)]
        self.head: Row = json.loads(lines[0])
        self.rows: list[Row] = [json.loads(line) for line in lines[1:]]
        then, now = self.head["settings"], head["settings"]
        if other := [key for key in now if then.get(key) != now[key]]:
            raise ValueError(f"{path} is a run with other settings ({', '.join(other)}): remove it, or use another -o")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def append(self, row: Row) -> None:
        """Add a row, at once also to the file."""
        self.rows.append(row)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def compare(
    items: Sequence[Item], solvers: Mapping[str, Solver], gates: bool, model: CostModel, repeats: int
) -> Iterator[Row]:
    """A row for each item, as it comes; all solve a case before the next one begins, in an order of its own.

    Parameters
    ----------
    repeats : int
        How often compiled answers are measured; 0 for not at all.
    """
    for item in items:
        examiner = Examiner(item.case, gates, model)
        # what ran before a solver, and filled the caches of the processor, is chance
        turns = random.Random(item.case.id).sample(list(solvers), len(solvers))
        found = {name: solvers[name](examiner) for name in turns}
        nanoseconds = measured(item.case, found, repeats) if repeats else {}
        yield _row(item, {name: found[name] for name in solvers}, nanoseconds, model)


def measured(case: Case, answers: Mapping[str, Answer], repeats: int) -> dict[str, float]:
    """Nanoseconds of the input and of each answer that is not too large to compile in fair time.

    Of none if one of them needs more than 64 bits. Where a peer's answer seems to be faster than eqsat's, all are
    measured again, three times as often, which counts: the least of many times is often one that chance made short.
    """
    variables = tuple(sorted(case.variables.values(), key=str))
    programs = {INPUT: tuple(case.exprs)} | {name: tuple(answer.exprs) for name, answer in answers.items()}
    rows = [
        Measurement(case.id, name, name, roots, variables)
        for name, roots in programs.items()
        if term_count(roots) <= MOST_TERMS
    ]
    for turns in (repeats, 3 * repeats):
        try:
            measure(rows, turns, 0, lambda: None)
        except ValueError:
            return {}
        found = {row.model: row.nanoseconds for row in rows}
        ours = found.get(EQSAT, 0.0)
        if not any(is_slower(ours, found[name]) for name in found if name not in (INPUT, *OURS)):
            break
    return found


def _row(item: Item, answers: Mapping[str, Answer], nanoseconds: Mapping[str, float], model: CostModel) -> Row:
    case = item.case
    times = {name: {"ns": round(value, 3)} for name, value in nanoseconds.items()}
    return {
        "corpus": item.corpus,
        "line": item.line,
        "id": case.id,
        "families": list(item.families),
        "nodes": term_count(case.exprs),
        "before": {"divmod": division_count(case.exprs), "cost": cost_of(case.exprs, model), **times.get(INPUT, {})},
        "answers": {name: {**answer.row(case), **times.get(name, {})} for name, answer in answers.items()},
    }
