"""Random inputs of every kind, each answer compared with an evaluator that shares no code with eqsat's.

    make fuzz SECONDS=600 [SEED=7] [ONLY=expressions,kernels]

Prints how many were tried of each kind, by which compilers, and for each failure a test to paste. Inputs come from
seeds: a run with the same seeds tries the same. Expressions that fail are made smaller by hypothesis first.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import cycle, product
from math import prod
from operator import add, and_, mul, or_, sub
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mlir_evaluator
import numpy as np
import random_mlir
from audited import unequal_nodes
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_kernels import contents, random_kernel, run_in_c
from strategies import expressions

from eqsat.cli.corpus import run_line
from eqsat.cli.settings import Settings
from eqsat.egraph.budget import Budget
from eqsat.extract.cost import COST_MODELS
from eqsat.interop import hlo, mlir
from eqsat.interop.indexing import IndexingMap
from eqsat.interop.indexing_analysis import DIRECTIONS, indexing_maps
from eqsat.kernels.kernel import flattened
from eqsat.kernels.simplification import optimized, simplified
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import max_over, maximum, min_over, minimum, sum_over, where
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.traversal import buffers, topological, variables
from eqsat.optimizer.front import optimize

#: What one answer may take, so that many are tried.
BUDGET = Budget(seconds=0.3)
DATA = Path(__file__).parents[1] / "data"
UNHURRIED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False)


class WrongAnswerError(Exception):
    """An answer is wrong; the message is a test that shows it."""


def shown_by(*lines: str, fixture: str = "") -> WrongAnswerError:
    """The error whose test has these lines."""
    return WrongAnswerError("\n    ".join([f"def test_found_by_fuzzing({fixture}):", *lines]))


# ---- an evaluator of expressions: Python's own


class _Lazily(ast.NodeTransformer):
    """``where`` evaluates the branch that its condition chooses; a reduction binds its index."""

    def visit_Call(self, call: ast.Call) -> ast.AST:
        self.generic_visit(call)
        name, args = call.func.id, call.args
        if name == "where":
            return ast.IfExp(*args)
        if name in ("sum", "prod", "max_over", "min_over"):
            body, index, low, high = args
            each = ast.Lambda(ast.arguments([], [ast.arg(index.id)], None, [], [], None, []), body)
            return ast.Call(ast.Name(f"_{name}", ast.Load()), [each, low, high], [])
        return call


class _Array:
    """An array that is as large as need be: any index has a value, some of them the ends of 32 bits."""

    def __getitem__(self, index: Any) -> int:
        value = hash(("element", index)) % 1009
        return value % 23 - 11 if value % 7 else (2**31 - 1 if value % 2 else -(2**31))


MEANING: dict[str, Any] = {
    "A": _Array(),
    "tdiv": mlir_evaluator.truncated,
    "tmod": lambda x, y: x - y * mlir_evaluator.truncated(x, y),
    "_sum": lambda f, low, high: sum(map(f, range(low, high))),
    "_prod": lambda f, low, high: prod(map(f, range(low, high))),
    "_max_over": lambda f, low, high: max(map(f, range(low, high)), default=-(2**31)),
    "_min_over": lambda f, low, high: min(map(f, range(low, high)), default=2**31 - 1),
}


def program_of(term: Expr) -> Callable[[Mapping[str, int]], int]:
    """A term as a function of its variables, by Python's meaning of its text."""
    tree = ast.fix_missing_locations(_Lazily().visit(ast.parse(f"int({term})", mode="eval")))
    code = compile(tree, "term", "eval")
    return lambda point: eval(code, {**MEANING, **point})


def points_of(names: Sequence[Expr], source: random.Random, most: int) -> Iterator[dict[str, int]]:
    """Points of the domain: all, or corners and random ones."""
    ranges = [(v.value, v.vmin, v.vmax) for v in names]
    size = prod(high - low + 1 for _, low, high in ranges)
    if size <= most:
        for point in product(*[range(low, high + 1) for _, low, high in ranges]):
            yield dict(zip([name for name, _, _ in ranges], point, strict=True))
        return
    for n in range(most):
        yield {
            name: source.choice([low, high]) if n % 4 == 0 else source.randint(low, high) for name, low, high in ranges
        }


