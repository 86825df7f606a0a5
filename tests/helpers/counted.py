"""How much work something is, counted: what takes how long depends on the machine."""

import cProfile
import gc
from collections.abc import Callable

from eqsat.optimizer.optimisation import collection_paused


def calls(act: Callable[[], object]) -> int:
    """How many functions are called, but for what the collector of garbage frees of others."""
    gc.collect()
    profile = cProfile.Profile()
    with collection_paused():
        profile.runcall(act)
    return sum(entry.callcount for entry in profile.getstats())
