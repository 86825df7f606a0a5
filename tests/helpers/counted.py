"""How much work something is, counted: what takes how long depends on the machine."""

import cProfile
import gc
from collections.abc import Callable

from eqsat.lang import traversal
from eqsat.optimizer.optimisation import collection_paused


def calls(act: Callable[[], object]) -> int:
    """How many functions are called, but for those that free what others have made."""
    gc.collect()
    # the table of terms is swept when it has grown: what others have left there would be looked through in ``act``
    traversal.sweep()
    profile = cProfile.Profile()
    with collection_paused():
        profile.runcall(act)
    return sum(entry.callcount for entry in profile.getstats())
