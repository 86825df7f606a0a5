"""The public names are listed in ``docs/api.md``, and documented."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import eqsat
import eqsat.extract

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
