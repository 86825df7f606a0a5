"""Sums as multiples of sums that are there, or of the quotients of these, and of what is left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations, product

from eqsat.alternatives.canonical import CanonicalGraph, shift_to_non_negative
from eqsat.alternatives.limits import LIMITS
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node, sum_by, sum_of, sum_terms
from eqsat.lang.expr import Expr
from eqsat.theory.forms import LinearForm, literal_divisor, number


def of_products(classes: CanonicalGraph) -> Iterator[tuple[int, Node]]:
    """Sums of products by literals that are there, which cost nothing more; ``x*36`` as ``x*9*4`` beside ``x*9``."""
    forms = [(c, form) for c, form in enumerate(classes.values) if isinstance(form, LinearForm)]
    # by an atom and a literal, the class of their product
    products = {found: c for c, form in forms if (found := form.multiple()) is not None and found[1] > 1}
    yield from _shifted_products(classes, products)
    for c, form in forms if products else ():
        if len(form.terms) > 1 and not products.keys().isdisjoint([(a, abs(k)) for a, k in form.terms.items()]):
            parts = [
                (products[a, abs(k)], 1 if k > 0 else -1) if (a, abs(k)) in products else (classes.add_atom(a), k)
                for a, k in form.terms.items()
            ]
            yield c, sum_of(parts, form.constant)


def _shifted_products(classes: CanonicalGraph, products: Mapping[tuple[Expr, int], int]) -> Iterator[tuple[int, Node]]:
    """``x*36`` as ``x*9*4``: products by what is no power of two as shifts of other ones."""
    scales: dict[Expr, list[int]] = defaultdict(list)
    for atom, k in products:
        if not is_power_of_two(k):
            scales[atom].append(k)
    for atom, found in scales.items():
        for k, j in permutations(found, 2) if len(found) > 1 else ():
            if not k % j and is_power_of_two(k // j):
                yield products[atom, k], ("mul", None, (products[atom, j], classes.add_class(number(k // j))))


def of_multiples(classes: CanonicalGraph, needed: Iterable[int]) -> Iterator[tuple[int, Node]]:
    """A multiple of a sum as the sum or difference of two that are there: ``x*10`` as ``x*3 + x*7``."""
    by_sum: dict[LinearForm, dict[int, int]] = defaultdict(dict)
    for c in needed:
        form = classes.values[c]
        if isinstance(form, LinearForm) and form.terms:
            scale = form.sign() * form.common_factor()
            by_sum[form.divided(scale)][scale] = c
    for factors in by_sum.values():
        if 2 < len(factors) <= LIMITS.multiples:
            for (k, c), (i, one), sign in product(factors.items(), factors.items(), (1, -1)):
                # a multiple is no alternative to itself
                other = factors.get(sign * (k - i), c)
                if c not in (one, other) and not is_power_of_two(abs(k)):
                    yield c, sum_of([(one, 1), (other, sign)], 0)


def by_sums(classes: CanonicalGraph, needed: Mapping[int, Node], others: Collection[int]) -> Iterator[tuple[int, Node]]:
    """Sums with a multiple of another, or of its quotient, in place of terms that both have.

    Of sums that are ``needed``, and of those ``others`` that conditions may be compared by. What takes a quotient or a
    remainder may be no shorter for it, and then be a multiple of another sum: ``70*x + 142*y - 419*((x + 2*y)//6)`` is
    ``70*S - 419*(S//6)`` for an ``S = x + 14*y``.
    """
    if sum(map(classes.is_sum, needed)) < 2:
        return
    forms = [(c, value) for c, value in enumerate(classes.values) if isinstance(value, LinearForm)]
    atoms = {atom: c for c, form in forms if (atom := form.single()) is not None}
    sums = _of_atoms(classes, atoms, [*needed, *others])
    quotients = list(_quotients_of(classes, sums))
    yield from quotients
    remainders = list(_remainders_of(classes, sums))
    more = _of_atoms(classes, atoms, [*[c for c, _ in quotients], *remainders])
    digits = [*[c for c, node in quotients if node[0] == "floordiv"], *remainders]
    parts = _Parts(classes, atoms, sums | more, digits)
    for c in sums:
        used = needed[c][2] if c in needed else ()
        found = 0
        for node in list(classes.graph.classes[c]):
            if node[0] == "sum" and len(node[2]) > 2 and found <= LIMITS.terms_by_sums:
                for left, terms in parts.shorter(c, node, used):
                    found += len(terms)
                    yield c, sum_by(terms, left)


def _of_atoms(classes: CanonicalGraph, atoms: Mapping[Expr, int], some: Iterable[int]) -> dict[int, dict[int, int]]:
    """The coefficients of the classes of ``atoms``, by class of those among ``some`` that are sums without others."""
    found = {c: classes.form_of(c).terms for c in some if classes.is_sum(c)}
    return {c: {atoms[a]: k for a, k in terms.items()} for c, terms in found.items() if terms.keys() <= atoms.keys()}


class _Parts:
    """Sums of atoms that may replace terms of other sums; the quotients and remainders among them are ``digits``.

    Digits are tried also where they make a sum no shorter.
    """

    def __init__(
        self,
        classes: CanonicalGraph,
        atoms: Mapping[Expr, int],
        sums: Mapping[int, dict[int, int]],
        digits: Iterable[int],
    ) -> None:
        self.classes, self._terms = classes, sums
        self._affine = {c for c in sums if classes.form_of(c).is_affine()}
        self._having: dict[int, list[int]] = defaultdict(list)
        self._affine_having: dict[int, list[int]] = defaultdict(list)
        for part, terms in sums.items():
            for a in terms:
                self._having[a].append(part)
                if part in self._affine:
                    self._affine_having[a].append(part)
        self._digits_having: dict[int, list[int]] = defaultdict(list)
        for digit in [digit for digit in dict.fromkeys(digits) if digit in sums]:
            for atom in classes.form_of(digit).terms:
                if atom.op == "floordiv":
                    self._digits_having[atoms[atom]].append(digit)

    def shorter(self, c: int, node: Node, used: Collection[int]) -> Iterator[tuple[int, dict[int, int]]]:
        """A sum of class ``c`` with multiples of parts in place of terms; parts that it has ``used`` are not tried."""
        args, total = node[2], sum_terms(node)
        is_wide = len(args) > LIMITS.wide_sum
        # what is affine stays so
        having = self._affine_having if c in self._affine else self._having
        shared = _counted(args, having)
        # the terms that are shared vanish, the part and its other terms appear
        able = {part for part, count in shared.items() if 2 * count > len(self._terms[part]) + 1}
        able.difference_update(used, [c])
        digits = {} if is_wide else _counted(args, self._digits_having)
        digits.pop(c, None)
        if not able and not digits:
            return
        most = LIMITS.parts_of_wide if is_wide else LIMITS.parts
        ranked = [part for part in _most_frequent(shared, most) if part != c]
        yield from self._with_multiples(total, [part for part in ranked if part in able])
        for digit in _most_frequent(digits, LIMITS.parts):
            others = [part for part in ranked if part != digit]
            for as_long in self._with_multiples(total, [digit], by=0):
                yield from self._with_multiples(as_long, others)

    def _with_multiples(
        self, total: tuple[int, Mapping[int, int]], among: Iterable[int], by: int = 1
    ) -> Iterator[tuple[int, dict[int, int]]]:
        """Ways to write a sum with a multiple of one part so that it has at least ``by`` terms fewer.

        A sum is its constant and the coefficients of its classes.
        """
        constant, terms = total
        for part in among:
            of_part = self._terms[part]
            shared = [a for a in of_part if a in terms]
            besides = len(of_part) - len(shared) + (part not in terms)
            if len(shared) < besides - 1 + by:
                continue
            scales = [terms[a] // of_part[a] for a in shared if not terms[a] % of_part[a]]
            for scale in sorted(set(scales)) if len(scales) >= besides else ():
                # the part's own term vanishes if the coefficients cancel
                if scales.count(scale) >= besides - (terms.get(part) == -scale) + by:
                    left = dict(terms)
                    for a, k in of_part.items():
                        left[a] = left.get(a, 0) - scale * k
                    left[part] = left.get(part, 0) + scale
                    rest = constant - scale * self.classes.form_of(part).constant
                    yield rest, {a: k for a, k in left.items() if k}


def _counted(args: Iterable[int], having: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """How many of ``args`` each sum has, of those that are ``having`` some."""
    found: dict[int, int] = {}
    for a in args:
        for part in having.get(a, ()):
            found[part] = found.get(part, 0) + 1
    return found


def _most_frequent(counts: Mapping[int, int], most: int) -> list[int]:
    """The sums that are counted most often, the first of those with one count."""
    return sorted(counts, key=counts.__getitem__, reverse=True)[:most]


def _remainders_of(classes: CanonicalGraph, sums: Iterable[int]) -> Iterator[int]:
    """The classes that are there of ``A % n`` for quotients ``A // n`` in sums."""
    for atom in {a: None for c in sums for a in classes.form_of(c).terms if a.op == "floordiv"}:
        remainder = classes.remainder_of(atom)
        if remainder in classes:
            yield classes.add_class(remainder)


def _quotients_of(classes: CanonicalGraph, sums: Iterable[int]) -> Iterator[tuple[int, Node]]:
    """``A//n + w`` as ``B//n`` for sums ``B`` that differ from ``A`` by ``n*w`` and a constant."""
    theory = classes.theory
    forms = {c: form for c in sums if len((form := classes.form_of(c)).terms) <= LIMITS.wide_sum}
    wanted: dict[int, dict[LinearForm, set[int]]] = defaultdict(lambda: defaultdict(set))
    for atom in {a: None for form in forms.values() for a in form.terms if a.op == "floordiv"}:
        if (n := literal_divisor(atom)) > 1:
            dividend = theory.inner(atom.args[0])
            wanted[n][dividend.residues(n)].add(dividend.constant)
    having: dict[Expr | None, dict[int, LinearForm]] = defaultdict(dict)
    for c, form in forms.items():
        for part in (None, *form.terms):
            having[part][c] = form
    for n, dividends in wanted.items():
        if theory.late_or_raise():
            return
        # they have the atoms that are left of a dividend
        able = {next(iter(left.terms), None) for left in dividends}
        for c in sorted(set(chain.from_iterable([having[part] for part in able]))):
            form = forms[c]
            for constant in sorted(dividends.get(form.residues(n), ())):
                dividend = LinearForm(form.terms, constant)
                quotient = theory.quotient_by(dividend, n)
                if len(quotient.terms) > 1:
                    below = classes.add_class(dividend)
                    if below != c:
                        yield below, ("sum", (constant - form.constant, (1,)), (c,))
                    yield classes.add_class(quotient), ("floordiv", None, (below, classes.add_class(number(n))))
    yield from _of_finer_sums(classes, forms)


def _of_finer_sums(classes: CanonicalGraph, forms: Mapping[int, LinearForm]) -> Iterator[tuple[int, Node]]:
    """``A//n + w`` as ``B//(k*n)`` for sums ``B`` that differ from ``k*A`` by ``k*n*w`` and what does not count."""
    theory = classes.theory
    tried: set[tuple[int, int]] = set()
    for atom in {a: None for form in forms.values() for a in form.terms if a.op == "floordiv"}:
        if theory.late_or_raise():
            return
        if (n := literal_divisor(atom)) < 2:
            continue
        dividend = theory.inner(atom.args[0]).terms
        first = next(iter(dividend))
        for c, form in forms.items():
            k, left = divmod(form.terms.get(first, 0), dividend[first])
            if left or k < 2 or (c, k * n) in tried:
                continue
            if any((form.terms.get(a, 0) - k * of_a) % (k * n) for a, of_a in dividend.items()):
                continue
            tried.add((c, k * n))
            quotient = theory.quotient_by(form, k * n)
            if len(quotient.terms) > 1 and atom in quotient.terms:
                yield classes.add_class(quotient), ("floordiv", None, (c, classes.add_class(number(k * n))))


def add_by_dividends(classes: CanonicalGraph, forms: Iterable[tuple[int, LinearForm]]) -> dict[int, Node]:
    """Add sums as multiples of a dividend and of its quotient; those with nothing besides, and the quotients.

    ``7*x - 524*y - 1259*((x - 75*y)//180)`` needs one ``x + 105*y``: a normal form has the smallest coefficients below
    ``//``, so a sum beside it that was a multiple of what is divided is none any more. Which multiple of 180 the
    dividend has lost is what makes both one again: of ``a*S + c*(S//n)`` the normal form is ``R + c*(D//n)``, where
    ``S`` is ``D + n*w`` and ``R - a*D`` is ``(c + a*n)*w``.
    """
    found: dict[int, Node] = {}
    for c, form in forms:
        if classes.theory.late_or_raise():
            break
        if not 2 < len(form.terms) <= LIMITS.wide_sum:
            continue
        for atom, coefficient in form.terms.items():
            for dividend, n in _readings(classes, atom):
                for whole, left, a in _dividends(classes, form, atom, dividend, n):
                    base, quotient = classes.add_class(whole), classes.theory.quotient_by(whole, n)
                    divided = classes.add_class(quotient, expand=False)
                    division: Node = ("floordiv", None, (base, classes.add_class(number(n))))
                    multiples = classes.sum_node([(whole, a), (quotient, coefficient)], left)
                    classes.add_node(divided, division)
                    classes.add_node(c, multiples)
                    if not left.terms:
                        found |= {divided: division, c: multiples}
    return found


def _readings(classes: CanonicalGraph, atom: Expr) -> Iterator[tuple[LinearForm, int]]:
    """The dividends and divisors of which an atom is the quotient, if it is one by a literal."""
    n = literal_divisor(atom)
    if not n:
        return
    dividend = classes.theory.inner(atom.args[0])
    yield dividend, n
    for inside, k in dividend.terms.items():
        # (x//b + r)//n is (x + b*r)//(b*n), and -(x//b) is (b - 1 - x)//b
        if abs(k) == 1 and (b := literal_divisor(inside)) > 1:
            below = classes.theory.inner(inside.args[0])
            rest = dividend.without(inside)
            yield rest.times(b).plus(below, k).shifted(b - 1 if k < 0 else 0), b * n


def _dividends(
    classes: CanonicalGraph, form: LinearForm, atom: Expr, dividend: LinearForm, n: int
) -> Iterator[tuple[LinearForm, LinearForm, int]]:
    """``S``, ``left`` and ``a`` for which a sum with a quotient ``D//n`` is ``a*S + c*(S//n) + left``."""
    rest, coefficient = form.without(atom), form.terms[atom]
    scales = {rest.terms[x] // k: None for x, k in dividend.terms.items() if x in rest.terms and not rest.terms[x] % k}
    for near in (1, -1):
        if not (near - coefficient) % n:
            scales[(near - coefficient) // n] = None
    for a in scales:
        step = coefficient + a * n
        if not a or not step:
            continue
        difference = rest.plus(dividend, -a)
        whole = LinearForm({x: k // step for x, k in difference.terms.items() if not k % step}, 0)
        left = difference.plus(whole, -step)
        if not whole.terms or len(left.terms) + 2 >= len(form.terms):
            continue
        total = dividend.plus(whole, n)
        shifts = {} if left.constant % step else {left.constant // step: None}
        shifts[shift_to_non_negative(classes.theory.plain_bounds(total)[0], n) // n] = None
        for shift in shifts:
            yield total.shifted(n * shift), left.shifted(-step * shift), a