def value_of(program: Callable[[Mapping[str, int]], int], point: Mapping[str, int]) -> int | None:
    """A value; None where a division by zero leaves none."""
    try:
        return program(point)
    except (ZeroDivisionError, ValueError):
        return None


# ---- the kinds

ENGINES = [{}, {"engine": "theory"}, {"engine": "greedy"}, {"theory": False}]
EXTRACTS = [{}, {}, {"extract": "tree"}, {"extract": "exact"}, {"branches": "lazy"}, {"pareto": "live"}]


def some_options(some: Callable[[Any], Any]) -> dict[str, Any]:
    """A cost model, an engine, and a way to choose that goes with it."""
    engine, extract = some(ENGINES), some(EXTRACTS)
    if "pareto" in extract and (engine.get("engine") == "greedy" or engine.get("theory") is False):
        extract = {}
    return {"cost": some(sorted(COST_MODELS)), **engine, **extract}


@st.composite
def conditions(draw: st.DrawFn, names: list[Expr]) -> Expr:
    """A condition on some variables."""
    total = sum(
        [v * draw(st.sampled_from([1, 1, -1, 2, 3])) for v in draw(st.lists(st.sampled_from(names), min_size=1))]
    )
    total, limit = total - draw(st.integers(total.vmin, total.vmax)), draw(st.integers(0, 3))
    return draw(
        st.sampled_from([total < limit, total.ne(limit), (total % (limit + 2)).eq(0), (total >= 0) | (total < -3)])
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Expr], Expr | None, Expr | None, dict[str, Any]]:
    """Roots over the same variables, a gate, a constraint, and options."""
    max_leaves = draw(st.sampled_from([4, 8, 12, 16]))
    first, names = draw(expressions(max_leaves))
    beside = [first // draw(st.integers(2, 9)), first % draw(st.integers(2, 9)), *names] if names else []
    roots = [first, *draw(st.lists(st.sampled_from(beside), max_size=2))] if beside else [first]
    gate = draw(st.none() | conditions(names)) if names else None
    constraint = draw(st.none() | st.none() | conditions(names)) if names else None
    return roots, gate, constraint, some_options(lambda options: draw(st.sampled_from(options)))


def ask(
    roots: list[Expr], gate: Expr | None, constraint: Expr | None, options: dict[str, Any], points: int = 300
) -> None:
    """Raise :class:`WrongAnswerError` if the answer differs at one of some points where it matters."""
    given = [*roots, *[t for t in (gate, constraint) if t is not None]]
    facts, gates = [] if constraint is None else [constraint], [] if gate is None else [gate] * len(roots)
    try:
        result = optimize(roots, gates=gates, constraints=facts, budget=BUDGET, **options)
    except ValueError as error:
        if any(word in str(error) for word in ("contradict", "may be zero", "by zero")):
            return
        raise
    names = variables(given)
    before, after = [*map(program_of, roots)], [*map(program_of, result.exprs)]
    holds = [program_of(t) for t in (gate, constraint) if t is not None]
    for point in points_of(names, random.Random(0), points):
        if all(value_of(condition, point) for condition in holds):
            for place, (one, other) in enumerate(zip(before, after, strict=True)):
                wanted = value_of(one, point)
                if wanted is not None and value_of(other, point) != wanted:
                    raise WrongAnswerError(f"root {place} becomes {result.exprs[place]}, wrong at {point}")


def as_test(roots: list[Expr], gate: Expr | None, constraint: Expr | None, options: dict[str, Any]) -> str:
    """A test to paste that asks the same question."""
    given = [*roots, *[t for t in (gate, constraint) if t is not None]]
    names = ", ".join(f"{str(v.value)!r}: var({str(v.value)!r}, {v.vmin}, {v.vmax})" for v in variables(given))
    names += "".join([f", {b.value.name!r}: buffer({b.value.name!r})" for b in buffers(given)])
    lines = [
        "def test_found_by_fuzzing():",
        f"    names = {{{names}}}",
        f"    roots = [parse(text, names) for text in {[str(r) for r in roots]!r}]",
        f"    gates = {[str(gate)] * len(roots) if gate is not None else []!r}",
        f"    constraints = {[str(constraint)] if constraint is not None else []!r}",
        "    gates, constraints = [[parse(text, names) for text in texts] for texts in (gates, constraints)]",
        f"    result = optimize(roots, gates=gates, constraints=constraints, **{dict(options)!r})",
        "    assert result.check().equal",
    ]
    return "\n".join(lines)


def ask_or_tell(*question: Any, points: int) -> None:
    """:func:`ask`, with a test to paste as the message of the error."""
    try:
        ask(*question, points=points)
    except Exception as error:
        raise WrongAnswerError(f"# {type(error).__name__}: {error}\n{as_test(*question)}") from error


def fuzz_expressions(number: int, count: Counter[str]) -> None:
    """Some fifty questions of one seed; a failing one is made smaller."""
    last: list[Any] = []

    @seed(number)
    @settings(UNHURRIED, max_examples=50, phases=(Phase.generate, Phase.shrink), report_multiple_bugs=False)
    @given(questions())
    def asked(question: Any) -> None:
        last[:] = question
        count["expressions"] += 1
        ask(*question)

    try:
        asked()
    except Exception as error:
        raise WrongAnswerError(f"# {type(error).__name__}: {error}\n{as_test(*last)}") from error


def fuzz_graphs(number: int, count: Counter[str]) -> None:
    """Every e-node of some e-graphs, after few rounds or many, has the value of its class."""

    @seed(number)
    @settings(UNHURRIED, max_examples=20, phases=(Phase.generate,))
    @given(st.data())
    def asked(data: Any) -> None:
        root, names = data.draw(expressions(data.draw(st.sampled_from([4, 8, 12]))))
        rounds, theory = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([True, True, False]))
        if any(t.op in DIVISIONS and t.args[1].vmin <= 0 <= t.args[1].vmax for t in topological([root])):
            # where a divisor is zero the value of a class counts for nothing
            return
        count["graphs"] += 1
        audit(root, names, rounds, theory)

    asked()


