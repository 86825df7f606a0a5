"""The e-graph whose classes are normal forms: which e-nodes a value has, and the choice among them.

:mod:`eqsat.alternatives.canonical` holds the classes, :mod:`eqsat.alternatives.builder` grows them from the roots, with
one module for each kind of value; :mod:`eqsat.alternatives.choosing` chooses, with shared partial sums.

Imports ``extract``, ``lang`` and ``theory``.
"""
