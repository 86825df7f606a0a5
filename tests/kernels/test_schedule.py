"""Loops of kernels: split at digits, merged, ordered, tiled, with an interior without tests, in lanes."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

import eqsat
from eqsat.codegen import loads, vectors
from eqsat.codegen.interior import interior_of
from eqsat.codegen.loads import guarded_loads, is_inside_where
from eqsat.codegen.loops import expand
from eqsat.codegen.nests import to_c
from eqsat.codegen.vectors import contiguous_runs
from eqsat.egraph.budget import Budget
from eqsat.kernels.kernel import Kernel, Store, flattened
from eqsat.kernels.schedule import arranged, in_digits, sharing_loops, split, writes_once
from eqsat.kernels.simplification import optimized, simplified
from eqsat.lang.expr import Expr, buffer, var
from eqsat.lang.functions import max_over, minimum, sum_over, where
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.traversal import topological

A = buffer("A", "f32", (40, 24))
K = var("k", 0, 959)
I, J, R = var("i", 0, 39), var("j", 0, 23), var("r", 0, 2)  # noqa: E741
EIGHT, NINE = var("e", 0, 7), var("e", 0, 8)
FLAT, TURNED = buffer("Y", "f32", (960,)), buffer("Y", "f32", (24, 40))
SAME = buffer("Y", "f32", (40, 24))


def kernel(*stores: Store) -> Kernel:
    return Kernel("kernel", stores)


def names(store: Store) -> list[str]:
    return [str(v) for v in store.over]


#: An index over [0, 960), and the sizes of the loops that it is split into, outermost first.
SPLITS = [
    (K // 24 + K % 24, [40, 24]),
    (K // 24 % 8, [5, 8, 24]),
    (K // 4 % 6 + K % 4, [40, 6, 4]),
    ((K * 2) // 48 + (K * 2 + 1) % 48, [40, 24]),
    # 16 is no multiple of 24: the finer digit is taken
    (K % 16 + K % 24, [60, 16]),
    # 7 does not divide 960
    (K // 7, [960]),
    (K // 2000, [960]),
    ((K * K) % 24, [960]),
]


@pytest.mark.parametrize(("index", "sizes"), SPLITS, ids=lambda x: str(x) if isinstance(x, Expr) else "")
def test_loops_are_split_at_the_digits_of_their_variable(index, sizes):
    given = flattened(kernel(Store(FLAT[K], buffer("B", "f32", (10**6,))[index], [K])))
    (store,) = split(given).stores
    assert [v.vmax + 1 for v in store.over] == sizes
    assert (split(given) is given) is (len(sizes) == 1)


def test_a_loop_that_does_not_start_at_0_has_no_digits():
    later = var("k", 24, 959)
    given = flattened(kernel(Store(FLAT[later], A[later // 24, later % 24], [later])))
    assert split(given) is given


S = var("s", 0, 95)

#: A sum over an index, and how many loops it becomes; the value of an integer sum does not depend on their order.
DIGITS = [
    (sum_over(A[S // 24, S % 24], S, 0, 96), 2),
    (sum_over(A[S // 24, S % 24], S, 0, var("n", 0, 96)), 1),
    (sum_over(A[S // 24, S % 24], S, 24, 96), 1),
    (sum_over(S // 24 * (S % 24), S, 0, 96), 1),
]


@pytest.mark.parametrize(("value", "loops"), DIGITS, ids=lambda x: str(x))
def test_floating_point_sums_are_taken_in_order_by_the_digits_of_their_index(value, loops):
    (store,), digits = in_digits(flattened(kernel(Store(FLAT[0], value))).stores)
    assert [len(own) for own in digits.values()] == [loops] * (loops > 1)
    assert len([t for t in topological([store.value]) if t.op in REDUCTIONS]) == 1


PADDED = where((I >= 3) & (J < 20), A[I - 3, J], 0.0)

#: What is stored, its loops before, and the names of the loops of each store after.
ARRANGED = [
    (Store(SAME[I, J], A[I, J], [I, J]), [["i_j"]]),
    # the output says which loop is inside
    (Store(SAME[I, J], A[I, J], [J, I]), [["i_j"]]),
    # rows that are taken in part do not go on in the next
    (Store(SAME[I, J], A[I, J // 2], [I, J]), [["i", "j"]]),
    (Store(SAME[I, J], PADDED, [I, J]), [["i", "j"]]),
    (Store(TURNED[J, I], A[I, J], [I, J]), [["j_tile", "i_tile", "i_in", "j_in"]]),
    # what does not fill tiles is apart
    (
        Store(buffer("Y", "f32", (20, 40))[var("q", 0, 19), I], A[I, var("q", 0, 19)], [I, var("q", 0, 19)]),
        [["q_tile", "i_tile", "i_in", "q_in"], ["q_rest", "i"]],
    ),
    # what is summed up stays in its loops
    (Store(buffer("Y", "f32", (24, 40))[J, I], sum_over(A[I, R], R, 0, 3), [I, J]), [["i", "j"]]),
    (Store(FLAT[I // 2], A[I, 0], [I]), [["i"]]),
]


@pytest.mark.parametrize(("store", "loops"), ARRANGED, ids=lambda x: repr(x) if isinstance(x, Store) else "")
def test_loops_are_merged_ordered_and_tiled(store, loops):
    given = kernel(store)
    found = arranged(flattened(given))
    assert [names(s) for s in found.stores] == loops
    a = np.random.default_rng(0).standard_normal(A.value.shape).astype(np.float32)
    want = given.reference({"A": a})["Y"]
    assert np.array_equal(found.reference({"A": a.ravel()})["Y"].reshape(want.shape), want)
    for options in ({}, {"lanes": 8}, {"parallel": True}):
        assert np.array_equal(eqsat.compile(given, **options)(A=a)["Y"], want)


def test_stores_that_share_loops_keep_them():
    b = buffer("Z", "f32", (24, 40))
    found = arranged(flattened(kernel(Store(SAME[I, J], A[I, J], [I, J]), Store(b[J, I], A[I, J], [I, J]))))
    assert [names(s) for s in found.stores] == [["i", "j"], ["i", "j"]]


def test_an_element_stored_twice_is_told():
    assert writes_once(flattened(kernel(Store(SAME[I, J], 0.0, [I, J]))).stores[0])
    assert not writes_once(flattened(kernel(Store(FLAT[I + J], 0.0, [I, J]))).stores[0])
    assert not writes_once(flattened(kernel(Store(FLAT[I], 0.0, [I, J]))).stores[0])


M, P = var("m", 0, 7), var("p", 0, 3)
Z, N = buffer("Z", "i32", (16,)), var("n", 0, 1)

#: Stores to one array over the same loops, and how many loop nests they make.
IN_TURN = [
    ([Store(Z[M], 1, [M]), Store(Z[7 - M], 2, [M])], 2),
    ([Store(Z[M], 1, [M]), Store(Z[M + 1], 2, [M], M < 7)], 2),
    ([Store(Z[M], 1, [M]), Store(Z[0], 2, [M])], 2),
    ([Store(Z[M], 1, [M]), Store(Z[M + 1], 2, [M]), Store(Z[M], 3, [M])], 3),
    ([Store(Z[M + N * 8], 1, [M]), Store(Z[M + 8], 2, [M])], 2),
    # the same element in every iteration
    ([Store(Z[M], M, [M]), Store(Z[M * 3 - M * 2], 2, [M], M < 4)], 1),
    ([Store(Z[M // 2], M, [M]), Store(Z[M // 2], M + 9, [M])], 1),
    # but a later iteration stores what the second one leaves
    ([Store(Z[M // 2], M, [M]), Store(Z[M // 2], M + 9, [M], (M % 2).eq(0))], 2),
    # never the same element
    ([Store(Z[P * 4 + n], P * 4 + n, [P]) for n in range(4)], 1),
    ([Store(Z[M], 1, [M]), Store(Z[15 - M], 2, [M])], 1),
    ([Store(Z[0], 1), Store(Z[0], 2), Store(Z[1], 3)], 1),
]


@pytest.mark.parametrize(("stores", "nests"), IN_TURN, ids=[str(row[0]) for row in IN_TURN])
def test_stores_to_one_array_share_loops_only_where_their_order_does_not_matter(stores, nests):
    given = kernel(*stores)
    assert len(sharing_loops(flattened(given).stores)) == nests
    parameters = {str(v.value): 1 for v in given.parameters}
    want = given.reference({}, **parameters)["Z"]
    for options in ({}, {"parallel": True}, {"lanes": 4}):
        assert np.array_equal(eqsat.compile(given, **options)(**parameters)["Z"], want)


def test_random_stores_to_one_array_are_done_one_after_the_other():
    chance = np.random.default_rng(0)
    over = [M, P]
    for _ in range(12):
        stores = []
        for value in range(3):
            row, column, start = chance.integers(-2, 3, 3).tolist()
            place = (M * row + P * column + start) % 16
            stores.append(Store(Z[place], M * 100 + P * 10 + value, over, [True, P > 1, M % 2 > 0][chance.integers(3)]))
        want = kernel(*stores).reference({})["Z"]
        assert np.array_equal(eqsat.compile(kernel(*stores))()["Z"], want), stores


def test_a_tile_that_stores_an_element_twice_keeps_the_last_value():
    column = var("c", 0, 7)
    square = buffer("S", "i32", (64,))
    given = kernel(Store(Z[M + column], square[column * 8 + M], [column, M]))
    values = np.arange(64, dtype=np.int32)
    assert np.array_equal(eqsat.compile(given)(S=values)["Z"], given.reference({"S": values})["Z"])


X = buffer("X", "f32", (40, 24))
Q = var("q", 0, 23)

#: A value stored along the row q, where its interior starts and stops, and how many tests are left in it.
INTERIORS = [
    (where(Q >= 1, X[I, Q - 1], 0.0), "1", "24", 0),
    (where(Q < 20, X[I, Q], 0.0), "0", "20", 0),
    (where((Q >= 5) & (I < 30), X[I + 10, Q - 5], 0.0), "where(i < 30, 5, 24)", "24", 0),
    (where((Q < 3) | (Q >= 20), 0.0, X[I, Q]), "3", "20", 0),
    # the window of three must be inside as a whole
    (max_over(where((Q + R >= 1) & (Q + R < 25), X[I, Q + R - 1], 0.0), R, 0, 3), "1", "23", 0),
    (where(Q + I >= 9, X[I, Q], 0.0), "min(24, max(9 - i, 0))", "24", 0),
    # a sum that is cut short at the border
    (sum_over(where(Q + R >= 1, X[I, Q // 2 + R], 0.0), R, 0, 3), "1", "24", 0),
    # a test on an element, or on a remainder, stays
    (where((Q >= 1) & (Q % 5).eq(0), X[I, Q - 1], 0.0), "1", "24", 1),
    (where((Q >= 1) & (X[0, Q] < 1.0), X[I, Q - 1], 0.0), "1", "24", 1),
]


@pytest.mark.parametrize(("value", "start", "stop", "tests"), INTERIORS, ids=lambda x: str(x))
def test_rows_have_an_interior_without_tests(value, start, stop, tests):
    (store,) = simplified(kernel(Store(SAME[I, Q], value, [I, Q]))).stores
    found = interior_of(store)
    points = {"i": np.arange(40)}
    assert found is not None
    for term, text in ((found.start, start), (found.stop, stop)):
        want = eqsat.parse(text, {"i": I})
        assert np.array_equal(np.broadcast_to(term.evaluate(points), 40), np.broadcast_to(want.evaluate(points), 40))
    assert len([t for t in eqsat.lang.traversal.topological([found.store.value]) if t.op == "fwhere"]) == tests


def test_what_does_not_change_in_a_row_may_be_loaded_outside_its_interior():
    a, b = buffer("A", "f32", (39,)), buffer("B", "f32", (40,))
    (store,) = flattened(kernel(Store(SAME[I, Q], where(Q < I, a[I - 1] * b[Q - I + 40], 0.0), [I, Q]))).stores
    found = interior_of(store)
    assert found is not None
    inside, inline = guarded_loads(found.store.parts, found.facts, Q)
    assert ([str(load) for load in inside], inline) == (["B[q - i + 40]"], frozenset())


def test_a_load_that_stands_outside_of_its_branch_too_is_known_in_neither():
    few = buffer("B", "f32", (4,))[J % 8]
    chosen = where(J % 8 < 4, few * 2.0, 0.0)
    assert guarded_loads([chosen], [], None)[0] == {few}
    assert guarded_loads([chosen + few], [], None) == (frozenset(), frozenset())


def test_once_the_time_is_up_no_load_is_known_to_be_inside(monkeypatch):
    element = buffer("B", "f32", (24,))[J]
    assert is_inside_where([], element)
    monkeypatch.setattr(loads, "LinearArithmetic", lambda known: SimpleNamespace(late_or_raise=lambda: True))
    assert not is_inside_where([], element)


#: No condition; one that holds too rarely; one of a remainder alone; a triangle; two that never hold together; one on a
#: remainder of the index of a reduction.
ALL_ALIKE = [
    X[I, Q],
    where(Q.eq(3), X[I, Q], 0.0),
    where(Q < 7, X[I, Q], 0.0),
    where((Q % 2).eq(0), X[I, Q], 0.0),
    sum_over(X[I, var("s", 0, 23)], var("s", 0, 23), 0, Q + 1),
    where(Q < 10, X[I, Q], 0.0) * where(Q >= 14, X[I, Q], 0.0),
    max_over(where(Q + R % 2 < 20, X[I, Q], 0.0), R, 0, 3),
]


@pytest.mark.parametrize("value", ALL_ALIKE, ids=str)
def test_rows_that_are_alike_have_no_interior(value):
    assert interior_of(flattened(kernel(Store(SAME[I, Q], value, [I, Q]))).stores[0]) is None


#: Indices of unrolled lanes, however written, and the lengths of their runs.
U, R1, R2 = var("u", 0, 3), var("R1", 0, 9), var("R2", 0, 99)
LANES = [
    ([R1 * 8000 + R2 * 16, R2 * 16 + R1 * 8000 + 1, 2 + (R2 * 16 + R1 * 8000)], [3]),
    ([(R1 * 500 + R2) * 16 + 3, R2 * 16 + (4 + R1 * 8000)], [2]),
    (expand((R1 * 16 + U * 4) // 4, [U]), [4]),
    (expand((R2 * 4 + U) % 8 + (R2 * 4 + U) // 8 * 8, [U]), [4]),
    (expand((R2 * 4 + U) // 2, [U]), [1, 2, 1]),
    (expand(R2 + U * 2, [U]), [1, 1, 1, 1]),
    (expand(R2 - U, [U]), [1, 1, 1, 1]),
    # how far they are from the first lane does not matter
    ([R1, R2, R2 + 1, 2 + R2], [1, 3]),
    ([], []),
]


@pytest.mark.parametrize(("lanes", "lengths"), LANES, ids=lambda x: str(x))
def test_lanes_that_are_neighbours_are_found_however_they_are_written(lanes, lengths):
    runs = contiguous_runs(lanes)
    assert [run.length for run in runs] == lengths
    assert [run.base for run in runs] == [lanes[run.first] for run in runs]


def test_all_of_a_kernel_has_one_time_to_ask_which_lanes_are_neighbours(monkeypatch):
    """Each load of a chain of gathers took the two seconds of an optimisation of its own."""
    asked = []

    def slow(terms, *, budget):
        asked.append(terms)
        time.sleep(budget.seconds)
        return SimpleNamespace(exprs=terms)

    monkeypatch.setattr(vectors, "BUDGET", Budget(seconds=0.05))
    monkeypatch.setattr(vectors, "optimize", slow)
    places, element, row = buffer("P", "i32", (24,)), buffer("B", "f32", (24,)), J
    for _ in range(5):
        row = places[row] % 24
    source = to_c(flattened(kernel(Store(SAME[I, J], element[row], [I, J]))), lanes=8)
    assert len(asked) == 1
    # what linear arithmetic decides is known at any time
    assert "*(const i32x8 *)&P[" in source


def test_neighbours_become_vector_loads_and_stores():
    b = buffer("B", "f32", (24,))
    source = to_c(optimized(kernel(Store(SAME[I, J], A[I, 23 - J] + b[J], [I, J]))), lanes=8)
    assert source.count("*(const f32x8 *)&B[") == source.count("*(f32x8 *)&Y[") == 1
    # backwards they are no neighbours
    assert len(re.findall(r"\bA\[t", source)) == 8
    moved = to_c(optimized(kernel(Store(SAME[I, J], A[I, J], [I, J]))), lanes=4)
    assert "*(f32x4 *)&Y[t1] = v0;" in moved
    # three neighbours are no vector of C, and an element that is there in a branch alone is loaded in it
    line, few, out = buffer("A", "f32", (26,)), buffer("B", "f32", (4,)), buffer("Y", "f32", (24,))
    for value in (line[where(J % 4 < 3, J, J + 2)], where(J % 8 < 4, few[J % 8], 0.0)):
        source = to_c(kernel(Store(out[J], value, [J])), lanes=4)
        assert "*(f32x4 *)&Y[" in source
        assert "*(const" not in source


def test_a_lane_may_divide_by_zero_where_that_is_not_chosen():
    b = buffer("B", "i32", (40,))
    store = Store(buffer("Z", "i32", (40, 8))[I, EIGHT], where(EIGHT < 1, 7, b[I] // EIGHT), [I, EIGHT])
    given = np.arange(40, dtype=np.int32) * 5 - 60
    (found,) = eqsat.compile(kernel(store), lanes=8)(B=given).values()
    np.testing.assert_array_equal(found[:, 1:], given[:, None] // np.arange(1, 8))
    assert (found[:, 0] == 7).all()
    with pytest.raises(ValueError, match="division by zero"):
        to_c(kernel(Store(store.target, b[I] // EIGHT, [I, EIGHT])), lanes=8)
    x = buffer("X", "f32", (40,))
    store = Store(buffer("Y", "f32", (40, 8))[I, EIGHT], where(EIGHT < 1, 7.0, x[I // EIGHT]), [I, EIGHT])
    (found,) = eqsat.compile(kernel(store), lanes=8)(X=given.astype("f4")).values()
    np.testing.assert_array_equal(found[:, 1:], given[np.arange(40)[:, None] // np.arange(1, 8)])
    assert (found[:, 0] == 7).all()


def test_lanes_at_places_that_may_divide_by_zero_are_no_neighbours():
    d, x, y, e = var("d", 0, 9), buffer("X", "f32", (40,)), buffer("Y", "f32", (4,)), var("e", 0, 3)
    program = eqsat.compile(kernel(Store(y[e], where(d > 0, x[minimum(39, (e + 7) // d)], -1.0), [e])), lanes=4)
    for divisor, places in ((0, [-1] * 4), (1, [7, 8, 9, 10]), (3, [2, 2, 3, 3])):
        assert program(X=np.arange(40, dtype="f4"), d=divisor)["Y"].tolist() == places


def test_what_lanes_leave_of_a_row_and_what_has_no_row():
    b, z = buffer("B", "i32", (9,)), buffer("Z", "i32", (1,))
    for store in (Store(buffer("Y", "i32", (9,))[NINE], b[NINE], [NINE]), Store(z[0], b[8], [])):
        (found,) = eqsat.compile(kernel(store), lanes=8)(B=np.arange(9, dtype=np.int32)).values()
        assert found[-1] == 8


def test_a_number_of_lanes_that_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="3 lanes: give one of 1, 2, 4, 8, 16"):
        eqsat.compile(kernel(Store(SAME[I, J], A[I, J], [I, J])), lanes=3)


@pytest.mark.parametrize("changed", [split, arranged])
def test_what_is_no_kernel_is_refused(changed):
    with pytest.raises(TypeError, match="a kernel must be a Kernel, not 3"):
        changed(3)


def test_a_number_of_lanes_may_be_one_of_numpy():
    moved = flattened(kernel(Store(SAME[I, J], A[I, J], [I, J])))
    assert to_c(moved, lanes=np.int64(8)) == to_c(moved, lanes=8)


def test_flat_indices_leave_no_division_and_transpositions_no_scalar_moves():
    turned = kernel(Store(TURNED[K // 40, K % 40], A[K % 40, K // 40], [K]))
    found = optimized(turned)
    assert not [t for t in eqsat.lang.traversal.topological(found.roots) if t.op in DIVISIONS]
    assert "transpose_block_i32(&A[" in to_c(found)


@pytest.mark.parametrize(("element", "first"), [("f32", (0, 0)), ("f64", (0, 0)), ("f32", (1, 0)), ("f32", (0, 1))])
def test_transpositions_that_convert_or_begin_elsewhere(element, first):
    i, j = [var(name, low, low + 31) for name, low in zip("ij", first, strict=True)]
    store = Store(buffer("Y", "f32", (40, 40))[i, j], buffer("X", element, (40, 40))[j, i], [i, j])
    x = np.arange(1600, dtype={"f32": "f4", "f64": "f8"}[element]).reshape(40, 40)
    inside = tuple(slice(low, low + 32) for low in first)
    assert np.array_equal(eqsat.compile(kernel(store))(X=x)["Y"][inside], x.T[inside])


def test_no_tile_or_lane_is_loaded_from_outside_of_an_array():
    small = buffer("A", "f32", (39, 23))
    turned = kernel(Store(TURNED[J, I], small[I, J], [I, J]))
    along = kernel(Store(SAME[I, J], small[I, J], [I, J]))
    assert "transpose_block" not in to_c(optimized(turned))
    assert "f32x8 *)&A[" not in to_c(optimized(along), lanes=8)


def test_infinities_are_written():
    store = Store(FLAT[K], where(K < 9, float("inf"), float("-inf")), [K])
    assert np.array_equal(eqsat.compile(kernel(store))()["Y"], np.where(np.arange(960) < 9, np.inf, -np.inf))


def test_outputs_have_memory_of_their_own():
    run = eqsat.compile(kernel(Store(SAME[I, J], A[39 - I, J], [I, J])))
    a = np.zeros((40, 24), dtype=np.float32)
    with pytest.raises(ValueError, match="the output 'Y' shares memory with another array"):
        run(A=a, out={"Y": a})
    with pytest.raises(TypeError, match="has no output Z, only Y"):
        run(A=a, out={"Z": a})
    a.setflags(write=False)
    with pytest.raises(ValueError, match="the output 'Y' is not contiguous, aligned and writable"):
        run(A=np.ones_like(a), out={"Y": a})


@pytest.mark.parametrize("shape", [(4, 2, 6), (5, 2, 10), (4, 2, 12)])
@pytest.mark.parametrize("flipped", range(3))
def test_loops_merge_by_what_addresses_are_beyond_the_range_of_one(shape, flipped):
    # both stores share b*6 as where(b < 1, 0, 6), which is that for two values of b alone
    one, other = buffer("C", "i32", shape), buffer("D", "i32", shape)
    loops = [var(name, 0, extent - 1) for name, extent in zip("abd", shape, strict=True)]
    places = list(loops)
    places[flipped] = shape[flipped] - 1 - loops[flipped]
    kernel = Kernel("flip", [Store(one[*places], 1, loops), Store(other[*loops], 1, loops[::-1])])
    for written in eqsat.compile(kernel)().values():
        assert (written == 1).all()
