"""Bit operators from end to end: swizzles and masks, and random expressions of bits."""

from __future__ import annotations

import numpy as np
import pytest
from corpora import BITS, cases, read
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import grid

from eqsat.codegen.runtime import compile_many
from eqsat.egraph.budget import Budget
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import TRUE, Expr, const, make, var
from eqsat.lang.functions import where
from eqsat.lang.ops import BITWISE
from eqsat.lang.text import parse
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize
from eqsat.theory.bits import known_bits
from eqsat.theory.linear import LinearArithmetic


def same(one: Expr, other: Expr, inputs: list[Expr]) -> bool:
    """Whether two terms are equal at every point."""
    x, y = evaluate([one, other], grid(inputs))
    return np.array_equal(*np.broadcast_arrays(x, y))


def has_bits(term: Expr) -> bool:
    return any(part.op in BITWISE for part in topological([term]))


#: Cases whose cheapest answer is a mask, though what is expected has none.
MASKS = {f"bits/{name}" for name in ("align_down", "align_rest", "align_up", "mask_place", "flip_upper", "split_three")}

WITHOUT_BITS = [case for case in cases(BITS) if case.expected and not has_bits(case.parse(case.expected[0]))]


@pytest.mark.parametrize("case", WITHOUT_BITS, ids=lambda case: case.id)
def test_a_mask_stands_only_for_what_is_several_operations_without_it(case):
    # a quotient and a product, or a remainder
    assert has_bits(optimize(case.exprs).exprs[0]) == (case.id in MASKS)


ANSWERS = [
    ("(r*64 + c) ^ (((r*64 + c) & 448) >> 3)", {"r": (0, 15), "c": (0, 63)}, "c + r*64 ^ r%8*8"),
    ("r*32 + ((c//8) ^ (r//2 % 4))*8 + c%8", {"r": (0, 31), "c": (0, 31)}, "r*32 + (c ^ r//2%4*8)"),
    ("(i & 7) ^ (j & 7)", {"i": (0, 63), "j": (0, 63)}, "(i ^ j) & 7"),
    ("~(~x & ~y)", {"x": (-40, 40), "y": (-9, 9)}, "x | y"),
    ("x & ~0", {"x": (-40, 40)}, "x"),
    ("where((x ^ y) == 0, 1, 2)", {"x": (-40, 40), "y": (-9, 9)}, "where(x == y, 1, 2)"),
    ("where(x & 12 != 12, 1, 2)", {"x": (-40, 40)}, "where(x % 16 < 12, 1, 2)"),
    ("where((x | 8) == x, 1, 2)", {"x": (-40, 40)}, "where(x & 8 == 8, 1, 2)"),
    ("x & 7", {"x": (-40, 40)}, "x%8"),
    ("(x*256 + y*16 + z) & 3855", {"x": (0, 15), "y": (0, 15), "z": (0, 15)}, "x*256 + z"),
    ("(x*256 + y*16 + 6) & 3591", {"x": (0, 15), "y": (0, 15)}, "(x & 14)*256 + 6"),
    ("(x*256 + y*8 + z) & 3855", {"x": (0, 15), "y": (0, 15), "z": (0, 15)}, "x*256 + (y*8 + z)%16"),
    ("((x >> 4) & 3855) << 4 | x & 3855", {"x": (0, 65535)}, "x"),
    ("(x & y) | 1 << 40", {"x": (0, 40), "y": (-9, 9)}, "(x & y) + 1099511627776"),
]


@pytest.mark.parametrize(("text", "ranges", "expected"), ANSWERS)
def test_answers(text, ranges, expected):
    term = read(text, ranges)
    found = optimize(term)
    assert found.cost == cost_of([read(expected, ranges)], LATENCY)
    assert same(found.expr, term, variables([term]))


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("(i & j)*3 + (i | j)*3", 3),
        ("(i & j)*5 + (i | j)*5 + 7", 4),
        ("((i & j) + (i | j))*3 + k*2", 4),
        ("(i & j)*2 + (i | j)*2 + (k & l)*3 + (k | l)*3", 5),
        ("i + j - (i & j)*2", 1),
        ("i*2 + j*2 - (i & j)*2 + k", 3),
        ("k + i - (i | j) + j", 2),
        ("(i | j)*4 - i*2 - j*2", 2),
        ("(i & j) + k + (i ^ j)", 2),
        ("k - (i ^ j) + (i | j)", 2),
        ("(i | j)*2 - (i ^ j)", 1),
        # all but one term cancels
        ("(i | j) - (i & j) - (i ^ j) + k", 0),
    ],
)
def test_sums_that_rules_find_are_computed_as_cheaply_as_others(text, cost):
    result = optimize(text, **dict.fromkeys("ijkl", (0, 9)))
    assert result.cost == cost
    assert result.check().equal


def test_facts_bound_the_bits():
    found = optimize("i | 64", i=(0, 1000), constraints=["i < 64"])
    assert str(found.expr) == "i + 64"


def test_literals_of_any_width():
    facts = ["y == -5", f"x == {2**70}"]
    result = optimize(
        [f"y ^ {2**64 - 1}", f"y ^ {2**64 - 1} ^ x ^ z"], constraints=facts, y=(-9, 9), x=(0, None), z=(0, 9)
    )
    value = -5 ^ 2**64 - 1
    assert [str(expr) for expr in result.exprs] == [str(value), f"z ^ {value ^ 2**70}"]


def test_facts_that_contradict_each_other_leave_no_bits():
    # where `x` is 0 the first holds: its complement leaves nothing of `x | y`
    text, ranges = "(x | y) < x + y + 18 or x != 0", {"x": (-2, 1), "y": (0, 33)}
    assert optimize(text, **ranges).expr is TRUE


