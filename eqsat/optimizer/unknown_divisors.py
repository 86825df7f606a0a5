"""Divisions by what may be zero as far as is known; the answer is equal wherever the input is defined.

A load stands for each such division: of an array for its operator, indexed by dividend and divisor. So equal operands
have equal quotients, and no other law holds. The answer has the divisions again. A division that the input
evaluates at some points alone, in a branch or under a gate, comes back with a divisor that is never zero. On request
the divisors of divisions that the input evaluates at every point are taken not to be zero, as a fact like others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import inf
from operator import or_

from eqsat.lang.costs import cost_of
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import TRUE, Expr, any_buffer, const, make, rebuild
from eqsat.lang.functions import maximum, minimum, where
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.properties import VariableSets, may_divide_by_zero, suspects
from eqsat.lang.traversal import Buffer, chain_members, topological, with_users
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.optimisation import cheapest
from eqsat.optimizer.result import Result
from eqsat.theory.arithmetic import OverdueError, Work
from eqsat.theory.definedness import kept_from_zero, unsafe_divisions
from eqsat.theory.linear import LinearArithmetic

#: By operator, the array for divisions that the input evaluates at every point, and for others.
_ALWAYS = {op: any_buffer(Buffer(f"@{op}", "int")) for op in sorted(DIVISIONS)}
_SOMETIMES = {op: any_buffer(Buffer(f"@{op}?", "int")) for op in sorted(DIVISIONS)}
_OPERATOR = {array: op for arrays in (_ALWAYS, _SOMETIMES) for op, array in arrays.items()}
#: By operator, the places of the operands whose values must have bounds: it is refused otherwise.
_NEEDS_BOUNDS = {"shl": (1,), "shr": (1,), "prod_over": (2, 3)}
#: Of a reduction the ends of the range: they give the index its bounds, which such an operator in the body may need.
_ENDS = (2, 3)
#: A path to a term: the conditions, in normal form, that choose it.
Path = frozenset[Expr]


@dataclass(frozen=True)
class Input:
    """What is optimised, and what is known of it."""

    roots: tuple[Expr, ...]
    facts: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]

    def rewritten(self, rewrite: Callable[[list[Expr]], list[Expr]]) -> Input:
        """The input with other roots and gates, which ``rewrite`` makes of them."""
        count, known = len(self.roots), [gate for gate in self.gates if gate is not None]
        terms = rewrite([*self.roots, *known])
        gates = iter(terms[count:])
        return Input(
            tuple(terms[:count]), self.facts, tuple([None if gate is None else next(gates) for gate in self.gates])
        )


def with_hidden_divisions(given: Input, assume: bool, until: float = inf) -> Input:
    """The input with loads in the place of divisions by what may be zero; itself if it has no such division.

    With ``assume`` it is a fact that a divisor is not zero if the input divides by it at every point. If finding such
    divisions takes until ``until``, all divisions whose divisor has a range with 0 are hidden, and nothing is assumed.

    >>> from eqsat.lang.expr import var
    >>> x, d = var("x", 0, 9), var("d", 0, 3)
    >>> given = Input((x // d + x // (d + 1),), (), (None,))
    >>> with_hidden_divisions(given, assume=False).roots
    (Expr('@floordiv[x, d] + x//(d + 1)'),)
    >>> with_hidden_divisions(given, assume=True).facts
    (Expr('d != 0'),)
    """
    try:
        return _with_hidden_divisions(given, assume, until)
    except OverdueError:
        return _with_all_hidden(given)


def _with_hidden_divisions(given: Input, assume: bool, until: float) -> Input:
    assumed: set[Expr] = set()
    work = Work() if until == inf else Work.ending(until)
    while unknown := _unknown_divisions(given, work):
        work.late_or_raise()
        always = _evaluated_always(given, unknown)
        if assume and not always <= assumed:
            assumed |= always
            given = _with_divisors(given, [division for division in unknown if division in always])
            continue
        images = {d: (_ALWAYS if d in always else _SOMETIMES)[d.op][d.args] for d in unknown}
        given = _with_loads(given, images)
    return given


def _with_loads(given: Input, images: Mapping[Expr, Expr]) -> Input:
    hide = partial(_with_images, image=lambda term, _: images.get(term))
    return replace(given.rewritten(hide), facts=tuple(hide(given.facts)))


def _with_all_hidden(given: Input) -> Input:
    def hidden(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        return _SOMETIMES[term.op][args] if may_divide_by_zero(term) else None

    return given.rewritten(partial(_with_images, image=hidden))


def _with_images(terms: Iterable[Expr], image: Callable[[Expr, tuple[Expr, ...]], Expr | None]) -> list[Expr]:
    """``terms`` with some subterms replaced by what ``image`` returns for them and their new operands.

    Nothing is known of the values of a load. Where an operand must have bounds, it is clamped to those that it had.
    """

    def image_of(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        found = image(term, args)
        if found is not None or args == term.args:
            return found
        places = _NEEDS_BOUNDS.get(term.op, ())
        if term.op in REDUCTIONS and any(part.op in _NEEDS_BOUNDS for part in topological([term.args[0]])):
            places = _ENDS
        if not places:
            return None
        operands = [*args]
        for place in places:
            operands[place] = _clamped(args[place], term.args[place].vmin, term.args[place].vmax)
        return make(term.op, *operands)

    return rebuild(terms, image_of)


def _clamped(term: Expr, low: int, high: int) -> Expr:
    term = term if term.vmin >= low else maximum(term, low)
    return term if term.vmax <= high else minimum(term, high)


def _unclamped(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """The operand of a minimum or maximum that equals it by the bounds of both, if an operand is new, or ``None``."""
    if args == term.args or term.op not in ("min", "max") or term.is_bool:
        return None
    for one, other in (args, args[::-1]):
        if (one.vmax <= other.vmin) if term.op == "min" else (one.vmin >= other.vmax):
            return one
    return None


def _with_divisors(given: Input, divisions: Sequence[Expr]) -> Input:
    """The input with the facts that divisors are not zero; itself if one is always zero: it is defined nowhere."""
    facts = tuple(dict.fromkeys([*given.facts, *[division.args[1].ne(0) for division in divisions]]))
    try:
        LinearArithmetic(facts)
    except ContradictionError:
        return given
    return replace(given, facts=facts)


def _unknown_divisions(given: Input, work: Work) -> list[Expr]:
    """The innermost divisions by what may be zero under all that is known where they are evaluated."""
    suspected = suspects(topological(given.roots))
    if not suspected:
        return []
    try:
        base = LinearArithmetic(given.facts, work=work)
    except ContradictionError:
        # the optimisation raises this error
        return []
    contexts = [base if gate is None else base.assuming(base.condition(gate)) for gate in given.gates]
    found = dict.fromkeys([division for division, _ in unsafe_divisions(given.roots, suspected, contexts)])
    containing = with_users(found, topological(found))
    return [d for d in found if containing.isdisjoint(d.args)]


def _evaluated_always(given: Input, divisions: Sequence[Expr]) -> set[Expr]:
    """The divisions by whose divisor a root without a gate divides at every point, whatever conditions choose."""
    places: dict[Expr, int] = {}
    bits = {division: 1 << places.setdefault(division.args[1], len(places)) for division in divisions}
    roots = [root for root, gate in zip(given.roots, given.gates, strict=True) if gate is None]
    needed: dict[Expr, int] = {}
    for term in topological(roots):
        own, parts = bits.get(term, 0), [needed[a] for a in term.args]
        if term.op == "where":
            needed[term] = parts[0] | parts[1] & parts[2]
        elif term.op in ("and", "or"):
            needed[term] = parts[0] & parts[1]
        else:
            needed[term] = reduce(or_, parts[2:] if term.op in REDUCTIONS else parts, own)
    always = reduce(or_, [needed[root] for root in roots], 0)
    return {division for division, bit in bits.items() if bit & always}


def with_divisions(result: Result, given: Input, hidden: Input, alone: bool) -> Result:
    """The result for the input ``given``, as ``hidden`` was optimised; the input itself if that costs less.

    Costs are compared for each root ``alone``, or for all together.
    """
    found = rebuild(result.exprs, partial(_restored, elsewhere=_evaluated_elsewhere(result)))
    exprs = cheapest(found, given.roots, result.model, alone)
    facts = [*given.facts, *rebuild([*hidden.facts, *_nowhere_zero(result.before)], _restored)]
    return replace(
        result,
        before=given.roots,
        exprs=tuple(exprs),
        constraints=tuple(dict.fromkeys(facts)),
        gates=given.gates,
        cost_before=cost_of(given.roots, result.model),
        cost=cost_of(exprs, result.model),
        bound=None,
        snapshot=None,
    )


def _restored(term: Expr, args: tuple[Expr, ...], elsewhere: Collection[Expr] = ()) -> Expr | None:
    """The division that a load stands for; its divisor is kept from zero if it is among those of ``elsewhere``."""
    op = _OPERATOR.get(term.args[0]) if term.op == "load" else None
    if op is None:
        return _unclamped(term, args)
    if args[2].vmin == args[2].vmax == 0:
        # the input has no value where this is evaluated
        return const(0)
    return make(op, args[1], kept_from_zero(args[2]) if term in elsewhere else args[2])


def _evaluated_elsewhere(result: Result) -> set[Expr]:
    """The divisions of the answer that it may evaluate where the input does not.

    It may not if the input has a division of the same value; if the input evaluates that at some points only, it must
    be on the same paths.
    """
    of_input, found = _hidden_divisions(result.before), _hidden_divisions(result.exprs)
    sometimes = {t for t in found if t.args[0] in _SOMETIMES.values()}
    found -= of_input - sometimes
    if not found or result.exprs == result.before:
        return set()
    theory = LinearArithmetic(result.constraints)
    own = {_meaning(theory, t) for t in of_input}
    found = {t for t in found if t in sometimes or _meaning(theory, t) not in own}
    if not sometimes:
        return found
    before, after = _paths(theory, result.before, result.gates), _paths(theory, result.exprs, result.gates)
    if before is None or after is None:
        return found
    paths_of: dict[object, list[Path]] = {}
    for term, paths in before.items():
        paths_of.setdefault(_meaning(theory, term), []).extend(paths)
    covered = {
        term
        for term, paths in after.items()
        if all(any(theirs <= path for theirs in paths_of.get(_meaning(theory, term), ())) for path in paths)
    }
    return found - covered


def _nowhere_zero(roots: Sequence[Expr]) -> list[Expr]:
    """Facts that no divisor of a hidden division is zero; in a reduction, for no value of its index."""
    sets, found = VariableSets(), dict[Expr, None]()
    # a term, and the reductions around it, the innermost first
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(root, ()) for root in roots]
    seen: set[tuple[Expr, tuple[Expr, ...]]] = set()
    while stack:
        item = term, around = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if term.op == "load" and term.args[0] in _OPERATOR:
            nonzero = term.args[2].ne(0)
            for _, index, low, high in [over.args for over in around]:
                if sets.of(nonzero) & sets.of(index):
                    nonzero = make("sum_over", where(nonzero, 0, 1), index, low, high).eq(0)
            found[nonzero] = None
        inside = (term, *around)
        stack += [(a, inside if term.op in REDUCTIONS and n == 0 else around) for n, a in enumerate(term.args)]
    return list(found)


def _hidden_divisions(roots: Sequence[Expr]) -> set[Expr]:
    return {t for t in topological(roots) if t.op == "load" and t.args[0] in _OPERATOR}


def _meaning(theory: LinearArithmetic, load: Expr) -> object:
    """The operator of a hidden division, and its dividend and divisor in normal form."""
    return _OPERATOR[load.args[0]], theory.form(load.args[1]), theory.form(load.args[2])


def _paths(
    theory: LinearArithmetic, roots: Sequence[Expr], gates: Sequence[Expr | None]
) -> dict[Expr, list[Path]] | None:
    """The paths to each hidden division that is not always evaluated; ``None`` if there are too many."""
    found: dict[Expr, list[Path]] = {}
    seen: set[tuple[Expr, Path]] = set()
    stack = [
        (root, _and(frozenset(), theory, TRUE if gate is None else gate))
        for root, gate in zip(roots, gates, strict=True)
    ]
    while stack:
        term, path = stack.pop()
        if (term, path) in seen:
            continue
        if len(seen) > LIMITS.paths:
            return None
        seen.add((term, path))
        if term.op == "load" and term.args[0] in _SOMETIMES.values():
            found.setdefault(term, []).append(path)
        if term.op == "where":
            condition, x, y = term.args
            stack += [(condition, path), (x, _and(path, theory, condition)), (y, _and(path, theory, ~condition))]
        elif term.op in REDUCTIONS or term.op in ("and", "or"):
            # a member, or a body, is on a path of its own
            own = frozenset([*path, term])
            stack += [(arg, own) for arg in term.args]
        else:
            stack += [(arg, path) for arg in term.args]
    return found


def _and(path: Path, theory: LinearArithmetic, condition: Expr) -> Path:
    normal = theory.condition(condition)
    return path.union(chain_members(normal, "and")) - {TRUE}
