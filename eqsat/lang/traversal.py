"""The fields of a term, the table of terms in use, and traversals: subterms in order, variables, sizes, chains.

Terms share subterms and may be thousands of levels deep: every traversal visits each distinct term once and is
iterative.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from math import inf, prod
from threading import RLock
from typing import Any, Self, cast
from weakref import ref

from eqsat.extract.graph import reached as reached
from eqsat.extract.graph import trips
from eqsat.lang.ops import DIVISIONS, ELEMENTS, REDUCTIONS, Buffer, is_finite

#: A form of a term may have wider bounds than this only if the term has.
WIDE = 1 << 1000
#: The name of a bound index: its level and its range, unlike any name a user can give.
_INDEX = re.compile(r"\$(\d+):")
_EXTREMES = frozenset({"min", "max"})
#: Operators whose chains nest in the first operand; those of extremes in either one.
_CHAINS = frozenset({"add", "and", "or"}) | _EXTREMES


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

    >>> from eqsat.lang.expr import var
    >>> topological([var("i", 0, 7) * 2 + var("i", 0, 7)])
    [Expr('i'), Expr('2'), Expr('i*2'), Expr('i*2 + i')]
    """
    found: dict[T, None] = {}
    # the operands still to visit of a term (or the roots), and on two stacks those of the terms above it: the garbage
    # collector would have to visit pairs on one stack
    user: T | None = None
    operands = iter(roots)
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


def has_reductions(roots: Iterable[Term]) -> bool:
    """Whether a reduction is among ``roots`` or below them."""
    return any(term.op in REDUCTIONS for term in topological(roots))


def mentions(term: Term, variable: Term) -> bool:
    """Whether ``variable`` occurs in ``term``."""
    return any(t is variable for t in topological([term]))


def evaluated_operands[T: Term](term: T) -> tuple[T, ...]:
    """The operands to evaluate before ``term``: no body, which is evaluated per value of its index, and no array."""
    return term.args[2:] if term.op in REDUCTIONS else term.args[1:] if term.op == "load" else term.args


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
    op, length = term.op, 1
    while op in _CHAINS and term.op == op and length <= beyond:
        term, length = _rest(term), length + 1
    return length > beyond


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


def indices_around[T: Term](term: T) -> list[T]:
    """The indices that are free in ``term``, those of reductions around it: one in it may bind the same name."""
    indices = [t for t in topological([term]) if t.op == "var" and is_index(t)]
    sets = VariableSets()
    return [index for index in indices if sets.of(term) & sets.of(index)]


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


def value_of_range(variable: Term) -> int:
    """Some value of a variable: the least, if there is one."""
    low, high = variable.vmin, variable.vmax
    return low if is_finite(low) else min(0, high)


def array_of(element: Term) -> Buffer:
    """The array that a load takes its element from."""
    return cast(Buffer, element.args[0].value)


def neutral(op: str, body: Term) -> int | float:
    """The value that leaves a reduction ``op`` of ``body`` as it is where a step has it in place of its own."""
    if op in ("max_over", "min_over"):
        # there is no least integer, but the body has a bound
        return body.vmin if op == "max_over" else body.vmax
    return REDUCTIONS[op].rounded if body.element else REDUCTIONS[op].identity


def is_wide(term: Term) -> bool:
    """Whether a term has a finite bound of more than 1000 bits."""
    low, high = term.vmin, term.vmax
    return (low <= -WIDE and is_finite(low)) or (high >= WIDE and is_finite(high))


def exceeds_64_bits(term: Term) -> bool:
    """Whether an integer has a finite bound that 64 bits do not hold.

    An infinite bound does not count: C needs bounds of all variables, and those may fit.
    """
    low, high = ELEMENTS["i64"]
    wide = (term.vmin < low and is_finite(term.vmin)) or (term.vmax > high and is_finite(term.vmax))
    return wide and not (term.element or term.op == "buffer")


def misfits[T: Term](roots: Iterable[T]) -> set[T]:
    """The terms below ``roots``, themselves among them, that may exceed 64 bits or have a subterm that may."""
    order = topological(roots)
    wide = {t for t in order if exceeds_64_bits(t)}
    return with_users(wide, order) if wide else wide


def may_divide_by_zero(term: Term) -> bool:
    """Whether a term is a division whose divisor has 0 within its bounds."""
    return term.op in DIVISIONS and term.args[1].vmin <= 0 <= term.args[1].vmax


