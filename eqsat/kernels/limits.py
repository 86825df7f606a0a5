"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """How far loops, ranges and stages are searched."""

    # loops
    #: Loops stay as they are given if others save no more than this share of the cost: prices are estimates.
    least_gain: float = 1 / 16
    #: How often a nest is changed for one that costs less.
    changes: int = 8
    #: Changes of one nest that are priced: the splits that most divisions and remainders ask for, and merges.
    candidates: int = 8
    #: From this number of classes on no more nests are considered.
    classes: int = 500

    # stages
    #: Each number of values up to this is tried as a factor.
    factor: int = 2**16
    #: Up to this level of effort nothing is computed again in a reduction.
    careful_level: int = 2


#: The limits that are used.
LIMITS = KernelLimits()
