"""Are two lists of expressions equal for every value of their variables?

:func:`check_equal` evaluates both: at all points of a small domain, at chosen points of a large one.
:func:`prove_equal` leaves no point out: what it cannot evaluate everywhere it asks of the procedures in
:mod:`eqsat.prove.decide`. A point counts only where all constraints hold, and for a gated root only where its gate
holds. It does not count where the root before divides by zero; a root after that divides by zero elsewhere is wrong.
Buffers hold arbitrary fixed elements; for a proof reductions are written out, and the elements are unknown.
Constraints are taken to be satisfiable: those that share no variable and no array with a root do not matter to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, prod
from time import monotonic
from typing import Literal

from eqsat.lang.evaluation import MAX_STEPS, Points, evaluate, loaded_elements, most_steps
from eqsat.lang.expr import TRUE, Expr
from eqsat.lang.ops import np
from eqsat.lang.properties import VariableSets
from eqsat.lang.sampling import sample, select
from eqsat.lang.traversal import buffers, extent, variables
from eqsat.lang.validation import counted, list_of, refuse_below, refuse_seconds, require
from eqsat.prove.boxes import sweep
from eqsat.prove.decide import decide, refuse_unknown
from eqsat.prove.defined import has_value, holds
from eqsat.prove.smt import unrolled

#: Domains with up to this number of points are swept.
MOST_POINTS = 10**6

#: How long a proof may take unless its caller says otherwise.
PROOF_SECONDS = 10.0

#: Before a proof: the most points at which a difference is looked for, and the share of the time after which no domain
#: is swept.
PROOF_SAMPLES = 1000
SWEEP_SHARE = 0.5
#: Points that are compared before the first look at the clock.
FIRST_PIECE = 16

#: The most steps of reductions that one comparison evaluates, over all its points; beyond that it takes fewer points.
STEPS = 2**26

#: About how many of these steps take a second, and how many are evaluated whatever the time.
STEPS_PER_SECOND = 2**27
FEW_STEPS = 2**20

#: The kinds of checks, the strongest first.
CHECKS = ("exhaustive", "proved", "sampled", "unchecked")


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a comparison; false if a difference was found.

    Attributes
    ----------
    kind : str
        ``"exhaustive"`` (every point), ``"proved"`` (every point, some by reasoning), ``"sampled"`` (some points, or
        one content of the buffers) or ``"unchecked"`` (some root has a reduction of too many steps to be evaluated).
    points : int
        How many points were compared; 0 for roots that are one and the same term.
    counterexample : dict or None
        A value for each variable that matters, at which some root differs, or divides by zero where it did not before;
        and for the elements that are read there, as in ``"A[3]"``.
    proof : str
        Of a proof what decided, of one that was asked for and not found ``"undecided"`` and why; else empty.
    """

    kind: Literal["exhaustive", "proved", "sampled", "unchecked"]
    points: int
    counterexample: dict[str, int] | None = None
    proof: str = ""

    @property
    def equal(self) -> bool:
        """Whether no difference was found; see ``kind`` for what that means."""
        return self.counterexample is None

    def __bool__(self) -> bool:
        return self.equal

    @property
    def row(self) -> dict[str, str]:
        """What a row of output says of it: ``checked``, and ``proof`` if one was asked for and needed."""
        return {"checked": self.kind, **({"proof": self.proof} if self.proof else {})}


def refuse_wrong(check: Check, answer: object) -> None:
    """Raise ``ValueError`` if a check has found a difference in ``answer``."""
    if not check.equal:
        raise ValueError(f"the result is wrong at {check.counterexample}: {answer}")


@dataclass(frozen=True)
class _Group:
    """Roots that are compared over one domain: ``differs`` holds one condition per root, true where it is wrong."""

    differs: list[Expr]
    constraints: list[Expr]

    @property
    def variables(self) -> list[Expr]:
        return variables([*self.differs, *self.constraints])


