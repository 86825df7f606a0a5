"""Expressions: immutable, hash-consed terms with exact bounds.

An :class:`Expr` is a node of a directed acyclic graph. Equal terms are the same object, so ``is`` (and ``==``) compares
structure, and shared subterms are stored once. ``vmin`` and ``vmax`` bound every value the term can take, computed when
it is built. Terms may be thousands of levels deep: every walk here is iterative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NoReturn, SupportsIndex, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsat.ops import DIVISIONS, MAX_SHIFT, OPS

IntLike = SupportsIndex


class _Draft:
    """An Expr while it is being built: the same slots, still writable."""

    __slots__ = ("__weakref__", "args", "is_bool", "key", "op", "value", "vmax", "vmin")

    op: str
    args: tuple[Expr, ...]
    value: int | str | None
    vmin: int
    vmax: int
    is_bool: bool
    key: int


class Expr(_Draft):
    """One term of the language; build it with :func:`var`, :func:`const`, Python operators and the functions below.

    Attributes
    ----------
    op : str
        ``"const"``, ``"bool"`` (a literal ``True`` or ``False``), ``"var"``, or a name in :data:`eqsat.ops.OPS`.
    args : tuple of Expr
        The operands.
    value : int, bool, str or None
        The literal, or the name of a variable.
    vmin, vmax : int
        Inclusive bounds of the value; for a bool term 0 is False and 1 is True.
    key : int
        A structural hash, the same in every process: the fixed order on terms.

    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> e = (i*32 + j) // 32
    >>> e, e.vmin, e.vmax
    (Expr('(i*32 + j)//32'), 0, 7)
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an Expr is immutable: cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        from eqsat.text import from_rows, to_rows

        return from_rows, (to_rows(self),)

    def __bool__(self) -> bool:
        if self.vmin == self.vmax:
            return bool(self.vmin)
        raise TypeError(f"the truth of {brief(self)!r} depends on its variables; combine conditions with & | ~")

    def __repr__(self) -> str:
        from eqsat.text import to_text

        return f"Expr({to_text(self)!r})"

    def __str__(self) -> str:
        from eqsat.text import to_text

        return to_text(self)

    def __add__(self, other: ExprLike) -> Expr:
        return make("add", self, as_expr(other))

    def __radd__(self, other: ExprLike) -> Expr:
        return make("add", as_expr(other), self)

    def __sub__(self, other: ExprLike) -> Expr:
        return make("sub", self, as_expr(other))

    def __rsub__(self, other: ExprLike) -> Expr:
        return make("sub", as_expr(other), self)

    def __mul__(self, other: ExprLike) -> Expr:
        return make("mul", self, as_expr(other))

    def __rmul__(self, other: ExprLike) -> Expr:
        return make("mul", as_expr(other), self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return make("floordiv", self, as_expr(other))

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return make("floordiv", as_expr(other), self)

    def __mod__(self, other: ExprLike) -> Expr:
        return make("mod", self, as_expr(other))

    def __rmod__(self, other: ExprLike) -> Expr:
        return make("mod", as_expr(other), self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return make("shl", self, as_expr(other))

    def __rshift__(self, other: ExprLike) -> Expr:
        return make("shr", self, as_expr(other))

    def __neg__(self) -> Expr:
        return make("neg", self)

    def __lt__(self, other: ExprLike) -> Expr:
        return make("lt", self, as_expr(other))

    def __le__(self, other: ExprLike) -> Expr:
        return make("le", self, as_expr(other))

    def __gt__(self, other: ExprLike) -> Expr:
        return make("lt", as_expr(other), self)

    def __ge__(self, other: ExprLike) -> Expr:
        return make("le", as_expr(other), self)

    def __and__(self, other: ExprLike) -> Expr:
        return make("and", self, as_expr(other))

    def __or__(self, other: ExprLike) -> Expr:
        return make("or", self, as_expr(other))

    def __invert__(self) -> Expr:
        return make("not", self)

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
        return substitute([self], replacement)[0]

    def evaluate(self, values: Mapping[str, ArrayLike]) -> NDArray[Any]:
        """The value of this term at the given values of its variables; see :func:`evaluate`."""
        return evaluate([self], values)[0]


ExprLike = Expr | int

#: Bounds are exact, so repeated squaring must end somewhere.
MAX_BITS = 10_000

_terms: WeakValueDictionary[tuple[object, ...], Expr] = WeakValueDictionary()
_OP_KEYS = {
    name: int.from_bytes(blake2b(name.encode(), digest_size=7).digest()) for name in [*OPS, "const", "bool", "var"]
}


def _new(
    identity: tuple[object, ...],
    op: str,
    args: tuple[Expr, ...],
    value: int | str | None,
    vmin: int,
    vmax: int,
    is_bool: bool,
    key: int,
) -> Expr:
    draft = _Draft()
    draft.op = op
    draft.args = args
    draft.value = value
    draft.vmin = vmin
    draft.vmax = vmax
    draft.is_bool = is_bool
    draft.key = key
    draft.__class__ = Expr
    term = cast(Expr, draft)
    _terms[identity] = term
    return term


def const(value: IntLike) -> Expr:
    """The integer literal ``value``, of any size.

    >>> const(2**70).vmax == 2**70
    True
    """
    number = value.__index__()
    identity = ("const", number)
    term = _terms.get(identity)
    if term is None:
        term = _new(identity, "const", (), number, number, number, False, hash((_OP_KEYS["const"], number)))
    return term


def _literal_bool(value: bool) -> Expr:
    identity = ("bool", value)
    term = _terms.get(identity)
    if term is None:
        number = int(value)
        term = _new(identity, "bool", (), value, number, number, True, hash((_OP_KEYS["bool"], number)))
    return term


#: The bool literals.
TRUE, FALSE = _literal_bool(True), _literal_bool(False)


def var(name: str, vmin: IntLike, vmax: IntLike) -> Expr:
    """The integer variable ``name`` with values in ``[vmin, vmax]``, both inclusive.

    Raises
    ------
    ValueError
        If the range is empty or the name is not an identifier.
    """
    low, high = vmin.__index__(), vmax.__index__()
    identity = ("var", name, low, high)
    term = _terms.get(identity)
    if term is not None:
        return term
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a variable name: use letters, digits and underscores")
    if low > high:
        raise ValueError(f"the range of variable {name!r} is empty: [{low}, {high}]")
    # the first letters lead, so that variables come in the order of their names
    letters = int.from_bytes(name.encode()[:6].ljust(6, b"\0"))
    rest = int.from_bytes(blake2b(f"{name} {low} {high}".encode(), digest_size=2).digest())
    return _new(identity, "var", (), name, low, high, False, letters << 16 | rest)


def as_expr(value: ExprLike) -> Expr:
    """``value`` itself, or the literal for a Python int or bool (or a NumPy one).

    Raises
    ------
    TypeError
        If ``value`` is neither a term nor an integer.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool | np.bool_):
        return TRUE if value else FALSE
    try:
        return const(value)
    except AttributeError:
        raise TypeError(f"{value!r} is not an index expression: give an Expr, an int or a bool") from None


def make(name: str, *args: Expr) -> Expr:
    """The term that applies operator ``name`` to ``args``: the constructor behind every Python operator.

    Raises
    ------
    ValueError
        If a divisor can only be zero, a shift amount can leave ``[0, 63]``, or a product can exceed 10,000 bits.
    TypeError
        If an operand has the wrong sort, or there are too few or too many.
    """
    identity = (name, *args)
    term = _terms.get(identity)
    if term is not None:
        return term
    op = OPS[name]
    is_bool = _check_operands(name, op.takes, op.gives, args)
    low, high = op.bounds(*[(a.vmin, a.vmax) for a in args])
    if name == "mul" and max(low.bit_length(), high.bit_length()) > MAX_BITS:
        raise ValueError(f"the product {brief(args[0])!r} * {brief(args[1])!r} can have more than {MAX_BITS} bits")
    key = hash((_OP_KEYS[name], *[a.key for a in args]))
    return _new(identity, name, args, None, low, high, is_bool, key)


def _check_operands(name: str, takes: str, gives: str, args: tuple[Expr, ...]) -> bool:
    """Whether the result is a bool; refuse what has no meaning."""
    if len(takes) != len(args):
        raise TypeError(f"{name} takes {len(takes)} operands, not {len(args)}")
    shared: bool | None = None
    for sort, arg in zip(takes, args, strict=True):
        if sort == "s":
            if shared is None:
                shared = arg.is_bool
            wanted = shared
        else:
            wanted = sort == "b"
        if arg.is_bool is not wanted:
            raise TypeError(
                f"{name} needs {'a condition' if wanted else 'an integer'} where {brief(arg)!r} is "
                f"{'a condition' if arg.is_bool else 'an integer'}"
            )
    if name in DIVISIONS and args[1].vmin == 0 == args[1].vmax:
        raise ValueError(
            f"division by zero: the divisor of {brief(args[0])!r} is {brief(args[1])!r}, which is always 0"
        )
    if name in ("shl", "shr") and not (args[1].vmin >= 0 and args[1].vmax <= MAX_SHIFT):
        raise ValueError(
            f"the shift amount {brief(args[1])!r} has range [{args[1].vmin}, {args[1].vmax}]: "
            f"it must lie in [0, {MAX_SHIFT}]"
        )
    return shared is True if gives == "s" else gives == "b"


def minimum(x: ExprLike, y: ExprLike) -> Expr:
    """The smaller of two values."""
    return make("min", as_expr(x), as_expr(y))


def maximum(x: ExprLike, y: ExprLike) -> Expr:
    """The larger of two values."""
    return make("max", as_expr(x), as_expr(y))


def where(condition: ExprLike, x: ExprLike, y: ExprLike) -> Expr:
    """``x`` where the condition holds, else ``y``."""
    return make("where", as_expr(condition), as_expr(x), as_expr(y))


def tdiv(x: ExprLike, y: ExprLike) -> Expr:
    """C's division: the quotient rounded toward zero."""
    return make("tdiv", as_expr(x), as_expr(y))


def tmod(x: ExprLike, y: ExprLike) -> Expr:
    """C's remainder: it has the sign of ``x``."""
    return make("tmod", as_expr(x), as_expr(y))


def shift_amount(term: Expr) -> Expr:
    """``term`` itself, or held in ``[0, 63]`` where its bounds do not show that it stays there."""
    if term.vmin < 0:
        term = make("max", term, const(0))
    return make("min", term, const(MAX_SHIFT)) if term.vmax > MAX_SHIFT else term


def brief(term: Expr, limit: int = 60) -> str:
    """The text of ``term``, cut to ``limit`` characters: for messages."""
    from eqsat.text import to_text

    text = to_text(term, most=4 * limit)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def topological(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Every distinct term below ``roots``, operands before their users, in an order fixed by the roots' order."""
    done: set[Expr] = set()
    stack = list(roots)[::-1]
    while stack:
        term = stack[-1]
        if term in done:
            stack.pop()
            continue
        waiting = [a for a in term.args if a not in done]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        done.add(term)
        yield term


def variables(roots: Iterable[Expr]) -> list[Expr]:
    """The distinct variables of ``roots``, sorted by name.

    Raises
    ------
    ValueError
        If one name occurs with two ranges.
    """
    found: dict[str, Expr] = {}
    for term in topological(roots):
        if term.op == "var":
            name = cast(str, term.value)
            other = found.setdefault(name, term)
            if other is not term:
                raise ValueError(
                    f"variable {name!r} has two ranges: [{other.vmin}, {other.vmax}] and [{term.vmin}, {term.vmax}]"
                )
    return [found[name] for name in sorted(found)]


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
    """``roots`` with every subterm that is a key of ``replacement`` replaced; see :meth:`Expr.substitute`."""
    images = {term: as_expr(image) for term, image in replacement.items()}
    return rebuild(roots, lambda term, args: images.get(term))


def tree_size(term: Expr) -> int:
    """How many operators and leaves ``term`` has, written out.

    >>> x = var("x", 0, 9)
    >>> tree_size((x + 1) * (x + 1))
    7
    """
    sizes: dict[Expr, int] = {}
    for part in topological([term]):
        sizes[part] = 1 + sum([sizes[a] for a in part.args])
    return sizes[term]


def number_type(*terms: Expr) -> Any:
    """The narrowest NumPy type that holds the bounds of all ``terms`` and their negations."""
    low, high = min(t.vmin for t in terms), max(t.vmax for t in terms)
    most = max(high, -low)
    return np.int32 if most < 2**31 else np.int64 if most < 2**63 else object


def evaluate(roots: Iterable[Expr], values: Mapping[str, ArrayLike]) -> list[NDArray[Any]]:
    """The values of ``roots``: the reference semantics, vectorised.

    A subterm costs only the points of the variables that it depends on, so give each variable an axis of its own where
    all combinations are wanted. Its array is freed after its last use.

    Parameters
    ----------
    values : mapping from variable name to array_like of int
        Broadcast against one another. They should lie in the variables' ranges, which is not checked.

    Returns
    -------
    list of ndarray
        One per root, of dtype bool or int64; of dtype object (Python ints) where its bounds do not fit int64.
        Where a divisor is zero the result is unspecified.

    Raises
    ------
    KeyError
        If a variable has no value; the message names it.

    >>> i = var("i", 0, 100)
    >>> (i // 7).evaluate({"i": [6, 7, 50]})
    array([0, 1, 7])
    """
    roots = list(roots)
    order = list(topological(roots))
    users = Counter(arg for term in order for arg in term.args)
    users.update(roots)
    results: dict[Expr, Any] = {}
    for term in order:
        if term.op == "var":
            if term.value not in values:
                raise KeyError(f"no value for variable {term.value!r}")
            result = np.asarray(values[cast(str, term.value)])
        elif not term.args:
            result = np.asarray(term.value)
        else:
            result = _apply(term, [results[a] for a in term.args])
        kind = bool if term.is_bool else number_type(term)
        results[term] = np.asarray(result).astype(kind, copy=False)
        for arg in term.args:
            users[arg] -= 1
            if not users[arg]:
                del results[arg]
    return [results[r] if r.is_bool or results[r].dtype == object else results[r].astype(np.int64) for r in roots]


def _apply(term: Expr, args: list[Any]) -> Any:
    """The operator of ``term`` on arrays, in a type that holds its operands and its result."""
    kind = number_type(term, *term.args)
    args = [x if a.is_bool else x.astype(kind, copy=False) for x, a in zip(args, term.args, strict=True)]
    if term.op in DIVISIONS and term.args[1].vmin <= 0 <= term.args[1].vmax:
        # any divisor of the range will do there: the result is unspecified, but its bounds hold
        other = term.args[1].vmin or term.args[1].vmax or 1
        args[1] = np.where(np.equal(args[1], 0), np.asarray(other, dtype=kind), args[1])
    return OPS[term.op].evaluate(*args)
