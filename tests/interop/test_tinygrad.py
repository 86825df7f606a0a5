"""tinygrad's kernels with and without: whole programs, and handmade indices at every point of their ranges."""

import itertools
import operator
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if find_spec("tinygrad") is None:
    pytest.skip("tinygrad is not installed", allow_module_level=True)

import tinygrad.codegen
from tinygrad import Tensor, UOp
from tinygrad.dtype import AddrSpace, Invalid, dtypes
from tinygrad.helpers import DEV, PARALLEL, cdiv, cmod
from tinygrad.uop import Ops
from tinygrad.uop.ops import PatternMatcher

from eqsat.egraph.budget import Budget
from eqsat.extract import OpCount
from eqsat.interop import tinygrad as drop_in
from eqsat.interop.drop_in import DropIn
from eqsat.interop.limits import INTEROP_LIMITS

SMALL = Budget(nodes=2000, seconds=0.5, rounds=6)
DIVISIONS = (Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD)

PROGRAMS = {
    "permute_reshape": lambda x: x.reshape(6, 8, 10).permute(2, 0, 1).reshape(12, 40).permute(1, 0).reshape(480) + 1,
    "channel_shuffle": lambda x: x.reshape(1, 4, 3, 40).permute(0, 2, 1, 3).reshape(1, 12, 5, 8) + 1,
    "pixel_shuffle": lambda x: x.reshape(1, 2, 2, 3, 8, 5).permute(0, 1, 4, 2, 5, 3).reshape(1, 2, 16, 15) + 1,
    "im2col": lambda x: x.reshape(1, 2, 12, 20)._pool((3, 3), 1, 1).permute(0, 1, 4, 5, 2, 3).reshape(18, 180) + 1,
    "strided": lambda x: x.reshape(24, 20)[1::3, ::2].reshape(80) + 1,
    "pad": lambda x: x.reshape(8, 60).permute(1, 0).reshape(24, 20).pad(((1, 2), (3, 1))).reshape(-1) + 1,
    "roll": lambda x: x.reshape(24, 20).roll((5, 3), (0, 1)).reshape(-1) + 1,
    "cat": lambda x: x.reshape(24, 20)[:7].cat(x.reshape(24, 20)[3:5], x.reshape(24, 20)[10:]).reshape(-1) * 2,
    "repeat": lambda x: x.reshape(12, 40).repeat(2, 3).reshape(-1) + 1,
    "flip": lambda x: x.reshape(12, 40).flip(0).permute(1, 0).reshape(20, 24).flip(1).reshape(-1) + 1,
    "window_partition": lambda x: (
        x.reshape(1, 12, 20, 2).roll(1, 1).reshape(1, 3, 4, 4, 5, 2).permute(0, 1, 3, 2, 4, 5).reshape(-1) + 1
    ),
    "gather": lambda x: x.reshape(24, 20).gather(1, (x.reshape(24, 20)[:, :3] % 20).cast("int")),
    "reflect": lambda x: x.reshape(1, 2, 12, 20).pad((2, 1, 3, 2), mode="reflect") + 1,
    "symbolic": lambda x: x.reshape(24, 20)[: UOp.variable("n", 1, 24).bind(10)].sum(0),
}


class Lowered:
    """Counts quotients and remainders in what tinygrad's device is given."""

    def __init__(self, monkeypatch):
        self.original, self.divisions = tinygrad.codegen.graph_rewrite, 0
        monkeypatch.setattr(tinygrad.codegen, "graph_rewrite", self.rewrite)

    def rewrite(self, sink, *arguments, name=None, **options):
        found = self.original(sink, *arguments, name=name, **options)
        if name == "casted consts":
            self.divisions += sum(u.op in DIVISIONS for u in found.toposort())
        return found


def test_programs_have_equal_results_and_fewer_divisions(monkeypatch):
    # a device that needs no compiler, and no workers, whose kernels are not counted
    monkeypatch.setattr(DEV, "value", "PYTHON")
    monkeypatch.setattr(PARALLEL, "value", 0)
    x = Tensor(list(range(480)), dtype="float").realize()
    lowered, before, after = Lowered(monkeypatch), {}, {}
    changed = 0
    for name, program in PROGRAMS.items():
        tinygrad.codegen.to_program_cache.clear()
        lowered.divisions = 0
        expected = program(x).tolist()
        before[name], lowered.divisions = lowered.divisions, 0
        # seconds that a busy machine does not run out of
        drop_in.reset_statistics()
        with drop_in.enabled(budget=Budget(seconds=30.0)):
            assert program(x).tolist() == expected, name
        after[name] = lowered.divisions
        done = drop_in.statistics()
        assert done.kernels > 0, name
        assert done.divisions_after <= done.divisions_before, name
        changed += done.changed
    assert {name: n for name, n in after.items() if n > before[name]} == {}
    assert sum(after.values()) < sum(before.values()) / 2
    assert changed >= 5


