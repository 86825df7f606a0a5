"""The comparison: its runs, figures, order study and report, on fabricated rows and a toy peer."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import bench
import pytest
from comparison import orders
from comparison.greedy_steps import walkthrough
from comparison.plots import draw
from comparison.report import OPENING, Run, headline, html, insert, markdown, table
from comparison.run import Item, Log, compare, read_corpora, sources
from comparison.shuffle import reordered
from comparison.solvers import EQSAT, OURS, ours, peer, start
from comparison.summary import BEST, alone, beaten, families, parts_of, slower, slowest, standing, with_best
from peers import PEERS
from peers.environment import UnavailableError
from peers.judge import Examiner
from peers.session import Session

import eqsat.extract
import eqsat.rules
from eqsat.cli.cases import read_case
from eqsat.extract.cost import Latency
from eqsat.optimizer import optimisation
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT
from eqsat.theory import linear

TOY = [sys.executable, str(Path(__file__).parent / "toy_driver.py")]


def item(*exprs: str, name: str = "case", families: tuple[str, ...] = (), **ranges: list[int]) -> Item:
    return Item("some", 1, families, read_case(json.dumps({"id": name, "vars": ranges, "exprs": exprs})))


def answer(cost: int, ms: float = 1.0, **more) -> dict:
    return {"out": ["x"], "ms": ms, "divmod": cost // 4, "cost": cost, "mode": "some", **more}


def row(name: str, costs: dict[str, int], families: tuple[str, ...] = ()) -> dict:
    """A row in which the solvers take as many milliseconds and nanoseconds as their answers cost."""
    answers = {solver: answer(cost, ms=cost, ns=float(cost)) for solver, cost in costs.items()}
    known = {"corpus": "some", "line": 1, "id": name, "families": families, "nodes": 9}
    return {**known, "before": {"divmod": 9, "cost": 100, "ns": 100.0}, "answers": answers}


ROWS = [
    row("lost", {EQSAT: 8, "greedy": 9, "isl": 4, "tvm": 9}, ("all", "big")),
    row("tied", {EQSAT: 4, "greedy": 4, "isl": 4, "tvm": 8}, ("all", "big")),
    row("won", {EQSAT: 2, "greedy": 6, "isl": 4, "tvm": 3}, ("all", "small")),
]
STUDY = [
    {"order": 0, "costs": {EQSAT: [3, 5], "greedy": [4, 5]}},
    {"order": 1, "costs": {EQSAT: [3, 5], "greedy": [9, 5]}},
]
HEAD = {
    "settings": {"gates": True, "cost": "latency", "seconds": 20.0, "repeats": 3},
    "machine": {"processor": "a processor", "cores": 2, "python": "3.12", "compiler": "a compiler"},
    "versions": {"isl": "1.0"},
    "missing": {"c": "c cannot be installed: no wheel"},
}


def run_of(rows, **more) -> Run:
    return Run(HEAD, rows, "the command", **more)


def test_wins_ties_and_losses_are_eqsats():
    rows = [with_best(found) for found in ROWS]
    found = {
        name: (line.wins, line.ties, line.losses) for name in ("isl", "tvm", BEST) if (line := standing(rows, name))
    }
    assert found == {"isl": (1, 1, 1), "tvm": (3, 0, 0), BEST: (1, 1, 1)}


def test_totals_and_ratios_are_over_eqsats():
    line = standing(ROWS, "tvm")
    assert (line.divisions, line.cost) == (2 + 2 + 0, 20)
    assert (line.median, line.p95, line.total) == (8 / 4, 9 / 8, 20 / 14)
    assert line.speedup == pytest.approx((9 / 8 * 8 / 4 * 3 / 2) ** (1 / 3))
    assert line.compiled == pytest.approx((0.09 * 0.08 * 0.03) ** (1 / 3))


def test_the_best_of_the_peers_takes_the_time_of_all_and_greedy_is_none_of_them():
    assert [with_best(found)["answers"][BEST]["cost"] for found in ROWS] == [4, 4, 3]
    assert [with_best(found)["answers"][BEST]["ms"] for found in ROWS] == [13, 12, 7]


def test_what_was_not_compiled_is_left_out():
    rows = [*ROWS, row("large", {EQSAT: 1, "greedy": 1, "isl": 1, "tvm": 1})]
    del rows[-1]["answers"]["isl"]["ns"]
    assert standing(rows, "isl").compiled == standing(ROWS, "isl").compiled
    assert standing(rows, EQSAT).compiled != standing(ROWS, EQSAT).compiled


def test_cases_where_eqsat_is_not_the_best_and_where_it_alone_is():
    assert [found["id"] for found in beaten(ROWS)] == ["lost"]
    assert [found["id"] for found in alone(ROWS)] == ["won"]


def test_a_slower_answer_counts_beyond_noise():
    close = row("close", {EQSAT: 10, "isl": 10})
    close["answers"][EQSAT]["ns"] = 10.9
    tiny = row("tiny", {EQSAT: 10, "isl": 10})
    tiny["answers"][EQSAT]["ns"], tiny["answers"]["isl"]["ns"] = 0.9, 0.5
    assert [(found["id"], name, ratio) for found, name, ratio in slower([close, tiny, *ROWS])] == [("lost", "isl", 2.0)]


def test_families_are_those_of_some_but_not_all_cases():
    assert {name: len(members) for name, members in families(ROWS, least=1, most=9).items()} == {"big": 2, "small": 1}
    assert list(families(ROWS, least=2, most=9)) == ["big"]
    assert list(families(ROWS, least=1, most=1)) == ["big"]


def test_where_the_time_goes():
    timed = row("one", {EQSAT: 8})
    timed["answers"][EQSAT]["parts"] = {"rules": 2.0, "extraction": 1.0}
    assert parts_of([timed]) == {"rules": 0.25, "extraction": 0.125}
    assert [found["id"] for found in slowest(ROWS, 2)] == ["lost", "tied"]


def test_every_solver_answers_every_case_and_is_measured():
    items = [item("x*4 // 4", x=[0, 9]), item("zero*2 + 1", zero=[0, 9])]
    with Session(TOY) as session:
        solvers = {EQSAT: ours(EQSAT), "greedy": ours("greedy"), "toy": peer(session, seconds=5)}
        rows = list(compare(items, solvers, True, Latency(), repeats=1))
    assert [list(found["answers"]) for found in rows] == [[EQSAT, "greedy", "toy"]] * 2
    assert [found["answers"][EQSAT]["out"] for found in rows] == [["x"], ["zero*2 + 1"]]
    assert [found["answers"]["toy"]["out"] for found in rows] == [["x*4//4"], ["zero*2 + 1"]]
    assert [list(found["answers"]["toy"].get("wrong", ())) for found in rows] == [[], ["zero"]]
    assert rows[0]["before"].items() >= {"divmod": 1, "cost": 2}.items()
    assert all(found["answers"][name]["ns"] > 0 for found in rows for name in solvers)
    # equal answers are one program
    assert rows[1]["answers"][EQSAT]["ns"] == rows[1]["answers"]["toy"]["ns"] == rows[1]["before"]["ns"]


def test_what_needs_more_than_64_bits_is_not_measured():
    [found] = compare([item("x*x*x", x=[0, 2**40])], {EQSAT: ours(EQSAT)}, True, Latency(), repeats=1)
    assert "ns" not in found["answers"][EQSAT]


@pytest.mark.parametrize(
    ("times", "turns"),
    [((10.0, 11.0), [2]), ((11.0, 10.0), [2]), ((11.2, 10.0), [2, 6]), ((0.6, 0.2), [2])],
)
def test_a_peer_that_seems_faster_is_measured_again(monkeypatch, times, turns):
    asked = []

    def measure(rows, repeats, seed, advance):
        asked.append(repeats)
        for found in rows:
            first = dict(zip((EQSAT, "toy"), times, strict=True)).get(found.model, 0.1)
            found.nanoseconds = first if len(asked) == 1 else 10.0

    monkeypatch.setattr("comparison.run.measure", measure)
    with Session(TOY) as session:
        solvers = {EQSAT: ours(EQSAT), "greedy": ours("greedy"), "toy": peer(session, seconds=5)}
        [found] = compare([item("x*4 // 4", x=[0, 9])], solvers, True, Latency(), repeats=2)
    assert asked == turns
    last = times if len(turns) == 1 else (10.0, 10.0)
    assert tuple(found["answers"][name]["ns"] for name in (EQSAT, "toy")) == last


@pytest.mark.parametrize("name", OURS)
def test_every_configuration_answers(name):
    found = ours(name)(Examiner(item("(i*8 + j) // 8", i=[0, 9], j=[0, 7]).case, True))
    assert ([str(root) for root in found.exprs], found.wrong, found.error) == (["i"], {}, "")
    assert list(found.parts) == ["rules", "extraction"]


def test_a_solver_compiles_the_rules_before_its_clock_runs(monkeypatch):
    inputs = []

    def spied(exprs, **options):
        inputs.append(optimize(exprs, **options))
        return inputs[-1]

    monkeypatch.setattr("comparison.solvers.optimize", spied)
    ours(EQSAT)
    assert inputs[0].rounds > 0


def test_a_wrong_answer_of_ours_is_reported_and_does_not_count():
    asked = item("x + 1", x=[0, 9]).case
    found = Examiner(asked, True).answer([asked.variables["x"]], "saturated", 1.0)
    assert (found.exprs, found.wrong) == (asked.exprs, {"saturated": {"x": 0}})


def test_an_interrupted_run_goes_on_after_its_last_whole_row(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    Log(path, HEAD).append(ROWS[0])
    with path.open("a") as stream:
        stream.write('{"id": "half')
    again = Log(path, {**HEAD, "versions": {}})
    assert ([found["id"] for found in again.rows], again.head) == (["lost"], HEAD)
    again.append(ROWS[1])
    assert [found["id"] for found in Log(path, HEAD).rows] == ["lost", "tied"]


def test_a_run_with_other_settings_is_not_mixed_in(tmp_path):
    Log(tmp_path / "rows.jsonl", HEAD)
    with pytest.raises(ValueError, match=r"other settings \(cost\): remove it"):
        Log(tmp_path / "rows.jsonl", {**HEAD, "settings": {**HEAD["settings"], "cost": "opcount"}})


def test_corpora_are_read_sampled_and_tagged(tmp_path):
    path = tmp_path / "some.jsonl"
    cases = [{"id": str(n), "vars": {"x": [0, n]}, "exprs": ["x // 2"], "tags": ["even"][n % 2 :]} for n in range(9)]
    cases.append({"id": "other", "kind": "indexing", "map": "(d0) -> (d0)"})
    cases.append({"id": "loop", "kind": "reduce", "vars": {}, "before": "sum(f(r), r, 0, 9)"})
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    items = read_corpora([path], None, 0)
    assert [(found.key, found.families) for found in items[:2]] == [
        (("some", 1), ("some", "even")),
        (("some", 2), ("some",)),
    ]
    assert len(items) == 9
    assert [found.case.id for found in read_corpora([path], None, 0, ["reduce"])] == ["loop"]
    samples = [[found.case.id for found in read_corpora([path], 4, seed)] for seed in (1, 1, 3)]
    assert [len(sample) for sample in samples] == [4, 4, 4]
    assert samples[0] == samples[1] != samples[2]
    path.write_text('{"vars": {}, "exprs": ["1"]}\n\n[]\n')
    with pytest.raises(ValueError, match=r"some\.jsonl, line 3: not a case"):
        read_corpora([path], None, 0)
    path.write_text("")
    with pytest.raises(ValueError, match="no plain case"):
        read_corpora([path], None, 0)


def test_a_peer_that_cannot_be_had_is_named_with_the_reason(monkeypatch, tmp_path):
    def refuse(*arguments):
        raise UnavailableError("isl cannot be installed: no wheel")

    monkeypatch.setattr(type(PEERS["isl"]), "session", refuse)
    announced = []
    found = start(["isl"], {}, tmp_path, ExitStack(), announced.append)
    assert (found, announced) == (({}, {"isl": "isl cannot be installed: no wheel"}), ["isl"])


def test_the_study_finds_what_depends_on_the_order():
    assert orders.summary(STUDY) == {
        EQSAT: {"kernels": 2, "vary": 0, "least": 8, "given": 8, "most": 8, "orders": [8, 8]},
        "greedy": {"kernels": 2, "vary": 1, "least": 9, "given": 9, "most": 14, "orders": [9, 14]},
    }


def test_the_study_asks_both_engines_in_each_order():
    kernels = [item("(8*x + 15*y) // 8", x=[0, 99], y=[0, 99])]
    found = list(orders.study(kernels, range(2), True, Latency()))
    assert [line["order"] for line in found] == [0, 1]
    assert {cost for line in found for cost in line["costs"][EQSAT]} == {found[0]["costs"][EQSAT][0]}
    assert all(cost >= found[0]["costs"][EQSAT][0] for line in found for cost in line["costs"]["greedy"])


def test_rules_in_another_order_are_the_same_rules():
    assert orders.rules_in_order(0) == DEFAULT
    assert orders.rules_in_order(3) == orders.rules_in_order(3) != orders.rules_in_order(4)
    sides = {(rule.name, frozenset({rule.left, rule.right})) for rule in DEFAULT}
    assert {(rule.name, frozenset({rule.left, rule.right})) for rule in orders.rules_in_order(3)} == sides


def test_a_reordered_case_keeps_each_gate_with_its_root():
    line = '{"vars": {"x": [0, 9]}, "exprs": ["x % 4 + 1", "x < 4", "x % 8"], "gates": [1, null, null]}'
    case = read_case(line)
    for seed in range(6):
        found = reordered(case, seed)
        place = next(at for at, gate in enumerate(found.gates) if gate is not None)
        assert check_equal([case.exprs[0]], [found.exprs[place]]).equal


@pytest.fixture(scope="module")
def walk():
    return walkthrough(item("(8*x + 15*y) // 8", x=[-50, 50], y=[-50, 50]), Latency())


def test_a_step_that_loses_the_best_answer_is_found(walk):
    assert [step.rule.name for step in walk.lost] == ["div-multiple"]
    assert walk.best.cost < walk.cost <= walk.worst.cost
    assert walk.saturated_cost <= walk.best.cost
    for step in walk.steps:
        assert check_equal(walk.item.case.exprs, step.roots).equal


def test_the_headline_has_a_line_for_each_solver_and_the_best():
    lines = [line.split(" | ") for line in headline(run_of(ROWS)).splitlines()[2:]]
    assert [line[0] for line in lines] == ["| input", "| **eqsat**", "| greedy", "| isl 1.0", "| tvm", f"| {BEST}"]
    assert lines[3][1:6] == ["3", "12", "1", "1", "1"]
    assert lines[0][9:11] == ["1.000", "25.000"]


def test_a_short_headline_has_no_variants_of_eqsat_and_fewer_columns():
    rows = [row(name, {EQSAT: 3, "eqsat tree": 3, "greedy": 4, "isl": 5}) for name in ("one", "two")]
    whole, short = headline(run_of(rows)).splitlines(), headline(run_of(rows), short=True).splitlines()
    assert [len(line.split(" | ")) for line in whole] == [13, 1, *[13] * 6]
    assert [len(line.split(" | ")) for line in short] == [11, 1, *[11] * 5]
    rows = ["| input", "| **eqsat**", "| greedy", "| isl 1.0", f"| {BEST}"]
    assert [line.split(" | ")[0] for line in short[2:]] == rows


SECTIONS = [
    ("## Result", 0),
    ("Not compared: c cannot be installed: no wheel", 0),
    ("On 1 of 3 cases (33.3%) some peer's answer costs less", 0),
    ("On 1 of 3 cases (33.3%) every peer's answer costs more", 0),
    ("| `lost` | isl | 2.00 | 8 | 4 |", 0),
    ("a processor, 2 cores, Python 3.12, a compiler", 0),
    ("| greedy | 1 | 9 | 9 | 14 | 9 to 14 |", 1),
    ("div-multiple", 1),
]


@pytest.mark.parametrize(("text", "needs_studies"), SECTIONS)
def test_the_report_says(text, needs_studies, walk):
    whole = markdown(run_of(ROWS, orders=STUDY, walkthroughs=[walk]), {})
    without = markdown(run_of(ROWS), {})
    assert text in whole
    assert (text in without) is not bool(needs_studies)


def test_a_report_of_cases_that_no_peer_wins():
    kept = [found for found in ROWS if found["id"] != "lost"]
    assert "Of 2 cases there is none on which some peer's answer costs less." in markdown(run_of(kept), {})


def test_a_report_without_peers_and_compiled_code():
    rows = [row(name, {EQSAT: 3, "greedy": 4}) for name in ("one", "two")]
    for found in rows:
        for answered in [found["before"], *found["answers"].values()]:
            del answered["ns"]
    text = markdown(run_of(rows), {})
    assert "## Compiled" not in text
    assert "not the best" not in text


def test_the_page_holds_its_plots(tmp_path):
    plots = draw(ROWS, STUDY, tmp_path)
    assert set(plots) == {"cost", "time", "compiled", "orders"}
    page = html(markdown(run_of(ROWS, orders=STUDY), {name: path.name for name, path in plots.items()}), tmp_path)
    assert page.count('src="data:image/png;base64,') == 4
    assert ".png" not in page
    assert "<table>" in page


def test_bars_in_terms_do_not_break_tables():
    assert table(["a"], [["x | y"]]).splitlines()[-1] == "| x \\| y |"


def test_the_headline_replaces_the_old_one_in_another_file():
    text = f"before {OPENING} old <!-- /comparison --> after"
    assert insert(insert(text, "new"), "newer") == f"before {OPENING}\nnewer\n<!-- /comparison --> after"
    with pytest.raises(ValueError, match="no place for the headline"):
        insert("before", "new")


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs the command on a small corpus in ``tmp_path``, without peers."""
    corpus = tmp_path / "small.jsonl"
    sums = [" + ".join(f"x % {divisor}" for divisor in range(2, 9))]
    lines = [{"id": f"case{n}", "vars": {"x": [0, 99]}, "exprs": [f"x*{n} // {n}", *sums * (n > 3)]} for n in (2, 3, 4)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(*options: str) -> bool:
        fixed = ["--peers", "", "--ours", "eqsat,greedy", "--repeats", "0", "--orders", "1"]
        monkeypatch.setattr(sys, "argv", ["bench.py", str(corpus), "-o", str(tmp_path / "out"), *fixed, *options])
        return bench.main(bench.parse())

    return run


def test_the_command_writes_rows_and_reports(command, tmp_path, capsys):
    (tmp_path / "README.md").write_text("about\n<!-- comparison -->\n<!-- /comparison -->\n")
    written = ["--report", str(tmp_path / "docs.md"), "--headline", str(tmp_path / "README.md"), "--command", "make it"]
    assert command(*written)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "rows.jsonl", "orders.jsonl", "report.md", "report.html", "cost.png", "time.png", "orders.png"
    }  # fmt: skip
    assert "![" in (tmp_path / "docs.md").read_text()
    assert (tmp_path / "docs" / "cost.png").exists()
    assert "make it" in (tmp_path / "README.md").read_text()
    assert "| **eqsat** |" in capsys.readouterr().out


