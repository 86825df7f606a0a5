"""A peer's answer, checked by our checker and priced by our cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eqsat.cases import Case
from eqsat.corpus import Row
from eqsat.expr import Expr, topological
from eqsat.extract.cost import CostModel, Latency
from eqsat.ops import DIVISIONS
from eqsat.optimize import cost_of
from eqsat.text import to_program
from eqsat.verify import check_equal
from peers.session import Reply
from peers.spelling import from_nodes

LATENCY = Latency()


@dataclass(frozen=True)
class Answer:
    """What a peer made of a case.

    Attributes
    ----------
    exprs : list of Expr
        Its cheapest right alternative; the case's own roots if it has none.
    mode : str
        Which alternative that is: one of the peer's, ``"mixed"`` (the cheapest of each root), or ``"none"``.
    milliseconds : float
        CPU time in the peer until that alternative was known.
    wrong : dict
        Per mode that differs from the input, a point at which it does.
    """

    exprs: list[Expr]
    mode: str
    cost: int
    divisions: int
    milliseconds: float
    wrong: dict[str, dict[str, int]] = field(default_factory=dict)
    error: str = ""

    def row(self, case: Case) -> Row:
        """This answer as a row of a file."""
        lets, texts = to_program(self.exprs, taken=case.variables)
        return {
            "id": case.id,
            "out": texts,
            "lets": [list(pair) for pair in lets],
            "ms": round(self.milliseconds, 3),
            "divmod": self.divisions,
            "cost": self.cost,
            "mode": self.mode,
            **({"wrong": self.wrong} if self.wrong else {}),
            **({"error": self.error} if self.error else {}),
        }


def divisions(roots: Sequence[Expr]) -> int:
    """The distinct division nodes below ``roots``."""
    return sum(term.op in DIVISIONS for term in topological(roots))


def judge(case: Case, gates: bool, reply: Reply, model: CostModel = LATENCY) -> Answer:
    """The answer in a driver's reply; a peer that fails, or is wrong in every mode, leaves the case as it was."""
    right: dict[str, list[Expr]] = {}
    wrong: dict[str, dict[str, int]] = {}
    error = reply.error
    verdicts: dict[tuple[Expr, ...], dict[str, int] | None] = {}
    for mode, alternative in reply.alternatives.items():
        try:
            exprs = from_nodes(alternative["nodes"], alternative["roots"], case.variables)
            key = tuple(exprs)
            if key not in verdicts:
                verdicts[key] = _counterexample(case, gates, exprs)
        except (ValueError, TypeError) as problem:
            error = error or f"{mode}: {problem}"
            continue
        point = verdicts[key]
        if point is None:
            right[mode] = exprs
        else:
            wrong[mode] = point
    if len(right) > 1:
        right["mixed"] = [
            min(roots, key=lambda root: cost_of([root], model)) for roots in zip(*right.values(), strict=True)
        ]
    costs = {mode: cost_of(exprs, model) for mode, exprs in right.items()}
    mode = min(costs, key=lambda name: costs[name], default="none")
    exprs = right.get(mode, case.exprs)
    milliseconds = reply.alternatives[mode]["ms"] if mode in reply.alternatives else reply.milliseconds
    return Answer(exprs, mode, cost_of(exprs, model), divisions(exprs), milliseconds, wrong, error)


def _counterexample(case: Case, gates: bool, exprs: Sequence[Expr]) -> dict[str, int] | None:
    divisors = dict.fromkeys(term.args[1] for term in topological(case.exprs) if term.op in DIVISIONS)
    check = check_equal(
        case.exprs,
        exprs,
        constraints=[*case.constraints, *[d.ne(0) for d in divisors if d.vmin <= 0 <= d.vmax]],
        gates=case.gates if gates else (),
        most=20_000,
        samples=2_000,
    )
    return check.counterexample
