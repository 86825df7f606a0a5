"""E-nodes with selections: sums that enter branches, and quotients of two values as selections between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from eqsat.alternatives.canonical import CanonicalGraph, KindNodes
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node, flattened, sum_of
from eqsat.extract.select import Choice, reachable
from eqsat.lang.expr import Expr
from eqsat.theory.forms import ZERO, LinearForm, atom_form, factors

#: What has a value for each of two cases.
_WITH_BRANCHES = frozenset({"where", "min", "max"})
#: What adds, or multiplies by a literal.
_ADDING = frozenset({"sum", "add", "sub", "neg", "mul"})


class SelectionNodes(KindNodes):
    """The e-nodes of selections, alone and in sums, and of quotients that they stand for."""

    def __init__(self, classes: CanonicalGraph) -> None:
        super().__init__(classes)
        # by atom, whether it has a factor of two values
        self._two_valued: dict[Expr, bool] = {}

    @provides("sums in selections")
    def entered(self, form: LinearForm) -> Iterator[Node]:
        """``where(c, x, y) + z`` is ``where(c, x + z, y + z)``, if ``z`` is short or cancels terms of a branch.

        Selections by the same condition become one.
        """
        parts: dict[Expr, LinearForm] = {}
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
                    yield self.sum_node([(wrapped, 1)])
            shorter = min([len(branch.terms) for branch in branches]) < len(rest.terms)
            if rest.addends() <= 2 or shorter:
                yield "where", None, (self.add_class(condition), *map(self.add_class, branches))
            elif len(part.terms) > 1:
                yield self.sum_node([(part, 1)], rest)

    def _has_two_values(self, atom: Expr) -> bool:
        """Whether a factor of ``atom`` is a quotient of two values.

        Of a product, which costs more than a selection, the factor may also be a variable.
        """
        if (found := self._two_valued.get(atom)) is None:
            parts = factors(atom)
            found = any(part.op == "floordiv" and self.theory.lower_value(part) is not None for part in parts)
            if not found and not self.classes.is_crowded():
                bits = [part for part in parts if part.op == "min" or (part.op == "var" and len(parts) > 1)]
                values = [self.theory.two_values(atom_form(bit)) for bit in bits]
                found = any(of_bit is not None and of_bit[2] == of_bit[1] + 1 for of_bit in values)
            self._two_valued[atom] = found
        return found

    def beside(self, form: LinearForm, rest: LinearForm) -> Node:
        """``form`` as ``rest`` and what that leaves, a selection between literals."""
        part = form.plus(rest, -1)
        sign = -1 if not part.constant and part.sign() < 0 else 1
        return self.sum_node([(rest, 1), (part.times(sign), sign)])

    def absorb_constants(self, choice: Choice) -> None:
        """Add ``x + where(p, a + c, b + c)`` for ``x + where(p, a, b) + c`` with an ``x`` that is there.

        Only for what ``choice`` needs, and once that is bracketed: before, it would keep sums from sharing.
        """
        classes = list(reachable(choice, self.classes.graph.roots))
        # the classes that add what has branches, and so may add a constant to it
        adding: list[int] = []
        above: set[int] = set()
        for c in classes:
            op, _, args = choice[c]
            if op in _WITH_BRANCHES:
                above.add(c)
            elif op in _ADDING and not above.isdisjoint(args):
                above.add(c)
                adding.append(c)
        self._step_from_one(classes, choice)
        for c in classes:
            form = self.classes.values[c]
            op, _, args = choice[c]
            if op == "mul" and choice[args[1]][0] == "const" and choice[args[0]][0] == "min":
                # for an ``x`` from 0 on ``min(x, 1)*6`` is ``where(x < 1, 0, 6)``
                self._enter_literals(c, args[:1], {args[0]: cast(int, choice[args[1]][1])}, 0)
            if not isinstance(form, LinearForm) or not form.constant:
                continue
            if len(form.terms) > 1:
                for atom in form.terms:
                    rest = form.direction().without(atom) if self._has_two_values(atom) else None
                    if rest is not None and rest in self.classes:
                        self.classes.add_node(c, self.beside(form, rest))
            elif (direction := form.direction()) in self.classes:
                # a multiple of a bit may be a selection that is not chosen
                multiple = self.add_class(direction)
                self._enter_literals(c, [multiple], {multiple: 1}, form.constant)
        if adding:
            uses, products = _uses(classes, choice), {c for c in classes if choice[c][0] == "mul"}
            # what is chosen may add a constant where the normal form has none
            for c in adding:
                self._absorb_constant(c, choice, uses, products)

    def _step_from_one(self, classes: Sequence[int], choice: Choice) -> None:
        """Choose ``y + 7`` as ``(y + 3) + 4`` if ``y`` has a selection, which may take in the 3, and no other use."""
        # by sum, the classes that add a literal to it, with the literal
        steps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for c in classes:
            op, _, args = choice[c]
            if op in ("add", "sub") and choice[args[1]][0] == "const":
                by = cast(int, choice[args[1]][1])
                steps[args[0]].append((c, by if op == "add" else -by))
        several = {y: found for y, found in steps.items() if len(found) > 1 and y not in self.classes.graph.roots}
        uses = _uses(classes, choice) if several else Counter()
        for y, found in several.items():
            if uses[y] > len(found):
                continue
            selects = any(choice[a][0] == "where" for a in flattened(choice, y, uses).terms)
            if selects or any(map(self._has_two_values, self.classes.form_of(y).terms)):
                (first, least), *others = sorted(found, key=lambda step: (step[1], step[0]))
                for c, by in others:
                    node = sum_of([(first, 1)], by - least)
                    if self.classes.add_node(c, node):
                        choice[c] = node

    def _absorb_constant(self, c: int, choice: Choice, uses: Mapping[int, int], products: Container[int]) -> None:
        """Add to a class its chosen sum with the constant in the literals of a selection, if the sum has one.

        ``products`` are the multiples that are chosen: those of sums are not multiplied out but to move a constant.
        """
        flat = flattened(choice, c, uses)
        constant, terms = flat.constant, flat.terms
        selections = [a for a in terms if choice[a][0] == "where"]
        if selections and constant:
            undivided = flattened(choice, c, uses, products)
            self._enter_literals(c, selections, undivided.terms, undivided.constant)
        moved = {a: apart for a in flat.alone if (apart := self._constant_apart(a, choice)) is not None}
        for some in [[a] for a in moved] + ([[*moved]] if len(moved) > 1 else []):
            others, total = Counter(terms), constant
            for a in some:
                others[moved[a].c] += terms[a] * moved[a].factor
                total += terms[a] * moved[a].constant
                del others[a]
            self._enter_literals(c, [a for a in selections if a not in some], others, total)
            if len(some) + bool(constant) > 1:
                self.classes.add_node(c, sum_of(others.items(), total))

    def _enter_literals(self, c: int, selections: Iterable[int], terms: Mapping[int, int], constant: int) -> None:
        """Add the sum of ``terms`` and a constant to a class, with the constant in the literals of a selection."""
        for a in selections:
            if not (k := terms.get(a, 0)):
                continue
            whole = self.add_class(self.classes.form_of(a).times(k).shifted(constant))
            for op, _, args in list(self.classes.graph.classes[a]):
                if op == "where" and not any(self.classes.form_of(x).terms for x in args[1:]):
                    ends = [self.add_class(self.classes.form_of(x).times(k).shifted(constant)) for x in args[1:]]
                    self.classes.add_node(whole, ("where", None, (args[0], *ends)))
            self.classes.add_node(c, sum_of([*[(b, j) for b, j in terms.items() if b != a], (whole, 1)], 0))

    def _constant_apart(self, c: int, choice: Choice) -> _Multiple | None:
        """``max(x*6 - 12, 0)`` as ``max(x, 2)*6 - 12``, and so ``where(p, x*6 - 12, 0)``; ``None`` of other classes."""
        op, _, args = choice[c]
        ends = args[1:] if op == "where" else args
        operands = [self.classes.form_of(a) for a in ends] if op in _WITH_BRANCHES else []
        if sorted(bool(operand.terms) for operand in operands) != [False, True]:
            return None
        [operand] = [operand for operand in operands if operand.terms]
        if not operand.constant:
            return None
        value = self.classes.form_of(c).shifted(-operand.constant)
        factor = value.common_factor()
        if op == "where" and operand.sign() < 0:
            # `where(p, 1 - x, 0)` is less `where(p, x, 1)`
            factor = -factor
        return _Multiple(self.add_class(value.divided(factor)), factor, operand.constant)


class _Multiple(NamedTuple):
    """A class times a factor, and a constant."""

    c: int
    factor: int
    constant: int


def _uses(classes: Iterable[int], choice: Choice) -> Counter[int]:
    return Counter([a for c in classes for a in choice[c][2]])
