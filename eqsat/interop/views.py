"""Views: which element of a buffer an index touches, and where that access is valid.

A :class:`View` maps one index per dimension to an offset, by strides, and to a condition, by a mask. Both together are
an :class:`Access`: the offset matters only where the condition holds, so they are optimised together, with the
condition as the gate of the offset. A masked index may also be written as one term, ``where(condition, index,
INVALID)``; :func:`split_gate` takes it apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import index, mul
from typing import Any

from eqsat.lang.expr import FALSE, TRUE, Expr, ExprLike, as_expr, brief, const, make, rebuild, var
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.slots import Slot
from eqsat.lang.terms import all_of, both, chosen
from eqsat.lang.traversal import topological
from eqsat.lang.validation import counted, list_of, require, shown

#: The index of an access that does not happen; it stands for no number.
INVALID = var("INVALID", 0, 0)
#: The cheapest access found that is equal to one; the package fills it.
OPTIMIZED: Slot[Access] = Slot()


@dataclass(frozen=True)
class Access:
    """An offset into a buffer, and the condition under which the access happens (under which the offset matters).

    >>> View.contiguous((4, 8), mask=[(0, 4), (2, 8)]).access([1, var("y", 0, 7)]).optimize()
    Access(index=Expr('y + 8'), valid=Expr('2 <= y'))
    """

    index: Expr
    valid: Expr

    def optimize(self, **options: Any) -> Access:
        """The cheapest access found that is equal: the same condition, the same offset where it holds.

        Takes the options of :func:`eqsat.optimize`.

        >>> x = var("x", 0, 9)
        >>> Access(x % 4, x < 4).optimize()
        Access(index=Expr('x'), valid=Expr('x < 4'))
        """
        index, valid = as_expr(self.index), as_expr(self.valid)
        return OPTIMIZED.call(Access(index, valid), **options)


@dataclass(frozen=True)
class View:
    """A buffer seen as an array: element ``[i0, i1, ...]`` is at ``offset + i0*strides[0] + i1*strides[1] + ...``.

    Attributes
    ----------
    shape, strides : sequence of int or Expr
        Per dimension its size and the distance of two neighbours; sizes may be variables.
    offset : int or Expr
        Where element ``[0, 0, ...]`` is.
    mask : sequence of (low, high), optional
        Per dimension the half-open range of indices at which the array holds elements of the buffer.

    Raises
    ------
    ValueError, TypeError
        If the parts differ in their number of dimensions, a size cannot be positive, the mask is not pairs, or a part
        is no integer.

    Source: tinygrad's ShapeTracker.

    >>> x, y, k = var("x", 0, 100), var("y", 0, 100), var("k", 1, 100)
    >>> View.contiguous((k, 3)).access([x, y]).optimize()
    Access(index=Expr('x*2 + x + y'), valid=Expr('True'))
    >>> View.contiguous((k, 3), mask=[(1, 2), (0, 2)]).access([x, y]).optimize()
    Access(index=Expr('y + 3'), valid=Expr('x == 1 and y < 2'))
    """

    shape: Sequence[ExprLike]
    strides: Sequence[ExprLike]
    offset: ExprLike = 0
    mask: Sequence[tuple[ExprLike, ExprLike]] | None = None

    def __post_init__(self) -> None:
        for name in ("shape", "strides"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        object.__setattr__(self, "offset", *_numbers("offsets", [self.offset]))
        mask = self.shape if self.mask is None else self.mask
        if not isinstance(mask, Sequence):
            raise ValueError(f"the mask of a view is a (low, high) per dimension, not {mask!r}")
        if not len(self.shape) == len(self.strides) == len(mask):
            raise ValueError(
                "a view has as many strides and mask ranges as dimensions: "
                f"{counted(len(self.shape), 'dimension')}, {counted(len(self.strides), 'stride')}, "
                f"{counted(len(mask), 'mask range')}"
            )
        if any(as_expr(size).vmax < 1 for size in self.shape):
            sizes = ", ".join(map(str, self.shape))
            raise ValueError(f"a view of sizes [{sizes}] has no elements, so no indices: leave it out")
        for pair in self.mask or []:
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(f"a mask range is (low, high), not {pair!r}")
            _numbers("mask ranges", pair)

    @classmethod
    def contiguous(
        cls, shape: Sequence[ExprLike], offset: ExprLike = 0, mask: Sequence[tuple[ExprLike, ExprLike]] | None = None
    ) -> View:
        """The row-major view: the last index moves by one element."""
        sizes = _numbers("shape", shape)
        return cls(sizes, row_major(sizes), offset, mask)

    def access(self, indices: Sequence[ExprLike], valid: ExprLike = TRUE) -> Access:
        """The access of the element at ``indices``, as it is written: not simplified.

        Parameters
        ----------
        indices : sequence of int or Expr
            One per dimension.
        valid : bool or bool Expr
            Where the access happens whatever the mask says, such as the condition of a view that leads to this one.

        Raises
        ------
        ValueError, TypeError
            If there is not one index per dimension, or ``valid`` is no condition.

        >>> x, y = var("x", 0, 3), var("y", 0, 9)
        >>> View.contiguous((4, 8)).access([x, y], valid=y < 8).optimize()
        Access(index=Expr('x*8 + y'), valid=Expr('y < 8'))
        """
        if isinstance(indices, str) or not isinstance(indices, Sequence):
            raise TypeError(f"the indices of a view are given as {shown(indices)}: give one per dimension")
        if len(indices) != len(self.shape):
            count = counted(len(indices), "index", "indices")
            raise ValueError(f"{count} for a view of {counted(len(self.shape), 'dimension')}: give one for each")
        given = as_expr(valid)
        if not given.is_bool:
            raise TypeError(f"where an access is valid is a condition, not {brief(given)!r}")
        terms = [as_expr(i) for i in _numbers("indices", indices)]
        # a dimension of size 1 has one index, 0; a stride of 0 repeats one element
        moving = [
            term * stride
            for term, size, stride in zip(terms, self.shape, self.strides, strict=True)
            if not _is(size, 1) and not _is(stride, 0)
        ]
        offset = [] if _is(self.offset, 0) else [as_expr(self.offset)]
        masked = zip(terms, self.mask, strict=True) if self.mask else []
        bounds = [b for term, (low, high) in masked for b in (term >= low, term < high)]
        conditions = bounds if given is TRUE else [given, *bounds]
        return Access(_joined("add", [*offset, *moving], const(0)), _joined("and", conditions, TRUE))


def through(views: Sequence[View], indices: Sequence[ExprLike]) -> Access:
    """The access of an element of the last of several views, each of which sees the one before as its buffer.

    Several reshapes, transposes and paddings come to that if they are no single view. Elements of a view are in
    row-major order. The access is as it is written: not simplified.

    Parameters
    ----------
    views : sequence of View
        The first is of the buffer.
    indices : sequence of int or Expr
        One per dimension of the last view.

    Raises
    ------
    ValueError, TypeError
        If there is no view, or not one index per dimension of the last.

    Source: tinygrad's ShapeTracker.

    >>> transposed = View((6, 4), (1, 6))
    >>> through([transposed, View.contiguous((24,))], [var("i", 0, 23)]).optimize()
    Access(index=Expr('i//4 + i%4*6'), valid=Expr('True'))
    """
    if not list_of(View, views, "views"):
        raise ValueError("an access needs a view: give at least the one of the buffer")
    *earlier, last = views
    found = last.access(indices)
    for view in reversed(earlier):
        sizes = zip(row_major(view.shape), view.shape, strict=True)
        digits = [const(0) if _is(size, 1) else found.index // stride % size for stride, size in sizes]
        found = view.access(digits, found.valid)
    return found


def _numbers(name: str, given: Iterable[ExprLike]) -> tuple[ExprLike, ...]:
    """A part of a view, such as its sizes; machine integers of an array as integers that do not wrap around."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"the {name} of a view must be a number per dimension, not {given!r}")
    found = tuple([index(n) if hasattr(n, "__index__") else as_expr(n) for n in given])
    for number in found:
        if isinstance(number, Expr) and (number.is_bool or number.element):
            raise TypeError(f"the {name} of a view must be integers, not {brief(number)!r}")
    return found


