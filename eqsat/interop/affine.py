"""Affine expressions, maps and sets in MLIR's syntax: read into terms, and printed; and prices that favour them.

``floordiv``, which XLA also writes ``/``, and ``mod`` are ``//`` and ``%``. ``x ceildiv n`` is read as ``-(x // -n)``,
and that is printed as ``x ceildiv n``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eqsat.extract.cost import CostModel, refuse_other
from eqsat.interop.limits import refuse_long_text
from eqsat.lang.expr import Expr
from eqsat.lang.ops import OPS, Bounds
from eqsat.lang.text import Pieces, parse, pieces, split_list, to_text
from eqsat.lang.validation import counted, shortened
from eqsat.theory.forms import read, to_expr

_SYMBOLS = {"floordiv": "//", "mod": "%", "/": "//"}
#: The operators of MLIR's affine expressions that are words.
AFFINE_WORDS = frozenset({"floordiv", "mod", "ceildiv"})
_AS_PRINTED = {"//": " floordiv ", "%": " mod ", "*": " * "}
#: The operators of MLIR's affine maps.
_AFFINE = ("add", "sub", "neg", "mul", "floordiv", "mod")
#: What any other operator costs on top of its price: more than a term of affine operators does.
_NOT_AFFINE = 10**6
#: How tightly the operators of maps bind.
_ADD, _MUL, _NEG = [OPS[op].precedence for op in ("add", "mul", "neg")]

_FUNCTION = re.compile(r"affine_(?:map|set)\s*<\s*\(([^()]*)\)\s*(?:\[([^\]]*)\])?\s*(->|:)\s*\((.*)\)\s*>", re.DOTALL)


@dataclass(frozen=True)
class Affine:
    """The prices of ``model``, raised for operators that are not affine: they are chosen where no affine term is equal.

    >>> from eqsat import optimize
    >>> from eqsat.extract import Latency
    >>> [optimize("x // 60", x=(0, 119), cost=model).expr for model in (Latency(), Affine(Latency()))]
    [Expr('where(x < 60, 0, 1)'), Expr('x//60')]
    """

    model: CostModel

    def __post_init__(self) -> None:
        refuse_other(self.model)

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The cost of one node."""
        return self.model.price(op, operands, result) + (0 if op in _AFFINE else _NOT_AFFINE)


@dataclass(frozen=True)
class AffineFunction:
    """The text of an ``affine_map`` or ``affine_set``: expressions, or conditions, of dims and symbols."""

    dims: tuple[str, ...]
    symbols: tuple[str, ...]
    #: What the map leads to, or the conditions of the set.
    results: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> AffineFunction:
        """The function in ``affine_map<...>`` or ``affine_set<...>``; ``ValueError`` if it is neither."""
        refuse_long_text(text, "an affine function")
        found = _FUNCTION.fullmatch(" ".join(text.split()))
        if not found or (found[3] == ":") != ("affine_set" in text):
            raise ValueError(
                f"cannot parse {text[:60]!r}: write affine_map<(d0) -> (d0)> or affine_set<(d0) : (d0 >= 0)>"
            )
        dims, symbols, results = [tuple(split_list(part or "")) for part in (found[1], found[2], found[4])]
        if len({*dims, *symbols}) != len(dims) + len(symbols):
            raise ValueError(f"cannot parse {text[:60]!r}: it names a variable twice")
        return cls(dims, symbols, results)

    def applied(self, dims: Sequence[Expr], symbols: Sequence[Expr]) -> list[Expr]:
        """The results at these operands, of which there is one for each dim and symbol."""
        if (len(dims), len(symbols)) != (len(self.dims), len(self.symbols)):
            given = f"{counted(len(dims), 'dim')} and {counted(len(symbols), 'symbol')}"
            raise ValueError(f"{given} for a function of {self}: give one for each")
        names = dict(zip((*self.dims, *self.symbols), (*dims, *symbols), strict=True))
        return [affine_term(result, names) for result in self.results]


def affine_term(text: str, names: Mapping[str, Expr]) -> Expr:
    """The term that an affine expression of MLIR writes; ``names`` has its dims and symbols."""
    # rounding up is rounding the opposite down
    text = re.sub(r"\bceildiv\s+(-?)(\w+)", lambda m: f"// {'' if m[1] else '-'}{m[2]} * -1", text)
    while opened := re.search(r"\bceildiv\s*\(", text):
        end = _closing(text, opened.end())
        text = f"{text[: opened.start()]}// -({text[opened.end() : end]}) * -1{text[end + 1 :]}"
    if re.search(r"\bceildiv\b", text):
        raise ValueError(f"cannot parse {text!r}: write a name, a number or brackets behind ceildiv")
    text = re.sub(r"\b(?:floordiv|mod)\b|/+", lambda m: _SYMBOLS.get(m[0], m[0]), text)
    return parse(text, names, "name it among the dims or symbols")


def _closing(text: str, start: int) -> int:
    """Where the bracket that is open at ``start`` is closed."""
    depth = 1
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    raise ValueError(f"cannot parse {shortened(text, 60)!r}: a bracket is not closed")


def affine_text(term: Expr) -> str:
    """``term`` in MLIR's syntax."""
    return to_text(term, pieces_of=_affine_pieces)


def _affine_pieces(term: Expr) -> Pieces:
    """What to print for ``term`` in MLIR's syntax, which has ``ceildiv`` instead of negative divisors."""
    if ceiling := _ceiling(term):
        dividend, divisor, factor = ceiling
        printed: list[str | tuple[Expr, int]] = [(dividend, _MUL), " ceildiv ", divisor]
        if factor == -1:
            return ["-(", *printed, ")"], _NEG
        return [*printed, *([f" * {factor}"] if factor != 1 else [])], _MUL
    if term.op in ("add", "sub") and (last := _ceiling(term.args[1])) and last[2] < 0:
        # a - (b ceildiv n) rather than a + -(b ceildiv n)
        part = term.args[1]
        opposite = -part if part.op == "floordiv" else part.args[0] * -part.args[1].vmin
        return [(term.args[0], _ADD), {"add": " - ", "sub": " + "}[term.op], (opposite, _MUL)], _ADD
    if term.op in _SYMBOLS and (positive := _opposite(term.args[1])) is not None:
        if term.op == "mod":
            # x mod -n is -(-x mod n)
            return ["-(", (-term.args[0], _MUL), " mod ", (positive, _NEG), ")"], _NEG
        return [(-term.args[0], _MUL), " floordiv ", (positive, _NEG)], _MUL
    found, precedence = pieces(term)
    return [_AS_PRINTED.get(p, p) if isinstance(p, str) else p for p in found], precedence


def _ceiling(term: Expr) -> tuple[Expr, str, int] | None:
    """``x``, ``n`` and ``k`` if ``term`` is ``(x ceildiv n) * k``: ``x // -n`` is ``-(x ceildiv n)``."""
    factor = -1
    if term.op == "neg":
        (term,), factor = term.args, 1
    elif term.op == "mul" and term.args[1].op == "const":
        term, factor = term.args[0], -term.args[1].vmin
    if term.op != "floordiv":
        return None
    divisor = _opposite(term.args[1])
    return None if divisor is None or divisor.args else (term.args[0], str(divisor), factor)


def _opposite(divisor: Expr) -> Expr | None:
    """``-divisor`` as a plain sum if ``divisor`` is always negative."""
    return to_expr(read(divisor).times(-1)) if divisor.vmax < 0 else None
