"""PyTorch Inductor's index simplifier (``SizeVarAllocator.simplify_with_ranges``) as a peer.

Quotients are ``FloorDiv``; remainders are ``ModularIndexing`` where Inductor's bounds show that nothing is negative,
as in its own index arithmetic, else ``PythonMod``. Both sides of a comparison are simplified, and the comparison is
decided where ``ShapeEnv`` can. Constraints and the gate of a root are axioms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import sympy
import sympy_terms
from sympy.core.cache import clear_cache
from sympy_terms import leaf, written
from torch._inductor.sizevars import SizeVarAllocator
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, Max, Min, ModularIndexing, PythonMod, Where
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy
from wire import Alternative, Case, Clock, attempt, bottom_up, serve, to_peer


class KnowingShapeEnv(ShapeEnv):
    """A shape environment that holds some conditions for true."""

    facts: tuple[Any, ...] = ()

    def get_axioms(self, *args: Any, **options: Any) -> tuple[Any, ...]:
        return (*super().get_axioms(*args, **options), *self.facts)


class Problem:
    """One case: the sizes of its variables."""

    def __init__(self, case: Case) -> None:
        self.sizes = {
            sympy.Symbol(name, integer=True, nonnegative=True): sympy.Integer(high - low + 1)
            for _, name, low, high in (node for node in case.nodes if node[0] == "var")
        }
        self.bounds = {symbol: ValueRanges(0, size - 1) for symbol, size in self.sizes.items()}

    def operators(self) -> dict[str, Callable[..., Any]]:
        return {
            **sympy_terms.OPERATORS,
            "floordiv": FloorDiv,
            "mod": self.mod,
            "shr": lambda x, y: FloorDiv(x, 2**y),
            "min": lambda x, y: sympy.And(x, y) if x.is_Boolean else Min(x, y),
            "max": lambda x, y: sympy.Or(x, y) if x.is_Boolean else Max(x, y),
            "where": lambda c, x, y: sympy.ITE(c, x, y) if x.is_Boolean else Where(c, x, y),
        }

    def mod(self, x: Any, y: Any) -> Any:
        natural = y.is_positive and bound_sympy(x, self.bounds).lower >= 0
        return ModularIndexing(x, sympy.S.One, y) if natural else PythonMod(x, y)

    def step(self, facts: Sequence[Any]) -> Callable[[Any], Any]:
        """What simplifies a term under ``facts``."""
        environment = KnowingShapeEnv()
        environment.facts = tuple(facts)
        allocator = SizeVarAllocator(environment)
        axioms = tuple(axiom for symbol, size in self.sizes.items() for axiom in (symbol >= 0, symbol < size))
        bounds = tuple(self.bounds.items())

        def simplified(term: Any) -> Any:
            if not term.is_Boolean:
                return allocator.simplify_with_ranges(term, self.sizes)
            if term.is_Relational:
                term = term.func(*[allocator.simplify_with_ranges(side, self.sizes) for side in term.args])
                if term.is_Relational:
                    known = environment._maybe_evaluate_static(term, axioms=(*axioms, *facts), var_to_range=bounds)
                    return term if known is None else known
                return term
            return term.func(*[simplified(part) for part in term.args]) if term.args else term

        return simplified


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """One mode; under gates without them first."""
    clear_cache()
    problem = Problem(case)
    operators = problem.operators()
    lows = {node[1]: node[2] for node in case.nodes if node[0] == "var"}
    exact = to_peer(case, leaf, operators) if case.constraints else []
    facts = [exact[index] for index in case.constraints]
    terms = bottom_up(case, clock, leaf, operators, problem.step(facts))
    roots = [terms[root] for root in case.roots]
    yield "ranges", *written(roots, lows)
    if any(gate is not None for gate in case.gates):
        for index, gate in enumerate(case.gates):
            if gate is not None:
                parts = sympy.And.make_args(terms[gate])
                roots[index] = attempt(clock, problem.step([*facts, *parts]), roots[index])
        yield "ranges and gates", *written(roots, lows)


if __name__ == "__main__":
    serve(version("torch"), simplify)
