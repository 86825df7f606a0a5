"""The text form: Python syntax in, Python syntax out.

``parse`` reads one expression, ``to_text`` prints one; printing and parsing round-trip. ``to_program`` prints several
roots with their shared subterms named, so that a graph never explodes into a tree. Neither recurses: nesting may be
thousands of levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from eqsat.expr import FALSE, TRUE, Expr, const, make, topological, var
from eqsat.ops import OPS

_TOKEN = re.compile(r"\s*(?:(\d[\d_]*)|([A-Za-z_]\w*)|(//|<<|>>|<=|>=|==|!=|[-+*%<>(),]))")

#: Infix spellings; ``>`` and ``>=`` swap their operands.
_INFIX = {OPS[n].symbol: (n, OPS[n].precedence) for n in OPS if OPS[n].symbol and len(OPS[n].takes) == 2}
_INFIX |= {">": ("gt", 4), ">=": ("ge", 4), "<<": ("shl", 5), ">>": ("shr", 5)}
_PREFIX = {"not": ("not", 3), "-": ("neg", 8)}
_CALLS = {n: (len(OPS[n].takes), n in ("min", "max")) for n in OPS if not OPS[n].symbol}
_COMPARE = 4


def parse(text: str, names: Mapping[str, Expr]) -> Expr:
    """The expression that ``text`` spells.

    Parameters
    ----------
    text : str
        Python syntax over integers: ``+ - * // % << >>``, unary ``-``, comparisons (chains too), ``and or not``, and
        ``min max where tdiv tmod shl shr``. A condition used as a number counts 1 or 0.
    names : mapping from str to Expr
        The variables and named subterms that may occur.

    Raises
    ------
    ValueError
        If the text is not an expression; one line that says where and why.

    >>> parse("(i*32 + j) // 32 < 4", {"i": var("i", 0, 7), "j": var("j", 0, 31)})
    Expr('(i*32 + j)//32 < 4')
    """
    return _Parser(text, names).run()


class _Parser:
    """Operator precedence parsing (Dijkstra's shunting yard) with explicit stacks."""

    def __init__(self, text: str, names: Mapping[str, Expr]) -> None:
        self.text = text
        self.names = names
        self.values: list[Expr] = []
        # (name, precedence, height of the value stack below its operands); precedence 0 is an open bracket
        self.pending: list[tuple[str, int, int]] = []
        self.position = 0

    def fail(self, what: str) -> ValueError:
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        return ValueError(f"cannot parse {shown!r}: {what} at column {self.position + 1}")

    def run(self) -> Expr:
        tokens = self.tokens()
        want_operand = True
        for index, (kind, token, self.position) in enumerate(tokens):
            following = tokens[index + 1][1] if index + 1 < len(tokens) else ""
            if want_operand:
                want_operand = self.operand(kind, token, following)
            else:
                want_operand = self.operator(token)
        self.position = len(self.text)
        if want_operand:
            raise self.fail("an operand is missing")
        self.reduce(1)
        if self.pending:
            raise self.fail("a closing bracket is missing")
        return self.values[0]

    def tokens(self) -> list[tuple[int, str, int]]:
        found = []
        end = len(self.text.rstrip())
        while self.position < end:
            match = _TOKEN.match(self.text, self.position)
            if match is None or match.lastindex is None:
                self.position += len(self.text[self.position :]) - len(self.text[self.position :].lstrip())
                raise self.fail(f"unexpected {self.text[self.position]!r}")
            found.append((match.lastindex, match[match.lastindex], match.start(match.lastindex)))
            self.position = match.end()
        return found

    def operand(self, kind: int, token: str, following: str) -> bool:
        """Take a token where an operand may start; whether an operand is still wanted."""
        if kind == 1:
            number = int(token)
            if self.pending and self.pending[-1][0] == "neg":
                self.pending.pop()
                number = -number
            self.values.append(const(number))
            return False
        if token in _PREFIX:
            self.pending.append((*_PREFIX[token], len(self.values)))
            return True
        if token == "(":
            self.pending.append(("(", 0, len(self.values)))
            return True
        if kind != 2 or token in ("and", "or"):
            raise self.fail(f"unexpected {token!r}")
        if following == "(":
            if token not in _CALLS:
                raise self.fail(f"unknown function {token!r} (known: {', '.join(_CALLS)})")
            self.pending.append((token, 0, len(self.values)))
            # its bracket comes next and belongs to the call
            return True
        if token in ("True", "False"):
            self.values.append(TRUE if token == "True" else FALSE)
        elif token in self.names:
            self.values.append(self.names[token])
        else:
            raise self.fail(f"unknown variable {token!r}: give its range,")
        return False

    def operator(self, token: str) -> bool:
        """Take a token after an operand; whether an operand is wanted next."""
        if token == ")":
            self.reduce(1)
            if not self.pending:
                raise self.fail("unexpected ')'")
            self.pending.pop()
            if self.pending and self.pending[-1][0] in _CALLS and self.pending[-1][1] == 0:
                self.call(*self.pending.pop()[::2])
            return False
        if token == ",":
            self.reduce(1)
            if len(self.pending) < 2 or self.pending[-2][0] not in _CALLS:
                raise self.fail("unexpected ','")
            return True
        if token not in _INFIX:
            raise self.fail(f"an operator is missing before {token!r}")
        name, precedence = _INFIX[token]
        if precedence == _COMPARE:
            self.reduce(_COMPARE + 1)
            if self.pending and self.pending[-1][1] == _COMPARE:
                middle = self.values[-1]
                self.reduce(_COMPARE)
                self.pending.append(("and", _COMPARE, len(self.values) - 1))
                self.values.append(middle)
        else:
            self.reduce(precedence)
        self.pending.append((name, precedence, len(self.values) - 1))
        return True

    def reduce(self, precedence: int) -> None:
        """Apply the pending operators that bind at least as tightly as ``precedence``."""
        while self.pending and self.pending[-1][1] >= precedence:
            name, _, height = self.pending.pop()
            self.apply(name, height)

    def call(self, name: str, height: int) -> None:
        arity, variadic = _CALLS[name]
        given = len(self.values) - height
        if given != arity and not (variadic and given > arity):
            raise self.fail(f"{name} takes {arity} arguments, not {given},")
        while len(self.values) - height > arity:
            last = self.values.pop()
            self.values.append(last)
            self.apply(name, len(self.values) - 2)
        self.apply(name, height)

    def apply(self, name: str, height: int) -> None:
        args = self.values[height:]
        del self.values[height:]
        if name in ("gt", "ge"):
            name, args = ("lt" if name == "gt" else "le"), args[::-1]
        takes = OPS[name].takes
        mixed = len({a.is_bool for a, sort in zip(args, takes, strict=True) if sort == "s"}) == 2
        args = [
            make("where", a, const(1), const(0)) if a.is_bool and (sort == "i" or (sort == "s" and mixed)) else a
            for a, sort in zip(args, takes, strict=True)
        ]
        try:
            self.values.append(make(name, *args))
        except (TypeError, ValueError) as error:
            raise self.fail(f"{error},") from None


def to_text(root: Expr, names: Mapping[Expr, str] | None = None, most: int | None = None) -> str:
    """The text of ``root``; subterms in ``names`` are printed as their name.

    ``most`` stops after about so many characters, for messages about huge terms.
    """
    names = names or {}
    parts: list[str] = []
    length = 0
    stack: list[str | tuple[Expr, int]] = [(root, 0)]
    while stack and (most is None or length <= most):
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            length += len(item)
            continue
        term, floor = item
        if term in names:
            parts.append(names[term])
            length += len(names[term])
            continue
        pieces, precedence = _pieces(term)
        if precedence < floor:
            pieces = ["(", *pieces, ")"]
        stack.extend(reversed(pieces))
    return "".join(parts)


def _pieces(term: Expr) -> tuple[list[str | tuple[Expr, int]], int]:
    """What to print for ``term``: strings and (operand, least precedence that needs no brackets)."""
    if not term.args:
        return [str(term.value)], 8 if term.vmin < 0 and term.op == "const" else 100
    op = OPS[term.op]
    if not op.symbol:
        pieces: list[str | tuple[Expr, int]] = [term.op, "("]
        for index, arg in enumerate(term.args):
            pieces += [", "] * (index > 0) + [(arg, 0)]
        return [*pieces, ")"], 100
    if len(term.args) == 1:
        word = op.symbol + " " if op.symbol == "not" else op.symbol
        return [word, (term.args[0], 101 if term.args[0].op == "const" else op.precedence)], op.precedence
    symbol = op.symbol if op.precedence == 7 else f" {op.symbol} "
    left, right = term.args
    left_floor = op.precedence + (op.precedence == _COMPARE)
    return [(left, left_floor), symbol, (right, op.precedence + 1)], op.precedence


def to_program(roots: Sequence[Expr], taken: Iterable[str] = ()) -> tuple[list[tuple[str, str]], list[str]]:
    """``roots`` as text with shared subterms named: (name, text) pairs in order, and a text per root.

    The names are ``t0``, ``t1``, ... without those of variables and those in ``taken``.
    """
    order = list(topological(roots))
    users: dict[Expr, int] = {}
    for term in order:
        for arg in term.args:
            users[arg] = users.get(arg, 0) + 1
    used = set(taken) | {cast(str, t.value) for t in order if t.op == "var"}
    names: dict[Expr, str] = {}
    lets: list[tuple[str, str]] = []
    number = 0
    depth: dict[Expr, int] = {}
    for term in order:
        depth[term] = 1 + max((depth[a] for a in term.args), default=0)
        # deep terms are cut too, so that readers with a recursion limit can take them
        if term.args and (users.get(term, 0) > 1 or depth[term] > 40):
            while f"t{number}" in used:
                number += 1
            name = f"t{number}"
            number += 1
            lets.append((name, to_text(term, names)))
            names[term] = name
            depth[term] = 0
    return lets, [to_text(root, names) for root in roots]


def parse_program(lets: Iterable[tuple[str, str]], texts: Iterable[str], names: Mapping[str, Expr]) -> list[Expr]:
    """The inverse of :func:`to_program`: parse ``lets`` in order, then ``texts``.

    Raises
    ------
    ValueError
        If a text does not parse.
    """
    known = dict(names)
    for name, text in lets:
        known[name] = parse(text, known)
    return [parse(text, known) for text in texts]


Rows = list[tuple[str, Any, tuple[int, ...]]]


def to_rows(root: Expr) -> Rows:
    """``root`` as a flat table, operands before users: for pickling terms of any depth."""
    index: dict[Expr, int] = {}
    rows: Rows = []
    for term in topological([root]):
        index[term] = len(rows)
        value = (term.value, term.vmin, term.vmax) if term.op == "var" else term.value
        rows.append((term.op, value, tuple(index[a] for a in term.args)))
    return rows


def from_rows(rows: Rows) -> Expr:
    """The inverse of :func:`to_rows`."""
    terms: list[Expr] = []
    for op, value, args in rows:
        if op == "const":
            terms.append(const(value))
        elif op == "bool":
            terms.append(TRUE if value else FALSE)
        elif op == "var":
            terms.append(var(*value))
        else:
            terms.append(make(op, *[terms[a] for a in args]))
    return terms[-1]
