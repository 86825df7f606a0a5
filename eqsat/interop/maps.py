"""Indexing maps: which indices of one tensor belong to an index of another, as in MLIR and XLA.

An :class:`IndexingMap` is a function ``(dims)[symbols]{runtime} -> (results)`` on a domain. Dims are the indices of
the tensor that the map starts from; symbols run over all the values that belong to one of them (a reduced dimension);
a runtime variable is a value that is read from a tensor (a dynamic offset). The domain is the box of their ranges, cut
by constraints. This module has what maps are: how they are read, printed, composed and compared. What makes them
simpler is :mod:`eqsat.interop.indexing`.

The text form is MLIR's, with the domain behind it::

    (d0, d1)[s0] -> (d0 floordiv 2, d1 + s0), domain: d0 in [0, 7], d1 in [0, 3], s0 in [0, 1], d0 mod 2 in [0, 0]

    (d0)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 3], s0 in [0, 1], rt0 in [0, 6]

The intervals of a domain may also stand on lines of their own, as XLA prints them. Behind the interval of a runtime
variable may stand the instruction that holds its value, and the index of the value in the result of that::

    (d0)[s0] -> (d0 + s0)
    domain:
    d0 in [0, 3]
    s0 in [0, 6]
      hlo: at = s32[] parameter(1)
      (d0) -> ()

A variable without a range has ``[-2**31, 2**31 - 1]``; ``-inf`` and ``inf`` are no bounds. A constraint is a
term in an interval, or any condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from eqsat.extract.graph import reached
from eqsat.interop.affine import AFFINE_WORDS, AffineFunction, affine_term, affine_text
from eqsat.interop.limits import refuse_long_text
from eqsat.lang.display import Displayed, formula
from eqsat.lang.dtypes import LIMITS
from eqsat.lang.errors import ContradictionError
from eqsat.lang.expr import FALSE, Expr, ExprLike, as_expr, bounds_of, brief, const, divides_by_zero, replaced, var
from eqsat.lang.functions import where
from eqsat.lang.ops import INFINITY
from eqsat.lang.properties import suspects
from eqsat.lang.slots import Slot
from eqsat.lang.terms import all_of
from eqsat.lang.text import numbered, split_list
from eqsat.lang.traversal import topological
from eqsat.lang.validation import counted, list_of, require, shortened, shown
from eqsat.prove.verify import Check, check_equal
from eqsat.theory.definedness import settled, unsafe_divisions
from eqsat.theory.linear import LinearArithmetic

_WRAPPED = re.compile(r"(?:affine_map|#xla\.indexing_map)\s*<\s*\"?(.*?)\"?\s*>", re.DOTALL)
_SET = re.compile(r"\s*affine_set\s*<")
_MAP = re.compile(r"\(([^()]*)\)\s*(?:\[([^\]]*)\])?\s*(?:\{([^}]*)\})?\s*->\s*\((.*)\)")
_INTERVAL = re.compile(r"(.*)\bin\s*\[\s*(-?\d+|-inf)\s*,\s*(-?\d+|inf)\s*\]")
#: Behind the interval of a runtime variable: the instruction that holds the value, and the index of the value in it.
_HELD = re.compile(
    r"\b(\w+)\s+(in\s*\[[^\[\]]*\]),?\s*hlo:[ \t]*([^\n]*?)\s*\n\s*\(([^()]*)\)\s*->\s*\(([^\n]*)\),?\s*"
)
_END = re.compile(r"(\bin\s*\[[^\[\]]*\])\s*,?\s*(?=\S)")
_FLAG = re.compile(r",?\s*is_simplified:\s*(?:true|false)\s*$")

#: The same map on the same domain, both simpler; the package fills it.
SIMPLIFIED: Slot[IndexingMap] = Slot()
#: A term, and its least and greatest value.
Interval = tuple[Expr, int, int]


@dataclass(frozen=True)
class RuntimeVariable:
    """A value in an indexing map that is known at run time only.

    Attributes
    ----------
    variable : Expr
        Stands for the value; its range is the feasible values.
    hlo : object
        The instruction whose result holds the value, or any name for it; None if unknown.
    indices : tuple of Expr
        Which element of that result is read, in the dims, symbols and other runtime variables of the map.
    """

    variable: Expr
    hlo: object = None
    indices: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.indices, str) or not isinstance(self.indices, Iterable):
            raise TypeError(f"the indices of a runtime variable are given as {shown(self.indices)}: give a list")
        object.__setattr__(self, "indices", tuple(map(_index, self.indices)))


@dataclass(frozen=True)
class IndexingMap(Displayed):
    """A map between the indices of two tensors, and its domain.

    Attributes
    ----------
    dims, symbols : tuple of Expr
        Variables; their ranges are the box of the domain.
    results : tuple of Expr
        One index per dimension of the tensor that the map leads to.
    constraints : tuple of bool Expr
        What else holds on the domain. ``(False,)`` says that the domain is empty.
    runtime : tuple of RuntimeVariable
        Values that are read.

    Raises
    ------
    TypeError
        If a dim or symbol is no variable, a result no integer term, or a constraint no condition.
    ValueError
        If two variables have one name.

    >>> print(IndexingMap.parse("(d0, d1) -> (d0 + d1 floordiv 16), domain: d0 in [0, 6], d1 in [0, 14]").simplify())
    (d0, d1) -> (d0), domain: d0 in [0, 6], d1 in [0, 14]
    """

    dims: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Expr, ...] = ()
    runtime: tuple[RuntimeVariable, ...] = ()

    def __post_init__(self) -> None:
        for name in ("dims", "symbols", "results", "constraints", "runtime"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise TypeError(f"the {name} of a map are given as {shown(given)}: give a list")
            object.__setattr__(self, name, tuple(given))
        list_of(RuntimeVariable, self.runtime, "the runtime variables of a map")
        for variable in self.variables:
            if not isinstance(variable, Expr) or variable.op != "var":
                raise TypeError(f"{variable!r} is no variable: dims and symbols of a map are made by var")
        names = [str(variable.value) for variable in self.variables]
        if len(set(names)) != len(names):
            raise ValueError(f"the map names a variable twice: {', '.join(names)}")
        object.__setattr__(self, "results", tuple(map(_index, self.results)))
        object.__setattr__(self, "constraints", tuple(list_of_conditions(self.constraints)))

    @property
    def variables(self) -> tuple[Expr, ...]:
        """Dims, symbols and runtime variables."""
        return (*self.dims, *self.symbols, *(r.variable for r in self.runtime))

    @classmethod
    def parse(cls, text: str, ranges: Mapping[str, tuple[int, int]] | None = None) -> IndexingMap:
        """The map in ``text``; ``ranges`` are those of variables that its domain does not mention.

        Where a range is empty so is the domain: the variable gets the range with its ends exchanged, and ``False`` is a
        constraint.

        Raises
        ------
        ValueError, TypeError
            If the text is not a map, or names a variable twice; if a range is no two integers (``None``: no end).

        >>> print(IndexingMap.parse("(d0)[s0] -> (s0 + 5, d0 * 2)", {"d0": (0, 3), "s0": (0, 1)}))
        (d0)[s0] -> (s0 + 5, d0 * 2), domain: d0 in [0, 3], s0 in [0, 1]
        >>> print(IndexingMap.parse("(d0) -> (d0 * 2), domain: d0 in [0, -1]"))
        (d0) -> (d0 * 2), domain: d0 in [-1, 0], False

        MLIR's ``affine_map<...>`` may have a domain behind it; an ``affine_set<...>`` is a domain without results:

        >>> print(IndexingMap.parse("affine_map<(d0) -> (d0 ceildiv 4)>, domain: d0 in [0, 7]"))
        (d0) -> (d0 ceildiv 4), domain: d0 in [0, 7]
        >>> print(IndexingMap.parse("affine_set<(d0) : (d0 - 3 >= 0)>", {"d0": (0, 7)}).simplify())
        (d0) -> (), domain: d0 in [3, 7]
        """
        if not isinstance(text, str):
            raise TypeError(f"a map is read from a text, not from {text!r}")
        refuse_long_text(text, "a map")
        # of long runs of spaces, the regular expressions would take time by the square of their length
        lines = "\n".join([" ".join(line.split()) for line in text.split("\n") if line.strip()])
        head, _, domain = _FLAG.sub("", _unwrapped(lines.replace("domain :", "domain:"))).partition("domain:")
        if not (found := _MAP.fullmatch(" ".join(head.split()).strip(" ,"))):
            raise ValueError(f"cannot parse the map {text[:60]!r}: it must read '(dims)[symbols] -> (results)'")
        dims, symbols, runtime, results = [split_list(part or "") for part in found.groups()]
        written = (*dims, *symbols, *runtime)
        if len(set(written)) != len(written):
            raise ValueError(f"cannot parse the map {text[:60]!r}: it names a variable twice")
        if words := AFFINE_WORDS.intersection(written):
            raise ValueError(f"cannot parse the map {text[:60]!r}: {min(words)!r} is an operator, not a variable name")
        items = split_list(_END.sub(r"\1, ", " ".join(_HELD.sub(r"\1 \2, ", domain).split())))
        names, constraints = _read_domain(items, written, {} if ranges is None else ranges)
        held = {name: (hlo, split_list(of), split_list(at)) for name, _, hlo, of, at in _HELD.findall(domain)}
        reads = []
        for name in [*runtime, *[s for s in symbols if s in held]]:
            hlo, of, at = held.get(name, (None, [], []))
            here = names | dict(zip(of, [names[d] for d in dims], strict=False))
            reads.append(RuntimeVariable(names[name], hlo, tuple(affine_term(index, here) for index in at)))
        return cls(
            tuple(names[d] for d in dims),
            tuple(names[s] for s in symbols if s not in held),
            tuple(affine_term(result, names) for result in results),
            tuple(constraints),
            tuple(reads),
        )

    def __str__(self) -> str:
        symbols = f"[{', '.join(map(str, self.symbols))}]" if self.symbols else ""
        runtime = f"{{{', '.join(str(r.variable) for r in self.runtime)}}}" if self.runtime else ""
        head = f"({', '.join(map(str, self.dims))}){symbols}{runtime} -> ({', '.join(map(affine_text, self.results))})"
        domain = [*((v, v.vmin, v.vmax) for v in self.variables), *intervals(self.constraints)]
        texts = [affine_text(term) + ("" if term.is_bool else f" in [{low}, {high}]") for term, low, high in domain]
        return f"{head}, domain: {', '.join(texts)}" if domain else head

    def _repr_latex_(self) -> str | None:
        def between(terms: Iterable[Expr]) -> list[Expr | str]:
            return [part for term in terms for part in (", ", term)][1:]

        ends = [("", v, rf" \in [{v.vmin}, {v.vmax}]") for v in self.variables]
        domain = [part for item in [*ends, *[("", c) for c in self.constraints]] for part in (r",\ ", *item)][1:]
        head = ["(", *between(self.variables), r") \mapsto (", *between(self.results), ")"]
        return formula([*head, r" \quad ", *domain])

    @property
    def is_empty(self) -> bool:
        """Whether the domain is known to be empty."""
        return FALSE in self.constraints

    @property
    def domain(self) -> Expr:
        """The condition that holds on the domain and nowhere else: the ranges of the variables, and the constraints."""
        box = [c for v in self.variables for c in (const(v.vmin) <= v, v <= const(v.vmax))]
        return all_of([*box, *self.constraints])

    def then(self, following: IndexingMap) -> IndexingMap:
        """The composition: first this map, then ``following`` on its results; not simplified.

        Its domain is where this map is defined and its results lie in the domain of ``following``. Its symbols and
        runtime variables are those of ``following``, then those of this map; one whose name is taken is named ``s``
        or ``rt`` and a number.

        Raises
        ------
        ValueError
            If ``following`` does not take as many dims as this map has results, or divides by one that is always 0.

        >>> split = IndexingMap.parse("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]")
        >>> join = IndexingMap.parse("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]")
        >>> print(split.then(join).simplify())
        (d0) -> (d0), domain: d0 in [0, 31]
        """
        _refuse_other_map(following)
        if len(following.dims) != len(self.results):
            results = counted(len(self.results), "result")
            raise ValueError(f"the maps do not compose: one has {results}, the next takes {len(following.dims)}")
        taken = {str(d.value) for d in self.dims}
        theirs, mine = [_renamed(m, taken) for m in (following, self)]
        here = self if all(v is image for v, image in mine.items()) else self.substituted(mine)
        there = following.substituted({**theirs, **dict(zip(following.dims, here.results, strict=True))})
        boxes = [c for d, r in zip(following.dims, here.results, strict=True) for c in within(r, d.vmin, d.vmax)]
        found = IndexingMap(
            self.dims,
            (*there.symbols, *here.symbols),
            there.results,
            (*here.constraints, *boxes, *there.constraints),
            (*there.runtime, *here.runtime),
        )
        # only what is new may divide by zero: a long chain of maps shares its terms
        own = set(here.terms)
        new = reached({*boxes, *there.constraints, *there.terms} - own, lambda term: set(term.args) - own)
        return found._settled() if any(map(divides_by_zero, new)) else found

    def _settled(self) -> IndexingMap:
        """The map with 0 in place of divisions by zero that are never evaluated, by its domain or by a selection."""
        constraints: list[Expr] = []
        try:
            for some in in_order(self.constraints):
                constraints += settled(some, LinearArithmetic(constraints))
            theory = LinearArithmetic(constraints)
        except ContradictionError:
            return self.emptied()
        return self.with_terms(settled(self.terms, theory), constraints)

    @property
    def terms(self) -> list[Expr]:
        """The results, and where the runtime variables are read."""
        return [*self.results, *(i for r in self.runtime for i in r.indices)]

    def emptied(self) -> IndexingMap:
        """The map with an empty domain, and 0 for its results."""
        return self.with_terms([const(0)] * len(self.terms), [FALSE])

    def with_terms(self, terms: Iterable[Expr], constraints: Sequence[Expr]) -> IndexingMap:
        """The map with other terms in the place of its own, in their order, and other constraints."""
        rest = iter(terms)
        results = tuple(islice(rest, len(self.results)))
        runtime = tuple(replace(r, indices=tuple(islice(rest, len(r.indices)))) for r in self.runtime)
        return replace(self, results=results, constraints=tuple(constraints), runtime=runtime)

    def substituted(self, image: Mapping[Expr, Expr]) -> IndexingMap:
        """The map with other terms for its variables: variables for symbols and runtime variables; such dims go."""
        found = self.with_terms(replaced(self.terms, image), replaced(self.constraints, image))
        return replace(
            found,
            # the new variables may have the names of those that go
            dims=tuple(d for d in self.dims if d not in image),
            symbols=tuple(image.get(s, s) for s in self.symbols),
            runtime=tuple(replace(r, variable=image.get(r.variable, r.variable)) for r in found.runtime),
        )

    def simplify(self, **options: Any) -> IndexingMap:
        """The same map on the same domain, both simpler; takes the options of :func:`eqsat.optimize`.

        Where the domain is empty the results are 0. Each result is as cheap as it can be alone, unless ``extract``
        says otherwise, and affine if it can be: the price of a node is that of
        :class:`eqsat.interop.affine.Affine`.

        Source: XLA's indexing maps.

        >>> print(IndexingMap.parse("(d0) -> (d0 mod 8), domain: d0 in [0, 99], d0 floordiv 8 in [5, 11]").simplify())
        (d0) -> (d0 mod 8), domain: d0 in [40, 95]
        """
        return SIMPLIFIED.call(self, **options)

    def trimmed(self) -> IndexingMap:
        """The same map without the symbols and runtime variables that nothing depends on.

        The others are named ``s0``, ``s1``, ... and ``rt0``, ``rt1``, ... in the order in which the map uses them.

        >>> print(IndexingMap.parse("(d0)[s0, s1] -> (s1), domain: d0 in [0, 3], s0 in [0, 2], s1 in [0, 1]").trimmed())
        (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 1]
        """
        read_at = {r.variable: r.indices for r in self.runtime}
        order = [v for v in topological([*self.results, *self.constraints]) if v.op == "var"]
        # the list grows in the loop: where one value is read may depend on another
        for used in order:
            order += [v for v in topological(read_at.get(used, ())) if v.op == "var" and v not in order]
        runtime = sorted((r for r in self.runtime if r.variable in order), key=lambda r: order.index(r.variable))
        symbols = sorted((s for s in self.symbols if s in order), key=order.index)
        names = {str(d.value) for d in self.dims}
        image = _numbered(symbols, "s", names) | _numbered([r.variable for r in runtime], "rt", names)
        return replace(self, symbols=tuple(symbols), runtime=tuple(runtime)).substituted(image)

    def check(self, other: IndexingMap, **options: Any) -> Check:
        """Compare with a map of as many variables: one domain, and the same results on it.

        If both say what their runtime variables are, the same elements of it, too. Takes the options of
        :func:`eqsat.prove.verify.check_equal`.

        >>> here = IndexingMap.parse("(d0) -> (d0 mod 8), domain: d0 in [0, 20], d0 in [0, 6]")
        >>> here.check(here.simplify()).equal
        True
        """
        _refuse_other_map(other)
        counts = [[len(part) for part in (m.dims, m.symbols, m.runtime, m.results)] for m in (self, other)]
        if counts[0] != counts[1]:
            raise ValueError(
                "the maps have {} and {} dims, symbols, runtime variables and results: "
                "only maps of one kind compare".format(*counts)
            )
        widest = {
            theirs: var(str(mine.value), min(mine.vmin, theirs.vmin), max(mine.vmax, theirs.vmax))
            for mine, theirs in zip(self.variables, other.variables, strict=True)
        }
        own = dict(zip(self.variables, widest.values(), strict=True))
        reads = all(r.hlo is not None for r in (*self.runtime, *other.runtime))
        before, after = [
            replaced([m.domain, *m.results, *(i for r in m.runtime if reads for i in r.indices)], image)
            for m, image in ((self, own), (other, widest))
        ]
        return check_equal(before, after, gates=[None, *before[:1] * (len(before) - 1)], **options)


def _index(given: ExprLike) -> Expr:
    """An index that a map leads to, as an integer; a condition counts 1 or 0."""
    result = as_expr(given)
    if result.element:
        raise TypeError(f"the indices of a map are integers, not {brief(result)!r}")
    return where(result, 1, 0) if result.is_bool else result


def _text_and_interval(item: str) -> tuple[str, tuple[int, int] | None]:
    """The text of a term in a part of a domain, and its interval; or of a condition, and None."""
    if not (found := _INTERVAL.fullmatch(item)):
        return item, None
    low, high = found.groups()[1:]
    ends = -INFINITY if low == "-inf" else _bound(low), INFINITY if high == "inf" else _bound(high)
    return found[1].strip(), ends


def _bound(text: str) -> int:
    """An end of an interval. Python's error about too many digits names a limit of Python's, so it is replaced."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the end {shortened(text, 40)!r} of an interval has {len(text)} digits: write inf") from None


