"""Availability: alternatives that use what is computed anyway.

A normal form is short on its own: ``i == 1 and j == 0`` says less than ``4*i + j == 4``, and ``(j - i) % 4`` has
smaller coefficients than ``(3*i + j) % 4``. Where the program needs ``4*i + j`` or ``3*i + j`` besides, the longer one
is the cheaper. So once all classes of a :class:`~eqsat.alternatives.builder.Builder` are known and a first answer is
chosen, each condition is added as an interval of a sum over its variables, decided at every point, and each sum as a
multiple of another and what that leaves.

Before, while rules match, a remainder is written by a sum that is there and congruent to its dividend
(:class:`CongruentRemainders`): what is in one period or in the next can then be told from a sum that is computed
anyway, which rules do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations
from math import gcd
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.canonical import sum_of
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node, sum_payload, sum_terms
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, extent, is_index, make, may_divide_by_zero, topological, variables
from eqsat.lang.infinity import is_finite
from eqsat.lang.ops import COMPARISONS, UNINTERPRETED
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import domain_size, reached
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, atom_form, literal_divisor, number, read, to_expr
from eqsat.theory.limits import LIMITS as THEORY_LIMITS


@provides("availability", otherwise=lambda builder, needed: None)
def add_available(builder: Builder, needed: Mapping[int, Node]) -> list[dict[int, Node]] | None:
    """Add to the classes of ``builder`` the alternatives that use other classes of it, and what they need.

    Parameters
    ----------
    needed : mapping of int to Node
        The classes that the answer so far needs, and how it writes them.

    Returns
    -------
    list of dict of int to Node, or None
        Alternatives, by class, that may pay only together: wider remainders, remainders for quotients, multiples of
        dividends, and those that use the same sum which the answer so far does without; ``None`` if nothing new was
        found.
    """
    values = [(c, builder.values[c]) for c in needed]
    # what divides, or has an extreme
    forms = [(c, value) for c, value in values if isinstance(value, LinearForm) and not value.is_affine()]
    conditions = [(c, value) for c, value in values if isinstance(value, Expr)]
    wider = list(_wider_remainders(builder, forms))
    whole = list(_without_quotients(builder, needed))
    found = [*_by_bounds(builder), *wider, *whole]
    found += _in_time(
        builder,
        _never_negative(builder, forms),
        _rounded_down(builder, forms),
        _merged(builder, conditions),
        ((c, node) for c, condition in conditions for node in builder.conditions.by_needed(condition, needed)),
    )
    conditions = [(c, condition) for c, condition in conditions if worth_reading(condition)]
    intervals = list(as_intervals(builder, conditions, sorted(needed))) if conditions else []
    compared = dict.fromkeys(c for _, node in intervals for c in node[2] if builder.is_sum(c))
    by_dividends = _add_by_dividends(builder, forms)
    builder.grow()
    found += [*intervals, *_in_time(builder, _by_sums(builder, needed, compared))]
    for c, node in found:
        builder.add_node(c, node)
    has_more = _add_beside(builder, needed, forms)
    if not found and not has_more and not by_dividends:
        return None
    builder.grow()
    around = [_around(builder, needed, c) for c in compared if c not in needed]
    return [dict(wider), dict(whole), by_dividends, *[nodes for nodes in around if len(nodes) >= LIMITS.users]]


def _add_beside(builder: Builder, needed: Mapping[int, Node], forms: Sequence[tuple[int, LinearForm]]) -> bool:
    """Add the alternatives that use classes which others have added; whether there are any."""
    found = _in_time(
        builder,
        _masked(builder, needed),
        _in_two_steps(builder, forms),
        _shifted(builder),
        _of_shifted(builder, needed),
        _taken_in(builder, needed),
        _negated(builder, needed),
        of_products(builder),
    )
    for c, node in found:
        builder.add_node(c, node)
    return CongruentRemainders(builder).add(needed) or bool(found)


def _in_time(builder: Builder, *found: Iterable[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """What is found, one search after the other, until the time is up."""
    kept: list[tuple[int, Node]] = []
    for item in chain(*found):
        if builder.theory.late_or_raise():
            break
        kept.append(item)
    return kept


def _around(builder: Builder, needed: Mapping[int, Node], c: int) -> dict[int, Node]:
    """By class, the first alternative that uses ``c``, or what ``c`` may compute and the answer does without."""
    classes = builder.graph.classes
    above = {user for user, nodes in classes.items() if user not in needed and any(c in args for _, _, args in nodes)}
    above.add(c)
    found: dict[int, Node] = {}
    for user in needed:
        node = next((node for node in classes[user] if not above.isdisjoint(node[2])), None)
        if node is not None:
            found[user] = node
    return found


def _wider_remainders(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``k*(A % n) + r`` as ``(k*A + r) % (k*n)`` for ``r`` in ``[0, k)``."""
    for c, form in forms:
        for dividend, n in wider_remainders(builder, form):
            shift = _periods_below_zero(builder.theory.plain_bounds(dividend)[0], n)
            yield c, builder.node("mod", dividend.shifted(shift), number(n))


