"""Rules: one line of data each, and everything that is derived from that line.

A :class:`Rule` says that two patterns are equal where a guard holds, in the syntax of expressions. In a pattern
``a b c d k m n s`` match integer literals (``s`` a shift amount), ``u v w x y z`` any term, ``p q r`` any condition,
and a repeated letter means the same term. A guard may ask for ``vmin(x)``, ``vmax(x)``, ``factor(x)`` (a known divisor
of every value of ``x``), ``gcd(x, d)`` (that of ``factor(x)`` and ``d``), for ``modulus(x)`` and ``remainder(x)`` (each
value of ``x`` is ``remainder(x)`` modulo ``modulus(x)``, and ``0 <= remainder(x) < modulus(x)``), and for a comparison
of two terms (``x < y``) that must be a known fact. A rule may assume that no divisor in its left side is zero.

A pattern may have reductions, as in ``sum(x, i, u, v)``: a letter in the body may speak of the index, unless the guard
says ``free(x)``; ``at(x, y)`` is ``x`` where its index is ``y``. Such rules are what :mod:`eqsat.reduce` rests on; they
are proved for each small range (:mod:`eqsat.binding`). The e-graph has no classes for their indices: derivations and
the greedy engine match them.

From the data come the egglog rules (:func:`compile_rule`), the matcher of the greedy engine (:mod:`eqsat.greedy`) and
the proof (:mod:`eqsat.proof`).

In the e-graph a literal operand is part of the node: ``AddK MulK DivK ModK`` carry it. ``sub``, ``neg``, ``le``, ``ne``
are spelled with ``add``, ``mul``, ``lt``, ``eq``. The right operand of the one sum under a ``//``, ``%`` or comparison
of a left side may also be a literal or end in one: the compiler writes those cases out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from eqsat.expr import TRUE, Expr, const, make, substitute, topological, var, variables
from eqsat.ops import MAX_SHIFT
from eqsat.text import parse, to_text

LITERALS = "abcdkmns"
TERMS = "uvwxyz"
CONDITIONS = "pqr"

#: Letters are parsed as variables of this range, small enough for the truth test to stay in machine integers.
WIDE = 2**15
_LETTERS = {
    **{name: var(name, -WIDE, WIDE) for name in LITERALS + TERMS},
    "s": var("s", 0, MAX_SHIFT),
    **{name: make("ne", var(name, 0, 1), const(0)) for name in CONDITIONS},
}
#: ``vmin(x)`` is read as a scalar named ``vmin_x``, and so on.
_MEASURE = re.compile(r"\b(vmin|vmax|factor|gcd|modulus|remainder|free|at)\(\s*(\w+)\s*(?:,\s*(\w+)\s*)?\)")
_MEASURES = {
    **{f"{f}_{x}": var(f"{f}_{x}", -WIDE, WIDE) for f in ("vmin", "vmax") for x in TERMS},
    **{f"{f}_{x}": var(f"{f}_{x}", 1, WIDE) for f in ("factor", "modulus") for x in TERMS},
    **{f"remainder_{x}": var(f"remainder_{x}", 0, WIDE) for x in TERMS},
    **{f"gcd_{x}_{y}": var(f"gcd_{x}_{y}", 0, WIDE) for x in TERMS for y in LITERALS},
}
#: In patterns with reductions the letters stand for few values, so that their products have bounds.
_FEW = 8
_NARROW = {name: var(name, -_FEW, _FEW) if term.op == "var" else term for name, term in _LETTERS.items()}
_BINDING = {
    **{name: var(name, -_FEW, _FEW) if name[0] == "v" else term for name, term in _MEASURES.items()},
    **{f"free_{x}": make("ne", var(f"free_{x}", 0, 1), const(0)) for x in TERMS + CONDITIONS},
    **{f"at_{x}_{y}": var(f"at_{x}_{y}", -_FEW, _FEW) for x in TERMS for y in TERMS},
}
#: Where the right operand of a sum may be a literal: below these operators.
_SEES_OFFSETS = frozenset({"floordiv", "mod", "lt", "le", "eq", "ne"})


#: What egglog's text and the engine's profiles can carry as a name.
_NAME = re.compile(r'[^"@\\\r\n]+')


@dataclass(frozen=True)
class Rule:
    """``left`` equals ``right`` for all values of the letters for which ``when`` holds.

    Parameters
    ----------
    name : str
        Unique in a rule set; shown in profiles and explanations. Without quotes, backslashes, ``@`` and line breaks.
    left, right : str
        The patterns; see the module's text. A literal on the right may be computed, as in ``x*(c//d)``.
    when : str
        The guard; empty means always.
    why : str
        The reason, for a reader.
    both_ways : bool
        Whether ``right`` is rewritten to ``left`` too.
    source : str
        What it implements: ids of lines in ``docs/requirements.md``, such as ``"A9 A13"``, or a publication.
    check : bool
        Whether :func:`eqsat.optimize` refuses the rule if a counterexample of small values refutes it.

    Raises
    ------
    ValueError
        If a pattern or the guard does not parse, or uses a letter that the left side does not bind; if both sides
        are the same; if the left side is a letter alone, which matches all there is; or if the name will not do.
    TypeError
        If the name, a pattern or the guard is no text.

    >>> Rule("div-multiple", "(x*c + y) // d", "x*(c//d) + y//d", "d > 0 and c % d == 0", "x*(c/d) is whole").name
    'div-multiple'
    """

    name: str
    left: str
    right: str
    when: str = ""
    why: str = ""
    both_ways: bool = False
    source: str = ""
    check: bool = True

    def __post_init__(self) -> None:
        for part in ("name", "left", "right", "when"):
            if not isinstance(getattr(self, part), str):
                raise TypeError(f"the {part} of a rule is a text, not {getattr(self, part)!r}")
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a rule is named {self.name!r}: give it a name without quotes, backslashes, @ and line breaks"
            )
        compile_rule(self)

    def reverse(self) -> Rule:
        """The rule from right to left."""
        return Rule(self.name, self.right, self.left, self.when, self.why)


def refuse_repeated(rules: Iterable[Rule]) -> None:
    """Raise ``ValueError`` if two of ``rules`` share a name, by which profiles and explanations know them."""
    names = Counter(rule.name for rule in rules)
    repeated = next((name for name, count in names.items() if count > 1), None)
    if repeated is not None:
        raise ValueError(f"two rules are named {repeated!r}: give each rule of a set a name of its own")


@dataclass(frozen=True)
class Counterexample:
    """Values of the letters (and what is known of them) for which the guard holds and the sides differ.

    Attributes
    ----------
    values : dict from str to int
        By letter, or by measure as a guard writes it: ``"vmin(x)"``.
    left, right : str
        The value of each side; ``"undefined"`` where a divisor is zero.
    """

    rule: str
    values: dict[str, int]
    left: str
    right: str

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"rule {self.rule!r} is false: with {values} the left side is {self.left}, the right side {self.right}"


@dataclass(frozen=True)
class Pattern:
    """A rule's three parts as terms over letters."""

    left: Expr
    right: Expr
    when: Expr


