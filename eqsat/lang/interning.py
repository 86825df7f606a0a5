"""The table of terms in use: equal terms are one object, in all threads.

A term is known by its identity: its operator and its operands, or what tells a leaf from others. The table keeps no
term in use.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, cast
from weakref import ref

if TYPE_CHECKING:
    from eqsat.lang.expr import Expr

Identity = tuple[object, ...]

#: Every term in use, and some that are not: these are swept out when the table has grown by half, which is cheaper than
#: a callback for each.
terms: dict[Identity, ref[Expr]] = {}
#: The table is swept when it has more entries than this, or half as many again as it had left, whichever is more.
MIN_SWEPT = 1 << 14
_sweep_at = [MIN_SWEPT]
#: Held where an entry of the table goes, or gives way to another.
_table_lock = RLock()


def known(identity: Identity) -> Expr | None:
    """The term with this identity, if it is in use."""
    found = terms.get(identity)
    return None if found is None else found()


def interned(identity: Identity, term: Expr) -> Expr:
    """``term``, just made, or the one with this identity where another thread was faster."""
    if len(terms) > _sweep_at[0]:
        sweep()
    own = ref(term)
    return term if terms.setdefault(identity, own) is own else _entered(identity, own)


def _entered(identity: Identity, own: ref[Expr]) -> Expr:
    """The term that another thread has entered, else ``own``, in place of what is not in use."""
    with _table_lock:
        other = known(identity)
        if other is not None:
            return other
        terms[identity] = own
        return cast("Expr", own())


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
