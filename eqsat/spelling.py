"""Spellings: the e-nodes that the theory offers for its normal forms.

A normal form says *what* a term is; this module lists ways to compute it, as a plain e-graph whose classes are forms and
conditions. A sum is a chain of additions; a common factor comes out; ``A - n*(A//n)`` is also ``A % n``, alone or as part of a
longer sum; the terms of the input that have the same normal form are spellings too. Extraction chooses.
:func:`share_sums` then looks for partial sums that several chosen sums can share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import gcd
from typing import cast

from eqsat.expr import FALSE, TRUE, Expr, const, make, topological, var
from eqsat.extract.cost import CostModel
from eqsat.extract.graph import EGraph, Node
from eqsat.extract.select import Choice, reachable
from eqsat.linear import Form, Theory, atom_form, factors, number, product, read

#: A class of the graph: the normal form of an integer, or a condition in normal form.
Value = Form | Expr

#: A sum with more quotients than this is spelled with the remainders of one of them at a time.
MAX_FREE_QUOTIENTS = 4
I32_MAX = 2**31 - 1
#: So many terms of the input are offered as spellings of one class.
MAX_ORIGINALS = 4


class Speller:
    """An e-graph over normal forms, grown on demand from the roots.

    Classes are numbered in the order in which they are first needed, which depends on the normal forms alone.
    """

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        self.graph = EGraph()
        self.values: list[Value] = []
        self._ids: dict[Value, int] = {}
        self._pending: list[int] = []
        self._originals: dict[Value, list[Expr]] = {}

    def add_originals(self, terms: Iterable[Expr]) -> None:
        """Let terms of the input, normalised before, spell the classes that they belong to."""
        for term in topological(terms):
            if term.args:
                value = self.value_of(term)
                if isinstance(value, Expr) or any(a.op != "var" for a in value.terms):
                    self._originals.setdefault(value, []).append(term)

    def value_of(self, term: Expr) -> Value:
        """The class value of any term."""
        return self.theory.condition(term) if term.is_bool else self.theory.form(term)

    def need(self, value: Value) -> int:
        """The class of a normal form; its spellings are added by :meth:`grow`."""
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value)
            self.graph.classes[found] = []
            self.graph.bounds[found] = (value.vmin, value.vmax) if isinstance(value, Expr) else self._bounds(value)
            self._pending.append(found)
        return found

    def _bounds(self, form: Form) -> tuple[int, int]:
        """Bounds to price by: correlation is looked into only where a sign or a width may hang on it."""
        low, high = self.theory.plain_bounds(form)
        if len(form.terms) == 1 or low >= 0 and high <= I32_MAX:
            return low, high
        return self.theory.bounds(form)

    def grow(self) -> None:
        """Spell every class that is needed and not yet spelled."""
        while self._pending:
            c = self._pending.pop()
            value = self.values[c]
            nodes: dict[Node, None] = {}
            if isinstance(value, Expr):
                self._spell_condition(value, nodes)
            else:
                self._spell_form(value, nodes)
            originals = self._originals.get(value, ())
            for term in sorted(originals, key=lambda t: t.key)[:MAX_ORIGINALS]:
                nodes[term.op, None, tuple([self.need(self.value_of(a)) for a in term.args])] = None
            for node in nodes:
                self.offer(c, node)

    def offer(self, c: int, node: Node) -> None:
        """Add a node to a class."""
        if node not in self.graph.classes[c] and c not in node[2]:
            self.graph.classes[c].append(node)

    # ---- conditions

    def _spell_condition(self, term: Expr, nodes: dict[Node, None]) -> None:
        if term.op == "bool":
            nodes["bool", term.value, ()] = None
        else:
            nodes[term.op, None, tuple([self.need(a if a.is_bool else read(a)) for a in term.args])] = None

    # ---- integers

    def _spell_form(self, form: Form, nodes: dict[Node, None]) -> None:
        if not form.terms:
            nodes["const", form.constant, ()] = None
            return
        atom = form.single()
        if atom is not None:
            self._spell_atom(atom, nodes)
            return
        quotients = [a for a in form.terms if a.op != "var"]
        if quotients:
            self._spell_remainders(form, nodes)
        if form.constant:
            rest = Form(form.terms, 0)
            self._add(nodes, rest, number(abs(form.constant)), "add" if form.constant > 0 else "sub")
            if all(c < 0 for c in form.terms.values()):
                self._add(nodes, number(form.constant), rest.times(-1), "sub")
            inner = rest.single()
            if inner is not None and inner.op == "floordiv" and inner.args[1].op == "const":
                # the constant may enter the floor: x//n + c is (x + c*n)//n
                divisor = read(inner.args[1])
                shifted = self.theory.inner(inner.args[0]).shifted(form.constant * divisor.constant)
                nodes["floordiv", None, (self.need(shifted), self.need(divisor))] = None
            return
        content = form.content()
        if content > 1:
            divided = Form({a: c // content for a, c in form.terms.items()}, 0)
            nodes["mul", None, (self.need(divided), self.need(number(content)))] = None
        if all(c < 0 for c in form.terms.values()):
            nodes["neg", None, (self.need(form.times(-1)),)] = None
        if len(form.terms) > 1:
            *rest_terms, (last, coefficient) = sorted(form.terms.items(), key=_chain_order)
            rest = Form(dict(rest_terms), 0)
            self._add(nodes, rest, Form({last: abs(coefficient)}, 0), "add" if coefficient > 0 else "sub")

    def _add(self, nodes: dict[Node, None], left: Form, right: Form, op: str = "add") -> None:
        nodes[op, None, (self.need(left), self.need(right))] = None

    def _spell_atom(self, atom: Expr, nodes: dict[Node, None]) -> None:
        if atom.op == "var":
            nodes["var", atom.value, ()] = None
        elif atom.op == "mul" and atom.args[1].op != "const":
            parts = factors(atom)
            for index, factor in enumerate(parts):
                rest = parts[:index] + parts[index + 1 :]
                nodes["mul", None, (self.need(atom_form(product(rest))), self.need(atom_form(factor)))] = None
        else:
            nodes[atom.op, None, tuple([self.need(a if a.is_bool else read(a)) for a in atom.args])] = None

    def _spell_remainders(self, form: Form, nodes: dict[Node, None]) -> None:
        """``R + K*(A % n)`` for the quotients ``A//n`` that leave the sum with terms of their numerator."""
        found: list[tuple[Form, int, Form]] = []
        for quotient in form.terms:
            for dividend, divisor, remainder in self._remainders(form, quotient):
                if remainder == form:
                    nodes["mod", None, (self.need(dividend), self.need(divisor))] = None
                    continue
                scale, left = divmod(form.terms[quotient], remainder.terms[quotient])
                rest = form.plus(remainder, -scale)
                if not left and len(rest.terms) < len(form.terms):
                    found.append((rest, scale, remainder))
        found.sort(key=lambda item: (len(item[0].terms), abs(item[1]), hash(item[2])))
        if sum(a.op == "floordiv" for a in form.terms) > MAX_FREE_QUOTIENTS:
            del found[1:]
        for rest, scale, remainder in found:
            if not rest.terms and not rest.constant:
                if abs(scale) > 1:
                    nodes["mul", None, (self.need(remainder), self.need(number(scale)))] = None
                else:
                    nodes["neg", None, (self.need(remainder),)] = None
            else:
                self._add(nodes, rest, remainder.times(abs(scale)), "add" if scale > 0 else "sub")

    def _remainders(self, form: Form, quotient: Expr) -> list[tuple[Form, Form, Form]]:
        """Dividends and divisors of which ``quotient`` is the quotient, with ``dividend - divisor*quotient``."""
        theory = self.theory
        found: list[tuple[Form, Form, Form]] = []
        direct = theory.remainder_of(quotient)
        if direct is None:
            return found
        dividend, multiple, _ = direct
        if quotient.op == "mul":
            inner = next(f for f in factors(quotient) if f.op == "floordiv" and f.args[1].op != "const")
            return [(dividend, theory.inner(inner.args[1]), dividend.plus(multiple, -1))]
        n = cast(int, quotient.args[1].value)
        found.append((dividend, number(n), dividend.plus(multiple, -1)))
        for other in form.terms:
            if other is quotient or other.op != "floordiv" or other.args[1].op != "const":
                continue
            b = cast(int, other.args[1].value)
            if 0 < b < n and n % b == 0:
                inner_form = atom_form(other)
                if theory.quotient_by(inner_form, n // b) == atom_form(quotient):
                    found.append((inner_form, number(n // b), inner_form.plus(Form({quotient: n // b}, 0), -1)))
        return found

    # ---- terms from classes

    def to_expr(self, choice: Choice, roots: Sequence[int]) -> list[Expr]:
        """The terms of ``roots`` under a choice of nodes."""
        return to_exprs(self.graph, choice, roots, self.variables())

    def variables(self) -> dict[str, Expr]:
        """The variables of the graph by name."""
        return {
            cast(str, a.value): a
            for value in self.values
            if isinstance(value, Form)
            for a in value.terms
            if a.op == "var"
        }


def _chain_order(item: tuple[Expr, int]) -> tuple[bool, int]:
    """Positive terms first, so that a chain starts without a negation."""
    return item[1] < 0, item[0].key


def to_exprs(graph: EGraph, choice: Choice, roots: Sequence[int], variables: dict[str, Expr]) -> list[Expr]:
    """The terms that ``choice`` spells for ``roots``."""
    terms: dict[int, Expr] = {}
    for c in reachable(choice, roots):
        op, value, args = choice[c]
        if op == "const":
            terms[c] = const(cast(int, value))
        elif op == "bool":
            terms[c] = TRUE if value else FALSE
        elif op == "var":
            terms[c] = variables[cast(str, value)]
        else:
            terms[c] = make(op, *[terms[a] for a in args])
    return [terms[root] for root in roots]


# ---- sharing partial sums

_SUM_OPS = ("add", "sub", "neg")


class _Sums:
    """The chosen sums of a graph as combinations of classes that are not sums."""

    def __init__(self, speller: Speller, choice: Choice) -> None:
        self.speller, self.choice = speller, choice
        self._combinations: dict[int, tuple[dict[int, int], int]] = {}

    def is_sum(self, c: int) -> bool:
        op, _, args = self.choice[c]
        return op in _SUM_OPS or op == "mul" and self._literal(args[1]) is not None or op == "const"

    def _literal(self, c: int) -> int | None:
        low, high = self.speller.graph.bounds[c]
        return low if low == high else None

    def combination(self, c: int) -> tuple[dict[int, int], int]:
        """Class ``c`` as a combination of classes and a constant."""
        found = self._combinations.get(c)
        if found is not None:
            return found
        for part in reachable(self.choice, [c]):
            if part not in self._combinations:
                self._combinations[part] = self._combine(part)
        return self._combinations[c]

    def _combine(self, c: int) -> tuple[dict[int, int], int]:
        op, value, args = self.choice[c]
        if op == "const":
            return {}, cast(int, value)
        if not self.is_sum(c):
            return {c: 1}, 0
        terms, constant = self._combinations[args[0]]
        if op == "neg":
            return {a: -k for a, k in terms.items()}, -constant
        if op == "mul":
            scale = cast(int, self._literal(args[1]))
            return {a: k * scale for a, k in terms.items()}, constant * scale
        sign = 1 if op == "add" else -1
        others, offset = self._combinations[args[1]]
        total = dict(terms)
        for a, k in others.items():
            total[a] = total.get(a, 0) + sign * k
            if not total[a]:
                del total[a]
        return total, constant + sign * offset


def share_sums(speller: Speller, choice: Choice, model: CostModel) -> Choice:
    """Re-bracket the chosen sums so that they share partial sums; the new nodes are offered to the graph.

    Greedy pair extraction, as for multiple constant multiplication (Paar 1997, Hosangadi et al. 2006): the pair of terms,
    up to a common factor, that saves most over all sums becomes a partial sum of its own.

    Returns
    -------
    Choice
        ``choice`` with the new brackets in place; it may be dearer than ``choice``.
    """
    graph = speller.graph
    sums = _Sums(speller, choice)
    needed = reachable(choice, graph.roots)
    demanded = dict.fromkeys(graph.roots)
    for c in needed:
        if not sums.is_sum(c):
            demanded.update(dict.fromkeys(choice[c][2]))
    combinations = {c: sums.combination(c) for c in demanded if sums.is_sum(c)}
    bodies: dict[tuple[tuple[int, int], ...], dict[int, int]] = {}
    for terms, _ in combinations.values():
        if len(terms) > 1:
            body = _primitive(terms)[0]
            bodies.setdefault(tuple(sorted(body.items())), body)
    if not bodies:
        return choice
    new_choice = dict(choice)
    pairing = _Pairing(speller, list(bodies.values()), model, new_choice)
    pairing.run()
    built: dict[tuple[tuple[int, int], ...], int] = {
        key: pairing.chain(body) for key, body in zip(bodies, pairing.sums, strict=True)
    }
    for c, (terms, constant) in combinations.items():
        if len(terms) > 1:
            body, scale = _primitive(terms)
            pairing.finish(c, built[tuple(sorted(body.items()))], scale, constant)
    speller.grow()
    return new_choice


def _primitive(terms: dict[int, int]) -> tuple[dict[int, int], int]:
    """A combination divided by its content, the sign chosen so that equal directions are equal."""
    content = gcd(*terms.values())
    positive = sum(1 if k > 0 else -1 for k in terms.values())
    if positive < 0 or positive == 0 and terms[min(terms)] < 0:
        content = -content
    return {c: k // content for c, k in terms.items()}, content


Pair = tuple[int, int, int, int]


class _Pairing:
    """Greedy pair extraction over combinations of classes."""

    def __init__(self, speller: Speller, sums: list[dict[int, int]], model: CostModel, choice: Choice) -> None:
        self.speller, self.choice, self.model = speller, choice, model
        self.sums = [dict(s) for s in sums]
        self.where: dict[Pair, dict[int, int]] = {}
        self._multiplications: dict[int, int] = {}
        self.addition = model.price("add", [(0, 9), (0, 9)], (0, 18))
        for index, terms in enumerate(self.sums):
            self._count(index, list(terms), terms)

    def _count(self, index: int, new: list[int], terms: dict[int, int]) -> None:
        """Record the pairs of sum ``index`` that contain a class of ``new``."""
        seen: set[int] = set()
        for a in new:
            seen.add(a)
            for b in terms:
                if b not in seen:
                    pair, scale = _pair(a, terms[a], b, terms[b])
                    self.where.setdefault(pair, {})[index] = scale

    def multiplication(self, by: int) -> int:
        """The price of multiplying by a literal."""
        found = self._multiplications.get(by)
        if found is None:
            found = 0 if by == 1 else self.model.price("mul", [(0, 9), (by, by)], tuple(sorted((0, 9 * by))))  # type: ignore[arg-type]
            self._multiplications[by] = found
        return found

    def saving(self, pair: Pair) -> int:
        """What making ``pair`` a partial sum saves, products by literals counted once per scale."""
        found = self.where.get(pair)
        if not found:
            return 0
        _, j, _, k = pair
        saved = (len(found) - 1) * self.addition - self.multiplication(abs(j)) - self.multiplication(abs(k))
        for scale in set(map(abs, found.values())):
            saved += self.multiplication(abs(j * scale)) + self.multiplication(abs(k * scale))
            saved -= self.multiplication(scale)
        return saved

    def run(self) -> None:
        """Extract pairs until none saves anything."""
        heap = [(-self.saving(p), p) for p in self.where if len(self.where[p]) > 1 or abs(p[1]) == abs(p[3]) == 1]
        heapify(heap)
        while heap:
            estimate, pair = heappop(heap)
            saving = self.saving(pair)
            if saving <= 0:
                continue
            if -estimate > saving:
                heappush(heap, (-saving, pair))
                continue
            for touched in self._extract(pair):
                saving = self.saving(touched)
                if saving > 0:
                    heappush(heap, (-saving, touched))

    def _extract(self, pair: Pair) -> list[Pair]:
        a, j, b, k = pair
        c = self.chain({a: j, b: k})
        touched: dict[Pair, None] = {}
        for index, scale in list(self.where.pop(pair).items()):
            terms = self.sums[index]
            if terms.get(a) != j * scale or terms.get(b) != k * scale:
                continue
            for old in (a, b):
                for other in terms:
                    if other != old:
                        stale, _ = _pair(old, terms[old], other, terms[other])
                        self.where.get(stale, {}).pop(index, None)
            del terms[a], terms[b]
            terms[c] = terms.get(c, 0) + scale
            for other in terms:
                if other != c:
                    touched[_pair(c, terms[c], other, terms[other])[0]] = None
            self._count(index, [c], terms)
        return list(touched)

    def chain(self, terms: dict[int, int]) -> int:
        """The class of a combination, spelled term by term, and chosen so."""
        # dearest multipliers first would not change the cost; positive terms first avoids a negation
        ordered = sorted(terms.items(), key=lambda item: (item[1] < 0, item[0]))
        total: int | None = None
        for c, coefficient in ordered:
            if total is None:
                total = self.scaled(c, coefficient)
            else:
                total = self.sum_of(total, self.scaled(c, abs(coefficient)), 1 if coefficient > 0 else -1)
        return cast(int, total)

    def _form(self, c: int) -> Form:
        return cast(Form, self.speller.values[c])

    def scaled(self, c: int, by: int) -> int:
        if by == 1:
            return c
        result = self.speller.need(self._form(c).times(by))
        if by == -1:
            self._choose(result, ("neg", None, (c,)))
        else:
            self._choose(result, ("mul", None, (c, self._number(by))))
        return result

    def _number(self, value: int) -> int:
        c = self.speller.need(number(value))
        self.choice[c] = ("const", value, ())
        self.speller.offer(c, self.choice[c])
        return c

    def sum_of(self, left: int, right: int, sign: int) -> int:
        result = self.speller.need(self._form(left).plus(self._form(right), sign))
        self._choose(result, ("add" if sign > 0 else "sub", None, (left, right)))
        return result

    def finish(self, c: int, body: int, scale: int, constant: int) -> None:
        """Choose ``scale*body + constant`` for class ``c``."""
        total = body if scale == 1 else self.scaled(body, scale)
        if constant:
            total = self.sum_of(total, self._number(abs(constant)), 1 if constant > 0 else -1)
        assert total == c

    def _choose(self, c: int, node: Node) -> None:
        """Offer ``node`` and choose it, unless the class would then need itself."""
        if c in node[2]:
            return
        self.speller.offer(c, node)
        old = self.choice.get(c)
        self.choice[c] = node
        if old is not None and old != node and _reaches(self.choice, node[2], c):
            self.choice[c] = old


def _reaches(choice: Choice, start: Iterable[int], target: int) -> bool:
    seen: set[int] = set()
    stack = list(start)
    while stack:
        c = stack.pop()
        if c == target:
            return True
        if c not in seen:
            seen.add(c)
            stack.extend(choice[c][2])
    return False


def _pair(a: int, j: int, b: int, k: int) -> tuple[Pair, int]:
    """Two terms up to a common factor, and that factor."""
    if b < a:
        a, j, b, k = b, k, a, j
    scale = gcd(j, k)
    if j < 0:
        scale = -scale
    return (a, j // scale, b, k // scale), scale


def variable_bounds(terms: Iterable[Expr]) -> dict[str, Expr]:
    """The variables of ``terms`` by name."""
    return {cast(str, t.value): var(cast(str, t.value), t.vmin, t.vmax) for t in topological(terms) if t.op == "var"}
