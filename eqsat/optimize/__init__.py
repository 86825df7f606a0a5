"""The optimiser: insert, saturate, extract.

The front door is :func:`eqsat.optimize.front.optimize`; every entry point comes through it.
:mod:`eqsat.optimize.modulo_theory` is the default, in which :mod:`eqsat.optimize.saturation` lets rules and theory work
on one e-graph until nothing changes; :mod:`eqsat.optimize.rules_alone` runs rules alone or greedily. What is found is a
:class:`eqsat.optimize.result.Result`. Imports ``alternatives``, ``egraph``, ``theory``, ``prove``, ``lang``, ``rules``
and ``extract``.
"""
