"""Index expressions as other systems have them: indexing maps, tiles, views, the structure around indices, HLO, MLIR,
SymPy, and steps in the compilers of PyTorch Inductor, tinygrad and Triton.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``rules``, ``prove``, ``optimizer`` and ``kernels``.
"""
