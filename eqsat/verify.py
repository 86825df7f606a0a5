"""Are two lists of expressions equal for every value of their variables?

Three answers, in rising cost: compare them at all points of a small domain, at chosen points of a large one, or ask z3
for a proof. A point counts only where all constraints hold, and for a gated root only where its gate holds.
Constraints are taken to be satisfiable: those that share no variable with a root do not matter to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from time import monotonic
from typing import Any, Literal

import numpy as np

from eqsat.expr import Expr, evaluate, number_type, topological, variables
from eqsat.sampling import Points, sample, select
from eqsat.smt import to_z3

#: The most elements of one array while a domain is swept: a few of them fit the cache.
SWEEP = 2**17

#: Bytes that the verdicts on all roots may take at once.
VERDICTS = 2**25


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a comparison.

    Attributes
    ----------
    kind : str
        ``"exhaustive"`` (every point), ``"sampled"`` (some points) or ``"proved"`` (by z3).
    points : int
        How many points were compared; 0 for a proof, and for roots that are one and the same term.
    counterexample : dict or None
        A value for each variable that matters, at which some root differs.
    """

    kind: Literal["exhaustive", "sampled", "proved"]
    points: int
    counterexample: dict[str, int] | None = None

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return self.counterexample is None


@dataclass(frozen=True)
class _Group:
    """Roots that are compared over one domain: ``differs`` holds one condition per root, true where it is wrong."""

    differs: list[Expr]
    constraints: list[Expr]

    @property
    def variables(self) -> list[Expr]:
        return variables([*self.differs, *self.constraints])

    @property
    def size(self) -> int:
        return prod(v.vmax - v.vmin + 1 for v in self.variables)


def check_equal(
    before: Sequence[Expr],
    after: Sequence[Expr],
    *,
    constraints: Sequence[Expr] = (),
    gates: Sequence[Expr | None] = (),
    most: int = 10**6,
    samples: int = 10_000,
    seed: int = 0,
    prove: bool = False,
    seconds: float = 10.0,
) -> Check:
    """Compare each root of ``before`` with the same root of ``after`` by evaluating both, and by z3 if asked to.

    Parameters
    ----------
    before, after : sequence of Expr
        As many roots in one as in the other.
    constraints : sequence of Expr
        Conditions known to hold; other points do not count.
    gates : sequence of Expr or None
        Per root the condition under which its value matters, or None; may be empty.
    most : int
        Domains with up to so many points are compared exhaustively. The domain is that of all variables that occur;
        where it is larger, that of single roots is tried.
    samples : int
        Points to compare at otherwise: the ends of each range, 0, 1 and -1, random ones, and points found by a search
        where constraints or gates are tight.
    prove : bool
        Ask z3 too, for up to ``seconds``. Where it does not decide, the answer is the one without it.

    Raises
    ------
    ValueError
        If the numbers of roots or gates differ, or a variable has two ranges.
    ImportError
        If a proof is asked for and z3 is not installed (the extra ``check``).

    >>> from eqsat import var
    >>> i, j = var("i", 0, 63), var("j", 0, 31)
    >>> check_equal([(i*32 + j) // 32], [i])
    Check(kind='exhaustive', points=2048, counterexample=None)
    >>> check_equal([i % 32], [i], gates=[i < 33]).counterexample
    {'i': 32}
    """
    differs = _differences(before, after, gates)
    check = _evaluated(differs, constraints, [g for g in dict.fromkeys(gates) if g is not None], most, samples, seed)
    if prove and check.equal:
        return prove_equal(before, after, constraints=constraints, gates=gates, seconds=seconds) or check
    return check


def _evaluated(
    differs: list[Expr], constraints: Sequence[Expr], gates: list[Expr], most: int, samples: int, seed: int
) -> Check:
    small, large = _groups(differs, list(constraints), most)
    points = 0
    for group in small:
        count, counterexample = _sweep(group)
        points += count
        if counterexample is not None:
            return Check("exhaustive", points, counterexample)
    if large is None:
        return Check("exhaustive", points)
    count, counterexample = _probe(large, gates, samples, seed)
    return Check("sampled", points + count, counterexample)


def _differences(before: Sequence[Expr], after: Sequence[Expr], gates: Sequence[Expr | None]) -> list[Expr]:
    """The distinct conditions under which a root is wrong; identical terms need none."""
    gates = gates or [None] * len(before)
    if not len(before) == len(after) == len(gates):
        raise ValueError(f"{len(before)} roots before, {len(after)} after and {len(gates)} gates: give as many of each")
    found: dict[Expr, None] = {}
    for old, new, gate in zip(before, after, gates, strict=True):
        if old is not new:
            found[old.ne(new) if gate is None else gate & old.ne(new)] = None
    return list(found)


def _masks(roots: Sequence[Expr]) -> dict[Expr, int]:
    """For every term below ``roots`` the set of its variables, as bits of an integer."""
    bit = {v: 1 << index for index, v in enumerate(variables(roots))}
    masks: dict[Expr, int] = {}
    for term in topological(roots):
        masks[term] = bit.get(term, 0)
        for arg in term.args:
            masks[term] |= masks[arg]
    return masks


