"""Triton's kernels with cheaper index arithmetic (the extra ``triton``).

When Triton has made the TTIR of a kernel, before it chooses layouts, :mod:`eqsat.interop.mlir` rewrites the text: what
is known not to wrap around in 32 bits is optimised, all else stays. How many programs a kernel is started with is not
known when it is compiled, unless :func:`install` is told. Triton is imported when the integration is switched on, not
before. No GPU is needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eqsat.egraph.budget import Budget
from eqsat.extract.cost import CostModel, is_power_of_two, literal
from eqsat.interop.drop_in import DropIn, Kept, Seam, Statistics, settings
from eqsat.interop.mlir import rewriting
from eqsat.interop.mlir.tensors import TYPE, axis_of
from eqsat.interop.mlir.terms import MOST_PROGRAMS, Terms, fits
from eqsat.interop.mlir.text import Statement, parse
from eqsat.lang.costs import LATENCY
from eqsat.lang.expr import Expr
from eqsat.lang.ops import FLOORS, Bounds
from eqsat.lang.text import numbered
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import DEFAULT_BUDGET

__all__ = ["Statistics", "enabled", "install", "reset_statistics", "simplified", "statistics", "uninstall"]

#: What an operation costs that Triton does not lower: more than any index of operations that it lowers.
_NOT_LOWERED = 10_000
_DIVISION = re.compile(r"\barith\.(?:floor|ceil)?(?:div|rem)[su]i\b")
#: An instruction in the text of an assembler, which is no label, directive or comment.
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?[a-z]\w*(?:[.\w]*)(?:\s.*)?$", re.MULTILINE)
_ADDPTR = re.compile(rf"%0 = tt\.addptr %1, %2 : (.*), {TYPE}")


@dataclass(frozen=True)
class Options:
    """As for :func:`install`."""

    programs: tuple[int, int, int]
    cost: CostModel
    budget: Budget


@dataclass(frozen=True)
class _Lowered:
    """The prices of ``model``, but for floor division of what may be negative, which Triton does not lower."""

    model: CostModel

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        is_floor = op in FLOORS and operands[0][0] < 0 and not is_power_of_two(literal(operands[1]) or 0)
        return _NOT_LOWERED if is_floor else self.model.price(op, operands, result)


_DROP_IN = DropIn("Triton")
uninstall, statistics, reset_statistics = _DROP_IN.uninstall, _DROP_IN.statistics, _DROP_IN.reset_statistics


def install(
    *,
    programs: int | tuple[int, int, int] = MOST_PROGRAMS,
    cost: CostModel | str = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
) -> None:
    """Make the index arithmetic of every kernel that Triton compiles from now on cheaper, in this process.

    Kernels that were compiled without it, or with other options, are compiled again.

    Parameters
    ----------
    programs : int or three of them
        The most programs that kernels are started with along each axis of the grid, 1 to 2**31 - 1. With more the
        results are undefined: it is for the caller to keep. By default what Triton starts at most, of which most
        products may wrap around; a kernel says it for itself with ``tl.assume(tl.program_id(0) < n)``.
    cost : CostModel or str
        What is cheap.
    budget : Budget
        For each block of a kernel.

    Raises
    ------
    ImportError
        If Triton is not installed, or is older than 3.6.
    ValueError, TypeError
        If ``programs`` are no such numbers, ``cost`` is no cost model, or ``budget`` no budget.

    >>> install(programs=0)
    Traceback (most recent call last):
    ValueError: programs=0: give the most programs along each axis, from 1 to 2147483647
    """
    counts = programs if isinstance(programs, tuple) else (programs,) * 3
    if len(counts) != 3 or not all(isinstance(n, int) and 1 <= n <= MOST_PROGRAMS for n in counts):
        raise ValueError(f"programs={programs!r}: give the most programs along each axis, from 1 to {MOST_PROGRAMS}")
    options = Options(counts, *settings(cost, budget))
    try:
        from triton import knobs
        from triton._C.libtriton import ir

        seam = Seam(knobs.runtime, "add_stages_inspection_hook", lambda before: _hook(before, ir.parse_mlir_module))
        _ = knobs.runtime.add_stages_inspection_hook
    except (ImportError, AttributeError):
        raise ImportError("Triton 3.6 or newer is not installed: pip install 'eqsat[triton]'") from None
    _DROP_IN.install([seam], options)


@contextmanager
def enabled(
    *,
    programs: int | tuple[int, int, int] = MOST_PROGRAMS,
    cost: CostModel | str = LATENCY,
    budget: Budget = DEFAULT_BUDGET,
) -> Iterator[None]:
    """:func:`install` for a while.

    Parameters
    ----------
    programs, cost, budget
        As for :func:`install`.

    >>> with enabled(programs=4096):  # doctest: +SKIP
    ...     kernel[grid](x, y, BLOCK=1024)
    """
    with _DROP_IN.restored(lambda options: install(**vars(options))):
        install(programs=programs, cost=cost, budget=budget)
        yield


def _hook(before: Callable[..., Any] | None, read: Callable[[str, Any], Any]) -> Callable[..., Any]:
    """A hook that Triton calls without arguments for a key of its caches, and with the stages of a compilation."""

    def hook(*arguments: Any) -> Any:
        asked = before(*arguments) if before is not None else ("", "")
        if not arguments:
            mark = f"{asked[0]} eqsat {version('eqsat')} {_DROP_IN.options}"
            return mark, hashlib.sha256(f"{asked[1]} {mark}".encode()).hexdigest()
        _, stages, options, *target = arguments
        lowered = stages["ttir"]
        settings = f"{options} {target[1:]}"
        stages["ttir"] = lambda module, metadata: _improved(lowered(module, metadata), metadata, stages, settings, read)
        return asked

    return hook


def _improved(
    module: Any, metadata: dict[str, Any], stages: Mapping[str, Any], settings: str, read: Callable[[str, Any], Any]
) -> Any:
    """Triton's module, or one that is compiled to fewer instructions."""
    text, context = str(module), module.context

    def instructions(candidate: str) -> int:
        return _instructions(_read(candidate, context, read), dict(metadata), stages)

    with _DROP_IN.kernel():
        answer = _DROP_IN.answer((text, settings), lambda: _answer(text, instructions))
        reason, found = (str(answer), text) if isinstance(answer, Kept) else ("", answer)
        before, after = (len(_DIVISION.findall(some)) for some in (text, found))
        _DROP_IN.record([reason], (before, after))
        return module if reason else _read(found, context, read)