def test_uninstall_restores_what_was():
    original, programs, parallel = (
        tinygrad.codegen.graph_rewrite,
        dict(tinygrad.codegen.to_program_cache),
        PARALLEL.value,
    )
    drop_in.install()
    assert tinygrad.codegen.graph_rewrite is not original
    assert tinygrad.codegen.to_program_cache == {}
    assert PARALLEL.value == 0
    drop_in.install()
    drop_in.uninstall()
    assert tinygrad.codegen.graph_rewrite is original
    assert tinygrad.codegen.to_program_cache == programs
    assert PARALLEL.value == parallel
    drop_in.uninstall()


def test_what_was_on_before_enabled_is_on_again_behind_it():
    """``uninstall`` inside of ``enabled`` left it off, and programs made with other options stayed."""
    original, programs = tinygrad.codegen.graph_rewrite, dict(tinygrad.codegen.to_program_cache)
    drop_in.install(budget=SMALL)
    try:
        with drop_in.enabled(cost=OpCount()):
            drop_in.uninstall()
        assert tinygrad.codegen.graph_rewrite is not original
        assert PARALLEL.value == 0
        with drop_in.enabled(cost=OpCount()):
            tinygrad.codegen.to_program_cache["kernel"] = "by other prices"
        assert "kernel" not in tinygrad.codegen.to_program_cache
    finally:
        drop_in.uninstall()
    assert tinygrad.codegen.graph_rewrite is original
    assert tinygrad.codegen.to_program_cache == programs


@pytest.mark.parametrize(("options", "error"), [({"cost": "latancy"}, ValueError), ({"budget": 3}, TypeError)])
def test_options_that_are_none_are_refused_at_once(options, error):
    """Every kernel stayed as it was, as ``refused``."""
    original = tinygrad.codegen.graph_rewrite
    with pytest.raises(error, match=str(*options.values())):
        drop_in.install(**options)
    assert tinygrad.codegen.graph_rewrite is original


def test_an_error_inside_restores_too():
    original = tinygrad.codegen.graph_rewrite
    with pytest.raises(ZeroDivisionError), drop_in.enabled():
        raise ZeroDivisionError
    assert tinygrad.codegen.graph_rewrite is original


def test_another_tinygrad_is_refused(monkeypatch):
    monkeypatch.setattr(tinygrad.codegen, "full_rewrite_to_sink", lambda ast, ren: ast)
    with pytest.raises(ImportError, match=r"another way than 0\.14"):
        drop_in.install()


def test_uninstall_refuses_to_drop_what_others_put_there(monkeypatch):
    drop_in.install()
    ours = tinygrad.codegen.graph_rewrite
    tinygrad.codegen.graph_rewrite = lambda *arguments, **options: ours(*arguments, **options)
    with pytest.raises(RuntimeError, match="was replaced since"):
        drop_in.uninstall()
    tinygrad.codegen.graph_rewrite = ours
    drop_in.uninstall()


# ---- handmade kernels


def loop(name, extent):
    return UOp.range(extent, name)


def floordiv(x, y):
    return x.alu(Ops.FLOORDIV, UOp.const(y))


def floormod(x, y):
    return x.alu(Ops.FLOORMOD, UOp.const(y))


BUFFER = UOp.placeholder((10_000,), dtypes.float, slot=0, addrspace=AddrSpace.GLOBAL)
INDICES = UOp.placeholder((100,), dtypes.int, slot=1, addrspace=AddrSpace.GLOBAL)


def sink_of(*places):
    return UOp.sink(*[BUFFER.index(place).load() for place in places])


def optimised(sink, **options):
    """What is made of a kernel, behind a pass of that name that does nothing."""
    drop_in.reset_statistics()
    with drop_in.enabled(budget=SMALL, **options):
        found = tinygrad.codegen.graph_rewrite(sink, PatternMatcher([]), name="extra symbolic")
    return found, drop_in.statistics()


def places_of(sink):
    return [load.src[0].src[1] for load in sink.src]


