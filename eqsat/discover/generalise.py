"""A rule from one example: two equal terms over variables with bounds become patterns, and what holds there a guard.

Literals become letters; those of the right side are computed from the letters and bounds of the left one. Of what is
true of the literals and bounds in the example, the guard is the weakest part found that no random point refutes. z3
then proves the rule, or finds a point that was missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqsat.egraph.patterns import is_condition_letter
from eqsat.egraph.rule import Counterexample, Rule
from eqsat.extract.graph import reached
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, const, make, substitute, var
from eqsat.lang.ops import SHIFTS
from eqsat.lang.properties import divisors
from eqsat.lang.sampling import all_hold
from eqsat.lang.text import to_text
from eqsat.lang.traversal import topological, variables
from eqsat.prove.proof import RULE_SECONDS, Proof, prove_rule

#: Letters for literals, and how many literals may differ.
_LITERALS = "cdnkmab"
#: Random points by which guards are told apart, and how often a point that refutes a rule is added.
POINTS = 6_000
MOST_REFUTED = 6
#: The most forms of each literal of the right side, right sides that these make, facts that a guard is chosen from, and
#: conjuncts of a guard.
MOST_FORMS, MOST_RIGHTS, MOST_FACTS, MOST_CONJUNCTS = 8, 40, 30, 3
#: A guard with one more conjunct is preferred if it holds at this many times the points, or more.
_WORTH = 1.5

Bits = NDArray[np.bool_]


def generalise(left: Expr, right: Expr, name: str, seconds: float = RULE_SECONDS) -> tuple[Rule, Proof] | None:
    """The most general rule found that makes ``right`` of ``left`` and that z3 proves; ``None`` if there is none.

    The variables of both are named as letters of patterns. Each proof may take some ``seconds``.

    >>> x = var("x", 0, 5)
    >>> rule, _ = generalise(x % 8, x, "found")
    >>> rule.left, rule.right, rule.when
    ('x%c', 'x', '0 <= vmin(x) and vmax(x) < c')
    """
    amounts = {term.args[1] for term in topological([left, right]) if term.op in SHIFTS}
    if any(amount.op != "const" for amount in amounts):
        # no letter of a term has few enough values to shift by
        return None
    shifted = frozenset([amount.vmin for amount in amounts])
    found = (_Generaliser(left, right, keep, shifted, name).rule(seconds) for keep in _kept_literals(left))
    return next((rule for rule in found if rule is not None), None)


def _kept_literals(left: Expr) -> Iterable[frozenset[int]]:
    """Which literals stay as they are: none, the smallest, all."""
    literals = frozenset(_literals_of(left))
    return dict.fromkeys([frozenset[int](), literals & {0, 1, -1}, literals & {0, 1, -1, 2, -2}, literals])


def _literals_of(term: Expr) -> dict[int, None]:
    """The literals of a term in their order, without those of the letters for conditions."""
    parts = reached([term], lambda part: () if is_condition_letter(part) else reversed(part.args))
    return {part.vmin: None for part in parts if part.op == "const"}


class _Generaliser:
    """The search for the rule of one example in which some literals, those to ``keep``, get no letter."""

    def __init__(self, left: Expr, right: Expr, keep: frozenset[int], shifted: frozenset[int], name: str) -> None:
        self.left, self.right, self.keep, self.name = left, right, keep | shifted, name
        #: The literals by which something is shifted: the right side must have them as they are.
        self.shifted = shifted
        self.terms = [t for t in variables([left]) if str(t.value) not in "pqr"]
        numbers = [number for number in _literals_of(left) if number not in self.keep]
        #: The values in the example, by letter and by measure as ``vmin_x``.
        self.values = dict(zip(_LITERALS, numbers, strict=False))
        self.is_small = len(numbers) <= len(_LITERALS) and len(self.values) + 3 * len(self.terms) <= 14
        ends = {f"{end}_{t.value}": getattr(t, end) for t in self.terms for end in ("vmin", "vmax")}
        # the bounds say in which integers values are computed: random values are up to thrice those of the example
        most = max(2**15, 4 * max(map(abs, [0, *self.values.values(), *ends.values()])))
        self.literals = {letter: var(letter, -most, most) for letter in self.values}
        self.ends = {name: var(name, -most, most) for name in ends}
        self.values |= ends
        self.wide = {term: var(str(term.value), -most, most) for term in self.terms}

    def rule(self, seconds: float) -> tuple[Rule, Proof] | None:
        """The rule and its proof, if one is found; each proof may take some ``seconds``."""
        if not self.is_small:
            return None
        letter_of = {self.values[letter]: term for letter, term in self.literals.items()}
        left = self._pattern(self.left, letter_of)
        facts = [fact for fact in self._facts() if bool(self._at_example(fact))]
        points = _Points(self, facts)
        for _ in range(MOST_REFUTED):
            if (guarded := self._best(left, facts, points)) is None:
                return None
            right, guard = guarded
            rule = Rule(self.name, _text(left), _text(right), " and ".join(_text(fact) for fact in guard))
            proof = prove_rule(rule, seconds)
            if proof.counterexample is None:
                # small values alone are no proof
                return (rule, proof) if {*proof.kinds} - {"exhaustive"} else None
            points.add(proof.counterexample)
        return None

    def _best(self, left: Expr, facts: Sequence[Expr], points: _Points) -> tuple[Expr, list[Expr]] | None:
        """The right side and the guard that hold at most points and are refuted at none."""
        holds = points.hold(facts)
        # where the left side divides by zero a rule claims nothing
        excused = ~points.defined(left)
        value = points.value(left)
        best: tuple[float, Expr, list[Expr]] | None = None
        for right in islice(self._rights(), MOST_RIGHTS):
            if right is left:
                continue
            bad = ((value != points.value(right)) | ~points.defined(right)) & ~excused
            if (chosen := _weakest(holds, bad)) is None:
                continue
            coverage = float(_all(holds, chosen).mean()) / _WORTH ** len(chosen)
            if best is None or coverage > best[0]:
                best = coverage, right, [facts[at] for at in chosen]
        return None if best is None else best[1:]

    def _pattern(self, term: Expr, letter_of: Mapping[int, Expr]) -> Expr:
        order = topological([term])
        images = {t: letter_of[t.vmin] for t in order if t.op == "const" and t.vmin in letter_of}
        # a letter for conditions is `p != 0`: its 0 is no literal of the term
        return substitute([term], images | self.wide | {t: t for t in order if is_condition_letter(t)})[0]

    def _rights(self) -> Iterator[Expr]:
        """The right side with its literals computed in all ways that give their values, the simplest first."""
        forms = {number: list(islice(self._forms(number), MOST_FORMS)) for number in _literals_of(self.right)}
        # few forms of each first
        for way in sorted(product(*[range(len(found)) for found in forms.values()]), key=sum):
            chosen = {number: found[at] for (number, found), at in zip(forms.items(), way, strict=True)}
            yield self._pattern(self.right, chosen)

    def _forms(self, number: int) -> Iterator[Expr]:
        """Terms over letters and measures that have the value ``number`` in the example."""
        if abs(number) <= 1 or number in self.keep:
            yield const(number)
        if number in self.shifted:
            return
        seen: dict[Expr, None] = {}
        for form in self._computed():
            if form not in seen and self._at_example(form) == number:
                seen[form] = None
                yield form

    def _computed(self) -> Iterator[Expr]:
        literals = list(self.literals.values())
        yield from literals
        for c in literals:
            yield from (make("neg", c), c + 1, c - 1)
        ends = list(self.ends.values())
        yield from ends
        for c, d in permutations(literals, 2):
            yield from (c * d, c - d, c + d)
            if self.values[str(d.value)]:
                yield from (c // d, c % d)
        for end in ends:
            yield from (end + 1, end - 1, make("neg", end))
            for c in literals:
                if self.values[str(c.value)]:
                    first = end // c
                    yield from (first, first * c, first * c + c, first + 1)
                yield from (end - c, c - end, end + c)

    def _facts(self) -> Iterator[Expr]:
        """What a guard may say."""
        literals = list(self.literals.values())
        for c in literals:
            yield from (c > 0, c > 1, c >= 0, c < 0, c <= 0)
        for c, d in permutations(literals, 2):
            yield from (c < d, c <= d, c.eq(make("neg", d)))
            if self.values[str(d.value)]:
                yield (c % d).eq(0)
        for c, d, k in permutations(literals, 3):
            if str(d.value) < str(k.value):
                yield c.eq(d * k)
            yield from (c.eq(make("neg", d) * k), c.eq(d - k))
        for term in self.terms:
            low, high = self.ends[f"vmin_{term.value}"], self.ends[f"vmax_{term.value}"]
            yield from (low >= 0, high <= 0, low > 0, high <= 1, high.eq(low + 1), low < high)
            for c in literals:
                yield from (high < c, high <= c, low >= c, low > c, high.eq(c), low.eq(c))
                if self.values[str(c.value)]:
                    yield from ((low // c).eq(high // c), (high // c).eq(low // c + 1))
            for c, d in combinations(literals, 2):
                yield high < c * d
        for x, y in permutations(self.terms, 2):
            low, high = self.ends[f"vmin_{y.value}"], self.ends[f"vmax_{x.value}"]
            yield from (high < low, high <= low)

    def _at_example(self, term: Expr) -> int:
        return int(evaluate([term], self.values, total=True)[0])


class _Points:
    """Random values of letters and measures; many of them satisfy what is true in the example."""

    def __init__(self, of: _Generaliser, facts: Sequence[Expr]) -> None:
        random = np.random.default_rng(0)
        self.values: dict[str, NDArray[np.int64]] = {}

        def mixed(*ways: tuple[float, Any]) -> NDArray[np.int64]:
            """Values that are drawn in these ways, each as often as its weight says."""
            chances = np.array([chance for chance, _ in ways])
            which = random.choice(len(ways), POINTS, p=chances / chances.sum())
            return np.choose(which, [np.broadcast_to(way, POINTS) for _, way in ways]).astype(np.int64)

        def between(low: int, high: int) -> NDArray[np.int64]:
            return random.integers(low, high + 1, POINTS)

        for letter in of.literals:
            ways = [(4, between(-6, 12)), (2, between(1, 9)), (1, between(-40, 70))]
            self.values[letter] = mixed((1, of.values[letter]), *ways)
        for letter, other in [(str(f.args[0].value), f.args[1]) for f in facts if f.op == "eq"]:
            # half of the time, so that guards that ask for equality hold at some points
            if letter in of.literals and {str(v.value) for v in variables([other])} <= of.literals.keys():
                determined = evaluate([other], self.values, total=True)[0]
                self.values[letter] = mixed((1, self.values[letter]), (1, determined))
        literals = [self.values[letter] for letter in of.literals]
        highest: NDArray[np.int64] | None = None
        for term in of.terms:
            name, example = str(term.value), (term.vmin, term.vmax)
            near = [(0.5, literal + between(-1, 1)) for literal in literals]
            multiples = [(0.3, literal * between(-2, 3)) for literal in literals]
            low = mixed((4, 0), (2, example[0]), (2, between(-20, 20)), (1, between(-3, 3)), *near, *multiples)
            if highest is not None:
                low = mixed((3, low), (1, highest + between(0, 1)))
            ends = [(1 / k, k * literal - 1 - low) for k in (1, 2) for literal in literals]
            small = [(2, between(0, 1)), (2, between(0, 8)), (1, between(0, 60))]
            extents = mixed(*small, (1, example[1] - example[0]), *ends)
            high = highest = low + np.clip(extents, 0, 10_000)
            inside = low + (random.random(POINTS) * (high - low + 1)).astype(np.int64)
            self.values |= {f"vmin_{name}": low, f"vmax_{name}": high, name: mixed((1, low), (1, high), (3, inside))}
        for p in "pqr":
            self.values[p] = between(0, 1)

    def add(self, found: Counterexample) -> None:
        """A point that refuted a rule."""
        point = {re.sub(r"\((.*)\)", r"_\1", name): value for name, value in found.values.items()}
        for term in [name for name in self.values if f"vmin_{name}" in self.values]:
            # bounds that the rule does not ask for are those of the value
            for end in (f"vmin_{term}", f"vmax_{term}"):
                point.setdefault(end, point.get(term, 0))
        self.values = {name: np.append(values, point.get(name, 0)) for name, values in self.values.items()}

    def value(self, term: Expr) -> NDArray[Any]:
        """The values of a term; of one without a value, some number."""
        return np.broadcast_to(evaluate([term], self.values, total=True)[0], len(self.values["p"]))

    def hold(self, facts: Sequence[Expr]) -> Bits:
        """A row for each fact: where it holds, and has a value."""
        rows = [self.value(fact) & self.defined(fact) for fact in facts]
        return np.array(rows, dtype=bool).reshape(len(facts), len(self.values["p"]))

    def defined(self, term: Expr) -> Bits:
        """Where no divisor is zero."""
        defined = all_hold([divisor.ne(0) for divisor in divisors([term])], self.values)
        return np.broadcast_to(defined, len(self.values["p"]))


def _all(holds: Bits, chosen: Sequence[int]) -> Bits:
    return np.logical_and.reduce(holds[list(chosen)], axis=0) if chosen else np.ones(holds.shape[1], dtype=bool)


def _weakest(holds: Bits, bad: Bits) -> tuple[int, ...] | None:
    """The facts, few and true at many points, of which one at least fails wherever ``bad`` holds."""
    if not bad.any():
        return ()
    among = np.packbits(holds[:, bad], axis=1)
    # of facts that fail at the same bad points, what holds most often will do
    useful: dict[bytes, int] = {}
    for at in np.argsort(-holds.sum(axis=1), kind="stable"):
        useful.setdefault(among[at].tobytes(), int(at))
    facts = list(useful.values())[:MOST_FACTS]
    best: tuple[float, tuple[int, ...]] | None = None
    for size in range(1, MOST_CONJUNCTS + 1):
        for rest in combinations(range(len(facts)), size - 1):
            later = facts[rest[-1] + 1 if rest else 0 :]
            chosen = [facts[at] for at in rest]
            left = np.bitwise_and.reduce(among[chosen], axis=0) if chosen else np.uint8(255)
            for at in np.flatnonzero(~(among[later] & left).any(axis=1)):
                guard = (*chosen, later[at])
                coverage = float(_all(holds, guard).mean()) / _WORTH**size
                if best is None or coverage > best[0]:
                    best = coverage, guard
        if best is not None and size > len(best[1]):
            break
    return None if best is None else best[1]


def _text(term: Expr) -> str:
    """A side or a conjunct as rules are written."""
    text = re.sub(r"\b(vmin|vmax)_(\w)", r"\1(\2)", to_text(term))
    return re.sub(r"\(([pqr]) != 0\)|\b([pqr]) != 0", lambda found: found[1] or found[2], text)
