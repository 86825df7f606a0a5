"""C99 source for kernels: loop nests around the expressions of :mod:`eqsat.codegen`.

Every term is computed in the outermost loop in which its variables are known, so what does not change in a loop stands
before it; sums over one range share a loop. No element outside an array is ever touched: a load whose index can leave
its array is either in the branch of a selection that keeps it inside, where C evaluates it only if it is taken, or it
carries a test of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isinf, isnan, prod
from typing import cast

from eqsat.codegen import (
    ADD,
    ATOM,
    EQUAL,
    LESS,
    LONGEST,
    MUL,
    PREFIX,
    WRITE,
    Code,
    Function,
    Writer,
    check_name,
    preamble,
)
from eqsat.definedness import settled
from eqsat.dtypes import LIMITS, select_width, widths
from eqsat.expr import (
    TRUE,
    Expr,
    any_var,
    brief,
    const,
    evaluated_operands,
    extent,
    free_name,
    index_level,
    is_index,
    neutral,
    replaced,
    substitute,
    topological,
    use_counts,
    variables,
)
from eqsat.facts import ContradictionError
from eqsat.interior import Interior, interior_of
from eqsat.kernel import Kernel, Store
from eqsat.lanes import Run, contiguous_runs
from eqsat.linear import Theory
from eqsat.ops import REDUCTIONS, Buffer
from eqsat.schedule import TILE, in_digits, sharing_loops, writes_once

#: Rows with fewer elements than this are not worth a pass of their own.
MIN_ROW = 8

#: How many lanes there may be.
LANES = (1, 2, 4, 8, 16)

#: C's name of each element type.
C_TYPES = {"bool": "bool", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}


def to_c(kernel: Kernel, *, parallel: bool = False, reassociate: bool = False, lanes: int = 1) -> str:
    """C99 source of a function ``void name(inputs..., outputs..., parameters...)``; it compiles on its own.

    Parameters
    ----------
    kernel : Kernel
        One whose buffers have one axis each, as :func:`eqsat.kernel.simplified` makes them.
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

    >>> from eqsat.expr import buffer, var
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
    written = function(kernel, parallel, reassociate, lanes)
    return "#include <math.h>\n" + preamble([written]) + "\n" + written.text


def function(
    kernel: Kernel, parallel: bool = False, reassociate: bool = False, lanes: int = 1, storage: str = ""
) -> Function:
    """The function that :func:`to_c` prints, without what it needs before it."""
    if lanes not in LANES:
        raise ValueError(f"{lanes} lanes: give one of {', '.join(map(str, LANES))}")
    check_name(kernel.name)
    return _LoopWriter(kernel, parallel, reassociate, lanes).function(storage)


@dataclass
class _Scope:
    """A loop, or the function: the lines of its head, and those of its body; a name that is free again after it."""

    head: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    name: str = ""


