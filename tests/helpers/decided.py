"""Whether the theory decides a rule, by sampled instances."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import gcd

from eqsat.egraph.patterns import CONDITIONS, LITERALS
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr, const, substitute, var
from eqsat.lang.functions import where
from eqsat.lang.traversal import variables
from eqsat.theory.linear import LinearArithmetic

#: A rule is left to the theory if that decides at least this share of its instances.
MOST_INSTANCES = 0.75
#: The number of instances that are tried, and of attempts to find them.
INSTANCES, ATTEMPTS = 8, 400


def is_decided(rule: Rule) -> bool:
    """Whether both sides of most sampled instances of a rule have the same normal form.

    The few that differ are forms of one value, which the input and the theory have too.
    """
    theory = LinearArithmetic()
    return decides_most([theory.simplify(left) is theory.simplify(right) for left, right in rule_instances(rule)])


def decides_most(decided: list[bool]) -> bool:
    """Whether enough instances of a rule are decided for it to be left to the theory."""
    return bool(decided) and sum(decided) >= MOST_INSTANCES * len(decided)


def _term(name: str, source: random.Random, is_wide: bool, has_remainder: bool) -> tuple[Expr, dict[str, int]]:
    """A multiple of a variable, perhaps with a remainder, for a letter; and what a guard may ask of it."""
    if is_wide:
        low, high = source.randint(-20, -9), source.randint(9, 20)
    else:
        low = source.choice((0, source.randint(-8, 8)))
        high = low + source.choice((1, 2, source.randint(0, 12)))
    modulus = source.choice((1, 2, 3, 4, 6))
    rest = source.randrange(modulus) if has_remainder else 0
    scaled = var(name, low, high) * modulus if modulus > 1 else var(name, low, high)
    measures = {f"vmin_{name}": low * modulus + rest, f"vmax_{name}": high * modulus + rest}
    measures |= {f"modulus_{name}": modulus, f"remainder_{name}": rest, f"factor_{name}": gcd(modulus, rest)}
    return scaled + rest if rest else scaled, measures


def rule_instances(rule: Rule) -> Iterator[tuple[Expr, Expr]]:
    """Both sides of ``rule`` over variables with small ranges, for literals and ranges that its guard admits."""
    pattern = rule.pattern
    letters = {str(v.value): v for v in variables([pattern.left, pattern.right, pattern.when])}
    source = random.Random(0)
    found = 0
    for attempt in range(ATTEMPTS):
        image: dict[str, Expr] = {}
        measures: dict[str, int] = {}
        for name in letters:
            if name in LITERALS:
                image[name] = const(source.randint(-3, 12))
            elif name in CONDITIONS:
                # of one variable with two values, or of one bound, selections are sums and quotients
                image[name] = where(var(name, 0, 5).eq(2), 0, 1)
            elif "_" not in name:
                # every other attempt has wide ranges, in which bounds decide little
                image[name], measured = _term(name, source, bool(attempt % 2), f"remainder_{name}" in letters)
                measures |= measured
        for name in letters:
            if name in measures:
                image[name] = const(measures[name])
            elif name.startswith("gcd_"):
                _, term, literal = name.split("_")
                image[name] = const(gcd(measures[f"factor_{term}"], image[literal].vmin))
        images = {letters[name]: term for name, term in image.items()}
        try:
            left, right, when = substitute([pattern.left, pattern.right, pattern.when], images)
        except ValueError:
            continue
        if when.vmin == 1:
            yield left, right
            found += 1
            if found == INSTANCES:
                return
