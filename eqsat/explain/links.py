"""Links: two equal terms, and the moves by single laws that lead from one to the other, or one law for all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eqsat.explain.chains import Laws, Move, Search, reading, written
from eqsat.lang.expr import Expr, make
from eqsat.lang.traversal import topological_until
from eqsat.theory.linear import LinearArithmetic


class Attempt(NamedTuple):
    """One search: whether large operands are uninterpreted, whether it is deep, how many states it may look at."""

    uninterpreted: bool
    deep: bool
    states: int


#: One after the other; nine searches of ten that succeed look at less than 30 states.
ATTEMPTS = (
    Attempt(True, False, 40),
    Attempt(False, False, 40),
    Attempt(False, True, 40),
    Attempt(False, False, 150),
)
#: For what may do without simplifying operands first.
AT_ONCE = (Attempt(False, False, 12),)


@dataclass
class Link:
    """``before`` becomes ``after``: by moves between them as read, or by one law alone.

    ``uninterpreted`` holds large operands, each with a variable of its range that stands for it while moves are sought.
    """

    before: Expr
    after: Expr
    given: tuple[Expr, ...]
    laws: Laws
    uninterpreted: dict[Expr, Expr]
    moves: Sequence[Move] = ()
    law: str = ""

    def cites(self) -> set[str]:
        """The laws that it uses."""
        return {self.law} if self.law else {move.law for move in self.moves}

    def find(self, only: frozenset[str] | None, deadline: float, attempts: Sequence[Attempt]) -> bool:
        """Find moves by the laws in ``only``; whether there are any."""
        self.laws.only = only
        whole = self.uninterpreted
        for attempt in attempts:
            uninterpreted = whole if attempt.uninterpreted else {}
            if attempt.uninterpreted and not whole:
                continue
            if time.perf_counter() > deadline:
                # to read a term takes as long as it is large
                return False
            before, after = cut(self.before, uninterpreted), cut(self.after, uninterpreted)
            try:
                start, goal = self.laws.read(before), self.laws.read(after)
            except ValueError:
                # it divides by zero, where it is never evaluated
                return False
            if start is goal:
                law = reading(before, after)
                if only is None or law in only:
                    self.law, self.moves, self.uninterpreted = law, (), uninterpreted
                    return True
                continue
            self.laws.deep = attempt.deep
            moves = Search(self.laws, start, goal, deadline).run(attempt.states)
            if moves is not None:
                self.law, self.moves, self.uninterpreted = "", moves, uninterpreted
                return True
        return False

    def steps(self) -> Iterator[tuple[Expr, Expr, str, tuple[Expr, Expr] | None]]:
        """Both sides of each step with uninterpreted operands cut out, its law, and to what part that was applied."""
        now, end = cut(self.before, self.uninterpreted), cut(self.after, self.uninterpreted)
        if self.law:
            yield now, end, self.law, None
        for move in self.moves:
            following = end if move is self.moves[-1] else written(move.state)
            part = written(move.part), written(move.new)
            yield now, following, move.law, None if part[1] in (following, now) else part
            now = following


def cut(term: Expr, uninterpreted: Mapping[Expr, Expr]) -> Expr:
    """``term`` with what is uninterpreted replaced, and not looked into."""
    new = dict(uninterpreted)
    for part in topological_until([term], new.__contains__):
        args = tuple([new[a] for a in part.args])
        new[part] = part if args == part.args else make(part.op, *args)
    return new[term]


def coarse_law(theory: LinearArithmetic, before: Expr, after: Expr) -> str:
    """The law for a step between terms that no chain of smaller ones was found for."""
    return "normal-form" if theory.value(before) == theory.value(after) else "unexplained"
