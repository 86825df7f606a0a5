"""Programs of short sums of products by literals: shifts, additions and shared parts where these cost less.

``x*9`` is ``x*8 + x``, and ``x*2 + y*3`` is ``(x + y)*2 + y``. Where a product costs what an addition does, nothing
changes. This is multiple constant multiplication, of few terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import NamedTuple

from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import COST_MODELS, signed_digits
from eqsat.extract.graph import Node, sum_payload
from eqsat.extract.select import ProductPrices

#: The coefficients of a sum, in the order of its terms; 0 for a term that a part of it does not have.
Coefficients = tuple[int, ...]


class Program(NamedTuple):
    """How a sum is computed: ``scale`` times a part, or the sum of two parts.

    A part without a positive coefficient is subtracted. A single term with the coefficient 1 has no parts.
    """

    price: int
    parts: tuple[Coefficients, ...] = ()
    scale: int = 1


@dataclass
class LinearPrograms(dict[Coefficients, Program]):
    """The cheapest programs found, by coefficients of which some are positive."""

    prices: ProductPrices

    def __missing__(self, coefficients: Coefficients) -> Program:
        terms = [place for place, k in enumerate(coefficients) if k]
        scale = gcd(*coefficients)
        if len(terms) == 1:
            found = self._product(coefficients, terms[0], scale)
        else:
            ways = [self._added(*split) for split in _parted(coefficients, terms)]
            if scale > 1:
                rest = tuple([k // scale for k in coefficients])
                ways.append(Program(self.least(rest) + self.least((scale,)), (rest,), scale))
            else:
                ways += [self._added(*split) for split in _rounded(coefficients, terms)]
            price = min([program.price for program in ways])
            # of those with one price the one that subtracts less, whatever the order of the terms
            found = min([program for program in ways if program.price == price], key=_subtractions)
        self[coefficients] = found
        return found

    def least(self, coefficients: Coefficients) -> int:
        """What the cheapest program costs: that does not depend on the order of terms, nor on what has none."""
        return self[tuple(sorted([k for k in coefficients if k]))].price

    def _product(self, coefficients: Coefficients, place: int, by: int) -> Program:
        """The product as it is, as a shift of one by an odd literal, or by its last digit."""
        if by == 1:
            return Program(0)
        direct = Program(self.prices[by], (_unit(coefficients, place, 1),), by)
        shift = by & -by
        # each but the first of them is added
        digits = signed_digits(by).bit_count()
        if digits == 1 or (digits - 1) * self.prices.addition >= direct.price:
            return direct
        if shift > 1:
            rest = _unit(coefficients, place, by // shift)
            found = Program(self.least(rest) + self.prices[shift], (rest,), shift)
        else:
            split = [(_unit(coefficients, place, by - digit), _unit(coefficients, place, digit)) for digit in (1, -1)]
            found = min([self._added(*parts) for parts in split], key=lambda program: program.price)
        return min(direct, found, key=lambda program: program.price)

    def _added(self, one: Coefficients, other: Coefficients) -> Program:
        if max(one) <= 0:
            one, other = other, one
        subtracted = tuple([-k for k in other]) if max(other) <= 0 else other
        return Program(self.least(one) + self.least(subtracted) + self.prices.addition, (one, other))

    @provides("linear programs", otherwise=lambda self, coefficients: False)
    def is_short(self, coefficients: Coefficients) -> bool:
        """Whether a program is looked for: of few terms, some coefficient no power of two, none of them long."""
        sizes = [abs(k) for k in coefficients]
        return len(sizes) <= LIMITS.program_terms and max(sizes) < 2**16 and any(k & (k - 1) for k in sizes)

    def price(self, node: Node) -> int | None:
        """What a sum costs by its program; ``None`` if none is looked for."""
        if node[0] != "sum":
            return None
        constant, coefficients = sum_payload(node[1])
        beside = int(bool(constant))
        if len(coefficients) > LIMITS.program_terms:
            # of a longer sum that of its products, to which the others are added
            products = tuple(k for k in coefficients if abs(k) > 1)
            beside += len(coefficients) - len(products)
            coefficients = products
        if not coefficients or max(coefficients) <= 0 or not self.is_short(coefficients):
            return None
        return self.least(coefficients) + beside * self.prices.addition


def _subtractions(program: Program) -> int:
    return sum([k < 0 for part in program.parts for k in part])


@lru_cache(maxsize=16)
def _kept(model: str) -> LinearPrograms:
    """The programs by the prices of a shipped model, kept from one run to the next."""
    return LinearPrograms(ProductPrices(COST_MODELS[model]))


def programs_by(prices: ProductPrices) -> LinearPrograms:
    """The programs by these prices: those of a model of :data:`COST_MODELS` are found once for a process.

    >>> programs_by(ProductPrices(COST_MODELS["latency"]))[(9,)].price
    2
    """
    name = next((name for name, model in COST_MODELS.items() if model is prices.model), None)
    if name is None:
        return LinearPrograms(prices)
    kept = _kept(name)
    if len(kept) > LIMITS.kept_programs:
        kept.clear()
    return kept


def _unit(coefficients: Coefficients, place: int, k: int) -> Coefficients:
    return (0,) * place + (k,) + (0,) * (len(coefficients) - place - 1)


def _parted(coefficients: Coefficients, terms: list[int]) -> Iterator[tuple[Coefficients, Coefficients]]:
    """A sum of several terms as two sums that share no term."""
    others = terms[1:]
    for apart in (set(some) for size in range(1, len(terms)) for some in combinations(others, size)):
        rest = tuple([0 if place in apart else k for place, k in enumerate(coefficients)])
        yield rest, tuple([k if place in apart else 0 for place, k in enumerate(coefficients)])


def _rounded(coefficients: Coefficients, terms: list[int]) -> Iterator[tuple[Coefficients, Coefficients]]:
    """A sum as multiples of something and what is left."""
    # x*2 + y*3 = (x + y)*2 + y: multiples of what divides the others
    for place in terms:
        k = coefficients[place]
        divisor = gcd(*[other for at, other in enumerate(coefficients) if at != place])
        if divisor > 1:
            for multiple in (k // divisor * divisor, k // divisor * divisor + divisor):
                if multiple and abs(k - multiple) < abs(k):
                    rounded = (*coefficients[:place], multiple, *coefficients[place + 1 :])
                    yield rounded, _unit(coefficients, place, k - multiple)
    # x*7 - y*9 = (x - y)*8 - (x + y): multiples of a power of two; of 2 there would be too many
    for shift in range(2, max(map(abs, coefficients)).bit_length() + 1):
        above = tuple([(k + (1 << shift >> 1)) >> shift << shift for k in coefficients])
        below = tuple([k - upper for k, upper in zip(coefficients, above, strict=True)])
        if max(map(abs, below)) == 1 and 0 < sum(map(abs, above)) < gcd(*above) * sum(map(abs, coefficients)):
            yield above, below
