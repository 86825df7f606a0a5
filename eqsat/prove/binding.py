"""The truth of rules that bind an index, such as ``sum(x + y, i, u, v) == sum(x, i, u, v) + sum(y, i, u, v)``.

In the body of a reduction a letter stands for any term, also one that has the index in it. Here it is a load ``X[i]``
from an array of its own (``X[i, j]`` in two reductions), with arbitrary elements. They have 64 bits, so some lie beyond
the value of an empty maximum. If the guard measures the letter, the load is changed so that the measures hold: with
``modulus(x)`` and ``vmin(x)`` to a multiple of the modulus plus the remainder that is not below the bound.

Over a range with fixed ends a rule is then an identity of finitely many unknowns. Each small range is tried, empty and
backward ones included: by evaluation for one content of the arrays, and on request by z3 for all contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import batched, product
from math import inf
from operator import and_, mul, or_
from time import monotonic
from typing import Self

from eqsat.egraph.patterns import (
    CONDITIONS,
    FOUND_IN_BODIES,
    LITERALS,
    MEASURES,
    TERMS,
    Pattern,
    found_in_bodies,
    levels_around,
    mentioned,
    moved_letter,
    shown,
)
from eqsat.egraph.rule import Counterexample, Rule
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, buffer, const, make, rebuild, var, with_operands
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import chain_members, index_level, is_index, topological, variables
from eqsat.prove.smt import unrolled
from eqsat.prove.verify import PROOF_SECONDS, check_equal, differences, prove_equal

#: The ends of the ranges that are tried, the bounds of other terms, and the values of literals.
ENDS = range(-2, 5)
VALUES = (-3, 5)
LITERAL_VALUES = range(-1, 4)
#: More values of the literals of a rule that divides bodies by literals: 4 has the divisor 2, which is neither 1 nor 4.
DIVIDED_VALUES = (4,)
#: The most values next to the literals of a rule that are tried too, and the greatest of them that ends a range.
MOST_FURTHER = 6
MOST_TRIPS = 64
#: Instances that have more points are compared at some.
MOST_POINTS = 100_000
#: The number of instances that are compared at once: what they have in common is evaluated, and told to z3, once.
TOGETHER = 32
EXTREMES = {"max_over", "min_over"}
#: The bounds of measures.
MEASURED = {
    "vmin": (-MOST_TRIPS, MOST_TRIPS),
    "vmax": (-MOST_TRIPS, MOST_TRIPS),
    "factor": (1, 8),
    "modulus": (1, 8),
    "remainder": (0, 7),
    "gcd": (1, 8),
}
#: The bounds of bodies; those next to a greater literal of the rule are tried too.
BODY_BOUNDS = (-6, 6)


@dataclass(frozen=True)
class _Body:
    """What a letter with indices of these ``levels`` stands for: an array's element, clamped, scaled and shifted."""

    array: Expr
    levels: tuple[int, ...]
    scale: Expr
    offset: Expr
    low: Expr | None = None
    high: Expr | None = None

    @classmethod
    def of(
        cls, letter: str, levels: tuple[int, ...], measures: Mapping[str, Mapping[str, Expr]], ends: Collection[str]
    ) -> Self:
        """The body of a letter. One that is also the end of a range has its bounds: ranges must be short."""
        array = buffer(letter.upper(), "bool" if letter in CONDITIONS else "i64")
        known = measures.get(letter, {})
        scale = reduce(mul, [m for name, m in known.items() if name not in ("vmin", "vmax", "remainder")], const(1))
        offset = known.get("remainder", const(0))
        low = -((offset - known["vmin"]) // scale) if "vmin" in known else None
        high = (known["vmax"] - offset) // scale if "vmax" in known else None
        if letter in ends:
            low, high = (const(end) if bound is None else bound for bound, end in ((low, ENDS[0]), (high, ENDS[-1])))
        return cls(array, levels, scale, offset, low, high)

    def element(self, indices: Sequence[Expr]) -> Expr:
        """The term at these values of the indices."""
        loaded = self.array[tuple(indices)]
        if loaded.is_bool:
            return loaded
        least = loaded if self.low is None else maximum(self.low, loaded)
        return (least if self.high is None else minimum(self.high, least)) * self.scale + self.offset


@dataclass(frozen=True)
class Instance:
    """A rule for one range and some literals: both sides, when they must be equal, and the values of letters."""

    left: Expr
    right: Expr
    when: Expr
    fixed: dict[str, int]


def instances(rule: Rule) -> Iterator[Instance]:
    """``rule`` for every small range and every small value of its literals."""
    pattern = rule.pattern
    inside = _inside(pattern)
    ends = [letter for letter in _ends(pattern) if letter not in inside]
    # values next to the literals that the rule mentions
    further = mentioned(pattern)
    bounds = min([BODY_BOUNDS[0], *further]), max([BODY_BOUNDS[1], *further])
    measures = {
        letter: {name: _image(str(measure.value), inside, bounds) for name, measure in known.items()}
        for letter, known in _measures(pattern).items()
    }
    bodies = {letter: _Body.of(letter, levels, measures, _ends(pattern)) for letter, levels in inside.items()}
    choices = _choices(pattern, ends)
    guard = reduce(and_, _defined_measures(pattern, measures, bodies), pattern.when)
    for values in product(*choices.values()):
        fixed = dict(zip(choices, values, strict=True))
        images = {name: const(value) for name, value in fixed.items()}
        try:
            when = _instance(guard, bodies, bounds, images)
            if when is not FALSE:
                left, right = [_instance(side, bodies, bounds, images) for side in (pattern.left, pattern.right)]
                yield Instance(left, right, when, fixed)
        except ValueError:
            # a divisor that is zero for these literals, or a number that is too long
            continue


def _choices(pattern: Pattern, ends: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The values that are tried of the letters in ``ends`` of ranges, and of those of literals."""
    found = {measure.literal for measure in found_in_bodies(pattern)}
    literals = sorted({n for v in variables([pattern.left]) if (n := str(v.value)) in LITERALS} | found)
    further = mentioned(pattern)
    near = [n for n in further if n not in ENDS and abs(n) <= MOST_TRIPS][:MOST_FURTHER]
    far = [n for n in further if n not in LITERAL_VALUES][:MOST_FURTHER]
    divides = found or any(str(v.value).startswith("gcd_") for v in variables([pattern.right, pattern.when]))
    values = (*LITERAL_VALUES, *(DIVIDED_VALUES if divides else ()), *far)
    return dict.fromkeys(ends, (*ENDS, *near)) | dict.fromkeys(literals, values)


def check(rule: Rule, until: float = inf) -> Counterexample | None:
    """What refutes ``rule``, for one content of the arrays; ``None`` if nothing does.

    Raises ``TimeoutError`` when :func:`time.monotonic` says ``until`` first.

    >>> print(check(Rule("empty", "max_over(x, i, 0, v)", "x", "free(x)")))
    rule 'empty' is false: with v = -2, x = -3 the left side is -2147483648, the right side -3
    """
    for several in batched(instances(rule), TOGETHER):
        seconds_until(until)
        if check_equal(*_sides(several), gates=[i.when for i in several], most=MOST_POINTS).equal:
            continue
        for instance in several:
            given = [instance.left, instance.right]
            found = check_equal(given[:1], given[1:], gates=[instance.when], most=MOST_POINTS)
            if found.counterexample is not None:
                left, right = [str(int(side)) for side in evaluate(given, found.counterexample, total=True)]
                # bodies stand for elements of arrays, which no rule names
                letters = {str(v.value) for v in variables([*given, instance.when])}
                values = instance.fixed | {n: value for n, value in found.counterexample.items() if n in letters}
                values = {shown(name): value for name, value in values.items()}
                return Counterexample(rule.name, values, left, right)
    return None


def proved(rule: Rule, until: float = inf) -> bool:
    """Whether z3 proves each instance of ``rule``, for all elements of the arrays, and there is one.

    Raises ``TimeoutError`` when :func:`time.monotonic` says ``until`` first.
    """
    # an extreme is many cases for z3: those of several instances would multiply
    reduces = {t.op for t in topological([rule.pattern.left]) if t.op in REDUCTIONS}
    several = None
    for several in batched(instances(rule), 1 if reduces & EXTREMES else TOGETHER):
        if not _proved(several, until):
            return False
    return several is not None


def _proved(several: Sequence[Instance], until: float) -> bool:
    """Whether z3 proves these instances: that there is no point at which any is wrong, or else one by one."""
    several = [instance for instance in several if not _are_same_extreme(instance)]
    wrong = reduce(or_, differences(*_sides(several), [i.when for i in several]), FALSE)
    proof = prove_equal([wrong], [FALSE], seconds=min(PROOF_SECONDS, seconds_until(until)))
    if proof.equal and proof.kind in ("exhaustive", "proved"):
        return True
    # what the end of the time left undecided is no answer
    seconds_until(until)
    return proof.equal and len(several) > 1 and all(_proved([instance], until) for instance in several)


def _are_same_extreme(instance: Instance) -> bool:
    """Whether both sides, written out, are the largest or smallest of the same terms: z3 takes long to see it."""

    def folded(term: Expr, args: tuple[Expr, ...]) -> Expr:
        made = with_operands(term, args)
        return const(made.vmin) if made.args and not made.is_bool and made.vmin == made.vmax else made

    try:
        left, right = rebuild(unrolled([instance.left, instance.right]), folded)
    except ValueError:
        # too many steps to write out
        return False
    return any(set(chain_members(left, op)) == set(chain_members(right, op)) for op in ("max", "min"))


def _sides(several: Iterable[Instance]) -> tuple[list[Expr], list[Expr]]:
    return [i.left for i in several], [i.right for i in several]


def seconds_until(until: float) -> float:
    """How long it is until then; raise ``TimeoutError`` if it is over."""
    if (left := until - monotonic()) <= 0:
        raise TimeoutError
    return left


def _inside(pattern: Pattern) -> dict[str, tuple[int, ...]]:
    """The letters that may have indices in them, and the levels of these: all around, unless the guard has ``free``."""
    free = {name[5:] for v in variables([pattern.when]) if (name := str(v.value)).startswith("free_")}
    around = levels_around(pattern.left)
    letters = [letter for letter in sorted(around) if letter in TERMS + CONDITIONS and letter not in free]
    return {letter: around[letter] for letter in letters if around[letter]}


def _ends(pattern: Pattern) -> list[str]:
    """The letters of the ends of ranges."""
    reductions = [t for t in topological([pattern.left]) if t.op in REDUCTIONS]
    return [str(v.value) for v in variables([end for t in reductions for end in t.args[2:]]) if str(v.value) in TERMS]


def _measures(pattern: Pattern) -> dict[str, dict[str, Expr]]:
    """By letter, what the guard and the right side measure of it: ``vmin``, ``gcd_d``, ..."""
    found: dict[str, dict[str, Expr]] = defaultdict(dict)
    for measure in variables([pattern.right, pattern.when]):
        function, _, rest = str(measure.value).partition("_")
        if function in MEASURED:
            letter, *divisors = rest.split("_")
            found[letter]["_".join([function, *divisors])] = measure
            if function in ("modulus", "remainder"):
                # one says nothing without the other
                found[letter] |= {f: MEASURES[f"{f}_{letter}"] for f in ("modulus", "remainder")}
    return found


def _defined_measures(
    pattern: Pattern, measures: Mapping[str, Mapping[str, Expr]], bodies: Mapping[str, _Body]
) -> Iterator[Expr]:
    """What is true of measures: of a letter with one value by that value, of a body how the measures fit together."""
    letters = {str(v.value): v for v in variables([pattern.left])}
    for letter, known in measures.items():
        body = bodies.get(letter)
        value = letters[letter] if body is None else body.offset
        for name, measure in known.items():
            function, _, divisor = name.partition("_")
            if function in ("factor", "gcd"):
                yield (value % measure).eq(0)
            if divisor:
                yield (letters[divisor] % measure).eq(0)
        if "modulus" in known:
            yield known["remainder"] < known["modulus"]
        if body is not None:
            if body.low is not None and body.high is not None:
                yield body.low <= body.high
            continue
        if "vmin" in known:
            yield known["vmin"] <= value
        if "vmax" in known:
            yield value <= known["vmax"]
        if "modulus" in known:
            yield (value % known["modulus"]).eq(known["remainder"])


def _instance(part: Expr, bodies: Mapping[str, _Body], bounds: tuple[int, int], images: dict[str, Expr]) -> Expr:
    """A side or the guard of a rule with terms for its letters; those found here are added to ``images``, by letter."""

    def image(name: str) -> Expr:
        if name not in images:
            images[name] = _image(name, bodies, bounds)
        return images[name]

    def element(letter: str, indices: Sequence[Expr], term: Expr) -> Expr:
        """What a letter stands for at these values of the indices around it."""
        if letter not in bodies:
            return term
        found = bodies[letter].element(indices)
        # a condition letter is `p != 0`
        return make("where", found, const(1), const(0)) if found.is_bool and not term.is_bool else found

    def opened(term: Expr, scope: Mapping[int, Expr]) -> Expr:
        """``term`` with elements of arrays for the letters that may have indices in them, and values for the others."""
        if term.op == "var" and not is_index(term):
            name = str(term.value)
            if name in bodies:
                return element(name, [scope.get(level, const(0)) for level in bodies[name].levels], term)
            return image(name)
        if term.op == "load":
            letter = moved_letter(term.args[0])
            plain = image(letter)
            places = [opened(index, scope) for index in term.args[1:]]
            return element(letter, places, plain.ne(0) if term.is_bool else plain)
        if term.op in REDUCTIONS:
            body, index, low, high = term.args
            inner = {**scope, index_level(index): index}
            return with_operands(term, (opened(body, inner), index, opened(low, scope), opened(high, scope)))
        return with_operands(term, tuple([opened(a, scope) for a in term.args])) if term.args else term

    closed = opened(part, {})
    return TRUE if closed.is_bool and closed.vmin else FALSE if closed.is_bool and not closed.vmax else closed


def _image(name: str, bodies: Collection[str], bounds: tuple[int, int]) -> Expr:
    """What stands for a measure, or for a letter that is no body and has no fixed value."""
    if name.startswith(("free_", *[f"{asked}_" for asked in FOUND_IN_BODIES])):
        return const(1)
    if name in CONDITIONS:
        return var(name, 0, 1)
    if name.startswith(("vmin_", "vmax_")) and name[5:] in bodies:
        return var(name, *bounds)
    return var(name, *MEASURED.get(name.split("_")[0], VALUES))
