"""The corpora of the checkout, and terms from text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eqsat.cli.cases import Case, case_of
from eqsat.cli.records import kind_of
from eqsat.lang.expr import Expr, var
from eqsat.lang.text import parse

TESTS = Path(__file__).parents[1]
HAND, SEEDS, BITS, GATES, LAYOUTS, REDUCTIONS = [
    TESTS / "data" / f"{name}.jsonl" for name in ("hand", "seeds", "bits", "gates", "layouts", "reductions")
]
SAMPLE = TESTS.parent / "benchmarks" / "data" / "tinygrad_sample.jsonl"

Ranges = dict[str, tuple[int, int]]


def records(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The cases of these kinds in a corpus, as they are written."""
    found = map(json.loads, path.read_text().splitlines())
    return [record for record in found if kind_of(record) in kinds]


def cases(path: Path, kind: str = "plain") -> list[Case]:
    """The cases of one kind in a corpus, read."""
    return [case_of(record) for record in records(path, kind)]


def read(text: str, ranges: Ranges) -> Expr:
    """The term that ``text`` writes over variables with these inclusive ranges."""
    return parse(text, {name: var(name, *bounds) for name, bounds in ranges.items()})
