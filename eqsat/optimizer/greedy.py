"""The greedy baseline: the same rules, applied destructively in registration order, bottom-up, to a fixpoint.

This is how tinygrad and Morok rewrite: at each term, operands first, the first rule that matches replaces it, and what
was there is gone. So the order of the rules decides the answer: what the e-graph does away with. It is a parameter;
that of registration is the families of :data:`eqsat.rules.FAMILIES` in turn, each family from top to bottom.

Order and brackets of commutative operators are fixed by :func:`canonical` instead of by rules: addends, factors and the
like are sorted by their keys, literals folded and last, neutral ones dropped. Commutativity and associativity are left
out. A rule that works both ways is used from left to right, and of two rules that undo each other (:data:`UNDOES`) the
first: either pair would run in a circle. Other circles are left where they close, and counted. Rules that hide
divisions are left out too: where both sides are kept they do no harm, but here no other rule for
divisions would match again. ``sub``, ``neg``, ``le`` and ``ne`` are written with other operators, as in the e-graph.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from math import gcd
from types import MappingProxyType
from typing import NamedTuple, cast

from eqsat.egraph.patterns import LITERALS, is_condition_letter, moved_letter
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import (
    FALSE,
    TRUE,
    Expr,
    any_var,
    chain_members,
    const,
    instantiate,
    is_index,
    make,
    rebuild,
    shift_amount,
    stated,
    substitute,
    topological,
    var,
    variables,
)
from eqsat.lang.ops import BITWISE, DIVISIONS, MAX_SHIFT, OPS, REDUCTIONS
from eqsat.lang.validation import list_of, refuse_seconds
from eqsat.optimizer.limits import LIMITS
from eqsat.rules import DEFAULT
from eqsat.theory.linear import LinearArithmetic
from eqsat.theory.work import OverdueError, Work

#: Rules that undo another one, by name: of both, the later one is left out.
UNDOES = {
    "factor-scale": "distribute-scale",
    "factor-offset": "distribute-offset",
    "factor-term": "distribute-whole",
}


@cache
def _selects_divisions(rule: Rule) -> bool:
    """Whether a rule makes a selection of a division."""
    pattern = rule.pattern
    return pattern.left.op in DIVISIONS and any(t.op == "where" for t in topological([pattern.right]))


#: Commutative and associative operators.
CHAINED = frozenset({"add", "mul", "min", "max", "and", "or", *BITWISE})
_NEUTRAL = {"add": const(0), "mul": const(1), "and": TRUE, "or": FALSE}
_NEUTRAL |= {"bitor": const(0), "bitxor": const(0), "bitand": const(-1)}

_ONE, _MINUS_ONE = const(1), const(-1)

#: What the letters of a pattern stand for, and at ``INDEX`` its index, if it has one.
Binding = dict[str, Expr]
INDEX = "$"


class Rewritten(NamedTuple):
    """What :func:`rewrite` made.

    Attributes
    ----------
    roots : list of Expr
        The fixpoint, or what was reached.
    matches : dict from rule name to int
        How often each rule was applied.
    stop : str
        ``"saturated"``, ``"iterations"`` or ``"time"``.
    applied : list of str
        The rules in the order of their applications; with ``limit=n`` the first ``n`` are repeated.
    circles : int
        How many terms became, step by step, themselves again.
    """

    roots: list[Expr]
    matches: dict[str, int]
    stop: str
    applied: list[str]
    circles: int


def rewrite(
    roots: Sequence[Expr],
    rules: Sequence[Rule] = DEFAULT,
    facts: Sequence[Expr] = (),
    limit: int = 10_000,
    seconds: float = 2.0,
) -> Rewritten:
    """Rewrite ``roots`` bottom-up until no rule matches.

    Parameters
    ----------
    rules : sequence of Rule
        At each term the first one that matches is applied: their order can change the result.
    facts : iterable of bool Expr
        Conditions known to hold; what they say about single variables narrows their ranges, the rest is ignored.
    limit : int
        The most rule applications.
    seconds : float
        The time after which no rule is applied any more. Expressions that then take long to finish stay as given.

    Returns
    -------
    Rewritten
        ``stop`` is ``"saturated"``, ``"time"``, or ``"iterations"`` if the limit was reached or rules ran in a circle;
        every circle is left where it closes, and counted in ``circles``.

    Raises
    ------
    ValueError
        If the facts contradict each other, or there are less than 0 seconds.

    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> found = rewrite([(i*32 + j) // 32, (i*32 + j) % 32])
    >>> found.roots, found.stop
    ([Expr('i'), Expr('j')], 'saturated')
    """
    refuse_seconds(seconds)
    roots, facts = list_of(Expr, roots, "the expressions to rewrite"), list_of(Expr, facts, "the facts")
    work = Work.ending(time.perf_counter() + seconds)
    narrowed = _narrowed(roots, facts, work.until) if facts else {}
    given = [*roots, *facts]
    try:
        given = substitute(given, narrowed) if narrowed else given
    except ValueError:
        # a variable that is always zero divides what is never evaluated
        narrowed = {}
    known = canonical_terms(given[len(roots) :])
    usable = tuple([rule for rule in rules if not _selects_divisions(rule)])
    rewriter = _Rewriter(usable, frozenset(chain(*map(_conjuncts, known))), limit, work)
    found: list[Expr] = []
    try:
        for root in given[: len(roots)]:
            found.append(rewriter.normal_form(root))
    except OverdueError:
        # the other roots stay as they are
        rewriter.stop = "time"
    wide = {narrow: wide for wide, narrow in narrowed.items()}
    try:
        finished = presentable(found, wide, work)
    except OverdueError:
        return Rewritten([*roots], {}, "time", [], 0)
    matches = dict(Counter(rewriter.applied))
    return Rewritten([*finished, *roots[len(finished) :]], matches, rewriter.stop, rewriter.applied, rewriter.circles)


def _narrowed(roots: Sequence[Expr], facts: Sequence[Expr], deadline: float) -> dict[Expr, Expr]:
    """The variables whose range the facts narrow, as far as that is seen in time, each with one of that range."""
    theory = LinearArithmetic(facts, work=Work(until=deadline))
    found = {}
    for variable in variables([*roots, *facts]):
        low, high = theory.range(variable)
        if (low, high) != (variable.vmin, variable.vmax):
            found[variable] = var(cast(str, variable.value), low, high)
    return found


def canonical(op: str, *args: Expr) -> Expr:
    """The operator ``op`` on canonical operands as a canonical term.

    Raises
    ------
    ValueError
        As :func:`eqsat.lang.expr.make`, and if a divisor can only be zero.

    >>> x, y = var("x", 0, 9), var("y", 0, 9)
    >>> canonical("add", canonical("add", x, const(3)), y) is canonical("add", y, canonical("add", const(3), x))
    True
    """
    match op:
        case "sub":
            return canonical("add", args[0], canonical("mul", args[1], _MINUS_ONE))
        case "neg":
            return canonical("mul", args[0], _MINUS_ONE)
        case "ne":
            return canonical("not", canonical("eq", *args))
        case "le" if args[0].op == "const":
            return canonical("lt", const(args[0].vmin - 1), args[1])
        case "le":
            return canonical("lt", args[0], canonical("add", args[1], _ONE))
    if op in CHAINED:
        return joined(op, [*_operands(op, args[0]), *_operands(op, args[1])])
    if commutes(op):
        args = tuple(sorted(args, key=_order))
    if op in REDUCTIONS and args[1].op != "var":
        # an index with one value, which the body has in its place
        args = (args[0], any_var(INDEX, args[1].vmin, args[1].vmax), *args[2:])
    term = stated(op, *args)
    return _literal(term) if all(map(_is_literal, args)) and term.vmin == term.vmax else term


def commutes(op: str) -> bool:
    """Whether an operator, which may be a load or a reduction too, takes its operands in either order."""
    return op in OPS and OPS[op].commutes


def canonical_terms(terms: Iterable[Expr]) -> list[Expr]:
    """The terms as :class:`Matcher` takes them: every operator by :func:`canonical`."""

    def canonically(term: Expr, args: tuple[Expr, ...]) -> Expr:
        try:
            return canonical(term.op, *args) if args else term
        except ValueError:
            # never evaluated: simplified, its divisor is always zero
            return make(term.op, *args)

    return rebuild(terms, canonically)


def _is_literal(term: Expr) -> bool:
    return term.op in ("const", "bool")


def _literal(term: Expr) -> Expr:
    """The only value of a term whose bounds meet."""
    if term.is_bool:
        return TRUE if term.vmin else FALSE
    return const(term.vmin)


def _order(term: Expr) -> tuple[bool, int]:
    return _is_literal(term), term.key


def _operands(op: str, term: Expr) -> list[Expr]:
    """The operands of a canonical chain of ``op``, in order; the term itself if it is none."""
    found = []
    while term.op == op:
        found.append(term.args[1])
        term = term.args[0]
    found.append(term)
    return found[::-1]


def joined(op: str, operands: list[Expr]) -> Expr:
    """The canonical chain of canonical operands, none of which is such a chain."""
    operands = sorted(operands, key=_order)
    while len(operands) > 1 and _is_literal(operands[-2]):
        last = operands.pop()
        operands[-1] = _literal(make(op, operands[-1], last))
    if len(operands) > 1 and operands[-1] is _NEUTRAL.get(op):
        operands.pop()
    term = operands[0]
    for operand in operands[1:]:
        term = make(op, term, operand)
    return term


def presentable(
    roots: Sequence[Expr], wide: Mapping[Expr, Expr] = MappingProxyType({}), work: Work | None = None
) -> list[Expr]:
    """Canonical terms with differences, negations, ``<=`` and ``!=`` again, and variables with their own ranges.

    Raises
    ------
    OverdueError
        At the end of ``work``.
    """
    new: dict[Expr, Expr] = {}
    for place, term in enumerate(topological(roots)):
        if work is not None and place % LIMITS.rows_per_look == 0:
            work.late_or_raise()
        args = [new[a] for a in term.args]
        match term.op:
            case "add":
                new[term] = _difference(new, _operands("add", term))
            case "mul" if term.args[1] is _MINUS_ONE:
                new[term] = make("neg", args[0])
            case "not" if term.args[0].op == "eq":
                new[term] = make("ne", *args[0].args)
            case "not" if term.args[0].op == "lt":
                new[term] = make("le", *[new[a] for a in term.args[0].args[::-1]])
            case "lt" if term.args[1].op == "add" and term.args[1].args[1] is _ONE:
                new[term] = make("le", args[0], new[term.args[1].args[0]])
            case "shl" | "shr":
                # the range of a variable may be what kept the amount in its own
                new[term] = make(term.op, args[0], shift_amount(args[1]))
            case _:
                new[term] = make(term.op, *args) if args else wide.get(term, term)
    return [new[root] for root in roots]


def _difference(new: Mapping[Expr, Expr], addends: Iterable[Expr]) -> Expr:
    """A sum of canonical addends in which negative ones are subtracted."""
    plus: list[Expr] = []
    minus: list[Expr] = []
    for addend in addends:
        if addend.op == "const" and addend.vmin < 0:
            minus.append(const(-addend.vmin))
        elif addend.op == "mul" and addend.args[1].op == "const" and addend.args[1].vmin < 0:
            scale, body = -addend.args[1].vmin, new[addend.args[0]]
            minus.append(body if scale == 1 else make("mul", body, const(scale)))
        else:
            plus.append(new[addend])
    total = plus[0] if plus else make("neg", minus.pop(0))
    for addend in plus[1:]:
        total = make("add", total, addend)
    for addend in minus:
        total = make("sub", total, addend)
    return total


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

    @cached_property
    def below(self) -> frozenset[str]:
        """The operators that operands of a match have; one with that of the chain itself is several of these."""
        return frozenset([shape.needs for shape in self.args]) - {"", self.op}

    def fits(self, term: Expr) -> bool:
        """Whether ``term`` can match, by its operator alone."""
        match self.kind:
            case "literal":
                return term.op == "const" and (self.letter != "s" or 0 <= term.vmin <= MAX_SHIFT)
            case "term":
                return not term.is_bool
            case "condition":
                return term.is_bool
        return term is self.fixed if self.fixed is not None else term.op == self.op


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
            return _Shape("add", (args[0], _Shape("mul", (args[1], _Shape("const", fixed=_MINUS_ONE)))))
        case "neg":
            return _Shape("mul", (args[0], _Shape("const", fixed=_MINUS_ONE)))
        case "ne":
            return _Shape("not", (_Shape("eq", args),))
        case "le":
            return _Shape("lt", (args[0], _Shape("add", (args[1], _Shape("const", fixed=_ONE)))))
    return _Shape(pattern.op, args)


@dataclass(frozen=True)
class _Compiled:
    """A rule ready to match: its left side, the conjuncts of its guard, its right side."""

    name: str
    left: _Shape
    when: tuple[Expr, ...]
    right: Expr


@cache
def _compiled(rules: tuple[Rule, ...]) -> dict[str, list[_Compiled]]:
    """The rules by the operator of their left side, in order; each list has the rules that match any operator too."""
    undone: set[str | None] = set()
    compiled = []
    for rule in rules:
        # loops split would be merged again: which is cheaper is for extraction to say
        if rule.name not in undone and not _is_order(rule) and not rule.pattern.has_own_loops:
            compiled.append(_compile(rule))
            undone |= {UNDOES.get(rule.name), *[other for other, name in UNDOES.items() if name == rule.name]}
    return {op: [c for c in compiled if c.left.op in ("", op)] for op in [*OPS, *REDUCTIONS, "var"]}


def _compile(rule: Rule) -> _Compiled:
    pattern = rule.pattern
    return _Compiled(rule.name, _shape(pattern.left), tuple(_conjuncts(pattern.when)), pattern.right)


def _conjuncts(when: Expr) -> list[Expr]:
    return [] if when is TRUE else chain_members(when, "and")[::-1]


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
    for addend in _operands("add", term):
        if addend.op == "const":
            remainder = addend.vmin
        else:
            last = addend.args[1] if addend.op == "mul" else addend
            modulus = gcd(modulus, last.vmin) if last.op == "const" else 1
        if modulus == 1:
            return 1, 0
    return modulus, remainder % modulus if modulus else remainder


class Matcher:
    """Every way in which rules rewrite a canonical term at its root, operands in any order.

    A subclass may know more: of bounds, and of the comparisons that hold.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = _compiled(tuple(rules))
        self._splits: dict[Expr, list[tuple[Expr, ...]]] = {}
        self._below: dict[Expr, set[str]] = {}

    def bounds(self, term: Expr) -> tuple[int, int]:
        """Inclusive bounds of a canonical term, for guards."""
        return term.vmin, term.vmax

    def holds(self, condition: Expr) -> bool:
        """Whether a canonical condition is known to hold, for guards."""
        return condition.vmin == 1

    def rewrites(self, term: Expr, only: Collection[str] | None = None) -> Iterator[tuple[str, Expr]]:
        """Names of rules, in their order, and what they make of ``term``; of all rules, or of those named."""
        for rule in self.rules.get(term.op, ()):
            if only is not None and rule.name not in only:
                continue
            for binding, rest in self._matches(rule.left, term):
                result = self._apply(rule, binding, term.op, rest)
                if result is not None and result is not term:
                    yield rule.name, result

    def _apply(self, rule: _Compiled, binding: Binding, op: str, rest: list[Expr]) -> Expr | None:
        """The right side with the operands that the left side left over, if the guard holds."""
        try:
            if not all(self.holds(self._instance(conjunct, binding)) for conjunct in rule.when):
                return None
            result = self._instance(rule.right, binding)
        except (ValueError, OverflowError):
            # a literal to compute has no value: its divisor is zero, a shift goes too far, or a bound is infinite
            return None
        return joined(op, [*_operands(op, result), *rest]) if rest else result

    def _instance(self, pattern: Expr, binding: Binding) -> Expr:
        """``pattern`` with its letters replaced, as a canonical term."""
        if is_condition_letter(pattern):
            return binding[str(pattern.args[0].value)]
        if pattern.op == "var":
            name = INDEX if is_index(pattern) else str(pattern.value)
            if name in binding:
                return binding[name]
            return const(self._measure(name, binding))
        if not pattern.args:
            return pattern
        if pattern.op == "load":
            # `at(x, y)`
            body, place = binding[moved_letter(pattern.args[0])], self._instance(pattern.args[1], binding)
            return canonical_terms([instantiate(body, binding[INDEX], place)])[0]
        return canonical(pattern.op, *[self._instance(a, binding) for a in pattern.args])

    def _measure(self, name: str, binding: Binding) -> int:
        """The value of a scalar such as ``vmin_x`` or ``gcd_x_d``."""
        function, *letters = name.split("_")
        term = binding[letters[0]]
        match function:
            case "vmin":
                return self.bounds(term)[0]
            case "vmax":
                return self.bounds(term)[1]
            case "free":
                return binding[INDEX] not in topological([term])
        modulus, remainder = _congruence(term)
        factor = gcd(modulus, remainder) or 1
        match function:
            case "factor":
                return factor
            case "gcd":
                return gcd(factor, binding[letters[1]].vmin)
        if not modulus:
            raise ValueError("a literal has no modulus")
        return modulus if function == "modulus" else remainder

    def _matches(self, left: _Shape, term: Expr) -> Iterator[tuple[Binding, list[Expr]]]:
        """Every way to match ``term``; of a chain, also every two operands, with the others as rest."""
        if not self._fits(left, term):
            return
        for binding in self._match(left, term, {}):
            yield binding, []
        if left.op in CHAINED:
            operands = _operands(left.op, term)
            # the operands before the last are final together: no two of them match
            if 2 < len(operands) <= LIMITS.chained_operands:
                last = operands.pop()
                for at, other in enumerate(operands):
                    for pair in ((other, last), (last, other)):
                        for binding in self._match_all(left.args, pair, {}):
                            yield binding, operands[:at] + operands[at + 1 :]

    def _fits(self, shape: _Shape, term: Expr) -> bool:
        """Whether a term can match, by its operator and those of its operands."""
        if not shape.fits(term):
            return False
        if not shape.below:
            return True
        found = self._below.get(term)
        if found is None:
            operands = _operands(term.op, term) if term.op in CHAINED else term.args
            found = self._below[term] = {operand.op for operand in operands}
        return shape.below <= found

    def _match(self, shape: _Shape, term: Expr, binding: Binding) -> Iterator[Binding]:
        """The bindings under which ``shape``, which fits, is ``term``."""
        if shape.kind:
            known = binding.get(shape.letter)
            if known is None:
                yield {**binding, shape.letter: term}
            elif known is term:
                yield binding
        elif shape.fixed is not None:
            yield binding
        else:
            for operands in self._ways(term):
                yield from self._match_all(shape.args, operands, binding)

    def _match_all(self, shapes: Sequence[_Shape], terms: Sequence[Expr], binding: Binding) -> Iterator[Binding]:
        if not all(map(self._fits, shapes, terms)):
            return
        bindings = iter([binding])
        for shape, term in zip(shapes, terms, strict=True):
            bindings = chain.from_iterable(map(partial(self._match, shape, term), bindings))
        yield from bindings

    def _ways(self, term: Expr) -> list[tuple[Expr, ...]]:
        """The operands of ``term`` in both orders if they commute; of a chain, each operand and the others."""
        found = self._splits.get(term)
        if found is None:
            found = [term.args]
            if term.op in CHAINED:
                operands = _operands(term.op, term)
                for at in range(len(operands) - 1 if 2 < len(operands) <= LIMITS.chained_operands else 0):
                    others = joined(term.op, operands[:at] + operands[at + 1 :])
                    found += [(others, operands[at]), (operands[at], others)]
            if commutes(term.op):
                found.append(term.args[::-1])
            self._splits[term] = found
        return found


class _Rewriter(Matcher):
    """One run: what every term met so far has become."""

    def __init__(self, rules: tuple[Rule, ...], known: frozenset[Expr], limit: int, work: Work) -> None:
        super().__init__(rules)
        self.known = known
        self.left = limit
        self.work = work
        self.applied: list[str] = []
        self.circles = 0
        self.stop = "saturated"
        self.final: dict[Expr, Expr] = {}

    def holds(self, condition: Expr) -> bool:
        """Whether the condition is true by its bounds or is one of the facts."""
        return condition.vmin == 1 or condition in self.known

    def normal_form(self, root: Expr) -> Expr:
        """``root`` rewritten to a fixpoint, operands first.

        Raises
        ------
        OverdueError
            At the end of the work, if it is not finished.
        """
        final = self.final
        # terms on their way: all are on the stack, so one that is met again closes a circle
        becoming: dict[Expr, Expr] = {}
        stack = [root]
        while stack:
            term = stack[-1]
            if term in final:
                stack.pop()
            elif term in becoming:
                final[term] = final[becoming[term]]
            elif waiting := [a for a in term.args if a not in final]:
                for arg in waiting:
                    if arg in becoming:
                        self._leave(arg)
                stack += [a for a in waiting if a not in final]
            else:
                following = self._follow(term)
                if following is term:
                    final[term] = term
                elif following in becoming and following not in final:
                    self._leave(term)
                else:
                    becoming[term] = following
                    stack.append(following)
        return final[root]

    def _leave(self, term: Expr) -> None:
        """Rewrite ``term``, where a circle closes, no further."""
        self.final[term] = term
        self.circles += 1
        self.stop = "iterations"

    def _follow(self, term: Expr) -> Expr:
        """What ``term`` becomes next, its operands being final: the term itself if nothing is to be done."""
        if _is_literal(term):
            return term
        late = self.work.late_or_raise()
        if late:
            self.stop = "time"
        if term.args:
            args = [self.final[a] for a in term.args]
            if late and term.op in REDUCTIONS:
                # an index of one value keeps its name: the reduction binds it
                args[1] = term.args[1]
            try:
                # a chain in order has new chains below it, each to be put in order
                rebuilt = make(term.op, *args) if late else canonical(term.op, *args)
            except ValueError:
                # never evaluated: simplified, its divisor is always zero
                return term
            if rebuilt is not term:
                return rebuilt
        if late:
            return term
        for name, result in self.rewrites(term):
            if not self.left:
                self.stop = "iterations"
                return term
            self.left -= 1
            self.applied.append(name)
            return result
        return term
