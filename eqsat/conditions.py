"""Conditions in normal form.

A comparison of integers is a form against a constant; ``and`` and ``or`` are flat, sorted, and without members that the
others imply; ``not`` is pushed to the comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from eqsat.expr import FALSE, TRUE, Expr, const, make, topological, tree_size
from eqsat.facts import chain_members
from eqsat.forms import Form, atom_form, partition, to_expr
from eqsat.quotients import Quotients

#: A comparison is tested against at most so many others of its conjunction or disjunction.
MAX_DECIDING = 8

_COMPLEMENT = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


class Conditions(Quotients):
    """Comparisons, conjunctions and disjunctions in normal form."""

    def _choice(self, term: Expr) -> Expr:
        """Selections and comparisons of conditions, spelled with ``and``, ``or`` and ``not``."""
        parts = [self.conditions[a] for a in term.args]
        if term.op == "where":
            c, x, y = parts
            return self._junction("or", [self._junction("and", [c, x]), self._junction("and", [self.negate(c), y])])
        if term.op in ("min", "max"):
            return self._junction("and" if term.op == "min" else "or", parts)
        x, y = parts
        both = self._junction("and", [x, y])
        neither = self._junction("and", [self.negate(x), self.negate(y)])
        same = self._junction("or", [both, neither])
        return same if term.op == "eq" else self.negate(same)

    def at_least_zero(self, form: Form) -> Expr:
        """The normal form of ``form >= 0``."""
        while True:
            low, high = self.bounds(form)
            if low >= 0:
                return TRUE
            if high < 0:
                return FALSE
            smaller = self._clear_comparison(form)
            if smaller is None:
                chosen = self._where_of_literals(form)
                return _literal(form) if chosen is None else chosen
            form = smaller

    def _where_of_literals(self, form: Form) -> Expr | None:
        """``form >= 0`` for a selection between literals: its condition, or the complement, where one branch holds."""
        if len(form.terms) != 1:
            return None
        ((atom, coefficient),) = form.terms.items()
        if atom.op != "where" or any(branch.op != "const" for branch in atom.args[1:]):
            return None
        yes, no = [coefficient * branch.vmin + form.constant >= 0 for branch in atom.args[1:]]
        # both, or neither, is decided by bounds
        return None if yes == no else atom.args[0] if yes else self.negate(atom.args[0])

    def _clear_comparison(self, form: Form) -> Form | None:
        """An equivalent form with fewer terms or quotients: ``d >= 0`` iff ``d // f >= 0`` for any ``f > 0``."""
        content = form.content()
        if content > 1:
            return Form({a: c // content for a, c in form.terms.items()}, form.constant // content)
        for atom, coefficient in form.sorted_terms():
            if abs(coefficient) == 1 and atom.op == "floordiv" and atom.args[1].op == "const":
                n = cast(int, atom.args[1].value)
                inner = self.inner(atom.args[0])
                rest = form.plus(atom_form(atom), -coefficient)
                if coefficient == 1:
                    return inner.plus(rest, n)
                return rest.times(n).shifted(n - 1).plus(inner, -1)
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = partition(form, f)
                low, high = self.bounds(rest)
                if low // f == high // f:
                    return multiples.shifted(low // f)
        return self._unit_coefficients(form)

    def _unit_coefficients(self, form: Form) -> Form | None:
        """A sum of non-negative terms is at least 1, or at most 0, whatever their positive coefficients."""
        sign = 1 if form.constant == -1 else -1 if form.constant == 0 else 0
        coefficients = [sign * c for c in form.terms.values()]
        if not sign or min(coefficients) <= 0 or max(coefficients) == 1:
            return None
        if any(self.range(a)[0] < 0 for a in form.terms):
            return None
        return Form(dict.fromkeys(form.terms, sign), form.constant)

    def equal_zero(self, form: Form) -> Expr:
        """The normal form of ``form == 0``."""
        content = form.content()
        if not content:
            return FALSE if form.constant else TRUE
        if form.constant % content or form in self.nonzero:
            return FALSE
        low, high = self.bounds(form)
        if low > 0 or high < 0:
            return FALSE
        if content > 1:
            form = Form({a: c // content for a, c in form.terms.items()}, form.constant // content)
            low, high = self.bounds(form)
        if form.sign() < 0:
            form, low, high = form.times(-1), -high, -low
        # at an end of its range equality is a comparison, which may simplify further
        if low == 0:
            return self.at_least_zero(form.times(-1))
        if high == 0:
            return self.at_least_zero(form)
        for f in sorted({abs(c) for c in form.terms.values()}, reverse=True):
            if f > 1:
                multiples, rest = partition(form, f)
                low, high = self.bounds(rest)
                if -f < low and high < f:
                    return self._junction("and", [self.equal_zero(multiples), self.equal_zero(rest)])
        return make("eq", to_expr(Form(form.terms, 0)), const(-form.constant))

    def negate(self, condition: Expr) -> Expr:
        if condition is TRUE:
            return FALSE
        if condition is FALSE:
            return TRUE
        op, args = condition.op, condition.args
        if op in _COMPLEMENT:
            complement = _COMPLEMENT[op]
            return make(complement, *(args[::-1] if op in ("lt", "le") else args))
        if op in ("and", "or"):
            return self._junction(
                "or" if op == "and" else "and", [self.negate(a) for a in chain_members(condition, op)]
            )
        if op == "not":
            return args[0]
        return make("not", condition)

    def _junction(self, op: str, parts: Sequence[Expr]) -> Expr:
        """``and`` or ``or`` over conditions in normal form: flat, sorted, without what the others imply."""
        unit, zero = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
        members = {m: None for part in parts for m in chain_members(part, op)}
        members.pop(unit, None)
        if zero in members:
            return zero
        if len(members) < 2:
            return next(iter(members), unit)
        key = (op, frozenset(members))
        found = self._junctions.get(key)
        if found is None:
            found = self._junctions[key] = self._join(op, members, unit, zero)
        return found

    def _join(self, op: str, members: Iterable[Expr], unit: Expr, zero: Expr) -> Expr:
        merged = self._merge_intervals(op, list(members))
        if merged is None:
            return zero
        found = set(merged)
        for member in merged:
            if self.negate(member) in found:
                return zero
        other = "or" if op == "and" else "and"
        # absorption: p and (p or q) is p
        kept = [m for m in merged if not (m.op == other and any(o in found for o in chain_members(m, other)))]
        if len(kept) > 1:
            kept = self._drop_implied(op, kept)
        if not kept:
            return unit
        kept.sort(key=lambda m: m.key)
        result = kept[0]
        for member in kept[1:]:
            result = make(op, result, member)
        return result

    def _merge_intervals(self, op: str, members: list[Expr]) -> list[Expr] | None:
        """Comparisons of one form with constants, merged; ``None`` if together they decide the junction."""
        others: list[Expr] = []
        limits: dict[Expr, list[int | None]] = {}
        for member in members:
            if member.op == "lt" and member.args[1].op == "const":
                slot, value = 1, cast(int, member.args[1].value)
                form = member.args[0]
            elif member.op == "le" and member.args[0].op == "const":
                slot, value = 0, cast(int, member.args[0].value)
                form = member.args[1]
            else:
                others.append(member)
                continue
            limit = limits.setdefault(form, [None, None])
            old = limit[slot]
            stronger = max if (slot == 0) == (op == "and") else min
            limit[slot] = value if old is None else stronger(old, value)
        for form, (least, below) in limits.items():
            if least is not None and below is not None:
                # "and": least <= form < below may be empty; "or": form < below or least <= form may be everything
                if (op == "and" and least >= below) or (op == "or" and least <= below):
                    return None
                if op == "and" and least + 1 == below:
                    others.append(self.equal_zero(self.form(form).shifted(-least)))
                    continue
            if least is not None:
                others.append(make("le", const(least), form))
            if below is not None:
                others.append(make("lt", form, const(below)))
        return others

    def _drop_implied(self, op: str, members: list[Expr]) -> list[Expr]:
        """Drop the members that the others decide: under ``and`` the others hold, under ``or`` they fail."""
        kept = sorted(members, key=lambda m: m.key)
        for member in list(kept):
            others = [m for m in kept if m is not member and self._may_decide(m, member)]
            if member.op not in _COMPLEMENT or not others or len(others) > MAX_DECIDING:
                continue
            theory = self._given(others if op == "and" else [self.negate(m) for m in others])
            if theory is None:
                return [FALSE] if op == "and" else [TRUE]
            if theory is not self and theory.condition(member) is (TRUE if op == "and" else FALSE):
                kept.remove(member)
        return kept

    def in_context(self, junction: Expr) -> Expr:
        """A junction with each member read where the others hold (under ``or``: fail), if that makes it simpler.

        No normal form: which member becomes simpler by which others is a matter of order.
        """
        op, members = junction.op, chain_members(junction, junction.op)
        for member in sorted(members, key=lambda m: m.key):
            others = [m for m in members if m is not member and self._may_decide(m, member)]
            if not others or len(others) > MAX_DECIDING or member.op not in _COMPLEMENT or not _has_quotient(member):
                continue
            theory = self._given(others if op == "and" else [self.negate(m) for m in others])
            simpler = member if theory is None else theory.condition(member)
            if tree_size(simpler) < tree_size(member):
                joined = self._junction(op, [simpler if m is member else m for m in members])
                return self.in_context(joined) if joined.op == op else joined
        return junction

    def _may_decide(self, fact: Expr, member: Expr) -> bool:
        """Whether a comparison speaks of the variables of another, but not of the same sum: those are merged."""
        shares = self.variables.of(fact) & self.variables.of(member)
        same = any(a is b for a in fact.args for b in member.args if a.op != "const")
        return bool(shares) and fact.op in _COMPLEMENT and not same


def _has_quotient(condition: Expr) -> bool:
    return any(t.op == "floordiv" for t in topological([condition]))


def _literal(form: Form) -> Expr:
    """``form >= 0`` as a comparison with a constant, the first coefficient made positive."""
    terms = Form(form.terms, 0)
    if form.sign() > 0:
        return make("le", const(-form.constant), to_expr(terms))
    return make("lt", to_expr(terms.times(-1)), const(form.constant + 1))
