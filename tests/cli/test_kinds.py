"""Rows of the kinds of cases that are no plain list of expressions."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import pytest
from corpora import SEEDS, records

from eqsat.cli.cases import read_case
from eqsat.cli.corpus import run_line
from eqsat.cli.settings import Settings
from eqsat.lang.expr import const, make, var
from eqsat.lang.text import parse_program
from eqsat.prove.verify import check_equal

ANSWERED = (
    "buffer-decision",
    "constraints",
    "dtype-lowering",
    "expand",
    "range-merge",
    "range-split",
    "render-loop",
    "shapetracker",
    "split-reduce-decision",
    "structural",
)


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
        case "structural":
            wanted = case["after"].replace("cast(dt)", f"cast({case.get('dt')})")
            return bool("".join(row["out"]).replace(" ", "") == wanted.replace(" ", ""))
        case "buffer-decision":
            return bool(row["out"] == [case["expected"]])
        case "range-split":
            said = (row.get("after"), row.get("fresh_ids", 0))
            fresh = case.get("fresh_ids", 2 if case["expected_split"] else 0)
            return bool(row["split"] == case["expected_split"] and said == (case.get("after"), fresh))
        case "range-merge":
            merged = case["merged"] if case["expected_merge"] else None
            out = [text.replace(" ", "") for text in case["after"]] if merged else row["out"]
            return bool((row["merge"], row.get("merged"), row["out"]) == (case["expected_merge"], merged, out))
        case "split-reduce-decision":
            size = prod(case["input_shape"][axis] for axis in case["reduce_axes"])
            factors = row.get("factors", [size])
            return bool(row["split"] == case["expected_split"] and prod(factors) == size)
        case "constraints":
            names = {name: var(name, *bounds) for name, bounds in case["vars"].items()}
            expected, found = (set(parse_program([], texts, names)) for texts in (case["after"], row["out"]))
            return expected == found and row["vars"].items() >= case.get("expected_vars", {}).items()
    return False


@pytest.mark.parametrize("case", records(SEEDS, *ANSWERED), ids=lambda case: case["id"])
def test_seeds(case: dict[str, Any]) -> None:
    assert agrees(case, row_of(case))


REVERSAL = """ENTRY e {
  p = f32[5] parameter(0)
  q = f32[5] reverse(p), dimensions={0}
  ROOT r = f32[5] reverse(q), dimensions={0}
}"""
TURNED, SAME = "(d0) -> (4 - d0), domain: d0 in [0, 4]", "(d0) -> (d0), domain: d0 in [0, 4]"

SLICE = """ENTRY e {
  p = f32[9] parameter(0)
  o = s32[] parameter(1)
  ROOT r = f32[4] dynamic-slice(p, o), dynamic_slice_sizes={4}
}"""

VIEWS = [
    # an operation on views, its attributes, its maps
    (
        "reshape",
        {"in": [32], "out": [4, 8]},
        "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]",
        "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]",
    ),
    (
        "expand",
        {"in": [1, 3], "out": [2, 3]},
        "(d0, d1) -> (0, d1), domain: d0 in [0, 1], d1 in [0, 2]",
        "(d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 0], d1 in [0, 2], s0 in [0, 1]",
    ),
    (
        "permute",
        {"in": [2, 3, 4], "axes": [1, 2, 0]},
        "(d0, d1, d2) -> (d2, d0, d1), domain: d0 in [0, 2], d1 in [0, 3], d2 in [0, 1]",
        "(d0, d1, d2) -> (d1, d2, d0), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]",
    ),
    (
        "shrink",
        {"in": [9], "begin": [2], "end": [5]},
        "(d0) -> (d0 + 2), domain: d0 in [0, 2]",
        "(d0) -> (d0 - 2), domain: d0 in [2, 4]",
    ),
    (
        "flip",
        {"in": [2, 3], "axes": [False, True]},
        "(d0, d1) -> (d0, 2 - d1), domain: d0 in [0, 1], d1 in [0, 2]",
        "(d0, d1) -> (d0, 2 - d1), domain: d0 in [0, 1], d1 in [0, 2]",
    ),
    (
        "flip",
        {"in": [2, 3], "axes": [1]},
        "(d0, d1) -> (d0, 2 - d1), domain: d0 in [0, 1], d1 in [0, 2]",
        "(d0, d1) -> (d0, 2 - d1), domain: d0 in [0, 1], d1 in [0, 2]",
    ),
    (
        "flip",
        {"in": [2], "axes": []},
        "(d0) -> (d0), domain: d0 in [0, 1]",
        "(d0) -> (d0), domain: d0 in [0, 1]",
    ),
    (
        "pad",
        {"in": [3], "begin": [1], "end": [2]},
        "(d0) -> (d0 - 1), domain: d0 in [1, 3]",
        "(d0) -> (d0 + 1), domain: d0 in [0, 2]",
    ),
    (
        "linearize",
        {"shape": [4, 8]},
        "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]",
        "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]",
    ),
    (
        "reshape(expand)",
        {"chain": [["expand", [4, 1], [4, 5]], ["reshape", [4, 5], [20]]]},
        "(d0) -> (d0 floordiv 5, 0), domain: d0 in [0, 19]",
        "(d0, d1)[s0] -> (d0 * 5 + s0), domain: d0 in [0, 3], d1 in [0, 0], s0 in [0, 4]",
    ),
    (
        "all of them",
        {
            "chain": [
                ["pad", [3, 4], [1, 0], [0, 0]],
                ["permute", [4, 4], [1, 0]],
                ["flip", [4, 4], [True, False]],
                ["flip", [4, 4], [0]],
                ["shrink", [4, 4], [0, 1], [4, 4]],
                ["reshape", [4, 3], [12]],
                ["linearize", [2, 6]],
            ]
        },
        "(d0, d1) -> (d1 mod 3, d0 * 2 + d1 floordiv 3), domain: d0 in [0, 1], d1 in [0, 5]",
        "(d0, d1) -> (d1 floordiv 2, d1 mod 2 * 3 + d0), domain: d0 in [0, 2], d1 in [0, 3]",
    ),
]

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
        {"out": ["i*n + j", "1 <= j and j < n"]},
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
        {"kind": "indexing", "map": "(d0) -> (d0)", "vars": {"d0": [0, -2]}},
        {"out": ["(d0) -> (0), domain: d0 in [-2, 0], False"], "cost": 0, "checked": "exhaustive"},
    ),
    (
        {
            "kind": "indexing",
            "map": "(d0) -> (d0, 5)",
            "vars": {"d0": [0, 9], "b": [1, 0]},
            "compose": ["(a, b) -> (a)"],
        },
        {"out": ["(d0) -> (0), domain: d0 in [0, 9], False"]},
    ),
    (
        {"kind": "indexing", "hlo": REVERSAL},
        {"out": {"output_to_input": {"0": [TURNED]}, "input_to_output": {"0": [TURNED]}}, "checked": "exhaustive"},
    ),
    (
        {"kind": "indexing", "hlo": REVERSAL, "computation": "e"},
        {"out": {"output_to_input": {"0": [SAME]}, "input_to_output": {"0": [SAME]}}, "cost": 0},
    ),
    (
        {"kind": "indexing", "hlo": "ENTRY e {\nROOT c = f32[4] constant({1, 2, 3, 4})\n}"},
        {"out": {"output_to_input": {}, "input_to_output": {}}, "cost": 0, "cost_before": 0},
    ),
    (
        {"kind": "indexing", "hlo": SLICE, "op": "dynamic-slice"},
        {
            "out": {
                "output_to_input": {
                    "0": [
                        {
                            "map": "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]",
                            "runtime_variables": [
                                {
                                    "var": "rt0",
                                    "hlo": "o = s32[] parameter(1)",
                                    "map": "(d0) -> (), domain: d0 in [0, 3]",
                                }
                            ],
                        }
                    ],
                    "1": ["(d0) -> (), domain: d0 in [0, 3]"],
                },
                "input_to_output": {
                    "0": [
                        {
                            "map": "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 8], rt0 in [0, 5], d0 - rt0 in [0, 3]",
                            "runtime_variables": [
                                {
                                    "var": "rt0",
                                    "hlo": "o = s32[] parameter(1)",
                                    "map": "(d0) -> (), domain: d0 in [0, 8]",
                                }
                            ],
                        }
                    ],
                    "1": ["()[s0] -> (s0), domain: s0 in [0, 3]"],
                },
            }
        },
    ),
    *(
        (
            {"kind": "indexing", "op": op, "attrs": attributes},
            {"out": {"output_to_input": {"0": [out]}, "input_to_output": {"0": [back]}}},
        )
        for op, attributes, out, back in VIEWS
    ),
    (
        {"kind": "indexing", "op": "pad", "attrs": {"in": [3], "begin": [-3], "end": [4]}},
        {"out": {"output_to_input": {"0": []}, "input_to_output": {"0": []}}},
    ),
    # a chain may stand beside the op
    (
        {"kind": "indexing", "op": "flip(flip)", "chain": [["flip", [5], [0]], ["flip", [5], [0]]]},
        {"out": {"output_to_input": {"0": [SAME]}, "input_to_output": {"0": [SAME]}}},
    ),
    (
        {"kind": "dtype-lowering", "vars": {"i": [0, 2**20]}, "exprs": ["i*4096", "i*4096%8"]},
        {"out": ["i64", "i32"], "computed": ["i64", "i64"]},
    ),
    (
        {"kind": "render-loop", "vars": {"n": [1, 9]}, "variable": ["x", 0, "n - 1"], "counter": "x"},
        {"out": ["CONST 0", "n", "LOOP [0, 1]"], "code": "for (int x = 0; x < n; x++) {", "trips": 9},
    ),
    # null is as if it were not there
    ({"vars": {"i": [0, 7]}, "exprs": ["i*2//2"], "gates": None, "lets": None, "constraints": None}, {"out": ["i"]}),
    (
        {
            "kind": "shapetracker",
            "vars": {"i": [0, 7]},
            "shape": [8],
            "strides": [1],
            "mask": None,
            "offset": None,
        },
        {"out": ["i", "True"]},
    ),
    (
        {"kind": "structural", "vars": {"j": [0, 7]}, "before": "END(INDEX(buf, (i*8 + j)//8), [RANGE(1)])"},
        {"out": ["INDEX(buf, i)"]},
    ),
    (
        {"kind": "range-split", "ranges": {"r": 32, "q": 9}, "body": ["r%8 + r%4*q", "q%2"]},
        {
            "out": ["q*r_i_i + r_i_i + r_i_o*4", "q%2"],
            "after": {"r": "(r_o * 2 + r_i_o) * 4 + r_i_i"},
            "axes": [4, 2, 4, 9],
            "fresh_ids": 3,
            "checked": "exhaustive",
        },
    ),
    (
        {"kind": "range-merge", "ranges": [4, 8], "body": ["(i*8 + j)//4", "(i*8 + j)%4"]},
        {"merge": True, "merged": 32, "out": ["m//4", "m%4"], "axes": [32], "cheapest": [8, 4], "cost": 2},
    ),
    (
        {"kind": "range-merge", "ranges": [4, 8], "body": "i*8 + j", "axis_types": ["output", "reduce"]},
        {"merge": False, "out": ["i*8 + j"], "reason": "one range is for output, the other for reduce"},
    ),
    (
        {"kind": "split-reduce-decision", "input_shape": [64], "reduce_axes": [0], "threshold": 32},
        {
            "split": True,
            "out": ["REDUCE(CONTIGUOUS(REDUCE(RESHAPE(data, [32, 2]), axes=[1])), axes=[0])"],
            "factors": [2, 32],
        },
    ),
    (
        {
            "kind": "buffer-decision",
            "op": "ADD",
            "reduce_in_scope": True,
            "pcontig": 3,
            "output_size": 999,
            "input_sizes": [99],
        },
        {"out": ["partial-inline"]},
    ),
]


@pytest.mark.parametrize(("case", "said"), ROWS)
def test_a_row(case: dict[str, Any], said: dict[str, Any]) -> None:
    row = row_of({"id": "a", **case})
    assert row["id"] == "a"
    assert {key: row.get(key) for key in said} == said


def test_a_runtime_variable_is_read_where_another_one_says() -> None:
    gather = """ENTRY e {
      p = f32[9] parameter(0)
      i = s32[8] parameter(1)
      o = s32[] parameter(2)
      g = f32[8] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
        slice_sizes={1}
      ROOT r = f32[4] dynamic-slice(g, o), dynamic_slice_sizes={4}
    }"""
    found = row_of({"kind": "indexing", "hlo": gather, "computation": "e"})["out"]["output_to_input"]["0"]
    assert [[r["map"] for r in m["runtime_variables"]] for m in found] == [
        ["(d0){rt1} -> (d0 + rt1), domain: d0 in [0, 3], rt1 in [0, 4]", "(d0) -> (), domain: d0 in [0, 3]"]
    ]


def test_a_proof_on_request() -> None:
    case = {"kind": "constraints", "vars": {"x": [0, 10**9]}, "before": ["x//8 == 3"]}
    assert row_of(case, prove=True)["checked"] == "proved"


BAD = [
    ({"kind": "gate", "vars": {}}, "the key 'before' is missing"),
    ({"kind": "reduce", "vars": {}, "before": "3", "forbidden": []}, "'forbidden' must be a text, not a list"),
    ({"kind": "gate", "vars": {"r": [0, 9]}, "before": "where(r < 5, r, NOTHING)"}, "unknown variable 'NOTHING'"),
    ({"vars": {}, "exprs": ["j"]}, """unknown variable 'j': give its range, "vars": {"j": [0, N]}, at column 1"""),
    ({"vars": [], "exprs": ["j"]}, "'vars' must be an object, not a list"),
    ({"kind": "shapetracker", "vars": {"i": [0, 7]}, "shape": [8, 2], "strides": [2, 1]}, "1 index for a view of 2"),
    ({"kind": "shapetracker", "vars": {"i": [0, 7]}, "shape": [8], "strides": []}, "1 dimension, 0 strides"),
    ({"kind": "shapetracker", "vars": {}, "shape": [8], "strides": [1], "mask": [3]}, "must be a low and a high index"),
    (
        {"kind": "shapetracker", "vars": {}, "shape": [8], "strides": [1], "mask": 5},
        "'mask' must be a list, not an integer",
    ),
    ({"kind": "shapetracker", "vars": {}, "shape": [8, 2], "strides": [8.5, 1]}, "'strides' must be integers or texts"),
    (
        {"kind": "shapetracker", "vars": {}, "shape": [4.5], "strides": [1]},
        "'shape' must be integers or texts, not 4.5",
    ),
    ({"kind": "shapetracker", "vars": {}, "shape": ["4.5"], "strides": [1]}, "the part '4.5' of a view must be an"),
    ({"kind": "shapetracker", "vars": {"i": [0, 3]}, "shape": ["i < 2"], "strides": [1]}, "must be an integer"),
    ({"kind": "shapetracker", "vars": {}, "shape": [True], "strides": [1]}, "integers or texts, not True"),
    ({"kind": "shapetracker", "vars": {}, "shape": [8], "strides": [1], "offset": [1]}, "numbers of 'offset' must be"),
    ({"kind": "shapetracker", "vars": {}, "shape": [4, 0], "strides": [1, 1]}, "sizes [4, 0] has no elements"),
    ({"kind": "expand", "vars": {"a": [0, 3]}, "expr": "a", "unroll": ["a", "a"]}, "'a' is unrolled twice"),
    (
        {"kind": "gate", "vars": {"INVALID": [0, 9]}, "before": "INVALID"},
        "'INVALID' is the index of an access that does",
    ),
    ({"kind": "gate", "vars": {}, "lets": [["INVALID", "3"]], "before": "INVALID"}, "'INVALID' is the index of an"),
    ({"vars": {}, "exprs": ["1"], "buffers": [3]}, "'buffers' must be a list of texts, not of an integer"),
    ({"kind": "expand", "vars": {}, "expr": "1", "unroll": ["u"]}, "'u' of 'unroll' has no range"),
    ({"kind": "constraints", "vars": {"x": [0, 9]}, "before": ["x + 1"]}, "'x + 1' is not a condition"),
    ({"kind": "indexing", "op": "dot", "attrs": {}}, "op 'dot' needs its 'hlo' or 'map': without, give one of reshape"),
    ({"kind": "indexing", "attrs": {"chain": ["reshape"]}}, "each of 'chain' must be an op and all its"),
    ({"kind": "indexing", "chain": [["pad", [4], [1]]]}, "each of 'chain' must be an op and all its attributes"),
    ({"kind": "indexing", "chain": [["knit", [4], [1]]]}, "op 'knit' needs its 'hlo' or 'map'"),
    ({"kind": "indexing", "chain": [["flip", [4], 0]]}, "'axes' must be a list"),
    ({"kind": "indexing", "chain": [["pad", [4], ["a"], [0]]]}, "'begin' must be a list of integers"),
    ({"kind": "indexing", "op": "flip", "attrs": {"in": [8, 12], "axes": [5]}}, "must be different ones of 0 to 1"),
    ({"kind": "indexing", "op": "flip", "attrs": {"in": [8, 12], "axes": [True]}}, "1 flag for 2 dimensions"),
    ({"kind": "indexing", "op": "flip", "attrs": {"in": [8, 12], "axes": [1, True]}}, "must be a list of integers"),
    ({"kind": "indexing", "op": "permute", "attrs": {"in": [8, 12], "axes": [True, False]}}, "a list of integers"),
    (
        {"kind": "indexing", "attrs": {"chain": [["reshape", [6], [2, 3]], ["expand", [1, 3], [2, 3]]]}},
        "gives sizes [2, 3], and the next takes [1, 3]",
    ),
    ({"kind": "indexing", "op": "reshape", "attrs": {"in": [4], "out": [5]}}, "[4] has 4 elements, [5] has 5"),
    ({"kind": "indexing", "op": "expand", "attrs": {"in": [4], "out": [5]}}, "only dimensions of size 1 expand"),
    ({"kind": "indexing", "op": "permute", "attrs": {"in": [4]}}, "the key 'axes' is missing"),
    ({"kind": "indexing", "hlo": "ENTRY e {"}, "line 1 of the HLO text: the computation 'e' has no end"),
    ({"kind": "indexing", "hlo": REVERSAL, "computation": "g"}, "there is no computation 'g': name one of e"),
    ({"kind": "indexing", "map": "d0"}, "it must read"),
    ({"kind": "dtype-lowering", "bounds": [0, 2**63]}, "no 64-bit integer holds"),
    ({"kind": "dtype-lowering", "bounds": [0]}, "two integers"),
    ({"kind": "dtype-lowering", "shape": [4, "n"]}, "'shape' must be a list of integers"),
    ({"kind": "render-loop", "variable": ["x"]}, "a name and two bounds"),
    ({"kind": "render-loop", "variable": ["x", 3, 2]}, "is empty"),
    ({"kind": "render-loop", "variable": ["i", 0, 1.5]}, "numbers of 'variable' must be integers or texts, not 1.5"),
    ({"kind": "render-loop", "variable": ["i", 0, "1.5"]}, "the bound '1.5' of a loop must be an integer"),
    ({"kind": "render-loop", "variable": ["i", 0, "1 < 2"]}, "the bound '1 < 2' of a loop must be an integer"),
    ({"kind": "render-loop", "variable": ["i", 0, 3], "counter": "int"}, "'int' cannot name a C counter"),
    ({"kind": "render-loop", "variable": ["i", 0, 3], "counter": "a b"}, "'a b' cannot name a C counter"),
    (
        {"kind": "render-loop", "variable": ["i", 0, "n"], "vars": {"n": [0, 3]}, "counter": "n"},
        "the counter 'n' has the name of a variable of its bounds",
    ),
    ({"kind": "structural", "before": "END(x"}, "')' is missing"),
    ({"kind": "range-split", "body": "r % 4"}, "give the extents of 'ranges', or the 'end' of r"),
    ({"kind": "range-split", "end": True, "body": "r % 4"}, "must be positive integers, not [True]"),
    ({"kind": "range-split", "end": 0, "body": "r % 4"}, "must be positive integers, not [0]"),
    ({"kind": "range-split", "end": 4, "body": "s"}, """unknown variable 's': give its range, "vars": {"s": [0, N]}"""),
    ({"kind": "constraints", "vars": {}, "before": ["s < 3"]}, """give its range, "vars": {"s": [0, N]}"""),
    ({"kind": "dtype-lowering", "vars": {}, "exprs": ["s"]}, """give its range, "vars": {"s": [0, N]}"""),
    ({"kind": "dtype-lowering", "vars": {}}, "give 'exprs', the 'bounds' of a value, or the 'shape' of a tensor"),
    ({"kind": "indexing"}, "give a 'map', 'hlo', an 'op' or a 'chain'"),
    ({"kind": "indexing", "chain": []}, "give a 'map', 'hlo', an 'op' or a 'chain'"),
    ({"kind": "range-split", "end": 12, "body": "r % 4 +"}, "an operand is missing"),
    ({"kind": "range-merge", "ranges": [4, 8, 2], "body": "i"}, "the extents of two adjacent ranges"),
    ({"kind": "range-merge", "ranges": [4, 8], "body": "i", "axis_types": ["output"]}, "for each of the 2 ranges"),
    (
        {"kind": "split-reduce-decision", "input_shape": ["n"], "reduce_axes": [0]},
        "'input_shape' must be a list of integers",
    ),
    ({"kind": "split-reduce-decision", "input_shape": [4], "reduce_axes": [1]}, "are not all axes of the shape"),
    (
        {"kind": "split-reduce-decision", "input_shape": [4], "reduce_axes": [0], "config": {"min_divisor": 0}},
        "at least 2 partial results for each output, not 0",
    ),
    (
        {"kind": "split-reduce-decision", "input_shape": [4], "reduce_axes": [0], "threshold": "32"},
        "'split_threshold' must be an integer",
    ),
    (
        {"kind": "split-reduce-decision", "input_shape": [2**31], "reduce_axes": [0], "config": {"max_divisor": 2**31}},
        "up to 65536 partial results for each output, not 2147483648",
    ),
    (
        {"kind": "range-merge", "ranges": [4, 8], "body": "i", "reduce_scopes": [1, 2]},
        "'reduce_scopes' must be a list of names for each range",
    ),
    ({"kind": "buffer-decision", "op": "ADD", "ratio": "huge"}, "'ratio' must be a number, 'low' or 'high'"),
    ({"kind": "buffer-decision", "op": "ADD", "ratio": [3]}, "'ratio' must be a number, 'low' or 'high'"),
    ({"kind": "buffer-decision", "op": "ADD", "ratio": float("nan")}, "'ratio' must be a number, 'low' or 'high'"),
    ({"kind": "buffer-decision", "op": "ADD", "ratio": True}, "'ratio' must be a number, 'low' or 'high'"),
    ({"kind": "buffer-decision", "op": "ADD", "limit": True}, "'limit' must be an integer, not true or false"),
    (
        {"kind": "buffer-decision", "op": "ADD", "exceeds_buffer_limit": "no"},
        "'exceeds_buffer_limit' must be true or false, not a text",
    ),
    ({"kind": "buffer-decision", "op": "ADD", "pcontig": "3"}, "'pcontig' must be an integer, not a text"),
    ({"kind": "range-splt", "vars": {}}, "lists the kinds; did you mean 'range-split'?"),
    ({"kind": "gates", "vars": {}}, "lists the kinds; did you mean 'gate'?"),
    ({"kind": "knitting", "vars": {}}, "cases of kind 'knitting' are unknown: docs/corpora.md lists the kinds"),
    ({"kind": "reduce", "vars": {}, "after": "36"}, "the key 'before' is missing"),
    ({"kind": ["plain"], "vars": {}, "exprs": ["1"]}, "'kind' must be a text, not a list"),
    ({"kind": 3, "vars": {}, "exprs": ["1"]}, "'kind' must be a text, not an integer"),
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
