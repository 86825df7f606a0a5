"""Bit operators on forms: ``&``, ``|`` and ``^`` as linear arithmetic where bits are known, else as atoms.

Numbers are in two's complement with infinitely many bits; of a number that may be negative, only low bits are known. An
operator is split into a range of places where both operands may have ones, and the places outside. Outside, ``|`` and
``^`` are sums, and ``&`` is zero. Inside, the operator is an atom over the digits of both operands, ``x // 2**s %
2**n``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple, Self

from eqsat.lang.expr import Expr, const, make
from eqsat.lang.ops import BITWISE, OPS, is_finite
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Arithmetic, kept
from eqsat.theory.forms import ZERO, LinearForm, chained, number, to_expr
from eqsat.theory.limits import LIMITS

# known bits, as in LLVM


class KnownBits(NamedTuple):
    """The bits of a value that are ones, and those that may be ones, as numbers in two's complement.

    >>> KnownBits.within(8, 11), KnownBits.within(-3, 5)
    (KnownBits(ones=8, possible=11), KnownBits(ones=0, possible=-1))
    """

    ones: int
    possible: int

    @classmethod
    def within(cls, low: int, high: int) -> Self:
        """The bits that the bounds of a value tell: the leading ones on which both agree."""
        if not is_finite(low, high):
            return cls(0, -1)
        free = (low ^ high).bit_length()
        return cls(low >> free << free, low | ((1 << free) - 1)) if (low ^ high) >= 0 else cls(0, -1)

    def meet(self, other: KnownBits) -> KnownBits:
        """Both pieces of knowledge about one value together."""
        return KnownBits(self.ones | other.ones, self.possible & other.possible)

    def shifted(self, places: int) -> KnownBits:
        """The bits of ``x * 2**places``, of which ``places`` may be negative: then it is rounded down."""
        if places < 0:
            return KnownBits(self.ones >> -places, self.possible >> -places)
        return KnownBits(self.ones << places, self.possible << places)

    def plus(self, other: KnownBits) -> KnownBits:
        """The bits of a sum: one is known where those of both addends and the carry are.

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


@kept("answers")
def known_bits(theory: Arithmetic, form: LinearForm) -> KnownBits:
    """The known bits of a form: by its bounds, by its common factor, and by the known bits of its terms."""
    found = KnownBits.within(*theory.bounds(form))
    if form.terms:
        # the lowest bits are those of the constant
        same = form.content()
        low = (same & -same) - 1
        found = found.meet(KnownBits(form.constant & low, form.constant | ~low))
        if len(form.terms) <= LIMITS.bit_terms and not theory.late_or_raise():
            found = found.meet(_bits_of_sum(theory, theory.in_digits(form)[0]))
    return found


def _bits_of_sum(theory: Arithmetic, form: LinearForm) -> KnownBits:
    total = KnownBits(form.constant, form.constant)
    for atom, coefficient in form.terms.items():
        if coefficient < 0:
            return KnownBits(0, -1)
        places = _lowest(coefficient)
        odd = coefficient >> places
        part = _bits_of_atom(theory, atom)
        if odd != 1:
            low, high = theory.range(atom)
            part = KnownBits.within(odd * low, odd * high)
        total = total.plus(part.shifted(places))
    return total


def _bits_of_atom(theory: Arithmetic, atom: Expr) -> KnownBits:
    found = KnownBits.within(*theory.range(atom))
    if atom.op in BITWISE and theory.nested_bits < LIMITS.nested_bits:
        theory.nested_bits += 1
        try:
            members = [known_bits(theory, theory.inner(member)) for member in chain_members(atom, atom.op)]
        finally:
            theory.nested_bits -= 1
        return found.meet(reduce(lambda x, y: x.joined(atom.op, y), members))
    n = atom.args[1].vmin if atom.op in ("floordiv", "mod") and atom.args[1].op == "const" else 0
    if theory.nested_bits < LIMITS.nested_bits and n > 0 and n & (n - 1) == 0:
        inside = known_bits(theory, theory.inner(atom.args[0]))
        if atom.op == "floordiv":
            return found.meet(inside.shifted(1 - n.bit_length()))
        return found.meet(KnownBits(inside.ones & (n - 1), inside.possible & (n - 1)))
    return found


