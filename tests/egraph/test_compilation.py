"""Rules match modulo associativity and commutativity, in part of longer sums, products, minima and junctions."""

import re
import subprocess
import sys

import numpy as np
import pytest

from eqsat import Budget, Rule, optimize
from eqsat.egraph.compilation import MOST_WAYS, compiled
from eqsat.egraph.joins import Joins
from eqsat.egraph.variants import by_representation, matched_patterns
from eqsat.lang.errors import UnsoundUnionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import buffer, var
from eqsat.lang.text import parse, to_text
from eqsat.rules import DEFAULT, REDUCE

RANGES = dict.fromkeys("ijkl", (-3, 9))

SQUARES = Rule("squares", "x*x - y*y", "(x + y)*(x - y)")
TRIPLE = Rule("triple", "x*x*2 + y*y*3", "y*y*3 + 2*x*x + 0*(x//7)", check=False)
PRODUCT = Rule("product", "min(x, y)*max(x, y)", "x*y")
PARITY = Rule("parity", "(x*x + x*3) % 4", "x//2 % 2 * 2")
REST = Rule("rest", "(x*x + y) % 2", "(x + y) % 2")
ABOVE = Rule("above", "x*x + c", "x*x + c + 0*(x//7)", "c > 5", check=False)
MULTIPLE = Rule("multiple", "(x*n + y) % n", "y % n")
MINIMUM = Rule("minimum", "min(x*x, x)", "min(x, x*x) + 0*(x//7)", check=False)
REMAINDER = Rule("remainder", "x - (x // n)*n", "x % n")
BOTH = Rule("both", "x*x < y and y < z", "x*x < y and y < z and x*x < z")

ROUND_UP = Rule("round-up", "(x + d - 1)//d", "-((-x)//d)", "d > 0")
WHOLE = Rule("whole", "(x + c*d)//d", "x//d + c", "d > 0")
NEXT = Rule("next", "x*y*(c + 1) + z*w*c", "x*y + (x*y + z*w)*c")
BEFORE = Rule("before", "min(x*x + c - 1, c)", "min(x*x - 1, 0) + c")
LESS = Rule("less", "(x*x - (c*2 - 1)) & c", "(x*x + 1 - c*2) & c")

SCALED = Rule("scaled", "(x*min(y, z) + w) % 5", "(x*min(y, z) + w + 0*(x//7)) % 5", check=False)

