"""The answer to every case of the bundled corpora: right, not forbidden, and as cheap as is known to be possible."""

from __future__ import annotations

import pytest
from corpora import BITS, GATES, HAND, LAYOUTS, REDUCTIONS, SAMPLE, SEEDS, cases

from eqsat.cli.cases import Case
from eqsat.egraph.budget import Budget
from eqsat.extract.cost import Latency
from eqsat.lang.costs import cost_of
from eqsat.lang.traversal import term_count
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result
from eqsat.prove.verify import check_equal

#: Enough for every case that saturates, on a busy machine.
PATIENT = Budget(seconds=60.0)
#: Corpora, the kind of the cases that are taken, and what is said of the answer to each of these.
CORPORA = [
    (HAND, "plain", set()),
    (SEEDS, "plain", set()),
    (SEEDS, "reduce", set()),
    (BITS, "plain", {"saturated", "exhaustive"}),
    (LAYOUTS, "plain", {"saturated"}),
    (GATES, "plain", {"saturated"}),
]
CASES = [(case, said) for path, kind, said in CORPORA for case in cases(path, kind)]
CASES += [(case, {"saturated"}) for case in cases(REDUCTIONS) if case.expected]


def answered(case: Case, **options) -> Result:
    result = optimize(case.exprs, constraints=case.constraints, gates=case.gates, budget=PATIENT, **options)
    assert result.check().equal
    return result


def is_as_cheap_as_expected(case: Case, result: Result) -> bool:
    if not case.expected or None in case.expected:
        return result.cost <= result.cost_before
    return result.cost <= cost_of([case.parse(text) for text in case.expected], Latency())


@pytest.mark.parametrize(("case", "said"), CASES, ids=[str(case.id) for case, _ in CASES])
def test_costs_no_more_than_expected_and_is_never_forbidden(case: Case, said: set[str]):
    result = answered(case)
    assert is_as_cheap_as_expected(case, result)
    assert said <= {result.stop, result.check().kind}
    for index, text in enumerate(case.forbidden):
        assert text is None or result.exprs[index] is not case.parse(text)


@pytest.mark.parametrize("case", [case for case in cases(SEEDS, "reduce") if case.forbidden], ids=lambda case: case.id)
def test_a_forbidden_reduction_is_another_value(case: Case):
    forbidden = [case.parse(text) for text in case.forbidden if text is not None]
    assert forbidden
    assert all(not check_equal(case.exprs, [wrong], constraints=case.constraints).equal for wrong in forbidden)


@pytest.mark.parametrize("case", cases(HAND), ids=lambda case: case.id)
def test_each_hand_case_by_rules_alone_and_without_rules(case: Case):
    assert is_as_cheap_as_expected(case, answered(case, theory=False))
    # what rules add does not keep extraction from what is there without them
    assert answered(case).cost <= answered(case, engine="theory").cost


def test_rules_make_kernels_cheaper():
    small = [case for case in cases(SAMPLE) if term_count(case.exprs) < 400]
    # which sums share what is found greedily: one kernel alone may cost more
    assert sum(answered(c).cost for c in small) < 0.98 * sum(answered(c, engine="theory").cost for c in small)


def test_the_sample_has_many_kernels_and_gates():
    found = cases(SAMPLE)
    assert len(found) >= 40
    assert sum(bool(case.gates) for case in found) >= 10
