"""Expressions: immutable, hash-consed terms with exact bounds.

An :class:`Expr` is a node of a directed acyclic graph. Equal terms are the same object, so ``is`` (and ``==``) compares
structure, and shared subterms are stored once. ``vmin`` and ``vmax`` bound every value the term can take, computed when
it is built. What is below terms is found by :mod:`eqsat.lang.traversal`, whose :func:`topological` may be imported from
here, and what operators say of it by :mod:`eqsat.lang.properties`.

A reduction binds its index: its operands are ``(body, index, low, high)``, and the index, a variable of the body, takes
the values of ``[low, high)``. Bound indices are named by how deep reductions nest in the body, so terms that differ in
the names of their indices alone are one term, and no index can capture one of an enclosing reduction. Arrays are terms
too (``"buffer"``, a leaf); a load ``A[i]`` has the array and its indices as operands, and equal indices load equal
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from math import isinf
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex, cast
from weakref import ref

from eqsat.lang.errors import TooWideError
from eqsat.lang.ops import (
    BITWISE,
    DIVISIONS,
    ELEMENTS,
    FLOAT_OF,
    FLOATS,
    INFINITY,
    MAX_SHIFT,
    MOST_BITS,
    OPS,
    REDUCTIONS,
    SHIFTS,
    Array,
    Bounds,
    FloatOp,
    Op,
    bits,
    for_each_own,
    free_in,
    np,
    reduction_bounds,
    rounded_to_odd,
    trip_bounds,
)
from eqsat.lang.slots import FORMULA, TEXT, VALUES, Displayed
from eqsat.lang.traversal import (
    Buffer,
    Identity,
    Term,
    buffers,
    in_use,
    index_level,
    interned,
    is_index,
    known,
    variables,
)
from eqsat.lang.traversal import topological as topological
from eqsat.lang.validation import counted, list_of, origin_of, require, shortened, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

IntLike = SupportsIndex

#: The largest exponent.
MAX_POWER = 1000


def _sign(name: str) -> tuple[Callable[[Expr, ExprLike], Expr], Callable[[Expr, ExprLike], Expr]]:
    """The methods by which an infix sign of Python's builds a term: ``__add__`` and ``__radd__`` of ``"add"``."""

    def written(x: Expr, y: Expr) -> Expr:
        return bitwise(name, x, y) if name in BITWISE else stated(name, x, y)

    def before(self: Expr, other: ExprLike) -> Expr:
        return written(self, as_expr(other))

    def behind(self: Expr, other: ExprLike) -> Expr:
        return written(as_expr(other), self)

    return before, behind


