"""Uninterpreted functions of integers: arrays of ``int`` and ``bool``, of which congruence is all that is known."""

from random import Random

import pytest

from eqsat.codegen.expressions import to_c
from eqsat.lang.expr import buffer, const, var
from eqsat.lang.functions import minimum, where
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize

F, P, Q = buffer("f", "int"), buffer("p", "bool"), buffer("q", "bool")
X, Y, N = var("x", 0, 7), var("y", -3, 4), var("n", 0, None)
NAMES = {"f": F, "p": P, "q": Q, "x": X, "y": Y, "n": N}

FOUND = [
    # congruence: equal arguments, equal values
    ("f[n*2//2] - f[n]", [], "0"),
    ("f[f[x%8]] - f[f[x]]", [], "0"),
    ("where(p[n*2//2] and p[n], x, y)", [], "where(p[n], x, y)"),
    ("where(p[(n*8 + x)//8, x%8] or not p[n, x], x, y)", [], "x"),
    ("p[x + y] != p[y + x]", [], "False"),
    ("where(p[where(x < 9, x, y)], x, y)", [], "where(p[x], x, y)"),
    # what a condition that holds, or that chooses the branch, says of others
    ("where(p[n*2//2], x, y)", ["p[n]"], "x"),
    ("where(p[n] and q[n], x, y)", ["p[n] or q[n]", "not p[n]"], "y"),
    ("where(p[x], where(p[x%8], x, n), y)", [], "where(p[x], x, y)"),
    ("where(f[n] < 3, x, y)", ["f[n + 0] < 3"], "x"),
    # not what is unlike it
    ("where(p[x] and p[y], x, y)", [], "where(p[x] and p[y], x, y)"),
    ("where(p[x] and q[x], x, y)", [], "where(p[x] and q[x], x, y)"),
    ("where(p[n], x, y)", ["p[n + 1]"], "where(p[n], x, y)"),
    ("where(p[x] and p[x, x], x, y)", [], "where(p[x] and p[x, x], x, y)"),
]


@pytest.mark.parametrize(("text", "facts", "wanted"), FOUND, ids=[f"{text} {facts}" for text, facts, _ in FOUND])
def test_functions_are_congruent(text, facts, wanted):
    result = optimize(parse(text, NAMES), constraints=[parse(fact, NAMES) for fact in facts])
    assert result.cost == optimize(parse(wanted, NAMES)).cost
    assert result.expr is parse(wanted, NAMES)
    assert result.check().equal
    assert result.prove().kind in ("proved", "exhaustive")
    assert str(result.explain())


def test_gates_that_are_functions():
    result = optimize(where(P[X % 8], X, Y), gates=[P[X]])
    assert result.expr is X
    assert result.check().equal


@pytest.mark.parametrize("array", [F, P], ids=["int", "bool"])
def test_functions_have_no_c(array):
    root = where(array[X, Y] if array is P else array[X, Y] < 3, X, Y)
    with pytest.raises(ValueError, match=r"needs an array") as caught:
        to_c([root])
    assert "\n" not in str(caught.value)


def _integer(random, depth):
    kind = random.randrange(9) if depth else random.randrange(2)
    if kind < 2:
        return random.choice([X, Y, N]) if kind else const(random.randint(-4, 9))
    x, y = _integer(random, depth - 1), _integer(random, depth - 1)
    n = random.choice([2, 3, 4, 8])
    made = [
        lambda: x + y,
        lambda: x - y,
        lambda: x // n,
        lambda: x % n,
        lambda: random.choice([F[x], F[x, y]]),
        lambda: where(_condition(random, depth - 1), x, y),
        lambda: minimum(x, y),
    ]
    return made[kind - 2]()


def _condition(random, depth):
    x = _integer(random, max(0, depth - 1))
    if not depth:
        return P[x]
    one, other = _condition(random, depth - 1), _condition(random, depth - 1)
    y = _integer(random, depth - 1)
    return random.choice([one & other, one | other, ~one, one.ne(other), where(one, other, P[y]), x < y, P[x], Q[x, y]])


@pytest.mark.parametrize("seed", range(30))
def test_random_terms_with_functions(seed):
    random = Random(seed)
    term = where(_condition(random, 3), _integer(random, 2), _integer(random, 2))
    facts = [P[_integer(random, 1)] | Q[X, _integer(random, 1)]] if seed % 2 else []
    result = optimize(term, constraints=facts)
    assert result.check().equal
    assert optimize(term, constraints=facts, theory=False).check().equal
