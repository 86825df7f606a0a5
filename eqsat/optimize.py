"""The walk: expressions in, the cheapest equal expressions found out.

Terms are normalised by the theory (:mod:`eqsat.linear`), their normal forms spelled as an e-graph
(:mod:`eqsat.spelling`), what is not linear goes through the rules in egglog (:mod:`eqsat.engine`), whose findings
join that e-graph and are normalised in turn; a cost model picks the answer (:mod:`eqsat.extract`). Every entry point
comes through :func:`optimize`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Any, TypeVar, cast

from eqsat.beside import beside_theory
from eqsat.definedness import defined, suspects, undefined, unsafe_divisions, without_dead_divisions
from eqsat.engine import Budget, Saturation, Session
from eqsat.expr import (
    FALSE,
    Expr,
    any_var,
    as_expr,
    brief,
    buffers,
    const,
    is_index,
    refuse_array,
    substitute,
    term_count,
    topological,
    var,
    variables,
)
from eqsat.extract.cost import COST_MODELS, CostModel, LoopAware, checked, refuse_other
from eqsat.extract.exact import exact
from eqsat.extract.graph import EGraph, Node, Payload
from eqsat.extract.select import Choice, Priced, completed, dag, improved, needed, reachable, tree, tree_cost
from eqsat.facts import ContradictionError, Work
from eqsat.forms import ZERO, Form, VariableSets, read, to_expr, without_quotients
from eqsat.greedy import rewrite
from eqsat.guess import Guess, learn
from eqsat.hoist import hoist, levels
from eqsat.linear import Theory
from eqsat.opaque import OPAQUE, Pieces, hidden, meanings, stand_ins
from eqsat.ops import OPS, REDUCTIONS
from eqsat.pareto import SIZES, Answer, blends, frontier, operations
from eqsat.proof import refuse_false
from eqsat.reuse import offer_reuse
from eqsat.rule import Edge, Rule, edges, grows, is_commutativity, needed_edges, only_reorders, refuse_repeated
from eqsat.rules import DEFAULT, REDUCE
from eqsat.sharing import share_junctions, share_sums
from eqsat.spelling import MANY_CLASSES, Speller, Value, buffer_key, to_exprs
from eqsat.text import parse
from eqsat.verify import Check, check_equal, prove_equal

if TYPE_CHECKING:
    from eqsat.explain import Explanation

_FLOORS = frozenset({"floordiv", "mod"})

#: The terms that a choice spells for the roots' classes.
Spelled = dict[int, Expr]

T = TypeVar("T")

ENGINES = ("egraph", "theory", "greedy")
EXTRACTORS = ("tree", "dag", "exact")

LATENCY = COST_MODELS["latency"]
DEFAULT_BUDGET = Budget()
#: Proved by the tests, and so not checked again.
_SHIPPED = frozenset(DEFAULT)
#: How often the rules start again from the best term so far.
MAX_PULSES = 3
#: A choice that costs so much more than another may still be the cheaper once its sums share what they can.
MAX_BEHIND = 3
#: How often what was guessed and proved leads to further guesses.
MAX_GUESSES = 8
#: How many e-nodes the rules alone may make before they start again from the best terms, and how that number grows.
FIRST_NODES, NODES_GROW = 1500, 4
#: A sum that is divided in so many ways is a flat index, tried as one variable if an answer has as many divisions left,
#: in inputs of at most so many terms.
MIN_WAYS, MOST_TERMS = 3, 130
#: With more terms than these they begin without those that make e-graphs grow fastest.
LARGE = 100


@dataclass(frozen=True)
class Result:
    """What :func:`optimize` found.

    Attributes
    ----------
    before, exprs : tuple of Expr
        The roots as given and as found, in the same order.
    constraints, gates
        The known facts under which they are equal.
    cost_before, cost : int
        Under the cost model, over all roots, shared subterms paid once. The answer costs no more than the input, or
        with ``extract="tree"`` each root alone no more than it did.
    bound : int or None
        What exact extraction has proved: no choice over the final e-graph costs less; equal to ``cost`` if that is
        the optimum. ``None`` from other extractors.
    stop : str
        ``"saturated"``, or the budget that ran out: ``"nodes"``, ``"time"``, ``"iterations"``. Rules alone may have
        started again on the way, from the best terms so far.
    nodes, rounds : int
        E-nodes of the final e-graph (of the greedy engine: of the answer), and rounds of the rules.
    milliseconds : float
        Time of the optimisation alone; ``engine_milliseconds`` is the rules' share of it, and
        ``extraction_milliseconds`` that of choosing among the terms found.
    rules : dict from rule name to int
        How often each rule matched.
    rule_set : tuple of Rule
        The rules that could be used.
    guesses : tuple of Guess
        Equalities that were read off sample points, and how each was proved; see :mod:`eqsat.guess`.
    pareto : tuple of Answer
        If asked for, the answers of which none is both cheaper and smaller than another, the cheapest first.
    """

    before: tuple[Expr, ...]
    exprs: tuple[Expr, ...]
    constraints: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    cost_before: int
    cost: int
    bound: int | None
    stop: str
    nodes: int
    rounds: int
    milliseconds: float
    engine_milliseconds: float
    extraction_milliseconds: float
    rules: dict[str, int]
    rule_set: tuple[Rule, ...] = field(repr=False)
    guesses: tuple[Guess, ...] = ()
    pareto: tuple[Answer, ...] = ()

    @property
    def expr(self) -> Expr:
        """The single root's answer.

        Raises
        ------
        ValueError
            If there are several roots.
        """
        if len(self.exprs) != 1:
            raise ValueError(f"there are {len(self.exprs)} roots; use .exprs")
        return self.exprs[0]

    @property
    def gap(self) -> float | None:
        """How much of the cost a better choice over the final e-graph could save at most; 0 if none can.

        ``None`` without a bound. As for ``bound``, another e-graph may hold cheaper terms.
        """
        if self.bound is None:
            return None
        return (self.cost - self.bound) / self.cost if self.cost else 0.0

    def check(self, **options: Any) -> Check:
        """Check that input and output are equal; see :func:`eqsat.verify.check_equal` for the options."""
        return check_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def prove(self, **options: Any) -> Check:
        """Prove that input and output are equal, or find a point where not.

        See :func:`eqsat.verify.prove_equal` for the options.

        >>> optimize("(i*32 + j) // 32", i=(0, 2**40), j=(0, 31)).prove(seconds=5).kind
        'proved'
        """
        return prove_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def explain(self, **options: Any) -> Explanation:
        """Derive the output from the input in checked steps; see :func:`eqsat.explain.explain` for the options."""
        from eqsat.explain import explain

        return explain(self, **options)


def cost_of(roots: Iterable[Expr], model: CostModel) -> int:
    """The cost of ``roots`` under ``model``: each distinct node once, or as often as it runs."""
    return _cost_of(list(topological(roots)), checked(model))


def _cost_of(terms: Sequence[Expr], model: CostModel) -> int:
    return sum(_costs(terms, model))


def _costs(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """What each term costs without its operands."""
    if isinstance(model, LoopAware):
        level = levels(terms, model)
        runs = [model.runs(level[t]) for t in terms]
        return [count * price for count, price in zip(runs, prices(terms, model.model), strict=True)]
    return prices(terms, model)


def _costs_alone(roots: Iterable[Expr], model: CostModel) -> dict[Expr, int]:
    """The cost of each root as if there were no other."""
    roots = dict.fromkeys(roots)
    terms = list(topological(roots))
    own = dict(zip(terms, _costs(terms, model), strict=True))
    return {root: sum([own[term] for term in topological([root])]) for root in roots}


def prices(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """The price of each term alone; in the body of a reduction, for all its steps."""
    found = [model.price(t.op, [(a.vmin, a.vmax) for a in t.args], (t.vmin, t.vmax)) if t.args else 0 for t in terms]
    if not REDUCTIONS.keys().isdisjoint([t.op for t in terms]):
        sets = VariableSets()
        for place, term in enumerate(terms):
            indices = sets.of(term)
            found[place] *= prod([extent for bit, extent in sets.index_extents.items() if indices & bit])
    return found


def optimize(
    exprs: Expr | str | Sequence[Expr | str],
    *,
    gates: Sequence[Expr | str | None] = (),
    constraints: Sequence[Expr | str] = (),
    rules: Sequence[Rule] = DEFAULT,
    cost: CostModel = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
    engine: str = "egraph",
    theory: bool = True,
    extract: str = "dag",
    pareto: str | None = None,
    **ranges: tuple[int, int],
) -> Result:
    """Return the cheapest expressions found equal to ``exprs`` for every value of their variables.

    Parameters
    ----------
    exprs : Expr, str or sequence of them
        Roots optimised together: shared subterms are paid once. Text is parsed with the variables of ``ranges``.
    gates : sequence of bool Expr, str or None
        Per root, the condition under which its value matters; empty for none.
    constraints : sequence of bool Expr or str
        Conditions known to hold.
    rules : sequence of Rule
        The rewrite rules. Rules of one's own are checked when they are first given; see :class:`eqsat.Rule`.
    cost : CostModel
        What is cheap.
    budget : Budget
        Rows, seconds and rounds. When one runs out the best terms so far are returned and ``Result.stop`` says which.
    engine : {"egraph", "theory", "greedy"}
        ``"theory"`` takes the normal form alone, without rules; ``"greedy"`` applies the rules one after the other, as
        other optimisers do: a baseline.
    theory : bool
        Whether linear integer arithmetic works beside the rules; without it the rules are alone.
    extract : {"tree", "dag", "exact"}
        Whether a subterm that is used twice is paid twice (``"tree"``) or once; ``"exact"`` proves the choice the best
        over the e-graph, or how far it may be off, in what is left of the budget's seconds (extra: exact).
    pareto : {"operations", "live"}, optional
        Also find answers that are dearer but smaller, in operations or in values held at once: ``Result.pareto``.
    **ranges : (int, int)
        Inclusive bounds of the variables of text.

    Raises
    ------
    ValueError
        If a divisor can be zero, a variable's range is empty, the constraints contradict each other, a rule is false,
        two rules share a name, or the cost model gives a price below 0; the message names it.
    TypeError
        If an argument is of another type, or a price is no integer.

    >>> optimize("(i*32 + j) // 32", i=(0, 63), j=(0, 31)).expr
    Expr('i')
    """
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}: use one of {', '.join(ENGINES)}")
    if extract not in EXTRACTORS:
        raise ValueError(f"unknown extractor {extract!r}: use one of {', '.join(EXTRACTORS)}")
    if pareto is not None and pareto not in SIZES:
        raise ValueError(f"unknown size {pareto!r} for pareto: use one of {', '.join(SIZES)}")
    if pareto is not None and (engine == "greedy" or not theory):
        raise ValueError("several answers (pareto) need the theory: use engine 'egraph' or 'theory', with it")
    refuse_other(cost)
    if not isinstance(budget, Budget):
        raise TypeError(f"{budget!r} is no budget: give an eqsat.Budget, such as Budget(seconds=1.0)")
    names = {name: _variable(name, bounds) for name, bounds in ranges.items()}
    given = [exprs] if isinstance(exprs, Expr | str) else _listed("exprs", exprs, "expressions, or one")
    roots = tuple(_term(e, names) for e in given)
    if not roots:
        raise ValueError("there is nothing to optimise: give at least one expression")
    facts = tuple(_fact(c, names) for c in _listed("constraints", constraints, "conditions"))
    gated = tuple(None if g is None else _fact(g, names) for g in _listed("gates", gates, "conditions, or None"))
    gated = gated or (None,) * len(roots)
    if len(gated) != len(roots):
        raise ValueError(f"there are {len(roots)} expressions and {len(gated)} gates: give one gate, or None, for each")
    if rules is not DEFAULT:
        rules = tuple(_listed("rules", rules, "rules"))
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(f"{rule!r} is no rule: give a list of eqsat.Rule")
        refuse_repeated(rules)
        refuse_false(rule for rule in rules if rule not in _SHIPPED)
    walk = _Walk(roots, facts, gated, rules, checked(cost), budget, extract, pareto)
    rounded = next((t for t in walk.order if t.element), None)
    if rounded is not None:
        raise ValueError(f"{brief(rounded)!r} is a floating-point value: give it as a store of a kernel (eqsat.kernel)")
    with _collection_paused():
        if engine == "greedy":
            return walk.by_greedy()
        return walk.by_theory(engine == "egraph") if theory or engine == "theory" else walk.by_rules()


@lru_cache
def _of_default[P](prepare: Callable[[tuple[Rule, ...]], P]) -> P:
    """What is prepared for the rules of eqsat, without hashing all of them to find it."""
    return prepare(DEFAULT)


@contextmanager
def _collection_paused() -> Iterator[None]:
    """No search for cyclic garbage meanwhile: there is next to none, and looking takes an eighth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _variable(name: str, bounds: tuple[int, int]) -> Expr:
    given: list[Any] = list(bounds) if isinstance(bounds, Iterable) else []
    if [*map(_is_integer, given)] != [True, True]:
        raise TypeError(f"{name!r} is no option, and no range of a variable: {bounds!r} is not (low, high)")
    return var(name, *given)


