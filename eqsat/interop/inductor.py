"""Kernels of PyTorch's Inductor with cheaper index arithmetic (the extra ``torch``).

A ``LoopBody`` holds all indices of one kernel. When Inductor has made one, those of its indices that divide are
optimised together, under the ranges of the iteration variables and what PyTorch knows of symbolic sizes. An index is
replaced only if the new one costs less as it will be printed (:class:`Printed`); on any doubt Inductor's own stays, and
:func:`statistics` says why. PyTorch is imported when the integration is switched on, not before.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib.metadata import version
from typing import Any

from eqsat.egraph.budget import Budget
from eqsat.extract.cost import is_power_of_two, literal
from eqsat.interop.drop_in import DropIn, Kept, Seam, Statistics
from eqsat.interop.sympy import Reading, from_sympy, to_sympy
from eqsat.lang.costs import cost_of, prices
from eqsat.lang.expr import Expr, replaced, var
from eqsat.lang.ops import FLOORS, Bounds, Infinity
from eqsat.lang.traversal import topological, variables
from eqsat.optimizer.front import optimize

__all__ = ["Printed", "Statistics", "enabled", "improved", "install", "install_if_asked", "reset_statistics"]
__all__ += ["statistics", "uninstall"]

#: For one kernel. Nodes and rounds should run out before the time: else answers depend on how busy the machine is.
BUDGET = Budget(nodes=4000, seconds=2.0, rounds=12)
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
#: Inductor's classes that divide.
_DIVIDING = frozenset({"FloorDiv", "CleanDiv", "ModularIndexing", "Mod", "PythonMod"})
#: Those that are printed as C++'s ``%``, which truncates: their operands must not be negative.
_TRUNCATING = frozenset({"ModularIndexing", "Mod"})
#: The classes that Inductor's printers and later passes take in any index, beside integers.
_WRITTEN = frozenset({"Add", "Mul", "Symbol", "FloorDiv", "ModularIndexing"})


@dataclass(frozen=True)
class Printed:
    """The cost of a node in the C++ that Inductor prints for an index; indices share nothing, so extract a tree.

    Only ratios matter. ``FloorDiv`` is printed as ``c10::div_floor_integer``, whose branch on signs comes on top of the
    division and keeps loops from being vectorised; a remainder is the ``%`` of C++ between 64-bit integers, without a
    branch: a multiplication and a shift for a literal divisor, a mask and a fix-up for a power of two, the divider for
    others. A ``ModularIndexing(x, d, m)`` costs both. Minima, maxima and selections hide strides from Inductor's loop
    ordering. All else has no class in Inductor's indices, and costs more than any index of these.

    >>> model = Printed()
    >>> model.price("floordiv", [(0, 99), (7, 7)], (0, 14)), model.price("mod", [(0, 99), (7, 7)], (0, 6))
    (24, 9)
    >>> model.price("floordiv", [(0, 99), (-7, -7)], (-15, 0)) == model.other
    True
    """

    simple: int = 1
    multiply: int = 2
    quotient_by_constant: int = 24
    quotient_by_variable: int = 60
    remainder_by_power_of_two: int = 5
    remainder_by_constant: int = 9
    remainder_by_variable: int = 30
    selection: int = 40
    other: int = 10_000

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The cost of one node; 0 for literals and variables."""
        if not operands:
            return 0
        if op in ("add", "sub", "neg", "load"):
            return self.simple
        if op == "mul":
            return 0 if any(literal(x) in (1, -1) for x in operands) else self.multiply
        divisor = literal(operands[-1])
        # Inductor's simplifier takes divisors for positive
        if op == "floordiv" and operands[1][0] >= 0:
            return self.quotient_by_variable if divisor is None else self.quotient_by_constant
        # that of C++ truncates
        if op == "mod" and operands[0][0] >= 0:
            if divisor is None:
                return self.remainder_by_variable
            return self.remainder_by_power_of_two if is_power_of_two(divisor) else self.remainder_by_constant
        return self.selection if op in ("min", "max", "where") else self.other


@dataclass(frozen=True)
class _Problem:
    """The indices of a kernel that divide, and what is known, in numbered symbols: the key by which answers are kept.

    ``iterated``: the symbols that are iteration variables; the others are sizes. ``on_processor``: indices have 64
    bits; on other devices they may have 32.
    """

    indices: tuple[Any, ...]
    iterated: frozenset[Any]
    ranges: tuple[tuple[Any, tuple[int | None, int | None]], ...]
    facts: tuple[Any, ...]
    on_processor: bool


