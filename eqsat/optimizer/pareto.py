"""Several answers instead of one: those of which none is both cheaper and smaller than another.

Cost is what the cost model says; size is one of :data:`SIZES`. Answers are found by extraction under blends of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from eqsat.extract.cost import CostModel, LoopAware
from eqsat.lang.expr import Expr
from eqsat.lang.ops import Bounds
from eqsat.lang.traversal import topological
from eqsat.optimizer.limits import LIMITS


@dataclass(frozen=True)
class Answer:
    """One of several answers.

    Attributes
    ----------
    exprs : tuple of Expr
        The roots, in the order given.
    cost : int
        Under the cost model.
    size : int
        By the measure asked for.
    """

    exprs: tuple[Expr, ...]
    cost: int
    size: int


def operations(roots: Sequence[Expr]) -> int:
    """How many operations an evaluation takes: the length of straight-line code.

    >>> from eqsat.lang.expr import var
    >>> x = var("x", 0, 9)
    >>> operations([x*3 + 1, x*3])
    2
    """
    return sum(bool(term.args) for term in topological(roots))


def live_values(roots: Sequence[Expr]) -> int:
    """The most values held at once while ``roots`` are evaluated, operands before users: registers wanted.

    A variable is held until its last use, a root is stored as soon as it is known.

    >>> from eqsat.lang.expr import var
    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> live_values([(x + y) * 3]), live_values([(x + y) * x])
    (2, 2)
    """
    order = [term for term in topological(roots) if term.args or term.op == "var"]
    last = {arg: position for position, term in enumerate(order) for arg in term.args}
    held = {term for term in order if term.op == "var" and term in last}
    most = len(held)
    for position, term in enumerate(order):
        held -= {arg for arg in term.args if last[arg] == position}
        if term in last:
            held.add(term)
        most = max(most, len(held))
    return most


#: The measures of size by name.
SIZES: dict[str, Callable[[Sequence[Expr]], int]] = {"operations": operations, "live": live_values}


@dataclass(frozen=True)
class Blend:
    """A cost model's prices and a price for every operation alike, in the proportion ``1 - share`` to ``share``.

    ``each`` is what an operation costs on average, so that both weigh the same at a share of one half.
    """

    model: CostModel
    each: int
    share: int
    shares: int

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The blended cost of one node."""
        if not operands:
            return 0
        return (self.shares - self.share) * self.model.price(op, operands, result) + self.share * self.each


def blends(model: CostModel, cost: int, count: int) -> list[CostModel]:
    """Models between ``model`` and a count of operations, for answers of about ``cost`` and ``count`` operations."""
    if isinstance(model, LoopAware):
        return [replace(model, model=blend) for blend in blends(model.model, cost, count)]
    each = max(1, cost // max(1, count))
    return [Blend(model, each, share, LIMITS.blends - 1) for share in range(LIMITS.blends)]


def frontier(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """Those answers that no other is as good as in one respect and better in the other, the cheapest first.

    >>> [(a.cost, a.size) for a in frontier(Answer((), *figures) for figures in [(5, 5), (3, 7), (6, 5), (3, 8)])]
    [(3, 7), (5, 5)]
    """
    found: list[Answer] = []
    for answer in sorted(answers, key=lambda a: (a.cost, a.size)):
        if not found or answer.size < found[-1].size:
            found.append(answer)
    return tuple(found)
