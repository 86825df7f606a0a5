"""Work: how much more a theory does to say more, and until when.

What it says without is right, but less.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Self

from eqsat.theory.limits import LIMITS

#: The share of the time, and seconds, that what was begun is waited for when the time is up.
GRACE, LEAST_GRACE = 0.1, 0.01


class OverdueError(Exception):
    """No normal form is waited for any longer."""


_LATE: ContextVar[float] = ContextVar("late", default=inf)


@contextmanager
def late_after(until: float) -> Iterator[None]:
    """Let theories that are made meanwhile, and given no work of their own, say less from a time on."""
    token = _LATE.set(min(until, _LATE.get()))
    try:
        yield
    finally:
        _LATE.reset(token)


@dataclass
class Work:
    """What a theory and its relatives may still do to say more.

    New contexts, steps of refutation, and either only until a time of ``time.perf_counter()``. At its ``end`` nothing
    more is said at all.
    """

    contexts: int = LIMITS.contexts
    steps: int = LIMITS.shared_steps
    until: float = field(default_factory=_LATE.get)
    end: float = inf

    @classmethod
    def ending(cls, until: float) -> Self:
        """Work until a time; what was begun by then is waited for a little longer."""
        now = time.perf_counter()
        return cls(until=until, end=max(now, until) + GRACE * max(0.0, until - now) + LEAST_GRACE)

    def late_or_raise(self) -> bool:
        """Whether the time is up, so that less is to be said; raise :class:`OverdueError` at the ``end``."""
        now = time.perf_counter()
        if now > self.end:
            raise OverdueError
        return now > self.until
