"""Terms that change one subterm at a time, also only inside of branches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eqsat.lang.expr import Expr, with_operands
from eqsat.lang.traversal import topological_until
from eqsat.prove.explanation import branch_under, replaced_within


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
        found = {
            s: replaced_within(s, before, after, tuple(given)) for s in selections if branch_under(s.op, s.args, first)
        }
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
