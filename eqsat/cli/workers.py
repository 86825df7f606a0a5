"""Who answers the cases of a corpus: processes of this machine, or the workers of a Dask scheduler.

A case is a task of its own, and one whose worker dies is tried again: here once, alone; on a cluster by other workers,
up to as often as the scheduler allows (``distributed.scheduler.allowed-failures``, 3 by default). Then it is an error
row.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, cast

from eqsat.cli.cases import reason
from eqsat.cli.corpus import id_of_line, numbered_cases, run_line
from eqsat.cli.settings import Row, Settings
from eqsat.codegen.libraries import interrupts_held

if TYPE_CHECKING:
    from distributed import Future

#: Seconds that the first worker is waited for.
PATIENCE = 30
#: Cases that are given out for each thread of the workers: more lie ready while the first of them is not done.
AHEAD = 16


def run(lines: Sequence[str | bytes], settings: Settings, jobs: int = 1, skip: int = 0) -> Generator[Row]:
    """A row for each of ``lines``, in order, from ``jobs`` worker processes; blank lines are skipped.

    The first ``skip`` rows are left out: they are there already. Workers are separate processes even for one job, so
    that a case that kills its process costs only its own row: it is tried once more while no other runs, as it may have
    died for want of memory, and is an error row if that fails too. They are spawned, not forked: the caller may run
    threads (a progress bar does).
    """
    waiting = numbered_cases(lines)[skip:]
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
        # processes inherit that Ctrl-C is not for them
        with interrupts_held(ignored=[signal.SIGINT]):
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


def run_on_cluster(lines: Sequence[str | bytes], settings: Settings, address: str, skip: int = 0) -> Generator[Row]:
    """A row for each of ``lines``, in order, by the workers of the scheduler at ``address``; blank lines are skipped.

    The first ``skip`` rows are left out. Memory here does not grow with the number of lines: few are given out at once.

    Raises ``ValueError`` if Dask distributed is not installed, no scheduler answers at the address, or it has no
    worker.
    """
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise ValueError("--scheduler needs Dask distributed: pip install 'eqsat[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise ValueError(f"no scheduler answers at {address}: start one by dask scheduler") from None
    waiting = numbered_cases(lines)[skip:]
    given: deque[tuple[int, str | bytes, Future]] = deque()
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            message = f"the scheduler at {address} has no worker: start some by dask worker {address} --nthreads 1"
            raise ValueError(message) from None
        queue = iter(waiting)
        for _ in waiting:
            # workers may come and go meanwhile
            most = AHEAD * max(1, sum(client.nthreads().values())) if len(given) < AHEAD else AHEAD
            while len(given) < most and (task := next(queue, None)):
                number, line = task
                given.append((number, line, client.submit(run_line, line, number, settings, pure=False)))
            number, line, future = given.popleft()
            try:
                yield cast(Row, future.result())
            except KilledWorker:
                error = "each worker that took it died: its memory may not suffice"
                yield {"id": id_of_line(line, number), "error": error}
            except Exception as error:
                yield {"id": id_of_line(line, number), "error": reason(error)}
