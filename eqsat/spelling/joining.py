"""What the rules found beside the theory, as spellings for the classes of a speller's graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from eqsat.costs import LATENCY
from eqsat.expr import Expr
from eqsat.extract.graph import EGraph, Node, Payload
from eqsat.extract.select import Priced, tree
from eqsat.ops import OPS, SUMS
from eqsat.spelling.speller import Speller
from eqsat.spelling.terms import to_exprs
from eqsat.spelling.value_graph import Value
from eqsat.theory.forms import ZERO, Form, atom_form, scale_of


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
    for root, c in zip(found.roots, classes, strict=True):
        _offer_value(speller, c, speller.value_of(terms[root]))
    within = list(_within_sums(speller, found, values, order))
    waiting = [part for _, part, _ in within]
    waiting += sorted((c for c in order if values.is_known(c)), key=lambda c: terms[c].key)
    done: set[int] = set()
    while waiting and not speller.theory.is_late():
        c = waiting.pop()
        if c in done:
            continue
        done.add(c)
        for op, value, args in sorted(found.classes[c], key=repr):
            if args and all(a in terms for a in args) and not values.follows(c, op, args):
                speller.offer(values.home(c), _in_one_order(op, value, tuple([values.home(a) for a in args])))
                waiting.extend(args)
        speller.grow()
    for c, part, scale in within:
        of_part = cast(Form, values[part])
        rest = cast(Form, speller.values[c]).plus(of_part, -scale)
        operands = [(atom_form(a), k) for a, k in rest.terms.items()]
        speller.offer(c, speller.sum_node([*operands, (of_part, scale)], rest.constant))
    speller.grow()
    speller.enter(source)
    return len(speller.graph) > before


def _offer_value(speller: Speller, c: int, value: Value) -> None:
    """Offer to a class what the rules found equal to it, if the theory does not know that it is."""
    if value == speller.values[c]:
        return
    if isinstance(value, Form):
        speller.offer(c, speller.sum_node([(Form(value.terms, 0), 1)] if value.terms else [], value.constant))
    else:
        speller.offer(c, (value.op, cast(Payload, value.value), speller.operands(value)))


def _within_sums(
    speller: Speller, found: EGraph, values: _Values, order: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """The speller's sums that have a multiple of a sum for which there is another operator, which, and how often.

    The e-graph that was found may bracket the longer sum otherwise.
    """
    sums = [(c, v) for c, v in enumerate(speller.values) if isinstance(v, Form) and len(v.terms) > 2]
    for part in order if sums else ():
        if all(op in SUMS or not args for op, _, args in found.classes[part]):
            continue
        if speller.theory.is_late():
            return
        of_part = values[part]
        if isinstance(of_part, Form) and len(of_part.terms) > 1:
            for c, form in sums:
                scale = scale_of(of_part, form)
                if scale and all(form.terms.get(a) == scale * k for a, k in of_part.terms.items()) and form != of_part:
                    yield c, part, scale


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
