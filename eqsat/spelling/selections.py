"""Spellings by selections: sums that enter branches, and quotients of two values as selections between these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from eqsat.expr import Expr, chain_members, const, make
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node
from eqsat.extract.select import Choice, reachable
from eqsat.spelling.value_graph import KindSpeller, ValueGraph
from eqsat.theory.forms import ZERO, Form, atom_form, factors, number, product_form, read, to_expr


class SelectionSpeller(KindSpeller):
    """What spells selections, alone and in sums, and what they spell."""

    def __init__(self, classes: ValueGraph) -> None:
        super().__init__(classes)
        # by atom, what is known of the factor of two values in it
        self._quotients: dict[Expr, tuple[Expr, int, Expr] | None] = {}
        # by comparison, what is zero where it holds and where it fails
        self._ends: dict[Expr, tuple[Form, Form]] = {}

    def nodes(self, atom: Expr) -> Iterator[Node]:
        """A selection as it is, as the extreme that it takes, and as a common factor times a selection."""
        yield "where", None, self.operands(atom)
        x, y = map(self.theory.inner, atom.args[1:])
        extreme = self.theory.extreme_taken(atom.args[0], x, y)
        if extreme is not None and self.theory.is_defined(atom):
            yield extreme, None, (self.need(x), self.need(y))
        yield from self._clipped(atom, x, y)
        if len(x.terms) == 1 and x.terms.keys() == y.terms.keys() and not x.constant and not y.constant:
            # where(c, x*2, x*5) is x*where(c, 2, 5)
            ((common, scale),) = x.terms.items()
            scales = self.theory.selection(atom.args[0], number(scale), number(y.terms[common]))
            yield "mul", None, (self.need(scales), self.need(atom_form(common)))

    def _clipped(self, atom: Expr, x: Form, y: Form) -> Iterator[Node]:
        """``where(y <= x and c, x, y)`` is ``max(where(c, x, y), y)``, and so for ``or`` and for ``min``."""
        condition = atom.args[0]
        if condition.op not in ("and", "or") or self.classes.is_crowded():
            return
        if condition.op == "or":
            x, y = y, x
        ordered: dict[Expr, str] = {}
        for extreme, sign in (("max", 1), ("min", -1)):
            gap = x.plus(y, -1).times(sign)
            for at_least in (gap, gap.shifted(-1)):
                ordered[self.theory.at_least_zero(at_least)] = extreme
        members = chain_members(condition, condition.op)
        for member in members:
            op = ordered.get(member if condition.op == "and" else self.theory.negate(member))
            if op and self.theory.is_defined(atom):
                rest = self.theory.junction(condition.op, [m for m in members if m is not member])
                selected = self.theory.selection(rest, *map(self.theory.inner, atom.args[1:]))
                yield op, None, (self.need(selected), self.need(y))

    def entered(self, form: Form) -> Iterator[Node]:
        """The rest of a sum may enter a selection: ``where(c, x, y) + z`` is ``where(c, x + z, y + z)``.

        If it is short, or cancels what a branch has. Selections by one condition are one.
        """
        parts: dict[Expr, Form] = {}
        for atom, k in form.terms.items():
            if atom.op == "where":
                parts[atom.args[0]] = parts.get(atom.args[0], ZERO).plus(atom_form(atom), k)
        for condition, part in parts.items():
            rest = form.plus(part, -1)
            branches = [rest, rest]
            for atom, k in part.terms.items():
                branches = [b.plus(self.theory.inner(arg), k) for b, arg in zip(branches, atom.args[1:], strict=True)]
            if not branches[0].plus(branches[1], -1).terms:
                wrapped = self.theory.selection(condition, *branches)
                if wrapped != form:
                    yield self.sum_node([(wrapped, 1)], 0)
            shorter = min([len(branch.terms) for branch in branches]) < len(rest.terms)
            if rest.addends() <= 2 or shorter:
                yield "where", None, (self.need(condition), *map(self.need, branches))
            elif len(part.terms) > 1:
                yield self.sum_node([*((atom_form(a), k) for a, k in rest.terms.items()), (part, 1)], form.constant)

    def of_quotients(self, form: Form) -> Iterator[Node]:
        """Sums with quotients of two values, as selections: ``k*(A // n)`` is ``where(A < n, 0, k)`` for ``A < 2n``.

        So for products with a variable of two values: ``x + b*y`` is ``where(b < 1, x, x + y)``.
        """
        two_valued = {atom: found for atom in form.terms if (found := self.two_valued(atom))}
        for condition, low, quotient in two_valued.values():
            cases = [_with_value(form, quotient, value) for value in (low, low + 1)]
            ways = [cases]
            if condition not in self._ends:
                self._ends[condition] = self.theory.ends(condition)
            if any(zero.terms for zero in self._ends[condition]):
                ways.append(list(map(self.theory.at_end, cases, self._ends[condition])))
            for x, y in ways:
                are_short = not (x.terms and y.terms) or len(x.terms) + len(y.terms) < len(form.terms)
                if are_short or (x in self.classes and y in self.classes):
                    yield "where", None, (self.need(condition), self.need(x), self.need(y))
            yield from self._wrapped(form, condition, quotient, cases)
        if len(form.terms) > 1 and any(abs(form.terms[atom]) > 1 for atom in two_valued):
            operands = [
                (Form({a: abs(k)}, 0), 1 if k > 0 else -1) if a in two_valued else (atom_form(a), k)
                for a, k in form.terms.items()
            ]
            yield self.sum_node(operands, form.constant)

    def _wrapped(self, form: Form, condition: Expr, factor: Expr, cases: Sequence[Form]) -> Iterator[Node]:
        """A sum with a ``factor`` of two values that makes it a remainder of bits, or that rounds a quotient up."""
        common, step = Form(cases[0].terms, 0), abs(cases[1].constant - cases[0].constant)
        wraps = factor.op == "min" or (step > 1 and is_power_of_two(step))
        if wraps and len(form.terms) > 1 and common == Form(cases[1].terms, 0):
            added = self.theory.wrapped(condition, common, *[number(case.constant) for case in cases])
            if added is not None and common.plus(added) != form:
                yield self.sum_node([(common.plus(added), 1)], 0)

    def two_valued(self, atom: Expr) -> tuple[Expr, int, Expr] | None:
        """If a factor of ``atom`` is a quotient of two values: where it is the lower, that value, and the quotient.

        Of a product, which costs more than a selection, the factor may also be a variable.
        """
        if atom not in self._quotients:
            parts = factors(atom)
            quotients = [factor for factor in parts if factor.op == "floordiv"]
            found = [(*below, quotient) for quotient in quotients if (below := self.theory.lower_value(quotient))]
            if not found and not self.classes.is_crowded():
                bits = [factor for factor in parts if factor.op == "min" or (factor.op == "var" and len(parts) > 1)]
                values = [(self.theory.two_values(atom_form(bit)), bit) for bit in bits]
                found = [(*of_bit[:2], bit) for of_bit, bit in values if of_bit and of_bit[2] == of_bit[1] + 1]
            self._quotients[atom] = found[0] if found else None
        return self._quotients[atom]

    def by_either(self, op: str, dividend: Form, divisor: Form) -> Iterator[Node]:
        """A division by what has two values as a selection between divisions by literals."""
        values = self.theory.two_values(divisor) if divisor.terms else None
        if values is not None and values[1] > 0:
            by_lower, by_higher = [make(op, to_expr(dividend), const(n)) for n in values[1:]]
            selected = self.classes.value_of(make("where", values[0], by_lower, by_higher))
            yield self.sum_node([(cast(Form, selected), 1)], 0)

    def beside(self, form: Form, rest: Form) -> Node:
        """``form`` as ``rest`` and a selection between literals."""
        part = form.plus(rest, -1)
        sign = -1 if not part.constant and part.sign() < 0 else 1
        return self.sum_node([(rest, 1), (part.times(sign), sign)], 0)

    def absorb_constants(self, choice: Choice) -> None:
        """Offer ``x + where(p, a + c, b + c)`` for ``x + where(p, a, b) + c`` with an ``x`` that is there.

        Only for what ``choice`` needs, and once that is bracketed: before, it would keep sums from sharing.
        """
        for c in reachable(choice, self.classes.graph.roots) if any(self._quotients.values()) else ():
            form = self.classes.values[c]
            if isinstance(form, Form) and form.constant and len(form.terms) > 1:
                for atom, k in form.terms.items():
                    rest = Form(form.terms, 0).plus(atom_form(atom), -k) if self.two_valued(atom) else None
                    if rest is not None and rest in self.classes:
                        self.classes.offer(c, self.beside(form, rest))

    @staticmethod
    def parts(form: Form, atom: Expr) -> Iterator[Form]:
        """Sums with a selection that have what cancels in a branch: ``where(c, 0, y - x) + x`` has the ``x``."""
        k = form.terms[atom]
        for branch in map(read, atom.args[1:]):
            rest = {a: -c for a, c in branch.terms.items() if k * c * form.terms.get(a, 0) < 0}
            if rest:
                yield Form({atom: 1, **rest}, 0)
            elif branch.terms and branch.constant and form.constant:
                # a literal that the sum has besides
                sign = branch.sign()
                yield Form({atom: sign}, -sign * branch.constant)


def _with_value(form: Form, quotient: Expr, value: int) -> Form:
    """``form`` with a literal in place of a quotient."""
    parts_of = {atom: factors(atom) for atom in form.terms if quotient is atom or atom.op == "mul"}
    inside = {atom: parts for atom, parts in parts_of.items() if quotient in parts}
    found = Form({atom: k for atom, k in form.terms.items() if atom not in inside}, form.constant)
    for atom, parts in inside.items():
        left = [part for part in parts if part is not quotient]
        scale = form.terms[atom] * value ** (len(parts) - len(left))
        found = found.plus(product_form(left), scale)
    return found
