"""How many matches the stages of rules may have, told before they run: egglog cannot be interrupted in a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import perm

from eqsat.egraph.queries import Taken

#: About the seconds that egglog takes for each match: more, and mostly there are fewer matches than told here.
SECONDS_PER_MATCH = 5e-6


class Joins:
    """The stages that a session has read, by the names of their rulesets, and how many matches they may have."""

    def __init__(self) -> None:
        # the stage before, if there is one; how many terms a stage takes of each sum, or members of each container
        self._of_stage: dict[str, tuple[str, Counter[Taken]]] = {}
        self.clear()

    def read(self, rulesets: Sequence[str], taken: Sequence[Iterable[Taken]]) -> None:
        """Note what each stage of a way to match takes; it goes on from the matches of the stage before."""
        for ruleset, members, before in zip(rulesets, taken, ("", *rulesets), strict=False):
            self._of_stage[ruleset] = before, Counter(members)

    def clear(self) -> None:
        """Forget the sums, the containers and the matches of one e-graph."""
        self._matches: Counter[str] = Counter()
        # the number of sums, and of containers, by their lengths
        self._sums: Counter[int] = Counter()
        self._containers: Counter[int] = Counter()

    def add(self, kind: str, *row: int) -> None:
        """Note nothing: rows that are no sums and no containers are looked up."""

    def add_sum(self, c: int, constant: int, terms: Sequence[tuple[int, int]], kind: str) -> None:
        """Note a sum by the number of its terms."""
        self._sums[len(terms)] += 1

    def add_container(self, op: str, c: int, members: Sequence[int]) -> None:
        """Note a container by the number of its members."""
        self._containers[len(members)] += 1

    def matched(self, ruleset: str, matches: int) -> None:
        """Note matches that egglog has found."""
        self._matches[ruleset] += matches

    def matches_of(self, ruleset: str) -> int:
        """About the matches of a stage: those of the sum or container of which it takes the most."""
        before, taken = self._of_stage[ruleset]
        # by what it takes members of, the ways to take them of each sum or container of a length
        ways: list[list[int]] = []
        for one, count in taken.items():
            lengths = self._containers if one.is_container else self._sums
            ways.append([perm(length, count) * (1 if before else times) for length, times in lengths.items()])
        if before:
            return self._matches[before] * max([max(each, default=0) for each in ways], default=1)
        return max(map(sum, ways), default=1)

    def in_time(self, rulesets: Sequence[str], is_late: Callable[[float], bool]) -> list[str]:
        """The rulesets with few matches, as many as there is time for."""
        most = {name: SECONDS_PER_MATCH * self.matches_of(name) for name in rulesets}
        if not is_late(sum(most.values())):
            return [*rulesets]
        kept, seconds = set(), 0.0
        for name in sorted(rulesets, key=most.__getitem__):
            seconds += most[name]
            if is_late(seconds):
                break
            kept.add(name)
        return [name for name in rulesets if name in kept]
