"""Index expressions in the forms of other systems: indexing maps, HLO, views, and the notation of their passes.

Imports ``codegen``, ``kernels``, ``optimize``, ``prove``, ``egraph``, ``theory``, ``lang`` and ``extract``.
"""