class _LoopWriter(Writer):
    """Writes one kernel."""

    def __init__(self, kernel: Kernel, parallel: bool, reassociate: bool, lanes: int) -> None:
        self.kernel, self.parallel, self.reassociate, self.lanes = kernel, parallel, reassociate, lanes
        loops = {v for s in kernel.stores for v in s.over}
        super().__init__([t for s in kernel.stores for t in s.parts], kernel.name, kernel.parameters)
        self.arrays = {b.name: self.argument_name(b.name) for b in (*kernel.inputs, *kernel.outputs)}
        self.loop_names = {v: self.argument_name(str(v.value)) for v in sorted(loops, key=lambda v: str(v.value))}
        self.scopes = [_Scope()]
        self.depth: dict[Expr, int] = {}
        self.users: dict[Expr, int] = {}
        self.free: dict[Expr, frozenset[Expr]] = {}
        self.inside = self.inline = frozenset[Expr]()
        # the loops of an index that has more than one
        self.digits: dict[Expr, list[Expr]] = {}
        self.vectors: set[tuple[str, int]] = set()
        # the types of vectors by name
        self.loaded: dict[str, str] = {}

    def function(self, storage: str) -> Function:
        for together in sharing_loops(self.kernel.stores):
            self._nest(together)
        comments = [f"/* {brief(s.target)} = {_said(s)} */" for s in self.kernel.stores]
        lines = [
            *comments,
            self.head(f"{storage}void {self.name}("),
            "{",
            *_indented([_vector_type(element, length) for element, length in sorted(self.vectors)]),
            *_indented(self.scopes[0].lines),
            "}",
            "",
        ]
        return Function(self.name, "\n".join(lines), frozenset(self.helpers))

    def parameters(self) -> list[str]:
        return [
            *[f"const {C_TYPES[b.element]} *restrict {self.arrays[b.name]}" for b in self.kernel.inputs],
            *[f"{C_TYPES[b.element]} *restrict {self.arrays[b.name]}" for b in self.kernel.outputs],
            *[f"{self.type_of(v)} {self.code[v].text}" for v in self.order],
        ]

    def _nest(self, given: Sequence[Store]) -> None:
        """The loops of stores that share them."""
        stores, self.digits = in_digits(given)
        self._expect([t for s in stores for t in s.parts])
        over = stores[0].over
        alone = stores[0] if len(stores) == 1 else None
        block = alone and _transposed_block(alone)
        in_rows = alone and _goes_by_rows(alone)
        interior = alone and not in_rows and interior_of(alone)
        in_lanes = alone and not interior and self._goes_in_lanes(alone)
        # what is left of the loops is written as a whole
        own = 2 if block else 1 if in_rows or interior or in_lanes else 0
        for place, variable in enumerate(over[: len(over) - own]):
            independent = place == 0 and self.parallel and all(map(writes_once, stores))
            self._open_whole(variable, ["#pragma omp parallel for"] * independent)
        if alone and block:
            self._block(alone, block)
        elif alone and in_rows:
            self._row(alone)
        elif alone and interior:
            self._in_parts(alone, interior)
        elif alone and in_lanes:
            self._in_lanes(alone)
        else:
            for store in stores:
                self._assign(store)
        for _ in over[: len(over) - own]:
            self._close()

    def _expect(self, roots: Sequence[Expr], facts: Sequence[Expr] = (), row: Expr | None = None) -> None:
        """Make ready to write ``roots`` and no others; ``facts`` hold where what changes with ``row`` is written."""
        self.widths.update(widths(roots))
        self.users = use_counts(roots)
        self.inside, self.inline = _guarded_loads(roots, facts, row)

    def _assign(self, store: Store) -> None:
        """The statement that stores one element."""
        target, value, when = store.parts
        text = self.need(value)
        line = f"{self.arrays[store.array.name]}[{self.need(target)}] = {text};"
        self.scopes[-1].lines.append(line if when is TRUE else f"if ({self.need(when)}) {line}")

    def _block(self, store: Store, strides: tuple[int, int]) -> None:
        """A square tile of a transposition, by vector instructions."""
        load = store.value
        corner = {v: v.vmin for v in store.over[-2:]}
        source, target = map(Theory().simplify, substitute([load.args[1], store.target.args[1]], corner))
        self._expect([source, target])
        places = [
            f"&{self.arrays[array.name]}[{self.need(place)}], {stride}"
            for array, place, stride in zip(_buffers_of(load, store.target), (source, target), strides, strict=True)
        ]
        self.helpers.add(("transpose_block", 32))
        self.scopes[-1].lines.append(f"transpose_block_i32({', '.join(places)});")

    def _in_parts(self, store: Store, interior: Interior) -> None:
        """The innermost loop in three: where a condition may fail, where all hold and none is tested, and again."""
        variable = store.over[-1]
        self._expect([interior.start, interior.stop])
        start, stop = [self._named(end) for end in (interior.start, interior.stop)]
        parts = [
            (str(variable.vmin), start, store),
            (start, stop, interior.store),
            (stop, str(variable.vmax + 1), store),
        ]
        for low, high, part in parts:
            if low == high:
                continue
            self._expect(part.parts, interior.facts if part is interior.store else (), variable)
            self._open(variable, self.loop_names[variable], low, high, [])
            self._assign(part)
            self._close()
            # what stands in a branch here may not in the next part
            for term in self.inline:
                self.depth.pop(term, None)
                self.code.pop(term, None)

    def _goes_in_lanes(self, store: Store) -> bool:
        """Whether the innermost loop of a store has so many elements, each with a value of its own."""
        if self.lanes == 1 or not store.over or store.over[-1].vmin or extent(store.over[-1]) < self.lanes:
            return False
        plain = store.when is TRUE and store.array.element != "bool"
        return plain and not any(t.op in REDUCTIONS for t in topological([store.value]))

    def _in_lanes(self, store: Store) -> None:
        """The innermost loop, several elements at a time, and after it the elements that are left."""
        row = store.over[-1]
        whole = extent(row) // self.lanes
        step = any_var(f"#{row.value}", 0, whole - 1)
        self.loop_names[step] = self.argument_name(f"{row.value}_lanes")
        first = step * self.lanes
        lanes = [{row: first + lane if lane else first} for lane in range(self.lanes)]
        theory = Theory()
        places, values = zip(*[settled(replaced(store.parts[:2], lane), theory) for lane in lanes], strict=True)
        self._expect([*places, *values])
        self._open_whole(step, [])
        for load in [t for t in topological([store.value]) if t.op == "load"]:
            self._load_lanes([replaced([load], lane)[0] for lane in lanes])
        for run in contiguous_runs(places):
            self._store_lanes(store.array, run, [self.need(v) for v in values[run.first :][: run.length]], places)
        self._close()
        if whole * self.lanes < extent(row):
            self._expect(store.parts)
            self._open(row, self.loop_names[row], str(whole * self.lanes), str(row.vmax + 1), [])
            self._assign(store)
            self._close()

    def _load_lanes(self, loads: Sequence[Expr]) -> None:
        """One vector for each run of neighbours among elements that may be loaded at once."""
        (array, *_) = _buffers_of(*loads)
        # a lane that is not inside its array, or only in some branch, is loaded where it is needed
        safe = all(load in self.inside and load not in self.inline for load in loads)
        if not safe or array.element == "bool" or len(set(loads)) < len(loads):
            return
        for run in contiguous_runs([load.args[1] for load in loads]):
            if run.length not in LANES[1:]:
                continue
            kind, name = self._vector(array, run.length), self.local("v")
            self.loaded[name] = kind
            element = f"{self.arrays[array.name]}[{self.need(run.base)}]"
            self.scopes[-1].lines.append(f"const {kind} {name} = *(const {kind} *)&{element};")
            for lane, load in enumerate(loads[run.first :][: run.length]):
                self.depth[load] = len(self.scopes) - 1
                self.code[load] = Code(f"{name}[{lane}]", ATOM, self.element_width(load))

    def _store_lanes(self, array: Buffer, run: Run, texts: Sequence[str], places: Sequence[Expr]) -> None:
        """One vector store for a run of neighbours, or a store for each."""
        name = self.arrays[array.name]
        if run.length in LANES[1:]:
            kind, vector = self._vector(array, run.length), texts[0].removesuffix("[0]")
            in_order = all(text == f"{vector}[{lane}]" for lane, text in enumerate(texts))
            moved = in_order and self.loaded.get(vector) == kind
            start = f"*({kind} *)&{name}[{self.need(run.base)}] = "
            values = [f"    {text}," for text in texts]
            self.scopes[-1].lines += [f"{start}{vector};"] if moved else [f"{start}({kind}){{", *values, "};"]
        else:
            chosen = places[run.first :][: run.length]
            self.scopes[-1].lines += [f"{name}[{self.need(p)}] = {t};" for p, t in zip(chosen, texts, strict=True)]

    def _vector(self, array: Buffer, length: int) -> str:
        """The name of the type of so many elements."""
        self.vectors.add((array.element, length))
        return f"{array.element}x{length}"

    def _named(self, term: Expr) -> str:
        """The name of a term or a literal, for the head of a loop."""
        self.need(term)
        self._keep(term)
        return self.value(term)

    def _row(self, store: Store) -> None:
        """A reduction with its loop outside the innermost one, over a whole row of the output at a time.

        Each element still takes its values in the same order; but a row is contiguous, and what the elements share is
        computed once.
        """
        variable, term = store.over[-1], store.value
        body, index, low, high = term.args
        element = f"{self.arrays[store.array.name]}[{{}}]"
        self._open_whole(variable, ["#pragma omp simd"])
        self.scopes[-1].lines.append(f"{element.format(self.need(store.target.args[1]))} = {self._start(term)};")
        self._close()
        self._expect([low, high, store.target.args[1], body])
        loops = self._open_range(index, self.need(low), self.need(high), [])
        self._open_whole(variable, ["#pragma omp simd"])
        place = element.format(self.need(store.target.args[1]))
        self.scopes[-1].lines.append(self._step(term, place, self.need(body)))
        for _ in range(loops + 1):
            self._close()

    def _open_whole(self, variable: Expr, pragma: list[str]) -> None:
        """The loop of a store over all values of ``variable``."""
        self._open(variable, self.loop_names[variable], f"{variable.vmin}", f"{variable.vmax + 1}", pragma)

    def _open_range(self, index: Expr, low: str, high: str, pragma: list[str]) -> int:
        """The loops over the range of a reduction, the innermost with the pragma; how many they are."""
        digits = self.digits.get(index, [])
        for digit in digits:
            name = free_name(str(digit.value)[1:], self.names)
            self._open(digit, name, "0", str(extent(digit)), pragma if digit is digits[-1] else [])
        if not digits:
            self._open(index, free_name(f"r{index_level(index)}", self.names), low, high, pragma)
        return len(digits) or 1

    def _open(self, variable: Expr, name: str, low: str, high: str, pragma: list[str]) -> None:
        kind = self.type_of(variable) if variable.vmax < LIMITS[32][1] else "int64_t"
        # the head is written when the loop is closed: what leaves the loop comes before it
        head = [*pragma, f"for ({kind} {name} = {low}; {name} < {high}; {name}++) {{"]
        self.scopes.append(_Scope(head, name=name if is_index(variable) else ""))
        self.depth[variable] = len(self.scopes) - 1
        self.code[variable] = Code(name, ATOM, 64 if kind == "int64_t" else 32)

    def _close(self) -> None:
        """Leave the innermost loop: its lines go to the scope around it, and what was known in it is forgotten."""
        scope = self.scopes.pop()
        self.names.discard(scope.name)
        self.scopes[-1].lines += [*scope.head, *_indented(scope.lines), "}"]
        for term in [t for t, depth in self.depth.items() if depth >= len(self.scopes)]:
            del self.depth[term]
            self.code.pop(term, None)

    def need(self, root: Expr) -> str:
        """The text of ``root``, for use in the innermost scope."""
        stack = [root]
        while stack:
            term = stack[-1]
            if term in self.code:
                stack.pop()
                continue
            waiting = [a for a in evaluated_operands(term) if a not in self.code]
            if waiting:
                stack += waiting[::-1]
                continue
            stack.pop()
            self._write(term)
        self._leave_loops([root], len(self.scopes) - 1)
        return self.value(root)

    def _write(self, term: Expr) -> None:
        depth = self._depth_of(term)
        self._leave_loops(evaluated_operands(term), depth)
        self.depth[term] = depth
        if term.op in REDUCTIONS:
            self._write_reductions(term, depth)
            return
        self.code[term] = code = self.writers[term.op](self, term)
        if self.users[term] > 1 or len(code.text) > LONGEST:
            self._keep(term)

    def _leave_loops(self, terms: Sequence[Expr], depth: int) -> None:
        """Compute those of ``terms`` that scopes around scope ``depth`` can compute, there."""
        for term in terms:
            if self.depth.get(term, 0) < depth:
                self._keep(term)

    def _keep(self, term: Expr) -> None:
        """Give ``term`` a local in its own scope, unless it is a name or a literal, or may not leave its place."""
        code = self.code[term]
        if not term.args or term in self.inline or code.text.isidentifier():
            return
        name = self.local("t")
        self.scopes[self.depth[term]].lines.append(f"const {self.type_of(term)} {name} = {self.value(term)};")
        self.code[term] = Code(name, ATOM, self.width_of(term))

    def _depth_of(self, term: Expr) -> int:
        """The innermost scope that binds a variable of ``term``."""
        if term.op in REDUCTIONS:
            return max([self.depth.get(v, 0) for v in self._free_variables(term)], default=0)
        return max([self.depth.get(a, 0) for a in term.args], default=0)

    def _free_variables(self, term: Expr) -> frozenset[Expr]:
        """The variables of a reduction that are bound around it."""
        found = self.free.get(term)
        if found is None:
            parts = topological([term])
            indices = [t.args[1] for t in parts if t.op in REDUCTIONS]
            bound = {*indices, *[digit for index in indices for digit in self.digits.get(index, [])]}
            found = self.free[term] = frozenset(t for t in parts if t.op == "var" and t not in bound)
        return found

    def _write_reductions(self, term: Expr, depth: int) -> None:
        """The loop of a reduction, which stands in scope ``depth``, and of all others over the same range there."""
        together = [term, *self._beside(term, depth)]
        # what belongs to loops inside that scope waits until this one is closed
        inner = self.scopes[depth + 1 :]
        del self.scopes[depth + 1 :]
        waiting = {t: (d, self.code.pop(t)) for t, d in self.depth.items() if d > depth and t in self.code}
        self.depth = {t: d for t, d in self.depth.items() if d <= depth}
        names = []
        for other in together:
            name = self.local("acc")
            names.append(name)
            self.scopes[-1].lines.append(f"{self.type_of(other)} {name} = {self._start(other)};")
        low, high = [self.code[a] for a in term.args[2:]]
        in_lanes = self.reassociate and all(t.op == "fsum_over" for t in together)
        pragma = [f"#pragma omp simd reduction(+:{', '.join(names)})"] * in_lanes
        loops = self._open_range(term.args[1], low.text, high.within(ADD), pragma)
        for other, name in zip(together, names, strict=True):
            self.scopes[-1].lines.append(self._step(other, name, self.need(other.args[0])))
        for _ in range(loops):
            self._close()
        for other, name in zip(together, names, strict=True):
            self.depth[other] = depth
            self.code[other] = Code(self._finished(other, name), ATOM, self.width_of(other))
        self.scopes += inner
        for other, (other_depth, code) in waiting.items():
            self.depth[other], self.code[other] = other_depth, code

    def _beside(self, term: Expr, depth: int) -> list[Expr]:
        """Other reductions over the range of ``term`` in the same scope, neither of which needs the other."""
        found: list[Expr] = []
        for other in self.users:
            if other is term or other in self.code or other.args[1:] != term.args[1:] or other.op not in REDUCTIONS:
                continue
            if not self._free_variables(other) <= self.code.keys():
                # it belongs into a loop that is not open
                continue
            below = set(topological([other]))
            apart = not below & {term, *found} and other not in topological([term])
            ready = all(a in self.code or a is other or a.op not in REDUCTIONS for a in below)
            if self._depth_of(other) == depth and apart and ready:
                found.append(other)
        return found

    def _start(self, term: Expr) -> str:
        body = term.args[0]
        if term.element:
            return {"fsum_over": "0", "fprod_over": "1", "fmax_over": "-INFINITY", "fmin_over": "INFINITY"}[term.op]
        return self.literal(const(cast(int, neutral(term.op, body)))).text

    def _step(self, term: Expr, name: str, body: str) -> str:
        match term.op.removeprefix("f"):
            case "sum_over":
                return f"{name} += {body};"
            case "prod_over":
                return f"{name} *= {body};"
        kind = self.type_of(term.args[0])
        sign = "<" if "max" in term.op else ">"
        if not body.isidentifier():
            value = self.local("t")
            self.scopes[-1].lines.append(f"const {kind} {value} = {body};")
            body = value
        return f"{name} = {name} {sign} {body} ? {body} : {name};"

    def _finished(self, term: Expr, name: str) -> str:
        """The value of a reduction when its loop is done: integers have no least one to start an extreme from."""
        low, high = term.args[2:]
        if term.element or term.op not in ("max_over", "min_over") or (low < high).vmin:
            return name
        identity = self.literal(const(REDUCTIONS[term.op].identity)).text
        return f"({self.code[low].within(ADD)} < {self.code[high].within(ADD)} ? {name} : {identity})"

    def type_of(self, term: Expr) -> str:
        return C_TYPES[term.element] if term.element else "bool" if term.is_bool else f"int{select_width(term)}_t"

    def width_of(self, term: Expr) -> int:
        return 0 if term.element else select_width(term)

    def value(self, term: Expr) -> str:
        return self.code[term].text if term.element else super().value(term)

    def element_width(self, load: Expr) -> int:
        """The width of the C type of an element that is loaded; 0 for a floating-point value."""
        (array,) = _buffers_of(load)
        return 32 if load.is_bool else 64 if array.element == "i64" else 0 if load.element else 32

    def load(self, term: Expr) -> Code:
        array = cast(Buffer, term.args[0].value)
        index = self.code[term.args[1]]
        text = f"{self.arrays[array.name]}[{index.text}]"
        width = self.element_width(term)
        if term in self.inside:
            return Code(text, ATOM, width)
        size = prod(cast(tuple[int, ...], array.shape))
        place = term.args[1]
        tests = [f"0 <= {index.within(ADD)}"] * (place.vmin < 0)
        tests += [f"{index.within(ADD)} < {size}"] * (place.vmax >= size)
        return Code(f"({' && '.join(tests)} ? {text} : 0)", ATOM, width)

    def float_literal(self, term: Expr) -> Code:
        value = cast(float, term.value)
        if isinf(value):
            return Code("INFINITY" if value > 0 else "-INFINITY", ATOM if value > 0 else PREFIX, 0)
        if isnan(value):
            return Code("NAN", ATOM, 0)
        text = repr(value) + ("f" if term.element == "f32" else "")
        return Code(text, PREFIX if text[0] == "-" else ATOM, 0)

    def float_infix(self, term: Expr, symbol: str, precedence: int) -> Code:
        left, right = [self.code[a] for a in term.args]
        return Code(f"{left.within(precedence)} {symbol} {right.within(precedence + 1)}", precedence, 0)

    def float_sign(self, term: Expr) -> Code:
        code = self.code[term.args[0]]
        return Code("-" + code.within(ATOM if code.text.startswith("-") else PREFIX), PREFIX, 0)

    def float_extreme(self, term: Expr, sign: str) -> Code:
        x, y = [self.code[a].within(ATOM) for a in term.args]
        return Code(f"({x} < {y} ? {x if sign == 'min' else y} : {y if sign == 'min' else x})", ATOM, 0)

    def float_call(self, term: Expr) -> Code:
        suffix = "f" if term.element == "f32" else ""
        return Code(f"{term.op}{suffix}({self.code[term.args[0]].text})", ATOM, 0)

    def converted(self, term: Expr) -> Code:
        return Code(f"({self.type_of(term)}){self.code[term.args[0]].within(PREFIX)}", PREFIX, 0)


