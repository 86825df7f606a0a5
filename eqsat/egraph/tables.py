"""The e-graph's egglog session: rows in, rounds of rules, rows out.

A :class:`Tables` compiles its rules once. Rows are read by egglog from files without a name, which is several times
faster than text; what is read out are the rows of its tables, by names of classes that mean nothing outside.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from io import FileIO
from itertools import count, zip_longest
from typing import Any

from eqsat.egraph.bindings import WarmProgram
from eqsat.egraph.compilation import Compiled, ReductionQuery, Stage, compiled
from eqsat.egraph.joins import Joins
from eqsat.egraph.prefilter import Given, Prefilter, prefilters
from eqsat.egraph.program import (
    CONSTRUCTORS,
    CONTAINERS,
    MOST_COLUMNS,
    PLAIN,
    ROWS,
    Kind,
    building_text,
    constructor_text,
    constructors_in,
    container_text,
    of_length,
    program,
)
from eqsat.egraph.rule import Rule, has_reduction
from eqsat.egraph.shapes import FALSE, LITERAL, TRUE, Shape, Shapes
from eqsat.egraph.variants import needed_by, written_for
from eqsat.lang.traversal import topological

#: The characters of script after which a session is worn out: a new one is smaller and faster.
MOST_SCRIPTS = 1_000_000

#: Where the open files of a process have names, by which egglog reads them.
DESCRIPTORS = "/dev/fd"

_ZEROS = (0,) * (2 + 2 * MOST_COLUMNS)
#: The tables that say which classes are one, and which conditions are true or false.
_CLASSES = ("A", "Yes", "No")
_INDEX = "(run fill) (run index) (run ones)"


def _by_place(able: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rulesets of the first stages of the ways to match, then those of the second, and so on, each once."""
    return [[*dict.fromkeys(filter(None, names))] for names in zip_longest(*able)]


