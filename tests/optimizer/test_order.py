"""Order does not matter: no order of operands, brackets, roots, facts or rules changes the cost of an answer."""

from functools import cache, reduce
from itertools import permutations
from random import Random

import corpora
import pytest
from comparison.shuffle import reordered, shuffled

from eqsat.cli.cases import Case
from eqsat.egraph.budget import Budget
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.lang.traversal import term_count
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.verify import check_equal
from eqsat.rules import DEFAULT
from eqsat.theory.forms import as_term, value_order
from eqsat.theory.linear import LinearArithmetic

ORDERS = range(1, 6)
#: Of kernels, which take longer.
ORDERS_OF_KERNELS = range(1, 4)

#: Larger kernels are left to the benchmarks.
MOST_NODES = 700

#: Seconds never run out, so that no answer depends on how busy the machine is.
PATIENT = Budget(seconds=60.0)


SMALL = corpora.cases(corpora.HAND)
KERNELS = [case for case in corpora.cases(corpora.SAMPLE) if term_count(case.exprs) <= MOST_NODES]
#: Kernels with gates that say the same in other words.
GATED = corpora.cases(corpora.GATES)


def optimized(case: Case, **options) -> Result:
    return optimize(case.exprs, gates=case.gates, constraints=case.constraints, budget=PATIENT, **options)


@cache
def cost_of(name: str) -> int:
    """The cost of the case of that name in its own order."""
    return optimized(next(case for case in SMALL + KERNELS + GATED if case.id == name)).cost


@pytest.mark.parametrize("case", SMALL + KERNELS + GATED, ids=lambda case: case.id)
def test_order_of_terms_and_roots(case):
    orders = ORDERS_OF_KERNELS if case in KERNELS else ORDERS
    assert {seed: optimized(reordered(case, seed)).cost for seed in orders} == dict.fromkeys(orders, cost_of(case.id))


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.id)
def test_order_of_terms_for_the_rules_alone(case):
    cost = optimized(case, theory=False).cost
    assert optimized(reordered(case, 1), theory=False).cost == cost


@pytest.mark.parametrize("seed", ORDERS)
def test_order_of_rules(seed):
    rules = Random(seed).sample(DEFAULT, len(DEFAULT))
    chosen = (SMALL + KERNELS)[seed - 1 :: len(ORDERS)]
    assert {c.id: optimized(c, rules=rules).cost for c in chosen} == {c.id: cost_of(c.id) for c in chosen}


@pytest.mark.parametrize("seed", ORDERS)
def test_order_of_rules_alone(seed):
    rules = Random(seed).sample(DEFAULT, len(DEFAULT))
    chosen = SMALL[seed - 1 :: len(ORDERS)]
    first = {case.id: optimized(case, theory=False).cost for case in chosen}
    assert {case.id: optimized(case, theory=False, rules=rules).cost for case in chosen} == first


#: Roots, ranges, constraints, and what the root costs with them in any order.
CONSTRAINED = [
    (
        "x*6 + y - 15",
        {"x": (0, 2), "y": (1, 3), "z": (0, 4)},
        ["tmod(y + z - x*2, 5) == 4", "z - x <= 2", "1 <= z - x"],
        3,
    ),
    (
        "max(where(y%8 == 5, shr(tdiv(x, 7), 2), x - y), x - y - 3)",
        {"x": (-1, 1), "y": (-3, -1)},
        ["x + y != -2", "x + y <= -2", "y*y != y*x", "tdiv(x, 3) == x"],
        0,
    ),
]


@pytest.mark.parametrize(("text", "ranges", "constraints", "cost"), CONSTRAINED, ids=[row[0] for row in CONSTRAINED])
def test_order_of_constraints(text, ranges, constraints, cost):
    results = [optimize(text, constraints=given, **ranges) for given in permutations(constraints)]
    assert {result.cost for result in results} == {cost}
    assert len({result.expr for result in results}) == 1
    assert all(result.check().equal for result in results)


#: Terms of X, Y and Z, and what they cost whatever the variables are called.
NAMED = [
    # a maximum on either side of a comparison
    ("X < Y + 1 or X < Y + Z or X < Y", 3),
    # several comparisons with one value are one
    ("X < Y and X < Z and X < 7", 3),
    ("X <= Y or X <= Z + 2 or X < 7", 4),
    ("X <= min(Y, Z + 2) + 3 and X <= min(Y, 7) + 3", 5),
    ("X - Y < 3 and X < Z and X < 12 and Z < Y", 4),
    # a remainder of a difference, whichever of its operands is subtracted
    ("X*5 - tdiv(X - Y, 2)*10", 7),
    ("X*5 + tdiv(Y - X, 2)*10", 7),
]


