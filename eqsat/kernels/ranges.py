"""Ranges of loops, split, merged and flattened: the iteration space of a loop nest with other variables.

A :class:`Nest` is terms over ordered loop variables, its axes. One axis and two are tied by an :class:`Equation`,
``whole == outer*size + inner``: both sides name the same iterations in the same order, so either may stand for the
other. For a choice by cost (:func:`cheapest`) an equation is three unions in one e-graph: ``whole`` with
``outer*size + inner``, ``outer`` with ``whole // size``, ``inner`` with ``whole % size``; every root is there in the
variables of every nest. A nest is then a basis: the variables that may be read. Extraction under the loop-aware cost
prices each basis, the loops themselves included, and the cheapest one is the answer.

The published heuristics are policies over the same equations: :func:`split_at_modulo` (tinygrad's
``pm_split_ranges``) and :func:`merge_adjacent` (``simplify_merge_adjacent``). Nested reductions are flattened as by
``pm_flatten_range`` (:func:`eqsat.kernels.reductions.body_and_variables`), so their ranges are a nest too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import gcd
from typing import Any

from eqsat.alternatives.builder import Builder
from eqsat.egraph.budget import Budget
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.extract.graph import united
from eqsat.extract.select import Priced, total_cost, tree
from eqsat.kernels.kernel import fresh, refuse_endless, set_fields
from eqsat.kernels.limits import LIMITS
from eqsat.kernels.reductions import as_free, body_and_variables, reduction, unguarded_divisions
from eqsat.lang.costs import LATENCY, model_of
from eqsat.lang.expr import Expr, brief, indices_around, substitute
from eqsat.lang.properties import division_count
from eqsat.lang.traversal import (
    extent,
    named_leaves,
    topological,
    with_users,
)
from eqsat.lang.validation import counted, integer_of, list_of, refuse_below, refuse_seconds, require
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.forms import atom_form
from eqsat.theory.linear import LinearArithmetic


@dataclass(frozen=True)
class Axis:
    """A loop over all values of a variable.

    Attributes
    ----------
    variable : Expr
        Its loop runs from its least value to its greatest.
    kind : str
        What the loop is for, such as ``"output"`` or ``"reduce"``: only loops of one kind merge.
    scopes : frozenset of str
        The reductions that it belongs to: only loops of the same ones merge.

    Raises
    ------
    ValueError
        If ``variable`` is no variable, or one without bounds.

    >>> from eqsat.lang.expr import var
    >>> Axis(var("i", 0, 7)).kind
    'output'
    """

    variable: Expr
    kind: str
    scopes: frozenset[str]

    def __init__(self, variable: Expr, kind: str = "output", scopes: Iterable[str] = ()) -> None:
        require(variable, Expr, "the variable of an axis")
        if variable.op != "var":
            raise ValueError(f"an axis needs a variable, not {brief(variable)!r}")
        refuse_endless(variable)
        set_fields(self, variable=variable, kind=kind, scopes=frozenset(scopes))

    @property
    def extent(self) -> int:
        """How many values the variable has."""
        return extent(self.variable)


@dataclass(frozen=True)
class Equation:
    """``whole == outer*size + inner`` with ``0 <= inner < size``, where ``size`` is the extent of ``inner``."""

    whole: Axis
    outer: Axis
    inner: Axis

    @property
    def apart(self) -> dict[Expr, Expr]:
        """What the whole is in terms of its two parts."""
        return {self.whole.variable: self.outer.variable * self.inner.extent + self.inner.variable}

    @property
    def together(self) -> dict[Expr, Expr]:
        """What the parts are in terms of the whole."""
        whole, size = self.whole.variable, self.inner.extent
        return {self.outer.variable: whole // size, self.inner.variable: whole % size}


@dataclass(frozen=True)
class Nest:
    """Terms in a loop nest.

    Attributes
    ----------
    axes : tuple of Axis
        The loops, outermost first.
    roots : tuple of Expr
        The terms that the innermost loop computes.
    gates : tuple of (Expr or None)
        Per root the condition under which its value matters; empty for none.
    images, origins : dict
        If axes were replaced: each variable that has no axis any more, in terms of those that have one, and each new
        variable in terms of those that had one at first.

    Raises
    ------
    ValueError
        If two axes have one variable, or the numbers of roots and gates differ.

    >>> from eqsat import var
    >>> i, j = Axis(var("i", 0, 3)), Axis(var("j", 0, 7))
    >>> nest = Nest((i, j), (i.variable*8 + j.variable,))
    >>> merged = cheapest(nest)
    >>> merged.axes[0].variable, merged.optimized().exprs
    (Expr('m'), (Expr('m'),))
    """

    axes: tuple[Axis, ...]
    roots: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    images: Mapping[Expr, Expr]
    origins: Mapping[Expr, Expr]

    def __init__(
        self,
        axes: Iterable[Axis],
        roots: Iterable[Expr],
        gates: Iterable[Expr | None] = (),
        images: Mapping[Expr, Expr] | None = None,
        origins: Mapping[Expr, Expr] | None = None,
    ) -> None:
        set_fields(self, axes=list_of(Axis, axes, "the axes of a nest"), images=images or {}, origins=origins or {})
        set_fields(self, roots=list_of(Expr, roots, "the roots of a nest"))
        set_fields(self, gates=tuple(gates) or (None,) * len(self.roots))
        if len(self.gates) != len(self.roots):
            given = f"{counted(len(self.gates), 'gate')} for {counted(len(self.roots), 'root')}"
            raise ValueError(f"{given}: give one, or None, for each")
        loops = [axis.variable.value for axis in self.axes]
        for name in loops:
            if loops.count(name) > 1:
                raise ValueError(f"two axes have the variable {name!r}")

    def loops(self, model: CostModel = LATENCY, inside: Mapping[str, int] | None = None) -> LoopAware:
        """The cost model of this nest; ``inside`` are further loops in its innermost one."""
        return LoopAware({str(a.variable.value): a.extent for a in self.axes} | dict(inside or {}), model)

    def optimized(self, cost: CostModel = LATENCY, inside: Mapping[str, int] | None = None, **options: Any) -> Result:
        """The roots through :func:`eqsat.optimize`, priced for this nest."""
        return optimize(self.roots, gates=self.gates, cost=self.loops(cost, inside), **options)

    def split(self, sizes: Mapping[Expr, int]) -> Nest:
        """Each variable of ``sizes`` as an outer one and an inner one of that extent; all at once.

        Raises
        ------
        ValueError
            If a variable is no axis, does not start at 0, or its extent is no multiple of the size.

        >>> from eqsat import var
        >>> r = var("r", 0, 11)
        >>> Nest((Axis(r),), (r % 4,)).split({r: 4}).roots
        (Expr('(r_o*4 + r_i)%4'),)
        """
        return self.replaced(self.splits(sizes))

    def splits(self, sizes: Mapping[Expr, int], taken: set[str] | None = None) -> list[Equation]:
        """The equations of :meth:`split`; new variables have names that are not ``taken``."""
        taken = self.names if taken is None else taken
        found = []
        require(sizes, Mapping, "what a nest splits by")
        for variable, size in sizes.items():
            if (axis := next((a for a in self.axes if a.variable is variable), None)) is None:
                raise ValueError(f"{str(variable)!r} is no axis of the nest")
            size = integer_of(size, f"the size that the loop over {str(variable.value)!r} splits by")
            if variable.vmin or size < 1 or axis.extent % size:
                raise ValueError(
                    f"the loop over {variable.value!r}, [{variable.vmin}, {variable.vmax}], does not split by {size}: "
                    f"it must start at 0 and have a multiple of {size} values"
                )
            outer = fresh(f"{variable.value}_o", taken, axis.extent // size)
            inner = fresh(f"{variable.value}_i", taken, size)
            found.append(Equation(axis, replace(axis, variable=outer), replace(axis, variable=inner)))
        return found

    def merge(self, place: int) -> Nest:
        """The loops at ``place`` and ``place + 1`` as one."""
        return self.replaced([self.merging(place)])

    def merging(self, place: int, taken: set[str] | None = None) -> Equation:
        """The equation of :meth:`merge`; the new variable has a name that is not ``taken``.

        Raises
        ------
        ValueError
            If there are no two such loops, one does not start at 0, or they are for different things.
        """
        outer, inner = self.neighbours(place)
        if _why_apart(outer, inner):
            raise ValueError(
                f"the loops over {outer.variable.value!r} and {inner.variable.value!r} do not merge: both must start "
                f"at 0, be of one kind, and belong to the same reductions"
            )
        whole = fresh("m", self.names if taken is None else taken, outer.extent * inner.extent)
        return Equation(replace(outer, variable=whole), outer, inner)

    def neighbours(self, place: int) -> tuple[Axis, Axis]:
        """The axes at ``place`` and ``place + 1``; a ValueError if there are none."""
        place = integer_of(place, "the place of a merge")
        if not 0 <= place < len(self.axes) - 1:
            raise ValueError(f"there are {len(self.axes)} loops: there are none to merge at {place}")
        return self.axes[place], self.axes[place + 1]

    def replaced(self, equations: Iterable[Equation]) -> Nest:
        """This nest with the axes on one side of each equation replaced by those on the other."""
        axes = list(self.axes)
        images: dict[Expr, Expr] = {}
        origins: dict[Expr, Expr] = {}
        for equation in equations:
            if equation.whole in axes:
                place = axes.index(equation.whole)
                axes[place : place + 1] = [equation.outer, equation.inner]
                images, origins = images | equation.apart, origins | equation.together
            else:
                place = axes.index(equation.outer)
                axes[place : place + 2] = [equation.whole]
                images, origins = images | equation.together, origins | equation.apart
        return self._rewritten(axes, images, origins)

    def _rewritten(self, axes: Iterable[Axis], images: Mapping[Expr, Expr], origins: Mapping[Expr, Expr]) -> Nest:
        """This nest over other axes: ``images`` are the old variables in terms of the new, ``origins`` the reverse."""
        return Nest(
            axes,
            substitute(self.roots, images),
            [None if g is None else substitute([g], images)[0] for g in self.gates],
            {**images, **_values_substituted(self.images, images)},
            {**self.origins, **_values_substituted(origins, self.origins)},
        )

    def with_short_names(self, given: Nest, taken: Iterable[str] = ()) -> Nest:
        """This nest, which was made of ``given`` in steps, as if by one step; names that are ``taken`` are not used.

        The steps made names that differ from those of all nests tried, such as ``r__o``. Here a new name needs to
        differ from those in ``given`` only: extra underscores go, as do variables of steps between the two nests.
        """
        old = [axis.variable for axis in given.axes]
        made = [axis.variable for axis in self.axes if axis.variable not in old]
        known = given.names | set(taken)
        names = {v: fresh(re.sub("_+(?=_|$)", "", str(v.value)), known, v.vmax + 1) for v in made}
        axes = [replace(axis, variable=names.get(axis.variable, axis.variable)) for axis in self.axes]
        new = self._rewritten(axes, names, {name: v for v, name in names.items()})
        images = {v: new.images[v] for v in [*given.images, *old] if v in new.images}
        origins = {a.variable: new.origins[a.variable] for a in axes if a.variable in new.origins}
        return replace(new, images=images, origins=origins)

    @property
    def names(self) -> set[str]:
        """The names of all variables, also of those that have no axis any more."""
        return {str(t.value) for t in topological(self.terms) if t.op == "var"} | {str(v.value) for v in self.images}

    @property
    def terms(self) -> list[Expr]:
        """The roots, their gates and the loop variables."""
        return [*self.roots, *[g for g in self.gates if g is not None], *[a.variable for a in self.axes]]


def _values_substituted(terms: Mapping[Expr, Expr], images: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    return dict(zip(terms, substitute(terms.values(), images), strict=True))


def split_at_modulo(nest: Nest) -> Nest:
    """Split every range that is used modulo a divisor of its extent, all of them at once.

    Of several such divisors of one range the largest is taken first, then those that divide it. A range that is taken
    modulo nothing that divides its extent stays as it is.
    """
    require(nest, Nest, "a nest")
    given = nest
    loops = {a.variable for a in nest.axes if not a.variable.vmin}
    sizes: dict[Expr, set[int]] = defaultdict(set)
    for term in topological(nest.terms):
        if term.op == "mod" and term.args[0] in loops and term.args[1].op == "const":
            sizes[term.args[0]].add(term.args[1].vmin)
    while True:
        extents = {a.variable: a.extent for a in nest.axes}
        fitting = {v: {n for n in found if 1 < n < extents[v] and extents[v] % n == 0} for v, found in sizes.items()}
        if not (equations := nest.splits({v: max(found) for v, found in fitting.items() if found})):
            return nest.with_short_names(given)
        nest = nest.replaced(equations)
        sizes = {e.inner.variable: fitting[e.whole.variable] for e in equations}


@dataclass(frozen=True)
class Merge:
    """Whether two adjacent ranges merge, and why not; the divisions and remainders before and after."""

    nest: Nest
    accepted: bool
    reason: str = ""
    before: int = 0
    after: int = 0


def consider_merge(nest: Nest, place: int, **options: Any) -> Merge:
    """Merge the ranges at ``place`` and ``place + 1``, unless that takes more divisions and remainders.

    They are counted when the roots are simplified. Takes the options of :func:`eqsat.optimize`.

    Raises ``ValueError`` if there are no two such ranges.
    """
    require(nest, Nest, "a nest")
    outer, inner = nest.neighbours(place)
    if reason := _why_apart(outer, inner):
        return Merge(nest, False, reason)
    merged = nest.merge(place)
    counts = [division_count(optimize(n.roots, gates=n.gates, **options).exprs) for n in (nest, merged)]
    if counts[1] > counts[0]:
        return Merge(nest, False, "merging takes more divisions and remainders", *counts)
    return Merge(merged, True, "", *counts)


def merge_adjacent(nest: Nest, **options: Any) -> Nest:
    """Merge adjacent ranges, the innermost first, where :func:`consider_merge` accepts it."""
    require(nest, Nest, "a nest")
    given = nest
    for place in reversed(range(len(nest.axes) - 1)):
        nest = consider_merge(nest, place, **options).nest
    return nest.with_short_names(given)


def in_cheapest_ranges(term: Expr, cost: CostModel = LATENCY, gain: float = 0.0, seconds: float = 2.0) -> Expr:
    """Nested reductions by one operator over the ranges that are cheapest for what they compute of integers.

    Those of floating-point values must be ones that may be reassociated. ``gain`` and ``seconds`` are as for
    :func:`cheapest`.
    """
    body, over = body_and_variables(term)
    axes = tuple([Axis(variable, "reduce") for variable in over])
    # if floating-point values take part, the terms of the nest are the integers that these are computed from
    rounded = with_floats([body])
    parts = [a for t in topological([body]) if t in rounded for a in t.args if a not in rounded and a.op != "buffer"]
    roots = dict.fromkeys(parts) if rounded else [body]
    # the indices of reductions around are free variables in the nest
    nest = Nest(axes, [substitute([t], {index: as_free(index) for index in indices_around(t)})[0] for t in roots])
    if unguarded_divisions(nest.roots):
        # only what is around the term keeps a divisor from zero, which the nest does not know
        return term
    found = cheapest(nest, cost, gain=gain, seconds=seconds)
    if found.axes == axes:
        return term
    return reduction(term.op, substitute([body], found.images)[0], [axis.variable for axis in found.axes])


def with_floats(terms: Iterable[Expr]) -> set[Expr]:
    """The terms below ``terms``, themselves among them, that have floating-point values or are computed from such."""
    order = topological(terms)
    return with_users({t for t in order if t.element}, order)


def cheapest(
    nest: Nest,
    cost: CostModel | str = LATENCY,
    *,
    inside: Mapping[str, int] | None = None,
    gain: float = 0.0,
    seconds: float = 2.0,
    taken: Iterable[str] = (),
) -> Nest:
    """The nest whose loops and terms cost least, among those that splits and merges, one by one, lead to.

    Parameters
    ----------
    nest : Nest
        The loops, and the terms that the innermost one computes.
    cost : CostModel or str
        What one evaluation costs, a model or its name; each term is paid as often as its loop runs.
    inside : mapping from str to int, optional
        Loops of the terms' own, inside the innermost one, which stay: their variables and how often each runs.
    gain : float
        The nest is changed only if that saves more than this share of the cost.
    seconds : float
        Half of it is for considering nests, the rest for pricing what is chosen.
    taken : iterable of str
        Names that new variables may not have.

    Raises
    ------
    ValueError
        If there are less than 0 seconds, or the gain is less than 0.

    >>> from eqsat import var
    >>> r = var("r", 0, 1023)
    >>> [str(a.variable) for a in cheapest(Nest((Axis(r),), (r // 32 * 40, r % 32 * 50))).axes]
    ['r_o', 'r_i']
    >>> cheapest(Nest((Axis(var("r", 0, 9)),), (var("r", 0, 9) % 4,))).axes[0].extent
    10
    """
    require(nest, Nest, "a nest")
    model = model_of(cost)
    refuse_below(0, gain, "as the least gain")
    refuse_seconds(seconds)
    # a fraction, since costs of long loops are integers that no float holds
    most = 1 - Fraction(float(min(gain, 1)))
    budget = Budget(seconds=seconds)
    end = budget.ends()
    space = _Space(nest, model, dict(inside or {}), budget.ends(1 / 2))
    found = _descend(nest, space, most)
    if found is nest:
        return nest
    found = found.with_short_names(nest, taken)

    def price(each: Nest, share: float) -> int:
        result = each.optimized(model, inside, budget=budget.until(end, share))
        return result.cost + space.loop_cost(each)

    # the prices of the search leave out that terms share partial sums, which may turn a narrow choice
    before, after = price(nest, 1 / 2), price(found, 1)
    return found if after < before * most else nest


def _descend(nest: Nest, space: _Space, most: Fraction) -> Nest:
    """The last nest of steps to the cheapest by one split or merge, each of which costs less than ``most`` of it."""
    try:
        space.add(nest)
        space.unite()
        spent = space.cost(nest)
        for _ in range(LIMITS.changes):
            changed = []
            for equation in space.candidates(nest):
                if len(space.builder.values) > LIMITS.classes or space.theory.late_or_raise():
                    break
                changed.append(space.changed(nest, equation))
            # all are in the graph before any is priced: one may use what another adds
            space.unite()
            priced = [(space.cost(other), other) for other in changed]
            least, best = min(priced, key=lambda pair: pair[0], default=(spent, nest))
            if least >= spent * most:
                break
            nest, spent = best, least
    except OverdueError:
        # the best so far is the answer
        pass
    return nest


class _Space:
    """One e-graph with the roots in the variables of every nest that is considered, and the unions that tie those."""

    def __init__(self, nest: Nest, model: CostModel, inside: dict[str, int], until: float) -> None:
        self.model, self.inside = model, inside
        self.theory = LinearArithmetic(work=Work.ending(until))
        self.builder = Builder(self.theory, {})
        #: Pairs of classes whose terms are equal.
        self.unions: list[Sequence[int]] = []
        #: The names of the axes of all nests, and all names.
        self.loops: set[str] = set()
        self.names = nest.names | self.inside.keys()
        #: By the axes of a nest, the classes of the roots in its variables.
        self.roots: dict[tuple[Axis, ...], list[int]] = {}
        self.step = model.price("add", [(0, 9), (0, 9)], (0, 18))

    def add(self, nest: Nest) -> None:
        """Add the roots in the variables of a nest to the graph, and unite them with those of the other nests."""
        builder = self.builder
        builder.leaves |= named_leaves(topological(nest.terms))
        self.loops |= {str(a.variable.value) for a in nest.axes}
        values = []
        for root, gate in zip(nest.roots, nest.gates, strict=True):
            theory = self.theory if gate is None else self.theory.assuming(self.theory.condition(gate))
            # where the gate never holds any value will do
            values.append((theory or self.theory).value(root))
        builder.input.add(topological(nest.roots))
        classes = [builder.add_class(value) for value in values]
        # roots with a gate are equal only where it holds, so they are no one class
        first = next(iter(self.roots.values()), classes)
        self.unions += [pair for *pair, gate in zip(first, classes, nest.gates, strict=True) if gate is None]
        self.roots[nest.axes] = classes
        builder.grow()

    def changed(self, nest: Nest, equation: Equation) -> Nest:
        """``nest`` with one side of an equation replaced by the other; both sides are united in the graph."""
        other = nest.replaced([equation])
        self.add(other)
        for variable, image in (equation.apart | equation.together).items():
            self.unions.append([*map(self.builder.add_class, (atom_form(variable), self.theory.form(image)))])
        self.builder.grow()
        return other

    def cost(self, nest: Nest) -> int:
        """What the cheapest terms in the variables of a nest cost, and its loops."""
        others = self.loops - {str(a.variable.value) for a in nest.axes}
        classes = {
            c: [n for n in nodes if n[1] not in others or n[0] != "var"] for c, nodes in self.graph.classes.items()
        }
        roots = list(dict.fromkeys(self.home[c] for c in self.roots[nest.axes]))
        graph = replace(self.graph, classes=classes, roots=roots)
        priced = Priced.of(graph, nest.loops(self.model, self.inside))
        return total_cost(priced, tree(priced)) + self.loop_cost(nest)

    def unite(self) -> None:
        """Make one class of those that are equal; nests can be priced then."""
        self.graph, self.home = united(self.builder.graph, self.unions)

    def loop_cost(self, nest: Nest) -> int:
        """What the loops of a nest cost: a step of its counter for each iteration of each."""
        loops = nest.loops(self.model)
        return self.step * sum(loops.runs(level + 1) for level in range(len(nest.axes)))

    def candidates(self, nest: Nest) -> list[Equation]:
        """The splits and merges that may pay: splits at sizes by which terms divide, and merges of adjacent loops."""
        uses: Counter[tuple[Expr, int]] = Counter()
        extents = {a.variable: a.extent for a in nest.axes if not a.variable.vmin}
        for term in topological([self.theory.simplify(root) for root in nest.roots]):
            if term.op not in ("floordiv", "mod") or term.args[1].op != "const":
                continue
            for atom, coefficient in self.theory.form(term.args[0]).terms.items():
                size = abs(term.args[1].vmin) // gcd(term.args[1].vmin, coefficient)
                if atom in extents and 1 < size < extents[atom] and extents[atom] % size == 0:
                    uses[atom, size] += 1
        pairs = [place for place, (outer, inner) in enumerate(pairwise(nest.axes)) if not _why_apart(outer, inner)]
        merges = [nest.merging(place, self.names) for place in pairs[: LIMITS.candidates]]
        chosen = [split for split, _ in uses.most_common(LIMITS.candidates)]
        return [*[nest.splits({variable: size}, self.names)[0] for variable, size in chosen], *merges]


def _why_apart(outer: Axis, inner: Axis) -> str:
    """Why two adjacent loops cannot be one; empty if they can."""
    if outer.kind != inner.kind:
        return f"one range is for {outer.kind}, the other for {inner.kind}"
    if outer.scopes != inner.scopes:
        return "the ranges belong to different reductions"
    return "a range does not start at 0" if outer.variable.vmin or inner.variable.vmin else ""