def test_long_chains_of_bit_operators_end():
    names = [var(f"x{index}", 0, 255) for index in range(120)]
    for op in sorted(BITWISE):
        term = names[0]
        for name in names[1:]:
            term = make(op, term, name)
        found = optimize(term)
        at = {str(v.value): np.arange(40) * (7 + index) % 256 for index, v in enumerate(names)}
        assert np.array_equal(*evaluate([term, found.expr], at))


@st.composite
def of_bits(draw: st.DrawFn) -> tuple[Expr, list[Expr]]:
    """A random expression of bit operators, shifts, and what they are in arithmetic; operands may be negative."""
    inputs = [var("x", -9, 9), var("y", 0, draw(st.sampled_from([1, 5, 15]))), var("z", -4, 3)]
    literals = st.sampled_from([-17, -8, -1, 0, 1, 2, 3, 4, 5, 7, 8, 10, 15, 24]).map(const)
    terms = list(inputs)
    for _ in range(draw(st.integers(2, 9))):
        op = draw(st.sampled_from([*sorted(BITWISE) * 3, "not", "add", "sub", "up", "down", "low", "min", "where"]))
        x = draw(st.sampled_from(terms[::-1]))
        y = draw(st.sampled_from(terms[::-1]) | literals)
        places = draw(st.integers(0, 4))
        if op == "not":
            term = ~x
        elif op in ("up", "down"):
            term = x << places if op == "up" else x >> places
        elif op == "low":
            term = x % 2**places
        elif op == "where":
            term = where(x < y, x, draw(st.sampled_from(terms)))
        else:
            term = make(op, *draw(st.permutations([x, y])))
        if max(abs(term.vmin), abs(term.vmax)) < 2**20:
            terms.append(term)
    return terms[-1], inputs


@settings(max_examples=100)
@given(of_bits())
def test_evaluation_is_pythons_and_bounds_hold(drawn):
    term, inputs = drawn
    points = grid(inputs)
    (values,) = evaluate([term], points)
    values = np.broadcast_to(values, points["x"].shape)
    rows = np.stack([points[str(v.value)] for v in inputs], axis=1).tolist()
    code = compile(str(term), "term", "eval")
    names = {"min": min, "where": lambda condition, x, y: x if condition else y}
    wanted = [eval(code, names, dict(zip("xyz", row, strict=True))) for row in rows]
    assert values.tolist() == wanted
    assert term.vmin <= min(wanted)
    assert max(wanted) <= term.vmax
    assert parse(str(term), {str(v.value): v for v in inputs}) is term
    theory = LinearArithmetic()
    low, high = theory.bounds(theory.form(term))
    assert low <= min(wanted)
    assert max(wanted) <= high


@settings(max_examples=300)
@given(of_bits())
def test_known_bits_are_those_of_every_value(drawn):
    term, inputs = drawn
    theory = LinearArithmetic()
    bits = known_bits(theory, theory.form(term))
    values = evaluate([term], grid(inputs))[0]
    assert np.all(values & bits.ones == bits.ones)
    assert np.all(values & ~bits.possible == 0)


@settings(max_examples=400)
@given(of_bits())
def test_normal_forms_have_the_same_values(drawn):
    term, inputs = drawn
    assert same(LinearArithmetic().simplify(term), term, inputs)


@pytest.mark.parametrize(
    "text", ["x*16 + y*4 + z", "x*8 + y%2*4 + z", "(x - x%2)*8 + y + 4", "x*16 - y*4 + z", "x*5 + y*16"]
)
def test_every_mask_of_a_packed_word(text):
    ranges = {"x": (0, 3), "y": (0, 3), "z": (0, 3)}
    word = read(text, ranges)
    for mask in range(64):
        term = word & mask
        assert same(LinearArithmetic().simplify(term), term, [var(name, *ends) for name, ends in ranges.items()])


@settings(max_examples=200)
@given(of_bits(), st.integers(-9, 9), st.integers(0, 6))
def test_normal_forms_have_the_same_values_where_facts_hold(drawn, low, extent):
    term, inputs = drawn
    x = inputs[0]
    theory = LinearArithmetic([low <= x, x <= low + extent])
    points = grid([var("x", max(-9, low), min(9, low + extent)), *inputs[1:]])
    assert np.array_equal(*np.broadcast_arrays(*evaluate([term, theory.simplify(term)], points)))


@settings(max_examples=60)
@given(of_bits())
def test_answers_have_the_same_values(drawn):
    term, inputs = drawn
    found = optimize(term)
    assert same(found.expr, term, inputs)
    assert found.cost <= cost_of([term], LATENCY)
    alone = optimize(term, theory=False, budget=Budget(rounds=4))
    assert same(alone.expr, term, inputs)


@settings(max_examples=5)
@given(st.lists(of_bits(), min_size=8, max_size=12))
def test_c_has_the_same_values(drawn):
    kernels = compile_many([[term] for term, _ in drawn], [inputs for _, inputs in drawn])
    for kernel, (term, inputs) in zip(kernels, drawn, strict=True):
        points = grid(inputs)
        assert np.array_equal(kernel(points)[0], np.broadcast_to(evaluate([term], points)[0], points["x"].shape))


def test_a_mask_makes_no_sums_without_end() -> None:
    result = optimize("(max(h, g) - min(h, g)) & 7", g=(-4, 4), h=(-4, 4))
    assert (result.cost, result.stop) == (4, "saturated")
    assert result.nodes < 200
    assert result.check().equal
