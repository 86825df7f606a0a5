"""Rules compiled to the encoding of :mod:`eqsat.egraph.program`: matching modulo associativity and commutativity.

A sum in a pattern matches some of the terms of a longer one. At the top of the left side the others are kept, and the
match may be up to a literal factor, as ``x - (x//n)*n`` is in ``a*5 - (a//8)*40 + b``; further down, a letter that
stands nowhere else takes all the others. Products, junctions, minima and maxima match in the same way. A letter that is
bound elsewhere to a sum of several terms matches these terms wherever a sum has them, or more of them (``ask`` and
``piece``).

A rule that measures what no node is yet (the rest of a sum) is compiled to two: the first makes the node and remembers
its match in a table of its own, the second goes on once something is known of the node. So do rules that ask for terms,
in more stages where one answer decides what is asked for next.

Of a rule about reductions egglog only finds where its left side matches, but for the ends of ranges: a match is a row
of a table, :class:`ReductionQuery` says what is in it, and the right side is built of terms, in which an index can be
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress, count

from eqsat.egraph.patterns import (
    LITERALS,
    MEASURES,
    TERMS,
    Conjunct,
    Pattern,
    alternatives,
    is_condition_letter,
    moved_letter,
    places_of_letters,
    reductions_of,
)
from eqsat.egraph.program import CONTAINERS, PLAIN, container_text
from eqsat.egraph.rule import Rule
from eqsat.egraph.shapes import (
    as_sum,
    ends_in,
    has_terms,
    is_literal_letter,
    is_number,
    is_sum,
    letter_of,
    operands_of,
)
from eqsat.lang.expr import FALSE, Expr, buffers, const, index_level, is_index, substitute, topological, var, variables
from eqsat.lang.ops import OPS, REDUCTIONS
from eqsat.lang.text import to_text

#: A shipped rule may take the constant of a sum that has fewer other terms left: the more there are, the more sums it
#: would make, and the less each is worth.
MOST_LEFT = 5


_FACTS = {"lt": "<", "le": "<=", "eq": "=", "ne": "!=", "ge": ">=", "gt": ">"}


@dataclass(frozen=True)
class Stage:
    """One egglog rule of a compiled one: a query, actions, and what the tables that it needs are declared as."""

    body: str
    head: str
    tables: str = ""


@dataclass(frozen=True)
class ReductionQuery:
    """How the matches of a rule about reductions are written.

    Attributes
    ----------
    table : str
        The table whose rows are matches. A row begins with the class of the left side, or of what has it as a part.
    pattern : Pattern
        The parts of the rule.
    columns : tuple of (str, str)
        What follows, each with its sort in egglog: letters, ``i1``, ``i2``, ... for the indices by their levels,
        ``end0``, ``end1``, ... for ends of ranges that the pattern does not write as letters.
    ends : tuple of Expr
        Those ends as the pattern writes them.
    kept : str
        The operator of the left side if there may be other members beside it, else ``""``: ``"sum"``, whose other
        terms, constant and factor of the match are the last three columns, or that of a container, whose other members
        are the last.
    """

    table: str
    pattern: Pattern
    columns: tuple[tuple[str, str], ...]
    ends: tuple[Expr, ...]
    kept: str


@dataclass(frozen=True)
class Compiled:
    """A way to match a rule: its stages in order, and the constructors that the first one reads.

    A rule that is ``broad`` has nothing but letters under one operator: of a long product it takes every two factors.
    What is done with the matches of one that has a ``query`` Python says. ``addends`` are the operators of the terms of
    sums that are looked up with their operands (:func:`eqsat.egraph.program.terms_with`).
    """

    name: str
    stages: tuple[Stage, ...]
    reads: frozenset[str]
    broad: bool
    query: ReductionQuery | None = None
    addends: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _SubsumRequest:
    """A letter whose terms a sum is asked for: what is left then, and the constant of the letter's normal form.

    ``after`` facts and ``columns`` names came before.
    """

    whole: str
    letter: str
    times: str
    left: str
    inside: str
    after: int
    columns: tuple[str, ...]
    #: Whether any multiple will do that cancels a term.
    is_open: bool

    @property
    def action(self) -> str:
        """The action that asks."""
        return (
            f"(seek {self.whole} {self.letter})" if self.is_open else f"(ask {self.whole} {self.letter} {self.times})"
        )

    @property
    def fact(self) -> str:
        """The fact that something is left."""
        return f"(piece {self.whole} {self.letter} {self.times} {self.left} {self.inside})"


def _by_stage(requests: Sequence[_SubsumRequest]) -> list[list[_SubsumRequest]]:
    """The requests in turn: one that names what an answer has decided waits for it."""
    stages: list[list[_SubsumRequest]] = []
    for request in requests:
        named = re.findall(r"_\d+", f"{request.whole} {request.letter} {'' if request.is_open else request.times}")
        if stages and set(named) <= {*stages[-1][0].columns}:
            stages[-1].append(request)
        else:
            stages.append([request])
    return stages


@dataclass(frozen=True)
class _Left:
    """What is left of a sum: its terms, the factor of the match, and the letter that takes them, if one does."""

    terms: str
    factor: str = ""
    #: What letters that are literals have taken of the constant.
    taken: str = ""
    taker: str = ""
    negative: bool = False
    request: _SubsumRequest | None = None


@dataclass(frozen=True)
class _State:
    """A match as far as it is compiled; branches share what they began with."""

    facts: tuple[str, ...] = ()
    #: Every name of the query by its sort.
    sorts: dict[str, str] = field(default_factory=dict)
    #: The class of each letter: a name, or the text that makes it.
    letters: dict[str, str] = field(default_factory=dict)
    #: The numbers that letters are which stand for the constant of a sum.
    literals: dict[str, str] = field(default_factory=dict)
    #: Of the letters that are one term of a sum, its coefficient and class.
    terms: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: The terms and constant of the first of two sums that share a letter, and its other letter, by that letter.
    first: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    #: Of the letters that are all that two sums share, the terms and the constant.
    common: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Numbers that were computed, by what they are.
    numbers: dict[Expr, str] = field(default_factory=dict)
    requests: tuple[_SubsumRequest, ...] = ()
    #: The sum, the term and its coefficient, of classes that are looked up together with the node that they have.
    places: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    fresh: int = 0

    def fact(self, *texts: str) -> _State:
        return replace(self, facts=(*self.facts, *texts))

    def named(self, *sorts: str) -> tuple[tuple[str, ...], _State]:
        """Fresh names of these sorts."""
        names = tuple([f"_{self.fresh + i}" for i in range(len(sorts))])
        sorted_names = {**self.sorts, **dict(zip(names, sorts, strict=True))}
        return names, replace(self, fresh=self.fresh + len(sorts), sorts=sorted_names)

    def name(self, sort: str) -> tuple[str, _State]:
        (name,), state = self.named(sort)
        return name, state

    def bind(self, letter: str, text: str) -> _State:
        return replace(self, letters={**self.letters, letter: text})

    def bind_term(self, letter: str, coefficient: str, atom: str) -> _State:
        """A letter that is one term of a sum."""
        state = self.bind(letter, f"(Sum (multiset-of (Sc {coefficient} {atom})) 0)")
        return replace(state, terms={**self.terms, letter: (coefficient, atom)})

    def declare(self, name: str, sort: str) -> _State:
        return replace(self, sorts={**self.sorts, name: sort})


def _is_one_term(term: Expr) -> bool:
    """Whether a sum in a pattern is a multiple of one term with an operator."""
    constant, addends = as_sum(term)
    return len(addends) == 1 and constant.op == "const" and not constant.vmin and letter_of(addends[0][1]) is None


def _open_letter(term: Expr, state: _State) -> str | None:
    """A literal letter that a coefficient or constant speaks of and that is not bound; none if all in it is known."""
    found = [t for t in topological([term]) if is_literal_letter(t) and str(t.value) not in state.sorts]
    return str(found[0].value) if found else None


@dataclass(frozen=True)
class _Kept:
    """What a match at the top leaves of its class: of a sum its terms, constant and factor, of a container members."""

    op: str = ""
    members: str = ""
    constant: str = "0"
    factor: str = "1"
    #: The class that is equal to the right side, or makes it.
    of: str = "e"


class _Matcher:
    """Compiles one rule; ``run`` yields each way to match it."""

    def __init__(self, rule: Rule, pattern: Pattern) -> None:
        self.rule = rule
        self.pattern = pattern
        #: The letter that each of two operands of one node adds to another, by these operands.
        self.shared = _shared(pattern.left) if rule.modulo_theory else {}
        self.reduces = pattern.binds_index
        #: The operators of terms that are looked up with their operands.
        self.addends: set[str] = set()
        #: The ends of ranges that are more than a letter: what is in them is found from the terms.
        self.ends = tuple(
            dict.fromkeys(e for t in reductions_of(pattern.left) for e in t.args[2:] if letter_of(e) is None)
        )

    def fail(self, what: str) -> ValueError:
        return ValueError(f"rule {self.rule.name!r}: {what}")

    # ---- the query

    def match(self, state: _State, term: Expr, at: str) -> Iterator[_State]:
        """``term``, below the top, against the class ``at``."""
        letter = letter_of(term)
        if letter is not None:
            yield self.letter(state, letter, at)
        elif term.op == "var" and is_index(term):
            yield self.letter(state, f"i{index_level(term)}", at)
        elif term.op == "const" or is_literal_letter(term):
            yield self.number_at(state, term, at)
        elif is_number(term):
            number, state = self.number(state, term)
            yield state.fact(f"(= {number} (lit {at}))")
        elif term.op == "bool":
            yield state.fact(f"(= {at} ({'Yes' if term.value else 'No'}))")
        elif term in self.shared:
            yield from self.sharing(state, term, at)
        elif is_sum(term):
            yield from self.sum(state, term, at)
        elif term.op in CONTAINERS:
            for matched, rest in self.container(state, term, at, at_top=False):
                yield matched.fact(f"(= 0 (multiset-length {rest}))") if rest else matched
        else:
            yield from self.plain(state, term, at)

    def letter(self, state: _State, letter: str, at: str) -> _State:
        """A letter that stands for the class ``at``."""
        known = state.letters.get(letter)
        if known is None:
            return state.bind(letter, at)
        return state.fact(f"(= {known} {at})")

    def number_at(self, state: _State, term: Expr, at: str) -> _State:
        """A literal, or a letter for one, that the class ``at`` is."""
        if term.op == "const":
            return state.fact(f"(= {term.value} (lit {at}))")
        return self.literal(state, str(term.value), f"(lit {at})")

    def literal(self, state: _State, letter: str, text: str) -> _State:
        return state.declare(letter, "i64").fact(f"(= {letter} {text})")

    def plain(self, state: _State, term: Expr, at: str) -> Iterator[_State]:
        """A node with a fixed number of operands."""
        op, args, negated = term.op, list(term.args), False
        if op in ("le", "ne"):
            op, args, negated = ("lt", args[::-1], True) if op == "le" else ("eq", args, True)
        if op not in PLAIN:
            raise self.fail(f"{term.op!r} cannot be matched")
        if negated:
            inner, state = state.name("E")
            state = state.fact(f"(= {at} (Not {inner}))")
            at = inner
        orders = [args, args[::-1]] if op == "eq" else [args]
        for ordered in orders:
            names = []
            now = state
            for _ in ordered:
                name, now = now.name("E")
                names.append(name)
            operands = " ".join(names)
            if at in state.places:
                whole, term_name, scale = state.places[at]
                now = now.fact(f"(at-{PLAIN[op][0]} {whole} {term_name} {at} {scale} {operands})")
            else:
                now = now.fact(f"(= {at} ({PLAIN[op][0]} {operands}))")
            if op in REDUCTIONS:
                for end, name in zip(ordered[2:], names[2:], strict=True):
                    if end in self.ends:
                        now = self.letter(now, f"end{self.ends.index(end)}", name)
                # a body, or an index, may be what is an end too
                kept = [at < 2 or part not in self.ends for at, part in enumerate(ordered)]
                ordered, names = list(compress(ordered, kept)), list(compress(names, kept))
            # what is written out is matched before letters, which may stand in it
            pairs = sorted(zip(ordered, names, strict=True), key=lambda pair: letter_of(pair[0]) is not None)
            yield from self.all_of(now, pairs)

    def all_of(self, state: _State, pairs: Sequence[tuple[Expr, str]]) -> Iterator[_State]:
        if not pairs:
            yield state
            return
        for matched in self.match(state, *pairs[0]):
            yield from self.all_of(matched, pairs[1:])

    def sum(self, state: _State, term: Expr, at: str) -> Iterator[_State]:
        """A sum below the top against the class ``at``."""
        for now, left, offset, constant in self.matched_sum(state, term, at, at_top=False):
            kept = self.constant(now, constant, offset, left)
            if kept is None:
                continue
            end, rest = kept
            if left.taker:
                if self.reduces:
                    # else a body of n addends is split into two in 2**n ways
                    end = end.fact(f"(< (multiset-length {left.terms}) {MOST_LEFT})")
                text = f"(Sum {left.terms} {rest})"
                yield end.bind(left.taker, f"(Sum (multiset-of (Sc -1 {text})) 0)" if left.negative else text)
            else:
                yield end.fact(f"(= 0 (multiset-length {left.terms}))", f"(= 0 {rest})")
        if not self.rule.modulo_theory:
            yield from self.literal_addend(state, term, at)

    def literal_addend(self, state: _State, term: Expr, at: str) -> Iterator[_State]:
        """Of two letters below the top each in turn is the constant of the sum, the other all its terms."""
        constant, addends = as_sum(term)
        units = (const(1), const(-1))
        letters = [(k, x) for k, a in addends if k in units and (x := letter_of(a)) and x not in state.letters]
        if constant != const(0) or not len(addends) == len({x for _, x in letters}) == 2:
            return
        whole, offset, state = self.open_sum(state, at)
        state = state.fact(f"(!= 0 {offset})", f"(< 0 (multiset-length {whole}))")
        for (sign, literal), (scale, other) in (letters, letters[::-1]):
            value, now = offset, state
            if sign == units[1]:
                value, now = state.name("i64")
                now = now.fact(f"(= {value} (- 0 {offset}))")
            rest = f"(Sum {whole} 0)"
            rest = rest if scale == units[0] else f"(Sum (multiset-of (Sc -1 {rest})) 0)"
            now = now.bind(other, rest).bind(literal, f"(Sum (multiset-of) {value})")
            yield replace(now, literals={**now.literals, literal: value})

    def sharing(self, state: _State, term: Expr, at: str) -> Iterator[_State]:
        """One of two sums that share a letter, which takes all that both have."""
        letter, other = self.shared[term]
        whole, offset, state = self.open_sum(state, at)
        if letter not in state.first:
            yield replace(state, first={**state.first, letter: (whole, offset, other)})
            return
        first, constant, one = state.first[letter]
        (common, away, both), state = state.named("MT", "i64", "i64")
        state = state.fact(
            f"(= {common} (multiset-intersection {first} {whole}))",
            f"(= {away} (- {constant} {offset}))",
            # the constant if both have the same, else 0
            f"(= {both} (* {constant} (- 1 (min 1 (max {away} (- 0 {away}))))))",
            f"(< 0 (+ (multiset-length {common}) (max {both} (- 0 {both}))))",
        )
        state = replace(state.bind(letter, f"(Sum {common} {both})"), common={**state.common, letter: (common, both)})
        state = state.bind(one, f"(Sum (multiset-subtract {first} {common}) (- {constant} {both}))")
        yield state.bind(other, f"(Sum (multiset-subtract {whole} {common}) (- {offset} {both}))")

    def matched_sum(
        self, state: _State, term: Expr, at: str, at_top: bool
    ) -> Iterator[tuple[_State, _Left, str, Expr]]:
        """The addends of a pattern among the terms of the class ``at``: what is left, the constants of both."""
        constant, addends = as_sum(term)
        whole, offset, state = self.open_sum(state, at)
        written = [(c, a) for c, a in addends if letter_of(a) is None]
        letters = [(c, x) for c, a in addends if (x := letter_of(a)) is not None]
        for now, left in self.written(state, written, whole, _Left(whole, "" if at_top else "1")):
            for end, rest in self.lettered(now, letters, whole, left, at_top):
                yield end, rest, offset, constant

    def open_sum(self, state: _State, at: str) -> tuple[str, str, _State]:
        """The terms and the constant of a sum of the class ``at`` that rules match."""
        (whole, offset), state = state.named("MT", "i64")
        return whole, offset, state.fact(f"(open {at} {whole} {offset})")

    def one_term(
        self, state: _State, whole: str, left: _Left, at: str = "", op: str = ""
    ) -> tuple[_State, _Left, str, str]:
        """One of the terms of a sum, of the class ``at`` if that is given: what is left, its class and coefficient.

        Of a term whose operator ``op`` has a fixed number of operands, its node says where it stands.
        """
        (term, scale, rest), state = state.named("T", "i64", "MT")
        if not at:
            at, state = state.name("E")
        state = self.term_at(state, whole, term, at, scale, op)
        state = state.fact(f"(= {rest} (multiset-remove {left.terms} {term}))")
        return state, replace(left, terms=rest), at, scale

    def term_at(self, state: _State, whole: str, term: str, at: str, scale: str, op: str = "") -> _State:
        """A term of a sum: its class and coefficient, said together with its node if it has the operator ``op``."""
        if op not in PLAIN:
            return state.fact(f"(at {whole} {term} {at} {scale})")
        self.addends.add(op)
        return replace(state, places={**state.places, at: (whole, term, scale)})

    def written(
        self, state: _State, addends: Sequence[tuple[Expr, Expr]], whole: str, left: _Left
    ) -> Iterator[tuple[_State, _Left]]:
        """Addends with an operator, each one of the terms."""
        if not addends:
            yield state, left
            return
        (coefficient, addend), *others = addends
        state, left, atom, scale = self.one_term(state, whole, left, op=addend.op)
        for matched in self.match(state, addend, atom):
            found = self.coefficient(matched, coefficient, scale, left)
            if found is not None:
                yield from self.written(found[0], others, whole, found[1])

    def coefficient(self, state: _State, wanted: Expr, scale: str, left: _Left) -> tuple[_State, _Left] | None:
        """``scale`` is ``wanted`` times the factor, which the first addend with a known coefficient gives."""
        if letter := _open_letter(wanted, state):
            if left.factor not in ("", "1"):
                state = state.fact(f"(= {left.factor} 1)")
            is_negative = wanted.op == "mul" and const(-1) in wanted.args and any(map(is_literal_letter, wanted.args))
            if not is_negative and not is_literal_letter(wanted):
                return None
            text = f"(- 0 {scale})" if is_negative else scale
            return self.literal(state, letter, text), replace(left, factor="1")
        number, state = self.number(state, wanted)
        if left.factor == "1":
            return state.fact(f"(= {scale} {number})"), left
        if left.factor:
            return state.fact(f"(= {scale} (* {left.factor} {number}))"), left
        if number == "1":
            return state, replace(left, factor=scale)
        factor, state = state.name("i64")
        facts = ["(= 0 (% {scale} {number}))", "(= {factor} (/ {scale} {number}))"]
        if number == "-1":
            facts = ["(= {factor} (- 0 {scale}))"]
        elif not number.lstrip("-").isdigit():
            facts.insert(0, "(!= 0 {number})")
        state = state.fact(*[f.format(scale=scale, number=number, factor=factor) for f in facts])
        return state, replace(left, factor=factor)

    def lettered(
        self, state: _State, addends: Sequence[tuple[Expr, str]], whole: str, left: _Left, at_top: bool
    ) -> Iterator[tuple[_State, _Left]]:
        """Addends that are letters: bound ones as one term or as several, open ones as one term or as all the rest."""
        if bound := next((pair for pair in addends if pair[1] in state.letters), None):
            coefficient, letter = bound
            others = [pair for pair in addends if pair is not bound]
            found = self.again(state, coefficient, letter, whole, left)
            if found is not None:
                yield from self.lettered(found[0], others, whole, found[1], at_top)
            if not self.rule.modulo_theory and _open_letter(coefficient, state) is None:
                now, rest = self.in_constant(state, coefficient, letter, left)
                yield from self.lettered(now, others, whole, rest, at_top)
            if not others and (left.factor or is_literal_letter(coefficient)):
                yield self.requested(state, coefficient, state.letters[letter], whole, left)
            return
        left = replace(left, factor=left.factor or "1")
        # each letter in turn takes all the rest; at the top that is kept instead
        for taker in () if at_top else addends:
            stands_once = sum(letter == taker[1] for _, letter in addends) == 1
            if stands_once and taker[0].op == "const" and abs(taker[0].vmin) == 1:
                for end, rest in self.terms(state, [pair for pair in addends if pair is not taker], whole, left):
                    negative = taker[0].vmin < 0
                    yield end.bind(taker[1], ""), replace(rest, taker=taker[1], negative=negative)
        yield from self.terms(state, addends, whole, left)

    def in_constant(self, state: _State, coefficient: Expr, letter: str, left: _Left) -> tuple[_State, _Left]:
        """A bound letter that is a literal, as a part of the constant of the sum."""
        factor = left.factor or "1"
        times, state = self.times(state, coefficient, factor)
        value = state.literals.get(letter, "")
        if not value:
            value, state = state.name("i64")
            state = state.fact(f"(= {value} (lit {state.letters[letter]}))", f"(!= 0 {value})")
        taken = f"(* {times} {value})"
        return state, replace(left, factor=factor, taken=f"(+ {left.taken} {taken})" if left.taken else taken)

    def again(
        self, state: _State, coefficient: Expr, letter: str, whole: str, left: _Left
    ) -> tuple[_State, _Left] | None:
        """A bound letter as one term of the sum."""
        if letter not in state.terms:
            state, left, _, scale = self.one_term(state, whole, left, state.letters[letter])
            return self.coefficient(state, coefficient, scale, left)
        times, atom = state.terms[letter]
        state, left, _, scale = self.one_term(state, whole, left, atom)
        share, state = state.name("i64")
        state = state.fact(f"(= 0 (% {scale} {times}))", f"(= {share} (/ {scale} {times}))")
        return self.coefficient(state, coefficient, share, left)

    def requested(self, state: _State, coefficient: Expr, letter: str, whole: str, left: _Left) -> tuple[_State, _Left]:
        """A bound letter as the terms of its normal form, some multiple of which the sum has, or more."""
        is_open = _open_letter(coefficient, state) is not None
        if is_open and left.factor not in ("", "1"):
            # the multiple is the letter's value only then
            state = state.fact(f"(= {left.factor} 1)")
        cut, columns = len(state.facts), tuple(state.sorts)
        if is_open:
            times = str(coefficient.value)
            state = state.declare(times, "i64")
        else:
            times, state = self.times(state, coefficient, left.factor)
            cut, columns = len(state.facts), tuple(state.sorts)
        (rest, inside, taken), state = state.named("MT", "i64", "MT")
        # what was matched before is not in the letter's terms
        request = _SubsumRequest(whole, letter, times, rest, inside, cut, columns, is_open)
        matched = f"(multiset-subtract {whole} {left.terms})"
        # subtraction leaves out what is not there: all that was matched must be left
        removed = f"(= {taken} (multiset-subtract {rest} {matched}))", f"(= {rest} (multiset-sum {taken} {matched}))"
        state = replace(state.fact(*removed), requests=(*state.requests, request))
        return state, replace(left, terms=taken, request=request, factor=left.factor or "1")

    def terms(
        self, state: _State, addends: Sequence[tuple[Expr, str]], whole: str, left: _Left
    ) -> Iterator[tuple[_State, _Left]]:
        """Open letters, each as one term of the sum."""
        if not addends:
            yield state, left
            return
        (coefficient, letter), *others = addends
        if letter in state.letters:
            # the letter stands twice: both are of one class
            if (found := self.again(state, coefficient, letter, whole, left)) is not None:
                yield from self.terms(found[0], others, whole, found[1])
            return
        state, left, atom, scale = self.one_term(state, whole, left)
        if (open_letter := _open_letter(coefficient, state)) is not None:
            if left.factor != "1" or not is_literal_letter(coefficient):
                return
            state = self.literal(state, open_letter, scale).bind(letter, atom)
        else:
            times, state = self.times(state, coefficient, left.factor)
            share = scale
            if times != "1":
                share, state = state.name("i64")
                state = state.fact(f"(!= 0 {times})", f"(= 0 (% {scale} {times}))", f"(= {share} (/ {scale} {times}))")
            state = state.bind_term(letter, share, atom)
        yield from self.terms(state, others, whole, left)

    def constant(self, state: _State, constant: Expr, offset: str, left: _Left) -> tuple[_State, str] | None:
        """The constant of a pattern against that of the sum: what is left of it."""
        factor = left.factor or "1"
        if left.taken:
            whole, state = state.name("i64")
            # else any sum would have the literal, and what makes up for it
            state = state.fact(f"(!= 0 {offset})", f"(= {whole} (- {offset} {left.taken}))")
            offset = whole
        kept = offset
        if (letter := _open_letter(constant, state)) is not None:
            if not is_literal_letter(constant) or left.request is not None:
                return None
            if factor != "1":
                state = state.fact(f"(= {factor} 1)")
            state, kept = self.literal(state, letter, offset).fact(f"(!= 0 {offset})"), "0"
            if self.rule.modulo_theory:
                state = state.fact(f"(< (multiset-length {left.terms}) {MOST_LEFT})")
        elif constant.op != "const" or constant.vmin:
            times, state = self.times(state, constant, factor)
            state, kept = state.fact(f"(= {offset} {times})"), "0"
        if left.request is not None:
            whole, state = state.name("i64")
            state = state.fact(f"(= {whole} (- {kept} (* {left.request.times} {left.request.inside})))")
            kept = whole
        return state, kept

    def container(self, state: _State, term: Expr, at: str, at_top: bool) -> Iterator[tuple[_State, str]]:
        """A product, junction, minimum or maximum against the class ``at``, and what is left if no letter takes it."""
        members = operands_of(term, term.op)
        whole, state = state.name("ME")
        state = state.fact(f"(= {at} ({CONTAINERS[term.op]} {whole}))")
        written = [m for m in members if letter_of(m) is None]
        letters = [x for m in members if (x := letter_of(m)) is not None]
        for now, left in self.members(state, written, whole, whole):
            bound, free = [[x for x in letters if (x in now.letters) is known] for known in (True, False)]
            for x in bound:
                rest, now = now.name("ME")
                now = now.fact(
                    f"(in {whole} {now.letters[x]})", f"(= {rest} (multiset-remove {left} {now.letters[x]}))"
                )
                left = rest
            takers = [] if at_top or len(set(free)) < len(free) else free
            for taker in takers:
                for end, rest in self.free(now, [x for x in free if x != taker], whole, left):
                    yield end.fact(f"(< 1 (multiset-length {rest}))").bind(taker, f"({CONTAINERS[term.op]} {rest})"), ""
            yield from self.free(now, free, whole, left)
            if len(free) == len(members) > 1 and len(set(free)) == 1 and not at_top:
                # a power of several members
                root, now = now.name("ME")
                power = root
                for _ in free[1:]:
                    power = f"(multiset-sum {power} {root})"
                now = now.fact(f"(= {root} (multiset-reset-counts {whole}))", f"(= {whole} {power})")
                yield now.fact(f"(< 1 (multiset-length {root}))").bind(free[0], f"({CONTAINERS[term.op]} {root})"), ""

    def members(self, state: _State, members: Sequence[Expr], whole: str, left: str) -> Iterator[tuple[_State, str]]:
        if not members:
            yield state, left
            return
        member, state = state.name("E")
        rest, state = state.name("ME")
        state = state.fact(f"(in {whole} {member})", f"(= {rest} (multiset-remove {left} {member}))")
        for now in self.match(state, members[0], member):
            yield from self.members(now, members[1:], whole, rest)

    def free(self, state: _State, letters: Sequence[str], whole: str, left: str) -> Iterator[tuple[_State, str]]:
        """Open letters, each as one member."""
        for x in letters:
            member = state.letters.get(x)
            if member is None:
                member, state = state.name("E")
                state = state.fact(f"(in {whole} {member})").bind(x, member)
            rest, state = state.name("ME")
            state = state.fact(f"(= {rest} (multiset-remove {left} {member}))")
            left = rest
        yield state, left

    # ---- numbers

    def number(self, state: _State, term: Expr) -> tuple[str, _State]:
        """The name of a computed literal, bound by facts of the query, where overflow means no match."""
        if term in state.numbers:
            return state.numbers[term], state
        if term.op == "const":
            return str(term.value), state
        if term.op == "var":
            return self.measure(state, str(term.value))
        args = []
        for arg in term.args:
            text, state = self.number(state, arg)
            args.append(text)
        name, state = state.name("i64")
        match term.op:
            case "floordiv" | "mod":
                facts, quotient, remainder = floor_parts(name, *args)
                state = state.fact(facts).declare(quotient, "i64").declare(remainder, "i64")
                name = quotient if term.op == "floordiv" else remainder
            case "neg":
                state = state.fact(f"(= {name} (- 0 {args[0]}))")
            case "add" | "sub" | "mul" | "min" | "max":
                symbol = {"add": "+", "sub": "-", "mul": "*"}.get(term.op, term.op)
                state = state.fact(f"(= {name} ({symbol} {args[0]} {args[1]}))")
            case "bitand" | "bitor" | "bitxor":
                symbol = OPS[term.op].symbol
                state = state.fact(f"(= {name} ({symbol} {args[0]} {args[1]}))")
            case "shl":
                state = state.fact(f"(< {args[1]} 62)", f"(= {name} (<< {args[0]} {args[1]}))")
            case _:
                raise self.fail(f"{to_text(term)!r} cannot be computed from literals")
        return name, replace(state, numbers={**state.numbers, term: name})

    def measure(self, state: _State, name: str) -> tuple[str, _State]:
        """A literal letter, or what is known of the class of a letter."""
        if name not in MEASURES:
            return name, state
        fact = f"_{name}"
        if fact in state.sorts:
            return fact, state
        function, letter, *others = name.split("_")
        at = state.letters[letter]
        state = state.declare(fact, "i64")
        if function == "gcd":
            first, state = self.measure(state, f"factor_{letter}")
            return fact, state.fact(f"(= {fact} {common_divisor(first, others[0])})")
        if function == "remainder":
            first, state = self.measure(state, f"modulus_{letter}")
            return fact, state.fact(f"(= {fact} (remainder {at} {first}))")
        table = {"vmin": "lo", "vmax": "hi", "factor": "fac", "modulus": "modulus"}[function]
        state = state.fact(f"(= {fact} ({table} {at}))")
        return fact, state.fact(f"(> {fact} 0)") if function == "modulus" else state

    # ---- the rest of the rule

    def run(self) -> Iterator[tuple[Stage, ...]]:
        """Every way to match the left side, for each alternative of the guard."""
        left = self.pattern.left
        for conjuncts in alternatives(self.pattern.when):
            for state, head in self.top(left):
                yield self.staged(state, conjuncts, head)

    def reduction_queries(self) -> Iterator[tuple[Stage, ReductionQuery]]:
        """Every way to match the left side of a rule about reductions: a query that writes rows, what is in them."""
        for state, kept in self.top(self.pattern.left):
            made = {x: text for x, text in state.letters.items() if text.startswith("(")}
            literals = [name for name in state.sorts if name in LITERALS]
            columns = [*[(x, "E") for x in state.letters], *[(name, "i64") for name in literals]]
            values = [*[f"made_{x}" if x in made else text for x, text in state.letters.items()], *literals]
            if kept.op == "sum":
                columns += [("terms", "MT"), ("constant", "i64"), ("factor", "i64")]
                values += [kept.members, kept.constant, kept.factor]
            elif kept.op:
                columns.append(("members", "ME"))
                values.append(kept.members)
            table = f"match{next(_NUMBERS)}"
            actions = [f"(let made_{x} {text})" for x, text in made.items()]
            head = f"{' '.join(actions)} ({table} {' '.join([kept.of, *values])})"
            declared = f"(relation {table} ({' '.join(['E', *[sort for _, sort in columns]])}))"
            yield (
                Stage(" ".join(state.facts), head, declared),
                ReductionQuery(table, self.pattern, tuple(columns), self.ends, kept.op),
            )

    def top(self, left: Expr) -> Iterator[tuple[_State, _Kept]]:
        """The left side matched, and what is kept of the class."""
        state = _State().declare("e", "E")
        if is_sum(left) and _is_one_term(left):
            yield from self.one_addend(state, left)
        elif is_sum(left):
            for matched, rest, offset, constant in self.matched_sum(state, left, "e", at_top=True):
                if (kept := self.constant(matched, constant, offset, rest)) is not None:
                    yield kept[0], _Kept("sum", rest.terms, kept[1], rest.factor or "1")
        elif left.op in CONTAINERS:
            for matched, members in self.container(state, left, "e", at_top=True):
                yield matched, _Kept(left.op, members)
        else:
            for matched in self.plain(state, left, "e"):
                yield matched, _Kept()

    def one_addend(self, state: _State, left: Expr) -> Iterator[tuple[_State, _Kept]]:
        """A left side with one addend and no constant: a term of any sum, for itself.

        What is found of the term then holds in every sum that has it, without a node for each of them.
        """
        [(coefficient, addend)] = as_sum(left)[1]
        state = replace(state, sorts={})
        (whole, term, atom, scale), state = state.named("MT", "T", "E", "i64")
        state = self.term_at(state, whole, term, atom, scale, addend.op)
        for matched in self.match(state, addend, atom):
            found = self.coefficient(matched, coefficient, scale, _Left(whole, "1"))
            if found is not None:
                yield found[0], _Kept(of=f"(Sum (multiset-of {term}) 0)")

    def staged(self, state: _State, conjuncts: Sequence[Conjunct], kept: _Kept) -> tuple[Stage, ...]:
        """The rule in one stage, or in more if what it speaks of is made, or asked for, first."""
        measured = _measured_letters(self.pattern, conjuncts)
        made = {x: state.letters[x] for x in measured if state.letters[x].startswith("(")}
        compared = [(x, y) for _, x, y in conjuncts if has_terms(x) or has_terms(y)]
        if not made and not state.requests and not compared:
            facts, action = self.finish(state, conjuncts, kept)
            return (Stage(" ".join(facts), action),)
        if not state.requests:
            # what decides before anything is made
            for conjunct in [c for c in conjuncts if c[1:] not in compared]:
                if not made.keys() & set(_measured_letters(Pattern(FALSE, FALSE, FALSE), [conjunct])):
                    state = self.guarded(state, conjunct)
                    conjuncts = [c for c in conjuncts if c is not conjunct]
        groups = _by_stage(state.requests) or [[]]
        cut, columns = len(state.facts), [*state.sorts]
        if state.requests:
            cut, columns = state.requests[0].after, [*state.requests[0].columns]
        actions = [f"(let made_{x} {text})" for x, text in made.items()]
        for x in made:
            state = state.bind(x, f"made_{x}").declare(f"made_{x}", "E")
            columns.append(f"made_{x}")
        for left, right in compared:
            _, one = self.build(state, left)
            _, two = self.build(state, right)
            actions.append(f"(Lt {one} {two})")
        stages, facts = [], state.facts[:cut]
        for group, following in zip(groups, [*groups[1:], []], strict=True):
            table = f"found{next(_NUMBERS)}"
            row = f"({table} {' '.join(columns)})"
            declared = f"(relation {table} ({' '.join([state.sorts[n] for n in columns])}))"
            stages.append(
                Stage(" ".join(facts), " ".join([*actions, *[request.action for request in group], row]), declared)
            )
            end = following[0].after if following else len(state.facts)
            facts = (row, *[request.fact for request in group], *state.facts[cut:end])
            cut, actions = end, []
            columns += [name for a in following[:1] for name in a.columns if name not in columns]
        facts, action = self.finish(replace(state, facts=facts), conjuncts, kept)
        return (*stages, Stage(" ".join(facts), action))

    def finish(self, state: _State, conjuncts: Sequence[Conjunct], kept: _Kept) -> tuple[tuple[str, ...], str]:
        """The guard's facts, and the action."""
        for op, x, y in conjuncts:
            if has_terms(x) or has_terms(y):
                state, one = self.build(state, x)
                state, two = self.build(state, y)
                state = state.fact(f"(= (Yes) (Lt {one} {two}))")
                continue
            state = self.guarded(state, (op, x, y))
        right = self.pattern.right
        if kept.op == "sum":
            state, terms, added = self.flat(state, right, kept.factor)
            total = kept.constant
            if added != "0":
                total, state = state.name("i64")
                state = state.fact(f"(= {total} (+ {kept.constant} {added}))")
            return state.facts, f"(union e (Sum {_gathered(terms, kept.members)} {total}))"
        state, text = self.build(state, right)
        if kept.op:
            text = container_text(kept.op, f"(multiset-insert {kept.members} {text})")
        return state.facts, f"(union {kept.of} {text})"

    def guarded(self, state: _State, conjunct: Conjunct) -> _State:
        """A comparison of numbers in the guard."""
        op, x, y = conjunct
        left, state = self.number(state, x)
        right, state = self.number(state, y)
        return state.fact(f"({_FACTS[op]} {left} {right})")

    def flat(self, state: _State, term: Expr, factor: str) -> tuple[_State, list[str], str]:
        """The terms of the right side as a sum, times the factor, and its constant."""
        constant, addends = as_sum(term)
        total, state = self.times(state, constant, factor)
        terms = []
        for coefficient, addend in addends:
            number, state = self.times(state, coefficient, factor)
            if number == "1" and (common := state.common.get(letter_of(addend) or "")):
                terms.append(common[0])
                before = total
                total, state = state.name("i64")
                state = state.fact(f"(= {total} (+ {before} {common[1]}))")
                continue
            state, text = self.build(state, addend)
            terms.append(f"(Sc {number} {text})")
        return state, terms, total

    def times(self, state: _State, term: Expr, factor: str) -> tuple[str, _State]:
        number, state = self.number(state, term)
        if factor == "1" or number == "0":
            return number, state
        if number == "1":
            return factor, state
        name, state = state.name("i64")
        return name, state.fact(f"(= {name} (* {factor} {number}))")

    def build(self, state: _State, term: Expr) -> tuple[_State, str]:
        """The right side, or a part of it, as an action."""
        letter = letter_of(term)
        if letter is not None:
            return state, state.letters[letter]
        if is_number(term):
            number, state = self.number(state, term)
            return state, f"(Sum (multiset-of) {number})"
        if term.op == "bool":
            return state, "(Yes)" if term.value else "(No)"
        if is_sum(term):
            state, terms, constant = self.flat(state, term, "1")
            return state, f"(Sum {_gathered(terms)} {constant})"
        if term.op in CONTAINERS:
            texts = []
            for member in operands_of(term, term.op):
                state, text = self.build(state, member)
                texts.append(text)
            return state, container_text(term.op, f"(multiset-of {' '.join(texts)})")
        texts = []
        for arg in term.args:
            state, text = self.build(state, arg)
            texts.append(text)
        if term.op == "le":
            return state, f"(Not (Lt {texts[1]} {texts[0]}))"
        if term.op == "ne":
            return state, f"(Not (Eq {texts[0]} {texts[1]}))"
        if term.op not in PLAIN:
            raise self.fail(f"{term.op!r} cannot be built")
        return state, f"({PLAIN[term.op][0]} {' '.join(texts)})"


