"""The same case in another order: what no answer may depend on.

Operands of commutative operators trade places, chains of associative ones are bracketed anew. What is shared stays
shared: a chain ends at a term that something else uses too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from eqsat.cli.cases import Case
from eqsat.lang.expr import Expr, make
from eqsat.lang.traversal import signed_members, use_counts

ASSOCIATIVE = frozenset({"add", "mul", "and", "or", "min", "max"})
COMMUTATIVE = ASSOCIATIVE | {"eq", "ne"}


def shuffled(roots: Sequence[Expr], seed: int) -> list[Expr]:
    """``roots``, one by one in the same order, with their operands in another order and other brackets."""
    random = Random(seed)
    users = use_counts(roots)
    new: dict[Expr, Expr] = {}
    for term in users:
        if term.op in COMMUTATIVE:
            # the chain that ends in the term
            chained = {term.op} & ASSOCIATIVE
            members = signed_members(term, lambda part: part.op in chained and users[part] == 1)  # noqa: B023
            operands = [new[member] for member, _ in members]
            random.shuffle(operands)
            while len(operands) > 1:
                at = random.randrange(len(operands) - 1)
                operands[at : at + 2] = [make(term.op, operands[at], operands[at + 1])]
            new[term] = operands[0]
        else:
            new[term] = make(term.op, *[new[arg] for arg in term.args]) if term.args else term
    return [new[root] for root in roots]


def reordered(case: Case, seed: int) -> Case:
    """The case with shuffled terms, roots and constraints; each root keeps its gate."""
    roots, count = len(case.exprs), len(case.constraints)
    gates = case.gates or [None] * roots
    known = [gate for gate in gates if gate is not None]
    terms = shuffled([*case.exprs, *case.constraints, *known], seed)
    gate_of = dict(zip(known, terms[roots + count :], strict=True))
    order = Random(seed).sample(range(roots), roots)
    return replace(
        case,
        exprs=[terms[i] for i in order],
        gates=[None if gate is None else gate_of[gate] for gate in (gates[i] for i in order)],
        constraints=Random(seed).sample(terms[roots : roots + count], count),
    )
