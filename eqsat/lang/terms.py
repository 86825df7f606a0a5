"""Terms from e-nodes, and e-nodes of terms; sums, products and conditions that are plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from operator import mul
from typing import cast

from eqsat.extract.graph import Node, Payload, sum_payload
from eqsat.extract.select import Choice, reachable
from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, named_variable, replaced, shift_amount
from eqsat.lang.functions import where
from eqsat.lang.ops import BITWISE, COMPARISONS, SHIFTS
from eqsat.lang.properties import is_wide
from eqsat.lang.traversal import buffer_key

#: By operator the literal that changes nothing; in a difference on the right only.
_UNITS = {"and": TRUE, "or": FALSE, "add": const(0), "sub": const(0)}


def terms_of(
    choice: Choice,
    roots: Iterable[int],
    leaves: Mapping[str, Expr],
    narrower: Callable[[int], Expr | None] = lambda c: None,
) -> dict[int, Expr]:
    """The term of each class that ``roots`` need, by the nodes of ``choice``.

    The operands of a term may have looser bounds than those of the input had. If its own bounds are too wide for that,
    it is replaced by what ``narrower`` returns for its class. Raises ``TooWideError`` if a product has more bits than
    are accepted and ``narrower`` has no other term.
    """
    terms: dict[int, Expr] = {}
    for c in reachable(choice, roots):
        operands = [terms[a] for a in choice[c][2]]
        # a rule may have found an operand to be a unit after the node was added
        kept = _without_unit(choice[c][0], operands)
        try:
            terms[c] = term_of_node(choice[c], operands, leaves) if kept is None else kept
        except TooWideError:
            if (found := narrower(c)) is None:
                raise
            terms[c] = found
        if is_wide(terms[c]) and (found := narrower(c)) is not None and not is_wide(found):
            terms[c] = found
    return terms


def _without_unit(op: str, operands: Sequence[Expr]) -> Expr | None:
    """One of two operands if the other is the literal that changes nothing, else ``None``."""
    unit = _UNITS.get(op)
    if unit is None or len(operands) != 2:
        return None
    left, right = operands
    return left if right is unit else right if left is unit and op != "sub" else None


def term_of_node(node: Node, operands: Sequence[Expr], leaves: Mapping[str, Expr]) -> Expr:
    """The term of an e-node over the terms of its operands; ``leaves`` has the variables and buffers by name."""
    op, value, _ = node
    if op == "const":
        return const(cast(int, value))
    if op == "bool":
        return TRUE if value else FALSE
    if op == "var":
        name = cast(str, value)
        return named_variable(name) if name[0] == "$" else leaves[name]
    if op == "buffer":
        return leaves[cast(str, value)]
    if op == "sum":
        constant, coefficients = sum_payload(value)
        return written_sum(zip(operands, coefficients, strict=True), constant)
    if op in SHIFTS:
        operands = operands[0], shift_amount(operands[1])
    elif op in BITWISE and operands[0].op == "const":
        # classes have no meaningful order, and a literal reads better on the right
        operands = operands[::-1]
    return make(op, *operands)


def node_of(term: Expr, operands: tuple[int, ...]) -> Node:
    """The e-node of a term over the classes of its operands."""
    return term.op, buffer_key(term) if term.op == "buffer" else cast(Payload, term.value), operands


def written_sum(terms: Iterable[tuple[Expr, int]], constant: int) -> Expr:
    """A sum written term by term, positive terms first, without literals and like terms among them."""
    together: dict[Expr, int] = {}
    for term, k in terms:
        if term.op == "const":
            constant += k * term.vmin
        else:
            together[term] = together.get(term, 0) + k
    kept = [(term, k) for term, k in together.items() if k]
    total: Expr | None = None
    for term, k in sorted(kept, key=lambda item: (item[1] < 0, -abs(item[1]), item[0].key)):
        scaled = term if abs(k) == 1 else make("mul", term, const(abs(k)))
        if total is None and k < 0 and constant:
            total, constant = const(constant), 0
        if total is None:
            total = scaled if k > 0 else make("neg", scaled) if k == -1 else make("mul", term, const(k))
        else:
            total = make("add" if k > 0 else "sub", total, scaled)
    if total is None:
        return const(constant)
    return make("add" if constant > 0 else "sub", total, const(abs(constant))) if constant else total


def written_product(operands: Sequence[Expr]) -> Expr:
    """A product, without ones, its literals last."""
    number = prod([t.vmin for t in operands if t.op == "const"])
    if not (others := [t for t in operands if t.op != "const"]):
        return const(number)
    product = reduce(mul, others)
    return product if number == 1 else -product if number == -1 else product * number


def all_of(conditions: Iterable[Expr]) -> Expr:
    """The condition that all of them hold, written plainly where some are literals or equal."""
    return reduce(both, dict.fromkeys(conditions), TRUE)


def both(p: Expr, q: Expr) -> Expr:
    """``p and q``, written plainly where one of them is a literal."""
    if p is q or q is TRUE:
        return p
    return q if p is TRUE else FALSE if FALSE in (p, q) else p & q


def chosen(condition: Expr, p: Expr, q: Expr) -> Expr:
    """``where(condition, p, q)`` on conditions, written plainly where one of them is a literal."""
    if p is q:
        return p
    if q is FALSE:
        return both(condition, p)
    if p is FALSE:
        return both(~condition, q)
    return where(condition, p, q)


def one_of_two(term: Expr) -> tuple[Expr | None, bool]:
    """The variable of a comparison with a literal that tells its two values 0 and 1 apart; whether it holds for 1."""
    if term.op not in COMPARISONS or term.args[0].is_bool:
        return None, False
    x, y = term.args
    variable = x if x.op == "var" else y
    if variable.op != "var" or {x.op, y.op} != {"var", "const"} or (variable.vmin, variable.vmax) != (0, 1):
        return None, False
    at_zero, at_one = (make(term.op, *replaced([x, y], {variable: const(n)})) for n in (0, 1))
    return (variable, bool(at_one.vmin)) if at_zero.vmin != at_one.vmin else (None, False)
