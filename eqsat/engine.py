"""The only module that talks to egglog: compile rules, insert terms, saturate within a budget, freeze.

A :class:`Session` compiles its rules once; every :meth:`Session.saturate` is insert, rounds, freeze, clear. One round
runs the analyses, then all rules, as far as there are nodes for them to match. The analyses: bounds ``lo`` and ``hi``;
alignment, all values being ``remainder`` modulo ``modulus`` (0: no other value); a divisor ``fac`` of all values; the
``size`` of the smallest term. Where classes unite the larger modulus is kept: both congruences hold, and each alone is
true. The result is plain data: an :class:`eqsat.extract.graph.EGraph`.

What a node means is in :mod:`eqsat.rule`; ``Ref`` rows name the classes that Python knows, ``True`` is the class of all
facts. Facts may be used anywhere in the graph: every equality found holds where all of them hold.

What keeps e-graphs small: literals are part of the node, so that they are never addends; a node that contains its own
class is subsumed, and so is every other node of a class known to be a literal; and a rule that builds terms matches
only terms within :data:`SLACK` operators of the smallest equal one.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from eqsat.expr import Expr, brief, topological
from eqsat.extract.graph import EGraph, Node
from eqsat.facts import ContradictionError
from eqsat.limits import refuse_below
from eqsat.ops import OPS, Bounds
from eqsat.rule import (
    CONSTRUCTORS,
    CompiledRule,
    Rule,
    common_divisor,
    compile_rule,
    encode,
    floor_parts,
    refuse_repeated,
)

_I64 = range(-(2**63), 2**63)
#: egglog keeps every script, and looks at it again and again: after so many characters a session is worn out.
MOST_SCRIPTS = 300_000
#: How often the analyses run in a round, each time one operator further up.
ANALYSES = 5
#: A rule that builds terms matches only those of up to so many operators more than the smallest equal one.
SLACK = 2


@dataclass(frozen=True)
class Budget:
    """What one optimisation may use: e-nodes, 1 or more, seconds and rounds of saturation, each 0 or more.

    Raises
    ------
    ValueError, TypeError
        If one of them is less, or no number.
    """

    nodes: int = 20_000
    seconds: float = 2.0
    rounds: int = 24

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("seconds", 0), ("rounds", 0)):
            refuse_below(least, getattr(self, name), name, "a budget of ")


@dataclass
class Saturation:
    """A saturated (or stopped) e-graph.

    Attributes
    ----------
    graph : EGraph
        Its roots are the classes of the inserted roots, in order.
    stop : str
        ``"saturated"``, or which budget ran out: ``"nodes"``, ``"time"``, ``"iterations"``.
    rounds : int
        Rounds run.
    matches : dict from rule name to int
        How often each rule matched.
    seconds : dict from rule name to float
        Time that each rule's search took.
    """

    graph: EGraph
    stop: str
    rounds: int
    matches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class UnsoundUnionError(RuntimeError):
    """Two different values in one class: some rule is false. The message names the rules that fired."""


_SORTS = """
(sort T)
(constructor Num (i64) T) (constructor Var (String) T) (constructor Ref (i64) T)
(constructor True () T) (constructor False () T) (relation Contradiction ())
(constructor AddK (T i64) T) (constructor MulK (T i64) T) (constructor DivK (T i64) T) (constructor ModK (T i64) T)
(function lo (T) i64 :merge (max old new))
(function hi (T) i64 :merge (min old new))
(function fac (T) i64 :merge (max old new))
(function modulus (T) i64 :merge (* (min 1 (min old new)) (max old new)))
(function remainder (T i64) i64 :merge (min old new))
(function size (T) i64 :merge (min old new))
(ruleset bounds)
"""

_FOUR = "(= p (* a c)) (= q (* a d)) (= r (* b c)) (= s (* b d))"
_X, _Y = "(= a (lo x)) (= b (hi x))", "(= c (lo y)) (= d (hi y))"


def _corner_quotients() -> str:
    facts = [floor_parts(f"{i}{j}_", i, j) for i in "ab" for j in "cd"]
    quotients = [f[1] for f in facts]
    low = f"(min (min {quotients[0]} {quotients[1]}) (min {quotients[2]} {quotients[3]}))"
    return f"{' '.join(f[0] for f in facts)} (= l {low}) (= h {low.replace('min', 'max')})"


def _floors(divisor: str) -> str:
    low, high = floor_parts("l_", "a", divisor), floor_parts("h_", "b", divisor)
    return f"{low[0]} {high[0]}"


def _congruence(letter: str, modulus: str, remainder: str) -> str:
    """Facts that give the congruence of a class; that of a literal, modulo 0, is not one."""
    return f"(= {modulus} (modulus {letter})) (= {remainder} (remainder {letter} {modulus})) (> {modulus} 0)"


#: Interval analysis: what is known of a node from what is known of its operands.
_BOUNDS = [
    ("(= e (Num l))", "(= h l)"),
    ("(= e (AddK x k))", f"{_X} (= l (+ a k)) (= h (+ b k))"),
    ("(= e (MulK x k))", f"{_X} (= p (* a k)) (= q (* b k)) (= l (min p q)) (= h (max p q))"),
    ("(= e (DivK x k))", f"{_X} {_floors('k')} (= l (min l_q h_q)) (= h (max l_q h_q))"),
    ("(= e (ModK x k))", "(> k 0) (= l 0) (= h (- k 1))"),
    ("(= e (ModK x k))", "(< k 0) (= l (+ k 1)) (= h 0)"),
    ("(= e (ModK x k))", "(> k 0) (= l 0) (= h (hi x)) (>= (lo x) 0)"),
    (
        "(= e (ModK x k))",
        f"(> k 0) {_congruence('x', 'm', 'r')} (= g {common_divisor('m', 'k')}) (= l (% r g)) (= h (+ (- k g) l))",
    ),
    ("(= e (Add x y))", f"{_X} {_Y} (= l (+ a c)) (= h (+ b d))"),
    ("(= e (Mul x y))", f"{_X} {_Y} {_FOUR} (= l (min (min p q) (min r s))) (= h (max (max p q) (max r s)))"),
    ("(= e (Div x y))", f"{_X} {_Y} (> c 0) {_corner_quotients()}"),
    ("(= e (Div x y))", f"{_X} {_Y} (< d 0) {_corner_quotients()}"),
    ("(= e (Mod x y))", f"{_Y} (> c 0) (= l 0) (= h (- d 1))"),
    ("(= e (Mod x y))", f"{_Y} (< d 0) (= l (+ c 1)) (= h 0)"),
    ("(= e (Mod x y))", "(> (lo y) 0) (>= (lo x) 0) (= l 0) (= h (hi x))"),
    ("(= e (Min x y))", f"{_X} {_Y} (= l (min a c)) (= h (min b d))"),
    ("(= e (Max x y))", f"{_X} {_Y} (= l (max a c)) (= h (max b d))"),
    ("(= e (Where w x y))", f"{_X} {_Y} (= l (min a c)) (= h (max b d))"),
]

_OF_X, _OF_Y = _congruence("x", "a", "b"), _congruence("y", "c", "d")
_PRODUCT = (
    f"(= p (* a c)) (= q (* a d)) (= g {common_divisor('p', 'q')}) (= s (* c b)) (= m {common_divisor('g', 's')})"
)
#: Two classes of which either may be a literal.
_EITHER = "(= a (modulus x)) (= b (remainder x a)) (= c (modulus y)) (= d (remainder y c))"
_JOIN = f"{_EITHER} (= g {common_divisor('a', 'c')}) (= h (- b d)) (= m {common_divisor('g', 'h')}) (= r b)"

#: Congruences: a node is ``r`` modulo ``m``. No row means that none is known; so where a product overflows.
_CONGRUENCES = [
    ("(= (Num c) (ModK e k))", "(= m (abs k)) (= r c)"),
    ("(= e (AddK x k))", f"{_OF_X} (= m a) (= r (+ b k))"),
    ("(= e (MulK x k))", "(= m (abs k)) (= r 0)"),
    ("(= e (MulK x k))", f"{_OF_X} (= m (* a (abs k))) (= r (* b k))"),
    ("(= e (ModK x k))", f"{_OF_X} (= m {common_divisor('a', 'k')}) (= r b)"),
    ("(= e (DivK x k))", f"{_OF_X} (> k 0) (= 0 (% a k)) (= m (/ a k)) (= r (/ b k))"),
    ("(= e (Add x y))", f"{_OF_X} {_OF_Y} (= m {common_divisor('a', 'c')}) (= r (+ b d))"),
    ("(= e (Mul x y))", "(= m (fac x)) (= r 0)"),
    ("(= e (Mul x y))", "(= m (fac y)) (= r 0)"),
    ("(= e (Mul x y))", f"{_OF_X} {_OF_Y} {_PRODUCT} (= r (* b d))"),
    ("(= e (Min x y))", _JOIN),
    ("(= e (Max x y))", _JOIN),
    ("(= e (Where w x y))", _JOIN),
]
#: How a congruence of ``e`` is set, its remainder brought into ``[0, m)``; and what follows for ``fac``.
_ALIGNED = "(> m 1) (= n (% (+ (% r m) m) m))", "(set (modulus e) m) (set (remainder e m) n)"
_DIVISOR = f"(= r (remainder e m)) (> m 1) (= f {common_divisor('m', 'r')}) (> f 1)", "(set (fac e) f)"

#: One spelling for literal operands, and the tripwires.
_SPELLING = [
    ("(= e (Add x y)) (= y (Num k))", "(union e (AddK x k)) (subsume (Add x y))"),
    ("(= e (Add y x)) (= y (Num k))", "(union e (AddK x k)) (subsume (Add y x))"),
    ("(= e (Mul x y)) (= y (Num k))", "(union e (MulK x k)) (subsume (Mul x y))"),
    ("(= e (Mul y x)) (= y (Num k))", "(union e (MulK x k)) (subsume (Mul y x))"),
    ("(= e (Div x y)) (= y (Num k)) (!= k 0)", "(union e (DivK x k)) (subsume (Div x y))"),
    ("(= e (Mod x y)) (= y (Num k)) (!= k 0)", "(union e (ModK x k)) (subsume (Mod x y))"),
    ("(> (lo e) (hi e))", "(Contradiction)"),
    ("(= (Num a) (Num b)) (!= a b)", "(Contradiction)"),
    ("(= (True) (False))", "(Contradiction)"),
]

#: What a fact says about its operands; true of any graph, needed only where something is known to hold.
_FACT_RULES = [
    ("(= (True) (And x y))", "(union x (True)) (union y (True))"),
    ("(= (False) (Or x y))", "(union x (False)) (union y (False))"),
    ("(= (True) (Not x))", "(union x (False))"),
    ("(= (False) (Not x))", "(union x (True))"),
    ("(= (True) (Eq x y))", "(union x y)"),
    ("(= (True) (Lt x y)) (= h (- (hi y) 1))", "(set (hi x) h)"),
    ("(= (True) (Lt x y)) (= l (+ (lo x) 1))", "(set (lo y) l)"),
    ("(= (False) (Lt x y)) (= h (hi x))", "(set (hi y) h)"),
    ("(= (False) (Lt x y)) (= l (lo y))", "(set (lo x) l)"),
    ("(= (False) (Eq x (Num k))) (= k (lo x)) (= l (+ k 1))", "(set (lo x) l)"),
    ("(= (False) (Eq x (Num k))) (= k (hi x)) (= h (- k 1))", "(set (hi x) h)"),
    ("(= e (AddK x k)) (= l (- (lo e) k)) (= h (- (hi e) k))", "(set (lo x) l) (set (hi x) h)"),
    ("(= e (Add x y)) (= l (- (lo e) (hi y))) (= h (- (hi e) (lo y)))", "(set (lo x) l) (set (hi x) h)"),
    ("(= e (Add y x)) (= l (- (lo e) (hi y))) (= h (- (hi e) (lo y)))", "(set (lo x) l) (set (hi x) h)"),
    (
        f"(= e (MulK x k)) (> k 0) (= a (- 0 (lo e))) (= b (hi e)) {_floors('k')} (= l (- 0 l_q))",
        "(set (lo x) l) (set (hi x) h_q)",
    ),
    (
        f"(= e (MulK x n)) (< n 0) (= k (- 0 n)) (= a (hi e)) (= b (- 0 (lo e))) {_floors('k')} (= l (- 0 l_q))",
        "(set (lo x) l) (set (hi x) h_q)",
    ),
    (
        "(= e (DivK x k)) (> k 0) (= l (* k (lo e))) (= h (+ (* k (hi e)) (- k 1)))",
        "(set (lo x) l) (set (hi x) h)",
    ),
    (
        "(= e (AddK x k)) (= m (modulus e)) (> m 1) (= n (% (+ (% (- (remainder e m) k) m) m) m))",
        _ALIGNED[1].replace(" e", " x"),
    ),
    ("(= (Num c) (ModK x k)) (!= (lo x) (hi x))", "(union x (AddK (MulK (DivK x k) k) c))"),
]

#: How many classes a node of each constructor refers to.
_ARITIES = {
    **dict.fromkeys(("Num", "Var", "True", "False"), 0),
    **dict.fromkeys(("AddK", "MulK", "DivK", "ModK"), 1),
    **{CONSTRUCTORS[name]: len(OPS[name].takes) for name in CONSTRUCTORS},
}
#: Constructors of conditions, and those of operands that may be conditions or numbers.
_CONDITIONS = frozenset({"True", "False"} | {CONSTRUCTORS[name] for name in CONSTRUCTORS if OPS[name].gives == "b"})
_OF_EITHER = frozenset({CONSTRUCTORS[name] for name in CONSTRUCTORS if "s" in OPS[name].takes})
_LEAVES = frozenset({"Num", "Var", "AddK", "MulK", "DivK", "ModK"})
_CONSTRUCTOR = re.compile(r"\(([A-Z]\w*)")


def _row(constructor: str, arity: int) -> str:
    operands = [f"x{index}" for index in range(arity)]
    return f"({' '.join([constructor, *operands, *(['k'] if constructor in _LEAVES else [])])})"


def _size(constructor: str, arity: int) -> tuple[str, str]:
    """The rule that counts the operators and leaves of a class's smallest term."""
    total = "1"
    for index in range(arity):
        total = f"(+ {total} (size x{index}))"
    return f"(= e {_row(constructor, arity)}) (= s {total})", "(set (size e) s)"


