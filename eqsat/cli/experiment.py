"""Experiments with cost models: does a model predict what compiled code takes, and what does extraction leave?

:func:`experiment` is the whole of it from Python, and ``eqsat experiment`` on the command line.
Every case of a corpus is optimised once, by default cost model and extractor; each model and each extractor then
chooses from that e-graph (:meth:`eqsat.optimizer.result.Result.extract`), so that answers differ by these alone,
whatever the order of the models. All answers are compiled, and their time is measured in turns. A :class:`Row` is one
answer with what each model predicts of it; an :class:`Experiment` has all rows, for its tables and plots.
"""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from itertools import batched, product
from pathlib import Path
from statistics import StatisticsError, correlation, geometric_mean, median
from typing import Any, NamedTuple

import numpy as np

from eqsat.cli.cases import Case, LeaveOut, case, case_of, read_corpus
from eqsat.cli.files import write_whole
from eqsat.cli.records import Record, kind_of, load, numbered_lines, reason, refuse_long_costs
from eqsat.codegen.expressions import function
from eqsat.codegen.runtime import CompiledExprs, compile_many
from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import COST_MODELS, CostModel, PriceError, checked
from eqsat.lang.costs import cost_of, model_of
from eqsat.lang.display import Displayed, html_table
from eqsat.lang.expr import Expr
from eqsat.lang.text import to_program
from eqsat.lang.traversal import term_count, topological
from eqsat.lang.validation import refuse_below, shown
from eqsat.optimizer.front import DEFAULT_BUDGET, optimize, term_of, variables_of
from eqsat.optimizer.reextraction import EXTRACTORS
from eqsat.optimizer.result import Result

#: The model and the extractor of rows that are inputs.
INPUT = "input"

#: Programs compiled together, and the most terms that one has: the C compiler's time grows faster than their size.
BATCH, MOST_TERMS = 50, 2000

#: Called after each step of an experiment.
Advance = Callable[[], object]


