"""E-nodes of sums over ranges: two of them as one, or what only one of two has.

``sum(A[r], r, 0, 8) + sum(A[r], r, 8, 16)`` is ``sum(A[r], r, 0, 16)``, and ``sum(A[r], r, 0, n + 1)`` less
``sum(A[r], r, 0, n)`` is ``A[n]``. ``sum(A[r + 1] - A[r], r, 0, 8)`` is a difference of two sums, and so
``A[8] - A[0]``. As a rule this would match two bodies, of which the theory says that they are equal where the indices
are as far apart as the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.theory.forms import LinearForm


@provides("ranges")
def with_one_range(classes: CanonicalGraph, form: LinearForm) -> Iterator[Node]:
    """A sum in which two sums over ranges that meet are one, or in which one less another is what only one has."""
    sums = [(a, k) for a, k in form.terms.items() if a.op == "sum_over"]
    for (one, scale), (other, k) in combinations(sums[: LIMITS.joined_ranges], 2):
        rest = form.without(one).without(other)
        if k == scale:
            for first, second in ((one, other), (other, one)):
                if (whole := classes.theory.joined_ranges(first, second)) is not None:
                    yield classes.sum_node([(rest.plus(classes.theory.form(whole), scale), 1)])
                    break
        elif k == -scale and (left := classes.theory.difference_of_ranges(one, other)) is not None:
            yield classes.sum_node([(rest.plus(left, scale), 1)])
