"""PyTorch Inductor with its indices optimised: equal results, no more divisions, and nothing left behind."""

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any
from uuid import uuid4

import pytest

torch = pytest.importorskip("torch", minversion="2.9")
sympy = pytest.importorskip("sympy")
functional = torch.nn.functional

from torch._inductor.codecache import FxGraphHashDetails  # noqa: E402
from torch._inductor.loop_body import LoopBody  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402
from torch.utils._sympy.functions import FloorDiv, ModularIndexing, PythonMod  # noqa: E402

from eqsat.egraph.budget import Budget  # noqa: E402
from eqsat.interop import inductor  # noqa: E402
from eqsat.interop.limits import INTEROP_LIMITS  # noqa: E402
from eqsat.interop.sympy import from_sympy  # noqa: E402


def im2col(x):
    return functional.unfold(x, 3, padding=1).transpose(1, 2).reshape(-1, 72) + 1


def channel_shuffle(x):
    n, c, h, w = x.shape
    return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h * w) * 2


def permuted(x):
    return x.permute(0, 2, 3, 1).reshape(-1, 12) + 1


def pixel_shuffle(x):
    return functional.pixel_shuffle(x, 2).reshape(2, -1, 4) + 1


def repeated(x):
    return x.reshape(-1).repeat_interleave(6).reshape(-1, 3) * x.reshape(-1)[0]


def padded(x):
    return functional.pad(x, (1, 1, 2, 2)).reshape(2, -1, 6) * 2


def rolled(x):
    return torch.roll(x, 3, 2).reshape(-1, 5) + 1


def concatenated(x):
    return torch.cat([x, x + 1], 1).permute(0, 2, 1, 3).reshape(-1, 20)


def pooled(x):
    return functional.adaptive_avg_pool2d(x, (5, 3)) + 1


PROGRAMS = [im2col, channel_shuffle, permuted, pixel_shuffle, repeated, padded, rolled, concatenated, pooled]
SHAPES = {permuted: (2, 8, 6, 10), padded: (2, 4, 8, 10), pooled: (2, 4, 16, 14)}


@pytest.fixture(autouse=True)
def _clean(monkeypatch) -> Iterator[None]:
    # seconds that a busy machine does not run out of
    monkeypatch.setattr(inductor, "BUDGET", replace(inductor.BUDGET, seconds=20.0))
    torch._dynamo.reset()
    inductor.reset_statistics()
    yield
    inductor.uninstall()
    torch._dynamo.reset()


def compiled(program: Callable, x, dynamic: int | None = None):
    """The result of a program, and the C++ of its kernels."""
    torch._dynamo.reset()
    x = x.clone()
    if dynamic is not None:
        torch._dynamo.mark_dynamic(x, dynamic)
    with torch._inductor.config.patch(fx_graph_cache=False):
        result, code = run_and_get_code(torch.compile(program), x)
    return result, "\n".join(code)


def divisions(code: str) -> tuple[int, int]:
    """Calls of div_floor_integer, and remainders."""
    return code.count("div_floor_integer"), len(re.findall(r"\) % ", code))


STATIC = [(program, None) for program in PROGRAMS]
DYNAMIC = [(permuted, 0), (channel_shuffle, 1), (im2col, 2)]


@pytest.mark.parametrize(("program", "dynamic"), STATIC + DYNAMIC, ids=lambda v: getattr(v, "__name__", str(v)))
def test_results_are_bit_equal_and_divide_no_more(program, dynamic):
    x = torch.randn(SHAPES.get(program, (2, 8, 6, 10)), generator=torch.Generator().manual_seed(7))
    plain, before = compiled(program, x, dynamic)
    assert inductor.statistics().kernels == 0
    with inductor.enabled():
        result, after = compiled(program, x, dynamic)
    assert torch.equal(result, plain)
    assert torch.equal(result, program(x))
    assert sum(divisions(after)) <= sum(divisions(before))
    done = inductor.statistics()
    assert set(done.kept) <= {"costs no less"}
    if program not in (repeated, concatenated):
        assert done.changed > 0
        assert sum(divisions(after)) < sum(divisions(before))


