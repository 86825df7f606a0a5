"""How far answers are from the least cost: terms are enumerated, and those that cost less than an answer are found.

:mod:`eqsat.discover.search` enumerates, ``cases`` chooses a bundled sample, ``__main__`` measures it and writes
``docs/optimum.md``.
"""