@pytest.mark.parametrize(("text", "cost"), NAMED, ids=str)
def test_names_of_variables(text, cost):
    for names in permutations("abc"):
        renamed = text.translate(str.maketrans("XYZ", "".join(names)))
        result = optimize(renamed, **dict.fromkeys("abc", (-40, 40)))
        assert (result.cost, result.check().equal) == (cost, True), renamed


#: Terms of X and Y with several quotients, of which one is composed with what divides or compares their sum.
SEVERAL_QUOTIENTS = ["(X//2 + X//22 + Y)//3", "(X//2 - X//22 + (X*22 + Y + 286)//330)//5", "X//2 + X//22 + Y < 9"]


@pytest.mark.parametrize("text", SEVERAL_QUOTIENTS, ids=str)
def test_which_quotient_is_composed_does_not_depend_on_names(text):
    forms, first = set(), {name: var(name, 0, 999) for name in "XY"}
    for number in range(12):
        terms = {name: var(f"{name}{number}", 0, 999) for name in "XY"}
        found = as_term(LinearArithmetic().value(parse(text, terms)))
        back = found.substitute({terms[name]: first[name] for name in "XY"})
        forms.add(LinearArithmetic().value(back))
    assert len(forms) == 1


#: Two equations of X, Y and Z, each of which may be solved for several of these.
EQUATIONS = [
    ("(X + Z) % 2 == Y", "(X + Y*2 + Z*4 + 5)//4 == X"),
    ("X + Y + Z//2*2 == 9", "(X + Z + Y + 1)//4*2 + Z == 6"),
]


@pytest.mark.parametrize("facts", EQUATIONS, ids=str)
def test_what_equations_are_solved_for_does_not_depend_on_names(facts):
    forms, first = set(), {name: var(name, 0, most) for name, most in zip("XYZ", (14, 2, 14), strict=True)}
    for number in range(12):
        terms = {name: var(f"{name}{number}", x.vmin, x.vmax) for name, x in first.items()}
        theory = LinearArithmetic([parse(fact, terms) for fact in facts])
        found = as_term(theory.value(parse("X + Y*5 + Z*3", terms)))
        forms.add(LinearArithmetic().value(found.substitute({terms[name]: first[name] for name in first})))
    assert len(forms) == 1


def test_shuffling_changes_terms_but_not_values():
    changed = 0
    for case in SMALL:
        terms = shuffled(case.exprs, 1)
        changed += terms != case.exprs
        check = check_equal(case.exprs, terms, constraints=case.constraints, most=10**4, samples=1000)
        assert check.equal, case.id
    assert changed > len(SMALL) / 2


def test_there_are_enough_kernels():
    assert len(KERNELS) >= 30


#: Operands of a maximum, which may be nested in any order: the theory has one normal form for all of them.
NESTED = [
    (["-1", "y*3 - 2", "w - 1"], {"y": (0, 1), "w": (0, 9)}),
    (["y*20", "w + 3", "z - 4", "12"], {"y": (0, 1), "w": (0, 9), "z": (0, 14)}),
    (["x*2", "z*2 - 4", "2", "x*-3 + z"], {"x": (-1, 0), "z": (0, 5)}),
]


@pytest.mark.parametrize(("operands", "ranges"), NESTED, ids=[" ".join(row[0]) for row in NESTED])
def test_order_of_nested_operands(operands, ranges):
    terms = {name: var(name, *ends) for name, ends in ranges.items()}
    forms = set()
    for first, *others in permutations(operands):
        text = reduce("max({}, {})".format, others, first)
        forms.add(LinearArithmetic([]).value(parse(text, terms)))
    assert len(forms) == 1


#: Two variables of which the keys once had one hash.
ALIKE = [var("thread_32", 0, 9), var("thread_2227", 0, 9)]


@pytest.mark.parametrize("text", ["{}", "{} // 2", "{}*3 - 1", "min({}, 3)", "{0}*{0} == 4"])
def test_no_two_values_tie(text):
    unnamed = var("X", -99, 99)
    for pair in (ALIKE, [ALIKE[0] * -1, ALIKE[0] * -2]):
        written = parse(text.format("X"), {"X": unnamed})
        x, y = [LinearArithmetic().value(written.substitute({unnamed: term})) for term in pair]
        assert value_order(x) != value_order(y)
        assert as_term(x).key != as_term(y).key


def test_keys_hash_as_their_first_parts_do():
    x, y = ALIKE
    assert x.key != y.key
    assert hash(x.key) == hash(x.key >> 122) == hash(y.key)
    assert hash((x * -1).key) == hash((x * -1).key >> 122)
