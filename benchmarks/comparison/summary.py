"""The figures of a run: what each solver leaves, costs and takes, over all cases or some of them.

Everything is said against eqsat: a *win* is a case that eqsat answers at lower cost, ratios of time are over eqsat's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from comparison.solvers import EQSAT, OURS
from eqsat.cli.records import Row

#: The cheapest answer of the peers to each case, as if they were one solver that runs them all.
BEST = "best of the peers"

#: A compiled answer is slower than another beyond noise if it takes so much longer, in ratio and in nanoseconds: where
#: its loop happens to lie in memory makes up to a nanosecond of difference.
SLOWER, LEAST_NS = 1.1, 1.0


@dataclass(frozen=True)
class Standing:
    """One solver over some cases, against eqsat."""

    #: What is left, in total.
    divisions: int
    cost: int
    #: Cases that eqsat answers at lower, equal, higher cost.
    wins: int
    ties: int
    losses: int
    #: Cases with a wrong alternative, and cases that were stopped by a limit or failed.
    wrong: int
    failed: int
    #: CPU time over eqsat's: of the medians, the 95th percentiles, the totals.
    median: float
    p95: float
    total: float
    #: Geometric means of the run time of compiled answers: over the input's, and over eqsat's.
    compiled: float | None
    speedup: float | None


def peers_of(rows: Sequence[Row]) -> list[str]:
    """The solvers of a run that are not ours."""
    return [name for name in rows[0]["answers"] if name not in OURS]


def with_best(row: Row) -> Row:
    """``row`` with the cheapest answer of the peers as one more, if there are any; its time is that of all of them."""
    names = peers_of([row])
    if not names:
        return row
    peers = [row["answers"][name] for name in names]
    best = min(peers, key=lambda answer: (answer["cost"], answer.get("ns", 0.0)))
    answer = {**best, "ms": sum(peer["ms"] for peer in peers)}
    answer = {key: value for key, value in answer.items() if key not in ("wrong", "error")}
    return {**row, "answers": {**row["answers"], BEST: answer}}


def cheapest_peers(row: Row) -> list[str]:
    """The peers whose answer costs least."""
    costs = {name: row["answers"][name]["cost"] for name in peers_of([row])}
    return [name for name, cost in costs.items() if cost == min(costs.values())]


def standing(rows: Sequence[Row], name: str, base: str = EQSAT) -> Standing:
    """The standing of the solver ``name``, against ``base`` in place of eqsat."""
    given = [row["answers"][name] for row in rows]
    ours = [row["answers"][base] for row in rows]
    order = Counter(_sign(answer["cost"] - our["cost"]) for answer, our in zip(given, ours, strict=True))
    timed = [
        (row["before"]["ns"], our["ns"], answer["ns"])
        for row, our, answer in zip(rows, ours, given, strict=True)
        if "ns" in answer and "ns" in our and "ns" in row["before"]
    ]
    return Standing(
        divisions=sum(answer["divmod"] for answer in given),
        cost=sum(answer["cost"] for answer in given),
        wins=order[1],
        ties=order[0],
        losses=order[-1],
        wrong=sum("wrong" in answer for answer in given),
        failed=sum("error" in answer for answer in given),
        median=_ratio(median, given, ours),
        p95=_ratio(p95, given, ours),
        total=_ratio(sum, given, ours),
        compiled=geometric_mean([answer / before for before, _, answer in timed]) if timed else None,
        speedup=geometric_mean([answer / our for _, our, answer in timed]) if timed else None,
    )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _ratio(measure: Callable[[list[float]], float], given: Iterable[Row], ours: Iterable[Row]) -> float:
    return measure([answer["ms"] for answer in given]) / measure([answer["ms"] for answer in ours])


def p95(times: Iterable[float]) -> float:
    """The 95th percentile.

    >>> p95(range(100))
    95
    """
    ordered = sorted(times)
    return ordered[len(ordered) * 95 // 100]


def families(rows: Sequence[Row], least: int, most: int) -> dict[str, list[Row]]:
    """The rows of each family of at least ``least`` cases, but not of all; the ``most`` largest, a row in several.

    Of families with the same cases there is one.
    """
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        for family in row["families"]:
            places.setdefault(family, []).append(place)
    distinct = {tuple(members): name for name, members in reversed(places.items())}
    large = [(members, name) for members, name in distinct.items() if least <= len(members) < len(rows)]
    large.sort(key=lambda family: (-len(family[0]), family[1]))
    return {name: [rows[place] for place in members] for members, name in large[:most]}


def beaten(rows: Sequence[Row]) -> list[Row]:
    """The rows where some peer's answer costs less than eqsat's, by how much, most first."""
    losses = [row for row in rows if peers_of([row]) and _lead(row) < 0]
    return sorted(losses, key=_lead)


def alone(rows: Sequence[Row]) -> list[Row]:
    """The rows where eqsat's answer costs less than every peer's, by how much, most first."""
    return sorted([row for row in rows if peers_of([row]) and _lead(row) > 0], key=_lead, reverse=True)


def _lead(row: Row) -> int:
    """By how much the cheapest answer of the peers costs more than eqsat's."""
    return with_best(row)["answers"][BEST]["cost"] - row["answers"][EQSAT]["cost"]


def is_slower(ours: float, other: float) -> bool:
    """Whether a compiled answer takes longer than another beyond noise, in nanoseconds."""
    return ours > SLOWER * other and ours - other > LEAST_NS


def slower(rows: Sequence[Row]) -> list[tuple[Row, str, float]]:
    """The rows where a peer's compiled answer is faster than eqsat's beyond noise: which, and eqsat's time over its."""
    found: list[tuple[Row, str, float]] = []
    for row in rows:
        times = {name: answer["ns"] for name, answer in row["answers"].items() if "ns" in answer}
        our = times.get(EQSAT)
        times = {name: times[name] for name in peers_of([row]) if name in times}
        if our is not None and times:
            fastest = min(times, key=lambda name: times[name])
            if is_slower(our, times[fastest]):
                found.append((row, fastest, our / times[fastest]))
    return sorted(found, key=lambda loss: -loss[2])


def parts_of(rows: Sequence[Row]) -> dict[str, float]:
    """The share of eqsat's total time in each part that it knows."""
    answers = [row["answers"][EQSAT] for row in rows]
    total = sum(answer["ms"] for answer in answers)
    names = dict.fromkeys(name for answer in answers for name in answer.get("parts", {}))
    return {name: sum(answer.get("parts", {}).get(name, 0.0) for answer in answers) / total for name in names}


def slowest(rows: Sequence[Row], most: int) -> list[Row]:
    """The cases that take eqsat longest."""
    return sorted(rows, key=lambda row: -float(row["answers"][EQSAT]["ms"]))[:most]
