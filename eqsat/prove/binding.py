"""The truth of rules that bind an index, such as ``sum(x + y, i, u, v) == sum(x, i, u, v) + sum(y, i, u, v)``.

A letter of a body stands for anything that may speak of the index: here for a load ``X[i]`` from an array of its own
(``X[i, j]`` in two reductions), whose elements are arbitrary. Over a range with fixed ends a rule is then an identity
of finitely many unknowns. Every small range is tried, empty and backward ones included: by evaluation, and on request
by z3, for all elements at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import and_

from eqsat.egraph.patterns import (
    CONDITIONS,
    LITERALS,
    MEASURES,
    TERMS,
    Pattern,
    divided,
    levels_around,
    mentioned,
    moved_letter,
    shown,
)
from eqsat.egraph.rule import Counterexample, Rule
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, buffer, const, index_level, make, substitute, topological, var, variables
from eqsat.lang.ops import REDUCTIONS
from eqsat.prove.verify import check_equal, prove_equal

#: The ends of the ranges that are tried, the values of other terms, and those of literals.
ENDS = range(-2, 5)
VALUES = (-3, 5)
LITERAL_VALUES = range(-1, 4)
#: Of rules that ask what a body is divided by, these too: a divisor that is not 1, of a number that is not itself.
DIVIDED_VALUES = (4,)
#: The number of values next to the literals of a rule that are tried too.
MOST_FURTHER = 6
#: The greatest of them that is an end of a range.
MOST_TRIPS = 64
#: The values of measures.
MEASURED = {
    "vmin": (-MOST_TRIPS, MOST_TRIPS),
    "vmax": (-MOST_TRIPS, MOST_TRIPS),
    "factor": (1, 8),
    "modulus": (1, 8),
    "remainder": (0, 7),
}


@dataclass(frozen=True)
class Instance:
    """One rule for a fixed range: both sides, the condition under which they must be equal, and the letters fixed."""

    left: Expr
    right: Expr
    when: Expr
    fixed: dict[str, int]


def instances(rule: Rule) -> Iterator[Instance]:
    """``rule`` for every small range and every small value of its literals."""
    pattern = rule.pattern
    inside, ends = _inside(pattern), _ends(pattern)
    arrays = {
        letter: (buffer(letter.upper(), "bool" if letter in CONDITIONS else "i32"), levels)
        for letter, levels in inside.items()
    }
    divisors = {divisor for _, divisor in divided(pattern)}
    literals = sorted({n for v in variables([pattern.left]) if (n := str(v.value)) in LITERALS} | divisors)
    further = mentioned(pattern)
    near = [n for n in further if n not in ENDS and abs(n) <= MOST_TRIPS][:MOST_FURTHER]
    far = [n for n in further if n not in LITERAL_VALUES][:MOST_FURTHER]
    more = DIVIDED_VALUES if divisors else ()
    choices = [[*ENDS, *near]] * len(ends) + [[*LITERAL_VALUES, *more, *far]] * len(literals)
    for values in product(*choices):
        fixed = dict(zip([*ends, *literals], values, strict=True))
        try:
            parts = (pattern.left, pattern.right, reduce(and_, _defined_measures(pattern, arrays), pattern.when))
            left, right, when = [_instance(part, arrays, fixed) for part in parts]
        except ValueError:
            # a divisor that is zero for these literals
            continue
        if when is not FALSE:
            yield Instance(left, right, when, fixed)


def check(rule: Rule) -> Counterexample | None:
    """What refutes ``rule``, for one content of the arrays; ``None`` if nothing does.

    >>> check(Rule("distributes", "sum(x + y, i, u, v)", "sum(x, i, u, v) + sum(y, i, u, v)"))
    >>> print(check(Rule("empty", "max_over(x, i, 0, v)", "x", "free(x)")))
    rule 'empty' is false: with v = -2, x = -3 the left side is -2147483648, the right side -3
    """
    for instance in instances(rule):
        given = [instance.left, instance.right]
        found = check_equal(given[:1], given[1:], gates=[instance.when])
        if found.counterexample is not None:
            left, right = [str(int(side)) for side in evaluate(given, found.counterexample, total=True)]
            values = {shown(name): value for name, value in (instance.fixed | found.counterexample).items()}
            return Counterexample(rule.name, values, left, right)
    return None


def proved(rule: Rule) -> bool:
    """Whether z3 proves each instance of ``rule``, for all elements of the arrays.

    >>> proved(Rule("distributes", "sum(x + y, i, u, v)", "sum(x, i, u, v) + sum(y, i, u, v)"))
    True
    """
    proofs = (prove_equal([i.left], [i.right], gates=[i.when]) for i in instances(rule))
    return all(proof.equal and proof.kind not in ("sampled", "unchecked") for proof in proofs)


def _inside(pattern: Pattern) -> dict[str, tuple[int, ...]]:
    """The letters that may speak of an index, and of which: those around all their places, unless the guard says no."""
    said = {name[5:] for v in variables([pattern.when]) if (name := str(v.value)).startswith("free_")}
    around = levels_around(pattern.left)
    letters = [letter for letter in sorted(around) if letter in TERMS + CONDITIONS and letter not in said]
    return {letter: around[letter] for letter in letters if around[letter]}


def _ends(pattern: Pattern) -> list[str]:
    """The letters of the ends of ranges."""
    reductions = [t for t in topological([pattern.left]) if t.op in REDUCTIONS]
    return [str(v.value) for v in variables([end for t in reductions for end in t.args[2:]]) if str(v.value) in TERMS]


def _defined_measures(pattern: Pattern, arrays: Collection[str]) -> list[Expr]:
    """What the guard's measures are, of letters with one value; those of a body may be anything, which proves less."""
    letters = {str(v.value): v for v in variables([pattern.left])}
    found: list[Expr] = []
    for measure in variables([pattern.right, pattern.when]):
        function, _, letter = str(measure.value).partition("_")
        if function not in MEASURED or letter in arrays:
            continue
        value = letters[letter]
        if function == "vmin":
            found.append(measure <= value)
        elif function == "vmax":
            found.append(value <= measure)
        elif function == "factor":
            found.append((value % measure).eq(0))
        else:
            modulus, remainder = MEASURES[f"modulus_{letter}"], MEASURES[f"remainder_{letter}"]
            found.append((value % modulus).eq(remainder))
    return found


