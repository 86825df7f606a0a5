"""Spellings: the e-nodes that the theory offers for its normal forms.

A normal form says *what* a term is; this module lists ways to compute it, as a plain e-graph whose classes are forms
and conditions. A sum is one n-ary node; ``A - n*(A//n)`` is also ``A % n``, alone or as part of a longer sum; the
terms of the input that have the same normal form are spellings too. Extraction chooses. :func:`share_sums` then
brackets the chosen sums so that they share what they can.

An n-ary node is ``("sum", (constant, coefficients), operands)``: one row where associativity and commutativity would
make exponentially many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import cast

from eqsat.expr import FALSE, TRUE, Expr, const, make, named_variable, shift_amount
from eqsat.extract.graph import EGraph, Node, Payload
from eqsat.extract.select import Choice, reachable, reaches
from eqsat.forms import ZERO, Division, Form, atom_form, factors, number, product, read, to_expr
from eqsat.linear import Theory
from eqsat.ops import REDUCTIONS, Buffer

#: A class of the graph: the normal form of an integer, or a condition in normal form.
Value = Form | Expr

#: One sum is spelled in at most so many ways.
MAX_SPELLINGS = 8
#: From so many classes on, in fewer, and no more terms of the input are offered.
MANY_CLASSES = 600
FEW_SPELLINGS = 3
#: So many terms of the input are offered as spellings of one class.
MAX_ORIGINALS = 6
_COMPARISONS = frozenset({"lt", "le", "eq", "ne"})
_QUOTIENTS = frozenset({"floordiv", "mod"})
_SUMS = frozenset({"add", "sub", "neg"})
#: Conjunctions and disjunctions of the input have no spelling that the normal form has not.
_WORTH_OFFERING = _SUMS | frozenset(
    {"floordiv", "mod", "tdiv", "tmod", "mul", "where", "min", "max", "shl", "shr", "lt", "le", "eq", "ne", *REDUCTIONS}
)


class Speller:
    """An e-graph over normal forms, grown on demand from the roots.

    Classes are numbered in the order in which they are first needed, which depends on the normal forms alone.
    """

    def __init__(self, theory: Theory, variables: Mapping[str, Expr]) -> None:
        # by name the variables, and the buffers, whose names are followed by brackets
        self.theory = theory
        self.variables = dict(variables)
        self.graph = EGraph()
        self.values: list[Value] = []
        self._ids: dict[Value, int] = {}
        self._pending: list[int] = []
        self._originals: dict[Value, list[Expr]] = {}
        # for each class that the input spells, a node as the input has it
        self._given: dict[int, Node] = {}
        # by quotient, the sums with it that a division of the input stands for
        self._parts: dict[Expr, list[Form]] = {}
        # the number of values of each index of a reduction, by its bit
        self._extents = theory.variables.index_extents

    def add_originals(self, terms: Iterable[Expr]) -> None:
        """Let terms of the input, normalised before, spell the classes that they belong to; operands come first."""
        parts: dict[Expr, dict[Form, None]] = {}
        for term in terms:
            if term.op not in _WORTH_OFFERING:
                continue
            value = self.value_of(term)
            if isinstance(value, Form):
                worth = any(a.op != "var" for a in value.terms) or term.op in REDUCTIONS
            else:
                worth = term.op == "where" or any(self._has_quotient(a) for a in term.args)
            if worth:
                self._originals.setdefault(value, []).append(term)
            if term.op in _QUOTIENTS and isinstance(value, Form) and value.single() is None:
                for atom in value.terms:
                    if atom.op == "floordiv":
                        parts.setdefault(atom, {})[Form(value.terms, 0)] = None
        self._parts = {atom: sorted(forms, key=hash) for atom, forms in parts.items()}

    def value_of(self, term: Expr) -> Value:
        """The class value of any term."""
        return self.theory.condition(term) if term.is_bool else self.theory.form(term)

    def need_roots(self, values: Iterable[Value]) -> None:
        """Make the classes of ``values`` the roots; junctions among them are also read member by member in context."""
        self.graph.roots = sorted({self.need(value) for value in values})
        for c in self.graph.roots:
            value = self.values[c]
            if isinstance(value, Expr) and value.op in ("and", "or"):
                simpler = self.theory.in_context(value)
                if simpler is not value:
                    self.grow()
                    self.offer(c, (simpler.op, None, self._operands(simpler)))

    def need(self, value: Value, spell: bool = True) -> int:
        """The class of a normal form; its spellings are added by :meth:`grow`, unless ``spell`` is false."""
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value.ordered() if isinstance(value, Form) else value)
            self.graph.classes[found] = []
            self.graph.bounds[found] = (
                self.theory.plain_bounds(value) if isinstance(value, Form) else (value.vmin, value.vmax)
            )
            if self._extents:
                self.graph.weights[found] = self._trips(value)
            if spell:
                self._pending.append(found)
        return found

    def _trips(self, value: Value) -> int:
        """How often a class is computed: once for each value of the indices that it speaks of."""
        bits = 0
        for atom in value.terms if isinstance(value, Form) else (value,):
            bits |= self.theory.variables.of(atom)
        return prod([extent for bit, extent in self._extents.items() if bits & bit])

    def __contains__(self, value: Value) -> bool:
        return value in self._ids

    def grow(self) -> None:
        """Spell every class that is needed and not yet spelled."""
        while self._pending:
            c = self._pending.pop()
            value = self.values[c]
            nodes = self._condition_nodes(value) if isinstance(value, Expr) else self._form_nodes(value)
            for node in nodes:
                self.offer(c, node)
            for node in self._original_nodes(value):
                self.offer(c, node)
                self._given.setdefault(c, node)
        for variable, form in self.theory.solved.items():
            solved = self._ids.get(form)
            if solved is not None:
                self.offer(solved, ("var", cast(str, variable.value), ()))

    def offer(self, c: int, node: Node) -> None:
        """Add a node to a class."""
        nodes = self.graph.classes[c]
        if node not in nodes and c not in node[2]:
            nodes.append(node)

    def _has_quotient(self, term: Expr) -> bool:
        value = self.value_of(term)
        return isinstance(value, Form) and any(a.op != "var" for a in value.terms)

    def as_given(self, choice: Choice) -> Choice | None:
        """``choice`` with the input's own nodes where it has any; ``None`` if that is nowhere."""
        changed = dict(choice)
        for c, node in self._given.items():
            if c in choice and all(a in choice for a in node[2]) and not reaches(changed, node[2], c):
                changed[c] = node
        return changed if self._given else None

    def _original_nodes(self, value: Value) -> list[Node]:
        if len(self.values) > MANY_CLASSES:
            return []
        # terms that differ in the order of operands give the same node: take them by what their operands mean
        meanings = dict.fromkeys(map(self._meaning, self._originals.get(value, ())))
        chosen = sorted(meanings, key=lambda m: (m[0], hash(m[1]), tuple(map(hash, m[2]))))[:MAX_ORIGINALS]
        nodes: list[Node] = []
        for op, payload, operands in chosen:
            if op == "sum":
                constant, coefficients = cast(tuple[int, tuple[int, ...]], payload)
                pairs = sorted((self.need(a), k) for a, k in zip(operands, coefficients, strict=True))
                nodes.append(("sum", (constant, tuple([k for _, k in pairs])), tuple([c for c, _ in pairs])))
            else:
                nodes.append((op, None, tuple([self.need(a) for a in operands])))
        return nodes

    def _meaning(self, term: Expr) -> tuple[str, Payload, tuple[Value, ...]]:
        """A term of the input as an operator over normal forms; sums as wide as they are written."""
        if term.op not in _SUMS:
            return term.op, None, tuple(map(self.value_of, term.args))
        total: dict[Value, int] = {}
        constant = 0
        stack = [(term, 1)]
        while stack:
            part, scale = stack.pop()
            if part.op in _SUMS:
                stack += [(part.args[0], -scale if part.op == "neg" else scale)]
                stack += [(arg, -scale if part.op == "sub" else scale) for arg in part.args[1:]]
            elif part.op == "mul" and part.args[1].op == "const":
                stack.append((part.args[0], scale * part.args[1].vmin))
            elif part.op == "mul" and part.args[0].op == "const":
                stack.append((part.args[1], scale * part.args[0].vmin))
            elif part.op == "const":
                constant += scale * part.vmin
            else:
                value = self.value_of(part)
                if isinstance(value, Form) and not value.terms:
                    constant += scale * value.constant
                else:
                    total[value] = total.get(value, 0) + scale
        operands = sorted([v for v, k in total.items() if k], key=hash)
        return "sum", (constant, tuple([total[v] for v in operands])), tuple(operands)

    # ---- conditions

    def _condition_nodes(self, term: Expr) -> Iterator[Node]:
        if term.op == "bool":
            yield "bool", cast(bool, term.value), ()
        elif term.op == "buffer":
            yield "buffer", buffer_key(term), ()
        else:
            yield term.op, None, self._operands(term)
            if term.op in _COMPARISONS and not term.args[0].is_bool:
                yield from self._moved_comparisons(term)

    def _moved_comparisons(self, term: Expr) -> Iterator[Node]:
        """Comparisons with negative terms moved across: ``1 <= x - y`` is ``y < x``; constants of remainders too."""
        literal = next((a for a in term.args if a.op == "const"), None)
        if literal is None:
            return
        on_left = literal is term.args[0]
        for operands in self._splits(read(term.args[on_left])):
            above = below = ZERO
            for part, k in operands:
                above, below = (above.plus(part, k), below) if k > 0 else (above, below.plus(part, -k))
            limit = cast(int, literal.value) + above.constant - below.constant
            if not below.terms:
                sides = (self.need(number(limit)), self.need(above))
                yield term.op, None, sides if on_left else sides[::-1]
            elif not above.terms:
                continue
            elif term.op in ("eq", "ne"):
                if limit == 0:
                    yield term.op, None, (self.need(above), self.need(below))
            elif limit in (0, 1):
                sides = (self.need(above), self.need(below))
                strict = (limit == 1) == on_left
                yield "lt" if strict else "le", None, sides[::-1] if on_left else sides

    def _operands(self, term: Expr) -> tuple[int, ...]:
        return tuple([self.need(a if a.is_bool else read(a)) for a in term.args])

    # ---- integers

    def _form_nodes(self, form: Form) -> Iterator[Node]:
        if not form.terms:
            yield "const", form.constant, ()
            return
        atom = form.single()
        if atom is not None:
            yield from self._atom_nodes(atom)
            return
        # of equal prices the first wins, and a remainder reads better than what it stands for
        for quotient in form.terms:
            for division in self._divisions(form, quotient):
                if division.remainder == form:
                    yield "mod", None, (self.need(division.dividend), self.need(division.divisor))
        for operands in self._splits(form):
            yield self._sum_node(operands, form.constant - sum(k * part.constant for part, k in operands))
        yield from self._absorbing_quotients(form)
        yield from self._factored_products(form)
        yield from self._entered_selections(form)
        yield from self._joined_sums(form)

    def _factored_products(self, form: Form) -> Iterator[Node]:
        """``x*z + y*z`` is ``(x + y)*z``."""
        users: dict[Expr, list[Expr]] = {}
        for atom in form.terms:
            for factor in dict.fromkeys(factors(atom)):
                users.setdefault(factor, []).append(atom)
        for factor, atoms in users.items():
            if len(atoms) < 2:
                continue
            quotient = ZERO
            for atom in atoms:
                left = factors(atom)
                left.remove(factor)
                quotient = quotient.plus(atom_form(product(left)) if left else number(1), form.terms[atom])
            part = Form({atom: form.terms[atom] for atom in atoms}, 0)
            if part == form:
                yield "mul", None, (self.need(quotient), self.need(atom_form(factor)))
            else:
                rest = [(atom_form(a), k) for a, k in form.terms.items() if a not in part.terms]
                yield self._sum_node([*rest, (part, 1)], form.constant)

    def _entered_selections(self, form: Form) -> Iterator[Node]:
        """The rest of a short sum may enter a selection: ``min(x, y) + z`` is ``min(x + z, y + z)``."""
        for atom, k in form.terms.items():
            rest = form.plus(atom_form(atom), -k)
            if atom.op not in ("min", "max", "where") or atom.is_bool or len(rest.terms) + bool(rest.constant) > 2:
                continue
            x, y = [self.need(rest.plus(read(arg), k)) for arg in atom.args[-2:]]
            if atom.op == "where":
                yield "where", None, (self.need(atom.args[0]), x, y)
            elif abs(k) == 1:
                yield atom.op if k > 0 else {"min": "max", "max": "min"}[atom.op], None, (x, y)

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
                rest = [(atom_form(a), k) for a, k in form.terms.items() if a not in part.terms]
                yield self._sum_node([*rest, (part, 1)], form.constant)

    def _sum_node(self, operands: Iterable[tuple[Form, int]], constant: int) -> Node:
        pairs = sorted((self.need(part), k) for part, k in operands)
        return "sum", (constant, tuple([k for _, k in pairs])), tuple([c for c, _ in pairs])

    def _absorbing_quotients(self, form: Form) -> Iterator[Node]:
        """The rest of a sum may enter the floor: ``A//n + w = (A + n*w)//n``, ``w - A//n = (n*w - A + n-1)//n``."""
        for atom, coefficient in form.terms.items():
            if abs(coefficient) != 1 or atom.op != "floordiv" or atom.args[1].op != "const":
                continue
            n = cast(int, atom.args[1].value)
            inner = self.theory.inner(atom.args[0])
            rest = form.plus(atom_form(atom), -coefficient).times(n)
            dividend = rest.plus(inner, coefficient).shifted(n - 1 if coefficient < 0 else 0)
            if len(dividend.terms) <= len(inner.terms):
                yield from self._quotient_nodes(dividend, n)

    def _quotient_nodes(self, dividend: Form, n: int) -> Iterator[Node]:
        c = self.need(dividend)
        # the sign of the numerator is worth knowing well: it decides the price
        self.graph.bounds[c] = self.theory.bounds(dividend)
        yield "floordiv", None, (c, self.need(number(n)))
        if all(k < 0 for k in dividend.terms.values()):
            yield "floordiv", None, (self.need(dividend.times(-1)), self.need(number(-n)))

    def _atom_nodes(self, atom: Expr) -> Iterator[Node]:
        if atom.op == "var":
            yield "var", cast(str, atom.value), ()
        elif atom.op == "buffer":
            yield "buffer", buffer_key(atom), ()
        elif atom.op == "mul":
            parts = factors(atom)
            if parts[::2] == parts[1::2]:
                # equal factors are neighbours: the square of every other one
                half = self.need(atom_form(product(parts[::2])))
                yield "mul", None, (half, half)
            for index, factor in enumerate(parts):
                rest = parts[:index] + parts[index + 1 :]
                yield "mul", None, (self.need(atom_form(product(rest))), self.need(atom_form(factor)))
        elif atom.op == "floordiv" and atom.args[1].op == "const":
            yield from self._quotient_nodes(self.theory.inner(atom.args[0]), cast(int, atom.args[1].value))
            for division in self.theory.divisions(atom)[1:]:
                if all(a.op == "var" or atom_form(a) in self._ids for a in division.dividend.terms):
                    yield "floordiv", None, (self.need(division.dividend), self.need(division.divisor))
        else:
            yield atom.op, None, self._operands(atom)

    def _splits(self, form: Form) -> list[list[tuple[Form, int]]]:
        """The sum as it is, and with remainders ``K*(A % n)`` in place of quotients and terms of their numerators."""
        found: list[list[tuple[Form, int]]] = []
        stack: list[tuple[Form, list[tuple[Form, int]]]] = [(form, [])]
        most = MAX_SPELLINGS if len(self.values) < MANY_CLASSES else FEW_SPELLINGS
        while stack and len(found) < most:
            rest, taken = stack.pop()
            found.append([*((atom_form(a), k) for a, k in rest.terms.items()), *taken])
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
        for part in self._parts.get(quotient, ()):
            if part.terms.keys() <= form.terms.keys():
                yield part
        if quotient.op == "floordiv" and quotient.args[1].op == "const":
            # with its negative terms inside, the numerator of A//n + a need not be negative
            negative = {a: 1 for a, k in self.theory.inner(quotient.args[0]).terms.items() if k < 0}
            if negative and negative.keys() <= form.terms.keys():
                yield Form({quotient: 1, **negative}, 0)

    def _divisions(self, form: Form, atom: Expr) -> Iterator[Division]:
        if atom.op != "var":
            yield from self.theory.divisions_in(form, atom)
            for division in self.theory.readings.get(atom, ()):
                if division.remainder.terms.keys() <= form.terms.keys():
                    yield division

    # ---- terms from classes

    def spell(self, choice: Choice) -> dict[int, Expr]:
        """The terms of the graph's roots under a choice of nodes."""
        roots = self.graph.roots
        return dict(zip(roots, to_exprs(self.graph, choice, roots, self.variables), strict=True))


