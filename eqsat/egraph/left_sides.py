"""The left sides of rules as queries: matching modulo associativity and commutativity.

A sum in a pattern matches some of the terms of a longer one. At the top of the left side the others are kept, and the
match may be up to a literal factor, as ``x - (x//n)*n`` is in ``a*5 - (a//8)*40 + b``; further down, a letter that
stands nowhere else takes all the others. Products, junctions, minima and maxima match in the same way. A letter that is
bound elsewhere to a sum of several terms matches these terms wherever a sum has them, or more of them (``ask`` and
``piece``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from math import inf

from eqsat.egraph.patterns import (
    Pattern,
    alternatives,
    as_sum,
    is_literal_letter,
    is_number,
    is_one_term,
    is_sum,
    is_unit,
    letter_of,
    operands_of,
    places_of_letters,
    reductions_of,
)
from eqsat.egraph.program import CONTAINERS, PLAIN, negated
from eqsat.egraph.queries import FirstSum, Query, Shared, SubsumRequest
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, const
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import index_level, is_index, topological, variables

#: A shipped rule may take the constant of a sum that has fewer other terms left: the more there are, the more sums it
#: would make, and the less each is worth.
MOST_LEFT = 5

#: A part of a shipped rule with as many facts is matched before the next part is, in a query of its own.
FACTS_APART = 6


@dataclass(frozen=True)
class Rest:
    """What is left of a sum, the factor of the match, and the letter (``taker``) that is bound to what is left."""

    #: All terms of the sum, and those that are left.
    whole: str
    terms: str
    factor: str = ""
    #: What is left of the constant.
    constant: str = "0"
    #: The part of the constant that letters which stand for literals have taken.
    taken: str = ""
    taker: str = ""
    negative: bool = False
    #: The letters whose terms were asked for.
    requests: tuple[SubsumRequest, ...] = ()


#: A coefficient and an addend of a sum in a pattern.
Addend = tuple[Expr, Expr]
#: Queries, each with what is left of a sum, or with the name of the members that are left of a container.
type WithRest = Iterator[tuple[Query, Rest]]
type WithMembers = Iterator[tuple[Query, str]]


@dataclass(frozen=True)
class Kept:
    """What a match at the top leaves of its class: of a sum its terms, constant and factor, of a container members."""

    op: str = ""
    members: str = ""
    constant: str = "0"
    factor: str = "1"
    #: The class that is equal to the right side, or makes it.
    of: str = "e"


class LeftSide:
    """The left side of one rule: :meth:`top` yields each way to match it."""

    def __init__(self, rule: Rule, pattern: Pattern, thoroughly: bool = False) -> None:
        self.rule = rule
        #: Whether it is matched in the ways that only a user's own rules are worth.
        self.thoroughly = thoroughly
        self.pattern = pattern
        #: The letter that each of two operands of one node adds to another, by these operands.
        self.shared = _shared(pattern.left) if rule.modulo_theory else {}
        self.reduces = pattern.binds_index
        self.places = places_of_letters(pattern.left)
        #: By letter, the number of sums that have it as an addend.
        self.sums_with = Counter(_letters_in(pattern.left, sums=True))
        alone = _letters_in(pattern.left, sums=False) if thoroughly else ()
        #: Letters that are operands and also addends. They are bound as operands first: as an addend, one would take
        #: all that is left of a sum.
        self.operands = frozenset(alone) & {*self.sums_with}
        first, *others = [()] if self.reduces else alternatives(pattern.when)
        #: What the guard says in each of its alternatives.
        self.guards = [conjunct for conjunct in first if all(conjunct in way for way in others)]
        #: The ends of ranges that are more than a letter: what is in them is found from the terms.
        self.ends = tuple(
            dict.fromkeys(e for t in reductions_of(pattern.left) for e in t.args[2:] if letter_of(e) is None)
        )

    def detour(self, query: Query) -> Iterator[Query]:
        """The query on another way than the first, if it may take one more of these."""
        if query.detours_left > 0:
            yield replace(query, detours_left=query.detours_left - 1)

    def each_way[T](self, query: Query, ways: Iterable[T]) -> Iterator[tuple[Query, T]]:
        """The query on each of some ways, all but the first of which are detours."""
        for place, way in enumerate(ways):
            for now in self.detour(query) if place else [query]:
                yield now, way

    def match(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """``term``, below the top, against the class ``at``."""
        letter = letter_of(term)
        if letter is not None:
            yield query.letter(letter, at)
        elif term.op == "var" and is_index(term):
            yield query.letter(f"i{index_level(term)}", at)
        elif term.op == "const":
            yield query.fact(f"(= {term.value} (lit {at}))")
        elif is_number(term) and not is_literal_letter(term):
            number, query = query.number(term)
            yield query.fact(f"(= {number} (lit {at}))")
        elif term.op == "bool":
            yield query.fact(f"(= {at} ({'Yes' if term.value else 'No'}))")
        elif term in self.shared:
            yield from self.sharing(query, term, at)
        elif term in query.parts:
            yield query.fact(f"(= {query.parts[term]} {at})")
        else:
            for matched in self.part(query, term, at):
                # equal literals are one class too, which is quicker to join by than their numbers
                yield replace(matched, parts={**matched.parts, term: at})

    def part(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """A letter of a literal or a part with an operator, matched for the first time, against the class ``at``."""
        if is_literal_letter(term):
            yield query.literal(str(term.value), f"(lit {at})")
        elif is_sum(term):
            yield from self.sum(query, term, at)
        elif term.op in CONTAINERS:
            for matched, rest in self.container(query, term, at, at_top=False):
                yield matched.fact(f"(= 0 (multiset-length {rest}))") if rest else matched
        else:
            yield from self.plain(query, term, at)

    def plain(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """A node with a fixed number of operands."""
        inside = negated(term.op, term.args)
        op, args = inside or (term.op, term.args)
        if op not in PLAIN:
            raise query.error(f"{term.op!r} cannot be matched")
        if inside:
            inner, query = query.name("E")
            query = query.fact(f"(= {at} (Not {inner}))")
            at = inner
        orders = [(query, args)]
        if op == "eq":
            orders += [(other, args[::-1]) for other in self.detour(query)]
        for now, ordered in orders:
            names, now = now.named(*["E"] * len(ordered))
            now = now.fact(f"(= {at} ({PLAIN[op].name} {' '.join(names)}))")
            if op in REDUCTIONS:
                for end, name in zip(ordered[2:], names[2:], strict=True):
                    if end in self.ends:
                        now = now.letter(f"end{self.ends.index(end)}", name)
                # a body, or an index, may be what is an end too
                kept = [place < 2 or part not in self.ends for place, part in enumerate(ordered)]
                ordered, names = tuple(compress(ordered, kept)), tuple(compress(names, kept))
            yield from self.all_of(now, sorted(zip(ordered, names, strict=True), key=lambda pair: self.turn(pair[0])))

    def turn(self, operand: Expr) -> int:
        """When an operand is matched.

        First come literals, of which others may be computed, and letters that stand in sums too; then what has no such
        letter in a sum before what has; last other letters, which others have.
        """
        if is_literal_letter(operand):
            return 0
        if (letter := letter_of(operand)) is not None:
            return 1 if letter in self.operands else 4
        return 2 if self.operands.isdisjoint(_letters_in(operand, sums=True)) else 3

    def all_of(self, query: Query, pairs: Sequence[tuple[Expr, str]]) -> Iterator[Query]:
        if not pairs:
            yield query
            return
        for matched in self.match(query, *pairs[0]):
            yield from self.all_of(self.cut(matched, [part for part, _ in pairs]), pairs[1:])

    def cut(self, query: Query, parts: Sequence[Expr]) -> Query:
        """The query, taken apart after the first of these parts if others follow; of a shipped rule if it is long.

        egglog joins all tables of a query before it computes what decides, and ways that begin alike begin once.
        """
        first, *others = [letter_of(part) is None and not is_number(part) for part in parts]
        is_long = self.thoroughly or len(query.facts) >= FACTS_APART
        return self.decided(query).cut() if is_long and first and any(others) else query

    def sum(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """A sum below the top against the class ``at``."""
        for now, left in self.matched_sum(query, term, at, at_top=False):
            if left.taker:
                if self.reduces:
                    # else a body of n addends is split into two in 2**n ways
                    now = now.fact(f"(< (multiset-length {left.terms}) {MOST_LEFT})")
                text = f"(Sum {left.terms} {left.constant})"
                yield now.bind(left.taker, _negative(text) if left.negative else text)
            else:
                yield now.fact(f"(= 0 (multiset-length {left.terms}))", f"(= 0 {left.constant})")
        for other in () if self.rule.modulo_theory else self.detour(query):
            yield from self.literal_addend(other, term, at)

    def literal_addend(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """Of two letters below the top each in turn is in the constant of the sum, the other all that is left."""
        constant, addends = as_sum(term)
        letters = [(k.vmin, x) for k, a in addends if k.op == "const" and (x := letter_of(a))]
        letters = [(k, x) for k, x in letters if x not in query.letters]
        if constant != const(0) or not len(addends) == len({x for _, x in letters}) == 2:
            return
        whole, offset, query = self.open_sum(query, at)
        query = query.fact(f"(!= 0 {offset})", f"(< 0 (multiset-length {whole}))")
        for (scale, literal), (sign, other) in (letters, letters[::-1]):
            if sign not in (1, -1):
                continue
            value, kept, now = offset, "0", query
            if scale != 1:
                # of a multiple as much as there is
                kept = f"(% (+ (% {offset} {scale}) {scale}) {scale})"
                value, now = now.computed("i64", f"(/ (- {offset} {kept}) {scale})")
                now = now.fact(f"(!= 0 {value})")
            rest = f"(Sum {whole} {kept})"
            rest = rest if sign == 1 else _negative(rest)
            now = now.bind(other, rest).bind(literal, f"(Sum (multiset-of) {value})")
            yield replace(now, literals={**now.literals, literal: value})

    def sharing(self, query: Query, term: Expr, at: str) -> Iterator[Query]:
        """One of two sums that share a letter, which takes all that both have."""
        letter, other = self.shared[term]
        whole, offset, query = self.open_sum(query, at)
        if letter not in query.first:
            yield replace(query, first={**query.first, letter: FirstSum(whole, offset, other)})
            return
        first, constant, one = query.first[letter]
        (common, away, both), query = query.named("MT", "i64", "i64")
        query = query.fact(
            f"(= {common} (multiset-intersection {first} {whole}))",
            f"(= {away} (- {constant} {offset}))",
            # the constant if both have the same, else 0
            f"(= {both} (* {constant} (- 1 (min 1 (max {away} (- 0 {away}))))))",
            f"(< 0 (+ (multiset-length {common}) (max {both} (- 0 {both}))))",
        )
        shared = {**query.common, letter: Shared(common, both)}
        query = replace(query.bind(letter, f"(Sum {common} {both})"), common=shared)
        query = query.bind(one, f"(Sum (multiset-subtract {first} {common}) (- {constant} {both}))")
        yield query.bind(other, f"(Sum (multiset-subtract {whole} {common}) (- {offset} {both}))")

    def matched_sum(self, query: Query, term: Expr, at: str, at_top: bool) -> WithRest:
        """The addends and the constant of a pattern against a sum of the class ``at``."""
        constant, addends = as_sum(term)
        whole, offset, query = self.open_sum(query, at)
        written = [(c, a) for c, a in addends if letter_of(a) is None]
        letters = [(c, x) for c, a in addends if (x := letter_of(a)) is not None]
        for now, left in self.written(query, written, Rest(whole, whole, "" if at_top else "1")):
            for end, rest in self.lettered(now, letters, left, at_top):
                if (kept := self.constant(end, constant, offset, rest)) is not None:
                    yield kept[0], replace(rest, constant=kept[1])

    def open_sum(self, query: Query, at: str) -> tuple[str, str, Query]:
        """The terms and the constant of a sum of the class ``at`` that rules match."""
        (whole, offset), query = query.named("MT", "i64")
        return whole, offset, query.fact(f"(open {at} {whole} {offset})")

    def one_term(self, query: Query, left: Rest, at: str = "") -> tuple[Query, Rest, str, str]:
        """One of the terms of a sum, of the class ``at`` if that is given: what is left, its class and coefficient."""
        (term, scale, rest), query = query.named("T", "i64", "MT")
        if at:
            query = query.fact(f"(at {left.whole} {term} {at} {scale})")
        else:
            at, query = query.name("E")
            query = query.take_term(left.whole, term, at, scale)
        query = query.fact(f"(= {rest} (multiset-remove {left.terms} {term}))")
        return query, replace(left, terms=rest), at, scale

    def written(self, query: Query, addends: Sequence[Addend], left: Rest) -> WithRest:
        """Addends with an operator, each one of the terms."""
        if not addends:
            yield query, left
            return
        (coefficient, addend), *others = addends
        query, left, atom, scale = self.one_term(query, left)
        for matched in self.match(query, addend, atom):
            found = self.coefficient(matched, coefficient, scale, left)
            if found is not None:
                yield from self.written(self.cut(found[0], [a for _, a in addends]), others, found[1])
            if left.factor == "1" and coefficient == const(1) and (letter := self.factor_letter(addend)):
                text = f"(Sum (multiset-of (Sc {scale} {matched.letters[letter]})) 0)"
                for other in self.detour(matched):
                    scaled = replace(other.fact(f"(!= 1 {scale})").bind(letter, text), parts=query.parts)
                    yield from self.written(scaled, others, left)

    def factor_letter(self, product: Expr) -> str:
        """A letter that is a factor of a product and stands nowhere else: it may have the coefficient of a term."""
        letters = [letter_of(m) for m in operands_of(product, "mul")] if product.op == "mul" else []
        return next((x for x in letters if x and len(self.places[x]) == 1), "")

    def coefficient(self, query: Query, wanted: Expr, scale: str, left: Rest) -> tuple[Query, Rest] | None:
        """``scale`` is ``wanted`` times the factor, which the first addend with a known coefficient gives."""
        if _is_open(wanted, query):
            if left.factor not in ("", "1"):
                query = query.fact(f"(= {left.factor} 1)")
            solved = query.solved(wanted, scale)
            return None if solved is None else (solved, replace(left, factor="1"))
        if left.factor:
            number, query = query.times(wanted, left.factor)
            return query.fact(f"(= {scale} {number})"), left
        number, query = query.number(wanted)
        factor, query = query.divided(scale, number)
        return query, replace(left, factor=factor)

    def lettered(self, query: Query, addends: Sequence[tuple[Expr, str]], left: Rest, at_top: bool) -> WithRest:
        """Addends that are letters: first those that are bound, then the open ones."""
        bound = next((addend for addend in addends if addend[1] in query.letters), None)
        if bound is None:
            yield from self.open_letters(query, addends, left, at_top)
            return
        others = [addend for addend in addends if addend is not bound]
        for now, rest in self.bound_letter(query, *bound, left, is_last=not others):
            yield from self.lettered(now, others, rest, at_top)

    def bound_letter(self, query: Query, coefficient: Expr, letter: str, left: Rest, is_last: bool) -> WithRest:
        """A bound letter as one term of the sum, as a part of its constant, or as several terms.

        Of a shipped rule only the last such letter may be several terms.
        """
        as_term = self.bound_as_term(query, coefficient, letter, left)
        if as_term is not None:
            yield as_term
        is_known = not _is_open(coefficient, query)
        has_multiple = (is_known and left.factor) or is_literal_letter(coefficient)
        for now in [query] if as_term is None else self.detour(query):
            if is_known and not self.rule.modulo_theory:
                yield self.bound_as_constant(now, coefficient, letter, left)
            if has_multiple and (self.thoroughly or is_last):
                yield self.bound_as_terms(now, coefficient, query.letters[letter], left)

    def open_letters(self, query: Query, addends: Sequence[tuple[Expr, str]], left: Rest, at_top: bool) -> WithRest:
        """Open letters: one takes all the rest, which at the top is kept instead, and the others are one term each."""
        left = replace(left, factor=left.factor or "1")
        times = Counter([letter for _, letter in addends])
        takers = [] if at_top else [(k, letter) for k, letter in addends if is_unit(k) and times[letter] == 1]
        for now, (k, taker) in self.each_way(query, takers):
            for end, rest in self.open_as_terms(now, [addend for addend in addends if addend[1] != taker], left):
                yield end.bind(taker, ""), replace(rest, taker=taker, negative=k.vmin < 0)
        # one term may be all the rest: it is told apart for what is its multiple in other sums
        if all(self.sums_with[letter] > 1 for _, letter in takers):
            for now in self.detour(query) if takers else [query]:
                yield from self.open_as_terms(now, addends, left)

    def bound_as_constant(self, query: Query, coefficient: Expr, letter: str, left: Rest) -> tuple[Query, Rest]:
        """A bound letter that is a literal, as a part of the constant of the sum."""
        factor = left.factor or "1"
        times, query = query.times(coefficient, factor)
        value = query.literals.get(letter, "")
        if not value:
            value, query = query.computed("i64", f"(lit {query.letters[letter]})")
            query = query.fact(f"(!= 0 {value})")
        taken = f"(* {times} {value})"
        return query, replace(left, factor=factor, taken=f"(+ {left.taken} {taken})" if left.taken else taken)

    def bound_as_term(self, query: Query, coefficient: Expr, letter: str, left: Rest) -> tuple[Query, Rest] | None:
        """A bound letter as one term of the sum."""
        if letter not in query.terms:
            query, left, _, scale = self.one_term(query, left, query.letters[letter])
            return self.coefficient(query, coefficient, scale, left)
        times, atom = query.terms[letter]
        query, left, _, scale = self.one_term(query, left, atom)
        share, query = query.divided(scale, times)
        return self.coefficient(query, coefficient, share, left)

    def bound_as_terms(self, query: Query, coefficient: Expr, letter: str, left: Rest) -> tuple[Query, Rest]:
        """A bound letter as the terms of its normal form, some multiple of which the sum has, or more."""
        is_open = _is_open(coefficient, query)
        if is_open and left.factor not in ("", "1"):
            # the multiple is the letter's value only then
            query = query.fact(f"(= {left.factor} 1)")
        cut, columns = len(query.facts), tuple(query.sorts)
        if is_open:
            times = str(coefficient.value)
            query = query.declare_literal(times)
        else:
            times, query = query.times(coefficient, left.factor)
            cut, columns = len(query.facts), tuple(query.sorts)
        (rest, inside, taken), query = query.named("MT", "i64", "MT")
        # what was matched before is not in the letter's terms
        request = SubsumRequest(cut, columns, left.whole, letter, times, rest, inside, is_open)
        matched = f"(multiset-subtract {left.whole} {left.terms})"
        # all that was matched must be left: egglog subtracts nothing that is not there
        removed = f"(= {taken} (multiset-subtract {rest} {matched}))", f"(= {rest} (multiset-sum {taken} {matched}))"
        query = replace(query.fact(*removed), cuts=(*query.cuts, request))
        requests = (*left.requests, request)
        return query, replace(left, terms=taken, requests=requests, factor=left.factor or "1")

    def open_as_terms(self, query: Query, addends: Sequence[tuple[Expr, str]], left: Rest) -> WithRest:
        """Open letters, each as one term of the sum."""
        if not addends:
            yield query, left
            return
        (coefficient, letter), *others = addends
        if letter in query.letters:
            # the letter stands twice: both are of one class
            if (found := self.bound_as_term(query, coefficient, letter, left)) is not None:
                yield from self.open_as_terms(found[0], others, found[1])
            return
        query, left, atom, scale = self.one_term(query, left)
        if _is_open(coefficient, query):
            solved = query.solved(coefficient, scale)
            if left.factor != "1" or solved is None:
                return
            query = solved.bind(letter, atom)
        else:
            times, query = query.times(coefficient, left.factor)
            share, query = query.divided(scale, times)
            query = query.bind(letter, f"(Sum (multiset-of (Sc {share} {atom})) 0)")
            query = replace(query, terms={**query.terms, letter: (share, atom)})
        yield from self.open_as_terms(query, others, left)

    def constant(self, query: Query, constant: Expr, offset: str, left: Rest) -> tuple[Query, str] | None:
        """The constant of a pattern against that of the sum: what is left of it."""
        factor = left.factor or "1"
        if left.taken:
            # else any sum would have the literal, and what makes up for it
            offset, query = query.fact(f"(!= 0 {offset})").computed("i64", f"(- {offset} {left.taken})")
        if self.thoroughly:
            # what letters' own constants are of it is not the pattern's
            offset, query = self.beyond(query, offset, left.requests)
            left = replace(left, requests=())
        kept = offset
        if _is_open(constant, query):
            solved = query.solved(constant, offset)
            if solved is None or left.requests:
                return None
            query, kept = solved.fact(f"(!= 0 {offset})"), "0"
            if factor != "1":
                query = query.fact(f"(= {factor} 1)")
            if self.rule.modulo_theory:
                query = query.fact(f"(< (multiset-length {left.terms}) {MOST_LEFT})")
        elif constant.op != "const" or constant.vmin:
            times, query = query.times(constant, factor)
            if constant.op == "const" and (self.thoroughly or (left.taker and not self.rule.modulo_theory)):
                # what a larger literal has beyond is kept, or the letter that takes the other terms takes it
                kept = f"(- {offset} {times})"
                query = query.fact(f"(<= (* {times} {times}) (* {times} {offset}))")
            else:
                query, kept = query.fact(f"(= {offset} {times})"), "0"
        kept, query = self.beyond(query, kept, left.requests)
        return query, kept

    @staticmethod
    def beyond(query: Query, constant: str, requests: Sequence[SubsumRequest]) -> tuple[str, Query]:
        """A constant without those of the letters whose terms were asked for."""
        for request in requests:
            constant, query = query.computed("i64", f"(- {constant} (* {request.times} {request.inside}))")
        return constant, query

    def container(self, query: Query, term: Expr, at: str, at_top: bool) -> WithMembers:
        """A product, junction, minimum or maximum against the class ``at``, and what is left if no letter takes it."""
        members = operands_of(term, term.op)
        whole, query = query.name("ME")
        query = query.fact(f"(= {at} ({CONTAINERS[term.op]} {whole}))")
        written = sorted([m for m in members if letter_of(m) is None], key=self.turn)
        letters = [x for m in members if (x := letter_of(m)) is not None]
        is_power = len(letters) == len(members) > 1 and not at_top
        starts = [(query, whole, letters)]
        if first := [x for x in dict.fromkeys(letters) if x in self.operands and x not in query.letters]:
            others = [*(Counter(letters) - Counter(first)).elements()]
            starts += [(*self.open_members(now, first, whole, whole), others) for now in self.detour(query)]
        for start, begun, others in starts:
            for now, left in self.written_members(start, written, whole, begun):
                yield from self.lettered_members(now, term.op, others, whole, left, at_top)
                for other in self.detour(now) if is_power and others is letters else ():
                    yield from self.power(other, term.op, letters, whole)

    def lettered_members(
        self, query: Query, op: str, letters: Sequence[str], whole: str, left: str, at_top: bool
    ) -> WithMembers:
        """Members that are letters: bound ones as one member or as several, open ones as one or as all the rest."""
        bound, free = [[x for x in letters if (x in query.letters) is known] for known in (True, False)]
        for now, rest in self.bound_members(query, op, bound, whole, left):
            takers = [] if at_top or len(set(free)) < len(free) else free
            for begun, taker in self.each_way(now, takers):
                end, taken = self.open_members(begun, [x for x in free if x != taker], whole, rest)
                yield end.fact(f"(< 1 (multiset-length {taken}))").bind(taker, f"({CONTAINERS[op]} {taken})"), ""
            for begun in self.detour(now) if takers else [now]:
                yield self.open_members(begun, free, whole, rest)

    def bound_members(self, query: Query, op: str, letters: Sequence[str], whole: str, left: str) -> WithMembers:
        """Bound letters as members, each as one or as those of a node that its class has of the same operator."""
        if not letters:
            yield query, left
            return
        letter = letters[0]
        at = query.letters[letter]
        same, others = [[x for x in letters if (x == letter) is alike] for alike in (True, False)]
        spreads = [False, True] if self.thoroughly else [False]
        # a letter that was matched in a product before is matched in the same way again
        for begun, spread in self.each_way(query, [s for s in spreads if query.spread.get(letter, s) is s]):
            now, several, rest = replace(begun, spread={**query.spread, letter: spread}), "", left
            if spread:
                several, now = self.members_of(now, op, at)
            for _ in same:
                before = rest
                if spread:
                    rest, now = now.computed("ME", f"(multiset-subtract {before} {several})")
                    # egglog subtracts nothing that is not there
                    now = now.fact(f"(= {before} (multiset-sum {rest} {several}))")
                else:
                    rest, now = now.fact(f"(in {whole} {at})").computed("ME", f"(multiset-remove {before} {at})")
            yield from self.bound_members(now, op, others, whole, rest)

    @staticmethod
    def members_of(query: Query, op: str, at: str) -> tuple[str, Query]:
        """The members of a node of ``op`` that a class has, or that was just made for it."""
        if at.startswith(made := f"({CONTAINERS[op]} "):
            return at.removeprefix(made)[:-1], query
        several, query = query.name("ME")
        return several, query.fact(f"(= {at} ({CONTAINERS[op]} {several}))")

    def power(self, query: Query, op: str, letters: Sequence[str], whole: str) -> WithMembers:
        """A letter alone, several times, as several members."""
        if len(set(letters)) == 1 and letters[0] not in query.letters:
            root, query = query.computed("ME", f"(multiset-reset-counts {whole})")
            power = root
            for _ in letters[1:]:
                power = f"(multiset-sum {power} {root})"
            query = query.fact(f"(= {whole} {power})", f"(< 1 (multiset-length {root}))")
            yield query.bind(letters[0], f"({CONTAINERS[op]} {root})"), ""

    def written_members(self, query: Query, members: Sequence[Expr], whole: str, left: str) -> WithMembers:
        if not members:
            yield query, left
            return
        member, query = query.name("E")
        rest, query = query.take(whole, member).computed("ME", f"(multiset-remove {left} {member})")
        for now in self.match(query, members[0], member):
            yield from self.written_members(self.cut(now, members), members[1:], whole, rest)

    def open_members(self, query: Query, letters: Sequence[str], whole: str, left: str) -> tuple[Query, str]:
        """Open letters, each as one member; what is left."""
        for x in letters:
            if (member := query.letters.get(x)) is None:
                member, query = query.name("E")
                query = query.take(whole, member).bind(x, member)
            left, query = query.computed("ME", f"(multiset-remove {left} {member})")
        return query, left

    def few(self, most: int) -> list[tuple[Query, Kept]]:
        """No more than ``most`` ways to match the left side: all those with few detours, if these are no more."""
        found: list[tuple[Query, Kept]] = []
        for detours in range(most):
            ways = [*islice(self.top(detours), most + 1)]
            if len(ways) > most or (found and len(ways) == len(found)):
                break
            found = ways
        return found or ways[:most]

    def top(self, most_detours: float = inf) -> Iterator[tuple[Query, Kept]]:
        """The left side matched, with what must be beside it, and what is kept of the class.

        At up to ``most_detours`` choices a way may be another than the first.
        """
        for query, kept in self.without_beside(Query(self.rule.name, detours_left=most_detours)):
            if self.pattern.beside is None:
                yield query, kept
                continue
            other, query = query.name("E")
            for found in self.match(query, self.pattern.beside, other):
                yield found, kept

    def without_beside(self, query: Query) -> Iterator[tuple[Query, Kept]]:
        """The left side matched, and what is kept of the class."""
        left = self.pattern.left
        if is_sum(left):
            query = self.conditions(query, as_sum(left)[1])
        query = query.declare("e", "E")
        if is_sum(left) and is_one_term(left):
            yield from self.one_addend(query, left)
        elif is_sum(left):
            for matched, rest in self.matched_sum(query, left, "e", at_top=True):
                yield matched, Kept("sum", rest.terms, rest.constant, rest.factor or "1")
        elif left.op in CONTAINERS:
            for matched, members in self.container(query, left, "e", at_top=True):
                yield matched, Kept(left.op, members)
        else:
            for matched in self.plain(query, left, "e"):
                yield matched, Kept()

    def conditions(self, query: Query, addends: Sequence[Addend]) -> Query:
        """The query with the conditions of selections, ``x < c`` and ``x < d``, taken apart after them and their guard.

        Few comparisons of one ``x`` are as the guard asks, while a selection has many forms, in many sums.
        """
        selecting = [addend.args[0] for _, addend in addends if addend.op == "where"]
        conditions = [p for p in selecting if p.op == "lt" and letter_of(p.args[0]) and is_literal_letter(p.args[1])]
        if self.thoroughly or len(conditions) < 2:
            return query
        names: list[str] = []
        for condition in conditions:
            name, query = query.name("E")
            # selections by one condition are one already
            (query,) = self.match(query.fact(*[f"(!= {other} {name})" for other in names]), condition, name)
            names.append(name)
        return self.decided(query).cut()

    def decided(self, query: Query) -> Query:
        """The query with what the guard says of literals that are known by now."""
        for conjunct in self.guards:
            if {str(v.value) for v in variables([conjunct.left, conjunct.right])} <= query.sorts.keys():
                query = query.guarded(conjunct)
        return query

    def one_addend(self, query: Query, left: Expr) -> Iterator[tuple[Query, Kept]]:
        """A left side with one addend and no constant: a term of any sum, for itself.

        What is found of the term then holds in every sum that has it, without a node for each of them.
        """
        [(coefficient, addend)] = as_sum(left)[1]
        query = replace(query, sorts={})
        (whole, term, atom, scale), query = query.named("MT", "T", "E", "i64")
        query = query.take_term(whole, term, atom, scale)
        for matched in self.match(query, addend, atom):
            found = self.coefficient(matched, coefficient, scale, Rest(whole, whole, "1"))
            if found is not None:
                yield found[0], Kept(of=f"(Sum (multiset-of {term}) 0)")


def _negative(text: str) -> str:
    """A sum with the opposite sign."""
    return f"(Sum (multiset-of (Sc -1 {text})) 0)"


def _is_open(number: Expr, query: Query) -> bool:
    """Whether a coefficient or constant speaks of a letter of a literal that is not bound."""
    return any(is_literal_letter(t) and str(t.value) not in query.sorts for t in topological([number]))


def _letters_in(left: Expr, sums: bool) -> Iterator[str]:
    """The letters that are addends of sums, or else operands of what is no sum, once for each."""
    parts = [a for _, a in as_sum(left)[1]] if is_sum(left) else left.args
    for part in parts:
        letter = letter_of(part)
        if letter is None:
            yield from _letters_in(part, sums)
        elif is_sum(left) is sums:
            yield letter


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
