"""The ablation: each part can be left out, what it is worth shows, and its tables have every part."""

import json
import sys

import ablation
import pytest
from comparison.run import Item, read_corpora
from corpora import HAND, SAMPLE

from eqsat.cli.cases import read_case
from eqsat.extract.cost import Latency
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result

RANGES = {"x": (0, 99), "y": (0, 99), "z": (0, 99), "i": (0, 9), "j": (0, 9), "u": (-1000, 1000), "r": (0, 3)}
RANGES |= {"a": (0, 50), "b": (0, 50)}

#: Parts of the default engine, and what costs more without them.
WORTH = [
    ("select rules", ["u*where(i >= j, 1, 0)"]),
    ("all rules", ["u*where(i >= j, 1, 0)"]),
    ("the theory (rules alone)", ["x//3 + (x + 1)//3 + (x + 2)//3"]),
    ("input", ["(x*7 + y*4)//7"]),
    ("hidden laws", ["(x*7 + y*4)//7"]),
    ("nested quotients", ["x//3 + (x + 1)//3*100"]),
    ("sums in selections", ["where(x < y, i - j, 3) + j"]),
    ("ranges", ["sum(u*t % 7, t, 0, x + 1) - sum(u*t % 7, t, 0, x)"]),
    ("factored products", ["x*z + y*z"]),
    ("other comparisons", ["1 <= x%3"]),
    ("merged comparisons", ["x < y and x < z"]),
    ("congruent remainders", ["x*9 + y*10", "(x + y*2)%8"]),
    ("partial sums", ["y*(x%4) + x//4*4"]),
    ("partial conditions", ["where(x < 3 and z < 5 and y < 4, i, j)", "where(x < 3 and y < 4 and i < 5, x, y)"]),
    ("linear programs", ["x*9"]),
    ("availability", ["y*(x%4) + x//4*4"]),
    ("intervals", ["i*10 + j", "where(i == 1 and j == 0, x, y)"]),
    ("windows", ["0 <= u and u < 900"]),
    ("rules about reductions", ["sum(min(t*u % 7, y) + x*t, t, 0, 6)"]),
    ("flat index", [f"(i*8 + r){rest}" for rest in ("//12%2", "//3%4", "%3")]),
    ("shifted variables", ["(x + 16)//14*5 + (x + 16)//3%5"]),
    ("answer read again", ["(a*6 + r*10 + 6)//6//10"]),
]


#: Families of rules, and what costs more for the rules alone without them.
WORTH_ALONE = [
    ("arithmetic rules", ["x*(y + 1) - x"]),
    ("divmod rules", ["x % 4 + x//4*4"]),
    ("ranges rules", ["(r + 7*x)//7"]),
    ("folding rules", ["x % 8 % 4"]),
    ("division rules", ["x // 2 // 3"]),
    ("compare rules", ["x + 3 < y + 3"]),
    ("select rules", ["where(x < y, i, i)"]),
    ("reduce rules", ["sum(x, r, 0, 4)"]),
]


def answer(exprs: list[str], part: str, table: str) -> Result:
    options, changes = ablation.TABLES[table][part]
    with ablation.changed(changes):
        return optimize(exprs, **options, **RANGES)


@pytest.mark.parametrize(
    ("table", "part", "exprs"), [*[("default", *line) for line in WORTH], *[("rules", *line) for line in WORTH_ALONE]]
)
def test_what_costs_more_without_a_part(table, part, exprs):
    whole = answer(exprs, ablation.NOTHING, table).cost
    assert answer(exprs, part, table).cost > whole
    # what was changed is as it was
    assert answer(exprs, ablation.NOTHING, table).cost == whole


@pytest.mark.parametrize("part", ablation.FAMILY)
def test_without_a_family_too_the_rules_are_compiled_before_the_clock_runs(part, monkeypatch):
    inputs = []

    def spied(exprs, **options):
        inputs.append(optimize(exprs, **options))
        return inputs[-1]

    monkeypatch.setattr("comparison.solvers.optimize", spied)
    ablation.without(part, *ablation.TABLES["default"][part])
    assert [found.rounds > 0 for found in inputs] == [True]


