"""Indexing analysis of HLO: the maps between the indices of an instruction and those of its operands.

:func:`indexing_maps` returns them for one instruction, for a fusion or for a whole computation, in either direction.
:mod:`eqsat.interop.operations` says what each operation reads. The maps of a computation are those of its instructions,
composed along every path from the root to a parameter and simplified. Equal ones are kept once: an operand that is read
in two ways has two maps. :mod:`eqsat.interop.tiles` uses them to find which part of an operand a part of the output
reads.

Source: XLA's indexing analysis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from math import prod
from typing import Literal, cast

from eqsat.extract.graph import reached
from eqsat.interop.hlo import NESTED, UNSIZED, Computation, Instruction
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.maps import RuntimeVariable
from eqsat.interop.operations import CALLS, refuse_unread, related, selected
from eqsat.interop.relations import identity
from eqsat.interop.views import row_major
from eqsat.lang.expr import Expr, const
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.text import split_list

Direction = Literal["output_to_input", "input_to_output"]
DIRECTIONS: tuple[Direction, ...] = ("output_to_input", "input_to_output")

#: The maps of each operand, or of each parameter, by number. A tuple counts as its elements.
Maps = dict[int, tuple[IndexingMap, ...]]
#: The maps of each element of each parameter of a computation; an array is its own element 0.
ElementMaps = dict[tuple[int, int], tuple[IndexingMap, ...]]

#: What a constant holds; of a long one XLA prints dots.
_CONSTANT = re.compile(r" constant\(([-\d,{}\s]*)\)")


def indexing_maps(
    of: Instruction | Computation,
    direction: Direction = "output_to_input",
    *,
    output: int = 0,
    simplify: Callable[[IndexingMap], IndexingMap] = IndexingMap.simplify,
) -> Maps:
    """Which elements of each operand an element of the output depends on, or the reverse.

    Parameters
    ----------
    of : Instruction or Computation
        Of an instruction, the maps to its operands; of a computation, from its root to its parameters.
    direction : {"output_to_input", "input_to_output"}
        Where the maps start.
    output : int
        Which output, of an instruction that returns a tuple.
    simplify : callable
        What simplifies each composition.

    Returns
    -------
    dict of int to tuple of IndexingMap
        By operand or parameter number: several maps if it is read in several ways, none if it is not read. A tuple
        counts as its elements, as if each was an operand or parameter.

    Raises
    ------
    ValueError
        If an operation is not supported, or its shapes and attributes do not agree; one line that names it.

    >>> from eqsat.interop import hlo
    >>> module = hlo.parse('''
    ... ENTRY e {
    ...   p0 = f32[8,8] parameter(0)
    ...   t = f32[8,8] transpose(p0), dimensions={1,0}
    ...   ROOT sum = f32[8,8] add(p0, t)
    ... }''')
    >>> for found in indexing_maps(module.entry)[0]:
    ...     print(found)
    (d0, d1) -> (d0, d1), domain: d0 in [0, 7], d1 in [0, 7]
    (d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 7]
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"the direction {direction!r} is not one of {', '.join(DIRECTIONS)}")
    if not isinstance(of, Computation | Instruction):
        raise TypeError(f"{of!r} is no instruction or computation: those of a module are module.computations")
    root = of.root if isinstance(of, Computation) else of
    if not 0 <= output < len(root.shapes):
        raise ValueError(f"{root!r} has no output {output}: give one of 0 to {len(root.shapes) - 1}")
    analysis = _Analysis(direction, simplify)
    if isinstance(of, Computation):
        return _numbered(of.parameters, analysis.of_computation(of, output))
    found: ElementMaps = {}
    for number, element, steps in analysis.steps(of, output):
        maps = steps if of.opcode in CALLS or of.branches else map(analysis.simplified, steps)
        found[number, element] = tuple(m for m in maps if not m.is_empty)
    return _numbered(of.operands, found)


def _numbered(arrays: Sequence[Instruction], found: ElementMaps) -> Maps:
    """The maps of operands or parameters by number, where a tuple counts as its elements."""
    elements = [(n, element) for n, array in enumerate(arrays) for element in range(len(array.shapes))]
    return {number: found.get(key, ()) for number, key in enumerate(elements)}


