"""Operators of users' own: what is refused of them, and that all that is done with terms is done with theirs."""

import pickle
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import eqsat
from eqsat import Rule, operator, optimize, parse, var, where
from eqsat.codegen.expressions import to_c
from eqsat.codegen.runtime import compile_exprs
from eqsat.extract import OpCount
from eqsat.extract.cost import OPERATIONS, Calibrated
from eqsat.lang.costs import cost_of
from eqsat.prove.proof import check_rule, prove_rule
from eqsat.rules import DEFAULT

ROOT = Path(__file__).parent.parent.parent
SHIPPED = runpy.run_path(str(ROOT / "examples" / "operators.py"))
LAWS = SHIPPED["LAWS"]
POPCOUNT, CLZ, ADD_SAT, SWIZZLED = (SHIPPED[name] for name in ("popcount", "clz", "add_sat", "swizzled"))
X, Y = var("x", -40, 300), var("y", -300, 300)

#: Both sides of an addition modulo 8, in words of z3, too.
WRAPPED = operator(
    "wrapped", 2, lambda x, y: (x + y) % 8, bounds=lambda x, y: (0, 7), c="(x + y) & 7", z3=lambda x, y: (x + y) % 8
)
SQUARED = operator("squared", 1, lambda x: x * x, bounds=lambda x: (0, max(x[0] * x[0], x[1] * x[1])))
HIDDEN = operator("hidden", 1, lambda x: x ^ 5)


def value_of(name: str, *point: int) -> int:
    """What the shipped operators are, in plain Python."""
    x, y = point[0], point[-1]
    match name:
        case "popcount":
            return abs(x).bit_count()
        case "clz":
            return 0 if x < 0 or x >= 1 << 31 else 32 - x.bit_length()
        case "add_sat":
            return min(255, min(255, max(0, x)) + min(255, max(0, y)))
    return x * 8 + ((x ^ y) & 7)


@pytest.mark.parametrize("op", [POPCOUNT, CLZ, ADD_SAT, SWIZZLED], ids=lambda op: op.name)
def test_values_bounds_and_c_of_the_shipped_operators(op):
    operands = [X, Y][: 1 if op in (POPCOUNT, CLZ) else 2]
    term = op(*operands)
    axes = [np.arange(v.vmin, v.vmax + 1) for v in operands]
    points = {v.value: axis.ravel() for v, axis in zip(operands, np.meshgrid(*axes), strict=True)}
    found = term.evaluate(points)
    assert found.tolist() == [value_of(op.name, *map(int, point)) for point in zip(*points.values(), strict=True)]
    assert term.vmin <= found.min() <= found.max() <= term.vmax
    (in_c,) = compile_exprs([term], operands)(points)
    assert np.array_equal(in_c, found)
    wide = op(*[v * 2**40 for v in operands])
    (in_c,) = compile_exprs([wide], operands)(points)
    assert np.array_equal(in_c, wide.evaluate(points))


def test_terms_are_parsed_printed_pickled_and_folded():
    term = parse("where(popcount(x) < 3, wrapped(x, y*2) + 1, clz(7))", {"x": X, "y": Y})
    assert parse(str(term), {"x": X, "y": Y}) is term
    assert pickle.loads(pickle.dumps(term)) is term
    assert optimize("wrapped(5, 7) + popcount(2**80 - 1)").expr is eqsat.const(84)
    with pytest.raises(ValueError, match="wrapped takes 2 arguments, not 1"):
        parse("wrapped(x)", {"x": X})
    with pytest.raises(TypeError, match="popcount needs an integer where 'x < 3' is a condition"):
        POPCOUNT(X < 3)


@pytest.mark.parametrize("rule", LAWS, ids=lambda rule: rule.name)
def test_the_shipped_laws_are_true(rule):
    assert prove_rule(rule).kinds


SHOWN = [
    # input, answer
    ("popcount(x*8) + popcount(x*2)", "popcount(x)*2"),
    ("popcount((x + 7)//8*16)", "popcount((x + 7)//8)"),
    ("add_sat(x, y) - add_sat(y, x)", "0"),
    ("swizzled(x, y)//8*3 + x", "x*4"),
    ("swizzled(x//4*4 + x%4, y + y - y) - swizzled(x, y)", "0"),
    ("min(popcount(x*4), popcount(x) + 1)", "popcount(x)"),
    ("where(popcount(x) < 70, x, y)", "x"),
]


@pytest.mark.parametrize(("text", "answer"), SHOWN)
def test_rules_use_them_beside_the_theory(text, answer):
    names = {"x": X, "y": Y}
    result = optimize(parse(text, names), rules=[*DEFAULT, *LAWS])
    assert result.expr is parse(answer, names)
    assert result.check().equal
    assert str(result.explain())
    greedy = optimize(parse(text, names), rules=[*DEFAULT, *LAWS], engine="greedy")
    assert greedy.check().equal


