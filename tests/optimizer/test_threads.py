"""Several threads at once: one term stays one object, and optimisations do not meet in one e-graph."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from eqsat.egraph.bindings import WarmProgram
from eqsat.egraph.budget import Budget
from eqsat.lang.expr import Expr, var
from eqsat.optimizer.front import optimize
from eqsat.rules import DEFAULT


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_two_threads[T](work: Callable[[int], T]) -> list[T]:
    """What ``work`` returns for 0 and for 1, both begun at one moment."""
    start = Barrier(2)

    def begin(number: int) -> T:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(begin, range(2)))


def test_equal_terms_are_one_object() -> None:
    def build(_: int) -> list[Expr]:
        return [var("threaded", n, n + 9) * 3 + n for n in range(30_000)]

    one, other = in_two_threads(build)
    assert all(mine is yours for mine, yours in zip(one, other, strict=True))


def test_terms_that_are_not_kept() -> None:
    def build(thread: int) -> None:
        # the table of terms is swept again and again, by both
        for n in range(40_000):
            var("churned", n - thread * 10**6, 10**9) + 1

    in_two_threads(build)


@pytest.mark.parametrize("theory", [True, False], ids=["theory", "rules"])
def test_optimisations_at_once_answer_as_one_by_one(theory: bool) -> None:
    texts = ["tdiv(x, y)*2 + tmod(x, y)", "(x*y + x)//y", "min(x, y)*max(x, y)//y", "where(x < y, x//y, tdiv(x, 2))"]

    def answers(_: int) -> list[tuple[Expr, ...]]:
        budget = Budget(seconds=20)
        return [optimize(t, x=(-9, 9), y=(1, 5), theory=theory, budget=budget).exprs for t in texts]

    assert in_two_threads(answers) == [answers(0)] * 2


def test_tables_that_another_thread_takes_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Emptied(list[object]):
        def __bool__(self) -> bool:
            return True

    monkeypatch.setattr("eqsat.optimizer.saturation._free_tables", lambda rules: Emptied())
    assert optimize("min(x, y)*3 + max(x, y)*3", x=(0, 9), y=(0, 9)).stop == "saturated"


def test_an_error_in_the_middle_of_reading_rules_leaves_no_half_read_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(program: WarmProgram, text: str) -> None:
        monkeypatch.undo()
        program.extend(text)
        # as a handler of SIGALRM may raise it, between any two instructions
        raise TimeoutError

    ranges = {"i": (1, 9), "j": (0, 9)}
    # rules of their own have a session of their own
    rules = DEFAULT[:-1]
    first, text = "(i*12 + j)%5//3", "(j*16 + i + 1)%7//i"
    optimize(first, rules=rules, **ranges)
    monkeypatch.setattr(WarmProgram, "extend", interrupted)
    with pytest.raises(TimeoutError):
        optimize(text, rules=rules, **ranges)
    assert optimize(text, rules=rules, **ranges).exprs == optimize(text, **ranges).exprs
