"""Sums and products: commutativity, associativity, distribution and factoring, literals.

Letters a b c d k m n match integer literals; x y z match anything.
"""

from eqsat.egraph.rule import Rule

ARITHMETIC = [
    #    name                 left                right               guard        reason
    Rule("add-commutes",      "x + y",            "y + x",            why="addition commutes", source="A13 A78"),
    Rule("add-associates",    "(x + y) + z",      "x + (y + z)",      why="addition associates", source="A13"),
    Rule("mul-commutes",      "x * y",            "y * x",            why="multiplication commutes", source="A78"),
    Rule("mul-associates",    "(x * y) * z",      "x * (y * z)",      why="multiplication associates"),

    Rule("add-zero",          "x + 0",            "x",                why="0 is neutral"),
    Rule("mul-one",           "x * 1",            "x",                why="1 is neutral"),

    Rule("known-value",       "x",                  "vmin(x)",          "vmin(x) == vmax(x)", "bounds that meet leave one value: this folds literals too", source="A5"),

    Rule("offsets-add",       "(x + c) + d",      "x + (c + d)",      why="literals meet"),
    Rule("scales-multiply",   "(x * c) * d",      "x * (c * d)",      why="literals meet"),
    Rule("offset-outward",    "(x + c) + y",      "(x + y) + c",      why="literals go last, so that they meet"),
    Rule("scale-outward",     "(x * c) * y",      "(x * y) * c",      why="literals go last, so that they meet"),

    Rule("distribute",        "(x + y) * z",      "x*z + y*z",        both_ways=True, why="multiplication distributes over addition"),
    Rule("distribute-scale",  "(x + y) * c",      "x*c + y*c",        both_ways=True, why="multiplication distributes over addition", source="A61"),
    Rule("distribute-offset", "(x + c) * d",      "x*d + c*d",        why="multiplication distributes over addition", source="A61"),
    Rule("distribute-whole",  "(x + c) * z",      "x*z + z*c",        both_ways=True, why="multiplication distributes over addition"),
    Rule("factor-scale",      "x*c + y*d",        "(x + y*(d//c))*c", "c != 1 and c != -1 and d != c and d % c == 0", "c divides both terms"),
    Rule("factor-offset",     "x*c + d",          "(x + d//c)*c",     "c != 1 and c != -1 and d % c == 0", "c divides both terms"),
    Rule("factor-term",       "x*z + z",          "(x + 1)*z",        why="z is in both terms"),
    Rule("add-same",          "x + x",            "x * 2",            why="like terms add"),
    Rule("add-like",          "x*c + x",          "x * (c + 1)",      why="like terms add"),
    Rule("add-likes",         "x*c + x*d",        "x * (c + d)",      why="like terms add"),

    Rule("bit-squared",       "x * x",            "x",                "0 <= vmin(x) and vmax(x) < 2", "0 and 1 are their own squares", modulo_theory=True),
]
