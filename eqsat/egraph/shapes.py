"""How parts of patterns are held: as letters, as numbers that a match computes, as sums of multiples of terms."""

from __future__ import annotations

from functools import cache

from eqsat.egraph.patterns import CONDITIONS, LITERALS, MEASURES, TERMS, is_condition_letter, reductions_of
from eqsat.lang.expr import Expr, chain_members, const, make, topological, variables
from eqsat.lang.ops import SUMS


def is_literal_letter(term: Expr) -> bool:
    """Whether a part of a pattern is a letter that stands for a literal."""
    return term.op == "var" and str(term.value) in LITERALS


@cache
def is_number(term: Expr) -> bool:
    """Whether a part of a pattern is computed from literals and measures."""
    if term.is_bool:
        return False
    return all(t.op != "var" or str(t.value) in LITERALS or str(t.value) in MEASURES for t in topological([term]))


def as_sum(term: Expr) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """A pattern as a sum: its constant, and (coefficient, addend) pairs."""
    constant: Expr = const(0)
    found: list[tuple[Expr, Expr]] = []
    stack: list[tuple[Expr, Expr]] = [(const(1), term)]
    while stack:
        scale, part = stack.pop()
        if is_number(part):
            constant = _plus(constant, _times(scale, part))
        elif part.op == "add":
            stack += [(scale, part.args[1]), (scale, part.args[0])]
        elif part.op == "sub":
            stack += [(_times(scale, const(-1)), part.args[1]), (scale, part.args[0])]
        elif part.op == "neg":
            stack.append((_times(scale, const(-1)), part.args[0]))
        elif part.op == "mul":
            numbers = [f for f in operands_of(part, "mul") if is_number(f)]
            others = [f for f in operands_of(part, "mul") if not is_number(f)]
            for number in numbers:
                scale = _times(scale, number)
            if len(others) == 1 and (numbers or others[0].op in SUMS):
                stack.append((scale, others[0]))
            else:
                product = others[0]
                for other in others[1:]:
                    product = make("mul", product, other)
                found.append((scale, product))
        else:
            found.append((scale, part))
    return constant, found


def _plus(x: Expr, y: Expr) -> Expr:
    if x.op == "const" and y.op == "const":
        return const(x.vmin + y.vmin)
    return y if x.op == "const" and x.vmin == 0 else x if y.op == "const" and y.vmin == 0 else make("add", x, y)


def _times(x: Expr, y: Expr) -> Expr:
    if x.op == "const" and y.op == "const":
        return const(x.vmin * y.vmin)
    return y if x.op == "const" and x.vmin == 1 else x if y.op == "const" and y.vmin == 1 else make("mul", x, y)


def operands_of(term: Expr, op: str) -> list[Expr]:
    """The operands of a nest of one operator, in order."""
    return chain_members(term, op)[::-1]


def is_sum(term: Expr) -> bool:
    """Whether a part of a pattern is matched as a sum: multiples of one term are."""
    return term.op in SUMS or (term.op == "mul" and any(is_number(f) for f in operands_of(term, "mul")))


def letter_of(term: Expr) -> str | None:
    """The letter of a term or condition that a part of a pattern is, if it is one."""
    if is_condition_letter(term):
        return str(term.args[0].value)
    return str(term.value) if term.op == "var" and str(term.value) in TERMS else None


def has_terms(term: Expr) -> bool:
    """Whether a part of a pattern has letters of terms or conditions."""
    return any(str(v.value) in TERMS + CONDITIONS for v in variables([term]))


def ends_in(left: Expr) -> set[Expr]:
    """The ends of the ranges of reductions, which are read off normal forms and not matched."""
    return {end for t in reductions_of(left) for end in t.args[2:]}
