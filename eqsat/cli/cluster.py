"""A corpus on many machines: Dask distributed gives its cases to the workers of a scheduler.

A case is a task of its own. One whose worker dies is given to another, up to as often as the scheduler allows
(``distributed.scheduler.allowed-failures``, 3 by default); then it is an error row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, cast

from eqsat.cli.cases import reason
from eqsat.cli.corpus import id_of_line, run_line
from eqsat.cli.settings import Row, Settings

if TYPE_CHECKING:
    from distributed import Future

#: Seconds that the first worker is waited for.
PATIENCE = 30
#: Cases that are given out for each thread of the workers: more lie ready while the first of them is not done.
AHEAD = 16


def run(lines: Sequence[str | bytes], settings: Settings, address: str, skip: int = 0) -> Generator[Row]:
    """A row for each of ``lines``, in order, by the workers of the scheduler at ``address``; blank lines are skipped.

    The first ``skip`` rows are left out. Memory here does not grow with the number of lines: few are given out at once.

    Raises
    ------
    ValueError
        If Dask distributed is not installed, no scheduler answers at the address, or it has no worker.
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
    waiting = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()][skip:]
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
