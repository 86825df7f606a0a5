"""E-graphs that other programs have written."""

import json

import pytest

from eqsat import buffer, optimize, parse, var
from eqsat.extract import Latency, Priced, dag, from_egraph_serialize, to_egraph_serialize, total_cost

#: x*2 and x << 1 in one class, as extraction-gym names nodes and classes.
RECORD = {
    "nodes": {
        "x": {"op": "x", "children": [], "eclass": "x$", "cost": 1.0},
        "two": {"op": "2", "children": [], "eclass": "two$", "cost": 1.0},
        "mul": {"op": "*", "children": ["x", "two"], "eclass": "root$", "cost": 5.0},
        "shl": {"op": "<<", "children": ["x", "one"], "eclass": "root$", "cost": 2.0},
        "one": {"op": "1", "children": [], "eclass": "one$", "cost": 1.0},
    },
    "root_eclasses": ["root$"],
}


def test_a_graph_of_another_program_is_extracted_from():
    read = from_egraph_serialize(RECORD)
    choice = dag(read)
    assert choice[read.graph.roots[0]][0] == "<<"
    assert total_cost(read, choice) == 4


def test_a_node_that_is_there_twice_costs_the_lesser_of_both():
    again = {f"shl{cost}": RECORD["nodes"]["shl"] | {"cost": cost} for cost in (1, 3)}
    read = from_egraph_serialize(RECORD | {"nodes": RECORD["nodes"] | again})
    assert total_cost(read, dag(read)) == 3


def test_classes_are_told_apart_by_their_names():
    nodes = {name: {"op": name, "children": [], "eclass": name, "cost": 0} for name in ("7", "07")}
    assert len(from_egraph_serialize({"nodes": nodes, "root_eclasses": ["7"]}).graph.classes) == 2


def test_a_node_without_children_is_a_leaf_and_one_without_a_cost_costs_1_as_the_format_has_it():
    nodes = {"x": {"op": "x", "eclass": "x"}, "neg": {"op": "neg", "children": ["x"], "eclass": "root", "cost": 2}}
    read = from_egraph_serialize({"nodes": nodes, "root_eclasses": ["root"]})
    assert read.graph.classes == {0: [("var", "x", ())], 1: [("neg", None, (0,))]}
    assert read.prices == {0: [1], 1: [2]}


def test_a_leaf_called_like_a_sum_is_a_variable():
    node = {"op": "sum total", "children": [], "eclass": "a", "cost": 0}
    read = from_egraph_serialize({"nodes": {"n": node}, "root_eclasses": ["a"]})
    assert read.graph.classes == {0: [("var", "sum total", ())]}


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("where(x < n, x//n, x%n*3 - 7)", {"x": (0, 99), "n": (1, 9)}),
        ("sum(where(r < n, x, 0), r, 0, 9) + (x + n)//2", {"x": (0, 99), "n": (1, 9)}),
        ("x*2 + y%n", {"x": (None, 5), "y": (0, None), "n": (1, 9)}),
    ],
)
def test_what_is_written_is_read(text, ranges):
    graph = optimize(text, **ranges).graph
    prices = Priced.of(graph, optimize(text, **ranges).model).prices
    read = from_egraph_serialize(json.loads(json.dumps(to_egraph_serialize(graph, prices))))
    assert read.prices == prices
    assert read.graph.classes == graph.classes
    assert graph.bounds == read.graph.bounds
    assert graph.weights == read.graph.weights


def test_a_buffer_is_read_as_one():
    graph = optimize(parse("sum(A[r]*x, r, 0, 8)", {"A": buffer("A", "int"), "x": var("x", 0, 9)})).graph
    assert ("buffer", "A[]", ()) in [node for nodes in graph.classes.values() for node in nodes]
    read = from_egraph_serialize(to_egraph_serialize(graph, Priced.of(graph, Latency()).prices))
    assert read.graph == graph


WRONG = [
    ({"cost": 1.5}, "node 'x' costs 1.5: give whole numbers of 0 or more"),
    ({"cost": -1}, "node 'x' costs -1"),
    ({"cost": float("nan")}, "node 'x' costs nan"),
    ({"cost": "1"}, "node 'x' costs '1': give whole numbers of 0 or more"),
    ({"eclass": 7}, "the eclass of node 'x' is 7: give text"),
    ({"op": None}, "the op of node 'x' is None: give text"),
    ({"children": ["z"]}, "node 'x' has the child 'z', which is no node"),
    ({"children": [["one"]]}, r"node 'x' has the child \['one'\], which is no node"),
    ({"children": None}, "the children of node 'x' are None: give a list of nodes"),
    ({"children": "one"}, "the children of node 'x' are 'one': give a list of nodes"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_no_graph_is_one_line(change, message):
    node = RECORD["nodes"]["x"] | change
    with pytest.raises(ValueError, match=message):
        from_egraph_serialize({"nodes": RECORD["nodes"] | {"x": node}, "root_eclasses": ["root$"]})
    for missing in RECORD:
        with pytest.raises(ValueError, match=f"an e-graph has no '{missing}'"):
            from_egraph_serialize({key: value for key, value in RECORD.items() if key != missing})
    with pytest.raises(ValueError, match="node 'x' has no 'op'"):
        from_egraph_serialize({"nodes": {"x": {}}, "root_eclasses": []})
    with pytest.raises(ValueError, match="node 'x' is 5: give an object with op and eclass"):
        from_egraph_serialize({"nodes": {"x": 5}, "root_eclasses": []})
    with pytest.raises(ValueError, match="the root 'y' is no class"):
        from_egraph_serialize(RECORD | {"root_eclasses": ["y"]})


WRONG_RECORDS = [
    ([], "an e-graph has no 'nodes': give an object"),
    (RECORD | {"root_eclasses": "root$"}, "an e-graph has no 'root_eclasses': give an object"),
    (RECORD | {"root_eclasses": [["root$"]]}, r"the root \['root\$'\] is no class"),
    (RECORD | {"class_data": None}, "the class_data are None: give an object with an object for each class"),
    (RECORD | {"class_data": {"root$": None}}, "the class_data of 'root\\$' are None: give an object"),
    (RECORD | {"class_data": {"root$": {"weight": "2.5"}}}, "the weight of 'root\\$' is '2.5': give an integer"),
    (RECORD | {"class_data": {"root$": {"weight": "inf"}}}, "the weight of 'root\\$' is 'inf': give an integer"),
    (RECORD | {"class_data": {"root$": {"low": 0}}}, "the low of 'root\\$' is 0: give an integer as text, -inf or inf"),
    (RECORD | {"class_data": {"root$": {"high": "x"}}}, "the high of 'root\\$' is 'x': give an integer as text, -inf"),
]


@pytest.mark.parametrize(("record", "message"), WRONG_RECORDS, ids=[message for _, message in WRONG_RECORDS])
def test_what_is_no_record_is_one_line(record, message):
    with pytest.raises(ValueError, match=message):
        from_egraph_serialize(record)


def test_data_of_classes_that_are_not_ours_are_passed_over():
    record = RECORD | {"class_data": {"root$": {"type": "Math"}, "no class": {"type": "i64"}}}
    assert from_egraph_serialize(record) == from_egraph_serialize(RECORD)
