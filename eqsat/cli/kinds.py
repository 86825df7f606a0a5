"""The answers to cases of all kinds, as rows: to lists of expressions, and to kinds that are none.

``constraints`` are simplified together, ``indexing`` maps with their domain; ``dtype-lowering`` asks for widths,
``render-loop`` for the header of a loop. ``structural`` cases are brought into normal form; ``range-split``,
``range-merge``, ``split-reduce-decision`` and ``buffer-decision`` ask what the published policies do. The keys of the
cases and of their rows are in ``docs/corpora.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

from eqsat.cli import records
from eqsat.cli.cases import as_conditions, case_of, refuse_unknown
from eqsat.cli.records import REMEDY, Record, Row, get, get_texts, get_variables, id_of, kind_of
from eqsat.cli.settings import Settings
from eqsat.codegen.loops import LoopHeader, check_bounds, loop_variable
from eqsat.interop import hlo, relations
from eqsat.interop.indexing import IndexingMap, narrowed, simplify_constraints
from eqsat.interop.indexing_analysis import DIRECTIONS, indexing_maps
from eqsat.interop.relations import Relation
from eqsat.interop.structure import in_stages, normalized
from eqsat.interop.structure.trees import Tree
from eqsat.interop.views import View
from eqsat.kernels.ranges import Axis, Nest, cheapest, consider_merge, split_at_modulo
from eqsat.kernels.staging import LEAST_RATIO, SPLIT_LIMITS, Intermediate, SplitLimits, decide, output_ratio, two_stages
from eqsat.lang.costs import cost_of, model_of
from eqsat.lang.dtypes import select_width, widths
from eqsat.lang.expr import FALSE, Expr, substitute, var
from eqsat.lang.ops import is_finite
from eqsat.lang.text import parse, parse_program, to_program, to_text
from eqsat.lang.traversal import topological
from eqsat.lang.validation import counted
from eqsat.optimizer.front import optimize
from eqsat.prove.verify import CHECKS, Check, check_equal, refuse_wrong


def answer(given: Record, name: str, settings: Settings) -> Row:
    """The row of a case, which is called ``name`` if it has no id; ``ValueError`` if there is none."""
    if (special := _ANSWERS.get(kind_of(given))) is not None:
        return {"id": id_of(given, name), **special(given, settings)}
    refuse_unknown(kind_of(given), _ANSWERS)
    case = case_of(given, name)
    gates = case.gates if settings.gates else ()
    result = optimize(case.exprs, gates=gates, constraints=case.constraints, **settings.optimizing_roots)
    check = result.check(**settings.checking)
    refuse_wrong(check, to_program(result.exprs)[1])
    return {"id": case.id, **records.record(result, check, case.variables)}


def _timed[T](call: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def _constraints(record: Record, settings: Settings) -> Row:
    variables = get_variables(record)
    texts = get_texts(record, "before")
    given = as_conditions(parse_program([], texts, variables, REMEDY), texts)
    before = IndexingMap(tuple(variables.values()), (), (), tuple(given))
    found, seconds = _timed(lambda: simplify_constraints(given, **settings.optimizing))
    ranges = {} if FALSE in found else narrowed(variables.values(), found)
    check = before.check(IndexingMap(before.dims, (), (), tuple(found)), **settings.checking)
    return {
        **_row([to_text(c) for c in found], settings, given, found, seconds, check),
        "vars": {name: records.json_ends(ranges[v]) for name, v in variables.items() if v in ranges},
    }


def _indexing(record: Record, settings: Settings) -> Row:
    """A map, composed with those that follow it, simplified on its domain; or the maps of an operation."""
    attributes = get(record, "attrs", dict, {})
    if "map" not in record and "map" not in attributes:
        return _operation(record, attributes, settings)
    # an empty range makes an empty map
    ranges = {name: records.ends(name, bounds) for name, bounds in get(record, "vars", dict, {}).items()}
    if unbounded := [name for name, bounds in ranges.items() if not is_finite(*bounds)]:
        raise ValueError(f"variable {unbounded[0]!r} of a map needs a range with two ends")
    before = IndexingMap.parse(get({**attributes, **record}, "map", str), ranges)
    for following in get_texts(record, "compose", []):
        before = before.then(IndexingMap.parse(following, ranges))
    after, seconds = _timed(lambda: before.simplify(**settings.optimizing))
    check = before.check(after, **settings.checking)
    return _row([str(after)], settings, _terms(before), _terms(after), seconds, check)


def _operation(record: Record, attributes: Record, settings: Settings) -> Row:
    """The maps of an instruction or computation of HLO, or of an operation on views, in both directions."""
    simplifier = _Simplifier(settings)
    if record.get("hlo") is not None:
        of = _analysed(record)
        maps = {str(direction): indexing_maps(of, direction, simplify=simplifier) for direction in DIRECTIONS}
    else:
        relation = _moved(record, attributes)
        given = {"output_to_input": relation.to_operand, "input_to_output": relation.to_output}
        simplest = {direction: simplifier(m) for direction, m in given.items()}
        maps = {direction: {0: () if m.is_empty else (m,)} for direction, m in simplest.items()}
    found = [m for by_operand in maps.values() for several in by_operand.values() for m in several]
    costs = [cost_of(_terms(m), model_of(settings.cost)) for m in found]
    written = {
        direction: {str(number): [_written(m) for m in several] for number, several in by_operand.items()}
        for direction, by_operand in maps.items()
    }
    return {
        "out": written,
        "cost_before": sum(simplifier.before.get(_terms(m), cost) for m, cost in zip(found, costs, strict=True)),
        "cost": sum(costs),
        "ms": round(1000 * simplifier.seconds, 3),
        **simplifier.weakest.row,
    }


def _analysed(record: Record) -> hlo.Instruction | hlo.Computation:
    """The instruction that a case is about: the root of the entry; or the computation that it names."""
    module, name = hlo.parse(get(record, "hlo", str)), get(record, "computation", str, "")
    if not name:
        return module.entry.root
    if name not in module.computations:
        raise ValueError(f"there is no computation {name!r}: name one of {', '.join(module.computations)}")
    return module.computations[name]


class _Simplifier:
    """Simplifies maps and checks each. ``before`` is what a map cost, by the terms it became; ``seconds`` the time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.before: dict[tuple[Expr, ...], int] = {}
        self.seconds = 0.0
        self.weakest = Check("exhaustive", 0)

    def __call__(self, given: IndexingMap) -> IndexingMap:
        found, seconds = _timed(lambda: given.simplify(**self.settings.optimizing))
        self.seconds += seconds
        check = given.check(found, **self.settings.checking)
        refuse_wrong(check, found)
        self.weakest = max(self.weakest, check, key=lambda c: CHECKS.index(c.kind))
        for written in (found, found.trimmed()):
            self.before.setdefault(_terms(written), cost_of(_terms(given), model_of(self.settings.cost)))
        return found


