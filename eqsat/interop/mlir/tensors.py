"""Tensors of integers in MLIR, and Triton's operations that make and spread them.

The term of a tensor is that of its elements. Where a value depends on the place of the element it has variables, one
for each axis, whose names and ranges :func:`axis` gives; a scalar that is spread over a tensor keeps its term.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from eqsat.lang.expr import Expr, const, substitute, var
from eqsat.lang.traversal import variables

#: The types that are read: integers with a bit or more, up to 9999, and tensors of them.
INTEGER = r"i[1-9]\d{0,3}"
_ELEMENT = rf"(?:index|{INTEGER})"
TYPE = rf"({_ELEMENT}|tensor<(?:\d+x)+{_ELEMENT}>)"
_AXIS = re.compile(r"axis(\d+)_(\d+)")


def element_of(type_: str) -> str:
    """The type of the elements; of a scalar its own."""
    return re.sub(r"tensor<(?:\d+x)+|>", "", type_)


def is_condition(type_: str) -> bool:
    """Whether it holds conditions."""
    return element_of(type_) == "i1"


def shape_of(type_: str) -> tuple[int, ...]:
    """The extents of a tensor; none of a scalar."""
    return tuple(int(n) for n in re.findall(r"(\d+)x", type_))


def typed(element: str, shape: Sequence[int]) -> str:
    """The type with elements of a type and a shape."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element


def axis(position: int, extent: int) -> Expr:
    """The place of an element along an axis."""
    return const(0) if extent == 1 else var(f"axis{position}_{extent}", 0, extent - 1)


def axis_of(term: Expr) -> int | None:
    """Which axis a variable stands for; None for any other term."""
    found = _AXIS.fullmatch(str(term.value)) if term.op == "var" else None
    return int(found[1]) if found else None


def expanded(term: Expr, new: int) -> Expr:
    """The elements of a tensor that has one more axis, of extent 1."""
    moved = {v: place + 1 for v in variables([term]) if (place := axis_of(v)) is not None and place >= new}
    return substitute([term], {v: axis(place, v.vmax + 1) for v, place in moved.items()})[0]


def least_type(term: Expr, type_: str, type_of: Callable[[Expr], str]) -> str:
    """The smallest type from which a term is spread to a tensor's; ``type_of`` says those of variables.

    A literal, and what is no tensor, is computed in the type itself.
    """
    shape = shape_of(type_)
    if not shape or not (term.args or term.op == "var"):
        return type_
    varying: set[int] = set()
    is_spread = True
    for variable in variables([term]):
        position = axis_of(variable)
        extents = shape_of(type_of(variable)) if position is None else ()
        is_spread = is_spread and position is None and not extents
        varying |= {k for k, n in enumerate(extents) if n > 1} if position is None else {position}
    element = element_of(type_)
    return element if is_spread else typed(element, [n if k in varying else 1 for k, n in enumerate(shape)])