@pytest.mark.parametrize(
    ("program", "dynamic", "shape"),
    [
        (permuted, 0, (5, 8, 6, 10)),
        (channel_shuffle, 1, (2, 14, 6, 10)),
        (channel_shuffle, 2, (2, 8, 11, 10)),
        (im2col, 2, (2, 8, 9, 10)),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_dynamic_programs_are_right_for_other_sizes(program, dynamic, shape):
    small, other = torch.randn(2, 8, 6, 10), torch.randn(shape)
    torch._dynamo.mark_dynamic(small, dynamic)
    with inductor.enabled(), torch._inductor.config.patch(fx_graph_cache=False):
        run = torch.compile(program)
        assert torch.equal(run(small), program(small))
        assert inductor.statistics().changed > 0
        kernels = inductor.statistics().kernels
        assert torch.equal(run(other), program(other))
        # it was not compiled again
        assert inductor.statistics().kernels == kernels


def test_code_that_is_kept_on_disk_is_of_one_kind():
    import torch.compiler.config as settings

    x = torch.randn(2, 8, 6, 10)
    with torch._inductor.config.patch(fx_graph_cache=True), settings.patch(cache_key_tag=uuid4().hex):
        kernels = []
        for context in (nullcontext, inductor.enabled, inductor.enabled):
            torch._dynamo.reset()
            with context():
                assert torch.equal(torch.compile(rolled)(x), rolled(x))
            kernels.append(inductor.statistics().kernels)
    # the first run's code is not taken by the second, but the second's by the third
    assert kernels[0] == 0
    assert kernels[1] > 0
    assert kernels[2] == kernels[1]


i, j, k = [sympy.Symbol(name, integer=True, nonnegative=True) for name in ("i", "j", "k")]
any_sign = sympy.Symbol("z", integer=True)
SIZES = {i: 12, j: 10}


def one(index: Any, sizes: Mapping[Any, int] = SIZES) -> Any:
    return inductor.improved({"index0": index}, sizes)["index0"]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (FloorDiv(10 * i + j, 10), i),
        (ModularIndexing(10 * i + j, 1, 10), j),
        (ModularIndexing(10 * i + j, 10, 6), ModularIndexing(i, 1, 6)),
        (ModularIndexing(ModularIndexing(i, 1, 8), 2, 4), ModularIndexing(i, 2, 4)),
        (FloorDiv(i, 4) * 4 + ModularIndexing(i, 1, 4), i),
        (FloorDiv(i - 7, 4), FloorDiv(i - 7, 4)),
        (ModularIndexing(i, 2, 3) + 7 * j, ModularIndexing(i, 2, 3) + 7 * j),
        # Inductor's simplifier takes divisors for positive
        (14 * FloorDiv(16 * j, 5) + FloorDiv(14 * i, 3), None),
        # the base of a ModularIndexing must not be negative
        (PythonMod(PythonMod(i - 7, 8), 4), ModularIndexing(i + 1, 1, 4)),
        (40 * FloorDiv(i, 3) + 7 * ModularIndexing(20 * i + 2 * j, 4, 15) + FloorDiv(10 * i + j, 20), None),
    ],
)
def test_indices_are_equal_at_every_point(index, expected):
    found = one(index)
    for values in product(range(SIZES[i]), range(SIZES[j])):
        point = dict(zip((i, j), map(sympy.Integer, values), strict=True))
        assert found.xreplace(point) == index.xreplace(point), point
    assert expected is None or found == expected
    assert all(e.args[1].is_positive for e in found.atoms(FloorDiv))


def random_index(random: Random, depth: int) -> Any:
    if not depth:
        return random.choice([i, j, 10 * i + j, 12 * j + i])
    x, y = random_index(random, depth - 1), random_index(random, depth - 1)
    divisor, modulus = random.choice([2, 3, 4, 6, 10]), random.choice([2, 3, 5, 12])
    return random.choice(
        [
            x + random.randint(1, 9) * y,
            FloorDiv(x, divisor),
            FloorDiv(x - y, divisor),
            ModularIndexing(x, divisor, modulus),
            ModularIndexing(x, 1, modulus) + modulus * FloorDiv(x, modulus),
        ]
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_indices_are_equal_at_every_point(seed):
    index = random_index(Random(seed), 3)
    found = one(index)
    for values in product(range(SIZES[i]), range(SIZES[j])):
        point = dict(zip((i, j), map(sympy.Integer, values), strict=True))
        assert found.xreplace(point) == index.xreplace(point), point
    for remainder in found.atoms(ModularIndexing) - index.atoms(ModularIndexing):
        base = remainder.args[0]
        assert all(base.xreplace({i: sympy.Integer(a), j: sympy.Integer(b)}) >= 0 for a in range(12) for b in range(10))


def test_symbols_outside_of_a_compilation_have_no_bounds():
    n = sympy.Symbol("n", integer=True)
    indices = {"index0": FloorDiv(10 * n + j, 10), "index1": FloorDiv(10 * i + j, 10)}
    assert inductor.improved(indices, SIZES) == {**indices, "index1": i}
    # of an unknown device, which may have 32 bits
    assert inductor.statistics().kept == {"width": 1}


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (ModularIndexing(i - 7, 1, 4), "sign"),
        (FloorDiv(i + 7, -4), "sign"),
        (FloorDiv(i, 4) + sympy.sqrt(j), "class"),
        (FloorDiv(i, 4) + sympy.Function("f")(j), "class"),
    ],
)
def test_what_is_in_doubt_stays(index, reason):
    indices = {"index0": index, "index1": FloorDiv(10 * i + j, 10), "index2": 3 * i}
    assert inductor.improved(indices, SIZES) == {**indices, "index1": i}
    done = inductor.statistics()
    assert (done.kernels, done.sites, done.changed, done.kept) == (1, 2, 1, {reason: 1})


