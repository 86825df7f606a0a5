"""E-nodes of sums over ranges: two of them as one.

``sum(A[r], r, 0, 8) + sum(A[r], r, 8, 16)`` is ``sum(A[r], r, 0, 16)``, and ``sum(A[r], r, 0, n + 1)`` less
``sum(A[r], r, 0, n)`` is ``A[n]``. As a rule this would match two bodies, of which the theory says that they are equal
where the indices are as far apart as the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.theory.adjacent import beyond, joined
from eqsat.theory.forms import LinearForm


@provides("ranges")
def with_one_range(classes: CanonicalGraph, form: LinearForm) -> Iterator[Node]:
    """A sum in which two sums over ranges are one: a range goes on where the other ends, or is a part of it."""
    sums = [(a, k) for a, k in form.terms.items() if a.op == "sum_over"]
    for (one, scale), (other, k) in combinations(sums[: LIMITS.joined_ranges], 2):
        if abs(k) != abs(scale):
            continue
        join = joined if k == scale else beyond
        # the larger range may be the one that is subtracted
        for first, second, times in ((one, other, scale), (other, one, k)):
            if (found := join(classes.theory, first, second)) is not None:
                rest = form.without(one).without(other)
                yield classes.sum_node([(rest.plus(classes.theory.form(found), times), 1)])
                break
