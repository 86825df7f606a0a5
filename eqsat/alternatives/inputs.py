"""E-nodes from the terms of the input: their operators over the normal forms of their operands.

The input's quotients, remainders and products are also rewritten by laws that normal forms hide
(:mod:`eqsat.alternatives.hidden_laws`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import cast

from eqsat.alternatives.bits import BitNodes
from eqsat.alternatives.canonical import CanonicalGraph, KindNodes, sum_of
from eqsat.alternatives.hidden_laws import HIDDEN, HiddenLaws
from eqsat.alternatives.limits import LIMITS
from eqsat.alternatives.providers import provides
from eqsat.extract.graph import Node, Payload, sum_payload
from eqsat.lang.expr import Expr, is_wide
from eqsat.lang.ops import BITWISE, COMPARISONS, FLOORS, REDUCTIONS, SHIFTS, SUMS
from eqsat.lang.traversal import long_partial_chains
from eqsat.theory.forms import LinearForm, Value, literal

#: Conjunctions and disjunctions of the input have no notation that the normal form has not.
_WORTH_ADDING = SUMS | frozenset(
    {"floordiv", "mod", "tdiv", "tmod", "mul", "where", "min", "max", *BITWISE, *SHIFTS, *COMPARISONS, *REDUCTIONS}
)


class InputNodes(KindNodes):
    """What the terms of an input write."""

    def __init__(self, classes: CanonicalGraph) -> None:
        super().__init__(classes)
        self._hidden_laws = HiddenLaws(self.theory)
        self.bits = BitNodes(classes)
        #: For each class that the input writes, the node of its lowest term, which needs no other term of that class.
        self.nodes: dict[int, Node] = {}
        # by normal form, the terms of the input, and those that equal them by laws that normal forms hide
        self._originals: dict[Value, list[Expr]] = {}
        self._rewrites: dict[Value, list[Expr]] = {}
        # the input, and by normal form the terms of it that are not too wide, once one is asked for
        self._input: list[Expr] = []
        self._narrow: dict[Value, Expr] | None = None
        # whether the input has so few divisions that they are rewritten, and taken as they are written
        self._has_few = True
        # whether terms are added that say no more than their normal forms
        self._all_terms = False

    def add(self, terms: Iterable[Expr], all_terms: bool = False) -> None:
        """Let terms of the input, normalised before, write the classes that they belong to; operands come first.

        With ``all_terms`` those too that say no more than their normal forms.
        """
        self._all_terms = all_terms
        self._input = list(terms)
        ops = [term.op for term in self._input]
        self._has_few = sum([op in FLOORS for op in ops]) < LIMITS.input_divisions
        self.classes.truncates |= "tdiv" in ops
        parts = long_partial_chains(self._input, LIMITS.wide_sum) if self.theory.is_canonical else ()
        for place, (term, op) in enumerate(zip(self._input, ops, strict=True)):
            if place % LIMITS.terms_per_look == 0:
                # where it is overdue there is no answer but the input
                self.theory.late_or_raise()
            is_wanted = op in _WORTH_ADDING or (all_terms and op == "not")
            value = self.classes.value_of(term) if is_wanted and term not in parts else None
            if value is not None and self._is_worth_adding(term, value):
                self._originals.setdefault(value, []).append(term)
                if not self.theory.is_canonical:
                    continue
                if op in COMPARISONS and not term.args[0].is_bool:
                    # the complement of what is written is often what is meant
                    negated, written = map(self.theory.negate, (cast(Expr, value), term))
                    self._originals.setdefault(negated, []).append(written)
                if op in BITWISE and not self.theory.late_or_raise():
                    for before, after in self.bits.rewritten(term):
                        self._rewrites.setdefault(self.classes.value_of(before), []).append(after)
                if self._has_few and op in HIDDEN and isinstance(value, LinearForm) and not self.theory.late_or_raise():
                    for before, after in self._hidden_laws.rewritten(term):
                        self._rewrites.setdefault(self.classes.value_of(before), []).append(after)

    @provides("input", otherwise=lambda self, term, value: False)
    def _is_worth_adding(self, term: Expr, value: Value) -> bool:
        """Whether a term with an operator of those that are worth it says more than its normal form ``value``."""
        if term.op in REDUCTIONS:
            # the form of an index with one value is that value, which binds nothing
            return term.args[1].vmin < term.args[1].vmax
        if self._all_terms:
            return True
        if isinstance(value, LinearForm):
            return not value.is_affine()
        return term.op == "where" or any(self._has_quotient(a) for a in term.args)

    def written(self, term: Expr) -> Node | None:
        """The node that a term is, over the classes of its operands; none if its normal form says as much."""
        if term.op not in _WORTH_ADDING or not self._is_worth_adding(term, self.classes.value_of(term)):
            return None
        return self._nodes([term], 1)[0]

    def add_to(self, c: int) -> None:
        """Add to a class the terms of the input with its value, and what follows from them."""
        value = self.classes.values[c]
        if originals := self._originals.get(value):
            for node in self._nodes(originals, LIMITS.input_nodes):
                if self.classes.add_node(c, node) and self._has_few:
                    self.nodes.setdefault(c, node)
        if self._rewrites and (rewrites := self._rewrites.get(value)):
            for node in self._nodes(rewrites, LIMITS.hidden_nodes):
                self.classes.add_node(c, node)

    def _nodes(self, terms: Sequence[Expr], most: int) -> list[Node]:
        # terms that differ in the order of operands give the same node: take them by what their operands mean
        heights = self._heights if len(terms) > 1 and self._has_few else {}
        highest_first = sorted(terms, key=lambda term: -heights.get(term, 0))
        meanings = {self._meaning(term): heights.get(term, 0) for term in highest_first}
        chosen = [*meanings]
        if len(chosen) > 1:
            chosen = sorted(chosen, key=lambda m: (meanings[m], _meaning_order(m)))[:most]
        nodes: list[Node] = []
        for op, payload, operands in chosen:
            if op == "sum":
                constant, coefficients = sum_payload(payload)
                nodes.append(
                    sum_of([(self.add_class(a), k) for a, k in zip(operands, coefficients, strict=True)], constant)
                )
            else:
                nodes.append((op, None, tuple([self.add_class(a) for a in operands])))
        return nodes

    @cached_property
    def _heights(self) -> dict[Expr, int]:
        """How many operators are on the longest path below each term of the input."""
        found: dict[Expr, int] = {}
        for term in self._input:
            found[term] = max([found[arg] for arg in term.args]) + 1 if term.args else 0
        return found

    def _meaning(self, term: Expr) -> tuple[str, Payload, tuple[Value, ...]]:
        """A term of the input as an operator over normal forms; sums as wide as they are written."""
        if term.op not in SUMS and term.args:
            return term.op, None, tuple(map(self.classes.value_of, term.args))
        total: dict[Value, int] = {}
        constant = 0
        stack = [(term, 1)]
        while stack:
            part, scale = stack.pop()
            if part.op in SUMS:
                stack += [(part.args[0], -scale if part.op == "neg" else scale)]
                stack += [(arg, -scale if part.op == "sub" else scale) for arg in part.args[1:]]
            elif part.op == "mul" and part.args[1].op == "const":
                stack.append((part.args[0], scale * part.args[1].vmin))
            elif part.op == "mul" and part.args[0].op == "const":
                stack.append((part.args[1], scale * part.args[0].vmin))
            elif part.op == "const":
                constant += scale * part.vmin
            else:
                value = self.classes.value_of(part)
                if (known := literal(value)) is not None:
                    constant += scale * known
                else:
                    total[value] = total.get(value, 0) + scale
        operands = sorted([v for v, k in total.items() if k], key=hash)
        return "sum", (constant, tuple([total[v] for v in operands])), tuple(operands)

    def _has_quotient(self, term: Expr) -> bool:
        value = self.classes.value_of(term)
        return isinstance(value, LinearForm) and not value.is_affine()

    def narrower(self, c: int) -> Expr | None:
        """A term of the input with the value of a class that is not too wide."""
        if self._narrow is None:
            self._narrow = {self.classes.value_of(term): term for term in self._input if not is_wide(term)}
        return self._narrow.get(self.classes.values[c])

    def narrowed(self) -> dict[int, Expr]:
        """Of every class what :meth:`narrower` says, if it was asked before."""
        found = {} if self._narrow is None else self._narrow
        return {c: found[value] for c, value in enumerate(self.classes.values) if value in found} if found else {}


def _meaning_order(meaning: tuple[str, Payload, tuple[Value, ...]]) -> tuple[str, int, tuple[int, ...]]:
    op, payload, operands = meaning
    return op, hash(payload), tuple(map(hash, operands))
