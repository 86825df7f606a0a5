"""Dependencies point one way: eqsat -> extract, rules; slow packages are imported only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "egglog",
    "numpy",
    "cffi",
    "click",
    "rich",
    "z3",
    "islpy",
    "highspy",
    "platformdirs",
    "setuptools",
    "matplotlib",
}


def modules(package: str) -> list[tuple[str, ast.Module]]:
    paths = sorted((ROOT / package).rglob("*.py"))
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in paths]


def imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def at_import(tree: ast.Module) -> set[str]:
    """What the module imports when it is imported itself: not in functions, not for the type checker alone."""
    eager = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imports(ast.Module(body=eager, type_ignores=[]))


def outside(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"eqsat"}


@pytest.mark.parametrize(("path", "tree"), modules("rules"), ids=lambda value: value if isinstance(value, str) else "")
def test_rules_are_tables_that_know_nothing_else(path, tree):
    own = {name for name in imports(tree) if name.startswith("eqsat")}
    assert own <= {"eqsat.rule"} or path == "rules/__init__.py"
    assert all(name == "eqsat.rule" or name.startswith("eqsat.rules") for name in own)
    assert not outside(imports(tree))


@pytest.mark.parametrize(
    ("path", "tree"), modules("extract"), ids=lambda value: value if isinstance(value, str) else ""
)
def test_extract_takes_plain_data(path, tree):
    assert all(name.startswith("eqsat.extract") for name in imports(tree) if name.startswith("eqsat"))
    assert outside(at_import(tree)) <= {"numpy"}
    assert outside(imports(tree)) <= {"numpy", "highspy"}


def test_only_the_engine_talks_to_egglog():
    for path, tree in modules("eqsat"):
        assert "egglog" not in outside(imports(tree)) or path == "eqsat/warm.py"


@pytest.mark.parametrize("package", ["z3", "islpy", "highspy", "rich", "egglog", "matplotlib"])
def test_slow_or_optional_packages_are_imported_lazily(package):
    for path, tree in modules("eqsat"):
        assert package not in outside(at_import(tree)), path


@pytest.mark.parametrize(
    ("package", "below"),
    [
        ("theory", set()),
        ("equality", set()),
        ("saturation", {"extract", "rules", "spelling"}),
        ("spelling", {"extract", "theory"}),
        ("egraph", {"extract", "rules", "saturation", "spelling", "theory"}),
        ("lowering", {"theory"}),
        ("explanation", {"rules", "saturation", "spelling", "theory"}),
    ],
)
def test_packages_rest_on_those_below(package, below):
    packages = {path.parent.name for path in (ROOT / "eqsat").glob("*/__init__.py")} | {"extract", "rules"}
    for path, tree in modules(f"eqsat/{package}"):
        known = {name.split(".")[1] for name in imports(tree) if name.startswith("eqsat.")}
        assert known & packages <= below | {package}, path


def test_what_spells_values_knows_their_graph_and_not_the_other_way_round():
    kinds = {f"eqsat.spelling.{k}" for k in ("sums", "quotients", "products", "selections", "extremes", "conditions")}
    for path, tree in modules("eqsat/spelling"):
        known, name = imports(tree), f"eqsat.spelling.{Path(path).stem}"
        if name in kinds:
            assert "eqsat.spelling.speller" not in known, path
        elif name != "eqsat.spelling.speller":
            assert not known & kinds, path
    (graph,) = [tree for path, tree in modules("eqsat/spelling") if path.endswith("/value_graph.py")]
    assert "eqsat.spelling.speller" not in imports(graph)


def test_private_names_stay_in_their_module():
    for package in ("eqsat", "rules", "extract"):
        for path, tree in modules(package):
            taken = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
            assert not [name for name in taken if name.startswith("_")], path


def test_every_module_is_in_the_layout():
    layout = (ROOT / "docs" / "layout.md").read_text()
    paths = [path.relative_to(ROOT / "eqsat") for path in (ROOT / "eqsat").rglob("*.py")]
    assert [str(path) for path in paths if path.stem[0] != "_" and f"`{path}`" not in layout] == []


def test_nothing_undeclared_is_imported():
    for package in ("eqsat", "rules", "extract"):
        for path, tree in modules(package):
            assert outside(imports(tree)) <= OUTSIDE, path


def test_the_command_line_starts_without_the_engine():
    code = "import sys, eqsat.cli; print([m for m in ('egglog', 'z3', 'rich', 'cffi') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
