"""What a trace says of a run: rounds, rules, sources of e-nodes, phases, and why egglog was not entered."""

import json
import pickle
import time
from dataclasses import replace

import pytest

from eqsat import Budget, Rule, buffer, optimize, var
from eqsat.alternatives.providers import PROVIDERS
from eqsat.egraph.tables import Tables
from eqsat.egraph.trace import (
    MOST_ROUNDS,
    MOST_RULES,
    NO_MATCH,
    NO_ROOTS,
    NO_RULES,
    NO_TIME,
    NOTHING_LEFT,
    ONE_BY_ONE,
    WITHOUT_RULES,
    RuleUse,
    Trace,
)
from eqsat.lang.text import parse
from eqsat.optimizer.limits import LIMITS
from eqsat.rules import DEFAULT

X, Y = var("x", 0, 63), var("y", 0, 31)
NESTED = "where(x < 5, where(y < 3, x, 2), 2)//4"
DIVIDED = "(x*7 + y*4)//7 + (x + 3)%5*2 + min(x, y)"
RANGES = {"x": (0, 63), "y": (0, 31)}
#: What adds e-nodes and is no provider: the laws of each kind of normal form, and egglog.
KINDS = {"sums", "products", "quotients", "selections", "extremes", "conditions", "leaves", "rules"}
WAYS = [{}, {"engine": "theory"}, {"engine": "greedy"}, {"theory": False}]


@pytest.mark.parametrize("text", [NESTED, DIVIDED, "x", "max_over(x + i, i, 0, 4)"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_phases_are_all_of_the_time(text, way):
    result = optimize(text, **RANGES, **way)
    assert 1000 * sum(result.trace.phases.values()) == pytest.approx(result.milliseconds)
    assert all(seconds >= 0 for seconds in result.trace.phases.values())


@pytest.mark.parametrize(
    ("way", "phases"),
    [
        ({}, ["normalise", "conjecture", "build", "saturate", "extract", "reuse", "flat index", "again"]),
        ({"engine": "theory"}, ["normalise", "conjecture", "build", "extract", "reuse", "flat index", "again"]),
        ({"engine": "greedy"}, ["normalise", "rewrite", "finish"]),
        ({"theory": False}, ["normalise", "build", "saturate", "extract", "finish"]),
    ],
    ids=str,
)
def test_every_way_has_its_own_phases(way, phases):
    found = list(optimize(NESTED, **RANGES, **way).trace.phases)
    assert found[: len(phases)] == phases
    assert found[-1] == "finish"


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("(x*32 + y)//32", {}, NOTHING_LEFT),
        ("(x*32 + y)//32 + y", {}, NO_MATCH),
        ("(x*32 + y)//32 + y", {"rules": ()}, NO_RULES),
        (NESTED, {"engine": "theory"}, WITHOUT_RULES),
        (NESTED, {"engine": "greedy"}, ONE_BY_ONE),
        (NESTED, {"budget": Budget(seconds=0)}, NO_TIME),
        (NESTED, {"budget": Budget(seconds=0), "theory": False}, NO_TIME),
        (NESTED, {"gates": ["x < 0"], "theory": False}, NO_ROOTS),
        (NESTED, {}, None),
        (NESTED, {"theory": False}, None),
        (NESTED, {"budget": Budget(rounds=0)}, None),
    ],
)
def test_why_egglog_was_not_entered(text, options, why):
    trace = optimize(text, **RANGES, **options).trace
    assert trace.not_entered == why
    assert (trace.not_entered is None) == bool(trace.rounds)
    assert (f"not entered: {why}" in str(trace)) == (why is not None)


def test_a_flat_index_has_an_e_graph_of_its_own():
    flat = "(i*20 + j*5 + k)"
    mixed = f"({flat}%6 + {flat}//96%5*6 + {flat}//6%16*30)"
    result = optimize([flat, f"{mixed}//5%8*5 + {mixed}%5"], i=(0, 23), j=(0, 3), k=(0, 4))
    assert sum(result.trace.alternatives.values()) > result.nodes
    assert {r.run for r in result.trace.rounds} > {1}


