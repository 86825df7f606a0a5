"""What is written in other words costs the same: names, comparisons, which branch is which, signs, repetitions."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import chain

import corpora
import pytest

from eqsat.cli.cases import Case
from eqsat.egraph.budget import Budget
from eqsat.lang.expr import Expr, const, make, rebuild, var
from eqsat.lang.traversal import term_count, variables
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.verify import check_equal

#: Seconds never run out, so that no answer depends on how busy the machine is.
PATIENT = Budget(seconds=60.0)
#: Larger cases are left to the benchmarks.
MOST_NODES = 100
#: How many cases each change is tried on.
TRIED = 90

CASES = [
    case
    for name in ("hand", "bits", "seeds")
    for case in corpora.cases(corpora.HAND.with_name(f"{name}.jsonl"))
    if term_count(case.exprs) <= MOST_NODES
]

Replace = Callable[[Expr, tuple[Expr, ...]], Expr | None]


def changed(case: Case, change: Replace) -> Case:
    """The case with all of its terms rebuilt; ``change`` is given each term and its new operands."""
    gates = [gate for gate in case.gates if gate is not None]
    terms = iter(rebuild([*case.exprs, *case.constraints, *gates], change))
    exprs, constraints = ([next(terms) for _ in some] for some in (case.exprs, case.constraints))
    return replace(
        case,
        exprs=exprs,
        constraints=constraints,
        gates=[None if gate is None else next(terms) for gate in case.gates],
    )


def _complement(term: Expr) -> Expr:
    return make("not", term)


def denied(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """``not (y <= x)`` for ``x < y``."""
    if term.op in ("lt", "le"):
        return _complement(make("le" if term.op == "lt" else "lt", *args[::-1]))
    return None


def exchanged(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """``where(not p, y, x)`` for ``where(p, x, y)``, and what De Morgan's laws say of conditions."""
    if term.op == "where":
        return make("where", _complement(args[0]), args[2], args[1])
    if term.op in ("and", "or"):
        return _complement(make("or" if term.op == "and" else "and", *map(_complement, args)))
    return None


def negated(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """``y*-1 + x`` for ``x - y``, and ``x - -y`` for ``x + y``."""
    if term.element:
        return None
    if term.op == "sub":
        return make("add", make("mul", args[1], const(-1)), args[0])
    return make("sub", args[0], make("neg", args[1])) if term.op == "add" else None


def selected(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """``where(x < y, x, y)`` for ``min(x, y)``."""
    if term.op in ("min", "max") and not term.is_bool and not term.element:
        return make("where", make("lt", *args), *(args if term.op == "min" else args[::-1]))
    return None


def renamed(case: Case) -> Case:
    """The case with names in the opposite order."""
    gates = [gate for gate in case.gates if gate is not None]
    found = variables(chain(case.exprs, case.constraints, gates))
    names = sorted(str(variable.value) for variable in found)
    others = dict(zip(names, reversed(names), strict=True))
    images = {x: var(others[str(x.value)], x.vmin, x.vmax) for x in found}
    return changed(case, lambda term, _: images.get(term))


def repeated(case: Case) -> Case:
    """The case with its roots and constraints twice."""
    return replace(case, exprs=case.exprs * 2, constraints=case.constraints * 2, gates=case.gates * 2)


CHANGES: dict[str, Callable[[Case], Case]] = {
    "renamed": renamed,
    "repeated": repeated,
    **{
        change.__name__: lambda case, change=change: changed(case, change)
        for change in (denied, exchanged, negated, selected)
    },
}


def optimized(case: Case) -> Result:
    return optimize(case.exprs, gates=case.gates, constraints=case.constraints, budget=PATIENT)


@cache
def cost_of(place: int) -> int:
    return optimized(CASES[place]).cost


def tried(name: str) -> list[int]:
    """The places of cases that a change changes, spread over all of them."""
    places = [place for place, case in enumerate(CASES) if CHANGES[name](case) != case]
    return places[:: -(-len(places) // TRIED)]


PAIRS = [(name, place) for name in CHANGES for place in tried(name)]


@pytest.mark.parametrize(("name", "place"), PAIRS, ids=[f"{name}-{CASES[place].id}" for name, place in PAIRS])
def test_other_words_cost_the_same(name: str, place: int) -> None:
    case = CHANGES[name](CASES[place])
    result = optimized(case)
    assert result.cost == cost_of(place)
    # an answer is compared with what it answers, and that with the case as it was if the names are the same
    assert check_equal(case.exprs, result.exprs, constraints=case.constraints, gates=case.gates, most=10**4).equal
    if name not in ("renamed", "repeated"):
        assert check_equal(CASES[place].exprs, case.exprs, constraints=case.constraints, most=10**4).equal


def test_each_change_is_tried_on_some_cases() -> None:
    assert min(len(tried(name)) for name in CHANGES) > 5
