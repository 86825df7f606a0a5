"""Alternatives by what is computed anyway: each is taken where it pays, and only there."""

import pytest
from comparison.shuffle import shuffled

from eqsat import optimize
from eqsat.alternatives.availability import add_available
from eqsat.alternatives.builder import Builder
from eqsat.extract.cost import Latency
from eqsat.extract.select import Priced, tree
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import var
from eqsat.lang.text import parse
from eqsat.prove.verify import check_equal
from eqsat.theory.linear import LinearArithmetic

RANGES = {"i": (0, 2), "j": (0, 3), "k": (0, 48), "x": (0, 99), "y": (0, 99), "w": (0, 12), "u": (0, 1), "b": (0, 1)}
NAMES = {name: var(name, *ends) for name, ends in RANGES.items()}

#: Programs, and what the last root becomes beside the others.
REUSED = [
    # an interval of a sum that is there: one value, an end, both ends
    (["i*4 + j", "i == 1 and j == 0"], "j + i*4 == 4"),
    (["i*4 + j", "i + j < 1"], "i*4 + j == 0"),
    (["i*4 + j", "i == 2 or i == 1 and j == 3"], "7 <= i*4 + j"),
    # of one variable: one value, every eighth
    (["(k + 35) % 49 < 1"], "k == 14"),
    (["k == k//7*8"], "k%8 == 0"),
    # a sum congruent to the dividend, where something else is looked for too
    (["x*3 + y", "(x*3 + y)//4", "k == k//7*8", "(y - x)%4"], "(x*3 + y)%4"),
    (["(x + 80)//32", "(x + 16)%32"], "(x + 80)%32"),
    # a remainder modulo a multiple, of a sum that is there, or that shares what another adds first
    (["x*3", "(x + 89)%90*3 + 2"], "(x*3 + 269)%270"),
    (["u + x*2 + y*384", "u + (x + y*64)%128*2"], "(u + x*2 + y*384)%256"),
    # a sum, or a quotient of one, that another has a multiple of
    (
        ["i + j*2 + x*28 + y*140", "(i*2 + j*4 + x*8)%16 - i - j*2 - x*28 - y*140"],
        "(x*4 + (i + j*2))%8*2 - (x*28 + y*140 + (i + j*2))",
    ),
    (["k*3 + x", "(x - k + 4)//4 + k"], "(k*3 + x)//4 + 1"),
    # a quotient of a sum that is there, or a remainder, that makes the rest a multiple of a sum
    (["x + y*14", "(x + y*14)//6 + (x + y*14)%6*70"], "(x + y*14)*70 - (x + y*14)//6*419"),
    (
        ["k*2 + u + x*28 + y*140", "(k + x*2 + y*2)%4*2 + u + (y*17 + x*3 + (y + x + k//2)//2)*-8"],
        "u*2 + (k + (x + y)*2)%4*4 - ((x + (y*4 + y))*28 + (k*2 + u))",
    ),
    # a quotient by the remainder's divisor, of more than what remains
    (["(x*30 + w*7 + k)//10", "(x*30 + w*7 + k)%10"], "w*7 + k - (w*7 + k)//10*10"),
    # a sum that differs from the dividend in its constant too
    (["k*6 + x*2 + u", "(u + (x - k + 2)%4*2)*12"], "(k*6 + u + x*2 + 4)%8*12"),
    # a maximum that a term enters, for several constants, and for one alone, which does not pay
    (
        ["y*60 + k", *(text for n in (59, 58, 57) for text in (f"{n} <= k + x*3", f"y*60 + max(k + x*3, {n}) - {n}"))],
        "max(k + y*60 + x*3 - 57, y*60)",
    ),
    (["y*60 + k", "59 <= k + x*3", "y*60 + max(k + x*3, 59) - 59"], "y*60 + (max(k + x*3, 59) - 59)"),
    # what a longer sum has of the variables of a condition
    (["(i*4 + j + w)*10 + x", "(i*4 + j)*30 + (x + y)*3", "1 <= i + j + w"], "1 <= i*4 + j + w"),
    # a sum that differs in one coefficient alone, by a power of two; by another number that does not pay
    (["(x - 3)*w", "(x - 2)*w"], "(x - 3)*w + w"),
    (["x*11 + y*3", "x*11 + y*5"], "x*11 + y*3 + y*2"),
    (["(x - 3)*w", "(x + 2)*w"], "(x + 2)*w"),
    # a sum that three can use, though none alone would pay for it
    (
        ["k*48 + i*16 + w", "k*3 + i < 1", "(k*3 + i + 4)//5*210 + k*21 + i*7 + x"],
        "x + (i + k*3 + 4)//5*210 + (i + k*3)*7",
    ),
    # a quotient of a quotient that is there, if what is left to divide by is a power of two
    (["x//7", "x//14"], "x//7//2"),
    (["k//3 + y", "(k + 3)//12"], "(k//3 + 1)//4"),
    (["x//7", "x//21"], "x//21"),
    # a remainder by what is a power of two below another, beside its quotient
    (["x//7", "x%7"], "(x//7 + x)%8"),
    (["x//12", "x%12"], "(x//12*4 + x)%16"),
    # two pairs of comparisons that differ in their kind
    (["j < 5 and x < 5 and 1 <= w and 1 <= y"], "max(j, x) < 5 and 1 <= min(w, y)"),
    # comparisons of sums that are there; their normal forms compare multiples
    (["j + k//2", "i + x", "i + x < 9 or j + k//2 < 9"], "min(i + x, j + k//2) < 9"),
    # a multiple by two others that are there; not if one is not
    (["x*3", "x*7", "x*10"], "x*3 + x*7"),
    (["x*7", "x*6"], "x*7 - x"),
    (["(x + y)*26", "(x + y)*20", "(x + y)*6"], "(x + y)*26 - (x + y)*20"),
    (["x*32", "x*24"], "x*24"),
    # the next of a few stages, beside the present one
    (["k%3*5", "(k + 1)%3*5"], "where((k - k//3*3)*5 < 10, 5, -10) + (k - k//3*3)*5"),
    # products with a variable of two values, where it is compared anyway
    (["b < 1", "x + b*6"], "where(b < 1, 0, 6) + x"),
    (["1 <= b and x < 5", "x + b*6"], "where(1 <= b, 6, 0) + x"),
    (["b < 1", "x - b*6 + y"], "x + y - where(b < 1, 0, 6)"),
    # dividends that are never negative
    (["x + y*9", "(x - y*9 + 52)%63"], "(x - y*9 + 934)%63"),
    (["x + y*9", "(x - y*9)%63"], "(x - y*9 + 945)%63"),
    (["x + y*9", "(x - y*9 + 52)%64"], "(x - y*9 + 52)%64"),
    # the same of quotients, where the dividend or the sum has a literal; where neither has, the sign costs no more
    (["(x - y + 3)//7"], "(x - y + 101)//7 - 14"),
    (["(x - y)//7*5 + w + 3"], "(x - y + 105)//7*5 + w - 72"),
    (["w*2 - (x - y)//7 + 3"], "w*2 - (x - y + 105)//7 + 18"),
    (["(x - y)//7"], "(x - y)//7"),
    (["(x - y + 3)//8"], "(x - y + 3)//8"),
    # a condition on the remainder of a sum
    (["i*4 + j", "j == 0 and i != 1"], "(i*4 + j)%8 == 0"),
]


