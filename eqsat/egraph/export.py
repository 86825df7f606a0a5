"""A frozen e-graph in the language's own operators: rows of egglog's tables, as plain data, become nodes of classes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from eqsat.egraph.compiling import CONSTRUCTORS, REDUCERS
from eqsat.extract.graph import EGraph, Node
from eqsat.lang.expr import Expr
from eqsat.lang.ops import OPS, REDUCTIONS, Bounds, reduction_bounds, trip_bounds
from eqsat.lang.terms import buffer_key

#: Operators by constructor: of terms alone, and of a term and a literal.
OPERATORS = {constructor: op for op, constructor in CONSTRUCTORS.items()}
REDUCTION_OPERATORS = {constructor: op for op, constructor in REDUCERS.items()}
LITERAL_OPERATORS = {f"{CONSTRUCTORS[op]}K": op for op in ("add", "mul", "floordiv", "mod")}
#: Constructors of conditions, and those of operands that may be conditions or numbers.
_CONDITIONS = frozenset({"True", "False"} | {CONSTRUCTORS[name] for name in CONSTRUCTORS if OPS[name].gives == "b"})
_OF_EITHER = frozenset({CONSTRUCTORS[name] for name in CONSTRUCTORS if "s" in OPS[name].takes})

#: A constructor, and its operands: the numbers of classes, and literals and names as text.
Row = tuple[str, tuple["int | str", ...]]


class TwoValuesError(Exception):
    """Two values in one class; the message says which."""


class Numbering:
    """Integers for classes, and for literals that have no class of their own."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.next = 0

    def fresh(self) -> int:
        """A number that nothing has."""
        self.next += 1
        return self.next - 1

    def __getitem__(self, key: object) -> int:
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = self.fresh()
        return number


@dataclass
class Tables:
    """What egglog's tables hold, classes by their numbers.

    Attributes
    ----------
    rows : dict from int to list of Row
        The nodes of each class.
    low, high : dict from int to int
        The bounds that the analysis has found.
    leaves : mapping from str to (int, int)
        The bounds of each variable, and of literals that are too large for egglog.
    indices, arrays : sequence of Expr
        The indices of reductions and the arrays of loads, by their numbers.
    """

    leaves: Mapping[str, Bounds]
    indices: Sequence[Expr] = ()
    arrays: Sequence[Expr] = ()
    rows: dict[int, list[Row]] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    high: dict[int, int] = field(default_factory=dict)

    def add(self, number: int, constructor: str, operands: tuple[int | str, ...]) -> None:
        """Add a row to the class of that number."""
        self.rows.setdefault(number, []).append((constructor, operands))


def translated(tables: Tables, numbering: Numbering) -> EGraph:
    """The e-graph, without roots.

    Raises
    ------
    TwoValuesError
        If a class has two literals, or bounds that no value lies within.
    """
    return _Translation(tables, numbering).graph


def _kind(node: Node, is_condition: Mapping[int, bool]) -> bool | None:
    """Whether a node is a condition; None if it is no term, or not all of its operands are known to be."""
    op, _, operands = node
    if not operands:
        return op == "bool"
    if not all(operand in is_condition for operand in operands):
        return None
    if op == "load":
        return None if any(is_condition[operand] for operand in operands[1:]) else is_condition[operands[0]]
    if op in REDUCTIONS:
        return None if any(is_condition[operand] for operand in operands) else False
    sorts = [(sort, is_condition[operand]) for sort, operand in zip(OPS[op].takes, operands, strict=True)]
    shared = {kind for sort, kind in sorts if sort == "s"}
    if len(shared) > 1 or any((sort == "b") != kind for sort, kind in sorts if sort != "s"):
        return None
    return shared.pop() if OPS[op].gives == "s" else OPS[op].gives == "b"


