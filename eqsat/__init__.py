"""Equality saturation for the integer index and reduce expressions inside tensor compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eqsat.egraph.engine import Budget
from eqsat.egraph.rule import Rule
from eqsat.kernels.kernel import Kernel, Store
from eqsat.lang.expr import (
    Expr,
    buffer,
    const,
    exp,
    log,
    max_over,
    maximum,
    min_over,
    minimum,
    prod_over,
    sqrt,
    sum_over,
    tdiv,
    tmod,
    to_double,
    to_float,
    var,
    where,
)
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import Result

if TYPE_CHECKING:
    from eqsat.codegen.runtime import Program

    __version__: str
else:

    def __getattr__(name: str) -> str:
        # looked up when it is asked for, which takes as long as many a kernel
        if name != "__version__":
            raise AttributeError(f"module 'eqsat' has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("eqsat")
        except PackageNotFoundError:
            raise AttributeError("eqsat is not installed, and has no version") from None


def compile(
    kernel: Kernel,
    *,
    optimize: bool = True,
    parallel: bool = False,
    reassociate: bool = False,
    lanes: int = 1,
    verify: bool = True,
) -> Program:
    """Compile a kernel into a function on NumPy arrays; :func:`eqsat.codegen.runtime.compile_kernel` says more.

    Parameters
    ----------
    kernel : Kernel
        What to compute.
    optimize : bool
        Whether addresses, conditions and loops are optimised first.
    parallel : bool
        Whether the outermost loops run in parallel (OpenMP).
    reassociate : bool
        Whether floating-point sums may be computed in another order.
    lanes : int
        How many elements of a row are computed at a time, by vector instructions: 1, 2, 4, 8 or 16.
    verify : bool
        Whether the compiled kernel is run once on random arrays and compared with the evaluator.

    Raises
    ------
    ValueError
        If the kernel cannot be compiled; the message says why.
    CompileError
        If there is no C compiler, or it fails.

    >>> image, k = buffer("X", "i32", (4,)), var("k", 0, 3)
    >>> run = compile(Kernel("turn", [Store(buffer("Y", "i32", (4,))[k], image[3 - k], [k])]))
    >>> import numpy as np
    >>> run(X=np.arange(4, dtype=np.int32))["Y"]
    array([3, 2, 1, 0], dtype=int32)
    """
    from eqsat.codegen.runtime import compile_kernel

    return compile_kernel(
        kernel, optimize=optimize, parallel=parallel, reassociate=reassociate, lanes=lanes, verify=verify
    )


__all__ = [
    "Budget",
    "Expr",
    "Kernel",
    "Result",
    "Rule",
    "Store",
    "buffer",
    "compile",
    "const",
    "exp",
    "log",
    "max_over",
    "maximum",
    "min_over",
    "minimum",
    "optimize",
    "parse",
    "prod_over",
    "sqrt",
    "sum_over",
    "tdiv",
    "tmod",
    "to_double",
    "to_float",
    "var",
    "where",
]
