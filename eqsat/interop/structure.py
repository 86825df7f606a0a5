"""Trees of the operations around index expressions, in the notation of tensor compilers: loops, reductions, buffers.

A :class:`Tree` is an operation such as ``END(store, [r0, r1])`` or ``INDEX(buf, i*8 + j)``; its leaves are text: names,
numbers, and index expressions, which :mod:`eqsat.lang.text` reads. A leaf may say its type and range, ``x:i32 [0,
99]``, or its extent, ``r1(8)``, ``data[64]``. :func:`normalized` rewrites a tree from the leaves up, each operation by
its own function in :data:`RULES`, until nothing changes:

* indices without a width get one: literals and variables first, then operations get the least width that holds their
  operands and their result; at last the casts go from what uses an index (Morok's ``pm_lower_index_dtype``);
* loops that end one inside the other end together; loops with no or one value vanish, and reductions of equal values;
* a buffer of a constant is the constant; of an axis along which nothing varies, one element is kept;
* a large reduction becomes two, and more if the first of these is large (:func:`eqsat.kernels.staging.two_stages`);
* index expressions go through :func:`eqsat.optimize`; one that does not get cheaper stays as written.

Between two literals ``^`` is a power, as in ``[0, 2^40]``. An index expression that has one is refused, since its ``^``
is exclusive or.

A value varies along the ranges that it names, as ``load(r0)`` does; ``r0``, ``r1``, ... are ranges, and so are those of
the buffer, letters that are literals in rules (``c``) are constants, and any other name may vary along every range. A
reduction does not vary along its own ranges; an element ``INDEX(buf, r0)`` varies as its indices do. The extent of a
range may be a variable that is never negative, as in ``r1(n)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, cast

from eqsat.egraph.patterns import LITERALS
from eqsat.extract.cost import CostModel
from eqsat.interop.limits import INTEROP_LIMITS, refuse_long_text
from eqsat.interop.views import INVALID, split_gate
from eqsat.kernels.staging import SPLIT_LIMITS, SplitLimits, TwoStages, two_stages
from eqsat.lang.costs import LATENCY, cost_of
from eqsat.lang.dtypes import LIMITS, common_width, select_width, widths
from eqsat.lang.expr import TRUE, Expr, any_var, const, digits, make, shift_amount, shortened, var
from eqsat.lang.functions import where
from eqsat.lang.ops import OPS, REDUCTIONS
from eqsat.lang.terms import all_of
from eqsat.lang.text import Pieces, parse, pieces, to_text
from eqsat.lang.traversal import topological
from eqsat.optimizer.front import optimize, variables_of
from eqsat.prove.verify import refuse_wrong
from eqsat.theory.linear import LinearArithmetic

#: The start of an operation; what else is called, as in ``load(r0)``, is a leaf.
_OPERATION = re.compile(r"([A-Z]\w*|new_range)\(")
_VECTOR = re.compile(r"Vector<(\w+),\s*(\d+)>")
_ABSTRACT = re.compile(r"(Vector<)?Index\b")
_TYPE = re.compile(r"(?:Vector<)?i(32|64)\b")
_CAST = re.compile(r"\.(cast|bind)\(")
#: A name, its type and its range; spaces before the range are tried from the first one alone.
_ANNOTATED = re.compile(r"(.*?)(?::(i32|i64))?(?:(?<!\s)\s*\[([^\[\],]+),([^\[\],]+)\])?", re.DOTALL)
_EXTENT = re.compile(r"[A-Za-z_]\w*\((\d+)\)")
#: A range whose extent is a variable.
_SYMBOLIC_EXTENT = re.compile(r"r\d+\(([A-Za-z_]\w*)\)")
_SHAPED = re.compile(r"([A-Za-z_]\w*)\[(\d+(?:,\s*\d+)*)\]")
_AXES = re.compile(r"axes=\[(\d+(?:,\s*\d+)*)\]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_UNCALLED = re.compile(r"[A-Za-z_]\w*\b(?!\()")
_RANGE = re.compile(r"r\d+")
_LITERAL = re.compile(r"-?[0-9]+")
_POWER = re.compile(r"(?<!\w)([0-9]+)\s*\^\s*([0-9]+)(?!\w)")
#: Operations that are loops, whose ranges have no name.
_LOOPS = ("RANGE", "new_range")
_UNNAMED = re.compile(r"\b(?:RANGE|new_range)\(")
#: The operators whose bounds say how wide the result of an operation is.
_OPERATORS = {
    **{"Add": "add", "Sub": "sub", "Mul": "mul", "Idiv": "floordiv", "Mod": "mod", "Max": "max", "Min": "min"},
    **{"And": "bitand", "Or": "bitor", "Xor": "bitxor", "Shl": "shl", "Shr": "shr"},
}
#: What errors call operands that have no name of their own.
_NAMES = ("first", "second")
_COMPARISONS = ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")
#: Operations on two values.
_BINARY = (*_OPERATORS, *_COMPARISONS, "Pow")
_TYPED = {
    "CONST": "CONST(42, Index)",
    "DEFINE_VAR": "DEFINE_VAR(n, 0, 42, Index)",
    "VCONST": "VCONST([0, 1], Vector<Index,2>)",
}
#: By reduction, the operation on a value and a number N that reduces N equal values; none if that is the value.
_REPEATED = {"ADD": "Mul", "MUL": "Pow", "MAX": "", "MIN": ""}
_REDUCED = {"ADD": "sum_over", "MUL": "prod_over", "MAX": "max_over", "MIN": "min_over"}


@dataclass(frozen=True)
class Tree:
    """An operation, a list (``"[]"``), a cast (``".cast"``), a binding (``".bind"``), or a leaf (``""``) with its text.

    >>> tree = Tree.parse("END(END(x, [r0]), [r1])")
    >>> tree.op, str(tree.args[1]), str(normalized(tree))
    ('END', '[r1]', 'END(x, [r0, r1])')
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
        closed = self.args[0].op or _WORD.fullmatch(value) or _is_literal(value)
        return f"{value if closed else f'({value})'}{self.op}({what})"


