"""Shared partial sums: partial sums and partial conditions that several chosen terms can use.

Extraction chooses n-ary sums, and chains of ``and`` and ``or``, one by one. Here they are bracketed together, so that
what occurs in several is computed once; the new brackets are added to the graph and chosen.

A short sum of products by literals is also bracketed by itself (:mod:`eqsat.alternatives.linear_programs`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from heapq import heapify, heappop, heappush
from itertools import chain
from math import gcd
from typing import NamedTuple, cast

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.linear_programs import Coefficients, LinearPrograms
from eqsat.alternatives.plain import PlainClasses
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import width
from eqsat.extract.graph import Node, reached, sum_of, sum_terms
from eqsat.extract.select import Choice, ProductPrices, reachable, reaches
from eqsat.lang.expr import Expr, make
from eqsat.lang.ops import DIVISIONS, linear_bounds
from eqsat.theory.forms import LinearForm, combination, number

#: A sum without a constant: its classes with their coefficients, in order.
Key = tuple[tuple[int, int], ...]
#: Two terms without their common factor: a class and its coefficient, then another and its.
Pair = tuple[int, int, int, int]


#: The classes of a graph by their values; they gain the brackets.
type Classes = CanonicalGraph | PlainClasses


@provides("partial sums", otherwise=lambda classes, choice, programs: choice)
def share_sums(classes: Classes, choice: Choice, programs: LinearPrograms) -> Choice:
    """Re-bracket the chosen sums so that they share partial sums; the new nodes are added to the graph.

    Greedy pair extraction, as for multiple constant multiplication (Paar 1997, Hosangadi et al. 2006): the pair of
    terms, up to a common factor, that saves most over all sums becomes a partial sum of its own; until the time is up.

    ``choice`` has what the roots need, operands before users; with the new brackets in place it may cost more.
    ``programs`` say how short sums are computed, by the prices of products; they gain those that are looked for.
    """
    if not (sums := _chosen_sums(choice, programs.prices)):
        return choice
    new_choice = dict(choice)
    pairing = _Pairing(classes, programs, new_choice)
    bodies = {of.key: of.body for of in sums}
    # a body that is only ever subtracted is built the other way round
    signs = dict.fromkeys(bodies, -1) | {of.key: 1 for of in sums if of.scale > 0}
    divided = _divided(choice, sums)
    pairing.products.update([(of.key[0][0], abs(of.scale)) for of in sums if len(of.key) == 1])
    pairing.run([_multiplied(body, signs[key]) for key, body in bodies.items()], [key in divided for key in bodies])
    built: dict[Key, tuple[int, int]] = {}
    for key, left in zip(bodies, pairing.sums, strict=True):
        # nor is what is left of it negated before it is subtracted
        sign = -1 if all(k < 0 for k in left.values()) else 1
        pairing.keeps_sign = key in divided
        built[key] = pairing.chain(_multiplied(left, sign)), signs[key] * sign
    for of in sums:
        body, sign = built[of.key]
        pairing.keeps_sign = of.key in divided
        pairing.finish(of.c, body, of.scale * sign, of.constant)
    return choice if pairing.has_lost else new_choice


class _Sum(NamedTuple):
    """A chosen sum: the class ``c`` is ``scale`` times a body, which others may have too, and a constant."""

    c: int
    constant: int
    scale: int
    body: dict[int, int]
    key: Key


def _chosen_sums(choice: Choice, prices: ProductPrices) -> list[_Sum]:
    """The sums that are chosen, and the products by literals, in the order of the choice."""
    chosen: dict[int, tuple[int, dict[int, int]]] = {}
    for c, node in choice.items():
        op, _, args = node
        if op == "sum":
            chosen[c] = _without_negations(choice, *sum_terms(node))
        elif op == "mul":
            # the literal of the input may be either operand
            factor, by = args if choice[args[1]][0] == "const" else args[::-1]
            if choice[by][0] == "const" and choice[by][1]:
                chosen[c] = 0, {factor: cast(int, choice[by][1])}
    bodies = _bodies([terms for _, terms in chosen.values()], prices)
    return [
        _Sum(c, constant, scale, body, _key(body))
        for (c, (constant, _)), (body, scale) in zip(chosen.items(), bodies, strict=True)
    ]


def _divided(choice: Choice, sums: Iterable[_Sum]) -> set[Key]:
    """The bodies of sums that are dividends, or are in one: there a sign has its price."""
    below = set(reachable(choice, [node[2][0] for node in choice.values() if node[0] in DIVISIONS]))
    return {of.key for of in sums if of.c in below}


def _multiplied(terms: dict[int, int], by: int) -> dict[int, int]:
    return {c: k * by for c, k in terms.items()}


def _without_negations(choice: Choice, constant: int, terms: dict[int, int]) -> tuple[int, dict[int, int]]:
    """A sum with what a negation negates in place of the negation: ``x + -y`` is ``x - y``."""
    found = dict(terms)
    for c in terms if constant or len(terms) > 1 else ():
        op, _, args = choice[c]
        if c in found and (op == "neg" or (op == "sum" and sum_terms(choice[c]) == (0, {args[0]: -1}))):
            k = found.pop(c)
            if total := found.pop(args[0], 0) - k:
                found[args[0]] = total
    return constant, found or terms


def hoisted_sums(classes: Classes, choice: Choice) -> Choice | None:
    """The chosen sums with the terms that run less often than they do in sums of their own; ``None`` if there are none.

    Of ``x + r*8 + y`` in a loop over ``r``, ``x + y`` is computed once.
    """
    weights = classes.graph.weights
    found: Choice = {}
    pending = [(c, node) for c, node in choice.items() if node[0] == "sum"] if weights else []
    while pending:
        c, node = pending.pop()
        constant, terms = sum_terms(node)
        # those that run as often as the sum does, or else one that runs most often
        often = [a for a in terms if weights.get(a, 1) == weights.get(c, 1)]
        often = often or [max(terms, key=lambda a: (weights.get(a, 1), a))]
        inner = {a: k for a, k in terms.items() if a not in often}
        part = _class_of_sum(classes, inner, constant) if len(inner) + bool(constant) > 1 else None
        if part is None:
            continue
        if weights.get(part, 1) >= weights.get(c, 1) or part in terms:
            continue
        # what is added may itself be computed from the sum of all, or from that part of it
        if any(reaches(choice | found, [*inner], user) for user in (c, part)):
            continue
        own, whole = sum_of(inner.items(), constant), sum_of([(part, 1), *[(a, terms[a]) for a in often]], 0)
        if classes.add_node(part, own) and classes.add_node(c, whole):
            found[part], found[c] = own, whole
            pending.append((part, own))
    return {**choice, **found} if found else None


def _class_of_sum(classes: Classes, terms: Mapping[int, int], constant: int) -> int | None:
    """The class of a sum of classes; ``None`` if there are none, or one is a condition."""
    forms = [classes.values[a] for a in terms]
    if not forms or not all(isinstance(form, LinearForm) for form in forms):
        return None
    total = combination(zip(cast(list[LinearForm], forms), terms.values(), strict=True), constant)
    return classes.add_class(total, False)


def _bodies(sums: Sequence[dict[int, int]], prices: ProductPrices) -> list[tuple[dict[int, int], int]]:
    """Each sum as a body times a factor: the common one, unless the products with it are there anyway."""
    parts = [_primitive(terms) for terms in sums]
    if all(abs(scale) == 1 or len(body) == 1 for body, scale in parts):
        return parts
    scales: dict[Key, set[int]] = {}
    for body, scale in parts:
        scales.setdefault(_key(body), set()).add(abs(scale))
    # in how many different sums each product is
    different = {_key(terms): terms for terms in sums}
    products = Counter((c, abs(k)) for terms in different.values() for c, k in terms.items())
    found = []
    for terms, (body, scale) in zip(sums, parts, strict=True):
        if abs(scale) > 1 and len(body) > 1 and len(scales[_key(body)]) == 1:
            factored = prices[abs(scale)] + sum([prices[abs(k)] for k in body.values()])
            alone = sum([prices[abs(k)] for c, k in terms.items() if products[c, abs(k)] == 1])
            if alone < factored:
                sign = 1 if scale > 0 else -1
                body, scale = _multiplied(terms, sign), sign
        found.append((body, scale))
    return found


def _key(terms: dict[int, int]) -> Key:
    return tuple(sorted(terms.items()))


@provides("partial conditions", otherwise=lambda classes, choice: choice)
def share_junctions(classes: Classes, choice: Choice) -> Choice:
    """Re-bracket the chosen chains of ``and`` and of ``or`` so that they share what they can.

    As in :func:`share_sums`, the pair of members that most chains have becomes a condition of its own.
    """
    new_choice = dict(choice)
    present = {node[0] for node in choice.values()}
    for op in ("and", "or"):
        if op not in present:
            continue
        demanded = dict.fromkeys(classes.graph.roots)
        for c in reachable(new_choice, classes.graph.roots):
            if new_choice[c][0] != op:
                demanded.update(dict.fromkeys(new_choice[c][2]))
        chains = {c: _chain_members(new_choice, op, c) for c in demanded if new_choice[c][0] == op}
        _join_pairs(classes, new_choice, op, chains)
        for c, members in chains.items():
            *rest, last = sorted(members)
            if rest:
                total = reduce(partial(_junction_class, classes, new_choice, op), rest)
                new_choice[c] = (op, None, (total, last))
                classes.add_node(c, new_choice[c])
    return new_choice


def _join_pairs(classes: Classes, choice: Choice, op: str, chains: dict[int, set[int]]) -> None:
    """Replace the pair of members that most chains have by its class, until no two chains have one in common."""
    is_late = _looks(classes)
    if (pairs := _pairs_in(chains.values(), is_late)) is None:
        return
    # of the most frequent pairs, the first; a pair may have become less frequent since it was put here
    heap = [(-count, pair) for pair, count in pairs.items() if count > 1]
    heapify(heap)
    while heap and not is_late(sum(map(len, chains.values()))):
        estimate, pair = heappop(heap)
        count = pairs[pair]
        if count < -estimate:
            if count > 1:
                heappush(heap, (-count, pair))
            continue
        # a chain of just these two is that condition already
        joined = next((c for c, members in chains.items() if members == set(pair)), None)
        if joined is None:
            joined = _junction_class(classes, choice, op, *pair)
        more: Counter[tuple[int, int]] = Counter()
        for members in chains.values():
            if members > set(pair):
                members.difference_update(pair)
                pairs.subtract([_in_order(member, other) for member in pair for other in members])
                if joined not in members:
                    more.update([_in_order(joined, other) for other in members])
                    members.add(joined)
        pairs.pop(pair)
        pairs.update(more)
        for changed in more:
            if pairs[changed] > 1:
                heappush(heap, (-pairs[changed], changed))


def _pairs_in(chains: Iterable[set[int]], is_late: Callable[[int], bool]) -> Counter[tuple[int, int]] | None:
    """How many chains have each pair of members; ``None`` if there is no time to count them."""
    pairs: Counter[tuple[int, int]] = Counter()
    for members in chains:
        ordered = sorted(members)
        for place, one in enumerate(ordered):
            if is_late(len(ordered) - place):
                return None
            pairs.update([(one, other) for other in ordered[place + 1 :]])
    return pairs


def _looks(classes: Classes) -> Callable[[int], bool]:
    """A function that says whether there is no time for a number of further pairs."""
    left = LIMITS.pairs_per_look

    def is_late(pairs: int) -> bool:
        nonlocal left
        left -= pairs
        if left >= 0:
            return False
        left = LIMITS.pairs_per_look
        return classes.late_or_raise()

    return is_late


def _in_order(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _chain_members(choice: Choice, op: str, c: int) -> set[int]:
    below = reached([c], lambda member: choice[member][2] if choice[member][0] == op else ())
    return {member for member in below if choice[member][0] != op}


def _junction_class(classes: Classes, choice: Choice, op: str, one: int, other: int) -> int:
    """The class of two joined conditions, written and chosen so."""
    left, right = sorted([cast(Expr, classes.values[c]) for c in (one, other)], key=lambda t: t.key)
    c = classes.add_class(make(op, left, right), False)
    choice[c] = (op, None, (one, other))
    classes.add_node(c, choice[c])
    return c


def _primitive(terms: dict[int, int]) -> tuple[dict[int, int], int]:
    """A combination divided by its content, the sign chosen so that equal directions are equal."""
    content = gcd(*terms.values())
    positive = sum(1 if k > 0 else -1 for k in terms.values())
    if positive < 0 or (positive == 0 and terms[min(terms)] < 0):
        content = -content
    return {c: k // content for c, k in terms.items()}, content


class _Pairing:
    """Greedy pair extraction over combinations of classes."""

    def __init__(self, classes: Classes, programs: LinearPrograms, choice: Choice) -> None:
        self.classes, self.choice = classes, choice
        self.programs, self.prices = programs, programs.prices
        #: Whether each sum is part of a dividend.
        self.is_divided: Sequence[bool] = ()
        #: Whether what is built next must be seen not to be negative, if it is not.
        self.keeps_sign = False
        self._looks_late, self.stopped = _looks(classes), False
        #: What is left of each body, by class its coefficient.
        self.sums: list[dict[int, int]] = []
        #: By pair, the numbers of the sums that have it, each with the factor.
        self.where: dict[Pair, dict[int, int]] = {}
        #: Whether some bracket would use the index of a reduction outside it.
        self.has_lost = False
        # the sums that have each class
        self.having: dict[int, set[int]] = defaultdict(set)
        # how many sums have each product by a literal
        self.products: Counter[tuple[int, int]] = Counter()
        # the classes of literals
        self._numbers: dict[int, int] = {}

    def _count(self, index: int, new: list[int], terms: dict[int, int]) -> None:
        """Record the pairs of sum ``index`` that contain a class of ``new``."""
        seen: set[int] = set()
        others = list(terms)
        most = len(others)
        if len(self.sums) == 1 and len(new) * most > 2 * LIMITS.pairs_of_terms:
            # a factor is shared by what has the same odd part, and differs by a shift
            new = others = sorted(terms, key=lambda c: (abs(terms[c]) // (terms[c] & -terms[c]), c))
            most = LIMITS.pairs_of_terms // most
        for place, a in enumerate(new):
            partners = self._partners(index, a, others) if most == len(others) else others[place + 1 : place + 1 + most]
            if self._is_late(len(partners)) or len(self.where) > LIMITS.pairs_of_terms:
                return
            seen.add(a)
            for b in partners:
                if b not in seen:
                    pair, scale = _pair(a, terms[a], b, terms[b])
                    # in a sum without others it is a common factor that saves
                    if abs(scale) > 1 or len(self.sums) > 1:
                        self.where.setdefault(pair, {})[index] = scale

    def _partners(self, index: int, c: int, terms: Collection[int]) -> Collection[int]:
        """What a class may be paired with in a sum: in a wide one, only what other sums have with it too."""
        if len(terms) <= LIMITS.wide_sum or len(self.sums) == 1:
            return terms
        others = chain.from_iterable([self.sums[other] for other in self.having[c] if other != index])
        return dict.fromkeys([other for other in others if other != c and other in self.sums[index]])

    def _is_late(self, pairs: int) -> bool:
        """Whether there is no time for this number of further pairs."""
        self.stopped = self._looks_late(pairs) or self.stopped
        return self.stopped

    def saving(self, pair: Pair) -> int:
        """What making ``pair`` a partial sum saves: a product by a literal only where no other sum has it."""
        found = self.where.get(pair)
        if not found:
            return 0
        if len(found) == 1 and abs(next(iter(found.values()))) == 1:
            # one sum has the pair, with the very products
            return 0
        a, j, b, k = pair
        scales: dict[int, int] = {}
        for signed in found.values():
            scales[abs(signed)] = scales.get(abs(signed), 0) + 1
        saved = (len(found) - 1) * self.prices.addition - sum([self.prices[scale] for scale in scales])
        for c, by in ((a, abs(j)), (b, abs(k))):
            for scale, count in scales.items():
                if self.products.get((c, by * scale)) == count:
                    saved += self.prices[by * scale]
            if self.products.get((c, by), 0) == scales.get(1, 0):
                saved -= self.prices[by]
        return saved

    def run(self, bodies: Iterable[dict[int, int]], is_divided: Sequence[bool]) -> None:
        """Extract pairs from the bodies until none saves anything; :attr:`sums` has what is left of them."""
        self.sums, self.is_divided = [*bodies], is_divided
        for index, terms in enumerate(self.sums):
            for c in terms:
                self.having[c].add(index)
        for index, terms in enumerate(self.sums):
            self._count(index, list(terms), terms)
            self.products.update((c, abs(k)) for c, k in terms.items())
        # what is extracted makes products that others may use
        while not self.stopped:
            heap = [self._ranked(pair, saving) for pair in self.where if (saving := self.saving(pair)) > 0]
            if not heap:
                break
            heapify(heap)
            while heap and not self._is_late(1):
                estimate, _, pair = heappop(heap)
                saving = self.saving(pair)
                if saving <= 0:
                    continue
                if -estimate > saving:
                    heappush(heap, self._ranked(pair, saving))
                    continue
                for touched in self._extract(pair):
                    saving = self.saving(touched)
                    if saving > 0:
                        heappush(heap, self._ranked(touched, saving))

    @staticmethod
    def _ranked(pair: Pair, saving: int) -> tuple[int, int, Pair]:
        """What comes first saves most; of pairs that save the same, small products are of use to others."""
        _, j, _, k = pair
        return -saving, abs(j) + abs(k), pair

    def _extract(self, pair: Pair) -> list[Pair]:
        """Put a partial sum for ``pair`` into all sums that have it; return the pairs that it is part of there."""
        a, j, b, k = pair
        uses = {
            index: scale
            for index, scale in self.where.pop(pair).items()
            if self.sums[index].get(a) == j * scale and self.sums[index].get(b) == k * scale
        }
        self.keeps_sign = any(self.is_divided[index] for index in uses)
        # a difference that is mostly subtracted is built the other way round
        turned = -1 if k < 0 and sum([scale < 0 for scale in uses.values()]) * 2 > len(uses) else 1
        c = self.chain({a: j * turned, b: k * turned})
        self.products.update([(a, abs(j)), (b, abs(k))])
        for index, scale in uses.items():
            self._replace(index, (a, b), c, scale * turned)
        touched: dict[Pair, None] = {}
        for index in [index for index in uses if c in self.sums[index]]:
            touched.update(dict.fromkeys(self._pairs_with(index, c)))
            self._count(index, [c], self.sums[index])
        return list(touched)

    def _replace(self, index: int, pair: tuple[int, int], c: int, scale: int) -> None:
        """Put ``scale`` times the class ``c`` in place of two terms of a sum."""
        terms = self.sums[index]
        for old in pair:
            for stale in self._pairs_with(index, old):
                self.where.get(stale, {}).pop(index, None)
        for old in pair:
            self.products[old, abs(terms.pop(old))] -= 1
            self.having[old].discard(index)
        before = terms.pop(c, 0)
        if before:
            self.products[c, abs(before)] -= 1
        if total := before + scale:
            terms[c] = total
            self.products[c, abs(total)] += 1
            self.having[c].add(index)
        else:
            # the partial sum was subtracted there
            self.having[c].discard(index)

    def _pairs_with(self, index: int, c: int) -> Iterator[Pair]:
        """The pairs that a class is part of in a sum."""
        terms = self.sums[index]
        for other in self._partners(index, c, terms):
            if other != c:
                yield _pair(c, terms[c], other, terms[other])[0]

    def chain(self, terms: dict[int, int]) -> int:
        """The class of a combination, chosen as the cheapest program found, or term by term."""
        if not terms:
            return self._number(0)
        products = {c: k for c, k in terms.items() if len(terms) <= LIMITS.program_terms or abs(k) > 1}
        if (found := self._by_program(products)) is not None:
            rest = {c: k for c, k in terms.items() if c not in products}
            # the value of the program may be a term of the rest too
            rest[found] = rest.get(found, 0) + 1
            left = {c: k for c, k in rest.items() if k}
            return found if left == {found: 1} else self.chain(left)
        # positive terms first, to avoid a negation
        ordered = sorted(terms.items(), key=lambda item: (item[1] < 0, item[0]))
        (first, coefficient), *others = ordered
        # the partial sums of a wide one are nearly as long as it is; a single term may be a condition, which is no sum
        if others and (len(ordered) > LIMITS.wide_sum or self._is_late(len(ordered) ** 2)):
            return self._wide(ordered)
        if len(ordered) > 2 and (beside := self._beside_needed(ordered)) is not None:
            total, *others = beside
        else:
            total = self.scaled(first, coefficient)
        for c, coefficient in others:
            total = self.plus(total, self.scaled(c, abs(coefficient)), 1 if coefficient > 0 else -1)
        return total

    def _beside_needed(self, terms: Sequence[tuple[int, int]]) -> tuple[int, tuple[int, int]] | None:
        """The class of all terms but one, if it is needed anyway, and that term."""
        total = combination([(self._form(c), k) for c, k in terms], 0)
        for c, k in reversed(terms):
            rest = self.classes.known(total.plus(self._form(c), -k))
            if rest is not None and rest in self.choice:
                return rest, (c, k)
        return None

    def _by_program(self, terms: dict[int, int]) -> int | None:
        """The class of a combination, if a program is found that costs less than to add it term by term."""
        coefficients = tuple(terms.values())
        if len(terms) < 2 or not self.programs.is_short(coefficients) or max(coefficients) <= 0:
            return None
        # products that other sums have are paid by these
        own = [self.programs.least((abs(k),)) for c, k in terms.items() if self.products[c, abs(k)] <= 1]
        by_terms = sum(own) + (len(terms) - 1) * self.prices.addition
        return self._programmed(list(terms), coefficients) if self.programs.least(coefficients) < by_terms else None

    def _wide(self, terms: Sequence[tuple[int, int]]) -> int:
        """The class of a combination, as one node over its products."""
        total = combination([(self._form(c), coefficient) for c, coefficient in terms], 0)
        result = self.classes.add_class(total, False)
        products: dict[int, int] = {}
        for c, coefficient in terms:
            # may raise: each product counts as a few pairs
            self._is_late(16)
            product = self.scaled(c, abs(coefficient))
            products[product] = products.get(product, 0) + (1 if coefficient > 0 else -1)
        classes, coefficients = zip(*sorted(products.items()), strict=True)
        self._choose(result, ("sum", (0, coefficients), classes))
        return result

    def _form(self, c: int) -> LinearForm:
        return cast(LinearForm, self.classes.values[c])

    def _programmed(self, classes: Sequence[int], coefficients: Coefficients) -> int | None:
        """The class of a combination, computed by its program; ``None`` if what uses it would then cost more.

        By its bounds ``x*7`` is never negative where ``x`` is not; those of ``x*8 - x`` do not say so, and ``x*8`` may
        take more bits.
        """
        program = self.programs[coefficients]
        if program.scale != 1:
            rest = self._programmed(classes, program.parts[0])
            if rest is None:
                return None
            return self._times(rest, program.scale) if len(classes) == 1 else self.scaled(rest, program.scale)
        if not program.parts:
            return next(c for c, k in zip(classes, coefficients, strict=True) if k)
        sign = 1 if max(program.parts[1]) > 0 else -1
        left = self._programmed(classes, program.parts[0])
        right = self._programmed(classes, tuple(k * sign for k in program.parts[1]))
        if left is None or right is None:
            return None
        if self._is_worse_known(left, right, sign, is_product=sum(map(bool, coefficients)) == 1):
            return None
        return self.plus(left, right, sign)

    def _is_worse_known(self, left: int, right: int, sign: int, is_product: bool) -> bool:
        """Whether the bounds of two parts hide the sign of their sum, if it is needed, or that it has few bits."""
        result = self.classes.add_class(self._form(left).plus(self._form(right), sign), False)
        one, other, whole = (self.classes.graph.bounds[c] for c in (left, right, result))
        ends = linear_bounds(0, [(one, 1), (other, sign)])
        if is_product:
            # bounds of terms say so too
            ends = whole
        return (self.keeps_sign and ends[0] < 0 <= whole[0]) or width((one, other, ends)) > width((whole,))

    def scaled(self, c: int, by: int) -> int:
        """The class of a product by a literal, chosen as the cheapest program found."""
        found = self._programmed([c], (by,)) if by > 1 and self.programs.is_short((by,)) else None
        return self._times(c, by) if found is None else found

    def _times(self, c: int, by: int) -> int:
        if by == 1:
            return c
        result = self.classes.add_class(self._form(c).times(by), False)
        if by == -1:
            self._choose(result, ("neg", None, (c,)))
        else:
            self._choose(result, ("mul", None, (c, self._number(by))))
        return result

    def _number(self, value: int) -> int:
        if (c := self._numbers.get(value)) is None:
            c = self._numbers[value] = self.classes.add_class(number(value), False)
            self.choice[c] = ("const", value, ())
            self.classes.add_node(c, self.choice[c])
        return c

    def plus(self, left: int, right: int, sign: int) -> int:
        result = self.classes.add_class(self._form(left).plus(self._form(right), sign), False)
        self._choose(result, ("add" if sign > 0 else "sub", None, (left, right)))
        return result

    def finish(self, c: int, body: int, scale: int, constant: int) -> None:
        """Choose ``scale*body + constant`` for the class ``c``."""
        # may raise: to choose a node may take a look at all of the choice
        self._is_late(len(self.choice))
        if constant and scale < 0:
            found = self.plus(self._number(constant), self.scaled(body, -scale), -1)
        elif constant:
            found = self.plus(self.scaled(body, scale), self._number(abs(constant)), 1 if constant > 0 else -1)
        else:
            found = self.scaled(body, scale)
        if found != c:
            # a rule has found the sum: its normal form is another than that of the class
            self._choose(c, self.choice[found])

    def _choose(self, c: int, node: Node) -> None:
        """Add ``node`` and choose it, unless the class would then need itself."""
        if c in node[2]:
            return
        self.has_lost |= not self.classes.add_node(c, node)
        old = self.choice.get(c)
        self.choice[c] = node
        if old is not None and old != node:
            # what the node before used does not need the class
            harmless = frozenset(old[2])
            if reaches(self.choice, [a for a in node[2] if a not in harmless], c):
                self.choice[c] = old


def _pair(a: int, j: int, b: int, k: int) -> tuple[Pair, int]:
    """Two terms up to a common factor, and that factor."""
    if b < a:
        a, j, b, k = b, k, a, j
    scale = gcd(j, k)
    if j < 0:
        scale = -scale
    return (a, j // scale, b, k // scale), scale