def test_proofs_take_a_meaning_or_any_function():
    rule = Rule("wrapped-twice", "wrapped(wrapped(x, y), z)", "wrapped(x, wrapped(y, z))")
    assert prove_rule(rule).kinds == ("symbolic",)
    assert prove_rule(Rule("hidden-same", "hidden(x + y - y)", "hidden(x)")).kinds == ("symbolic",)
    assert str(check_rule(Rule("wrapped-is-sum", "wrapped(x, y)", "x + y"))).startswith(
        "rule 'wrapped-is-sum' is false"
    )
    with pytest.raises(ValueError, match="rule 'hidden-is-even' is false"):
        optimize("hidden(x)", x=(0, 9), rules=[Rule("hidden-is-even", "hidden(x) % 2", "0")])
    wide = var("w", 0, 2**40)
    assert optimize(WRAPPED(wide + 8, wide), rules=[Rule("period", "wrapped(x + 8, y)", "wrapped(x, y)")]).prove().equal
    other = operator("other", 1, lambda x: x & 1, bounds=lambda x: (0, 1), z3=lambda x: x % 3)
    with pytest.raises(ValueError, match=r"operator 'other' is 1 at \(-3,\), and 0 to z3: mend one of them"):
        prove_rule(Rule("other-twice", "other(other(x))", "other(x)"))
    assert other.name == "other"


@pytest.mark.parametrize(
    ("name", "meaning", "why"),
    [
        ("failing", lambda x: x[0], r"fails \(\w+: "),
        ("without", lambda x: None, "gives None: give one of z3's integers"),
        ("positive", lambda x: x > 0, "gives .* > 0: give one of z3's integers"),
        ("real", lambda x: x + 0.5, "gives ToReal.*: give one of z3's integers"),
    ],
)
def test_a_meaning_that_is_no_integer_of_z3_is_refused(name, meaning, why):
    pytest.importorskip("z3")
    operator(name, 1, lambda x: x | 1, z3=meaning)
    with pytest.raises(TypeError, match=f"the z3 of operator '{name}' {why}"):
        prove_rule(Rule("none", f"{name}(x) - {name}(x)", "0"))


