"""The documentation site: a broken link or name is an error, and every rule and public name has its place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eqsat.rules import FAMILIES, REDUCE

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")
pytest.importorskip("mkdocs_jupyter")

ROOT = Path(__file__).parent.parent


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site without running notebooks and proofs, which have tests of their own."""
    asked = [sys.executable, "-m", "mkdocs", "build", "-f", str(config), "-d", str(site)]
    quick = os.environ | {"EQSAT_DOCS_WHOLE": "false", "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(asked, capture_output=True, text=True, timeout=300, env=quick, cwd=ROOT)


def test_the_site_has_every_rule_and_every_public_name(tmp_path):
    done = build(ROOT / "mkdocs.yml", tmp_path)
    assert not done.returncode, done.stderr
    for family, rules in {**FAMILIES, "reduce": REDUCE}.items():
        page = (tmp_path / "rules" / f"{family}.html").read_text()
        assert re.findall(r'<h2 id="([^"]*)"', page)
        assert len(re.findall(r"<h2 ", page)) == len(rules)
    reference = (tmp_path / "reference" / "eqsat.html").read_text()
    assert all(f'id="eqsat.{name}"' in reference for name in ("optimizer.front.optimize", "egraph.rule.Rule"))
    assert {path.stem for path in (tmp_path / "notebooks").rglob("*.html")} >= {"tour", "cost_models"}
    assert "make demo" in (tmp_path / "index.html").read_text()


def test_a_broken_link_is_an_error(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[nowhere](nowhere.md)\n")
    kept = re.search(r"^validation:\n(?:  .*\n)+", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)[0]
    assert "strict: true\n" in (ROOT / "mkdocs.yml").read_text()
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"site_name: broken\nstrict: true\nplugins: []\n{kept}")
    done = build(config, tmp_path / "site")
    assert done.returncode
    assert "nowhere.md" in done.stderr + done.stdout
