"""Triton's kernels compiled for a GPU that need not be there, without eqsat and with it.

pip install 'eqsat[triton]'
python examples/triton_kernels.py
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

from eqsat.interop.triton import enabled

if find_spec("triton") is not None:
    import triton
    import triton.language as tl

#: What each kernel is started with at most.
PROGRAMS = 4096


def rows(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = i // 64, i % 64
    value = tl.load(x + row * 64 + column, mask=i < n)
    tl.store(y + i, value, mask=i < n)


def channel_shuffle(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image, rest = i // 7680, i % 7680
    channel, pixel = rest // 60, rest % 60
    source = image * 7680 + (channel % 2 * 64 + channel // 2) * 60 + pixel
    tl.store(y + i, tl.load(x + source, mask=i < n), mask=i < n)


def windows(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel, inside, window = i % 24, i // 24 % 49, i // (24 * 49)
    row = window // 8 % 8 * 7 + inside // 7
    column = window % 8 * 7 + inside % 7
    source = ((window // 64 * 56 + row) * 56 + column) * 24 + channel
    tl.store(y + i, tl.load(x + source, mask=i < n), mask=i < n)


def tiles(x, y, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    row = program // 8 * 16 + tl.arange(0, 16)
    column = program % 8 * 8 + tl.arange(0, 8)
    flat = row[:, None] * 64 + column[None, :]
    value = tl.load(x + flat // 64 * 100 + flat % 64)
    tl.store(y + flat // 4 * 4 + flat % 4, value)


KERNELS = {kernel.__name__: kernel for kernel in (rows, channel_shuffle, windows, tiles)}


def compiled(name: str) -> Any:
    """A kernel compiled for an A100."""
    from triton.backends.compiler import GPUTarget

    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    divisible = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    source = triton.compiler.ASTSource(triton.jit(KERNELS[name]), signature, {"BLOCK": 1024}, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 80, 32))


def instructions(ptx: str) -> int:
    """How many there are in a PTX."""
    return len(re.findall(r"^\s+(?:@!?%p\d+\s+)?[a-z][\w.]*(?:\s[^;]*)?;", ptx, re.MULTILINE))


def divisions(ttir: str) -> int:
    """Quotients and remainders in a TTIR."""
    return len(re.findall(r"arith\.(?:div|rem)[su]i", ttir))


def main() -> None:
    if find_spec("triton") is None:
        raise SystemExit("Triton is not installed: pip install 'eqsat[triton]'")
    for name in KERNELS:
        for context in (nullcontext(), enabled(programs=PROGRAMS)):
            with context:
                found = compiled(name).asm
            print(f"{name}: {divisions(found['ttir'])} divisions, {instructions(found['ptx'])} instructions")


if __name__ == "__main__":
    main()
