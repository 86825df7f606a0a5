"""Rules matched on terms one by one: every way in which rules rewrite a canonical term.

Commutativity and associativity are left out, since canonical terms have one order. A rule that works both ways is used
from left to right, and of two rules that undo each other (:data:`UNDOES`) the first: either pair would run in a circle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import gcd

from eqsat.egraph.patterns import (
    LITERALS,
    found_in_bodies,
    is_condition_letter,
    is_literal_letter,
    is_number,
    measure_of,
    moved_letter,
    operands_of,
)
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import TRUE, Expr, const, instantiate
from eqsat.lang.ops import MAX_SHIFT, OPS, REDUCTIONS, apply_to_numbers
from eqsat.lang.traversal import is_index, topological
from eqsat.optimizer.canonical_terms import (
    CHAINED,
    INDEX,
    ONE,
    canonical,
    canonical_terms,
    commutes,
    joined,
)
from eqsat.optimizer.limits import LIMITS

#: Rules that undo another one, by name: of both, the later one is left out.
UNDOES = {
    "factor-scale": "distribute-scale",
    "factor-offset": "distribute-offset",
    "factor-term": "distribute-whole",
}

#: What the letters of a pattern stand for, and at ``INDEX`` its index, if it has one.
Binding = dict[str, Expr]

#: The operator of an operand, and maybe that of one of its operands.
Path = tuple[str, ...]


@dataclass(frozen=True)
class _Shape:
    """A node of a pattern: a letter, a literal, or an operator on shapes.

    ``kind`` is ``"literal"``, ``"term"`` or ``"condition"`` for letters, else empty; ``fixed`` is a literal.
    """

    op: str
    args: tuple[_Shape, ...] = ()
    kind: str = ""
    letter: str = ""
    fixed: Expr | None = None

    @property
    def needs(self) -> str:
        """The operator of all terms that can match; empty if these have any."""
        return "const" if self.kind == "literal" else self.op if self.fixed is None else self.fixed.op

    @property
    def operands(self) -> list[_Shape]:
        """What stands below; of a chain, also below its links, since canonical terms keep all operands together."""
        return [
            operand
            for arg in self.args
            for operand in (arg.operands if arg.op == self.op and self.op in CHAINED else [arg])
        ]

    @cached_property
    def below(self) -> frozenset[Path]:
        """The operators that operands of a match have, and each with those of their operands."""
        return frozenset([path for operand in self.operands for path in operand.paths])

    @cached_property
    def takes_rest(self) -> tuple[bool, bool]:
        """Of a chain of two, whether each operand may be what is left of a longer chain without one operand."""
        if self.op not in CHAINED or (self.args[0].letter and self.args[0] == self.args[1]):
            # one operand is never a chain
            return False, False
        first, second = [arg.kind in ("term", "condition") or arg.op == self.op for arg in self.args]
        return first, second

    @property
    def paths(self) -> list[Path]:
        """The operator of all that can match, and with it those of their operands, as far as they are given."""
        ways = [(self.needs,), *[(self.needs, operand.needs) for operand in self.operands]]
        return [way for way in ways if all(way)]

    def fits(self, term: Expr) -> bool:
        """Whether ``term`` can match, by its operator alone."""
        if not self.kind:
            return term.op == self.op if self.fixed is None else term is self.fixed
        if self.kind == "literal":
            return term.op == "const" and (self.letter != "s" or 0 <= term.vmin <= MAX_SHIFT)
        return term.is_bool is (self.kind == "condition")


def _shape(pattern: Expr) -> _Shape:
    """A left side for matching against canonical terms."""
    if is_condition_letter(pattern):
        return _Shape("", kind="condition", letter=str(pattern.args[0].value))
    if pattern.op == "var":
        name = str(pattern.value)
        return _Shape("", kind="literal" if name in LITERALS else "term", letter=INDEX if is_index(pattern) else name)
    if not pattern.args:
        return _Shape(pattern.op, fixed=pattern)
    args = tuple([_shape(a) for a in pattern.args])
    match pattern.op:
        case "sub":
            return _Shape("add", (args[0], _negated(args[1])))
        case "neg":
            return _negated(args[0])
        case "ne":
            return _Shape("not", (_Shape("eq", args),))
        case "le":
            return _Shape("lt", (args[0], _Shape("add", (args[1], _Shape("const", fixed=ONE)))))
    return _Shape(pattern.op, args)


def _negated(shape: _Shape) -> _Shape:
    """The negative of what a shape matches, in canonical terms."""
    term, factor = shape, 1
    if shape.op == "mul" and shape.args[1].fixed is not None:
        term, factor = shape.args[0], shape.args[1].fixed.vmin
    return term if factor == -1 else _Shape("mul", (term, _Shape("const", fixed=const(-factor))))


#: The operators by which the rules compute numbers from numbers.
_ON_NUMBERS = frozenset(
    {"add", "sub", "mul", "neg", "floordiv", "mod", "bitand", "lt", "le", "eq", "ne", "and", "or", "not"}
)


#: The number that a part of a pattern is where its letters stand for what a matcher has bound.
_Number = Callable[["Matcher", Binding], int]


@cache
def _computed(pattern: Expr) -> _Number | None:
    """A part of a pattern as a function, if it is computed from literals and measures."""
    op, args = pattern.op, pattern.args
    if not args:
        if not is_number(pattern):
            return None
        value, name = pattern.vmin, str(pattern.value)
        if op == "const":
            return lambda matcher, binding: value
        if is_literal_letter(pattern):
            return lambda matcher, binding: binding[name].vmin
        function, *letters = name.split("_")
        # an infinite measure is refused
        return lambda matcher, binding: operator.index(matcher._measure(function, letters, binding))
    parts = [part for a in args if (part := _computed(a)) is not None]
    if op not in _ON_NUMBERS or len(parts) < len(args):
        return None
    return lambda matcher, binding: apply_to_numbers(op, [part(matcher, binding) for part in parts])


@dataclass(frozen=True)
class _Compiled:
    """A rule ready to match: its left side, its guard, its right side.

    ``measured`` are the conjuncts that compare numbers, ``when`` the others. ``moved_out`` are the letters that the
    right side takes out of branches.
    """

    name: str
    left: _Shape
    measured: tuple[_Number, ...]
    when: tuple[Expr, ...]
    right: Expr
    moved_out: frozenset[str]


@cache
def _compiled(rules: tuple[Rule, ...]) -> dict[str, list[_Compiled]]:
    """The rules by the operator of their left side, in order; each list has the rules that match any operator too."""
    undone: set[str | None] = set()
    compiled = []
    for rule in rules:
        # a term does not know what is beside it, and loops that are split would be merged again
        pattern = rule.pattern
        is_left_out = rule.needs_theory or pattern.beside is not None or pattern.has_own_loops
        # no match binds what is looked for in bodies
        is_left_out |= bool(found_in_bodies(pattern))
        if rule.name not in undone and not is_left_out and not _is_order(rule):
            compiled.append(_compile(rule))
            undone |= {UNDOES.get(rule.name), *[other for other, name in UNDOES.items() if name == rule.name]}
    return {op: [c for c in compiled if c.left.op in ("", op)] for op in [*OPS, *REDUCTIONS, "var"]}


def _compile(rule: Rule) -> _Compiled:
    pattern = rule.pattern
    guard = [(conjunct, _computed(conjunct)) for conjunct in conjuncts(pattern.when)]
    measured = tuple([number for _, number in guard if number is not None])
    when = tuple([conjunct for conjunct, number in guard if number is None])
    return _Compiled(rule.name, _shape(pattern.left), measured, when, pattern.right, pattern.moved_out_of_branches)


def conjuncts(when: Expr) -> list[Expr]:
    return [] if when is TRUE else operands_of(when, "and")


def _is_order(rule: Rule) -> bool:
    """Whether both sides are the same canonical term: commutativity, associativity."""
    pattern = rule.pattern
    left, right = canonical_terms([pattern.left, pattern.right])
    return left is right


def _congruence(term: Expr) -> tuple[int, int]:
    """Modulus and remainder by the literal factors of the addends, so that dividing by their divisor always simplifies.

    The modulus of a literal is 0: it has no other value.
    """
    modulus = remainder = 0
    for addend in operands_of(term, "add"):
        if addend.op == "const":
            remainder = addend.vmin
        else:
            last = addend.args[1] if addend.op == "mul" else addend
            modulus = gcd(modulus, last.vmin) if last.op == "const" else 1
        if modulus == 1:
            return 1, 0
    return modulus, remainder % modulus if modulus else remainder


def _operands(term: Expr) -> Sequence[Expr]:
    """What stands below a canonical term; of a chain, all its operands."""
    return operands_of(term, term.op) if term.op in CHAINED else term.args


def _paths(term: Expr) -> list[Path]:
    """The operator of a term, and with it those of its operands."""
    return [(term.op,), *{(term.op, operand.op) for operand in _operands(term)}]


class Matcher:
    """Every way in which rules rewrite a canonical term at its root, operands in any order.

    A subclass may know more: of bounds, of the comparisons that hold, and of the divisors that may be zero.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = _compiled(tuple(rules))
        self._splits: dict[Expr, list[tuple[Expr, Expr]]] = {}
        self._below: dict[Expr, set[Path]] = {}

    def bounds(self, term: Expr) -> tuple[int, int]:
        """Inclusive bounds of a canonical term, for guards."""
        return term.vmin, term.vmax

    def holds(self, condition: Expr) -> bool:
        """Whether a canonical condition is known to hold, for guards."""
        return condition.vmin == 1

    def may_leave_branch(self, term: Expr) -> bool:
        """Whether a term may be taken out of a branch: it divides by nothing that is zero elsewhere."""
        return True

    def rewrites(self, term: Expr, only: Collection[str] | None = None) -> Iterator[tuple[str, Expr]]:
        """Names of rules, in their order, and what they make of ``term``; of all rules, or of those named."""
        for rule in self.rules.get(term.op, ()):
            if not self._fits(rule.left, term) or (only is not None and rule.name not in only):
                continue
            for binding, rest in self._matches(rule.left, term):
                result = self._apply(rule, binding, term.op, rest)
                if result is not None and result is not term:
                    yield rule.name, result

    def _apply(self, rule: _Compiled, binding: Binding, op: str, rest: list[Expr]) -> Expr | None:
        """The right side with the operands that the left side left over, if the guard holds."""
        try:
            if not all(holds(self, binding) for holds in rule.measured):
                return None
            if not all(self.holds(self._instance(conjunct, binding)) for conjunct in rule.when):
                return None
            if not all(self.may_leave_branch(binding[letter]) for letter in rule.moved_out & binding.keys()):
                return None
            result = self._instance(rule.right, binding)
        except (ValueError, ArithmeticError):
            # a literal to compute has no value: its divisor is zero, a shift goes too far, or a bound is infinite
            return None
        return joined(op, [*operands_of(result, op), *rest]) if rest else result

    def _instance(self, pattern: Expr, binding: Binding) -> Expr:
        """``pattern`` with its letters replaced, as a canonical term."""
        if is_condition_letter(pattern):
            return binding[str(pattern.args[0].value)]
        if pattern.op == "var":
            name = INDEX if is_index(pattern) else str(pattern.value)
            if name in binding:
                return binding[name]
            function, *letters = name.split("_")
            return const(self._measure(function, letters, binding))
        if not pattern.args:
            return pattern
        if not pattern.is_bool and (number := _computed(pattern)) is not None:
            return const(number(self, binding))
        if pattern.op == "load":
            # `at(x, y)`
            body, place = binding[moved_letter(pattern.args[0])], self._instance(pattern.args[1], binding)
            return canonical_terms([instantiate(body, binding[INDEX], place)])[0]
        return canonical(pattern.op, *[self._instance(a, binding) for a in pattern.args])

    def _measure(self, function: str, letters: Sequence[str], binding: Binding) -> int:
        """The value of a measure of letters, such as ``vmin(x)`` or ``gcd(x, d)``."""
        term = binding[letters[0]]
        match function:
            case "vmin":
                return self.bounds(term)[0]
            case "vmax":
                return self.bounds(term)[1]
            case "free":
                return int(binding[INDEX] not in topological([term]))
        literal = binding[letters[1]].vmin if function == "gcd" else 0
        return measure_of(function, *_congruence(term), literal)

    def _matches(self, left: _Shape, term: Expr) -> Iterator[tuple[Binding, list[Expr]]]:
        """Every way to match ``term``, which fits; of a chain, also every two operands, with the others as rest."""
        for binding in self._match(left, term, {}):
            yield binding, []
        if left.op in CHAINED:
            operands = operands_of(term, left.op)
            # the operands before the last are final together: no two of them match
            if 2 < len(operands) <= LIMITS.chained_operands:
                last = operands.pop()
                for at, binding in self._pairs(left, operands, last):
                    yield binding, operands[:at] + operands[at + 1 :]

    def _pairs(self, left: _Shape, operands: Sequence[Expr], last: Expr) -> Iterator[tuple[int, Binding]]:
        """Every way to match ``last`` and one of ``operands``, with its place."""
        first, second = left.args
        as_first, as_second = [self._match(shape, last, {}) if self._fits(shape, last) else [] for shape in left.args]
        for at, other in enumerate(operands) if as_first or as_second else ():
            for shape, bindings in ((first, as_second), (second, as_first)):
                if bindings and self._fits(shape, other):
                    for binding in bindings:
                        for found in self._match(shape, other, binding):
                            yield at, found

    def _fits(self, shape: _Shape, term: Expr) -> bool:
        """Whether a term can match, by its operator and those of its operands."""
        if not shape.fits(term):
            return False
        if not shape.below:
            return True
        if (found := self._below.get(term)) is None:
            found = self._below[term] = {path for operand in _operands(term) for path in _paths(operand)}
        return shape.below <= found

    def _match(self, shape: _Shape, term: Expr, binding: Binding) -> list[Binding]:
        """The bindings under which ``shape``, which fits, is ``term``."""
        if shape.kind:
            if (known := binding.get(shape.letter)) is None:
                return [{**binding, shape.letter: term}]
            return [binding] if known is term else []
        if shape.fixed is not None:
            return [binding]
        return [
            found for operands in self._ways(shape, term) for found in self._match_all(shape.args, operands, binding)
        ]

    def _match_all(self, shapes: Sequence[_Shape], terms: Sequence[Expr], binding: Binding) -> list[Binding]:
        """The bindings under which the shapes are the terms, which they fit."""
        bindings = [binding]
        for shape, term in zip(shapes, terms, strict=True):
            bindings = [found for before in bindings for found in self._match(shape, term, before)]
        return bindings

    def _ways(self, shape: _Shape, term: Expr) -> Iterator[tuple[Expr, ...]]:
        """The operands of ``term`` that fit those of ``shape``.

        In both orders if they commute; of a chain, each operand and the others.
        """
        args = shape.args
        if all(map(self._fits, args, term.args)):
            yield term.args
        if any(shape.takes_rest):
            first, second = args
            for operand, others in self._splits_of(term):
                if shape.takes_rest[0] and self._fits(second, operand) and self._fits(first, others):
                    yield others, operand
                if shape.takes_rest[1] and self._fits(first, operand) and self._fits(second, others):
                    yield operand, others
        if commutes(term.op) and all(map(self._fits, args, term.args[::-1])):
            yield term.args[::-1]

    def _splits_of(self, term: Expr) -> list[tuple[Expr, Expr]]:
        """Each operand of a chain but the last, and the others as a chain."""
        if (found := self._splits.get(term)) is None:
            operands = operands_of(term, term.op)
            several = range(len(operands) - 1 if 2 < len(operands) <= LIMITS.chained_operands else 0)
            found = [(operands[at], joined(term.op, operands[:at] + operands[at + 1 :])) for at in several]
            self._splits[term] = found
        return found
