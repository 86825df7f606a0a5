"""Refutation: what it refutes never holds, and it refutes what elimination and cases can reach."""

from itertools import product
from operator import itemgetter
from random import Random

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from index_terms import index_conditions
from strategies import bool_expressions, grid

from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import TRUE, Expr, var
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.theory.elimination import Rows
from eqsat.theory.forms import LinearForm, atom_form
from eqsat.theory.limits import LIMITS
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.refutation import cannot_hold
from eqsat.theory.witnesses import POINTS

BIG = (-(2**31), 2**31 - 1)
X, Y, Z = [atom_form(var(name, *BIG)) for name in "xyz"]


def row(form: LinearForm, least: int) -> LinearForm:
    """``form >= least``."""
    return form.shifted(-least)


ROWS = [
    # rows that clash, and the same with one bound loosened so that they do not
    ([row(Y.plus(X, -1), 1), row(Z.plus(Y, -1), 1), row(X.plus(Z, -1), -1)], row(X.plus(Z, -1), -2)),
    ([row(X.plus(Y), 7), row(X.times(-1), -3), row(Y.times(-1), -3)], row(X.plus(Y), 6)),
    # 2 <= 2*x - 4*y <= 3 has the one solution of reals between integers
    ([row(X.times(3).plus(Y, -6), 1), row(X.times(-3).plus(Y, 6), -2)], row(X.times(-3).plus(Y, 6), -3)),
    # x is 4*y + 2 to reals, and y is -z - 1/2: only to eliminate x, which has no other coefficients, before y is exact
    (
        [
            row(X.plus(Y, -4), -1),
            row(Y.times(4).plus(X, -1), -2),
            row(Z.times(-4).plus(X, -1), 0),
            row(Z.times(2).plus(X).plus(Y, -2), 1),
        ],
        row(Z.times(2).plus(X).plus(Y, -2), 0),
    ),
    # an equation is solved
    ([row(X.plus(Y, -2), 0), row(X.times(-1).plus(Y, 2), 0), row(X, 3), row(Y.times(-1), -1)], row(X, 2)),
]


@pytest.mark.parametrize(("rows", "looser"), ROWS)
def test_rows_that_clash(rows, looser):
    assert Rows(rows, lambda atom: BIG).clash()
    (index,) = [i for i, tight in enumerate(rows) if LinearForm(tight.terms, 0) == LinearForm(looser.terms, 0)]
    assert not Rows([*rows[:index], looser, *rows[index + 1 :]], lambda atom: BIG).clash()


def test_of_rows_in_one_direction_the_tightest_counts():
    (rows, looser) = ROWS[0]
    for first, *rest in (rows, rows[::-1]):
        assert Rows([first, *rest, looser], lambda atom: BIG).clash()


def test_rows_that_clash_have_no_solution():
    atoms = [var(name, -9, 9) for name in "xyz"]
    clashes = 0
    for seed in range(1500):
        random = Random(seed)
        ranges = {atom: (low := random.randint(-3, 2), low + random.randint(0, 4)) for atom in atoms}
        rows = []
        for _ in range(random.randint(1, 5)):
            coefficients = {atom: random.choice([0, 0, 1, 1, -1, -1, 2, -2, 3, -3]) for atom in atoms}
            rows.append(LinearForm({a: c for a, c in coefficients.items() if c}, random.randint(-4, 4)))
            if random.random() < 0.4:
                # an equation, or nearly one
                rows.append(rows[-1].times(-1).shifted(random.choice([0, 0, 0, 1])))
        if Rows(rows, ranges.__getitem__).clash():
            clashes += 1
            for point in product(*[range(low, high + 1) for low, high in ranges.values()]):
                values = dict(zip(atoms, point, strict=True))
                assert any(r.constant + sum(c * values[a] for a, c in r.terms.items()) < 0 for r in rows), (seed, point)
    assert 300 < clashes < 1200