class Expr(Term, Displayed):
    """One term of the language; build it with :func:`var`, :func:`const`, operators and :mod:`eqsat.lang.functions`.

    Attributes
    ----------
    op : str
        ``"const"``, ``"bool"`` (a literal ``True`` or ``False``), ``"float"``, ``"var"``, ``"buffer"``, ``"load"``, or
        a name in :data:`eqsat.lang.ops.OPS`, :data:`eqsat.lang.ops.FLOATS` or :data:`eqsat.lang.ops.REDUCTIONS`.
    args : tuple of Expr
        The operands.
    value : int, bool, float, str, Buffer or None
        The literal, the name of a variable, or the array of a ``"buffer"``.
    vmin, vmax : int
        Inclusive bounds of the value; for a bool term 0 is False and 1 is True. What has no bound has an infinite one,
        which is equal to ``math.inf`` or ``-math.inf`` and compares with integers as these do.
    element : str or None
        ``"f32"`` or ``"f64"`` for a floating-point value, whose bounds say nothing; else ``None``.
    key : int
        A structural hash, the same in every process: the fixed order on terms.

    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> e = (i*32 + j) // 32
    >>> e, e.vmin, e.vmax
    (Expr('(i*32 + j)//32'), 0, 7)
    """

    __slots__ = ()

    def __init__(self, *given: object) -> None:
        raise TypeError("an expression is made by var, const, parse and operators, not by Expr()")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an Expr is immutable: cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return from_rows, (to_rows(self),)

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __bool__(self) -> bool:
        if self.vmin == self.vmax:
            return bool(self.vmin)
        raise TypeError(
            f"the truth of {brief(self)!r} depends on its variables; combine conditions with & | ~, "
            "choose by where, minimum, maximum"
        )

    def __repr__(self) -> str:
        return f"Expr({brief(self, MAX_SHOWN)!r})"

    def __str__(self) -> str:
        return TEXT.call(self)

    def _repr_latex_(self) -> str | None:
        return FORMULA.call(self)

    __add__, __radd__ = _sign("add")
    __sub__, __rsub__ = _sign("sub")
    __mul__, __rmul__ = _sign("mul")
    __floordiv__, __rfloordiv__ = _sign("floordiv")
    __mod__, __rmod__ = _sign("mod")
    __lshift__, __rlshift__ = _sign("shl")
    __rshift__, __rrshift__ = _sign("shr")
    __and__, __rand__ = _sign("bitand")
    __or__, __ror__ = _sign("bitor")
    __xor__, __rxor__ = _sign("bitxor")
    __lt__, __gt__ = _sign("lt")
    __le__, __ge__ = _sign("le")

    def __truediv__(self, other: ExprLike | float) -> Expr:
        return _float("fdiv", self, as_float(other, self))

    def __rtruediv__(self, other: ExprLike | float) -> Expr:
        return _float("fdiv", as_float(other, self), self)

    def __divmod__(self, other: ExprLike) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: ExprLike) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: ExprLike) -> Expr:
        exponent = as_expr(other)
        if exponent.op != "const" or not 0 <= exponent.vmin <= MAX_POWER:
            raise ValueError(f"the exponent {brief(exponent, 40)!r} is not a number from 0 to {MAX_POWER}")
        if self.op == "const" and self.vmin.bit_length() * exponent.vmin <= MOST_BITS:
            return const(self.vmin**exponent.vmin)
        # by squares
        base: Expr = self
        result: Expr | None = None
        left = exponent.vmin
        while left:
            if left % 2:
                result = base if result is None else make("mul", result, base)
            left //= 2
            base = make("mul", base, base) if left else base
        if result is None:
            return as_float(1.0, base) if base.element else const(1)
        return result

    def __neg__(self) -> Expr:
        return make("neg", self)

    def __abs__(self) -> Expr:
        return make("max", self, make("neg", self))

    def __invert__(self) -> Expr:
        if self.op == "buffer" or self.element:
            raise TypeError(f"~ needs an integer or a condition where {brief(self)!r} is {_kind_of(self)}")
        if self.op == "const":
            return const(~self.vmin)
        # -1 - x has the bits of an integer inverted
        return make("not", self) if self.is_bool else make("sub", const(-1), self)

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        args = indices if isinstance(indices, tuple) else (indices,)
        return make("load", self, *map(as_expr, args))

    #: Subscripts are loads, not items.
    __iter__ = None

    def eq(self, other: ExprLike) -> Expr:
        """The condition that both have the same value (``==`` compares terms, not values)."""
        return make("eq", self, as_expr(other))

    def ne(self, other: ExprLike) -> Expr:
        """The condition that the values differ."""
        return make("ne", self, as_expr(other))

    def substitute(self, replacement: Mapping[Expr, ExprLike]) -> Expr:
        """This term with every subterm that is a key of ``replacement`` replaced, outermost first.

        >>> i = var("i", 0, 7)
        >>> (i*4 + 1).substitute({i: i + 1})
        Expr('(i + 1)*4 + 1')
        """
        for term in replacement:
            if not isinstance(term, Expr):
                raise TypeError(f"{shown(term)} is no term to replace: give a variable itself, not its name")
        return substitute([self], replacement)[0]

    def evaluate(self, values: Mapping[str, ArrayLike], contents: Mapping[str, ArrayLike] | None = None) -> Array:
        """The value of this term at the given values of its variables, and of what its arrays hold by their names.

        An array without contents holds fixed arbitrary elements; see :func:`eqsat.lang.evaluation.evaluate`.

        Raises
        ------
        ValueError
            If what an array holds is given among the variables.

        >>> a, i = buffer("A", "i32", (3,)), var("i", 0, 2)
        >>> a[i].evaluate({"i": [2, 0]}, {"A": [5, 6, 7]})
        array([7, 5])
        """
        names = {v.value for v in variables([self])}
        array = next((a for a in map(str, buffers([self])) if a in values and a not in names), None)
        if array is not None:
            raise ValueError(f"{array!r} is an array, no variable: give what it holds as the second argument")
        return VALUES.call([self], values, contents)[0]


ExprLike = Expr | IntLike | float


#: Characters of a term that ``repr`` shows; a longer text is cut.
MAX_SHOWN = 100_000

#: How deep reductions may nest; deeper ones are refused.
MAX_NESTING = 64

#: Python hashes a number as what is left of it modulo this one.
_MERSENNE = 2**61 - 1


