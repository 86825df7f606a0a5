"""Conditions as intervals of sums that are there, decided at every point.

``i == 1 and j == 0`` says less than ``4*i + j == 4``; where the program needs ``4*i + j`` besides, the longer one is
the cheaper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, extent, is_index, make, may_divide_by_zero, topological, variables
from eqsat.lang.ops import COMPARISONS, UNINTERPRETED
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import domain_size
from eqsat.theory.forms import LinearForm, atom_form, number, read, to_expr
from eqsat.theory.limits import LIMITS as THEORY_LIMITS


@provides("intervals")
def as_intervals(
    builder: Builder, conditions: Sequence[tuple[int, Expr]], there: Iterable[int]
) -> Iterator[tuple[int, Node]]:
    """Conditions as ``low <= F``, ``F < high``, both, or ``F == low``, for classes ``F`` affine in variables."""
    sums: dict[frozenset[Expr], dict[LinearForm, LinearForm]] = defaultdict(dict)
    for c in there:
        value = builder.values[c]
        if isinstance(value, LinearForm) and value.terms and value.is_affine():
            of_direction = sums[frozenset(value.terms)]
            direction = LinearForm(value.terms, 0)
            if direction not in of_direction or not value.constant:
                of_direction[direction] = value
    pairs = 0
    together: dict[tuple[Expr, ...], list[tuple[int, Expr, list[LinearForm], bool]]] = defaultdict(list)
    for c, condition in conditions:
        names = tuple(sorted(variables([condition]), key=lambda v: v.key))
        if domain_size(names) > THEORY_LIMITS.condition_points:
            continue
        own = compared_sum(condition)
        # of fewer variables it is no interval, unless it does not depend on the others
        directions = [f for d, f in _over(frozenset(names), sums).items() if d not in own]
        pairs += len(directions)
        # what is affine in two variables is compared in every way already
        compared = len(names) == 2 and any(term.op == "floordiv" for term in topological([condition]))
        if (directions or compared) and pairs <= LIMITS.condition_pairs:
            together[names].append((c, condition, directions, compared))
    for names, members in together.items():
        used = list(dict.fromkeys(f for _, _, directions, _ in members for f in directions))
        terms = [condition for _, condition, _, _ in members] + [to_expr(f) for f in used]
        points = grid(names)
        shape = [extent(v) for v in names]
        values = [np.broadcast_to(x, shape) for x in evaluate(terms, points, total=True)]
        of_sum = dict(zip(used, values[len(members) :], strict=True))
        for (c, _, directions, compared), holds in zip(members, values, strict=False):
            if holds.all() or not holds.any():
                continue
            found = [_as_comparison(builder, names, points, holds)] if compared else []
            found += [_as_interval(builder, f, of_sum[f], holds) for f in directions]
            yield from ((c, node) for node in found if node is not None)


def worth_reading(condition: Expr) -> bool:
    """Whether another alternative may be cheaper: not for a variable beside a literal."""
    if condition.op in COMPARISONS:
        if condition.args[0].is_bool or {a.op for a in condition.args} <= {"var", "const"}:
            return False
    elif condition.op not in ("and", "or"):
        return False
    return not any(
        term.op in UNINTERPRETED or (term.op == "var" and is_index(term)) or may_divide_by_zero(term)
        for term in topological([condition])
    )


def compared_sum(condition: Expr) -> list[LinearForm]:
    """The sum that a comparison compares with a literal, and its opposite."""
    compared = [a for a in condition.args if a.op != "const"] if condition.op in COMPARISONS else []
    if len(compared) != 1:
        return []
    direction = LinearForm(read(compared[0]).terms, 0)
    return [direction, direction.times(-1)]


def _over(
    names: frozenset[Expr], sums: Mapping[frozenset[Expr], Mapping[LinearForm, LinearForm]]
) -> dict[LinearForm, LinearForm]:
    """By direction, the sums over just these variables, and what longer ones have of them."""
    found = dict(sums.get(names, {}))
    for wider, of_direction in sums.items():
        if 1 < len(names) < len(wider) and names < wider:
            for direction in of_direction:
                part = {v: direction.terms[v] for v in direction.terms if v in names}
                content = gcd(*part.values())
                primitive = LinearForm({v: k // content for v, k in part.items()}, 0)
                found.setdefault(primitive, primitive)
    return found


def _as_interval(builder: Builder, form: LinearForm, values: NDArray[Any], holds: NDArray[Any]) -> Node | None:
    """The node that compares ``form``, with these values, such that it holds where it should; ``None`` if none."""
    inside = values[holds]
    low, high = int(inside.min()), int(inside.max())
    outside = values[~holds]
    if low == high and not (outside == low).any():
        return "eq", None, (builder.add_class(form), builder.add_class(number(low)))
    step = int(np.gcd.reduce(inside - low))
    if step > 1 and not ((outside - low) % step == 0).any():
        remainder = builder.theory.remainder(form, number(step))
        return "eq", None, (builder.add_class(remainder), builder.add_class(number(low % step)))
    above, below = outside > high, outside < low
    if not (above | below).all():
        least, most = int(outside.min()), int(outside.max())
        if least != most or (inside == least).any():
            return None
        return "ne", None, (builder.add_class(form), builder.add_class(number(least)))
    parts: list[Node] = []
    if below.any():
        parts.append(("le", None, (builder.add_class(number(low)), builder.add_class(form))))
    if above.any():
        parts.append(("lt", None, (builder.add_class(form), builder.add_class(number(high + 1)))))
    if len(parts) == 1:
        return parts[0]
    return "and", None, tuple([_class_of(builder, part) for part in parts])


def _as_comparison(
    builder: Builder, names: Sequence[Expr], points: Mapping[str, NDArray[Any]], holds: NDArray[Any]
) -> Node | None:
    """The comparison of two variables that holds where it should; ``None`` if none does."""
    x, y = [np.broadcast_to(points[cast(str, v.value)], holds.shape) for v in names]
    one, other = [builder.add_class(atom_form(v)) for v in names]
    for op, found, operands in (
        ("eq", x == y, (one, other)),
        ("ne", x != y, (one, other)),
        ("lt", x < y, (one, other)),
        ("le", x <= y, (one, other)),
        ("lt", y < x, (other, one)),
        ("le", y <= x, (other, one)),
    ):
        if np.array_equal(found, holds):
            return op, None, operands
    return None


def _class_of(builder: Builder, comparison: Node) -> int:
    """The class of a comparison with a literal, with this e-node."""
    op, _, operands = comparison
    terms = [to_expr(builder.form_of(a)) for a in operands]
    c = builder.add_class(builder.theory.condition(make(op, *terms)))
    builder.add_node(c, comparison)
    return c
