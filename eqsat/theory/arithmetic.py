"""The interface of a theory, and its tables.

A theory is made of classes, which implement what the protocols here declare, and of modules of functions that take a
theory. All of them call each other through :class:`Arithmetic`. Their memo tables are here too, grouped by what makes
them stale: a new fact drops what was found without it. A theory shares with those that are made from it its
:class:`Work`, the effort that is left, and the values of terms at sample points.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from math import inf
from typing import Any, Protocol, Self, cast

from eqsat.lang.evaluation import Points
from eqsat.lang.expr import TRUE, Expr
from eqsat.lang.ops import Array, Bounds
from eqsat.lang.properties import VariableSets
from eqsat.lang.traversal import Simplicity, chain_members
from eqsat.theory.forms import ZERO, Division, EqualProducts, LinearForm, Remainder, literal_divisor, read
from eqsat.theory.limits import LIMITS

#: How long after the deadline unfinished work is waited for: this share of the time, and these seconds besides.
GRACE, LEAST_GRACE = 0.1, 0.01
_LATE: ContextVar[float] = ContextVar("late", default=inf)
_MISSING = object()

#: Answers by the function that was asked, and by what it was asked about.
type Answers = defaultdict[object, dict[object, Any]]


def kept[**P, V](tables: str, meanwhile: object = _MISSING) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Keep each answer of a method, or of a function of a theory, in its owner's ``tables`` until these are dropped.

    Those who ask again before it is found get ``meanwhile``, if that is given.
    """

    def decorated(find: Callable[P, V]) -> Callable[P, V]:
        @wraps(find)
        def found(owner: Any, *asked: Any) -> Any:
            answers = getattr(owner, tables)[find]
            if (answer := answers.get(asked, _MISSING)) is _MISSING:
                if meanwhile is _MISSING:
                    answer = find(owner, *asked)  # type: ignore[call-arg]
                else:
                    with provisional(answers, asked, meanwhile):
                        answer = find(owner, *asked)  # type: ignore[call-arg]
                # what was found may have dropped the tables
                getattr(owner, tables)[find][asked] = answer
            return answer

        return cast(Callable[P, V], found)

    return decorated


