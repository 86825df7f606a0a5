"""Index expressions as other systems have them: indexing maps, HLO, MLIR, views, SymPy, and steps in the compilers of
PyTorch Inductor, tinygrad and Triton.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``rules``, ``prove``, ``optimizer`` and ``kernels``.
"""