def _digest(text: str, size: int = 7) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest())


_OP_KEYS = {
    name: _digest(name) for name in [*OPS, *FLOATS, *REDUCTIONS, "const", "bool", "float", "var", "buffer", "load"]
}


@for_each_own
def _add_key(op: Op) -> None:
    _OP_KEYS[op.name] = _digest(op.name)


def _new(
    identity: Identity,
    op: str,
    args: tuple[Expr, ...],
    value: int | float | str | Buffer | None,
    vmin: int,
    vmax: int,
    is_bool: bool,
    first: int = 0,
    element: str | None = None,
    second: int = 0,
) -> Expr:
    """The term of this identity; ``first`` and ``second`` make the key of a leaf."""
    if args:
        first = hash((_OP_KEYS[op], *[a.key for a in args]))
        second = hash(tuple([a.key >> 61 for a in args])) & _MERSENNE
    # built where its slots can be written
    draft = Term()
    draft.element = element
    draft.op = op
    draft.args = args
    draft.value = value
    draft.vmin = vmin
    draft.vmax = vmax
    draft.is_bool = is_bool
    # Python hashes both keys alike, and the first orders the terms; the second orders those with the same first key
    draft.key = (first << 122) + _MERSENNE * second
    draft.__class__ = Expr
    term = cast(Expr, draft)
    return interned(identity, term)


def const(value: IntLike) -> Expr:
    """The literal ``value``: an integer, or a condition that always or never holds.

    Parameters
    ----------
    value : int or bool
        Any integer, of any size; NumPy's are accepted. ``True`` and ``False`` are conditions.

    Raises
    ------
    TypeError
        If ``value`` is no integer.

    >>> const(2**70).vmax == 2**70
    True
    >>> i = var("i", 0, 7)
    >>> (const(True) & (i < 4)).evaluate({"i": [3, 4]})
    array([ True, False])
    """
    if isinstance(value, bool):
        return TRUE if value else FALSE
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{shown(value)} is no integer: give an int, or a term by eqsat.parse") from None
    identity = ("const", number)
    term: Expr | None = known(identity)
    if term is None:
        # Python hashes -1 as -2, and two numbers alike that differ by a multiple of 2**61 - 1
        distinct = number if hash(number) == number else _digest(hex(number))
        term = _new(identity, "const", (), number, number, number, False, hash((_OP_KEYS["const"], distinct)))
    return term


def _literal_bool(value: bool) -> Expr:
    number = int(value)
    return _new(("bool", value), "bool", (), value, number, number, True, hash((_OP_KEYS["bool"], number)))


#: The bool literals.
TRUE, FALSE = _literal_bool(True), _literal_bool(False)


#: The words that the text form does not read as names.
WORDS = ("and", "or", "not", "True", "False")


def is_name(name: str) -> bool:
    """Whether a variable may be called that: the text form reads it as a name.

    Letters, digits and underscores are; an accent that is a character of its own is not, though Python allows it.
    """
    is_word = name.isascii() or name.replace("_", "").isalnum()
    return is_word and name.isidentifier() and name not in WORDS


def var(name: str, vmin: IntLike | None, vmax: IntLike | None) -> Expr:
    """The integer variable ``name`` with values in ``[vmin, vmax]``.

    Parameters
    ----------
    name : str
        Letters, digits and underscores, none of :data:`WORDS`. Variables of one name and one range are one term.
    vmin, vmax : int or None
        The least and the largest value, both inclusive, of any size; ``None`` where there is none.

    Raises
    ------
    ValueError
        If the range is empty, or :func:`is_name` is false of the name.
    TypeError
        If the name is no text, or a bound no integer.

    >>> i = var("i", 0, 63)
    >>> (i*2 + 1).vmax, var("i", 0, 63) is i
    (127, True)
    >>> n = var("n", 1, None)
    >>> (n*8).vmin, (n*8).vmax, (n % 8).vmax
    (8, inf, 7)
    """
    low, high = bounds_of(name, vmin, vmax)
    # what cannot be looked up is no name either
    term: Expr | None = known(("var", name, low, high)) if isinstance(name, str) else None
    if term is not None:
        return term
    _check_name(name, "variable")
    if low > high:
        raise ValueError(f"the range of variable {name!r} is empty: [{low}, {high}]")
    return any_var(name, low, high)


