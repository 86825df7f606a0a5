"""What an optimisation found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eqsat.expr import Expr, brief
from eqsat.pareto import Answer
from eqsat.rule import Rule
from eqsat.theory.guess import Guess
from eqsat.trace import Trace
from eqsat.verify import Check, check_equal, prove_equal

if TYPE_CHECKING:
    from eqsat.explain import Explanation

#: Answers of more characters than these are cut, or printed with their shared subterms named.
SHORT = 160


@dataclass(frozen=True)
class Result:
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
        What exact extraction has proved: no choice over the final e-graph costs less; equal to ``cost`` if that is
        the optimum. ``None`` from other extractors.
    stop : str
        ``"saturated"``, or the budget that ran out: ``"nodes"``, ``"time"``, ``"iterations"``. Rules alone may have
        started again on the way, from the best terms so far.
    nodes, rounds : int
        E-nodes of the final e-graph (of the greedy engine: of the answer), and rounds of the rules.
    milliseconds : float
        Time of the optimisation alone; ``engine_milliseconds`` is the rules' share of it, and
        ``extraction_milliseconds`` that of choosing among the terms found.
    rules : dict from rule name to int
        How often each rule matched.
    rule_set : tuple of Rule
        The rules that could be used.
    guesses : tuple of Guess
        Equalities that were read off sample points, and how each was proved; see :mod:`eqsat.theory.guess`.
    trace : Trace
        Where the time went, which e-nodes came from where, what each round and rule did; see :mod:`eqsat.trace`.
    pareto : tuple of Answer
        If asked for, the answers of which none is both cheaper and smaller than another, the cheapest first.
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
    engine_milliseconds: float
    extraction_milliseconds: float
    rules: dict[str, int]
    rule_set: tuple[Rule, ...] = field(repr=False)
    guesses: tuple[Guess, ...] = ()
    trace: Trace = field(default=Trace(), repr=False)
    pareto: tuple[Answer, ...] = ()

    def __str__(self) -> str:
        costs = f"cost {self.cost_before} -> {self.cost}, {self.stop}, {self.nodes} e-nodes"
        answer = [brief(expr, SHORT) for expr in self.exprs]
        return "\n".join([*answer, f"{costs}, {self.rounds} rounds, {self.milliseconds:.1f} ms", str(self.trace)])

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
    def gap(self) -> float | None:
        """How much of the cost a better choice over the final e-graph could save at most; 0 if none can.

        ``None`` without a bound. As for ``bound``, another e-graph may hold cheaper terms.
        """
        if self.bound is None:
            return None
        return (self.cost - self.bound) / self.cost if self.cost else 0.0

    def check(self, **options: Any) -> Check:
        """Check that input and output are equal; see :func:`eqsat.verify.check_equal` for the options."""
        return check_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def prove(self, **options: Any) -> Check:
        """Prove that input and output are equal, or find a point where not.

        See :func:`eqsat.verify.prove_equal` for the options.

        >>> from eqsat import optimize
        >>> optimize("(i*32 + j) // 32", i=(0, 2**40), j=(0, 31)).prove(seconds=5).kind
        'proved'
        """
        return prove_equal(self.before, self.exprs, constraints=self.constraints, gates=self.gates, **options)

    def explain(self, **options: Any) -> Explanation:
        """Derive the output from the input in checked steps; see :func:`eqsat.explain.explain` for the options."""
        from eqsat.explain import explain

        return explain(self, **options)
