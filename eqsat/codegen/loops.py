"""Loops over index variables: their headers, how often they run, and unrolling by substitution.

A loop variable is an ordinary variable; its loop runs from its least value to its greatest. The counter of the loop
also reaches the end, one past the last value, so its type must hold that too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from eqsat.codegen.expressions import check_name, expression
from eqsat.codegen.limits import CODE_LIMITS
from eqsat.lang.dtypes import common_width
from eqsat.lang.expr import Expr, ExprLike, as_expr, const, indices_around, rebuild, replaced, var, with_operands
from eqsat.lang.ops import REDUCTIONS, is_finite
from eqsat.lang.text import to_text
from eqsat.lang.traversal import domain_size, variables
from eqsat.lang.validation import integer_of, list_of, require
from eqsat.theory.definedness import settled
from eqsat.theory.linear import LinearArithmetic

_C_TYPES = {32: "int", 64: "int64_t"}


def loop_variable(name: str, end: int) -> Expr:
    """The variable of a loop over ``[0, end)``.

    Raises ``ValueError`` if the loop never runs; ``TypeError`` if ``end`` is no integer.
    """
    return var(name, 0, integer_of(end, f"the end of the loop over {name!r}") - 1)


@dataclass(frozen=True)
class LoopHeader:
    """``for (variable = start; variable < end; variable++)``.

    Attributes
    ----------
    variable : Expr
        The loop variable.
    start, end : Expr
        The first value, and one past the last: literals, or terms over variables of outer loops.

    >>> header = LoopHeader.of(var("x", 0, 10))
    >>> header.operations
    ['CONST 0', 'CONST 11', 'LOOP [0, 1]']
    >>> header.to_c("ridx0")
    'for (int ridx0 = 0; ridx0 < 11; ridx0++) {'
    >>> LoopHeader.of(var("j", 0, 9), last=var("n", 1, 10) - 1).to_c()
    'for (int j = 0; j < n; j++) {'
    """

    variable: Expr
    start: Expr
    end: Expr

    @classmethod
    def of(cls, variable: Expr, start: ExprLike | None = None, last: ExprLike | None = None) -> LoopHeader:
        """The loop over all values of ``variable``, or over those from ``start`` to ``last``, both included.

        Raises
        ------
        ValueError
            If ``variable`` is no variable, a bound is no integer or depends on ``variable``, the loop has no end, or
            values outside of its range.
        """
        require(variable, Expr, "the variable of a loop")
        if variable.op != "var":
            raise ValueError(f"a loop needs a variable, not {to_text(variable, most=60)!r}")
        if not is_finite(0 if start is not None else variable.vmin, 0 if last is not None else variable.vmax):
            raise ValueError(
                f"the loop over {variable.value!r} has no end: give the variable bounds, or start and last"
            )
        first = const(variable.vmin) if start is None else as_expr(start)
        final = const(variable.vmax) if last is None else as_expr(last)
        check_bounds([first, final])
        if any(v.value == variable.value for v in variables([first, final])):
            raise ValueError(f"the bounds of the loop over {variable.value!r} depend on {variable.value!r} itself")
        if first.vmin < variable.vmin or final.vmax > variable.vmax:
            raise ValueError(
                f"the loop over {variable.value!r} runs from {first.vmin} to {final.vmax}, outside of its range "
                f"[{variable.vmin}, {variable.vmax}]"
            )
        return cls(variable, first, LinearArithmetic().simplify(final + 1))

    @property
    def width(self) -> int:
        """The width of the counter, which takes the values of ``start`` and ``end`` too."""
        return common_width(self.start, self.end)

    @property
    def trip_count(self) -> int:
        """How often the loop runs at most, by which a compiler decides whether to unroll it.

        Bounds over the same variables count together: a loop from ``i*4`` to ``i*4 + 4`` runs 4 times.
        """
        return max(0, LinearArithmetic().bounds_of(self.end - self.start)[1])

    @property
    def operations(self) -> list[str]:
        """The loop in linear form: its bounds, then the loop that names them by position."""
        bounds = [f"CONST {b.value}" if b.op == "const" else to_text(b) for b in (self.start, self.end)]
        return [*bounds, "LOOP [0, 1]"]

    def to_c(self, counter: str | None = None) -> str:
        """The line of C that opens the loop; a closing bracket must match it.

        Parameters
        ----------
        counter : str, optional
            The name of the counter, by default that of the variable.

        Raises
        ------
        ValueError
            If that is no name in C, or the name of a variable of the bounds.
        """
        name = str(self.variable.value) if counter is None else counter
        check_name(name, "counter")
        order = variables([self.start, self.end])
        if any(name == v.value for v in order):
            raise ValueError(f"the counter {name!r} has the name of a variable of its bounds: rename one of the two")
        start, end = [expression(bound, order, name) for bound in (self.start, self.end)]
        return f"for ({_C_TYPES[self.width]} {name} = {start}; {name} < {end}; {name}++) {{"


def check_bounds(bounds: Sequence[Expr]) -> None:
    """Refuse bounds of a loop that are no integers."""
    for bound in bounds:
        if bound.is_bool or bound.element:
            raise ValueError(f"the bound {to_text(bound, most=60)!r} of a loop must be an integer")


def expand(root: Expr, unrolled: Sequence[Expr]) -> list[Expr]:
    """One term for each combination of values of the ``unrolled`` variables, the last one changing fastest.

    Variables that do not occur in ``root`` do not count. Integers and conditions without variables become literals, and
    selections by them one of their branches, at any depth: of ``i*4 + u*3`` for ``u`` = 5 that is ``i*4 + 15``.

    Parameters
    ----------
    root : Expr
        A term.
    unrolled : sequence of Expr
        Variables.

    Raises
    ------
    ValueError
        If a variable is unrolled twice, or that makes more than ``CODE_LIMITS.unrolled`` terms, or a division by zero
        that is evaluated.

    >>> u, i = var("u", 5, 7), var("i", 0, 15)
    >>> expand(u * 3, [u]), expand(i, [u])
    ([Expr('15'), Expr('18'), Expr('21')], [Expr('i')])
    """
    require(root, Expr, "what is unrolled")
    unrolled = list_of(Expr, unrolled, "the variables that are unrolled")
    free = variables([root])
    present = [v for v in unrolled if v in free]
    for v in present:
        if present.count(v) > 1:
            raise ValueError(f"the variable {v.value!r} is unrolled twice: name it once")
    if unbounded := [v for v in present if not is_finite(v.vmin) or not is_finite(v.vmax)]:
        raise ValueError(f"the variable {unbounded[0].value!r} that is unrolled has no end: give it two bounds")
    count, most = domain_size(present), CODE_LIMITS.unrolled
    if count > most:
        raise ValueError(f"unrolling makes {count} terms, more than {most}: unroll fewer or shorter loops")
    closed = len(free) == len(present)
    theory = LinearArithmetic()
    lanes = []
    for values in product(*[range(v.vmin, v.vmax + 1) for v in present]):
        lane = settled(replaced([root], dict(zip(present, map(const, values), strict=True))), theory)[0]
        lanes.append(theory.simplify(lane) if closed else _folded(lane, theory))
    return lanes


def _folded(term: Expr, theory: LinearArithmetic) -> Expr:
    """``term`` with what has no variables computed."""

    def computed(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op == "where" and args[0].op == "bool":
            return args[1] if args[0].value else args[2]
        new = with_operands(term, args)
        if new.op in REDUCTIONS:
            return new if variables([new]) or indices_around(new) else theory.simplify(new)
        if not args or any(a.op not in ("const", "bool") for a in args):
            return new
        # the bounds of an operation on literals are its value
        exact = new.vmin == new.vmax and not new.element
        return as_expr(bool(new.vmin) if new.is_bool else new.vmin) if exact else theory.simplify(new)

    return rebuild([term], computed)[0]