def bounds_of(name: str, vmin: IntLike | None, vmax: IntLike | None) -> Bounds:
    """The bounds of a variable as they are given: ``None`` is the infinity on its side."""
    found: list[int] = []
    for end, unbounded in ((vmin, -INFINITY), (vmax, INFINITY)):
        if end is None or end is unbounded:
            found.append(unbounded)
            continue
        try:
            found.append(end.__index__())
        except (AttributeError, TypeError, OverflowError):
            raise TypeError(
                f"the bounds of variable {name!r} must be integers, not {vmin!r} and {vmax!r} (None: no bound)"
            ) from None
    return found[0], found[1]


def _check_name(name: str, kind: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} must be a text, not {name!r}")
    if not is_name(name):
        raise ValueError(
            f"{name!r} is not a {kind} name: use letters, digits and underscores, but not {', '.join(WORDS)}"
        )


def any_var(name: str, low: int, high: int, *, kind: str = "var") -> Expr:
    """As :func:`var`, without a check of the name and the range: for the indices of reductions too.

    Variables of one name and one range, but of two kinds, are two terms.
    """
    identity = (kind, name, low, high)
    term: Expr | None = known(identity)
    if term is None:
        # the first letters lead, so that variables come in the order of their names
        letters = int.from_bytes(name.encode()[:6].ljust(6, b"\0"))
        text = f"{name} {digits(low)} {digits(high)}"
        first = letters << 16 | _digest(text, size=2)
        term = _new(identity, "var", (), name, low, high, False, first, second=_digest(text))
    return term


def digits(number: int) -> str:
    """A number in decimal, or in hexadecimal where that would be so long that Python refuses it."""
    return str(number) if bits(number) <= MOST_BITS else hex(number)


def buffer(name: str, element: str = "i32", shape: Iterable[IntLike] | None = None) -> Expr:
    """The array ``name``, to be subscripted.

    Parameters
    ----------
    element : str
        The type of its elements: a key of :data:`eqsat.lang.ops.ELEMENTS`. An array of ``"int"``, integers of any size,
        is a function of integers that nothing is known of but that equal indices have equal values; one of ``"bool"``
        is such a condition. A function has no C.
    shape : iterable of int, optional
        The extent of each axis, at least 1; where it is left out, any indices will do.

    Raises
    ------
    ValueError
        If :func:`is_name` is false of the name, the element type is unknown, there is no axis, or an extent is less
        than 1.
    TypeError
        If the name is no text, or the shape no sequence of integers.

    >>> a = buffer("A", "i32", (4, 8))
    >>> a[var("i", 0, 3), 5]
    Expr('A[i, 5]')
    """
    _check_name(name, "buffer")
    if element not in list(ELEMENTS):
        raise ValueError(f"buffer {name!r} has elements of unknown type {element!r}: use one of {', '.join(ELEMENTS)}")
    try:
        extents = None if shape is None else tuple([extent.__index__() for extent in shape])
    except (AttributeError, TypeError):
        raise TypeError(f"the shape of buffer {name!r} must be a sequence of integers, not {shape!r}") from None
    if extents is not None and min(extents, default=0) < 1:
        raise ValueError(f"the shape {extents} of buffer {name!r} must have an axis, and extents of at least 1")
    return any_buffer(Buffer(name, element, extents))


def any_buffer(value: Buffer) -> Expr:
    """As :func:`buffer`, without a check: for names too that no user can give."""
    identity = ("buffer", value)
    term: Expr | None = known(identity)
    if term is None:
        low, high = ELEMENTS[value.element]
        key = hash((_OP_KEYS["buffer"], _digest(repr(value))))
        term = _new(identity, "buffer", (), value, low, high, value.element == "bool", key)
    return term


