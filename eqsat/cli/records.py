"""Records: the JSON objects of a corpus, one a line, and what their keys hold, checked; and what rows say of a result.

Each error says in one line what is wrong with a record.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, cast

from eqsat.lang.expr import Expr, bounds_of, var
from eqsat.lang.ops import MOST_BITS, is_finite
from eqsat.lang.text import to_program
from eqsat.lang.validation import shortened, shown
from eqsat.optimizer.result import Result
from eqsat.prove.verify import Check

Record = Mapping[str, Any]
#: The answer to a case, as JSON data.
Row = dict[str, Any]
Id = str | int | float
#: What to do about an unknown variable; double braces are for ``str.format``.
REMEDY = 'give its range, "vars": {{"{name}": [0, N]}}'
#: The longest line that is read, in characters: of an HLO module, say.
MAX_LINE = 10_000_000
#: What JSON calls the values that it has.
_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def numbered_lines(lines: Iterable[str | bytes]) -> list[tuple[int, str | bytes]]:
    """The lines of a corpus that are not blank, each with its number."""
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def load(line: str | bytes) -> dict[str, Any]:
    """The JSON object on one line of a corpus."""
    if not isinstance(line, str | bytes):
        raise TypeError(f"a line of a corpus is given as {shown(line)}: give its text")
    if len(line) > MAX_LINE:
        raise ValueError(f"a line of {len(line)} characters: give at most {MAX_LINE}, in more cases")
    try:
        text = line if isinstance(line, str) else line.decode()
        # some editors begin a file with a mark of its encoding
        record = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_repeats, parse_int=_integer)
    except ValueError as error:
        raise ValueError(f"not a line of JSON: {one_line(error)}") from None
    except RecursionError:
        raise ValueError("not a line of JSON: lists and objects nest too deep") from None
    if not isinstance(record, dict):
        raise ValueError(f"not a case: a JSON object is wanted, not {_json_name(type(record))}")
    return record


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if names := repeated(key for key, _ in pairs):
        raise ValueError(f"the key {names[0]!r} is given twice")
    return dict(pairs)


def _integer(digits: str) -> int:
    most = sys.get_int_max_str_digits()
    if 0 < most < len(digits.lstrip("-")):
        raise ValueError(f"a number of {len(digits.lstrip('-'))} digits: give at most {most}")
    return int(digits)


def refuse_long_costs(row: Record) -> None:
    """Refuse a row whose costs, as of long loops in loops, have more digits than Python writes."""
    for key in ("cost_before", "cost", "bound"):
        if (row.get(key) or 0).bit_length() > MOST_BITS:
            raise ValueError(f"{key!r} has more than {MOST_BITS} bits: give the loops fewer steps, or another model")


def repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def id_of(record: Record, name: str) -> Id:
    """The id of a case as it is given, or ``name`` if it has none."""
    if (given := record.get("id")) is None:
        return name
    if isinstance(given, bool) or not isinstance(given, Id):
        raise ValueError(f"'id' must be a text or a number, not {_json_name(type(given))}")
    if isinstance(given, float) and not isfinite(given):
        raise ValueError(f"'id' must be a text or a number, not {given}")
    return given


def one_line(message: object) -> str:
    """``message`` as one line of up to 300 characters."""
    return shortened(" ".join(str(message).split()), 300)


def reason(error: BaseException) -> str:
    """What is wrong with a case, in one line; what is no ``ValueError`` is named by its type too."""
    return one_line(error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")


def kind_of(record: Record) -> str:
    return cast(str, get(record, "kind", str, "plain"))


def get(record: Record, key: str, kind: type, default: Any = None) -> Any:
    """The value of ``key``, which must be of type ``kind``; ``null`` is as if it were not there."""
    value = record.get(key)
    value = default if value is None else value
    if value is None:
        raise ValueError(f"the key {key!r} is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{key!r} must be {_json_name(kind)}, not {_json_name(type(value))}")
    return value


def _json_name(kind: type) -> str:
    """What JSON calls the values of a type of Python."""
    return _JSON_NAMES.get(kind, f"a {kind.__name__}")


def get_texts(record: Record, key: str, default: Any = None) -> list[str]:
    texts = get(record, key, list, default)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{key!r} must be a list of texts, not of {_json_name(type(text))}")
    return cast(list[str], texts)


def get_variables(record: Record, default: Any = None) -> dict[str, Expr]:
    return {name: variable(name, bounds) for name, bounds in get(record, "vars", dict, default).items()}


def number_text(number: Any, key: str) -> str:
    """The text of a number that a case gives at ``key`` as an integer or a text."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise ValueError(f"numbers of {key!r} must be integers or texts, not {number!r}")
    return str(number)


def variable(name: str, bounds: Any) -> Expr:
    return var(name, *ends(name, bounds))


def ends(name: str, bounds: Any) -> tuple[int, int]:
    """The two ``bounds`` of a variable in a JSON list, ``null`` for none; the first may be greater."""
    match bounds:
        case [int() | None as low, int() | None as high] if not isinstance(low, bool) and not isinstance(high, bool):
            return bounds_of(name, low, high)
    raise ValueError(f"the range of variable {name!r} must be two integers, not {bounds!r} (null: no bound)")


def json_ends(variable: Expr) -> list[int | None]:
    """The two bounds of a variable as JSON has them: the inverse of :func:`variable`."""
    return [end if is_finite(end) else None for end in (variable.vmin, variable.vmax)]


def record(result: Result, check: Check, taken: Iterable[str]) -> Row:
    """What a row says of a result; the names of its shared subterms are none of ``taken``."""
    return {
        **program(result.exprs, taken),
        "cost_before": result.cost_before,
        "cost": result.cost,
        **({} if result.bound is None else {"bound": result.bound}),
        "ms": round(result.milliseconds, 3),
        "stop": result.stop,
        "nodes": result.nodes,
        **check.row,
    }


def program(exprs: Sequence[Expr], taken: Iterable[str]) -> Row:
    """Terms as text, with the subterms that they share, if any, by names that are not ``taken``."""
    lets, out = to_program(exprs, taken)
    return {"out": out, **({"lets": [list(pair) for pair in lets]} if lets else {})}
