"""Corpora: many cases in a file, one JSON object a line, optimised one by one into one row of output each.

What a case holds is said in :mod:`eqsat.cli.cases`. A row is ``{"id", "out", "cost_before", "cost", "ms", "stop",
"nodes", "checked"}``, with ``"lets"`` where subterms are shared, ``"bound"`` from exact extraction and ``"proof"``
where one was asked for and points were too many (what decided, or why nothing did), or ``{"id", "error"}``; kinds that
are no list of expressions have rows of their own (:mod:`eqsat.cli.kinds`). Whatever is wrong with one case becomes its
row; the others go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from eqsat.cli.cases import Case, Id, Record, case_of, id_of, kind_of, load, one_line, reason
from eqsat.cli.rulesets import rule_set
from eqsat.egraph.engine import Budget
from eqsat.extract.calibrated import cost_model
from eqsat.lang.text import to_program
from eqsat.optimizer.front import DEFAULT_BUDGET, optimize

if TYPE_CHECKING:
    from eqsat.optimizer.result import Result
    from eqsat.prove.verify import Check

Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to optimise and check each case, and for how long: options of the command line by name."""

    cost: str = "latency"
    extract: str = "dag"
    engine: str = "egraph"
    theory: bool = True
    gates: bool = True
    budget: Budget = DEFAULT_BUDGET
    prove: bool = False
    prove_seconds: float = 10.0
    branches: str = "eager"
    rules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    unknown_divisors: str = "refuse"

    @property
    def optimizing(self) -> dict[str, Any]:
        """The options of :func:`eqsat.optimize` that all kinds of cases take."""
        cost, rules = cost_model(self.cost), rule_set(self.rules, self.without)
        engine, theory, branches = self.engine, self.theory, self.branches
        options = {"cost": cost, "engine": engine, "theory": theory, "budget": self.budget, "branches": branches}
        return options if rules is None else options | {"rules": rules}

    @property
    def checking(self) -> dict[str, Any]:
        """The options of :func:`eqsat.prove.verify.check_equal`."""
        return {"prove": self.prove, "seconds": self.prove_seconds}


def run_line(line: str | bytes, number: int, settings: Settings) -> Row:
    """The row for line ``number`` of a corpus; whatever goes wrong becomes an error row."""
    name = f"line {number}"
    try:
        return run_record(load(line), name, settings)
    except Exception as error:
        return {"id": _id(line, name), "error": reason(error)}


def _id(line: str | bytes, name: str) -> Id:
    try:
        return id_of(load(line), name)
    except ValueError:
        return name


def run_record(record: Record, name: str, settings: Settings) -> Row:
    """Answer one case, given as a JSON object; ``name`` is its id if it has none.

    Raises
    ------
    ValueError
        If it is no case, cannot be optimised, or the result fails its check.
    """
    from eqsat.cli.kinds import ANSWERS

    answer = ANSWERS.get(kind_of(record))
    if answer is None:
        return run_case(case_of(record, name), settings)
    return {"id": id_of(record, name), **answer(record, settings)}


def run_case(case: Case, settings: Settings) -> Row:
    """Optimise and check one case.

    Raises
    ------
    ValueError
        If the case cannot be optimised, or the result fails its check.
    """
    result = optimize(
        case.exprs,
        gates=case.gates if settings.gates else (),
        constraints=case.constraints,
        extract=settings.extract,
        unknown_divisors=settings.unknown_divisors,
        **settings.optimizing,
    )
    check = result.check(**settings.checking)
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
        **check.row,
    }


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
    # what is imported and built on first use is not at the expense of the first case
    run_line('{"vars": {"x": [0, 1]}, "exprs": ["x + 0"]}', 0, settings)
    while True:
        try:
            number, line = pipe.recv()
        except EOFError:
            return
        pipe.send(run_line(line, number, settings))
