"""Dependencies point one way: eqsat -> extract, rules; slow packages are imported only where they are used."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: The rooms, those below first: each imports those before it alone.
LAYERS = [
    "extract",
    "lang",
    "theory",
    "egraph",
    "rules",
    "prove",
    "alternatives",
    "optimizer",
    "discover",
    "explain",
    "kernels",
    "codegen",
    "interop",
    "cli",
]
#: What functions import, by who does: packages that are slow to import or optional, and modules that need such.
LAZY = {
    "eqsat": {
        "eqsat.cli.experiment",
        "eqsat.cli.page",
        "eqsat.codegen.programs",
        "eqsat.explain.derivation",
        "importlib.metadata",
    },
    "eqsat.cli.cases": {"eqsat.codegen.loops"},
    "eqsat.cli.corpus": {
        "distributed",
        "eqsat.cli.kinds",
        "eqsat.codegen.libraries",
        "multiprocessing",
        "multiprocessing.connection",
    },
    "eqsat.cli.experiment": {"matplotlib"},
    "eqsat.cli.files": {"rich"},
    "eqsat.cli.main": {
        "eqsat",
        "eqsat.cli",
        "eqsat.cli.calibrate",
        "eqsat.cli.trial",
        "eqsat.codegen.expressions",
        "eqsat.codegen.programs",
        "eqsat.codegen.vectors",
        "eqsat.discover.discovery",
        "eqsat.interop.mlir",
    },
    "eqsat.cli.rule_listing": {"eqsat.prove.proof"},
    "eqsat.egraph.tables": {"tempfile"},
    "eqsat.extract.cost": {"difflib", "json"},
    "eqsat.extract.exact": {"highspy"},
    "eqsat.interop.inductor": {"sympy", "torch"},
    "eqsat.interop.sympy": {"sympy"},
    "eqsat.interop.tinygrad": {"tinygrad"},
    "eqsat.interop.triton": {"triton"},
    "eqsat.lang.validation": {"difflib"},
    "eqsat.optimizer.front": {"eqsat.prove.proof"},
    "eqsat.optimizer.result": {"eqsat.prove.verify", "tempfile", "webbrowser"},
}
#: Numbers beside the tables of limits: they are no limits, but what is measured, what a published algorithm has, and
#: what another system does.
KEPT = {
    "codegen": {"eqsat/codegen/runtime.py": ["LEAST_NS = 1_000_000"]},
    "interop": {"eqsat/interop/mlir/terms.py": ["MOST_PROGRAMS = 2**31 - 1"]},
    "kernels": {"eqsat/kernels/staging.py": ["LEAST_RATIO = 10"]},
}
OUTSIDE = {
    "distributed",
    "egglog",
    "numpy",
    "cffi",
    "click",
    "rich",
    "z3",
    "islpy",
    "highspy",
    "platformdirs",
    "matplotlib",
    "sympy",
    "torch",
    "tinygrad",
    "triton",
}


@cache
def modules(package: str) -> list[tuple[str, ast.Module]]:
    paths = sorted((ROOT / package).rglob("*.py"))
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in paths]


@cache
def imports(tree: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return frozenset(found)


def at_import(tree: ast.Module) -> frozenset[str]:
    """What the module imports when it is imported itself: not in functions, not for the type checker alone."""
    eager = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imports(ast.Module(body=eager, type_ignores=[]))


@cache
def in_functions(tree: ast.Module) -> frozenset[str]:
    """What the module imports when its functions are called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return imports(ast.Module(body=functions, type_ignores=[]))


def outside(names: frozenset[str]) -> set[str]:
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"eqsat"}


@pytest.mark.parametrize(("path", "tree"), modules("rules"), ids=lambda value: value if isinstance(value, str) else "")
def test_rules_are_tables_that_know_nothing_else(path, tree):
    own = {name for name in imports(tree) if name.startswith("eqsat")}
    assert own <= {"eqsat.egraph.rule"} or path == "rules/__init__.py"
    assert all(name == "eqsat.egraph.rule" or name.startswith("eqsat.rules") for name in own)
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
        named = any(isinstance(node, ast.Constant) and node.value == "egglog" for node in ast.walk(tree))
        assert "egglog" not in outside(imports(tree))
        assert named == (path == "eqsat/egraph/bindings.py")


