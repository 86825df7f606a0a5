"""Rules about reductions, modulo the theory: egglog says where they match, their right sides are built of terms.

A match says which classes the letters of a rule stand for; the ends of ranges and the guard are read off normal forms.
The right side (:mod:`eqsat.optimizer.right_sides`) becomes a class like any other, and is united with the left side, so
that all rules go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eqsat.alternatives.builder import Builder
from eqsat.egraph.compilation import Match, ReductionQuery
from eqsat.egraph.patterns import FOUND_IN_BODIES, LITERALS, MEASURES, levels_around, measure_of
from eqsat.lang.expr import TRUE, Expr, any_var, const
from eqsat.lang.ops import is_finite
from eqsat.lang.traversal import is_index, term_count, variables
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.right_sides import (
    Add,
    Indices,
    Letters,
    Members,
    OverClasses,
    RightSide,
    captures,
    is_accepted,
    literals_of_bodies,
)
from eqsat.theory.forms import LinearForm, as_term, to_expr

#: What infinite bounds are beyond.
_LARGE = 2**64


class ReductionRules:
    """The right sides of the matches of rules about reductions, each found once."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.sets = builder.theory.variables
        self.members = Members(builder.classes)
        #: Whether a match was left out.
        self.is_cut = False
        # by what a match says of the left side the classes of its right sides, and what stood beside it so far
        self._found: dict[tuple[object, ...], list[int]] = {}
        self._done: set[tuple[object, ...]] = set()

    def right_sides(self, match: Match, add: Add) -> Iterator[tuple[Match, int]]:
        """The classes that the left side of a match equals, for each way to read it; ``add`` adds nodes.

        The match comes with each: a left side may be more than the rule says of what stands beside it.
        """
        pattern = match.query.pattern
        letters, bound, ends = self._terms(match)
        if bound is None:
            return
        if not match.query.is_own and pattern.puts_together:
            yield from self.members.put_together(match, add, letters, bound, pattern.puts_together)
            return
        alone = None
        if not match.query.is_own and pattern.takes_apart:
            alone = self.members.one_member(match, pattern.takes_apart)
        if alone is not None:
            for c in self.members.taken_apart(match, add, letters, bound, *alone):
                yield match, c
            return
        left = (pattern, *sorted(match.letters.items()), *sorted(match.literals.items()))
        key = (*left, match.constant, match.factor, *sorted(match.rest))
        if key in self._done:
            return
        self._done.add(key)
        if left not in self._found:
            self._found[left] = []
            for c in self._built(match, add, letters, bound, ends):
                self._found[left].append(c)
                yield match, c
            return
        for c in self._found[left]:
            yield match, c

    def _built(self, match: Match, add: Add, letters: Letters, bound: Indices, ends: Sequence[Expr]) -> Iterator[int]:
        """The classes of the right sides of a match."""
        pattern = match.query.pattern
        if not self._is_free(match, letters, bound) or not self._is_defined(match) or captures(match, letters, bound):
            return
        if match.has_own_loops and term_count(letters.values()) > LIMITS.moved_terms:
            self.is_cut = True
            return
        for found in literals_of_bodies(pattern, letters, bound, self.sets):
            known = {**letters, **found}
            try:
                if not self._read_ends(match.query, ends, known, bound):
                    continue
                side = RightSide(pattern, {**known, **self._measured(match, known)}, bound, self.sets)
                if self.builder.value_of(side.built(pattern.when)) is not TRUE:
                    continue
                term = side.built(pattern.right)
            except ValueError:
                # an index would leave its scope, or the term is one that is refused
                continue
            if is_accepted(self.sets, term):
                yield self.builder.add_term(term)
                over_classes = OverClasses(self.builder.classes, match, side, add).of(pattern.right, frozenset())
                if over_classes is not None:
                    yield over_classes

    def _term(self, c: int) -> Expr:
        return as_term(self.builder.values[c])

    def _terms(self, match: Match) -> tuple[dict[str, Expr], dict[int, Expr] | None, list[Expr]]:
        """The terms of letters, the indices by their levels (``None`` if one is a number), the ends of ranges."""
        letters = {name: const(value) for name, value in match.literals.items()}
        bound: dict[int, Expr] = {}
        ends = [self._term(match.letters[f"end{n}"]) for n in range(len(match.query.ends))]
        for name, c in match.letters.items():
            if name[0] == "i":
                index = self._index(c)
                if index is None:
                    return letters, None, ends
                bound[int(name[1:])] = index
            elif not name.startswith("end"):
                letters[name] = self._term(c)
        return letters, bound, ends

    def _index(self, c: int) -> Expr | None:
        """The index of a reduction that a class is, or that it was found to equal."""
        terms = map(self._term, self.builder.graph.equal_classes(c))
        return next((term for term in terms if term.op == "var" and is_index(term)), None)

    def _is_free(self, match: Match, letters: Letters, bound: Indices) -> bool:
        """Whether the letters that the guard says to be free of their indices are that."""
        around = levels_around(match.query.pattern.left)
        for v in variables([match.query.pattern.when]):
            asked, _, letter = str(v.value).partition("_")
            if asked == "free" and any(
                self.sets.of(letters[letter]) & self.sets.of(bound[level]) for level in around.get(letter, ())
            ):
                return False
        return True

    def _is_defined(self, match: Match) -> bool:
        """Whether what the rule takes out of branches divides by nothing that may be zero."""
        classes = self.builder.classes
        moved_out = match.query.pattern.moved_out_of_branches & match.letters.keys()
        return not any(classes.may_be_undefined(match.letters[letter]) for letter in moved_out)

    def _read_ends(self, query: ReductionQuery, ends: Sequence[Expr], known: dict[str, Expr], bound: Indices) -> bool:
        """Whether the ends of ranges are what the rule writes; ``known`` gains the letters that only these bind."""
        for written, end in zip(query.ends, ends, strict=True):
            missing = [v for v in variables([written]) if not is_index(v) and str(v.value) not in known]
            if len(missing) > 1:
                return False
            value = self.builder.value_of(end)
            if missing:
                name = str(missing[0].value)
                zero, one = [self._value_at(query, written, {**known, name: const(n)}, bound) for n in (0, 1)]
                slope = one.plus(zero, -1)
                if not isinstance(value, LinearForm) or slope.terms or not slope.constant:
                    return False
                found = _divided(value.plus(zero, -1), slope.constant)
                if found is None or (name in LITERALS and found.terms):
                    return False
                known[name] = to_expr(found)
            # what 0 and 1 tell of an end that is not linear in the letter may be false
            if self._value_at(query, written, known, bound) != value:
                return False
        return True

    def _value_at(self, query: ReductionQuery, written: Expr, known: Letters, bound: Indices) -> LinearForm:
        value = self.builder.value_of(RightSide(query.pattern, known, bound, self.sets).built(written, bound))
        if not isinstance(value, LinearForm):
            raise ValueError(f"{written!r} is a condition")
        return value

    def _measured(self, match: Match, known: Letters) -> dict[str, Expr]:
        """What the guard and the right side ask of letters, as literals; what is asked of freedom has been answered."""
        found: dict[str, Expr] = {}
        pattern = match.query.pattern
        for v in variables([pattern.when, pattern.right]):
            name = str(v.value)
            function, _, letter = name.partition("_")
            if function in ("free", *FOUND_IN_BODIES):
                found[name] = const(1)
            elif name in MEASURES:
                found[name] = _bound(name, self._measure(function, letter, known))
        if any(found.get(str(v.value), v).op == "var" for v in variables([pattern.right]) if str(v.value) in MEASURES):
            raise ValueError("the right side has a bound that is infinite")
        return found

    def _measure(self, function: str, letter: str, known: Letters) -> int:
        first, _, other = letter.partition("_")
        theory = self.builder.theory
        form = theory.form(known[first])
        if function in ("vmin", "vmax"):
            return theory.bounds(form)[function == "vmax"]
        content = form.content()
        rest = form.constant % content if content else form.constant
        return measure_of(function, content, rest, known[other].vmin if other else 0)


def _bound(name: str, value: int) -> Expr:
    """A measure as a term: an infinite one as some large number, so that a guard must hold for all of these."""
    if is_finite(value):
        return const(value)
    return any_var(f"#{name}", _LARGE, value) if value > 0 else any_var(f"#{name}", value, -_LARGE)


def _divided(form: LinearForm, divisor: int) -> LinearForm | None:
    """A form divided by a number, if that leaves no remainder."""
    if form.constant % divisor or any(k % divisor for k in form.terms.values()):
        return None
    return form.divided(divisor)
