"""Bit operators: commutativity, absorption, distribution, and what joins them to arithmetic.

Letters a b c d k m n match integer literals; x y z match anything. Bits are those of two's complement, without end.
"""

from eqsat.egraph.rule import Rule

BITS = [
    #    name                  left                    right                 guard                         reason
    Rule("bitand-commutes",    "x & y",                "y & x",              why="each bit commutes"),
    Rule("bitand-associates",  "(x & y) & z",          "x & (y & z)",        why="each bit associates"),
    Rule("bitor-commutes",     "x | y",                "y | x",              why="each bit commutes"),
    Rule("bitor-associates",   "(x | y) | z",          "x | (y | z)",        why="each bit associates"),
    Rule("bitxor-commutes",    "x ^ y",                "y ^ x",              why="each bit commutes"),
    Rule("bitxor-associates",  "(x ^ y) ^ z",          "x ^ (y ^ z)",        why="each bit associates"),

    Rule("bitxor-zero",        "x ^ 0",                "x",                  why="0 has no bits"),
    Rule("bitxor-same",        "x ^ x",                "0",                  why="no bit differs", modulo_theory=True),
    Rule("bitand-low-mask",    "x & c",                "x % (c + 1)",        "c >= 0 and c & (c + 1) == 0", "the lowest digits"),
    Rule("bitand-absorbs",     "x & (x | y)",          "x",                  why="x has no other bits than x | y", modulo_theory=True),
    Rule("bitor-absorbs",      "x | (x & y)",          "x",                  why="x has all bits of x & y", modulo_theory=True),
    Rule("bitand-over-or",     "(x & z) | (y & z)",    "(x | y) & z",        why="bits distribute", modulo_theory=True),
    Rule("bitand-over-xor",    "(x & z) ^ (y & z)",    "(x ^ y) & z",        why="bits distribute", modulo_theory=True),
    Rule("bitor-and-add",      "(x | y) + (x & y)",    "x + y",              why="common bits count twice", modulo_theory=True),
    Rule("bitxor-and-add",     "(x ^ y) + (x & y)*2",  "x + y",              why="a sum is its digits and its carries", modulo_theory=True),
    Rule("bitor-less-and",     "(x | y) - (x & y)",    "x ^ y",              why="the bits of one alone", modulo_theory=True),
    Rule("bitxor-more-and",    "(x ^ y) + (x & y)",    "x | y",              why="the bits of one alone, and those of both", modulo_theory=True),
    Rule("bitor-less-xor",     "(x | y) - (x ^ y)",    "x & y",              why="the bits of both", modulo_theory=True),
    Rule("bitor-twice-less-xor", "(x | y)*2 - (x ^ y)", "x + y",             why="common bits count twice", modulo_theory=True),
    Rule("bitor-by-and",       "x + y - (x & y)",      "x | y",              why="common bits count once", modulo_theory=True),
    Rule("bitand-by-or",       "x + y - (x | y)",      "x & y",              why="common bits count once more", modulo_theory=True),
    Rule("bitxor-by-and",      "x + y - (x & y)*2",    "x ^ y",              why="a sum less its carries", modulo_theory=True),
    Rule("bitxor-by-or",       "(x | y)*2 - x - y",    "x ^ y",              why="the bits of both are gone", modulo_theory=True),
    Rule("bitor-by-mask",      "x + c - (x & c)",      "x | c",              why="common bits count once", modulo_theory=True),
    Rule("bitxor-by-mask",     "x + c - (x & c)*2",    "x ^ c",              why="a sum less its carries", modulo_theory=True),
    Rule("bitxor-flips",       "(x & k) + (x + c) % d", "x ^ c",             "k == -d and d == 2*c and c & (c - 1) == 0", "half a period more inverts the highest digit", modulo_theory=True),
    Rule("bitxor-of-quotients", "(x//d) ^ (y//d)",     "(x ^ y) // d",       "d & (d - 1) == 0", "a quotient by a power of two shifts each bit", modulo_theory=True),
    Rule("bitxor-upper-digits", "((x//d) ^ y)*d + x % d", "x ^ (y*d)",       "d & (d - 1) == 0", "a multiple of a power of two leaves the lower digits", modulo_theory=True),
    Rule("bitxor-upper-digits-modulo", "((x//d) ^ y)%c*d + x % d", "(x ^ (y*d)) % (c*d)", "c & (c - 1) == 0 and d & (d - 1) == 0", "a multiple of a power of two leaves the lower digits", modulo_theory=True),
    Rule("bitxor-lower-digits", "x//d*d + (x % d ^ y)", "x ^ y",             "d & (d - 1) == 0 and 0 <= vmin(y) and vmax(y) < d", "y has no bits in the upper digits", modulo_theory=True),
    Rule("bitxor-middle-digits", "x//c*c + (x//d % k ^ y)*d + x % d", "x ^ (y*d)", "c == d*k and d & (d - 1) == 0 and k & (k - 1) == 0 and 0 <= vmin(y) and vmax(y) < k", "y*d has bits in the middle digits only", modulo_theory=True),
    Rule("bitand-masks-apart", "(x & c) + (x & d)",     "x & (c + d)",          "c & d == 0",                 "the bits of one mask and of the other", modulo_theory=True),
    Rule("bitand-lower-mask",  "(x & c) + x % d",      "x & (c + (d - 1))",    "d & (d - 1) == 0 and c & (d - 1) == 0", "the bits of one mask and the lowest digits", modulo_theory=True),
    Rule("bitand-middle-mask", "(x & c) + (x//d % k)*d", "x & (c + (k - 1)*d)", "d & (d - 1) == 0 and k & (k - 1) == 0 and c & (k - 1)*d == 0", "the bits of one mask and of digits", modulo_theory=True),
    Rule("bitand-upper-mask",  "(x & c) + x//d*d",     "x & (c - d)",          "d & (d - 1) == 0 and 0 <= c and c < d", "the bits of one mask and the upper digits", modulo_theory=True),
    Rule("bitand-rest",        "x - (x & c)",           "x & (-1 - c)",         why="the bits outside of the mask", modulo_theory=True),
    Rule("bitand-upper-digits", "(x//d & c)*d",         "x & (c*d)",            "d & (d - 1) == 0",           "a multiple of a power of two has no lower digits", modulo_theory=True),
    Rule("bitxor-rest",        "x ^ (x & c)",           "x & (-1 - c)",         why="the bits outside of the mask", modulo_theory=True),
    Rule("bitxor-upper-rest",  "x ^ x % d",            "x & -d",               "d & (d - 1) == 0",           "the bits above the remainder", modulo_theory=True),
    Rule("bitand-of-lower-digits", "(x & c) % d",       "x & (c % d)",          "d & (d - 1) == 0", "the lower digits of the mask", modulo_theory=True),
    Rule("bitand-drops-upper-digits", "(x % d) & c",    "x & c",                "0 <= c and c < d and d & (d - 1) == 0", "the mask has no upper digits", modulo_theory=True),
]
