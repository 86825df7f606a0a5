"""What the range of a term says about its quotients and remainders.

Letters a b c d k m n match integer literals; x y z match anything.
"""

from eqsat.egraph.rule import Rule

RANGES = [
    #    name                left            right                       guard                                      reason
    Rule("mod-in-range",     "x % d",        "x",                        "0 <= vmin(x) and vmax(x) < d",            "0 <= x < d", source="A5 A19 D44"),
    Rule("mod-multiple",     "(x + y) % d",  "y % d",                    "gcd(x, d) == d",                          "d divides x", source="A20 A48 A49 A58 A86 D46"),
    Rule("div-multiple",     "(x + y) // d", "x//d + y//d",              "gcd(x, d) == d",                          "x/d is whole, so it leaves the floor", source="A21 A48 A49 A59 A60 A85 D45 D46 E7"),
    Rule("mod-congruent",    "x % d",        "remainder(x) % d",         "modulus(x) % d == 0",                     "x and its remainder agree modulo d"),
    Rule("div-bucket",       "x // d",       "vmin(x)//d",               "vmin(x)//d == vmax(x)//d",                "all of x lies in one bucket", source="A22 A85 D44"),
    Rule("div-small-rest",   "(x + y) // d", "x // d",                   "d > 0 and 0 <= vmin(y) and vmax(y) < gcd(x, d)", "x steps by a divisor of d, so y never crosses a bucket", source="A23 A24", covered_by="gcd-div-rest"),
    Rule("div-aligned-rest", "(x + y) // d", "x // d",                   "d > 0 and d % modulus(x) == 0 and 0 <= remainder(x) + vmin(y) and remainder(x) + vmax(y) < modulus(x)", "y never leaves x's step of modulus(x)"),
    Rule("div-offset",       "(x + c) // d", "(x + c%d)//d + c//d",      "c >= d or c < 0",                         "whole multiples of d leave the floor", source="A25 A26 D47 E11"),
    Rule("mod-two-periods",  "x % d",        "x - where(x < vmin(x)//d*d + d, vmin(x)//d*d, vmin(x)//d*d + d)", "vmax(x)//d == vmin(x)//d + 1 and d & d - 1 != 0", "x lies in one period or in the next", modulo_theory=True),
    Rule("div-two-periods",  "x // d",       "where(x < vmin(x)//d*d + d, vmin(x)//d, vmin(x)//d + 1)", "vmax(x)//d == vmin(x)//d + 1", "x lies in one period or in the next", modulo_theory=True),
    Rule("mod-two-periods-offset", "(x + k) % d", "x + where(x < (vmin(x) + k)//d*d + d - k, k - (vmin(x) + k)//d*d, k - (vmin(x) + k)//d*d - d)", "(vmax(x) + k)//d == (vmin(x) + k)//d + 1 and d & d - 1 != 0", "x + k lies in one period or in the next", modulo_theory=True),
    Rule("mod-at-end",       "x % d",        "where(x < d, x, 0)",       "0 <= vmin(x) and vmax(x) == d",           "x is in one period, or the first number of the next", modulo_theory=True),
    Rule("mod-at-start",     "x % d",        "where(x < 0, d - 1, x)",   "vmin(x) == -1 and vmax(x) < d and d & d - 1 != 0", "x is in one period, or the last number of the one before", modulo_theory=True),
    Rule("mod-offset",       "(x + c) % d",  "(x + c%d) % d",            "c >= d or c < 0",                         "whole multiples of d vanish", source="A25"),
]
