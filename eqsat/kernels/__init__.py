"""Kernels: arrays in, arrays out, by stores over ranges of variables, and the loops that run them.

:mod:`eqsat.kernels.kernel` states kernels, :mod:`eqsat.kernels.ranges` splits, merges and flattens their loops,
:mod:`eqsat.kernels.staging` computes them in several steps.

Imports ``extract``, ``lang``, ``theory``, ``alternatives``, ``egraph`` and ``optimizer``.
"""
