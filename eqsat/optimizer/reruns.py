"""Runs that answer the input again: with other variables, or with what holds in parts of it as facts.

A run of :class:`Reruns` has such answers for its own one to be compared with. The other variables stand for a sum that
the input divides in several ways (a flat index), or for each ``x + 5`` of an input that has ``x`` only so. The other
facts are gates, and what holds in branches of selections and in bodies of reductions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

from eqsat.alternatives.limits import LIMITS as ALTERNATIVES
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError, UnsoundUnionError
from eqsat.lang.expr import TRUE, Expr, any_var, substitute
from eqsat.lang.ops import COMPARISONS, FLOORS, REDUCTIONS
from eqsat.lang.traversal import is_index, topological
from eqsat.optimizer.inside import Place, places, with_parts
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.optimisation import Contexts, Optimisation
from eqsat.optimizer.relevant import is_shipped
from eqsat.optimizer.result import Result
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, to_expr
from eqsat.theory.linear import LinearArithmetic

#: The operators whose literals depend on where a variable begins, and divisions, whose dividends do.
_WITH_LITERALS = COMPARISONS | FLOORS | {"add", "sub", "min", "max"}


@dataclass
class Reruns(Optimisation):
    """A run that may answer its input again: each way returns the answer so far, its ``terms``, or a cheaper one."""

    @cached_property
    def is_guarded(self) -> bool:
        """Whether a rule of the caller's own has a guard."""
        return self.runs_own_rules and any(r.when and not is_shipped(r) for r in self.used)

    @abstractmethod
    def run(self, limit: float = inf) -> Result:
        """The answer. A run within another has a ``limit``: one that costs more is not improved further."""

    @provides("flat index", otherwise=lambda self, terms, base: terms)
    def through_flat_index(self, terms: list[Expr], base: LinearArithmetic) -> list[Expr]:
        """The answer with one variable for the sum that the input divides in several ways."""
        if len(self.order) > LIMITS.flat_terms or self.has_uninterpreted or self.suspected or self.extract == "tree":
            return terms
        divisions = sum([term.op in FLOORS for term in topological(terms)])
        flat = _flat_index(self.order, base) if divisions >= ALTERNATIVES.flat_ways else None
        if flat is None or not self._has_time():
            return terms
        index = any_var("@flat", *base.bounds(flat))
        images = _with_variable(index, flat, self.terms, base)
        return self._cheapest(terms, self._with(images, {index: to_expr(flat)}, cost_of(terms, self.model)))

    @provides("shifted variables", otherwise=lambda self, terms: terms)
    def through_shifted_variables(self, terms: list[Expr]) -> list[Expr]:
        """The answer with a variable for each ``x + 5`` that the input has in place of ``x``.

        Normal forms add up literals. So they have ``x`` with other literals in each sum, and below each divisor.
        """
        if self.suspected or self.extract == "tree" or not _has_literals(terms):
            return terms
        shifted = _only_shifted(self.order, self.roots)
        if not shifted or not self._has_time():
            return terms
        images: dict[Expr, Expr] = {}
        new = {x: any_var(f"@shifted_{x.value}", whole.term.vmin, whole.term.vmax) for x, whole in shifted.items()}
        for term in self.terms:
            written = _shifted(term) or _Shifted(term, term, 1, 0)
            if (whole := shifted.get(written.variable)) is not None:
                # the new variable is sign*x + by, so that x is sign*(variable - by)
                sign = written.sign * whole.sign
                images[term] = to_expr(LinearForm({new[whole.variable]: sign}, written.by - sign * whole.by))
        return self._cheapest(terms, self._with(images, {new[x]: whole.term for x, whole in shifted.items()}))

    def _with(self, images: Mapping[Expr, Expr], back: Mapping[Expr, Expr], limit: float = inf) -> list[Expr]:
        """The answer to the input with these ``images`` in place of its terms, and its variables taken ``back``."""
        roots, facts = [tuple(substitute(given, images)) for given in (self.roots, self.facts)]
        gates = tuple(None if gate is None else gate.substitute(images) for gate in self.gates)
        inner = replace(self, roots=roots, facts=facts, gates=gates, pareto=None, conjectures=[])
        return substitute(inner.run(limit).exprs, back)

    def under_gates(self, terms: list[Expr], contexts: Contexts, base: LinearArithmetic) -> list[Expr]:
        """The answer with the gated roots optimised again, their gate as a fact.

        The e-graph of all roots knows only what holds for all. With the gate as a fact, guards of the caller's rules
        may hold that do not otherwise, and a dividend may lie in two periods of its divisor alone.
        """
        theories = {gate: theory for gate, theory in zip(self.gates, contexts, strict=True) if theory is not None}
        for gate, theory in theories.items():
            if gate is None or not self._has_time():
                continue
            members = [place for place, other in enumerate(self.gates) if other is gate]
            roots = [terms[place] for place in members]
            if not self.is_guarded and not (self.with_rules and _lies_in_two_periods(roots, theory, base)):
                continue
            under = replace(self, facts=(*self.facts, gate), gates=(None,) * len(self.gates), conjectures=[])
            try:
                answers = under._alone(members)
            except ContradictionError:
                # the gate never holds
                continue
            terms = self._cheapest(terms, [answers.get(place, term) for place, term in enumerate(terms)])
        return terms

    def under_conditions(self, terms: list[Expr]) -> list[Expr]:
        """The answer with branches and bodies optimised again, what holds there as a fact.

        Classes are equal everywhere, so that guards of the caller's rules read in a branch what holds outside of it
        too. Branches within branches are those of the inner run. The input is tried too, since the answer may have
        taken apart what a rule matches.
        """
        if not self.is_guarded:
            return terms
        known: dict[tuple[Expr, Expr], Expr] = {}
        written = with_parts(terms, self._parts(terms, known))
        terms = self._cheapest(terms, written)
        written = with_parts(self.roots, self._parts(self.roots, known))
        if written != [*self.roots] and self._has_time():
            # a limit: what holds in branches and bodies has been used
            inner = replace(self, roots=tuple(written), pareto=None, conjectures=[]).run(cost_of(terms, self.model))
            terms = self._cheapest(terms, [*inner.exprs])
        return terms

    def _parts(self, terms: Iterable[Expr], known: dict[tuple[Expr, Expr], Expr]) -> Iterator[tuple[Place, Expr]]:
        """Branches and bodies of ``terms`` as they are optimised under what holds there.

        ``known`` has the answers so far, by the part and the fact.
        """
        for place in places(terms, self.leaves):
            key = (place.part, place.fact)
            if key not in known and self._has_time():
                facts = self.facts if place.fact is TRUE else (*self.facts, place.fact)
                inner = replace(self, roots=(place.part,), gates=(None,), facts=facts, pareto=None, conjectures=[])
                try:
                    part = inner.run()
                except (ValueError, UnsoundUnionError):
                    # the fact never holds, or what divides is never zero by a condition further outside
                    continue
                known[key] = part.expr
                if part.stop != "saturated":
                    self.stop = part.stop
            if key in known:
                yield place, known[key]


