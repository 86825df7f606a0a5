"""A few seconds of fuzzing, and that it sees what is wrong: ``make fuzz`` goes on for as long as it is told."""

from collections import Counter
from dataclasses import dataclass, replace

import fuzzing
import pytest

from eqsat.extract.graph import EGraph
from eqsat.interop.indexing_analysis import indexing_maps
from eqsat.lang.expr import Expr, var
from eqsat.lang.functions import where
from eqsat.optimizer.front import optimize


@pytest.mark.parametrize("kind", [kind for kind in fuzzing.KINDS if kind != "kernels"])
def test_what_is_tried_is_right(kind):
    report = fuzzing.fuzz(10.0, kinds=[kind], rounds=1)
    assert report.counts
    assert report.failures == []


@dataclass
class Answer:
    exprs: list[Expr]
    graph: EGraph | None = None


def off_by_one(roots, **_):
    return Answer([root + 1 for root in roots])


def with_a_wrong_node(root, **options):
    """The answer, in whose e-graph a root has what its successor is."""
    found = optimize([root, root + 1], **options)
    (one, other), classes = found.graph.roots, dict(found.graph.classes)
    classes[one] = [*classes[one], *classes[other]]
    return Answer(found.exprs, replace(found.graph, classes=classes))


def moved(self, **_):
    return replace(self, results=[result + 1 for result in self.results])


def without_a_map(*args, **options):
    return {operand: maps[1:] for operand, maps in indexing_maps(*args, **options).items()}


def other_values(kernels, *_):
    return [dict.fromkeys([b.name for b in kernel.outputs], 0.5) for kernel in kernels]


#: What is made wrong for each kind, and the most letters of the test that comes of it.
WRONG = [
    ("expressions", "fuzzing.optimize", off_by_one, 900),
    ("sizes", "fuzzing.optimize", off_by_one, 2000),
    ("digits", "fuzzing.optimize", off_by_one, 2000),
    ("bounds", "fuzzing.optimize", off_by_one, 2000),
    ("reductions", "fuzzing.optimize", off_by_one, 2000),
    ("graphs", "fuzzing.optimize", with_a_wrong_node, 2000),
    ("maps", "eqsat.interop.indexing.IndexingMap.simplify", moved, 2000),
    ("mlir", "eqsat.interop.mlir.rewrite", lambda text, **_: text.replace("mod 4", "mod 5"), 2000),
    ("corpora", "fuzzing.run_line", lambda *_: {"error": "KeyError: 'x'"}, 2000),
    ("hlo", "eqsat.interop.hlo.parse", lambda text: {}[text], 2000),
    ("chains", "fuzzing.indexing_maps", without_a_map, 2000),
    ("kernels", "fuzzing.run_in_c", other_values, 2000),
]


@pytest.mark.parametrize(("kind", "name", "wrong", "most"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_answer_is_seen_and_written_as_a_test(kind, name, wrong, most, monkeypatch):
    """That of random expressions is made small first."""
    monkeypatch.setattr(name, wrong)
    with pytest.raises(fuzzing.WrongAnswerError, match="test_found_by_fuzzing") as caught:
        fuzzing.KINDS[kind](0, Counter())
    text = str(caught.value)
    compile(text, "found", "exec")
    assert len(text) < most


def test_each_kind_is_tried_on_a_wrong_answer():
    assert sorted(row[0] for row in WRONG) == sorted(fuzzing.KINDS)


def test_a_kind_that_is_not_tried_is_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzzing.py", "--only", "maps,kernel"])
    with pytest.raises(SystemExit):
        fuzzing.main()
    assert "nothing of kind 'kernel' is tried: choose from expressions, " in capsys.readouterr().err


def test_python_says_what_expressions_mean():
    x = var("x", -9, 9)
    program = fuzzing.program_of(where(x < 4, x // 2 + x % 3, 0))
    assert [program({"x": n}) for n in (-9, 3, 5)] == [-5, 1, 0]
