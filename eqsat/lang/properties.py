"""What the operators of terms say of them: divisions, reductions, widths, and free variables as sets.

:mod:`eqsat.lang.traversal` visits terms; here :mod:`eqsat.lang.ops` tells what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from eqsat.extract.graph import reached, trips
from eqsat.lang.ops import DIVISIONS, ELEMENTS, REDUCTIONS, free_in, is_finite
from eqsat.lang.traversal import Term, is_index, topological, topological_until, with_users

#: A form of a term may have wider bounds than this only if the term has.
WIDE = 1 << 1000


def has_reductions(roots: Iterable[Term]) -> bool:
    """Whether a reduction is among ``roots`` or below them."""
    return any(term.op in REDUCTIONS for term in topological(roots))


def evaluated_operands[T: Term](term: T) -> tuple[T, ...]:
    """The operands to evaluate before ``term``: no body, which is evaluated per value of its index, and no array."""
    return term.args[2:] if term.op in REDUCTIONS else term.args[1:] if term.op == "load" else term.args


def neutral(op: str, body: Term) -> int | float:
    """The value that leaves a reduction ``op`` of ``body`` as it is where a step has it in place of its own."""
    if op in ("max_over", "min_over"):
        # there is no least integer, but the body has a bound
        return body.vmin if op == "max_over" else body.vmax
    return REDUCTIONS[op].rounded if body.element else REDUCTIONS[op].identity


def outside_addresses[T: Term](roots: Iterable[T]) -> set[T]:
    """The terms below ``roots``, loads among them, but nothing that only the indices of loads contain."""
    return set(reached(roots, lambda term: () if term.op == "load" else term.args))


def value_of_range(variable: Term) -> int:
    """Some value of a variable: the least, if there is one."""
    low, high = variable.vmin, variable.vmax
    return low if is_finite(low) else min(0, high)


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


def divisors[T: Term](roots: Iterable[T]) -> list[T]:
    """The divisor of each division and remainder below ``roots``."""
    return [term.args[1] for term in topological(roots) if term.op in DIVISIONS]


def symbolic_divisors[T: Term](roots: Iterable[T]) -> set[T]:
    """The distinct divisors below ``roots`` that are no literals."""
    return {divisor for divisor in divisors(roots) if divisor.op != "const"}


def division_count(roots: Iterable[Term]) -> int:
    """How many distinct divisions and remainders there are below ``roots``."""
    return len(divisors(roots))


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