_DROP_IN = DropIn("Inductor")
uninstall, statistics, reset_statistics = _DROP_IN.uninstall, _DROP_IN.statistics, _DROP_IN.reset_statistics


def install() -> None:
    """Optimise the indices of all kernels that Inductor makes from now on, in this process.

    Compiled code that Inductor kept on disk without it is not taken, nor the other way round.

    Raises
    ------
    ImportError
        If PyTorch is not installed, or is older than 2.9.

    >>> install()  # doctest: +SKIP
    """
    try:
        from torch._inductor.codecache import FxGraphHashDetails
        from torch._inductor.loop_body import LoopBody

        seams = [Seam(LoopBody, name, _improving) for name in ("_init_with_tracing", "_init_with_copy")]
        seams.append(Seam(FxGraphHashDetails, "__init__", _marking))
        _ = [getattr(seam.owner, seam.name) for seam in seams]
    except (ImportError, AttributeError):
        raise ImportError("PyTorch 2.9 or newer is not installed: pip install 'eqsat[torch]'") from None
    _DROP_IN.install(seams)


def install_if_asked() -> bool:
    """:func:`install` if the environment has ``EQSAT_INDUCTOR=1``; say whether it has.

    >>> install_if_asked()
    False
    """
    if asked := os.environ.get("EQSAT_INDUCTOR") == "1":
        install()
    return asked


@contextmanager
def enabled() -> Iterator[None]:
    """:func:`install` for a while. What is compiled inside, at the first call of a compiled function, is optimised.

    >>> with enabled():  # doctest: +SKIP
    ...     torch.compile(f)(x)
    """
    with _DROP_IN.restored(lambda options: install()):
        install()
        yield


