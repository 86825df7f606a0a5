"""Conditions over a box of points: folded by their bounds, narrowed to one period, split until they are small.

With narrower ranges most comparisons are decided, and what is left of a condition is often periodic: over a long range
one period of it says all. That turns long ranges into short ones, which are swept: every point is evaluated, in boxes
that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from itertools import product
from math import gcd, inf, lcm, prod
from operator import and_
from time import monotonic
from typing import NamedTuple, cast

from eqsat.lang.evaluation import evaluate, number_type
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, as_expr, const, make, rebuild, shift_amount, var
from eqsat.lang.functions import where
from eqsat.lang.ops import BITWISE, COMPARISONS, DIVISIONS, OPS, SHIFTS, SUMS, is_finite, np
from eqsat.lang.properties import value_of_range
from eqsat.lang.sampling import grid
from eqsat.lang.traversal import chain_members, domain_size, extent, topological, variables

Point = dict[str, int]
Ranges = dict[str, tuple[int, int]]

#: Ranges of up to this number of values are split into single values.
FEW = 16

#: Boxes of up to this number of points are swept as they are.
LEAF = 2**16
#: The most points that are evaluated at once while a domain is swept: a few arrays of that size fit the cache.
SWEEP = 2**17
#: The same where a value may exceed 64 bits: such a point takes a hundred times as long, and more, and the clock is
#: looked at between boxes.
SWEEP_OF_WIDE = 2**8

#: The most bytes of the arrays that say where each condition holds; with many conditions fewer points are evaluated at
#: once.
VERDICTS = 2**25

#: Operators of linear arithmetic, whatever their operands are.
_LINEAR = SUMS | COMPARISONS | {"min", "max", "where", "and", "or", "not"}

#: Why a procedure that does not evaluate decides nothing.
FLOATING = "floating-point values matter"


class UndecidedError(Exception):
    """A decision procedure was not run to its end; the message says why."""


def refuse_missing(package: str) -> None:
    """Raise ``UndecidedError`` unless a package is installed."""
    try:
        import_module(package)
    except ImportError:
        raise UndecidedError(f"{package} is not installed") from None


def confirmed(conditions: Sequence[Expr], point: Point) -> Point:
    """``point``, if all ``conditions`` hold there.

    Raises ``UndecidedError`` if one does not: the procedure that found it takes some term for an unknown whose value
    the variables determine.
    """
    if all(bool(holds) for holds in evaluate(conditions, point, total=True)):
        return point
    raise UndecidedError("products and quotients of variables matter")


def restricted(conditions: Sequence[Expr], ranges: Mapping[str, tuple[int, int]]) -> list[Expr] | None:
    """What is left of ``conditions`` over narrower ranges, or None if no point there satisfies them all.

    What the bounds decide is folded, truncating divisions, shifts and bit operators by constants become ``//``, ``%``
    and ``*``, and conjunctions become several conditions. A quotient by zero, whose value is unspecified, becomes a
    variable.
    """

    def fold(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op == "var":
            return _narrowed(term, ranges)
        if term.op in DIVISIONS and args[1].vmin == 0 == args[1].vmax:
            return _narrowed(var(f"unspecified_{abs(term.key):x}", term.vmin, term.vmax), ranges)
        # in plainer operators where bounds and literals allow it
        plainer = _FOLDS[term.op](term.op, *args) if term.op in _FOLDS else None
        folded = plainer if plainer is not None else make(term.op, *args) if args else term
        if folded.vmin == folded.vmax and folded.args:
            return as_expr(bool(folded.vmin)) if folded.is_bool else const(folded.vmin)
        return folded

    left = dict.fromkeys(m for c in rebuild(conditions, fold) for m in reversed(chain_members(c, "and")))
    return None if FALSE in left else [member for member in left if member is not TRUE]


def _narrowed(variable: Expr, ranges: Mapping[str, tuple[int, int]]) -> Expr:
    low, high = ranges.get(cast(str, variable.value), (variable.vmin, variable.vmax))
    return const(low) if low == high else var(cast(str, variable.value), low, high)


def _selected(op: str, condition: Expr, x: Expr, y: Expr) -> Expr | None:
    return None if condition.vmin != condition.vmax else x if condition.vmin else y


def _joined(op: str, x: Expr, y: Expr) -> Expr | None:
    for decided, other in ((x, y), (y, x)):
        if decided.vmin == decided.vmax:
            return other if bool(decided.vmin) == (op == "and") else decided
    return None


def _extreme(op: str, x: Expr, y: Expr) -> Expr | None:
    is_ordered = x.vmax <= y.vmin or y.vmax <= x.vmin
    return None if not is_ordered else x if (x.vmax <= y.vmin) == (op == "min") else y


def _with_bits(op: str, x: Expr, y: Expr) -> Expr | None:
    """A bit operator with a literal: ``x | c`` is ``x + c - (x & c)``, and ``x ^ c`` less that once more."""
    literal, other = (x, y) if x.op == "const" else (y, x)
    if literal.op != "const" or other.op == "const":
        return None
    common = _masked(other, literal.vmin)
    return common if op == "bitand" else other + literal.vmin - (common if op == "bitor" else common * 2)


def _shifted(op: str, x: Expr, y: Expr) -> Expr:
    if y.op != "const":
        # in plainer operators an amount may have wider bounds
        return make(op, x, shift_amount(y))
    return x * const(1 << y.vmin) if op == "shl" else x // const(1 << y.vmin)


def _divided_toward_zero(op: str, x: Expr, y: Expr) -> Expr | None:
    if y.op != "const":
        return None
    quotient = _truncated(x, y.vmin)
    return quotient if op == "tdiv" else x - quotient * y


def _remainder(op: str, x: Expr, y: Expr) -> Expr | None:
    if y.op != "const" or x.vmin // y.vmin != x.vmax // y.vmin:
        return None
    bucket = x.vmin // y.vmin
    return x - bucket * y.vmin if bucket else x


def _masked(x: Expr, mask: int) -> Expr:
    """``x & mask`` by quotients: of each run of ones in the mask a remainder of a quotient."""
    if mask < 0:
        return x if mask == -1 else x - _masked(x, ~mask)
    total: Expr = const(0)
    while mask:
        start = (mask & -mask).bit_length() - 1
        length = (~(mask >> start) & -~(mask >> start)).bit_length() - 1
        part = (x // 2**start if start else x) % 2**length
        part = part * 2**start if start else part
        total = part if total.op == "const" else total + part
        mask -= ((1 << length) - 1) << start
    return total


def _truncated(x: Expr, d: int) -> Expr:
    """The quotient of ``x`` and the literal ``d``, rounded toward zero."""
    if d < 0:
        return -_truncated(x, -d)
    up, down = -(-x // d), x // d
    return down if x.vmin >= 0 else up if x.vmax <= 0 else where(x < 0, up, down)


#: How each operator is folded; ``None`` where neither bounds nor literals allow it.
_FOLDS: dict[str, Callable[..., Expr | None]] = {
    "where": _selected,
    **dict.fromkeys(("and", "or"), _joined),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(BITWISE, _with_bits),
    **dict.fromkeys(SHIFTS, _shifted),
    **dict.fromkeys(("tdiv", "tmod"), _divided_toward_zero),
    "mod": _remainder,
}


def is_linear(term: Expr) -> bool:
    """Whether the operator of ``term`` is one of linear arithmetic, given the literals among its operands."""
    if term.op == "mul":
        return any(a.op == "const" for a in term.args)
    if term.op in DIVISIONS or term.op in SHIFTS:
        return term.args[1].op == "const"
    return term.op in _LINEAR or term.op not in OPS


def period(conditions: Sequence[Expr], variable: Expr) -> int | None:
    """A number of steps of ``variable`` after which all ``conditions`` are as before, or None if none is found.

    For each term t below the conditions this finds P > 0 and S with ``t(x + P) = t(x) + S`` wherever x and x + P are
    in the range of ``variable``, whatever the other variables are; then also ``t(x + k*P) = t(x) + k*S``. A variable
    has P = 1, and S = 1 if it is the one that moves, else 0. Operands are first brought to the least common multiple of
    their P. Sums, and products by a literal, add and multiply S. Quotients and remainders by a literal d need steps for
    which d divides S: abs(d)/gcd(d, S) times as many; the quotient then moves by S/d and the remainder not at all.
    Comparisons of operands that move by the same S do not change, and their min, max and selections move by S. Bit
    operators on an operand with S = 0, whose values are in [0, 2**k) or in [-2**k, 0), need steps for which 2**k
    divides S of the other; what they do to its higher bits, which are added then, is to keep, clear, set or invert
    them. Any other operator needs operands with S = 0. So a condition, which has S = 0, holds somewhere in the range
    only if it holds at one of the first P values of it.
    """
    moves: dict[Expr, _Move] = {}
    for term in topological(conditions):
        move = _move(term, [moves[a] for a in term.args], variable)
        if move is None or move.steps > variable.vmax - variable.vmin:
            return None
        moves[term] = move
    steps_of_all = lcm(*[moves[condition].steps for condition in conditions])
    return steps_of_all if steps_of_all <= variable.vmax - variable.vmin else None


class _Move(NamedTuple):
    """P and S of :func:`period`: after P ``steps`` of the variable a term is greater ``by`` S."""

    steps: int
    by: int


def _move(term: Expr, operands: Sequence[_Move], variable: Expr) -> _Move | None:
    """How ``term`` moves, given how its operands do; see :func:`period`."""
    if not operands:
        return _Move(1, int(term is variable))
    steps = lcm(*[move.steps for move in operands])
    shifts = [move.by * (steps // move.steps) for move in operands]
    literal = next((a.vmin for a in reversed(term.args) if a.op == "const"), None)
    match term.op:
        case "add" | "sub":
            return _Move(steps, shifts[0] + (shifts[1] if term.op == "add" else -shifts[1]))
        case "neg":
            return _Move(steps, -shifts[0])
        case "mul" if literal is not None:
            return _Move(steps, sum(shifts) * literal)
        case "floordiv" | "mod" if term.args[1].op == "const" and literal:
            times = abs(literal) // gcd(literal, shifts[0])
            return _Move(steps * times, shifts[0] * times // literal if term.op == "floordiv" else 0)
        case "bitand" | "bitor" | "bitxor" if any(shifts) and not all(shifts):
            kept = term.args[0] if not shifts[0] else term.args[1]
            if kept.vmin < 0 <= kept.vmax or not is_finite(kept.vmin, kept.vmax):
                return None
            size = 1 << max(kept.vmin.bit_length(), kept.vmax.bit_length())
            times = size // gcd(size, sum(shifts))
            # of the sign bits of what is kept
            scale = {"bitand": (0, 1), "bitor": (1, 0), "bitxor": (1, -1)}[term.op][kept.vmin < 0]
            return _Move(steps * times, sum(shifts) * times * scale)
        case "lt" | "le" | "eq" | "ne" if shifts[0] == shifts[1]:
            return _Move(steps, 0)
        case "min" | "max" | "where" if shifts[-2] == shifts[-1]:
            return _Move(steps, shifts[-1])
    return None if any(shifts) else _Move(steps, 0)


def find_in_boxes(
    conditions: Sequence[Expr], seconds: float, decide: Callable[[Sequence[Expr], float], Point | None] | None = None
) -> Point | None:
    """A point at which all ``conditions`` hold, or None if there is none: the domain is split until its parts are easy.

    ``decide`` is asked about a part before that is split further, with the seconds it may take; it may raise
    ``UndecidedError``.

    Raises ``UndecidedError`` if ``seconds`` pass first.
    """
    deadline = monotonic() + seconds
    corner = {cast(str, v.value): value_of_range(v) for v in variables(conditions)}
    stack: list[Ranges] = [{}]
    while stack:
        ranges = stack.pop()
        if (left := restricted(conditions, ranges)) is None:
            continue
        inputs = variables(left)
        try:
            if domain_size(inputs) <= LEAF:
                point = sweep([reduce(and_, left, TRUE)])[1]
            elif periods := _periods(left, inputs):
                stack.append({**ranges, **periods})
                continue
            elif decide:
                point = decide(left, (deadline - monotonic()) / 10)
            else:
                raise UndecidedError
        except UndecidedError:
            stack += [{**ranges, **part} for part in _parts(left)]
            point = None
        if point is not None:
            return corner | {name: low for name, (low, _) in ranges.items()} | point
        if monotonic() > deadline:
            raise UndecidedError("the domain has too many parts")
    return None


def _periods(conditions: Sequence[Expr], inputs: Sequence[Expr]) -> Ranges:
    """One period of each variable that has one shorter than its range."""
    found = {}
    for v in inputs:
        if steps := period(conditions, v):
            low = v.vmin if is_finite(v.vmin) else v.vmax - steps + 1 if is_finite(v.vmax) else 0
            found[cast(str, v.value)] = low, low + steps - 1
    return found


def _parts(conditions: Sequence[Expr]) -> list[Ranges]:
    """A domain by the range of one variable: each value of a short one, the halves of a long one."""
    nonlinear = next((term for term in topological(conditions) if not is_linear(term)), None)
    if nonlinear is None:
        variable = max(variables(conditions), key=extent)
    else:
        # the shortest range that makes it linear: a quotient is once its divisor is a literal
        second = nonlinear.op in DIVISIONS or nonlinear.op in SHIFTS
        variable = min(variables(nonlinear.args[1:] if second else nonlinear.args), key=extent)
    low, high = variable.vmin, variable.vmax
    if not is_finite(low, high):
        raise UndecidedError(f"the range of {variable.value!r} has no end")
    middle = (low + high) // 2
    parts = [(k, k) for k in range(low, high + 1)] if high - low < FEW else [(low, middle), (middle + 1, high)]
    return [{cast(str, variable.value): part} for part in reversed(parts)]


def sweep(
    wanted: Sequence[Expr], facts: Sequence[Expr] = (), deadline: float = inf
) -> tuple[int, dict[str, int] | None]:
    """Look at every point where all ``facts`` hold for one at which some condition of ``wanted`` holds.

    The result is how many points satisfied the facts, up to the one that was found, and that one, with a value for each
    variable that occurs, or None.

    Raises ``TimeoutError`` if ``deadline``, on the clock of :func:`time.monotonic`, passes first; it is looked at
    between boxes of 100,000 points, or of 256 where values are wide.
    """
    # the longest axis is innermost: that is what array operations are fast at
    axes = sorted(variables([*wanted, *facts]), key=extent)
    limit = min(SWEEP, max(2**12, VERDICTS // (len(wanted) + 1)))
    if any(number_type(term).hasobject for term in topological([*wanted, *facts]) if term.op != "buffer"):
        limit = SWEEP_OF_WIDE
    points = 0
    for box in _boxes([(v.vmin, v.vmax) for v in axes], limit):
        if monotonic() > deadline:
            raise TimeoutError(f"{domain_size(axes):.2g} points are more than there is time for")
        mesh = grid([any_var(str(v.value), *ends) for v, ends in zip(axes, box, strict=True)])
        verdicts = evaluate([*facts, *wanted], mesh, total=True)
        allowed = reduce(np.logical_and, verdicts[: len(facts)], np.asarray(True))
        size = prod(high - low + 1 for low, high in box)
        points += int(np.count_nonzero(allowed)) * (size // allowed.size)
        for verdict in verdicts[len(facts) :]:
            if verdict.any() and (found := verdict & allowed).any():
                place = np.unravel_index(int(np.argmax(found)), found.shape)
                steps = [0] * (len(axes) - len(place)) + [int(step) for step in place]
                return points, {str(v.value): low + step for v, (low, _), step in zip(axes, box, steps, strict=True)}
    return points, None


def _boxes(ranges: list[tuple[int, int]], limit: int) -> Iterator[list[tuple[int, int]]]:
    """Split a box of inclusive ranges, outermost axes first, into boxes of up to ``limit`` points."""
    pieces: list[list[tuple[int, int]]] = []
    for index, (low, high) in enumerate(ranges):
        inner = prod(last - first + 1 for first, last in ranges[index + 1 :])
        rows = min(high - low + 1, max(1, limit // inner))
        pieces.append([(start, min(start + rows - 1, high)) for start in range(low, high + 1, rows)])
    return map(list, product(*pieces))
