"""The guards of rules as facts, and their right sides as actions."""

from __future__ import annotations

from collections.abc import Sequence

from eqsat.egraph.left_sides import Kept
from eqsat.egraph.patterns import Conjunct, Pattern
from eqsat.egraph.program import CONTAINERS, PLAIN, container_text
from eqsat.egraph.queries import Query
from eqsat.egraph.shapes import as_sum, has_terms, is_number, is_sum, letter_of, operands_of
from eqsat.lang.expr import Expr


def finish(query: Query, pattern: Pattern, conjuncts: Sequence[Conjunct], kept: Kept) -> tuple[tuple[str, ...], str]:
    """The guard's facts, and the action."""
    for op, x, y in conjuncts:
        if has_terms(x) or has_terms(y):
            query, one = build(query, x)
            query, two = build(query, y)
            query = query.fact(f"(= (Yes) (Lt {one} {two}))")
            continue
        query = query.guarded((op, x, y))
    right = pattern.right
    if kept.op == "sum":
        query, terms, added = flat(query, right, kept.factor)
        total = kept.constant
        if added != "0":
            total, query = query.name("i64")
            query = query.fact(f"(= {total} (+ {kept.constant} {added}))")
        return query.facts, f"(union e (Sum {_gathered(terms, kept.members)} {total}))"
    query, text = build(query, right)
    if kept.op:
        text = container_text(kept.op, f"(multiset-insert {kept.members} {text})")
    return query.facts, f"(union {kept.of} {text})"


def flat(query: Query, term: Expr, factor: str) -> tuple[Query, list[str], str]:
    """The terms of the right side as a sum, times the factor, and its constant."""
    constant, addends = as_sum(term)
    total, query = query.times(constant, factor)
    terms = []
    for coefficient, addend in addends:
        number, query = query.times(coefficient, factor)
        if number == "1" and (common := query.common.get(letter_of(addend) or "")):
            terms.append(common[0])
            before = total
            total, query = query.name("i64")
            query = query.fact(f"(= {total} (+ {before} {common[1]}))")
            continue
        query, text = build(query, addend)
        terms.append(f"(Sc {number} {text})")
    return query, terms, total


def build(query: Query, term: Expr) -> tuple[Query, str]:
    """The right side, or a part of it, as an action."""
    letter = letter_of(term)
    if letter is not None:
        return query, query.letters[letter]
    if is_number(term):
        number, query = query.number(term)
        return query, f"(Sum (multiset-of) {number})"
    if term.op == "bool":
        return query, "(Yes)" if term.value else "(No)"
    if is_sum(term):
        query, terms, constant = flat(query, term, "1")
        return query, f"(Sum {_gathered(terms)} {constant})"
    if term.op in CONTAINERS:
        texts = []
        for member in operands_of(term, term.op):
            query, text = build(query, member)
            texts.append(text)
        return query, container_text(term.op, f"(multiset-of {' '.join(texts)})")
    texts = []
    for arg in term.args:
        query, text = build(query, arg)
        texts.append(text)
    if term.op == "le":
        return query, f"(Not (Lt {texts[1]} {texts[0]}))"
    if term.op == "ne":
        return query, f"(Not (Eq {texts[0]} {texts[1]}))"
    if term.op not in PLAIN:
        raise query.fail(f"{term.op!r} cannot be built")
    return query, f"({PLAIN[term.op][0]} {' '.join(texts)})"


def _gathered(terms: Sequence[str], members: str = "") -> str:
    """A multiset of terms, besides some ``members``; names among them are of multisets themselves."""
    alone = [t for t in terms if t.startswith("(")]
    several = [t for t in terms if t not in alone]
    text = members or f"(multiset-of {' '.join(alone)})"
    for term in alone if members else ():
        text = f"(multiset-insert {text} {term})"
    for name in several:
        text = f"(multiset-sum {text} {name})"
    return text