def _improving(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def init(body: Any, *args: Any, **options: Any) -> None:
        original(body, *args, **options)
        body.indexing_exprs = improved(body.indexing_exprs, body.var_ranges)

    return init


def _marking(original: Callable[..., None]) -> Callable[..., None]:
    """What Inductor hashes to find code on disk, with a mark: its configuration is of one thread, the seams of all."""
    mark = version("eqsat")

    @wraps(original)
    def init(details: Any, *args: Any, **options: Any) -> None:
        original(details, *args, **options)
        details.eqsat = mark

    return init


def improved(indices: Mapping[str, Any], sizes: Mapping[Any, Any]) -> dict[str, Any]:
    """The indices of a kernel, cheaper where they can be; iteration variables go from 0 to their size less 1."""
    found = dict(indices)
    names = [name for name, index in indices.items() if not _DIVIDING.isdisjoint(_classes(index))]
    if not names:
        return found
    # threads take turns: what SymPy and the optimiser keep is the process's
    with _DROP_IN.lock, _DROP_IN.kernel():
        try:
            problem, symbols = _problem([indices[name] for name in names], sizes)
            known = _DROP_IN.answer(problem, lambda: _solved(problem))
            answers = [a if isinstance(a, str) else a.xreplace(symbols) for a in known]
        except Exception:
            # an optimisation is never worth a failed compilation; it is counted
            answers = ["error"] * len(names)
        for name, answer in zip(names, answers, strict=True):
            if not isinstance(answer, str):
                found[name] = answer
        before, after = (sum(_divisions(some[name]) for name in names) for some in (indices, found))
        _DROP_IN.record([a if isinstance(a, str) else "" for a in answers], (before, after))
    return found


def _classes(index: Any) -> Counter[str]:
    """The names of the classes in an expression, integers left out, and how often each occurs."""
    import sympy

    parts = sympy.preorder_traversal(index)
    return Counter(type(e).__name__ for e in parts if not isinstance(e, int) and not e.is_Integer)


def _divisions(index: Any) -> int:
    """How many quotients and remainders are printed."""
    classes = _classes(index)
    # a ModularIndexing is printed as a quotient and a remainder
    return sum(classes[name] for name in _DIVIDING) + classes["ModularIndexing"]


def _problem(indices: Sequence[Any], sizes: Mapping[Any, Any]) -> tuple[_Problem, dict[Any, Any]]:
    """The indices in numbered symbols, and the symbol for each of these."""
    import sympy

    limits = {variable: sympy.sympify(size) for variable, size in sizes.items()}
    used = set().union(*[index.free_symbols for index in indices])
    inner = [variable for variable in limits if variable in used]
    outer = used.union(*[limits[variable].free_symbols for variable in inner]) - set(inner)
    outer_sorted = sorted(outer, key=lambda symbol: str(symbol.name))
    numbered = {s: sympy.Symbol(f"v{n}", **s.assumptions0) for n, s in enumerate([*inner, *outer_sorted])}
    known, axioms = _of_sizes(outer_sorted)
    ranges = {v: (0, int(limits[v]) - 1 if limits[v].is_Integer else None) for v in inner} | known
    facts = [sympy.StrictLessThan(v, limits[v], evaluate=False) for v in inner if not limits[v].is_Integer]
    facts += [axiom for axiom in axioms if axiom.free_symbols <= outer]
    problem = _Problem(
        tuple(index.xreplace(numbered) for index in indices),
        frozenset(numbered[variable] for variable in inner),
        tuple((numbered[symbol], ends) for symbol, ends in ranges.items()),
        tuple(fact.xreplace(numbered) for fact in facts),
        _on_processor(),
    )
    return problem, {number: symbol for symbol, number in numbered.items()}


def _of_sizes(symbols: Sequence[Any]) -> tuple[dict[Any, tuple[int | None, int | None]], list[Any]]:
    """The bounds and relations that PyTorch knows of sizes; none outside of a compilation."""
    if not symbols:
        return {}, []
    from torch._inductor.virtualized import V

    if (sizevars := getattr(V.graph, "sizevars", None)) is None:
        return {}, []
    env = sizevars.shape_env
    ranges: dict[Any, tuple[int | None, int | None]] = {}
    for symbol in symbols:
        if symbol in env.var_to_range:
            bounds = env.var_to_range[symbol]
            low, high = [int(end) if end.is_Integer else None for end in (bounds.lower, bounds.upper)]
            ranges[symbol] = (low, high)
    return ranges, list(env.get_axioms(tuple(symbols)))


def _on_processor() -> bool:
    """Whether the program that is compiled runs on the processor alone."""
    from torch._inductor.virtualized import V

    devices = set(getattr(V.graph, "device_types", ()))
    return bool(devices) and devices <= {"cpu", "meta"}


def _solved(problem: _Problem) -> list[Any]:
    """An answer for each index: a cheaper one, or why it stays."""
    ranges = dict(problem.ranges)
    facts = [fact for fact in problem.facts if _is_read(fact)]
    answers: list[Any] = [_doubt(index, ranges, facts) for index in problem.indices]
    if not (places := [place for place, doubt in enumerate(answers) if not doubt]):
        return answers
    indices = [problem.indices[place] for place in places]
    # the constraints that come from reading the others do not count
    reading = from_sympy(indices, ranges, facts)
    names = {**_inductors_classes(), **reading.names}
    terms, end = list(reading.terms), BUDGET.ends()
    # what holds for any divisors is found in a small part of the time if their own terms are not looked into
    sizes = _quotients_of_sizes(reading, problem.iterated)
    for hidden in [sizes, []] if sizes else [[]]:
        found = _optimized(terms, reading.constraints, hidden, end)
        for n, (place, index) in enumerate(zip(places, indices, strict=True)):
            best = index if isinstance(answers[place], str) else answers[place]
            try:
                if found is None:
                    raise Kept("time")
                answers[place] = _cheaper(best, to_sympy(found[n], names), ranges, facts, problem.on_processor)
                terms[n] = found[n]
            except Kept as reason:
                if best is index:
                    answers[place] = str(reason)
    _keep_what_is_shared(problem, answers, ranges, facts)
    return answers


def _quotients_of_sizes(reading: Reading, iterated: Collection[Any]) -> list[Expr]:
    """Quotients and remainders without iteration variables, such as the number of rows after a step of 2."""
    kept = {name for name, symbol in reading.names.items() if symbol in iterated}
    divisions = [t for t in topological(reading.terms) if t.op in FLOORS]
    return [t for t in divisions if kept.isdisjoint([x.value for x in variables([t])])]


def _optimized(terms: Sequence[Expr], facts: Sequence[Expr], hidden: Sequence[Expr], end: float) -> list[Expr] | None:
    """The cheapest terms found, ``None`` if the time ran out. Of a ``hidden`` term only the bounds are known."""
    values = {term: var(f"hidden{n}", term.vmin, term.vmax) for n, term in enumerate(hidden)}
    given, known = replaced(terms, values), replaced(facts, values)
    search: dict[str, Any] = {"extract": "tree", "branches": "lazy", "unknown_divisors": "keep"}
    result = optimize(given, constraints=known, cost=Printed(), budget=BUDGET.until(end), **search)
    return None if result.stop == "time" else replaced(result.exprs, {value: term for term, value in values.items()})


def _doubt(index: Any, ranges: Mapping[Any, Any], facts: Sequence[Any]) -> str:
    """Why an index stays, whatever is found; empty if nothing speaks against another."""
    if not _is_read(index):
        return "class"
    return "sign" if _sign_is_in_doubt(index, from_sympy(index, ranges, facts).term) else ""


def _keep_what_is_shared(
    problem: _Problem, answers: list[Any], ranges: Mapping[Any, Any], facts: Sequence[Any]
) -> None:
    """Keep an old index if all indices together cost less with it: the C++ compiler computes once what they share."""
    places = [place for place, old in enumerate(problem.indices) if _is_read(old)]
    if not (replaced := [place for place in places if not isinstance(answers[place], str)]):
        return
    old = [problem.indices[place] for place in places]
    terms = from_sympy([*old, *[answers[place] for place in replaced]], ranges, facts).terms
    before = dict(zip(places, terms, strict=False))
    chosen = before | dict(zip(replaced, terms[len(places) :], strict=True))
    for place in replaced:
        kept = {**chosen, place: before[place]}
        if cost_of(kept.values(), Printed()) < cost_of(chosen.values(), Printed()):
            chosen, answers[place] = kept, "shared"


def _is_read(e: Any) -> bool:
    try:
        from_sympy(e)
    except (ValueError, TypeError):
        return False
    return True


def _sign_is_in_doubt(index: Any, term: Expr) -> bool:
    """Whether an index may be another to Inductor than ``term``, as which it was read, where an operand is negative.

    Inductor's simplifier assumes positive divisors, and remainders that are printed as C++'s ``%`` truncate.
    """
    truncates = not _TRUNCATING.isdisjoint(_classes(index))
    divisions = [t for t in topological([term]) if t.op in ("floordiv", "mod")]
    return any(t.args[1].vmin < 0 or (truncates and t.op == "mod" and t.args[0].vmin < 0) for t in divisions)


def _cheaper(old: Any, new: Any, ranges: Mapping[Any, Any], facts: Sequence[Any], on_processor: bool) -> Any:
    """The new index, if it costs less as it is printed and is an index to Inductor; raises ``Kept`` otherwise."""
    # Inductor expands products of sums before it prints
    new = new.expand()
    if not _classes(new).keys() <= _WRITTEN | _classes(old).keys():
        raise Kept("operator")
    if not new.free_symbols <= old.free_symbols:
        raise Kept("symbols")
    before, after = from_sympy([old, new], ranges, facts).terms
    if _printed_cost(after) >= _printed_cost(before):
        raise Kept("costs no less")
    if _sign_is_in_doubt(new, after):
        raise Kept("sign")
    largest, most = _largest(after), _INT64 if on_processor else _INT32
    # under sizes without bounds 64 bits are taken to be enough, as PyTorch does; 32 are not
    if not (on_processor if isinstance(largest, Infinity) else largest <= max(_largest(before), most)):
        raise Kept("width")
    return new


def _printed_cost(root: Expr) -> int:
    """The cost of all operations that are printed, those that are repeated counted each time."""
    terms = topological([root])
    costs: dict[Expr, int] = {}
    for term, own in zip(terms, prices(terms, Printed()), strict=True):
        costs[term] = own + sum([costs[a] for a in term.args])
    return costs[root]


def _largest(root: Expr) -> int:
    return max([max(abs(t.vmin), abs(t.vmax)) for t in topological([root])])


@cache
def _inductors_classes() -> dict[str, Any]:
    """The classes by which any answer may be written, as ``names`` for :func:`to_sympy`."""
    from torch.utils._sympy.functions import FloorDiv, ModularIndexing

    return {"class FloorDiv": FloorDiv, "class ModularIndexing": ModularIndexing}