@cache
def pattern_of(rule: Rule) -> Pattern:
    """The parts of ``rule`` parsed.

    Raises
    ------
    ValueError
        If a part does not parse or a letter is unbound; one line that names the rule.
    """
    try:
        binds = binds_index(rule)
        left = parse(rule.left, _NARROW if binds else _LETTERS)
        right = _parse_measured(rule.right, binds)
        when = _parse_measured(rule.when, binds) if rule.when else TRUE
    except ValueError as error:
        raise ValueError(f"rule {rule.name!r}: {error}") from None
    if left.is_bool is not right.is_bool:
        raise ValueError(f"rule {rule.name!r}: one side is a condition, the other a number")
    if is_condition_letter(left) or (left.op == "var" and right.args):
        raise ValueError(f"rule {rule.name!r}: the left side is a letter, which matches all terms: give it an operator")
    if left is right:
        raise ValueError(f"rule {rule.name!r}: both sides are {to_text(left)!r}")
    if not when.is_bool:
        raise ValueError(f"rule {rule.name!r}: the guard {rule.when!r} is no condition: compare it, as in 'c > 0'")
    bound = {v.value for v in variables([left])}
    for term in variables([right, when]):
        for letter in _letters_of(str(term.value)):
            if letter not in bound:
                raise ValueError(f"rule {rule.name!r}: the left side does not bind {letter!r}")
    return Pattern(left, right, when)


