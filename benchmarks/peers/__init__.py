"""Other simplifiers of index expressions, measured on the corpora that eqsat is measured on.

Each peer runs as a process in an environment of its own (``environment``), driven by a script in ``drivers``. A case
goes there as a table of nodes and comes back as one (``spelling``); ``session`` is the process, ``judge`` checks and
prices what it answers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from peers.environment import environment
from peers.session import DRIVERS, Session


@dataclass(frozen=True)
class Peer:
    """A simplifier that can be compared with."""

    name: str
    #: What pip installs; nothing if the driver is all there is, or starts what is installed otherwise.
    requirements: tuple[str, ...]
    #: What is run, in a few words.
    about: str

    def session(self, cache: Path, python: str = sys.executable) -> Session:
        """The peer's driver in its environment, which is built with ``python`` if need be; not started yet.

        Raises ``UnavailableError`` if the environment cannot be built.
        """
        installed = environment(self.name, self.requirements, cache, python)
        return Session([str(installed), str(DRIVERS / f"{self.name}_driver.py")])


#: The peers by name, those of the usual comparison first.
PEERS = {
    peer.name: peer
    for peer in [
        Peer("tinygrad", ("tinygrad==0.14.0",), "graph_rewrite with sym"),
        Peer("tvm", ("apache-tvm==0.27.0.post1",), "sym.Analyzer, the best of its modes"),
        Peer("halide", ("halide==21.0.0",), "Internal::simplify, to a fixpoint"),
        Peer("isl", ("islpy==2026.2.2",), "gist and ast_build, the best of four styles"),
        Peer("inductor", ("torch==2.13.0", "numpy"), "SizeVarAllocator.simplify_with_ranges"),
        Peer("sympy", ("sympy==1.14.0",), "expand, simplify"),
        Peer("mlir", ("iree-base-compiler==3.13.0",), "canonicalize, then IREE's integer arithmetic"),
        Peer("llvm", ("llvmlite==0.50.0",), "-O3 with ranges of arguments"),
    ]
}

#: The peers that are compared unless others are named: those that finish a corpus in reasonable time.
USUAL = ("tinygrad", "tvm", "halide", "isl")
