"""How many matches the stages of rules may have, told before they run: egglog cannot be interrupted in a round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import perm

from eqsat.egraph.matching import Stage

#: About the seconds that egglog takes for each match: more, and mostly there are fewer matches than told here.
SECONDS_PER_MATCH = 5e-6

#: A fact that a container has a member, or a sum a term: the multiset, and the class of the member or term.
_MEMBER = re.compile(r"\((?:in (\S+)|at\S* (\S+) \S+) ([^\s)]+)")
#: The table of an earlier stage, and its columns; a name of a query; the table that a stage writes.
_FOUND = re.compile(r"\((found\d+) ([^)]*)\)")
_NAME = re.compile(r"[\w]+")
_DECLARED = re.compile(r"\(relation (found\d+) ")


class Joins:
    """The stages that a session has read, by the names of their rulesets, and how many matches they may have."""

    def __init__(self) -> None:
        # the table that a stage begins with, and how many terms it takes of each sum, or members of each container
        self._of_stage: dict[str, tuple[str, dict[tuple[bool, str], int]]] = {}
        # by ruleset the table that it writes, and by table its rows
        self._writes: dict[str, str] = {}
        self._rows: Counter[str] = Counter()
        # the number of sums by their lengths, and of containers
        self._lengths: tuple[Counter[int], Counter[int]] = Counter(), Counter()

    def read(self, ruleset: str, stage: Stage) -> None:
        """Note a stage that egglog has read."""
        found = _FOUND.search(stage.body)
        known = set(_NAME.findall(found[2])) if found else set()
        taken: Counter[tuple[bool, str]] = Counter()
        for fact in _MEMBER.finditer(stage.body):
            # one that is known already is looked up
            if fact[3] not in known and fact[3] not in _NAME.findall(stage.body[: fact.start()]):
                taken[fact[2] is None, fact[1] or fact[2]] += 1
        self._of_stage[ruleset] = found[1] if found else "", taken
        if declared := _DECLARED.search(stage.tables):
            self._writes[ruleset] = declared[1]

    def clear(self) -> None:
        """Forget the sums, the containers and the rows of one e-graph."""
        self._rows.clear()
        self._lengths = Counter(), Counter()

    def add(self, kind: str, *row: int) -> None:
        """Note nothing: rows that are no sums and no containers are looked up."""

    def add_sum(self, c: int, constant: int, terms: Sequence[tuple[int, int]], kind: str) -> None:
        """Note a sum."""
        self._lengths[False][len(terms)] += 1

    def add_container(self, op: str, c: int, members: Sequence[int]) -> None:
        """Note a container."""
        self._lengths[True][len(members)] += 1

    def matched(self, ruleset: str, matches: int) -> None:
        """Note matches that egglog has found."""
        if ruleset in self._writes:
            self._rows[self._writes[ruleset]] += matches

    def matches_of(self, ruleset: str) -> int:
        """About the matches of a stage: those of the sum or container of which it takes the most."""
        table, taken = self._of_stage[ruleset]
        ways = [
            [perm(length, count) * (1 if table else times) for length, times in self._lengths[is_container].items()]
            for (is_container, _), count in taken.items()
        ]
        if table:
            return self._rows[table] * max([max(each, default=0) for each in ways], default=1)
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
