"""The list of providers: each has a function that it marks, can be left out, and is read by the ablation."""

import ast
from pathlib import Path

import ablation
import pytest

import eqsat
from eqsat import optimize
from eqsat.alternatives.providers import PROVIDERS, Proof, provides, without

NAMES = [provider.name for provider in PROVIDERS]
RANGES = {"x": (0, 99), "y": (0, 99), "z": (0, 99)}


def marked() -> set[str]:
    """The names that functions of eqsat are marked with."""
    trees = [ast.parse(path.read_text()) for path in Path(eqsat.__file__).parent.rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {call.args[0].value for call in calls if isinstance(call.func, ast.Name) and call.func.id == "provides"}


def test_every_provider_does_something_and_what_proposes_is_listed():
    assert marked() == set(NAMES)
    assert len(NAMES) == len(set(NAMES))


def test_each_kind_of_proof_is_that_of_some_provider():
    assert {provider.proof for provider in PROVIDERS} == set(Proof)


def test_the_ablation_leaves_out_each():
    assert set(NAMES) <= set(ablation.TABLES["default"])


def test_a_provider_is_left_out_inside_the_block_alone():
    costs = [optimize("x*z + y*z", **RANGES).cost]
    with without("factored products"):
        costs.append(optimize("x*z + y*z", **RANGES).cost)
        with without("partial sums"):
            costs.append(optimize("x*z + y*z", **RANGES).cost)
    costs.append(optimize("x*z + y*z", **RANGES).cost)
    assert costs[0] < costs[1] <= costs[2]
    assert costs[3] == costs[0]


def test_all_can_be_left_out_together():
    with without(*NAMES):
        result = optimize(["x*z + y*z", "x//3*3 + x%3", "where(x < 3 and y < 4, x, z)"], **RANGES)
    assert result.check().equal
    assert not set(result.trace.alternatives) & set(NAMES)


def test_what_is_no_provider_is_refused():
    message = "no provider is called 'rewording': there are answer read again, "
    with pytest.raises(ValueError, match=message), without("rewording"):
        pass
    with pytest.raises(ValueError, match="did you mean 'partial sums'"), without("partial_sums"):
        pass
    with pytest.raises(AssertionError):
        provides("rewording")
