"""Corpora: many cases in a file, one JSON object a line, optimised one by one into one row of output each.

What a case holds is said in :mod:`eqsat.cli.cases`. A row is ``{"id", "out", "cost_before", "cost", "ms", "stop",
"nodes", "checked"}``, with ``"lets"`` where subterms are shared, ``"bound"`` from exact extraction and ``"proof"``
where one was asked for and points were too many (what decided, or why nothing did), or ``{"id", "error"}``; kinds that
are no list of expressions have rows of their own (:mod:`eqsat.cli.kinds`). Whatever is wrong with one case becomes its
row; the others go on. Rows that were written before are those of an earlier release, with which new ones are compared,
or those of a run that was ended, which goes on behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eqsat.cli.cases import Case, Id, Record, case_of, id_of, kind_of, load, one_line, reason
from eqsat.cli.settings import Row, Settings
from eqsat.lang.text import to_program
from eqsat.optimizer.front import optimize

if TYPE_CHECKING:
    from eqsat.optimizer.result import Result
    from eqsat.prove.verify import Check


def run_line(line: str | bytes, number: int, settings: Settings) -> Row:
    """The row for line ``number`` of a corpus; whatever goes wrong becomes an error row."""
    try:
        return run_record(load(line), f"line {number}", settings)
    except MemoryError:
        return {"id": id_of_line(line, number), "error": "out of memory: give --memory more, or a smaller input"}
    except Exception as error:
        return {"id": id_of_line(line, number), "error": reason(error)}


def numbered_cases(lines: Iterable[str | bytes]) -> list[tuple[int, str | bytes]]:
    """The lines of a corpus that are not blank, each with its number."""
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def id_of_line(line: str | bytes, number: int) -> Id:
    """The id of the row of line ``number``."""
    name = f"line {number}"
    try:
        return id_of(load(line), name)
    except ValueError:
        return name


def run_record(record: Record, name: str, settings: Settings) -> Row:
    """Answer one case, given as a JSON object; ``name`` is its id if it has none.

    Raises ``ValueError`` if it is no case, cannot be optimised, or the result fails its check.
    """
    from eqsat.cli.kinds import ANSWERS

    answer = ANSWERS.get(kind_of(record))
    if answer is None:
        return run_case(case_of(record, name), settings)
    return {"id": id_of(record, name), **answer(record, settings)}


def run_case(case: Case, settings: Settings) -> Row:
    """Optimise and check one case.

    Raises ``ValueError`` if the case cannot be optimised, or the result fails its check.
    """
    gates = case.gates if settings.gates else ()
    result = optimize(case.exprs, gates=gates, constraints=case.constraints, **settings.optimizing_roots)
    check = result.check(**settings.checking)
    if not check.equal:
        raise ValueError(f"the result is wrong at {check.counterexample}: {one_line(to_program(result.exprs)[1])}")
    return {"id": case.id, **record(result, check, case.variables)}


def record(result: Result, check: Check, taken: Iterable[str]) -> Row:
    """What a row says of a result; the names of its shared subterms are none of ``taken``."""
    lets, out = to_program(result.exprs, taken)
    return {
        "out": out,
        **({"lets": [list(pair) for pair in lets]} if lets else {}),
        "cost_before": result.cost_before,
        "cost": result.cost,
        **({} if result.bound is None else {"bound": result.bound}),
        "ms": round(result.milliseconds, 3),
        "stop": result.stop,
        "nodes": result.nodes,
        **check.row,
    }


class Comparison:
    """Rows beside those of an earlier release, by their ids."""

    def __init__(self, path: Path) -> None:
        rows = [load(line) for line in path.read_bytes().split(b"\n") if line.strip()]
        if not any("cost" in row or "error" in row for row in rows):
            raise click.UsageError(f"{path} has no rows of 'eqsat corpus', which have a cost: give what -o wrote")
        self.path, self.before = path, {str(row.get("id")): row for row in rows}
        self.worse: list[str] = []
        self.costs = [0, 0]
        self.less = self.compared = 0

    def add(self, row: Row) -> None:
        """Compare one more row."""
        old = self.before.get(str(row["id"]))
        if old is None or "error" in old:
            return
        self.compared += 1
        if "error" in row:
            self.worse.append(f"{row['id']}: {one_line(row['error'])}")
        elif "cost" in row and "cost" in old:
            self.costs = [self.costs[0] + old["cost"], self.costs[1] + row["cost"]]
            self.less += row["cost"] < old["cost"]
            if row["cost"] > old["cost"]:
                self.worse.append(f"{row['id']}: cost {old['cost']} -> {row['cost']}")

    def say(self) -> None:
        """Say what is worse, and the sums."""
        for line in self.worse:
            click.echo(f"# worse: {line}", err=True)
        count, (old, new) = len(self.worse), self.costs
        click.echo(
            f"# beside {self.path}: {self.compared} rows, {count} worse, {self.less} better, cost {old} -> {new}",
            err=True,
        )


def rows_kept(output: Path | None, lines: Sequence[str | bytes]) -> list[Row]:
    """The rows that an earlier run over ``lines`` wrote whole; what it was writing when it ended is cut off."""
    if output is None:
        raise click.UsageError("--resume goes on with a file: name it by -o")
    if not output.exists():
        return []
    with output.open("rb+") as stream:
        written = stream.read()
        whole = written[: written.rfind(b"\n") + 1]
        found: list[Row] = []
        cases = numbered_cases(lines)
        for at, written_row in enumerate(whole.splitlines()):
            try:
                found.append(load(written_row))
            except ValueError:
                raise click.UsageError(f"{output}: row {at + 1} is none of a corpus: give -o another file") from None
            if at >= len(cases) or found[at].get("id") != id_of_line(*cases[at][::-1]):
                raise click.UsageError(f"{output}: row {at + 1} is of no such case of the input: give -o another file")
        stream.truncate(len(whole))
    return found
