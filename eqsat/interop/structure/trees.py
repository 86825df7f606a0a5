"""Trees of the operations around index expressions, and their text: loops, reductions, buffers.

A :class:`Tree` is an operation such as ``END(store, [r0, r1])`` or ``INDEX(buf, i*8 + j)``; its leaves are text: names,
numbers, and index expressions, which :mod:`eqsat.lang.text` reads. A leaf may say its type and range, ``x:i32 [0,
99]``, or its extent, ``r1(8)``, ``data[64]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from eqsat.interop.limits import INTEROP_LIMITS, refuse_long_text
from eqsat.lang.expr import Expr
from eqsat.lang.validation import shortened

#: The start of an operation; what else is called, as in ``load(r0)``, is a leaf.
_OPERATION = re.compile(r"([A-Z]\w*|new_range)\(")
VECTOR = re.compile(r"Vector<(\w+),\s*(\d+)>")
_CAST = re.compile(r"\.(cast|bind)\(")
WORD = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r"-?[0-9]+")


@dataclass(frozen=True)
class Tree:
    """An operation, a list (``"[]"``), a cast (``".cast"``), a binding (``".bind"``), or a leaf (``""``) with its text.

    >>> tree = Tree.parse("END(END(x, [r0]), [r1])")
    >>> tree.op, str(tree.args[0]), str(tree.args[1])
    ('END', 'END(x, [r0])', '[r1]')
    """

    op: str
    args: tuple[Tree, ...] = ()
    text: str = ""
    #: A term with the bounds of its value, if these are known but no longer written.
    value: Expr | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Tree:
        """The tree in ``text``; ``ValueError`` if brackets do not match, or operations nest too deep."""
        refuse_long_text(text, "a tree")
        reader = _Reader(text)
        tree = reader.item(0)
        if _is_deep(tree):
            raise reader.fail(f"operations nest more than {INTEROP_LIMITS.nested_operations} deep")
        if reader.position < len(text):
            raise reader.fail(f"unexpected {text[reader.position]!r}")
        return tree

    def __str__(self) -> str:
        if not self.op:
            return self.text
        args = list(map(str, self.args))
        if self.op == "[]":
            return f"[{', '.join(args)}]"
        if self.op[0] != ".":
            return f"{self.op}({', '.join(args)})"
        value, what = args
        closed = self.args[0].op or WORD.fullmatch(value) or _LITERAL.fullmatch(value)
        return f"{value if closed else f'({value})'}{self.op}({what})"


def leaf(text: object) -> Tree:
    return Tree("", text=str(text))


def node(op: str, *args: Tree) -> Tree:
    return Tree(op, args)


INVALID_INDEX = leaf("Invalid")


class _Reader:
    """A parser of one text, by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def fail(self, what: str) -> ValueError:
        return ValueError(f"cannot parse {shortened(self.text, 80)!r}: {what} at column {self.position + 1}")

    def item(self, depth: int) -> Tree:
        if depth > INTEROP_LIMITS.nested_operations:
            raise self.fail(f"operations nest more than {INTEROP_LIMITS.nested_operations} deep")
        self._skip()
        if called := _OPERATION.match(self.text, self.position):
            self.position = called.end()
            tree = Tree(called[1], self._items(")", depth))
        elif self.text.startswith("[", self.position):
            self.position += 1
            tree = Tree("[]", self._items("]", depth))
        else:
            tree = leaf(self._leaf())
        while cast := _CAST.match(self.text, self.position):
            self.position = cast.end()
            value = leaf(bare(tree.text)) if not tree.op else tree
            tree = Tree("." + cast[1], (value, *self._items(")", depth)))
            if len(tree.args) != 2:
                raise self.fail(f"{cast[1]} takes one argument")
        self._skip()
        return tree

    def _skip(self) -> None:
        while self.text.startswith(" ", self.position):
            self.position += 1

    def _items(self, end: str, depth: int) -> tuple[Tree, ...]:
        found: list[Tree] = []
        self._skip()
        while not self.text.startswith(end, self.position):
            if found:
                if not self.text.startswith(",", self.position):
                    raise self.fail(f"{end!r} is missing")
                self.position += 1
            found.append(self.item(depth + 1))
        self.position += 1
        return tuple(found)

    def _leaf(self) -> str:
        """The text up to what ends the item, with all brackets in it."""
        start, open_brackets = self.position, 0
        if vector := VECTOR.match(self.text, start):
            self.position = vector.end()
            return vector[0]
        while self.position < len(self.text):
            letter = self.text[self.position]
            if not open_brackets and (letter in ",)]" or _CAST.match(self.text, self.position)):
                break
            open_brackets += (letter in "([") - (letter in ")]")
            self.position += 1
        if open_brackets or self.position == start:
            raise self.fail("a bracket is not closed" if open_brackets else "something is missing")
        return self.text[start : self.position].strip()


def _is_deep(root: Tree) -> bool:
    """Whether operations nest deeper than is read; each may have a cast around it, which the parser does not count."""
    level = [root]
    for _ in range(2 * INTEROP_LIMITS.nested_operations + 1):
        level = [a for tree in level for a in tree.args]
    return bool(level)


def bare(text: str) -> str:
    """``text`` without brackets around all of it."""
    opened: list[int] = []
    closed_at: dict[int, int] = {}
    for place, letter in enumerate(text):
        if letter == "(":
            opened.append(place)
        elif letter == ")" and opened:
            closed_at[opened.pop()] = place
    start, end = 0, len(text)
    while closed_at.get(start) == end - 1:
        start, end = start + 1, end - 1
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
    return text[start:end]


def name_of(tree: Tree) -> str:
    """The name that a leaf begins with; empty if it begins with none."""
    name = WORD.match(tree.text)
    return name[0] if name else ""
