"""Kernels on which greedy rewriting loses, step by step: which step gives the cheapest answer away.

After each rule that greedy rewriting applies, the term is handed to greedy rewriting again, in many orders of the
rules. Where the least cost that any of them reaches rises, that step has destroyed what a cheaper answer needs. If it
is above equality saturation's all the way, no order tried finds that answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comparison.orders import GREEDY, rules_in_order
from comparison.run import Item, key_of
from comparison.solvers import EQSAT
from eqsat.cli.records import Row
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr
from eqsat.optimizer.front import optimize
from eqsat.optimizer.greedy import rewrite

#: The orders of rules that are tried from each step on (0: that of registration), and how many terms and steps a kernel
#: may have: more cannot be read.
ORDERS = range(25)
MOST_NODES, MOST_STEPS = 26, 9


@dataclass(frozen=True)
class Step:
    """What one rule made of the whole kernel."""

    #: ``None`` for the input.
    rule: Rule | None
    #: The roots after it.
    roots: list[Expr]
    #: The least cost that greedy rewriting reaches from there, over all orders tried.
    reachable: int


@dataclass(frozen=True)
class Attempt:
    """What greedy rewriting makes of a kernel in one order of the rules, and by which of them."""

    cost: int
    roots: list[Expr]
    rules: list[Rule]


@dataclass(frozen=True)
class Walkthrough:
    """One kernel, rewritten greedily in the order given, and what others make of it."""

    item: Item
    steps: list[Step]
    #: Of the order given.
    cost: int
    #: The cheapest and the most expensive of all orders tried.
    best: Attempt
    worst: Attempt
    #: What equality saturation finds by the same rules and the theory, at ``saturated_cost``.
    saturated: list[Expr]
    saturated_cost: int

    @property
    def lost(self) -> list[Step]:
        """The steps after which the least cost within reach is higher than before."""
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return [after for before, after in pairs if after.reachable > before.reachable]


def walkthroughs(items: Sequence[Item], rows: Sequence[Row], model: CostModel, count: int) -> list[Walkthrough]:
    """``count`` kernels without facts that cost more by greedy rewriting, those where the order matters first."""
    worse = {
        key_of(row)
        for row in rows
        if row["answers"][GREEDY]["cost"] > row["answers"][EQSAT]["cost"] and row["nodes"] <= MOST_NODES
    }
    found: list[Walkthrough] = []
    for item in items:
        if item.key in worse and not item.case.gates and not item.case.constraints:
            walk = walkthrough(item, model)
            if 1 < len(walk.steps) <= MOST_STEPS:
                found.append(walk)
    found.sort(key=lambda walk: (not walk.lost, walk.best.cost - walk.worst.cost, walk.saturated_cost - walk.cost))
    return found[:count]


def walkthrough(item: Item, model: CostModel) -> Walkthrough:
    """The steps of one kernel without gates and constraints."""
    exprs = item.case.exprs
    attempts = _attempts(exprs, model)
    best = min(attempts, key=lambda attempt: attempt.cost)
    worst = max(attempts, key=lambda attempt: attempt.cost)
    steps = [Step(None, exprs, best.cost)]
    for count, rule in enumerate(attempts[0].rules, start=1):
        roots = rewrite(exprs, rules_in_order(0), limit=count).roots
        steps.append(Step(rule, roots, min(attempt.cost for attempt in _attempts(roots, model))))
    saturated = optimize(exprs, cost=model)
    return Walkthrough(item, steps, attempts[0].cost, best, worst, list(saturated.exprs), saturated.cost)


def _attempts(roots: Sequence[Expr], model: CostModel) -> list[Attempt]:
    """What greedy rewriting makes of ``roots``, in each order of the rules; that of registration comes first."""
    found = []
    for order in ORDERS:
        rules = {rule.name: rule for rule in rules_in_order(order)}
        rewritten = rewrite(roots, list(rules.values()))
        applied = [rules[name] for name in rewritten.applied]
        found.append(Attempt(cost_of(rewritten.roots, model), rewritten.roots, applied))
    return found
