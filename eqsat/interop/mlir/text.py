"""MLIR's textual form as statements: what a rewriter must know of it, and everything else verbatim.

A :class:`Module` is a list of :class:`Statement`, the lines of the text in order; an operation over several lines is
one statement. A statement is text with a :class:`Value` in the place of each SSA name, so that a name may change.
Blocks say what encloses what. What an operation means does not matter here: it defines the names left of its ``=``, and
a name that is not visible where it stands is an argument of the region that the operation opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from eqsat.interop.limits import INTEROP_LIMITS, refuse_long_module

#: A string, a comment, a name or a bracket.
TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\r\n]*|(?P<value>%(?:\d+|[A-Za-z$._-][\w$.-]*)(?:#\d+)?)|(?P<bracket>[][(){}])'
)
#: The start of a line that continues the operation of the line before.
_CONTINUATION = re.compile(r"\s*(?:->|:|\{|iter_args\b|step\b|to\b|attributes\b|ins\s*\(|outs\s*\(|loc\s*\()")
_RESULTS = re.compile(r"\s*%[^=(]*?=(?!=)")
_REGIONS = re.compile(r"\(\{.*\}\)", re.DOTALL)
_LABEL = re.compile(r"\s*\^\w+")
#: The start of a function, but not of a call.
FUNCTION = re.compile(r"\s*(?:\w+\.)?func\s")
#: A line with its end; str.splitlines would also break at characters that may stand in comments and strings.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: A string, how a location begins, or a bracket.
_LOCATION = re.compile(r'"(?:[^"\\]|\\.)*"|( loc\()|[()]')
_ALIAS = re.compile(r"\s*(#[\w.$-]+)\s*=\s*(affine_(?:map|set)\s*<.*>)\s*(?://.*)?")


@dataclass(eq=False)
class Value:
    """A value of the program."""

    #: As it is written, with ``%``.
    name: str
    #: Where it is visible.
    block: Block
    #: What defines it, as a result or as an argument of its region.
    statement: Statement
    #: Whether it is a result, and not an argument.
    is_result: bool = True
    #: The statements of which it is an operand, once for each time.
    users: list[Statement] = field(default_factory=list)
    #: An equal value that replaces it.
    same_as: Value | None = None

    @property
    def resolved(self) -> Value:
        """The value that replaces it, or itself."""
        value = self
        while value.same_as is not None:
            value = value.same_as
        return value

    def __str__(self) -> str:
        return self.resolved.name


@dataclass(eq=False)
class Block:
    """Statements that run one after the other: of a region, or from a label on."""

    #: The block that encloses it.
    parent: Block | None = None
    #: The statement whose region it is in; ``branch`` is which of its regions.
    owner: Statement | None = None
    branch: int = 0
    statements: list[Statement] = field(default_factory=list)
    names: dict[str, Value] = field(default_factory=dict)
    #: How many blocks enclose it.
    depth: int = 0

    def enclosing(self) -> Iterator[Block]:
        """This block, what encloses it, and so on."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent


@dataclass(eq=False)
class Statement:
    """A line, or those over which an operation goes on."""

    #: Its place among the statements of the text.
    number: int
    #: The number of its first line, from 1.
    line: int
    block: Block
    #: The text, verbatim.
    pieces: list[str | Value] = field(default_factory=list)
    #: What it defines; ``operands`` what it reads, once for each time that it is written.
    results: list[Value] = field(default_factory=list)
    operands: list[Value] = field(default_factory=list)
    #: The lines in its place; None for itself.
    replacement: list[list[str | Value]] | None = None
    #: Whether it reads a name that is not defined above, or its own result.
    has_unknown: bool = False

    def __str__(self) -> str:
        text = "".join(map(str, self.pieces))
        if not self.replacement:
            return text if self.replacement is None else ""
        # new lines end as those in whose place they stand
        end = "\r\n" if "\r\n" in text else "\n"
        lines = ["".join(map(str, line)).rstrip("\r\n") for line in self.replacement]
        return end.join(lines) + (end if text.endswith(end) else "")

    @property
    def indentation(self) -> str:
        """The blanks before it."""
        first = self.pieces[0] if self.pieces and isinstance(self.pieces[0], str) else ""
        return first[: len(first) - len(first.lstrip())]

    @cached_property
    def normalised(self) -> tuple[str, list[Value]]:
        """The text on one line without comments and locations, with ``%k`` for its k-th value, and those values."""
        values: list[Value] = []
        parts = []
        for piece in self.pieces:
            if isinstance(piece, Value):
                parts.append(f"%{len(values)}")
                values.append(piece)
            else:
                parts.append(_without_comments(piece))
        return _without_locations(" ".join("".join(parts).split())), values


@dataclass
class Module:
    """The statements of a text, its blocks (the enclosing ones first), and its named affine maps and sets."""

    statements: list[Statement]
    blocks: list[Block]
    aliases: dict[str, str]

    def __str__(self) -> str:
        return "".join(map(str, self.statements))

    @property
    def names(self) -> set[str]:
        """The names of all values."""
        return {piece.name for s in self.statements for piece in s.pieces if isinstance(piece, Value)}


def parse(text: str) -> Module:
    """The statements of MLIR in its textual form, a module or what stands in one; ``str`` of them is the text again.

    Raises ``ValueError`` if its braces do not match, the message names the line; or if it is longer or deeper than is
    read.
    """
    refuse_long_module(text, "an MLIR module")
    reader = _Reader()
    line = 1
    for part in _split(text):
        reader.read(part, line)
        line += len(_LINE.findall(part))
    if reader.block.parent is not None:
        opened = reader.block.owner.line if reader.block.owner else 1
        raise ValueError(f"line {opened} of the MLIR text opens a region that has no end: close it with '}}'")
    aliases = {found[1]: found[2] for s in reader.statements if (found := _ALIAS.fullmatch(str(s).rstrip("\n")))}
    return Module(reader.statements, reader.blocks, aliases)