def _fence(part: CompiledRule) -> str:
    """Match only terms that are little larger than the smallest term known to equal them."""
    if part.writes <= {"Num", "True", "False"}:
        return ""
    total = str(part.operators - SLACK)
    for letter in part.letters:
        total = f"(+ {total} (size {letter}))"
    return f" (= within {total}) (<= within (size e))"


def _analysis() -> list[tuple[str, str]]:
    """What runs before the rules in every round: bounds, congruences, sizes, one spelling, and the tripwires."""
    found = [(f"{node} {facts}", "(set (lo e) l) (set (hi e) h)") for node, facts in _BOUNDS]
    found += [(f"{node} {facts} {_ALIGNED[0]}", _ALIGNED[1]) for node, facts in _CONGRUENCES]
    found += [("(= e (Num k))", "(set (modulus e) 0) (set (remainder e 0) k)"), _DIVISOR, *_SPELLING]
    for constructor, arity in _ARITIES.items():
        row = _row(constructor, arity)
        found.append(_size(constructor, arity))
        found += [(f"(= x{operand} {row})", f"(subsume {row})") for operand in range(arity)]
        # a remainder known to be a literal still speaks of its operand
        if constructor not in ("Num", "True", "False", "ModK"):
            found.append((f"(= e {row}) (= e (Num value))", f"(subsume {row})"))
    return found