def _is_integer(value: object) -> bool:
    return hasattr(value, "__index__")


def _listed[E](name: str, given: Iterable[E], what: str) -> list[E]:
    """The list that an argument is; a text is none, though Python takes it for one of letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of {what}, not {given!r}")
    return list(given)


def _term(given: Expr | str, names: dict[str, Expr]) -> Expr:
    term = parse(given, names) if isinstance(given, str) else as_expr(given)
    refuse_array(term)
    return term


def _fact(given: Expr | str, names: dict[str, Expr]) -> Expr:
    if isinstance(given, bool):
        raise TypeError(
            f"a constraint or gate is {given}: == and != compare terms, not values; write x.eq(3) or x.ne(3), or a text"
        )
    fact = _term(given, names)
    if not fact.is_bool:
        raise ValueError(f"a constraint or gate must be a condition, not {brief(fact)!r}")
    return fact


@lru_cache(maxsize=16)
def _eager(rules: tuple[Rule, ...]) -> frozenset[str]:
    """The rules that make e-graphs grow fastest: those that reorder, and those that make terms bigger.

    Those that take sums apart, so that their parts can cancel, are none of these.
    """
    found = [rule for rule in rules if grows(rule) or (only_reorders(rule) and not is_commutativity(rule))]
    return frozenset(rule.name for rule in found) - {"distribute-scale", "div-multiple"}


@lru_cache(maxsize=16)
def _free_sessions(rules: tuple[Rule, ...]) -> list[Session]:
    """The sessions for these rules that no thread is using."""
    return []


@dataclass
class _Group:
    """Roots that matter under the same facts, for the rules alone.

    ``pieces`` and ``graph`` are what was last saturated, and ``stop`` says why that ended.
    """

    facts: tuple[Expr, ...]
    members: list[int]
    pieces: Pieces = field(default_factory=lambda: Pieces((), ()))
    graph: EGraph = field(default_factory=EGraph)
    stop: str = "time"


@dataclass
class _Walk:
    """One optimisation: the inputs, and what has been counted so far."""

    roots: tuple[Expr, ...]
    facts: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    rules: tuple[Rule, ...]
    model: CostModel
    budget: Budget
    extract: str
    pareto: str | None
    started: float = field(default_factory=time.perf_counter)
    stop: str = "saturated"
    bound: int | None = None
    rounds: int = 0
    engine_seconds: float = 0.0
    extraction_seconds: float = 0.0
    matches: Counter[str] = field(default_factory=Counter)
    guesses: list[Guess] = field(default_factory=list)

    @cached_property
    def order(self) -> list[Expr]:
        """Every term below the roots, operands first."""
        return list(topological(self.roots))

    @cached_property
    def cost_before(self) -> int:
        """What the input costs."""
        return _cost_of(self.order, self.model)

    @cached_property
    def known(self) -> list[Expr]:
        """Every term below what is known, operands first."""
        return list(topological([*self.facts, *[gate for gate in self.gates if gate is not None]]))

    @cached_property
    def has_opaque(self) -> bool:
        """Whether loads or reductions occur, in roots or in what is known."""
        return not OPAQUE.isdisjoint([term.op for term in (*self.order, *self.known)])

    @cached_property
    def suspected(self) -> set[Expr]:
        """The terms of the input that contain a division whose divisor has a range with 0."""
        return suspects(self.order)

    # ---- with the theory

    def by_theory(self, with_rules: bool, limit: float = inf) -> Result:
        base, contexts = self._theories()
        self._check_divisors(contexts)
        base.work.until = self.started + self.budget.seconds
        values = self._values(base)
        speller = Speller(base, self._variables())
        speller.add_originals(self.order)
        speller.need_roots(_in_fixed_order(values))
        speller.grow()
        with self._extracting():
            priced = Priced.of(speller.graph, self.model)
            choice, spent = self._chosen(speller, None, priced, self.model)
        if spent <= limit:
            choice, spent = self._reused(speller, priced, choice, spent)
        if spent > self.cost_before and self.extract != "tree" and not self.has_opaque and self._has_time():
            choice, spent = _cheaper((choice, spent), self._from_input(speller, priced))
        spelled = speller.spell(choice)
        if with_rules and self._has_time():
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
        result = self._result(terms, len(speller.graph), contexts)
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
        left = sum([term.op in _FLOORS for term in topological(terms)])
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
        for term in self.order:
            if term.args and not term.is_bool:
                form = base.form(term)
                if form.terms == flat.terms:
                    images[term] = index + form.constant
        gates = [None if gate is None else gate.substitute(images) for gate in self.gates]
        walk = replace(self, roots=tuple(substitute(self.roots, images)), gates=tuple(gates), pareto=None, guesses=[])
        found = walk.by_theory(False, limit=cost_of(terms, self.model))
        return self._cheapest(terms, substitute(found.exprs, {index: to_expr(flat)}))

    def _flat_index(self, base: Theory) -> Form | None:
        """The sum of variables that the input divides in several ways, if it hardly divides another."""
        divided: dict[Form, set[tuple[str, int, int]]] = {}
        for term in self.order:
            if term.op in _FLOORS and term.args[1].op == "const":
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
            value if theory is None else _plainly(_normal_form(term, theory), theory, base)
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
            exprs = tuple(defined([spelled[c] for c in wanted], contexts))
            found.append(tuple(hoist(exprs, model)) if isinstance(model, LoopAware) else exprs)
        return frontier(Answer(exprs, cost_of(exprs, self.model), size(exprs)) for exprs in found)

    def _theories(self) -> tuple[Theory, list[Theory | None]]:
        """The theory of the constraints, and of each root with its gate; ``None`` if the gate never holds."""
        # a late theory may not see that a divisor is never zero
        until = inf if self.suspected else self.started + self.budget.seconds
        try:
            base = Theory(self.facts, work=Work(until=until))
        except ContradictionError as error:
            raise self._contradiction(error) from None
        of_gate: dict[Expr | None, Theory | None] = {None: base}
        for gate in self.gates:
            if gate is not None and gate not in of_gate:
                of_gate[gate] = base.under(base.condition(gate))
        base.work.until = inf
        return base, [of_gate[gate] for gate in self.gates]

    def _contradiction(self, why: object) -> ContradictionError:
        shown = ", ".join(brief(fact) for fact in self.facts)
        return ContradictionError(f"the constraints contradict each other: {shown} ({why})")

    def _check_divisors(self, contexts: Sequence[Theory | None]) -> None:
        """Refuse divisors that may be zero under all that is known where they are evaluated."""
        for term, theory in unsafe_divisions(self.roots, self.suspected, contexts):
            divisor = term.args[1]
            low, high = theory.bounds(theory.form(divisor))
            problem = f"the divisor {brief(divisor)!r} of {brief(term)!r} may be zero: its range is [{low}, {high}]"
            over = self._reduction_around(term)
            if over is not None:
                # users know their indices by other names, and cannot constrain them
                raise ValueError(
                    f"{problem}, where {brief(over.args[1])} is the index of {brief(over)!r}; "
                    f"narrow the range or write where({brief(divisor)} != 0, {brief(term)}, 0)"
                )
            raise ValueError(f"{problem}; narrow the range or give the constraint {brief(divisor)} != 0")

    def _reduction_around(self, division: Expr) -> Expr | None:
        """A reduction whose index the divisor speaks of; ``None`` if it speaks of none."""
        below = list(topological([division.args[1]]))
        indices = {t for t in below if t.op == "var" and is_index(t)} - {t.args[1] for t in below if t.op in REDUCTIONS}
        around = (t for t in self.order if t.op in REDUCTIONS and t.args[1] in indices)
        return next((t for t in around if division in topological([t.args[0]])), None)

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
            before, values = values, [_normal_form(root, theory) for root in roots]
            # what an array holds is not known, so evaluation proves nothing of it
            if values == before or self.has_opaque:
                break
            if self._is_late() and (before or len(self.order) > LARGE):
                break
            terms = [_as_term(value) for value in values]
            unsafe = undefined(list(topological(terms)), theory) if self.suspected else ()
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

    @contextmanager
    def _extracting(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.extraction_seconds += time.perf_counter() - started

    def _choose(self, speller: Speller, start: Choice | None = None) -> tuple[Choice, int]:
        """The cheapest choice found over the graph as it is, and its cost."""
        with self._extracting():
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
        with self._extracting():
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
        with self._extracting():
            written = speller.as_written(self.order)
            priced.refresh(self.model)
            start = speller.with_nodes(tree(priced), written)
            return self._with_sharing(speller, priced, self._improved(priced, start)[0], self.model)

    def _exactly(self, graph: EGraph, start: Choice) -> Choice:
        """The cheapest choice over ``graph`` that can be found in the time left; its bound is noted."""
        with self._extracting():
            found = exact(Priced.of(graph, self.model), start, self._seconds_left())
        # of graphs for different gates, which may share terms, the dearest is a bound for all
        self.bound = max(self.bound or 0, found.bound)
        if found.bound < found.cost and self.stop == "saturated":
            self.stop = "time"
        return found.choice

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

    def _once(self, prepare: Callable[[tuple[Rule, ...]], T], rules: tuple[Rule, ...]) -> T:
        """What is prepared once per process and set of rules, outside the clock."""
        started = time.perf_counter()
        prepared = _of_default(prepare) if rules is DEFAULT else prepare(rules)
        self.started += time.perf_counter() - started
        return prepared

    @contextmanager
    def _session(self, rules: tuple[Rule, ...]) -> Iterator[Session]:
        """A session for this thread alone, compiled outside the clock if none is free."""
        free = self._once(_free_sessions, rules)
        started = time.perf_counter()
        try:
            session = free.pop()
        except IndexError:
            session = Session(rules)
        self.started += time.perf_counter() - started
        try:
            yield session
        except Exception:
            # an interrupted one, which may not be empty, is not used again
            free.append(session)
            raise
        if not session.is_worn:
            free.append(session)

    def _saturate(
        self,
        rules: tuple[Rule, ...],
        terms: Sequence[Expr],
        facts: Sequence[Expr],
        seconds: float,
        nodes: int,
        without: frozenset[str] = frozenset(),
    ) -> Saturation:
        budget = replace(self.budget, seconds=seconds, nodes=nodes)
        with self._session(rules) as session:
            started = time.perf_counter()
            saturation = session.saturate(terms, facts, budget, without=without)
            self.engine_seconds += time.perf_counter() - started
        self.rounds += saturation.rounds
        self.matches.update(saturation.matches)
        return saturation

    def _is_late(self) -> bool:
        return self._seconds_left() <= 0

    def _has_time(self) -> bool:
        """Whether there is time left for what may improve the answer; the result says so if there is none."""
        if self._seconds_left() > 0:
            return True
        self.stop = "time"
        return False

    def _seconds_left(self) -> float:
        return max(0.0, self.budget.seconds - (time.perf_counter() - self.started))

    def _variables(self) -> dict[str, Expr]:
        leaves = [term for term in (*self.order, *self.known) if term.op in ("var", "buffer")]
        named = {cast(str, v.value): v for v in variables(leaves)}
        return named | {buffer_key(array): array for array in buffers(leaves)}

    # ---- without it

    def by_rules(self) -> Result:
        base, contexts = self._theories()
        self._check_divisors(contexts)
        with self._session(self.rules):
            # compiled outside the clock
            pass
        alive = without_dead_divisions(self.roots, base) if self.suspected else self.roots
        found = [root if theory else _anything(root) for root, theory in zip(alive, contexts, strict=True)]
        groups = self._groups(contexts)
        # gates start from what all roots together come to without them
        everything = _Group(self.facts, [i for group in groups for i in group.members])
        waiting = [everything, *groups] if len(groups) > 1 else groups
        nodes = FIRST_NODES
        if term_count(found) > LARGE:
            found = self._pulsed(everything, found, nodes, self._seconds_left() / 2, _eager(self.rules))
        while waiting:
            for place, group in enumerate(waiting):
                sizes = [term_count([found[i] for i in of.members]) for of in waiting[place:]]
                found = self._pulsed(group, found, nodes, self._seconds_left() * sizes[0] / sum(sizes))
            waiting = [group for group in groups if group.stop == "nodes" and nodes < self.budget.nodes]
            nodes *= NODES_GROW
        if self.extract == "exact":
            for group in groups:
                if group.graph.roots:
                    found = self._with_best(group, found, self._exactly)
        self.stop = next((group.stop for group in groups if group.stop != "saturated"), "saturated")
        return self._result(found, sum(len(group.graph) for group in groups), contexts)

    def _groups(self, contexts: Sequence[Theory | None]) -> list[_Group]:
        """The roots by their gates, without those whose gate never holds."""
        groups: dict[Expr | None, _Group] = {}
        for index, (gate, theory) in enumerate(zip(self.gates, contexts, strict=True)):
            if theory is not None:
                facts = self.facts if gate is None else (*self.facts, gate)
                groups.setdefault(gate, _Group(facts, [])).members.append(index)
        return list(groups.values())

    def _pulsed(
        self, group: _Group, found: list[Expr], nodes: int, seconds: float, without: frozenset[str] = frozenset()
    ) -> list[Expr]:
        """``found`` with what the rules make of the roots of ``group`` in e-graphs of so many ``nodes``.

        Rules that outgrow theirs start again from the best terms so far, which leave more room than those before, while
        that pays (Caviar, CC 2022).
        """
        ends = time.perf_counter() + seconds
        while (left := ends - time.perf_counter()) > 0:
            given = [found[i] for i in group.members]
            try:
                reduced = [] if group.graph.roots else self._reduced(given, group.facts)
                group.pieces = pieces = Pieces([*given, *reduced], group.facts)
                limit = min(self.budget.nodes, max(nodes, 2 * term_count(pieces.terms)))
                saturation = self._saturate(self.rules, pieces.terms, pieces.facts, left, limit, without)
            except ContradictionError:
                if group.facts == self.facts:
                    raise
                group.stop = "saturated"
                return _replaced(found, group.members, [_anything(root) for root in given])
            group.graph, group.stop = saturation.graph, saturation.stop
            best = self._with_best(group, found, lambda _, choice: choice)
            if best is found or group.stop in ("saturated", "time"):
                return best
            found = best
        group.stop = "time"
        return found

    def _with_best(self, group: _Group, found: list[Expr], better: Callable[[EGraph, Choice], Choice]) -> list[Expr]:
        """``found`` with the roots of ``group`` as extraction spells them, unless all together cost no less."""
        graph = group.graph
        with self._extracting():
            priced = Priced.of(graph, self.model)
            choice = tree(priced) if self.extract == "tree" else dag(priced)
        terms = to_exprs(graph, better(graph, choice), graph.roots, self._variables() | group.pieces.variables)
        joined = group.pieces.joined(terms)
        count = len(group.members)
        # as given, and with fewer reductions
        best = [min(joined[at::count], key=lambda term: cost_of([term], self.model)) for at in range(count)]

        def costs(exprs: list[Expr]) -> tuple[int, int]:
            return cost_of(exprs, self.model), cost_of([exprs[i] for i in group.members], self.model)

        replaced = _replaced(found, group.members, best)
        if self.extract == "tree":
            cheapest = self._cheapest(found, replaced)
            return found if cheapest == found else cheapest
        return min(found, replaced, key=costs)

    def _cheapest(self, one: list[Expr], other: list[Expr]) -> list[Expr]:
        """The terms that cost less, ``one`` if neither do: all together, or each root alone where none is shared."""
        if self.extract != "tree":
            return min(one, other, key=lambda exprs: cost_of(exprs, self.model))
        costs = _costs_alone([*one, *other], self.model)
        return [min(pair, key=costs.__getitem__) for pair in zip(one, other, strict=True)]

    def _reduced(self, roots: Sequence[Expr], facts: Sequence[Expr]) -> list[Expr]:
        """``roots`` as the rules about reductions rewrite them; nothing if there are none.

        Those speak of bound indices, which the e-graph has no classes for.
        """
        if not any(term.op in REDUCTIONS for term in topological(roots)):
            return []
        rewritten = rewrite(roots, self._with_reductions(), facts, seconds=self._seconds_left() / 2)
        self.matches.update(rewritten.matches)
        return rewritten.roots

    def _with_reductions(self) -> tuple[Rule, ...]:
        """The rules, and beside the shipped ones those about reductions if there are any."""
        return (*self.rules, *REDUCE) if self.has_opaque and set(DEFAULT) <= set(self.rules) else self.rules

    def by_greedy(self) -> Result:
        base, contexts = self._theories()
        self._check_divisors(contexts)
        groups: dict[tuple[Expr, ...], list[int]] = {}
        found: dict[int, Expr] = {}
        for index, (gate, theory) in enumerate(zip(self.gates, contexts, strict=True)):
            if theory is None:
                found[index] = _anything(self.roots[index])
            else:
                facts = self.facts if gate is None or theory is base else (*self.facts, gate)
                groups.setdefault(facts, []).append(index)
        for facts, members in groups.items():
            given = [self.roots[i] for i in members]
            try:
                rewritten = rewrite(given, self._with_reductions(), facts, seconds=self._seconds_left())
            except ContradictionError as error:
                if facts == self.facts:
                    raise self._contradiction(error) from None
                found.update((i, _anything(self.roots[i])) for i in members)
                continue
            found.update(zip(members, rewritten.roots, strict=True))
            self.matches.update(rewritten.matches)
            if rewritten.stop != "saturated":
                self.stop = rewritten.stop
        exprs = [found[i] for i in range(len(self.roots))]
        return self._result(exprs, term_count(exprs), contexts)

    def _result(self, found: Sequence[Expr], nodes: int, contexts: Sequence[Theory | None]) -> Result:
        exprs = defined(found, contexts)
        if isinstance(self.model, LoopAware):
            exprs = self._cheapest(exprs, hoist(exprs, self.model))
        cost_before, cost = self.cost_before, cost_of(exprs, self.model)
        if self.extract == "tree":
            exprs = self._cheapest(exprs, list(self.roots))
            cost = cost_of(exprs, self.model)
        elif cost > cost_before:
            exprs, cost = list(self.roots), cost_before
        elapsed = time.perf_counter() - self.started
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
            rounds=self.rounds,
            milliseconds=1000 * elapsed,
            engine_milliseconds=1000 * self.engine_seconds,
            extraction_milliseconds=1000 * self.extraction_seconds,
            rules=dict(self.matches),
            rule_set=self.rules,
            guesses=tuple(self.guesses),
        )


def _normal_form(term: Expr, theory: Theory) -> Value:
    return theory.condition(term) if term.is_bool else theory.form(term)


def _as_term(value: Value) -> Expr:
    return value if isinstance(value, Expr) else to_expr(value)


def _replaced(exprs: Sequence[Expr], places: Sequence[int], terms: Sequence[Expr]) -> list[Expr]:
    image = dict(zip(places, terms, strict=True))
    return [image.get(place, expr) for place, expr in enumerate(exprs)]


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
    return read(plain) if theory is base else _normal_form(plain, base)


def _anything(root: Expr) -> Expr:
    """What a root becomes whose gate never holds: its value does not matter."""
    return FALSE if root.is_bool else const(0)


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
