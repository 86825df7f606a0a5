"""Views and masked indices: an index, where it is valid, and both simplified together."""

from __future__ import annotations

import numpy as np
import pytest

from eqsat.interop.views import INVALID, Access, View, split_gate, through
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import TRUE, var
from eqsat.lang.functions import where
from eqsat.lang.text import parse
from eqsat.prove.verify import check_equal
from eqsat.theory.linear import LinearArithmetic

NAMES = {
    "x": var("x", 0, 100),
    "y": var("y", 0, 100),
    "k": var("k", 1, 100),
    "i": var("i", 0, 3),
    "j": var("j", 0, 7),
    "u": var("u", 0, 0),
    "INVALID": INVALID,
}
K, X, Y, ROW, COLUMN, UNIT = (NAMES[name] for name in "kxyiju")

ACCESSES = [
    # the view, its indices; the index and the condition, as written and as optimised
    (View((K, 3), (3, 1)), [X, Y], ("x*3 + y*1", "True"), ("x*3 + y", "True")),
    (
        View((K, 3), (3, 1), mask=[(0, 2), (0, 2)]),
        [X, Y],
        ("x*3 + y*1", "0 <= x and x < 2 and 0 <= y and y < 2"),
        ("x*3 + y", "x < 2 and y < 2"),
    ),
    (
        View((K, 3), (3, 1), mask=[(1, 2), (0, 2)]),
        [X, Y],
        ("x*3 + y*1", "1 <= x and x < 2 and 0 <= y and y < 2"),
        ("y + 3", "x == 1 and y < 2"),
    ),
    (View((4, 1, 8), (8, 5, 1), 2), [ROW, UNIT, COLUMN], ("2 + i*8 + j*1", "True"), ("i*8 + j + 2", "True")),
    (View((4, 8), (0, 1)), [ROW, COLUMN], ("j*1", "True"), ("j", "True")),
    (
        View((4, 8), (1, 4), mask=[(0, 4), (2, 6)]),
        [ROW, COLUMN],
        ("i*1 + j*4", "0 <= i and i < 4 and 2 <= j and j < 6"),
        ("i + j*4", "2 <= j and j < 6"),
    ),
    (View((8,), (-1,), 7), [COLUMN], ("7 + j*-1", "True"), ("7 - j", "True")),
    (View((4, 8), (K, 1), mask=[(0, K), (0, 8)]), [ROW, COLUMN], None, ("i*k + j", "i < k")),
    (View((), ()), [], ("0", "True"), ("0", "True")),
]


@pytest.mark.parametrize(("view", "indices", "written", "optimised"), ACCESSES)
def test_access(view, indices, written, optimised):
    access = view.access(indices)
    if written:
        assert access == Access(*[parse(text, NAMES) for text in written])
    best = access.optimize()
    theory = LinearArithmetic()
    assert [theory.simplify(part) for part in (best.index, best.valid)] == [
        theory.simplify(parse(text, NAMES)) for text in optimised
    ]
    gated = check_equal([access.index, access.valid], [best.index, best.valid], gates=[access.valid, None])
    assert gated.equal


@pytest.mark.parametrize("mask", [None, [(1, 4), (2, 6)]])
def test_a_condition_that_is_given_joins_those_of_the_mask(mask):
    view, given = View.contiguous((4, 8), mask=mask), parse("x < 9 and i < 3", NAMES)
    access = view.access([ROW, COLUMN], given)
    assert access.index is view.access([ROW, COLUMN]).index
    assert check_equal([access.valid], [given & view.access([ROW, COLUMN]).valid]).equal
    assert View.contiguous((4, 8)).access([ROW, COLUMN], True) == View.contiguous((4, 8)).access([ROW, COLUMN])


