"""Linear integer arithmetic: the normal form of a term, and what is known of its values.

A normal form (:class:`eqsat.theory.forms.LinearForm`) is a sum of atoms with integer coefficients. Terms with equal
normal forms are equal. Start at :class:`eqsat.theory.linear.LinearArithmetic`, which normalises terms under facts.

Imports ``extract`` and ``lang``.
"""
