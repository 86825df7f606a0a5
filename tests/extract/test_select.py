"""Tree and DAG extraction: what they cost on graphs made by hand, and what holds on random ones."""

from collections.abc import Mapping
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import Table, depths, finite_choices, graphs, is_finite, priced

from eqsat.extract import (
    Choice,
    EGraph,
    Latency,
    Node,
    OpCount,
    Priced,
    dag,
    reachable,
    to_dot,
    to_egraph_serialize,
    total_cost,
    tree,
)
from eqsat.extract.exact import exact
from eqsat.extract.select import ProductPrices, improved
from eqsat.optimizer.front import optimize


def tree_cost(graph: Priced, choice: Mapping[int, Node], c: int) -> int:
    """The cost of one class, subterms paid once per use."""
    nodes = graph.graph.classes[c]
    own = graph.prices[c][nodes.index(choice[c])]
    return own + sum(tree_cost(graph, choice, a) for a in choice[c][2])


HAND = [
    # what it is, the graph, its roots, what the choices of tree, dag and exact cost, shared classes paid once
    ("a leaf", {0: [(0, ())]}, [0], 0, 0, 0),
    ("a leaf with a price, wanted twice", {0: [(7, ())]}, [0, 0], 7, 7, 7),
    ("the cheaper of two", {0: [(0, ())], 1: [(5, (0,)), (3, (0,))]}, [1], 3, 3, 3),
    ("equal nodes", {0: [(0, ())], 1: [(4, (0,)), (4, (0,))]}, [1], 4, 4, 4),
    ("cheaper below counts", {0: [(9, ())], 1: [(0, ())], 2: [(1, (0,)), (3, (1,))]}, [2], 3, 3, 3),
    ("a node that needs its own class", {1: [(1, (1,)), (4, ())]}, [1], 4, 4, 4),
    ("two that need each other", {1: [(1, (2,)), (9, ())], 2: [(1, (1,)), (6, ())]}, [1, 2], 7, 7, 7),
    ("a circle", {1: [(0, (2,)), (9, ())], 2: [(0, (3,)), (8, ())], 3: [(0, (1,)), (7, ())]}, [1, 2, 3], 7, 7, 7),
    ("a circle of roots", {1: [(1, (2,)), (9, ())], 2: [(0, (1,)), (3, (3,))], 3: [(5, ())]}, [1, 2], 9, 9, 9),
    ("a dear circle that a free node cuts off",
     {0: [(0, ()), (1, (1,))], 1: [(10**18, ()), (1, (2,))], 2: [(10**18, ()), (1, (1,))]}, [0], 0, 0, 0),
    ("one root pays for both", {1: [(9, ())], 2: [(0, (1,))], 3: [(1, (1,)), (8, ())]}, [2, 3], 17, 10, 10),
    ("two give up more than one", {1: [(9, ())], 2: [(1, (1,)), (8, ())], 3: [(1, (1,)), (8, ())]}, [2, 3], 16, 16, 11),
    ("one operand pays for the other", {1: [(6, ())], 2: [(2, (1,)), (7, ())], 3: [(3, (1, 2))]}, [3], 16, 11, 11),
    ("free after the first", {1: [(6, ())], 2: [(2, (1,)), (7, ())], 3: [(3, (1, 2)), (9, (1,))]}, [3], 15, 15, 11),
    ("an operand twice in one node", {1: [(5, ())], 2: [(1, (1, 1)), (9, ())]}, [2], 9, 6, 6),
    ("an operand twice, below another",
     {1: [(5, ())], 2: [(1, (1, 1)), (9, ())], 3: [(1, (2, 2)), (8, ())]}, [3], 8, 7, 7),
    ("what no root needs", {1: [(50, ())], 2: [(2, ()), (1, (1,))]}, [2], 2, 2, 2),
    ("a class without a finite term", {1: [(0, (1,))], 2: [(0, (1,)), (5, ())]}, [2], 5, 5, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "roots", "as_tree", "as_dag", "least"), [r[1:] for r in HAND], ids=[r[0] for r in HAND]
)
def test_hand_made_graphs(table, roots, as_tree, as_dag, least):
    graph = priced(table, roots)
    found = exact(graph)
    assert [total_cost(graph, choice) for choice in (tree(graph), dag(graph), found.choice)] == [as_tree, as_dag, least]
    assert (found.cost, found.bound) == (least, least)
    assert min(total_cost(graph, choice) for choice in finite_choices(graph)) == least


