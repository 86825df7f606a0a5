"""E-nodes of sums over ranges: several of them as one, or what only one of two has.

``sum(A[r], r, 0, 8) + sum(A[r], r, 8, 16)`` is ``sum(A[r], r, 0, 16)``, and ``sum(A[r], r, 0, n + 1)`` less
``sum(A[r], r, 0, n)`` is ``A[n]``. ``sum(A[r + 1] - A[r], r, 0, 8)`` is a difference of two sums, and so
``A[8] - A[0]``. As a rule this would match two bodies, of which the theory says that they are equal where the indices
are as far apart as the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import gcd

from eqsat.alternatives.canonical import CanonicalGraph
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node
from eqsat.lang.expr import Expr, make
from eqsat.theory.forms import LinearForm, combination, to_expr


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


@provides("ranges")
def with_one_loop(classes: CanonicalGraph, form: LinearForm) -> Iterator[Node]:
    """Different multiples of sums over one range as one sum: ``sum(x, i, u, v) - sum(x//8, i, u, v)*8``.

    That is ``sum(x%8, i, u, v)``. Equal multiples are for a rule to put together.
    """
    over: dict[tuple[Expr, ...], list[Expr]] = {}
    for atom in form.terms:
        if atom.op == "sum_over":
            over.setdefault(atom.args[1:], []).append(atom)
    for ends, sums in over.items():
        if len({abs(form.terms[atom]) for atom in sums}) < 2:
            continue
        scale = gcd(*[form.terms[atom] for atom in sums])
        part = LinearForm({atom: form.terms[atom] // scale for atom in sums}, 0)
        if part != form:
            yield classes.sum_node([(part, scale)], form.plus(part, -scale))
            continue
        body = combination([(classes.theory.inner(atom.args[0]), k) for atom, k in part.terms.items()], 0)
        # those of a remainder are narrow, and then so are those of the sum
        classes.graph.bounds[classes.add_class(body)] = classes.theory.bounds(body)
        yield classes.own_node(make("sum_over", to_expr(body), *ends))
