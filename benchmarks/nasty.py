"""Inputs of every kind that takes long, and how long each takes beyond the time that it is given.

    python benchmarks/nasty.py [NAME ...] [--seconds 0.2] [-o docs/measurements.md]

The clock is the time that this process computes, so that other programs on the machine change nothing. What a process
makes once (rules compiled, modules loaded) is made before. An input is in time if it takes no more than ``SHARE`` of
what it is given, and ``BESIDE`` seconds: reading, optimising, and writing C where that is asked for.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import pairwise
from operator import and_, mul
from pathlib import Path
from unittest.mock import patch

from eqsat.codegen.nests import function
from eqsat.egraph.budget import Budget
from eqsat.interop.indexing import IndexingMap
from eqsat.kernels import ranges
from eqsat.kernels.kernel import Kernel, Store
from eqsat.kernels.simplification import optimized
from eqsat.lang.expr import Expr, buffer, const, make, var
from eqsat.lang.functions import max_over, maximum, min_over, minimum, sum_over, tdiv, tmod, where
from eqsat.lang.text import parse
from eqsat.lang.traversal import variables
from eqsat.optimizer.front import optimize
from eqsat.theory.arithmetic import late_after

#: What is done within a budget.
Act = Callable[[Budget], object]
#: How much of the time that is given may be taken, and seconds beside it.
SHARE, BESIDE = 1.5, 0.05

#: What the table stands between.
BEGIN, END = "<!-- nasty -->", "<!-- /nasty -->"

V, W = var("v", 0, 99), var("w", 0, 99)


def xs(count: int, high: int = 63) -> list[Expr]:
    return [var(f"x{n}", 0, high) for n in range(count)]


def total(terms: Iterable[Expr]) -> Expr:
    return sum(terms, start=const(0))


def folded(step: Callable[[Expr, Expr], Expr], count: int) -> Expr:
    """A term that holds all before it again and again, with a variable of its own at each step."""
    return reduce(step, xs(count), V)


def deep(step: Callable[[list[Expr], int], Expr], count: int) -> list[Expr]:
    """A term, and others made of those before them, one after the other."""
    terms = [V + W]
    for n in range(1, count):
        terms.append(step(terms, n))
    return terms


def optimising(*roots: Expr, **options: object) -> Act:
    return lambda budget: optimize(list(roots), budget=budget, **options)


def lowering(kernel: Kernel) -> Act:
    def act(budget: Budget) -> object:
        with late_after(budget.ends()):
            return function(optimized(kernel, budget=budget))

    return act


def digits(count: int) -> Expr:
    """The sum of digits of flat indices of as many tensors."""
    found = []
    for n in range(count):
        i, j = var(f"i{n}", 0, 63), var(f"j{n}", 0, 31)
        size = n % 30 + 2
        found.append((i * 32 + j) // size % (n % 7 + 2))
    return total(found)


def flat_in_symbols(count: int) -> Act:
    """The row of a flat index over sizes that are no literals."""
    sizes, indices = [var(f"s{n}", 1, 9) for n in range(count)], [var(f"j{n}", 0, 8) for n in range(count)]
    flat, whole = V, const(1)
    for size, index in zip(sizes, indices, strict=True):
        flat, whole = flat * size + index, whole * size
    return optimising(flat // whole, constraints=[i < s for s, i in zip(sizes, indices, strict=True)])


def reshapes(count: int) -> Act:
    """A map of three dimensions, reshaped again and again."""
    flat = V * 10007 + W
    for n in range(count):
        a, b = n % 13 + 2, n % 7 + 3
        flat = flat % a * b + flat // a % b + flat // (a * b) * (a * b)
    given = IndexingMap((V, W), (), (flat,))
    return lambda budget: given.simplify(budget=budget)


def nested_sums(depth: int) -> Act:
    indices = [var(f"r{n}", 0, 15) for n in range(depth)]
    body = where(total(r * (n + 1) for n, r in enumerate(indices)) % 5 < V % 3, total(indices) // 3, V)
    for n, r in enumerate(indices):
        body = sum_over(body, r, 0, 16 if n % 2 else minimum(V, 16))
    return optimising(body)


def many_reductions(count: int) -> Act:
    r = var("r", 0, 63)
    kinds = (sum_over, max_over, min_over)
    return optimising(
        *[kinds[n % 3](where(r * (n % 5 + 1) < V + n, (r + n) // 3, r % (n + 2)), r, 0, 64) for n in range(count)]
    )


def coupled(count: int) -> Act:
    dims = [f"d{n} in [0, 9]" for n in range(count)]
    sums = [f"d{n} + d{(7 * n + 1) % count} * 2 in [1, {3 + n % 9}]" for n in range(count)]
    given = IndexingMap.parse(f"({', '.join(d.split()[0] for d in dims)}) -> (d0), domain: {', '.join(dims + sums)}")
    return lambda budget: given.simplify(budget=budget)


def lattice(count: int) -> Expr:
    """Minima of which each has the operands of the two before it."""
    pair = (V, W)
    for x in xs(count):
        pair = (pair[1], minimum(pair[0] + x, maximum(pair[1] + 1, x * 2)))
    return pair[1]


def deep_address(depth: int) -> Kernel:
    array, out, k = buffer("A", "f32", (65536,)), buffer("B", "f32", (4096,)), var("k", 0, 4095)
    place = k
    for n in range(depth):
        place = (place * (n % 5 + 2) + place // (n % 11 + 2)) % (65536 - n)
    return Kernel("deep", [Store(out[k], array[place], [k])])


def many_stores(count: int) -> Kernel:
    array, k = buffer("A", "f32", (4096,)), var("k", 0, 4095)
    return Kernel(
        "many",
        [
            Store(buffer(f"B{n}", "f32", (4096,))[k], array[(k // (n % 9 + 2) * 3 + k % (n % 7 + 2) * n) % 4096], [k])
            for n in range(count)
        ],
    )


def selected_elements(count: int) -> Kernel:
    image, out = buffer("X", "f32", (4096,)), buffer("Y", "f32", (100,))
    value = image[V]
    for n in range(count):
        value = where((V * 7 + n) % 100 < n + 5, value, image[V + n * 13])
    return Kernel("selected", [Store(out[V], value, [V])])


def windows(depth: int) -> Kernel:
    """A padded window over each of several axes, of a flat tensor."""
    sizes = [6] * depth
    axes, steps = [var(f"a{n}", 0, 5) for n in range(depth)], [var(f"k{n}", 0, 2) for n in range(depth)]
    array, out = buffer("X", "f32", (6**depth,)), buffer("Y", "f32", (6**depth,))
    flat, place, inside = const(0), const(0), const(0).eq(0)
    for axis, step, size in zip(axes, steps, sizes, strict=True):
        at = axis + step - 1
        flat, place, inside = flat * size + axis, place * size + at, inside & (const(0) <= at) & (at < size)
    value = where(inside, array[place], 0.0)
    for step in steps:
        value = sum_over(value, step, 0, 3)
    return Kernel("windows", [Store(out[flat], value, axes)])


def nest_of(count: int) -> Act:
    """Loops of a nest with many conditions."""
    conditions = [x + y * 2 < 9 + n % 9 for n, (x, y) in enumerate(pairwise(xs(count, 9)))]
    nest = ranges.Nest((ranges.Axis(V),), (V // 3, V % 12 * 7), (reduce(and_, conditions), None))
    return lambda budget: ranges.cheapest(nest, seconds=budget.seconds)


def written(count: int) -> Act:
    """Text, read within the budget."""
    names = {f"x{n}": x for n, x in enumerate(xs(50))}
    text = " + ".join(f"(x{n % 50} * {n % 31 + 1} + {n}) // {n % 13 + 2}" for n in range(count))
    return lambda budget: optimize(text, budget=budget, **dict.fromkeys(names, (0, 63)))


def steep(terms: list[Expr], n: int) -> Expr:
    factor, modulus = (V % 4 + 1, 1009) if n % 2 else (V, 97)
    return maximum(terms[-1] * factor % modulus - V, terms[n // 2] * 2) % 65521


def hulls(count: int) -> Act:
    terms = deep(steep, count)
    given = IndexingMap(variables(terms), (), terms[-1:], [t < t.vmax for t in terms[-9:]])
    return lambda budget: given.simplify(budget=budget)


def alone(count: int) -> list[Expr]:
    i, j = var("i", 0, 31), var("j", 0, 31)
    return [(i * 32 + j + n) // 8 % 4 + (i + j * n) % (n + 3) for n in range(count)]


def swizzled(count: int) -> Expr:
    return folded(lambda t, x: ((t ^ (x << 3)) & 4095 | (t >> 2)) + (x & 7), count)


def conditions(members: int, join: Callable[[Expr, Expr], Expr]) -> Expr:
    return reduce(join, [x < n % 4 + 2 for n, x in enumerate(xs(members, 9))], V < 5)


#: By name, what makes each input.
NASTY: dict[str, Callable[[], Act]] = {
    "sum of 2,000 quotients": lambda: optimising(total((x * 3 + 1) // 7 for x in xs(2000))),
    "sum of 1,000 digits": lambda: optimising(digits(1000)),
    "sum of 3,000 products": lambda: optimising(total(x * n for n, x in enumerate(xs(3000)))),
    "sum of 600 remainders, modulo": lambda: optimising(total(x * 5 % (n + 3) for n, x in enumerate(xs(600))) % 97),
    "products of 150 pairs": lambda: optimising(total(x * y for x, y in pairwise(xs(150)))),
    "200 coprime moduli": lambda: optimising(folded(lambda t, x: (t * 3 + x) % (len(str(x)) * 97 + 1009), 200)),
    "moduli of one another": lambda: optimising(*[V * 101 % n % (n - 1) // 3 for n in range(50, 300)]),
    "500 roots": lambda: optimising(*alone(500)),
    "100 roots with gates": lambda: optimising(*alone(100), gates=[(V * n) % 50 < n % 40 + 3 for n in range(100)]),
    "rules alone, 100 roots": lambda: optimising(*alone(100), theory=False),
    "rules alone, nested": lambda: optimising(folded(lambda t, x: (t * 3 + x) // 2 % 1024, 40), theory=False),
    "greedy, deep": lambda: optimising(
        deep(lambda t, n: (t[-1] + t[n // 2]) // (n % 7 + 2), 2000)[-1], engine="greedy"
    ),
    "greedy, 300 terms": lambda: optimising(
        total(x * (n % 7 + 1) // 3 for n, x in enumerate(xs(300))), engine="greedy"
    ),
    "greedy, 300 gates": lambda: optimising(
        *alone(300), gates=[(V + W * n) % 7 < n % 5 + 1 for n in range(300)], engine="greedy"
    ),
    "rules alone, 50,000 negations": lambda: optimising(
        reduce(lambda t, _: make("neg", t), range(50_000), V), theory=False
    ),
    "60 tdiv and tmod": lambda: optimising(folded(lambda t, x: tmod(t * 5 - x * 7, 1009) + tdiv(t - x, 7), 60)),
    "150 reshapes": lambda: reshapes(150),
    "equality of 100 conditions": lambda: optimising(conditions(100, Expr.eq)),
    "conjunction of 300 comparisons": lambda: optimising(conditions(300, and_)),
    "coupled conditions": lambda: optimising(
        V // 7, gates=[reduce(and_, [x + y * 2 < 9 for x, y in pairwise(xs(90))])]
    ),
    "300 selections": lambda: optimising(folded(lambda t, x: where(x % 4 < 2, t, x // 3), 300)),
    "selections of quotients": lambda: optimising(folded(lambda t, x: where(t % 4 < 2, t // 2, (t + x) % 4096), 60)),
    "constants of 9,000 bits": lambda: optimising(folded(lambda t, x: (t * 2**150 + x) // (2**149 + 1), 60)),
    "sizes that are no literals": lambda: flat_in_symbols(48),
    "remainders by what varies": lambda: optimising(folded(lambda t, x: (t * 5 + x) % (x + 1) + t // (x + 2), 60)),
    "power of a sum": lambda: optimising(parse("(v + 1)**200", {"v": V})),
    "product of 12 sums": lambda: optimising(reduce(mul, [x + y for x, y in pairwise(xs(13))]) // 5),
    "five sums in one another": lambda: nested_sums(5),
    "60 reductions": lambda: many_reductions(60),
    "lattice of minima": lambda: optimising(lattice(60)),
    "minima of products": lambda: optimising(deep(steep, 1500)[-1]),
    "20,000 nested remainders": lambda: optimising(reduce(lambda t, n: (t * 3 + W) % 97, range(20_000), V)),
    "maxima of differences": lambda: optimising(folded(lambda t, x: maximum(t // 2 + x, t - x), 100)),
    "bits swizzled": lambda: optimising(swizzled(80)),
    "no bounds": lambda: optimising(
        total((var(f"n{n}", 0, None) * 3 + V) // (n + 2) % 5 for n in range(150)), constraints=[]
    ),
    "divisors that may be zero": lambda: optimising(
        total((x * 3 + y) // y for x, y in pairwise(xs(100))), unknown_divisors="keep"
    ),
    "divisors in branches": lambda: optimising(
        folded(lambda t, x: where(x < 5, t // (x - 7), t % 97), 60), unknown_divisors="keep"
    ),
    "digits beside their variables": lambda: optimising(
        total((x * 32 + y) // (n % 5 + 2) % 4 for n, (x, y) in enumerate(pairwise(xs(800))))
    ),
    "several answers": lambda: optimising(*alone(60), pareto="live"),
    "exact extraction": lambda: optimising(*alone(60), extract="exact"),
    "trees": lambda: optimising(folded(lambda t, x: (t // 3 + x % 5 + t % 7) % 4096, 60), extract="tree"),
    "text of 30,000 characters": lambda: written(1300),
    "deep facts": lambda: optimising(
        (terms := deep(lambda t, n: (t[-1] + t[n // 2]) // (n % 7 + 2) + V * 3, 2000))[-1],
        constraints=[terms[900] < 30],
    ),
    "map with 60 constraints": lambda: coupled(60),
    "map of minima": lambda: hulls(1000),
    "nest with conditions": lambda: nest_of(40),
    "address of 300 operations": lambda: lowering(deep_address(300)),
    "300 stores": lambda: lowering(many_stores(300)),
    "60 selected elements": lambda: lowering(selected_elements(60)),
    "window over 5 axes": lambda: lowering(windows(5)),
}


def seconds_of(act: Act, seconds: float) -> float:
    """How long an input takes, of the clock that it sees."""
    started = time.perf_counter()
    act(Budget(seconds=seconds))
    return time.perf_counter() - started


def is_in_time(taken: float, seconds: float) -> bool:
    return taken <= SHARE * seconds + BESIDE


def warm() -> None:
    """Make what a process makes once."""
    x = var("x", 0, 99)
    plain = where(x < 5, where(V < 3, x, 2), 2) // 4
    for extra in ([], [x ^ V], [sum_over(where(x < V, x, 0), x, 0, 9)]):
        for options in ({}, {"theory": False}, {"engine": "greedy"}, {"extract": "exact"}):
            optimize([plain, *extra], **options)
    lowering(windows(1))(Budget())


def measured(names: Iterable[str], seconds: float) -> dict[str, float]:
    with patch.object(time, "perf_counter", time.process_time):
        warm()
        found = {}
        for name in names:
            act = NASTY[name]()
            gc.collect()
            found[name] = seconds_of(act, seconds)
            late = "" if is_in_time(found[name], seconds) else "  LATE"
            print(f"{name:32} {found[name] / seconds:7.2f}{late}", flush=True)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    options.add_argument("--seconds", type=float, default=0.2, help="that each input is given")
    options.add_argument("-o", "--output", type=Path, help="write the table into this page, between its marks")
    given = options.parse_args()
    if unknown := [name for name in given.names if name not in NASTY]:
        options.error(f"no input is called {unknown[0]!r}: there are {', '.join(NASTY)}")
    if given.output and not given.output.is_file():
        options.error(f"{given.output} is no file: give a page that is there, such as docs/measurements.md")
    found = measured(given.names or NASTY, given.seconds)
    late = [name for name, taken in found.items() if not is_in_time(taken, given.seconds)]
    print(f"{len(found)} inputs, {len(late)} late: {', '.join(late)}")
    if given.output:
        rows = [f"| {name} | {taken / given.seconds:.2f} |" for name, taken in found.items()]
        table = "\n".join([f"| given {given.seconds:g} s | time over it |", "|---|---:|", *rows])
        before, mark, rest = given.output.read_text().partition(BEGIN)
        given.output.write_text(before + mark + "\n" + table + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
