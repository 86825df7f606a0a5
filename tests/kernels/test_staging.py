"""Stages: large reductions in two, intermediates kept or inlined, by policy and by cost."""

from __future__ import annotations

import numpy as np
import pytest

import eqsat
from eqsat.kernels.kernel import Kernel, Store
from eqsat.kernels.simplification import simplified
from eqsat.kernels.staging import (
    Decision,
    Intermediate,
    Pipeline,
    SplitLimits,
    by_policy,
    cheaper,
    decide,
    inlined,
    output_ratio,
    split_reduction,
    two_stages,
)
from eqsat.lang.expr import Expr, buffer, var
from eqsat.lang.functions import max_over, maximum, minimum, sum_over, where
from eqsat.lang.ops import REDUCTIONS
from eqsat.lang.traversal import topological

STAGES = [
    # shape, reduced axes, expanded axes; the axis that splits, partial results, values of each
    ([65536], [0], [], (0, 256, 256)),
    ([131072], [0], [], (0, 256, 512)),
    ([100000], [0], [], (0, 250, 400)),
    ([32770], [0], [], (0, 226, 145)),
    ([1000, 100000], [1], [], (1, 250, 400)),
    ([100, 50, 100000], [2], [1], (2, 250, 400)),
    ([65537, 512], [0, 1], [], (1, 256, 2)),
    ([65537, 256], [0, 1], [], (1, 256, 1)),
    # at the threshold and below it
    ([32768], [0], [], None),
    ([1000, 1000], [1], [], None),
    ([1000], [0], [], None),
    ([100, 500, 1000], [1], [1], None),
    # a prime extent; no factor between 8 and 256; copies of one element; too many outputs
    ([65537], [0], [], None),
    ([7 * 65537], [0], [], None),
    ([65536], [0], [0], None),
    ([2**20, 65536], [1], [], None),
]


@pytest.mark.parametrize(("shape", "axes", "expanded", "split"), STAGES, ids=[str(row[:3]) for row in STAGES])
def test_a_large_reduction_splits_at_a_factor(shape, axes, expanded, split):
    found = two_stages(shape, axes, iter(expanded))
    assert (None if found is None else (found.axis, found.outer, found.inner)) == split
    if found is not None:
        data = np.zeros(found.split_shape, dtype=np.int8)
        partial = data.sum(axis=found.first_axes)
        kept = [extent for axis, extent in enumerate(shape) if axis not in axes]
        assert list(partial.sum(axis=found.last_axis).shape) == kept


def test_what_a_pipeline_lacks_is_named():
    i = var("i", 0, 2)
    kernel = Kernel("k", [Store(buffer("OUT", "i32", (3,))[i], buffer("IN", "i32", (3,))[i], [i])])
    with pytest.raises(TypeError, match="kernel 'k' lacks IN"):
        Pipeline([kernel]).reference({})


@pytest.mark.parametrize(("outputs", "outer"), [(2**14, 256), (2**15, 128), (2**19, 8)])
def test_there_are_no_more_partial_results_than_may_be_in_all(outputs, outer):
    found = two_stages([outputs, 2**16], [1])
    assert found is not None
    assert found.outer == outer


def test_limits_are_parameters():
    assert two_stages([64], [0], limits=SplitLimits(32)).outer == 32
    assert two_stages([64], [0], limits=SplitLimits(32, most_factor=16)).outer == 16
    assert two_stages([64], [0], limits=SplitLimits(64)) is None


@pytest.mark.parametrize("given", [([0, 4], [0]), ([4], [1])])
def test_impossible_reductions_are_refused(given):
    with pytest.raises(ValueError, match=r"has no elements|are not all axes"):
        two_stages(*given)


I, R = var("i", 0, 2), var("r", 0, 2**16 - 1)  # noqa: E741
A, F = buffer("A", "i32", (3, 2**16)), buffer("F", "f32", (3, 2**16))
SUM, TOP, FSUM = buffer("S", "i64", (3,)), buffer("T", "i32", (3,)), buffer("G", "f32", (3,))
LARGE = [
    # store, whether floating-point sums may be reassociated, how many kernels
    (Store(SUM[I], sum_over(A[I, R], R, 0, 2**16), [I]), False, 2),
    (Store(SUM[I], sum_over(A[I, R] % 5 * R, R, 0, 2**16), [I]), False, 2),
    (Store(SUM[I], sum_over(A[I, R], R, 2**14, 2**16), [I], I < 2), False, 2),
    (Store(TOP[I], max_over(A[I, R], R, 0, 2**16), [I]), False, 2),
    (Store(FSUM[I], max_over(F[I, R], R, 0, 2**16), [I]), False, 2),
    (Store(FSUM[I], sum_over(F[I, R], R, 0, 2**16), [I]), True, 2),
    (Store(FSUM[I], sum_over(F[I, R], R, 0, 2**16), [I]), False, 1),
    (Store(SUM[I], sum_over(A[I, R], R, 0, 2**15), [I]), False, 1),
    (Store(SUM[I], sum_over(A[I, R], R, 0, A[0, 0] % 9), [I]), False, 1),
    (Store(TOP[I], A[I, 0], [I]), False, 1),
]


