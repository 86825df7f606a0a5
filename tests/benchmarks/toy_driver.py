"""A driver without a peer: it answers with the input, or misbehaves as the name of the case's first variable says.

``python toy_driver.py [silent]``; terms of its own are nested tuples.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers" / "drivers"))

from wire import LEAVES, Alternative, Case, Clock, Node, Table, from_peer, serve, to_peer

OPERATORS = ["or", "and", "not", "lt", "le", "eq", "ne", "add", "sub", "mul", "floordiv", "mod", "neg", "tdiv", "tmod"]
OPERATORS += ["min", "max", "where"]


def _operands(term: tuple) -> tuple:
    return () if term[0] in LEAVES else term[1:]


def _node(table: Table, term: tuple, below: list[int]) -> int:
    return table.add(*term[:2]) if term[0] in LEAVES else table.add(term[0], *below)


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """The input under the mode ``"same"``, and whatever else the first variable's name asks for."""
    terms = to_peer(case, tuple, {name: partial(lambda name, *x: (name, *x), name) for name in OPERATORS})
    table = Table()
    with clock.running():
        roots = from_peer([terms[root] for root in case.roots], id, _operands, partial(_node, table))
    yield "same", table, roots
    match _first_variable(case.nodes):
        case "zero":
            yield "zero", table, [table.add("const", 0)] * len(roots)
        case "raises":
            raise ValueError("it raised")
        case "dies":
            os._exit(3)
        case "loops":
            while True:
                pass
        case "late":
            while True:
                with clock.running():
                    pass


def _first_variable(nodes: list[Node]) -> str:
    return next((node[1] for node in nodes if node[0] == "var"), "")


if __name__ == "__main__":
    if "silent" in sys.argv:
        sys.exit("the peer is not there")
    print("what a peer prints is no answer")
    serve("1.0", simplify)