_NUMBERS = count()


def floor_parts(fresh: str, dividend: str, divisor: str) -> tuple[str, str, str]:
    """Floor division of egglog numbers, whose ``/`` and ``%`` truncate: facts, quotient, remainder."""
    remainder, quotient = f"{fresh}r", f"{fresh}q"
    facts = (
        f"(= {remainder} (% (+ (% {dividend} {divisor}) {divisor}) {divisor}))"
        f" (= {quotient} (/ (- {dividend} {remainder}) {divisor}))"
    )
    return facts, quotient, remainder


def common_divisor(left: str, right: str) -> str:
    """The greatest common divisor of egglog numbers, ``left`` not negative; of 0 and 0 it is 0."""
    # a fraction in lowest terms has been divided by it; a zero denominator would panic
    larger = f"(max {left} (abs {right}))"
    return f"(/ {larger} (denom (rational (min {left} (abs {right})) (max 1 {larger}))))"


def _shared(left: Expr) -> dict[Expr, tuple[str, str]]:
    """The operands of a node such as ``min(x + z, y + z)``: each with the letter that both have, and its own.

    None if a letter of theirs stands elsewhere too.
    """
    found = {}
    for term in left.args:
        constant, addends = as_sum(term)
        letters = [x for k, a in addends if k == const(1) and (x := letter_of(a))]
        if len(letters) == len(addends) == 2 and constant == const(0):
            found[term] = letters
    if len(found) != 2:
        return {}
    one, two = found.values()
    letter = next(iter({*one} & {*two}), "")
    places = places_of_letters(left)
    if any(len(places[x]) != (2 if x == letter else 1) for x in one + two):
        return {}
    return {term: (letter, next(x for x in letters if x != letter)) for term, letters in found.items()}


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