def as_expr(value: ExprLike) -> Expr:
    """``value`` itself, or the literal for a Python int, bool or float (or a NumPy one).

    A Python float is an ``f32`` literal: it becomes ``f64`` beside a value of that type.

    Raises ``TypeError`` if ``value`` is neither a term nor a number.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        # before what imports NumPy
        return const(value)
    if isinstance(value, np.bool_):
        return TRUE if value else FALSE
    if isinstance(value, float | np.floating):
        return any_float(float(value), "f64" if isinstance(value, np.float64) else "f32")
    try:
        return const(value)
    except TypeError:
        remedy = f"convert it by {converter}" if (converter := origin_of(value)) else "give an Expr, an int or a bool"
        raise TypeError(f"{shown(value)} is not an index expression: {remedy}") from None


def make(name: str, *args: Expr) -> Expr:
    """The term that applies operator ``name`` to ``args``: the constructor behind every Python operator.

    A divisor may be zero here: what is never evaluated can come to that. Operators, text and substitution refuse it.

    Raises ``ValueError`` if a shift amount can leave ``[0, 63]``, or a product can exceed 10,000 bits; ``TypeError`` if
    an operand has the wrong sort, or there are too few or too many.
    """
    identity = (name, *args)
    found: ref[Expr] | None = in_use.get(identity)
    if found is not None and (term := found()) is not None:
        return term
    op = OPS.get(name)
    if op is None:
        return _load(*args) if name == "load" else _reduce(name, *args) if name in REDUCTIONS else _float(name, *args)
    # of three operands the first is a condition
    if name in FLOAT_OF and args and (args[-1].element or args[max(0, len(args) - 2)].element):
        return _float(FLOAT_OF[name], *args)
    is_bool = _check_operands(name, op.takes, op.gives, args)
    low, high = _bounds_of_difference(*args) if name == "sub" else op.bounds(*[(a.vmin, a.vmax) for a in args])
    if name == "mul":
        if args[0] is args[1]:
            # a square is never negative
            low = max(low, max(args[0].vmin, -args[0].vmax, 0) ** 2)
        if max(bits(low), bits(high)) > MOST_BITS:
            product = f"{brief(args[0])!r} * {brief(args[1])!r}"
            raise TooWideError(f"the product {product} can have more than {MOST_BITS} bits")
    return _new(identity, name, args, None, low, high, is_bool)


def _bounds_of_difference(x: Expr, y: Expr) -> Bounds:
    """The bounds of ``x - y``; of multiples of one term those of their difference: ``i*8 - i`` has those of ``i*7``."""
    (term, k), (other, j) = _multiple(x), _multiple(y)
    if term is not other or k == j:
        return OPS["sub"].bounds((x.vmin, x.vmax), (y.vmin, y.vmax))
    return OPS["mul"].bounds((term.vmin, term.vmax), (k - j, k - j))


def _multiple(term: Expr) -> tuple[Expr, int]:
    """A term as a multiple: the other operand of a product by a literal on the right, and that literal; else 1."""
    return (term.args[0], term.args[1].vmin) if term.op == "mul" and term.args[1].op == "const" else (term, 1)


#: What the bit operators are on two conditions.
_OF_CONDITIONS = {"bitand": "and", "bitor": "or", "bitxor": "ne"}


def bitwise(name: str, x: Expr, y: Expr) -> Expr:
    """The bit operator ``name`` on two integers; on two conditions the connective that Python's sign stands for."""
    both = x.is_bool and y.is_bool and "buffer" not in (x.op, y.op)
    return make(_OF_CONDITIONS[name] if both else name, x, y)


def stated(name: str, *args: Expr) -> Expr:
    """As :func:`make`, for what a caller writes: raises ``ValueError`` too if a divisor can only be zero."""
    term = make(name, *args)
    if divides_by_zero(term):
        raise ValueError(
            f"division by zero: the divisor of {brief(args[0])!r} is {brief(args[1])!r}, which is always 0"
        )
    return term


def divides_by_zero(term: Expr) -> bool:
    """Whether a term is a division whose divisor can only be 0."""
    return term.op in DIVISIONS and term.args[1].vmin == 0 == term.args[1].vmax


def with_operands(term: Expr, args: tuple[Expr, ...]) -> Expr:
    """``term`` on other operands.

    Raises ``ValueError`` if a divisor can only be zero now, and could be something else before.
    """
    if args == term.args:
        return term
    return make(term.op, *args) if divides_by_zero(term) else stated(term.op, *args)


def _load(array: Expr, *indices: Expr) -> Expr:
    if array.op != "buffer":
        raise TypeError(f"{brief(array)!r} is not an array: only buffers are subscripted")
    value = cast(Buffer, array.value)
    if not indices or (value.shape is not None and len(indices) != len(value.shape)):
        wanted = "at least 1 index" if value.shape is None else counted(len(value.shape), "index", "indices")
        raise TypeError(f"buffer {value.name!r} takes {wanted}, not {len(indices)}")
    for index in indices:
        _require_integer("load", index)
    args = (array, *indices)
    element = value.element if value.element in ("f32", "f64") else None
    return _new(("load", *args), "load", args, None, array.vmin, array.vmax, array.is_bool, element=element)


def literal_float(value: float, element: str) -> Expr:
    """The floating-point literal ``value``, rounded to ``element`` (``"f32"`` or ``"f64"``).

    Raises ``ValueError`` if it is finite, and beyond what ``element`` holds.
    """
    if element == "f64":
        return any_float(value, element)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    if isinf(rounded) and not isinf(value):
        raise ValueError(f"the literal {value:g} is too large for {element}")
    return any_float(rounded, element)


