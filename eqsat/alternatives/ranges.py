"""E-nodes of sums over ranges: two of them as one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eqsat.alternatives.canonical import KindNodes, sum_of
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr, any_var, replaced
from eqsat.lang.infinity import INFINITY
from eqsat.theory.forms import LinearForm, atom_form, to_expr
from eqsat.theory.ranges import Range, reduction


class RangeNodes(KindNodes):
    """Sums over two ranges, one of which goes on where the other ends, or is a part of it, as one sum.

    ``sum(A[r], r, 0, 8) + sum(A[r], r, 8, 16)`` is ``sum(A[r], r, 0, 16)``, and ``sum(A[r], r, 0, n + 1)`` less
    ``sum(A[r], r, 0, n)`` is ``A[n]``. As a rule this would match two bodies, of which the theory says that they are
    equal where the indices are as far apart as the ranges.
    """

    @provides("ranges")
    def joined(self, form: LinearForm) -> Iterator[Node]:
        """A sum in which two sums over ranges are one."""
        sums = [(a, k) for a, k in form.terms.items() if a.op == "sum_over"]
        for (one, scale), (other, k) in combinations(sums[: LIMITS.joined_ranges], 2):
            found: LinearForm | None = None
            if k == scale:
                found = self._one_after_the_other(one, other) or self._one_after_the_other(other, one)
            elif k == -scale:
                found = self._less(one, other)
                if found is None and (found := self._less(other, one)) is not None:
                    # the larger range is the one that is subtracted
                    scale = k
            if found is not None:
                rest = LinearForm({a: c for a, c in form.terms.items() if a not in (one, other)}, form.constant)
                yield sum_of([(self.add_class(rest.plus(found, scale)), 1)], 0)

    def _one_after_the_other(self, one: Expr, other: Expr) -> LinearForm | None:
        """The sum over both ranges, if the second goes on where the first ends."""
        first, second = self._over(one), self._over(other)
        if not (self._is_ordered(first) and self._is_ordered(second)):
            return None
        if not self._go_on(one, other, first.high.plus(second.low, -1)):
            return None
        return self._sum(one, first.low, first.high.plus(second.extent))

    def _less(self, whole: Expr, part: Expr) -> LinearForm | None:
        """The sum over what the range of ``whole`` has beyond that of ``part``, a beginning or an end of it."""
        over, inner = self._over(whole), self._over(part)
        if not self._is_ordered(inner) or self.theory.bounds(over.extent.plus(inner.extent, -1))[0] < 0:
            return None
        if self._go_on(whole, part, over.low.plus(inner.low, -1)):
            return self._sum(whole, over.low.plus(inner.extent), over.high)
        if self._go_on(whole, part, over.high.plus(inner.high, -1)):
            return self._sum(whole, over.low, over.high.plus(inner.extent, -1))
        return None

    def _over(self, atom: Expr) -> Range:
        _, index, low, high = atom.args
        return Range(index, self.theory.inner(low), self.theory.inner(high))

    def _is_ordered(self, over: Range) -> bool:
        return self.theory.bounds(over.extent)[0] >= 0

    def _go_on(self, one: Expr, other: Expr, distance: LinearForm) -> bool:
        """Whether the body of one at an index is that of the other ``distance`` before it."""
        index = any_var("#joined", -INFINITY, INFINITY)
        at = to_expr(atom_form(index).plus(distance))
        (first,), (second,) = (
            replaced([one.args[0]], {one.args[1]: at}),
            replaced([other.args[0]], {other.args[1]: index}),
        )
        return self.theory.value(first) == self.theory.value(second)

    def _sum(self, like: Expr, low: LinearForm, high: LinearForm) -> LinearForm:
        """The sum of the body of ``like`` over another range."""
        body, index, *_ = like.args
        ends = [self.theory.bounds(low)[0], self.theory.bounds(high)[1] - 1]
        # the body of the part of a range may be simpler than elsewhere
        free = any_var("#joined", min(ends), max(ends))
        return self.theory.form(reduction("sum_over", replaced([body], {index: free})[0], Range(free, low, high)))