_LoopWriter.writers = WRITE | {
    "load": _LoopWriter.load,
    "float": _LoopWriter.float_literal,
    "fadd": lambda w, t: w.float_infix(t, "+", ADD),
    "fsub": lambda w, t: w.float_infix(t, "-", ADD),
    "fmul": lambda w, t: w.float_infix(t, "*", MUL),
    "fdiv": lambda w, t: w.float_infix(t, "/", MUL),
    "flt": lambda w, t: w.float_infix(t, "<", LESS),
    "fle": lambda w, t: w.float_infix(t, "<=", LESS),
    "feq": lambda w, t: w.float_infix(t, "==", EQUAL),
    "fne": lambda w, t: w.float_infix(t, "!=", EQUAL),
    "fneg": _LoopWriter.float_sign,
    "fmin": lambda w, t: w.float_extreme(t, "min"),
    "fmax": lambda w, t: w.float_extreme(t, "max"),
    "exp": _LoopWriter.float_call,
    "log": _LoopWriter.float_call,
    "sqrt": _LoopWriter.float_call,
    "to_float": _LoopWriter.converted,
    "to_double": _LoopWriter.converted,
    "fwhere": Writer.choose,
}


def _said(store: Store) -> str:
    over = ", ".join(str(v) for v in store.over)
    text = brief(store.value, 80) + f" for {over}" * bool(over)
    return text if store.when is TRUE else f"{text} where {brief(store.when)}"


