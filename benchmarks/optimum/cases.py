"""The bundled sample: single roots of the kernels, without their gates, of the suites of the tests, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eqsat.cli.cases import read_case
from eqsat.discover.search import within_reach
from eqsat.lang.expr import Expr, const, make, var

ROOT = Path(__file__).parents[2]
CORPORA = {
    "kernels": ROOT / "benchmarks/data/tinygrad_sample.jsonl",
    "hand": ROOT / "tests/data/hand.jsonl",
    "seeds": ROOT / "tests/data/seeds.jsonl",
}
#: How many roots each source gives.
EACH = 50

_RANDOM_OPS = ["add", "add", "sub", "mul", "floordiv", "mod", "min", "max", "where", "lt", "eq"]


@dataclass(frozen=True)
class Root:
    """One root, and where it is from."""

    source: str
    name: str
    term: Expr


def bundled(each: int = EACH) -> list[Root]:
    """The sample: the same for the same number."""
    random = np.random.default_rng(0)
    chosen = []
    for source, path in CORPORA.items():
        roots = list(_roots(source, path))
        chosen += [roots[at] for at in sorted(random.permutation(len(roots))[:each])]
    return chosen + [Root("random", f"random/{n}", _random_term(random)) for n in range(each)]


def _roots(source: str, path: Path) -> Iterator[Root]:
    seen = set()
    for line in path.read_text().splitlines():
        try:
            case = read_case(line)
        except ValueError:
            continue  # questions of the other kinds, which have no roots
        if case.constraints:
            continue
        for place, term in enumerate(case.exprs):
            if term.args and term not in seen and within_reach(term):
                seen.add(term)
                yield Root(source, f"{case.id}#{place}", term)


def _random_term(random: np.random.Generator) -> Expr:
    """An integer or a condition, grown as a graph of up to eight operators over small ranges and literals."""
    while True:
        integers = [var(n, 0, int(random.choice([1, 3, 7, 9, 15, 31, 63]))) for n in "xyz"[: random.integers(1, 4)]]
        conditions: list[Expr] = []
        latest = integers[0]
        for op in random.choice(_RANDOM_OPS, random.integers(3, 9)):
            if latest.is_bool and op != "where":
                latest = make("where", latest, integers[-1], const(int(random.integers(0, 9))))
            other = integers[random.integers(len(integers))] if random.random() < 0.5 else _literal(random)
            if op == "where":
                latest = make(op, conditions[-1], latest, other) if conditions and not latest.is_bool else latest
            elif op in ("floordiv", "mod", "mul"):
                latest = make(op, latest, _literal(random))
            else:
                latest = make(op, latest, other)
            (conditions if latest.is_bool else integers).append(latest)
        if latest.args and latest.vmin < latest.vmax and within_reach(latest):
            return latest


def _literal(random: np.random.Generator) -> Expr:
    return const(int(random.choice([2, 3, 4, 5, 7, 8, 12, 16, 17])))
