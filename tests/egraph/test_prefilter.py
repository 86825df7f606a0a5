"""When egglog is not entered: where no rule may match what it would be given."""

from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from corpora import BITS, GATES, HAND, SAMPLE, SEEDS, cases
from hypothesis import given, settings
from strategies import expressions

from eqsat import Budget, Rule, optimize
from eqsat.egraph.prefilter import MOST_ROWS, Given, Prefilter
from eqsat.egraph.program import Kind
from eqsat.egraph.tables import Tables
from eqsat.egraph.trace import NO_MATCH
from eqsat.egraph.variants import needed_by


@contextmanager
def _entered():
    """Enter egglog whatever the prefilter says; yields what matched where none may."""
    asked, matched = [], []
    may_match, clear = Tables.may_match, Tables.clear

    def noted(tables: Tables) -> bool:
        asked.append(may_match(tables))
        return True

    def cleared(tables: Tables) -> None:
        if asked and not asked[-1]:
            matched.extend(tables.matches)
        clear(tables)

    with patch.object(Tables, "may_match", noted), patch.object(Tables, "clear", cleared):
        yield asked, matched


@pytest.mark.parametrize(
    ("corpus", "some"),
    [(HAND, True), (SEEDS, True), (GATES, False), (SAMPLE, True), (BITS, True)],
    ids=lambda given: getattr(given, "stem", ""),
)
def test_no_rule_matches_where_none_may(corpus: Path, some: bool):
    with _entered() as (asked, matched):
        for case in cases(corpus):
            optimize(case.exprs, constraints=case.constraints, gates=case.gates, budget=Budget(seconds=20))
    assert (False in asked) is some
    assert not matched


@settings(max_examples=300)
@given(expressions())
def test_no_rule_matches_random_terms_where_none_may(case):
    term, _ = case
    with _entered() as (_, matched):
        optimize(term, budget=Budget(seconds=5))
    assert not matched


#: A left side, its guard, what it is asked of, with x in [0, 9], y in [-4, 12] and p a condition, and whether it may.
ASKED = [
    ("x // d", "vmax(x) < 2*d", "x // 5", True),
    ("x // d", "vmax(x) < 2*d", "x // 4", False),
    ("x // y", "vmax(y) == vmin(y) + 1", "y // (3 + q)", True),
    ("x // y", "vmax(y) == vmin(y) + 1", "y // (x + 1)", False),
    # either way in which a guard may hold is enough
    ("x % d", "d == 3 or vmin(x) < 0", "y % 5", True),
    ("x % d", "d == 3 or vmin(x) < 0", "x % 5", False),
    # each member at the top, with the others kept
    ("min(x, c)", "c == 7 and vmin(x) < 0", "min(x, y, 7)", True),
    ("min(x, c)", "c == 7 and vmin(x) < 0", "min(x, 7)", False),
    # a letter that takes several members is not known
    ("max(min(x, y), c)", "c == 2", "max(min(x, y, z), 2)", True),
    ("max(min(x, y), c)", "c == 2", "max(min(x, y, z), 3)", False),
    ("x * c", "c == 3 and vmin(x) < 0", "x*4 + y*3 + min(z, 7)", True),
    ("x * c", "c == 4 and vmin(x) < 0", "x*4 + y*3 + min(z, 7)", False),
    ("min(x*c, y)", "c < 0", "min(x*-2, y)", True),
    ("min(x*c, y)", "c < 0", "min(x*2, y)", False),
    # one factor for the whole sum
    ("x//n - y//n", "", "x//3*5 - y//3*5", True),
    ("x//n - y//n", "", "x//3*5 + y//3*5", False),
    ("(x // n)*c + x*k", "c + n*k == 1", "x//3*-2 + x", True),
    ("(x // n)*c + x*k", "c + n*k == 2", "x//3*-2 + x", False),
    ("(x // n)*c + x*k", "", "x//3*-2 + y", False),
    ("(x + c) // d", "c == d - 1", "(x*2 + y + 4) // 5", True),
    ("(x + c) // d", "c == d - 1", "(x*2 + y + 3) // 5", False),
    ("min(x + 3, y)", "", "min(x + 3, y*y)", True),
    ("min(x + 3, y)", "", "min(x + 4, y*y)", False),
    ("where(x < c, y, z)", "c == 5", "where(x < 5, y, z)", True),
    ("where(x < c, y, z)", "c == 5", "where(x < 6, y, z)", False),
    # egglog has y <= x as not x < y
    ("y <= x", "vmax(y) == 9", "z*z <= x*x", False),
    ("y <= x", "vmax(y) == 81", "x*x <= z*z", True),
    # what is asked of a difference has no number here
    ("x // d", "gcd(x, d) == d", "x*y // 5", True),
    ("x // d", "modulus(x) == 3 and d == 5", "(x*y)//5", False),
    ("x // d", "d % (d - 5) == 0", "(x*y)//5", False),
    # every number divides 0, but its factor is 1
    ("where(p, x, y)", "4 % factor(y) == 0", "where(x < 3, x, 0)", True),
    ("where(p, x, y)", "4 % factor(y) == 1", "where(x < 3, x, 0)", False),
]