def test_a_cycle_through_a_shared_class_is_never_chosen():
    # each of two classes is cheap by the other: what one gains from, the other must not
    graph = priced({0: [(3, ())], 1: [(1, (2,)), (4, (0,))], 2: [(1, (1,)), (4, (0,))]}, [1, 2])
    depths(dag(graph), [1, 2])
    assert total_cost(graph, dag(graph)) == 8


@pytest.mark.parametrize("extract", [tree, dag, exact])
@pytest.mark.parametrize("nodes", [[], [("neg", None, (0,))]])
def test_a_root_without_a_finite_term_is_refused(extract, nodes):
    graph = EGraph({0: nodes, 1: [("var", "x", ())]}, {0: (0, 9), 1: (0, 9)}, [1, 0])
    with pytest.raises(ValueError, match=r"the root 0 has no finite term"):
        extract(Priced.of(graph, OpCount()))


def test_reachable_lists_operands_first_and_each_class_once():
    choice: Choice = {1: ("f", None, (2, 3)), 2: ("f", None, (3,)), 3: ("x", None, ()), 4: ("y", None, ())}
    assert reachable(choice, [1, 2, 1]) == [3, 2, 1]


SUMS = [
    # constant, coefficients, cost by latency, cost by operators
    (0, (1, 1), 1, 1),
    (5, (1,), 1, 1),
    (5, (1, -1), 2, 2),
    (0, (4, 1), 2, 2),
    (0, (3, 5), 7, 3),
    (0, (-1,), 1, 1),
    (0, (-1, -1), 2, 2),
    (0, (-4, -1), 3, 2),
    (0, (-4, -4), 4, 3),
    (7, (-1,), 1, 1),
    (0, (-4,), 2, 1),
]


@pytest.mark.parametrize(("constant", "coefficients", "latency", "operators"), SUMS)
def test_a_sum_costs_its_additions_and_products(constant, coefficients, latency, operators):
    operands = tuple(range(len(coefficients)))
    classes: dict[int, list[Node]] = {c: [("var", f"x{c}", ())] for c in operands}
    classes[9] = [("sum", (constant, coefficients), operands)]
    graph = EGraph(classes, dict.fromkeys(classes, (0, 9)), [9])
    for model, cost in ((Latency(), latency), (OpCount(), operators)):
        found = Priced.of(graph, model)
        assert total_cost(found, tree(found)) == cost


def test_the_flagship_pair_shares_its_division():
    result = optimize(["x // n", "x % n"], x=(0, 4095), n=(1, 64))
    assert (result.cost_before, result.cost) == (44, 28)
    assert result.check().equal
    alone = optimize(["x % n"], x=(0, 4095), n=(1, 64))
    assert alone.cost == 20


def test_the_flagship_pair_as_a_tree_pays_twice():
    assert optimize(["x // n", "x % n"], x=(0, 4095), n=(1, 64), extract="tree").cost == 44


@settings(max_examples=200)
@given(graphs(classes=6, options=3))
def test_a_tree_is_the_cheapest_tree(graph):
    chosen = tree(graph)
    choices = finite_choices(graph)
    for root in graph.graph.roots:
        assert tree_cost(graph, chosen, root) == min(tree_cost(graph, choice, root) for choice in choices)


@settings(max_examples=200)
@given(graphs(classes=6, options=3))
def test_a_dag_is_finite_and_costs_between_the_optimum_and_the_tree(graph):
    chosen = dag(graph)
    depths(chosen, graph.graph.roots)
    least = min(total_cost(graph, choice) for choice in finite_choices(graph))
    assert least <= total_cost(graph, chosen) <= total_cost(graph, tree(graph))


#: Classes 3 and 4 use 1, which is theirs alone, or 2, which is there; what else is, and what a thorough search pays.
TOGETHER = [
    ({}, [2, 3, 4], 3),
    ({5: [(1, (1,))]}, [2, 3, 4, 5], 5),  # 5 cannot do without 1
    ({5: [(1, (1,)), (9, (2,))]}, [2, 3, 4, 5], 5),  # 5 can, but not for what 1 costs
    ({5: [(1, (1,)), (1, (2,))]}, [2, 3, 4, 5], 4),
    ({}, [1, 2, 3, 4], 4),  # 1 is an answer itself
    ({4: [(1, (5,)), (1, (2,))], 5: [(0, (1,))]}, [2, 3, 4], 3),  # 4 needs 1 through 5, which has no choice
    ({4: [(1, (5,)), (1, (2,))], 5: [(0, (1,))]}, [2, 3, 4, 5], 4),  # but 5 is an answer
    ({4: [(1, (1,)), (1, (3,))]}, [2, 3, 4], 3),  # 4 can use 3, which is to change too
]