def _measured_letters(pattern: Pattern, conjuncts: Sequence[Conjunct]) -> list[str]:
    """The letters that the guard or the right side measure, and those that the guard compares."""
    found: dict[str, None] = {}
    sides = [pattern.right, *[side for _, x, y in conjuncts for side in (x, y)]]
    for v in variables(sides):
        name = str(v.value)
        if name in MEASURES:
            found[name.split("_")[1]] = None
    for _, x, y in conjuncts:
        found.update((str(v.value), None) for v in variables([x, y]) if str(v.value) in TERMS)
    return [*found]


@cache
def by_representation(rule: Rule) -> bool:
    """Whether both sides of ``rule`` are one node of the encoding, as those of commutativity are.

    >>> from eqsat.egraph.rule import Rule
    >>> by_representation(Rule("associates", "(x + y) + z", "x + (y + z)"))
    True
    >>> by_representation(Rule("distributes", "(x + y) * z", "x*z + y*z"))
    False
    """
    pattern = rule.pattern
    if pattern.binds_index:
        return False
    return _shape(pattern.left) == _shape(pattern.right)


def _shape(term: Expr) -> object:
    """A pattern as the encoding holds it."""
    if is_sum(term) or is_number(term):
        constant, addends = as_sum(term)
        numbers = [(c, _shape(a)) for c, a in addends]
        if all(c.op == "const" for c, _ in numbers):
            total: dict[str, int] = {}
            for c, shape in numbers:
                total[repr(shape)] = total.get(repr(shape), 0) + c.vmin
            if len(total) == 1 and constant.op == "const" and not constant.vmin and set(total.values()) == {1}:
                return numbers[0][1]
            return "sum", constant, tuple(sorted(total.items()))
        return "sum", constant, tuple(sorted((repr(c), repr(shape)) for c, shape in numbers))
    if term.op in CONTAINERS:
        return term.op, tuple(sorted(repr(_shape(m)) for m in operands_of(term, term.op)))
    return (term.op, term.value, tuple(map(_shape, term.args))) if term.args else term


