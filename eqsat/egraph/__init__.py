"""One e-graph modulo linear arithmetic: egglog holds the classes, rules match in it, the theory names its values.

:mod:`eqsat.egraph.program` is the encoding (sums, products, junctions and extremes as containers with an index over
their members), :mod:`eqsat.egraph.matching` compiles rules to it, :mod:`eqsat.egraph.tables` drives egglog with rows of
plain data, and :mod:`eqsat.egraph.modulo` is the loop: insert, match, normalise what was found, until nothing changes.
"""