@pytest.mark.parametrize(("others", "roots", "cost"), TOGETHER)
def test_what_several_classes_can_do_without_is_given_up_by_all_at_once(others, roots, cost):
    table: Table = {0: [(0, ())], 1: [(1, (0,))], 2: [(1, (0,))]}
    table |= {3: [(1, (1,)), (1, (2,))], 4: [(1, (1,)), (1, (2,))], **others}
    assert improved(priced(table, roots), tree(priced(table, roots)), thorough=True)[1] == cost


@pytest.mark.parametrize(("op", "cost"), [("add", 5), ("mul", 6)])
def test_a_whole_sum_does_without_what_a_part_of_it_needs(op, cost):
    # 3, and through 4 and 5 the sum 6, use 1; they can do with 2, which is there, if 6 gives up all of 5
    table: Table = {0: [(0, ())], 1: [(1, (0,))], 2: [(1, (0,))], 3: [(1, (1,)), (1, (2,))]}
    table |= {4: [(1, (1,)), (5, (2,))], 5: [(1, (0, 4)), (9, (0,))], 6: [(1, (0, 5)), (3, (2,))]}
    found = priced(table, [2, 3, 6])
    for c in (5, 6):
        found.graph.classes[c][0] = (op, None, found.graph.classes[c][0][2])
    start = tree(found)
    assert total_cost(found, start) == 6
    assert improved(found, start, thorough=True)[1] == cost


def test_a_class_that_uses_another_twice_gives_it_up_once():
    # 3 uses 1, and 4 by both 5 and 6, which have no alternatives; both can do with 2, which is there
    table: Table = {0: [(0, ())], 1: [(1, (0,))], 2: [(1, (0,))], 3: [(1, (1,)), (1, (2,))]}
    table |= {4: [(1, (5, 6)), (3, (2,))], 5: [(1, (1,))], 6: [(1, (1,))]}
    found = priced(table, [2, 3, 4])
    start = {c: nodes[0] for c, nodes in found.graph.classes.items()}
    assert total_cost(found, start) == 6
    assert improved(found, start, thorough=True)[1] == 5


@pytest.mark.parametrize(("alone", "cost"), [([], 5), ([4], 7)])
def test_what_serves_one_class_alone_is_given_up_with_what_it_needs(alone, cost):
    # 3 and 4 use 1; 3 can do with 2, which is there, and 4 serves 5 alone, which can do without it
    table: Table = {0: [(0, ())], 1: [(3, (0,))], 2: [(1, (0,))], 3: [(1, (1,)), (1, (2,))]}
    table |= {4: [(1, (1,)), (9, (2,))], 5: [(1, (4,)), (3, (2,))]}
    found = priced(table, [2, 3, 5, *alone])
    start = {c: nodes[0] for c, nodes in found.graph.classes.items()}
    assert total_cost(found, start) == 7
    assert improved(found, start, thorough=True)[1] == cost


#: Classes 2 and 3 could use 1, which nothing needs; what they cost, and what a thorough search pays.
ADOPTED = [(8, 8, 11), (5, 6, 11), (5, 5, 10), (8, 2, 10)]


@pytest.mark.parametrize(("first", "second", "cost"), ADOPTED)
def test_what_nothing_needs_is_computed_if_that_pays_for_several(first, second, cost):
    found = priced({1: [(9, ())], 2: [(first, ()), (1, (1,))], 3: [(second, ()), (1, (1,))]}, [2, 3])
    start = tree(found)
    assert total_cost(found, start) == first + second
    chosen, spent = improved(found, start, thorough=True)
    assert spent == total_cost(found, chosen) == cost


#: Class 2 is used by the sum 3, which could be computed without it, and 2 from 3; the price of 3 without 2.
TURNED = [(3, "add", 4), (4, "add", 5), (5, "add", 6), (3, "mul", 6)]


