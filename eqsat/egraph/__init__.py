"""Rules as data, their compilation, and the egglog e-graph in which they run.

A rule is one line (:class:`eqsat.egraph.rule.Rule`). :mod:`eqsat.egraph.program` is the encoding of the e-graph: sums,
products, junctions and extremes are containers with an index over their members. :mod:`eqsat.egraph.compilation`
compiles rules to it, their left sides by :mod:`eqsat.egraph.left_sides`; :mod:`eqsat.egraph.tables` drives egglog with
rows of plain data, unless :mod:`eqsat.egraph.prefilter` tells that no rule matches them. What a run may use is a
:class:`eqsat.egraph.budget.Budget`; what it did, a :class:`eqsat.egraph.trace.Trace`.

Imports ``lang``.
"""
