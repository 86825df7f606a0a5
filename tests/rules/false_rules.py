"""Rules that are false, most of them published, by where they stand; the checker must refute each.

A row says what is wrong, and for which values: both sides are computed there, by Python, to see that they differ.
"""

from eqsat.egraph.rule import Rule

# ruff: noqa: E501
# fmt: off

FALSE = {
    # name, left, right, guard, counterexample, what is wrong
    "Morok, Index Arithmetic, as printed or without its guard": [
        ("div-div-any-sign",     "(x // c) // d",           "x // (c*d)",                "c != 0 and d != 0",                                            "c = -2, d = -1, x = -1",                                                "4.1: right for truncating division; floors need d > 0"),
        ("tdiv-nested-offset",   "tdiv(tdiv(x, c) + k, d)", "tdiv(x + c*k, c*d)",        "c > 0 and d > 0",                                              "c = 2, d = 1, k = -1, x = 1",                                           "1.5 without its same-sign guard"),
        ("tdiv-multiple",        "tdiv(x*c + y, c)",        "x + tdiv(y, c)",            "c > 0",                                                        "c = 2, x = -1, y = 1",                                                  "2.3: y may be negative while the sum is not"),
        ("div-multiple-alone",   "(x*c + y) // c",          "x",                         "c > 0",                                                        "c = 1, x = 0, y = -1",                                                  "2.3 without 0 <= y < c"),
        ("tmod-multiple",        "tmod(x*c + y, c)",        "tmod(y, c)",                "c > 0",                                                        "c = 2, x = -1, y = 1",                                                  "the same for the remainder"),
        ("tmod-of-tmod",         "tmod(tmod(x, c) + y, d)", "tmod(x + y, d)",            "c > 0 and d > 0 and c % d == 0",                               "c = 2, d = 2, x = -2, y = 1",                                           "3.2 without x_min >= 0"),
        ("tdiv-offset",          "tdiv(x + c, d)",          "tdiv(x + c % d, d) + c//d", "d > 0 and c >= d",                                             "c = 2, d = 2, x = -1",                                                  "2.6 for truncating division, without x_min >= 0"),
        ("tmod-congruent",       "tmod(x*c + y, d)",        "tmod(x*(c % d) + y, d)",    "d > 0 and c >= d",                                             "c = 2, d = 2, x = -1, y = 1",                                           "3.4 for truncating division, without x_min >= 0"),
        ("congruence-unguarded", "(x*c + y) % d",           "x*(c % d) + y",             "d > 0",                                                        "c = 0, d = 1, x = 0, y = -1",                                           "3.4 without the one-bucket guard"),
        ("mod-in-range-half",    "x % d",                   "x",                         "vmax(x) < d",                                                  "d = 1, vmax(x) = 0, x = -1",                                            "2.1 without 0 <= vmin(x)"),
        ("nested-mod-in-div",    "(x % c + y) // d",        "(x + y) // d",              "d > 0 and c % d == 0",                                         "c = -1, d = 1, x = -1, y = 0",                                          "remove_nested_mod applied to a quotient"),
        ("div-over-add-any",     "(x + y) // d",            "x//d + y//d",               "d > 0",                                                        "d = 2, x = -1, y = -1",                                                 "4.4 without exact divisibility"),
        ("div-over-sub-any",     "(x - y) // d",            "x//d - y//d",               "d > 0",                                                        "d = 2, x = 0, y = -1",                                                  "4.5 without exact divisibility"),
        ("gcd-one-term",         "(x*c + y) // d",          "(x + y) // (d//c)",         "c > 1 and d > 0 and d % c == 0",                               "c = 2, d = 2, x = 0, y = 1",                                            "divides one term and forgets the other"),
        ("gcd-mod-unscaled",     "(x*c + y*c) % d",         "(x + y) % (d//c)",          "c > 1 and d % c == 0",                                         "c = 2, d = -4, x = -1, y = 0",                                          "3.5: the remainder must be scaled back"),
        ("nest-any-sign",        "(x // c) // d",           "x // (c*d)",                "c > 0",                                                        "c = 2, d = -1, x = -1",                                                 "3.8 for a negative divisor: the outer one must be positive"),
        ("offset-dropped",       "(x + c) // d",            "x // d",                    "0 <= c and c < d",                                             "c = 1, d = 2, x = -1",                                                  "2.5 without the bound on x % d"),
        ("composed-wrong",       "(x//a) % c + (x//b)*c",   "x // a",                    "a > 0 and c > 0 and b > 0",                                    "a = 1, b = 1, c = 2, x = 1",                                            "1.2 without a*c == b"),
        ("corners-two",          "x // y",                  "vmin(x)//vmin(y)",          "vmin(y)*vmax(y) > 0 and vmin(x)//vmin(y) == vmax(x)//vmax(y)", "vmax(x) = 0, vmax(y) = -1, vmin(x) = -1, vmin(y) = -2, x = -1, y = -1", "3.1 with two of its four corners"),
    ],
    "tinygrad, View: an index that holds only where its mask does": [
        ("index-outside-its-mask", "where(0 < x and x < 2, x*c + y, 0)", "c + y", "", "c = -1, x = 0, y = 0", "the pair of index and mask is kept, not the index alone"),
    ],
    "XLA, indexing_map_test: bounds of s // -3 taken as if it truncated": [
        ("floordiv-negative-below", "x // d < c",  "(c - 1)*d <= x", "d < 0", "c = 0, d = -2, x = 1", "-5 is reached from 13 on, not from 15"),
        ("floordiv-negative-above", "c <= x // d", "x < c*d - d",    "d < 0", "c = 0, d = -2, x = 1", "-11 ends at 33, not at 35"),
    ],
    "Swizzles and masks, without what they take": [
        ("mask-with-gaps",      "x & c",                    "x % (c + 1)",               "c >= 0",                                                       "c = 2, x = 1",                                                          "c + 1 is no power of two"),
        ("or-is-sum",           "x | y",                    "x + y",                     "vmin(x) >= 0 and vmin(y) >= 0",                                "vmin(x) = 0, vmin(y) = 0, x = 1, y = 1",                                "common bits count twice"),
        ("xor-less-and",        "x ^ y",                    "x + y - (x & y)",           "",                                                             "x = -1, y = -1",                                                        "common bits count in both: twice"),
        ("xor-of-any-quotients", "(x//d) ^ (y//d)",         "(x ^ y) // d",              "d > 0",                                                        "d = 3, x = 1, y = 2",                                                   "only a power of two shifts bits"),
        ("xor-upper-digits-any", "((x//d) ^ y)*d + x % d",  "x ^ (y*d)",                 "d > 0",                                                        "d = 3, x = 1, y = 1",                                                   "the lower digits have no bits of their own"),
    ],
    "MLIR, affine canonicalisation": [
        ("floor-is-div", "((x % c)//d*d) // k", "(x % c) // k", "c > 0 and d > 0 and k > 0", "c = 2, d = 2, k = 1, x = -1", "the inner floor is dropped"),
    ],
    "IREE, integer divisibility pass": [
        ("negated-mod", "-((-x) % d)", "x % d", "d > 0", "d = 2, x = -1", "the sign is lost"),
    ],
    "SymPy, nested Max and Min": [
        ("max-min-exchange", "max(x, min(y, z))", "min(max(x, y), z)", "", "x = 0, y = 0, z = -1", "needs x <= z"),
    ],
    "Halide, rules that verification found (Newcomb et al., OOPSLA 2020)": [
        ("halide-round-up-less",      "(x + c)//d*d - x",          "x % d",         "d > 0 and c + 1 == d", "c = 2, d = 3, x = -1",        "it is (-x) % d"),
        ("halide-less-round-up",      "x - (x + c)//d*d",          "-(x % d)",      "d > 0 and c + 1 == d", "c = 2, d = 3, x = -1",        "it is -((-x) % d)"),
        ("halide-min-below-min",      "min(x, c) < min(x, d) + k", "False",         "c >= d + k",           "c = 1, d = 0, k = 1, x = 0",  "needs k <= 0"),
        ("halide-max-below-max",      "max(x, c) < max(x, d) + k", "False",         "c >= d + k",           "c = 0, d = -1, k = 1, x = 0", "needs k <= 0"),
        ("halide-min-of-differences", "min(x - y, x - z)",         "x - min(y, z)", "",                     "x = 0, y = -1, z = 0",        "a subtrahend turns the order: max"),
    ],
    "Halide, its change history": [
        ("halide-sub-in-div",          "(x*c - y) // d",       "x*(c//d) - y//d",       "d > 0 and c % d == 0",           "c = 0, d = 2, x = 0, y = -1",        "pull request 1349: -y//d is not -(y//d)"),
        ("halide-sub-in-div-of-three", "((x*c - y) + z) // d", "x*(c//d) - (y - z)//d", "d > 0 and c % d == 0",           "c = 0, d = 2, x = 0, y = -1, z = 0", "pull request 1349: the same below a sum"),
        ("halide-negative-gcd",        "(x*c) // d",           "-(x // -(d//c))",       "c < 0 and d > 0 and d % c == 0", "c = -1, d = 2, x = -1",              "issue 2949: a negative common divisor, rounding by the divisor's sign"),
        ("halide-minus-one-over",      "-1 // x",              "where(x < 0, 1, -1)",   "",                               "x = -2",                             "right for its own division, which leaves remainders >= 0; not for floors"),
    ],
    "Caviar (CC 2022), whose literals fold with C's division": [
        ("caviar-add-denom-mul",     "tdiv(x, y) + z",          "tdiv(x + y*z, y)",       "",                                                   "x = -1, y = -2, z = -1",                     "x and the sum may differ in sign"),
        ("caviar-add-denom-div",     "tdiv(x + y*z, y)",        "tdiv(x, y) + z",         "",                                                   "x = -1, y = -2, z = -1",                     "x and the sum may differ in sign"),
        ("caviar-add-div-mod",       "tdiv(x, 2) + tmod(x, 2)", "tdiv(x + 1, 2)",         "",                                                   "x = -1",                                     "for odd negative x"),
        ("caviar-div-consts-add",    "tdiv(x*c + y, d)",        "x*(c//d) + tdiv(y, d)",  "d > 0 and c % d == 0",                               "c = -2, d = 2, x = -1, y = -1",              "y and the sum may differ in sign"),
        ("caviar-div-separate",      "tdiv(x + c, d)",          "tdiv(x, d) + c//d",      "d > 0 and c % d == 0",                               "c = -2, d = 2, x = 1",                       "x and the sum may differ in sign"),
        ("caviar-lt-mul-pos-cancel", "x*c < y",                 "x < tdiv(y + c - 1, c)", "c > 0",                                              "c = 2, x = -1, y = -2",                      "rounds up for y >= 0 only"),
        ("caviar-lt-mul-div-cancel", "x < tdiv(y, c)",          "(x + 1)*c - 1 < y",      "c > 0",                                              "c = 2, x = -1, y = -1",                      "for x >= 0 only"),
        ("caviar-min-div-mul",       "min(tdiv(x, c)*c, x)",    "tdiv(x, c)*c",           "c > 0",                                              "c = 2, x = -1",                              "truncation raises a negative x"),
        ("caviar-mod-two",           "tmod(x - y, 2)",          "tmod(x + y, 2)",         "",                                                   "x = 0, y = -1",                              "the remainders differ in sign"),
        ("caviar-mod-consts",        "tmod(x*c + y, d)",        "tmod(y, d)",             "d != 0 and c % d == 0",                              "c = -2, d = -2, x = -1, y = -1",             "y and the sum may differ in sign"),
        ("caviar-mod-const-add",     "tmod(x, d)",              "tmod(x + d, d)",         "vmin(x) == vmax(x) and d <= max(vmin(x), -vmin(x))", "d = -2, vmax(x) = 1, vmin(x) = 1, x = 1",    "for negative d the sum changes sign"),
        ("caviar-mod-const-sub",     "tmod(x, d)",              "tmod(x - d, d)",         "vmin(x) == vmax(x) and d <= max(vmin(x), -vmin(x))", "d = -2, vmax(x) = -1, vmin(x) = -1, x = -1", "for negative d the sum changes sign"),
    ],
    "Caviar, under floor division": [
        ("caviar-div-minus-in",     "-1 * (x // y)",  "(-1*x) // y",   "",      "x = -1, y = -2", "a sign outside the floor is a ceiling"),
        ("caviar-div-minus-out",    "(-1*x) // y",    "-1 * (x // y)", "",      "x = -1, y = -2", "a sign outside the floor is a ceiling"),
        ("caviar-mod-minus-out",    "(x * -1) % y",   "-1 * (x % y)",  "",      "x = -1, y = -2", "the remainder has the sign of y"),
        ("caviar-mod-minus-in",     "-1 * (x % y)",   "(x * -1) % y",  "",      "x = -1, y = -2", "the remainder has the sign of y"),
        ("caviar-scaled-le-itself", "x*c + c <= x*c", "True",          "c > 0", "c = 1, x = 0",   "one of its recorded proofs"),
    ],
    "luminal, egglog rules of 2025 and the egg rules before them": [
        ("luminal-mul-div-associative",     "(x*y) // z",         "x * (y // z)",         "",                      "x = -1, y = -1, z = -2",       "the floor loses what x multiplies"),
        ("luminal-mul-div-associative-rev", "x * (y // z)",       "(x*y) // z",           "",                      "x = -1, y = -1, z = -2",       "marked as bad in its source"),
        ("luminal-distribute-div",          "(x + y) // z",       "x//z + y//z",          "",                      "x = -1, y = -1, z = -2",       "two remainders may make one more"),
        ("luminal-div-mul",                 "(x // y) * y",       "x",                    "",                      "x = -1, y = -2",               "only for multiples of y; marked as not true in its source"),
        ("luminal-nested-mod-outer",        "(x % c) % d",        "x % c",                "d >= c and c % d == 0", "c = -2, d = -1, x = -1",       "c may be negative"),
        ("luminal-nested-mod-inner",        "(x % c) % d",        "x % d",                "c >= d and d % c == 0", "c = -1, d = -2, x = -1",       "d may be negative"),
        ("luminal-distribute-min",          "z * min(x, y)",      "min(z*x, z*y)",        "",                      "x = -1, y = 0, z = -1",        "a negative z turns the order"),
        ("luminal-distribute-max",          "z * max(x, y)",      "max(z*x, z*y)",        "",                      "x = -1, y = 0, z = -1",        "a negative z turns the order"),
        ("luminal-div-mod-mul",             "(x // y) % z",       "x % (y*z)",            "",                      "x = -1, y = -2, z = -1",       "the lower digit stays: (x % (y*z)) // y"),
        ("luminal-distribute-mod",          "(x % y) * z",        "(x*z) % (y*z)",        "",                      "x = 0, y = -1, z = 0",         "z may be zero"),
        ("luminal-mul-distribute",          "w * ((x // y) % z)", "(x // (y*w)) % (z*w)", "",                      "w = 0, x = 0, y = -1, z = -1", "marked as bad in its source"),
        ("luminal-factor-div",              "x//y + x//z",        "x // (y + z)",         "",                      "x = 0, y = -1, z = 1",         "divisors do not add"),
        ("luminal-recip-mul-div",           "x * (1 // x)",       "1",                    "",                      "x = -2",                       "true of fractions"),
        ("luminal-max-zero",                "max(x, 0)",          "x",                    "",                      "x = -1",                       "x may be negative"),
        ("luminal-min-i32-max",             "min(x, 2147483647)", "x",                    "",                      "x = 2147483648",               "x may be larger"),
        ("luminal-max-i32-max",             "max(x, 2147483647)", "2147483647",           "",                      "x = 2147483648",               "x may be larger"),
    ],
    "one step from a true rule": [
        ("min-scale-any",       "min(x*c, y*c)",      "min(x, y)*c",      "",             "c = -1, x = -1, y = 0", "a negative scale turns the order"),
        ("lt-lift-wrong-way",   "y - x < c",          "x < c - y",        "",             "c = 0, x = -1, y = 0",  "a subtracted term changes sides with its sign"),
        ("lt-scaled-floor",     "x*c < d",            "x < d // c",       "c > 0",        "c = 2, d = 1, x = 0",   "the bound must round up"),
        ("mod-congruent-alone", "x % d",              "remainder(x)",     "modulus(x) % d == 0", "d = 1, modulus(x) = 2, remainder(x) = 1, x = 1", "the remainder may reach d"),
        ("mod-congruent-less",  "x % d",              "remainder(x) % d", "d % modulus(x) == 0", "d = 2, modulus(x) = 1, remainder(x) = 0, x = 1", "the modulus says nothing of its multiples"),
        ("eq-not-a-multiple",   "x == d",             "False",            "d % modulus(x) != 0", "d = 1, modulus(x) = 2, remainder(x) = 1, x = 1", "the remainder is forgotten"),
        ("eq-other-modulus",    "x == y",             "False",            "remainder(x) != remainder(y)", "modulus(x) = 2, remainder(x) = 1, modulus(y) = 3, remainder(y) = 2, x = 5, y = 5", "remainders modulo different numbers"),
        ("div-aligned-carry",   "(x + y) // d",       "x // d",           "d > 0 and d % modulus(x) == 0 and 0 <= vmin(y) and vmax(y) < modulus(x)", "d = 2, modulus(x) = 2, remainder(x) = 1, vmin(y) = 0, vmax(y) = 1, x = 1, y = 1", "the remainder adds to y"),
        ("div-aligned-wide",    "(x + y) // d",       "x // d",           "d > 0 and modulus(x) % d == 0 and 0 <= remainder(x) + vmin(y) and remainder(x) + vmax(y) < modulus(x)", "d = 1, modulus(x) = 2, remainder(x) = 0, vmin(y) = 0, vmax(y) = 1, x = 0, y = 1", "the step may be longer than d"),
        ("mask-not-zero",       "x * where(p, 1, d)", "where(p, x, 0)",   "",             "d = -1, p = 0, x = -1", "the other branch need not be 0"),
        ("zero-divisor-hidden", "x * (y - y)",        "x * (y // y - 1)", "",             "x = 0, y = 0",          "the right side divides by zero where the left does not"),
        ("small-numbers-only",  "x // 1000",          "0",                "0 <= vmin(x)", "vmin(x) = 0, x = 1000", "true of every number that a search tries"),
    ],
}
# fmt: on

FALSE_RULES = [Rule(*row[:4], why=row[5], source=source) for source, rows in FALSE.items() for row in rows]

#: By name, values for which the guard holds and the sides differ.
COUNTEREXAMPLES = {row[0]: row[4] for rows in FALSE.values() for row in rows}
