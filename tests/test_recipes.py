"""The recipes of docs/architecture.md: those that are no doctests, as rules and cost models are."""

import ast
import os
import re
import sys
from pathlib import Path

from peers.session import DRIVERS, Session
from peers.spelling import from_nodes, to_request

from eqsat import optimize
from eqsat.cli.cases import Case
from eqsat.lang.expr import _OP_KEYS, Expr, make, var
from eqsat.lang.ops import OPS, Op
from eqsat.lang.text import parse
from eqsat.prove.verify import prove_equal

ROOT = Path(__file__).parent.parent
NAMES = {"x": var("x", 0, 9), "y": var("y", 1, 9)}


def recipe(title: str) -> str:
    """The text below a heading of the page."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    return re.split(r"\n##+ ", text.partition(f"\n### {title}\n")[2])[0]


def named_in(path: Path) -> set[str]:
    """The texts that are literals of a module."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_the_recipe_of_an_operator_lists_every_module_that_names_one() -> None:
    listed = re.findall(r"`(eqsat|[a-z]+(?:\.[a-z_]+)+)`", "".join(re.findall(r"\n(\|[^|]*)\|", recipe("An operator"))))
    paths = [path for folder in ("eqsat", "extract") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).with_suffix("").as_posix() for path in paths if "tmod" in named_in(path)}
    short = {name.removesuffix("/__init__").removeprefix("eqsat/").replace("/", ".") for name in found}
    assert sorted(listed) == sorted(short)


def test_an_operator_may_have_no_more_than_its_row(monkeypatch) -> None:
    monkeypatch.setitem(_OP_KEYS, "dist", 1)
    monkeypatch.setitem(OPS, "dist", Op("dist", "ii", "i", lambda x, y: (0, 99), lambda x, y: abs(x - y)))
    x, y, distance = NAMES["x"], NAMES["y"], make("dist", *NAMES.values())
    assert optimize(make("dist", x + y - y, y)).expr is distance
    assert prove_equal([distance + distance], [distance * 2], methods=["isl"], most=1).kind == "proved"


def test_the_driver_of_the_recipe_runs(tmp_path, monkeypatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", recipe("A peer"), re.DOTALL)
    driver = tmp_path / "mine_driver.py"
    driver.write_text(code)
    # a driver stands beside wire.py
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DRIVERS), os.environ.get("PYTHONPATH", "")]))

    def answer(root: Expr) -> list[Expr]:
        (alternative,) = session.ask(
            to_request(Case("case", NAMES, [], [root]), gates=False, seconds=5)
        ).alternatives.values()
        return from_nodes(alternative["nodes"], alternative["roots"], NAMES)

    with Session([sys.executable, str(driver)]) as session:
        assert session.version == "1.0"
        assert answer(parse("x*1 + y", NAMES)) == [parse("x + y", NAMES)]
        assert answer(parse("x % y - x*y", NAMES)) == [parse("x % y - x*y", NAMES)]
