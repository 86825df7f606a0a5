"""XLA's HLO text, read into instructions.

A :class:`Module` has computations, a :class:`Computation` instructions in order, an :class:`Instruction` its operands,
attributes and the shapes of its outputs. The text is as XLA prints it: every name is defined before it is used, each
instruction says its shape, and operands may repeat theirs, or be elements of tuples (``x#1``). Literals, metadata and
its tables of stack frames are skipped. :mod:`eqsat.interop.indexing_analysis` says which elements the operations read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from eqsat.interop.limits import refuse_long_module
from eqsat.lang.text import split_list
from eqsat.lang.validation import require, shortened

_NAME = r"%?([\w.\-]+)"
_ARRAY = r"[a-z]\w*\[[\d,\s<=?]*\](?:\s*\{[^}]*\})?"
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,\s<=]*)\](?:\s*\{([^}]*)\})?")
#: What stands before a size of which only the bound is known.
_BOUND = re.compile(r"(?<![^,\s])<=")
#: A size of which nothing is known.
_UNKNOWN = re.compile(r"(?<=[\[,\s])\?(?=[,\s\]])")
#: What follows the dimensions of a layout: tiles and a memory space, as in T(8,128)(2,1)S(1).
_PLACEMENT = re.compile(r"(?:[A-Z#*]+(?:\([^()]*\))+)*")
_TILES = re.compile(r"T((?:\([^()]*\))+)")
#: The first arrow is as good as any: no other is tried.
_HEADER = re.compile(rf"(ENTRY\s+)?{_NAME}\s*(?:(?>\(.*?\)\s*->).*)?\{{")
_OUTPUT = rf"({_ARRAY}|\((?:{_ARRAY}|[(),\s])*\))"
_INSTRUCTION = re.compile(rf"(ROOT\s+)?{_NAME}\s*=\s*{_OUTPUT}\s*([a-z][\w\-]*)\((.*)")
#: A line that ends before the operation, which the next line has.
_BEGUN = re.compile(rf"(?:ROOT\s+)?{_NAME}\s*=\s*{_OUTPUT}?|{_OUTPUT}")
#: A number behind a name means the element of a tuple.
_OPERAND = re.compile(rf"(?:(?:{_ARRAY}|\(.*\))\s*)?{_NAME}(?:#(\d{{1,9}}))?")
#: Longer ones are no sizes, and Python does not read those of thousands of digits.
_INTEGER = re.compile(r"-?\d{1,18}")
_SKIPPED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
#: The tables of source lines that metadata refers to.
_STACK_FRAMES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*", re.MULTILINE)
#: By attribute an example, for errors.
_EXAMPLES = {
    **{"slice": "{[0:4]}", "padding": "0_0", "index": "0", "index_vector_dim": "1", "to_apply": "less_than"},
    **{"window": "{size=3x3}", "dim_labels": "b01f_01io->b01f"},
}
#: The end of a computation, which may name the thread that runs it.
_END = re.compile(r"\}(?:, execution_thread=\S+)?")


@dataclass(frozen=True)
class Shape:
    """The type of an array.

    Attributes
    ----------
    element : str
        The type of its elements, as ``f32``.
    sizes : tuple of int
        Per dimension its size.
    layout : tuple of int
        The dimensions from the fastest in memory to the slowest.
    tiles : str
        The tiles in which the layout stores the elements, as ``(8,128)(2,1)``; ``""`` if it has none.

    >>> Shape.parse("f32[51, 16]{0,1}")
    Shape(element='f32', sizes=(51, 16), layout=(0, 1))
    >>> print(Shape.parse("s32[8,3]"), Shape.parse("s32[8,3]").layout)
    s32[8,3] (1, 0)
    """

    element: str
    sizes: tuple[int, ...]
    layout: tuple[int, ...]
    tiles: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> Shape:
        """The shape in ``text``; the last dimension is the fastest unless it says otherwise.

        A memory space behind the layout is skipped. A size of which only the bound is known, ``<=10``, is its bound.

        Raises
        ------
        ValueError
            If the text is no shape, or its layout does not name each dimension once.
        """
        require(text, str, "a shape")
        if not (found := _SHAPE.fullmatch(text.strip())):
            raise ValueError(f"cannot parse the shape {text[:60]!r}: write it as f32[10,20]{{1,0}}")
        sizes = integers(_BOUND.sub("", found[2]))
        order, _, placement = (found[3] or "").partition(":")
        if not _PLACEMENT.fullmatch(placement.strip()):
            raise ValueError(
                f"cannot parse the layout of {text[:60]!r}: write tiles and memory as {{1,0:T(8,128)S(1)}}"
            )
        layout = tuple(reversed(range(len(sizes)))) if found[3] is None else integers(order)
        if sorted(layout) != list(range(len(sizes))):
            raise ValueError(f"the layout of {text!r} must name each dimension once")
        tiles = _TILES.search(placement)
        return cls(found[1], sizes, layout, tiles[1] if tiles else "")

    def __str__(self) -> str:
        return f"{self.element}[{','.join(map(str, self.sizes))}]"


#: Stands for the type of a tuple in a tuple.
NESTED = Shape("tuple", (), ())
#: Stands for the type of an array with a size that is not known, ``f32[?,10]``; no array has its sizes.
UNSIZED = Shape("array", (-1,), (0,))


@dataclass(frozen=True, eq=False, repr=False)
class Instruction:
    """One operation."""

    name: str
    #: The operation, as ``dynamic-slice``.
    opcode: str
    #: Of its one output, or of the elements if that is a tuple: ``NESTED`` for a tuple, ``UNSIZED`` if not known.
    shapes: tuple[Shape, ...]
    #: Earlier instructions of the same computation.
    operands: tuple[Instruction, ...] = ()
    #: What is written behind the operands, by name; ``called`` is the computation that they name, if any.
    attributes: Mapping[str, str] = field(default_factory=dict)
    called: Computation | None = None
    #: The computations of which a conditional runs one, in order.
    branches: tuple[Computation, ...] = ()
    #: Which parameter it is.
    number: int | None = None
    #: The instruction as it was written.
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{self.opcode} {_brief(self.name)}"

    @property
    def operand_sizes(self) -> list[tuple[int, ...]]:
        """Of each operand the sizes, of its first output."""
        return [operand.shapes[0].sizes for operand in self.operands]

    def dimensions(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The integers of the attribute ``key``; ``default`` if it is not there."""
        return default if key not in self.attributes and default is not None else integers(self.attribute(key))

    def dimension(self, key: str) -> int:
        """The one integer of the attribute ``key``."""
        found = self.dimensions(key)
        if len(found) != 1:
            raise ValueError(f"{key} must be one dimension, not {list(found)}")
        return found[0]

    def attribute(self, key: str) -> str:
        """The text of the attribute ``key``, without its braces."""
        if key not in self.attributes:
            example = _EXAMPLES.get(key, "{0}")
            raise ValueError(f"the attribute {key} is missing: write it behind the operands, as in {key}={example}")
        return self.attributes[key].removeprefix("{").removesuffix("}").strip()


