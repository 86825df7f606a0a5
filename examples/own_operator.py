"""An operator, two rules and a cost model of one's own, tried on 20 expressions: python examples/own_operator.py"""

from importlib.util import find_spec

import numpy as np

import eqsat
from eqsat.rules import DEFAULT

gray = eqsat.operator(
    "gray",  # the reflected binary code
    1,
    lambda x: x ^ (x >> 1),
    bounds=lambda x: (0, (1 << max(x[1], 0).bit_length()) - 1) if x[0] >= 0 else (None, None),
    price=2,
    c="x ^ (x >> 1)",
)
RULES = [
    eqsat.Rule("parity-of-gray", "gray(x) % 2", "(x + x//2) % 2", why="the lowest two bits differ or not"),
    eqsat.Rule("half-of-gray", "gray(x) // 2", "gray(x // 2)", why="each bit is of two neighbours"),
]


class Pipelined:
    """A machine on which a shift or mask takes no time, and the code two steps."""

    def price(self, op, operands, result):
        return 0 if op in ("floordiv", "mod") else 2 if op == "gray" else 1


if __name__ == "__main__":
    texts = [f"gray(x*{n + 1})//2 + gray(x*{n + 1} + 0)//2 + gray((x + {n})*4)//4" for n in range(20)]
    results = [eqsat.optimize(text, x=range(256), rules=[*DEFAULT, *RULES], cost=Pipelined()) for text in texts]
    assert all(result.check().equal for result in results)
    before, after = np.array([[result.cost_before, result.cost] for result in results]).T
    matches = {rule.name: results[0].rules[rule.name] for rule in RULES}
    print(f"{len(results)} expressions, cost {before.sum()} -> {after.sum()}, matches {matches}")
    if find_spec("matplotlib") is None:
        raise SystemExit("the plot needs matplotlib: pip install 'eqsat[plots]'")
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot(xlabel="cost of the input", ylabel="cost of the answer")
    axes.scatter(before, after)
    figure.savefig("own_operator.png")
