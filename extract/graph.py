"""A frozen e-graph as plain data: what the extractors read.

A class is an integer. A node is a triple ``(op, value, operands)``: an operator name of the language, the literal or
the variable's name for a leaf (else ``None``), and the classes of its operands. An n-ary sum is ``("sum", (constant,
coefficients), operands)``. All nodes of a class have equal values for every value of the variables; ``bounds`` gives
the inclusive range of that value, from which nodes are priced, and ``weights`` how often it is computed where that is
more than once: in the body of a reduction once per step.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, cast

Payload = int | str | tuple[int, tuple[int, ...]] | None
Node = tuple[str, Payload, tuple[int, ...]]
Bounds = tuple[int, int]

#: The operator and payload of a node that says that its class equals its operand: a sum of that alone.
EQUALITY = ("sum", (0, (1,)))
#: How often a loop is taken to run whose range has no end.
UNKNOWN_TRIPS = 1024


def trips(values: int) -> int:
    """How often a loop over some values is taken to run: :data:`UNKNOWN_TRIPS` where it may run any number of times."""
    return UNKNOWN_TRIPS if values == inf else values


def reached[T](roots: Iterable[T], below: Callable[[T], Iterable[T]]) -> dict[T, None]:
    """All that is reached from ``roots``, each once, by steps to what ``below`` says is below it."""
    found: dict[T, None] = {}
    stack = list(roots)
    while stack:
        if (part := stack.pop()) not in found:
            found[part] = None
            stack += below(part)
    return found


def sum_payload(payload: Payload) -> tuple[int, tuple[int, ...]]:
    """The constant and the coefficients of an n-ary sum, by its payload."""
    return cast(tuple[int, tuple[int, ...]], payload)


def sum_terms(node: Node) -> tuple[int, dict[int, int]]:
    """The constant of an n-ary sum, and its coefficients by class."""
    constant, coefficients = sum_payload(node[1])
    return constant, dict(zip(node[2], coefficients, strict=True))


def sum_of(multiples: Iterable[tuple[int, int]], constant: int) -> Node:
    """The node that adds multiples of classes, each given with its coefficient, and a constant; a literal without."""
    total: dict[int, int] = {}
    for c, k in multiples:
        total[c] = total.get(c, 0) + k
    return sum_by(total, constant)


def sum_by(terms: Mapping[int, int], constant: int) -> Node:
    """The node that adds classes, by class its coefficient, and a constant; a literal without."""
    pairs = sorted([(c, k) for c, k in terms.items() if k])
    if not pairs:
        return "const", constant, ()
    return "sum", (constant, tuple([k for _, k in pairs])), tuple([c for c, _ in pairs])


def added(choice: Mapping[int, Node], node: Node) -> tuple[int, dict[int, int]] | None:
    """The constant and the classes that a node adds, with their coefficients; ``None`` if it does something else.

    ``choice`` says which classes are literals.
    """
    op, payload, args = node
    if op == "sum":
        return sum_terms(node)
    if op in ("add", "sub"):
        sign = 1 if op == "add" else -1
        return 0, ({args[0]: 1, args[1]: sign} if args[0] != args[1] else {args[0]: 1 + sign})
    if op == "neg":
        return 0, {args[0]: -1}
    for a, b in (args, args[::-1]) if op == "mul" else ():
        if (by := choice[b])[0] == "const":
            return 0, {a: cast(int, by[1])}
    return (cast(int, payload), {}) if op == "const" else None


class Flat(NamedTuple):
    """A chosen sum with each part that nothing else uses written into it.

    ``terms`` has the coefficients of the classes that are left; those of ``alone`` have no use outside of the sum.
    ``parts`` are the classes that are written out: that of the sum first.
    """

    constant: int
    terms: dict[int, int]
    alone: list[int]
    parts: list[int]


def flattened(choice: Mapping[int, Node], c: int, uses: Mapping[int, int], kept: Container[int] = ()) -> Flat:
    """The sum chosen for a class, flat but for the parts that are ``kept``.

    ``uses`` says how often each class is an operand of what is chosen, or a root.
    """
    constant, terms, parts = 0, {c: 1}, []
    inside: dict[int, int] = {}
    pending = [c]
    while pending:
        own = added(choice, choice[a := pending.pop()])
        if own is None or (a in kept and a != c):
            continue
        k = terms.pop(a)
        parts.append(a)
        constant += k * own[0]
        for b, j in own[1].items():
            if choice[b][0] == "const":
                constant += k * j * cast(int, choice[b][1])
            else:
                terms[b] = terms.get(b, 0) + k * j
        for b in choice[a][2]:
            inside[b] = inside.get(b, 0) + 1
        pending += [b for b in own[1] if b in terms and inside[b] == uses[b]]
    terms = {a: k for a, k in terms.items() if k}
    return Flat(constant, terms, [a for a in terms if inside.get(a, 0) == uses[a]], parts)


@dataclass
class EGraph:
    """An e-graph as plain data: classes of equal e-nodes, and what is known of each class.

    Attributes
    ----------
    classes : dict of int to list of Node
        The e-nodes of each class; a node is ``(operator, payload, classes of its operands)``.
    bounds : dict of int to (int, int)
        Inclusive bounds of the values of each class.
    roots : list of int
        The classes that are wanted.
    weights : dict of int to int
        How often a class is computed, where that is not once.

    >>> graph = EGraph({0: [("var", "x", ())], 1: [("floordiv", None, (0, 2))], 2: [("const", 8, ())]}, roots=[1])
    >>> len(graph)
    3
    """

    classes: dict[int, list[Node]] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        # bounds that were read have the infinities of floats, which equal no other integer's
        return isinstance(other, EGraph) and self.to_dict() == other.to_dict()

    def __len__(self) -> int:
        """The number of e-nodes."""
        return sum(map(len, self.classes.values()))

    def copy(self) -> EGraph:
        """The same graph, to which nodes may be added."""
        classes = {c: [*nodes] for c, nodes in self.classes.items()}
        return EGraph(classes, dict(self.bounds), [*self.roots], dict(self.weights))

    def equal_classes(self, c: int) -> Iterable[int]:
        """A class, and those that nodes of it, or of these, say to be equal.

        >>> graph = EGraph({0: [("var", "x", ())], 1: [(*EQUALITY, (0,)), ("neg", None, (2,))], 2: [(*EQUALITY, (1,))]})
        >>> [*graph.equal_classes(2)]
        [2, 1, 0]
        """
        return reached([c], lambda home: [node[2][0] for node in self.classes[home] if node[:2] == EQUALITY])

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON has it: numbers of classes as text, tuples as lists, ``None`` for no bound.

        :meth:`from_dict` reads it.

        >>> graph = EGraph({0: [("var", "x", ())], 1: [("sum", (3, (2,)), (0,))]}, {0: (0, 9), 1: (3, 21)}, [1])
        >>> graph.to_dict()["classes"]
        {'0': [['var', 'x', []]], '1': [['sum', [3, [2]], [0]]]}
        >>> EGraph.from_dict(graph.to_dict()) == graph
        True
        """
        return {
            "classes": {str(c): [_to_lists(node) for node in nodes] for c, nodes in self.classes.items()},
            "bounds": {str(c): [*map(_to_finite, ends)] for c, ends in self.bounds.items()},
            "roots": [*self.roots],
            "weights": {str(c): weight for c, weight in self.weights.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> EGraph:
        """The graph that :meth:`to_dict` wrote.

        Raises
        ------
        ValueError
            If ``record`` is none of these.

        >>> EGraph.from_dict({})
        Traceback (most recent call last):
        ValueError: the record is no e-graph: give what EGraph.to_dict() returned
        """
        try:
            classes = {int(c): [_to_node(*node) for node in nodes] for c, nodes in record["classes"].items()}
            bounds = {int(c): _to_bounds(*ends) for c, ends in record["bounds"].items()}
            roots, weights = [*record["roots"]], {int(c): weight for c, weight in record["weights"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError("the record is no e-graph: give what EGraph.to_dict() returned") from None
        return cls(classes, bounds, roots, weights)


def require_graph(given: object) -> None:
    """Raise ``TypeError`` unless ``given`` is an e-graph."""
    if not isinstance(given, EGraph):
        raise TypeError(f"a graph must be an EGraph, such as result.graph, not a value of type {type(given).__name__}")


def _to_lists(node: Node) -> list[Any]:
    op, value, operands = node
    return [op, [value[0], [*value[1]]] if isinstance(value, tuple) else value, [*operands]]


def _to_finite(end: int) -> int | None:
    return None if abs(end) == inf else end


def _to_bounds(low: int | None, high: int | None) -> Bounds:
    return cast(int, -inf) if low is None else low, cast(int, inf) if high is None else high


def _to_node(op: str, value: Any, operands: list[int]) -> Node:
    return op, (value[0], tuple(value[1])) if isinstance(value, list) else value, tuple(operands)


def united(graph: EGraph, pairs: Iterable[Sequence[int]]) -> tuple[EGraph, dict[int, int]]:
    """``graph`` with the classes of each pair as one, and so all that follows by congruence; and where each class is.

    >>> nodes = [("var", "x", ()), ("var", "y", ()), ("neg", None, (0,)), ("neg", None, (1,))]
    >>> graph = EGraph({c: [node] for c, node in enumerate(nodes)}, dict.fromkeys(range(4), (-9, 9)))
    >>> found, home = united(graph, [(0, 1)])
    >>> found.classes, home
    ({0: [('var', 'x', ()), ('var', 'y', ())], 2: [('neg', None, (0,))]}, {0: 0, 1: 0, 2: 2, 3: 2})
    """
    parent = {c: c for c in graph.classes}

    def find(c: int) -> int:
        while parent[c] != c:
            parent[c] = parent[parent[c]]
            c = parent[c]
        return c

    equal: Iterable[Sequence[int]] = pairs
    while True:
        for x, y in equal:
            low, high = sorted((find(x), find(y)))
            parent[high] = low
        classes, equal = _rebuilt(graph, find)
        if not equal:
            break
    bounds: dict[int, Bounds] = {}
    weights: dict[int, int] = {}
    for c in graph.classes:
        home = find(c)
        low, high = graph.bounds[c]
        least, most = bounds.get(home, (low, high))
        bounds[home] = max(low, least), min(high, most)
        if graph.weights:
            weight = graph.weights.get(c, 1)
            weights[home] = min(weight, weights.get(home, weight))
    places = {c: find(c) for c in graph.classes}
    return EGraph(classes, bounds, [places[c] for c in graph.roots], weights), places


def _rebuilt(graph: EGraph, find: Callable[[int], int]) -> tuple[dict[int, list[Node]], list[tuple[int, int]]]:
    """The nodes of each class over the classes that ``find`` says these are, and pairs that have one node both."""
    owner: dict[Node, int] = {}
    classes: dict[int, list[Node]] = {}
    equal: list[tuple[int, int]] = []
    for c, nodes in graph.classes.items():
        home = find(c)
        own = classes.setdefault(home, [])
        for node in nodes:
            canonical = _with_operands(node, tuple([find(a) for a in node[2]]))
            other = owner.setdefault(canonical, home)
            if other != home:
                equal.append((other, home))
            elif canonical not in own and home not in canonical[2]:
                own.append(canonical)
    return classes, equal


def _with_operands(node: Node, operands: tuple[int, ...]) -> Node:
    """``node`` with other operands; a sum adds those that are equal."""
    op, value, _ = node
    if op != "sum":
        return op, value, operands
    constant, coefficients = sum_payload(value)
    return sum_of(zip(operands, coefficients, strict=True), constant)