def _terms(m: IndexingMap) -> tuple[Expr, ...]:
    return (*m.results, *m.constraints)


def _written(m: IndexingMap) -> str | dict[str, Any]:
    """A map as text, with what its runtime variables read if it has any."""
    if not m.runtime:
        return str(m)
    reads = []
    for r in m.runtime:
        used = topological(r.indices)
        others = tuple(o for o in m.runtime if o.variable in used)
        element = IndexingMap(m.dims, tuple(t for t in used if t in m.symbols), r.indices, runtime=others)
        reads.append({"var": str(r.variable), "hlo": str(r.hlo), "map": str(element)})
    return {"map": str(m), "runtime_variables": reads}


def _moved(record: Record, attributes: Record) -> Relation:
    """The relation of an operation on views, of tinygrad's kind, or of a ``chain`` of them."""
    found = []
    for step in get({**attributes, **record}, "chain", list, []):
        match step:
            case [str(op), *values] if len(values) == len(_keys(op)):
                found.append(_view(op, dict(zip(_keys(op), values, strict=True))))
            case _:
                raise ValueError(f"each of 'chain' must be an op and all its attributes in order, not {step!r}")
    if found:
        return reduce(Relation.then, found)
    if record.get("op") is None:
        raise ValueError("there is nothing to map: give a 'map', 'hlo', an 'op' or a 'chain'")
    return _view(get(record, "op", str), attributes)