MODULAR = ModularIndexing
#: What is asked of Inductor's simplifier, and what is left of it behind that.
SIMPLIFIED = [
    (FloorDiv(6 * i + j, 6), {i: 9, j: 6}, i),
    (MODULAR(j, 1, 10) + 10 * MODULAR(j + 10 * i, 10, 2), {i: 3, j: 10}, j + 10 * MODULAR(i, 1, 2)),
    (MODULAR(j, 1, 10) + 10 * MODULAR(j + 10 * i, 10, 2), {i: 2, j: 10}, j + 10 * i),
    (FloorDiv(MODULAR(i, 1, 48), 6), {i: 200}, MODULAR(i, 6, 8)),
    (FloorDiv(MODULAR(i, 1, 20), 6), {i: 200}, FloorDiv(MODULAR(i, 1, 20), 6)),
    (FloorDiv(i + j + k, 8), {i: 9, j: 6, k: 2}, FloorDiv(i + j + k, 8)),
    (MODULAR(i, 3, 8) + 8 * MODULAR(i, 24, 5), {i: 999}, MODULAR(i, 3, 40)),
    (7 * FloorDiv(i, 21) + MODULAR(i, 3, 7), {i: 999}, FloorDiv(i, 3)),
    (MODULAR(i, 1, 6) + 8 * MODULAR(i, 8, 5), {i: 999}, MODULAR(i, 1, 6) + 8 * MODULAR(i, 8, 5)),
    # more than Inductor finds
    (MODULAR(MODULAR(31 * i + j, 1, 60) + 1, 1, 20), {i: 13, j: 31}, MODULAR(11 * i + j + 1, 1, 20)),
    (MODULAR(MODULAR(i, 1, 12) + 1, 3, 4), {i: 90}, MODULAR(i + 1, 3, 4)),
]


@pytest.mark.parametrize(("index", "sizes", "expected"), SIMPLIFIED, ids=str)
def test_what_inductor_has_simplified_is_as_cheap_or_cheaper(index, sizes, expected):
    from torch._inductor.sizevars import SizeVarAllocator

    theirs = SizeVarAllocator().simplify_with_ranges(index, sizes)
    found = one(theirs, sizes)
    assert found == expected
    costs = [
        inductor._printed_cost(from_sympy(e, {v: (0, n - 1) for v, n in sizes.items()}).terms[0])
        for e in (found, theirs)
    ]
    assert costs[0] <= costs[1]
    for values in product(*[range(n) for n in sizes.values()]):
        point = dict(zip(sizes, map(sympy.Integer, values), strict=True))
        assert found.xreplace(point) == index.xreplace(point), point


def test_a_product_of_sums_costs_what_it_is_multiplied_out(monkeypatch):
    """Inductor multiplies out: what one factor divides is then computed in each addend."""
    monkeypatch.setattr(inductor, "_on_processor", lambda: True)
    n = sympy.Symbol("n", integer=True, positive=True)
    index = FloorDiv(i, FloorDiv(n + 4, 4)) + 4 * ModularIndexing(i, 1, FloorDiv(n + 4, 4))
    assert one(index, {i: 4 * FloorDiv(n + 4, 4)}) == index
    assert inductor.statistics().kept == {"costs no less": 1}


