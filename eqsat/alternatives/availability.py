"""Availability: alternatives that use what is computed anyway.

A normal form is short on its own: ``i == 1 and j == 0`` says less than ``4*i + j == 4``, and ``(j - i) % 4`` has
smaller coefficients than ``(3*i + j) % 4``. Where the program needs ``4*i + j`` or ``3*i + j`` besides, the longer one
is the cheaper. So once all classes of a :class:`~eqsat.alternatives.builder.Builder` are known and a first answer is
chosen, each condition is added as an interval of a sum over its variables
(:mod:`eqsat.alternatives.intervals`), each sum as a multiple of another and what that leaves
(:mod:`eqsat.alternatives.multiples`), and each remainder of congruent sums (:mod:`eqsat.alternatives.congruent`). Here
are the others, and the order of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import chain, pairwise
from typing import cast

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.canonical import shift_to_non_negative
from eqsat.alternatives.congruent import CongruentRemainders, wider_remainders
from eqsat.alternatives.intervals import as_intervals, worth_reading
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.multiples import add_by_dividends, by_sums, of_multiples, of_products
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node, sum_of, sum_payload, sum_terms
from eqsat.lang.expr import Expr
from eqsat.lang.traversal import chain_members, is_long_chain
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, Value, atom_form, literal_divisor, number, to_expr
from eqsat.theory.periods import lacking


@provides("availability", otherwise=lambda builder, needed: None)
def add_available(builder: Builder, needed: Mapping[int, Node]) -> list[dict[int, Node]] | None:
    """Add to the classes of ``builder`` the alternatives that use other classes of it, and what they need.

    ``needed`` are the classes that the answer so far needs, and how it writes them. What is returned are sets of
    alternatives, by class, that may pay only if they are all chosen: wider remainders; remainders in place of
    quotients; multiples of dividends; and, for each sum that the answer does not need, those that use it. It is
    ``None`` if nothing new was found.
    """
    values = [(c, builder.values[c]) for c in needed]
    # what divides, or has an extreme
    forms = [(c, value) for c, value in values if isinstance(value, LinearForm) and not value.is_affine()]
    conditions = list(_conditions(values, needed))
    wider = list(_wider_remainders(builder, forms))
    whole = list(_without_quotients(builder, needed))
    found = [*_by_bounds(builder), *wider, *whole]
    found += _in_time(
        builder,
        _never_negative(builder, forms),
        _rounded_down(builder, forms),
        _merged(builder, conditions),
        _windows(builder, conditions, values),
        _by_needed(builder, conditions, needed),
    )
    junctions = [condition for _, condition in conditions if condition.op in ("and", "or")]
    readable = [(c, condition) for c, condition in conditions if worth_reading(condition)]
    moved = builder.conditions.moved
    intervals = list(as_intervals(builder.classes, readable, sorted(needed), moved)) if readable else []
    compared = dict.fromkeys(c for _, node in intervals for c in node[2] if builder.is_sum(c))
    by_dividends = add_by_dividends(builder.classes, forms)
    builder.grow()
    found += [*intervals, *_in_time(builder, by_sums(builder.classes, needed, compared))]
    found += _in_time(builder, _merged_as_written(builder, junctions, chain(needed.items(), intervals)))
    for c, node in found:
        builder.add_node(c, node)
    has_more = _add_beside(builder, needed, forms)
    if not found and not has_more and not by_dividends:
        return None
    builder.grow()
    around = _around(builder, needed, [c for c in compared if c not in needed])
    return [dict(wider), dict(whole), by_dividends, *[nodes for nodes in around if len(nodes) >= LIMITS.users]]


def _conditions(values: Iterable[tuple[int, Value]], needed: Mapping[int, Node]) -> Iterator[tuple[int, Expr]]:
    """The conditions; of a junction of many operands no part that has many too, since all parts have their square."""
    parts = {a for op, _, args in needed.values() if op in ("and", "or") for a in args if needed[a][0] == op}
    for c, value in values:
        if isinstance(value, Expr) and not (c in parts and is_long_chain(value, LIMITS.wide_sum)):
            yield c, value


def _add_beside(builder: Builder, needed: Mapping[int, Node], forms: Sequence[tuple[int, LinearForm]]) -> bool:
    """Add the alternatives that use classes which others have added; whether there are any."""
    found = _in_time(
        builder,
        _masked(builder, needed),
        _in_two_steps(builder, forms),
        _shifted(builder),
        _of_shifted(builder, needed),
        _one_term_apart(builder, needed),
        of_multiples(builder.classes, needed),
        _taken_in(builder, needed),
        _without_sign(builder, needed),
        _negated(builder, needed),
        of_products(builder.classes),
    )
    for c, node in found:
        builder.add_node(c, node)
    return CongruentRemainders(builder.classes).add(needed) or bool(found)


def _in_time(builder: Builder, *found: Iterable[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """What is found, one search after the other, until the time is up."""
    kept: list[tuple[int, Node]] = []
    for item in chain(*found):
        if builder.theory.late_or_raise():
            break
        kept.append(item)
    return kept


def _around(builder: Builder, needed: Mapping[int, Node], some: Iterable[int]) -> Iterator[dict[int, Node]]:
    """For each of ``some``, by class of the answer its first alternative that uses it or a user outside the answer."""
    classes = builder.graph.classes
    above: dict[int, set[int]] = {c: {c} for c in some}
    # by operand, the classes of the answer with an alternative that uses it, each with the place of the first
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for user, nodes in classes.items() if above else ():
        for place, (_, _, args) in enumerate(nodes):
            for a in args:
                if user in needed:
                    places[a].setdefault(user, place)
                elif a in above:
                    above[a].add(user)
    for operands in above.values():
        first: dict[int, int] = {}
        for a in operands:
            for user, place in places[a].items():
                first[user] = min(place, first.get(user, place))
        yield {user: classes[user][first[user]] for user in needed if user in first}


def _wider_remainders(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``k*(A % n) + r`` as ``(k*A + r) % (k*n)`` for ``r`` in ``[0, k)``."""
    for c, form in forms:
        for dividend, n in wider_remainders(builder.classes, form):
            shift = shift_to_non_negative(builder.theory.plain_bounds(dividend)[0], n)
            yield c, builder.node("mod", dividend.shifted(shift), number(n))


