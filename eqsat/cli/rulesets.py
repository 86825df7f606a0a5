"""Sets of rules that are named: those that are shipped, those of files, and those without some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from eqsat.egraph.rule import Rule, refuse_repeated
from eqsat.extract.cost import globals_of
from eqsat.lang.validation import did_you_mean
from eqsat.rules import DEFAULT, FAMILIES, REDUCE

#: The families of all rules that are listed.
LISTED = {**FAMILIES, "reduce": REDUCE}


def rules_of(path: str | Path) -> tuple[Rule, ...]:
    r"""The rules of a Python file: those among its global names, and in lists and tuples among these, in order.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    ValueError
        If the file fails, or defines no rule; the message names it.
    OSError
        If it cannot be read.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".py", delete=False) as file:
    ...     _ = file.write('from eqsat import Rule\nMINE = [Rule("twice", "x + x", "x*2")]')
    >>> [rule.name for rule in rules_of(file.name)]
    ['twice']
    """
    found: dict[Rule, None] = {}
    for value in globals_of(path).values():
        members = value if isinstance(value, list | tuple) else (value,)
        found.update((rule, None) for rule in members if isinstance(rule, Rule))
    if not found:
        raise ValueError(f"{path} defines no rule: assign eqsat.Rule objects, or a list of them, to a name")
    return tuple(found)


def rule_set(files: Iterable[str | Path] = (), without: Sequence[str] = ()) -> tuple[Rule, ...] | None:
    """The shipped rules and those of ``files``, but for the names ``without``; ``None`` for the shipped ones alone.

    Parameters
    ----------
    files : iterable of str or Path
        Python files, as for :func:`rules_of`.
    without : sequence of str
        Names of rules to leave out, which may have ``*`` and ``?``, and of families (:data:`eqsat.rules.FAMILIES`).

    Raises
    ------
    ValueError
        If nothing has such a name, or two rules share one.

    >>> len(DEFAULT) - len(rule_set(without=["mod-core"]))
    1
    >>> len(DEFAULT) - len(rule_set(without=["divmod"])) == len(FAMILIES["divmod"])
    True
    """
    if not (files or without):
        return None
    rules = [*DEFAULT]
    # a file may list shipped rules among its own
    rules += [rule for path in files for rule in rules_of(path) if rule not in DEFAULT]
    refuse_repeated(rules)
    left_out = set(named(rules, without))
    return tuple([rule for rule in rules if rule not in left_out])


def named(rules: Sequence[Rule], patterns: Iterable[str]) -> list[Rule]:
    """Those of ``rules`` whose family or name one of ``patterns`` matches; ``ValueError`` if a pattern matches none."""
    chosen: set[Rule] = set()
    names = [rule.name for rule in rules]
    for pattern in patterns:
        family = set(LISTED.get(pattern, ()))
        if not (matching := [rule for rule in rules if rule in family or fnmatchcase(rule.name, pattern)]):
            near = did_you_mean(pattern, [*LISTED, *names]) or ": eqsat rules lists them"
            raise ValueError(f"no rule is named {pattern!r}{near}")
        chosen.update(matching)
    return [rule for rule in rules if rule in chosen]