def test_cases_that_the_budget_stopped_are_not_compared():
    names = ablation.TABLES["rules"]
    whole = {name: {"out": ["x"], "ms": 1.0, "divmod": 0, "cost": 2} for name in names}
    late = {**whole, "select rules": {**whole[ablation.NOTHING], "cost": 9, "error": "stopped by the budget of time"}}
    rows = [{"id": "whole", "answers": whole}, {"id": "late", "answers": late}]
    text = ablation.section("rules", rows, 5)
    assert cells(text)["select rules"] == ["0", "2", "", "", "", "1.00", "1.00", "1"]
    assert "Left out, since a budget stopped them: 3 with all parts, 1 without some part." in text
    with pytest.raises(ValueError, match="the budget stopped every case of the rules alone: give smaller ones"):
        ablation.section("rules", rows[1:], 1)


def test_a_case_that_stops_the_engine_with_all_parts_is_not_tried_without_one(monkeypatch):
    tried = []

    def solver(name, *how):
        def solve(examiner):
            tried.append((examiner.case.id, name))
            return examiner.answer(examiner.case.exprs, name, 1.0, "late" if examiner.case.id == "hard" else "")

        return solve

    monkeypatch.setattr(ablation, "without", solver)
    items = [
        Item("some", n, (), read_case(json.dumps(MASKED | {"id": name}))) for n, name in enumerate(("hard", "easy"))
    ]
    with ablation.progress_bars() as progress:
        rows = ablation.ablated("rules", items, Latency(), progress)
    assert [row["id"] for row in rows] == ["easy"]
    assert [part for name, part in tried if name == "hard"] == [ablation.NOTHING]
    assert {part for name, part in tried if name == "easy"} == set(ablation.TABLES["rules"])


def test_the_default_is_all_corpora_with_their_reductions(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ablation.py"])
    items = read_corpora(ablation.parse().corpora, None, 0, ablation.KINDS)
    assert {item.corpus for item in items} == {path.stem for path in [*HAND.parent.glob("*.jsonl"), SAMPLE]}
    assert len([item for item in items if any(root.op == "sum_over" for root in item.case.exprs)]) > 80


#: Two kernels of the sample, and a term that only rules about selections simplify.
KERNELS = ("tinygrad/pad_shrink_flip/pre_symbolic/2", "tinygrad/vit_patch/early_symbolic/0")
MASKED = {"id": "masked", "vars": {"u": [-9, 9], "i": [0, 9]}, "exprs": ["u*where(i >= 4, 1, 0)"]}


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Runs the command on three cases; the tables as lists of cells."""
    sample = SAMPLE.read_text().splitlines()
    lines = [line for line in sample if json.loads(line)["id"] in KERNELS]
    corpus = tmp_path / "three.jsonl"
    corpus.write_text("\n".join([*lines, json.dumps(MASKED)]))

    def run(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["ablation.py", str(corpus), *options])
        assert ablation.main(ablation.parse())
        return capsys.readouterr().out

    return run


def cells(text: str) -> dict[str, list[str]]:
    """The rows of a Markdown table by their first cell."""
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[1:]}


def test_the_tables_have_every_part_and_none_is_better_left_out(command, tmp_path):
    text = command("-o", str(tmp_path / "ablation.md"))
    assert (tmp_path / "ablation.md").read_text() == text
    assert text.startswith("3 cases")
    tables = text.split("### ")[1:]
    for table, parts in zip(tables, ablation.TABLES.values(), strict=True):
        rows = cells(table)
        assert list(rows) == list(parts)
        costs = {name: int(row[1]) for name, row in rows.items()}
        # an alternative more may lead the choice astray by an operation or two
        assert costs[ablation.NOTHING] <= min(costs.values()) + 1
        # a slow machine may leave a case unfinished
        assert rows[ablation.NOTHING][2:-1] == ["", "", "", "1.00", "1.00"]
    default = cells(tables[0])
    parts = ["select rules", "conjectures", "compare rules"]
    assert [default[name][3] for name in parts] == ["2", "1", ""]
    unchanged = next(line for line in tables[0].splitlines() if line.startswith("No answer changes without: "))
    assert "compare rules" in unchanged
    assert "select rules" not in unchanged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tables", "default,greedy"], "no table is called 'greedy': choose from default, rules"),
        (["--limit", "0"], "--limit 0 leaves no case: give 1 or more"),
    ],
)
def test_options_that_leave_nothing_to_measure_are_refused(command, options, message, capsys):
    with pytest.raises(SystemExit):
        command(*options)
    assert message in capsys.readouterr().err
