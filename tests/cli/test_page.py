"""The page of a result: what is in it, and that its script runs and opens classes."""

import json
import re
import shutil
import subprocess

import pytest
from corpora import SAMPLE, cases

from eqsat import Rule, operator, optimize, var
from eqsat.cli.page import content
from eqsat.extract import LoopAware, Priced, from_egraph_serialize, reachable, to_dot, to_egraph_serialize, tree
from eqsat.lang.text import to_program
from eqsat.rules import DEFAULT

TEXT = "(i*32 + j) // 32 + where(j*2 < i, min(i, j) % 7, j)"
RANGES = {"i": (0, 63), "j": (0, 31)}

#: What the script needs of a browser; it says what stands on the page, clicks, and says it again.
BROWSER = """
class Element {
  constructor(tag) { this.tag = tag; this.children = []; this.own = ""; }
  set textContent(text) { this.own = String(text); }
  get textContent() { return this.own; }
  append(...nodes) { this.children.push(...nodes); for (const n of nodes) n.parent = this; }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  remove() { this.parent.children.splice(this.parent.children.indexOf(this), 1); }
  setAttribute() {}
  scrollIntoView() {}
  getBoundingClientRect() { return {left: 0, top: 0, width: 0, bottom: 0}; }
  all(test) { return this.children.flatMap(c => [...(test(c) ? [c] : []), ...c.all(test)]); }
}
const places = {};
const document = {
  createElement: tag => new Element(tag),
  createElementNS: (space, tag) => new Element(tag),
  getElementById: id => places[id] ??= new Element("div"),
};
document.getElementById("data").textContent = DATA;
"""
CLICKS = """
const graph = places["graph"], classes = () => graph.all(e => /^class/.test(e.className)).length;
const counts = [classes()];
for (const close of graph.all(e => e.className === "close").slice(1)) {
  graph.all(e => e.className === "close").at(-1).onclick();
}
counts.push(classes());
graph.all(e => e.tag === "button" && !e.className)[0].onclick();
counts.push(classes());
places["find"].oninput({target: {value: " + "}});
counts.push(classes());
places["reset"].onclick();
counts.push(classes());
const names = places["rules"].all(e => e.tag === "button"), before = names.length;
names[0].onclick();
const where = places["rules"].all(e => e.tag === "button").length - before;
const rules = places["rules"].children.length;
console.log(JSON.stringify({counts, where, rules, summary: places["summary"].textContent}));
"""


def parts_of(page: str) -> tuple[str, str]:
    """The data of a page as text, and its script."""
    data, script = re.search(r'id="data">(.*?)</script>\s*<script>(.*?)</script>', page, re.DOTALL).groups()  # type: ignore[union-attr]
    return data, script


@pytest.mark.skipif(shutil.which("node") is None, reason="the script is run by node")
def test_the_script_runs_and_opens_classes():
    result = optimize(TEXT, **RANGES)
    data, script = parts_of(result.to_html())
    program = BROWSER.replace("DATA", json.dumps(data)) + script + CLICKS
    done = subprocess.run(["node", "-"], input=program, capture_output=True, text=True, timeout=60)
    assert not done.stderr
    said = json.loads(done.stdout)
    first, closed, opened, with_sums, again = said["counts"]
    assert (first, closed, opened, again) == (len(reachable(result.choice, result.graph.roots)), 1, 2, first)
    assert with_sums > 1
    assert said["where"] > 0
    assert said["summary"].startswith(f"cost {result.cost_before} -> {result.cost}, saturated")
    assert said["rules"] == len(result.trace.rules) + 1


def test_a_page_needs_nothing_else_and_ends_where_it_ends():
    rule = Rule("strange", "x*x - y*y", "(x - y)*(x + y)", why="</script><b>")
    page = optimize("i*i - j*j", rules=[*DEFAULT, rule], **RANGES).to_html()
    assert not re.search(r"https?:|src=|href=|url\(|@import|@DATA@", page)
    assert page.count("</script>") == 2
    data = json.loads(parts_of(page)[0])
    assert any("</script><b>" in law for _, _, _, law, _ in data["rules"])