@dataclass(frozen=True)
class _Effort:
    """How large domains may be that are swept, how many points of others are looked at, and until when.

    Nothing is swept or searched for after the ``deadline``; at the ``end`` no more points are looked at. A root that
    takes more than ``steps`` steps at one point is not evaluated.
    """

    most: int
    samples: int
    seed: int = 0
    deadline: float = inf
    end: float = inf
    steps: float = MAX_STEPS


def check_equal(
    before: Sequence[Expr],
    after: Sequence[Expr],
    *,
    constraints: Sequence[Expr] = (),
    gates: Sequence[Expr | None] = (),
    most: int = MOST_POINTS,
    samples: int = 10_000,
    seed: int = 0,
    steps: int = MAX_STEPS,
    prove: bool = False,
    seconds: float = PROOF_SECONDS,
) -> Check:
    """Compare each root of ``before`` with the same root of ``after`` by evaluating both.

    Parameters
    ----------
    before, after : sequence of Expr
        As many roots in one as in the other.
    constraints : sequence of Expr
        Conditions known to hold; other points do not count, nor those where one divides by zero.
    gates : sequence of Expr or None
        Per root the condition under which its value matters, or None; may be empty.
    most : int
        Domains with up to this number of points are compared exhaustively. The domain is that of all variables that
        occur; where it is larger, that of single roots is tried.
    samples : int
        Points to compare at otherwise: the ends of each range, 0, 1 and -1, random ones, and points found by a search
        where constraints or gates are tight.
    seed : int
        Of the random points: the same number draws the same points.
    steps : int
        The most steps of reductions at one point; a root that takes more is ``"unchecked"``.
    prove : bool
        Leave no point out, and take up to ``seconds`` for that: :func:`prove_equal`.

    Raises
    ------
    ValueError
        If the numbers of roots or gates differ, a constraint or a gate is no condition, a variable has two ranges, or
        there are less than 0 seconds.
    TypeError
        If ``seconds`` is no number, or the roots are no lists of terms.

    >>> from eqsat import var
    >>> i, j = var("i", 0, 63), var("j", 0, 31)
    >>> check_equal([(i*32 + j) // 32], [i])
    Check(kind='exhaustive', points=2048, counterexample=None, proof='')
    >>> check_equal([i % 32], [i], gates=[i < 33]).counterexample
    {'i': 32}
    """
    refuse_seconds(seconds)
    if prove:
        return prove_equal(before, after, constraints=constraints, gates=gates, seconds=seconds, most=most)
    refuse_below(0, most, "points")
    known = [*map(holds, list_of(Expr, constraints, "the constraints"))]
    differs = differences(before, after, gates)
    check, _ = _evaluated(differs, known, gates, _Effort(most, samples, seed, steps=min(steps, MAX_STEPS)))
    return _with_elements(check, differs, known)