@pytest.mark.parametrize("way", [{}, {"theory": False}], ids=str)
def test_rounds_and_rules_count_the_same_matches(way):
    result = optimize(NESTED, **RANGES, **way)
    trace = result.trace
    matches = {name: use.matches for name, use in trace.rules.items()}
    assert matches == result.rules
    assert sum(matches.values()) == sum(r.matches for r in trace.rounds)
    assert sum(r.number > 0 for r in trace.rounds) == result.rounds
    assert sum(r.seconds for r in trace.rounds) <= trace.phases["saturate"]
    assert all(use.seconds is not None and use.seconds >= 0 for use in trace.rules.values())
    assert {r.run for r in trace.rounds if r.number == 0} == {r.run for r in trace.rounds}


def test_rules_of_a_round_come_in_one_order_in_every_process():
    # egglog's own order is another one in each
    roots = ["b//4%7", "(b + 3)//4%7", "where(a < 3, a*4, b*4)", "min(a, b)*3"]
    found = optimize(roots, a=(0, 31), b=(0, 31), theory=False)
    first, second = ["distribute-whole", "mod-at-end", "mod-two-periods", "where-pull-scale"], ["lt-cancel", "lt-div"]
    assert [*found.rules][:6] == [*found.trace.rules][:6] == [*first, *second]


def test_rounds_say_what_the_e_graph_is():
    trace = optimize(X % 4 + X // 4 * 4 + Y, theory=False).trace
    first, *_, last = [r for r in trace.rounds if r.run == 1]
    # x, y, 4, x%4, x//4 and the sum
    assert (first.number, first.nodes, first.classes, first.matches) == (0, 6, 6, 0)
    # nothing changes in the last round of what is saturated
    assert (last.nodes, last.classes) == (trace.rounds[last.number - 1].nodes, trace.rounds[last.number - 1].classes)
    # x%4 + x//4*4 is x
    assert last.classes < last.nodes


SQUARES = Rule("squares", "x*x - y*y", "(x + y)*(x - y)")
WIDE = " + ".join(["i*i - k*k", *[f"x{n}" for n in range(70)]])
LOOPS = "sum(sum(A[r*n + s], s, 0, n), r, 0, n)"
#: A limit of a module, what it is lowered or raised to, an input that reaches it, and why the run ends then.
REACHED = [
    ("saturation", "reindexed_nodes", 0, LOOPS, {}, "nodes"),
    ("reductions", "moved_terms", 0, LOOPS, {}, "nodes"),
    ("saturation", "containers", 0, "min(max(i, n)*k, i*n*k)", {}, "nodes"),
    (
        "insertion",
        "seconds_per_pair",
        1e9,
        WIDE,
        {"rules": [SQUARES]},
        "time",
    ),
]


@pytest.mark.parametrize(("module", "limit", "value", "text", "options", "stop"), REACHED)
def test_a_run_that_leaves_out_matches_is_not_saturated(module, limit, value, text, options, stop, monkeypatch):
    names = {"A": buffer("A"), **{name: var(name, 0, 9) for name in ("i", "k", "n", *[f"x{n}" for n in range(70)])}}
    options = {"budget": Budget(seconds=60), **options}
    assert optimize(parse(text, names), **options).stop == "saturated"
    monkeypatch.setattr(f"eqsat.optimizer.{module}.LIMITS", replace(LIMITS, **{limit: value}))
    assert optimize(parse(text, names), **options).stop == stop


def test_greedy_rules_have_no_time_of_their_own():
    result = optimize("x*1 + 0", rules=[Rule("mul-one", "x * 1", "x"), Rule("scale", "x//2*2 + x%2", "x")], **RANGES)
    greedy = optimize("(x//2)*2 + x%2", engine="greedy", **RANGES)
    assert result.trace.rules == {}
    assert {use.seconds for use in greedy.trace.rules.values()} == {None}
    assert {name: use.matches for name, use in greedy.trace.rules.items()} == greedy.rules


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("x", {"leaves"}),
        (NESTED, {"quotients", "sums", "selections", "leaves", "conditions", "rules"}),
        (DIVIDED, {"sums", "input", "leaves", "quotients", "extremes", "partial sums", "availability"}),
        ("x*y*3 + x*y//2", {"products", "quotients", "sums", "leaves"}),
    ],
)
def test_every_e_node_has_one_source(text, sources):
    result = optimize(text, **RANGES)
    assert sources <= set(result.trace.alternatives)
    assert set(result.trace.alternatives) <= KINDS | {provider.name for provider in PROVIDERS}
    # the answer that is read again has a graph of its own
    assert sum(result.trace.alternatives.values()) >= result.nodes
    assert all(result.trace.alternatives.values())


