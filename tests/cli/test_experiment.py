"""Experiments: rank correlation, what a row says, and the files that are written."""

import csv
import json
import operator
import pkgutil
import signal
from itertools import product

import pytest
from corpora import HAND

import eqsat
from eqsat.cli import main as cli
from eqsat.cli.cases import read_corpus
from eqsat.cli.experiment import (
    INPUT,
    Experiment,
    Row,
    answers,
    chosen_cases,
    measure,
    predict,
    times,
)
from eqsat.extract import CodeSize, Latency, OpCount
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import const, var
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT

CASES = [
    {"id": "flat", "vars": {"i": [0, 63], "j": [0, 31]}, "exprs": ["(i*32 + j) // 32", "(i*32 + j) % 32"]},
    {"id": "digit", "vars": {"i": [0, 999]}, "exprs": ["i // 10 % 10 + i // 100 % 10"]},
    {"id": "pair", "vars": {"x": [0, 99], "n": [1, 9]}, "exprs": ["x // n", "x % n"]},
    {"id": "sum", "kind": "reduce", "before": "sum(r, r, 0, 9)", "after": "36"},
]
LINES = [json.dumps(case) for case in CASES]

BAD = [
    # a case, what it is called, a part of why it is left out
    ('{"id": "half', "line 1", "not a line of JSON"),
    (b"\xff", "line 1", "not a line of JSON"),
    ('{"vars": {}, "exprs": 3}', "line 1", "'exprs' must be a list"),
    (LINES[3], "line 1", "of kind 'reduce': only plain ones"),
    ('{"id": "zero", "vars": {"i": [0, 9]}, "exprs": ["i // i"]}', "zero", "the divisor 'i'"),
    ('{"id": "load", "vars": {"i": [0, 9]}, "buffers": ["A"], "exprs": ["A[i]"]}', "load", "'A[i]' needs an array"),
    ('{"id": "wide", "vars": {"i": [0, 9223372036854775807]}, "exprs": ["i*i"]}', "wide", "no 64-bit integer holds"),
]

CORRELATIONS = [
    ([1, 2, 3], [10, 20, 30], 1.0),
    ([1, 2, 3], [3, 2, 1], -1.0),
    # ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4
    ([1, 5, 5, 9], [1, 2, 3, 4], 0.949),
    ([1, 2], [3, 3], None),
]


@pytest.mark.parametrize(("predicted", "times", "correlation"), CORRELATIONS)
def test_rank_correlation(predicted, times, correlation):
    rows = []
    for n, (cost, time) in enumerate(zip(predicted, times, strict=True)):
        measured = {"nanoseconds": float(time), "predicted": {"mine": cost}}
        rows.append(Row(f"{n}", INPUT, INPUT, (const(n),), (), **measured))
        rows.append(Row(f"{n}", "mine", "dag", (const(-1 - n),), (), **measured))
    (line,) = Experiment(tuple(rows)).summary()
    assert line["spearman"] == line["of answers"] == correlation


def test_a_prediction_counts_loads_and_stores():
    i, j = var("i", 0, 9), var("j", 0, 9)
    assert predict([i + j, i], OpCount()) == 1 + 2 + 2
    assert predict([i + j, i], Latency()) == 1 + 2 * Latency().load + 2 * Latency().store


def test_cases_are_chosen_by_the_seed():
    assert {case.id for case in chosen_cases(LINES, None, 0, ignore)} == {"flat", "digit", "pair"}
    assert len(chosen_cases(LINES, 2, 0, ignore)) == 2
    orders = {tuple(case.id for case in chosen_cases(LINES, None, seed, ignore)) for seed in range(20)}
    assert len(orders) == 6
    assert chosen_cases(LINES, 2, 7, ignore) == chosen_cases(LINES, 2, 7, ignore)
    with pytest.raises(ValueError, match="no plain case"):
        chosen_cases(LINES[3:], None, 0, ignore)


def ignore(line: str) -> None:
    pass


@pytest.mark.parametrize(("line", "name", "why"), BAD, ids=[row[2] for row in BAD])
def test_a_bad_case_is_left_out_and_named(line, name, why):
    left_out = []
    lines = [line, *LINES[:1]]
    cases = chosen_cases(lines, None, 0, left_out.append)
    rows = [*answers(cases, {"o": OpCount()}, ["tree"], int, left_out.append)]
    assert [row.case for row in rows] == ["flat", "flat"]
    assert [text.startswith(f"{name}: ") and why in text for text in left_out] == [True]


