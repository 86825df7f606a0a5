"""Limits that callers give."""

from numbers import Real


def refuse_below(least: int, given: float, what: str, of: str = "") -> None:
    """Raise ``TypeError`` unless ``given`` is a number, and ``ValueError`` if it is below ``least`` or not a number.

    >>> refuse_below(0, -1.5, "seconds")
    Traceback (most recent call last):
    ValueError: -1.5 seconds: give 0 or more
    """
    if not isinstance(given, Real):
        raise TypeError(f"{of}{given!r} {what}: give a number")
    # true of what is no number either
    if not given >= least:
        raise ValueError(f"{of}{given} {what}: give {least} or more")
    try:
        float(given)
    except OverflowError:
        raise ValueError(f"{of}more {what} than a float holds: give fewer, or math.inf for no limit") from None


def refuse_seconds(seconds: float) -> None:
    """Raise ``ValueError`` or ``TypeError`` unless ``seconds`` is a time: 0 or more, or infinity."""
    refuse_below(0, seconds, "seconds")