def _lies_in_two_periods(roots: Sequence[Expr], theory: LinearArithmetic, base: LinearArithmetic) -> bool:
    """Whether a dividend spans two periods of its divisor by what ``theory`` knows, and more by what ``base`` does."""
    for part in topological(roots):
        if part.op in FLOORS and part.args[1].op == "const" and not is_power_of_two(part.args[1].vmin):
            n = part.args[1].vmin
            low, high = theory.bounds(theory.form(part.args[0]))
            least, most = base.bounds(base.form(part.args[0]))
            if high // n - low // n == 1 < most // n - least // n:
                return True
    return False


def _flat_index(order: Sequence[Expr], theory: Arithmetic) -> LinearForm | None:
    """The sum of variables that the terms divide in several ways, if they hardly divide another: a flat index.

    Its digits are those of one variable, though each alone may be shorter in what the sum adds.
    """
    divided: dict[LinearForm, set[tuple[str, int, int]]] = {}
    for term in order:
        if term.op in FLOORS and term.args[1].op == "const":
            dividend = theory.form(term.args[0])
            if dividend.is_affine():
                ways = divided.setdefault(dividend.direction(), set())
                ways.add((term.op, term.args[1].vmin, dividend.constant))
    if not 1 <= len(divided) <= 2:
        return None
    flat, *others = sorted(divided, key=lambda form: -len(divided[form]))
    most = len(divided[flat])
    alone = all(len(divided[other]) < most for other in others)
    return flat if len(flat.terms) > 1 and most >= ALTERNATIVES.flat_ways and alone else None


def _with_variable(index: Expr, flat: LinearForm, terms: Iterable[Expr], theory: Arithmetic) -> dict[Expr, Expr]:
    """The terms that are the sum ``flat`` plus a literal, each written with the variable ``index`` for the sum."""
    images = {}
    for term in terms:
        if term.args and not term.is_bool:
            form = theory.form(term)
            if form.terms == flat.terms:
                images[term] = index + form.constant
    return images


class _Shifted(NamedTuple):
    """A term that is ``sign * variable + by``, for a sign of 1 or -1."""

    term: Expr
    variable: Expr
    sign: int
    by: int

    def distance(self) -> tuple[int, int, int]:
        """How far it is from the variable: its key in an order."""
        return abs(self.by), self.by, self.sign


def _shifted(term: Expr) -> _Shifted | None:
    """What ``x + 5``, ``5 + x``, ``x - 5`` and ``5 - x`` are; nothing for other terms."""
    if term.op not in ("add", "sub"):
        return None
    left, right = term.args
    sign = -1 if term.op == "sub" else 1
    if left.op == "var" and _is_of_literals(right):
        return _Shifted(term, left, 1, sign * right.vmin)
    if _is_of_literals(left) and right.op == "var":
        return _Shifted(term, right, sign, left.vmin)
    return None


def _is_of_literals(term: Expr) -> bool:
    """Whether a term is a literal, or as ``2*8`` an operation on literals."""
    return term.op != "var" and all(arg.op == "const" for arg in term.args) and term.vmin == term.vmax


def _has_literals(terms: Iterable[Expr]) -> bool:
    """Whether more than one operation has a literal, so that there may be fewer, or there are loops."""
    order = topological(terms)
    beside = [t for t in order if t.op in _WITH_LITERALS and any(arg.op == "const" for arg in t.args)]
    return len(beside) > 1 or any(t.op in REDUCTIONS for t in order)


def _only_shifted(order: Iterable[Expr], roots: Iterable[Expr]) -> dict[Expr, _Shifted]:
    """The variables that terms have only with literals added, each in its sum with the least literal."""
    found: dict[Expr, list[_Shifted]] = {}
    alone = {*roots}
    for term in order:
        written = _shifted(term)
        if written is None:
            alone.update(term.args)
        elif not is_index(written.variable):
            found.setdefault(written.variable, []).append(written)
    return {x: min(sums, key=_Shifted.distance) for x, sums in found.items() if x not in alone}
