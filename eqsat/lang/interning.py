"""The table of terms in use: equal terms are one object, in all threads.

A term is known by its identity: its operator and its operands, or for a leaf its kind and its value. The references of
the table are weak, so a term is freed when nothing else refers to it.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, cast
from weakref import ref

Identity = tuple[object, ...]

#: The terms by identity. An entry outlives its term until the table is swept, which costs less than a callback for each
#: term.
terms: dict[Identity, ref[Any]] = {}
#: The table is swept when it has more entries than this, or half as many again as it had left, whichever is more.
MIN_SWEPT = 1 << 14
_sweep_at = [MIN_SWEPT]
#: Held while an entry is removed or replaced.
_table_lock = RLock()
# a child of a fork that begins while a thread holds the lock would wait for it forever
os.register_at_fork(before=_table_lock.acquire, after_in_parent=_table_lock.release, after_in_child=_table_lock.release)


def known(identity: Identity) -> Any:
    """The term with this identity, if it is in use, else ``None``."""
    found = terms.get(identity)
    return None if found is None else found()


def interned[T](identity: Identity, term: T) -> T:
    """``term``, just made, or the one with this identity where another thread was faster."""
    if len(terms) > _sweep_at[0]:
        sweep()
    own = ref(term)
    return term if terms.setdefault(identity, own) is own else _entered(identity, own)


def _entered[T](identity: Identity, own: ref[T]) -> T:
    """The term that another thread has entered; if its entry has outlived it, ``own`` replaces it."""
    with _table_lock:
        other: T | None = known(identity)
        if other is not None:
            return other
        terms[identity] = own
        return cast(T, own())


def sweep() -> None:
    """Forget the terms that are not in use."""
    with _table_lock:
        # users come after their operands, which their identities keep alive
        left = list(terms.items())
        while left:
            identity, term = left.pop()
            if term() is None:
                del terms[identity]
        _sweep_at[0] = max(MIN_SWEPT, len(terms) * 3 // 2)