def _indented(lines: Sequence[str]) -> list[str]:
    return [line if line.startswith("#") else "    " + line for line in lines]


def _transposed_block(store: Store) -> tuple[int, int] | None:
    """The strides of the columns of input and output, if the two innermost loops turn a square tile around.

    Elements are moved as they are, 32 bits each; the input goes along the innermost loop, the output along the other.
    """
    load = store.value
    if len(store.over) < 2 or load.op != "load" or store.when is not TRUE or store.array.element not in ("i32", "f32"):
        return None
    column, row = store.over[-2:]
    theory = Theory()
    # a tile is not stored in the order of the loops, which counts where an element is stored twice
    if not _fits(theory, load) or not writes_once(store):
        return None
    source, target = [theory.form(t.args[1]) for t in (load, store.target)]
    if any({row, column} & set(variables([a for a in f.terms if a.op != "var"])) for f in (source, target)):
        return None
    in_line = source.terms.get(row) == target.terms.get(column) == 1
    if not in_line or not extent(row) == extent(column) == TILE or _buffers_of(load)[0].element != store.array.element:
        return None
    return source.terms.get(column, 0), target.terms.get(row, 0)


def _vector_type(element: str, length: int) -> str:
    """The declaration of a vector that may stand anywhere in an array."""
    kind = C_TYPES[element]
    layout = f"vector_size({length} * sizeof({kind})), aligned(sizeof({kind})), may_alias"
    return f"typedef {kind} {element}x{length} __attribute__(({layout}));"


