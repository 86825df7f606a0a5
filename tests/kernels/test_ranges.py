"""Ranges: policies, the choice by cost, unions that hold, kernels in other loops."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_kernels import contents, random_kernel

import eqsat
from eqsat.codegen.nests import to_c
from eqsat.extract import LoopAware, OpCount
from eqsat.kernels.kernel import Kernel, Store
from eqsat.kernels.ranges import (
    Axis,
    Equation,
    Nest,
    cheapest,
    consider_merge,
    in_cheapest_ranges,
    merge_adjacent,
    split_at_modulo,
)
from eqsat.kernels.reductions import body_and_variables, reduction
from eqsat.kernels.simplification import simplified
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, buffer, const, var
from eqsat.lang.functions import max_over, sum_over
from eqsat.lang.ops import DIVISIONS
from eqsat.lang.properties import division_count
from eqsat.lang.text import parse, to_text
from eqsat.lang.traversal import extent, topological
from eqsat.prove.verify import check_equal


def nest_of(texts: str | list[str], **extents: int) -> Nest:
    names = {name: var(name, 0, extent - 1) for name, extent in extents.items()}
    roots = [parse(text, names) for text in ([texts] if isinstance(texts, str) else texts)]
    return Nest(tuple(map(Axis, names.values())), tuple(roots))


def shape(nest: Nest) -> list[tuple[str, int]]:
    return [(str(axis.variable.value), axis.extent) for axis in nest.axes]


def same(given: Nest, found: Nest) -> bool:
    """Whether the roots have equal values, in the variables that were given."""
    back = [root.substitute(found.origins) for root in found.roots]
    gone = [axis.variable for axis in given.axes if axis.variable in found.images]
    forth = [found.images[variable].substitute(found.origins) for variable in gone]
    return check_equal([*given.roots, *gone], [*back, *forth]).equal


SPLITS = [
    # roots, extents, the axes after all splits at once
    ("r % 4", {"r": 12}, [("r_o", 3), ("r_i", 4)]),
    ("r // 4 + r % 4 * 5", {"r": 12}, [("r_o", 3), ("r_i", 4)]),
    (["r0 % 4 + r1 % 8", "r0 // 4"], {"r0": 12, "r1": 32}, [("r0_o", 3), ("r0_i", 4), ("r1_o", 4), ("r1_i", 8)]),
    ("r % 4 + r % 8", {"r": 32}, [("r_o", 4), ("r_i_o", 2), ("r_i_i", 4)]),
    # no divisor of the extent, no split
    ("r % 4", {"r": 10}, [("r", 10)]),
    ("r % 5", {"r": 12}, [("r", 12)]),
    # nothing to gain
    ("r % 12", {"r": 12}, [("r", 12)]),
    ("r // 4", {"r": 12}, [("r", 12)]),
    # another name is taken
    ("r % 4 + r_o", {"r": 8, "r_o": 3}, [("r_o_", 2), ("r_i", 4), ("r_o", 3)]),
]


def test_a_range_splits_where_a_gate_takes_it_modulo_a_divisor():
    r = var("r", 0, 11)
    found = split_at_modulo(Nest((Axis(r),), (r * 5,), gates=(r % 4 < 2,)))
    assert [(str(a.variable), a.extent) for a in found.axes] == [("r_o", 3), ("r_i", 4)]
    assert [str(gate) for gate in found.gates] == ["(r_o*4 + r_i)%4 < 2"]


@pytest.mark.parametrize(("texts", "extents", "axes"), SPLITS, ids=[str(row[:2]) for row in SPLITS])
def test_a_range_splits_where_it_is_taken_modulo_a_divisor(texts, extents, axes):
    given_nest = nest_of(texts, **extents)
    found = split_at_modulo(given_nest)
    assert shape(found) == axes
    assert same(given_nest, found)


def test_all_substitutions_happen_at_once_with_fresh_names():
    nest = nest_of("r0 % 4 * 100 + r1 % 8 + r0 // 4", r0=12, r1=32)
    r0, r1 = nest.axes[0].variable, nest.axes[1].variable
    split = nest.split({r0: 4, r1: 8})
    assert [to_text(root) for root in split.roots] == ["(r0_o*4 + r0_i)%4*100 + (r1_o*8 + r1_i)%8 + (r0_o*4 + r0_i)//4"]
    assert len({axis.variable for axis in split.axes} - {r0, r1}) == 4


MERGES = [
    # root, extents of i and j, whether they merge, divisions before and after
    ("i*8 + j", (4, 8), True, 0, 0),
    ("i*5 + j", (3, 5), True, 0, 0),
    ("i*9 + j", (4, 8), False, 0, 1),
    ("j*4 + i", (4, 8), False, 0, 2),
    (["(i*8 + j) // 4", "(i*8 + j) % 4"], (4, 8), True, 2, 2),
    ("(i*8 + j) // 8 + j", (4, 8), False, 0, 2),
]


@pytest.mark.parametrize(
    ("texts", "extents", "accepted", "before", "after"), MERGES, ids=[str(row[0]) for row in MERGES]
)
def test_ranges_merge_unless_that_takes_more_divisions(texts, extents, accepted, before, after):
    nest = nest_of(texts, i=extents[0], j=extents[1])
    found = consider_merge(nest, 0)
    assert (found.accepted, found.before, found.after) == (accepted, before, after)
    assert len(found.nest.axes) == 2 - accepted
    assert same(nest, found.nest)


I, J = var("i", 0, 3), var("j", 0, 7)  # noqa: E741
INCOMPATIBLE = [
    (Axis(I, "output"), Axis(J, "reduce"), "one range is for output, the other for reduce"),
    (Axis(I, scopes=frozenset({"R0"})), Axis(J, scopes=frozenset({"R0", "R1"})), "different reductions"),
    (Axis(I, "reduce", frozenset({"R0"})), Axis(J, "reduce", frozenset({"R1"})), "different reductions"),
    (Axis(var("i", 1, 4)), Axis(J), "a range does not start at 0"),
    (Axis(I), Axis(var("j", 1, 8)), "a range does not start at 0"),
]


@pytest.mark.parametrize(("outer", "inner", "reason"), INCOMPATIBLE)
def test_ranges_for_different_things_do_not_merge(outer, inner, reason):
    nest = Nest((outer, inner), (outer.variable * 8 + inner.variable,))
    found = consider_merge(nest, 0)
    assert not found.accepted
    assert reason in found.reason
    assert cheapest(nest).axes == nest.axes
    with pytest.raises(ValueError, match="do not merge"):
        nest.merge(0)


def test_merging_goes_on_from_the_innermost():
    assert shape(merge_adjacent(nest_of("i*32 + j*8 + k", i=3, j=4, k=8))) == [("m", 96)]
    assert shape(merge_adjacent(nest_of("i*40 + j*8 + k", i=3, j=4, k=8))) == [("i", 3), ("m", 32)]


CHEAPEST = [
    # roots, extents, the axes that cost least
    ("r % 4", {"r": 12}, [("r_o", 3), ("r_i", 4)]),
    ("r % 4", {"r": 10}, [("r", 10)]),
    ("i*8 + j", {"i": 4, "j": 8}, [("m", 32)]),
    ("i*9 + j", {"i": 4, "j": 8}, [("i", 4), ("j", 8)]),
    # neither as given nor merged: by the digits that the roots use
    (["(i*8 + j) // 4", "(i*8 + j) % 4"], {"i": 4, "j": 8}, [("m", 8), ("j_i", 4)]),
    # three digits, two splits
    ("k//64*100 + k//16%4*23 + k%16*2", {"k": 512}, [("k_o_o", 8), ("k_o_i", 4), ("k_i", 16)]),
    # a transposition by flat indices
    ("k%16*32 + k//16", {"k": 512}, [("k_o", 32), ("k_i", 16)]),
    # a split that only adds a loop
    ("k*3 + 1", {"k": 512}, [("k", 512)]),
]


@pytest.mark.parametrize(("texts", "extents", "axes"), CHEAPEST, ids=[str(row[:2]) for row in CHEAPEST])
def test_the_loops_are_a_choice_by_cost(texts, extents, axes):
    nest = nest_of(texts, **extents)
    found = cheapest(nest)
    assert [extent for _, extent in shape(found)] == [extent for _, extent in axes]
    assert same(nest, found)
    result = found.optimized()
    assert result.cost <= nest.optimized().cost
    assert check_equal(nest.roots, [root.substitute(found.origins) for root in result.exprs]).equal


def test_the_heuristics_are_special_cases_of_the_choice():
    """Where a policy changes the loops, the choice by cost is as cheap or cheaper."""
    for texts, extents in [(row[0], row[1]) for row in SPLITS] + [
        (row[0], dict(zip("ij", row[1], strict=True))) for row in MERGES
    ]:
        nest = nest_of(texts, **extents)
        chosen = cheapest(nest)
        for policy in (split_at_modulo, merge_adjacent):
            assert whole_cost(chosen) <= whole_cost(policy(nest)), (texts, policy)


def whole_cost(nest: Nest) -> int:
    """What terms and loops cost together."""
    loops = nest.loops()
    return nest.optimized().cost + sum(loops.runs(level + 1) for level in range(len(nest.axes)))


def test_another_cost_model_chooses_other_loops():
    texts, extents = "r // 4 * 7 + r % 4", {"r": 64}
    assert len(cheapest(nest_of(texts, **extents)).axes) == 2
    free = OpCount({"floordiv": 0, "mod": 0, "mul": 0, "add": 1, "sub": 1})
    assert len(cheapest(nest_of(texts, **extents), free).axes) == 1


def test_gates_are_used():
    r = var("r", 0, 63)
    always_small = Nest((Axis(r),), (r % 8 * 3 + r // 8,), (r < 8,))
    assert cheapest(always_small).axes == always_small.axes
    assert len(cheapest(Nest((Axis(r),), always_small.roots)).axes) == 2


def test_loops_may_be_longer_than_a_float_is_large():
    assert len(cheapest(nest_of(["r//4 + r%4"], r=10**400)).axes) == 2
    assert len(cheapest(nest_of(["r//4 + r%4"], r=10**400), gain=math.inf).axes) == 1


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    extents = draw(st.lists(st.sampled_from([2, 3, 4, 6, 8, 12]), min_size=1, max_size=3))
    names = [var(f"r{n}", 0, extent - 1) for n, extent in enumerate(extents)]

    def term() -> Expr:
        total: Expr = const(draw(st.integers(0, 2)))
        for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
            total = total + name * draw(st.sampled_from([1, 2, 3, 4, 8, 12]))
        match draw(st.sampled_from(["", "//", "%"])):
            case "//":
                return total // draw(st.sampled_from([2, 3, 4, 8]))
            case "%":
                return total % draw(st.sampled_from([2, 3, 4, 8]))
        return total

    roots = [term() + term() * draw(st.integers(1, 9)) for _ in range(draw(st.integers(1, 2)))]
    return Nest(tuple(map(Axis, names)), tuple(roots))


@settings(max_examples=40)
@given(nests())
def test_random_nests_keep_their_values_and_their_order(nest: Nest):
    for found in (cheapest(nest), split_at_modulo(nest), merge_adjacent(nest)):
        assert same(nest, found)
        assert np.prod([a.extent for a in found.axes]) == np.prod([a.extent for a in nest.axes])
        # iteration by iteration: the values come in the same order
        assert list(values(found)) == list(values(nest))
    assert whole_cost(cheapest(nest)) <= whole_cost(nest)


def values(nest: Nest) -> zip:
    points = list(product(*[range(axis.extent) for axis in nest.axes]))
    given_values = {str(a.variable.value): [p[n] for p in points] for n, a in enumerate(nest.axes)}
    return zip(
        *[np.broadcast_to(root.evaluate(given_values), len(points)).tolist() for root in nest.roots], strict=True
    )


REFUSED = [
    (lambda: Axis(I + 1), "an axis needs a variable"),
    (lambda: Axis(var("u", 0, None)), "the loop over 'u' has no end: give the variable bounds"),
    (lambda: Nest((Axis(I), Axis(I)), (I,)), "two axes have the variable 'i'"),
    (lambda: Nest((Axis(I), Axis(var("i", 0, 9))), (I,)), "two axes have the variable 'i'"),
    (lambda: Nest((Axis(I),), (I,), (None, None)), "2 gates for 1 root: give one"),
    (lambda: Nest((Axis(I),), (I,)).split({J: 2}), "'j' is no axis"),
    (lambda: Nest((Axis(I),), (I,)).split({I: 3}), r"the loop over 'i', \[0, 3\], does not split by 3"),
    (lambda: Nest((Axis(var("i", 1, 4)),), (I,)).split({var("i", 1, 4): 2}), "must start at 0"),
    (lambda: Nest((Axis(I),), (I,)).merge(0), "there are none to merge at 0"),
    (lambda: consider_merge(Nest((Axis(I),), (I,)), 0), "there are 1 loops: there are none to merge at 0"),
    (lambda: consider_merge(Nest((), ()), -1), "there are none to merge at -1"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[row[1] for row in REFUSED])
def test_refused_with_one_line(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_an_equation_is_read_both_ways():
    whole = var("m", 0, 31)
    equation = Equation(Axis(whole), Axis(I), Axis(J))
    (there,) = equation.apart.values()
    assert check_equal([whole.substitute(equation.apart).substitute(equation.together)], [whole]).equal
    assert check_equal([there.substitute(equation.together)], [whole]).equal


A = buffer("A")
Q = var("q", 0, 31)


def test_nested_reductions_flatten_and_come_back():
    term = sum_over(sum_over(A[I * 8 + J], J, 0, 8), I, 0, 4)
    body, over = body_and_variables(term)
    assert [*map(extent, over)] == [4, 8]
    assert reduction("sum_over", body, over) is term


NOT_FLAT = [
    (max_over(sum_over(A[I, J], J, 0, 8), I, 0, 4), 1, "another operator"),
    (sum_over(sum_over(A[I, J], J, 0, I), I, 0, 4), 1, "an inner range that depends on the outer index"),
    (sum_over(A[I], I, 0, var("n", 0, 9)), 0, "a range that is no literal"),
    (sum_over(A[I], I, 3, 3), 0, "an empty range"),
    (A[I], 0, "no reduction"),
]


@pytest.mark.parametrize(("term", "count"), [row[:2] for row in NOT_FLAT], ids=[row[2] for row in NOT_FLAT])
def test_what_does_not_flatten(term, count):
    assert len(body_and_variables(term)[1]) == count


RANGES_OF_REDUCTIONS = [
    # (a reduction, the extents of the ranges that are cheapest)
    (sum_over(A[Q // 4, Q % 4], Q, 0, 32), [8, 4]),
    (sum_over(sum_over(A[I * 8 + J], J, 0, 8), I, 0, 4), [32]),
    (max_over(max_over(A[I * 8 + J], J, 0, 8), I, 0, 4), [32]),
    (sum_over(sum_over(A[I * 9 + J], J, 0, 8), I, 0, 4), [4, 8]),
    (sum_over(A[Q % 5], Q, 0, 32), [32]),
]


@pytest.mark.parametrize(("term", "extents"), RANGES_OF_REDUCTIONS, ids=[str(row[0]) for row in RANGES_OF_REDUCTIONS])
def test_ranges_of_reductions_are_a_choice_too(term, extents):
    found = in_cheapest_ranges(term)
    assert [*map(extent, body_and_variables(found)[1])] == extents
    assert check_equal([term], [found]).equal


def flat_permutation(shape: tuple[int, ...], axes: tuple[int, ...]) -> Kernel:
    """A permutation of axes by one loop over the flat output."""
    size = int(np.prod(shape))
    k, source, target = var("k", 0, size - 1), buffer("X", "f32", (size,)), buffer("Y", "f32", (size,))
    place: Expr = const(0)
    rest: Expr = k
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    for axis in axes[::-1]:
        place = place + rest % shape[axis] * strides[axis]
        rest = rest // shape[axis]
    return Kernel("permute", [Store(target[k], source[place], [k])])


@pytest.mark.parametrize(("shape", "axes"), [((16, 32), (1, 0)), ((8, 4, 6), (0, 2, 1)), ((4, 6, 10), (2, 1, 0))])
def test_a_kernel_gets_the_loops_that_need_no_division_inside(shape, axes):
    kernel = flat_permutation(shape, axes)
    x = np.arange(np.prod(shape), dtype=np.float32)
    compiled = eqsat.compile(kernel)
    assert np.array_equal(compiled(X=x)["Y"], x.reshape(shape).transpose(axes).ravel())
    (store,) = compiled.kernel.stores
    innermost = store.over[-1]
    assert len(store.over) > 1
    quotients = [t for t in topological([store.target, store.value]) if t.op in DIVISIONS]
    assert innermost not in topological(quotients)
    order = LoopAware({str(v.value): v.vmax + 1 for v in store.over})
    assert cost_of([store.value.args[1]], order) < cost_of([kernel.stores[0].value.args[1]], LoopAware({"k": x.size}))


def test_a_loop_of_all_elements_splits_for_threads_and_lanes():
    """One loop over a million sums becomes 1024 parallel rows of 1024 contiguous ones."""
    k = var("k", 0, 2**20 - 1)
    nest = Nest((Axis(k),), (k,)).split({k: 1024})
    rows = [axis.variable for axis in nest.axes]
    x, y, z = [buffer(name, "f32", (2**20,)) for name in "XYZ"]
    (place,) = nest.roots
    source = to_c(simplified(Kernel("add", [Store(z[place], x[place] + y[place], rows)])), parallel=True)
    assert "#pragma omp parallel for" in source
    assert division_count(nest.roots) == 0


def test_loops_that_repeat_a_reduction_do_not_merge():
    """Merged, i*8 + j is cheaper; but the sum over a row of X would be taken for every j."""
    x, y, r = buffer("X", "f32", (4, 64)), buffer("Y", "f32", (32,)), var("r", 0, 63)
    kernel = Kernel("rows", [Store(y[I * 8 + J], sum_over(x[I, r], r, 0, 64), [I, J])])
    assert simplified(kernel).stores[0].over == (I, J)


def test_nests_of_one_kernel_have_different_names():
    """Both merge, into loops of 32 and of 64."""
    x, y, z = buffer("X", "f32", (64,)), buffer("Y", "f32", (32,)), buffer("m", "f32", (64,))
    k = var("k", 0, 7)
    stores = [Store(y[I * 8 + J], x[I * 8 + J], [I, J]), Store(z[J * 8 + k], x[J * 8 + k], [J, k])]
    loops = [store.over for store in simplified(Kernel("two", stores)).stores]
    assert [[(str(v), v.vmax + 1) for v in over] for over in loops] == [[("m_", 32)], [("m__", 64)]]


def test_ranges_of_a_reduction_inside_another():
    """The inner body speaks of the outer index."""
    s, a = var("s", 0, 2), buffer("A", "i32", (99,))
    term = max_over(sum_over(a[Q // 4 * 7 + Q % 4 + s], Q, 0, 32), s, 0, 3)
    total = buffer("T", "i64", (1,))
    (store,) = simplified(Kernel("nested", [Store(total[0], term)])).stores
    assert len(body_and_variables(store.value)[1]) == 1
    assert len(body_and_variables(store.value.args[0])[1]) == 2
    assert check_equal([term], [store.value]).equal


def test_random_kernels_in_other_loops():
    """With sums reassociated; those in order are compared in C, in ``test_kernel.py``."""
    arrays = contents()
    changed = 0
    for kernel in map(random_kernel, range(1, 60)):
        found = simplified(kernel, reassociate=True)
        changed += any(a.over != b.over for a, b in zip(kernel.stores, found.stores, strict=True))
        want = kernel.reference({b.name: arrays[b.name] for b in kernel.inputs})
        values = found.reference({b.name: arrays[b.name].ravel() for b in found.inputs})
        for name, value in want.items():
            assert np.array_equal(values[name], value.ravel()), (kernel.name, name)
    assert changed > 10