def test_too_many_terms_are_left_out(monkeypatch):
    monkeypatch.setattr("eqsat.cli.experiment.MOST_TERMS", 5)
    left_out = []
    with pytest.raises(ValueError, match="no plain case of up to 5 terms"):
        chosen_cases(LINES[:1], None, 0, left_out.append)
    assert left_out == ["line 1: 7 terms are too many to compile: up to 5 are"]


def test_a_case_whose_costs_have_too_many_digits_for_a_table_is_left_out(tmp_path):
    long = f"sum(sum((r + s)//7, r, 0, {'9' * 2900}), s, 0, {'9' * 2900})"
    found = eqsat.experiment([long, "x*9 + y*9"], {"latency": Latency()}, x=(0, 9), y=(0, 9))
    found.to_csv(tmp_path / "rows.csv")
    assert {row.roots for row in found.rows if row.model == INPUT} == {(var("x", 0, 9) * 9 + var("y", 0, 9) * 9,)}


def test_too_many_variables_are_left_out():
    ranges = ", ".join(f'"v{n}": [0, 9]' for n in range(3000))
    left_out = []
    with pytest.raises(ValueError, match="no plain case"):
        chosen_cases([f'{{"id": "wide", "vars": {{{ranges}}}, "exprs": ["v1 + v2"]}}'], None, 0, left_out.append)
    assert left_out == ["line 1: 3001 terms are too many to compile: up to 2000 are"]


def test_no_case_left_is_an_error():
    cases = chosen_cases([BAD[4][0]], None, 0, ignore)
    with pytest.raises(ValueError, match="no case is left"):
        list(answers(cases, {"o": OpCount()}, ["tree"], int, ignore))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQSAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        models = {"latency": Latency(), "opcount": OpCount()}
        found = [*answers(chosen_cases(LINES, None, 0, ignore), models, ["tree", "exact"], lambda: None, ignore)]
        measure(found, 1, 0, lambda: None)
    return found


def test_a_row_for_each_input_model_and_extractor(rows):
    assert len(rows) == 3 * (1 + 2 * 2)
    for row in rows:
        assert row.nanoseconds > 0
        assert row.predicted == {"latency": predict(row.roots, Latency()), "opcount": predict(row.roots, OpCount())}
        if row.extract != INPUT:
            assert row.cost == cost_of(row.roots, {"latency": Latency(), "opcount": OpCount()}[row.model])
            assert 0 < row.extraction_milliseconds < row.milliseconds
            assert row.gap == (0.0 if row.extract == "exact" else None)
    times = {(row.roots, row.variables): row.nanoseconds for row in rows}
    assert all(row.nanoseconds == times[row.roots, row.variables] for row in rows)


def test_each_case_is_optimised_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "eqsat.cli.experiment.optimize", lambda *args, **known: calls.append(args) or optimize(*args, **known)
    )
    models = {"latency": Latency(), "opcount": OpCount()}
    forwards = [*answers(chosen_cases(LINES, None, 0, ignore), models, ["dag", "tree"], int, ignore)]
    assert len(calls) == 3
    backwards = answers(
        chosen_cases(LINES, None, 0, ignore), dict(reversed(models.items())), ["tree", "dag"], int, ignore
    )
    by_key = {(row.case, row.model, row.extract): row.roots for row in backwards}
    assert {(row.case, row.model, row.extract): row.roots for row in forwards} == by_key


def test_times_of_optimising_and_of_choosing(rows):
    optimising, choosing, count = times(rows)
    assert optimising == sum(row.milliseconds for row in rows if row.extract == INPUT) / 1000 > 0
    assert (choosing > 0, count) == (True, 3 * 2 * 2)


def test_a_summary_has_a_line_for_each_model_and_extractor(rows):
    lines = Experiment(tuple(rows)).summary()
    assert [(line["model"], line["extract"]) for line in lines] == [*product(["latency", "opcount"], ["tree", "exact"])]
    for line in lines:
        assert line["cases"] == 3
        assert -1 <= line["of answers"] <= 1
        assert line["time"] > 0


def test_cases_of_one_name_are_not_taken_for_one():
    i, found = var("i", 0, 9), []
    for cost, root in enumerate((i, i + 1, i + 2), start=1):
        known = {"nanoseconds": 100.0**cost, "predicted": {"mine": 1}}
        found.append(Row("same", INPUT, INPUT, (root,), (i,), **known))
        found.append(Row("same", "mine", "dag", (root,), (i,), cost, cost, **known))
    assert Experiment(tuple(found)).summary()[0]["time"] == 1


def test_plots(rows, tmp_path):
    pytest.importorskip("matplotlib")
    assert all(
        path.read_bytes().startswith(b"\x89PNG") for path in Experiment(tuple(rows)).plot(tmp_path / "new" / "one")
    )