@pytest.mark.parametrize(
    ("shape", "strides"), [((4, 8), [8, 1]), ((2, 3, 5), [15, 5, 1]), ((K, 3), [3, 1]), ((7,), [1]), ((), [])]
)
def test_row_major(shape, strides):
    assert list(View.contiguous(shape).strides) == strides


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: View((4, 8), (1,)), "2 dimensions, 1 stride,"),
        (lambda: View((4, 8), (8, 1), mask=[(0, 4)]), "1 mask range$"),
        (lambda: View([4], [1], 0, [(0,)]), r"a mask range is \(low, high\), not \(0,\)"),
        (lambda: View([4], [1], 0, 5), r"the mask of a view is a \(low, high\) per dimension, not 5"),
        (lambda: View([4, 0], [1, 1]), r"a view of sizes \[4, 0\] has no elements"),
        (lambda: View((4, 8), (8, 1)).access([ROW]), "1 index for a view of 2 dimensions"),
        (lambda: View([4], [1]).access([ROW], 3), "where an access is valid is a condition, not '3'"),
        (lambda: View(None, [1]), "the shape of a view must be a number per dimension, not None"),
        (lambda: View([4], [1.5]), "the strides of a view must be integers, not '1.5'"),
        (lambda: View.contiguous("ab"), "the shape of a view must be a number per dimension, not 'ab'"),
        (lambda: View([4], [1], 1.5), "the offsets of a view must be integers, not '1.5'"),
        (lambda: View([4], [1], None), "None is not an index expression"),
        (lambda: View([4], [1], 0, [("a", 2)]), "'a' is not an index expression"),
        (lambda: View([4], [1], 0, [(0, 1.5)]), "the mask ranges of a view must be integers, not '1.5'"),
        (lambda: View([4], [1]).access([1.5]), "the indices of a view must be integers, not '1.5'"),
        (lambda: Access(1, 2).optimize(), "a constraint or gate must be a condition, not '2'"),
    ],
)
def test_refused(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


def test_sizes_of_an_array_do_not_wrap_around():
    assert View.contiguous(np.array([2**31, 2**31, 2**31])).strides == (2**62, 2**31, 1)
    assert View(np.array([4, 8]), np.array([8, 1])) == View((n for n in (4, 8)), [8, 1])


GATES = [
    # the masked index, the index, its gate
    ("where(x < 5, x, INVALID)", "x", "x < 5"),
    ("where(x < 5, x*8 + y, INVALID)", "x*8 + y", "x < 5"),
    ("where(x < 5, INVALID, x)", "x", "not x < 5"),
    ("where(x < 5, where(y < 3, x, INVALID), INVALID)", "x", "x < 5 and y < 3"),
    ("where(x < 5, x, where(y < 3, y, INVALID))", "where(x < 5, x, y)", "where(x < 5, True, y < 3)"),
    ("where(x < 5, where(y < 3, x, INVALID), y)", "where(x < 5, x, y)", "where(x < 5, y < 3, True)"),
    ("where(x < 5, x, INVALID)*8 + y", "x*8 + y", "x < 5"),
    ("-where(x < 5, x, INVALID) + where(y < 3, y, INVALID)", "-x + y", "x < 5 and y < 3"),
    ("where(where(x < 5, x, INVALID) < 2, x, y)", "where(x < 2, x, y)", "x < 5"),
    ("where(where(x < 5, x, INVALID) < 2, y, INVALID)", "y", "x < 5 and x < 2"),
    ("y//where(x < 5, k, INVALID)", "y//k", "x < 5"),
    ("INVALID + x", "0", "False"),
    ("where(x < 5, INVALID, INVALID)", "0", "False"),
]


@pytest.mark.parametrize(("text", "index", "gate"), GATES)
def test_gates(text, index, gate):
    term = parse(text, NAMES)
    access = split_gate(term)
    assert access == Access(parse(index, NAMES), parse(gate, NAMES))
    for value in (0, 77):
        filled = term.substitute({INVALID: value})
        assert check_equal([filled], [access.index], gates=[access.valid]).equal, (
            "where it is valid, INVALID is not read"
        )


@pytest.mark.parametrize("text", ["where(x < 5, x, 0)", "where(x < 5, x, -1)", "where(x < 5, x, y)", "x//k"])
def test_only_invalid_makes_a_gate(text):
    term = parse(text, NAMES)
    assert split_gate(term) == Access(term, TRUE)


def test_no_gate_names_the_index_of_a_reduction():
    """The index escaped: the gate was r < n, of no reduction's r."""
    with pytest.raises(ValueError, match="whether the access is valid depends on the index 'r1' of a reduction"):
        split_gate(parse("sum(where(r < x, r, INVALID), r, 0, 5)", NAMES))
    outside = split_gate(parse("sum(where(y < 5, r, INVALID), r, 0, 5)", NAMES))
    assert outside == Access(parse("sum(r, r, 0, 5)", NAMES), parse("y < 5", NAMES))


def test_five_thousand_levels():
    term = X
    for _ in range(5000):
        term = where(Y < 5, term, INVALID) + 1
    access = split_gate(term)
    assert (access.valid, access.index.vmax) == (Y < 5, 5100)


def padded(x, *widths):
    return np.pad(x, widths, constant_values=-1)


BUFFER = np.arange(24)
STACKS = [
    # views as tinygrad's ShapeTracker has them, and the same array in NumPy, -1 where it has no element of the buffer
    ([View((6, 4), (1, 6)), View.contiguous((24,))], BUFFER.reshape(4, 6).T.ravel()),
    (
        [View((6, 9), (6, 1), -9, mask=[(1, 5), (3, 9)]), View.contiguous((54,))],
        padded(BUFFER.reshape(4, 6), (1, 1), (3, 0)).ravel(),
    ),
    (
        [View((5, 8), (8, 1), -8, mask=[(1, 4), (0, 8)]), View((10, 2, 2), (4, 1, 2)), View.contiguous((4, 10))],
        padded(BUFFER.reshape(3, 8), (1, 1), (0, 0)).reshape(10, 2, 2).transpose(0, 2, 1).reshape(4, 10),
    ),
    ([View((4, 3, 1, 2), (6, 2, 0, 1)), View((8, 3), (-3, 1), 21)], BUFFER.reshape(8, 3)[::-1]),
    ([View.contiguous((24,))], BUFFER),
]


@pytest.mark.parametrize(("views", "wanted"), STACKS)
def test_views_of_views(views, wanted):
    """Each element is where NumPy has it, as written and optimised."""
    axes = [var(f"i{n}", 0, size - 1) for n, size in enumerate(wanted.shape)]
    points = {str(axis): index for axis, index in zip(axes, np.indices(wanted.shape), strict=True)}
    written = through(views, axes)
    for access in (written, written.optimize()):
        index, valid = evaluate([access.index, access.valid], points)
        assert np.array_equal(np.where(valid, index, -1), wanted)


def test_no_view_is_refused():
    with pytest.raises(ValueError, match="an access needs a view: give at least the one of the buffer"):
        through([], [])
    with pytest.raises(TypeError, match="views"):
        through([View.contiguous((3,)), 5], [1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="the indices of a view are given as 'x': give one per dimension"):
        through([View.contiguous((3,))], "x")
    with pytest.raises(ValueError, match="2 indices for a view of 1 dimension:"):
        through([View.contiguous((3,))], [1, 2])
