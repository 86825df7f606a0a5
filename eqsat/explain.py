"""Why a result equals its input: a derivation, one law at a time, that a person can read and that is checked.

How the answer was found does not matter here. Operands first, each subterm of the input is brought into the form that
the answer has for it, or into a shorter one if the theory knows one, and :mod:`eqsat.derive` looks for a short chain
of laws between the two. Then laws are dropped, one after the other, as long as a derivation by the others remains.

Every step is compared by :func:`eqsat.verify.check_equal` when it is made, wherever its constraints, its gate and the
conditions around it hold. The steps are made on the input one by one, and what they leave is the answer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from eqsat.definedness import live_branches, undefined
from eqsat.derive import LINEAR, READINGS, Laws, Move, Search, laws_with, reading, spelled
from eqsat.expr import (
    Expr,
    ExprLike,
    brief,
    const,
    make,
    rebuild,
    substitute,
    topological,
    use_counts,
    var,
    variables,
    with_operands,
)
from eqsat.facts import Work
from eqsat.forms import Simplicity, to_expr, topological_until, without_quotients
from eqsat.greedy import CHAINED
from eqsat.limits import refuse_seconds
from eqsat.linear import Theory
from eqsat.ops import DIVISIONS, REDUCTIONS
from eqsat.rule import Rule
from eqsat.spelling import Value
from eqsat.text import numbered, to_text
from eqsat.verify import Check, check_equal, prove_equal

if TYPE_CHECKING:
    from eqsat.result import Result

#: Laws for steps between which no chain of smaller ones was found.
COARSE = {
    "normal-form": "both have the same normal form in linear integer arithmetic",
    "unexplained": "no laws were found that lead from one to the other; both sides were only compared",
}


class _Attempt(NamedTuple):
    """One search: whether large operands are opaque to it, whether it is deep, and how many states it may look at."""

    opaque: bool
    deep: bool
    states: int


#: One after the other; nine searches of ten that succeed look at less than 30 states.
ATTEMPTS = (
    _Attempt(True, False, 40),
    _Attempt(False, False, 40),
    _Attempt(False, True, 40),
    _Attempt(False, False, 150),
)
#: For what may do without simplifying operands first.
AT_ONCE = (_Attempt(False, False, 12),)
#: Terms of up to so many nodes are tried at once.
MAX_AT_ONCE = 40
#: Operands of more nodes are first taken as they are: the search does not see into them.
MAX_TRANSPARENT = 12
#: Branches within so many branches are entered to use their conditions.
MAX_NESTED = 8
#: Subterms of more nodes are printed by name if they occur several times.
MAX_PRINTED = 24
#: Longer terms have a line of their own.
MAX_COLUMN = 60
#: Steps are checked at every point if there are up to so many, else at chosen ones.
MAX_POINTS = 2**18
SAMPLES = 2000
#: The shares of the time after which laws are searched, and after which they are dropped, no more.
SEARCHING, SPARING = 0.65, 0.8


class UnsoundStepError(RuntimeError):
    """A step of a derivation is false, so some law is. The message names the law and a counterexample."""


@dataclass(frozen=True)
class Step:
    """One application of one law.

    Attributes
    ----------
    roots : tuple of int
        The roots that it changes.
    before, after : Expr
        ``before`` becomes ``after`` wherever it occurs in them, inside the branches that ``given`` names.
    given : tuple of bool Expr
        The conditions of enclosing selections that are used, outermost first; ``not c`` names the other branch of
        ``where(c, ...)``. Empty if the step holds wherever the constraints, and the gate of its roots, do.
    law : str
        The name of a rule, of a lemma of :mod:`eqsat.derive`, or of a coarse step (:data:`COARSE`).
    why : str
        The law's reason.
    instance : tuple of two Expr, or None
        The part of ``before`` to which the law was applied, and what it became, if that is not all of it.
    check : Check
        How both sides were compared.
    """

    roots: tuple[int, ...]
    before: Expr
    after: Expr
    given: tuple[Expr, ...]
    law: str
    why: str
    instance: tuple[Expr, Expr] | None
    check: Check

    def apply(self, root: Expr) -> Expr:
        """``root`` after the step."""
        return _replaced(root, self.before, self.after, self.given)


def _replaced(root: Expr, before: Expr, after: Expr, given: tuple[Expr, ...]) -> Expr:
    if not given:
        return substitute([root], {before: after})[0]

    def enter(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        branch = _branch(term.op, args, given[0])
        if not branch:
            return None
        return make(term.op, *args[:branch], _replaced(args[branch], before, after, given[1:]), *args[branch + 1 :])

    return rebuild([root], enter)[0]


def _branch(op: str, args: tuple[Expr, ...], condition: Expr) -> int:
    """Which operand a selection takes where ``condition``, its own or its complement, holds; 0 if it is neither."""
    if op != "where":
        return 0
    return 1 if args[0] is condition else 2 if condition.op == "not" and args[0] is condition.args[0] else 0


@dataclass(frozen=True)
class Explanation:
    """A checked derivation of a result from its input; as text, it reads like a calculation.

    Attributes
    ----------
    before, exprs : tuple of Expr
        The roots at the start and at the end.
    constraints, gates
        The known facts under which they are equal.
    steps : tuple of Step
        Made in order, they turn ``before`` into ``exprs``.
    laws : dict from str to str
        The laws that the steps cite, in the order of first use, and what they say.
    minimal : bool
        Whether every law is needed: without any one of them the search finds no derivation. False if time ran out.
    """

    before: tuple[Expr, ...]
    exprs: tuple[Expr, ...]
    constraints: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    steps: tuple[Step, ...]
    laws: dict[str, str]
    minimal: bool

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the laws that the steps cite."""
        return tuple(self.laws)

    @property
    def coarse(self) -> int:
        """How many steps are larger than one application of a law."""
        return sum(step.law in COARSE for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(_Page(self).lines())

    def record(self) -> dict[str, Any]:
        """The explanation as JSON data; ``lets`` names large subterms, in order, as in the format of corpora."""
        page = _Page(self)
        return {
            "steps": [
                {
                    "roots": list(step.roots),
                    "before": page.text(step.before),
                    "after": page.text(step.after),
                    "given": [page.text(condition) for condition in step.given],
                    "law": step.law,
                    "why": step.why,
                    "instance": step.instance and [page.text(part) for part in step.instance],
                    "checked": step.check.kind,
                    "points": step.check.points,
                }
                for step in self.steps
            ],
            "lets": [[name, page.definition(term)] for term, name in page.names.items()],
            "laws": self.laws,
            "minimal": self.minimal,
            "coarse": self.coarse,
        }


def explain(
    result: Result, *, only: Collection[str] | None = None, prove: bool = False, seconds: float = 5.0
) -> Explanation:
    """Derive the output of ``result`` from its input in small checked steps, by few laws.

    Parameters
    ----------
    only : collection of str, or None
        The names of the laws that may be cited; None for all. What they do not reach takes coarse steps.
    prove : bool
        Prove each step that has too many points to be checked at every one (more with the extra: check).
    seconds : float
        About how long it may take. What is not derived by then is one coarse step per root.

    Raises
    ------
    UnsoundStepError
        If the sides of a step differ.
    ValueError
        If there are less than 0 seconds.

    >>> from eqsat.optimize import optimize
    >>> print(explain(optimize("R0//8*8 + R0%8", R0=(0, 31))))
    R0//8*8 + R0%8
      = R0    mod-core: x = (x//n)*n + x%n  [at all 32 points]
    <BLANKLINE>
    By one law:
      mod-core  x % n + (x // n)*n = x
    """
    refuse_seconds(seconds)
    return _Explainer(result, only, prove, seconds).run()


@dataclass
class _Link:
    """``before`` becomes ``after``: by moves between them as read, or by one law alone.

    ``opaque`` holds large operands, each with a variable of its range that stands for it while moves are sought.
    """

    before: Expr
    after: Expr
    given: tuple[Expr, ...]
    laws: Laws
    opaque: dict[Expr, Expr]
    moves: Sequence[Move] = ()
    law: str = ""

    def cites(self) -> set[str]:
        return {self.law} if self.law else {move.law for move in self.moves}

    def find(self, only: frozenset[str] | None, deadline: float, attempts: Sequence[_Attempt]) -> bool:
        """Find moves by the laws in ``only``; whether there are any."""
        self.laws.only = only
        whole = self.opaque
        for attempt in attempts:
            opaque = whole if attempt.opaque else {}
            if attempt.opaque and not whole:
                continue
            before, after = _cut(self.before, opaque), _cut(self.after, opaque)
            try:
                start, goal = self.laws.read(before), self.laws.read(after)
            except ValueError:
                # it divides by zero, where it is never evaluated
                return False
            if start is goal:
                law = reading(before, after)
                if only is None or law in only:
                    self.law, self.moves, self.opaque = law, (), opaque
                    return True
                continue
            self.laws.deep = attempt.deep
            moves = Search(self.laws, start, goal, deadline).run(attempt.states)
            if moves is not None:
                self.law, self.moves, self.opaque = "", moves, opaque
                return True
        return False

    def steps(self) -> Iterator[tuple[Expr, Expr, str, tuple[Expr, Expr] | None]]:
        """Both sides of each step with opaque operands cut out, its law, and to what part that was applied."""
        now, end = _cut(self.before, self.opaque), _cut(self.after, self.opaque)
        if self.law:
            yield now, end, self.law, None
        for move in self.moves:
            following = end if move is self.moves[-1] else spelled(move.state)
            part = spelled(move.part), spelled(move.new)
            yield now, following, move.law, None if part[1] in (following, now) else part
            now = following


def _cut(term: Expr, opaque: Mapping[Expr, Expr]) -> Expr:
    """``term`` with what is opaque replaced, and not looked into."""
    new = dict(opaque)
    for part in topological_until([term], new.__contains__):
        args = tuple([new[a] for a in part.args])
        new[part] = part if args == part.args else make(part.op, *args)
    return new[term]


class _Plan:
    """The links that derive the roots of one gate, in the order in which they are to be made."""

    def __init__(self, explainer: _Explainer, gate: Expr | None, members: Sequence[int]) -> None:
        self.explainer, self.gate, self.members = explainer, gate, members
        self.before = [explainer.result.before[i] for i in members]
        self.after = [explainer.result.exprs[i] for i in members]
        result = explainer.result
        base = Theory(result.constraints, work=Work(until=explainer.until(1)))
        fact = () if gate is None else (base.condition(gate),)
        # None under a gate that never holds
        self.theory = base.under(fact[0]) if fact else base
        self.guesses = [guess for guess in result.guesses if {*guess.facts} <= {*result.constraints, *fact}]
        self._laws: dict[Theory, Laws] = {}
        # how many nodes a term has, written out
        self._size = Simplicity().size
        self._variables: dict[Expr, Expr] = {}
        #: By value, the form that the answer has for it.
        self._answers: dict[Value, Expr] = {}
        #: The same in branches whose conditions say that sums are equal, where other terms have that value.
        self._equated: dict[Theory, dict[Value, Expr]] = {}
        self.links: list[_Link] = []
        if self.theory is not None:
            self.theory.learn([(guess.before, guess.after) for guess in self.guesses])
            if read := _selections_read(self.theory, self.before):
                self.theory.learn([(self.theory.simplify(before), after) for before, after in read])
            sets = base.variables
            # an index means nothing outside of its reduction
            outside = [part for part in topological(self.after) if not sets.of(part) & sum(sets.index_extents)]
            for theory in (base, self.theory):
                for part in outside:
                    self._answers.setdefault(theory.value(part), part)
            wanted = dict(zip(self.before, self.after, strict=True))
            self.links = self._walk(self.before, wanted, self.theory, ())[1]

    def _walk(
        self, roots: Sequence[Expr], wanted: Mapping[Expr, Expr], theory: Theory, given: tuple[Expr, ...]
    ) -> tuple[dict[Expr, Expr], list[_Link]]:
        """What the terms below ``roots`` become, and by which links; operands are left out where it goes at once."""
        users = use_counts(roots)
        # what only the conditions around it keep from dividing by zero is linked where these are known
        unsafe = undefined(list(users), theory)
        becomes: dict[Expr, Expr] = {}
        # what is linked as it is given comes before its operands can have changed elsewhere, the largest first
        first: list[_Link] = []
        links: list[_Link] = []
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            term, ready = stack.pop()
            if term in becomes:
                continue
            target = wanted[term] if term in wanted else self._answer(term, theory)
            chain, operands = _chain(term, users)
            if not ready:
                if target is term:
                    becomes[term] = term
                elif target is not None and term not in unsafe and (link := self._at_once(term, target, theory, given)):
                    first.append(link)
                    becomes[term] = target
                else:
                    stack.append((term, True))
                    live = operands
                    if term.op == "where":
                        live = [term.args[0], *[branch for branch, _ in live_branches(term, theory)]]
                    if term.op in REDUCTIONS:
                        # steps in a body are steps of the whole reduction
                        live = list(term.args[2:])
                    stack += [(operand, False) for operand in reversed(live)]
                continue
            now = _rebuilt(chain, becomes)
            if term.op == "where":
                now = self._enter_branches(now, theory, given, links)
            if term in unsafe:
                target = now
            elif target is None:
                simple = _simple(theory, term)
                target = simple if self._size(simple) < self._size(now) else now
            if target is not now:
                links.append(self._link(now, target, theory, given, [becomes.get(o, o) for o in operands]))
            becomes[term] = target
        first.sort(key=lambda link: self._size(link.before), reverse=True)
        return becomes, first + links

    def _answer(self, term: Expr, theory: Theory) -> Expr | None:
        """The form that the answer has for the value of ``term``, or the literal that it is."""
        value = theory.value(term)
        found = self._answers.get(value)
        equal = self._equated[theory].get(value) if theory in self._equated else None
        if equal is not None and self._size(equal) < self._size(term):
            found = equal
        if found is None:
            simple = theory.simplify(term)
            return None if simple.args or simple.op == "var" else simple
        return found

    def _at_once(self, term: Expr, target: Expr, theory: Theory, given: tuple[Expr, ...]) -> _Link | None:
        """A link from ``term`` as it is, if it is small and few states lead there."""
        if self._size(term) > MAX_AT_ONCE or not term.args:
            return None
        link = _Link(term, target, given, self._laws_of(theory), {})
        deadline = self.explainer.until(SEARCHING / 2)
        return link if link.find(self.explainer.only, deadline, AT_ONCE) else None

    def _enter_branches(self, now: Expr, theory: Theory, given: tuple[Expr, ...], links: list[_Link]) -> Expr:
        """A selection with its branches brought to what they are where its condition decides for them."""
        condition, *branches = now.args
        holds = theory.condition(condition)
        contexts = ((holds, condition), (theory.negate(holds), make("not", condition)))
        for at, (fact, shown) in enumerate(contexts):
            inside = theory.under(fact)
            if inside is not None and inside is not theory and len(given) < MAX_NESTED:
                if inside.equations(self.theory) and inside not in self._equated:
                    equal: dict[Value, Expr] = {}
                    self._equated[inside] = equal
                    for part in topological(self.after):
                        equal.setdefault(inside.value(part), part)
                becomes, found = self._walk([branches[at]], {}, inside, (*given, shown))
                branches[at] = becomes[branches[at]]
                links += found
        return make("where", condition, *branches)

    def _link(
        self, before: Expr, after: Expr, theory: Theory, given: tuple[Expr, ...], operands: Sequence[Expr]
    ) -> _Link:
        opaque = {o: self._variable(o) for o in operands if not o.is_bool and self._size(o) > MAX_TRANSPARENT}
        link = _Link(before, after, given, self._laws_of(theory), opaque)
        if not link.find(self.explainer.only, self.explainer.until(SEARCHING), ATTEMPTS):
            link.law, link.opaque = _coarse(theory, before, after), {}
        return link

    def _laws_of(self, theory: Theory) -> Laws:
        if theory not in self._laws:
            self._laws[theory] = Laws(self.explainer.result.rule_set, theory, self.guesses)
        return self._laws[theory]

    def _variable(self, operand: Expr) -> Expr:
        """The variable that stands for an opaque operand."""
        if operand not in self._variables:
            name = f"{self.explainer.prefix}{len(self._variables)}"
            self._variables[operand] = var(name, operand.vmin, operand.vmax)
        return self._variables[operand]


def _selections_read(theory: Theory, roots: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """Selections between 0 and 1 that are a quotient of two values below ``roots``, and that quotient."""
    found: list[tuple[Expr, Expr]] = []
    quotients = {a for term in topological(roots) if term.op in DIVISIONS for a in theory.form(term).terms}
    for quotient in sorted((a for a in quotients if a.op == "floordiv"), key=lambda a: a.key):
        below = theory.lower_value(quotient)
        if below is not None:
            condition, low = below
            risen = condition.op == "lt"
            selection = make("where", condition if risen else theory.negate(condition), const(0), const(1))
            step = quotient - low if risen else low + 1 - quotient
            if theory.form(selection) != theory.form(step):
                found.append((selection, step))
    return found


def _simple(theory: Theory, term: Expr) -> Expr:
    """The normal form of ``term``, with remainders, and without quotients that are sums, where that is shorter."""
    if term.is_bool:
        return theory.condition(term)
    return without_quotients(to_expr(theory.in_digits(theory.form(term))[0]), theory.equations())


def _coarse(theory: Theory, before: Expr, after: Expr) -> str:
    return "normal-form" if theory.value(before) == theory.value(after) else "unexplained"


def _chain(term: Expr, users: Mapping[Expr, int]) -> tuple[list[Expr], list[Expr]]:
    """The nodes of the sum, or other chain, that ``term`` is, operands first, and its operands.

    What others use too is an operand.
    """
    chained = (
        _is_sum if _is_sum(term) else (lambda part: part.op == term.op) if term.op in CHAINED else (lambda _: False)
    )
    nodes: list[Expr] = []
    operands: list[Expr] = []
    stack = [term]
    while stack:
        part = stack.pop()
        if part is term or (users[part] == 1 and chained(part)):
            nodes.append(part)
            stack.extend(reversed(part.args))
        else:
            operands.append(part)
    return nodes[::-1], operands


def _is_sum(term: Expr) -> bool:
    if term.op == "mul":
        return term.args[0].op == "const" or term.args[1].op == "const"
    return term.op in LINEAR


def _rebuilt(chain: Sequence[Expr], becomes: Mapping[Expr, Expr]) -> Expr:
    """The last node of a chain over what its operands become, if these divide by nothing that is always zero."""
    new: dict[Expr, Expr] = {}
    for node in chain:
        args = tuple([new[a] if a in new else becomes.get(a, a) for a in node.args])
        try:
            new[node] = with_operands(node, args)
        except ValueError:
            return chain[-1]
    return new[chain[-1]]


class _Explainer:
    """One derivation of all roots."""

    def __init__(self, result: Result, only: Collection[str] | None, prove: bool, seconds: float) -> None:
        self.result, self.prove, self.seconds = result, prove, seconds
        self.only = None if only is None else frozenset(only)
        self.started = time.perf_counter()
        gates = [gate for gate in result.gates if gate is not None]
        names = [str(v.value) for v in variables([*result.before, *result.exprs, *result.constraints, *gates])]
        self.prefix = "_" * (1 + max([len(n) - len(n.lstrip("_")) for n in names], default=0))
        self.steps: list[Step] = []
        self.cited: frozenset[str] = frozenset()
        self.minimal = False
        rules = laws_with(result.rule_set)
        self.why = {**READINGS, **COARSE, **{rule.name: rule.why for rule in rules}}
        self.statements = {**READINGS, **COARSE, **{rule.name: _statement(rule) for rule in rules}}

    def until(self, share: float) -> float:
        """When a share of the time is over."""
        return self.started + share * self.seconds

    def run(self) -> Explanation:
        result = self.result
        members: dict[Expr | None, list[int]] = {}
        for index, gate in enumerate(result.gates):
            members.setdefault(gate, []).append(index)
        plans = [_Plan(self, gate, indices) for gate, indices in members.items()]
        links = [link for plan in plans for link in plan.links]
        self._spare_laws(links)
        self.cited = frozenset({law for link in links for law in link.cites()})
        for plan in plans:
            self._make(plan)
        cited = dict.fromkeys(step.law for step in self.steps)
        laws = {law: self.statements[law] for law in cited}
        known = (result.before, result.exprs, result.constraints, result.gates)
        return Explanation(*known, tuple(self.steps), laws, self.minimal)

    def _spare_laws(self, links: Sequence[_Link]) -> None:
        """Drop laws one after the other, the least used first, where those that remain suffice."""
        uses = Counter(law for link in links for law in link.cites() if law not in COARSE)
        for law in sorted(uses, key=lambda name: (uses[name], name)):
            concerned = [link for link in links if law in link.cites()]
            others = frozenset({name for link in links for name in link.cites()} - {law})
            spared = [replace(link) for link in concerned]
            if all(link.find(others, self.until(SPARING), ATTEMPTS) for link in spared):
                for link, found in zip(concerned, spared, strict=True):
                    link.law, link.moves, link.opaque = found.law, found.moves, found.opaque
        self.minimal = time.perf_counter() < self.until(SPARING)

    def _make(self, plan: _Plan) -> None:
        """Make the steps of a plan on its roots; where time runs out, or something is missing, one for each root."""
        roots = _Roots(plan.before)
        made: dict[Expr, Expr] = {}
        for link in plan.links:
            if time.perf_counter() > self.until(1):
                break
            if link.before not in roots and not self._follow(link, made, roots):
                continue
            whole: dict[Expr, ExprLike] = {cut: operand for operand, cut in link.opaque.items()}
            for before, after, law, instance in link.steps():
                try:
                    old, new, *part = substitute([before, after, *(instance or ())], whole)
                    changed = roots.replace(old, new, link.given)
                except ValueError:
                    # what is never evaluated would divide by what is always zero
                    break
                if changed:
                    made[old] = new
                    check = self._check(plan.gate, link.given, law, [(before, after), (old, new)])
                    members = tuple([plan.members[i] for i in changed])
                    applied = (part[0], part[1]) if part else None
                    self.steps.append(Step(members, old, new, link.given, law, self.why[law], applied, check))
        for index, before, after in zip(plan.members, roots.terms, plan.after, strict=True):
            if before is not after:
                law = "never" if plan.theory is None else _coarse(plan.theory, before, after)
                check = self._check(plan.gate, (), law, [(before, after)])
                if check.kind == "exhaustive" and not check.points:
                    law = "never"
                self.steps.append(Step((index,), before, after, (), law, self.why[law], None, check))

    def _follow(self, link: _Link, made: Mapping[Expr, Expr], roots: _Roots) -> bool:
        """Start ``link`` from what other steps have made of its left side; whether it is still to be made."""

        def follow(term: Expr, args: tuple[Expr, ...]) -> Expr:
            now = term if args == term.args else make(term.op, *args)
            return made.get(now, now)

        (link.before,) = rebuild([link.before], follow)
        link.opaque = {}
        if link.before is link.after or link.before not in roots:
            return False
        if link.find(self.cited, self.until(SPARING), ATTEMPTS):
            return True
        self.minimal = False
        return link.find(self.only, self.until(SPARING), ATTEMPTS)

    def _check(self, gate: Expr | None, given: Sequence[Expr], law: str, sides: Sequence[tuple[Expr, Expr]]) -> Check:
        """Compare both sides: with operands cut out, which shows more, or else as they are."""
        conditions = [*given] if gate is None else [gate, *given]
        context = reduce(lambda x, y: x & y, conditions) if conditions else None
        for before, after in dict.fromkeys(sides):
            check = self._compare(before, after, context)
            if check.equal:
                return check
        raise UnsoundStepError(f"by {law}, {brief(before)!r} is not {brief(after)!r}: see {check.counterexample}")

    def _compare(self, before: Expr, after: Expr, context: Expr | None) -> Check:
        known: dict[str, Any] = {"constraints": self.result.constraints, "gates": [context]}
        check = check_equal([before], [after], **known, most=MAX_POINTS, samples=SAMPLES)
        if self.prove and check.equal and check.kind in ("sampled", "unchecked"):
            left = max(0.1, self.until(1) - time.perf_counter())
            return prove_equal([before], [after], **known, seconds=left)
        return check


class _Roots:
    """Terms that change, and which of their subterms uses which: a change touches only what is above it."""

    def __init__(self, terms: Sequence[Expr]) -> None:
        self.terms = list(terms)
        self._users: dict[Expr, set[Expr]] = {}
        for term in terms:
            self._add(term)

    def __contains__(self, term: Expr) -> bool:
        return term in self._users

    def replace(self, before: Expr, after: Expr, given: Sequence[Expr]) -> list[int]:
        """Replace a subterm wherever it occurs in the branches ``given``; which terms that changes."""
        if not given:
            return self._exchange({before: after})
        first = given[0]
        conditions = [first, first.args[0]] if first.op == "not" else [first]
        selections = [user for condition in conditions for user in self._users.get(condition, ())]
        found = {s: _replaced(s, before, after, tuple(given)) for s in selections if _branch(s.op, s.args, first)}
        return self._exchange({old: new for old, new in found.items() if old is not new})

    def _exchange(self, new: dict[Expr, Expr]) -> list[int]:
        new = {old: term for old, term in new.items() if old in self._users}
        above: set[Expr] = set()
        stack = list(new)
        while stack:
            for user in self._users[stack.pop()]:
                if user not in above:
                    above.add(user)
                    stack.append(user)
        tops = [term for term in self.terms if term in above or term in new]
        for term in topological_until(tops, lambda t: t in new or t not in above):
            new[term] = with_operands(term, tuple([new.get(a, a) for a in term.args]))
        changed = [index for index, term in enumerate(self.terms) if new.get(term, term) is not term]
        old = self.terms
        self.terms = [new.get(term, term) for term in old]
        for index in changed:
            self._add(self.terms[index])
        kept = set(self.terms)
        for index in changed:
            self._drop(old[index], kept)
        return changed

    def _add(self, root: Expr) -> None:
        for term in topological_until([root], self._users.__contains__):
            self._users[term] = set()
            for arg in term.args:
                self._users[arg].add(term)

    def _drop(self, root: Expr, kept: Collection[Expr]) -> None:
        """Forget what no term uses any more."""
        stack = [root]
        while stack:
            term = stack.pop()
            if term in self._users and not self._users[term] and term not in kept:
                del self._users[term]
                for arg in set(term.args):
                    self._users[arg].discard(term)
                    stack.append(arg)


def _statement(rule: Rule) -> str:
    return f"{rule.left} = {rule.right}" + (f"  when {rule.when}" if rule.when else "")


class _Page:
    """An explanation as text; subterms that are large and used several times have names."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        shown = [*explanation.before, *explanation.exprs]
        for step in explanation.steps:
            shown += [step.before, step.after, *step.given, *(step.instance or ())]
        self.names = _names(shown)

    def text(self, term: Expr) -> str:
        return to_text(term, self.names)

    def definition(self, term: Expr) -> str:
        """The text of a term that may itself have a name."""
        return to_text(term, {part: name for part, name in self.names.items() if part is not term})

    def lines(self) -> Iterator[str]:
        explanation = self.explanation
        if not explanation.steps:
            yield "The input is the answer: there is nothing to derive."
            return
        chains = list(self._chains())
        if len(chains) > 1:
            for before, after in zip(explanation.before, explanation.exprs, strict=True):
                yield f"{self.definition(before)}  becomes  {self.definition(after)}"
            yield ""
        if self.names:
            for term, name in self.names.items():
                yield f"{name} stands for {self.definition(term)}"
            yield ""
        lefts = [len(self.definition(step.after)) for step in explanation.steps]
        column = max([length for length in lefts if length <= MAX_COLUMN], default=0)
        for chain in chains:
            yield self._head(chain[0])
            for step in chain:
                yield from self._step(step, column)
            yield ""
        yield from self._laws()

    def _chains(self) -> Iterator[list[Step]]:
        """The steps, those together that go on from one another."""
        chain: list[Step] = []
        for step in self.explanation.steps:
            if chain and (step.before, step.given, step.roots) != (chain[-1].after, chain[-1].given, chain[-1].roots):
                yield chain
                chain = []
            chain.append(step)
        if chain:
            yield chain

    def _head(self, step: Step) -> str:
        context = "".join(f", where {self.text(condition)}" for condition in step.given)
        roots = f"  (root {', '.join(map(str, step.roots))})" if len(self.explanation.before) > 1 else ""
        return f"{self.definition(step.before)}{context}{roots}"

    def _step(self, step: Step, column: int) -> Iterator[str]:
        left = self.definition(step.after)
        why = step.why if step.instance is None else f"{' = '.join(map(self.text, step.instance))} ({step.why})"
        right = f"{step.law}: {why}  [{_checked(step.check)}]"
        if len(left) > column:
            yield f"  = {left}"
            left = ""
            yield f"    {left:<{column}}    {right}"
        else:
            yield f"  = {left:<{column}}    {right}"

    def _laws(self) -> Iterator[str]:
        explanation = self.explanation
        laws = len(explanation.laws)
        needed = ", none of which can be spared" if explanation.minimal else ""
        yield "By one law:" if laws == 1 else f"By {laws} laws{needed}:"
        column = max(map(len, explanation.laws))
        for law, statement in explanation.laws.items():
            yield f"  {law:<{column}}  {statement}"
        if explanation.coarse:
            steps = "one step is" if explanation.coarse == 1 else f"{explanation.coarse} steps are"
            yield f"{steps} coarse: no chain of single laws was found there in time"


def _checked(check: Check) -> str:
    if check.kind in ("proved", "unchecked"):
        return check.kind
    points = "one point" if check.points == 1 else f"{check.points} points"
    return f"at all {points}" if check.kind == "exhaustive" else f"at {points}"


def _names(shown: Sequence[Expr]) -> dict[Expr, str]:
    """Names for large subterms that occur several times in ``shown``, in an order in which they can be defined."""
    order = topological(shown)
    users = Counter(arg for term in order for arg in set(term.args))
    taken = {str(term.value) for term in order if term.op == "var"}
    free = numbered("t", taken)
    names: dict[Expr, str] = {}
    widths: dict[Expr, int] = {}
    for term in order:
        widths[term] = 1 + sum([widths[a] for a in term.args])
        if widths[term] > MAX_PRINTED and users[term] > 1:
            names[term] = next(free)
            widths[term] = 1
    return names
