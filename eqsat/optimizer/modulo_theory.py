"""The default: rules and linear arithmetic work on one e-graph, and a cost model chooses from it.

:meth:`ModuloTheory.run` has a statement for each step: normalise, insert, saturate, extract, improve. The methods of
these follow it, and then what they call, in the same order.

The theory (:mod:`eqsat.theory.linear`) normalises the roots; :mod:`eqsat.alternatives.builder` makes the e-graph of
their normal forms and of the input; :mod:`eqsat.optimizer.saturation` lets the rules match in egglog and the theory
normalise what they find; :mod:`eqsat.alternatives.choosing` extracts; :mod:`eqsat.optimizer.change_of_variables`
has the input in other variables, and :mod:`eqsat.optimizer.inside` its parts with what holds there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import takewhile
from math import inf
from typing import cast

from eqsat.alternatives.builder import Builder
from eqsat.alternatives.choosing import Chooser
from eqsat.alternatives.inputs import compares_selection
from eqsat.alternatives.limits import LIMITS as ALTERNATIVES
from eqsat.alternatives.providers import provides
from eqsat.egraph.trace import NOTHING_LEFT, WITHOUT_RULES
from eqsat.extract.cost import LoopAware, is_power_of_two, is_shipped_model
from eqsat.extract.select import Choice, Priced, ProductPrices, improved, tree
from eqsat.lang.costs import cost_of, reduced
from eqsat.lang.errors import ContradictionError, TooWideError, UnsoundUnionError
from eqsat.lang.expr import FALSE, TRUE, Expr, substitute
from eqsat.lang.ops import COMPARISONS, DIVISIONS, FLOORS, REDUCTIONS, SUMS
from eqsat.lang.traversal import long_partial_chains, topological, tree_size
from eqsat.optimizer.change_of_variables import Change, flat_index, has_literals, shifted_variables
from eqsat.optimizer.inside import Place, places, with_parts
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.optimisation import Contexts, Optimisation
from eqsat.optimizer.pareto import SIZES, Answer, blends, frontier, operations
from eqsat.optimizer.relevant import is_shipped
from eqsat.optimizer.result import Result
from eqsat.optimizer.saturation import run_rules
from eqsat.optimizer.snapshot import Part, Snapshot
from eqsat.theory.arithmetic import OverdueError
from eqsat.theory.conjectures import Asserted, constant_remainders, find_conjectures
from eqsat.theory.definedness import undefined
from eqsat.theory.forms import (
    ZERO,
    LinearForm,
    Value,
    as_term,
    is_affine,
    read,
    value_order,
    without_quotients,
)
from eqsat.theory.linear import LinearArithmetic

_conjectured = provides("conjectures", otherwise=lambda *_, **__: Asserted())(find_conjectures)

#: The operators of conditions on sums, and products, of variables.
_PLAIN = COMPARISONS | SUMS | {"mul", "and", "or", "not", "var", "const", "bool"}


@dataclass
class _Found:
    """What a run has found so far: if the time is up, this is what the answer is made of."""

    terms: list[Expr]
    contexts: Contexts
    base: LinearArithmetic | None = None
    values: list[Value] = field(default_factory=list)
    builder: Builder | None = None
    choice: Choice = field(default_factory=dict)
    #: The classes of the roots, once terms are chosen for them.
    wanted: list[int] = field(default_factory=list)
    #: Whether the answer has variables and numbers only, which cost nothing.
    is_free: bool = False

    def take(self, builder: Builder, choice: Choice) -> list[Expr]:
        """Note a choice; the terms that it writes for the roots."""
        written = builder.root_terms(choice)
        self.choice = choice
        self.wanted = [builder.add_class(value) for value in self.values]
        return [written[c] for c in self.wanted]


@dataclass
class ModuloTheory(Optimisation):
    """A run in which rules and linear integer arithmetic work on one e-graph."""

    @cached_property
    def is_guarded(self) -> bool:
        """Whether a rule of the caller's own has a guard."""
        return self.runs_own_rules and any(r.when and not is_shipped(r) for r in self.used)

    def run(self, limit: float = inf) -> Result:
        """The answer of the theory, for the engine ``"egraph"`` with the rules.

        A run within another has a ``limit``: an answer that costs more is not improved further, and the input is not
        answered again in other words.
        """
        if not self.with_rules and limit == inf:
            self.spent.skip(WITHOUT_RULES)
        # each step adds what it finds
        found = _Found([*self.roots], [None] * len(self.roots))
        try:
            base = self._normalise(found)
            if any(as_term(value).args for value in found.values):
                builder = found.builder = self._insert(base, self.order, self.roots, found.values)
                without_rules = self._saturate(builder)
                found.terms = found.take(builder, self._extract(builder, limit, without_rules))
                self._improve(found, base, builder, limit)
            else:
                self._take_leaves(found)
        except OverdueError:
            # the answer is what was found until then, or else the input
            self.stop = "time"
        except TooWideError:
            # by its bounds a product has too many bits: those of what was found are looser than those of the input
            self.stop = "nodes"
            found = found if found.wanted else _Found(found.terms, found.contexts, found.base)
        self._complete(found)
        return self._answer(found)

    def _take_leaves(self, found: _Found) -> None:
        """Answer with normal forms that cost nothing, without an e-graph: no other term costs less."""
        found.terms, found.is_free = [as_term(value) for value in found.values], True
        self.spent.alternatives["leaves"] += len({*found.terms})
        self.spent.skip(NOTHING_LEFT)
        if self.extract == "exact":
            self.bound = 0

    def _normalise(self, found: _Found) -> LinearArithmetic:
        """The theory of what is known; ``found`` gains the normal forms of the roots."""
        found.base, found.contexts = base, _ = self._checked_theories()
        base.work.until, base.work.end = self._ends(LIMITS.normal_forms_share), self._last()
        found.values = self._values(base)
        if base.late_or_raise():
            self.stop = "time"
        base.work.until = self._ends()
        return base

    def _insert(
        self, base: LinearArithmetic, written: Sequence[Expr], roots: Sequence[Expr], values: Sequence[Value]
    ) -> Builder:
        """The canonical e-graph of the values of roots, and of ``written``, the terms below the roots."""
        with self.spent.during("build"):
            builder = Builder(base, self.leaves, self.allowed, self.spent.alternatives)
            # a rule of the caller's may match any term of the input, and a model may price a term lower than the sum of
            # variables that it equals
            all_terms = self.runs_own_rules or any(
                tree_size(conjecture.before) < tree_size(conjecture.after) for conjecture in self.conjectures
            )
            # the input adds nothing to sums of variables; one comparison of a minimum or a selection is several
            has_junctions = any(isinstance(value, Expr) and value.op in ("and", "or") for value in values)
            says_more = has_junctions and _has_extremes(written)
            if all_terms or says_more or not all(map(_is_plain, values)):
                builder.input.add(written, all_terms)
            # in an order that depends on the values alone
            builder.add_roots(sorted(dict.fromkeys(values), key=value_order))
            if self.runs_own_rules:
                self._add_asserted(builder, roots, values)
            builder.grow()
        return builder

    def _saturate(self, builder: Builder) -> Choice:
        """Let rules and theory add e-nodes until nothing changes or the budget ends; the best choice without these.

        That is empty if rules matched nothing, and with ``extract="tree"``.
        """
        before: Choice = {}
        if self.with_rules and self._has_time():
            rules = self._relevant(modulo_theory=True, work=builder.theory.work)
            plain = builder.graph.copy()
            with self._blaming_facts():
                found = run_rules(builder, rules, self.budget, self.spent, self.has_own_rules)
            if found.stop != "saturated":
                self.stop = found.stop
            if any(r.matches for r in found.rounds) and self.extract != "tree":
                priced = Priced.of(plain, self.model)
                cheapest = tree(priced)
                start = builder.as_written(cheapest, plain) or cheapest
                before, _ = improved(priced, start, late=builder.theory.work.is_late)
        return before

    def _extract(self, builder: Builder, limit: float, without_rules: Choice) -> Choice:
        """The cheapest choice found; one that costs more than ``limit`` is not improved further."""
        with self.spent.during("extract"):
            chooser = Chooser(builder, ProductPrices(self.model), self.extract == "tree")
            try:
                return self._chosen(chooser, limit, without_rules)
            except OverdueError:
                if chooser.search.best is None:
                    raise
                self.stop = "time"
                return chooser.search.best[0]

    def _improve(self, found: _Found, base: LinearArithmetic, builder: Builder, limit: float) -> None:
        """Try exact extraction if that is asked for, the input in other words, the answer as input, and no gates."""
        if self.extract == "exact":
            proved = self._exactly(builder.graph, found.choice)
            self.bound = proved.bound
            # classes that become the same term are paid twice in the e-graph, once here
            self._take_if_cheaper(found, builder, proved.choice, found.values)
        if limit == inf:
            self.spent.enter("flat index")
            self._try_flat_index(found, base)
            self._try_shifted_variables(found, base)
            found.terms = self._under_gates(found.terms, found.contexts, base)
            found.terms = self._under_conditions(found.terms)
        self.spent.enter("again")
        self._read_again(found, base, len(builder.graph))
        if limit == inf:
            self._without_gates(found, base)

    def _values(self, base: LinearArithmetic) -> list[Value]:
        """The normal form of each root under the facts that hold for it; don't care where those never hold."""
        gates = list(dict.fromkeys(gate for gate in self.gates if gate is not None))
        ungated = [root for root, gate in zip(self.roots, self.gates, strict=True) if gate is None]
        # what is asserted here holds under each gate too
        found = self._normal_forms(base, self.facts, [*ungated, *gates], () if gates else self.order)
        # gates that say the same are one
        normal = dict(zip(gates, cast(list[Expr], found[len(ungated) :]), strict=True))
        known = [None if gate is None else normal[gate] for gate in self.gates]
        values: dict[int, Value] = {}
        for condition in dict.fromkeys(known):
            places = [place for place, of_root in enumerate(known) if of_root is condition]
            if condition is None:
                of_places = [_plainly(value, base, base) for value in found[: len(ungated)]]
            else:
                of_places = self._values_under(condition, base, [self.roots[place] for place in places])
            values.update(zip(places, of_places, strict=True))
        return [values[place] for place in range(len(self.roots))]

    def _values_under(self, gate: Expr, base: LinearArithmetic, roots: Sequence[Expr]) -> list[Value]:
        """The normal forms of roots with a gate, which is a normal form itself."""
        theory = base.assuming_bounded(gate)
        values = self._normal_forms(theory, self.facts if theory is base else (*self.facts, gate), roots)
        return values if theory is None else [_plainly(value, theory, base) for value in values]

    def _normal_forms(
        self, theory: LinearArithmetic | None, facts: Sequence[Expr], roots: Sequence[Expr], order: Sequence[Expr] = ()
    ) -> list[Value]:
        """The normal forms of roots under a theory of ``facts``, which asserts what conjectures can be proved.

        ``order`` has the terms below the roots, operands first, if these are at hand.
        """
        dont_care: list[Value] = [FALSE if root.is_bool else ZERO for root in roots]
        if theory is None:
            return dont_care
        values: list[Value] = []
        parts = long_partial_chains(order, ALTERNATIVES.wide_sum)
        for _ in range(LIMITS.conjecture_rounds):
            theory.traverse(order, parts)
            before, values = values, [theory.value(root) for root in roots]
            if values == before or (theory.late_or_raise() and (before or len(self.order) > LIMITS.large)):
                break
            # there is nothing to conjecture of sums of variables
            terms = {value: as_term(value) for value in values if not is_affine(value)}
            if not terms:
                break
            has_remainders = self._assume_remainders(theory, terms.values())
            asserted = self._assert_conjectures(theory, facts, terms.values()) if self._proves_at_points else {}
            if asserted is None:
                return dont_care
            if not asserted and not (self.has_uninterpreted and has_remainders):
                break
            roots = [asserted.get(terms.get(value, root), root) for root, value in zip(roots, values, strict=True)]
        return values

    @cached_property
    def _proves_at_points(self) -> bool:
        """Whether what is conjectured of the input may be proved by evaluation.

        What an array holds is not known. If divisors are terms and variables have no bounds, points prove nothing of
        most terms, and it takes long to find out what these divide by.
        """
        return not self.has_uninterpreted and (self.is_bounded or not self.divides_by_terms)

    def _assert_conjectures(
        self, theory: LinearArithmetic, facts: Sequence[Expr], terms: Collection[Expr]
    ) -> dict[Expr, Expr] | None:
        """Let a theory of ``facts`` know what is conjectured of ``terms`` and proved: by term, what it equals.

        ``None`` if the facts never hold together.
        """
        unsafe = undefined(topological(terms), theory) if self.divides_by_terms else ()
        with self.spent.during("conjecture"):
            found = _conjectured(terms, facts, theory.solved, unsafe, theory.work.is_over)
        if found.impossible:
            if facts is self.facts or find_conjectures(terms, self.facts, undefined=unsafe).impossible:
                raise self._contradiction()
            return None
        if found.conjectures:
            self.conjectures += found.conjectures
            equal = {conjecture.before: conjecture.after for conjecture in found.conjectures}
            theory.assert_equal(equal.items())
            return equal
        self.conjectures += found.by_bounds
        theory.assert_bounds([(conjecture.before, conjecture.after) for conjecture in found.by_bounds])
        return {}

    def _assume_remainders(self, theory: LinearArithmetic, terms: Iterable[Expr]) -> bool:
        """Let a theory know remainders in ``terms`` that are the same for all values; whether some were new to it."""
        known, before = theory.equations(), len(self.conjectures)
        for conjecture in constant_remainders(terms):
            equation = read(conjecture.before).shifted(-conjecture.after.vmin)
            if equation not in known:
                theory.assume_zero(equation)
                self.conjectures.append(conjecture)
        return len(self.conjectures) > before

    def _add_asserted(self, builder: Builder, roots: Sequence[Expr], values: Sequence[Value]) -> None:
        """Add the input's own nodes to roots that were asserted to equal terms with other normal forms."""
        for root, gate, value in zip(roots, self.gates, values, strict=True):
            # a gate makes terms equal for its own root alone
            node = builder.input.written(root) if gate is None and builder.value_of(root) != value else None
            if node is not None:
                builder.add_node(builder.add_class(value), node)

    def _chosen(self, chooser: Chooser, limit: float, without_rules: Choice) -> Choice:
        """As :meth:`_extract`; raise :class:`OverdueError` if that takes long."""
        choice, cost = chooser.choose()
        # what uses a value that is computed anyway has two operations; conditions may be known to bound one variable
        is_least = is_shipped_model(self.model) and cost <= 2 * chooser.of_products.addition
        if self.extract == "tree" or (is_least and not chooser.builder.theory.by_bounds):
            return choice
        best = self._reusing(chooser, choice, cost, limit)
        if without_rules and len(chooser.builder.graph) <= LIMITS.second_choice_nodes and self._has_time():
            best = self._from(chooser, without_rules, cost, best, limit)
        return chooser.collected(*best)[0]

    @provides("start without rules", otherwise=lambda self, chooser, start, first, best, limit: best)
    def _from(
        self, chooser: Chooser, start: Choice, first: int, best: tuple[Choice, int], limit: float
    ) -> tuple[Choice, int]:
        """The better of ``best`` and the choice found from another start, if that costs less than the ``first`` did.

        In the first choice each class has the cheapest of the forms that rules add, which may share less with others.
        """
        # looking for available values adds classes even if it finds none
        chooser.search.refresh()
        # not `bracketed`: the graph has gained parts since it bracketed the same sums
        other, cost = chooser.search.bracket(start)
        # the graph has available values by now: with these it may be the same choice
        if cost < first and other != best[0]:
            best = min(best, self._reusing(chooser, other, cost, limit), key=lambda end: end[1])
        return best

    def _reusing(self, chooser: Chooser, choice: Choice, cost: int, limit: float) -> tuple[Choice, int]:
        """A choice improved by what it computes anyway, unless it costs more than ``limit``."""
        if cost <= limit and self._has_time():
            with self.spent.during("reuse"):
                choice, cost = chooser.reusing(choice, cost, self._has_time)
        return choice, cost

    @provides("flat index", otherwise=lambda self, found, base: None)
    def _try_flat_index(self, found: _Found, base: LinearArithmetic) -> None:
        """Take the answer with one variable for the sum that the input divides in several ways, if that costs less."""
        if len(self.order) > LIMITS.flat_terms or self.has_uninterpreted or self.suspected or self.extract == "tree":
            return
        divisions = sum([term.op in FLOORS for term in topological(found.terms)])
        if divisions >= ALTERNATIVES.flat_ways:
            change = flat_index(self.order, self.terms, base)
            self._try_variables(found, base, change, cost_of(found.terms, self.model))

    @provides("shifted variables", otherwise=lambda self, found, base: None)
    def _try_shifted_variables(self, found: _Found, base: LinearArithmetic) -> None:
        """Take the answer with a variable for each ``x + 5`` that stands in place of ``x``, if that costs less."""
        if not self.suspected and self.extract != "tree" and has_literals(found.terms):
            self._try_variables(found, base, shifted_variables(self.order, self.roots, self.terms))

    def _try_variables(self, found: _Found, base: LinearArithmetic, change: Change | None, limit: float = inf) -> None:
        """Take the answer to the input in other variables, if that costs less."""
        if change is None or not self._has_time():
            return
        roots, facts = [tuple(substitute(given, change.images)) for given in (self.roots, self.facts)]
        gates = tuple(None if gate is None else gate.substitute(change.images) for gate in self.gates)
        inner = replace(self, roots=roots, facts=facts, gates=gates, pareto=None, conjectures=[])
        terms = self._cheapest(found.terms, substitute(inner.run(limit).exprs, change.back))
        if terms == found.terms:
            return
        found.terms = terms
        if self._has_time():
            # what the variables stand for shares nothing yet with other roots
            builder = self._insert(base, topological(terms), terms, found.values)
            self._take_if_cheaper(found, builder, self._extract(builder, inf, {}), found.values)

    def _under_gates(self, terms: list[Expr], contexts: Contexts, base: LinearArithmetic) -> list[Expr]:
        """The answer with the gated roots optimised again, their gate as a fact.

        The e-graph of all roots knows only what holds for all. With the gate as a fact, guards of the caller's rules
        may hold that do not otherwise, and a dividend may lie in two periods of its divisor alone.
        """
        theories = {gate: theory for gate, theory in zip(self.gates, contexts, strict=True) if theory is not None}
        for gate, theory in theories.items():
            if gate is None or not self._has_time():
                continue
            members = [place for place, other in enumerate(self.gates) if other is gate]
            roots = [terms[place] for place in members]
            if not self.is_guarded and not (self.with_rules and _lies_in_two_periods(roots, theory, base)):
                continue
            under = replace(self, facts=(*self.facts, gate), gates=(None,) * len(self.gates), conjectures=[])
            try:
                answers = under._alone(members)
            except ContradictionError:
                # the gate never holds
                continue
            terms = self._cheapest(terms, [answers.get(place, term) for place, term in enumerate(terms)])
        return terms

    def _under_conditions(self, terms: list[Expr]) -> list[Expr]:
        """The answer with branches and bodies optimised again, what holds there as a fact.

        Classes are equal everywhere, so that guards of the caller's rules read in a branch what holds outside of it
        too. Branches within branches are those of the inner run. The input is tried too, since the answer may have
        taken apart what a rule matches.
        """
        if not self.is_guarded:
            return terms
        known: dict[tuple[Expr, Expr], Expr] = {}
        written = with_parts(terms, self._parts(terms, known))
        terms = self._cheapest(terms, written)
        written = with_parts(self.roots, self._parts(self.roots, known))
        if written != [*self.roots] and self._has_time():
            # a limit: what holds in branches and bodies has been used
            inner = replace(self, roots=tuple(written), pareto=None, conjectures=[]).run(cost_of(terms, self.model))
            terms = self._cheapest(terms, [*inner.exprs])
        return terms

    def _parts(self, terms: Iterable[Expr], known: dict[tuple[Expr, Expr], Expr]) -> Iterator[tuple[Place, Expr]]:
        """Branches and bodies of ``terms`` as they are optimised under what holds there.

        ``known`` has the answers so far, by the part and the fact.
        """
        for place in places(terms, self.leaves):
            key = (place.part, place.fact)
            if key not in known and self._has_time():
                facts = self.facts if place.fact is TRUE else (*self.facts, place.fact)
                inner = replace(self, roots=(place.part,), gates=(None,), facts=facts, pareto=None, conjectures=[])
                try:
                    part = inner.run()
                except (ValueError, UnsoundUnionError):
                    # the fact never holds, or what divides is never zero by a condition further outside
                    continue
                known[key] = part.expr
                if part.stop != "saturated":
                    self.stop = part.stop
            if key in known:
                yield place, known[key]

    @provides("answer read again", otherwise=lambda self, found, base, nodes: None)
    def _read_again(self, found: _Found, base: LinearArithmetic, nodes: int) -> None:
        """Optimise the answer once more, as long as its own normal forms say more than those before."""
        contexts: Contexts = found.contexts
        values = found.values
        for _ in range(LIMITS.readings):
            if not self._has_time():
                break
            terms = found.terms
            before, contexts = contexts, self._contexts_again(base, contexts, terms)
            again = self._values_again(base, contexts, values, terms)
            if self.has_own_rules and self._assume_remainders(base, map(as_term, again)):
                # nothing was conjectured yet of what rules made of the roots
                again = self._values_again(base, contexts, values, terms)
            # the answer to a gate that is a root may imply more, and leave shorter sums
            is_shorter = any(
                theory is not known and _length(new) < _length(old)
                for theory, known, old, new in zip(contexts, before, values, again, strict=True)
            )
            if again == values or (nodes > ALTERNATIVES.classes and not is_shorter):
                break
            if cost_of(terms, self.model) >= self._cost_as_is(values):
                # rules found nothing better than the normal forms before, as they are
                break
            order = topological(terms)
            builder = self._insert(base, order, terms, again)
            # of what divides no more the rules have found what they find
            divides = self.has_own_rules or any(term.op in DIVISIONS or term.op in REDUCTIONS for term in order)
            without_rules = self._saturate(builder) if divides else {}
            self._take_if_cheaper(found, builder, self._extract(builder, inf, without_rules), again)
            values, nodes = again, len(builder.graph)

    def _without_gates(self, found: _Found, base: LinearArithmetic) -> None:
        """Optimise gated roots once more without their gates as facts, if all normal forms together cost less then.

        A gate shortens its own root, which may then share less with the others.
        """
        contexts, values = found.contexts, found.values
        if all(theory is None or theory is base for theory in contexts) or self.extract == "tree":
            return
        if self.has_uninterpreted or not self._has_time():
            return
        plain = [
            value if theory is None or theory is base else _plainly(base.value(root), base, base)
            for root, theory, value in zip(self.roots, contexts, values, strict=True)
        ]
        if plain != values and self._cost_as_is(plain) < self._cost_as_is(values):
            builder = self._insert(base, self.order, self.roots, plain)
            without_rules = self._saturate(builder)
            choice = self._extract(builder, cost_of(found.terms, self.model), without_rules)
            self._take_if_cheaper(found, builder, choice, plain)

    def _take_if_cheaper(self, found: _Found, builder: Builder, choice: Choice, values: Iterable[Value]) -> None:
        """Take the terms that a choice has for these values of the roots, if they cost less."""
        written = builder.root_terms(choice)
        found.terms = self._cheapest(found.terms, [written[builder.add_class(value)] for value in values])

    def _cost_as_is(self, values: Iterable[Value]) -> int:
        """What normal forms cost together as they are."""
        return cost_of([as_term(value) for value in values], self.model)

    def _contexts_again(
        self, base: LinearArithmetic, contexts: Contexts, terms: Sequence[Expr]
    ) -> list[LinearArithmetic | None]:
        """The theories of the roots' gates, with the answers to those gates that are roots themselves as facts."""
        gates = {*self.gates}
        answers = {
            root: base.condition(term)
            for root, gate, term in zip(self.roots, self.gates, terms, strict=True)
            if gate is None and root in gates
        }
        again: list[LinearArithmetic | None] = []
        for theory, gate in zip(contexts, self.gates, strict=True):
            if theory is not None and gate in answers and answers[gate] is not base.condition(gate):
                # the answer is read first: after the gate, which implies it, it would be no fact
                said = base.assuming_bounded(answers[gate])
                theory = None if said is None else said.assuming(said.condition(base.condition(gate)))
            again.append(theory)
        return again

    def _values_again(
        self, base: LinearArithmetic, contexts: Contexts, values: Sequence[Value], terms: Sequence[Expr]
    ) -> list[Value]:
        """The normal forms of an answer's terms; those that are sums of variables stay as they are."""
        return [
            value if theory is None or is_affine(value) else _plainly(theory.value(term), theory, base)
            for theory, value, term in zip(contexts, values, terms, strict=True)
        ]

    def _complete(self, found: _Found) -> None:
        """Take terms for the normal forms, and from the e-graph, if a run that was stopped has taken none."""
        if found.base is not None:
            # a late theory may not see that a divisor is never zero
            found.base.work.until = found.base.work.end = inf
        if found.values and not found.wanted and not found.is_free:
            found.terms = self._cheapest(found.terms, [as_term(value) for value in found.values])
        if found.builder is not None and not found.wanted:
            try:
                cheapest = found.take(found.builder, tree(Priced.of(found.builder.graph, self.model)))
                found.terms = self._cheapest(found.terms, cheapest)
            except TooWideError:
                found.builder = None

    def _answer(self, found: _Found) -> Result:
        """The result of what was found, with its e-graph."""
        builder = found.builder
        if builder is None:
            # the snapshot makes an e-graph of leaves when it is asked for
            nodes, snapshot = (len({*found.terms}), Snapshot((), self.lazy)) if found.is_free else (0, None)
            result = self._result(found.terms, nodes, found.contexts, snapshot)
            return result if self.pareto is None else self._with_answers(result, [])
        part = Part(builder.graph, (*enumerate(found.wanted),), found.choice, builder.input.narrowed())
        snapshot = Snapshot((part,), self.lazy)
        inside = partial(self._chosen_inside, builder, found.wanted)
        result = self._result(found.terms, len(builder.graph), found.contexts, snapshot, inside)
        if self.pareto is None:
            return result
        return self._with_answers(result, self._blended(result, builder, found.wanted, found.contexts))

    def _chosen_inside(self, builder: Builder, wanted: Sequence[int]) -> list[Expr]:
        """The terms chosen among the e-nodes that have no variables but those of their classes."""
        priced = Priced.of(builder.classes.within_variables(), self.model)
        choice = tree(priced)
        if self.extract != "tree":
            choice, _ = improved(priced, choice, thorough=True, late=builder.theory.work.is_late)
        written = builder.root_terms(choice)
        return [written[c] for c in wanted]

    def _with_answers(self, result: Result, blended: Iterable[tuple[Expr, ...]]) -> Result:
        """The result with the answers of which none is worse than another in both cost and size."""
        size = SIZES[cast(str, self.pareto)]
        found = [tuple(reduced(exprs, self.model)) for exprs in (result.exprs, self.roots, *blended)]
        answers = frontier(Answer(exprs, cost_of(exprs, result.model), size(exprs)) for exprs in found)
        if self.extract == "tree":
            return replace(result, stop=self.stop, pareto=answers)
        # a blend may happen upon something cheaper
        best = answers[0]
        bound = None if result.bound is None else min(result.bound, best.cost)
        return replace(result, stop=self.stop, exprs=best.exprs, cost=best.cost, bound=bound, pareto=answers)

    def _blended(
        self, result: Result, builder: Builder, wanted: Sequence[int], contexts: Contexts
    ) -> Iterator[tuple[Expr, ...]]:
        """What blends of cost and size choose from the same graph, as many as there is time for."""
        models = takewhile(lambda _: self._has_time(), blends(self.model, result.cost, operations(result.exprs)))
        work = builder.theory.work
        work.until = self._ends()
        trees = self.extract == "tree"
        chosen = [(model, Chooser(builder, ProductPrices(model), trees).choose()[0]) for model in models]
        work.until = inf
        for model, choice in chosen:
            written = builder.root_terms(choice)
            exprs = self._within_64_bits(self._defined([written[c] for c in wanted], contexts), self.roots)
            if not self._escaping(exprs):
                yield tuple(self._bracketed(exprs, model) if isinstance(model, LoopAware) else exprs)