@pytest.mark.parametrize(
    "name", ["max3", "normal2", "known", "atom", "number", "condition", "holds", "fails", "aligned"]
)
def test_an_operator_may_have_the_name_of_what_egglog_is_told(name):
    own = operator(name, 3, lambda x, y, z: x * 3 + y * 2 + z)
    law = Rule(f"{name}-swapped", f"{name}(y, x, z)", f"{name}(x, y, z) + y - x", why="3 - 2 is 1")
    x, y = var("x", 0, 4), var("y", 0, 4)
    result = optimize(own(x, y, 1) + own(y, x, 1) + y // 2 * where(x < y, x, 3), rules=[*DEFAULT, law])
    assert result.rules[law.name]
    assert result.check().kind == "exhaustive"
    assert result.check().equal


def test_an_operator_may_be_made_after_egglog_was_entered():
    x, y = var("x", 0, 39), var("y", 0, 19)
    assert optimize(where(x < 5, where(y < 3, x, 2), 2) // 4).trace.rounds
    late = operator("late", 1, lambda x: x & 7, bounds=lambda x: (0, 7))
    result = optimize(where(late(x) < 5, where(late(y) < 3, late(x), 2), 2) // 4)
    assert result.trace.rounds
    assert result.cost < result.cost_before
    assert result.check().equal


def test_a_meaning_may_be_a_literal():
    pytest.importorskip("z3")
    operator("always", 1, lambda x: x * 0 + 3, bounds=lambda x: (3, 3), z3=lambda x: 3)
    assert prove_rule(Rule("three", "always(x) + x", "x + 3")).kinds == ("symbolic",)


@pytest.mark.parametrize("cost", ["latency", "throughput", "codesize", "gpu"])
@pytest.mark.parametrize(
    ("name", "price", "why"),
    [
        ("unpriced", lambda operands, result: operands[7], "fails to price 'unpriced': IndexError"),
        ("halved", lambda operands, result: 0.5, "prices 'halved' at 0.5: a price must be an integer"),
        ("gained", lambda operands, result: -3, "prices 'gained' at -3: a price must be 0 or more"),
    ],
)
def test_what_an_operator_prices_wrongly_is_said(name, price, why, cost):
    own = operator(name, 1, lambda x: x, price=price)
    with pytest.raises(ValueError, match=f"^its price function {why}"):
        optimize(own(X) + 1, cost=cost)


def test_prices():
    price = operator("priced", 1, lambda x: x & 3, bounds=lambda x: (0, 3), price=lambda operands, result: 7)
    term = [price(X)]
    assert cost_of(term, eqsat.extract.Latency()) == cost_of(term, eqsat.extract.Throughput()) == 7
    assert cost_of(term, OpCount()) == 1
    assert cost_of(term, Calibrated(dict.fromkeys(OPERATIONS, 250))) == 1750


def test_an_operator_in_a_kernel():
    array, out, i = eqsat.buffer("A", "i32", (64,)), eqsat.buffer("B", "i32", (64,)), var("i", 0, 63)
    kernel = eqsat.Kernel("ones", [eqsat.Store(out[i], POPCOUNT(array[SWIZZLED(i // 8, i % 8)]), [i])])
    data = np.arange(64, dtype=np.int32) * 3
    for lanes in (1, 4):
        found = eqsat.compile(kernel, lanes=lanes)(A=data)["B"]
        place = (np.arange(64) // 8) * 8 + ((np.arange(64) // 8 ^ np.arange(64) % 8) & 7)
        assert np.array_equal(found, np.bitwise_count(data[place]))


def count(x: np.ndarray) -> np.ndarray:
    return x & 1


WRONG = [
    (("wrapped", 2, count), ValueError, "there is an operator 'wrapped' already: give another name"),
    (("min", 2, count), ValueError, "'min' cannot name an operator"),
    (("vmin", 1, count), ValueError, "'vmin' cannot name an operator"),
    (("größe", 1, count), ValueError, "'größe' cannot name an operator"),
    (("one", 5, count), ValueError, "operator 'one' takes 5 operands: give 1 to 4"),
    (("one", 1, 3), TypeError, "evaluate of operator 'one' is 3: give a function"),
    (("one", 1, lambda x: x / 2), TypeError, "operator 'one' evaluates to an array of float64 and shape"),
    (("one", 1, lambda x: x.max()), TypeError, r"operator 'one' evaluates to an array of int64 and shape \(\)"),
    (("one", 1, count, lambda x: (0, 0)), ValueError, r"operator 'one' is 1 at \(-999\), beyond its bounds \[0, 0\]"),
    (("one", 1, count, lambda x: (1, 0)), ValueError, r"the bounds of operator 'one' are \[1, 0\] for"),
    (("one", 1, lambda x: x.foo(), None), TypeError, r"operator 'one' fails for arrays of .* \(AttributeError: .*foo"),
    (("one", 1, count, lambda x: x[2]), TypeError, "the bounds of operator 'one' fail for"),
    (("one", 1, count, None, -1), TypeError, "the price of operator 'one' is -1"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_no_operator_is_one_line(given, error, message):
    name, arity, evaluate, *rest = given
    options = dict(zip(("bounds", "price"), rest, strict=False))
    with pytest.raises(error, match=message) as caught:
        operator(name, arity, evaluate, **options)
    assert "\n" not in str(caught.value)


def test_rules_alone_have_operators_too():
    result = optimize(HIDDEN(X % 8 + X // 8 * 8) - HIDDEN(X), theory=False)
    assert str(result.expr) == "0"


def test_what_an_operator_lacks_is_one_line():
    with pytest.raises(ValueError, match="operator 'no_c' has no C: define it with c=, its value in C"):
        to_c([operator("no_c", 1, lambda x: x & 1, bounds=lambda x: (0, 1))(X)])
    with pytest.raises(ValueError, match="no 64-bit integer holds: give the operator 'hidden' bounds"):
        to_c([HIDDEN(X)])


def test_a_cell_that_defines_one_may_run_again():
    def cell() -> eqsat.Operator:
        return operator("again", 1, lambda x: x & 1, bounds=lambda x: (0, 1))

    assert cell() == cell()


@pytest.mark.parametrize("kind", ["keyword", "default", "array"])
def test_another_function_of_the_same_code_is_another_operator(kind):
    def cell(number: int) -> eqsat.Operator:
        table = np.array([number] * 4) if kind == "array" else None

        def by_keyword(x, *, added=number):
            return x + added

        def by_default(x, added=number):
            return x + added

        def by_array(x):
            return table[x % 4]

        meaning = {"keyword": by_keyword, "default": by_default, "array": by_array}[kind]
        return operator(f"of_{kind}", 1, meaning)

    assert cell(3) == cell(3)
    with pytest.raises(ValueError, match=f"there is an operator 'of_{kind}' already: give another name"):
        cell(5)


def test_values_do_not_wrap_around_on_the_way():
    for most in (2**31 - 1, 2**62, 2**63 - 1, 2**70):
        wide = var("w", -most - 1, most)
        points = [-most - 1, -1, 0, 5, most]
        found = WRAPPED(wide, wide + 0).evaluate({"w": np.array(points, dtype=object)})
        assert found.tolist() == [2 * point % 8 for point in points]


def test_values_are_as_large_as_their_bounds_say():
    assert SQUARED(var("w", 0, 2**40)).evaluate({"w": [3, 2**40]}).tolist() == [9, 2**80]
    # it was refuted by values that had wrapped around
    assert check_rule(Rule("of-product", "prod(squared(x), i, u, v)", "squared(prod(x, i, u, v))")) is None


def test_unbounded_operands():
    n = var("n", None, None)
    assert (POPCOUNT(n).vmin, ADD_SAT(n, n).vmax) == (0, 255)
    result = optimize(ADD_SAT(n + 0, 3) - ADD_SAT(3, n), rules=[*DEFAULT, *LAWS])
    assert result.expr is eqsat.const(0)


def test_the_script_of_the_docs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    script = ROOT / "examples" / "own_operator.py"
    assert len(script.read_text().splitlines()) <= 45
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    matches = "{'parity-of-gray': 2, 'half-of-gray': 5}"
    assert capsys.readouterr().out == f"20 expressions, cost 240 -> 155, matches {matches}\n"
    assert (tmp_path / "own_operator.png").stat().st_size > 1000
