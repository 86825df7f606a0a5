"""C: of expressions, of kernels and their loop nests; compiled, cached and called.

:mod:`eqsat.codegen.expressions` writes the C of terms, :mod:`eqsat.codegen.nests` that of kernels.
:mod:`eqsat.codegen.libraries` compiles it; :mod:`eqsat.codegen.runtime` calls it for terms,
:mod:`eqsat.codegen.programs` for kernels.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``optimizer`` and ``kernels``.
"""
