"""The limits of the theory, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TheoryLimits:
    """How much work the theory does. Beyond a limit its answer is less precise, but never wrong."""

    # conditions
    #: Other members of a conjunction or disjunction that a member is tested against; with more it is not tested.
    deciding: int = 8
    #: Terms of a member that is simplified by assuming the other members; larger members are not.
    reread_terms: int = 200
    #: Terms of a condition that is compared, or selects between conditions, and so would be written twice; larger ones
    #: are not expanded.
    repeated_terms: int = 500
    #: Comparisons that one comparison of minima and maxima is split into; if it takes more, it is not split.
    split_comparisons: int = 8
    #: The difference of the bounds of a sum whose reachable values are enumerated; beyond it, they are not.
    reached_values: int = 2048

    # conjectures
    #: Sample points that conjectures are read off.
    samples: int = 256
    #: Points of a domain over which a conjecture is proved by evaluation; over larger ones it needs another proof.
    conjecture_points: int = 1 << 18
    #: The same for a period, which stands for an unbounded domain.
    periodic_points: int = 1 << 16
    #: The same where a remainder is only looked for because a sum with it would be shorter.
    lacking_points: int = 1 << 10
    #: The largest magnitude of the variables in a conjecture: what 64 bits hold, also one step further.
    conjectured_value: int = 2**63 - 2
    #: Atoms among which conjectures are sought; with more, none are.
    conjecture_atoms: int = 128
    #: A combination of N unknowns is conjectured only from N plus this number of points.
    spare_points: int = 16
    #: A sum of variables may replace a quotient by a term that is no literal if it is larger by up to this number of
    #: operators and leaves.
    spared_division: int = 4
    #: The largest coefficient of a conjecture; larger ones come from rounding errors.
    coefficient: int = 1 << 20

    # traversal
    #: Operands of a sum or junction up to which each of its partial chains gets a normal form of its own; in longer
    #: ones that would take time quadratic in their length.
    wide_chain: int = 64

    # bounds and facts
    #: Recursive searches for ranges or divisions, one in another; at each multiple of it, the operands that are left
    #: are searched bottom-up, so that the stack does not overflow.
    open_searches: int = 25
    #: Once the time is up, terms of longer sums are taken for independent.
    late_terms: int = 8
    #: Terms of longer sums are always taken for independent: to compare them pairwise takes quadratic time.
    wide_terms: int = 256
    #: Theories that assume a further condition, as in the branch of a selection; after these, branches know only what
    #: holds outside.
    contexts: int = 1000
    #: How deep such theories are nested: as deep as the stack allows for the questions in each.
    depth: int = 20
    #: Points of a domain over which a condition is evaluated; over larger ones it is not.
    condition_points: int = 1 << 13
    #: Rounds in which bounds of sums narrow those of their atoms.
    propagations: int = 3
    #: Rounds in which all facts are read, unless one changes nothing.
    readings: int = 4
    #: Cases of the minima of a sum that its bounds distinguish; with more, each minimum has its own bounds.
    bounds_cases: int = 8
    #: Rounds in which the consequences of asserted equalities are asserted.
    consequences: int = 2
    #: Terms of a traversal from one look at the clock to the next.
    terms_per_look: int = 16

    # refutation
    #: Steps of all refutations of related theories, some microseconds each; then nothing is refuted.
    shared_steps: int = 50_000
    #: Steps of one refutation: each pair of rows that is combined counts as one, each case as ``steps_of_case``.
    refutation_steps: int = 3000
    #: Steps that a case counts for.
    steps_of_case: int = 20
    #: Atoms whose definitions become rows and choices; further ones have only their ranges.
    refutation_atoms: int = 40
    #: How often one form is multiplied by the divisor of a symbolic quotient to find its sign.
    multiplied_quotients: int = 2
    #: Rows that elimination keeps; where it would keep more it stops.
    rows: int = 40

    # minima and maxima
    #: Operands that are compared by refutation; more are compared by their bounds alone.
    compared_operands: int = 6
    #: Operands of a flattened minimum; beyond, it stays nested: where each minimum contains those before it, their
    #: number explodes.
    flat_operands: int = 64
    #: Conditions of the selections in operands of a minimum that is taken into the branches of one; with more it is
    #: not: each branch would have all the others.
    minimum_conditions: int = 3
    #: Operands that are tried as the base, from which the others are subtracted.
    bases: int = 8
    #: Operands, at all depths, of nested extremes that are searched for redundant ones.
    nested_operands: int = 8

    # products, quotients and sums
    #: The exponent of a power that is multiplied out; with a larger one it stays a product over a range.
    exponent: int = 64
    #: The same for a power of a sum, which gets more terms with each factor.
    sum_exponent: int = 6
    #: Terms of a product of two sums that is multiplied out; a longer one is an atom.
    product_terms: int = 16
    #: Values of an atom whose quotient is enumerated, to see whether it is affine.
    enumerated_values: int = 64
    #: Common divisors of several coefficients and a divisor that are tried as factors of it; with more, only those of
    #: one coefficient are.
    common_divisors: int = 256
    #: Operands of a minimum whose quotient is the minimum of their quotients.
    minimum_cases: int = 8
    #: How often factors of one product are replaced by known equal products.
    equal_products: int = 8
    #: Laws that are applied to one quotient by a term that is no literal; with more it stays as it is: they may never
    #: end.
    laws: int = 24
    #: Quotients in a dividend that is rewritten: where each contains those before it, their number explodes.
    quotients: int = 12
    #: Once the time is up, the limit of ``laws``, and of terms that are no variables in a dividend that is rewritten.
    late_quotients: int = 3
    #: Reductions in a sum, product, minimum or maximum that are compared pairwise, to join adjacent ranges.
    adjacent_loops: int = 8
    #: Terms of the body of two nested loops that are merged into one.
    merged_terms: int = 60
    #: Steps of a reduction without free variables that is computed.
    computed_steps: int = 4096
    #: The same, with the steps of the reductions in its body.
    nested_steps: int = 1 << 24
    #: Steps of a loop over a short body without loads that is written out; longer ones stay loops.
    written_steps: int = 3
    #: Terms of such a body.
    written_terms: int = 24
    #: Selections in what it becomes; with more it stays a loop.
    written_selections: int = 2
    #: The highest power of an index that is summed.
    degree: int = 8
    #: Members of a disjunction that a sum is split by.
    condition_alternatives: int = 3
    #: Terms of a form whose known bits are those of their sum; of a longer form the bounds tell what is known.
    bit_terms: int = 16
    #: Bit operators, one in an operand of the next, whose known bits are found from their operands.
    nested_bits: int = 12
    #: Operands of nested bit operators that are flattened; with more they stay nested.
    bit_operands: int = 32
    #: Cases that are tried to see that a polynomial is always divisible; with more it counts as not divisible.
    divisibility_cases: int = 2000


#: The limits that are used.
LIMITS = TheoryLimits()