@pytest.mark.parametrize(("texts", "wanted"), REUSED, ids=[" ".join(row[0]) for row in REUSED])
def test_what_is_there_is_reused(texts, wanted):
    roots = [parse(text, NAMES) for text in texts]
    result = optimize(roots)
    assert result.cost <= cost_of([*result.exprs[:-1], parse(wanted, NAMES)], Latency())
    assert result.check().equal


#: Programs with the ranges of their variables, and what they cost.
COSTS = [
    # an index that counts from the end if it is negative: all comparisons share the selection
    ([f"(where(m < 0, m + 5, m) != {k}) != True" for k in range(4)], {"m": (-(2**31), 2**31 - 1)}, 7),
    ([f"x < 3 and where(m < 0, m + 5, m) == {k}" for k in range(3)], {"m": (-99, 99), "x": (0, 5)}, 10),
    # the padded rows and columns of a convolution: both pairs of comparisons are merged
    (["x < 5 and y < 5 and 1 <= x and 1 <= y"], {"x": (0, 99), "y": (0, 63)}, 5),
    (
        ["i + k//2", "j + x", "1 <= i + k//2 and 1 <= j + x and i + k//2 < 13 and j + x < 11"],
        {"i": (0, 2), "k": (0, 23), "j": (0, 2), "x": (0, 9)},
        9,
    ),
    # a multiple of a dividend, and its quotient, of which normal forms have other dividends
    (["x + y*15", "(29 + y*15 - x)%12 + (29 + y*15 - x)//12*9"], {"x": (0, 14), "y": (0, 6)}, 13),
    # the same, where it pays only with its quotient, and once both share parts with another sum
    (
        ["x*16 + y*4 + z", "(x*16 - y*4 - z)//3*3 - (x*16 - y*4 - z)%3 + 17"],
        {"x": (0, 2), "y": (0, 3), "z": (0, 3)},
        17,
    ),
    # a quotient of a sum that is there, and a selection for a multiple of another
    (["x + y*10", "(y*2 + x//5)//3%3*5 + x%5"], {"x": (0, 9), "y": (0, 8)}, 18),
    # the same by more than what its own dividend is divided by, whatever the input says besides
    (["x*128 + y*4 + z", "y//2 + x*16"], {"x": (0, 15), "y": (0, 31), "z": (0, 3)}, 5),
    (["x*128 + y*4 + z", "y//2 + x*16"], {"x": (0, 15), "y": (0, 31), "z": (0, 4)}, 7),
    (
        ["x*128 + y*4 + z", "(0 + (0 + x*16 + y//2)%64 + (y*4 + z)%8*64 + x//4*512)%2048"],
        {"x": (0, 15), "y": (0, 31), "z": (0, 3)},
        12,
    ),
    # like terms of a sum and of what is written into it
    (
        ["x*2 + y + (z*4 + w)*14", "(x*2 + y + (z*4 + w)*14)%10 + 2 + 14*(29 - (x*2 + y + (z*4 + w)*14)//10)"],
        {"x": (0, 6), "y": (0, 1), "z": (0, 4), "w": (0, 3)},
        18,
    ),
    # a partial sum that one of two sums uses twice
    (
        ["x*4 + y*2 + z", "(x + (y*2 + z)*5)*21 + w", "x*2 + y"],
        {"x": (0, 4), "y": (0, 1), "z": (0, 1), "w": (0, 20)},
        12,
    ),
    # a constant, in a selection that stands for a product
    (["x*7 + y + z*14", "z*12 + (y + 1)//2 + 72"], {"x": (0, 1), "y": (0, 6), "z": (0, 1)}, 10),
    # what fails where all terms are least, or holds where all are greatest, alone needs no coefficients
    (["1 <= x + y*3"], {"x": (0, 4), "y": (0, 4)}, 2),
    (["2 <= x + y*3"], {"x": (0, 4), "y": (0, 4)}, 3),
    (["16 <= x + y*3"], {"x": (0, 4), "y": (0, 4)}, 2),
    (["15 <= x + y*3"], {"x": (0, 4), "y": (0, 4)}, 3),
    (["x + y*3 < 1"], {"x": (0, 4), "y": (0, 4)}, 2),
    (["x + y*3 < 2"], {"x": (0, 4), "y": (0, 4)}, 3),
    (["x + y*3 < 16"], {"x": (0, 4), "y": (0, 4)}, 2),
    (["x + y*3 < 15"], {"x": (0, 4), "y": (0, 4)}, 3),
    # a maximum is congruent to a sum with a minimum where that is multiplied by half of a literal divisor
    (["(y + z + min(y, z)) % 2"], {"y": (0, 6), "z": (0, 7)}, 2),
    (["(y + z + min(y, z)) % (m + 2)"], {"y": (0, 6), "z": (0, 7), "m": (0, 3)}, 24),
    # a multiple of a quotient by what is divided by, and by something else
    (["x//n*n + y"], {"x": (0, 30), "n": (1, 9), "y": (0, 3)}, 22),
    (["x//n*m + y"], {"x": (0, 30), "n": (1, 9), "m": (1, 9), "y": (0, 3)}, 28),
    # a dividend computed by shifts, which no more than its product may be negative
    (["x*15 + y", "(x*15 + y)%20*30 + (x*15 + y)//20"], {"x": (0, 39), "y": (0, 14)}, 15),
]


