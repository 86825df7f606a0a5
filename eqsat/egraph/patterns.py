"""The language of rules: patterns over letters, guards over what is measured of them.

In a pattern ``a b c d k m n s`` match integer literals (``s`` a shift amount), ``u v w x y z`` any term, ``p q r`` any
condition, and a repeated letter means the same term. A guard may ask for ``vmin(x)``, ``vmax(x)``, ``factor(x)`` (a
known divisor of every value of ``x``), ``gcd(x, d)`` (that of ``factor(x)`` and ``d``), for ``modulus(x)`` and
``remainder(x)`` (each value of ``x`` is ``remainder(x)`` modulo ``modulus(x)``, and
``0 <= remainder(x) < modulus(x)``), and for a comparison of two terms (``x < y``) that must be a known fact. A rule may
assume that no divisor in its left side is zero.

A pattern may have reductions, as in ``sum(x, i, u, v)``: a letter in the body may speak of the index, unless the guard
says ``free(x)``; ``at(x, y)`` on the right is ``x`` where its index is ``y``, and in the body of two reductions
``at(x, y, z)`` where that of the outer one is ``y`` and that of the inner one ``z``. A guard may ask for
``divides(x, d)``: somewhere in ``x`` a number that depends on the index is divided by the literal ``d``; and for
``steps(x, d)``: somewhere in ``x`` an index is multiplied by the literal ``d``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from math import gcd
from typing import NamedTuple

from eqsat.lang.expr import TRUE, Expr, const, make, var
from eqsat.lang.ops import BITWISE, FLOORS, REDUCTIONS, SUMS
from eqsat.lang.properties import has_reductions
from eqsat.lang.traversal import chain_members, index_level, is_index, topological, variables

LITERALS = "abcdkmns"
TERMS = "uvwxyz"
CONDITIONS = "pqr"

#: Letters are variables of up to this magnitude, small enough for the truth test to stay in machine integers.
LARGEST = 2**15
MEASURES = {
    **{f"{f}_{x}": var(f"{f}_{x}", -LARGEST, LARGEST) for f in ("vmin", "vmax") for x in TERMS},
    **{f"{f}_{x}": var(f"{f}_{x}", 1, LARGEST) for f in ("factor", "modulus") for x in TERMS},
    **{f"remainder_{x}": var(f"remainder_{x}", 0, LARGEST) for x in TERMS},
    **{f"gcd_{x}_{y}": var(f"gcd_{x}_{y}", 0, LARGEST) for x in TERMS for y in LITERALS},
}
#: The operators of numbers that are computed from literals and measures.
COMPUTED = frozenset({*SUMS, "mul", *FLOORS, "min", "max", *BITWISE, "shl"})
#: What a guard asks of bodies to find a literal there.
FOUND_IN_BODIES = ("divides", "steps")


@dataclass(frozen=True)
class Pattern:
    """A rule's parts as terms over letters; ``beside`` is a term that must be there too, if any need be."""

    left: Expr
    right: Expr
    when: Expr
    beside: Expr | None = None

    @property
    def matched(self) -> list[Expr]:
        """What a match needs: the left side, and what must be beside it."""
        return [self.left] if self.beside is None else [self.left, self.beside]

    @cached_property
    def binds_index(self) -> bool:
        """Whether the left side has reductions."""
        return has_reductions([self.left])

    @cached_property
    def has_bits(self) -> bool:
        """Whether a part has bit operators on terms, and not on literals alone."""
        sides = topological([*self.matched, self.right])
        return any(term.op in BITWISE and not is_number(term) for term in sides)

    @cached_property
    def asks_two_values(self) -> bool:
        """Whether the guard asks that a letter has just two values: ``vmax(x) == vmin(x) + 1``."""
        asked = [("eq", MEASURES[f"vmax_{x}"], MEASURES[f"vmin_{x}"] + 1) for x in TERMS]
        return not self.binds_index and all(any(c in asked for c in ways) for ways in alternatives(self.when))

    @cached_property
    def has_own_loops(self) -> bool:
        """Whether the right side loops over other indices than the left: splits and merges do."""
        loads = [t for t in topological([self.right]) if t.op == "load"]
        return any(index.op != "var" or is_index(index) for load in loads for index in load.args[1:])

    @cached_property
    def takes_apart(self) -> tuple[str, str] | None:
        """The letters that a reduction combines, if the right side combines the reductions of each, without a guard."""
        return _halves(self.left, self.right) if self.when is TRUE else None

    @property
    def reduces_extremes(self) -> bool:
        """Whether it takes an extreme of extremes apart."""
        return self.takes_apart is not None and self.right.op in ("min", "max")

    @cached_property
    def turns_extreme(self) -> bool:
        """Whether it takes the sign of a letter out of an extreme over a range, which the other extreme then is."""
        if self.left.op not in ("max_over", "min_over") or self.right.op != "neg":
            return False
        (turned,) = self.right.args
        body, *around = self.left.args
        return body.op == "neg" and letter_of(body.args[0]) is not None and turned.args == (body.args[0], *around)

    @cached_property
    def puts_together(self) -> tuple[str, str] | None:
        """The letters of two reductions, if the right side is the reduction of both, without a guard."""
        return _halves(self.right, self.left) if self.when is TRUE else None

    @cached_property
    def moved_out_of_branches(self) -> frozenset[str]:
        """The letters that the right side always evaluates, and the left side only in a branch.

        Such a letter must be defined where the branch is not evaluated too: a rule may assume that no divisor of its
        left side is zero only where the left side divides.
        """
        return _always_evaluated(self.right) - _always_evaluated(self.left)


