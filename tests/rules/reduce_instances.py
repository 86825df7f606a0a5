"""Instances of rules about reductions over terms: variables whose bounds show whether a guard holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from eqsat.egraph.patterns import CONDITIONS, LITERALS, TERMS, levels_around, reductions_of
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import TRUE, Expr, any_var, buffer, const, var
from eqsat.lang.properties import VariableSets
from eqsat.lang.traversal import index_level, variables
from eqsat.optimizer.right_sides import RightSide
from eqsat.theory.linear import LinearArithmetic

#: The bounds of ends of ranges and of letters that a guard asks of, those of other letters, and the values of literals.
BOUNDS = [(0, 0), (0, 3), (3, 3), (-2, 1), (2, 4), (0, 1), (1, 2), (-1, 0), (-1, 3)]
OTHERS = (0, 2)
NUMBERS = [0, 2, 4, 3, 1, -1]


@dataclass(frozen=True)
class Instance:
    """Terms for the letters of a rule; ``bound`` are the indices of its left side by their levels."""

    rule: Rule
    letters: dict[str, Expr]
    bound: dict[int, Expr]

    @property
    def sides(self) -> tuple[Expr, Expr]:
        """What the rule says is equal."""
        return self._built(self.rule.pattern.left), self._built(self.rule.pattern.right)

    def is_guarded(self, rule: Rule) -> bool:
        """Whether bounds show that the guard of a rule with the same letters holds."""
        return LinearArithmetic().condition(self._built(rule.pattern.when)) is TRUE

    def _built(self, part: Expr) -> Expr:
        known = dict(self.letters)
        for name in [str(v.value) for v in variables([part])]:
            function, _, letter = name.partition("_")
            if function in ("vmin", "vmax"):
                known[name] = const(getattr(self.letters[letter], function))
            elif function in ("free", "divides", "steps"):
                known[name] = const(1)
        return RightSide(self.rule.pattern, known, self.bound, VariableSets()).built(part)


def instances(rule: Rule) -> Iterator[Instance]:
    """``rule`` where its guard holds: with numbers for literals, variables for letters, elements of arrays for bodies.

    Sides that are one term, or no terms, are left out.
    """
    left, when = rule.pattern.left, rule.pattern.when
    names = {str(v.value) for v in variables([left, rule.pattern.right, when])}
    literals = sorted(names & set(LITERALS))
    asked = [str(v.value).removeprefix("vmin_").removeprefix("vmax_") for v in variables([when])]
    bodies = {name for name, around in levels_around(left).items() if around and f"free({name})" not in rule.when}
    ends = [name for name in TERMS if name in {*asked, *names.intersection("uvw")} - bodies]
    for numbers in product(NUMBERS, repeat=len(literals)):
        for bounds in product(BOUNDS, repeat=len(ends)):
            with suppress(ValueError):
                fixed = {name: const(number) for name, number in zip(literals, numbers, strict=True)}
                found = _instance(rule, fixed, dict(zip(ends, bounds, strict=True)))
                if found.is_guarded(rule) and found.sides[0] is not found.sides[1]:
                    yield found


def _instance(rule: Rule, fixed: dict[str, Expr], bounds: dict[str, tuple[int, int]]) -> Instance:
    # the outermost range, which is that of all indices here
    (first, _), (_, end) = bounds.get("u", OTHERS), bounds.get("v", OTHERS)
    reductions = reductions_of(rule.pattern.left)
    levels = [index_level(reduction.args[1]) for reduction in reductions]
    bound = {level: any_var(f"#{level}", first, max(first, end - 1)) for level in levels}
    ends = {str(v.value) for reduction in reductions for end in reduction.args[2:] for v in variables([end])}
    letters = dict(fixed)
    for name, around in levels_around(rule.pattern.left).items():
        if name in fixed or name not in TERMS + CONDITIONS:
            continue
        places = [bound[level] for level in around if f"free({name})" not in rule.when]
        if not places:
            letters[name] = var(name, *bounds.get(name, OTHERS)) if name in TERMS else var(name, 0, 1).ne(0)
        elif name in ends:
            letters[name] = places[0]
        elif name in CONDITIONS:
            letters[name] = buffer(name.upper(), "bool")[tuple(places)]
        else:
            # what a guard finds in bodies
            if f"divides({name}, d)" in rule.when:
                places[0] //= fixed["d"]
            if f"steps({name}, d)" in rule.when:
                places = [places[0] * fixed["d"] + places[1]]
            letters[name] = buffer(name.upper(), "i32")[tuple(places)]
    return Instance(rule, letters, bound)
