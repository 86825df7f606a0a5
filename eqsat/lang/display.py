"""What notebooks show of objects: tables of HTML, and formulas of LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from eqsat.lang.expr import Expr
from eqsat.lang.ops import FLOATS, OPS, REDUCTIONS, Lazy
from eqsat.lang.slots import FORMULA, Displayed
from eqsat.lang.text import Pieces, listed, pieces, to_text
from eqsat.lang.traversal import Buffer, tree_size

html = Lazy("html")

__all__ = ["Displayed", "formula", "html_table", "to_latex"]

#: Terms of more nodes have no formula: nobody reads it, and it takes long to set.
MOST_NODES = 400
#: Infix operators that LaTeX writes otherwise.
_SYMBOLS = {
    "or": r" \lor ",
    "and": r" \land ",
    "not": r"\lnot ",
    "le": r" \le ",
    "eq": " = ",
    "ne": r" \ne ",
    "bitor": r" \mathbin{|} ",
    "bitxor": r" \oplus ",
    "bitand": r" \mathbin{\&} ",
    "shl": r" \ll ",
    "shr": r" \gg ",
    "mul": r" \cdot ",
    "mod": r" \bmod ",
}
_BINDERS = {"sum": r"\sum", "prod": r"\prod", "max_over": r"\max", "min_over": r"\min"}


def to_latex(root: Expr) -> str:
    r"""``root`` as a formula of LaTeX, without dollar signs.

    Parameters
    ----------
    root : Expr
        A term.

    Raises
    ------
    ValueError
        If it has more than some ten million characters.

    >>> from eqsat.lang.text import parse
    >>> from eqsat.lang.expr import var
    >>> print(to_latex(parse("(R0*8 + k)//4 % n", {"R0": var("R0", 0, 9), "k": var("k", 0, 7), "n": var("n", 1, 9)})))
    \left\lfloor\frac{R_{0} \cdot 8 + k}{4}\right\rfloor \bmod n
    """
    return to_text(root, pieces_of=_latex_pieces)


def _latex_pieces(term: Expr) -> Pieces:
    operator = FLOATS[term.op].integer if term.op in FLOATS else term.op
    if term.op in ("var", "buffer"):
        return [_name(cast(Buffer, term.value).name if term.op == "buffer" else str(term.value))], 100
    if term.op == "load":
        return [(term.args[0], 0), r"\left[", *listed(term.args[1:]), r"\right]"], 100
    if term.op in REDUCTIONS:
        body, index, low, high = term.args
        binder = _BINDERS[REDUCTIONS[term.op].text]
        span: list[str | tuple[Expr, int]] = ["_{", (low, 5), r" \le ", (index, 0), " < ", (high, 5), "} "]
        # a sum that is not the last operand would reach over what follows
        return [binder, *span, (body, OPS["mul"].precedence)], OPS["add"].precedence
    if operator == "floordiv" or term.op == "fdiv":
        fraction: list[str | tuple[Expr, int]] = [r"\frac{", (term.args[0], 0), "}{", (term.args[1], 0), "}"]
        return (fraction if term.op == "fdiv" else [r"\left\lfloor", *fraction, r"\right\rfloor"]), 100
    if operator == "where":
        condition, value, other = term.args
        return [
            *(r"\begin{cases}", (value, 0), r" & \text{if } ", (condition, 0), r" \\ ", (other, 0)),
            r" & \text{otherwise}\end{cases}",
        ], 100
    printed, precedence = pieces(term)
    if operator in _SYMBOLS:
        place = len(term.args) - 1
        printed = [*printed[:place], _SYMBOLS[operator], *printed[place + 1 :]]
    elif term.args and precedence == 100:
        name = str(printed[0])
        printed = [rf"\{name}" if name in ("min", "max", "exp", "log") else _word(name, "operatorname"), *printed[1:]]
    elif isinstance(term.value, bool):
        printed = [_word(str(term.value))]
    return printed, precedence


def _name(name: str) -> str:
    """A letter with its number as an index, or a word."""
    found = re.fullmatch(r"([^\W\d_])_?(\d*)", name)
    if found is None:
        return _word(name, "mathit")
    return found[1] + (f"_{{{found[2]}}}" if found[2] else "")


def _word(word: str, kind: str = "text") -> str:
    return rf"\{kind}{{{word.replace('_', chr(92) + '_')}}}"


@FORMULA.fill
def formula(*lines: Expr | Sequence[Expr | str]) -> str | None:
    """Formulas below each other, between dollar signs; ``None`` if they are too large to read.

    A line is a term, or terms with text of LaTeX between them.
    """
    parts = [[line] if isinstance(line, Expr) else [*line] for line in lines]
    if sum(tree_size(part) for line in parts for part in line if isinstance(part, Expr)) > MOST_NODES:
        return None
    texts = ["".join(part if isinstance(part, str) else to_latex(part) for part in line) for line in parts]
    if len(texts) == 1:
        return rf"$\displaystyle {texts[0]}$"
    return rf"$$\begin{{aligned}}{r' \\ '.join(f'& {text}' for text in texts)}\end{{aligned}}$$"


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table of HTML: numbers to the right, texts as code.

    Parameters
    ----------
    head : sequence of str
        What the columns are called.
    rows : iterable of sequence
        The cells: texts, numbers, ``None`` for an empty one.
    caption : str
        What stands above it.

    >>> html_table(["n"], [[3]])
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td style="text-align:right">3</td></tr></tbody></table>'
    """
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<td style="text-align:left"><code>{html.escape(value)}</code></td>' if value else "<td></td>"
    return f'<td style="text-align:right">{"" if value is None else value}</td>'
