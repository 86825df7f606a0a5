"""E-graphs as plain data: classes that become one, and what nodes add."""

from collections import Counter

import pytest

from eqsat.extract import EGraph
from eqsat.extract.graph import added, flattened, united

WHOLE = EGraph({0: [("var", "x", ())]}, {0: (0, 9)}, [0]).to_dict()


@pytest.mark.parametrize("record", [3, {}, WHOLE | {"classes": [1]}, WHOLE | {"classes": {"0": [["var"]]}}])
def test_a_record_of_no_e_graph_is_refused_in_one_line(record):
    assert EGraph.from_dict(WHOLE).roots == [0]
    with pytest.raises(ValueError, match=r"^the record is no e-graph: give what EGraph.to_dict\(\) returned$"):
        EGraph.from_dict(record)


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


def test_a_sum_of_classes_that_become_one_has_that_once():
    nodes = [[("var", "x", ())], [("var", "y", ())], [("sum", (3, (1, 2)), (0, 1))], [("sum", (3, (2, -2)), (0, 1))]]
    found, _ = united(EGraph(dict(enumerate(nodes)), dict.fromkeys(range(4), (0, 9))), [(0, 1)])
    assert (found.classes[2], found.classes[3]) == ([("sum", (3, (3,)), (0,))], [("const", 3, ())])


def test_a_class_that_becomes_one_with_what_is_computed_once_is_computed_once():
    nodes = {0: [("var", "x", ())], 1: [("var", "$r", ())]}
    found, _ = united(EGraph(nodes, dict.fromkeys(nodes, (0, 9)), [], {1: 10}), [(0, 1)])
    assert found.weights == {0: 1}


#: Nodes over the variables 0 and 1 and the literal 2, which is 5, and the constant and coefficients that they add.
ADDED = [
    (("sum", (3, (1, -2)), (0, 1)), (3, {0: 1, 1: -2})),
    (("add", None, (0, 1)), (0, {0: 1, 1: 1})),
    (("add", None, (0, 0)), (0, {0: 2})),
    (("sub", None, (0, 1)), (0, {0: 1, 1: -1})),
    (("sub", None, (0, 0)), (0, {0: 0})),
    (("neg", None, (0,)), (0, {0: -1})),
    (("mul", None, (0, 2)), (0, {0: 5})),
    (("mul", None, (2, 0)), (0, {0: 5})),
    (("const", 7, ()), (7, {})),
    (("mul", None, (0, 1)), None),
    (("min", None, (0, 2)), None),
    (("var", "x", ()), None),
]


@pytest.mark.parametrize(("node", "wanted"), ADDED)
def test_what_a_node_adds(node, wanted):
    assert added({0: ("var", "x", ()), 1: ("var", "y", ()), 2: ("const", 5, ())}, node) == wanted


def test_a_sum_is_flat_but_for_what_is_used_elsewhere():
    # (x + 5)*8 - (x + 5) + y
    choice = {
        0: ("var", "x", ()),
        1: ("var", "y", ()),
        2: ("const", 5, ()),
        3: ("const", 8, ()),
        4: ("add", None, (0, 2)),
        5: ("mul", None, (4, 3)),
        6: ("sub", None, (5, 4)),
        7: ("add", None, (6, 1)),
    }
    uses = Counter([7, *[a for _, _, args in choice.values() for a in args]])
    assert flattened(choice, 7, uses) == (35, {0: 7, 1: 1}, [1, 0], [7, 6, 5, 4])
    # what is kept stays
    assert flattened(choice, 7, uses, {5}) == (0, {5: 1, 4: -1, 1: 1}, [1, 5], [7, 6])
    # as does what another class uses too, and what only a part that stays would use
    assert flattened(choice, 7, uses + Counter([4])) == (0, {4: 7, 1: 1}, [1], [7, 6, 5])
    assert flattened(choice, 1, uses) == (0, {1: 1}, [], [])
