"""Chains of laws between two equal terms: what :mod:`eqsat.explain.derivation` strings together.

The laws are the rules, the lemmas of the theory that are patterns (:data:`LEMMAS`), and those that are not
(:data:`WITHOUT_PATTERN`). Terms are searched *as read*: operands in one order, like terms collected, literals and exact
quotients computed. So one move is one application of one law, after which the term is read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial, reduce
from heapq import heappop, heappush
from itertools import count
from math import gcd
from typing import NamedTuple

from eqsat.egraph.patterns import TERMS
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import FALSE, TRUE, Expr, const, instantiate, make, rebuild
from eqsat.lang.ops import OPS, REDUCTIONS, SUMS
from eqsat.lang.terms import written_sum
from eqsat.lang.traversal import chain_members, term_count, topological, topological_until
from eqsat.optimizer.canonical_terms import canonical, joined, presentable
from eqsat.optimizer.matcher import Matcher
from eqsat.prove.explanation import COARSE
from eqsat.rules import DEFAULT, REDUCE
from eqsat.rules.arithmetic import ARITHMETIC
from eqsat.theory.conjectures import Conjecture
from eqsat.theory.forms import LinearForm, read
from eqsat.theory.linear import LinearArithmetic

#: Lemmas of the theory that are patterns: some say more simply, for a reader, what a rule says for the e-graph.
LEMMAS = (
    Rule("div-whole", "(x*c + y) // d", "x*(c//d) + y//d", "d > 0 and c % d == 0", "whole multiples leave the floor"),
    Rule("mod-whole", "(x*c + y) % d", "y % d", "d > 0 and c % d == 0", "whole multiples vanish"),
    Rule("mod-wider", "(x + (x//n)*k) % d", "x % n", "n > 0 and k > 0 and d == n + k", "x is n*(x//n) + x%n"),
    Rule("mod-definition", "x % y", "x - x//y*y", why="what a remainder is"),
    Rule("div-reflected", "x // d", "-((d - 1 - x) // d)", "d > 0", "minus the ceiling of -x/d"),
    Rule("factor-out", "x*z + y*z", "(x + y)*z", why="multiplication distributes over addition"),
    Rule("eq-lowest", "x == d", "x < d + 1", "vmin(x) == d", "x is nowhere less"),
    Rule("eq-highest", "x == d", "d - 1 < x", "vmax(x) == d", "x is nowhere more"),
    Rule(
        "lt-unit", "x*c + y < 1", "x + y < 1", "c > 1 and vmin(x) >= 0 and vmin(y) >= 0", "both are 0 or neither sum is"
    ),
    Rule(
        "unit-lt", "0 < x*c + y", "0 < x + y", "c > 1 and vmin(x) >= 0 and vmin(y) >= 0", "both are 0 or neither sum is"
    ),
    Rule("mod-reflected", "x % d", "d - 1 - (-x - 1) % d", "d > 0", "the digits of -x - 1 are those of x from above"),
    Rule("min-offset-out", "min(x + c, y)", "min(x, y - c) + c", why="c shifts both"),
    Rule("max-offset-out", "max(x + c, y)", "max(x, y - c) + c", why="c shifts both"),
    Rule("min-reflected", "min(c - x, y)", "c - max(x, c - y)", why="the sign turns the order"),
    Rule("max-reflected", "max(c - x, y)", "c - min(x, c - y)", why="the sign turns the order"),
    Rule("min-ordered", "min(x, y)", "x", "x < y + 1", "x is the smaller"),
    Rule("max-ordered", "max(x, y)", "y", "x < y + 1", "y is the larger"),
    Rule("max-of-min", "max(x, y)", "x + y - min(x, y)", why="one is the larger, the other the smaller"),
    Rule("min-div", "min(x, y) // d", "min(x//d, y//d)", "d > 0", "quotients keep the order"),
    Rule("max-div", "max(x, y) // d", "max(x//d, y//d)", "d > 0", "quotients keep the order"),
    Rule("min-offset-in", "min(x, y) + c", "min(x + c, y + c)", why="c shifts both"),
    Rule("max-offset-in", "max(x, y) + c", "max(x + c, y + c)", why="c shifts both"),
    Rule("min-opposite", "min(x, y)", "-max(-x, -y)", why="the sign turns the order"),
    Rule("min-times-max", "min(x, y) * max(x, y)", "x*y", why="one is x, the other y"),
    Rule("max-in-min-in-max", "max(y, min(z, max(x, y)))", "max(y, min(z, x))", why="what is above y decides"),
    Rule("min-in-max-in-min", "min(y, max(z, min(x, y)))", "min(y, max(z, x))", why="what is below y decides"),
    Rule("min-tdiv", "min(tdiv(x, d), tdiv(y, d))", "tdiv(min(x, y), d)", "d > 0", "quotients keep the order"),
    Rule("max-tdiv", "max(tdiv(x, d), tdiv(y, d))", "tdiv(max(x, y), d)", "d > 0", "quotients keep the order"),
    Rule("tmod-definition", "tmod(x, y)", "x - tdiv(x, y)*y", why="what a remainder is"),
    Rule("tdiv-tdiv", "tdiv(tdiv(x, c), d)", "tdiv(x, c*d)", "c > 0 and d > 0", "truncations compose"),
    Rule("tdiv-opposite", "tdiv(x, d)", "-tdiv(-x, d)", why="truncation is symmetric"),
    Rule(
        "gcd-tdiv",
        "tdiv(x, d)",
        "tdiv(x//gcd(x, d), d//gcd(x, d))",
        "1 < gcd(x, d) and gcd(x, d) < d",
        "a common divisor cancels",
    ),
    Rule("cancel-factor-tdiv", "tdiv(x*z, y*z)", "tdiv(x, y)", why="z cancels"),
    Rule("cancel-factor-tmod", "tmod(x*z, y*z)", "tmod(x, y)*z", why="z moves out"),
    Rule("tdiv-lt", "tdiv(x, d) < c", "x < c*d", "d > 0 and c > 0", "the bucket ends at c*d"),
    Rule("tdiv-lt-below", "tdiv(x, d) < c", "x < c*d - d + 1", "d > 0 and c <= 0", "the bucket begins above (c-1)*d"),
    Rule("lt-tdiv", "c < tdiv(x, d)", "c*d + d - 1 < x", "d > 0 and c >= 0", "the next bucket starts at (c+1)*d"),
    Rule("lt-tdiv-below", "c < tdiv(x, d)", "c*d < x", "d > 0 and c < 0", "the bucket ends at c*d"),
    Rule("zero-product", "x*y == 0", "x == 0 or y == 0", why="no other factors have the product 0"),
    Rule("div-reflected-by", "x // z", "-1 - (-x - 1)//z", "vmin(z) > 0", "minus the ceiling of -x/z"),
    Rule("div-opposite", "x // (z*c)", "(-x) // (z*(-c))", "c < 0", "a fraction's sign may move"),
    Rule("factor-literal", "(x*c + d) * z", "(x + d//c)*z*c", "c > 1 and d % c == 0", "c divides both terms"),
    Rule("where-and", "where(p and q, x, y)", "where(p, where(q, x, y), y)", why="both conditions are needed"),
    Rule("lt-div-term", "x//d < y", "x < y*d", "d > 0", "the bucket before y ends at y*d"),
    Rule("div-lt-term", "y < x//d", "y*d + d - 1 < x", "d > 0", "the bucket after y starts at (y + 1)*d"),
    Rule(
        "cancel-literal-rest",
        "(x + y) // (z*c)",
        "(x//c + y//c) // z",
        "c > 1 and gcd(x, c) == c and vmin(z) > 0",
        "y's rest by c never decides",
    ),
    Rule("where-offset-out", "where(p, x, c)", "where(p, x - c, 0) + c", why="both branches less c"),
    Rule("where-swap", "where(x < y, z, w)", "where(y <= x, w, z)", why="the complement swaps the branches"),
)

#: Laws that are no patterns, and what they say.
WITHOUT_PATTERN = {
    "reorder": "operands may come in any order and brackets",
    "collect": "like terms are collected, products by literals multiplied out",
    "compute": "literals and exact quotients are computed, neutral operands dropped",
    "sides": "terms move to the other side of a comparison",
    "shift": "a term moves all operands of an extreme",
    "scale": "a common factor of all operands of an extreme moves out",
    "given": "another condition says what a term is",
    "unroll": "the values of the index, one after the other",
    "solve": "a known equation replaces a variable",
    "decided": "what is known decides the condition",
    "choice": "a condition is whether it holds",
    "junction": "the least of conditions is whether all hold, the largest whether any does",
    "dead-branch": "the condition of the other branch cannot hold",
    "implied": "the other conditions decide it",
    "conjecture": "equal at every point at which the facts hold, found and proved by evaluation",
    "never": "the facts and the gate never hold together, so any value will do",
}

#: Reductions of up to this number of steps are written out.
MAX_STEPS = 8
#: In an extreme of up to this number of operands, each may shift the others; in one of more, none does.
MAX_SHIFTED = 6

#: Rules on sums that reading a term does not cover.
_SYMBOLIC = frozenset({"known-value", "distribute", "distribute-whole", "factor-term"})
#: Rules that are not cited: those that reading a term covers, and one that is div-whole and div-bucket in one step.
_LEFT_OUT = frozenset({rule.name for rule in ARITHMETIC} - _SYMBOLIC | {"div-small-rest"})

#: The operators that :meth:`Laws.read` merges into sums.
LINEAR = SUMS | {"mul"}


@cache
def laws_with(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Every rule that a derivation may cite, ``rules`` among them, in the order in which they are tried.

    The most specific come first; of equally specific ones those that are not shipped. One that is called as a law that
    is no pattern, or as a coarse step, is not among them: a derivation would say of one what it says of the other.
    """
    shipped = (*LEMMAS, *DEFAULT, *REDUCE)
    own = [rule for rule in rules if rule not in shipped]
    left_out = {*_LEFT_OUT, *WITHOUT_PATTERN, *COARSE}
    named = {rule.name: rule for rule in (*own, *shipped) if rule.name not in left_out}

    def generality(rule: Rule) -> tuple[int, int]:
        terms = topological([rule.pattern.left])
        return -sum(bool(t.args) for t in terms), sum(t.op == "var" and str(t.value) in TERMS for t in terms)

    return tuple(sorted(named.values(), key=generality))


