"""Variables without bounds: what is found for all integers, and that it is true of large ones too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_terms import index_terms
from strategies import unbounded_expressions

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, replaced, var
from eqsat.lang.ops import is_finite
from eqsat.lang.own import operator
from eqsat.lang.sampling import sample
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import prove_equal
from eqsat.rules import DEFAULT
from eqsat.theory import forms

ANY, COUNT, SIZE, BELOW = (None, None), (0, None), (1, None), (None, 7)
WAYS = [{}, {}, {"engine": "theory"}, {"theory": False}, {"engine": "greedy"}, {"extract": "exact"}]
SMALL = Budget(nodes=3000, seconds=0.5, rounds=8)

FOUND = [
    ("(x*n + y) // n", {"x": ANY, "y": COUNT, "n": SIZE}, ["y < n"], "x"),
    ("(x*n + y) % n", {"x": ANY, "y": COUNT, "n": SIZE}, ["y < n"], "y"),
    ("(i*n*m + j*m) // (n*m)", {"i": COUNT, "j": COUNT, "n": SIZE, "m": SIZE}, ["j < n"], "i"),
    ("(i*n + j)*m // (n*m)", {"i": COUNT, "j": COUNT, "n": SIZE, "m": SIZE}, ["j < n"], "i"),
    ("(n + 3) // 8", {"n": ANY}, ["n % 8 == 0"], "n//8"),
    ("(n + 3) // 8 * 8", {"n": SIZE}, ["n % 8 == 0"], "n"),
    ("(n + 3) % 8", {"n": ANY}, ["n % 8 == 0"], "3"),
    ("n//8*8 + n%8", {"n": ANY}, [], "n"),
    ("x//4//8*32 + x%32", {"x": BELOW}, [], "x"),
    ("(x*6 + 5) // 3", {"x": ANY}, [], "x*2 + 1"),
    ("min(n, n + 5)", {"n": ANY}, [], "n"),
    ("max(n, 2)", {"n": COUNT}, ["n >= 2"], "n"),
    ("max(n, 1) - n", {"n": SIZE}, [], "0"),
    ("x < x + 1", {"x": ANY}, [], "True"),
    ("n*n*n // n", {"n": SIZE}, [], "n*n"),
    ("x // n // m", {"x": ANY, "n": SIZE, "m": SIZE}, [], "x//(m*n)"),
    ("where(n < 5, n % 8, n // 2)", {"n": COUNT}, [], "where(n < 5, n, n//2)"),
    ("sum(where(r < 5, 3, 0), r, 0, n)", {"n": COUNT}, [], "min(15, n*2 + n)"),
    ("n // 2**210 == 0", {"n": COUNT}, [], f"n < {2**210}"),
]


@pytest.mark.parametrize(("text", "ranges", "facts", "wanted"), FOUND, ids=[row[0] for row in FOUND])
def test_found_for_all_integers(text, ranges, facts, wanted):
    assert str(optimize(text, constraints=facts, **ranges).expr) == wanted
    if "sum(" not in text:
        names = {name: var(name, *bounds) for name, bounds in ranges.items()}
        terms = [parse(t, names) for t in (text, wanted)]
        check = prove_equal(terms[:1], terms[1:], constraints=[parse(fact, names) for fact in facts])
        assert check.kind == "proved"


# near misses: true up to some number, and false beyond
DIFFERENT = [
    ("n // 2**80", {"n": COUNT}, "0"),
    ("min(n, 2**100)", {"n": COUNT}, "n"),
    ("n % 2**70", {"n": COUNT}, "n"),
    ("n < 2**64", {"n": ANY}, "True"),
    ("x // n", {"x": (0, 9), "n": SIZE}, "0"),
    ("(x + n) // n", {"x": COUNT, "n": SIZE}, "1"),
]


@pytest.mark.parametrize(("text", "ranges", "wrong"), DIFFERENT)
def test_what_holds_for_machine_numbers_alone(text, ranges, wrong):
    assert str(optimize(text, **ranges).expr) != wrong
    names = {name: var(name, *bounds) for name, bounds in ranges.items()}
    assert prove_equal([parse(text, names)], [parse(wrong, names)]).counterexample is not None


@pytest.fixture
def _finite_forms(monkeypatch):
    """No bound becomes the constant or a coefficient of a sum unless it is finite."""
    made = forms.LinearForm.__init__

    def check(self, terms, constant):
        assert is_finite(constant, *terms.values())
        made(self, terms, constant)

    monkeypatch.setattr(forms.LinearForm, "__init__", check)


def assert_sound(roots: list[Expr], facts: list[Expr], options: dict) -> None:
    try:
        result = optimize(roots, constraints=facts, budget=SMALL, **options)
    except ContradictionError:
        return
    except ValueError as refused:
        if any(reason in str(refused) for reason in ("may be zero", "always 0", "bits")):
            return
        raise
    points = sample(variables([*roots, *result.exprs, *facts]), facts, 100, seed=1) or {"none": np.zeros(1)}
    for root, before, after in zip(roots, evaluate(roots, points), evaluate(result.exprs, points), strict=True):
        assert np.all(before == after), f"{root} became {result.exprs}"


facts = st.lists(unbounded_expressions(5).filter(lambda term: term.is_bool), max_size=2)


@pytest.mark.usefixtures("_finite_forms")
@given(unbounded_expressions(), facts, st.sampled_from(WAYS))
@settings(max_examples=300)
def test_random_terms(term, facts, options):
    try:
        variables([term, *facts])
    except ValueError:
        # one name with two ranges
        return
    assert_sound([term], facts, options)


@pytest.mark.usefixtures("_finite_forms")
@given(index_terms(), st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from(WAYS[:4]))
@settings(max_examples=100)
def test_random_index_terms(terms, ended, options):
    ends = [
        (v.vmin if below else None, v.vmax if above else None)
        for v, below, above in zip(variables(terms), ended[::2], ended[1::2], strict=False)
    ]
    unbounded = {v: var(v.value, *pair) for v, pair in zip(variables(terms), ends, strict=True)}
    assert_sound(replaced(terms, unbounded), [], options)


operator("unbounded_scaled", 1, lambda x: x.astype(object) * 2**80)
#: What an operator without bounds is divided by, or compared with: the largest bounds that egglog is given are no ends.
OF_OWN = [
    "max(unbounded_scaled(x), 0) // (2**61 + 1)",
    "max(unbounded_scaled(x), 0) % (2**61 + 1)",
    "max(unbounded_scaled(x), 2**62 - 2) // 3",
    "2**62 - 1 < unbounded_scaled(x)",
    "min(unbounded_scaled(x), 0) % (2**62 - 2)",
]


@pytest.mark.parametrize("options", [{}, {"theory": False}])
@pytest.mark.parametrize("text", OF_OWN)
def test_an_operator_without_bounds_of_variables_with_bounds(text, options):
    rules = [*DEFAULT, Rule("never", "x < y", "False", "vmax(y) <= vmin(x) and 0 <= vmin(x)")]
    for used in (DEFAULT, rules):
        assert optimize(text, x=(0, 9), rules=used, **options).check().equal