# normal forms


def bitwise(theory: Arithmetic, op: str, x: LinearForm, y: LinearForm) -> LinearForm:
    """The normal form of the bit operator ``op`` on two forms."""
    if x == y:
        return ZERO if op == "bitxor" else x
    if not x.terms or (y.terms and _inverse(x) is not None):
        x, y = y, x
    if not x.terms:
        return number(int(OPS[op].evaluate(x.constant, y.constant)))
    one, other = known_bits(theory, x), known_bits(theory, y)
    if op != "bitxor":
        # an operand that decides the other, or is the result because the other changes nothing in it
        for form, bits, by in ((x, one, other), (y, other, one)):
            if (bits.possible & ~by.ones if op == "bitand" else by.possible & ~bits.ones) == 0:
                return form
    if (inverse := _inverse(y)) is not None:
        return _with_inverse(theory, op, x, inverse)
    if not y.terms and (found := _with_literal(theory, op, x, y.constant, one.possible)) is not None:
        return found
    return _split(theory, op, x, y, one.possible, other.possible)


def differing(theory: Arithmetic, form: LinearForm) -> LinearForm:
    """A form that is zero iff ``form`` is: ``x - y`` for a multiple of ``x ^ y``."""
    atom, _ = form.multiple() or (None, 0)
    if atom is None or atom.op != "bitxor":
        return form
    x, y = map(theory.inner, atom.args)
    return x.plus(y, -1)


def _with_inverse(theory: Arithmetic, op: str, x: LinearForm, y: LinearForm) -> LinearForm:
    """A bit operator of ``x`` and ``-1 - y``, the bitwise complement of ``y``."""
    if op == "bitxor":
        return bitwise(theory, op, x, y).times(-1).shifted(-1)
    if (inverse := _inverse(x)) is not None:
        # De Morgan's law
        other = "bitor" if op == "bitand" else "bitand"
        return bitwise(theory, other, inverse, y).times(-1).shifted(-1)
    common = bitwise(theory, "bitand", x, y)
    return x.plus(common, -1) if op == "bitand" else common.plus(y, -1).shifted(-1)


def _with_literal(theory: Arithmetic, op: str, x: LinearForm, literal: int, possible: int) -> LinearForm | None:
    """A bit operator with a literal that is not negative as linear arithmetic; ``None`` if it takes an atom."""
    if op == "bitor":
        return x.plus(bitwise(theory, "bitand", x, number(literal)), -1).shifted(literal)
    mask = literal & possible
    if op == "bitxor" and (possible < 0 or possible.bit_length() > mask.bit_length() > 0):
        # there may be ones above the mask, so that the inverted bits are not the leading ones
        return None
    if not mask:
        return ZERO if op == "bitand" else x.shifted(literal)
    start, end = _lowest(mask), mask.bit_length()
    if ((1 << end) - (1 << start)) & ~mask & possible:
        # the mask has gaps where x may have ones
        return _masked(theory, op, x, literal)
    run = digits_of(theory, x, start, end).times(1 << start)
    return run if op == "bitand" else x.plus(run, -2).shifted(literal)


def _masked(theory: Arithmetic, op: str, x: LinearForm, mask: int) -> LinearForm | None:
    """``x`` and a mask, without the terms of ``x`` whose bits the mask drops or keeps; ``None`` if there are none.

    They are terms whose bits the others cannot have, as those of a packed word: a sum with them has no carries.
    """
    form, digits = theory.in_digits(x)
    if op != "bitand" or not 1 < len(form.terms) + bool(form.constant) <= LIMITS.bit_terms:
        return None
    kept, rest = ZERO, x
    parts = [digits.get(atom, LinearForm({atom: 1}, 0)).times(scale) for atom, scale in form.terms.items()]
    for part in (*parts, number(form.constant)):
        others = rest.plus(part, -1)
        bits, further = known_bits(theory, part).possible, known_bits(theory, others).possible
        if min(bits, further) < 0 or bits & further:
            continue
        if not bits & ~mask:
            kept, rest = kept.plus(part), others
        elif not bits & mask:
            rest = others
    return None if rest == x else bitwise(theory, op, rest, number(mask)).plus(kept)


