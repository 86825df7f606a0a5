"""The walk with the theory: normal forms, their spellings as an e-graph, the rules beside it, and the choice.

Terms are normalised by the theory (:mod:`eqsat.linear`), their normal forms spelled as an e-graph
(:mod:`eqsat.spelling`), what is not linear goes through the rules in egglog (:mod:`eqsat.engine`), whose findings
join that e-graph and are normalised in turn; a cost model picks the answer (:mod:`eqsat.extract`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import cast

from eqsat.beside import beside_theory
from eqsat.costs import LATENCY, cost_of
from eqsat.definedness import defined, undefined
from eqsat.expr import FALSE, Expr, any_var, substitute, topological
from eqsat.extract.cost import CostModel, LoopAware
from eqsat.extract.graph import EGraph, Node, Payload
from eqsat.extract.select import Choice, Priced, completed, improved, needed, reachable, tree, tree_cost
from eqsat.forms import ZERO, Form, read, to_expr, without_quotients
from eqsat.guess import learn
from eqsat.hoist import hoist
from eqsat.linear import Theory
from eqsat.opaque import OPAQUE, hidden, meanings, stand_ins
from eqsat.ops import FLOORS, OPS
from eqsat.pareto import SIZES, Answer, blends, frontier, operations
from eqsat.result import Result
from eqsat.reuse import offer_reuse
from eqsat.rule import Edge, Rule, edges, is_commutativity, needed_edges
from eqsat.sharing import share_junctions, share_sums
from eqsat.spelling import MANY_CLASSES, Speller, Value, to_exprs
from eqsat.walk import LARGE, Walk

#: The terms that a choice spells for the roots' classes.
Spelled = dict[int, Expr]

#: How often the rules start again from the best term so far.
MAX_PULSES = 3
#: A choice that costs so much more than another may still be the cheaper once its sums share what they can.
MAX_BEHIND = 3
#: How often what was guessed and proved leads to further guesses.
MAX_GUESSES = 8
#: A sum that is divided in so many ways is a flat index, tried as one variable if an answer has as many divisions left,
#: in inputs of at most so many terms.
MIN_WAYS, MOST_TERMS = 3, 130


class ByTheory(Walk):
    """Optimisation by linear integer arithmetic and, beside it, the rules."""

    def run(self, engine: str, limit: float = inf) -> Result:
        """The answer, for the engine ``"egraph"`` with the rules beside the theory.

        What costs over ``limit`` after the first choice is not improved by reuse.
        """
        base, contexts = self._theories()
        self._check_divisors(contexts)
        base.work.until = self._ends()
        values = self._values(base)
        speller = Speller(base, self._variables())
        speller.add_originals(self.order)
        speller.need_roots(_in_fixed_order(values))
        speller.grow()
        with self.spent.extracting():
            priced = Priced.of(speller.graph, self.model)
            choice, spent = self._chosen(speller, None, priced, self.model)
        if spent <= limit:
            choice, spent = self._reused(speller, priced, choice, spent)
        if spent > self.cost_before and self.extract != "tree" and not self.has_opaque and self._has_time():
            choice, spent = _cheaper((choice, spent), self._from_input(speller, priced))
        spelled = speller.spell(choice)
        if engine == "egraph" and self._has_time():
            choice, spelled = self._pulses(speller, choice, spent, spelled)
        wanted = [speller.need(v) for v in values]
        terms = [spelled[c] for c in wanted]
        if self.extract == "exact":
            # classes that become the same term are paid twice in the e-graph, once here
            proved = speller.spell(self._exactly(speller.graph, choice))
            terms = min(terms, [proved[c] for c in wanted], key=lambda exprs: cost_of(exprs, self.model))
        if limit == inf:
            terms = self._through_flat_index(base, terms)
        terms = self._read_again(base, contexts, values, terms, len(speller.graph))
        # a late theory may not see that a divisor is never zero
        base.work.until = inf
        result = self._result(terms, len(speller.graph), contexts, engine)
        if self.pareto is None:
            return result
        answers = self._answers(result, speller, wanted, contexts)
        if self.extract == "tree":
            return replace(result, pareto=answers)
        # a blend may happen upon something cheaper
        best = answers[0]
        bound = None if result.bound is None else min(result.bound, best.cost)
        return replace(result, exprs=best.exprs, cost=best.cost, bound=bound, pareto=answers)

    def _through_flat_index(self, base: Theory, terms: list[Expr]) -> list[Expr]:
        """The answer with the sum that the input takes apart as one variable, if that costs less.

        The digits of a flat index are those of the variable, though each alone may be shorter in what the sum adds.
        """
        left = sum([term.op in FLOORS for term in topological(terms)])
        if (
            left < MIN_WAYS
            or len(self.order) > MOST_TERMS
            or self.has_opaque
            or self.suspected
            or self.extract == "tree"
        ):
            return terms
        flat = self._flat_index(base)
        if flat is None or not self._has_time():
            return terms
        index = any_var("@flat", *base.bounds(flat))
        images = {}
        for term in (*self.order, *self.known):
            if term.args and not term.is_bool:
                form = base.form(term)
                if form.terms == flat.terms:
                    images[term] = index + form.constant
        roots, facts = [tuple(substitute(given, images)) for given in (self.roots, self.facts)]
        gates = tuple(None if gate is None else gate.substitute(images) for gate in self.gates)
        walk = replace(self, roots=roots, facts=facts, gates=gates, pareto=None, guesses=[])
        found = walk.run("theory", limit=cost_of(terms, self.model))
        return self._cheapest(terms, substitute(found.exprs, {index: to_expr(flat)}))

    def _flat_index(self, base: Theory) -> Form | None:
        """The sum of variables that the input divides in several ways, if it hardly divides another."""
        divided: dict[Form, set[tuple[str, int, int]]] = {}
        for term in self.order:
            if term.op in FLOORS and term.args[1].op == "const":
                dividend = base.form(term.args[0])
                if dividend.is_affine():
                    ways = divided.setdefault(Form(dividend.terms, 0), set())
                    ways.add((term.op, term.args[1].vmin, dividend.constant))
        if not 1 <= len(divided) <= 2:
            return None
        flat, *others = sorted(divided, key=lambda form: -len(divided[form]))
        most = len(divided[flat])
        alone = all(len(divided[other]) < most for other in others)
        return flat if len(flat.terms) > 1 and most >= MIN_WAYS and alone else None

    def _read_again(
        self, base: Theory, contexts: Sequence[Theory | None], values: list[Value], terms: list[Expr], nodes: int
    ) -> list[Expr]:
        """The answer spelled once more, if its own normal forms say more than those of the input."""
        if not self._has_time():
            return terms
        again: list[Value] = [
            value if theory is None else _plainly(theory.value(term), theory, base)
            for theory, value, term in zip(contexts, values, terms, strict=True)
        ]
        if again == values or nodes > MANY_CLASSES:
            return terms
        speller = Speller(base, self._variables())
        speller.add_originals(topological(terms))
        speller.need_roots(_in_fixed_order(again))
        speller.grow()
        spelled = speller.spell(self._choose(speller)[0])
        return self._cheapest(terms, [spelled[speller.need(value)] for value in again])

    def _answers(
        self, result: Result, speller: Speller, wanted: Sequence[int], contexts: Sequence[Theory | None]
    ) -> tuple[Answer, ...]:
        """The result, the input, and what blends of cost and size choose from the same graph, without the worse."""
        size = SIZES[cast(str, self.pareto)]
        found = [result.exprs, self.roots]
        for model in blends(self.model, result.cost, operations(result.exprs)):
            choice, _ = self._chosen(speller, None, Priced.of(speller.graph, model), model)
            spelled = speller.spell(choice)
            exprs = tuple(self._held(defined([spelled[c] for c in wanted], contexts)))
            if not self._strays(exprs):
                found.append(tuple(hoist(exprs, model)) if isinstance(model, LoopAware) else exprs)
        return frontier(Answer(exprs, cost_of(exprs, self.model), size(exprs)) for exprs in found)

    def _values(self, base: Theory) -> list[Value]:
        """The class of each root: its normal form under the facts that hold for it; anything where those never hold."""
        gates = list(dict.fromkeys(gate for gate in self.gates if gate is not None))
        ungated = [root for root, gate in zip(self.roots, self.gates, strict=True) if gate is None]
        # what is learned without gates holds under each of them
        found = self._normal_forms(base, self.facts, [*ungated, *gates], () if gates else self.order)
        # gates that say the same are one
        normal = dict(zip(gates, cast(list[Expr], found[len(ungated) :]), strict=True))
        known = [None if gate is None else normal[gate] for gate in self.gates]
        under: dict[Expr | None, Iterator[Value]] = {None: iter([_plainly(value, base, base) for value in found])}
        for condition in dict.fromkeys(normal.values()):
            theory = base.given(condition)
            facts = self.facts if theory is base else (*self.facts, condition)
            members = [root for root, of in zip(self.roots, known, strict=True) if of is condition]
            values = self._normal_forms(theory, facts, members)
            under[condition] = iter(values if theory is None else [_plainly(value, theory, base) for value in values])
        return [next(under[condition]) for condition in known]

    def _normal_forms(
        self, theory: Theory | None, facts: Sequence[Expr], roots: Sequence[Expr], order: Sequence[Expr] = ()
    ) -> list[Value]:
        """The normal forms of roots under a theory of ``facts``, which learns what guesses can be proved.

        ``order`` has the terms below the roots, operands first, if these are at hand.
        """
        nothing: list[Value] = [FALSE if root.is_bool else ZERO for root in roots]
        if theory is None:
            return nothing
        values: list[Value] = []
        for _ in range(MAX_GUESSES):
            theory.walk(order)
            before, values = values, [theory.value(root) for root in roots]
            # what an array holds is not known, so evaluation proves nothing of it
            if values == before or self.has_opaque:
                break
            if self._is_late() and (before or len(self.order) > LARGE):
                break
            if all(isinstance(value, Form) and value.is_affine() for value in values):
                # there is nothing to guess of sums of variables
                break
            terms = [_as_term(value) for value in values]
            unsafe = undefined(topological(terms), theory) if self.divides_by_terms else ()
            found = learn(terms, facts, theory.solved, unsafe)
            if found.impossible:
                if facts is self.facts or learn(terms, self.facts, undefined=unsafe).impossible:
                    raise self._contradiction("they hold nowhere")
                return nothing
            if not found.guesses:
                theory.learn_bounds([(guess.before, guess.after) for guess in found.by_bounds])
                self.guesses += found.by_bounds
                break
            learned = {guess.before: guess.after for guess in found.guesses}
            theory.learn(learned.items())
            roots = [learned.get(term, root) for root, term in zip(roots, terms, strict=True)]
            self.guesses += found.guesses
        return values

    def _choose(self, speller: Speller, start: Choice | None = None) -> tuple[Choice, int]:
        """The cheapest choice found over the graph as it is, and its cost."""
        with self.spent.extracting():
            return self._chosen(speller, start, Priced.of(speller.graph, self.model), self.model)

    def _chosen(self, speller: Speller, start: Choice | None, priced: Priced, model: CostModel) -> tuple[Choice, int]:
        everywhere = tree(priced)
        if self.extract == "tree":
            return everywhere, tree_cost(priced, everywhere)
        starts = [self._improved(priced, {**everywhere, **(start or {})})]
        given = speller.as_given(everywhere)
        if given is not None:
            # what the input shares may take several changes at once to see
            starts.append(self._improved(priced, given))
        least = min(cost for _, cost in starts)
        shared: list[tuple[Choice, int]] = []
        seen: list[Choice] = []
        for choice, cost in starts:
            used = needed(choice, speller.graph.roots)
            if cost <= least + MAX_BEHIND and used not in seen:
                seen.append(used)
                shared.append(self._with_sharing(speller, priced, choice, model))
        return min([*shared, *starts], key=lambda end: end[1])

    def _improved(self, priced: Priced, start: Choice, thorough: bool = False) -> tuple[Choice, int]:
        return improved(priced, start, thorough=thorough, late=self._is_late)

    def _with_sharing(self, speller: Speller, priced: Priced, choice: Choice, model: CostModel) -> tuple[Choice, int]:
        """The choice bracketed so that sums and junctions share parts, and its cost.

        Sharing counts each operation once: where loops repeat some, it may be dearer.
        """
        shared = share_junctions(speller, share_sums(speller, choice, model, self._is_late))
        speller.absorb_constants(shared)
        priced.refresh(model)
        # the brackets are the latest spellings
        rest = completed(priced, needed(shared, speller.graph.roots), latest=True)
        return self._improved(priced, rest, thorough=True)

    def _reused(self, speller: Speller, priced: Priced, choice: Choice, cost: int) -> tuple[Choice, int]:
        """The choice improved by spellings that use what is computed anyway."""
        if self.extract == "tree" or not self._has_time():
            return choice, cost
        roots = speller.graph.roots
        first = needed(choice, roots)
        together = offer_reuse(speller, first)
        if together is None:
            return choice, cost
        with self.spent.extracting():
            priced.refresh(self.model)
            kept = completed(priced, first)
            found = [self._improved(priced, kept, thorough=True)]
            for nodes in together:
                if not self._has_time():
                    break
                start = speller.with_nodes(kept, nodes)
                if start != kept:
                    found.append(self._improved(priced, start, thorough=True))
            ends = [(choice, cost)]
            seen = [first]
            for end, spent in found:
                chosen = needed(end, roots)
                # what costs the same may share more
                if spent <= cost and chosen not in seen:
                    seen.append(chosen)
                    ends += [(end, spent), self._with_sharing(speller, priced, end, self.model)]
            return min(ends, key=lambda pair: pair[1])

    def _from_input(self, speller: Speller, priced: Priced) -> tuple[Choice, int]:
        """The choice found from the terms of the input as they are written, and its cost."""
        with self.spent.extracting():
            written = speller.as_written(self.order)
            priced.refresh(self.model)
            start = speller.with_nodes(tree(priced), written)
            return self._with_sharing(speller, priced, self._improved(priced, start)[0], self.model)

    def _pulses(self, speller: Speller, choice: Choice, spent: int, spelled: Spelled) -> tuple[Choice, Spelled]:
        """Let the rules start from the best terms, normalise what they find, and choose again, while that pays."""
        rules, edge_sets = self._once(_beside_with_needs, self.rules)
        for _ in range(MAX_PULSES):
            seeds, facts = self._seeds(speller, choice, spelled, edge_sets)
            if not seeds:
                break
            saturation = self._saturate(rules, list(seeds.values()), facts, self._seconds_left(), self.budget.nodes)
            if saturation.stop != "saturated":
                self.stop = saturation.stop
            if not _join(speller, list(seeds), saturation.graph):
                break
            new_choice, cost = self._choose(speller, choice)
            if cost >= spent:
                break
            choice, spent, spelled = new_choice, cost, speller.spell(new_choice)
        return choice, spelled

    def _seeds(
        self, speller: Speller, choice: Choice, spelled: Spelled, edge_sets: Sequence[frozenset[Edge]]
    ) -> tuple[dict[int, Expr], Sequence[Expr]]:
        """The classes that some rule may match, with their terms, and the facts; loads and reductions are variables."""
        facts: Sequence[Expr] = self.facts
        terms: Mapping[int, Expr] = spelled
        if self.has_opaque:
            classes = _with_operands_of_opaque(choice, spelled)
            spellings = speller.terms(choice, classes)
            whole = [spellings[c] for c in classes]
            images = stand_ins([*whole, *facts])
            terms = dict(zip(classes, hidden(whole, images), strict=True))
            facts = hidden(facts, images)
            speller.variables.update(meanings(images))
        # selections that stand for quotients say nothing to the rules that those did not
        ignored = speller.seen_through
        if not _can_match(edge_sets, list(terms.values()), ignored):
            return {}, facts
        return {c: term for c, term in terms.items() if _can_match(edge_sets, [term], ignored)}, facts


def _as_term(value: Value) -> Expr:
    return value if isinstance(value, Expr) else to_expr(value)


def _plainly(value: Value, theory: Theory, base: Theory) -> Value:
    """A normal form under ``theory`` as one of ``base``, without quotients that only the former knows to be sums."""
    equations = theory.equations(None if theory is base else base)
    if not equations:
        return value
    term = _as_term(value)
    plain = without_quotients(term, equations)
    if plain is term or (theory is base and term.is_bool):
        return value
    # a normal form under the equations has the quotients again
    return read(plain) if theory is base else base.value(plain)


def _cheaper(one: tuple[Choice, int], other: tuple[Choice, int]) -> tuple[Choice, int]:
    """The choice that costs less, ``one`` if neither does."""
    return one if one[1] <= other[1] else other


def _in_fixed_order(values: Iterable[Value]) -> list[Value]:
    """Distinct values in an order that depends on them alone."""
    return sorted(dict.fromkeys(values), key=lambda v: v.key if isinstance(v, Expr) else hash(v))


def _with_operands_of_opaque(choice: Choice, classes: Iterable[int]) -> list[int]:
    """``classes``, and those of the indices, bodies and ranges of all loads and reductions that they need."""
    found = dict.fromkeys(classes)
    for c in reachable(choice, classes):
        op, _, args = choice[c]
        if op in OPAQUE:
            found.update(dict.fromkeys(a for a in args if choice[a][0] not in ("var", "buffer")))
    return list(found)


def _can_match(needed: Sequence[frozenset[Edge]], terms: Sequence[Expr], ignored: Collection[Expr] = ()) -> bool:
    """Whether ``terms`` have one of the ``needed`` sets of edges; if not, they are saturated as they stand."""
    present = edges(terms, ignored)
    return any(some <= present for some in needed)


@lru_cache(maxsize=16)
def _beside_with_needs(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], list[frozenset[Edge]]]:
    """The rules that run beside the theory, and what terms must have for one to match: the smallest sets of edges."""
    beside = beside_theory(rules)
    needed = {needed_edges(rule) for rule in beside if not is_commutativity(rule)}
    return beside, [edges for edges in needed if not any(other < edges for other in needed)]


def _join(speller: Speller, classes: Sequence[int], found: EGraph) -> bool:
    """Offer what the rules found to the speller's graph; whether anything was new.

    What the theory computes from the operands is no news: it has its own spellings of those.
    """
    representatives = tree(Priced.of(found, LATENCY))
    order = [c for c in found.classes if c in representatives]
    terms = dict(zip(order, to_exprs(found, representatives, order, speller.variables), strict=True))
    values = _Values(speller, terms, dict(zip(found.roots, classes, strict=True)))
    before = len(speller.graph)
    waiting = sorted((c for c in order if values.is_known(c)), key=lambda c: terms[c].key)
    done: set[int] = set()
    while waiting:
        c = waiting.pop()
        if c in done:
            continue
        done.add(c)
        for op, value, args in sorted(found.classes[c], key=repr):
            if args and all(a in terms for a in args) and not values.follows(c, op, args):
                speller.offer(values.home(c), _in_one_order(op, value, tuple([values.home(a) for a in args])))
                waiting.extend(args)
        speller.grow()
    return len(speller.graph) > before


def _in_one_order(op: str, value: Payload, args: tuple[int, ...]) -> Node:
    """A node with the operands of a commutative operator sorted: its two orders are one spelling."""
    return op, value, tuple(sorted(args)) if OPS[op].commutes else args


class _Values:
    """The normal forms of the classes that the rules found, and the speller's classes for them."""

    def __init__(self, speller: Speller, terms: dict[int, Expr], homes: dict[int, int]) -> None:
        self.speller, self.terms, self.homes = speller, terms, homes
        self._values: dict[int, Value] = {}

    def __getitem__(self, c: int) -> Value:
        if c not in self._values:
            self._values[c] = self.speller.value_of(self.terms[c])
        return self._values[c]

    def is_known(self, c: int) -> bool:
        """Whether the speller has a class for ``c`` already."""
        return c in self.homes or self[c] in self.speller

    def home(self, c: int) -> int:
        """The speller's class for ``c``."""
        if c not in self.homes:
            self.homes[c] = self.speller.need(self[c])
        return self.homes[c]

    def follows(self, c: int, op: str, args: tuple[int, ...]) -> bool:
        """Whether the theory knows that ``c`` is this sum of its operands."""
        if op not in ("add", "sub", "neg", "mul"):
            return False
        forms = [self[a] for a in args]
        home = self.speller.values[self.homes[c]] if c in self.homes else self[c]
        if not all(isinstance(form, Form) for form in (home, *forms)):
            return False
        x, y = cast(list[Form], forms) if len(forms) == 2 else (ZERO, cast(Form, forms[0]))
        if op == "mul":
            return not (x.terms and y.terms) and self.speller.theory.times(x, y) == home
        return x.plus(y, 1 if op == "add" else -1) == home
