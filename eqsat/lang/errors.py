"""The errors and warnings of eqsat's own that callers meet; others are Python's ``ValueError`` and ``TypeError``."""

from __future__ import annotations


class TooWideError(ValueError):
    """A product that can have more than :data:`MOST_BITS` bits."""


class ContradictionError(ValueError):
    """Facts that cannot hold together, or a division by zero under them."""


class UnsoundUnionError(RuntimeError):
    """Two different values in one class: some rule is false. The message names the rules that fired."""


class UnsoundStepError(RuntimeError):
    """A step of a derivation is false, so some law is. The message names the law and a counterexample."""


class CompileError(RuntimeError):
    """No C compiler was found, or it failed; one line that says what to do."""


class MiscompilationWarning(UserWarning):
    """The C compiler got a kernel wrong, which was compiled again without vector instructions and runs slower."""