@pytest.mark.parametrize(("price", "op", "cost"), TURNED)
def test_what_a_sum_and_others_use_is_computed_from_the_sum_if_that_is_cheaper(price, op, cost):
    table: Table = {0: [(0, ())], 1: [(4, (0,))], 2: [(1, (1,)), (1, (3,))], 3: [(1, (2,)), (price, (0,))]}
    found = priced(table, [2, 3])
    found.graph.classes[3][0] = (op, None, (2,))
    start = {c: nodes[0] for c, nodes in found.graph.classes.items()}
    chosen, spent = improved(found, start, thorough=True)
    assert spent == total_cost(found, chosen) == cost


def test_a_sum_that_another_turned_around_has_given_up_is_left_alone():
    # 4 is computed from 5 then, so that nothing uses 3, and 1 is no longer computed from it
    table: Table = {0: [(0, ())], 1: [(5, (0,)), (1, (3,))], 3: [(1, (1,)), (1, (0,))]}
    table |= {4: [(3, (3,)), (1, (5,))], 5: [(1, (4,)), (2, (0,))], 6: [(0, (1,))]}
    found = priced(table, [1, 4, 5, 6])
    chosen, spent = improved(found, {c: nodes[0] for c, nodes in found.graph.classes.items()}, thorough=True)
    assert spent == total_cost(found, chosen) == 8


def test_what_a_sum_alone_uses_twice_is_not_computed_from_it():
    # 3 could do without 2, and 2 be computed from 3 for nothing; but then nothing uses 2
    found = priced({0: [(0, ())], 2: [(4, (0,)), (0, (3,))], 3: [(4, (2, 2)), (9, (0,))]}, [3])
    found.graph.classes[3][0] = ("add", None, (2, 2))
    chosen, spent = improved(found, {c: nodes[0] for c, nodes in found.graph.classes.items()}, thorough=True)
    assert spent == total_cost(found, chosen) == 8


@settings(max_examples=200)
@given(graphs(classes=12, options=4), st.booleans())
def test_the_cost_of_a_search_is_that_of_its_choice(graph, thorough):
    chosen, cost = improved(graph, tree(graph), thorough=thorough)
    depths(chosen, graph.graph.roots)
    assert cost == total_cost(graph, chosen) <= total_cost(graph, tree(graph))


@settings(max_examples=100)
@given(graphs(classes=25, options=4))
def test_no_single_change_of_a_dag_makes_it_cheaper(graph):
    chosen = dag(graph)
    cost = total_cost(graph, chosen)
    for c in reachable(chosen, graph.graph.roots):
        for node in graph.graph.classes[c]:
            changed = {**chosen, c: node}
            if is_finite(changed, graph.graph.roots):
                assert total_cost(graph, changed) >= cost


@settings(max_examples=100)
@given(graphs(classes=25, options=4))
def test_a_dag_costs_no_more_than_where_it_starts(graph):
    table = graph.graph.classes
    start = {c: nodes[0] for c, nodes in table.items()}
    chosen = dag(graph, start)
    depths(chosen, graph.graph.roots)
    assert total_cost(graph, chosen) <= total_cost(graph, start)
    assert start == {c: nodes[0] for c, nodes in table.items()}


@settings(max_examples=100)
@given(graphs(classes=25, options=4), st.integers(0, 2**32))
def test_the_order_of_classes_and_their_numbers_do_not_change_a_cost(graph, seed):
    other = renumbered(graph, seed)
    mine, theirs = tree(graph), tree(other)
    for root, other_root in zip(graph.graph.roots, other.graph.roots, strict=True):
        assert tree_cost(graph, mine, root) == tree_cost(other, theirs, other_root)
    assert total_cost(graph, dag(graph)) == total_cost(other, dag(other))


def renumbered(graph: Priced, seed: int) -> Priced:
    """The same graph with other numbers for its classes, listed in another order."""
    classes = graph.graph.classes
    number = dict(zip(classes, Random(seed).sample(range(100), len(classes)), strict=True))
    order = Random(seed + 1).sample(list(classes), len(classes))
    moved = {number[c]: [(op, n, tuple(number[a] for a in args)) for op, n, args in classes[c]] for c in order}
    bounds = {number[c]: graph.graph.bounds[c] for c in order}
    roots = [number[root] for root in graph.graph.roots]
    return Priced(EGraph(moved, bounds, roots), {number[c]: graph.prices[c] for c in order})


