"""Rewriting the operations of an MLIR module: proposals, which operations become dead by them, and what they save."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eqsat.extract.cost import CostModel, PriceError
from eqsat.extract.graph import reached
from eqsat.interop.mlir.emit import Emitted, Emitter, Typed
from eqsat.interop.mlir.terms import NotReadError, Terms, is_assumption, own_terms
from eqsat.interop.mlir.text import Block, Module, Statement, Value
from eqsat.lang.costs import prices
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import Expr, make
from eqsat.lang.ops import OPS, Bounds
from eqsat.lang.properties import facts_on
from eqsat.lang.text import numbered
from eqsat.lang.traversal import variables

#: The cheapest terms found that equal some where facts hold, by a cost model and an extractor.
type Optimize = Callable[[Sequence[Expr], Sequence[Expr], CostModel, str], tuple[Expr, ...]]

#: Operators that take their operands in either order.
_COMMUTE = frozenset(name for name, op in OPS.items() if op.commutes)


def _resolved(values: Iterable[Value]) -> list[Value]:
    return [value.resolved for value in values]


@dataclass(frozen=True)
class Proposal:
    """New operations for statements, and those that become dead by them."""

    emitted: dict[Statement, Emitted]
    dead: list[Statement]
    #: What that saves in the block, and then outside of it, where operations run less often.
    saving: tuple[int, int]


@dataclass(eq=False)
class Program:
    """A module while it is rewritten; see :func:`eqsat.interop.mlir.rewriting`."""

    module: Module
    model: CostModel
    optimize: Optimize
    #: When the time of the module is up.
    end: float
    ranges: Mapping[str, Bounds]
    atoms: Callable[[Expr], bool] | None

    def __post_init__(self) -> None:
        #: What was not tried at the end: blocks of ``arith`` operations, and statements with affine expressions.
        self.untried: set[Block | Statement] = set()
        self.terms = Terms(self.module, ranges=self.ranges, atoms=self.atoms)
        self.terms.read(self.module.statements)
        self.names = numbered("%e", self.module.names)
        self.removed: set[Value] = set()
        #: Of each block, the values that terms have in it.
        self.by_term: dict[Block, dict[Typed, list[Value]]] = {}
        for value in self.terms.known:
            if value in self.terms.computed:
                typed = self.terms.known[value], self.terms.types[value]
                self.by_term.setdefault(value.block, {}).setdefault(typed, []).append(value)
        self._answers: dict[tuple[object, ...], tuple[Expr, ...] | None] = {}

    def is_over(self, place: Block | Statement) -> bool:
        """Whether the time of the module is up, so that ``place`` stays as it is."""
        if time.perf_counter() < self.end:
            return False
        self.untried.add(place)
        return True

    def answers(
        self, roots: Sequence[Expr], terms: Terms, block: Block, model: CostModel, extract: str = "dag"
    ) -> tuple[Expr, ...] | None:
        """The cheapest terms found equal to ``roots`` in a block; None if they are not defined, or it never runs."""
        try:
            # what the variables of ``terms`` stand for may be known of those of all terms, and the reverse
            facts = self.terms.facts(block) + ([] if terms is self.terms else terms.facts(block))
        except ContradictionError:
            return None
        known = facts_on(roots, facts)
        key = (tuple(roots), tuple(known), extract)
        if key not in self._answers:
            try:
                self._answers[key] = self.optimize(roots, known, model, extract)
            except PriceError:
                raise
            except ValueError:
                # a divisor that may be zero, or facts that contradict each other
                self._answers[key] = None
        return self._answers[key]

    def is_visible(self, value: Value, place: Statement) -> bool:
        """Whether an enclosing block defines ``value`` before ``place``."""
        is_before = value.statement.number < place.number and value not in self.removed
        return is_before and any(block is value.block for block in place.block.enclosing())

    def available(self, term: Expr, type_: str, place: Statement, besides: Iterable[Value] = ()) -> Value | None:
        """A value that is a term of a type and visible at ``place``, not one of ``besides``."""
        # an answer has its operands in an order of its own
        orders = [term, make(term.op, *reversed(term.args))] if term.op in _COMMUTE else [term]
        for block in place.block.enclosing():
            of_block = self.by_term.get(block, {})
            for value in [value for order in orders for value in of_block.get((order, type_), ())]:
                stands = value.same_as is None and value not in self.removed and value not in besides
                if stands and value.statement.number < place.number:
                    return value
        return None

    def price(self, statement: Statement) -> int:
        """What an operation costs: the nodes of its term that its operands do not have, or at least 1 if it has any."""
        term = self.terms.known[statement.results[0]]
        operands = [self.terms.known[o] for o in _resolved(statement.operands) if o in self.terms.known]
        return max(sum(prices(own_terms(term, operands), self.model)), bool(operands))

    def proposal(self, emitted: dict[Statement, Emitted], lost: Iterable[Value], saving: int) -> Proposal:
        """The proposal of new operations that by themselves save ``saving``, and end the reads ``lost``."""
        used = [v for e in emitted.values() for v in e.used]
        used += [e.same_as for s, e in emitted.items() if e.same_as is not None for _ in s.results[0].users]
        dead = self.dead(emitted, lost, used)
        blocks = {s.block for s in emitted}
        here = sum(self.price(s) for s in dead if s.block in blocks)
        return Proposal(emitted, dead, (saving + here, sum(map(self.price, dead)) - here))

    def dead(self, replaced: Iterable[Statement], lost: Iterable[Value], used: Iterable[Value]) -> list[Statement]:
        """What nothing reads any more, once ``replaced`` and the reads ``lost`` are gone and ``used`` are read."""
        gained, fewer = Counter(_resolved(used)), Counter[Value]()
        replaced = set(replaced)
        found: list[Statement] = []
        queue = _resolved(lost)
        while queue:
            value = queue.pop()
            fewer[value] += 1
            statement = value.statement
            # of several results others may be read
            is_free = len(value.users) + gained[value] == fewer[value] and statement.results == [value]
            is_free = is_free and value in self.terms.computed
            if is_free and statement.replacement is None and statement not in replaced:
                found.append(statement)
                queue += _resolved(statement.operands)
        return found

    def remove(self, statements: Iterable[Statement]) -> None:
        """Take dead statements out."""
        for statement in statements:
            self._set_operands(statement, [])
            statement.replacement = []
            self.removed.update(statement.results)

    def _set_operands(self, statement: Statement, operands: Sequence[Value]) -> None:
        for value in _resolved(statement.operands):
            value.users.remove(statement)
        statement.operands = list(operands)
        for value in _resolved(operands):
            value.users.append(statement)

    def apply_best(self, proposals: Iterable[Proposal | None]) -> None:
        """Apply the proposal that saves most, if one saves anything."""
        best = max([p for p in proposals if p is not None], key=lambda p: p.saving, default=None)
        if best is not None and best.saving > (0, 0):
            self._apply(best)

    def _apply(self, proposal: Proposal) -> None:
        for statement, emitted in proposal.emitted.items():
            self._set_operands(statement, emitted.used)
            statement.replacement = emitted.lines
            for value in (piece for line in emitted.lines for piece in line if isinstance(piece, Value)):
                value.name = value.name or next(self.names)
            if emitted.same_as is not None:
                result, same = statement.results[0], emitted.same_as.resolved
                result.same_as = same
                same.users += result.users
        self.remove(proposal.dead)


def rewrite_arithmetic(program: Program, block: Block) -> None:
    """Rewrite the ``arith`` operations of a block together, if that saves anything."""
    inside = {v: None for s in block.statements if (v := _arithmetic(program, s)) is not None}
    roots = [v for v in inside if any(_arithmetic(program, u) is None or u.block is not block for u in v.users)]
    proposals = [_proposal(program, block, inside, roots, program.terms)]
    operands = {o.resolved for v in inside for o in v.statement.operands} - inside.keys()
    if any(program.terms.known[o].args for o in operands if o in program.terms.computed):
        # to read what other blocks compute may cost less than to compute it again
        terms = Terms(program.module, program.terms, lambda value: value.block is not block)
        terms.read(block.statements)
        proposals.append(_proposal(program, block, inside, roots, terms))
    program.apply_best(proposals)


def _arithmetic(program: Program, statement: Statement) -> Value | None:
    """The value of an operation of ``arith`` or on tensors, if it has a term and is not replaced."""
    if len(statement.results) != 1 or statement.replacement is not None:
        return None
    value = statement.results[0]
    is_arithmetic = statement.normalised[0].startswith(("%0 = arith.", "%0 = tt."))
    return value if is_arithmetic and value in program.terms.computed else None


def _proposal(
    program: Program, block: Block, inside: Collection[Value], roots: Sequence[Value], terms: Terms
) -> Proposal | None:
    """What the optimiser makes of ``roots``."""
    wanted = {v: terms.known[v] for v in roots if not _is_literal(v) and not any(map(is_assumption, v.users))}
    if wanted and program.is_over(block):
        return None
    if wanted and program.answers(list(wanted.values()), terms, block, program.model) is None:
        wanted = {v: t for v, t in wanted.items() if program.answers([t], terms, block, program.model) is not None}
    while wanted:
        if (answers := program.answers(list(wanted.values()), terms, block, program.model)) is None:
            return None
        pairs = zip(wanted.items(), answers, strict=True)
        changed = {v: a for (v, term), a in pairs if a is not term or _needs_no_operation(program, v, term, terms)}
        found = _emitted(program, inside, roots, changed, terms)
        if not isinstance(found, Value):
            return found
        del wanted[found]
    return None


def _is_literal(value: Value) -> bool:
    return value.statement.normalised[0].startswith("%0 = arith.constant ")


def _needs_no_operation(program: Program, value: Value, term: Expr, terms: Terms) -> bool:
    """Whether the term of a value is a literal, a variable of its type, or what another value has computed."""
    type_ = terms.types[value]
    if (found := terms.values.get(term)) is not None:
        return found is not value and terms.types[found] == type_
    return not term.args or program.available(term, type_, value.statement, {value}) is not None


def _emitted(
    program: Program, inside: Collection[Value], roots: Sequence[Value], changed: dict[Value, Expr], terms: Terms
) -> Proposal | Value | None:
    """A proposal for the answers; or a root whose answer no operations compute; or None if nothing changes."""
    if not changed:
        return None
    # the other roots, and what they are computed from
    kept = reached(
        [v for v in roots if v not in changed], lambda v: _resolved(v.statement.operands) if v in inside else ()
    )
    # values that others replace may not be read; what casts and constants compute may
    replaced = {v for v in inside if v in changed or (v not in kept and program.terms.known[v].args)}
    leaves: set[Value] = set()
    emitter = Emitter(
        terms,
        lambda term, type_, place: program.available(term, type_, place, replaced),
        lambda value, place: value in leaves or program.is_visible(value, place),
        program.model,
    )
    emitted: dict[Statement, Emitted] = {}
    for value, answer in changed.items():
        # what the root has read is visible there, in whatever block it is
        leaves = {terms.values[x] for x in variables([terms.known[value]]) if x in terms.values}
        try:
            emitted[value.statement] = emitter.emit(answer, value, terms.types[value])
        except NotReadError:
            return value
    saving = sum(map(program.price, emitted)) - sum(e.price for e in emitted.values())
    return program.proposal(emitted, [o for s in emitted for o in s.operands], saving)
