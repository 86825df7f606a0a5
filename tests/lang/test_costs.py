"""Cost models as callers give them; products and quotients by literals in the cheapest form of a model, if any."""

from __future__ import annotations

import numpy as np
import pytest

from eqsat import Kernel, Store, buffer, optimize
from eqsat.discover.discovery import discover
from eqsat.extract.cost import COST_MODELS, Checked, LoopAware, OpCount
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.mlir import rewrite
from eqsat.kernels.ranges import Axis, Nest, cheapest
from eqsat.kernels.simplification import simplified
from eqsat.lang.costs import StrengthReduced, cost_of, plain, reduced, strength_reduced
from eqsat.lang.expr import Expr, const, make, var
from eqsat.lang.properties import misfits
from eqsat.lang.text import parse
from eqsat.prove.verify import check_equal

#: A machine without a divider.
SLOW = OpCount(weights={"floordiv": 40, "mod": 44, "tdiv": 40, "tmod": 44, "mul": 4}, other=2)

FORMS = [
    # text, range of x, the form, its cost
    ("x*8", (-9, 99), "x << 3", 2),
    ("x//4", (-9, 99), "x >> 2", 2),
    ("x%16", (-9, 99), "x & 15", 2),
    ("x//7", (0, 99), "x*147 >> 10", 6),
    ("x//7", (-9, 99), "((x + 14)*147 >> 10) - 2", 10),
    ("x%7", (0, 99), "x - (x*147 >> 10)*7", 12),
    ("x//7 + x%7", (0, 99), "(x*147 >> 10) + (x - (x*147 >> 10)*7)", 14),
    ("x*7", (0, 99), "x*7", 4),
    # 64 bits do not hold the product
    ("x//7", (0, 2**62), "x//7", 40),
    ("x//7", (0, None), "x//7", 40),
    ("x//-7", (0, 99), "x//-7", 40),
]


@pytest.mark.parametrize(("text", "bounds", "form", "cost"), FORMS)
def test_forms(text: str, bounds: tuple[int, int | None], form: str, cost: int) -> None:
    x = var("x", *bounds)
    (found,) = reduced([parse(text, {"x": x})], StrengthReduced(SLOW))
    assert (str(found), cost_of([found], SLOW)) == (form, cost)


def test_powers_of_two_beyond_any_shift() -> None:
    for text in ("x//2**70", "x*2**70", "x%2**70"):
        term = parse(text, {"x": var("x", 0, 2**80)})
        assert reduced([term], StrengthReduced(SLOW)) == [term]


def test_literals_on_the_left() -> None:
    x = var("x", 0, 99)
    found = reduced([8 * x], StrengthReduced(SLOW))
    assert [str(term) for term in found] == ["x << 3"]
    assert cost_of(found, SLOW) == cost_of([8 * x], StrengthReduced(SLOW))


def test_forms_are_equal() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        low = int(random.integers(-200, 200))
        x = var("x", low, low + int(random.integers(1, 5000)))
        n = const(int(random.integers(2, 70)))
        terms = [make(op, x, n) for op in ("mul", "floordiv", "mod")]
        assert check_equal(terms, reduced(terms, StrengthReduced(SLOW)))


@pytest.mark.parametrize("name", COST_MODELS)
def test_shipped_models_know_what_compilers_do(name: str) -> None:
    model = COST_MODELS[name]
    assert strength_reduced(model) is model
    # and not only because it is not asked
    assert strength_reduced(Checked(model)) == Checked(model)


