"""Corpora: reading cases, rows in order, and that nothing which is wrong with one case reaches another."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from eqsat.cli import corpus, kinds
from eqsat.cli.cases import read_case
from eqsat.cli.corpus import run, run_line
from eqsat.cli.main import app
from eqsat.cli.records import numbered_lines
from eqsat.cli.settings import Settings
from eqsat.lang.text import parse_program
from eqsat.prove.verify import check_equal

GOOD = '{"id": "good", "vars": {"i": [0, 31]}, "exprs": ["i*8 // 8", "i < 9"], "gates": [1, null]}'

BAD = [
    # the line, the id of its row, a part of its error
    ('{"id": "half", "vars": {"i": [0, 3', "line 7", "not a line of JSON"),
    (b'{"id": "\xff"}', "line 7", "not a line of JSON"),
    ("[" * 10**6, "line 7", "not a line of JSON: lists and objects nest too deep"),
    ('{"id": ' + "9" * 5000 + "}", "line 7", "not a line of JSON: a number of 5000 digits: give at most 4300"),
    ("[1, 2]", "line 7", "not a case"),
    ('{"id": "a"}', "a", "the key 'exprs' is missing"),
    ('{"id": "a", "exprs": ["i"]}', "a", "the key 'vars' is missing"),
    ('{"id": 5, "exprs": [], "vars": {}}', 5, "'exprs' is empty"),
    ('{"id": null, "exprs": [], "vars": {}}', "line 7", "'exprs' is empty"),
    ('{"id": [5], "exprs": ["1"], "vars": {}}', "line 7", "'id' must be a text or a number, not a list"),
    ('{"id": true, "exprs": ["1"], "vars": {}}', "line 7", "'id' must be a text or a number, not true or false"),
    ('{"id": NaN, "exprs": ["1"], "vars": {}}', "line 7", "'id' must be a text or a number, not nan"),
    ('{"id": 1e999, "exprs": ["1"], "vars": {}}', "line 7", "'id' must be a text or a number, not inf"),
    ('{"id": "a", "exprs": ["x"], "vars": {"x": [false, true]}}', "a", "two integers, not [False, True]"),
    ('{"id": "a", "exprs": ["1 < 2", "3"], "vars": {}, "gates": [true, null]}', "a", "the gate True is not the index"),
    ('{"id": "a", "exprs": ["x"], "vars": {"x": [0, 1], "x": [0, 9]}}', "line 7", "the key 'x' is given twice"),
    ('{"id": "a", "exprs": ["x"], "vars": {"x": [0, 1]}, "lets": [["x", "3"]]}', "a", "the name 'x' is given twice"),
    ('{"id": "a", "exprs": ["t"], "vars": {}, "lets": [["t", "3"], ["t", "4"]]}', "a", "the name 't' is given twice"),
    ('{"id": "a", "exprs": ["x"], "vars": {"x": [0, 1]}, "buffers": ["x"]}', "a", "the name 'x' is given twice"),
    ('{"id": "a", "exprs": ["A[x]"], "vars": {"x": [0, 1]}}', "a", 'in a corpus by "buffers": ["A"], at column 1'),
    ('{"id": "a", "exprs": ["x"], "vars": {"x": [0, 1]}, "buffers": [3]}', "a", "'buffers' must be a list of texts"),
    ('{"id": "a", "exprs": ["1"], "vars": {}, "lets": [["", "3"]]}', "a", "'' is no name for one of 'lets'"),
    ('{"id": "a", "exprs": ["1"], "vars": {}, "lets": [["a b", "3"]]}', "a", "'a b' is no name for one of 'lets'"),
    ('{"exprs": "i", "vars": {}}', "line 7", "'exprs' must be a list, not a text"),
    ('{"id": "a", "exprs": [3], "vars": {}}', "a", "list of texts"),
    ('{"id": "a", "exprs": ["i +"], "vars": {"i": [0, 3]}}', "a", "cannot parse 'i +'"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [5, 3]}}', "a", "the range of variable 'i' is empty: [5, 3]"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [0, 1.5]}}', "a", "two integers"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": 3}}', "a", "two integers"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [0, 3]}, "gates": [1]}', "a", "the gate 1 is not the index"),
    ('{"id": "a", "exprs": ["i", "i < 2"], "vars": {"i": [0, 3]}, "gates": [-1, null]}', "a", "the gate -1 is not the"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [0, 3]}, "gates": [0]}', "a", "not a condition"),
    ('{"id": "a", "exprs": ["i", "i < 2"], "vars": {"i": [0, 3]}, "gates": [1]}', "a", "1 gate for 2 roots"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [0, 3]}, "lets": [["t0"]]}', "a", "a name and a text"),
    ('{"id": "a", "exprs": ["i"], "vars": {"i": [0, 3]}, "constraints": ["i + 1"]}', "a", "not a condition"),
    ('{"id": "a", "kind": "knitting", "vars": {}}', "a", "docs/corpora.md lists the kinds"),
    ('{"id": "a", "kind": "reduce", "vars": {}, "after": "36"}', "a", "the key 'before' is missing"),
    ('{"id": "a", "kind": "reduce", "vars": {}, "before": "sum(k, 0)", "after": "36"}', "a", "sum takes 4 arguments"),
    ('{"id": "a", "exprs": ["i // i"], "vars": {"i": [0, 3]}}', "a", "[0, 3]"),
    ('{"id": "a", "exprs": ["i // 0"], "vars": {"i": [0, 3]}}', "a", "division by zero"),
]


@pytest.mark.parametrize(("line", "name", "message"), BAD)
def test_what_is_wrong_with_a_line_becomes_its_row(line, name, message):
    row = run_line(line, 7, Settings())
    assert set(row) == {"id", "error"}
    assert row["id"] == name
    assert message in row["error"]
    assert "\n" not in row["error"]


def test_a_cost_that_has_too_many_digits_is_that_of_its_case_alone():
    end = "9" * 2900
    loops = {"id": "long", "vars": {}, "exprs": [f"sum(sum((r + s)//7, r, 0, {end}), s, 0, {end})"]}
    row = run_line(json.dumps(loops), 7, Settings())
    assert row["id"] == "long"
    assert row["error"].startswith("'cost_before' has more than 10000 bits")


def test_a_row():
    row = run_line(GOOD, 1, Settings())
    assert set(row) == {"id", "out", "cost_before", "cost", "ms", "stop", "nodes", "checked"}
    assert (row["id"], row["out"], row["stop"], row["checked"]) == ("good", ["i", "i < 9"], "saturated", "exhaustive")


def test_ids_stay_as_they_are():
    for given, found in ((17, 17), (1.5, 1.5), ("17", "17"), (None, "line 3")):
        assert run_line(json.dumps({"id": given, "vars": {}, "exprs": ["3"]}), 3, Settings())["id"] == found
        loop = {"id": given, "kind": "render-loop", "variable": ["x", 0, 3]}
        assert run_line(json.dumps(loop), 3, Settings())["id"] == found


@pytest.mark.parametrize("encode", [str, str.encode])
def test_a_mark_of_the_encoding_is_no_part_of_a_case(encode):
    assert run_line(encode("\ufeff" + GOOD), 1, Settings())["out"] == ["i", "i < 9"]


def test_what_a_reduction_becomes_need_not_be_expected():
    row = run_line('{"id": "a", "kind": "reduce", "vars": {}, "before": "sum(k, k, 0, 9)"}', 1, Settings())
    assert row["out"] == ["36"]


def test_shared_subterms_become_lets():
    row = run_line(
        '{"id": "a", "vars": {"i": [0, 99], "j": [1, 99]}, "exprs": ["i // j * (i // j + 1)"]}', 1, Settings()
    )
    assert len(row["lets"]) == 1
    case = read_case('{"vars": {"i": [0, 99], "j": [1, 99]}, "exprs": ["i // j * (i // j + 1)"]}')
    assert check_equal(parse_program(row["lets"], row["out"], case.variables), case.exprs).equal


def test_gates_may_be_ignored():
    line = '{"id": "a", "vars": {"i": [0, 99]}, "exprs": ["i % 32", "i < 32"], "gates": [1, null]}'
    assert run_line(line, 1, Settings())["out"][0] == "i"
    assert run_line(line, 1, Settings(gates=False))["out"][0] != "i"


def test_a_proof_on_request():
    assert run_line(GOOD, 1, Settings(prove=True))["checked"] == "exhaustive"
    wide = run_line('{"vars": {"x": [0, 1099511627776]}, "exprs": ["(x*6 + 5) // 3"]}', 1, Settings(prove=True))
    assert (wide["checked"], wide["proof"]) == ("proved", "isl")


def test_an_unexpected_failure_is_named_in_its_row(monkeypatch):
    def fail(*args, **options):
        raise KeyError("two\nlines")

    monkeypatch.setattr(kinds, "optimize", fail)
    row = run_line(GOOD, 1, Settings())
    assert row == {"id": "good", "error": "KeyError: 'two\\nlines'"}


@pytest.mark.parametrize("jobs", [1, 3])
def test_rows_keep_their_order_and_bad_lines_stop_nothing(jobs):
    lines = [GOOD, "", '{"id": "half', *[GOOD.replace("good", f"good {n}") for n in range(6)], "  "]
    rows = list(run(lines, Settings(), jobs))
    assert [row["id"] for row in rows] == ["good", "line 3", *[f"good {n}" for n in range(6)]]
    assert ["error" in row for row in rows] == [False, True] + [False] * 6


@pytest.mark.parametrize("jobs", [1, 2])
def test_standard_input_is_answered_as_it_comes(jobs):
    command = [sys.executable, "-m", "eqsat", "corpus", "-", "--jobs", str(jobs)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for number in range(3):
            process.stdin.write(b"\n" + GOOD.replace("good", f"good {number}").encode() + b'\n{"half')
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == f"good {number}"
            process.stdin.write(b'": 0}\n')
            process.stdin.flush()
            assert "missing" in json.loads(process.stdout.readline())["error"]
        left, said = process.communicate(GOOD.encode())
    assert json.loads(left)["id"] == "good"
    assert (process.returncode, said) == (0, b"# 7 cases, 3 errors\n")


def test_a_stream_that_comes_fast_is_read_as_it_is_answered(tmp_path):
    lines = [*[GOOD.replace("good", str(number)) for number in range(3000)], "[" * 200_000, "", GOOD]
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(lines))
    with path.open() as stream:
        cases = corpus._Cases(stream.buffer, 0)
        rows = run(stream.buffer, Settings())
        assert next(rows)["id"] == "0"
        rows.close()
        assert 0 < stream.buffer.raw.tell() < path.stat().st_size
        stream.buffer.raw.seek(0)
        while cases.stream:
            cases.read(cases.stream)
    assert {number: line.decode() for number, line in cases.waiting.items()} == dict(numbered_lines(lines))


def test_without_a_scheduler_the_output_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("eqsat.cli.corpus.PATIENCE", 1)
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"vars": {"x": [0, 9]}, "exprs": ["x%3"]}')
    output.write_text("as it was")
    done = CliRunner().invoke(app, ["corpus", str(source), "-o", str(output), "--scheduler", "tcp://127.0.0.1:1"])
    assert isinstance(done.exception, ValueError)
    assert output.read_text() == "as it was"


def test_no_lines_no_rows():
    assert list(run(["", "\n"], Settings(), 2)) == []


@pytest.mark.parametrize(("deaths", "jobs"), [(1, 2), (2, 1)])
def test_a_worker_that_dies_costs_at_most_its_row_which_is_tried_twice(monkeypatch, deaths, jobs):
    give, left = corpus._Worker.give, [deaths]

    def kill_over(worker, task):
        if task and "killer" in str(task[1]) and left[0]:
            left[0] -= 1
            worker.process.kill()
            worker.process.join()
        give(worker, task)

    monkeypatch.setattr(corpus._Worker, "give", kill_over)
    names = ["good", "killer", "next", "last"]
    rows = list(run([GOOD.replace("good", name) for name in names], Settings(), jobs))
    assert [row["id"] for row in rows] == names
    assert ["out" in row for row in rows] == [True, deaths == 1, True, True]
    if deaths == 2:
        assert rows[1]["error"].startswith("the worker process died twice (exit code -9)")


def test_memory_of_workers_is_bounded():
    program = (
        "from eqsat.cli import corpus, kinds\n"
        "corpus._bound_memory(1024)\n"
        "kinds.optimize = lambda *given, **options: bytearray(2**30)\n"
        f"print(corpus.run_line({GOOD!r}, 1, corpus.Settings())['error'])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown == "out of memory: give --memory more, or a smaller input\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps({"vars": {"x": [0, 9]}, "exprs": ["x + " * 12_500_000 + "x"]}), "a line of 500000"),
        (json.dumps({"vars": {"x": [0, 9]}, "exprs": ["x + " * 250_000 + "x"]}), "a text of 1000001 characters"),
        (json.dumps({"vars": {"x": [0, 9]}, "exprs": ["x + " * 25_000 + "x"] * 11}), "a text of 1100011 characters"),
        ('{"vars": {"x": ' + "[" * 100_000, "not a line of JSON"),
        (json.dumps({"vars": {"x": [0, 9]}, "exprs": ["x + 0x" + "f" * 900_000]}), "cannot parse"),
        (json.dumps({"vars": {"x": [0, 9]}, "exprs": ["x + " + "9" * 900_000]}), "cannot parse"),
        ('{"vars": {"x": [0, ' + "9" * 900_000 + "]}}", "not a line of JSON"),
    ],
    ids=["line", "text", "texts", "nesting", "hexadecimal", "decimal", "bound"],
)
def test_long_input_is_refused_in_one_line(line, message):
    row = run_line(line, 7, Settings())
    assert row["error"].startswith(message)
    assert len(row["error"]) <= 300


def test_the_examples_of_each_kind_are_answered_as_documented():
    text = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text()
    given, documented = [block.splitlines() for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    rows = [run_line(line, number, Settings()) for number, line in enumerate(given)]
    assert [{"id": row["id"], "out": row["out"]} for row in rows] == [json.loads(line) for line in documented]
    named = re.findall(r"^\| (?:none, or )?`([-a-z]+)`", text, re.MULTILINE)
    assert {json.loads(line).get("kind", "plain") for line in given} == {*named} - {"kind"}
