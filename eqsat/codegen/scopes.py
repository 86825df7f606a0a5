"""Terms in nested loops: each is computed in the outermost loop in which its variables are known.

So what does not change in a loop is computed before it. A reduction is a loop; reductions over one range share it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import cast

from eqsat.codegen.expressions import ADD, ATOM, C_TYPES, Code, Writer, c_type, indented, value_width
from eqsat.codegen.limits import CODE_LIMITS
from eqsat.codegen.loads import guarded_loads
from eqsat.kernels.kernel import Kernel, Store
from eqsat.lang.dtypes import common_width, widths
from eqsat.lang.expr import TRUE, Expr, any_var, const, replaced
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.properties import evaluated_operands, neutral
from eqsat.lang.text import free_name
from eqsat.lang.traversal import extent, index_level, is_index, topological, use_counts
from eqsat.theory.definedness import settled
from eqsat.theory.linear import LinearArithmetic


@dataclass
class _Scope:
    """A loop, or the function."""

    head: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    #: The name of a counter that other loops may take afterwards.
    name: str = ""


class LoopWriter(Writer):
    """Writes terms over the arrays and parameters of a kernel in loops: those of its variables and of reductions."""

    def __init__(self, kernel: Kernel, reassociate: bool) -> None:
        super().__init__([t for s in kernel.stores for t in s.parts], kernel.name, kernel.parameters)
        self.kernel, self.reassociate = kernel, reassociate
        self.arrays = {b.name: self.argument_name(b.name) for b in (*kernel.inputs, *kernel.outputs)}
        loops = {v for s in kernel.stores for v in s.over}
        # refuse loops whose counters, which end one beyond the last value, do not fit 64 bits
        widths([v + 1 for v in loops])
        self.loop_names = {v: self.argument_name(str(v.value)) for v in sorted(loops, key=lambda v: str(v.value))}
        self.scopes = [_Scope()]
        # for each term that is written, the place in the scopes of the one that it belongs to
        self.depth: dict[Expr, int] = {}
        # how many terms use each
        self.users: dict[Expr, int] = {}
        # the variables of each reduction that are bound around it
        self.free: dict[Expr, frozenset[Expr]] = {}
        # the terms that must stay in a branch
        self.inline = frozenset[Expr]()
        # the loops of an index that has more than one
        self.digits: dict[Expr, list[Expr]] = {}

    def parameters(self) -> list[str]:
        """How arrays and parameters are declared."""
        arrays = [("const ", b) for b in self.kernel.inputs] + [("", b) for b in self.kernel.outputs]
        return [f"{const}{C_TYPES[b.element]} *restrict {self.arrays[b.name]}" for const, b in arrays] + self.declared()

    @property
    def lines(self) -> list[str]:
        """What the innermost scope holds so far."""
        return self.scopes[-1].lines

    def emit(self, *lines: str) -> None:
        """Write lines into the innermost scope."""
        self.lines.extend(lines)

    def expect(self, roots: Sequence[Expr], facts: Sequence[Expr] = (), row: Expr | None = None) -> None:
        """Prepare to write ``roots`` and no other terms; ``facts`` hold wherever terms with ``row`` are evaluated."""
        # what had to stay in a branch of the terms before may stand elsewhere in these
        self._forget(self.inline)
        self.widths.update(widths(roots))
        self.users = use_counts(roots)
        self.inside, self.inline = guarded_loads(roots, facts, row)

    def need(self, root: Expr) -> str:
        """The text of ``root``, for use in the innermost scope."""
        stack = [root]
        while stack:
            term = stack[-1]
            if term in self.code:
                stack.pop()
                continue
            if waiting := [a for a in evaluated_operands(term) if a not in self.code]:
                stack += waiting[::-1]
                continue
            stack.pop()
            self._write(term)
        self._leave_loops([root], len(self.scopes) - 1)
        return self.value(root)

    def subscript(self, place: Expr) -> str:
        """The text of an index of an array, which C takes at whatever width it is computed."""
        self.need(place)
        return self.code[place].text

    def named(self, root: Expr) -> str:
        """The name of ``root``, or the literal that it is, for the head of a loop."""
        self.need(root)
        self._keep(root)
        return self.value(root)

    def assign(self, *stores: Store) -> None:
        """Write statements that store one element each."""
        for store in stores:
            target, value, when = store.parts
            text = self.need(value)
            line = f"{self.element(store.array, self.subscript(target))} = {text};"
            self.emit(line if when is TRUE else f"if ({self.need(when)}) {line}")

    def bind(self, term: Expr, code: Code) -> None:
        """Let ``code`` be the text of ``term`` until the innermost scope is left."""
        self.depth[term] = len(self.scopes) - 1
        self.code[term] = code

    def whole(self, variable: Expr, pragma: Sequence[str] = ()) -> AbstractContextManager[None]:
        """A loop over all values of ``variable``."""
        return self.part(variable, *self.ends(variable), pragma)

    def ends(self, variable: Expr) -> tuple[str, str]:
        """The first value of ``variable``, and the one after its last."""
        low, high = [self.literal(const(end)).text for end in (variable.vmin, variable.vmax + 1)]
        return low, high

    def part(self, variable: Expr, low: str, high: str, pragma: Sequence[str] = ()) -> AbstractContextManager[None]:
        """A loop over some values of ``variable``."""
        return self._loop(variable, self.loop_names[variable], low, high, pragma)

    def loop_of(self, variable: Expr, part: str, size: int) -> Expr:
        """The variable of a loop over ``size`` parts of the range of ``variable``."""
        loop = any_var(f"#{variable.value}_{part}", 0, size - 1)
        self.loop_names[loop] = self.argument_name(f"{variable.value}_{part}")
        return loop

    @contextmanager
    def over_range(self, reduction: Expr, pragma: Sequence[str] = ()) -> Iterator[None]:
        """The loops over the range of a reduction, whose ends are already written; the pragma is for the innermost."""
        index, low, high = reduction.args[1:]
        with ExitStack() as loops:
            digits = self.digits.get(index, [])
            for digit in digits:
                name = free_name(str(digit.value)[1:], self.names)
                innermost = digit is digits[-1]
                loops.enter_context(self._loop(digit, name, "0", str(extent(digit)), pragma if innermost else ()))
            if not digits:
                name = free_name(f"r{index_level(index)}", self.names)
                ends = self.code[low].text, self.code[high].within(ADD)
                # an empty range may begin beyond the values of its index
                loops.enter_context(self._loop(index, name, *ends, pragma, low))
            yield

    @contextmanager
    def _loop(
        self, variable: Expr, name: str, low: str, high: str, pragma: Sequence[str], *starts: Expr
    ) -> Iterator[None]:
        width = common_width(variable, variable + 1, *starts)
        # the head is written when the loop is closed: terms hoisted out of the loop come before it
        head = [*pragma, f"for (int{width}_t {name} = {low}; {name} < {high}; {name}++) {{"]
        self.scopes.append(_Scope(head, name=name if is_index(variable) else ""))
        self.bind(variable, Code(name, ATOM, width))
        yield
        scope = self.scopes.pop()
        self.names.discard(scope.name)
        self.emit(*scope.head, *indented(scope.lines), "}")
        self._forget([t for t, depth in self.depth.items() if depth >= len(self.scopes)])

    def _forget(self, terms: Collection[Expr]) -> None:
        for term in terms:
            self.depth.pop(term, None)
            self.code.pop(term, None)

    def _write(self, term: Expr) -> None:
        depth = self._depth_of(term)
        self._leave_loops(evaluated_operands(term), depth)
        self.depth[term] = depth
        if term.op in REDUCTIONS:
            self._write_reductions(term, depth)
            return
        self.code[term] = code = self.written(term)
        if self.users[term] > 1 or len(code.text) > CODE_LIMITS.text:
            self._keep(term)

    def _leave_loops(self, terms: Sequence[Expr], depth: int) -> None:
        """Give locals to those of ``terms`` that belong to scopes around scope ``depth``: they are computed there."""
        for term in terms:
            if self.depth.get(term, 0) < depth:
                self._keep(term)

    def _keep(self, term: Expr) -> None:
        """Give ``term`` a local in its own scope, unless it is a name or a literal, or must stay in a branch."""
        code = self.code[term]
        if not term.args or term in self.inline or code.text.isidentifier():
            return
        self.scopes[self.depth[term]].lines.append(self.as_local(term))

    def _depth_of(self, term: Expr) -> int:
        """The place of the innermost scope that binds a variable of ``term``."""
        bound = self._free_variables(term) if term.op in REDUCTIONS else term.args
        return max([self.depth.get(t, 0) for t in bound], default=0)

    def _free_variables(self, term: Expr) -> frozenset[Expr]:
        """The variables of a reduction that are bound around it."""
        if (found := self.free.get(term)) is None:
            parts = topological([term])
            indices = [t.args[1] for t in parts if t.op in REDUCTIONS]
            bound = {*indices, *[digit for index in indices for digit in self.digits.get(index, [])]}
            found = self.free[term] = frozenset(t for t in parts if t.op == "var" and t not in bound)
        return found

    def _write_reductions(self, term: Expr, depth: int) -> None:
        """The loop of a reduction in scope ``depth``, which also computes the others over the same range there."""
        together = [term, *self._sharing_loop(term, depth)]
        # the loops inside that scope are set aside, with their terms, until this loop is closed
        inner = self.scopes[depth + 1 :]
        del self.scopes[depth + 1 :]
        waiting = {t: (d, self.code.pop(t)) for t, d in self.depth.items() if d > depth and t in self.code}
        self.depth = {t: d for t, d in self.depth.items() if d <= depth}
        names = {other: self.local("acc") for other in together}
        self.emit(*[f"{c_type(other)} {name} = {self.start(other)};" for other, name in names.items()])
        innermost = self.digits.get(term.args[1], [term.args[1]])[-1]
        in_lanes = self.reassociate and extent(innermost) >= CODE_LIMITS.lane_steps
        in_lanes = in_lanes and all(t.op == "fsum_over" for t in together)
        pragma = [f"#pragma omp simd reduction(+:{', '.join(names.values())})"] * in_lanes
        with self.over_range(term, pragma):
            for other, name in names.items():
                self.step(other, name, self.need(other.args[0]))
        for other, name in names.items():
            self.bind(other, Code(self._finished(other, name), ATOM, value_width(other)))
        self.scopes += inner
        for other, (other_depth, code) in waiting.items():
            self.depth[other], self.code[other] = other_depth, code

    def _sharing_loop(self, term: Expr, depth: int) -> list[Expr]:
        """Other reductions over the range of ``term`` in the same scope, neither of which needs the other."""
        found: list[Expr] = []
        for other in self.users:
            if other is term or other in self.code or other.args[1:] != term.args[1:] or other.op not in REDUCTIONS:
                continue
            if not self._free_variables(other) <= self.code.keys():
                # its loop is not open yet
                continue
            below = set(topological([other]))
            apart = not below & {term, *found} and other not in topological([term])
            ready = all(a in self.code or a is other or a.op not in REDUCTIONS for a in below)
            if self._depth_of(other) == depth and apart and ready:
                found.append(other)
        return found

    def start(self, term: Expr) -> str:
        """What a reduction starts from."""
        if term.element:
            return {"fsum_over": "0", "fprod_over": "1", "fmax_over": "-INFINITY", "fmin_over": "INFINITY"}[term.op]
        return self.literal(const(cast(int, neutral(term.op, term.args[0])))).text

    def step(self, term: Expr, place: str, body: str) -> None:
        """Write the statement that adds one more value to the result of a reduction, at ``place``."""
        op = term.op.removeprefix("f")
        if op in ("sum_over", "prod_over"):
            self.emit(f"{place} {'+' if op == 'sum_over' else '*'}= {body};")
            return
        if not body.isidentifier():
            name = self.local("t")
            self.emit(f"const {c_type(term.args[0])} {name} = {body};")
            body = name
        sign = "<" if op == "max_over" else ">"
        self.emit(f"{place} = {place} {sign} {body} ? {body} : {place};")

    def _finished(self, term: Expr, name: str) -> str:
        """The value of a reduction after its loop: an extreme of integers has its identity for a range of no steps."""
        low, high = term.args[2:]
        if term.element or term.op not in ("max_over", "min_over") or (low < high).vmin:
            return name
        identity = self.literal(const(REDUCTIONS[term.op].identity)).text
        return f"({self.code[low].within(ADD)} < {self.code[high].within(ADD)} ? {name} : {identity})"


def unrolled(store: Store, images: Sequence[dict[Expr, Expr]]) -> Iterator[tuple[Expr, ...]]:
    """The places, and the values, of a store at these values of its variables."""
    theory = LinearArithmetic()
    return zip(*[settled(replaced(store.parts[:2], image), theory) for image in images], strict=True)
