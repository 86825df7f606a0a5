"""Index expressions of tensor programs as tinygrad has them, before its simplifier saw them.

Three points of its pipeline are recorded: ``raw`` kernels as they are scheduled, whose views were composed without any
rule, and further down what the next two symbolic passes are given, ``postopt`` (ranges split and unrolled by its
optimiser) and ``early`` (expanded to lanes). Nothing is executed: the device is ``NULL``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

os.environ.update(DEV="NULL", PARALLEL="0")

from recording import Recorder, main  # isort: skip  (puts the drivers on the path)

import tinygrad.codegen
import tinygrad.schedule.indexing
import tinygrad.schedule.rangeify
from tinygrad import Tensor, dtypes, nn
from tinygrad.uop import Ops
from tinygrad.uop.ops import PatternMatcher, UOp
from tinygrad_driver import NAMES, _node
from wire import Table, from_peer

#: The passes before which a kernel is recorded.
STAGES = {"initial symbolic": "raw", "postopt symbolic": "postopt", "early symbolic": "early"}


def install(recorder: Recorder) -> None:
    """Let tinygrad compose views without its rules, and record the kernels that it lowers."""
    nothing = PatternMatcher([])
    for module, names in (
        (tinygrad.schedule.indexing, ("symbolic", "pm_simplify_valid", "pm_drop_and_clauses")),
        (tinygrad.schedule.rangeify, ("symbolic",)),
    ):
        for name in names:
            setattr(module, name, nothing)
    simplify, rewrite = UOp.simplify, tinygrad.codegen.graph_rewrite

    def unsimplified(uop: UOp, *arguments: Any, **options: Any) -> UOp:
        composing = sys._getframe(1).f_code.co_name == "apply_movement_op"
        return uop if composing else simplify(uop, *arguments, **options)

    def recorded(sink: UOp, *arguments: Any, name: str | None = None, **options: Any) -> UOp:
        if name in STAGES:
            record(recorder, STAGES[name], sink)
        return rewrite(sink, *arguments, name=name, **options)

    UOp.simplify = unsimplified
    tinygrad.codegen.graph_rewrite = recorded


def record(recorder: Recorder, stage: str, sink: UOp) -> None:
    """The indices of a kernel with their gates, and the conditions on which its values depend."""
    table, ranges = Table(), {}
    roots: list[int] = []
    gates: list[int | None] = []
    for uop in sink.toposort():
        try:
            if uop.op is Ops.INDEX:
                for place in uop.src[1:]:
                    index, valid = _nodes([place.get_idx(), place.get_valid()], table, ranges)
                    gated = table.nodes[valid][0] != "bool"
                    roots += [index, valid] if gated else [index]
                    gates += [valid, None] if gated else [None]
            elif uop.op is Ops.WHERE:
                [condition] = _nodes(uop.src[:1], table, ranges)
                if condition not in roots:
                    roots.append(condition)
                    gates.append(None)
        except ValueError:
            recorder.skipped += 1
    recorder.kernel(stage, ranges, table, roots, gates)


def _nodes(uops: Sequence[UOp], table: Table, ranges: dict[str, tuple[int, int]]) -> list[int]:
    def node(uop: UOp, below: list[int]) -> int:
        if uop.op is Ops.CAST:
            _require_wider(uop)
            return below[0]
        if uop.op is Ops.CONST or uop.op in NAMES or uop.op is Ops.XOR:
            return _node(uop, below, table)
        name = _name(uop)
        if not isinstance(uop.vmin, int) or not isinstance(uop.vmax, int):
            raise ValueError(f"{uop.op} in an index is no integer")
        ranges[name] = (uop.vmin, uop.vmax)
        return table.add("var", name)

    inner = {*NAMES, Ops.CAST, Ops.XOR}
    return from_peer(uops, lambda uop: uop, lambda uop: uop.src if uop.op in inner else (), node)


def _require_wider(cast: UOp) -> None:
    """Refuse a cast that is more than a change of an integer's width."""
    [source] = cast.src
    integers = dtypes.is_int(cast.dtype) and dtypes.is_int(source.dtype)
    if not integers or source.vmin < cast.dtype.min or source.vmax > cast.dtype.max:
        raise ValueError(f"a cast from {source.dtype} to {cast.dtype} in an index")


def _name(uop: UOp) -> str:
    """The name of what is a variable to an index: a loop, a parameter, or a value from memory."""
    if uop.op is Ops.RANGE:
        return "i" + "_".join(str(part) for part in uop.arg if isinstance(part, int))
    if uop.op is Ops.SPECIAL:
        return str(uop.arg)
    if uop.op is Ops.PARAM and uop.arg.name:
        return str(uop.arg.name)
    if uop.op in (Ops.INDEX, Ops.LOAD):
        return f"m{uop.key.hex()[:8]}"
    raise ValueError(f"{uop.op} in an index")