def any_float(value: float, element: str) -> Expr:
    """As :func:`literal_float`, but with all digits: an ``f32`` literal is rounded when it becomes an operand."""
    identity = ("float", element, repr(value))
    term: Expr | None = known(identity)
    if term is None:
        key = hash((_OP_KEYS["float"], _digest(repr(identity))))
        term = _new(identity, "float", (), value, *ELEMENTS[element], False, key, element)
    return term


def as_float(value: ExprLike, beside: Expr) -> Expr:
    """``value`` as a floating-point term: a literal or an integer in the type of ``beside``."""
    term = as_expr(value)
    element = beside.element or term.element or "f32"
    if term.op == "float":
        return literal_float(cast(float, term.value), element)
    if term.op == "const":
        try:
            number = term.vmin if element == "f64" else rounded_to_odd(term.vmin)
            return literal_float(float(number), element)
        except OverflowError:
            raise ValueError(f"an integer of {term.vmin.bit_length()} bits is too large for {element}") from None
    return term if term.element else make("to_double" if element == "f64" else "to_float", term)


def _float(name: str, *args: Expr) -> Expr:
    """An operator on floating-point values; integers among the operands are converted."""
    op = FLOATS.get(name)
    if op is None:
        raise ValueError(f"unknown operator {name!r}: one of your own is made by eqsat.operator, once in each process")
    if len(op.takes) != len(args):
        raise TypeError(f"{name} takes {counted(len(op.takes), 'operand')}, not {len(args)}")
    for sort, arg in zip(op.takes, args, strict=True):
        if arg.op == "buffer" or arg.is_bool is not (sort == "b") or (sort == "i" and arg.element):
            wanted = {"b": "a condition", "i": "an integer", "f": "a number"}[sort]
            raise TypeError(f"{op.integer or name} needs {wanted} where {brief(arg)!r} stands")
    _require_typed(op, args)
    # a literal takes the type of a term that it stands beside, or else of an f64 literal
    typed = max(args, key=lambda a: (a.element is not None, a.op != "float", a.element == "f64"))
    args = tuple([as_float(a, typed) if sort == "f" else a for sort, a in zip(op.takes, args, strict=True)])
    element = None if op.gives == "b" else op.element or ("f64" if "f64" in [a.element for a in args] else "f32")
    low, high = (0, 1) if op.gives == "b" else ELEMENTS[cast(str, element)]
    found: Expr | None = known((name, *args))
    if found is not None:
        return found
    return _new((name, *args), name, args, None, low, high, op.gives == "b", element=element)


def _require_typed(op: FloatOp, args: tuple[Expr, ...]) -> None:
    """Refuse integers where no operand but a literal says that floating-point values are meant."""
    untyped = [a for s, a in zip(op.takes, args, strict=True) if s == "f" and a.op not in ("const", "float")]
    if not untyped or any(a.element and a.op != "float" for a in args):
        return
    literals = [repr(a.value) for a in args if a.op == "float"]
    if op.name == "fdiv":
        found, remedy = "/ divides floating-point values", "use // for whole quotients, or "
    elif literals:
        found, remedy = f"{literals[0]} is a floating-point value", ""
    else:
        found, remedy = f"{op.name} takes a floating-point value", ""
    raise TypeError(f"{found}, and {brief(untyped[0])!r} is an integer: {remedy}write to_float(...) around it")


def _require_integer(name: str, term: Expr) -> None:
    if term.is_bool or term.op == "buffer" or term.element:
        raise _misplaced(name, term, "an integer")


def _misplaced(name: str, term: Expr, wanted: str) -> TypeError:
    """The error about an operand of another sort than is ``wanted``."""
    kind, remedy = _kind_of(term), ""
    if name in ("and", "or") and kind == "an integer":
        remedy = f": for its bits write {'&' if name == 'and' else '|'}"
    elif wanted == "an integer" and kind == "a condition":
        remedy = ": as a number it is where(condition, 1, 0)"
    return TypeError(f"{name} needs {wanted} where {brief(term)!r} is {kind}{remedy}")


