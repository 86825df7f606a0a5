"""The budget of an optimisation: e-nodes, seconds and rounds."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf
from numbers import Integral

from eqsat.lang.validation import refuse_below


@dataclass(frozen=True)
class Budget:
    """What one optimisation may use. When one of these runs out the best terms so far are the answer.

    Attributes
    ----------
    nodes : int
        E-nodes of one e-graph, 1 or more; an optimisation may build several, such as one of its answer.
    seconds : float
        Of the clock, for the whole optimisation, 0 or more; ``math.inf`` for as many as it takes.
    rounds : int
        Rounds of saturation of one e-graph, 0 or more.

    Raises
    ------
    ValueError, TypeError
        If one of them is less, or no number.

    >>> Budget(seconds=0.1)
    Budget(nodes=20000, seconds=0.1, rounds=40)
    """

    nodes: int = 20_000
    seconds: float = 2.0
    rounds: int = 40

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("seconds", 0), ("rounds", 0)):
            given = getattr(self, name)
            refuse_below(least, given, name, "a budget of ")
            if name != "seconds" and not (isinstance(given, Integral) or given == inf):
                raise TypeError(f"a budget of {given!r} {name}: give a whole number")

    def ends(self, share: float = 1.0) -> float:
        """When a share of its seconds is up if it begins now, on the clock of :func:`time.perf_counter`."""
        return time.perf_counter() + share * float(self.seconds)

    def until(self, end: float, share: float = 1.0) -> Budget:
        """The budget with no more seconds than a share of what there is until ``end``.

        >>> Budget(seconds=3.0).until(0.0).seconds
        0.0
        """
        return replace(self, seconds=min(self.seconds, max(0.0, share * (end - time.perf_counter()))))
