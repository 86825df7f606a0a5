"""The order study: what the order of rules and operands decides, for greedy rewriting and for equality saturation.

Every kernel is solved again and again, each time with its operands, brackets, roots and facts shuffled and the rules in
another order. Order 0 is the one given: the input as it is, the rules as they are registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from comparison.run import Item
from comparison.shuffle import reordered
from comparison.solvers import EQSAT
from eqsat.cli.records import Row
from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import CostModel
from eqsat.lang.traversal import term_count
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT

GREEDY = "greedy"

#: The solvers of the study. Seconds never run out, so that no cost depends on how busy the machine is.
ENGINES: dict[str, dict[str, Any]] = {EQSAT: {}, GREEDY: {"engine": "greedy"}}
PATIENT = Budget(seconds=60.0)

#: How many distinct terms a kernel of the study has: fewer leave nothing to order, more take too long.
LEAST_NODES, MOST_NODES = 12, 500


def kernels(items: Sequence[Item], most: int, seed: int) -> list[Item]:
    """Up to ``most`` of the items, chosen by ``seed``."""
    fitting = [item for item in items if LEAST_NODES <= term_count(item.case.exprs) <= MOST_NODES]
    return fitting if len(fitting) <= most else Random(seed).sample(fitting, most)


@cache
def rules_in_order(order: int) -> tuple[Rule, ...]:
    """The rules in one of many orders, those that work both ways turned or not; 0 is that of registration."""
    if not order:
        return DEFAULT
    random = Random(order)
    rules = random.sample(DEFAULT, len(DEFAULT))
    return tuple([_turned(rule) if rule.both_ways and random.random() < 0.5 else rule for rule in rules])


def _turned(rule: Rule) -> Rule:
    return replace(rule, left=rule.right, right=rule.left, check=False)


def study(items: Sequence[Item], orders: Sequence[int], gates: bool, model: CostModel) -> Iterator[Row]:
    """Per order ``{"order", "costs": {engine: [cost per item]}}``, as they come."""
    for order in orders:
        rules = rules_in_order(order)
        cases = [reordered(item.case, order) if order else item.case for item in items]
        costs: dict[str, list[int]] = {engine: [] for engine in ENGINES}
        for case in cases:
            for engine, options in ENGINES.items():
                found = optimize(
                    case.exprs,
                    gates=case.gates if gates else (),
                    constraints=case.constraints,
                    rules=rules,
                    cost=model,
                    budget=PATIENT,
                    **options,
                )
                costs[engine].append(found.cost)
        yield {"order": order, "costs": costs}


def spread(rows: Sequence[Row], engine: str) -> list[list[int]]:
    """Per kernel the costs of all orders."""
    return [list(costs) for costs in zip(*(row["costs"][engine] for row in rows), strict=True)]


def summary(rows: Sequence[Row]) -> Mapping[str, Mapping[str, Any]]:
    """Per engine: the kernels whose cost depends on the order, and total costs.

    Of each kernel's cheapest order, of the order given, of each one's most expensive order; and of each other order.
    """
    lines = {}
    for engine in ENGINES:
        costs = spread(rows, engine)
        lines[engine] = {
            "kernels": len(costs),
            "vary": sum(len(set(found)) > 1 for found in costs),
            "least": sum(map(min, costs)),
            "given": sum(found[0] for found in costs),
            "most": sum(map(max, costs)),
            "orders": [sum(found) for found in zip(*costs, strict=True)],
        }
    return lines
