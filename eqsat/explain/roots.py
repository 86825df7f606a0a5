"""Terms that change one subterm at a time, also only inside of branches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eqsat.lang.expr import Expr, make, rebuild, substitute, with_operands
from eqsat.lang.traversal import topological_until


def replaced_within(root: Expr, before: Expr, after: Expr, given: tuple[Expr, ...]) -> Expr:
    """``root`` with ``after`` for ``before`` wherever that is in the branches that the conditions ``given`` name."""
    if not given:
        return substitute([root], {before: after})[0]

    def enter(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        branch = _branch(term.op, args, given[0])
        if not branch:
            return None
        changed = replaced_within(args[branch], before, after, given[1:])
        return make(term.op, *args[:branch], changed, *args[branch + 1 :])

    return rebuild([root], enter)[0]


def _branch(op: str, args: tuple[Expr, ...], condition: Expr) -> int:
    """Which operand a selection takes where ``condition``, its own or its complement, holds; 0 if it is neither."""
    if op != "where":
        return 0
    return 1 if args[0] is condition else 2 if condition.op == "not" and args[0] is condition.args[0] else 0


class Roots:
    """Terms that change, and which of their subterms uses which: a change touches only what is above it."""

    def __init__(self, terms: Sequence[Expr]) -> None:
        self.terms = list(terms)
        self._users: dict[Expr, set[Expr]] = {}
        for term in terms:
            self._add(term)

    def __contains__(self, term: Expr) -> bool:
        return term in self._users

    def replace(self, before: Expr, after: Expr, given: Sequence[Expr]) -> list[int]:
        """Replace a subterm wherever it occurs in the branches ``given``; which terms that changes."""
        if not given:
            return self._exchange({before: after})
        first = given[0]
        conditions = [first, first.args[0]] if first.op == "not" else [first]
        selections = [user for condition in conditions for user in self._users.get(condition, ())]
        found = {s: replaced_within(s, before, after, tuple(given)) for s in selections if _branch(s.op, s.args, first)}
        return self._exchange({old: new for old, new in found.items() if old is not new})

    def _exchange(self, new: dict[Expr, Expr]) -> list[int]:
        new = {old: term for old, term in new.items() if old in self._users}
        above: set[Expr] = set()
        stack = list(new)
        while stack:
            for user in self._users[stack.pop()]:
                if user not in above:
                    above.add(user)
                    stack.append(user)
        tops = [term for term in self.terms if term in above or term in new]
        for term in topological_until(tops, lambda t: t in new or t not in above):
            new[term] = with_operands(term, tuple([new.get(a, a) for a in term.args]))
        changed = [index for index, term in enumerate(self.terms) if new.get(term, term) is not term]
        old = self.terms
        self.terms = [new.get(term, term) for term in old]
        for index in changed:
            self._add(self.terms[index])
        kept = set(self.terms)
        for index in changed:
            self._drop(old[index], kept)
        return changed

    def _add(self, root: Expr) -> None:
        for term in topological_until([root], self._users.__contains__):
            self._users[term] = set()
            for arg in term.args:
                self._users[arg].add(term)

    def _drop(self, root: Expr, kept: Collection[Expr]) -> None:
        """Forget what no term uses any more."""
        stack = [root]
        while stack:
            term = stack.pop()
            if term in self._users and not self._users[term] and term not in kept:
                del self._users[term]
                for arg in set(term.args):
                    self._users[arg].discard(term)
                    stack.append(arg)
