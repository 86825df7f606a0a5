"""What both captures share: records of kernels, a line each, that ``benchmarks/capture_corpus.py`` makes cases of.

A record is ``{"program", "stage", "vars", "nodes", "roots", "gates"}``: inclusive ranges by name, a table of nodes as
in ``peers/drivers/wire.py``, indices of the roots, and per root the index of its gate or null. A capture runs in the
environment of its peer, where eqsat is not installed.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).parents[1] / "peers" / "drivers"))

from wire import Table

Ranges = Mapping[str, tuple[int, int]]


@dataclass
class Recorder:
    """Writes records; ``program`` is what runs now."""

    stream: TextIO
    program: str = ""
    skipped: int = 0

    def kernel(
        self, stage: str, ranges: Ranges, table: Table, roots: Sequence[int], gates: Sequence[int | None] = ()
    ) -> None:
        """Record the index expressions of one kernel, if there are any."""
        if roots:
            known = list(gates) or [None] * len(roots)
            record = {"program": self.program, "stage": stage, "vars": ranges, "nodes": table.nodes}
            self.stream.write(json.dumps({**record, "roots": list(roots), "gates": known}) + "\n")

    def run(self, programs: Mapping[str, Callable[[], Any]]) -> None:
        """Run every program; one that fails is named, and the others go on."""
        for self.program, program in programs.items():
            try:
                program()
            except Exception as error:
                print(f"{self.program}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr)


def main(install: Callable[[Recorder], None], programs: Callable[[], Mapping[str, Callable[[], Any]]]) -> None:
    """The life of a capture: ``python CAPTURE.py RECORDS [SCRIPT.py]``; without a script the built-in programs."""
    with open(sys.argv[1], "w", encoding="utf-8") as stream:
        recorder = Recorder(stream)
        install(recorder)
        scripts = {Path(name).stem: partial(runpy.run_path, name, run_name="__main__") for name in sys.argv[2:]}
        recorder.run(scripts or programs())
        if recorder.skipped:
            print(f"{recorder.skipped} expressions left out: they use what a case cannot say", file=sys.stderr)
