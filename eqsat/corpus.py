"""Corpora: many cases in a file, one JSON object a line, optimised one by one into one row of output each.

A case names its variables with inclusive ranges, its roots as text, and what is known (constraints, gates). A row is
``{"id", "out", "cost_before", "cost", "ms", "stop", "nodes", "checked"}``, with ``"lets"`` where subterms are shared
and ``"bound"`` from exact extraction, or ``{"id", "error"}``. Whatever is wrong with one case becomes its row; the
others go on.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from eqsat.expr import Expr, var
from eqsat.text import parse_program, to_program

if TYPE_CHECKING:
    from eqsat.optimize import Result
    from eqsat.verify import Check

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One case of a corpus.

    Attributes
    ----------
    variables : dict
        Name to variable.
    lets : list of (str, str)
        Named subterms, in order; ``exprs``, ``constraints`` and gates use them.
    exprs, constraints : list of Expr
        The roots, and the conditions known to hold.
    gates : list of (Expr or None)
        Per root the condition under which its value matters; empty if there are none.
    expected, forbidden : list of (str or None)
        Per root what the source expects, and what must not be produced.
    """

    id: str
    variables: dict[str, Expr]
    lets: list[tuple[str, str]]
    exprs: list[Expr]
    constraints: list[Expr] = field(default_factory=list)
    gates: list[Expr | None] = field(default_factory=list)
    expected: list[str | None] = field(default_factory=list)
    forbidden: list[str | None] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def parse(self, text: str) -> Expr:
        """The expression that ``text`` spells, in the names of this case."""
        return parse_program(self.lets, [text], self.variables)[0]


@dataclass(frozen=True)
class Settings:
    """How to optimise and check each case: the arguments of :func:`eqsat.optimize.optimize` by name."""

    cost: str = "latency"
    extract: str = "dag"
    engine: str = "egraph"
    theory: bool = True
    gates: bool = True
    prove: bool = False


def read_case(line: str | bytes, name: str = "") -> Case:
    """The case that one line of a corpus holds; ``name`` is its id if the line gives none.

    Raises
    ------
    ValueError
        If it is not a case: half-written JSON, missing keys, an empty range, a syntax error; one line that says what.

    >>> case = read_case('{"id": "a", "vars": {"i": [0, 31]}, "exprs": ["i*8 // 8"]}')
    >>> case.id, case.exprs
    ('a', [Expr('i*8//8')])
    """
    record = _load(line)
    kind = record.get("kind", "plain")
    if kind != "plain":
        raise ValueError(f"kind {kind!r} is not supported yet")
    texts = _texts(record, "exprs")
    if not texts:
        raise ValueError("'exprs' is empty: give at least one root")
    variables = {name: _variable(name, bounds) for name, bounds in _get(record, "vars", dict).items()}
    lets = [_let(pair) for pair in _get(record, "lets", list, [])]
    conditions = _texts(record, "constraints", [])
    terms = parse_program(lets, [*texts, *conditions], variables)
    exprs, constraints = terms[: len(texts)], terms[len(texts) :]
    for constraint, text in zip(constraints, conditions, strict=True):
        if not constraint.is_bool:
            raise ValueError(f"the constraint {text!r} is not a condition")
    return Case(
        id=str(record.get("id", name)),
        variables=variables,
        lets=lets,
        exprs=exprs,
        constraints=constraints,
        gates=_gates(_get(record, "gates", list, []), exprs),
        expected=_get(record, "expected", list, []),
        forbidden=_get(record, "forbidden", list, []),
        tags=_get(record, "tags", list, []),
    )


