"""What one optimisation may use."""

from __future__ import annotations

from dataclasses import dataclass

from eqsat.lang.limits import refuse_below


@dataclass(frozen=True)
class Budget:
    """What one optimisation may use. When one of these runs out the best terms so far are the answer.

    Attributes
    ----------
    nodes : int
        E-nodes, 1 or more.
    seconds : float
        Seconds, 0 or more.
    rounds : int
        Rounds of saturation, 0 or more.

    Raises
    ------
    ValueError, TypeError
        If one of them is less, or no number.

    >>> Budget(seconds=0.1)
    Budget(nodes=20000, seconds=0.1, rounds=24)
    """

    nodes: int = 20_000
    seconds: float = 2.0
    rounds: int = 24

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("seconds", 0), ("rounds", 0)):
            refuse_below(least, getattr(self, name), name, "a budget of ")
