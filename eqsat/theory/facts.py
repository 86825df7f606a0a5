"""What is known: conditions that hold wherever terms are evaluated, and what they make of bounds and normal forms.

:class:`Facts` keeps them (constraints, gates, the conditions of enclosing selections) as bounds of atoms and of sums,
as variables that are solved for, as sums that are not zero, and as decided conditions. To assume a further condition
makes a child, which starts with all that its parent knows.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Self

from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import Points, evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr
from eqsat.lang.ops import INFINITY, SUMS
from eqsat.lang.properties import divisors
from eqsat.lang.sampling import grid_where
from eqsat.lang.traversal import chain_members, domain_size, mentions, topological, variables, with_users
from eqsat.theory.arithmetic import Arithmetic, begun, kept
from eqsat.theory.forms import (
    ZERO,
    EqualProducts,
    LinearForm,
    atom_form,
    combination,
    factors,
    has_quotient,
    literal_divisor,
    read,
    to_expr,
    without,
)
from eqsat.theory.limits import LIMITS

#: Which comparisons are read first.
_READ = {"le": 0, "lt": 0, "eq": 1, "ne": 2}
#: What the facts that are read first consist of.
_IN_SUMS = frozenset({"const", "var", "mul", *SUMS})


class Facts(Arithmetic):
    """Known facts. All answers of a theory are memoised, and forgotten when a fact is added."""

    def read_facts(self, facts: Sequence[Expr]) -> None:
        if self.parent is None:
            self._read_all(facts)
            return
        # its parent has normalised them, but one may say less of others than it does once these are known
        parts = sorted(_members(facts), key=_first_read)
        for part in parts:
            if len(parts) > 1 and has_quotient(part):
                self.assume(part)
            else:
                self._assume_normal(part)
        self._propagate_all()

    def _read_all(self, facts: Sequence[Expr]) -> None:
        """Add conditions that are known to hold, in a fixed order, until none says more."""
        facts = _members(facts)
        if len(facts) > 1:
            facts.sort(key=lambda fact: (*_first_read(self.condition(fact)), fact.key))
        for _ in range(LIMITS.readings):
            # in the next round a later fact may decide a part of an earlier one
            self.changed = False
            for fact in facts:
                self.assume(fact)
            self._propagate_all()
            if not self.changed or len(facts) < 2:
                break

    def assume(self, fact: Expr) -> None:
        """Add a condition that is known to hold."""
        self._assume_normal(self.condition(fact))

    def assume_zero(self, form: LinearForm) -> None:
        """Add that a form is zero, which the caller has proved. Its atoms are not normalised again."""
        self.touched |= self.variables.of(to_expr(form))
        self._assume_equal(form)

    def _assume_normal(self, condition: Expr) -> None:
        """Add a condition that is in normal form already."""
        self.touched |= self.variables.of(condition)
        for literal in chain_members(condition, "and"):
            self._assume_literal(literal)

    def _assume_literal(self, literal: Expr) -> None:
        if literal is TRUE or self.known.get(literal) is TRUE:
            return
        if literal is FALSE or self.known.get(literal) is FALSE:
            raise _contradiction()
        self._forget()
        self.known[literal] = TRUE
        self.known[self.negate(literal)] = FALSE
        if literal.op == "ne" and not literal.args[0].is_bool:
            left, right = map(self.inner, literal.args)
            self._assume_nonzero(left.plus(right, -1))
        elif (gap := self.difference(literal)) is not None:
            if literal.op == "eq":
                self._assume_equal(gap.times(-1))
            else:
                self._assume_at_least(gap, 0)

    def rewrite(self, equalities: Iterable[tuple[Expr, Expr]]) -> set[Expr]:
        """Add equalities of terms in normal form, simpler ones first; the caller has proved them under the facts.

        The normal forms found so far are rewritten too, so that what is known of an atom also holds of it with
        rewritten operands. Equalities of sums are left out: the terms of a sum need not stand together.

        Returns
        -------
        set of Expr
            The terms whose normal form this changed.
        """
        forms, conditions = dict(self.forms), dict(self.conditions)
        asserted: set[Expr] = set()
        self._clear_forms()
        for before, after in equalities:
            if before.is_bool:
                found = self.conditions[before] = self.known[before] = self.condition(after)
                self.known[self.negate(before)] = self.negate(found)
            elif read(before).single() is not None:
                self.forms[before] = self.equal[before] = self.form(after)
            else:
                continue
            self.touched |= self.variables.of(before)
            asserted.add(before)
            self.traversed.add(before)
        normal = [*(atom for form in forms.values() for atom in form.terms), *conditions.values()]
        stale = with_users(asserted, topological(normal))
        stale_forms = {term: form for term, form in forms.items() if not stale.isdisjoint(form.terms)}
        stale_conditions = {term: condition for term, condition in conditions.items() if condition in stale}
        forms |= {term: self._rewritten(form, stale) for term, form in stale_forms.items()}
        conditions |= {term: self.condition(condition) for term, condition in stale_conditions.items()}
        self.forms |= forms
        self.conditions |= conditions
        self.traversed.update(forms, conditions)
        return {*stale_forms, *stale_conditions}

    def _rewritten(self, form: LinearForm, stale: Collection[Expr]) -> LinearForm:
        """``form`` with its ``stale`` atoms normalised again."""
        parts = [(self.form(atom) if atom in stale else atom_form(atom), k) for atom, k in form.terms.items()]
        return combination(parts, form.constant)

    def assert_bounds(self, equalities: Iterable[tuple[Expr, Expr]]) -> None:
        """Add, for conditions in normal form, equal ones that bound variables; the caller has proved them."""
        for before, after in equalities:
            self.by_bounds[before] = self.condition(after)

    def assuming_bounded(self, condition: Expr) -> Self | None:
        """As :meth:`assuming`, with the bounds of variables that a condition is known to imply."""
        bounds = self.by_bounds.get(condition)
        theory = self.assuming(condition if bounds is None else bounds)
        return theory if theory is None or bounds is None else theory.assuming(theory.condition(condition))

    def atom(self, term: Expr) -> LinearForm:
        known = self.equal.get(term)
        if known is None or term in self._replacing:
            return atom_form(term)
        # what it equals may have a simpler normal form by now, and that may contain the atom again
        with begun(self._replacing, term):
            return self.form(to_expr(known))

    def _assume_at_least(self, form: LinearForm, least: int) -> None:
        if not form.terms:
            if form.constant < least:
                raise _contradiction()
            return
        content = form.content()
        low = -((form.constant - least) // content)
        direction = form.direction().divided(content)
        if direction.sign() > 0:
            self._narrow(direction, low, INFINITY)
        else:
            self._narrow(direction.times(-1), -INFINITY, -low)

    def _narrow(self, direction: LinearForm, least: int, most: int) -> None:
        """Add bounds of a form without constant."""
        low, high = self.bounds(direction)
        low, high = max(low, least), min(high, most)
        if low > high:
            raise _contradiction()
        self._forget()
        if (atom := direction.single()) is not None:
            self.narrowed[atom] = (low, high)
            self._narrow_dividend(atom, low, high)
        else:
            if low == high:
                direction, low = self._without_offset(direction, low)
                high = low
            self.directions = [(d, b) for d, b in self.directions if d != direction]
            insort(self.directions, (direction, (low, high)), key=lambda item: item[0].order())
            self._propagate(direction, low, high)
            if low == high:
                self._solve(direction.shifted(-low))

    def _narrow_dividend(self, atom: Expr, low: int, high: int) -> None:
        """Bounds of a quotient by a literal are bounds of its dividend."""
        divisor = literal_divisor(atom)
        dividend = self.inner(atom.args[0]) if divisor > 0 else ZERO
        if dividend.terms:
            self._assume_at_least(dividend, low * divisor)
            self._assume_at_least(dividend.times(-1), -(high * divisor + divisor - 1))

    def _without_offset(self, direction: LinearForm, value: int) -> tuple[LinearForm, int]:
        """``direction == value``, in which a remainder of a sum with a constant becomes one of the sum without it.

        ``x - (x + 2)//4*4 == -2`` says that ``(x + 2) % 4`` is 0. It becomes ``x - x//4*4 == 2``, which says that
        ``x % 4`` is 2: then ``x`` is solved as ``x//4*4 + 2``.
        """
        for remainder in self.remainders_in(direction):
            plain, n, sign = remainder.dividend.direction(), remainder.divisor, remainder.scale
            if abs(sign) != 1 or remainder.rest.terms or not remainder.dividend.constant or plain.sign() < 0:
                continue
            if any(self._is_solvable(a) and self._is_quotient_of(remainder.quotient, a) for a in plain.terms):
                found = self.form(to_expr(plain) // n)
                if (atom := found.single()) is not None and literal_divisor(atom) == n:
                    return plain.plus(found, -n).times(sign), sign * (sign * value % n)
        return direction, value

    def _is_solvable(self, atom: Expr) -> bool:
        return atom.op in ("var", "load") and atom not in self.solved

    def _propagate_all(self) -> None:
        """Narrow bounded sums and their atoms by what else is known since, and move lower bounds that are excluded."""
        for _ in range(LIMITS.propagations if self.directions or self.nonzero else 0):
            narrowed = dict(self.narrowed)
            for direction, (low, high) in list(self.directions):
                least, most = self.plain_bounds(direction)
                if least > low or most < high:
                    self._narrow(direction, low, high)
                else:
                    self._propagate(direction, low, high)
            # the set has the opposite of each form, so this moves upper bounds too
            for form in sorted(self.nonzero, key=LinearForm.order):
                if self.bounds(form)[0] == 0:
                    self._assume_at_least(form, 1)
            if self.narrowed == narrowed:
                break

    def _propagate(self, direction: LinearForm, low: int, high: int) -> None:
        """Narrow each atom of a bounded sum by the bounds of the others."""
        for atom, coefficient in direction.terms.items():
            rest_low, rest_high = self.plain_bounds(direction.without(atom))
            # the bounds of coefficient*atom, and then those of the atom
            least, most = low - rest_high, high - rest_low
            if coefficient < 0:
                least, most, coefficient = -most, -least, -coefficient
            least, most = -(-least // coefficient), most // coefficient
            known_low, known_high = self.range(atom)
            if least > known_low or most < known_high:
                least, most = max(least, known_low), min(most, known_high)
                if least > most:
                    raise _contradiction()
                self.narrowed[atom] = (least, most)
                self._forget()

    def _assume_equal(self, form: LinearForm) -> None:
        self._assume_at_least(form, 0)
        self._assume_at_least(form.times(-1), 0)

    def _solve(self, form: LinearForm) -> None:
        """Solve ``form == 0`` for a variable, or else an element of an array, with coefficient 1 or -1.

        ``x % 8 == 0`` makes ``x`` ``8*(x//8)``, and ``x % n == 0`` makes it ``n*(x//n)``.
        """
        largest = max([literal_divisor(atom) for atom in form.terms], default=0)
        ordered = sorted(form.sorted_terms(), key=lambda term: self._turn_to_be_solved(term[0], largest))
        for atom, coefficient in ordered:
            if abs(coefficient) == 1 and self._is_solvable(atom):
                rest = form.without(atom).times(-coefficient)
                with_itself = [a for a in rest.terms if mentions(a, atom)]
                is_solved = all(self._is_quotient_of(a, atom) for a in with_itself)
                if rest.terms and (is_solved or self._is_multiple(rest, atom, with_itself)):
                    low, _ = self.range(atom)
                    period = self._period_of_remainder(form, atom, with_itself)
                    self.solved[atom] = rest
                    self._forget()
                    if period is not None and period.terms:
                        self._assume_equal(period)
                    if low > 0:
                        self._assume_positive_factor(rest)
                    return
        self._solve_product(form)

    def _turn_to_be_solved(self, atom: Expr, divisor: int) -> tuple[bool, float]:
        """Which atom of an equation with quotients by ``divisor`` is solved for first: the variable with most periods.

        If ``x % n == y``, then ``x`` is ``x//n*n + y``, while ``y`` would become a remainder wherever it stands.
        """
        low, high = self.range(atom)
        return atom.op != "var", low - high if 0 < divisor <= high - low else 0

    def _period_of_remainder(self, form: LinearForm, variable: Expr, atoms: Sequence[Expr]) -> LinearForm | None:
        """The quotient that is zero if ``form == 0`` says what a remainder with the variable is.

        ``x % n == y`` implies ``y // n == 0``. Without that, the variable's solution would add it to ``x // n``.
        """
        if len(atoms) != 1 or not (divisor := literal_divisor(atoms[0])) > 0:
            return None
        dividend = self.inner(atoms[0].args[0])
        if dividend.terms.get(variable) not in (1, -1):
            return None
        remainder = dividend.plus(atom_form(atoms[0]), -divisor)
        sign = form.terms[variable] * dividend.terms[variable]
        other = form.plus(remainder, -sign)
        if any(mentions(a, variable) for a in other.terms):
            return None
        return self.quotient_by(other.times(-sign), divisor)

    def _solve_product(self, form: LinearForm) -> None:
        """If ``form == 0`` equates two products of variables, replace the one with more factors from now on."""
        if form.constant or len(form.terms) != 2:
            return
        monomials = sorted(form.terms, key=lambda atom: (-len(factors(atom)), -atom.key))
        for whole, other in (monomials, monomials[::-1]):
            scale, uneven = divmod(-form.terms[other], form.terms[whole])
            parts, others = factors(whole), factors(other)
            is_plain = all(factor.op == "var" for factor in (*parts, *others))
            if whole.op == "mul" and not uneven and is_plain and without(others, parts) is None:
                self.equal_products.append(EqualProducts(parts, others, scale))
                self._forget()
                return

    def _assume_positive_factor(self, product: LinearForm) -> None:
        """Add that the one factor of a positive product that may not be positive is."""
        term = product.single()
        unknown = [f for f in factors(term) if self.range(f)[0] <= 0] if term is not None else []
        if len(unknown) == 1:
            self._narrow(atom_form(unknown[0]), 1, INFINITY)

    def _is_quotient_of(self, atom: Expr, variable: Expr) -> bool:
        """Whether ``atom`` is a quotient by a literal whose dividend has ``variable`` as a plain term."""
        terms = self.inner(atom.args[0]).terms if literal_divisor(atom) else {}
        is_plain = terms.get(variable) in (1, -1)
        return is_plain and not any(a is not variable and mentions(a, variable) for a in terms)

    def _is_multiple(self, form: LinearForm, variable: Expr, atoms: Sequence[Expr]) -> bool:
        """Whether the ``atoms`` of ``form`` that mention the variable are ``A//d*d``, of an ``A`` with it as a term."""
        quotients = {q: None for a in atoms for q in factors(a) if q.op == "floordiv" and mentions(q, variable)}
        if len(quotients) != 1:
            return False
        (quotient,) = quotients
        dividend, divisor = map(self.inner, quotient.args)
        if dividend.terms.get(variable) not in (1, -1) or any(mentions(a, variable) for a in divisor.terms):
            return False
        rest = dividend.without(variable)
        product = self.times(divisor, atom_form(quotient)).times(dividend.terms[variable])
        return not any(mentions(a, variable) for a in (*rest.terms, *form.plus(product, -1).terms))

    def _assume_nonzero(self, form: LinearForm) -> None:
        form = _without_content(form)
        self.nonzero.add(form)
        self.nonzero.add(form.times(-1))
        atom, _ = form.multiple() or (None, 0)
        # a product is not zero iff no factor is
        for factor in factors(atom) if atom is not None and atom.op == "mul" else ():
            self._assume_nonzero(self.inner(factor))

    def is_nonzero(self, form: LinearForm) -> bool:
        low, high = self.bounds(form)
        if low > 0 or high < 0 or _without_content(form) in self.nonzero:
            return True
        monomial, _ = form.multiple() or (None, 0)
        if monomial is not None and monomial.op == "mul":
            return all(self.is_nonzero(self.inner(a)) for a in factors(monomial))
        content = form.content()
        if content < 2:
            return False
        return form.constant % content != 0 or self.is_nonzero(form.divided(content))

    def is_defined(self, term: Expr) -> bool:
        return all(d.vmin > 0 or d.vmax < 0 or self.is_nonzero(self.form(d)) for d in divisors([term]))

    def excludes(self, condition: Expr) -> bool:
        # by trying all points, or if the domain is large, by making a theory of the condition and all that is known
        if self.late_or_raise():
            return False
        if (points := self.every_point([condition])) is not None:
            return not evaluate([condition], points, total=True)[0].any()
        try:
            type(self)([condition, *self.holding()])
        except ContradictionError:
            return True
        return False

    def every_point(self, terms: Iterable[Expr]) -> Points | None:
        known = self.holding()
        roots = [*terms, *known]
        free = reduce(or_, map(self.variables.of, roots), 0)
        involved = topological(roots)
        if any(free & index for index in self.variables.index_extents) or any(t.op == "load" for t in involved):
            return None
        if domain_size(t for t in involved if t.op == "var") > LIMITS.condition_points:
            return None
        return grid_where(known, variables(roots))

    @kept("answers")
    def assuming(self, fact: Expr) -> Self | None:
        return self if fact is TRUE else self.assuming_all([fact])

    def assuming_all(self, facts: Sequence[Expr]) -> Self | None:
        if self.work.contexts <= 0 or self.depth >= LIMITS.depth or self.late_or_raise():
            return self
        self.work.contexts -= 1
        try:
            child = type(self)(facts, parent=self)
        except ContradictionError:
            return None
        return child if child.changed else self


def _contradiction() -> ContradictionError:
    return ContradictionError("the facts contradict each other")


def _members(facts: Iterable[Expr]) -> list[Expr]:
    """The members of conjunctions, each once."""
    return list({part: None for fact in facts for part in chain_members(fact, "and")})


def _first_read(fact: Expr) -> tuple[bool, int, int, int, int]:
    """The order in which facts are read: what is simple first, bounds before equations, those before exceptions."""
    inside = topological(fact.args)
    is_sum = all(term.op in _IN_SUMS for term in inside)
    return not is_sum, sum(term.op == "var" for term in inside), _READ.get(fact.op, len(_READ)), len(inside), fact.key


def _without_content(form: LinearForm) -> LinearForm:
    """``form`` divided by the common factor of its coefficients and its constant."""
    common = form.common_factor()
    return form if common < 2 else form.divided(common)
