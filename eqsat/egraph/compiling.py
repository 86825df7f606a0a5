"""Rules as egglog text: which nodes a rule queries, what it computes of their literals, and what it unites.

In the e-graph a literal operand is part of the node: ``AddK MulK DivK ModK`` carry it. ``sub``, ``neg``, ``le``, ``ne``
are written with ``add``, ``mul``, ``lt``, ``eq``. The right operand of the one sum under a ``//``, ``%`` or comparison
of a left side may also be a literal or end in one: the compiler writes those cases out.

A reduction has its body, the ends of its range, and the number of its index; ``(Idx n)`` is the index as a term of the
body. A rule that only moves letters within the scope of an index, or out of it where they are ``free`` of it, unites
classes. Any other rule about reductions (it substitutes for an index, or has a range of its own) has ``columns``
instead: its match is a row of a table, from which :mod:`eqsat.egraph.reductions` builds the right side of terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from typing import TYPE_CHECKING

from eqsat.egraph.patterns import (
    CONDITIONS,
    LARGEST,
    LITERALS,
    MEASURES,
    TERMS,
    Pattern,
    binds_index,
    divided,
    has_own_loops,
    is_condition_letter,
    levels_around,
    moved_letter,
    pattern_of,
    places_of_letters,
    reductions_of,
)
from eqsat.lang.expr import (
    Expr,
    buffers,
    chain_members,
    const,
    index_level,
    is_index,
    substitute,
    topological,
    var,
    variables,
)
from eqsat.lang.ops import OPS, REDUCTIONS, Op, for_each_own
from eqsat.lang.text import to_text

if TYPE_CHECKING:
    from eqsat.egraph.rule import Rule

#: Where the right operand of a sum may be a literal: below these operators.
_SEES_OFFSETS = frozenset({"floordiv", "mod", "lt", "le", "eq", "ne"})


@dataclass(frozen=True)
class CompiledRule:
    """One egglog rule.

    Attributes
    ----------
    name : str
        The name of the rule it comes from.
    body, head : str
        The query and the actions, as egglog text.
    writes : frozenset of str
        The constructors that the actions build.
    letters : tuple of str
        The terms that the query binds, once per occurrence.
    operators : int
        How many operators the query matches.
    columns : tuple of str
        Of a rule whose right side is built of terms: what the row of a match has, the letters that the pattern's right
        side needs and ``i1``, ``i2``, ... for the indices by their levels; else empty.
    pattern : Pattern or None
        Of such a rule its parts.
    """

    name: str
    body: str
    head: str
    writes: frozenset[str]
    letters: tuple[str, ...]
    operators: int
    columns: tuple[str, ...] = ()
    pattern: Pattern | None = None

    @property
    def reindexes(self) -> bool:
        """Whether the right side has loops of its own."""
        return self.pattern is not None and has_own_loops(self.pattern)

    def sorts(self) -> tuple[str, ...]:
        """The sort of each of the ``columns``: a term or condition, or a number."""
        return tuple(["T" if name in TERMS + CONDITIONS else "i64" for name in self.columns])


#: Constructors by operator; those with a literal operand are written with a K.
CONSTRUCTORS = {
    "add": "Add",
    "mul": "Mul",
    "floordiv": "Div",
    "mod": "Mod",
    "lt": "Lt",
    "eq": "Eq",
    "and": "And",
    "or": "Or",
    "not": "Not",
    "min": "Min",
    "max": "Max",
    "where": "Where",
    "tdiv": "TDiv",
    "tmod": "TMod",
    "shl": "Shl",
    "shr": "Shr",
    "bitand": "BitAnd",
    "bitor": "BitOr",
    "bitxor": "BitXor",
}


@for_each_own
def _add_constructor(op: Op) -> None:
    CONSTRUCTORS[op.name] = f"Own-{op.name}"


#: Constructors of reductions: the body, the ends of the range, and the number of the index.
REDUCERS = {"sum_over": "SumOver", "prod_over": "ProdOver", "max_over": "MaxOver", "min_over": "MinOver"}


def encode(term: Expr, text: Mapping[Expr, str], literal: Callable[[Expr], str | None]) -> str:
    """``term`` as a nest of egglog constructors, given the texts of its operands.

    ``literal`` gives the egglog number that a term is, or ``None`` if it is not one.
    """
    args = [text[a] for a in term.args]
    if term.op in REDUCERS:
        return _encode_reduction(term.op, *args)
    numbers = [literal(a) for a in term.args]
    match term.op:
        case "bool":
            return "(True)" if term.value else "(False)"
        case "neg":
            return f"(MulK {args[0]} -1)"
        case "sub":
            return _encode_sub(args, numbers)
        case "add" | "mul" if numbers[0] is not None and numbers[1] is None:
            return f"({CONSTRUCTORS[term.op]}K {args[1]} {numbers[0]})"
        case "add" | "mul" if numbers[1] is not None:
            return f"({CONSTRUCTORS[term.op]}K {args[0]} {numbers[1]})"
        case "floordiv" | "mod" if numbers[1] is not None and numbers[1] != "0":
            return f"({CONSTRUCTORS[term.op]}K {args[0]} {numbers[1]})"
        case "le":
            return _encode_le(args, numbers)
        case "ne":
            return f"(Not (Eq {args[0]} {args[1]}))"
    return f"({CONSTRUCTORS[term.op]} {' '.join(args)})"


def _encode_reduction(op: str, body: str, index: str, low: str, high: str) -> str:
    number = index.removeprefix("(Idx ").removesuffix(")")
    if number == index:
        raise AssertionError(f"an index is written {index!r}")
    return f"({REDUCERS[op]} {body} {low} {high} {number})"


def _encode_sub(args: list[str], numbers: list[str | None]) -> str:
    if numbers[1] is not None:
        return f"(AddK {args[0]} {_shifted('0', numbers[1], '-')})"
    if numbers[0] is not None:
        return f"(AddK (MulK {args[1]} -1) {numbers[0]})"
    return f"(Add {args[0]} (MulK {args[1]} -1))"


def _encode_le(args: list[str], numbers: list[str | None]) -> str:
    if numbers[1] is not None:
        return f"(Lt {args[0]} (Num {_shifted(numbers[1], '1', '+')}))"
    if numbers[0] is not None:
        return f"(Lt (Num {_shifted(numbers[0], '1', '-')}) {args[1]})"
    return f"(Lt {args[0]} (AddK {args[1]} 1))"


def _shifted(left: str, right: str, sign: str) -> str:
    """The sum or difference of two egglog numbers, computed now where both are known."""
    if _is_number(left) and _is_number(right):
        return str(int(left) + int(right) if sign == "+" else int(left) - int(right))
    return f"({sign} {left} {right})"


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


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


@cache
def compile_rule(rule: Rule) -> tuple[CompiledRule, ...]:
    """The egglog rules of ``rule``: one for each way to write an offset and each alternative of its guard.

    Raises
    ------
    ValueError
        If the rule is malformed; one line that names it.
    """
    pattern = pattern_of(rule)
    found = []
    for variant in chain.from_iterable(map(_with_offsets, _with_literals(pattern))):
        for conjuncts in alternatives(variant.when):
            for known in product(*map(_ways_to_know, conjuncts)) if binds_index(rule) else [conjuncts]:
                kind = _BinderCompiler if binds_index(rule) else _Compiler
                found.append(kind(rule.name, variant).run(known))
    if rule.both_ways:
        found += compile_rule(rule.reverse())
    return tuple(found)


def _with_literals(pattern: Pattern) -> Iterator[Pattern]:
    """``pattern``, and of one about reductions its copies in which an operand of a sum or product is a literal.

    Other rules have letters of literals where that makes a difference.
    """
    yield pattern
    order = topological([pattern.left])
    if not any(t.op in REDUCTIONS for t in order):
        return
    below = {a for t in order if t.op in _SEES_OFFSETS for a in t.args}
    ends = {end for t in order if t.op in REDUCTIONS for end in t.args[2:]}
    moved = {moved_letter(array) for array in buffers([pattern.right])}
    for term in order:
        if term.op not in ("add", "mul") or term in below or term in ends:
            continue
        for letter in dict.fromkeys(term.args):
            name = str(letter.value)
            uses = sum(t.args.count(letter) for t in order)
            if letter.op == "var" and name in TERMS and uses == 1 and name not in moved:
                literal = {letter: var(f"{name}_k", letter.vmin, letter.vmax)}
                yield Pattern(*substitute([pattern.left, pattern.right, pattern.when], literal))


def _with_offsets(pattern: Pattern) -> Iterator[Pattern]:
    """``pattern``, and its copies in which the open operand of its sum is a literal, or ends in one."""
    yield pattern
    below = {a for t in topological([pattern.left]) if t.op in _SEES_OFFSETS for a in t.args}
    sums = [t for t in topological([pattern.left]) if t.op == "add" and t in below]
    if len(sums) != 1:
        return
    whole, letter = sums[0], sums[0].args[1]
    name = str(letter.value)
    uses = sum(t.args.count(letter) for t in topological([pattern.left]))
    measures = [m for v in variables([pattern.right, pattern.when]) for m in _measured(str(v.value))]
    bounds_alone = all(function in ("vmin", "vmax") for function, of in measures if of == name)
    if letter.op != "var" or name not in TERMS or uses != 1 or not bounds_alone:
        return
    offset = var(f"{name}_k", -LARGEST, LARGEST)
    low, high = MEASURES[f"vmin_{name}"], MEASURES[f"vmax_{name}"]
    alone = {letter: offset, low: offset, high: offset}
    yield Pattern(*substitute([pattern.left, pattern.right, pattern.when], alone))
    ended = {letter: letter + offset, low: low + offset, high: high + offset}
    left = pattern.left.substitute({whole: whole + offset})
    yield Pattern(left, *substitute([pattern.right, pattern.when], ended))


def _measured(name: str) -> list[tuple[str, str]]:
    """(function, letter) pairs of a scalar such as ``gcd_x_d``."""
    function, *letters = name.split("_")
    return [(function, letter) for letter in letters] if name in MEASURES else []


_NEGATED = {"lt": "ge", "le": "gt", "eq": "ne", "ne": "eq"}
_FACTS = {"lt": "<", "le": "<=", "eq": "=", "ne": "!=", "ge": ">=", "gt": ">"}

Conjunct = tuple[str, Expr, Expr]


def alternatives(when: Expr) -> list[list[Conjunct]]:
    """The guard in disjunctive normal form: each alternative alone lets the rule fire."""
    holds: dict[Expr, list[list[Conjunct]]] = {}
    fails: dict[Expr, list[list[Conjunct]]] = {}
    for term in topological([when]):
        if term.op == "bool":
            holds[term], fails[term] = [[] for _ in range(term.vmax)], [[] for _ in range(1 - term.vmax)]
        elif term.op == "not":
            holds[term], fails[term] = fails[term.args[0]], holds[term.args[0]]
        elif term.op in ("and", "or"):
            left, right = term.args
            one, other = (holds, fails) if term.op == "and" else (fails, holds)
            one[term] = [f + g for f in one[left] for g in one[right]]
            other[term] = other[left] + other[right]
        elif term.is_bool:
            holds[term] = [[(term.op, *term.args)]]  # type: ignore[list-item]
            fails[term] = [[(_NEGATED[term.op], *term.args)]]  # type: ignore[list-item]
    return holds[when]


def _ways_to_know(conjunct: Conjunct) -> list[Conjunct]:
    """How a comparison of terms may be known in a rule about reductions: as a fact, by a false one, or by bounds.

    Of the ends of every range the graph has ``low < high`` and ``high < low``, so it is these that are asked for.
    """
    op, left, right = conjunct
    if op != "lt" or not any(str(v.value) in TERMS for v in variables([left, right])):
        return [conjunct]
    found = [("bounds", left, right)]
    if right.op == "add" and right.args[1] is const(1):
        return [*found, ("refuted", right.args[0], left)]
    return [*found, conjunct]


class _Compiler:
    """Builds one egglog rule; every computed number is bound in the body, where overflow means no match."""

    def __init__(self, name: str, pattern: Pattern) -> None:
        self.name = name
        self.pattern = pattern
        self.facts: list[str] = []
        self.measures: dict[str, str] = {}
        self.numbers: dict[Expr, str] = {}

    def fail(self, what: str) -> ValueError:
        return ValueError(f"rule {self.name!r}: {what}")

    def run(self, conjuncts: Iterable[Conjunct]) -> CompiledRule:
        left = self.match()
        for conjunct in conjuncts:
            self.guard(*conjunct)
        right = self.build()
        body = f"(= e {left}) " + " ".join(self.facts)
        head = f"(union e {right})"
        writes = frozenset(re.findall(r"\(([A-Z]\w*)", right))
        left_terms = [t for t in topological([self.pattern.left]) if t.op != "const"]
        found = [t for t in left_terms if t.op == "var" and not is_index(t) and not _is_literal_letter(t)]
        counted = [str(t.value) for t in found for user in left_terms for a in user.args if a is t]
        operators = sum(bool(t.args) and not is_condition_letter(t) for t in left_terms)
        return CompiledRule(self.name, body, head, writes, tuple(counted), operators)

    def match(self) -> str:
        """The left side as a query; a literal in it is a letter or a number."""
        text: dict[Expr, str] = {}
        for term in topological([self.pattern.left]):
            text[term] = self.match_term(term, text)
        return text[self.pattern.left]

    def match_term(self, term: Expr, text: Mapping[Expr, str]) -> str:
        """One term of the left side, given the texts of its operands."""
        if term.op == "const":
            return f"(Num {term.value})"
        if term.op == "var":
            return f"(Num {term.value})" if _is_literal_letter(term) else str(term.value)
        if is_condition_letter(term):
            return str(term.args[0].value)
        return self.bind_payload(encode(term, text, _plain_number))

    def bind_payload(self, text: str) -> str:
        """Give a computed literal of a query a name of its own, and say what it is."""

        def bound(match: re.Match[str]) -> str:
            name = f"_{len(self.facts)}"
            sign, left, right = match.groups()
            # solved for the letter, so that the fact binds it
            if left == "0" and sign == "-":
                self.facts.append(f"(= {right} (- 0 {name}))")
            else:
                self.facts.append(f"(= {left} ({'-' if sign == '+' else '+'} {name} {right}))")
            return name

        return re.sub(r"\(([-+]) (\w+) (\w+)\)", bound, text)

    def guard(self, op: str, left: Expr, right: Expr) -> None:
        terms = [v for v in variables([left, right]) if str(v.value) in TERMS]
        if not terms:
            self.facts.append(f"({_FACTS[op]} {self.number(left)} {self.number(right)})")
        elif op == "lt":
            text = {t: str(t.value) for t in terms}
            for term in topological([left, right]):
                if term not in text:
                    number = self.number_or_none(term)
                    text[term] = f"(Num {number})" if number is not None else encode(term, text, self.number_or_none)
            self.facts.append(f"(= (True) (Lt {text[left]} {text[right]}))")
        else:
            raise self.fail("a guard may compare terms with < only, as in 'x < y'; bounds with vmin(x), vmax(x)")

    def build(self) -> str:
        """The right side as an action."""
        text: dict[Expr, str] = {}
        for term in topological([self.pattern.right]):
            if (number := self.number_or_none(term)) is not None:
                text[term] = f"(Num {number})"
            elif term.op == "var":
                text[term] = f"(Idx i{index_level(term)})" if is_index(term) else str(term.value)
            elif is_condition_letter(term):
                text[term] = str(term.args[0].value)
            else:
                text[term] = self.bind_computed(encode(term, text, self.number_or_none))
        return text[self.pattern.right]

    def bind_computed(self, text: str) -> str:
        def bound(match: re.Match[str]) -> str:
            name = f"_{len(self.facts)}"
            self.facts.append(f"(= {name} {match[0]})")
            return name

        return re.sub(r"\(([-+]) (\w+) (\w+)\)", bound, text)

    def number_or_none(self, term: Expr) -> str | None:
        letters = [t for t in topological([term]) if t.op == "var"]
        if term.is_bool or any(is_index(t) or str(t.value) in TERMS + CONDITIONS for t in letters):
            return None
        return self.number(term)

    def number(self, term: Expr) -> str:
        """The egglog name of a computed literal, bound by facts of the body."""
        for part in topological([term]):
            if part not in self.numbers:
                self.numbers[part] = self.compute(part, [self.numbers[a] for a in part.args])
        return self.numbers[term]

    def compute(self, term: Expr, args: list[str]) -> str:
        name = f"_{len(self.facts)}"
        match term.op:
            case "const":
                return str(term.value)
            case "var":
                return self.measure(str(term.value))
            case "floordiv" | "mod":
                facts, quotient, remainder = floor_parts(name, *args)
                self.facts.append(facts)
                return quotient if term.op == "floordiv" else remainder
            case "neg":
                value = f"(- 0 {args[0]})"
            case "add" | "sub" | "mul" | "min" | "max":
                symbol = {"add": "+", "sub": "-", "mul": "*"}.get(term.op, term.op)
                value = f"({symbol} {args[0]} {args[1]})"
            case "bitand" | "bitor" | "bitxor":
                value = f"({OPS[term.op].symbol} {args[0]} {args[1]})"
            case "shl":
                # egglog's shift does not check for overflow
                self.facts.append(f"(< {args[1]} 62)")
                value = f"(<< {args[0]} {args[1]})"
            case _:
                raise self.fail(f"{to_text(term)!r} cannot be computed from literals")
        self.facts.append(f"(= {name} {value})")
        return name

    def measure(self, name: str) -> str:
        """The egglog name of a literal letter or of a scalar such as ``vmin_x``."""
        if name not in MEASURES:
            return name
        if name not in self.measures:
            function, *letters = name.split("_")
            self.measures[name] = fact = f"_{name}"
            if function == "gcd":
                first = self.measure(f"factor_{letters[0]}")
                self.facts.append(f"(= {fact} {common_divisor(first, letters[1])})")
            elif function == "modulus":
                self.facts.append(f"(= {fact} (modulus {letters[0]})) (> {fact} 0)")
            elif function == "remainder":
                modulus = self.measure(f"modulus_{letters[0]}")
                self.facts.append(f"(= {fact} (remainder {letters[0]} {modulus}))")
            else:
                table = {"vmin": "lo", "vmax": "hi", "factor": "fac"}[function]
                self.facts.append(f"(= {fact} ({table} {letters[0]}))")
        return self.measures[name]


class _BinderCompiler(_Compiler):
    """Builds one egglog rule about reductions."""

    def __init__(self, name: str, pattern: Pattern) -> None:
        super().__init__(name, pattern)
        self.around = levels_around(pattern.left)

    def run(self, conjuncts: Iterable[Conjunct]) -> CompiledRule:
        if not self.needs_terms():
            for letter, level in self.carried():
                self.facts.append(f"(free {letter} i{level})")
            return super().run(conjuncts)
        conjuncts = list(conjuncts)
        left = self.match()
        found = {divisor for _, divisor in divided(self.pattern)} - self.around.keys()
        for conjunct in conjuncts:
            if not found.intersection(_letters(conjunct)):
                self.guard(*conjunct)
        body = f"(= e {left}) " + " ".join(self.facts)
        return CompiledRule(self.name, body, "", frozenset(), (), 0, self.columns(found), self.pattern)

    def columns(self, but: Collection[str]) -> tuple[str, ...]:
        """The letters of the right side ``but`` some, and the indices of the left one."""
        right = self.pattern.right
        letters = {str(v.value) for v in variables([right])} | {moved_letter(array) for array in buffers([right])}
        letters -= {*but}
        levels = {index_level(t.args[1]) for t in reductions_of(self.pattern.left)}
        return (*sorted(letters), *[f"i{level}" for level in sorted(levels)])

    def needs_terms(self) -> bool:
        """Whether the right side is more than classes: it substitutes, or has a range beyond those of the left."""
        left = reductions_of(self.pattern.left)
        right = topological([self.pattern.right])
        return any(t.op == "load" for t in right) or not all(
            any(is_within(t, other) for other in left) for t in right if t.op in REDUCTIONS
        )

    def carried(self) -> Iterator[tuple[str, int]]:
        """Letters that come into the scope of an index, or stand both inside and outside it, and its level.

        An index of that number around the whole would be another one there.
        """
        sides = [places_of_letters(self.pattern.left), places_of_letters(self.pattern.right)]
        levels = {index_level(t.args[1]) for t in reductions_of(self.pattern.left)}
        for letter, found in sides[0].items():
            for level in () if _names_literal(letter) else sorted(levels):
                inside = [level in around for around in (*found, *sides[1].get(letter, ()))]
                if any(inside) and not all(level in around for around in found):
                    yield letter, level

    def match(self) -> str:
        text: dict[Expr, str] = {}
        for term in topological([self.pattern.left]):
            if term.op == "var" and is_index(term):
                text[term] = f"(Idx i{index_level(term)})"
            elif term.op in REDUCTIONS:
                text[term] = self.match_reduction(term, text)
            else:
                text[term] = self.match_term(term, text)
        return text[self.pattern.left]

    def match_reduction(self, term: Expr, text: Mapping[Expr, str]) -> str:
        """A reduction; one over a range of literal length asks for that, however the ends are written."""
        low, high = term.args[2:]
        if high.op != "add" or high.args[0] is not low or (number := _plain_number(high.args[1])) is None:
            return encode(term, text, _plain_number)
        end = f"_{len(self.facts)}"
        # each end is bound by the reduction
        self.facts.append(f"(extent {text[low]} {end} {number})")
        return encode(term, {**text, high: end}, _plain_number)

    def guard(self, op: str, left: Expr, right: Expr) -> None:
        asked, _, letter = str(left.value).partition("_")
        if left.op == "var" and asked == "divides":
            # what a body is divided by is read off its term
            return
        if left.op == "var" and asked == "free":
            if op != "ne":
                raise self.fail("a guard may not ask that free(...) is false: the absence of a fact proves nothing")
            for level in self.around.get(letter, ()):
                self.facts.append(f"(free {letter} i{level})")
        elif op == "refuted":
            self.facts.append(f"(= (False) (Lt {self.text(left)} {self.text(right)}))")
        elif op == "bounds":
            self.facts.append(f"(< {self.bound('hi', left)} {self.bound('lo', right)})")
        else:
            super().guard(op, left, right)

    def text(self, term: Expr) -> str:
        """A term of a guard in the graph."""
        number = self.number_or_none(term)
        if number is not None:
            return f"(Num {number})"
        text = {t: str(t.value) for t in variables([term])}
        for part in topological([term]):
            if part not in text:
                literal = self.number_or_none(part)
                text[part] = f"(Num {literal})" if literal is not None else encode(part, text, self.number_or_none)
        return text[term]

    def bound(self, table: str, term: Expr) -> str:
        """The number that bounds a term of a guard."""
        number = self.number_or_none(term)
        if number is not None:
            return number
        if term.op == "add" and (offset := self.number_or_none(term.args[1])) is not None:
            value = f"(+ {self.bound(table, term.args[0])} {offset})"
        else:
            value = f"({table} {self.text(term)})"
        name = f"_{len(self.facts)}"
        self.facts.append(f"(= {name} {value})")
        return name


def _letters(conjunct: Conjunct) -> set[str]:
    """The literals that a conjunct of a guard speaks of."""
    names = [str(v.value) for v in variables(conjunct[1:])]
    return {letter for name in names for letter in (name.split("_")[1:] if name.startswith("divides_") else [name])}


def is_within(reduction: Expr, other: Expr) -> bool:
    """Whether the range of a reduction, if it is not empty, is always a part of that of another over its index."""
    _, index, low, high = reduction.args
    _, like, least, most = other.args
    return (
        index_level(index) == index_level(like)
        and least in chain_members(low, "max")
        and most in chain_members(high, "min")
    )


def _is_literal_letter(term: Expr) -> bool:
    return _names_literal(str(term.value))


def _names_literal(letter: str) -> bool:
    return letter in LITERALS or letter.endswith("_k")


def _plain_number(term: Expr) -> str | None:
    """The number that a leaf of a query is."""
    if term.op == "const" or (term.op == "var" and _is_literal_letter(term)):
        return str(term.value)
    return None