def buffer_key(array: Expr) -> str:
    """The name of a buffer among those of variables."""
    return f"{cast(Buffer, array.value).name}[]"


def _shrinking_scales(part: Form, form: Form, quotient: Expr) -> list[int]:
    """The multiples of ``part`` that cancel a term of ``form`` and leave less of ``quotient``."""
    found: dict[int, None] = {}
    coefficient, share = form.terms[quotient], part.terms[quotient]
    for atom, other in part.terms.items():
        scale, left = divmod(form.terms[atom], other)
        if not left and abs(coefficient - scale * share) < abs(coefficient):
            found[scale] = None
    return sorted(found)


def to_exprs(graph: EGraph, choice: Choice, roots: Sequence[int], variables: Mapping[str, Expr]) -> list[Expr]:
    """The terms that ``choice`` spells for ``roots``."""
    terms: dict[int, Expr] = {}
    for c in reachable(choice, roots):
        op, value, args = choice[c]
        if op == "const":
            terms[c] = const(cast(int, value))
        elif op == "bool":
            terms[c] = TRUE if value else FALSE
        elif op == "var":
            name = cast(str, value)
            terms[c] = named_variable(name) if name[0] == "$" else variables[name]
        elif op == "buffer":
            terms[c] = variables[cast(str, value)]
        elif op == "sum":
            constant, coefficients = cast(tuple[int, tuple[int, ...]], value)
            terms[c] = spell_sum([(terms[a], k) for a, k in zip(args, coefficients, strict=True)], constant)
        else:
            operands = [terms[a] for a in args]
            if op in ("shl", "shr"):
                operands[1] = shift_amount(operands[1])
            terms[c] = make(op, *operands)
    return [terms[root] for root in roots]


def spell_sum(terms: Iterable[tuple[Expr, int]], constant: int) -> Expr:
    """A sum spelled term by term, positive terms first."""
    total: Expr | None = None
    for term, k in sorted(terms, key=lambda item: (item[1] < 0, -abs(item[1]), item[0].key)):
        scaled = term if abs(k) == 1 else make("mul", term, const(abs(k)))
        if total is None and k < 0 and constant:
            total, constant = const(constant), 0
        if total is None:
            total = scaled if k > 0 else make("neg", scaled) if k == -1 else make("mul", term, const(k))
        else:
            total = make("add" if k > 0 else "sub", total, scaled)
    if total is None:
        return const(constant)
    return make("add" if constant > 0 else "sub", total, const(abs(constant))) if constant else total
