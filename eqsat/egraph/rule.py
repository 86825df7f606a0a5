"""Rules: one line of data each.

A :class:`Rule` says that two patterns are equal where a guard holds, in the syntax of expressions:
:mod:`eqsat.egraph.patterns` has their language. From that line come the egglog rules
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
from itertools import chain

from eqsat.egraph.patterns import (
    COMPUTED,
    Pattern,
    alternatives,
    as_sum,
    ends_in,
    is_literal_letter,
    is_machine_integer,
    is_number,
    is_sum,
    operands_of,
    parsed,
    reductions_of,
)
from eqsat.lang.expr import Expr
from eqsat.lang.text import to_text
from eqsat.lang.traversal import topological, variables

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
            self._parse()

    def _parse(self) -> None:
        """Refuse what is no rule; one line that names it."""
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
    left = [found for term in pattern.matched for found in _numbers_in(term)]
    alone = {number for number, _ in left if is_literal_letter(number)}
    for number, is_operand in left:
        unbound = [v for v in variables([number]) if is_operand and v not in alone]
        if unbound:
            raise ValueError(
                f"{to_text(number)!r} on the left is computed from {str(unbound[0])!r}, which stands nowhere alone: "
                "write one letter for all of it"
            )
    for term in topological([*pattern.matched, pattern.right, pattern.when]):
        if term.op == "const" and not is_machine_integer(term.vmin):
            raise ValueError(f"{term.vmin} is beyond the 64 bits that literals in rules have")
    # an array stands for a letter
    numbers = [
        t for t in topological([pattern.right]) if not t.is_bool and is_number(t) and t.op not in ("load", "buffer")
    ]
    for conjunct in dict.fromkeys(chain.from_iterable(ways)):
        op, x, y = conjunct
        if conjunct.compares_terms:
            if op != "lt":
                raise ValueError("a guard may compare terms with < only, as in 'x < y'; bounds with vmin(x), vmax(x)")
        elif str(x.value).startswith("free_") and op != "ne":
            raise ValueError("a guard may not ask that free(...) is false: the absence of a fact proves nothing")
        else:
            numbers += topological([x, y])
    for number in numbers:
        if number.op not in {"const", "var", *COMPUTED}:
            raise ValueError(
                f"{to_text(number)!r} cannot be computed from literals: use + - * // % min max & | ^ << alone"
            )
