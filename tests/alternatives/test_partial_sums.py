"""Short sums of products by literals: their programs compute them, and cost what they say."""

from __future__ import annotations

from itertools import permutations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqsat.alternatives import partial_sums
from eqsat.alternatives.linear_programs import Coefficients, LinearPrograms, programs_by
from eqsat.alternatives.partial_sums import hoisted_sums, share_sums
from eqsat.alternatives.plain import PlainClasses
from eqsat.extract.cost import COST_MODELS, CostModel, Latency, OpCount, Throughput
from eqsat.extract.graph import EGraph, Node, sum_by
from eqsat.extract.select import Priced, ProductPrices, reachable, tree
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import buffer, var
from eqsat.lang.terms import all_of
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize


def followed(programs: LinearPrograms, sum_of: Coefficients) -> tuple[Coefficients, int]:
    """The coefficients that a program computes, and the price of its operations."""
    program = programs[sum_of]
    if not program.parts:
        return sum_of, 0
    if program.scale != 1:
        part, price = followed(programs, program.parts[0])
        is_product = len([k for k in sum_of if k]) == 1
        by = programs.prices[program.scale] if is_product else programs[(program.scale,)].price
        return tuple(k * program.scale for k in part), price + by
    one, other = program.parts
    sign = 1 if max(other) > 0 else -1
    left, right = followed(programs, one), followed(programs, tuple(k * sign for k in other))
    computed = tuple(a + sign * b for a, b in zip(left[0], right[0], strict=True))
    return computed, left[1] + right[1] + programs.prices.addition


@given(
    st.lists(st.integers(-99, 99).filter(bool), min_size=1, max_size=4).filter(lambda ks: max(ks) > 0),
    st.sampled_from([Latency(), Throughput(), OpCount(), OpCount(weights={"mul": 9})]),
)
def test_a_program_computes_its_sum_at_its_price(coefficients: list[int], model: CostModel) -> None:
    programs = LinearPrograms(ProductPrices(model))
    sum_of = tuple(coefficients)
    assert followed(programs, sum_of) == (sum_of, programs[sum_of].price)
    term_by_term = sum(programs.prices[abs(k)] for k in sum_of) + (len(sum_of) - 1) * programs.prices.addition
    assert programs[sum_of].price <= term_by_term


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x*9", "x*8 + x"),
        ("x + x*2", "x*2 + x"),
        ("x*2 + y*3", "(x + y)*2 + y"),
        ("x*7 - y*9", "(x - y)*8 - (x + y)"),
        ("(x*8 + y)*5 + 1", "(x*8 + y)*4 + (x*8 + y) + 1"),
        ("x*11", "x*11"),
        # the bounds of x*8 - x are those of x*7, so the sign of the dividend is seen
        ("(x*7 + y)%10", "(x*8 - x + y)%10"),
    ],
)
def test_sums_are_computed_by_their_programs(text: str, answer: str) -> None:
    assert str(optimize(text, x=(0, 99), y=(0, 15)).expr) == answer


@pytest.mark.parametrize(
    ("texts", "cost"),
    [
        # terms without a factor beside four that have one
        (["a*378 + b*126 + k*42 + d*7 + e"], 13),
        (["a*27 + b*3 + k*9 + d + e"], 10),
        # part of a dividend whose sign is seen: the sum is not longer for that
        (["a*3 + b + k*21", "(a*3 + b + k*21)//5"], 11),
        # a sum that shares little gets its program back
        (["b*4 + e*4 + c", "e*12 + b*28 + d*21"], 11),
        (["b*4 + d*21 + a*3 + c*2", "c*14 + b*28 + d*2"], 12),
        (["e*10 + c*7 + b*2 + a*10", "e*10 + b + c"], 12),
    ],
)
def test_long_sums_and_dividends_are_computed_by_programs_too(texts: list[str], cost: int) -> None:
    result = optimize(texts, a=(0, 5), b=(0, 2), c=(0, 9), d=(0, 5), e=(0, 6), k=(0, 2))
    assert result.cost == cost
    assert result.check().equal


def test_of_equal_savings_small_products_are_shared_whatever_the_names() -> None:
    # the indices of attention: to share head*96 + d first spares as much, and leaves nothing more to share
    for head, query, key, d in permutations("abcd"):
        indices = [f"{head}*144 + {query}*12 + {key}", f"{head}*96 + {query}*8 + {d}", f"{head}*96 + {key}*8 + {d}"]
        assert optimize(indices, **{head: (0, 7), query: (0, 11), key: (0, 11), d: (0, 7)}).cost == 13


