"""Explanations: checked steps that turn terms into equal ones, each by one law; as text they read like calculations.

:mod:`eqsat.explain` makes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eqsat.lang.display import Displayed, formula, html_table
from eqsat.lang.expr import Expr, make, rebuild, substitute
from eqsat.lang.text import numbered, to_text
from eqsat.lang.traversal import names_of, topological
from eqsat.prove.verify import Check

#: The laws of coarse steps, those for which no chain of single laws was found.
COARSE = {
    "normal-form": "both have the same normal form in linear integer arithmetic",
    "unexplained": "no laws were found that lead from one to the other; both sides were only compared",
}
#: Subterms of more nodes than this that occur several times are printed by name.
MAX_PRINTED = 24
#: Terms of more characters than this have a line of their own.
MAX_COLUMN = 60


@dataclass(frozen=True)
class Step:
    """One application of one law.

    Attributes
    ----------
    roots : tuple of int
        The roots that it changes.
    before, after : Expr
        ``before`` becomes ``after`` wherever it occurs in them, inside the branches that ``given`` names.
    given : tuple of bool Expr
        The conditions of enclosing selections that are used, outermost first; ``not c`` names the other branch of
        ``where(c, ...)``. Empty if the step holds wherever the constraints, and the gate of its roots, do.
    law : str
        The name of a rule, of a lemma of :mod:`eqsat.explain.chains`, or of a coarse step
        (:data:`COARSE`).
    why : str
        The law's reason.
    instance : tuple of two Expr, or None
        The part of ``before`` to which the law was applied, and what it became, if that is not all of it.
    check : Check
        How both sides were compared.
    """

    roots: tuple[int, ...]
    before: Expr
    after: Expr
    given: tuple[Expr, ...]
    law: str
    why: str
    instance: tuple[Expr, Expr] | None
    check: Check

    def apply(self, root: Expr) -> Expr:
        """``root`` after the step."""
        return replaced_within([root], self.before, self.after, self.given)[0]


@dataclass(frozen=True)
class Explanation(Displayed):
    """A checked derivation of a result from its input; as text, it reads like a calculation.

    Attributes
    ----------
    before, exprs : tuple of Expr
        The roots at the start and at the end.
    constraints, gates
        The known facts under which they are equal.
    steps : tuple of Step
        Made in order, they turn ``before`` into ``exprs``.
    laws : dict from str to str
        The laws that the steps cite, in the order of first use, and what they say.
    minimal : bool
        Whether every law is needed: without any one of them the search finds no derivation. False if time ran out.
    """

    before: tuple[Expr, ...]
    exprs: tuple[Expr, ...]
    constraints: tuple[Expr, ...]
    gates: tuple[Expr | None, ...]
    steps: tuple[Step, ...]
    laws: dict[str, str]
    minimal: bool

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the laws that the steps cite."""
        return tuple(self.laws)

    @property
    def coarse(self) -> int:
        """How many steps are larger than one application of a law."""
        return sum(step.law in COARSE for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(_Page(self).lines())

    def _repr_html_(self) -> str:
        page = _Page(self)
        text = page.definition
        rows = [[text(s.before), text(s.after), s.law, self.laws.get(s.law, "")] for s in self.steps]
        return html_table(["what", "becomes", "by", "law"], rows)

    def _repr_latex_(self) -> str | None:
        return formula(*[(s.before, " = ", s.after, rf" \quad \text{{{s.law}}}") for s in self.steps])

    def record(self) -> dict[str, Any]:
        """The explanation as JSON data; ``lets`` names large subterms, in order, as in the format of corpora."""
        page = _Page(self)
        return {
            "steps": [
                {
                    "roots": list(step.roots),
                    "before": page.text(step.before),
                    "after": page.text(step.after),
                    "given": [page.text(condition) for condition in step.given],
                    "law": step.law,
                    "why": step.why,
                    "instance": step.instance and [page.text(part) for part in step.instance],
                    "checked": step.check.kind,
                    "points": step.check.points,
                }
                for step in self.steps
            ],
            "lets": [[name, page.definition(term)] for term, name in page.names.items()],
            "laws": self.laws,
            "minimal": self.minimal,
            "coarse": self.coarse,
        }


def replaced_within(roots: Sequence[Expr], before: Expr, after: Expr, given: Sequence[Expr]) -> list[Expr]:
    """``roots`` with ``after`` for ``before`` wherever that is in the branches that the conditions ``given`` name."""
    if not given:
        return substitute(roots, {before: after})

    condition, *inner = given

    def enter(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op != "where":
            return None
        if args[0] is condition:
            branch = 1
        elif condition.op == "not" and args[0] is condition.args[0]:
            branch = 2
        else:
            return None
        changed = replaced_within([args[branch]], before, after, inner)
        return make("where", *args[:branch], *changed, *args[branch + 1 :])

    return rebuild(roots, enter)


class _Page:
    """An explanation as text; subterms that are large and used several times have names."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        shown = [*explanation.before, *explanation.exprs]
        for step in explanation.steps:
            shown += [step.before, step.after, *step.given, *(step.instance or ())]
        self.names = _names(shown)

    def text(self, term: Expr) -> str:
        """The text of a term, by the names of what has one."""
        return to_text(term, self.names)

    def definition(self, term: Expr) -> str:
        """The text of a term that may itself have a name."""
        return to_text(term, {part: name for part, name in self.names.items() if part is not term})

    def lines(self) -> Iterator[str]:
        explanation = self.explanation
        if not explanation.steps:
            yield "The input is the answer: there is nothing to derive."
            return
        chains = list(self._chains())
        if len(chains) > 1:
            for before, after in zip(explanation.before, explanation.exprs, strict=True):
                yield f"{self.definition(before)}  becomes  {self.definition(after)}"
            yield ""
        if self.names:
            for term, name in self.names.items():
                yield f"{name} stands for {self.definition(term)}"
            yield ""
        lefts = [len(self.definition(step.after)) for step in explanation.steps]
        column = max([length for length in lefts if length <= MAX_COLUMN], default=0)
        for chain in chains:
            yield self._head(chain[0])
            for step in chain:
                yield from self._step(step, column)
            yield ""
        yield from self._laws()

    def _chains(self) -> Iterator[list[Step]]:
        """The steps in chains: in each a step begins where the last ended."""
        chain: list[Step] = []
        for step in self.explanation.steps:
            if chain and (step.before, step.given, step.roots) != (chain[-1].after, chain[-1].given, chain[-1].roots):
                yield chain
                chain = []
            chain.append(step)
        if chain:
            yield chain

    def _head(self, step: Step) -> str:
        context = "".join(f", where {self.text(condition)}" for condition in step.given)
        roots = f"  (root {', '.join(map(str, step.roots))})" if len(self.explanation.before) > 1 else ""
        return f"{self.definition(step.before)}{context}{roots}"

    def _step(self, step: Step, column: int) -> Iterator[str]:
        left = self.definition(step.after)
        why = step.why
        if step.instance is not None:
            instance = " = ".join(map(self.text, step.instance))
            why = f"{instance} ({why})" if why else instance
        right = f"{step.law}{why and ': ' + why}  [{_checked(step.check)}]"
        start = f"  = {left:<{column}}"
        if len(left) > column:
            yield start
            start = " " * (4 + column)
        yield f"{start}    {right}"

    def _laws(self) -> Iterator[str]:
        explanation = self.explanation
        laws = len(explanation.laws)
        needed = ", none of which can be spared" if explanation.minimal else ""
        yield "By one law:" if laws == 1 else f"By {laws} laws{needed}:"
        column = max(map(len, explanation.laws))
        for law, statement in explanation.laws.items():
            yield f"  {law:<{column}}  {statement}"
        if explanation.coarse:
            steps = "one step is" if explanation.coarse == 1 else f"{explanation.coarse} steps are"
            yield f"{steps} coarse: no chain of single laws was found there in time"


def _checked(check: Check) -> str:
    if check.kind in ("proved", "unchecked"):
        return check.kind
    points = "one point" if check.points == 1 else f"{check.points} points"
    return f"at all {points}" if check.kind == "exhaustive" else f"at {points}"


def _names(shown: Sequence[Expr]) -> dict[Expr, str]:
    """Names for large subterms that occur several times in ``shown``, in an order in which they can be defined."""
    order = topological(shown)
    users = Counter(arg for term in order for arg in term.args)
    free = numbered("t", names_of(shown))
    names: dict[Expr, str] = {}
    widths: dict[Expr, int] = {}
    for term in order:
        widths[term] = 1 + sum([widths[a] for a in term.args])
        if widths[term] > MAX_PRINTED and users[term] > 1:
            names[term] = next(free)
            widths[term] = 1
    return names
