"""Rules compiled to the encoding of :mod:`eqsat.egraph.program`.

The left side is a query (:mod:`eqsat.egraph.left_sides`), the guard more facts of it, the right side actions.

A rule that measures what no node is yet (the rest of a sum) is compiled to two: the first makes the node and remembers
its match in a table of its own, the second goes on once something is known of the node. So do rules that ask for terms,
in more stages where one answer decides what is asked for next.

Of a rule about reductions egglog only finds where its left side matches, but for the ends of ranges: a match is a row
of a table, :class:`ReductionQuery` says what is in it, and the right side is built of terms, in which an index can be
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, count, islice

from eqsat.egraph.left_sides import Kept, LeftSide
from eqsat.egraph.patterns import (
    LITERALS,
    MEASURES,
    TERMS,
    Conjunct,
    Pattern,
    alternatives,
    as_sum,
    is_literal_letter,
    is_number,
    is_sum,
    letter_of,
    operands_of,
    reductions_of,
)
from eqsat.egraph.program import CONTAINERS, INFINITE, LARGEST_FINITE, PLAIN, container_text, negated
from eqsat.egraph.queries import Cut, Query, SubsumRequest, Taken
from eqsat.egraph.rule import Rule
from eqsat.egraph.shapes import Shape, shapes_of
from eqsat.egraph.variants import by_representation, matched_patterns
from eqsat.lang.expr import Expr, const
from eqsat.lang.ops import SUMS
from eqsat.lang.text import to_text
from eqsat.lang.traversal import topological, variables

#: A user's own rule with more ways to match is matched in those that are not the first at few choices. A sum may have a
#: letter that stands elsewhere too in three ways, so there are 3**n ways for n such letters.
MOST_WAYS = 256

_NUMBERS = count()
#: A name that a query gave.
_NAME = re.compile(r"_\d+")


@dataclass(frozen=True)
class Stage:
    """One egglog rule of a compiled one: a query, actions, and what the tables that it needs are declared as."""

    body: str
    head: str
    tables: str = ""
    #: What it takes any member or term of, once for each.
    taken: tuple[Taken, ...] = ()
    #: Whether it does no more than remember what it has found.
    is_search: bool = False


@dataclass(frozen=True)
class ReductionQuery:
    """How the matches of a rule about reductions are written: each as a row of a table.

    A row begins with the class of the left side, or of what has it as a part.
    """

    table: str
    #: The parts of the rule.
    pattern: Pattern
    #: What follows in a row, each with its sort in egglog: letters, ``i1``, ``i2``, ... for indices by their levels,
    #: ``end0``, ``end1``, ... for ends of ranges that the pattern does not write as letters.
    columns: tuple[tuple[str, str], ...]
    #: Those ends as the pattern writes them.
    ends: tuple[Expr, ...]
    #: The operator of the left side if there may be other members beside it, else ``""``: ``"sum"``, whose other terms,
    #: constant and factor of the match are the last three columns, or that of a container, whose others are the last.
    kept: str
    #: Whether the rule is a user's own.
    is_own: bool


@dataclass(frozen=True)
class Match:
    """A match of a rule about reductions."""

    query: ReductionQuery
    #: The class of the left side, or of what has it as a part.
    whole: int
    #: The classes of letters, indices (``i1``) and ends (``end0``).
    letters: Mapping[str, int]
    #: The numbers that letters of literals stand for.
    literals: Mapping[str, int]
    #: Beside the left side, the other terms of a sum as (class, coefficient) pairs, or the other members of a
    #: container, each once.
    rest: tuple[tuple[int, int], ...] = ()
    #: Of a sum its constant, and what the left side is multiplied by in it.
    constant: int = 0
    factor: int = 1

    @property
    def has_own_loops(self) -> bool:
        """Whether the right side has loops of its own: it merges, splits or swaps."""
        return self.query.pattern.has_own_loops

    @property
    def merges(self) -> bool:
        """Whether the right side has fewer loops than the left one."""
        pattern = self.query.pattern
        return len(reductions_of(pattern.right)) < len(reductions_of(pattern.left))


@dataclass(frozen=True)
class Compiled:
    """A way to match a rule: its stages in order, and the shapes that the e-graph must have for it.

    A ``broad`` rule has nothing but letters under one operator, so it matches every two factors of a long product. If
    there is a ``query``, Python builds the right side.
    """

    name: str
    stages: tuple[Stage, ...]
    needs: frozenset[Shape]
    broad: bool
    query: ReductionQuery | None = None


@cache
def compiled(rule: Rule, thoroughly: bool = False) -> tuple[Compiled, ...]:
    """The ways to match ``rule``, in each direction that it has; more of them ``thoroughly``.

    Raises ``ValueError`` if the rule cannot be matched; one line that names it.
    """
    if by_representation(rule):
        return ()
    found: list[Compiled] = []
    lefts = [LeftSide(one, pattern, thoroughly) for one, pattern in matched_patterns(rule, thoroughly)]
    for left, matched in zip(lefts, _ways_to_match(lefts, thoroughly), strict=True):
        pattern = left.pattern
        needs = shapes_of(pattern)
        if not pattern.binds_index:
            ways = [*_all_stages(left, matched)]
            if not ways:
                raise ValueError(
                    f"rule {rule.name!r}: no match tells what the letters of the numbers in {to_text(pattern.left)!r} "
                    "are: write one letter for each number, and say in the guard how they are related"
                )
            found += [Compiled(rule.name, stages, needs, _is_broad(pattern.left)) for stages in ways]
        elif thoroughly or not pattern.reduces_extremes:
            # of a shipped rule about extremes code takes all operands at once
            queries = _reduction_queries(left, matched)
            found += [Compiled(rule.name, (stage,), needs, False, query) for stage, query in queries]
    return tuple(found)


def _is_broad(left: Expr) -> bool:
    """Whether a left side has nothing but letters under one operator."""
    members = operands_of(left, left.op) if left.op in CONTAINERS else ()
    return bool(members) and all(letter_of(member) or is_literal_letter(member) for member in members)


def _ways_to_match(lefts: Sequence[LeftSide], thoroughly: bool) -> list[list[tuple[Query, Kept]]]:
    """The ways to match each left side of a rule; of a user's own no more than ``MOST_WAYS`` for all of them."""
    counted = islice(chain.from_iterable(left.top() for left in lefts), MOST_WAYS + 1)
    if not thoroughly or sum(1 for _ in counted) <= MOST_WAYS:
        return [[*left.top()] for left in lefts]
    return [left.few(MOST_WAYS // len(lefts)) for left in lefts]


def _all_stages(left: LeftSide, ways: Iterable[tuple[Query, Kept]]) -> Iterator[tuple[Stage, ...]]:
    """Every way to match the left side, for each alternative of the guard."""
    for conjuncts in alternatives(left.pattern.when):
        if left.thoroughly:
            conjuncts = [*conjuncts, *_finite_bounds(left.pattern.right, conjuncts)]
        for query, head in ways:
            yield _staged(query, left.pattern, conjuncts, head)


def _staged(query: Query, pattern: Pattern, conjuncts: Sequence[Conjunct], kept: Kept) -> tuple[Stage, ...]:
    """The rule in one stage; in more if what the guard measures must be made first, or the terms of a letter found."""
    measured = _measured_letters(conjuncts, pattern.right)
    made = {x: query.letters[x] for x in measured if query.letters[x].startswith("(")}
    compared = [c for c in conjuncts if c.compares_terms]
    if not query.cuts and (made or compared):
        # what needs nothing made is decided before anything is
        decided = [c for c in conjuncts if c not in compared and made.keys().isdisjoint(_measured_letters([c]))]
        conjuncts = [c for c in conjuncts if c not in decided]
        for conjunct in decided:
            query = query.guarded(conjunct)
    stages: list[Stage] = []
    if made or query.cuts:
        stages, query = _made(query, made)
    if compared:
        stage, query = _asked(query, compared)
        stages.append(stage)
    facts, action = _finish(query, pattern, conjuncts, kept)
    return (*stages, Stage(_body(facts), action, taken=_taken(query, facts)))


def _asked(query: Query, compared: Iterable[Conjunct]) -> tuple[Stage, Query]:
    """The stage that asks whether comparisons of terms hold; the query that goes on from there."""
    actions = []
    for conjunct in compared:
        comparison, query = _comparison(query, conjunct)
        actions.append(comparison)
    stage, row = _found(query, query.facts, actions, [*query.sorts])
    return stage, replace(query, facts=(row,))


def _made(query: Query, made: Mapping[str, str]) -> tuple[list[Stage], Query]:
    """The stages that find the terms of letters, and make what letters stand for; the query that goes on from there."""
    groups = _by_stage(query.cuts) or [[]]
    cut, columns = len(query.facts), [*query.sorts]
    if query.cuts:
        cut, columns = query.cuts[0].after, [*query.cuts[0].columns]
    # what is made of the answer to a request waits for that
    waits = any(not set(_NAME.findall(text)) <= {*columns} for text in made.values())
    actions = [f"(let made_{x} {text})" for x, text in made.items()]
    for x in made:
        query = query.bind(x, f"made_{x}").declare(f"made_{x}", "E")
    columns += [] if waits else [f"made_{x}" for x in made]
    stages: list[Stage] = []
    facts = query.facts[:cut]
    for group, following in zip(groups, [*groups[1:], []], strict=True):
        begun = [] if waits or stages else actions
        requests = [request for request in group if isinstance(request, SubsumRequest)]
        stage, row = _found(query, facts, [*begun, *[request.action for request in requests]], columns)
        stages.append(stage)
        end = following[0].after if following else len(query.facts)
        facts = (row, *[request.fact for request in requests], *query.facts[cut:end])
        cut = end
        columns += [name for a in following[:1] for name in a.columns if name not in columns]
    if waits:
        stage, row = _found(query, facts, actions, [*query.sorts])
        stages.append(stage)
        facts = (row,)
    return stages, replace(query, facts=facts)


def _finite_bounds(right: Expr, conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
    """Comparisons that hold if the bounds are finite that the right side has, or that a guard multiplies or divides.

    An infinite bound is a large number to egglog. The sums of such bounds compare as they should with one another and
    with small numbers; products, quotients and large literals need not.
    """
    sides = [[x, y] for _, x, y in conjuncts if not all(map(_is_small, topological([x, y])))]
    return [
        Conjunct("gt", v, const(-INFINITE)) if str(v.value).startswith("vmin_") else Conjunct("lt", v, const(INFINITE))
        for v in variables([right, *chain.from_iterable(sides)])
        if str(v.value).startswith(("vmin_", "vmax_"))
    ]


def _is_small(term: Expr) -> bool:
    """Whether a part of a guard is far from infinite where its operands are."""
    if term.op == "const":
        return abs(term.vmin) <= LARGEST_FINITE
    return term.op in SUMS or term.op in ("var", "min", "max")


def _body(facts: Iterable[str]) -> str:
    """The facts of one egglog rule, those that make multisets last.

    egglog joins tables, and then evaluates the other facts in their order: most matches fail by numbers.
    """
    return " ".join(sorted(facts, key=lambda fact: "multiset-" in fact))


def _comparison(query: Query, conjunct: Conjunct) -> tuple[str, Query]:
    """A comparison of terms, which is by ``<``, and the query with the numbers that it needs."""
    left, query = _build(query, conjunct.left)
    right, query = _build(query, conjunct.right)
    return f"(Lt {left} {right})", query


def _found(query: Query, facts: Iterable[str], actions: Iterable[str], columns: Sequence[str]) -> tuple[Stage, str]:
    """A stage that does what is asked for and remembers its match in a row of a table of its own; that row."""
    names, sorts = " ".join(columns), " ".join([query.sorts[name] for name in columns])
    return _remembered(_body(facts), " ".join(actions), names, sorts, _taken(query, facts))


def _taken(query: Query, facts: Iterable[str]) -> tuple[Taken, ...]:
    return tuple([query.taken[fact] for fact in facts if fact in query.taken])


@cache
def _remembered(body: str, actions: str, names: str, sorts: str, taken: tuple[Taken, ...]) -> tuple[Stage, str]:
    """The stage, and the row; ways to match that begin alike share a stage."""
    table = f"found{next(_NUMBERS)}"
    row = f"({table} {names})"
    return Stage(body, f"{actions} {row}", f"(relation {table} ({sorts}))", taken, not actions), row


def _by_stage(cuts: Sequence[Cut]) -> list[list[Cut]]:
    """The cuts in turn: a request that names what an answer has decided waits for it."""
    stages: list[list[Cut]] = []
    for cut in cuts:
        if stages and isinstance(cut, SubsumRequest):
            named = _NAME.findall(f"{cut.whole} {cut.letter} {'' if cut.is_open else cut.times}")
            if set(named) <= {*stages[-1][0].columns}:
                stages[-1].append(cut)
                continue
        stages.append([cut])
    return stages


def _reduction_queries(left: LeftSide, ways: Iterable[tuple[Query, Kept]]) -> Iterator[tuple[Stage, ReductionQuery]]:
    """Every way to match the left side of a rule about reductions: a query that writes rows, what is in them."""
    for query, kept in ways:
        made = {x: text for x, text in query.letters.items() if text.startswith("(")}
        # the name, the sort and the value of each column
        row = [(x, "E", f"made_{x}" if x in made else text) for x, text in query.letters.items()]
        row += [(name, "i64", name) for name in query.sorts if name in LITERALS]
        if kept.op == "sum":
            row += [("terms", "MT", kept.members), ("constant", "i64", kept.constant), ("factor", "i64", kept.factor)]
        elif kept.op:
            row.append(("members", "ME", kept.members))
        table = f"match{next(_NUMBERS)}"
        actions = [f"(let made_{x} {text})" for x, text in made.items()]
        head = f"{' '.join(actions)} ({table} {' '.join([kept.of, *[value for _, _, value in row]])})"
        declared = f"(relation {table} ({' '.join(['E', *[sort for _, sort, _ in row]])}))"
        columns = tuple([(name, sort) for name, sort, _ in row])
        yield (
            Stage(_body(query.facts), head, declared, _taken(query, query.facts)),
            ReductionQuery(table, left.pattern, columns, left.ends, kept.op, left.thoroughly),
        )


def _measured_letters(conjuncts: Sequence[Conjunct], *right: Expr) -> list[str]:
    """The letters that conjuncts or the right side measure, and those that conjuncts compare."""
    guard = [side for _, x, y in conjuncts for side in (x, y)]
    measured = [name.split("_")[1] for v in variables([*right, *guard]) if (name := str(v.value)) in MEASURES]
    return [*dict.fromkeys([*measured, *[str(v.value) for v in variables(guard) if str(v.value) in TERMS]])]


def _finish(query: Query, pattern: Pattern, conjuncts: Sequence[Conjunct], kept: Kept) -> tuple[tuple[str, ...], str]:
    """The guard's facts, and the action."""
    for conjunct in conjuncts:
        if conjunct.compares_terms:
            comparison, query = _comparison(query, conjunct)
            query = query.fact(f"(= (Yes) {comparison})")
        else:
            query = query.guarded(conjunct)
    right = pattern.right
    if kept.op == "sum":
        terms, added, query = _flat(query, right, kept.factor)
        total = kept.constant
        if added != "0":
            total, query = query.computed("i64", f"(+ {kept.constant} {added})")
        return query.facts, f"(union e (Sum {_gathered(terms, kept.members)} {total}))"
    text, query = _build(query, right)
    if kept.op:
        text = container_text(kept.op, f"(multiset-insert {kept.members} {text})")
    return query.facts, f"(union {kept.of} {text})"


def _flat(query: Query, term: Expr, factor: str) -> tuple[list[str], str, Query]:
    """The terms of the right side as a sum, times the factor, its constant, and the query with their numbers."""
    constant, addends = as_sum(term)
    total, query = query.times(constant, factor)
    terms = []
    for coefficient, addend in addends:
        number, query = query.times(coefficient, factor)
        if number == "1" and (common := query.common.get(letter_of(addend) or "")):
            terms.append(common.terms)
            total, query = query.computed("i64", f"(+ {total} {common.constant})")
            continue
        text, query = _build(query, addend)
        terms.append(f"(Sc {number} {text})")
    return terms, total, query


def _build(query: Query, term: Expr) -> tuple[str, Query]:
    """The right side, or a part of it, as an action, and the query with the numbers that it needs."""
    letter = letter_of(term)
    if letter is not None:
        return query.letters[letter], query
    if is_number(term):
        number, query = query.number(term)
        return f"(Sum (multiset-of) {number})", query
    if term.op == "bool":
        return "(Yes)" if term.value else "(No)", query
    if is_sum(term):
        terms, constant, query = _flat(query, term, "1")
        return f"(Sum {_gathered(terms)} {constant})", query
    texts = []
    for arg in operands_of(term, term.op) if term.op in CONTAINERS else term.args:
        text, query = _build(query, arg)
        texts.append(text)
    if term.op in CONTAINERS:
        return container_text(term.op, f"(multiset-of {' '.join(texts)})"), query
    inside = negated(term.op, texts)
    op, operands = inside or (term.op, texts)
    if op not in PLAIN:
        raise query.error(f"{term.op!r} cannot be built")
    text = f"({PLAIN[op].name} {' '.join(operands)})"
    return f"(Not {text})" if inside else text, query


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