def test_no_part_is_wider_than_its_sum() -> None:
    assert str(optimize("x*7", x=(0, 2**31 // 7)).expr) == "x*7"
    assert str(optimize("x*9", x=(0, 2**31 // 9)).expr) == "x*8 + x"


def test_a_sum_is_added_to_a_needed_one_whatever_the_numbers_of_their_classes() -> None:
    for x, y, z, alone in permutations(range(4)):
        leaves: dict[int, list[Node]] = {c: [("var", f"x{c}", ())] for c in range(4)}
        other: Node = ("mod", None, (x, y))
        short, long = sum_by({x: 1, y: 1, z: 1}, 0), sum_by({x: 1, y: 1, z: 1, alone: 1}, 0)
        nodes = {**leaves, 4: [other, short], 5: [long]}
        graph = EGraph(nodes, dict.fromkeys(nodes, (0, 99)), [4, 5])
        choice = {c: own[0] for c, own in nodes.items()}
        classes = PlainClasses(graph, choice | {4: short}, lambda: False)
        assert share_sums(classes, choice, programs_by(ProductPrices(Latency())))[5] == ("add", None, (4, alone))


def test_a_partial_sum_may_cancel_what_is_subtracted() -> None:
    # the last root is q*5 + 1 - q*5 + n*5 for the sum q, once i*4 + u is shared
    flat = "(i*4 + u)"
    digit = f"5*({flat}//3 % n)"
    result = optimize(
        [digit, f"1 + 5*{flat}", f"1 + 5*{flat} - (1 + 5*{flat})//5*5 + {digit}"], i=(0, 1), u=(0, 1), n=(1, 2)
    )
    assert (result.cost, result.check().equal) == (10, True)


def test_what_is_negated_is_subtracted() -> None:
    result = optimize("(-x//1 + 3)//3*3 - -x//1", x=(1 - 2**31, 2**31))
    assert (str(result.expr), result.check().equal) == ("3 - -x%3", True)


def test_long_literals_have_no_program() -> None:
    by = 3**300
    assert str(optimize(f"x*{by}", x=(0, 9)).expr) == f"x*{by}"
    assert str(optimize(f"x*{2**16 + 1}", x=(0, 9)).expr) == f"x*{2**16 + 1}"


def test_a_model_without_dear_products_has_none_of_it() -> None:
    assert str(optimize("x*9 + y*2", x=(0, 99), y=(0, 15), cost=OpCount()).expr) == "x*9 + y*2"


def test_programs_are_kept_for_models_that_do_not_change():
    shipped = COST_MODELS["latency"]
    assert programs_by(ProductPrices(shipped)) is programs_by(ProductPrices(shipped))
    own = OpCount(weights={"mul": 9})
    assert programs_by(ProductPrices(own)) is not programs_by(ProductPrices(own))


def test_a_class_that_is_another_condition_is_chosen_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = dict.fromkeys("xy", (0, 9))
    gated = optimize(["where(x<3 and y<3, x//3, y)", "x<5 or y<2"], gates=["x<4", "y<3"], theory=False, **ranges)
    monkeypatch.setattr(partial_sums._Pairing, "_is_late", lambda self, pairs: True)
    again = gated.extract("opcount", seconds=60.0)
    assert again.cost <= cost_of(gated.exprs, again.model)
    assert again.check().equal


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sum(X[x + r*1000 + 1], r, 0, 5)", "sum(X[r*1000 + (x + 1)], r, 0, 5)"),
        ("sum(X[x + r*1000 - y%6 + y], r, 0, 5)", "sum(X[r*1000 + (x + y//6*6)], r, 0, 5)"),
        ("sum(X[(r*500 + x*2 - y)*2], r, 0, 5)", "sum(X[r*1000 + (x*4 - y*2)], r, 0, 5)"),
        # of two loops that run as often, and of an inner one that runs less often
        ("sum(sum(X[r*8 + y + s*99 + x], r, 0, 8), s, 0, 8)", "sum(sum(X[r*8 + (s*99 + (x + y))], r, 0, 8), s, 0, 8)"),
        ("sum(sum(X[r*8 + y + s*99 + x], s, 0, 8), r, 0, 3)", "sum(sum(X[s*99 + (r*8 + (x + y))], s, 0, 8), r, 0, 3)"),
        # what several loads share in the loop is worth more than what is outside it
        ("sum(X[r*8 + 5] + X[r*8 + 6], r, 0, 8)", "sum(X[r*8 + 5] + X[r*8 + 6], r, 0, 8)"),
    ],
)
def test_what_no_index_changes_is_added_outside_the_loop(text: str, wanted: str) -> None:
    names = {"X": buffer("X", "int", (10**6,)), "x": var("x", 0, 99), "y": var("y", 0, 99)}
    result = optimize(parse(text, names))
    assert result.cost == cost_of([parse(wanted, names)], Latency())
    assert result.check().equal
    again = result.extract("latency")
    assert again.cost == result.cost


def test_no_term_is_hoisted_into_what_it_is_computed_from() -> None:
    # of n = p - x the sum n + x + r hoists n + x, which is p
    nodes: list[Node] = [
        ("var", "p", ()),
        ("var", "x", ()),
        ("sub", None, (0, 1)),
        ("var", "$1:0:7", ()),
        ("sum", (0, (1, 1, 1)), (1, 2, 3)),
        ("const", 0, ()),
        ("const", 8, ()),
        ("sum_over", None, (4, 3, 5, 6)),
    ]
    bounds = dict.fromkeys(range(8), (0, 99)) | {3: (0, 7), 5: (0, 0), 6: (8, 8)}
    graph = EGraph({c: [node] for c, node in enumerate(nodes)}, bounds, [7, 2], {3: 8, 4: 8})
    choice = tree(Priced.of(graph, Latency()))
    hoisted = hoisted_sums(PlainClasses(graph, choice, lambda: False), choice)
    assert reachable(hoisted or choice, graph.roots)


def test_long_junctions_share_members_within_the_time() -> None:
    shared = [var(f"v{place}", 0, 99) < 50 + place % 7 for place in range(400)]
    roots = [all_of([*shared, var(name, 0, 9) < 4]) for name in ("p", "q")]
    start = process_time()
    found = optimize(roots)
    assert process_time() - start < 15
    assert found.cost <= found.cost_before
