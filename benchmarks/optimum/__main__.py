"""Measure how far eqsat's answers are from the least cost, on a bundled sample, and write a report.

``make optimum``, or ``python -m optimum [--each N] [--costs latency,opcount] [-o FILE.md] [--rows FILE.jsonl]`` in
``benchmarks/``. A row of the file has the model, the case, eqsat's answer and the cheapest term found, as text.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time

from comparison.report import table

from eqsat.discover.search import search
from eqsat.extract.cost import COST_MODELS, OpCount
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from optimum.cases import EACH, Root, bundled

#: The models of ``--costs``: those that are shipped, and one of a machine without a divider.
MODELS = COST_MODELS | {
    "divisions": OpCount(weights={"floordiv": 40, "mod": 44, "tdiv": 40, "tmod": 44, "mul": 4}, other=2)
}
#: How many pairs the report shows of each family.
PAIRS = 6


@dataclass(frozen=True)
class Row:
    """What was found of one root."""

    model: str
    name: str
    source: str
    family: str
    ranges: str
    root: str
    answer: str
    cost: int
    found: str
    least_known: int
    outcome: str
    optimize_seconds: float
    search_seconds: float


def measured(root: Root, model_name: str) -> Row:
    """The answer, and the cheapest term found."""
    model = MODELS[model_name]
    started = process_time()
    result = optimize(root.term, cost=model)
    optimized = process_time()
    found = search(root.term, result.expr, model)
    ranges = ", ".join(f"{v.value} in [{v.vmin}, {v.vmax}]" for v in variables([root.term]))
    outcome = "better found" if found.cost < result.cost else "proved least" if found.least else "open"
    seconds = optimized - started, process_time() - optimized
    texts = str(root.term), str(result.expr), result.cost, str(found.term), found.cost
    return Row(
        model_name, root.name, root.source, family(root), ranges, *texts, outcome, *[round(s, 3) for s in seconds]
    )


def family(root: Root) -> str:
    """What a root is about: the first of these that it has."""
    operators = {t.op for t in topological([root.term])}
    families = {
        "conditions": root.term.is_bool,
        "selections": operators & {"where", "lt", "le", "eq", "ne"},
        "minima and maxima": operators & {"min", "max"},
        "bits": operators & {"bitand", "bitor", "bitxor", "shl", "shr"},
        "quotients and remainders": operators & {"floordiv", "mod", "tdiv", "tmod"},
    }
    return next((name for name, has in families.items() if has), "sums and products")


def report(every: Sequence[Row]) -> str:
    """The report in Markdown: of each model how far answers are, of the first in detail."""
    models = list(dict.fromkeys(row.model for row in every))
    rows = [row for row in every if row.model == models[0]]
    lines = [
        "# How far answers are from the least cost",
        "",
        "This page tells how much less than an answer of eqsat's an equal term can cost, as far as enumeration finds.",
        "",
        f"Made by `make optimum`: {len(rows)} single roots of up to three variables, from the bundled kernels, the",
        "suites of the tests, and random terms. Terms are enumerated by increasing cost under a model",
        "(`eqsat/discover/search.py`). Each that costs less than the answer is compared with the root on the whole",
        "domain. *Better found*: a term that costs less is equal. *Proved least*: all terms that cost less were",
        "enumerated, over the literals of the case and their neighbours, and none is equal; a shared subterm counts",
        "each time. *Open*: none was found, but not all were enumerated. *Cost over it* is over the least known.",
        "",
    ]
    if len(models) > 1:
        lines += [
            _table("model", {f"`{model}`": [row for row in every if row.model == model] for model in models}),
            "",
            "`divisions` is a machine without a divider: a division costs 40, a remainder 44, a product 4, all else 2.",
            "",
            f"By `{models[0]}`, by where the roots come from and by what they are about:",
            "",
        ]
    for key in ("source", "family"):
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            groups[getattr(row, key)].append(row)
        lines += [_table(key, {**dict(sorted(groups.items())), "all": rows}), ""]
    slow = [row.search_seconds for row in rows]
    lines += [f"The search takes {median(slow):.1f} s of processor time in the median, {max(slow):.0f} at most.", ""]
    lines += [
        "## Pairs",
        "",
        f"Answers for which an equal term was found that costs less, up to {PAIRS} of a family:",
        "",
    ]
    for name in sorted({row.family for row in rows}):
        worst = sorted(
            (r for r in rows if r.family == name and r.cost > r.least_known),
            key=lambda r: (r.least_known - r.cost, len(r.answer)),
        )
        if worst:
            head = ["answer", "cost", "found", "cost", "ranges"]
            pairs = [[f"`{r.answer}`", r.cost, f"`{r.found}`", r.least_known, r.ranges] for r in worst[:PAIRS]]
            lines += [f"### {name.capitalize()}", "", table(head, pairs, words=len(head)), ""]
    return "\n".join(lines)


def _table(title: str, groups: Mapping[str, Sequence[Row]]) -> str:
    """How far the answers of each group are from the least cost."""
    outcomes = ("better found", "proved least", "open")
    head = [title, "roots", "cost", "least known", "cost over it", *outcomes]
    lines: list[list[object]] = []
    for name, rows in groups.items():
        cost, least = sum(r.cost for r in rows), sum(r.least_known for r in rows)
        counts = [sum(r.outcome == outcome for r in rows) for outcome in outcomes]
        # where nothing costs anything the answers are the least
        lines.append([name, len(rows), cost, least, f"{max(1, cost) / max(1, least):.3f}", *counts])
    return table(head, lines, words=len(head))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=EACH, help="roots from each source (default: %(default)s)")
    parser.add_argument(
        "--costs", default="latency,opcount,divisions,codesize", help="comma-separated (default: %(default)s)"
    )
    parser.add_argument("-o", type=Path, help="where the report goes (default: standard output)")
    parser.add_argument("--rows", type=Path, help="where the rows go, one JSON object a line")
    options = parser.parse_args()
    models = options.costs.split(",")
    if unknown := [model for model in models if model not in MODELS]:
        parser.error(f"unknown cost model {unknown[0]!r}: use some of {', '.join(MODELS)}")
    rows = []
    with options.rows.open("w") if options.rows else open("/dev/null", "w") as file:
        for model, root in product(models, bundled(options.each)):
            rows.append(measured(root, model))
            print(json.dumps(asdict(rows[-1])), file=file, flush=True)
    text = report(rows)
    options.o.write_text(text) if options.o else print(text)


if __name__ == "__main__":
    main()