@dataclass
class Row:
    """One answer to one case."""

    #: The name of its case, and what chose it; an input has the model and the extractor ``"input"``.
    case: str
    model: str
    extract: str
    roots: tuple[Expr, ...]
    variables: tuple[Expr, ...]
    #: What the answer and the input cost by the row's model; both 0 for an input.
    cost: int = 0
    cost_before: int = 0
    #: By exact extraction how far from the optimum it may be; see :attr:`eqsat.optimizer.result.Result.gap`.
    gap: float | None = None
    #: The time to choose the answer from the e-graph and check it, and that of extraction alone; for an input, those
    #: of the optimisation that made the e-graph.
    milliseconds: float = 0.0
    extraction_milliseconds: float = 0.0
    #: The time to evaluate all roots once; 0 if it was not measured.
    nanoseconds: float = 0.0
    #: What each model predicts that this costs, loads and stores included.
    predicted: dict[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The row as JSON and tables have it, with the answer as text and a key ``predicted MODEL`` for each model."""
        lets, out = to_program(self.roots)
        found = {column: getattr(self, column) for column in COLUMNS} | {"nanoseconds": self.nanoseconds or None}
        predicted = {f"predicted {model}": cost for model, cost in self.predicted.items()}
        return found | predicted | {"out": out, "lets": [list(pair) for pair in lets]}


#: What is written of each row, besides what models predict.
COLUMNS = (
    *("case", "model", "extract", "cost", "cost_before", "gap"),
    *("milliseconds", "extraction_milliseconds", "nanoseconds"),
)


class _Picture(NamedTuple):
    """How many panels a picture has side by side, what draws into them, and how wide each is in inches."""

    panels: int
    draw: Callable[[Any], None]
    width: float = 3.2


@dataclass(frozen=True)
class Experiment(Displayed):
    """What :func:`experiment` found.

    Attributes
    ----------
    rows : tuple of Row
        For each case the input, and the answer of each model and extractor, in order.
    left_out : tuple of str
        One line for each case that could not be read, optimised or measured, which says which and why.

    >>> from eqsat.cli.experiment import experiment
    >>> found = experiment(["x // n + x % n"], costs=["opcount"], x=(0, 99), n=(1, 9))
    >>> [(row.model, row.extract, row.cost) for row in found.rows]
    [('input', 'input', 0), ('opcount', 'dag', 3)]
    """

    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings with the same keys, as ``pandas.DataFrame`` takes them."""
        return [row.record() for row in self.rows]

    def summary(self) -> list[dict[str, Any]]:
        """For each model and extractor the number of cases, the cost of all inputs and of all answers, and their ratio.

        With times measured, also the rank correlation of what the model predicts with time, over all rows
        (``"spearman"``) and over answers alone (``"of answers"``), which differ less, or ``None`` if nothing differs;
        and the time of its answers by its first extractor over that of the inputs, the geometric mean over all cases.
        """
        found = []
        for (model, extract), rows in _answers_by(self.rows).items():
            before, after = sum(row.cost_before for row in rows), sum(row.cost for row in rows)
            ratio = round(after / before, 4) if before else None
            line = {"model": model, "extract": extract, "cases": len(rows), "before": before, "after": after}
            found.append(line | {"ratio": ratio} | (self._measured(model) if self.is_measured else {}))
        return found

    def _measured(self, model: str) -> dict[str, Any]:
        of_model = [(row, self.rows[place]) for place, row in _with_inputs(self.rows) if row.model == model]
        first = of_model[0][0].extract
        ratios = [row.nanoseconds / given.nanoseconds for row, given in of_model if row.extract == first]
        return {
            "spearman": _correlation(self.rows, model),
            "of answers": _correlation([row for row in self.rows if row.extract != INPUT], model),
            "time": round(geometric_mean(ratios), 3),
        }

    @property
    def is_measured(self) -> bool:
        """Whether the answers were compiled and measured."""
        return any(row.nanoseconds for row in self.rows)

    def _repr_html_(self) -> str:
        lines = self.summary()
        return html_table([*lines[0]], [[*line.values()] for line in lines])

    def to_csv(self, path: str | Path) -> None:
        """Write one line for each row, without the answers; a column ``predicted MODEL`` for each model."""
        models = [*dict.fromkeys(row.model for row in self.rows if row.model != INPUT)]
        table = StringIO()
        writer = csv.writer(table)
        writer.writerow([*COLUMNS, *[f"predicted {model}" for model in models]])
        for row in self.rows:
            values = [getattr(row, column) for column in COLUMNS] + [row.predicted[model] for model in models]
            writer.writerow([round(v, 4) if isinstance(v, float) else v for v in values])
        write_whole(Path(path), table.getvalue())

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`records` as a JSON list."""
        write_whole(Path(path), json.dumps(self.records(), indent=1))

    def plot(self, directory: str | Path) -> list[Path]:
        """Draw what the rows hold into a directory, each as a PNG (extra: plots); the paths of the pictures.

        The directory is made if there is none.
        ``prediction``: predictions against time, if that was measured. ``extraction``: cost against extraction time,
        and gaps. ``profile``: what answers cost over their inputs, case by case. ``pareto``, of several models: what
        the answers of each cost in all under the first and each other one, those on the front joined by a line.

        Raises ``ModuleNotFoundError`` if matplotlib is not installed; the message says how to install it.
        """
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError:
            raise ModuleNotFoundError("plots need matplotlib: pip install 'eqsat[plots]'") from None
        found = [row for row in self.rows if row.extract != INPUT]
        models = [*dict.fromkeys(row.model for row in found)]
        pictures: dict[str, _Picture] = {}
        if self.is_measured:
            pictures["prediction"] = _Picture(len(models), lambda panels: _predictions(panels, self.rows, models))
        pictures["extraction"] = _Picture(2, lambda panels: _efforts(panels, self.rows))
        pictures["profile"] = _Picture(1, lambda panels: _profiles(panels, found), width=6.4)
        if len(models) > 1:
            pictures["pareto"] = _Picture(len(models) - 1, lambda panels: _fronts(panels, found, models))
        paths = {name: Path(directory, f"{name}.png") for name in pictures}
        Path(directory).mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            figure = Figure(figsize=(picture.width * picture.panels, 3.2), layout="constrained")
            picture.draw(figure.subplots(1, picture.panels, squeeze=False, sharey=name == "prediction")[0])
            figure.savefig(paths[name], dpi=90)
        return [*paths.values()]


def experiment(
    corpus: str | Path | Iterable[Case | Expr | str],
    costs: Mapping[str, CostModel | str] | Iterable[str] | str = tuple(COST_MODELS),
    *,
    extract: Iterable[str] | str = ("dag",),
    rules: Sequence[Rule] | None = None,
    budget: Budget = DEFAULT_BUDGET,
    repeats: int = 0,
    seed: int = 0,
    **ranges: tuple[int | None, int | None] | range,
) -> Experiment:
    """Optimise each case once, and let every cost model and extractor choose from its e-graph.

    Parameters
    ----------
    corpus : str, Path, or iterable of Case, Expr or str
        A file of cases, the cases of one (:func:`eqsat.cli.cases.read_corpus`), or expressions, each a case.
    costs : mapping from str to CostModel or str, iterable of str, or str
        The models by name, or names of models as :func:`eqsat.extract.cost_model` takes them.
    extract : iterable of {"tree", "dag", "exact"}, or one
        The extractors.
    rules, budget
        As for :func:`eqsat.optimize`.
    repeats : int
        How often each answer is measured, compiled; medians count. With 0 nothing is compiled.
    seed : int
        For the order of measurements.
    **ranges : (int or None, int or None), or range
        The variables of expressions that are text.

    Raises
    ------
    ValueError
        If there is no such model or extractor, or none at all, a model gives no price, there are less than 0 repeats,
        or no case is left.
    TypeError
        If an argument is of another type.

    >>> found = experiment("tests/data/hand.jsonl", {"latency": "latency", "mine": "opcount"})
    >>> [(line["model"], line["cases"], line["after"] < line["before"]) for line in found.summary()]
    [('latency', 83, True), ('mine', 83, True)]
    """
    if not isinstance(corpus, str | Path | Iterable):
        raise TypeError(f"the corpus is given as {shown(corpus)}: give a file, or a list of expressions or cases")
    of_models = "the cost models", "give names, or a dict of models"
    named = costs if isinstance(costs, Mapping) else {name: name for name in _names(costs, *of_models)}
    models = {str(name): model_of(model) for name, model in named.items()}
    extract = _names(extract, "the extractors", f"give names, some of {', '.join(EXTRACTORS)}")
    if unknown := [name for name in extract if name not in EXTRACTORS]:
        raise ValueError(f"unknown extractor {unknown[0]!r}: use some of {', '.join(EXTRACTORS)}")
    if not (models and extract):
        raise ValueError(f"there is no {'extractor' if models else 'cost model'} to compare: name one")
    refuse_below(0, repeats, "repeats")
    left_out: list[str] = []
    if isinstance(corpus, str | Path):
        if not (cases := read_corpus(corpus, left_out.append)):
            raise none_left(left_out)
    else:
        names = variables_of(ranges)
        cases = [
            given if isinstance(given, Case) else case([term_of(given, names)], id=f"{number}")
            for number, given in enumerate(corpus)
        ]
    found = [*answers(cases, models, extract, int, left_out.append, rules=rules, budget=budget, lower=bool(repeats))]
    if repeats:
        measure(found, repeats, seed, int)
    return Experiment(tuple(found), tuple(left_out))


def _names(given: Iterable[str] | str, what: str, remedy: str) -> list[str]:
    if not isinstance(given, Iterable):
        raise TypeError(f"{what} are given as {shown(given)}: {remedy}")
    return [given] if isinstance(given, str) else [*given]


def chosen_cases(lines: Sequence[str | bytes], limit: int | None, seed: int, leave_out: LeaveOut) -> list[Case]:
    """The plain cases that are not too large to compile, or ``limit`` of them by ``seed``; an error if none is left."""
    records: list[tuple[int, Record]] = []
    for number, line in numbered_lines(lines):
        with _or_left_out(f"line {number}", leave_out):
            given = load(line)
            if kind_of(given) != "plain":
                raise ValueError(f"a case of kind {kind_of(given)!r}: only plain ones are measured")
            records.append((number, given))
    random.Random(seed).shuffle(records)
    chosen: list[Case] = []
    for number, record in records:
        if limit is not None and len(chosen) == limit:
            break
        with _or_left_out(f"line {number}", leave_out):
            case = case_of(record, f"line {number}")
            # a variable that no root reads is a parameter, too
            if (terms := term_count([*case.exprs, *case.variables.values()])) > MOST_TERMS:
                raise ValueError(f"{terms} terms are too many to compile: up to {MOST_TERMS} are")
            chosen.append(case)
    if not chosen:
        raise ValueError(f"the corpus has no plain case of up to {MOST_TERMS} terms to measure")
    return chosen


@contextmanager
def _or_left_out(name: str, leave_out: LeaveOut) -> Iterator[None]:
    """Any error but that of a cost model leaves out the case of that name."""
    try:
        yield
    except PriceError:
        raise
    except Exception as error:
        leave_out(f"{name}: {reason(error)}")


def predict(roots: Sequence[Expr], model: CostModel) -> int:
    """What ``model`` says that one evaluation of ``roots`` costs: its nodes, a load per variable, a store per root."""
    loads = [(t.vmin, t.vmax) for t in topological(roots) if t.op == "var"]
    stores = [(root.vmin, root.vmax) for root in roots]
    accesses = [*product(["load"], loads), *product(["store"], stores)]
    looked_at = checked(model)
    return cost_of(roots, model) + sum(looked_at.price(op, [bounds], bounds) for op, bounds in accesses)


def answers(
    cases: Iterable[Case],
    models: Mapping[str, CostModel],
    extractors: Sequence[str],
    advance: Advance,
    leave_out: LeaveOut,
    *,
    rules: Sequence[Rule] | None = None,
    budget: Budget = DEFAULT_BUDGET,
    lower: bool = True,
) -> Iterator[Row]:
    """Each case as it is, and the answer by each model and extractor; ``advance`` is called after each case.

    To ``lower`` leaves out the cases that C cannot have. Raises ``ValueError`` if no case is left.
    """
    is_left, reasons = False, list[str]()

    def note(reason: str) -> None:
        reasons.append(reason)
        leave_out(reason)

    for each in cases:
        with _or_left_out(str(each.id), note):
            result = optimize(each.exprs, gates=each.gates, constraints=each.constraints, rules=rules, budget=budget)
            found = _answers(each, result, models, extractors)
            # what cannot be lowered is known before the others are compiled with it
            for row in found if lower else ():
                function(row.roots, "probe", row.variables)
            is_left = True
            yield from found
        advance()
    if not is_left:
        raise none_left(reasons)


def none_left(reasons: Sequence[str]) -> ValueError:
    """The error that no case is left; ``reasons`` say why each was left out."""
    return ValueError(f"no case is left; the first was left out: {reasons[0]}" if reasons else "there is no case")


def _answers(case: Case, optimised: Result, models: Mapping[str, CostModel], extractors: Sequence[str]) -> list[Row]:
    variables = tuple(sorted(case.variables.values(), key=str))
    rows = [Row(str(case.id), INPUT, INPUT, tuple(case.exprs), variables)]
    found = [optimised]
    for (name, model), extract in product(models.items(), dict.fromkeys(extractors)):
        best = optimised.extract(model, extract)
        refuse_long_costs({"cost_before": best.cost_before})
        found.append(best)
        rows.append(Row(str(case.id), name, extract, best.exprs, variables, best.cost, best.cost_before, best.gap))
    for row, result in zip(rows, found, strict=True):
        row.milliseconds, row.extraction_milliseconds = result.milliseconds, result.extraction_milliseconds
        row.predicted = {name: predict(row.roots, model) for name, model in models.items()}
    return rows


def times(rows: Iterable[Row]) -> tuple[float, float, int]:
    """Seconds of the optimisations, seconds of choosing from their e-graphs, and how many answers were chosen."""
    rows = [*rows]
    chosen = [row.milliseconds for row in rows if row.extract != INPUT]
    return sum(row.milliseconds for row in rows if row.extract == INPUT) / 1000, sum(chosen) / 1000, len(chosen)


def measure(rows: Sequence[Row], repeats: int, seed: int, advance: Advance) -> None:
    """Compile every answer once and fill in its time: the median of ``repeats`` turns, each in another order."""
    programs = list(dict.fromkeys((row.roots, row.variables) for row in rows))
    kernels: list[CompiledExprs] = []
    for batch in batched(programs, BATCH):
        kernels += compile_many([roots for roots, _ in batch], [variables for _, variables in batch])
    times: list[list[float]] = [[] for _ in programs]
    order = random.Random(seed)
    try:
        for _ in range(repeats):
            for index in order.sample(range(len(kernels)), len(kernels)):
                times[index].append(kernels[index].measure(1))
            advance()
    finally:
        # ended in the first turn, no row gets a time; after it, each gets the median of the turns that are done
        if all(times):
            nanoseconds = {program: median(found) for program, found in zip(programs, times, strict=True)}
            for row in rows:
                row.nanoseconds = nanoseconds[row.roots, row.variables]


def _with_inputs(rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
    """Each answer with the place of its input, the last before it: names do not tell, as several cases may have one."""
    given = 0
    for place, row in enumerate(rows):
        if row.extract == INPUT:
            given = place
        else:
            yield given, row


def _answers_by(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.extract != INPUT:
            groups[row.model, row.extract].append(row)
    return groups


def _correlation(rows: Iterable[Row], model: str) -> float | None:
    # one answer may be several models': it is one point
    points = {(row.roots, row.variables): (row.predicted[model], row.nanoseconds) for row in rows}
    try:
        return round(correlation(*zip(*points.values(), strict=True), method="ranked"), 3)
    except StatisticsError:
        # without two different values there is no order
        return None


def _predictions(panels: Sequence[Any], rows: Sequence[Row], models: Sequence[str]) -> None:
    inputs, found = [[row for row in rows if (row.extract == INPUT) is is_input] for is_input in (True, False)]
    for axes, model in zip(panels, models, strict=True):
        for name, part in (("inputs", inputs), ("answers", found)):
            axes.scatter([r.predicted[model] for r in part], [r.nanoseconds for r in part], s=4, label=name)
        axes.set(xscale="log", yscale="log", xlabel=f"predicted by {Path(model).stem}")
        rank_correlation = _correlation(rows, model)
        axes.set_title("" if rank_correlation is None else f"rank correlation {rank_correlation:.3f}", fontsize=9)
    panels[0].set_ylabel("measured ns per evaluation")
    panels[0].legend()


def _profiles(panels: Sequence[Any], found: Sequence[Row]) -> None:
    (axes,) = panels
    for (model, extract), rows in _answers_by(found).items():
        ratios = sorted(row.cost / row.cost_before for row in rows if row.cost_before)
        axes.plot(np.linspace(0, 100, len(ratios)), ratios, label=f"{Path(model).stem}, {extract}")
    axes.set(xlabel="% of cases", ylabel="cost of the answer, times the input's")
    axes.legend(fontsize=8)


def _fronts(panels: Sequence[Any], found: Sequence[Row], models: Sequence[str]) -> None:
    for axes, other in zip(panels, models[1:], strict=True):
        totals: dict[tuple[int, int], list[str]] = {}
        for (model, extract), rows in _answers_by(found).items():
            point = sum(row.predicted[models[0]] for row in rows), sum(row.predicted[other] for row in rows)
            totals.setdefault(point, []).append(f"{Path(model).stem}, {extract}")
        for point, names in totals.items():
            axes.scatter(*point, s=12, label="\n".join(names))
        front = [p for p in sorted(totals) if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in totals)]
        axes.plot(*zip(*front, strict=True), color="0.7", zorder=0)
        axes.set(xlabel=f"all answers under {Path(models[0]).stem}", ylabel=f"under {Path(other).stem}")
        axes.legend(fontsize=6)


def _efforts(panels: Sequence[Any], rows: Sequence[Row]) -> None:
    cost_axes, gap_axes = panels
    answers = [*_with_inputs(rows)]
    least: dict[tuple[int, str], int] = {}
    for place, row in answers:
        least[place, row.model] = min(row.cost, least.get((place, row.model), row.cost))
    for extract in dict.fromkeys(row.extract for _, row in answers):
        part = [(row, least[place, row.model]) for place, row in answers if row.extract == extract]
        points = [(row.extraction_milliseconds, row.cost / cheapest) for row, cheapest in part if cheapest]
        cost_axes.scatter([x for x, _ in points], [y for _, y in points], s=4, label=extract)
    # an axis without points has no logarithms
    scale = "log" if any(least.values()) else "linear"
    cost_axes.set(xscale=scale, xlabel="extraction, ms", ylabel="cost, times the cheapest found")
    cost_axes.legend()
    gaps = sorted(row.gap for row in rows if row.gap is not None)
    gap_axes.plot(np.linspace(0, 100, len(gaps)), [100 * gap for gap in gaps])
    gap_axes.set(xlabel="% of answers", ylabel="optimality gap of exact extraction, %")
