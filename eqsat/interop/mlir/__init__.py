"""MLIR in its textual form: index arithmetic made cheaper, everything else verbatim.

:func:`rewrite` takes the innermost blocks first. The roots of a block are the values of its ``arith`` operations on
integers, and on tensors of them, that other operations read. They are optimised together, under the ranges and
conditions of the loops and branches that enclose them. Then each ``affine.apply``, ``affine.min`` and ``affine.max``,
the bounds of each ``affine.for``, and the subscripts of each ``affine.load`` and ``affine.store`` are. New operations
stand where the root stood, and what nothing reads any more is left out. What would not cost less stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from eqsat.egraph.budget import Budget
from eqsat.extract.cost import CostModel
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.mlir.proposals import Program, rewrite_arithmetic
from eqsat.interop.mlir.sites import Sites
from eqsat.interop.mlir.text import FUNCTION, Module, Statement, parse
from eqsat.lang.costs import LATENCY, model_of
from eqsat.lang.expr import Expr
from eqsat.lang.ops import Bounds
from eqsat.lang.validation import integers_of, require, shown
from eqsat.optimizer.front import DEFAULT_BUDGET, optimize


@dataclass(frozen=True)
class Rewriting:
    """What :func:`rewriting` did.

    Attributes
    ----------
    text : str
        The module.
    changed, removed : int
        How many operations were replaced, and how many were left out.
    untried : int
        How many blocks and affine operations stayed as they are because the time was up.

    >>> rewriting("").text
    ''
    """

    text: str
    changed: int
    removed: int
    untried: int = 0


def rewrite(
    text: str,
    *,
    cost: CostModel | str = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
    total: float = INTEROP_LIMITS.module_seconds,
    ranges: Mapping[str, Bounds] = MappingProxyType({}),
) -> str:
    """The same program with cheaper index arithmetic; all other text is as it was.

    Parameters
    ----------
    text : str
        An MLIR module in its textual form. Operations in the generic form, and those that are not known, are kept;
        their results have any value of their type.
    cost : CostModel or str
        What is cheap: a model or its name, as for :func:`eqsat.optimize`.
    budget : Budget
        For each optimisation: one per block, and one per affine expression.
    total : float
        Seconds for the whole module, reading it included; ``math.inf`` for as many as it takes. What has not been
        optimised by then stays as it is.
    ranges : mapping from str to (int, int), optional
        The least and the greatest result of operations, by how their text begins, such as
        ``{"tt.get_program_id x": (0, 4095)}``.

    Raises
    ------
    ValueError
        If the braces of the text do not match, the message names the line; if a range is empty or none; if the seconds
        are less than 0; or if the cost model gives no price.

    >>> print(rewrite('''func.func @copy(%a: memref<32x64xf32>, %b: memref<2048xf32>) {
    ...   affine.for %i = 0 to 2048 {
    ...     %x = affine.load %b[(%i floordiv 64) * 64 + %i mod 64] : memref<2048xf32>
    ...     affine.store %x, %a[%i floordiv 64, %i mod 64] : memref<32x64xf32>
    ...   }
    ...   return
    ... }'''))
    func.func @copy(%a: memref<32x64xf32>, %b: memref<2048xf32>) {
      affine.for %i = 0 to 2048 {
        %x = affine.load %b[%i] : memref<2048xf32>
        affine.store %x, %a[%i floordiv 64, %i mod 64] : memref<32x64xf32>
      }
      return
    }
    """
    return rewriting(text, cost=cost, budget=budget, total=total, ranges=ranges).text


def rewriting(
    text: str,
    *,
    cost: CostModel | str = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
    total: float = INTEROP_LIMITS.module_seconds,
    ranges: Mapping[str, Bounds] = MappingProxyType({}),
    atoms: Callable[[Expr], bool] | None = None,
) -> Rewriting:
    r"""What :func:`rewrite` returns, and how much it changed.

    Parameters
    ----------
    text, cost, budget, total, ranges
        As for :func:`rewrite`.
    atoms : callable, optional
        Which terms are kept together: an operation that computes one stays, and others see its value alone.

    Raises
    ------
    ValueError, TypeError
        As :func:`rewrite`.

    >>> rewriting("module {\n}\n").changed
    0
    """
    require(text, str, "an MLIR module")
    require(budget, Budget, "a budget")
    end = Budget(seconds=total).ends()
    require(ranges, Mapping, "ranges")
    for start, ends in ranges.items():
        found = integers_of(ends, f"the least and the greatest result of {start!r}")
        if len(found) != 2 or found[0] > found[1]:
            raise ValueError(f"the range of {start!r} is {shown(ends)}: give (least, greatest)")

    def cheapest(roots: Sequence[Expr], facts: Sequence[Expr], model: CostModel, extract: str) -> tuple[Expr, ...]:
        return optimize(roots, constraints=facts, cost=model, extract=extract, budget=budget.until(end)).exprs

    module = parse(text)
    program = Program(module, model_of(cost), cheapest, end, ranges, atoms)
    sites = Sites(program)
    kept = _with_unknown_names(module)
    for block in reversed(module.blocks):
        if kept.isdisjoint(inner.owner for inner in block.enclosing()):
            rewrite_arithmetic(program, block)
            for statement in block.statements:
                sites.rewrite(statement)
    sites.remove_unread()
    replaced = [s.replacement for s in module.statements if s.replacement is not None]
    removed = sum(not lines for lines in replaced)
    return Rewriting(str(module), len(replaced) - removed, removed, len(program.untried))


def _with_unknown_names(module: Module) -> set[Statement]:
    """The functions in which a name is used before it is defined, or defined in a way that is not known."""
    found = set()
    for statement in module.statements:
        # a declaration names arguments, and has no region for them
        if statement.has_unknown and not _is_function(statement):
            owners = [block.owner for block in statement.block.enclosing() if block.owner is not None]
            # the whole function, whichever of its blocks has the name
            found |= set([owner for owner in owners if _is_function(owner)][-1:] or owners[-1:])
    return found


def _is_function(statement: Statement) -> bool:
    return bool(FUNCTION.match(statement.normalised[0]))