def _split(text: str) -> Iterator[str]:
    """The text cut behind each operation, with the blanks around it."""
    lines = _LINE.findall(text)
    part, depth = "", 0
    for place, line in enumerate(lines):
        part += line
        for found in TOKEN.finditer(line):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(found["bracket"] or "", 0)
        code = _without_comments(line).rstrip()
        following = lines[place + 1] if place + 1 < len(lines) else ""
        goes_on = depth > 0 or code.endswith((",", "="))
        if goes_on or (code and not code.endswith("{") and _CONTINUATION.match(following)):
            continue
        yield part
        part, depth = "", 0
    if part:
        yield part


def _without_locations(text: str) -> str:
    """The text without each ``loc(...)``, which MLIR prints behind operations and arguments if asked."""
    parts, start, depth = [], 0, 0
    for found in _LOCATION.finditer(text) if " loc(" in text else ():
        if found[1] and not depth:
            parts.append(text[start : found.start()])
        if found[1] or depth:
            depth += {")": -1}.get(found[0], int(not found[0].startswith('"')))
            start = found.end()
    return "".join(parts) + text[start:]


def _without_comments(text: str) -> str:
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\r\n]*', lambda m: m[1] or "", text)


class _Reader:
    """Statements read so far, and the block in which the next one stands."""

    def __init__(self) -> None:
        self.block = Block()
        self.blocks = [self.block]
        self.statements: list[Statement] = []

    def read(self, part: str, line: int) -> None:
        """Take the next statement."""
        opened, closed, last = self._braces(part)
        owner: Statement | None = None
        branch = 0
        for _ in range(closed):
            owner, branch = self._leave(line)
        if _LABEL.match(part) and self.block.parent is not None:
            self._enter(self.block.parent, self.block.owner, self.block.branch, self.block.names)
        statement = Statement(len(self.statements), line, self.block)
        self.statements.append(statement)
        self.block.statements.append(statement)
        inner: Block | None = None
        for _ in range(opened):
            # "} else {" goes on with the regions of the statement that began before
            continues = owner is not None
            inner = self._enter(self.block, owner if continues else statement, branch + 1 if continues else 0, {})
        if self.block.depth > INTEROP_LIMITS.nested_regions:
            raise ValueError(
                f"line {line} of the MLIR text opens a region within {INTEROP_LIMITS.nested_regions} others: "
                "give what is in some of them alone"
            )
        arguments = inner or (self.block if _LABEL.match(part) else None)
        self._values(statement, part, arguments, last)

    def _braces(self, part: str) -> tuple[int, int, int]:
        """How many braces a statement opens and closes beyond itself, and where the last that it opens stands."""
        opened, closed, last = 0, 0, len(part)
        for found in TOKEN.finditer(part):
            if found["bracket"] == "{":
                opened, last = opened + 1, found.start()
            elif found["bracket"] == "}":
                closed, opened = (closed, opened - 1) if opened else (closed + 1, 0)
        return opened, closed, last if opened else len(part)

    def _enter(self, parent: Block, owner: Statement | None, branch: int, names: dict[str, Value]) -> Block:
        self.block = Block(parent, owner, branch, names=names, depth=parent.depth + 1)
        self.blocks.append(self.block)
        return self.block

    def _leave(self, line: int) -> tuple[Statement | None, int]:
        if self.block.parent is None:
            raise ValueError(f"line {line} of the MLIR text closes a region that is not open: leave out its '}}'")
        owner, branch = self.block.owner, self.block.branch
        self.block = self.block.parent
        return owner, branch

    def _values(self, statement: Statement, part: str, arguments: Block | None, last: int) -> None:
        """Cut the text at its values, and find or define them."""
        head = _RESULTS.match(part)
        end = head.end() if head else 0
        position = 0
        # the regions of the generic form are no blocks: their names are their own
        region = _REGIONS.search(part)
        first, behind = region.span() if region else (0, 0)
        own: dict[str, Value] = {}
        # so are those of the arguments of a function without a body
        is_declaration = arguments is None and bool(FUNCTION.match(part))
        for found in TOKEN.finditer(part):
            if not (name := found["value"]):
                continue
            statement.pieces += [part[position : found.start()]]
            position = found.end()
            if found.start() < end:
                value = Value(name, statement.block, statement)
                statement.block.names[name] = value
                statement.results.append(value)
            elif (known := own.get(name) or self._known(name)) in statement.results:
                # only a region without an order lets an operation read its own result
                value = Value(name, statement.block, statement, is_result=False)
                statement.has_unknown = True
            elif known is not None:
                value = known
                value.users.append(statement)
                statement.operands.append(value)
            elif first <= found.start() < behind or is_declaration:
                value = own[name] = Value(name, statement.block, statement, is_result=False)
            else:
                value = Value(name, arguments or statement.block, statement, is_result=False)
                value.block.names[name] = value
                statement.has_unknown |= arguments is None or found.start() > last
            statement.pieces.append(value)
        statement.pieces.append(part[position:])

    def _known(self, name: str) -> Value | None:
        """The value of that name that is visible; of several results the one that ``#`` and a number name."""
        whole, _, _ = name.partition("#")
        for block in self.block.enclosing():
            if value := block.names.get(name):
                return value
            if "#" in name and (group := block.names.get(whole)):
                value = block.names[name] = Value(name, group.block, group.statement)
                return value
        return None