def _halves(together: Expr, apart: Expr) -> tuple[str, str] | None:
    """The letters of ``reduce(x + y)``, if ``apart`` is ``reduce(x) + reduce(y)``."""
    if together.op not in REDUCTIONS or len(together.args[0].args) != 2:
        return None
    body, *around = together.args
    x, y = map(letter_of, body.args)
    if x is None or y is None or apart is not make(body.op, *[make(together.op, a, *around) for a in body.args]):
        return None
    return x, y


def moved_letter(array: Expr) -> str:
    """The letter that an array of a pattern stands for, whose elements are its values at other indices."""
    return str(array.value.name).removeprefix("at_")  # type: ignore[union-attr]


class FoundInBody(NamedTuple):
    """What a guard asks of a body to find a literal there, as ``divides(x, d)``: the letters of both."""

    function: str
    letter: str
    literal: str


def found_in_bodies(pattern: Pattern) -> list[FoundInBody]:
    """The literals that a guard finds in bodies."""
    names = [str(v.value).split("_") for v in variables([pattern.when])]
    return [FoundInBody(*name) for name in names if name[0] in FOUND_IN_BODIES]


def levels_around(side: Expr) -> dict[str, tuple[int, ...]]:
    """By letter of a side, the levels of the indices that it may speak of, the outermost first.

    They are those of the reductions around every place where the letter stands.
    """
    return {
        letter: tuple([level for level in first if all(level in around for around in others)])
        for letter, (first, *others) in places_of_letters(side).items()
    }


def places_of_letters(side: Expr) -> dict[str, list[tuple[int, ...]]]:
    """By letter of a side, the levels of the indices around each of its places, the outermost first."""
    found: dict[str, list[tuple[int, ...]]] = {}

    def visit(term: Expr, around: tuple[int, ...]) -> None:
        if term.op == "var" and not is_index(term):
            found.setdefault(str(term.value), []).append(around)
        elif term.op in REDUCTIONS:
            body, index, low, high = term.args
            visit(body, (*around, index_level(index)))
            visit(low, around)
            visit(high, around)
        else:
            for operand in term.args:
                visit(operand, around)

    visit(side, ())
    return found


def _always_evaluated(side: Expr) -> frozenset[str]:
    """The letters that a side of a rule evaluates whatever its conditions are."""
    if side.op == "var":
        return frozenset() if is_index(side) else frozenset([str(side.value)])
    if side.op == "load":
        return frozenset([moved_letter(side.args[0])]).union(*map(_always_evaluated, side.args[1:]))
    parts = [_always_evaluated(arg) for arg in side.args]
    return parts[0] | (parts[1] & parts[2]) if side.op == "where" else frozenset().union(*parts)


