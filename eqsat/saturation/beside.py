"""Which rules run beside the theory: those that its normal forms do not decide, and its spellings do not offer.

That a rule is decided is found by trying it. Of eqsat's it is written down here, and the tests try them again. A user's
own rules all run, and all others with them: what theirs match may be one addend of a sum, or a form of a term that is
not the cheapest, and only the rules lead there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from eqsat.expr import TRUE, Expr, substitute, topological
from eqsat.rule import Rule, is_commutativity
from eqsat.rules import DEFAULT
from eqsat.saturation.patterns import binds_index, is_condition_letter, pattern_of

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

#: What the engine spells with other operators.
_SPELLED = {"sub": ("add", "mul"), "neg": ("mul",), "le": ("not", "lt"), "ne": ("not", "eq")}

Edge = tuple[str, str]


def _content(rule: Rule) -> object:
    """What a rule says, whatever it is called and whichever side of one that goes both ways comes first."""
    return frozenset((rule.left, rule.right)) if rule.both_ways else (rule.left, rule.right), rule.when


#: What the theory decides or offers.
_LEFT_OUT = frozenset(_content(rule) for rule in DEFAULT if rule.name not in UNDECIDED)
_SHIPPED = frozenset(map(_content, DEFAULT))


@lru_cache(maxsize=16)
def beside_theory(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules worth running beside the theory; commutativity stays, for the others to match in either order."""
    return tuple(rule for rule in rules if is_commutativity(rule) or _content(rule) not in _LEFT_OUT)


@lru_cache(maxsize=16)
def beside_with_needs(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], list[frozenset[Edge]]]:
    """The rules that run beside the theory, and what terms must have for one to match: the smallest sets of edges."""
    beside = beside_theory(rules)
    return beside, _smallest(needed_edges(rule) for rule in beside if not is_commutativity(rule))


@lru_cache(maxsize=16)
def operators_of_own(rules: tuple[Rule, ...]) -> list[frozenset[Edge]]:
    """The operators in the left side of each rule that is not shipped, as edges; of both sides if it goes both ways."""
    own = [rule for rule in rules if _content(rule) not in _SHIPPED and not binds_index(rule)]
    sides = [*own, *[rule.reverse() for rule in own if rule.both_ways]]
    return _smallest(frozenset(edge for edge in needed_edges(rule) if not edge[0]) for rule in sides)


def _smallest(sets: Iterable[frozenset[Edge]]) -> list[frozenset[Edge]]:
    """The sets that have no other among their subsets."""
    distinct = set(sets)
    return [some for some in distinct if not any(other < some for other in distinct)]


def edges(roots: Iterable[Expr], ignored: Collection[Expr] = ()) -> frozenset[Edge]:
    """Which operator occurs directly below which, as the engine spells them; ``("", op)`` for each operator itself.

    Those of the terms ``ignored`` are left out.
    """
    terms = [t for t in topological(roots) if t not in ignored]
    pairs = {(t.op, a.op if a.args and a not in ignored else "") for t in terms for a in t.args}
    return frozenset().union(*(_spelled_edges(*pair) for pair in pairs))


@cache
def _spelled_edges(op: str, below: str) -> frozenset[Edge]:
    """The edges of ``op`` with ``below`` as an operand; the latter is empty for a leaf."""
    outer = _SPELLED.get(op, (op,))
    inner = _SPELLED.get(below, (below,))[:1] if below else ()
    return frozenset([*((("", o)) for o in outer), *pairwise(outer), *((o, i) for o in outer for i in inner)])


@cache
def needed_edges(rule: Rule) -> frozenset[Edge]:
    """The edges that a term must have for the left side of ``rule`` to match it."""
    left = pattern_of(rule).left
    conditions = {t: TRUE for t in topological([left]) if is_condition_letter(t)}
    return edges(substitute([left], conditions))


def can_match(needed: Sequence[frozenset[Edge]], terms: Sequence[Expr], ignored: Collection[Expr] = ()) -> bool:
    """Whether ``terms`` have one of the ``needed`` sets of edges; if not, they are saturated as they stand."""
    present = edges(terms, ignored)
    return any(some <= present for some in needed)