ALIKE = Rule("alike", "x*c + x*d", "x*(c + d) + 0*(x//7)", "c == 3 and d == 5", check=False)
LIKE = Rule("like", "(x*c + x*y) % 7", "(x*(c + y)) % 7", "c > 1")
#: A rule, and what it matches.
MATCHED = [
    # part of a sum, the others kept
    (SQUARES, "i*i - j*j"),
    (SQUARES, "l + i*i + k - j*j + 4"),
    # a literal factor of the whole, also a negative one
    (SQUARES, "i*i*3 - j*j*3 + k"),
    (SQUARES, "k*k*l - i*i*2 + j*j*2"),
    (TRIPLE, "i*i*4 + j*j*6"),
    # letters for products
    (SQUARES, "i*i*j*j - k*k"),
    # the same letter twice, in a product of two members and of more
    (PARITY, "(i*i + i*3) % 4"),
    (PARITY, "(j*3 + j*j) % 4 + k"),
    # below the top a letter takes all that is left
    (REST, "(i*i + j + k*l + 3) % 2"),
    (MULTIPLE, "(i//5*7 + j + k//3) % 7"),
    # part of a product
    (PRODUCT, "k*min(i, j)*l*max(j, i)"),
    # a literal is the constant of the sum
    (ABOVE, "i*i + 6"),
    # part of a minimum, of a junction
    (MINIMUM, "min(k, min(i, min(l, i*i)))"),
    (BOTH, "k < 2 and i*i < j and j < l"),
    # a letter that is bound to a sum matches its terms
    (LIKE, "(i*3 + i*j) % 7"),
    (REMAINDER, "i*3 + j - (i*3 + j)//8*8 + k"),
    (REMAINDER, "i*6 + j*2 - (i*3 + j)//8*16 + k"),
    (REMAINDER, "i*5 + j - (i*3 + j)//8*8 + k"),
    # numbers that are computed from letters which stand elsewhere, or are found from what they are
    (ROUND_UP, "(i*j + 6)//7 + k"),
    (WHOLE, "(i*j + 21)//7"),
    (NEXT, "i*i*4 + j*k*3"),
    (NEXT, "l*l*5 - i*j - k*k*2"),
    (BEFORE, "min(i*i + 4, 5)"),
    (LESS, "(i*i - 9) & 5"),
    # a factor of a product takes the coefficient
    (SCALED, "(i*min(j, k)*3 + l) % 5"),
    (SCALED, "(i*j*min(j, k)*-2 + l*l + k) % 5"),
]
#: A rule, and what it does not match though nearly.
NOT_MATCHED = [
    (SQUARES, "i*i + j*j"),
    (SQUARES, "i*i*3 - j*j*2 + k"),
    (TRIPLE, "i*i*4 + j*j*7"),
    (LIKE, "(i*3 + k*j) % 7"),
    (ALIKE, "i*3 + j*5"),
    (PARITY, "(i*i + j*3) % 4"),
    (PARITY, "(i*i + i*3) % 5"),
    (PARITY, "(i*i + i*3 + j*k) % 4"),
    (PRODUCT, "k*min(i, j)*l*max(j, k)"),
    (ABOVE, "i*i + 5"),
    (ABOVE, "i*i + j*6"),
    (MINIMUM, "min(k, min(i, min(l, j*j)))"),
    (BOTH, "k < 2 and i*i < j and k < l"),
    (REMAINDER, "i*3 + j - (i*3 + j)//8*9 + k*k"),
    (ROUND_UP, "(i*j + 5)//7 + k"),
    (WHOLE, "(i*j + 20)//7"),
    (NEXT, "i*i*7 + j*k*5"),
    (BEFORE, "min(i*i + 5, 5)"),
    (LESS, "(i*i - 8) & 5"),
    (SCALED, "(i*min(j, k)*3 + l) % 7"),
]


def matches(rule, text):
    return optimize(text, rules=[rule], budget=Budget(seconds=60), **RANGES).rules.get(rule.name, 0)


@pytest.mark.parametrize(("rule", "text"), MATCHED, ids=lambda value: getattr(value, "name", value))
def test_matches(rule, text):
    assert matches(rule, text)


@pytest.mark.parametrize(("rule", "text"), NOT_MATCHED, ids=lambda value: getattr(value, "name", value))
def test_near_misses(rule, text):
    assert not matches(rule, text)


def test_a_rule_may_ask_for_a_term_beside_its_left_side():
    halved = Rule("halved", "x // c", "x // d // (c//d)", "0 < d and d < c and c % d == 0", beside="x // d")
    for texts, matches in (
        (["i//12", "i//3"], 1),
        (["i//12 + j", "(i//3)*7"], 1),
        # nothing is divided by a factor, or something else is
        (["i//12"], 0),
        (["i//12", "i//5"], 0),
        (["i//12", "j//3"], 0),
    ):
        result = optimize(texts, rules=[halved], theory=False, **dict.fromkeys("ij", (0, 999)))
        assert result.check().equal
        assert (result.rules.get("halved", 0) > 0) == matches, texts
    # terms rewritten one by one do not know what is beside them
    assert optimize(["i//12", "i//3"], rules=[halved], engine="greedy", i=(0, 99)).rules == {}


