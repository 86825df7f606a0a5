"""Normal forms of sums alone, for runs in which rules do everything else.

A sum is a form over atoms, as in :mod:`eqsat.theory.linear`, but every other operator makes an atom. Two terms have one
form only if they differ in the order and nesting of commutative and associative operators, in like terms, in literals,
or in what bounds decide. Everything else is left to the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, reduce
from math import gcd

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make, shift_amount
from eqsat.lang.ops import BITWISE, COMPARISONS, OPS, REDUCTIONS, SHIFTS, SUMS, Bounds
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import kept, provisional
from eqsat.theory.definedness import divides_outside_branches
from eqsat.theory.forms import LinearForm, chained, number, opposite, to_expr, undistributed
from eqsat.theory.linear import LinearArithmetic, operands_in

#: Commutative and associative operators, other than those of sums and products.
_CHAINS = BITWISE | {"min", "max"}
#: What has the same form here, if its operands have: sums, products by literals, and what is no operator on integers.
_AS_LINEAR = SUMS | {"mul", "var", "load", "buffer"}
#: Operators whose values may be known modulo a number.
_ALIGNED = frozenset({"mul", "min", "max", "where", "mod", "floordiv", "shl"})


class StructuralArithmetic(LinearArithmetic):
    """Forms of terms under known facts, in which only sums are normalised.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 99), var("y", 0, 99)
    >>> StructuralArithmetic().simplify(y + x*2 + (x + 3) % 8 + y)
    Expr('x*2 + y*2 + (x + 3)%8')
    >>> StructuralArithmetic().simplify(x % 8 + x // 8 * 8)
    Expr('x//8*8 + x%8')
    """

    is_canonical = False

    # integers

    def _form(self, term: Expr) -> LinearForm:
        forms, op, args = self.forms, term.op, term.args
        if op in _AS_LINEAR or term.vmin == term.vmax or term.element:
            return super()._form(term)
        if op in _CHAINS:
            return self._chain(op, operands_in(forms, term))
        operands = [self.conditions[a] if a.is_bool else to_expr(forms[a]) for a in args]
        if op == "where" and operands[0] in (TRUE, FALSE):
            return forms[args[1 if operands[0] is TRUE else 2]]
        if op in REDUCTIONS:
            # an index with one value would become that literal
            operands[1] = args[1]
        elif op in SHIFTS:
            operands[1] = shift_amount(operands[1])
        return self._made(op, *operands)

    def _made(self, op: str, *operands: Expr) -> LinearForm:
        """The form of an operator on operands in normal form."""
        made = make(op, *operands)
        low, high = self.range(made)
        return number(low) if low == high else self.atom(made)

    def times(self, x: LinearForm, y: LinearForm) -> LinearForm:
        """The product of two forms: only literals are multiplied out."""
        if not x.terms or not y.terms:
            return y.times(x.constant) if not x.terms else x.times(y.constant)
        scale, monomial = undistributed(x, y)
        low, high = self.range(monomial)
        return number(low * scale) if low == high else LinearForm({monomial: scale}, 0)

    def _chain(self, op: str, operands: Iterable[LinearForm]) -> LinearForm:
        """The chain of ``op`` over operands in the fixed order, with the literals among them as one."""
        members = [m for form in operands for m in chain_members(to_expr(form), op)]
        literals = [m for m in members if m.op == "const"]
        others = sorted([m for m in members if m.op != "const"], key=lambda m: m.key)
        if op != "bitxor":
            others = list(dict.fromkeys(others))
        if literals:
            known = reduce(OPS[op].bounds, [(literal.vmin, literal.vmin) for literal in literals])
            others.append(const(known[0]))
        *first, last = others
        return self._made(op, reduce(partial(make, op), first), last) if first else self.inner(last)

    def quotient(self, x: LinearForm, divisor: LinearForm) -> LinearForm:
        return self._made("floordiv", to_expr(x), to_expr(divisor))

    def quotient_by(self, x: LinearForm, n: int) -> LinearForm:
        return self.quotient(x, number(n))

    def extreme(self, op: str, operands: Iterable[LinearForm]) -> LinearForm:
        return self._chain(op, operands)

    def selection(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
        return self._made("where", condition, to_expr(x), to_expr(y))

    # conditions

    def _of_operands(self, term: Expr) -> Expr:
        op, args = term.op, term.args
        if op in COMPARISONS and not args[0].is_bool:
            return self._comparison(op, to_expr(self.forms[args[0]]), to_expr(self.forms[args[1]]))
        return super()._of_operands(term)

    def _choice(self, term: Expr) -> Expr:
        op, parts = term.op, [self.conditions[a] for a in term.args]
        if op in ("min", "max"):
            return self.junction("and" if op == "min" else "or", parts)
        if op == "where":
            if parts[0] in (TRUE, FALSE):
                return parts[1] if parts[0] is TRUE else parts[2]
            return make("where", *parts)
        x, y = sorted(parts, key=lambda part: part.key)
        for known, other in ((x, y), (y, x)):
            if known in (TRUE, FALSE):
                return other if (known is TRUE) == (op == "eq") else self.negate(other)
        return make(op, x, y)

    def _comparison(self, op: str, x: Expr, y: Expr) -> Expr:
        """A comparison of forms, decided if bounds decide it."""
        low, high = self.bounds(self.inner(y).plus(self.inner(x), -1))
        if op in ("eq", "ne"):
            if not low <= 0 <= high or low == high:
                return TRUE if (low == high == 0) == (op == "eq") else FALSE
            x, y = (y, x) if y.key < x.key else (x, y)
        else:
            least = 1 if op == "lt" else 0
            if low >= least or high < least:
                return TRUE if low >= least else FALSE
        return make(op, x, y)

    def negate(self, condition: Expr) -> Expr:
        return opposite(condition)

    def _join(self, op: str, members: Iterable[Expr], unit: Expr, zero: Expr) -> Expr:
        return chained(op, members)

    def at_least_zero(self, form: LinearForm) -> Expr:
        result = self._comparison("le", to_expr(number(0)), to_expr(form))
        return self.known.get(result, result)

    def equal_zero(self, form: LinearForm) -> Expr:
        result = self._comparison("eq", to_expr(form), to_expr(number(0)))
        return self.known.get(result, result)

    # what is known

    def may_be_undefined(self, term: Expr) -> bool:
        # it does not know more in a branch
        return divides_outside_branches(term)

    def _assume_literal(self, literal: Expr) -> None:
        super()._assume_literal(literal)
        if literal.op == "not" and literal.args[0].op == "or":
            for member in chain_members(literal.args[0], "or"):
                self._assume_normal(self.negate(member))

    def _assume_equal(self, form: LinearForm) -> None:
        super()._assume_equal(form)
        for atom, scale in form.terms.items() if len(form.terms) == 1 else ():
            if atom.op == "mod" and abs(scale) == 1 and atom.args[1].op == "const":
                dividend, n = self.inner(atom.args[0]), atom.args[1].vmin
                known = dividend.direction()
                self.residues[to_expr(known)] = n, (-form.constant * scale - dividend.constant) % n
                self.answers.clear()

    def alignment(self, form: LinearForm) -> tuple[int, int]:
        modulus, rest = 0, form.constant
        for atom, k in form.terms.items():
            of_atom, left = self._aligned(atom)
            modulus, rest = gcd(modulus, k * of_atom), rest + k * left
        known = self.residues.get(to_expr(form)) if self.residues else None
        if known is not None and known[0] > modulus > 0:
            return known
        return modulus, rest % modulus if modulus else rest

    @kept("answers")
    def _aligned(self, atom: Expr) -> tuple[int, int]:
        op, args = atom.op, atom.args
        if atom in self.residues or op not in _ALIGNED:
            return self.residues.get(atom, (1, 0))
        # the first operand is r modulo m, the second s modulo n; the modulus of a literal is 0
        (m, r), (n, s) = [self.alignment(self.inner(a)) for a in args[-2:]]
        if op == "mul":
            return gcd(m * n, m * s, n * r), r * s
        if op in ("min", "max", "where"):
            return gcd(m, n, r - s), r
        if n or not s:
            return 1, 0
        if op == "shl":
            return m << s, r << s
        if op == "mod":
            return gcd(m, s), r
        return (m // s, r // s) if s > 0 and m % s == 0 else (1, 0)

    def _range(self, atom: Expr) -> Bounds:
        low, high = atom.vmin, atom.vmax
        op = OPS.get(atom.op)
        if op is not None and atom.args and self.variables.of(atom) & self.touched:
            # an equation may bound an operand by this atom: a recursive call gets the plain range
            with provisional(self._ranges, atom, (low, high)):
                ends = op.bounds(*[(a.vmin, a.vmax) if a.is_bool else self.bounds(self.inner(a)) for a in atom.args])
            low, high = max(low, ends[0]), min(high, ends[1])
        known_low, known_high = self.narrowed.get(atom, (low, high))
        return max(low, known_low), min(high, known_high)