@pytest.mark.parametrize("package", ["z3", "islpy", "highspy", "rich", "egglog", "matplotlib"])
def test_slow_or_optional_packages_are_imported_lazily(package):
    for path, tree in modules("eqsat"):
        assert package not in outside(at_import(tree)), path


def rooms_of(tree: ast.Module) -> set[str]:
    """The rooms from which a module imports, in functions too; what only a type checker reads is not counted."""
    names = at_import(tree) | in_functions(tree)
    return {name.split(".")[1] for name in names if name.startswith("eqsat.")}


@pytest.mark.parametrize("room", LAYERS)
def test_a_room_imports_those_below(room):
    folder = room if room in ("rules", "extract") else f"eqsat/{room}"
    for path, tree in modules(folder):
        above = rooms_of(tree) - {room} - set(LAYERS[: LAYERS.index(room)])
        assert not above, path


@pytest.mark.parametrize("room", [room for room in LAYERS if room not in ("extract", "rules")])
def test_a_room_says_what_it_imports(room):
    trees = [tree for _, tree in modules(f"eqsat/{room}")]
    used = set().union(*map(rooms_of, trees)) - {room}
    # types may be of further rooms
    named = {name.split(".")[1] for tree in trees for name in imports(tree) if name.startswith("eqsat.")}
    text = ast.get_docstring(ast.parse((ROOT / "eqsat" / room / "__init__.py").read_text())) or ""
    said = set(re.findall(r"``(\w+)``", text.split("\n\n")[-1]))
    assert used <= said <= named


def test_every_room_has_a_place_a_door_and_nothing_stands_outside():
    entries = {path.name for path in (ROOT / "eqsat").iterdir()} - {"__pycache__"}
    assert entries == {"__init__.py", "__main__.py", "py.typed", *LAYERS} - {"rules", "extract"}
    for room in entries - {"__init__.py", "__main__.py", "py.typed"}:
        assert ast.get_docstring(ast.parse((ROOT / "eqsat" / room / "__init__.py").read_text())), room


def test_no_module_imports_itself_by_way_of_others():
    # for the type checker neither
    graph = {
        name_of(path): imports(tree) for path, tree in modules("eqsat") + modules("rules") + modules("extract")
    } | {"eqsat": at_import(ast.parse((ROOT / "eqsat" / "__init__.py").read_text()))}
    done: set[str] = set()
    while ready := [name for name, needed in graph.items() if name not in done and not needed & graph.keys() - done]:
        done.update(ready)
    assert done == graph.keys()


def test_modules_stand_in_few_layers():
    trees = {name_of(path): tree for path, tree in modules("eqsat") + modules("rules") + modules("extract")}
    graph = {name: modules_read(tree, trees.keys()) - {name} for name, tree in trees.items()}

    @cache
    def layer(name: str) -> int:
        """A module stands above all that it imports."""
        return 1 + max(map(layer, graph[name]), default=0)

    del graph["eqsat"]
    assert (max(map(layer, graph)), layer("eqsat.optimizer.front")) == (14, 11)


def test_no_module_is_long():
    long = [path for path, _ in modules("eqsat") if len((ROOT / path).read_text().splitlines()) > 900]
    assert not long


def modules_read(tree: ast.Module, known: Collection[str]) -> set[str]:
    """Which ``known`` modules a module imports, where ``from package import module`` imports the module."""
    found = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            full = f"{node.module}.{alias.name}"
            found.add(full if full in known else node.module or "")
    return found & {*known}


def test_functions_import_what_is_slow_and_nothing_else():
    found = {
        name_of(path): {name.split(".")[0] if outside(frozenset({name})) else name for name in in_functions(tree)}
        for path, tree in modules("eqsat") + modules("rules") + modules("extract")
    }
    assert {name: imported for name, imported in found.items() if imported} == LAZY