@pytest.mark.parametrize(
    ("left", "beside", "message"),
    [
        ("x // c", "y", "'y' stands beside every term: give it an operator"),
        ("x // c", "p", "'p' stands beside every term: give it an operator"),
        ("sum(x, i, u, v)", "x // d", "'x // d' beside a reduction cannot be matched"),
        ("x // c", "x // (", "an operand is missing"),
        ("x // c", "A[x]", "'A[x]' has an array"),
    ],
)
def test_what_cannot_stand_beside_a_left_side(left, beside, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Rule("mine", left, "0", beside=beside)


def test_a_guard_may_divide_before_a_sum_is_made():
    """A quotient of literals is computed first, and the rest of the sum is measured after it is made."""
    rule = Rule(
        "halved",
        "(x*c + y) // d",
        "(x + (x + y)//(c - 1)) // (d//(c - 1))",
        "0 < d and 2 < c and d % (c - 1) == 0 and factor(y) % (c - 1) == 0",
    )
    result = optimize("(i*3 + j*2 + k*4)//6", rules=[rule], **RANGES)
    assert result.check().equal
    assert result.rules["halved"]


def test_a_right_side_is_multiplied_by_what_is_measured():
    guard = "d == 10 and factor(y) == 5 and modulus(y) == 10 and remainder(y) == 5"
    rule = Rule("odd", "(x*y) % d", "(x*factor(y)*3) % d", guard)
    result = optimize("(j*(i*10 + 5)) % 10", rules=[rule], theory=False, **RANGES)
    assert result.check().equal
    assert result.rules["odd"]


@pytest.mark.parametrize("end", ["vmin", "vmax"])
def test_a_right_side_has_bounds_that_are_finite(end):
    rule = Rule("moved", "min(x, y*y)", f"min(x - {end}(x), y*y - {end}(x)) + {end}(x)")
    for ends in ((2, 9), (2, None), (None, 9)):
        result = optimize("min(i, j*j)", rules=[rule], i=ends, j=(-3, 9))
        assert (result.rules.get("moved", 0) > 0) == (ends[end == "vmax"] is not None)
        assert str(result.expr) == "min(i, j*j)"


def test_without_the_theory_a_factor_of_a_product_takes_the_coefficient():
    rule = Rule("multiple", "(x*y + z) // y", "x + z//y")
    term = "(i + j*(k + 4)*8) // (k + 4)"
    assert optimize(term, rules=[rule], theory=False, budget=Budget(seconds=60), **RANGES).rules


def test_what_holds_by_representation_is_not_compiled():
    for name in ("add-commutes", "mul-associates", "add-same", "scales-multiply", "min-commutes", "and-associates"):
        (rule,) = [rule for rule in DEFAULT if rule.name == name]
        assert by_representation(rule)
        assert compiled(rule) == ()


def test_every_other_shipped_rule_is_compiled():
    # a value that is known is a literal in the e-graph
    besides = {"known-value"}
    assert {rule.name for rule in DEFAULT if not compiled(rule) and not by_representation(rule)} == besides


@pytest.mark.parametrize("left", ["(x + c*k)//d", "x + c*c", "x + (c//2)"])
def test_a_rule_whose_numbers_no_match_tells_is_refused(left):
    with pytest.raises(ValueError, match=r"^rule 'hidden': no match tells .*: write one letter for each number"):
        optimize("i//3", i=(0, 9), rules=[Rule("hidden", left, "0", check=False)])


def test_a_rule_that_cannot_be_matched_is_refused_whatever_the_input_is():
    with pytest.raises(ValueError, match=r"^rule 'hidden': no match tells"):
        optimize("i < 3", i=(0, 9), rules=[Rule("hidden", "(x + c*k)//d", "0", check=False)])


@pytest.mark.parametrize("guard", ["False", "not True", "c > 0 and not (d < 3 or True)", "1 < 0", "c > 0 and 2 == 3"])
def test_a_guard_that_never_holds_is_refused(guard):
    with pytest.raises(ValueError, match=r"^rule 'never': the guard never holds"):
        Rule("never", "x//c + x//d", "x", guard)


@pytest.mark.parametrize(("left", "right"), [("3", "1 + 2"), ("True", "0 < 1")])
def test_a_literal_is_no_left_side(left, right):
    with pytest.raises(ValueError, match=r"^rule 'literal': the left side is a literal, .*: give it an operator"):
        Rule("literal", left, right)


def test_shipped_rules_are_parsed_when_they_are_needed():
    shown = subprocess.run(
        [sys.executable, "-c", "import eqsat, eqsat.egraph.rule as r; print(r.parsed.cache_info().currsize)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "0\n"


WAYS = [
    # what is left of a sum, one term or more, is all that a letter can be
    ("(x + c)//d", 1),
    ("(x + y)//d", 2),
    ("(x + c)//d - x//d", 1),
    # one term of a sum may have a multiple in another
    ("(x + c)//d + x*4", 4),
]


@pytest.mark.parametrize(("left", "ways"), WAYS)
def test_there_are_no_two_ways_to_find_one_match(left, ways):
    assert len(compiled(Rule("one-match", left, f"0*({left})", check=False, modulo_theory=True))) == ways


def test_a_long_left_side_is_matched_part_by_part():
    cube = Rule("cube", "x*x*x + x*x*y*3 + x*y*y*3 + y*y*y", "(x + y)*(x + y)*(x + y)")
    ways = compiled(cube, True)
    # each letter is one factor everywhere, or several; of one that is found alone in a power, the first power says that
    assert len(ways) == 32
    assert {len(way.stages) for way in ways} == {4}
    assert len({way.stages[0] for way in ways}) < len(ways) / 4
    # of a shipped rule short parts are not taken apart
    assert {len(way.stages) for way in compiled(cube)} == {4}
    assert {len(way.stages) for way in compiled(Rule("short", "x//d - y//d", "x", check=False))} == {1}


@pytest.mark.parametrize(
    ("left", "when", "first"),
    [
        # comparisons of one x, before the many forms of selections by them
        ("where(x < c, a, b) + where(x < d, k, m)", "c < d", ["(< c d)", "!=", "Lt"]),
        # numbers that are known decide before there is another part
        ("where(x < y, c, 0) - where(x <= y, 0, c)", "c == 1", ["(= c 1)", "open", "Where", "Lt"]),
    ],
)
def test_what_few_matches_have_is_matched_first(left, when, first):
    (way,) = compiled(Rule("of-two", left, "x", when, check=False, modulo_theory=True))
    assert {part for part in ("open", "Where", "Lt", "!=", first[0]) if part in way.stages[0].body} == {*first}
    assert sum(stage.body.count(first[0]) for stage in way.stages) == 1


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("where(x + y < z + w, x + y, z + w)", "min(x + y, z + w)", "where(i*3 + j < k*2 + l, i*3 + j, k*2 + l)"),
        ("where((x + y)*z < u*v, (x + y)*z, u*v)", "min((x + y)*z, u*v)", "where((i + j)*k < i*l, (i + j)*k, i*l)"),
        ("where(x//y + z < w, x//y + z, w)", "min(x//y + z, w)", "where(i//(j + 4) + k < l, i//(j + 4) + k, l)"),
    ],
)
def test_a_part_that_stands_again_in_a_pattern_is_of_one_class(left, right, text):
    rule = Rule("again", left, right)
    # matched anew each time, the first would be in ten thousand ways
    assert len(compiled(rule, thoroughly=True)) <= 200
    assert matches(rule, text)


FALSE = [("x//8", "x//8 - 50"), ("x//8", "x//9 - 50"), ("x//8 + y", "y")]


@pytest.mark.parametrize(("left", "right"), FALSE)
def test_a_false_rule_is_named_where_bounds_show_it(left, right):
    rule = Rule("false-one", left, right, check=False)
    with pytest.raises(UnsoundUnionError, match="false-one"):
        optimize("x//8 + y", x=(64, 99), y=(0, 3), rules=[rule])


QUARTER = Rule("quarter", "(x*x + 2)//4*4", "x*x - x%2")


@pytest.mark.parametrize(("text", "cost"), [("(n*n + 2)//4*4 + m", 6), ("max((n*n + 2)//4*4 + m, 30)", 7)])
def test_a_multiple_of_one_term_is_rewritten_in_longer_sums(text, cost):
    found = optimize(text, rules=[*DEFAULT, QUARTER], n=(0, 50), m=(0, 9))
    assert found.cost <= cost < optimize(text, n=(0, 50), m=(0, 9)).cost
    assert found.check().equal


def test_no_other_multiple_is_rewritten_in_longer_sums():
    found = optimize("(n*n + 2)//4*3 + m", rules=[*DEFAULT, QUARTER], n=(0, 50), m=(0, 9))
    assert found.cost == optimize("(n*n + 2)//4*3 + m", n=(0, 50), m=(0, 9)).cost
    assert found.check().equal


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("where(p, x, y)", "where(p, x - y, 0) + y", {"y"}),
        ("where(p, x, y)", "where(not p, y, x)", set()),
        ("where(p, x + z, y + z)", "where(p, x, y) + z", set()),
        ("where(p, where(q, x, y), x)", "where(q, x, y)", {"q"}),
        ("sum(where(p, x, y), i, u, v)", "sum(where(p, x - y, 0), i, u, v) + y*max(v - u, 0)", {"y"}),
        ("sum(where(p, x, 0), i, u, v)", "where(at(p, u), at(x, u), 0)", set()),
    ],
)
def test_letters_that_a_rule_takes_out_of_branches(left, right, expected):
    assert Rule("own", left, right).pattern.moved_out_of_branches == expected


