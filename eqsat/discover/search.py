"""The cheapest term equal to a given one: terms by increasing cost, one for each vector of values, and a last step.

A term is its values at 64 points of the domain; a point at which a term found was wrong is added, and the search begins
anew. A pass takes as free the variables, literals, and the subterms of one term of the input or the answer (its *base*,
which is paid once), and grows all terms over them by increasing cost until there are too many. The last step looks for
the two or three terms of which one operator, or a scaled sum, makes the target: sums by linear hashes, selections,
minima and junctions by the set of points at which a term meets the target, comparisons by their extremes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqsat.extract.cost import CostModel
from eqsat.extract.graph import Bounds
from eqsat.lang.costs import cost_of, reduced, strength_reduced
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.lang.ops import BITWISE, DIVISIONS, OPS
from eqsat.lang.sampling import grid, sample
from eqsat.lang.traversal import domain_size, topological, tree_size, variables
from eqsat.prove.verify import check_equal

Values = NDArray[np.int64]
#: Rows of terms in a pool.
Rows = NDArray[np.int64]
#: Operators with the sort of what they make and the rows of their operands; terms with what they cost.
Steps = Iterator[tuple[int, str, tuple[Rows, ...]]]
Priced = Iterator[tuple[int, Expr]]
#: Sets of points, a bit for each.
Sets = NDArray[np.uint64]

#: Points at which terms are told apart: as many as a word has bits.
POINTS = 64
#: Literals that terms are grown with.
MOST_LITERALS = 11
#: Variables, literals and terms with larger values are left out; so are roots, of which any part has larger ones than
#: ``WIDEST``: their values and the differences of these fit 64 bits.
LARGEST, WIDEST = 2**31, 2**62
#: Roots that would be written with more operators and leaves are not searched.
LONGEST = 120
#: How many terms of one pass are compared with the root on its domain, and how often a pass begins anew because a term
#: was wrong at a point that is then added.
MOST_TRIED = 40
MOST_ROUNDS = 8
#: Sets of points that are combined, the cheapest and largest first.
MOST_SETS = 1500
#: Costs up to which terms are grown one by one; those of answers that cost more are counted in units of a hundredth.
MOST_COST = 200

_WEIGHTS = np.random.default_rng(1).integers(-(2**62), 2**62, POINTS) | 1
_ALL = np.uint64(2**64 - 1)
_INTEGERS = ("add", "sub", "mul", "min", "max")
_COMPARISONS = ("lt", "le", "eq", "ne")


@dataclass(frozen=True)
class Effort:
    """How much is looked at."""

    #: The most terms that a pass keeps, of integers and of conditions.
    terms: int = 30_000
    #: The most terms that one step computes.
    at_once: int = 400_000
    #: The most bases that are tried.
    bases: int = 6
    #: By which prices terms are grown, up to the cost of the answer by these prices; by default those of the model. The
    #: number of operators reaches all short terms in few steps, whatever divisions cost.
    growth: CostModel | None = None


FULL = Effort()


@dataclass(frozen=True)
class _InUnits:
    """The prices of a model in larger units, rounded up: a measured one has prices of thousands."""

    model: CostModel
    unit: int

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        return -(-self.model.price(op, operands, result) // self.unit)


@dataclass(frozen=True)
class Found:
    """What a search found."""

    #: The cheapest term known, equal to the input.
    term: Expr
    cost: int
    #: Whether all terms that cost less were looked at: those over the literals of the case, if each use of a shared
    #: subterm is paid.
    least: bool


def search(root: Expr, answer: Expr, model: CostModel, effort: Effort = FULL) -> Found:
    """The cheapest term found that equals ``root``, and costs no more than ``answer``, an equal one.

    The root must be one that :func:`within_reach` accepts.
    """
    best, cost = answer, cost_of([answer], model)
    by_forms = strength_reduced(model)
    if not cost:
        return Found(best, cost, True)
    names = variables([root])
    points = _first_points(root, names)
    complete = -2
    growth = _InUnits(by_forms, -(-cost // 100)) if effort.growth is None and cost > MOST_COST else effort.growth
    grown, most = (by_forms, cost) if growth is None else (growth, cost_of([answer], growth) + 1)
    for base in _bases(root, answer, most, grown)[: effort.bases + 1]:
        for _ in range(MOST_ROUNDS):
            pools = Pools(root, answer, base, names, points, grown, cost if growth is None else most, effort)
            candidates = reduced(pools.candidates(), by_forms)
            best, cost, wrong = _cheapest_equal(root, candidates, best, cost, model)
            # what is free may be added to any term
            if base is None and growth is None and not pools.has_free_operators:
                complete = max(complete, pools.complete)
            if wrong is None:
                break
            # the newest points are told apart first
            points = {name: np.append(wrong.get(name, values[0]), values[:-1]) for name, values in points.items()}
    # the last step looks at all terms that cost up to 1 more than those that were grown
    return Found(best, cost, cost <= complete + 2)


def _cheapest_equal(
    root: Expr, candidates: Iterable[Expr], best: Expr, cost: int, model: CostModel
) -> tuple[Expr, int, dict[str, int] | None]:
    """The cheapest of ``best``, which has that ``cost``, and the candidates that equal ``root``; and its cost.

    Also a point at which a candidate has another value, if one has: those behind it are not looked at then.
    """
    for term in candidates:
        price = cost_of([term], model)
        if price >= cost:
            continue
        check = check_equal([root], [term], prove=True, seconds=5)
        if check.counterexample:
            return best, cost, check.counterexample
        if check.kind in ("exhaustive", "proved"):
            best, cost = term, price
    return best, cost, None


def _first_points(root: Expr, names: Sequence[Expr]) -> dict[str, Values]:
    """Points of the domain: all, if they are few, else corners, random ones, and both sides of rare jumps in value."""
    if domain_size(names) > 2**16:
        return {name: values.astype(np.int64) for name, values in sample(names, [], POINTS, seed=0).items()}
    whole = grid(names)
    columns = dict(zip(whole, [c.ravel() for c in np.broadcast_arrays(*whole.values())], strict=True))
    if domain_size(names) <= POINTS:
        return {name: np.resize(c, POINTS) for name, c in columns.items()}
    values = evaluate([root], columns, total=True)[0]
    steps = np.diff(np.asarray(values, dtype=np.int64))
    _, first, counts = np.unique(steps, return_index=True, return_counts=True)
    rare = [p for k in np.argsort(counts)[:8] for p in (first[k], first[k] + 1)]
    spread = np.random.default_rng(0).permutation(len(values))
    chosen = np.array(list(dict.fromkeys([0, len(values) - 1, *rare, *spread[:POINTS]]))[:POINTS])
    return {name: np.resize(c[chosen], POINTS) for name, c in columns.items()}


def _bases(root: Expr, answer: Expr, cost: int, model: CostModel) -> list[Expr | None]:
    """No base, and the subterms that cost less than the answer, the most expensive first."""
    terms = {t: cost_of([t], model) for t in topological([root, answer]) if t.args}
    # of a quotient the remainder is one too, and the other way round: their pass has what they compute for free
    for t in [t for t in terms if t.op in DIVISIONS]:
        for partner in (make("floordiv", *t.args), make("mod", *t.args)):
            terms[partner] = cost_of([partner], model)
    fits = [t for t, price in terms.items() if price < cost and t not in (root, answer)]
    return [None, *sorted(fits, key=lambda t: -terms[t])]


class Pools:
    """The terms of one pass, integers and conditions, and the last step. Costs are without that of the base."""

    def __init__(
        self,
        root: Expr,
        answer: Expr,
        base: Expr | None,
        names: Sequence[Expr],
        points: dict[str, Values],
        model: CostModel,
        cost: int,
        effort: Effort,
    ) -> None:
        self.model, self.effort = model, effort
        self._prices: dict[tuple[Any, ...], int] = {}
        self.is_whole = base is None
        self.paid = cost_of([base], model) if base is not None else 0
        #: What a term may cost at most beside the base.
        self.budget = cost - 1 - self.paid
        self.target = self._evaluated([root], points)[0]
        self.is_bool = root.is_bool
        shared = [t for t in topological([base]) if t.args] if base is not None else []
        leaves = [*names, *shared]
        self.literals = _literals(root, answer)
        integers = [t for t in leaves if not t.is_bool] + [const(c) for c in (0, *self.literals)]
        conditions = [t for t in leaves if t.is_bool] + [FALSE, TRUE]
        self.pools = [Pool(t, self._evaluated(t, points)) for t in (integers, conditions)]
        self.operators = {t.op for t in topological([root, answer])}
        #: All terms up to this cost are there.
        self.complete = self._grow()

    def _evaluated(self, terms: Sequence[Expr], points: dict[str, Values]) -> Values:
        values = evaluate(terms, points, total=True)
        return np.array([np.broadcast_to(v, POINTS) for v in values], dtype=np.int64)

    def price(self, op: str, *operands: int | bool) -> int:
        """The price over operands that are literals (integers), or others (bools: whether they may be negative)."""
        key = (op, *[(type(x), x) for x in operands])
        if key not in self._prices:
            bounds = [((-99 if x else 0), 1000) if isinstance(x, bool) else (x, x) for x in operands]
            self._prices[key] = self.model.price(op, bounds, (-99, 1000))
        return self._prices[key]

    @property
    def has_free_operators(self) -> bool:
        """Whether some operator costs nothing on terms that are no literals."""
        return any(
            price == 0 and all(kind is bool for kind, _ in operands) for (_, *operands), price in self._prices.items()
        )

    def _grow(self) -> int:
        """Add the terms of each cost, and return the cost up to which all are there."""
        for cost in range(1, max(1, self.budget)):
            parts: list[list[Values]] = [[], []]
            made: list[list[NDArray[np.int32]]] = [[], []]
            size = 0
            for sort, op, operands in self._steps(cost):
                size += len(operands[0])
                if size > self.effort.at_once or max(len(p.costs) for p in self.pools) > self.effort.terms:
                    return cost - 1
                values = _applied(op, [self.pools[s].values[at] for s, at in zip(_sorts(op), operands, strict=True)])
                _, is_known = self.pools[sort].places(_hash(values))
                fresh = np.flatnonzero((np.abs(values) < LARGEST).all(axis=1) & ~is_known)
                parts[sort].append(values[fresh])
                rows = np.full((len(fresh), 4), -1, np.int32)
                rows[:, 0] = _CODES[op]
                for place, at in enumerate(operands):
                    rows[:, place + 1] = at[fresh]
                made[sort].append(rows)
            for pool, found, how in zip(self.pools, parts, made, strict=True):
                if found:
                    pool.add(np.concatenate(found), np.concatenate(how), cost)
            if max(len(p.costs) for p in self.pools) > self.effort.terms:
                return cost
        return max(0, self.budget - 1)

    def _steps(self, cost: int) -> Steps:
        """Each operator with the rows of its operands, such that the whole costs ``cost``."""
        integers, conditions = self.pools
        for op in ("floordiv", "mod"):
            yield from self._by_literals(op, cost, (False, True))
        for op in [*_INTEGERS, *sorted(self.operators & BITWISE)]:
            if op == "mul":
                yield from self._by_literals(op, cost, (None,))
            yield from self._pairs(0, op, integers, cost - self.price(op, False, False), op == "mul")
        for op in _COMPARISONS:
            yield from self._pairs(1, op, integers, cost - self.price(op, False, False))
        for op in ("and", "or"):
            yield from self._pairs(1, op, conditions, cost - self.price(op, False, False))
        yield from self._selecting(cost - self.price("where", False, False, False))

    def _by_literals(self, op: str, cost: int, signs: Sequence[bool | None]) -> Steps:
        """The operator with the rows of terms, of each of the signs, and of a literal."""
        integers, _ = self.pools
        for at in integers.literals:
            c = int(integers.values[at, 0])
            if c < 2 and op != "mul":
                continue
            for signed in signs:
                x = integers.of(cost - self.price(op, bool(signed), c), signed)
                yield 0, op, (x, np.full(len(x), at))

    def _selecting(self, left: int) -> Steps:
        """Selections with the rows of a condition and two terms that cost ``left`` together."""
        integers, conditions = self.pools
        for p in range(1, left + 1):
            for a in range(left - p + 1):
                x, y = integers.of(a), integers.of(left - p - a)
                condition = conditions.of(p)
                if len(x) * len(y) * len(condition) <= self.effort.at_once:
                    grid_of = np.meshgrid(condition, x, y, indexing="ij")
                    yield 0, "where", tuple(g.ravel() for g in grid_of)

    def _pairs(self, sort: int, op: str, pool: Pool, left: int, no_literals: bool = False) -> Steps:
        """The operator with the rows of two operands that cost ``left`` together."""
        for a in range(left + 1):
            if OPS[op].commutes and a > left - a:
                break
            x, y = pool.of(a), pool.of(left - a)
            if no_literals:
                x, y = np.setdiff1d(x, pool.literals), np.setdiff1d(y, pool.literals)
            pairs = np.meshgrid(x, y, indexing="ij")
            yield sort, op, (pairs[0].ravel(), pairs[1].ravel())

    def candidates(self) -> list[Expr]:
        """Terms that meet the target at all points, the cheapest first."""
        found = sorted(self._last_steps(), key=lambda each: each[0])[:MOST_TRIED]
        return [term for _, term in found]

    def _last_steps(self) -> Priced:
        pool = self.pools[self.is_bool]
        (at,), (is_known,) = pool.places(_hash(self.target[None]))
        if is_known:
            yield pool.costs[at], pool.term(int(at), self.pools)
        yield from self._last_condition() if self.is_bool else self._last_integer(self.target, self.budget)

    def _last_integer(self, target: Values, budget: int, nested: bool = False) -> Priced:
        """Terms with the values ``target`` of one more operator, or of a few; ``nested`` within a multiple."""
        yield from self._sums(target, budget)
        yield from self._constant_off(target, budget)
        yield from self._selections(target, budget)
        yield from self._divisions(target, budget)
        if not nested:
            yield from self._multiples(target, budget)
            yield from self._products()

    def _products(self) -> Priced:
        """The target as a product of two terms, or by a bit operator, that costs 1 more than all that was grown."""
        integers, _ = self.pools
        cost = self.complete + 1
        if not self.is_whole or cost > self.budget:
            return
        for op in ("mul", *sorted(self.operators & BITWISE)):
            left = cost - self.price(op, False, False)
            if sum(len(integers.of(a)) * len(integers.of(left - a)) for a in range(left + 1)) > self.effort.at_once:
                # not all are looked at
                self.complete = cost - 2
                continue
            for _, _, rows in self._pairs(0, op, integers, left, op == "mul"):
                x, y = rows
                for columns in (slice(0, 6), slice(6, None)):
                    values = [integers.values[at, columns] for at in (x, y)]
                    met = np.flatnonzero((_applied(op, values) == self.target[columns]).all(axis=1))
                    x, y = x[met], y[met]
                for pair in list(zip(x, y, strict=True))[:5]:
                    yield cost, make(op, *map(self._integer, pair))

    def _sums(self, target: Values, budget: int) -> Priced:
        """The target as ``x*k + y``, ``y - x*k`` or ``x*k - y``."""
        integers, _ = self.pools
        hashed, term = _hash(target), self._integer
        prices = {op: self.price(op, False, False) for op in ("add", "sub")}
        scales = [(1, 0), *[(c, self.price("mul", False, c)) for c in self.literals if c > 1]]
        # the signs of the multiple and of the other term
        ways = [(k, price, *signs) for k, price in scales for signs in ((1, 1), (-1, 1))]
        ways += [(k, price, 1, -1) for k, price in scales]
        for k, price, sign, other in ways:
            op = "add" if sign == other else "sub"
            wanted = other * (hashed - sign * k * integers.hashes)
            for x, y in integers.matching(wanted, budget - price - prices[op]):
                scaled = make("mul", term(x), const(k)) if k > 1 else term(x)
                operands = (scaled, term(y)) if other < 0 else (term(y), scaled)
                yield integers.costs[x] + integers.costs[y] + price + prices[op], make(op, *operands)

    def _divisions(self, target: Values, budget: int) -> Priced:
        """The target as a quotient or remainder by a literal."""
        integers, _ = self.pools
        for op, c in product(("floordiv", "mod"), [c for c in self.literals if c > 1]):
            prices = np.array([self.price(op, False, c), self.price(op, True, c)])
            total = integers.costs + prices[integers.signed.astype(int)]
            rows = np.flatnonzero(total <= budget)
            for columns in (slice(0, 6), slice(6, None)):
                met = _applied(op, [integers.values[rows, columns], np.array(c)]) == target[columns]
                rows = rows[met.all(axis=1)]
            for at in rows[:5]:
                yield total[at], make(op, self._integer(at), const(c))

    def _multiples(self, target: Values, budget: int) -> Priced:
        """The target as ``x*k + r``, where one more step makes ``x``."""
        steps = gcd(*map(int, target - target[0]))
        for k in [c for c in range(2, 65) if steps % c == 0] + [c for c in self.literals if c > 64 and not steps % c]:
            for r in dict.fromkeys((int(target[0]) % k, 0)):
                if int(target[0]) % k == r:
                    price = self.price("mul", False, k) + (self.price("add", False, False) if r else 0)
                    for cost, inner in self._last_integer((target - r) // k, budget - price, nested=True):
                        scaled = make("mul", inner, const(k))
                        yield cost + price, make("add", scaled, const(r)) if r else scaled

    def _integer(self, at: np.integer[Any] | int) -> Expr:
        return self.pools[0].term(int(at), self.pools)

    def _constant_off(self, target: Values, budget: int) -> Priced:
        """The target as a term and a literal, or a minimum with one."""
        integers, _ = self.pools
        values, costs = integers.values, integers.costs
        for op, made, price in (
            ("add", target - values, self.price("add", False, 1)),
            ("sub", target + values, self.price("sub", False, False)),
        ):
            for at in np.flatnonzero((made == made[:, :1]).all(axis=1) & (costs + price <= budget))[:5]:
                term, off = self._integer(at), const(int(made[at, 0]))
                yield costs[at] + price, make("add", term, off) if op == "add" else make("sub", off, term)
        for op, c in (("min", int(target.max())), ("max", int(target.min()))):
            met = (_applied(op, [values, np.array(c)]) == target).all(axis=1)
            for at in np.flatnonzero(met)[:5]:
                yield costs[at] + self.price(op, False, c), make(op, self._integer(at), const(c))

    def _selections(self, target: Values, budget: int) -> Priced:
        """The target as a selection, a minimum or a maximum of two terms."""
        integers, conditions = self.pools
        extra = [const(int(c)) for c in np.unique(target)[:POINTS]]
        everything = np.concatenate([integers.values, [np.full(POINTS, c.value, np.int64) for c in extra]])
        costs = np.concatenate([integers.costs, np.zeros(len(extra), np.int64)])

        def term(at: int) -> Expr:
            return integers.term(at, self.pools) if at < len(integers.costs) else extra[at - len(integers.costs)]

        met = _packed(everything == target)
        rows = _best_sets(met, costs)
        holds = _packed(conditions.values != 0)
        price = self.price("where", False, False, False)
        chosen = np.flatnonzero((holds != 0) & (holds != _ALL) & (conditions.costs + price <= budget))
        then = _cheapest_covering(holds[chosen], met[rows], costs[rows])
        other = _cheapest_covering(~holds[chosen], met[rows], costs[rows])
        total = conditions.costs[chosen] + then[1] + other[1] + price
        for at in _cheapest(total, budget, 10):
            condition = conditions.term(chosen[at], self.pools)
            yield total[at], make("where", condition, term(rows[then[0][at]]), term(rows[other[0][at]]))
        for op, beyond in (("min", everything >= target), ("max", everything <= target)):
            sides = np.flatnonzero(beyond.all(axis=1))
            sides = sides[_best_sets(met[sides], costs[sides])]
            partner = _cheapest_covering(~met[sides], met[sides], costs[sides])
            total = costs[sides] + partner[1] + self.price(op, False, False)
            for at in _cheapest(total, budget, 5):
                yield total[at], make(op, term(sides[at]), term(sides[partner[0][at]]))

    def _last_condition(self) -> Priced:
        """The target as a comparison, or as two conditions joined."""
        integers, conditions = self.pools
        holds = self.target != 0
        if holds.all() or not holds.any():
            return
        term = self._integer
        inside, outside = integers.values[:, holds], integers.values[:, ~holds]
        price = self.price("lt", False, False)
        affordable = integers.costs + price <= self.budget
        for at in np.flatnonzero((inside.max(axis=1) < outside.min(axis=1)) & affordable):
            for c in dict.fromkeys((int(outside[at].min()), int(inside[at].max()) + 1)):
                yield integers.costs[at] + price, make("lt", term(at), const(c))
        for at in np.flatnonzero((inside.min(axis=1) > outside.max(axis=1)) & affordable):
            for c in dict.fromkeys((int(outside[at].max()), int(inside[at].min()) - 1)):
                yield integers.costs[at] + price, make("lt", const(c), term(at))
        for op, one, rest in (("eq", inside, outside), ("ne", outside, inside)):
            alone = (one == one[:, :1]).all(axis=1) & (rest != one[:, :1]).all(axis=1)
            for at in np.flatnonzero(alone):
                yield integers.costs[at] + price, make(op, term(at), const(int(one[at, 0])))
        yield from self._compared(price)
        held = _packed(conditions.values != 0)
        wanted = _packed(holds[None])[0]
        for op, sets, goal in (("and", held, wanted), ("or", ~held, ~wanted)):
            rows = np.flatnonzero((sets & goal) == goal)
            # p and q: beyond the goal no point is in both
            rows = rows[_best_sets(~sets[rows], conditions.costs[rows])]
            partner = _cheapest_covering(sets[rows] & ~goal, ~sets[rows], conditions.costs[rows])
            total = conditions.costs[rows] + partner[1] + self.price(op, False, False)
            for at in _cheapest(total, self.budget, 5):
                yield total[at], make(op, *[conditions.term(rows[i], self.pools) for i in (at, partner[0][at])])

    def _compared(self, price: int) -> Priced:
        """Comparisons of two terms."""
        integers, _ = self.pools
        hard = np.argsort(self.target, kind="stable")
        hard = np.concatenate([hard[:4], hard[-4:]])
        for left in range(self.budget - price + 1):
            for a in range(left + 1):
                x, y = integers.of(a), integers.of(left - a)
                if len(x) * len(y) > 4 * self.effort.at_once:
                    continue
                one, other = integers.values[x][:, hard], integers.values[y][:, hard]
                for op in _COMPARISONS:
                    met = np.ones((len(x), len(y)), bool)
                    for at, place in enumerate(hard):
                        met &= _applied(op, [one[:, None, at], other[None, :, at]]) == self.target[place]
                    for i, j in list(zip(*np.nonzero(met), strict=True))[:200]:
                        values = [integers.values[x[i]], integers.values[y[j]]]
                        if (_applied(op, values) == self.target).all():
                            yield left + price, make(op, self._integer(x[i]), self._integer(y[j]))


_CODES = {op: code for code, op in enumerate(OPS)}
_NAMES = list(OPS)


class Pool:
    """Terms of one sort, in rows: the values of each, its operator with the rows of its operands, and its cost."""

    def __init__(self, leaves: Sequence[Expr], values: Values) -> None:
        self.values = np.empty((0, POINTS), np.int64)
        self.costs = np.empty(0, np.int64)
        self.made = np.empty((0, 4), np.int32)
        self._by_cost: dict[int, Rows] = {}
        chosen = self.add(values, np.full((len(leaves), 4), -1, np.int32), 0)
        self.leaves: list[Expr] = [leaves[at] for at in chosen]
        self.literals = [at for at, leaf in enumerate(self.leaves) if not leaf.args and leaf.op != "var"]

    def add(self, values: Values, made: NDArray[np.int32], cost: int) -> Rows:
        """Take the terms of the next cost, one of each vector of values: the places of those that are taken."""
        first = np.sort(np.unique(_hash(values), return_index=True)[1])
        self._by_cost[cost] = np.arange(len(self.costs), len(self.costs) + len(first))
        self.values = np.concatenate([self.values, values[first]])
        self.hashes = _hash(self.values)
        self.costs = np.concatenate([self.costs, np.full(len(first), cost, np.int64)])
        self.made = np.concatenate([self.made, made[first]])
        self.signed = (self.values < 0).any(axis=1)
        self._order = np.argsort(self.hashes)
        return first

    def of(self, cost: int, signed: bool | None = None) -> Rows:
        """The rows of a cost, and of a sign."""
        rows = self._by_cost.get(cost, np.empty(0, np.int64))
        return rows if signed is None else rows[self.signed[rows] == signed]

    def places(self, hashes: Values) -> tuple[Rows, NDArray[np.bool_]]:
        """A row for each hash, and whether that is its hash."""
        ordered = self.hashes[self._order]
        at = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
        return self._order[at], ordered[at] == hashes

    def matching(self, wanted: Values, budget: int) -> list[tuple[int, int]]:
        """Pairs of a row and the row that has the hash wanted for it, within the budget, the cheapest first."""
        at, known = self.places(wanted)
        rows = np.flatnonzero(known)
        total = self.costs[rows] + self.costs[at[rows]]
        return [(int(rows[i]), int(at[rows[i]])) for i in _cheapest(total, budget, 8)]

    def term(self, at: int, pools: Sequence[Pool]) -> Expr:
        if at < len(self.leaves):
            return self.leaves[at]
        code, *operands = map(int, self.made[at])
        op = _NAMES[code]
        return make(op, *[pools[s].term(a, pools) for s, a in zip(_sorts(op), operands, strict=False)])


def _sorts(op: str) -> list[int]:
    return [int(letter == "b") for letter in OPS[op].takes] if op != "where" else [1, 0, 0]


def _applied(op: str, operands: Sequence[Values]) -> Values:
    return np.asarray(OPS[op].evaluate(*operands), dtype=np.int64)


def _hash(values: Values) -> Values:
    return values @ _WEIGHTS


def _cheapest(costs: Rows, budget: int, most: int) -> Rows:
    """The places of up to ``most`` costs within the budget, the least first."""
    order = np.argsort(costs, kind="stable")[:most]
    return order[costs[order] <= budget]


def _packed(rows: NDArray[np.bool_]) -> Sets:
    return np.packbits(rows, axis=1, bitorder="little").view(np.uint64).ravel()


def _best_sets(sets: Sets, costs: Values) -> Rows:
    """The cheapest row of each set, those of cheap and large sets first; only as many as are combined."""
    order = np.lexsort((-np.bitwise_count(sets).astype(int), costs))
    _, first = np.unique(sets[order], return_index=True)
    rows = order[np.sort(first)]
    value = 4 * costs[rows] - np.bitwise_count(sets[rows]).astype(int)
    return rows[np.argsort(value, kind="stable")[:MOST_SETS]]


def _cheapest_covering(wanted: Sets, sets: Sets, costs: Values) -> tuple[Rows, Values]:
    """For each wanted set the cheapest of ``sets`` that contains it, and its cost (beyond any budget if none does)."""
    order = np.argsort(costs, kind="stable")
    ordered = np.append(sets[order], _ALL)
    chosen = np.empty(len(wanted), np.int64)
    for start in range(0, len(wanted), 2000):
        block = wanted[start : start + 2000]
        chosen[start : start + 2000] = ((block[:, None] & ~ordered) == 0).argmax(axis=1)
    return np.append(order, -1)[chosen], np.append(costs[order], 10**6)[chosen]


def _literals(root: Expr, answer: Expr) -> list[int]:
    """The literals that terms are grown with: those of the case, their products, quotients and neighbours; 1, 2, -1."""
    own = [t.vmin for t in topological([answer, root]) if t.op == "const"]
    near = [c + step for c in own for step in (-1, 1)]
    few = list(dict.fromkeys(own))[:3]
    of_two = [n for c, d in combinations(few, 2) if c and d for n in (c * d, c // d, d // c)]
    return [c for c in dict.fromkeys([1, *own, *of_two, 2, -1, *near]) if c and abs(c) < LARGEST][:MOST_LITERALS]


def within_reach(root: Expr) -> bool:
    """Whether terms like ``root`` are enumerated: short ones, without reductions, of one to three variables."""
    order = topological([root])
    names = [t for t in order if t.op == "var"]
    plain = all(t.op in OPS or t.op in ("var", "const", "bool") for t in order)
    small = tree_size(root) <= LONGEST and all(max(-t.vmin, t.vmax) <= WIDEST for t in order)
    small = small and all(max(-v.vmin, v.vmax) <= LARGEST for v in names)
    return plain and small and 1 <= len(names) <= 3 and all(v.vmin < v.vmax for v in names)