def leaf(text: object) -> Tree:
    return Tree("", text=str(text))


def node(op: str, *args: Tree) -> Tree:
    return Tree(op, args)


_INVALID = leaf("Invalid")


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
            value = leaf(_bare(tree.text)) if not tree.op else tree
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
        if vector := _VECTOR.match(self.text, start):
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


def _bare(text: str) -> str:
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


def _is_literal(text: str) -> bool:
    return bool(_LITERAL.fullmatch(text))


@dataclass(frozen=True)
class _Operand:
    """What is cast to an index: the tree without annotations, its width, and a term with the bounds of its value."""

    tree: Tree
    width: int
    value: Expr | None


def _constant(text: str) -> Expr:
    """A constant expression; ``2^40`` is a power."""
    value = parse(_POWER.sub(r"\1**\2", text.strip()), {}, "write an integer literal, such as 42 or 2^40")
    if value.vmin != value.vmax or value.element or "^" in _POWER.sub("", text):
        raise ValueError(f"{shortened(text.strip(), 80)!r} is no integer literal: write one, such as 42 or 2^40")
    return value


def _between(name: str, low: str, high: str) -> Expr:
    """A variable with these ends."""
    ends = [_constant(text).vmin for text in (low, high)]
    if ends[0] > ends[1]:
        raise ValueError(f"the range of variable {shortened(name, 80)!r} is empty: {ends}")
    return any_var(name, *ends)


def _operand(tree: Tree) -> _Operand:
    if tree.op:
        return _computed_operand(tree)
    # every text matches, if need be as a name
    name, kind, low, high = cast(re.Match[str], _ANNOTATED.fullmatch(tree.text)).groups()
    value = tree.value if tree.value is not None else _known(name)
    if low is not None:
        value = _between(name, low, high)
    width = int(kind[1:]) if kind else select_width(value) if value is not None else 32
    return _Operand(replace(leaf(name), value=value), width, value)


def _known(text: str) -> Expr | None:
    """The value of a constant expression; None for other text."""
    try:
        value = _constant(text)
    except (TypeError, ValueError):
        return None
    return None if value.is_bool else value


