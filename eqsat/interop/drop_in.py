"""What the drop-ins into other compilers share: switching on and off, what was done, and the answers that are kept."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from time import perf_counter
from typing import Any, cast

from eqsat.egraph.budget import Budget
from eqsat.extract import CostModel, cost_model
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.lang.costs import model_of
from eqsat.lang.validation import require


@dataclass(frozen=True)
class Statistics:
    """What was done since the start of the process, or since ``reset_statistics()``.

    Attributes
    ----------
    kernels : int
        Kernels that the compiler lowered; of Inductor's those with an index that divides.
    sites : int
        What was decided on by itself: of Inductor's kernels each index that divides, of others the kernel.
    changed : int
        Sites that were replaced by what costs less.
    kept : dict from str to int
        How often a site stayed as it was, by the reason. With ``changed`` these are all sites.
    cached : int
        Kernels whose answers were known from one of the same structure.
    divisions_before, divisions_after : int
        Quotients and remainders in all kernels, as the compiler had them and as it has them now.
    seconds : float
        Time spent, in this process.

    >>> Statistics(kernels=2, sites=2, changed=1, kept={"costs no less": 1}).cached
    0
    """

    kernels: int = 0
    sites: int = 0
    changed: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    cached: int = 0
    divisions_before: int = 0
    divisions_after: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Seam:
    """An attribute of another system to replace; ``wrapped`` makes the replacement from the original."""

    owner: Any
    name: str
    wrapped: Callable[[Any], Any]


def settings(cost: CostModel | str, budget: Budget) -> tuple[CostModel, Budget]:
    """The cost model that is given or named, and the budget; refused here, since in a compiler no one would see it."""
    model_of(cost)
    require(budget, Budget, "a budget")
    return cost_model(cost), budget


class Kept(Exception):  # noqa: N818  (no error)
    """Raised where an index or a kernel stays as it is; the message says why."""


class DropIn:
    """One drop-in: whether it is switched on and with which options, what it did, and the answers that it keeps."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: Any = None
        self.lock = RLock()
        self._installed: list[tuple[Seam, Any, Any]] = []
        self._after: Callable[[], None] = lambda: None
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._seconds = 0.0

    @property
    def is_installed(self) -> bool:
        return bool(self._installed)

    def install(self, seams: Sequence[Seam], options: Any = None, after: Callable[[], None] = lambda: None) -> None:
        """Switch on, or go on with other options; ``after`` runs when it is switched off."""
        with self.lock:
            if not self._installed:
                for seam in seams:
                    # what a class holds, not what it binds
                    original = vars(seam.owner).get(seam.name, getattr(seam.owner, seam.name))
                    replacement = seam.wrapped(original)
                    setattr(seam.owner, seam.name, replacement)
                    self._installed.append((seam, original, replacement))
                self._after = after
            if options != self.options:
                self._answers.clear()
            self.options = options

    def uninstall(self) -> None:
        """Switch off: the other system is as it was, but for kernels that are compiled.

        Raises ``RuntimeError`` if what was put there has been replaced since.
        """
        with self.lock:
            for seam, _, replacement in self._installed:
                if vars(seam.owner).get(seam.name) is not replacement:
                    raise RuntimeError(f"{seam.name} of {self.name} was replaced since install(): undo that first")
            for seam, original, _ in self._installed:
                setattr(seam.owner, seam.name, original)
            if self._installed:
                self._installed.clear()
                self._after()

    @contextmanager
    def restored(self, install: Callable[[Any], None]) -> Iterator[None]:
        """Within, it may be switched on or off; then it is on or off as before.

        ``install`` switches it on with options, those from before.
        """
        was_installed, options = self.is_installed, self.options
        try:
            yield
        finally:
            if was_installed:
                install(options)
            else:
                self.uninstall()

    def statistics(self) -> Statistics:
        """What was done since the start of the process, or since ``reset_statistics()``."""
        with self.lock:
            return Statistics(**self._counts, kept=dict(self._kept), seconds=self._seconds)

    def reset_statistics(self) -> None:
        """Count from zero again, and forget the answers that are kept."""
        with self.lock:
            self._counts.clear()
            self._kept.clear()
            self._answers.clear()
            self._seconds = 0.0

    def answer[Answer](self, problem: Hashable, solve: Callable[[], Answer]) -> Answer:
        """The answer for a problem, computed unless it is kept; two threads may compute one at once."""
        with self.lock:
            if problem in self._answers:
                self._answers.move_to_end(problem)
                self._counts["cached"] += 1
                return cast(Answer, self._answers[problem])
        found = solve()
        with self.lock:
            self._answers[problem] = found
            while len(self._answers) > INTEROP_LIMITS.kept_kernels:
                self._answers.popitem(last=False)
        return found

    @contextmanager
    def kernel(self) -> Iterator[None]:
        """Count one kernel, and the time that is spent within."""
        start = perf_counter()
        try:
            yield
        finally:
            with self.lock:
                self._counts["kernels"] += 1
                self._seconds += perf_counter() - start

    def record(self, outcomes: Iterable[str], divisions: tuple[int, int]) -> None:
        """Count sites, each by the reason why it stays, or an empty text if it is changed, and divisions."""
        kept = Counter(outcomes)
        changed, (before, after) = kept.pop("", 0), divisions
        with self.lock:
            self._kept += kept
            self._counts.update(sites=changed + kept.total(), changed=changed)
            self._counts.update(divisions_before=before, divisions_after=after)
