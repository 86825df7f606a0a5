"""The e-graph of terms as they are written: compile rules, insert terms, saturate within a budget, freeze.

A :class:`Session` compiles its rules once; every :meth:`Session.saturate` is insert, rounds, freeze, clear. One round
runs the analyses (:mod:`eqsat.egraph.analyses`), then all rules, as far as there are nodes for them to match. The
result is plain data: an :class:`eqsat.extract.graph.EGraph` (:mod:`eqsat.egraph.export`).

What a node means is in :mod:`eqsat.egraph.compiling`; ``Ref`` rows name the classes that Python knows, ``True`` is
the class of all facts. Facts may be used anywhere in the graph: every equality found holds where all of them hold.

Reductions are nodes like others, and an index is a leaf of its own: every equality of terms that speak of it holds for
all the values that its name says, whatever is known of the range where it is bound. So classes of bodies may unite, and
what is only true in a range does not leave it. What rules about reductions build of terms, by substitution for an
index, comes in between the rounds (:mod:`eqsat.egraph.reductions`).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from eqsat.egraph.analyses import ARITIES, FACT_RULES, SORTS, WITH_LITERAL, analysis, fence, of_reductions
from eqsat.egraph.compiling import REDUCERS, CompiledRule, compile_rule, encode
from eqsat.egraph.export import Numbering, Row, Tables, TwoValuesError, translated
from eqsat.egraph.reductions import Asked, Found, Reductions
from eqsat.egraph.rule import Rule, refuse_repeated
from eqsat.egraph.trace import Round
from eqsat.egraph.warm import WarmProgram
from eqsat.extract.graph import EGraph
from eqsat.lang.errors import ContradictionError, UnsoundUnionError
from eqsat.lang.expr import Expr, brief, is_index, topological
from eqsat.lang.infinity import is_finite
from eqsat.lang.limits import refuse_below
from eqsat.lang.ops import BITWISE, REDUCTIONS, SHIFTS, Bounds

_I64 = range(-(2**63), 2**63)
_CONSTRUCTOR = re.compile(r"\(([A-Z]\w*)")
#: The characters of script after which a session is worn out: a new one is smaller and faster.
MOST_SCRIPTS = 300_000
#: The number of rounds after which loops are merged and split, if there is something else left to do.
SETTLED = 4
#: How often the analyses run in a round, each time one operator further up.
ANALYSES = 5


@dataclass(frozen=True)
class Budget:
    """What one optimisation may use. When one of these runs out the best terms so far are the answer.

    Attributes
    ----------
    nodes : int
        E-nodes, 1 or more.
    seconds : float
        Seconds, 0 or more.
    rounds : int
        Rounds of saturation, 0 or more.

    Raises
    ------
    ValueError, TypeError
        If one of them is less, or no number.

    >>> Budget(seconds=0.1)
    Budget(nodes=20000, seconds=0.1, rounds=24)
    """

    nodes: int = 20_000
    seconds: float = 2.0
    rounds: int = 24

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("seconds", 0), ("rounds", 0)):
            refuse_below(least, getattr(self, name), name, "a budget of ")

    def ends(self, share: float = 1.0) -> float:
        """When a share of its seconds is up if it begins now, on the clock of :func:`time.perf_counter`."""
        return time.perf_counter() + share * float(self.seconds)

    def until(self, end: float, share: float = 1.0) -> Budget:
        """The budget with no more seconds than a share of what there is until ``end``.

        >>> Budget(seconds=3.0).until(0.0).seconds
        0.0
        """
        return replace(self, seconds=min(self.seconds, max(0.0, share * (end - time.perf_counter()))))


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
        Time that each rule's search and actions took.
    trace : tuple of Round
        What each round did, after the insertion; see :class:`eqsat.egraph.trace.Round`.
    """

    graph: EGraph
    stop: str
    rounds: int
    matches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    trace: tuple[Round, ...] = ()


@dataclass(frozen=True)
class _Part:
    """One egglog rule, alone in its ruleset; ``reads`` are the constructors that it matches nodes of."""

    ruleset: str
    text: str
    reads: frozenset[str]
    name: str = ""

    @classmethod
    def of(cls, ruleset: str, body: str, head: str, name: str = "", also: Collection[str] = ()) -> _Part:
        label = f' :name "{name}@{ruleset}"' if name else ""
        text = f"(ruleset {ruleset}) (rule ({body}) ({head}) :ruleset {ruleset}{label})"
        return cls(ruleset, text, frozenset(_CONSTRUCTOR.findall(body)).union(also), name)

    @classmethod
    def asking(cls, ruleset: str, table: str, rule: CompiledRule) -> _Part:
        """A rule whose matches are rows of ``table``."""
        sorts = " ".join("T" if sort == "T" else "i64" for sort in rule.sorts())
        row = f"({table} {' '.join(('e', *rule.columns))})"
        part = cls.of(ruleset, rule.body, row, rule.name)
        return replace(part, text=f"(relation {table} (T {sorts})) {part.text}")


