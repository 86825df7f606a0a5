"""E-graphs as plain data: classes that become one."""

from eqsat.extract import EGraph
from eqsat.extract.graph import united


def test_congruence_follows_unions():
    add, neg = ("sum", (0, (1, 1)), (0, 1)), ("sum", (0, (1, 1)), (0, 2))
    nodes = [
        [("var", "x", ())],
        [("var", "y", ())],
        [("var", "z", ())],
        [add],
        [neg],
        [("neg", None, (3,))],
        [("neg", None, (4,))],
    ]
    graph = EGraph(dict(enumerate(nodes)), {c: (-c, 9) for c in range(7)})
    found, home = united(graph, [(1, 2)])
    assert home[6] == home[5] == 5
    assert found.classes[3] == [add]
    assert found.bounds[1] == (-1, 9)
