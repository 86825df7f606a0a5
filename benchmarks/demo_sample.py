"""Choose the kernels of the demo from a corpus: ``python benchmarks/demo_sample.py CORPUS.jsonl > SAMPLE.jsonl``.

One kernel a program, spread over the variants and over small and large ones. The same corpus gives the same sample.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from hashlib import blake2b
from typing import Any

KERNELS = 48

#: Sizes in DAG nodes that separate the classes; larger kernels than the last are left out, to keep the sample small.
SIZES = (60, 150, 400, 1000, 2500)


def size_class(case: dict[str, Any]) -> int:
    """Which class of ``SIZES`` a case belongs to."""
    return sum(case["meta"]["nodes"] > size for size in SIZES)


def choose(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``KERNELS`` cases, each the one of its program whose variant and size are rarest among those chosen before."""
    programs: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        if case["meta"]["divmod"] > 1 and size_class(case) < len(SIZES):
            programs.setdefault(case["tags"][1], []).append(case)
    order = sorted(programs, key=lambda name: blake2b(name.encode()).digest())
    variants: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    gated: Counter[bool] = Counter()
    chosen = []
    for name in order[:KERNELS]:
        case = min(
            programs[name],
            key=lambda c: (variants[c["tags"][2]] + sizes[size_class(c)] / 2 + gated["gates" in c] / 4, c["id"]),
        )
        variants[case["tags"][2]] += 1
        sizes[size_class(case)] += 1
        gated["gates" in case] += 1
        chosen.append(case)
    return sorted(chosen, key=lambda c: str(c["id"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=argparse.FileType(encoding="utf-8"), help="a capture of tinygrad programs")
    for chosen_case in choose([json.loads(line) for line in parser.parse_args().corpus]):
        print(json.dumps(chosen_case))