def _computed_operand(tree: Tree) -> _Operand:
    """An operation as an operand: of the width of its type, or else of the widest of its own operands."""
    value = tree.value
    typed = _TYPE.match(tree.args[-1].text) if tree.args else None
    if tree.op == "CONST" or (tree.op == ".cast" and typed):
        value = _operand(tree.args[0]).value
    elif tree.op == "VCONST" and tree.args[0].args:
        value = _any_of(tree.op, [_known(a.text) for a in tree.args[0].args])
    elif tree.op == "DEFINE_VAR" and len(tree.args) == 4:
        name, *ends = [a.text for a in tree.args[:3]]
        value = None if None in map(_known, ends) else _between(name, *ends)
    elif tree.op in ("RANGE", "SPECIAL") and typed:
        end = _operand(tree.args[0]).value
        value = any_var(tree.op, 0, end.vmax - 1) if end is not None and end.vmax > 0 else None
    if typed:
        return _Operand(replace(tree, value=value), int(typed[1]), value)
    parts = [_operand(a) for a in _with_width(tree)] if tree.op in (*_BINARY, ".bind", "WHERE") else []
    width = max([32, *[part.width for part in parts]])
    value = _combined(tree.op, parts) if value is None else value
    return _Operand(replace(tree, value=value), width, value)


def _with_width(tree: Tree) -> tuple[Tree, ...]:
    """The operands that have a width: all but the condition of a selection."""
    return tree.args[1:] if tree.op == "WHERE" else tree.args


def _combined(op: str, operands: Sequence[_Operand]) -> Expr | None:
    """A term with the bounds of the value of an operation on two, if theirs are known."""
    if op in ("VECTORIZE", "WHERE"):
        return _any_of(op, [operand.value for operand in operands])
    values = [operand.value for operand in operands if operand.value is not None]
    if len(values) != 2:
        return None
    # of two variables, since loops without a name are not the same because they are written alike
    names = [str(v.value) if v.op == "var" else name for v, name in zip(values, _NAMES, strict=True)]
    names = names if names[0] != names[1] else [*_NAMES]
    x, y = [v if v.op == "const" else any_var(n, v.vmin, v.vmax) for v, n in zip(values, names, strict=True)]
    if op in ("BIND", ".bind"):
        return x
    if op in ("Shl", "Shr"):
        y = shift_amount(y)
    if op == "Pow":
        return _power(x, y)
    return make(_OPERATORS[op], x, y) if op in _OPERATORS else None