def _buffers_of(*elements: Expr) -> list[Buffer]:
    return [cast(Buffer, element.args[0].value) for element in elements]


def _goes_by_rows(store: Store) -> bool:
    """Whether a store of a reduction reads and writes contiguous rows along its innermost loop.

    That is: each load moves by one element or not at all, some by one, and the range is the same for the whole row.
    """
    term = store.value
    if (
        not store.over
        or term.op not in REDUCTIONS
        or store.when is not TRUE
        or term.op.endswith(("max_over", "min_over"))
    ):
        return False
    row = store.over[-1]
    # partial results stand in the output
    if extent(row) < MIN_ROW or store.array.element != (term.element or f"i{select_width(term)}"):
        return False
    theory = Theory()
    strides = []
    for part in topological([store.target, *term.args]):
        if part.op == "load":
            form = theory.form(part.args[1])
            step = theory.form(substitute([part.args[1]], {row: row + 1})[0]).plus(form, -1)
            if step.terms:
                return False
            strides.append((part, step.constant))
    inner = [stride for part, stride in strides if part is not store.target]
    nested = any(t.op in REDUCTIONS for t in topological([term.args[0]]))
    moving = any(row in variables([end]) for end in term.args[2:])
    return dict(strides)[store.target] == 1 and 1 in inner and set(inner) <= {0, 1} and not nested and not moving


