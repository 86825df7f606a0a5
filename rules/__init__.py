"""What is true of integer index expressions, as data: one file per family, one line per rule.

Laws for whoever writes a rule:

1. A rule is true for all integers that satisfy its guard, negative ones included; only a zero divisor in its left side is
   excused. The tests prove it by z3 or refute it with a counterexample: mend the rule, never the test.
2. A guard reads only what grows: bounds, factors, literals, known facts. The absence of a fact proves nothing.
3. No conjunct without a reason: for each there is an instance where only it fails and the sides differ.
4. A rule that makes terms bigger needs a reason to stop: it must make a coefficient smaller, meet a literal, or move
   something one way only. ``x -> x + 0`` and its like never end.
5. Operands may come in any order and sums in any association: write one order; commutativity and associativity are rules.
6. A literal offset of a sum is its right operand, and a rule for ``x + y`` below ``//``, ``%`` or a comparison sees it.
7. Every rule has a line in the firing table of the tests: a smallest input that needs it.
"""

from eqsat.egraph.rule import parsed_when_needed

with parsed_when_needed():
    from eqsat.rules.arithmetic import ARITHMETIC
    from eqsat.rules.bits import BITS
    from eqsat.rules.compare import COMPARE
    from eqsat.rules.division import DIVISION
    from eqsat.rules.divmod import DIVMOD
    from eqsat.rules.folding import FOLDING
    from eqsat.rules.ranges import RANGES
    from eqsat.rules.reduce import REDUCE as REDUCE
    from eqsat.rules.select import SELECT

#: Every rule, by family.
FAMILIES = {
    "arithmetic": ARITHMETIC,
    "divmod": DIVMOD,
    "ranges": RANGES,
    "folding": FOLDING,
    "division": DIVISION,
    "compare": COMPARE,
    "select": SELECT,
    "bits": BITS,
}

#: The rules of every run. Those of ``REDUCE``, about reductions, come with them where these occur.
DEFAULT = tuple(rule for family in FAMILIES.values() for rule in family)
