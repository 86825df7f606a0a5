"""What all parts of a theory share: its tables, and what a part asks of those above it.

A part is a class of lemmas on the one below, or a module of functions of a theory. None has tables of its own: all are
here, by what makes them stale, so that a further fact drops what was found without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from numpy.typing import NDArray

from eqsat.lang.expr import TRUE, Expr
from eqsat.lang.ops import Bounds
from eqsat.lang.traversal import Simplicity, VariableSets
from eqsat.theory.forms import Division, EqualProducts, LinearForm, read
from eqsat.theory.known_bits import KnownBits
from eqsat.theory.limits import LIMITS
from eqsat.theory.witnesses import Witnesses
from eqsat.theory.work import Work


class Arithmetic(ABC):
    """The tables of a theory. One with more facts is a child, which takes over what its parent knows."""

    def __init__(self, parent: Self | None, work: Work | None) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self._share(parent, work or Work())
        self._copy_facts(parent)
        self._clear_forms()
        self._clear_values()
        # whether a fact said more than was known
        self.changed = False
        # what is being found: atoms that what they equal replaces, junctions that are joined
        self._replacing: set[Expr] = set()
        self._joining: set[tuple[str, frozenset[Expr]]] = set()
        # how deep searches are: for divisors of atoms, in quotients by what is no literal, in bit operators, and in
        # forms multiplied by such divisors
        self._open = self._laws = self.nested_bits = self.multiplied = 0

    def _share(self, parent: Self | None, work: Work) -> None:
        """What holds whatever is known, and is shared with all relatives."""
        self.work: Work = parent.work if parent else work
        self.variables: VariableSets = parent.variables if parent else VariableSets()
        self.simplicity: Simplicity = parent.simplicity if parent else Simplicity()
        self.witnesses: Witnesses = parent.witnesses if parent else Witnesses()
        self._inner: dict[Expr, LinearForm] = parent._inner if parent else {}
        # of minima their operands, and the minima that these are sums of
        self._gaps: dict[Expr, tuple[LinearForm, ...]] = parent._gaps if parent else {}
        self._nested: dict[Expr, frozenset[Expr]] = parent._nested if parent else {}
        # whether any minimum is about
        self.has_minima: list[bool] = parent.has_minima if parent else [False]
        # the alternatives that a sum is being taken apart by
        self.alternatives: set[Expr] = parent.alternatives if parent else set()

    def _copy_facts(self, parent: Self | None) -> None:
        """What facts say: those of the parent, and soon more."""
        # which variables they speak of; a term without them means here what it means to the parent
        self.touched: int = parent.touched if parent else 0
        # bounds of atoms and of sums
        self.narrowed: dict[Expr, Bounds] = dict(parent.narrowed) if parent else {}
        self.directions: list[tuple[LinearForm, Bounds]] = list(parent.directions) if parent else []
        # solved variables, products that equal others, sums that are not zero, decided conditions
        self.solved: dict[Expr, LinearForm] = dict(parent.solved) if parent else {}
        self.equal_products: list[EqualProducts] = list(parent.equal_products) if parent else []
        self.nonzero: set[LinearForm] = set(parent.nonzero) if parent else set()
        self.known: dict[Expr, Expr] = dict(parent.known) if parent else {}
        # conditions said otherwise, by bounds of their variables
        self.by_bounds: dict[Expr, Expr] = {}
        # atoms that are known to equal other forms, and those forms as quotients
        self.equal: dict[Expr, LinearForm] = dict(parent.equal) if parent else {}
        self.readings: dict[Expr, list[Division]] = dict(parent.readings) if parent else {}
        # where no normal form says so, by dividend the divisor and the remainder, and what values leave modulo what
        self.residues: dict[Expr, tuple[int, int]] = {}
        self._alignments: dict[Expr, tuple[int, int]] = {}

    def _clear_forms(self) -> None:
        """Drop what was memoised of normal forms; bounds and proofs hold however terms are written."""
        # by term, as it is written, its normal form; the keys of both
        self.forms: dict[Expr, LinearForm] = {}
        self.conditions: dict[Expr, Expr] = {}
        self.traversed: set[Expr] = set()
        # theories that know a condition too
        self.children: dict[Expr, Self | None] = {}
        # by operands in normal form, what these make
        self._divisions: dict[Expr, tuple[Division, ...]] = {}
        self._pairs: dict[tuple[Expr, Expr], Division | None] = {}
        self._quotients: dict[tuple[LinearForm, int], LinearForm] = {}
        self.bits: dict[LinearForm, KnownBits] = {}
        self.minima: dict[frozenset[LinearForm], LinearForm] = {}
        self.selections: dict[tuple[Expr, LinearForm, LinearForm], LinearForm] = {}
        self._comparisons: dict[LinearForm, Expr] = {}
        self._complements: dict[Expr, Expr] = {}
        self._junctions: dict[tuple[str, frozenset[Expr]], Expr] = {}
        self._lower_values: dict[Expr, tuple[Expr, int] | None] = {}

    def _clear_values(self) -> None:
        """Drop what was memoised of values: bounds, proofs, and the sample points at which the facts hold."""
        self._ranges: dict[Expr, Bounds] = {}
        # with how many correlations were looked for
        self._bounds: dict[LinearForm, tuple[int, int, int]] = {}
        self._by_cases: dict[LinearForm, Bounds] = {}
        self._decisions: dict[LinearForm, Expr | None] = {}
        self._nonzero_proofs: dict[LinearForm, bool] = {}
        self._witnessed: NDArray[Any] | None = None

    def _forget(self) -> None:
        """Drop what was memoised under fewer facts."""
        self._clear_forms()
        self._clear_values()
        self.changed = True

    def inner(self, term: Expr) -> LinearForm:
        """The form of an operand of an atom, which is in normal form already."""
        found = self._inner.get(term)
        if found is None:
            found = self._inner[term] = read(term)
        return found

    def late_or_raise(self) -> bool:
        """As :meth:`Work.late_or_raise`: what is said from then on is right, but less."""
        return self.work.late_or_raise()

    def has_time_for(self, form: LinearForm) -> bool:
        """Whether terms of a form are compared with each other: not of a wide one, nor of a long one that is late."""
        length = len(form.terms)
        return length <= LIMITS.late_terms or (length <= LIMITS.wide_terms and not self.late_or_raise())

    def outermost(self) -> Self:
        """The theory that knows what holds everywhere alone."""
        return self if self.parent is None else self.parent.outermost()

    def holding(self) -> list[Expr]:
        """What is known to hold."""
        return [fact for fact, value in self.known.items() if value is TRUE]

    def witnessed(self) -> NDArray[Any]:
        """At which sample points the facts hold."""
        if self._witnessed is None:
            self._witnessed = self.witnesses.where_all(self.holding())
        return self._witnessed

    # normal forms, and what these say, as the parts above find it

    @abstractmethod
    def form(self, root: Expr) -> LinearForm:
        """The normal form of an integer term."""

    @abstractmethod
    def condition(self, root: Expr) -> Expr:
        """The normal form of a bool term, as a term."""

    @abstractmethod
    def bounds(self, form: LinearForm) -> Bounds:
        """The tightest bounds known."""

    @abstractmethod
    def plain_bounds(self, form: LinearForm) -> Bounds:
        """Bounds that treat the atoms as independent, but for minima and what stands beside them."""

    @abstractmethod
    def times(self, x: LinearForm, y: LinearForm) -> LinearForm:
        """The product of two forms."""

    @abstractmethod
    def quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        """The normal form of ``x // divisor``."""

    @abstractmethod
    def quotient_by(self, x: LinearForm, n: int) -> LinearForm:
        """The normal form of ``x // n`` for a positive integer ``n``."""

    @abstractmethod
    def extreme(self, op: str, operands: Iterable[LinearForm]) -> LinearForm:
        """The normal form of the ``min`` or ``max`` of forms."""

    @abstractmethod
    def selection(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
        """The normal form of ``where(condition, x, y)``; each branch knows the condition already."""

    @abstractmethod
    def at_least_zero(self, form: LinearForm) -> Expr:
        """The normal form of ``form >= 0``."""

    @abstractmethod
    def equal_zero(self, form: LinearForm) -> Expr:
        """The normal form of ``form == 0``."""

    @abstractmethod
    def negate(self, condition: Expr) -> Expr:
        """The complement of a condition in normal form."""

    @abstractmethod
    def is_never_negative(self, form: LinearForm) -> bool:
        """Whether ``form >= 0`` was proved."""