def _instance(part: Expr, arrays: Mapping[str, tuple[Expr, tuple[int, ...]]], fixed: dict[str, int]) -> Expr:
    def element(letter: str, indices: Sequence[Expr], term: Expr) -> Expr:
        """What a letter stands for at these values of the indices around it."""
        if letter not in arrays:
            return term
        loaded = arrays[letter][0][tuple(indices)]
        # a condition letter is `p != 0`
        return make("where", loaded, const(1), const(0)) if loaded.is_bool and not term.is_bool else loaded

    def opened(term: Expr, scope: Mapping[int, Expr]) -> Expr:
        """``term`` with the letters that may speak of indices replaced by elements of arrays."""
        name = str(term.value)
        if term.op == "var" and name in arrays:
            return element(name, [scope.get(level, const(0)) for level in arrays[name][1]], term)
        if term.op == "load":
            letter = moved_letter(term.args[0])
            plain = var(letter, *VALUES)
            places = [opened(index, scope) for index in term.args[1:]]
            return element(letter, places, plain.ne(0) if term.is_bool else plain)
        if term.op in REDUCTIONS:
            body, index, low, high = term.args
            inner = {**scope, index_level(index): index}
            return make(term.op, opened(body, inner), index, opened(low, scope), opened(high, scope))
        return make(term.op, *[opened(a, scope) for a in term.args]) if term.args else term

    whole = opened(part, {})
    images: dict[Expr, Expr] = {}
    for v in variables([whole]):
        name = str(v.value)
        if name in fixed:
            images[v] = const(fixed[name])
        elif name.startswith(("free_", "divides_")):
            images[v] = const(1)
        elif name in CONDITIONS:
            images[v] = var(name, 0, 1)
        else:
            images[v] = var(name, *MEASURED.get(name.split("_")[0], VALUES))
    (closed,) = substitute([whole], images)
    return TRUE if closed.is_bool and closed.vmin else FALSE if closed.is_bool and not closed.vmax else closed