@dataclass(frozen=True)
class _Part:
    """One egglog rule, alone in its ruleset; ``reads`` are the constructors that it matches nodes of."""

    ruleset: str
    text: str
    reads: frozenset[str]
    name: str = ""

    @classmethod
    def of(cls, ruleset: str, body: str, head: str, name: str = "") -> _Part:
        label = f' :name "{name}@{ruleset}"' if name else ""
        text = f"(ruleset {ruleset}) (rule ({body}) ({head}) :ruleset {ruleset}{label})"
        return cls(ruleset, text, frozenset(_CONSTRUCTOR.findall(body)), name)


class Session:
    """A warm engine for one set of rules.

    Parameters
    ----------
    rules : sequence of Rule
        Names must be distinct.
    extra : str
        Raw egglog text added to the program, in the encoding that :mod:`eqsat.rule` describes; its rules belong in the
        ruleset ``bounds``, which runs in every round.

    Raises
    ------
    ValueError
        If two rules share a name, or egglog refuses the program.

    >>> from eqsat.expr import var
    >>> x = var("x", 0, 100)
    >>> session = Session([Rule("mod-core", "x % n + (x // n)*n", "x")])
    >>> found = session.saturate([x % 8 + x // 8 * 8, x])
    >>> found.stop, found.graph.roots[0] == found.graph.roots[1], list(found.matches)
    ('saturated', True, ['mod-core'])
    """

    def __init__(self, rules: Sequence[Rule], extra: str = "") -> None:
        from egglog import bindings

        refuse_repeated(rules)
        self.rules = tuple(rules)
        self._actions = self._scripts = 0
        self._egraph = bindings.EGraph()
        self._errors = (bindings.EggSmolError,)
        self._analysis = [_Part.of(f"a{n}", *rule) for n, rule in enumerate(_analysis())]
        self._facts = [_Part.of(f"f{n}", *rule) for n, rule in enumerate(_FACT_RULES)]
        compiled = [part for rule in self.rules for part in compile_rule(rule)]
        self._parts = [_Part.of(f"r{n}", p.body + _fence(p), p.head, p.name) for n, p in enumerate(compiled)]
        self._schedules: dict[tuple[frozenset[str], bool, frozenset[str]], str] = {}
        constructors = [f"(constructor {c} ({' '.join('T' * len(OPS[n].takes))}) T)" for n, c in CONSTRUCTORS.items()]
        lines = [_SORTS, *constructors, *[part.text for part in (*self._analysis, *self._facts, *self._parts)]]
        try:
            self._run("\n".join(lines) + extra)
            self._run(self._clearing())
        except self._errors as error:
            raise ValueError(f"egglog refuses the rules: {error}") from None
        self._scripts = 0

    @property
    def is_worn(self) -> bool:
        """Whether a new session would be smaller and faster by now."""
        return self._scripts > MOST_SCRIPTS

    def _run(self, text: str) -> list[Any]:
        self._scripts += len(text)
        return self._egraph.run_program(*self._egraph.parse_program(text))

    def _act(self, actions: str) -> None:
        """Carry out actions once."""
        self._actions += 1
        ruleset = f"act{self._actions}"
        self._run(f"(ruleset {ruleset}) (rule () ({actions}) :ruleset {ruleset}) (run {ruleset} 1)")

    def saturate(
        self,
        roots: Sequence[Expr],
        facts: Sequence[Expr] = (),
        budget: Budget = Budget(),
        without: Collection[str] = (),
    ) -> Saturation:
        """Insert ``roots``, apply the rules until nothing changes or a budget runs out, and freeze the e-graph.

        Parameters
        ----------
        facts : sequence of Expr
            Conditions known to hold.
        without : collection of str
            Names of rules to leave out this time.

        Raises
        ------
        ValueError
            If the facts contradict one another.
        UnsoundUnionError
            If two values end up in one class without that.
        """
        try:
            return _Run(self, roots, facts, budget, frozenset(without)).run()
        except _ContradictionError as error:
            contradiction = error
        finally:
            self._run("(run clear 1)")
        if facts:
            self.saturate(roots, (), budget, without)
            shown = ", ".join(brief(fact) for fact in facts)
            raise ContradictionError(f"the constraints contradict each other: {shown} ({contradiction})") from None
        raise UnsoundUnionError(str(contradiction)) from None

    def _clearing(self) -> str:
        """The ruleset that empties every table: push and pop would copy all rules each time."""
        lines = ["(ruleset clear)"]
        for name, table in self._egraph.freeze().functions.items():
            row = f"({name} {' '.join(f'x{index}' for index in range(len(table.input_sorts)))})"
            if not table.is_let_binding:
                lines.append(f"(rule ((= o {row})) ((delete {row})) :ruleset clear :internal-include-subsumed)")
        return "\n".join(lines)

    def _schedule(self, live: frozenset[str], with_facts: bool, without: frozenset[str]) -> str:
        """One round of all that can match while there are nodes of the constructors ``live`` alone.

        The others would match nothing, but not for nothing: egglog looks at every table that ever had rows.
        """
        key = live, with_facts, without
        if key not in self._schedules:
            steps = {"analysis": self._analysis, "facts": self._facts if with_facts else (), "rules": self._parts}
            run = {}
            for step, parts in steps.items():
                able = [p.ruleset for p in parts if p.reads <= live and p.name not in without]
                able += ["bounds"] if step == "analysis" else []
                run[step] = f"{step}{len(self._schedules)}"
                self._run(f"(unstable-combined-ruleset {run[step]} {' '.join(able)})")
            analysis = f"(run {run['analysis']}) (run {run['facts']})"
            self._schedules[key] = f"(run-schedule (repeat {ANALYSES} {analysis}) (run {run['rules']}))"
        return self._schedules[key]


