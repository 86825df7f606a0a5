"""The fields of a term, the table of terms in use, and traversals, which know no operator but by its name.

Terms share subterms and may be thousands of levels deep: every traversal visits each distinct term once and is
iterative.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, prod
from threading import RLock
from typing import Any, Self, cast
from weakref import ref

#: The name of a bound index: its level and its range, unlike any name a user can give.
_INDEX = re.compile(r"\$(\d+):")
_EXTREMES = frozenset({"min", "max"})
#: Operators whose chains nest in the first operand; those of extremes in either one.
_CHAINS = frozenset({"add", "and", "or"}) | _EXTREMES


@dataclass(frozen=True)
class Buffer:
    """A named array of elements of one type; what it holds is not known."""

    name: str
    element: str = "i32"
    #: The extent of each axis; ``None`` where nothing is known, and any number of indices will do.
    shape: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many elements an array of a known shape has."""
        return prod(cast(tuple[int, ...], self.shape))


class Term:
    """The fields of a term; :class:`eqsat.lang.expr.Expr` is the immutable one that has them."""

    __slots__ = ("__weakref__", "args", "element", "is_bool", "key", "op", "value", "vmax", "vmin")

    op: str
    args: tuple[Self, ...]
    value: int | float | str | Buffer | None
    vmin: int
    vmax: int
    is_bool: bool
    key: int
    element: str | None


#: Of a term its operator and its operands, or for a leaf its kind and its value.
Identity = tuple[object, ...]

#: The terms in use by identity; equal terms are one object, in all threads. The references are weak. An entry outlives
#: its term until the table is swept, which costs less than a callback for each term.
in_use: dict[Identity, ref[Any]] = {}
#: The table is swept when it has more entries than this, or half as many again as it had left, whichever is more.
MIN_SWEPT = 1 << 14
_sweep_at = [MIN_SWEPT]
#: Held while an entry is removed or replaced.
_table_lock = RLock()
# a child of a fork that begins while a thread holds the lock would wait for it forever
os.register_at_fork(before=_table_lock.acquire, after_in_parent=_table_lock.release, after_in_child=_table_lock.release)


def known(identity: Identity) -> Any:
    """The term with this identity, if it is in use, else ``None``."""
    found = in_use.get(identity)
    return None if found is None else found()


def interned[T](identity: Identity, term: T) -> T:
    """``term``, just made, or the one with this identity where another thread was faster."""
    if len(in_use) > _sweep_at[0]:
        sweep()
    own = ref(term)
    return term if in_use.setdefault(identity, own) is own else _entered(identity, own)


def _entered[T](identity: Identity, own: ref[T]) -> T:
    """The term that another thread has entered; if its entry has outlived it, ``own`` replaces it."""
    with _table_lock:
        other: T | None = known(identity)
        if other is not None:
            return other
        in_use[identity] = own
        return cast(T, own())