def _read_domain(
    items: Iterable[str], written: Sequence[str], ranges: Mapping[str, tuple[int, int]]
) -> tuple[dict[str, Expr], list[Expr]]:
    """The variables of a map by name, with their ranges, and what else its domain says."""
    require(ranges, Mapping, "ranges")
    given = {}
    for name, ends in ranges.items():
        if not isinstance(ends, Sequence) or len(ends) != 2:
            raise ValueError(f"the range of variable {name!r} must be (low, high), not {ends!r}")
        given[name] = bounds_of(name, *ends)
    box: dict[str, tuple[int, int]] = {}
    others, known = [], set(written)
    for item in items:
        part, interval = _text_and_interval(item)
        if interval and part in known and part not in box:
            box[part] = interval
        else:
            others.append(item)
    bounds = {**dict.fromkeys(written, LIMITS[32]), **given, **box}
    names = {name: var(name, min(bounds[name]), max(bounds[name])) for name in written}
    empty = [FALSE] if any(bounds[name][0] > bounds[name][1] for name in written) else []
    return names, [*empty, *[condition for item in others for condition in _read_conditions(item, names)]]


def _read_conditions(item: str, names: Mapping[str, Expr]) -> list[Expr]:
    text, interval = _text_and_interval(item)
    if interval is None and " in " in text:
        named = text.partition(" in ")[0]
        raise ValueError(f"cannot parse {item!r} in the domain: write it as {named} in [0, 9], with two integers")
    term = affine_term(text, names)
    if interval is not None:
        return within(term, *interval)
    if not term.is_bool:
        raise ValueError(f"{item!r} in the domain is no condition: write {item} in [low, high], or compare it")
    return [term]