def _groups(differs: list[Expr], constraints: list[Expr], most: int) -> tuple[list[_Group], _Group | None]:
    """Groups of roots with a domain of up to ``most`` points, as few as possible, and the group of all others."""
    masks = _masks([*differs, *constraints])
    extents = [v.vmax - v.vmin + 1 for v in variables([*differs, *constraints])]

    def closure(mask: int) -> int:
        """The variables that constraints tie to those of ``mask``."""
        while True:
            wider = reduce(lambda m, c: m | masks[c] if m & masks[c] else m, constraints, mask)
            if wider == mask:
                return mask
            mask = wider

    def size(mask: int) -> int:
        return prod(extent for index, extent in enumerate(extents) if mask >> index & 1)

    def group(mask: int, members: list[Expr]) -> _Group:
        return _Group(members, [c for c in constraints if masks[c] & mask])

    domains: dict[int, list[Expr]] = {}
    for condition in differs:
        domains.setdefault(closure(masks[condition]), []).append(condition)
    small: list[tuple[int, list[Expr]]] = []
    large: tuple[int, list[Expr]] = (0, [])
    for mask, members in sorted(domains.items(), key=lambda item: size(item[0]), reverse=True):
        if size(mask) > most:
            large = large[0] | mask, large[1] + members
            continue
        for index, (other, others) in enumerate(small):
            if size(other | mask) <= most:
                small[index] = other | mask, others + members
                break
        else:
            small.append((mask, members))
    return [group(*pair) for pair in small], group(*large) if large[1] else None


def _sweep(group: _Group) -> tuple[int, dict[str, int] | None]:
    """Compare at all points: how many there were, and one at which a root is wrong."""
    # the longest axis is innermost: that is what array operations are fast at
    axes = sorted(group.variables, key=lambda v: v.vmax - v.vmin)
    limit = min(SWEEP, max(2**12, VERDICTS // (len(group.differs) + 1)))
    points = 0
    for box in _boxes([(v.vmin, v.vmax) for v in axes], limit):
        mesh = _open_mesh(axes, box)
        held = len(group.constraints)
        verdicts = evaluate([*group.constraints, *group.differs], mesh)
        allowed = reduce(np.logical_and, verdicts[:held], np.asarray(True))
        size = prod(high - low + 1 for low, high in box)
        points += int(np.count_nonzero(allowed)) * (size // allowed.size)
        for verdict in verdicts[held:]:
            if verdict.any() and (wrong := verdict & allowed).any():
                place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
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
    for box in product(*pieces):
        yield list(box)


def _open_mesh(axes: Sequence[Expr], box: Sequence[tuple[int, int]]) -> Points:
    """All combinations of the values in ``box``, each variable on an axis of its own; those with one value on none."""
    mesh: Points = {}
    for index, (variable, (low, high)) in enumerate(zip(axes, box, strict=True)):
        values = np.arange(high - low + 1).astype(number_type(variable)) + low
        inner = len(axes) - 1 - index
        mesh[str(variable.value)] = values.reshape(-1, *[1] * inner) if high > low else values[0]
    return mesh


def _probe(group: _Group, gates: list[Expr], samples: int, seed: int) -> tuple[int, dict[str, int] | None]:
    """Compare at chosen points: how many there were, and one at which a root is wrong."""
    found = sample(group.variables, group.constraints, samples, seed)
    batches = [found]
    inside = set(group.variables)
    for gate in gates:
        if inside.issuperset(variables([gate])):
            reached = sum(int(np.count_nonzero(evaluate([gate], batch)[0])) for batch in batches)
            if reached < samples // 100:
                batches.append(sample(group.variables, [*group.constraints, gate], samples // 20, seed))
    points = 0
    for batch in batches:
        count = len(next(iter(batch.values())))
        points += count
        for verdict in evaluate(group.differs, batch):
            if verdict.any():
                at = select(batch, np.flatnonzero(np.broadcast_to(verdict, count))[:1])
                return points, {name: int(value[0]) for name, value in at.items()}
    return points, None


def prove_equal(
    before: Sequence[Expr],
    after: Sequence[Expr],
    *,
    constraints: Sequence[Expr] = (),
    gates: Sequence[Expr | None] = (),
    seconds: float = 10.0,
) -> Check | None:
    """Ask z3 whether the roots are equal at all points that count; see :func:`check_equal`.

    Parameters
    ----------
    seconds : float
        Time for all roots together.

    Returns
    -------
    Check or None
        Kind ``"proved"``, with a counterexample if z3 found one; None if z3 does not decide in time.

    Raises
    ------
    ImportError
        If z3 is not installed (the extra ``check``).

    >>> from eqsat import var
    >>> x = var("x", 0, 2**60)
    >>> prove_equal([(x*6 + 5) // 3], [x*2 + 1])
    Check(kind='proved', points=0, counterexample=None)
    """
    import z3

    differs = _differences(before, after, gates)
    inputs = variables([*differs, *constraints])
    encoded = to_z3([*differs, *constraints])
    deadline = monotonic() + seconds
    for condition in differs:
        left = deadline - monotonic()
        if left <= 0:
            return None
        solver = z3.Solver()
        solver.set("timeout", max(1, int(left * 1000)))
        solver.add([z3.And(encoded[v] >= v.vmin, encoded[v] <= v.vmax) for v in inputs])
        solver.add([encoded[c] for c in constraints])
        solver.add(encoded[condition])
        answer = solver.check()
        if answer == z3.sat:
            return _confirmed(solver.model(), encoded, inputs, condition, constraints)
        if answer == z3.unknown:
            return None
    return Check("proved", 0)


def _confirmed(
    model: Any, encoded: dict[Expr, Any], inputs: list[Expr], condition: Expr, constraints: Sequence[Expr]
) -> Check | None:
    """The counterexample that z3 claims, if evaluation agrees: z3 gives ``x // 0`` any value it likes."""
    point = {str(v.value): model.eval(encoded[v], model_completion=True).as_long() for v in inputs}
    agrees = all(bool(holds) for holds in evaluate([condition, *constraints], point))
    return Check("proved", 0, point) if agrees else None