def _load(line: str | bytes) -> dict[str, Any]:
    try:
        record = json.loads(line if isinstance(line, str) else line.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON: {one_line(error)}") from None
    if not isinstance(record, dict):
        raise ValueError(f"not a case: a JSON object is wanted, not {type(record).__name__}")
    return record


def _get(record: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
    value = record.get(key, default)
    if value is None:
        raise ValueError(f"the key {key!r} is missing")
    if not isinstance(value, kind):
        raise ValueError(f"{key!r} must be a {kind.__name__}, not {type(value).__name__}")
    return value


def _texts(record: Mapping[str, Any], key: str, default: Any = None) -> list[str]:
    texts = _get(record, key, list, default)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{key!r} must be a list of texts, not of {type(text).__name__}")
    return cast(list[str], texts)


def _variable(name: str, bounds: Any) -> Expr:
    match bounds:
        case [int(low), int(high)]:
            return var(name, low, high)
    raise ValueError(f"the range of variable {name!r} must be two integers, not {bounds!r}")


def _let(pair: Any) -> tuple[str, str]:
    match pair:
        case [str(name), str(text)]:
            return name, text
    raise ValueError(f"each of 'lets' must be a name and a text, not {str(pair)[:60]!r}")


def _gates(indices: list[Any], exprs: list[Expr]) -> list[Expr | None]:
    gates: list[Expr | None] = []
    for index in indices:
        if index is not None and (not isinstance(index, int) or not 0 <= index < len(exprs)):
            raise ValueError(f"the gate {index!r} is not the index of one of the {len(exprs)} roots")
        gate = None if index is None else exprs[index]
        if gate is not None and not gate.is_bool:
            raise ValueError(f"the gate {index} is root {str(gate)[:60]!r}, which is not a condition")
        gates.append(gate)
    if gates and len(gates) != len(exprs):
        raise ValueError(f"{len(gates)} gates for {len(exprs)} roots: give one, or null, for each")
    return gates


def run_line(line: str | bytes, number: int, settings: Settings) -> Row:
    """The row for line ``number`` of a corpus; whatever goes wrong becomes an error row."""
    name = f"line {number}"
    try:
        return run_case(read_case(line, name), settings)
    except ValueError as error:
        message = one_line(error)
    except Exception as error:
        message = one_line(f"{type(error).__name__}: {error}")
    return {"id": _id(line, name), "error": message}


def _id(line: str | bytes, name: str) -> str:
    try:
        return str(_load(line).get("id", name))
    except ValueError:
        return name


def run_case(case: Case, settings: Settings) -> Row:
    """Optimise and check one case.

    Raises
    ------
    ValueError
        If the case cannot be optimised, or the result fails its check.
    """
    from eqsat.extract.cost import COST_MODELS
    from eqsat.optimize import optimize

    result = optimize(
        case.exprs,
        gates=case.gates if settings.gates else (),
        constraints=case.constraints,
        cost=COST_MODELS[settings.cost],
        engine=settings.engine,
        theory=settings.theory,
        extract=settings.extract,
    )
    check = result.check(prove=settings.prove)
    if not check.equal:
        raise ValueError(f"the result is wrong at {check.counterexample}: {one_line(to_program(result.exprs)[1])}")
    return {"id": case.id, **record(result, check, case.variables)}


def record(result: Result, check: Check, taken: Iterable[str]) -> Row:
    """What a row says of a result; the names of its shared subterms are none of ``taken``."""
    lets, out = to_program(result.exprs, taken)
    return {
        "out": out,
        **({"lets": [list(pair) for pair in lets]} if lets else {}),
        "cost_before": result.cost_before,
        "cost": result.cost,
        **({} if result.bound is None else {"bound": result.bound}),
        "ms": round(result.milliseconds, 3),
        "stop": result.stop,
        "nodes": result.nodes,
        "checked": check.kind,
    }


def one_line(message: object, most: int = 300) -> str:
    """``message`` as one line of up to ``most`` characters."""
    text = " ".join(str(message).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def run(lines: Sequence[str | bytes], settings: Settings, jobs: int = 1) -> Iterator[Row]:
    """A row for each of ``lines``, in order, from ``jobs`` worker processes; blank lines are skipped.

    Workers are separate processes even for one job, so that a case that kills its process costs only its own row. They
    are spawned, not forked: the caller may run threads (a progress bar does).
    """
    waiting = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    order = [number for number, _ in waiting]
    names = dict(waiting)
    queue = iter(waiting)
    workers = [_Worker(settings) for _ in range(min(jobs, len(order)))]
    done: dict[int, Row] = {}
    try:
        for worker in workers:
            worker.give(next(queue, None))
        for number in order:
            while number not in done:
                ready = wait([w.pipe for w in workers if w.number is not None])
                for worker in [w for w in workers if w.pipe in ready]:
                    assert worker.number is not None
                    done[worker.number] = worker.take(names[worker.number])
                    worker.give(next(queue, None))
            yield done.pop(number)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that turns lines into rows, one at a time, and is replaced if it dies."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.number: int | None = None
        self.start()

    def start(self) -> None:
        context = get_context("spawn")
        self.pipe, far_end = context.Pipe()
        # a daemon: it does not outlive the caller
        self.process = context.Process(target=_serve, args=(far_end, self.settings), daemon=True)
        with _interrupts_ignored():
            self.process.start()
        far_end.close()

    def give(self, task: tuple[int, str | bytes] | None) -> None:
        self.number = task[0] if task else None
        if task:
            # a worker that has died is noticed when its row is taken
            with suppress(BrokenPipeError):
                self.pipe.send(task)

    def take(self, line: str | bytes) -> Row:
        """The row that the worker has ready, or an error row if it died over it."""
        try:
            return cast(Row, self.pipe.recv())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            self.start()
            return {"id": _id(line, f"line {self.number}"), "error": f"the worker process died (exit code {code})"}

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes started here inherit that Ctrl-C is not for them: the caller answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _serve(pipe: Connection, settings: Settings) -> None:
    """The life of a worker: lines in, rows out."""
    # the first optimisation of a process also compiles the rules: not at the expense of the first case
    run_line('{"vars": {"x": [0, 1]}, "exprs": ["x + 0"]}', 0, settings)
    while True:
        try:
            number, line = pipe.recv()
        except EOFError:
            return
        pipe.send(run_line(line, number, settings))