class Move(NamedTuple):
    """``law`` makes ``new`` of ``part``, a subterm of a term as read, and thereby ``state`` of the term."""

    law: str
    part: Expr
    new: Expr
    state: Expr


class Laws(Matcher):
    """The laws that apply to terms where the facts of ``theory`` hold, with ``conjectures`` that were proved there."""

    def __init__(
        self, rules: tuple[Rule, ...], theory: LinearArithmetic, conjectures: Iterable[Conjecture] = ()
    ) -> None:
        super().__init__(laws_with(rules))
        self.theory = theory
        #: Whether guards may use the theory's bounds, not only those that follow from the bounds of the operands; and
        #: whether a search may rewrite subterms that both of its ends have.
        self.deep = False
        self._bounds: dict[Expr, tuple[int, int]] = {}
        self._read: dict[tuple[str | Expr, ...], Expr] = {}
        #: The laws that may be used; None for all.
        self.only: frozenset[str] | None = None
        self._rewrites: dict[tuple[Expr, bool, frozenset[str] | None], list[tuple[str, Expr]]] = {}
        self._conjectures = {self.read(conjecture.before): conjecture.after for conjecture in conjectures}

    def bounds(self, term: Expr) -> tuple[int, int]:
        """Bounds by those of the operands and, if :attr:`deep`, by the theory."""
        for part in topological_until([term], self._bounds.__contains__):
            if part.op == "var":
                self._bounds[part] = self.theory.range(part)
            elif part.op in OPS:
                self._bounds[part] = OPS[part.op].bounds(*[self._bounds[a] for a in part.args])
            else:
                self._bounds[part] = part.vmin, part.vmax
        low, high = self._bounds[term]
        if self.deep and not term.is_bool:
            least, most = self.theory.bounds(self.theory.form(term))
            return max(low, least), min(high, most)
        return low, high

    def holds(self, condition: Expr) -> bool:
        """Whether the facts decide the condition."""
        return condition.vmin == 1 or self.theory.condition(condition) is TRUE

    def read(self, term: Expr) -> Expr:
        """The term as read.

        Raises ``ValueError`` if it divides by zero where it is never evaluated.
        """
        return rebuild([term], lambda part, args: self._operator(part.op, args) if args else part)[0]

    def _operator(self, op: str, args: tuple[Expr, ...]) -> Expr:
        """An operator on terms as read."""
        key: tuple[str | Expr, ...] = (op, *args)
        if (found := self._read.get(key)) is None:
            found = canonical(op, *args)
            if found.op == "not" and found.args[0].op == "lt":
                low, high = found.args[0].args
                found = canonical("le", high, low)
            if found.op in ("add", "mul"):
                found = _sum(read(found))
            elif found.op == "floordiv" and found.args[1].op == "const":
                form, n = read(found.args[0]), found.args[1].vmin
                if form.content() % n == 0 == form.constant % n:
                    found = _sum(form.divided(n))
            self._read[key] = found
        return found

    def moves(self, state: Expr, fixed: Collection[Expr]) -> Iterator[Move]:
        """Every application of a law to a subterm of ``state`` that is not in ``fixed``, larger subterms first."""
        for part in reversed(topological([state])):
            if part in fixed:
                continue
            for law, new in self._rewrites_of(part):
                try:
                    yield Move(law, part, new, self._exchanged(state, part, new))
                except ValueError:
                    # it would divide by zero, so it is never evaluated
                    continue

    def _exchanged(self, state: Expr, part: Expr, new: Expr) -> Expr:
        """``state`` as read, with ``new`` in the place of ``part``."""

        def exchange(term: Expr, args: tuple[Expr, ...]) -> Expr:
            return new if term is part else term if args == term.args else self._operator(term.op, args)

        return rebuild([state], exchange)[0]

    def _rewrites_of(self, term: Expr) -> list[tuple[str, Expr]]:
        """What laws make of a term itself, as read, each with the first law that makes it."""
        key = (term, self.deep, self.only)
        if key not in self._rewrites:
            found: dict[Expr, str] = {}
            for law, new in self._applications(term):
                if self.only is not None and law not in self.only:
                    continue
                try:
                    found.setdefault(self.read(new), law)
                except ValueError:
                    continue
            found.pop(term, None)
            self._rewrites[key] = [(law, new) for new, law in found.items()]
        return self._rewrites[key]

    def _applications(self, term: Expr) -> Iterator[tuple[str, Expr]]:
        yield from self.rewrites(term, self.only)
        if term in self._conjectures:
            yield "conjecture", self._conjectures[term]
        if term in self.theory.solved:
            yield "solve", self.theory.simplify(term)
        for law in _BY_OPERATOR.get(term.op, ()):
            yield from law(self, term)
        if term.is_bool and term.args:
            decided = self.theory.condition(term)
            if decided is TRUE or decided is FALSE:
                yield "decided", decided

    def _of_extreme(self, term: Expr) -> Iterator[tuple[str, Expr]]:
        """``min(x, y)`` as ``min(0, y - x) + x``, and ``min(x*k, y*k)`` as ``min(x, y)*k``."""
        if term.is_bool:
            yield "junction", canonical("and" if term.op == "min" else "or", *term.args)
            return
        members = sorted(chain_members(term, term.op), key=lambda m: m.key)
        for member in members if len(members) <= MAX_SHIFTED else ():
            if member.op != "const":
                others = [self.read(other - member) for other in members]
                yield "shift", canonical("add", joined(term.op, others), member)
        forms = list(map(read, members))
        factor = gcd(*[form.common_factor() for form in forms])
        if factor > 1:
            smaller = joined(term.op, [_sum(form.divided(factor)) for form in forms])
            yield "scale", canonical("mul", smaller, const(factor))

    def _dead_branches(self, term: Expr) -> Iterator[tuple[str, Expr]]:
        holds = self.theory.condition(term.args[0])
        if self.theory.assuming(holds) is None:
            yield "dead-branch", term.args[2]
        if self.theory.assuming(self.theory.negate(holds)) is None:
            yield "dead-branch", term.args[1]

    def _given_members(self, term: Expr) -> Iterator[tuple[str, Expr]]:
        """``p and x == 3`` as ``p`` with 3 in the place of ``x``, and ``x == 3``."""
        members = sorted(chain_members(term, "and"), key=lambda m: m.key)
        for member in members:
            if member.op == "eq" and member.args[1].op == "const" and member.args[0].args:
                rest = [m if m is member else self._exchanged(m, *member.args) for m in members]
                yield "given", joined("and", rest)

    def _implied_members(self, term: Expr) -> Iterator[tuple[str, Expr]]:
        """A conjunction or disjunction without an operand that the others decide."""
        neutral = TRUE if term.op == "and" else FALSE
        members = sorted(chain_members(term, term.op), key=lambda m: m.key)
        for member in members:
            rest = reduce(partial(canonical, term.op), [m for m in members if m is not member], neutral)
            known = self.theory.condition(rest)
            inside = self.theory.assuming(known if neutral is TRUE else self.theory.negate(known))
            if inside is not None and inside.condition(member) is neutral:
                yield "implied", rest


