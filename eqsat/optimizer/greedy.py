"""The greedy baseline: the same rules, applied destructively in registration order, bottom-up, to a fixpoint.

This is how tinygrad and Morok rewrite: at each term, operands first, the first rule that matches replaces it, and what
was there is gone. So the order of the rules decides the answer, as it does not in an e-graph. The order is a parameter;
by default it is that of :data:`eqsat.rules.FAMILIES`, each family from top to bottom.

Order and brackets of commutative operators are fixed instead of by rules (:mod:`eqsat.optimizer.canonical_terms`), and
of rules that would run in a circle some are left out (:mod:`eqsat.optimizer.matcher`). Other circles are left where
they close, and counted. Rules that hide divisions are left out too: where both sides are kept they do no harm, but here
no other rule for divisions would match again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple, cast

from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, make, substitute, var
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.traversal import topological, variables
from eqsat.lang.validation import list_of, refuse_seconds
from eqsat.optimizer.canonical_terms import canonical, canonical_terms, is_literal, presentable
from eqsat.optimizer.matcher import Matcher, conjuncts
from eqsat.rules import DEFAULT
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.definedness import divides_outside_branches
from eqsat.theory.linear import LinearArithmetic


@cache
def _selects_divisions(rule: Rule) -> bool:
    """Whether a rule makes a selection of a division."""
    pattern = rule.pattern
    return pattern.left.op in DIVISIONS and any(t.op == "where" for t in topological([pattern.right]))


class Rewritten(NamedTuple):
    """What :func:`rewrite` made."""

    #: The fixpoint, or what was reached.
    roots: list[Expr]
    #: By rule, how often it was applied.
    matches: dict[str, int]
    #: ``"saturated"``, ``"iterations"`` or ``"time"``.
    stop: str
    #: The rules in the order of their applications; with ``limit=n`` the first ``n`` are repeated.
    applied: list[str]
    #: How many terms became, step by step, themselves again.
    circles: int


def rewrite(
    roots: Sequence[Expr],
    rules: Sequence[Rule] = DEFAULT,
    facts: Sequence[Expr] = (),
    limit: int = 10_000,
    seconds: float = 2.0,
) -> Rewritten:
    """Rewrite ``roots`` bottom-up until no rule matches.

    Parameters
    ----------
    rules : sequence of Rule
        At each term the first one that matches is applied: their order can change the result.
    facts : iterable of bool Expr
        Conditions known to hold; what they say about single variables narrows their ranges, the rest is ignored.
    limit : int
        The most rule applications.
    seconds : float
        The time after which no rule is applied any more. Expressions that then take long to finish stay as given.

    Returns
    -------
    Rewritten
        ``stop`` is ``"saturated"``, ``"time"``, or ``"iterations"`` if the limit was reached or rules ran in a circle;
        every circle is left where it closes, and counted in ``circles``.

    Raises
    ------
    ValueError
        If the facts contradict each other, or there are less than 0 seconds.

    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> found = rewrite([(i*32 + j) // 32, (i*32 + j) % 32])
    >>> found.roots, found.stop
    ([Expr('i'), Expr('j')], 'saturated')
    """
    refuse_seconds(seconds)
    roots, facts = list_of(Expr, roots, "the expressions to rewrite"), list_of(Expr, facts, "the facts")
    work = Work.ending(time.perf_counter() + seconds)
    narrowed = _narrowed(roots, facts, work.until) if facts else {}
    given = [*roots, *facts]
    try:
        given = substitute(given, narrowed) if narrowed else given
    except ValueError:
        # a variable that is always zero divides what is never evaluated
        narrowed = {}
    known = canonical_terms(given[len(roots) :])
    usable = tuple([rule for rule in rules if not _selects_divisions(rule)])
    rewriter = _Rewriter(usable, frozenset(chain(*map(conjuncts, known))), limit, work)
    found: list[Expr] = []
    try:
        for root in given[: len(roots)]:
            found.append(rewriter.normal_form(root))
    except OverdueError:
        # the other roots stay as they are
        rewriter.stop = "time"
    wide = {narrow: wide for wide, narrow in narrowed.items()}
    try:
        finished = presentable(found, wide, work)
    except OverdueError:
        return Rewritten([*roots], {}, "time", [], 0)
    matches = dict(Counter(rewriter.applied))
    return Rewritten([*finished, *roots[len(finished) :]], matches, rewriter.stop, rewriter.applied, rewriter.circles)


def _narrowed(roots: Sequence[Expr], facts: Sequence[Expr], deadline: float) -> dict[Expr, Expr]:
    """The variables whose range the facts narrow, as far as that is seen in time, each with one of that range."""
    theory = LinearArithmetic(facts, work=Work(until=deadline))
    found = {}
    for variable in variables([*roots, *facts]):
        low, high = theory.range(variable)
        if (low, high) != (variable.vmin, variable.vmax):
            found[variable] = var(cast(str, variable.value), low, high)
    return found


class _Rewriter(Matcher):
    """One run: what every term met so far has become."""

    def __init__(self, rules: tuple[Rule, ...], known: frozenset[Expr], limit: int, work: Work) -> None:
        super().__init__(rules)
        self.known = known
        self.left = limit
        self.work = work
        self.applied: list[str] = []
        self.circles = 0
        self.stop = "saturated"
        self.final: dict[Expr, Expr] = {}
        # terms that `canonical` made, which it would leave as they are
        self.canonical: set[Expr] = set()

    def holds(self, condition: Expr) -> bool:
        """Whether the condition is true by its bounds or is one of the facts."""
        return condition.vmin == 1 or condition in self.known

    def may_leave_branch(self, term: Expr) -> bool:
        """Whether a term divides by nothing that may be zero, but in branches of its own."""
        return not divides_outside_branches(term)

    def normal_form(self, root: Expr) -> Expr:
        """``root`` rewritten to a fixpoint, operands first; raises ``OverdueError`` at the end of the work."""
        final = self.final
        # what terms become next; all of them are on the stack, so one that is met again closes a circle
        becoming: dict[Expr, Expr] = {}
        stack = [root]
        while stack:
            term = stack[-1]
            if term in final:
                stack.pop()
            elif (following := becoming.get(term)) is not None:
                final[term] = final[following]
                stack.pop()
            elif waiting := [a for a in term.args if a not in final]:
                for arg in waiting:
                    if arg in becoming:
                        self._leave(arg)
                stack += [a for a in waiting if a not in final]
            else:
                following = self._follow(term)
                if following is term:
                    final[term] = term
                    stack.pop()
                elif (end := final.get(following)) is not None:
                    final[term] = end
                    stack.pop()
                elif following in becoming:
                    self._leave(term)
                else:
                    becoming[term] = following
                    stack.append(following)
        return final[root]

    def _leave(self, term: Expr) -> None:
        """Rewrite ``term``, where a circle closes, no further."""
        self.final[term] = term
        self.circles += 1
        self.stop = "iterations"

    def _follow(self, term: Expr) -> Expr:
        """What ``term`` becomes next, its operands being final: the term itself if nothing is to be done."""
        if is_literal(term):
            return term
        late = self.work.late_or_raise()
        if late:
            self.stop = "time"
        args = tuple([self.final[a] for a in term.args])
        if args != term.args or (args and term not in self.canonical):
            if late and term.op in REDUCTIONS:
                # an index of one value keeps its name: the reduction binds it
                args = (args[0], term.args[1], *args[2:])
            try:
                # sorting a chain makes new chains below it, which would have to be sorted in turn
                rebuilt = make(term.op, *args) if late else canonical(term.op, *args)
            except ValueError:
                # never evaluated: simplified, its divisor is always zero
                return term
            self.canonical.add(rebuilt)
            if rebuilt is not term:
                return rebuilt
        if late:
            return term
        for name, result in self.rewrites(term):
            if not self.left:
                self.stop = "iterations"
                return term
            self.left -= 1
            self.applied.append(name)
            self.canonical.add(result)
            return result
        return term