def binds_index(rule: Rule) -> bool:
    """Whether the patterns of ``rule`` have reductions."""
    return re.search(r"\b(sum|prod|max_over|min_over)\(", rule.left) is not None


def _parse_measured(text: str, binds: bool) -> Expr:
    flat = _MEASURE.sub(lambda m: "_".join(g for g in m.groups() if g), text)
    return parse(flat, _NARROW | _BINDING if binds else _LETTERS | _MEASURES)


def _letters_of(name: str) -> list[str]:
    """The letters that a scalar such as ``vmin_x`` or ``gcd_x_d`` speaks of."""
    return name.split("_")[1:] if name in _MEASURES or name in _BINDING else [name]


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
    offset = var(f"{name}_k", -WIDE, WIDE)
    low, high = _MEASURES[f"vmin_{name}"], _MEASURES[f"vmax_{name}"]
    alone = {letter: offset, low: offset, high: offset}
    yield Pattern(*substitute([pattern.left, pattern.right, pattern.when], alone))
    ended = {letter: letter + offset, low: low + offset, high: high + offset}
    left = pattern.left.substitute({whole: whole + offset})
    yield Pattern(left, *substitute([pattern.right, pattern.when], ended))


def _measured(name: str) -> list[tuple[str, str]]:
    """(function, letter) pairs of a scalar such as ``gcd_x_d``."""
    function, *letters = name.split("_")
    return [(function, letter) for letter in letters] if name in _MEASURES else []


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
        if name not in _MEASURES:
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


def is_condition_letter(term: Expr) -> bool:
    """Whether a term of a pattern is a condition letter, which is read as ``p != 0``."""
    return term.op == "ne" and term.args[0].op == "var" and str(term.args[0].value) in CONDITIONS


def _plain_number(term: Expr) -> str | None:
    """The number that a leaf of a query is."""
    if term.op == "const" or (term.op == "var" and _is_literal_letter(term)):
        return str(term.value)
    return None


@cache
def is_commutativity(rule: Rule) -> bool:
    """Whether ``rule`` only swaps the operands of one operator."""
    pattern = pattern_of(rule)
    left, right = pattern.left, pattern.right
    return len(left.args) == 2 and right.op == left.op and right.args == left.args[::-1]


@cache
def grows(rule: Rule) -> bool:
    """Whether ``rule`` makes terms bigger: more operators, terms or conditions on the right; literals are not counted.

    >>> grows(Rule("distribute", "(x + y) * z", "x*z + y*z")), grows(Rule("scales-multiply", "(x*c)*d", "x*(c*d)"))
    (True, False)
    """
    pattern = pattern_of(rule)
    left, right = _nodes(pattern.left), _nodes(pattern.right)
    return not right <= left or (rule.both_ways and left != right)


def _nodes(side: Expr) -> Counter[str]:
    """How often each term and condition occurs in one side of a rule, and under ``""`` how many operators on them."""
    found: Counter[str] = Counter()
    stack = [side]
    while stack:
        term = stack.pop()
        if is_condition_letter(term) or str(term.value) in TERMS:
            found[str(variables([term])[0].value)] += 1
        elif any(str(v.value) in TERMS + CONDITIONS for v in variables([term])):
            found[""] += 1
            stack += term.args
    return found


@cache
def only_reorders(rule: Rule) -> bool:
    """Whether both sides apply one operator to the same terms or conditions: commutativity, associativity.

    >>> only_reorders(Rule("associates", "(x + y) + z", "x + (y + z)"))
    True
    >>> only_reorders(Rule("offset-outward", "(x + c) + y", "(x + y) + c"))
    False
    """
    pattern = pattern_of(rule)
    counts = _nodes(pattern.left)
    ops = {t.op for t in topological([pattern.left, pattern.right]) if t.args and not is_condition_letter(t)}
    letters = {str(v.value) for v in variables([pattern.left, pattern.right])}
    return len(ops) == 1 and counts == _nodes(pattern.right) and {""} < counts.keys() == letters | {""}


#: What the engine spells with other operators.
_SPELLED = {"sub": ("add", "mul"), "neg": ("mul",), "le": ("not", "lt"), "ne": ("not", "eq")}

Edge = tuple[str, str]


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