@pytest.mark.parametrize(
    ("left", "right", "word"),
    [
        ("x & (c - 1)", "x % c", "'c - 1'"),
        ("x % (c + 1)", "x", "'c \\+ 1'"),
        ("x // -c", "-x//c", "'-c'"),
        ("x // (1 << s)", "x >> s", "'1 << s'"),
        ("x < c + d", "x - c < d", "'c \\+ d'"),
        ("where(p, c*d, 0)", "where(p, c, 0)*d", "'c\\*d'"),
        ("(x*c)//(d*c)", "x//d", "'d\\*c'"),
        ("x % 9223372036854775808", "x & 9223372036854775807", "64 bits"),
        ("x & 9223372036854775807", "x % 9223372036854775808", "64 bits"),
    ],
)
def test_literals_that_no_match_can_find_are_refused_with_their_rule(left, right, word):
    with pytest.raises(ValueError, match=f"^rule 'own': .*{word}"):
        Rule("own", left, right, check=False)


def test_a_literal_beside_the_left_side_has_64_bits_too():
    with pytest.raises(ValueError, match=r"^rule 'own': 9223372036854775808 is beyond the 64 bits"):
        Rule("own", "x // c", "x", beside="x // 9223372036854775808", check=False)


@pytest.mark.parametrize(("left", "right"), [("x*4611686018427387904*4 // y", "x"), ("x // y", f"x*{2**62}*4 // y")])
def test_a_product_of_literals_has_64_bits_too(left, right):
    rule = Rule("own", left, right, check=False)
    with pytest.raises(ValueError, match=r"^rule 'own': 18446744073709551616 is beyond the 64 bits"):
        optimize("i//3", i=(0, 9), rules=[rule])


