"""SymPy's terms, and those that PyTorch adds to them, as our nodes; for drivers of peers that build on SymPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy
from wire import Node, Table, from_peer

#: Our name of each class whose operands are taken as they are; n-ary ones become chains.
NAMES = {
    "Add": "add",
    "Mul": "mul",
    "Mod": "mod",
    "PythonMod": "mod",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Min": "min",
    "Max": "max",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "Xor": "ne",
    "Equivalent": "eq",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
    "Equality": "eq",
    "Unequality": "ne",
    "Where": "where",
    "ITE": "where",
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "or": sympy.Or,
    "and": sympy.And,
    "not": sympy.Not,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: sympy.Equivalent(x, y) if _is_bool(x) else sympy.Eq(x, y),
    "ne": lambda x, y: sympy.Xor(x, y) if _is_bool(x) else sympy.Ne(x, y),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "neg": lambda x: -x,
    "mul": lambda x, y: x * y,
    "shl": lambda x, y: x * 2**y,
}


def _is_bool(term: Any) -> bool:
    return isinstance(term, sympy.logic.boolalg.Boolean) and not isinstance(term, sympy.Symbol)


def leaf(node: Node) -> Any:
    """A literal, or a variable counted from the lower end of its range: its symbol is never negative."""
    kind, *rest = node
    if kind == "var":
        name, low, _ = rest
        return sympy.Symbol(name, integer=True, nonnegative=True) + low
    return sympy.Integer(rest[0]) if kind == "const" else sympy.sympify(bool(rest[0]))


def written(roots: Iterable[Any], lows: Mapping[str, int]) -> tuple[Table, list[int]]:
    """``roots`` as a table; ``lows`` has the lower ends of the variables' ranges."""
    table = Table()
    return table, indices(roots, table, lows)


def indices(roots: Iterable[Any], table: Table, lows: Mapping[str, int]) -> list[int]:
    """The indices of ``roots`` in a table, to which they are added."""
    return from_peer([*roots], lambda term: term, _operands, lambda term, below: _node(term, below, table, lows))


def _operands(term: Any) -> Sequence[Any]:
    kind = type(term).__name__
    if not term.args:
        return ()
    if kind == "floor":
        return list(term.args[0].as_numer_denom())
    if _is_fraction(term):
        return list(term.as_numer_denom())
    if kind == "Pow":
        return (term.base,) * int(term.exp)
    if kind == "Piecewise":
        return [part for pair in term.args for part in pair.args]
    return list(term.args)


def _node(term: Any, below: list[int], table: Table, lows: Mapping[str, int]) -> int:
    kind = type(term).__name__
    if term.is_Symbol:
        variable = table.add("var", term.name)
        low = lows[term.name]
        return variable if low == 0 else table.add("sub", variable, table.add("const", low))
    if term.is_Integer:
        return table.add("const", int(term))
    if term in (sympy.true, sympy.false):
        return table.add("bool", int(bool(term)))
    if kind == "floor" or _is_fraction(term):
        # a sum or product with a denominator is an integer all the same
        return table.add("floordiv", *below)
    if kind == "Pow":
        return table.fold("mul", below)
    if kind == "ModularIndexing":
        base, divisor, modulus = below
        quotient = base if term.args[1] == 1 else table.add("floordiv", base, divisor)
        return table.add("mod", quotient, modulus)
    if kind == "Piecewise":
        value = below[-2]
        for index in range(len(below) - 4, -1, -2):
            value = table.add("where", below[index + 1], below[index], value)
        return value
    if kind not in NAMES:
        raise ValueError(f"the answer has {kind}, which has no counterpart")
    if kind in ("Not", "Where", "ITE"):
        return table.add(NAMES[kind], *below)
    return table.fold(NAMES[kind], below)


def _is_fraction(term: Any) -> bool:
    """Whether a sum or product is spelled with a denominator."""
    return type(term).__name__ in ("Add", "Mul") and term.as_numer_denom()[1] != 1