def test_quotients_of_sizes_are_divisors_like_others(monkeypatch):
    """The rows and columns of a window whose step is 2: their numbers are quotients of the sizes of the image."""
    monkeypatch.setattr(inductor, "_on_processor", lambda: True)
    m, n = sympy.symbols("m n", integer=True, positive=True)
    rows, columns = FloorDiv(m + 1, 2), FloorDiv(n + 1, 2)
    place, sizes = MODULAR(i, 3, rows * columns), {i: 6 * rows * columns, j: 9}
    row, column = MODULAR(place, columns, rows), MODULAR(place, 1, columns)
    indices = {
        "index0": FloorDiv(j, 3) + 2 * row,
        "index1": MODULAR(j, 1, 3) + 2 * column,
        "index2": 3 * m * n * FloorDiv(i, 3 * rows * columns) + n * FloorDiv(j, 3) + 2 * n * row + 2 * column - 1,
    }
    found = inductor.improved(indices, sizes)
    assert "time" not in inductor.statistics().kept
    assert found["index0"] == FloorDiv(j, 3) + 2 * MODULAR(i, 3 * columns, rows)
    assert found["index1"] == MODULAR(j, 1, 3) + 2 * MODULAR(i, 3, columns)
    for sizes_of_image in product((1, 2, 5), (1, 4, 7)):
        known = dict(zip((m, n), map(sympy.Integer, sizes_of_image), strict=True))
        for a, b in product(range(int(sizes[i].xreplace(known))), range(9)):
            point = {**known, i: sympy.Integer(a), j: sympy.Integer(b)}
            for name, index in indices.items():
                assert found[name].xreplace(point) == index.xreplace(point), point


def test_an_index_stays_where_another_has_its_quotients():
    row, column = MODULAR(i, 17, 100), MODULAR(6 * i + j, 1, 102)
    flat = 100 * row + 9600 * FloorDiv(i, 1700) + column
    sizes = {i: 3400, j: 6}
    alone = one(flat, sizes)
    assert alone != flat
    found = inductor.improved({"index0": row, "index1": column, "index2": flat}, sizes)
    assert found["index2"] == flat
    assert inductor.statistics().kept["shared"] == 1


def test_an_error_stays_behind_the_seam(monkeypatch):
    def failing(*args, **options):
        raise RuntimeError("no answer")

    monkeypatch.setattr(inductor, "optimize", failing)
    index = FloorDiv(10 * i + j, 10)
    assert one(index) is index
    assert inductor.statistics().kept == {"error": 1}


def test_what_runs_out_of_time_stays(monkeypatch):
    monkeypatch.setattr(inductor, "BUDGET", Budget(seconds=0.0))
    index = 40 * FloorDiv(i, 3) + 7 * ModularIndexing(20 * i + 2 * j, 4, 15) + FloorDiv(10 * i + j, 20)
    assert one(index) is index
    assert inductor.statistics().kept == {"time": 1}


@pytest.mark.parametrize(("on_processor", "reason"), [(False, {"width": 1}), (True, {})])
def test_other_devices_have_32_bits(monkeypatch, on_processor, reason):
    monkeypatch.setattr(inductor, "_on_processor", lambda: on_processor)
    large = 2**24
    # as one quotient less, the terms are large before they are subtracted
    index = large * ModularIndexing(i, 1, 128) + FloorDiv(i, 128)
    found = one(index, {i: 2**14})
    assert inductor.statistics().kept == reason
    assert (found == index) == bool(reason)


def test_kernels_of_one_structure_are_solved_once():
    assert one(FloorDiv(10 * i + j, 10)) == i
    assert one(FloorDiv(10 * k + j, 10), {k: 12, j: 10}) == k
    assert inductor.statistics().cached == 1
    assert one(FloorDiv(10 * k + j, 10), {k: 12, j: 11}) != k
    assert inductor.statistics().cached == 1


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("eqsat.interop.drop_in.INTEROP_LIMITS", replace(INTEROP_LIMITS, kept_kernels=2))
    # 3 is forgotten when 5 is asked for
    for factor in (3, 4, 5, 5, 4, 3):
        one(FloorDiv(factor * i + j, factor))
    assert inductor.statistics().cached == 2


def test_threads_get_their_own_answers():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: one(FloorDiv((10 + n % 3) * i + j, 10 + n % 3)), range(24)))
    assert found == [i] * 24
    assert inductor.statistics().kernels == 24


def test_what_is_installed_is_undone(monkeypatch):
    def seams() -> tuple[Any, ...]:
        return LoopBody._init_with_tracing, LoopBody._init_with_copy, FxGraphHashDetails.__init__

    originals = seams()
    inductor.install()
    inductor.install()
    with inductor.enabled():
        inductor.uninstall()
    assert not set(seams()) & set(originals)
    inductor.uninstall()
    assert seams() == originals
    assert not inductor.install_if_asked()
    assert seams() == originals
    monkeypatch.setenv("EQSAT_INDUCTOR", "1")
    assert inductor.install_if_asked()
    assert not set(seams()) & set(originals)