@pytest.mark.parametrize(("store", "reassociate", "kernels"), LARGE, ids=[str(row[0])[:60] for row in LARGE])
def test_a_kernel_in_two_stages_computes_the_same(store: Store, reassociate: bool, kernels: int):
    kernel = Kernel("total", [store])
    found = split_reduction(kernel, reassociate=reassociate)
    assert len(found.kernels) == kernels
    source = np.random.default_rng(0).integers(-100, 100, (3, 2**16))
    arrays = {"A": source.astype(np.int32), "F": source.astype(np.float32)}
    given = {b.name: arrays[b.name] for b in kernel.inputs}
    want = kernel.reference(given)[store.array.name]
    assert np.array_equal(found.reference(given)[store.array.name], want)
    programs = [eqsat.compile(stage, reassociate=reassociate) for stage in found.kernels]
    assert np.array_equal(found.run(programs, given)[store.array.name], want)


M, H, W = buffer("M", "i32", (400, 300)), buffer("H", "f32", (400, 300)), buffer("W", "i32", (5, 40000))
ROW, COLUMN, WIDE = var("row", 0, 4), var("column", -300, -1), var("wide", 0, 39999)
P, N = var("i", 0, 399), var("n", -9, 399)
EACH, MEAN, ONE = buffer("EACH", "i64", (400,)), buffer("MEAN", "f32", (400,)), buffer("ONE", "i64", (1,))


def over_all(reduce, element):
    return reduce(reduce(element[P, COLUMN + 300], COLUMN, -300, 0), P, 0, 400)


