"""Exact extraction: against every choice there is, and against ``dag``, on random graphs."""

import json
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from priced import finite_choices, graphs, grown, is_finite, priced
from strategies import expressions

from eqsat.cli import main as cli
from eqsat.extract import EGraph, Latency, Priced, dag, exact, reachable, total_cost, tree
from eqsat.extract.graph import Node
from eqsat.optimizer.front import optimize


def test_the_remainder_uses_the_quotient_that_the_other_root_pays():
    variable = (0, 2**20)
    classes: dict[int, list[Node]] = {
        0: [("var", "x", ())],
        1: [("var", "n", ())],
        2: [("floordiv", None, (0, 1))],
        3: [("mod", None, (0, 1)), ("sub", None, (0, 4))],
        4: [("mul", None, (2, 1))],
    }
    bounds = {0: variable, 1: (1, 99), 2: variable, 3: (0, 98), 4: variable}
    graph = Priced.of(EGraph(classes, bounds, [2, 3]), Latency())
    separate = {c: nodes[0] for c, nodes in classes.items()}
    assert total_cost(graph, separate) == 44
    found = exact(graph, separate)
    assert (found.cost, found.bound) == (28, 28)
    assert found.choice[3] == ("sub", None, (0, 4))


@settings(max_examples=80)
@given(graphs(classes=9, options=3))
def test_random_graphs_against_every_choice(graph):
    least = min(total_cost(graph, choice) for choice in finite_choices(graph))
    found = exact(graph)
    assert (found.cost, found.bound, total_cost(graph, found.choice)) == (least, least, least)


@settings(max_examples=20)
@given(graphs(classes=30, options=4))
def test_costs_no_more_than_dag_and_the_same_every_time(graph):
    start = dag(graph)
    found = exact(graph, start)
    assert found.bound <= found.cost <= total_cost(graph, start) <= total_cost(graph, tree(graph))
    assert is_finite(found.choice, graph.graph.roots)
    assert found.choice == exact(graph, start).choice


@pytest.mark.parametrize("scale", [1000, 10**9, 10**13])
def test_large_prices(scale):
    # with a common divisor, and almost with one
    graph = grown(random.Random(5), classes=12, options=3)
    least = exact(graph).cost
    scaled = Priced(graph.graph, {c: [scale * p for p in row] for c, row in graph.prices.items()})
    assert (exact(scaled).cost, exact(scaled).bound) == (scale * least, scale * least)
    uneven = Priced(graph.graph, {c: [scale * p + c for p in row] for c, row in graph.prices.items()})
    found = exact(uneven)
    assert found.bound <= min(total_cost(uneven, choice) for choice in finite_choices(uneven)) <= found.cost


@settings(max_examples=30)
@given(expressions())
def test_every_extractor_returns_a_term_equal_to_the_root(case):
    root, _domain = case
    found = [optimize(root, extract=extract) for extract in ("tree", "dag", "exact")]
    assert all(result.check().equal for result in found)
    assert found[2].cost <= found[1].cost


def test_a_start_that_holds_only_what_it_needs():
    graph = grown(random.Random(3), classes=30, options=4)
    whole = dag(graph)
    needed = {c: whole[c] for c in reachable(whole, graph.graph.roots)}
    assert exact(graph, needed).cost == exact(graph, whole).cost


def test_without_time_the_start_and_a_true_bound():
    graph = grown(random.Random(1), classes=40, options=4)
    start = dag(graph)
    found = exact(graph, start, seconds=1e-6)
    assert found.bound <= exact(graph, start).cost <= found.cost <= total_cost(graph, start)


@pytest.mark.parametrize("digits", [17, 21, 300, 400])
def test_prices_beyond_the_solver(digits):
    for seed in range(60):
        small = grown(random.Random(seed), classes=20, options=4)
        # of different sizes, so that no common factor makes them small
        prices = {c: [price if price < 5 else 10**digits + price for price in of] for c, of in small.prices.items()}
        large = Priced(small.graph, prices)
        start = dag(large)
        found = exact(large, start)
        assert found.bound <= found.cost == total_cost(large, found.choice) <= total_cost(large, start)


def test_without_highs_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'eqsat\[exact\]'"):
        exact(priced({0: [(0, ())]}, [0]))


def test_behind_the_front_door():
    found = optimize(["x // n", "x % n"], extract="exact", x=(0, 2**20), n=(1, 99))
    assert (found.cost_before, found.cost, found.bound, found.gap, found.stop) == (44, 28, 28, 0.0, "saturated")
    assert found.check().equal
    unproved = optimize("x // n", x=(0, 9), n=(1, 9))
    assert (unproved.bound, unproved.gap) == (None, None)
    assert optimize("x", extract="exact", x=(0, 9)).gap == 0.0
    assert replace(found, bound=21).gap == 0.25


def test_the_solver_prints_nothing():
    # what it prints, it prints once in a process
    words = [sys.executable, "-m", "eqsat", "optimize", "x // n + x % n", "--range", "x=100", "--var", "n=1:9"]
    done = subprocess.run([*words, "--extract", "exact", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["cost"] == 29


def test_the_command_line_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr("eqsat.cli.options.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["optimize", "x", "--var", "x=0:1", "--extract", "exact"])
    assert capsys.readouterr().err == "eqsat: --extract exact needs HiGHS: pip install 'eqsat[exact]'\n"
