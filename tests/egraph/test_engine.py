"""The engine: insertion, facts, budgets, tripwires."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy
from strategies import bool_expressions, expressions, grid

from eqsat.egraph.engine import Budget, Saturation, Session
from eqsat.egraph.rule import Rule
from eqsat.extract.graph import EGraph, Node
from eqsat.lang.errors import UnsoundUnionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import Expr, const, maximum, minimum, var, where
from eqsat.lang.ops import DIVISIONS, OPS
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.rules import ARITHMETIC, DEFAULT, DIVMOD


@cache
def session() -> Session:
    return Session(DEFAULT)


def saturated(*roots: Expr, facts: tuple[Expr, ...] = ()) -> Saturation:
    found = session().saturate(roots, facts)
    assert found.stop == "saturated"
    return found


def nodes_of(found: Saturation, root: int = 0) -> list[tuple[object, ...]]:
    return [node[:2] for node in found.graph.classes[found.graph.roots[root]]]


X, Y, N = var("x", 0, 100), var("y", -5, 20), var("n", 1, 64)

#: left, right: one class.
EQUAL = [
    ("x//8*8 + x%8", "x"),
    ("x - x//12*12", "x%12"),
    ("(x*64 + y)//64", "x + y//64"),
    ("(6*x + 4*y)//8", "(3*x + 2*y)//4"),
    ("(x + 70)//8", "(x + 6)//8 + 8"),
    ("x//(-8)", "(-x)//8"),
    ("tdiv(x*8, 8)", "x"),
    ("x*4 + y%4 < 64", "x < 16"),
    ("min(x + y, n + y) - y", "min(x, n)"),
    ("(x*n)//n", "x"),
    ("x*2 == 5", "False"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_both_terms_are_one_class(left: str, right: str) -> None:
    names = {"x": X, "y": Y, "n": N}
    found = saturated(parse(left, names), parse(right, names))
    assert found.graph.roots[0] == found.graph.roots[1]


#: root, facts, what the root's class must hold.
KNOWN = [
    ("x//100", ["x < 100"], ("const", 0)),
    ("x", ["x >= 1 and x < 2"], ("const", 1)),
    ("n%8", ["n%8 == 0"], ("const", 0)),
    ("x", ["not x > 0"], ("const", 0)),
    ("x", ["x*4 + n < 5"], ("const", 0)),
    ("x < y", ["x < y"], ("bool", True)),
    ("y//n", ["y < n", "y >= 0"], ("const", 0)),
    ("x == 3", ["x != 3"], ("bool", False)),
]


@pytest.mark.parametrize(("root", "facts", "node"), KNOWN)
def test_facts_are_used(root: str, facts: list[str], node: tuple[str, int]) -> None:
    names = {"x": X, "y": Y, "n": N}
    found = saturated(parse(root, names), facts=tuple(parse(fact, names) for fact in facts))
    assert node in nodes_of(found)


@cache
def aligned() -> Session:
    """Knows of alignment what the analysis says; no other rule helps."""
    return Session([rule for rule in DEFAULT if rule.name in ("mod-congruent", "shl-is-mul")])


def decided(terms: Sequence[Expr], facts: Sequence[Expr] = ()) -> list[int | None]:
    """The only value that the analysis leaves for each term, if it is one."""
    graph = aligned().saturate(terms, facts).graph
    literals = [[node[1] for node in graph.classes[root] if node[0] == "const"] for root in graph.roots]
    return [int(values[0]) if values else None for values in literals]  # type: ignore[arg-type]


#: term, facts, modulus, remainder: all that is known.
ALIGNED = [
    ("x*4 + 1", [], 4, 1),
    ("x*(-6) - 1", [], 6, 5),
    ("x*4 + y*6 + 5", [], 2, 1),
    ("(x*4 + 1)*(y*4 + 3)", [], 4, 3),
    ("(x*4 + 2)*y", [], 2, 0),
    ("(x*4 + 2)*(y*6)", [], 12, 0),
    ("(x*12 + 7)//4", [], 3, 1),
    ("(x*12 - 5)%8", [], 4, 3),
    ("(x*12 - 5)%(-8)", [], 4, 3),
    ("where(x < y, x*4 + 1, y*8 + 5)", [], 4, 1),
    ("where(x < y, 3, x*4 - 9)", [], 4, 3),
    ("where(x < y, 3, -4)", [], 7, 3),
    ("where(x < y, x*4 - 9, 3)", [], 4, 3),
    ("max(x*6 + 1, y*9 + 7)", [], 3, 1),
    ("min(0, x*6)", [], 6, 0),
    ("shl(x, 3) + 1", [], 8, 1),
    ("n", ["n%8 == 3"], 8, 3),
    ("n", ["(n + 3)%8 == 0"], 8, 5),
    ("n + y*4", ["n%8 == 3"], 4, 3),
    # twice 2**62 is no machine integer: nothing is known of the product but the last factor
    (f"x*{2**62}*2 + 1", [], 2, 1),
]


@pytest.mark.parametrize(("text", "facts", "modulus", "remainder"), ALIGNED)
def test_alignment(text: str, facts: list[str], modulus: int, remainder: int) -> None:
    names = {"x": X, "y": Y, "n": N}
    term, known = parse(text, names), [parse(fact, names) for fact in facts]
    assert decided([term % modulus, term % (modulus * 2), term % (modulus * 3)], known) == [remainder, None, None]


def test_alignment_is_true_of_random_terms() -> None:
    source = random.Random(5)
    domain = [var("x", -7, 8), var("y", -3, 3)]
    points = grid(domain)
    terms: list[Expr] = list(domain)
    for _ in range(200):
        x, y, z = source.choice(terms[:2]), *source.choices(terms[-12:], k=2)
        c, k = source.randint(-9, 9), source.choice((-8, -6, -4, -3, -2, 2, 3, 4, 6, 8, 12))
        made = [z * k, z * k + c, y + z, y * z, z // k, z % k, minimum(y, z), maximum(z, c), where(x < y, z, y), z + c]
        term = source.choice(made)
        terms.append(term if term.vmin > -(10**6) and term.vmax < 10**6 else x * k + c)
    moduli = (2, 3, 4, 8, 9)
    found = 0
    for start in range(0, len(terms), 40):
        some = [term % modulus for term in terms[start : start + 40] for modulus in moduli if term.vmin < term.vmax]
        for term, value, values in zip(some, decided(some), evaluate(some, points), strict=True):
            found += value is not None
            assert value is None or (values == value).all(), term
    assert found > 100


def test_facts_of_one_run_do_not_reach_the_next() -> None:
    saturated(X // 100, facts=(X < 100,))
    assert ("const", 0) not in nodes_of(saturated(X // 100))


def test_spellings_are_offered() -> None:
    assert ("sub", None) in nodes_of(saturated(X + Y * -1))
    assert ("neg", None) in nodes_of(saturated(const(-3) * X))
    assert ("le", None) in nodes_of(saturated(X < Y + 1))
    assert ("ne", None) in nodes_of(saturated(~X.eq(Y)))


def test_every_class_has_a_term_and_bounds() -> None:
    graph = saturated(where(X < Y, X // N, X % N), (X * 8 + Y) % 12 // 4).graph
    assert set(graph.classes) == set(graph.bounds)
    assert all(o in graph.classes for nodes in graph.classes.values() for node in nodes for o in node[2])


def test_literals_beyond_machine_integers_are_opaque() -> None:
    found = saturated(const(2**70) + X)
    assert found.graph.bounds[found.graph.roots[0]] == (2**70, 2**70 + 100)


def test_distribution_over_a_hidden_zero_ends() -> None:
    found = saturated((X + (const(3) - 3)) * 32)
    assert len(found.graph) < 30


def test_long_sums_end_within_the_budget() -> None:
    total = var("i0", 0, 50)
    for index in range(1, 12):
        total = total + var(f"i{index}", 0, 50) * (index + 1)
    found = session().saturate([total], budget=Budget(nodes=3000, seconds=5))
    assert found.stop == "nodes"
    assert len(found.graph) < 20_000


def test_deep_terms_are_inserted() -> None:
    term = X
    for _ in range(3000):
        term = (term * 3 + 1) % 7
    assert session().saturate([term], budget=Budget(nodes=1)).stop == "nodes"


def test_rounds_and_seconds_are_budgets() -> None:
    term = (X * 6 + Y * 4 + N) // 24
    assert session().saturate([term], budget=Budget(rounds=1)).stop == "iterations"
    assert session().saturate([term], budget=Budget(seconds=0)).stop == "time"


def test_a_session_is_worn_out_by_what_egglog_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.egraph.engine.MOST_SCRIPTS", 300)
    session = Session(ARITHMETIC[:5])
    worn = []
    for _ in range(5):
        worn.append(session.is_worn)
        session.saturate([X % 8 + Y])
    assert worn[0] is False
    assert worn[-1] is True


def test_an_interrupted_session_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def interrupted(session: Session, *args: object, **options: object) -> None:
        used.append(session)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "saturate", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            optimize(X % 8 + X // 8 * 8, rules=ARITHMETIC[:5], theory=False)
    assert used[0] is not used[1]


def test_contradicting_constraints_are_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="the constraints contradict each other: x < 3, 5 < x"):
        session().saturate([X], [X < 3, X > 5])
    assert ("const", 3) not in nodes_of(saturated(X))


def test_a_false_rule_is_named() -> None:
    with pytest.raises(UnsoundUnionError, match="forgets-offset"):
        Session([Rule("forgets-offset", "x + c", "x")]).saturate([const(3) + 4])


def test_matches_are_counted_by_rule() -> None:
    found = saturated(X // 8 * 8 + X % 8)
    assert found.matches["mod-core"] >= 1
    assert set(found.matches) <= {rule.name for rule in DEFAULT}


def test_rules_can_be_left_out() -> None:
    found = session().saturate([X % 1000], without=["mod-in-range", "mod-of-mod"])
    assert ("var", "x") not in nodes_of(found)


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two rules are named 'a'"):
        Session([Rule("a", "x + 0", "x"), Rule("a", "x * 1", "x")])


def test_what_earlier_runs_had_nodes_of_costs_later_ones_nothing() -> None:
    session().saturate([((X < Y) & (X // N).eq(Y)) | (X % N < 3)])
    searched = set(saturated(X % 8 + 3).seconds)
    assert "mod-offset" in searched | set(saturated((X + 9) % 8).seconds)
    assert searched.isdisjoint({"lt-self", "and-commutes", "or-same", "not-not", "symbolic-self-div", "add-commutes"})


def test_raw_egglog_is_added_and_refused() -> None:
    extra = "(rule ((= e (AddK x 41))) ((union e (Num 42))) :ruleset bounds)"
    assert ("const", 42) in nodes_of(Session([], extra).saturate([X + 41]))
    with pytest.raises(ValueError, match="egglog refuses"):
        Session([], "(rule")


@pytest.mark.parametrize("rules", [DEFAULT, (*ARITHMETIC, *DIVMOD)], ids=["all", "two families"])
def test_the_order_of_rules_does_not_matter(rules: tuple[Rule, ...]) -> None:
    term = (X * 12 + Y) // 4 * 4 + (X * 12 + Y) % 4
    sizes = {len(Session(order).saturate([term]).graph) for order in (rules, rules[::-1])}
    assert len(sizes) == 1


def value_of(node: Node, values: dict[int, int], point: dict[str, int]) -> int | None:
    """The value of one node, or ``None`` where an operand has none or a divisor is zero."""
    op, value, operands = node
    if op == "var":
        return point[str(value)]
    if op in ("const", "bool"):
        return int(value)  # type: ignore[arg-type]
    known = [values.get(operand) for operand in operands]
    if None in known or (op in DIVISIONS and known[1] == 0):
        return None
    # bounds over single values are the value, exact at any size
    return OPS[op].bounds(*[(v, v) for v in known])[0]


def check_values(graph: EGraph, point: dict[str, int]) -> None:
    """At ``point``, all nodes of a class have one value, within its bounds."""
    values: dict[int, int] = {}
    size = -1
    while size != len(values):
        size = len(values)
        for number, nodes in graph.classes.items():
            found = {value for node in nodes if (value := value_of(node, values, point)) is not None}
            assert len(found) <= 1, f"{nodes} at {point}"
            for value in found:
                values[number] = value
                assert graph.bounds[number][0] <= value <= graph.bounds[number][1]


@pytest.mark.parametrize("strategy", [expressions, bool_expressions], ids=["numbers", "conditions"])
def test_all_terms_of_a_class_have_one_value(strategy: Callable[..., SearchStrategy[tuple[Expr, list[Expr]]]]) -> None:
    @settings(max_examples=40)
    @given(strategy(max_leaves=7))
    def check(drawn: tuple[Expr, list[Expr]]) -> None:
        term, domain = drawn
        graph = session().saturate([term], budget=Budget(nodes=1500, seconds=0.5)).graph
        for corner in ("vmin", "vmax"):
            check_values(graph, {str(v.value): getattr(v, corner) for v in domain})

    check()


def test_variables_may_be_named_like_local_names_of_the_script() -> None:
    names = {f"v{i}": var(f"v{i}", 0, 99) for i in range(39)}
    total = parse(" + ".join(f"v{i}//3" for i in reversed(range(39))), names)
    found = session().saturate([total], (), Budget(rounds=1))
    leaves = {node[1] for nodes in found.graph.classes.values() for node in nodes if node[0] == "var"}
    assert leaves == set(names)
