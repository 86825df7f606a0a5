"""Our terms as tables of nodes for a driver, and a driver's tables as our terms, spelled to a peer's advantage.

The tables are those of ``drivers/wire.py``. A peer is not charged for operators that its own language lacks: tinygrad's
``x + y*-8`` is our ``x - y*8``, its ``(x < y) != True`` is ``y <= x``, its complemented maximum is a minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eqsat.cli.cases import Case
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.traversal import topological

Node = list[Any]


def to_nodes(roots: Sequence[Expr]) -> tuple[list[Node], dict[Expr, int]]:
    """Every term below ``roots``, operands before users, and the index of each.

    >>> from eqsat.lang.expr import var
    >>> to_nodes([var("i", 0, 7) // 2])[0]
    [['var', 'i', 0, 7], ['const', 2], ['floordiv', 0, 1]]
    """
    index: dict[Expr, int] = {}
    nodes: list[Node] = []
    for term in topological(roots):
        index[term] = len(nodes)
        if term.op == "var":
            nodes.append(["var", term.value, term.vmin, term.vmax])
        elif not term.args:
            nodes.append([term.op, term.vmin])
        else:
            nodes.append([term.op, *[index[arg] for arg in term.args]])
    return nodes, index


def to_request(case: Case, gates: bool, seconds: float) -> dict[str, Any]:
    """What a driver is asked; without ``gates`` it is not told them. Constraints hold in any case."""
    nodes, index = to_nodes([*case.exprs, *case.constraints])
    known = case.gates if gates and case.gates else [None] * len(case.exprs)
    return {
        "nodes": nodes,
        "roots": [index[root] for root in case.exprs],
        "constraints": [index[fact] for fact in case.constraints],
        "gates": [None if gate is None else index[gate] for gate in known],
        "seconds": seconds,
    }


def from_nodes(
    nodes: Sequence[Node],
    roots: Sequence[int],
    variables: Mapping[str, Expr],
    spellings: Mapping[str, Callable[..., Expr]] | None = None,
) -> list[Expr]:
    """The terms that the indices ``roots`` of a driver's table stand for.

    ``spellings`` says how operators are spelled, by default to a peer's advantage (:data:`SPELLINGS`); others are as
    they are.

    Raises ``ValueError`` if a variable or an operator is unknown.

    >>> from eqsat.lang.expr import var
    >>> nodes = [["var", "i"], ["const", -8], ["mul", 0, 1], ["const", 3], ["add", 3, 2]]
    >>> from_nodes(nodes, [4], {"i": var("i", 0, 7)})
    [Expr('3 - i*8')]
    """
    spell = SPELLINGS if spellings is None else spellings
    terms: list[Expr] = []
    for kind, *rest in nodes:
        if kind == "var":
            if rest[0] not in variables:
                raise ValueError(f"the answer has a variable {rest[0]!r} that the case has not")
            terms.append(variables[rest[0]])
        elif kind == "const":
            terms.append(const(rest[0]))
        elif kind == "bool":
            terms.append(TRUE if rest[0] else FALSE)
        else:
            args = [terms[index] for index in rest]
            terms.append(spell[kind](*args) if kind in spell else make(kind, *args))
    return [terms[root] for root in roots]


def _opposite(x: Expr) -> Expr | None:
    """``-x``, if ``x`` is a negation or a multiple by a negative literal."""
    if x.op == "mul":
        for factor, literal in (x.args, x.args[::-1]):
            if literal.op == "const" and literal.vmin < 0:
                return _mul(factor, const(-literal.vmin))
    if x.op == "const" and x.vmin < 0:
        return const(-x.vmin)
    return x.args[0] if x.op == "neg" else None


def _add(x: Expr, y: Expr) -> Expr:
    if x.op == "const" and y.op == "const":
        return const(x.vmin + y.vmin)
    if (subtracted := _opposite(y)) is not None:
        return x - subtracted
    if (subtracted := _opposite(x)) is not None:
        return y - subtracted
    return x + y


def _sub(x: Expr, y: Expr) -> Expr:
    if x is const(0):
        return _neg(y)
    subtracted = _opposite(y)
    return x - y if subtracted is None else x + subtracted


def _neg(x: Expr) -> Expr:
    opposite = _opposite(x)
    return -x if opposite is None else opposite


def _mul(x: Expr, y: Expr) -> Expr:
    if x.op == "const":
        x, y = y, x
    if y is const(1):
        return x
    return -x if y is const(-1) else x * y


def _lt(x: Expr, y: Expr) -> Expr:
    if x.op == "neg" and y.op == "const":
        return const(-y.vmin) < x.args[0]
    if y.op == "neg" and x.op == "const":
        return y.args[0] < const(-x.vmin)
    return x < y


def _unsigned(operator: str) -> Callable[[Expr, Expr], Expr]:
    """A comparison of the patterns of two signed numbers as unsigned ones: a negative one is larger than any other."""

    def compare(x: Expr, y: Expr) -> Expr:
        signed = make(operator, x, y)
        zero = const(0)
        if x.vmin >= 0 and y.vmin >= 0:
            return signed
        if y.vmin >= 0:
            return (zero <= x) & signed
        if y.vmax < 0:
            return (zero <= x) | signed
        return where((zero <= x).eq(zero <= y), signed, y < zero)

    return compare


def _wrap(x: Expr, size: Expr) -> Expr:
    """The signed number with the same lowest bits; ``size`` is the literal number of their patterns."""
    half = size.vmin // 2
    return x if -half <= x.vmin and x.vmax < half else (x + half) % size - half


def _word(x: Expr, size: Expr) -> Expr:
    """The unsigned number with the same lowest bits."""
    return x if x.vmin >= 0 and x.vmax < size.vmin else x % size


_NEGATION = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


def _not(x: Expr) -> Expr:
    if x.op not in _NEGATION:
        return x.args[0] if x.op == "not" else make("not", x)
    return make(_NEGATION[x.op], *(x.args[::-1] if x.op in ("lt", "le") else x.args))


def _equality(operator: str, plain: Expr) -> Callable[[Expr, Expr], Expr]:
    """A comparison of conditions, which is one of them where the other is the literal ``plain``."""

    def compare(x: Expr, y: Expr) -> Expr:
        for condition, literal in ((x, y), (y, x)):
            if literal is TRUE or literal is FALSE:
                return condition if literal is plain else _not(condition)
        return make(operator, x, y)

    return compare


def _complemented(x: Expr) -> Expr | None:
    """The ``e`` of which ``x`` is the bitwise complement ``-1 - e``, if that is how it is spelled."""
    if x.op == "const":
        return const(-1 - x.vmin)
    return x.args[1] if x.op == "sub" and x.args[0] is const(-1) else None


def _max(x: Expr, y: Expr) -> Expr:
    a, b = _complemented(x), _complemented(y)
    if a is None or b is None or (x.op == "const" and y.op == "const"):
        return maximum(x, y)
    return const(-1) - minimum(a, b)


def _where(c: Expr, x: Expr, y: Expr) -> Expr:
    if x is TRUE and y is FALSE:
        return c
    return where(c, x, y)


#: How operators are spelled; the others as they are. ``wrap``, ``word``, ``ult`` and ``ule`` are for words.
SPELLINGS: dict[str, Callable[..., Expr]] = {
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "lt": _lt,
    "wrap": _wrap,
    "word": _word,
    "ult": _unsigned("lt"),
    "ule": _unsigned("le"),
    "not": _not,
    "eq": _equality("eq", TRUE),
    "ne": _equality("ne", FALSE),
    "max": _max,
    "where": _where,
}