def _reduce(name: str, *args: Expr) -> Expr:
    """The reduction with its index named by its level: one more than those of the reductions in the body."""
    if len(args) != 4:
        raise TypeError(f"{name} takes 4 operands (body, index, low, high), not {len(args)}")
    body, index, low, high = args
    if body.op == "float":
        body = as_float(body, body)
        args = (body, index, low, high)
    if body.element and name in FLOAT_OF:
        return make(FLOAT_OF[name], *args)
    for term in (low, high) if body.element else (body, low, high):
        _require_integer(name, term)
    if index.op != "var":
        raise TypeError(f"{name} needs a variable as its index, not {brief(index)!r}")
    own = _named_index(_free_level(body, index, (low, high)), low.vmin, max(low.vmin, high.vmax - 1))
    if index is not own:
        # where the index is always zero, a division by it may be one that is never evaluated
        return make(name, *replaced([body], {index: own}), own, low, high)
    trips = trip_bounds((low.vmin, low.vmax), (high.vmin, high.vmax))
    if body.element:
        bounds: Bounds | None = ELEMENTS[body.element]
    else:
        bounds = reduction_bounds(name, (body.vmin, body.vmax), trips)
    if bounds is None:
        raise TooWideError(f"the product of {brief(body)!r} over {trips[1]} values can have more than {MOST_BITS} bits")
    return _new((name, *args), name, args, None, *bounds, False, element=body.element)


def _free_level(body: Expr, index: Expr, ends: Iterable[Expr]) -> int:
    """A level for the index of a reduction: above those of reductions in the body, and that of no other index in it."""
    bound, others = 0, {index_level(term) for end in ends for term in indices_around(end)}
    for term in topological([body]):
        if term.op in REDUCTIONS:
            bound = max(bound, index_level(term.args[1]))
        elif term.op == "var" and term is not index:
            others.add(index_level(term))
    level = bound + 1
    while level in others:
        # an index of an enclosing reduction that has not been built yet
        level += 1
    if level > MAX_NESTING:
        raise ValueError(f"reductions nest more than {MAX_NESTING} deep in {brief(body)!r}")
    return level


def indices_around(term: Expr) -> list[Expr]:
    """The indices that are free in ``term``, those of reductions around it: one in it may bind the same name."""
    order = topological([term])
    indices = {t: 1 << place for place, t in enumerate(order) if t.op == "var" and is_index(t)}
    sets = {**indices}
    for part in order if indices else ():
        sets.setdefault(part, free_in(part.op, [sets[arg] for arg in part.args]))
    return [index for index, bit in indices.items() if bit & sets[term]]


def _named_index(level: int, low: int, high: int) -> Expr:
    return any_var(f"${level}:{digits(low)}:{digits(high)}", low, high)


def named_variable(name: str) -> Expr:
    """The index of a reduction with this name, which says its range: the inverse of :func:`_named_index`."""
    _, low, high = name.split(":")
    return any_var(name, -INFINITY if low == "-inf" else int(low, 0), INFINITY if high == "inf" else int(high, 0))


def instantiate(body: Expr, index: Expr, value: Expr) -> Expr:
    """``body`` of a reduction with ``value`` for its ``index``; no reduction in it captures a variable of ``value``.

    Raises ``ValueError`` if that makes a term that is refused, as a division by zero.
    """
    refuse_capture(body, {index: value})
    return substitute([body], {index: value})[0]


def refuse_capture(body: Expr, images: Mapping[Expr, Expr]) -> None:
    """Raise ``ValueError`` if a reduction in ``body`` binds a key of ``images``, or a variable of its value."""
    inside = {term.args[1] for term in topological([body]) if term.op in REDUCTIONS}
    for index, value in images.items() if inside else ():
        if index in inside or not inside.isdisjoint(topological([value])):
            raise ValueError(f"an index of {brief(body)!r} would capture one of {brief(value)!r}")


def _check_operands(name: str, takes: str, gives: str, args: tuple[Expr, ...]) -> bool:
    """Whether the result is a bool; refuse operands of another number or sort, and shift amounts out of range."""
    if len(takes) != len(args):
        raise TypeError(f"{name} takes {counted(len(takes), 'operand')}, not {len(args)}")
    # of operands that share a sort the first decides it
    shared = "s" in takes and args[takes.index("s")].is_bool
    for sort, arg in zip(takes, args, strict=True):
        wanted = shared if sort == "s" else sort == "b"
        if arg.is_bool is not wanted or arg.op == "buffer" or arg.element:
            raise _misplaced(name, arg, "a condition" if wanted else "an integer")
    if name in SHIFTS and not (args[1].vmin >= 0 and args[1].vmax <= MAX_SHIFT):
        raise ValueError(
            f"the shift amount {brief(args[1])!r} has range [{args[1].vmin}, {args[1].vmax}]: "
            f"it must lie in [0, {MAX_SHIFT}]"
        )
    return shared if gives == "s" else gives == "b"


