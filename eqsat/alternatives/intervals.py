"""Conditions as intervals of sums that have a class, found by evaluation at every point of their variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, make
from eqsat.lang.ops import COMPARISONS, UNINTERPRETED, np
from eqsat.lang.properties import may_divide_by_zero
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import domain_size, extent, is_index, topological, variables
from eqsat.theory.forms import LinearForm, number, read, to_expr
from eqsat.theory.limits import LIMITS as THEORY_LIMITS

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Compared(NamedTuple):
    """A condition with its class, and the sums that it may be compared by."""

    c: int
    condition: Expr
    sums: list[LinearForm]


@provides("intervals")
def as_intervals(
    classes: CanonicalGraph,
    conditions: Sequence[tuple[int, Expr]],
    there: Iterable[int],
    moved: Callable[[Expr], Iterable[Node]],
) -> Iterator[tuple[int, Node]]:
    """Conditions as ``low <= F``, ``F < high``, both, or ``F == low``, for classes ``F`` affine in variables.

    Comparisons with a literal are also ``moved``.
    """
    for names, compared in _compared(classes, conditions, there).items():
        yield from _decided(classes, names, compared, moved)


def _compared(
    classes: CanonicalGraph, conditions: Sequence[tuple[int, Expr]], there: Iterable[int]
) -> dict[tuple[Expr, ...], list[_Compared]]:
    """The conditions that are compared, by their variables."""
    sums: dict[frozenset[Expr], dict[LinearForm, LinearForm]] = defaultdict(dict)
    for c in there:
        value = classes.values[c]
        if isinstance(value, LinearForm) and value.terms and value.is_affine():
            of_direction = sums[frozenset(value.terms)]
            direction = value.direction()
            if direction not in of_direction or not value.constant:
                of_direction[direction] = value
    pairs = 0
    found: dict[tuple[Expr, ...], list[_Compared]] = defaultdict(list)
    for c, condition in conditions:
        names = tuple(sorted(variables([condition]), key=lambda v: v.key))
        if domain_size(names) > THEORY_LIMITS.condition_points:
            continue
        own = compared_sum(condition)
        # a condition on variables that a sum lacks is no interval of that sum
        directions = [f for d, f in _over(frozenset(names), sums).items() if d not in own]
        pairs += len(directions)
        signs = _signs(own[0]) if own else None
        if signs is not None and signs not in directions:
            directions.append(signs)
        if directions and pairs <= LIMITS.condition_pairs:
            found[names].append(_Compared(c, condition, directions))
    return found


def _decided(
    classes: CanonicalGraph,
    names: tuple[Expr, ...],
    compared: Sequence[_Compared],
    moved: Callable[[Expr], Iterable[Node]],
) -> Iterator[tuple[int, Node]]:
    """The nodes of conditions as intervals, by the values of both at every point of their variables."""
    conditions = [of.condition for of in compared]
    used = list(dict.fromkeys(form for of in compared for form in of.sums))
    sums = [to_expr(f) for f in used]
    shape = [extent(v) for v in names]
    values = evaluate([*conditions, *sums], grid(names), total=True)
    # twice as wide as the values: differences of them are taken
    kinds = [np.int64 if max(term.vmax, -term.vmin) < 2**62 else object for term in sums]
    wide = [x.astype(kind) for x, kind in zip(values[len(compared) :], kinds, strict=True)]
    of_sum = {form: np.broadcast_to(x, shape) for form, x in zip(used, wide, strict=True)}
    for (c, _, own_sums), everywhere in zip(compared, values, strict=False):
        holds = np.broadcast_to(everywhere, shape)
        if holds.all() or not holds.any():
            continue
        for form in own_sums:
            if (node := _as_interval(classes, form, of_sum[form], holds)) is not None:
                yield c, node
                if node[0] in ("le", "lt") and not form.constant:
                    sides = [to_expr(classes.form_of(a)) for a in node[2]]
                    yield from ((c, other) for other in moved(make(node[0], *sides)))


def worth_reading(condition: Expr) -> bool:
    """Whether a condition may be evaluated, and an alternative be cheaper: not than a variable beside a literal."""
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


def _signs(form: LinearForm) -> LinearForm | None:
    """The sum of variables without coefficients, ``x - y`` of ``3*x - 4*y``; ``None`` if that is nothing new."""
    if len(form.terms) < 2 or not form.is_affine() or all(abs(k) == 1 for k in form.terms.values()):
        return None
    return LinearForm({v: 1 if k > 0 else -1 for v, k in form.terms.items()}, 0)


def _over(
    names: frozenset[Expr], sums: Mapping[frozenset[Expr], Mapping[LinearForm, LinearForm]]
) -> dict[LinearForm, LinearForm]:
    """By direction, the sums over just these variables, and the parts of longer ones over them."""
    found = dict(sums.get(names, {}))
    for wider, of_direction in sums.items():
        if 1 < len(names) < len(wider) and names < wider:
            for direction in of_direction:
                part = {v: direction.terms[v] for v in direction.terms if v in names}
                content = gcd(*part.values())
                primitive = LinearForm({v: k // content for v, k in part.items()}, 0)
                found.setdefault(primitive, primitive)
    return found


def _as_interval(classes: CanonicalGraph, form: LinearForm, values: NDArray[Any], holds: NDArray[Any]) -> Node | None:
    """The node that compares ``form``, of which these are the values, and holds just there; ``None`` if none does."""
    inside = values[holds]
    low, high = int(inside.min()), int(inside.max())
    outside = values[~holds]
    if low == high and not (outside == low).any():
        return classes.node("eq", form, number(low))
    step = int(np.gcd.reduce(inside - low))
    if step > 1 and not ((outside - low) % step == 0).any():
        remainder = classes.theory.remainder(form, number(step))
        return classes.node("eq", remainder, number(low % step))
    above, below = outside > high, outside < low
    if not (above | below).all():
        least, most = int(outside.min()), int(outside.max())
        if least != most or (inside == least).any():
            return None
        return classes.node("ne", form, number(least))
    parts: list[Node] = []
    if below.any():
        parts.append(classes.node("le", number(low), form))
    if above.any():
        parts.append(classes.node("lt", form, number(high + 1)))
    if len(parts) == 1:
        return parts[0]
    return "and", None, tuple([_class_of(classes, part) for part in parts])


def _class_of(classes: CanonicalGraph, comparison: Node) -> int:
    op, _, operands = comparison
    terms = [to_expr(classes.form_of(a)) for a in operands]
    c = classes.add_class(classes.theory.condition(make(op, *terms)))
    classes.add_node(c, comparison)
    return c
