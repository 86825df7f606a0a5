"""Derivations: how a result follows from its input, one law at a time, in steps that are checked.

The door is :func:`eqsat.explain.derivation.explain`.

Imports ``lang``, ``theory``, ``egraph``, ``rules``, ``prove`` and ``optimizer``.
"""
