"""Near misses: instances of a rule in which one conjunct of its guard fails, all others hold, and the sides differ.

They are at the edge where that can be: a bound is missed by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqsat.egraph.patterns import CONDITIONS, LITERALS, TERMS
from eqsat.egraph.rule import Rule
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, const, make, substitute, var
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.traversal import topological, variables

#: Instances drawn for one conjunct, and how many of the fitting ones are tried, of those at its edge and of all others.
DRAWN, TRIED = 30_000, 40
#: Ranges are drawn up to the first width; where these have no near miss, up to the second one.
WIDEST = 9, 40
#: The sides are compared at all points of the variables' ranges, if there are no more than this.
POINTS = 50_000


@dataclass(frozen=True)
class NearMiss:
    """Both sides of a rule where only ``conjunct`` fails.

    ``facts`` are what terms must satisfy. ``past`` is by how much more than the least possible the conjunct fails.
    """

    conjunct: Expr
    left: Expr
    right: Expr
    facts: tuple[Expr, ...]
    past: int


def conjuncts_of(rule: Rule) -> list[Expr]:
    """The conjuncts of the guard."""
    found: list[Expr] = []
    stack = [rule.pattern.when]
    while stack:
        term = stack.pop()
        if term.op == "and":
            stack += reversed(term.args)
        elif term.op != "bool":
            found.append(term)
    return found


def near_miss(rule: Rule, conjunct: Expr) -> NearMiss | None:
    """A near miss of ``rule`` at ``conjunct``, or ``None`` if no instance drawn is one."""
    return next(filter(None, (_near_miss(rule, conjunct, _draw(rule, widest)) for widest in WIDEST)), None)


def _near_miss(rule: Rule, conjunct: Expr, drawn: dict[str, NDArray[Any]]) -> NearMiss | None:
    holds = np.ones(DRAWN, dtype=bool)
    for other in conjuncts_of(rule):
        if not _speaks_of_terms(other):
            value = evaluate([other], drawn, total=True)[0] & _defined(other, drawn)
            holds = holds & (~value if other is conjunct else value)
    indices, past = np.flatnonzero(holds), _past(conjunct, drawn)

    def instances(index: int) -> Iterator[tuple[Expr, Expr, tuple[Expr, ...]]]:
        return _instance(rule, {name: int(v[index]) for name, v in drawn.items()}, conjunct)

    nearest = indices[np.argsort(past[indices], kind="stable")]
    edge = next((int(past[index]) for index in nearest if any(instances(index))), 0)
    at_edge = past[indices] == edge
    for index in [*indices[at_edge][:TRIED], *indices[~at_edge][:TRIED]]:
        for left, right, facts in instances(index):
            if _differ(left, right, facts):
                return NearMiss(conjunct, left, right, facts, int(past[index]) - edge)
    return None


def _past(conjunct: Expr, drawn: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """By how much a comparison fails; 0 for other conjuncts, and for those about terms."""
    if conjunct.op not in ("lt", "le", "eq") or _speaks_of_terms(conjunct):
        return np.zeros(DRAWN, dtype=np.int64)
    left, right = np.broadcast_arrays(*evaluate(conjunct.args, drawn, total=True), np.zeros(DRAWN))[:2]
    past: NDArray[Any] = np.abs(left - right)
    return past


def _draw(rule: Rule, widest: int) -> dict[str, NDArray[Any]]:
    """Random literals, ranges, factors and congruences, the same each time."""
    source = np.random.default_rng(1)
    pattern = rule.pattern
    names = [str(v.value) for v in variables([pattern.left, pattern.right, pattern.when])]
    drawn: dict[str, NDArray[Any]] = {}
    for name in names:
        if name == "s":
            drawn[name] = source.integers(1, 4, DRAWN)
        elif name in LITERALS:
            drawn[name] = source.integers(-6, 13, DRAWN)
        elif name in TERMS:
            needed = {n.split("_")[0] for n in names if n.split("_")[1:2] == [name]} - {"vmin", "vmax"}
            modulus = source.integers(2, 7, DRAWN) if needed else np.ones(DRAWN, dtype=np.int64)
            low = source.integers(-9, 7, DRAWN)
            high = low + source.integers(1, widest, DRAWN)
            rest = source.integers(0, modulus) if "remainder" in needed else np.zeros(DRAWN, dtype=np.int64)
            drawn[f"modulus_{name}"], drawn[f"remainder_{name}"] = modulus, rest
            drawn[f"factor_{name}"] = np.gcd(modulus, rest)
            drawn[f"vmin_{name}"], drawn[f"vmax_{name}"] = low * modulus + rest, high * modulus + rest
    for name in names:
        if name.startswith("gcd_"):
            _, term, literal = name.split("_")
            drawn[name] = np.gcd(drawn[f"factor_{term}"], drawn[literal])
    return drawn


def _speaks_of_terms(conjunct: Expr) -> bool:
    return any(str(v.value) in TERMS for v in variables([conjunct]))


def _defined(term: Expr, values: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Where no divisor is zero."""
    divisors = [t.args[1] for t in topological([term]) if t.op in DIVISIONS]
    nonzero = [value != 0 for value in evaluate(divisors, values, total=True)]
    return np.all(nonzero, axis=0) if divisors else np.asarray(True)


def _instance(rule: Rule, drawn: dict[str, int], conjunct: Expr) -> Iterator[tuple[Expr, Expr, tuple[Expr, ...]]]:
    """The sides of ``rule`` for one draw, if they are terms."""
    pattern = rule.pattern
    image: dict[Expr, Expr] = {}
    for letter in variables([pattern.left, pattern.right, pattern.when]):
        name = str(letter.value)
        if name in CONDITIONS:
            image[make("ne", letter, const(0))] = var(name, 0, 3) < var(name * 2, 0, 3)
        elif name in TERMS:
            modulus, rest = drawn[f"modulus_{name}"], drawn[f"remainder_{name}"]
            leaf = var(name, drawn[f"vmin_{name}"] // modulus, drawn[f"vmax_{name}"] // modulus)
            scaled = leaf * modulus if modulus > 1 else leaf
            image[letter] = scaled + rest if rest else scaled
        else:
            image[letter] = const(drawn[name])
    needed = [other for other in conjuncts_of(rule) if other is not conjunct and _speaks_of_terms(other)]
    if _speaks_of_terms(conjunct):
        # the sides may be equal, but not the wrong way round
        needed.append(make("le", *conjunct.args))
    try:
        left, right, *facts = substitute([pattern.left, pattern.right, *needed], image)
    except ValueError:
        return
    divisors = [t.args[1] for t in topological([left, right]) if t.op in DIVISIONS]
    facts += [divisor.ne(0) for divisor in divisors if divisor.vmin <= 0 <= divisor.vmax]
    yield left, right, tuple(facts)


def _differ(left: Expr, right: Expr, facts: tuple[Expr, ...]) -> bool:
    free = variables([left, right, *facts])
    if np.prod([v.vmax - v.vmin + 1 for v in free]) > POINTS:
        return False
    axes = np.meshgrid(*[np.arange(v.vmin, v.vmax + 1) for v in free], indexing="ij")
    values = {str(v.value): axis for v, axis in zip(free, axes, strict=True)}
    one, other, *known = evaluate([left, right, *facts], values, total=True)
    return bool(np.any((one != other) & np.all(known, axis=0) if known else one != other))
