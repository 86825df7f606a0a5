"""The command line: what it prints, and one-line errors for everything else."""

import errno
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

import eqsat as package
from eqsat.cli import main as cli
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import FIGURES, OPERATIONS
from eqsat.optimizer.front import ENGINES, optimize
from eqsat.optimizer.reextraction import EXTRACTORS
from eqsat.rules import DEFAULT

ROOT = Path(__file__).parent.parent.parent

GOOD = '{"id": "good", "vars": {"i": [0, 31]}, "exprs": ["i*8 // 8"]}\n'
COMMAND = [sys.executable, "-m", "eqsat"]


def test_the_contract_example(eqsat):
    code, out, err = eqsat(
        "optimize", "(R3*8 + R4*4 + R2) // 8", "--range", "R3=4", "--range", "R4=2", "--range", "R2=4"
    )
    assert (code, out) == (0, "R3\n")
    assert err.startswith("# cost ")
    assert "saturated" in err
    assert "exhaustive check at 32 points" in err


@pytest.mark.parametrize("way", [[], ["--engine", "theory"], ["--engine", "greedy"], ["--no-theory"]], ids=" ".join)
def test_stats_are_remarks_or_part_of_the_record(eqsat, way):
    asked = ["optimize", "(x*7 + y*4)//7", "--range", "x=40", "--range", "y=20", *way]
    plain, stats, data = [eqsat(*asked, *more) for more in ([], ["--stats"], ["--stats", "--json"])]
    assert plain[:2] == stats[:2]
    assert len(plain[2].splitlines()) == 1
    first, *lines = stats[2].splitlines()
    assert first.startswith("# cost ")
    assert lines[0].startswith("# time      normalise ")
    assert all(line.startswith("# ") for line in lines)
    record = json.loads(data[1])
    assert "trace" not in json.loads(eqsat(*asked, "--json")[1])
    assert 1000 * sum(record["trace"]["phases"].values()) == pytest.approx(record["ms"], abs=0.001)
    assert bool(record["trace"]["rounds"]) == (record["trace"]["not_entered"] is None)


@pytest.mark.parametrize(
    ("branches", "wanted"),
    [
        ([], "where(1 <= x, z//max(x, 1), 0)"),
        (["--branches", "eager"], "where(1 <= x, z//max(x, 1), 0)"),
        (["--branches", "lazy"], "where(x < 1, 0, z//x)"),
    ],
)
def test_branches_are_evaluated_eagerly_unless_lazily(eqsat, tmp_path, branches, wanted):
    text = "where(0 < x, z//max(x, 1), 0)"
    assert eqsat("optimize", text, "--var", "x=-9:12", "--var", "z=-50:50", *branches)[:2] == (0, f"{wanted}\n")
    corpus, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    corpus.write_text(json.dumps({"id": "one", "vars": {"x": [-9, 12], "z": [-50, 50]}, "exprs": [text]}))
    assert eqsat("corpus", str(corpus), "-o", str(out), *branches)[0] == 0
    assert json.loads(out.read_text())["out"] == [wanted]


def test_json(eqsat):
    code, out, err = eqsat("optimize", "x // 4 * 4 + x % 4", "x < 40", "--var", "x=0:31", "--json", "--explain", "--c")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert record["out"] == ["x", "True"]
    assert record["stop"] == "saturated"
    assert record["checked"] == "exhaustive"
    assert record["points"] == 32
    assert record["cost"] < record["cost_before"]
    assert "kernel" in record["c"]
    assert isinstance(record["rules"], dict)
    assert [step["law"] for step in record["explanation"]["steps"]] == ["mod-core", "lt-always"]


def test_arrays(eqsat):
    assert eqsat("optimize", "A[x] + A[x % 4]", "--range", "x=4", "--buffer", "A=i32")[:2] == (0, "A[x]*2\n")
    code, out, err = eqsat("optimize", "sum(r*x, r, 0, 10000000000000)", "--range", "x=4")
    assert (code, out) == (0, "x*49999999999995000000000000\n")
    assert err.endswith("unchecked\n")


def test_explain(eqsat):
    code, out, _ = eqsat("optimize", "x // 4 * 4 + x % 4", "--var", "x=0:31", "--explain")
    assert code == 0
    assert out.startswith("x\n\nx//4*4 + x%4\n  = x    mod-core: ")
    wide = f"x={-(2**40)}:{2**40}"
    assert "[proved]" in eqsat("optimize", "x // 4 * 4 + x % 4", "--var", wide, "--explain", "--prove")[1]


def test_several_answers(eqsat):
    pair = ("optimize", "x // n", "x % n", "--var", "x=0:4095", "--var", "n=1:64", "--pareto", "operations")
    _, out, err = eqsat(*pair)
    assert out.splitlines() == ["x//n", "x - x//n*n", "# cost 44, 2 operations", "x//n", "x%n"]
    assert err.startswith("# cost 44 -> 28, 3 operations, saturated, ")
    record = json.loads(eqsat(*pair, "--json")[1])
    assert [(answer["cost"], answer["size"]) for answer in record["pareto"]] == [(28, 3), (44, 2)]
    assert record["pareto"][1]["out"] == ["x//n", "x%n"]