MEANING = {
    Ops.ADD: operator.add,
    Ops.MUL: operator.mul,
    Ops.FLOORDIV: operator.floordiv,
    Ops.FLOORMOD: operator.mod,
    Ops.CDIV: cdiv,
    Ops.CMOD: cmod,
    Ops.MAX: max,
    Ops.CMPLT: operator.lt,
    Ops.CMPNE: operator.ne,
    Ops.AND: lambda x, y: x and y,
    Ops.OR: lambda x, y: x or y,
}


def value(u, point):
    if u in point:
        return point[u]
    if u.op is Ops.CONST:
        return u.val
    if u.op is Ops.WHERE:
        return value(u.src[1 if value(u.src[0], point) else 2], point)
    return MEANING[u.op](*[value(s, point) for s in u.src])


def assert_equal(before, after, domain):
    """The same indices at every point, ``Invalid`` among them."""
    for values in itertools.product(*domain.values()):
        point = dict(zip(domain, values, strict=True))
        for old, new in zip(places_of(before), places_of(after), strict=True):
            assert value(new, point) == value(old, point), (old.render(), new.render(), values)


OUTER, INNER = loop(0, 12), loop(1, 7)
DOMAIN = {OUTER: range(12), INNER: range(7)}


@pytest.mark.parametrize(
    ("place", "divisions"),
    [
        (floordiv(OUTER * 7 + INNER, 7) * 7 + floormod(OUTER * 7 + INNER, 7), 0),
        (floormod(OUTER * 7 + INNER, 14) + floordiv(OUTER * 7 + INNER, 14) * 14, 0),
        # of what may be negative
        (floordiv(OUTER * 7 - INNER, 7) * 7 + floormod(OUTER * 7 - INNER, 7), 0),
        ((OUTER - INNER).alu(Ops.CDIV, UOp.const(4)) * 4 + (OUTER - INNER).alu(Ops.CMOD, UOp.const(4)), 0),
        # near misses
        (floordiv(OUTER - 6, 4) * 4 + (OUTER - 6).alu(Ops.CMOD, UOp.const(4)), 2),
        (floordiv(OUTER * 7 + INNER + 1, 7), 1),
    ],
    ids=lambda value: value if isinstance(value, int) else value.render(),
)
def test_quotients_and_remainders_of_loops(place, divisions):
    before = sink_of(place)
    after, done = optimised(before)
    assert_equal(before, after, DOMAIN)
    assert done.divisions_after <= divisions


def test_what_holds_by_a_gate_is_used_behind_it_alone():
    index = floormod(OUTER + INNER, 7)
    gate = (OUTER + INNER) < 7
    gated = gate.where(index, UOp.const(Invalid))
    other = floormod(OUTER + INNER, 14)
    for places in ([gated], [gated, other], [gated, other + 1]):
        before = sink_of(*places)
        after, done = optimised(before)
        # at all points: also where the gate does not hold
        assert_equal(before, after, DOMAIN)
        assert done.changed == 1
        assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for u in places_of(after)[0].toposort())


def test_a_value_from_memory_is_one_variable_and_its_own_index_is_optimised():
    inner = INDICES.index(floordiv(OUTER * 7 + INNER, 7)).load().cast(dtypes.weakint)
    before = sink_of(floordiv(inner * 8 + floormod(INNER, 8), 8))
    after, done = optimised(before)
    assert (done.changed, done.divisions_after) == (1, 0)
    [place] = places_of(after)
    # the load itself, of element i
    assert place is INDICES.index(OUTER).load().cast(dtypes.weakint)


def test_conditions_from_memory_are_kept():
    flag = INDICES.index(INNER).load().cast(dtypes.bool)
    before = sink_of((flag & (floordiv(OUTER * 7 + INNER, 7) < 3)).where(OUTER, UOp.const(Invalid)))
    after, done = optimised(before)
    assert (done.changed, done.divisions_after) == (1, 0)
    for holds in (False, True):
        assert_equal(before, after, {**DOMAIN, flag: [holds]})


def test_what_has_no_operator_of_terms_is_kept():
    other = OUTER.alu(Ops.XOR, INNER)
    after, done = optimised(sink_of(floordiv(other * 7 + INNER, 7)))
    assert (done.changed, done.divisions_after) == (1, 0)
    assert places_of(after) == [other]


def test_answers_with_other_options_are_not_those_that_are_kept():
    system = DropIn("a compiler")
    system.install([], "one model")
    assert [system.answer("kernel", lambda: 1), system.answer("kernel", lambda: 2)] == [1, 1]
    system.install([], "another model")
    assert system.answer("kernel", lambda: 2) == 2


