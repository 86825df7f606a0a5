"""Which rules run in an e-graph: none that another one covers there; without the theory, none that needs it.

With the theory these are the shipped rules tagged ``modulo_theory`` and the user's own, unless one of those says the
same as a shipped rule that is not tagged.
"""

from __future__ import annotations

from functools import cache, lru_cache

from eqsat.egraph.compilation import compiled
from eqsat.egraph.rule import Rule
from eqsat.rules import DEFAULT, REDUCE


def _content(rule: Rule) -> object:
    """What a rule says, whatever it is called and whichever side of one that goes both ways comes first."""
    return frozenset((rule.left, rule.right)) if rule.both_ways else (rule.left, rule.right), rule.when, rule.beside


_OF_REDUCTIONS = frozenset(map(_content, REDUCE))
_SHIPPED = _OF_REDUCTIONS.union(map(_content, DEFAULT))
_LEFT_OUT = frozenset(_content(rule) for rule in DEFAULT if not rule.modulo_theory)


@lru_cache(maxsize=32)
def relevant_rules(rules: tuple[Rule, ...], modulo_theory: bool = True) -> tuple[Rule, ...]:
    """The rules worth running in an e-graph: none that another one of them covers there.

    A shipped rule that does not run modulo the theory says that two terms have one normal form, which the theory finds
    without it. Raises ``ValueError`` if one of the user's own cannot be matched.
    """
    names = {rule.name for rule in rules}
    found = [rule for rule in rules if rule.covered_by not in names and (modulo_theory or not rule.needs_theory)]
    if modulo_theory:
        found = [rule for rule in found if _content(rule) not in _LEFT_OUT]
        # the theory takes signs out of extremes over ranges; the rule would make the opposite of every body
        found = [rule for rule in found if not (_content(rule) in _OF_REDUCTIONS and rule.pattern.turns_extreme)]
    for rule in found:
        if not is_shipped(rule):
            # the others are compiled when they may match
            compiled(rule, True)
    return tuple(found)


@cache
def relevant_of_default(modulo_theory: bool) -> tuple[Rule, ...]:
    """As :func:`relevant_rules`, of eqsat's own, without hashing all of them to find it."""
    return relevant_rules(DEFAULT, modulo_theory)


def is_shipped(rule: Rule) -> bool:
    """Whether the rule is one of eqsat's, whatever it is called."""
    return _content(rule) in _SHIPPED
