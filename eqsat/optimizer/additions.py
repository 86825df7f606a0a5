"""What rules have made in egglog, as e-nodes of the graph.

The rows that are new are read (:class:`Reader`); they become e-nodes, or unite classes (:class:`Additions`). What rules
of a user's own found atoms to equal is carried to the values in which these atoms stand.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, cast

from eqsat.alternatives.builder import Builder
from eqsat.egraph.compilation import Match, ReductionQuery
from eqsat.egraph.program import CONTAINERS, PLAIN
from eqsat.egraph.tables import Tables
from eqsat.extract.graph import EQUALITY, Node, sum_of, sum_payload
from eqsat.lang.errors import TooWideError, UnsoundUnionError
from eqsat.lang.expr import Expr, brief, make, substitute
from eqsat.lang.ops import REDUCTIONS, Bounds, Op, for_each_own, linear_bounds
from eqsat.lang.traversal import is_index, topological
from eqsat.optimizer.limits import LIMITS
from eqsat.theory.forms import LinearForm, Value, as_term, combination, literal

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
    """A sum that is not simplified: some of its terms are alike, or zero. Terms are (coefficient, name of a class)."""

    output: Any
    constant: int
    terms: list[tuple[int, Any]]


class Reader:
    """Reads the rows of one saturation."""

    def __init__(self, tables: Tables, is_late: Callable[[float], bool]) -> None:
        self.tables, self.is_late = tables, is_late
        self._seen: set[tuple[Any, ...]] = set()

    def nodes(self, rows: Mapping[str, Any]) -> tuple[list[Row], list[WrittenSum]]:
        """The nodes that were not read before, in time, and those of them that are sums which are not simplified."""
        sums: list[WrittenSum] = []
        nodes: list[Row] = []
        for found in self._nodes(rows):
            if isinstance(found, WrittenSum):
                sums.append(found)
                continue
            if len(nodes) % LIMITS.rows_per_look == 0 and self.is_late(0):
                break
            nodes.append(found)
        return nodes, sums

    def _nodes(self, rows: Mapping[str, Any]) -> Iterator[Row | WrittenSum]:
        """The nodes that were not read before; before one that is simplified, the sum as it is written."""
        # by class of a comparison, its complements
        opposites: dict[Any, list[tuple[str, tuple[Any, ...]]]] = defaultdict(list)
        for row in rows.get("Lt", ()):
            opposites[row.output].append(("le", tuple(row.inputs[::-1])))
        for row in rows.get("Eq", ()):
            opposites[row.output].append(("ne", tuple(row.inputs)))
        terms = {row.output: row.inputs for row in rows.get("Sc", ())}
        members, seen = self.tables.members, self._seen
        for name in ("Sum", *_BY_CONSTRUCTOR, *_OPERATOR):
            for row in rows.get(name, ()):
                output, inputs = row.output, row.inputs
                complements = opposites.get(inputs[0], ()) if name == "Not" else ()
                key = (name, output, *inputs, len(complements))
                if key in seen:
                    continue
                seen.add(key)
                if name == "Sum":
                    yield from self._sum(output, [terms[term] for term in members(inputs[0])], inputs[1])
                elif name in _OPERATOR:
                    yield Row(output, _OPERATOR[name], None, tuple(members(inputs[0])))
                else:
                    yield Row(output, _BY_CONSTRUCTOR[name], None, tuple(inputs))
                    for op, operands in complements:
                        yield Row(output, op, None, operands)

    def _sum(self, output: Any, terms: Sequence[tuple[Any, Any]], constant: Any) -> Iterator[Row | WrittenSum]:
        """The node of a sum of these terms, like ones collected; before it the sum as it is, if some are alike."""
        integer = self.tables.integer
        written = [(integer(k), a) for k, a in terms]
        total: dict[Any, int] = {}
        for k, a in written:
            total[a] = total.get(a, 0) + k
        kept = {a: k for a, k in total.items() if k}
        if len(kept) != len(written):
            yield WrittenSum(output, integer(constant), written)
        yield Row(output, "sum", (integer(constant), tuple(kept.values())), tuple(kept))

    def matches(self, rows: Mapping[str, Any], home: Mapping[Any, int]) -> Iterator[Match]:
        """The matches of rules about reductions that were not read before, of classes that are known.

        ``home`` are the classes by egglog's names.
        """
        terms: dict[Any, Any] = {}
        for query in self.tables.queries:
            for row in rows.get(query.table, ()):
                key = (query.table, *row.inputs)
                if key in self._seen or row.inputs[0] not in home:
                    continue
                terms = terms or {term.output: term.inputs for term in rows.get("Sc", ())}
                match = self._match(query, row.inputs, terms, home)
                if match is not None:
                    self._seen.add(key)
                    yield match

    def _match(
        self, query: ReductionQuery, row: Sequence[Any], terms: Mapping[Any, Any], home: Mapping[Any, int]
    ) -> Match | None:
        """The match that a row is; ``None`` if it has a class that is not known. ``terms`` are those of sums."""
        integer, members = self.tables.integer, self.tables.members
        whole, *values = row
        letters: dict[str, int | None] = {}
        rest: list[tuple[int | None, int]] = []
        literals: dict[str, int] = {}
        for (name, sort), value in zip(query.columns, values, strict=True):
            if sort == "E":
                letters[name] = home.get(value)
            elif sort == "MT":
                rest = [(home.get(a), integer(k)) for k, a in [terms[t] for t in members(value)]]
            elif sort == "ME":
                rest = [(home.get(a), 1) for a in members(value)]
            else:
                literals[name] = integer(value)
        if None in letters.values() or any(a is None for a, _ in rest):
            return None
        constant, factor = literals.pop("constant", 0), literals.pop("factor", 1)
        known, others = cast(dict[str, int], letters), cast(list[tuple[int, int]], rest)
        return Match(query, home[whole], known, literals, tuple(others), constant, factor)


class Inserted(Protocol):
    """What egglog has of the graph: :class:`eqsat.optimizer.insertion.Insertion`."""

    tables: Tables
    has_own_rules: bool
    normal: dict[int, Node]
    apart: set[tuple[int, Node]]

    def unite(self, c: int, other: int) -> None: ...

    def note_held(self, c: int, node: Node) -> None: ...


class Additions:
    """Adds what rules found; what egglog has of it already is noted in ``insertion``."""

    def __init__(self, builder: Builder, insertion: Inserted) -> None:
        self.builder, self.insertion = builder, insertion
        self.classes, self.values = builder.graph.classes, builder.values
        self.has_own_rules = insertion.has_own_rules
        # what rules found is carried to what is around it for a user's own: those that are shipped gain nothing by that
        is_canonical = builder.theory.is_canonical
        self.equations = _Equations(builder) if self.has_own_rules and is_canonical else None
        #: By class the sums that a user's own rules found since these were last combined.
        self.found_sums: dict[int, list[Node]] = {}
        #: Whether a multiple of a term was found to equal something else since this was last set.
        self.has_multiples = False

    def add(self, op: str, payload: Any, operands: tuple[int, ...]) -> int | None:
        """Add a node over classes to the class of its value; that class, or ``None`` if the node is no term."""
        value = self.value(op, payload, operands)
        if value is None:
            return None
        c = self.builder.add_class(value)
        self.add_found(c, op, payload, operands)
        return c

    def unite(self, match: Match, c: int) -> None:
        """Add to the class that has the match as a part the node with the class ``c`` in the place of that part."""
        kept = match.query.kept
        if kept == "sum" and (match.rest or match.constant or match.factor != 1):
            pairs = [*match.rest, (c, match.factor)]
            self.add_found(
                match.whole, "sum", (match.constant, tuple([k for _, k in pairs])), tuple([a for a, _ in pairs])
            )
        elif kept in CONTAINERS and match.rest:
            self.add_found(match.whole, kept, None, (*[a for a, _ in match.rest], c))
        else:
            self.link(match.whole, c)

    def link(self, c: int, other: int) -> None:
        """Unite two classes, in egglog too."""
        if c != other:
            self.equate(c, other)
            self.insertion.unite(c, other)

    def value(self, op: str, payload: Any, args: tuple[int, ...]) -> Value | None:
        """The value of a node over classes; ``None`` if it is no term."""
        values = [self.values[a] for a in args]
        if op == "sum":
            if not all(isinstance(v, LinearForm) for v in values):
                return None
            constant, coefficients = payload
            return combination(zip(cast(list[LinearForm], values), coefficients, strict=True), constant)
        terms = [*map(as_term, values)]
        try:
            return self.builder.value_of(reduce(partial(make, op), terms) if op in CONTAINERS else make(op, *terms))
        except (TooWideError, TypeError, ValueError):
            return None

    def add_found(self, c: int, op: str, payload: Any, args: tuple[int, ...], is_held: bool = False) -> None:
        """Add a node that egglog has to a class; ``is_held`` says that egglog has it as one of that class."""
        if self.equations is not None:
            self.equations.note(c, self.value(op, payload, args))
        if op == "sum":
            self._add_sum(c, payload, args, is_held)
        elif op in CONTAINERS:
            self._add_members(c, op, args)
        else:
            self.add_node(c, (op, None, args), is_held)

    def _add_sum(self, c: int, payload: Any, args: tuple[int, ...], is_held: bool) -> None:
        """Add a sum, its literals as part of its constant."""
        constant, coefficients = payload
        terms = [(a, k, literal(self.values[a])) for a, k in zip(args, coefficients, strict=True)]
        numbers = [n * k for _, k, n in terms if n is not None]
        node = sum_of([(a, k) for a, k, n in terms if n is None], constant + sum(numbers))
        if node[:2] == EQUALITY:
            self._add_other(c, node, is_held)
            return
        constant, coefficients = sum_payload(node[1]) if node[0] == "sum" else (cast(int, node[1]), ())
        ends = [self.builder.graph.bounds[a] for a in node[2]]
        self._check(c, linear_bounds(constant, zip(ends, coefficients, strict=True)))
        self.add_node(c, node, is_held)
        if self.has_own_rules and len(coefficients) > 1:
            self.found_sums.setdefault(c, []).append(node)
        if self.has_own_rules and len(coefficients) == 1 and not constant:
            # a term that longer sums have: what it equals may stand there
            multiple = self.builder.add_class(cast(LinearForm, self.value(*node)))
            if multiple != c:
                self.equate(c, multiple)
                self.has_multiples = True

    def _add_other(self, c: int, node: Node, is_held: bool) -> None:
        """Add to a class the node that is another class."""
        (other,) = node[2]
        if other == c:
            return
        if not self.builder.theory.is_canonical:
            self.equate(c, other)
        elif self.has_own_rules:
            self.link(c, other)
        else:
            # not the other way too: a choice might run in a circle
            self._check(c, self.builder.graph.bounds[other])
            self.add_node(c, node, is_held)

    def _add_members(self, c: int, op: str, members: tuple[int, ...]) -> None:
        """Add a container of these members as nodes of two operands each."""
        if len(members) == 1 or (len(members) > 2 and self._is_normal_extreme(c, op, members)):
            return
        left = members[0]
        for member in members[1:-1]:
            value = self.value(op, None, (left, member))
            if value is None:
                return
            inner = self.builder.add_class(value)
            self.add_node(inner, (op, None, tuple(sorted((left, member)))))
            left = inner
        self.add_node(c, (op, None, tuple(sorted((left, members[-1])))))

    def _is_normal_extreme(self, c: int, op: str, members: Sequence[int]) -> bool:
        """Whether these are the operands of the extreme that a class is by its normal form, and so by its nodes."""
        if op not in ("min", "max"):
            return False
        theory, form = self.builder.theory, cast(LinearForm, self.values[c])
        minimum = theory.outer_minimum(form) if theory.is_canonical else None
        if minimum is None or (form.terms[minimum] > 0) != (op == "min"):
            return False
        return {self.values[member] for member in members} == {*theory.cases(form, minimum)}

    def add_node(self, c: int, node: Node, is_held: bool = False) -> None:
        """Add a node to a class, unless that is a number; ``is_held`` says that egglog has it as one of that class."""
        if literal(self.values[c]) is not None or self._is_index(c):
            # an index that is always the same number keeps its name, by which reductions bind it
            return
        nodes = self.classes[c]
        if not self.builder.classes.has_node(c, node):
            self.builder.add_node(c, node)
            if node[0] != "sum" and nodes[-1:] == [node] and isinstance(self.values[c], LinearForm):
                # of equal prices the first wins: an operator reads better than the sum that it stands for
                nodes.insert(0, nodes.pop())
        elif node[0] == "mod" and nodes[0] != node:
            nodes.remove(node)
            nodes.insert(0, node)
        if is_held:
            self.insertion.note_held(c, node)

    def _is_index(self, c: int) -> bool:
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else None
        return atom is not None and atom.op == "var" and is_index(atom)

    def equate(self, c: int, other: int) -> None:
        """Let two classes that the rules found equal have each other's nodes."""
        one, two = self.values[c], self.values[other]
        self._check(c, self.builder.graph.bounds[other])
        if self.equations is not None:
            self.equations.note(c, two)
            self.equations.note(other, one)
        self._add_equal(c, other)
        self._add_equal(other, c)

    def _add_equal(self, c: int, other: int) -> None:
        """Add to a class a node that is another one; if they are conditions, the nodes of the other."""
        value = self.values[other]
        for node in [_itself(other, value)] if isinstance(value, LinearForm) else [*self.classes[other]]:
            self.add_node(c, node)

    def _check(self, c: int, bounds: Bounds) -> None:
        """Refuse ``bounds`` in which no value of the class ``c`` lies, though rules say that it has them."""
        known = self.builder.graph.bounds[c]
        if known[1] < bounds[0] or bounds[1] < known[0]:
            value = self.values[c]
            term = brief(as_term(value))
            fired = ", ".join(name for name, count in self.insertion.tables.matches.items() if count) or "none"
            raise UnsoundUnionError(
                f"{term} lies in {[*known]}, and in {[*bounds]} by a false rule; rules that fired: {fired}"
            )

    def rewrite(self) -> None:
        """Add to classes their values in which atoms are replaced by what rules found them to equal.

        Egglog is not told that these are equal: of a sum that equals another, or zero, rules would make sums without
        end.
        """
        if self.equations is None:
            return
        pairs = self.equations.rewrite()
        self.builder.grow()
        for c, other in pairs:
            self._check(c, self.builder.graph.bounds[other])
            self._add_equal(c, other)
            if isinstance(value := self.values[other], LinearForm):
                self.insertion.apart.add((c, _itself(other, value)))


