"""Linear integer arithmetic as a theory beside the e-graph: a normal form for every term.

The normal form of an integer term is a :class:`Form`, a sum of integer multiples of *atoms* plus a constant. Atoms are
terms that are not sums: variables, quotients ``form // n``, products, selections. ``x % n`` is ``x - n*(x // n)``, so a
remainder is never an atom and every div-mod identity is cancellation. A condition normalises to comparisons of a form
with a constant, joined by ``and`` and ``or``. Terms with equal normal forms are equal; nothing depends on the order of
operands. The steps of :meth:`Theory.quotient` are the lemmas; each is an identity of floor division, checked by
``tests/test_linear.py``.

A :class:`Theory` also holds known facts (constraints, gates, the conditions of enclosing selections) as bounds of forms,
and every decision reads bounds through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import cast

from eqsat.expr import FALSE, TRUE, Expr, const, make, topological
from eqsat.ops import MAX_SHIFT, truncated_div

Bounds = tuple[int, int]

#: A product of two sums is multiplied out up to so many terms; beyond, the product is an atom.
MAX_PRODUCT = 16
#: Facts are assumed inside the branches of so many selections per theory; beyond, branches see the outer facts only.
MAX_CONTEXTS = 200
#: A comparison is tested against at most so many others of its conjunction or disjunction.
MAX_DECIDING = 8
#: A quotient of one atom with at most so many values is tried for being affine by enumeration.
MAX_ENUMERATED = 8
#: Correlated bounds take out so many remainders or facts, one after another.
MAX_CORRELATION_DEPTH = 1


class Form:
    """``constant + sum(coefficient * atom)``; immutable, without zero coefficients."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: dict[Expr, int], constant: int) -> None:
        self.terms = terms
        self.constant = constant
        self._hash = 0

    def __hash__(self) -> int:
        if not self._hash:
            mixed = hash(self.constant)
            for atom, coefficient in self.terms.items():
                mixed ^= hash((atom.key, coefficient))
            self._hash = mixed or 1
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.constant == other.constant and self.terms == other.terms

    def __repr__(self) -> str:
        return f"Form({to_expr(self)})"

    def plus(self, other: Form, scale: int = 1) -> Form:
        """``self + scale*other``."""
        if not scale:
            return self
        if not other.terms:
            return Form(self.terms, self.constant + scale * other.constant) if other.constant else self
        terms = self.terms.copy()
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + scale * coefficient
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Form(terms, self.constant + scale * other.constant)

    def times(self, scale: int) -> Form:
        """``scale * self``."""
        if scale == 1:
            return self
        if not scale:
            return ZERO
        return Form({a: c * scale for a, c in self.terms.items()}, self.constant * scale)

    def shifted(self, constant: int) -> Form:
        """``self + constant``."""
        return Form(self.terms, self.constant + constant) if constant else self

    def sorted_terms(self) -> list[tuple[Expr, int]]:
        """The terms in the fixed order on atoms."""
        return sorted(self.terms.items(), key=_atom_order)

    def content(self) -> int:
        """The greatest common divisor of the coefficients; 0 for a constant."""
        return gcd(*self.terms.values())

    def single(self) -> Expr | None:
        """The atom, if the form is just one atom."""
        if self.constant or len(self.terms) != 1:
            return None
        ((atom, coefficient),) = self.terms.items()
        return atom if coefficient == 1 else None


def _atom_order(item: tuple[Expr, int]) -> tuple[int, int]:
    return item[0].key, item[1]


ZERO = Form({}, 0)


def number(value: int) -> Form:
    """The constant form."""
    return Form({}, value)


def atom_form(atom: Expr) -> Form:
    """The form of one atom."""
    return Form({atom: 1}, 0)


def to_expr(form: Form) -> Expr:
    """The form as a term: one fixed spelling, the same for equal forms."""
    total: Expr | None = None
    for atom, coefficient in form.sorted_terms():
        if total is None:
            total = atom if coefficient == 1 else make("mul", atom, const(coefficient))
        elif coefficient == 1:
            total = make("add", total, atom)
        elif coefficient == -1:
            total = make("sub", total, atom)
        else:
            total = make("add", total, make("mul", atom, const(coefficient)))
    if total is None:
        return const(form.constant)
    if form.constant > 0:
        return make("add", total, const(form.constant))
    return make("sub", total, const(-form.constant)) if form.constant else total


def factors(atom: Expr) -> list[Expr]:
    """The atoms whose product ``atom`` is."""
    found = []
    while atom.op == "mul":
        found.append(atom.args[1])
        atom = atom.args[0]
    found.append(atom)
    return found


def product(atoms: Iterable[Expr]) -> Expr:
    """The product of atoms, in the fixed order."""
    ordered = sorted(atoms, key=lambda a: a.key)
    result = ordered[0]
    for atom in ordered[1:]:
        result = make("mul", result, atom)
    return result


def read(term: Expr) -> Form:
    """A term in normal form read back as a form; no rewriting. The inverse of :func:`to_expr`."""
    total = ZERO
    stack = [(term, 1)]
    while stack:
        part, scale = stack.pop()
        if part.op == "const":
            total = total.shifted(scale * cast(int, part.value))
        elif part.op == "add":
            stack += [(part.args[0], scale), (part.args[1], scale)]
        elif part.op == "sub":
            stack += [(part.args[0], scale), (part.args[1], -scale)]
        elif part.op == "mul" and part.args[1].op == "const":
            stack.append((part.args[0], scale * cast(int, part.args[1].value)))
        else:
            total = total.plus(atom_form(part), scale)
    return total


@dataclass(frozen=True, slots=True)
class Division:
    """``dividend = divisor*quotient + remainder``, the remainder in ``[0, most]``: one way to read a quotient."""

    dividend: Form
    divisor: Form
    remainder: Form
    most: int


class _VariableSets:
    """The variables of terms, as bit sets."""

    def __init__(self) -> None:
        self._sets: dict[Expr, int] = {}
        self._count = 0

    def of(self, term: Expr) -> int:
        """The set of ``term``."""
        found = self._sets.get(term)
        if found is None:
            for part in topological_until([term], self._sets.__contains__):
                self._sets[part] = self._set_of(part)
            found = self._sets[term]
        return found

    def _set_of(self, part: Expr) -> int:
        if part.op == "var":
            self._count += 1
            return 1 << (self._count - 1)
        total = 0
        for arg in part.args:
            total |= self._sets[arg]
        return total


