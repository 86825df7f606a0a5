"""What a module declares and those above it fill: slots for functions that it calls, and what notebooks show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


#: A term's text; :mod:`eqsat.lang.text` fills it.
TEXT: Slot[str] = Slot()
#: A term as a formula; :mod:`eqsat.lang.display` fills it.
FORMULA: Slot[str | None] = Slot()
#: The values of terms; :mod:`eqsat.lang.evaluation` fills it.
VALUES: Slot[list[NDArray[Any]]] = Slot()


class Displayed:
    """What notebooks show as a table or a formula, beside its text."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return None

    def _repr_latex_(self) -> str | None:
        return None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        forms = {"text/plain": repr(self), "text/html": self._repr_html_(), "text/latex": self._repr_latex_()}
        return {kind: form for kind, form in forms.items() if form is not None}
