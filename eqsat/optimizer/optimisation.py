"""What all runs of the optimiser have in common: the inputs, what is known of them, the clock, and the result."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import inf
from operator import or_

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.egraph.trace import Spent
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.extract.exact import Exact, exact
from eqsat.extract.graph import EGraph
from eqsat.extract.select import Choice, Priced
from eqsat.lang.costs import cost_of, costs_alone, costs_of_terms, plain, reduced
from eqsat.lang.errors import ContradictionError, UnsoundUnionError
from eqsat.lang.expr import Expr, brief, indices_around
from eqsat.lang.hoist import hoist
from eqsat.lang.ops import REDUCTIONS, UNINTERPRETED, is_finite
from eqsat.lang.properties import VariableSets, divisors, misfits, suspects, symbolic_divisors
from eqsat.lang.traversal import named_leaves, topological
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.pareto import operations
from eqsat.optimizer.relevant import is_shipped, relevant_of_default, relevant_rules
from eqsat.optimizer.result import Result
from eqsat.optimizer.snapshot import Snapshot
from eqsat.rules import DEFAULT, REDUCE
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.conjectures import Conjecture
from eqsat.theory.definedness import AllowedDivisions, defined, unsafe_divisions
from eqsat.theory.linear import LinearArithmetic

#: The theory of each root with its gate; ``None`` where the gate never holds.
type Contexts = Sequence[LinearArithmetic | None]


@dataclass
class Optimisation(ABC):
    """One optimisation: the inputs, and what has been found and spent so far."""

    roots: tuple[Expr, ...]
    facts: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    rules: tuple[Rule, ...]
    model: CostModel
    budget: Budget
    engine: str
    extract: str
    pareto: str | None
    #: Whether a branch of an answer is evaluated only where it is chosen, and a gated root only where its gate holds.
    lazy: bool = False
    stop: str = "saturated"
    bound: int | None = None
    spent: Spent = field(default_factory=Spent)
    conjectures: list[Conjecture] = field(default_factory=list)
    #: The variables of the terms of the input, and of others.
    sets: VariableSets = field(default_factory=VariableSets)
    #: The theory of the constraints, once there is one.
    base: LinearArithmetic | None = field(default=None, init=False)

    @cached_property
    def order(self) -> list[Expr]:
        """Every term below the roots, operands first."""
        return topological(self.roots)

    @cached_property
    def terms(self) -> list[Expr]:
        """Every term below the roots, and then those below what is known, operands first."""
        return [*self.order, *topological([*self.facts, *[gate for gate in self.gates if gate is not None]])]

    @cached_property
    def leaves(self) -> dict[str, Expr]:
        """The variables and buffers by their names in e-nodes; a ``ValueError`` if two have one name."""
        return named_leaves(self.terms)

    @cached_property
    def has_uninterpreted(self) -> bool:
        """Whether loads or reductions occur, in roots or in what is known."""
        return not UNINTERPRETED.isdisjoint([term.op for term in self.terms])

    @property
    def with_rules(self) -> bool:
        """Whether rules run in an e-graph: neither the theory alone, nor one after the other."""
        return self.engine == "egraph"

    @cached_property
    def has_own_rules(self) -> bool:
        """Whether a rule is the caller's own."""
        return self.rules is not DEFAULT and not all(map(is_shipped, self.rules))

    @property
    def runs_own_rules(self) -> bool:
        """Whether rules of the caller's own run in an e-graph."""
        return self.with_rules and self.has_own_rules

    @cached_property
    def used(self) -> tuple[Rule, ...]:
        """The rules that are applied.

        If reductions occur, the rules about them are added to :data:`eqsat.rules.DEFAULT`, unless the caller gave some
        of them. If a divisor may be zero, the caller's rules that take terms out of branches are left out: the answer
        could divide by it.
        """
        rules = self.rules
        if self.suspected and rules is not DEFAULT:
            rules = tuple([r for r in rules if is_shipped(r) or not r.pattern.moved_out_of_branches])
        if not any(term.op in REDUCTIONS for term in self.terms):
            return rules
        is_default = rules is DEFAULT or (set(rules).issuperset(DEFAULT) and set(REDUCE).isdisjoint(rules))
        return (*rules, *REDUCE) if is_default else rules

    def _relevant(self, modulo_theory: bool, work: Work) -> tuple[Rule, ...]:
        """The rules worth running; what is found once per process is off the clock."""
        with self.spent.off_the_clock(work):
            if self.used is DEFAULT:
                return relevant_of_default(modulo_theory)
            return relevant_rules(self.used, modulo_theory)

    @cached_property
    def suspected(self) -> set[Expr]:
        """The terms of the input that contain a division whose divisor has a range with 0."""
        return suspects(self.order)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether all variables have two bounds."""
        return all(is_finite(t.vmin, t.vmax) for t in self.terms if t.op == "var")

    @cached_property
    def divides_by_terms(self) -> bool:
        """Whether a divisor is no literal: its normal form where a condition holds may be zero where it does not."""
        return bool(symbolic_divisors(self.terms))

    @cached_property
    def allowed(self) -> AllowedDivisions | None:
        """The divisions that the answer may have, if that is restricted."""
        return None if self.lazy or self.base is None else AllowedDivisions(self.roots, self.suspected, self.base)

    def _theories(self) -> tuple[LinearArithmetic, Contexts]:
        """The theory of the constraints, and those of the roots."""
        # a run within another begins in a phase of the outer one
        self.spent.enter("normalise")
        # a late theory may not see that a divisor is never zero
        until = inf if self.suspected else self._ends(LIMITS.normal_forms_share)
        work = self.spent.deadlines = Work(until=until, end=self._last())
        try:
            base = LinearArithmetic(self.facts, work=work)
        except ContradictionError as error:
            raise self._contradiction() from error
        self.sets, self.base = base.variables, base
        if self.suspected:
            # while there is time to see which divisors are never zero
            _ = self.allowed
        self.sets.read(self.terms)
        of_gate: dict[Expr | None, LinearArithmetic | None] = {None: base}
        for gate in self.gates:
            if gate is not None and gate not in of_gate:
                of_gate[gate] = base.assuming(base.condition(gate))
        base.work.until = base.work.end = inf
        return base, [of_gate[gate] for gate in self.gates]

    def _contradiction(self) -> ContradictionError:
        shown = ", ".join(brief(fact) for fact in self.facts)
        return ContradictionError(f"the constraints contradict each other: {shown}")

    @contextmanager
    def _blaming_facts(self) -> Iterator[None]:
        """If two values meet in one class, say that the facts contradict each other, unless a false rule may be why."""
        try:
            yield
        except UnsoundUnionError as error:
            # shipped rules are proved
            if not self.facts or self.has_own_rules:
                raise
            raise self._contradiction() from error

    def _checked_theories(self) -> tuple[LinearArithmetic, Contexts]:
        """As :meth:`_theories`; refuse divisors that may be zero. Raise :class:`OverdueError` if that takes long."""
        base, contexts = self._theories()
        base.work.end = self._last()
        self._check_divisors(contexts)
        base.work.end = inf
        return base, contexts

    def _check_divisors(self, contexts: Contexts) -> None:
        """Refuse divisors that may be zero under all that is known where they are evaluated."""
        for term, theory in unsafe_divisions(self.roots, self.suspected, contexts) if self.suspected else ():
            divisor = term.args[1]
            low, high = theory.bounds(theory.form(divisor))
            problem = f"the divisor {brief(divisor)!r} of {brief(term)!r}"
            if low == high == 0:
                raise ValueError(f"{problem} is zero wherever it is needed: divide by another")
            problem += f" may be zero: its range is [{low}, {high}]"
            indices = indices_around(divisor)
            around = (t for t in self.order if t.op in REDUCTIONS and t.args[1] in indices)
            over = next((t for t in around if term in topological([t.args[0]])), None)
            if over is not None:
                # users know their indices by other names, and cannot constrain them
                raise ValueError(
                    f"{problem}, where {brief(over.args[1])} is the index of {brief(over)!r}; "
                    f"narrow the range or write where({brief(divisor)} != 0, {brief(term)}, 0)"
                )
            raise ValueError(f"{problem}; narrow the range or give the constraint {brief(divisor)} != 0")

    def _exactly(self, graph: EGraph, start: Choice) -> Exact:
        """The cheapest choice over ``graph`` that can be found in the time left, and what none costs less than."""
        with self.spent.during("extract"):
            found = exact(Priced.of(graph, self.model), start, self._seconds_left())
        if found.bound < found.cost and self.stop == "saturated":
            self.stop = "time"
        return found

    def _has_time(self) -> bool:
        """Whether there is time left for what may improve the answer; the result says so if there is none."""
        if self._seconds_left() > 0:
            return True
        self.stop = "time"
        return False

    def _seconds_left(self) -> float:
        return self.spent.left(self.budget.seconds)

    def _ends(self, share: float = 1) -> float:
        """When the time, or a share of it, is up."""
        return self.spent.started + share * self.budget.seconds

    def _last(self) -> float:
        """When the run ends though what it began is not done."""
        return self._ends(LIMITS.last_share) + LIMITS.grace

    def _cheapest(self, one: list[Expr], other: list[Expr], model: CostModel | None = None) -> list[Expr]:
        """The terms that cost less, ``one`` if neither do: for each root with ``extract="tree"``, or of all roots.

        They are priced by the ``model`` of the run, unless another is given, as for the forms of :func:`reduced`.
        """
        return cheapest(one, other, model or self.model, alone=self.extract == "tree")

    @abstractmethod
    def run(self) -> Result:
        """The answer."""

    def _escaping(self, found: Sequence[Expr]) -> list[list[int]]:
        """The roots whose answer has a variable that only other roots have, grouped by the variables of the root.

        The value of such an answer does not depend on that variable. But it may have no value where the root is
        evaluated, such as the index of an inner loop.
        """
        if len(self.roots) == 1:
            return []
        sets = self.sets
        sets.read(topological(found))
        known = reduce(or_, map(sets.of, self.facts), 0)
        escaping: dict[int, list[int]] = {}
        for place, (root, gate, term) in enumerate(zip(self.roots, self.gates, found, strict=True)):
            if sets.of(term) & ~(sets.of(root) | known | (0 if gate is None else sets.of(gate))):
                escaping.setdefault(sets.of(root), []).append(place)
        return [*escaping.values()]

    def _without_escaping(self, found: Sequence[Expr], inside: Callable[[], list[Expr]] | None) -> list[Expr]:
        """The answer without escaping variables: roots that have some are optimised alone.

        If the answer that ``inside`` chooses has none and costs less, it is that one.
        """
        kept, escaping = [*found], self._escaping(found)
        for places in escaping:
            for place, term in self._alone(places).items():
                kept[place] = term
        if not escaping or inside is None or not self._has_time():
            return kept
        chosen = inside()
        return kept if self._escaping(chosen) else self._cheapest(kept, chosen)

    def _alone(self, places: Sequence[int]) -> dict[int, Expr]:
        """The answers for the roots at these places as if there were no others, in the time that is left."""
        roots, gates = zip(*[(self.roots[i], self.gates[i]) for i in places], strict=True)
        result = replace(self, roots=roots, gates=gates, pareto=None).run()
        if result.stop != "saturated":
            self.stop = result.stop
        return dict(zip(places, result.exprs, strict=True))

    def _within_64_bits(self, exprs: list[Expr], before: Sequence[Expr]) -> list[Expr]:
        """``exprs``, but those that need more than 64 bits as they were ``before``, if 64 bits were enough for that."""
        wider = misfits(exprs)
        if not wider:
            return exprs
        wide = misfits(before)
        return [new if new not in wider or old in wide else old for old, new in zip(before, exprs, strict=True)]

    def _bracketed(self, exprs: Sequence[Expr], loops: LoopAware) -> list[Expr]:
        """``exprs`` with their sums added from the outermost loop to the innermost."""
        return self._within_64_bits(hoist(exprs, loops), exprs)

    def _defined(self, found: Sequence[Expr], contexts: Contexts) -> list[Expr]:
        """``found`` without divisions that the answer may not have; the input if it takes too long to see which.

        The roots that this changes, and those with divisors that the input does not have, stay as they are in the input
        if that costs no more.
        """
        if not divisors(found):
            return [*found]
        theories = [*contexts, None if self.allowed is None else self.allowed.theory]
        works = [theory.work for theory in theories if theory is not None]
        for work in works:
            work.end = self._ends(LIMITS.checked_share) + LIMITS.checked_grace
        try:
            return self._with_allowed_divisors(found, contexts)
        except OverdueError:
            self.stop = "time"
            return [*self.roots]
        finally:
            for work in works:
                work.end = inf

    def _with_allowed_divisors(self, found: Sequence[Expr], contexts: Contexts) -> list[Expr]:
        safe = defined(found, contexts, self.allowed)
        allowed = self.allowed
        if allowed is None:
            return safe
        given = [
            root if new is not old or (self.divides_by_terms and allowed.adds_divisor(new)) else new
            for root, old, new in zip(self.roots, found, safe, strict=True)
        ]
        return safe if given == safe else self._cheapest(given, safe)

    def _finished(
        self, found: Sequence[Expr], contexts: Contexts, inside: Callable[[], list[Expr]] | None
    ) -> list[Expr]:
        """The terms found as an answer may have them: their variables, divisions and bits; in their cheapest forms."""
        exprs = found = self._without_escaping(found, inside)
        if tuple(found) != self.roots:
            exprs = self._within_64_bits(self._defined(found, contexts), self.roots)
        if isinstance(self.model, LoopAware):
            exprs = self._cheapest(exprs, self._bracketed(exprs, self.model))
        return reduced(exprs, self.model)

    def _priced(self, exprs: list[Expr], model: CostModel, cost_before: int) -> tuple[list[Expr], int]:
        """These terms and what they cost, or the input if that costs less, or the same with fewer operations."""
        if self.extract == "tree":
            exprs = self._cheapest(exprs, reduced(self.roots, self.model), model)
            return exprs, cost_of(exprs, model)
        if tuple(exprs) == self.roots:
            return exprs, cost_before
        cost = cost_of(exprs, model)
        has_more = cost == cost_before and operations(exprs) > operations(self.roots)
        return ([*self.roots], cost_before) if cost > cost_before or has_more else (exprs, cost)

    def _result(
        self,
        found: Sequence[Expr],
        nodes: int,
        contexts: Contexts,
        snapshot: Snapshot | None = None,
        inside: Callable[[], list[Expr]] | None = None,
    ) -> Result:
        """The result of a run that has found these terms.

        ``nodes`` counts the e-nodes of its e-graph, of which ``snapshot`` keeps what is read later; ``inside`` is that
        of :meth:`_without_escaping`.
        """
        self.spent.enter("finish")
        model = plain(self.model)
        # a long input that does not change is priced once
        cost_before = sum(costs_of_terms(self.order, model))
        exprs, cost = self._priced(self._finished(found, contexts, inside), model, cost_before)
        spent = self.spent
        own = self.rules if self.has_own_rules and self.engine != "theory" else ()
        trace = spent.trace(len(self.conjectures), [rule.name for rule in own if not is_shipped(rule)])
        return Result(
            before=self.roots,
            exprs=tuple(exprs),
            constraints=self.facts,
            gates=self.gates,
            cost_before=cost_before,
            cost=cost,
            bound=None if self.bound is None else min(self.bound, cost),
            stop=self.stop,
            nodes=nodes,
            rounds=spent.rounds,
            milliseconds=1000 * sum(trace.phases.values()),
            rules=dict(spent.matches),
            rule_set=self.rules,
            model=model,
            conjectures=tuple(self.conjectures),
            trace=trace,
            snapshot=snapshot,
        )


def cheapest(one: Sequence[Expr], other: Sequence[Expr], model: CostModel, alone: bool) -> list[Expr]:
    """The roots that cost less, ``one`` if neither do: each ``alone``, or all together."""
    if one == other:
        return [*one]
    if not alone:
        return [*min(one, other, key=lambda exprs: cost_of(exprs, model))]
    costs = costs_alone([*one, *other], model)
    return [min(pair, key=costs.__getitem__) for pair in zip(one, other, strict=True)]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for cyclic garbage: there is next to none, and the search takes an eighth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
