"""A peer's driver as a process: cases go in, answers come out, and one that takes too long is replaced."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, Self

from peers.environment import UnavailableError

DRIVERS = Path(__file__).parent / "drivers"

#: Seconds that a driver may take to start, and how much longer than its CPU time a case may take on a busy machine.
START, PATIENCE = 300.0, 30.0


@dataclass(frozen=True)
class Reply:
    """What a driver said to a case."""

    #: Per mode a table of nodes, the indices of the roots in it, and the time, as ``drivers/wire.py`` describes.
    alternatives: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: CPU time in the peer's simplifier.
    milliseconds: float = 0.0
    #: Why there are no more alternatives; empty if the peer finished.
    error: str = ""


@dataclass
class Session:
    """A running driver; a context manager."""

    #: What starts the driver.
    command: list[str]
    #: Seconds beyond a case's own, after which the driver is ended: for conversions and uninterruptible steps.
    grace: float = 10.0
    #: What the driver says it drives.
    version: str = ""
    process: subprocess.Popen[bytes] | None = None
    replies: int = -1
    received: bytes = b""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop()

    def ask(self, request: dict[str, Any]) -> Reply:
        """What the driver says to a case, as far as it comes within ``seconds`` of CPU time (a key of the request)."""
        if self.process is None:
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        seconds = request["seconds"]
        reply = Reply()
        try:
            self.process.stdin.write(json.dumps({**request, "grace": self.grace}).encode() + b"\n")
            self.process.stdin.flush()
            while "mode" in (line := self._read(PATIENCE * max(10.0, seconds))):
                reply.alternatives[line["mode"]] = line
            return Reply(reply.alternatives, line["ms"], line.get("error", ""))
        except (TimeoutError, EOFError, OSError) as failure:
            late = isinstance(failure, TimeoutError)
            code = self._stop()
            if late or code == -signal.SIGXCPU:
                return Reply(reply.alternatives, 1e3 * seconds, f"stopped after {seconds:g} seconds")
            return Reply(reply.alternatives, 0.0, f"the driver died (exit code {code})")

    def _start(self) -> None:
        self.replies, far_end = os.pipe()
        with TemporaryFile() as said:
            self.process = subprocess.Popen(
                [*self.command, str(far_end)], stdin=subprocess.PIPE, stdout=said, stderr=said, pass_fds=[far_end]
            )
            os.close(far_end)
            try:
                self.version = self._read(START)["version"]
            except (EOFError, TimeoutError):
                self._stop()
                said.seek(0)
                lines = said.read().decode(errors="replace").strip().splitlines()
                raise UnavailableError(
                    f"{' '.join(self.command)} does not start: {lines[-1] if lines else ''}"
                ) from None

    def _read(self, seconds: float) -> dict[str, Any]:
        """The next line that the driver writes."""
        deadline = monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.replies, selectors.EVENT_READ)
            while b"\n" not in self.received:
                if not selector.select(deadline - monotonic()):
                    raise TimeoutError
                piece = os.read(self.replies, 2**20)
                if not piece:
                    raise EOFError
                self.received += piece
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def _stop(self) -> int | None:
        """End the process, if it runs; its exit code."""
        if self.process is None:
            return None
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        # one that ends by itself keeps its exit code
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.5)
        self.process.kill()
        code = self.process.wait()
        os.close(self.replies)
        self.process, self.received = None, b""
        return code
