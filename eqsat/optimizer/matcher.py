"""Rules matched on terms one by one: every way in which rules rewrite a canonical term.

Commutativity and associativity are left out, since canonical terms have one order. A rule that works both ways is used
from left to right, and of two rules that undo each other (:data:`UNDOES`) the first: either pair would run in a circle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from math import gcd
from operator import or_

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

#: The paths that patterns have, each with a bit of its own in a set of paths.
_BITS: dict[Path, int] = {}

#: Combinations of an operator and what stands below it whose rules are kept; beyond, all are looked for anew.
_MOST_COMBINATIONS = 4096


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

    def __post_init__(self) -> None:
        # terms are noted by the bits that there are: all paths have theirs before any term is matched
        _ = self.below

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
    def below(self) -> int:
        """The operators that operands of a match have, and each with those of their operands, as a set of bits."""
        paths = {path for operand in self.operands for path in operand.paths}
        return reduce(or_, [_BITS.setdefault(path, 1 << len(_BITS)) for path in paths], 0)

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

    @cached_property
    def fits(self) -> Callable[[Matcher, Expr], bool]:
        """Whether a term can match, by its operator and those of its operands."""
        op, fixed, below = self.op, self.fixed, self.below
        match self.kind:
            case "literal" if self.letter == "s":
                return lambda matcher, term: term.op == "const" and 0 <= term.vmin <= MAX_SHIFT
            case "literal":
                return lambda matcher, term: term.op == "const"
            case "term":
                return lambda matcher, term: not term.is_bool
            case "condition":
                return lambda matcher, term: term.is_bool
        if fixed is not None:
            return lambda matcher, term: term is fixed
        if not below:
            return lambda matcher, term: term.op == op
        return lambda matcher, term: term.op == op and not below & ~matcher._below(term)


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


#: Those of them that are what Python's are on all numbers, and raise what these raise.
_AS_IN_PYTHON: dict[str, Callable[[int, int], int]] = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "mod": operator.mod,
    "floordiv": operator.floordiv,
}

#: The number that a part of a pattern is where its letters stand for what a matcher has bound.
_Number = Callable[["Matcher", Binding], int]
#: The same for a canonical term.
_Term = Callable[["Matcher", Binding], Expr]


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
        return (lambda matcher, binding: binding[name].vmin) if is_literal_letter(pattern) else _measured(name)
    parts = [part for a in args if (part := _computed(a)) is not None]
    if op not in _ON_NUMBERS or len(parts) < len(args):
        return None
    if op in _AS_IN_PYTHON:
        function, (one, two) = _AS_IN_PYTHON[op], parts
        return lambda matcher, binding: function(one(matcher, binding), two(matcher, binding))
    return lambda matcher, binding: apply_to_numbers(op, [part(matcher, binding) for part in parts])


def _measured(name: str) -> _Number:
    """The measure of letters with this name, as of ``vmin(x)`` or ``gcd(x, d)``; an infinite one is refused."""
    function, letter, *others = name.split("_")
    match function:
        case "vmin":
            return lambda matcher, binding: operator.index(matcher.bounds(binding[letter])[0])
        case "vmax":
            return lambda matcher, binding: operator.index(matcher.bounds(binding[letter])[1])
        case "free":
            return lambda matcher, binding: int(binding[INDEX] not in topological([binding[letter]]))
        case "gcd":
            (literal,) = others
            return lambda matcher, binding: measure_of("gcd", *_congruence(binding[letter]), binding[literal].vmin)
    return lambda matcher, binding: measure_of(function, *_congruence(binding[letter]))


@cache
def _built(pattern: Expr) -> _Term:
    """A pattern with its letters replaced, as a function."""
    if is_condition_letter(pattern):
        condition = str(pattern.args[0].value)
        return lambda matcher, binding: binding[condition]
    if pattern.op == "var" and (is_index(pattern) or "_" not in str(pattern.value)):
        name = INDEX if is_index(pattern) else str(pattern.value)
        return lambda matcher, binding: binding[name]
    if pattern.op in ("const", "bool"):
        return lambda matcher, binding: pattern
    number = _measured(str(pattern.value)) if pattern.op == "var" else None if pattern.is_bool else _computed(pattern)
    if number is not None:
        return lambda matcher, binding: const(number(matcher, binding))
    if pattern.op == "load":
        # `at(x, y)`
        body, place = moved_letter(pattern.args[0]), _built(pattern.args[1])
        return lambda matcher, binding: canonical_terms(
            [instantiate(binding[body], binding[INDEX], place(matcher, binding))]
        )[0]
    op, parts = pattern.op, [*map(_built, pattern.args)]
    return lambda matcher, binding: canonical(op, *[part(matcher, binding) for part in parts])


#: A step of a match: it takes the matcher, what stands at each place, and the bindings that are found.
_Step = Callable[["Matcher", list[Expr], list[Binding]], None]


class _Plan:
    """How shapes are matched, one after the other: what each letter is compared with is known beforehand.

    Every node of the shapes has a place. The first places are those of the shapes themselves.
    """

    def __init__(self, *shapes: _Shape) -> None:
        self._size = len(shapes)
        # the place where each letter is first met
        self._first: dict[str, int] = {}
        self._taken_apart: list[Callable[[_Step], _Step]] = []
        for place, shape in enumerate(shapes):
            self._visit(shape, place)
        step = _found([*self._first.items()])
        for before in reversed(self._taken_apart):
            step = before(step)
        self._step = step

    def _visit(self, shape: _Shape, place: int) -> None:
        if shape.letter:
            if (first := self._first.setdefault(shape.letter, place)) != place:
                self._taken_apart.append(partial(_same, first, place))
        elif shape.fixed is None:
            operands, self._size = self._size, self._size + len(shape.args)
            self._taken_apart.append(partial(_operands_at, shape, place, operands))
            for at, arg in enumerate(shape.args, operands):
                self._visit(arg, at)

    def match(self, matcher: Matcher, *terms: Expr) -> list[Binding]:
        """The bindings under which the shapes are these terms, which they fit."""
        found: list[Binding] = []
        held = [*terms, *[terms[0]] * (self._size - len(terms))]
        self._step(matcher, held, found)
        return found


def _found(letters: Sequence[tuple[str, int]]) -> _Step:
    """The last step: it adds what stands at the places of the letters to the bindings."""

    def step(matcher: Matcher, held: list[Expr], found: list[Binding]) -> None:
        found.append({letter: held[place] for letter, place in letters})

    return step


def _same(first: int, place: int, then: _Step) -> _Step:
    """The step that goes on if the same term stands at two places."""

    def step(matcher: Matcher, held: list[Expr], found: list[Binding]) -> None:
        if held[place] is held[first]:
            then(matcher, held, found)

    return step


def _operands_at(shape: _Shape, place: int, at: int, then: _Step) -> _Step:
    """The step that goes on with the operands of a term, from the place ``at`` on, if they fit those of the shape.

    In both orders if they commute; of a chain, also with each operand and the others.
    """
    tests = [arg.fits for arg in shape.args]
    if len(tests) != 2:

        def step_of_several(matcher: Matcher, held: list[Expr], found: list[Binding]) -> None:
            args = held[place].args
            if all(fits(matcher, arg) for fits, arg in zip(tests, args, strict=True)):
                held[at : at + len(args)] = args
                then(matcher, held, found)

        return step_of_several
    fits_first, fits_second = tests
    # two letters that are one match the same in either order
    turns = commutes(shape.op) and not (shape.args[0].letter and shape.args[0] == shape.args[1])
    rest_first, rest_second = shape.takes_rest
    op, takes_rest = shape.op, any(shape.takes_rest)

    def step(matcher: Matcher, held: list[Expr], found: list[Binding]) -> None:
        term = held[place]
        x, y = term.args
        if fits_first(matcher, x) and fits_second(matcher, y):
            held[at], held[at + 1] = x, y
            then(matcher, held, found)
        if takes_rest and op in (x.op, y.op):
            for operand, others in matcher._splits_of(term):
                if rest_first and fits_second(matcher, operand) and fits_first(matcher, others):
                    held[at], held[at + 1] = others, operand
                    then(matcher, held, found)
                if rest_second and fits_first(matcher, operand) and fits_second(matcher, others):
                    held[at], held[at + 1] = operand, others
                    then(matcher, held, found)
        if turns and fits_first(matcher, y) and fits_second(matcher, x):
            held[at], held[at + 1] = y, x
            then(matcher, held, found)

    return step


@dataclass(frozen=True)
class _Compiled:
    """A rule ready to match: its left side, its guard, its right side.

    ``whole`` matches a term, ``pairs`` two operands of a chain, the one that stands first in it or the other one.
    ``measured`` are the conjuncts that compare numbers, ``when`` the others. ``moved_out`` are the letters that the
    right side takes out of branches.
    """

    name: str
    left: _Shape
    whole: _Plan
    pairs: tuple[_Plan, _Plan] | None
    measured: tuple[_Number, ...]
    when: tuple[_Term, ...]
    right: _Term
    moved_out: frozenset[str]


class _RuleIndex:
    """Rules by the operator of their left side, and by the operators below it; their order is kept."""

    def __init__(self, compiled: Sequence[_Compiled]) -> None:
        # each list has the rules that match any operator too
        self._by_operator = {op: [c for c in compiled if c.left.op in ("", op)] for op in [*OPS, *REDUCTIONS, "var"]}
        self._fitting: dict[tuple[str, int], list[_Compiled]] = {}

    def fitting(self, op: str, below: int) -> list[_Compiled]:
        """The rules that may match a term of an operator that has these paths below."""
        if (found := self._fitting.get((op, below))) is None:
            if len(self._fitting) >= _MOST_COMBINATIONS:
                self._fitting.clear()
            found = [c for c in self._by_operator.get(op, ()) if not c.left.below & ~below]
            self._fitting[op, below] = found
        return found


@cache
def _compiled(rules: tuple[Rule, ...]) -> _RuleIndex:
    """The rules as they match terms one by one, but for those that cannot."""
    undone: set[str | None] = set()
    compiled = []
    for rule in rules:
        # a term does not know what is beside it, and loops that are split would be merged again
        pattern = rule.pattern
        is_left_out = rule.needs_theory or pattern.beside is not None or pattern.has_own_loops
        # no match binds what is looked for in bodies
        is_left_out |= bool(found_in_bodies(pattern))
        # commutativity and associativity have one canonical term on both sides
        left, right = canonical_terms([pattern.left, pattern.right])
        if rule.name not in undone and not is_left_out and left is not right:
            compiled.append(_compile(rule))
            undone |= {UNDOES.get(rule.name), *[other for other, name in UNDOES.items() if name == rule.name]}
    return _RuleIndex(compiled)


def _compile(rule: Rule) -> _Compiled:
    pattern = rule.pattern
    guard = [(conjunct, _computed(conjunct)) for conjunct in conjuncts(pattern.when)]
    measured = tuple([number for _, number in guard if number is not None])
    when = tuple([_built(conjunct) for conjunct, number in guard if number is None])
    left = _shape(pattern.left)
    pairs = (_Plan(*left.args), _Plan(*left.args[::-1])) if left.op in CHAINED else None
    moved_out = pattern.moved_out_of_branches
    return _Compiled(rule.name, left, _Plan(left), pairs, measured, when, _built(pattern.right), moved_out)


def conjuncts(when: Expr) -> list[Expr]:
    return [] if when is TRUE else operands_of(when, "and")


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


class Matcher:
    """Every way in which rules rewrite a canonical term at its root, operands in any order.

    A subclass may know more: of bounds, of the comparisons that hold, and of the divisors that may be zero.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = _compiled(tuple(rules))
        self._splits: dict[Expr, list[tuple[Expr, Expr]]] = {}
        self._below_of: dict[Expr, int] = {}
        self._paths_of: dict[Expr, int] = {}

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
        for rule in self.rules.fitting(term.op, self._below(term)):
            if (only is not None and rule.name not in only) or (rule.left.kind and not rule.left.fits(self, term)):
                continue
            for binding, rest in self._matches(rule, term):
                result = self._apply(rule, binding, term.op, rest)
                if result is not None and result is not term:
                    yield rule.name, result

    def _apply(self, rule: _Compiled, binding: Binding, op: str, rest: list[Expr]) -> Expr | None:
        """The right side with the operands that the left side left over, if the guard holds."""
        try:
            for number in rule.measured:
                if not number(self, binding):
                    return None
            for condition in rule.when:
                if not self.holds(condition(self, binding)):
                    return None
            if rule.moved_out and not all(
                self.may_leave_branch(binding[letter]) for letter in rule.moved_out & binding.keys()
            ):
                return None
            result = rule.right(self, binding)
        except (ValueError, ArithmeticError):
            # a literal to compute has no value: its divisor is zero, a shift goes too far, or a bound is infinite
            return None
        return joined(op, [*operands_of(result, op), *rest]) if rest else result

    def _matches(self, rule: _Compiled, term: Expr) -> Iterator[tuple[Binding, list[Expr]]]:
        """Every way to match ``term``, which fits; of a chain, also every two operands, with the others as rest."""
        for binding in rule.whole.match(self, term):
            yield binding, []
        if rule.pairs is not None and term.op in (term.args[0].op, term.args[1].op):
            operands = operands_of(term, term.op)
            # the operands before the last are final together: no two of them match
            if len(operands) <= LIMITS.chained_operands:
                last = operands.pop()
                for at, binding in self._pairs(rule, operands, last):
                    yield binding, operands[:at] + operands[at + 1 :]

    def _pairs(self, rule: _Compiled, operands: Sequence[Expr], last: Expr) -> Iterator[tuple[int, Binding]]:
        """Every way to match ``last`` and one of ``operands``, with its place; ``last`` is matched first."""
        if rule.pairs is None:
            return
        first, second = [shape.fits for shape in rule.left.args]
        forwards, backwards = rule.pairs
        last_is_first, last_is_second = first(self, last), second(self, last)
        for at, other in enumerate(operands) if last_is_first or last_is_second else ():
            if last_is_second and first(self, other):
                for binding in backwards.match(self, last, other):
                    yield at, binding
            if last_is_first and second(self, other):
                for binding in forwards.match(self, last, other):
                    yield at, binding

    def _below(self, term: Expr) -> int:
        """The paths below a term, as a set of bits, but for those that no pattern has."""
        if (found := self._below_of.get(term)) is None:
            found = 0
            for operand in _operands(term):
                found |= self._paths(operand)
            self._below_of[term] = found
        return found

    def _paths(self, term: Expr) -> int:
        """The operator of a term, and with it those of its operands, as a set of bits."""
        if (found := self._paths_of.get(term)) is None:
            found = _BITS.get((term.op,), 0)
            for operand in _operands(term):
                found |= _BITS.get((term.op, operand.op), 0)
            self._paths_of[term] = found
        return found

    def _splits_of(self, term: Expr) -> list[tuple[Expr, Expr]]:
        """Each operand of a chain but the last, and the others as a chain."""
        if (found := self._splits.get(term)) is None:
            operands = operands_of(term, term.op)
            several = range(len(operands) - 1 if 2 < len(operands) <= LIMITS.chained_operands else 0)
            found = [(operands[at], joined(term.op, operands[:at] + operands[at + 1 :])) for at in several]
            self._splits[term] = found
        return found
