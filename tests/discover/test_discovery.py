"""Discovery: laws that are left out are found again, as files of rules."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest

from eqsat.cli.rulesets import rules_of
from eqsat.discover.discovery import Case, discover, to_file
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, var
from eqsat.lang.text import parse
from eqsat.prove.proof import prove_rule
from eqsat.rules import DEFAULT, FAMILIES

NAMES: dict[str, Expr] = {name: var(name, 0, 999) for name in "ij"}

#: A family that is left out, and a corpus that needs it.
LEFT_OUT = [
    ("divmod", ["i%7 + i//7*7", "(i//3%5)*3 + i%3 + j", "j%9 + j//9*9 + i"]),
    ("division", ["i//3//5", "j//7//2 + i", "i%24//6"]),
    ("ranges", ["(i*16 + j%16)//16", "(j*12 + i)%12", "i%2000"]),
]


@pytest.mark.parametrize(("family", "texts"), LEFT_OUT)
def test_a_family_is_found_again(family: str, texts: list[str], tmp_path: Path) -> None:
    cases = [Case((parse(text, NAMES),)) for text in texts]
    rest = [rule for rule in DEFAULT if rule not in FAMILIES[family]]
    whole = discover(cases, DEFAULT, theory=False, seconds=0.0)
    found = discover(cases, rest, theory=False, seconds=20.0)
    single = [discover([case], rest, theory=False, seconds=0.0).before for case in cases]
    assert found.before == sum(single) > whole.before
    assert found.before - found.after >= 0.8 * (found.before - whole.before)
    assert sum(each.needed for each in found.rules) > 0
    for each in found.rules:
        others = [other.rule for other in found.rules if other is not each]
        costs = [discover([case], [*rest, each.rule], theory=False, seconds=0.0).before for case in cases]
        assert each.alone == found.before - sum(costs)
        assert each.cases == sum(map(operator.lt, costs, single))
        assert each.needed == discover(cases, [*rest, *others], theory=False, seconds=0.0).before - found.after
    path = tmp_path / "found.py"
    path.write_text(to_file(found))
    assert [rule.name for rule in rules_of(path)] == [each.rule.name for each in found.rules]
    for rule in rules_of(path):
        assert prove_rule(rule).kinds


def test_what_is_found_is_not_called_as_a_rule_that_is_there() -> None:
    there = [Rule("found-1", "x*x - y*y", "(x + y)*(x - y)"), Rule("found-3", "x*x - y*y*4", "(x + y*2)*(x - y*2)")]
    found = discover([Case((parse("i//3//5", NAMES),))], there, theory=False, seconds=10.0)
    assert [each.rule.name for each in found.rules] == ["found-2"]


def test_what_the_rules_derive_is_not_found() -> None:
    found = discover([Case((parse("i//3//5", NAMES),))], DEFAULT, theory=False, seconds=5.0)
    assert (found.rules, found.after) == ((), found.before)
