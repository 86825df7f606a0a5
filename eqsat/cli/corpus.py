"""Corpora: many cases in a file, one JSON object a line, optimised one by one into one row of output each.

:mod:`eqsat.cli.kinds` answers them; ``docs/corpora.md`` says what a case and a row hold. Whatever is wrong with one
case becomes its row; the others go on.

Rows come from processes of this machine, or from the workers of a Dask scheduler. A case is a task of its own, and one
whose worker dies is tried again: here once, alone; on a cluster by other workers, up to as often as the scheduler
allows (``distributed.scheduler.allowed-failures``, 3 by default). Then it is an error row.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from eqsat.cli.files import content_of_file, remark
from eqsat.cli.records import Id, Row, id_of, load, numbered_lines, one_line, reason, refuse_long_costs
from eqsat.cli.settings import Settings
from eqsat.lang.validation import counted, shown

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from distributed import Client, Future

#: Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 30
#: When fewer cases than this are given out to a cluster, it gets this number for each thread of its workers.
AHEAD = 16
#: How many lines of standard input may wait for each worker before no more are read.
READ_AHEAD = 16


def run_line(line: str | bytes, number: int, settings: Settings) -> Row:
    """The row for line ``number`` of a corpus; whatever goes wrong becomes an error row."""
    try:
        from eqsat.cli.kinds import answer

        row = answer(load(line), f"line {number}", settings)
        refuse_long_costs(row)
        return row
    except MemoryError:
        return _failed(line, number, "out of memory: give --memory more, or a smaller input")
    except BaseException as error:
        # a function of a rule, operator or cost model may raise anything; a signal raises nothing in a worker
        return _failed(line, number, reason(error))


def _failed(line: str | bytes, number: int, error: str) -> Row:
    return {"id": id_of_line(line, number), "error": error}


def id_of_line(line: str | bytes, number: int) -> Id:
    name = f"line {number}"
    try:
        return id_of(load(line), name)
    except ValueError:
        return name


class Comparison:
    """Rows beside those of an earlier release, by their ids; of several with one id, in order, ``kept`` ones first."""

    def __init__(self, path: Path, kept: Iterable[Row]) -> None:
        try:
            rows = [load(line) for line in content_of_file(path).split(b"\n") if line.strip()]
        except ValueError:
            rows = []
        if not any("cost" in row or "error" in row for row in rows):
            raise click.UsageError(f"{path} has no rows of 'eqsat corpus', which have a cost: give what -o wrote")
        for row in rows:
            if type(row.get("cost", 0)) is not int:
                raise click.UsageError(f"{path}: a cost is {shown(row['cost'])}, not an integer: give what -o wrote")
        self.path, self.before = path, defaultdict[str, deque[Row]](deque)
        for row in rows:
            self.before[str(row.get("id"))].append(row)
        self.worse: list[str] = []
        self.costs = [0, 0]
        self.less = self.compared = 0
        for row in kept:
            self.add(row)

    def add(self, row: Row) -> None:
        rows = self.before[str(row["id"])]
        if not rows or "error" in (old := rows.popleft()):
            return
        self.compared += 1
        if "error" in row:
            self.worse.append(f"{row['id']}: {one_line(row['error'])}")
        elif "cost" in row and "cost" in old:
            self.costs = [self.costs[0] + old["cost"], self.costs[1] + row["cost"]]
            self.less += row["cost"] < old["cost"]
            if row["cost"] > old["cost"]:
                self.worse.append(f"{row['id']}: cost {old['cost']} -> {row['cost']}")

    def say(self) -> None:
        for line in self.worse:
            remark(f"worse: {line}")
        compared, (old, new) = counted(self.compared, "row"), self.costs
        remark(f"beside {self.path}: {compared}, {len(self.worse)} worse, {self.less} better, cost {old} -> {new}")


def rows_kept(output: Path | None, lines: Sequence[str | bytes]) -> list[Row]:
    """The rows that an earlier run over ``lines`` wrote whole; what it was writing when it ended is cut off."""
    if output is None:
        raise click.UsageError("--resume goes on with a file: name it by -o")
    if not output.exists():
        return []
    with output.open("rb+") as stream:
        written = stream.read()
        whole = written[: written.rfind(b"\n") + 1]
        found: list[Row] = []
        cases = numbered_lines(lines)
        for at, written_row in enumerate(whole.splitlines()):
            try:
                found.append(load(written_row))
            except ValueError:
                raise click.UsageError(f"{output}: row {at + 1} is none of a corpus: give -o another file") from None
            if at >= len(cases) or found[at].get("id") != id_of_line(*cases[at][::-1]):
                raise click.UsageError(f"{output}: row {at + 1} is of no such case of the input: give -o another file")
        stream.truncate(len(whole))
    return found


def run(lines: Sequence[str | bytes] | BinaryIO, settings: Settings, jobs: int = 1, skip: int = 0) -> Generator[Row]:
    """A row for each of ``lines``, in order, from ``jobs`` worker processes; blank lines are skipped.

    The first ``skip`` rows are left out: they are there already. Of a stream few lines are read ahead.
    Workers are separate processes even for one job, so that a case that kills its process costs only its own row: it is
    tried once more while no other runs, as it may have died for want of memory, and is an error row if that fails too.
    They are spawned, not forked: the caller may run threads (a progress bar does).
    """
    from multiprocessing.connection import wait

    cases, pool = _Cases(lines, skip), _Pool(settings, jobs)
    done: dict[int, Row] = {}
    try:
        while cases.waiting or cases.stream:
            if (first := next(iter(cases.waiting), -1)) in done:
                del cases.waiting[first]
                yield done.pop(first)
                continue
            pool.give_out(cases)
            stream = cases.stream if len(cases.queue) < READ_AHEAD * jobs else None
            ready = wait([*[w.pipe for w in pool.busy], *([stream.fileno()] if stream else [])])
            if stream and stream.fileno() in ready:
                cases.read(stream)
            done |= pool.take(ready, cases)
    finally:
        pool.stop()


class _Cases:
    """The lines of cases, each with its number: all of them, or those of a stream that have come."""

    def __init__(self, lines: Sequence[str | bytes] | BinaryIO, skip: int) -> None:
        #: Those without a row. Of a plain dict the first entry is found slowly if many before it have left.
        self.waiting: OrderedDict[int, str | bytes] = OrderedDict()
        #: Those that no worker was given.
        self.queue: deque[tuple[int, str | bytes]] = deque()
        #: What more may come from.
        self.stream: BinaryIO | None = None
        # what has come of a line that has not ended, and how many lines have ended
        self._begun: list[bytes] = []
        self._count = 0
        if isinstance(lines, Sequence):
            self._add(numbered_lines(lines)[skip:])
        else:
            self.stream = lines

    def read(self, stream: BinaryIO) -> None:
        """Wait until more comes, and add the lines that it ends; at the end of the stream, what was left."""
        try:
            came = os.read(stream.fileno(), 2**16)
        except OSError as error:
            error.filename = "standard input"
            raise
        first, *others = came.split(b"\n")
        self._begun.append(first)
        if others or not came:
            ended = [b"".join(self._begun), *others[:-1]]
            self._begun = others[-1:]
            self._add([(self._count + number, line) for number, line in numbered_lines(ended)])
            self._count += len(ended)
        if not came:
            self.stream = None

    def _add(self, lines: Sequence[tuple[int, str | bytes]]) -> None:
        self.waiting.update(lines)
        self.queue += lines


class _Pool:
    """Up to ``jobs`` workers. A line over which one has died is tried once more, alone."""

    def __init__(self, settings: Settings, jobs: int) -> None:
        self.settings, self.jobs = settings, jobs
        self.workers: list[_Worker] = []
        #: The numbers of lines over which a worker has died once.
        self.suspects: list[int] = []

    @property
    def busy(self) -> list[_Worker]:
        """The workers that have a line."""
        return [w for w in self.workers if w.number is not None]

    def give_out(self, cases: _Cases) -> None:
        """Give each idle worker a line; start workers, up to ``jobs``, as long as lines are left."""
        if self.suspects:
            if not self.busy:
                self.workers[0].give((self.suspects[0], cases.waiting[self.suspects[0]]))
            return
        idle = [w for w in self.workers if w.number is None]
        for _ in range(min(self.jobs - len(self.workers), len(cases.queue) - len(idle))):
            self.workers.append(_Worker(self.settings))
            idle.append(self.workers[-1])
        for worker in idle[: len(cases.queue)]:
            worker.give(cases.queue.popleft())

    def take(self, ready: Collection[object], cases: _Cases) -> dict[int, Row]:
        """The rows of the workers whose pipes are ``ready``, by the numbers of their lines."""
        found: dict[int, Row] = {}
        for worker in [w for w in self.busy if w.pipe in ready]:
            number, row = worker.take()
            if not isinstance(row, dict) and number not in self.suspects:
                self.suspects.append(number)
                continue
            if not isinstance(row, dict):
                error = f"the worker process died twice (exit code {row}): its memory is bounded by --memory"
                row = _failed(cases.waiting[number], number, error)
            found[number] = row
            if number in self.suspects:
                self.suspects.remove(number)
        return found

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()


class _Worker:
    """A process that turns lines into rows, one at a time, and is replaced if it dies."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.number: int | None = None
        self.start()

    def start(self) -> None:
        from multiprocessing import get_context

        from eqsat.codegen.libraries import interrupts_held

        context = get_context("spawn")
        self.pipe, far_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(far_end, self.settings), daemon=True)
        # processes inherit that Ctrl-C is not for them
        with interrupts_held(ignored=[signal.SIGINT]):
            self.process.start()
        far_end.close()

    def give(self, task: tuple[int, str | bytes]) -> None:
        self.number = task[0]
        # a worker that has died is noticed when its row is taken
        with suppress(BrokenPipeError):
            self.pipe.send(task)

    def take(self) -> tuple[int, Row | int | None]:
        """The number of its line, and the row, or the exit code if it died; then another process takes its place."""
        number, self.number = cast(int, self.number), None
        try:
            return number, cast(Row, self.pipe.recv())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            self.start()
            return number, code

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
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

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
    except ImportError:
        raise ValueError("--scheduler needs Dask distributed: pip install 'eqsat[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise ValueError(f"no scheduler answers at {address}: start one by dask scheduler") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        message = f"the scheduler at {address} has no worker: start some by dask worker {address} --nthreads 1"
        raise ValueError(message) from None
    return _rows_of(client, numbered_lines(lines)[skip:], settings)


def _rows_of(client: Client, waiting: Sequence[tuple[int, str | bytes]], settings: Settings) -> Generator[Row]:
    from distributed.scheduler import KilledWorker

    given: deque[tuple[int, str | bytes, Future]] = deque()
    queue = iter(waiting)
    with client:
        for _ in waiting:
            if len(given) < AHEAD:
                # workers may come and go meanwhile
                most = AHEAD * max(1, sum(client.nthreads().values()))
                for number, line in islice(queue, most - len(given)):
                    given.append((number, line, client.submit(run_line, line, number, settings, pure=False)))
            number, line, future = given.popleft()
            try:
                yield cast(Row, future.result())
            except KilledWorker:
                yield _failed(line, number, "each worker that took it died: its memory may not suffice")
            except Exception as error:
                yield _failed(line, number, reason(error))
