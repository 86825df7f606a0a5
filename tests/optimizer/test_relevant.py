"""The rules that run modulo the theory are those that it does not decide."""

from dataclasses import replace

from decided import is_decided

from eqsat.egraph.rule import Rule
from eqsat.egraph.variants import by_representation
from eqsat.optimizer.relevant import relevant_rules
from eqsat.rules import DEFAULT

#: The theory does not decide them, but modulo the theory one would make larger and larger selections; the other says
#: more only of divisors below zero.
ALONE = {"where-add-where", "div-sum-div-symbolic"}
TAGGED = {rule.name for rule in DEFAULT if rule.modulo_theory}


def test_what_the_theory_does_not_decide_runs_modulo_it():
    tried = {rule.name for rule in DEFAULT if not by_representation(rule) and not is_decided(rule)}
    assert tried - TAGGED == ALONE


def test_rules_of_a_user_run_and_shipped_ones_under_other_names_do_not():
    mine = Rule("difference-of-squares", "x*x - y*y", "(x + y)*(x - y)")
    assert is_decided(mine)
    renamed = [replace(rule, name=f"my-{rule.name}", check=False) for rule in DEFAULT]
    turned = [replace(rule, left=rule.right, right=rule.left) for rule in renamed if rule.both_ways]
    names = {rule.name for rule in relevant_rules((mine, *renamed, *turned))}
    assert names == {mine.name, *[f"my-{name}" for name in TAGGED]}
