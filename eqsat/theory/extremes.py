"""Minima and maxima of forms, in normal form.

A minimum is written as one operand, the base, plus a minimum of gaps: ``min(x, y) = x + min(y - x, 0)``. The only atoms
are ``min(gap, ..., 0)``, without a common factor. So terms that all operands share cancel, and a maximum,
``max(x, y) = -min(-x, -y)``, needs no atom of its own. Nested minima are flattened, and redundant operands are dropped,
of which absorption and distribution are consequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd

from eqsat.lang.expr import Expr, const, make
from eqsat.lang.ops import INFINITY, Array
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, Order, number, to_expr
from eqsat.theory.limits import LIMITS


def extreme_of(theory: Arithmetic, op: str, operands: Iterable[LinearForm]) -> LinearForm:
    """The normal form of the ``min`` or ``max`` of forms."""
    if op == "min":
        return minimum_of(theory, operands)
    return minimum_of(theory, [form.times(-1) for form in operands]).times(-1)


def minimum_of(theory: Arithmetic, operands: Iterable[LinearForm]) -> LinearForm:
    """The normal form of the minimum of forms."""
    late = theory.late_or_raise()
    # once the time is up nested minima are not flattened
    members = list(dict.fromkeys(operands)) if late else _members(theory, operands)
    members = sorted(_least_constants(members), key=_gap_order)
    kept = _undominated(theory, members, len(members) <= LIMITS.compared_operands)
    if len(kept) == 1:
        return kept[0]
    if len(kept) <= LIMITS.compared_operands and (lowered := _lowered(theory, kept)) != kept:
        return minimum_of(theory, lowered)
    key = frozenset(kept)
    if (found := theory.minima.get(key)) is None:
        laws = () if late else (_distributed, _outside_quotients)
        found = next((form for law in laws if (form := law(theory, kept)) is not None), None)
        if found is None:
            found = _simplified(theory, _sum_of(theory, kept))
            found = _through_selection(theory, kept, found) or found
        theory.minima[key] = found
    return found


def _members(theory: Arithmetic, operands: Iterable[LinearForm]) -> list[LinearForm]:
    """The operands of a minimum, flattened; as they are if there would be too many."""
    given = list(dict.fromkeys(operands))
    found: dict[LinearForm, None] = {}
    stack = given[::-1]
    while stack:
        form = stack.pop()
        inner = [a for a, k in form.terms.items() if a.op == "min" and k > 0]
        if len(inner) == 1:
            stack += theory.cases(form, inner[0])[::-1]
        else:
            found[form] = None
        if len(found) + len(stack) > LIMITS.flat_operands:
            return given
    return list(found)


def _least_constants(members: Sequence[LinearForm]) -> list[LinearForm]:
    """The members, except those that are another one plus a positive constant."""
    least: dict[frozenset[tuple[Expr, int]], LinearForm] = {}
    for form in members:
        other = least.setdefault(frozenset(form.terms.items()), form)
        if form.constant < other.constant:
            least[frozenset(form.terms.items())] = form
    return list(least.values())


def _undominated(theory: Arithmetic, members: Sequence[LinearForm], thorough: bool) -> list[LinearForm]:
    """The members that are not always above another; once the time is up, all that have not been compared, if many."""
    are_many = len(members) > LIMITS.compared_operands
    # of many members, sample points show for most pairs that neither is always above the other
    at: dict[LinearForm, Array] = {}

    def is_above(x: LinearForm, y: LinearForm) -> bool:
        if are_many and (at[x] < at[y]).any():
            return False
        gap = x.plus(y, -1)
        low, high = theory.bounds(gap)
        return low >= 0 or (thorough and high > 0 and theory.is_never_negative(gap))

    kept: list[LinearForm] = []
    for place, member in enumerate(members):
        if are_many:
            if theory.late_or_raise():
                return [*kept, *members[place:]]
            at[member] = theory.sampled(member)[theory.witnessed()]
        if not any(is_above(member, other) for other in kept):
            kept = [other for other in kept if not is_above(other, member)]
            kept.append(member)
    return kept


def _lowered(theory: Arithmetic, kept: Sequence[LinearForm]) -> list[LinearForm]:
    """The members, each lowered as far as the minimum allows where a variable of two values has one of these.

    For ``y`` in ``[0, 1]`` and ``w`` up to 9, ``min(w, y*20)`` and ``min(w, y*12)`` are ``min(w, y*9)``. Which of these
    an operand is may depend on what it was compared with before: ``min(y*20, 12)`` is ``y*12``.
    """
    members = [*kept]
    for place, member in enumerate(kept):
        others = members[:place] + members[place + 1 :]
        with_two_values = [a for a in member.terms if a.op == "var" and a.vmax == a.vmin + 1]
        for variable in sorted(with_two_values, key=lambda atom: atom.key):
            for value, is_there in (
                (variable.vmin, LinearForm({variable: -1}, variable.vmax)),
                (variable.vmax, LinearForm({variable: 1}, -variable.vmin)),
            ):
                at = LinearForm({variable: 1}, -value)
                gaps = [member.plus(other, -1) for other in others]
                spare = max(theory.bounds(gap.plus(at, -gap.terms.get(variable, 0)))[0] for gap in gaps)
                if 0 < spare < INFINITY:
                    member = members[place] = member.plus(is_there, -spare)
    return members


def _distributed(theory: Arithmetic, kept: Sequence[LinearForm]) -> LinearForm | None:
    """``min(max(x, y), max(x, z))`` is ``max(x, min(y, z))``."""
    groups = [[m.times(-1) for m in _members(theory, [form.times(-1)])] for form in kept]
    if not (common := [m for m in groups[0] if all(m in group for group in groups[1:])]):
        return None
    rests = [[m for m in group if m not in common] for group in groups]
    if not all(rests):
        return extreme_of(theory, "max", common)
    return extreme_of(theory, "max", [*common, minimum_of(theory, [extreme_of(theory, "max", rest) for rest in rests])])


def _outside_quotients(theory: Arithmetic, kept: Sequence[LinearForm]) -> LinearForm | None:
    """``min(x//n + z, y//n)`` is ``min(x + n*z, y)//n``; if ``d`` divides ``n``, ``x//d`` is ``x*(n//d)//n``."""
    quotients: list[tuple[Expr, int]] = []
    for form in kept:
        found = [(a, k) for a, k in form.terms.items() if a.op in ("floordiv", "tdiv") and a.args[1].op == "const"]
        if len(found) != 1 or abs(found[0][1]) != 1:
            return None
        quotients += found
    if len({a for a, _ in quotients}) < len(kept):
        return None
    if any(a.op == "tdiv" for a, _ in quotients):
        return _outside_truncated(theory, kept, quotients)
    n = max(a.args[1].vmin for a, _ in quotients)
    if any(n % a.args[1].vmin for a, _ in quotients):
        return None
    sign = 1 if any(k > 0 for _, k in quotients) else -1
    dividends = []
    for form, (quotient, k) in zip(kept, quotients, strict=True):
        d = quotient.args[1].vmin
        inner = theory.inner(quotient.args[0])
        if k != sign:
            # a quotient with the other sign: minus a floor is a ceiling
            inner = inner.times(-1).shifted(d - 1)
        dividends.append(form.without(quotient).times(sign * n).plus(inner, n // d))
    return theory.quotient_by(extreme_of(theory, "min" if sign > 0 else "max", dividends), n).times(sign)


def _outside_truncated(
    theory: Arithmetic, kept: Sequence[LinearForm], quotients: Sequence[tuple[Expr, int]]
) -> LinearForm | None:
    """``min(tdiv(x, n), tdiv(y, n))`` is ``tdiv(min(x, y), n)``, if there are no other terms beside the quotients."""
    signs, divisors = {k for _, k in quotients}, {(a.op, a.args[1]) for a, _ in quotients}
    if len(signs) > 1 or len(divisors) > 1 or any(len(form.terms) > 1 or form.constant for form in kept):
        return None
    ((_, n),), (sign,) = divisors, signs
    inner = [theory.inner(a.args[0]) for a, _ in quotients]
    least = extreme_of(theory, "min" if sign > 0 else "max", inner)
    return theory.truncated(least, number(n.vmin)).times(sign)


def _through_selection(theory: Arithmetic, kept: Sequence[LinearForm], plain: LinearForm) -> LinearForm | None:
    """``min(where(c, x, y), z)`` is ``where(c, min(x, z), min(y, z))``, if that is shorter than ``plain``."""
    selections = {a for form in kept for a in form.terms if a.op == "where"}
    conditions = {a.args[0] for a in selections}
    if not 1 <= len(conditions) <= LIMITS.minimum_conditions or len(kept) > LIMITS.compared_operands:
        return None
    condition = min(selections, key=lambda a: a.key).args[0]
    found: list[LinearForm] = []
    for branch, holds in ((1, condition), (2, theory.negate(condition))):
        inside = theory.assuming(holds)
        if inside is None or inside is theory:
            # without what the condition says, the selection would stay in the branch
            return None
        chosen = []
        for form in kept:
            for atom in selections.intersection(form.terms):
                if atom.args[0] is condition:
                    scale = form.terms[atom]
                    form = form.without(atom).plus(theory.inner(atom.args[branch]), scale)
            chosen.append(inside.form(to_expr(form)))
        found.append(inside.extreme("min", chosen))
    pushed = theory.selection(condition, *found)
    return pushed if theory.simplicity.size(to_expr(pushed)) < theory.simplicity.size(to_expr(plain)) else None


def _sum_of(theory: Arithmetic, kept: Sequence[LinearForm]) -> LinearForm:
    """One operand, the base, plus the minimum of 0 and the gaps between the other operands and it."""
    bases = kept[: 1 if len(kept) > LIMITS.compared_operands and theory.late_or_raise() else LIMITS.bases]
    gaps_of = {base: [form.plus(base, -1) for form in kept if form is not base] for base in bases}
    base = min(gaps_of, key=lambda form: _order(gaps_of[form]))
    gaps = sorted(gaps_of[base], key=_gap_order)
    common = gcd(*(c for gap in gaps for c in (*gap.terms.values(), gap.constant)))
    atom = const(0)
    for gap in gaps:
        atom = make("min", to_expr(gap.divided(common)), atom)
    theory.minimum_atoms.add(atom)
    return base.plus(theory.atom(atom), common)


def _simplified(theory: Arithmetic, form: LinearForm) -> LinearForm:
    """``form`` without redundant operands of its minima, at any depth."""
    count = theory.operand_count(form, LIMITS.nested_operands)
    if count > LIMITS.nested_operands or theory.late_or_raise():
        return form
    for fewer, sign in _with_fewer(theory, form):
        # to drop an operand changes the value in one direction only: if that is refuted, the operand is redundant
        change = fewer.plus(form, -1).times(sign)
        if theory.operand_count(fewer, count) < count and theory.is_never_negative(change.times(-1)):
            return _simplified(theory, fewer)
    return form


def _with_fewer(theory: Arithmetic, form: LinearForm, inside: bool = False) -> Iterator[tuple[LinearForm, int]]:
    """``form`` with one operand of its minimum dropped, at any depth, and the sign of the change that makes."""
    if (atom := theory.outer_minimum(form)) is None:
        return
    sign = 1 if form.terms[atom] > 0 else -1
    cases = theory.cases(form, atom)
    op = "min" if sign > 0 else "max"
    for index, case in enumerate(cases):
        others = cases[:index] + cases[index + 1 :]
        # two plain operands are known not to dominate each other
        if inside or len(cases) > 2 or any(case.has_minimum() for case in cases):
            yield _plain_extreme(theory, op, others), sign
        for fewer, change in _with_fewer(theory, case, True):
            yield _plain_extreme(theory, op, [fewer, *others]), change


def _plain_extreme(theory: Arithmetic, op: str, operands: Sequence[LinearForm]) -> LinearForm:
    """The extreme of operands, of which only bounds tell the redundant ones."""
    if op == "max":
        return _plain_extreme(theory, "min", [form.times(-1) for form in operands]).times(-1)
    return extreme_of_needed(theory, "min", _undominated(theory, operands, thorough=False))


def extreme_of_needed(theory: Arithmetic, op: str, operands: Sequence[LinearForm]) -> LinearForm:
    """The extreme of operands of which none is redundant."""
    if op == "max":
        return extreme_of_needed(theory, "min", [form.times(-1) for form in operands]).times(-1)
    # of a minimum in a product that is too wide to be multiplied out some may be equal
    operands = [*dict.fromkeys(operands)]
    return _sum_of(theory, operands) if len(operands) > 1 else operands[0]


def _gap_order(gap: LinearForm) -> tuple[int, Order]:
    return len(gap.terms), gap.order()


def _order(gaps: Sequence[LinearForm]) -> tuple[int, int, list[tuple[int, Order]]]:
    """The order in which bases are preferred, by their gaps alone, so that addends outside do not change the atom."""
    inner = sum(c > 0 for gap in gaps for a, c in gap.terms.items() if a.op == "min")
    return inner, -sum(gap.sign() for gap in gaps), sorted(map(_gap_order, gaps))