def _guarded_loads(
    roots: Sequence[Expr], facts: Sequence[Expr] = (), row: Expr | None = None
) -> tuple[frozenset[Expr], frozenset[Expr]]:
    """The loads that are inside their array wherever they are evaluated, and the terms that may not be hoisted for it.

    A load that is inside only under the condition of a selection is written into its branch, with all between. What
    changes with ``row`` is evaluated only where ``facts`` hold; the rest may be hoisted to where they do not.
    """
    loads = [t for t in topological(roots) if t.op == "load"]
    inside: set[Expr] = set()
    inline: set[Expr] = set()
    doubtful = []
    for term in loads:
        known = facts if any(t is row for t in topological([term])) else ()
        if _fits(Theory(known), term):
            inside.add(term)
        else:
            doubtful.append((term, known))
    if doubtful:
        branches = list(_branches(roots))
        for term, known in doubtful:
            around = [(condition, terms) for condition, terms in branches if term in terms]
            if not around:
                continue
            try:
                theory = Theory([*known, *[condition for condition, _ in around]])
            except ContradictionError:
                # never evaluated
                continue
            between = _between(max((terms for _, terms in around), key=len), term)
            if _fits(theory, term) and not any(t.op in REDUCTIONS for t in between):
                inside.add(term)
                inline |= between
    return frozenset(inside), frozenset(inline)


