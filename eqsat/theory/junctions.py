"""Conjunctions and disjunctions in normal form: flat, sorted, and without members that the others imply.

``not`` is pushed to the comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.lang.ops import COMPARISONS, INFINITY, is_finite
from eqsat.lang.traversal import chain_members
from eqsat.theory.arithmetic import Arithmetic, begun, is_negative, kept
from eqsat.theory.digits import join_digits, join_order
from eqsat.theory.forms import chained, has_quotient, opposite
from eqsat.theory.limits import LIMITS
from eqsat.theory.refutation import cannot_hold


class Junctions(Arithmetic):
    """Complements, conjunctions and disjunctions of conditions in normal form."""

    def _choice(self, term: Expr) -> Expr:
        """Selections and comparisons of conditions, written with ``and``, ``or`` and ``not`` unless these are large."""
        parts = [self.conditions[a] for a in term.args]
        if term.op == "where":
            c, x, y = parts
            if x is y:
                return x
            if self._is_repeated([c], parts):
                return make("where", c, x, y)
            return self.junction("or", [self.junction("and", [c, x]), self.junction("and", [self.negate(c), y])])
        if term.op in ("min", "max"):
            return self.junction("and" if term.op == "min" else "or", parts)
        x, y = parts
        if self._is_repeated(parts, parts):
            return self._compared(term.op, x, y)
        both = self.junction("and", [x, y])
        neither = self.junction("and", [self.negate(x), self.negate(y)])
        same = self.junction("or", [both, neither])
        return same if term.op == "eq" else self.negate(same)

    def _is_repeated(self, twice: Sequence[Expr], parts: Sequence[Expr]) -> bool:
        """Whether the ``parts`` that would be written ``twice`` are large: a chain of such doubles at each level."""
        size = self.simplicity.size
        return TRUE not in parts and FALSE not in parts and sum(map(size, twice)) > LIMITS.repeated_terms

    def _compared(self, op: str, x: Expr, y: Expr) -> Expr:
        """``x == y`` or ``x != y`` of conditions, neither of them written as a complement."""
        same = (op == "eq") == (is_negative(x) == is_negative(y))
        x, y = sorted([self.negate(part) if is_negative(part) else part for part in (x, y)], key=lambda part: part.key)
        if x is y:
            return TRUE if same else FALSE
        return make("eq" if same else "ne", x, y)

    @kept("answers")
    def negate(self, condition: Expr) -> Expr:
        if (op := condition.op) not in ("and", "or"):
            return opposite(condition)
        return self.junction("or" if op == "and" else "and", [*map(self.negate, chain_members(condition, op))])

    def junction(self, op: str, parts: Sequence[Expr]) -> Expr:
        unit, zero = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
        members = {m: None for part in parts for m in chain_members(part, op)}
        members.pop(unit, None)
        if zero in members:
            return zero
        if len(members) < 2:
            return next(iter(members), unit)
        key = (op, frozenset(members))
        if (found := self._junctions.get(key)) is None:
            if key in self._joining:
                # what the junction is made of asks for the junction itself
                return chained(op, members)
            with begun(self._joining, key):
                found = self._junctions[key] = self._join(op, members, unit, zero)
        return found

    def _join(self, op: str, members: Iterable[Expr], unit: Expr, zero: Expr) -> Expr:
        merged = self._merge_intervals(op, list(members))
        if merged is None or not set(merged).isdisjoint(map(self.negate, merged)):
            return zero
        for read in (join_digits, join_order, Junctions._read_assuming_others):
            kept = read(self, op, merged)
            if kept != merged:
                return self.junction(op, kept)
        if len(kept) > 1:
            kept = self._drop_implied(op, kept)
        return chained(op, kept) if kept else unit

    def _read_assuming_others(self, op: str, members: list[Expr]) -> list[Expr]:
        """``p and (p or q)`` is ``p``; ``p and (q or not p)`` is ``p and q``: compound members, assuming the others."""
        compound = [m for m in members if m.op in ("and", "or") and self.simplicity.size(m) <= LIMITS.reread_terms]
        if not compound:
            return members
        holds, fails = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
        decided: dict[Expr, Expr] = {}
        for member in members:
            if member not in compound:
                decided[member], decided[self.negate(member)] = holds, fails
        return [self._with_decided(m, decided) if m in compound else m for m in members]

    def _with_decided(self, condition: Expr, decided: Mapping[Expr, Expr]) -> Expr:
        if condition in decided:
            return decided[condition]
        if condition.op not in ("and", "or"):
            return condition
        members = chain_members(condition, condition.op)
        replaced = [self._with_decided(m, decided) for m in members]
        return condition if replaced == members else self.junction(condition.op, replaced)

    def _merge_intervals(self, op: str, members: list[Expr]) -> list[Expr] | None:
        """``members`` with the comparisons of each form with literals merged; ``None`` if they decide the junction."""
        others: list[Expr] = []
        of_form: dict[Expr, list[Expr]] = defaultdict(list)
        for member in members:
            literal = next((a for a in member.args if a.op == "const"), None) if member.op in COMPARISONS else None
            if literal is None:
                others.append(member)
            else:
                of_form[member.args[literal is member.args[0]]].append(member)
        for form, comparisons in of_form.items():
            merged = self._merge_comparisons(op, form, comparisons) if len(comparisons) > 1 else comparisons
            if merged is None:
                return None
            others += merged
        return others

    def _merge_comparisons(self, op: str, form: Expr, comparisons: list[Expr]) -> list[Expr] | None:
        """``comparisons`` of ``form`` with literals as the fewest; ``None`` if they decide the junction.

        Comparisons by order become one interval ``[low, high)``: under "and" all of them hold inside, under "or" none.
        """
        all_hold = op == "and"
        low, high, points = _interval_and_points(comparisons, all_hold)
        # under "and" an equation decides the other comparisons, under "or" an inequation does
        decisive, exception = ("eq", "ne") if all_hold else ("ne", "eq")
        exceptions = points[exception]
        if points[decisive]:
            value, *others = points[decisive]
            is_decided = others or not low <= value < high or value in exceptions
            return None if is_decided else [make(decisive, form, const(value))]
        # an exception at an end of the interval moves that end
        while low in exceptions:
            exceptions.remove(low)
            low += 1
        while high - 1 in exceptions:
            high -= 1
            exceptions.remove(high)
        if low >= high:
            return None
        if all_hold and low + 1 == high:
            return [self.equal_zero(self.form(form).shifted(-low))]
        kept = [make(exception, form, const(value)) for value in sorted(exceptions)]
        least, below = (low, high) if all_hold else (high, low)
        kept += [make("le", const(least), form)] if is_finite(least) else []
        return [*kept, make("lt", form, const(below))] if is_finite(below) else kept

    def _drop_implied(self, op: str, members: list[Expr]) -> list[Expr]:
        """Drop the members, and parts of members, that the others decide."""
        if op == "or":
            return [self.negate(m) for m in self._drop_implied("and", [self.negate(m) for m in members])]
        kept = sorted(members, key=lambda m: m.key)
        places = self._by_variable(kept)
        for place, member in enumerate(list(kept)) if not self.late_or_raise() else ():
            if not (others := self._deciding(member, kept, places)):
                continue
            if member.op in COMPARISONS:
                if self._is_open(member, others):
                    continue
                if (theory := self.assuming_all(others)) is None:
                    return [FALSE]
                found = member if theory is self else theory.condition(member)
                if found is FALSE:
                    return [FALSE]
                if found is TRUE:
                    kept[place] = TRUE
            elif member.op == "or":
                kept[place] = self._needed_part(member, others)
        return [m for m in kept if m is not TRUE]

    def _is_open(self, condition: Expr, facts: Sequence[Expr]) -> bool:
        """Whether sample points show that a condition may hold where the facts do, and may fail."""
        given = self.witnessed() & self.sampled_where(facts)
        holds = given & self.sampled_where([condition])
        return bool(holds.any() and (holds != given).any())

    def _needed_part(self, disjunction: Expr, facts: list[Expr]) -> Expr:
        """A disjunction without the members that imply others where the facts hold."""
        kept = chain_members(disjunction, "or")
        if len(kept) > LIMITS.deciding:
            return disjunction
        for member in sorted(kept, key=lambda m: m.key):
            rest = [self.negate(m) for m in kept if m is not member]
            if cannot_hold(self, [*facts, member, *rest]):
                kept.remove(member)
        if kept and cannot_hold(self, [*facts, *map(self.negate, kept)]):
            return TRUE
        return disjunction if len(kept) == len(chain_members(disjunction, "or")) else self.junction("or", kept)

    def in_context(self, junction: Expr) -> Expr:
        # no normal form: which member becomes simpler by which others is a matter of order
        op, members = junction.op, chain_members(junction, junction.op)
        places = self._by_variable(members)
        for member in sorted(members, key=lambda m: m.key):
            if member.op not in COMPARISONS or not has_quotient(member):
                continue
            if not (others := self._deciding(member, members, places)):
                continue
            theory = self.assuming_all(others if op == "and" else [self.negate(m) for m in others])
            simpler = member if theory is None else theory.condition(member)
            if self.simplicity.size(simpler) < self.simplicity.size(member):
                joined = self.junction(op, [simpler if m is member else m for m in members])
                return self.in_context(joined) if joined.op == op else joined
        return junction

    def _by_variable(self, conditions: Sequence[Expr]) -> dict[int, list[int]]:
        """By variable, the places of the conditions that mention it."""
        places: dict[int, list[int]] = defaultdict(list)
        for place, condition in enumerate(conditions):
            for variable in _bits(self.variables.of(condition)):
                places[variable].append(place)
        return places

    def _deciding(self, member: Expr, conditions: Sequence[Expr], places: Mapping[int, Sequence[int]]) -> list[Expr]:
        """The comparisons that may decide ``member``, in order; none if there are too many.

        These mention its variables, or, if that is not too many, the variables of such comparisons. Comparisons of the
        same sum are left out: they are merged already. ``places`` are those of :meth:`_by_variable`.
        """
        of_member = self.variables.of(member)
        near = self._comparisons_of(of_member, member, conditions, places)
        if not near or len(near) > LIMITS.deciding:
            return []
        beyond = 0
        for place in near:
            beyond |= self.variables.of(conditions[place])
        if beyond == of_member:
            return [conditions[place] for place in near]
        wider = self._comparisons_of(beyond, member, conditions, places)
        return [conditions[place] for place in (near if len(wider) > LIMITS.deciding else wider)]

    def _comparisons_of(
        self, variables: int, member: Expr, conditions: Sequence[Expr], places: Mapping[int, Sequence[int]]
    ) -> list[int]:
        """The places of comparisons that mention any of ``variables``, except those of the sum in ``member``."""
        found = set[int]().union(*[places[variable] for variable in _bits(variables)])
        return [place for place in sorted(found) if _is_of_another_sum(conditions[place], member)]


def _is_of_another_sum(fact: Expr, member: Expr) -> bool:
    return fact.op in COMPARISONS and not any(a is b for a in fact.args for b in member.args if a.op != "const")


def _interval_and_points(comparisons: Iterable[Expr], all_hold: bool) -> tuple[int, int, dict[str, set[int]]]:
    """The interval in which all comparisons by order hold, or else all fail, and the literals of ``eq`` and ``ne``."""
    low: int = -INFINITY
    high: int = INFINITY
    points: dict[str, set[int]] = {"eq": set(), "ne": set()}
    for comparison in comparisons:
        value = next(a for a in comparison.args if a.op == "const").vmin
        if comparison.op in points:
            points[comparison.op].add(value)
        elif (comparison.op == "le") == all_hold:
            low = max(low, value)
        else:
            high = min(high, value)
    return low, high, points


def _bits(of: int) -> Iterator[int]:
    """The bits of a bit set, each as a number."""
    while of:
        yield of & -of
        of &= of - 1