def row_major[T: ExprLike](shape: Sequence[T]) -> list[T | int]:
    """The strides of an array whose last index moves by one element."""
    strides: list[T | int] = list(accumulate(reversed(shape[1:]), mul, initial=1))
    return strides[::-1] if len(shape) else []


def _is(value: ExprLike, number: int) -> bool:
    return as_expr(value) is const(number)


def _joined(op: str, terms: Sequence[Expr], neutral: Expr) -> Expr:
    return reduce(lambda x, y: make(op, x, y), terms) if terms else neutral


def split_gate(index: Expr) -> Access:
    """The access that a term with ``INVALID`` in it stands for: its value, and the condition that this is a number.

    ``where(condition, index, INVALID)`` is ``index`` gated by ``condition``; only ``INVALID`` makes a gate, no other
    value. It may stand in either branch and at any depth: what is computed from it is not valid either.

    Parameters
    ----------
    index : Expr
        A term.

    Raises
    ------
    ValueError
        If the condition depends on the index of a reduction.

    >>> from eqsat import where
    >>> r = var("r", 0, 9)
    >>> split_gate(where(r < 5, r * 8, INVALID))
    Access(index=Expr('r*8'), valid=Expr('r < 5'))
    >>> split_gate(where(r < 5, r * 8, 0)).valid
    Expr('True')
    """
    require(index, Expr, "an index")
    # validity of each term: where its value is a number
    valid: dict[Expr, Expr] = {}
    for term in topological([index]):
        parts = [valid[a] for a in term.args]
        if term is INVALID:
            valid[term] = FALSE
        elif term.op == "where":
            valid[term] = both(parts[0], chosen(term.args[0], parts[1], parts[2]))
        else:
            valid[term] = all_of(parts)
            if term.op in REDUCTIONS and term.args[1] in topological([valid[term]]):
                raise ValueError(
                    f"whether the access is valid depends on the index {str(term.args[1])!r} of a reduction: "
                    "put INVALID outside of it"
                )

    def choose(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        """A branch that is never valid is never chosen."""
        if term.op == "where":
            for branch, other in ((1, 2), (2, 1)):
                if valid.get(term.args[branch]) is FALSE:
                    return args[other]
        return None

    if valid[index] is FALSE:
        return Access(const(0), FALSE)
    found, gate = rebuild([index, valid[index]], choose)
    return Access(found, gate)