def test_each_iteration_is_reduced() -> None:
    loops = LoopAware({"i": 10}, SLOW)
    inner = strength_reduced(loops)
    assert isinstance(inner, LoopAware)
    assert [plain(inner), plain(strength_reduced(SLOW))] == [loops, SLOW]
    assert reduced([var("i", 0, 9) // 4], inner) == [parse("i >> 2", {"i": var("i", 0, 9)})]


ANSWERS = [
    # text, its cost before, and that of the answer
    ("x//4 + x%4*4", 90, 8),
    ("x//7", 40, 6),
    ("x*64 + y", 6, 4),
    ("(x*7 + y)//7", 46, 8),
    ("where(x%16 < 3, x//16, 0)", 88, 8),
]
OPTIONS: list[dict[str, object]] = [
    {},
    {"theory": False},
    {"extract": "tree"},
    {"engine": "greedy"},
    {"engine": "theory"},
    {"pareto": "operations"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("text", "before", "after"), ANSWERS, ids=lambda value: str(value))
def test_answers(text: str, before: int, after: int, options: dict[str, object]) -> None:
    result = optimize(text, cost=SLOW, x=(0, 999), y=(0, 63), **options)  # type: ignore[arg-type]
    assert result.cost_before == before
    assert result.cost <= after
    assert result.cost == cost_of(result.exprs, SLOW)
    assert result.model is SLOW or result.model.model is SLOW  # type: ignore[attr-defined]
    assert result.check()


#: Terms with a remainder in which its form has no place: by the bounds of the form, which are wider.
NO_ROOM = [
    # 64 bits hold the product with the remainder only
    ("x%7*y", "x%7*y"),
    ("x%7*2**60 + x//7", "(x%7 << 60) + (x*1171 >> 13)"),
    ("x%3*(y%5)*(y%7)*2**56 + x%7", "(x%3*(y%5)*(y%7) << 56) + (x - (x*1171 >> 13)*7)"),
    # a product with too many bits
    ("prod((x - r)%3 - 1, r, 0, 6000)", "prod((x - r1)%3 - 1, r1, 0, 6000)"),
    # the index would have the bounds of the end
    ("sum(r*2**58, r, 0, x%7)", "sum(r1 << 58, r1, 0, x%7)"),
    ("max_over(r, r, 0, x%8)", "max_over(r1, r1, 0, x & 7)"),
]


@pytest.mark.parametrize(("text", "expected"), NO_ROOM)
def test_bounds_of_forms_are_no_wider_than_there_is_room_for(text: str, expected: str) -> None:
    names = {"x": var("x", 0, 999), "y": var("y", 0, 2**60)}
    term = parse(text, names)
    (found,) = reduced([term], StrengthReduced(SLOW))
    assert str(found) == expected
    assert not misfits([found])
    first = optimize(term, cost=SLOW)
    for result in (first, first.extract(SLOW), optimize(term).extract(SLOW)):
        assert not misfits(result.exprs)
        assert result.cost == cost_of(result.exprs, SLOW) <= result.cost_before
        assert result.check()


def test_another_model_is_extracted() -> None:
    result = optimize(["x//7", "x%8"], x=(0, 99))
    assert [str(term) for term in result.extract(SLOW).exprs] == ["x*147 >> 10", "x & 7"]
    back = optimize("x//7", cost=SLOW, x=(0, 99)).extract("latency")
    assert back.cost <= 5
    assert back.check()


def test_quotients_are_priced_before_they_are_written() -> None:
    # a shared quotient costs less than the selections that would do without
    x = var("x", 0, 15)
    terms: list[Expr] = [x // 8, x % 8]
    assert optimize(terms, cost=SLOW).cost == 4


X = var("x", 0, 9)


@pytest.mark.parametrize(
    "taking",
    [
        lambda cost: optimize(X // 3, cost=cost),
        lambda cost: optimize(X // 3).extract(cost),
        lambda cost: simplified(
            Kernel("copy", [Store(buffer("B", shape=(10,))[X], buffer("A", shape=(3,))[X % 3], [X])]), cost=cost
        ),
        lambda cost: cheapest(Nest((Axis(X),), (X % 3,)), cost),
        lambda cost: discover([], cost=cost),
        lambda cost: IndexingMap.parse("(d0) -> (d0), domain: d0 in [0, 9]").simplify(cost=cost),
        lambda cost: rewrite("module {\n}\n", cost=cost),
    ],
)
def test_weights_of_no_operator_counted_for_nothing(taking):
    with pytest.raises(ValueError, match="the cost model weighs 'modd', which is no operator; did you mean 'mod'"):
        taking(OpCount(weights={"modd": 9}))