def _itself(c: int, form: LinearForm) -> Node:
    """The node that says that its class equals the class ``c`` of a form; of a number that number."""
    return sum_of([(c, 1)], 0) if form.terms else sum_of([], form.constant)


class _Equations:
    """Equations of atoms with values that do not follow from what the theory knows."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.values = builder, builder.values
        self._equations: dict[tuple[Expr, Value], None] = {}
        # the same for terms of the input that are no atoms, and how many of these the input was rewritten with
        self._written: dict[tuple[Value, Value], None] = {}
        self._written_done = 0
        # by class the number of equations that it was rewritten with
        self._rewritten: dict[int, int] = {}

    def note(self, c: int, other: Value | None) -> None:
        """Note what rules found an atom, or a term of the input, to equal, unless that follows from what is known."""
        value = self.values[c]
        atom = value.single() if isinstance(value, LinearForm) else value
        if other is None or other == value or (atom is None and not self.builder.input.writes(value)):
            return
        if (atom is not None and not atom.args) or (atom, other) in self._equations or (value, other) in self._written:
            return
        below = topological([as_term(other)])
        # other loops would stand between an index and its reduction
        if atom in below or not REDUCTIONS.keys().isdisjoint([term.op for term in below]):
            return
        if atom is None:
            self._written[value, other] = None
        elif self._simplified(value) != self._simplified(other):
            self._equations[atom, other] = None

    def rewrite(self) -> list[tuple[int, int]]:
        """Pairs of a class and the class of its value in which atoms are replaced by what rules found them to equal.

        In a sum with such an atom terms may cancel then, and a comparison may lose one on either side.
        """
        equations = [*self._equations]
        pairs: list[tuple[int, int]] = []
        for c in range(len(self.values) if equations else 0):
            done = self._rewritten.get(c, 0)
            if done >= len(equations) or self.builder.classes.may_be_undefined(c):
                continue
            self._rewritten[c] = len(equations)
            value = self.values[c]
            below = set(topological([as_term(value)]))
            found = [self._replaced(value, {atom: other}) for atom, other in equations[done:] if atom in below]
            # what an atom equals may have an atom of a new equation
            if any(atom in below for atom, _ in equations):
                found.append(self._simplified(value))
            for written in found:
                if (other := self._add(written)) != c:
                    pairs.append((c, other))
        return [*pairs, *self._rewritten_input()]

    def _add(self, written: Value) -> int:
        """The class of a rewritten value; if it is new it is not rewritten in turn."""
        count, c = len(self.values), self.builder.add_class(written)
        if c == count:
            self._rewritten[c] = sys.maxsize
        return c

    def _rewritten_input(self) -> Iterator[tuple[int, int]]:
        """Pairs of the class of a term of the input and of that term with other values for what is no atom."""
        new = [*self._written][self._written_done :]
        self._written_done = len(self._written)
        together = [dict(reversed(self._written))] if len(self._written) > 1 and new else []
        for images in [*[{value: other} for value, other in new], *together]:
            for value, written in self.builder.input.with_values(images):
                if value in self.builder.classes:
                    c = self.builder.add_class(value)
                    if not self.builder.classes.may_be_undefined(c) and (other := self._add(written)) != c:
                        yield c, other

    def _simplified(self, value: Value) -> Value:
        """A value in which each atom is written as what it was first found to equal."""
        images = dict(reversed(self._equations))
        for _ in range(LIMITS.nested):
            written = self._replaced(value, images)
            if written == value:
                break
            value = written
        return value

    def _replaced(self, value: Value, images: Mapping[Expr, Value]) -> Value:
        """A value with other values for atoms; the value itself where that is no term."""
        try:
            (term,) = substitute([as_term(value)], {atom: as_term(other) for atom, other in images.items()})
            return self.builder.value_of(term)
        except (TooWideError, TypeError, ValueError):
            return value
