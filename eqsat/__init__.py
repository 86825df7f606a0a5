"""Equality saturation for the integer index and reduce expressions inside tensor compilers."""

from eqsat.engine import Budget
from eqsat.expr import Expr, const, maximum, minimum, tdiv, tmod, var, where
from eqsat.optimize import Result, optimize
from eqsat.rule import Rule
from eqsat.text import parse

__all__ = [
    "Budget",
    "Expr",
    "Result",
    "Rule",
    "const",
    "maximum",
    "minimum",
    "optimize",
    "parse",
    "tdiv",
    "tmod",
    "var",
    "where",
]