TALLEST, LINE = max_over(W[ROW, WIDE], WIDE, 0, 40000), sum_over(M[P, COLUMN + 300], COLUMN, -300, 0)
LOW = SplitLimits(64, 2, 16)
WITHIN = [
    # the stores, the limits, and the shapes of the partial results of each stage
    # reductions by one operator, one in the other, are large together
    ([Store(ONE[0], over_all(sum_over, M))], None, [[(200,)]]),
    # a reduction is split wherever it is in the value, for the loops that it depends on
    ([Store(EACH[P], M[P, 0] * 7 - over_all(sum_over, M) // 120000, [P])], None, [[(200,)]]),
    ([Store(MEAN[P], H[P, 0] - over_all(sum_over, H) / 120000.0, [P])], None, [[(200,)]]),
    ([Store(ONE[0], sum_over(TALLEST * ROW, ROW, 0, 5))], None, [[(5, 250)]]),
    ([Store(EACH[P], sum_over(TALLEST * (ROW + P), ROW, 0, 5), [P])], None, [[(5, 250)]]),
    ([Store(EACH[P], LINE + LINE % 7, [P], P < N)], LOW, [[(400, 15)]]),
    (
        [Store(EACH[P], sum_over(sum_over(M[P, COLUMN + 300] * ROW, ROW, 1, 4), COLUMN, -300, 0), [P])],
        LOW,
        [[(400, 15)]],
    ),
    # all stores of a kernel at once; two of one reduction have its partial results once
    (
        [
            Store(ONE[0], over_all(max_over, M) + over_all(sum_over, M)),
            Store(EACH[P], over_all(sum_over, M) + P, [P]),
        ],
        None,
        [[(200,), (200,)]],
    ),
    # a first stage that is large is split too, while there are factors
    (
        [Store(ONE[0], over_all(sum_over, M))],
        SplitLimits(100, 2, 16),
        [[(16, 5, 5, 15)], [(16, 5, 5)], [(16, 5)], [(16,)]],
    ),
    ([Store(ONE[0], over_all(sum_over, M))], SplitLimits(100, 2, 16, 100), [[(16, 5)], [(16,)]]),
    # an axis along which all values are equal is not one to split at
    ([Store(ONE[0], sum_over(sum_over(M[P, 0] % 7, ROW, 0, 5), P, 0, 400))], LOW, [[(16, 5)], [(16,)]]),
    ([Store(ONE[0], sum_over(sum_over(M[0, 0] % 7, ROW, 0, 5), P, 0, 400))], LOW, []),
    # where the divisor is zero nothing is divided by it
    ([Store(EACH[P], sum_over(M[P, COLUMN + 300] // N, COLUMN, -300, 0), [P], N > 0)], LOW, [[(400, 15)]]),
    ([Store(EACH[P], where(N > 0, sum_over(M[P, COLUMN + 300] // N, COLUMN, -300, 0), 0), [P])], LOW, []),
    ([Store(EACH[P], 1 + sum_over(M[P, COLUMN + 300] // N, COLUMN, -300, 0), [P], N > P)], LOW, [[(400, 15)]]),
    ([Store(EACH[P], 1 + sum_over(M[0, COLUMN + 300] // (N + 10), COLUMN, -300, 0), [P], N > P)], LOW, [[(15,)]]),
    # the ranges around it are literals too, and so is its own
    ([Store(ONE[0], sum_over(TALLEST * ROW, ROW, 0, minimum(maximum(N, 0), 5)))], None, []),
    ([Store(ONE[0], sum_over(W[0, WIDE], WIDE, 0, 40000 + minimum(N, 0)))], None, []),
]


@pytest.mark.parametrize(("stores", "limits", "stages"), WITHIN, ids=[str(row[0][0])[:90] for row in WITHIN])
def test_reductions_within_values_are_split(stores: list[Store], limits: SplitLimits | None, stages: list[list[tuple]]):
    kernel = Kernel("total", stores)
    found = split_reduction(kernel, limits or SplitLimits(), reassociate=True)
    assert found.kernels[-1].outputs == kernel.outputs
    assert [[store.array.shape for store in stage.stores] for stage in found.kernels[:-1]] == stages
    source = np.random.default_rng(5)
    arrays = {
        "M": source.integers(-1000, 1000, (400, 300)).astype(np.int32),
        "H": source.integers(-8, 8, (400, 300)).astype(np.float32),
        "W": source.integers(-1000, 1000, (5, 40000)).astype(np.int32),
    }
    given, parameters = {b.name: arrays[b.name] for b in kernel.inputs}, {str(v.value): 3 for v in kernel.parameters}
    want = kernel.reference(given, **parameters)
    programs = [eqsat.compile(stage, reassociate=True) for stage in found.kernels]
    for outputs in (found.reference(given, **parameters), found.run(programs, given, **parameters)):
        assert all(np.array_equal(outputs[name], array) for name, array in want.items())


def test_a_kernel_with_a_name_that_no_buffer_may_have_is_split():
    kernel = Kernel("3x3 pool", [Store(TOP[I], max_over(A[I, R], R, 0, 2**16), [I])])
    assert [stage.name for stage in split_reduction(kernel).kernels] == ["3x3 pool_first", "3x3 pool"]


def test_parameters_of_a_pipeline_are_those_of_its_kernels():
    n, k = var("n", 0, 9), var("k", 0, 7)
    a, b, c = (buffer(name, "i32", (8,)) for name in "ABC")
    pipeline = Pipeline(
        [Kernel("one", [Store(b[k], a[k] % 8 + 1, [k])]), Kernel("two", [Store(c[k], b[k] % 8 + n, [k])])]
    )
    given = {"A": np.arange(8, dtype=np.int32)}
    programs = [eqsat.compile(kernel) for kernel in pipeline.kernels]
    want = (np.arange(8) + 1) % 8 + 3
    assert np.array_equal(pipeline.reference(given, n=3)["C"], want)
    assert np.array_equal(pipeline.run(programs, given, n=3)["C"], want)
    with pytest.raises(TypeError, match="kernel 'two' lacks n"):
        pipeline.run(programs, given)
    with pytest.raises(TypeError, match="no kernel of the pipeline has a parameter 'm'"):
        pipeline.run(programs, given, n=3, m=1)
    with pytest.raises(ValueError, match="1 program for 2 kernels: compile each kernel"):
        pipeline.run(programs[:1], given, n=3)


def test_the_first_stage_has_a_parallel_loop_over_partial_results():
    from eqsat.codegen.nests import to_c

    first = split_reduction(Kernel("total", [LARGE[0][0]])).kernels[0]
    assert [v.vmax + 1 for v in first.stores[0].over] == [3, 256]
    assert "#pragma omp parallel for" in to_c(simplified(first), parallel=True)


HIGH, LOW = 10.0, 9.9
DECISIONS = [
    # always-run operations, before all else
    (Intermediate("CONTIGUOUS"), Decision.KEEP),
    (Intermediate("COPY", reduce_in_scope=True, partial_level=5, ratio=HIGH), Decision.KEEP),
    # over the limit of buffers, not at it
    (Intermediate("ADD", buffers=9, limit=8), Decision.KEEP),
    (Intermediate("ADD", buffers=8, limit=8), Decision.INLINE),
    # no reduction in scope
    (Intermediate("EXP2", unary=True), Decision.INLINE),
    # little effort
    (Intermediate("ADD", reduce_in_scope=True, partial_level=2, ratio=HIGH), Decision.KEEP),
    # the ratio of output to input
    (Intermediate("ADD", reduce_in_scope=True, partial_level=3, ratio=LOW), Decision.KEEP),
    (Intermediate("ADD", reduce_in_scope=True, partial_level=3, ratio=HIGH), Decision.PARTIAL),
    (Intermediate("ADD", reduce_in_scope=True, partial_level=4, ratio=output_ratio(99, [9])), Decision.PARTIAL),
    # unary operations are not repeated
    (Intermediate("NEG", unary=True, reduce_in_scope=True, partial_level=3, ratio=HIGH), Decision.KEEP),
]


@pytest.mark.parametrize(("given", "decision"), DECISIONS, ids=[str(row[0]) for row in DECISIONS])
def test_the_decision_tree(given, decision):
    assert decide(given) is decision


V, TABLE = buffer("V", "f32", (8,)), buffer("TABLE", "f32", (8, 90))
SUMS, PLAIN, GRID = buffer("SUMS", "f32", (8,)), buffer("PLAIN", "f32", (90, 8)), buffer("GRID", "f32", (8, 90))
A8, B90 = var("a", 0, 7), var("b", 0, 89)
OUTER = Store(TABLE[A8, B90], V[A8] * (V[7 - A8] + B90), [A8, B90])
TURNED = Store(PLAIN[B90, A8], TABLE[A8, B90] + V[A8], [B90, A8])
ROWS = Store(SUMS[A8], sum_over(TABLE[A8, B90], B90, 0, 90), [A8])
ONE_OF_EACH = Store(SUMS[A8], sum_over(TABLE[A8, A8] * V[B90 % 8], B90, 0, 90), [A8])
NEGATIVE = Store(TABLE[A8, B90], -GRID[A8, B90], [A8, B90])
C8 = var("c", 0, 7)
SUMMED = Store(TABLE[A8, B90], sum_over(GRID[A8, B90] * V[C8], C8, 0, 8), [A8, B90])
POLICIES = [
    # the consumer, the producer, limit and level; what is seen of it, and how many kernels there are
    (TURNED, OUTER, (31, 0), Intermediate("fmul", buffers=2, ratio=721 / 9), 1),
    (TURNED, OUTER, (2, 0), Intermediate("fmul", buffers=2, limit=2, ratio=721 / 9), 1),
    (TURNED, OUTER, (1, 9), Intermediate("fmul", buffers=2, limit=1, partial_level=9, ratio=721 / 9), 2),
    (ROWS, OUTER, (31, 2), Intermediate("fmul", False, True, 2, 31, 2, 721 / 9), 2),
    # inlined in part: along the axis that the reduction goes along it is kept, so all of it is
    (ROWS, OUTER, (31, 3), Intermediate("fmul", False, True, 2, 31, 3, 721 / 9), 2),
    (ONE_OF_EACH, OUTER, (31, 2), Intermediate("fmul", False, True, 2, 31, 2, 721 / 9), 2),
    (ONE_OF_EACH, OUTER, (31, 3), Intermediate("fmul", False, True, 2, 31, 3, 721 / 9), 1),
    (TURNED, SUMMED, (31, 0), Intermediate("fsum_over", False, True, 3, ratio=721 / 729), 2),
    # a unary operation is not repeated in a reduction, but elsewhere
    (ONE_OF_EACH, NEGATIVE, (31, 3), Intermediate("fneg", True, True, 3, 31, 3, 1.0), 2),
    (TURNED, NEGATIVE, (31, 0), Intermediate("fneg", True, False, 3, 31, 0, 1.0), 1),
]


@pytest.mark.parametrize(("consumer", "producer", "given", "seen", "kernels"), POLICIES)
def test_the_published_policy_is_applied_to_kernels(consumer, producer, given, seen, kernels):
    kernel = Kernel("use", [consumer])
    assert Intermediate.of(kernel, producer, *given) == seen
    found = by_policy(kernel, producer, *given)
    assert len(found.kernels) == kernels
    source = np.random.default_rng(6)
    arrays = {"V": source.integers(-8, 8, 8).astype(np.float32), "GRID": source.random((8, 90)).astype(np.float32)}
    want = Pipeline([Kernel("make", [producer]), kernel]).reference(arrays)[consumer.array.name]
    assert np.array_equal(found.reference(arrays)[consumer.array.name], want)


def test_what_cannot_be_inlined_is_kept_by_policy():
    place = Kernel("use", [Store(SUMS[A8], TABLE[A8, 0], [A8])])
    guarded = Store(TABLE[A8, B90], V[A8] * 2.0, [A8, B90], B90 < 5)
    assert len(by_policy(place, guarded).kernels) == 2


X, T = buffer("X", "i32", (64,)), buffer("T", "i64", (64,))
J, K = var("j", 0, 99), var("k", 0, 63)
NEGATED = Store(T[K], -X[K], [K])
COSTLY = Store(T[K], X[K] // 7 % 5 + X[63 - K] // 9, [K])
FEW, MANY = buffer("F", "i64", (64,)), buffer("M", "i64", (100,))
CHOICES = [
    # the consumer, the producer, how many kernels are cheapest
    (Store(FEW[K], T[63 - K] // 2, [K]), NEGATED, 1),
    (Store(FEW[0], max_over(T[K], K, 0, 64), []), NEGATED, 1),
    (Store(MANY[J], max_over(T[(K + J) % 64], K, 0, 64), [J]), NEGATED, 2),
    (Store(MANY[J], sum_over(T[K] % 9 * J, K, 0, 64), [J]), COSTLY, 2),
]


@pytest.mark.parametrize(("consumer", "producer", "kernels"), CHOICES, ids=[str(row[:2]) for row in CHOICES])
def test_an_intermediate_is_kept_where_that_costs_less(consumer, producer, kernels):
    kernel = Kernel("use", [consumer])
    found = cheaper(kernel, producer)
    assert len(found.kernels) == kernels
    x = np.random.default_rng(1).integers(-50, 50, 64).astype(np.int32)
    name = consumer.array.name
    both = [Pipeline([Kernel("make", [producer]), kernel]), Pipeline([inlined(kernel, producer)])]
    want, other = [pipeline.reference({"X": x})[name] for pipeline in both]
    assert np.array_equal(want, other)
    assert np.array_equal(found.reference({"X": x})[name], want)


@pytest.mark.parametrize("columns", [4, 64])
def test_an_inlined_reduction_captures_no_index(columns):
    """The producer sums over an index of its own where the consumer's sum has one of the same name, or even range."""
    rows, total, y = buffer("R", "i64", (4,)), buffer("Z", "i64", (1,)), buffer("Y", "i32", (4, columns))
    i, k = var("i", 0, 3), var("k", 0, columns - 1)
    producer = Store(rows[i], sum_over(y[i, k] % 9, k, 0, columns), [i])
    kernel = Kernel("total", [Store(total[0], sum_over(rows[i] * (i + 1) % 8, i, 0, 4))])
    one = inlined(kernel, producer)
    assert sum(t.op in REDUCTIONS for t in topological([one.stores[0].value])) == 2
    arrays = {"Y": np.random.default_rng(2).integers(-50, 50, (4, columns)).astype(np.int32)}
    both = Pipeline([Kernel("rows", [producer]), kernel]).reference(arrays)
    assert np.array_equal(Pipeline([one]).reference(arrays)["Z"], both["Z"])


def store_of(place: Expr, when: Expr | None = None) -> Store:
    return Store(T[place], X[K] // 2, [K]) if when is None else Store(T[place], X[K] // 2, [K], when)


SHORT = var("s", 2, 7)
OBSTACLES = [
    # an intermediate, and why it is kept
    (store_of(63 - K), "its indices must be the variables it is for"),
    (store_of(K, K < 9), "without a guard"),
    (Store(T[SHORT], X[SHORT] + 1, [SHORT]), r"'s' has range \[2, 7\] and axis 0 has extent 64"),
    (Store(T[K], X[K] + J, [K]), "its parameter 'j' is the variable of a loop of 'use'"),
]


@pytest.mark.parametrize(("producer", "message"), OBSTACLES, ids=[row[1] for row in OBSTACLES])
def test_what_cannot_be_inlined_is_refused(producer, message):
    kernel = Kernel("use", [Store(MANY[J], T[J % 64] // 2, [J])])
    with pytest.raises(ValueError, match="cannot be inlined: .*" + message):
        inlined(kernel, producer)
    assert len(cheaper(kernel, producer).kernels) == 2


REFUSED = [
    # the value of an intermediate, what the kernel computes of it, and why that is refused of the value itself
    (K * 2**25, lambda t: where(J < 64, t[J], 0), "which i32, the element type of 'W', does not hold"),
    (100 // (64 - K), lambda t: t[64], "division by zero"),
]


@pytest.mark.parametrize(("value", "use", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_an_intermediate_is_kept_where_the_kernel_without_it_is_refused(value, use, message):
    t, out = buffer("R", "i32", (64,)), buffer("W", "i32", (100,))
    producer, kernel = Store(t[K], value, [K]), Kernel("use", [Store(out[J], use(t), [J])])
    with pytest.raises(ValueError, match=message):
        inlined(kernel, producer)
    assert len(cheaper(kernel, producer).kernels) == 2


@pytest.mark.parametrize(("given", "kept"), [("f32", "f64"), ("f64", "f32")])
def test_an_intermediate_that_is_converted_when_it_is_stored_is_kept(given, kept):
    values, t, out = buffer("V", given, (64,)), buffer("R", kept, (64,)), buffer("W", "f64", (64,))
    producer, kernel = Store(t[K], values[K] * 3.0, [K]), Kernel("use", [Store(out[K], t[K] * 1.125, [K])])
    with pytest.raises(ValueError, match=f"its value is {given} and its elements are {kept}"):
        inlined(kernel, producer)
    found = cheaper(kernel, producer)
    v = np.random.default_rng(4).standard_normal(64).astype(given.replace("f", "float"))
    want = (v * 3).astype(kept.replace("f", "float")) * np.float32(1.125)
    assert np.array_equal(found.reference({"V": v})["W"], want)


def test_an_intermediate_is_inlined_where_it_is_an_index_of_a_target():
    kernel = Kernel("scatter", [Store(FEW[T[K] % 64], K, [K])])
    one = inlined(kernel, NEGATED)
    assert [b.name for b in one.inputs] == ["X"]
    x = np.random.default_rng(3).permutation(64).astype(np.int32)
    want = Pipeline([Kernel("make", [NEGATED]), kernel]).reference({"X": x})["F"]
    assert np.array_equal(one.reference({"X": x})["F"], want)


PIPELINES = [
    ([Kernel("use", [CHOICES[0][0]]), Kernel("make", [NEGATED])], "loads 'T' before a later kernel stores it"),
    ([Kernel("make", [NEGATED]), Kernel("again", [COSTLY])], "two kernels store to 'T'"),
    (
        [Kernel("make", [NEGATED]), Kernel("use", [Store(FEW[K], buffer("T", "i32", (65,))[K], [K])])],
        r"kernel 'use' has 'T' as .*65.*, kernel 'make' as .*64.*: give both one array",
    ),
    (
        [Kernel("make", [NEGATED]), Kernel("use", [Store(FEW[K], var("X", 0, 9), [K])])],
        "'X' is a parameter of kernel 'use' and an array of kernel 'make': rename one of them",
    ),
]


@pytest.mark.parametrize(("kernels", "message"), PIPELINES, ids=[row[1] for row in PIPELINES])
def test_pipelines_are_checked(kernels, message):
    with pytest.raises(ValueError, match=message):
        Pipeline(kernels)


@pytest.mark.parametrize("name", ["n", "arrays", "self", "kernel"])
def test_a_parameter_may_be_called_as_what_takes_it(name):
    x, out, i, n = buffer("X", "i32", (4,)), buffer("OUT", "i64", (4,)), var("i", 0, 3), var(name, 0, 9)
    pipeline = Pipeline([Kernel("k", [Store(out[i], x[i] + n, [i])])])
    assert pipeline.reference({"X": np.arange(4)}, **{name: 2})["OUT"].tolist() == [2, 3, 4, 5]