def _keys(op: str) -> tuple[str, ...]:
    """The attributes of an operation on views."""
    if op not in _VIEWS:
        raise ValueError(f"op {op!r} needs its 'hlo' or 'map': without, give one of {', '.join(_VIEWS)}")
    return _VIEWS[op][0]


def _view(op: str, attributes: Record) -> Relation:
    keys = _keys(op)
    if op == "flip":
        attributes = {**attributes, "axes": _flipped(get(attributes, "axes", list), _integers(attributes, "in"))}
    return _VIEWS[op][1](*[_integers(attributes, key) for key in keys])


def _flipped(axes: list[Any], sizes: Sequence[int]) -> list[Any]:
    """The numbers of the axes to flip, which may be given by one flag per dimension."""
    if not axes or not all(isinstance(flips, bool) for flips in axes):
        return axes
    if len(axes) != len(sizes):
        raise ValueError(
            f"{counted(len(axes), 'flag')} for {counted(len(sizes), 'dimension')}: "
            "give one for each, or the numbers of the axes"
        )
    return [n for n, flips in enumerate(axes) if flips]


def _row(
    out: list[str], settings: Settings, before: Sequence[Expr], after: Sequence[Expr], seconds: float, check: Check
) -> Row:
    refuse_wrong(check, "; ".join(out))
    model = model_of(settings.cost)
    return {
        "out": out,
        "cost_before": cost_of(before, model),
        "cost": cost_of(after, model),
        "ms": round(1000 * seconds, 3),
        **check.row,
    }


def _widths(record: Record, settings: Settings) -> Row:
    if "exprs" in record:
        terms = [parse(text, get_variables(record), REMEDY) for text in get_texts(record, "exprs")]
    elif "shape" in record:
        shape = _integers(record, "shape")
        indices = [loop_variable(f"i{n}", size) for n, size in enumerate(shape)]
        terms = [View.contiguous(shape).access(indices).index]
    elif "bounds" in record:
        terms = [records.variable("value", record["bounds"])]
    else:
        raise ValueError("no value is given: give 'exprs', the 'bounds' of a value, or the 'shape' of a tensor")
    computed = widths(terms)
    return {"out": [f"i{select_width(t)}" for t in terms], "computed": [f"i{computed[t]}" for t in terms]}


def _loop(record: Record, settings: Settings) -> Row:
    """The header of a loop; its bounds are numbers, or texts over the variables of ``vars``."""
    match get(record, "variable", list):
        case [str(name), start, last]:
            names = get_variables(record, {})
            first, final = [parse(records.number_text(bound, "variable"), names, REMEDY) for bound in (start, last)]
        case other:
            raise ValueError(f"'variable' must be a name and two bounds, not {other!r}")
    check_bounds([first, final])
    header = LoopHeader.of(var(name, first.vmin, final.vmax), first, final)
    counter = get(record, "counter", str, "ridx0")
    return {"out": header.operations, "code": header.to_c(counter), "trips": header.trip_count}


def _structure(record: Record, settings: Settings) -> Row:
    variables = get_variables(record, {})
    ranges = {name: (v.vmin, v.vmax) for name, v in variables.items()}
    given = get(record, "before", str)
    found, seconds = _timed(lambda: normalized(Tree.parse(given), ranges, **settings.optimizing))
    return {"out": [str(found)], "ms": round(1000 * seconds, 3)}


