"""Libraries: C compiled with the system's compiler, kept in a cache, and loaded.

A library is built by the compiler that ``CC`` names, or else the first of cc, gcc and clang, and loaded by cffi. It
is kept in a cache (:func:`cache_directory`) under a name made of its source, its flags and the compiler's version. One
atomic rename puts it there, so any number of processes may build the same library at once. It ends with a digest of
itself, by which a damaged one is found and built again. A library is loaded only if this user built it where nobody
else may write.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import Any

from platformdirs import user_cache_dir

from eqsat.lang.errors import CompileError

#: Seconds after which the C compiler is stopped, as one that hangs.
COMPILE_SECONDS = 600

#: Seconds after which a directory that a build left behind is removed: no build takes as long.
ABANDONED_SECONDS = 24 * 3600

#: The rights by which others than its owner write a file.
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

#: Bytes of the digest that ends a library: loaders ignore what comes after the last section.
DIGEST_SIZE = 16


def find_compiler() -> list[str]:
    """The command of the C compiler: ``CC``, or else the first of cc, gcc and clang that is installed.

    Raises ``CompileError`` if there is none, or ``CC`` is no command.
    """
    named = os.environ.get("CC", "")
    try:
        chosen = shlex.split(named)
    except ValueError as error:
        raise CompileError(f"CC is {named!r}, which is no command ({error}): set it to that of the compiler") from None
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    if chosen:
        raise CompileError(f"the C compiler that CC names, {chosen[0]!r}, is not installed: install it or set CC")
    raise CompileError("no C compiler (cc, gcc or clang) is installed: install one, or set CC to the command of yours")


def compiler_version() -> str:
    """The first line of what the C compiler says of itself.

    Raises ``CompileError`` if there is none.
    """
    return _version(tuple(find_compiler())).partition("\n")[0]


@cache
def _version(command: tuple[str, ...]) -> str:
    """What the compiler says of itself: a new version makes new libraries."""
    return _run([*command, "--version"])


@cache
def _machine(command: tuple[str, ...]) -> str:
    """What the compiler takes this machine for: a cache may be shared by several, which run different instructions."""
    return _run([*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull])


def _run(command: Sequence[str], scratch: str | None = None) -> str:
    """What the compiler prints; its temporary files go to the directory ``scratch``, if one is given."""
    environment = os.environ if scratch is None else {**os.environ, "TMPDIR": scratch}
    try:
        with ExitStack() as ending:
            # an interrupt within Popen would leave the compiler running
            with interrupts_held():
                # a group of its own, so that what the compiler has started ends with it
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    env=environment,
                    process_group=0,
                )
                ending.enter_context(process)
                ending.push(partial(_kill_if_failed, process))
            printed, complaints = process.communicate(timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"the C compiler {command[0]!r} did not end within {COMPILE_SECONDS} seconds: check CC, or split the kernel"
        ) from None
    except OSError as error:
        # an error that names no file says that no process could be started, which is no fault of the compiler's
        remedy = "set CC to another" if error.filename else "end other processes, or raise the limit (ulimit -a)"
        raise CompileError(f"cannot run the C compiler {command[0]!r} ({error.strerror}): {remedy}") from None
    if process.returncode:
        lines = complaints.splitlines() or [f"it ended with status {process.returncode}"]
        # gcc's collect2 and clang only say that the linker failed, which has said why
        errors = [line for line in lines if "error" in line and not re.match("collect2|.*linker command failed", line)]
        reason = (errors or lines)[0].strip()
        raise CompileError(f"the C compiler {command[0]!r} failed: {reason}: check CC and the flags")
    return printed


@contextmanager
def interrupts_held(ignored: Sequence[int] = ()) -> Iterator[None]:
    """What Ctrl-C and SIGTERM raise in Python is raised at the end of the block.

    A signal that is ``ignored`` raises nothing; a process that is started inside ignores it for good.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in raising:
        signal.signal(number, signal.SIG_IGN if number in ignored else lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def _kill_if_failed(process: subprocess.Popen[str], failure: object, *_: object) -> None:
    if failure is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def build(source: str, flags: tuple[str, ...]) -> Path:
    """The library compiled from ``source``, from the cache if it is there."""
    compiler = find_compiler()
    machine = [_machine(tuple(compiler))] if "-march=native" in flags else []
    identity = "\0".join([source, *flags, *compiler, _version(tuple(compiler)), *machine])
    directory = cache_directory()
    library = directory / (blake2b(identity.encode(), digest_size=16).hexdigest() + ".so")
    try:
        code = own_file(library)
        if len(code) > DIGEST_SIZE and code.endswith(digest(code[:-DIGEST_SIZE])):
            return library
        _make_private(directory)
        _remove_abandoned(directory)
        with tempfile.TemporaryDirectory(dir=directory, prefix="build-") as scratch:
            file, built = Path(scratch, "kernels.c"), Path(scratch, "kernels.so")
            file.write_text(source, encoding="utf-8")
            _run([*compiler, *flags, "-shared", "-fPIC", "-o", str(built), str(file)], scratch)
            if not built.exists():
                raise CompileError(f"the C compiler {compiler[0]!r} made no library: check CC and the flags")
            code = built.read_bytes()
            built.write_bytes(code + digest(code))
            built.chmod(0o700)
            if library.is_dir() and not library.is_symlink():
                # a file cannot replace a directory: move that to the scratch, which is removed
                with suppress(FileNotFoundError):
                    library.rename(Path(scratch, "other"))
            os.replace(built, library)
    except OSError as error:
        raise CompileError(
            f"cannot write the cache directory {str(directory)!r} ({error.strerror}): set EQSAT_CACHE_DIR to another"
        ) from None
    return library


def own_file(path: Path) -> bytes:
    """The content of a file that belongs to this user and that nobody else may write; empty if there is none."""
    try:
        # follow no link, and wait for no writer if it is a FIFO
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE:
                return file.read()
    except OSError:
        pass
    return b""


def digest(code: bytes) -> bytes:
    """The digest that is put behind the code of a library."""
    return blake2b(code, digest_size=DIGEST_SIZE).digest()


def _remove_abandoned(directory: Path) -> None:
    """Remove the directories of builds that were killed."""
    for scratch in directory.glob("build-*"):
        with suppress(OSError):
            if time() - scratch.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(scratch, ignore_errors=True)


def cache_directory() -> Path:
    """Where libraries are kept: ``EQSAT_CACHE_DIR``, or the user's cache directory. It may be deleted at any time.

    Whoever can write there decides what this process runs. So the directory is made for this user alone. If other users
    own it or a directory above it, or may write one of them, a temporary directory is used instead, and a warning says
    why; so it is, without a warning, if the user's cache directory cannot be written, as in many containers.
    """
    chosen = os.environ.get("EQSAT_CACHE_DIR")
    # the loader of libraries looks for a name without a directory in other places
    wanted = Path(chosen).absolute() if chosen else Path(user_cache_dir("eqsat", appauthor=False))
    # a user without a home has a path from `~`, which is no directory
    if wanted.is_absolute():
        try:
            _make_private(wanted)
            # a link on the way may be changed by whoever owns it
            directory = wanted.resolve(strict=True)
            reason = _why_not_private(directory)
        except OSError:
            if chosen:
                # the first library to be written says why it cannot be
                return wanted
        else:
            if reason is not None:
                _warn_once(
                    f"the cache directory {str(wanted)!r} is not used, as {reason}: take the right to write away from "
                    "others, or set EQSAT_CACHE_DIR to a directory of your own"
                )
            elif chosen or os.access(directory, os.W_OK):
                return directory
    return _directory_of_process()


@cache
def _warn_once(message: str) -> None:
    # `warnings` itself forgets what it has shown whenever some module sets a filter
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def _make_private(directory: Path) -> None:
    """Make a directory and those above it for this user alone; those that exist stay as they are."""
    for missing in [d for d in (directory, *directory.parents) if not d.exists()][::-1]:
        missing.mkdir(mode=0o700, exist_ok=True)


def _why_not_private(directory: Path) -> str | None:
    """Who but this user and root could change what is in a directory, as a clause; None if nobody could.

    ``directory`` has no links in it. In a sticky directory, such as /tmp, others cannot remove what they do not own.
    """
    for place in (directory, *directory.parents):
        status = place.stat()
        above = place != directory
        if status.st_uid != os.geteuid() and not (above and status.st_uid == 0):
            return f"{str(place)!r} belongs to another user"
        if status.st_mode & OTHERS_WRITE and not (above and status.st_mode & stat.S_ISVTX):
            return f"other users may write {str(place)!r}"
    return None


@cache
def _directory_of_process() -> Path:
    try:
        directory = Path(tempfile.mkdtemp(prefix="eqsat-"))
    except OSError as error:
        raise CompileError(
            f"no directory for compiled libraries can be written ({error.strerror}): set EQSAT_CACHE_DIR to one"
        ) from None
    atexit.register(_remove_own, directory, os.getpid())
    return directory


def _remove_own(directory: Path, maker: int) -> None:
    """Remove a directory at the end of the process that made it: those that were forked from it end earlier."""
    if os.getpid() == maker:
        shutil.rmtree(directory, ignore_errors=True)


def load(library: Path, ffi: Any, symbol: str) -> Any:
    """The library, which defines ``symbol``."""
    try:
        loaded = ffi.dlopen(str(library))
        getattr(loaded, symbol)
    except (OSError, AttributeError, KeyError, UnicodeError) as error:
        # only what the system says, before what cffi tried next
        reason = str(error if isinstance(error, UnicodeError) else error.args[0]).partition(".  ")[0]
        raise CompileError(
            f"cannot load the compiled library {str(library)!r}: {reason}: delete it, and if that does not help, "
            "set CC or EQSAT_CACHE_DIR to another"
        ) from None
    return loaded
