"""NumPy, which is imported when it is first used: that takes as long as all of eqsat, and many answers need no array.

The modules that ``import eqsat`` loads take it from here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

_TOLD: ContextVar[Callable[[float], object]] = ContextVar("told", default=lambda _: None)

if TYPE_CHECKING:
    import numpy as np
else:

    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            began = time.perf_counter()
            import numpy

            _TOLD.get()(time.perf_counter() - began)
            found = getattr(numpy, name)
            # it is an attribute from now on, so that this function is not called again for it
            setattr(self, name, found)
            return found

    np = _NumPy()

__all__ = ["np", "telling_of_imports"]


@contextmanager
def telling_of_imports(told: Callable[[float], object]) -> Iterator[None]:
    """Call ``told`` with the seconds that each import within took: it is done once in a process."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)