class _Translation:
    """The e-graph as it is made from the rows."""

    def __init__(self, tables: Tables, numbering: Numbering) -> None:
        self.tables = tables
        self.numbering = numbering
        self.graph = EGraph()
        self.leaves: dict[int, Expr] = {}
        self._translate()
        self._sort()
        self._bound()
        self._check()

    def _translate(self) -> None:
        """Rows into nodes: literals become operands, and ``sub neg le ne`` are added where they apply."""
        self.literals: dict[int, int] = {}
        self.scaled: dict[tuple[int, int], int] = {}
        self.by_constructor: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        for number, rows in self.tables.rows.items():
            for constructor, operands in rows:
                self.by_constructor.setdefault((number, constructor), []).append(operands)
                if constructor == "MulK":
                    self.scaled[operands[0], int(operands[1])] = number  # type: ignore[index]
                elif constructor == "Num":
                    self.literals[int(operands[0])] = number
        for number, rows in self.tables.rows.items():
            if any(row[0] in ("Cons", "Nil") for row in rows):
                # the indices of a load, which are no term
                continue
            # a known value needs no other e-node
            known = [row for row in rows if row[0] in ("Num", "True", "False")]
            nodes = dict.fromkeys(node for row in known or rows for node in self._nodes(*row))
            self.graph.classes[number] = [node for node in nodes if number not in node[2]]

    def _nodes(self, constructor: str, operands: tuple[Any, ...]) -> Iterable[Node]:
        match constructor:
            case "Num":
                yield "const", int(operands[0]), ()
            case "True" | "False":
                yield "bool", constructor == "True", ()
            case "Var":
                name = operands[0].strip('"')
                # a literal beyond egglog's integers travels under its digits
                yield ("const", int(name), ()) if name.lstrip("-").isdigit() else ("var", name, ())
            case "Idx":
                yield "var", cast(str, self.tables.indices[int(operands[0])].value), ()
            case "Load":
                array = self.leaf("Load", self.tables.arrays[int(operands[1])])
                yield from (("load", None, (array, *indices)) for indices in self._listed(operands[0]))
            case _ if constructor in REDUCTION_OPERATORS:
                body, low, high, index = operands
                binder = self.leaf("Idx", self.tables.indices[int(index)])
                yield REDUCTION_OPERATORS[constructor], None, (body, binder, low, high)
            case "AddK":
                yield from self._offset(operands[0], int(operands[1]))
            case "MulK":
                yield from self._scale(operands[0], int(operands[1]))
            case "DivK" | "ModK":
                yield LITERAL_OPERATORS[constructor], None, (operands[0], self.literal(int(operands[1])))
            case _:
                yield OPERATORS[constructor], None, operands
                yield from self._second_node(constructor, operands)

    def leaf(self, kind: str, term: Expr) -> int:
        """The class of an array, or of an index where it is bound: it is no number there, whatever equals it."""
        number = self.numbering[kind, term]
        if number not in self.graph.classes:
            name = buffer_key(term) if term.op == "buffer" else cast(str, term.value)
            self.graph.classes[number] = [(term.op, name, ())]
            self.leaves[number] = term
        return number

    def _listed(self, number: int) -> Iterable[tuple[int, ...]]:
        """What the class of a list holds."""
        for constructor, operands in self.tables.rows[number]:
            if constructor == "Nil":
                yield ()
            else:
                first, rest = cast(tuple[int, int], operands)
                yield from ((first, *others) for others in self._listed(rest))

    def _offset(self, operand: int, offset: int) -> Iterable[Node]:
        yield "add", None, (operand, self.literal(offset))
        if offset < 0:
            yield "sub", None, (operand, self.literal(-offset))
        for positive in self._negated(operand):
            yield "sub", None, (self.literal(offset), positive)

    def _scale(self, operand: int, scale: int) -> Iterable[Node]:
        yield "mul", None, (operand, self.literal(scale))
        if scale < 0:
            yield "neg", None, (self.times(operand, -scale),)

    def _second_node(self, constructor: str, operands: tuple[int, ...]) -> Iterable[Node]:
        match constructor:
            case "Add":
                for left, right in (operands, operands[::-1]):
                    for positive in self._negated(right):
                        yield "sub", None, (left, positive)
            case "Lt":
                left, right = operands
                for operand, offset in self._rows_of(right, "AddK"):
                    if offset == "1":
                        yield "le", None, (left, operand)
                for operand, offset in self._rows_of(left, "AddK"):
                    if offset == "-1":
                        yield "le", None, (operand, right)
            case "Not":
                for left, right in self._rows_of(operands[0], "Eq"):
                    yield "ne", None, (left, right)
                for left, right in self._rows_of(operands[0], "Lt"):
                    yield "le", None, (right, left)

    def _rows_of(self, number: int, constructor: str) -> Sequence[tuple[Any, ...]]:
        return self.by_constructor.get((number, constructor), ())

    def _negated(self, number: int) -> Iterable[int]:
        """Classes whose negative is in class ``number``."""
        for operand, scale in self._rows_of(number, "MulK"):
            if scale.startswith("-"):
                yield self.times(operand, -int(scale))

    def times(self, operand: int, scale: int) -> int:
        """The class of ``operand * scale``, made if there is none."""
        if scale == 1:
            return operand
        number = self.scaled.get((operand, scale))
        if number is None:
            number = self.scaled[operand, scale] = self.numbering["MulK", operand, scale]
            self.graph.classes[number] = [("mul", None, (operand, self.literal(scale)))]
        return number

    def literal(self, value: int) -> int:
        """The class of a literal, made if there is none."""
        number = self.literals.get(value)
        if number is None:
            number = self.literals[value] = self.numbering["Num", value]
            self.graph.classes[number] = [("const", value, ())]
        return number

    def _sort(self) -> None:
        """Leave out what is no term: a letter of a rule stands for either operand of ``==``, number or condition."""
        tables = self.tables.rows
        conditions = {n for n, rows in tables.items() if not _CONDITIONS.isdisjoint([name for name, _ in rows])}
        if any(array.is_bool for array in self.tables.arrays):
            arrays = self.tables.arrays
            loads = ((n, row) for n, rows in tables.items() for row in rows if row[0] == "Load")
            conditions |= {n for n, (_, operands) in loads if arrays[int(operands[1])].is_bool}
        either = (operands for rows in tables.values() for name, operands in rows if name in _OF_EITHER)
        if all(conditions.isdisjoint(operands) for operands in either):
            return
        classes = self.graph.classes
        is_condition = {number: term.is_bool for number, term in self.leaves.items()}
        self._settle(lambda node: _kind(node, is_condition), is_condition)
        for number, nodes in list(classes.items()):
            kind = is_condition.get(number)
            if number in self.leaves:
                continue
            if kind is None:
                del classes[number]
            else:
                classes[number] = [node for node in nodes if _kind(node, is_condition) is kind]

    def _bound(self) -> None:
        """The bounds of every class: the analysis's, else those of a node."""
        low, high = self.tables.low, self.tables.high
        bounds = {n: (low[n], high[n]) for n in self.graph.classes if n in low and n in high}
        bounds |= {number: (term.vmin, term.vmax) for number, term in self.leaves.items()}
        self._settle(lambda node: self._node_bounds(node, bounds), bounds)
        if len(bounds) < len(self.graph.classes) and self.tables.indices:
            self._leave_out(self.graph.classes.keys() - bounds.keys())
        if len(bounds) < len(self.graph.classes):
            raise AssertionError("an e-class has no term")
        self.graph.bounds = bounds

    def _leave_out(self, numbers: Collection[int]) -> None:
        """Leave out classes that have no term: products with more digits than are accepted."""
        classes = self.graph.classes
        for number in numbers:
            del classes[number]
        for number, nodes in classes.items():
            classes[number] = [node for node in nodes if not any(operand in numbers for operand in node[2])]

    def _settle[T](self, find: Callable[[Node], T | None], found: dict[int, T]) -> None:
        """Find of every class what one of its nodes says once enough of its operands is ``found``."""
        waiting = deque([number for number in self.graph.classes if number not in found])
        users: dict[int, list[int]] = {}
        for number in waiting:
            for operand in {operand for node in self.graph.classes[number] for operand in node[2]}:
                users.setdefault(operand, []).append(number)
        while waiting:
            number = waiting.popleft()
            if number not in found:
                each = map(find, self.graph.classes[number])
                value = next((value for value in each if value is not None), None)
                if value is not None:
                    found[number] = value
                    waiting += users.get(number, ())

    def _node_bounds(self, node: Node, bounds: Mapping[int, Bounds]) -> Bounds | None:
        op, value, operands = node
        if op in ("const", "bool"):
            return int(cast(int, value)), int(cast(int, value))
        if op == "var":
            return self.tables.leaves[str(value)]
        if any(operand not in bounds for operand in operands):
            return None
        if op == "load":
            return bounds[operands[0]]
        if op in REDUCTIONS:
            body, _, low, high = [bounds[operand] for operand in operands]
            return reduction_bounds(op, body, trip_bounds(low, high))
        return OPS[op].bounds(*[bounds[operand] for operand in operands])

    def _check(self) -> None:
        """The tripwires: one class, one value."""
        for number, nodes in self.graph.classes.items():
            literals = sorted({str(node[1]) for node in nodes if node[0] in ("const", "bool")})
            low, high = self.graph.bounds[number]
            if len(literals) > 1 or low > high:
                raise TwoValuesError(" and ".join(literals) if len(literals) > 1 else f"bounds [{low}, {high}]")
