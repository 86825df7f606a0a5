"""Cost models: the price of one node, as a table."""

import pytest

from eqsat.extract import COST_MODELS, Latency, OpCount

BYTE, SIGNED, WIDE, FREE = (0, 255), (-128, 127), (0, 2**40), (1, 99)


def literal(value: int) -> tuple[int, int]:
    return value, value


LATENCY = [
    # operator, bounds of the operands, cycles
    ("var", [], 0),
    ("const", [], 0),
    ("add", [BYTE, BYTE], 1),
    ("sub", [BYTE, literal(1)], 1),
    ("neg", [SIGNED], 1),
    ("lt", [BYTE, BYTE], 1),
    ("and", [(0, 1), (0, 1)], 1),
    ("where", [(0, 1), BYTE, BYTE], 1),
    ("min", [BYTE, BYTE], 1),
    ("shl", [BYTE, literal(3)], 1),
    ("mul", [BYTE, BYTE], 3),
    ("mul", [BYTE, literal(7)], 3),
    ("mul", [BYTE, literal(8)], 1),
    ("mul", [literal(8), BYTE], 1),
    ("mul", [BYTE, literal(-8)], 2),
    ("mul", [BYTE, literal(-1)], 1),
    ("mul", [BYTE, literal(1)], 0),
    # floor division by a power of two is a shift for either sign, truncating division is not
    ("floordiv", [BYTE, literal(8)], 1),
    ("floordiv", [SIGNED, literal(8)], 1),
    ("mod", [SIGNED, literal(8)], 1),
    ("tdiv", [BYTE, literal(8)], 1),
    ("tdiv", [SIGNED, literal(8)], 3),
    ("floordiv", [BYTE, literal(-8)], 2),
    # by another literal: a sign costs a fix-up, a remainder multiplies back
    ("floordiv", [BYTE, literal(7)], 5),
    ("floordiv", [SIGNED, literal(7)], 7),
    ("mod", [BYTE, literal(7)], 9),
    ("mod", [SIGNED, literal(7)], 11),
    # by a variable: a sign costs two fix-ups, 64 bits twice as much
    ("mod", [BYTE, FREE], 20),
    ("floordiv", [BYTE, FREE], 24),
    ("tdiv", [BYTE, FREE], 20),
    ("tdiv", [SIGNED, FREE], 20),
    ("floordiv", [SIGNED, FREE], 28),
    ("mod", [BYTE, SIGNED], 24),
    ("floordiv", [WIDE, FREE], 48),
    ("mod", [BYTE, WIDE], 40),
]


@pytest.mark.parametrize(("op", "operands", "cycles"), LATENCY)
def test_latency(op, operands, cycles):
    assert Latency().price(op, operands, (0, 10**6)) == cycles


def test_latency_is_what_its_fields_say():
    model = Latency(multiply=30, quotient_by_variable=100)
    assert model.price("mul", [BYTE, BYTE], BYTE) == 30
    assert model.price("floordiv", [BYTE, FREE], BYTE) == 100


@pytest.mark.parametrize("op", ["floordiv", "mod", "tdiv", "tmod"])
def test_a_division_is_never_cheaper_for_wider_or_signed_operands(op):
    for divisor in (literal(8), literal(7), FREE):
        prices = [Latency().price(op, [x, divisor], (0, 9)) for x in (BYTE, SIGNED, (-(2**40), 2**40))]
        assert prices == sorted(prices)


OP_COUNT = [
    ("var", [], {}, 0),
    ("const", [], {"const": 5}, 0),
    ("floordiv", [BYTE, literal(7)], {}, 1),
    ("floordiv", [BYTE, literal(7)], {"floordiv": 10}, 10),
    ("mod", [BYTE, literal(7)], {"floordiv": 10}, 1),
    ("mul", [BYTE, literal(1)], {"mul": 0}, 0),
]


@pytest.mark.parametrize(("op", "operands", "weights", "cost"), OP_COUNT)
def test_op_count(op, operands, weights, cost):
    assert OpCount(weights).price(op, operands, BYTE) == cost


def test_models_by_name():
    assert {"latency": Latency(), "opcount": OpCount()} == COST_MODELS
