"""One virtual environment per peer, built when it is first asked for and kept in a cache directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

from eqsat.cli.records import one_line


class UnavailableError(Exception):
    """A peer cannot be had here; the message names it and says why."""


def environment(name: str, requirements: tuple[str, ...], cache: Path, python: str = sys.executable) -> Path:
    """The Python of an environment that has ``requirements``, built with ``python`` if ``cache`` does not hold it yet.

    Raises ``UnavailableError`` if it cannot be built: what ``venv`` or ``pip`` said.
    """
    key = blake2b("\n".join([python, sys.version, *requirements]).encode(), digest_size=4).hexdigest()
    directory = cache / f"{name}-{key}"
    installed = directory / "bin" / "python"
    finished = directory / "finished"
    if not finished.exists():
        shutil.rmtree(directory, ignore_errors=True)
        _run(name, [python, "-m", "venv", str(directory)])
        if requirements:
            pip = [str(installed), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run(name, [*pip, *requirements])
        finished.touch()
    return installed


def _run(name: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reason = next((line for line in said if line.startswith("ERROR")), said[-1] if said else "no message")
        raise UnavailableError(f"{name} cannot be installed: {one_line(reason)}")
