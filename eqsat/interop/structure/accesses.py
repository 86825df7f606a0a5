"""Accesses: the cheapest indices found, and the condition under which they happen as their gate.

An index expression with a power of two literals (``2^40``) is refused, since ``^`` is exclusive or there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eqsat.extract.cost import CostModel
from eqsat.interop.structure.trees import INVALID_INDEX, WORD, Tree, bare, leaf, node
from eqsat.interop.structure.widths import POWER, uncast
from eqsat.interop.views import INVALID, split_gate
from eqsat.lang.costs import cost_of
from eqsat.lang.dtypes import LIMITS
from eqsat.lang.expr import TRUE, Expr, var
from eqsat.lang.functions import where
from eqsat.lang.ops import OPS
from eqsat.lang.terms import all_of
from eqsat.lang.text import Pieces, parse, pieces, to_text
from eqsat.lang.traversal import topological
from eqsat.lang.validation import shortened
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import refuse_wrong
from eqsat.theory.linear import LinearArithmetic


def with_access(tree: Tree, ranges: Mapping[str, tuple[int, int]], cost: CostModel, options: Mapping[str, Any]) -> Tree:
    """An access with the cheapest indices found, and the condition under which it happens as its gate."""
    given = tree.args[1]
    written: dict[Expr, str] = {}
    try:
        indices = [_expression(part, ranges, written) for part in (given.args if given.op == "[]" else (given,))]
    except (TypeError, ValueError):
        # no integer expression: only its gate can be taken out
        return _with_gate(tree)
    _refuse_powers(given)
    accesses = [split_gate(index) for index in indices]
    valid = all_of([access.valid for access in accesses])
    roots, gates = [*[access.index for access in accesses], valid], [*[valid for _ in accesses], None]
    result = optimize(roots, gates=gates, cost=cost, **options)
    refuse_wrong(result.check(), result.exprs)
    *found, valid = [_least(*pair, cost) for pair in zip(result.before, result.exprs, strict=True)]
    if found == indices:
        return tree
    *texts, condition = [leaf(written.get(term) or _text(term)) for term in (*found, valid)]
    gate = [] if valid is TRUE else [leaf(f"gate=({condition})")]
    return node("INDEX", tree.args[0], node("[]", *texts) if given.op == "[]" else texts[0], *gate)


def _refuse_powers(tree: Tree) -> None:
    """Refuse ``2^40`` in an index expression, where it would be exclusive or of all that is around it."""
    if found := POWER.search(tree.text):
        raise ValueError(
            f"{shortened(tree.text, 80)!r} has {found[0]}, which is a power in ranges, but exclusive or in an index: "
            f"write {found[1]}**{found[2]}, or brackets around the operands of ^"
        )
    for part in tree.args:
        _refuse_powers(part)


def _text(term: Expr) -> str:
    """The text of an index expression: ``(x + 2) ^ 20``, not ``x + 2 ^ 20``, which would be read as a power."""

    def bracketed(part: Expr) -> Pieces:
        found, precedence = pieces(part)
        if part.op == "bitxor":
            found = [piece if isinstance(piece, str) else (piece[0], 100) for piece in found]
        return found, precedence

    return to_text(term, pieces_of=bracketed)


def with_gate_inside(tree: Tree) -> Tree:
    """An access that has a gate, and an index that may be invalid: the condition of the gate selects the index too."""
    match tree.args:
        case (array, index, Tree("", (), gate)) if gate.startswith("gate=") and "Invalid" in WORD.findall(str(index)):
            condition, indices = leaf(bare(gate.removeprefix("gate="))), index.args if index.op == "[]" else (index,)
            first = node("WHERE", condition, indices[0], INVALID_INDEX)
            return node("INDEX", array, node("[]", first, *indices[1:]) if index.op == "[]" else first)
    return tree


def _with_gate(tree: Tree) -> Tree:
    """An access whose index selects ``Invalid``: the other branch as its index, and the condition as its gate."""
    index, conditions = uncast(tree.args[1]), list[str]()
    while index.op == "WHERE" and len(index.args) == 3:
        condition, then, otherwise = index.args
        if otherwise == INVALID_INDEX:
            index, conditions = uncast(then), [*conditions, f"{condition}"]
        elif then == INVALID_INDEX:
            index, conditions = uncast(otherwise), [*conditions, f"not ({condition})"]
        else:
            break
    joined = conditions[0] if len(conditions) == 1 else " and ".join(f"({condition})" for condition in conditions)
    return node("INDEX", tree.args[0], index, leaf(f"gate=({joined})")) if conditions else tree


def _least(old: Expr, new: Expr, cost: CostModel) -> Expr:
    """The cheapest of ``old``, the normal form of ``new``, and ``new``; of equal ones the first."""
    return min([old, LinearArithmetic().simplify(new), new], key=lambda term: cost_of([term], cost))


def _expression(tree: Tree, ranges: Mapping[str, tuple[int, int]], written: dict[Expr, str]) -> Expr:
    """The term of a tree of selections and leaves; ``written`` gets the text of each leaf by its term."""
    tree = uncast(tree)
    if tree.op == "WHERE":
        return where(*[_expression(a, ranges, written) for a in tree.args])
    if tree.op:
        raise ValueError(f"{tree.op} is no index expression")
    if tree == INVALID_INDEX:
        return INVALID
    words = [word for word in WORD.findall(tree.text) if word not in ("True", "False", *OPS)]
    names = {word: var(word, *ranges.get(word, LIMITS[32])) for word in words}
    term = parse(tree.text, names)
    if any(part.element for part in topological([term])):
        raise ValueError(f"{tree.text} has a floating-point value")
    written.setdefault(term, tree.text)
    return term
