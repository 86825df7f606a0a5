"""Which rules run beside the theory: those that its normal forms do not decide, and its spellings do not offer.

That a rule is decided is found by trying it, which takes a second for all of eqsat's. Of those it is written down here,
and the tests try them again.
"""

from __future__ import annotations

from functools import lru_cache

from eqsat.linear import Theory
from eqsat.rule import Rule, is_commutativity, rule_instances
from eqsat.rules import DEFAULT

#: A rule is left to the theory if that decides at least this share of its instances.
MOST_INSTANCES = 0.75

_SHIPPED = frozenset(DEFAULT)
#: The names of the shipped rules that the theory does not decide.
UNDECIDED = frozenset(
    {
        "eq-or-lt",
        "mod-digits-inner",
        "where-add-literals",
        "where-add-where",
        "where-div-literals",
        "where-merge-and",
        "where-merge-or",
        "where-mod-literals",
        "where-mul-mask-not",
        "where-mul-scaled",
        "where-pull-div",
        "where-pull-mod",
        "where-pull-mul",
        "where-pull-offset",
    }
)
#: The names of the shipped rules whose right side the theory offers wherever it meets the left.
SPELLED = frozenset(
    {
        "div-two-periods",
        "mod-two-periods",
        "two-periods-div-symbolic",
        "two-periods-mod-symbolic",
        "symbolic-two-periods-div",
    }
)


@lru_cache(maxsize=16)
def beside_theory(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules worth running beside the theory; commutativity stays, for the others to match in either order."""
    return tuple(rule for rule in rules if is_commutativity(rule) or _is_undecided(rule))


def _is_undecided(rule: Rule) -> bool:
    return rule.name in UNDECIDED if rule in _SHIPPED else not is_decided(rule)


def is_decided(rule: Rule) -> bool:
    """Whether both sides of most sampled instances of a rule have the same normal form.

    The few that differ are spellings of one value, which the input and the theory offer too.
    """
    theory = Theory()
    decided = [theory.simplify(left) is theory.simplify(right) for left, right in rule_instances(rule)]
    return bool(decided) and sum(decided) >= MOST_INSTANCES * len(decided)
