"""Slots for functions that a module calls, but that are defined in a module which imports it."""

from __future__ import annotations

from collections.abc import Callable


class Slot[R]:
    """A place for one function, filled once, when the module that defines the function is imported.

    >>> double: Slot[int] = Slot()
    >>> @double.fill
    ... def twice(number):
    ...     return number * 2
    >>> double.call(4)
    8
    """

    #: The function.
    call: Callable[..., R]

    def fill[**P](self, function: Callable[P, R]) -> Callable[P, R]:
        """Let ``function`` be the one that is called; as a decorator, return it as it is."""
        self.call = function
        return function
