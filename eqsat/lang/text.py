"""The text form: Python syntax in, Python syntax out.

A reduction is written ``sum(body, r, low, high)``, and so are ``prod``, ``max_over`` and ``min_over``; ``r`` is its
index within the body alone. A load is ``A[i, j]``, also read as ``A(i, j)`` unless that is a call: arrays may be named
as functions are. ``x**3`` is read as a product, ``+x`` as ``x``, ``a if c else b`` as ``where(c, a, b)``, ``abs(x)``
and ``ceildiv(x, y)`` as what they are in other operators. Infinity is ``inf()`` and what is no number ``nan()``: a
variable or an array may have either name.

``parse`` reads one expression, ``to_text`` prints one; printing and parsing round-trip. ``to_program`` prints several
roots with their shared subterms named, so that a graph never explodes into a tree. Neither recurses: nesting may be
thousands of levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from math import inf, isfinite
from typing import NamedTuple, cast
from unicodedata import normalize

from eqsat.extract.graph import reached
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, as_expr, bitwise, brief, digits, make, stated, var
from eqsat.lang.ops import BITWISE, FLOATS, MOST_BITS, OPS, REDUCTIONS, SHIFTS, Op, for_each_own
from eqsat.lang.properties import VariableSets
from eqsat.lang.slots import TEXT
from eqsat.lang.traversal import Buffer, index_level, is_index, tree_size, use_counts
from eqsat.lang.validation import counted, list_of, require, shortened

_TOKEN = re.compile(
    r"\s*(?:(0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?|(?:inf|nan)\(\))|([^\W\d]\w*)|(//|\*\*|<<|>>|<=|>=|==|!=|[-+*/%<>&|^~(),[\]]))"
)

#: Infix operators; ``>`` and ``>=`` swap their operands.
_INFIX = {OPS[n].symbol: (n, OPS[n].precedence) for n in OPS if OPS[n].symbol and len(OPS[n].takes) == 2}
_INFIX |= {">": ("gt", 4), ">=": ("ge", 4), "**": ("pow", 12), "/": ("fdiv", 10)}
_PREFIX = {"not": ("not", 3), "-": ("neg", 11), "+": ("plus", 11), "~": ("invert", 11)}
#: Operators of C and of mathematics, of MLIR, and what to write in their place.
_OF_C = {"&&": "and", "||": "or", "!": "not", "?": "a if c else b", "≤": "<=", "≥": ">=", "≠": "!=", "<>": "!="}
_OF_MLIR = {"mod": "%", "div": "//", "floordiv": "//", "ceildiv": "ceildiv(x, y)", "xor": "^"}
#: Functions of Halide, TVM, SymPy and Inductor, and what to write in their place.
_OF_OTHERS = {
    **dict.fromkeys(["select", "if_then_else"], "where"),
    **dict.fromkeys(["Min", "minimum"], "min"),
    **dict.fromkeys(["Max", "maximum"], "max"),
    **dict.fromkeys(["floor", "floordiv", "FloorDiv"], "x//y"),
    **dict.fromkeys(["mod", "Mod", "floormod"], "x%y"),
    **{"ceil": "ceildiv(x, y)", "truncdiv": "tdiv(x, y)", "truncmod": "tmod(x, y)", "pow": "x**2"},
    **{"ModularIndexing": "x//y%z", "clamp": "min(max(x, y), z)"},
}
#: What is read as other operators, or as a load: how its term is built from operands that are numbers.
_DERIVED: dict[str, Callable[..., Expr]] = {
    "abs": abs,
    "ceildiv": lambda x, y: make("neg", stated("floordiv", make("neg", x), y)),
    "load": partial(make, "load"),
    # the sum refuses what is no number
    "plus": lambda x: (x, x + 0)[0],
    "pow": pow,
}
#: Shifts are read as calls too.
_CALLS = {n: (len(OPS[n].takes), n in ("min", "max")) for n in OPS if not OPS[n].symbol or n in SHIFTS}
_CALLS |= dict.fromkeys(("exp", "log", "sqrt", "to_float", "to_double", "abs"), (1, False)) | {"ceildiv": (2, False)}


@for_each_own
def _add_call(op: Op) -> None:
    _CALLS[op.name] = len(op.takes), False


_COMPARE = 4
_REDUCTIONS = {r.text: r.name for r in REDUCTIONS.values() if r.name[0] != "f"}
# in Python sum and prod would be other functions
_REDUCTIONS |= {name: name for name in [*_REDUCTIONS.values()]}
#: The longest text that is printed, in characters.
MAX_LENGTH = 10_000_000
#: The longest that is read, of one expression or of a program: some seconds.
MAX_READ = 1_000_000
#: What to do about an unknown variable, and about an unknown array.
_REMEDY = "give its range, var({name!r}, 0, N)"
_NO_ARRAY = (
    'make it by buffer({name!r}), on the command line by --buffer {name}=i32, in a corpus by "buffers": ["{name}"]'
)
_OPEN, _CLOSE = ("(", "["), (")", "]")

#: A token: its kind, which is that of a group of :data:`_TOKEN` or an index that is bound here; text and place.
_Token = tuple[int, str, int]
_NUMBER, _WORD, _SIGN, _BINDING = 1, 2, 3, 4


def parse(text: str, names: Mapping[str, Expr], remedy: str = _REMEDY) -> Expr:
    """The expression in ``text``.

    Parameters
    ----------
    text : str
        Python syntax over integers: ``+ - * // % << >> & | ^``, unary ``-``, ``+`` and ``~``, comparisons (chains too),
        ``and or not``, ``a if c else b``, and ``min max where tdiv tmod abs ceildiv``, reductions, loads, and powers by
        a literal; over floating-point values ``/`` and ``exp log sqrt``. A condition used as a number counts 1 or 0; on
        conditions alone ``& | ^ ~`` are ``and or != not``.
    names : mapping from str to Expr
        The variables, buffers and named subterms that may occur.
    remedy : str
        What to do about an unknown variable; ``{name}`` in it stands for the variable's.

    Raises
    ------
    ValueError
        If the text is not an expression; one line that says where and why.
    TypeError
        If a name in it means no term, or what is given is no text.

    >>> parse("(i*32 + j) // 32 < 4", {"i": var("i", 0, 7), "j": var("j", 0, 31)})
    Expr('(i*32 + j)//32 < 4')
    """
    require(text, str, "an expression")
    require(names, Mapping, "names")
    return term_in(text, names, remedy)


def term_in(text: str, names: Mapping[str, Expr], remedy: str) -> Expr:
    """As :func:`parse`, for a caller that knows what its arguments are."""
    _refuse_long([text])
    return _Parser(text, names, remedy).run()


def shown_text(text: str) -> str:
    """A text as errors about it quote it."""
    return repr(shortened(text, 80))


def _refuse_long(texts: Iterable[str]) -> None:
    length = sum(map(len, texts))
    if length > MAX_READ:
        raise ValueError(f"a text of {length} characters: give at most {MAX_READ}, in more expressions")


class _Pending(NamedTuple):
    """An operator, call or bracket whose operands are still read; ``height`` is that of the value stack below them."""

    name: str
    #: 0 of calls, brackets, ``if`` and ``else``.
    precedence: int
    height: int


class _Parser:
    """Operator precedence parsing (Dijkstra's shunting yard) with explicit stacks."""

    def __init__(self, text: str, names: Mapping[str, Expr], remedy: str) -> None:
        self.text, self.remedy = text, remedy
        self.values: list[Expr] = []
        self.pending: list[_Pending] = []
        # the names of the indices in scope, innermost last, and what index each meant before
        self.scopes: list[tuple[str, Expr | None]] = []
        self.indices: dict[str, Expr] = {}
        # not copied: a program has as many texts as names
        self.names = names
        self.position = 0

    def fail(self, what: str) -> ValueError:
        return ValueError(f"cannot parse {shown_text(self.text)}: {what} at column {self.position + 1}")

    def run(self) -> Expr:
        tokens = self.ranges_first(self.tokens())
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
        self.finish()
        if self.pending:
            raise self.fail(f"{'an else' if self.pending[-1].name == 'if' else 'a closing bracket'} is missing")
        return self.values[0]

    def unexpected(self, token: str = "") -> str:
        """What is wrong where ``token``, or no token at all, stands at the position."""
        # the second sign of a pair is one token too many
        start = max(0, self.position - bool(token))
        for of_c, ours in _OF_C.items():
            if self.text.startswith(of_c, start):
                return f"unexpected {of_c!r}: write {ours}"
        if not token and self.text[self.position] == "=":
            return "unexpected '=': write =="
        return f"unexpected {token or self.text[self.position]!r}"

    def tokens(self) -> list[_Token]:
        found = []
        end = len(self.text.rstrip())
        while self.position < end:
            match = _TOKEN.match(self.text, self.position)
            if match is None or match.lastindex is None:
                self.position += len(self.text[self.position :]) - len(self.text[self.position :].lstrip())
                raise self.fail(self.unexpected())
            found.append((match.lastindex, match[match.lastindex], match.start(match.lastindex)))
            self.position = match.end()
        return found

    def ranges_first(self, tokens: list[_Token]) -> list[_Token]:
        """``tokens`` with ``sum(low, high, r, body)`` for ``sum(body, r, low, high)``: the range is read first."""
        commas, ends = self.brackets(tokens)
        calls = [
            at + 1
            for at, ((kind, text, _), (_, following, _)) in enumerate(pairwise(tokens))
            if kind == _WORD and text in _REDUCTIONS and following == "(" and at + 1 in ends
        ]
        for start in calls:
            self.check_reduction(tokens, start, commas[start])
        at_call = set(calls)
        found: list[_Token] = []
        # what is left to read, the last first: tokens, and ranges of them, so that each is read once
        stack: list[tuple[int, int] | _Token] = [(0, len(tokens))]
        while stack:
            item = stack.pop()
            if len(item) == 3:
                found.append(item)
                continue
            begin, end = item
            for at in range(begin, end):
                found.append(tokens[at])
                if at in at_call:
                    (first, second, third), last = commas[at], ends[at]
                    _, name, place = tokens[first + 1]
                    comma = (_SIGN, ",", place)
                    stack += [(last, end), (at + 1, first), comma, (_BINDING, name, place), comma]
                    stack += [(third + 1, last), comma, (second + 1, third)]
                    break
        return found

    def brackets(self, tokens: list[_Token]) -> tuple[dict[int, list[int]], dict[int, int]]:
        """For each open bracket the places of its commas, and its end."""
        commas: dict[int, list[int]] = {}
        ends: dict[int, int] = {}
        stack: list[int] = []
        for at, (_, text, _) in enumerate(tokens):
            if text in _OPEN:
                stack.append(at)
                commas[at] = []
            elif text in _CLOSE and stack:
                ends[stack.pop()] = at
            elif text == "," and stack:
                commas[stack[-1]].append(at)
        return commas, ends

    def check_reduction(self, tokens: list[_Token], start: int, commas: list[int]) -> None:
        """Refuse a reduction of other than four arguments, or whose second one is no name."""
        self.position = tokens[start][2]
        if len(commas) != 3:
            raise self.fail(
                f"{tokens[start - 1][1]} takes 4 arguments (body, index, low, high), not {len(commas) + 1},"
            )
        kind, _, self.position = tokens[commas[0] + 1]
        if commas[1] != commas[0] + 2 or kind != _WORD:
            raise self.fail("the second argument of a reduction is the name of its index, not an expression,")

    def bind(self, name: str) -> None:
        """Let ``name`` be the index of the reduction whose range has just been read."""
        low, high = self.values[-2:]
        for term in (low, high):
            if term.is_bool:
                raise self.fail("the range of a reduction needs integers,")
        try:
            index = var(name, low.vmin, max(low.vmin, high.vmax - 1))
        except ValueError as error:
            raise self.fail(f"{error},") from None
        # a named term in the body may have a free variable of this name and range
        index = any_var(name, index.vmin, index.vmax, kind="index")
        self.scopes.append((name, self.indices.get(name)))
        self.indices[name] = index
        self.values.append(index)

    def meaning(self, name: str) -> Expr | None:
        return self.indices[name] if name in self.indices else self.names.get(name)

    def operand(self, kind: int, token: str, following: str) -> bool:
        """Take a token where an operand may start; return whether an operand is still wanted."""
        if kind == _NUMBER:
            number = self.number(token)
            if self.pending and self.pending[-1].name == "neg" and following != "**":
                self.pending.pop()
                number = -number
            self.values.append(as_expr(number))
            return False
        if kind == _BINDING:
            self.bind(token)
            return False
        if token in _PREFIX:
            self.pending.append(_Pending(*_PREFIX[token], len(self.values)))
            return True
        if token == "(" or (token == "[" and self.pending and self.pending[-1].name == "load"):
            self.pending.append(_Pending(token, 0, len(self.values)))
            return True
        if kind != _WORD or token in ("and", "or"):
            raise self.fail(self.unexpected(token))
        return self.word(token, following)

    def word(self, token: str, following: str) -> bool:
        """Take a name, a call or a truth value; return whether an operand is still wanted."""
        named = self.meaning(token)
        if named is None:
            # Python normalises names of keyword arguments, as which ranges are given
            named = self.meaning(normalize("NFKC", token))
        if named is not None and not isinstance(named, Expr):
            raise TypeError(f"the name {token!r} means {named!r}: give it a term, such as eqsat.var({token!r}, 0, 9)")
        is_function = following == "(" and (token in _CALLS or token in _REDUCTIONS)
        if following in _OPEN and not is_function and named is not None and named.op == "buffer":
            self.pending.append(_Pending("load", 0, len(self.values)))
            self.values.append(named)
            return True
        if following == "(":
            if not is_function:
                known = shortened(", ".join([*_REDUCTIONS, *_CALLS]), 240)
                ours = _OF_OTHERS.get(token)
                raise self.fail(f"unknown function {token!r}{f': write {ours}' if ours else f' (known: {known})'}")
            self.pending.append(_Pending(token, 0, len(self.values)))
            # its bracket comes next and belongs to the call
            return True
        if token in ("True", "False"):
            self.values.append(TRUE if token == "True" else FALSE)
        elif named is not None:
            self.values.append(named)
        else:
            what, remedy = ("array", _NO_ARRAY) if following == "[" else ("variable", self.remedy)
            raise self.fail(f"unknown {what} {token!r}: {remedy.format(name=token)},")
        return False

    def number(self, token: str) -> int | float:
        if token.endswith(")"):
            return float(token[:3])
        digits = token.replace("_", "")
        bits = {"x": 4, "o": 3, "b": 1}.get(token[1:2].lower(), 0)
        if (len(digits) - 2) * bits > MOST_BITS:
            raise self.fail(f"a number of {len(digits) - 2} digits is too long")
        try:
            number = int(token, 0) if bits or digits.isdigit() else float(token)
        except ValueError:
            raise self.fail(_no_number(token, digits)) from None
        if number == inf:
            raise self.fail(f"the number {shortened(token, 40)!r} is too large")
        return number

    def operator(self, token: str) -> bool:
        """Take a token after an operand; return whether an operand is wanted next."""
        if token in _CLOSE:
            self.close(token)
            return False
        if token == ",":
            self.finish()
            if len(self.pending) < 2 or not _is_call(self.pending[-2]):
                raise self.fail("unexpected ','")
            return True
        if token == "if":
            self.reduce(1)
            self.pending.append(_Pending("if", 0, len(self.values) - 1))
            return True
        if token == "else":
            self.reduce(1)
            if not self.pending or self.pending[-1].name != "if":
                raise self.fail("unexpected 'else'")
            self.pending[-1] = self.pending[-1]._replace(name="else")
            return True
        if token not in _INFIX:
            raise self.fail(self.no_operator(token))
        name, precedence = _INFIX[token]
        # comparisons are chained, powers associate to the right
        self.reduce(precedence + (precedence == _COMPARE or name == "pow"))
        if precedence == _COMPARE and self.pending and self.pending[-1].precedence == _COMPARE:
            self.chain()
        self.pending.append(_Pending(name, precedence, len(self.values) - 1))
        return True

    def close(self, token: str) -> None:
        """Take a closing bracket, and make the call that it ends."""
        self.finish()
        if not self.pending or self.pending[-1].name != _OPEN[_CLOSE.index(token)]:
            raise self.fail(f"unexpected {token!r}")
        self.pending.pop()
        if self.pending and _is_call(self.pending[-1]):
            name, _, height = self.pending.pop()
            self.call(name, height)

    def chain(self) -> None:
        """Apply a comparison, and let what it compares last be compared next too: ``a < b < c``."""
        middle = self.values[-1]
        self.reduce(_COMPARE)
        self.pending.append(_Pending("and", _COMPARE, len(self.values) - 1))
        self.values.append(middle)

    def no_operator(self, token: str) -> str:
        """What is wrong where ``token`` stands behind an operand, and is no operator."""
        if token == "[":
            return f"unexpected '[': only arrays are indexed, and {brief(self.values[-1])!r} is none,"
        if token in _OF_MLIR:
            return f"unexpected {token!r}: write {_OF_MLIR[token]}"
        return f"an operator is missing before {token!r}"

    def reduce(self, precedence: int) -> None:
        """Apply the pending operators that bind at least as tightly as ``precedence``."""
        while self.pending and self.pending[-1].precedence >= precedence:
            name, _, height = self.pending.pop()
            self.apply(name, height)

    def finish(self) -> None:
        """Apply all that is pending since the last open bracket."""
        self.reduce(1)
        while self.pending and self.pending[-1].name == "else":
            height = self.pending.pop().height
            value, condition, other = self.values[height:]
            self.values[height:] = [condition, value, other]
            self.apply("where", height)

    def call(self, name: str, height: int) -> None:
        if name in _REDUCTIONS:
            return self.reduction(_REDUCTIONS[name], height)
        if name == "load":
            return self.apply(name, height)
        arity, variadic = _CALLS[name]
        given = len(self.values) - height
        if given != arity and not (variadic and given > arity):
            raise self.fail(f"{name} takes {counted(arity, 'argument')}, not {given},")
        while len(self.values) - height > arity:
            self.apply(name, len(self.values) - 2)
        self.apply(name, height)

    def reduction(self, name: str, height: int) -> None:
        low, high, index, body = [_as_integer(a) for a in self.values[height:]]
        written, before = self.scopes.pop()
        if before is None:
            del self.indices[written]
        else:
            self.indices[written] = before
        self.values[height:] = [body, index, low, high]
        self.apply(name, height)

    def apply(self, name: str, height: int) -> None:
        args = self.values[height:]
        del self.values[height:]
        try:
            self.values.append(_applied(name, args))
        except (TypeError, ValueError) as error:
            raise self.fail(f"{error},") from None


def _no_number(token: str, digits: str) -> str:
    """What is wrong with a number that Python does not read."""
    if re.search(r"__|_$|_[.eE]", token):
        return f"misplaced '_' in the number {shortened(token, 40)!r}"
    if not int(digits[0]) and digits.strip("0"):
        return f"the number {shortened(token, 40)!r} begins with 0, as octal ones do in C: write 0o7 or 7"
    # Python reads no more than some thousands
    return f"a number of {len(digits)} digits is too long"


def _is_call(pending: _Pending) -> bool:
    """Whether what is pending is a call or a load: shifts have the names of calls as operators too."""
    name = pending.name
    return not pending.precedence and (name in _CALLS or name in _REDUCTIONS or name == "load")


def _applied(name: str, args: list[Expr]) -> Expr:
    """The term for what is written as ``name`` with operands."""
    if name in REDUCTIONS:
        return make(name, *args)
    if name in _DERIVED:
        return _DERIVED[name](*map(_as_integer, args))
    if name in ("gt", "ge"):
        return _applied("lt" if name == "gt" else "le", args[::-1])
    if name == "invert":
        return ~args[0]
    if name in BITWISE and all(map(_is_condition, args)):
        return bitwise(name, *args)
    if name in FLOATS or any(a.element for a in args):
        kept = args[:1] if name == "where" else []
        return make(name, *kept, *map(_as_integer, args[len(kept) :]))
    return stated(name, *_of_sorts(args, OPS[name].takes))


def _of_sorts(args: Sequence[Expr], takes: str) -> Iterator[Expr]:
    """Operands of the sorts that an operator ``takes``: where it takes either, all are integers if some are."""
    of_either = {a.is_bool for a, sort in zip(args, takes, strict=True) if sort == "s"}
    for operand, sort in zip(args, takes, strict=True):
        yield _as_integer(operand) if sort == "i" or (sort == "s" and len(of_either) == 2) else operand


def _is_condition(term: Expr) -> bool:
    """Whether a term is a condition, and no array of conditions."""
    return term.is_bool and term.op != "buffer"


def _as_integer(term: Expr) -> Expr:
    """The number 1 or 0 for a condition; other terms as they are."""
    return make("where", term, as_expr(1), as_expr(0)) if _is_condition(term) else term


#: What to print for a term: strings and (operand, least precedence that needs no brackets); and its own precedence.
Pieces = tuple[list[str | tuple[Expr, int]], int]


@TEXT.fill
def to_text(
    root: Expr,
    names: Mapping[Expr, str] | None = None,
    most: int | None = None,
    *,
    pieces_of: Callable[[Expr], Pieces] | None = None,
) -> str:
    """The text of ``root``; subterms in ``names`` are printed as their name.

    Parameters
    ----------
    root : Expr
        A term.
    names : mapping of Expr to str, optional
        Subterms that are printed as a name.
    most : int, optional
        The number of characters after which it stops, about, for messages about huge terms.
    pieces_of : callable, optional
        Prints another syntax than Python's, which :func:`pieces` does.

    Raises
    ------
    ValueError
        If the text has more than some ten million characters, and ``most`` is not given: what is used several times is
        written out each time.

    >>> from eqsat.lang.expr import var
    >>> to_text(var("i", 0, 7) // 2)
    'i//2'
    """
    require(root, Expr, "the term to print")
    names = names or {}
    pieces_of = pieces_of or pieces
    indices: dict[int, str] = {}
    parts: list[str] = []
    length = 0
    stack: list[str | tuple[Expr, int]] = [(root, 0)]
    limit = MAX_LENGTH if most is None else most
    # every operation and every leaf takes a character at least
    too_long = most is None and not names and tree_size(root) > limit
    while stack and length <= limit and not too_long:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            length += len(item)
            continue
        term, floor = item
        if term in names:
            stack.append(names[term])
        elif term.op == "var" and is_index(term):
            indices = indices or _index_names(root, names)
            stack.append(indices[index_level(term)])
        else:
            printed, precedence = pieces_of(term)
            stack += reversed(["(", *printed, ")"] if precedence < floor else printed)
    if stack and most is None:
        raise ValueError(
            f"the text of {brief(root)!r} has over {MAX_LENGTH} characters: print it by eqsat.lang.text.to_program"
        )
    return "".join(parts)


def pieces(term: Expr) -> Pieces:
    """What to print for ``term`` in Python's syntax."""
    if term.op == "buffer":
        return [cast(Buffer, term.value).name], 100
    if not term.args:
        negative = term.op in ("const", "float") and cast(float, term.value) < 0
        called = term.op == "float" and not isfinite(cast(float, term.value))
        value = digits(cast(int, term.value)) if term.op == "const" else str(term.value)
        return [value + "()" * called], OPS["neg"].precedence if negative else 100
    if term.op == "load":
        return [(term.args[0], 0), "[", *listed(term.args[1:]), "]"], 100
    if term.op in REDUCTIONS:
        return [REDUCTIONS[term.op].text, "(", *listed(term.args), ")"], 100
    op = OPS.get(FLOATS[term.op].integer if term.op in FLOATS else term.op) or _WRITTEN_ALONE[term.op]
    if not op.symbol:
        return [op.name, "(", *listed(term.args), ")"], 100
    if len(term.args) == 1:
        word = op.symbol + " " if op.symbol == "not" else op.symbol
        return [word, (term.args[0], 101 if term.args[0].op in ("const", "float") else op.precedence)], op.precedence
    symbol = op.symbol if op.precedence == OPS["mul"].precedence else f" {op.symbol} "
    left, right = term.args
    left_floor = op.precedence + (op.precedence == _COMPARE)
    return [(left, left_floor), symbol, (right, op.precedence + 1)], op.precedence


#: Operators on floating-point values that no operator on integers is written like.
_WRITTEN_ALONE = {
    "fdiv": replace(OPS["floordiv"], symbol="/"),
    **{name: replace(OPS["min"], name=name) for name in ("exp", "log", "sqrt", "to_float", "to_double")},
}


def listed(args: Iterable[Expr]) -> list[str | tuple[Expr, int]]:
    """The pieces of operands between commas."""
    pieces: list[str | tuple[Expr, int]] = []
    for arg in args:
        pieces += [", "] * bool(pieces) + [(arg, 0)]
    return pieces


def _index_names(root: Expr, names: Mapping[Expr, str]) -> dict[int, str]:
    """A name for the indices of each level, ``r1``, ``r2``, ..., none of them another name in the text of ``root``."""
    levels, used = set(), {*_CALLS, *_REDUCTIONS, "load"}
    for term in reached([root], lambda term: () if term in names else term.args):
        if term in names:
            used.add(names[term])
        elif term.op == "var" and is_index(term):
            levels.add(index_level(term))
        elif term.op in ("var", "buffer"):
            used.add(str(term))
    return {level: free_name(f"r{level}", used) for level in sorted(levels)}


def to_program(roots: Sequence[Expr], taken: Iterable[str] = ()) -> tuple[list[tuple[str, str]], list[str]]:
    """``roots`` as text with shared subterms named: (name, text) pairs in order, and a text per root.

    The names are ``t0``, ``t1``, ... without those of variables and those in ``taken``.

    Parameters
    ----------
    roots : sequence of Expr
        Terms.
    taken : iterable of str
        Names that are not given to shared subterms.

    >>> from eqsat.lang.expr import var
    >>> q = (var("i", 0, 7) * 3 + 1) // 2
    >>> to_program([q + 1, q * q])
    ([('t0', '(i*3 + 1)//2')], ['t0 + 1', 't0*t0'])
    """
    users = use_counts(list_of(Expr, roots, "the terms to print"))
    order = list(users)
    used = set(taken) | {str(t) for t in order if t.op in ("var", "buffer")}
    inside = _open_terms(order)
    names: dict[Expr, str] = {}
    lets: list[tuple[str, str]] = []
    free = numbered("t", used)
    depth: dict[Expr, int] = {}
    for term in order:
        depth[term] = 1 + max((depth[a] for a in term.args), default=0)
        # deep terms are cut too, so that readers with a recursion limit can take them
        if term.args and (users[term] > 1 or depth[term] > 40) and term not in inside:
            name = next(free)
            lets.append((name, to_text(term, names)))
            names[term] = name
            depth[term] = 0
    return lets, [to_text(root, names) for root in roots]


def free_name(name: str, taken: set[str]) -> str:
    """``name``, with as many underscores behind it as make it new; ``taken`` gains it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def numbered(prefix: str, taken: Collection[str], first: int = 0) -> Iterator[str]:
    """``prefix`` with 0, 1, 2, ... behind it, or other numbers from the ``first``, but no name that is ``taken``."""
    return (name for number in count(first) if (name := f"{prefix}{number}") not in taken)


def _open_terms(order: Sequence[Expr]) -> set[Expr]:
    """The terms of ``order``, operands first, that depend on the index of a reduction around them."""
    if not any(term.op in REDUCTIONS for term in order):
        return set()
    sets = VariableSets()
    found = {term: sets.of(term) for term in order}
    bound = sum(sets.index_extents)
    return {term for term, those in found.items() if those & bound}


def split_list(text: str) -> list[str]:
    """The parts between commas that are outside of brackets; empty ones are left out."""
    cuts, depth = [-1], 0
    for found in re.finditer(r"[][(){},]", text):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if found[0] == "," and not depth:
            cuts.append(found.start())
    parts = [text[before + 1 : end].strip() for before, end in pairwise([*cuts, len(text)])]
    return [part for part in parts if part]


def array_names(texts: Iterable[str]) -> list[str]:
    """The words of ``texts`` that are called or subscripted and are no function of the language, sorted."""
    found = {word for text in texts for word in re.findall(r"([^\W\d]\w*)\s*[(\[]", text)}
    return sorted(found - {*_CALLS, *_REDUCTIONS, "and", "or", "not", "if", "else"})


def parse_program(
    lets: Iterable[tuple[str, str]], texts: Iterable[str], names: Mapping[str, Expr], remedy: str = _REMEDY
) -> list[Expr]:
    """The inverse of :func:`to_program`: parse ``lets`` in order, then ``texts``; ``remedy`` is that of :func:`parse`.

    Raises ``ValueError`` if a text does not parse.
    """
    known, lets, texts = dict(names), list(lets), list(texts)
    _refuse_long([*[text for _, text in lets], *texts])
    for name, text in lets:
        known[name] = parse(text, known, remedy)
    return [parse(text, known, remedy) for text in texts]
