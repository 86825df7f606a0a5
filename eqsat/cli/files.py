"""What commands read and write: standard input, output files, progress, and their end by Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import click


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: give it a file, or name one")
    return sys.stdin.buffer


def content(source: Path) -> bytes:
    """All of a file, or of standard input if it is called ``-``."""
    if str(source) == "-":
        with naming(None, "standard input"):
            return standard_input().read()
    return content_of_file(source)


def content_of_file(path: Path) -> bytes:
    """All of a file."""
    with naming(path):
        return path.read_bytes()


def lines_of(data: bytes) -> list[str]:
    """The lines of standard input that are not blank."""
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise ValueError("standard input is no text in UTF-8: give expressions, one a line") from None
    return [line for line in lines if line]


def refuse_input(output: Path | None, sources: Iterable[Path]) -> None:
    """Raise if what is written would take the place of what is read."""
    for source in sources:
        if output is not None and output.exists() and source.exists() and output.samefile(source):
            raise click.UsageError(f"{output} would be overwritten by its own answers: give -o another file")


@contextmanager
def opened(output: Path | None, mode: str = "w") -> Iterator[TextIO]:
    """A file to write to bit by bit, or standard output if none is named."""
    with naming(output):
        if output is None:
            yield _standard_output()
            return
        with cast(TextIO, output.open(mode, encoding="utf-8")) as stream:
            yield stream


def _standard_output() -> TextIO:
    if sys.stdout is None:
        raise click.UsageError("standard output is closed: give -o a file")
    return sys.stdout


def refuse_unwritable(output: Path | None) -> None:
    """Raise if a file, or standard output if none is named, cannot be written: better before what is written is made.

    No file is made, and none is changed.
    """
    if output is None:
        _standard_output()
        return
    if output.is_fifo():
        # its reader would take this for the end
        return
    is_new = not output.exists()
    with naming(output):
        output.open("a").close()
    if is_new:
        output.unlink()


def write_whole(output: Path | None, text: str) -> None:
    """Write a file, or to standard output if none is named. If the file cannot be written whole, it is as it was."""
    if output is None:
        with naming(None):
            _standard_output().write(text)
        return
    is_new = not output.exists()
    # a device or a pipe is not read
    before = output.read_bytes() if output.is_file() else None
    try:
        with naming(output):
            output.write_text(text, encoding="utf-8")
    except BaseException:
        # a full disk, or Ctrl-C
        if is_new:
            output.unlink(missing_ok=True)
        elif before is not None:
            output.write_bytes(before)
        raise


@contextmanager
def naming(path: Path | None, otherwise: str = "standard output") -> Iterator[None]:
    """Errors name the file that is read or written: what fails once it is open does not say where."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path or otherwise)
        raise


def say(text: str) -> None:
    """Print text on standard output, and a line end."""
    with naming(None):
        click.echo(text)


def remark(text: str) -> None:
    """Print a line on standard error."""
    click.echo(f"# {text}", err=True)


def say_left_out(line: str) -> None:
    remark(f"left out: {line}")


@contextmanager
def progress(total: int | None, what: str = "optimising") -> Iterator[Any]:
    """A function to call once per step; it moves a bar if standard error is a terminal. The total may be unknown."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


class Ended(BaseException):
    """Ctrl-C or SIGTERM has come; a note says how much was done by then."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        said = "interrupted" if self.number == signal.SIGINT else "terminated"
        return " ".join([said, *getattr(self, "__notes__", [])])


@contextmanager
def ends_raised() -> Iterator[None]:
    """Raise :class:`Ended` where Ctrl-C or SIGTERM comes, so that what was begun is ended; what is ignored stays so."""

    def end(number: int, frame: object) -> None:
        raise Ended(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heeded = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


@contextmanager
def said_if_ended(done: Callable[[], str]) -> Iterator[None]:
    """A command that is ended inside says how much is ``done``."""
    try:
        yield
    except Ended as ended:
        ended.add_note(done())
        raise
