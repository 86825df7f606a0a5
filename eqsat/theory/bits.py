"""Bit operators on forms: ``&``, ``|`` and ``^`` as linear arithmetic where bits are known, else as atoms.

Bits are those of two's complement, without end: the bits of a number that may be negative are known from some place
down only. An operator splits at the places from which, or up to which, at most one operand has a one: there ``|`` and
``^`` are sums, and ``&`` is zero. What is left between is an atom over the digits of both operands, ``x // 2**s %
2**n``, which linear arithmetic knows well.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple, Self

from eqsat.lang.expr import Expr, chain_members, make
from eqsat.lang.infinity import is_finite
from eqsat.lang.ops import BITWISE, OPS
from eqsat.theory.facts import Work
from eqsat.theory.forms import ZERO, LinearForm, number, to_expr
from eqsat.theory.limits import LIMITS
from eqsat.theory.quotients import Quotients


class KnownBits(NamedTuple):
    """What is known of the bits of a value: those that are ones, and those that may be; as numbers in two's complement.

    >>> KnownBits.within(8, 11), KnownBits.within(-3, 5)
    (KnownBits(ones=8, possible=11), KnownBits(ones=0, possible=-1))
    """

    ones: int
    possible: int

    @classmethod
    def within(cls, low: int, high: int) -> Self:
        """What the bounds of a value say: the leading bits that both have."""
        if not is_finite(low, high):
            return cls(0, -1)
        free = (low ^ high).bit_length()
        return cls(low >> free << free, low | ((1 << free) - 1)) if (low ^ high) >= 0 else cls(0, -1)

    def meet(self, other: KnownBits) -> KnownBits:
        """What is known of a value of which both are known."""
        return KnownBits(self.ones | other.ones, self.possible & other.possible)

    def shifted(self, places: int) -> KnownBits:
        """The bits of ``x * 2**places``, of which ``places`` may be negative: then it is rounded down."""
        if places < 0:
            return KnownBits(self.ones >> -places, self.possible >> -places)
        return KnownBits(self.ones << places, self.possible << places)

    def plus(self, other: KnownBits) -> KnownBits:
        """The bits of a sum: a bit is known where those of both and the carry are.

        The least and the greatest carries are those of the sums of all ones and of all that may be.

        >>> KnownBits(8, 8).plus(KnownBits(0, 3)), KnownBits(0, 3).plus(KnownBits(0, 4))
        (KnownBits(ones=8, possible=11), KnownBits(ones=0, possible=7))
        """
        least, most = self.ones + other.ones, self.possible + other.possible
        no_carry = ~(most ^ self.possible ^ other.possible)
        carry = least ^ self.ones ^ other.ones
        known = ~(self.ones ^ self.possible) & ~(other.ones ^ other.possible) & (no_carry | carry)
        return KnownBits(least & known, least & known | ~known)

    def joined(self, op: str, other: KnownBits) -> KnownBits:
        """The bits of a bit operator of two values."""
        if op == "bitand":
            return KnownBits(self.ones & other.ones, self.possible & other.possible)
        if op == "bitor":
            return KnownBits(self.ones | other.ones, self.possible | other.possible)
        one, zero = self.ones & ~other.possible | other.ones & ~self.possible, self.ones & other.ones
        return KnownBits(one, (self.possible | other.possible) & ~zero)


class Bits(Quotients):
    """Bit operators of forms in normal form."""

    def __init__(self, facts: Iterable[Expr] = (), parent: Self | None = None, work: Work | None = None) -> None:
        self._known_bits: dict[LinearForm, KnownBits] = {}
        # how many bit operators, one in an operand of the next, are being looked into
        self._nesting = 0
        super().__init__(facts, parent, work)

    def _forget_forms(self) -> None:
        super()._forget_forms()
        self._known_bits.clear()

    # what is known of bits

    def known_bits(self, form: LinearForm) -> KnownBits:
        """What is known of the bits of a form: by its bounds, by what divides it, and by those of its addends."""
        found = self._known_bits.get(form)
        if found is None:
            found = KnownBits.within(*self.bounds(form))
            if form.terms:
                # the lowest bits are those of the constant
                same = form.content()
                low = (same & -same) - 1
                found = found.meet(KnownBits(form.constant & low, form.constant | ~low))
                if len(form.terms) <= LIMITS.bit_terms and not self.is_late():
                    found = found.meet(self._bits_of_sum(self.in_digits(form)[0]))
            self._known_bits[form] = found
        return found

    def _bits_of_sum(self, form: LinearForm) -> KnownBits:
        total = KnownBits(form.constant, form.constant)
        for atom, coefficient in form.terms.items():
            if coefficient < 0:
                return KnownBits(0, -1)
            places = (coefficient & -coefficient).bit_length() - 1
            odd = coefficient >> places
            part = self._bits_of_atom(atom)
            if odd != 1:
                low, high = self.range(atom)
                part = KnownBits.within(odd * low, odd * high)
            total = total.plus(part.shifted(places))
        return total

    def _bits_of_atom(self, atom: Expr) -> KnownBits:
        found = KnownBits.within(*self.range(atom))
        if atom.op in BITWISE and self._nesting < LIMITS.nested_bits:
            self._nesting += 1
            members = [self._bits_of_operand(member) for member in chain_members(atom, atom.op)]
            self._nesting -= 1
            return found.meet(reduce(lambda x, y: x.joined(atom.op, y), members))
        if atom.op in ("floordiv", "mod") and self._nesting < LIMITS.nested_bits and atom.args[1].op == "const":
            n = atom.args[1].vmin
            if n > 0 and n & (n - 1) == 0:
                inside = self._bits_of_operand(atom.args[0])
                if atom.op == "floordiv":
                    return found.meet(inside.shifted(1 - n.bit_length()))
                return found.meet(KnownBits(inside.ones & (n - 1), inside.possible & (n - 1)))
        return found

    def _bits_of_operand(self, term: Expr) -> KnownBits:
        return self.known_bits(self.inner(term))

    # normal forms

    def bitwise(self, op: str, x: LinearForm, y: LinearForm) -> LinearForm:
        """The normal form of the bit operator ``op`` on two forms."""
        if x == y:
            return ZERO if op == "bitxor" else x
        if not x.terms or (y.terms and _inverse(x) is not None):
            x, y = y, x
        if not x.terms:
            return number(int(OPS[op].evaluate(x.constant, y.constant)))
        one, other = self.known_bits(x), self.known_bits(y)
        if op != "bitxor":
            # what decides or what changes nothing
            for form, bits, by in ((x, one, other), (y, other, one)):
                if (bits.possible & ~by.ones if op == "bitand" else by.possible & ~bits.ones) == 0:
                    return form
        inverse = _inverse(y)
        if inverse is not None:
            return self._with_inverse(op, x, inverse)
        if not y.terms:
            found = self._with_literal(op, x, y.constant, one.possible)
            if found is not None:
                return found
        return self._split(op, x, y, one.possible, other.possible)

    def differing(self, form: LinearForm) -> LinearForm:
        """A form that is zero where ``form`` is: ``x - y`` for a multiple of ``x ^ y``."""
        atoms = [] if form.constant or len(form.terms) != 1 else [*form.terms]
        if not atoms or atoms[0].op != "bitxor":
            return form
        x, y = map(self.inner, atoms[0].args)
        return x.plus(y, -1)

    def _with_inverse(self, op: str, x: LinearForm, y: LinearForm) -> LinearForm:
        """A bit operator of ``x`` and ``-1 - y``, which has the bits of ``y`` inverted."""
        if op == "bitxor":
            return self.bitwise(op, x, y).times(-1).shifted(-1)
        inverse = _inverse(x)
        if inverse is not None:
            # of two inverted operands the other operator
            other = "bitor" if op == "bitand" else "bitand"
            return self.bitwise(other, inverse, y).times(-1).shifted(-1)
        common = self.bitwise("bitand", x, y)
        return x.plus(common, -1) if op == "bitand" else common.plus(y, -1).shifted(-1)

    def _with_literal(self, op: str, x: LinearForm, literal: int, possible: int) -> LinearForm | None:
        """A bit operator with a literal that is not negative as linear arithmetic; ``None`` if it takes an atom."""
        if op == "bitor":
            return x.plus(self.bitwise("bitand", x, number(literal)), -1).shifted(literal)
        mask = literal & possible
        if op == "bitxor" and (possible < 0 or possible.bit_length() > mask.bit_length() > 0):
            # what is inverted would have others above it, which carry
            return None
        if not mask:
            return ZERO if op == "bitand" else x.shifted(literal)
        start, end = (mask & -mask).bit_length() - 1, mask.bit_length()
        if ((1 << end) - (1 << start)) & ~mask & possible:
            # a mask with gaps where there are bits
            return None
        run = self.digits(x, start, end).times(1 << start)
        return run if op == "bitand" else x.plus(run, -2).shifted(literal)

    def digits(self, x: LinearForm, start: int, end: int | None) -> LinearForm:
        """``x // 2**start % 2**(end - start)``; without an end, the quotient."""
        quotient = self.quotient_by(x, 1 << start)
        return quotient if end is None else self.remainder(quotient, number(1 << (end - start)))

    def _split(self, op: str, x: LinearForm, y: LinearForm, one: int, other: int) -> LinearForm:
        """A bit operator of the digits in which both operands may have ones; elsewhere it is a sum, or zero."""
        separate = ZERO if op == "bitand" else x.plus(y)
        if not one & other:
            return separate
        start, end = self._places(op, x, y, one, other)
        digits = self.digits(x, start, end), self.digits(y, start, end)
        joined = self._joined(op, digits, None if end is None else (1 << (end - start)) - 1)
        if op != "bitand":
            joined = joined.plus(digits[0], -1).plus(digits[1], -1)
        return separate.plus(joined, 1 << start)

    def _places(self, op: str, x: LinearForm, y: LinearForm, one: int, other: int) -> tuple[int, int | None]:
        """From where, and up to where, an operator acts on both operands; not within atoms of the same operator."""
        both = one & other
        start = _lowest(one) if not y.terms and op == "bitxor" else _lowest(both)
        end = both.bit_length() if both > 0 else None
        edges = self._edges(op, x, y)
        if edges:
            starts = [start, *sorted([place for place in edges if place < start], reverse=True)]
            start = next((place for place in starts if self._is_whole(x, y, place, None)), 0)
        if edges and end is not None:
            ends = [end, *sorted([place for place in edges if place > end])]
            end = next((place for place in ends if self._is_whole(x, y, start, place)), None)
        return start, end

    def _edges(self, op: str, x: LinearForm, y: LinearForm) -> set[int]:
        """The places at which atoms of an operator in two forms begin and end."""
        found: set[int] = set()
        for form in (x, y):
            for atom, coefficient in form.terms.items() if len(form.terms) <= LIMITS.bit_terms else ():
                if atom.op == op:
                    place, (low, high) = _lowest(coefficient), self.range(atom)
                    found |= {place, place + high.bit_length()} if low >= 0 and is_finite(high) else {place}
        return found

    def _is_whole(self, x: LinearForm, y: LinearForm, start: int, end: int | None) -> bool:
        """Whether the digits of two forms are sums of what these are sums of."""
        return all(self.digits(form, start, end).terms.keys() <= form.terms.keys() for form in (x, y))

    def _joined(self, op: str, operands: Iterable[LinearForm], most: int | None) -> LinearForm:
        """A bit operator of operands that share their bits, up to ``most``, as an atom; nested ones are one."""
        counts: dict[LinearForm, int] = {}
        literal: int | None = None
        stack = [*operands]
        if sum([len(chain_members(to_expr(form), op)) for form in stack]) > LIMITS.bit_operands:
            return self.atom(reduce(lambda x, y: make(op, x, y), sorted(map(to_expr, stack), key=lambda t: t.key)))
        while stack:
            form = stack.pop()
            single = form.single()
            inverse = self._inverse_within(form, most) if op == "bitxor" and form.terms else None
            if single is not None and single.op == op:
                stack += map(self.inner, single.args)
            elif inverse is not None:
                stack += [inverse, number(-1 if most is None else most)]
            elif form.terms:
                counts[form] = counts.get(form, 0) + 1
            elif literal is None:
                literal = form.constant
            else:
                literal = int(OPS[op].evaluate(literal, form.constant))
        members = [form for form, count in counts.items() if op != "bitxor" or count % 2]
        if not members:
            return number(literal or 0)
        if op == "bitxor" and literal is not None:
            if literal == most or literal < 0:
                # all bits inverted, or all without end
                kept = [number(~literal)] if literal < 0 else []
                return self._joined(op, members + kept, most).times(-1).shifted(max(literal, -1))
            literal = literal or None
        terms = sorted(map(to_expr, members), key=lambda term: term.key)
        if literal is not None:
            terms.append(to_expr(number(literal)))
        if len(terms) == 1:
            return self.inner(terms[0])
        return self.atom(reduce(lambda x, y: make(op, x, y), terms))

    def _inverse_within(self, form: LinearForm, most: int | None) -> LinearForm | None:
        """What a form has the bits inverted of, up to ``most``, or all."""
        if most is None:
            return _inverse(form)
        if form.constant == most and list(form.terms.values()) == [-1]:
            inverse = form.times(-1).shifted(most)
            low, high = self.bounds(inverse)
            return inverse if low >= 0 and high <= most else None
        return None


def _inverse(form: LinearForm) -> LinearForm | None:
    """What a form, or a negative literal, has all bits inverted of."""
    if form.terms:
        return form.times(-1).shifted(-1) if form.constant == -1 and form.sign() < 0 else None
    return number(~form.constant) if form.constant < 0 else None


def _lowest(bits: int) -> int:
    """The place of the lowest bit."""
    return (bits & -bits).bit_length() - 1