class Session:
    """A warm engine for one set of rules.

    Parameters
    ----------
    rules : sequence of Rule
        Names must be distinct.
    extra : str
        Raw egglog text added to the program, in the encoding that :mod:`eqsat.egraph.compiling` describes; its
        rules belong in the ruleset ``bounds``, which runs in every round.

    Raises
    ------
    ValueError
        If two rules share a name, or egglog refuses the program.

    >>> from eqsat.lang.expr import var
    >>> x = var("x", 0, 100)
    >>> session = Session([Rule("mod-core", "x % n + (x // n)*n", "x")])
    >>> found = session.saturate([x % 8 + x // 8 * 8, x])
    >>> found.stop, found.graph.roots[0] == found.graph.roots[1], list(found.matches)
    ('saturated', True, ['mod-core'])
    """

    def __init__(self, rules: Sequence[Rule], extra: str = "") -> None:
        refuse_repeated(rules)
        self.rules = tuple(rules)
        self._actions = 0
        self._analysis = [_Part.of(f"a{n}", *rule) for n, rule in enumerate(analysis())]
        self._analysis += [_Part.of(f"o{n}", *rule, also={"Idx"}) for n, rule in enumerate(of_reductions())]
        self._facts = [_Part.of(f"f{n}", *rule) for n, rule in enumerate(FACT_RULES)]
        compiled = [part for rule in self.rules for part in compile_rule(rule)]
        #: By the name of its table what a rule asks for.
        self.asked = {f"ask{n}": part for n, part in enumerate(compiled) if part.columns}
        self._parts = [
            _Part.asking(f"r{n}", f"ask{n}", p) if p.columns else _Part.of(f"r{n}", p.body + fence(p), p.head, p.name)
            for n, p in enumerate(compiled)
        ]
        self._schedules: dict[tuple[frozenset[str], bool, frozenset[str]], str] = {}
        lines = [SORTS, *[part.text for part in (*self._analysis, *self._facts, *self._parts)]]
        self._program = WarmProgram("\n".join(lines) + extra, MOST_SCRIPTS)
        self._run, self._egraph = self._program.run, self._program.egraph

    @property
    def is_worn(self) -> bool:
        """Whether a new session would be smaller and faster by now."""
        return self._program.is_worn

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
        except TwoValuesError as error:
            contradiction = error
        finally:
            self._program.clear()
        if facts:
            # what simplifies may know the facts
            self.saturate(roots, (), budget, without)
            shown = ", ".join(brief(fact) for fact in facts)
            raise ContradictionError(f"the constraints contradict each other: {shown} ({contradiction})") from None
        raise UnsoundUnionError(str(contradiction)) from None

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
        self.numbering = Numbering()
        self.leaves: dict[str, Bounds] = {}
        self.live: frozenset[str] = frozenset()
        self.without = without
        self.trace: list[Round] = []
        # egglog's tables, and their rows, as they were counted last
        self.sizes: dict[str, int] = {}
        # the indices of reductions and the arrays of loads, and their numbers
        self.indices: dict[Expr, int] = {}
        self.arrays: dict[Expr, int] = {}
        self.reductions = Reductions()
        self.provided: tuple[int, ...] = ()

    def run(self) -> Saturation:
        began = time.perf_counter()
        self.insert(self.roots, self.facts)
        rounds = 0
        stop = "iterations"
        nodes = before = self.size()
        began = self.note(rounds, 0, nodes, began)
        while rounds < self.budget.rounds:
            rounds += 1
            matched = self.matches.total()
            changed = self.round()
            if self.indices and nodes <= self.budget.nodes and time.perf_counter() < self.deadline:
                changed = self.provide(changed, rounds) or changed
            if not changed:
                self.note(rounds, self.matches.total() - matched, nodes, began)
                stop = "saturated"
                break
            nodes, before = self.size(), nodes
            began = self.note(rounds, self.matches.total() - matched, nodes, began)
            # a round cannot be interrupted: one that would grow as the last did, far beyond the budget, is not begun
            if nodes > self.budget.nodes or nodes * nodes > 4 * self.budget.nodes * before:
                stop = "nodes"
                break
            if time.perf_counter() > self.deadline:
                stop = "time"
                break
        graph = self.freeze()
        names = [rule.name for rule in self.session.rules]
        matches = {name: self.matches[name] for name in names if self.matches[name]}
        seconds: dict[str, float] = {name: self.seconds[name] for name in names if self.seconds[name]}
        return Saturation(graph, stop, rounds, matches, seconds, tuple(self.trace))

    def note(self, number: int, matches: int, nodes: int, began: float) -> float:
        """Trace the round that has just ended; when that was."""
        now = time.perf_counter()
        rows = sum(self.sizes.values()) - self.sizes.get("Ref", 0)
        # the analyses give every class a size
        self.trace.append(Round(1, number, nodes, rows, self.sizes.get("size", 0), matches, now - began))
        return now

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

    def provide(self, changed: bool, rounds: int) -> bool:
        """Add what rules ask for that only terms can say; whether that was anything.

        While the rules go on that is done only if there are more reductions or more rows that ask; loops are merged and
        split every :data:`SETTLED` rounds, when bodies have become what the rules make of them.
        """
        settled = not changed or rounds % SETTLED == 0
        (output,) = self.session._run("(print-size)")
        tables = (*REDUCERS.values(), *self.session.asked)
        sizes = dict(output.sizes)
        counts = tuple([sizes.get(table, 0) for table in tables])
        if not settled and counts == self.provided:
            return False
        self.provided = counts
        functions = self.session._egraph.freeze().functions
        frozen = self.tables(functions)
        try:
            graph = translated(frozen, self.numbering)
        except TwoValuesError:
            # the next count of the nodes says so
            return False
        asking = [asked for asked in self.asking(functions) if settled or not asked.rule.reindexes]
        found = self.reductions.found(graph, frozen, asking, self.deadline)
        if not found:
            return False
        self.add(found, frozen, functions)
        return True

    def asking(self, functions: Mapping[str, Any]) -> Iterable[Asked]:
        """The rows of the tables that rules write their matches to."""
        number, integer = self.numbering.__getitem__, self.session._egraph.value_to_i64
        for table, rule in self.session.asked.items():
            for row in functions[table].rows:
                whole, *values = row.inputs
                read = [number(v) if sort == "T" else integer(v) for v, sort in zip(values, rule.sorts(), strict=True)]
                yield Asked(number(whole), rule, tuple(read))

    def add(self, found: Sequence[Found], tables: Tables, functions: Mapping[str, Any]) -> None:
        """Unite classes with terms that equal them."""
        integer = self.session._egraph.value_to_i64
        known = {self.numbering[row.output]: integer(row.inputs[0]) for row in functions["Ref"].rows}
        script = _Script(self)
        for name in script.names({c for c, _ in found}, tables.rows, known):
            script.actions.append(name)
        for c, term in found:
            script.actions.append(f"(union (Ref {known[c]}) {script.refer(term)})")
        script.run()

    def size(self) -> int:
        """The number of e-nodes; stops the run if a tripwire has been touched."""
        (output,) = self.session._run("(print-size)")
        self.sizes = sizes = {name: count for name, count in output.sizes if count}
        if "Contradiction" in sizes:
            # which says what contradicts what
            self.freeze()
        self.live = frozenset(ARITIES).intersection(sizes)
        return sum(sizes[name] for name in self.live)

    def insert(self, roots: Sequence[Expr], facts: Sequence[Expr]) -> None:
        script = _Script(self)
        for root in roots:
            script.refer(root)
        for fact in facts:
            script.actions.append(f"(union {script.refer(fact)} (True))")
        script.run()

    def freeze(self) -> EGraph:
        """The e-graph as it is."""
        egraph, number = self.session._egraph, self.numbering.__getitem__
        functions = egraph.freeze().functions
        integer = egraph.value_to_i64
        references = {integer(row.inputs[0]): number(row.output) for row in functions["Ref"].rows}
        try:
            graph = translated(self.tables(functions), self.numbering)
        except TwoValuesError as error:
            fired = ", ".join(name for name, count in self.matches.items() if count) or "none"
            raise TwoValuesError(f"one class has {error}; rules that fired: {fired}") from None
        graph.roots = [references[self.inserted[root]] for root in self.roots]
        return graph

    def tables(self, functions: Mapping[str, Any]) -> Tables:
        """The rows of egglog's tables as plain data."""
        number = self.numbering.__getitem__
        integer, text = self.session._egraph.value_to_i64, self.session._egraph.value_to_string
        tables = Tables(self.leaves, list(self.indices), list(self.arrays))
        for name, arity in ARITIES.items():
            for row in functions[name].rows:
                operands: list[int | str] = [number(value) for value in row.inputs[:arity]]
                if name == "Var":
                    operands = [f'"{text(row.inputs[0])}"']
                elif name in WITH_LITERAL:
                    operands.append(str(integer(row.inputs[arity])))
                tables.add(number(row.output), name, tuple(operands))
        for name, bounds in (("lo", tables.low), ("hi", tables.high)):
            bounds.update({number(row.inputs[0]): integer(row.output) for row in functions[name].rows})
        return tables


