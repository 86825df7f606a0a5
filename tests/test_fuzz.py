"""A few seconds of fuzzing, and that it sees what is wrong: ``make fuzz`` goes on for as long as it is told."""

from collections import Counter

import fuzzing
import pytest

from eqsat.lang.expr import var
from eqsat.lang.functions import where


@pytest.mark.parametrize("kind", [kind for kind in fuzzing.KINDS if kind != "kernels"])
def test_what_is_tried_is_right(kind):
    report = fuzzing.fuzz(10.0, kinds=[kind], rounds=1)
    assert report.counts
    assert report.failures == []


@pytest.mark.parametrize(("kind", "most"), [("expressions", 900), ("bounds", 2000), ("reductions", 2000)])
def test_a_wrong_answer_is_seen_and_written_as_a_test(kind, most, monkeypatch):
    """That of random expressions is made small first."""

    class Result:
        def __init__(self, exprs):
            self.exprs = exprs

    monkeypatch.setattr(fuzzing, "optimize", lambda roots, **_: Result([root + 1 for root in roots]))
    with pytest.raises(fuzzing.WrongAnswerError, match="test_found_by_fuzzing") as caught:
        fuzzing.KINDS[kind](0, Counter())
    text = str(caught.value)
    compile(text, "found", "exec")
    assert len(text) < most


def test_a_kind_that_is_not_tried_is_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzzing.py", "--only", "maps,kernel"])
    with pytest.raises(SystemExit):
        fuzzing.main()
    assert "nothing of kind 'kernel' is tried: choose from expressions, " in capsys.readouterr().err


def test_python_says_what_expressions_mean():
    x = var("x", -9, 9)
    program = fuzzing.program_of(where(x < 4, x // 2 + x % 3, 0))
    assert [program({"x": n}) for n in (-9, 3, 5)] == [-5, 1, 0]
