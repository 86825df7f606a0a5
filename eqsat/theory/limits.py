"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TheoryLimits:
    """How much work the theory does before it takes less exact an answer: each limit costs precision, never truth."""

    # conditions
    #: A member of a conjunction or disjunction is tested against this number of others; in longer ones it is not
    #: tested.
    deciding: int = 8
    #: Members of a junction with up to this number of terms are read again where the others are decided.
    reread_terms: int = 200
    #: Terms of conditions that are compared, or select between conditions, and so are said twice; larger ones stay
    #: whole.
    repeated_terms: int = 500
    #: A comparison of minima and maxima is split into up to this number without them; else it stays whole.
    split_comparisons: int = 8
    #: If the ends of a sum are at most this far apart, its comparisons ask which values between them it reaches.
    reached_values: int = 2048

    # conjectures
    #: Points at which conjectures are made.
    samples: int = 256
    #: Points of a domain that a conjecture is evaluated over as a whole; over larger ones it needs another proof.
    conjecture_points: int = 1 << 18
    #: The same, of a domain that is a period and so says all.
    periodic_points: int = 1 << 16
    #: The greatest size of a variable of which something is conjectured: what machine integers hold.
    conjectured_value: int = 2**63 - 2
    #: Atoms of the terms of which something is conjectured; with more, nothing is.
    conjecture_atoms: int = 128
    #: At fewer points than unknowns plus this number, a combination says nothing.
    spare_points: int = 16
    #: Operators and leaves that a sum of variables may have beyond a quotient by what is no literal, to be conjectured.
    spared_division: int = 4
    #: Larger coefficients of a conjecture are taken for accidents of rounding.
    coefficient: int = 1 << 20

    #: Operands of sums and junctions of which also the beginnings are read; of longer ones that would be their square.
    wide_chain: int = 64

    # bounds and facts
    #: Searches for what divides an atom, each within another; deeper down, all operands are looked at first.
    open_searches: int = 25
    #: Terms of longer sums than this are taken for independent once the time is up.
    late_terms: int = 8
    #: Terms of sums that are taken for independent whatever the time, or it would grow with their square.
    wide_terms: int = 256
    #: Branches of selections in which a theory assumes their condition; further branches see the outer facts only.
    contexts: int = 1000
    #: Contexts within contexts: as deep as the stack allows for what is asked in each.
    depth: int = 20
    #: Points of a domain over which a condition is evaluated; over larger ones it is not.
    condition_points: int = 1 << 13
    #: How often bounds of sums narrow those of their atoms, one sum after another.
    propagations: int = 3
    #: How often facts are read, unless they say no more before.
    readings: int = 4
    #: Cases of the minima of a sum that its bounds distinguish; with more, each minimum has its own bounds.
    bounds_cases: int = 8
    #: How often what follows from what was asserted is asserted in turn.
    consequences: int = 2
    #: Terms of a traversal from one look at the clock to the next.
    terms_per_look: int = 16

    # refutation
    #: Steps of all refutations of a theory and its relatives, some microseconds each; then nothing is refuted.
    shared_steps: int = 50_000
    #: Steps of one refutation: a pair of rows that is combined is one, a case is ``steps_of_case``.
    refutation_steps: int = 3000
    #: Steps that a case counts for.
    steps_of_case: int = 20
    #: Atoms that bring rows of their own; further ones bring none.
    refutation_atoms: int = 40
    #: Quotients by what is no literal that a form is multiplied by the divisors of, to see its sign, one after another.
    multiplied_quotients: int = 2
    #: Rows that elimination keeps; where it would keep more it stops.
    rows: int = 40

    # minima and maxima
    #: Operands that are compared by refutation; more are compared by their bounds alone.
    compared_operands: int = 6
    #: Operands of a minimum that is made flat; where each holds those before it, there would be no end of them.
    flat_operands: int = 64
    #: Operands among which the one is chosen that the others are measured against.
    bases: int = 8
    #: Operands, in all, of nested extremes that are searched for operands that never decide.
    nested_operands: int = 8

    # products, quotients and sums
    #: A power with a larger exponent stays a product over a range.
    exponent: int = 64
    #: So does a power of a sum with a larger exponent: multiplied out it has too many terms.
    sum_exponent: int = 6
    #: Terms of a product of two sums that is multiplied out; a longer one is an atom.
    product_terms: int = 16
    #: A quotient of one atom with fewer values than this is tried for being affine by enumeration.
    enumerated_values: int = 64
    #: Operands of a minimum whose quotient is read case by case.
    minimum_cases: int = 8
    #: How often a product is replaced by one that is known to equal it, where several are.
    equal_products: int = 8
    #: How often quotients by what is no literal are rewritten in one go; what takes more leads on and on.
    laws: int = 24
    #: Quotients of a dividend that is taken apart; where each holds those before it, there would be no end of them.
    quotients: int = 12
    #: The same, of laws, terms and quotients, once the time is up.
    late_quotients: int = 3
    #: Reductions of a sum, product, minimum or maximum of which each two are tried for being parts of one range.
    adjacent_loops: int = 8
    #: Terms of a body up to which two loops around it are tried for being one.
    merged_terms: int = 60
    #: Steps of a reduction without free variables that is computed.
    computed_steps: int = 4096
    #: The highest power of an index that is summed.
    degree: int = 8
    #: Alternatives of a condition that a sum is taken apart by.
    condition_alternatives: int = 3
    #: Terms of a form whose known bits are found from theirs; those of a longer one are what its bounds say.
    bit_terms: int = 16
    #: Bit operators, one in an operand of the next, whose known bits are found in the same way.
    nested_bits: int = 12
    #: Operands of nested bit operators that are made flat; with more the nesting stays.
    bit_operands: int = 32
    #: Cases that are tried to see that a polynomial is always divisible; with more it is taken for one that is not.
    divisibility_cases: int = 2000


#: The limits that are used.
LIMITS = TheoryLimits()