_LOCAL = re.compile(r"\bv\d+\b(?!\")")
_LET = re.compile(r"\(let (v\d+) ")
#: Operators whose bounds the interval analysis does not derive: they keep those that they were built with.
_UNINTERPRETED = frozenset({"tdiv", "tmod", "load", *BITWISE, *SHIFTS, *REDUCTIONS})


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
        # a reduction has the number of its index, not a class
        text |= {index: f"(Idx {number})" for index, number in self.owner.indices.items()}
        order = [term for term in topological([root]) if term not in text]
        uses = Counter(arg for term in order for arg in term.args)
        depth: Counter[Expr] = Counter()
        for term in order:
            depth[term] = 1 + max((depth[arg] for arg in term.args), default=0)
            if term.op == "buffer":
                self.owner.arrays.setdefault(term, len(self.owner.arrays))
                continue
            text[term] = self._text(term, text)
            if term.op == "var" and is_index(term):
                self._bound(text[term], term)
                continue
            bounded = term.op == "var" or term.op in _UNINTERPRETED
            if bounded or (term.args and (uses[term] > 1 or depth[term] > self.DEEP)):
                self.local[term] = text[term] = self.name(text[term])
                depth[term] = 0
            if bounded:
                self._bound(text[term], term)
        return text[root]

    def names(self, wanted: Iterable[int], rows: Mapping[int, Sequence[Row]], known: dict[int, int]) -> Iterator[str]:
        """Actions that make classes known to Python by what they hold; ``known`` gains their numbers."""
        nodes = _lowest(rows)
        text = {c: f"(Ref {number})" for c, number in known.items()}
        for c in sorted(wanted):
            stack = [c]
            while stack:
                last = stack[-1]
                constructor, operands = nodes[last]
                missing = [] if last in text else [o for o in operands if isinstance(o, int) and o not in text]
                stack += missing
                if not missing:
                    stack.pop()
                    if last not in text:
                        inputs = [text[o] if isinstance(o, int) else o for o in operands]
                        text[last] = f"({' '.join([constructor, *inputs])})"
                        if last != c:
                            local = f"v{self.owner.numbering.fresh()}"
                            yield f"(let {local} {text[last]})"
                            text[last] = local
            if c not in known:
                known[c] = self.owner.numbering.fresh()
                yield f"(union (Ref {known[c]}) {text[c]})"
                text[c] = f"(Ref {known[c]})"

    def name(self, text: str) -> str:
        name = f"v{self.owner.numbering.fresh()}"
        self.actions.append(f"(let {name} {text})")
        return name

    def _text(self, term: Expr, text: Mapping[Expr, str]) -> str:
        literal = _literal(term)
        if literal is not None:
            return f"(Num {literal})"
        if term.op == "var" and is_index(term):
            number = self.owner.indices.setdefault(term, len(self.owner.indices))
            self.owner.leaves[cast(str, term.value)] = (term.vmin, term.vmax)
            return f"(Idx {number})"
        if term.op == "load":
            listed = "(Nil)"
            for index in reversed(term.args[1:]):
                listed = f"(Cons {text[index]} {listed})"
            return f"(Load {listed} {self.owner.arrays[term.args[0]]})"
        if term.op in ("const", "var"):
            name = str(term.value)
            self.owner.leaves[name] = (term.vmin, term.vmax)
            return f'(Var "{name}")'
        return encode(term, text, _literal)

    def _bound(self, text: str, term: Expr) -> None:
        if is_finite(term.vmin, term.vmax) and term.vmin in _I64 and term.vmax in _I64:
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


def _lowest(rows: Mapping[int, Sequence[Row]]) -> dict[int, Row]:
    """For each class a node none of whose terms holds the class itself."""
    waiting: dict[int, list[tuple[int, Row]]] = {}
    missing: dict[tuple[int, Row], int] = {}
    found: dict[int, Row] = {}
    ready = []
    for c, nodes in rows.items():
        for node in nodes:
            operands = {operand for operand in node[1] if isinstance(operand, int)}
            missing[c, node] = len(operands)
            for operand in operands:
                waiting.setdefault(operand, []).append((c, node))
            if not operands:
                ready.append((c, node))
    while ready:
        following = []
        for c, node in ready:
            if c not in found:
                found[c] = node
                for user in waiting.get(c, ()):
                    missing[user] -= 1
                    if not missing[user]:
                        following.append(user)
        ready = following
    return found


def _literal(term: Expr) -> str | None:
    """The number that ``term`` is for egglog; a literal too large for that stays an uninterpreted leaf."""
    if term.op == "const" and -(2**62) <= term.vmin <= 2**62:
        return str(term.value)
    return None
