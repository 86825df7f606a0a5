"""Rules of one's own on the command line, and rules left out."""

import json
import re
from io import BytesIO
from pathlib import Path

import pytest

from eqsat.cli.rulesets import LISTED, named, rule_set, rules_of
from eqsat.rules import DEFAULT

MINE = """
from eqsat import Rule, rules
SQUARES = [Rule("difference-of-squares", "x*x - y*y", "(x + y)*(x - y)", why="x*y cancels"), rules.DEFAULT[0]]
TWICE = Rule("twice-the-same", "x*x + x*x", "x*x*2")
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return str(path)


def test_rules_of_a_file(mine, tmp_path):
    assert [rule.name for rule in rules_of(mine)] == ["difference-of-squares", DEFAULT[0].name, "twice-the-same"]
    assert rule_set() is None
    assert len(rule_set([mine])) == len(DEFAULT) + 2
    assert len(rule_set([mine], ["twice-*", DEFAULT[3].name])) == len(DEFAULT)
    with pytest.raises(ValueError, match=r"no rule is named 'mod-cor'; did you mean 'mod-core'\?"):
        named(DEFAULT, ["mod-cor"])
    with pytest.raises(ValueError, match=r"no rule is named 'divmd'; did you mean 'divmod'\?"):
        named(DEFAULT, ["divmd"])
    none = tmp_path / "none.py"
    none.write_text("x = 3")
    with pytest.raises(ValueError, match=r"none\.py defines no rule: assign eqsat\.Rule objects"):
        rules_of(none)


@pytest.mark.parametrize("family", LISTED)
def test_a_family_is_listed_by_its_name(eqsat, family):
    code, out, _ = eqsat("rules", family)
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, [rule.name for rule in LISTED[family]])


def test_optimize_takes_rules(eqsat, mine):
    asked = ["optimize", "i*i - j*j", "--range", "i=9", "--range", "j=9"]
    assert eqsat(*asked)[1] == "i*i - j*j\n"
    code, out, _ = eqsat(*asked, "--rules", mine)
    assert (code, out) == (0, "(i - j)*(j + i)\n")
    assert eqsat(*asked, "--rules", mine, "--without", "difference*")[1] == "i*i - j*j\n"
    code, _, err = eqsat(*asked, "--rules", "nowhere.py")
    assert (code, err.endswith("nowhere.py: No such file or directory\n")) == (2, True)


def test_corpora_take_rules_and_keep_unknown_divisors(eqsat, mine, tmp_path):
    corpus = tmp_path / "in.jsonl"
    case = {"id": "one", "vars": {"i": [0, 9], "j": [0, 9]}, "exprs": ["i*i - j*j", "(i + 0)//j"]}
    corpus.write_text(json.dumps(case))
    assert "error" in json.loads(eqsat("corpus", str(corpus))[1])
    row = json.loads(eqsat("corpus", str(corpus), "--rules", mine, "--unknown-divisors", "keep")[1])
    assert row["cost"] < row["cost_before"]
    assert row["out"][1] == "i//j"
    code, _, err = eqsat("corpus", str(corpus), "--without", "nosuch")
    assert (code, err) == (2, "eqsat: no rule is named 'nosuch': eqsat rules lists them\n")


def test_gates_unknown_divisors_and_standard_input(eqsat, monkeypatch):
    ranges = ["--var", "x=0:9", "--var", "d=0:9"]
    assert eqsat("optimize", "x % 4", "x + 0", *ranges, "--gate", "x < 4", "--gate", "-")[1] == "x\nx\n"
    assert eqsat("optimize", "(x + 0) // d", *ranges, "--unknown-divisors", "keep")[1] == "x//d\n"
    monkeypatch.setattr("eqsat.cli.files.standard_input", lambda: BytesIO(b"\xef\xbb\xbfx*2 // 2\n\n d - d\n"))
    assert eqsat("optimize", "-", *ranges)[:2] == (0, "x\n0\n")


def test_one_rule_in_detail(eqsat, mine):
    code, out, _ = eqsat("rules", "mod-core")
    assert code == 0
    assert dict(line.split(maxsplit=1) for line in out.splitlines()) == {
        "rule": "mod-core  (divmod)",
        "rewrites": "x % n + (x // n)*n -> x",
        "guard": "none",
        "why": "x = (x//n)*n + x%n",
        "source": DEFAULT[[rule.name for rule in DEFAULT].index("mod-core")].source,
        "example": "with n = 2, x = 2 both sides are 2",
    }
    (row,) = json.loads(eqsat("rules", "twice-the-same", "--rules", mine, "--prove", "--json")[1])
    assert (row["family"], row["proof"]) == (None, ["symbolic"])
    names = [line.split()[0] for line in eqsat("rules", "where-t*", "mod-core")[1].splitlines()]
    assert {"mod-core", "where-true"} < set(names)
    assert all(name.startswith(("mod-core", "where-t")) for name in names)


def test_where_a_rule_matches(eqsat, tmp_path):
    corpus = tmp_path / "in.jsonl"
    cases = {
        "mask": "where(x < 3, y, y + 2)//2",
        "plain": "x + y",
        "both": "where(x < 3, 4, 6)//2 + where(y < 2, x, x)",
    }
    rows = [{"id": id, "vars": {"x": [0, 9], "y": [0, 9]}, "exprs": [text]} for id, text in cases.items()]
    nowhere = {**rows[1], "id": "nowhere", "constraints": ["x > 20"]}
    corpus.write_text("".join([json.dumps(row) + "\n" for row in [*rows, {"id": "bad"}, nowhere]]))
    code, out, err = eqsat("rules", "where-pull-div", "--fires", str(corpus))
    assert (code, err.splitlines()) == (
        0,
        [
            "# left out: line 4: the key 'exprs' is missing",
            "# left out: nowhere: the constraints contradict each other: 20 < x",
        ],
    )
    (where,) = [line for line in out.splitlines() if line.startswith("fires")]
    assert re.fullmatch(r"fires     in (1 case|2 cases): mask \(\d+\)(, both \(\d+\))?", where)
    listed = eqsat("rules", "where-pull-div", "bitxor-*", "--fires", str(corpus))[1].splitlines()
    assert sum(line.endswith("; fires in no case") for line in listed) == len(listed) - 1 > 1
    (row,) = json.loads(eqsat("rules", "where-pull-div", "--fires", str(corpus), "--json")[1])
    assert row["fires"]["mask"] > 0
    assert "plain" not in row["fires"]


def test_files_of_rules_bring_operators(eqsat, tmp_path):
    rules = str(Path(__file__).parent.parent.parent / "examples" / "operators.py")
    assert eqsat("optimize", "popcount(x*8)", "--range", "x=9", "--rules", rules)[:2] == (0, "popcount(x)\n")
    corpus = tmp_path / "in.jsonl"
    corpus.write_text(json.dumps({"vars": {"x": [0, 9]}, "exprs": ["popcount(x*8)"]}))
    assert json.loads(eqsat("corpus", str(corpus), "--rules", rules)[1])["out"] == ["popcount(x)"]


def test_operators_of_a_file_are_known_before_the_expressions_are_read(eqsat, tmp_path):
    mine = tmp_path / "odd.py"
    mine.write_text(
        "from eqsat import Rule, operator\n"
        'operator("cli_odd", 1, lambda x: x % 2, bounds=lambda x: (0, 1), price=2)\n'
        'LAW = Rule("odd-of-twice", "cli_odd(x*2)", "0")\n'
    )
    assert eqsat("optimize", "cli_odd(x*2)", "--range", "x=9", "--rules", str(mine))[:2] == (0, "0\n")
