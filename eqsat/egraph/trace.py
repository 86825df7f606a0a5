"""What one optimisation did: where its time went, which e-nodes came from where, and what egglog did in each round.

Every result has a :class:`Trace` (``Result.trace``). It holds counts and times that the run keeps anyway, or that cost
next to nothing, so no option turns it on; :class:`Spent` gathers them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

#: Why egglog was not entered.
NO_MATCH = "no left side of a rule fits any e-node together with its guard"
NO_RULES = "there are no rules to run modulo the theory"
NO_TIME = "the time was up before"
NO_ROOTS = "no root matters: no gate ever holds"
NOTHING_LEFT = "each root is a variable or a number, which costs nothing"
WITHOUT_RULES = "the engine 'theory' runs no rules"
FROM_RESULT = "the e-graph is that of another result"
ONE_BY_ONE = "the engine 'greedy' applies the rules one by one"

#: The number of rounds, and of rules, that are printed; the data has all of them.
MOST_ROUNDS, MOST_RULES = 12, 8
#: Phases of fewer seconds are not printed.
LEAST_SECONDS = 5e-6


@dataclass(frozen=True)
class Round:
    """One round of saturation: the rules match all that is there, then the theory names the values of what they make.

    Attributes
    ----------
    run : int
        Which e-graph it belongs to, from 1: the rules may start again from the best terms.
    number : int
        Which round of that run, from 1; 0 is the insertion of the terms.
    nodes : int
        E-nodes after the round.
    classes : int
        Classes after the round.
    matches : int
        Matches of rules in the round.
    seconds : float
        Its time.
    """

    run: int
    number: int
    nodes: int
    classes: int
    matches: int
    seconds: float


@dataclass(frozen=True)
class RuleUse:
    """What one rule did, over all rounds.

    How many e-nodes are due to it is not known: egglog applies all rules of a round at once.

    Attributes
    ----------
    matches : int
        How often it matched; of the greedy engine, how often it was applied.
    seconds : float or None
        Time of its search and its actions in egglog; ``None`` if it ran outside.
    """

    matches: int
    seconds: float | None


@dataclass(frozen=True)
class Trace:
    """What one optimisation did.

    Attributes
    ----------
    phases : dict from str to float
        Seconds by phase; together they are all of ``Result.milliseconds``.

        * ``normalise``: what is known, and the normal forms of the input, without
        * ``conjecture``: equalities read off sample points, and their proofs;
        * ``build``: the e-graph over normal forms; of the rules alone, terms taken apart for egglog and put together;
        * ``extract``: the choice among e-nodes, with partial sums shared;
        * ``reuse``: alternatives that use what is computed anyway, and the choice among them;
        * ``saturate``: egglog, with the insertion of rows, and what the rules found, normalised and added;
        * ``flat index``: whether to try a sum as one variable, others shifted, gates and branches as facts; such runs
          count under the phases that they have;
        * ``again``: the answer normalised once more;
        * ``rewrite``: rules applied one by one;
        * ``finish``: divisions made safe, widths, the final cost.
    alternatives : dict from str to int
        E-nodes of the e-graphs by what added them. ``sums``, ``products``, ``quotients``, ``selections``,
        ``extremes``, ``conditions``: the laws of that kind of normal form; ``leaves``: variables, and operators
        without laws; ``rules``: what egglog found; all others are the names of providers
        (:data:`eqsat.alternatives.providers.PROVIDERS`). A flat index, shifted variables and the answer read
        again have e-graphs of their own, so the sum may be more than ``Result.nodes``.
    conjectures : int
        Equalities, and bounds, that were read off sample points and proved.
    rounds : tuple of Round
        The rounds of saturation in order.
    rules : dict from rule name to RuleUse
        The rules that matched.
    unmatched : tuple of str
        The caller's own rules that matched nothing.
    not_entered : str or None
        Why egglog was not entered; ``None`` if it was.

    >>> Trace(not_entered="there are no rules").rounds
    ()
    """

    phases: Mapping[str, float] = field(default_factory=dict)
    alternatives: Mapping[str, int] = field(default_factory=dict)
    conjectures: int = 0
    rounds: tuple[Round, ...] = ()
    rules: Mapping[str, RuleUse] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    not_entered: str | None = None

    def record(self) -> dict[str, Any]:
        """The trace as JSON has it: the same names, times in seconds."""
        return asdict(self)

    def __str__(self) -> str:
        long = {name: seconds for name, seconds in self.phases.items() if seconds >= LEAST_SECONDS}
        lines = [f"time      {', '.join(f'{name} {_ms(seconds)}' for name, seconds in long.items())}"]
        if self.alternatives:
            lines.append(f"e-nodes   {', '.join(f'{name} {count}' for name, count in self.alternatives.items())}")
        if self.conjectures:
            lines.append(f"proved    {self.conjectures} conjectures")
        if self.not_entered is not None:
            lines.append(f"egglog    not entered: {self.not_entered}")
        if self.rounds:
            lines += _table(self.rounds)
        if self.rules:
            lines.append(f"rules     {', '.join(_uses(self.rules))}")
        if self.unmatched:
            more = len(self.unmatched) - MOST_RULES
            names = [*self.unmatched[:MOST_RULES], *([f"{more} more"] if more > 0 else [])]
            lines.append(f"no match  {', '.join(names)}")
        return "\n".join(lines)


class Deadlines(Protocol):
    """Work that ends at two times of ``time.perf_counter()``: ``until`` what is optional, at ``end`` all of it."""

    until: float
    end: float


@dataclass
class Spent:
    """What a run has taken so far, together with the runs within it."""

    started: float = field(default_factory=lambda: time.perf_counter())
    rounds: int = 0
    matches: Counter[str] = field(default_factory=Counter)
    #: By rule that ran in egglog, its seconds.
    rule_seconds: dict[str, float] = field(default_factory=dict)
    #: The rounds of egglog, run by run.
    traces: list[tuple[Round, ...]] = field(default_factory=list)
    #: By what added them, how many e-nodes the e-graphs over normal forms have.
    alternatives: Counter[str] = field(default_factory=Counter)
    #: Why egglog was not entered; ``None`` once it was.
    not_entered: str | None = NO_TIME
    #: The phase that is on now, since when, and the seconds of each phase before that.
    phase: str = "normalise"
    since: float = field(init=False)
    phase_seconds: dict[str, float] = field(default_factory=dict)
    #: Those of the run that is on now.
    deadlines: Deadlines | None = None

    def __post_init__(self) -> None:
        self.since = self.started

    def enter(self, phase: str) -> None:
        """Count the time from now on as that of ``phase``."""
        now = time.perf_counter()
        self.phase_seconds[self.phase] = self.phase_seconds.get(self.phase, 0.0) + now - self.since
        self.phase, self.since = phase, now

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Count the time here as that of ``phase``."""
        before = self.phase
        self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    def phases(self) -> dict[str, float]:
        """Seconds by phase until now."""
        self.enter(self.phase)
        return {phase: seconds for phase, seconds in self.phase_seconds.items() if phase}

    def skip(self, why: str) -> None:
        """Note why egglog is not entered, unless it was before."""
        if self.not_entered is not None:
            self.not_entered = why

    def count(self, matches: Mapping[str, int], seconds: Mapping[str, float], rounds: tuple[Round, ...]) -> None:
        """Count the matches and seconds of rules, and the rounds in which they ran."""
        self.matches.update(matches)
        for rule, spent in seconds.items():
            self.rule_seconds[rule] = self.rule_seconds.get(rule, 0.0) + spent
        self.traces.append(rounds)

    def trace(self, conjectures: int, own: Iterable[str]) -> Trace:
        """What has been done until now; ``own`` are the names of the caller's own rules."""
        seconds = self.rule_seconds
        return Trace(
            self.phases(),
            {source: count for source, count in self.alternatives.items() if count},
            conjectures,
            tuple([replace(r, run=run) for run, rounds in enumerate(self.traces, start=1) for r in rounds]),
            {name: RuleUse(count, seconds.get(name)) for name, count in self.matches.items()},
            tuple([name for name in own if name not in self.matches]),
            self.not_entered,
        )

    @contextmanager
    def off_the_clock(self, deadlines: Deadlines) -> Iterator[None]:
        """Do not count the time within, in which work is done once per process: all deadlines move by as much."""
        began = time.perf_counter()
        try:
            with self.during(""):
                yield
        finally:
            self._put_off(time.perf_counter() - began, deadlines)

    def skip_import(self, seconds: float) -> None:
        """Do not count the time of an import that has just ended: it is done once in a process."""
        self.since += seconds
        self._put_off(seconds, self.deadlines)

    def _put_off(self, seconds: float, deadlines: Deadlines | None) -> None:
        """Let a run begin, and its work end, that much later."""
        self.started += seconds
        if deadlines is not None:
            deadlines.until += seconds
            deadlines.end += seconds

    def seconds(self) -> float:
        """How long it has taken."""
        return time.perf_counter() - self.started

    def left(self, seconds: float) -> float:
        """How many of a number of seconds are left."""
        return max(0.0, seconds - self.seconds())


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


def _table(rounds: Sequence[Round]) -> Iterable[str]:
    """A line for each round; where they are many, for the first and the last."""
    yield f"egglog    {'round':>7} {'e-nodes':>8} {'classes':>8} {'matches':>8} {'ms':>9}"
    half = MOST_ROUNDS // 2
    for at, r in enumerate(rounds):
        if len(rounds) <= MOST_ROUNDS or not half <= at < len(rounds) - half:
            name = f"{r.run}.{r.number}"
            yield f"{name:>17} {r.nodes:>8} {r.classes:>8} {r.matches:>8} {1000 * r.seconds:>9.2f}"
        elif at == half:
            yield f"{'...':>17} {len(rounds) - 2 * half} more"


def _uses(rules: Mapping[str, RuleUse]) -> Iterable[str]:
    """The rules by matches, the most first."""
    order = sorted(rules, key=lambda name: (-rules[name].matches, name))
    for name in order[:MOST_RULES]:
        seconds = rules[name].seconds
        yield f"{name} {rules[name].matches}" + ("" if seconds is None else f" ({_ms(seconds)})")
    if len(order) > MOST_RULES:
        yield f"{len(order) - MOST_RULES} more"
