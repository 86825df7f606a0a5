"""What the documentation site has beside the files of docs: the README, a page for each module and each rule family.

MkDocs calls the functions ``on_...`` (``mkdocs.yml`` names this file); ``make docs`` builds the site.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any

from griffe import Extension, Object
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

from eqsat.cli.rulesets import LISTED
from eqsat.egraph.rule import Rule
from eqsat.prove.proof import example, prove_rule

ROOT = Path(__file__).parent.parent
#: Where the code lies as it is installed, for what reads it without importing it.
LAYOUT = ROOT / "build" / "layout" / "eqsat"
#: The first example of a docstring, and the roles of Sphinx, which Markdown has not.
_EXAMPLE = re.compile(r"^(?=>>> )", re.MULTILINE)
_ROLE = re.compile(r":\w+:(`[^`]*`)")
#: A link to a file of the checkout that is no page of the site.
_OUTSIDE = re.compile(r"\]\((?:\.\./)+([\w./-]+)(#[\w-]+)?\)")


class Examples(Extension):
    """Reads examples as a section of their own: in the docstrings they have no heading."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put the heading before the first example."""
        if obj.docstring is not None:
            text = _ROLE.sub(r"\1", obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub("Examples\n--------\n", text, count=1)


@event_priority(100)  # before the plugin that reads the layout
def on_config(config: Any) -> Any:
    """Lay out the packages, and list the pages that are made."""
    LAYOUT.mkdir(parents=True, exist_ok=True)
    for path in [*(ROOT / "eqsat").iterdir(), ROOT / "rules", ROOT / "extract"]:
        if not (link := LAYOUT / path.name).is_symlink():
            link.symlink_to(path)
    reference = next(part["Reference"] for part in config.nav if "Reference" in part)
    reference += [{"Modules": sorted(module_pages())}, {"Rules": [f"rules/{name}.md" for name in LISTED]}]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the first page, the pages of modules and families, and the files that pages link to."""
    made = {"index.md": (ROOT / "README.md").read_text(encoding="utf-8"), **module_pages()}
    made |= {f"rules/{name}.md": family_page(name, config.extra["whole"]) for name in LISTED}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    pages = [(ROOT / "README.md").read_text(encoding="utf-8"), *[f.content_string for f in files.documentation_pages()]]
    for name in sorted({name for page in pages for name in outside(page)}):
        files.append(File.generated(config, f"source/{name}.txt", content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to files of the checkout into links within the site."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri == "index.md":
        markdown = re.sub(r"\]\((?!https?:|#|docs/)([\w./-]+)\)", r"](../\1)", markdown).replace("](docs/", "](")

    def linked(found: re.Match[str]) -> str:
        name, anchor = found[1], found[2] or ""
        if name == "README.md":
            return f"]({up}index.md{anchor})"
        return f"]({up}source/{name}.txt)" if (ROOT / name).is_file() else "](" + up + "api.md)"

    return _OUTSIDE.sub(linked, markdown)


def outside(page: str) -> set[str]:
    """The files of the checkout that a page links to, but for those of docs."""
    links = {found[1] for found in re.finditer(r"\]\((?:\.\./)*([\w./-]+)(?:#[\w-]+)?\)", page)}
    return {name for name in links if not name.startswith("docs/") and name != "README.md" and (ROOT / name).is_file()}


@cache
def module_pages() -> dict[str, str]:
    """A page for each public module, with the names that ``docs/api.md`` lists."""
    table = re.findall(r"^\| `(eqsat[\w.]*)` \| (.*) \|$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.M)
    pages: dict[str, str] = {}
    homes: set[str] = set()
    for module, names in table:
        exported = [getattr(importlib.import_module(module), name) for name in re.findall(r"`(\w+)`", names)]
        # what else there is has no docstring
        defined = [f"{each.__module__}.{each.__qualname__}" for each in exported if callable(each)]
        # a name that several modules export is on the page of the first
        documented = [home for home in defined if home not in homes]
        homes.update(documented)
        if not documented:
            continue
        blocks = [f"::: {home}" for home in documented]
        pages[f"reference/{module}.md"] = "\n\n".join([f"# {module}", *blocks]) + "\n"
    return pages


def family_page(name: str, prove: bool) -> str:
    """The page of a family: what its rules say, when, why, how they are proved, and an input that needs each."""
    firing = run_path(str(ROOT / "tests/rules/firing.py"))["FIRING"]
    module = importlib.import_module(f"eqsat.rules.{name}")
    examples = {row.rule: row for row in firing}
    title, _, about = (module.__doc__ or name).partition("\n")
    lines = [f"# Rules: {name}", title, about.strip(), f"{len(LISTED[name])} rules."]
    for rule in LISTED[name]:
        arrow = "<->" if rule.both_ways else "->"
        lines += [f"## {rule.name}", f"    {rule.left}  {arrow}  {rule.right}"]
        said = {"when": rule.when and f"`{rule.when}`", "why": rule.why, "implements": rule.source}
        said["values"] = _values(rule)
        said["proof"] = _proof(rule) if prove else ""
        if row := examples.get(rule.name):
            said["needed for"] = f"`{row.left}` = `{row.right}`, {_known(row)}"
        lines.append("\n".join(f"* {key}: {text}" for key, text in said.items() if text))
    return "\n\n".join(line for line in lines if line) + "\n"


def _values(rule: Rule) -> str:
    found = example(rule)
    if found is None:
        return ""
    return f"with {', '.join(f'`{key}` = {value}' for key, value in found.values.items())} both sides are {found.value}"


def _proof(rule: Rule) -> str:
    proof = prove_rule(rule)
    return f"{' and '.join(proof.kinds)}; {proof.how}"


def _known(row: Any) -> str:
    ranges = ", ".join(f"`{name}` in [{low}, {high}]" for name, (low, high) in row.ranges.items())
    return ranges + "".join(f", `{fact}`" for fact in row.facts)
