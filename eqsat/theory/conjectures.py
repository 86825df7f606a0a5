"""Conjectures: equalities read off sample points, kept only if they hold at every point.

The laws of the theory are about one quotient at a time. Here all atoms of some normal forms are evaluated at the same
points. It is a conjecture that an atom is an integer combination of simpler ones if it is so at every sample point, and
so for conditions that are constant or agree. A conjecture is proved by evaluating it over its whole domain, or over one
period; nothing is concluded from samples alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from math import gcd, inf, sqrt
from operator import or_

from eqsat.lang.evaluation import Points, evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.lang.ops import COMPARISONS, Array, np
from eqsat.lang.properties import facts_on
from eqsat.lang.sampling import all_hold, grid, grid_where, select
from eqsat.lang.traversal import Simplicity, chain_members, domain_size, topological, variables
from eqsat.theory.forms import LinearForm, atom_form, chained, literal_divisor, opposite, read, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.periods import constant_remainder, holds_in_a_period

#: Operators of the atoms about which conjectures are made.
_ATOMS = frozenset({"floordiv", "where", "min", "max"})


@dataclass(frozen=True)
class Conjecture:
    """An equality that was read off sample points and then proved.

    Attributes
    ----------
    before, after : Expr
        Terms in normal form, both integers or both conditions; ``after`` is not larger than ``before``.
    facts : tuple of Expr
        The conditions under which they are equal.
    proof : str
        How that was decided: ``"exhaustive"``, by evaluation at every point, or at every one of a period.
    """

    before: Expr
    after: Expr
    facts: tuple[Expr, ...]
    proof: str = "exhaustive"


@dataclass
class Asserted:
    """What was proved: conjectures, simpler ones first, or that the facts are impossible.

    If there are no conjectures, :attr:`by_bounds` has conditions that are shorter as bounds of their variables.
    """

    conjectures: list[Conjecture] = field(default_factory=list)
    by_bounds: list[Conjecture] = field(default_factory=list)
    impossible: bool = False


def find_conjectures(
    roots: Iterable[Expr],
    facts: Sequence[Expr],
    solved: Mapping[Expr, LinearForm] | None = None,
    undefined: Collection[Expr] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> Asserted:
    """Equalities between the atoms of ``roots``, and between their conditions, wherever all ``facts`` hold.

    Parameters
    ----------
    roots : iterable of Expr
        Terms in normal form.
    facts : sequence of bool Expr
        Conditions known to hold.
    solved : mapping of Expr to LinearForm, optional
        Variables that the facts solve for: combinations have the quotients of these solutions in place of them.
    undefined : collection of Expr
        Terms that may divide by zero where the facts hold. They are on neither side of a conjecture, as their values
        there are arbitrary.
    is_over : callable, optional
        Whether the time is over: what is conjectured then is not proved.

    >>> from eqsat.lang.expr import var
    >>> i = var("i", 0, 99)
    >>> for conjecture in find_conjectures([(i + 1) // 2, i // 2], []).conjectures:
    ...     print(conjecture.before, "is", conjecture.after)
    (i + 1)//2 is i - i//2
    """
    roots = list(roots)
    parts = _Parts(roots, undefined)
    if len(parts.atoms) > LIMITS.conjecture_atoms:
        return Asserted()
    sums = [found for root in roots if not root.is_bool and root not in undefined and (found := parts.sum(root))]
    if not parts.are_worth_conjectures(facts) and not any(found.quotients == 1 and found.period for found in sums):
        return Asserted()
    terms = [*parts.atoms, *parts.conditions]
    members = [member for fact in facts for member in chain_members(fact, "and")]
    members = facts_on(terms, members)
    names = sorted(variables([*terms, *members]), key=_name)
    if not names or any(max(-v.vmin, v.vmax) > LIMITS.conjectured_value for v in names):
        return Asserted()
    points, complete = _points(names, members)
    if not len(points[_name(names[0])]):
        return Asserted(impossible=complete)
    conjecturer = _Conjecturer(parts, sums, members, points, undefined, is_over)
    conjecturer.conjecture_combinations(solved or {}, names, complete)
    conjecturer.conjecture_remainders()
    conjecturer.conjecture_conditions()
    return conjecturer.asserted


def _name(variable: Expr) -> str:
    return str(variable.value)


class _Parts:
    """The atoms in terms in normal form, and their conditions that contain atoms or are nested."""

    def __init__(self, roots: Collection[Expr], undefined: Collection[Expr]) -> None:
        # the variables and quotients below each term, as bit sets
        self._below: dict[Expr, int] = {}
        self._variables: dict[Expr, int] = {}
        self._quotients = 0
        self.atoms: list[Expr] = []
        conditions: list[Expr] = []
        # what contains an atom or a chain in another one; the chains that are part of a longer one
        composed: set[Expr] = set()
        partial: set[Expr] = set()
        for place, term in enumerate(topological(roots)):
            self._note_below(term, 1 << place)
            is_chain, is_atom = term.op in ("and", "or"), term.op in _ATOMS and not term.is_bool
            same = {a for a in term.args if a.op == term.op} if is_chain else set()
            partial |= same
            nests = is_chain and any(a.op in ("and", "or") for a in term.args if a not in same)
            if is_atom or nests or not composed.isdisjoint(term.args):
                composed.add(term)
            if is_atom and term not in undefined:
                self.atoms.append(term)
            if (is_chain or term.op in COMPARISONS) and term in composed and term not in undefined:
                conditions.append(term)
        # a partial chain depends on the order of the members: only whole chains are read
        partial.difference_update(roots)
        self.conditions = [c for c in conditions if c not in partial]

    def _note_below(self, term: Expr, bit: int) -> None:
        """Note the variables and quotients below a term, those of its operands being known; it may be one itself."""
        below = reduce(or_, [self._below[arg] for arg in term.args], 0)
        if term.op == "var":
            below = self._variables[term] = bit
        elif term.op == "floordiv":
            below |= bit
            self._quotients |= bit
        self._below[term] = below

    def are_worth_conjectures(self, facts: Sequence[Expr]) -> bool:
        """Whether the theory may have missed an equality: it relates each atom to facts, but not two atoms."""
        if any(c.op in ("and", "or") for c in self.conditions):
            return True
        if facts or self.conditions:
            return len(self.atoms) > 1 or (bool(facts) and any(a.op == "floordiv" for a in self.atoms))
        met = 0
        for atom in self.atoms:
            if met & self._below[atom] & ~self._quotients:
                return True
            met |= self._below[atom]
        return False

    def sum(self, term: Expr) -> _Sum | None:
        """One of the roots as a sum in two parts; ``None`` if it has no quotient, or is a single atom."""
        form = read(term)
        below = reduce(or_, [self._below[atom] for atom in form.terms if atom.op != "var"], 0)
        quotients = (below & self._quotients).bit_count()
        if not quotients or form.single() is not None:
            return None
        names = tuple([v for v, bit in self._variables.items() if bit & below])
        alone = LinearForm({v: k for v, k in form.terms.items() if v.op == "var" and v not in names}, 0)
        nested = form.plus(alone, -1)
        period = LIMITS.conjectured_value if quotients > 1 else _period(nested)
        return _Sum(term, to_expr(nested), alone, names, quotients, period)


@dataclass(frozen=True)
class _Sum:
    """A sum in two parts: ``nested`` has the quotients and all variables in them, ``alone`` the other variables."""

    whole: Expr
    nested: Expr
    alone: LinearForm
    names: tuple[Expr, ...]
    quotients: int
    period: int


def _period(form: LinearForm) -> int:
    """The magnitude of the coefficient of the one quotient in a sum, if the sum may be a remainder by it; else 0.

    It is 0 if the other terms are a multiple of the dividend, as the sum is a remainder then, or cheap as it is. It is
    also 0 if the dividend has a term with coefficient 1 or -1: other sums may share its quotient.
    """
    others = [atom for atom in form.terms if atom.op != "var"]
    if len(others) != 1 or others[0].op != "floordiv":
        return 0
    dividend, step = read(others[0].args[0]), form.terms[others[0]]
    if any(abs(k) == 1 for k in dividend.terms.values()):
        return 0
    rest = form.without(others[0])
    scale = rest.scale_of(dividend)
    return abs(step) if rest.terms and not (scale and dividend.times(scale).terms == rest.terms) else 0


class _Conjecturer:
    """Conjectures about the parts of some terms, read off their values at ``points``, each proved when it is made."""

    def __init__(
        self,
        parts: _Parts,
        sums: Sequence[_Sum],
        members: Sequence[Expr],
        points: Points,
        undefined: Collection[Expr],
        is_over: Callable[[], bool],
    ) -> None:
        self.points, self.undefined, self.is_over = points, frozenset(undefined), is_over
        # the facts, and the variables of each
        self.facts = {fact: frozenset(variables([fact])) for fact in members}
        self.asserted = Asserted()
        simplicity = Simplicity()
        self.size = simplicity.size
        self.atoms, self.conditions = [sorted(of, key=simplicity.__getitem__) for of in (parts.atoms, parts.conditions)]
        self.chains = {c: chain_members(c, c.op) for c in self.conditions if c.op in ("and", "or")}
        self.sums = [found for found in sums if all(_name(v) in points for v in found.names)]
        self.affine: set[Expr] = set()
        terms = [*self.atoms, *self.conditions, *(found.nested for found in self.sums)]
        terms += [member for chain in self.chains.values() for member in chain]
        count = len(next(iter(points.values())))
        values = [np.broadcast_to(x, count) for x in evaluate(terms, points, total=True)]
        self.values = dict(zip(terms, values, strict=True))

    def conjecture_combinations(self, solved: Mapping[Expr, LinearForm], names: Sequence[Expr], complete: bool) -> None:
        """Sums, then atoms, that are integer combinations of variables and of simpler atoms.

        ``complete`` says that the points are all there are.
        """
        free = [v for v in names if v not in solved] if self.atoms else []
        basis = _Basis(self.points, free, len(self.atoms), 0 if complete else LIMITS.spare_points)
        coordinates = {a for form in solved.values() for a in form.terms if a.op != "var"}.intersection(self.atoms)
        for atom in sorted(coordinates, key=lambda a: a.key):
            basis.add(atom, self.values[atom])
        for found in self.sums:
            if self._prove_sum(found, basis.combination(self.values[found.nested])):
                self.affine.add(found.whole)
        for atom in self.atoms:
            if atom in coordinates:
                continue
            form = basis.combination(self.values[atom])
            if form is None or not self._is_simpler(form, atom) or not self._prove(atom, to_expr(form)):
                basis.add(atom, self.values[atom])

    def conjecture_remainders(self) -> None:
        """Sums of quotients that are one remainder, ``low + (affine - low) % m``.

        Each variable steps such a sum by one amount modulo ``m``. A permutation of axes turns an index ``x`` into
        ``x//a + x%a*b``, which is ``b*x`` modulo ``a*b - 1``; so is a chain of them, whose nested digits are one
        remainder.
        """
        sums = [found for found in self.sums if found.whole not in self.affine]
        left = {found: steps for found in sums if (steps := _Steps(self.values[found.nested])).span < found.period}
        for v in dict.fromkeys(v for found in left for v in found.names):
            stepped, here = [found for found in left if v in found.names], self.points[_name(v)]
            there = {**self.points, _name(v): np.minimum(here + 1, v.vmax)}
            # the facts without the variable hold at the points, so they hold after the step too
            valid = (here < v.vmax) & all_hold([fact for fact, used in self.facts.items() if v in used], there)
            values_there = evaluate([found.nested for found in stepped], there, total=True)
            for found, changed in zip(stepped, values_there, strict=True):
                if not left[found].add(v, (changed - left[found].values)[valid]):
                    del left[found]
        for found, steps in left.items():
            if steps.modulus:
                self._prove_sum(found, steps.remainder(self.points))

    def conjecture_conditions(self) -> None:
        """Conditions that are constant, that agree with another one, or that need fewer members.

        If nothing was asserted, also those that are shorter as bounds of their variables.
        """
        simplest: dict[bytes, Expr] = {}
        for condition in self.conditions:
            values = self.values[condition]
            same = TRUE if values.all() else FALSE if not values.any() else None
            if same is None:
                same = simplest.setdefault(values.tobytes(), condition)
            if same is not condition:
                self._prove(condition, same)
            elif (chain := self.chains.get(condition)) is not None:
                self._prove(condition, self._needed(condition.op, chain, {m: self.values[m] for m in chain}))
        for condition in self.conditions if not self.asserted.conjectures else ():
            by_bounds = self._by_bounds(condition, self.chains.get(condition, [condition]))
            if (proved := self._proved(condition, by_bounds)) is not None:
                self.asserted.by_bounds.append(proved)

    def _prove_sum(self, found: _Sum, form: LinearForm | None) -> bool:
        """As :meth:`_prove`, of a sum with another form for its nested part, if that is simpler."""
        if form is None:
            return False
        term = to_expr(found.alone.plus(form))
        return self.size(term) < self.size(found.whole) and self._prove(found.whole, term)

    def _prove(self, before: Expr, after: Expr | None) -> bool:
        """Keep the conjecture that ``before`` is ``after``, which may be ``None``, if it is proved; whether it was."""
        if (proved := self._proved(before, after)) is None:
            return False
        self.asserted.conjectures.append(proved)
        return True

    def _proved(self, before: Expr, after: Expr | None) -> Conjecture | None:
        if after is None or self.is_over() or not self.undefined.isdisjoint(topological([after])):
            return None
        return Conjecture(before, after, tuple(self.facts)) if self._is_true(before.eq(after)) else None

    def _is_true(self, claim: Expr) -> bool:
        """Whether a claim holds at every point of its domain where the facts do."""
        names = variables([claim])
        if domain_size(names) > LIMITS.conjecture_points:
            return holds_in_a_period(claim)
        return any(_holds(claim, *assumed) for assumed in self._assumptions(names))

    def _assumptions(self, names: Sequence[Expr]) -> Iterator[tuple[list[Expr], Sequence[Expr]]]:
        """Facts to assume, and the variables to enumerate: those of the claim, then with those of further facts."""
        yield [fact for fact, used in self.facts.items() if used <= set(names)], names
        found, wider = [], list(names)
        for fact, used in self.facts.items():
            more = [*wider, *sorted(used - set(wider), key=lambda v: v.key)]
            if domain_size(more) <= LIMITS.conjecture_points:
                found.append(fact)
                wider = more
        if len(wider) > len(names):
            yield found, wider

    def _is_simpler(self, form: LinearForm, atom: Expr) -> bool:
        """Whether ``form`` is worth writing for ``atom``: no larger, and no quotients for a selection.

        A sum of variables may be larger than a quotient by what is no literal: a division takes longer than some
        products.
        """
        if atom.op != "floordiv" and any(a.op == "floordiv" for a in form.terms):
            return False
        is_divided = atom.op == "floordiv" and atom.args[1].op != "const" and form.is_affine()
        return self.size(to_expr(form)) <= self.size(atom) + LIMITS.spared_division * is_divided

    def _by_bounds(self, condition: Expr, members: Sequence[Expr]) -> Expr | None:
        """A chain as bounds of its variables and the members still needed at the points, if that is shorter."""
        names, values = variables([condition]), self.values[condition]
        if len(names) + len(members) < 3 or not values.any() or values.all():
            return None
        op = "or" if condition.op == "or" else "and"
        # of a disjunction, its complement is bounded
        inside = values == (op == "and")
        known = {member: self.values[member] for member in members}
        for variable in names:
            for bound in _bounds(variable, self.points[_name(variable)][inside]):
                member = bound if op == "and" else opposite(bound)
                known[member] = evaluate([member], self.points, total=True)[0]
        return self._needed(op, members, known)

    def _needed(self, op: str, members: Sequence[Expr], values: Mapping[Expr, Array]) -> Expr | None:
        """The chain of what the others do not imply at the points, if it is shorter than that of the ``members``.

        ``values`` has those of all that may be in it; the largest are dropped first.
        """
        kept = list(values)
        # of a disjunction, the complements of its members
        holds = {member: at if op == "and" else ~at for member, at in values.items()}
        for member in sorted(kept, key=lambda m: (-self.size(m), m.key)):
            others = [holds[m] for m in kept if m is not member]
            if others and not (np.logical_and.reduce(others) & ~holds[member]).any():
                kept.remove(member)
        return chained(op, kept) if sum(map(self.size, kept)) < sum(map(self.size, members)) else None


def _holds(claim: Expr, facts: Sequence[Expr], names: Sequence[Expr]) -> bool:
    """Whether a claim holds at all points of the variables at which the facts do."""
    points = grid(names)
    fails = ~evaluate([claim], points, total=True)[0]
    return not (fails & all_hold(facts, points)).any() if fails.any() else True


def _bounds(variable: Expr, values: Array) -> Iterator[Expr]:
    """The bounds and the step of the values of a variable, where they are tighter than its range."""
    low, high = int(values.min()), int(values.max())
    if low == high:
        yield variable.eq(low)
        return
    if low > variable.vmin:
        yield const(low) <= variable
    if high < variable.vmax:
        yield variable < high + 1
    step = int(np.gcd.reduce(values - low))
    if step > 1:
        yield (variable % step).eq(low % step)


def _points(names: Sequence[Expr], members: Sequence[Expr]) -> tuple[Points, bool]:
    """Points at which all ``members`` hold, and whether these are all there are."""
    points = {_name(v): _column(v.vmin, v.vmax, axis) for axis, v in enumerate(names)}
    if not members:
        return points, False
    chosen = np.flatnonzero(all_hold(members, points))
    if len(chosen) < LIMITS.samples // 4 and domain_size(names) <= LIMITS.conjecture_points:
        every = grid_where(members, names)
        if (count := len(every[_name(names[0])])) <= LIMITS.samples:
            return every, True
        # drawn at random, as equal steps might coincide with a period
        return select(every, np.random.default_rng(0).integers(count, size=LIMITS.samples)), False
    return select(points, chosen), False


@lru_cache(maxsize=4096)
def _column(low: int, high: int, axis: int) -> Array:
    """Values of the ``axis``-th variable: half of them random, the others at or near the ends."""
    random = np.random.default_rng(axis)
    values = random.integers(low, high, size=LIMITS.samples, endpoint=True)
    near = np.clip(np.array([low, high, low + 1, high - 1]), low, high)
    return np.where(random.integers(2, size=LIMITS.samples) > 0, values, near[random.integers(4, size=LIMITS.samples)])


class _Basis:
    """Linearly independent columns of sample values: first 1 and the variables, then atoms as they come."""

    def __init__(self, points: Points, names: Sequence[Expr], atoms: int, spare: int) -> None:
        self.count = len(next(iter(points.values())))
        # with as many columns as points, all values would be a combination of them
        self.most = max(0, self.count - spare)
        self.terms: list[Expr | None] = []
        self.columns: list[Array] = []
        # modified Gram-Schmidt: the columns are the orthogonal directions times this upper triangular matrix
        width = min(self.most, 1 + len(names) + atoms)
        self.directions, self.triangle = np.empty((self.count, width)), np.zeros((width, width))
        self.add(None, np.ones(self.count, dtype=np.int64))
        for v in names:
            self.add(v, points[_name(v)])

    def add(self, term: Expr | None, values: Array) -> None:
        """Add a column, unless it depends on the others or there are too few points to tell."""
        known = len(self.terms)
        if known >= self.most or values.dtype == object:
            return
        column = values.astype(float)
        direction, shares = self._split(column)
        norm, length = sqrt(direction @ direction), sqrt(column @ column)
        if norm > 1e-6 * (1 + length):
            self.directions[:, known] = direction / norm
            self.triangle[: known + 1, known] = np.append(shares, norm)
            self.terms.append(term)
            self.columns.append(values)

    def _split(self, values: Array) -> tuple[Array, Array]:
        """The part of ``values`` that is orthogonal to the directions, and the shares of these."""
        known = self.directions[:, : len(self.terms)]
        shares = known.T @ values
        rest = values - known @ shares
        # the first pass leaves rounding errors in proportion to the largest share
        more = known.T @ rest
        return rest - known @ more, shares + more

    def combination(self, values: Array) -> LinearForm | None:
        """``values`` as an integer combination of the columns, if it is one at every point."""
        if values.dtype == object or len(self.terms) > self.most:
            return None
        rest, shares = self._split(values.astype(float))
        if float(np.abs(rest).max()) > 1e-3:
            return None
        known = len(shares)
        coefficients = np.rint(np.linalg.solve(self.triangle[:known, :known], shares))
        if np.abs(coefficients).max(initial=0) > LIMITS.coefficient:
            return None
        total = np.zeros(self.count, dtype=np.int64)
        terms: dict[Expr, int] = {}
        constant = 0
        for k, term, column in zip(coefficients.astype(int).tolist(), self.terms, self.columns, strict=True):
            if k:
                total += k * column
                if term is None:
                    constant = k
                else:
                    terms[term] = k
        return LinearForm(terms, constant) if np.array_equal(total, values) else None


@dataclass
class _Steps:
    """How a term with ``values`` at the points changes from one value of a variable to the next, modulo ``modulus``."""

    values: Array
    modulus: int = 0
    slopes: dict[Expr, int] = field(default_factory=dict)

    def add(self, variable: Expr, steps: Array) -> bool:
        """Add the steps of one variable, where the facts hold before and after; whether some modulus is possible."""
        if len(steps):
            self.slopes[variable] = int(steps[0])
            self.modulus = gcd(self.modulus, int(np.gcd.reduce(steps - steps[0])))
        return not 0 < self.modulus <= self.span

    @property
    def span(self) -> float:
        """How far apart the least and the largest value are; without end where 64 bits do not hold them."""
        return inf if self.values.dtype == object else int(self.values.max()) - int(self.values.min())

    def remainder(self, points: Points) -> LinearForm:
        """The term as a remainder with these steps."""
        modulus, low = self.modulus, int(self.values.min())
        low = 0 if low >= 0 and int(self.values.max()) < modulus else low
        moving = LinearForm({v: slope for v, slope in self.slopes.items() if slope}, 0)
        affine = moving.split(modulus, balanced=True)[1]
        start = sum(k * int(points[_name(v)][0]) for v, k in affine.terms.items())
        offset = (int(self.values[0]) - start - low) % modulus
        return atom_form(make("mod", to_expr(affine.shifted(offset)), const(modulus))).shifted(low)


def constant_remainders(roots: Iterable[Expr]) -> Iterator[Conjecture]:
    """The remainders of sums of products by literals, in terms in normal form, that are the same for all values.

    >>> from eqsat.lang.expr import var
    >>> n = var("n", 0, 99)
    >>> for conjecture in constant_remainders([(n * n + n) // 2]):
    ...     print(conjecture.before, "is", conjecture.after)
    n*n + n + (n*n + n)//2*-2 is 0
    """
    for term in topological(roots):
        if (n := literal_divisor(term)) > 1:
            dividend = read(term.args[0])
            if (remainder := constant_remainder(dividend, n)) is not None:
                yield Conjecture(to_expr(dividend.plus(atom_form(term), -n)), const(remainder), ())