def _sides(comparison: Expr) -> Iterator[tuple[str, Expr]]:
    """A comparison of two sums as one of a sum with a literal; the sum is on the left if its first term is positive."""
    left, right = comparison.args
    if left.is_bool:
        return
    form = read(left).plus(read(right), -1)
    bound = -form.constant
    total = form.shifted(bound)
    is_left = total.terms and min(total.terms.items(), key=lambda term: term[0].key)[1] > 0
    sides = (_sum(total), const(bound)) if is_left else (const(-bound), _sum(total.times(-1)))
    yield "sides", canonical(comparison.op, *sides)


def _choice(selection: Expr) -> Iterator[tuple[str, Expr]]:
    condition, *branches = selection.args
    if selection.is_bool and {*branches} == {TRUE, FALSE}:
        yield "choice", condition if branches[0] is TRUE else canonical("not", condition)


def _written_out(reduction: Expr) -> Iterator[tuple[str, Expr]]:
    body, index, low, high = reduction.args
    steps = range(low.vmin, high.vmin) if low.op == high.op == "const" else ()
    if 0 < len(steps) <= MAX_STEPS and not reduction.element:
        try:
            values = [instantiate(body, index, const(step)) for step in steps]
        except ValueError:
            # it would divide by zero, so it is never evaluated
            return
        yield "unroll", reduce(partial(make, REDUCTIONS[reduction.op].combine), values)


