"""Index expressions of tensor programs as PyTorch Inductor has them on CPU, before it simplifies them.

Every loop body is recorded when it is traced (``traced``), and when its loops are merged, split or reordered
(``merged``), with the sizes of its loops. Expressions over what is only known at run time are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from recording import Recorder, main  # isort: skip  (puts the drivers on the path)

import sympy
import torch
from sympy_terms import indices
from torch._inductor import config
from torch._inductor.loop_body import LoopBody
from torch.nn import functional
from wire import Table


def install(recorder: Recorder) -> None:
    """Record loop bodies as they are made; compile each program anew, in this process."""
    config.compile_threads = 1
    config.force_disable_caches = True
    trace, copy = LoopBody._init_with_tracing, LoopBody._init_with_copy

    def traced(body: LoopBody, *arguments: Any) -> None:
        trace(body, *arguments)
        record(recorder, "traced", body.indexing_exprs.values(), body.var_ranges)

    def merged(body: LoopBody, other: LoopBody, args: Any, *options: Any) -> None:
        record(recorder, "merged", other.indexing_from_args(args, *options).values(), body.var_ranges)
        copy(body, other, args, *options)

    LoopBody._init_with_tracing, LoopBody._init_with_copy = traced, merged


def record(recorder: Recorder, stage: str, exprs: Iterable[Any], sizes: Mapping[Any, Any]) -> None:
    """The index expressions of a loop body."""
    table, roots = Table(), []
    ranges = {
        symbol.name: (0, int(size) - 1) for symbol, size in sizes.items() if isinstance(size, int | sympy.Integer)
    }
    lows = dict.fromkeys(ranges, 0)
    for expr in exprs:
        if isinstance(expr, int) or not expr.args:
            continue
        if any(symbol.name not in ranges for symbol in expr.free_symbols):
            recorder.skipped += 1
            continue
        roots += indices([expr], table, lows)
    recorder.kernel(stage, ranges, table, roots)


def programs() -> Mapping[str, Callable[[], Any]]:
    """Programs of the usual kinds, small."""
    rand = torch.rand
    found: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
        "transpose": (lambda x: x.permute(2, 0, 1).contiguous() + 1, (rand(6, 10, 4),)),
        "reshape_permute": (
            lambda x: (x.reshape(12, 40).permute(1, 0).reshape(8, 60).permute(1, 0) * 2).contiguous(),
            (rand(6, 8, 10),),
        ),
        "flip": (lambda x: x.flip(0)[2:9, 1:8].reshape(49).flip(0) + 1, (rand(12, 10),)),
        "pad": (lambda x: functional.pad(x.reshape(8, 3).t().reshape(6, 4), (0, 2, 1, 1)) + 1, (rand(4, 6),)),
        "pad_reflect": (lambda x: functional.pad(x, (2, 1, 3, 2), mode="reflect") + 1, (rand(1, 2, 6, 7),)),
        "pad_circular": (lambda x: functional.pad(x, (2, 1, 3, 2), mode="circular") + 1, (rand(1, 2, 6, 7),)),
        "max_pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), (rand(1, 4, 13, 13),)),
        "avg_pool": (lambda x: functional.avg_pool2d(x, 2), (rand(1, 4, 12, 12),)),
        "softmax": (lambda x: x.softmax(-1), (rand(8, 24),)),
        "layer_norm": (lambda x: functional.layer_norm(x.permute(1, 0, 2), (16,)), (rand(4, 6, 16),)),
        "group_norm": (lambda x: functional.group_norm(x, 2), (rand(2, 8, 5, 5),)),
        "roll": (lambda x: x.roll((2, 3), (0, 1)) + 1, (rand(6, 9),)),
        "cat": (lambda x, y: torch.cat([x, y * 2, x], 0), (rand(4, 5), rand(3, 5))),
        "stack": (lambda x: torch.stack([x, x + 1], 1).reshape(-1), (rand(4, 5),)),
        "tril": (lambda x: x.tril(1), (rand(7, 7),)),
        "arange": (lambda x: torch.arange(3, 63, 4).reshape(5, 3) + x, (rand(5, 3),)),
        "pixel_shuffle": (lambda x: functional.pixel_shuffle(x, 2) + 1, (rand(1, 12, 4, 5),)),
        "pixel_unshuffle": (lambda x: functional.pixel_unshuffle(x, 2) + 1, (rand(1, 3, 8, 8),)),
        "channel_shuffle": (
            lambda x: x.view(1, 3, 4, 5, 5).transpose(1, 2).reshape(1, 12, 5, 5) + 1,
            (rand(1, 12, 5, 5),),
        ),
        "window_partition": (
            lambda x: x.roll(1, 1).view(1, 2, 4, 2, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(4, 16, 4) + 1,
            (rand(1, 8, 8, 4),),
        ),
        "interpolate": (lambda x: functional.interpolate(x, (11, 9), mode="bilinear"), (rand(1, 2, 6, 6),)),
        "interpolate_nearest": (lambda x: functional.interpolate(x, (10, 15)), (rand(1, 2, 6, 6),)),
        "unfold": (lambda x: x.unfold(1, 5, 3).reshape(-1, 5) + 1, (rand(3, 20),)),
        "im2col": (lambda x: functional.unfold(x, 3, padding=1) + 1, (rand(1, 2, 6, 6),)),
        "repeat": (lambda x: x.repeat(2, 3) + 1, (rand(3, 4),)),
        "repeat_interleave": (lambda x: x.repeat_interleave(3, 1) + 1, (rand(3, 4),)),
        "cumsum": (lambda x: x.cumsum(1) + 1, (rand(5, 40),)),
        "attention": (
            lambda q: functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(2, 16, 32) + 1,
            (rand(2, 4, 16, 8),),
        ),
        "glu": (lambda x: functional.glu(x, 1), (rand(3, 8, 5),)),
        "diagonal": (lambda x: x.diagonal(1) * 2, (rand(6, 7),)),
    }

    def compiled(name: str) -> Callable[[], Any]:
        program, inputs = found[name]
        return lambda: torch.compile(program)(*inputs)

    return {name: compiled(name) for name in found}


if __name__ == "__main__":
    main(install, programs)