def test_without_kernels_of_fitting_size_there_is_no_study(command, tmp_path):
    lines = (tmp_path / "small.jsonl").read_text().splitlines()
    (tmp_path / "small.jsonl").write_text(lines[0] + "\n")
    assert command()
    assert not (tmp_path / "out" / "orders.jsonl").exists()


def test_the_same_command_goes_on_and_another_is_refused(command, tmp_path, monkeypatch):
    command()
    rows = tmp_path / "out" / "rows.jsonl"
    whole = rows.read_text().splitlines()
    rows.write_text("\n".join(whole[:3]) + "\n")
    command()
    assert rows.read_text().splitlines()[:3] == whole[:3]
    assert [json.loads(line)["id"] for line in rows.read_text().splitlines()[1:]] == ["case2", "case3", "case4"]
    with pytest.raises(ValueError, match=r"other settings \(gates\)"):
        command("--no-gates")
    # answers of other sources are not this run's
    monkeypatch.setattr(bench, "sources", lambda: "others")
    with pytest.raises(ValueError, match=r"other settings \(sources\)"):
        command()


def test_the_digest_of_sources_leaves_out_no_package(monkeypatch):
    read: list[Path] = []
    content = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or content(path))
    sources()
    assert {Path(module.__file__) for module in (optimisation, linear, eqsat.rules, eqsat.extract)} <= {*read}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--peers", "nobody"], "no solver is called 'nobody'"),
        (["--ours", "eqsat"], "--ours lacks 'greedy'"),
    ],
)
def test_unknown_solvers_are_refused(command, option, message, capsys):
    with pytest.raises(SystemExit):
        command(*option)
    assert message in capsys.readouterr().err