#: The laws that are no rules, by the operator of the terms that they apply to.
_BY_OPERATOR: dict[str, tuple[Callable[[Laws, Expr], Iterator[tuple[str, Expr]]], ...]] = {
    **dict.fromkeys(("lt", "eq"), (lambda laws, term: _sides(term),)),
    **dict.fromkeys(("min", "max"), (Laws._of_extreme,)),
    **dict.fromkeys(REDUCTIONS, (lambda laws, term: _written_out(term),)),
    "where": (Laws._dead_branches, lambda laws, term: _choice(term)),
    "and": (Laws._implied_members, Laws._given_members),
    "or": (Laws._implied_members,),
}


def _sum(form: LinearForm) -> Expr:
    """The canonical sum of a form whose atoms are canonical."""
    addends = [canonical("mul", atom, const(coefficient)) for atom, coefficient in form.terms.items()]
    return joined("add", [*addends, const(form.constant)])


def written(state: Expr) -> Expr:
    """A term as read, for a reader."""

    def write(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op not in LINEAR or term.is_bool:
            return None
        form = read(make(term.op, *args))
        return written_sum(form.terms.items(), form.constant)

    return rebuild(presentable([state]), write)[0]


def law_of_reading(before: Expr, after: Expr) -> str:
    """The law by which two terms that are the same as read are equal."""
    sizes = [term_count([term]) for term in (before, after)]
    if sizes[0] == sizes[1]:
        return "reorder"
    return "collect" if {before.op, after.op} & LINEAR and not before.is_bool else "compute"


class _Reached(NamedTuple):
    """How a state was reached from one end: by how many moves, from which state, and by which move from there."""

    depth: int
    previous: Expr
    move: Move | None


class Search:
    """A search for a short chain of moves between two terms, from both ends.

    The states are terms as read. The first to be expanded are those that took few moves, and have few subterms that the
    other end lacks and lack few of its. The search gives up at the ``deadline``, by ``time.perf_counter``.
    """

    def __init__(self, laws: Laws, start: Expr, goal: Expr, deadline: float) -> None:
        self.laws, self.deadline = laws, deadline
        self.shapes = (frozenset(topological([start])), frozenset(topological([goal])))
        # subterms of both ends stay as they are, unless it is deep; but an equation may replace variables
        shared = set() if laws.deep else self.shapes[0] & self.shapes[1]
        self.fixed = {t for t in shared if t.args} - {start, goal}
        #: States with more different subterms than this are dropped.
        self.largest = 12 + 2 * max(map(len, self.shapes))
        #: Per end the states reached.
        self.reached: tuple[dict[Expr, _Reached], ...] = ({}, {})
        #: Per end a heap of the states to expand: how far off one seems, when it was reached, the state.
        self.waiting: tuple[list[tuple[int, int, Expr]], ...] = ([], [])
        self.order = count()
        #: The number of moves of the shortest chain that was found, and the state in which its two parts meet.
        self.best: tuple[int, Expr] | None = None
        self._reach(0, 0, start, start, None)
        self._reach(1, 0, goal, goal, None)

    def _reach(self, side: int, depth: int, state: Expr, previous: Expr, move: Move | None) -> None:
        if state in self.reached[side]:
            return
        shape = frozenset(topological([state]))
        if len(shape) > self.largest:
            return
        self.reached[side][state] = _Reached(depth, previous, move)
        other = self.reached[1 - side].get(state)
        if other is not None and (self.best is None or depth + other.depth < self.best[0]):
            self.best = depth + other.depth, state
        distance = len(shape ^ self.shapes[1 - side])
        heappush(self.waiting[side], (distance + 2 * depth, next(self.order), state))

    def run(self, most: int) -> list[Move] | None:
        """The moves from start to goal; ``None`` if they are not found within ``most`` states and the time."""
        expanded = 0
        while (self.waiting[0] or self.waiting[1]) and expanded < most and time.perf_counter() < self.deadline:
            near, far = self.waiting
            side = 0 if near and (not far or near[0] <= far[0]) else 1
            _, _, state = heappop(self.waiting[side])
            expanded += 1
            depth = self.reached[side][state].depth + 1
            for move in self.laws.moves(state, self.fixed):
                self._reach(side, depth, move.state, state, move)
            if self.best is not None:
                if self.best[0] <= 2:
                    break
                # a shorter chain may be near
                most = min(most, 2 * expanded + 16)
        if self.best is None:
            return None
        middle = self.best[1]
        path = [move for move, _ in self._moves_to(0, middle)][::-1]
        # the moves from the goal, turned around
        return path + [Move(move.law, move.new, move.part, before) for move, before in self._moves_to(1, middle)]

    def _moves_to(self, side: int, state: Expr) -> Iterator[tuple[Move, Expr]]:
        """The moves by which a state was reached from one end, the last first, each with the state before it."""
        _, previous, move = self.reached[side][state]
        while move is not None:
            yield move, previous
            _, previous, move = self.reached[side][previous]