def reductions_of(side: Expr) -> list[Expr]:
    """The reductions in a side of a rule."""
    return [t for t in topological([side]) if t.op in REDUCTIONS]


def shown(name: str) -> str:
    """``vmin_x`` and ``gcd_x_d`` as a guard writes them."""
    function, *letters = name.split("_")
    return f"{function}({', '.join(letters)})" if letters else name


def measure_of(function: str, modulus: int, remainder: int, literal: int = 0) -> int:
    """A measure of what is ``remainder`` modulo ``modulus``, or is ``remainder`` if that is 0.

    ``literal`` is the other letter of ``gcd(x, d)``.

    >>> [measure_of(function, 12, 8, 6) for function in ("factor", "gcd", "modulus", "remainder")]
    [4, 2, 12, 8]
    """
    factor = gcd(modulus, remainder) or 1
    if function in ("factor", "gcd"):
        return factor if function == "factor" else gcd(factor, literal)
    if not modulus:
        raise ValueError("a literal has no modulus")
    return modulus if function == "modulus" else remainder


def mentioned(pattern: Pattern) -> list[int]:
    """The literals of ``pattern`` and the numbers next to them, the small ones first."""
    literals = {t.vmin for t in topological([pattern.left, pattern.right, pattern.when]) if t.op == "const"}
    return sorted({n + step for n in literals for step in (-1, 0, 1)}, key=lambda n: (abs(n), n))


def is_condition_letter(term: Expr) -> bool:
    """Whether a term of a pattern is a condition letter, which is read as ``p != 0``."""
    return term.op == "ne" and term.args[0].op == "var" and str(term.args[0].value) in CONDITIONS


_NEGATED = {"lt": "ge", "le": "gt", "eq": "ne", "ne": "eq"}


class Conjunct(NamedTuple):
    """A comparison in a guard: its operator (also ``ge`` and ``gt``), and what it compares."""

    op: str
    left: Expr
    right: Expr

    @property
    def compares_terms(self) -> bool:
        """Whether it compares terms, which must be a known fact, and not numbers."""
        return has_terms(self.left) or has_terms(self.right)


#: A guard has no more alternatives: each of them is matched on its own.
MOST_ALTERNATIVES = 64


def alternatives(when: Expr) -> list[list[Conjunct]]:
    """The guard in disjunctive normal form: each alternative alone lets the rule fire.

    Raises ``ValueError`` if a part of it has more than ``MOST_ALTERNATIVES``; one line.
    """
    order = topological([when])
    # the parts that are asked for, each for where it holds or fails
    asked = {(when, True)}
    for term in reversed(order):
        for holds in (True, False):
            if term.op in ("and", "or", "not") and (term, holds) in asked:
                asked.update((arg, holds is not (term.op == "not")) for arg in term.args)
    found: dict[tuple[Expr, bool], list[list[Conjunct]]] = {}
    for term in order:
        for holds in (True, False):
            if (term, holds) in asked:
                ways = found[term, holds] = _alternatives_of(term, holds, found)
                if len(ways) > MOST_ALTERNATIVES:
                    raise ValueError(
                        f"the guard holds in more than {MOST_ALTERNATIVES} ways, as 'and' of 'or' does: "
                        "write several rules"
                    )
    return found[when, True]


def _alternatives_of(
    term: Expr, holds: bool, found: dict[tuple[Expr, bool], list[list[Conjunct]]]
) -> list[list[Conjunct]]:
    """The alternatives in which a part of a guard holds, or fails; those of its operands are ``found``."""
    if term.op == "bool" or all(arg.op == "const" for arg in term.args):
        return [[]] if bool(term.vmax) is holds else []
    if term.op == "not":
        return found[term.args[0], not holds]
    if term.op not in ("and", "or"):
        return [[Conjunct(term.op if holds else _NEGATED[term.op], *term.args)]]
    left, right = [found[arg, holds] for arg in term.args]
    return [f + g for f in left for g in right] if (term.op == "and") is holds else left + right


