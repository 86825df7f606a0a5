"""Index arithmetic of layouts, pipelines and distributions, in the form that libraries write it."""

from __future__ import annotations

import pytest
from corpora import LAYOUTS

from eqsat.cli.cases import Case, read_corpus
from eqsat.egraph.budget import Budget
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.optimizer.front import optimize

CASES = read_corpus(LAYOUTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_answers_are_right_and_cost_no_more_than_the_best_known(case: Case):
    found = optimize(case.exprs, constraints=case.constraints, budget=Budget(seconds=60))
    assert found.check().counterexample is None
    assert found.stop == "saturated"
    assert found.cost <= cost_of([case.parse(text) for text in case.expected if text is not None], LATENCY)
