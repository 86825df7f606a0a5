"""The public names are listed in ``docs/api.md``, and documented."""

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import eqsat
import eqsat.extract
from eqsat import Kernel, Store, buffer, var
from eqsat.cli.cases import read_case, read_corpus, write_corpus
from eqsat.codegen.expressions import to_c
from eqsat.codegen.runtime import compile_exprs
from eqsat.extract import CostModel, EGraph, Latency, Priced, exact, reachable, reaches, to_dot, to_egraph_serialize
from eqsat.interop.mlir import rewriting
from eqsat.interop.sympy import to_sympy
from eqsat.interop.tiles import memory_steps
from eqsat.kernels.simplification import optimized, simplified
from eqsat.kernels.staging import cheaper, split_reduction
from eqsat.lang.display import to_latex
from eqsat.lang.dtypes import widths
from eqsat.lang.expr import substitute
from eqsat.lang.text import to_program, to_text
from eqsat.prove.verify import check_equal, prove_equal

ROOT = Path(__file__).parent.parent
TABLE = re.findall(r"^\| `(eqsat[\w.]*)` \| (.*) \|$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
PUBLIC = {module: re.findall(r"`(\w+)`", names) for module, names in TABLE}
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]


def test_what_the_packages_export_is_listed():
    for package in (eqsat, eqsat.extract):
        assert set(PUBLIC[package.__name__]) == set(package.__all__)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_docs_and_examples_import_is_listed(path):
    imported = re.findall(r"^(?:>>> )? *from (eqsat[\w.]*) import ([\w, ]+)$", path.read_text(), re.MULTILINE)
    for module, names in imported:
        for name in names.split(", "):
            assert name in PUBLIC.get(module, []) or f"{module}.{name}" in PUBLIC, (module, name)


ANSWERS = re.findall(
    r"^\| [^`|]*(?:`\w+`)? \| `([^`]+)`, (.+) \| `([^`]+)` \| (\d+) → (\d+) \|$", PAGES[0].read_text(), re.MULTILINE
)


@pytest.mark.parametrize(("given", "where", "found", "before", "after"), ANSWERS, ids=[answer[0] for answer in ANSWERS])
def test_the_readme_shows_what_is_found(given, where, found, before, after):
    ranges = {name: (int(low), int(high)) for name, low, high in re.findall(r"(\w+) in \[(\d+), (\d+)\]", where)}
    facts = [] if ranges else where.split(", ")
    open_ended = dict.fromkeys(re.findall(r"\b[a-z]\b", given if facts else ""), (None, None))
    result = eqsat.optimize(given, constraints=facts, **open_ended | ranges)
    assert (str(result.expr), result.cost_before, result.cost) == (found, int(before), int(after))


def test_the_readme_shows_some_answers():
    assert len(ANSWERS) >= 3


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: value)
def test_a_public_name_is_documented(module, name):
    found = getattr(importlib.import_module(module), name)
    if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
        assert found is not None
        return
    text = inspect.getdoc(found) or ""
    assert text
    if inspect.isclass(found) or inspect.isfunction(found):
        assert ">>> " in text, "there is no example"
        parameters = inspect.signature(found).parameters if inspect.isfunction(found) else {}
        assert not parameters or "Parameters\n----" in text, "the parameters are not said"
        assert "->" not in text.split("\n")[0]
        unsaid = [name for name in parameters if not re.search(rf"\b{name}\b", text)]
        assert not unsaid, "some parameters are not said"


def test_what_a_cost_model_is_asked_is_documented():
    text = inspect.getdoc(CostModel.price) or ""
    assert [name for name in ("op", "operands", "result") if f"\n{name} : " not in text] == []


@pytest.mark.parametrize(
    "function",
    [compile_exprs, optimized, simplified, split_reduction, cheaper, rewriting, memory_steps],
    ids=lambda function: function.__name__,
)
def test_a_function_that_refuses_says_what(function):
    with pytest.raises((TypeError, ValueError)) as raised:
        function(*["}"] * sum(p.default is p.empty for p in inspect.signature(function).parameters.values()))
    raises = (inspect.getdoc(function) or "").partition("Raises\n------\n")[2]
    assert raised.type.__name__ in raises.partition(">>> ")[0]


