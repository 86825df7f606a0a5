"""What egglog has beyond an e-graph modulo the theory, row by row, each read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from eqsat.egraph.matching import Match
from eqsat.egraph.program import CONTAINERS, PLAIN
from eqsat.egraph.tables import Tables
from eqsat.lang.ops import Op, for_each_own
from eqsat.optimizer.limits import LIMITS

_BY_CONSTRUCTOR = {name: op for op, (name, _) in PLAIN.items()}
_OPERATOR = {name: op for op, name in CONTAINERS.items()}


@for_each_own
def _add_operator(op: Op) -> None:
    name, _ = PLAIN[op.name]
    _BY_CONSTRUCTOR[name] = op.name


class Row(NamedTuple):
    """A node over egglog's names of classes, and the name of its class."""

    output: Any
    op: str
    payload: Any
    operands: tuple[Any, ...]


class WrittenSum(NamedTuple):
    """A sum of which terms are alike or zero, as it is: (coefficient, name of a class) pairs."""

    output: Any
    constant: int
    terms: list[tuple[int, Any]]


class Reader:
    """Reads the rows of one saturation."""

    def __init__(self, tables: Tables, is_late: Callable[[float], bool]) -> None:
        self.tables, self.is_late = tables, is_late
        self._seen: set[tuple[Any, ...]] = set()

    def nodes(self, rows: Mapping[str, Any]) -> tuple[list[Row], list[WrittenSum]]:
        """The nodes that were not read before, in time, and the sums among them that are not simplified."""
        sums: list[WrittenSum] = []
        nodes: list[Row] = []
        for node in self._nodes(rows, sums):
            if len(nodes) % LIMITS.rows_per_look == 0 and self.is_late(0):
                break
            nodes.append(node)
        return nodes, sums

    def _nodes(self, rows: Mapping[str, Any], sums: list[WrittenSum]) -> Iterator[Row]:
        below: dict[Any, list[tuple[str, Any]]] = {}
        for name in ("Lt", "Eq"):
            for row in rows.get(name, ()):
                below.setdefault(row.output, []).append((name, row.inputs))
        terms = {row.output: row.inputs for row in rows.get("Sc", ())}
        integer, members, seen = self.tables.integer, self.tables.members, self._seen
        for name in ("Sum", *_BY_CONSTRUCTOR, *_OPERATOR):
            for row in rows.get(name, ()):
                inputs = row.inputs
                key = (name, row.output, *inputs)
                if name == "Not":
                    key = (*key, len(below.get(inputs[0], ())))
                if key in seen:
                    continue
                seen.add(key)
                if name == "Sum":
                    written = [terms[term] for term in members(inputs[0])]
                    total: dict[Any, int] = {}
                    for k, a in written:
                        total[a] = total.get(a, 0) + integer(k)
                    kept = {a: k for a, k in total.items() if k}
                    if len(kept) != len(written):
                        sums.append(WrittenSum(row.output, integer(inputs[1]), [(integer(k), a) for k, a in written]))
                    yield Row(row.output, "sum", (integer(inputs[1]), tuple(kept.values())), tuple(kept))
                elif name in _OPERATOR:
                    yield Row(row.output, _OPERATOR[name], None, tuple(members(inputs[0])))
                else:
                    yield Row(row.output, _BY_CONSTRUCTOR[name], None, tuple(inputs))
                    if name == "Not":
                        for of, (x, y) in below.get(inputs[0], ()):
                            yield Row(row.output, *(("le", None, (y, x)) if of == "Lt" else ("ne", None, (x, y))))

    def matches(self, rows: Mapping[str, Any], home: Mapping[Any, int]) -> Iterator[Match]:
        """The matches of rules about reductions that were not read before, of classes that are known.

        ``home`` are the classes by egglog's names.
        """
        integer, members = self.tables.integer, self.tables.members
        terms: dict[Any, Any] = {}
        for query in self.tables.queries:
            for row in rows.get(query.table, ()):
                key = (query.table, *row.inputs)
                whole, *values = row.inputs
                if key in self._seen or whole not in home:
                    continue
                terms = terms or {term.output: term.inputs for term in rows.get("Sc", ())}
                letters, literals, rest, numbers = {}, {}, [], {"constant": 0, "factor": 1}
                for (name, sort), value in zip(query.columns, values, strict=True):
                    if sort == "E":
                        letters[name] = home.get(value)
                    elif sort == "MT":
                        rest = [(home.get(a), integer(k)) for k, a in [terms[t] for t in members(value)]]
                    elif sort == "ME":
                        rest = [(home.get(a), 1) for a in members(value)]
                    elif name in numbers:
                        numbers[name] = integer(value)
                    else:
                        literals[name] = integer(value)
                if None in letters.values() or any(a is None for a, _ in rest):
                    continue
                self._seen.add(key)
                yield Match(
                    query,
                    home[whole],
                    cast(dict[str, int], letters),
                    literals,
                    tuple(cast(list[tuple[int, int]], rest)),
                    **numbers,
                )
