"""Corpora: many cases in a file, one JSON object a line, optimised one by one into one row of output each.

What a case holds is said in :mod:`eqsat.cli.cases`. A row is ``{"id", "out", "cost_before", "cost", "ms", "stop",
"nodes", "checked"}``, with ``"lets"`` where subterms are shared, ``"bound"`` from exact extraction and ``"proof"``
where one was asked for and points were too many (what decided, or why nothing did), or ``{"id", "error"}``; kinds that
are no list of expressions have rows of their own (:mod:`eqsat.cli.kinds`). Whatever is wrong with one case becomes its
row; the others go on.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, cast

from eqsat.cli.cases import Case, Id, Record, case_of, id_of, kind_of, load, one_line, reason
from eqsat.cli.settings import Row, Settings
from eqsat.lang.text import to_program
from eqsat.optimizer.front import optimize

if TYPE_CHECKING:
    from eqsat.optimizer.result import Result
    from eqsat.prove.verify import Check


def run_line(line: str | bytes, number: int, settings: Settings) -> Row:
    """The row for line ``number`` of a corpus; whatever goes wrong becomes an error row."""
    try:
        return run_record(load(line), f"line {number}", settings)
    except MemoryError:
        return {"id": id_of_line(line, number), "error": "out of memory: give --memory more, or a smaller input"}
    except Exception as error:
        return {"id": id_of_line(line, number), "error": reason(error)}


def id_of_line(line: str | bytes, number: int) -> Id:
    """The id of the row of line ``number``."""
    name = f"line {number}"
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
    gates = case.gates if settings.gates else ()
    result = optimize(case.exprs, gates=gates, constraints=case.constraints, **settings.optimizing_roots)
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


def run(lines: Sequence[str | bytes], settings: Settings, jobs: int = 1, skip: int = 0) -> Generator[Row]:
    """A row for each of ``lines``, in order, from ``jobs`` worker processes; blank lines are skipped.

    The first ``skip`` rows are left out: they are there already. Workers are separate processes even for one job, so
    that a case that kills its process costs only its own row: it is tried once more while no other runs, as it may have
    died for want of memory, and is an error row if that fails too. They are spawned, not forked: the caller may run
    threads (a progress bar does).
    """
    waiting = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()][skip:]
    order = [number for number, _ in waiting]
    names = dict(waiting)
    queue = iter(waiting)
    workers: list[_Worker] = []
    done: dict[int, Row] = {}
    again: list[int] = []
    try:
        for _ in range(min(jobs, len(order))):
            workers.append(_Worker(settings))
        for number in order:
            while number not in done:
                idle = [w for w in workers if w.number is None]
                if not again:
                    for worker in idle:
                        worker.give(next(queue, None))
                elif len(idle) == len(workers):
                    workers[0].give((again[0], names[again[0]]))
                ready = wait([w.pipe for w in workers if w.number is not None])
                for worker in [w for w in workers if w.pipe in ready]:
                    taken = worker.number
                    assert taken is not None
                    row = worker.take()
                    if isinstance(row, dict):
                        done[taken] = row
                    elif taken not in again:
                        again.append(taken)
                        continue
                    else:
                        error = f"the worker process died twice (exit code {row}): its memory is bounded by --memory"
                        done[taken] = {"id": id_of_line(names[taken], taken), "error": error}
                    if taken in again:
                        again.remove(taken)
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
        self.process = context.Process(target=_serve, args=(far_end, self.settings), daemon=True)
        with _signals_held():
            self.process.start()
        far_end.close()

    def give(self, task: tuple[int, str | bytes] | None) -> None:
        self.number = task[0] if task else None
        if task:
            # a worker that has died is noticed when its row is taken
            with suppress(BrokenPipeError):
                self.pipe.send(task)

    def take(self) -> Row | int | None:
        """The row that the worker has ready, or the exit code if it died over it; then another takes its place."""
        self.number = None
        try:
            return cast(Row, self.pipe.recv())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            self.start()
            return code

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Processes started here inherit that Ctrl-C is not for them; SIGTERM waits until they are started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminated = signal.signal(signal.SIGTERM, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, terminated)
        signal.signal(signal.SIGINT, interrupted)
        if held:
            signal.raise_signal(held[0])


def _serve(pipe: Connection, settings: Settings) -> None:
    """The life of a worker: lines in, rows out."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if settings.memory is not None:
        _bound_memory(settings.memory)
    # what is imported and built on first use is not at the expense of the first case
    run_line('{"vars": {"x": [0, 1]}, "exprs": ["x + 0"]}', 0, settings)
    # the caller may leave at any moment
    with suppress(EOFError, OSError):
        while True:
            number, line = pipe.recv()
            pipe.send(run_line(line, number, settings))


def _die_with_parent() -> None:
    """End this process when the one that started it has ended, even by SIGKILL, in the middle of a case."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _bound_memory(megabytes: int) -> None:
    """Let this process have no more memory: what asks for more fails, and is the row of its case."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = megabytes * 2**20
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