def _never_negative(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``A % n`` as ``(A + k*n) % n``, whose dividend is never negative, where that makes it cheaper.

    Likewise ``A//m % n`` as ``(A + k*m*n)//m % n``.
    """
    graph = builder.graph
    for c, _ in forms:
        for op, _, args in graph.classes[c]:
            divisor = builder.form_of(args[1]) if op == "mod" else None
            if divisor is None or divisor.terms:
                continue
            dividend, (low, _) = builder.form_of(args[0]), builder.classes.narrowed_sum(args[0])
            quotient = dividend.direction().single()
            if quotient is not None and literal_divisor(quotient) and (least := _times_below_zero(builder, quotient)):
                # in the dividend of the quotient the addition makes both divisions cheaper
                shifted = builder.quotients.shifted(quotient, least + (dividend.constant - least) % divisor.constant)
                if shifted is not None:
                    yield c, ("mod", None, (shifted, args[1]))
            if low < 0 and builder.theory.touched:
                # facts were used, but it is priced by the ranges of variables
                low = min(low, to_expr(dividend).vmin)
            shift = shift_to_non_negative(low, divisor.constant)
            if shift:
                shifted = builder.add_class(dividend.shifted(shift), expand=False)
                for other, payload, operands in graph.classes[args[0]]:
                    if other == "sum":
                        constant, coefficients = sum_payload(payload)
                        builder.add_node(shifted, ("sum", (constant + shift, coefficients), operands))
                builder.add_node(shifted, ("sum", (shift, (1,)), args[:1]))
                yield c, ("mod", None, (shifted, args[1]))


def _rounded_down(builder: Builder, forms: Iterable[tuple[int, LinearForm]]) -> Iterator[tuple[int, Node]]:
    """``k*n*(A//n)`` as ``k*A - k*(A % n)`` where the remainder has a class."""
    for c, form in forms:
        for of in builder.theory.remainders_in(form):
            remainder = builder.classes.remainder_of(of.quotient)
            if remainder in builder.classes and remainder != form and len(of.rest.terms) <= len(form.terms):
                yield c, builder.sum_node([(remainder, of.scale)], of.rest)


def _without_quotients(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``n*(A//n)`` as ``A - A%n`` where nothing else needs the quotient, for an ``n`` above zero that is no literal.

    By such divisors a remainder costs less than a quotient.
    """
    products = [(c, *pair) for c, (op, _, args) in needed.items() if op == "mul" for pair in (args, args[::-1])]
    products = [(c, a, n) for c, a, n in products if needed[a][0] == "floordiv" and needed[n][0] != "const"]
    uses = Counter(chain(builder.graph.roots, *[args for _, _, args in needed.values()])) if products else {}
    for c, a, n in products:
        parts = needed[a][2]
        if uses[a] > 1 or needed[parts[1]] != needed[n]:
            continue
        # for an n of 0 the product is 0, but A % n is not defined
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
                if quotient in builder.classes or quotient.direction() in builder.classes:
                    yield c, builder.node("floordiv", quotient, number(m // n))


def _as_quotient(theory: Arithmetic, form: LinearForm) -> tuple[LinearForm, int] | None:
    """The dividend and the literal divisor of what is one quotient, or its opposite, and a constant."""
    atom, k = form.direction().multiple() or (None, 0)
    if atom is None or abs(k) > 1 or not (n := literal_divisor(atom)):
        return None
    dividend = theory.inner(atom.args[0])
    return dividend.times(k).shifted(form.constant * n + (lacking(dividend, n) if k < 0 else 0)), n


def _shifted(builder: Builder) -> Iterator[tuple[int, Node]]:
    """Sums that differ in their constants alone, from the one whose constant is nearest to zero."""
    directions: dict[LinearForm, dict[int, int]] = defaultdict(dict)
    for c, form in enumerate(builder.values):
        if isinstance(form, LinearForm) and form.constant and form.terms:
            directions[form.direction()][c] = form.constant
    for direction, constants in directions.items():
        if direction in builder.classes and direction.single() is None:
            constants[builder.add_class(direction)] = 0
        base = min(constants, key=lambda c: (abs(constants[c]), c))
        yield from ((c, ("sum", (constants[c] - constants[base], (1,)), (base,))) for c in constants if c != base)


def _of_shifted(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``x*8 + y - 512`` as ``(x - 64)*8 + y`` where ``x - 64`` is there."""
    # by atom, the classes of a multiple and a constant, with both of these
    parts: dict[LinearForm, list[tuple[int, int, int]]] = defaultdict(list)
    for c in needed:
        value = builder.values[c]
        if isinstance(value, LinearForm) and value.constant and len(value.terms) == 1:
            ((atom, k),) = value.terms.items()
            parts[atom_form(atom)].append((c, k, value.constant))
    by_class = {builder.add_class(atom): found for atom, found in parts.items()}
    for c, constant, terms in _with_constants(builder, needed, by_class):
        for a in terms.keys() & by_class.keys():
            for part, k, of_part in by_class[a]:
                scale, uneven = divmod(terms[a], k)
                if not uneven and part != c and part not in terms and scale * of_part == constant:
                    yield c, sum_of([(part, scale), *[(b, j) for b, j in terms.items() if b != a]], 0)


def _one_term_apart(builder: Builder, needed: Collection[int]) -> Iterator[tuple[int, Node]]:
    """``x*z - z*2`` as ``x*z - z*3 + z`` where that is there: the two differ by a term times a power of two."""
    values = [(c, builder.values[c]) for c in needed]
    forms = [(c, form, frozenset(form.terms)) for c, form in values if isinstance(form, LinearForm)]
    # they have the same atoms
    alike = Counter([atoms for _, _, atoms in forms])
    # by a term and the rest of a sum, the coefficients of the term in the sums with that rest
    sums: dict[tuple[Expr, LinearForm], list[tuple[int, int]]] = defaultdict(list)
    for c, form, atoms in forms:
        for atom, k in form.terms.items() if alike[atoms] > 1 and 1 < len(atoms) <= LIMITS.wide_sum else ():
            sums[atom, form.without(atom)].append((k, c))
    for (atom, _), found in sums.items():
        for (j, less), (k, more) in pairwise(sorted(found)):
            if is_power_of_two(k - j):
                term = builder.add_class(atom_form(atom))
                yield more, sum_of([(less, 1), (term, k - j)], 0)
                yield less, sum_of([(more, 1), (term, j - k)], 0)


def _negated(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``where(p, x, y)`` as ``where(not p, y, x)`` where that condition is needed anyway."""
    for c, (op, _, args) in needed.items():
        if op == "where":
            opposite = builder.theory.negate(cast(Expr, builder.values[args[0]]))
            if opposite in builder.classes and (other := builder.add_class(opposite)) in needed:
                yield c, ("where", None, (other, args[2], args[1]))


def _taken_in(builder: Builder, needed: Collection[int]) -> Iterator[tuple[int, Node]]:
    """Sums ``k*(A//n) + c`` as ``k*((A + n*d)//n) + (c - k*d)``, if ``A`` has a constant to be added anyway.

    Either nothing is left of the constant ``c``, or the dividend is no longer negative: then the division is cheaper.
    """
    quotients, shifted_by = builder.quotients.of_shifted, cache(builder.quotients.shifted)
    for c, constant, terms in _with_constants(builder, needed, quotients):
        for a in quotients.keys() & terms.keys():
            by, uneven = divmod(constant, terms[a])
            for times in dict.fromkeys([0 if uneven else by, _times_below_zero(builder, quotients[a])]):
                shifted = shifted_by(quotients[a], times) if times else None
                if shifted is not None:
                    yield c, _with_shifted(terms, constant, a, shifted, times)


def _without_sign(builder: Builder, needed: Mapping[int, Node]) -> Iterator[tuple[int, Node]]:
    """``k*(A//n) + c`` as ``k*((A + n*d)//n) + (c - k*d)`` for a ``d`` that no dividend is negative with.

    That pays where ``A`` or the sum has a literal anyway: the other one costs less than the sign.
    """
    quotients = builder.quotients.signed
    for c in needed if quotients else ():
        for node in builder.graph.classes[c][: LIMITS.nodes_with_constants]:
            if node[0] == "floordiv" and c in quotients and builder.form_of(node[2][0]).constant:
                constant, terms = 0, {c: 1}
            elif _adds_constant(node, quotients):
                constant, terms = sum_terms(node)
            else:
                continue
            for a in quotients.keys() & terms.keys():
                times = _times_below_zero(builder, quotients[a])
                shifted = builder.quotients.shifted(quotients[a], times)
                if shifted is not None:
                    yield c, _with_shifted(terms, constant, a, shifted, times)


def _with_constants(
    builder: Builder, needed: Collection[int], classes: Mapping[int, object]
) -> Iterator[tuple[int, int, dict[int, int]]]:
    """The sums of some of ``classes`` and a constant: of each its class, the constant, and its coefficients."""
    for c in needed if classes else ():
        for node in builder.graph.classes[c][: LIMITS.nodes_with_constants]:
            if _adds_constant(node, classes):
                yield c, *sum_terms(node)


def _adds_constant(node: Node, classes: Mapping[int, object]) -> bool:
    """Whether a node is a sum of some of ``classes`` and a constant."""
    op, payload, args = node
    return op == "sum" and bool(sum_payload(payload)[0]) and not classes.keys().isdisjoint(args)


def _with_shifted(terms: Mapping[int, int], constant: int, quotient: int, shifted: int, times: int) -> Node:
    """A sum with another class for one of its quotients, whose dividend has ``times`` divisors more."""
    others = [(shifted if c == quotient else c, k) for c, k in terms.items()]
    return sum_of(others, constant - times * terms[quotient])


def _times_below_zero(builder: Builder, quotient: Expr) -> int:
    """How many divisors to add to a dividend so that it is never negative; 0 if its quotient is no cheaper so."""
    n = quotient.args[1].vmin
    return shift_to_non_negative(builder.theory.plain_bounds(builder.theory.inner(quotient.args[0]))[0], n) // n


def _by_bounds(builder: Builder) -> Iterator[tuple[int, Node]]:
    """Conditions as bounds of their variables, where these were found to say the same."""
    for condition, bounds in builder.theory.by_bounds.items():
        if condition in builder.classes and bounds is not condition and bounds.args:
            yield builder.add_class(condition), (bounds.op, None, builder.operands(bounds))


def _by_needed(
    builder: Builder, conditions: Iterable[tuple[int, Expr]], needed: Collection[int]
) -> Iterator[tuple[int, Node]]:
    """Comparisons with terms moved across so that a side is needed anyway."""
    for c, condition in conditions:
        yield from ((c, node) for node in builder.conditions.by_needed(condition, needed))


def _windows(
    builder: Builder, conditions: Sequence[tuple[int, Expr]], needed: Iterable[tuple[int, Value]]
) -> Iterator[tuple[int, Node]]:
    """``0 <= x and x < 14`` as ``x%16 < 14``, and ``x + where(p, 1, 2) < 9`` as ``x < where(p, 8, 7)``."""
    forms: dict[LinearForm, list[LinearForm]] = defaultdict(list)
    for _, value in needed if conditions else ():
        if isinstance(value, LinearForm) and value.terms:
            forms[value.line()].append(value)
    for c, condition in conditions:
        for node in chain(builder.conditions.windows(condition, forms), builder.conditions.by_selections(condition)):
            yield c, node


def _merged_as_written(
    builder: Builder, junctions: Sequence[Expr], comparisons: Iterable[tuple[int, Node]]
) -> Iterator[tuple[int, Node]]:
    """``3 <= x and 3 <= y`` as ``3 <= min(x, y)`` for sums that the answer or an interval compares with a literal.

    By its normal form a comparison may be one of another sum: ``1 <= i + g//2`` is ``2 <= i*2 + g``.
    """
    # by comparison its limits, (True, 3) for at most 3 and (False, 3) for at least 3, each with the class limited
    limits: dict[int, dict[tuple[bool, int], int]] = defaultdict(dict)
    for c, (op, _, args) in comparisons if junctions else ():
        if op in ("lt", "le"):
            low, high = map(builder.form_of, args)
            if low.terms and not high.terms:
                limits[c][True, high.constant - (op == "lt")] = args[0]
            elif high.terms and not low.terms:
                limits[c][False, low.constant + (op == "lt")] = args[1]
    for junction in junctions:
        members = chain_members(junction, junction.op)
        alike: dict[tuple[bool, int], dict[Expr, int]] = defaultdict(dict)
        for member in members if len(members) <= LIMITS.compared_sides else ():
            for limit, compared in limits[builder.add_class(member)].items() if member in builder.classes else ():
                alike[limit][member] = compared
        for (is_upper, literal), some in alike.items():
            if 1 < len(some) <= LIMITS.merged_sides:
                op = "max" if is_upper == (junction.op == "and") else "min"
                extreme = builder.form_of(reduce(partial(_extreme, builder, op), some.values()))
                if is_upper:
                    whole = builder.node("lt", extreme, number(literal + 1))
                else:
                    whole = builder.node("le", number(literal), extreme)
                for node in builder.conditions.instead(junction, members, [*some], whole):
                    yield builder.add_class(junction), node


def _extreme(builder: Builder, op: str, one: int, other: int) -> int:
    """The class of an extreme of two classes, with the node over just these."""
    c = builder.add_class(builder.theory.extreme(op, [builder.form_of(one), builder.form_of(other)]))
    builder.add_node(c, (op, None, (one, other)))
    return c


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
