"""Experiments with cost models: does a model predict what compiled code takes, and what does extraction leave?

Every case of a corpus is optimised once, by default cost model and extractor; each model and each extractor then
chooses from that e-graph (:meth:`eqsat.optimizer.result.Result.extract`), so that answers differ by these alone,
whatever the order of the models. All answers are compiled, and their time is measured in turns. A :class:`Row` is one
answer with what each model predicts of it; rows go to a CSV file, from which :func:`spearman` and the plots follow.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsat.cli.cases import Case, LeaveOut, Record, case_of, kind_of, load, reason
from eqsat.codegen.expressions import function
from eqsat.codegen.runtime import CompiledExprs, compile_many
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, term_count, topological
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result

#: What answers are called that have not been optimised.
INPUT = "input"

#: Programs compiled together, and the most terms that one has: the C compiler's time grows faster than their size.
BATCH, MOST_TERMS = 50, 2000

#: A step of an experiment has been done.
Advance = Callable[[], object]


@dataclass
class Row:
    """One answer to one case.

    Attributes
    ----------
    case, model, extract : str
        What it answers, and how it was found; the input itself has the model and the extractor ``"input"``.
    cost : int
        Under its own model; 0 for the input.
    gap : float or None
        Of exact extraction; see :attr:`eqsat.optimizer.result.Result.gap`.
    milliseconds, extraction_milliseconds : float
        Of choosing from the e-graph with all checks of the answer, and of extraction alone; of the input, those of the
        optimisation that made the e-graph.
    nanoseconds : float
        To evaluate all roots once.
    predicted : dict
        For each model what it says that the evaluation costs, loads and stores included.
    """

    case: str
    model: str
    extract: str
    roots: tuple[Expr, ...]
    variables: tuple[Expr, ...]
    cost: int = 0
    gap: float | None = None
    milliseconds: float = 0.0
    extraction_milliseconds: float = 0.0
    nanoseconds: float = 0.0
    predicted: dict[str, int] | None = None


def chosen_cases(lines: Sequence[str | bytes], limit: int | None, seed: int, leave_out: LeaveOut) -> list[Case]:
    """The plain cases of a corpus that are not too large to compile, or ``limit`` of them chosen by ``seed``.

    Raises
    ------
    ValueError
        If no case is left.
    """
    records: list[tuple[int, Record]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            with _or_left_out(f"line {number}", leave_out):
                records.append((number, _plain(load(line))))
    random.Random(seed).shuffle(records)
    chosen: list[Case] = []
    for number, record in records:
        if limit is not None and len(chosen) == limit:
            break
        with _or_left_out(f"line {number}", leave_out):
            chosen.append(_of_bounded_size(case_of(record, f"line {number}")))
    if not chosen:
        raise ValueError(f"the corpus has no plain case of up to {MOST_TERMS} terms to measure")
    return chosen


@contextmanager
def _or_left_out(name: str, leave_out: LeaveOut) -> Iterator[None]:
    """Whatever goes wrong with the case of that name leaves it out."""
    try:
        yield
    except Exception as error:
        leave_out(f"{name}: {reason(error)}")


def _plain(record: Record) -> Record:
    if kind_of(record) != "plain":
        raise ValueError(f"a case of kind {kind_of(record)!r}: only plain ones are measured")
    return record


def _of_bounded_size(case: Case) -> Case:
    # a variable that no root reads is a parameter, too
    terms = term_count([*case.exprs, *case.variables.values()])
    if terms > MOST_TERMS:
        raise ValueError(f"{terms} terms are too many to compile: up to {MOST_TERMS} are")
    return case


def predict(roots: Sequence[Expr], model: CostModel) -> int:
    """What ``model`` says that one evaluation of ``roots`` costs: its nodes, a load per variable, a store per root.

    >>> from eqsat.lang.expr import var
    >>> from eqsat.extract import OpCount
    >>> predict([var("i", 0, 9) + var("j", 0, 9)], OpCount())
    4
    """
    loads = [(t.vmin, t.vmax) for t in topological(roots) if t.op == "var"]
    stores = [(root.vmin, root.vmax) for root in roots]
    return (
        cost_of(roots, model)
        + sum(model.price("load", [bounds], bounds) for bounds in loads)
        + sum(model.price("store", [bounds], bounds) for bounds in stores)
    )


def answers(
    cases: Iterable[Case],
    models: Mapping[str, CostModel],
    extractors: Sequence[str],
    advance: Advance,
    leave_out: LeaveOut,
) -> list[Row]:
    """Each case as it is, and the answer by each model and extractor; ``advance`` is called after each case.

    Raises
    ------
    ValueError
        If no case is left.
    """
    rows: list[Row] = []
    for case in cases:
        with _or_left_out(str(case.id), leave_out):
            rows += _answers(case, models, extractors)
        advance()
    if not rows:
        raise ValueError("no case is left to measure")
    return rows


def _answers(case: Case, models: Mapping[str, CostModel], extractors: Sequence[str]) -> list[Row]:
    variables = tuple(sorted(case.variables.values(), key=str))
    optimised = optimize(case.exprs, gates=case.gates, constraints=case.constraints)
    rows = [Row(str(case.id), INPUT, INPUT, tuple(case.exprs), variables)]
    for (name, model), extract in product(models.items(), extractors):
        found = optimised.extract(model, extract)
        rows.append(Row(str(case.id), name, extract, found.exprs, variables, found.cost, found.gap))
        _add_times(rows[-1], found)
    _add_times(rows[0], optimised)
    for row in rows:
        row.predicted = {name: predict(row.roots, model) for name, model in models.items()}
        # what cannot be lowered is known before the others are compiled with it
        function(row.roots, "probe", row.variables)
    return rows


def _add_times(row: Row, result: Result) -> None:
    row.milliseconds, row.extraction_milliseconds = result.milliseconds, result.extraction_milliseconds


def times(rows: Iterable[Row]) -> tuple[float, float, int]:
    """Seconds of the optimisations and of choosing from their e-graphs, and how often that was done."""
    rows = [*rows]
    chosen = [row.milliseconds for row in rows if row.extract != INPUT]
    return sum(row.milliseconds for row in rows if row.extract == INPUT) / 1000, sum(chosen) / 1000, len(chosen)


def measure(rows: Sequence[Row], repeats: int, seed: int, advance: Advance) -> None:
    """Compile every answer once and fill in its time: the median of ``repeats`` turns, each in another order."""
    programs = list(dict.fromkeys((row.roots, row.variables) for row in rows))
    kernels: list[CompiledExprs] = []
    for start in range(0, len(programs), BATCH):
        batch = programs[start : start + BATCH]
        kernels += compile_many([roots for roots, _ in batch], [variables for _, variables in batch])
    times: list[list[float]] = [[] for _ in programs]
    order = random.Random(seed)
    for _ in range(repeats):
        for index in order.sample(range(len(kernels)), len(kernels)):
            times[index].append(kernels[index].measure(1))
        advance()
    nanoseconds = {program: median(found) for program, found in zip(programs, times, strict=True)}
    for row in rows:
        row.nanoseconds = nanoseconds[row.roots, row.variables]


def spearman(x: ArrayLike, y: ArrayLike) -> float | None:
    """The rank correlation of two samples: 1 if they have the same order; equal values share their mean rank.

    ``None`` if one of them has no two different values, which have no order.

    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 6)
    0.8
    >>> spearman([1, 1], [10, 20])
    """
    if np.unique(x).size < 2 or np.unique(y).size < 2:
        return None
    return float(np.corrcoef(_ranks(np.asarray(x)), _ranks(np.asarray(y)))[0, 1])


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return float(np.exp(np.mean(np.log(ratios))))


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each model: the rank correlation of what it predicts with time, and what its answers take.

    Correlation is over all rows (``"spearman"``), and over answers alone (``"of answers"``), which differ less, or
    ``None`` where nothing differs. Time is that of the model's answers by the first extractor over that of the inputs,
    the geometric mean over all cases.
    """
    inputs = {row.case: row for row in rows if row.extract == INPUT}
    found = [row for row in rows if row.extract != INPUT]
    lines: list[dict[str, Any]] = []
    for model in dict.fromkeys(row.model for row in found):
        first = next(row.extract for row in found if row.model == model)
        own = [row for row in found if (row.model, row.extract) == (model, first)]
        lines.append(
            {
                "model": model,
                "cases": len(own),
                "spearman": _correlation(rows, model),
                "of answers": _correlation(found, model),
                "time": round(geometric_mean([row.nanoseconds / inputs[row.case].nanoseconds for row in own]), 3),
            }
        )
    return lines