def test_a_search_that_is_late_keeps_its_best():
    # a chain of sums of which each has a cheaper form
    table: Table = {0: [(0, ())]} | {c: [(2, (c - 1,)), (1, (c - 1,))] for c in range(1, 200)}
    found = priced(table, [199])
    dear = {c: nodes[0] for c, nodes in found.graph.classes.items()}
    looks: list[int] = []
    choice, cost = improved(found, dear, late=lambda: not looks.append(0) and len(looks) > 2)
    assert cost == total_cost(found, choice)
    assert 199 < cost < 398
    assert improved(found, dear)[1] == 199


@pytest.mark.parametrize("seed", range(20))
def test_prices_beyond_floats(seed):
    source = Random(seed)
    table: Table = {0: [(0, ())]}
    for c in range(1, 12):
        ways = [range(c), range(12), range(12)]
        # class 12 has no term
        table[c] = [(source.randint(1, 9), (*source.choices(of, k=2), *source.choices([0, 12], [9, 1]))) for of in ways]
        table[c].append((9, (c - 1,)))
    small = priced(table | {12: [(1, (12,))]}, [11, 10])
    large = Priced(small.graph, {c: [10**400 * price for price in prices] for c, prices in small.prices.items()})
    start = tree(small)
    choice, cost = improved(large, start, thorough=True)
    assert (choice, cost) == (improved(small, start, thorough=True)[0], total_cost(large, choice))


def test_a_loop_that_runs_more_often_than_floats_can_count():
    found = optimize("sum((r + x)*(r + x)//3%5, r, 0, n)", x=(0, 99), n=(0, 10**400))
    assert found.cost > 10**400
    assert found.cost <= found.cost_before


GRAPH = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,)), ("neg", None, (1,))]}, {0: (0, 9), 1: (-9, 0)}, [1])
PRICED = Priced.of(GRAPH, OpCount())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Priced.of("x", OpCount()), TypeError, "a graph must be an EGraph, such as result.graph, not .* str"),
        (lambda: Priced.of(GRAPH, "latency"), TypeError, "'latency' is no cost model: give an object with a price"),
        (lambda: to_dot(PRICED), TypeError, "a graph must be an EGraph, such as result.graph, not .* Priced"),
        (lambda: to_egraph_serialize(PRICED, {}), TypeError, "a graph must be an EGraph"),
        (
            lambda: to_egraph_serialize(GRAPH, OpCount()),
            TypeError,
            r"prices must be .* Priced.of\(graph, model\).prices",
        ),
        *[
            (partial(extract, GRAPH), TypeError, r"a graph with prices is Priced.of\(graph, model\), not .* EGraph")
            for extract in (tree, dag, exact)
        ],
        (lambda: total_cost(GRAPH, {}), TypeError, "a graph with prices is Priced.of"),
        (lambda: total_cost(PRICED, {}), ValueError, "the choice has no node for class 1"),
        # it would never end
        (lambda: total_cost(PRICED, {1: ("neg", None, (1,))}), ValueError, "by the choice class 1 needs itself"),
        (lambda: dag(PRICED, {1: ("neg", None, (1,))}), ValueError, "by the choice class 1 needs itself"),
        (lambda: reachable({1: ("neg", None, (1,))}, [1]), ValueError, "by the choice class 1 needs itself"),
        (
            lambda: reachable({1: ("neg", None, (3,)), 2: ("add", None, (1, 0)), 3: ("neg", None, (2,))}, [2]),
            ValueError,
            "by the choice class 2 needs itself",
        ),
    ],
)
def test_what_is_no_graph_or_choice_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_prices_are_of_the_nodes_that_the_graph_has_gained_too():
    graph = EGraph({0: [("var", "x", ())], 1: [("floordiv", None, (0, 0))]}, {0: (1, 9), 1: (0, 9)}, [1])
    priced = Priced.of(graph, OpCount())
    assert tree(priced)[1][0] == "floordiv"
    graph.classes[1].append(("const", 1, ()))
    priced.refresh(ProductPrices(OpCount()))
    assert tree(priced)[1] == ("const", 1, ())
    # other prices of the same graph
    dear = priced.at({0: [0], 1: [1, 5]})
    assert tree(dear)[1][0] == "floordiv"
    assert improved(dear, tree(priced)) == ({0: ("var", "x", ()), 1: ("floordiv", None, (0, 0))}, 1)