class _ContradictionError(Exception):
    """Two values in one class."""


class _Run:
    """One saturation: the state that lives until the tables are cleared."""

    def __init__(
        self,
        session: Session,
        roots: Sequence[Expr],
        facts: Sequence[Expr],
        budget: Budget,
        without: frozenset[str],
    ) -> None:
        self.session = session
        self.roots = list(roots)
        self.facts = list(facts)
        self.budget = budget
        self.deadline = time.perf_counter() + budget.seconds
        self.matches: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.inserted: dict[Expr, int] = {}
        self.numbering = _Numbering()
        self.leaves: dict[str, Bounds] = {}
        self.live: frozenset[str] = frozenset()
        self.without = without

    def run(self) -> Saturation:
        self.insert(self.roots, self.facts)
        rounds = 0
        stop = "iterations"
        nodes = before = self.size()
        while rounds < self.budget.rounds:
            rounds += 1
            if not self.round():
                stop = "saturated"
                break
            nodes, before = self.size(), nodes
            # a round cannot be interrupted: one that would grow as the last did, far beyond the budget, is not begun
            if nodes > self.budget.nodes or nodes * nodes > 4 * self.budget.nodes * before:
                stop = "nodes"
                break
            if time.perf_counter() > self.deadline:
                stop = "time"
                break
        graph = _Frozen(self).graph
        names = [rule.name for rule in self.session.rules]
        matches = {name: self.matches[name] for name in names if self.matches[name]}
        return Saturation(graph, stop, rounds, matches, {n: self.seconds[n] for n in names if self.seconds[n]})

    def round(self) -> bool:
        """Run every ruleset once; whether anything changed."""
        output = self.session._run(self.session._schedule(self.live, bool(self.facts), self.without))
        report = output[-1].report
        times = report.search_and_apply_time_per_rule
        for name, count in report.num_matches_per_rule.items():
            rule, marked, _ = name.partition("@")
            if marked:
                self.matches[rule] += count
                self.seconds[rule] += times[name].total_seconds()
        return bool(report.updated)

    def size(self) -> int:
        """The number of e-nodes; stops the run if a tripwire has been touched."""
        (output,) = self.session._run("(print-size)")
        sizes = {name: count for name, count in output.sizes if count}
        if "Contradiction" in sizes:
            # which says what contradicts what
            _Frozen(self)
        self.live = frozenset(_ARITIES).intersection(sizes)
        return sum(sizes[name] for name in self.live)

    # Insertion

    def insert(self, roots: Sequence[Expr], facts: Sequence[Expr]) -> None:
        script = _Script(self)
        for root in roots:
            script.refer(root)
        for fact in facts:
            script.actions.append(f"(union {script.refer(fact)} (True))")
        script.run()


