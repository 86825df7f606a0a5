"""Sums whose atoms say one thing in several ways: bit operators on the same operands."""

from itertools import product

import pytest

from eqsat import optimize
from eqsat.alternatives.builder import Builder
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import var
from eqsat.lang.sampling import grid
from eqsat.lang.text import parse
from eqsat.theory.forms import to_expr
from eqsat.theory.linear import LinearArithmetic

NAMES = {name: var(name, -3, 4) for name in "ghijk"}

SHORTER = [
    ("(g | h) - (g & h) - (g ^ h) + k", 0),
    ("g + h - (g | h) - (g & h) + k", 0),
    ("(g | h)*3 - (g & h) - (g ^ h) + k*2 - g", 4),
]


@pytest.mark.parametrize(("text", "cost"), SHORTER, ids=[row[0] for row in SHORTER])
def test_atoms_that_say_one_thing_cancel(text, cost):
    result = optimize(parse(text, NAMES))
    assert result.cost <= cost
    assert result.check().equal


@pytest.mark.parametrize("scales", list(product((-2, -1, 0, 1, 3), repeat=3)), ids=str)
def test_sums_of_bit_operators_by_one_of_them(scales):
    """Every alternative has the value of the sum at every point, for odd and even multiples of each operator."""
    names = {name: NAMES[name] for name in "gh"}
    text = " + ".join(f"(g {op} h)*{k}" for op, k in zip("&|^", scales, strict=True))
    theory = LinearArithmetic()
    builder = Builder(theory, names)
    form = theory.form(parse(f"{text} + g", names))
    c = builder.add_class(form)
    builder.grow()
    points = grid(tuple(names.values()))
    (wanted,) = evaluate([parse(f"{text} + g", names)], points)
    for node in builder.input.by_one_operator(form):
        assert node[0] == "sum"
        ((value,), (constant, (k,))) = [builder.form_of(a) for a in node[2]], node[1]
        (found,) = evaluate([to_expr(value) * k + constant], points)
        assert (found == wanted).all()
    assert c in builder.graph.classes
