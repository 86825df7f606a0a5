"""What rules of a user's own found atoms to equal, and values in which these are written so."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.canonical import Value
from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import Expr, substitute, topological
from eqsat.lang.ops import REDUCTIONS
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import LinearForm, as_term


class Equations:
    """Equations of atoms with values that do not follow from what the theory knows."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.values = builder, builder.values
        self._equations: dict[tuple[Expr, Value], None] = {}
        # by class with how many of the equations it was rewritten
        self._rewritten: dict[int, int] = {}

    def note(self, c: int, other: Value | None) -> None:
        """Note what rules found a class to equal, if it is an atom and that does not follow from what is known."""
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else value
        if atom is None or not atom.args or other is None or other == value or (atom, other) in self._equations:
            return
        below = topological([as_term(other)])
        # other loops would stand between an index and its reduction
        if atom in below or not REDUCTIONS.keys().isdisjoint([term.op for term in below]):
            return
        if self._simplified(value) != self._simplified(other):
            self._equations[atom, other] = None

    def rewrite(self) -> list[tuple[int, int]]:
        """The classes with others whose values are theirs, in which atoms are written as what rules found.

        In a sum around such an atom terms may cancel then, and a comparison may lose one on either side.
        """
        equations = [*self._equations]
        pairs: list[tuple[int, int]] = []
        for c in range(len(self.values) if equations else 0):
            done = self._rewritten.get(c, 0)
            if done >= len(equations) or self.builder.classes.may_be_undefined(c):
                continue
            self._rewritten[c] = len(equations)
            value = self.values[c]
            below = set(topological([as_term(value)]))
            new = [(atom, other) for atom, other in equations[done:] if atom in below]
            found = [self._replaced(value, {atom: other}) for atom, other in new]
            for written in (*found, self._simplified(value)) if new else ():
                count, other = len(self.values), self.builder.add_class(written)
                if other == count:
                    # what comes of this is not rewritten in turn
                    self._rewritten[other] = sys.maxsize
                if other != c:
                    pairs.append((c, other))
        return pairs

    def _simplified(self, value: Value) -> Value:
        """A value in which each atom is written as what it was first found to equal."""
        images = dict(reversed(self._equations))
        for _ in range(LIMITS.nested):
            written = self._replaced(value, images)
            if written == value:
                break
            value = written
        return value

    def _replaced(self, value: Value, images: Mapping[Expr, Value]) -> Value:
        """A value with other values for atoms; the value itself where that is no term."""
        try:
            (term,) = substitute([as_term(value)], {atom: as_term(other) for atom, other in images.items()})
            return self.builder.value_of(term)
        except (TooWideError, TypeError, ValueError):
            return value
