"""The optimiser: insert, saturate, extract.

The front door is :func:`eqsat.optimizer.front.optimize`; every entry point comes through it.
:mod:`eqsat.optimizer.modulo_theory` is the default, in which :mod:`eqsat.optimizer.saturation` lets rules and theory
work on one e-graph until nothing changes; :mod:`eqsat.optimizer.rules_alone` runs rules alone or greedily. What is
found is a :class:`eqsat.optimizer.result.Result`.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``rules``, ``prove`` and ``alternatives``.
"""
