"""The command line, the corpora that it reads, and what it measures.

Imports ``extract``, ``lang``, ``egraph``, ``rules``, ``prove``, ``optimizer``, ``discover``, ``explain``, ``kernels``,
``codegen`` and ``interop``.
"""
