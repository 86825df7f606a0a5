"""How wide an index is in C: 32 or 64 bits, chosen for each term from its own bounds.

A term has two widths. Its *value* is kept in the narrowest type that holds its bounds (:func:`select_width`). It is
*computed* at the least upper width of its value and of its operands' values (:func:`widths`), so that no C operation
can overflow; the result is then narrowed to the value's width, which loses nothing. A width therefore never spreads
further than one operation: ``(i*2**20 + j) % 8`` multiplies at 64 bits and is a 32-bit value again.

This is what a cascade of rewrites over casts of an abstract index type does in other compilers: leaves get a concrete
type, operations the least upper type of their result and operands with casts where an operand is narrower, and what
uses an index (a load, a store, the end of a loop) takes the value as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.lang.expr import Expr, brief, digits
from eqsat.lang.ops import ELEMENTS, OWN, SHIFTS, is_finite
from eqsat.lang.properties import outside_addresses
from eqsat.lang.traversal import array_of, topological, variables
from eqsat.lang.validation import list_of, shortened

#: Inclusive bounds of the two's complement integers of each width.
LIMITS = {32: ELEMENTS["i32"], 64: ELEMENTS["i64"]}


def width_of(low: int, high: int) -> int | None:
    """The narrowest width that holds ``[low, high]``, or None if 64 bits do not."""
    return next((width for width, (least, most) in LIMITS.items() if least <= low and high <= most), None)


def bounds_text(low: int, high: int) -> str:
    """A range as messages have it; of long numbers the first digits."""
    return f"[{shortened(digits(low), 60)}, {shortened(digits(high), 60)}]"


def select_width(term: Expr) -> int:
    """The width of the value of ``term``: 32 if its bounds fit ``[-2**31, 2**31 - 1]``, else 64; 32 for a condition.

    Raises ``ValueError`` if the bounds do not fit 64 bits; the message names the term, its range and the remedy.
    """
    width = width_of(term.vmin, term.vmax)
    if width is None:
        raise ValueError(
            f"the term {brief(term)!r} has range {bounds_text(term.vmin, term.vmax)}, which no 64-bit integer holds: "
            f"{_remedy(term)}"
        )
    return width


def _remedy(term: Expr) -> str:
    """What would narrow the bounds of ``term``; the indices of loads have no part in these."""
    parts = outside_addresses([term])
    endless = [t for t in parts if t.op in OWN and not is_finite(t.vmin, t.vmax)]
    if any(all(is_finite(a.vmin, a.vmax) for a in t.args) for t in endless):
        return f"give the operator {endless[0].op!r} bounds"
    inside = [v for v in variables([term]) if v in parts]
    if unbounded := [v.value for v in inside if not is_finite(v.vmin, v.vmax)]:
        return f"give bounds to {_first_names(unbounded)}"
    loaded = {array_of(t) for t in parts if t.op == "load"}
    if of_any_size := [array.name for array in loaded if array.element == "int"]:
        return f"give a size to the elements of {_first_names(of_any_size)}, such as i32"
    remedies = [f"narrow the range of {_first_names([v.value for v in inside])}"] if inside else []
    if loaded:
        arrays = _first_names([array.name for array in loaded])
        remedies.append(f"bound the elements of {arrays} by min(max(..., least), greatest)")
    return " or ".join(remedies) or "use a smaller literal"


def _first_names(names: Iterable[object]) -> str:
    return ", ".join(sorted(map(repr, names))[:4])


def common_width(*terms: Expr) -> int:
    """The narrowest width that holds the value of each of ``terms``, as of the counter of a loop and its end.

    Raises ``ValueError`` if some term does not fit 64 bits; see :func:`select_width`.
    """
    return max(map(select_width, terms))


def widths(roots: Iterable[Expr]) -> dict[Expr, int]:
    """The width at which each term below ``roots`` is computed.

    The least upper width of its value and of its operands' values: an operand that needs 64 bits makes the operation a
    64-bit one even if its result is small. A comparison is computed at the width of what it compares. A shift is
    computed at 64 bits if its amount can reach 32, which no 32-bit shift allows.

    Parameters
    ----------
    roots : iterable of Expr
        Terms.

    Returns
    -------
    dict of Expr to int
        32 or 64 for each term.

    Raises
    ------
    ValueError
        If some term does not fit 64 bits; see :func:`select_width`.

    >>> from eqsat.lang.expr import var
    >>> i = var("i", 0, 2**20)
    >>> [widths([e])[e] for e in (i, i*4096, i*4096 % 8, i*4096 % 8 + 1)]
    [32, 64, 64, 32]
    """
    own: dict[Expr, int] = {}
    computed: dict[Expr, int] = {}
    for term in topological(list_of(Expr, roots, "the terms to compute")):
        # floating-point values and arrays have no width
        own[term] = 32 if term.element or term.op == "buffer" else select_width(term)
        far_shift = term.op in SHIFTS and term.args[1].vmax >= 32
        computed[term] = 64 if far_shift else max(own[term], *[own[a] for a in term.args], 32)
    return computed
