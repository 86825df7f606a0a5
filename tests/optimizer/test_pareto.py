"""Several answers: what size means, which answers are kept, and that all of them are right."""

import pytest

from eqsat.extract import LoopAware, OpCount
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.optimizer.pareto import SIZES, Answer, frontier, live_values, operations
from eqsat.prove.verify import check_equal

NAMES = {name: var(name, 0, 99) for name in "wxyz"}

LIVE = [
    (["x"], 0),
    (["5"], 0),
    (["x + 1"], 1),
    (["x + y"], 2),
    (["x + y + z"], 3),
    # both products are held, x and y no longer
    (["(x*3) + (y*5)"], 2),
    # the sum is held beside what it is multiplied by
    (["(x + y)*x"], 2),
    (["(x + y)*(x - y)"], 3),
    # a root is stored at once, unless another needs it
    (["x + y", "x - y"], 2),
    (["x + y", "(x + y)*z"], 3),
]


@pytest.mark.parametrize(("texts", "live"), LIVE)
def test_values_live_at_once(texts, live):
    assert live_values([parse(text, NAMES) for text in texts]) == live


FRONTIERS = [
    ([(1, 1)], [(1, 1)]),
    ([(1, 1), (1, 1)], [(1, 1)]),
    ([(1, 2), (2, 1)], [(1, 2), (2, 1)]),
    ([(2, 1), (1, 2), (2, 2), (3, 1), (3, 0)], [(1, 2), (2, 1), (3, 0)]),
]


@pytest.mark.parametrize(("figures", "kept"), FRONTIERS)
def test_only_answers_that_are_best_at_something_are_kept(figures, kept):
    assert [(a.cost, a.size) for a in frontier(Answer((), *pair) for pair in figures)] == kept


def test_the_flagship_pair_costs_more_in_fewer_operations():
    result = optimize(["x // n", "x % n"], pareto="operations", x=(0, 4095), n=(1, 64))
    assert [(answer.cost, answer.size) for answer in result.pareto] == [(28, 3), (44, 2)]
    assert result.pareto[0] == Answer(result.exprs, result.cost, operations(result.exprs))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", [OpCount(), LoopAware({"x": 100, "y": 100})], ids=lambda model: type(model).__name__)
def test_every_answer_is_right_and_says_what_it_costs(size, model):
    roots = [parse(text, NAMES) for text in ("(x*12 + y) // 7 * 3 + x*5", "(x*12 + y) % 7 + x*5 + z*35", "w*x + w*y")]
    result = optimize(roots, cost=model, pareto=size, extract="exact")
    assert result.bound is not None
    assert result.bound <= result.cost
    for answer in result.pareto:
        assert check_equal(roots, answer.exprs).equal
        assert (answer.cost, answer.size) == (cost_of(answer.exprs, model), SIZES[size](answer.exprs))


def test_what_cannot_be_asked_for():
    with pytest.raises(ValueError, match="pareto='beauty' is unknown: use one of operations, live"):
        optimize("x", pareto="beauty", x=(0, 1))
    with pytest.raises(ValueError, match="need the theory"):
        optimize("x", pareto="live", theory=False, x=(0, 1))
    assert optimize("x + 1", x=(0, 1)).pareto == ()