def _unwrapped(text: str) -> str:
    """The text of a map without what MLIR and XLA write around it; a set is a map without results."""
    if _SET.match(text):
        given = AffineFunction.parse(text)
        return f"({', '.join(given.dims)})[{', '.join(given.symbols)}] -> (), domain: {', '.join(given.results)}"
    head, mark, domain = text.partition("domain:")
    if mark and (wrapped := _WRAPPED.fullmatch(head.strip(" ,\n"))):
        return f"{wrapped[1]}, {mark}{domain}"
    wrapped = _WRAPPED.fullmatch(text.strip())
    return wrapped[1] if wrapped else text


def in_order(constraints: Iterable[Expr]) -> Iterator[list[Expr]]:
    """Constraints in groups: the groups before each keep its divisors from zero, if any do; the others are the last."""
    constraints = list(constraints)
    dividing = suspects(topological(constraints))
    known = [c for c in constraints if c not in dividing]
    yield known
    waiting = [c for c in constraints if c in dividing]
    while waiting:
        theory = LinearArithmetic(known)
        some = [c for c in waiting if not any(unsafe_divisions([c], dividing, [theory]))] or waiting
        yield some
        known += some
        waiting = [c for c in waiting if c not in some]


def list_of_conditions(given: Iterable[Expr]) -> list[Expr]:
    """``given``, all of which are conditions; ``TypeError`` if one is none."""
    found = list(given)
    for condition in found:
        if not isinstance(condition, Expr) or not condition.is_bool:
            raise TypeError(f"{condition!r} is no condition: give terms such as x < 5 or x.eq(3)")
    return found