@pytest.mark.parametrize("theory", [True, False])
def test_a_term_beside_the_left_side_may_have_bit_operators(theory):
    rule = Rule("own", "x // 12", "x // 4 // 3", beside="x & y")
    result = optimize(["i//12", "i & j"], rules=[rule], theory=theory, i=(0, 99), j=(0, 99))
    assert result.rules["own"]
    assert result.check().equal


#: Rules that are true because ``s`` is the amount of a shift, and what they must leave alone.
OF_SHIFTS = [
    (Rule("addend", "min(x, x + s)", "x"), "min(i*j, i*j - 5)"),
    (Rule("coefficient", "(x*x*s) % y", "x*x*s - (x*x*s)//y*y", "s < 0", check=False), "i*i*-3 % (j + 4)"),
    (Rule("large", "min(x*x, s)", "min(x*x, 63) % 64", check=False), "min(i*i, 64)"),
]


@pytest.mark.parametrize(("rule", "text"), OF_SHIFTS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("theory", [True, False])
def test_the_amount_of_a_shift_is_no_other_literal(rule, text, theory):
    result = optimize(text, rules=[rule], theory=theory, **RANGES)
    assert result.rules == {}
    assert result.check().equal


def test_a_rule_about_reductions_may_have_all_letters_of_literals():
    left = "sum(where(x < a, b, c), i, d, k) + sum(where(x < m, n, s), i, d, k)"
    rule = Rule("all-letters", left, "sum(where(x < a, b, c) + where(x < m, n, s), i, d, k)", check=False)
    text = "sum(where(i < r, 1, 2), r, 0, 4) + sum(where(i < r, 3, 5), r, 0, 4)"
    assert optimize(text, rules=[rule], theory=False, **RANGES).check().equal


#: Rules that are true of all ranges with ends, for which the largest number that egglog is given is no end.
OF_ENDS = [
    (Rule("wraps", "tdiv(x, d)", "x // d", f"0 <= vmin(x) and vmax(x) <= {2**63 - 1} and 0 < d"), "tdiv(i, 7)"),
    (Rule("cube", "x // c // c // c", "0", "0 <= vmin(x) and vmax(x) < c*c*c"), "i // 2000000 // 2000000 // 2000000"),
    (Rule("odd", "max(x, y)", "max(y, x)", "vmax(x) % 8 == 7", check=False), "max(i, j)"),
    (Rule("end", "max(x, y)", "max(x, min(y, vmax(y)))", check=False), "max(i, i//3*2)"),
]


@pytest.mark.parametrize(("rule", "text"), OF_ENDS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("theory", [True, False])
def test_an_infinite_range_has_no_end(rule, text, theory):
    result = optimize(text, rules=[rule], theory=theory, i=(0, None), j=(0, 9))
    assert result.rules == {}


@pytest.mark.parametrize(
    ("left", "right", "when", "text"),
    [
        ("(x*c)//(c*2)", "x//2", "c > 0", "i*5//10"),
        ("x*(c*d)", "x*d*c", "", "i*15 + j"),
        ("sum(x*c, i, u, v)", "sum(x, i, u, v)*c", "", "sum(A[r]*3, r, 0, 4)"),
        ("max_over(x*c, i, u, v)", "max_over(x, i, u, v)*c", "c > 0 and u < v", "max_over(A[r]*3, r, 0, 4)"),
    ],
)
@pytest.mark.parametrize("theory", [True, False])
def test_literals_that_are_computed_from_bound_ones_are_taken(left, right, when, text, theory):
    rule = Rule("own", left, right, when)
    term = parse(text, {"A": buffer("A"), "i": var("i", -9, 9), "j": var("j", 0, 9), "r": var("r", 0, 3)})
    assert optimize(term, rules=[rule], theory=theory).check().equal


@pytest.mark.parametrize("options", [{}, {"theory": False}])
def test_a_term_of_which_more_is_left_than_egglog_holds_is_not_taken_for_gone(options):
    # 4*10**9 times what the selection else is leaves i*(5 - 12*10**18)
    text = "j*4000000000 + i*5 - where(p < 1, k, i*3000000000 + j)*4000000000"
    result = optimize(text, i=(0, 9), j=(0, 9), k=(0, 9), p=(0, 3), **options)
    assert result.check().equal


def test_a_shifted_literal_of_more_than_64_bits_is_no_literal():
    # 5 << 61 has a bit beyond the 64 that egglog shifts
    rule = Rule("shifted", "x*c << s", "x*(c << s)")
    for text in ("i*5 << 61", "i*-5 << 61", "i*4 << 61"):
        assert optimize(text, rules=[rule], theory=False, **RANGES).check().equal
    assert optimize("i*5 << 3", rules=[rule], theory=False, **RANGES).rules["shifted"]


#: Rules for which an infinite bound is not below a literal, however large that is.
OF_QUOTIENTS = [
    next(rule for rule in DEFAULT if rule.name == "div-bucket"),
    Rule("small", "x // d", "0", "0 <= vmin(x) and vmax(x) < d"),
]


@pytest.mark.parametrize("rule", OF_QUOTIENTS, ids=lambda rule: rule.name)
def test_a_literal_that_rules_made_is_not_beyond_all_numbers(rule):
    nested = Rule("nested", "x//c//d", "x//(c*d)", "d > 0")
    text = "i//33554432//33554432//4096"
    result = optimize(text, rules=[nested, rule], theory=False, i=(0, None))
    assert evaluate(result.exprs, {"i": np.array([2**62 + 5], object)})[0] == 1


@pytest.mark.parametrize("theory", [True, False])
def test_a_letter_that_the_right_side_measures_is_not_negated(theory):
    # of a negated y, vmin(y) would be -vmax(y)
    rule = Rule("measured", "x*x*x + x*y*2", "x*(x*x + max(y, vmin(y))*2)")
    for text in ("i*i*i + i*j*2 + k", "i*i*i - i*j*2 + k"):
        assert optimize(text, rules=[rule], theory=theory, i=(1, 9), j=(1, 9), k=(0, 9)).check().equal


#: Inputs in which a rule holds where its condition fails, or fails where a part of it does.
OF_SELECTIONS = [
    ("where(p, x, x*y)", "x*where(p, 1, y)", "where(i < j, k*l, k)"),
    ("where(p, x, x*y)", "x*where(p, 1, y)", "j + where(i == 3, k*l, k)*5"),
    ("where(p, x, x*y)", "x*where(p, 1, y)", "j*where(i < 4 and j < 5, k*l, k)"),
    ("where(not p, x, x*y)", "x*where(p, y, 1)", "where(i < 4, k*l, k)"),
    ("where(p, where(q, x, x*y), x)", "x*where(p and not q, y, 1)", "where(i < j, k, where(k < l, k*l, k))"),
]


@pytest.mark.parametrize(("left", "right", "text"), OF_SELECTIONS)
def test_a_letter_stands_for_a_condition_that_is_denied(left, right, text):
    rule = Rule("selects", left, right)
    for rules in ([rule], [*DEFAULT, rule]):
        result = optimize(text, rules=rules, **RANGES)
        assert result.rules.get("selects")
        assert result.check().equal


def test_a_condition_that_is_more_than_the_choice_is_not_denied():
    # where p fails, p and q is not what the rule says
    rule = Rule("both", "where(p, x, 0) + where(p and q, y, 0)", "where(p, x + where(q, y, 0), 0)")
    patterns = [to_text(pattern.left) for _, pattern in matched_patterns(rule, thoroughly=True)]
    assert not [text for text in patterns if "not p" in text]
    assert optimize("where(i < j, 0, k) + where(i < j and k < l, l, 0)", rules=[rule], **RANGES).check().equal


@pytest.mark.parametrize("right", ["p", "p and p"])
def test_a_rule_that_denies_twice_is_matched_as_it_is_alone(right):
    # with both denials gone, its left side would be a letter
    rule = Rule("twice", "not not p", right)
    assert [to_text(pattern.left) for _, pattern in matched_patterns(rule, thoroughly=True)] == ["not not p != 0"]
    assert len(compiled(rule, thoroughly=True)) == 1


def test_a_shipped_rule_can_be_matched_as_one_of_a_user_s_own_is():
    matched = [rule for rule in (*DEFAULT, *REDUCE) if not by_representation(rule)]
    # its left side is a letter
    assert [rule.name for rule in matched if not compiled(rule, thoroughly=True)] == ["known-value"]


@pytest.mark.parametrize(
    ("guard", "factor"), [("0 <= vmin(x)", 5), ("vmax(x) < 5", 5), ("vmax(x) < 5", 4), ("factor(x) == 2", 2)]
)
@pytest.mark.parametrize("theory", [True, False])
def test_a_literal_for_a_letter_that_a_rule_about_reductions_measures(guard, factor, theory):
    rule = Rule("factor", "sum(x*y, i, u, v)", "x*sum(y, i, u, v)", f"free(x) and {guard}")
    term = parse(f"sum(A[r]*{factor}, r, 0, n)", {"A": buffer("A"), "n": var("n", 0, 9), "r": var("r", 0, 8)})
    assert optimize(term, rules=[rule], theory=theory).check().equal


#: Guards that compare terms where the first part of the left side does not bind all that they name, or with a computed
#: literal; an input on which the rule fires.
COMPARING = [
    (
        Rule("sums", "where(x < z, 1, 0) - where(y < z, 1, 0)", "where(x < z and z < y + 1, 1, 0)", "x < y + 1"),
        "where(k < i, 1, 0) - where(l < i, 1, 0)",
    ),
    (Rule("products", "(x % 5)*(y % 5)", "(x % 5)*(x % 5)", "x < y + 1 and y < x + 1"), "i%5*(j%5)*k"),
    (Rule("branches", "where(p, x % 5, y % 5)", "x % 5", "x < y + 1 and y < x + 1"), "where(k < 3, i%5, j%5)"),
    (Rule("nested", "max(x % 5, y % 5 + c)", "y % 5 + c", "x < y + 1 and y < x + 1 and 0 <= c"), "max(i%5, j%5 + 2)"),
    (Rule("literals", "max(x, c) + max(y, d)", "x + y", "c - 1 < x and d < y + 1"), "max(k, 0) + max(i, 0)"),
    (Rule("computed", "max(x*y, c)", "x*y", "c*2 < x*y + c"), "max((k + 9)*(k + 1), 8)"),
    (Rule("measured", "max(x, y + z)", "y + z", "x < y + vmin(z)"), "max(i, j + k + 1)"),
]


@pytest.mark.parametrize(("rule", "text"), COMPARING, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("theory", [True, False])
def test_a_guard_compares_what_later_parts_of_the_left_side_bind(rule, text, theory):
    names = {"i": (0, 19), "j": (0, 19), "k": (0, 6), "l": (0, 9)}
    found = optimize(text, constraints=["i < j + 1", "j < i + 1", "k < l + 1"], rules=[rule], theory=theory, **names)
    assert found.check().equal
    assert theory or found.rules[rule.name]


@pytest.mark.parametrize(
    "left", ["min(x, y, z, u, v, w) + x + y + z + u + v + w", "(x + y + z + u)//(x + y + z + u + v)"]
)
def test_a_rule_of_many_letters_is_matched_in_a_bounded_number_of_ways(left):
    rule = Rule("many", left, f"max({left}, {left} - 1)")
    assert 0 < len(compiled(rule, thoroughly=True)) <= MOST_WAYS
    ranges = {**dict.fromkeys("abcdef", (0, 9)), "b": (1, 9)}
    text = left.translate(str.maketrans("xyzuvw", "abcdef"))
    assert optimize(text, **ranges, rules=[*DEFAULT, rule], budget=Budget(seconds=20)).rules["many"]


def test_a_guard_of_many_alternatives_fails_in_many_ways_that_nobody_asks_for():
    guard = " or ".join(f"(c == {n} and {n} < vmin(x))" for n in range(40))
    assert len(Rule("many", "x//c", "x//c + 0*(x//7)", guard, check=False).pattern.when.args) == 2


@pytest.mark.parametrize(("names", "seconds", "stop"), [("abcdefghij", 0.2, "time"), ("abcdef", 60, "saturated")])
def test_a_stage_that_may_match_longer_than_there_is_time_is_not_begun(names, seconds, stop):
    rule = Rule("thrice", "x*y + z*w + u*v", "x*y + z*w + u*v + 0*(x//7)", check=False)
    half = len(names) // 2
    products = " + ".join(f"{one}*{other}" for one in names[:half] for other in names[half:])
    result = optimize(products, **dict.fromkeys(names, (0, 9)), rules=[*DEFAULT, rule], budget=Budget(seconds=seconds))
    assert (result.stop, "thrice" in result.rules) == (stop, stop == "saturated")


def test_a_run_that_leaves_out_a_stage_is_not_saturated(monkeypatch):
    options = {"rules": [SQUARES], "budget": Budget(seconds=60), **RANGES}
    whole = optimize("i*i - j*j", **options)
    assert (whole.stop, "squares" in whole.rules) == ("saturated", True)
    monkeypatch.setattr(Joins, "in_time", lambda joins, rulesets, is_late: rulesets[:-1])
    cut = optimize("i*i - j*j", **options)
    assert (cut.stop, cut.check().equal) == ("time", True)
