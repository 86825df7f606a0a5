"""Rules: one line of data each.

A :class:`Rule` says that two patterns are equal where a guard holds, in the syntax of expressions:
:mod:`eqsat.egraph.patterns` has their language, :func:`parsed` reads it. From that line come the egglog rules
(:mod:`eqsat.egraph.compilation`), the matcher of the greedy engine (:mod:`eqsat.optimizer.matcher`) and the proof
(:mod:`eqsat.prove.proof`).

Rules about reductions are what :mod:`eqsat.theory.reduce` rests on; they are proved for each small range
(:mod:`eqsat.prove.binding`). How their right sides are built of terms is in :mod:`eqsat.optimizer.right_sides`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from eqsat.egraph.patterns import (
    COMPUTED,
    CONDITIONS,
    FOUND_IN_BODIES,
    LARGEST,
    LITERALS,
    MEASURES,
    TERMS,
    Conjunct,
    Pattern,
    alternatives,
    as_sum,
    ends_in,
    found_in_bodies,
    is_condition_letter,
    is_literal_letter,
    is_machine_integer,
    is_number,
    is_sum,
    moved_letter,
    operands_of,
    reductions_of,
)
from eqsat.lang.expr import TRUE, Expr, buffer, const, make, var
from eqsat.lang.ops import MAX_SHIFT
from eqsat.lang.properties import has_reductions
from eqsat.lang.text import parse, shown_text, to_text
from eqsat.lang.traversal import buffers, topological, variables

#: The letters as text is parsed.
_LETTERS = {
    **{name: var(name, -LARGEST, LARGEST) for name in LITERALS + TERMS},
    "s": var("s", 0, MAX_SHIFT),
    **{name: make("ne", var(name, 0, 1), const(0)) for name in CONDITIONS},
}
#: What a message suggests where a name is none of these.
_REMEDY = f"the letters of literals are {LITERALS}, of terms {TERMS}, of conditions {CONDITIONS}"
#: ``vmin(x)`` is read as a scalar named ``vmin_x``, and so on.
_FUNCTIONS = "vmin|vmax|factor|gcd|modulus|remainder|free|divides|steps"
_MEASURE = re.compile(rf"\b({_FUNCTIONS})\(([^)]*)\)")
#: A measure that ``_MEASURE`` did not replace is not written as it should be.
_UNREAD = re.compile(rf"\b({_FUNCTIONS}|at)\(")
#: How ``at(x, y, z)`` begins, which is read as an element of an array, ``at_x(y, z)``.
_AT = re.compile(r"\bat\(\s*(\w+)\s*,")
#: What a message suggests where something else is measured.
_MEASURED = f"measure one of {TERMS} as in vmin(x), or as in gcd(x, d) with one of {LITERALS}"
#: In patterns with reductions the letters stand for few values, so that their products have bounds.
_FEW = 8
_NARROW = {name: var(name, -_FEW, _FEW) if term.vmax == LARGEST else term for name, term in _LETTERS.items()}
_BINDING = {
    **{name: var(name, -_FEW, _FEW) if name[0] == "v" else term for name, term in MEASURES.items()},
    **{f"free_{x}": make("ne", var(f"free_{x}", 0, 1), const(0)) for x in TERMS + CONDITIONS},
    **{
        f"{asked}_{x}_{d}": make("ne", var(f"{asked}_{x}_{d}", 0, 1), const(0))
        for asked in FOUND_IN_BODIES
        for x in TERMS + CONDITIONS
        for d in LITERALS
    },
    **{f"at_{x}": buffer(f"at_{x}") for x in TERMS},
    **{f"at_{p}": buffer(f"at_{p}", "bool") for p in CONDITIONS},
}
#: A reduction in the text of a pattern.
_REDUCTION = re.compile(r"\b(sum|prod|max_over|min_over)\(")

#: A name that egglog's text can quote, and that profiles tell from the ``@`` and number behind it.
_NAME = re.compile(r'[^"@\\\r\n]+')

_PARSED_WHEN_NEEDED = ContextVar("parsed when needed", default=False)


@contextmanager
def parsed_when_needed() -> Iterator[None]:
    """Rules made within are not parsed before they are used.

    It is for tables of hundreds of rules, of which most answers need few; the tests parse them all.
    """
    token = _PARSED_WHEN_NEEDED.set(True)
    try:
        yield
    finally:
        _PARSED_WHEN_NEEDED.reset(token)


def has_reduction(side: str) -> bool:
    """Whether the text of a pattern has reductions."""
    return _REDUCTION.search(side) is not None


@cache
def parsed(left: str, right: str, when: str, beside: str) -> Pattern:
    """The parts of a rule parsed; an empty guard holds, and an empty ``beside`` is none.

    Raises ``ValueError`` if a part does not parse or a letter is unbound; one line.
    """
    if loading := next((text for text in (left, right, when, beside) if "[" in text), None):
        raise ValueError(f"{loading!r} has an array: a letter stands for any integer term, a load among them")
    binds = has_reduction(left)
    found = Pattern(
        parse(left, _NARROW if binds else _LETTERS, _REMEDY),
        _parse_measured(right, binds),
        _parse_measured(when, binds) if when else TRUE,
        parse(beside, _LETTERS, _REMEDY) if beside else None,
    )
    _refuse_sides(found)
    if not binds and has_reductions([found.right]):
        raise ValueError(f"the right side has a reduction, the left side {left!r} none")
    if found.beside is not None and binds:
        raise ValueError(f"{beside!r} beside a reduction cannot be matched")
    if found.beside is not None and (not found.beside.args or is_condition_letter(found.beside)):
        raise ValueError(f"{beside!r} stands beside every term: give it an operator")
    if has_reductions([found.when]):
        raise ValueError(f"the guard {when!r} has a reduction: measure letters instead")
    if not found.when.is_bool:
        raise ValueError(f"the guard {when!r} is no condition: compare it, as in 'c > 0'")
    _refuse_unbound(found)
    return found


def _refuse_sides(pattern: Pattern) -> None:
    """Raise ``ValueError`` if the sides of a rule cannot be equal, are the same, or if the left one matches all."""
    left, right = pattern.left, pattern.right
    if left.is_bool is not right.is_bool:
        raise ValueError("one side is a condition, the other a number")
    if is_condition_letter(left) or (left.op == "var" and right.args):
        raise ValueError("the left side is a letter, which matches all terms: give it an operator")
    if left.op in ("const", "bool"):
        raise ValueError("the left side is a literal, which is its own cheapest form: give it an operator")
    if left is right:
        raise ValueError(f"both sides are {to_text(left)!r}")


def _refuse_unbound(pattern: Pattern) -> None:
    """Raise ``ValueError`` if the right side or the guard has a letter that no match binds."""
    # a guard may find literals of a body
    bound = {v.value for v in variables(pattern.matched)} | {measure.literal for measure in found_in_bodies(pattern)}
    letters = [moved_letter(array) for array in buffers([pattern.right])]
    for term in variables([pattern.right, pattern.when]):
        name = str(term.value)
        # those of a scalar such as ``vmin_x`` or ``gcd_x_d``
        letters += name.split("_")[1:] if name in MEASURES or name in _BINDING else [name]
    if unbound := [letter for letter in letters if letter not in bound]:
        raise ValueError(f"the left side does not bind {unbound[0]!r}")


def _parse_measured(text: str, binds: bool) -> Expr:
    names = _NARROW | _BINDING if binds else _LETTERS | MEASURES

    def named(found: re.Match[str]) -> str:
        name = "_".join([found[1], *[letter.strip() for letter in found[2].split(",")]])
        if name in names:
            # as long as before: errors name the column
            return name.ljust(len(found[0]))
        why = (
            "speaks of an index, and the left side has no reduction"
            if name in _BINDING
            else f"is no measure: {_MEASURED}"
        )
        raise ValueError(f"cannot parse {text!r}: {found[0]!r} {why}")

    def loaded(found: re.Match[str]) -> str:
        array = f"at_{found[1]}"
        return f"{array}(".ljust(len(found[0])) if array in names else found[0]

    read = _AT.sub(loaded, _MEASURE.sub(named, text))
    if wrong := _UNREAD.search(read):
        how = "at(x, y) is x where the index of a reduction of the left side is y" if wrong[1] == "at" else _MEASURED
        raise ValueError(f"cannot parse {text!r}: {wrong[1]!r} is not written like that: {how}")
    try:
        return parse(read, names, _REMEDY)
    except ValueError as error:
        raise ValueError(str(error).replace(shown_text(read), shown_text(text), 1)) from None


@dataclass(frozen=True)
class Rule:
    """``left`` equals ``right`` for all values of the letters for which ``when`` holds.

    Parameters
    ----------
    name : str
        Unique in a rule set; shown in profiles and explanations. Without quotes, backslashes, ``@`` and line breaks.
    left, right : str
        The patterns, as in :mod:`eqsat.egraph.patterns`. A literal on the right may be computed, as in
        ``x*(c//d)``.
    when : str
        The guard; empty means always.
    why : str
        The reason, for a reader.
    beside : str
        The pattern of a term that must be in the e-graph too, which may bind more letters: ``x // c`` is ``(x // d) //
        (c//d)`` where something is divided by such a ``d`` anyway. Rewriting one by one leaves such rules out.
    both_ways : bool
        Whether ``right`` is rewritten to ``left`` too.
    source : str
        What it implements: ids of lines in ``docs/requirements.md``, such as ``"A9 A13"``, or a publication.
    modulo_theory : bool
        Of a shipped rule, whether it runs modulo the theory too: because the theory does not decide it, or because it
        is another way to compute what the theory knows. Rules of one's own run, unless a shipped one says the same.
    needs_theory : bool
        Whether it runs modulo the theory only: what it makes costs less, but without the theory hides from other rules
        what they match.
    covered_by : str
        The name of a rule that finds in an e-graph all that this one does there, as sums and products in patterns match
        parts of longer ones. If that runs, this one is matched only where rules apply one after the other, and cited.
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
    modulo_theory: bool = False
    needs_theory: bool = False
    covered_by: str = ""
    beside: str = ""

    def __post_init__(self) -> None:
        for part in ("name", "left", "right", "when", "beside"):
            if not isinstance(getattr(self, part), str):
                raise TypeError(f"the {part} of a rule is a text, not {getattr(self, part)!r}")
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a rule is named {self.name!r}: give it a name without quotes, backslashes, @ and line breaks"
            )
        if not _PARSED_WHEN_NEEDED.get():
            self._refuse_parts()

    def _refuse_parts(self) -> None:
        """Raise ``ValueError`` if its parts make no rule, or none that can be matched; one line that names it."""
        try:
            if self.both_ways and self.pattern.binds_index and not reductions_of(self.pattern.right):
                raise ValueError(f"both ways the right side {self.right!r} needs a reduction too")
            _refuse_unmatchable(self.pattern)
        except ValueError as error:
            raise ValueError(f"rule {self.name!r}: {error}") from None
        if self.both_ways:
            self.reverse()

    def __hash__(self) -> int:
        # each run looks its rules up: to hash their texts takes longer than a small answer
        return hash(self.name)

    @property
    def pattern(self) -> Pattern:
        """Its parts as terms over letters."""
        return parsed(self.left, self.right, self.when, self.beside)

    def reverse(self) -> Rule:
        """The rule from right to left."""
        return replace(self, left=self.right, right=self.left, both_ways=False)


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
        # letters that may speak of an index are arrays, which have no one value
        case = f"with {values}" if values else "for some bodies"
        return f"rule {self.rule!r} is false: {case} the left side is {self.left}, the right side {self.right}"


def _numbers_in(left: Expr) -> Iterator[tuple[Expr, bool]]:
    """The numbers that the left side of a rule is matched by, and whether each is an operand and no part of a sum."""
    ends = ends_in(left)
    stack = [left]
    while stack:
        term = stack.pop()
        if is_number(term):
            yield term, True
        elif is_sum(term):
            constant, addends = as_sum(term)
            yield constant, False
            for coefficient, addend in addends:
                yield coefficient, False
                stack += operands_of(addend, "mul") if addend.op == "mul" else [addend]
        else:
            stack += [a for a in term.args if a not in ends]


def _refuse_unmatchable(pattern: Pattern) -> None:
    """Raise ``ValueError`` if the guard never holds or asks what is not known, or no match tells what a number is."""
    ways = alternatives(pattern.when)
    if not ways:
        raise ValueError("the guard never holds")
    conjuncts = [*dict.fromkeys(chain.from_iterable(ways))]
    _refuse_unsolved(pattern.matched)
    for term in topological([*pattern.matched, pattern.right, pattern.when]):
        if term.op == "const" and not is_machine_integer(term.vmin):
            raise ValueError(f"{term.vmin} is beyond the 64 bits that literals in rules have")
    _refuse_unknown(conjuncts)
    measured = topological([side for c in conjuncts if not c.compares_terms for side in (c.left, c.right)])
    # an array stands for a letter
    arrays = ("load", "buffer")
    computed = [t for t in topological([pattern.right]) if not t.is_bool and is_number(t) and t.op not in arrays]
    for number in (*computed, *measured):
        if number.op not in {"const", "var", *COMPUTED}:
            raise ValueError(
                f"{to_text(number)!r} cannot be computed from literals: use + - * // % min max & | ^ << alone"
            )


def _refuse_unsolved(matched: Iterable[Expr]) -> None:
    """Raise ``ValueError`` if an operand on the left is computed from a letter that no match tells."""
    numbers = [found for term in matched for found in _numbers_in(term)]
    alone = {number for number, _ in numbers if is_literal_letter(number)}
    for number, is_operand in numbers:
        unbound = [v for v in variables([number]) if is_operand and v not in alone]
        if unbound:
            raise ValueError(
                f"{to_text(number)!r} on the left is computed from {str(unbound[0])!r}, which stands nowhere alone: "
                "write one letter for all of it"
            )


def _refuse_unknown(conjuncts: Iterable[Conjunct]) -> None:
    """Raise ``ValueError`` if a guard asks what no e-graph knows."""
    for conjunct in conjuncts:
        if conjunct.compares_terms and conjunct.op != "lt":
            raise ValueError("a guard may compare terms with < only, as in 'x < y'; bounds with vmin(x), vmax(x)")
        if str(conjunct.left.value).startswith("free_") and conjunct.op != "ne":
            raise ValueError("a guard may not ask that free(...) is false: the absence of a fact proves nothing")
