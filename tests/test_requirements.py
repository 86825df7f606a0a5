"""Every requirement is implemented, by what the table says, and its examples come out."""

from __future__ import annotations

import ast
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import pytest
from requirements import TABLE, Example, Line, read_lines, table

from eqsat.egraph.rule import Rule
from eqsat.extract.cost import Latency
from eqsat.kernels.kernel import Kernel, Store
from eqsat.kernels.simplification import simplified
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, buffer, substitute, var
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT, REDUCE
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.structural import StructuralArithmetic

LINES = read_lines()
EXAMPLES = [(line, example) for line in LINES for example in line.examples]
NEAR = [(line, example) for line in LINES for example in line.near]
TESTS = Path(__file__).parent
#: Answers by example, for the tests that ask for the same.
RESULTS: dict[tuple[str, bool], Result] = {}

#: All lines of the sources; E10 is about their wording alone.
WANTED = {
    *(f"A{n}" for n in range(1, 88)),
    *(f"B{n}" for n in range(1, 51)),
    *(f"C{n}" for n in range(1, 23)),
    *(f"D{n}" for n in range(1, 53)),
    *(f"E{n}" for n in (*range(1, 10), *range(11, 17))),
}


def label(value: object) -> str:
    return value.name if isinstance(value, Line) else str(value.given) if isinstance(value, Example) else str(value)


def run(example: Example, theory: bool = True) -> Result:
    key = (str(example), theory)
    if key not in RESULTS:
        RESULTS[key] = optimize(example.given, constraints=example.constraints, theory=theory, **example.ranges)
    return RESULTS[key]


def wanted(example: Example) -> list[Expr]:
    names = {name: var(name, *bounds) for name, bounds in example.ranges.items()}
    texts = [example.output] if isinstance(example.output, str) else example.output
    return [parse(text, names) for text in texts]


def test_no_line_is_missing() -> None:
    assert {line.name for line in LINES} == WANTED


def test_rules_name_lines_that_exist() -> None:
    assert {name for rule in (*DEFAULT, *REDUCE) for name in rule.source.split()} <= WANTED


@pytest.mark.parametrize("line", LINES, ids=label)
def test_every_line_is_implemented_and_has_an_example(line: Line) -> None:
    assert line.rules or line.by
    assert line.examples or line.near or line.tests
    for name in line.by:
        module, _, path = name.partition(":")
        reduce(getattr, path.split("."), import_module(module))
    for name in line.tests:
        module, _, function = name.partition(":")
        assert function in functions(module), name


@cache
def functions(module: str) -> set[str]:
    (path,) = TESTS.rglob(f"{module}.py")
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("theory", [True, False], ids=["theory", "rules"])
@pytest.mark.parametrize(("line", "example"), EXAMPLES, ids=label)
def test_an_example_comes_out(line: Line, example: Example, theory: bool) -> None:
    result = run(example, theory=theory)
    assert result.check().equal
    expected = wanted(example)
    assert check_equal(result.exprs, expected, constraints=result.constraints).equal
    if theory or line.rules:
        assert result.cost <= cost_of(expected, Latency())


@pytest.mark.parametrize("line", [line for line in LINES if (line.rules or line.laws) and line.examples], ids=label)
def test_its_rules_fire(line: Line) -> None:
    results = [run(example, theory=False) for example in line.examples]
    fired = any(result.rules.get(rule) for result in results for rule in (*line.rules, *line.laws))
    assert fired or any(map(_hold_by_representation, results))


def _hold_by_representation(result: Result) -> bool:
    """Whether input and answer have one form without any rule."""
    theory = StructuralArithmetic(result.constraints)
    return list(map(theory.value, result.before)) == list(map(theory.value, result.exprs)) != list(result.before)


@pytest.mark.parametrize("theory", [True, False], ids=["theory", "rules"])
@pytest.mark.parametrize(("line", "example"), NEAR, ids=label)
def test_a_near_miss_does_not(line: Line, example: Example, theory: bool) -> None:
    result = run(example, theory=theory)
    forbidden = wanted(example)
    assert result.check().equal
    assert not check_equal(result.before, forbidden, constraints=result.constraints).equal, "it would be right"
    assert list(result.exprs) != forbidden


def test_the_table_is_up_to_date() -> None:
    assert TABLE.read_text() == table(), "run python tests/helpers/requirements.py"


#: Lines whose answer gets cheaper by one when it is optimised again: of a sum of products some are shifts then.
SHIFTED_LATER = {"B46"}


@pytest.mark.parametrize(("line", "example"), EXAMPLES[::3], ids=label)
def test_a_later_stage_finds_nothing(line: Line, example: Example) -> None:
    result = run(example)
    later = optimize(result.exprs, constraints=result.constraints).cost
    assert result.cost - later in ((0, 1) if line.name in SHIFTED_LATER else (0,))


SAME = [
    ("R1*8000 + R2*16", "R2*16 + R1*8000"),
    ("x*y", "y*x"),
    ("max(x, y + 1)", "max(y + 1, x)"),
    ("x == y*2", "y*2 == x"),
    ("x != y", "y != x"),
    ("x < 3 and y < 4", "y < 4 and x < 3"),
    ("x < 3 or y < 4", "y < 4 or x < 3"),
    ("x + (y + R1)", "(R1 + x) + y"),
    ("1 <= x", "x*-1 < 0"),
]
NAMES = {name: var(name, 0, 1000) for name in ("x", "y", "R1", "R2")}


@pytest.mark.parametrize(("one", "other"), SAME)
def test_operands_in_either_order_are_one_term(one: str, other: str) -> None:
    left, right = parse(one, NAMES), parse(other, NAMES)
    assert LinearArithmetic().simplify(left) is LinearArithmetic().simplify(right)
    assert optimize(left).expr is optimize(right).expr


def test_an_exclusive_or_in_either_order_is_one_condition() -> None:
    left, right = [parse(text, NAMES) for text in ("(x < 3) != (y < 4)", "(y < 4) != (x < 3)")]
    assert LinearArithmetic().condition(left) is LinearArithmetic().condition(right)
    assert optimize(left).cost == optimize(right).cost


@pytest.mark.parametrize("text", ["x - y", "x//(y + 1)", "x%(y + 1)", "x < y"])
def test_operands_of_others_keep_their_order(text: str) -> None:
    swapped = text.translate(str.maketrans("xy", "yx"))
    assert optimize(parse(text, NAMES)).expr is not optimize(parse(swapped, NAMES)).expr


def test_only_integers_are_reordered() -> None:
    with pytest.raises(TypeError, match=r"0\.5 is a floating-point value, and 'x' is an integer"):
        NAMES["x"] + 0.5  # type: ignore[operator]
    out, values, i = buffer("Y", "f32", (8,)), buffer("X", "f32", (8,)), var("i", 0, 7)
    sums = values[i] + (values[7 - i] + values[i + 0])
    assert simplified(Kernel("sums", [Store(out[i], sums, [i])])).stores[0].value is substitute([sums], {i + 0: i})[0]


def test_rules_that_disagree_about_order_end() -> None:
    one, other = Rule("one-way", "x + y", "y + x"), Rule("other-way", "y + x", "x + y")
    result = optimize("x + y + z", rules=[one, other], theory=False, x=(0, 9), y=(0, 9), z=(0, 9))
    assert (result.stop, result.cost) == ("saturated", 2)
