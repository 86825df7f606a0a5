"""The table of terms in use: equal terms are one object, in all threads.

A term is known by its identity: its operator and its operands, or what tells a leaf from others. The table keeps no
term in use.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, cast
from weakref import ref

Identity = tuple[object, ...]

#: Every term in use, and some that are not: these are swept out when the table has grown by half, which is cheaper than
#: a callback for each.
terms: dict[Identity, ref[Any]] = {}
#: The table is swept when it has more entries than this, or half as many again as it had left, whichever is more.
MIN_SWEPT = 1 << 14
_sweep_at = [MIN_SWEPT]
#: Held where an entry of the table goes, or gives way to another.
_table_lock = RLock()
# a thread that holds it is none of a process that is forked meanwhile
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
    """The term that another thread has entered, else ``own``, in place of what is not in use."""
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
