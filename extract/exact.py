"""Exact extraction: the cheapest choice over all roots, each class paid once, as an integer program solved by HiGHS.

First the graph is made smaller in ways that keep an optimum (:class:`_Reduction`), then what is left becomes a program
(:class:`_Program`): one binary column per node; a class is needed as much as its columns add up to, and needs, for each
operand, as much of the operand's class. A choice can be circular only inside a strongly connected component, so only
there classes have levels, which fall from user to operand. Needs HiGHS (extra: exact).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, gcd, inf, isfinite
from numbers import Real
from sys import float_info
from time import perf_counter
from typing import Any

from eqsat.extract.graph import Node, reached
from eqsat.extract.select import Choice, Priced, dag, total_cost, tree

#: Prices above this are not given to the solver: sums of them are no floats.
_MOST = 10**300


@dataclass(frozen=True)
class Exact:
    """What :func:`exact` found.

    Attributes
    ----------
    choice : Choice
        The node for each class; for classes that the roots do not need, that of the start.
    cost : int
        Its cost.
    bound : int
        No choice costs less: equal to ``cost`` if the optimum is proved.

    >>> Exact({0: ("var", "x", ())}, 0, 0).bound
    0
    """

    choice: Choice
    cost: int
    bound: int


def exact(priced: Priced, start: Choice | None = None, seconds: float = 10.0) -> Exact:
    """The cheapest choice, each class paid once over all roots; or the best found in time, and how far it may be off.

    Equal inputs give equal answers unless the time runs out.

    Parameters
    ----------
    priced : Priced
        Every root must have a finite term.
    start : Choice or None
        A choice without circles to start from; the answer never costs more. By default that of :func:`dag`.
    seconds : float
        Time in all.

    Raises
    ------
    ModuleNotFoundError
        If HiGHS is not installed; the message says how to install it.
    ValueError, TypeError
        As :func:`eqsat.extract.select.tree`, if no start is given; or if ``seconds`` is no time.

    >>> from eqsat.extract import EGraph, Latency
    >>> classes = {0: [("var", "x", ())], 1: [("add", None, (0, 0)), ("shl", None, (0, 2))], 2: [("const", 1, ())]}
    >>> graph = EGraph(classes, {0: (0, 9), 1: (0, 18), 2: (1, 1)}, roots=[1])
    >>> found = exact(Priced.of(graph, Latency()))
    >>> found.cost, found.bound
    (1, 1)
    """
    _refuse_no_time(seconds)
    solver = _solver()
    ends = perf_counter() + seconds
    start = dag(priced) if start is None else start
    cost = total_cost(priced, start)
    reduction = _Reduction(priced, ends)
    if reduction.paid == cost:
        return Exact(start, cost, cost)
    solution: dict[int, _Option] | None = None if reduction.options else {}
    least = 0
    if reduction.options and not reduction.is_late():
        program = _Program(reduction)
        if (left := ends - perf_counter()) > 0:
            solution, least = program.solve(solver, reduction.reduced(start), left)
    choice = {**start, **reduction.choice(solution)} if solution is not None else start
    if (found := total_cost(priced, choice)) < cost:
        return Exact(choice, found, min(found, reduction.paid + least))
    return Exact(start, cost, min(cost, reduction.paid + least))


def _refuse_no_time(seconds: float) -> None:
    if not isinstance(seconds, Real):
        raise TypeError(f"{seconds!r} seconds: give a number")
    # also of NaN
    if not 0 <= seconds <= float_info.max and seconds != inf:
        raise ValueError(f"{seconds} seconds: give 0 or more, or math.inf for no limit")


def _solver() -> Any:
    try:
        import highspy
    except ModuleNotFoundError:
        raise ModuleNotFoundError("exact extraction needs HiGHS: pip install 'eqsat[exact]'") from None
    return highspy


@dataclass(eq=False)
class _Option:
    """A node that may be chosen: what it costs, which classes it needs."""

    node: Node
    price: int
    needs: frozenset[int]


@dataclass
class _Reduction:
    """A graph made smaller: the classes that are still open, and what is decided about the others."""

    priced: Priced
    #: The time by ``time.perf_counter()`` after which no step is made; every single step keeps an optimum.
    ends: float
    #: The nodes to choose from, for each open class; and the open classes that use it.
    options: dict[int, list[_Option]] = field(default_factory=dict)
    users: dict[int, set[int]] = field(default_factory=dict)
    #: The open classes that every choice needs.
    needed: set[int] = field(default_factory=set)
    #: What every choice costs in addition to the prices in ``options``.
    paid: int = 0
    #: The node of each class whose choice is decided.
    settled: Choice = field(default_factory=dict)
    #: For a node that is never better than another of its class: that other node.
    heirs: dict[tuple[int, Node], Node] = field(default_factory=dict)
    queue: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._open()
        self._reduce(self.options)
        while not self.is_late() and (dropped := self._drop_needs()):
            self._reduce(sorted(dropped))

    def is_late(self) -> bool:
        """Whether the time is up."""
        return perf_counter() > self.ends

    def _open(self) -> None:
        """Open every class that the roots can use, with its nodes that have finite terms."""
        classes, prices = self.priced.graph.classes, self.priced.prices
        finite = tree(self.priced)
        self.needed.update(self.priced.graph.roots)
        stack = sorted(self.needed)
        while stack:
            c = stack.pop()
            if c in self.options:
                continue
            self.options[c] = options = []
            for node, price in zip(classes[c], prices[c], strict=True):
                needs = frozenset(node[2])
                if needs <= finite.keys():
                    options.append(_Option(node, price, needs))
                    stack.extend(sorted(needs))
        self.users = {c: set() for c in self.options}
        for c in self.options:
            for k in self._needs(c):
                self.users[k].add(c)

    def _needs(self, c: int) -> set[int]:
        return {k for option in self.options[c] for k in option.needs}

    def _reduce(self, changed: Iterable[int]) -> None:
        """Apply the steps to the classes that ``changed``, then to those that this changes, until none changes."""
        self.queue.extend(changed)
        steps = 0
        while self.queue and not self.is_late():
            steps += 1
            if steps > len(self.options):
                self._drop_circles()
                steps = 0
            c = self.queue.popleft()
            if c not in self.options:
                continue
            if c not in self.needed and not self.users[c]:
                self._drop(c)
                continue
            self._drop_dominated(c)
            self._pull_up(c)
            self._settle(c)

    def _drop_circles(self) -> None:
        """Drop classes that only use each other: they would pass their prices round and round, a little at a time."""
        kept = reached(self.needed, self._needs)
        for c in [c for c in self.options if c not in kept]:
            self._drop(c)

    def _drop(self, c: int) -> None:
        self._replace(c, [])
        del self.options[c]

    def _replace(self, c: int, options: list[_Option]) -> None:
        """Give ``c`` other options, and queue the operands that it gained or lost."""
        before = self._needs(c)
        self.options[c] = options
        after = self._needs(c)
        for k in before - after:
            self.users[k].discard(c)
        for k in after - before:
            self.users[k].add(c)
        self.queue.extend(sorted(before ^ after))

    def _drop_dominated(self, c: int) -> None:
        """Drop nodes that need their own class, or all that a node which costs no more needs."""
        kept: list[_Option] = []
        for option in sorted(self.options[c], key=lambda o: (o.price, len(o.needs))):
            if c in option.needs:
                continue
            better = next((other for other in kept if other.needs <= option.needs), None)
            if better is None:
                kept.append(option)
            elif better.node != option.node:
                self.heirs[c, option.node] = better.node
        if len(kept) < len(self.options[c]):
            self._replace(c, kept)
            self.queue.append(c)

    def _pull_up(self, c: int) -> None:
        """Move the price that all nodes of ``c`` share to what every choice pays, or to the nodes of its only user."""
        options, users = self.options[c], self.users[c]
        shared = min(option.price for option in options)
        if c in self.needed:
            self.paid += shared
            common = frozenset.intersection(*[option.needs for option in options])
            self.queue.extend(sorted(common - self.needed))
            self.needed |= common
        elif len(users) == 1 and shared:
            (user,) = users
            for option in self.options[user]:
                if c in option.needs:
                    option.price += shared
            self.queue.append(user)
        else:
            return
        for option in options:
            option.price -= shared

    def _settle(self, c: int) -> None:
        """Decide a class with a free node: its users need what the node needs, unless there are several of both."""
        options = self.options[c]
        best = next((o for o in options if not o.price and (not o.needs or len(options) == 1)), None)
        if best is None or (len(best.needs) > 1 and len(self.users[c]) > 1 and c not in self.needed):
            return
        self.settled[c] = best.node
        for user in sorted(self.users[c]):
            for option in self.options[user]:
                if c in option.needs:
                    option.needs = option.needs - {c} | best.needs
            for k in best.needs:
                self.users[k].add(user)
            self.queue.append(user)
        if c in self.needed:
            self.needed.remove(c)
            self.needed |= best.needs
        self.users[c] = set()
        self._drop(c)
        self.queue.extend(sorted(best.needs))

    def _drop_needs(self) -> set[int]:
        """Drop needs of classes that every choice needs: they cost nothing, and close no circle between components."""
        component = self.components()
        changed: set[int] = set()
        for k in self.needed:
            for c in [c for c in self.users[k] if component[c] != component[k]]:
                for option in self.options[c]:
                    option.needs = option.needs - {k}
                self.users[k].remove(c)
                changed.add(c)
        return changed

    def components(self) -> dict[int, int]:
        """The strongly connected component of each open class (Tarjan's algorithm, without recursion)."""
        found: dict[int, int] = {}
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        path: list[int] = []
        work: list[tuple[int, Iterator[int]]] = []

        def enter(c: int) -> None:
            index[c] = low[c] = len(index)
            path.append(c)
            work.append((c, iter(sorted(self._needs(c)))))

        for root in self.options:
            if root not in index:
                enter(root)
            while work:
                c, operands = work[-1]
                for k in operands:
                    if k not in index:
                        enter(k)
                        break
                    if k not in found:
                        low[c] = min(low[c], index[k])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[c])
                    if low[c] == index[c]:
                        while c not in found:
                            found[path.pop()] = index[c]
        return found

    def reduced(self, choice: Mapping[int, Node]) -> dict[int, _Option]:
        """``choice`` as options of the open classes that it needs; they cost no more than it."""
        found: dict[int, _Option] = {}
        stack = list(self.needed)
        while stack:
            c = stack.pop()
            if c not in found:
                node = choice[c]
                while (c, node) in self.heirs:
                    node = self.heirs[c, node]
                found[c] = next(option for option in self.options[c] if option.node == node)
                stack.extend(found[c].needs)
        return found

    def choice(self, chosen: Mapping[int, _Option]) -> Choice:
        """The node of every class that the roots need, given the options of the open classes."""
        nodes = self.settled | {c: option.node for c, option in chosen.items()}
        return {c: nodes[c] for c in reached(self.priced.graph.roots, lambda c: nodes[c][2])}


