"""Stores of several elements at a time: neighbours in memory are loaded and stored as vectors.

Whether the indices of an unrolled loop, one per lane, are neighbours is asked of linear arithmetic, then the e-graph:
the distance of each from the one before is a literal if it is one at all. How an index is written does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eqsat.codegen.expressions import ATOM, C_TYPES, Code, element_width
from eqsat.codegen.scopes import LoopWriter, unrolled
from eqsat.egraph.budget import Budget
from eqsat.kernels.kernel import Store
from eqsat.lang.expr import TRUE, Expr, const, replaced
from eqsat.lang.properties import has_reductions, may_divide_by_zero
from eqsat.lang.traversal import Buffer, array_of, extent, topological
from eqsat.optimizer.front import optimize
from eqsat.theory.arithmetic import Work
from eqsat.theory.linear import LinearArithmetic

#: What asking the e-graph which lanes are neighbours may use, for all of a kernel.
BUDGET = Budget(seconds=2.0)

#: How many lanes there may be.
LANES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Run:
    """Lanes ``first``, ``first + 1``, ... that index neighbours, ``length`` of them, from ``base`` on."""

    first: int
    length: int
    base: Expr


def contiguous_runs(
    lanes: Sequence[Expr], theory: LinearArithmetic | None = None, budget: Budget = BUDGET
) -> list[Run]:
    """All lanes as runs of neighbours, as long as they get, in order.

    What the ``theory`` does not decide is asked of the e-graph, within the ``budget``. Lanes that neither shows to be
    neighbours are in different runs: ``[i*4, u, u + 1]`` are two.
    """
    distances = [lane - before for before, lane in pairwise(lanes)]
    # distances that depend on floating-point values are not asked about
    known = [d for d in distances if not any(t.element for t in topological([d]))]
    found = dict(zip(known, map((theory or LinearArithmetic()).simplify, known), strict=True))
    # nor are those that may divide by zero, as a lane may where its value is not chosen: they would be refused
    unsure = [d for d, s in found.items() if s.op != "const" and not any(map(may_divide_by_zero, topological([d])))]
    if unsure and budget.seconds:
        found |= zip(unsure, optimize(unsure, budget=budget).exprs, strict=True)
    steps = [None, *map(found.get, distances)]
    runs: list[Run] = []
    # without lanes there is still the first step
    for lane, (index, step) in enumerate(zip(lanes, steps, strict=False)):
        if step is const(1):
            runs[-1] = Run(runs[-1].first, runs[-1].length + 1, runs[-1].base)
        else:
            runs.append(Run(lane, 1, index))
    return runs


class Vectors:
    """Writes innermost loops in ``lanes`` lanes."""

    def __init__(self, writer: LoopWriter, lanes: int) -> None:
        self.writer, self.lanes = writer, lanes
        # the time after which the e-graph is not asked any more
        self._until = min(Work().until, BUDGET.ends())
        self._theory = LinearArithmetic(work=Work(until=self._until))
        self._types: set[tuple[str, int]] = set()
        # the types of the vectors that were loaded, by name
        self._loaded: dict[str, str] = {}

    def types(self) -> list[str]:
        """The declarations of the types of vectors that were used; a vector may begin at any element of an array."""
        found = []
        for element, length in sorted(self._types):
            kind = C_TYPES[element]
            layout = f"vector_size({length} * sizeof({kind})), aligned(sizeof({kind})), may_alias"
            found.append(f"typedef {kind} {element}x{length} __attribute__(({layout}));")
        return found

    def can_write(self, store: Store) -> bool:
        """Whether an innermost loop has at least ``lanes`` elements, none of them a condition or a reduction."""
        if self.lanes == 1 or not store.over or store.over[-1].vmin or extent(store.over[-1]) < self.lanes:
            return False
        plain = store.when is TRUE and store.array.element != "bool"
        return plain and not has_reductions([store.value])

    def write(self, store: Store, pragma: Sequence[str] = ()) -> None:
        """The innermost loop, ``lanes`` elements at a time, with a ``pragma`` if given, and a loop over the rest."""
        writer, row = self.writer, store.over[-1]
        whole = extent(row) // self.lanes
        step = writer.loop_of(row, "lanes", whole)
        first = step * self.lanes
        lanes = [{row: first + lane if lane else first} for lane in range(self.lanes)]
        places, values = unrolled(store, lanes)
        writer.expect([*places, *values])
        with writer.whole(step, pragma):
            for load in [t for t in topological([store.value]) if t.op == "load"]:
                self._load([replaced([load], lane)[0] for lane in lanes])
            for run in self._runs(places):
                chosen = slice(run.first, run.first + run.length)
                self._store(store.array, run, [writer.need(v) for v in values[chosen]], places[chosen])
        if whole * self.lanes < extent(row):
            writer.expect(store.parts)
            with writer.part(row, str(whole * self.lanes), writer.ends(row)[1]):
                writer.assign(store)

    def _runs(self, places: Sequence[Expr]) -> list[Run]:
        return contiguous_runs(places, self._theory, BUDGET.until(self._until))

    def _load(self, loads: Sequence[Expr]) -> None:
        """One vector for each run of neighbours among elements that may be loaded at once."""
        writer, array = self.writer, array_of(loads[0])
        # an element that may be outside its array, or is inside only in a branch, is loaded where it is used
        safe = all(load in writer.inside and load not in writer.inline for load in loads)
        if not safe or array.element == "bool" or len(set(loads)) < len(loads):
            return
        for run in self._runs([load.args[1] for load in loads]):
            if run.length not in LANES[1:]:
                continue
            kind, name = self._type(array, run.length), writer.local("v")
            self._loaded[name] = kind
            element = writer.element(array, writer.need(run.base))
            writer.emit(f"const {kind} {name} = *(const {kind} *)&{element};")
            for lane, load in enumerate(loads[run.first :][: run.length]):
                writer.bind(load, Code(f"{name}[{lane}]", ATOM, element_width(load)))

    def _store(self, array: Buffer, run: Run, texts: Sequence[str], places: Sequence[Expr]) -> None:
        """One vector store for a run of neighbours, or a store for each."""
        writer = self.writer
        if run.length not in LANES[1:]:
            for place, text in zip(places, texts, strict=True):
                writer.emit(f"{writer.element(array, writer.need(place))} = {text};")
            return
        kind, vector = self._type(array, run.length), texts[0].removesuffix("[0]")
        in_order = all(text == f"{vector}[{lane}]" for lane, text in enumerate(texts))
        moved = in_order and self._loaded.get(vector) == kind
        start = f"*({kind} *)&{writer.element(array, writer.need(run.base))} = "
        values = [f"    {text}," for text in texts]
        writer.emit(*[f"{start}{vector};"] if moved else [f"{start}({kind}){{", *values, "};"])

    def _type(self, array: Buffer, length: int) -> str:
        """The name of the type of ``length`` elements."""
        self._types.add((array.element, length))
        return f"{array.element}x{length}"