def suspects[T: Term](terms: Sequence[T]) -> set[T]:
    """Those of ``terms``, operands first, that contain a division whose divisor has 0 within its bounds."""
    # most terms are no divisions: these are told without a call
    divisions = {t for t in terms if t.op in DIVISIONS and may_divide_by_zero(t)}
    return with_users(divisions, terms) if divisions else divisions


def divides_by_zero(term: Term) -> bool:
    """Whether a term is a division whose divisor can only be 0."""
    return term.op in DIVISIONS and term.args[1].vmin == 0 == term.args[1].vmax


def divisors[T: Term](roots: Iterable[T]) -> list[T]:
    """The divisor of each division and remainder below ``roots``."""
    return [term.args[1] for term in topological(roots) if term.op in DIVISIONS]


def symbolic_divisors[T: Term](roots: Iterable[T]) -> set[T]:
    """The distinct divisors below ``roots`` that are no literals."""
    return {divisor for divisor in divisors(roots) if divisor.op != "const"}


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


def outside_addresses[T: Term](roots: Iterable[T]) -> set[T]:
    """The terms below ``roots``, loads among them, but nothing that only the indices of loads contain."""
    return set(reached(roots, lambda term: () if term.op == "load" else term.args))


def term_count(roots: Iterable[Term]) -> int:
    """How many distinct terms there are below ``roots``, themselves among them."""
    return len(topological(roots))


def division_count(roots: Iterable[Term]) -> int:
    """How many distinct divisions and remainders there are below ``roots``."""
    return len(divisors(roots))


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


def free_in(op: str, operands: Sequence[int]) -> int:
    """The set of free variables of a term or an e-node from those of its operands: a reduction binds its index."""
    if len(operands) == 4 and op in REDUCTIONS:
        body, index, low, high = operands
        return (body & ~index) | low | high
    total = 0
    for operand in operands:
        total |= operand
    return total


class VariableSets:
    """The free variables and the buffers of terms, as bit sets."""

    def __init__(self) -> None:
        self._sets: dict[Term, int] = {}
        self._count = 0
        #: The number of values of each index that has occurred, by its bit.
        self.index_extents: dict[int, int] = {}
        #: These indices, by their bits.
        self.indices: dict[int, Term] = {}

    def of(self, term: Term) -> int:
        """The set of ``term``."""
        found = self._sets.get(term)
        if found is None:
            self.read(topological_until([term], self._sets.__contains__))
            found = self._sets[term]
        return found

    def read(self, terms: Iterable[Term]) -> None:
        """Find the sets of terms whose operands come before them."""
        sets = self._sets
        for term in terms:
            if term in sets:
                continue
            if not term.args:
                sets[term] = self._set_of_leaf(term)
            else:
                sets[term] = free_in(term.op, [sets[arg] for arg in term.args])

    def tied(self, of: int, facts: Iterable[Term]) -> int:
        """The set with all variables and arrays that ``facts`` tie to it, directly or through others."""
        together, reached = [self.of(fact) for fact in facts], 0
        while reached != of:
            reached = of
            for each in together:
                of |= each if each & of else 0
        return of

    def times(self, of: int) -> int:
        """How often a term with these variables is computed: once for each value of the indices among them."""
        return prod([extent for bit, extent in self.index_extents.items() if of & bit])

    def _set_of_leaf(self, leaf: Term) -> int:
        if leaf.op not in ("var", "buffer"):
            return 0
        bit = 1 << self._count
        self._count += 1
        if leaf.op == "var" and is_index(leaf):
            self.index_extents[bit] = trips(leaf.vmax - leaf.vmin + 1)
            self.indices[bit] = leaf
        return bit


def facts_on[T: Term](terms: Iterable[T], facts: Iterable[T]) -> list[T]:
    """The facts that share a variable or an array with a term, or with another such fact, and those without any.

    >>> from eqsat.lang.expr import var
    >>> x, y, z = var("x", 0, 7), var("y", 0, 7), var("z", 0, 7)
    >>> facts_on([x + 1], [z < 3, y < z, x < y, z.ne(0)]), facts_on([x + 1], [z < 3])
    ([Expr('z < 3'), Expr('y < z'), Expr('x < y'), Expr('z != 0')], [])
    """
    sets = VariableSets()
    facts, reached = dict.fromkeys(facts), 0
    for term in terms:
        reached |= sets.of(term)
    reached = sets.tied(reached, facts)
    return [fact for fact in facts if sets.of(fact) & reached or not sets.of(fact)]