@dataclass(frozen=True, eq=False, repr=False)
class Computation:
    """Instructions in order; its value is that of ``root``, its arguments are ``parameters``, by number."""

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction
    parameters: tuple[Instruction, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """Computations by name, in order; ``entry`` is the one to start with."""

    computations: Mapping[str, Computation]
    entry: Computation


def parse(text: str) -> Module:
    """The module in HLO text.

    Parameters
    ----------
    text : str
        HLO as XLA prints it.

    Raises
    ------
    ValueError
        With the number of the line: if it is no instruction, defines a name twice, or uses one that is not yet
        defined; if no computation is the entry; if the text is longer than is read.

    >>> module = parse('''
    ... ENTRY e {
    ...   p0 = f32[20] parameter(0)
    ...   ROOT bc0 = f32[10,20,30] broadcast(p0), dimensions={1}
    ... }''')
    >>> module.entry.root, module.entry.root.dimensions("dimensions")
    (broadcast 'bc0', (1,))
    """
    if not isinstance(text, str):
        raise TypeError(f"HLO is read from a text, not from {text!r}")
    refuse_long_module(text, "an HLO module")
    computations: dict[str, Computation] = {}
    entries = []
    lines = _lines(text)
    for number, line in lines:
        with _located(number):
            if not (found := _HEADER.fullmatch(line)):
                raise ValueError(
                    f"{line[:60]!r} is outside of a computation: put it on a line between 'ENTRY name {{' and '}}'"
                )
            is_entry, name = found.groups()
            if name in computations:
                raise ValueError(f"the computation {_brief(name)} is defined twice: rename one of the two")
            computations[name] = _computation(name, lines, computations)
            entries += [name] if is_entry else []
    if len(computations) == 1:
        entries = list(computations)
    if len(entries) != 1:
        raise ValueError(f"{len(entries)} of {len(computations)} computations are marked as ENTRY: mark one")
    return Module(computations, computations[entries[0]])


def _brief(name: str) -> str:
    """A name as errors quote it."""
    return repr(shortened(name, 60))


@contextmanager
def _located(number: int) -> Iterator[None]:
    """Puts the line in front of the message of an error that does not say it yet."""
    try:
        yield
    except ValueError as error:
        known = str(error).startswith("line ")
        raise ValueError(str(error) if known else f"line {number} of the HLO text: {error}") from None


def _computation(name: str, lines: Iterator[tuple[int, str]], known: Mapping[str, Computation]) -> Computation:
    """The computation whose instructions are the next of ``lines``, up to its end."""
    body: dict[str, Instruction] = {}
    root: Instruction | None = None
    for number, line in lines:
        if _END.fullmatch(line):
            break
        with _located(number):
            is_root, instruction = _instruction(line, body, known)
            if instruction.name in body:
                raise ValueError(f"{_brief(instruction.name)} is defined twice: rename one of the two")
            if is_root and root:
                raise ValueError(f"a second ROOT beside {_brief(root.name)}: leave one")
            body[instruction.name] = instruction
            root = instruction if is_root else root
    else:
        raise ValueError(f"the computation {_brief(name)} has no end: close it with '}}'")
    if not body:
        raise ValueError(f"the computation {_brief(name)} is empty: give it a ROOT instruction")
    parameters = sorted((i for i in body.values() if i.number is not None), key=lambda i: cast(int, i.number))
    if [i.number for i in parameters] != list(range(len(parameters))):
        raise ValueError(f"the parameters of {_brief(name)} must be numbered from 0, each once")
    return Computation(name, tuple(body.values()), root or [*body.values()][-1], tuple(parameters))


def integers(text: str) -> tuple[int, ...]:
    """The integers of a list such as ``0,2``."""
    parts = split_list(text)
    if not all(map(_INTEGER.fullmatch, parts)):
        raise ValueError(f"{text[:60]!r} is no list of integers, of 18 digits at most: write it as {{0,2}}")
    return tuple(map(int, parts))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of the text, joined where one opens brackets, or ends in a comma or before an operation."""
    bare = _SKIPPED.sub(lambda m: '""' if m[0][0] == '"' else "\n" * m[0].count("\n"), text)
    bare = _STACK_FRAMES.sub(lambda m: "\n" * m[0].count("\n"), bare)
    parts: list[str] = []
    first, depth = 0, 0
    for number, line in enumerate(map(str.strip, bare.split("\n")), start=1):
        if not line or line.startswith("HloModule"):
            continue
        first = first if parts else number
        parts.append(line)
        depth += sum((c in "([{") - (c in ")]}") for c in line)
        begins_or_ends = len(parts) == 1 and (_END.fullmatch(line) or _HEADER.fullmatch(line))
        if begins_or_ends or (depth <= 0 and line[-1] != "," and not _BEGUN.fullmatch(line)):
            yield first, " ".join(parts)
            parts, depth = [], 0
    if parts:
        yield first, " ".join(parts)


def _instruction(
    line: str, earlier: dict[str, Instruction], known: Mapping[str, Computation]
) -> tuple[bool, Instruction]:
    """Whether it is the root, and the instruction in ``line``."""
    if not (found := _INSTRUCTION.fullmatch(line)):
        raise ValueError(f"cannot parse {line[:60]!r}: write it as 'name = f32[10,20] op(operands), attribute={{0}}'")
    is_root, name, shape, opcode, rest = found.groups()
    arguments, attributes = _arguments(rest)
    called = attributes.get("calls", attributes.get("to_apply", "")).removeprefix("%")
    branches = [branch.removeprefix("%") for branch in _branches(attributes)]
    for used in (called, *branches):
        if used and used not in known:
            raise ValueError(f"the computation {_brief(used)} is not defined: define it above {_brief(name)}")
    number = None
    if opcode == "parameter":
        if not _INTEGER.fullmatch(arguments.strip()) or int(arguments) < 0:
            raise ValueError(f"parameter {_brief(name)} has no number: write parameter(0)")
        number = int(arguments)
    parts = split_list(shape[1:-1]) if shape[0] == "(" else [shape]
    # what a constant holds is no operand
    texts = [] if opcode in ("parameter", "constant") else split_list(arguments)
    return bool(is_root), Instruction(
        name=name,
        opcode=opcode,
        shapes=tuple(map(_output, parts)),
        operands=tuple(_operand(text, earlier, name) for text in texts),
        attributes=attributes,
        called=known.get(called),
        branches=tuple(known[branch] for branch in branches if branch),
        number=number,
        text=line.removeprefix("ROOT").strip(),
    )


def _branches(attributes: Mapping[str, str]) -> list[str]:
    if "branch_computations" in attributes:
        return split_list(attributes["branch_computations"].removeprefix("{").removesuffix("}"))
    return [attributes[key] for key in ("true_computation", "false_computation") if key in attributes]


def _output(text: str) -> Shape:
    """The shape of an output, which may not be known."""
    if text.startswith("("):
        return NESTED
    sized, unknown = _UNKNOWN.subn("1", text)
    shape = Shape.parse(sized)
    return UNSIZED if unknown else shape


def _arguments(rest: str) -> tuple[str, dict[str, str]]:
    """What stands before the closing bracket, and the attributes behind it."""
    depth = 1
    for found in re.finditer(r"[][(){}]", rest):
        depth += 1 if found[0] in "([{" else -1
        if not depth:
            pairs = [part.partition("=") for part in split_list(rest[found.end() :])]
            return rest[: found.start()], {key.strip(): value.strip() for key, _, value in pairs}
    raise ValueError(f"the operands {rest[:60]!r} have no end: close them with ')'")


def _operand(text: str, earlier: dict[str, Instruction], name: str) -> Instruction:
    """The instruction that an operand names; for an element of a tuple, ``x#1``, one that reads it is added."""
    found = _OPERAND.fullmatch(text)
    if not found or found[1] not in earlier:
        raise ValueError(f"the operand {text[:60]!r} of {_brief(name)} is not defined: define it above")
    source = earlier[found[1]]
    if found[2] is None:
        return source
    index = int(found[2])
    if index >= len(source.shapes):
        raise ValueError(
            f"the operand {text[:60]!r} of {_brief(name)} has no such element: {_brief(found[1])} has fewer"
        )
    key = f"{found[1]}#{index}"
    if key not in earlier:
        shape, attributes = source.shapes[index], {"index": str(index)}
        text = f"{key} = {shape} get-tuple-element({found[1]}), index={index}"
        earlier[key] = Instruction(key, "get-tuple-element", (shape,), (source,), attributes, text=text)
    return earlier[key]
