"""The plan of a derivation: which subterm becomes which, operands first, and in what order.

Each subterm of the input is brought into the form that the answer has for it, or into a shorter one if the theory
knows one. What lies between the two is a :class:`Link`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from eqsat.explain.chains import LINEAR, Laws, Move, Search, law_of_reading, written
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, make, with_operands
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import Simplicity, topological, use_counts
from eqsat.optimizer.canonical_terms import CHAINED
from eqsat.optimizer.result import Result
from eqsat.prove.explanation import COARSE
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.definedness import live_branches, undefined
from eqsat.theory.forms import Value, to_expr, without_quotients
from eqsat.theory.linear import LinearArithmetic

#: For terms of up to this number of nodes, laws are looked for before their operands are simplified.
MAX_AT_ONCE = 40
#: Branches within fewer branches than this are entered to use their conditions.
MAX_NESTED = 8
#: How deep cases within cases are told apart.
MAX_SPLITS = 2
#: How many conditions are tried, one after the other, to tell cases apart.
MAX_CASES = 3
#: The share of the time after which no search is begun.
SEARCHING = 0.65


class Attempt(NamedTuple):
    """One search: whether it is deep, and how many states it may look at."""

    deep: bool
    states: int


#: They are made one after the other until one succeeds; nine of ten that do look at less than 30 states.
ATTEMPTS = (Attempt(False, 40), Attempt(True, 40), Attempt(False, 150))
#: For terms whose operands are not simplified first.
AT_ONCE = (Attempt(False, 12),)


@dataclass
class Link:
    """``before`` becomes ``after``: by moves between them as read, or by one law alone."""

    before: Expr
    after: Expr
    given: tuple[Expr, ...]
    laws: Laws
    moves: Sequence[Move] = ()
    law: str = ""

    def cites(self) -> set[str]:
        """The laws that it uses."""
        return {self.law} if self.law else {move.law for move in self.moves}

    def find(self, only: frozenset[str] | None, deadline: float, attempts: Sequence[Attempt]) -> bool:
        """Find moves by the laws in ``only``; whether there are any."""
        self.laws.only = only
        # to read a term takes as long as it is large
        if time.perf_counter() > deadline:
            return False
        try:
            start, goal = self.laws.read(self.before), self.laws.read(self.after)
        except ValueError:
            # it divides by zero, where it is never evaluated
            return False
        if start is goal:
            law = law_of_reading(self.before, self.after)
            if only is not None and law not in only:
                return False
            self.law, self.moves = law, ()
            return True
        for attempt in attempts:
            self.laws.deep = attempt.deep
            if (moves := Search(self.laws, start, goal, deadline).run(attempt.states)) is not None:
                self.law, self.moves = "", moves
                return True
        return False

    def steps(self) -> Iterator[tuple[Expr, Expr, str, tuple[Expr, Expr] | None]]:
        """Both sides of each step, its law, and to what part that was applied."""
        now = self.before
        if self.law:
            yield now, self.after, self.law, None
        for move in self.moves:
            following = self.after if move is self.moves[-1] else written(move.state)
            part = written(move.part), written(move.new)
            yield now, following, move.law, None if part[1] in (following, now) else part
            now = following


def coarse_law(theory: LinearArithmetic, before: Expr, after: Expr) -> str:
    """The law for a step between terms that no chain of smaller ones was found for."""
    return "normal-form" if theory.value(before) == theory.value(after) else "unexplained"


@dataclass(frozen=True)
class Task:
    """What is to be derived, by which laws (``None`` for all), and until when."""

    result: Result
    only: frozenset[str] | None
    seconds: float
    started: float = field(default_factory=lambda: time.perf_counter())

    def until(self, share: float) -> float:
        """When a share of the time is over."""
        return self.started + share * self.seconds

    def is_late(self, share: float) -> bool:
        return time.perf_counter() > self.until(share)


class Plan:
    """The links that derive the roots with one gate, in the order in which they are to be made."""

    def __init__(self, task: Task, gate: Expr | None, members: Sequence[int]) -> None:
        self.task, self.gate, self.members = task, gate, members
        result = task.result
        self.before = [result.before[i] for i in members]
        self.after = [result.exprs[i] for i in members]
        # None where the constraints never hold together
        base: LinearArithmetic | None = None
        with suppress(ContradictionError):
            base = LinearArithmetic(result.constraints, work=Work(until=task.until(1)))
        fact = () if gate is None or base is None else (base.condition(gate),)
        # None where nothing is evaluated: under a gate that never holds, or if a divisor that is always zero was kept
        self.theory = base.assuming(fact[0]) if base and fact else base
        self.conjectures = [
            conjecture for conjecture in result.conjectures if {*conjecture.facts} <= {*result.constraints, *fact}
        ]
        self._laws: dict[LinearArithmetic, Laws] = {}
        # how many nodes a term has, written out
        self._size = Simplicity().size
        #: The terms of the answer by their values, without those that only conditions around them keep defined.
        self._answers: dict[Value, Expr] = {}
        self.links: list[Link] = []
        if base is not None and self.theory is not None:
            base.work.end = Work.ending(task.until(1)).end
            # late, one coarse step for each root is left
            with suppress(OverdueError):
                self.links = self._planned(base, self.theory)
            base.work.end = inf

    def _planned(self, base: LinearArithmetic, theory: LinearArithmetic) -> list[Link]:
        """The links; raise :class:`OverdueError` if the time is up before all are found."""
        theory.assert_equal([(conjecture.before, conjecture.after) for conjecture in self.conjectures])
        sets = base.variables
        # an index means nothing outside of its reduction
        parts = topological(self.after)
        unsafe = undefined(parts, theory)
        outside = [part for part in parts if part not in unsafe and not sets.of(part) & sum(sets.index_extents)]
        for known in (base, theory):
            for part in outside:
                self._answers.setdefault(known.value(part), part)
        wanted = dict(zip(self.before, self.after, strict=True))
        return self._traverse(self.before, wanted, theory, ())[1]

    def _traverse(
        self, roots: Sequence[Expr], wanted: Mapping[Expr, Expr], theory: LinearArithmetic, given: tuple[Expr, ...]
    ) -> tuple[dict[Expr, Expr], list[Link]]:
        """What the terms below ``roots`` become, and by which links.

        ``given`` are the conditions of the branches around the roots. A term may be linked at once; then its operands
        are not looked at.
        """
        users = use_counts(roots)
        # terms that only conditions around them keep from dividing by zero are linked where these conditions are known
        unsafe = undefined(list(users), theory)
        becomes: dict[Expr, Expr] = {}
        # links of terms as they are given; they are made first, the largest before the others, since other links
        # change the operands
        first: list[Link] = []
        links: list[Link] = []
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            term, ready = stack.pop()
            if term in becomes:
                continue
            target = wanted[term] if term in wanted else self._answer(term, theory)
            chain, operands = _chain(term, users)
            if not ready:
                if target is term:
                    becomes[term] = term
                elif target is not None and term not in unsafe and (link := self._at_once(term, target, theory, given)):
                    first.append(link)
                    becomes[term] = target
                else:
                    stack.append((term, True))
                    stack += [(operand, False) for operand in reversed(_own_steps(term, operands, theory))]
                continue
            now = _rebuilt(chain, becomes)
            if term.op == "where":
                now = self._enter_branches(now, theory, given, links)
            if term in unsafe:
                target = now
            elif target is None:
                # late, laws that lead to a shorter form would not be looked for
                simple = now if self.task.is_late(SEARCHING) else _simple(theory, term)
                target = simple if self._size(simple) < self._size(now) else now
            if target is not now:
                links += self._linked(now, target, theory, given)
            becomes[term] = target
        first.sort(key=lambda link: self._size(link.before), reverse=True)
        return becomes, first + links

    def _answer(self, term: Expr, theory: LinearArithmetic) -> Expr | None:
        """The form that the answer has for the value of ``term``, else the literal that it is equal to, if any."""
        value = theory.value(term)
        if value in self._answers:
            return self._answers[value]
        simple = theory.simplify(term)
        return None if simple.args or simple.op == "var" else simple

    def _at_once(self, term: Expr, target: Expr, theory: LinearArithmetic, given: tuple[Expr, ...]) -> Link | None:
        """A link from ``term`` as it is, if it is small and few states lead there."""
        if self._size(term) > MAX_AT_ONCE or not term.args:
            return None
        link = Link(term, target, given, self._laws_of(theory))
        deadline = self.task.until(SEARCHING / 2)
        return link if link.find(self.task.only, deadline, AT_ONCE) else None

    def _enter_branches(self, now: Expr, theory: LinearArithmetic, given: tuple[Expr, ...], links: list[Link]) -> Expr:
        """A selection with new forms of its branches, equal where these are taken; ``links`` gains what leads there."""
        condition, *branches = now.args
        for at, (case, inside) in enumerate(_both_cases(condition, theory)):
            if inside is not None and len(given) < MAX_NESTED:
                becomes, found = self._traverse([branches[at]], {}, inside, (*given, case))
                branches[at] = becomes[branches[at]]
                links += found
        return make("where", condition, *branches)

    def link(self, before: Expr, after: Expr) -> Link | None:
        """The link between two roots, whose moves are still to be found; None if the gate never holds."""
        return None if self.theory is None else Link(before, after, (), self._laws_of(self.theory))

    def _linked(
        self,
        before: Expr,
        after: Expr,
        theory: LinearArithmetic,
        given: tuple[Expr, ...],
        splits: int = MAX_SPLITS,
    ) -> list[Link]:
        """The link between two terms; where no laws lead from one to the other, links by cases if these do."""
        link = Link(before, after, given, self._laws_of(theory))
        if link.find(self.task.only, self.task.until(SEARCHING), ATTEMPTS):
            return [link]
        for condition in () if self.task.is_late(SEARCHING / 2) or not splits else _cases(before, after):
            links = self._by_cases(condition, before, after, theory, given, splits - 1)
            if links and not any(each.law in COARSE for each in links):
                return links
        link.law = coarse_law(theory, before, after)
        return [link]

    def _by_cases(
        self, condition: Expr, before: Expr, after: Expr, theory: LinearArithmetic, given: tuple[Expr, ...], splits: int
    ) -> list[Link]:
        """Links from ``before`` to ``after`` where ``condition`` holds, and where it does not; none if one fails."""
        if len(given) >= MAX_NESTED:
            return []
        starts, ends = [t.args[1:] if t.op == "where" and t.args[0] is condition else (t, t) for t in (before, after)]
        split, joined = make("where", condition, *starts), make("where", condition, *ends)
        links = [] if before is split else self._linked(before, split, theory, given, splits=0)
        for (case, inside), start, end in zip(_both_cases(condition, theory), starts, ends, strict=True):
            if inside is None:
                return []
            links += self._linked(start, end, inside, (*given, case), splits=splits) if start is not end else []
            if links and links[-1].law in COARSE:
                return []
        return links if joined is after else [*links, *self._linked(joined, after, theory, given, splits=0)]

    def _laws_of(self, theory: LinearArithmetic) -> Laws:
        if theory not in self._laws:
            self._laws[theory] = Laws(self.task.result.rule_set, theory, self.conjectures)
        return self._laws[theory]


def _both_cases(condition: Expr, theory: LinearArithmetic) -> Iterator[tuple[Expr, LinearArithmetic | None]]:
    """That a condition holds, and that it does not, each with what it adds to the theory; None if that is nothing."""
    holds = theory.condition(condition)
    for case, fact in ((condition, holds), (make("not", condition), theory.negate(holds))):
        inside = theory.assuming(fact)
        yield case, None if inside is theory else inside


def _cases(before: Expr, after: Expr) -> list[Expr]:
    """Conditions to tell cases by: those of selections, the outermost of ``after`` first; variables of two values."""
    parts = [t for end in (after, before) for t in reversed(topological([end]))]
    # a condition on the index of a reduction is none of the whole reduction
    bound = {t.args[1] for t in parts if t.op in REDUCTIONS}
    selections = [t.args[0] for t in parts if t.op == "where" and bound.isdisjoint(topological([t.args[0]]))]
    values = [t < t.vmax for t in parts if t.op == "var" and t.vmax == t.vmin + 1 and t not in bound]
    return list(dict.fromkeys([*selections, *values]))[:MAX_CASES]


def _simple(theory: LinearArithmetic, term: Expr) -> Expr:
    """The normal form of ``term``, with remainders, and without quotients that are sums, where that is shorter."""
    if term.is_bool:
        return theory.condition(term)
    return without_quotients(to_expr(theory.in_digits(theory.form(term))[0]), theory.equations())


def _chain(term: Expr, users: Mapping[Expr, int]) -> tuple[list[Expr], list[Expr]]:
    """The nodes of the sum or other chain that ``term`` is, operands first, and its operands, as what others use is."""
    is_sum, is_chain = _is_sum(term), term.op in CHAINED
    nodes: list[Expr] = []
    operands: list[Expr] = []
    stack = [term]
    while stack:
        part = stack.pop()
        goes_on = _is_sum(part) if is_sum else is_chain and part.op == term.op
        if part is term or (users[part] == 1 and goes_on):
            nodes.append(part)
            stack.extend(reversed(part.args))
        else:
            operands.append(part)
    return nodes[::-1], operands


def _own_steps(term: Expr, operands: list[Expr], theory: LinearArithmetic) -> Sequence[Expr]:
    """Those of the operands of ``term`` that have steps of their own: not a branch that is never taken, nor a body."""
    if term.op == "where":
        return [term.args[0], *[branch for branch, _ in live_branches(term, theory)]]
    # steps in a body are steps of the whole reduction
    return term.args[2:] if term.op in REDUCTIONS else operands


def _is_sum(term: Expr) -> bool:
    if term.op == "mul":
        return term.args[0].op == "const" or term.args[1].op == "const"
    return term.op in LINEAR


def _rebuilt(chain: Sequence[Expr], becomes: Mapping[Expr, Expr]) -> Expr:
    """The last node of a chain over what its operands become, or as it is if it would divide by what is always zero."""
    new: dict[Expr, Expr] = {}
    for node in chain:
        args = tuple([new[a] if a in new else becomes.get(a, a) for a in node.args])
        try:
            new[node] = with_operands(node, args)
        except ValueError:
            return chain[-1]
    return new[chain[-1]]
