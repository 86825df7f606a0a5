"""Which rules run in a round: those whose patterns have no pair of operators that the e-graph lacks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from corpora import BITS, GATES, HAND, cases

from eqsat import Budget, Rule, optimize
from eqsat.egraph.program import Kind
from eqsat.egraph.shapes import Shape, Shapes, shapes_of
from eqsat.egraph.tables import Tables
from eqsat.egraph.variants import needed_by, written_for
from eqsat.optimizer.relevant import relevant_of_default
from eqsat.rules import DEFAULT, REDUCE


def needs(left: str, guard: str = "") -> set[tuple[str, str]]:
    """What a left side needs, but for what stands anywhere."""
    pattern = Rule("r", left, "0", guard, why="for its left side").pattern
    return {(place, kind) for place, kind in shapes_of(pattern) if place}


@pytest.mark.parametrize(
    ("left", "guard", "expected"),
    [
        ("x // d", "", {("Div1", "literal")}),
        ("x // y", "", set()),
        ("x // y", "vmin(y) < vmax(y)", {("Div1", "varying")}),
        # either alternative lets the rule match
        ("x // y", "vmin(y) < vmax(y) or vmin(x) < 0", set()),
        ("(x + y) // d", "", {("Div0", "Sum"), ("Div1", "literal")}),
        ("(x // n + y) % d", "", {("Mod0", "Sum"), ("Mod1", "literal"), ("Sum", "Div"), ("Div1", "literal")}),
        ("where(x < y, x, 0)", "", {("Where0", "Lt"), ("Where2", "literal")}),
        # egglog has y <= x as not x < y
        ("where(3 <= x, x, y)", "", {("Where0", "Not"), ("Not0", "Lt"), ("Lt1", "literal")}),
        ("where(True, x, y)", "", {("Where0", "true")}),
        ("min(x*y, z)", "", {("Min", "Prod")}),
        # operands of an equality may change places
        ("where(x == 3, x, y)", "", {("Where0", "Eq"), ("Eq", "literal")}),
        ("x*y + x*z", "", {("Sum", "Prod")}),
    ],
)
def test_the_pairs_of_a_pattern(left: str, guard: str, expected: set[tuple[str, str]]):
    assert needs(left, guard) == expected


def test_pairs_are_found_whichever_comes_first():
    for order in (0, 1):
        found = Shapes()
        steps = [lambda s: s.add_node(0, "floordiv", (1, 2)), lambda s: s.add_node(1, "mod", (3, 2))]
        for step in steps[::-1] if order else steps:
            step(found)
        assert ("Div0", "Mod") in found.found
        assert ("Div1", "Mod") not in found.found


@pytest.mark.parametrize("pairs", [[(1, 3), (3, 4)], [(3, 1), (4, 3)]])
def test_united_classes_stand_where_either_did(pairs: list[tuple[int, int]]):
    found = Shapes()
    found.add_node(0, "floordiv", (1, 2))
    for pair in pairs:
        found.unite(*pair)
    assert ("Div0", "Min") not in found.found
    found.add_node(4, "min", (5, 6))
    assert ("Div0", "Min") in found.found
    found.add_node(7, "where", (8, 4, 9))
    assert ("Where1", "Min") in found.found


def test_conditions_that_hold_or_fail_are_told_apart():
    found = Shapes()
    found.add(Kind.HOLDS, 1)
    found.add_node(0, "where", (1, 2, 3))
    assert {kind for place, kind in found.found if place == "Where0"} == {"true"}
    found.add(Kind.FAILS, 4)
    found.add_node(0, "where", (4, 2, 3))
    assert {kind for place, kind in found.found if place == "Where0"} == {"true", "false"}
    found.add(Kind.UNKNOWN, 5)
    found.add_node(0, "not", (5,))
    assert not {kind for place, kind in found.found if place == "Not0"}


@contextmanager
def _finished():
    """Whenever a round changes nothing, run the rules that were left out too; yields what they matched."""
    matched: list[str] = []
    round_ = Tables.round

    class Everything:
        def __ge__(self, other: object) -> bool:
            return True

        def __iter__(self) -> Iterator[Shape]:
            yield "", "everything"

    def checked(tables: Tables, with_broad: bool, is_late: Callable[[float], bool]) -> bool:
        if round_(tables, with_broad, is_late):
            return True
        before = tables.matches.copy()
        with patch.object(tables.shapes, "found", Everything()):
            # the first stage of a rule may have something to find
            tables._ran(tables._able(with_broad), is_late)
        matched.extend((tables.matches - before).elements())
        return False

    with patch.object(Tables, "round", checked):
        yield matched


@pytest.mark.parametrize("theory", [True, False], ids=["default", "rules alone"])
@pytest.mark.parametrize("corpus", [HAND, GATES, BITS], ids=lambda path: path.stem)
def test_no_rule_that_is_left_out_would_match(corpus: Path, theory: bool):
    with _finished() as matched:
        for case in cases(corpus):
            optimize(
                case.exprs, constraints=case.constraints, gates=case.gates, theory=theory, budget=Budget(seconds=10)
            )
    assert not matched


def test_most_rules_are_left_out():
    ran: list[int] = []
    ran_ = Tables._ran

    def counted(tables: Tables, *options: Any) -> bool:
        ran.append(sum(way.needs <= tables.shapes.found for way, _ in tables._ways))
        return ran_(tables, *options)

    with patch.object(Tables, "_ran", counted):
        optimize("(i + 5)//7 + i%5", i=(0, 90))
    assert 0 < max(ran) < 60


def test_the_text_of_a_rule_tells_some_of_the_shapes_that_it_needs():
    told = 0
    for rule in [*DEFAULT, *REDUCE]:
        for shapes, _ in needed_by(rule):
            assert any(written <= shapes for written in written_for(rule)), rule.name
        told += all(written_for(rule))
    # the others are sums and products alone
    assert told > 0.9 * len([*DEFAULT, *REDUCE])


def test_rules_whose_text_has_what_the_input_lacks_are_not_parsed():
    with patch("eqsat.egraph.tables.prefilters", return_value=()) as asked:
        Tables(relevant_of_default(modulo_theory=True)).can_match({"sum", "floordiv"}, with_two_values=True)
    names = {call.args[0].name for call in asked.call_args_list}
    assert "mod-part" in names
    assert not any("%" in rule.left or "min" in rule.left for rule in DEFAULT if rule.name in names)