@pytest.mark.parametrize(("left", "guard", "text", "may"), ASKED)
def test_what_may_match(left: str, guard: str, text: str, may: bool):
    right = "False" if "<" in left and "where" not in left else "0"
    rule = Rule("asked", left, right, guard, why="for its left side", check=False)
    sides = [Prefilter(*needed) for needed in needed_by(rule)]
    answers = []
    may_match = Tables.may_match

    def noted(tables: Tables) -> bool:
        answers.append(tables._given.may_match(sides, tables.shapes.found))
        return may_match(tables)

    with patch.object(Tables, "may_match", noted):
        optimize(text, x=(0, 9), y=(-4, 12), z=(0, 20), q=(0, 1))
    assert answers
    assert answers[0] is may


def test_classes_that_have_a_node_in_common_are_one():
    rows = Given()
    rows.add(Kind.ATOM, 0, 0, 9, 1)
    rows.add("floordiv", 1, 0, 2)
    assert rows.is_apart
    rows.add("floordiv", 3, 0, 2)
    assert not rows.is_apart
    # a rule may match what they have together
    assert rows.may_match([], set())


@pytest.mark.parametrize(("op", "is_apart"), [("min", False), ("and", False), ("mul", True), ("bitxor", True)])
def test_the_minimum_of_one_value_is_that_value(op: str, is_apart: bool):
    rows = Given()
    rows.add_container(op, 1, [0, 0])
    assert rows.is_apart is is_apart


@pytest.mark.parametrize(("op", "is_apart"), [("min", False), ("and", False), ("mul", True), ("bitxor", True)])
def test_a_member_that_stands_twice_makes_no_other_node(op: str, is_apart: bool):
    rows = Given()
    rows.add_container(op, 1, [0, 2])
    rows.add_container(op, 3, [0, 2, 0])
    assert rows.is_apart is is_apart


def test_many_rows_are_not_looked_at():
    rows = Given()
    for c in range(MOST_ROWS):
        rows.add(Kind.ATOM, c, 0, 9, 1)
    assert not rows.may_match([], set())
    rows.add(Kind.ATOM, MOST_ROWS, 0, 9, 1)
    assert rows.may_match([], set())


def test_egglog_does_not_start_where_no_rule_may_match(monkeypatch):
    monkeypatch.setattr("eqsat.egraph.tables.WarmProgram", None)
    monkeypatch.setattr("eqsat.optimizer.saturation._free_tables", lambda rules: [])
    result = optimize("min(x, 7) + y", x=(0, 90), y=(-5, 9))
    assert (str(result.expr), result.trace.not_entered, result.stop) == ("y + min(7, x)", NO_MATCH, "saturated")
    with pytest.raises(TypeError):
        optimize("min(x, 7) + y%3 + y//3*3", x=(6, 8), y=(-5, 9))
