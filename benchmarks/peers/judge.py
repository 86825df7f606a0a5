"""A peer's answer, checked by our checker and priced by our cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eqsat.cli.cases import Case
from eqsat.cli.records import Row
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.expr import Expr
from eqsat.lang.properties import division_count, divisors
from eqsat.lang.text import to_program
from eqsat.prove.verify import check_equal
from peers.session import Reply
from peers.spelling import from_nodes


@dataclass(frozen=True)
class Answer:
    """What a solver, eqsat or a peer, made of a case."""

    #: Its cheapest right alternative; the case's own roots if it has none.
    exprs: list[Expr]
    #: Which alternative that is: one of the peer's, ``"mixed"`` (the cheapest of each root), or ``"none"``.
    mode: str
    cost: int
    divisions: int
    #: CPU time in the solver until that alternative was known.
    milliseconds: float
    #: Per mode that differs from the input, a point at which it does.
    wrong: dict[str, dict[str, int]] = field(default_factory=dict)
    error: str = ""
    #: Of eqsat's time, the milliseconds of parts that it knows.
    parts: dict[str, float] = field(default_factory=dict)

    def row(self, case: Case) -> Row:
        """This answer as an object of a file."""
        lets, texts = to_program(self.exprs, taken=case.variables)
        return {
            "out": texts,
            **({"lets": [list(pair) for pair in lets]} if lets else {}),
            "ms": round(self.milliseconds, 3),
            "divmod": self.divisions,
            "cost": self.cost,
            "mode": self.mode,
            **({"wrong": self.wrong} if self.wrong else {}),
            **({"error": self.error} if self.error else {}),
            **({"parts": {name: round(part, 3) for name, part in self.parts.items()}} if self.parts else {}),
        }


@dataclass(frozen=True)
class Examiner:
    """Checks and prices answers to one case; equal answers are checked once."""

    case: Case
    #: Whether a root matters only where its gate holds.
    gates: bool
    model: CostModel = LATENCY
    _verdicts: dict[tuple[Expr, ...], dict[str, int] | None] = field(default_factory=dict)

    def counterexample(self, exprs: Sequence[Expr]) -> dict[str, int] | None:
        """A point at which ``exprs`` differ from the roots of the case."""
        key, case = tuple(exprs), self.case
        if key not in self._verdicts:
            nonzero = [d.ne(0) for d in dict.fromkeys(divisors(case.exprs)) if d.vmin <= 0 <= d.vmax]
            self._verdicts[key] = check_equal(
                case.exprs,
                exprs,
                constraints=[*case.constraints, *nonzero],
                gates=case.gates if self.gates else (),
                most=20_000,
                samples=2_000,
            ).counterexample
        return self._verdicts[key]

    def answer(self, exprs: Sequence[Expr], mode: str, milliseconds: float, error: str = "") -> Answer:
        """An answer of one mode; a wrong one leaves the case as it was."""
        point = self.counterexample(exprs)
        if point is not None:
            return self._priced(self.case.exprs, "none", milliseconds, {mode: point}, error)
        return self._priced(exprs, mode, milliseconds, {}, error)

    def judge(self, reply: Reply) -> Answer:
        """The answer in a driver's reply; a peer that fails, or is wrong in every mode, leaves the case as it was."""
        right: dict[str, list[Expr]] = {}
        wrong: dict[str, dict[str, int]] = {}
        error = reply.error
        for mode, alternative in reply.alternatives.items():
            try:
                exprs = from_nodes(alternative["nodes"], alternative["roots"], self.case.variables)
                point = self.counterexample(exprs)
            except (ValueError, TypeError) as problem:
                error = error or f"{mode}: {problem}"
                continue
            if point is None:
                right[mode] = exprs
            else:
                wrong[mode] = point
        if len(right) > 1:
            right["mixed"] = [
                min(roots, key=lambda root: cost_of([root], self.model)) for roots in zip(*right.values(), strict=True)
            ]
        costs = {mode: cost_of(exprs, self.model) for mode, exprs in right.items()}
        mode = min(costs, key=lambda name: costs[name], default="none")
        milliseconds = reply.alternatives[mode]["ms"] if mode in reply.alternatives else reply.milliseconds
        return self._priced(right.get(mode, self.case.exprs), mode, milliseconds, wrong, error)

    def _priced(
        self, exprs: Sequence[Expr], mode: str, milliseconds: float, wrong: dict[str, dict[str, int]], error: str
    ) -> Answer:
        return Answer(list(exprs), mode, cost_of(exprs, self.model), division_count(exprs), milliseconds, wrong, error)