def prove_equal(
    before: Sequence[Expr],
    after: Sequence[Expr],
    *,
    constraints: Sequence[Expr] = (),
    gates: Sequence[Expr | None] = (),
    seconds: float = PROOF_SECONDS,
    most: int = MOST_POINTS,
    methods: Sequence[str] = (),
) -> Check:
    """Compare each root of ``before`` with the same root of ``after`` at every point, by evaluation or by reasoning.

    Parameters
    ----------
    before, after, constraints, gates, most
        As for :func:`check_equal`.
    seconds : float
        Time for all roots together.
    methods : sequence of str
        What may be tried where evaluation is too long, in this order; by default all of
        :data:`eqsat.prove.decide.METHODS`. Those that need a package that is not installed (the extra ``check``:
        islpy, z3) decide nothing.

    Returns
    -------
    Check
        ``"exhaustive"`` or ``"proved"`` if all was decided; else what was done, and ``proof`` says why no more.

    Raises
    ------
    ValueError, TypeError
        As :func:`check_equal`, and for an unknown method.

    >>> from eqsat import var
    >>> x = var("x", 0, 2**60)
    >>> prove_equal([(x*6 + 5) // 3], [x*2 + 1], methods=["boxes"])
    Check(kind='proved', points=1000, counterexample=None, proof='boxes')
    """
    refuse_seconds(seconds)
    refuse_below(0, most, "points")
    methods = list_of(str, methods, "the methods")
    refuse_unknown(methods)
    started, constraints = monotonic(), [*map(holds, list_of(Expr, constraints, "the constraints"))]
    steps = min(MAX_STEPS, max(FEW_STEPS, seconds * STEPS_PER_SECOND))
    effort = _Effort(most, PROOF_SAMPLES, 0, started + SWEEP_SHARE * seconds, started + seconds, steps)
    differs = differences(before, after, gates)
    check, left = _evaluated(differs, constraints, gates, effort)
    if not left or not check.equal:
        return _with_elements(check, differs, constraints)
    questions = [[*group.constraints, difference] for group in left for difference in group.differs]
    try:
        questions = [unrolled(question) for question in questions]
    except ValueError as error:
        return replace(check, proof=f"undecided: {error}")
    if any(map(buffers, questions)):
        # the others evaluate, and so know one content of the buffers alone
        methods = ("z3",)
    decision = decide(questions, started + seconds - monotonic(), methods)
    if decision.undecided:
        return replace(check, proof=f"undecided within {seconds:g} s: {decision.undecided}")
    found = Check("proved", check.points, decision.point, " and ".join(decision.methods))
    return _with_elements(found, differs, constraints)


def _with_elements(check: Check, differs: Sequence[Expr], constraints: Sequence[Expr]) -> Check:
    """The outcome with the elements that roots which differ, and constraints, read at the counterexample."""
    point = check.counterexample
    if point is None or not buffers([*differs, *constraints]):
        return check
    read = [t for t in (*differs, *constraints) if point.keys() >= {v.value for v in variables([t])}]
    read = [t for t in read if most_steps([t]) <= MAX_STEPS]
    wrong = [t for t in read if t in constraints or evaluate([t], point, total=True)[0]]
    return replace(check, counterexample=point | loaded_elements(wrong, point))


def _evaluated(
    differs: list[Expr], constraints: Sequence[Expr], gates: Sequence[Expr | None], effort: _Effort
) -> tuple[Check, list[_Group]]:
    """The outcome of evaluation, and the groups that it left open, if it found no difference in others."""
    too_long = [difference for difference in differs if most_steps([difference, *constraints]) > effort.steps]
    if not too_long:
        return _evaluated_in_groups(differs, constraints if differs else (), gates, effort)
    others = [difference for difference in differs if difference not in too_long]
    gates = [gate for gate in gates if gate is not None and most_steps([gate]) <= effort.steps]
    check, left = _evaluated_in_groups(others, constraints if others else (), gates, effort)
    if not check.equal:
        return check, []
    return replace(check, kind="unchecked"), [*left, _Group(too_long, list(constraints))]