def test_what_is_as_cheap_as_an_answer_of_trees_and_smaller_is_printed(eqsat):
    ranges = ("--var", "x=1:4", "--var", "y=1:2")
    _, out, err = eqsat("optimize", "x*y//7", *ranges, "--extract", "tree", "--pareto", "operations")
    assert out.splitlines()[:3] == [
        "where(where(y < 2, x, x*2) < 7, 0, 1)",
        "# cost 5, 3 operations",
        "where(x*y < 7, 0, 1)",
    ]
    assert err.startswith("# cost 8 -> 5, 5 operations, ")


def test_loops_and_a_model_file(eqsat, tmp_path, monkeypatch):
    figures = {figure: dict.fromkeys(OPERATIONS, 7) for figure in FIGURES}
    monkeypatch.setattr("eqsat.cli.calibrate.measure", lambda repeats, advance: figures)
    model = tmp_path / "model.json"
    code, _, err = eqsat("calibrate", "-o", str(model))
    assert (code, err) == (0, f"# use it: eqsat optimize --cost {model} ...\n")
    ranges = ["--range", "i=10", "--range", "j=8", "--range", "n=9"]
    code, out, err = eqsat("optimize", "j + i + n*3", *ranges, "--loops", "i, j", "--cost", str(model))
    assert (code, out) == (0, "n*3 + i + j\n")
    # both additions were in the inner loop; one is in the outer now
    assert f"cost {7 * (1 + 80 + 80)} -> {7 * (1 + 10 + 80)}" in err


def test_what_stays_is_not_said_to_be_checked(eqsat):
    assert eqsat("optimize", "x // 3", "--var", "x=0:9")[2].endswith(" ms, unchanged\n")


def test_an_expression_may_begin_with_a_minus(eqsat):
    assert eqsat("optimize", "-x // 1", "--var", "x=-5:5")[:2] == (0, "-x\n")


def test_constraints_are_used(eqsat):
    assert eqsat("optimize", "x // d", "--var", "x=0:9", "--var", "d=0:9", "--constraint", "d == 1")[:2] == (0, "x\n")


def test_c(eqsat):
    code, out, _ = eqsat("optimize", "i // 3", "--range", "i=10", "--c")
    assert code == 0
    assert "int32_t" in out


def test_a_proof_on_request(eqsat):
    wide = f"x={-(2**40)}:{2**40}"
    code, out, err = eqsat("optimize", "(x*6 + 5) // 3", "--var", wide, "--prove")
    assert (code, out) == (0, "x*2 + 1\n")
    assert "proved (isl)" in err


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extract", EXTRACTORS)
def test_engines_and_extractors(eqsat, engine, extract):
    code, out, _ = eqsat(
        "optimize", "(i*4 + j) // 4", "--range", "i=4", "--range", "j=4", "--engine", engine, "--extract", extract
    )
    assert (code, out) == (0, "i\n")


def test_rules_are_listed(eqsat):
    code, out, _ = eqsat("rules")
    assert code == 0
    assert len(out.splitlines()) > 20
    rules = json.loads(eqsat("rules", "--json")[1])
    assert len(rules) == len(out.splitlines())
    assert set(rules[0]) == {"name", "left", "right", "when", "beside", "why", "both_ways"}


def test_what_rules_rewrite_stands_in_one_column(eqsat):
    longest = max(len(rule.name) for rule in (*cli.DEFAULT, *cli.REDUCE))
    assert all(line[longest] == " " != line[longest + 1] for line in eqsat("rules")[1].splitlines())


def test_rules_are_listed_with_their_proofs(eqsat, monkeypatch):
    monkeypatch.setattr(cli, "DEFAULT", (Rule("one", "x // 1", "x"), Rule("two", "x + x", "x * 2")))
    monkeypatch.setattr(cli, "REDUCE", (Rule("three", "sum(x, i, u, u + 1)", "at(x, u)"),))
    code, out, err = eqsat("rules", "--prove")
    assert (code, err) == (0, "# 3 rules: 2 symbolic, 1 small ranges\n")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["one", "symbolic"],
        ["two", "symbolic"],
        ["three", "small"],
    ]
    code, out, _ = eqsat("rules", "--prove", "--json")
    assert code == 0
    assert [(row["name"], row["proof"]) for row in json.loads(out)] == [
        ("one", ["symbolic"]),
        ("two", ["symbolic"]),
        ("three", ["small ranges"]),
    ]


def test_a_proof_of_a_rule_that_is_left_open_says_so(eqsat, monkeypatch):
    monkeypatch.setattr(cli, "DEFAULT", (Rule("one", "x // 1", "x"), Rule("two", "x + x", "x * 2")))
    code, out, err = eqsat("rules", "one", "two", "--prove", "--prove-seconds", "1e-9")
    assert (code, err) == (0, "# 2 rules: 2 not proved\n")
    assert [line.split()[:2] for line in out.splitlines()] == [["one", "none"], ["two", "none"]]
    assert all(line.endswith("left open after 1e-09 s") for line in out.splitlines())
    assert eqsat("rules", "--prove-seconds", "1")[::2] == (
        2,
        "eqsat: --prove-seconds is the time of --prove: give that too\n",
    )


