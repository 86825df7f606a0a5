"""Cases from Python: read, filtered, made, written."""

import json
import re

import pytest
from corpora import BITS, GATES, HAND, REDUCTIONS, SEEDS

from eqsat.cli.cases import case, case_of, read_case, read_corpus, write_corpus
from eqsat.lang.expr import buffer, var

X, Y = var("x", 0, 31), var("y", None, 5)


@pytest.mark.parametrize("path", [HAND, SEEDS, GATES, BITS, REDUCTIONS], ids=lambda path: path.stem)
def test_what_is_written_is_read(path, tmp_path):
    left_out: list[str] = []
    given = read_corpus(path, left_out.append)
    assert given
    assert all("a case of kind" in line for line in left_out)
    write_corpus(given, tmp_path / "copy.jsonl")
    for before, after in zip(given, read_corpus(tmp_path / "copy.jsonl"), strict=True):
        assert after.exprs[: len(before.exprs)] == before.exprs
        assert (after.id, after.constraints, after.tags) == (before.id, before.constraints, before.tags)
        assert after.gates[: len(before.gates)] == before.gates


def test_a_case_of_terms():
    array = buffer("A")
    made = case([X // 4, array[X]], id=7, constraints=[X < Y], gates=[None, Y > 2])
    assert made.record() == {
        "id": 7,
        "vars": {"x": [0, 31], "y": [None, 5]},
        "exprs": ["x//4", "A[x]", "2 < y"],
        "constraints": ["x < y"],
        "gates": [None, 2, None],
        "buffers": ["A"],
    }
    assert case_of(json.loads(json.dumps(made.record()))).exprs == [*made.exprs, Y > 2]
    with pytest.raises(ValueError, match="the array 'B' cannot be written: those of cases hold i32"):
        case([buffer("B", "i64")[X]], id="wide").record()


def test_what_is_expected_keeps_its_names():
    line = '{"vars": {"i": [0, 31]}, "lets": [["t0", "i//4"], ["t1", "i%4"]], "exprs": ["t1*t1 + (t1 + 1)//(t1 + 2)"]'
    before = read_case(line + ', "expected": ["t0 + 1"]}')
    after = read_case(json.dumps(before.record()))
    assert after.exprs == before.exprs
    assert after.parse(after.expected[0]) is before.parse("i//4 + 1")


def test_the_first_bad_line_is_named():
    with pytest.raises(ValueError, match=r"^line 3: not a line of JSON: "):
        read_corpus(['{"vars": {}, "exprs": ["1"]}', "", "{"])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("constraints", "'constraints': only those of plain, gate, shapetracker, expand, reduce are lists"),
        ("gates", "are lists of expressions; did you mean 'gate'?"),
    ],
)
def test_what_is_no_list_of_expressions_was_called_unknown(kind, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        case_of({"id": "a", "kind": kind, "vars": {"i": [0, 31]}, "before": ["i < 20"]})


def test_a_kind_that_is_null_is_none():
    assert case_of({"id": "a", "kind": None, "vars": {"i": [0, 31]}, "exprs": ["i"]}).exprs == [var("i", 0, 31)]
