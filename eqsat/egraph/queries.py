"""Queries of egglog rules, written fact by fact; numbers that facts compute, where overflow means no match."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from eqsat.egraph.patterns import COMPUTED, MEASURES, Conjunct, is_literal_letter, is_machine_integer
from eqsat.lang.expr import Expr
from eqsat.lang.ops import BITWISE, FLOORS, MAX_SHIFT, OPS
from eqsat.lang.text import to_text
from eqsat.lang.traversal import variables

_COMPARISONS = {"lt": "<", "le": "<=", "eq": "=", "ne": "!=", "ge": ">=", "gt": ">"}
#: What egglog calls the operators on numbers that it has.
_OPERATORS = {**{op: OPS[op].symbol for op in ("add", "sub", "mul", *BITWISE)}, "min": "min", "max": "max"}


@dataclass(frozen=True)
class Cut:
    """Where a query is taken apart: what comes before writes rows of a table, which the rest reads.

    ``after`` facts and ``columns`` names came before.
    """

    after: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SubsumRequest(Cut):
    """A letter whose terms a sum is asked for: what is left then, and the constant of the letter's normal form."""

    whole: str
    letter: str
    times: str
    left: str
    inside: str
    #: Whether the multiple is open: any that cancels a term will do.
    is_open: bool

    @property
    def action(self) -> str:
        """The action that asks."""
        asked = "" if self.is_open else f" {self.times}"
        return f"({'seek' if self.is_open else 'ask'} {self.whole} {self.letter}{asked})"

    @property
    def fact(self) -> str:
        """The fact that something is left."""
        return f"(piece {self.whole} {self.letter} {self.times} {self.left} {self.inside})"


class Taken(NamedTuple):
    """What a fact takes any member of: a container, or else a sum, by its name in the query."""

    is_container: bool
    whole: str


class Shared(NamedTuple):
    """What two sums share: these terms, and this constant."""

    terms: str
    constant: str


class FirstSum(NamedTuple):
    """The first of two sums that share a letter: its terms, its constant, and its other letter."""

    terms: str
    constant: str
    letter: str


