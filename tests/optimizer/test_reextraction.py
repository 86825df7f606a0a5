"""The e-graph that a result keeps, and choosing from it again: what is in it is equal, and answers are as good."""

import json
import pickle
import zlib
from dataclasses import dataclass, replace

import pytest
from corpora import HAND, SAMPLE, SEEDS, cases
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bool_expressions, expressions

from eqsat import Budget, Rule, buffer, optimize, var, where
from eqsat.alternatives.plain import PlainClasses, bind_indices
from eqsat.extract import COST_MODELS, EGraph, Latency, LoopAware, OpCount, Priced, Throughput, dag, exact, tree
from eqsat.extract.graph import UNKNOWN_TRIPS
from eqsat.extract.select import reachable_part, refuse_other_choice
from eqsat.lang.costs import cost_of, costs_alone
from eqsat.lang.ops import INFINITY
from eqsat.lang.properties import suspects
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.snapshot import Part, Snapshot, same
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT

X, Y, N = var("i", 0, 63), var("j", 0, 31), var("n", 1, 9)
D = var("d", 0, 3)
A, B = buffer("A"), buffer("B", "bool")

#: What is optimised, and how.
RESULTS = {
    "affine": (["(i*32 + j) // 32", "(i*32 + j) % 32"], {}),
    "pair": (["i // n", "i % n"], {}),
    "shared sums": (["i*3 + j*5 + n", "i*6 + j*10 + n*2 + 7", "i*3 + j*5 - n*4"], {}),
    "junctions": (["i < 5 and j < 7 and n < 3", "j < 7 and n < 3 and i % 4 < 2", "i < 5 or j < 7"], {}),
    "gates": (["(i + 1) % 64", "j // 8 + i // 64", "i // n * n"], {"gates": ["i < 63", None, "j < 8"]}),
    "a gate that never holds": (["i % 7", "i // 7"], {"gates": ["i > 63", None]}),
    "constraints": (["(i + j) % 64", "i // (n - 1)"], {"constraints": ["i + j < 64", "n > 1"]}),
    "guarded division": ([where(D > 0, X // (D + 0), 7), where(D.eq(0), X % 5, X % D)], {}),
    "lazy": ([where(D > 0, X // D, 7)], {"branches": "lazy"}),
    "flat index": (["(i*9 + j*3) // 7 % 5 + (i*9 + j*3) // 35 % 3", "(i*9 + j*3) % 7"], {}),
    "shifted variables": (["(i - 5)//14*5 + (i - 5)//3%5", "where(5 - i < j, i - 4, 7)"], {}),
    "loads": ([A[X * 4 // 4] + A[X] + (X * 8 + Y) // 8, A[(X * 32 + Y) // 32] * 2], {}),
    "a load that is a condition": ([where(B[(X * 32 + Y) // 32], X * 4 // 4, A[Y % 32])], {}),
    "reductions": (["sum((r*i) % 7 + i // n, r, 0, 9)*2 + i", "max_over(r*i % 7, r, 0, n)"], {}),
    "a closed form": (["sum(where(r < i, 0, j), r, 0, 10)"], {}),
    "nested reductions": (["sum(max_over((r*i + s)%7, s, 0, r+1), r, 0, 9)*2 + (i*4 + 1)//4"], {}),
    "trees": (["i*3 + j*5 + n", "(i*3 + j*5) % 7"], {"extract": "tree"}),
    "exactly": (["i // n", "i % n", "i*3 + j*5"], {"extract": "exact"}),
    "pareto": (["(i*12 + j) // 7 * 3 + i*5", "i // n"], {"pareto": "operations"}),
    "loops": (["i*n + j*n + n*n"], {"cost": LoopAware({"i": 64, "j": 32}, OpCount())}),
    "theory alone": (["(i*5 + j) // 7 + (i*5 + j) % 7"], {"engine": "theory"}),
}
BY_RULES = ["affine", "pair", "gates", "a gate that never holds", "constraints", "loads", "reductions", "exactly"]
RESULTS |= {f"{name}, rules alone": (RESULTS[name][0], {**RESULTS[name][1], "theory": False}) for name in BY_RULES}


def optimized(name):
    roots, options = RESULTS[name]
    return optimize(roots, **options, i=(0, 63), j=(0, 31), n=(1, 9))


@pytest.fixture(params=RESULTS, scope="module")
def result(request):
    return optimized(request.param)


@dataclass(frozen=True)
class AnyPrices:
    """Prices that follow no sense, so that anything may be chosen."""

    seed: int

    def price(self, op, operands, result):
        return zlib.crc32(repr((self.seed, op, operands, result)).encode()) % 50 if operands else 0


def alone(exprs, model):
    costs = costs_alone(exprs, model)
    return [costs[expr] for expr in exprs]


def test_the_graph_holds_the_answer(result):
    assert result.terms(result.choice) == result.exprs


def test_every_class_of_the_graph_has_a_term_and_bounds(result):
    graph = result.graph
    assert len(graph.roots) == len(result.before)
    assert graph.bounds.keys() == graph.classes.keys()
    assert reachable_part(graph) == graph
    assert tree(Priced.of(graph, OpCount())).keys() == graph.classes.keys()
    names = {node[1] for nodes in graph.classes.values() for node in nodes if node[0] in ("var", "buffer")}
    assert {name for name in names if name[0] != "$"} <= result.leaves.keys()
    assert not [name for name in names if name[0] == "@"]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_chosen_is_equal(result, seed):
    priced = Priced.of(result.graph, AnyPrices(seed))
    terms = result.terms(tree(priced) if seed % 2 else dag(priced))
    if suspects(topological(terms)):
        # where it counts for nothing, which extraction sees to
        terms = result.extract(AnyPrices(seed)).exprs
    assert check_equal(result.before, terms, constraints=result.constraints, gates=result.gates).equal


@pytest.mark.parametrize("extract", ["dag", "tree", "exact"])
@pytest.mark.parametrize("model", [*COST_MODELS.values(), AnyPrices(3)], ids=lambda model: type(model).__name__)
def test_chosen_again_the_answer_is_right_and_costs_no_more(result, model, extract):
    again = result.extract(model, extract)
    assert again.check().equal
    assert again.cost == cost_of(again.exprs, model)
    if extract == "tree":
        for new, old, before in zip(
            *[alone(r, model) for r in (again.exprs, result.exprs, result.before)], strict=True
        ):
            assert new <= min(old, before)
    else:
        assert again.cost <= min(cost_of(result.exprs, model), again.cost_before)
        assert again.bound is None if extract == "dag" else again.bound <= again.cost
    assert again.terms(again.choice) == again.exprs


def test_loops_are_priced_too(result):
    model = LoopAware({"i": 64, "j": 32}, Latency())
    again = result.extract(model)
    assert again.check().equal
    assert again.cost == cost_of(again.exprs, model) <= min(cost_of(result.exprs, model), again.cost_before)


def test_the_graph_as_plain_data(result):
    graph = result.graph
    assert EGraph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


def test_the_graph_as_plain_data_without_bounds():
    graph = optimize("min(x*2//2 + y%3, 9)", x=(None, None), y=(0, None)).graph
    read = EGraph.from_dict(json.loads(json.dumps(graph.to_dict())))
    assert read == graph == read
    assert Priced.of(read, Latency()) == Priced.of(graph, Latency())


def test_a_result_with_its_graph_survives_pickling(result):
    for _ in range(2):
        same = pickle.loads(pickle.dumps(result))
        assert same.graph == result.graph
        assert same.extract(OpCount()).exprs == result.extract(OpCount()).exprs


def test_the_order_of_models_does_not_matter():
    for name in ("shared sums", "junctions", "flat index"):
        first, second = optimized(name), optimized(name)
        forwards = {model: first.extract(model).exprs for model in (Latency(), Throughput())}
        backwards = {model: second.extract(model).exprs for model in (Throughput(), Latency())}
        assert forwards == backwards
        assert first.graph == second.graph


def test_the_graph_is_made_when_asked_for():
    result = optimize("i // n", i=(0, 63), n=(1, 9))
    assert "built" not in vars(result)
    assert result.graph is result.graph


def test_sums_and_junctions_are_bracketed_for_the_new_choice():
    # a division costs what an addition does: nothing is shared but sums
    result = optimize(["i // n", "i % n", "i + j*3 + n", "i + j*3 - 5"], cost=OpCount(), i=(0, 63), j=(0, 31), n=(1, 9))
    again = result.extract(Latency())
    assert again.cost == optimize([*result.before], cost=Latency()).cost
    assert any(term.op == "add" for term in set(topological(again.exprs[2:3])) & set(topological(again.exprs[3:])))


@pytest.mark.parametrize(
    "roots",
    [
        ["i*3 + j*5 + n", "i*3 + j*5 - n*4", "i*6 + j*10 + 7"],
        ["i < 5 and j < 7 and n < 3", "j < 7 and n < 3 and i > 9"],
    ],
)
def test_what_trees_do_not_share_is_shared_for_the_new_choice(roots):
    ranges = {"i": (0, 63), "j": (0, 31), "n": (1, 9)}
    result = optimize(roots, extract="tree", **ranges)
    again = result.extract(OpCount())
    assert again.cost == optimize(roots, cost=OpCount(), **ranges).cost < cost_of(result.exprs, OpCount())


def test_models_get_their_own_answers():
    result = optimize(["x // n", "x % n"], x=(0, 4095), n=(1, 64))
    assert [str(expr) for expr in result.extract(Latency()).exprs] == ["x//n", "x - x//n*n"]
    assert [str(expr) for expr in result.extract(OpCount()).exprs] == ["x//n", "x%n"]


def test_what_is_said_of_another_choice():
    result = optimized("affine")
    again = result.extract(OpCount())
    assert (again.stop, again.rounds, again.rules) == (result.stop, result.rounds, result.rules)
    assert again.rule_set == result.rule_set
    assert again.trace.not_entered == "the e-graph is that of another result"
    assert again.explain().rules == result.explain().rules
    assert again.extract(Latency()).exprs == result.exprs


def test_rules_of_the_user_are_in_the_graph():
    mine = Rule("difference-of-squares", "x*x - y*y", "(x + y) * (x - y)", why="x*y cancels")
    result = optimize("i*i - j*j", i=(0, 9), j=(0, 9), rules=[*DEFAULT, mine], cost=OpCount(weights={"mul": 0}))
    assert str(result.extract(Latency()).expr) in ("(i + j)*(i - j)", "(i - j)*(i + j)")


def test_no_root_reads_what_only_others_have():
    # the class of i//3 has (i*32 + j)//96, too
    result = optimize(["(i*32 + j)//96", "i//3", "i*32 + j"], i=(0, 63), j=(0, 31))
    raw = [result.terms(tree(Priced.of(result.graph, AnyPrices(seed)))) for seed in range(20)]
    assert any(Y in topological([terms[1]]) for terms in raw)
    for seed in range(20):
        again = result.extract(AnyPrices(seed))
        assert again.check().equal
        assert variables([again.exprs[1]]) == [X]


@pytest.mark.parametrize("seed", range(10))
def test_no_answer_divides_by_what_may_be_zero(seed):
    roots = [where(D > 0, X // D, 7) + X % N, where(D.eq(0), 3, X % D)]
    for extract in ("dag", "tree"):
        again = optimize(roots).extract(AnyPrices(seed), extract)
        assert again.check().equal
        before = {t for t in topological(roots) if t.op in ("floordiv", "mod")}
        unsafe = {t for t in topological(again.exprs) if t.op in ("floordiv", "mod") and t.args[1].vmin == 0}
        assert unsafe <= before


def test_the_rules_alone_take_no_division_out_of_the_condition_that_guards_it():
    result = optimize(where(D > 0, (X + Y * D) // D, 7), theory=False, cost=OpCount(weights={"floordiv": 100}))
    raw = [result.terms(tree(Priced.of(result.graph, AnyPrices(seed)))) for seed in range(30)]
    assert not any(X // D in topological(terms) for terms in map(list, raw))
    for seed in range(30):
        again = result.extract(AnyPrices(seed))
        assert again.check().equal
        assert X // D not in topological(again.exprs)


@settings(max_examples=60)
@given(expressions(max_leaves=10), st.integers(0, 99))
def test_whatever_is_chosen_of_random_terms_is_equal(drawn, seed):
    root, _ = drawn
    check_choices(optimize([root, root // 3, root % 3]), seed)


@settings(max_examples=40)
@given(bool_expressions(max_leaves=10), st.integers(0, 99))
def test_whatever_is_chosen_of_random_conditions_is_equal(drawn, seed):
    root, _ = drawn
    other = var("m", 0, 3)
    check_choices(optimize([root, where(root, 3, other) + 1], gates=[other < 2, None]), seed)


@settings(max_examples=15)
@given(expressions(max_leaves=6, within=(-(2**31), 2**31)), st.integers(0, 99))
def test_whatever_the_rules_alone_leave_is_equal(drawn, seed):
    root, _ = drawn
    check_choices(optimize([root, root // 3], theory=False, budget=Budget(nodes=2000)), seed)


def check_choices(result, seed):
    assert result.terms(result.choice) == result.exprs
    model = AnyPrices(seed)
    terms = result.terms(tree(Priced.of(result.graph, model)))
    if not suspects(topological(terms)):
        assert check_equal(result.before, terms, gates=result.gates).equal
    again = result.extract(model)
    assert again.check().equal
    assert again.cost == cost_of(again.exprs, model) <= min(cost_of(result.exprs, model), again.cost_before)


@pytest.mark.parametrize(("path", "step"), [(HAND, 2), (SEEDS, 4), (SAMPLE, 4)], ids=["hand", "seeds", "sample"])
def test_answers_of_a_corpus_cost_what_those_of_separate_runs_do(path, step):
    again, apart = 0, 0
    for case in cases(path)[::step]:
        known = {"gates": case.gates, "constraints": case.constraints}
        try:
            result = optimize(case.exprs, **known)
        except ValueError:
            continue
        found = result.extract(OpCount())
        assert found.check().equal
        assert result.extract(Latency()).cost <= result.cost
        again += found.cost
        apart += optimize(case.exprs, **known, cost=OpCount()).cost
    assert again <= 1.01 * apart


# An extractor of one's own


def first_found(priced):
    """The first node of each class whose operands have one."""
    classes, choice = priced.graph.classes, {}
    while not all(root in choice for root in priced.graph.roots):
        for c in classes.keys() - choice.keys():
            node = next((node for node in classes[c] if all(a in choice for a in node[2])), None)
            if node is not None:
                choice[c] = node
    return choice


def test_an_extractor_of_ones_own(result):
    again = result.extract(Latency(), first_found)
    assert again.check().equal
    assert again.cost <= min(cost_of(result.exprs, Latency()), again.cost_before)


def test_an_extractor_of_ones_own_decides():
    # the answer is kept where it costs less, so let products cost nothing
    result = optimize(["x // n", "x % n"], x=(0, 4095), n=(1, 64), cost=OpCount(weights={"mod": 100}))
    assert str(result.exprs[1]) == "x - x//n*n"
    assert str(result.extract(OpCount(weights={"mul": 9, "mod": 1}), dag).exprs[1]) == "x%n"


def test_nodes_that_an_extractor_adds_are_none():
    def cheats(priced):
        root = priced.graph.roots[0]
        priced.graph.classes[root].append(("const", 0, ()))
        return {root: ("const", 0, ())}

    with pytest.raises(ValueError, match="no node of it"):
        optimize("i // n", i=(0, 63), n=(1, 9)).extract(Latency(), cheats)


GRAPH = EGraph(
    {0: [("var", "x", ())], 1: [("neg", None, (0,)), ("neg", None, (2,))], 2: [("neg", None, (1,))]},
    dict.fromkeys(range(3), (-9, 9)),
    [1],
)
CHOICES = [
    ({}, "no node for class 1"),
    ({1: ("neg", None, (0,))}, "no node for class 0"),
    ({1: ("neg", None, (5,)), 5: ("var", "x", ())}, "no node of it, for class 1"),
    ({1: ("neg", None, (2,)), 2: ("neg", None, (1,))}, "class 1 needs itself"),
    (None, "a choice is a mapping of classes to nodes, not NoneType"),
    ([0], "a choice is a mapping of classes to nodes, not list"),
]


@pytest.mark.parametrize(("choice", "message"), CHOICES)
def test_what_is_no_choice_is_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        refuse_other_choice(GRAPH, choice)


def test_a_choice_may_share_and_have_more_than_it_needs():
    nodes = {0: [("var", "x", ())], 1: [("neg", None, (0,))], 2: [("add", None, (1, 1))], 3: [("add", None, (2, 1))]}
    graph = EGraph(nodes, dict.fromkeys(nodes, (-9, 9)), [3, 2, 3])
    refuse_other_choice(graph, {c: node for c, (node,) in nodes.items()} | {7: ("const", 7, ())})


def test_without_an_e_graph_there_is_nothing_to_choose_from():
    for result in (
        optimize("i // n", engine="greedy", i=(0, 63), n=(1, 9)),
        optimize("i // n", theory=False, budget=Budget(seconds=0.0), i=(0, 63), n=(1, 9)),
        optimize("i*n // n", unknown_divisors="assume", i=(0, 63), n=(0, 9)),
    ):
        assert result.graph is None
        with pytest.raises(ValueError, match="there is no e-graph"):
            result.extract(Latency())
        with pytest.raises(ValueError, match="there is no e-graph"):
            result.terms({})


@pytest.mark.parametrize("options", [{}, {"theory": False}, {"engine": "theory"}])
def test_roots_that_never_matter_have_an_e_graph_of_what_was_answered(options):
    result = optimize(["i//3 + j", "j < 3"], gates=["i < 0", "i < 0"], i=(0, 9), j=(0, 9), **options)
    assert result.terms(result.choice) == result.exprs == result.extract("opcount").exprs


@pytest.mark.parametrize("own", [exact, lambda priced: None])
def test_an_extractor_that_gives_no_choice_is_refused(own):
    with pytest.raises(ValueError, match=r"the extractor gave a value of type \w+: give a mapping of classes to nodes"):
        optimize("i//4*4 + i%4 + j*3//6", i=(0, 9), j=(0, 9)).extract("latency", own)


def test_other_arguments_are_refused():
    result = optimize("i // n", i=(0, 63), n=(1, 9))
    with pytest.raises(ValueError, match="unknown extractor 'best'"):
        result.extract(Latency(), "best")
    with pytest.raises(TypeError, match="3 is no extractor"):
        result.extract(Latency(), 3)
    with pytest.raises(ValueError, match="the cost model weighs 'modd', which is no operator; did you mean 'mod'"):
        result.extract(OpCount(weights={"modd": 9}))
    with pytest.raises(TypeError, match="no cost model"):
        result.extract(Latency)


@pytest.mark.parametrize("extract", ["dag", "tree"])
def test_no_time_is_enough_for_some_answer(extract):
    result = optimized("shared sums")
    again = result.extract(OpCount(), extract, seconds=0.0)
    assert again.check().equal
    if extract == "tree":
        assert all(map(int.__le__, alone(again.exprs, OpCount()), alone(result.exprs, OpCount())))
    else:
        assert again.cost <= cost_of(result.exprs, OpCount())


# The pieces


def test_what_holds_under_a_gate_alone_is_no_node_of_a_class_that_others_use():
    x = var("x", 0, 9)
    nodes = {0: [("var", "x", ())], 1: [("mod", None, (0, 2))], 2: [("const", 4, ())], 3: [("neg", None, (1,))]}
    bounds = {0: (0, 9), 1: (0, 3), 2: (4, 4), 3: (-3, 0)}
    snapshot = Snapshot((Part(EGraph(nodes, bounds), ((0, 3), (1, 1))),), lazy=False)
    built = snapshot.built((-(x % 4), x), [None, x < 4], [x])
    assert built.graph.classes[1] == nodes[1]
    assert built.graph.classes[built.graph.roots[1]] == [same(1), same(0)]
    assert built.terms(built.choice) == [-(x % 4), x]
    # which holds everywhere is one
    built = snapshot.built((-x, x % 4), [None, None], [x])
    assert built.graph.classes[3] == [*nodes[3], same(4)]
    assert built.graph.roots == [3, 1]
    built = snapshot.built((-x, x % 4), [x < 4, None], [x])
    assert built.graph.classes[built.graph.roots[0]] == [same(3), same(4)]
    assert built.graph.classes[3] == nodes[3]


def test_a_root_without_an_e_graph_of_its_own_takes_no_nodes_of_another_gate():
    """As if the time had been up before the rules alone came to the second root."""
    found = optimize(["i % 8 + j", "where(i < 8, j, 3)*2"], gates=["i < 4", None], theory=False, i=(0, 63), j=(0, 31))
    early = replace(found, snapshot=Snapshot(found.snapshot.parts[:1], lazy=False))
    for seed in range(6):
        check_choices(early, seed)
        terms = early.terms(tree(Priced.of(early.graph, AnyPrices(seed))))
        assert check_equal(early.before, terms, gates=early.gates).equal


def test_partial_sums_are_found_by_what_they_add():
    nodes = {
        0: [("var", "x", ())],
        1: [("var", "y", ())],
        2: [("sum", (3, (1, 2)), (0, 1))],
        3: [("sum", (0, (1, 1)), (1, 2))],
    }
    graph = EGraph(nodes, {0: (0, 9), 1: (0, 9), 2: (3, 30), 3: (3, 39)}, [3])
    classes = PlainClasses(graph, {c: node for c, (node,) in nodes.items()}, lambda: False)
    assert classes.add_class(classes.values[2].plus(classes.values[1])) == 3
    new = classes.add_class(classes.values[0].plus(classes.values[1], -1))
    assert (new, graph.bounds[new], graph.classes[new]) == (4, (-9, 9), [])
    assert classes.add_node(new, ("sub", None, (0, 1)))
    assert not classes.add_node(new, ("sub", None, (new, 1)))
    assert graph.classes[new] == [("sub", None, (0, 1))]


def test_indices_stay_in_their_reductions():
    index = "$0:0:4"
    nodes = {
        0: [("var", index, ())],
        1: [("const", 0, ())],
        2: [("const", 5, ())],
        # free of the index, though one node has it
        3: [("mul", None, (0, 1)), ("var", "x", ())],
        4: [("add", None, (0, 3))],
        5: [("sum_over", None, (4, 0, 1, 2))],
    }
    graph = EGraph(nodes, {0: (0, 4), 1: (0, 0), 2: (5, 5), 3: (0, 9), 4: (0, 13), 5: (0, 65)}, [5])
    bind_indices(graph)
    assert graph.classes[3] == [("var", "x", ())]
    assert [graph.weights[c] for c in range(6)] == [5, 1, 1, 1, 5, 1]


def test_loops_without_end_run_a_finite_number_of_times():
    names = {"F": A, "n": N, "x": var("x", None, None), "y": var("y", 0, None)}
    result = optimize([parse("sum(sum(F[r + s + n] + (r + s + n)*3, s, 0, y), r, x, 4)", names)], extract="tree")
    for how in ("dag", "tree", "exact"):
        assert result.extract("latency", how).check(samples=200).equal
    nodes = {0: [("var", "$0:0:inf", ())], 1: [("neg", None, (0,))]}
    graph = EGraph(nodes, {0: (0, INFINITY), 1: (-INFINITY, 0)}, [1])
    bind_indices(graph)
    assert graph.weights == {0: UNKNOWN_TRIPS, 1: UNKNOWN_TRIPS}