@pytest.mark.parametrize(("texts", "ranges", "cost"), COSTS, ids=[row[0][-1] for row in COSTS])
def test_costs_of_what_is_computed_anyway(texts, ranges, cost):
    result = optimize(texts, **ranges)
    assert result.cost <= cost
    assert result.check().equal


#: What is not negative, as one of its e-nodes shows, needs no multiple of the divisor.
NOT_NEGATIVE = [
    ("(row*40 + k)//25%12", {"row": (0, 28), "k": (0, 4)}, "row*8//5%12"),
    ("((i*104 + k)//117 + p)%10", {"i": (0, 17), "k": (0, 12), "p": (0, 50)}, "(p + i*8//9)%10"),
    (
        "((x*n + y*n)%(m*n) + p)%12",
        {"x": (-138, 98), "y": (-175, 279), "n": (1, 17), "m": (1, 6), "p": (0, 50)},
        "(p + n*((x + y)%m))%12",
    ),
]


@pytest.mark.parametrize(("text", "ranges", "wanted"), NOT_NEGATIVE, ids=[row[0] for row in NOT_NEGATIVE])
def test_dividends_are_not_negative_if_an_e_node_is_not(text, ranges, wanted):
    result = optimize(text, **ranges)
    assert result.cost == optimize(wanted, **ranges).cost_before
    assert result.check().equal


