"""Reuse: spellings by what is computed anyway.

A normal form is short on its own: ``i == 1 and j == 0`` says less than ``4*i + j == 4``, and ``(j - i) % 4`` has smaller
coefficients than ``(3*i + j) % 4``. Where the program needs ``4*i + j`` or ``3*i + j`` besides, the longer one is the
cheaper. So once all classes of a :class:`~eqsat.spelling.Speller` are known, each condition is offered as an interval of
a sum over its variables, decided at every point, and each remainder by every congruent sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eqsat.expr import Expr, make, topological, variables
from eqsat.extract.graph import Node
from eqsat.forms import Form, atom_form, number, to_expr
from eqsat.opaque import OPAQUE
from eqsat.sampling import domain_size, grid
from eqsat.spelling import MANY_CLASSES, Speller

#: Conditions are evaluated at no more points than this.
MAX_POINTS = 1 << 13
#: Pairs of a condition and a sum that are compared.
MAX_PAIRS = 400
#: A remainder is offered by so many congruent sums.
MAX_CONGRUENT = 4

#: Of longer inputs the brackets are not offered.
MAX_TERMS = 400

_BRACKETS = frozenset({"add", "sub", "neg", "mul"})
_COMPARISONS = frozenset({"lt", "le", "eq", "ne"})


def offer_reuse(speller: Speller, terms: Iterable[Expr]) -> dict[int, Node]:
    """Offer the sums of the input bracketed as they are there, where all else they add is needed anyway.

    Returns
    -------
    dict from int to Node
        By class, the node that the input has for it.
    """
    classes: dict[Expr, int] = {}
    offered: dict[int, Node] = {}
    for term in terms:
        if term.is_bool:
            continue
        value = speller.value_of(term)
        operands = [classes.get(a) for a in term.args]
        bracket = term.op in _BRACKETS and None not in operands
        if term.op in ("const", "var") or value in speller:
            classes[term] = speller.need(value)
        elif bracket:
            classes[term] = speller.need(value, spell=False)
        if bracket:
            c = classes[term]
            offered[c] = (term.op, None, tuple(cast(list[int], operands)))
            speller.offer(c, offered[c])
    for c, node in [*_remainders(speller), *_wider_remainders(speller), *_intervals(speller)]:
        speller.offer(c, node)
    speller.grow()
    return offered


# ---- remainders


def _remainders(speller: Speller) -> Iterator[tuple[int, Node]]:
    """``A % n`` as ``B % n`` for other classes ``B`` that differ from ``A`` by multiples of ``n``."""
    divided: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for c, nodes in speller.graph.classes.items():
        for op, _, args in nodes:
            divisor = speller.values[args[1]] if op == "mod" else None
            if isinstance(divisor, Form) and not divisor.terms and divisor.constant > 1:
                divided[divisor.constant].append((c, args[0]))
    for n, remainders in divided.items():
        wanted = {_residues(cast(Form, speller.values[dividend]), n): [] for _, dividend in remainders}
        for c, value in enumerate(speller.values):
            if isinstance(value, Form) and len(value.terms) > 1:
                found = wanted.get(_residues(value, n))
                if found is not None and len(found) < MAX_CONGRUENT:
                    found.append(c)
        for c, dividend in remainders:
            for other in wanted[_residues(cast(Form, speller.values[dividend]), n)]:
                if other not in (c, dividend):
                    yield c, ("mod", None, (other, speller.need(number(n))))


def _wider_remainders(speller: Speller) -> Iterator[tuple[int, Node]]:
    """``k*(A % n) + r`` as ``(k*A + r) % (k*n)`` for ``r`` in ``[0, k)``."""
    for c, form in enumerate(speller.values):
        if not isinstance(form, Form):
            continue
        for quotient, coefficient in form.terms.items():
            if quotient.op == "floordiv" and quotient.args[1].op == "const" and -coefficient > quotient.args[1].vmin > 1:
                dividend = form.plus(atom_form(quotient), -coefficient)
                if speller.theory.quotient_by(dividend, -coefficient) == atom_form(quotient):
                    yield c, ("mod", None, (speller.need(dividend), speller.need(number(-coefficient))))


def _residues(form: Form, n: int) -> Form:
    return Form({a: k % n for a, k in form.terms.items() if k % n}, form.constant % n)


# ---- conditions


def _intervals(speller: Speller) -> Iterator[tuple[int, Node]]:
    """Conditions as ``low <= F``, ``F < high``, both, or ``F == low``, for classes ``F`` affine in variables."""
    conditions = [(c, v) for c, v in enumerate(speller.values) if isinstance(v, Expr) and _worth_reading(v)]
    sums: dict[frozenset[Expr], dict[Form, int]] = defaultdict(dict)
    for c, value in enumerate(speller.values) if conditions else ():
        if isinstance(value, Form) and value.terms and all(a.op == "var" for a in value.terms):
            of_direction = sums[frozenset(value.terms)]
            direction = Form(value.terms, 0)
            if direction not in of_direction or not value.constant:
                of_direction[direction] = c
    pairs = 0
    for c, condition in conditions:
        names = variables([condition])
        if domain_size(names) > MAX_POINTS:
            continue
        directions = [(d, f) for used, some in sums.items() if used <= set(names) for d, f in some.items()]
        pairs += len(directions)
        if not directions or pairs > MAX_PAIRS:
            continue
        points = grid(names)
        shape = [v.vmax - v.vmin + 1 for v in names]
        holds = np.broadcast_to(condition.evaluate(points), shape)
        if holds.all() or not holds.any():
            continue
        for direction, f in directions:
            values = np.broadcast_to(sum(k * points[cast(str, a.value)] for a, k in direction.terms.items()), shape)
            node = _as_interval(speller, f, values + cast(Form, speller.values[f]).constant, holds)
            if node is not None:
                yield c, node


def _worth_reading(condition: Expr) -> bool:
    """Whether another spelling may be cheaper: not for a variable beside a literal."""
    if condition.op in _COMPARISONS:
        if condition.args[0].is_bool or {a.op for a in condition.args} <= {"var", "const"}:
            return False
    elif condition.op not in ("and", "or"):
        return False
    return not any(term.op in OPAQUE for term in topological([condition]))


def _as_interval(speller: Speller, f: int, values: NDArray[Any], holds: NDArray[Any]) -> Node | None:
    """The node that compares class ``f``, with these values, such that it holds where it should; ``None`` if none."""
    inside = values[holds]
    low, high = int(inside.min()), int(inside.max())
    outside = values[~holds]
    if low == high and not (outside == low).any():
        return "eq", None, (f, speller.need(number(low)))
    step = int(np.gcd.reduce(inside - low))
    if step > 1 and not ((outside - low) % step == 0).any():
        form = cast(Form, speller.values[f])
        remainder = speller.theory.remainder(form, number(step))
        return "eq", None, (speller.need(remainder), speller.need(number(low % step)))
    above, below = outside > high, outside < low
    if not (above | below).all():
        least, most = int(outside.min()), int(outside.max())
        return ("ne", None, (f, speller.need(number(least)))) if least == most and not (inside == least).any() else None
    parts: list[Node] = []
    if below.any():
        parts.append(("le", None, (speller.need(number(low)), f)))
    if above.any():
        parts.append(("lt", None, (f, speller.need(number(high + 1)))))
    if len(parts) == 1:
        return parts[0]
    return "and", None, tuple([_class_of(speller, part) for part in parts])


def _class_of(speller: Speller, comparison: Node) -> int:
    """The class of a comparison with a literal, with this spelling."""
    op, _, operands = comparison
    terms: Sequence[Expr] = [to_expr(cast(Form, speller.values[c])) for c in operands]
    c = speller.need(speller.theory.condition(make(op, *terms)))
    speller.offer(c, comparison)
    return c
