"""The front door: expressions in, the cheapest equal expressions found out. Every entry point comes through it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from inspect import signature
from typing import TypeGuard, cast, overload

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule, refuse_repeated
from eqsat.extract.cost import CostModel
from eqsat.lang.costs import LATENCY, model_of, strength_reduced
from eqsat.lang.expr import Expr, as_expr, brief, refuse_array, var
from eqsat.lang.ops import telling_of_imports
from eqsat.lang.text import term_in
from eqsat.lang.traversal import names_of, variables
from eqsat.lang.validation import near_names, origin_of, shown
from eqsat.optimizer.modulo_theory import ModuloTheory
from eqsat.optimizer.optimisation import Optimisation, collection_paused
from eqsat.optimizer.pareto import SIZES
from eqsat.optimizer.reextraction import EXTRACTORS
from eqsat.optimizer.relevant import is_shipped
from eqsat.optimizer.result import Result
from eqsat.optimizer.rules_alone import RulesAlone
from eqsat.optimizer.unknown_divisors import Input, with_divisions, with_hidden_divisions
from eqsat.rules import DEFAULT

ENGINES = ("egraph", "theory", "greedy")
BRANCHES = ("eager", "lazy")
UNKNOWN_DIVISORS = ("refuse", "keep", "assume")

DEFAULT_BUDGET = Budget()
#: What an error says to do about a variable without a range.
REMEDY = "give its range, {name}=(0, N)"


# this overload has no options: in optimize(text, **ranges) type checkers match the values of the dict with all options
@overload
def optimize(exprs: Expr | str | Sequence[Expr | str], **ranges: tuple[int | None, int | None] | range) -> Result: ...


@overload
def optimize(
    exprs: Expr | str | Sequence[Expr | str],
    *,
    gates: Sequence[Expr | str | None] | None = ...,
    constraints: Sequence[Expr | str] | None = ...,
    rules: Sequence[Rule] | None = ...,
    cost: CostModel | str = ...,
    budget: Budget = ...,
    engine: str = ...,
    theory: bool = ...,
    extract: str = ...,
    pareto: str | None = ...,
    branches: str = ...,
    unknown_divisors: str = ...,
    **ranges: tuple[int | None, int | None] | range,
) -> Result: ...


def optimize(  # type: ignore[misc]  # a range that is named as an option is refused
    exprs: Expr | str | Sequence[Expr | str],
    *,
    gates: Sequence[Expr | str | None] | None = (),
    constraints: Sequence[Expr | str] | None = (),
    rules: Sequence[Rule] | None = None,
    cost: CostModel | str = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
    engine: str = "egraph",
    theory: bool = True,
    extract: str = "dag",
    pareto: str | None = None,
    branches: str = "eager",
    unknown_divisors: str = "refuse",
    **ranges: tuple[int | None, int | None] | range,
) -> Result:
    """Return the cheapest expressions found equal to ``exprs`` for every value of their variables.

    Parameters
    ----------
    exprs : Expr, str or sequence of them
        Roots optimised together: shared subterms count once. Text is parsed with the variables of ``ranges``.
    gates : sequence of bool Expr, str or None
        Per root, the condition under which its value matters; empty for none.
    constraints : sequence of bool Expr or str
        Conditions known to hold. Text, here and of gates, may also use the variables and arrays of ``exprs``.
    rules : sequence of Rule, optional
        The rewrite rules, :data:`eqsat.rules.DEFAULT` by default. Rules of one's own are checked when they are
        first given; see :class:`eqsat.Rule`.
    cost : CostModel or str
        The cost model, or what names one to :func:`eqsat.extract.cost_model`, such as ``"opcount"``.
    budget : Budget
        E-nodes, seconds and rounds. When one runs out the best terms so far are returned; ``Result.stop`` says which.
    engine : {"egraph", "theory", "greedy"}
        ``"theory"`` takes the normal form alone, without rules; ``"greedy"`` applies the rules one after the other, as
        other optimisers do: a baseline.
    theory : bool
        Whether the rules run modulo linear integer arithmetic. Without it they run alone.
    extract : {"tree", "dag", "exact"}
        Whether a subterm that is used twice counts twice (``"tree"``) or once (``"dag"``). ``"exact"`` proves that the
        choice is the best of the e-graph, or how far it may be off, in the time that is left (extra: exact). The engine
        ``"greedy"`` has one term for each root, so it takes ``"exact"`` for ``"dag"``, and proves no bound.
    pareto : {"operations", "live"}, optional
        Also find answers that cost more but have fewer operations, or fewer values live at once: ``Result.pareto``.
    branches : {"eager", "lazy"}
        Where the answer is evaluated. ``"eager"``: both branches of each selection, and each root with a gate, at every
        point of the ranges and constraints, as selects and masked loads of GPUs and vectors are. The answer divides by
        nothing that is zero at such a point, unless the input has that very division. ``"lazy"``: a branch only where
        its condition chooses it, a root only where its gate holds, as ``if`` does; it may divide by zero elsewhere.
    unknown_divisors : {"refuse", "keep", "assume"}
        What becomes of a division whose divisor may be zero, as far as is known. ``"keep"``: it stays, and only its
        operands are simplified. ``"assume"``: if the division is evaluated at every point, whatever conditions choose,
        its divisor is taken not to be zero; other such divisions stay. The answer is equal wherever no such divisor is
        zero (``Result.constraints`` has these conditions too). With such a division there is no ``Result.graph``.
    **ranges : (int or None, int or None), or range
        Inclusive bounds of the variables of text, ``None`` where there is none, or a ``range`` of step 1; for a
        variable that is named as an option, see :func:`eqsat.parse`.

    Raises
    ------
    ValueError
        If a divisor can be zero (unless it is kept), a variable has an empty range or two ranges, the constraints
        contradict each other, a rule is false, two rules share a name, the cost model gives a price below 0, or one
        option would be ignored because of another; the message names it.
    TypeError
        If an argument is of another type, or a price is no integer.
    RuntimeError
        If a rule that was not checked (``check=False``) is false, and what it adds to a value lies beyond its bounds.

    >>> optimize("(i*32 + j) // 32", i=(0, 63), j=range(32)).expr
    Expr('i')
    """
    began = time.perf_counter()
    gates, constraints = () if gates is None else gates, () if constraints is None else constraints
    _refuse_ranges(gates, constraints, rules, cost, budget, engine, theory, extract, pareto, branches, unknown_divisors)
    _refuse_options(engine, theory, extract, pareto, branches, unknown_divisors)
    model = model_of(cost)
    if not isinstance(budget, Budget):
        raise TypeError(f"{budget!r} is no budget: give an eqsat.Budget, such as Budget(seconds=1.0)")
    given = _input(exprs, constraints, gates, variables_of(ranges))
    if rules is None or rules is DEFAULT:
        rules = DEFAULT
    else:
        checked_from = time.perf_counter()
        rules = _checked_rules(rules)
        # that takes no time of the budget: a rule is checked once in a process
        began += time.perf_counter() - checked_from
    hidden = given
    if unknown_divisors != "refuse":
        hidden = with_hidden_divisions(given, unknown_divisors == "assume", began + budget.seconds / 2)
    kind = ModuloTheory if engine == "theory" or (theory and engine == "egraph") else RulesAlone
    run = kind(
        roots=hidden.roots,
        facts=hidden.facts,
        gates=hidden.gates,
        rules=rules,
        model=strength_reduced(model),
        budget=budget,
        engine=engine,
        extract=extract,
        pareto=pareto,
        lazy=branches == "lazy",
    )
    # reading text takes time of the budget
    run.spent.started = began
    with collection_paused(), telling_of_imports(run.spent.skip_import):
        _refuse_leaves(run)
        # normalise, insert, saturate, extract
        result = run.run()
        # what the result does not keep is freed before the collector looks at it
        del run
    return result if hidden is given else with_divisions(result, given, hidden, extract == "tree")


#: What :func:`optimize` takes by name.
OPTIONS = [*signature(optimize).parameters][1:-1]


def _refuse_ranges(*options: object) -> None:
    """Refuse the range of a variable that is named as an option; ``options`` are in the order of :data:`OPTIONS`."""
    for name, given in zip(OPTIONS, options, strict=True):
        if isinstance(given, range) or (_is_range(given) and any(end is not None for end in given)):
            raise TypeError(
                f"{name!r} is an option, not a variable: optimize a term with a variable of that name, made by "
                f"eqsat.parse(text, {{{name!r}: eqsat.var({name!r}, 0, 9)}})"
            )


def _input(
    exprs: Expr | str | Sequence[Expr | str],
    constraints: Sequence[Expr | str],
    gates: Sequence[Expr | str | None],
    names: dict[str, Expr],
) -> Input:
    """What is to be optimised, and what is known of it, as terms; text is read with the variables of ``names``."""
    # a term of another system is no sequence: it is refused by its own name
    alone = isinstance(exprs, Expr | str) or origin_of(exprs) is not None
    written = [cast(Expr, exprs)] if alone else _listed("exprs", cast(Sequence[Expr], exprs), "expressions, or one")
    roots = tuple(term_of(e, names) for e in written)
    if not roots:
        raise ValueError("there is nothing to optimise: give at least one expression")
    if names and not all(isinstance(e, str) for e in written):
        # refuse ranges of variables that the terms give others
        variables([*roots, *names.values()])
    conditions = _listed("constraints", constraints, "conditions")
    gated_by = _listed("gates", gates, "conditions, or None")
    if any(isinstance(c, str) for c in (*conditions, *gated_by)):
        names = names_of(roots) | names
    facts = tuple(_fact(c, names) for c in conditions)
    gated = tuple(None if g is None else _fact(g, names) for g in gated_by)
    gated = gated or (None,) * len(roots)
    if len(gated) != len(roots):
        raise ValueError(f"{len(gated)} gate(s) for {len(roots)} expression(s): give one gate, or None, for each")
    return Input(roots, facts, gated)


def variables_of(ranges: Mapping[str, tuple[int | None, int | None] | range]) -> dict[str, Expr]:
    """The variables that ranges are given of."""
    return {name: _variable(name, bounds) for name, bounds in ranges.items()}


def _variable(name: str, bounds: tuple[int | None, int | None] | range) -> Expr:
    if isinstance(bounds, range) and bounds.step == 1:
        return var(name, bounds.start, bounds.stop - 1)
    if not _is_range(bounds):
        meant = [f"budget=Budget({name}={bounds!r})"] if name in signature(Budget).parameters else []
        meant += [repr(option) for option in near_names(name, OPTIONS)]
        near = "".join(f"; did you mean the option {option}?" for option in meant[:1])
        raise TypeError(
            f"{name}={shown(bounds)} is neither an option nor the range of a variable: a range is (low, high), both "
            f"included, or a range of Python with step 1{near}"
        )
    return var(name, *bounds)


def _is_range(given: object) -> TypeGuard[tuple[int | None, int | None]]:
    return isinstance(given, tuple | list) and [end is None or hasattr(end, "__index__") for end in given] == [True] * 2


def _listed[E](name: str, given: Iterable[E], what: str) -> list[E]:
    """An argument as a list; refuse text, sets and mappings."""
    if isinstance(given, str | bytes | Set | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of {what}, not {given!r}")
    return list(given)


def term_of(given: Expr | str, names: Mapping[str, Expr]) -> Expr:
    """The term that an expression is, or its text says."""
    term = term_in(given, names, REMEDY) if isinstance(given, str) else as_expr(given)
    refuse_array(term)
    return term


def _fact(given: Expr | str, names: dict[str, Expr]) -> Expr:
    if isinstance(given, bool):
        raise TypeError(
            f"a constraint or gate is {given}: == and != compare terms, not values; write x.eq(3) or x.ne(3), or a text"
        )
    fact = term_of(given, names)
    if not fact.is_bool:
        raise ValueError(f"a constraint or gate must be a condition, not {brief(fact)!r}")
    return fact


def _require_one_of(option: str, given: str, allowed: Collection[str]) -> None:
    if given not in allowed:
        raise ValueError(f"{option}={given!r} is unknown: use one of {', '.join(allowed)}")


def _refuse_options(
    engine: str, theory: bool, extract: str, pareto: str | None, branches: str, unknown_divisors: str
) -> None:
    """Refuse options that are unknown, and those of which one would be ignored because of another."""
    _require_one_of("engine", engine, ENGINES)
    _require_one_of("extract", extract, EXTRACTORS)
    _require_one_of("branches", branches, BRANCHES)
    _require_one_of("unknown_divisors", unknown_divisors, UNKNOWN_DIVISORS)
    if not isinstance(theory, bool):
        raise TypeError(f"theory is {theory!r}: give True or False")
    if engine == "theory" and not theory:
        raise ValueError("engine 'theory' is the theory alone, which cannot be left out: choose one of the two")
    if pareto is None:
        return
    _require_one_of("pareto", pareto, list(SIZES))
    if engine == "greedy" or not theory:
        raise ValueError("several answers (pareto) need the theory: use engine 'egraph' or 'theory', with it")
    if unknown_divisors != "refuse":
        raise ValueError("several answers (pareto) need divisors that are never zero: leave out unknown_divisors")


def _refuse_leaves(run: Optimisation) -> None:
    """Refuse names with two ranges or two shapes, and floating-point values."""
    # to list them refuses such names
    _ = run.leaves
    if rounded := [t for t in run.order if t.element]:
        raise ValueError(
            f"{brief(rounded[0])!r} is a floating-point value: give it as a store of a kernel (eqsat.Kernel)"
        )


def _checked_rules(given: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules of the caller's own; those that are false are refused."""
    rules = tuple(_listed("rules", given, "rules"))
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(f"{rule!r} is no rule: give a list of eqsat.Rule")
    refuse_repeated(rules)
    # shipped rules are proved by the tests
    if own := [rule for rule in rules if not is_shipped(rule)]:
        from eqsat.prove.proof import refuse_false

        refuse_false(own)
    return rules