def _with_literals(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern of a rule about reductions, and its copies in which a factor is a literal.

    A multiple of a term is a term of a sum with that coefficient, not a product.
    """
    yield pattern
    order = topological([pattern.left])
    moved = {moved_letter(array) for array in buffers([pattern.right])}
    ends = ends_in(pattern.left)
    unused = next(x for x in LITERALS if x not in {str(v.value) for v in variables([pattern.left, pattern.right])})
    for term in order:
        for letter in dict.fromkeys(term.args) if term.op == "mul" and term not in ends else ():
            if all(is_number(other) for other in term.args if other is not letter):
                # it is a multiple as it is
                continue
            name = letter_of(letter)
            if name and name in TERMS and name not in moved and sum(t.args.count(letter) for t in order) == 1:
                literal = {letter: var(unused, letter.vmin, letter.vmax)}
                yield Pattern(*substitute([pattern.left, pattern.right, pattern.when], literal))


@cache
def compiled(rule: Rule) -> tuple[Compiled, ...]:
    """The ways to match ``rule``, in each direction that it has.

    Raises
    ------
    ValueError
        If the rule cannot be matched; one line that names it.
    """
    if by_representation(rule):
        return ()
    directions = [rule, rule.reverse()] if rule.both_ways else [rule]
    found = []
    for one in directions:
        pattern = one.pattern
        if letter_of(pattern.left) is not None:
            continue
        if pattern.binds_index:
            for variant in _with_literals(pattern):
                reads = _constructors(variant.left)
                matcher = _Matcher(one, variant)
                queries = [*matcher.reduction_queries()]
                addends = frozenset(matcher.addends)
                found += [Compiled(rule.name, (stage,), reads, False, query, addends) for stage, query in queries]
            continue
        matcher = _Matcher(one, pattern)
        for stages in [*matcher.run()]:
            broad = pattern.left.op in CONTAINERS and all(
                letter_of(m) for m in operands_of(pattern.left, pattern.left.op)
            )
            reads, addends = _constructors(pattern.left), frozenset(matcher.addends)
            found.append(Compiled(rule.name, stages, reads, broad, addends=addends))
    return tuple(found)


def _constructors(left: Expr) -> frozenset[str]:
    """The constructors of nodes that the left side of a rule needs."""
    found: set[str] = set()
    ends = ends_in(left)
    for term in topological([left]):
        if term in ends:
            continue
        if is_condition_letter(term) or not term.args or is_number(term):
            continue
        if term.op in ("le", "ne"):
            found |= {"Not", "Lt" if term.op == "le" else "Eq"}
        elif is_sum(term):
            found.add("Sum")
            if any(
                len([f for f in operands_of(a, "mul") if not is_number(f)]) > 1
                for _, a in as_sum(term)[1]
                if a.op == "mul"
            ):
                found.add("Prod")
        elif term.op in CONTAINERS:
            found.add(CONTAINERS[term.op])
        elif term.op in PLAIN:
            found.add(PLAIN[term.op][0])
    return frozenset(found)