def _split(record: Record, settings: Settings) -> Row:
    """Ranges split where the roots take them modulo a divisor; ``after`` says what each becomes."""
    if record.get("ranges") is None and record.get("end") is None:
        raise ValueError("no range is given: give the extents of 'ranges', or the 'end' of r")
    extents = get(record, "ranges", dict, {"r": record.get("end")})
    given = _nest(extents, record)
    found = split_at_modulo(given)
    made = [a for a in found.axes if a not in given.axes]
    row = {"split": bool(made), **_of_nest(given, found, settings)}
    if not made:
        return row
    has_names = record.get("ranges") is not None
    after = {}
    for axis in given.axes:
        if axis.variable in found.images:
            parts = [a for a in found.axes if a.variable in topological([found.images[axis.variable]])]
            names = [str(a.variable.value) if has_names else f"RANGE({a.extent})" for a in parts]
            after[str(axis.variable.value)] = _digits(names, [a.extent for a in parts])
    return {**row, "after": after if has_names else after["r"], "fresh_ids": len(made)}


def _digits(names: Sequence[str], sizes: Sequence[int]) -> str:
    """A range in terms of its parts, outermost first, as in ``(x * 3 + y) * 4 + z``."""
    text = names[0]
    for place, (name, size) in enumerate(zip(names[1:], sizes[1:], strict=True)):
        text = f"({text})" if place else text
        text = f"{text} * {size} + {name}"
    return text


def _merge(record: Record, settings: Settings) -> Row:
    extents = get(record, "ranges", list)
    if len(extents) != 2:
        raise ValueError(f"'ranges' must be the extents of two adjacent ranges, not {extents!r}")
    given = _nest(dict(zip("ij", extents, strict=True)), record)
    found = consider_merge(given, 0, **settings.optimizing)
    return {
        "merge": found.accepted,
        **_of_nest(given, found.nest, settings),
        **({"merged": found.nest.axes[0].extent} if found.accepted else {"reason": found.reason}),
        "divmods_before": found.before,
        "divmods_after": found.after,
    }


def _nest(extents: Mapping[str, Any], record: Record) -> Nest:
    """The loops over ranges from 0 of these extents around the roots of ``body``."""
    if not all(type(extent) is int and extent > 0 for extent in extents.values()):
        raise ValueError(f"the extents of ranges must be positive integers, not {list(extents.values())!r}")
    loops = {name: loop_variable(name, extent) for name, extent in extents.items()}
    names = get_variables(record, {}) | loops
    texts = [record["body"]] if isinstance(record.get("body"), str) else get_texts(record, "body")
    kinds = get_texts(record, "axis_types", ["output"] * len(loops))
    scopes = get(record, "reduce_scopes", list, [[]] * len(loops))
    if not len(kinds) == len(scopes) == len(loops):
        raise ValueError(f"give 'axis_types' and 'reduce_scopes' for each of the {len(loops)} ranges")
    if not all(isinstance(scope, list) for scope in scopes):
        raise ValueError(f"'reduce_scopes' must be a list of names for each range, not {scopes!r}")
    axes = [
        Axis(v, kind, frozenset(map(str, scope))) for v, kind, scope in zip(loops.values(), kinds, scopes, strict=True)
    ]
    return Nest(tuple(axes), tuple([parse(text, names, REMEDY) for text in texts]))


def _of_nest(given: Nest, found: Nest, settings: Settings) -> Row:
    """The roots in a nest, simplified and checked; and which nest costs least."""
    result, seconds = _timed(lambda: optimize(found.roots, **settings.optimizing))
    check = check_equal(given.roots, substitute(result.exprs, found.origins), **settings.checking)
    cheap = cheapest(given, model_of(settings.cost), seconds=settings.budget.seconds)
    return {
        **_row([to_text(e) for e in result.exprs], settings, given.roots, result.exprs, seconds, check),
        "axes": [a.extent for a in found.axes],
        "cheapest": [a.extent for a in cheap.axes],
    }


