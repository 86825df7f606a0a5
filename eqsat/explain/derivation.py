"""Why a result equals its input: a derivation, one law at a time, that a person can read and that is checked.

How the answer was found does not matter here. Operands first, each subterm of the input is brought into the form that
the answer has for it, or into a shorter one if the theory knows one (:mod:`eqsat.explain.plan`), and
:mod:`eqsat.explain.chains` looks for a short chain of laws between the two. Then laws are dropped, one after the
other, as long as a derivation by the others remains.

Every step is compared by :func:`eqsat.prove.verify.check_equal` when it is made, wherever its constraints, its gate and
the conditions around it hold. The steps are made on the input one by one, and what they leave is the answer.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from eqsat.egraph.rule import Rule
from eqsat.explain.chains import WITHOUT_PATTERN, laws_with
from eqsat.explain.plan import ATTEMPTS, Link, Plan, Task, coarse_law
from eqsat.lang.errors import UnsoundStepError
from eqsat.lang.expr import Expr, brief
from eqsat.lang.terms import all_of
from eqsat.lang.traversal import topological
from eqsat.lang.validation import refuse_seconds
from eqsat.optimizer.matcher import Matcher
from eqsat.optimizer.result import Result
from eqsat.prove.explanation import COARSE, Explanation, Step, replaced_within
from eqsat.prove.verify import STEPS, Check, check_equal, prove_equal

#: Steps are checked at every point if there are no more than this.
MAX_POINTS = 2**18
#: Otherwise they are checked at this number of points.
SAMPLES = 2000
#: The share of the time after which no further law is dropped.
SPARING = 0.8


def explain(
    result: Result, *, only: Collection[str] | None = None, prove: bool = False, seconds: float = 5.0
) -> Explanation:
    """Derive the output of ``result`` from its input in small checked steps, by few laws.

    Parameters
    ----------
    only : collection of str, or None
        The names of the laws that may be cited; None for all. What they do not reach takes coarse steps.
    prove : bool
        Prove each step that has too many points to be checked at every one (more with the extra: check).
    seconds : float
        About how long it may take, but for what a process does once, such as compiling rules. What is not derived by
        then is one coarse step per root.

    Raises ``UnsoundStepError`` if the sides of a step differ, ``ValueError`` if there are less than 0 seconds,
    ``TypeError`` if ``only`` is a single name.

    >>> from eqsat.optimizer.front import optimize
    >>> print(explain(optimize("R0//8*8 + R0%8", R0=(0, 31))))
    R0//8*8 + R0%8
      = R0    mod-core: x = (x//n)*n + x%n  [at all 32 points]
    <BLANKLINE>
    By one law:
      mod-core  x % n + (x // n)*n = x
    """
    refuse_seconds(seconds)
    if isinstance(only, str):
        raise TypeError(f"the laws that may be cited are given as {only!r}: give a list of str")
    return _Explainer(result, only, prove, seconds).run()


class _Explainer:
    """One derivation of all roots."""

    def __init__(self, result: Result, only: Collection[str] | None, prove: bool, seconds: float) -> None:
        self.result, self.prove = result, prove
        self.steps: list[Step] = []
        self.cited: frozenset[str] = frozenset()
        self.minimal = False
        rules = laws_with(result.rule_set)
        # a process compiles them once, which is not within the time
        Matcher(rules)
        self.task = Task(result, None if only is None else frozenset(only), seconds)
        self.why = {**WITHOUT_PATTERN, **COARSE, **{rule.name: rule.why for rule in rules}}
        self.statements = {**WITHOUT_PATTERN, **COARSE, **{rule.name: statement(rule) for rule in rules}}

    def run(self) -> Explanation:
        result = self.result
        members: dict[Expr | None, list[int]] = defaultdict(list)
        for index, gate in enumerate(result.gates):
            members[gate].append(index)
        plans = [Plan(self.task, gate, indices) for gate, indices in members.items()]
        links = [link for plan in plans for link in plan.links]
        self._spare_laws(links)
        self.cited = frozenset({law for link in links for law in link.cites()})
        for plan in plans:
            self._make(plan)
        cited = dict.fromkeys(step.law for step in self.steps)
        laws = {law: self.statements[law] for law in cited}
        known = (result.before, result.exprs, result.constraints, result.gates)
        return Explanation(*known, tuple(self.steps), laws, self.minimal)

    def _spare_laws(self, links: Sequence[Link]) -> None:
        """Drop laws one after the other, the least used first, where those that remain suffice."""
        uses = Counter(law for link in links for law in link.cites() if law not in COARSE)
        for law in sorted(uses, key=lambda name: (uses[name], name)):
            concerned = [link for link in links if law in link.cites()]
            others = frozenset({name for link in links for name in link.cites()} - {law})
            spared = [replace(link) for link in concerned]
            if all(link.find(others, self.task.until(SPARING), ATTEMPTS) for link in spared):
                for link, found in zip(concerned, spared, strict=True):
                    link.law, link.moves = found.law, found.moves
        self.minimal = not self.task.is_late(SPARING)

    def _make(self, plan: Plan) -> None:
        """Make the steps of a plan on its roots, and one coarse step for each that they do not bring to its answer."""
        roots = [*plan.before]
        below = set(topological(roots))
        for link in plan.links:
            if self.task.is_late(1):
                break
            if link.before in below:
                self._take(link, plan, roots)
                below = set(topological(roots))
        for before, after in zip([*roots], plan.after, strict=True):
            # an earlier step may have changed the term that a link begins with
            if before is not after and (rest := plan.link(before, after)) and self._find(rest):
                self._take(rest, plan, roots)
        for index, before, after in zip(plan.members, roots, plan.after, strict=True):
            if before is not after:
                self._make_at_once(plan, index, before, after)

    def _make_at_once(self, plan: Plan, index: int, before: Expr, after: Expr) -> None:
        """Make one coarse step on a root."""
        law = "never" if plan.theory is None else coarse_law(plan.theory, before, after)
        check = self._check(plan.gate, (), law, before, after)
        if check.kind == "exhaustive" and not check.points:
            law = "never"
        self.steps.append(Step((index,), before, after, (), law, self.why[law], None, check))

    def _take(self, link: Link, plan: Plan, roots: list[Expr]) -> None:
        """Take the steps of a link on the roots, which change."""
        for before, after, law, instance in link.steps():
            try:
                changed = replaced_within(roots, before, after, link.given)
            except ValueError:
                # it would divide by what is always zero, so it is never evaluated
                break
            pairs = zip(plan.members, roots, changed, strict=True)
            members = tuple([member for member, old, new in pairs if old is not new])
            roots[:] = changed
            if members:
                check = self._check(plan.gate, link.given, law, before, after)
                self.steps.append(Step(members, before, after, link.given, law, self.why[law], instance, check))

    def _find(self, link: Link) -> bool:
        """Find the moves of a link that was not planned, by the laws that are cited already if these do."""
        for laws in (self.cited, self.task.only):
            if link.find(laws, self.task.until(SPARING), ATTEMPTS):
                self.minimal = self.minimal and laws is self.cited
                return True
        return False

    def _check(self, gate: Expr | None, given: Sequence[Expr], law: str, before: Expr, after: Expr) -> Check:
        """Compare the two sides of a step."""
        conditions = [*given] if gate is None else [gate, *given]
        gates = [all_of(conditions) if conditions else None]
        known: dict[str, Any] = {"constraints": self.result.constraints, "gates": gates}
        check = check_equal([before], [after], **known, most=MAX_POINTS, samples=SAMPLES, steps=STEPS)
        if self.prove and check.equal and check.kind in ("sampled", "unchecked"):
            left = max(0.1, self.task.until(1) - time.perf_counter())
            check = prove_equal([before], [after], **known, seconds=left)
        if not check.equal:
            raise UnsoundStepError(f"by {law}, {brief(before)!r} is not {brief(after)!r}: see {check.counterexample}")
        return check


def statement(rule: Rule) -> str:
    """What a rule says, and when."""
    return f"{rule.left} = {rule.right}" + (f"  when {rule.when}" if rule.when else "")
