"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InteropLimits:
    """How long the texts of other systems may be, and how far what they say is followed."""

    # texts
    #: Lines of an MLIR or HLO module, some 30 microseconds each to read; one with more is refused.
    lines: int = 200_000
    #: Characters of such a module; a longer one is refused.
    characters: int = 20_000_000
    #: Characters of a map, of a set or of a tree of operations; a longer one is refused.
    map_characters: int = 1_000_000
    #: MLIR regions, each within another; deeper ones are refused.
    nested_regions: int = 1000
    #: Operations of a tree, each an operand of another; deeper ones are refused.
    nested_operations: int = 100
    #: Seconds for a module of MLIR if the caller gives none. What is not optimised by then stays as it is.
    module_seconds: float = 60.0

    # maps
    #: Maps by which one operand is read; a computation with more is refused.
    maps: int = 256
    #: Operations of an applied map of MLIR that is seen through; with more, what reads it takes it for any value.
    composed: int = 64
    #: Rounds in which constraints narrow variables, and narrower variables simplify constraints. After the last round
    #: the ranges may be wider than need be.
    rounds: int = 8

    # kernels of other compilers
    #: Kernels whose answers are kept. Beyond, those of the kernel that was asked for longest ago are forgotten.
    kept_kernels: int = 1024
    #: Operations on indices in one kernel of tinygrad. Above, the kernel stays as it is.
    operations: int = 2000


#: The limits that are used.
INTEROP_LIMITS = InteropLimits()


def refuse_long_module(text: str, what: str) -> None:
    """Raise ``ValueError`` if a module has more characters or lines than are read; ``what`` names its language."""
    for unit, found, most in (
        ("characters", len(text), INTEROP_LIMITS.characters),
        ("lines", text.count("\n"), INTEROP_LIMITS.lines),
    ):
        if found > most:
            raise ValueError(f"{what} of {found} {unit} is too long: give at most {most}, some functions at a time")


def refuse_long_text(text: str, what: str) -> None:
    """Raise ``ValueError`` if ``what`` is written in more characters than are read."""
    if len(text) > INTEROP_LIMITS.map_characters:
        raise ValueError(
            f"{what} of {len(text)} characters, {text[:40]!r}..., is too long: "
            f"give at most {INTEROP_LIMITS.map_characters}, such as a part of it"
        )