IMPOSSIBLE = [
    # conditions that cannot hold together, and a weaker one in place of the last
    (["x < y", "y < z", "z < x + 2"], "z < x + 3"),
    (["z < x", "z < y", "min(x, y) < z + 1"], "min(x, y) < z + 2"),
    (["x <= z", "y <= z", "z < max(x, y)"], "z <= max(x, y)"),
    (["8*x <= y", "y//8 < x"], "y//8 < x + 1"),
    (["y//8 == z", "x//4//2 == z", "x + 8 <= y"], "x + 7 <= y"),
    (["x < 3 or y < 3", "3 <= y", "x == 3"], "x == 2"),
    (["where(x < 0, -x, x) < 5", "x == -5"], "x == -4"),
    (["tdiv(x, 5) == 2", "x < 10"], "x < 11"),
    (["x*x < 0"], "x*x < 1"),
]


@pytest.mark.parametrize(("conditions", "weaker"), IMPOSSIBLE, ids=str)
def test_conditions_that_cannot_hold(conditions, weaker):
    ranges = {name: var(name, -50, 50) for name in "xyz"}

    def refuted(texts):
        # one by one, as the normal form of a conjunction may be False by itself
        theory = LinearArithmetic()
        return cannot_hold(theory, [theory.condition(parse(text, ranges)) for text in texts])

    assert refuted(conditions)
    assert not refuted([*conditions[:-1], weaker])


def test_quotients_of_minima_are_refuted_over_large_domains():
    names = {name: var(name, *BIG) for name in "xy"}
    theory = LinearArithmetic()
    condition = theory.condition(parse("min((x - 13)//2, y)//2 <= (x - 13)//4", names))
    assert condition is TRUE
    assert theory.condition(parse("min((x - 11)//2, y)//2 <= (x - 13)//4", names)) is not TRUE


class WithoutWitnesses(LinearArithmetic):
    """A theory that proves what sample points would have shown to be hopeless: in small domains, nearly everything."""

    def witnessed(self):
        return np.zeros(POINTS, dtype=bool)


def test_a_truncating_division_by_no_literal_says_nothing():
    names = {"x": var("x", -50, 50), "y": var("y", 1, 4)}
    theory = WithoutWitnesses()
    possible = [theory.condition(parse(text, names)) for text in ("tdiv(x, y) == 2", "x == 6")]
    assert not cannot_hold(theory, possible)


@st.composite
def two_conditions(draw: st.DrawFn) -> list[Expr]:
    """A random condition, or what it denies, and one about a part of it."""
    condition = draw(bool_expressions(max_points=200).map(itemgetter(0)) | index_conditions())
    parts = [t for t in topological([condition]) if not t.is_bool]
    part, other = draw(st.sampled_from(parts)), draw(st.sampled_from(parts))
    about = draw(st.sampled_from([part < other, part.eq(other), part <= draw(st.integers(part.vmin, part.vmax))]))
    return [draw(st.sampled_from([condition, ~condition])), about]


@settings(max_examples=300)
@given(two_conditions())
def test_what_is_refuted_never_holds(conditions):
    theory = WithoutWitnesses()
    if cannot_hold(theory, [theory.condition(c) for c in conditions]):
        points = grid(variables(conditions)) or {"no variable": np.zeros(1)}
        count = len(next(iter(points.values())))
        try:
            values = evaluate(conditions, points)
        except ZeroDivisionError:
            # a part may be defined only where its branch is chosen
            reject()
        assert not np.logical_and(*[np.broadcast_to(v, count) for v in values]).any()


def test_the_work_is_bounded():
    # each maximum is at most the sum of its operands, which takes a case for each of its operands to see
    names = {f"{letter}{i}": var(f"{letter}{i}", 0, 2**31 - 1) for letter in "ab" for i in range(12)}
    theory = LinearArithmetic()
    excess = [theory.form(parse(f"max(a{i}, b{i}) - a{i} - b{i}", names)) for i in range(12)]
    few, all_together = sum_of(excess[:3]), sum_of(excess)
    assert cannot_hold(theory, (), [few.shifted(-1)])
    left = theory.work.steps
    assert not cannot_hold(theory, (), [all_together.shifted(-1)])
    assert left - 2 * LIMITS.refutation_steps < theory.work.steps < left - LIMITS.refutation_steps
    for _ in range(40):
        cannot_hold(theory, (), [all_together.shifted(-1)])
    assert -2 * LIMITS.refutation_steps < theory.work.steps < LIMITS.refutation_steps
    assert not cannot_hold(theory, (), [few.shifted(-1)])


def sum_of(forms: list[LinearForm]) -> LinearForm:
    total = forms[0]
    for form in forms[1:]:
        total = total.plus(form)
    return total
