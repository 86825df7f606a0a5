"""The lines of ``docs/requirements.toml``, what implements each, and the table of both.

python tests/helpers/requirements.py    # writes docs/requirements.md
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from eqsat.rules import DEFAULT, REDUCE

DOCS = Path(__file__).parents[2] / "docs"
TABLE = DOCS / "requirements.md"

HEAD = """\
# Requirements, and what implements them

This page says what implements each line of the published treatments of index arithmetic, with an example or a test.
Made by `python tests/helpers/requirements.py` from `requirements.toml` and the rules; the tests run every example,
through the theory and through the rules alone, and look up every name. A line that starts with A is from
[Morok](https://github.com/npatsakula/morok)'s and [tinygrad](https://github.com/tinygrad/tinygrad)'s index arithmetic,
B from their ranges and reductions, C from tinygrad's views and loops, D from
[XLA's indexing analysis](https://openxla.org/xla/indexing), E corrects one of them.
"""


@dataclass(frozen=True)
class Example:
    """One input for ``optimize`` (a text or several), and the output; of a near miss what must not come out."""

    given: str | list[str]
    ranges: dict[str, tuple[int, int]]
    output: str | list[str]
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """One requirement: see the head of ``docs/requirements.toml``."""

    name: str
    text: str
    section: str | None
    by: list[str]
    examples: list[Example]
    near: list[Example]
    tests: list[str]

    @property
    def rules(self) -> list[str]:
        """The rules that name the line as their source."""
        return [rule.name for rule in DEFAULT if self.name in rule.source.split()]

    @property
    def laws(self) -> list[str]:
        """The rules about reductions that name the line as their source."""
        return [rule.name for rule in REDUCE if self.name in rule.source.split()]


def read_lines() -> list[Line]:
    """All lines, in order."""
    data = tomllib.loads((DOCS / "requirements.toml").read_text())
    return [
        Line(
            name,
            row["text"],
            row.get("section"),
            row.get("by", []),
            [Example(*example) for example in row.get("examples", [])],
            [Example(*example) for example in row.get("near", [])],
            row.get("tests", []),
        )
        for name, row in data.items()
    ]


def _code(texts: list[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _example(line: Line) -> str:
    if not line.examples and line.tests:
        return _code(line.tests[:1])
    shown = (line.examples or line.near)[0]
    given, output = ["; ".join(part) if isinstance(part, list) else part for part in (shown.given, shown.output)]
    return f"`{given}` is {'' if line.examples else 'not '}`{output}`"


def table() -> str:
    """The text of ``docs/requirements.md``."""
    rows = [HEAD]
    for line in read_lines():
        if line.section:
            rows += [
                f"\n## {line.section}\n",
                "| line | what it asks for | implemented by | example or test |",
                "|---|---|---|---|",
            ]
        rows.append(f"| {line.name} | {line.text} | {_code([*line.rules, *line.laws, *line.by])} | {_example(line)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table())
