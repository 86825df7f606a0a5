"""Spellings: the e-nodes that the theory offers for its normal forms.

A normal form says *what* a term is; this module lists ways to compute it, as a plain e-graph whose classes are forms
and conditions. A sum is one n-ary node; ``A - n*(A//n)`` is also ``A % n``, alone or as part of a longer sum; the
terms of the input that have the same normal form are spellings too. Extraction chooses;
:func:`eqsat.sharing.share_sums` then brackets the chosen sums so that they share what they can.

An n-ary node is ``("sum", (constant, coefficients), operands)``: one row where associativity and commutativity would
make exponentially many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import gcd
from typing import cast

from eqsat.expr import Expr, const, make
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node, Payload
from eqsat.extract.select import Choice, reaches
from eqsat.facts import chain_members
from eqsat.forms import ZERO, Division, Form, atom_form, factors, number, read, to_expr
from eqsat.linear import Theory
from eqsat.ops import COMPARISONS
from eqsat.spelled_extremes import ExtremeSpeller
from eqsat.spelled_input import InputSpeller
from eqsat.spelled_products import ProductSpeller
from eqsat.spelled_selections import SelectionSpeller
from eqsat.terms import buffer_key, terms_of
from eqsat.value_graph import Value, ValueGraph

#: One sum is spelled in at most so many ways.
MAX_SPELLINGS = 8
FEW_SPELLINGS = 3
#: So is a sum of so many terms.
MANY_TERMS = 24
#: Comparisons of so many members of a junction are merged, two by two.
MAX_MERGED = 4
_REMAINDERS = {"floordiv": "mod", "tdiv": "tmod"}


class Speller(ValueGraph):
    """An e-graph over normal forms, grown on demand from the roots.

    Classes are numbered in the order in which they are first needed, which depends on the normal forms alone.
    """

    def __init__(self, theory: Theory, variables: Mapping[str, Expr]) -> None:
        super().__init__(theory)
        # by name the variables, and the buffers, whose names are followed by brackets
        self.variables = dict(variables)
        self.input = InputSpeller(self)
        self.products = ProductSpeller(self)
        self.selections = SelectionSpeller(self)
        self.extremes = ExtremeSpeller(self)
        #: Selections of answers that stand for quotients.
        self.seen_through: set[Expr] = set()
        # other readings of quotients, which are spelled if what they divide is there
        self._nested: list[tuple[Expr, Division]] = []
        # the classes that divisions have as dividends
        self._dividends: set[int] = set()

    def need_roots(self, values: Iterable[Value]) -> None:
        """Make the classes of ``values`` the roots; junctions among them are also read member by member in context."""
        self.graph.roots = sorted({self.need(value) for value in values})
        for c in self.graph.roots:
            value = self.values[c]
            if isinstance(value, Expr) and value.op in ("and", "or"):
                simpler = self.theory.in_context(value)
                if simpler is not value:
                    self.grow()
                    self.offer(c, (simpler.op, cast(Payload, simpler.value), self.operands(simpler)))

    def grow(self) -> None:
        """Spell every class that is needed and not yet spelled."""
        while self._pending:
            c = self._pending.pop()
            value = self.values[c]
            for node in self._nodes(value):
                self.offer(c, node)
            if not self.is_crowded():
                self.input.spell(c)
        nested, self._nested = self._nested, []
        for atom, division in nested:
            if all(a.op == "var" or atom_form(a) in self._ids for a in division.dividend.terms):
                operands = self.need(division.dividend), self.need(division.divisor)
                self.offer(self._ids[atom_form(atom)], ("floordiv", None, operands))
        if self._pending:
            self.grow()
        for variable, form in self.theory.solved.items():
            solved = self._ids.get(form)
            if solved is not None:
                self.offer(solved, ("var", cast(str, variable.value), ()))

    def _nodes(self, value: Value) -> Iterator[Node]:
        """The ways to compute a value by the laws of its kind."""
        if isinstance(value, Expr):
            return self._condition_nodes(value)
        atom = value.single()
        return self._form_nodes(value) if atom is None else self._atom_nodes(atom)

    def as_given(self, choice: Choice) -> Choice | None:
        """``choice`` with the input's own nodes where it has any; ``None`` if that is nowhere."""
        return self.with_nodes(choice, self.input.nodes) if self.input.nodes else None

    def as_written(self, terms: Iterable[Expr]) -> dict[int, Node]:
        """By class, the first of ``terms`` that belongs to it, as a node over the classes of its operands."""
        nodes: dict[int, Node] = {}
        for term in terms:
            if term.args:
                c, *operands = [self.need(self.value_of(part)) for part in (term, *term.args)]
                nodes.setdefault(c, (term.op, None, tuple(operands)))
        self.grow()
        for c, node in nodes.items():
            self.offer(c, node)
        return nodes

    def with_nodes(self, choice: Choice, nodes: Mapping[int, Node]) -> Choice:
        """``choice`` with other nodes for some of its classes, but for those that would need themselves."""
        changed = dict(choice)
        for c, node in nodes.items():
            known = node in self.graph.classes[c] and all(map(changed.__contains__, node[2]))
            if known and changed.get(c) != node and not reaches(changed, node[2], c):
                changed[c] = node
        return changed

    def _condition_nodes(self, term: Expr) -> Iterator[Node]:
        if term.op == "bool":
            yield "bool", cast(bool, term.value), ()
        elif term.op == "buffer":
            yield "buffer", buffer_key(term), ()
        else:
            yield term.op, None, self.operands(term)
            if term.op in COMPARISONS and not term.args[0].is_bool:
                yield from self._moved_comparisons(term)
            elif term.op in ("and", "or") and not self.is_crowded():
                yield from self.merged_comparisons(term)

    def merged_comparisons(self, term: Expr, alike: bool = False) -> Iterator[Node]:
        """``x < y and x < z`` is ``x < min(y, z)``; under ``or`` it is ``max``.

        Of comparisons that share a term, or, if ``alike``, that share nothing but a literal.
        """
        op, members = term.op, chain_members(term, term.op)
        if len(members) > MAX_MERGED:
            return
        for one, other in combinations(sorted(members, key=lambda m: m.key), 2):
            f, g = _above_zero(one), _above_zero(other)
            if f is None or g is None:
                continue
            shared = sum(g.terms.get(a) == k for a, k in f.terms.items())
            if alike:
                if shared or not f.constant or f.constant != g.constant:
                    continue
            elif not shared or max(len(f.terms), len(g.terms)) > shared + 1:
                continue
            both = self.theory.extreme("min" if op == "and" else "max", [f, g])
            merged = make("le", const(-both.constant), to_expr(Form(both.terms, 0)))
            if len(members) == 2:
                yield "le", None, self.operands(merged)
                yield from self._moved_comparisons(merged)
            else:
                rest = [m for m in members if m not in (one, other)]
                parts = [self.theory.junction(op, part) for part in ([one, other], rest)]
                yield op, None, tuple([self.need(part) for part in parts])

    def _moved_comparisons(self, term: Expr) -> Iterator[Node]:
        """Comparisons with negative terms moved across: ``1 <= x - y`` is ``y < x``; constants of remainders too."""
        literal = next((a for a in term.args if a.op == "const"), None)
        if literal is None:
            return
        on_left = literal is term.args[0]
        form = read(term.args[on_left])
        for operands in self._splits(form):
            above = below = ZERO
            for part, k in operands:
                above, below = (above.plus(part, k), below) if k > 0 else (above, below.plus(part, -k))
            limit = cast(int, literal.value) - form.constant + above.constant - below.constant
            if not below.terms:
                sides = (self.need(number(limit)), self.need(above))
                yield term.op, None, sides if on_left else sides[::-1]
            elif not above.terms:
                yield self._negated_comparison(term.op, below, limit, on_left)
            elif term.op in ("eq", "ne"):
                if limit == 0:
                    yield term.op, None, (self.need(above), self.need(below))
            elif limit in (0, 1):
                sides = (self.need(above), self.need(below))
                strict = (limit == 1) == on_left
                yield "lt" if strict else "le", None, sides[::-1] if on_left else sides
            elif any(part.single() is None for part, _ in operands):
                sides = (self.need(below.shifted(limit)), self.need(above))
                yield term.op, None, sides if on_left else sides[::-1]

    def _negated_comparison(self, op: str, form: Form, limit: int, on_left: bool) -> Node:
        """The comparison of ``-form`` with a literal, ``limit``, as one of ``form``."""
        if op in ("eq", "ne"):
            return op, None, (self.need(form), self.need(number(-limit)))
        if on_left:
            return "lt", None, (self.need(form), self.need(number((op == "le") - limit)))
        return "le", None, (self.need(number((op == "lt") - limit)), self.need(form))

    def _form_nodes(self, form: Form) -> Iterator[Node]:
        if not form.terms:
            yield "const", form.constant, ()
            return
        if form.is_affine():
            pairs = sorted([(self.need_atom(a), k) for a, k in form.terms.items()])
            yield "sum", (form.constant, tuple([k for _, k in pairs])), tuple([c for c, _ in pairs])
            return
        if self.is_out_of_time():
            yield self.sum_node([(self.theory.inner(a), k) for a, k in form.terms.items()], form.constant)
            return
        # of equal prices the first wins, and a remainder reads better than what it stands for
        for quotient in form.terms:
            for division in self._divisions(form, quotient):
                if division.remainder == form:
                    yield "mod", None, (self._need_dividend(division.dividend), self.need(division.divisor))
                    if self.selections.two_valued(quotient):
                        yield self.selections.beside(form, Form(division.dividend.terms, 0))
                elif division.remainder.times(-1).shifted(division.most) == form and not division.divisor.terms:
                    # -1 - A is the complement of A
                    complement = division.dividend.times(-1).shifted(division.most)
                    yield "mod", None, (self.need(complement), self.need(division.divisor))
            for factor in factors(quotient):
                if factor.op in _REMAINDERS and self.remainder_of(factor) == form:
                    yield _REMAINDERS[factor.op], None, self.operands(factor)
                    if factor.op == "floordiv":
                        yield from self.selections.by_either("mod", *map(self.theory.inner, factor.args))
            if quotient.op == "tdiv" and form == Form({quotient: -1}, 0):
                dividend, divisor = map(self.theory.inner, quotient.args)
                yield "tdiv", None, (self.need(dividend.times(-1)), self.need(divisor))
                yield "tdiv", None, (self.need(dividend), self.need(divisor.times(-1)))
        yield from self.selections.entered(form)
        yield from self.selections.of_quotients(form)
        splits = self._splits(form)
        if len(splits) > 1 and self._ids[form] in self._dividends:
            # of equal prices the first wins, and a dividend that is seen to be positive needs no fix-up of its sign
            splits.sort(key=lambda operands: self._least(operands, form) < 0)
        for operands in splits:
            yield self.sum_node(operands, _beside(operands, form))
        if len(form.terms) == 2:
            yield from self._completed_remainders(form)
        yield from self._absorbing_quotients(form)
        yield from self.products.factored(form)
        yield from self.products.of_variables(form)
        yield from self._joined_sums(form)
        yield from self.extremes.nodes(form)

    def _completed_remainders(self, form: Form) -> Iterator[Node]:
        """``k*(x - n*((x + z)//n))`` is ``k*((x + z)%n - z)``."""
        for quotient, coefficient in form.terms.items():
            if quotient.op not in ("floordiv", "tdiv") or quotient.args[1].op != "const":
                continue
            k, left = divmod(-coefficient, quotient.args[1].vmin)
            if left or any(c % k for c in form.terms.values()):
                continue
            if k != 1:
                yield self.sum_node([(Form({a: c // k for a, c in form.terms.items()}, 0), k)], form.constant)
                continue
            remainder = self.remainder_of(quotient)
            rest = form.plus(remainder, -1)
            if len(rest.terms) == 1:
                yield self.sum_node(
                    [(remainder, 1), *((atom_form(a), c) for a, c in rest.terms.items())], rest.constant
                )

    def _joined_sums(self, form: Form) -> Iterator[Node]:
        """Sums over one range are one sum."""
        over: dict[tuple[Expr, ...], Form] = {}
        for atom, k in form.terms.items():
            if atom.op == "sum_over":
                part = over.get(atom.args[1:], ZERO)
                over[atom.args[1:]] = part.plus(atom_form(atom), k)
        for (index, low, high), part in over.items():
            if len(part.terms) < 2:
                continue
            body = ZERO
            for atom, k in part.terms.items():
                body = body.plus(self.theory.inner(atom.args[0]), k)
            joined = "sum_over", None, tuple([self.need(read(a)) for a in (to_expr(body), index, low, high)])
            if part == form:
                yield joined
            else:
                self.offer(self.need(part), joined)
                others = [(atom_form(a), k) for a, k in form.terms.items() if a not in part.terms]
                yield self.sum_node([*others, (part, 1)], form.constant)

    def _absorbing_quotients(self, form: Form) -> Iterator[Node]:
        """The rest of a sum may enter the floor: ``A//n + w = (A + n*w)//n``, ``w - A//n = (n*w - A + n-1)//n``.

        For a divisor that is no literal only a constant may.
        """
        for atom, coefficient in form.terms.items():
            if abs(coefficient) != 1 or atom.op != "floordiv":
                continue
            if atom.args[1].op != "const":
                dividend, divisor = map(self.theory.inner, atom.args)
                if len(form.terms) == coefficient == 1:
                    whole = dividend.plus(divisor, form.constant)
                    if len(whole.terms) <= len(dividend.terms):
                        yield "floordiv", None, (self._need_dividend(whole), self.need(divisor))
                continue
            n = cast(int, atom.args[1].value)
            inner = self.theory.inner(atom.args[0])
            rest = form.plus(atom_form(atom), -coefficient).times(n)
            dividend = rest.plus(inner, coefficient).shifted(n - 1 if coefficient < 0 else 0)
            # of a minimum the rest may cancel what one operand has
            if len(dividend.terms) <= len(inner.terms) + any(a.op == "min" for a in dividend.terms):
                yield from self._quotient_nodes(dividend, n)

    def _quotient_nodes(self, dividend: Form, n: int) -> Iterator[Node]:
        c = self._need_dividend(dividend)
        # the sign of the numerator is worth knowing well: it decides the price
        self.graph.bounds[c] = self.theory.bounds(dividend)
        yield "floordiv", None, (c, self.need(number(n)))
        if all(k < 0 for k in dividend.terms.values()) or any(a.op == "min" for a in dividend.terms):
            yield "floordiv", None, (self.need(dividend.times(-1)), self.need(number(-n)))
        yield from self._halved_first(dividend, n)

    def _need_dividend(self, dividend: Form) -> int:
        c = self.need(dividend)
        self._dividends.add(c)
        return c

    def _least(self, operands: Sequence[tuple[Form, int]], form: Form) -> int:
        """The lower bound of ``form`` that the operands of its sum show."""
        least = _beside(operands, form)
        for part, k in operands:
            low, high = self.theory.bounds(part)
            least += k * (low if k > 0 else high)
        return least

    def _halved_first(self, dividend: Form, n: int) -> Iterator[Node]:
        """``(x*3 + y*2)//6`` is ``(x + x//2 + y)//3``: a quotient by a power of two costs less than a product."""
        for m in [k - 1 for k in dividend.terms.values()]:
            divides = 1 < m < n and is_power_of_two(m) and n % m == 0
            if divides and [k for k in dividend.terms.values() if k % m] == [m + 1]:
                yield "floordiv", None, (self.need(self.theory.quotient_by(dividend, m)), self.need(number(n // m)))

    def _atom_nodes(self, atom: Expr) -> Iterator[Node]:
        if atom.op == "var":
            yield "var", cast(str, atom.value), ()
            return
        yield from self.selections.of_quotients(atom_form(atom))
        if atom.op == "mul":
            yield from self.products.nodes(atom)
        elif atom.op == "buffer":
            yield "buffer", buffer_key(atom), ()
        elif atom.op == "floordiv" and atom.args[1].op == "const":
            yield from self._quotient_nodes(self.theory.inner(atom.args[0]), cast(int, atom.args[1].value))
            for negated in self._negated(atom_form(atom), atom):
                yield self.sum_node([(negated, -1)], 0)
            self._nested += [(atom, division) for division in self.theory.divisions(atom)[1:]]
        elif atom.op == "tdiv" and atom.args[1].op == "const":
            yield "tdiv", None, self.operands(atom)
            dividend, n = self.theory.inner(atom.args[0]), cast(int, atom.args[1].value)
            if -n < self.theory.plain_bounds(dividend)[0] < 0:
                # only what lies between -n and 0 is rounded up
                yield "max", None, (self.need(self.theory.quotient_by(dividend, n)), self.need(ZERO))
        elif atom.op == "min":
            yield from self.extremes.nodes(atom_form(atom))
        elif atom.op == "where":
            yield from self.selections.nodes(atom)
        elif atom.op == "floordiv":
            dividend, divisor = map(self.theory.inner, atom.args)
            yield "floordiv", None, (self._need_dividend(dividend), self.need(divisor))
            yield from self.selections.by_either("floordiv", dividend, divisor)
            n = gcd(divisor.content(), divisor.constant)
            smaller = divisor.divided(n)
            if n > 1 and self.theory.bounds(smaller)[0] > 0:
                # by the literal first where that spares a product
                first = self.theory.quotient_by(dividend, n)
                yield "floordiv", None, (self._need_dividend(first), self.need(smaller))
            if self.input.truncates and self.theory.bounds(dividend)[0] >= 0 and self.theory.bounds(divisor)[0] > 0:
                # of numbers that are not negative the two quotients are one
                yield "tdiv", None, self.operands(atom)
        else:
            yield atom.op, None, self.operands(atom)

    def _splits(self, form: Form) -> list[list[tuple[Form, int]]]:
        """The sum as it is, and with remainders ``K*(A % n)`` in place of quotients and terms of their numerators."""
        found: list[list[tuple[Form, int]]] = []
        stack: list[tuple[Form, list[tuple[Form, int]]]] = [(form, [])]
        most = FEW_SPELLINGS if len(form.terms) > MANY_TERMS or self.is_crowded() else MAX_SPELLINGS
        inner = self.theory.inner
        while stack:
            rest, taken = stack.pop()
            found.append([*[(inner(a), k) for a, k in rest.terms.items()], *taken])
            if len(found) == most:
                break
            smaller = [
                (rest.plus(part, -scale), [*taken, (part, scale)])
                for quotient in rest.terms
                if quotient.op != "var"
                for part in self._parts_with(rest, quotient)
                if part != form
                for scale in _shrinking_scales(part, rest, quotient)
            ]
            smaller.sort(key=lambda item: (-len(item[0].terms), hash(item[0])))
            stack += smaller
        return found

    def _parts_with(self, form: Form, quotient: Expr) -> Iterator[Form]:
        """Sums with ``quotient`` that may be one operand of a longer sum: remainders, and divisions of the input."""
        for division in self._divisions(form, quotient):
            yield division.remainder
        for part in self.input.parts.get(quotient, ()):
            if part.terms.keys() <= form.terms.keys():
                yield part
        if quotient.op == "tdiv":
            part = self.remainder_of(quotient)
            if quotient in part.terms and part.terms.keys() <= form.terms.keys():
                yield part
        if quotient.op == "min":
            yield from self.extremes.parts(form, quotient)
        if quotient.op == "where":
            yield from self.selections.parts(form, quotient)
        if quotient.op == "floordiv" and quotient.args[1].op == "const":
            # with its negative terms inside, the numerator of A//n + a need not be negative
            negative = {a: 1 for a, k in self.theory.inner(quotient.args[0]).terms.items() if k < 0}
            if negative and negative.keys() <= form.terms.keys():
                yield Form({quotient: 1, **negative}, 0)
            yield from self._negated(form, quotient)

    def _negated(self, form: Form, quotient: Expr) -> Iterator[Form]:
        """``-(A//n)`` where a sum has ``A//n``, if ``(n-1 - A)//n`` needs no constant, or no fix-up of its sign."""
        k, n = form.terms[quotient], cast(int, quotient.args[1].value)
        shift = 0 if form.constant % k else form.constant // k
        inner = self.theory.inner(quotient.args[0]).shifted(n * shift)
        if k < 0 and inner.constant == n - 1:
            yield Form({quotient: -1}, -shift)
        elif not is_power_of_two(n):
            low, high = self.theory.plain_bounds(inner)
            if low < 0 and high < n:
                yield Form({quotient: -1}, -shift)

    def remainder_of(self, quotient: Expr) -> Form:
        """``A % n`` of a quotient ``A // n``, as a sum."""
        dividend, divisor = map(self.theory.inner, quotient.args)
        return dividend.plus(self.theory.times(divisor, atom_form(quotient)), -1)

    def _divisions(self, form: Form, atom: Expr) -> Iterator[Division]:
        if atom.op != "var":
            yield from self.theory.divisions_in(form, atom)
            for division in self.theory.readings.get(atom, ()):
                if division.remainder.terms.keys() <= form.terms.keys():
                    yield division

    def spell(self, choice: Choice) -> dict[int, Expr]:
        """The terms of the graph's roots under a choice of nodes."""
        terms = self.terms(choice, self.graph.roots)
        for c, term in terms.items():
            value = self.values[c]
            if term.op == "where" and isinstance(value, Form) and all(atom.op != "where" for atom in value.terms):
                self.theory.read_as(term, value)
                self.seen_through.add(term)
        return {root: terms[root] for root in self.graph.roots}

    def terms(self, choice: Choice, classes: Iterable[int]) -> dict[int, Expr]:
        """The terms that a choice spells for all classes that ``classes`` need.

        Where one would be wider than a term of the input with the same values, that stands for it: spelled without
        remainders, products could grow beyond what is accepted.
        """
        return terms_of(self.graph, choice, classes, self.variables, self.input.narrower)


def _above_zero(comparison: Expr) -> Form | None:
    """The form that is at least zero iff the comparison holds."""
    if comparison.op not in ("lt", "le") or comparison.args[0].is_bool:
        return None
    left, right = map(read, comparison.args)
    return right.plus(left, -1).shifted(-1 if comparison.op == "lt" else 0)


def _beside(operands: Sequence[tuple[Form, int]], form: Form) -> int:
    """The constant that ``form`` has beside multiples of these operands."""
    return form.constant - sum([k * part.constant for part, k in operands])


def _shrinking_scales(part: Form, form: Form, quotient: Expr) -> list[int]:
    """The multiples of ``part`` that cancel a term of ``form`` and leave less of ``quotient``, or a shift of it."""
    found: dict[int, None] = {}
    coefficient, share = form.terms[quotient], part.terms[quotient]
    for atom, other in part.terms.items():
        scale, uneven = divmod(form.terms[atom], other)
        left = abs(coefficient - scale * share)
        shifts = abs(share) > 1 and is_power_of_two(left) and not is_power_of_two(abs(coefficient))
        if not uneven and (left < abs(coefficient) or shifts):
            found[scale] = None
    return sorted(found)
