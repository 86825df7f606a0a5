"""Ctrl-C and errors while the command line starts: it ends with 130 or 2 and one line, as it does later.

Imported first, before what takes a while. A program that imports eqsat keeps Python's own handler.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import PurePath
from types import TracebackType


def is_starting() -> bool:
    """Whether this process was started as the command line: ``python -m eqsat``, or its script."""
    started = sys.orig_argv[1:]
    if not sys.argv or sys.argv[0] == "-m":
        return "eqsat" in [argument.removeprefix("-m") for argument in started]
    return PurePath(sys.argv[0]).stem == "eqsat" and sys.argv[0] in started


def _end(number: int, frame: object) -> None:
    # an exception would end in what is being imported, which may catch or print it
    os.write(2, b"eqsat: interrupted\n")
    os._exit(128 + number)


def _fail(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    remedy = "allow it more, as by ulimit -v" if kind is MemoryError else "install eqsat and what it needs again"
    said = ": ".join(part for part in (kind.__name__, " ".join(str(error).split())[:300], remedy) if part)
    # what imports say may be pages; standard error may be closed or full
    with suppress(OSError):
        os.write(2, f"eqsat: cannot start: {said}\n".encode(errors="backslashreplace"))
    os._exit(2)


if is_starting():
    # the command line says all errors itself: what is left are those of imports
    sys.excepthook = _fail
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)

if os.name != "posix":
    raise ImportError("eqsat runs on Linux and other POSIX systems; on Windows, in WSL")
