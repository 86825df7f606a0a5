"""C: of expressions, of kernels and their loop nests; compiled, cached and called.

:mod:`eqsat.codegen.expressions` writes the C of terms, :mod:`eqsat.codegen.nests` that of kernels,
:mod:`eqsat.codegen.runtime` compiles and calls it.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``optimizer`` and ``kernels``.
"""
