"""What the rules found beside the theory, as spellings for the classes of a speller's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from eqsat.costs import LATENCY
from eqsat.expr import Expr
from eqsat.extract.graph import EGraph, Node, Payload
from eqsat.extract.select import Priced, tree
from eqsat.ops import OPS
from eqsat.spelling.speller import Speller
from eqsat.spelling.terms import to_exprs
from eqsat.spelling.value_graph import Value
from eqsat.theory.forms import ZERO, Form


def join(speller: Speller, classes: Sequence[int], found: EGraph) -> bool:
    """Offer what the rules found to the speller's graph; whether anything was new.

    What the theory computes from the operands is no news: it has its own spellings of those.
    """
    representatives = tree(Priced.of(found, LATENCY))
    order = [c for c in found.classes if c in representatives]
    terms = dict(zip(order, to_exprs(found, representatives, order, speller.variables), strict=True))
    values = _Values(speller, terms, dict(zip(found.roots, classes, strict=True)))
    before = len(speller.graph)
    source = speller.enter("rules")
    waiting = sorted((c for c in order if values.is_known(c)), key=lambda c: terms[c].key)
    done: set[int] = set()
    while waiting:
        c = waiting.pop()
        if c in done:
            continue
        done.add(c)
        for op, value, args in sorted(found.classes[c], key=repr):
            if args and all(a in terms for a in args) and not values.follows(c, op, args):
                speller.offer(values.home(c), _in_one_order(op, value, tuple([values.home(a) for a in args])))
                waiting.extend(args)
        speller.grow()
    speller.enter(source)
    return len(speller.graph) > before


def _in_one_order(op: str, value: Payload, args: tuple[int, ...]) -> Node:
    """A node with the operands of a commutative operator sorted: its two orders are one spelling."""
    return op, value, tuple(sorted(args)) if OPS[op].commutes else args


class _Values:
    """The normal forms of the classes that the rules found, and the speller's classes for them."""

    def __init__(self, speller: Speller, terms: dict[int, Expr], homes: dict[int, int]) -> None:
        self.speller, self.terms, self.homes = speller, terms, homes
        self._values: dict[int, Value] = {}

    def __getitem__(self, c: int) -> Value:
        if c not in self._values:
            self._values[c] = self.speller.value_of(self.terms[c])
        return self._values[c]

    def is_known(self, c: int) -> bool:
        """Whether the speller has a class for ``c`` already."""
        return c in self.homes or self[c] in self.speller.classes

    def home(self, c: int) -> int:
        """The speller's class for ``c``."""
        if c not in self.homes:
            self.homes[c] = self.speller.need(self[c])
        return self.homes[c]

    def follows(self, c: int, op: str, args: tuple[int, ...]) -> bool:
        """Whether the theory knows that ``c`` is this sum of its operands."""
        if op not in ("add", "sub", "neg", "mul"):
            return False
        forms = [self[a] for a in args]
        home = self.speller.values[self.homes[c]] if c in self.homes else self[c]
        if not all(isinstance(form, Form) for form in (home, *forms)):
            return False
        x, y = cast(list[Form], forms) if len(forms) == 2 else (ZERO, cast(Form, forms[0]))
        if op == "mul":
            return not (x.terms and y.terms) and self.speller.theory.times(x, y) == home
        return x.plus(y, 1 if op == "add" else -1) == home
