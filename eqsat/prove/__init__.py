"""Whether terms are equal everywhere, and whether rules are true.

:mod:`eqsat.prove.verify` compares terms by evaluation, then by boxes and periods, isl and z3; :mod:`eqsat.prove.proof`
proves or refutes a rule.

Imports ``lang`` and ``egraph``.
"""
