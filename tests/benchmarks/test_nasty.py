"""Budgets are kept, whatever the input: on a clock of function calls, which runs alike on every machine."""

import sys
import time
from collections.abc import Callable, Iterator

import nasty
import pytest

from eqsat.egraph.budget import Budget

#: What a call of a function takes on this clock, in seconds: about what it takes on a slow machine.
CALL = 2e-6
SECONDS = 0.1
#: Rules alone are mostly egglog's time, which makes no calls. Of the others to read the input, or to write the answer,
#: takes longer than so short a budget: the benchmark gives them more.
NOT_COUNTED = {
    *[
        "rules alone, 100 roots",
        "rules alone, nested",
        "rules alone, 50,000 negations",
        "greedy, deep",
        "greedy, 300 terms",
        "minima of products",
    ],
    *["20,000 nested remainders", "text of 30,000 characters", "map of minima", "address of 300 operations"],
    *["300 stores", "60 selected elements"],
}


@pytest.fixture(scope="module")
def warm() -> None:
    nasty.warm()


@pytest.fixture
def clock(monkeypatch) -> Iterator[Callable[[], float]]:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    monitoring = sys.monitoring
    tool = next(n for n in range(6) if monitoring.get_tool(n) is None)
    monitoring.use_tool_id(tool, "clock of calls")
    monitoring.register_callback(tool, monitoring.events.PY_START, count)
    monitoring.set_events(tool, monitoring.events.PY_START)
    monkeypatch.setattr(time, "perf_counter", lambda: calls * CALL)
    yield lambda: calls * CALL
    monitoring.free_tool_id(tool)


@pytest.mark.parametrize("name", [name for name in nasty.NASTY if name not in NOT_COUNTED])
def test_budgets_are_kept(name, warm, clock):
    act = nasty.NASTY[name]()
    began = clock()
    act(Budget(seconds=SECONDS))
    assert nasty.is_in_time(clock() - began, SECONDS)


def test_what_takes_longer_is_seen(warm, clock):
    began = clock()
    nasty.NASTY["200 coprime moduli"]()(Budget(seconds=1.0))
    assert not nasty.is_in_time(clock() - began, SECONDS)