def test_without_the_theory_there_are_no_alternatives_of_laws():
    assert optimize(DIVIDED, **RANGES, engine="greedy").trace.alternatives == {}
    alone = optimize(DIVIDED, **RANGES, theory=False).trace.alternatives
    assert {"input", "rules"} <= alone.keys() <= {"input", "rules", "partial sums"}


def test_conjectures_are_counted():
    result = optimize("x//3 + (x + 1)//3 + (x + 2)//3", **RANGES)
    assert result.trace.conjectures == len(result.conjectures) > 0
    assert f"{result.trace.conjectures} conjectures" in str(result.trace)


def test_traces_of_runs_that_differ_in_time_alone_are_the_same():
    def timeless(trace):
        record = trace.record() | {"phases": list(trace.phases)}
        return record | {
            "rounds": [replace(r, seconds=0) for r in trace.rounds],
            "rules": {name: use.matches for name, use in trace.rules.items()},
        }

    one, other = [optimize(NESTED, **RANGES).trace for _ in range(2)]
    assert timeless(one) == timeless(other)


def test_a_record_is_json_and_has_every_field():
    trace = optimize(NESTED, **RANGES).trace
    record = json.loads(json.dumps(trace.record()))
    assert record.keys() == vars(trace).keys()
    assert len(record["rounds"]) == len(trace.rounds)
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_what_is_printed_is_a_few_lines():
    for way in WAYS:
        lines = str(optimize(DIVIDED, **RANGES, **way).trace).splitlines()
        assert 2 <= len(lines) <= 3 + 4 + MOST_ROUNDS + 3
        assert max(map(len, lines)) < 240


def test_many_rounds_and_rules_are_cut_in_print_alone():
    round_ = optimize(X % 4 + X // 4 * 4, theory=False).trace.rounds[0]
    trace = Trace(
        rounds=tuple(replace(round_, number=n) for n in range(40)),
        rules={f"rule-{n:02}": RuleUse(n, None) for n in range(30)},
    )
    lines = str(trace).splitlines()
    assert len([line for line in lines if " 1." in line]) == MOST_ROUNDS
    assert f"... {40 - MOST_ROUNDS} more" in str(trace)
    assert lines[-1].startswith("rules     rule-29 29, rule-28 28")
    assert lines[-1].endswith(f"{30 - MOST_RULES} more")


@pytest.mark.parametrize("way", [{}, {"theory": False}, {"engine": "greedy"}], ids=str)
def test_own_rules_that_match_nothing_are_named(way):
    rules = [Rule("squares", "x*x - y*y", "(x + y)*(x - y)"), Rule("cubes", "x*x*x", "x*(x*x) + 0*(x//7)", check=False)]
    trace = optimize("x*x - y*y", rules=rules, **RANGES, **way).trace
    assert trace.unmatched == ("cubes",)
    assert str(trace).splitlines()[-1] == "no match  cubes"


@pytest.mark.parametrize("options", [{"engine": "theory"}, {"rules": ()}, {}])
def test_shipped_rules_are_not_named(options):
    assert optimize("x*x - y*y", **RANGES, **options).trace.unmatched == ()


def test_many_rules_that_match_nothing_are_cut():
    names = tuple(f"r{number}" for number in range(MOST_RULES + 2))
    assert str(Trace(unmatched=names)).endswith(f", r{MOST_RULES - 1}, 2 more")


@pytest.mark.parametrize("theory", [True, False])
def test_what_is_done_once_per_process_is_not_within_the_budget(monkeypatch, theory):
    read = Tables._read

    def slowly(tables, some):
        time.sleep(1.5)
        read(tables, some)

    monkeypatch.setattr(Tables, "_read", slowly)
    # no session is open for these rules yet
    rules = [*DEFAULT, Rule(f"own-{theory}", "max(x, y) - min(x, y)", "max(x - y, y - x)")]
    result = optimize(
        "where(x < 5, where(y < 3, x, 2), 2) // 4",
        x=(0, 39),
        y=(0, 19),
        rules=rules,
        theory=theory,
        budget=Budget(seconds=2),
    )
    # the own rule and those that may match are read apart
    assert result.stop == "saturated"
    assert sum(result.trace.phases.values()) < 3
    assert sum(r.seconds for r in result.trace.rounds) < 1.5
