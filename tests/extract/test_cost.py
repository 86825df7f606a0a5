"""Cost models: the price of one node, as a table; what a loop nest and a model file do to it."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from eqsat import optimize
from eqsat.extract import (
    COST_MODELS,
    GPU,
    Calibrated,
    CodeSize,
    EGraph,
    Latency,
    LoopAware,
    OpCount,
    Priced,
    Throughput,
    cost_model,
    total_cost,
    tree,
)
from eqsat.extract.cost import FIGURES, FORMAT, OPERATIONS, operation
from eqsat.lang.ops import OPS, OWN

BYTE, SIGNED, WIDE, FREE = (0, 255), (-128, 127), (0, 2**40), (1, 99)


def literal(value: int) -> tuple[int, int]:
    return value, value


LATENCY = [
    # operator, bounds of the operands, cycles
    ("var", [], 0),
    ("const", [], 0),
    ("add", [BYTE, BYTE], 1),
    ("sub", [BYTE, literal(1)], 1),
    ("neg", [SIGNED], 1),
    ("lt", [BYTE, BYTE], 1),
    ("and", [(0, 1), (0, 1)], 1),
    ("where", [(0, 1), BYTE, BYTE], 1),
    ("min", [BYTE, BYTE], 1),
    ("shl", [BYTE, literal(3)], 1),
    ("bitand", [BYTE, BYTE], 1),
    ("bitor", [SIGNED, BYTE], 1),
    ("bitxor", [SIGNED, literal(-3)], 1),
    ("mul", [BYTE, BYTE], 3),
    ("mul", [BYTE, literal(7)], 3),
    ("mul", [BYTE, literal(8)], 1),
    ("mul", [literal(8), BYTE], 1),
    ("mul", [BYTE, literal(-8)], 2),
    ("mul", [BYTE, literal(-1)], 1),
    ("mul", [BYTE, literal(1)], 0),
    ("load", [BYTE], 1),
    ("store", [BYTE], 4),
    # floor division by a power of two is a shift for either sign, truncating division is not
    ("floordiv", [BYTE, literal(8)], 1),
    ("floordiv", [SIGNED, literal(8)], 1),
    ("mod", [SIGNED, literal(8)], 1),
    ("tdiv", [BYTE, literal(8)], 1),
    ("tdiv", [SIGNED, literal(8)], 3),
    ("floordiv", [BYTE, literal(-8)], 2),
    # by another literal: a sign costs a fix-up, a remainder multiplies back
    ("floordiv", [BYTE, literal(7)], 5),
    ("floordiv", [SIGNED, literal(7)], 7),
    ("mod", [BYTE, literal(7)], 8),
    # times 7 is a shift and a difference, times 10 takes one operation more, as long as a multiplication
    ("mod", [BYTE, literal(10)], 9),
    ("mod", [SIGNED, literal(7)], 10),
    # which have no vectors beyond 32 bits
    ("floordiv", [WIDE, literal(7)], 8),
    ("mod", [WIDE, literal(7)], 11),
    ("mod", [WIDE, literal(8)], 1),
    # by a variable: a sign costs two fix-ups, 64 bits twice as much
    ("mod", [BYTE, FREE], 20),
    ("floordiv", [BYTE, FREE], 24),
    ("tdiv", [BYTE, FREE], 20),
    ("tdiv", [SIGNED, FREE], 20),
    ("floordiv", [SIGNED, FREE], 28),
    ("mod", [BYTE, SIGNED], 24),
    ("floordiv", [WIDE, FREE], 48),
    ("mod", [BYTE, WIDE], 40),
]


@pytest.mark.parametrize(("op", "operands", "cycles"), LATENCY)
def test_latency(op, operands, cycles):
    assert Latency().price(op, operands, (0, 10**6)) == cycles


def test_latency_is_what_its_fields_say():
    model = Latency(multiply=30, quotient_by_variable=100)
    assert model.price("mul", [BYTE, BYTE], BYTE) == 30
    assert model.price("floordiv", [BYTE, FREE], BYTE) == 100


@pytest.mark.parametrize("op", ["floordiv", "mod", "tdiv", "tmod"])
def test_a_division_is_never_cheaper_for_wider_or_signed_operands(op):
    for divisor in (literal(8), literal(7), FREE):
        prices = [Latency().price(op, [x, divisor], (0, 9)) for x in (BYTE, SIGNED, (-(2**40), 2**40))]
        assert prices == sorted(prices)


OP_COUNT = [
    ("var", [], {}, 0),
    ("const", [], {"const": 5}, 0),
    ("floordiv", [BYTE, literal(7)], {}, 1),
    ("floordiv", [BYTE, literal(7)], {"floordiv": 10}, 10),
    ("mod", [BYTE, literal(7)], {"floordiv": 10}, 1),
    ("mul", [BYTE, literal(1)], {"mul": 0}, 0),
]


@pytest.mark.parametrize(("op", "operands", "weights", "cost"), OP_COUNT)
def test_op_count(op, operands, weights, cost):
    assert OpCount(weights).price(op, operands, BYTE) == cost


def test_models_by_name():
    models = {"latency": Latency(), "throughput": Throughput(), "opcount": OpCount()}
    assert models | {"codesize": CodeSize(), "gpu": GPU()} == COST_MODELS
    assert cost_model("throughput") == Throughput()


@pytest.mark.parametrize("model", COST_MODELS.values(), ids=lambda model: type(model).__name__)
def test_no_operation_costs_less_than_an_addition_by_a_model_that_ships(model):
    addition = model.price("add", [BYTE, BYTE], (0, 510))
    for op, shape in OPS.items() - OWN.items():
        for operands in product([BYTE, SIGNED, FREE, literal(8), literal(7), literal(-1)], repeat=len(shape.takes)):
            assert model.price(op, operands, BYTE) >= addition, (op, operands)


KINDS = [
    # operator, bounds of the operands, kind
    ("add", [BYTE, BYTE], "add i32"),
    ("neg", [WIDE], "add i64"),
    ("ne", [BYTE, WIDE], "compare i64"),
    ("not", [(0, 1)], "logic i32"),
    ("max", [SIGNED, BYTE], "min i32"),
    ("where", [(0, 1), BYTE, WIDE], "select i64"),
    ("store", [BYTE], "store i32"),
    ("mul", [BYTE, BYTE], "multiply i32"),
    ("mul", [literal(7), BYTE], "multiply by literal i32"),
    ("mul", [BYTE, literal(8)], "shift i32"),
    ("mul", [BYTE, literal(1)], None),
    ("shr", [BYTE, literal(3)], "shift i32"),
    ("floordiv", [SIGNED, literal(8)], "shift i32"),
    ("mod", [SIGNED, literal(8)], "mask i32"),
    ("tdiv", [BYTE, literal(8)], "shift i32"),
    ("tdiv", [SIGNED, literal(8)], "tdiv by literal signed i32"),
    ("floordiv", [BYTE, literal(-8)], "floordiv by literal signed i32"),
    ("floordiv", [BYTE, literal(7)], "floordiv by literal unsigned i32"),
    ("tmod", [BYTE, literal(7)], "mod by literal unsigned i32"),
    ("mod", [SIGNED, FREE], "mod by variable signed i32"),
    ("floordiv", [WIDE, FREE], "floordiv by variable unsigned i64"),
]


@pytest.mark.parametrize(("op", "operands", "kind"), KINDS)
def test_kinds_of_operations(op, operands, kind):
    assert operation(op, operands, (0, 1)) == kind


def test_every_operator_has_a_measured_kind():
    model = Calibrated(dict.fromkeys(OPERATIONS, 1))
    for op, shape in OPS.items() - OWN.items():
        for operands in product(
            *[[(0, 1)] if sort == "b" else [BYTE, SIGNED, WIDE, literal(7)] for sort in shape.takes]
        ):
            if op not in ("shl", "shr") or operands[1] == literal(7):
                assert model.price(op, operands, (0, 1)) == 1
    assert model.price("var", [], BYTE) == 0


def test_a_measured_model_prices_reductions_and_what_is_not_measured():
    model = Calibrated({kind: 30 if kind == "multiply i32" else 10 for kind in OPERATIONS})
    operands = [BYTE, (0, 4), literal(0), literal(5)]
    assert [model.price(op, operands, BYTE) for op in ("sum_over", "prod_over", "min_over")] == [100, 200, 100]
    assert [model.price(op, [BYTE] * count, BYTE) for op, count in (("fadd", 2), ("sqrt", 1))] == [10, 10]
    assert optimize("sum((r*k + 3)//n, r, 0, n)", k=(0, 9), n=(1, 9), cost=model).check().equal


def model_file(tmp_path, **changes):
    """A model file in which throughput is 10, latency 20, and so on; with ``changes``."""
    figures = {figure: dict.fromkeys(OPERATIONS, 10 * n) for n, figure in enumerate(FIGURES, start=1)}
    content = {"format": FORMAT, "machine": {"processor": "abacus"}, "picoseconds": figures, **changes}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    return path


def test_a_model_file(tmp_path):
    path = model_file(tmp_path)
    assert Calibrated.load(path).price("add", [BYTE, BYTE], BYTE) == 10
    assert Calibrated.load(path, "latency").price("add", [BYTE, BYTE], BYTE) == 20
    assert Calibrated.load(path).machine == {"processor": "abacus"}
    assert cost_model(str(path)) == Calibrated.load(path)


BAD_FILES = [
    ({"format": "another"}, "its format is 'another'"),
    ({"picoseconds": {}}, "'throughput' is missing"),
    ({"picoseconds": {"throughput": {}}}, "'add i32' is missing"),
    ({"picoseconds": {"throughput": dict.fromkeys(OPERATIONS, -1)}}, "a figure is negative"),
    ({"picoseconds": {"throughput": dict.fromkeys(OPERATIONS, float("inf"))}}, "cannot convert float infinity"),
    ({"picoseconds": None}, "not subscriptable"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_FILES)
def test_a_file_that_is_no_model_is_refused_in_one_line(tmp_path, changes, message):
    with pytest.raises(ValueError, match=f"is not a cost model: .*{message}.*eqsat calibrate") as raised:
        Calibrated.load(model_file(tmp_path, **changes))
    assert "\n" not in str(raised.value)


def test_an_unknown_model_or_figure_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown cost model 'beauty': use latency, .*FILE.json"):
        cost_model("beauty")
    with pytest.raises(ValueError, match="no figure 'beauty': use one of throughput"):
        Calibrated.load(model_file(tmp_path), "beauty")


def test_a_loop_that_never_runs_is_refused():
    with pytest.raises(ValueError, match="loop 'i' runs 0 times"):
        LoopAware({"i": 0})


def test_loops_of_numpys_integers_do_not_overflow():
    model = LoopAware(dict.fromkeys("ij", np.int64(2**40)))
    assert model.runs(model.level("j")) == 2**80


LOOP_SUMS = [
    # constant, coefficients of n (no loop), i (10 times) and j (80 times), operations that run
    (0, (1, 1, 1), 10 + 80),
    (5, (1, 1, 1), 1 + 10 + 80),
    (0, (3, 1, 1), 1 + 10 + 80),
    (0, (1, 1, 3), 10 + 80 + 80),
    (0, (-1, 1, 1), 10 + 80),
    (0, (-1, -1, -1), 1 + 10 + 80),
]


@pytest.mark.parametrize(("constant", "coefficients", "cost"), LOOP_SUMS)
def test_a_sum_is_added_from_the_outermost_loop(constant, coefficients, cost):
    classes = {c: [("var", name, ())] for c, name in enumerate("nij")}
    classes[3] = [("sum", (constant, coefficients), (0, 1, 2))]
    graph = Priced.of(EGraph(classes, dict.fromkeys(classes, BYTE), [3]), LoopAware({"i": 10, "j": 8}, OpCount()))
    assert total_cost(graph, tree(graph)) == cost


def test_a_node_runs_as_often_as_its_innermost_operand_must():
    # class 3 is j//2 as well as n//2: its user runs once
    classes = {0: [("var", "n", ())], 1: [("var", "j", ())], 2: [("const", 2, ())]}
    classes |= {3: [("floordiv", None, (1, 2)), ("floordiv", None, (0, 2))], 4: [("add", None, (3, 0))]}
    graph = Priced.of(EGraph(classes, dict.fromkeys(classes, BYTE), [4]), LoopAware({"j": 8}, OpCount()))
    assert graph.prices == {0: [0], 1: [0], 2: [0], 3: [8, 1], 4: [1]}


def test_a_file_named_in_two_ways_runs_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "print('run')\nclass Mine:\n    def price(self, op, operands, result):\n        return 7\n"
    )
    assert type(cost_model("mine.py:Mine")) is type(cost_model("./mine.py:Mine"))
    assert capsys.readouterr().out == "run\n"


def test_a_model_of_a_file_is_named_by_it(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Mine:\n    def price(self, op, operands, result):\n        return 7\n\n\nTHREE = 3\n")
    assert cost_model(f"{path}:Mine").price("add", [(0, 1), (0, 1)], (0, 2)) == 7
    with pytest.raises(ValueError, match=r"mine\.py defines no 'Yours': name a cost model of it"):
        cost_model(f"{path}:Yours")
    with pytest.raises(ValueError, match=r"mine\.py: 'THREE' is no cost model: give it a method price\("):
        cost_model(f"{path}:THREE")
    broken = tmp_path / "broken.py"
    broken.write_text("1 // 0\n")
    with pytest.raises(ValueError, match=r"broken.py fails: ZeroDivisionError: "):
        cost_model(f"{broken}:Mine")
    with pytest.raises(OSError, match="No such file"):
        cost_model(f"{tmp_path / 'none.py'}:Mine")
