"""Definedness: divisions whose divisor may be zero where they are evaluated.

Inputs are evaluated lazily: a branch of a selection only where the condition chooses it, the body of a reduction only
in its range. A division by zero that is not evaluated is allowed; an input that evaluates one is refused.

Answers must satisfy more, because code for vectors and GPUs evaluates both branches of a selection, and what a gate
masks. So no divisor in an answer is zero at any point of the ranges and constraints, whatever gates and conditions hold
there, unless the input has that division too (:class:`AllowedDivisions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from eqsat.extract.graph import reached
from eqsat.lang.evaluation import undefined_somewhere
from eqsat.lang.expr import Expr, any_var, const, divides_by_zero, make, rebuild, replaced, stated
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.properties import has_reductions, may_divide_by_zero, suspects, symbolic_divisors
from eqsat.lang.traversal import mentions, topological
from eqsat.theory.arithmetic import Arithmetic
from eqsat.theory.forms import LinearForm, as_term, to_expr

#: By remainder, the quotient that it belongs to.
REMAINDERS = {"mod": "floordiv", "tmod": "tdiv"}


def unsafe_divisions(
    roots: Sequence[Expr], suspected: Collection[Expr], contexts: Sequence[Arithmetic | None], lazy: bool = True
) -> Iterator[tuple[Expr, Arithmetic]]:
    """The divisions below ``roots`` whose divisor may be zero where they are evaluated, each with the theory there.

    ``suspected`` are the ``suspects`` among the terms below the roots. If ``lazy``, a branch of a selection is
    evaluated only where it is chosen; else everywhere.
    """
    seen: set[tuple[Arithmetic, Expr]] = set()
    # by the theory of a branch, its condition and the theory outside
    outside: dict[Arithmetic, tuple[Expr, Arithmetic]] = {}
    pairs = zip(roots, contexts, strict=True)
    stack = [(root, theory) for root, theory in pairs if root in suspected and theory is not None]
    while stack:
        term, theory = stack.pop()
        if term not in suspected:
            continue
        # a term that does not depend on the condition is visited outside, so not once for each path of conditions to it
        while theory in outside and not _is_about(outside[theory][0], term, outside[theory][1]):
            theory = outside[theory][1]
        if (theory, term) in seen:
            continue
        seen.add((theory, term))
        if term.op in DIVISIONS and not _is_nonzero(term.args[1], theory):
            yield term, theory
        if term.op in ("where", "fwhere") and lazy:
            branches = live_branches(term, theory)
            outside |= {known: (term.args[0], theory) for _, known in branches if known is not theory}
            stack += [(term.args[0], theory), *branches]
        elif term.op in REDUCTIONS:
            inside = theory.inside(term)
            stack += [(term.args[0], inside)] if inside is not None else []
            stack += [(a, theory) for a in term.args[2:]]
        else:
            stack += [(a, theory) for a in term.args]


def undefined(order: Sequence[Expr], theory: Arithmetic) -> set[Expr]:
    """The terms of ``order``, operands first, that may divide by zero if no more is known than ``theory`` says.

    A junction that has one deciding member is defined, whatever its other members are.
    """
    suspected = suspects(order)
    found = {term for term in suspected if any(unsafe_divisions([term], suspected, [theory]))}
    points = None if not found or has_reductions(found) else theory.every_point(found)
    return found if points is None else found & undefined_somewhere(found, points)


def may_be_undefined(theory: Arithmetic, term: Expr) -> bool:
    """Whether a term is one of those that :func:`undefined` finds."""
    return term in undefined(topological([term]), theory)


def divides_outside_branches(term: Expr) -> bool:
    """Whether a division that may be by zero is outside all branches of selections and bodies of reductions."""

    def outside(part: Expr) -> tuple[Expr, ...]:
        return part.args[:1] if part.op == "where" else part.args[2:] if part.op in REDUCTIONS else part.args

    return any(map(may_divide_by_zero, reached([term], outside)))


def without_dead_divisions(roots: Sequence[Expr], theory: Arithmetic) -> list[Expr]:
    """``roots`` with zero in place of divisions by what is always zero, which are never evaluated.

    Such a division may have any value, so rules about divisions would equate terms that are not equal.
    """

    def dead(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        is_dead = may_divide_by_zero(term) and theory.bounds(theory.form(term.args[1])) == (0, 0)
        return const(0) if is_dead else None

    return rebuild(roots, dead)


def settled(roots: Sequence[Expr], theory: Arithmetic) -> list[Expr]:
    """``roots`` with zero in place of the divisions by zero that are never evaluated.

    Raises ``ValueError`` if one is evaluated for all that ``theory`` knows.

    >>> from eqsat.lang.expr import replaced, var
    >>> from eqsat.theory.linear import LinearArithmetic
    >>> x, d = var("x", 0, 9), var("d", 0, 3)
    >>> settled(replaced([where(d < 1, 0, x//d)], {d: const(0)}), LinearArithmetic())
    [Expr('where(0 < 1, 0, 0)')]
    """
    found = list(roots)
    while any(map(divides_by_zero, order := topological(found))):
        for division, _ in unsafe_divisions(found, suspects(order), [theory] * len(found)):
            if divides_by_zero(division):
                stated(division.op, *division.args)
        found = rebuild(found, lambda term, args: const(0) if divides_by_zero(term) else None)
    return found


class AllowedDivisions:
    """The divisions that an answer may have, although it may be evaluated at every point of the ranges and constraints.

    The divisor is never zero there, or the input divides the same dividend by the same divisor.

    Parameters
    ----------
    roots : sequence of Expr
        The input.
    suspected : collection of Expr
        The ``suspects`` among its terms.
    theory : Arithmetic
        What the ranges and constraints say: no gates.
    """

    def __init__(self, roots: Sequence[Expr], suspected: Collection[Expr], theory: Arithmetic) -> None:
        self.roots, self.theory = roots, theory
        found = unsafe_divisions(roots, suspected, [theory] * len(roots), lazy=False)
        self._of_input = {self._operands(division) for division, _ in found}
        self._never_zero: dict[LinearForm, bool] = {}

    def _operands(self, division: Expr) -> tuple[LinearForm, LinearForm]:
        dividend, divisor = division.args
        return self.theory.form(dividend), self.theory.form(divisor)

    def has(self, dividend: LinearForm, divisor: LinearForm) -> bool:
        """Whether an answer may divide ``dividend`` by ``divisor``."""
        if (found := self._never_zero.get(divisor)) is None:
            found = _is_nonzero(to_expr(divisor), self.theory)
            if found or not self.theory.late_or_raise():
                self._never_zero[divisor] = found
        return found or (dividend, divisor) in self._of_input

    def divisor(self, op: str, dividend: LinearForm, divisor: LinearForm) -> LinearForm:
        """What an answer may divide ``dividend`` by in place of ``divisor``: where the two differ, any value is right.

        That is not true of all remainders (:attr:`keeps_remainders`).
        """
        is_allowed = (op in REMAINDERS and self.keeps_remainders) or self.has(dividend, divisor)
        return divisor if is_allowed else self.instead_of(divisor)

    @cached_property
    def keeps_remainders(self) -> bool:
        """Whether a remainder counts where its divisor is zero.

        The closed form of a loop may have ``d*(x//d)``, which is 0 there for any quotient. Written ``x - x % d`` it
        needs the remainder that belongs to the quotient.
        """
        return has_reductions(self.roots)

    @cached_property
    def _of_roots(self) -> set[LinearForm]:
        return self._divisors(self.roots)

    def adds_divisor(self, root: Expr) -> bool:
        """Whether a divisor below ``root``, other than literals, is none of the divisors of the input."""
        return not self._divisors([root]) <= self._of_roots

    def _divisors(self, roots: Sequence[Expr]) -> set[LinearForm]:
        return {self.theory.form(divisor) for divisor in symbolic_divisors(roots)}

    def instead_of(self, divisor: LinearForm) -> LinearForm:
        """A form that equals ``divisor`` where that is not zero, and is never zero."""
        found = self.theory.form(kept_from_zero(to_expr(divisor)))
        self._never_zero[found] = True
        return found

    def missing(self, roots: Sequence[Expr], suspected: Collection[Expr]) -> Iterator[Expr]:
        """The divisions below ``roots`` that an answer may not have."""
        for division, _ in unsafe_divisions(roots, suspected, [self.theory] * len(roots), lazy=False):
            if not self.has(*self._operands(division)):
                yield division


def defined(
    roots: Sequence[Expr], contexts: Sequence[Arithmetic | None], allowed: AllowedDivisions | None = None
) -> list[Expr]:
    """Answers with divisors that are never zero. Where one was zero, any quotient is right, but the same everywhere.

    So the remainder is the dividend there: ``x % d`` is ``x - x//d*d``. It is written so unless it is not used there.
    With ``allowed``, divisors are also replaced in divisions that it does not have.
    """
    answers, kept = list(roots), set[Expr]()
    while True:
        suspected = suspects(topological(answers))
        zero = {d for d, _ in unsafe_divisions(answers, suspected, contexts) if d.args[1] not in kept}
        used = {d for d in zero if d.op in REMAINDERS and _is_used(d, answers, contexts)}
        missing = allowed.missing(answers, suspected) if allowed is not None else ()
        unsafe = zero.union([d for d in missing if d.args[1] not in kept])
        if not unsafe:
            return answers
        # a replaced divisor may change the value of another divisor, which the next round finds
        answers = _with_divisors_kept_from_zero(answers, unsafe, used, kept)


def _with_divisors_kept_from_zero(
    roots: Sequence[Expr], unsafe: Collection[Expr], used: Collection[Expr], kept: set[Expr]
) -> list[Expr]:
    """``roots`` with other divisors in ``unsafe`` divisions, added to ``kept``; remainders ``used`` as sums."""

    def never_zero(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term not in unsafe:
            return None
        divisor = kept_from_zero(args[1])
        kept.add(divisor)
        if term in used:
            return args[0] - make(REMAINDERS[term.op], args[0], divisor) * args[1]
        return make(term.op, args[0], divisor)

    return rebuild(roots, never_zero)


def _is_used(division: Expr, roots: Sequence[Expr], contexts: Sequence[Arithmetic | None]) -> bool:
    """Whether the value of a division may decide that of a root where its divisor is zero."""
    value = any_var("#value", division.vmin, division.vmax)
    for root, theory in zip(replaced(roots, {division: value}), contexts, strict=True):
        there = None if theory is None else theory.assuming(theory.condition(division.args[1].eq(0)))
        if there is not None and mentions(as_term(there.value(root)), value):
            return True
    return False


def kept_from_zero(divisor: Expr) -> Expr:
    """``divisor`` where it is not zero, and a number of its range elsewhere."""
    if divisor.vmin > 0 or divisor.vmax < 0:
        return divisor
    if divisor.vmin < 0 < divisor.vmax:
        return where(divisor.eq(0), 1, divisor)
    return maximum(divisor, 1) if divisor.vmin >= 0 else minimum(divisor, -1)


def live_branches(selection: Expr, theory: Arithmetic) -> list[tuple[Expr, Arithmetic]]:
    """The branches of a selection that may be taken, and what is known there."""
    condition = theory.condition(selection.args[0])
    inside = (theory.assuming(condition), theory.assuming(theory.negate(condition)))
    return [(branch, known) for branch, known in zip(selection.args[1:], inside, strict=True) if known is not None]


def _is_about(condition: Expr, term: Expr, theory: Arithmetic) -> bool:
    """Whether a condition, with what else is known, may say anything about the variables of a term."""
    sets = theory.variables
    reached = sets.tied(sets.of(condition), theory.holding())
    return not reached or bool(reached & sets.of(term))


def _is_nonzero(divisor: Expr, theory: Arithmetic) -> bool:
    """Whether a divisor is known never to be zero; a selection, if no branch is where it is taken."""
    stack = [(divisor, theory)]
    while stack:
        term, known = stack.pop()
        if known.is_nonzero(known.form(term)) or known.excludes(term.eq(0)):
            continue
        if term.op != "where":
            return False
        stack += live_branches(term, known)
    return True