@dataclass(frozen=True)
class Query:
    """The query of a rule in egglog as far as it is written; branches share what they began with."""

    #: The name of the rule.
    rule: str
    facts: tuple[str, ...] = ()
    #: Every name of the query by its sort.
    sorts: dict[str, str] = field(default_factory=dict)
    #: The class of each letter: a name, or the text that makes it.
    letters: dict[str, str] = field(default_factory=dict)
    #: The class of each part of the pattern that was matched: a part that stands again is of that class.
    parts: dict[Expr, str] = field(default_factory=dict)
    #: By letter of a term that stands for the constant of a sum, that number.
    literals: dict[str, str] = field(default_factory=dict)
    #: By letter that is one term of a sum, the coefficient and the class of the term.
    terms: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: By letter that two sums share, the first of them.
    first: dict[str, FirstSum] = field(default_factory=dict)
    #: By letter that is bound to all that two sums share, that.
    common: dict[str, Shared] = field(default_factory=dict)
    #: Numbers that were computed, by what they are.
    numbers: dict[Expr, str] = field(default_factory=dict)
    #: By bound letter that a product has, whether it has the factors of the letter instead of the letter.
    spread: dict[str, bool] = field(default_factory=dict)
    #: The comparisons of the guard that are facts.
    guards: frozenset[Conjunct] = frozenset()
    cuts: tuple[Cut, ...] = ()
    #: By fact that takes any member of a container, or any term of a sum, of which.
    taken: dict[str, Taken] = field(default_factory=dict)
    #: How often it may still go another way than the first.
    detours_left: float = inf
    fresh: int = 0

    def fact(self, *texts: str) -> Query:
        """With more facts."""
        return replace(self, facts=(*self.facts, *texts))

    def take(self, whole: str, member: str) -> Query:
        """With any member of a container."""
        return self._taking(f"(in {whole} {member})", Taken(True, whole))

    def take_term(self, whole: str, term: str, atom: str, coefficient: str) -> Query:
        """With any term of a sum."""
        return self._taking(f"(at {whole} {term} {atom} {coefficient})", Taken(False, whole))

    def _taking(self, fact: str, taken: Taken) -> Query:
        return replace(self.fact(fact), taken={**self.taken, fact: taken})

    def named(self, *sorts: str) -> tuple[tuple[str, ...], Query]:
        """Fresh names of these sorts."""
        names = tuple([f"_{self.fresh + i}" for i in range(len(sorts))])
        sorted_names = {**self.sorts, **dict(zip(names, sorts, strict=True))}
        return names, replace(self, fresh=self.fresh + len(sorts), sorts=sorted_names)

    def name(self, sort: str) -> tuple[str, Query]:
        """A fresh name of this sort."""
        (name,), query = self.named(sort)
        return name, query

    def computed(self, sort: str, text: str) -> tuple[str, Query]:
        """A fresh name of this sort for what a text computes."""
        name, query = self.name(sort)
        return name, query.fact(f"(= {name} {text})")

    def bind(self, letter: str, text: str) -> Query:
        """A letter that stands for the class that a name is, or a text makes."""
        return replace(self, letters={**self.letters, letter: text})

    def declare(self, name: str, sort: str) -> Query:
        """A name of this sort that facts bind."""
        return replace(self, sorts={**self.sorts, name: sort})

    def cut(self) -> Query:
        """Taken apart here."""
        return replace(self, cuts=(*self.cuts, Cut(len(self.facts), tuple(self.sorts))))

    def letter(self, letter: str, at: str) -> Query:
        """A letter that stands for the class ``at``."""
        if (known := self.letters.get(letter)) is None:
            return self.bind(letter, at)
        return self.fact(f"(= {known} {at})")

    def literal(self, letter: str, text: str) -> Query:
        """A letter for a literal, which is this number."""
        return self.declare_literal(letter).fact(f"(= {letter} {text})")

    def declare_literal(self, letter: str) -> Query:
        """A letter for a literal that facts bind; ``s`` is the amount of a shift."""
        query = self.declare(letter, "i64")
        return query.fact("(<= 0 s)", f"(<= s {MAX_SHIFT})") if letter == "s" else query

    def number(self, term: Expr) -> tuple[str, Query]:
        """The name of a computed literal, bound by facts of the query, where overflow means no match."""
        if term in self.numbers:
            return self.numbers[term], self
        if term.op == "const":
            if not is_machine_integer(term.vmin):
                raise self.error(f"{term.vmin} is beyond the 64 bits that literals in rules have")
            return str(term.value), self
        if term.op == "var":
            return self._measure(str(term.value))
        args, query = [], self
        for arg in term.args:
            text, query = query.number(arg)
            args.append(text)
        if term.op in FLOORS:
            dividend, divisor = args
            (quotient, remainder), query = query.named("i64", "i64")
            # egglog's ``/`` and ``%`` truncate
            query = query.fact(
                f"(= {remainder} (% (+ (% {dividend} {divisor}) {divisor}) {divisor}))"
                f" (= {quotient} (/ (- {dividend} {remainder}) {divisor}))"
            )
            name = quotient if term.op == "floordiv" else remainder
            return name, replace(query, numbers={**query.numbers, term: name})
        if term.op == "shl":
            name, query = query.fact(f"(< {args[1]} 62)").computed("i64", f"(<< {args[0]} {args[1]})")
            # bits that a shift moves out are lost, unlike an overflow
            query = query.fact(f"(= {args[0]} (>> {name} {args[1]}))")
        elif term.op in COMPUTED:
            text = f"- 0 {args[0]}" if term.op == "neg" else f"{_OPERATORS[term.op]} {args[0]} {args[1]}"
            name, query = query.computed("i64", f"({text})")
        else:
            raise self.error(f"{to_text(term)!r} cannot be computed from literals")
        return name, replace(query, numbers={**query.numbers, term: name})

    def solved(self, term: Expr, text: str) -> Query | None:
        """With the one letter of a computed literal that is not bound yet, where the literal is this number.

        ``None`` if there are more of them, or it is hidden in an operator that has no inverse.
        """
        if is_literal_letter(term):
            return self.literal(str(term.value), text)
        is_open = [any(is_literal_letter(v) and v.value not in self.sorts for v in variables([a])) for a in term.args]
        if is_open not in ([True], [True, False], [False, True]):
            return None
        inner, query = term.args[is_open.index(True)], self
        number = "0"
        if len(is_open) > 1:
            number, query = query.number(term.args[is_open.index(False)])
        if term.op == "mul":
            query, text = query.fact(f"(= 0 (% {text} {number}))"), f"(/ {text} {number})"
        elif term.op in ("sub", "neg") and term.args[-1] is inner:
            text = f"(- {number} {text})"
        elif term.op in ("add", "sub"):
            text = f"({'-' if term.op == 'add' else '+'} {text} {number})"
        else:
            return None
        return query.solved(inner, text)

    def _measure(self, name: str) -> tuple[str, Query]:
        """A literal letter, or what is known of the class of a letter."""
        if name not in MEASURES:
            return name, self
        fact = f"_{name}"
        if fact in self.sorts:
            return fact, self
        function, letter, *others = name.split("_")
        at = self.letters[letter]
        query = self.declare(fact, "i64")
        if function == "gcd":
            first, query = query._measure(f"factor_{letter}")
            larger, smaller = [f"({which} {first} (abs {others[0]}))" for which in ("max", "min")]
            # a fraction in lowest terms has been divided by it; a zero denominator would panic
            return fact, query.fact(f"(= {fact} (/ {larger} (denom (rational {smaller} (max 1 {larger})))))")
        if function == "remainder":
            first, query = query._measure(f"modulus_{letter}")
            return fact, query.fact(f"(= {fact} (remainder {at} {first}))")
        table = {"vmin": "lo", "vmax": "hi", "factor": "fac", "modulus": "modulus"}[function]
        query = query.fact(f"(= {fact} ({table} {at}))")
        return fact, query.fact(f"(> {fact} 0)") if function == "modulus" else query

    def times(self, term: Expr, factor: str) -> tuple[str, Query]:
        """A computed literal times a factor."""
        number, query = self.number(term)
        if factor == "1" or number == "0":
            return number, query
        if number == "1":
            return factor, query
        return query.computed("i64", f"(* {factor} {number})")

    def divided(self, number: str, divisor: str) -> tuple[str, Query]:
        """A number divided by another, which leaves nothing."""
        if divisor == "1":
            return number, self
        if divisor == "-1":
            return self.computed("i64", f"(- 0 {number})")
        return self.fact(f"(= 0 (% {number} {divisor}))").computed("i64", f"(/ {number} {divisor})")

    def guarded(self, conjunct: Conjunct) -> Query:
        """A comparison of numbers in the guard, unless it is there."""
        if conjunct in self.guards:
            return self
        op, x, y = conjunct
        left, query = self.number(x)
        right, query = query.number(y)
        query = query.fact(f"({_COMPARISONS[op]} {left} {right})")
        return replace(query, guards=self.guards | {conjunct})

    def error(self, what: str) -> ValueError:
        """The error that says why the rule cannot be compiled."""
        return ValueError(f"rule {self.rule!r}: {what}")
