"""Which rules run in an e-graph: not those that others cover there.

Where the theory normalises, those tagged ``modulo_theory`` and the rules of the user's own, but for those that say what
a shipped rule says that is not tagged.
"""

from __future__ import annotations

from functools import lru_cache

from eqsat.egraph.rule import Rule
from eqsat.rules import DEFAULT, REDUCE


def _content(rule: Rule) -> object:
    """What a rule says, whatever it is called and whichever side of one that goes both ways comes first."""
    return frozenset((rule.left, rule.right)) if rule.both_ways else (rule.left, rule.right), rule.when


_SHIPPED = frozenset(map(_content, (*DEFAULT, *REDUCE)))
_LEFT_OUT = frozenset(_content(rule) for rule in DEFAULT if not rule.modulo_theory)


@lru_cache(maxsize=16)
def uncovered(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that an e-graph needs: none that another one of them covers there."""
    names = {rule.name for rule in rules}
    return tuple(rule for rule in rules if rule.covered_by not in names)


@lru_cache(maxsize=16)
def uncovered_without_bits(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The uncovered rules that an input without bit operators may need."""
    return without_bits(uncovered(rules))


@lru_cache(maxsize=16)
def relevant_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules worth running modulo the theory.

    Of the shipped ones the others only say that two terms have one normal form, which the theory finds without them.
    """
    return tuple(rule for rule in uncovered(rules) if _content(rule) not in _LEFT_OUT)


@lru_cache(maxsize=16)
def relevant_without_bits(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The relevant rules that an input without bit operators may need."""
    return without_bits(relevant_rules(rules))


@lru_cache(maxsize=16)
def without_bits(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that an input without bit operators may need: all, if one of the user's own has such."""
    if any(rule.pattern.has_bits and not is_shipped(rule) for rule in rules):
        return rules
    return tuple(rule for rule in rules if not rule.pattern.has_bits)


def is_shipped(rule: Rule) -> bool:
    """Whether the rule is one of eqsat's, whatever it is called."""
    return _content(rule) in _SHIPPED
