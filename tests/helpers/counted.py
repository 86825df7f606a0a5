"""How much work something is, counted: what takes how long depends on the machine."""

import cProfile
import gc
from collections.abc import Callable


def calls(act: Callable[[], object]) -> int:
    """How many functions are called, but for what the collector of garbage frees of others."""
    gc.collect()
    gc.disable()
    try:
        profile = cProfile.Profile()
        profile.runcall(act)
    finally:
        gc.enable()
    return sum(entry.callcount for entry in profile.getstats())
