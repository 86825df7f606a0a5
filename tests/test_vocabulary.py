"""The words of code, tests and docs are the field's: none of those that it has replaced comes back."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Parts of identifiers, and what to say in their place.
REPLACED = {
    "spell": "write, add an e-node, alternative",
    "value_graph": "canonical e-graph",
    "beside_theory": "modulo_theory",
    "opaque": "uninterpreted",
    "guess": "conjecture",
    "learn": "assert",
    "stray": "escaping",
    "walk": "run, traverse",
    "anything": "dont_care",
    "offer": "add_node",
    "dearer": "costs more",
}
PROSE = [r"\bspell", r"\brespell", r"\bvalue graph", r"\bbeside the theory", r"\bstand-ins?\b", r"\bopaque", r"\bguess"]
PROSE += [r"\bdearer\b", r"\bdearest\b", r"\bas dear\b", r"\bso many\b"]
CODE = sorted(path for folder in ("eqsat", "rules", "extract") for path in (ROOT / folder).rglob("*.py"))
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))


def names(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_identifiers_are_the_fields_own(path: Path) -> None:
    found = {name: word for name in names(path) for old, word in REPLACED.items() if old in name.lower()}
    # a theory with more facts is one assuming them
    assert re.findall(r"\bdef under\(|\.under\(", path.read_text()) == []
    # Python's own syntax trees are walked
    assert {name: word for name, word in found.items() if name != "walk" or "ast.walk" not in path.read_text()} == {}


@pytest.mark.parametrize("path", [*CODE, *TESTS, *DOCS], ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_are_the_fields_own(path: Path) -> None:
    # a package of the benchmarks has that name
    text = path.read_text().replace("peers.spelling", "")
    found = [m[0] for pattern in PROSE for m in re.finditer(pattern, text, re.IGNORECASE)]
    assert found == []
