"""The run of one expression, as docs/architecture.md tells it: the modules that it passes, by a tracer."""

import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType

from eqsat import optimize
from eqsat.egraph.rule import Rule
from eqsat.optimizer.result import Result

ROOT = Path(__file__).parent.parent


#: Variables of a name that no run has had: terms in use are found, and not built.
NEW = count()


def example() -> Result:
    """The example of the page, with other names."""
    i, j = [f"{name}_{next(NEW)}" for name in "ij"]
    return optimize(f"({i}*32 + {j}) // 32", **{i: (0, 63), j: (0, 31)})


def longer() -> Result:
    """An expression of the page of which something is left to compute, with other names."""
    i, j = [f"{name}_{next(NEW)}" for name in "ij"]
    return optimize(f"({i}*32 + {j}) // 32 + {j}*3", **{i: (0, 63), j: (0, 31)})


def passed(run: Callable[[], object]) -> list[str]:
    """The modules of which ``run`` enters a function, by the first time; what dataclasses generate is not counted."""
    found: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("eqsat.") and frame.f_code.co_filename != "<string>":
            found[module.removeprefix("eqsat.")] = None

    tracer = sys.getprofile()
    sys.setprofile(enter)
    try:
        run()
    finally:
        sys.setprofile(tracer)
    return list(found)


def told() -> tuple[list[str], list[str]]:
    """The modules in the two columns of the table of the page: of the example, and what the longer one adds."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("### The modules that it passes")[2].partition("## How to add")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ") and "`" in line]
    columns = ["".join(column) for column in zip(*rows, strict=True)]
    return tuple(re.findall(r"`([a-z_.]+)`", column) for column in columns[1:])


def test_the_page_lists_the_modules_that_the_example_passes():
    # what a first run compiles is kept, and so is a session of egglog that another run has started
    assert str(example().expr).startswith("i_")
    longer()
    optimize("x // 3 + (x + 1) // 3", x=(0, 63))
    listed, more = told()
    assert len({*listed, *more}) == len(listed) + len(more)
    assert sorted(listed) == sorted(passed(example))
    assert sorted([*listed, *more]) == sorted(passed(longer))


def test_the_steps_are_in_the_order_of_the_page():
    longer()
    order = passed(longer)
    named = (ROOT / "docs" / "architecture.md").read_text().partition("## The run of one expression")[2]
    doors = ["lang.text", "theory.linear", "alternatives.builder", "optimizer.saturation", "alternatives.choosing"]
    assert sorted(doors, key=order.index) == doors
    assert sorted(doors, key=lambda name: named.index(f"{name}")) == doors


def test_the_tracer_sees_what_is_entered():
    assert passed(lambda: Rule("double", "x + x", "x*2"))[0] == "egraph.rule"
    assert "theory.structural" in passed(lambda: optimize("x // n + x % n", x=(0, 9), n=(1, 9), theory=False))
