"""Known bits of a value, as in LLVM."""

from __future__ import annotations

from typing import NamedTuple, Self

from eqsat.lang.ops import is_finite


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