def test_arithmetic_that_wraps_around_stays():
    wrapping = (INDICES.index(OUTER).load() * 8).alu(Ops.FLOORDIV, UOp.const(8, dtypes.int))
    before = sink_of(wrapping.cast(dtypes.weakint))
    after, done = optimised(before)
    assert after is before
    assert done.kept == {"no index expressions": 1}


def test_why_a_kernel_stays_is_counted():
    wide = OUTER
    for _ in range(INTEROP_LIMITS.operations + 1):
        wide = wide + INNER
    for place, reason in [
        (floordiv(OUTER, 5), "costs no less"),
        (OUTER * 8 + INNER, "sums and products alone"),
        ((OUTER * 8 + INNER * 8) + floordiv(OUTER, 5), "costs no less"),
        (OUTER, "no index expressions"),
        (wide, "too many operations"),
    ]:
        before = sink_of(place)
        after, done = optimised(before)
        assert after is before
        assert (done.kernels, done.changed, done.kept) == (1, 0, {reason: 1})


def test_a_kernel_that_cannot_be_optimised_is_compiled_as_it_is(monkeypatch):
    def fails(*arguments, **options):
        raise KeyError("a defect")

    monkeypatch.setattr(drop_in, "optimize", fails)
    before = sink_of(floordiv(OUTER * 8 + INNER, 8))
    after, done = optimised(before)
    assert after is before
    assert (done.kernels, done.changed, done.kept) == (1, 0, {"error": 1})


def test_an_answer_does_not_divide_more():
    total = OUTER + INNER
    before = sink_of((total < 10).where(total, total + -10) * 3)
    after, done = optimised(before, cost=OpCount())
    assert after is before
    assert done.kept == {"divides more": 1}
    # a quotient by a power of two is a shift
    total = loop(0, 8) + loop(1, 8)
    before = sink_of((total < 8).where(UOp.const(0), UOp.const(1)) * 3)
    after, done = optimised(before, cost=OpCount())
    assert (done.changed, done.divisions_after) == (1, 0)
    assert Ops.FLOORDIV in {u.op for u in after.toposort()}


def test_a_kernel_of_the_same_structure_is_known():
    drop_in.reset_statistics()
    with drop_in.enabled(budget=SMALL):
        for i, j in [(OUTER, INNER), (loop(5, 12), loop(6, 7))]:
            sink = sink_of(floordiv(i * 7 + j, 7))
            found = tinygrad.codegen.graph_rewrite(sink, PatternMatcher([]), name="extra symbolic")
            assert places_of(found) == [i]
        assert (drop_in.statistics().changed, drop_in.statistics().cached) == (2, 1)


LITERALS = st.integers(-9, 9).map(UOp.const)
DIVISORS = st.integers(1, 9)
INTEGERS = st.recursive(
    st.sampled_from([OUTER, INNER]) | LITERALS,
    lambda inner: st.one_of(
        st.builds(operator.add, inner, inner),
        st.builds(lambda x, k: x * k, inner, st.integers(-9, 9)),
        st.builds(floordiv, inner, DIVISORS),
        st.builds(floormod, inner, DIVISORS),
        st.builds(lambda x, k: x.alu(Ops.CDIV, UOp.const(k)), inner, DIVISORS),
        st.builds(lambda x, k: x.alu(Ops.CMOD, UOp.const(k)), inner, DIVISORS),
        st.builds(lambda x, y: x.alu(Ops.MAX, y), inner, inner),
        st.builds(lambda x, y, a, b: (x < y).where(a, b), inner, inner, inner, inner),
    ),
    max_leaves=8,
)
CONDITIONS = st.recursive(
    st.builds(operator.lt, INTEGERS, INTEGERS) | st.builds(lambda x, y: x.ne(y), INTEGERS, INTEGERS),
    lambda inner: st.one_of(
        st.builds(operator.and_, inner, inner),
        st.builds(operator.or_, inner, inner),
        st.builds(lambda x: x.ne(True), inner),
    ),
    max_leaves=3,
)


@settings(max_examples=150)
@given(st.lists(st.tuples(INTEGERS, st.none() | CONDITIONS), min_size=1, max_size=3))
def test_any_indices_are_equal_wherever_their_gates_hold(drawn):
    places = [index if gate is None else gate.where(index, UOp.const(Invalid)) for index, gate in drawn]
    before = sink_of(*places)
    after, _ = optimised(before)
    assert_equal(before, after, DOMAIN)
