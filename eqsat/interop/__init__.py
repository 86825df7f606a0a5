"""Index expressions in the forms of other systems: indexing maps, HLO, views, SymPy, and the notation of their passes.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``prove``, ``optimizer`` and ``kernels``.
"""
