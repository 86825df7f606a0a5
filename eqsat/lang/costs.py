"""What terms cost under a cost model: each distinct node once, or as often as it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import prod

from eqsat.extract.cost import COST_MODELS, CostModel, LoopAware, OpCount, checked
from eqsat.lang.expr import Expr, topological
from eqsat.lang.hoist import levels
from eqsat.lang.ops import FLOATS, OPS, REDUCTIONS
from eqsat.lang.traversal import VariableSets

LATENCY = COST_MODELS["latency"]


def refuse_unknown_weights(model: CostModel) -> None:
    """Raise ``ValueError`` if an :class:`OpCount` weighs what is no operator: it would count for nothing."""
    model = model.model if isinstance(model, LoopAware) else model
    if isinstance(model, OpCount):
        known = [*OPS, *FLOATS, *REDUCTIONS, "load", "store"]
        if unknown := [op for op in model.weights if op not in known]:
            near = "".join(f"; did you mean {op!r}?" for op in get_close_matches(str(unknown[0]), known, 1))
            raise ValueError(f"the cost model weighs {unknown[0]!r}, which is no operator{near}")


def cost_of(roots: Iterable[Expr], model: CostModel) -> int:
    """The cost of ``roots`` under ``model``: each distinct node once, or as often as it runs."""
    return cost_of_terms(topological(roots), checked(model))


def cost_of_terms(terms: Sequence[Expr], model: CostModel) -> int:
    """The cost of distinct ``terms``, which have their operands among them, those first."""
    return sum(_costs(terms, model))


def _costs(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """What each term costs without its operands."""
    if isinstance(model, LoopAware):
        level = levels(terms, model)
        runs = [model.runs(level[t]) for t in terms]
        return [count * price for count, price in zip(runs, prices(terms, model.model), strict=True)]
    return prices(terms, model)


def costs_alone(roots: Iterable[Expr], model: CostModel) -> dict[Expr, int]:
    """The cost of each root as if there were no other."""
    roots = dict.fromkeys(roots)
    terms = topological(roots)
    own = dict(zip(terms, _costs(terms, model), strict=True))
    return {root: sum([own[term] for term in topological([root])]) for root in roots}


def prices(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """The price of each term alone; in the body of a reduction, for all its steps."""
    found = [model.price(t.op, [(a.vmin, a.vmax) for a in t.args], (t.vmin, t.vmax)) if t.args else 0 for t in terms]
    if not REDUCTIONS.keys().isdisjoint([t.op for t in terms]):
        sets = VariableSets()
        for place, term in enumerate(terms):
            indices = sets.of(term)
            found[place] *= prod([extent for bit, extent in sets.index_extents.items() if indices & bit])
    return found
