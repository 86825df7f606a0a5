"""The limits of alternatives and of the choice among them: what each bounds, and what happens beyond."""

from dataclasses import dataclass

from eqsat.theory.limits import LIMITS as THEORY_LIMITS


@dataclass(frozen=True, slots=True)
class AlternativeLimits:
    """How many e-nodes there are of one normal form, and how far the choice among them is searched."""

    # the size of the e-graph
    #: From this number of classes on each new class gets fewer e-nodes.
    classes: int = 600
    #: The same number once the time is up.
    late_classes: int = 100

    # e-nodes of one class
    #: Classes with this number of nodes or more also keep them in a set, to look nodes up.
    listed_nodes: int = 64
    #: The first e-nodes of one class whose constants are taken into quotients; what is added last are sums as multiples
    #: of others, of which a class of dozens of quotients has thousands.
    nodes_with_constants: int = 64
    #: A sum of more terms is wide: rules take it for one value, its quotients are not compared with each other, and its
    #: partial sums are no classes. Otherwise time and nodes would grow with the square of its terms.
    wide_sum: int = THEORY_LIMITS.wide_chain
    #: Terms, in all, of the e-nodes of one sum in which some of its terms enter one of its quotients; beyond, no other
    #: quotient is tried. Sums of 64 terms always stay within it.
    partly_absorbed: int = 64 * 64
    #: Cases that are tried to see that a divisor always divides a polynomial.
    divided_cases: int = 2000
    #: Terms of the dividend that quotients of polynomials are put together in, unless their sum has as many.
    dividend_terms: int = 4
    #: Sums over ranges, among the terms of one sum, that are joined two by two; further ones are left as they are.
    joined_ranges: int = 4
    #: A ``min`` or ``max`` of several operands is that of one of them and of the others: the first of this number are
    #: tried as the one.
    last_operands: int = 4
    #: A ``min`` or ``max`` of more operands, or of reductions, is that of its two halves alone: else its parts would be
    #: thousands.
    parted_operands: int = 4
    #: Terms of a sum that is looked at for the remainder of a quotient; longer ones are seldom one.
    remainder_terms: int = 3
    #: In junctions of more members no comparisons are merged.
    compared_sides: int = 16
    #: In junctions of more members comparisons are not merged two by two. A comparison of this number of terms or more
    #: is not read with one of them alone on a side.
    merged_comparisons: int = 4
    #: Comparisons with one value that are merged at a time: rules find too much for a minimum of more operands.
    merged_sides: int = 4
    #: Terms of the input that become e-nodes of one class; further ones are left out.
    input_nodes: int = 6
    #: E-nodes of one class that follow from these by hidden laws; further ones are left out.
    hidden_nodes: int = 4
    #: Inputs with this number of divisions or more are not rewritten by hidden laws, and are no start of the choice;
    #: their quotients and remainders make no classes of dividends that their normal forms shorten.
    input_divisions: int = 120
    #: Terms of the input from one look at the clock to the next.
    terms_per_look: int = 64
    #: Additions in which hidden laws look for a quotient, and factors of a product in which they look for powers.
    hidden_operands: int = 16
    #: A sum is taken for a flat index if it is divided by at least this number of pairs of a divisor and a constant.
    flat_ways: int = 3

    # the choice
    #: Parts of sums are shared once the time is up too, unless the choice has more than this number of e-nodes.
    late_choice: int = 2000
    #: The number of e-nodes up to which a choice by the prices of programs is tried too.
    programmed_nodes: int = 500
    #: Pairs of terms that are compared for shared partial sums: all pairs of 1000 terms; in longer sums, neighbours.
    pairs_of_terms: int = 500_000
    #: Sums of up to this number of terms are computed by the cheapest program found; longer ones term by term.
    program_terms: int = 4
    #: Programs that a process keeps for one cost model; beyond, all are dropped and found anew.
    kept_programs: int = 100_000
    #: Pairs from one look at the clock to the next; with fewer pairs than this, sums are shared however late it is.
    pairs_per_look: int = 1000
    #: Pairs of a condition and a sum that are compared.
    condition_pairs: int = 400
    #: The largest period of a remainder that says whether a sum is in a window; wider ones would take 64 bits.
    window_period: int = 2**31
    #: Multiples of one sum that are tried in pairs in place of each other; of more, none are.
    multiples: int = 8
    #: Sums that are tried in place of terms of another sum: those that share most terms with it.
    parts: int = 16
    #: The same number for wide sums.
    parts_of_wide: int = 2
    #: Terms, in all, of the e-nodes of one class with a multiple of another sum; beyond, none of its other e-nodes is
    #: written so. Only sums of dozens of quotients have as many.
    terms_by_sums: int = 16_384
    #: A sum by which conditions may be compared is tried for all of them at once, if at least this number of classes
    #: can use it.
    users: int = 3


#: The limits that are used.
LIMITS = AlternativeLimits()
