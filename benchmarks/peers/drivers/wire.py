"""What every driver shares: cases in, answers out, and the walk between our terms and a peer's.

A driver runs in its peer's environment, where eqsat is not installed: this module needs the standard library alone. It
reads a case a line from standard input and writes lines of answers to the file descriptor that its last argument names,
all JSON. Terms travel as a table of nodes, operands before users: ``["var", name, low, high]`` (inclusive),
``["const", value]``, ``["bool", 0 or 1]``, or ``[operator, index, ...]`` with the operators of ``eqsat.lang.ops``.

A case is ``{"nodes", "roots", "constraints", "gates", "seconds", "grace"}``: indices of nodes, a gate or null per root,
the CPU time that the peer may take, and how much more there is for conversions and steps that cannot be interrupted.
The reply is a line ``{"mode", "nodes", "roots", "ms"}`` per alternative, each for all roots and written as soon as it
is known, and a last line ``{"ms"}`` or ``{"ms", "error"}``. ``ms`` is CPU time in the peer's simplifier since the case
began, without conversions.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from time import process_time, thread_time
from types import FrameType
from typing import Any, NoReturn, TextIO

Node = list[Any]
LEAVES = ("var", "const", "bool")

#: The kinds of nodes that are conditions, and those that are what their operands are.
CONDITIONS = frozenset({"bool", "or", "and", "not", "lt", "le", "eq", "ne"})
EITHER = frozenset({"where", "min", "max"})

#: What a comparison is with its operands the other way round.
TURNED = {"gt": "lt", "ge": "le", "ugt": "ult", "uge": "ule"}


class OutOfTimeError(BaseException):
    """The peer has used the time that it was given; no ``Exception``, so that no peer takes it for one of its own."""


@dataclass
class Clock:
    """The CPU time spent in a peer's simplifier, against its limit."""

    seconds: float
    spent: float = 0.0
    whole: Clock | None = None

    def part(self, seconds: float) -> Clock:
        """A clock of its own with less time, whose time counts here too."""
        return Clock(min(seconds, self.seconds - self.spent), whole=self)

    @property
    def late(self) -> bool:
        """Whether no time is left."""
        return self.spent >= self.seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time spent inside counts; not to be nested.

        Raises ``OutOfTimeError`` if none was left at the start, or between two steps of Python's when the time is up.
        """
        if self.late:
            raise OutOfTimeError
        # the process's own clock only ticks while its CPU time is limited
        start = thread_time()
        signal.setitimer(signal.ITIMER_PROF, self.seconds - self.spent)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            taken = thread_time() - start
            self.spent += taken
            if self.whole:
                self.whole.spent += taken


def _time_is_up(signum: int, frame: FrameType | None) -> NoReturn:
    raise OutOfTimeError


@dataclass(frozen=True)
class Case:
    """One case as it came over the wire."""

    nodes: list[Node]
    roots: list[int]
    constraints: list[int]
    gates: list[int | None]

    def shared(self) -> list[bool]:
        """Per node whether it is a root or has more than one use."""
        uses = [0] * len(self.nodes)
        for node in self.nodes:
            if node[0] not in LEAVES:
                for index in node[1:]:
                    uses[index] += 1
        for root in self.roots:
            uses[root] += 2
        return [count > 1 and node[0] not in LEAVES for count, node in zip(uses, self.nodes, strict=True)]

    def conditions(self) -> list[bool]:
        """Per node whether it is true or false, not a number."""
        found: list[bool] = []
        for kind, *rest in self.nodes:
            found.append(kind in CONDITIONS or (kind in EITHER and found[rest[-1]]))
        return found


@dataclass
class Table:
    """An answer under construction: equal nodes are one."""

    nodes: list[Node] = field(default_factory=list)
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, kind: str, *rest: Any) -> int:
        """The index of a node; ``x > y`` becomes ``y < x``."""
        node = (TURNED[kind], *rest[::-1]) if kind in TURNED else (kind, *rest)
        if node not in self.index:
            self.index[node] = len(self.nodes)
            self.nodes.append(list(node))
        return self.index[node]

    def fold(self, operator: str, indices: Sequence[int]) -> int:
        """The index of a chain of binary nodes: an n-ary operation of a peer."""
        return reduce(lambda x, y: self.add(operator, x, y), indices)


def to_peer(
    case: Case,
    leaf: Callable[[Node], Any],
    operators: dict[str, Callable[..., Any]],
    after: Callable[[int, Any], Any] | None = None,
) -> list[Any]:
    """The peer's term for every node; ``after(index, term)`` may replace a term before its users are built.

    Raises ``ValueError`` if the peer has no such operator.
    """
    terms: list[Any] = []
    for index, node in enumerate(case.nodes):
        if node[0] in LEAVES:
            term = leaf(node)
        elif node[0] in operators:
            term = operators[node[0]](*[terms[i] for i in node[1:]])
        else:
            raise ValueError(f"no counterpart of {node[0]}")
        terms.append(after(index, term) if after else term)
    return terms


def bottom_up(
    case: Case,
    clock: Clock,
    leaf: Callable[[Node], Any],
    operators: dict[str, Callable[..., Any]],
    step: Callable[[Any], Any],
) -> list[Any]:
    """The peer's term for every node, each shared one after ``step``, for peers that walk trees.

    When the time is up, terms stay as they are.
    """
    shared = case.shared()

    def after(index: int, term: Any) -> Any:
        return attempt(clock, step, term) if shared[index] else term

    return to_peer(case, leaf, operators, after)


def attempt(clock: Clock, step: Callable[[Any], Any], term: Any) -> Any:
    """``step(term)``, or ``term`` itself if there is no time for it."""
    try:
        with clock.running():
            return step(term)
    except OutOfTimeError:
        return term


def from_peer(
    roots: Sequence[Any],
    key: Callable[[Any], Hashable],
    operands: Callable[[Any], Sequence[Any]],
    node: Callable[[Any, list[int]], int],
) -> list[int]:
    """The indices of terms of the peer in a table.

    ``key`` identifies a term, ``operands`` are those below it, and ``node`` adds a term to the table: given the indices
    of its operands, it returns that of the term.
    """
    done: dict[Hashable, int] = {}
    # terms live as long as their keys: a key may be an address
    alive: list[Any] = []
    stack: list[tuple[Any, Sequence[Any] | None]] = [(root, None) for root in reversed(roots)]
    while stack:
        term, below = stack.pop()
        if below is not None:
            done[key(term)] = node(term, [done[key(x)] for x in below])
        elif key(term) not in done:
            below = operands(term)
            alive.append((term, below))
            stack.append((term, below))
            stack.extend((x, None) for x in below)
    return [done[key(root)] for root in roots]


Alternative = tuple[str, Table, list[int]]
Simplify = Callable[[Case, Clock], Iterable[Alternative]]

#: Seconds that the first, uncounted case may take, and that case: (x + 8) // 4 % 2 < x*2.
START = 60.0
WARM_UP = Case(
    [["var", "x", 0, 9], ["const", 8], ["add", 0, 1], ["const", 4], ["floordiv", 2, 3], ["const", 2], ["mod", 4, 5],
     ["mul", 0, 5], ["lt", 6, 7]],
    [8], [], [None],
)  # fmt: skip


def serve(version: str, simplify: Simplify) -> None:
    """The life of a driver: say the peer's version, then answer a case a line until the input ends.

    ``simplify`` yields alternatives: a mode, a table and the indices of the roots in it. Whatever it raises over a case
    is the end of that case's answer.
    """
    # not standard output: what a peer prints is no answer
    replies = os.fdopen(int(sys.argv[-1]), "w", encoding="utf-8")
    # what a peer builds at its first use is not at the expense of the first case
    signal.signal(signal.SIGPROF, _time_is_up)
    list(simplify(WARM_UP, Clock(START)))
    _write(replies, {"version": version})
    for line in sys.stdin:
        record = json.loads(line)
        case = Case(record["nodes"], record["roots"], record["constraints"], record["gates"])
        clock = Clock(record["seconds"])
        _limit(record["seconds"] + record["grace"])
        error = {}
        try:
            for mode, table, roots in simplify(case, clock):
                _write(replies, {"mode": mode, "nodes": table.nodes, "roots": roots, "ms": 1e3 * clock.spent})
        except Exception as failure:
            error = {"error": f"{type(failure).__name__}: {failure}"}
        except OutOfTimeError:
            pass
        if clock.late:
            error = {"error": f"stopped after {clock.seconds:g} seconds"}
        _write(replies, {"ms": 1e3 * clock.spent, **error})


def _limit(seconds: float) -> None:
    """Let the system end this process (SIGXCPU) once it has used ``seconds`` more of CPU time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(process_time() + seconds) + 1, hard))


def _write(stream: TextIO, record: dict[str, Any]) -> None:
    stream.write(json.dumps(record) + "\n")
    stream.flush()
