"""Rules as egglog text: which nodes a rule queries, what it computes of their literals, and what it unites.

In the e-graph a literal operand is part of the node: ``AddK MulK DivK ModK`` carry it. ``sub``, ``neg``, ``le``, ``ne``
are spelled with ``add``, ``mul``, ``lt``, ``eq``. The right operand of the one sum under a ``//``, ``%`` or comparison
of a left side may also be a literal or end in one: the compiler writes those cases out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from eqsat.expr import Expr, substitute, topological, var, variables
from eqsat.saturation.patterns import (
    CONDITIONS,
    LARGEST,
    LITERALS,
    MEASURES,
    TERMS,
    Pattern,
    binds_index,
    is_condition_letter,
    pattern_of,
)
from eqsat.text import to_text

if TYPE_CHECKING:
    from eqsat.rule import Rule

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
    """

    name: str
    body: str
    head: str
    writes: frozenset[str]
    letters: tuple[str, ...]
    operators: int


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
}


def encode(term: Expr, text: Mapping[Expr, str], literal: Callable[[Expr], str | None]) -> str:
    """``term`` as a nest of egglog constructors, given the texts of its operands.

    ``literal`` gives the egglog number that a term is, or ``None`` if it is not one.
    """
    args = [text[a] for a in term.args]
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
    if binds_index(rule):
        return ()
    found = []
    for variant in _with_offsets(pattern):
        for conjuncts in alternatives(variant.when):
            found.append(_Compiler(rule.name, variant).run(conjuncts))
    if rule.both_ways:
        found += compile_rule(rule.reverse())
    return tuple(found)


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
        found = [t for t in left_terms if t.op == "var" and not _is_literal_letter(t)]
        counted = [str(t.value) for t in found for user in left_terms for a in user.args if a is t]
        operators = sum(bool(t.args) and not is_condition_letter(t) for t in left_terms)
        return CompiledRule(self.name, body, head, writes, tuple(counted), operators)

    def match(self) -> str:
        """The left side as a query; a literal in it is a letter or a number."""
        text: dict[Expr, str] = {}
        for term in topological([self.pattern.left]):
            if term.op == "const":
                text[term] = f"(Num {term.value})"
            elif term.op == "var":
                text[term] = f"(Num {term.value})" if _is_literal_letter(term) else str(term.value)
            elif is_condition_letter(term):
                text[term] = str(term.args[0].value)
            else:
                text[term] = self.bind_payload(encode(term, text, _plain_number))
        return text[self.pattern.left]

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
                text[term] = str(term.value)
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
        if term.is_bool or any(str(t.value) in TERMS + CONDITIONS for t in letters):
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


def _is_literal_letter(term: Expr) -> bool:
    name = str(term.value)
    return name in LITERALS or name.endswith("_k")


def _plain_number(term: Expr) -> str | None:
    """The number that a leaf of a query is."""
    if term.op == "const" or (term.op == "var" and _is_literal_letter(term)):
        return str(term.value)
    return None