@pytest.mark.parametrize("options", [["--prove"], ["--prove", "--json"]])
def test_a_false_rule_is_one_line(eqsat, monkeypatch, options):
    monkeypatch.setattr(cli, "DEFAULT", (Rule("wrong", "x//2 + x//2", "x"),))
    message = "eqsat: rule 'wrong' is false: with x = -1 the left side is -2, the right side -1\n"
    assert eqsat("rules", *options) == (2, "", message)


def test_a_version_of_what_is_not_installed(eqsat, monkeypatch):
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    code, out, err = eqsat("--version")
    assert (code, out, err) == (0, f"eqsat from {Path(package.__file__).parent / 'cli'}, not installed\n", "")


def test_version_and_help(eqsat, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", {"eqsat": "1.2"}.get)
    assert eqsat("--version")[1] == "eqsat 1.2\n"
    assert package.__version__ == "1.2"
    assert not hasattr(package, "versions")
    assert "optimize" in eqsat("--help")[1]
    assert eqsat()[1] == eqsat("--help")[1]


def test_mlir_is_rewritten(eqsat, tmp_path):
    source, target = tmp_path / "a.mlir", tmp_path / "b.mlir"
    loop = "affine.for %i = 0 to 8 {\naffine.store %x, %a[%i mod 8] : memref<8xf32>\n}\nreturn\n"
    text = f"func.func @f(%a: memref<8xf32>, %x: f32) {{\n{loop}}}\n"
    source.write_text(text)
    wanted = text.replace(" mod 8", "")
    assert eqsat("mlir", str(source))[:2] == (0, wanted)
    code, out, err = eqsat("mlir", str(source), "-o", str(target))
    assert (code, out, err) == (0, "", "# 1 operation replaced, 0 left out\n")
    assert target.read_text() == wanted
    code, out, err = eqsat("mlir", str(source), "--total-seconds", "1e-9")
    assert (code, out) == (0, text)
    # the bounds of the loop, and the subscript
    assert err.splitlines() == [
        "# 0 operations replaced, 0 left out",
        "# the time was up for 2 blocks and affine operations: give more --total-seconds",
    ]
    source.write_text("func.func @f() {\n")
    message = "eqsat: line 1 of the MLIR text opens a region that has no end: close it with '}'\n"
    assert eqsat("mlir", str(source)) == (2, "", message)
    source.write_bytes(b"\xff")
    assert eqsat("mlir", str(source))[2].endswith("is no text in UTF-8: give MLIR in its textual form\n")


WRONG = [
    (["optimize"], "Missing argument"),
    (["optimize", "x +", "--var", "x=0:3"], "an operand is missing"),
    (["optimize", "x"], "unknown variable 'x'"),
    (["optimize", "x", "--var", "x=3"], "NAME=LOW:HIGH"),
    (["optimize", "x", "--range", "x=a"], "NAME=N"),
    (["optimize", "x", "--var", "x=5:3"], "empty: [5, 3]"),
    (["optimize", "x", "--range", "x=0"], "empty: [0, -1]"),
    (["optimize", "x", "--var", "x=0:3", "--range", "x=4"], "given twice"),
    (["optimize", "x", "--var", "x y=0:3"], "not a variable name"),
    (["optimize", "x", "--vra", "x=0:3"], "No such option"),
    (["optimize", "x", "--cost", "beauty", "--var", "x=0:3"], "unknown cost model 'beauty': use latency"),
    (["optimize", "x", "--cost", "/nonexistent.json", "--var", "x=0:3"], "No such file"),
    (
        ["optimize", "A[x]", "--var", "x=0:3"],
        "unknown array 'A': make it by buffer('A'), on the command line by --buffer",
    ),
    (["optimize", "x", "--var", "x=0:3", "--prove-seconds", "3"], "--prove-seconds is the time of --prove"),
    (["optimize", "A[x]", "--var", "x=0:3", "--buffer", "A"], "--buffer 'A' is not of the form NAME=TYPE"),
    (
        ["optimize", "A[x]", "--var", "x=0:3", "--buffer", "A=f32"],
        "the elements are one of i32, i64, bool, int, not 'f32'",
    ),
    (["optimize", "x", "--var", f"x=0:{'9' * 5000}"], "--var x: a bound has more than 4300 digits"),
    (["optimize", "x", "--var", "x=0:3", "--buffer", "x=i32"], "'x' is given twice"),
    (["optimize", "A[x]", "--var", "x=0:3", "--buffer", "A=i32", "--c"], "give it as a store of a kernel"),
    (["optimize", "x", "--loops", "y", "--var", "x=0:3"], "--loops names 'y'"),
    (["optimize", "i", "--range", "i=4", "--buffer", "A=i32", "--loops", "A,i"], "--loops names 'A', which is no var"),
    (["optimize", "i", "--range", "i=4", "--loops", "i, i"], "--loops names a variable twice"),
    (["optimize", "A", "--buffer", "A=i32"], "'A' is an array, not a value: index it, as in A[i]"),
    (["optimize", "A", "--buffer", "A=i32", "--c"], "'A' is an array, not a value"),
    (["optimize", "x", "--range", "x=4", "--buffer", "A=bool", "--constraint", "A"], "'A' is an array, not a value"),
    (["calibrate"], "Missing option '-o'"),
    (["calibrate", "-o", "/nonexistent/model.json"], "/nonexistent/model.json: No such file"),
    (["calibrate", "-o", "model.txt"], "model.txt is no name for a cost model: --cost takes files that end in .json"),
    (["optimize", "x // x", "--var", "x=0:3"], "[0, 3]"),
    (["optimize", "x", "--var", "x=0:3", "--prove-seconds", "nan"], "nan is no time: give a number of seconds over 0"),
    (["optimize", "x", "--var", "x=0:3", "--prove-seconds", "-1"], "--prove-seconds"),
    (["optimize", "x", "--var", "x=0:3", "--seconds", "0"], "--seconds"),
    (["corpus", "x.jsonl", "--seconds", "nan"], "nan is no time: give a number of seconds over 0"),
    (["optimize", "x // d", "--var", "x=0:3", "--var", "d=-1:1"], "[-1, 1]"),
    (["optimize", "x", "--var", "x=0:3", "--constraint", "x +"], "an operand is missing"),
    (["beautify"], "No such command"),
    (["corpus"], "Missing argument"),
    (["corpus", "/nonexistent.jsonl"], "No such file"),
    (["corpus", "."], "Is a directory"),
    (["mlir", "/nonexistent.mlir"], "No such file"),
    (["corpus", "x", "--jobs", "0"], "--jobs"),
    (["corpus", __file__, "-o", __file__], "would be overwritten by its own answers"),
    (["experiment", __file__, "-o", __file__], "test_cli.py' is a file."),
    (["discover", "/nonexistent", __file__, "-o", __file__], "would be overwritten by its own answers"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_use_is_one_line(eqsat, arguments, message):
    code, out, err = eqsat(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_too_little_memory_is_one_line(eqsat, monkeypatch):
    monkeypatch.setattr(cli, "parse", lambda *given: bytearray(2**60))
    assert eqsat("optimize", "x", "--var", "x=0:1") == (2, "", "eqsat: out of memory: give a smaller input\n")


def test_a_bug_is_one_line(eqsat, monkeypatch):
    monkeypatch.setattr(cli, "parse", lambda *given: {}["surprise"])
    assert eqsat("optimize", "x", "--var", "x=0:1") == (2, "", "eqsat: internal error: KeyError: 'surprise'\n")


def test_proofs_of_rules_without_z3_are_one_line(eqsat, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    code, _, err = eqsat("rules", "--prove")
    assert (code, err.count("\n")) == (2, 1)
    assert "eqsat[check]" in err


def test_the_time_for_one_optimisation_can_be_given(eqsat, tmp_path):
    text = "((i*4 + j) // 3 * 3 + (i*4 + j) % 3) // 4 % 5"
    given = tmp_path / "one.jsonl"
    given.write_text(json.dumps({"vars": {"i": [0, 63], "j": [0, 3]}, "exprs": [text]}))
    for command in (["optimize", text, "--range", "i=64", "--range", "j=4", "--json"], ["corpus", str(given)]):
        late, whole = [eqsat(*command, "--seconds", seconds) for seconds in ("1e-9", "1e9")]
        assert json.loads(late[1])["stop"] == "time"
        assert json.loads(whole[1])["stop"] == "saturated"


def test_a_proof_that_is_not_found_says_why(eqsat):
    wide = ["--var", f"x={-(2**40)}:{2**40}", "--var", f"y=1:{2**40}"]
    code, out, err = eqsat("optimize", "x*y // y", *wide, "--prove", "--prove-seconds", "1e-6", "--json")
    row = json.loads(out)
    assert (code, err, row["out"], row["checked"]) == (0, "", ["x"], "sampled")
    assert row["proof"].startswith("undecided within 1e-06 s: ")


def test_a_wrong_result_is_an_error_that_names_a_point(eqsat, monkeypatch):
    def wrong(*given, **options):
        right = optimize(*given, **options)
        return replace(right, exprs=tuple(e + e // (2**40 - 1) for e in right.exprs))

    monkeypatch.setattr(cli, "optimise", wrong)
    code, out, err = eqsat("optimize", "x + 0", "--var", f"x=0:{2**40 - 1}", "--prove")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"the result is wrong at {{'x': {2**40 - 1}}}" in err


def test_a_corpus_of_errors_ends_with_0(eqsat, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("[]")
    assert eqsat("corpus", str(source))[::2] == (0, "# 1 case, 1 error\n")


def test_a_corpus(eqsat, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD + '{"id": "half\n\n' + GOOD)
    code, out, err = eqsat("corpus", str(source), "-o", str(target), "--jobs", "2")
    assert (code, out, err) == (0, "", "# 3 cases, 1 error\n")
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["good", "line 2", "good"]
    assert eqsat("corpus", str(source))[1].count("\n") == 3


def test_an_unwritable_output_is_one_line(eqsat, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(GOOD)
    code, _, err = eqsat("corpus", str(source), "-o", str(tmp_path / "no" / "out.jsonl"))
    assert (code, err.count("\n")) == (2, 1)


def test_a_model_that_is_too_deep_is_one_line(eqsat, tmp_path):
    model = tmp_path / "deep.json"
    model.write_text("[" * 100_000)
    code, out, err = eqsat("optimize", "x", "--var", "x=0:3", "--cost", str(model))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"'{model}' is not a cost model" in err


def test_a_dash_is_standard_output(eqsat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(GOOD)
    Path("in.mlir").write_text("module {}")
    assert json.loads(eqsat("corpus", "in.jsonl", "-o", "-")[1])["out"] == ["i"]
    assert eqsat("mlir", "in.mlir", "-o", "-")[1] == "module {}"
    assert "name it by -o" in eqsat("corpus", "in.jsonl", "--resume", "-o", "-")[2]
    assert not Path("-").exists()


def test_a_mark_of_the_encoding_does_not_hide_the_first_line_of_a_module(eqsat, tmp_path):
    module = """#map = affine_map<(d0) -> (d0 * 4 floordiv 4)>
func.func @f(%a: memref<64xindex>) {
  affine.for %i = 0 to 64 {
    %b = affine.apply #map(%i)
    affine.store %b, %a[%b] : memref<64xindex>
  }
  return
}
"""
    found = []
    for mark in ("", "\ufeff"):
        (tmp_path / "in.mlir").write_text(mark + module, encoding="utf-8")
        found.append(eqsat("mlir", str(tmp_path / "in.mlir")))
    assert "affine.apply" not in found[0][1]
    assert found[0] == found[1]


def test_a_baseline_that_is_no_json_is_named(eqsat, tmp_path):
    (tmp_path / "in.jsonl").write_text(GOOD)
    code, _, err = eqsat("corpus", str(tmp_path / "in.jsonl"), "--baseline", __file__)
    assert (code, err.startswith(f"eqsat: {__file__} has no rows of 'eqsat corpus'")) == (2, True)


@pytest.mark.parametrize("cost", ["3", None, 1.5, True])
def test_a_baseline_whose_costs_are_no_integers_is_refused_before_anything_is_answered(eqsat, tmp_path, cost):
    (tmp_path / "in.jsonl").write_text(GOOD)
    (tmp_path / "old.jsonl").write_text(json.dumps({"id": "good", "cost": cost}))
    code, out, err = eqsat("corpus", str(tmp_path / "in.jsonl"), "--baseline", str(tmp_path / "old.jsonl"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"a cost is {cost!r}, not an integer: give what -o wrote" in err


def test_costs_of_many_digits_are_printed_as_long_literals_are(eqsat):
    end = "9" * 2900
    code, out, err = eqsat("optimize", f"sum(sum((r + s)//7, r, 0, {end}), s, 0, {end})")
    assert (code, err.startswith("# cost 0x")) == (0, True)
    code, out, err = eqsat("optimize", f"sum(sum((r + s)//7, r, 0, {end}), s, 0, {end})", "--json")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_baseline_of_cases_is_refused(eqsat, tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(GOOD)
    code, _, err = eqsat("corpus", str(cases), "-o", str(tmp_path / "out.jsonl"), "--baseline", str(cases))
    assert (code, err.count("\n")) == (2, 1)
    assert str(cases) in err
    assert "give what -o wrote" in err


def test_discover_says_before_its_search_what_it_cannot_write(eqsat, tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(GOOD)
    target = tmp_path / "missing" / "rules.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eqsat.discover.discovery.discover", None)
        code, _, err = eqsat("discover", str(cases), "-o", str(target))
    assert (code, err) == (2, f"eqsat: {target}: No such file or directory\n")


CLOSED = [
    ("corpus - <&-", "eqsat: standard input is closed: give it a file, or name one\n"),
    ("optimize x%3 --range x=9 >&-", "eqsat: standard output is closed: the answer would be lost\n"),
    ("rules >&-", "eqsat: standard output is closed: the answer would be lost\n"),
    ("corpus IN >&-", "eqsat: standard output is closed: give -o a file\n"),
    ("corpus IN -o /dev/full", "eqsat: /dev/full: No space left on device\n"),
    ("optimize x%3 --range x=9 --html /dev/full", "eqsat: /dev/full: No space left on device\n"),
    ("optimize x%3 --range x=9 >/dev/full", "eqsat: standard output: No space left on device\n"),
    ("--version >/dev/full", "eqsat: standard output: No space left on device\n"),
    ("--help >/dev/full", "eqsat: standard output: No space left on device\n"),
    ("corpus -h >/dev/full", "eqsat: standard output: No space left on device\n"),
    ("optimize -h >/dev/full", "eqsat: standard output: No space left on device\n"),
]


@pytest.mark.parametrize(("command", "message"), CLOSED)
def test_streams_that_take_or_give_nothing_are_named(tmp_path, command, message):
    source = tmp_path / "in.jsonl"
    source.write_text(GOOD)
    done = subprocess.run(
        ["bash", "-c", f'"$@" {command.replace("IN", str(source))}', "bash", *COMMAND], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, message)


def test_an_error_of_the_system_that_names_no_file_is_not_one_of_standard_output(eqsat, monkeypatch):
    def no_process(*arguments: object, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("eqsat.cli.main.optimise", no_process)
    assert eqsat("optimize", "x%3", "--range", "x=9") == (2, "", "eqsat: Resource temporarily unavailable\n")


@pytest.mark.parametrize("command", ["optimize x%3 --range x=9 --html -", "experiment cases.jsonl -o -"])
def test_a_dash_is_no_name_where_standard_output_has_the_answers(eqsat, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = eqsat(*command.split())
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])
    assert err.endswith("- is no name: standard output has the answers\n")


def test_a_reader_that_leaves_is_no_error(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(GOOD * 2000)
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1', "bash", *COMMAND, "corpus", str(source)], capture_output=True, text=True
    )
    assert json.loads(done.stdout)["id"] == "good"
    assert done.stderr == ""


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command line in a process and a session of its own."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_interrupting_a_corpus_keeps_what_is_done(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD * 20_000)
    run = started("corpus", str(source), "-o", str(target))
    wait_until(lambda: target.exists() and target.read_text().count("\n") >= 3)
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=20)
    assert run.returncode == 130
    assert err.startswith("eqsat: interrupted after ")
    assert err.count("\n") == 1
    assert all(json.loads(line)["id"] == "good" for line in target.read_text().splitlines())


def workers_of(pid: int) -> set[int]:
    """The processes below one, by /proc: those that run workers and what they started."""
    found = {pid}
    for _ in range(4):
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(stat.read_text().rsplit(")", 1)[1].split()[1]) in found:
                    found.add(int(stat.parent.name))
    return found - {pid}


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended may wait for somebody to ask how."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_terminating_a_corpus_says_one_line(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD * 20_000)
    run = started("corpus", str(source), "-o", str(target), "--jobs", "2")
    wait_until(lambda: target.exists() and target.read_text().count("\n") >= 3)
    run.terminate()
    _, err = run.communicate(timeout=20)
    assert run.returncode == 143
    assert err == f"eqsat: terminated after {target.read_text().count(chr(10))} rows\n"


@pytest.mark.parametrize("method", ["write", "flush"])
def test_a_row_that_is_written_when_the_signal_comes_is_counted(method, tmp_path, monkeypatch, capsys):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD * 3)
    opened = cli.files.opened

    @contextmanager
    def terminated_after_one(*given):
        with opened(*given) as stream:

            def once(*text):
                getattr(stream, method)(*text)
                signal.raise_signal(signal.SIGTERM)

            both = {"write": stream.write, "flush": stream.flush, method: once}
            yield SimpleNamespace(**both)

    monkeypatch.setattr(cli.files, "opened", terminated_after_one)
    with pytest.raises(SystemExit) as ended:
        cli.main(["corpus", str(source), "-o", str(target)])
    assert ended.value.code == 143
    assert capsys.readouterr().err == "eqsat: terminated after 1 row\n"
    assert target.read_text().count("\n") == 1


def test_resuming_after_a_kill_does_the_rest_and_leaves_no_process(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [GOOD.replace("good", f"good {n}") for n in range(20_000)]
    source.write_text("".join(lines))
    run = started("corpus", str(source), "-o", str(target))
    wait_until(lambda: target.exists() and target.read_text().count("\n") >= 3)
    workers = workers_of(run.pid)
    run.kill()
    assert run.communicate(timeout=20)[1] == ""
    wait_until(lambda: not any(alive(pid) for pid in workers))
    source.write_text("".join(lines[:60]))
    whole = target.read_text().splitlines(keepends=True)[:3]
    target.write_text("".join(whole) + '{"id": "good 3", "out": ["i')
    resumed = started("corpus", str(source), "-o", str(target), "--resume")
    assert resumed.communicate(timeout=60) == ("", "# 60 cases, 0 errors\n")
    rows = target.read_text().splitlines(keepends=True)
    assert rows[:3] == whole
    assert [json.loads(row)["id"] for row in rows] == [f"good {n}" for n in range(60)]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('{"id": "other"}\n', "row 1 is of no such case of the input: give -o another file"),
        ('{"id": "good"}\n{"id": "good"}\n', "row 2 is of no such case of the input: give -o another file"),
        ("x = 1\n", "row 1 is none of a corpus: give -o another file"),
    ],
)
def test_what_cannot_be_resumed_is_left_alone(eqsat, tmp_path, written, message):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD)
    target.write_text(written)
    code, _, err = eqsat("corpus", str(source), "-o", str(target), "--resume")
    assert (code, err) == (2, f"eqsat: {target}: {message}\n")
    assert target.read_text() == written
    assert "name it by -o" in eqsat("corpus", str(source), "--resume")[2]


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_proofs_of_rules_end_by_a_signal(number, said):
    with started("rules", "--prove") as run:
        assert run.stdout.readline().startswith("add-commutes")
        os.killpg(run.pid, number)
        assert run.stderr.read() == f"eqsat: {said}\n"
    assert run.returncode == 128 + number


@pytest.mark.parametrize("name", ["eqsat.lang", "eqsat.egraph", "click", "eqsat.cli.main"])
@pytest.mark.parametrize("command", [COMMAND, [str(Path(sys.executable).with_name("eqsat"))]], ids=["module", "script"])
def test_an_interruption_of_the_start_is_no_traceback(tmp_path, name, command):
    done = interrupted_while_importing(tmp_path, name, [*command, "optimize", "x", "--range", "x=4"])
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "eqsat: interrupted\n")


def test_a_program_that_imports_eqsat_has_its_own_interruptions(tmp_path):
    done = interrupted_while_importing(tmp_path, "eqsat.lang", [sys.executable, "-c", "import eqsat"])
    assert done.stderr.endswith("KeyboardInterrupt\n")


def interrupted_while_importing(folder: Path, name: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command that Ctrl-C meets when it imports a module."""
    if not Path(command[0]).exists():
        pytest.skip(f"{command[0]} is not installed")
    (folder / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {name!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
        # a shell ignores the signal for what it runs in the background
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})


def test_signals_that_are_ignored_stay_so(eqsat, monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        monkeypatch.setattr(
            cli, "optimise", lambda *_, **__: signal.raise_signal(signal.SIGTERM) or optimize("i", i=(0, 9))
        )
        assert eqsat("optimize", "i", "--range", "i=10")[:2] == (0, "i\n")
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interrupted_search_writes_the_rules_that_it_has(eqsat, tmp_path, monkeypatch):
    pytest.importorskip("z3")
    source, target = tmp_path / "in.jsonl", tmp_path / "found.py"
    source.write_text('{"vars": {"x": [0, 999]}, "exprs": ["x // 3 // 5"]}\n')
    monkeypatch.setattr("eqsat.discover.discovery._Search.ranked", lambda *_: signal.raise_signal(signal.SIGTERM))
    asked = [str(source), "-o", str(target), "--no-theory", "--without", "division", "--search-seconds", "10"]
    assert eqsat("discover", *asked) == (143, "", "eqsat: terminated after 1 rule\n")
    found = eqsat("rules", "found-1", "--rules", str(target), "--json")[1]
    assert [(rule["left"], rule["right"]) for rule in json.loads(found)] == [("x//c//d", "x//(c*d)")]


def test_a_progress_bar_on_a_terminal(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(GOOD * 3)
    ours, theirs = pty.openpty()
    with subprocess.Popen([*COMMAND, "corpus", str(source), "-o", str(target)], stderr=theirs) as run:
        os.close(theirs)
        shown = read_all(ours)
    assert run.returncode == 0
    assert "optimising" in shown
    assert "3/3" in shown


def wait_until(condition, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_all(terminal: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(terminal)
    return b"".join(chunks).decode()


#: What the README says to type, but for what takes long.
TYPED = re.findall(r"^    eqsat (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_every_command_of_the_readme_runs_in_a_checkout(eqsat, tmp_path, monkeypatch):
    figures = {figure: dict.fromkeys(OPERATIONS, 7) for figure in FIGURES}
    monkeypatch.setattr("eqsat.cli.calibrate.measure", lambda repeats, advance: figures)
    monkeypatch.setattr(cli, "DEFAULT", [rule for rule in DEFAULT if rule.name == "mod-core"])
    monkeypatch.setattr(cli, "REDUCE", ())
    for name in ("tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    assert len(TYPED) > 8
    quick = {"experiment": ["--repeats", "1", "--limit", "2"], "discover": ["--search-seconds", "5"]}
    for line in TYPED:
        command, *rest = shlex.split(line)
        code, _, err = eqsat(command, *rest, *quick.get(command, []))
        assert code == 0, (line, err)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["x", "--costt", "opcount"], "No such option: --costt. Did you mean --cost?"),
        (["--", "-x", "--range", "x=4"], "--range stands behind --, where all are expressions: give it before\n"),
        (["x", "--cost", "opcont"], "FILE.py:NAME; did you mean 'opcount'?"),
        (["x", "-", "--range", "x=4"], "- reads all expressions from standard input: give it alone\n"),
        (["x + y", "--range", "x=4"], "unknown variable 'y': give its range, --range y=N or --var y=LOW:HIGH, at"),
        (
            ["x", "1", "--range", "x=4", "--gate", "x < 2"],
            "1 --gate for 2 expressions: give one for each, - for none\n",
        ),
        (["x", "--var", "x=0:9", "--constraint", "x < 2", "--constraint", "5 < x"], "each other: x < 2, 5 < x\n"),
    ],
)
def test_messages_say_what_to_do(eqsat, given, said):
    code, out, err = eqsat("optimize", *given)
    assert (code, out) == (2, "")
    assert said in err


def test_what_stands_behind_two_dashes_is_an_expression(eqsat):
    assert eqsat("optimize", "x", "--range", "x=4", "--", "--x", "x")[:2] == (0, "x\nx\nx\n")
    code, _, err = eqsat("optimize", "--x", "--range", "x=4", "--", "--x")
    assert (code, err) == (2, "eqsat: No such option: --x. Did you mean --c?\n")


def test_discover_prints_rules_that_a_corpus_needs(eqsat, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    case = '"vars": {"i": [0, 999]}, "exprs": ["i//3//5"]'
    nowhere = f'{{"id": "nowhere", {case}, "constraints": ["i > 1000"]}}'
    corpus.write_text(f'{{"id": 1, {case}}}\n{{"id": 2}}\n{nowhere}\n')
    output = tmp_path / "found.py"
    options = ["--without", "division", "--no-theory", "--search-seconds", "5"]
    code, _, err = eqsat("discover", str(corpus), *options, "-o", str(output))
    assert code == 0
    assert "# left out: line 2: the key 'exprs' is missing" in err
    assert "# left out: nowhere: the constraints contradict each other: 1000 < i" in err
    assert re.search(r"^# \d+ fragments, \d+ with a cheaper term, 1 rule: cost 10 -> 5$", err, re.MULTILINE)
    assert 'Rule("found-1", "x//c//d", "x//(c*d)", "0 <= d"),' in output.read_text()
    found = eqsat(
        "optimize", "i//3//5", "--range", "i=99", "--without", "division", "--no-theory", "--rules", str(output)
    )
    assert found[:2] == (0, "i//15\n")


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ("raise RuntimeError('no table')", r"the cost model fails to price '\w+': RuntimeError: no table"),
        ("return 'much'", r"the cost model prices '\w+' at 'much': a price must be an integer"),
    ],
)
def test_a_faulty_cost_model_of_a_file_is_no_internal_error(eqsat, tmp_path, price, said):
    path = tmp_path / "mine.py"
    path.write_text(f"class Mine:\n    def price(self, op, operands, result):\n        {price}\n")
    code, out, err = eqsat("optimize", "x*3", "--range", "x=9", "--cost", f"{path}:Mine")
    assert (code, out) == (2, "")
    assert re.fullmatch(f"eqsat: {said}\n", err)


def test_a_cost_model_whose_class_takes_arguments_is_no_internal_error(eqsat, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Mine:\n    def __init__(self, n): pass\n")
    code, out, err = eqsat("optimize", "x*3", "--range", "x=9", "--cost", f"{path}:Mine")
    assert (code, out) == (2, "")
    assert err.startswith(f"eqsat: {path}: Mine() fails (TypeError: ")
    assert err.endswith("): name an object instead of its class\n")


def test_a_file_of_rules_that_leaves_the_process_is_named(eqsat, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("raise SystemExit(3)\n")
    code, out, err = eqsat("optimize", "x", "--range", "x=9", "--rules", str(path))
    assert (code, out, err) == (2, "", f"eqsat: {path} fails: SystemExit: 3\n")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("GeneratorExit('now')", "GeneratorExit: now"),
        ("type('Own', (BaseException,), {})('mine')", "Own: mine"),
    ],
)
@pytest.mark.parametrize(
    "command", ["run {}", "optimize x --range x=9 --rules {}", "optimize x --range x=9 --cost {}:M"]
)
def test_files_that_raise_what_ends_a_process_are_named(eqsat, tmp_path, command, raised, said):
    path = tmp_path / "mine.py"
    path.write_text(f"raise {raised}\n")
    assert eqsat(*command.format(path).split()) == (2, "", f"eqsat: ended by {said} while {path} ran\n")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit(3)", "EOFError"])
def test_functions_that_raise_what_ends_a_process_are_one_line(eqsat, tmp_path, raised):
    path = tmp_path / "mine.py"
    path.write_text(f"class M:\n    def price(self, op, operands, result):\n        raise {raised}\n")
    code, out, err = eqsat("optimize", "x*3", "--range", "x=9", "--cost", f"{path}:M")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert raised.partition("(")[0] in err
    corpus = tmp_path / "in.jsonl"
    corpus.write_text('{"vars": {"x": [0, 9]}, "exprs": ["x*3"]}\n')
    code, out, err = eqsat("corpus", str(corpus), "--cost", f"{path}:M")
    assert (code, err.count("\n")) == (0, 1)
    assert raised.partition("(")[0] in json.loads(out)["error"]


def test_a_baseline_says_what_costs_more_than_before(eqsat, tmp_path):
    source, before = tmp_path / "in.jsonl", tmp_path / "before.jsonl"
    cases = [("same", "i*8 // 8"), ("worse", "i + j"), ("better", "i + j*2"), ("broken", "i +"), ("new", "i")]
    cases += [("twice", "i + j"), ("twice", "i")]
    lines = [json.dumps({"id": n, "vars": {"i": [0, 9], "j": [0, 9]}, "exprs": [text]}) for n, text in cases]
    source.write_text("\n".join(lines))
    rows = [{"id": n, "cost": cost} for n, cost in (("same", 0), ("worse", 0), ("better", 9), ("broken", 3))]
    rows += [{"id": "twice", "cost": cost} for cost in (1, 0)]
    before.write_text("\n".join(map(json.dumps, rows)))
    code, _, err = eqsat("corpus", str(source), "--baseline", str(before))
    said = err.splitlines()
    assert code == 0
    assert said[1] == "# worse: worse: cost 0 -> 1"
    assert said[2].startswith("# worse: broken: cannot parse 'i +'")
    assert said[3] == f"# beside {before}: 6 rows, 2 worse, 1 better, cost 10 -> 4"
