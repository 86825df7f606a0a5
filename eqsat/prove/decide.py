"""Is there a point at which all of some conditions hold? Decision procedures, and how they share a time.

Each procedure takes conditions as :func:`eqsat.prove.boxes.restricted` leaves them and the seconds that it may take.
It returns a point, or None if there is none, and raises :class:`eqsat.prove.boxes.UndecidedError` if it was not run
to its end: then nothing is known. A point is believed only if evaluation agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import monotonic
from typing import cast

from eqsat.lang.expr import Expr
from eqsat.lang.ops import OWN, is_finite
from eqsat.lang.properties import value_of_range
from eqsat.lang.traversal import term_count, variables
from eqsat.lang.validation import counted
from eqsat.prove.boxes import Point, UndecidedError, confirmed, find_in_boxes, refuse_missing, restricted
from eqsat.prove.presburger import find_by_isl
from eqsat.prove.smt import Z3_LARGEST, limited, to_z3, z3

#: How long a term takes to become one of z3's: nothing ends that early.
Z3_SECONDS_PER_TERM = 1e-4

#: z3's own count of its work, per second: ends it where its clock is late.
Z3_RESOURCES = 50_000_000


def find_by_z3(conditions: Sequence[Expr], seconds: float) -> Point | None:
    """A point at which all ``conditions`` hold, or None if there is none, by z3 (the extra ``check``).

    Raises ``UndecidedError`` if z3 is not installed or does not decide in ``seconds``.
    """
    refuse_missing("z3")
    if term_count(conditions) * Z3_SECONDS_PER_TERM > seconds:
        raise UndecidedError("the terms are too many for z3")
    # a context of its own: what it does then depends on the conditions alone
    context = z3.Context()
    encoded = to_z3(conditions, context=context)
    inputs = variables(conditions)
    elements = [t for t in encoded if (t.op == "load" and not t.is_bool) or t.op in OWN]
    solver = limited(z3.Solver(ctx=context), max(1, int(min(seconds * Z3_RESOURCES, Z3_LARGEST))), seconds)
    bounded = [*inputs, *elements]
    solver.add([encoded[v] >= v.vmin for v in bounded if is_finite(v.vmin)])
    solver.add([encoded[v] <= v.vmax for v in bounded if is_finite(v.vmax)])
    solver.add([encoded[condition] for condition in conditions])
    answer = solver.check()
    if answer == z3.unsat:
        return None
    if answer == z3.unknown:
        raise UndecidedError(f"z3 does not decide ({solver.reason_unknown()})")
    model = solver.model()
    values = {v: model.eval(encoded[v], model_completion=True) for v in inputs}
    return confirmed(conditions, {cast(str, v.value): value.as_long() for v, value in values.items()})


#: The procedures by name, in the order in which they are tried; in ``"cases"`` isl decides the parts of the domain.
METHODS: dict[str, Callable[[Sequence[Expr], float], Point | None]] = {
    "isl": find_by_isl,
    "z3": find_by_z3,
    "boxes": find_in_boxes,
    "cases": partial(find_in_boxes, decide=find_by_isl),
}

#: What each procedure may take for one question, as shares of the whole time: all try briefly before one tries long.
SHARES = (0.02, 0.2, 1.0)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known about several questions, each of them whether there is a point at which some conditions hold."""

    #: A point for one of the questions; no more is known about the others then.
    point: Point | None
    #: What decided: ``"bounds"`` or names of :data:`METHODS`.
    methods: tuple[str, ...]
    #: Why some question is open, if no point was found; else empty.
    undecided: str = ""


def refuse_unknown(methods: Iterable[str]) -> None:
    """Raise ``ValueError`` if one of ``methods`` is not in :data:`METHODS`; the message names it."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"unknown method {method!r}: use some of {', '.join(METHODS)}")


def decide(questions: Iterable[Sequence[Expr]], seconds: float, methods: Sequence[str] = ()) -> Decision:
    """Whether some question has a point at which all its conditions hold, within ``seconds`` for all of them.

    ``methods`` are names of :data:`METHODS` to try, in this order; by default all.

    Raises ``ValueError`` if a method is none of them.
    """
    deadline = monotonic() + seconds
    refuse_unknown(methods)
    asked = [list(question) for question in questions]
    folded = {index: left for index, question in enumerate(asked) if (left := restricted(question, {})) is not None}
    used = {"bounds"} if len(folded) < len(asked) else set()
    reasons: dict[int, dict[str, str]] = {index: {} for index in folded}
    for share, method in product(SHARES, methods or METHODS):
        for index in list(reasons):
            left_over = deadline - monotonic()
            if left_over <= 0:
                break
            try:
                point = METHODS[method](folded[index], min(left_over, share * seconds))
                if point is not None:
                    # what was folded away has any value, unless the conditions do not hold there
                    inputs = {cast(str, v.value): value_of_range(v) for v in variables(asked[index])}
                    inputs |= {name: value for name, value in point.items() if name in inputs}
                    return Decision(confirmed(asked[index], inputs), (method,))
            except UndecidedError as error:
                reasons[index][method] = str(error)
                continue
            used.add(method)
            del reasons[index]
    return Decision(None, tuple(name for name in ("bounds", *METHODS) if name in used), _said(reasons, len(asked)))


def _said(reasons: Mapping[int, Mapping[str, str]], asked: int) -> str:
    """Why some of the questions that were asked are open; empty if none is."""
    if not reasons:
        return ""
    why = "; ".join(dict.fromkeys(next(iter(reasons.values())).values())) or "no time was left"
    remedy = ": pip install 'eqsat[check]'" if "is not installed" in why else ""
    return f"{len(reasons)} of {counted(asked, 'question')} open: {why}{remedy}"
