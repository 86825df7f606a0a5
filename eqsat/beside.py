"""Which rules run beside the theory: those that its normal forms do not decide, and its spellings do not offer.

That a rule is decided is found by trying it. Of eqsat's it is written down here, and the tests try them again; a user's
own rules all run: what the theory knows to be equal it may not spell as they do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from eqsat.expr import Expr
from eqsat.rule import Edge, Rule, edges, is_commutativity, needed_edges
from eqsat.rules import DEFAULT

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


def _content(rule: Rule) -> object:
    """What a rule says, whatever it is called and whichever side of one that goes both ways comes first."""
    return frozenset((rule.left, rule.right)) if rule.both_ways else (rule.left, rule.right), rule.when


#: What the theory decides or offers.
_LEFT_OUT = frozenset(_content(rule) for rule in DEFAULT if rule.name not in UNDECIDED)


@lru_cache(maxsize=16)
def beside_theory(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules worth running beside the theory; commutativity stays, for the others to match in either order."""
    return tuple(rule for rule in rules if is_commutativity(rule) or _content(rule) not in _LEFT_OUT)


@lru_cache(maxsize=16)
def beside_with_needs(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], list[frozenset[Edge]]]:
    """The rules that run beside the theory, and what terms must have for one to match: the smallest sets of edges."""
    beside = beside_theory(rules)
    needed = {needed_edges(rule) for rule in beside if not is_commutativity(rule)}
    return beside, [edges for edges in needed if not any(other < edges for other in needed)]


def can_match(needed: Sequence[frozenset[Edge]], terms: Sequence[Expr], ignored: Collection[Expr] = ()) -> bool:
    """Whether ``terms`` have one of the ``needed`` sets of edges; if not, they are saturated as they stand."""
    present = edges(terms, ignored)
    return any(some <= present for some in needed)