class NormalForms(Protocol):
    """Normal forms of terms, and what operators make of normal forms."""

    def form(self, root: Expr) -> LinearForm:
        """The normal form of an integer term."""

    def condition(self, root: Expr) -> Expr:
        """The normal form of a bool term, as a term."""

    def atom(self, term: Expr) -> LinearForm:
        """The form of an atom just made: what it is known to equal, or itself."""

    def times(self, x: LinearForm, y: LinearForm) -> LinearForm:
        """The product of two forms."""

    def quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        """The normal form of ``x // divisor``."""

    def quotient_by(self, x: LinearForm, n: int) -> LinearForm:
        """The normal form of ``x // n`` for a positive integer ``n``."""

    def remainder(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        """The normal form of ``x % divisor``."""

    def truncated(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        """The normal form of ``tdiv(x, divisor)``."""

    def extreme(self, op: str, operands: Iterable[LinearForm]) -> LinearForm:
        """The normal form of the ``min`` or ``max`` of forms."""

    def selection(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
        """The normal form of ``where(condition, x, y)``; each branch knows the condition already."""

    def at_least_zero(self, form: LinearForm) -> Expr:
        """The normal form of ``form >= 0``."""

    def equal_zero(self, form: LinearForm) -> Expr:
        """The normal form of ``form == 0``."""

    def negate(self, condition: Expr) -> Expr:
        """The complement of a condition in normal form."""

    def junction(self, op: str, parts: Sequence[Expr]) -> Expr:
        """``and`` or ``or`` over conditions in normal form."""

    def in_context(self, junction: Expr) -> Expr:
        """A junction with each member simplified by assuming the others (under ``or``: their complements)."""

    def joined_ranges(self, one: Expr, other: Expr) -> Expr | None:
        """Two reductions as one, if the range of the second begins where that of the first ends."""

    def difference_of_ranges(self, one: Expr, other: Expr) -> LinearForm | None:
        """One sum over a range less another with the same body, if the ranges overlap: what only one of them has."""

    def in_digits(self, x: LinearForm) -> tuple[LinearForm, dict[Expr, LinearForm]]:
        """``x`` with ``A`` written as ``n*(A//n) + A%n`` for its quotients, and the forms of the remainders ``A%n``."""

    def by_factor(self, x: LinearForm) -> tuple[LinearForm, LinearForm] | None:
        """``whole`` and ``rest`` of ``x = f*whole + rest``, with a factor ``f`` of its terms, and ``0 <= rest < f``.

        ``None`` if there is none. ``x`` is below zero where ``whole`` is, and zero where both are.
        """


class Values(Protocol):
    """What is known of values: bounds, signs, quotients read as divisions, and values at sample points."""

    def range(self, atom: Expr) -> Bounds:
        """Inclusive bounds of an atom under the facts."""

    def bounds(self, form: LinearForm) -> Bounds:
        """The tightest bounds known."""

    def plain_bounds(self, form: LinearForm) -> Bounds:
        """Bounds that treat the atoms as independent, except for minima and the other terms of the sum."""

    def alignment(self, form: LinearForm) -> tuple[int, int]:
        """``m`` and ``r`` if all values of a form are ``r`` modulo ``m``; of a literal, 0 and its value."""

    def divisions(self, atom: Expr) -> tuple[Division, ...]:
        """The ways to read an atom as a quotient, or as a divisor times its quotient."""

    def divisions_in(self, form: LinearForm, atom: Expr) -> Iterator[Division]:
        """The divisions of ``atom`` whose dividends ``form`` holds."""

    def is_proper_remainder(self, x: LinearForm, divisor: LinearForm) -> bool:
        """Whether ``0 <= x < divisor`` was proved."""

    def is_never_negative(self, form: LinearForm) -> bool:
        """Whether ``form >= 0`` was proved."""

    def is_nonzero(self, form: LinearForm) -> bool:
        """Whether the form is known never to be zero."""

    def ends(self, comparison: Expr) -> tuple[LinearForm, LinearForm]:
        """A form that is zero where a comparison holds, and one that is zero where it fails; ``ZERO`` if none is known.

        For ``x < 1`` and an ``x`` in [0, 1] these are ``-x`` and ``1 - x``.
        """

    def lower_value(self, quotient: Expr) -> tuple[Expr, int] | None:
        """The condition under which a quotient has the lower of its two values, and that value; else ``None``."""

    def two_values(self, form: LinearForm) -> tuple[Expr, int, int] | None:
        """The condition under which a form has the lower of its two values, and both values; else ``None``."""

    # at sample points, which show that something can hold: no proof of the contrary is tried then

    def witnessed(self) -> Array:
        """At which sample points the facts hold."""

    def sampled(self, form: LinearForm) -> Array:
        """The values of a form at the sample points."""

    def sampled_where(self, conditions: Iterable[Expr]) -> Array:
        """At which sample points all conditions hold."""


class Assumptions(Protocol):
    """What is known to hold, and theories that assume further conditions."""

    def read_facts(self, facts: Sequence[Expr]) -> None:
        """Add conditions that hold wherever terms are evaluated; a child knows those of its parent already."""

    def assuming(self, fact: Expr) -> Self | None:
        """The theory that knows ``fact`` too; ``None`` if it cannot hold; ``self`` if it adds nothing.

        Also ``self`` if :class:`Work` allows no more theories, or they are nested too deep.
        """

    def inside(self, term: Expr) -> Self | None:
        """What is known in the body of a reduction; ``None`` if its range is empty."""

    def assuming_all(self, facts: Sequence[Expr]) -> Self | None:
        """As :meth:`assuming`, for several facts at once; the theory is not memoised."""

    def is_defined(self, term: Expr) -> bool:
        """Whether no divisor in ``term``, wherever it stands, can be zero."""

    def may_be_undefined(self, term: Expr) -> bool:
        """Whether ``term`` may divide by zero where it is evaluated, by what is known."""

    def excludes(self, condition: Expr) -> bool:
        """Whether what is known contradicts ``condition``."""

    def every_point(self, terms: Iterable[Expr]) -> Points | None:
        """All points, of the variables of ``terms`` and of the facts, at which these hold.

        ``None`` if there are too many, or one depends on an element of an array or an index of a reduction around it.
        """


class Arithmetic(NormalForms, Values, Assumptions):
    """A theory: its answers under known facts, and its tables.

    A theory that assumes more is its child, which starts with the facts of its parent.
    """

    #: Whether terms that are known to be equal have one normal form, however they are written.
    is_canonical = True

    def __init__(self, facts: Iterable[Expr] = (), parent: Self | None = None, work: Work | None = None) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self._share(parent, work or Work())
        self._copy_facts(parent)
        self._clear_forms()
        self._clear_values()
        # whether a fact said more than was known
        self.changed = False
        # what is being computed, so that it is not begun again within itself: atoms that are replaced by what they
        # equal, reductions, junctions
        self._replacing: set[Expr] = set()
        self.reducing: set[Expr] = set()
        self._joining: set[tuple[str, frozenset[Expr]]] = set()
        # the depth of recursion: in ranges and divisions of atoms, in quotients by what is no literal, in bit
        # operators, and in forms multiplied by divisors
        self._open = self._laws = self.nested_bits = self.multiplied = 0
        known = list(facts)
        if parent or known:
            self.read_facts(known)

    def _share(self, parent: Self | None, work: Work) -> None:
        """What does not depend on facts, and is shared by all theories that stem from one."""
        self.work: Work = parent.work if parent else work
        self.variables: VariableSets = parent.variables if parent else VariableSets()
        self.simplicity: Simplicity = parent.simplicity if parent else Simplicity()
        # the values of terms at the sample points
        self.samples: dict[Expr, Array] = parent.samples if parent else {}
        # these two are asked for so often that a call of a decorated function would take time
        self._inner: dict[Expr, LinearForm] = parent._inner if parent else {}
        self._gaps: dict[Expr, tuple[LinearForm, ...]] = parent._gaps if parent else {}
        self.shared_answers: Answers = parent.shared_answers if parent else defaultdict(dict)
        # the minima that were made: while there are none, none is looked for
        self.minimum_atoms: set[Expr] = parent.minimum_atoms if parent else set()
        # the disjunctions that sums are being split by
        self.splitting: set[Expr] = parent.splitting if parent else set()

    def _copy_facts(self, parent: Self | None) -> None:
        """What facts say: at first, those of the parent."""
        # the variables in facts of this theory; a term without them has the same normal form in the parent
        self.touched: int = parent.touched if parent else 0
        # bounds of atoms and of sums
        self.narrowed: dict[Expr, Bounds] = dict(parent.narrowed) if parent else {}
        self.directions: list[tuple[LinearForm, Bounds]] = list(parent.directions) if parent else []
        # solved variables, products that equal others, sums that are not zero, decided conditions
        self.solved: dict[Expr, LinearForm] = dict(parent.solved) if parent else {}
        self.equal_products: list[EqualProducts] = list(parent.equal_products) if parent else []
        self.nonzero: set[LinearForm] = set(parent.nonzero) if parent else set()
        self.known: dict[Expr, Expr] = dict(parent.known) if parent else {}
        # by condition, an equal one that bounds its variables
        self.by_bounds: dict[Expr, Expr] = {}
        # atoms that are known to equal other forms
        self.equal: dict[Expr, LinearForm] = dict(parent.equal) if parent else {}
        # of the structural theory: by dividend, a divisor and the known remainder
        self.residues: dict[Expr, tuple[int, int]] = dict(parent.residues) if parent else {}

    def _clear_forms(self) -> None:
        """Drop memoised normal forms; bounds and proofs hold however terms are written."""
        # by term, its normal form; the keys of both tables
        self.forms: dict[Expr, LinearForm] = {}
        self.conditions: dict[Expr, Expr] = {}
        self.traversed: set[Expr] = set()
        # results of operators, by their operands in normal form
        self.answers: Answers = defaultdict(dict)
        self._divisions: dict[Expr, tuple[Division, ...]] = {}
        self._quotients: dict[tuple[LinearForm, int], LinearForm] = {}
        # by minimum, a dividend and a divisor in whose quotient it is, and that quotient
        self.quotients_of_cases: dict[Expr, tuple[LinearForm, int, LinearForm]] = {}
        self.minima: dict[frozenset[LinearForm], LinearForm] = {}
        self._junctions: dict[tuple[str, frozenset[Expr]], Expr] = {}

    def _clear_values(self) -> None:
        """Drop memoised bounds, proofs, and the sample points at which the facts hold."""
        self._ranges: dict[Expr, Bounds] = {}
        self._bounds: dict[LinearForm, Bounds] = {}
        self._by_cases: dict[LinearForm, Bounds] = {}
        self.proofs: Answers = defaultdict(dict)
        self._witnessed: Array | None = None

    def _forget(self) -> None:
        """Drop what was memoised under fewer facts."""
        self._clear_forms()
        self._clear_values()
        self.changed = True

    def equations(self, outside: Self | None = None) -> list[LinearForm]:
        """Sums that are known to be zero, except those that ``outside`` knows too."""
        known = outside.directions if outside is not None else []
        points = [item for item in self.directions if item[1][0] == item[1][1] and item not in known]
        return [direction.shifted(-value) for direction, (value, _) in points]

    def inner(self, term: Expr) -> LinearForm:
        """The form of an operand of an atom, a term that is in normal form already."""
        if (found := self._inner.get(term)) is None:
            found = self._inner[term] = read(term)
        return found

    def difference(self, comparison: Expr) -> LinearForm | None:
        """The form that is zero, or at least zero, iff a comparison holds; ``None`` of other conditions and ``ne``."""
        if comparison.op not in ("eq", "lt", "le") or comparison.args[0].is_bool:
            return None
        left, right = map(self.inner, comparison.args)
        return right.plus(left, -1).shifted(-1 if comparison.op == "lt" else 0)

    def remainders_in(self, form: LinearForm) -> Iterator[Remainder]:
        """The ways to read a form as a multiple of a remainder by a literal, and a rest.

        ``x*3 - x//4*12 + y`` is ``3*(x % 4) + y``.
        """
        for quotient, k in form.terms.items():
            n = literal_divisor(quotient)
            if n and k % n == 0:
                dividend = self.inner(quotient.args[0])
                yield Remainder(quotient, dividend, n, -k // n, form.without(quotient).plus(dividend, k // n))

    # minima, which are read as the cases that they choose from

    def gaps(self, atom: Expr) -> tuple[LinearForm, ...]:
        """The operands of a minimum, 0 among them."""
        if (found := self._gaps.get(atom)) is None:
            found = self._gaps[atom] = tuple([self.inner(part) for part in chain_members(atom, "min")])
        return found

    @kept("shared_answers")
    def _minima_in_gaps(self, atom: Expr) -> frozenset[Expr]:
        """The minima that the operands of a minimum are sums of."""
        return frozenset([a for gap in self.gaps(atom) for a in gap.terms if a.op == "min"])

    def gap(self, atom: Expr) -> LinearForm | None:
        """The operand of a minimum beside 0; ``None`` if there are several."""
        found = [gap for gap in self.gaps(atom) if gap != ZERO]
        return found[0] if len(found) == 1 else None

    def cases(self, form: LinearForm, atom: Expr) -> list[LinearForm]:
        """``form`` with a minimum in it replaced by each of its operands."""
        rest = form.without(atom)
        return [rest.plus(gap, form.terms[atom]) for gap in self.gaps(atom)]

    def outer_minimum(self, form: LinearForm) -> Expr | None:
        """A minimum in ``form`` that is not inside another: the first in the fixed order."""
        minima = [a for a in form.terms if a.op == "min"]
        if len(minima) < 2:
            return minima[0] if minima else None
        left = set(minima)
        # those with many inside come first: the outermost of a nest has all others
        for atom in sorted(minima, key=lambda a: -len(self._minima_in_gaps(a))):
            left -= self._minima_in_gaps(atom)
            if len(left) == 1:
                break
        return min(left, key=lambda a: a.key)

    def operand_count(self, form: LinearForm, most: int) -> int:
        """How many cases without minima ``form`` has; ``most + 1`` if there are more than ``most``."""
        found, stack = 0, [form]
        while stack and found + len(stack) <= most:
            part = stack.pop()
            if (atom := self.outer_minimum(part)) is None:
                found += 1
            else:
                stack += self.cases(part, atom)
        return found if not stack else most + 1

    def split_minimum(self, form: LinearForm, most: int) -> Expr | None:
        """The minimum by which a form is split into cases; ``None`` if it has none, or more than ``most`` of these."""
        atom = self.outer_minimum(form)
        return None if atom is None or self.operand_count(form, most) > most else atom

    def quotient_by_bounds(self, form: LinearForm, n: int) -> int | None:
        """``form // n`` if its bounds tell it: all its values lie between two adjacent multiples of ``n``."""
        low, high = self.bounds(form)
        return low // n if low // n == high // n else None

    # how much is done, and what is known

    def late_or_raise(self) -> bool:
        """As :meth:`Work.late_or_raise`."""
        return self.work.late_or_raise()

    def has_time_for(self, form: LinearForm) -> bool:
        """Whether the terms of a form may be compared pairwise: no wide form, nor a long one once the time is up."""
        length = len(form.terms)
        return length <= LIMITS.late_terms or (length <= LIMITS.wide_terms and not self.late_or_raise())

    def outermost(self) -> Self:
        """The theory without a parent, which knows only what holds everywhere."""
        return self if self.parent is None else self.parent.outermost()

    def holding(self) -> list[Expr]:
        """What is known to hold."""
        return [fact for fact, value in self.known.items() if value is TRUE]

    # normal forms of terms

    def value(self, term: Expr) -> LinearForm | Expr:
        """The normal form of any term: equal for terms that are known to be equal."""
        return self.condition(term) if term.is_bool else self.form(term)

    def read_as(self, term: Expr, form: LinearForm) -> None:
        """Take ``form``, which equals ``term``, for its normal form."""
        self.forms[term] = form
        self.traversed.add(term)


@contextmanager
def begun[T](items: set[T], item: T) -> Iterator[None]:
    """Keep an item among those that have been begun, so that it is not begun again within itself."""
    items.add(item)
    try:
        yield
    finally:
        items.discard(item)


@contextmanager
def provisional[K, V](memo: dict[K, V], key: K, answer: V) -> Iterator[None]:
    """Answer those who ask for ``key`` while it is being found; forget the answer if that is interrupted."""
    memo[key] = answer
    try:
        yield
    except BaseException:
        memo.pop(key, None)
        raise


def is_negative(condition: Expr) -> bool:
    """Whether a condition is written as the complement of another."""
    return condition.op in ("le", "ne", "not")


class OverdueError(Exception):
    """The deadline and the grace after it are over: the theory stops without an answer."""


@contextmanager
def late_after(until: float) -> Iterator[None]:
    """Set the time after which theories that are created in this context do less, unless they are given a ``Work``."""
    token = _LATE.set(min(until, _LATE.get()))
    try:
        yield
    finally:
        _LATE.reset(token)


@dataclass
class Work:
    """The effort that a theory and those made from it may still spend; without it, answers are right but weaker."""

    #: Theories that may still be made by assuming a further condition, and steps of refutation.
    contexts: int = LIMITS.contexts
    steps: int = LIMITS.shared_steps
    #: The times of ``time.perf_counter()`` after which only cheap methods are used, and after which no answer is given.
    until: float = field(default_factory=_LATE.get)
    end: float = inf

    @classmethod
    def ending(cls, until: float) -> Self:
        """Work until a time, and a grace period after it for what was begun by then."""
        now = time.perf_counter()
        return cls(until=until, end=max(now, until) + GRACE * max(0.0, until - now) + LEAST_GRACE)

    def late_or_raise(self) -> bool:
        """Whether the time is up, so that only cheap methods are used; raise :class:`OverdueError` after ``end``."""
        now = time.perf_counter()
        if now > self.end:
            raise OverdueError
        return now > self.until

    def is_late(self) -> bool:
        """Whether the time is up, for a search that can stop at any point."""
        return time.perf_counter() > self.until

    def is_over(self) -> bool:
        """Whether the run ends now, though what it began is not done."""
        return time.perf_counter() > self.end
