"""Rules as data, their compilation, and the egglog sessions that run them.

A rule is one line (:class:`eqsat.egraph.rule.Rule`). :mod:`eqsat.egraph.program` is the encoding of the e-graph modulo
linear arithmetic: sums, products, junctions and extremes are containers with an index over their members;
:mod:`eqsat.egraph.matching` compiles rules to it, and :mod:`eqsat.egraph.tables` drives egglog with rows of plain data.
:mod:`eqsat.egraph.engine` runs rules alone, and rules about reductions, over terms as they are written.

Imports ``extract`` and ``lang``.
"""
