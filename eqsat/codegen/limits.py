"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """How large texts, rows and builds may be before they are written in another way."""

    # expressions
    #: Operators and leaves that an expression without locals repeats; one that repeats more is refused.
    repeated_terms: int = 10_000
    #: Characters of a text; a longer one becomes a local, which also bounds how deep C expressions nest.
    text: int = 60
    #: Terms that a term is unrolled into; more are refused.
    unrolled: int = 2**16

    # loops over arrays
    #: Operators, repeated ones among them, that a load in a branch is written together with; with more it has a test
    #: of its own, and what is computed from it has locals.
    in_branch: int = 200
    #: Rows with fewer elements than this are not worth a loop for their interior, nor a pass of their own.
    row: int = 8
    #: Elements of a row that does not split into strips of 16; sums in a row of this length or less are taken together,
    #: sums in a longer one step by step in memory.
    strip: int = 32
    #: Bytes of an array that rows are read from by strips: of more than a second-level cache holds, whole rows are
    #: better.
    stripped_bytes: int = 1 << 18
    #: A sum of fewer steps is not taken in lanes: adding the lanes up costs more than they gain.
    lane_steps: int = 16

    # comparisons with the evaluator
    #: Steps of its innermost loops that the compiled kernel takes; of one with more some outer iterations are run.
    run_steps: int = 2**23
    #: Steps that the evaluator takes, for each store; with more not all elements are compared.
    evaluated_steps: int = 2**16
    #: Bytes of all arrays; a kernel with more is not compared.
    held_bytes: int = 2**27


#: The limits that are used.
CODE_LIMITS = CodeLimits()