class Tables:
    """A warm session for one set of rules; a process that is forked makes its own."""

    _run: Callable[[str], list[Any]]
    _egraph: Any
    #: What converts a value of egglog's to a Python number, and what returns the values in a multiset of its.
    integer: Callable[[Any], int]
    members: Callable[[Any], list[Any]]

    def __init__(self, rules: Sequence[Rule], thorough: Collection[Rule] = ()) -> None:
        # what egglog reads rows from: of each table a file that is deleted already, so that nothing is ever left of it
        self._files: dict[str, FileIO] = {}
        self._open_files = ExitStack()
        #: Whether it belongs to the process that this one was forked from.
        self.is_left = False
        _SESSIONS.add(self)
        self._rules = rules
        # the rules of a user's own, which are matched in more ways than shipped ones
        self._thorough = thorough
        # by their places the left sides of the rules that were asked for: to look one up, its rule would be hashed
        self._sides_of: list[tuple[Prefilter, ...] | None] = [None] * len(rules)
        # by their places some of the shapes that shipped rules need in each direction; the others may need none
        self._written_shapes = [written_for(rule) if rule not in thorough else (frozenset[Shape](),) for rule in rules]
        # the ways to match that egglog has read, each with the rulesets of its stages
        self._ways: list[tuple[Compiled, tuple[str, ...]]] = []
        # the places of the rules that egglog has not read
        self._unread = [*range(len(rules))]
        # by the shapes found, and whether broad rules run: what is able then
        self._able_then: dict[tuple[frozenset[Shape], bool], tuple[tuple[str, ...], ...]] = {}
        self._numbers = count()
        self._rulesets: dict[Stage, str] = {}
        # the constructors and the kinds of rows that egglog has read
        self._constructors: set[str] = set()
        self._built: set[str] = set()
        # the names of rules that only remember what they have found: the e-graph is as before
        self._searches: set[str] = set()
        #: The rules about reductions whose matches are rows of tables.
        self.queries: list[ReductionQuery] = []
        #: How long egglog has read rules.
        self.seconds_reading = 0.0
        self._once: Callable[[], AbstractContextManager[None]] = nullcontext
        self._combined: dict[tuple[str, ...], str] = {}
        # what tells how long a user's own rules may take
        self._joins = Joins() if thorough else None
        #: The classes that egglog had when its rows were last read, each with its name there.
        self.named: list[tuple[int, Any]] = []
        #: Whether rules were left out for lack of time.
        self.is_cut = False
        self._matchable: dict[tuple[frozenset[str], bool], bool] = {}
        self._program: WarmProgram | None = None
        # the rows that egglog has not read, by tables, and their kinds
        self._rows: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        self._kinds: set[str] = set()
        self._texts: list[str] = []
        # what lets no rule match a node any longer
        self._retiring: list[str] = []
        self._is_empty = True
        # what tells which rules may match the rows; the rows of the first insertion, until egglog has read them
        self.shapes = Shapes()
        self._given: Given | None = None
        self._note_rows()
        self.matches: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    @property
    def is_worn(self) -> bool:
        """Whether a new session would be smaller and faster by now."""
        return self._program is not None and self._program.is_worn

    def leave(self) -> None:
        """Leave the files to the process that this one was forked from.

        The session is kept, though of no use: what is freed here is no longer shared with the other process.
        """
        self.is_left = True
        _LEFT.append(self)
        self._open_files.close()

    def __del__(self) -> None:
        self._open_files.close()

    def add(self, kind: str, *row: int) -> None:
        """A row for the next insertion."""
        for noted in self._noted:
            noted.add(kind, *row)
        self._add_row(kind, *row)

    def _add_row(self, kind: str, *row: int) -> None:
        table, number, width = ROWS[kind]
        self._kinds.add(kind)
        self._rows[table].append((number, *row, *_ZEROS[len(row) : width]))

    def note_node(self, c: int, op: str, operands: Sequence[int]) -> None:
        """Note that rules have made a node of the class ``c``; their sums no rule matches before they are added."""
        if op != "sum":
            self.shapes.add_node(c, op, operands)
        elif not operands:
            self.shapes.add_kind(c, LITERAL)

    def add_sum(self, c: int, constant: int, terms: Sequence[tuple[int, int]], kind: str) -> None:
        """A sum of (coefficient, class) pairs for the class ``c``; a very long one only as a normal form."""
        for noted in self._noted:
            noted.add_sum(c, constant, terms, kind)
        if len(terms) <= MOST_COLUMNS:
            self._add_row(of_length(kind, len(terms)), c, constant, *[n for term in terms for n in term])
        elif kind == Kind.NORMAL:
            members = f"(multiset-of {' '.join([f'(Sc {k} (A {a}))' for k, a in terms])})"
            self._texts.append(
                f"(union (A {c}) (Sum {members} {constant})) (nf (A {c}) {members} {constant})"
                f" (open (A {c}) {members} {constant})"
            )

    def add_container(self, op: str, c: int, members: Sequence[int]) -> None:
        """A node over a multiset for the class ``c``; very long ones are left out."""
        if 1 < len(members) <= MOST_COLUMNS:
            for noted in self._noted:
                noted.add_container(op, c, members)
            self._add_row(of_length(op, len(members)), c, *members)

    def retire(self, op: str, payload: Any, operands: Sequence[int]) -> None:
        """Let no rule match a node any longer."""
        names = [f"(A {a})" for a in operands]
        if op == "sum":
            constant, coefficients = payload
            members = " ".join([f"(Sc {k} {name})" for k, name in zip(coefficients, names, strict=True)])
            node = f"(Sum (multiset-of {members}) {constant})"
        elif op in CONTAINERS:
            node = container_text(op, f"(multiset-of {' '.join(names)})")
        elif op in PLAIN:
            node = f"({PLAIN[op].name} {' '.join(names)})"
        else:
            # no rule reads it
            return
        self._retiring.append(f"(subsume {node})")

    def _written(self, table: str, rows: Iterable[tuple[int, ...]]) -> str:
        """The path of a file with these rows."""
        import tempfile

        if not self._files and not os.path.isdir(DESCRIPTORS):
            raise OSError(errno.ENOENT, "open files have no names there: mount /proc", DESCRIPTORS)
        left = memoryview("\n".join(["\t".join(map(str, row)) for row in rows]).encode())
        try:
            if (file := self._files.get(table)) is None:
                # to open a file anew each time takes far longer
                file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                self._files[table] = self._open_files.enter_context(file)
            file.seek(0)
            while left:
                left = left[file.write(left) :]
            file.truncate()
            file.seek(0)
        except OSError as error:
            remedy = f"{error.strerror}: make room, or set TMPDIR to another directory"
            raise OSError(error.errno, remedy, tempfile.tempdir or "temporary files") from None
        return f"{DESCRIPTORS}/{file.fileno()}"

    @property
    def has_broad(self) -> bool:
        """Whether a broad rule may match."""
        self._read_able()
        return any(way.broad and way.needs <= self.shapes.found for way, _ in self._ways)

    def can_match(self, operators: Iterable[str], with_two_values: bool) -> bool:
        """Whether a rule might match nodes of these operators; ``with_two_values``: whether a class has just two."""
        live = frozenset([name for op in operators for name in CONSTRUCTORS.get(op, ())])
        key = live, with_two_values
        if key not in self._matchable:
            lacking = _constructors() - live
            sides = self._sides({("", name) for name in live})
            self._matchable[key] = any(
                lacking.isdisjoint([kind for _, kind in side.needs])
                and (with_two_values or not side.pattern.asks_two_values)
                for side in sides
            )
        return self._matchable[key]

    @cached_property
    def reduces(self) -> bool:
        """Whether there are rules about reductions."""
        return any(has_reduction(rule.left) for rule in self._rules)

    @cached_property
    def taken_apart(self) -> dict[str, Rule]:
        """By reduction the shipped rule that takes extremes apart in it, which egglog does not match."""
        shipped = [rule for rule in self._rules if has_reduction(rule.left) and rule not in self._thorough]
        return {rule.pattern.left.op: rule for rule in shipped if rule.pattern.reduces_extremes}

    def _start(self) -> None:
        """Let egglog read the encoding and a caller's own rules, once.

        Raises ``ValueError`` if a rule cannot be matched, or egglog refuses it.
        """
        if self._program is None:
            with self._reading():
                self._read([place for place in self._unread if self._is_own(place)])

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Keep the time in which rules are read off the clock of the input: it is spent once."""
        began = time.perf_counter()
        with self._once():
            yield
        self.seconds_reading += time.perf_counter() - began

    def _read_able(self) -> None:
        """Let egglog read the rules that the e-graph has all shapes for."""
        found = self.shapes.found
        if able := [place for place in self._unread if self._is_able(place, found)]:
            with self._reading():
                self._read(able)

    def _is_own(self, place: int) -> bool:
        """Whether the rule at a place is one of the user's own."""
        return self._rules[place] in self._thorough

    @cached_property
    def own_divisors(self) -> frozenset[int] | None:
        """The literals by which left sides of a user's own rules divide; ``None`` if these divide by nothing."""
        lefts = [rule.pattern.left for rule in self._thorough]
        divisors = [term.args[1] for term in topological(lefts) if term.op == "floordiv"]
        return frozenset([d.vmin for d in divisors if d.op == "const"]) if divisors else None

    def _is_able(self, place: int, found: set[Shape]) -> bool:
        """Whether the rule at a place has a left side whose shapes are all ``found``; most need no parsing for that."""
        if not any(written <= found for written in self._written_shapes[place]):
            return False
        return any(needs <= found for needs, _ in needed_by(self._rules[place], self._is_own(place)))

    def read_all(self) -> None:
        """Let egglog read all rules, and all kinds of rows, if it has read any."""
        if self._program is not None and not self.is_left:
            self._read(self._unread)
            self._read_kinds({*ROWS} - self._built)

    def _read(self, places: Sequence[int]) -> None:
        """Compile the rules at these places, and let egglog read them, after the encoding if it does not have that."""
        rules = [self._rules[place] for place in places]
        lines: list[str] = []
        ways: list[tuple[Compiled, tuple[str, ...]]] = []
        rulesets = {**self._rulesets}
        for way in [way for rule in rules for way in compiled(rule, rule in self._thorough)]:
            names = []
            for stage in way.stages:
                # only the last stage counts as a match of the rule; other ways may share those before it
                is_match = stage is way.stages[-1]
                if is_match or stage not in rulesets:
                    rulesets[stage] = f"r{next(self._numbers)}"
                    lines.append(self._ruleset(stage, rulesets[stage], way.name if is_match else ""))
                names.append(rulesets[stage])
            if self._joins is not None:
                self._joins.read(names, [stage.taken for stage in way.stages])
            ways.append((way, tuple(names)))
        self._extend("\n".join(lines))
        self._ways += ways
        self._able_then.clear()
        self._rulesets = rulesets
        self.queries += [way.query for way, _ in ways if way.query is not None]
        known = set(places)
        self._unread = [place for place in self._unread if place not in known]

    def _ruleset(self, stage: Stage, name: str, rule: str) -> str:
        """The text of a stage as a ruleset with a name; where it counts as a match of a rule, that is named too."""
        label = f"{rule}@{name}" if rule else name
        if stage.is_search:
            self._searches.add(label)
        return f'{stage.tables} (ruleset {name}) (rule ({stage.body}) ({stage.head}) :ruleset {name} :name "{label}")'

    def _read_kinds(self, kinds: Collection[str], constructors: Iterable[str] = ()) -> None:
        """Let egglog read how nodes are built of the rows of these kinds, and these constructors."""
        self._extend("\n".join(map(building_text, sorted(kinds))), constructors)
        self._built.update(kinds)

    def _extend(self, rules: str, constructors: Iterable[str] = ()) -> None:
        """Let egglog read rules, after what it has not read of the encoding, these constructors, and those in rules."""
        named = dict.fromkeys([*constructors_in(rules), *constructors])
        new = [name for name in named if name not in self._constructors]
        text = "\n".join([*map(constructor_text, new), rules])
        if self._program is None:
            self._program = WarmProgram(f"{program()}\n{text}", MOST_SCRIPTS)
            self._run, egraph = self._program.run, self._program.egraph
            self._egraph, self.integer, self.members = egraph, egraph.value_to_i64, egraph.value_to_multiset
        else:
            self._program.extend(text)
        self._constructors.update(new)

    def begin(self, filtered: bool = False, once: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Be ready for rows, and count matches anew; ``filtered`` says that :meth:`may_match` will be asked.

        What is done once in a process is done within ``once``.
        """
        self._once = once
        self.matches, self.seconds = Counter(), Counter()
        self.shapes, self._given = Shapes(), Given() if filtered else None
        self.is_cut = False
        if self._joins is not None:
            self._joins.clear()
        self._note_rows()

    def _note_rows(self) -> None:
        """Note the rows that are added from now on in what reads them."""
        tables = (self.shapes, self._given, self._joins)
        self._noted: list[Shapes | Given | Joins] = [table for table in tables if table is not None]

    def may_match(self) -> bool:
        """Whether a rule may match the rows of the first insertion."""
        if self._given is None:
            return True
        return self._given.may_match(self._sides(self.shapes.found), self.shapes.found)

    def _sides(self, found: set[Shape]) -> Iterator[Prefilter]:
        """The left sides of the rules but for those whose text has what is not ``found``, which need no parsing."""
        for place, written in enumerate(self._written_shapes):
            if any(needs <= found for needs in written):
                if (sides := self._sides_of[place]) is None:
                    sides = self._sides_of[place] = prefilters(self._rules[place], self._is_own(place))
                yield from sides

    def insert(self) -> None:
        """Read the rows that were added, and build their nodes."""
        self._start()
        unread, retired = self._kinds - self._built, constructors_in(" ".join(self._retiring))
        if unread or not self._constructors.issuperset(retired):
            with self._reading():
                self._read_kinds(unread, retired)
        self._given, self._is_empty = None, False
        self._note_rows()
        script = [f'(input {table} "{self._written(table, rows)}")' for table, rows in self._rows.items()]
        # a rule takes time wherever its table has rows, whether there are any of its kind or not
        build = self._together(sorted([ROWS[kind].ruleset for kind in self._kinds]))
        self._rows.clear()
        self._kinds.clear()
        self._run(f"{' '.join(script)} {' '.join(self._texts)} (run-schedule {build} {_INDEX})")
        self._texts.clear()
        if self._retiring:
            self._run(" ".join(self._retiring))
            self._retiring.clear()

    def round(self, with_broad: bool = True, is_late: Callable[[float], bool] = lambda _: False) -> bool:
        """Run the rules that may match; whether anything changed. Broad rules may be left out.

        With rules of a user's own, those that may take too long are left out: ``is_late`` says whether there is no time
        for what takes a number of seconds.
        """
        before: tuple[tuple[str, ...], ...] | None = None
        while (able := self._able(with_broad)) != before:
            if self._ran(able, is_late):
                return True
            # only egglog knows which classes it united when rows were inserted
            self._note_classes(self._rows_of(_CLASSES))
            before = able
        return False

    def _ran(self, able: tuple[tuple[str, ...], ...], is_late: Callable[[float], bool]) -> bool:
        """Run these rulesets; whether anything changed."""
        if self._joins is None:
            return self._has_changed([self._step(place, names) for place, names in enumerate(_by_place(able))])
        changed = False
        for place, of_place in enumerate(_by_place(able)):
            in_time = self._joins.in_time(of_place, is_late)
            self.is_cut |= len(in_time) < len(of_place)
            changed |= self._has_changed([self._step(place, in_time)])
        return changed

    def _has_changed(self, steps: Iterable[str]) -> bool:
        """Run the parts of a schedule; whether anything changed."""
        report = self._run(f"(run-schedule {' '.join(steps)})")[-1].report
        found = {name: matches for name, matches in report.num_matches_per_rule.items() if matches}
        if self._program is not None:
            self._program.wear(sum(found.values()))
        if self._joins is not None:
            for name, matches in found.items():
                self._joins.matched(name, matches)
        # egglog's order of rules differs from process to process
        fired = sorted([(rule, name) for name in found for rule, marked, _ in [name.partition("@")] if marked])
        times = report.search_and_apply_time_per_rule if fired else {}
        for rule, name in fired:
            self.matches[rule] += found[name]
            self.seconds[rule] += times[name].total_seconds()
        return bool(report.updated) and not found.keys() <= self._searches

    def _able(self, with_broad: bool) -> tuple[tuple[str, ...], ...]:
        """The rulesets of the ways to match that the e-graph has all shapes for."""
        found = self.shapes.found
        key = frozenset(found), with_broad
        if key not in self._able_then:
            self._read_able()
            self._able_then[key] = tuple(
                [names for way, names in self._ways if way.needs <= found and (with_broad or not way.broad)]
            )
        return self._able_then[key]

    def _step(self, place: int, rulesets: Iterable[str]) -> str:
        """The part of a schedule that runs these rulesets, of the stages at this place of each rule."""
        asking = "(run ask0) (run ask1) (run ask2) (run ask3)" if place else ""
        return f"{asking} {self._together(rulesets)} {_INDEX}"

    def _together(self, rulesets: Iterable[str]) -> str:
        """The part of a schedule that runs these rulesets at once."""
        parts = tuple(rulesets)
        if (combined := self._combined.get(parts)) is None:
            combined = self._combined[parts] = f"together{len(self._combined)}"
            self._run(f"(unstable-combined-ruleset {combined} {' '.join(parts)})")
        return f"(run {combined})"

    def rows(self) -> dict[str, Any]:
        """The rows of nodes, of their parts and of matches by tables, as egglog gives them, but for empty tables."""
        found = self._rows_of((*_CLASSES, "Sc", *_constructors(), *[query.table for query in self.queries]))
        self._note_classes(found)
        return found

    def _rows_of(self, tables: Iterable[str]) -> dict[str, Any]:
        functions = self._egraph.freeze().functions
        # each read copies the rows, so that only these tables are read
        found = ((name, functions[name].rows) for name in tables if name in functions)
        return {name: rows for name, rows in found if rows}

    def _note_classes(self, rows: Mapping[str, Any]) -> None:
        """Note which classes egglog has united, and what conditions are true or false."""
        self.named = sorted([(self.integer(row.inputs[0]), row.output) for row in rows.get("A", ())])
        first: dict[Any, int] = {}
        for c, name in self.named:
            self.shapes.unite(first.setdefault(name, c), c)
        for name, kind in (("Yes", TRUE), ("No", FALSE)):
            for row in rows.get(name, ()):
                if row.output in first:
                    self.shapes.add_kind(first[row.output], kind)

    def clear(self) -> None:
        """Empty every table."""
        self._rows.clear()
        self._kinds.clear()
        self._texts.clear()
        self._retiring.clear()
        if self._program is not None and not self._is_empty:
            self._program.clear()
        self._is_empty = True
        self.shapes = Shapes()


#: The sessions that are open, and those of the process that this one was forked from.
_SESSIONS: weakref.WeakSet[Tables] = weakref.WeakSet()
_LEFT: list[Tables] = []


def read_all_rules() -> None:
    """Let each open session read the rules that no input had a use for yet, so that none waits for that."""
    for tables in list(_SESSIONS):
        tables.read_all()


def _leave_all() -> None:
    for tables in list(_SESSIONS):
        tables.leave()


os.register_at_fork(after_in_child=_leave_all)


def _constructors() -> set[str]:
    return {name for names in CONSTRUCTORS.values() for name in names}
