"""How the cases of a corpus are optimised and checked, for how long and in how much memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eqsat.cli.rulesets import rule_set
from eqsat.egraph.budget import Budget
from eqsat.lang.costs import model_of


@dataclass(frozen=True)
class Settings:
    """Options of the command line by name.

    ``memory`` is in megabytes for each worker; None: no limit.
    """

    cost: str = "latency"
    extract: str = "dag"
    engine: str = "egraph"
    theory: bool = True
    gates: bool = True
    budget: Budget = field(default_factory=Budget)
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