def audit(root: Expr, names: Sequence[Expr], rounds: int, theory: bool = True) -> None:
    """Raise :class:`WrongAnswerError` if an e-node has another value than its class."""
    try:
        found = optimize(root, budget=Budget(seconds=3.0, rounds=rounds), theory=theory)
    except ValueError:
        return
    named = {str(v.value): v for v in names}
    if found.graph is not None and (unequal := unequal_nodes(found.graph, named)):
        raise WrongAnswerError(
            f"# {unequal[0]}\n{as_test([root], None, None, {'theory': theory})}\n"
            f"    # with Budget(rounds={rounds}) unequal_nodes(result.graph, names) has nodes"
        )


def _flat(indices: Sequence[Expr], extents: Sequence[Expr], some: Callable[[list[Any]], Any]) -> Expr:
    total = const(some([0, 0, 0, 1, -1]))
    for j, n in zip(indices, extents, strict=True):
        total = total * n + some([j, j, j, j // 2, n - 1 - j, -j])
    return total


def fuzz_sizes(number: int, count: Counter[str]) -> None:
    """Flat indices over sizes that are no literals, of which it is known, or nearly, that they are in range."""
    source = random.Random(number)
    for _ in range(20):
        some = source.choice
        levels = range(some([1, 2, 2, 3]))
        sizes = [var(f"n{k}", low := some([-1, 0, 1, 1, 1]), low + some([1, 2, 3])) for k in levels]
        indices = [var(f"j{k}", low := some([-1, 0, 0, 0]), low + some([1, 2, 3])) for k in levels]
        extents = [some([size, size, size * some([2, 3]), size + some([-1, 1, 2])]) for size in sizes]
        facts = [j < n + some([0, 0, 0, 0, 1, -1]) for j, n in zip(indices, extents, strict=True) if some([1, 1, 1, 0])]
        if some([0, 0, 1]):
            facts.append((sizes[0] % maximum(sizes[-1], 1)).eq(0))
        reshaped = [var("p", 1, 3), var("q", 1, 4)] if some([0, 0, 1]) else sizes
        if reshaped is not sizes:
            facts.append(reduce(mul, reshaped).eq(reduce(mul, sizes)))
        whole = some([extents[0], extents[-1], reduce(mul, extents), reshaped[0], reduce(mul, reshaped)])
        one, beside = [_flat(indices, extents, some) for _ in range(2)]
        other = some([whole, whole, whole * 2, beside]) + some([0, 0, 1, -1])
        divisor = some([maximum(whole, 1), maximum(sizes[0], 1), maximum(sizes[0] // maximum(sizes[-1], 1), 1)])
        quotient = one // divisor
        roots = [
            where(some([one < other, one.eq(other), other <= one, one // 4 < (other + 3) // 4]), 1, 0),
            some(
                [minimum(one, other), maximum(one, 0), quotient, one % divisor, quotient * whole, one * (one + 1) % 2]
            ),
        ]
        count["symbolic sizes"] += 1
        known = reduce(and_, facts) if facts else None
        ask_or_tell(roots, None, known, {"cost": "latency", **some(ENGINES)}, points=2000)


def _from_digits(digits: Sequence[Expr], some: Callable[[Any], Any]) -> Expr:
    """A condition on digits, the most significant first: which point it is, or on which side of one."""
    point = [some(range(int(digit.vmin), int(digit.vmax) + 1)) for digit in digits]
    if some([0, 0, 1]):
        return reduce(some([and_, or_]), [some([d.eq, d.eq, d.ne])(n) for d, n in zip(digits, point, strict=True)])
    last, n = digits[-1], point[-1]
    side = some([last < n, last <= n, last > n, last >= n, last.eq(n)])
    for digit, n in zip(digits[-2::-1], point[-2::-1], strict=True):
        side = some([digit < n, digit > n]) | (digit.eq(n) & side)
    return some([side, side, ~side])


def fuzz_digits(number: int, count: Counter[str]) -> None:
    """Conditions on digits beside what computes the number of these digits: either may be chosen by the other."""
    source = random.Random(number)
    for _ in range(20):
        some = source.choice
        digits = [
            var(f"d{k}", low := some([-2, -1, 0, 0, 0]), low + some([1, 2, 3, 5])) for k in range(some([1, 2, 2, 3]))
        ]
        total, n = const(some([0, 0, 1, -3])), var("n", 0, some([3, 20, 48]))
        for digit in digits:
            total = total * (digit.vmax - digit.vmin + 1 + some([0, 0, 0, 1])) + digit
        users = [n - total, total - n, n * 2 - total, -total, maximum(n, -total), (n - total) // 3, total, 5 - total,
                 total // some([2, 3, 4, 12]), where(n < 3, -total, n), total % some([3, 4, 8])]  # fmt: skip
        condition = _from_digits(digits, some)
        roots = [some(users), some([condition, where(condition, some([n, *digits]), some(range(-3, 9)))])]
        roots += [some([_from_digits(digits, some), some(users)]) for _ in range(some([0, 0, 1, 2]))]
        gate = _from_digits(digits, some) if some([0, 0, 0, 0, 1]) else None
        count["digits"] += 1
        ask_or_tell(roots, gate, None, some_options(some), points=2000)


def _bound(names: Sequence[Expr], some: Callable[[Any], Any], depth: int) -> Expr:
    """A bound of a loop as schedulers write it: clamped, rounded to tiles, moved."""
    if depth == 0:
        first, other = some(names), some(names)
        total = first * some([1, 1, 1, -1, 2, 8])
        return total + other * some([0, 0, 1, -1, 4]) + some(range(-9, 10))
    inner = _bound(names, some, depth - 1)
    other = some([const(some(range(-4, 9))), inner + some(range(-4, 5)), _bound(names, some, depth - 1)])
    n = some([2, 3, 4, 8])
    return some([minimum(inner, other), maximum(inner, other), minimum(inner, other), maximum(inner, other),
                 inner // n, inner // n * n, inner - other])  # fmt: skip


def fuzz_bounds(number: int, count: Counter[str]) -> None:
    """Comparisons of clamped and rounded bounds of loops, which share parts: the answers, and every e-node."""
    source = random.Random(number)
    for _ in range(20):
        some = source.choice
        names = [var(f"v{k}", some([-20, -9, 0, 0]), some([9, 20])) for k in range(some([1, 2, 2, 3]))]
        one, other = [_bound(names, some, some([1, 2, 2, 3])) for _ in range(2)]
        both, either = minimum(one, other), maximum(one, other + some(range(-3, 4)))
        roots = [some([one < other, one <= other, either <= other, one.eq(other), one.ne(other), either < both + 1])]
        count["bounds"] += 1
        ask_or_tell(roots, None, None, {"cost": "latency", **some(ENGINES)}, points=2000)
        audit(roots[0], names, rounds=some([1, 6]))


A = buffer("A")


def _reduction(names: Sequence[Expr], indices: Sequence[Expr], some: Callable[[Any], Any], depth: int) -> Expr:
    """A reduction within those of ``indices``, over a range that may be empty or backwards."""
    low = some([const(0), const(0), const(1), *names[:2], *indices[-1:]])
    high = some([const(3), const(8), low + some([2, 4]), *[n + some([0, 1]) for n in (*names[:2], *indices[-1:])]])
    index = var(f"r{len(indices)}", low.vmin, max(low.vmin, high.vmax - 1))
    body = _body(names, [*indices, index], some, depth)
    return some([sum_over, sum_over, max_over, min_over])(body, index, low, high)


def _body(names: Sequence[Expr], indices: Sequence[Expr], some: Callable[[Any], Any], depth: int) -> Expr:
    """What a reduction may be of: remainders of several indices, conditions on them, loads, other reductions."""
    total = const(some(range(-4, 5)))
    for index in indices:
        total = total + index * some([1, 1, 1, 0, -1, 2, 3])
    total, n = total + some([const(0), const(0), *names]), some([2, 3, 4, 8])
    leaf = some([total, total // n, total % n, total % n, some(names), some(indices), A[total], A[total % n]])
    if depth == 0:
        return leaf
    condition = some(
        [total < some(names), (total % n).eq(some([0, 1])), indices[-1].eq(some(names)), indices[-1] < some(names)]
    )
    other = some([leaf, const(0), _body(names, indices, some, depth - 1)])
    return some(
        [leaf, where(condition, leaf, other), maximum(leaf, other), _reduction(names, indices, some, depth - 1)]
    )


def fuzz_reductions(number: int, count: Counter[str]) -> None:
    """Nested reductions, and two over ranges that meet, of values within 32 bits and beyond."""
    source = random.Random(number)
    for _ in range(20):
        some = source.choice
        ends = [(some([-2, 0, 1]), some([3, 4])), (some([-2, 0, 1]), some([3, 4])), some([(-5, 9), (-(2**40), 2**40)])]
        names = [var(name, *of) for name, of in zip("nmx", ends, strict=True)]
        one = _reduction(names, [], some, some([1, 2, 2]))
        body, index, _, _ = one.args
        fold, join = some([(max_over, maximum), (min_over, minimum), (sum_over, add), (sum_over, sub)])
        middle = some([names[0], names[0], const(1)])
        both = join(
            fold(body, index, const(0), middle), fold(body, index, some([middle, const(0)]), some([3, names[1]]))
        )
        roots = [some([one, one, both, where(one < some(names), 1, 0), one - _reduction(names, [], some, 1)])]
        count["reductions"] += 1
        ask_or_tell(roots, None, None, {"cost": "latency", **some(ENGINES)}, points=150)
        if not buffers(roots):
            audit(roots[0], names, rounds=some([1, 6]))


def fuzz_maps(number: int, count: Counter[str]) -> None:
    """Maps composed, simplified, and compared point by point."""
    source = random.Random(number)

    def some_map(name: str) -> IndexingMap:
        sizes = [source.choice([1, 2, 3, 5, 8]) for _ in range(2)]
        results = []
        for _ in range(2):
            a, b, n, m = source.randint(-3, 4), source.randint(-3, 4), source.randint(2, 7), source.randint(1, 9)
            operator, shift = source.choice(["floordiv", "mod"]), source.randint(-4, 9)
            results.append(f"(d0 * {a} + d1 * {b} + {shift}) {operator} {n} * {m}")
        limit = source.randint(1, sum(sizes))
        return IndexingMap.parse(
            f"(d0, d1) -> ({', '.join(results)}), domain: d0 in [0, {sizes[0] - 1}], d1 in [0, {sizes[1] - 1}], "
            f"d0 + d1 in [0, {limit}]"
        )

    one, other = some_map("one"), some_map("other")
    both = one.then(other)
    for before in (one, both):
        count["maps"] += 1
        found = before.simplify(budget=BUDGET)
        terms, conditions = [*map(program_of, before.results)], [*map(program_of, before.constraints)]
        after, inside = [*map(program_of, found.results)], [*map(program_of, found.constraints)]
        ranges = {str(d.value): (d.vmin, d.vmax) for d in found.dims}
        for point in points_of(before.dims, source, 200):
            named = dict(zip([str(d.value) for d in found.dims], point.values(), strict=True))
            holds = all(condition(point) for condition in conditions)
            kept = all(low <= named[n] <= high for n, (low, high) in ranges.items()) and all(c(named) for c in inside)
            if holds != kept or (holds and [t(point) for t in terms] != [t(named) for t in after]):
                given = f"given = IndexingMap.parse({str(before)!r})"
                raise shown_by(given, f"# at {point}", "assert given.check(given.simplify()).equal")


def fuzz_mlir(number: int, count: Counter[str]) -> None:
    text = random_mlir.Writer(number).text()
    count["mlir"] += 1
    found = mlir.rewrite(text, budget=BUDGET)
    for arguments in [(5, 3, 1), (-7, 100, 0), (2**40, -(2**31), 1)]:
        if mlir_evaluator.run(found, arguments) != mlir_evaluator.run(text, arguments):
            wanted = f"assert run(answer(text), {arguments}) == run(text, {arguments})"
            raise shown_by(f"text = Writer({number}).text()", wanted)


def compilers() -> list[tuple[str, list[str]]]:
    """Every compiler here, at every level, and with the sanitizers."""
    found = []
    for name in ("gcc", "clang"):
        if shutil.which(name):
            found += [(name, ["-std=c99", level]) for level in ("-O0", "-O1", "-O2", "-O3")]
            found.append((name, ["-std=c99", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]))
    return found


COMPILERS = cycle(compilers())
LOWERED = cycle([(flattened, 1), (simplified, 1), (optimized, 1), (optimized, 4)])


def fuzz_kernels(number: int, count: Counter[str]) -> None:
    """Twenty kernels in one program, by the next compiler and the next way to lower them."""
    seeds = range(20 * number, 20 * number + 20)
    (compiler, flags), (prepare, lanes) = next(COMPILERS), next(LOWERED)
    kernels = [random_kernel(n) for n in seeds]
    inputs = contents()
    with tempfile.TemporaryDirectory() as folder, patch.dict("os.environ", {"CC": compiler}):
        found = run_in_c([prepare(k) for k in kernels], Path(folder), flags, lanes)
    count[f"kernels, {compiler} {' '.join(flags[1:])}"] += len(kernels)
    for n, kernel, outputs in zip(seeds, kernels, found, strict=True):
        for name, values in kernel.reference({b.name: inputs[b.name] for b in kernel.inputs}).items():
            if not np.array_equal(outputs[name], values.ravel()):
                raise shown_by(
                    f"kernel = {prepare.__name__}(random_kernel({n}))",
                    f"# array {name} differs by {compiler} {' '.join(flags)}",
                    f"run_in_c([kernel], tmp_path, {flags!r}, {lanes})",
                    fixture="tmp_path",
                )


def mutated(data: bytes, source: random.Random) -> bytes:
    """The bytes with a few changed, left out, doubled or put in."""
    found = bytearray(data)
    for _ in range(source.choice([1, 1, 2, 5])):
        at = source.randrange(len(found) + 1)
        match source.randrange(4):
            case 0:
                found[at : at + 1] = bytes([source.randrange(256)])
            case 1:
                del found[at : at + source.choice([1, 3, 20])]
            case 2:
                found[at:at] = found[at : at + source.choice([1, 5, 30])]
            case _:
                found[at:at] = source.choice([b"-1", b"9" * 30, b"[", b"{", b'"', b"//", b"null", b"inf()", b"\\u0000"])
    return bytes(found)


def fuzz_corpora(number: int, count: Counter[str]) -> None:
    """Lines of corpora with bytes changed: each is a row, and no error is one of eqsat's own."""
    source = random.Random(number)
    lines = [*(DATA / "hand.jsonl").read_bytes().splitlines(), *_examples()]
    for _ in range(20):
        line = mutated(source.choice(lines), source)
        count["corpora, bytes"] += 1
        row = run_line(line, 1, Settings(budget=BUDGET))
        text = json.dumps(row)
        error = row.get("error", "")
        if "\n" in text or error.split(":")[0].endswith("Error") or "is wrong" in error:
            wanted = "assert not row['error'].split(':')[0].endswith('Error')"
            raise shown_by(f"row = run_line({line!r}, 1, Settings())", f"# {error}", wanted)


def _examples() -> list[bytes]:
    text = (Path(__file__).parents[2] / "docs" / "corpora.md").read_bytes()
    return [line for line in text.splitlines() if line.startswith(b'{"id"') and b'"out"' not in line]


HLO = b"""HloModule m

ENTRY e {
  p0 = f32[4,6]{1,0} parameter(0)
  r = f32[24]{0} reshape(p0)
  s = f32[12]{0} slice(r), slice={[0:24:2]}
  b = f32[3,12]{1,0} broadcast(s), dimensions={1}
  ROOT t = f32[12,3]{1,0} transpose(b), dimensions={1,0}
}
"""


def fuzz_hlo(number: int, count: Counter[str]) -> None:
    """Modules with bytes changed: each is read, or refused in one line."""
    source = random.Random(number)
    for _ in range(20):
        text = mutated(HLO, source).decode(errors="replace")
        count["hlo, bytes"] += 1
        try:
            hlo.parse(text)
        except Exception as error:
            if not isinstance(error, ValueError) or "\n" in str(error):
                raised = f"# {type(error).__name__}: {str(error)!r}"
                raise shown_by(raised, f"refused(lambda: hlo.parse({text!r}))") from error


Array = np.ndarray[Any, np.dtype[Any]]


def _listed(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _padded(x: Array, low: int, high: int, interior: int) -> Array:
    """The first axis spread, padded with what depends on nothing, and cut where padding is negative."""
    wide = np.zeros(((len(x) - 1) * (interior + 1) + 1 + 4, *x.shape[1:]), bool)
    wide[2:-2:][:: interior + 1] = x
    return wide[2 - low : len(wide) - 2 + high]


def _step(x: Array, source: random.Random) -> tuple[str, Array]:
    """An operation and its attributes, and the array that it makes; the last axis says what an element depends on."""
    rank, some = x.ndim - 1, source.choice
    axes = source.sample(range(rank), rank)
    sizes = x.shape[:-1]
    match some(["transpose", "reverse", "slice", "pad", "broadcast", "reshape", "reduce"]):
        case "transpose":
            return f"transpose(X), dimensions={_listed(axes)}", x.transpose([*axes, rank])
        case "reverse":
            return f"reverse(X), dimensions={_listed(axes[:1])}", np.flip(x, axes[:1]) if axes else x
        case "slice":
            parts = [(start := source.randrange(n), source.randint(start + 1, n), some([1, 1, 2])) for n in sizes]
            text = ", ".join([f"[{a}:{b}:{step}]" for a, b, step in parts])
            return f"slice(X), slice={{{text}}}", x[tuple(slice(*part) for part in parts)]
        case "pad" if rank:
            low, high, interior = some([0, 1, 2, -1]), some([0, 1, 2]), some([0, 0, 1, 2])
            if (made := _padded(x, low, high, interior)).size:
                zeros = "".join(["x0_0"] * (rank - 1))
                return f"pad(X, zero), padding={low}_{high}_{interior}{zeros}", made
        case "reduce" if rank:
            return f"reduce(X, zero), dimensions={_listed(axes[:1])}", x.any(axis=axes[0])
        case "broadcast" if rank < 4:
            text = f"broadcast(X), dimensions={_listed(range(1, rank + 1))}"
            return text, np.broadcast_to(x, (some([1, 2, 3]), *x.shape))
    size = prod(sizes)
    first = some([n for n in range(1, size + 1) if size % n == 0])
    shape = some([[size], [first, size // first], [1, size // first, first]])
    return "reshape(X)", x.reshape([*shape, x.shape[-1]])


def _read_by(of: IndexingMap, sizes: Sequence[int], operand: Sequence[int]) -> Array:
    """Which elements of the operand each element of the output reads by a map, in rows."""
    found = np.zeros((*sizes, *operand), bool)
    results, conditions = [*map(program_of, of.results)], [*map(program_of, of.constraints)]
    for values in product(*[range(v.vmin, v.vmax + 1) for v in of.variables]):
        point = dict(zip([str(v.value) for v in of.variables], values, strict=True))
        if all(condition(point) for condition in conditions):
            found[(*values[: len(of.dims)], *[result(point) for result in results])] = True
    return found.reshape(prod(sizes), -1)


def fuzz_chains(number: int, count: Counter[str]) -> None:
    """Chains of HLO's operations on one array: their maps, and what each element depends on if they are run."""
    source = random.Random(number)
    for _ in range(10):
        sizes = [source.randint(1, 6) for _ in range(source.choice([1, 2, 2, 3]))]
        x: Array = np.eye(prod(sizes), dtype=bool).reshape([*sizes, -1])
        lines = ["zero = f32[] constant(0)", f"v0 = f32{sizes} parameter(0)"]
        for n in range(source.randint(1, 6)):
            text, made = _step(x, source)
            if made.size > 30_000:
                break
            x = made
            lines.append(f"v{n + 1} = f32{list(x.shape[:-1])} {text.replace('X', f'v{n}')}")
        text = "\n".join(["ENTRY e {", *lines, "}"])
        count["hlo, chains"] += 1
        for direction in DIRECTIONS:
            maps = indexing_maps(hlo.parse(text).entry, direction, simplify=lambda m: m.simplify(budget=BUDGET))[0]
            output, is_forward = x.shape[:-1], direction == "output_to_input"
            ends = (output, sizes) if is_forward else (sizes, output)
            wanted = x.reshape(-1, x.shape[-1])
            read = reduce(or_, [_read_by(m, *ends) for m in maps], np.zeros_like(wanted if is_forward else wanted.T))
            if not np.array_equal(read, wanted if is_forward else wanted.T):
                wrong = "# which elements depend on which is wrong"
                raise shown_by(f"module = hlo.parse({text!r})", wrong, f"indexing_maps(module.entry, {direction!r})")


KINDS: dict[str, Callable[[int, Counter[str]], None]] = {
    "expressions": fuzz_expressions,
    "sizes": fuzz_sizes,
    "digits": fuzz_digits,
    "bounds": fuzz_bounds,
    "graphs": fuzz_graphs,
    "reductions": fuzz_reductions,
    "maps": fuzz_maps,
    "mlir": fuzz_mlir,
    "corpora": fuzz_corpora,
    "hlo": fuzz_hlo,
    "chains": fuzz_chains,
    "kernels": fuzz_kernels,
}


@dataclass
class Report:
    """What was tried, and what failed: a test for each."""

    counts: Counter[str] = field(default_factory=Counter)
    seeds: dict[str, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{name:32} {count:8}" for name, count in sorted(self.counts.items())]
        lines += [f"seeds of {name}: {numbers[0]} to {numbers[-1]}" for name, numbers in self.seeds.items()]
        return "\n".join([*self.failures, *lines, f"{sum(self.counts.values())} tried, {len(self.failures)} failed"])


def fuzz(seconds: float, first: int = 0, kinds: Sequence[str] = tuple(KINDS), rounds: int = 10**9) -> Report:
    """Try the kinds in turn, seed after seed, until the time is up or each had its rounds."""
    report = Report()
    ends = time.monotonic() + seconds
    for number in range(first, first + rounds):
        for kind in kinds:
            if time.monotonic() > ends:
                return report
            try:
                KINDS[kind](number, report.counts)
            except WrongAnswerError as wrong:
                report.failures.append(f"# {kind}, seed {number}\n{wrong}\n")
            except Exception:
                report.failures.append(f"# {kind}, seed {number}\n# {traceback.format_exc()}\n")
            report.seeds.setdefault(kind, []).append(number)
            if report.failures and "seed " + str(number) in report.failures[-1]:
                print(report.failures[-1], file=sys.stderr, flush=True)
    return report


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=0, help="the first")
    options.add_argument("--only", default=",".join(KINDS), help="kinds, comma-separated")
    chosen = options.parse_args()
    kinds = chosen.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        options.error(f"nothing of kind {unknown[0]!r} is tried: choose from {', '.join(KINDS)}")
    report = fuzz(chosen.seconds, chosen.seed, kinds)
    print(report)
    sys.exit(bool(report.failures))


if __name__ == "__main__":
    main()