def _lies_in_two_periods(roots: Sequence[Expr], theory: LinearArithmetic, base: LinearArithmetic) -> bool:
    """Whether a dividend spans two periods of its divisor by what ``theory`` knows, and more by what ``base`` does."""
    for part in topological(roots):
        if part.op in FLOORS and part.args[1].op == "const" and not is_power_of_two(part.args[1].vmin):
            n = part.args[1].vmin
            low, high = theory.bounds(theory.form(part.args[0]))
            least, most = base.bounds(base.form(part.args[0]))
            if high // n - low // n == 1 < most // n - least // n:
                return True
    return False


def _is_plain(value: Value) -> bool:
    """Whether a value is a sum of variables, or a condition on such sums."""
    return (
        value.is_affine() if isinstance(value, LinearForm) else _PLAIN.issuperset([t.op for t in topological([value])])
    )


def _has_extremes(terms: Iterable[Expr]) -> bool:
    """Whether some term is an extreme, or a reduction, whose closed form may be one, or compares a selection."""
    return any(term.op in ("min", "max") or term.op in REDUCTIONS or compares_selection(term) for term in terms)


def _length(value: Value) -> int:
    """The number of terms of a sum, 1 for a condition. Selections count twice: a gate may decide them."""
    return sum([1 + (atom.op == "where") for atom in value.terms]) if isinstance(value, LinearForm) else 1


def _plainly(value: Value, theory: LinearArithmetic, base: LinearArithmetic) -> Value:
    """A normal form under ``theory`` as one of ``base``, without quotients that only the former knows to be sums."""
    equations = theory.equations(None if theory is base else base)
    if not equations:
        return value
    term = as_term(value)
    plain = without_quotients(term, equations)
    if plain is term or (theory is base and term.is_bool):
        return value
    # a normal form under the equations has the quotients again
    return read(plain) if theory is base else base.value(plain)
