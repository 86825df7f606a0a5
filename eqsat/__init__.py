"""Equality saturation for the integer index and reduce expressions inside tensor compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# first: what follows takes a while
from eqsat.cli import start as _start  # noqa: F401

# isort: split

from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.kernels.kernel import Kernel, Store
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import (
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
    where,
)
from eqsat.lang.own import Operator, operator
from eqsat.lang.text import parse
from eqsat.optimizer.front import optimize
from eqsat.optimizer.result import EXPLAINED, SHOWN, Result

if TYPE_CHECKING:
    from eqsat.cli.experiment import experiment
    from eqsat.codegen.programs import compile_kernel as compile
    from eqsat.prove.explanation import Explanation

    __version__: str
else:

    def __getattr__(name: str) -> object:
        # looked up when it is asked for: either takes as long as many a kernel
        match name:
            case "compile":
                from eqsat.codegen.programs import compile_kernel

                return compile_kernel
            case "experiment":
                from eqsat.cli.experiment import experiment

                return experiment
            case "__version__":
                from importlib.metadata import PackageNotFoundError, version

                try:
                    return version("eqsat")
                except PackageNotFoundError:
                    raise AttributeError("eqsat is not installed, and has no version") from None
        raise AttributeError(f"module 'eqsat' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


@EXPLAINED.fill
def _explained(result: Result, **options: Any) -> Explanation:
    from eqsat.explain.derivation import explain

    return explain(result, **options)


@SHOWN.fill
def _shown(result: Result) -> str:
    from eqsat.cli.page import to_html

    return to_html(result)


__all__ = [
    "Budget",
    "Expr",
    "Kernel",
    "Operator",
    "Result",
    "Rule",
    "Store",
    "buffer",
    "compile",
    "const",
    "exp",
    "experiment",
    "log",
    "max_over",
    "maximum",
    "min_over",
    "minimum",
    "operator",
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
