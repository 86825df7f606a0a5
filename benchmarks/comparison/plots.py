"""The plots of a report, each a PNG file (extra: bench)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comparison.orders import ENGINES, GREEDY, spread
from comparison.solvers import EQSAT, OURS
from eqsat.cli.records import Row

#: Dots per inch, and inches of one panel.
DPI, WIDTH, HEIGHT = 90, 7.2, 3.6


def draw(rows: Sequence[Row], orders: Sequence[Row], directory: Path) -> dict[str, Path]:
    """All plots that the rows allow, by name, written to ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    figures = {"cost": cost_profile(rows), "time": profile_over_ours(rows, "ms", "time to simplify, times eqsat's")}
    if timed := [row for row in rows if all("ns" in answer for answer in row["answers"].values())]:
        figures["compiled"] = profile_over_ours(timed, "ns", "run time compiled, times eqsat's")
    if orders:
        figures["orders"] = order_spread(orders)
    paths = {name: directory / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        figure.savefig(paths[name], dpi=DPI)
    return paths


def cost_profile(rows: Sequence[Row]) -> Figure:
    """Per solver its cost over the least of all solvers, case by case, the cases in order of that."""

    def excess(row: Row, name: str) -> float:
        least = min(answer["cost"] for answer in row["answers"].values())
        # a case that some solver answers for free has no ratio: one more unit on both sides
        return float((row["answers"][name]["cost"] + 1) / (least + 1))

    return _profile(rows, list(rows[0]["answers"]), excess, "cost, times the least of all")


def profile_over_ours(rows: Sequence[Row], key: str, label: str) -> Figure:
    """Per solver a time of its answers, which all have it, over that of eqsat's, case by case, in order of that."""

    def ratio(row: Row, name: str) -> float:
        return float(row["answers"][name][key] / row["answers"][EQSAT][key])

    return _profile(rows, [name for name in rows[0]["answers"] if name != EQSAT], ratio, label)


def _profile(rows: Sequence[Row], names: Sequence[str], measure: Callable[[Row, str], float], label: str) -> Figure:
    figure, axes = _panel()
    palette = colormaps["tab20"]
    for number, name in enumerate(rows[0]["answers"]):
        if name in names:
            values = sorted(measure(row, name) for row in rows)
            shares = [100 * (place + 0.5) / len(values) for place in range(len(values))]
            style, width = "-" if name in OURS else "--", 2.4 if name == EQSAT else 1.2
            color = palette(2 * number % 20 + number // 10)
            axes.plot(shares, values, label=name, color=color, linestyle=style, linewidth=width)
    axes.axhline(1.0, color="0.7", linewidth=0.8, zorder=0)
    axes.set(yscale="log", xlabel="% of cases", ylabel=label)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def order_spread(orders: Sequence[Row]) -> Figure:
    """Per kernel the costs of all orders, over eqsat's cost in the order given."""
    ours, greedy = spread(orders, EQSAT), spread(orders, GREEDY)
    kernels = sorted(range(len(ours)), key=lambda place: (median(greedy[place]) + 1) / (ours[place][0] + 1))
    figure, axes = _panel()
    for engine, marker, size in zip(ENGINES, "o_", (14, 40), strict=True):
        costs = spread(orders, engine)
        points = sorted({(x, (c + 1) / (ours[place][0] + 1)) for x, place in enumerate(kernels) for c in costs[place]})
        axes.scatter([x for x, _ in points], [y for _, y in points], marker=marker, s=size, label=engine)
    axes.set(xlabel="kernels", ylabel="cost in each order, times eqsat's", yscale="log", xticks=[])
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _panel() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    return figure, figure.subplots()