def test_dividends_are_not_negative_by_their_ranges_where_facts_say_more():
    result = optimize("(i*5 + x)%5", i=(-95, 173), x=(-107, 166), constraints=["-74 <= x"])
    assert (str(result.expr), result.cost) == ("(x + 110)%5", 9)
    assert result.check().equal


#: Where the sum is not there, or the condition is no interval of it, nothing changes.
KEPT = [
    (["i == 1 and j == 0"], "i == 1 and j < 1"),
    (["i*4 + j", "i == 1 and j < 4"], "i == 1"),
    (["i*4 + j", "j != 1 and i != 1"], "j != 1 and i != 1"),
    (["k%8 == 0 or k == 7"], None),
    (["x*3 + y", "(y - x)%5"], None),
    (["k%5", "(k*2 + 1)%5"], None),
    (["b < 1", "x + b*8"], "b*8 + x"),
    (["i < 1", "x + i*6"], "i*6 + x"),
]


@pytest.mark.parametrize(("texts", "wanted"), KEPT, ids=[" ".join(row[0]) for row in KEPT])
def test_what_is_not_there_is_not(texts, wanted):
    roots = [parse(text, NAMES) for text in texts]
    result = optimize(roots)
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)
    if wanted is not None:
        assert str(result.exprs[-1]) == wanted


@pytest.mark.parametrize("seed", range(8))
def test_the_sums_of_the_input_do_not_depend_on_its_order(seed):
    texts = ["(i*4 + j + w)*10 + x", "1 <= i*4 + j + w", "(i*4 + j)*30 + (x + y)*3"]
    roots = [parse(text, NAMES) for text in texts]
    assert optimize(shuffled(roots, seed)).exprs == optimize(roots).exprs


def test_sums_are_added_of_products_that_are_there():
    roots = [parse(text, NAMES) for text in ("x//2*14 + w", "x//2*14 - w + 13", "k == k//7*8")]
    theory = LinearArithmetic()
    builder = Builder(theory, NAMES)
    builder.add_roots([builder.value_of(root) for root in roots])
    product = builder.add_class(theory.form(parse("x//2*14", NAMES)))
    builder.grow()
    add_available(builder, tree(Priced.of(builder.graph, Latency())))
    for root in roots[:2]:
        c = builder.add_class(theory.form(root))
        choice = tree(Priced.of(builder.graph, Latency()))
        nodes = [node for node in builder.graph.classes[c] if node[0] == "sum" and product in node[2]]
        assert nodes
        for node in nodes:
            term = builder.terms({**choice, c: node}, [c])[c]
            assert check_equal([root], [term]).kind == "exhaustive"
            assert check_equal([root], [term]).equal


