"""How a case is optimised and checked, and what a row says of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eqsat.cli.rulesets import rule_set
from eqsat.egraph.budget import Budget
from eqsat.lang.costs import model_of
from eqsat.lang.expr import Expr
from eqsat.lang.text import to_program
from eqsat.optimizer.front import DEFAULT_BUDGET
from eqsat.optimizer.result import Result
from eqsat.prove.verify import Check

#: The answer to a case, as JSON data.
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to optimise and check each case, for how long and in how much memory: options of the command line by name.

    ``memory`` is in megabytes for each worker; None: no limit.
    """

    cost: str = "latency"
    extract: str = "dag"
    engine: str = "egraph"
    theory: bool = True
    gates: bool = True
    budget: Budget = DEFAULT_BUDGET
    prove: bool = False
    prove_seconds: float = 10.0
    branches: str = "eager"
    rules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    unknown_divisors: str = "refuse"
    memory: int | None = None

    @property
    def optimizing(self) -> dict[str, Any]:
        """The options of :func:`eqsat.optimize` that all kinds of cases take."""
        options = {name: getattr(self, name) for name in ("engine", "theory", "budget", "branches")}
        return {"cost": model_of(self.cost), "rules": rule_set(self.rules, self.without), **options}

    @property
    def optimizing_roots(self) -> dict[str, Any]:
        """Those for a list of expressions."""
        return {**self.optimizing, "extract": self.extract, "unknown_divisors": self.unknown_divisors}

    @property
    def checking(self) -> dict[str, Any]:
        """The options of :func:`eqsat.prove.verify.check_equal`."""
        return {"prove": self.prove, "seconds": self.prove_seconds}


def record(result: Result, check: Check, taken: Iterable[str]) -> Row:
    """What a row says of a result; the names of its shared subterms are none of ``taken``."""
    return {
        **program(result.exprs, taken),
        "cost_before": result.cost_before,
        "cost": result.cost,
        **({} if result.bound is None else {"bound": result.bound}),
        "ms": round(result.milliseconds, 3),
        "stop": result.stop,
        "nodes": result.nodes,
        **check.row,
    }


def program(exprs: Sequence[Expr], taken: Iterable[str]) -> Row:
    """Terms as text, with the subterms that they share, if any, by names that are not ``taken``."""
    lets, out = to_program(exprs, taken)
    return {"out": out, **({"lets": [list(pair) for pair in lets]} if lets else {})}
