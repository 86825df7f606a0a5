"""Rows of ``eqsat corpus`` that were written before: those of an earlier release, and those of a run that was ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from eqsat.cli.cases import load, one_line
from eqsat.cli.corpus import id_of_line
from eqsat.cli.settings import Row


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
        cases = [(line, number) for number, line in enumerate(lines, start=1) if line.strip()]
        for at, written_row in enumerate(whole.splitlines()):
            try:
                found.append(load(written_row))
            except ValueError:
                raise click.UsageError(f"{output}: row {at + 1} is none of a corpus: give -o another file") from None
            if at >= len(cases) or found[at].get("id") != id_of_line(*cases[at]):
                raise click.UsageError(f"{output}: row {at + 1} is of no such case of the input: give -o another file")
        stream.truncate(len(whole))
    return found
