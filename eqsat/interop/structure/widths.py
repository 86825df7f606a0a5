"""The widths of indices: one without a width gets the least that holds its values (Morok's ``pm_lower_index_dtype``).

An operation on such indices gets the least width that holds its operands and its result, and a cast around it. Between
two literals ``^`` is a power, as in ``[0, 2^40]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from eqsat.interop.structure.trees import INVALID_INDEX, VECTOR, Tree, leaf, node
from eqsat.lang.dtypes import LIMITS, common_width, select_width, widths
from eqsat.lang.expr import Expr, any_var, const, make, shift_amount
from eqsat.lang.text import parse
from eqsat.lang.validation import shortened

_ABSTRACT = re.compile(r"(Vector<)?Index\b")
_TYPE = re.compile(r"(?:Vector<)?i(32|64)\b")
#: A name, its type and its range; spaces before the range are tried from the first one alone.
_ANNOTATED = re.compile(r"(.*?)(?::(i32|i64))?(?:(?<!\s)\s*\[([^\[\],]+),([^\[\],]+)\])?", re.DOTALL)
POWER = re.compile(r"(?<!\w)([0-9]+)\s*\^\s*([0-9]+)(?!\w)")
#: The operators whose bounds say how wide the result of an operation is.
_OPERATORS = {
    **{"Add": "add", "Sub": "sub", "Mul": "mul", "Idiv": "floordiv", "Mod": "mod", "Max": "max", "Min": "min"},
    **{"And": "bitand", "Or": "bitor", "Xor": "bitxor", "Shl": "shl", "Shr": "shr"},
}
#: What errors call operands that have no name of their own.
_NAMES = ("first", "second")
_COMPARISONS = ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")
#: Operations on two values.
BINARY = (*_OPERATORS, *_COMPARISONS, "Pow")
_TYPED = {
    "CONST": "CONST(42, Index)",
    "DEFINE_VAR": "DEFINE_VAR(n, 0, 42, Index)",
    "VCONST": "VCONST([0, 1], Vector<Index,2>)",
}


def constant(text: str) -> Expr:
    """A constant expression; ``2^40`` is a power."""
    value = parse(POWER.sub(r"\1**\2", text.strip()), {}, "write an integer literal, such as 42 or 2^40")
    if value.vmin != value.vmax or value.element or "^" in POWER.sub("", text):
        raise ValueError(f"{shortened(text.strip(), 80)!r} is no integer literal: write one, such as 42 or 2^40")
    return value


def _between(name: str, low: str, high: str) -> Expr:
    ends = [constant(text).vmin for text in (low, high)]
    if ends[0] > ends[1]:
        raise ValueError(f"the range of variable {shortened(name, 80)!r} is empty: {ends}")
    return any_var(name, *ends)


def operand_of(tree: Tree) -> tuple[Tree, int]:
    """What is cast to an index: the tree without annotations, with the bounds of its value, and its width."""
    if tree.op:
        return _computed_operand(tree)
    # every text matches, if need be as a name
    name, kind, low, high = cast(re.Match[str], _ANNOTATED.fullmatch(tree.text)).groups()
    value = tree.value if tree.value is not None else _known(name)
    if low is not None:
        value = _between(name, low, high)
    width = int(kind[1:]) if kind else select_width(value) if value is not None else 32
    return replace(leaf(name), value=value), width


def _known(text: str) -> Expr | None:
    try:
        value = constant(text)
    except (TypeError, ValueError):
        return None
    return None if value.is_bool else value


def _computed_operand(tree: Tree) -> tuple[Tree, int]:
    """An operation as an operand: of the width of its type, or else of the widest of its own operands."""
    value = _stated(tree)
    if typed := _type_of(tree):
        return replace(tree, value=value), int(typed[1])
    parts = [operand_of(a) for a in _with_width(tree)] if tree.op in (*BINARY, ".bind", "WHERE") else []
    value = _combined(tree.op, [part.value for part, _ in parts]) if value is None else value
    return replace(tree, value=value), max([32, *[width for _, width in parts]])


def _type_of(tree: Tree) -> re.Match[str] | None:
    """The type with a width that is the last operand of an operation, if it has one."""
    return _TYPE.match(tree.args[-1].text) if tree.args else None


def _stated(tree: Tree) -> Expr | None:
    """A term with the bounds of what an operation is said to be: a literal, a cast, a variable or a loop."""
    match tree:
        case Tree("CONST", (number, *_)):
            return value_of(number)
        case Tree("VCONST", (Tree(_, (*numbers,)), *_)) if numbers:
            return _any_of(tree.op, [_known(number.text) for number in numbers])
        case Tree("DEFINE_VAR", (name, low, high, _)):
            ends = [low.text, high.text]
            return None if None in map(_known, ends) else _between(name.text, *ends)
        case Tree(".cast", (given, *_)) if _type_of(tree):
            return value_of(given)
        case Tree("RANGE" | "SPECIAL", (given, *_)) if _type_of(tree):
            end = value_of(given)
            return any_var(tree.op, 0, end.vmax - 1) if end is not None and end.vmax > 0 else None
    return tree.value


def value_of(tree: Tree) -> Expr | None:
    """A term with the bounds of the value of a tree, if these are known."""
    return operand_of(tree)[0].value


def _with_width(tree: Tree) -> tuple[Tree, ...]:
    """The operands that have a width: all but the condition of a selection."""
    return tree.args[1:] if tree.op == "WHERE" else tree.args


def _combined(op: str, operands: Sequence[Expr | None]) -> Expr | None:
    """A term with the bounds of the value of an operation on two, if theirs are known."""
    if op in ("VECTORIZE", "WHERE"):
        return _any_of(op, operands)
    values = [value for value in operands if value is not None]
    if len(values) != 2:
        return None
    # of two variables, since loops without a name are not the same because they are written alike
    names = [str(v.value) if v.op == "var" else name for v, name in zip(values, _NAMES, strict=True)]
    names = names if names[0] != names[1] else [*_NAMES]
    x, y = [v if v.op == "const" else any_var(n, v.vmin, v.vmax) for v, n in zip(values, names, strict=True)]
    if op in ("BIND", ".bind"):
        return x
    if op in ("Shl", "Shr"):
        y = shift_amount(y)
    if op == "Pow":
        # of an exponent that may be negative nothing is known
        return None if y.vmin < 0 else make("prod_over", x, any_var("step", 0, y.vmax), const(0), y)
    return make(_OPERATORS[op], x, y) if op in _OPERATORS else None


def _any_of(op: str, values: Sequence[Expr | None]) -> Expr | None:
    """A term with the bounds of all ``values``, such as those of the lanes of a vector; None if one is not known."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return any_var(op, min(value.vmin for value in known), max(value.vmax for value in known))


