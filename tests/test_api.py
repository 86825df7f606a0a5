"""The public names are listed in ``docs/api.md``, and documented."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import eqsat
import eqsat.extract
from eqsat import var
from eqsat.cli.cases import read_case
from eqsat.interop.sympy import to_sympy
from eqsat.lang.display import to_latex
from eqsat.lang.dtypes import widths
from eqsat.lang.expr import substitute
from eqsat.lang.text import to_program, to_text

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


@pytest.mark.parametrize("given", [3, "i//2", None, [3], {"i": 1}], ids=repr)
@pytest.mark.parametrize(
    "call", [to_text, to_latex, to_sympy, lambda given: to_program([given]), lambda given: widths([given]), to_program]
)
def test_what_is_no_term_is_named(call, given):
    with pytest.raises(TypeError, match=r"(is|are) given as .*: give|must be an Expr, not "):
        call(given)


def test_what_replaces_terms_is_named():
    x = var("x", 0, 9)
    with pytest.raises(TypeError, match="what replaces subterms must be a Mapping, not 3"):
        substitute([x], 3)
    with pytest.raises(TypeError, match="the terms to replace in are given as 3"):
        substitute(3, {x: 1})
    with pytest.raises(TypeError, match="a line of a corpus is given as 3: give its text"):
        read_case(3)