def _refuse_other_map(given: object) -> None:
    if not isinstance(given, IndexingMap):
        raise TypeError(f"{given!r} is no indexing map: read one by IndexingMap.parse")


def _interval(condition: Expr) -> Interval:
    """A condition as a term in an interval; if it compares nothing with a literal, that is itself in ``[1, 1]``."""
    if condition.op in ("lt", "le", "eq") and not condition.args[0].is_bool:
        left, right = condition.args
        strict = condition.op == "lt"
        if right.op == "const":
            return left, right.vmin if condition.op == "eq" else left.vmin, right.vmin - strict
        if left.op == "const" and condition.op != "eq":
            return right, left.vmin + strict, right.vmax
    return condition, 1, 1


def intervals(conditions: Iterable[Expr]) -> list[Interval]:
    """Conditions as terms in intervals, one for each term."""
    found: dict[Expr, tuple[int, int]] = {}
    for term, low, high in map(_interval, conditions):
        least, most = found.get(term, (low, high))
        found[term] = max(low, least), min(high, most)
    return [(term, low, high) for term, (low, high) in found.items()]


def within(term: Expr, low: int, high: int) -> list[Expr]:
    """That ``term`` is in ``[low, high]``, without what its bounds imply; a condition counts 0 or 1."""
    if term.is_bool:
        return {(True, True): [], (True, False): [~term], (False, True): [term]}.get(
            (low <= 0 <= high, low <= 1 <= high), [FALSE]
        )
    low, high = max(low, term.vmin), min(high, term.vmax)
    if low > high:
        return [FALSE]
    if low == high:
        return [] if term.vmin == term.vmax else [term.eq(low)]
    lower = [const(low) <= term] if low > term.vmin else []
    return [*lower, term <= high] if high < term.vmax else lower


def _renamed(given: IndexingMap, taken: set[str]) -> dict[Expr, Expr]:
    """New variables for the symbols and runtime variables: of their names, or the next free ones; both become taken."""
    image = {}
    for prefix, own in (("s", given.symbols), ("rt", [r.variable for r in given.runtime])):
        free = numbered(prefix, taken)
        for variable in own:
            own_name = str(variable.value)
            name = own_name if own_name not in taken else next(free)
            taken.add(name)
            image[variable] = var(name, variable.vmin, variable.vmax)
    return image


def _numbered(given: Iterable[Expr], prefix: str, taken: set[str]) -> dict[Expr, Expr]:
    return {v: var(name, v.vmin, v.vmax) for v, name in zip(given, numbered(prefix, taken), strict=False)}
