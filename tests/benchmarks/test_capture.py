"""Corpora from what captures recorded, without any compiler."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from capture_corpus import CAPTURES, SYSTEMS, capture, cases
from peers.environment import UnavailableError

from eqsat.cli.cases import read_case

NODES = [["var", "i"], ["const", 0], ["add", 1, 0], ["const", 8], ["mod", 2, 3], ["lt", 0, 3], ["var", "unused"]]
RECORD = {
    "program": "some",
    "stage": "raw",
    "vars": {"i": [0, 9], "unused": [0, 1]},
    "nodes": NODES,
    "roots": [4, 5],
    "gates": [5, None],
}


def test_a_case_has_what_was_recorded_as_it_was():
    [case] = cases("tinygrad", "1.0", [RECORD])
    assert case == {
        "id": "tinygrad/some/raw/0",
        "source": "tinygrad 1.0, benchmarks/capture",
        "vars": {"i": [0, 9]},
        "lets": [],
        "exprs": ["(0 + i)%8", "i < 8"],
        "gates": [1, None],
        "tags": ["tinygrad", "some", "raw", "divmod", "gated"],
    }
    assert [str(gate) for gate in read_case(json.dumps(case)).gates] == ["i < 8", "None"]


def test_equal_kernels_and_those_without_an_operator_are_left_out():
    trivial = {**RECORD, "roots": [0], "gates": [None]}
    ungated = {**RECORD, "gates": [None, None]}
    found = list(cases("tinygrad", "1.0", [trivial, RECORD, RECORD, ungated]))
    assert [(case["id"], "gates" in case) for case in found] == [
        ("tinygrad/some/raw/0", True),
        ("tinygrad/some/raw/1", False),
    ]


def test_every_system_has_a_capture():
    assert [name for name in SYSTEMS if not (CAPTURES / f"{name}_capture.py").exists()] == []


def test_a_failed_capture_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr("capture_corpus.environment", lambda *arguments: Path(sys.executable))
    monkeypatch.setattr(subprocess, "run", lambda command: subprocess.CompletedProcess(command, 3))
    with pytest.raises(UnavailableError, match="the capture from inductor ended with exit code 3"):
        capture("inductor", [], sys.executable, tmp_path)
