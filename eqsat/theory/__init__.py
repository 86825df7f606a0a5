"""Linear integer arithmetic: the normal form of a term, and what is known of its values.

A normal form (:class:`eqsat.theory.forms.LinearForm`) is a sum of atoms with integer coefficients; equal normal forms
mean equal terms. The door is :class:`eqsat.theory.linear.LinearArithmetic`, which normalises terms under the facts that
it is told.

Imports ``lang``.
"""
