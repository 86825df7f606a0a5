"""One saturation by rules alone, over terms as they are written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from eqsat.alternatives.builder import Builder
from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.egraph.tables import Tables
from eqsat.extract.graph import EQUALITY, EGraph, united
from eqsat.lang.expr import Expr
from eqsat.lang.traversal import buffer_key, buffers, topological, variables
from eqsat.optimizer.saturation import saturate
from eqsat.rules import DEFAULT
from eqsat.theory.structural import StructuralArithmetic

BUDGET = Budget(nodes=2000)


@dataclass
class Found:
    """What rules made of roots: the e-graph, and which of its classes are one."""

    builder: Builder
    roots: list[int]
    stop: str
    matches: dict[str, int]

    @property
    def graph(self) -> EGraph:
        return self.builder.graph

    def are_one(self, one: int = 0, other: int = 1) -> bool:
        """Whether two roots, given by their places, are in one class: they have a node in common, or are linked."""
        nodes = [(c, node) for c, own in self.graph.classes.items() for node in own]
        home = united(self.graph, [(c, node[2][0]) for c, node in nodes if node[:2] == EQUALITY])[1]
        return home[self.roots[one]] == home[self.roots[other]]


class Partial(Tables):
    """A warm session that may leave out some of its rules."""

    left_out: frozenset[str] = frozenset()

    def _able(self, with_broad: bool) -> tuple[tuple[str, ...], ...]:
        able = super()._able(with_broad)
        left_out = {names for way, names in self._ways if way.name in self.left_out}
        return tuple([names for names in able if names not in left_out])


@cache
def tables(rules: tuple[Rule, ...]) -> Partial:
    """A warm session for these rules."""
    return Partial(rules)


def saturated(
    roots: Sequence[Expr],
    facts: Sequence[Expr] = (),
    rules: Sequence[Rule] = DEFAULT,
    budget: Budget = BUDGET,
    without: Collection[str] = (),
) -> Found:
    """The e-graph that rules make of terms, all but those ``without`` names."""
    theory = StructuralArithmetic(facts)
    order = topological([*roots, *facts])
    names = {str(v.value): v for v in variables(order)} | {buffer_key(a): a for a in buffers(order)}
    builder = Builder(theory, names)
    builder.input.add(topological(roots))
    values = [theory.value(root) for root in roots]
    builder.add_roots(values)
    builder.grow()
    session = tables(tuple(rules))
    session.left_out = frozenset(without)
    found = saturate(builder, session, budget, lambda seconds: False)
    return Found(builder, [builder.add_class(value) for value in values], found.stop, dict(session.matches))
