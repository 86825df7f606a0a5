"""SymPy as a peer: quotients are ``floor``, remainders ``Mod``, selections ``Piecewise``.

Modes: what construction evaluates, expanded; and ``simplify``. Of a variable's range SymPy learns that it is not
negative, counted from its lower end: it has no place for more. Gates and constraints it cannot use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import sympy
import sympy_terms
from sympy.core.cache import clear_cache
from sympy_terms import leaf, written
from wire import Alternative, Case, Clock, bottom_up, serve

OPERATORS: dict[str, Callable[..., Any]] = {
    **sympy_terms.OPERATORS,
    "floordiv": lambda x, y: sympy.floor(x / y),
    "shr": lambda x, y: sympy.floor(x / 2**y),
    "mod": sympy.Mod,
    "min": lambda x, y: sympy.And(x, y) if x.is_Boolean else sympy.Min(x, y),
    "max": lambda x, y: sympy.Or(x, y) if x.is_Boolean else sympy.Max(x, y),
    "where": lambda c, x, y: sympy.ITE(c, x, y) if x.is_Boolean else sympy.Piecewise((x, c), (y, True)),
}
MODES: dict[str, Callable[[Any], Any]] = {
    "expand": lambda term: term if term.is_Boolean else sympy.expand(term),
    "simplify": sympy.simplify,
}


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """Every mode."""
    clear_cache()
    lows = {node[1]: node[2] for node in case.nodes if node[0] == "var"}
    for name, step in MODES.items():
        terms = bottom_up(case, clock, leaf, OPERATORS, step)
        yield name, *written([terms[root] for root in case.roots], lows)


if __name__ == "__main__":
    serve(version("sympy"), simplify)
