"""Index expressions in the forms of other systems: indexing maps, HLO, MLIR, views, SymPy, tinygrad, and how
their passes print.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``rules``, ``prove``, ``optimizer`` and ``kernels``.
"""
