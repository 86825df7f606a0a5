"""Maps of HLO operations and fusions: against the published ones as sets, and against what NumPy reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from corpora import SEEDS, records
from element_pairs import Pairs, depends, pad, pairs, turned
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.cli.corpus import run_line
from eqsat.cli.settings import Settings
from eqsat.interop import hlo, relations
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.indexing_analysis import DIRECTIONS, indexing_maps
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.lang.evaluation import evaluate

HLO = [case for case in records(SEEDS, "indexing") if case["hlo"]]
WANTED = [
    (case, direction, operand, texts)
    for case in HLO
    for direction, by_operand in case["maps"].items()
    for operand, texts in (by_operand.items() or [("none", [])])
]


@pytest.mark.parametrize(
    ("case", "direction", "operand", "wanted"),
    WANTED,
    ids=[f"{case['id']} {direction} {operand}" for case, direction, operand, _ in WANTED],
)
def test_seeds(case: dict[str, Any], direction: Any, operand: str, wanted: list[Any]) -> None:
    """The same maps, each on the same domain, at every point."""
    found = indexing_maps(hlo.parse(case["hlo"]).entry.root, direction)
    if operand == "none":
        assert not found
        return
    maps = list(found[int(operand)])
    assert len(maps) == len(wanted)
    for expected in wanted:
        runtime = expected["runtime_variables"] if isinstance(expected, dict) else []
        assert any(is_same(m, IndexingMap.parse(expected["map"] if runtime else expected), runtime) for m in maps)


def is_same(found: IndexingMap, wanted: IndexingMap, runtime: list[dict[str, str]]) -> bool:
    if [len(found.symbols), len(found.runtime)] != [len(wanted.symbols), len(runtime)]:
        return False
    if [str(r.hlo) for r in found.runtime] != [r["hlo"] for r in runtime]:
        return False
    reads = [IndexingMap.parse(r["map"]).results for r in runtime]
    named = [replace(r, hlo="known", indices=read) for r, read in zip(wanted.runtime, reads, strict=True)]
    check = replace(wanted, runtime=tuple(named)).check(found, prove=True)
    return check.equal and not check.proof.startswith("undecided")


@pytest.mark.parametrize("case", HLO, ids=lambda c: c["id"])
def test_seeds_in_a_corpus(case: dict[str, Any]) -> None:
    """The row of each case has as many maps as there should be, and was checked."""
    row = run_line(json.dumps(case), 1, Settings())
    assert row["checked"] in ("exhaustive", "sampled")
    assert row["cost"] <= row["cost_before"]
    for direction, by_operand in case["maps"].items():
        assert {n: len(row["out"][direction][n]) for n in by_operand} == {n: len(t) for n, t in by_operand.items()}


def test_a_scatter_at_a_known_place() -> None:
    """As of ``x.at[2:4, 1:3].set(u)`` in JAX; outside of the array it sets nothing."""
    for place, wanted in (
        ("{2, 1}", ["(d0, d1) -> (d0 - 2, d1 - 1), domain: d0 in [2, 3], d1 in [1, 2]"]),
        ("{2, 7}", []),
    ):
        module = hlo.parse(f"""
            set {{
              a = f32[] parameter(0)
              ROOT b = f32[] parameter(1)
            }}
            ENTRY e {{
              x = f32[16,5] parameter(0)
              u = f32[2,2] parameter(1)
              at = s32[2]{{0}} constant({place})
              ROOT s = f32[16,5] scatter(x, at, u), update_window_dims={{0,1}}, inserted_window_dims={{}},
                scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=0, to_apply=set
            }}""")
        assert [str(m) for m in indexing_maps(module.entry)[1]] == wanted


def test_a_scatter_of_a_batch_reads_the_indices_of_that_batch() -> None:
    module = hlo.parse(
        """
        set {
          a = f32[] parameter(0)
          ROOT b = f32[] parameter(1)
        }
        ENTRY e {
          x = f32[3,6] parameter(0)
          at = s32[2,3,1] parameter(1)
          u = f32[2,3] parameter(2)
          ROOT s = f32[3,6] scatter(x, at, u), update_window_dims={}, inserted_window_dims={1},
            scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1},
            index_vector_dim=2, to_apply=set
        }""".replace("set { a", "set {\n a")
    )
    rows, back = [
        indexing_maps(module.entry.root, direction)[1][0] for direction in ("output_to_input", "input_to_output")
    ]
    assert str(rows).startswith("(d0, d1)[s0, s1] -> (s0, d0, 0), domain: d0 in [0, 2], d1 in [0, 5], s0 in [0, 1]")
    assert str(back).startswith("(d0, d1, d2)[s0] -> (d1, s0), domain: d0 in [0, 1], d1 in [0, 2]")


def test_select_and_scatter() -> None:
    """The gradient of a maximum over windows: all windows that an element is in, and all their elements."""
    sizes, source, window, strides, low = [5, 4], [3, 4], [3, 2], [2, 1], [1, 0]
    places = list(np.ndindex(*source))

    def window_at(place: Sequence[int]) -> list[tuple[int, ...]]:
        cells = [tuple(int(i) for i in np.array(place) * strides + w - low) for w in np.ndindex(*window)]
        return [cell for cell in cells if all(0 <= n < size for n, size in zip(cell, sizes, strict=True))]

    text = f"""
        ge {{
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = pred[] compare(a, b), direction=GE
        }}
        {SUM}
        ENTRY e {{
          x = f32[5,4] parameter(0)
          dy = f32[3,4] parameter(1)
          zero = f32[] constant(0)
          ROOT r = f32[5,4] select-and-scatter(x, dy, zero), window={{size=3x2 stride=2x1 pad=1_1x0_1}}, select=ge,
            scatter=sum
        }}"""

    def flatly(found: Any, one: Any, other: Any) -> Pairs:
        return {(int(np.ravel_multi_index(a, one)), int(np.ravel_multi_index(b, other))) for a, b in found}

    wanted = [
        flatly({(x, y) for p in places for x in window_at(p) for y in window_at(p)}, sizes, sizes),
        flatly({(x, p) for p in places for x in window_at(p)}, sizes, source),
    ]
    for direction in DIRECTIONS:
        found = indexing_maps(hlo.parse(text).entry, direction)
        for operand, shape in enumerate((sizes, source)):
            (of,) = found[operand]
            is_forward = direction == "output_to_input"
            joined = pairs(of, sizes, shape) if is_forward else turned(pairs(of, shape, sizes))
            assert joined == wanted[operand]


BATCHED = [
    # sizes, indices, batching dimensions of both, the indexed dimension, index_vector_dim
    ([3, 5], [3, 4, 1], ([0], [0]), 1, 2),
    ([5, 3], [4, 3], ([1], [1]), 0, 2),
    ([2, 5, 3], [3, 1, 4, 2], ([0, 2], [3, 0]), 1, 1),
]


@pytest.mark.parametrize(("sizes", "indices", "batching", "indexed", "vector"), BATCHED)
def test_gathers_with_batching_dimensions(sizes: Any, indices: Any, batching: Any, indexed: int, vector: int) -> None:
    """Where indices and operand share dimensions, each slice is of its own part."""

    def listed(dims: Sequence[int]) -> str:
        return "{" + ",".join(map(str, dims)) + "}"

    rows = indices[:vector] + indices[vector + 1 :]
    (found, of_indices) = indexing_maps(
        hlo.parse(
            f"""ENTRY e {{
            p = f32{sizes} parameter(0)
            at = s32{indices} parameter(1)
            ROOT g = f32{rows} gather(p, at), offset_dims={{}}, collapsed_slice_dims={{{indexed}}},
              start_index_map={{{indexed}}}, index_vector_dim={vector}, slice_sizes={listed([1] * len(sizes))},
              operand_batching_dims={listed(batching[0])}, start_indices_batching_dims={listed(batching[1])}
            }}"""
        ).entry.root
    ).values()
    (of,), (at,) = found, of_indices
    for place in np.ndindex(*rows):
        point: dict[str, int] = {f"d{n}": p for n, p in enumerate(place)}
        whole = [*place[:vector], 0, *place[vector:]]
        wanted = [4] * len(sizes)
        for mine, theirs in zip(*batching, strict=True):
            wanted[mine] = whole[theirs]
        (value,) = [str(r.variable) for r in of.runtime]
        assert [int(i) for i in evaluate(of.results, {**point, value: 4})] == wanted
        assert [int(i) for i in evaluate(of.runtime[0].indices, point)] == whole[: len(indices)]
        assert [int(i) for i in evaluate(at.results, {**point, "s0": 0})] == whole[: len(indices)]


#: Sizes of the input, the kernel and the output, the window, and what else is written behind it.
CONVOLUTIONS = [
    ([2, 5, 4, 3], [3, 2, 3, 2], [2, 3, 3, 2], "size=3x2", "b01f_01io->b01f"),
    ([3, 2, 7], [2, 3, 3], [2, 4, 2], "size=3 stride=2 pad=1_2", "fb0_o0i->b0f"),
    (
        [2, 1, 6],
        [4, 2, 3],
        [3, 1, 3],
        "size=4 pad=-1_2 lhs_dilate=2 rhs_dilate=3 rhs_reversal=1 stride=1",
        "fb0_0io->fb0",
    ),
    ([2, 4, 3], [3, 2, 6], [2, 2, 6], "size=3 pad=1_1 stride=2", "bf0_0io->b0f, feature_group_count=2"),
    ([6, 4, 3], [3, 3, 6], [2, 2, 6], "size=3 pad=1_0 stride=2", "b0f_0io->b0f, batch_group_count=3"),
    ([3, 4], [4, 2], [2, 3], "", "bf_io->fb"),
]


@pytest.mark.parametrize(("lhs", "rhs", "output", "window", "labels"), CONVOLUTIONS)
def test_convolutions(lhs: list[int], rhs: list[int], output: list[int], window: str, labels: str) -> None:
    """Both operands, in both directions, as XLA's definition has it."""
    behind = f"window={{{window}}}, dim_labels={labels}" if window else f"dim_labels={labels}"
    names, *rest = labels.split(", ")
    groups = {key: int(n) for key, n in (part.split("=") for part in rest)}
    of_features, of_batch = groups.get("feature_group_count", 1), groups.get("batch_group_count", 1)
    here, kernel, there = re.split("_|->", names)
    spatial = sorted(set(here) - set("bf"))
    given = dict(part.split("=") for part in window.split())

    def entry(key: str, default: int) -> list[int]:
        return [int(n) for n in given[key].split("x")] if key in given else [default] * len(spatial)

    strides, dilations, spread = entry("stride", 1), entry("rhs_dilate", 1), entry("lhs_dilate", 1)
    backwards, low = entry("rhs_reversal", 0), [int(p.split("_")[0]) for p in given.get("pad", "0_0x0_0").split("x")]
    size = dict(zip(kernel, rhs, strict=True))
    wanted: tuple[Pairs, Pairs] = (set(), set())
    for place in np.ndindex(*output):
        at = dict(zip(there, place, strict=True))
        group = at["f"] // (size["o"] // max(of_features, of_batch))
        o = int(np.ravel_multi_index(place, output))
        for feature, *inside in np.ndindex(size["i"], *[size[d] for d in spatial]):
            turn = zip(spatial, inside, backwards, strict=True)
            weights = {"i": feature, "o": at["f"], **{d: size[d] - 1 - w if back else w for d, w, back in turn}}
            read = {"b": at["b"], "f": feature}
            read["b" if of_batch > 1 else "f"] += group * (output[there.index("b")] if of_batch > 1 else size["i"])
            for n, d in enumerate(spatial):
                read[d] = at[d] * strides[n] + inside[n] * dilations[n] - low[n]
            wanted[1].add((o, int(np.ravel_multi_index([weights[d] for d in kernel], rhs))))
            steps = {d: read[d] % spread[n] for n, d in enumerate(spatial)}
            read |= {d: read[d] // spread[n] for n, d in enumerate(spatial)}
            if not any(steps.values()) and all(0 <= read[d] < n for d, n in zip(here, lhs, strict=True)):
                wanted[0].add((o, int(np.ravel_multi_index([read[d] for d in here], lhs))))
    text = (
        f"ENTRY e {{ \n x = f32{lhs} parameter(0) \n k = f32{rhs} parameter(1) \n"
        f"ROOT c = f32{output} convolution(x, k), {behind} \n}}"
    )
    for direction in DIRECTIONS:
        found = indexing_maps(hlo.parse(text).entry.root, direction)
        for operand, sizes in enumerate((lhs, rhs)):
            (of,) = found[operand]
            ends = (output, sizes) if direction == "output_to_input" else (sizes, output)
            joined = pairs(of, *ends)
            assert (joined if direction == "output_to_input" else turned(joined)) == wanted[operand]


Step = tuple[str, Callable[[Any], Any], list[int]]


def possible_steps(sizes: list[int]) -> list[Step]:
    """HLO operations on ``x`` of these sizes, what NumPy does for them (elementwise ones are linear), and the sizes."""
    rank, size = len(sizes), prod(sizes)
    found: list[Step] = [
        ("exponential(x)", lambda x: x, sizes),
        ("reshape(x)", lambda x: x.reshape(size), [size]),
        ("bitcast(x)", lambda x: x.reshape([1, *sizes]), [1, *sizes]),
        (
            f"broadcast(x), dimensions={listed(range(1, rank + 1))}",
            lambda x: np.broadcast_to(x, [2, *sizes]),
            [2, *sizes],
        ),
        (f"transpose(x), dimensions={listed(range(rank)[::-1])}", np.transpose, sizes[::-1]),
    ]
    if size % 2 == 0:
        found.append(("reshape(x)", lambda x: x.reshape(2, size // 2), [2, size // 2]))
    if not sizes:
        return found
    first, rest = sizes[0], sizes[1:]
    whole, none = "".join(f",[0:{n}]" for n in rest), [0] * (rank - 1)
    found += [
        ("reverse(x), dimensions={0}", lambda x: x[::-1], sizes),
        ("reduce(x, zero), dimensions={0}, to_apply=sum", lambda x: x.sum(axis=0), rest),
        (f"slice(x), slice={{[0:{first}:2]{whole}}}", lambda x: x[::2], [(first + 1) // 2, *rest]),
        (
            f"pad(x, zero), padding=2_1_1{'x0_0' * (rank - 1)}",
            lambda x: pad(x, [2, *none], [1, *none], [1, *none]),
            [2 * first + 2, *rest],
        ),
        (
            f"concatenate(x, x), dimensions={{{rank - 1}}}",
            lambda x: np.concatenate([x, x], -1),
            [*sizes[:-1], 2 * sizes[-1]],
        ),
    ]
    return found


def listed(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


SUM = "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"


@settings(max_examples=25)
@given(st.lists(st.integers(1, 3), max_size=2), st.data())
def test_any_chain_is_composed(sizes: list[int], data: Any) -> None:
    """A fusion of up to five operations reads what NumPy reads."""
    lines, functions, name, shape = [f"p = f32{sizes} parameter(0)", "zero = f32[] constant(0)"], [], "p", sizes
    for number in range(data.draw(st.integers(1, 5))):
        text, function, made = data.draw(st.sampled_from(possible_steps(shape)))
        if prod(made) > 40:
            break
        lines.append(f"x{number} = f32{made} {text.replace('(x', f'({name}').replace(', x)', f', {name})')}")
        functions.append(function)
        name, shape = f"x{number}", made
    lines.append(f"ROOT r = f32{shape} add({name}, {name})")

    def composed(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    body = "\n".join(lines)
    entry = f"ENTRY e {{\n p = f32{sizes} parameter(0)\n ROOT r = f32{shape} fusion(p), calls=f\n}}"
    module = hlo.parse(f"{SUM}f {{\n{body}\n}}\n{entry}")
    wanted = depends(composed, sizes)
    there, back = [indexing_maps(module.entry.root, direction)[0] for direction in DIRECTIONS]
    assert set().union(*(pairs(m, shape, sizes) for m in there)) == wanted
    assert set().union(*(turned(pairs(m, sizes, shape)) for m in back)) == wanted
    assert indexing_maps(module.entry)[0] == indexing_maps(module.computations["f"])[0]


COMPUTATIONS = [
    # the instructions of the entry, and the maps of its parameters
    (
        ["p0 = f32[4] parameter(0)", "p1 = f32[4] parameter(1)", "ROOT r = f32[4] negate(p1)"],
        {0: [], 1: ["(d0) -> (d0), domain: d0 in [0, 3]"]},
    ),
    (["ROOT p0 = f32[4] parameter(0)"], {0: ["(d0) -> (d0), domain: d0 in [0, 3]"]}),
    (["ROOT c = f32[4] constant({1, 2, 3, 4})"], {}),
    (["p0 = f32[] parameter(0)", "ROOT r = f32[] negate(p0)"], {0: ["() -> ()"]}),
    # one operand of an elementwise operation twice: one map
    (["p0 = f32[4] parameter(0)", "ROOT r = f32[4] add(p0, p0)"], {0: ["(d0) -> (d0), domain: d0 in [0, 3]"]}),
    # a sum of a sum over one element each: the symbols are named in order
    (
        [
            "p0 = f32[3,4,5] parameter(0)",
            "zero = f32[] constant(0)",
            "a = f32[3,4] reduce(p0, zero), dimensions={2}, to_apply=sum",
            "ROOT r = f32[4] reduce(a, zero), dimensions={0}, to_apply=sum",
        ],
        {0: ["(d0)[s0, s1] -> (s0, d0, s1), domain: d0 in [0, 3], s0 in [0, 2], s1 in [0, 4]"]},
    ),
    # a padded window is cut where it leaves the operand
    (
        [
            "p0 = f32[8] parameter(0)",
            "zero = f32[] constant(0)",
            "ROOT r = f32[4] reduce-window(p0, zero), window={size=3 stride=2 pad=1_0}, to_apply=sum",
        ],
        {0: ["(d0)[s0] -> (d0 * 2 + s0 - 1), domain: d0 in [0, 3], s0 in [0, 2], d0 + s0 in [1, 5]"]},
    ),
    # an operand that is cut away, or of which only padding is left, is not read
    (
        [
            "p0 = f32[4] parameter(0)",
            "p1 = f32[4] parameter(1)",
            "c = f32[8] concatenate(p0, p1), dimensions={0}",
            "ROOT r = f32[2] slice(c), slice={[5:7]}",
        ],
        {0: [], 1: ["(d0) -> (d0 + 1), domain: d0 in [0, 1]"]},
    ),
    (
        [
            "p0 = f32[4] parameter(0)",
            "p1 = f32[] parameter(1)",
            "a = f32[6] pad(p0, p1), padding=2_0",
            "ROOT r = f32[2] slice(a), slice={[0:2]}",
        ],
        {0: [], 1: ["(d0) -> (), domain: d0 in [0, 1]"]},
    ),
    # tiles do not change what is read
    (
        [
            "p0 = f32[4,8]{1,0:T(2,4)} parameter(0)",
            "a = s32[4,8]{1,0:T(2,4)} bitcast(p0)",
            "ROOT r = s32[8,4]{1,0:T(2,4)S(1)} transpose(a), dimensions={1,0}",
        ],
        {0: ["(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]"]},
    ),
    # a condition of rank 0 is read by all
    (
        [
            "p0 = pred[] parameter(0)",
            "p1 = f32[4] parameter(1)",
            "ROOT r = f32[4] select(p0, p1, p1)",
        ],
        {0: ["(d0) -> (), domain: d0 in [0, 3]"], 1: ["(d0) -> (d0), domain: d0 in [0, 3]"]},
    ),
    # one offset cuts twice
    (
        [
            "p0 = f32[9] parameter(0)",
            "o = s32[] parameter(1)",
            "a = f32[6] dynamic-slice(p0, o), dynamic_slice_sizes={6}",
            "ROOT r = f32[4] dynamic-slice(a, o), dynamic_slice_sizes={4}",
        ],
        {
            0: ["(d0){rt0, rt1} -> (d0 + rt0 + rt1), domain: d0 in [0, 3], rt0 in [0, 3], rt1 in [0, 2]"],
            1: ["(d0) -> (), domain: d0 in [0, 3]"],
        },
    ),
]


@pytest.mark.parametrize(("lines", "wanted"), COMPUTATIONS)
def test_computations(lines: list[str], wanted: dict[int, list[str]]) -> None:
    module = hlo.parse(SUM + "ENTRY e {\n" + "\n".join(lines) + "\n}")
    found = {number: [str(m) for m in maps] for number, maps in indexing_maps(module.entry).items()}
    assert found == wanted


TUPLES = (
    SUM
    + """
f {
  p = f32[2,3] parameter(0)
  zero = f32[] constant(0)
  t = f32[3,2] transpose(p), dimensions={1,0}
  both = (f32[3], f32[3]) reduce(p, p, zero, zero), dimensions={0}, to_apply=sum
  second = f32[3] get-tuple-element(both), index=1
  ROOT pair = (f32[3,2], f32[3]) tuple(t, second)
}
ENTRY e {
  p = f32[2,3] parameter(0)
  fusion = (f32[3,2], f32[3]) fusion(p), kind=kLoop, calls=f
  ROOT r = f32[3] get-tuple-element(fusion), index=1
}"""
)


def test_tuples() -> None:
    module = hlo.parse(TUPLES)
    column = "(d0)[s0] -> (s0, d0), domain: d0 in [0, 2], s0 in [0, 1]"
    assert [str(m) for m in indexing_maps(module.entry)[0]] == [column]
    fusion = module.entry.instructions[1]
    assert [str(m) for m in indexing_maps(fusion, output=1)[0]] == [column]
    assert [str(m) for m in indexing_maps(fusion)[0]] == ["(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 1]"]
    assert [str(m) for m in indexing_maps(fusion, "input_to_output", output=1)[0]] == [
        "(d0, d1) -> (d1), domain: d0 in [0, 1], d1 in [0, 2]"
    ]


def test_tuples_as_parameters() -> None:
    """A tuple counts as its elements, as in the body of a loop."""
    module = hlo.parse("""
      body {
        n = s32[] parameter(0)
        carried = (s32[], f32[4,8], f32[8]) parameter(1)
        i = s32[] get-tuple-element(carried), index=0
        x = f32[4,8] get-tuple-element(carried), index=1
        y = f32[8] get-tuple-element(carried), index=2
        row = f32[1,8] dynamic-slice(x, i, n), dynamic_slice_sizes={1,8}
        flat = f32[8] bitcast(row)
        sum = f32[8] add(y, flat)
        ROOT next = (s32[], f32[4,8], f32[8]) tuple(i, x, sum)
      }
      ENTRY e {
        n = s32[] parameter(0)
        i = s32[] parameter(1)
        x = f32[4,8] parameter(2)
        y = f32[8] parameter(3)
        all = (s32[], f32[4,8], f32[8]) tuple(i, x, y)
        once = (s32[], f32[4,8], f32[8]) call(n, all), to_apply=body
        ROOT r = f32[8] get-tuple-element(once), index=2
      }""")
    row = "(d0){rt0} -> (rt0, d0), domain: d0 in [0, 7], rt0 in [0, 3]"
    whole, same = "(d0) -> (), domain: d0 in [0, 7]", "(d0) -> (d0), domain: d0 in [0, 7]"
    wanted = {0: [whole], 1: [whole], 2: [row], 3: [same]}
    for of, output in ((module.computations["body"], 2), (module.entry, 0), (module.entry.instructions[-2], 2)):
        found = indexing_maps(of, output=output)
        assert {n: [str(m) for m in maps] for n, maps in found.items()} == wanted


def test_a_window_of_one_element_has_no_symbol() -> None:
    """As the batch and the channels of a pooled image."""
    operand, source = relations.selected_and_scattered([2, 4], [2, 2], [1, 2], [1, 2], [0, 0])
    assert [len(r.to_operand.simplify().trimmed().symbols) for r in (operand, source)] == [2, 1]
    assert pairs(source.to_operand, [2, 4], [2, 2]) == {(4 * r + c, 2 * r + c // 2) for r in (0, 1) for c in range(4)}


@pytest.mark.parametrize(
    ("result", "operand", "wanted"),
    [
        ("u8[4,6,4]", "f32[4,6]", "(d0, d1, d2) -> (d0, d1)"),
        ("f32[4,6]", "bf16[4,6,2]", "(d0, d1)[s0] -> (d0, d1, s0)"),
        ("s32[4,6]", "f32[4,6]", "(d0, d1) -> (d0, d1)"),
    ],
)
def test_bitcasts_to_other_widths(result: str, operand: str, wanted: str) -> None:
    """The bytes of an element are a dimension of their own."""
    text = f"ENTRY e {{\n p = {operand} parameter(0)\n ROOT r = {result} bitcast-convert(p)\n}}"
    assert str(indexing_maps(hlo.parse(text).entry)[0][0]).startswith(wanted + ", domain:")


#: The operation on p of f32[4,6], q of s32[4,6] and o of s32[]; by output and operand the maps, without their domains.
WHOLE_DIMENSIONS = [
    (
        "(f32[4,6], s32[4,6]) sort(p, q), dimensions={1}, to_apply=lt",
        [{0: "(d0, d1)[s0] -> (d0, s0)"}, {0: "(d0, d1)[s0] -> (d0, s0)", 1: "(d0, d1)[s0] -> (d0, s0)"}],
    ),
    ("f32[4,6] sort(p), dimensions={0}, to_apply=lt", [{0: "(d0, d1)[s0] -> (s0, d1)"}]),
    ("(f32[4,3], s32[4,3]) topk(p), k=3, largest=true", [{0: "(d0, d1)[s0] -> (d0, s0)"}] * 2),
    ("c64[4,4] fft(p), fft_type=RFFT, fft_length={6}", [{0: "(d0, d1)[s0] -> (d0, s0)"}]),
    ("c64[4,4] fft(p), fft_type=RFFT, fft_length={4,6}", [{0: "(d0, d1)[s0, s1] -> (s0, s1)"}]),
    ("(f32[4,6], s32[4,6]) all-reduce(p, q), to_apply=lt", [{0: "(d0, d1) -> (d0, d1)"}, {1: "(d0, d1) -> (d0, d1)"}]),
    ("f32[4,6] collective-permute(p), source_target_pairs={{0,1},{1,0}}", [{0: "(d0, d1) -> (d0, d1)"}]),
    (
        "f32[4,12] all-gather(p), replica_groups=mesh['x'=2,'y'=2] {'x'}, dimensions={1}",
        [{0: "(d0, d1) -> (d0, d1 mod 6)"}],
    ),
    ("f32[4,6] opt-barrier(p)", [{0: "(d0, d1) -> (d0, d1)"}]),
    (
        "f32[6,4] conditional(o, p, p, q), branch_computations={%turn, turn, count}",
        [{0: "(d0, d1) -> (d1, d0)", 2: "(d0, d1) -> ()"}],
    ),
    (
        "f32[6,4] conditional(o, q, p), true_computation=count, false_computation=turn",
        [{0: "(d0, d1) -> (d1, d0)", 2: "(d0, d1) -> ()"}],
    ),
]


@pytest.mark.parametrize(("line", "wanted"), WHOLE_DIMENSIONS)
def test_operations_of_compiled_programs(line: str, wanted: list[dict[int, str]]) -> None:
    """Sorts, transforms, collectives and branches, as JAX's programs have them."""
    module = hlo.parse(f"""
      lt {{
        a = f32[] parameter(0)
        b = f32[] parameter(1)
        c = s32[] parameter(2)
        d = s32[] parameter(3)
        ROOT r = pred[] compare(a, b), direction=LT
      }}
      turn {{
        x = f32[4,6] parameter(0)
        ROOT t = f32[6,4] transpose(x), dimensions={{1,0}}
      }}
      count {{
        x = s32[4,6] parameter(0)
        zero = f32[] constant(0)
        ROOT t = f32[6,4] broadcast(zero), dimensions={{}}
      }}
      ENTRY e {{
        p = f32[4,6] parameter(0)
        q = s32[4,6] parameter(1)
        o = s32[] parameter(2)
        ROOT r = {line}
      }}""")
    for output, by_operand in enumerate(wanted):
        found = indexing_maps(module.entry, output=output)
        assert {n: [str(m).split(", domain:")[0] for m in maps] for n, maps in found.items()} == {
            n: [by_operand[n]] if n in by_operand else [] for n in range(3)
        }


def test_an_output_that_is_not_read_may_be_of_any_operation() -> None:
    module = hlo.parse("""
      both {
        p = f32[4,6] parameter(0)
        t = f32[6,4] transpose(p), dimensions={1,0}
        c = f32[4,6] custom-call(p), custom_call_target="knit"
        ROOT r = (f32[6,4], f32[4,6]) tuple(t, c)
      }
      ENTRY e {
        p = f32[4,6] parameter(0)
        both = (f32[6,4], f32[4,6]) call(p), to_apply=both
        t = f32[6,4] get-tuple-element(both), index=0
        c = f32[4,6] get-tuple-element(both), index=1
        ROOT r = (f32[6,4], f32[4,6]) tuple(t, c)
      }""")
    for of in (module.entry, module.entry.instructions[1]):
        assert [str(m).split(", domain:")[0] for m in indexing_maps(of)[0]] == ["(d0, d1) -> (d1, d0)"]
        with pytest.raises(ValueError, match="custom-call 'c' is not supported"):
            indexing_maps(of, output=1)


def test_a_barrier_of_a_tuple() -> None:
    """As of ``jax.checkpoint``: each output is its own operand."""
    module = hlo.parse("""ENTRY e {
      p = f32[4,6] parameter(0)
      q = f32[3] parameter(1)
      both = (f32[4,6], f32[3]) tuple(p, q)
      kept = (f32[4,6], f32[3]) opt-barrier(both)
      ROOT r = f32[3] get-tuple-element(kept), index=1
    }""")
    assert {n: len(maps) for n, maps in indexing_maps(module.entry).items()} == {0: 0, 1: 1}


def test_a_computation_is_simplified_once_for_equal_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long chain of elementwise operations has one map."""
    calls = 0

    def simplify(given: IndexingMap) -> IndexingMap:
        nonlocal calls
        calls += 1
        return given.simplify()

    lines = "".join(f"x{n + 1} = f32[9,7] multiply(x{n}, x{max(n - 1, 0)})\n" for n in range(50))
    module = hlo.parse(f"ENTRY e {{\nx0 = f32[9,7] parameter(0)\n{lines}}}")
    assert len(indexing_maps(module.entry, simplify=simplify)[0]) == 1
    assert calls <= 2


def test_runtime_values_are_those_of_the_call() -> None:
    """One computation called with two offsets: two maps, although they are written alike."""
    module = hlo.parse(
        """
        f {
          p = f32[9] parameter(0)
          o = s32[] parameter(1)
          ROOT r = f32[4] dynamic-slice(p, o), dynamic_slice_sizes={4}
        }
        ENTRY e {
          p = f32[9] parameter(0)
          one = s32[] parameter(1)
          two = s32[] parameter(2)
          a = f32[4] fusion(p, one), calls=f
          b = f32[4] fusion(p, two), calls=f
          ROOT r = f32[4] add(a, b)
        }"""
    )
    first, second = indexing_maps(module.entry)[0]
    assert str(first) == str(second)
    assert {str(m.runtime[0].hlo) for m in (first, second)} == {"one = s32[] parameter(1)", "two = s32[] parameter(2)"}


def test_an_operand_of_which_nothing_is_read_has_no_map() -> None:
    cut = "p = f32[4] parameter(0)\nz = f32[] parameter(1)\nROOT r = f32[4] pad(p, z), padding=-4_4"
    called = f"f {{\n{cut}\n}}\nENTRY e {{\np = f32[4] parameter(0)\nz = f32[] parameter(1)\n"
    for text in (f"ENTRY e {{\n{cut}\n}}", f"{called}ROOT r = f32[4] fusion(p, z), calls=f\n}}"):
        entry = hlo.parse(text).entry
        for direction in DIRECTIONS:
            for of in (entry, entry.root):
                found = indexing_maps(of, direction)
                assert (len(found[0]), len(found[1])) == (0, 1)


def test_a_runtime_value_may_be_read_where_another_one_says() -> None:
    """The offset of a slice of a gather stays, although only the index of what is gathered uses it."""
    module = hlo.parse(
        """
        ENTRY e {
          p = f32[10] parameter(0)
          i = s32[8] parameter(1)
          o = s32[] parameter(2)
          q = s32[] parameter(3)
          g = f32[8] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
            slice_sizes={1}
          a = f32[3] dynamic-slice(g, o), dynamic_slice_sizes={3}
          b = f32[3] dynamic-slice(g, q), dynamic_slice_sizes={3}
          ROOT s = f32[3] add(a, b)
        }"""
    )
    maps = indexing_maps(module.entry)[0]
    text = "(d0){rt0, rt1} -> (rt0), domain: d0 in [0, 2], rt0 in [0, 9], rt1 in [0, 5]"
    assert [str(m) for m in maps] == [text, text]
    reads = {tuple((r.hlo.name, *map(str, r.indices)) for r in m.runtime) for m in maps}
    assert reads == {(("i", "d0 + rt1"), (offset,)) for offset in "oq"}
    for m in indexing_maps(module.entry, "input_to_output")[0]:
        assert {str(r.hlo.name) for r in m.runtime} in ({"i", "o"}, {"i", "q"})


def test_what_is_read_only_for_some_runtime_values() -> None:
    """The element of the padding that a gather finds is that of the operand for one index alone."""
    lines = [
        "p = f32[1] parameter(0)",
        "zero = f32[] constant(0)",
        "at = s32[3,1] parameter(1)",
        "moved = f32[2] pad(p, zero), padding=1_0",
        "ROOT g = f32[3] gather(moved, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1}",
    ]
    (found,) = indexing_maps(hlo.parse("\n".join(["ENTRY e {", *lines, "}"])).entry)[0]
    assert str(found) == "(d0){rt0} -> (0), domain: d0 in [0, 2], rt0 in [0, 1], rt0 in [1, 1]"


def test_deep_computations() -> None:
    """Neither long chains of operations nor of calls are traversed by recursion."""
    chain = "\n".join(f"x{n + 1} = f32[4] negate(x{n})" for n in range(1100))
    module = hlo.parse(f"ENTRY e {{\nx0 = f32[4] parameter(0)\n{chain}\n}}")
    assert [str(m) for m in indexing_maps(module.entry)[0]] == ["(d0) -> (d0), domain: d0 in [0, 3]"]
    calls = "f0 {\nROOT p = f32[4] parameter(0)\n}\n" + "".join(
        f"f{n + 1} {{\np = f32[4] parameter(0)\nROOT r = f32[4] call(p), to_apply=f{n}\n}}\n" for n in range(1100)
    )
    module = hlo.parse(calls + "ENTRY e {\np = f32[4] parameter(0)\nROOT r = f32[4] call(p), to_apply=f1100\n}")
    assert len(indexing_maps(module.entry.root)[0]) == 1


#: Rows of updates, placed where the indices say.
PLACED = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"

REFUSED = [
    # the last lines of a computation with p0 and p1 of f32[4,8] and o of s32[], a part of the error
    ("ROOT r = f32[4,8] knit(p0)", "knit 'r' is not supported"),
    ("ROOT r = f32[4,8] sort(p0), dimensions={0}", "sort 'r': the attribute to_apply is missing: .*=less_than"),
    ("ROOT r = (f32[4,8]) sort(p0, p1), dimensions={0}, to_apply=sum", "2 operands for 1 output: give one for each"),
    ("ROOT r = f32[4,8] conditional(o, p0, p1)", "0 branches: .* as branch_computations={one, two}"),
    ("ROOT r = f32[4,9] bitcast-convert(p0)", r"give sizes \[4, 8\], not f32\[4,9\]"),
    ("ROOT r = f32[5,8] fft(p0), fft_type=FFT, fft_length={8}", "differ in more than dimensions"),
    ("ROOT r = f32[4,8] all-reduce(p0, p1), to_apply=sum", "2 operands for 1 output: give one for each"),
    ("ROOT r = f32[4,9] all-gather(p0), dimensions={1}", r"give sizes \[4, 8\], not f32\[4,9\]"),
    ("ROOT r = f32[4,8] opt-barrier(o)", "opt-barrier 'r': its operand does not have the shapes of its result"),
    (f"i = s32[3] copy(o)\nROOT r = f32[4,8] scatter(p0, i, p1), {PLACED}", r"updates of sizes \[4, 8\] are not of"),
    (f"ROOT r = f32[4,8] scatter(p0, o, p1, p1), {PLACED}", "of 4 operands one must be the indices"),
    ("ROOT r = f32[4,8] select-and-scatter(p0, p1, o), window={size=1}", "1 entry for 2 dimensions"),
    (
        "ROOT r = f32[4,4] convolution(p0, p1)",
        "convolution 'r': the attribute dim_labels is missing: .* as in dim_labels=b01f_01io->b01f",
    ),
    ("ROOT r = f32[4,4] convolution(p0, p1), dim_labels=bf_oi", "write dim_labels=b01f_01io->b01f"),
    ("ROOT r = f32[4,4] convolution(p0, p1), dim_labels=bf_oo->bf", "the labels 'oo' must be each of 'io' once"),
    (
        "ROOT r = f32[4,4] convolution(p0, p1), window={}, dim_labels=b0f_oi->bf",
        "must have an entry for each dimension",
    ),
    ("ROOT r = f32[4,4] convolution(p0, p1), dim_labels=bf_io->bf", "8 features are not 1 times the 4 of the kernel"),
    (
        "ROOT r = f32[4,4] convolution(p0, p1), dim_labels=bf_oi->bf, feature_group_count=3",
        "3 groups of features, 1 of the batch: they do not divide these",
    ),
    (
        "i = f32[1,8,2] copy(o)\nk = f32[1,8,3] copy(o)\n"
        "ROOT r = f32[1,1,1] convolution(i, k), window={size=2}, dim_labels=bf0_oi0->bf0",
        r"a window of \[2\] is not that of a kernel of \[1, 8, 3\]",
    ),
    (
        "ROOT r = f32[4,4] convolution(p0, p1), dim_labels=bf_oi->bf, feature_group_count=x",
        "'x' is no list of integers",
    ),
    ("ROOT r = f32[4,9] add(p0, p1)", r"add 'r': .* give sizes \[4, 8\], not f32\[4,9\]"),
    ("ROOT r = f32[4] add(p0, o)", r"give sizes \[4, 8\], not f32\[4\]"),
    ("ROOT r = f32[8,4] transpose(p0), dimensions={1}", "1 dimension for an operand of 2"),
    ("ROOT r = f32[8,4] transpose(p0), dimensions={1,2}", r"dimensions \[1, 2\] must be different ones of 0 to 1"),
    ("ROOT r = f32[8,4] transpose(p0), dimensions={1,1}", r"dimensions \[1, 1\] must be different ones of 0 to 1"),
    ("ROOT r = f32[8,4] transpose(p0)", "transpose 'r': the attribute dimensions is missing: write it behind"),
    ("ROOT r = f32[8,4] transpose(p0, p1), dimensions={1,0}", "transpose 'r' has 2 operands: give 1"),
    ("ROOT r = f32[8,4] transpose(p0), dimensions={1,x}", "'1,x' is no list of integers"),
    ("ROOT r = f32[4,9] broadcast(p0), dimensions={0,1}", r"sizes \[4, 8\] are not those of dimensions \[0, 1\]"),
    ("ROOT r = f32[4,8] reverse(p0), dimensions={-1}", r"dimensions \[-1\] must be different ones"),
    ("ROOT r = f32[32]{0:T(32)} bitcast(p0)", "bitcast 'r': bitcasts between tiled layouts are not supported"),
    ("ROOT r = f32[33] reshape(p0)", r"\[4, 8\] has 32 elements, \[33\] has 33"),
    ("ROOT r = f32[4,2] slice(p0), slice={[0:4:1], [2:9:3]}", r"\[2:9:3\] is no slice of a dimension of size 8"),
    ("ROOT r = f32[4,2] slice(p0), slice={[0:4:1], [2:8:0]}", r"\[2:8:0\] is no slice of a dimension of size 8"),
    ("ROOT r = f32[4,2] slice(p0), slice={[0:4:1], [2]}", "write slice="),
    ("ROOT r = f32[4,8] slice(p0), slice={[0:4:1]}", "1 entry for 2 dimensions"),
    ("ROOT r = f32[0,8] slice(p0), slice={[2:2], [0:8]}", "has no elements, so no indices"),
    ("ROOT r = f32[8,9] concatenate(p0, p1), dimensions={0}", r"give sizes \[8, 8\]"),
    ("ROOT r = f32[8,8] concatenate(p0, o), dimensions={0}", "must be different ones of 0 to -1"),
    (
        "q = f32[4,9] copy(o)\nROOT r = f32[8,8] concatenate(p0, q), dimensions={0}",
        "differ in more than dimension 0",
    ),
    ("ROOT r = f32[8,8] concatenate(p0, p1), dimensions={0,1}", "one dimension"),
    ("ROOT r = f32[4,8] pad(p0, p1), padding=0_0x0_0", "must have rank 0"),
    ("ROOT r = f32[4,8] pad(p0, o), padding=0x0", "write it as low_high_interior"),
    ("ROOT r = f32[4,8] pad(p0, o), padding=0_0_-1x0_0", "cannot be negative"),
    ("ROOT r = f32[1,8] pad(p0, o), padding=-4_0x0_0", r"give sizes \[0, 8\]|has no elements"),
    ("ROOT r = f32[4] reduce(p0, p1), dimensions={1}", "must have rank 0"),
    ("ROOT r = f32[4] reduce(p0, o, o), dimensions={1}", "give as many of these as inputs"),
    ("q = f32[5,8] copy(o)\nROOT r = f32[8] reduce(p0, q, o, o), dimensions={0}", "different sizes"),
    ("ROOT r = f32[4,8] reduce-window(p0, o), window={size=1x0 stride=1x1}", "a window of 0 with stride 1"),
    ("ROOT r = f32[4,8] reduce-window(p0, o), window={size=1x9}", "a window of 9 .* does not fit 8"),
    ("ROOT r = f32[4,8] reduce-window(p0, o), window={size=1}", "1 entry for 2 dimensions"),
    ("ROOT r = f32[4,4] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "differ"),
    ("ROOT r = f32[4,4] dot(p0, p1), lhs_contracting_dims={2}, rhs_contracting_dims={1}", "different ones of 0 to 1"),
    ("ROOT r = f32[4,9] dynamic-slice(p0, o, o), dynamic_slice_sizes={4,9}", "a slice of 9 does not fit .* size 8"),
    ("ROOT r = f32[4,8] dynamic-slice(p0, o), dynamic_slice_sizes={4,8}", "1 entry for 2 dimensions"),
    ("ROOT r = f32[4,8] sort(p0), dimensions={2}, to_apply=sum", r"dimensions \[2\] must be different ones of 0 to 1"),
    (
        "i = s32[3,1] copy(o)\nROOT r = f32[3,8] gather(p0, i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, slice_sizes={1,8}, index_vector_dim=-1",
        "index_vector_dim=-1 is no dimension",
    ),
    (
        "i = s32[3,2] copy(o)\nROOT r = f32[3,8] gather(p0, i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, slice_sizes={1,8}, index_vector_dim=1",
        r"start_index_map has 1 entry, which is not size 1 of \[3, 2\]",
    ),
    (
        "i = s32[3,1] copy(o)\nROOT r = f32[3,8] gather(p0, i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, slice_sizes={2,8}, index_vector_dim=1",
        "those have slices of size 1",
    ),
    (
        "i = s32[3,1] copy(o)\nROOT r = f32[3,8] gather(p0, i), offset_dims={1}, collapsed_slice_dims={}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, start_index_map={1}, slice_sizes={1,8}, "
        "index_vector_dim=1",
        "dimension 0 of the operand and 0 of indices differ in their sizes",
    ),
    (
        "i = s32[3,1] copy(o)\nu = f32[3,8] copy(o)\n"
        f"ROOT r = (f32[4,8], f32[4,8]) scatter(p0, p1, i, p0, u), {PLACED}",
        "the operands must have one shape, and the updates another",
    ),
    (
        "i = s32[3,1] copy(o)\nROOT r = f32[4,8] scatter(p0, i, p1), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        "give an update_window_dims for each dimension that is not inserted",
    ),
    ("ROOT r = f32[4,8] fusion(p0)", "fusion 'r' calls nothing: give its computation as calls=name"),
    ("ROOT r = f32[4,8] dynamic-update-slice(p0, o, o, o)", "entries for"),
    ("ROOT r = f32[4,8] get-tuple-element(p0), index=1", "parameter 'p0' has no output 1"),
    ("pair = (f32[4,8], f32[4,8]) tuple(p0, p1)\nROOT r = f32[4,8] negate(pair)", "negate 'r' has a tuple as operand"),
    ("ROOT r = (f32[3,8], f32[4,8]) tuple(p0, p1)", "tuple 'r': its operands do not have the shapes of its result"),
    ("ROOT r = (f32[4,8], f32[4,8]) tuple(p0)", "its operands do not have the shapes"),
    ("ROOT r = (f32[4,8]) tuple(p0, p1)", "its operands do not have the shapes"),
    ("ROOT r = f32[4,8] reduce-window(p0, o)", r"the attribute window is missing: .* as in window=\{size=3x3\}"),
    ("ROOT r = f32[4,9] reduce-window(p0, o), window={" + "a" * 100_000 + "}", r"give sizes \[4, 8\]"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_refused_in_one_line(line: str, message: str) -> None:
    given = "p0 = f32[4,8] parameter(0)\np1 = f32[4,8] parameter(1)\no = s32[] parameter(2)"
    root = hlo.parse(f"{SUM}ENTRY e {{\n{given}\n{line}\n}}").entry.root
    with pytest.raises(ValueError, match=message) as caught:
        indexing_maps(root)
    assert "\n" not in str(caught.value)
    assert "'r'" in str(caught.value)


def test_what_is_asked_for() -> None:
    module = hlo.parse("ENTRY e {\nROOT p = f32[4] parameter(0)\n}")
    with pytest.raises(ValueError, match="the direction 'sideways' is not one of"):
        indexing_maps(module.entry, "sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no output 1"):
        indexing_maps(module.entry, output=1)


def test_an_operand_read_in_very_many_ways_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.interop.indexing_analysis.INTEROP_LIMITS", replace(INTEROP_LIMITS, maps=8))
    lines = "".join(
        f"s{n} = f32[64] pad(x{n}, zero), padding={2**n}_-{2**n}\nx{n + 1} = f32[64] add(x{n}, s{n})\n"
        for n in range(5)
    )
    module = hlo.parse(f"ENTRY e {{\nx0 = f32[64] parameter(0)\nzero = f32[] constant(0)\n{lines}}}")
    with pytest.raises(ValueError, match="in more than 8 ways"):
        indexing_maps(module.entry)


def test_what_is_no_instruction_is_refused() -> None:
    module = hlo.parse("ENTRY e {\n  ROOT p = f32[3] parameter(0)\n}")
    with pytest.raises(TypeError, match=r"is no instruction or computation: those of a module are"):
        indexing_maps(module)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="HLO is read from a text, not from 3"):
        hlo.parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offset", "printed"),
    [
        ("s64[] constant(42)", "(d0) -> (d0 + 42), domain: d0 in [0, 9]"),
        ("s64[] constant(99)", "(d0) -> (d0 + 90), domain: d0 in [0, 9]"),
        ("s64[] constant(-3)", "(d0) -> (d0), domain: d0 in [0, 9]"),
        ("s64[] parameter(1)", "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 9], rt0 in [0, 90]"),
    ],
)
def test_offsets_that_are_constants_are_no_runtime_values(offset: str, printed: str) -> None:
    """XLA gives the first map; beyond the operand it keeps a runtime variable."""
    module = hlo.parse(f"""ENTRY e {{
        p = s32[100] parameter(0)
        o = {offset}
        ROOT r = s32[10] dynamic-slice(p, o), dynamic_slice_sizes={{10}}
    }}""")
    for of in (module.entry, module.entry.root):
        assert list(map(str, indexing_maps(of)[0])) == [printed]


@pytest.mark.parametrize(
    ("indices", "row"),
    [
        ("iota(), iota_dimension=0", "min(32, d0)"),
        ("constant({...})", "rt0"),
        # which of them is read depends on the element
        (f"constant({{{', '.join(f'{{{n}}}' for n in range(42))}}})", "rt0"),
    ],
    ids=["iota", "elided", "written"],
)
def test_rows_that_an_iota_counts_are_no_runtime_values(indices: str, row: str) -> None:
    module = hlo.parse(f"""ENTRY e {{
        p = f32[33,76] parameter(0)
        i = s64[42,1] {indices}
        ROOT g = f32[42,1,1] gather(p, i), offset_dims={{1,2}}, collapsed_slice_dims={{}}, start_index_map={{0}},
            index_vector_dim=1, slice_sizes={{1,1}}
    }}""")
    (found,) = indexing_maps(module.entry)[0]
    assert str(found.results[0]) == row
    assert bool(found.runtime) == (row == "rt0")


def test_a_row_of_an_iota_may_be_read_at_an_offset_that_is_a_constant() -> None:
    """The variable of the offset was left in the result, but was none of the map any more."""
    module = hlo.parse("""
    f {
      p = s32[20] parameter(0)
      rows = s32[8] parameter(1)
      offset = s32[] parameter(2)
      g = s32[8] gather(p, rows), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
          slice_sizes={1}
      ROOT part = s32[4] dynamic-slice(g, offset), dynamic_slice_sizes={4}
    }
    ENTRY e {
      p = s32[20] parameter(0)
      rows = s32[8] iota(), iota_dimension=0
      offset = s32[] constant(3)
      ROOT root = s32[4] fusion(p, rows, offset), kind=kLoop, calls=f
    }""")
    (found,) = indexing_maps(module.entry)[0]
    assert str(found) == "(d0) -> (d0 + 3), domain: d0 in [0, 3]"
