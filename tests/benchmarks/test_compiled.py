"""The comparison of run times of two files of rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import compiled
import pytest


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_times_of_answers_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {"vars": {"x": [0, 4000], "y": [1, 99]}, "exprs": ["x//y%7"]}
    corpus = write(tmp_path / "cases.jsonl", {"id": "a", **case}, {"id": "b", **case})
    before = write(tmp_path / "before.jsonl", {"id": "a", "out": ["x//y%7"]}, {"id": "b", "out": ["x"]})
    shared = {"id": "a", "lets": [["t0", "x + y"]], "out": ["t0*t0"]}
    after = write(tmp_path / "after.jsonl", shared, {"id": "b", "out": ["x"]}, {"id": "c", "error": "none"})
    rows = tmp_path / "rows.jsonl"
    options = ["--repeats", "1", "--compilers", "gcc -w", "no-such-compiler", "--rows", str(rows)]
    monkeypatch.setattr("sys.argv", ["compiled.py", corpus, before, after, *options])
    monkeypatch.setenv("CC", "gcc")
    compiled.main()
    out, err = capsys.readouterr()
    assert out.startswith("2 cases, 1 with the same answer\n")
    means = re.findall(r"geometric mean ([\d.]+), of those that differ ([\d.]+); 0.0% slower", out)
    assert len(means) == 2
    # no division is left
    assert all(float(those) < float(every) < 1 for every, those in means)
    assert [json.loads(row)["id"] for row in rows.read_text().splitlines()] == ["a", "a"]
    assert err == "no-such-compiler is not installed: skipped\n"


def test_files_without_a_common_case_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write(tmp_path / "cases.jsonl", {"id": "a", "vars": {}, "exprs": ["1"]})
    rows = write(tmp_path / "rows.jsonl", {"id": "b", "out": ["1"]})
    monkeypatch.setattr("sys.argv", ["compiled.py", corpus, rows, rows])
    with pytest.raises(SystemExit):
        compiled.main()
    assert "have no case of" in capsys.readouterr().err
