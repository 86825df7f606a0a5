"""The limits of this package, in one table: what each bounds, and what happens beyond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptimizerLimits:
    """How far a run searches before it takes what it has: each limit costs strength, never truth."""

    # time
    #: The share of the time after which normal forms are simplified no further; the rest is for building their e-graph.
    normal_forms_share: float = 0.75
    #: The share of the budget's seconds after which a run ends though what it began is not done.
    last_share: float = 1.1
    #: Seconds that it has in addition.
    grace: float = 0.01
    #: The share of the budget's seconds after which the input is the answer if it is not known by then whether the
    #: answer that was found divides by what may be zero.
    checked_share: float = 1.4
    #: Seconds that this has in addition.
    checked_grace: float = 0.03
    #: About the seconds that inserting an e-node into egglog takes: what cannot be matched in time is not inserted.
    seconds_per_node: float = 1e-5
    #: The seconds that replacing two terms of a wide sum takes, for each of its terms.
    seconds_per_pair: float = 4e-7
    #: About the seconds that finishing the answer takes for each term of the input: greedy rewriting ends before that.
    seconds_per_term: float = 3e-6

    # the input
    #: Inputs of more terms are large: what takes long is left out, or comes later.
    large: int = 100
    #: How often what was conjectured and proved leads to further conjectures.
    conjecture_rounds: int = 8
    #: Terms of an input up to which a flat index is tried as one variable, if many divisions are left.
    flat_terms: int = 130
    #: Pairs of a term and a path to it above which all divisions that are not always evaluated get other divisors.
    paths: int = 10_000

    # saturation
    #: Rows, or terms, that are read from one look at the clock to the next.
    rows_per_look: int = 64
    #: Sums of a class that rules match besides its normal form; further ones only if they are shorter than all before.
    open_sums: int = 3
    #: The same with rules of a user's own, which may need each other's results, for sums that are not long.
    open_sums_of_own_rules: int = 40
    #: Sums of more terms are long.
    long_sum: int = 8
    #: Terms up to which rules match sums that have other sums among their terms.
    derived_terms: int = 3
    #: From this number of products, junctions, minima and maxima on broad rules are left out.
    containers: int = 500
    #: From this number of e-nodes on shipped rules match quotients and remainders with no larger constants than these
    #: need. Of two quotients a selection may be the quotient of a selection by their constants.
    excess_nodes: int = 100
    #: E-nodes above which shipped rules match no more if they have made half of them: where they have not saturated by
    #: then, selections of selections go on without end.
    matched_nodes: int = 6000
    #: From this number of e-nodes on loops are no longer merged, split and swapped.
    reindexed_nodes: int = 3000
    #: With rules of a user's own, the rounds that these wait for what other rules make of bodies. Without, they wait
    #: until the other rules find nothing more.
    reindexed_rounds: int = 4
    #: Nodes of a term up to which an index in it is replaced; matches with longer terms are left out, and the run is
    #: not saturated.
    moved_terms: int = 120
    #: Right sides of rules about reductions with more nodes than this are not built: no rule makes them smaller again.
    built_terms: int = 400
    #: How deep nested operators are flattened.
    nested: int = 8

    # rules alone
    #: Inputs of more terms are first rewritten by the rules one after the other.
    rewritten_first: int = 60
    #: With shipped rules inputs of more terms than this are rewritten too,
    rewritten_if_shorter: int = 12
    #: if at most this share of their terms is left then: the e-graph of so few takes a fraction of the time. What is
    #: longer may have lost what the e-graph would find.
    rewritten_share: float = 0.5
    #: E-nodes that all rules together may make before they start again from the best terms.
    first_nodes: int = 1500
    #: This times as many they may make each time they start again.
    nodes_grow: int = 4
    #: A node is needed if its term has at most this number of operators more than the shortest of its class.
    slack: int = 2
    #: Of a class's nodes this number is needed, the shortest first.
    needed: int = 2
    #: If the rules have nothing more to do, and there are no loops, they start again only from an answer that has at
    #: most this share of the terms that they started from. From so few they take far less time than before.
    again: float = 0.5

    # the answer
    #: How often an answer is optimised once more because its normal forms say more than those before.
    readings: int = 3
    #: E-nodes up to which a second choice is looked for, from what is best without rules.
    second_choice_nodes: int = 2000
    #: Blends of cost and size that are tried, from cost alone to size alone.
    blends: int = 9
    #: Roots that a printed result shows; of others it says how many they are.
    shown_roots: int = 8

    # greedy rewriting
    #: Of a chain of up to this number of operands a rule may match any two, and each with the others; of a longer one
    #: the last with the rest.
    chained_operands: int = 16


#: The limits that are used.
LIMITS = OptimizerLimits()