def refuse_array(term: Expr) -> None:
    """Raise ``ValueError`` if ``term`` is a whole array: only its elements are values."""
    if term.op == "buffer":
        name, shape = cast(Buffer, term.value).name, cast(Buffer, term.value).shape
        example = ", ".join("ijkl"[: len(shape)] if shape and len(shape) <= 4 else "i")
        raise ValueError(f"{name!r} is an array, not a value: index it, as in {name}[{example}]")


def refuse_escaped(term: Expr, bound: Iterable[Expr] = ()) -> None:
    """Raise ``ValueError`` if ``term`` has the index of a reduction outside of that; those in ``bound`` may occur."""
    if escaped := [index for index in indices_around(term) if index not in bound]:
        raise ValueError(f"{brief(term)!r} has {brief(escaped[0])!r}, the index of no reduction here: use a variable")


def _kind_of(term: Expr) -> str:
    if term.op == "buffer":
        return "an array"
    return "a condition" if term.is_bool else "a floating-point value" if term.element else "an integer"


def shift_amount(term: Expr) -> Expr:
    """``term`` itself, or held in ``[0, 63]`` where its bounds do not show that it stays there."""
    if term.vmin < 0:
        term = make("max", term, const(0))
    return make("min", term, const(MAX_SHIFT)) if term.vmax > MAX_SHIFT else term


def brief(term: Expr, limit: int = 60) -> str:
    """The text of ``term``, cut to ``limit`` characters: for messages."""
    return shortened(TEXT.call(term, most=4 * limit), limit)


def rebuild(roots: Iterable[Expr], replace: Callable[[Expr, tuple[Expr, ...]], Expr | None]) -> list[Expr]:
    """``roots`` rebuilt bottom-up: ``replace`` is given each term and its new operands, ``None`` keeps the operator."""
    roots = list(roots)
    new: dict[Expr, Expr] = {}
    for term in topological(roots):
        args = tuple([new[a] for a in term.args])
        replaced = replace(term, args)
        if replaced is None:
            replaced = term if args == term.args else make(term.op, *args)
        new[term] = replaced
    return [new[root] for root in roots]


def substitute(roots: Iterable[Expr], replacement: Mapping[Expr, ExprLike]) -> list[Expr]:
    """``roots`` with every subterm that is a key of ``replacement`` replaced; see :meth:`Expr.substitute`.

    Parameters
    ----------
    roots : iterable of Expr
        Terms.
    replacement : mapping of Expr to Expr or int
        What stands for which subterm.

    >>> i = var("i", 0, 7)
    >>> substitute([i * 2], {i: 3})
    [Expr('3*2')]
    """
    require(replacement, Mapping, "what replaces subterms")
    roots = list_of(Expr, roots, "the terms to replace in")
    images = {term: as_expr(image) for term, image in replacement.items()}
    return rebuild(roots, lambda term, args: images[term] if term in images else with_operands(term, args))


def replaced(roots: Iterable[Expr], images: Mapping[Expr, Expr]) -> list[Expr]:
    """As :func:`substitute`, but what is never evaluated may come to divide by zero."""
    return rebuild(roots, lambda term, args: images.get(term))


#: Of each term its operator, the fields of a leaf, and the places of its operands.
Rows = list[tuple[str, list[Any], list[int]]]


def to_rows(root: Expr) -> Rows:
    """``root`` as a flat table, operands before users: for pickling terms of any depth."""
    places = {term: place for place, term in enumerate(topological([root]))}
    fields = {op: names for op, (_, *names) in _LEAVES.items()}
    return [(t.op, [getattr(t, f) for f in fields.get(t.op, ())], [places[a] for a in t.args]) for t in places]


def from_rows(rows: Rows) -> Expr:
    """The inverse of :func:`to_rows`."""
    terms: list[Expr] = []
    for op, fields, args in rows:
        terms.append(_LEAVES[op][0](*fields) if op in _LEAVES else make(op, *[terms[a] for a in args]))
    return terms[-1]


#: By leaf, what makes it, and the fields that this takes.
_LEAVES: dict[str, Any] = {
    "const": (const, "value"),
    "bool": (as_expr, "value"),
    "var": (any_var, "value", "vmin", "vmax"),
    "float": (any_float, "value", "element"),
    "buffer": (any_buffer, "value"),
}