def _any_of(op: str, values: Sequence[Expr | None]) -> Expr | None:
    """A term with the bounds of all ``values``, such as those of the lanes of a vector; None if one is not known."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return any_var(op, min(value.vmin for value in known), max(value.vmax for value in known))


def _power(base: Expr, exponent: Expr) -> Expr | None:
    """A term with the bounds of ``base`` to an ``exponent`` that is not negative, else None."""
    if exponent.vmin < 0:
        return None
    return make("prod_over", base, any_var("step", 0, exponent.vmax), const(0), exponent)


def _is_cast(tree: Tree) -> bool:
    """Whether a value, or a vector of them, is cast to an index without a width."""
    return tree.op == ".cast" and bool(_ABSTRACT.match(tree.args[1].text))


def _cast(tree: Tree, kind: str) -> Tree:
    return node(".cast", tree, leaf(kind))


def _used(tree: Tree) -> Tree:
    """What an operation that uses an index takes: the value before it is cast to an index."""
    return tree.args[0] if _is_cast(tree) else tree


def _typed(tree: Tree) -> Tree | None:
    """``CONST(42, Index)``, a variable with its bounds or a vector, in the least width that holds its values."""
    if not tree.args:
        raise ValueError(f"{tree} has no value: it takes one and a type, as {_TYPED[tree.op]}")
    *values, kind = tree.args
    if not values or not _ABSTRACT.match(kind.text):
        return None
    if values == [_INVALID]:
        return _INVALID
    # those of a vector, behind the name of a variable, or the only one
    numbers = values[0].args or values[1:] or values
    if any(number.op for number in numbers):
        raise ValueError(f"{shortened(str(tree), 80)} has no literal as value: write it as {_TYPED[tree.op]}")
    width = common_width(*[_constant(number.text) for number in numbers])
    return _cast(node(tree.op, *values, leaf(kind.text.replace("Index", f"i{width}"))), kind.text)


def _computed(tree: Tree) -> Tree | None:
    """An operation on indices, or on vectors of them, in the least width that holds its operands and its result."""
    given = _with_width(tree)
    wanted = len(given) if tree.op == "VECTORIZE" else 2
    if not given or len(given) != wanted or not all(map(_is_cast, given)):
        return None
    lanes = {_lanes(a) for a in given}
    if len(lanes) > 1 or (tree.op == "VECTORIZE" and lanes != {""}):
        # an operation takes vectors of one length; a vector has no vectors as lanes
        return None
    operands = [_operand(a.args[0]) for a in given]
    value = _combined(tree.op, operands)
    width = max([operand.width for operand in operands] + ([] if value is None else [widths([value])[value]]))
    op = ".bind" if tree.op == "BIND" else tree.op
    condition = tree.args[: len(tree.args) - len(given)]
    of = lanes.pop()
    cast = [_cast(operand.tree, _kind(f"i{width}", of)) for operand in operands]
    result = _kind("bool" if op in _COMPARISONS else "Index", str(wanted) if op == "VECTORIZE" else of)
    return _cast(replace(node(op, *condition, *cast), value=value), result)


def _lanes(tree: Tree) -> str:
    """How many lanes the vector has that a cast makes; empty if it makes none."""
    vector = _VECTOR.fullmatch(tree.args[1].text)
    return vector[2] if vector else ""


def _kind(element: str, lanes: str) -> str:
    """The type of a vector of that many lanes, or of an element."""
    return f"Vector<{element},{lanes}>" if lanes else element


def _launched(tree: Tree) -> Tree | None:
    """A loop, whose index has the width of its end, or a launch index, which has 32 bits."""
    if len(tree.args) != 1 or not _is_cast(tree.args[0]):
        return None
    end = _operand(tree.args[0].args[0])
    if tree.op == "SPECIAL" and end.value is not None and end.value.vmax > LIMITS[32][1]:
        raise ValueError(
            f"the launch size {end.value.vmax} of {shortened(str(tree), 80)} does not fit 32 bits: split the grid"
        )
    return _cast(node(tree.op, end.tree, leaf("i32" if tree.op == "SPECIAL" else f"i{end.width}")), "Index")


def _extent(tree: Tree) -> int | None:
    """How many values a range has at most, or None if that is not known; a constant is a range of one value."""
    if tree.op == "CONST":
        return 1
    if tree.op in _LOOPS and tree.args:
        end = _operand(tree.args[0]).value
        return max(0, end.vmin) if end is not None and end.vmin == end.vmax else None
    sized = _EXTENT.fullmatch(tree.text)
    return _constant(sized[1]).vmin if sized else None


def _looped(tree: Tree) -> Tree | None:
    """A loop whose index has the width of its end; one with at most one value is the constant 0 of its type."""
    found = _launched(tree) or tree
    loop = _used(found)
    if _is_long(loop):
        return found
    zero = node("CONST", leaf(0), *loop.args[1:])
    return zero if loop is found else _cast(zero, "Index")


def _ended(tree: Tree) -> Tree | None:
    """One END for loops that end one inside the other, without loops of no or one value."""
    match tree.args:
        case (value,):
            return replace(tree, args=(_used(value),))
        case (Tree("END", (value, inner)), Tree("[]", ranges)):
            return node("END", value, node("[]", *inner.args, *ranges))
        case (value, Tree("[]", ranges)):
            live = [r for r in ranges if _is_long(r)]
            return node("END", _used(value), node("[]", *live)) if live else _used(value)
    raise ValueError(
        f"{shortened(str(tree), 80)} is no END: it takes what ends and a list of ranges, as END(x, [r0, r1])"
    )


def _is_long(tree: Tree) -> bool:
    extent = _extent(tree)
    return extent is None or extent > 1


def _reduced(tree: Tree) -> Tree | None:
    """A reduction over the ranges along which its value varies; of a large array over axes, in two stages."""
    match tree.args:
        case (Tree("REDUCE", (value, Tree("[]", inner), same)), Tree("[]", ranges), op) if (
            # the value of a reduction does not vary along a range of its own
            same == op and not ({*map(_name, inner)} & {*map(_name, ranges)} - {""})
        ):
            return node("REDUCE", value, node("[]", *inner, *ranges), op)
        case (_, Tree("[]", ranges), op) if any(_extent(r) == 0 for r in ranges):
            return node("CONST", leaf(REDUCTIONS[_REDUCED[op.text]].identity)) if op.text in _REDUCED else None
        case (value, Tree("[]", ranges), op):
            return _over_what_varies(value, ranges, op)
        case (data, axes, *operator) if len(operator) < 2:
            return _in_two_stages(data, axes, operator)
    return None


def _over_what_varies(value: Tree, ranges: Sequence[Tree], op: Tree) -> Tree:
    """A reduction over the ranges along which its value varies, and of the equal values along the others."""
    named = _named_in(value, set(map(_name, ranges))) if op.text in _REPEATED else None
    repeated = _REPEATED.get(op.text, "")
    long = [r for r in ranges if _is_long(r)]
    # of no values there is a sum, but no maximum
    same = set() if named is None else {r for r in long if _size(r, bool(repeated)) and _name(r) not in named}
    live = [r for r in long if r not in same]
    found = node("REDUCE", value, node("[]", *live), op) if live else value
    if not repeated:
        return found
    count = prod([_extent(r) or 1 for r in long if r in same])
    counts = [node("CONST", leaf(digits(count)))] if count > 1 else []
    for number in [*counts, *[leaf(_size(r)) for r in long if r in same and not _extent(r)]]:
        found = node(repeated, found, number)
    return found


def _size(tree: Tree, symbolic: bool = True) -> str:
    """How many values a range has, a number or, if ``symbolic``, a variable; empty if that is not known."""
    if (extent := _extent(tree)) is not None:
        return str(extent)
    sized = _SYMBOLIC_EXTENT.fullmatch(tree.text)
    return sized[1] if sized and symbolic else ""


def _in_two_stages(data: Tree, axes: Tree, operator: Sequence[Tree]) -> Tree | None:
    array, listed = _SHAPED.fullmatch(data.text), _AXES.fullmatch(axes.text)
    if not array or not listed:
        return None
    shape, over = [[_constant(n).vmin for n in text.split(",")] for text in (array[2], listed[1])]
    found = two_stages(shape, over)
    return None if found is None else in_stages(array[1], found, *operator)


def in_stages(
    name: str, found: TwoStages, *operator: Tree, expanded: Iterable[int] = (), limits: SplitLimits = SPLIT_LIMITS
) -> Tree:
    """The reduction of an array in stages, each by the ``operator`` if one is given.

    If the first of the two stages is large itself, it is split too, but not at axes of the array that are ``expanded``.
    """
    shape, axes, copies = found.split_shape, found.first_axes, found.shifted(expanded)
    if (further := two_stages(shape, axes, copies, limits)) is not None:
        first = in_stages(name, further, *operator, expanded=copies, limits=limits)
    else:
        first = node("REDUCE", node("RESHAPE", leaf(name), leaf(list(shape))), leaf(f"axes={list(axes)}"), *operator)
    return node("REDUCE", node("CONTIGUOUS", first), leaf(f"axes=[{found.last_axis}]"), *operator)


def _stored(tree: Tree) -> Tree | None:
    """One STORE, with the ranges of both, for stores one inside the other."""
    match tree.args:
        case (Tree("STORE", (buffer, value, Tree("[]", inner))), Tree("[]", ranges)):
            return node("STORE", buffer, value, node("[]", *inner, *ranges))
        case (Tree("STORE", (_, _, _)), _):
            raise ValueError(
                f"{shortened(str(tree), 80)} is no STORE: stores one inside the other take lists of ranges, as "
                f"STORE(STORE(b, v, [r0]), [r1])"
            )
    return None


def _buffered(tree: Tree) -> Tree | None:
    match tree.args:
        case ():
            raise ValueError("BUFFERIZE() stores nothing: it takes a value and a list of ranges, as BUFFERIZE(x, [r0])")
        case (Tree("BUFFERIZE") as value,):
            return value
        case (value, *_) if _is_constant(value):
            return value
        case (Tree("BUFFERIZE", (value, inner)), ranges):
            # the value is stored without the buffer between, unless a range of its would not be one of the outer buffer
            agree = ranges.op == inner.op == "[]" and all(any(_is_same(r, o) for o in ranges.args) for r in inner.args)
            # a range has its extent if either buffer says it
            sized = [next((r for r in inner.args if _is_same(r, o) and _size(r)), o) for o in ranges.args]
            return node("BUFFERIZE", value, node("[]", *sized)) if agree else None
        case (value, ranges):
            return _along_what_varies(value, ranges.args)
    return None


def _along_what_varies(value: Tree, ranges: Sequence[Tree]) -> Tree | None:
    """A buffer without the axes along which its elements are equal, expanded along these; None if there are none."""
    named = _named_in(value, set(map(_name, ranges)))
    extents = {r: _size(r) for r in ranges}
    varying = {r for r, n in extents.items() if not n or (n != "1" and (named is None or _name(r) in named))}
    if len(varying) == len(extents):
        return None
    # a buffer without axes stays: a kernel must store something
    kept = node("BUFFERIZE", value, node("[]", *[r for r in ranges if r in varying]))
    sizes = list(map(_axis_size, ranges))
    inserted = [size if r in varying else leaf(1) for r, size in zip(ranges, sizes, strict=True)]
    return node("EXPAND", node("RESHAPE", kept, node("[]", *inserted)), node("[]", *sizes))


def _axis_size(tree: Tree) -> Tree:
    """The size of the axis along which a buffer has the values of a range: its extent, or else the range."""
    return leaf(_size(tree) or tree)


def _name(tree: Tree) -> str:
    """The name that a leaf begins with; empty if it begins with none."""
    name = _WORD.match(tree.text)
    return name[0] if name else ""


def _named_in(value: Tree, ranges: set[str]) -> set[str] | None:
    """The names in a value, among them the ranges along which it varies.

    ``None`` if it may vary along any range: if a name is not known, or a range in it has no name.
    """
    if _UNNAMED.search(f"{value.op}({value.text}"):
        return None
    match value:
        case Tree("CONST" | "VCONST" | "DEFINE_VAR"):
            return set()
        case Tree(".cast", (inner, _)):
            return _named_in(inner, ranges)
        case Tree("REDUCE", (inner, Tree("[]", bound), _)) | Tree("BUFFERIZE", (inner, Tree("[]", bound))):
            # its ranges end there
            names = _named_in(inner, ranges | set(map(_name, bound)))
            return None if names is None else names - set(map(_name, bound))
        case Tree("INDEX", (Tree("", _, array), *indices)) if _WORD.fullmatch(array):
            # an element of an array varies as its indices do, and as the condition under which it is loaded
            return _named_in(
                node("[]", *[leaf(a.text.removeprefix("gate=")) if not a.op else a for a in indices]), ranges
            )
    if value.op:
        parts = [_named_in(a, ranges) for a in value.args]
        return None if None in parts else set().union(*[part for part in parts if part is not None])
    # r1(8) is a range with its extent, and no call
    names = set(_UNCALLED.findall(value.text)) | ranges.intersection(_WORD.findall(value.text))
    known = {n for n in names if n in ranges or n in LITERALS or _RANGE.fullmatch(n)}
    return names if names == known else None


def _indexed(tree: Tree) -> Tree | None:
    match tree.args:
        # not with a gate as third operand: where that fails the access has another value
        case (array, _) if _is_constant(array):
            return array
        case (Tree("BUFFERIZE", (value, Tree("[]", ranges))), index) if _are_same(ranges, index):
            return value
        case (array, index, *others):
            return replace(tree, args=(*_unexpanded(array, _used(index)), *others))
    return None


def _is_constant(tree: Tree) -> bool:
    """Whether a tree is a constant, cast or not."""
    return tree.op == "CONST" or (tree.op == ".cast" and tree.args[0].op == "CONST")


def _are_same(ranges: Sequence[Tree], index: Tree) -> bool:
    """Whether the indices of an access are the ranges that a buffer is written along, with or without their extents."""
    indices = index.args if index.op == "[]" else (index,)
    return len(ranges) == len(indices) and all(map(_is_same, ranges, indices))


def _is_same(one: Tree, other: Tree) -> bool:
    sizes = {_size(r) for r in (one, other)} - {""}
    named = [not r.op and (_WORD.fullmatch(r.text) or _size(r)) for r in (one, other)]
    return one == other or (all(named) and _name(one) == _name(other) != "" and len(sizes) < 2)


def _unexpanded(array: Tree, index: Tree) -> tuple[Tree, Tree]:
    """A buffer and indices whose element is that of ``array``, which may be a buffer expanded along further axes."""
    match array:
        case Tree("EXPAND", (Tree("RESHAPE", (Tree("BUFFERIZE", (_, Tree("[]", ranges))) as kept, inserted)), sizes)):
            axes = list(zip(inserted.args, sizes.args, index.args, strict=False))
            live = [axis for axis in axes if axis[0] != leaf(1)]
            dropped = [place for size, _, place in axes if size == leaf(1)]
            fits = len(inserted.args) == len(sizes.args) == len(index.args) and index.op == "[]"
            same = [size for size, _, _ in live] == list(map(_axis_size, ranges)) == [size for _, size, _ in live]
            # an index that may be invalid says where the access happens
            if fits and same and not any("Invalid" in str(place) for place in dropped):
                return kept, node("[]", *[place for _, _, place in live])
    return array, index


#: What an operation becomes; ``None``, or an equal tree, if it stays.
RULES: Mapping[str, Callable[[Tree], Tree | None]] = {
    **dict.fromkeys(("CONST", "DEFINE_VAR", "VCONST"), _typed),
    **dict.fromkeys((*_BINARY, "WHERE", "VECTORIZE", "BIND"), _computed),
    "SPECIAL": _launched,
    **dict.fromkeys(_LOOPS, _looped),
    "END": _ended,
    "REDUCE": _reduced,
    "STORE": _stored,
    "BUFFERIZE": _buffered,
    "INDEX": _indexed,
    ".cast": lambda tree: _INVALID if _is_cast(tree) and tree.args[0] == _INVALID else None,
    "SINK": lambda tree: replace(tree, args=tuple(map(_used, tree.args))),
}


def normalized(
    tree: Tree, ranges: Mapping[str, tuple[int, int]] | None = None, *, cost: CostModel = LATENCY, **options: Any
) -> Tree:
    """The normal form of a tree; see the head of this module.

    Variables of index expressions have the inclusive ``ranges``, others those of 32-bit integers; the options are those
    of :func:`eqsat.optimize`.

    >>> print(normalized(Tree.parse("INDEX(buf, WHERE(r0 < 5, (r0*8 + r1)//8*8, Invalid))"), {"r1": (0, 7)}))
    INDEX(buf, r0*8, gate=(r0 < 5))
    """
    given = variables_of({} if ranges is None else ranges)
    known = {**_declared(tree), **{name: (variable.vmin, variable.vmax) for name, variable in given.items()}}

    def visit(tree: Tree, in_list: bool) -> Tree:
        args = [visit(a, tree.op == "[]") for a in tree.args]
        # what takes a list takes its ranges, indices and sizes as they are
        tree = replace(tree, args=tuple(map(_used, args) if tree.op == "[]" else args))
        while tree.op in RULES:
            # a range in a list is one to end, to reduce or to store along, not a value
            found = _launched(tree) if in_list and tree.op in _LOOPS else RULES[tree.op](tree)
            if found is None or found == tree:
                break
            tree = found
        if tree.op == "INDEX":
            tree = _with_gate_inside(tree)
        if tree.op != "INDEX" or len(tree.args) != 2:
            return tree
        tree = _with_access(tree, known, cost, options)
        # indices that became cheap may be those that the buffer is written at
        return _indexed(tree) or tree

    return visit(tree, False)


def _declared(tree: Tree) -> dict[str, tuple[int, int]]:
    """The ranges that leaves such as ``r1(8)`` give variables; the widest, if they give several."""
    found: dict[str, tuple[int, int]] = {}
    stack = [tree]
    while stack:
        part = stack.pop()
        stack += part.args
        sized = _EXTENT.fullmatch(part.text)
        if sized and (extent := _constant(sized[1]).vmin):
            name = _name(part)
            found[name] = (0, max(extent - 1, found.get(name, (0, 0))[1]))
    return found


def _with_access(
    tree: Tree, ranges: Mapping[str, tuple[int, int]], cost: CostModel, options: Mapping[str, Any]
) -> Tree:
    """An access with the cheapest indices found, and the condition under which it happens as its gate."""
    given = tree.args[1]
    written: dict[Expr, str] = {}
    try:
        indices = [_expression(part, ranges, written) for part in (given.args if given.op == "[]" else (given,))]
    except (TypeError, ValueError):
        # no integer expression: only its gate can be taken out
        return _with_gate(tree)
    _refuse_powers(given)
    accesses = [split_gate(index) for index in indices]
    valid = all_of([access.valid for access in accesses])
    roots, gates = [*[access.index for access in accesses], valid], [*[valid for _ in accesses], None]
    result = optimize(roots, gates=gates, cost=cost, **options)
    refuse_wrong(result.check(), result.exprs)
    *found, valid = [_least(*pair, cost) for pair in zip(result.before, result.exprs, strict=True)]
    if found == indices:
        return tree
    *texts, condition = [leaf(written.get(term) or _text(term)) for term in (*found, valid)]
    gate = [] if valid is TRUE else [leaf(f"gate=({condition})")]
    return node("INDEX", tree.args[0], node("[]", *texts) if given.op == "[]" else texts[0], *gate)


def _refuse_powers(tree: Tree) -> None:
    """Refuse ``2^40`` in an index expression, where it would be exclusive or of all that is around it."""
    if found := _POWER.search(tree.text):
        raise ValueError(
            f"{shortened(tree.text, 80)!r} has {found[0]}, which is a power in ranges, but exclusive or in an index: "
            f"write {found[1]}**{found[2]}, or brackets around the operands of ^"
        )
    for part in tree.args:
        _refuse_powers(part)


def _text(term: Expr) -> str:
    """The text of an index expression: ``(x + 2) ^ 20``, not ``x + 2 ^ 20``, which would be read as a power."""

    def bracketed(part: Expr) -> Pieces:
        found, precedence = pieces(part)
        if part.op == "bitxor":
            found = [piece if isinstance(piece, str) else (piece[0], 100) for piece in found]
        return found, precedence

    return to_text(term, pieces_of=bracketed)


def _with_gate_inside(tree: Tree) -> Tree:
    """An access that has a gate, and an index that may be invalid: the condition of the gate selects the index too."""
    match tree.args:
        case (array, index, Tree("", (), gate)) if gate.startswith("gate=") and "Invalid" in _WORD.findall(str(index)):
            condition, indices = leaf(_bare(gate.removeprefix("gate="))), index.args if index.op == "[]" else (index,)
            first = node("WHERE", condition, indices[0], _INVALID)
            return node("INDEX", array, node("[]", first, *indices[1:]) if index.op == "[]" else first)
    return tree


def _with_gate(tree: Tree) -> Tree:
    """An access whose index selects ``Invalid``: the other branch as its index, and the condition as its gate."""
    index, conditions = _used(tree.args[1]), list[str]()
    while index.op == "WHERE" and len(index.args) == 3:
        condition, then, otherwise = index.args
        if otherwise == _INVALID:
            index, conditions = _used(then), [*conditions, f"{condition}"]
        elif then == _INVALID:
            index, conditions = _used(otherwise), [*conditions, f"not ({condition})"]
        else:
            break
    joined = conditions[0] if len(conditions) == 1 else " and ".join(f"({condition})" for condition in conditions)
    return node("INDEX", tree.args[0], index, leaf(f"gate=({joined})")) if conditions else tree


def _least(old: Expr, new: Expr, cost: CostModel) -> Expr:
    """The cheapest of ``old``, the normal form of ``new``, and ``new``; of equal ones the first."""
    return min([old, LinearArithmetic().simplify(new), new], key=lambda term: cost_of([term], cost))


def _expression(tree: Tree, ranges: Mapping[str, tuple[int, int]], written: dict[Expr, str]) -> Expr:
    """The term of a tree of selections and leaves; ``written`` gets the text of each leaf by its term."""
    tree = _used(tree)
    if tree.op == "WHERE":
        return where(*[_expression(a, ranges, written) for a in tree.args])
    if tree.op:
        raise ValueError(f"{tree.op} is no index expression")
    if tree == _INVALID:
        return INVALID
    words = [word for word in _WORD.findall(tree.text) if word not in ("True", "False", *OPS)]
    names = {word: var(word, *ranges.get(word, LIMITS[32])) for word in words}
    term = parse(tree.text, names)
    if any(part.element for part in topological([term])):
        raise ValueError(f"{tree.text} has a floating-point value")
    written.setdefault(term, tree.text)
    return term