def _answer(text: str, instructions: Callable[[str], int]) -> str | Kept:
    """The TTIR that is compiled to the fewest instructions, or why the kernel stays."""
    try:
        if not (candidates := simplified(text, _DROP_IN.options)):
            return Kept("costs no less")
        best = min(candidates, key=instructions)
        return best if instructions(best) < instructions(text) else Kept("no fewer instructions")
    except ValueError:
        return Kept("not read")
    except RuntimeError:
        return Kept("not taken")
    except Exception:
        # an optimisation is never worth a failed compilation; it is counted
        return Kept("error")


def _instructions(module: Any, metadata: dict[str, Any], stages: Mapping[str, Any]) -> int:
    """How many instructions a module is compiled to, by the text for the assembler."""
    # not the last stage, which assembles
    for stage in list(stages.values())[list(stages).index("ttir") + 1 : -1]:
        module = stage(module, metadata)
    return len(_INSTRUCTION.findall(str(module)))


def _read(text: str, context: Any, read: Callable[[str, Any], Any]) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ttir")
        path.write_text(text, encoding="utf-8")
        module = read(str(path), context)
    module.context = context
    return module


def simplified(text: str, options: Options) -> list[str]:
    """Up to two texts of a kernel with cheaper index arithmetic.

    In the first, sums of a scalar and the place in a block are optimised like others. In the second they are kept
    together, so that Triton sees which elements are neighbours in memory. The caller compiles both and compares.

    Raises ``ValueError`` if the text is not MLIR.
    """
    ranges = {}
    for letter, most in zip("xyz", options.programs, strict=True):
        ranges[f"tt.get_program_id {letter}"] = (0, most - 1)
        ranges[f"tt.get_num_programs {letter}"] = (1, most)
    joined = _with_joined_offsets(text, ranges)
    found = [
        rewriting(joined, cost=_Lowered(options.cost), budget=options.budget, ranges=ranges, atoms=atoms)
        for atoms in (None, _is_place)
    ]
    texts = dict.fromkeys(rewritten.text for rewritten in found if rewritten.changed or rewritten.removed)
    # Triton does not lower all floor divisions, so there may be no more of them than in its own text
    return [t for t in texts if t.count("arith.floordivsi") <= text.count("arith.floordivsi")]


def _is_place(term: Expr) -> bool:
    """Whether a term is a scalar plus the place along an axis."""
    if term.op != "add":
        return False
    places = [axis_of(operand) is not None for operand in term.args]
    others = [x for operand in term.args for x in variables([operand]) if axis_of(operand) is None]
    return any(places) and all(axis_of(x) is None for x in others)


def _with_joined_offsets(text: str, ranges: Mapping[str, Bounds]) -> str:
    """The text with one offset for two that are added to a pointer in turn, where their sum does not wrap around."""
    while True:
        module = parse(text)
        terms = Terms(module, ranges=ranges)
        terms.read(module.statements)
        name = next(numbered("%offset", module.names))
        if not any(_join_offsets(statement, terms, name) for statement in module.statements):
            return text
        text = str(module)


def _join_offsets(statement: Statement, terms: Terms, name: str) -> bool:
    """Join the offset of a statement with that of the statement whose pointer it reads, as ``name``, if they can be."""
    if (outer := _ADDPTR.fullmatch(statement.normalised[0])) is None:
        return False
    result, pointer, second = statement.normalised[1]
    inner = _ADDPTR.fullmatch(pointer.statement.normalised[0])
    if inner is None or inner[2] != outer[2] or pointer.users != [statement] or pointer.block is not result.block:
        return False
    _, base, first = pointer.statement.normalised[1]
    if not fits(terms.of(first, inner[2]) + terms.of(second, outer[2]), outer[2]):
        return False
    blanks = statement.indentation
    statement.replacement = [
        [f"{blanks}{name} = arith.addi ", first, ", ", second, f" : {outer[2]}\n"],
        [blanks, result, " = tt.addptr ", base, f", {name} : {outer[1]}, {outer[2]}\n"],
    ]
    pointer.statement.replacement = []
    return True