@pytest.mark.parametrize("given", [3, "i//2", None, [3], {"i": 1}], ids=repr)
@pytest.mark.parametrize(
    "call", [to_text, to_latex, to_sympy, lambda given: to_program([given]), lambda given: widths([given]), to_program]
)
def test_what_is_no_term_is_named(call, given):
    with pytest.raises(TypeError, match=r"(is|are) given as .*: give|must be an Expr, not "):
        call(given)


X, KERNEL = var("x", 0, 9), Kernel("k", [Store(buffer("Y", "i32", (10,))[var("x", 0, 9)], 1, [var("x", 0, 9)])])
GRAPH = EGraph({0: [("var", "x", ())], 1: [("neg", None, (0,))]}, {0: (0, 9), 1: (-9, 0)}, [1])

#: A call, the type of its error, and a part of the message, which names what is wrong and says what to give.
WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: var([], 0, 9), TypeError, "the name of a variable must be a text, not []"),
    (lambda: eqsat.operator([], 1, len), TypeError, "the name of an operator must be a str, not []"),
    (lambda: eqsat.experiment(X // 2, "latency"), TypeError, "the corpus is given as Expr('x//2'): give a file, or a"),
    (lambda: eqsat.experiment(None, "latency"), TypeError, "the corpus is given as None: give a file, or a list of"),
    (lambda: eqsat.experiment([X], None), TypeError, "the cost models are given as None: give names, or a dict"),
    (lambda: eqsat.experiment([X], "latency", extract=None), TypeError, "the extractors are given as None: give names"),
    (lambda: optimized(KERNEL, budget=None), TypeError, "a budget must be a Budget, not None"),
    (lambda: to_c([X], name=None), TypeError, "the name of a C function must be a str, not None"),
    (lambda: read_corpus(None), TypeError, "a corpus is given as None: give a file, or a list of lines"),
    (lambda: write_corpus(3, "cases.jsonl"), TypeError, "the cases are given as 3: give a list of Case"),
    (lambda: check_equal([X], [X], constraints=None), TypeError, "the constraints are given as None: give a list of"),
    (lambda: check_equal([X], [X], most=None), TypeError, "None points: give a number"),
    (lambda: prove_equal([X], [X], most=float("nan")), ValueError, "nan points: give 0 or more"),
    (lambda: prove_equal([X], [X], methods=3), TypeError, "the methods are given as 3: give a list of str"),
    (lambda: exact(Priced.of(GRAPH, Latency()), seconds=None), TypeError, "None seconds: give a number"),
    (lambda: exact(Priced.of(GRAPH, Latency()), seconds=float("nan")), ValueError, "nan seconds: give 0 or more"),
    (lambda: to_dot(GRAPH, 3), TypeError, "a choice is a mapping of classes to nodes, not 3"),
    (lambda: to_egraph_serialize(GRAPH, {}), ValueError, "the prices of class 0 are not 1: give those of a Priced"),
    (lambda: reachable({}, [1]), ValueError, "the choice has no node for class 1"),
    (lambda: reaches({}, [1], 0), ValueError, "the choice has no node for class 1"),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_what_is_wrong_is_named(call, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}") as raised:
        call()
    assert raised.type is kind
    assert "\n" not in str(raised.value)


def test_what_replaces_terms_is_named():
    x = var("x", 0, 9)
    with pytest.raises(TypeError, match="what replaces subterms must be a Mapping, not 3"):
        substitute([x], 3)
    with pytest.raises(TypeError, match="the terms to replace in are given as 3"):
        substitute(3, {x: 1})
    with pytest.raises(TypeError, match="a line of a corpus is given as 3: give its text"):
        read_case(3)
