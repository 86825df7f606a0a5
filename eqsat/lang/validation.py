"""Checks of arguments. Each error says in one line what was given and what to give instead."""

from collections.abc import Iterable
from numbers import Real
from operator import index
from typing import SupportsIndex, cast


def refuse_below(least: int, given: float, what: str, of: str = "") -> None:
    """Raise ``TypeError`` unless ``given`` is a number, and ``ValueError`` if it is NaN or below ``least``."""
    if not isinstance(given, Real):
        raise TypeError(f"{of}{given!r} {what}: give a number")
    # not ``given < least``, which is false of NaN
    if not given >= least:
        raise ValueError(f"{of}{given} {what}: give {least} or more")
    try:
        float(given)
    except OverflowError:
        raise ValueError(f"{of}more {what} than a float holds: give fewer, or math.inf for no limit") from None


def refuse_seconds(seconds: float) -> None:
    """Raise ``ValueError`` or ``TypeError`` unless ``seconds`` is a time: 0 or more, or infinity."""
    refuse_below(0, seconds, "seconds")


def require(given: object, kind: type, what: str) -> None:
    """Raise ``TypeError`` unless ``given`` is an instance of ``kind``."""
    if not isinstance(given, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise TypeError(f"{what} must be {article} {kind.__name__}, not {shown(given)}")


def list_of[T](kind: type[T], given: object, what: str) -> tuple[T, ...]:
    """The members of ``given``; raise ``TypeError`` unless all are instances of ``kind``."""
    found = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(each, kind) for each in found):
        raise TypeError(f"{what} are given as {shown(given)}: give a list of {kind.__name__}")
    return found


def shown(given: object) -> str:
    """What a message calls a value: its ``repr``, or its type if that is long or has several lines."""
    text = repr(given)
    return text if len(text) <= 60 and "\n" not in text else type(given).__name__


def shortened(text: str, most: int) -> str:
    """A text cut to ``most`` characters: for messages."""
    return text if len(text) <= most else text[: most - 3] + "..."


#: How terms of other systems are converted, by their package.
_CONVERTERS = {
    "sympy": "eqsat.interop.sympy.from_sympy, or simplify it by eqsat.interop.sympy.simplify",
    "torch": "eqsat.interop.sympy.from_sympy if it is a symbolic size, or by eqsat.interop.inductor.install",
    "tinygrad": "eqsat.interop.tinygrad.install, which optimises the kernels that tinygrad makes",
}


def origin_of(value: object) -> str | None:
    """How to convert ``value`` if it is a term of another system, else ``None``."""
    return _CONVERTERS.get(type(value).__module__.partition(".")[0])


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things in words: the noun is ``one`` for one of them, else ``many``, or ``one`` with an s.

    >>> counted(1, "case"), counted(2, "case"), counted(0, "index", "indices")
    ('1 case', '2 cases', '0 indices')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The nearest known name; none if none is near."""
    from difflib import get_close_matches

    return get_close_matches(name, [*known], 1)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, or nothing if none is near."""
    return "".join(f"; did you mean {near!r}?" for near in near_names(str(name), known))


def integer_of(given: object, what: str) -> int:
    """``given`` as Python's integer, which does not wrap around; raise ``TypeError`` unless it is an integer."""
    try:
        return index(cast(SupportsIndex, given))
    except TypeError:
        raise TypeError(f"{what} is given as {shown(given)}: give an integer") from None


def integers_of(given: object, what: str) -> tuple[int, ...]:
    """``given`` as Python's integers, which do not wrap around; raise ``TypeError`` unless it is a list of integers."""
    try:
        return tuple([index(number) for number in cast(Iterable[SupportsIndex], given)])
    except TypeError:
        raise TypeError(f"{what} are given as {shown(given)}: give a list of integers") from None