def is_within(reduction: Expr, other: Expr) -> bool:
    """Whether the range of a reduction, if it is not empty, is always a part of that of another over its index."""
    _, index, low, high = reduction.args
    _, like, least, most = other.args
    return (
        index_level(index) == index_level(like)
        and least in chain_members(low, "max")
        and most in chain_members(high, "min")
    )


def is_machine_integer(number: int) -> bool:
    """Whether egglog can hold a number."""
    return -(2**63) <= number < 2**63


def is_literal_letter(term: Expr) -> bool:
    """Whether a part of a pattern is a letter that stands for a literal."""
    return term.op == "var" and str(term.value) in LITERALS


@cache
def is_number(term: Expr) -> bool:
    """Whether a part of a pattern is computed from literals and measures."""
    if term.is_bool:
        return False
    return all(t.op != "var" or str(t.value) in LITERALS or str(t.value) in MEASURES for t in topological([term]))


def as_sum(term: Expr) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """A pattern as a sum: its constant, and (coefficient, addend) pairs."""
    constant: Expr = const(0)
    found: list[tuple[Expr, Expr]] = []
    stack: list[tuple[Expr, Expr]] = [(const(1), term)]
    while stack:
        scale, part = stack.pop()
        if is_number(part):
            constant = _plus(constant, _times(scale, part))
        elif part.op == "add":
            stack += [(scale, part.args[1]), (scale, part.args[0])]
        elif part.op == "sub":
            stack += [(_times(scale, const(-1)), part.args[1]), (scale, part.args[0])]
        elif part.op == "neg":
            stack.append((_times(scale, const(-1)), part.args[0]))
        elif part.op == "mul":
            numbers = [f for f in operands_of(part, "mul") if is_number(f)]
            others = [f for f in operands_of(part, "mul") if not is_number(f)]
            for number in numbers:
                scale = _times(scale, number)
            if len(others) == 1 and (numbers or others[0].op in SUMS):
                stack.append((scale, others[0]))
            else:
                found.append((scale, reduce(partial(make, "mul"), others)))
        else:
            found.append((scale, part))
    return constant, found


def _plus(x: Expr, y: Expr) -> Expr:
    if x.op == "const" and y.op == "const":
        return const(x.vmin + y.vmin)
    return y if x.op == "const" and x.vmin == 0 else x if y.op == "const" and y.vmin == 0 else make("add", x, y)


def _times(x: Expr, y: Expr) -> Expr:
    if x.op == "const" and y.op == "const":
        return const(x.vmin * y.vmin)
    return y if x.op == "const" and x.vmin == 1 else x if y.op == "const" and y.vmin == 1 else make("mul", x, y)


def operands_of(term: Expr, op: str) -> list[Expr]:
    """The operands of a nest of one operator, in order."""
    return chain_members(term, op)[::-1] if term.op == op else [term]


def is_sum(term: Expr) -> bool:
    """Whether a part of a pattern is matched as a sum: multiples of one term are."""
    return term.op in SUMS or (term.op == "mul" and any(is_number(f) for f in operands_of(term, "mul")))


def is_one_term(term: Expr) -> bool:
    """Whether a sum in a pattern is a multiple of one term: with an operator, or by a literal that a letter is."""
    constant, addends = as_sum(term)
    if len(addends) != 1 or constant.op != "const" or constant.vmin:
        return False
    coefficient, addend = addends[0]
    return letter_of(addend) is None or is_literal_letter(coefficient)


def is_unit(coefficient: Expr) -> bool:
    """Whether a coefficient of a pattern is 1 or -1."""
    return coefficient.op == "const" and abs(coefficient.vmin) == 1


def letter_of(term: Expr) -> str | None:
    """The letter of a term or condition that a part of a pattern is, if it is one."""
    if is_condition_letter(term):
        return str(term.args[0].value)
    return str(term.value) if term.op == "var" and str(term.value) in TERMS else None


def has_terms(term: Expr) -> bool:
    """Whether a part of a pattern has letters of terms or conditions."""
    return any(str(v.value) in TERMS + CONDITIONS for v in variables([term]))


def ends_in(left: Expr) -> set[Expr]:
    """The ends of the ranges of reductions, which are read off normal forms and not matched."""
    return {end for t in reductions_of(left) for end in t.args[2:]}
