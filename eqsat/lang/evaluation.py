"""Evaluation: the reference semantics of expressions, vectorised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from hashlib import blake2b
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

from eqsat.lang.expr import Expr, as_float, brief, refuse_array
from eqsat.lang.ops import DIVISIONS, ELEMENTS, FLOATS, OPS, REDUCTIONS, Array, is_finite, np, rounded_to_odd
from eqsat.lang.properties import evaluated_operands, neutral
from eqsat.lang.slots import VALUES
from eqsat.lang.traversal import Buffer, array_of, topological
from eqsat.lang.validation import counted, list_of, require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Points by name of variable: the value at each.
type Points = dict[str, Array]


@cache
def _type(name: str) -> Any:
    """NumPy's type of that name, which is one object."""
    return np.dtype(name)


def number_type(*terms: Expr) -> Any:
    """The narrowest NumPy type that holds the bounds of all ``terms`` and their negations."""
    if terms[0].element:
        return _type("float64" if any(t.element == "f64" for t in terms) else "float32")
    most = 0
    for t in terms:
        if t.vmax > most:
            most = t.vmax
        if -t.vmin > most:
            most = -t.vmin
    return _type("int32" if most < 2**31 else "int64" if most < 2**63 else "object")


def integers(first: int, beyond: int) -> Array:
    """The integers of ``[first, beyond)``: of dtype int64, or of dtype object where that does not hold them."""
    # no range from `first`: NumPy makes floats of ends that do not fit int64
    kind = _type("int64" if first >= -(2**63) and beyond <= 2**63 else "object")
    return np.arange(max(0, beyond - first)).astype(kind) + first


def _in_type(values: Array, kind: Any) -> Array:
    if kind is _type("float32") and values.dtype is _type("object"):
        # NumPy would round them to f64 first
        values = np.asarray(np.frompyfunc(rounded_to_odd, 1, 1)(values))
    return values if values.dtype is kind else values.astype(kind, copy=False)


#: The number of pairs of a point and a value of its index for which a reduction is evaluated at a time.
_CHUNK = 2**18
#: The most such pairs that one evaluation may take.
MAX_STEPS = 2**30


@VALUES.fill
def evaluate(
    roots: Iterable[Expr],
    values: Mapping[str, ArrayLike],
    contents: Mapping[str, ArrayLike] | None = None,
    *,
    total: bool = False,
) -> list[Array]:
    """The values of ``roots``: the reference semantics, vectorised.

    A subterm costs only the points of the variables that it depends on, so give each variable an axis of its own where
    all combinations are wanted. Its array is freed after its last use.

    Parameters
    ----------
    values : mapping from variable name to array_like of int
        Broadcast against one another. They should lie in the variables' ranges, which is not checked.
    contents : mapping from buffer name to array_like, optional
        What the buffers hold. A load outside of one, which is unspecified, gets a value from its edge; a buffer without
        contents holds fixed arbitrary elements.
    total : bool
        Whether a quotient by zero is some number of its bounds, for callers that look at other points alone.

    Returns
    -------
    list of ndarray
        One per root, of dtype bool or int64; of dtype object (Python ints) where its bounds do not fit int64.

    Raises
    ------
    ZeroDivisionError
        If a root needs a quotient by zero, unless ``total``; the message names it. A branch of a selection is needed
        only where it is chosen, a member of ``and`` or ``or`` only where no other decides, a body only in its range.
    KeyError
        If a variable has no value; the message names it.
    ValueError
        If a reduction takes too many steps, a root is a whole array, or contents are empty or have too few or too many
        axes.
    TypeError
        If the roots are no list of terms, the values no mapping, or those of a variable no integers.

    >>> from eqsat import var, where
    >>> i = var("i", 0, 100)
    >>> where(i.eq(0), 0, 100 // i).evaluate({"i": [0, 7]})
    array([ 0, 14])
    >>> (100 // i).evaluate({"i": [0, 7]})
    Traceback (most recent call last):
    ZeroDivisionError: division by zero: '100//i' is needed where 'i' is 0; give other values or guard it by where
    """
    roots = list_of(Expr, roots, "the roots to evaluate")
    require(values, Mapping, "the values of the variables")
    evaluation = _Evaluation(values, contents or {}, total)
    results = evaluation.run(roots)
    for root in roots:
        if root in evaluation.undefined:
            division = evaluation.undefined[root].division
            raise ZeroDivisionError(
                f"division by zero: {brief(division)!r} is needed where {brief(division.args[1])!r} is 0; "
                "give other values or guard it by where"
            )
    return [
        x if r.is_bool or r.element or x.dtype == object else x.astype(np.int64)
        for r, x in zip(roots, results, strict=True)
    ]


@dataclass(frozen=True)
class _Undefined:
    """At which points a term needs a quotient by zero, and the first such division."""

    at: Array
    division: Expr


def undefined_somewhere(roots: Iterable[Expr], values: Mapping[str, ArrayLike]) -> set[Expr]:
    """The terms below ``roots``, but not in bodies of reductions, that need a quotient by zero at some point."""
    evaluation = _Evaluation(values, {}, total=False)
    evaluation.run(list(roots))
    return set(evaluation.undefined)