class _Script:
    """Actions that insert terms: nested text, with a local name for what is shared or deep."""

    #: Longer rules take more than linear time to compile.
    CHUNK = 60
    DEEP = 60

    def __init__(self, run: _Run) -> None:
        self.owner = run
        self.actions: list[str] = []
        self.local: dict[Expr, str] = {}

    def refer(self, root: Expr) -> str:
        """Make ``root`` known to Python; the egglog text that names its class."""
        known = self.owner.inserted
        if root not in known:
            name = self.insert(root)
            known[root] = self.owner.numbering.fresh()
            self.actions.append(f"(union (Ref {known[root]}) {name})")
        return f"(Ref {known[root]})"

    def insert(self, root: Expr) -> str:
        """Insert ``root``; the egglog text that names its class in this script."""
        text: dict[Expr, str] = dict(self.local)
        text |= {term: f"(Ref {number})" for term, number in self.owner.inserted.items() if term not in text}
        order = [term for term in topological([root]) if term not in text]
        uses = Counter(arg for term in order for arg in term.args)
        depth: Counter[Expr] = Counter()
        for term in order:
            depth[term] = 1 + max((depth[arg] for arg in term.args), default=0)
            text[term] = self._text(term, text)
            bounded = term.op == "var" or term.op in _OPAQUE
            if bounded or (term.args and (uses[term] > 1 or depth[term] > self.DEEP)):
                self.local[term] = text[term] = self.name(text[term])
                depth[term] = 0
            if bounded:
                self._bound(text[term], term)
        return text[root]

    def name(self, text: str) -> str:
        name = f"v{self.owner.numbering.fresh()}"
        self.actions.append(f"(let {name} {text})")
        return name

    def _text(self, term: Expr, text: Mapping[Expr, str]) -> str:
        number = _literal(term)
        if number is not None:
            return f"(Num {number})"
        if term.op in ("const", "var"):
            name = str(term.value)
            self.owner.leaves[name] = (term.vmin, term.vmax)
            return f'(Var "{name}")'
        return encode(term, text, _literal)

    def _bound(self, text: str, term: Expr) -> None:
        if term.vmin in _I64 and term.vmax in _I64:
            self.actions += [f"(set (lo {text}) {term.vmin})", f"(set (hi {text}) {term.vmax})"]

    def run(self) -> None:
        """Carry the actions out, in rules of bounded length; a name used beyond its own becomes a ``Ref``."""
        if not self.actions:
            return
        chunks = [self.actions[start : start + self.CHUNK] for start in range(0, len(self.actions), self.CHUNK)]
        seen: set[str] = set()
        later: list[set[str]] = [set()]
        for chunk in reversed(chunks[1:]):
            later.append(later[-1] | set(_LOCAL.findall(" ".join(chunk))))
        for chunk, needed in zip(chunks, reversed(later), strict=True):
            own = {match[1] for action in chunk if (match := _LET.match(action))}
            text = " ".join(chunk)
            for name in seen.intersection(_LOCAL.findall(text)):
                text = re.sub(rf"\b{name}\b(?!\")", f"(Ref {name[1:]})", text)
            text += "".join(f"(union (Ref {name[1:]}) {name})" for name in sorted(own & needed))
            self.owner.session._act(text)
            seen |= own


