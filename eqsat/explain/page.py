"""Derivations as text, which read like calculations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eqsat.lang.expr import Expr, topological
from eqsat.lang.text import numbered, to_text
from eqsat.prove.verify import Check

if TYPE_CHECKING:
    from eqsat.explain.derivation import Explanation, Step

#: Subterms of more nodes are printed by name if they occur several times.
MAX_PRINTED = 24
#: Longer terms have a line of their own.
MAX_COLUMN = 60


class Page:
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
        """The derivation, line by line."""
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
        """The steps, those together that go on from one another."""
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
        if len(left) > column:
            yield f"  = {left}"
            left = ""
            yield f"    {left:<{column}}    {right}"
        else:
            yield f"  = {left:<{column}}    {right}"

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
    taken = {str(term.value) for term in order if term.op == "var"}
    free = numbered("t", taken)
    names: dict[Expr, str] = {}
    widths: dict[Expr, int] = {}
    for term in order:
        widths[term] = 1 + sum([widths[a] for a in term.args])
        if widths[term] > MAX_PRINTED and users[term] > 1:
            names[term] = next(free)
            widths[term] = 1
    return names
