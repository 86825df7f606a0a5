"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass

from eqsat.theory.limits import LIMITS as THEORY_LIMITS


@dataclass(frozen=True, slots=True)
class AlternativeLimits:
    """How many e-nodes there are of one normal form, and how far the choice among them is searched."""

    # the size of the e-graph
    #: From this number of classes on each new class gets fewer e-nodes.
    classes: int = 600
    #: The same, once the time is up.
    late_classes: int = 100

    # e-nodes of one class
    #: Nodes of a class up to which a list is searched for one of them.
    listed_nodes: int = 64
    #: A sum of more terms is wide: rules take it for one value, none of its quotients is looked for in the others, and
    #: its partial sums are no classes. Else time and nodes grow with the square of its terms.
    wide_sum: int = THEORY_LIMITS.wide_chain
    #: Terms, in all, of a sum's e-nodes in which a part of it enters one of its quotients; then no further quotient is
    #: tried. All those of a sum of 64 terms are; of wider ones time and nodes would grow with the square of its terms.
    partly_absorbed: int = 64 * 64
    #: Sums over ranges of which any two are joined, if they are addends of one sum.
    joined_ranges: int = 4
    #: Operands of a longer ``min`` or ``max`` that are tried as the last.
    last_operands: int = 4
    #: Up to this number of operands any may be the last; with more the parts would be thousands.
    parted_operands: int = 8
    #: Terms of a sum that is looked at for the remainder of a quotient; longer ones are seldom one.
    remainder_terms: int = 3
    #: Members of a junction whose comparisons are merged where each of some sides is compared with each of others; in
    #: longer ones they stay.
    compared_sides: int = 16
    #: Members of a junction whose comparisons are merged, two by two; in longer ones they stay.
    merged_comparisons: int = 4
    #: Comparisons with one value that are merged at once, of more as many at a time; minima of more let rules find more
    #: than there is room for.
    merged_sides: int = 4
    #: Terms of the input that become e-nodes of one class; further ones are left out.
    input_nodes: int = 6
    #: E-nodes of one class that follow from these by hidden laws; further ones are left out.
    hidden_nodes: int = 4
    #: Inputs with this number of divisions are not rewritten, and no answer has them as they are written.
    input_divisions: int = 120
    #: Terms of the input from one look at the clock to the next.
    terms_per_look: int = 64
    #: Operators of sums, and factors of products, in which hidden laws look for a quotient, or for powers.
    hidden_operands: int = 16
    #: A sum that is divided in at least this number of ways is a flat index.
    flat_ways: int = 3

    # the choice
    #: Parts of sums are shared once the time is up too, unless the choice has more than this number of e-nodes.
    late_choice: int = 2000
    #: The number of e-nodes up to which a choice by the prices of programs is tried too.
    programmed_nodes: int = 500
    #: Pairs of terms that are compared: all those of 1000 terms; of longer sums those that are near each other.
    pairs_of_terms: int = 500_000
    #: Sums of up to this number of terms are computed by the cheapest program found; longer ones term by term.
    program_terms: int = 4
    #: Programs that a process keeps by one cost model; beyond they are found anew.
    kept_programs: int = 100_000
    #: Pairs from one look at the clock to the next, so that short sums are shared whatever it says.
    pairs_per_look: int = 1000
    #: Pairs of a condition and a sum that are compared.
    condition_pairs: int = 400
    #: Parts that are tried in place of terms that a sum shares with others: those that share most.
    parts: int = 16
    #: The same for wide sums.
    parts_of_wide: int = 2
    #: Values of bit operators that a sum is searched for; further ones are left out.
    bit_values: int = 64
    #: What conditions may be compared by is tried for all that could use it, if these are at least this number of
    #: classes.
    users: int = 3


#: The limits that are used.
LIMITS = AlternativeLimits()