@pytest.mark.parametrize("cost", ["latency", "gpu", LoopAware({"i": 64, "j": 32})], ids=str)
def test_the_answer_is_marked_and_priced(cost):
    result = optimize([TEXT, "i*32 + j"], cost=cost, **RANGES)
    data = content(result)
    marked = [row for _, rows in data["classes"].values() for row in rows if row[3]]
    assert len(marked) == len(result.choice)
    assert not isinstance(cost, str) or sum(price for _, price, _, _ in marked) == result.cost
    assert all(rows == sorted(rows, key=lambda row: (not row[3], row[2])) for _, rows in data["classes"].values())
    for side, exprs in (("input", result.before), ("answer", result.exprs)):
        lets, texts = to_program(exprs)
        assert data[side]["program"] == [*(f"{name} = {text}" for name, text in lets), *texts]


@pytest.mark.parametrize("options", [{"engine": "greedy"}, {"engine": "theory"}, {"theory": False}], ids=str)
def test_pages_of_other_engines(options):
    assert "</html>" in optimize(TEXT, **RANGES, **options).to_html()


def test_pages_of_what_has_no_c_and_of_own_operators():
    odd = operator("page_odd", 1, lambda x: x % 2, bounds=lambda x: (0, 1))
    i = var("i", 0, 63)
    result = optimize(odd(i) + 3, constraints=[i < 60])
    data = content(result)
    assert data["c"].startswith("none: operator 'page_odd' has no C")
    assert data["constraints"] == ["i < 60"]
    assert "sum(" in optimize("sum(r*r, r, 0, n)", n=(0, 10**6)).to_html()


def test_show_writes_a_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = optimize(TEXT, **RANGES)
    assert "</html>" in result.show(tmp_path / "a.html").read_text()
    assert not opened
    path = result.show()
    assert opened == [f"file://{path}"]
    path.unlink()


def test_on_the_command_line(eqsat, tmp_path):
    target = tmp_path / "out.html"
    assert eqsat("optimize", "i*8 // 8", "--range", "i=9", "--html", str(target))[:2] == (0, "i\n")
    assert "</html>" in target.read_text()


def test_a_large_kernel_has_a_page():
    case = max(cases(SAMPLE), key=lambda case: len(case.exprs))
    result = optimize(case.exprs, gates=case.gates, constraints=case.constraints)
    page = result.to_html()
    assert len(page) < 3_000_000
    assert len(json.loads(parts_of(page)[0])["classes"]) == len(result.graph.classes)


def test_graphs_for_other_programs():
    result = optimize(TEXT, **RANGES)
    graph, priced = result.graph, Priced.of(result.graph, result.model)
    dot = to_dot(graph, result.choice)
    assert dot.count("subgraph cluster_") == len(graph.classes)
    assert dot.count("style=filled") == len(result.choice)
    written = to_egraph_serialize(graph, priced.prices)
    nodes = written["nodes"]
    assert len(nodes) == len(graph)
    assert all(child in nodes for node in nodes.values() for child in node["children"])
    read = from_egraph_serialize(json.loads(json.dumps(written)))
    assert (read.graph, read.prices) == (graph, priced.prices)
    # what a bottom-up extractor finds costs what ours says
    best: dict[str, int] = {}
    for _ in graph.classes:
        for node in nodes.values():
            below = [best.get(nodes[child]["eclass"]) for child in node["children"]]
            if None not in below:
                best[node["eclass"]] = min(best.get(node["eclass"], 10**9), node["cost"] + sum(below))
    data, (root,) = content(result), written["root_eclasses"]
    assert best[root] == min(total for _, _, total, _ in data["classes"][int(root)][1])
    assert tree(priced)