def programs() -> Mapping[str, Callable[[], Any]]:
    """Programs of the usual kinds, small."""
    empty = Tensor.empty
    attention = partial(lambda q: q.scaled_dot_product_attention(q, q, is_causal=True), empty(2, 4, 16, 8))
    found: dict[str, Callable[[], Tensor]] = {
        "matmul": lambda: empty(48, 40) @ empty(40, 56),
        "transpose": lambda: empty(6, 10, 4).permute(2, 0, 1).contiguous() + 1,
        "reshape_permute": lambda: empty(6, 8, 10).reshape(12, 40).permute(1, 0).reshape(8, 60).permute(1, 0) * 2,
        "flip_shrink": lambda: empty(12, 10).flip(0).shrink(((2, 9), (1, 8))).reshape(49).flip(0) + 1,
        "pad_reshape": lambda: empty(4, 6).reshape(8, 3).permute(1, 0).reshape(6, 4).pad(((1, 1), (0, 2))) + 1,
        "pad_modes": lambda: empty(1, 2, 6, 7).pad((2, 1, 3, 2), mode="reflect") + 1,
        "conv2d": lambda: empty(2, 3, 12, 12).conv2d(empty(4, 3, 3, 3), padding=1),
        "conv2d_strided": lambda: empty(1, 4, 15, 15).conv2d(empty(8, 2, 3, 3), groups=2, stride=2, dilation=2),
        "conv_transpose2d": lambda: empty(1, 4, 7, 7).conv_transpose2d(empty(4, 3, 3, 3), stride=2),
        "conv1d": lambda: empty(2, 3, 32).conv2d(empty(5, 3, 5)),
        "max_pool": lambda: empty(1, 4, 13, 13).max_pool2d((3, 3), stride=2, padding=1),
        "avg_pool": lambda: empty(1, 4, 12, 12).avg_pool2d((2, 2)),
        "softmax": lambda: empty(8, 24).softmax(),
        "layernorm": lambda: empty(4, 6, 16).layernorm(),
        "attention": attention,
        "cumsum": lambda: empty(5, 40).cumsum(1),
        "arange": lambda: Tensor.arange(3, 60, 4).reshape(5, 3).contiguous(),
        "one_hot": lambda: empty(10, dtype="int").one_hot(7),
        "gather": lambda: empty(9, 7).gather(1, empty(9, 3, dtype="int")),
        "fancy_index": lambda: empty(8, 6)[empty(5, dtype="int")],
        "roll": lambda: empty(6, 9).roll(2, 1) + 1,
        "cat": lambda: empty(4, 5).cat(empty(3, 5), empty(2, 5)),
        "stack": lambda: Tensor.stack(empty(4, 5), empty(4, 5), dim=1),
        "tril": lambda: empty(7, 7).tril(1),
        "pixel_shuffle": lambda: (
            empty(1, 12, 4, 5).reshape(1, 3, 2, 2, 4, 5).permute(0, 1, 4, 2, 5, 3).reshape(1, 3, 8, 10) + 1
        ),
        "space_to_depth": lambda: (
            empty(1, 3, 8, 8).reshape(1, 3, 4, 2, 4, 2).permute(0, 3, 5, 1, 2, 4).reshape(1, 12, 4, 4) + 1
        ),
        "window_partition": lambda: (
            empty(1, 8, 8, 4).roll(1, 1).reshape(1, 2, 4, 2, 4, 4).permute(0, 1, 3, 2, 4, 5) + 1
        ),
        "interpolate": lambda: empty(1, 2, 6, 6).interpolate((11, 9)),
        "interpolate_nearest": lambda: empty(1, 2, 6, 6).interpolate((10, 15), mode="nearest"),
        "unfold": lambda: empty(3, 20).unfold(1, 5, 3) + 1,
        "repeat": lambda: empty(3, 4).repeat((2, 3)) + 1,
        "repeat_interleave": lambda: empty(3, 4).repeat_interleave(3, 1) + 1,
        "sort": lambda: empty(3, 16).sort()[0],
        "topk": lambda: empty(4, 12).topk(3)[0],
        "linear": lambda: nn.Linear(24, 10)(empty(6, 24)).relu(),
        "group_norm": lambda: nn.GroupNorm(2, 8)(empty(2, 8, 5, 5)),
        "embedding": lambda: nn.Embedding(30, 8)(empty(2, 5, dtype="int")),
    }
    return {name: lambda program=program: program().realize() for name, program in found.items()}


if __name__ == "__main__":
    main(install, programs)