_LOCAL = re.compile(r"\bv\d+\b(?!\")")
_LET = re.compile(r"\(let (v\d+) ")
#: Operators whose bounds the interval analysis does not derive: they keep those that they were built with.
_OPAQUE = frozenset({"tdiv", "tmod", "shl", "shr"})


def _literal(term: Expr) -> str | None:
    """The number that ``term`` is for egglog; a literal too large for that stays an opaque leaf."""
    if term.op == "const" and -(2**62) <= term.vmin <= 2**62:
        return str(term.value)
    return None


_OPERATORS = {constructor: op for op, constructor in CONSTRUCTORS.items()}
_LITERAL_OPERATORS = {f"{CONSTRUCTORS[op]}K": op for op in ("add", "mul", "floordiv", "mod")}

Row = tuple[str, tuple["int | str", ...]]


class _Numbering:
    """Integers for classes, and for literals that have no class of their own."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.next = 0

    def fresh(self) -> int:
        self.next += 1
        return self.next - 1

    def __getitem__(self, key: object) -> int:
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = self.fresh()
        return number


def _kind(node: Node, is_condition: Mapping[int, bool]) -> bool | None:
    """Whether a node is a condition; None if it is no term, or not all of its operands are known to be."""
    op, _, operands = node
    if not operands:
        return op == "bool"
    if not all(operand in is_condition for operand in operands):
        return None
    sorts = [(sort, is_condition[operand]) for sort, operand in zip(OPS[op].takes, operands, strict=True)]
    shared = {kind for sort, kind in sorts if sort == "s"}
    if len(shared) > 1 or any((sort == "b") != kind for sort, kind in sorts if sort != "s"):
        return None
    return shared.pop() if OPS[op].gives == "s" else OPS[op].gives == "b"


class _Frozen:
    """One frozen state: the e-graph in the language's own operators, and the rows that it was read from."""

    def __init__(self, run: _Run) -> None:
        self.egraph = run.session._egraph
        self.numbering = run.numbering
        self.leaves = run.leaves
        self.graph = EGraph()
        self.rows: dict[int, list[Row]] = {}
        functions = self.egraph.freeze().functions
        low, high = self._read(functions)
        self._translate()
        self._sort()
        self._bound(low, high)
        self._check(run.matches)
        self.graph.roots = [self.references[run.inserted[root]] for root in run.roots]

    def _read(self, functions: Mapping[str, Any]) -> tuple[dict[int, int], dict[int, int]]:
        number = self.numbering.__getitem__
        integer = self.egraph.value_to_i64
        self.references: dict[int, int] = {}
        for row in functions["Ref"].rows:
            self.references[integer(row.inputs[0])] = number(row.output)
        for name in ("Num", "Var"):
            decode = integer if name == "Num" else self.egraph.value_to_string
            for row in functions[name].rows:
                value = decode(row.inputs[0])
                self._add(number(row.output), name, (str(value) if name == "Num" else f'"{value}"',))
        for name in ("True", "False"):
            for row in functions[name].rows:
                self._add(number(row.output), name, ())
        for name in _LITERAL_OPERATORS:
            for row in functions[name].rows:
                operand, literal = row.inputs
                self._add(number(row.output), name, (number(operand), str(integer(literal))))
        for name in _OPERATORS:
            for row in functions[name].rows:
                self._add(number(row.output), name, tuple([number(value) for value in row.inputs]))
        low, high = (
            {number(row.inputs[0]): integer(row.output) for row in functions[name].rows} for name in ("lo", "hi")
        )
        return low, high

    def _add(self, number: int, constructor: str, operands: tuple[int | str, ...]) -> None:
        self.rows.setdefault(number, []).append((constructor, operands))

    def _translate(self) -> None:
        """Rows into nodes: literals become operands, and ``sub neg le ne`` are offered where they apply."""
        self.literals: dict[int, int] = {}
        self.scaled: dict[tuple[int, int], int] = {}
        self.by_constructor: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        for number, rows in self.rows.items():
            for constructor, operands in rows:
                self.by_constructor.setdefault((number, constructor), []).append(operands)
                if constructor == "MulK":
                    self.scaled[operands[0], int(operands[1])] = number  # type: ignore[index]
                elif constructor == "Num":
                    self.literals[int(operands[0])] = number
        for number, rows in self.rows.items():
            # a known value needs no other spelling
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
            case "AddK":
                yield from self._offset(operands[0], int(operands[1]))
            case "MulK":
                yield from self._scale(operands[0], int(operands[1]))
            case "DivK" | "ModK":
                yield _LITERAL_OPERATORS[constructor], None, (operands[0], self.literal(int(operands[1])))
            case _:
                yield _OPERATORS[constructor], None, operands
                yield from self._second_spelling(constructor, operands)

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

    def _second_spelling(self, constructor: str, operands: tuple[int, ...]) -> Iterable[Node]:
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
        conditions = {n for n, rows in self.rows.items() if not _CONDITIONS.isdisjoint([name for name, _ in rows])}
        either = (operands for rows in self.rows.values() for name, operands in rows if name in _OF_EITHER)
        if all(conditions.isdisjoint(operands) for operands in either):
            return
        is_condition: dict[int, bool] = {}
        still = list(self.graph.classes)
        while True:
            waiting, still = still, []
            for number in waiting:
                kinds = (_kind(node, is_condition) for node in self.graph.classes[number])
                kind = next((kind for kind in kinds if kind is not None), None)
                if kind is None:
                    still.append(number)
                else:
                    is_condition[number] = kind
            if len(still) == len(waiting):
                break
        for number, kind in is_condition.items():
            nodes = self.graph.classes[number]
            self.graph.classes[number] = [node for node in nodes if _kind(node, is_condition) is kind]
        for number in still:
            del self.graph.classes[number]

    def _bound(self, low: Mapping[int, int], high: Mapping[int, int]) -> None:
        """The bounds of every class: the analysis's, else those of a node."""
        bounds = {n: (low[n], high[n]) for n in self.graph.classes if n in low and n in high}
        waiting = [n for n in self.graph.classes if n not in bounds]
        while waiting:
            for number in waiting:
                for node in self.graph.classes[number]:
                    found = self._node_bounds(node, bounds)
                    if found is not None:
                        bounds[number] = found
                        break
            still = [n for n in waiting if n not in bounds]
            if len(still) == len(waiting):
                raise AssertionError("an e-class has no term")
            waiting = still
        self.graph.bounds = bounds

    def _node_bounds(self, node: Node, bounds: Mapping[int, Bounds]) -> Bounds | None:
        op, value, operands = node
        if op in ("const", "bool"):
            return int(cast(int, value)), int(cast(int, value))
        if op == "var":
            return self.leaves[str(value)]
        if any(operand not in bounds for operand in operands):
            return None
        return OPS[op].bounds(*[bounds[operand] for operand in operands])

    def _check(self, matches: Mapping[str, int]) -> None:
        """The tripwires: one class, one value."""
        for number, nodes in self.graph.classes.items():
            literals = sorted({str(node[1]) for node in nodes if node[0] in ("const", "bool")})
            low, high = self.graph.bounds[number]
            if len(literals) > 1 or low > high:
                what = " and ".join(literals) if len(literals) > 1 else f"bounds [{low}, {high}]"
                fired = ", ".join(name for name, count in matches.items() if count) or "none"
                raise _ContradictionError(f"one class has {what}; rules that fired: {fired}")
