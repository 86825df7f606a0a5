"""When egglog reads rules."""

import pytest

from eqsat import optimize
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
