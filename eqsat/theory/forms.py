"""Linear forms: sums of integer multiples of atoms, the normal form of integer terms.

An *atom* is a term that is not a sum: a variable, a quotient, a product, a selection. A :class:`LinearForm` maps atoms
to integer coefficients and has a constant. :func:`to_expr` writes a form as a term, the same for equal forms,
and :func:`read` reads it back. This module has the arithmetic of forms; what is known of their values is in
:mod:`eqsat.theory.intervals` and :mod:`eqsat.theory.facts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from math import gcd
from operator import and_

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, rebuild, shift_amount
from eqsat.lang.ops import REDUCTIONS, SHIFTS
from eqsat.lang.traversal import topological
from eqsat.theory.limits import LIMITS

#: What :func:`to_expr` writes a form with.
_FORM_OPERATORS = frozenset({"add", "sub", "mul"})
_COMPLEMENT = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


#: A key for a fixed order on forms.
Order = tuple[int, int, list[tuple[int, int]]]


class LinearForm:
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
        return isinstance(other, LinearForm) and self.constant == other.constant and self.terms == other.terms

    def __repr__(self) -> str:
        return f"LinearForm({to_expr(self)})"

    def plus(self, other: LinearForm, scale: int = 1) -> LinearForm:
        """``self + scale*other``."""
        if not scale:
            return self
        if not self.terms:
            return other.times(scale).shifted(self.constant)
        if not other.terms:
            return LinearForm(self.terms, self.constant + scale * other.constant) if other.constant else self
        terms = self.terms.copy()
        for atom, coefficient in other.terms.items():
            if total := terms.get(atom, 0) + scale * coefficient:
                terms[atom] = total
            else:
                del terms[atom]
        return LinearForm(terms, self.constant + scale * other.constant)

    def times(self, scale: int) -> LinearForm:
        """``scale * self``."""
        if scale == 1:
            return self
        if not scale:
            return ZERO
        return LinearForm({a: c * scale for a, c in self.terms.items()}, self.constant * scale)

    def shifted(self, constant: int) -> LinearForm:
        """``self + constant``."""
        return LinearForm(self.terms, self.constant + constant) if constant else self

    def divided(self, n: int) -> LinearForm:
        """``self // n`` where ``n`` divides every coefficient; the constant is rounded down."""
        return LinearForm({a: c // n for a, c in self.terms.items()}, self.constant // n)

    def direction(self) -> LinearForm:
        """The form without its constant."""
        return LinearForm(self.terms, 0) if self.constant else self

    def line(self) -> LinearForm:
        """What the form, its opposite, and their sums with literals have in common."""
        return self.direction().times(self.sign())

    def without(self, atom: Expr) -> LinearForm:
        """The form without the term of an atom."""
        terms = self.terms.copy()
        terms.pop(atom, None)
        return LinearForm(terms, self.constant)

    def sorted_terms(self) -> list[tuple[Expr, int]]:
        """The terms in the fixed order on atoms."""
        return sorted(self.terms.items(), key=lambda item: (item[0].key, item[1]))

    def sign(self) -> int:
        """1 or -1, opposite for opposite forms: the sign of the coefficient of least magnitude."""
        _, _, coefficient = min([(abs(c), a.key, c) for a, c in self.terms.items()])
        return 1 if coefficient > 0 else -1

    def ordered(self) -> LinearForm:
        """The same form with its terms in the fixed order, for searches that must not depend on how it was made."""
        if len(self.terms) < 2:
            return self
        same = LinearForm(dict(self.sorted_terms()), self.constant)
        same._hash = self._hash
        return same

    def order(self) -> Order:
        """A key for a fixed order on forms: the hash, and what it is made of, as Python hashes -1 and -2 alike."""
        return hash(self), self.constant, [(coefficient, atom.key) for atom, coefficient in self.sorted_terms()]

    def content(self) -> int:
        """The greatest common divisor of the coefficients; 0 for a constant."""
        return gcd(*self.terms.values())

    def common_factor(self) -> int:
        """The greatest common divisor of the coefficients and the constant; 0 for zero."""
        return gcd(self.constant, *self.terms.values())

    def only_subtracts(self) -> bool:
        """Whether no coefficient is positive."""
        return max(self.terms.values(), default=-1) < 0

    def has_minimum(self) -> bool:
        """Whether a minimum is among its atoms."""
        return any(atom.op == "min" for atom in self.terms)

    def is_affine(self) -> bool:
        """Whether every atom is a variable."""
        return not [atom for atom in self.terms if atom.op != "var"]

    def single(self) -> Expr | None:
        """The atom, if the form is just one atom."""
        if self.constant or len(self.terms) != 1:
            return None
        ((atom, coefficient),) = self.terms.items()
        return atom if coefficient == 1 else None

    def multiple(self) -> tuple[Expr, int] | None:
        """The atom and its coefficient, if the form is a multiple of just one atom."""
        if self.constant or len(self.terms) != 1:
            return None
        (found,) = self.terms.items()
        return found

    def addends(self) -> int:
        """The number of terms, the constant among them."""
        return len(self.terms) + bool(self.constant)

    def residues(self, n: int) -> LinearForm:
        """The coefficients modulo ``n``, without those that are zero and without the constant."""
        return LinearForm({atom: k % n for atom, k in self.terms.items() if k % n}, 0)

    def split(self, n: int, balanced: bool) -> tuple[LinearForm, LinearForm]:
        """``self = n*whole + residue``, residues in ``[0, n)`` or, balanced, in ``(-n/2, n/2]``."""
        whole, rest = {}, {}
        for atom, coefficient in self.terms.items():
            quotient, residue = divmod(coefficient, n)
            if balanced and 2 * residue > n:
                quotient, residue = quotient + 1, residue - n
            if quotient:
                whole[atom] = quotient
            if residue:
                rest[atom] = residue
        quotient, residue = divmod(self.constant, n)
        return (LinearForm(whole, quotient), LinearForm(rest, residue)) if whole or quotient else (ZERO, self)

    def partition(self, f: int) -> tuple[LinearForm, LinearForm]:
        """``self = f*multiples + rest``: the terms that ``f`` divides, and the others; the constant is split."""
        multiples, rest = {}, {}
        for atom, coefficient in self.terms.items():
            if coefficient % f:
                rest[atom] = coefficient
            else:
                multiples[atom] = coefficient // f
        return LinearForm(multiples, self.constant // f), LinearForm(rest, self.constant % f)

    def partition_by(self, monomial: Expr, scale: int = 1) -> tuple[LinearForm, LinearForm]:
        """``self = scale*monomial*multiples + rest``: the terms that a literal times a product divides, and others."""
        below = factors(monomial)
        multiples, rest = number(0), {}
        for atom, coefficient in self.terms.items():
            left = without(factors(atom), below)
            if left is None or coefficient % scale:
                rest[atom] = coefficient
            else:
                multiples = multiples.plus(product_form(left), coefficient // scale)
        return multiples, LinearForm(rest, self.constant)

    def divided_by(self, shared: list[Expr], scale: int) -> LinearForm:
        """``self`` divided by ``scale`` and by the ``shared`` factors, all of which all its terms have."""
        found = number(self.constant // scale)
        for atom, coefficient in self.terms.items():
            found = found.plus(product_form(without(factors(atom), shared) or []), coefficient // scale)
        return found

    def scale_of(self, part: LinearForm) -> int:
        """The ``k`` of least magnitude such that ``self - k*part`` lacks a term of ``part``; 0 if none does."""
        best = 0
        for atom, coefficient in part.terms.items():
            total = self.terms.get(atom)
            if total is not None and total % coefficient == 0:
                scale = total // coefficient
                if not best or (abs(scale), scale) < (abs(best), best):
                    best = scale
        return best

    def literal_comparison(self) -> Expr:
        """``self >= 0`` as a comparison with a constant, the first coefficient made positive."""
        terms = self.direction()
        if self.sign() > 0:
            return make("le", const(-self.constant), to_expr(terms))
        return make("lt", to_expr(terms.times(-1)), const(self.constant + 1))


ZERO = LinearForm({}, 0)


@lru_cache(maxsize=1024, typed=True)
def number(value: int) -> LinearForm:
    """The constant form."""
    return LinearForm({}, value)


def atom_form(atom: Expr) -> LinearForm:
    """The form of one atom."""
    return LinearForm({atom: 1}, 0)


def to_expr(form: LinearForm) -> Expr:
    """The form as a term, the same for equal forms."""
    total: Expr | None = None
    # positive terms first, large strides first: the way an address is written
    for atom, coefficient in sorted(form.terms.items(), key=lambda item: (item[1] < 0, -abs(item[1]), item[0].key)):
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


def combination(parts: Iterable[tuple[LinearForm, int]], constant: int) -> LinearForm:
    """The sum of multiples of forms, each with its coefficient, and a constant."""
    terms: dict[Expr, int] = {}
    for form, scale in parts:
        constant += scale * form.constant
        for atom, coefficient in form.terms.items():
            terms[atom] = terms.get(atom, 0) + scale * coefficient
    return LinearForm({atom: k for atom, k in terms.items() if k}, constant)


def literal(value: LinearForm | Expr) -> int | None:
    """The number that a value is; ``None`` if it is not one."""
    return value.constant if isinstance(value, LinearForm) and not value.terms else None


def literal_divisor(atom: Expr) -> int:
    """The divisor of an atom ``A // n`` with a literal ``n``; 0 of other atoms."""
    return atom.args[1].vmin if atom.op == "floordiv" and atom.args[1].op == "const" else 0


#: The normal form of any term: of an integer its form, of a condition a term.
Value = LinearForm | Expr


def common_divisors(x: LinearForm, n: int) -> list[int]:
    """The greatest common divisors of ``n`` and one or more coefficients, the largest first.

    If there are more than the limit, only those of ``n`` and a single coefficient.
    """
    found: set[int] = set()
    for coefficient in x.terms.values():
        found |= {gcd(coefficient, f) for f in [*found, n]}
        if len(found) > LIMITS.common_divisors:
            return sorted({gcd(coefficient, n) for coefficient in x.terms.values()}, reverse=True)
    return sorted(found, reverse=True)


def is_affine(value: Value) -> bool:
    """Whether a value is a sum of multiples of variables."""
    return isinstance(value, LinearForm) and value.is_affine()


def value_order(value: Value) -> Order:
    """A key for a fixed order on values, in which no two tie."""
    return value.order() if isinstance(value, LinearForm) else (value.key, 0, [])


def as_term(value: Value) -> Expr:
    """A normal form as a term."""
    return to_expr(value) if isinstance(value, LinearForm) else value


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
    return chained("mul", atoms)


def chained(op: str, members: Iterable[Expr]) -> Expr:
    """The chain of an operator over terms, in the fixed order."""
    first, *others = sorted(members, key=lambda member: member.key)
    for other in others:
        first = make(op, first, other)
    return first


def product_form(parts: Sequence[Expr]) -> LinearForm:
    """The form of a product of atoms and of sums, which stand in products too long to be multiplied out.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> product_form([x, y]), product_form([x - y]), product_form([])
    (LinearForm(x*y), LinearForm(x - y), LinearForm(1))
    """
    return read(product(parts)) if parts else number(1)


def undistributed(x: LinearForm, y: LinearForm) -> tuple[int, Expr]:
    """A product of two forms that is not multiplied out, as a literal and a product of atoms and sums.

    The common factor of the coefficients of each form, and its sign, are in the literal.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> undistributed(LinearForm({x * y: -2}, 0), LinearForm({x: 1}, 1))
    (-2, Expr('(x + 1)*x*y'))
    """
    scale, parts = 1, []
    for form in (x, y):
        common = form.common_factor() * form.sign()
        scale *= common
        primitive = form.divided(common)
        atom = primitive.single()
        parts += [to_expr(primitive)] if atom is None else factors(atom)
    return scale, product(parts)


def without_factor(atom: Expr, factor: Expr) -> LinearForm:
    """The form of a product of atoms without one of its factors.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> without_factor(product([x, x, y]), x)
    LinearForm(x*y)
    """
    parts = factors(atom)
    if len(parts) > 1 and parts[0] is factor and all(a is b or a.key > b.key for a, b in pairwise(parts)):
        # without its last factor a long product is there already
        return read(atom.args[0])
    parts.remove(factor)
    return product_form(parts)


def read(term: Expr) -> LinearForm:
    """A sum as it is written read as a form; no rewriting. The inverse of :func:`to_expr`."""
    terms: dict[Expr, int] = {}
    constant = 0
    stack = [(term, 1)]
    while stack:
        part, scale = stack.pop()
        op = part.op
        if op == "const":
            constant += scale * part.vmin
        elif op == "add":
            stack += [(part.args[0], scale), (part.args[1], scale)]
        elif op == "sub":
            stack += [(part.args[0], scale), (part.args[1], -scale)]
        elif op == "mul" and part.args[1].op == "const":
            stack.append((part.args[0], scale * part.args[1].vmin))
        elif op == "neg":
            # no normal form has it
            stack.append((part.args[0], -scale))
        else:
            terms[part] = terms.get(part, 0) + scale
    return LinearForm({atom: k for atom, k in terms.items() if k}, constant)


def has_quotient(term: Expr) -> bool:
    """Whether a floor division is below a term, or is it."""
    return any(part.op == "floordiv" for part in topological([term]))


def without_quotients(term: Expr, equations: Sequence[LinearForm]) -> Expr:
    """A term in normal form with sums in place of quotients, where ``equations``, forms that are zero, say so.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 99), var("y", 0, 99)
    >>> without_quotients((x + y) // 2 * 2 // 3, [read(x + y - (x + y) // 2 * 2)])
    Expr('(x + y)//3')
    """

    def plain(part: Expr) -> Expr:
        return part if part.is_bool else to_expr(_without_quotients(read(part), equations))

    def replace(part: Expr, args: tuple[Expr, ...]) -> Expr | None:
        # a sum is read as a whole, where it is an operand
        if not args or part.op in _FORM_OPERATORS:
            return None
        operands = [*map(plain, args)]
        if part.op in REDUCTIONS:
            # an index that the equations have is another one than that of its name in the body
            body, index = part.args[:2]
            others = [e for e in equations if index not in topological(e.terms)]
            if len(others) < len(equations):
                operands[0] = without_quotients(body, others)
        if part.op in SHIFTS:
            # bounds may no longer show that it can be a shift
            operands[1] = shift_amount(operands[1])
        if part.op in ("lt", "le", "eq", "ne") and not operands[0].is_bool:
            return _compared(part.op, read(operands[1]).plus(read(operands[0]), -1))
        if part.op == "where" and operands[0].op == "le":
            # the condition of a selection in normal form is never ``le``
            condition, yes, no = operands
            return make("where", make("lt", *condition.args[::-1]), no, yes)
        return make(part.op, *operands)

    return plain(*rebuild([term], replace))


def opposite(condition: Expr) -> Expr:
    """The complement of a condition; that of a junction is written with ``not``."""
    op, args = condition.op, condition.args
    if op == "bool":
        return FALSE if condition is TRUE else TRUE
    if op in _COMPLEMENT:
        return make(_COMPLEMENT[op], *(args[::-1] if op in ("lt", "le") else args))
    return args[0] if op == "not" else make("not", condition)


def _compared(op: str, form: LinearForm) -> Expr:
    """``0 < form``, ``0 <= form``, ``form == 0`` or ``form != 0``, as normal forms are written."""
    if not form.terms:
        return make(op, const(0), const(form.constant))
    if op in ("lt", "le"):
        return (form.shifted(-1) if op == "lt" else form).literal_comparison()
    form = form.times(form.sign())
    return make(op, to_expr(form.direction()), const(-form.constant))


def _without_quotients(form: LinearForm, equations: Sequence[LinearForm]) -> LinearForm:
    """``form`` less multiples of ``equations``, forms that are zero, which remove quotients from it."""
    for equation in equations:
        for atom, coefficient in equation.terms.items():
            if not _divides(atom) or _is_within(atom, equation):
                continue
            for term in [t for t in form.terms if t is atom or t.op == "mul"]:
                beside = without(factors(term), factors(atom))
                scale, uneven = divmod(form.terms.get(term, 0), coefficient)
                if beside is not None and scale and not uneven:
                    other = form.plus(_multiplied(equation, beside), -scale)
                    if _division_order(other) < _division_order(form):
                        form = other
    return form


def _multiplied(form: LinearForm, atoms: Sequence[Expr]) -> LinearForm:
    """A form times a product of atoms."""
    if not atoms:
        return form
    total = product_form(atoms).times(form.constant)
    for atom, coefficient in form.terms.items():
        total = total.plus(product_form([*factors(atom), *atoms]), coefficient)
    return total


def _is_within(atom: Expr, equation: LinearForm) -> bool:
    """Whether another atom of ``equation`` contains a quotient of ``atom``: to solve for it would not remove it."""
    quotients = {factor for factor in factors(atom) if factor.op == "floordiv"}
    below = topological([operand for other in equation.terms if other is not atom for operand in other.args])
    return not quotients.isdisjoint(below)


def _division_order(form: LinearForm) -> tuple[int, int]:
    """The number of divisions, then of terms; a quotient of two values needs no division."""
    return sum([_divides(a) and a.vmax - a.vmin > 1 for a in form.terms]), len(form.terms)


def _divides(atom: Expr) -> bool:
    """Whether an atom is a quotient, or a multiple of one."""
    return atom.op == "floordiv" or (atom.op == "mul" and any(factor.op == "floordiv" for factor in factors(atom)))


@dataclass(frozen=True, slots=True)
class Division:
    """``dividend = divisor*quotient + remainder``, the remainder in ``[0, most]``: one way to read a quotient."""

    dividend: LinearForm
    divisor: LinearForm
    remainder: LinearForm
    most: int


@dataclass(frozen=True, slots=True)
class Remainder:
    """``form = scale*(dividend % divisor) + rest``: one way to read a form with a ``quotient`` of the dividend."""

    quotient: Expr
    dividend: LinearForm
    divisor: int
    scale: int
    rest: LinearForm


@dataclass(frozen=True)
class EqualProducts:
    """The product of the ``parts`` is ``scale`` times that of the ``others``."""

    parts: list[Expr]
    others: list[Expr]
    scale: int


def without(atoms: list[Expr], removed: list[Expr]) -> list[Expr] | None:
    """``atoms`` less ``removed``, as multisets; ``None`` if some are missing."""
    left = list(atoms)
    for atom in removed:
        if atom not in left:
            return None
        left.remove(atom)
    return left


def without_one(atoms: Sequence[Expr], removed: Expr) -> list[Expr]:
    """``atoms`` less one of them, as multisets."""
    left = list(atoms)
    left.remove(removed)
    return left


def common_factors(products: list[list[Expr]]) -> list[Expr]:
    """The factors that all products of atoms have, as multisets."""
    return [*reduce(and_, map(Counter, products)).elements()]
