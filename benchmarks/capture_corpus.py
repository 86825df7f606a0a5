"""Make a corpus of the index expressions of tensor programs, as a compiler has them before it simplifies them.

    python benchmarks/capture_corpus.py {tinygrad,inductor} -o CORPUS.jsonl [--script PROGRAM.py]

Scripts are programs of your own, run in the compiler's environment (the one that ``bench.py`` uses), each a program of
the corpus; without one those of ``benchmarks/capture`` are run. Equal kernels are kept once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peers import PEERS
from peers.environment import UnavailableError, environment
from peers.spelling import from_nodes

from eqsat.cli.cases import read_case
from eqsat.cli.records import Row
from eqsat.codegen.libraries import cache_directory
from eqsat.lang.expr import Expr, var
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.text import to_program
from eqsat.lang.traversal import topological

CAPTURES = Path(__file__).parent / "capture"
SYSTEMS = ("tinygrad", "inductor")


def cases(system: str, version: str, records: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """A case for each record with something to simplify, if none before it has the same roots.

    Raises ``ValueError`` if a record is no kernel: a term of wrong kind, an unknown variable.
    """
    seen: set[object] = set()
    numbers: Counter[str] = Counter()
    for record in records:
        roots, gates = terms_of(record)
        key = (tuple(roots), tuple(gates))
        if key in seen or not any(root.args for root in roots):
            continue
        seen.add(key)
        name = f"{system}/{record['program']}/{record['stage']}"
        case = {
            "id": f"{name}/{numbers[name]}",
            "source": f"{system} {version}, benchmarks/capture",
            **texts_of(roots, gates),
        }
        case["tags"] = [system, record["program"], record["stage"], *case["tags"]]
        numbers[name] += 1
        read_case(json.dumps(case))
        yield case


def terms_of(record: Mapping[str, Any]) -> tuple[list[Expr], list[int | None]]:
    """The roots of a record, spelled as they were captured, and per root which of them is its gate."""
    names = {name: var(name, *bounds) for name, bounds in record["vars"].items()}
    roots = from_nodes(record["nodes"], record["roots"], names, spellings={})
    gates = [None if gate is None else record["roots"].index(gate) for gate in record["gates"]]
    return roots, gates


def texts_of(roots: list[Expr], gates: list[int | None]) -> Row:
    """The keys of a case that its roots decide."""
    terms = topological(roots)
    used = {str(term.value): [term.vmin, term.vmax] for term in terms if term.op == "var"}
    lets, texts = to_program(roots, taken=used)
    gated = any(gate is not None for gate in gates)
    divided = any(term.op in DIVISIONS for term in terms)
    return {
        "vars": used,
        "lets": [list(pair) for pair in lets],
        "exprs": texts,
        **({"gates": gates} if gated else {}),
        "tags": [*["divmod"] * divided, *["gated"] * gated],
    }


def capture(system: str, scripts: Iterable[Path], python: str, cache: Path) -> list[dict[str, Any]]:
    """The records of a system's programs.

    Raises ``UnavailableError`` if the system cannot be installed, or its capture fails.
    """
    installed = environment(system, PEERS[system].requirements, cache, python)
    with TemporaryDirectory() as directory:
        output = Path(directory, "records.jsonl")
        names = [str(script.resolve()) for script in scripts]
        done = subprocess.run([str(installed), str(CAPTURES / f"{system}_capture.py"), str(output), *names])
        if done.returncode:
            raise UnavailableError(f"the capture from {system} ended with exit code {done.returncode}")
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS, help="the compiler whose expressions are recorded")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the cases go, one JSON object a line")
    parser.add_argument("--script", action="append", default=[], type=Path, help="a program of your own")
    parser.add_argument("--python", default=sys.executable, help="builds the environment")
    parser.add_argument("--cache", type=Path, default=cache_directory() / "peers", help="where environments are kept")
    given = parser.parse_args()
    version = PEERS[given.system].requirements[0].partition("==")[2]
    try:
        records = capture(given.system, given.script, given.python, given.cache)
    except UnavailableError as reason:
        parser.exit(2, f"{reason}\n")
    found = list(cases(given.system, version, records))
    given.output.write_text("".join(json.dumps(case) + "\n" for case in found), encoding="utf-8")
    print(f"{len(found)} cases of {len(records)} kernels")


if __name__ == "__main__":
    main()
