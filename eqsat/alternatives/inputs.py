"""E-nodes from the terms of the input: their operators over the normal forms of their operands.

What is cheap in an input its normal form may hide. Bit operators act on no bit there that only one operand may have:
``i ^ j`` of a ``j`` below 8 is ``i//8*8 + (i%8 ^ j)``, of which arithmetic knows what its quotient by 8 is; to compute
it one operator will do. Sums have small coefficients of either sign, and no nested floors that could be one: ``x +
y*4//7`` is ``x + y - (y*3 + 6)//7``, and says no more that one multiplication by a power of two would do. So terms of
the input stand for their values inside longer sums too, and quotients, remainders and products are also rewritten
(:class:`HiddenLaws`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from math import gcd, prod
from operator import mul
from typing import cast

from eqsat.alternatives.canonical import CanonicalGraph, KindNodes
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node, Payload, sum_payload
from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import FALSE, Expr, const, make
from eqsat.lang.ops import BITWISE, COMPARISONS, FLOORS, REDUCTIONS, SHIFTS, SUMS
from eqsat.lang.properties import is_wide
from eqsat.lang.traversal import chain_members, long_partial_chains, mentions
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import (
    ZERO,
    LinearForm,
    Value,
    as_term,
    atom_form,
    common_divisors,
    literal,
    number,
    read,
    to_expr,
    value_order,
)
from eqsat.theory.limits import LIMITS as THEORY_LIMITS

#: The operators of terms that may be added. Not ``and`` and ``or``: their normal forms say as much.
_WORTH_ADDING = SUMS | frozenset(
    {"floordiv", "mod", "tdiv", "tmod", "mul", "where", "min", "max", *BITWISE, *SHIFTS, *COMPARISONS, *REDUCTIONS}
)

#: The operators whose terms are rewritten by laws that normal forms hide.
HIDDEN = FLOORS | {"mul", "prod_over"}


def _without_literal(term: Expr) -> tuple[int, Expr]:
    """A product without the literal of one of its two factors, unless these are alike; that literal, or 1."""
    if term.op == "mul" and term.args[0] is not term.args[1]:
        for factor, other in (term.args, term.args[::-1]):
            if factor.op == "mul":
                for scale, part in (factor.args, factor.args[::-1]):
                    if scale.op == "const":
                        return scale.vmin, make("mul", part, other)
    return 1, term


def _without_literals(term: Expr) -> tuple[int, Expr]:
    """A product without all literals among its factors, and their product; 1 and itself if it has none."""
    factors = chain_members(term, "mul")[::-1] if term.op == "mul" else []
    others = [factor for factor in factors if factor.op != "const"]
    if not others or len(others) == len(factors):
        return 1, term
    return prod([factor.vmin for factor in factors if factor.op == "const"]), reduce(partial(make, "mul"), others)


#: How a product in a sum is taken for a literal times a product without it, which rules may match.
_MULTIPLES: tuple[Callable[[Expr], tuple[int, Expr]], ...] = (_without_literal, _without_literals)


#: A term as its operator, the payload of a node, and the normal forms of its operands.
type _Meaning = tuple[str, Payload, tuple[Value, ...]]


def _order(meaning: _Meaning) -> tuple[object, ...]:
    """A key for a fixed order on meanings; the payload is in it besides its hash, as Python hashes -1 and -2 alike."""
    op, payload, operands = meaning
    return op, hash(payload), payload or (), tuple(map(value_order, operands))


class InputNodes(KindNodes):
    """The e-nodes that are terms of the input."""

    def __init__(self, classes: CanonicalGraph) -> None:
        super().__init__(classes)
        self._hidden_laws = HiddenLaws(self.theory)
        #: For each class that the input writes, the node of its lowest term, which needs no other term of that class.
        self.nodes: dict[int, Node] = {}
        # by normal form, the terms of the input, and those that equal them by laws that normal forms hide
        self._originals: dict[Value, list[Expr]] = defaultdict(list)
        self._rewrites: dict[Value, list[Expr]] = defaultdict(list)
        # the input; by normal form a term of it, one that is not wide if there is any, once one is asked for
        self._input: list[Expr] = []
        self._narrow: dict[Value, Expr] | None = None
        # whether the input has so few divisions that they are rewritten, and taken as they are written
        self._has_few = True
        # whether terms are added that say no more than their normal forms
        self._all_terms = False
        # terms that are added once their dividends have classes, and their own classes
        self._waiting: list[tuple[int, Expr]] = []

    def add(self, terms: Iterable[Expr], all_terms: bool = False) -> None:
        """Let the classes that terms of the input belong to have these as nodes; operands come first.

        The terms have been normalised. With ``all_terms`` those too are added that say no more than their normal forms.
        """
        self._all_terms = all_terms
        self._input = list(terms)
        ops = [term.op for term in self._input]
        self._has_few = sum([op in FLOORS for op in ops]) < LIMITS.input_divisions
        self.classes.truncates |= "tdiv" in ops
        parts = long_partial_chains(self._input, LIMITS.wide_sum) if self.theory.is_canonical else ()
        for place, (term, op) in enumerate(zip(self._input, ops, strict=True)):
            if place % LIMITS.terms_per_look == 0:
                # where it is overdue there is no answer but the input
                self.theory.late_or_raise()
            if term in parts or not (op in _WORTH_ADDING or (all_terms and op == "not")):
                continue
            value = self.classes.value_of(term)
            if self._is_worth_adding(term, value):
                self._originals[value].append(term)
                if all_terms and op == "mul":
                    self._add_without_literals(term)
                if self.theory.is_canonical:
                    if op == "where" and (extreme := self._as_extreme(term)) is not None:
                        self._originals[value].append(extreme)
                    self._add_equal(term, value)

    def _as_extreme(self, selection: Expr) -> Expr | None:
        """A selection of the lesser or greater of the two terms that it compares as what it is.

        The normal form of an extreme may show its operands no more: that of ``min(min(x, 12)%3, y)`` does not.
        """
        condition, yes, no = selection.args
        while condition.op == "not":
            condition, yes, no = condition.args[0], no, yes
        if condition.op not in ("lt", "le") or condition.args[0].is_bool:
            return None
        compared, branches = [[*map(self.classes.value_of, terms)] for terms in (condition.args, (yes, no))]
        if compared not in (branches, branches[::-1]):
            return None
        return make("min" if compared == branches else "max", yes, no)

    def _add_without_literals(self, product: Expr) -> None:
        """Add what a product is a multiple of: sums have multiples of it."""
        for other in dict.fromkeys([of(product)[1] for of in _MULTIPLES]):
            value = self.classes.value_of(other)
            if other is not product and self._is_worth_adding(other, value):
                self._originals[value].append(other)

    def _add_equal(self, term: Expr, value: Value) -> None:
        """Add the complement of a comparison, and what hidden laws make of a term."""
        pairs: Iterable[tuple[Expr, Expr]] = ()
        if term.op in COMPARISONS and not term.args[0].is_bool:
            # the complement of what is written is often what is meant
            negated, written = map(self.theory.negate, (cast(Expr, value), term))
            self._originals[negated].append(written)
        elif self._has_few and term.op in HIDDEN and isinstance(value, LinearForm):
            pairs = self._hidden_laws.rewritten(term)
        if pairs and not self.theory.late_or_raise():
            for before, after in pairs:
                self._rewrites[self.classes.value_of(before)].append(after)

    @provides("input", otherwise=lambda self, term, value: False)
    def _is_worth_adding(self, term: Expr, value: Value) -> bool:
        """Whether a term, whose operator is worth adding, says more than its normal form ``value``."""
        if term.op in REDUCTIONS:
            # the form of an index with one value is that value, which binds nothing
            return term.args[1].vmin < term.args[1].vmax
        if self._all_terms:
            return True
        if isinstance(value, LinearForm):
            return not value.is_affine()
        if value.op in ("and", "or") and compares_selection(term):
            # several comparisons of one selection share it
            return True
        operands = map(self.classes.value_of, () if term.op == "where" else term.args)
        return term.op == "where" or any(isinstance(of, LinearForm) and not of.is_affine() for of in operands)

    def written(self, term: Expr) -> Node | None:
        """The node that a term is, over the classes of its operands; ``None`` if its normal form says as much."""
        if term.op not in _WORTH_ADDING or not self._is_worth_adding(term, self.classes.value_of(term)):
            return None
        return self._nodes([term], 1)[0]

    def add_to(self, c: int) -> None:
        """Add to a class the terms of the input with its value, and what follows from them."""
        value = self.classes.values[c]
        ready: list[Expr] = []
        for term in self._originals.get(value, ()):
            if self._is_ready(term):
                ready.append(term)
            else:
                self._waiting.append((c, term))
        if ready:
            for node in self._nodes(ready, LIMITS.input_nodes):
                if self.classes.add_node(c, node):
                    if self._has_few:
                        self.nodes.setdefault(c, node)
                elif self._all_terms:
                    # the minimum of a value and what is never smaller is that value
                    self.classes.outside[c, node] = None
        if self._rewrites and (rewrites := self._rewrites.get(value)):
            for node in self._nodes(rewrites, LIMITS.hidden_nodes):
                self.classes.add_node(c, node)

    def add_waiting(self) -> None:
        """Add the quotients and remainders whose dividends have got classes."""
        waiting, self._waiting = self._waiting, []
        for c, term in waiting:
            if self._is_ready(term):
                for node in self._nodes([term], 1):
                    self.classes.add_node(c, node)
            else:
                self._waiting.append((c, term))

    def _is_ready(self, term: Expr) -> bool:
        """Whether a term of the input would make no class that nothing else needs.

        A quotient or remainder of ``x + y*n`` by ``n`` has a normal form without ``y*n`` in its dividend. The sum with
        it is seldom of use, but in long inputs its own quotients and conditions are many.
        """
        if self._has_few or self._all_terms or term.op not in FLOORS or term.args[1].op != "const":
            return True
        dividend, n = self.classes.value_of(term.args[0]), term.args[1].vmin
        if not isinstance(dividend, LinearForm) or dividend in self.classes:
            return True
        return not any(k % n == 0 for k in dividend.terms.values())

    def _nodes(self, terms: Sequence[Expr], most: int) -> list[Node]:
        """The nodes that terms are, each once; of more than ``most``, those of the lowest terms."""
        # terms that differ in the order of operands give the same node: take them by what their operands mean
        heights = self._heights if len(terms) > 1 and self._has_few else {}
        highest_first = sorted(terms, key=lambda term: -heights.get(term, 0))
        ways = (None, *_MULTIPLES) if self._all_terms else (None,)
        meanings = {self._meaning(term, of): heights.get(term, 0) for of in ways for term in highest_first}
        chosen = [*meanings]
        if len(chosen) > 1:
            chosen = sorted(chosen, key=lambda meaning: (meanings[meaning], _order(meaning)))[:most]
        nodes: list[Node] = []
        for op, payload, operands in chosen:
            if op == "sum":
                constant, coefficients = sum_payload(payload)
                nodes.append(self.sum_node(zip(operands, coefficients, strict=True), number(constant)))
            else:
                nodes.append(self.node(op, *operands))
        return nodes

    @cached_property
    def _heights(self) -> dict[Expr, int]:
        """How many operators are on the longest path below each term of the input."""
        found: dict[Expr, int] = {}
        for term in self._input:
            found[term] = max([found[arg] for arg in term.args]) + 1 if term.args else 0
        return found

    def _meaning(self, term: Expr, multiple: Callable[[Expr], tuple[int, Expr]] | None = None) -> _Meaning:
        """A term of the input as an operator over normal forms; sums as wide as they are written.

        ``multiple`` says what a product in a sum is a multiple of, if it is not taken as it is.
        """
        if term.op not in SUMS and term.args:
            return term.op, None, tuple(map(self.classes.value_of, term.args))
        total: dict[Value, int] = {}
        constant = 0
        stack = [(term, 1)]
        products: set[Expr] = set()
        while stack:
            part, scale = stack.pop()
            if part.op in SUMS:
                stack += [(part.args[0], -scale if part.op == "neg" else scale)]
                stack += [(arg, -scale if part.op == "sub" else scale) for arg in part.args[1:]]
            elif part.op == "mul" and part.args[1].op == "const":
                stack.append((part.args[0], scale * part.args[1].vmin))
            elif part.op == "mul" and part.args[0].op == "const":
                stack.append((part.args[1], scale * part.args[0].vmin))
            elif part.op == "const":
                constant += scale * part.vmin
            elif multiple is not None and part not in products and (split := multiple(part))[1] is not part:
                products.add(split[1])
                stack.append((split[1], scale * split[0]))
            else:
                value = self.classes.value_of(part)
                if (known := literal(value)) is not None:
                    constant += scale * known
                else:
                    total[value] = total.get(value, 0) + scale
        operands = sorted([v for v, k in total.items() if k], key=value_order)
        return "sum", (constant, tuple([total[v] for v in operands])), tuple(operands)

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
                    yield self.sum_node([(whole, 1)])

    def writes(self, value: Value) -> bool:
        """Whether a term of the input that is added has this value."""
        return value in self._originals

    def with_values(self, images: Mapping[Value, Value]) -> Iterator[tuple[Value, Value]]:
        """The values that change, each with the new one, if terms of the input get the values of ``images``."""
        new: dict[Expr, Expr] = {}
        for term in self._input:
            args = tuple([new[a] for a in term.args])
            new[term] = term
            value = self.classes.value_of(term)
            try:
                if value in images:
                    new[term] = as_term(images[value])
                elif args != term.args:
                    written = make(term.op, *args)
                    found = self.classes.value_of(written)
                    new[term] = written
                    if found != value:
                        yield value, found
            except (TooWideError, TypeError, ValueError):
                # it is no term
                continue

    def narrower(self, c: int) -> Expr | None:
        """A term of the input with the value of a class, if there is any: one that is not wide if there is one."""
        if self._narrow is None:
            wide_first = sorted(self._input, key=is_wide, reverse=True)
            self._narrow = {self.classes.value_of(term): term for term in wide_first}
        return self._narrow.get(self.classes.values[c])

    def narrowed(self) -> dict[int, Expr]:
        """What :meth:`narrower` says of every class; nothing if it was never asked."""
        found = self._narrow or {}
        return {c: found[value] for c, value in enumerate(self.classes.values) if value in found}


def compares_selection(term: Expr) -> bool:
    """Whether a term is a comparison of ``where(p, x, y)``, whose normal form may be a comparison for each branch."""
    return term.op in COMPARISONS and any(operand.op == "where" for operand in term.args)


class HiddenLaws:
    """Other terms for the quotients, remainders and products of an input, asked for operands first.

    Each law is checked at every point in ``tests/alternatives/test_inputs.py``.
    """

    def __init__(self, theory: Arithmetic) -> None:
        self.theory = theory
        # for each quotient by a literal, a dividend and a divisor that take in the quotients inside
        self._floors: dict[Expr, tuple[LinearForm, int]] = {}

    @provides("hidden laws")
    def rewritten(self, term: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Pairs of ``term``, or a quotient that its other terms use, and a term that is equal to it."""
        if term.op == "mul":
            parts = chain_members(term, "mul", LIMITS.hidden_operands + 1)
            if 3 < len(parts) <= LIMITS.hidden_operands:
                yield from self._powers(term, parts)
            return
        if term.op == "prod_over":
            body, index, low, high = term.args
            times = high.vmax - low.vmin
            if low.op == high.op == "const" and times <= THEORY_LIMITS.sum_exponent and not mentions(body, index):
                yield from self._powers(term, [body] * times)
            return
        dividend, divisor = map(self.theory.form, term.args)
        n = divisor.constant
        if divisor.terms or abs(n) < 2:
            return
        if term.op == "mod":
            for residue in dict.fromkeys([dividend.split(abs(n), balanced)[1] for balanced in (False, True)]):
                if residue.terms and residue != dividend:
                    yield term, make("mod", to_expr(residue), term.args[1])
            if n > 0:
                yield from self._out_of_remainder(term, n)
        elif n < 0:
            # -x // -n is x // n
            opposite = make("floordiv", to_expr(dividend.times(-1)), const(-n))
            yield term, opposite
            yield from self.rewritten(opposite)
            yield from self._without_multiples(term, dividend, n)
        else:
            yield from self._composed(term, dividend, n)
            yield from self._divided_first(term, dividend, n)
            yield from self._without_multiples(term, dividend, n)

    def _out_of_remainder(self, term: Expr, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(x//b*f + y) % n`` is ``x//b % (n//f) * f + y`` for a ``y`` in ``[0, f)``.

        Of ``(x + 16)//10`` and ``(x + 16)//40`` the normal forms have other dividends, of which no rule tells that the
        second one is a quotient of the first one.
        """
        written = read(term.args[0])
        for f in dict.fromkeys([gcd(k, n) for atom, k in written.terms.items() if atom.op == "floordiv"]):
            multiples, rest = written.partition(f)
            low, high = self.theory.bounds(self.theory.form(to_expr(rest)))
            if 1 < f < n and low >= 0 and high < f:
                digit = make("mod", to_expr(multiples), const(n // f))
                yield digit, digit
                yield term, make("add", make("mul", digit, const(f)), to_expr(rest))

    def _powers(self, product: Expr, parts: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
        """``x*x*x*x*y`` is ``(x*x)*(x*x)*y``, with what that is made of."""
        if len(parts) < 2:
            return
        values = list(map(self.theory.form, parts))
        counts = Counter(values)
        by_value = dict(zip(values, parts, strict=True))
        odd = next((value for value, count in counts.items() if count % 2), None)
        if odd is None:
            parts = [by_value[value] for value, count in counts.items() for _ in range(count // 2)]
            below = last = reduce(mul, parts)
        else:
            parts, last = [by_value[value] for value in (counts - Counter([odd])).elements()], by_value[odd]
            below = reduce(mul, parts)
        yield product, below * last
        yield from self._powers(below, parts)

    def _composed(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(x//b + r) // n`` is ``(x + b*r) // (b*n)``."""
        inside = _floor_inside(term.args[0])
        if inside is not None:
            below, b = self._floors.get(inside) or (self.theory.form(inside.args[0]), inside.args[1].vmin)
            dividend, n = below.plus(dividend.plus(self.theory.form(inside), -1), b), b * n
            yield term, make("floordiv", to_expr(dividend), const(n))
            quotient = self.theory.quotient(dividend, number(n))
            if quotient.terms:
                yield term, to_expr(quotient)
        self._floors[term] = dividend, n

    def _divided_first(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(f*x + y) // (f*m)`` is ``(x + y//f) // m``, where ``y//f`` is as good as free or ``m`` a power of two."""
        for f in common_divisors(dividend, n) if not is_power_of_two(n) else ():
            multiples, rest = dividend.partition(f)
            if 1 < f < n and rest != ZERO and multiples.terms:
                low, high = self.theory.bounds(rest)
                if is_power_of_two(n // f) or high // f - low // f < 2:
                    inside = make("add", to_expr(multiples), make("floordiv", to_expr(rest), const(f)))
                    yield term, make("floordiv", inside, const(n // f))
                    return

    def _without_multiples(self, term: Expr, dividend: LinearForm, n: int) -> Iterator[tuple[Expr, Expr]]:
        """``(n*w + x) // n`` is ``w + x//n``: of all terms what ``n`` divides, or those alone that it divides.

        What is left is divided by its common divisor with ``n``: ``x*2 // 32`` is ``x//16``.
        """
        undivided = LinearForm({a: k for a, k in dividend.terms.items() if k % n}, dividend.constant)
        for left in dict.fromkeys([dividend.split(abs(n), balanced=False)[1], undivided]):
            common = gcd(left.common_factor(), n)
            if left.terms and (left != dividend or common > 1):
                whole = dividend.plus(left, -1).divided(n)
                quotient = make("floordiv", to_expr(left.divided(common)), const(n // common))
                yield term, make("add", to_expr(whole), quotient) if left != dividend else quotient
                yield quotient, quotient


def _floor_inside(term: Expr) -> Expr | None:
    """The one quotient by a literal that a sum adds, if there is just one."""
    found: Expr | None = None
    stack = [term]
    for _ in range(LIMITS.hidden_operands):
        if not stack:
            return found
        part = stack.pop()
        if part.op in ("add", "sub"):
            stack += part.args[: 2 if part.op == "add" else 1]
        elif part.op == "floordiv" and part.args[1].op == "const":
            if found is not None:
                return None
            found = part
    return None