def test_what_is_affine_gets_no_parts_that_are_not():
    roots = [parse(text, NAMES) for text in ("k%4*9 + x*3 + w", "k//4", "k*9 + x*3 + w")]
    builder = Builder(LinearArithmetic(), NAMES)
    builder.add_roots([builder.value_of(root) for root in roots])
    builder.grow()
    add_available(builder, tree(Priced.of(builder.graph, Latency())))
    nodes = builder.graph.classes[builder.add_class(builder.value_of(roots[2]))]
    assert all(builder.values[c].is_affine() for node in nodes for c in node[2])


def test_long_inputs_reuse_what_is_there_too():
    # more terms than any limit on the input, in few normal forms
    long = parse("x", NAMES)
    for k in range(1, 300):
        long = long + parse("w", NAMES) * k - parse("w", NAMES) * k
    result = optimize([parse("x*3", NAMES), parse("(x + 29)%30*3 + 2", NAMES), long])
    assert [str(e) for e in result.exprs] == ["x*2 + x", "(x*2 + x + 89)%90", "x"]
    check = result.check()
    assert (check.kind, check.equal) == ("exhaustive", True)


def test_long_inputs_keep_their_brackets():
    # more terms than any limit on the input, in few normal forms
    long = parse("x", NAMES)
    for k in range(1, 300):
        long = long + parse("w", NAMES) * k - parse("w", NAMES) * k
    texts = ["(i*4 + j + w)*10 + x", "1 <= i*4 + j + w", "(i*4 + j)*30 + (x + y)*3"]
    roots = [parse(text, NAMES) for text in texts]
    assert optimize([*roots, long]).cost == optimize(roots).cost


def test_sums_that_no_machine_integer_holds():
    i, j, far = var("i", 0, 3), var("j", 0, 3), var("far", 2**70, 2**70 + 5)
    wide = i * 2**70 + j * 2**68
    result = optimize([wide, i.eq(1) & j.eq(0), (i * 2**62 + j).eq(2**62), far * 4 + j, far.eq(2**70) & j.eq(0)])
    assert result.check().kind == "exhaustive"
    assert result.check().equal


@pytest.mark.parametrize("value", range(5))
def test_conditions_at_the_end_of_int64(value):
    x, y = var("x", 0, 4), var("y", 2**63 - 3, 2**63 - 1)
    assert optimize([((y + x * 2 + 1) % 5).eq(value)]).check().equal


def test_products_by_powers_of_two_of_products_that_are_there():
    result = optimize(["i*13", "i*52 - i//4*195"], i=(0, 15))
    assert str(result.exprs[1]) == "i*13*4 - i//4*195"
    assert result.check().equal


def test_shifted_remainders_beside_each_other():
    """Stages of a ring, in elements and in strides, at every point."""
    k = var("k", -5, 40)
    for n in (2, 3, 5, 6, 8):
        for shift in range(-n, n):
            for stride in (1, 5):
                roots = [k % n * stride, (k + shift) % n * stride]
                result = optimize(roots)
                assert result.check().kind == "exhaustive"
                assert result.check().equal, (n, shift, stride)
                if n in (3, 5, 6):
                    assert result.cost <= cost_of(roots[:1], Latency()) + 3, (n, shift, stride)


@pytest.mark.parametrize(
    ("text", "cost", "lifted"),
    [
        # from -38 on: two divisors more, and ten less outside
        ("x + (i - j*9 + 7)//28*5 + 31", 13, True),
        ("x - (i - j*9 + 7)//28*5 + 31", 13, True),
        # a new constant outside costs less than the sign
        ("x + (i - j*9 + 7)//28*5", 13, True),
        # not to be mended: no constant inside, a shift, not negative
        ("x + (i - j*9)//28*5 + 31", 14, False),
        ("x + (i - j*9 + 7)//32*5 + 31", 9, False),
        ("x + (i - j*9 + 60)//28*5 + 31", 13, False),
    ],
)
def test_constants_of_sums_enter_dividends_that_may_be_negative(text, cost, lifted):
    result = optimize(text, i=(0, 40), j=(0, 5), x=(0, 9))
    assert (result.cost, "63" in str(result.expr)) == (cost, lifted)
    assert result.check().equal