class _Analysis:
    """Finds maps in one direction, and those of each called computation once."""

    def __init__(self, direction: Direction, simplify: Callable[[IndexingMap], IndexingMap]) -> None:
        self.is_forward = direction == "output_to_input"
        self.simplify = simplify
        #: Of the outputs of computations their maps, or why they have none.
        self.known: dict[tuple[Computation, int], ElementMaps | ValueError] = {}
        self.simplest: dict[IndexingMap, IndexingMap] = {}

    def simplified(self, given: IndexingMap) -> IndexingMap:
        """A map, simplified, with the values of constants and iotas in the place of the variables that read them."""
        # one at a time: the value of one variable may be read at the value of another
        while known := next(((r, value) for r in given.runtime if (value := _constant(r)) is not None), None):
            read, value = known
            others = replace(given, runtime=tuple(r for r in given.runtime if r is not read))
            given = others.substituted({read.variable: value})
        return self.simplify(given)

    def of_computation(self, computation: Computation, output: int) -> ElementMaps:
        """The maps of the parameters of a computation; calls may nest to any depth, so callees come first."""
        calls = {caller: _called(caller) for caller in reached([computation], _called)}
        for callee in TopologicalSorter(calls).static_order():
            known = [n for n, shape in enumerate(callee.root.shapes) if shape not in (NESTED, UNSIZED)]
            for number in known if callee is not computation else [output]:
                try:
                    self.known[callee, number] = self._traverse(callee, number)
                except ValueError as error:
                    # it matters only if this output is read
                    self.known[callee, number] = error
        return self._of_output(computation, output)

    def _of_output(self, computation: Computation, output: int) -> ElementMaps:
        found = self.known[computation, output]
        if isinstance(found, ValueError):
            raise found
        return found

    def _traverse(self, computation: Computation, output: int) -> ElementMaps:
        """The maps of the parameters, from the root up: those of an operand are those of its users, one step on."""
        refuse_unread(computation.root, computation.root.shapes[output])
        start = identity(computation.root.shapes[output].sizes).to_operand
        maps: dict[tuple[Instruction, int], tuple[IndexingMap, ...]] = {(computation.root, output): (start,)}
        for user in reversed(computation.instructions):
            for number in range(len(user.shapes)):
                known = maps.get((user, number), ())
                for position, operand_output, steps in self.steps(user, number) if known else ():
                    composed = [m.then(s) if self.is_forward else s.then(m) for m in known for s in steps]
                    key = user.operands[position], operand_output
                    maps[key] = self._merged(maps.get(key, ()), composed)
        numbers = {parameter: n for n, parameter in enumerate(computation.parameters)}
        return {(numbers[i], element): found for (i, element), found in maps.items() if i in numbers}

    def steps(self, user: Instruction, output: int) -> Iterator[tuple[int, int, Sequence[IndexingMap]]]:
        """For each operand its number, which of its outputs is read, and the maps through ``user`` alone."""
        if user.opcode in CALLS:
            if user.called is None:
                raise ValueError(f"{user!r} calls nothing: give its computation as calls=name")
            yield from self._steps_of_call(user, user.called, output)
            return
        for position, relation in enumerate(related(user, output)):
            if relation is not None:
                yield position, selected(user, output), [relation.to_operand if self.is_forward else relation.to_output]
        for position, branch in enumerate(user.branches, start=1):
            yield from self._steps_of_call(user, branch, output, position)

    def _steps_of_call(
        self, user: Instruction, called: Computation, output: int, first: int = 0
    ) -> Iterator[tuple[int, int, Sequence[IndexingMap]]]:
        """As :meth:`steps`, for one computation: a branch has the operand ``first``, others have all."""
        operands = user.operands[first : first + 1] if user.branches else user.operands
        given, wanted = [i.shapes for i in operands], [p.shapes for p in called.parameters]
        here, there = [
            [[s.sizes for s in of] for of in shapes]
            for shapes in ([*given, user.shapes], [*wanted, called.root.shapes])
        ]
        if here != there:
            raise ValueError(f"{user!r}: its operands and result do not have the shapes of {called.name!r}")
        if (called, output) not in self.known:
            self.of_computation(called, output)
        for (position, element), maps in self._of_output(called, output).items():
            yield first + position, element, [_seen_from(user, operands, m) for m in maps]

    def _merged(self, known: Sequence[IndexingMap], maps: Sequence[IndexingMap]) -> tuple[IndexingMap, ...]:
        """``known`` and ``maps``, these simplified, without repetitions and without maps of empty domains."""
        found = list(known)
        for given in maps:
            if given not in self.simplest:
                simplest = self.simplified(given).trimmed()
                self.simplest |= {given: simplest, simplest: simplest}
            simplest = self.simplest[given]
            if not simplest.is_empty and simplest not in found:
                found.append(simplest)
            if len(found) > INTEROP_LIMITS.maps:
                raise ValueError(
                    f"an operand is read in more than {INTEROP_LIMITS.maps} ways: analyse a part of the computation"
                )
        return tuple(found)


def _called(caller: Computation) -> set[Computation]:
    run = {i.called for i in caller.instructions if i.opcode in CALLS and i.called}
    return run.union(*[i.branches for i in caller.instructions])


def _seen_from(call: Instruction, operands: Sequence[Instruction], given: IndexingMap) -> IndexingMap:
    """A map of a called computation, with its operands in the place of parameters that hold runtime values."""
    runtime = []
    for r in given.runtime:
        source = cast(Instruction, r.hlo)
        within = replace(source, text=f"{source} in {call.name}")
        runtime.append(replace(r, hlo=within if source.number is None else operands[source.number]))
    return replace(given, runtime=tuple(runtime))


def _constant(read: RuntimeVariable) -> Expr | None:
    """The value of a runtime variable if a constant or an iota holds it, clamped as XLA clamps offsets of slices."""
    variable, source = read.variable, read.hlo
    if not isinstance(source, Instruction) or source.opcode not in ("constant", "iota"):
        return None
    if source.opcode == "iota":
        value = read.indices[source.dimension("iota_dimension")]
    elif (element := _held(source, read.indices)) is not None:
        value = const(element)
    else:
        return None
    return maximum(variable.vmin, minimum(variable.vmax, value))


def _held(constant: Instruction, indices: Sequence[Expr]) -> int | None:
    """The integer that a constant holds at these indices; None if that is not known."""
    if not (found := _CONSTANT.search(constant.text)):
        return None
    entries = split_list(re.sub(r"[{}]", " ", found[1]))
    sizes = constant.shapes[0].sizes
    if prod(sizes) != len(entries) or not (len(entries) == 1 or all(i.op == "const" for i in indices)):
        return None
    # Python does not read numbers of thousands of digits
    if any(len(entry.strip()) > 18 or not re.fullmatch(r"\s*-?\d+\s*", entry) for entry in entries):
        return None
    place = sum(i.vmin * stride for i, stride in zip(indices, row_major(sizes), strict=True)) if sizes else 0
    return int(entries[0 if len(entries) == 1 else place])