def _fits(theory: Theory, term: Expr) -> bool:
    """Whether a load is known to be inside its array."""
    low, high = theory.bounds_of(term.args[1])
    return low >= 0 and high < prod(cast(tuple[int, ...], cast(Buffer, term.args[0].value).shape))


def _branches(roots: Sequence[Expr]) -> Iterator[tuple[Expr, set[Expr]]]:
    """Every branch of every selection: its condition, and the terms that nothing outside of it uses."""
    users: dict[Expr, set[Expr]] = {}
    order = topological(roots)
    for term in order:
        for arg in term.args:
            users.setdefault(arg, set()).add(term)
    for term in order:
        if term.op in ("where", "fwhere") and not any(t.element for t in topological([term.args[0]])):
            for branch, condition in zip(term.args[1:], (term.args[0], ~term.args[0]), strict=True):
                if branch in roots or users[branch] != {term} or term.args.count(branch) > 1:
                    continue
                own: set[Expr] = {branch}
                for part in [*topological([branch])][-2::-1]:
                    if part not in roots and users[part] <= own:
                        own.add(part)
                yield condition, own


def _between(terms: set[Expr], low: Expr) -> set[Expr]:
    """The terms of ``terms`` that need ``low``, itself among them."""
    found = {low}
    for term in topological(terms):
        if term in terms and any(a in found for a in term.args):
            found.add(term)
    return found
