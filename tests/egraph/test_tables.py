"""When egglog reads rules, and what it knows without any."""

from itertools import combinations

import pytest

from eqsat import optimize
from eqsat.egraph.program import Kind, of_length
from eqsat.egraph.tables import Tables, read_all_rules


@pytest.fixture
def session(monkeypatch):
    """The sessions that are opened: none was before."""
    opened = []

    class Opened(Tables):
        def __init__(self, *args):
            super().__init__(*args)
            opened.append(self)

    monkeypatch.setattr("eqsat.optimizer.saturation._free_tables", lambda rules: opened)
    monkeypatch.setattr("eqsat.optimizer.saturation.Tables", Opened)
    return opened


NEEDS_SELECTIONS = "where(x < 5, where(y < 3, x, 2), 2) // 4"
RANGES = {"x": (0, 39), "y": (0, 19)}


def read(session: list[Tables]) -> set[str]:
    """The rules that egglog has read."""
    return {way.name for way, _ in session[0]._ways}


def test_egglog_reads_a_rule_once_it_may_match(session):
    first = optimize("x%7 + x//7*5", **RANGES)
    before = read(session)
    assert "mod-part" in before
    assert "where-merge-and" not in before
    second = optimize(NEEDS_SELECTIONS, **RANGES)
    assert second.rules["where-merge-and"] > 0
    assert before < read(session)
    # what was read before changes no answer
    session.clear()
    assert optimize(NEEDS_SELECTIONS, **RANGES).exprs == second.exprs
    assert optimize("x%7 + x//7*5", **RANGES).exprs == first.exprs


def test_all_rules_can_be_read_before_any_input_needs_them(session):
    optimize("x%7 + x//7*5", **RANGES)
    read_all_rules()
    everything = read(session)
    assert "where-merge-and" in everything
    optimize(NEEDS_SELECTIONS, **RANGES)
    assert read(session) == everything


@pytest.mark.parametrize(("known", "branch"), [(Kind.HOLDS, 2), (Kind.FAILS, 3), (Kind.UNKNOWN, None)])
def test_a_condition_that_is_known_selects_its_branch(known: str, branch: int | None):
    tables = Tables([])
    tables.begin()
    tables.add(known, 1)
    for c in (2, 3):
        tables.add(Kind.ATOM, c, 0, 9, 1)
    tables.add("where", 4, 1, 2, 3)
    tables.insert()
    of = {tables.integer(row.inputs[0]): row.output for row in tables.rows()["A"]}
    assert [c for c in (2, 3) if of[c] == of[4]] == ([] if branch is None else [branch])


@pytest.mark.parametrize("op", ["and", "or"])
@pytest.mark.parametrize(("known", "holds"), [(Kind.HOLDS, True), (Kind.FAILS, False), (Kind.UNKNOWN, None)])
def test_a_member_that_is_known_decides_its_junction_or_is_left_out(op: str, known: str, holds: bool | None):
    tables = Tables([])
    tables.begin()
    tables.add(known, 1)
    for c in (2, 3):
        tables.add(Kind.UNKNOWN, c)
    tables.add(of_length(op, 3), 4, 1, 2, 3)
    tables.add(of_length(op, 2), 5, 2, 3)
    tables.add("not", 6, 1)
    tables.insert()
    rows = tables.rows()
    of = {tables.integer(row.inputs[0]): row.output for row in rows["A"]}
    alike = [(c, d) for c, d in combinations(sorted(of), 2) if of[c] == of[d]]
    decides = holds is not None and holds != (op == "and")
    assert alike == ([] if holds is None else [(1, 4)] if decides else [(4, 5)])
    literals = {name: [row.output for row in rows.get(name, ())] for name in ("Yes", "No")}
    assert (of[6] in literals["No" if holds else "Yes"]) == (holds is not None)
