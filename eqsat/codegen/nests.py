"""C99 source for kernels: the loops around the expressions of :mod:`eqsat.codegen.expressions`.

Most stores are one statement in the loops over their variables. Four kinds are written together with their innermost
loops: a transposed tile, a row of reductions, a row with an interior, and a row in vector lanes. No element outside an
array is ever touched: a load whose index can leave its array is either in the branch of a selection that keeps it
inside (:mod:`eqsat.codegen.loads`), or it is tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import NamedTuple, SupportsIndex

import numpy as np

from eqsat.codegen.expressions import Function, c_type, check_name, internal_name, preamble
from eqsat.codegen.interior import Interior, interior_of
from eqsat.codegen.limits import CODE_LIMITS
from eqsat.codegen.loads import is_inside_where, with_selected_loads
from eqsat.codegen.scopes import LoopWriter, unrolled
from eqsat.codegen.vectors import LANES, Vectors
from eqsat.kernels.kernel import DTYPES, Kernel, Store, equal_store, flattened
from eqsat.kernels.schedule import TILE, in_digits, sharing_loops, writes_once
from eqsat.lang.dtypes import select_width
from eqsat.lang.expr import TRUE, Expr, brief, replaced, substitute
from eqsat.lang.functions import maximum
from eqsat.lang.properties import has_reductions, misfits
from eqsat.lang.traversal import array_of, extent, mentions, topological, variables
from eqsat.theory.forms import ZERO, number
from eqsat.theory.linear import LinearArithmetic

#: Elements of a row whose sums are taken together, so that vector registers hold them.
STRIP = 16

#: How many rows have their sums taken together, the first number that divides their count: while a sum waits for its
#: last step, those of other rows go on.
ROWS = (4, 2)


def to_c(kernel: Kernel, *, parallel: bool = False, reassociate: bool = False, lanes: int = 1) -> str:
    """C99 source of a function ``void name(inputs..., outputs..., parameters...)``; it compiles on its own.

    Parameters
    ----------
    kernel : Kernel
        Buffers of several axes become flat ones in row-major order.
    parallel : bool
        Whether outermost loops that write every element once become OpenMP loops.
    reassociate : bool
        Whether floating-point sums may be taken in several lanes at once.
    lanes : int
        How many elements an innermost loop without a reduction stores at a time: a power of two. Those that are
        neighbours in memory become vector loads and stores.

    Raises
    ------
    ValueError
        If an integer does not fit 64 bits, the name cannot name a C function, or ``lanes`` is no power of two.
    TypeError
        If ``kernel`` is no kernel.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, i = buffer("A", "f32", (8,)), buffer("B", "f32", (8,)), var("i", 0, 7)
    >>> print(to_c(Kernel("copy", [Store(b[i], a[i] * 2.0, [i])])))
    #include <math.h>
    #include <stdbool.h>
    #include <stdint.h>
    <BLANKLINE>
    /* B[i] = A[i]*2.0 for i */
    void copy(const float *restrict A, float *restrict B)
    {
        for (int32_t i = 0; i < 8; i++) {
            B[i] = A[i] * 2.0f;
        }
    }
    <BLANKLINE>
    """
    written = function(flattened(kernel), parallel, reassociate, lanes)
    return "#include <math.h>\n" + preamble([written]) + "\n" + written.text


def function(
    kernel: Kernel, parallel: bool = False, reassociate: bool = False, lanes: int = 1, storage: str = ""
) -> Function:
    """The function that :func:`to_c` prints, without what it needs before it.

    One that is ``"static "`` has another name where C cannot take that of the kernel.
    """
    if not isinstance(lanes, SupportsIndex) or lanes not in LANES:
        raise ValueError(f"{lanes!r} lanes: give one of {', '.join(map(str, LANES))}")
    if storage:
        kernel = Kernel(internal_name(kernel.name), kernel.stores)
    check_name(kernel.name)
    return _Nests(kernel, parallel, reassociate, int(lanes)).function(storage)


class _Part(NamedTuple):
    """A part of a loop, its ends as they are written, what is stored there, and facts that hold there."""

    start: str
    stop: str
    store: Store
    facts: tuple[Expr, ...] = ()


class _Nests:
    """Writes the loop nests of one kernel."""

    def __init__(self, kernel: Kernel, parallel: bool, reassociate: bool, lanes: int) -> None:
        self.kernel, self.parallel = kernel, parallel
        self.writer = LoopWriter(kernel, reassociate)
        self.vectors = Vectors(self.writer, lanes)

    def function(self, storage: str) -> Function:
        for together in sharing_loops(self.kernel.stores):
            self._nest(together)
        writer = self.writer
        comment = [f"/* {_summary(s)} */" for s in self.kernel.stores]
        return writer.function(comment, storage, writer.parameters(), [*self.vectors.types(), *writer.lines])

    def _nest(self, given: Sequence[Store]) -> None:
        """The loops of stores that share them."""
        stores, self.writer.digits = in_digits(with_selected_loads(given))
        self.writer.expect([t for s in stores for t in s.parts])
        own, write = self._innermost(stores)
        over = stores[0].over
        with ExitStack() as loops:
            for place, variable in enumerate(over[: len(over) - own]):
                loops.enter_context(self.writer.whole(variable, [] if place else self._pragma(stores)))
            write()

    def _pragma(self, stores: Sequence[Store]) -> list[str]:
        """What makes an outermost loop a parallel one, if that is asked for and no element is stored twice."""
        return ["#pragma omp parallel for"] * (self.parallel and all(map(writes_once, stores)))

    def _innermost(self, stores: Sequence[Store]) -> tuple[int, Callable[[], None]]:
        """How many of the innermost loops are written together with the body, and what writes them."""
        if len(stores) == 1:
            (store,) = stores
            if block := _transposed_block(store):
                return 2, partial(self._block, store, block)
            if _goes_by_rows(store):
                if tile := _tile_of_sums(store):
                    return 2, partial(self._sums, store, *tile)
                return 1, partial(self._row, store)
            if interior := interior_of(store):
                return 1, partial(self._in_parts, store, interior)
            if self.vectors.can_write(store):
                return 1, partial(self.vectors.write, store, self._pragma(stores) if len(store.over) == 1 else [])
        return 0, partial(self.writer.assign, *stores)

    def _block(self, store: Store, strides: tuple[int, int]) -> None:
        """A square tile of a transposition, by vector instructions."""
        load = store.value
        corner = {v: v.vmin for v in store.over[-2:]}
        given = substitute([load.args[1], store.target.args[1]], corner)
        starts = list(map(LinearArithmetic().simplify, given))
        # a normal form may not fit 64 bits where the given term does
        starts = given if misfits(starts) else starts
        self.writer.expect(starts)
        arrays = (array_of(load), store.array)
        places = [
            f"&{self.writer.element(array, self.writer.need(start))}, {stride}"
            for array, start, stride in zip(arrays, starts, strides, strict=True)
        ]
        self.writer.emit(self.writer.call("transpose_block", 32, *places).text + ";")

    def _row(self, store: Store) -> None:
        """A reduction whose loop is outside the innermost one: each step, in order, is taken for a whole output row."""
        writer, term = self.writer, store.value
        row, target = store.over[-1], store.target.args[1]
        body, _, low, high = term.args
        with writer.whole(row, ["#pragma omp simd"]):
            writer.emit(f"{writer.element(store.array, writer.subscript(target))} = {writer.start(term)};")
        writer.expect([low, high, target, body])
        for end in (low, high):
            writer.need(end)
        with writer.over_range(term), writer.whole(row, ["#pragma omp simd"]):
            place = writer.element(store.array, writer.need(target))
            writer.step(term, place, writer.need(body))

    def _sums(self, store: Store, rows: int, strip: int) -> None:
        """A reduction over strips of several rows of the output, its steps in order; rows of an interior are apart."""
        writer, (outer, row) = self.writer, store.over[-2:]
        block = writer.loop_of(outer, "rows", extent(outer) // rows)
        parts = [_Part(*writer.ends(block), store)]
        pragma = self._pragma([store]) if len(store.over) == 2 else []
        interior = None if pragma else interior_of(equal_store(store, store.parts, [*store.over[:-2], row, outer]))
        # its ends must be the same in every column, to be ends of whole blocks of rows
        if interior and not any(mentions(end, row) for end in (interior.start, interior.stop)):
            # the blocks of which all rows are inside
            low = (interior.start + (rows - 1)) // rows
            start, stop = map(LinearArithmetic().simplify, (low, maximum(low, interior.stop // rows)))
            inside = equal_store(store, interior.store.parts, store.over)
            parts = self._parts(block, store, replace(interior, start=start, stop=stop, store=inside))
        strips = [writer.loop_of(row, "strip", extent(row) // strip)] if extent(row) > strip else []
        lane = writer.loop_of(row, "in", strip)
        along = strips[0] * strip + lane if strips else lane
        images = [{outer: block * rows + n if n else block * rows, row: along} for n in range(rows)]
        for part in parts:
            known = [fact for image in images for fact in replaced(part.facts, image)]
            with ExitStack() as loops:
                loops.enter_context(writer.part(block, part.start, part.stop, pragma))
                for loop in strips:
                    loops.enter_context(writer.whole(loop))
                self._strip(part.store, images, lane, known, block)

    def _parts(self, loop: Expr, store: Store, interior: Interior) -> list[_Part]:
        """The parts of a loop before, in and after its interior, but for those that are empty."""
        self.writer.expect([interior.start, interior.stop])
        start, stop = map(self.writer.named, (interior.start, interior.stop))
        first, beyond = self.writer.ends(loop)
        inside = _Part(start, stop, interior.store, interior.facts)
        parts = [_Part(first, start, store), inside, _Part(stop, beyond, store)]
        return [part for part in parts if part.start != part.stop]

    def _strip(
        self, store: Store, images: Sequence[dict[Expr, Expr]], lane: Expr, facts: Sequence[Expr], block: Expr
    ) -> None:
        """The sums of one strip of some rows, kept apart from the output until they are done."""
        writer = self.writer
        places, sums = unrolled(store, images)
        at, simd = writer.loop_names[lane], ["#pragma omp simd"]
        names = [writer.local("acc") for _ in sums]
        writer.emit(*[f"{c_type(store.value)} {name}[{extent(lane)}];" for name in names])
        with writer.whole(lane, simd):
            writer.emit(*[f"{name}[{at}] = {writer.start(store.value)};" for name in names])
        writer.expect([t for term in sums for t in (term.args[0], *term.args[2:])], facts, block)
        for end in sums[0].args[2:]:
            writer.need(end)
        with writer.over_range(sums[0]), writer.whole(lane, simd):
            for name, term in zip(names, sums, strict=True):
                writer.step(term, f"{name}[{at}]", writer.need(term.args[0]))
        writer.expect(places)
        with writer.whole(lane, simd):
            for name, place in zip(names, places, strict=True):
                writer.emit(f"{writer.element(store.array, writer.subscript(place))} = {name}[{at}];")

    def _in_parts(self, store: Store, interior: Interior) -> None:
        """The innermost loop in three parts: in the middle one conditions hold, in the others they are tested."""
        writer, row = self.writer, store.over[-1]
        pragma = self._pragma([store]) if len(store.over) == 1 else []
        for part in self._parts(row, store, interior):
            writer.expect(part.store.parts, part.facts, row)
            # the parts around the middle one are short
            with writer.part(row, part.start, part.stop, pragma if part.facts else []):
                writer.assign(part.store)


def _summary(store: Store) -> str:
    """What a store does, for a comment."""
    over = ", ".join(str(v) for v in store.over)
    text = f"{brief(store.target)} = {brief(store.value, 80)}" + f" for {over}" * bool(over)
    return text if store.when is TRUE else f"{text} where {brief(store.when)}"


def _transposed_block(store: Store) -> tuple[int, int] | None:
    """The strides of input and output columns, if the two innermost loops turn a tile of 32-bit elements around."""
    load = store.value
    if len(store.over) < 2 or load.op != "load" or store.when is not TRUE or store.array.element not in ("i32", "f32"):
        return None
    column, row = store.over[-2:]
    theory = LinearArithmetic()
    # a tile is stored in another order than that of the loops, which matters if an element is stored twice
    if not is_inside_where([], load) or not writes_once(store):
        return None
    source, target = [theory.form(t.args[1]) for t in (load, store.target)]
    if any({row, column} & set(variables([a for a in f.terms if a.op != "var"])) for f in (source, target)):
        return None
    in_line = source.terms.get(row) == target.terms.get(column) == 1
    if not in_line or not extent(row) == extent(column) == TILE or array_of(load).element != store.array.element:
        return None
    return source.terms.get(column, 0), target.terms.get(row, 0)


def _tile_of_sums(store: Store) -> tuple[int, int] | None:
    """How many rows, and elements of each, of a store that goes by rows are taken at a time; None for one whole row."""
    if len(store.over) < 2:
        return None
    outer, row = store.over[-2:]
    rows = next((n for n in ROWS if extent(outer) % n == 0), None)
    strip = STRIP if extent(row) % STRIP == 0 else extent(row)
    far = any(
        array_of(t).size * np.dtype(DTYPES[array_of(t).element]).itemsize > CODE_LIMITS.stripped_bytes
        for t in topological([store.value])
        if t.op == "load" and mentions(t, row)
    )
    moving = outer in variables(store.value.args[2:])
    if rows is None or strip > CODE_LIMITS.strip or outer.vmin or row.vmin or far or moving or not writes_once(store):
        return None
    return rows, strip


def _goes_by_rows(store: Store) -> bool:
    """Whether loads of a reduction move by one element or not at all along the innermost loop, as its store does."""
    term = store.value
    if not store.over or store.when is not TRUE or term.op.removeprefix("f") not in ("sum_over", "prod_over"):
        return False
    row = store.over[-1]
    # partial results are kept in the output, so its elements must have their type
    if extent(row) < CODE_LIMITS.row or store.array.element != (term.element or f"i{select_width(term)}"):
        return False
    theory = LinearArithmetic()
    places = {t: t.args[1] for t in topological([store.target, *term.args]) if t.op == "load"}
    following = substitute(list(places.values()), {row: row + 1})
    strides = {
        part: theory.form(after).plus(theory.form(place), -1)
        for (part, place), after in zip(places.items(), following, strict=True)
    }
    one = number(1)
    contiguous = strides.pop(store.target) == one and {*strides.values()} in ({one}, {one, ZERO})
    return contiguous and not has_reductions(term.args[:1]) and row not in variables(term.args[2:])