def _integers(record: Record, key: str, default: list[int] | None = None) -> list[int]:
    numbers: list[int] = get(record, key, list, default)
    if not all(type(n) is int for n in numbers):
        raise ValueError(f"{key!r} must be a list of integers, not {numbers!r}")
    return numbers


def _stages(record: Record, settings: Settings) -> Row:
    shape, axes = _integers(record, "input_shape"), _integers(record, "reduce_axes")
    copies = _integers(record, "expanded_axes", [])
    given = {"split_threshold": record.get("threshold", SPLIT_LIMITS.threshold), **get(record, "config", dict, {})}
    limits = SplitLimits(
        threshold=get(given, "split_threshold", int),
        least_factor=get(given, "min_divisor", int, SPLIT_LIMITS.least_factor),
        most_factor=get(given, "max_divisor", int, SPLIT_LIMITS.most_factor),
        most_outputs=get(given, "max_output_size", int, SPLIT_LIMITS.most_outputs),
    )
    if (found := two_stages(shape, axes, copies, limits)) is None:
        return {"split": False, "out": [f"REDUCE(data{shape}, axes={axes})"]}
    return {
        "split": True,
        "out": [str(in_stages("data", found, expanded=copies, limits=limits))],
        # how many values each partial result combines, and how many of these there are
        "factors": [found.inner, found.outer],
        "axis": found.axis,
    }


def _buffer(record: Record, settings: Settings) -> Row:
    """What the published decision tree does with an intermediate result."""
    limit = get(record, "limit", int, 0)
    buffers = get(record, "buffers", int, limit)
    if record.get("exceeds_buffer_limit") is not None:
        buffers = limit + get(record, "exceeds_buffer_limit", bool)
    ratio = record.get("ratio", 0)
    if "output_size" in record:
        ratio = output_ratio(get(record, "output_size", int), _integers(record, "input_sizes"))
    if isinstance(ratio, str):
        ratio = _RATIOS.get(ratio, ratio)
    # NaN is no number
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or ratio != ratio:
        raise ValueError(f"'ratio' must be a number, 'low' or 'high', not {ratio!r}")
    found = decide(
        Intermediate(
            op=get(record, "op", str),
            unary=get(record, "unary", bool, False),
            reduce_in_scope=get(record, "reduce_in_scope", bool, False),
            buffers=buffers,
            limit=limit,
            partial_level=get(record, "pcontig", int, 0),
            ratio=ratio,
        )
    )
    return {"out": [str(found)]}


#: Operations on views, as tinygrad names them: their attributes, and what is read by these.
_VIEWS: Mapping[str, tuple[tuple[str, ...], Callable[..., Relation]]] = {
    "reshape": (("in", "out"), relations.reshaped),
    "expand": (("in", "out"), relations.expanded),
    "permute": (("in", "axes"), relations.transposed),
    "flip": (("in", "axes"), relations.reversed_along),
    "shrink": (("in", "begin", "end"), relations.sliced),
    "pad": (("in", "begin", "end"), relations.padded),
    "linearize": (("shape",), lambda shape: relations.reshaped([prod(shape)], shape)),
}

#: A ratio of each kind.
_RATIOS = {"low": 0, "high": LEAST_RATIO}

#: The answer to each kind that is no list of expressions, as a row without its id.
_ANSWERS: Mapping[str, Callable[[Record, Settings], Row]] = {
    "constraints": _constraints,
    "indexing": _indexing,
    "dtype-lowering": _widths,
    "render-loop": _loop,
    "structural": _structure,
    "range-split": _split,
    "range-merge": _merge,
    "split-reduce-decision": _stages,
    "buffer-decision": _buffer,
}
