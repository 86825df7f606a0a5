"""What an optimisation found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.egraph.rule import Rule
from eqsat.egraph.trace import Trace
from eqsat.extract.cost import CostModel
from eqsat.extract.graph import EGraph
from eqsat.extract.select import Choice, Priced
from eqsat.lang.display import Displayed, formula, html_table
from eqsat.lang.expr import Expr, brief, digits
from eqsat.lang.slots import Slot
from eqsat.lang.validation import counted
from eqsat.optimizer.limits import LIMITS
from eqsat.optimizer.pareto import Answer
from eqsat.optimizer.snapshot import Built, Snapshot
from eqsat.theory.conjectures import Conjecture

if TYPE_CHECKING:
    from eqsat.prove.explanation import Explanation
    from eqsat.prove.verify import Check

#: An extractor of one's own: from a graph with the prices of its nodes to a node for each class that the roots need.
Extractor = Callable[[Priced], Choice]

#: What chooses again; :mod:`eqsat.optimizer.reextraction` fills it.
EXTRACTED: Slot[Result] = Slot()
#: What makes a page of a result; the package fills it, with what is imported when it is called.
SHOWN: Slot[str] = Slot()
#: What derives a result; the package fills it, with what is imported when it is called.
EXPLAINED: Slot[Explanation] = Slot()

#: The time that choosing again may take, in seconds.
DEFAULT_SECONDS = 2.0
#: Answers of more characters than these are cut, or printed with their shared subterms named.
SHORT = 160


@dataclass(frozen=True)
class Result(Displayed):
    """What :func:`eqsat.optimize` found.

    Attributes
    ----------
    before, exprs : tuple of Expr
        The roots as given and as found, in the same order.
    constraints, gates
        The known facts under which they are equal.
    cost_before, cost : int
        Under the cost model, over all roots, shared subterms paid once. The answer costs no more than the input, or
        with ``extract="tree"`` each root alone no more than it did.
    bound : int or None
        What exact extraction has proved: no choice over the e-graph that it chose from costs less by the prices of its
        nodes. It equals ``cost`` if that is the optimum, or an answer found in another way. ``None`` from other
        extractors. A sum of several terms is priced as additions, so that by a model that prices ``sub`` at less than
        ``add`` a choice may be written as a term that costs less.
    stop : str
        ``"saturated"``, or the budget that ran out: ``"nodes"``, ``"time"``, ``"iterations"``. Rules alone may have
        started again on the way, from the best terms so far.
    nodes, rounds : int
        E-nodes of the final e-graph (of the greedy engine: of the answer), and rounds of the rules.
    milliseconds : float
        Time of the optimisation alone.
    rules : dict from rule name to int
        How often each rule matched.
    rule_set : tuple of Rule
        The rules that could be used.
    conjectures : tuple of Conjecture
        Equalities that were read off sample points, and how each was proved; see :mod:`eqsat.theory.conjectures`.
    trace : Trace
        Where the time went, which e-nodes came from where, what each round and rule did; see :mod:`eqsat.egraph.trace`.
    pareto : tuple of Answer
        If asked for, the answers of which none is both cheaper and smaller than another, the cheapest first.
    model : CostModel
        The cost model by which the answer was chosen.
    snapshot : Snapshot or None
        What the run left of its e-graphs, for :attr:`graph` and :meth:`extract`.

    >>> from eqsat import optimize
    >>> result = optimize("i*8 // 8", i=(0, 63))
    >>> result.expr, result.cost, result.stop
    (Expr('i'), 0, 'saturated')
    """

    before: tuple[Expr, ...]
    exprs: tuple[Expr, ...]
    constraints: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    cost_before: int
    cost: int
    bound: int | None
    stop: str
    nodes: int
    rounds: int
    milliseconds: float
    rules: dict[str, int]
    rule_set: tuple[Rule, ...] = field(repr=False)
    model: CostModel = field(repr=False, compare=False)
    conjectures: tuple[Conjecture, ...] = ()
    trace: Trace = field(default=Trace(), repr=False)
    pareto: tuple[Answer, ...] = ()
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        costs = f"cost {digits(self.cost_before)} -> {digits(self.cost)}, {self.stop}, {counted(self.nodes, 'e-node')}"
        answer = [brief(expr, SHORT) for expr in self.exprs[: LIMITS.shown_roots]]
        if len(self.exprs) > LIMITS.shown_roots:
            answer.append(f"and {counted(len(self.exprs) - LIMITS.shown_roots, 'more root')}")
        return "\n".join([*answer, f"{costs}, {counted(self.rounds, 'round')}, {self.milliseconds:.1f} ms"])

    def __repr__(self) -> str:
        return f"Result({str(self).replace(chr(10), '; ')})"

    def _repr_html_(self) -> str:
        pairs = [*zip(self.before, self.exprs, strict=True)][: LIMITS.shown_roots]
        rows = [[brief(before, SHORT), brief(after, SHORT)] for before, after in pairs]
        return html_table(["input", "answer"], rows, str(self).splitlines()[-1])

    def _repr_latex_(self) -> str | None:
        return formula(*self.exprs)

    @property
    def expr(self) -> Expr:
        """The single root's answer.

        Raises
        ------
        ValueError
            If there are several roots.
        """
        if len(self.exprs) != 1:
            raise ValueError(f"there are {len(self.exprs)} roots; use .exprs")
        return self.exprs[0]

    @property
    def engine_milliseconds(self) -> float:
        """The part of :attr:`milliseconds` that the rules took in egglog."""
        return 1000 * self.trace.phases.get("saturate", 0.0)

    @property
    def extraction_milliseconds(self) -> float:
        """The part of :attr:`milliseconds` that choosing among the terms found took."""
        return 1000 * sum(self.trace.phases.get(phase, 0.0) for phase in ("extract", "reuse"))

    @property
    def gap(self) -> float | None:
        """How much of the cost a better choice over the e-graph of ``bound`` could save at most; 0 if none can.

        ``None`` without a bound. Another e-graph may hold cheaper terms.
        """
        if self.bound is None:
            return None
        return (self.cost - self.bound) / self.cost if self.cost else 0.0

    @property
    def graph(self) -> EGraph | None:
        """The e-graph that the answer was chosen from, as plain data; see :mod:`eqsat.extract.graph`.

        Its ``roots`` are the classes of the result's roots, in their order. The nodes of a class are equal wherever the
        constraints hold; the class of a root equals that root where its gate holds, too. With ``theory=False`` all
        classes below a root with a gate have equal nodes only where that holds. ``("sum", (0, (1,)), (c,))`` is class
        ``c`` itself. A load is ``("load", None, (buffer, *indices))``, a reduction ``("sum_over", None, (body,
        index, low, high))``; :attr:`leaves` has what the nodes ``"var"`` and ``"buffer"`` name, but for the index of a
        reduction, whose name says its range. It is made when first asked for, and holds all nodes of the answer
        (:attr:`choice`). ``None`` from the engine ``"greedy"``, where ``unknown_divisors`` kept or assumed a division,
        and where time ran out before there was one.

        >>> from eqsat import optimize
        >>> graph = optimize(["x // n", "x % n"], x=(0, 99), n=(1, 9)).graph
        >>> [[op for op, _, _ in graph.classes[root]] for root in graph.roots]
        [['floordiv'], ['mod', 'sum', 'sub']]
        """
        return None if self.snapshot is None else self.built.graph

    @property
    def leaves(self) -> dict[str, Expr]:
        """The variables and buffers of :attr:`graph` by name; a buffer's name ends in ``[]``."""
        return self.built.leaves

    @property
    def choice(self) -> Choice:
        """The nodes of :attr:`graph` that write the answer, by class."""
        return self.built.choice

    def terms(self, choice: Choice) -> tuple[Expr, ...]:
        """The terms that a choice over :attr:`graph` writes for the roots.

        They are equal to the input. :meth:`extract` also sees to it that they divide by nothing that may be zero, that
        no root reads what only other roots have, and that 64 bits hold what they held before.

        Raises
        ------
        ValueError
            If the choice lacks a class that it needs, has a node of another class, or needs a class for itself; or if a
            product of it can have more bits than are accepted.

        >>> from eqsat import optimize
        >>> result = optimize("(i*32 + j) // 32", i=(0, 63), j=(0, 31))
        >>> result.terms(result.choice)
        (Expr('i'),)
        """
        return tuple(self.built.terms(choice))

    def extract(
        self, cost: CostModel | str, extract: str | Extractor = "dag", seconds: float = DEFAULT_SECONDS
    ) -> Result:
        """Choose anew from :attr:`graph` under another cost model, or by another extractor, without saturating again.

        The answer is checked as that of :func:`eqsat.optimize` is. It costs no more than the input and no more than
        this result's, under the model given; with ``extract="tree"`` that holds of each root alone.

        Parameters
        ----------
        cost : CostModel or str
            What is cheap, or its name.
        extract : {"dag", "tree", "exact"} or function
            As for :func:`eqsat.optimize`; or a function that takes an :class:`eqsat.extract.Priced`, the graph with the
            price of each node, and returns a choice: a node for each class that the roots need.
        seconds : float
            Time that it may take.

        Raises
        ------
        ValueError
            If there is no e-graph, or a function returns what is no choice (see :meth:`terms`).

        >>> from eqsat import optimize
        >>> result = optimize("x * 9", x=(0, 99))
        >>> result.extract("opcount").cost
        1
        """
        return EXTRACTED.call(self, cost, extract, seconds)

    @cached_property
    def built(self) -> Built:
        """:attr:`graph` with all that is needed to read it, made when it is first asked for.

        Raises
        ------
        ValueError
            If there is none.
        """
        if self.snapshot is None:
            raise ValueError(
                "there is no e-graph: engine 'greedy' has none, nor has an answer for which unknown_divisors kept or "
                "assumed a division, or time ran out first"
            )
        gates = [gate for gate in self.gates if gate is not None]
        return self.snapshot.built(self.exprs, self.gates, [*self.before, *self.constraints, *gates])

    def check(self, **options: Any) -> Check:
        """Check that input and output are equal; see :func:`eqsat.prove.verify.check_equal` for the options."""
        from eqsat.prove.verify import check_equal

        return check_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def prove(self, **options: Any) -> Check:
        """Prove that input and output are equal, or find a point where not.

        See :func:`eqsat.prove.verify.prove_equal` for the options.

        >>> from eqsat import optimize
        >>> optimize("(i*32 + j) // 32", i=(0, 2**40), j=(0, 31)).prove(seconds=5).kind
        'proved'
        """
        from eqsat.prove.verify import prove_equal

        return prove_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def to_html(self) -> str:
        """One page that shows what was found and how, and the e-graph class by class; it loads nothing else.

        >>> from eqsat import optimize
        >>> optimize("i*8 // 8", i=(0, 63)).to_html().count("</html>")
        1
        """
        return SHOWN.call(self)

    def show(self, path: str | Path | None = None) -> Path:
        """Write :meth:`to_html` to a file, and open it in the web browser if no ``path`` is given for it.

        Returns
        -------
        Path
            The file.
        """
        if path is not None:
            target = Path(path)
            target.write_text(self.to_html(), encoding="utf-8")
            return target
        import webbrowser
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", suffix=".html", prefix="eqsat-", delete=False, encoding="utf-8") as file:
            file.write(self.to_html())
        webbrowser.open(f"file://{file.name}")
        return Path(file.name)

    def explain(self, **options: Any) -> Explanation:
        """Derive the output from the input in checked steps, as :func:`eqsat.explain.derivation.explain` does."""
        return EXPLAINED.call(self, **options)
