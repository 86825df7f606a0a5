"""The rules that run beside the theory are those that it does not decide."""

from dataclasses import replace

from eqsat.beside import SPELLED, UNDECIDED, beside_theory, is_decided
from eqsat.rule import Rule, is_commutativity
from eqsat.rules import DEFAULT


def test_what_is_written_down_is_what_trying_finds():
    tried = {rule.name for rule in DEFAULT if not is_commutativity(rule) and not is_decided(rule)}
    assert tried == UNDECIDED | SPELLED


def test_rules_of_a_user_are_tried():
    decided = Rule("my-difference", "x + y - y", "x")
    not_decided = replace(next(rule for rule in DEFAULT if rule.name in UNDECIDED), name="mine")
    assert beside_theory((decided, not_decided)) == (not_decided,)