class Unsupported(ValueError):
    """A fact or a term that has no meaning: contradictory facts, a divisor that may be zero."""


class Theory:
    """Normal forms under known facts; all results are memoised.

    Parameters
    ----------
    facts : iterable of bool Expr
        Conditions known to hold wherever the terms are evaluated.

    Raises
    ------
    ValueError
        If the facts contradict each other.

    >>> from eqsat.expr import var
    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> Theory().simplify((i*32 + j) // 32 * 32 + (i*32 + j) % 32)
    Expr('i*32 + j')
    """

    def __init__(self, facts: Iterable[Expr] = (), parent: Theory | None = None) -> None:
        self.parent = parent
        self.forms: dict[Expr, Form] = {}
        self.conditions: dict[Expr, Expr] = {}
        # facts: bounds of single atoms and of sums, solved variables, sums that are not zero, decided conditions
        self.narrowed: dict[Expr, Bounds] = dict(parent.narrowed) if parent else {}
        self.directions: list[tuple[Form, Bounds]] = list(parent.directions) if parent else []
        self.solved: dict[Expr, Form] = dict(parent.solved) if parent else {}
        self.nonzero: set[Form] = set(parent.nonzero) if parent else set()
        self.known: dict[Expr, Expr] = dict(parent.known) if parent else {}
        # which variables the facts speak of; a term without them means here what it means to the parent
        self.touched = parent.touched if parent else 0
        self.variables = parent.variables if parent else _VariableSets()
        self.spare: list[int] = parent.spare if parent else [MAX_CONTEXTS]
        self.children: dict[Expr, Theory | None] = {}
        self.changed = False
        self._ranges: dict[Expr, Bounds] = {}
        self._bounds: dict[Form, tuple[int, int, int]] = {}
        self._quotients: dict[tuple[Form, int], Form] = {}
        self._junctions: dict[tuple[str, frozenset[Expr]], Expr] = {}
        self._inner: dict[Expr, Form] = parent._inner if parent else {}
        self._divisions: dict[Expr, tuple[Division, ...]] = {}
        for fact in facts:
            self.assume(fact)

    # ---- facts

    def assume(self, fact: Expr) -> None:
        """Add a condition that is known to hold."""
        self.touched |= self.variables.of(fact)
        for conjunct in _conjuncts(self.condition(fact)):
            self._assume_literal(conjunct)

    def _assume_literal(self, literal: Expr) -> None:
        if literal is TRUE:
            return
        if literal is FALSE:
            raise Unsupported("the facts contradict each other")
        self._forget()
        self.known[literal] = TRUE
        self.known[self.negate(literal)] = FALSE
        if literal.op in ("lt", "le", "eq", "ne") and not literal.args[0].is_bool:
            left, right = self.form(literal.args[0]), self.form(literal.args[1])
            if literal.op in ("lt", "le"):
                self._assume_at_least(right.plus(left, -1), 1 if literal.op == "lt" else 0)
            elif literal.op == "eq":
                self._assume_equal(left.plus(right, -1))
            else:
                self._assume_nonzero(left.plus(right, -1))

    def _forget(self) -> None:
        """Drop what was memoised under fewer facts."""
        self.changed = True
        for memo in (self.forms, self.conditions, self.children, self._ranges, self._bounds, self._quotients):
            memo.clear()
        self._junctions.clear()

    def _assume_at_least(self, form: Form, least: int) -> None:
        if not form.terms:
            if form.constant < least:
                raise Unsupported("the facts contradict each other")
            return
        content = form.content()
        low = -((form.constant - least) // content)
        direction = Form({a: c // content for a, c in form.terms.items()}, 0)
        sign = 1
        if direction.sorted_terms()[0][1] < 0:
            direction, sign = direction.times(-1), -1
        self._narrow(direction, (low, None) if sign > 0 else (None, -low))

    def _narrow(self, direction: Form, to: tuple[int | None, int | None]) -> None:
        low, high = self.bounds(direction)
        low = low if to[0] is None else max(low, to[0])
        high = high if to[1] is None else min(high, to[1])
        if low > high:
            raise Unsupported("the facts contradict each other")
        self._forget()
        atom = direction.single()
        if atom is not None:
            self.narrowed[atom] = (low, high)
            if atom.op == "floordiv" and atom.args[1].op == "const":
                self._narrow_numerator(atom, low, high)
        else:
            self.directions = [(d, b) for d, b in self.directions if d != direction]
            self.directions.append((direction, (low, high)))
            self._propagate(direction, low, high)
            if low == high:
                self._solve(direction.shifted(-low))

    def _narrow_numerator(self, atom: Expr, low: int, high: int) -> None:
        divisor = cast(int, atom.args[1].value)
        numerator = self.inner(atom.args[0])
        if divisor > 0 and numerator.terms:
            self._assume_at_least(numerator, low * divisor)
            self._assume_at_least(numerator.times(-1), -(high * divisor + divisor - 1))

    def _propagate(self, direction: Form, low: int, high: int) -> None:
        """Narrow each atom of a bounded sum by the bounds of the others."""
        for atom, coefficient in direction.terms.items():
            rest_low, rest_high = self.plain_bounds(direction.plus(atom_form(atom), -coefficient))
            if coefficient > 0:
                least, most = -((rest_high - low) // coefficient), (high - rest_low) // coefficient
            else:
                least, most = -((high - rest_low) // -coefficient), (rest_high - low) // -coefficient
            known_low, known_high = self.range(atom)
            if least > known_low or most < known_high:
                if max(least, known_low) > min(most, known_high):
                    raise Unsupported("the facts contradict each other")
                self.narrowed[atom] = (max(least, known_low), min(most, known_high))
                self._forget()

    def _assume_equal(self, form: Form) -> None:
        self._assume_at_least(form, 0)
        self._assume_at_least(form.times(-1), 0)

    def _solve(self, form: Form) -> None:
        """``form == 0``: a variable with coefficient 1 or -1 is replaced by the rest; ``x % 8 == 0`` makes it ``8*(x//8)``."""
        for atom, coefficient in form.sorted_terms():
            if atom.op == "var" and abs(coefficient) == 1 and atom not in self.solved:
                rest = form.plus(atom_form(atom), -coefficient).times(-coefficient)
                if rest.terms and all(self._quotient_of(a, atom) for a in rest.terms if _mentions(a, atom)):
                    self.solved[atom] = rest
                    self._forget()
                    return

    def _quotient_of(self, atom: Expr, variable: Expr) -> bool:
        """Whether ``atom`` is a quotient whose numerator has ``variable`` as a plain term."""
        return (
            atom.op == "floordiv"
            and atom.args[1].op == "const"
            and self.inner(atom.args[0]).terms.get(variable) in (1, -1)
            and not any(a is not variable and _mentions(a, variable) for a in self.inner(atom.args[0]).terms)
        )

    def _assume_nonzero(self, form: Form) -> None:
        low, high = self.bounds(form)
        if low == 0:
            self._assume_at_least(form, 1)
        elif high == 0:
            self._assume_at_least(form.times(-1), 1)
        self.nonzero.add(form)
        self.nonzero.add(form.times(-1))

    def is_nonzero(self, form: Form) -> bool:
        """Whether the form is known never to be zero."""
        if form in self.nonzero:
            return True
        low, high = self.bounds(form)
        if low > 0 or high < 0:
            return True
        monomial = next(iter(form.terms)) if len(form.terms) == 1 and not form.constant else None
        if monomial is not None and monomial.op == "mul":
            return all(self.is_nonzero(atom_form(a)) for a in factors(monomial))
        return form.content() > 1 and form.constant % form.content() != 0

    def under(self, fact: Expr) -> Theory | None:
        """The theory that knows ``fact`` too; ``None`` if it cannot hold; ``self`` if it adds nothing."""
        if fact not in self.children:
            self.children[fact] = self._given([fact])
        return self.children[fact]

    def _given(self, facts: Sequence[Expr]) -> Theory | None:
        if self.spare[0] <= 0:
            return self
        self.spare[0] -= 1
        try:
            child = Theory(facts, parent=self)
        except Unsupported:
            return None
        return child if child.changed else self

    # ---- bounds

    def range(self, atom: Expr) -> Bounds:
        """Inclusive bounds of an atom under the facts."""
        found = self._ranges.get(atom)
        if found is None:
            if self.parent is not None and not self.variables.of(atom) & self.touched:
                found = self.parent.range(atom)
            else:
                found = self._range(atom)
            self._ranges[atom] = found
        return found

    def _range(self, atom: Expr) -> Bounds:
        low, high = atom.vmin, atom.vmax
        op = atom.op
        if op == "floordiv" and atom.args[1].op == "const":
            divisor = cast(int, atom.args[1].value)
            ends = [end // divisor for end in self._bounds_without_facts(self.inner(atom.args[0]))]
            low, high = min(ends), max(ends)
        elif op == "mul":
            low, high = _product_bounds([self.range(a) for a in factors(atom)])
        elif op in ("where", "min", "max"):
            (low, high), (other_low, other_high) = [
                self._bounds_without_facts(self.inner(a)) for a in atom.args[-2:]
            ]
            if op == "where":
                low, high = min(low, other_low), max(high, other_high)
            else:
                choose = min if op == "min" else max
                low, high = choose(low, other_low), choose(high, other_high)
        known_low, known_high = self.narrowed.get(atom, (low, high))
        return max(low, known_low), min(high, known_high)

    def plain_bounds(self, form: Form) -> Bounds:
        """Bounds that treat the atoms as independent."""
        low = high = form.constant
        for atom, coefficient in form.terms.items():
            least, most = self._ranges.get(atom) or self.range(atom)
            if coefficient > 0:
                low += coefficient * least
                high += coefficient * most
            else:
                low += coefficient * most
                high += coefficient * least
        return low, high

    def bounds(self, form: Form, depth: int = MAX_CORRELATION_DEPTH) -> Bounds:
        """The tightest bounds known: correlation of terms with their own quotients, and facts about sums, counted."""
        if len(form.terms) < 2:
            return self.plain_bounds(form)
        low, high, known_depth = self._bounds.get(form, (0, 0, -1))
        if known_depth >= depth:
            return low, high
        low, high = self.plain_bounds(form)
        if depth:
            for other_low, other_high in self._correlated_bounds(form, depth, self.bounds):
                low, high = max(low, other_low), min(high, other_high)
            for other_low, other_high in self._known_bounds(form, depth):
                low, high = max(low, other_low), min(high, other_high)
        self._bounds[form] = (low, high, depth)
        return low, high

    def _bounds_without_facts(self, form: Form, depth: int = 1) -> Bounds:
        """Bounds that facts about sums do not enter: an atom's range may not rest on facts about the atom itself."""
        low, high = self.plain_bounds(form)
        if depth and len(form.terms) > 1:
            for other_low, other_high in self._correlated_bounds(form, depth, self._bounds_without_facts):
                low, high = max(low, other_low), min(high, other_high)
        return low, high

    def _correlated_bounds(self, form: Form, depth: int, bounds: Callable[[Form, int], Bounds]) -> Iterator[Bounds]:
        """A dividend beside its quotient is a multiple of the quotient plus a remainder in ``[0, most]``."""
        for atom in form.terms:
            if atom.op == "var":
                continue
            for division in self.divisions(atom) if bounds == self.bounds else self._flat_division(atom):
                scale = _scale_of(division.dividend, form)
                if scale:
                    rest = form.plus(division.remainder, -scale)
                    if len(rest.terms) < len(form.terms) + len(division.dividend.terms):
                        low, high = bounds(rest, depth - 1)
                        most = scale * division.most
                        yield low + min(0, most), high + max(0, most)

    def _known_bounds(self, form: Form, depth: int) -> Iterator[Bounds]:
        """Sums that facts bound, each alone and all together, and what is left beside them."""
        rest, total_low, total_high, taken = form, 0, 0, 0
        for direction, (least, most) in self.directions:
            scale = _scale_of(direction, form)
            if scale:
                low, high = self.bounds(form.plus(direction, -scale), depth - 1)
                corners = (scale * least, scale * most)
                yield low + min(corners), high + max(corners)
            scale = _scale_of(direction, rest)
            smaller = rest.plus(direction, -scale)
            if scale and len(smaller.terms) < len(rest.terms):
                corners = (scale * least, scale * most)
                rest, taken = smaller, taken + 1
                total_low, total_high = total_low + min(corners), total_high + max(corners)
        if taken > 1:
            low, high = self.plain_bounds(rest)
            yield low + total_low, high + total_high

    def divisions(self, atom: Expr) -> tuple[Division, ...]:
        """The ways to read ``atom`` as a quotient, or as a divisor times its quotient.

        ``A // n`` is also ``(A//b) // (n//b)`` for every divisor ``b`` of ``n``; those that a coefficient of ``A`` suggests.
        """
        found = self._divisions.get(atom)
        if found is None:
            # what asks for the divisions of this atom while they are being found sees the plain one
            found = self._divisions[atom] = self._flat_division(atom)
            if found and not found[0].divisor.terms:
                found = self._divisions[atom] = (*found, *self._nested_divisions(atom, found[0]))
        return found

    def divisions_in(self, form: Form, atom: Expr) -> Iterator[Division]:
        """The divisions of ``atom`` whose dividends ``form`` holds, other quotients of ``form`` as dividends included."""
        for division in self.divisions(atom):
            if division.dividend.terms.keys() <= form.terms.keys():
                yield division
        if atom.op != "floordiv" or atom.args[1].op != "const":
            return
        n = cast(int, atom.args[1].value)
        for other in form.terms:
            if other.op != "floordiv" or other is atom or other.args[1].op != "const":
                continue
            b = cast(int, other.args[1].value)
            if 1 < b < n and n % b == 0:
                dividend, outer = atom_form(other), n // b
                if self.quotient_by(dividend, outer) == atom_form(atom):
                    yield Division(dividend, number(outer), dividend.plus(Form({atom: outer}, 0), -1), outer - 1)

    def _flat_division(self, atom: Expr) -> tuple[Division, ...]:
        for quotient in factors(atom):
            if quotient.op != "floordiv" or quotient.args[1].vmin <= 0:
                continue
            dividend, divisor = self.inner(quotient.args[0]), self.inner(quotient.args[1])
            if divisor.terms or quotient is atom:
                multiple = self.times(divisor, atom_form(quotient))
                if not divisor.terms or multiple == atom_form(atom):
                    return (Division(dividend, divisor, dividend.plus(multiple, -1), self.bounds(divisor)[1] - 1),)
        return ()

    def _nested_divisions(self, atom: Expr, flat: Division) -> Iterator[Division]:
        n = flat.divisor.constant
        for b in sorted({gcd(c, n) for c in flat.dividend.terms.values()}):
            if 1 < b < n:
                dividend, outer = self.quotient_by(flat.dividend, b), n // b
                yield Division(dividend, number(outer), dividend.plus(Form({atom: outer}, 0), -1), outer - 1)

    def inner(self, term: Expr) -> Form:
        """The form of an operand of an atom, which is in normal form already."""
        found = self._inner.get(term)
        if found is None:
            found = self._inner[term] = read(term)
        return found

    # ---- integer terms

    def form(self, root: Expr) -> Form:
        """The normal form of an integer term."""
        forms = self.forms
        found = forms.get(root)
        if found is not None:
            return found
        for term in topological_until([root], self._is_done):
            if term.is_bool:
                self.conditions[term] = self._condition(term)
            else:
                forms[term] = self._form(term)
        return forms[root]

    def _is_done(self, term: Expr) -> bool:
        if term.is_bool:
            if term in self.conditions:
                return True
        elif term in self.forms:
            return True
        if self.parent is None or self.variables.of(term) & self.touched:
            return False
        if term.is_bool:
            self.conditions[term] = self.parent.condition(term)
        else:
            self.forms[term] = self.parent.form(term)
        return True

    def _form(self, term: Expr) -> Form:
        forms, op, args = self.forms, term.op, term.args
        if op == "const":
            return number(cast(int, term.value))
        if op == "var":
            return self._variable(term)
        if op == "where":
            return self._where(term)
        x = forms[args[0]]
        if op == "neg":
            return x.times(-1)
        y = forms[args[1]]
        return _INTEGER_STEPS[op](self, x, y)

    def _variable(self, term: Expr) -> Form:
        low, high = self.range(term)
        if low == high:
            return number(low)
        solved = self.solved.get(term)
        return solved if solved is not None else atom_form(term)

    def times(self, x: Form, y: Form) -> Form:
        """The product of two forms."""
        if not y.terms:
            return x.times(y.constant)
        if not x.terms:
            return y.times(x.constant)
        if (len(x.terms) + bool(x.constant)) * (len(y.terms) + bool(y.constant)) > MAX_PRODUCT:
            return self._opaque("mul", *sorted((x, y), key=lambda f: to_expr(f).key))
        total = ZERO.shifted(x.constant * y.constant)
        if x.constant:
            total = total.plus(Form(y.terms, 0), x.constant)
        if y.constant:
            total = total.plus(Form(x.terms, 0), y.constant)
        for atom, coefficient in x.terms.items():
            for other, scale in y.terms.items():
                monomial = product([*factors(atom), *factors(other)])
                total = total.plus(Form({monomial: coefficient * scale}, 0))
        return total

    def quotient(self, x: Form, divisor: Form) -> Form:
        """The normal form of ``x // divisor``."""
        if not divisor.terms:
            n = divisor.constant
            if n == 0:
                raise Unsupported("division by zero under the known facts")
            return self.quotient_by(x, n) if n > 0 else self.quotient_by(x.times(-1), -n)
        return self._symbolic_quotient(x, divisor)

    def quotient_by(self, x: Form, n: int) -> Form:
        """The normal form of ``x // n`` for a positive integer ``n``."""
        if n == 1:
            return x
        found = self._quotients.get((x, n))
        if found is None:
            found = self._quotients[(x, n)] = self._quotient_by(x, n)
        return found

    def _quotient_by(self, x: Form, n: int) -> Form:
        # 1. all values in one bucket
        low, high = self.plain_bounds(x)
        if low // n == high // n:
            return number(low // n)
        # 2. multiples of n leave the floor; the residue may lie in one bucket
        whole, residue = _split(x, n, balanced=True)
        for multiples, rest in ((whole, residue), _split(x, n, balanced=False)):
            low, high = self.bounds(rest)
            if low // n == high // n:
                return multiples.shifted(low // n)
        if whole.terms or whole.constant:
            return whole.plus(self.quotient_by(residue, n))
        return self._residue_quotient(residue, n)

    def _residue_quotient(self, x: Form, n: int) -> Form:
        """``x // n`` where every coefficient and the constant is in ``[0, n)``."""
        digits = self._quotient_in_digits(x, n)
        if digits is not None:
            return digits
        # one sign for all: x//n is -((n - 1 - x)//n)
        if all(c < 0 for c in x.terms.values()):
            return self.quotient_by(x.times(-1).shifted(n - 1), n).times(-1)
        # 3. a common factor of the coefficients and n
        common = gcd(x.content(), n)
        if common > 1:
            reduced = Form({a: c // common for a, c in x.terms.items()}, x.constant // common)
            return self.quotient_by(reduced, n // common)
        # 4. floors compose: (A//b + r)//n = (A + b*r)//(b*n)
        for atom, coefficient in x.sorted_terms():
            if coefficient == 1 and atom.op == "floordiv" and atom.args[1].op == "const":
                b = cast(int, atom.args[1].value)
                inner = self.inner(atom.args[0])
                rest = x.plus(atom_form(atom), -1)
                return self.quotient_by(inner.plus(rest, b), b * n)
        # 5. terms that a factor f of n does not divide drop out if they stay in one bucket of f
        for f in sorted({gcd(c, n) for c in x.terms.values()}, reverse=True):
            if 1 < f < n:
                multiples, rest = _partition(x, f)
                low, high = self.bounds(rest)
                if low // f == high // f:
                    return self.quotient_by(multiples.shifted(low // f), n // f)
        # 6. one atom with few values may give an affine quotient
        if len(x.terms) == 1:
            affine = self._affine_by_enumeration(x, n)
            if affine is not None:
                return affine
        return self._opaque("floordiv", x, number(n))

    def _quotient_in_digits(self, x: Form, n: int) -> Form | None:
        """``x // n`` with ``A`` written as ``m*(A//m) + A%m`` for quotients in ``x``, if no new quotient remains."""
        if any(a.op == "mod" for a in x.terms):
            return None
        rewritten, digits = self._in_digits(x)
        if not digits:
            return None
        result = self.quotient_by(rewritten, n)
        for atom in list(result.terms):
            if atom in digits:
                result = result.plus(digits[atom].plus(atom_form(atom), -1), result.terms[atom])
            elif atom not in x.terms and atom.op != "var":
                return None
        return result

    def _in_digits(self, x: Form) -> tuple[Form, dict[Expr, Form]]:
        """``x`` with remainders as atoms in place of dividends of its quotients, and what each of them stands for."""
        digits: dict[Expr, Form] = {}
        for quotient, _ in x.sorted_terms():
            if quotient.op != "floordiv" or quotient.args[1].op != "const":
                continue
            for division in self.divisions_in(x, quotient):
                scale = _scale_of(division.dividend, x)
                if not scale:
                    continue
                rest = x.plus(division.remainder, -scale)
                if len(rest.terms) < len(x.terms):
                    digit = make("mod", to_expr(division.dividend), const(division.divisor.constant))
                    x = rest.plus(atom_form(digit), scale)
                    digits[digit] = division.remainder
                    break
        return x, digits

    def _affine_by_enumeration(self, x: Form, n: int) -> Form | None:
        ((atom, coefficient),) = x.terms.items()
        low, high = self.range(atom)
        if high - low >= MAX_ENUMERATED:
            return None
        values = [(coefficient * v + x.constant) // n for v in range(low, high + 1)]
        slope = values[1] - values[0]
        if any(b - a != slope for a, b in zip(values, values[1:], strict=False)):
            return None
        return Form({atom: slope} if slope else {}, values[0] - slope * low)

    def _symbolic_quotient(self, x: Form, divisor: Form) -> Form:
        corners = self._corner_quotient(x, divisor)
        if corners is not None:
            return corners
        if len(divisor.terms) == 1 and not divisor.constant:
            ((monomial, scale),) = divisor.terms.items()
            return self._monomial_quotient(x, monomial, scale)
        if not x.terms and not x.constant:
            return ZERO
        shorter = self._divide_out(x, divisor)
        if shorter is not None:
            multiple, rest = shorter
            return multiple.plus(self.quotient(rest, divisor))
        # k*divisor + r with r in [0, divisor) is k
        ratio = _scale_of(divisor, x)
        if ratio:
            rest = x.plus(divisor, -ratio)
            if not rest.terms and not rest.constant:
                return number(ratio)
            if self._is_proper_remainder(rest, divisor):
                return number(ratio)
        if self._is_proper_remainder(x, divisor):
            return ZERO
        return self._opaque("floordiv", x, divisor)

    def _divide_out(self, x: Form, divisor: Form) -> tuple[Form, Form] | None:
        """``x = multiple*divisor + rest`` with a multiple that makes ``rest`` shorter than ``x``."""
        for atom, coefficient in x.sorted_terms():
            for lead, scale in divisor.sorted_terms():
                left = _without(factors(atom), factors(lead))
                if left and coefficient % scale == 0:
                    multiple = Form({product(left): coefficient // scale}, 0)
                    rest = x.plus(self.times(multiple, divisor), -1)
                    if len(rest.terms) < len(x.terms):
                        return multiple, rest
        return None

    def _is_proper_remainder(self, x: Form, divisor: Form) -> bool:
        return self.bounds(x)[0] >= 0 and self.bounds(divisor.plus(x, -1))[0] >= 1

    def _corner_quotient(self, x: Form, divisor: Form) -> Form | None:
        low, high = self.bounds(divisor)
        if low <= 0 <= high:
            return None
        values = {v // d for v in self.bounds(x) for d in (low, high)}
        return number(values.pop()) if len(values) == 1 else None

    def _monomial_quotient(self, x: Form, monomial: Expr, scale: int) -> Form:
        """``x // (scale*monomial)``: divisible terms leave the floor, common factors cancel."""
        below = factors(monomial)
        whole = ZERO
        rest = ZERO.shifted(x.constant)
        for atom, coefficient in x.terms.items():
            left = _without(factors(atom), below)
            if left is not None and coefficient % scale == 0:
                term = Form({product(left): coefficient // scale}, 0) if left else number(coefficient // scale)
                whole = whole.plus(term)
            else:
                rest = rest.plus(Form({atom: coefficient}, 0))
        divisor = Form({monomial: scale}, 0)
        if not rest.terms and not rest.constant:
            return whole
        if self._is_proper_remainder(rest, divisor):
            return whole
        shared = _common_factors([factors(a) for a in rest.terms] + [below]) if not rest.constant else []
        common = gcd(rest.content(), rest.constant, scale)
        if common > 1 or shared:
            reduced = ZERO.shifted(rest.constant // common)
            for atom, coefficient in rest.terms.items():
                left = _without(factors(atom), shared) or []
                reduced = reduced.plus(
                    Form({product(left): coefficient // common}, 0) if left else number(coefficient // common)
                )
            left = _without(below, shared) or []
            smaller = Form({product(left): scale // common}, 0) if left else number(scale // common)
            return whole.plus(self.quotient(reduced, smaller))
        return whole.plus(self._opaque("floordiv", rest, divisor))

    def remainder(self, x: Form, divisor: Form) -> Form:
        """The normal form of ``x % divisor``: ``x - divisor*(x // divisor)``."""
        return x.plus(self.times(divisor, self.quotient(x, divisor)), -1)

    def truncated(self, x: Form, divisor: Form) -> Form:
        """The normal form of ``tdiv(x, divisor)``."""
        if not divisor.terms and not x.terms and divisor.constant:
            return number(truncated_div(x.constant, divisor.constant))
        low, high = self.bounds(divisor)
        if high < 0:
            return self.truncated(x, divisor.times(-1)).times(-1)
        if low > 0:
            if self.bounds(x)[0] >= 0:
                return self.quotient(x, divisor)
            if self.bounds(x)[1] <= 0:
                return self.quotient(x.times(-1), divisor).times(-1)
        if not divisor.terms and gcd(x.content(), x.constant) % divisor.constant == 0:
            n = divisor.constant
            return Form({a: c // n for a, c in x.terms.items()}, x.constant // n)
        return self._opaque("tdiv", x, divisor)

    def _truncated_remainder(self, x: Form, divisor: Form) -> Form:
        return x.plus(self.times(divisor, self.truncated(x, divisor)), -1)

    def _shift_left(self, x: Form, amount: Form) -> Form:
        return x.times(1 << amount.constant) if not amount.terms else self._opaque("shl", x, amount)

    def _shift_right(self, x: Form, amount: Form) -> Form:
        return self.quotient_by(x, 1 << amount.constant) if not amount.terms else self._opaque("shr", x, amount)

    def _extreme(self, op: str, x: Form, y: Form) -> Form:
        """The normal form of ``min`` or ``max``: what both share comes out."""
        low, high = self.bounds(x.plus(y, -1))
        if high <= 0:
            return x if op == "min" else y
        if low >= 0:
            return y if op == "min" else x
        members = self._members(op, x) + self._members(op, y)
        kept: list[Form] = []
        for member in members:
            if any(self._dominates(op, other, member) for other in kept):
                continue
            kept = [other for other in kept if not self._dominates(op, member, other)]
            kept.append(member)
        if len(kept) == 1:
            return kept[0]
        shared = {a: c for a, c in kept[0].terms.items() if all(k.terms.get(a) == c for k in kept)}
        kept = sorted((k.plus(Form(shared, 0), -1) for k in kept), key=_form_order)
        base = kept[0].constant
        kept = [k.shifted(-base) for k in kept]
        common = gcd(*(c for k in kept for c in (*k.terms.values(), k.constant)))
        result: Expr | None = None
        for member in kept:
            divided = to_expr(Form({a: c // common for a, c in member.terms.items()}, member.constant // common))
            result = divided if result is None else make(op, result, divided)
        return Form(shared, base).plus(atom_form(cast(Expr, result)), common)

    def _members(self, op: str, x: Form) -> list[Form]:
        """The operands of a nested ``min`` or ``max``, with what surrounds it put back into each."""
        inner = [(a, c) for a, c in x.terms.items() if a.op == op and c > 0]
        if len(inner) != 1:
            return [x]
        atom, coefficient = inner[0]
        rest = x.plus(atom_form(atom), -coefficient)
        return [
            member.times(coefficient).plus(rest)
            for argument in atom.args
            for member in self._members(op, self.inner(argument))
        ]

    def _dominates(self, op: str, x: Form, y: Form) -> bool:
        """Whether ``y`` is never needed beside ``x``."""
        low, high = self.bounds(x.plus(y, -1))
        return high <= 0 if op == "min" else low >= 0

    def _where(self, term: Expr) -> Form:
        condition = self.conditions[term.args[0]]
        if condition is TRUE or condition is FALSE:
            return self.forms[term.args[1] if condition is TRUE else term.args[2]]
        yes, no = term.args[1:]
        if _is_negative(condition):
            condition, yes, no = self.negate(condition), no, yes
        x, y = self._branch(yes, condition), self._branch(no, self.negate(condition))
        if x is None or y is None:
            return self.forms[no if x is None else yes]
        if x == y:
            return x
        shared = {a: c for a, c in x.terms.items() if y.terms.get(a) == c}
        common = Form(shared, 0)
        x, y = x.plus(common, -1), y.plus(common, -1)
        return common.plus(atom_form(make("where", condition, to_expr(x), to_expr(y))))

    def _branch(self, term: Expr, condition: Expr) -> Form | None:
        """The form of ``term`` where ``condition`` holds; ``None`` if it never does."""
        if not self.variables.of(term) & self.variables.of(condition):
            return self.forms[term]
        theory = self.under(condition)
        return None if theory is None else theory.form(term)

    def _opaque(self, op: str, x: Form, y: Form) -> Form:
        return atom_form(make(op, to_expr(x), to_expr(y)))

    # ---- conditions

    def condition(self, root: Expr) -> Expr:
        """The normal form of a bool term, as a term."""
        found = self.conditions.get(root)
        if found is not None:
            return found
        for term in topological_until([root], self._is_done):
            if term.is_bool:
                self.conditions[term] = self._condition(term)
            else:
                self.forms[term] = self._form(term)
        return self.conditions[root]

    def _condition(self, term: Expr) -> Expr:
        op, args = term.op, term.args
        if op == "bool":
            return term
        if op in ("and", "or"):
            result = self._junction(op, [self.conditions[a] for a in args])
        elif op == "not":
            result = self.negate(self.conditions[args[0]])
        elif op == "where" or args[0].is_bool:
            result = self._choice(term)
        else:
            x, y = self.forms[args[0]], self.forms[args[1]]
            if op == "lt":
                result = self.at_least_zero(y.plus(x, -1).shifted(-1))
            elif op == "le":
                result = self.at_least_zero(y.plus(x, -1))
            else:
                result = self.equal_zero(x.plus(y, -1))
                if op == "ne":
                    result = self.negate(result)
        return self.known.get(result, result)

    def _choice(self, term: Expr) -> Expr:
        """Selections and comparisons of conditions, spelled with ``and``, ``or`` and ``not``."""
        parts = [self.conditions[a] for a in term.args]
        if term.op == "where":
            c, x, y = parts
            return self._junction("or", [self._junction("and", [c, x]), self._junction("and", [self.negate(c), y])])
        if term.op in ("min", "max"):
            return self._junction("and" if term.op == "min" else "or", parts)
        x, y = parts
        both = self._junction("and", [x, y])
        neither = self._junction("and", [self.negate(x), self.negate(y)])
        same = self._junction("or", [both, neither])
        return same if term.op == "eq" else self.negate(same)

    def at_least_zero(self, form: Form) -> Expr:
        """The normal form of ``form >= 0``."""
        while True:
            low, high = self.bounds(form)
            if low >= 0:
                return TRUE
            if high < 0:
                return FALSE
            smaller = self._clear_comparison(form)
            if smaller is None:
                return _literal(form)
            form = smaller

    def _clear_comparison(self, form: Form) -> Form | None:
        """An equivalent form with fewer terms or quotients, if any: ``d >= 0`` iff ``d // f >= 0`` for any ``f > 0``."""
        content = form.content()
        if content > 1:
            return Form({a: c // content for a, c in form.terms.items()}, form.constant // content)
        for atom, coefficient in form.sorted_terms():
            if abs(coefficient) == 1 and atom.op == "floordiv" and atom.args[1].op == "const":
                n = cast(int, atom.args[1].value)
                inner = self.inner(atom.args[0])
                rest = form.plus(atom_form(atom), -coefficient)
                if coefficient == 1:
                    return inner.plus(rest, n)
                return rest.times(n).shifted(n - 1).plus(inner, -1)
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = _partition(form, f)
                low, high = self.bounds(rest)
                if low // f == high // f:
                    return multiples.shifted(low // f)
        return None

    def equal_zero(self, form: Form) -> Expr:
        """The normal form of ``form == 0``."""
        content = form.content()
        if not content:
            return FALSE if form.constant else TRUE
        if form.constant % content or form in self.nonzero:
            return FALSE
        low, high = self.bounds(form)
        if low > 0 or high < 0:
            return FALSE
        if content > 1:
            form = Form({a: c // content for a, c in form.terms.items()}, form.constant // content)
            low, high = self.bounds(form)
        if form.sorted_terms()[0][1] < 0:
            form, low, high = form.times(-1), -high, -low
        # at an end of its range equality is a comparison, which may simplify further
        if low == 0:
            return self.at_least_zero(form.times(-1))
        if high == 0:
            return self.at_least_zero(form)
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = _partition(form, f)
                low, high = self.bounds(rest)
                if -f < low and high < f:
                    return self._junction("and", [self.equal_zero(multiples), self.equal_zero(rest)])
        return make("eq", to_expr(Form(form.terms, 0)), const(-form.constant))

    def negate(self, condition: Expr) -> Expr:
        if condition is TRUE:
            return FALSE
        if condition is FALSE:
            return TRUE
        op, args = condition.op, condition.args
        if op in _COMPLEMENT:
            complement = _COMPLEMENT[op]
            return make(complement, *(args[::-1] if op in ("lt", "le") else args))
        if op in ("and", "or"):
            return self._junction("or" if op == "and" else "and", [self.negate(a) for a in _operands(condition, op)])
        if op == "not":
            return args[0]
        return make("not", condition)

    def _junction(self, op: str, parts: Sequence[Expr]) -> Expr:
        """``and`` or ``or`` over conditions in normal form: flat, sorted, without what the others imply."""
        unit, zero = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
        members = {m: None for part in parts for m in _operands(part, op)}
        members.pop(unit, None)
        if zero in members:
            return zero
        if len(members) < 2:
            return next(iter(members), unit)
        key = (op, frozenset(members))
        found = self._junctions.get(key)
        if found is None:
            found = self._junctions[key] = self._join(op, members, unit, zero)
        return found

    def _join(self, op: str, members: Iterable[Expr], unit: Expr, zero: Expr) -> Expr:
        merged = self._merge_intervals(op, list(members))
        if merged is None:
            return zero
        found = set(merged)
        for member in merged:
            if self.negate(member) in found:
                return zero
        other = "or" if op == "and" else "and"
        # absorption: p and (p or q) is p
        kept = [m for m in merged if not (m.op == other and any(o in found for o in _operands(m, other)))]
        if len(kept) > 1:
            kept = self._drop_implied(op, kept)
        if not kept:
            return unit
        kept.sort(key=lambda m: m.key)
        result = kept[0]
        for member in kept[1:]:
            result = make(op, result, member)
        return result

    def _merge_intervals(self, op: str, members: list[Expr]) -> list[Expr] | None:
        """Comparisons of one form with constants, merged; ``None`` if together they decide the junction."""
        others: list[Expr] = []
        limits: dict[Expr, list[int | None]] = {}
        for member in members:
            if member.op == "lt" and member.args[1].op == "const":
                slot, value = 1, cast(int, member.args[1].value)
                form = member.args[0]
            elif member.op == "le" and member.args[0].op == "const":
                slot, value = 0, cast(int, member.args[0].value)
                form = member.args[1]
            else:
                others.append(member)
                continue
            limit = limits.setdefault(form, [None, None])
            old = limit[slot]
            stronger = max if (slot == 0) == (op == "and") else min
            limit[slot] = value if old is None else stronger(old, value)
        for form, (least, below) in limits.items():
            if least is not None and below is not None:
                # "and": least <= form < below may be empty; "or": form < below or least <= form may be everything
                if op == "and" and least >= below or op == "or" and least <= below:
                    return None
                if op == "and" and least + 1 == below:
                    others.append(self.equal_zero(self.form(form).shifted(-least)))
                    continue
            if least is not None:
                others.append(make("le", const(least), form))
            if below is not None:
                others.append(make("lt", form, const(below)))
        return others

    def _drop_implied(self, op: str, members: list[Expr]) -> list[Expr]:
        """Drop the members that the others decide: under ``and`` the others hold, under ``or`` they fail."""
        kept = sorted(members, key=lambda m: m.key)
        for member in list(kept):
            others = [m for m in kept if m is not member and self._may_decide(m, member)]
            if member.op not in _COMPLEMENT or not others or len(others) > MAX_DECIDING:
                continue
            theory = self._given(others if op == "and" else [self.negate(m) for m in others])
            if theory is None:
                return [FALSE] if op == "and" else [TRUE]
            if theory is not self and theory.condition(member) is (TRUE if op == "and" else FALSE):
                kept.remove(member)
        return kept

    def _may_decide(self, fact: Expr, member: Expr) -> bool:
        """Whether a comparison speaks of the variables of another, but not of the same sum: those are merged."""
        shares = self.variables.of(fact) & self.variables.of(member)
        same = any(a is b for a in fact.args for b in member.args if a.op != "const")
        return bool(shares) and fact.op in _COMPLEMENT and not same

    # ---- the result

    def simplify(self, term: Expr) -> Expr:
        """The normal form of ``term`` as a term."""
        return self.condition(term) if term.is_bool else to_expr(self.form(term))


_INTEGER_STEPS: dict[str, Callable[[Theory, Form, Form], Form]] = {
    "add": lambda theory, x, y: x.plus(y),
    "sub": lambda theory, x, y: x.plus(y, -1),
    "mul": Theory.times,
    "floordiv": Theory.quotient,
    "mod": Theory.remainder,
    "tdiv": Theory.truncated,
    "tmod": Theory._truncated_remainder,
    "shl": Theory._shift_left,
    "shr": Theory._shift_right,
    "min": lambda theory, x, y: theory._extreme("min", x, y),
    "max": lambda theory, x, y: theory._extreme("max", x, y),
}

_COMPLEMENT = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


def _literal(form: Form) -> Expr:
    """``form >= 0`` as a comparison with a constant, the first coefficient made positive."""
    terms = Form(form.terms, 0)
    if form.sorted_terms()[0][1] > 0:
        return make("le", const(-form.constant), to_expr(terms))
    return make("lt", to_expr(terms.times(-1)), const(form.constant + 1))


def _is_negative(condition: Expr) -> bool:
    """Whether a condition is spelled as the complement of another, so that selections swap their branches."""
    return condition.op in ("le", "ne", "not")


def _conjuncts(condition: Expr) -> list[Expr]:
    return _operands(condition, "and")


def _operands(condition: Expr, op: str) -> list[Expr]:
    """The members of a chain of ``op``."""
    found, stack = [], [condition]
    while stack:
        part = stack.pop()
        if part.op == op:
            stack.extend(part.args)
        else:
            found.append(part)
    return found


def _split(form: Form, n: int, balanced: bool) -> tuple[Form, Form]:
    """``form = n*whole + residue``, residues in ``[0, n)`` or, balanced, in ``(-n/2, n/2]``."""
    whole, rest = {}, {}
    for atom, coefficient in form.terms.items():
        quotient, residue = divmod(coefficient, n)
        if balanced and 2 * residue > n:
            quotient, residue = quotient + 1, residue - n
        if quotient:
            whole[atom] = quotient
        if residue:
            rest[atom] = residue
    quotient, residue = divmod(form.constant, n)
    return Form(whole, quotient), Form(rest, residue)


def _partition(form: Form, f: int) -> tuple[Form, Form]:
    """``form = f*multiples + rest``: the terms that ``f`` divides, and the others; the constant is split."""
    multiples, rest = {}, {}
    for atom, coefficient in form.terms.items():
        if coefficient % f:
            rest[atom] = coefficient
        else:
            multiples[atom] = coefficient // f
    return Form(multiples, form.constant // f), Form(rest, form.constant % f)


def _form_order(form: Form) -> tuple[bool, list[tuple[int, int]]]:
    """A fixed order on forms, whatever their constants; constants come last."""
    return not form.terms, sorted((a.key, c) for a, c in form.terms.items())


def _scale_of(part: Form, form: Form) -> int:
    """The multiple of ``part`` in ``form``, read off the first atom they share; 0 if there is none."""
    for atom, coefficient in part.terms.items():
        total = form.terms.get(atom)
        if total is not None:
            return total // coefficient if total % coefficient == 0 else 0
    return 0


def _without(atoms: list[Expr], removed: list[Expr]) -> list[Expr] | None:
    """``atoms`` less ``removed``, as multisets; ``None`` if some are missing."""
    left = list(atoms)
    for atom in removed:
        if atom not in left:
            return None
        left.remove(atom)
    return left


def _common_factors(products: list[list[Expr]]) -> list[Expr]:
    shared = []
    others = [list(p) for p in products[1:]]
    for atom in products[0]:
        if all(atom in other for other in others):
            shared.append(atom)
            for other in others:
                other.remove(atom)
    return shared


def _product_bounds(ranges: list[Bounds]) -> Bounds:
    low, high = ranges[0]
    for least, most in ranges[1:]:
        corners = (low * least, low * most, high * least, high * most)
        low, high = min(corners), max(corners)
    return low, high


def _mentions(term: Expr, variable: Expr) -> bool:
    return any(t is variable for t in topological([term]))


def topological_until(roots: Iterable[Expr], done: Callable[[Expr], bool]) -> Iterator[Expr]:
    """The terms below ``roots`` that are not yet ``done``, operands first; each must be done before the next is asked."""
    stack = list(roots)[::-1]
    while stack:
        term = stack[-1]
        if done(term):
            stack.pop()
            continue
        waiting = [a for a in term.args if not done(a)]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            stack.pop()
            yield term