class _Program:
    """The open classes as an integer program, in rows ``low <= sum(coefficient * column) <= high``."""

    def __init__(self, reduction: _Reduction) -> None:
        self.options = {c: reduction.options[c] for c in sorted(reduction.options)}
        self.needed = reduction.needed
        self.columns = {o: n for n, o in enumerate(o for options in self.options.values() for o in options)}
        # prices in the largest unit that divides them all: the solver's tolerances are for small numbers
        self.unit = gcd(*[o.price for o in self.columns]) or 1
        self.rows: list[tuple[float, float, dict[int, int]]] = []
        self.component = reduction.components()
        sizes = Counter(self.component.values())
        self.sizes = {c: sizes[self.component[c]] for c in self.options}
        in_circles = [c for c in self.options if self.sizes[c] > 1]
        self.levels = {c: column for column, c in enumerate(in_circles, len(self.columns))}
        for c in self.options:
            # a needed class has one node, another at most one
            self.rows.append((float(c in self.needed), 1.0, {self.columns[o]: 1 for o in self.options[c]}))
            for k in sorted({k for o in self.options[c] for k in o.needs}):
                self._imply(c, k)

    def _imply(self, c: int, k: int) -> None:
        """At least as much of ``k`` as of the nodes of ``c`` that need it, on a level below that of ``c``."""
        using = [self.columns[o] for o in self.options[c] if k in o.needs]
        if k not in self.needed:
            supply = {self.columns[o]: 1 for o in self.options[k]}
            self.rows.append((0.0, float("inf"), {**supply, **dict.fromkeys(using, -1)}))
        if self.component[c] == self.component[k]:
            size = self.sizes[c]
            level = {self.levels[c]: 1, self.levels[k]: -1, **dict.fromkeys(using, -size)}
            self.rows.append((1.0 - size, float("inf"), level))
            back = [self.columns[o] for o in self.options[k] if c in o.needs]
            if back and c < k:
                # implied by the levels, but tighter while columns are fractions
                self.rows.append((0.0, 1.0, dict.fromkeys([*using, *back], 1)))

    def solve(
        self, highspy: Any, start: Mapping[int, _Option], seconds: float
    ) -> tuple[dict[int, _Option] | None, int]:
        """The best options found in ``seconds``, if any, and a lower bound of what they cost."""
        if max([o.price // self.unit for o in self.columns]) > _MOST:
            return None, 0

        class Quiet(highspy.Highs):  # type: ignore[misc]
            def enableCallbacks(self) -> None:  # noqa: N802
                # its constructor calls this, and from 1.16 on would print a banner here, before an option can be set
                self.setOptionValue("output_flag", False)

        solver = Quiet()
        # one thread and a fixed seed: the same answer every time. Prices are whole: a gap below one unit is none
        settings = {"output_flag": False, "threads": 1, "random_seed": 0, "time_limit": seconds}
        settings |= {"mip_rel_gap": 0.0, "mip_abs_gap": 0.999, "mip_feasibility_tolerance": 1e-9}
        for name, value in settings.items():
            solver.setOptionValue(name, value)
        solver.passModel(self._model(highspy))
        solution = highspy.HighsSolution()
        solution.col_value = self._values(start)
        solver.setSolution(solution)
        if solver.run() == highspy.HighsStatus.kError:
            raise RuntimeError(f"HiGHS failed: {solver.modelStatusToString(solver.getModelStatus())}")
        info = solver.getInfo()
        # of the largest prices the bound may be no number
        units = max(0.0, info.mip_dual_bound) if isfinite(info.mip_dual_bound) else 0.0
        least = self.unit * ceil(units - 1e-6 - 1e-12 * units)
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None, least
        values = solver.getSolution().col_value
        return {c: o for c, options in self.options.items() for o in options if values[self.columns[o]] > 0.5}, least

    def _model(self, highspy: Any) -> Any:
        """The program in HiGHS's own form, by rows."""
        model = highspy.HighsLp()
        nodes, levels = len(self.columns), len(self.levels)
        model.num_col_, model.num_row_ = nodes + levels, len(self.rows)
        model.col_cost_ = [float(o.price // self.unit) for o in self.columns] + [0.0] * levels
        model.col_lower_ = [0.0] * (nodes + levels)
        model.col_upper_ = [1.0] * nodes + [self.sizes[c] - 1.0 for c in self.levels]
        kind = highspy.HighsVarType
        model.integrality_ = [kind.kInteger] * nodes + [kind.kContinuous] * levels
        model.row_lower_ = [low for low, _, _ in self.rows]
        model.row_upper_ = [high for _, high, _ in self.rows]
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = list(accumulate([len(row) for _, _, row in self.rows], initial=0))
        matrix.index_ = [column for _, _, row in self.rows for column in row]
        matrix.value_ = [float(value) for _, _, row in self.rows for value in row.values()]
        return model

    def _values(self, chosen: Mapping[int, _Option]) -> list[float]:
        """The columns' values for ``chosen``; a level is the length of the longest way down within the component."""
        values = [0.0] * (len(self.columns) + len(self.levels))
        for option in chosen.values():
            values[self.columns[option]] = 1.0
        depth: dict[int, int] = {}
        stack = list(chosen)
        while stack:
            c = stack.pop()
            inside = [k for k in chosen[c].needs if self.component[k] == self.component[c]]
            waiting = [k for k in inside if k not in depth]
            if waiting:
                stack += [c, *waiting]
            else:
                depth[c] = 1 + max([depth[k] for k in inside], default=-1)
        for c, column in self.levels.items():
            values[column] = float(depth.get(c, 0))
        return values
