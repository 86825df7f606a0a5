"""The comparison with other simplifiers, without any of them: a toy driver, tables, messages."""

import subprocess
import sys
from pathlib import Path

import pytest
from peers import PEERS
from peers.environment import UnavailableError, environment
from peers.judge import Examiner
from peers.session import DRIVERS, Reply, Session
from peers.spelling import from_nodes, to_nodes, to_request

from eqsat.cli.cases import Case, read_case
from eqsat.lang.expr import var
from eqsat.lang.functions import where
from eqsat.lang.text import parse

TOY = [sys.executable, str(Path(__file__).parent / "toy_driver.py")]
X, Y = var("x", -20, 20), var("y", 1, 9)
NAMES = {"x": X, "y": Y, "late": var("late", 0, 9)}


def case(text: str, name: str = "x") -> Case:
    return Case("case", {name: var(name, 0, 9), "y": Y}, [], [parse(text, {name: var(name, 0, 9), "y": Y})])


@pytest.fixture(scope="module")
def toy():
    with Session(TOY) as session:
        yield session


TEXTS = [
    "x",
    "7",
    "x % 3 + x // 4 * 2",
    "tdiv(x, 3) - tmod(x, y)",
    "where(x < 3 and not (y <= 2 or x == y), min(x, y), max(x, 4))",
    "x != y",
    "-(x + y)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_terms_survive_the_way_to_a_driver_and_back(toy, text):
    root = parse(text, NAMES)
    asked = Case("case", NAMES, [], [root, root])
    alternative = toy.ask(to_request(asked, gates=False, seconds=5)).alternatives["same"]
    assert from_nodes(alternative["nodes"], alternative["roots"], NAMES) == [root, root]


def test_a_deep_term_survives_too(toy):
    root = X
    for number in range(5000):
        root = where(root < number, Y, root)
    alternative = toy.ask(to_request(Case("case", NAMES, [], [root]), gates=False, seconds=5)).alternatives["same"]
    assert from_nodes(alternative["nodes"], alternative["roots"], NAMES) == [root]


@pytest.mark.parametrize(
    ("answer", "priced"),
    [
        ("x + y*-8", "x - y*8"),
        ("x*-8 + y", "y - x*8"),
        ("x + -3", "x - 3"),
        ("x*-1", "-x"),
        ("1*x", "x"),
        ("0 - x", "-x"),
        ("x - -3*y", "x + y*3"),
        ("-(-x)", "x"),
        ("-x < -3", "3 < x"),
        ("not x < y", "y <= x"),
        ("(x < y) != True", "y <= x"),
        ("(x < y) == True", "x < y"),
        ("not (not x < y)", "x < y"),
        ("not x == y", "x != y"),
        ("max(-1 - x, -1 - y)", "-1 - min(x, y)"),
        ("where(x < y, True, False)", "x < y"),
        ("x % -3 + x*8", "x % -3 + x*8"),
    ],
)
def test_a_peer_is_not_charged_for_operators_that_it_lacks(answer, priced):
    nodes, index = to_nodes([parse(answer, NAMES)])
    assert from_nodes(nodes, [index[parse(answer, NAMES)]], NAMES) == [parse(priced, NAMES)]


@pytest.mark.parametrize("operator", ["ult", "ule", "word", "wrap"])
@pytest.mark.parametrize("low", [-20, -3, 0])
@pytest.mark.parametrize("right", [["const", -2], ["const", 8], ["var", "x"], ["var", "y"]])
def test_operators_on_words_mean_what_they_do_on_8_bits(operator, low, right):
    names = {**NAMES, "n": var("n", low, 30)}
    if operator in ("word", "wrap"):
        right = ["const", 16]
    [root] = from_nodes([["var", "n"], right, [operator, 0, 1]], [2], names)
    meaning = {
        "ult": lambda n, m: n % 256 < m % 256,
        "ule": lambda n, m: n % 256 <= m % 256,
        "word": lambda n, m: n % 16,
        "wrap": lambda n, m: (n + 8) % 16 - 8,
    }[operator]
    for n in range(low, 31):
        for m in [right[1]] if right[0] == "const" else range(names[right[1]].vmin, names[right[1]].vmax + 1):
            assert root.evaluate({"n": n, "x": m, "y": m}) == meaning(n, m), (n, m)


def test_gates_and_constraints_are_told():
    line = '{"vars": {"x": [0, 9]}, "exprs": ["x // 2", "x < 4"], "gates": [1, null], "constraints": ["x != 3"]}'
    told = to_request(read_case(line), gates=True, seconds=1)
    untold = to_request(read_case(line), gates=False, seconds=1)
    assert [told["nodes"][gate] if gate else None for gate in told["gates"]] == [["lt", 0, 3], None]
    assert untold["gates"] == [None, None]
    assert [told["nodes"][fact][0] for fact in told["constraints"]] == ["ne"]


@pytest.mark.parametrize(
    ("name", "modes", "error"),
    [
        ("x", {"same"}, ""),
        ("raises", {"same"}, "ValueError: it raised"),
        ("dies", {"same"}, "the driver died (exit code 3)"),
        ("late", {"same"}, "stopped after 0.1 seconds"),
    ],
)
def test_what_a_driver_said_before_it_failed_counts_and_the_next_case_is_answered(toy, name, modes, error):
    reply = toy.ask(to_request(case(f"{name} // 2", name), gates=False, seconds=0.1))
    assert (set(reply.alternatives), reply.error) == (modes, error)
    assert toy.ask(to_request(case("x // 2"), gates=False, seconds=1)).error == ""


def test_a_driver_that_does_not_come_back_is_stopped_by_its_cpu_time():
    with Session(TOY, grace=0) as session:
        reply = session.ask(to_request(case("loops // 2", "loops"), gates=False, seconds=0.1))
    assert set(reply.alternatives) == {"same"}
    assert reply.error == "stopped after 0.1 seconds"


def test_a_driver_that_does_not_start_says_why():
    with pytest.raises(UnavailableError, match="the peer is not there"), Session([*TOY, "silent"]):
        pass


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(monkeypatch, tmp_path):
    failed = subprocess.CompletedProcess([], 1, "", "trying\nERROR: No matching distribution found for nothing\nbye\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(UnavailableError, match=r"^some cannot be installed: ERROR: No matching distribution found"):
        environment("some", ("nothing",), tmp_path)


@pytest.mark.parametrize(("requirements", "built_by"), [(("one",), ["venv", "pip"]), ((), ["venv"])])
def test_the_environment_is_built_once(monkeypatch, tmp_path, requirements, built_by):
    commands = []

    def run(command, **kwargs):
        commands.append(command[1:4])
        (tmp_path / command[-1]).mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert environment("some", requirements, tmp_path) == environment("some", requirements, tmp_path)
    assert [command[1] for command in commands] == built_by


def test_every_peer_has_a_driver():
    assert [name for name in PEERS if not (DRIVERS / f"{name}_driver.py").exists()] == []


def test_a_wrong_alternative_is_reported_and_does_not_win(toy):
    asked = case("zero*2 + 1", "zero")
    answer = Examiner(asked, False).judge(toy.ask(to_request(asked, gates=False, seconds=5)))
    assert answer.exprs == asked.exprs
    assert answer.mode == "same"
    assert list(answer.wrong) == ["zero"]


def test_an_alternative_may_differ_where_the_gate_does_not_hold(toy):
    line = '{"vars": {"zero": [0, 9]}, "exprs": ["zero // 4 * 4", "zero < 4"], "gates": [1, null]}'
    asked = read_case(line)
    nodes = [["const", 0], ["var", "zero"], ["const", 4], ["lt", 1, 2]]
    reply = Reply({"zero": {"nodes": nodes, "roots": [0, 3], "ms": 1.0}})
    assert Examiner(asked, True).judge(reply).wrong == {}
    assert Examiner(asked, False).judge(reply).wrong == {"zero": {"zero": 4}}


def test_the_cheapest_of_each_root_may_come_from_different_modes():
    asked = Case("case", NAMES, [], [X * 3 % 3, Y * 5 // 5])
    nodes, index = to_nodes([*asked.exprs, Y, X * 0])
    zero = {"nodes": [*nodes, ["const", 0]], "roots": [len(nodes), index[asked.exprs[1]]]}
    right = {"nodes": nodes, "roots": [index[asked.exprs[0]], index[Y]]}
    answer = Examiner(asked, False).judge(Reply({"first": zero, "second": right}))
    assert (answer.mode, answer.cost, [str(root) for root in answer.exprs]) == ("mixed", 0, ["0", "y"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(error="stopped after 1 seconds"), "stopped after 1 seconds"),
        (
            Reply({"m": {"nodes": [["var", "w"]], "roots": [0]}}),
            "m: the answer has a variable 'w' that the case has not",
        ),
        (Reply({"m": {"nodes": [["const", 1], ["not", 0]], "roots": [1]}}), "m: not needs a condition where '1' is"),
    ],
)
def test_a_peer_without_an_answer_leaves_the_case_as_it_was(reply, error):
    answer = Examiner(case("x // 2"), False).judge(reply)
    assert answer.exprs == case("x // 2").exprs
    assert answer.mode == "none"
    assert answer.error.startswith(error)
