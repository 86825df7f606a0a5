"""What is cheap: frozen e-graphs as plain data, cost models, and extractors.

``graph`` is the data, ``cost`` the models, ``select`` and ``exact`` the extractors; ``exchange`` has graphs as other
programs read and write them. Nothing here knows expressions or egglog.
"""

from eqsat.extract.cost import (
    COST_MODELS,
    GPU,
    Calibrated,
    CodeSize,
    CostModel,
    Latency,
    LoopAware,
    OpCount,
    Throughput,
    cost_model,
)
from eqsat.extract.exact import Exact, exact
from eqsat.extract.exchange import from_egraph_serialize, to_dot, to_egraph_serialize
from eqsat.extract.graph import EGraph, Node
from eqsat.extract.select import Choice, Priced, dag, reachable, reaches, total_cost, tree

__all__ = [
    "COST_MODELS",
    "GPU",
    "Calibrated",
    "Choice",
    "CodeSize",
    "CostModel",
    "EGraph",
    "Exact",
    "Latency",
    "LoopAware",
    "Node",
    "OpCount",
    "Priced",
    "Throughput",
    "cost_model",
    "dag",
    "exact",
    "from_egraph_serialize",
    "reachable",
    "reaches",
    "to_dot",
    "to_egraph_serialize",
    "total_cost",
    "tree",
]
