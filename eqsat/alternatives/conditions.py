"""E-nodes of conditions: comparisons with terms moved across, and junctions of comparisons as one comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import cast

from eqsat.alternatives.canonical import KindNodes
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr, const, make
from eqsat.lang.ops import COMPARISONS
from eqsat.lang.traversal import chain_members
from eqsat.theory.digits import shortened
from eqsat.theory.forms import ZERO, LinearForm, atom_form, combination, factors, number, to_expr


class ConditionNodes(KindNodes):
    """The e-nodes of conditions."""

    def nodes(self, term: Expr) -> Iterator[Node]:
        """A condition as it is, and what is equal to a comparison or a junction."""
        yield self.classes.own_node(term)
        if term.op in COMPARISONS and not term.args[0].is_bool:
            yield from self.moved(term)
            if term.op in ("lt", "le") and not self.classes.is_crowded():
                yield from self._digit_by_digit(term)
        elif term.op in ("and", "or") and not self.classes.is_crowded():
            yield from self.merged(term)
            members = chain_members(term, term.op)
            shorter = shortened(self.theory, term.op, members)
            if shorter != members:
                yield self.classes.own_node(self.theory.junction(term.op, shorter))

    def at_ends(self, term: Expr) -> Iterator[Node]:
        """``x == 3 and y == 7`` is ``10 <= x + y`` where 3 and 7 are the maxima; ``x < 3 or y < 7`` is ``x + y < 10``.

        Likewise a comparison of a sum that holds only where all its terms are at an end, or fails only there: there the
        coefficients do not matter.
        """
        members = chain_members(term, term.op) if term.op in ("and", "or") else [term]
        for holds in (True, False) if term in members else (term.op == "and",):
            ends = {member: form for member in members if (form := self._below_end(member, holds)) is not None}
            if len(ends) < 2 and all(
                cast(LinearForm, self._above_zero(m)).line() == form.line() for m, form in ends.items()
            ):
                continue
            total = combination([(form, 1) for form in ends.values()], 0)
            joined = self.theory.at_least_zero(total if holds else total.times(-1).shifted(-1))
            # a comparison of a sum that has remainders also has these whole
            moved = () if total.is_affine() else self.moved(joined)
            for node in [self.classes.own_node(joined), *moved, *self._as_extremes(ends.values(), holds)]:
                yield from self.instead(term, members, [*ends], node)

    def by_selections(self, term: Expr) -> Iterator[Node]:
        """``x + where(p, 3, 5) < 9`` as ``x < where(p, 6, 4)``: literals of a selection take in that of a comparison.

        A term of two values with a coefficient that takes a product is such a selection too.
        """
        form = self.theory.difference(self.theory.negate(term) if term.op == "ne" else term)
        if form is None or len(form.terms) < 2:
            return
        for atom, k in form.terms.items():
            if atom.op == "where" and {branch.op for branch in atom.args[1:]} == {"const"}:
                condition, ends = atom.args[0], [branch.vmin for branch in atom.args[1:]]
            elif atom.vmax == atom.vmin + 1 and not is_power_of_two(abs(k)):
                is_least = self.theory.at_least_zero(atom_form(atom).times(-1).shifted(atom.vmin))
                condition, ends = is_least, [atom.vmin, atom.vmax]
            else:
                continue
            rest = form.direction().without(atom)
            sign = 1 if rest.sign() > 0 else -1
            limits = [number(-sign * (k * end + form.constant)) for end in ends]
            limit = self.theory.selection(condition, *limits)
            self.classes.add_node(self.add_class(limit), self.node("where", condition, *limits))
            if term.op in ("eq", "ne"):
                yield self.node(term.op, rest.times(sign), limit)
            else:
                yield self.node("le", *((limit, rest) if sign > 0 else (rest.times(-1), limit)))

    @provides("windows")
    def windows(self, term: Expr, needed: Mapping[LinearForm, Sequence[LinearForm]]) -> Iterator[Node]:
        """``0 <= x and x < 14`` as ``x%16 < 14`` where ``x`` is no less than -2 nor more than 15.

        Likewise ``2 <= x and x < 16`` is ``2 <= x%16``, and ``5 <= x and x < 13`` is ``(x - 5)//8 == 0``: a sum of the
        same line that is ``needed`` may stand for ``x``.
        """
        if term.op not in ("and", "or"):
            return
        members, inside = chain_members(term, term.op), term.op == "and"
        sides: dict[LinearForm, dict[int, tuple[Expr, LinearForm]]] = defaultdict(dict)
        for member in members:
            if (form := self._above_zero(member)) is not None and form.terms:
                sides[form.line()][form.sign()] = member, form
        for direction, ends in sides.items():
            if len(ends) < 2:
                continue
            (lower, least), (upper, most) = ends[1], ends[-1]
            # the window is where both hold, or where neither does
            low, high = (-least.constant, most.constant + 1) if inside else (most.constant + 1, -least.constant)
            if low >= high:
                continue
            for node in self._as_window(direction, needed.get(direction, ()), (low, high), inside):
                yield from self.instead(term, members, (lower, upper), node)

    def _as_window(
        self, direction: LinearForm, there: Iterable[LinearForm], window: tuple[int, int], inside: bool
    ) -> Iterator[Node]:
        """Whether a sum is in a window, or if not ``inside`` is not, by the sum or by others of its line."""
        for form in dict.fromkeys([direction, *there]):
            if form.direction() == direction:
                low, high = [end + form.constant for end in window]
            else:
                low, high = [1 + form.constant - end for end in reversed(window)]
            if is_power_of_two(high - low) and low % (high - low) == 0:
                quotient = self.theory.quotient_by(form, high - low)
                yield self.node("eq" if inside else "ne", quotient, number(low // (high - low)))
                continue
            least, most = self.theory.bounds(form)
            # with a shorter period what is outside may have the remainders of the window
            period = max(high - least, most - low + 1)
            if period <= LIMITS.window_period:
                n = 1 << (period - 1).bit_length()
                limit, below = (high - low, inside) if low % n == 0 else (low % n, not inside)
                if low % n == 0 or high % n == 0:
                    remainder = self.theory.remainder(form, number(n))
                    self.classes.add_node(self.add_class(remainder), self.node("mod", form, number(n)))
                    yield self._strictly(remainder, number(limit), below)

    def _strictly(self, form: LinearForm, limit: LinearForm, below: bool) -> Node:
        """``form < limit``, or if not ``below`` the opposite."""
        return self.node("lt", form, limit) if below else self.node("le", limit, form)

    def instead(self, term: Expr, members: Sequence[Expr], some: Sequence[Expr], node: Node) -> Iterator[Node]:
        """A junction with another node in place of some of its members: it says what these say together."""
        if len(some) == len(members):
            yield node
            return
        parts = self._apart(term.op, members, some)
        self.classes.add_node(self.add_class(parts[0]), node)
        yield self.node(term.op, *parts)

    def _as_extremes(self, ends: Collection[LinearForm], holds: bool) -> Iterator[Node]:
        """That forms which are at most zero are zero, or if not ``holds`` that one is not, by their extremes.

        ``1 <= x and 1 <= y and z < 1`` is ``z < min(x, y)`` where none is more than 1 nor less than 0.
        """
        upper = [form for form in ends if not self._sides(form)[0].terms]
        lower = [form.times(-1) for form in ends if not self._sides(form)[1].terms]
        offsets = [{form.constant for form in side} for side in (lower, upper)]
        if len(lower) + len(upper) < len(ends) or any(len(of_side) > 1 for of_side in offsets) or len(ends) < 2:
            return
        # all are zero iff the greatest of one side and the gap are at most the least of the other
        gap = sum(offsets[0]) - sum(offsets[1])
        greatest = self.theory.extreme("max", [form.direction() for form in lower]) if lower else ZERO
        least = self.theory.extreme("min", [form.direction() for form in upper]) if upper else ZERO
        if not upper:
            yield self._strictly(greatest, number(1 - gap), holds)
        elif not lower:
            yield self._strictly(least, number(gap), not holds)
        elif gap in (0, 1) and len(ends) > 2:
            sides = (greatest, least) if holds else (least, greatest)
            yield self.node("lt" if (gap == 1) == holds else "le", *sides)

    def _below_end(self, member: Expr, holds: bool) -> LinearForm | None:
        """The form that is at most zero, and is zero iff a member holds, or if not ``holds`` iff it fails.

        ``None`` if there is no such form, with coefficients that do not matter.
        """
        form = self._above_zero(member)
        if form is None or not form.terms:
            return None
        if not _is_at_end(member, holds):
            # the bounds of remainders are known of their forms alone
            low, high = (0, 0) if form.is_affine() else self.theory.bounds(form)
            if holds:
                return form if high == 0 and low < 0 else None
            return form.times(-1).shifted(-1) if low == -1 else None
        signs = {atom: 1 if (k > 0) == holds else -1 for atom, k in form.terms.items()}
        return LinearForm(signs, -sum([atom.vmax if sign > 0 else -atom.vmin for atom, sign in signs.items()]))

    @provides("merged comparisons")
    def merged(self, term: Expr, alike: bool = False) -> Iterator[Node]:
        """``x < y and x < z`` is ``x < min(y, z)``, and ``or`` has a maximum.

        The comparisons share a term or, if ``alike``, a literal alone.
        """
        op, members = term.op, chain_members(term, term.op)
        if len(members) > LIMITS.compared_sides:
            return
        above = [(m, form) for m in sorted(members, key=lambda m: m.key) if (form := self._above_zero(m))]
        yield from self._all_merged(op, members, above, alike)
        if len(members) > LIMITS.merged_comparisons:
            return
        for (one, f), (other, g) in combinations(above, 2):
            shared = sum(g.terms.get(a) == k for a, k in f.terms.items())
            if alike:
                if shared or f.constant != g.constant or (not f.constant and len(f.terms) + len(g.terms) > 2):
                    continue
            elif not shared or max(len(f.terms), len(g.terms)) > shared + 1:
                continue
            yield from self._as_extreme(op, members, {one: f, other: g})

    def _all_merged(
        self, op: str, members: Sequence[Expr], above: Sequence[tuple[Expr, LinearForm]], alike: bool
    ) -> Iterator[Node]:
        """``x < 5 and x < y and x < z`` is ``x < min(y, z, 5)``; ``x < 5 and y < 5 and z < 5`` is ``max(x, y, z) < 5``.

        The latter if ``alike``.
        """
        groups: dict[tuple[Expr | int, ...], dict[Expr, LinearForm]] = defaultdict(dict)
        for member, form in above:
            if len(form.terms) <= (1 if alike else 2):
                for shared in [(form.constant, *form.terms.values())] if alike else form.terms.items():
                    groups[shared][member] = form
        most = len(members) if alike else LIMITS.merged_sides
        for some in groups.values():
            if len(some) > 2:
                yield from self._as_extreme(op, members, dict(islice(some.items(), most)))

    def _as_extreme(self, op: str, members: Sequence[Expr], merged: Mapping[Expr, LinearForm]) -> Iterator[Node]:
        """Some members of a junction, each of which says that its form is not negative, as one comparison."""
        if len(merged) < len(members):
            yield self.node(op, *self._apart(op, members, [*merged]))
            return
        both = self.theory.extreme("min" if op == "and" else "max", merged.values())
        yield from self._never_negative(both)
        if all(form.sign() < 0 for form in merged.values()):
            yield self.node("lt", both.direction().times(-1), number(both.constant + 1))

    def _sides(self, form: LinearForm) -> tuple[LinearForm, LinearForm]:
        """What a sum subtracts and what it adds besides its constant; remainders stay whole."""
        left, sides = form.direction(), [ZERO, ZERO]
        for of in self.theory.remainders_in(form):
            remainder, k = self.classes.remainder_of(of.quotient), of.scale
            without = left.plus(remainder, -k)
            if len(without.terms) + len(remainder.terms) == len(left.terms):
                left, sides[k > 0] = without, sides[k > 0].plus(remainder, abs(k))
        for atom, k in left.terms.items():
            sides[k > 0] = sides[k > 0].plus(atom_form(atom), abs(k))
        return sides[0], sides[1]

    def _apart(self, op: str, members: Sequence[Expr], some: Sequence[Expr]) -> list[Expr]:
        """The junction of some members, and that of the others."""
        rest = [member for member in members if member not in some]
        return [self.theory.junction(op, part) for part in (some, rest)]

    @provides("other comparisons")
    def _digit_by_digit(self, term: Expr) -> Iterator[Node]:
        """``0 <= n*A + B`` is ``0 <= A + B//n``, where that spares products, a remainder or a constant.

        If ``B//n`` has two values, it is also a selection between the comparisons of ``A`` with each of them.
        """
        form = self._above_zero(term)
        if form is None or not form.terms:
            # what stands in a product that is too wide to be multiplied out is not decided
            return
        n = max(map(abs, form.terms.values()))
        above, below = form.partition(n)
        has_two_sides = _has_two_sides(above)
        has_remainder = len(form.terms) == 2 and next(iter(above.terms)).op == "floordiv"
        if n == 1 or not below.terms or not (has_two_sides or has_remainder):
            return
        yield from self._divided(above, below, n)
        low, high = self.theory.bounds(self.theory.quotient_by(below, n))
        if high - low == 1 and has_two_sides:
            ends = below.shifted(-high * n), above.shifted(high), above.shifted(low)
            yield self.node("where", *[self.theory.at_least_zero(end) for end in ends])

    def _divided(self, above: LinearForm, below: LinearForm, n: int) -> Iterator[Node]:
        """``0 <= n*above + below`` by ``below // n``, if that is a single term and a shift."""
        quotient = self.theory.quotient_by(below, n) if is_power_of_two(n) and above.terms and below.terms else ZERO
        if len(quotient.terms) == 1:
            yield from self._never_negative(above.plus(quotient))

    def _never_negative(self, form: LinearForm) -> Iterator[Node]:
        """The comparison that says that a form is at least zero, as it is and with terms moved across."""
        comparison = make("le", const(-form.constant), to_expr(form.direction()))
        yield "le", None, self.operands(comparison)
        yield from self.moved(comparison)

    def in_parts(self, term: Expr) -> Iterator[Node]:
        """A comparison whose constant a quotient takes in, or as two comparisons, one for each of its terms."""
        form = self._above_zero(term)
        if form is None or len(form.terms) < 2:
            return
        n = max(map(abs, form.terms.values()))
        # -1 and 0 need no addition: they make the comparison of the two sides strict or not
        period = max(-form.constant, form.constant + 1)
        if _has_two_sides(form) and 1 < period <= n and is_power_of_two(period):
            yield from self._divided(*form.partition(period), period)
        if len(form.terms) == 2 and not is_power_of_two(n):
            yield from self._at_last(*form.partition(n), n)

    def _at_last(self, above: LinearForm, below: LinearForm, n: int) -> Iterator[Node]:
        """``x*n + y < c`` is ``x < c//n or y < c%n`` where ``x`` is no more than that quotient."""
        low, high = [end // n for end in self.theory.bounds(below)]
        least, most = self.theory.bounds(above)
        if high - low == 1 and (least + high >= 0 or most + low < 0):
            op, value = ("or", low) if least + high >= 0 else ("and", high)
            ends = above.shifted(value), below.shifted(-high * n)
            yield self.node(op, *[self.theory.at_least_zero(end) for end in ends])

    @provides("other comparisons")
    def moved(self, term: Expr) -> Iterator[Node]:
        """Comparisons with a literal, negative terms moved across: ``1 <= x - y`` is ``y < x``."""
        # in normal form the literal is on the right, but for a least value
        is_least = term.op == "le"
        literal, moved = term.args if is_least else term.args[::-1]
        form = self.theory.inner(moved)
        if literal.op != "const" or not form.terms:
            return
        above, below = _by_sign(form)
        limit = literal.vmin - form.constant
        lower, upper = self._sides(form)
        if (lower, upper) != (below, above) and lower.terms and upper.terms:
            # ``w < z + x%64`` for ``w - z - x + x//64*64 < 0``
            yield self._compared(term.op, upper, lower, limit + upper.constant - lower.constant)
        yield from self._with_whole_products(term.op, form, limit)
        if not below.terms:
            sides = (self.add_class(number(limit)), self.add_class(above))
            yield term.op, None, sides if is_least else sides[::-1]
        elif term.op in ("eq", "ne"):
            yield from self._equations(term.op, above, below, limit)
        else:
            yield from self._ordered(above, below, limit, is_least)

    def _equations(self, op: str, above: LinearForm, below: LinearForm, limit: int) -> Iterator[Node]:
        """``above == below + limit``, or ``!=``, without a literal where an extreme or a product takes it in."""
        for shift in self._shifts_of_extremes(above, below, limit):
            yield self.node(op, above.shifted(shift), below.shifted(shift + limit))
        if limit == 0:
            yield self.node(op, above, below)
        elif any(atom.op == "mul" for atom in (*above.terms, *below.terms)):
            # the whole may be a product, of which a rule asks whether it is zero
            yield self.node(op, above.plus(below, -1).shifted(-limit), ZERO)

    def _ordered(self, above: LinearForm, below: LinearForm, limit: int, is_least: bool) -> Iterator[Node]:
        """``limit <= above - below``, or else its denial, without a literal where an extreme or ``<`` takes it in."""
        if not above.terms:
            yield self._strictly(below, number(1 - limit), is_least)
        elif above.has_minimum():
            yield from self._with_extremes(below, above, limit, is_least)
        elif below.has_minimum():
            yield from self._with_extremes(above, below, 1 - limit, not is_least)
        elif limit in (0, 1):
            sides = (self.add_class(above), self.add_class(below))
            is_strict = (limit == 1) == is_least
            yield "lt" if is_strict else "le", None, sides[::-1] if is_least else sides

    def _shifts_of_extremes(self, above: LinearForm, below: LinearForm, limit: int) -> Iterator[int]:
        """What to add to both sides of ``above == below + limit``: then an operand of an extreme has no literal."""
        for side, there in ((above, 0), (below, limit)):
            atom, k = side.multiple() or (None, 0)
            if atom is not None and atom.op == "min":
                yield from [-k * gap.constant - there for gap in self.theory.gaps(atom) if gap.terms and gap.constant]

    def _with_extremes(self, below: LinearForm, above: LinearForm, limit: int, is_least: bool) -> Iterator[Node]:
        """``limit <= above - below``, or else its denial, with minima on one side and as maxima on the other."""
        if is_least:
            yield self.node("lt", below, above.shifted(1 - limit))
        else:
            yield self.node("lt", above.shifted(-limit), below)
        extremes = LinearForm({a: k for a, k in above.terms.items() if a.op == "min"}, 0)
        rest, greatest = above.plus(extremes, -1), below.plus(extremes, -1)
        for op, strict in (("lt", 1), ("le", 0)) if rest.terms else ():
            if is_least:
                yield self.node(op, greatest.shifted(limit - strict), rest)
            else:
                yield self.node(op, rest, greatest.shifted(limit + strict - 1))

    def _with_whole_products(self, op: str, form: LinearForm, limit: int) -> Iterator[Node]:
        """``y < (3 - x)*z`` for ``y + x*z - z*3 < 0``."""
        for factor in dict.fromkeys([part for atom in form.terms if atom.op == "mul" for part in factors(atom)]):
            product = LinearForm({a: k for a, k in form.terms.items() if factor in factors(a)}, 0)
            others = form.direction().plus(product, -1)
            if not _has_two_sides(product) or not others.terms or _has_two_sides(others):
                continue
            if others.sign() > 0:
                yield self._compared(op, others, product.times(-1), limit)
            else:
                yield self._compared(op, product, others.times(-1), limit)

    def _compared(self, op: str, left: LinearForm, right: LinearForm, limit: int) -> Node:
        """``limit <= left - right``, or the comparison ``op`` of that difference with ``limit`` on the right."""
        is_least = op == "le"
        if limit == 1 and op in ("lt", "le"):
            op, limit = ("lt" if is_least else "le"), 0
        # a side with a constant has the remainder of a sum, which takes no other constant in
        left, right = (left.shifted(-limit), right) if right.constant else (left, right.shifted(limit))
        return self.node(op, right, left) if is_least else self.node(op, left, right)

    def by_needed(self, term: Expr, needed: Collection[int]) -> Iterator[Node]:
        """``x - y < -1`` as ``x + 1 < y`` where ``x + 1`` is needed anyway, ``x + y == 7`` as ``x == 7 - y``.

        And ``x < y + z`` as ``x - y < z`` where ``x - y`` is; ``x + y == 7`` as ``x + y - 7 == 0`` where that sum is.
        """
        form = self.theory.difference(self.theory.negate(term) if term.op == "ne" else term)
        if form is None or len(form.terms) < 2:
            return
        totals = [(term.op, form)] if term.op in ("eq", "ne") else [("le", form), ("lt", form.shifted(1))]
        for op, total in totals:
            for left, right, used in _on_two_sides(total):
                if self._is_needed(used, needed):
                    yield self.node(op, left, right)

    def _is_needed(self, form: LinearForm, needed: Collection[int]) -> bool:
        return form in self.classes and self.add_class(form) in needed

    def _above_zero(self, comparison: Expr) -> LinearForm | None:
        """The form that is at least zero iff the comparison holds."""
        return self.theory.difference(comparison) if comparison.op in ("lt", "le") else None


def _is_at_end(member: Expr, holds: bool) -> bool:
    """Whether a comparison with a literal holds at one end of the range alone; if not ``holds``, fails there alone."""
    if member.op == "le" and member.args[0].op == "const":
        literal, form = member.args
        return form.vmax == literal.vmin if holds else form.vmin == literal.vmin - 1
    if member.op == "lt" and member.args[1].op == "const":
        form, literal = member.args
        return form.vmin == literal.vmin - 1 if holds else form.vmax == literal.vmin
    return False


def _on_two_sides(total: LinearForm) -> Iterator[tuple[LinearForm, LinearForm, LinearForm]]:
    """The ways to compare 0 with a sum as a comparison of two sides: the left, the right, and the one to be needed.

    A way pays only where something else needs that side, too.
    """
    opposite = total.times(-1)
    if total.constant:
        yield ZERO, total, total
        yield opposite, ZERO, opposite
    above, below = _by_sign(total)
    for left, right in ((below, above.shifted(total.constant)), (below.shifted(-total.constant), above)):
        yield left, right, right if right.constant else left
    for atom, k in total.terms.items() if len(total.terms) < LIMITS.merged_comparisons else ():
        for constant in dict.fromkeys((0, total.constant)):
            # 0 <= rest + part is -rest <= part, and -part <= rest
            part = LinearForm({atom: k}, constant)
            rest = total.plus(part, -1)
            less_part, less_rest = part.times(-1), rest.times(-1)
            if k != 1 or constant:
                yield less_rest, part, part
            if k != -1 or constant:
                yield less_part, rest, less_part
            if len(rest.terms) > 1:
                yield (less_rest, part, less_rest) if k > 0 else (less_part, rest, rest)


def _has_two_sides(form: LinearForm) -> bool:
    """Whether a form adds some terms and subtracts others."""
    return len({k > 0 for k in form.terms.values()}) == 2


def _by_sign(form: LinearForm) -> tuple[LinearForm, LinearForm]:
    """What a sum adds and what it subtracts, besides its constant."""
    above = LinearForm({a: k for a, k in form.terms.items() if k > 0}, 0)
    return above, above.plus(form.direction(), -1)
