"""Kernels: arrays in, arrays out, by stores over ranges of variables, and the loops that run them.

:mod:`eqsat.kernels.kernel` states kernels, :mod:`eqsat.kernels.simplification` makes them cheaper:
:mod:`eqsat.kernels.ranges` splits and merges loops for cheap indices, :mod:`eqsat.kernels.schedule` for fast memory.
:mod:`eqsat.kernels.staging` computes kernels in several steps; :mod:`eqsat.kernels.reductions` takes reductions apart.

Imports ``extract``, ``lang``, ``theory``, ``alternatives``, ``egraph`` and ``optimizer``.
"""