def _evaluated_in_groups(
    differs: list[Expr], constraints: Sequence[Expr], gates: Sequence[Expr | None], effort: _Effort
) -> tuple[Check, list[_Group]]:
    """As :func:`_evaluated`, of roots none of which takes too many steps."""
    room = max(1, STEPS // most_steps([*differs, *constraints]))
    # a single point is no domain to choose from
    small, large = _groups(differs, list(constraints), max(1, min(effort.most, room)))
    points = 0
    open_groups: list[_Group] = []
    for group in small:
        try:
            count, counterexample = sweep(group.differs, group.constraints, effort.deadline if group.variables else inf)
        except TimeoutError:
            large.append(group)
            continue
        points += count
        if counterexample is not None:
            return Check("exhaustive", points, counterexample), []
        if buffers([*group.differs, *group.constraints]):
            # every point, but one content
            open_groups.append(group)
    if not large:
        return Check("sampled" if open_groups else "exhaustive", points), open_groups
    known = dict.fromkeys(chain.from_iterable(group.constraints for group in large))
    together = _Group([*chain.from_iterable(group.differs for group in large)], [*known])
    count, counterexample = _probe(together, gates, replace(effort, samples=min(effort.samples, room)))
    return Check("sampled", points + count, counterexample), large + open_groups


def differences(before: Sequence[Expr], after: Sequence[Expr], gates: Sequence[Expr | None]) -> list[Expr]:
    """The distinct conditions under which a root is wrong where its gate holds; identical terms need none."""
    before, after = list_of(Expr, before, "the roots before"), list_of(Expr, after, "the roots after")
    require(gates, Sequence, "the list of gates")
    gates = gates or [None] * len(before)
    if not len(before) == len(after) == len(gates):
        roots, conditions = counted(len(before), "root"), counted(len(gates), "gate")
        raise ValueError(f"{roots} before, {len(after)} after and {conditions}: give as many of each")
    found: dict[Expr, None] = {}
    for old, new, gate in zip(before, after, gates, strict=True):
        if old is not new:
            wrong = _wrong(old, new)
            found[wrong if gate is None else holds(gate) & wrong] = None
    return list(found)


def _wrong(old: Expr, new: Expr) -> Expr:
    """Where ``new`` does not have the value of ``old``, which has one."""
    before, after = has_value(old), has_value(new)
    wrong = old.ne(new) if after is before or after is TRUE else ~after | old.ne(new)
    return wrong if before is TRUE else before & wrong


def _groups(differs: list[Expr], constraints: list[Expr], most: int) -> tuple[list[_Group], list[_Group]]:
    """Groups of roots with a domain of up to ``most`` points, as few as possible, and groups of one domain each."""
    sets = VariableSets()
    extents = {sets.of(v): extent(v) for v in variables([*differs, *constraints])}

    def size(mask: int) -> int:
        return prod(count for bit, count in extents.items() if mask & bit)

    def group(mask: int, members: list[Expr]) -> _Group:
        return _Group(members, [c for c in constraints if sets.of(c) & mask])

    domains: dict[int, list[Expr]] = defaultdict(list)
    for condition in differs:
        domains[sets.tied(sets.of(condition), constraints)].append(condition)
    small: list[tuple[int, list[Expr]]] = []
    large: list[_Group] = []
    for mask, members in sorted(domains.items(), key=lambda item: size(item[0]), reverse=True):
        if size(mask) > most:
            large.append(group(mask, members))
            continue
        for index, (other, others) in enumerate(small):
            if size(other | mask) <= most:
                small[index] = other | mask, others + members
                break
        else:
            small.append((mask, members))
    return [group(*pair) for pair in small], large


def _probe(group: _Group, gates: Iterable[Expr | None], effort: _Effort) -> tuple[int, dict[str, int] | None]:
    """Compare at chosen points, and until the deadline at some for each gate: how many, and one that is wrong."""
    batches = [sample(group.variables, group.constraints, effort.samples, effort.seed, effort.deadline)]
    inside = set(group.variables)
    for gate in dict.fromkeys(gates):
        if gate is not None and monotonic() < effort.deadline and inside.issuperset(variables([gate])):
            reached = sum(int(np.count_nonzero(evaluate([gate], batch, total=True)[0])) for batch in batches)
            if reached < effort.samples // 100:
                known = [*group.constraints, gate]
                batches.append(sample(group.variables, known, effort.samples // 20, effort.seed, effort.deadline))
    points = 0
    for piece in chain.from_iterable(map(_pieces, batches)):
        if points and monotonic() > effort.end:
            break
        count = len(next(iter(piece.values())))
        points += count
        for verdict in evaluate(group.differs, piece, total=True):
            if verdict.any():
                at = select(piece, np.flatnonzero(np.broadcast_to(verdict, count))[:1])
                return points, {name: int(value[0]) for name, value in at.items()}
    return points, None


def _pieces(batch: Points) -> Iterator[Points]:
    """The points of a batch, in pieces of which each is twice as long as the last: some take seconds for hundreds."""
    count, start, size = len(next(iter(batch.values()))), 0, FIRST_PIECE
    while start < count:
        yield select(batch, slice(start, start + size))
        start, size = start + size, 2 * size