@pytest.mark.filterwarnings("error")
def test_what_has_no_order_has_no_correlation(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    source, target = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text('{"id": "three", "vars": {"i": [0, 9]}, "exprs": ["3"]}\n' + BAD[0][0])
    with pytest.raises(SystemExit) as done:
        cli.main(["experiment", str(source), "-o", str(target), "--repeats", "1", "--costs", "opcount"])
    out, err = capsys.readouterr()
    assert not done.value.code
    assert out.startswith(
        "model opcount  extract dag  cases 1  before 0  after 0  ratio -  spearman -  of answers -  time "
    )
    assert err.startswith("# left out: line 2: not a line of JSON")


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQSAT_CACHE_DIR", str(tmp_path / "cache"))
    source, target = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text("\n".join(LINES))
    arguments = ["experiment", str(source), "-o", str(target), "--repeats", "1", "--costs", "opcount,latency"]
    with pytest.raises(SystemExit):
        # an extractor that is named twice counts once
        cli.main([*arguments, "--extracts", "dag,tree,dag"])
    out, err = capsys.readouterr()
    assert [line.split()[1] for line in out.splitlines()] == ["opcount"] * 2 + ["latency"] * 2
    assert "# optimised once a case: " in err
    assert " chosen from that 12 times: " in err
    with (target / "measurements.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert {(line["case"], line["extract"]) for line in lines if line["model"] == "opcount"} == {
        (case["id"], extract) for case in CASES[:3] for extract in ("dag", "tree")
    }
    assert all(float(line["nanoseconds"]) > 0 and int(line["predicted latency"]) > 0 for line in lines)
    with pytest.raises(SystemExit, match="2"):
        cli.main([*arguments, "--extracts", "best"])
    assert "'best' is not one of 'tree', 'dag', 'exact'" in capsys.readouterr().err


def test_an_experiment_from_python(tmp_path):
    class Multiplications:
        def price(self, op, operands, result):
            return 100 if op == "mul" else 1 if operands else 0

    corpus = read_corpus(LINES[:3])
    costs = {"mine": Multiplications(), "code": "codesize"}
    found = eqsat.experiment(corpus, costs, extract=["dag", "tree"], rules=[*DEFAULT])
    assert [(row.case, row.model, row.extract) for row in found.rows[:5]] == [
        ("flat", INPUT, INPUT),
        *[("flat", model, extract) for model in costs for extract in ("dag", "tree")],
    ]
    assert not found.left_out
    for row in found.rows:
        if row.extract != INPUT:
            model = CodeSize() if row.model == "code" else Multiplications()
            assert cost_of(row.roots, model) == row.cost <= row.cost_before
    records = found.records()
    assert len({tuple(record) for record in records}) == 1
    assert records[0]["predicted mine"] == found.rows[0].predicted["mine"]
    assert records[1]["out"] == ["i", "j"]
    assert records[0]["nanoseconds"] is None
    assert [line["cases"] for line in found.summary()] == [3] * 4
    found.to_json(tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == records
    found.to_csv(tmp_path / "rows.csv")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(records) + 1
    assert [path.name for path in found.plot(tmp_path)] == ["extraction.png", "profile.png", "pareto.png"]
    alone = Experiment(tuple(row for row in found.rows if row.model in (INPUT, "mine")))
    assert [path.name for path in alone.plot(tmp_path)] == ["extraction.png", "profile.png"]


def test_choosing_for_a_model_takes_a_fraction_of_saturating():
    models = {f"{name} {number}": name for name in ("latency", "gpu", "opcount", "codesize") for number in range(2)}
    found = eqsat.experiment(read_corpus(HAND)[:40], models)
    saturating, choosing, count = times(found.rows)
    assert count == 40 * 8
    # a fifth instead of a tenth, as other processes may run beside it
    assert choosing / 8 < saturating / 5


def test_an_experiment_over_expressions_is_measured_if_asked():
    x = var("x", 0, 99)
    found = eqsat.experiment([x // 8 * 8 + x % 8, "x % n", "x // y"], ["gpu"], repeats=1, x=(0, 99), n=(1, 9), y=(0, 9))
    assert [line.partition(":")[0] for line in found.left_out] == ["2"]
    assert found.is_measured
    assert {"spearman", "ratio"} <= set(found.summary()[0])


def test_an_experiment_takes_one_name():
    found = eqsat.experiment(["x % 4"], "gpu", extract="tree", x=(0, 9))
    assert [(line["model"], line["extract"]) for line in found.summary()] == [("gpu", "tree")]


def test_an_experiment_refuses_what_it_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="unknown cost model 'oops'"):
        eqsat.experiment(["x"], ["oops"], x=(0, 9))
    with pytest.raises(ValueError, match="weighs 'floor_div', which is no operator; did you mean 'floordiv'"):
        eqsat.experiment(["x"], {"mine": OpCount({"floor_div": 9})}, x=(0, 9))
    with pytest.raises(ValueError, match="there is no cost model to compare: name one"):
        eqsat.experiment(["x"], {}, x=(0, 9))
    with pytest.raises(ValueError, match="there is no extractor to compare: name one"):
        eqsat.experiment(["x"], extract=[], x=(0, 9))
    with pytest.raises(ValueError, match="-1 repeats: give 0 or more"):
        eqsat.experiment(["x"], repeats=-1, x=(0, 9))
    with pytest.raises(ValueError, match="unknown extractor 'best': use some of tree, dag, exact"):
        eqsat.experiment(["x"], extract=["best"], x=(0, 9))
    with pytest.raises(
        ValueError, match="no case is left; the first was left out: 0: the divisor 'x' of 'x//x' may be"
    ):
        eqsat.experiment(["x // x"], x=(0, 9))
    with pytest.raises(ValueError, match="there is no case"):
        eqsat.experiment([])
    (corpus := tmp_path / "bad.jsonl").write_text('{"id": "bad", "vars": {}, "exprs": ["1 +"]}')
    with pytest.raises(ValueError, match=r"no case is left; the first was left out: .*an operand is missing"):
        eqsat.experiment(corpus)


@pytest.mark.parametrize(("price", "why"), [(None, "prices 'load' at None"), (1.5, "prices 'load' at 1.5")])
def test_prices_of_loads_and_stores_are_looked_at(price, why):
    class Model:
        def price(self, op, operands, result):
            return price if op in ("load", "store") else 1

    with pytest.raises(ValueError, match=f"the cost model {why}: a price must be an integer"):
        eqsat.experiment(["i % 7"], {"mine": Model()}, repeats=1, i=(0, 99))


def test_models_of_files_and_rules_on_the_command_line(eqsat, tmp_path):
    corpus, mine, out = tmp_path / "in.jsonl", tmp_path / "mine.py", tmp_path / "out"
    corpus.write_text("\n".join(LINES[:3]))
    mine.write_text(
        "from eqsat import Rule\n"
        "class Adds:\n"
        "    def price(self, op, operands, result):\n"
        "        return 5 if op == 'add' else 1 if operands else 0\n"
        "RULE = Rule('twice', 'x + x', 'x*2')\n"
    )
    asked = ["experiment", str(corpus), "-o", str(out), "--costs", f"gpu,{mine}:Adds", "--repeats", "0"]
    code, text, _ = eqsat(*asked, "--rules", str(mine))
    assert code == 0
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["model", model] for model in ("gpu", f"{mine}:Adds") for _ in range(2)
    ]
    rows = json.loads((out / "measurements.json").read_text())
    assert {row["model"] for row in rows} == {INPUT, "gpu", f"{mine}:Adds"}


@pytest.mark.parametrize(("step", "cases", "measured"), [("optimize", 1, 0), ("measure", 3, 0), ("measure", 3, 5)])
def test_an_interrupted_experiment_keeps_what_is_done(eqsat, tmp_path, monkeypatch, step, cases, measured):
    (tmp_path / "in.jsonl").write_text("\n".join(LINES[:3]))
    owner, last = (
        ("eqsat.cli.experiment", 1) if step == "optimize" else ("eqsat.codegen.runtime.CompiledExprs", measured)
    )
    steps, calls = operator.attrgetter(step)(pkgutil.resolve_name(owner)), []

    def interrupted(*given, **options):
        calls.append(given)
        if len(calls) > last:
            signal.raise_signal(signal.SIGTERM)
        return steps(*given, **options)

    monkeypatch.setattr(f"{owner}.{step}", interrupted)
    asked = [str(tmp_path / "in.jsonl"), "-o", str(tmp_path), "--costs", "opcount", "--extracts", "tree"]
    assert eqsat("experiment", *asked) == (143, "", f"eqsat: terminated after {cases} case{'s' * (cases != 1)}\n")
    rows = json.loads((tmp_path / "measurements.json").read_text())
    assert len(rows) == cases * 2
    assert len((tmp_path / "measurements.csv").read_text().splitlines()) == 1 + len(rows)
    assert all((row["nanoseconds"] is not None) == bool(measured) for row in rows)
