"""Rules that are false, most of them published; the checker must refute each.

The last field of a row says where it comes from and what is missing.
"""

from eqsat.rule import Rule

# ruff: noqa: E501
# fmt: off

FALSE_RULES = [
    #    name                   left                          right                     guard                        source
    Rule("div-div-any-sign",    "(x // c) // d",              "x // (c*d)",             "c != 0 and d != 0",         "Morok, 4.1: right for truncating division; floors need d > 0"),
    Rule("tdiv-nested-offset",  "tdiv(tdiv(x, c) + k, d)",    "tdiv(x + c*k, c*d)",     "c > 0 and d > 0",           "Morok, 1.5 without its same-sign guard"),
    Rule("tdiv-multiple",       "tdiv(x*c + y, c)",           "x + tdiv(y, c)",         "c > 0",                     "Morok, 2.3: y may be negative while the sum is not"),
    Rule("tmod-multiple",       "tmod(x*c + y, c)",           "tmod(y, c)",             "c > 0",                     "the same for the remainder"),
    Rule("tmod-of-tmod",        "tmod(tmod(x, c) + y, d)",    "tmod(x + y, d)",         "c > 0 and d > 0 and c % d == 0", "Morok, 3.2 without x_min >= 0"),
    Rule("congruence-unguarded", "(x*c + y) % d",             "x*(c % d) + y",          "d > 0",                     "Morok, 3.4 without the one-bucket guard"),
    Rule("mod-in-range-half",   "x % d",                      "x",                      "vmax(x) < d",               "Morok, 2.1 without 0 <= vmin(x)"),
    Rule("nested-mod-in-div",   "(x % c + y) // d",           "(x + y) // d",           "d > 0 and c % d == 0",      "remove_nested_mod applied to a quotient"),
    Rule("div-over-add-any",    "(x + y) // d",               "x//d + y//d",            "d > 0",                     "Morok, 4.4 without exact divisibility"),
    Rule("gcd-one-term",        "(x*c + y) // d",             "(x + y) // (d//c)",      "c > 1 and d > 0 and d % c == 0", "divides one term and forgets the other"),
    Rule("offset-dropped",      "(x + c) // d",               "x // d",                 "0 <= c and c < d",          "Morok, 2.5 without the bound on x % d"),
    Rule("composed-wrong",      "(x//a) % c + (x//b)*c",      "x // a",                 "a > 0 and c > 0 and b > 0", "Morok, 1.2 without a*c == b"),
    Rule("floor-is-div",        "((x % c)//d*d) // k",        "(x % c) // k",           "c > 0 and d > 0 and k > 0", "MLIR's canonicalize drops the inner floor"),
    Rule("negated-mod",         "-((-x) % d)",                "x % d",                  "d > 0",                     "IREE's integer pass"),
    Rule("max-min-exchange",    "max(x, min(y, z))",          "min(max(x, y), z)",      "",                          "SymPy's nested Max and Min; needs x <= z"),
    Rule("min-scale-any",       "min(x*c, y*c)",              "min(x, y)*c",            "",                          "a negative scale turns the order"),
    Rule("scaled-le-itself",    "x*c + c <= x*c",             "True",                   "c > 0",                     "a recorded Caviar proof, refuted by evaluation"),
    Rule("lt-lift-wrong-way",   "y - x < c",                  "x < c - y",              "",                          "a subtracted term changes sides with its sign"),
    Rule("lt-scaled-floor",     "x*c < d",                    "x < d // c",             "c > 0",                     "the bound must round up"),
    Rule("mask-not-zero",       "x * where(p, 1, d)",         "where(p, x, 0)",         "",                          "the other branch need not be 0"),
    Rule("zero-divisor-hidden", "x * (y - y)",                "x * (y // y - 1)",       "",                          "the right side divides by zero where the left does not"),
]
