"""The providers: what proposes alternatives and is no rule, in one list, each with the kind of its proof.

A rule is a law, and says by itself where it applies. A provider searches: it fits conditions to intervals, reads
equalities off sample points, or chooses again from another start. What it proposes is an e-node of a class, or an
equality of terms, and is proved in one of the ways of :class:`Proof`. :func:`provides` marks the function that does it,
and :func:`without` leaves some out, which is how ``benchmarks/ablation.py`` measures what each is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any, cast

from eqsat.lang.validation import did_you_mean


class Proof(Enum):
    """Why what a provider proposes is true."""

    NORMAL_FORM = "the theory finds that both have one normal form"
    POINTS = "evaluation at every point, or bounds"
    LAW = "a law, which the tests try at every point of small ranges"
    NOTHING_NEW = "it chooses among e-nodes that are there"


@dataclass(frozen=True)
class Provider:
    """A source of alternatives that is no rule: its name, what it proposes, and how that is proved."""

    name: str
    proposes: str
    proof: Proof


#: All providers, in the order in which they take part in a run.
PROVIDERS = (
    Provider("conjectures", "equalities and bounds that sample points suggest", Proof.POINTS),
    Provider("input", "terms of the input as they are written", Proof.NORMAL_FORM),
    Provider("hidden laws", "divisions and products of the input by laws that normal forms hide", Proof.LAW),
    Provider("sums in selections", "where(p, x + z, y + z) for where(p, x, y) + z", Proof.NORMAL_FORM),
    Provider("ranges", "sums over ranges as one, or over what only one of two has", Proof.NORMAL_FORM),
    Provider("factored products", "(y + z)*x for x*y + x*z", Proof.NORMAL_FORM),
    Provider("nested quotients", "x//(n*k) as a quotient of a quotient that is there", Proof.NORMAL_FORM),
    Provider("other comparisons", "comparisons with terms moved across, or digit by digit", Proof.NORMAL_FORM),
    Provider("merged comparisons", "x < min(y, z) for x < y and x < z", Proof.NORMAL_FORM),
    Provider("congruent remainders", "remainders of sums that are there and congruent", Proof.NORMAL_FORM),
    Provider("partial sums", "sums bracketed so that they share parts", Proof.NORMAL_FORM),
    Provider("linear programs", "short sums by shifts and shared parts", Proof.NORMAL_FORM),
    Provider("partial conditions", "junctions bracketed so that they share parts", Proof.NORMAL_FORM),
    Provider("start from the input", "a second choice, of what the input is written with", Proof.NOTHING_NEW),
    Provider("start without loops", "a further choice, of closed forms", Proof.NOTHING_NEW),
    Provider("availability", "what uses values that are computed anyway", Proof.NORMAL_FORM),
    Provider("intervals", "conditions as intervals of sums that are there", Proof.POINTS),
    Provider("windows", "whether a sum is in a window, by one remainder or quotient", Proof.LAW),
    Provider("start without rules", "a second choice, of what is best without rules", Proof.NOTHING_NEW),
    Provider("flat index", "the answer with a sum that the input takes apart as one variable", Proof.NORMAL_FORM),
    Provider(
        "shifted variables", "the answer with x + 5 as one variable where the input has x only so", Proof.NORMAL_FORM
    ),
    Provider("answer read again", "the answer's own normal forms", Proof.NORMAL_FORM),
)


_NAMES = frozenset(provider.name for provider in PROVIDERS)
_LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("left_out", default=frozenset())


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Leave providers out of all runs of this thread inside a ``with`` block.

    Parameters
    ----------
    names : str
        Names of :data:`PROVIDERS`.

    Raises
    ------
    ValueError
        If there is no provider of that name.

    >>> from eqsat import optimize
    >>> with without("factored products"):
    ...     optimize("x*z + y*z", x=(0, 9), y=(0, 9), z=(0, 9)).cost
    7
    >>> optimize("x*z + y*z", x=(0, 9), y=(0, 9), z=(0, 9)).cost
    4
    """
    if unknown := [name for name in names if name not in _NAMES]:
        near = did_you_mean(unknown[0], sorted(_NAMES))
        raise ValueError(f"no provider is called {unknown[0]!r}: there are {', '.join(sorted(_NAMES))}{near}")
    token = _LEFT_OUT.set(_LEFT_OUT.get() | frozenset(names))
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def provides[F: Callable[..., Any]](
    name: str, otherwise: Callable[..., Any] = lambda *_, **__: iter(())
) -> Callable[[F], F]:
    """Mark what a provider does; ``otherwise``, which takes the same arguments, is done where it is left out."""
    assert name in _NAMES, name

    def marked(function: F) -> F:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return (otherwise if name in _LEFT_OUT.get() else function)(*args, **kwargs)

        return cast(F, called)

    return marked
