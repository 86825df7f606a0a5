"""Rules from one example: the most general, with the weakest guard that z3 proves."""

from __future__ import annotations

import pytest

from eqsat.discover import generalise as generalise_module
from eqsat.discover.fragments import fragments
from eqsat.discover.generalise import generalise
from eqsat.lang.expr import Expr, const, make, var
from eqsat.lang.text import parse
from eqsat.prove.proof import Proof, check_rule

Ranges = dict[str, tuple[int, int]]
#: Two equal terms with their ranges, and the rule that they are an instance of.
EXAMPLES: list[tuple[str, str, Ranges, tuple[str, str, str] | None]] = [
    ("x%8", "x", {"x": (0, 5)}, ("x%c", "x", "0 <= vmin(x) and vmax(x) < c")),
    ("x%7 + x//7*7", "x", {"x": (-100, 5000)}, ("x%c + x//c*c", "x", "")),
    ("x//3%5*3 + x%3", "x%15", {"x": (0, 1000)}, ("x//c%d*c + x%c", "x%(c*d)", "0 <= d")),
    ("(x + 24)//8", "x//8 + 3", {"x": (0, 1000)}, ("(x + c)//d", "x//d + c//d", "c%d == 0")),
    ("(x*16 + y)//16", "x", {"x": (0, 99), "y": (0, 15)}, ("(x*c + y)//c", "x", "0 <= vmin(y) and vmax(y) < c")),
    ("x//4//5", "x//20", {"x": (0, 1000)}, ("x//c//d", "x//(c*d)", "0 <= d")),
    ("min(x*3, y*3)", "min(x, y)*3", {"x": (0, 20), "y": (0, 9)}, ("min(x*c, y*c)", "min(x, y)*c", "0 <= c")),
    ("min(x, y)", "x", {"x": (0, 5), "y": (5, 9)}, ("min(x, y)", "x", "vmax(x) <= vmin(y)")),
    ("x < 5 and x < 3", "x < 3", {"x": (0, 20)}, ("x < c and x < d", "x < d", "d <= c")),
    (
        "where(p, x + 3, y + 3)",
        "where(p, x, y) + 3",
        {"x": (0, 9), "y": (0, 9)},
        ("where(p, x + c, y + c)", "where(p, x, y) + c", ""),
    ),
    ("x%12", "x - where(x < 12, 0, 12)", {"x": (0, 20)}, None),
    # values of the example, and the products of its literals, have more than 32 bits
    ("x//100000//70000", "x//7000000000", {"x": (0, 10**12)}, ("x//c//d", "x//(c*d)", "0 <= d")),
    ("x*50000//150000000", "x//3000", {"x": (0, 2**31)}, ("x*c//d", "x//(d//c)", "d%c == 0")),
    # what something is shifted by stays as it is
    (
        "(x << 3) + y//5//7",
        "(x << 3) + y//35",
        {"x": (0, 20), "y": (0, 500)},
        ("(x << 3) + y//c//d", "(x << 3) + y//(c*d)", "0 <= d"),
    ),
    ("x*24", "x*3 << 3", {"x": (-5, 20)}, ("x*24", "x*3 << 3", "")),
]


def example(left: str, right: str, ranges: Ranges) -> tuple[Expr, Expr]:
    names: dict[str, Expr] = {name: var(name, *bounds) for name, bounds in ranges.items()}
    names["p"] = make("ne", var("p", 0, 1), const(0))
    return parse(left, names), parse(right, names)


@pytest.mark.parametrize(("left", "right", "ranges", "rule"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_generalise(left: str, right: str, ranges: Ranges, rule: tuple[str, str, str] | None) -> None:
    made = generalise(*example(left, right, ranges), "found")
    assert made is not None
    found, proof = made
    assert proof.kinds
    assert check_rule(found) is None
    if rule is None:
        # two periods: literals are computed from bounds
        assert (found.left, found.when) == ("x%c", "vmax(x)//c == vmin(x)//c + 1")
    else:
        assert (found.left, found.right, found.when) == rule


def test_what_z3_does_not_prove_is_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Proof("found", ("exhaustive",), "left open after 1 s", left_open=True)
    monkeypatch.setattr(generalise_module, "prove_rule", lambda rule, seconds: tried)
    assert generalise(*example("x//4//5", "x//20", {"x": (0, 1000)}), "found") is None


def test_a_shift_by_what_varies_is_no_rule() -> None:
    assert generalise(*example("(x << y)//2", "x << (y - 1)", {"x": (0, 20), "y": (1, 9)}), "found") is None


def test_what_is_true_by_chance_is_no_rule() -> None:
    # 5 and 11 have nothing to do with one another but in this example, whose literals then stay
    found = generalise(*example("x*5 + 11", "x*6", {"x": (11, 11)}), "found")
    assert found is None or check_rule(found[0]) is None


def test_fragments_have_variables_for_what_is_below() -> None:
    i = var("i", 0, 99)
    found = fragments([i // 4 % 3 + i % 4 * 9])
    shown = {str(fragment): count for fragment, count in found.items()}
    assert {"x + y", "x%3", "x//4%3", "x//4%3 + y", "x//4%3 + x%4*9"} <= shown.keys()
    (remainder,) = [fragment for fragment in found if str(fragment) == "x%3"]
    assert (remainder.args[0].vmin, remainder.args[0].vmax) == (0, 24)


def test_any_two_members_of_a_sum_are_a_fragment() -> None:
    names = {name: var(name, 0, 99) for name in "ijk"}
    assert "x%4 - x" in map(str, fragments([parse("i%4 + j + k - i", names)]))


def test_a_fragment_has_values_of_64_bits() -> None:
    x, y, z = (var(name, 0, 2**31) for name in "xyz")
    shown = set(map(str, fragments([x * y * z // 3])))
    assert {"x*y", "x*y*z", "x*y*z//3"} & shown == {"x*y"}


def test_fragments_come_in_an_order_of_their_own() -> None:
    names = {name: var(name, 0, 50 + place) for place, name in enumerate("abcdefgh")}
    text = "where((a*3 + b*2)//4 < (c*3 + d*4)%5, min(e*5, f*6%5) + (g*8)%9, max(a*7, h//7)*3 + b*c)"
    parts = ["h//7", "g*8", "f*6%5", "d*4", "c*3", "b*2", "e*5"]
    orders = []
    for turn in range(len(parts)):
        # what is made first has other addresses
        kept = [parse(part, names) for part in parts[turn:] + parts[:turn]]
        orders.append(list(map(str, fragments([parse(text, names)]))))
        del kept
    assert all(order == orders[0] for order in orders)