def _correlation(rows: Iterable[Row], model: str) -> float | None:
    # one answer may be several models': it is one point
    points = {(row.roots, row.variables): (row.predicted or {})[model] for row in rows}
    times = {(row.roots, row.variables): row.nanoseconds for row in rows}
    found = spearman(list(points.values()), [times[key] for key in points])
    return None if found is None else round(found, 3)


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """One line per row; a column ``predicted MODEL`` for each model."""
    models = [*dict.fromkeys(row.model for row in rows if row.model != INPUT)]
    columns = ["case", "model", "extract", "cost", "gap", "milliseconds", "extraction_milliseconds", "nanoseconds"]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*columns, *[f"predicted {model}" for model in models]])
        for row in rows:
            values = [round(v, 4) if isinstance(v, float) else v for v in (getattr(row, column) for column in columns)]
            writer.writerow([*values, *[(row.predicted or {})[model] for model in models]])


def plot(rows: Sequence[Row], directory: Path) -> list[Path]:
    """Draw what the rows hold: prediction against time, cost against extraction time, and gaps that are not 0.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed; the message says how to install it.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError("plots need matplotlib: pip install 'eqsat[plots]'") from None
    found = [row for row in rows if row.extract != INPUT]
    models = [*dict.fromkeys(row.model for row in found)]
    extractors = [*dict.fromkeys(row.extract for row in found)]

    predicted = Figure(figsize=(3.2 * len(models), 3.2), layout="constrained")
    for axes, model in zip(np.atleast_1d(predicted.subplots(1, len(models), sharey=True)), models, strict=True):
        for name, part in (("inputs", [row for row in rows if row.extract == INPUT]), ("answers", found)):
            axes.scatter([(r.predicted or {})[model] for r in part], [r.nanoseconds for r in part], s=4, label=name)
        axes.set(xscale="log", yscale="log", xlabel=f"predicted by {Path(model).stem}")
        correlation = _correlation(rows, model)
        axes.set_title("" if correlation is None else f"rank correlation {correlation:.3f}", fontsize=9)
    predicted.axes[0].set_ylabel("measured ns per evaluation")
    predicted.axes[0].legend()

    effort = Figure(figsize=(6.4, 3.2), layout="constrained")
    cost_axes, gap_axes = effort.subplots(1, 2)
    least = {(r.case, r.model): min(o.cost for o in found if (o.case, o.model) == (r.case, r.model)) for r in found}
    for extract in extractors:
        part = [row for row in found if row.extract == extract and least[row.case, row.model]]
        excess = [row.cost / least[row.case, row.model] for row in part]
        cost_axes.scatter([row.extraction_milliseconds for row in part], excess, s=4, label=extract)
    # an axis without points has no logarithms
    scale = "log" if any(least.values()) else "linear"
    cost_axes.set(xscale=scale, xlabel="extraction, ms", ylabel="cost, times the cheapest found")
    cost_axes.legend()
    gaps = sorted(row.gap for row in found if row.gap is not None)
    gap_axes.plot(np.linspace(0, 100, len(gaps)), [100 * gap for gap in gaps])
    gap_axes.set(xlabel="% of answers", ylabel="optimality gap of exact extraction, %")

    paths = [directory / "prediction.png", directory / "extraction.png"]
    for figure, path in zip((predicted, effort), paths, strict=True):
        figure.savefig(path, dpi=90)
    return paths