def _never_negative(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``A % n`` as ``(A + k*n) % n`` with a dividend that is never negative, where that makes it cheaper."""
    graph = builder.graph
    for c, _ in forms:
        for op, _, args in graph.classes[c]:
            divisor = builder.form_of(args[1]) if op == "mod" else None
            if divisor is None or divisor.terms:
                continue
            dividend, (low, _) = builder.form_of(args[0]), builder.classes.narrowed_sum(args[0])
            if low < 0 and builder.theory.touched:
                # the answer is priced by the ranges of its variables, whatever facts say of them
                low = min(low, to_expr(dividend).vmin)
            shift = _periods_below_zero(low, divisor.constant)
            if shift:
                shifted = builder.add_class(dividend.shifted(shift), expand=False)
                for other, payload, operands in graph.classes[args[0]]:
                    if other == "sum":
                        constant, coefficients = sum_payload(payload)
                        builder.add_node(shifted, ("sum", (constant + shift, coefficients), operands))
                builder.add_node(shifted, ("sum", (shift, (1,)), args[:1]))
                yield c, ("mod", None, (shifted, args[1]))


def _periods_below_zero(low: int, n: int) -> int:
    """The multiple of ``n`` that makes numbers from ``low`` on not negative, if a remainder is the cheaper for it."""
    return 0 if low >= 0 or not is_finite(low) or n < 0 or is_power_of_two(n) else -(low // n) * n


def _rounded_down(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``k*n*(A//n)`` as ``k*A - k*(A % n)`` where the remainder is there."""
    for c, form in forms:
        for quotient, coefficient in form.terms.items():
            n = literal_divisor(quotient)
            if not n or coefficient % n:
                continue
            k = coefficient // n
            remainder = builder.classes.remainder_of(quotient)
            whole = form.plus(remainder, k)
            if remainder in builder.classes and remainder != form and len(whole.terms) <= len(form.terms):
                yield c, builder.sum_node([(remainder, -k)], whole)


def _without_quotients(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``n*(A//n)`` as ``A - A%n`` where nothing else needs the quotient, for an ``n`` above zero that is no literal.

    Of those a remainder costs less. Both are alternatives that pay only together.
    """
    products = [(c, *pair) for c, (op, _, args) in needed.items() if op == "mul" for pair in (args, args[::-1])]
    products = [(c, a, n) for c, a, n in products if needed[a][0] == "floordiv" and needed[n][0] != "const"]
    uses = Counter(chain(builder.graph.roots, *[args for _, _, args in needed.values()])) if products else {}
    for c, a, n in products:
        parts = needed[a][2]
        if uses[a] > 1 or needed[parts[1]] != needed[n]:
            continue
        # of a zero the product is zero, whatever the quotient
        if builder.theory.bounds(builder.form_of(n))[0] <= 0:
            continue
        remainder = builder.add_class(builder.form_of(parts[0]).plus(builder.form_of(c), -1))
        yield remainder, ("mod", None, parts)
        yield c, sum_of([(parts[0], 1), (remainder, -1)], 0)


def _masked(builder: Builder, needed: Collection[int]) -> Iterator[tuple[int, Node]]:
    """``A % n`` as ``(A + k*(A//n)) % (n + k)`` where the quotient is there, if ``k`` and ``n + k`` are powers of two.

    With ``A = n*q + r`` that is the remainder of ``(n + k)*q + r``.
    """
    for c in needed:
        for op, _, args in list(builder.graph.classes[c]):
            divisor = builder.form_of(args[1]) if op == "mod" else None
            n = divisor.constant if divisor is not None and not divisor.terms else 0
            k = n & -n
            if n <= k or not is_power_of_two(n + k):
                continue
            dividend = builder.form_of(args[0])
            quotient = builder.theory.quotient_by(dividend, n)
            if quotient in builder.classes and (q := builder.add_class(quotient)) in needed:
                whole = builder.add_class(dividend.plus(quotient, k), expand=False)
                builder.add_node(whole, sum_of([(args[0], 1), (q, k)], 0))
                yield c, ("mod", None, (whole, builder.add_class(number(n + k))))


def _in_two_steps(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``A // (n*k)`` as ``(A//n) // k`` where ``A//n`` is there and ``k`` a power of two."""
    theory = builder.theory
    quotients = [(c, *whole) for c, form in forms if (whole := _as_quotient(theory, form)) is not None]
    divisors = dict.fromkeys([m for _, _, m in quotients])
    for c, dividend, m in quotients:
        for n in divisors:
            if 1 < n < m and not m % n and is_power_of_two(m // n) and not is_power_of_two(n):
                quotient = theory.quotient_by(dividend, n)
                if quotient in builder.classes or LinearForm(quotient.terms, 0) in builder.classes:
                    yield c, builder.node("floordiv", quotient, number(m // n))


def _as_quotient(theory: Arithmetic, form: LinearForm) -> tuple[LinearForm, int] | None:
    """The dividend and the literal divisor of what is one quotient, or its opposite, and a constant."""
    atom, k = next(iter(form.terms.items()), (None, 0))
    if atom is None or len(form.terms) > 1 or abs(k) > 1 or not (n := literal_divisor(atom)):
        return None
    # -(A//n) is (n - 1 - A)//n
    return theory.inner(atom.args[0]).times(k).shifted(form.constant * n + (n - 1 if k < 0 else 0)), n


def _shifted(builder: Builder) -> Iterator[tuple[int, Node]]:
    """Sums that differ in their constants alone, from the one with the least."""
    directions: dict[LinearForm, dict[int, int]] = defaultdict(dict)
    for c, form in enumerate(builder.values):
        if isinstance(form, LinearForm) and form.constant and form.terms:
            directions[form.shifted(-form.constant)][c] = form.constant
    for direction, constants in directions.items():
        if direction in builder.classes and direction.single() is None:
            constants[builder.add_class(direction)] = 0
        base = min(constants, key=lambda c: (abs(constants[c]), c))
        yield from ((c, ("sum", (constants[c] - constants[base], (1,)), (base,))) for c in constants if c != base)


def _of_shifted(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``x*8 + y - 512`` as ``(x - 64)*8 + y`` where ``x - 64`` is there."""
    parts: dict[LinearForm, list[tuple[int, int, int]]] = defaultdict(list)
    for c in needed:
        value = builder.values[c]
        if isinstance(value, LinearForm) and value.constant and len(value.terms) == 1:
            ((atom, k),) = value.terms.items()
            parts[atom_form(atom)].append((c, k, value.constant))
    by_class = {builder.add_class(atom): found for atom, found in parts.items()}
    for c in needed if by_class else ():
        for node in list(builder.graph.classes[c]):
            constant, terms = sum_terms(node) if node[0] == "sum" else (0, {})
            for a in terms.keys() & by_class.keys() if constant else ():
                for part, k, of_part in by_class[a]:
                    scale, uneven = divmod(terms[a], k)
                    if not uneven and part != c and part not in terms and scale * of_part == constant:
                        yield c, sum_of([(part if b == a else b, scale if b == a else j) for b, j in terms.items()], 0)


def _negated(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``where(p, x, y)`` as ``where(not p, y, x)`` where that condition is needed anyway."""
    for c, (op, _, args) in needed.items():
        if op == "where":
            opposite = builder.theory.negate(cast(Expr, builder.values[args[0]]))
            if opposite in builder.classes and (other := builder.add_class(opposite)) in needed:
                yield c, ("where", None, (other, args[2], args[1]))


def _taken_in(builder: Builder, needed: Collection[int]) -> Iterator[tuple[int, Node]]:
    """Sums ``k*(A//n) + c`` as ``k*((A + n*d)//n) + (c - k*d)``, if ``A`` has a constant to be added anyway.

    Either nothing is left of the constant ``c``, or the dividend is no more negative, which spares mending its sign.
    """
    quotients = builder.quotients.of_shifted
    for c in needed if quotients else ():
        for node in list(builder.graph.classes[c]):
            constant, terms = sum_terms(node) if node[0] == "sum" else (0, {})
            if constant:
                for a in quotients.keys() & terms.keys():
                    by, uneven = divmod(constant, terms[a])
                    for times in dict.fromkeys([0 if uneven else by, _times_below_zero(builder, quotients[a])]):
                        shifted = builder.quotients.shifted(quotients[a], times) if times else None
                        if shifted is not None:
                            rest = constant - times * terms[a]
                            yield c, sum_of([(shifted if b == a else b, k) for b, k in terms.items()], rest)


def _times_below_zero(builder: Builder, quotient: Expr) -> int:
    """How many divisors a dividend needs not to be negative, if its quotient is the cheaper for it."""
    n = quotient.args[1].vmin
    return _periods_below_zero(builder.theory.plain_bounds(builder.theory.inner(quotient.args[0]))[0], n) // n


def of_products(builder: Builder) -> Iterator[tuple[int, Node]]:
    """Sums of products by literals that are there, which cost nothing more; ``x*36`` as ``x*9*4`` beside ``x*9``."""
    forms = [(c, form) for c, form in enumerate(builder.values) if isinstance(form, LinearForm)]
    alone = [(c, form) for c, form in forms if len(form.terms) == 1 and not form.constant]
    products = {pair: c for c, form in alone for pair in form.terms.items() if pair[1] > 1}
    atoms = {atom: c for c, form in alone for atom, k in form.terms.items() if k == 1}
    scales: dict[Expr, list[int]] = defaultdict(list)
    for atom, k in products:
        if not is_power_of_two(k):
            scales[atom].append(k)
    for atom, found in scales.items():
        for k, j in permutations(found, 2) if len(found) > 1 else ():
            if not k % j and is_power_of_two(k // j):
                yield products[atom, k], ("mul", None, (products[atom, j], builder.add_class(number(k // j))))

    def multiple(atom: Expr, k: int) -> tuple[int, int]:
        product = products.get((atom, abs(k)))
        if product is None:
            return atoms[atom] if atom in atoms else builder.add_class(atom_form(atom)), k
        return product, 1 if k > 0 else -1

    for c, form in forms if products else ():
        if len(form.terms) > 1 and not products.keys().isdisjoint([(a, abs(k)) for a, k in form.terms.items()]):
            yield c, sum_of([multiple(a, k) for a, k in form.terms.items()], form.constant)


def _by_sums(builder: Builder, needed: Mapping[int, Node], others: Collection[int]) -> Iterator[tuple[int, Node]]:
    """Sums with a multiple of another, or of its quotient, in place of terms that both have.

    Of sums that are ``needed``, and of those ``others`` that conditions may be compared by. What takes a quotient or a
    remainder may be no shorter for it, and then be a multiple of another sum: ``70*x + 142*y - 419*((x + 2*y)//6)`` is
    ``70*S - 419*(S//6)`` for an ``S = x + 14*y``.
    """
    if sum(map(builder.is_sum, needed)) < 2:
        return
    forms = [(c, value) for c, value in enumerate(builder.values) if isinstance(value, LinearForm)]
    atoms = {atom: c for c, form in forms if (atom := form.single()) is not None}

    def by_class(classes: Iterable[int]) -> dict[int, dict[int, int]]:
        found = {c: builder.form_of(c).terms for c in classes if builder.is_sum(c)}
        return {c: {atoms[a]: k for a, k in found[c].items()} for c in found if found[c].keys() <= atoms.keys()}

    sums = by_class([*needed, *others])
    quotients = list(_quotients_of(builder, sums))
    yield from quotients
    remainders = list(_remainders_of(builder, sums))
    parts = sums | by_class([*[c for c, _ in quotients], *remainders])
    # what is affine stays so
    affine = {c for c in parts if builder.form_of(c).is_affine()}
    having: dict[int, list[int]] = defaultdict(list)
    for part, terms in parts.items():
        for a in terms:
            having[a].append(part)
    digits = dict.fromkeys([*[c for c, node in quotients if node[0] == "floordiv"], *remainders])
    having_digit: dict[int, list[int]] = defaultdict(list)
    for digit in [digit for digit in digits if digit in parts]:
        for atom in builder.form_of(digit).terms:
            if atom.op == "floordiv":
                having_digit[atoms[atom]].append(digit)
    for c in sums:
        for node in list(builder.graph.classes[c]):
            op, _, args = node
            if op != "sum" or len(args) < 3:
                continue
            constant, terms = sum_terms(node)
            shared = Counter([part for a in args for part in having.get(a, ()) if part in affine or c not in affine])
            is_wide = len(args) > LIMITS.wide_sum
            most = LIMITS.parts_of_wide if is_wide else LIMITS.parts
            ranked = [part for part in sorted(shared, key=shared.__getitem__, reverse=True)[:most] if part != c]
            # more must vanish than the part itself and what it has besides
            able = [part for part in ranked if 2 * shared[part] > len(parts[part]) + 1]
            able = [part for part in able if not (c in needed and part in needed[c][2])]
            found = [*_with_multiples(builder, (constant, terms), able, parts)]
            of_args = Counter([digit for a in args for digit in having_digit.get(a, ()) if digit != c and not is_wide])
            for digit in sorted(of_args, key=of_args.__getitem__, reverse=True)[: LIMITS.parts]:
                others = [part for part in ranked if part != digit]
                for as_long in _with_multiples(builder, (constant, terms), [digit], parts, by=0):
                    found += _with_multiples(builder, as_long, others, parts)
            for left, shorter in found:
                yield c, sum_of([*shorter.items()], left)


def _with_multiples(
    builder: Builder,
    total: tuple[int, Mapping[int, int]],
    among: Iterable[int],
    parts: Mapping[int, Mapping[int, int]],
    by: int = 1,
) -> Iterator[tuple[int, dict[int, int]]]:
    """A sum, by its constant and the coefficients of classes, with multiples of parts that shorten it ``by`` terms."""
    constant, terms = total
    for part in among:
        of_part = parts[part]
        shared = [(terms[a], k) for a, k in of_part.items() if a in terms]
        besides = len(of_part) - len(shared) + (part not in terms)
        if len(shared) < besides - 1 + by:
            continue
        scales = [of_sum // k for of_sum, k in shared if not of_sum % k]
        for scale in sorted(set(scales)) if len(scales) >= besides else ():
            # more terms vanish than are added
            if scales.count(scale) >= besides - (terms.get(part) == -scale) + by:
                left = dict(terms)
                for a, k in of_part.items():
                    left[a] = left.get(a, 0) - scale * k
                left[part] = left.get(part, 0) + scale
                yield constant - scale * builder.form_of(part).constant, {a: k for a, k in left.items() if k}


def _remainders_of(builder: Builder, sums: Iterable[int]) -> Iterator[int]:
    """The classes that are there of ``A % n`` for quotients ``A // n`` in sums."""
    for atom in {a: None for c in sums for a in builder.form_of(c).terms if a.op == "floordiv"}:
        remainder = builder.classes.remainder_of(atom)
        if remainder in builder.classes:
            yield builder.add_class(remainder)


def _quotients_of(builder: Builder, sums: Iterable[int]) -> Iterator[tuple[int, Node]]:
    """``A//n + w`` as ``B//n`` for sums ``B`` that differ from ``A`` by ``n*w`` and a constant."""
    theory = builder.theory
    forms = {c: form for c in sums if len((form := builder.form_of(c)).terms) <= LIMITS.wide_sum}
    wanted: dict[int, dict[LinearForm, set[int]]] = defaultdict(lambda: defaultdict(set))
    for atom in {a: None for form in forms.values() for a in form.terms if a.op == "floordiv"}:
        if (n := literal_divisor(atom)) > 1:
            dividend = theory.inner(atom.args[0])
            wanted[n][residues(dividend, n)].add(dividend.constant)
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
            for constant in sorted(dividends.get(residues(form, n), ())):
                dividend = LinearForm(form.terms, constant)
                quotient = theory.quotient_by(dividend, n)
                if len(quotient.terms) > 1:
                    below = builder.add_class(dividend)
                    if below != c:
                        yield below, ("sum", (constant - form.constant, (1,)), (c,))
                    yield builder.add_class(quotient), ("floordiv", None, (below, builder.add_class(number(n))))
    yield from _of_finer_sums(builder, forms)


def _of_finer_sums(builder: Builder, forms: Mapping[int, LinearForm]) -> Iterator[tuple[int, Node]]:
    """``A//n + w`` as ``B//(k*n)`` for sums ``B`` that differ from ``k*A`` by ``k*n*w`` and what does not count."""
    theory = builder.theory
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
                yield builder.add_class(quotient), ("floordiv", None, (c, builder.add_class(number(k * n))))


def _by_bounds(builder: Builder) -> Iterator[tuple[int, Node]]:
    """Conditions as bounds of their variables, where these were found to say the same."""
    for condition, bounds in builder.theory.by_bounds.items():
        if condition in builder.classes and bounds is not condition and bounds.args:
            yield builder.add_class(condition), (bounds.op, None, builder.operands(bounds))


def _merged(builder: Builder, conditions: Sequence[tuple[int, Expr]]) -> Iterator[tuple[int, Node]]:
    """``3 <= x and 3 <= y`` as ``3 <= min(x, y)``, or as ``6 <= x + y`` where neither is more."""
    pending, seen = [*conditions], {c for c, _ in conditions}
    for c, condition in pending:
        if condition.op in ("and", "or"):
            for node in builder.conditions.merged(condition, alike=True):
                yield c, node
                # some of the members that are left may be merged too
                pending += [(a, left) for a in node[2] if a not in seen and isinstance(left := builder.values[a], Expr)]
                seen.update(node[2])
        elif condition.op in ("lt", "le"):
            for node in builder.conditions.in_parts(condition):
                yield c, node
        for node in builder.conditions.at_ends(condition):
            yield c, node


def _add_by_dividends(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> dict[int, Node]:
    """Add sums as multiples of a dividend and of its quotient; those with nothing besides, and the quotients.

    ``7*x - 524*y - 1259*((x - 75*y)//180)`` needs one ``x + 105*y``: a normal form has the smallest coefficients below
    ``//``, so a sum beside it that was a multiple of what is divided is none any more. Which multiple of 180 the
    dividend has lost is what makes both one again: of ``a*S + c*(S//n)`` the normal form is ``R + c*(D//n)``, where
    ``S`` is ``D + n*w`` and ``R - a*D`` is ``(c + a*n)*w``.
    """
    found: dict[int, Node] = {}
    for c, form in forms:
        if builder.theory.late_or_raise():
            break
        if not 2 < len(form.terms) <= LIMITS.wide_sum:
            continue
        for atom, coefficient in form.terms.items():
            for dividend, n in _readings(builder, atom):
                for whole, left, a in _dividends(builder, form, atom, coefficient, dividend, n):
                    base, quotient = builder.add_class(whole), builder.theory.quotient_by(whole, n)
                    divided = builder.add_class(quotient, expand=False)
                    division: Node = ("floordiv", None, (base, builder.add_class(number(n))))
                    multiples = builder.sum_node([(whole, a), (quotient, coefficient)], left)
                    builder.add_node(divided, division)
                    builder.add_node(c, multiples)
                    if not left.terms:
                        found |= {divided: division, c: multiples}
    return found


def _readings(builder: Builder, atom: Expr) -> Iterator[tuple[LinearForm, int]]:
    """The dividends and divisors of which an atom is the quotient, if it is one by a literal."""
    n = literal_divisor(atom)
    if not n:
        return
    dividend = builder.theory.inner(atom.args[0])
    yield dividend, n
    for inside, k in dividend.terms.items():
        # (x//b + r)//n is (x + b*r)//(b*n), and -(x//b) is (b - 1 - x)//b
        if abs(k) == 1 and (b := literal_divisor(inside)) > 1:
            below = builder.theory.inner(inside.args[0])
            rest = dividend.plus(atom_form(inside), -k)
            yield rest.times(b).plus(below, k).shifted(b - 1 if k < 0 else 0), b * n


def _dividends(
    builder: Builder, form: LinearForm, atom: Expr, coefficient: int, dividend: LinearForm, n: int
) -> Iterator[tuple[LinearForm, LinearForm, int]]:
    """Dividends of a quotient in a sum, with what is left of that beside a multiple of them and of the quotient."""
    rest = form.plus(atom_form(atom), -coefficient)
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
        shifts[_periods_below_zero(builder.theory.plain_bounds(total)[0], n) // n] = None
        for shift in shifts:
            yield total.shifted(n * shift), left.shifted(-step * shift), a


@provides("intervals")
def as_intervals(
    builder: Builder, conditions: Sequence[tuple[int, Expr]], there: Iterable[int]
) -> Iterator[tuple[int, Node]]:
    """Conditions as ``low <= F``, ``F < high``, both, or ``F == low``, for classes ``F`` affine in variables."""
    sums: dict[frozenset[Expr], dict[LinearForm, LinearForm]] = defaultdict(dict)
    for c in there:
        value = builder.values[c]
        if isinstance(value, LinearForm) and value.terms and value.is_affine():
            of_direction = sums[frozenset(value.terms)]
            direction = LinearForm(value.terms, 0)
            if direction not in of_direction or not value.constant:
                of_direction[direction] = value
    pairs = 0
    together: dict[tuple[Expr, ...], list[tuple[int, Expr, list[LinearForm]]]] = defaultdict(list)
    for c, condition in conditions:
        names = tuple(sorted(variables([condition]), key=lambda v: v.key))
        if domain_size(names) > THEORY_LIMITS.condition_points:
            continue
        own = compared_sum(condition)
        # of fewer variables it is no interval, unless it does not depend on the others
        directions = [f for d, f in _over(frozenset(names), sums).items() if d not in own]
        pairs += len(directions)
        signs = _signs(own[0]) if own else None
        if signs is not None and signs not in directions:
            directions.append(signs)
        if directions and pairs <= LIMITS.condition_pairs:
            together[names].append((c, condition, directions))
    for names, members in together.items():
        used = list(dict.fromkeys(f for _, _, directions in members for f in directions))
        terms = [condition for _, condition, _ in members] + [to_expr(f) for f in used]
        points = grid(names)
        shape = [extent(v) for v in names]
        values = [np.broadcast_to(x, shape) for x in evaluate(terms, points, total=True)]
        of_sum = dict(zip(used, values[len(members) :], strict=True))
        for (c, _, directions), holds in zip(members, values, strict=False):
            if holds.all() or not holds.any():
                continue
            for form in directions:
                if (node := _as_interval(builder, form, of_sum[form], holds)) is not None:
                    yield c, node
                    if node[0] in ("le", "lt") and not form.constant:
                        sides = [to_expr(builder.form_of(a)) for a in node[2]]
                        yield from ((c, moved) for moved in builder.conditions.moved(make(node[0], *sides)))


def worth_reading(condition: Expr) -> bool:
    """Whether another alternative may be cheaper: not for a variable beside a literal."""
    if condition.op in COMPARISONS:
        if condition.args[0].is_bool or {a.op for a in condition.args} <= {"var", "const"}:
            return False
    elif condition.op not in ("and", "or"):
        return False
    return not any(
        term.op in UNINTERPRETED or (term.op == "var" and is_index(term)) or may_divide_by_zero(term)
        for term in topological([condition])
    )


def compared_sum(condition: Expr) -> list[LinearForm]:
    """The sum that a comparison compares with a literal, and its opposite."""
    compared = [a for a in condition.args if a.op != "const"] if condition.op in COMPARISONS else []
    if len(compared) != 1:
        return []
    direction = LinearForm(read(compared[0]).terms, 0)
    return [direction, direction.times(-1)]


def _signs(form: LinearForm) -> LinearForm | None:
    """The sum of variables without their multiples, ``x - y`` of ``3*x - 4*y``; ``None`` if there are none."""
    if len(form.terms) < 2 or not form.is_affine() or all(abs(k) == 1 for k in form.terms.values()):
        return None
    return LinearForm({v: 1 if k > 0 else -1 for v, k in form.terms.items()}, 0)


def _over(
    names: frozenset[Expr], sums: Mapping[frozenset[Expr], Mapping[LinearForm, LinearForm]]
) -> dict[LinearForm, LinearForm]:
    """By direction, the sums over just these variables, and what longer ones have of them."""
    found = dict(sums.get(names, {}))
    for wider, of_direction in sums.items():
        if 1 < len(names) < len(wider) and names < wider:
            for direction in of_direction:
                part = {v: direction.terms[v] for v in direction.terms if v in names}
                content = gcd(*part.values())
                primitive = LinearForm({v: k // content for v, k in part.items()}, 0)
                found.setdefault(primitive, primitive)
    return found


def _as_interval(builder: Builder, form: LinearForm, values: NDArray[Any], holds: NDArray[Any]) -> Node | None:
    """The node that compares ``form``, with these values, such that it holds where it should; ``None`` if none."""
    inside = values[holds]
    low, high = int(inside.min()), int(inside.max())
    outside = values[~holds]
    if low == high and not (outside == low).any():
        return builder.node("eq", form, number(low))
    step = int(np.gcd.reduce(inside - low))
    if step > 1 and not ((outside - low) % step == 0).any():
        remainder = builder.theory.remainder(form, number(step))
        return builder.node("eq", remainder, number(low % step))
    above, below = outside > high, outside < low
    if not (above | below).all():
        least, most = int(outside.min()), int(outside.max())
        if least != most or (inside == least).any():
            return None
        return builder.node("ne", form, number(least))
    parts: list[Node] = []
    if below.any():
        parts.append(builder.node("le", number(low), form))
    if above.any():
        parts.append(builder.node("lt", form, number(high + 1)))
    if len(parts) == 1:
        return parts[0]
    return "and", None, tuple([_class_of(builder, part) for part in parts])


def _class_of(builder: Builder, comparison: Node) -> int:
    """The class of a comparison with a literal, with this e-node."""
    op, _, operands = comparison
    terms = [to_expr(builder.form_of(a)) for a in operands]
    c = builder.add_class(builder.theory.condition(make(op, *terms)))
    builder.add_node(c, comparison)
    return c


class CongruentRemainders:
    """Adds the same remainders of other sums, for each remainder once."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        # classes with the divisors of their remainders, and how many classes were read as wider remainders
        self._added: set[tuple[int, int]] = set()
        # classes with the operands of those of their remainders whose extremes were turned
        self._turned: set[tuple[int, ...]] = set()
        self._read = 0

    @provides("congruent remainders", otherwise=lambda self, there=None: False)
    def add(self, there: Collection[int] | None = None) -> bool:
        """Add the congruent remainders of those that are new; whether there were any.

        ``there`` are the classes to divide instead: what the roots are computed from, if none are given.
        """
        builder = self.builder
        size = builder.classes.size
        remainders: dict[int, list[tuple[int, LinearForm]]] = defaultdict(list)
        self._turn_extremes()
        for c, n, dividend in [*self._remainders(), *self._wider_remainders()]:
            remainders[n].append((c, dividend))
        if remainders:
            if there is None:
                classes = builder.graph.classes
                # by the first e-node of each
                there = reached(builder.graph.roots, lambda c: classes[c][0][2] if classes[c] else ())
            there = sorted(there)
            for n, dividends in remainders.items():
                self._by_residues(n, dividends, there)
        return builder.classes.size > size

    def _remainders(self) -> Iterator[tuple[int, int, LinearForm]]:
        """Every new remainder: its class, its divisor and what is divided."""
        for c, nodes in self.builder.graph.classes.items():
            for op, _, args in nodes:
                if op == "mod" and (c, args[1]) not in self._added:
                    self._added.add((c, args[1]))
                    divisor = self.builder.form_of(args[1])
                    if not divisor.terms and divisor.constant > 1:
                        yield c, divisor.constant, self.builder.form_of(args[0])

    def _turn_extremes(self) -> None:
        """Add ``(A - k*m) % n`` to ``(A + k*m) % n`` for an extreme ``m`` where ``2*k`` is a multiple of ``n``.

        A maximum is a sum with a minimum subtracted, which is not seen in one to which the minimum is added.
        """
        for c, nodes in list(self.builder.graph.classes.items()):
            for op, _, args in [*nodes]:
                if op != "mod" or (c, *args) in self._turned:
                    continue
                self._turned.add((c, *args))
                dividend, divisor = (self.builder.form_of(a) for a in args)
                n = divisor.constant
                if divisor.terms or n == 0 or n % 2:
                    continue
                for atom, k in dividend.terms.items():
                    if atom.op == "min" and k % (n // 2) == 0:
                        turned = self.builder.add_class(dividend.plus(atom_form(atom), -2 * k))
                        self._turned.add((c, turned, args[1]))
                        self.builder.add_node(c, ("mod", None, (turned, args[1])))

    def _wider_remainders(self) -> Iterator[tuple[int, int, LinearForm]]:
        """New classes as remainders by multiples of what they divide by."""
        values = self.builder.values
        classes, self._read = range(self._read, len(values)), len(values)
        for c in classes:
            value = values[c]
            for dividend, n in wider_remainders(self.builder, value) if isinstance(value, LinearForm) else ():
                yield c, n, dividend

    def _by_residues(self, n: int, dividends: list[tuple[int, LinearForm]], there: list[int]) -> None:
        """Add remainders by ``n`` of the first congruent class that is there, and of the first but for a literal."""
        builder = self.builder
        values = builder.values
        wanted: dict[LinearForm, list[int]] = {residues(dividend, n): [] for _, dividend in dividends}
        # they have the atoms that are left of the dividend
        atoms = {next(iter(left.terms), None) for left in wanted}
        for c in there:
            value = values[c]
            if isinstance(value, LinearForm) and len(value.terms) > 1 and not atoms.isdisjoint(value.terms):
                found = wanted.get(residues(value, n))
                if found is not None:
                    found.append(c)
        for c, dividend in dividends:
            others = [other for other in wanted[residues(dividend, n)] if other != c and values[other] != dividend]
            shifts = {other: (dividend.constant - builder.form_of(other).constant) % n for other in others}
            divisor = builder.add_class(number(n))
            for other in [other for other in others if not shifts[other]][:1]:
                builder.add_node(c, ("mod", None, (other, divisor)))
            for other in [other for other in others if shifts[other]][:1]:
                shifted = builder.add_class(builder.form_of(other).shifted(shifts[other]), expand=False)
                builder.add_node(shifted, ("sum", (shifts[other], (1,)), (other,)))
                builder.add_node(c, ("mod", None, (shifted, divisor)))


def wider_remainders(builder: Builder, form: LinearForm) -> Iterator[tuple[LinearForm, int]]:
    """The dividends and divisors of ``k*(A % n) + r`` as ``(k*A + r) % (k*n)``, for ``r`` in ``[0, k)``."""
    for quotient, coefficient in form.terms.items() if len(form.terms) <= LIMITS.wide_sum else ():
        n = literal_divisor(quotient)
        k, left = divmod(-coefficient, n) if n else (0, 0)
        if k > 1 and not left:
            low, high = builder.theory.bounds(form.plus(builder.classes.remainder_of(quotient), -k))
            if low >= 0 and high < k:
                yield form.plus(atom_form(quotient), -coefficient), -coefficient


def residues(form: LinearForm, n: int) -> LinearForm:
    """The coefficients modulo ``n``, without those that are zero and without the constant."""
    return LinearForm({atom: k % n for atom, k in form.terms.items() if k % n}, 0)
