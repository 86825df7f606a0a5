"""Derivations: how a result follows from its input, one law at a time, in steps that are checked.

:func:`eqsat.explain.derivation.explain` makes them.

Imports ``lang``, ``theory``, ``egraph``, ``rules``, ``prove`` and ``optimizer``.
"""
