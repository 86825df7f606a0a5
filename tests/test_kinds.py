"""Rows of the kinds of cases that are no plain list of expressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eqsat.cases import read_case
from eqsat.corpus import Settings, run_line
from eqsat.expr import const, make, var
from eqsat.text import parse_program
from eqsat.verify import check_equal

SEEDS = [json.loads(line) for line in (Path(__file__).parent / "data" / "seeds.jsonl").read_text().splitlines()]
ANSWERED = ("constraints", "dtype-lowering", "expand", "render-loop", "shapetracker")


def row_of(case: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return run_line(json.dumps(case), 1, Settings(**settings))


def agrees(case: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row says what the source expects, for its kind."""
    match case["kind"]:
        case "dtype-lowering":
            return bool(row["out"] == [case["expected_dtype"]])
        case "render-loop":
            return bool(row["out"] == case["uops"] and row["code"] == case["code"])
        case "expand":
            known = read_case(json.dumps(case)).variables
            return parse_program(row.get("lets", []), row["out"], known) == parse_program([], case["expected"], known)
        case "shapetracker":
            names = {name: var(name, *bounds) for name, bounds in case["vars"].items()}
            expected = parse_program([], [case["idx"], case["valid"]], names)
            found = parse_program(row.get("lets", []), row["out"], names)
            return check_equal(expected, found, gates=[expected[1], None]).equal
        case "constraints":
            names = {name: var(name, *bounds) for name, bounds in case["vars"].items()}
            expected, found = (set(parse_program([], texts, names)) for texts in (case["after"], row["out"]))
            return expected == found and row["vars"].items() >= case.get("expected_vars", {}).items()
    return False


@pytest.mark.parametrize("case", [c for c in SEEDS if c.get("kind") in ANSWERED], ids=lambda case: case["id"])
def test_seeds(case: dict[str, Any]) -> None:
    assert agrees(case, row_of(case))


ROWS = [
    # the case, what its row says
    (
        {"kind": "gate", "vars": {"r": [0, 9]}, "before": "where(r < 5, r%5*8, INVALID)"},
        {"out": ["r*8", "r < 5"], "cost": 2, "checked": "exhaustive"},
    ),
    (
        {"kind": "gate", "vars": {"r": [0, 9]}, "before": "where(r < 5, r%5*8, 0)"},
        {"out": ["where(r < 5, r*8, 0)", "True"]},
    ),
    (
        {
            "kind": "shapetracker",
            "vars": {"i": [0, 7], "n": [1, 9], "j": [0, 3]},
            "shape": [8, "n"],
            "strides": ["n", 1],
            "mask": [[0, 8], [1, "n"]],
        },
        {"out": ["j + i*n", "1 <= j and j < n"]},
    ),
    (
        {"kind": "expand", "vars": {"i": [0, 7], "u": [0, 1]}, "expr": "(i*2 + u)//2", "unroll": ["u"]},
        {"out": ["i", "i"], "stop": "saturated"},
    ),
    (
        {"kind": "constraints", "vars": {"x": [0, 99]}, "before": ["x//8 == 3"]},
        {"out": ["24 <= x", "x <= 31"], "vars": {"x": [24, 31]}, "checked": "exhaustive"},
    ),
    (
        {"kind": "indexing", "map": "(d0) -> (d0 mod 4), domain: d0 in [0, 3]"},
        {"out": ["(d0) -> (d0), domain: d0 in [0, 3]"], "cost": 0, "checked": "exhaustive"},
    ),
    (
        {
            "kind": "indexing",
            "map": "(d0) -> (d0 floordiv 4, d0 mod 4)",
            "compose": ["(a, b) -> (a*4 + b), domain: a in [0, 7], b in [0, 3]"],
            "vars": {"d0": [0, 31]},
        },
        {"out": ["(d0) -> (d0), domain: d0 in [0, 31]"]},
    ),
    (
        {"kind": "dtype-lowering", "vars": {"i": [0, 2**20]}, "exprs": ["i*4096", "i*4096%8"]},
        {"out": ["i64", "i32"], "computed": ["i64", "i64"]},
    ),
    (
        {"kind": "render-loop", "vars": {"n": [1, 9]}, "variable": ["x", 0, "n - 1"], "counter": "x"},
        {"out": ["CONST 0", "n", "LOOP [0, 1]"], "code": "for (int x = 0; x < n; x++) {", "trips": 9},
    ),
]


@pytest.mark.parametrize(("case", "said"), ROWS)
def test_a_row(case: dict[str, Any], said: dict[str, Any]) -> None:
    row = row_of({"id": "a", **case})
    assert row["id"] == "a"
    assert {key: row.get(key) for key in said} == said


def test_a_proof_on_request() -> None:
    case = {"kind": "constraints", "vars": {"x": [0, 10**9]}, "before": ["x//8 == 3"]}
    assert row_of(case, prove=True)["checked"] == "proved"


BAD = [
    ({"kind": "gate", "vars": {}}, "the key 'before' is missing"),
    ({"kind": "gate", "vars": {"r": [0, 9]}, "before": "where(r < 5, r, NOTHING)"}, "unknown variable 'NOTHING'"),
    ({"kind": "shapetracker", "vars": {"i": [0, 7]}, "shape": [8, 2], "strides": [2, 1]}, "1 indices for a view of 2"),
    ({"kind": "shapetracker", "vars": {"i": [0, 7]}, "shape": [8], "strides": []}, "1 dimensions, 0 strides"),
    ({"kind": "shapetracker", "vars": {}, "shape": [8], "strides": [1], "mask": [3]}, "must be a low and a high index"),
    ({"kind": "expand", "vars": {}, "expr": "1", "unroll": ["u"]}, "'u' of 'unroll' has no range"),
    ({"kind": "constraints", "vars": {"x": [0, 9]}, "before": ["x + 1"]}, "'x + 1' is not a condition"),
    ({"kind": "indexing", "op": "dot", "attrs": {}}, "indexing of op 'dot' is not supported yet"),
    ({"kind": "indexing", "map": "d0"}, "it must read"),
    ({"kind": "dtype-lowering", "bounds": [0, 2**63]}, "no 64-bit integer holds"),
    ({"kind": "dtype-lowering", "bounds": [0]}, "two integers"),
    ({"kind": "dtype-lowering", "shape": [4, "n"]}, "'shape' must be a list of integers"),
    ({"kind": "render-loop", "variable": ["x"]}, "a name and two bounds"),
    ({"kind": "render-loop", "variable": ["x", 3, 2]}, "is empty"),
    ({"kind": "knitting", "vars": {}}, "kind 'knitting' is not supported yet"),
    ({"kind": "reduce", "vars": {}, "before": "sum(k, k, 0, 9)"}, "the key 'after' is missing"),
    ({"kind": ["plain"], "vars": {}, "exprs": ["1"]}, "is not supported yet"),
]


@pytest.mark.parametrize(("case", "message"), BAD)
def test_what_is_wrong_becomes_the_row(case: dict[str, Any], message: str) -> None:
    row = row_of({"id": "a", **case})
    assert set(row) == {"id", "error"}
    assert message in row["error"]
    assert not row["error"].startswith(("TypeError", "KeyError", "IndexError"))


def test_a_gate_is_the_condition_of_the_index() -> None:
    case = read_case('{"kind": "gate", "vars": {"r": [0, 9]}, "before": "where(r < 5, r, INVALID)"}')
    assert case.exprs == [case.variables["r"], make("lt", case.variables["r"], const(5))]
    assert case.gates == [case.exprs[1], None]