#: The elements that are named of a point; of more, the first.
NAMED_ELEMENTS = 16


def loaded_elements(roots: Iterable[Expr], point: Mapping[str, int]) -> dict[str, int]:
    """The first :data:`NAMED_ELEMENTS` elements of buffers that ``roots`` read at a point, as evaluation has them.

    Branches that are not chosen are evaluated, too.
    """
    evaluation = _Evaluation(point, {}, total=True)
    evaluation.read = {}
    evaluation.run(list(roots))
    return evaluation.read


class _Evaluation:
    """One evaluation: the values of the variables in scope, and what the buffers hold."""

    def __init__(self, values: Mapping[str, ArrayLike], contents: Mapping[str, ArrayLike], total: bool) -> None:
        self.values = {name: np.asarray(value) for name, value in values.items()}
        self.contents = {name: np.asarray(content) for name, content in contents.items()}
        self.total = total
        #: The terms that need a quotient by zero somewhere, unless such quotients are numbers.
        self.undefined: dict[Expr, _Undefined] = {}
        #: At a single point, the elements that are read, if they are asked for.
        self.read: dict[str, int] | None = None
        # how many evaluations like this one the reductions around it take, each at other values of their indices
        self.repeats = 1

    def run(self, roots: Sequence[Expr]) -> list[Array]:
        operands = _outside_bodies(roots)
        users = Counter(chain(roots, *operands.values()))
        results: dict[Expr, Any] = {}
        for term in operands:
            of_body: _Undefined | None = None
            if not term.args:
                result = self.leaf(term)
            elif term.op == "load":
                array, indices = array_of(term), [results[a] for a in term.args[1:]]
                result = self.load(array, indices)
                if self.read is not None:
                    self.note_read(array, indices, result)
            elif term.op in REDUCTIONS:
                result, of_body = self.reduce(term, results[term.args[2]], results[term.args[3]])
            else:
                result = apply_operator(term, [results[a] for a in term.args])
            results[term] = _in_type(np.asarray(result), _type("bool") if term.is_bool else number_type(term))
            if not self.total and (self.undefined or of_body or term.op in DIVISIONS):
                self.note_undefined(term, results, of_body)
            for arg in operands[term]:
                users[arg] -= 1
                if not users[arg]:
                    del results[arg]
        return [results[root] for root in roots]

    def leaf(self, term: Expr) -> Array:
        """The values of a variable or literal."""
        if term.op == "float":
            return np.asarray(as_float(term, term).value)
        if term.op != "var":
            refuse_array(term)
            return np.asarray(term.value)
        if term.value not in self.values:
            raise KeyError(f"no value for variable {term.value!r}")
        values = self.values[term.value]
        # NumPy makes floats of an empty list
        if values.size and values.dtype.kind not in "biuO":
            raise TypeError(f"the values of variable {term.value!r} are of type {values.dtype}: give integers")
        return values

    def note_undefined(self, term: Expr, results: Mapping[Expr, Any], of_body: _Undefined | None) -> None:
        """Note where ``term`` needs a quotient by zero, if anywhere."""
        found = [of_body] if of_body else []
        for place, arg in enumerate(term.args):
            of_arg = self.undefined.get(arg)
            if of_arg is None or (term.op in REDUCTIONS and not place):
                continue
            at = of_arg.at
            if term.op in ("where", "fwhere") and place:
                chosen = results[term.args[0]]
                at = at & (chosen if place == 1 else ~chosen)
            elif term.op in ("and", "or"):
                for other in term.args:
                    decides = results[other] == (term.op == "or")
                    at = at & ~(decides & ~self.undefined[other].at if other in self.undefined else decides)
            found.append(_Undefined(at, of_arg.division))
        if term.op in DIVISIONS:
            found.append(_Undefined(np.equal(results[term.args[1]], 0), term))
        found = [each for each in found if each.at.any()]
        if found:
            self.undefined[term] = _Undefined(reduce(np.logical_or, [each.at for each in found]), found[0].division)

    def note_read(self, array: Buffer, indices: list[Array], result: Any) -> None:
        """Note the elements that a load reads, by name."""
        assert self.read is not None
        for *places, value in zip(*[a.ravel() for a in np.broadcast_arrays(*indices, result)], strict=True):
            if len(self.read) == NAMED_ELEMENTS:
                break
            self.read[f"{array.name}[{', '.join([str(int(place)) for place in places])}]"] = int(value)

    def load(self, array: Buffer, indices: list[Array]) -> Any:
        if array.name in self.contents:
            content = self.contents[array.name]
            if content.ndim != len(indices):
                given, axes = counted(len(indices), "index", "indices"), counted(content.ndim, "axis", "axes")
                raise ValueError(f"array {array.name!r} has {given}, but its contents have {axes}")
            if not content.size:
                raise ValueError(f"the contents of array {array.name!r} are empty")
            places = [np.asarray(np.clip(i, 0, n - 1), np.intp) for i, n in zip(indices, content.shape, strict=True)]
            return content[tuple(places)]
        # a hash of the name and the indices, modulo 2**64
        mixed: Any = np.array(int.from_bytes(blake2b(array.name.encode(), digest_size=8).digest()), dtype=np.uint64)
        with np.errstate(over="ignore"):
            for index in indices:
                # of an index that int64 does not hold, what is left modulo 2**64
                held = np.asarray(index & 2**64 - 1) if index.dtype is _type("object") else index.astype(np.int64)
                mixed = (mixed ^ held.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
                mixed = mixed ^ (mixed >> np.uint64(29))
        if array.element in ("f32", "f64"):
            # small numbers, so that their sums and products are exact
            return (mixed % np.uint64(17)).astype(np.int64) - 8
        low, high = ELEMENTS[array.element]
        span = high - low + 1
        return mixed.astype(np.int64) if span >= 2**64 else (mixed % np.uint64(span)).astype(np.int64) + low

    def reduce(self, term: Expr, low: Array, high: Array) -> tuple[Any, _Undefined | None]:
        body, index = term.args[:2]
        name = str(index.value)
        combine = getattr(np, _COMBINE[term.op])
        kind = number_type(term, body)
        outside = np.asarray(neutral(term.op, body), dtype=kind)
        total: Any = outside
        shapes = [value.shape for value in self.values.values()]
        shape = np.broadcast_shapes(*shapes)
        points = prod(shape)
        if not points:
            return np.zeros(shape, dtype=kind), None
        of_body: _Undefined | None = None
        first, beyond = int(low.min()), int(high.max())
        # the index gets an axis of its own before all others
        axes = max(map(len, shapes), default=0)
        repeats = self.repeats * max(1, beyond - first)
        if repeats * points > MAX_STEPS:
            raise ValueError(f"{brief(term)!r} takes more than {MAX_STEPS} steps to evaluate: narrow its range")
        step = max(1, _CHUNK // points)
        for start in range(first, beyond, step):
            numbers = integers(start, min(start + step, beyond)).reshape(-1, *[1] * axes)
            inner = _Evaluation({**self.values, name: numbers}, self.contents, self.total)
            # the axis counts its own steps
            inner.read = self.read
            inner.repeats = max(1, repeats // len(numbers))
            values = inner.run([body])[0].astype(kind, copy=False)
            inside = (numbers >= low) & (numbers < high)
            if body in inner.undefined:
                at = np.any(inner.undefined[body].at & inside, axis=0)
                of_body = _Undefined(at if of_body is None else of_body.at | at, inner.undefined[body].division)
            values = np.where(inside, values, outside)
            total = combine(total, combine.reduce(values, axis=0, dtype=kind))
        if term.op in ("max_over", "min_over"):
            total = np.where(low < high, total, np.asarray(REDUCTIONS[term.op].identity, dtype=kind))
        return total, of_body


#: What NumPy calls the function that combines two values of a reduction.
_COMBINE = {"sum_over": "add", "prod_over": "multiply", "max_over": "maximum", "min_over": "minimum"}
_COMBINE |= {"fsum_over": "add", "fprod_over": "multiply", "fmax_over": "fmax", "fmin_over": "fmin"}


def _outside_bodies(roots: Sequence[Expr]) -> dict[Expr, tuple[Expr, ...]]:
    """The terms below ``roots``, operands first, without what only bodies need, each with the operands it waits for."""
    operands = {term: evaluated_operands(term) for term in topological(roots)}
    wanted = set(roots)
    for term in reversed(operands):
        if term in wanted:
            wanted.update(operands[term])
    return {term: waiting for term, waiting in operands.items() if term in wanted}


def most_steps(roots: Iterable[Expr]) -> int:
    """How often the innermost body of nested reductions is evaluated at one point, at most; 1 without any."""
    steps: dict[Expr, int] = {}
    for term in topological(roots):
        steps[term] = max([steps[a] for a in term.args], default=1)
        if term.op in REDUCTIONS:
            body, _, low, high = term.args
            steps[term] = max(steps[term], steps[body] * (high.vmax - low.vmin))
    return max(steps.values(), default=1)


def apply_operator(term: Expr, args: list[Any]) -> Any:
    """The operator of ``term`` on arrays, in a type that holds its operands and its result."""
    is_float = term.op in FLOATS
    kind = number_type(*[t for t in (term, *term.args) if t.element or not is_float])
    args = [x if a.is_bool else _in_type(x, kind) for x, a in zip(args, term.args, strict=True)]
    if is_float:
        with np.errstate(all="ignore"):
            return FLOATS[term.op].evaluate(*args)
    if term.op in DIVISIONS and not np.all(args[1]):
        # any divisor of the range will do there: the result counts for nothing, but its bounds hold
        other = next((end for end in (term.args[1].vmin, term.args[1].vmax) if end and is_finite(end)), 1)
        args[1] = np.where(np.equal(args[1], 0), np.asarray(other, dtype=kind), args[1])
    return OPS[term.op].evaluate(*args)
