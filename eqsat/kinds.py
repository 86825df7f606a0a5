"""Kinds of cases whose answer is no list of expressions, and their rows.

``constraints`` are simplified together, ``indexing`` maps with their domain; ``dtype-lowering`` asks for widths,
``render-loop`` for the header of a loop. The keys of the cases and of their rows are in ``docs/corpora.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eqsat.cases import Record, as_conditions, get, get_texts, get_variables, variable
from eqsat.dtypes import select_width, widths
from eqsat.expr import FALSE, Expr, var
from eqsat.extract.calibrated import cost_model
from eqsat.indexing import IndexingMap, narrowed, simplify_constraints
from eqsat.loops import LoopHeader, loop_variable
from eqsat.optimize import cost_of
from eqsat.text import parse, parse_program, to_text
from eqsat.verify import Check
from eqsat.views import View

if TYPE_CHECKING:
    from eqsat.corpus import Row, Settings


def _constraints(record: Record, settings: Settings) -> Row:
    """Conditions that hold together, simplified, and the ranges that they leave the variables."""
    variables = get_variables(record)
    texts = get_texts(record, "before")
    given = as_conditions(parse_program([], texts, variables), texts)
    before = IndexingMap(tuple(variables.values()), (), (), tuple(given))
    started = time.perf_counter()
    found = simplify_constraints(given, **_options(settings))
    elapsed = time.perf_counter() - started
    ranges = {} if FALSE in found else narrowed(variables.values(), found)
    check = before.check(IndexingMap(before.dims, (), (), tuple(found)), **settings.checking)
    return {
        **_row([to_text(c) for c in found], settings, given, found, elapsed, check),
        "vars": {name: [ranges[v].vmin, ranges[v].vmax] for name, v in variables.items() if v in ranges},
    }


def _indexing(record: Record, settings: Settings) -> Row:
    """A map, composed with those that follow it, simplified on its domain."""
    attributes = get(record, "attrs", dict, {})
    if "map" not in record and "map" not in attributes:
        raise ValueError(f"indexing of op {record.get('op')!r} is not supported yet: give its 'map'")
    ranges = {name: (v.vmin, v.vmax) for name, v in get_variables({"vars": {}, **record}).items()}
    before = IndexingMap.parse(get({**attributes, **record}, "map", str), ranges)
    for following in get_texts(record, "compose", []):
        before = before.then(IndexingMap.parse(following, ranges))
    started = time.perf_counter()
    after = before.simplify(**_options(settings))
    elapsed = time.perf_counter() - started
    given, found = [[*m.results, *m.constraints] for m in (before, after)]
    return _row([str(after)], settings, given, found, elapsed, before.check(after, **settings.checking))


def _options(settings: Settings) -> dict[str, Any]:
    return {"cost": cost_model(settings.cost), "engine": settings.engine, "theory": settings.theory}


def _row(
    out: list[str], settings: Settings, before: Sequence[Expr], after: Sequence[Expr], seconds: float, check: Check
) -> Row:
    if not check.equal:
        raise ValueError(f"the result is wrong at {check.counterexample}: {'; '.join(out)}")
    model = cost_model(settings.cost)
    return {
        "out": out,
        "cost_before": cost_of(before, model),
        "cost": cost_of(after, model),
        "ms": round(1000 * seconds, 3),
        **check.row,
    }


def _widths(record: Record, settings: Settings) -> Row:
    """The type of each value, and the type that it is computed at."""
    if "exprs" in record:
        terms = [parse(text, get_variables(record)) for text in get_texts(record, "exprs")]
    elif "shape" in record:
        shape = get(record, "shape", list)
        if not all(isinstance(size, int) for size in shape):
            raise ValueError(f"'shape' must be a list of integers, not {shape!r}")
        indices = [loop_variable(f"i{n}", size) for n, size in enumerate(shape)]
        terms = [View.contiguous(shape).access(indices).index]
    else:
        terms = [variable("value", record.get("bounds"))]
    computed = widths(terms)
    return {"out": [f"i{select_width(t)}" for t in terms], "computed": [f"i{computed[t]}" for t in terms]}


def _loop(record: Record, settings: Settings) -> Row:
    """The header of a loop; its bounds are numbers, or texts over the variables of ``vars``."""
    match get(record, "variable", list):
        case [str(name), start, last]:
            names = get_variables({"vars": {}, **record})
            first, final = [parse(str(bound), names) for bound in (start, last)]
        case other:
            raise ValueError(f"'variable' must be a name and two bounds, not {other!r}")
    header = LoopHeader.of(var(name, first.vmin, final.vmax), first, final)
    counter = get(record, "counter", str, "ridx0")
    return {"out": header.operations, "code": header.to_c(counter), "trips": header.trip_count}


#: The answer to each kind, as a row without its id.
ANSWERS: Mapping[str, Callable[[Record, Settings], Row]] = {
    "constraints": _constraints,
    "indexing": _indexing,
    "dtype-lowering": _widths,
    "render-loop": _loop,
}