def is_cast(tree: Tree) -> bool:
    """Whether a value, or a vector of them, is cast to an index without a width."""
    return tree.op == ".cast" and bool(_ABSTRACT.match(tree.args[1].text))


def cast_to(tree: Tree, kind: str) -> Tree:
    return node(".cast", tree, leaf(kind))


def uncast(tree: Tree) -> Tree:
    """What an operation that uses an index takes: the value before it is cast to an index."""
    return tree.args[0] if is_cast(tree) else tree


def typed(tree: Tree) -> Tree | None:
    """``CONST(42, Index)``, a variable with its bounds or a vector, in the least width that holds its values."""
    if not tree.args:
        raise ValueError(f"{tree} has no value: it takes one and a type, as {_TYPED[tree.op]}")
    *values, kind = tree.args
    if not values or not _ABSTRACT.match(kind.text):
        return None
    if values == [INVALID_INDEX]:
        return INVALID_INDEX
    # those of a vector, behind the name of a variable, or the only one
    numbers = values[0].args or values[1:] or values
    if any(number.op for number in numbers):
        raise ValueError(f"{shortened(str(tree), 80)} has no literal as value: write it as {_TYPED[tree.op]}")
    width = common_width(*[constant(number.text) for number in numbers])
    return cast_to(node(tree.op, *values, leaf(kind.text.replace("Index", f"i{width}"))), kind.text)


def computed(tree: Tree) -> Tree | None:
    """An operation on indices, or on vectors of them, in the least width that holds its operands and its result."""
    given = _with_width(tree)
    wanted = len(given) if tree.op == "VECTORIZE" else 2
    if not given or len(given) != wanted or not all(map(is_cast, given)):
        return None
    lanes = {_lanes(a) for a in given}
    if len(lanes) > 1 or (tree.op == "VECTORIZE" and lanes != {""}):
        # an operation takes vectors of one length; a vector has no vectors as lanes
        return None
    operands, known = zip(*[operand_of(a.args[0]) for a in given], strict=True)
    value = _combined(tree.op, [operand.value for operand in operands])
    width = max([*known, *([] if value is None else [widths([value])[value]])])
    op = ".bind" if tree.op == "BIND" else tree.op
    condition = tree.args[: len(tree.args) - len(given)]
    of = lanes.pop()
    cast = [cast_to(operand, _kind(f"i{width}", of)) for operand in operands]
    result = _kind("bool" if op in _COMPARISONS else "Index", str(wanted) if op == "VECTORIZE" else of)
    return cast_to(replace(node(op, *condition, *cast), value=value), result)


def _lanes(tree: Tree) -> str:
    """How many lanes the vector has that a cast makes; empty if it makes none."""
    vector = VECTOR.fullmatch(tree.args[1].text)
    return vector[2] if vector else ""


def _kind(element: str, lanes: str) -> str:
    """The type of a vector of that many lanes, or of an element."""
    return f"Vector<{element},{lanes}>" if lanes else element


def launched(tree: Tree) -> Tree | None:
    """A loop, whose index has the width of its end, or a launch index, which has 32 bits."""
    if len(tree.args) != 1 or not is_cast(tree.args[0]):
        return None
    end, width = operand_of(tree.args[0].args[0])
    if tree.op == "SPECIAL" and end.value is not None and end.value.vmax > LIMITS[32][1]:
        raise ValueError(
            f"the launch size {end.value.vmax} of {shortened(str(tree), 80)} does not fit 32 bits: split the grid"
        )
    return cast_to(node(tree.op, end, leaf("i32" if tree.op == "SPECIAL" else f"i{width}")), "Index")