def sweep() -> None:
    """Forget the terms that are not in use."""
    with _table_lock:
        # users come after their operands, which their identities keep alive
        left = list(in_use.items())
        while left:
            identity, term = left.pop()
            if term() is None:
                del in_use[identity]
        _sweep_at[0] = max(MIN_SWEPT, len(in_use) * 3 // 2)


def topological[T: Term](roots: Iterable[T]) -> list[T]:
    """Every distinct term below ``roots``, operands before their users, in an order fixed by the roots' order.

    Parameters
    ----------
    roots : iterable of Expr
        Terms, which may share subterms.

    Raises
    ------
    TypeError
        If ``roots`` is one term, or no terms.

    >>> from eqsat.lang.expr import var
    >>> topological([var("i", 0, 7) * 2 + var("i", 0, 7)])
    [Expr('i'), Expr('2'), Expr('i*2'), Expr('i*2 + i')]
    """
    found: dict[T, None] = {}
    # the operands still to visit of a term (or the roots), and on two stacks those of the terms above it: the garbage
    # collector would have to visit pairs on one stack
    user: T | None = None
    try:
        operands = iter(roots)
    except TypeError:
        raise TypeError(f"the roots must be a list of terms, not {roots!r}") from None
    users: list[T | None] = []
    left: list[Iterator[T]] = []
    while True:
        for term in operands:
            if term not in found:
                if args := term.args:
                    users.append(user)
                    left.append(operands)
                    user, operands = term, iter(args)
                    break
                found[term] = None
        else:
            if user is None:
                return list(found)
            found[user] = None
            user, operands = users.pop(), left.pop()


def topological_until[T](
    roots: Iterable[T], done: Callable[[T], bool], below: Callable[[T], Iterable[T]] | None = None
) -> Iterator[T]:
    """The terms below ``roots`` not yet ``done``, operands first; each must be done before the next is asked for.

    With ``below``, which says what is below each, they may be of any kind.
    """
    stack: list[Any] = list(roots)[::-1]
    opened: set[T] = set()
    while stack:
        term = stack.pop()
        if term in opened:
            opened.remove(term)
            yield term
        elif not done(term):
            waiting = [a for a in (term.args if below is None else below(term)) if not done(a)]
            if waiting:
                opened.add(term)
                stack.append(term)
                stack += waiting[::-1]
            else:
                yield term


def mentions(term: Term, variable: Term) -> bool:
    """Whether ``variable`` occurs in ``term``."""
    return any(t is variable for t in topological([term]))


def chain_members[T: Term](term: T, op: str, most: float = inf) -> list[T]:
    """What a chain of the operator ``op`` joins, from the last to the first; the term itself if it is none.

    Of a chain of more than ``most`` members some stay chains.
    """
    found: list[T] = []
    stack = [term]
    while stack:
        part = stack.pop()
        if part.op == op and len(found) + len(stack) < most - 1:
            stack.extend(part.args)
        else:
            found.append(part)
    return found


#: The signs of the operands of operators of which some are subtracted.
_SIGNS = {"sub": (1, -1), "neg": (-1,)}


def signed_members[T: Term](chain: T, goes_on: Callable[[T], bool]) -> list[tuple[T, int]]:
    """What a chain joins, from left to right, each with its sign: the operands of it and of parts it ``goes_on`` into.

    The sign is -1 of what a sum subtracts, else 1.
    """
    found: list[tuple[T, int]] = []
    stack = [(chain, 1)]
    while stack:
        term, sign = stack.pop()
        if term is chain or goes_on(term):
            signs = _SIGNS.get(term.op, (1,) * len(term.args))
            stack += reversed([(a, sign * s) for a, s in zip(term.args, signs, strict=True)])
        else:
            found.append((term, sign))
    return found


def with_users[T: Term](wanted: Collection[T], terms: Iterable[T]) -> set[T]:
    """Those of ``terms``, operands first, that are ``wanted`` or have operands, at any depth, that are."""
    found: set[T] = set()
    for term in terms:
        if term in wanted or not found.isdisjoint(term.args):
            found.add(term)
    return found


def use_counts[T: Term](roots: Sequence[T]) -> dict[T, int]:
    """For each term below ``roots``, operands first, how many roots and operands of terms it is."""
    counts = dict.fromkeys(topological(roots), 0)
    for term in counts:
        for arg in term.args:
            counts[arg] += 1
    for root in roots:
        counts[root] += 1
    return counts


def _rest[T: Term](term: T) -> T:
    """The operand that may continue a chain: the first, or the second of extremes, which text nests on the right."""
    return term.args[int(term.op in _EXTREMES and term.args[1].op == term.op)]


def is_long_chain(term: Term, beyond: int) -> bool:
    """Whether a term is a sum, junction, minimum or maximum of more than ``beyond`` operands."""
    return term.op in _CHAINS and len(chain_members(term, term.op, beyond + 1)) > beyond


def long_partial_chains[T: Term](order: Collection[T], beyond: int) -> set[T]:
    """The chains of more than ``beyond`` operands that are only the beginning of a longer one.

    Of a longer minimum or maximum, its shorter beginnings too. ``order`` has operands first.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> long_partial_chains(topological([x + y + x * 2 + x * y]), beyond=2)
    {Expr('x + y + x*2')}
    """
    lengths: dict[T, int] = {}
    firsts: dict[T, None] = {}
    for term in order:
        if term.op in _CHAINS and not (term.op in _EXTREMES and term.is_bool):
            first = _rest(term)
            lengths[term] = 2 if first.op != term.op else lengths.get(first, 1) + 1
            if lengths[term] > beyond + 1:
                firsts[first] = None
            # no part of a long extreme is read by itself: it would keep operands that those outside of it dominate
            while term.op in _EXTREMES and lengths[term] == beyond + 2 and first.op == term.op:
                firsts[first] = None
                first = _rest(first)
    if not firsts:
        return set()
    uses = Counter(chain.from_iterable([term.args for term in order]))
    return {first for first in firsts if uses[first] == 1}


def variables[T: Term](roots: Iterable[T]) -> list[T]:
    """The distinct free variables of ``roots``, sorted by name: those that no reduction binds.

    Raises ``ValueError`` if one name occurs with two ranges.
    """
    found: dict[str, T] = {}
    for term in topological(roots):
        if term.op == "var" and not is_index(term):
            name = cast(str, term.value)
            other = found.setdefault(name, term)
            if other is not term:
                raise ValueError(
                    f"variable {name!r} has two ranges: [{other.vmin}, {other.vmax}] and [{term.vmin}, {term.vmax}]"
                )
    return [found[name] for name in sorted(found)]


def is_index(variable: Term) -> bool:
    """Whether ``variable`` is the index of a reduction."""
    return cast(str, variable.value)[0] == "$"


def index_level(variable: Term) -> int:
    """How deep reductions nest below the one that binds ``variable``, and 1 more; 0 for a free variable."""
    found = _INDEX.match(cast(str, variable.value))
    return int(found[1]) if found else 0


def extent(variable: Term) -> int:
    """How many values a variable takes."""
    return variable.vmax - variable.vmin + 1


def domain_size(names: Iterable[Term]) -> int:
    """How many points the ranges of variables span."""
    return prod(map(extent, names))


def array_of(element: Term) -> Buffer:
    """The array that a load takes its element from."""
    return cast(Buffer, element.args[0].value)


def buffers[T: Term](roots: Iterable[T]) -> list[T]:
    """The distinct arrays that ``roots`` load from, sorted by name.

    Raises ``ValueError`` if one name occurs with two types or shapes.
    """
    found: dict[str, T] = {}
    for term in topological(roots):
        if term.op == "buffer":
            name = cast(Buffer, term.value).name
            if found.setdefault(name, term) is not term:
                raise ValueError(f"buffer {name!r} has two declarations: {found[name].value} and {term.value}")
    return [found[name] for name in sorted(found)]


def names_of[T: Term](roots: Iterable[T]) -> dict[str, T]:
    """The variables and arrays of terms by their names."""
    order = topological(roots)
    arrays = {cast(Buffer, array.value).name: array for array in buffers(order)}
    return {str(v.value): v for v in variables(order)} | arrays


def named_leaves[T: Term](terms: Iterable[T]) -> dict[str, T]:
    """The variables and buffers among terms, by their names in e-nodes."""
    found = [term for term in terms if term.op in ("var", "buffer")]
    named = {cast(str, v.value): v for v in variables(found)}
    return named | {buffer_key(array): array for array in buffers(found)}


def buffer_key(array: Term) -> str:
    """The name of a buffer that no variable can have."""
    return f"{cast(Buffer, array.value).name}[]"


def term_count(roots: Iterable[Term]) -> int:
    """How many distinct terms there are below ``roots``, themselves among them."""
    return len(topological(roots))


def tree_size(term: Term) -> int:
    """How many operators and leaves ``term`` has, written out."""
    return Simplicity().size(term)


class Simplicity(dict[Term, tuple[int, int, int]]):
    """An order on terms, each measured once: by size (:func:`tree_size`), by the largest literal, by key."""

    def __missing__(self, term: Term) -> tuple[int, int, int]:
        for part in topological_until([term], self.__contains__):
            size, literal = 1, abs(part.vmin) if part.op == "const" else 0
            for below, other, _ in [self[arg] for arg in part.args]:
                size, literal = size + below, max(literal, other)
            self[part] = size, literal, part.key
        return self[term]

    def size(self, term: Term) -> int:
        """How many operators and leaves ``term`` has, written out."""
        return self[term][0]