def name_of(path: str) -> str:
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return dotted if dotted.startswith("eqsat") else f"eqsat.{dotted}"


def test_every_package_is_installed():
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {name_of(str(path.parent.relative_to(ROOT))) for path in (ROOT / "eqsat").rglob("__init__.py")}
    assert set(configured) == found | {"eqsat.rules", "eqsat.extract"}


def test_text_in_files_is_utf_8_in_every_locale():
    calls = [
        (path, ast.unparse(call))
        for package in ("eqsat", "rules", "extract")
        for path, tree in modules(package)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if call.func.attr in ("read_text", "write_text")
    ]
    assert calls
    assert [call for call in calls if "utf-8" not in call[1]] == []


def test_tests_mirror_the_rooms():
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert folders == {*LAYERS, "benchmarks"}


def test_alternatives_of_a_kind_know_the_graph_and_not_what_grows_it():
    names = ("inputs", "quotients", "products", "ranges", "selections", "extremes", "conditions")
    kinds = {f"eqsat.alternatives.{name}" for name in names}
    assert kinds <= {name_of(path) for path, _ in modules("eqsat/alternatives")}
    for path, tree in modules("eqsat/alternatives"):
        known, name = imports(tree), name_of(path)
        if name in kinds:
            assert "eqsat.alternatives.builder" not in known, path
        elif name != "eqsat.alternatives.builder":
            assert not known & kinds, path


def test_private_names_stay_in_their_module():
    for package in ("eqsat", "rules", "extract"):
        for path, tree in modules(package):
            taken = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
            assert not [name for name in taken if name.startswith("_")], path


def test_every_room_is_in_the_architecture():
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert [room for room in LAYERS if f"\n| `{room}/`" not in text] == []
    named = re.findall(rf"`(?:eqsat\.)?((?:{'|'.join(LAYERS)})\.[a-z_]+)", text)
    assert named
    known = {name_of(path) for room in ("eqsat", "rules", "extract") for path, _ in modules(room)}
    assert {name for name in named if f"eqsat.{name}" not in known} == set()


def test_every_module_says_what_it_is_for():
    for path, tree in modules("eqsat") + modules("rules") + modules("extract"):
        assert ast.get_docstring(tree), path


def test_nothing_undeclared_is_imported():
    for package in ("eqsat", "rules", "extract"):
        for path, tree in modules(package):
            assert outside(imports(tree)) <= OUTSIDE, path


def test_what_is_installed_with_it_is_imported():
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    trees = [tree for package in ("eqsat", "rules", "extract") for _, tree in modules(package)]
    imported = {name for tree in trees for name in outside(imports(tree))}
    # which is loaded by its name
    imported.add("egglog")
    assert {re.split("[<>=]", line)[0] for line in required} <= imported


def test_the_command_line_starts_without_the_engine():
    code = "import sys, eqsat.cli.main; print([m for m in ('egglog', 'z3', 'rich', 'cffi') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("room", ["theory", "alternatives", "optimizer", "kernels", "codegen", "interop"])
def test_the_limits_of_a_room_are_in_one_table(room):
    table = (ROOT / "eqsat" / room / "limits.py").read_text().splitlines()
    fields = [at for at, line in enumerate(table) if re.match(r"    \w+: (int|float) = ", line)]
    assert fields
    assert [table[at] for at in fields if not table[at - 1].startswith("    #: ")] == []
    # what another room reads by its old name is that of the table
    scattered = r"^(?:MAX|MOST|MANY|MIN|LEAST)_[A-Z_]+ = (?!\w*LIMITS\.).*"
    found = {
        path: re.findall(scattered, (ROOT / path).read_text(), re.MULTILINE) for path, _ in modules(f"eqsat/{room}")
    }
    assert {path: lines for path, lines in found.items() if lines} == KEPT.get(room, {})
