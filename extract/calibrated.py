"""A cost model from measurements: what each kind of operation takes on one machine.

The kinds are :data:`OPERATIONS`: an operator with what its price depends on (literal or variable operand, sign, width).
``eqsat calibrate`` measures them and writes a model file, JSON: ``{"format", "machine", "picoseconds": {figure: {kind:
number}}}``, in which a figure is one of :data:`FIGURES`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any, cast

from eqsat.extract.cost import (
    COST_MODELS,
    OWN_PRICES,
    CostModel,
    additions,
    is_power_of_two,
    is_signed,
    literal,
    refuse_other,
    width,
)
from eqsat.extract.graph import Bounds

FORMAT = "eqsat cost model 1"

#: What is measured of every kind: the time until the next operation can start, that until one which needs the result
#: can, and the share of one operation in a vectorised loop.
FIGURES = ("throughput", "latency", "vectorised")

_SIMPLE = {
    **dict.fromkeys(("add", "sub", "neg"), "add"),
    **dict.fromkeys(("lt", "le", "eq", "ne"), "compare"),
    **dict.fromkeys(("and", "or", "not"), "logic"),
    **dict.fromkeys(("min", "max"), "min"),
    **dict.fromkeys(("shl", "shr"), "shift"),
    **dict.fromkeys(("bitand", "bitor", "bitxor"), "mask"),
    "where": "select",
    "load": "load",
    "store": "store",
}
_DIVISIONS = [
    f"{op} by {by} {sign}"
    for op in ("floordiv", "mod", "tdiv", "tmod")
    for by in ("literal", "variable")
    # where nothing is negative, both roundings are one operation
    for sign in (("signed",) if op in ("tdiv", "tmod") else ("unsigned", "signed"))
]
_NAMES = [*dict.fromkeys([*_SIMPLE.values(), "mask"]), "multiply", "multiply by literal", *_DIVISIONS]

#: The kinds of operations, each at 32 and at 64 bits; conditions have no width.
OPERATIONS = [f"{name} i{bits}" for bits in (32, 64) for name in _NAMES if (name, bits) != ("logic", 64)]


def operation(op: str, operands: Sequence[Bounds], result: Bounds) -> str | None:
    """The kind of a node: one of :data:`OPERATIONS`, or None if it takes no time.

    >>> operation("floordiv", [(0, 99), (7, 7)], (0, 14)), operation("mod", [(-9, 9), (8, 8)], (0, 7))
    ('floordiv by literal unsigned i32', 'mask i32')
    """
    name = _name(op, operands)
    return name and f"{name} i{width([*operands, result])}"


def _name(op: str, operands: Sequence[Bounds]) -> str | None:
    if op in _SIMPLE:
        return _SIMPLE[op]
    literals = [value for value in map(literal, operands) if value is not None]
    if op == "mul":
        if not literals:
            return "multiply"
        if any(value in (0, 1) for value in literals):
            return None
        return "shift" if any(map(is_power_of_two, literals)) else "multiply by literal"
    divisor, signed = literal(operands[1]), is_signed(operands)
    truncates = op in ("tdiv", "tmod") and signed
    if divisor is not None and is_power_of_two(divisor) and not truncates:
        return "shift" if op in ("floordiv", "tdiv") else "mask"
    if not signed:
        op = {"tdiv": "floordiv", "tmod": "mod"}.get(op, op)
    by = "variable" if divisor is None else "literal"
    return f"{op} by {by} {'signed' if signed else 'unsigned'}"


@dataclass(frozen=True)
class Calibrated:
    """Picoseconds for each kind of operation, as measured on one machine.

    Attributes
    ----------
    picoseconds : mapping from str to int
        For each of :data:`OPERATIONS`.
    machine : mapping from str to str
        Where it was measured.

    >>> Calibrated(dict.fromkeys(OPERATIONS, 250)).price("add", [(0, 9), (0, 9)], (0, 18))
    250
    """

    picoseconds: Mapping[str, int]
    machine: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path, figure: str = "throughput") -> Calibrated:
        """The model in a file that ``eqsat calibrate`` has written.

        Parameters
        ----------
        path : str or Path
            The file.
        figure : {"throughput", "latency", "vectorised"}
            Which of its figures to price by.

        Raises
        ------
        ValueError
            If the file is not such a model, or there is no such figure.
        OSError
            If it cannot be read.
        """
        if figure not in FIGURES:
            raise ValueError(f"there is no figure {figure!r}: use one of {', '.join(FIGURES)}")
        try:
            content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
            given = content["picoseconds"][figure]
            picoseconds = {kind: int(given[kind]) for kind in OPERATIONS}
            if min(picoseconds.values()) < 0:
                raise ValueError("a figure is negative")
            return cls(picoseconds, dict(content["machine"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{str(path)!r} is not a cost model: {reason}; write one with eqsat calibrate") from None

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """Picoseconds; 0 for literals and variables."""
        if op in OWN_PRICES:
            return self.picoseconds[f"add i{width([*operands, result])}"] * additions(op, operands, result)
        kind = operation(op, operands, result) if operands else None
        return 0 if kind is None else self.picoseconds[kind]


def cost_model(name: CostModel | str) -> CostModel:
    """The cost model that ``name`` names, or is.

    Parameters
    ----------
    name : CostModel or str
        A model; or one of :data:`COST_MODELS`, the path of a file that ``eqsat calibrate`` has written, which ends in
        ``.json``, or ``FILE.py:NAME``, a model that a Python file defines, or its class.

    Raises
    ------
    ValueError
        If there is no such model, or the file holds none.
    TypeError
        If it is neither a name nor a model.
    OSError
        If the file cannot be read.

    >>> cost_model("opcount")
    OpCount(weights={}, other=1)
    """
    if not isinstance(name, str):
        refuse_other(name)
        return name
    if name.endswith(".json"):
        return Calibrated.load(name)
    path, colon, found = name.rpartition(":")
    if colon and path.endswith(".py"):
        defined = globals_of(path)
        if found not in defined:
            raise ValueError(f"{path} defines no {found!r}: name a cost model of it")
        model = defined[found]() if isinstance(defined[found], type) else defined[found]
        if not hasattr(model, "price"):
            raise ValueError(f"{path}: {found!r} is no cost model: give it a method price(op, operands, result)")
        return cast(CostModel, model)
    if name not in COST_MODELS:
        likely = "".join(f"; did you mean {near!r}?" for near in get_close_matches(name, COST_MODELS, 1))
        raise ValueError(
            f"unknown cost model {name!r}: use {', '.join(COST_MODELS)}, a model file, FILE.json, or a model of your "
            f"own, FILE.py:NAME{likely}"
        )
    return COST_MODELS[name]


def globals_of(path: str | Path) -> dict[str, Any]:
    """What the Python file at ``path`` defines; it is run once in a process.

    Raises
    ------
    ValueError
        If it fails; the message says where.
    OSError
        If it cannot be read.
    """
    return _defined(str(Path(path).resolve()), str(path))


@cache
def _defined(path: str, written: str) -> dict[str, Any]:
    Path(path).read_bytes()
    try:
        return run_path(path)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{written} fails: {type(error).__name__}: {error}") from error
