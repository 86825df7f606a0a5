"""A frozen e-graph as plain data: what the extractors read.

A class is an integer. A node is a triple ``(op, value, operands)``: an operator name of the language, the literal or
the variable's name for a leaf (else ``None``), and the classes of its operands. An n-ary sum is ``("sum", (constant,
coefficients), operands)``. All nodes of a class have equal values for every value of the variables; ``bounds`` gives
the inclusive range of that value, from which nodes are priced, and ``weights`` how often it is computed where that is
more than once: in the body of a reduction once per step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Payload = int | str | tuple[int, tuple[int, ...]] | None
Node = tuple[str, Payload, tuple[int, ...]]
Bounds = tuple[int, int]


@dataclass
class EGraph:
    """Classes of equal nodes, the bounds of each class, and the classes that are wanted."""

    classes: dict[int, list[Node]] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of e-nodes."""
        return sum(map(len, self.classes.values()))
