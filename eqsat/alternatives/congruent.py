"""Remainders of congruent sums: the same remainder, of a dividend that has a class.

During saturation, a remainder also gets an e-node with another sum that is congruent to its dividend and is computed
anyway. Where that sum lies within two periods, rules then replace the remainder by a selection or a subtraction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import reached
from eqsat.theory.forms import LinearForm, atom_form, number


class CongruentRemainders:
    """Adds the same remainders of other sums, for each remainder once."""

    def __init__(self, classes: CanonicalGraph) -> None:
        self.classes = classes
        # classes with the divisors of their remainders that have been treated
        self._added: set[tuple[int, int]] = set()
        # classes with the operands of their remainders whose extremes have been turned
        self._turned: set[tuple[int, ...]] = set()
        # how many classes have been read as wider remainders
        self._read = 0

    @provides("congruent remainders", otherwise=lambda self, there=None: False)
    def add(self, there: Collection[int] | None = None) -> bool:
        """Add congruent remainders for the remainders that are new; return whether any e-node was added.

        ``there`` are the classes that may be divided instead; by default, those that the roots are computed from.
        """
        size = self.classes.size
        remainders: dict[int, list[tuple[int, LinearForm]]] = defaultdict(list)
        self._turn_extremes()
        for c, n, dividend in [*self._remainders(), *self._wider_remainders()]:
            remainders[n].append((c, dividend))
        if remainders:
            if there is None:
                nodes = self.classes.graph.classes
                # by the first e-node of each
                there = reached(self.classes.graph.roots, lambda c: nodes[c][0][2] if nodes[c] else ())
            there = sorted(there)
            for n, dividends in remainders.items():
                self._by_residues(n, dividends, there)
        return self.classes.size > size

    def _remainders(self) -> Iterator[tuple[int, int, LinearForm]]:
        """Every new remainder: its class, its divisor and what is divided."""
        for c, nodes in self.classes.graph.classes.items():
            for op, _, args in nodes:
                if op == "mod" and (c, args[1]) not in self._added:
                    self._added.add((c, args[1]))
                    divisor = self.classes.form_of(args[1])
                    if not divisor.terms and divisor.constant > 1:
                        yield c, divisor.constant, self.classes.form_of(args[0])

    def _turn_extremes(self) -> None:
        """Add ``(A - k*m) % n`` to ``(A + k*m) % n`` for an extreme ``m`` where ``2*k`` is a multiple of ``n``.

        A maximum is a sum with a minimum subtracted, which is not seen in one to which the minimum is added.
        """
        for c, nodes in list(self.classes.graph.classes.items()):
            for op, _, args in [*nodes]:
                if op != "mod" or (c, *args) in self._turned:
                    continue
                self._turned.add((c, *args))
                dividend, divisor = (self.classes.form_of(a) for a in args)
                n = divisor.constant
                if divisor.terms or n == 0 or n % 2:
                    continue
                for atom, k in dividend.terms.items():
                    if atom.op == "min" and k % (n // 2) == 0:
                        turned = self.classes.add_class(dividend.plus(atom_form(atom), -2 * k))
                        self._turned.add((c, turned, args[1]))
                        self.classes.add_node(c, ("mod", None, (turned, args[1])))

    def _wider_remainders(self) -> Iterator[tuple[int, int, LinearForm]]:
        """What :func:`wider_remainders` finds for the new classes: the class, the divisor, the dividend."""
        values = self.classes.values
        classes, self._read = range(self._read, len(values)), len(values)
        for c in classes:
            value = values[c]
            for dividend, n in wider_remainders(self.classes, value) if isinstance(value, LinearForm) else ():
                yield c, n, dividend

    def _by_residues(self, n: int, dividends: list[tuple[int, LinearForm]], there: list[int]) -> None:
        """Add remainders by ``n`` of the first class that is congruent, and of the first that is but for a literal.

        ``dividends`` are the remainders, each by its class and its dividend.
        """
        classes = self.classes
        congruent = self._congruent({dividend.residues(n) for _, dividend in dividends}, n, there)
        for c, dividend in dividends:
            same = congruent[dividend.residues(n)]
            others = [other for other in same if other != c and classes.values[other] != dividend]
            if dividend.addends() == 1:
                # a term alone needs no addition
                others = [other for other in others if len(classes.form_of(other).terms) > 1]
            shifts = {other: (dividend.constant - classes.form_of(other).constant) % n for other in others}
            divisor = classes.add_class(number(n))
            for other in [other for other in others if not shifts[other]][:1]:
                classes.add_node(c, ("mod", None, (other, divisor)))
            for other in [other for other in others if shifts[other]][:1]:
                shifted = classes.add_class(classes.form_of(other).shifted(shifts[other]), expand=False)
                classes.add_node(shifted, ("sum", (shifts[other], (1,)), (other,)))
                classes.add_node(c, ("mod", None, (shifted, divisor)))

    def _congruent(self, residues: Collection[LinearForm], n: int, there: list[int]) -> dict[LinearForm, list[int]]:
        """By residues modulo ``n``, the sums among some classes that have these."""
        found: dict[LinearForm, list[int]] = {left: [] for left in residues}
        # such a sum has every atom of the residues, so also the first
        atoms = {next(iter(left.terms), None) for left in residues}
        for c in there:
            value = self.classes.values[c]
            if isinstance(value, LinearForm) and value.addends() > 1 and not atoms.isdisjoint(value.terms):
                same = found.get(value.residues(n))
                if same is not None:
                    same.append(c)
        return found


def wider_remainders(classes: CanonicalGraph, form: LinearForm) -> Iterator[tuple[LinearForm, int]]:
    """The dividends and divisors of ``k*(A % n) + r`` as ``(k*A + r) % (k*n)``, for ``r`` in ``[0, k)``."""
    for of in classes.theory.remainders_in(form) if len(form.terms) <= LIMITS.wide_sum else ():
        if of.scale > 1:
            low, high = classes.theory.bounds(of.rest)
            if low >= 0 and high < of.scale:
                yield form.without(of.quotient), of.scale * of.divisor