def digits_of(theory: Arithmetic, x: LinearForm, start: int, end: int | None) -> LinearForm:
    """``x // 2**start % 2**(end - start)``; without an end, the quotient."""
    quotient = theory.quotient_by(x, 1 << start)
    return quotient if end is None else theory.remainder(quotient, number(1 << (end - start)))


def _split(theory: Arithmetic, op: str, x: LinearForm, y: LinearForm, of_x: int, of_y: int) -> LinearForm:
    """A bit operator of the digits in which both operands may have ones; elsewhere it is a sum, or zero.

    ``of_x`` and ``of_y`` are the bits that the operands may have.
    """
    separate = ZERO if op == "bitand" else x.plus(y)
    if not (both := of_x & of_y):
        return separate
    start = _lowest(of_x) if not y.terms and op == "bitxor" else _lowest(both)
    end = both.bit_length() if both > 0 else None
    digits = digits_of(theory, x, start, end), digits_of(theory, y, start, end)
    joined = _joined(theory, op, digits, None if end is None else (1 << (end - start)) - 1)
    if op != "bitand":
        joined = joined.plus(digits[0], -1).plus(digits[1], -1)
    return separate.plus(joined, 1 << start)


def _joined(theory: Arithmetic, op: str, operands: Iterable[LinearForm], most: int | None) -> LinearForm:
    """A bit operator of operands in ``[0, most]``, or any if ``most`` is ``None``, as an atom with nested ones flat."""
    stack = [*operands]
    if sum([len(chain_members(to_expr(form), op)) for form in stack]) > LIMITS.bit_operands:
        return theory.atom(chained(op, map(to_expr, stack)))
    counts, literal = _operands(theory, op, stack)
    if not (members := [form for form, count in counts.items() if op != "bitxor" or count % 2]):
        return number(literal or 0)
    if op == "bitxor" and literal is not None:
        if literal == most or literal < 0:
            # a literal of all ones, or a negative one, inverts the rest
            kept = [number(~literal)] if literal < 0 else []
            return _joined(theory, op, members + kept, most).times(-1).shifted(max(literal, -1))
        literal = literal or None
    terms = sorted(map(to_expr, members), key=lambda term: term.key)
    if literal is not None:
        terms.append(const(literal))
    if len(terms) == 1:
        return theory.inner(terms[0])
    return theory.atom(reduce(lambda x, y: make(op, x, y), terms))


def _operands(theory: Arithmetic, op: str, stack: list[LinearForm]) -> tuple[Counter[LinearForm], int | None]:
    """The operands of nested operators, each with its number of occurrences, and the literals among them as one."""
    counts = Counter[LinearForm]()
    literals: list[int] = []
    while stack:
        form = stack.pop()
        single = form.single()
        if single is not None and single.op == op:
            stack += map(theory.inner, single.args)
        elif form.terms:
            counts[form] += 1
        else:
            literals.append(form.constant)
    return counts, reduce(lambda x, y: int(OPS[op].evaluate(x, y)), literals) if literals else None


def _inverse(form: LinearForm) -> LinearForm | None:
    """The form whose bits a form ``-1 - x``, or a negative literal, has inverted; ``None`` of others."""
    if form.terms:
        return form.times(-1).shifted(-1) if form.constant == -1 and form.sign() < 0 else None
    return number(~form.constant) if form.constant < 0 else None


def _lowest(bits: int) -> int:
    """The place of the lowest bit."""
    return (bits & -bits).bit_length() - 1
