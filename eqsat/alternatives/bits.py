"""E-nodes of bit operators: the input's, and those that act on fewer of its bits.

A normal form acts on no bit that only one operand may have: ``i ^ j`` of a ``j`` below 8 is ``i//8*8 + (i%8 ^ j)``
there, of which arithmetic knows what its quotient by 8 is. To compute it one operator will do. So the input's terms
stand for their values inside longer sums too, and beside them those that are split on one side alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eqsat.alternatives.canonical import CanonicalGraph, KindNodes
from eqsat.alternatives.limits import LIMITS
from eqsat.extract.graph import Node
from eqsat.lang.expr import FALSE, Expr, make, topological
from eqsat.lang.ops import BITWISE
from eqsat.theory.bits import digits_of, known_bits
from eqsat.theory.forms import LinearForm, atom_form, number, scale_of, to_expr


class BitNodes(KindNodes):
    """The values of the bit operators of an input, and how sums hold them."""

    def __init__(self, classes: CanonicalGraph) -> None:
        super().__init__(classes)
        #: The values of bit operators that are sums, in the order in which they were found.
        self.values: dict[LinearForm, None] = {}

    def rewritten(self, term: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Pairs of equal terms: ``term``, or a bit operator that its other terms use, and another."""
        self._note(term)
        x, y = map(self.theory.form, term.args)
        for other in self._split(term.op, x, y):
            yield term, other
            for part in topological([other]):
                if part.op in BITWISE:
                    self._note(part)
                    yield part, part

    def _note(self, term: Expr) -> None:
        value = self.theory.form(term)
        if len(self.values) < LIMITS.bit_values and value.single() is None and value.terms:
            self.values[value] = None

    def _split(self, op: str, x: LinearForm, y: LinearForm) -> Iterator[Expr]:
        """The operator on the digits that both operands may have, from below, and from above."""
        theory = self.theory
        bits = [known_bits(theory, form).possible for form in (x, y)]
        both = bits[0] & bits[1]
        if not both:
            return
        for literal, other, possible in ((y, x, bits[0]), (x, y, bits[1])):
            beyond = literal.constant & ~possible
            if not literal.terms and op != "bitand" and beyond:
                inside = make(op, to_expr(other), to_expr(number(literal.constant & possible)))
                yield make("add", inside, to_expr(number(beyond)))
                return
        start = (both & -both).bit_length() - 1
        if start:
            upper = make(op, *[to_expr(digits_of(theory, form, start, None)) for form in (x, y)])
            scaled = make("mul", upper, to_expr(number(1 << start)))
            yield self._with_others(op, scaled, [digits_of(theory, form, 0, start) for form in (x, y)])
        elif both > 0:
            end = both.bit_length()
            lower = make(op, *[to_expr(digits_of(theory, form, 0, end)) for form in (x, y)])
            yield self._with_others(op, lower, [form.plus(digits_of(theory, form, 0, end), -1) for form in (x, y)])

    @staticmethod
    def _with_others(op: str, joined: Expr, others: Iterable[LinearForm]) -> Expr:
        for other in others if op != "bitand" else ():
            if other.terms or other.constant:
                joined = make("add", joined, to_expr(other))
        return joined

    def in_sum(self, form: LinearForm) -> Iterator[Node]:
        """A sum by the value of a bit operator in it."""
        for value in self.values:
            scale = scale_of(value, form)
            if not scale:
                continue
            rest = form.plus(value, -scale)
            if len(rest.terms) >= len(form.terms) or (scale == 1 and not rest.terms and not rest.constant):
                continue
            if rest.is_affine() or len(rest.terms) == 1:
                others = [(self.theory.inner(atom), k) for atom, k in rest.terms.items()]
            else:
                others = [(rest.shifted(-rest.constant), 1)]
            yield self.sum_node([(value, scale), *others], rest.constant)

    def by_one_operator(self, form: LinearForm) -> Iterator[Node]:
        """A sum of several bit operators on the same operands with one of them: ``x | y`` is ``x + y - (x & y)``.

        ``x ^ y`` is ``x + y - (x & y)*2``. Rules join two of them where they stand alone.
        """
        found: dict[tuple[Expr, ...], dict[str, Expr]] = {}
        for atom in form.terms:
            if atom.op in BITWISE:
                found.setdefault(atom.args, {})[atom.op] = atom
        for args, atoms in found.items():
            if len(atoms) < 2:
                continue
            both, either, one = (form.terms.get(atoms.get(op, FALSE), 0) for op in ("bitand", "bitor", "bitxor"))
            rest = LinearForm({a: k for a, k in form.terms.items() if a not in atoms.values()}, form.constant)
            x, y = map(self.theory.inner, args)
            # the multiples of x + y, and of the operator that is left
            ways = [("bitand", either + one, both - either - 2 * one), ("bitor", both - one, either - both + 2 * one)]
            if (both + either) % 2 == 0:
                ways.append(("bitxor", (both + either) // 2, one + (either - both) // 2))
            for op, of_sum, left in ways:
                whole = rest.plus(x, of_sum).plus(y, of_sum).plus(atom_form(make(op, *args)), left)
                if len(whole.terms) < len(form.terms):
                    yield self.sum_node([(whole, 1)], 0)
